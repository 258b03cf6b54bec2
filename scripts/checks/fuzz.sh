#!/bin/bash
# Fuzzes the parsers and decoders: builds the targets of the folder fuzz and runs each from its corpus, one after the
# other.
#
#   scripts/checks/fuzz.sh [--seconds N | --runs N] [--seed N] [--keep] [--fast] [TARGET…]
#   scripts/checks/fuzz.sh --list | --minimise [TARGET…] | --reproduce TARGET FILE
#
# Without TARGET: all of them, 20 seconds each. --seconds 0 runs until something is found. --runs ends a target after so
# many executions instead, which with one --seed are always the same ones. The table at the end has a line for each
# target: executions, executions a second, what was covered (counters of branches), inputs in the corpus by then, and
# milliseconds of the slowest input.
#
# --fast leaves out the address sanitizer and looking into comparisons, and is ten times as fast: for many executions,
# beside fewer with both. Overflows and assertions are findings with it too.
#
# Inputs that earlier runs found worth keeping stand in fuzz/corpus/TARGET.tar.gz. New ones are thrown away; with --keep
# they go to fuzz/kept/TARGET, and --minimise packs the fewest small inputs of both that cover as much. An input that
# fails stays in fuzz/artifacts/TARGET, and --reproduce runs it again. It is mended with a test in the crate that fails
# on it, and need not be kept here.
#
# Needs no cargo-fuzz and no nightly compiler: RUSTC_BOOTSTRAP switches on what is needed, the address sanitizer and
# counters. Exit codes: 1 something was found, 2 the compiler cannot do it here.
#   FEC_FUZZ_JOBS   how many targets run at the same time; 1 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

mode=run seconds=20 runs=-1 seed=1 keep='' fast='' targets=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --seconds | --runs | --seed)
        [[ ${2-} =~ ^[0-9]+$ ]] || usage
        case $1 in
        --seconds) seconds=$2 ;;
        --runs) runs=$2 seconds=0 ;;
        --seed) seed=$2 ;;
        esac
        shift
        ;;
    --keep) keep=yes ;;
    --fast) fast=yes ;;
    --list | --minimise | --reproduce) mode=${1#--} ;;
    -*) usage ;;
    *) targets+=("$1") ;;
    esac
    shift
done
fuzz=$root/fuzz
mapfile -t all < <(cd "$fuzz/fuzz_targets" && printf '%s\n' *.rs | sed 's/\.rs$//')
if [ "$mode" = list ]; then printf '%s\n' "${all[@]}"; exit; fi
input=
if [ "$mode" = reproduce ]; then
    [ "${#targets[@]}" = 2 ] || usage
    input=$(realpath -e -- "${targets[1]}") targets=("${targets[0]}")
fi
for target in "${targets[@]}"; do
    [ -e "$fuzz/fuzz_targets/$target.rs" ] || refuse "there is no target $target: ${all[*]}"
done
[ "${#targets[@]}" != 0 ] || targets=("${all[@]}")

triple=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$fuzz/target}
flags='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
flags+=' -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table'
if [ -n "$fast" ]; then
    # Next to the other build, which would be thrown away for other flags.
    CARGO_TARGET_DIR+=/fast
else
    flags+=' -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address'
fi
export RUSTFLAGS="$flags"
make_scratch --suffix=.fec-fuzz

# An empty program tells whether this compiler and this linker have the sanitizer.
echo 'fn main() {}' > "$scratch/empty.rs"
# shellcheck disable=SC2086
if [ -z "$fast" ] && ! { rustc $flags --target "$triple" -o "$scratch/empty" "$scratch/empty.rs" 2> "$scratch/why" && "$scratch/empty" 2> "$scratch/why"; }; then
    cat "$scratch/why" >&2
    refuse "$(rustc --version) has no sanitizer for $triple, or it does not run here"
fi
bins=()
for target in "${targets[@]}"; do bins+=(--bin "$target"); done
cargo build --release --locked --quiet --manifest-path "$fuzz/Cargo.toml" --target "$triple" "${bins[@]}"
programs=$CARGO_TARGET_DIR/$triple/release

# The options of libFuzzer that all runs have. A leak is no finding: sanitizers see those only where they may trace
# processes.
options=(-timeout=10 -rss_limit_mb=2048 -detect_leaks=0 -max_len=8192)
# To weigh inputs by what is rare in them takes a good part of the time of short ones.
[ -z "$fast" ] || options+=(-entropic=0)
# A kilobyte of actions says enough: a longer input takes longer, and shows nothing more.
options_of() { case $1 in window) echo -max_len=1024 ;; archive | frames) echo -max_len=4096 ;; esac; }

# seeds TARGET: copies what the tests have of its format, so that it does not stand in the repository twice.
seeds() {
    local golden=$root/tests/golden to=$scratch/$1/seeds pattern=()
    mkdir -p "$to"
    case $1 in
    shard_file) pattern=(-path '*/shards-*' -name '*.shard') ;;
    scan) pattern=(-path '*/files/*' -name '*.fec') ;;
    archive)
        # Shard files follow one another in one input.
        local folder
        for folder in "$golden"/files/shards-*-b1 "$golden"/files/shards-*-b129; do
            cat "$folder"/*.shard > "$to/$(basename "$folder")"
        done
        pattern=(-path '*/files/*' -name '*.fec')
        ;;
    sidecar_piece) pattern=(-name '*.fecp') ;;
    frames) pattern=(-path '*/stream/*') ;;
    *) return 0 ;;
    esac
    # The smallest ones: a fuzzer changes small inputs faster, and large ones show nothing more.
    find "$golden" -type f -size -9k "${pattern[@]}" -printf '%s %p\n' | sort -n | head -n 60 | while read -r _ file; do
        cp -- "$file" "$to/$(sha1sum < "$file" | cut -c 1-16)"
    done
}

# unpack TARGET: the inputs that the repository has.
unpack() {
    mkdir -p "$scratch/$1/corpus"
    [ ! -e "$fuzz/corpus/$1.tar.gz" ] || tar -xzf "$fuzz/corpus/$1.tar.gz" -C "$scratch/$1/corpus"
}

# fuzz_one TARGET: runs it; what it says goes to a file, and its line of the table to another.
fuzz_one() {
    local target=$1 code=0
    local log=$scratch/$target/log kept=$fuzz/kept/$target artifacts=$fuzz/artifacts/$target
    [ -n "$keep" ] || kept=$scratch/$target/new
    mkdir -p "$artifacts" "$kept"
    seeds "$target"
    unpack "$target"
    local folders=("$kept" "$scratch/$target/corpus" "$scratch/$target/seeds")
    # shellcheck disable=SC2046
    "$programs/$target" "${options[@]}" $(options_of "$target") -max_total_time="$seconds" -runs="$runs" -seed="$seed" -print_final_stats=1 \
        -artifact_prefix="$artifacts/" "${folders[@]}" > "$log" 2>&1 < /dev/null || code=$?
    # The last line with figures: "#1234 DONE cov: 56 ft: 78 corp: 9/10b …", and the final statistics.
    awk -v target="$target" -v code="$code" '
        /^#[0-9]+.* cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corp = $(i + 1) } }
        /^stat::number_of_executed_units:/ { runs = $2 }
        /^stat::average_exec_per_sec:/ { rate = $2 }
        /^stat::slowest_unit_time_sec:/ { slowest = $2 }
        END {
            sub(/\/.*/, "", corp)
            printf "%-16s %12d %9d %9d %8d %8s  %s\n", target, runs, rate, cov, corp, slowest " s", code ? "FOUND" : "nothing"
        }' "$log" > "$scratch/$target/line"
    cat "$scratch/$target/line"
    if [ "$code" != 0 ]; then
        grep -v '^#[0-9]' "$log" | tail -n 60 >&2
        touch "$scratch/found"
    fi
}

# minimise TARGET: packs the inputs that add to the seeds, smallest inputs first.
minimise() {
    local target=$1 corpus=$scratch/$1/corpus kept=$fuzz/kept/$1 merged=$scratch/$1/merged
    seeds "$target"
    unpack "$target"
    mkdir -p "$kept" "$fuzz/corpus"
    cp -r "$scratch/$target/seeds" "$merged"
    # shellcheck disable=SC2046
    "$programs/$target" "${options[@]}" $(options_of "$target") -merge=1 "$merged" "$corpus" "$kept" > "$scratch/$target/log" 2>&1 || {
        tail -n 20 "$scratch/$target/log" >&2
        fail "inputs of $target could not be merged"
    }
    find "$scratch/$target/seeds" -type f -printf '%f\n' | (cd "$merged" && xargs -r rm -f --)
    # Small inputs are kept up to 20 KiB: together they stay small.
    rm -rf "$corpus"
    mkdir "$corpus"
    find "$merged" -type f -printf '%s %p\n' | sort -n | awk '(sum += $1) <= 20480 { print $2 }' | xargs -r cp -t "$corpus" --
    tar -C "$corpus" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c . | gzip -9n > "$fuzz/corpus/$target.tar.gz"
    rm -r "$kept"
    echo "$target: $(find "$corpus" -type f | wc -l) inputs, $(find "$corpus" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }') bytes"
}

case $mode in
reproduce) "$programs/${targets[0]}" "${options[@]}" "$input" ;;
minimise) for target in "${targets[@]}"; do minimise "$target"; done ;;
run)
    show_provenance
    printf '%-16s %12s %9s %9s %8s %8s  %s\n' target executions 'a second' covered corpus slowest found
    for target in "${targets[@]}"; do
        fuzz_one "$target" &
        while [ "$(jobs -rp | wc -l)" -ge "${FEC_FUZZ_JOBS:-1}" ]; do wait -n || true; done
    done
    wait
    [ ! -e "$scratch/found" ] || fail "something was found: see fuzz/artifacts, and --reproduce"
    ;;
esac
