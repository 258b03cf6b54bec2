#!/bin/sh
# Runs a backup between two looks at its repository: what is damaged is mended before, what is new is protected after.
#
#   fec-night [-o SIDECAR] [--base FOLDER] [--prunes] [--full] FOLDER -- COMMAND…
#
#   -o SIDECAR      the sidecar; FOLDER.fecp if it is not given. The first run makes it
#   --base FOLDER   the folder that its names are relative to, if it lies elsewhere
#   --prunes        COMMAND deletes old backups: all is read before, and what is damaged and cannot be mended ends it;
#                   where files can share their blocks (btrfs, XFS), the recovery data let go what is deleted
#   --full          all is read before, in place of names, sizes and times alone
#
# The exit code is that of COMMAND; if that is 0, the one of `fec` for what could not be put right. All that was found
# is printed on standard error, and nothing where all is well. A second run for the same sidecar waits, and a run that
# was killed is taken up by the next one. FEC names the command `fec`, if it is not in PATH.
set -u

usage() {
    sed -n '4s/^# */usage: /p' "$0" >&2
    exit 2
}

fec=${FEC:-fec} sidecar='' base='' prunes=no quick=--quick
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0" && exit ;;
    -o) [ $# -gt 1 ] || usage; sidecar=$2; shift ;;
    --base) [ $# -gt 1 ] || usage; base=$2; shift ;;
    --prunes) prunes=yes quick='' ;;
    --full) quick='' ;;
    -*) usage ;;
    *) break ;;
    esac
    shift
done
if [ $# -lt 3 ] || [ "$2" != -- ]; then
    usage
fi
folder=$1
shift 2
case $folder in */) folder=${folder%/} ;; esac
sidecar=${sidecar:-$folder.fecp}

log=$(mktemp) || exit 4
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# with COMMAND [OPTION…] OPERAND…: fec, with the base, and its words kept for `tell`.
with() {
    verb=$1
    shift
    "$fec" "$verb" ${base:+--base "$base"} "$@" > "$log" 2>&1
}
tell() {
    cat "$log" >&2
}

# keep: a copy of the folder that shares its blocks, as $kept, if the file system can do that and names are those below
# the folder that both lie in. drop: it goes. A run that was killed leaves its copy to the next one.
kept=''
keep() {
    [ -z "$base" ] && [ "$(realpath "$(dirname "$sidecar")")" = "$(realpath "$(dirname "$folder")")" ] || return 0
    kept=$(mktemp -d "$sidecar.night-XXXXXXXXXX") && : > "$kept/.fec-night" || return 0
    if ! cp --reflink=always "$sidecar" "$kept/" 2> /dev/null ||
        ! cp -a --reflink=always "$folder" "$kept/" 2> /dev/null; then
        drop
    fi
}
drop() {
    [ -z "$kept" ] || rm -rf "$kept"
    kept=''
}

exec 9>> "$sidecar.night" || exit 4
flock 9 || exit 4

for copy in "$sidecar".night-??????????; do
    if [ -e "$copy/.fec-night" ]; then
        drop
        kept=$copy
    fi
done
left=0 update=''
if [ -e "$sidecar" ]; then
    update=--update
    # A flag that is not there is no word.
    with verify $quick --ignore edited,moved,new,gone "$sidecar" || left=$?
    if [ $left -ne 0 ]; then
        tell
    fi
    if [ $left -eq 1 ]; then
        left=0
        with repair "$sidecar" || left=$?
        tell
        # The index of borg may lack what is mended, since a backup ran without it. Borg makes it anew. While borg is
        # at work nothing was mended, and the index is in use.
        if [ $left -eq 0 ] && grep -qs '^segments_per_dir' "$folder/config"; then
            rm -f "$folder"/index.[0-9]* "$folder"/hints.[0-9]* "$folder"/integrity.[0-9]*
        fi
    fi
    if [ $prunes = yes ]; then
        if [ $left -ne 0 ]; then
            echo 'fec-night: not all is as it was, and a prune may make it worse: COMMAND was not run' >&2
            exit $left
        fi
        with protect --update --pruning ${kept:+--retired "$kept"} -o "$sidecar" "$folder" || left=$?
        drop
        if [ $left -ne 0 ]; then
            tell
            exit $left
        fi
        keep
    fi
fi

code=0
"$@" 9>&- || code=$?

after=0
with protect $update ${update:+${kept:+--retired "$kept"}} -o "$sidecar" "$folder" || after=$?
drop
if [ $after -ne 0 ]; then
    tell
fi
[ $code -eq 0 ] || exit $code
[ $after -eq 0 ] || exit $after
exit $left
