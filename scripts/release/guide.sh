#!/bin/bash
# Makes a book of the guide, by mdBook, and prints where it is.
#
#   scripts/release/guide.sh [FOLDER]
#
# FOLDER is target/guide if it is not given. Without mdbook on the path, cargo installs it to target/mdbook first (some
# minutes). With --sources it stops before mdBook: the pages are in FOLDER/src, as the book has them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
only_sources=
if [ "${1-}" = --sources ]; then
    only_sources=yes
    shift
fi
[ $# -le 1 ] || usage
MDBOOK=0.5.4
cd "$root"
build=${CARGO_TARGET_DIR:-target}
out=${1:-$build/guide}
mkdir -p "$out"
out=$(realpath -e -- "$out")
rm -rf "$out/src" "$out/book"
mkdir "$out/src"

# Formats, codes and results are chapters of the book; other files of the project are not in it, so links to them become
# words.
for page in docs/guide/*.md docs/FORMAT.md docs/ALGORITHM.md docs/RESULTS.md; do
    sed -E -e 's,\]\(\.\./((FORMAT|ALGORITHM|RESULTS)\.md|[a-z-]+\.svg),](\1,g' -e 's,\[([^]]*)\]\(\.\./[^)]*\),\1,g' "$page" > "$out/src/${page##*/}"
done
printf '%s\n' '- [Formats](FORMAT.md)' '- [The codes](ALGORITHM.md)' '- [Results](RESULTS.md)' >> "$out/src/SUMMARY.md"
cp docs/*.svg "$out/src/"
cat > "$out/book.toml" << 'TOML'
[book]
title = "fec"
language = "en"

[output.html.fold]
enable = false
TOML
if [ -n "$only_sources" ]; then
    echo "$out/src"
    exit
fi
if ! has mdbook; then
    cargo install --quiet --locked --no-default-features --features search --version "$MDBOOK" --root "$build/mdbook" mdbook
    PATH=$(realpath -e -- "$build/mdbook/bin"):$PATH
fi
mdbook build "$out" --dest-dir "$out/book" >&2
for page in "$out"/src/*.md; do
    name=$(basename "$page" .md)
    case $name in README) name=index ;; SUMMARY) continue ;; esac
    [ -s "$out/book/$name.html" ] || fail "the book has no page $name"
done
echo "$out/book/index.html"
