#!/bin/bash
# fec and the age of others, both ways, and the published vectors of age's format.
#
#   scripts/checks/test-age.sh FEC [ROUNDS]
#
# With Go, which loads both from its module proxy, Go's age has the post-quantum keys too; without it Debian's age
# serves, which may be older. A message names each part that cannot be had; that is no failure of fec.
set -euo pipefail

# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# = 1 ] || [ $# = 2 ] || usage
fec=$(find_fec "$1") rounds=${2-20}
cd "$root"
export PYTHONDONTWRITEBYTECODE=1
make_scratch

AGE=filippo.io/age/cmd/...@v1.3.2
VECTORS=c2sp.org/CCTV/age@v0.0.0-20251208015420-e9274a7bdbfd

PATH=$PATH:/usr/local/go/bin
if has go && GOBIN=$scratch go install "$AGE" 2> "$scratch/why"; then
    age=$scratch/age keygen=$scratch/age-keygen
else
    echo "Go's age: NOT TESTED: $(tail -n 1 "$scratch/why" 2> /dev/null || echo "no Go here")"
    if ! has age && may_install; then install_packages age || true; fi
    age=age keygen=age-keygen
fi
code=0
python3 scripts/checks/interop_age.py --fec "$fec" --age "$age" --age-keygen "$keygen" --rounds "$rounds" || code=$?
[ "$code" = 0 ] || [ "$code" = 2 ] || exit "$code"

folder=
if has go; then
    folder=$(go mod download -json "$VECTORS" 2> /dev/null | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p') || true
fi
if [ -n "$folder" ]; then
    tests=$(compiled_test fec_keys --lib)
    FEC_AGE_VECTORS=$folder/testdata "$tests" age::
else
    echo "the vectors of age: NOT TESTED: Go, which would load them, is not here"
fi
