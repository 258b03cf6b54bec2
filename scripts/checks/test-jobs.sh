#!/bin/bash
# Runs what examples/jobs, examples/systemd and .pre-commit-hooks.yaml show, and hands statements of `fec attest` to
# others, by the programs that they are for: make, pre-commit, gitlab-ci-local, systemd-analyze, sigstore and cosign.
# Nothing is sent anywhere.
#
#   scripts/checks/test-jobs.sh [--install] FEC [JOB…]
#
# JOB is make, precommit, gitlab, systemd, sigstore or cosign; all of them if none is named. A job whose program is not
# there is left out; with --install pip and npm are asked for pre-commit, sigstore and gitlab-ci-local first.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in -h | --help) show_help ;; esac
install=''
if [ "${1-}" = --install ]; then
    install=yes
    shift
fi
[ $# -ge 1 ] || usage
PRE_COMMIT=4.7.0
GITLAB_CI_LOCAL=4.60.1
SIGSTORE=4.5.1
fec=$(find_fec "$1")
shift
[ $# -gt 0 ] || set -- make precommit gitlab systemd sigstore cosign
make_scratch
# Beside the projects: in one it would be a change of its own.
said=$scratch/said
PATH=$(dirname "$fec"):$PATH
build=$(realpath -m -- "$root/${CARGO_TARGET_DIR:-target}")

left_out() { echo "test-jobs: left out, without $*"; }
# A project that has built something, in a folder of git.
project() {
    cd "$(mktemp -d -p "$scratch")"
    git init -q
    git config user.email test@localhost
    git config user.name test
    mkdir dist
    seq 1 300000 > dist/program
    printf 'hello\n' > dist/notes
}
# Damages the middle of a file.
damage() { printf rot | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc status=none; }

make_job() {
    has make || { left_out make; return; }
    project
    cp "$root/examples/jobs/Makefile" .
    make -s
    make -s check > /dev/null
    [ "$(make)" = "make: Nothing to be done for 'all'." ] || fail "make protects again what has not changed"
    cp dist.tar before
    damage dist.tar.fec
    rm dist.tar
    ! make -s check > "$said" 2>&1 || fail "damage is no failure of make check"
    make -s restore > /dev/null 2>&1
    cmp before dist.tar
    sleep 1
    echo more >> dist/notes
    make -s
    make -s check > /dev/null
    ! cmp -s before dist.tar || fail "make does not build what has changed"
    echo "test-jobs: make built, protected, noticed damage, and restored"
}

precommit_job() {
    local venv=$build/ci-pre-commit hook
    if [ -n "$install" ] && [ ! -x "$venv/bin/pre-commit" ]; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install -q "pre-commit==$PRE_COMMIT"
    fi
    PATH=$venv/bin:$PATH
    has pre-commit || { left_out pre-commit; return; }
    project
    # The hook as a repository of its own, as pre-commit fetches it.
    mkdir hooks
    cp "$root/.pre-commit-hooks.yaml" hooks
    git -C hooks init -q
    git -C hooks add .
    git -C hooks -c user.email=t@localhost -c user.name=t commit -qm hooks
    hook=$(git -C hooks rev-parse HEAD)
    printf 'repos:\n- repo: %s\n  rev: %s\n  hooks:\n  - id: fec-verify\n' "$PWD/hooks" "$hook" > .pre-commit-config.yaml
    echo hooks > .gitignore
    fec protect -q dist > /dev/null
    git add .
    export PRE_COMMIT_HOME=$scratch/pre-commit
    pre-commit run > "$said" 2>&1 || { cat "$said" >&2; fail "the hook fails on an intact folder"; }
    pre-commit install > /dev/null
    git commit -qm first > "$said" 2>&1 || { cat "$said" >&2; fail "nothing can be committed"; }
    sleep 0.1
    echo more >> dist/notes
    git add .
    ! git commit -qm second > "$said" 2>&1 || fail "an edit that the sidecar does not know is committed"
    grep -q 'fec protect --update dist' "$said" || { cat "$said" >&2; fail "the hook does not say what to do"; }
    fec protect -q --update dist > /dev/null
    git add .
    git commit -qm second > "$said" 2>&1 || { cat "$said" >&2; fail "an edit cannot be committed"; }
    # Changes that are not staged are put aside, but for --all-files.
    damage dist/program
    ! pre-commit run --all-files > "$said" 2>&1 || fail "the hook passes over damage"
    echo "test-jobs: pre-commit passed, stopped at an edit and at damage, and said what to do"
}

gitlab_job() {
    local tool=$build/ci-gitlab
    if [ -n "$install" ] && has npm && [ ! -x "$tool/node_modules/.bin/gitlab-ci-local" ]; then
        npm install --silent --no-fund --no-audit --prefix "$tool" "gitlab-ci-local@$GITLAB_CI_LOCAL" > /dev/null
    fi
    # The jobs have the command of the package, and no other.
    PATH=$tool/node_modules/.bin:${PATH#"$(dirname "$fec"):"}
    has gitlab-ci-local && has rsync || { left_out gitlab-ci-local and rsync; return; }
    project
    cp "$root/examples/jobs/gitlab.yml" .
    local package=$scratch/package.tar.gz
    mkdir -p "$scratch/package/fec-0/bin"
    cp "$fec" "$scratch/package/fec-0/bin/fec"
    tar czf "$package" -C "$scratch/package" fec-0
    cat > .gitlab-ci.yml << YAML
include:
  - local: gitlab.yml
variables:
  FEC_URL: file://$package
  FEC_SHA256: '$(sha256sum < "$package" | cut -d ' ' -f 1)'
build:
  stage: build
  extends: .fec-protect
deploy:
  stage: deploy
  extends: .fec-restore
  needs: [build]
  before_script:
    - mv dist built && rm dist.shards/dist.tar.00[0-3].shard
    - !reference [.fec, before_script]
  script: [!reference [.fec-restore, script], diff -r dist built, touch deployed]
YAML
    git add .
    git commit -qm project
    git remote add origin git@localhost:group/project.git
    run() { gitlab-ci-local --shell-executor-no-image --cwd . "$@" > "$said" 2>&1; }
    run || { cat "$said" >&2; fail "the jobs of GitLab fail"; }
    grep -q '10 of 14 shards intact, 0 damaged, 4 missing' "$said" || { cat "$said" >&2; fail "the lost shards are not told"; }
    [ -e deployed ] || { cat "$said" >&2; fail "what stands behind the restore did not run"; }
    # With too few shards nothing behind the restore runs.
    rm deployed
    sed -i 's/00\[0-3\]/00[0-5]/' .gitlab-ci.yml
    ! run || { cat "$said" >&2; fail "a job without enough shards passes"; }
    [ ! -e deployed ] || { cat "$said" >&2; fail "what was not restored is deployed"; }
    # Another digest of the package.
    sed -i "s/FEC_SHA256: .*/FEC_SHA256: '$(printf %064d 0)'/" .gitlab-ci.yml
    ! run build || { cat "$said" >&2; fail "a package with another digest is run"; }
    grep -q 'fec.tar.gz: FAILED' "$said" || { cat "$said" >&2; fail "the other digest is not what failed"; }
    echo "test-jobs: gitlab-ci-local protected, and restored without four shards"
}

systemd_job() {
    has systemd-analyze || { left_out systemd-analyze; return; }
    local units=$scratch/units name line
    project
    fec protect -q dist > /dev/null
    name=$(systemd-escape --path "$PWD/dist.fecp")
    mkdir "$units"
    cp "$root"/examples/systemd/fec-verify@.* "$units"
    # Where the command is, since nothing is installed here.
    sed -i "s,^ExecStart=fec ,ExecStart=$fec ," "$units/fec-verify@.service"
    cp "$units/fec-verify@.service" "$units/fec-verify@$name.service"
    cp "$units/fec-verify@.timer" "$units/fec-verify@$name.timer"
    SYSTEMD_UNIT_PATH=$units: systemd-analyze verify --man=no "$units/fec-verify@$name.service" "$units/fec-verify@$name.timer" > "$said" 2>&1 ||
        { cat "$said" >&2; fail "systemd does not take the units"; }
    ! grep 'fec-verify' "$said" >&2 || fail "systemd complains of the units"
    # Among 0 to 100, 0 is the best; ordinary services have more than 90.
    SYSTEMD_UNIT_PATH=$units: systemd-analyze security --offline=true --threshold=20 "$units/fec-verify@$name.service" > "$said" 2>&1 ||
        { cat "$said" >&2; fail "the service is exposed"; }
    tail -n 1 "$said"
    # The command of the service, with what stands for its words.
    line=$(sed -n 's/^ExecStart=//p' "$units/fec-verify@.service")
    line=${line//%f/$PWD/dist.fecp} line=${line//%S/$scratch/state} line=${line//%i/$name}
    mkdir -p "$scratch/state/fec"
    read -r -a words <<< "$line"
    "${words[@]}" > "$said" 2>&1 || { cat "$said" >&2; fail "the service fails on an intact folder"; }
    sleep 0.1
    echo more >> dist/notes
    rm "$scratch/state/fec/"*
    "${words[@]}" > "$said" 2>&1 || { cat "$said" >&2; fail "the service fails on an edit"; }
    rm dist/program "$scratch/state/fec/"*
    ! "${words[@]}" > "$said" 2>&1 || fail "the service passes over a lost file"
    grep -q "fec repair" "$said" || fail "the service does not say what to do"
    echo "test-jobs: systemd takes the units, and the command of the service does its work"
}

# A statement as sigstore's verifier for Python reads it, signed by a key of its own, and what it hands back.
sigstore_job() {
    local venv=$build/ci-sigstore
    if [ -n "$install" ] && [ ! -x "$venv/bin/sigstore" ]; then
        python3 -m venv "$venv"
        "$venv/bin/pip" install -q "sigstore==$SIGSTORE"
    fi
    [ -x "$venv/bin/sigstore" ] || { left_out sigstore; return; }
    project
    fec encode -q dist/program --root-file program.root > /dev/null
    fec attest program.root > statement
    "$venv/bin/python" - << 'EOF' > payload
import hashlib, sys
from cryptography.hazmat.primitives.asymmetric import ec
from sigstore import dsse
from sigstore.hashes import Hashed
from sigstore_models.common.v1 import HashAlgorithm
root = open("program.root", "rb").read()
of = lambda data: Hashed(algorithm=HashAlgorithm.SHA2_256, digest=hashlib.sha256(data).digest())
statement = dsse.Statement(open("statement", "rb").read())
assert statement._matches_digest(of(root)) and not statement._matches_digest(of(root + b"\n"))
key = ec.generate_private_key(ec.SECP256R1())
envelope = dsse.Envelope._from_json(dsse._sign(key, statement).to_json())
sys.stdout.buffer.write(dsse._verify(key.public_key(), envelope))
EOF
    cmp statement payload
    fec attest program.root --check - -q < payload
    echo "test-jobs: sigstore took the statement, found the root file in it, and handed it back as it was"
}

# The same by cosign, with a bundle, a key in a file, and no log.
cosign_job() {
    has cosign || { left_out cosign; return; }
    project
    fec encode -q dist/program --root-file program.root > /dev/null
    fec attest program.root > statement
    export COSIGN_PASSWORD=''
    cosign generate-key-pair > /dev/null 2>&1
    cosign signing-config create > signing.json 2> "$said" || echo '{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json"}' > signing.json
    cosign attest-blob --key cosign.key --statement statement --bundle bundle.json --signing-config signing.json --yes > "$said" 2>&1 ||
        { cat "$said" >&2; fail "cosign does not sign the statement"; }
    python3 -c 'import base64, json, sys; sys.stdout.buffer.write(base64.b64decode(json.load(open("bundle.json"))["dsseEnvelope"]["payload"]))' > payload
    fec attest program.root --check payload -q
    type=$(sed -n 's/.*"predicateType":"\([^"]*\)".*/\1/p' statement)
    check_blob() { cosign verify-blob-attestation --key cosign.pub --bundle bundle.json --type "$type" --private-infrastructure "$1" > "$said" 2>&1; }
    check_blob program.root || { cat "$said" >&2; fail "cosign does not take the bundle"; }
    echo >> program.root
    ! check_blob program.root || fail "cosign takes another file of a root"
    echo "test-jobs: cosign signed the statement, and took the file of its root, and no other"
}

for job; do (cd "$scratch" && "${job}_job"); done
