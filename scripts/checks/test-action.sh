#!/bin/bash
# The scripts of action/ against folders of this machine, which stand for a runner's artifacts: nothing is sent
# anywhere.
#
#   scripts/checks/test-action.sh FEC
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# = 1 ] || usage
FEC=$(find_fec "$1")
export FEC
make_scratch
cd "$scratch"
# A runner gives these variables to each step.
export RUNNER_TEMP=$scratch/temp GITHUB_OUTPUT=$scratch/output GITHUB_STEP_SUMMARY=$scratch/summary.md
mkdir temp dist 'dist/a folder'
seq 1 300000 > dist/program
printf 'hello\n' > 'dist/a folder/notes on it.txt'
export PATHS=$'dist\n' NAME=build-1.2 K=10 M=4 DOMAINS=7

output_of() { sed -n "s/^$1=//p" "$GITHUB_OUTPUT" | tail -n 1; }
# restore CODE: from what is in the folders `kept`, into `back`.
restore() {
    local code=0
    rm -rf back
    OUTPUT=$scratch/back "$root/action/restore.sh" --clean
    mkdir -p "temp/fec/$NAME"
    cp -r kept/. "temp/fec/$NAME/"
    OUTPUT=$scratch/back ROOT=$1 "$root/action/restore.sh" > said 2>&1 || code=$?
    [ "$code" = "$2" ] || { cat said >&2; fail "restore ends with $code, not $2: $3"; }
}

"$root/action/protect.sh"
artifact_root=$(output_of root)
[[ $artifact_root =~ ^[0-9a-f]{64}$ ]] || fail "no root is an output"
grep -q "$artifact_root" summary.md || fail "the summary does not name the root"
[ "$(find "temp/fec/$NAME" -name '*.shard' | wc -l)" = 14 ] || fail "there are not 14 shard files"
# The same files give the same root, whenever they were made.
touch dist/program
"$root/action/protect.sh"
[ "$(output_of root)" = "$artifact_root" ] || fail "another time gives another root"
mv "temp/fec/$NAME" all

for lost in '' 0 '0 3'; do
    rm -rf kept
    cp -r all kept
    for domain in $lost; do rm -r "kept/$domain"; done
    : > summary.md
    restore "$artifact_root" 0 "domains ${lost:-none} lost"
    diff -r dist back/dist || fail "something else is restored"
    grep -q '^|' summary.md || fail "the summary has no table"
done
rm -rf kept && cp -r all kept && rm -r kept/{0,1,2}
restore "$artifact_root" 1 'three domains of two shards are lost, where 4 shards may be'
[ ! -e back/dist ] || fail "something is restored although too much is lost"
# A shard that rotted, and one that somebody put in its place.
rm -rf kept && cp -r all kept
printf rot | dd of="$(find kept/2 -name '*.shard' | head -n 1)" bs=1 seek=9000 conv=notrunc status=none
restore "$artifact_root" 0 'a shard rotted'
[ "$(output_of is-intact)" = false ] || fail "a damaged shard is said to be intact"
rm -rf other && mkdir other && printf 'evil\n' > other/program
(PATHS=$scratch/other NAME=evil "$root/action/protect.sh") && rm -rf kept && cp -r temp/fec/evil kept
restore "$artifact_root" 1 'another artifact under its name'
[ ! -e back/dist ] && [ ! -e back/other ] || fail "something that the root does not name is restored"
# Wrong use.
for lie in 'NAME=../x' 'NAME=a b' 'K=ten' 'DOMAINS=0' 'DOMAINS=3' 'PATHS=nothing-there' 'PATHS='; do
    ! (export "${lie?}" && "$root/action/protect.sh") > /dev/null 2> said || fail "protect takes $lie"
    grep -q '^::error::protect: ' said || fail "protect does not say what is wrong with $lie"
done
restore 'not a root' 1 'no root'
echo "test-action: protected, restored without any two domains, refused what the root does not name"
