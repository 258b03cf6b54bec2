#!/usr/bin/env bash
# fec's block code against other codecs, alternating in one process on one core; prints Markdown tables.
#
#   scripts/peers.sh [ROUNDS]
#
# On Debian, as root, it installs what ISA-L is built with: nasm, autotools, libclang.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" != "-h" ] && [ "${1:-}" != "--help" ] || { sed -n '2,7p' "$0"; exit 0; }

missing=""
for tool in nasm autoconf automake libtoolize make; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
ls /usr/lib/llvm*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1 || missing="$missing libclang"
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        echo "peers: missing:$missing (on Debian: run as root)" >&2
        exit 2
    fi
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        nasm autoconf automake libtool libclang-dev make
fi

cargo build --release --manifest-path bench/peers/Cargo.toml
echo "date $(date -u +%F), revision $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(rustc --version)"
grep -m1 'model name' /proc/cpuinfo || true
run=(bench/peers/target/release/peers "${1:-31}")
[ -n "${CARGO_TARGET_DIR:-}" ] && run[0]="$CARGO_TARGET_DIR/release/peers"
# One core, the last: the first often serves interrupts.
if command -v taskset >/dev/null; then
    exec taskset -c "$(($(nproc) - 1))" "${run[@]}"
fi
exec "${run[@]}"
