#!/usr/bin/env bash
# fec against its peers, alternating in one process on one core; prints Markdown tables: the block code against other
# codecs (bench/peers), and the whole way of a set against plain hashing and commonware-coding (bench/pipeline).
#
#   scripts/peers.sh [ROUNDS]
#
# On Debian, as root, it installs what ISA-L is built with: nasm, autotools, libclang. klauspost/reedsolomon takes part
# where Go is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" != "-h" ] && [ "${1:-}" != "--help" ] || { sed -n '2,9p' "$0"; exit 0; }

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

target=${CARGO_TARGET_DIR:-}
cargo build --release --manifest-path bench/peers/Cargo.toml
peers=${target:-bench/peers/target}/release/peers
cargo build --release --manifest-path bench/pipeline/Cargo.toml
pipeline=${target:-bench/pipeline/target}/release/pipeline
if command -v go >/dev/null; then
    FEC_PEERS_KLAUSPOST=$PWD/bench/peers/target/klauspost
    mkdir -p bench/peers/target
    (cd bench/peers/klauspost && go build -o "$FEC_PEERS_KLAUSPOST" .)
    export FEC_PEERS_KLAUSPOST
else
    echo "peers: no Go: without klauspost/reedsolomon" >&2
fi

echo "date $(date -u +%F), revision $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(rustc --version)"
grep -m1 'model name' /proc/cpuinfo || true
echo "load $(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || echo unknown)"
# One core, the last: the first often serves interrupts.
one=()
if command -v taskset >/dev/null; then one=(taskset -c "$(($(nproc) - 1))"); fi
"${one[@]}" "$peers" "${1:-31}"
"${one[@]}" "$pipeline" "${1:-31}"
# This compares one core with two.
"$pipeline" "${1:-31}" threads
cargo build --release --manifest-path bench/pipeline/Cargo.toml --features mimalloc
printf '\nBoth sides with mimalloc, as the benchmarks of commonware-coding have it:\n'
"${one[@]}" "$pipeline" "${1:-31}" commonware
