#!/bin/bash
# The tests of fec-core as WebAssembly, in Node: every kernel against the portable one, and the golden vectors, with the
# vectors of 128 bits (simd128) and without.
#
#   scripts/checks/test-wasm.sh [--speed]
#
# With --speed: GB/s of originals on one thread, by the difference of runs with few and many rounds, median of five.
# Needs Node 20 or newer, and rustup, which brings the standard library of wasm32-wasip1. Without these it does nothing.
#
#   CARGO_TARGET_DIR   it builds in the folder wasm in there
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

speed=''
case ${1-} in
-h | --help) show_help ;;
--speed) speed=yes ;;
'') ;;
*) usage ;;
esac
cd "$root"
machine=wasm32-wasip1
leave() { echo "left out: $1"; exit 0; }
is_new() { has node && node -e 'process.exit(Number(parseInt(process.versions.node) < 20))'; }
has_library() { has rustup && rustup target add $machine 2> /dev/null; }
is_new || leave 'WebAssembly needs Node 20 or newer'
has_library || leave "WebAssembly needs rustup and its target $machine"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/wasm
run=(node --no-warnings "$root/scripts/checks/wasi.mjs")
export CARGO_TARGET_WASM32_WASIP1_RUNNER="${run[*]}"

rounds() {
    local start=${EPOCHREALTIME/./}
    "${run[@]}" "$1" "$2" best "$3" "$4" 65536 "$5" > "$CARGO_TARGET_DIR/said"
    echo $((${EPOCHREALTIME/./} - start))
}

measure() {
    local program=$CARGO_TARGET_DIR/$machine/ci/examples/columns.wasm operation k m few many
    cargo build --quiet --profile ci -p fec-core --target $machine --example columns
    for shape in 'encode 33 67' 'decode 33 67' 'encode 10 4' 'decode 10 4'; do
        read -r operation k m <<< "$shape"
        for _ in 1 2 3 4 5; do
            few=$(rounds "$program" "$operation" "$k" "$m" "$1")
            many=$(rounds "$program" "$operation" "$k" "$m" $((5 * $1)))
            echo $((k * 65536 * 4 * $1 / (many - few)))
        done | sort -n | awk -v of="$(cut -d' ' -f1 "$CARGO_TARGET_DIR/said") $shape" 'NR == 3 { printf "%s: %.2f GB/s\n", of, $1 / 1000 }'
    done
}

for features in +simd128 -simd128; do
    # Node 20 may fault where a module asks for more memory: it has all from the start.
    export RUSTFLAGS="-C target-feature=$features -C link-arg=--initial-memory=1073741824"
    if [ -n "$speed" ]; then
        measure "$([ $features = +simd128 ] && echo 60 || echo 6)"
        continue
    fi
    cargo test --profile ci -p fec-core --target $machine --lib --test vectors --test area --test block --test layouts
done
