#!/bin/bash
# Runs the core under Miri, which interprets it and sees reads and writes outside of what is borrowed, unaligned ones,
# uninitialised bytes, and races: crates/fec-core/tests/small.rs, with every kernel of this architecture that Miri knows
# the instructions of, and the hashes without kernels of their own.
#
#   scripts/checks/miri.sh [--install]
#
# Behind it those unit tests of the core that Miri gets through. Needs a nightly toolchain with Miri and the sources of
# the library; --install gets them through rustup. Exit code 2 if they are not there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

install=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install) install=yes ;;
    *) usage ;;
    esac
    shift
done
if ! cargo +nightly miri --version > /dev/null 2>&1; then
    [ -n "$install" ] || refuse "needs a nightly toolchain with Miri (--install gets it)"
    rustup toolchain install nightly --profile minimal --component miri --component rust-src ||
        refuse "Miri cannot be had here"
fi
cd "$root"
# Miri gets a target folder of its own, since everything is compiled for Miri.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
# The sizes of the caches are read from the system.
export MIRIFLAGS="${MIRIFLAGS:-} -Zmiri-disable-isolation"
case $(uname -m) in
x86_64) export RUSTFLAGS='-Ctarget-feature=+ssse3,+avx2,+avx512f,+avx512bw,+avx512vl,+gfni' ;;
esac
cargo +nightly miri setup --quiet
cargo +nightly miri test --quiet -p fec-core --test small
# Left out: what asks the system for more than Miri knows (madvise, mprotect), and what takes Miri longer than a minute
# each.
cargo +nightly miri test --quiet -p fec-core --lib -- \
    --skip window::lane_sums --skip window::work --skip window::row::tests::groups --skip window::row::tests::no_stratum \
    --skip window::row::tests::rows_stay --skip window::encoder::owed --skip digest::blocks --skip digest::columns --skip digest::digests --skip digest::sha256 \
    --skip sidecar::area --skip any_bytes_are_read --skip trees_and_paths --skip format::crc::tests::any_length --skip manifests_come_back \
    --skip whole_annexes --skip a_chance_comes_true
