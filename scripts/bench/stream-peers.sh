#!/usr/bin/env bash
# fec's packet code against its classic form and Reed-Solomon blocks, alternating in one process on one core;
# prints Markdown tables. `memory` is what packets cost that come from beyond the caches. siamese takes part where DIR
# is a checkout of github.com/catid/siamese: the C++ compiler that is there compiles it. KERNEL is one of fec's, in
# place of the fastest.
#
#   scripts/bench/stream-peers.sh [--siamese DIR] [ROUNDS [all|encode|decode|memory|siamese [KERNEL]]]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
FEC_SIAMESE=
if [ "${1-}" = --siamese ]; then
    [ $# -ge 2 ] || usage
    FEC_SIAMESE=$(realpath -e -- "$2") && [ -f "$FEC_SIAMESE/siamese.cpp" ] || refuse "$2 is no checkout of siamese"
    shift 2
fi
case ${2-} in
    '' | all | encode | decode | memory) ;;
    siamese) [ -n "$FEC_SIAMESE" ] || refuse "siamese takes part with --siamese DIR" ;;
    *) usage ;;
esac
export FEC_SIAMESE
cd "$root"

cargo build --release --manifest-path bench/stream/Cargo.toml
show_provenance
if [ -n "$FEC_SIAMESE" ]; then
    echo "siamese $(git -C "$FEC_SIAMESE" rev-parse --short HEAD 2> /dev/null || echo unknown), -O3 -march=native, $(${CXX:-c++} --version | head -n 1)"
fi
on_one_core "${CARGO_TARGET_DIR:-bench/stream/target}/release/stream-peers" "${@:-7}"
