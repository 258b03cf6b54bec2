#!/bin/bash
# The life of a protected folder on real file systems: protect, rot, repair, lost files, moves, links, long names,
# permissions, another mount, a full disk, and a read-only one.
#
#   filesystems.sh [--install] FEC [NAME…]
#
# NAME: ext4, tmpfs, casefold, decomposed, vfat, exfat, exfat-fuse, overlay, bind. Without: all of them. Each is mounted
# on a loop device, as root; decomposed is decomposed.py. Those that cannot be had here are left out, and named.
# --install gets the programs that make file systems, as root on Debian. Exit codes: 0 all that was run holds, 1
# something does not, 2 wrong use.
set -euo pipefail

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
install=''
if [ "${1-}" = --install ]; then install=yes; shift; fi
[ $# -ge 1 ] || usage
fec=$(find_fec "$1")
shift
names=("$@")
[ $# -gt 0 ] || names=(ext4 tmpfs casefold decomposed vfat exfat exfat-fuse overlay bind)
[ "$(id -u)" = 0 ] || { echo "left out: all of them: mounting takes root"; exit 0; }
if [ -n "$install" ] && may_install; then
    need mkfs.vfat dosfstools || true
    need mkfs.exfat exfatprogs || true
    need mount.exfat-fuse exfat-fuse || true
    /usr/bin/python3 -c "import fusepy" 2> /dev/null || install_packages python3-fusepy || true
fi

make_scratch
home=$scratch/mount
loops=()
unmount_all() {
    cd /
    local at
    for at in "$home" "$scratch/below" "$scratch/base"; do
        while mountpoint -q "$at" 2> /dev/null; do umount "$at" || { sleep 0.2; umount -l "$at" || break; }; done
    done
    for at in "${loops[@]}"; do losetup -d "$at" 2> /dev/null || true; done
    loops=()
}
trap 'unmount_all; rm -rf "$scratch"' EXIT
mkdir "$home" "$scratch/below" "$scratch/base"

# loop MKFS…: a new loop device with a file system, in $device.
loop() {
    rm -f "$scratch/image"
    truncate -s 48M "$scratch/image"
    device=$(losetup -f --show "$scratch/image") || return
    loops+=("$device")
    "$@" "$device" > /dev/null
}

# The ways to mount each: they set $again, the command that mounts it once more. Those that fail are left out.
again=''
mount_ext4() { loop mkfs.ext4 -q && again="mount $device $home" && $again; }
mount_tmpfs() { again='' && mount -t tmpfs -o size=48m tmpfs "$home"; }
mount_casefold() {
    loop mkfs.ext4 -q -O casefold -E encoding=utf8 && again="mount $device $home" && $again && mkdir "$home/folds" &&
        chattr +F "$home/folds"
}
# With its own folder beneath, so that the size of that is the size of it.
mount_decomposed() {
    mount -t tmpfs -o size=48m tmpfs "$scratch/below" && mkdir "$scratch/below/kept" &&
        again="/usr/bin/python3 $root/scripts/checks/decomposed.py $scratch/below/kept $home" && $again
}
mount_vfat() { loop mkfs.vfat && again="mount -t vfat $device $home" && $again; }
mount_exfat() { loop mkfs.exfat && again="mount -t exfat $device $home" && $again; }
mount_exfat-fuse() { loop mkfs.exfat && again="mount.exfat-fuse $device $home" && $again; }
mount_overlay() {
    mount -t tmpfs -o size=48m tmpfs "$scratch/below" && mkdir "$scratch"/below/{lower,upper,work} &&
        again="mount -t overlay overlay -o lowerdir=$scratch/below/lower,upperdir=$scratch/below/upper,workdir=$scratch/below/work $home" &&
        $again
}
mount_bind() {
    loop mkfs.ext4 -q && mount "$device" "$scratch/base" && mkdir "$scratch/base/in" &&
        again="mount --bind $scratch/base/in $home" && $again
}

# exits CODES COMMAND…: the exit code of fec is one of these; its words are in $said.
said=''
exits() {
    local codes=$1 code=0
    shift
    said=$("$fec" "$@" 2>&1) || code=$?
    [[ $codes =~ (^|,)$code(,|$) ]] || fail "$name: fec $*: exit code $code, not $codes: $said"
}
says() { [[ $said == *"$1"* ]] || fail "$name: \"$1\" is not said: $said"; }
same() { cmp -s "$1" "$2" || fail "$name: $2 is another than $1"; }
no_leftovers() { [ -z "$(find . -name '.fec-*')" ] || fail "$name: temporary files are left: $(find . -name '.fec-*')"; }

# rot FILE: bytes change, and the time does not.
rot() {
    local when
    when=$(stat -c %y "$1")
    printf rotten | dd of="$1" bs=1 seek=9000 conv=notrunc status=none
    touch -d "$when" "$1"
}

plant() {
    mkdir -p d/sub/deep
    local nth
    for nth in 1 2 3 4 5 6 7 8 9; do head -c $((nth * 7000 + 11000)) /dev/urandom > "d/$nth"; done
    head -c 20000 /dev/urandom > d/sub/deep/nested
    : > d/empty
    long=$(printf 'l%.0s' {1..240})
    printf long > "d/$long"
    printf tool > d/sub/tool
    chmod 755 d/sub/tool
    has_links=yes has_names=yes
    ln -s nested d/sub/deep/link 2> /dev/null || has_links=''
    ln d/1 d/zweit 2> /dev/null || has_names=''
    find d -type f -exec touch -d '2024-05-06 07:08:10' {} +
    rm -rf "$scratch/kept"
    cp -rp d "$scratch/kept"
    keeps_modes=''
    [ "$(stat -c %a d/1)" = "$(stat -c %a d/sub/tool)" ] || keeps_modes=yes
}

# Lost entries come back, with its links where the file system has them.
lost_and_rotten() {
    exits 0 protect "$@" -q -r 60% d
    exits 0 verify d.fecp
    says 'all intact'
    rot d/5
    rm -r d/sub "d/$long" d/empty
    [ -z "$has_names" ] || rm d/1
    exits 1 verify d.fecp
    exits 0,1 repair d.fecp
    # With marks it was written to, and is left; on request it is what it was.
    exits 0,1 repair --revert d.fecp
    diff -r --no-dereference "$scratch/kept" d || fail "$name: a repair made something else"
    [ -z "$has_names" ] || [ d/1 -ef d/zweit ] || fail "$name: a second name is another file"
    [ -z "$keeps_modes" ] || [ -x d/sub/tool ] || fail "$name: the right to execute is lost"
    [ "$(stat -c %Y d/sub/tool)" = "$(stat -c %Y "$scratch/kept/sub/tool")" ] || fail "$name: a time is lost"
    exits 0 verify d.fecp
    exits 0 verify --deep d.fecp
    no_leftovers
    rm d.fecp
}

# After another mount, with the caches gone, nothing looks edited, and rot is rot.
mounted_again() {
    exits 0 protect -q -r 60% d
    [ -n "$again" ] || return 0
    cd /
    umount "$home"
    sleep 0.3
    $again
    cd "$home/$below"
    exits 0 verify d.fecp
    says 'all intact'
    rm d/3
    exits 0,1 repair d.fecp
    same "$scratch/kept/3" d/3
}

moved_and_edited() {
    mv d/sub 'd/a new name'
    mv d/4 d/vier
    exits 1 verify d.fecp
    says 'moved'
    exits 0,1 repair d.fecp
    [ ! -e d/sub ] || fail "$name: a renamed folder was made again"
    printf edited >> d/6
    exits 0 protect --update d
    says 'moved'
    exits 0 verify d.fecp
    same "$scratch/kept/4" d/vier
    rm -rf d d.fecp
}

# A full disk: nothing is lost, nothing is left over, and the second run goes on.
full() {
    plant
    exits 0 protect -q -r 60% d
    rm d/9
    mkdir filler
    local size
    for size in 65536 4096 512; do dd if=/dev/zero of="filler/$size" bs=$size status=none 2> /dev/null || true; done
    sync
    exits 4 repair d.fecp
    [ ! -e d/9 ] || fail "$name: a file was made on a full disk"
    no_leftovers
    exits 1 verify d.fecp
    rm -r filler
    exits 0,1 repair d.fecp
    same "$scratch/kept/9" d/9
    exits 0 verify d.fecp
}

read_only() {
    printf edited >> d/7
    exits 0 protect -q --update d
    rm d/8
    cd /
    mount -o remount,ro "$home" 2> /dev/null || mount -o remount,bind,ro "$home" 2> /dev/null ||
        { echo "  left out: a read-only mount of $name"; cd "$home/$below"; return 0; }
    cd "$home/$below"
    exits 1 verify d.fecp
    says 'd/8'
    exits 4 repair d.fecp
    exits 4 protect --update -f d
    exits 0,1 repair d.fecp -o "$scratch/out"
    same "$scratch/kept/8" "$scratch/out/d/8"
    rm -rf "$scratch/out"
}

# On a file system that folds case a file under another case is the same file.
folded() {
    printf 'content of some length' > d/Name
    exits 0 protect -q -f d
    mv d/Name d/nAME
    exits 0,1 verify d.fecp
    exits 0,1 repair d.fecp
    [ "$(cat d/name)" = 'content of some length' ] || fail "$name: a file was lost by its case"
    [ "$(find d -iname name | wc -l)" = 1 ] || fail "$name: a file stands twice"
}

# A file system that takes a name in one code and in two for the same: a sidecar from elsewhere finds its files there,
# and the way back.
spelled() {
    local composed=$'caf\xc3\xa9'
    rm -rf "$scratch/elsewhere" e e.fecp
    mkdir -p "$scratch/elsewhere/e/$composed"
    seq 1 30000 > "$scratch/elsewhere/e/$composed/$composed"
    head -c 400000 /dev/urandom > "$scratch/elsewhere/e/more"
    (cd "$scratch/elsewhere" && exits 0 protect -q -r 60% e)
    cp -rp "$scratch/elsewhere/e" "$scratch/elsewhere/e.fecp" .
    exits 0 verify e.fecp
    says 'all intact'
    rm "e/$composed/$composed"
    exits 1 verify e.fecp
    says '1 missing'
    exits 0 repair e.fecp
    same "$scratch/elsewhere/e/$composed/$composed" "e/$composed/$composed"
    exits 0 protect --update e
    exits 0 verify e.fecp
    says 'all intact'
    [ "$(find e -type f | wc -l)" = 2 ] || fail "$name: a file stands twice"
    cp -rp e e.fecp "$scratch/elsewhere/"
    (cd "$scratch/elsewhere" && exits 0 verify e.fecp) || exit 1
    # Two files are one here: one is restored, and the other does not take its place.
    (cd "$scratch/elsewhere" && mv "e/$composed/$composed" "e/$composed/one" && rm e.fecp &&
        head -c 9000 /dev/urandom > "e/$composed/$composed" && seq 1 2000 > "e/$composed/"$'cafe\xcc\x81' &&
        exits 0 protect -q -r 60% e) || exit 1
    cp -p "$scratch/elsewhere/e.fecp" .
    rm -r "e/$composed"
    exits 4 repair e.fecp
    says 'File exists'
    exits 1 repair e.fecp
    says "left e/"
    no_leftovers
    rm -r e e.fecp
}

left_out=()
for name in "${names[@]}"; do
    [ "$(type -t "mount_$name")" = function ] || usage
    if ! "mount_$name" > "$scratch/why" 2>&1; then
        left_out+=("$name ($(sed -n 1p "$scratch/why"))")
        unmount_all
        continue
    fi
    below=''
    [ "$name" != casefold ] || below=folds
    cd "$home/$below"
    began=$SECONDS
    plant
    lost_and_rotten --portable
    lost_and_rotten
    mounted_again
    moved_and_edited
    full
    if touch "d/x" && [ -e "d/X" ]; then rm d/x && folded; else rm d/x; fi
    if touch $'d/\xc3\xa9' && [ -e $'d/e\xcc\x81' ]; then rm $'d/\xc3\xa9' && spelled; else rm $'d/\xc3\xa9'; fi
    read_only
    echo "$name: holds, $((SECONDS - began)) s${has_links:+, symbolic links}${has_names:+, hard links}${keeps_modes:+, permissions}"
    unmount_all
done
for name in "${left_out[@]}"; do echo "left out: $name"; done
