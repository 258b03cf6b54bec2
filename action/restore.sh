#!/bin/bash
# The work of action/restore: proves what came of the artifacts or caches, restores the payload under its root, and
# unpacks it.
#
#   restore.sh --clean    removes what a step before may have left of that name: what is restored has to come from
#                         elsewhere
#   restore.sh
#
# Environment, as action.yml gives it: ROOT, NAME, OUTPUT (a folder), and of the runner RUNNER_TEMP, GITHUB_OUTPUT and
# GITHUB_STEP_SUMMARY. FEC is the command; what came is in the folder $RUNNER_TEMP/fec/NAME, in folders of any names.
# Nothing is unpacked before all of it is proved.
set -euo pipefail

fail() { echo "::error::restore: $*" >&2; exit 1; }
[[ $NAME =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$ ]] || fail "the name '$NAME' is not made of letters, digits, '.', '_' and '-'"
work=$RUNNER_TEMP/fec/$NAME
if [ "${1-}" = --clean ]; then
    rm -rf "$work"
    exit
fi
[[ $ROOT =~ ^[0-9a-f]{64}$ ]] || fail "the root has 64 hexadecimal digits; this one is '$ROOT'"

mkdir -p "$work" "$OUTPUT"
# All shards in one folder; those of one name that came twice are kept apart.
rm -rf "$work.gathered"
mkdir "$work.gathered"
count=0
while IFS= read -r -d '' shard; do
    count=$((count + 1))
    ln -- "$shard" "$work.gathered/$count.shard" 2> /dev/null || cp -- "$shard" "$work.gathered/$count.shard"
done < <(find "$work" -type f -name '*.shard' -print0)

code=0
"$FEC" verify "$work.gathered" --root "$ROOT" --format markdown > "$work.md" || code=$?
{
    echo "### $NAME: what is there of it"
    echo
    cat "$work.md"
} >> "$GITHUB_STEP_SUMMARY"
# 0 and 1: it can be restored.
case $code in
0 | 1) ;;
3) fail "too little is there to restore $NAME: $count shard files came; the summary says which" ;;
*) fail "$NAME is not restored: fec verify ended with $code; the summary says why" ;;
esac
"$FEC" decode "$work.gathered" -q -f -o "$work.tar" --root "$ROOT" > /dev/null
tar --extract --file "$work.tar" --directory "$OUTPUT" --no-same-owner
rm -rf "$work.gathered" "$work.tar" "$work.md"
echo "is-intact=$([ "$code" = 0 ] && echo true || echo false)" >> "$GITHUB_OUTPUT"
