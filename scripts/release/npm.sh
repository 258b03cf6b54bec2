#!/bin/bash
# The package `fecshards` for Node and browsers: one .tgz, made of crates/fec-web.
#
#   scripts/release/npm.sh OUT [--modules FOLDER]
#
# OUT is the folder that gets fecshards-VERSION.tgz, whose path is printed. --modules takes the modules of
# `scripts/release/page.sh --modules FOLDER`, in place of making them. Needs Node 20 or newer with npm, and without
# --modules rustup, which brings the standard library of wasm32-wasip1.
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
[ -n "$out" ] || usage
has npm || refuse 'needs npm'
make_scratch
mkdir -p "$out"
out=$(realpath -e -- "$out")
if [ -z "$modules" ]; then
    modules=$scratch/modules
    "$root/scripts/release/page.sh" --modules "$modules"
fi
package=$scratch/package
mkdir "$package"
cp "$root"/crates/fec-web/npm/* "$package/"
cp "$root"/crates/fec-web/page/{engine,written}.js "$root"/LICENSE* "$package/"
install -m 644 "$modules/fec-simd.wasm" "$modules/fec.wasm" "$package/"
sed -i "s/^    \"version\": .*/    \"version\": \"$(of_workspace version)\",/" "$package/package.json"
# The same files make the same bytes: npm sets times, and modes are set here.
chmod 644 "$package"/*
cd "$package"
made=$(npm pack --silent --ignore-scripts --offline --pack-destination "$out" | tail -n 1)
echo "$out/$made"
