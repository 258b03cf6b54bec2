#!/usr/bin/env bash
# fec against its peers, alternating in one process on one core; prints Markdown tables: the block code against other
# codecs (bench/peers), the code of areas against sets and a peer (its `areas`), and the whole way of a set against
# plain hashing and commonware-coding (bench/pipeline).
#
#   scripts/bench/peers.sh [ROUNDS]
#
# On Debian, as root, it installs what ISA-L is built with: nasm, autotools, libclang. klauspost/reedsolomon takes part
# where Go is installed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
cd "$root"

missing=""
for tool in nasm autoconf automake libtoolize make; do
    has "$tool" || missing="$missing $tool"
done
ls /usr/lib/llvm*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1 || missing="$missing libclang"
if [ -n "$missing" ]; then
    may_install || refuse "missing:$missing (on Debian: run as root)"
    install_packages nasm autoconf automake libtool libclang-dev make
fi

target=${CARGO_TARGET_DIR:-}
cargo build --release --manifest-path bench/peers/Cargo.toml
peers=${target:-bench/peers/target}/release/peers
cargo build --release --manifest-path bench/pipeline/Cargo.toml
pipeline=${target:-bench/pipeline/target}/release/pipeline
if has go; then
    FEC_PEERS_KLAUSPOST=$PWD/bench/peers/target/klauspost
    mkdir -p bench/peers/target
    (cd bench/peers/klauspost && go build -o "$FEC_PEERS_KLAUSPOST" .)
    export FEC_PEERS_KLAUSPOST
else
    echo "peers: no Go: without klauspost/reedsolomon" >&2
fi

show_provenance
echo "load $(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || echo unknown)"
on_one_core "$peers" "${1:-31}"
on_one_core "${peers%peers}areas" "${1:-31}"
on_one_core "$pipeline" "${1:-31}"
# This compares one core with two.
"$pipeline" "${1:-31}" threads
cargo build --release --manifest-path bench/pipeline/Cargo.toml --features mimalloc
printf '\nBoth sides with mimalloc, as the benchmarks of commonware-coding have it:\n'
on_one_core "$pipeline" "${1:-31}" commonware
