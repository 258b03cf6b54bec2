#!/bin/bash
# Prints what a model of ARM cores (llvm-mca) makes of the hot loops of the NEON kernel, cut from the compiled code.
#
#   scripts/model-arm.sh [--tuned] [CORE…]
#
# With --tuned the code is compiled for the first CORE (-C target-cpu), otherwise for any 64-bit ARM, as what boards get.
# CORE: cortex-a53, cortex-a55 and cortex-a76 if none is named. Needs what scripts/build-static.sh needs for aarch64, and llvm-mca of
# LLVM 16 or newer (on Debian, as root, it installs llvm-22). No speed follows from the figures: the model has no caches.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
tuned=''
if [ "${1-}" = --tuned ]; then tuned=yes && shift; fi
cores=("$@")
[ $# -gt 0 ] || cores=(cortex-a53 cortex-a55 cortex-a76)
cd "$(dirname "$0")/.."

mca=''
find_mca() {
    local name
    for name in llvm-mca-{22,21,20,19,18,17,16} llvm-mca; do
        if command -v "$name" > /dev/null 2>&1; then mca=$name; return; fi
    done
}
find_mca
if [ -z "$mca" ] && command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends llvm-22 < /dev/null >&2
    find_mca
fi
[ -n "$mca" ] || { echo "model-arm: needs llvm-mca (on Debian: run as root)" >&2; exit 2; }

scripts/build-static.sh --install aarch64
mapfile -t assignments < <(scripts/build-static.sh --env aarch64)
export "${assignments[@]}"
if [ -n "$tuned" ]; then
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/tuned
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS+=" -C target-cpu=${cores[0]}"
fi
target=aarch64-unknown-linux-gnu
cargo build --release --quiet -p fec-core --example columns --target "$target"
"$mca" --version | sed -n 's/^ *\(.*LLVM version.*\)$/\1/p'
aarch64-linux-gnu-objdump -d --no-show-raw-insn -C "$CARGO_TARGET_DIR/$target/release/examples/columns" |
    scripts/arm/loops.py "$mca" "${cores[@]}"
