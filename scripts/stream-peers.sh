#!/usr/bin/env bash
# fec's packet code against its classic form and Reed-Solomon blocks, alternating in one process on one core;
# prints Markdown tables.
#
#   scripts/stream-peers.sh [ROUNDS [encode|decode]]
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" != "-h" ] && [ "${1:-}" != "--help" ] || { sed -n '2,5p' "$0"; exit 0; }

cargo build --release --manifest-path bench/stream/Cargo.toml
echo "date $(date -u +%F), revision $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(rustc --version)"
grep -m1 'model name' /proc/cpuinfo || true
run=("${CARGO_TARGET_DIR:-bench/stream/target}/release/stream-peers" "${@:-7}")
# One core, the last: the first often serves interrupts.
if command -v taskset >/dev/null; then
    exec taskset -c "$(($(nproc) - 1))" "${run[@]}"
fi
exec "${run[@]}"
