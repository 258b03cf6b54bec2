#!/bin/bash
# The command and the libraries on Windows, under Wine: the tests of what looks at files and keys, and a campaign over
# fec.exe beside the native command.
#
#   scripts/checks/test-windows.sh --fec NATIVE_FEC [ARGUMENT of scripts/campaigns/windows.py]…
#
# Needs what scripts/release/windows.sh needs, and Wine, which it installs on Debian, as root.
#
#   CARGO_TARGET_DIR   where it builds
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
[[ ${1-} == --fec && -x ${2-} ]] || usage
native=$(realpath -e -- "$2")
shift 2
cd "$root"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
scripts/release/windows.sh --profile ci
need wine wine wine64

made=$CARGO_TARGET_DIR/x86_64-pc-windows-gnu/ci
mkdir -p "$made/deps"
x86_64-w64-mingw32-gcc -O1 -shared scripts/checks/wine/bcryptprimitives.c -o "$made/bcryptprimitives.dll" -ladvapi32
cp "$made/bcryptprimitives.dll" "$made/deps/"

make_scratch
export WINEPREFIX=$scratch/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
wineboot -i > /dev/null 2>&1 || refuse 'Wine does not start'
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
tests() { cargo test --locked --profile ci --target x86_64-pc-windows-gnu "$@"; }
tests -p fec-base --lib
tests -p fec-keys --lib
tests -p fecfile --lib --test encodings --test everywhere
scripts/campaigns/windows.py --fec "$made/fec.exe" --wine --reference "$native" "$@"
