#!/bin/bash
# Prints what a model of ARM cores (llvm-mca) makes of the hot loops of the NEON kernel, cut from the compiled code.
#
#   scripts/checks/model-arm.sh [--tuned] [CORE…]
#
# With --tuned the code is compiled for the first CORE (-C target-cpu), otherwise for any 64-bit ARM, as what boards
# get.
# CORE: cortex-a53, cortex-a55 and cortex-a76 if none is named. Needs what scripts/release/build-static.sh needs for
# aarch64, and llvm-mca of LLVM 16 or newer (on Debian, as root, it installs llvm-22). No speed follows from the
# figures: the model has no caches.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
tuned=''
if [ "${1-}" = --tuned ]; then tuned=yes && shift; fi
cores=("$@")
[ $# -gt 0 ] || cores=(cortex-a53 cortex-a55 cortex-a76)
cd "$root"

mca=''
find_mca() {
    local name
    for name in llvm-mca-{22,21,20,19,18,17,16} llvm-mca; do
        if has "$name"; then mca=$name; return; fi
    done
}
find_mca
if [ -z "$mca" ] && may_install; then
    install_packages llvm-22
    find_mca
fi
[ -n "$mca" ] || refuse "needs llvm-mca (on Debian: run as root)"

scripts/release/build-static.sh --install aarch64
build_like aarch64
if [ -n "$tuned" ]; then
    export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/tuned
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS+=" -C target-cpu=${cores[0]}"
fi
target=aarch64-unknown-linux-gnu
cargo build --release --quiet -p fec-core --example columns --target "$target"
"$mca" --version | sed -n 's/^ *\(.*LLVM version.*\)$/\1/p'
aarch64-linux-gnu-objdump -d --no-show-raw-insn -C "$CARGO_TARGET_DIR/$target/release/examples/columns" |
    scripts/checks/arm/loops.py "$mca" "${cores[@]}"
