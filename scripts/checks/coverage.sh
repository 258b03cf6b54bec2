#!/bin/bash
# Tells which lines of the library and of the command the tests reach.
#
#   scripts/checks/coverage.sh [--install] [--html DIR] [PACKAGE…]
#
# Builds these packages, or all, with counters, runs their tests, and prints a line for each file: its regions,
# functions and lines, and how many of them no test came to. Takes ten minutes for fec-core, and much longer for all.
# --html puts the sources with their counts into DIR. A test may fail under it (programs with counters need more memory,
# and one that is killed writes none): that is told and changes nothing. Needs the component llvm-tools of the
# toolchain; --install gets it through rustup. Exit code 2 if it is not there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

install='' html='' packages=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install) install=yes ;;
    --html) [ $# -ge 2 ] || usage; html=$2; shift ;;
    -*) usage ;;
    *) packages+=(--package "$1") ;;
    esac
    shift
done
[ ${#packages[@]} -gt 0 ] || packages=(--workspace)
triple=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print sysroot)/lib/rustlib/$triple/bin
if [ ! -x "$tools/llvm-cov" ]; then
    [ -n "$install" ] || refuse "needs llvm-tools (--install gets them)"
    rustup component add llvm-tools
fi
[ -z "$html" ] || html=$(realpath -m -- "$html")
cd "$root"
make_scratch --suffix=.fec-coverage
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/coverage RUSTFLAGS=-Cinstrument-coverage
# Each program adds to one of eight files: the tests start tens of thousands of programs.
export LLVM_PROFILE_FILE=$scratch/%8m.profraw
export FEC_MUTATIONS=${FEC_MUTATIONS:-300}
cargo test --profile ci "${packages[@]}" --no-run --message-format json 2> /dev/null \
    | python3 -c 'import json, sys
for line in sys.stdin:
    print(json.loads(line).get("executable") or "")' | sort -u | sed '/^$/d' > "$scratch/programs"
[ -s "$scratch/programs" ] || fail "the tests cannot be built"
cargo test --profile ci "${packages[@]}" --no-fail-fast > "$scratch/log" 2>&1 || grep -E '^test .* FAILED|^error' "$scratch/log" >&2 || true
"$tools/llvm-profdata" merge --sparse -o "$scratch/counts" "$scratch"/*.profraw
objects=()
while read -r program; do objects+=(--object "$program"); done < "$scratch/programs"
options=(--instr-profile "$scratch/counts" --ignore-filename-regex '/(\.cargo|rustc|tests|examples)/|tests\.rs$')
show_provenance
"$tools/llvm-cov" report "${objects[@]:1}" "${options[@]}" | sed "s|$root/||"
[ -z "$html" ] || "$tools/llvm-cov" show "${objects[@]:1}" "${options[@]}" --format html --output-dir "$html" > /dev/null
