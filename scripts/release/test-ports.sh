#!/bin/bash
# Builds fec, static as for boards, for machines whose kernel is the portable one, and runs it on emulated ones: with a
# real file it must write the bytes and print the roots of the native one, and restore the file from what is left after
# losses. For wasm32 fec-core is built, and nothing runs.
#
#   scripts/release/test-ports.sh [--install] [armv7|riscv64|wasm32]…
#
# Without a name: armv7 and wasm32. Needs what scripts/release/build-static.sh needs for them, and qemu-arm or
# qemu-riscv64; on Debian, as root, it first installs what is missing; with --install it does only that.
#
#   CARGO_TARGET_DIR   it builds in the folder static in there, as scripts/release/build-static.sh does
#   FEC_NATIVE         the native binary; without it one is built
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

install='' machines=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install) install=yes ;;
    armv7 | riscv64 | wasm32) machines+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#machines[@]} -gt 0 ] || machines=(armv7 wasm32)
cd "$root"

# emulator MACHINE: the program that runs its binaries.
emulator() { case $1 in armv7) echo qemu-arm ;; riscv64) echo qemu-riscv64 ;; esac; }

scripts/release/build-static.sh --install "${machines[@]}"
for machine in "${machines[@]}"; do
    emulator=$(emulator "$machine")
    [ -z "$emulator" ] || need "$emulator" qemu-user
done
[ -z "$install" ] || exit 0

native=$(find_fec "${FEC_NATIVE-}")
make_scratch

# check EMULATOR BINARY: the payload is the binary itself.
check() (
    # A time limit: emulators may hang.
    port() { timeout 300 "$1" "$2" "${@:3}"; }
    run=("$1" "$2")
    cd "$(mktemp -d -p "$scratch")"
    cp "$2" payload
    for shape in '-k 33 -m 67 --hash blake3' '-k 10 -m 4 --hash sha256'; do
        read -r -a how <<< "-q -j 2 --set-size 256K $shape"
        root=$("$native" encode "${how[@]}" payload -o native/)
        [ "$(port "${run[@]}" encode "${how[@]}" payload -o port/)" = "$root" ] || fail "$1: another root of $shape"
        diff -r native port || fail "$1: other shard files of $shape"
        "$native" encode "${how[@]}" payload -o native.fec > /dev/null
        port "${run[@]}" encode "${how[@]}" - -o - < payload 2> /dev/null | cmp - native.fec || fail "$1: another container of $shape"
        port "${run[@]}" decode -q - -o - < native.fec | cmp - payload
        port "${run[@]}" verify -q --deep --root "$root" port
        rm port/payload.00[0-3].shard
        port "${run[@]}" decode -q --root "$root" port -o back
        cmp payload back
        rm -r native port native.fec back
    done
    # The same with everything random fixed and no timers.
    fixed=(-q --stream --window 600 --rate 1/3 --stream-id 5eed --flush-ms 60000 --impair "random:0.05,reorder:4,seed:7")
    "$native" encode "${fixed[@]}" payload -o native.stream
    port "${run[@]}" encode "${fixed[@]}" payload -o port.stream
    cmp native.stream port.stream || fail "$1: other packets of a stream"
    port "${run[@]}" decode -q --stream port.stream -o back
    cmp payload back
    port "${run[@]}" encode -q --stream --impair random:0.05,seed:7 - < payload | port "${run[@]}" decode -q --stream - | cmp - payload
    echo "test-ports: $1: the bytes, roots and packets of the native fec; $(stat -c %s payload) bytes, the binary itself, restored"
)

for machine in "${machines[@]}"; do
    built=$(scripts/release/build-static.sh "$machine")
    emulator=$(emulator "$machine")
    if [ -n "$emulator" ]; then
        check "$emulator" "$built"
    else
        echo "test-ports: $machine: the library was built"
    fi
done
echo "test-ports: passed for ${machines[*]}; no speed was measured"
