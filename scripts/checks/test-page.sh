#!/bin/bash
# The page for browsers, in headless Chromium, from a file and from a server: files are chosen, dropped, checked,
# restored and saved as by a visitor; what is damaged, forged, sealed, signed or hostile too.
#
#   scripts/checks/test-page.sh [--full] [--fec BIN] [--page HTML] [--out FOLDER] [--seed N] [--only LETTERS]
#
# --full takes 300 MB in place of 20, and more hostile files. --page tests a page that is built. --out keeps
# screenshots. --only runs some tests, by the letters in test-page.mjs. Speeds and memory are printed.
# Needs Node 20 or newer, Chromium, and rustup, which brings the standard library of wasm32-wasip1. Without these it
# does nothing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

fec='' page='' extra=() words=(--mb 20 --cases 60)
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --full) words=(--mb 300 --cases 240) && shift && continue ;;
    --fec) fec=${2-} ;;
    --page) page=${2-} ;;
    --out | --seed | --only) extra+=("$1" "${2-}") ;;
    *) usage ;;
    esac
    [ $# -gt 1 ] || usage
    shift 2
done
leave() { echo "left out: $1"; exit 0; }
is_new() { has node && node -e 'process.exit(Number(parseInt(process.versions.node) < 20))'; }
has_library() { has rustup && rustup target add wasm32-wasip1 2> /dev/null; }
is_new || leave 'the page needs Node 20 or newer to be tested'
has chromium || leave 'the page needs Chromium to be tested'
[ -n "$page" ] || has_library || leave 'the page needs rustup and its target wasm32-wasip1'
make_scratch
fec=$(find_fec "$fec")
if [ -z "$page" ]; then
    page=$scratch/fec.html
    "$root/scripts/release/page.sh" "$page"
fi
mkdir "$scratch/work"
node "$root/scripts/checks/test-page.mjs" --fec "$fec" --page "$(realpath -e -- "$page")" --work "$scratch/work" \
    "${words[@]}" "${extra[@]}"
