#!/bin/bash
# Writes the manual pages and completions of fec, as the command itself prints them.
#
#   scripts/release/pages.sh FEC FOLDER
#
# FOLDER gets man1/ with a page for each command, fec.bash, _fec (for zsh) and fec.fish. FEC is a path.
set -euo pipefail
[ $# = 2 ] || { echo "usage: scripts/release/pages.sh FEC FOLDER" >&2; exit 2; }
fec=$1 folder=$2

mkdir -p "$folder/man1"
next=(fec)
# The command says itself which pages there are: each page names those below it.
while [ ${#next[@]} -gt 0 ]; do
    found=()
    for page in "${next[@]}"; do
        # fec man prints the page of fec itself, fec man bench-link that of fec bench link.
        read -r -a name <<< "${page#fec}"
        "$fec" man "${name[@]#-}" > "$folder/man1/$page.1"
        mapfile -t -O "${#found[@]}" found < <(sed -n 's/\\-/-/g; s/^\(fec-[a-z-]*\)(1)$/\1/p' "$folder/man1/$page.1" | grep -v -- '-help$')
    done
    next=("${found[@]}")
done
"$fec" completions bash > "$folder/fec.bash"
"$fec" completions zsh > "$folder/_fec"
"$fec" completions fish > "$folder/fec.fish"
