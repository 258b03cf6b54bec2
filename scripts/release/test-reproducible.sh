#!/bin/bash
# Makes packages twice, in clones in two folders, each with a target folder of its own, and compares every byte.
#
#   scripts/release/test-reproducible.sh [PACKAGE…]
#
# PACKAGE is as scripts/release/package.sh has it: x86_64, deb, wheel, crates-unbuilt and source if none is named. The
# last commit is what is built. It takes minutes for each package, twice.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# -gt 0 ] || set -- x86_64 deb wheel crates-unbuilt source
make_scratch
need_space "$scratch" 12000
unset CARGO_TARGET_DIR SOURCE_DATE_EPOCH

for folder in one another/and-deeper; do
    # Another umask too: nothing of the environment shows.
    if [ $folder = one ]; then umask 022; else umask 077; fi
    git clone -q "$root" "$scratch/$folder/fec"
    (cd "$scratch/$folder/fec" && scripts/release/package.sh --to "$scratch/$folder/packages" "$@" > /dev/null)
    rm -rf "$scratch/$folder/fec/target"
done
cd "$scratch"
diff one/packages/SHA256SUMS another/and-deeper/packages/SHA256SUMS > differences || {
    cut -c 69- differences | grep . | sort -u >&2
    fail "the packages above have other bytes in another folder"
}
echo "test-reproducible: $(wc -l < one/packages/SHA256SUMS) packages, the same bytes from two folders"
