#!/bin/bash
# The actions of action/ against folders of this machine, which stand for a runner's artifacts and caches: the scripts
# alone, and then all of their steps, by scripts/checks/run_action.py. Nothing is sent anywhere.
#
#   scripts/checks/test-action.sh FEC
#
# The steps take PyYAML; without it the exit code is 2.
#
#   PYTHON   the Python that has it; python3 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
[ $# = 1 ] || usage
FEC=$(find_fec "$1")
export FEC
PYTHON=$(realpath -s -- "$(command -v "${PYTHON:-python3}")")
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

# All steps, as a runner takes them.
"$PYTHON" -c 'import yaml' || refuse "needs PyYAML to run the steps of action.yml"
# act NAME CODE INPUTS…: `said` is what it prints, `outputs` what it gives.
act() {
    local name=$1 expected=$2 code=0
    shift 2
    rm -rf temp outputs
    mkdir temp
    "$PYTHON" "$root/scripts/checks/run_action.py" "$root/action/$name" --kept kept --temp temp --output outputs --summary summary.md "$@" > said 2>&1 || code=$?
    [ "$code" = "$expected" ] || { cat said >&2; fail "action/$name ends with $code, not $expected: $*"; }
}
says() { grep -q -- "$1" said || { cat said >&2; fail "it does not say: $1"; }; }
output_of() { sed -n "s/^$1=//p" outputs; }
unset PATHS NAME K M DOMAINS

rm -rf kept back
mkdir kept
for keep in artifact cache; do
    act protect 0 name=dist paths=dist keep=$keep fec="$FEC"
    made=$(output_of root)
    [[ $made =~ ^[0-9a-f]{64}$ ]] || fail "the action gives no root"
    [ "$(find kept/${keep}s -mindepth 1 -maxdepth 2 -name 'dist-*' | wc -l)" = 7 ] || fail "there are not seven ${keep}s"
    find kept/${keep}s -maxdepth 2 -name 'dist-[25]*' -exec rm -r {} +
    act restore 0 name=dist root="$made" output=back keep=$keep fec="$FEC"
    diff -r dist back/dist || fail "something else is restored of ${keep}s"
    [ "$(output_of is-intact)" = false ] || fail "lost ${keep}s are said to be intact"
    find kept/${keep}s -maxdepth 2 -name 'dist-3*' -exec rm -r {} +
    rm -r back
    act restore 1 name=dist root="$made" output=back keep=$keep fec="$FEC"
    says 'too little is there'
    [ ! -e back/dist ] || fail "something is restored although too much is lost"
done
# Those of another run; and none of two artifacts of one name.
act restore 1 --run 2 name=dist root="$made" output=back fec="$FEC"
act protect 0 --run 3 name=dist paths=dist fec="$FEC"
act protect 1 --run 3 name=dist paths=dist fec="$FEC"
says 'is there already'
act restore 0 --run 4 name=dist root="$made" output=back run-id=3 fec="$FEC"
diff -r dist back/dist
[ "$(output_of is-intact)" = true ] || fail "all is there, and it is said to be damaged"

# A package with its digest, and nothing else.
mkdir -p package/fec-0/bin
cp "$FEC" package/fec-0/bin/fec
tar czf fec.tar.gz -C package fec-0
sum=$(sha256sum < fec.tar.gz | cut -d ' ' -f 1)
act protect 0 --run 5 name=dist paths=dist binary-url="file://$scratch/fec.tar.gz" binary-sha256="$sum"
[ "$(output_of root)" = "$made" ] || fail "the package makes something else"
act protect 1 --run 6 name=dist paths=dist binary-url="file://$scratch/fec.tar.gz" binary-sha256="${sum//[0-9]/0}"
says 'has another digest'
[ ! -e temp/fec-bin/bin ] || fail "what has another digest is unpacked"
act protect 1 --run 6 name=dist paths=dist binary-url="file://$scratch/fec.tar.gz"
says 'binary-sha256 is the digest'
act protect 1 --run 6 name=dist paths=dist binary-url="http://127.0.0.1:9/fec.tar.gz" binary-sha256="$sum"
says 'begins with https://'
act protect 1 --run 6 name=dist paths=dist fec="$FEC" binary-sha256="$sum"
says 'say nothing'
tar czf other.tar.gz -C package --transform s,fec-0/bin,fec-0/lib, fec-0
act protect 1 --run 6 name=dist paths=dist binary-url="file://$scratch/other.tar.gz" binary-sha256="$(sha256sum < other.tar.gz | cut -d ' ' -f 1)"
says 'is no package of fec'
act protect 1 --run 6 name='../x' paths=dist fec="$FEC"
act protect 1 --run 6 name=dist fec="$FEC"
echo "test-action: the steps of both actions, with artifacts, caches, and a package by its digest"
