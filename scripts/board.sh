#!/usr/bin/env bash
# Measures another machine: copies the static binary over SSH, runs a preset of `fec bench` there, brings the result
# back, and prints it beside those of other boards.
#
#   scripts/board.sh HOST [PRESET [OPTIONS…]]     e.g. scripts/board.sh pi@board kernels --quick
#   scripts/board.sh --show [PRESET]              only prints what is there
#
#   FEC_BINARY    the binary for that machine; without it one is built for its architecture, linked statically
#                 (needs Rust's target; for aarch64 see scripts/test-arm.sh)
#   FEC_BOARDS    where results are kept: boards if unset, one file HOST-PRESET.json for each
#   FEC_SSH, FEC_SCP   the programs to use: ssh and scp if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
case ${1-} in -h | --help | '') show_help ;; esac
boards=${FEC_BOARDS:-boards}
ssh=${FEC_SSH:-ssh}
scp=${FEC_SCP:-scp}

# show PRESET: the figures of all boards side by side, one column each.
show() {
    python3 - "$1" "$boards"/*-"$1".json << 'PYTHON'
import json, os, sys

preset, files = sys.argv[1], [f for f in sys.argv[2:] if os.path.exists(f)]
if not files:
    sys.exit(f"board: no result of {preset} yet")
names, columns, order = [], [], []
for path in files:
    with open(path) as file:
        report = json.load(file)
    names.append(os.path.basename(path)[: -len(f"-{preset}.json")])
    figures = {}
    for table in report["tables"]:
        keys = [c["name"] for c in table["columns"] if c["key"]]
        for row in table["rows"]:
            for name, cell in row.items():
                if isinstance(cell, dict):
                    place = " ".join([table["name"], *(str(row[k]) for k in keys), name])
                    figures[place] = cell["median"]
                    if place not in order:
                        order.append(place)
    columns.append(figures)
    emulated = report["machine"]["emulated"]
    print(f"{names[-1]}: {report['machine']['cpu']}, {report['backend']}, {report['machine']['date']}"
          + (f", EMULATED by {emulated}: its speeds mean nothing" if emulated else ""))
width = max([len(place) for place in order], default=0)
print(" " * width, *(f"{name:>14}" for name in names))
for place in order:
    cells = (f"{c[place]:14.3f}" if place in c else f"{'–':>14}" for c in columns)
    print(f"{place:<{width}}", *cells)
PYTHON
}

if [ "$1" = --show ]; then
    show "${2:-reference}"
    exit
fi
host=$1
preset=${2:-reference}
shift
[ $# = 0 ] || shift

machine=$($ssh "$host" uname -m)
case $machine in
    x86_64) target=x86_64-unknown-linux-gnu ;;
    aarch64 | arm64) target=aarch64-unknown-linux-gnu ;;
    *) refuse "$host is $machine: set FEC_BINARY" ;;
esac
binary=${FEC_BINARY-}
if [ -z "$binary" ]; then
    if [ "$target" = aarch64-unknown-linux-gnu ]; then
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER:-aarch64-linux-gnu-gcc}
    fi
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/static"
    (cd "$root" && RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --quiet -p fec-cli --no-default-features --target "$target")
    binary=$CARGO_TARGET_DIR/$target/release/fec
fi
mkdir -p "$boards"
# A name of its own on the board, removed whatever happens.
remote=$($ssh "$host" mktemp -d)
# shellcheck disable=SC2029
trap '$ssh "$host" rm -rf "$remote" < /dev/null' EXIT
$scp -q "$binary" "$host:$remote/fec"
result=$boards/${host//[^A-Za-z0-9._-]/_}-$preset.json
# The words of the options are quoted for the shell at the other end.
# shellcheck disable=SC2029
$ssh "$host" "cd $remote && ./fec bench $preset --format json --progress never $(printf '%q ' "$@")" > "$result.new" < /dev/null
mv "$result.new" "$result"
echo "board: $result"
show "$preset"
