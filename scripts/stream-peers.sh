#!/usr/bin/env bash
# fec's packet code against its classic form and Reed-Solomon blocks, alternating in one process on one core;
# prints Markdown tables.
#
#   scripts/stream-peers.sh [ROUNDS [encode|decode]]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
case ${1-} in -h | --help) show_help ;; esac
cd "$root"

cargo build --release --manifest-path bench/stream/Cargo.toml
show_provenance
on_one_core "${CARGO_TARGET_DIR:-bench/stream/target}/release/stream-peers" "${@:-7}"
