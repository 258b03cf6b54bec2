#!/bin/bash
# The work of action/protect: codes what was built, and deals its shards out to folders, one for each artifact or cache.
#
# Environment, as action.yml gives it: PATHS (one on each line), NAME, K, M, DOMAINS, and of the runner RUNNER_TEMP,
# GITHUB_OUTPUT and GITHUB_STEP_SUMMARY. FEC is the command. Afterwards the folders $RUNNER_TEMP/fec/NAME/0 to DOMAINS-1
# are there, and `root` is an output.
set -euo pipefail

fail() { echo "::error::protect: $*" >&2; exit 1; }
number() { [[ $2 =~ ^(0|[1-9][0-9]{0,2})$ ]] || fail "$1 is a number, not '$2'"; }
number k "$K"
number m "$M"
number domains "$DOMAINS"
# NAME becomes a part of paths, of artifacts' names and of keys.
[[ $NAME =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$ ]] || fail "the name '$NAME' is not made of letters, digits, '.', '_' and '-'"
((DOMAINS >= 1 && DOMAINS <= 10)) || fail "there may be 1 to 10 domains, not $DOMAINS"
((DOMAINS <= K + M)) || fail "$K + $M shards are too few for $DOMAINS domains"
# A domain must not hold more shards than may be lost.
((M == 0 || DOMAINS == 1 || (K + M + DOMAINS - 1) / DOMAINS <= M)) ||
    fail "$DOMAINS domains for $K + $M shards: one domain would hold more than the $M shards that may be lost"

mapfile -t paths < <(grep -v '^[[:space:]]*$' <<< "$PATHS")
[ ${#paths[@]} -gt 0 ] || fail "no paths are given"
for path in "${paths[@]}"; do [ -e "$path" ] || fail "$path is not there"; done

work=$RUNNER_TEMP/fec/$NAME
rm -rf "$work"
mkdir -p "$work/shards"
# The same tar for the same files, whenever and by whomever they were built.
tar --create --file "$work/$NAME.tar" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --pax-option=delete=atime,delete=ctime -- "${paths[@]}"
root=$("$FEC" encode "$work/$NAME.tar" -q -k "$K" -m "$M" -o "$work/shards/" --root-file "$work/root")
size=$(stat --format %s "$work/$NAME.tar")
rm "$work/$NAME.tar"

# Dealt out in turn, so that every domain has originals and recovery shards.
index=0
for shard in "$work/shards"/*.shard; do
    domain=$((index % DOMAINS))
    mkdir -p "$work/$domain"
    mv "$shard" "$work/$domain/"
    index=$((index + 1))
done
rmdir "$work/shards"

echo "root=$root" >> "$GITHUB_OUTPUT"
{
    echo "### $NAME is protected"
    echo
    echo "| | |"
    echo "|---|---|"
    echo "| root | \`$root\` |"
    echo "| payload | $size bytes |"
    echo "| shards | $K + $M, in $DOMAINS domains: any $K of them restore it |"
} >> "$GITHUB_STEP_SUMMARY"
