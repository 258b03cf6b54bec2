#!/bin/bash
# The library for C as a stranger gets it: installed in a folder of its own, found by pkg-config, called from C with the
# shared and the static library, from Go by cgo, and from Node by koffi. Go and Node come to one root.
#
#   scripts/checks/test-c.sh
#
# Without Go, Node or the package koffi their part is left out, and named. CARGO_TARGET_DIR and FEC_PROFILE as for
# scripts/release/c-library.sh.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; ?*) usage ;; esac
need pkg-config pkg-config
make_scratch
"$root/scripts/release/c-library.sh" "$scratch/usr"
export PKG_CONFIG_PATH=$scratch/usr/lib/pkgconfig LD_LIBRARY_PATH=$scratch/usr/lib
example=$root/crates/fec-c/examples
cd "$scratch"
read -r -a shared <<< "$(pkg-config --cflags --libs fec)"
read -r -a static <<< "$(pkg-config --static --cflags --libs fec | sed 's/-lfec/-l:libfec.a/')"

cc -Wall -Wextra -Werror "$example/protect.c" "${shared[@]}" -o protect
./protect > said
cat said
readelf -d protect | grep -q 'NEEDED.*libfec\.so\.[0-9]' || fail "the program does not name the version of the interface"
cc -Wall -Wextra -Werror "$example/protect.c" "${static[@]}" -o protect-static
env -u LD_LIBRARY_PATH ./protect-static | cmp - said

# same LANGUAGE COMMAND…: restores from ten shards, and not from nine; what it says is kept.
same() {
    "${@:2}" > "$1"
    cat "$1"
    grep -qx 'restored from 10 of 14: true' "$1" || fail "$1 did not restore"
    grep -q '^from 9: fec: status 3: ' "$1" || fail "$1 did not tell what is lost"
}

left_out=()
if has go; then
    cp -r "$example/go" go-example
    (cd go-example && go vet . && go build -o ../by-go .)
    same Go ./by-go
else
    left_out+=(Go)
fi
if has node && has npm && npm install --silent --no-audit --no-fund --prefix "$scratch/node" koffi@2 > npm.log 2>&1; then
    cp "$example/node/shards.js" node/
    same Node node node/shards.js
else
    left_out+=(Node)
fi
if [ -e Go ] && [ -e Node ]; then
    diff <(head -n 1 Go) <(head -n 1 Node) || fail "Go and Node have other roots"
fi
for name in "${left_out[@]}"; do echo "left out: $name"; done
