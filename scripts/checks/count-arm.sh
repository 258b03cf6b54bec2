#!/bin/bash
# Counts the instructions that the hot operations take on 64-bit ARM, exactly, in emulation, and compares them with the
# counts on record: none may grow by more than 2 %. It is a count, not a speed.
#
#   scripts/checks/count-arm.sh [--record]
#
# A count is for 64 bytes of every shard of a set, loads, stores and loops included: the difference of runs with one and
# three rounds, so that set-up is not in it. With --record the counts on record are replaced. They depend on the
# compiler: with another one than the record names, they are printed and not compared.
# Needs what scripts/checks/test-arm.sh needs (it installs that on Debian, as root), and a C compiler.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

record=''
case ${1-} in
-h | --help) show_help ;;
--record) record=yes ;;
'') ;;
*) usage ;;
esac
cd "$root"

scripts/checks/test-arm.sh --install
build_like aarch64
target=aarch64-unknown-linux-gnu
cargo build --release --quiet -p fec-core --example columns --target "$target"
example=$(realpath -e -- "$CARGO_TARGET_DIR/$target/release/examples/columns")
compiler=$("${RUSTC:-rustc}" --version)

make_scratch
cc -O2 -shared -fPIC -o "$scratch/instructions.so" scripts/checks/arm/instructions.c

# instructions ROUNDS OPERATION…: of the whole run.
instructions() {
    local rounds=$1
    shift
    timeout 300 qemu-aarch64 -cpu cortex-a53 -plugin "$scratch/instructions.so" "$example" "$@" "$rounds" \
        2>&1 > "$scratch/what" | sed -n 's/^instructions //p'
}

len=8192
counts=$scratch/counts
{
    echo "# Instructions for 64 bytes of every shard on 64-bit ARM; scripts/checks/count-arm.sh writes and checks this."
    echo "# $compiler"
} > "$counts"
while read -r operation k m; do
    once=$(instructions 1 "$operation" neon "$k" "$m" "$len")
    thrice=$(instructions 3 "$operation" neon "$k" "$m" "$len")
    echo "$operation $k+$m $(((thrice - once) * 64 / (2 * len)))" >> "$counts"
done << 'OPERATIONS'
encode 33 67
encode 86 14
encode 50 50
encode 100 100
encode 10 4
matrix 33 67
decode 33 67
decode 86 14
OPERATIONS

on_record=scripts/checks/arm/instructions.txt
if [ -n "$record" ]; then
    cp "$counts" "$on_record"
    cat "$on_record"
    exit 0
fi
if [ "$(sed -n 2p "$on_record")" != "# $compiler" ]; then
    cat "$counts"
    echo "count-arm: the counts on record are of another compiler ($(sed -n '2s/^# //p' "$on_record")): not compared"
    exit 0
fi
awk 'NR == FNR { if ($0 !~ /^#/) was[$1 " " $2] = $3; next }
    $0 ~ /^#/ { next }
    {
        name = $1 " " $2
        mark = ""
        if (!(name in was)) { mark = "  NOT ON RECORD"; bad = 1 }
        else if ($3 > was[name] * 1.02) { mark = "  GREW"; bad = 1 }
        printf "%-8s %-8s %8d  on record %8d%s\n", $1, $2, $3, was[name], mark
    }
    END { exit bad }' "$on_record" "$counts" || fail "more than 2 % above the record; if that is meant, scripts/checks/count-arm.sh --record"
echo "count-arm: no hot operation takes more than 2 % more instructions than on record"
