#!/bin/bash
# The page that restores shards and containers in a browser: one HTML file, made of crates/fec-web.
#
#   scripts/release/page.sh [OUT.html] [--modules FOLDER]
#
# --modules keeps the two modules: fec-simd.wasm with vectors of 128 bits, and fec.wasm for browsers without them.
# Without OUT.html only these are made. Needs Node 20 or newer, and rustup, which brings the standard library of
# wasm32-wasip1.
#
#   CARGO_TARGET_DIR   it builds in the folder page in there
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

out='' modules=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --modules) modules=${2-} && { [ -n "$modules" ] || usage; } && shift ;;
    -*) usage ;;
    *) [ -z "$out" ] || usage && out=$1 ;;
    esac
    shift
done
[ -n "$modules$out" ] || usage
[ -z "$out" ] || has node || refuse 'needs Node'
make_scratch
modules=$(realpath -m -- "${modules:-$scratch}")
out=${out:+$(realpath -m -- "$out")}
cd "$root"
machine=wasm32-wasip1
if has rustup; then rustup target add $machine 2> /dev/null || true; fi
[ -d "$(rustc --print target-libdir --target $machine)" ] || refuse "needs the standard library of $machine"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/page
mkdir -p "$modules"

# build FEATURE FILE [OPTIONS of cargo…]
build() {
    RUSTFLAGS="-C target-feature=$1$(path_maps --remap-path-prefix)" \
        cargo build --quiet --profile page -p fec-web --target $machine --target-dir "$CARGO_TARGET_DIR/$1" "${@:3}"
    cp "$CARGO_TARGET_DIR/$1/$machine/page/fec_web.wasm" "$modules/$2"
}
build +simd128 fec-simd.wasm
# Old browsers are few: their module is small first.
build -simd128 fec.wasm --config 'profile.page.package.fec-core.opt-level="z"'
[ -z "$out" ] || node crates/fec-web/page/build.mjs "$modules/fec-simd.wasm" "$modules/fec.wasm" "$out"
