#!/bin/bash
# Puts small faults into the code, one at a time, and tells which of them no test notices: cargo-mutants over the parts
# that decide what is believed.
#
#   scripts/campaigns/mutants.sh [--install] [--list] [--sample N] [--seed SEED] [--folder DIR] [--jobs N] [PART…]
#
# PART is format, merkle, set, params, window (of fec-core), restore, choose (of fecfile), or output (of fec-base).
# Without PART all of them run, which takes most of a day: a fault takes seconds to build in fec-core and up to a minute
# in fecfile, and then the own tests of the crate run.
# --sample takes N faults of each part at random, by SEED (1), or all where there are no more: an estimate in an hour.
# --list tells the faults of each part and how many they are, and runs nothing. --install gets cargo-mutants if it is
# not there. DIR gets a folder for each part, with missed.txt and the logs (mutants.out here if unset); a part that was
# broken off begins anew. Faults that change nothing go to .cargo/mutants.toml, each with its reason. Exit code 1 if a
# fault was missed; a fault that runs into the timeout counts as noticed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

parts=() install='' list='' sample='' seed=1 folder=mutants.out jobs=1
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install) install=yes ;;
    --list) list=yes ;;
    --folder) [ $# -ge 2 ] || usage; folder=$2; shift ;;
    --sample) [ $# -ge 2 ] || usage; sample=$2; shift ;;
    --seed) [ $# -ge 2 ] || usage; seed=$2; shift ;;
    --jobs) [ $# -ge 2 ] || usage; jobs=$2; shift ;;
    format | merkle | set | params | window | restore | output | choose) parts+=("$1") ;;
    *) usage ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(merkle params format set window choose restore output)
if ! cargo mutants --version > /dev/null 2>&1; then
    [ -n "$install" ] || refuse "needs cargo-mutants (--install gets it)"
    cargo install cargo-mutants --locked
fi
mkdir -p "$folder"
folder=$(realpath -e -- "$folder")
cd "$root"

# of_part PART: sets package (the crate of the part), files, without (files that are left out), tests (those that have
# to notice) and patience (the seconds that the tests may take).
of_part() {
    without=()
    package=fec-core patience=20 tests=(--lib --test format --test layouts --test vectors --test set)
    case $1 in
    merkle) files=(merkle.rs) ;;
    params) files=(params.rs 'params/**') ;;
    format) files=('format/**') ;;
    set) files=('set/**') tests+=(--test simple) ;;
    # trace.rs tells models of caches which memory an encoder touches; only the feature trace compiles the file.
    window) files=('window/**') without=(crates/fec-core/src/window/encoder/trace.rs) tests=(--lib --test vectors --test window) ;;
    choose | restore) package=fecfile files=("$1.rs") tests=(--lib) ;;
    output) package=fec-base files=(io/output.rs 'io/output/**') tests=(--lib) ;;
    esac
    case $1 in window | choose | restore | output) patience=120 ;; esac
}

# Fast to build: most of the time goes there.
export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0
export CARGO_INCREMENTAL=1

# sampled SEED N: N of the lines of standard input, the same ones for the same seed, each as a regular expression for
# all of the line.
sampled() {
    python3 -c 'import random, re, sys
lines = sys.stdin.read().splitlines()
for line in random.Random(sys.argv[1]).sample(lines, min(len(lines), int(sys.argv[2]))):
    print(f"^{re.escape(line)}$")' "$@"
}

code=0
for part in "${parts[@]}"; do
    of_part "$part"
    selection=(--package "$package")
    for file in "${files[@]}"; do
        selection+=(--file "crates/$package/src/$file")
    done
    selection+=("${without[@]/#/--exclude=}")
    if [ -n "$sample" ]; then
        mapfile -t faults < <(cargo mutants "${selection[@]}" --list | sampled "$seed" "$sample")
        [ ${#faults[@]} -gt 0 ] || fail "no faults in $part"
        selection+=("${faults[@]/#/--re=}")
    fi
    if [ -n "$list" ]; then
        cargo mutants "${selection[@]}" --list | tee >(wc -l | sed "s/^/$part: /" >&2)
        continue
    fi
    echo "==== $part"
    rm -rf "${folder:?}/$part"
    status=0
    cargo mutants "${selection[@]}" --no-shuffle --jobs "$jobs" --timeout "$patience" --output "$folder/$part" \
        "${tests[@]/#/--cargo-test-arg=}" || status=$?
    # 2: some were missed; 3: some ran into the timeout. Anything else is no answer.
    case $status in
    0 | 3) ;;
    2) code=1 ;;
    *) fail "cargo mutants ended with $status" ;;
    esac
    for outcome in caught missed timeout unviable; do
        printf '%s: %s %s\n' "$part" "$(wc -l < "$folder/$part/mutants.out/$outcome.txt")" "$outcome"
    done
done
exit "$code"
