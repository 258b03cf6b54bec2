#!/bin/bash
# Measures another machine, with one command: asks it over SSH what it is, builds the static binary for it, copies that
# there, runs a preset of `fec bench`, brings the result back, and prints it beside those of other machines.
#
#   scripts/release/board.sh HOST [PRESET [OPTIONS…]]     e.g. scripts/release/board.sh pi@board kernels --quick
#   scripts/release/board.sh --show [PRESET]              only prints what is there
#
# HOST is whatever ssh takes, with what ~/.ssh/config says of it. Nothing has to be installed there, and nothing is left
# there. PRESET and OPTIONS are those of `fec bench`; without PRESET it is `reference`.
#
#   FEC_BINARY     the binary for that machine; without it scripts/release/build-static.sh builds one
#   FEC_BOARDS     where results are kept: the folder boards if unset, one file HOST-PRESET.json for each
#   FEC_BOARD_DIR  where to work over there: TMPDIR, or /tmp, if unset
#   FEC_SSH        the program to use, and its options: ssh if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in
-h | --help) show_help ;;
--show) ;;
'' | -*) usage ;;
esac
boards=${FEC_BOARDS:-boards}

# show PRESET: what came of each machine, and the figures of all side by side, one column each.
show() {
    python3 - "$1" "$boards"/*-"$1".json << 'PYTHON'
import json, os, sys

preset, files = sys.argv[1], [f for f in sys.argv[2:] if os.path.exists(f)]
if not files:
    sys.exit(f"board: no result of {preset} yet")
names, columns, order = [], [], []
for path in files:
    with open(path) as file:
        report = json.load(file)
    names.append(os.path.basename(path)[: -len(f"-{preset}.json")])
    figures = {}
    for table in report["tables"]:
        keys = [c["name"] for c in table["columns"] if c["key"]]
        for row in table["rows"]:
            for name, cell in row.items():
                if isinstance(cell, dict):
                    place = " ".join([table["name"], *(str(row[k]) for k in keys), name])
                    figures[place] = cell["median"]
                    if place not in order:
                        order.append(place)
    columns.append(figures)
    emulated = report["machine"]["emulated"]
    print(f"{names[-1]}: {report.get('headline') or 'measured'}")
    print(f"    {report['machine']['cpu']}, {report['backend']}, {report['machine']['date']}"
          + (f", EMULATED by {emulated}: its speeds mean nothing" if emulated else ""))
width = max([len(place) for place in order], default=0)
wide = max(12, *(len(name) for name in names))
print()
print(" " * width, *(f"{name:>{wide}}" for name in names))
for place in order:
    cells = (f"{c[place]:{wide}.3f}" if place in c else f"{'–':>{wide}}" for c in columns)
    print(f"{place:<{width}}", *cells)
PYTHON
}

has python3 || refuse "needs python3 to read results"
if [ "$1" = --show ]; then
    show "${2:-reference}"
    exit
fi
host=$1 preset=reference
shift
case ${1-} in
'' | -*) ;;
*)
    preset=$1
    shift
    ;;
esac

# All commands share a connection, which ends with the script, so that ssh asks for a password once.
make_scratch
read -r -a ssh <<< "${FEC_SSH:-ssh}"
has "${ssh[0]}" || refuse "needs ${ssh[0]} (on Debian: apt-get install openssh-client)"
ssh+=(-o ConnectTimeout=10 -o ControlMaster=auto -o ControlPath="$scratch/%C" -o ControlPersist=60)

# there COMMAND: runs it on the host; the exit code is its own, or 255 when the host was not reached.
there() { "${ssh[@]}" "$host" "$1"; }

remote=''
finish() {
    [ -z "$remote" ] || there "rm -rf $(printf '%q' "$remote")" < /dev/null || true
    "${ssh[@]}" -O exit "$host" 2> /dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT

folder=$(printf '%q' "${FEC_BOARD_DIR-}")
code=0
# The host tells its system, the folder to work in and the room there: three lines, in whatever shell the host has.
told=$(there "dir=$folder; dir=\${dir:-\${TMPDIR:-/tmp}}; uname -sm; echo \"\$dir\"; df -Pk \"\$dir\" | tail -n 1" < /dev/null) || code=$?
[ "$code" != 255 ] || refuse "ssh does not reach $host: it says why above; try \`ssh $host true\`"
[ "$code" = 0 ] || refuse "$host does not tell what it is: \`uname -sm\` or \`df\` ended with $code"
mapfile -t told <<< "$told"
read -r system machine <<< "${told[0]}"
work=${told[1]}
read -r _ _ _ free _ <<< "${told[2]}"

[ "$system" = Linux ] || refuse "$host runs $system; static binaries are for Linux"
case $machine in
x86_64 | amd64) target=x86_64 ;;
aarch64 | arm64) target=aarch64 ;;
armv7* | armv8*) target=armv7 ;;
riscv64) target=riscv64 ;;
*) target='' ;;
esac
[ -n "$target${FEC_BINARY-}" ] ||
    refuse "$host is $machine, for which there is no build: set FEC_BINARY to a binary that runs there"

binary=${FEC_BINARY-}
if [ -z "$binary" ]; then
    echo "board: $host is $machine; building for it, which takes minutes the first time" >&2
    binary=$("$root/scripts/release/build-static.sh" "$target")
fi
[ -r "$binary" ] || refuse "$binary is not there"

# The binary, and the files of presets that write any; in KiB.
need=$(($(stat -Lc %s "$binary") / 1024 + 20480))
[ "$preset" != files ] || need=$((need + 524288))
if ! [[ $free =~ ^[0-9]+$ ]] || [ "$free" -lt "$need" ]; then
    refuse "$host has ${free:-unknown} KiB free in $work, and $need are needed: FEC_BOARD_DIR names another folder"
fi

# A name of its own, removed whatever happens.
remote=$(there "mktemp -d $(printf '%q' "$work")/fec-board.XXXXXX" < /dev/null) ||
    refuse "$host cannot make a folder in $work: FEC_BOARD_DIR names another one"
at=$(printf '%q' "$remote")
there "cat > $at/fec && chmod +x $at/fec" < "$binary" || refuse "the binary could not be copied to $host:$remote"
version=$(there "$at/fec --version" < /dev/null) ||
    refuse "$binary does not run on $host ($machine): is it for another machine, or does $work allow no programs? FEC_BOARD_DIR names another folder"

mkdir -p "$boards"
result=$boards/${host//[^A-Za-z0-9._-]/_}-$preset.json
echo "board: measuring $host ($machine) with $version: $preset $*" >&2
code=0
# The words of the options are quoted for the shell at the other end.
there "cd $at && ./fec bench $(printf '%q ' "$preset" --format json --progress never "$@")" \
    > "$scratch/result" < /dev/null || code=$?
case $code in
0) ;;
255) fail "the connection to $host was lost" ;;
*) fail "fec bench ended with $code on $host" ;;
esac
mv "$scratch/result" "$result"
echo "board: $result"
show "$preset"
