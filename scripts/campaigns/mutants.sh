#!/bin/bash
# Puts small faults into the code, one at a time, and tells which of them no test notices: cargo-mutants over the parts
# that decide what is believed.
#
#   scripts/campaigns/mutants.sh [--install] [--list] [--sample N] [--seed SEED] [--folder DIR] [--jobs N] [PART…]
#
# PART is merkle, params, format, set, window (of fec-core), choose, restore, pipe, range, keep, sets, archive, seal (of
# fecfile), output (of fec-base), sidecar (fec-sidecar), stores (fec-stores without its cloud/, which needs servers) or
# live (fec-live); mutant_parts.py has their files. Without PART all of them run, which takes days: a fault takes
# seconds to build in fec-core and up to a minute in fecfile, and then the own tests of the crate run.
# --sample takes N faults of each part at random, by SEED (1), or all where there are no more: an estimate in an hour.
# --list tells the faults of each part and how many they are, and runs nothing. --install gets cargo-mutants if it is
# not there. DIR gets a folder for each part, with missed.txt and the logs (mutants.out here if unset); a part that was
# broken off begins anew. Faults that change nothing go to .cargo/mutants.toml, each with its reason. Exit code 1 if a
# fault was missed; a fault that runs into the timeout counts as noticed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

table=$root/scripts/campaigns/mutant_parts.py
known=$(python3 "$table")
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
    -*) usage ;;
    *) grep -qx -- "$1" <<< "$known" || usage; parts+=("$1") ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || mapfile -t parts <<< "$known"
if ! cargo mutants --version > /dev/null 2>&1; then
    [ -n "$install" ] || refuse "needs cargo-mutants (--install gets it)"
    cargo install cargo-mutants --locked
fi
mkdir -p "$folder"
folder=$(realpath -e -- "$folder")
cd "$root"

# Fast to build: most of the time goes there.
export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_DEBUG=0
export CARGO_INCREMENTAL=1

code=0 package='' files=() without=() tests=()
for part in "${parts[@]}"; do
    # The crate of the part, its files, those of them that are left out, and the tests that have to notice.
    eval "$(python3 "$table" "$part")"
    selection=(--package "$package" "${files[@]/#/--file=}" "${without[@]/#/--exclude=}")
    if [ -n "$sample" ]; then
        mapfile -t faults < <(cargo mutants "${selection[@]}" --list |
            python3 "$table" --sample "$sample" "$seed")
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
    cargo mutants "${selection[@]}" --no-shuffle --jobs "$jobs" --timeout 120 --output "$folder/$part" \
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
