#!/bin/bash
# The steps of .ci/run and .ci/nightly, and how they are run. It is sourced; called by itself, it runs one step.
#
# Two steps run side by side, but only one step that compiles at a time: another would wait for the lock of the target
# folder. The output of a step is shown when the step ends. The first failure ends all steps.
set -euo pipefail

# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
cd "$root"
export CARGO_TERM_COLOR=never PYTHONDONTWRITEBYTECODE=1
target=${CARGO_TARGET_DIR:-target}
fec=$target/release/fec
# The long form of a step asks whether this is set, and takes its seed from `seed`.
: "${long:=}" "${seed:=1}"
times=$target/ci-times-$script
# Seconds that a step may take: one that hangs by day ends before the 90 minutes of a run do.
step_limit=4200
[ -z "$long" ] || step_limit=86400
# The step `packages` gets two packages where they can be had. The oracles are several times as fast with blake3; their
# own BLAKE3 is held against it. The other one reads YAML.
python=$target/ci-python/bin/python
[ -x "$python" ] || python=python3

# ---------------------------------------------------------------- the steps, in the order of .ci/run

the_machine() {
    local feature
    grep -m 1 '^model name' /proc/cpuinfo || uname -m
    echo "CPUs: $(nproc), memory: $(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"
    for feature in ssse3 sse4_1 pclmulqdq avx2 avx512f avx512bw avx512vl gfni vaes vpclmulqdq sha_ni asimd pmull sha2; do
        if grep -m 1 -E '^(flags|Features)' /proc/cpuinfo | grep -w "$feature" > /dev/null; then
            echo -n "+$feature "
        else
            echo -n "-$feature "
        fi
    done
    echo
    if [ -r /etc/os-release ]; then sed -n 's/^PRETTY_NAME=//p' /etc/os-release; fi
    rustc --version
    cargo --version
    cargo fmt --version
    cargo clippy --version
    python3 --version
    cc --version | sed -n 1p
}

packages() {
    scripts/checks/test-arm.sh --install
    need shellcheck shellcheck
    need strace strace
    # Without it the page is not opened in a browser.
    ! may_install || need chromium chromium
    # Without these, keys of minisign's and OpenSSH's own are left out.
    ! may_install || need minisign minisign
    ! may_install || need ssh-keygen openssh-client
    # Without it live streams over bad networks are left out.
    ! may_install || need ip iproute2
    [ -z "$long" ] || ! may_install || need valgrind valgrind
    python3 -c 'import ensurepip' 2> /dev/null || ! may_install || install_packages python3-venv
    "$target/ci-python/bin/python" -c 'import blake3, yaml' 2> /dev/null || {
        python3 -m venv "$target/ci-python" && "$target/ci-python/bin/pip" install -q blake3 pyyaml
    } || rm -rf "$target/ci-python"
}

# Style is left to the eye: what may be wrong is not.
scripts_are_clean() { shellcheck --severity=warning -x .ci/run .ci/nightly .ci/steps.sh scripts/*.sh scripts/*/*.sh action/*.sh examples/engines/*.sh; }

# No import between files runs up, and no files are in a circle. No folder has more comments that are hard to read than
# before. Tests that are named as counterparts of others are there.
layers() {
    scripts/checks/layers.py --selftest
    scripts/checks/layers.py
    # It asks git which files are the project's.
    may_be_missing scripts/checks/prose.py
    scripts/checks/peers.py
    # Whoever publishes fec changes it there and nowhere else.
    [ "$(git grep -l 'git\.example' 2> /dev/null | grep -v '^\.ci/')" = Cargo.toml ] || ! git rev-parse > /dev/null 2>&1
    # A build with other features may replace the binary that cargo built while tests run, so only one place names it.
    [ "$(grep -rl CARGO_BIN_EXE crates --include='*.rs')" = crates/fec-cli/tests/common/mod.rs ]
}

formatted() {
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check
    cargo fmt --manifest-path crates/fec-python/Cargo.toml --check
}

# The shipped binary, which all later steps use. Fails on a warning: of the compiler, or of cargo about the manifests.
# The libraries of the workspace beside it would be compiled to objects too, and then once more by README.md's command.
build() {
    cargo build --release 2>&1 | tee "$scratch/build"
    if grep '^warning' "$scratch/build"; then
        echo "the build is not free of warnings" >&2
        return 1
    fi
    local backends
    backends=$(backends_of "$fec")
    [ -n "$backends" ] || { echo "fec does not tell its backends" >&2; return 1; }
    echo "backends here: $backends"
}

# The first `cargo test` in a fenced block of README.md, without its comment.
test_command() {
    local command
    command=$(awk '/^```/ { inside = !inside; next }
        inside && !found && /^(\$ )?cargo test/ { sub(/^\$ /, ""); sub(/[ \t]+#.*$/, ""); print; found = 1 }' README.md)
    [ -n "$command" ] || { echo "README.md has no test command (\`cargo test …\` in a fenced block)" >&2; return 1; }
    echo "$command"
}

# A step of its own, so that other steps compile while the tests run.
compiled_tests() {
    local command
    command=$(test_command)
    bash -c "$command --no-run"
}

# Tests that start a command start the shipped one.
readme_tests() {
    local command
    command=$(test_command)
    echo "\$ $command"
    FEC_UNDER_TEST=$(realpath -e -- "$fec") bash -c "$command"
}

# The first command of README.md: it protects README.md itself.
readme_first() {
    local command
    command=$(sed -n 's/^\(cargo run --release[^#]*[^# ]\) *#.*$/\1/p' README.md | sed -n 1p)
    [ -n "$command" ] || { echo "README.md has no first command (\`cargo run --release …\` in a fenced block)" >&2; return 1; }
    rm -rf README.md.shards
    echo "\$ $command"
    bash -c "$command"
    "$fec" decode -q README.md.shards -o "$scratch/README.md"
    cmp README.md "$scratch/README.md"
    rm -r README.md.shards
}

lints() {
    cargo clippy --profile ci --workspace --all-targets -- -D warnings
    CARGO_TARGET_DIR=$target cargo clippy --profile ci --locked --manifest-path fuzz/Cargo.toml -- -D warnings
}

documentation() { RUSTDOCFLAGS='-D warnings' cargo doc --profile ci --no-deps --workspace; }

# Each crate with other features than the workspace switches on, one line each: what is built, without warnings, and
# which of its tests are run. Only the night runs the last ones.
combinations() {
    local package features tests when
    [ -z "$long" ] || cargo clippy --profile ci -p fec-cli --no-default-features -- -D warnings
    while IFS='|' read -r package features tests when; do
        [ -z "$when" ] || [ -n "$long" ] || continue
        read -r -a features <<< "$features"
        read -r -a tests <<< "$tests"
        echo "\$ cargo test -p" $package "${features[@]}" "${tests[@]}"
        cargo test --profile ci --quiet -p $package "${features[@]}" "${tests[@]}" < /dev/null 2>&1 | tee "$scratch/combination" || return
        ! grep '^warning' "$scratch/combination" || return
    done <<'TABLE'
fec-core |                                       | --lib
fec-keys |                                       | --lib
fec-keys | --features ring                       | --lib
fecfile  |                                       | --lib --test encodings
fec-cli  | --no-default-features                 | --test cli --test seal --test seal_golden
fec-core |                                       | --tests                                           | night
fecfile  | --features ring                       | --lib                                             | night
fec-cli  | --no-default-features                 | --test golden --test hostile --test sidecar       | night
fec-cli  | --no-default-features --features ring | --test seal --test seal_golden                    | night
TABLE
    # As another program gets the library: in a workspace of its own.
    CARGO_TARGET_DIR=$target cargo run --profile ci --locked --manifest-path crates/fecfile/examples/shards-in-memory/Cargo.toml
}

# The command compiles for systems that nobody here can run: macOS and Windows by day, by night others too. Nothing is
# linked, so `true` is the compiler of C, and the C code of packages (BLAKE3, AWS-LC, ring) is not compiled.
systems() {
    local machine name machines=(aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu)
    [ -z "$long" ] || machines+=(x86_64-unknown-freebsd aarch64-linux-android riscv64gc-unknown-linux-gnu s390x-unknown-linux-gnu)
    has rustup || { echo "left out: all of them: rustup, which has the standard library of others, is not here"; return; }
    for machine in "${machines[@]}"; do
        rustup target add "$machine" || { echo "left out: $machine: its standard library is not to be had"; continue; }
        name=${machine//-/_}
        echo "\$ cargo check --target $machine"
        env "CC_$name=true" "CXX_$name=true" "AR_$name=true" AWS_LC_SYS_PREBUILT_NASM=1 \
            cargo check --profile ci --locked --target "$machine" --workspace 2>&1 | tee "$scratch/system" || return
        ! grep '^warning' "$scratch/system" || return
        # The tests that .github/workflows/ci.yml runs on macOS.
        [[ -n $long && $machine == *-apple-* ]] || continue
        env "CC_$name=true" "CXX_$name=true" "AR_$name=true" cargo check --profile ci --locked --target "$machine" \
            --tests -p fec-core -p fec-keys -p fecfile -p fec-live -p fec-bench || return
    done
}

golden() {
    local part
    for part in encoding stream sidecar stores seal area; do
        [ $part = stores ] || "$python" scripts/oracle $part selftest
        "$python" scripts/oracle $part check tests/golden
        "$python" scripts/oracle $part golden "$scratch/golden"
    done
    "$python" scripts/oracle reference selftest
    diff -r tests/golden "$scratch/golden"
    echo "the oracles write exactly what is committed"
}

documents() {
    scripts/checks/docs.py --fec "$fec" &&
        scripts/release/session_svg.py --fec "$fec" --check
}

cross_check() {
    local rounds=1
    [ -z "$long" ] || rounds=4
    FEC_SEED=$seed FEC_ROUNDS=$rounds scripts/checks/cross-check.sh "$fec"
}

cross_check_stream() {
    local rounds=3
    [ -z "$long" ] || rounds=10
    FEC_SEED=$seed FEC_ROUNDS=$rounds scripts/checks/cross-check-stream.sh "$fec"
}

age() {
    local rounds=5
    [ -z "$long" ] || rounds=20
    scripts/checks/test-age.sh "$fec" $rounds
}

# The steps of the actions take PyYAML, which the step `packages` gets.
action() { PYTHON=$python may_be_missing scripts/checks/test-action.sh "$fec"; }

# By day what is there already; by night pre-commit and gitlab-ci-local are fetched too.
jobs_of_others() {
    if [ -n "$long" ]; then
        scripts/checks/test-jobs.sh --install "$fec"
    else
        scripts/checks/test-jobs.sh "$fec"
    fi
}

# The life of a protected folder on each file system that can be had. It takes root.
filesystems() { scripts/checks/filesystems.sh --install "$fec"; }

# Losses of power, by a model.
power() { may_be_missing python3 scripts/campaigns/encoding_faults.py --fec "$fec" --power; }

# The quick form holds no times: the machine may be doing other things. It takes root.
field() {
    may_be_missing python3 scripts/campaigns/streams_field.py --fec "$fec" --quick --seed "$seed"
    # Whoever forges packets of a sealed stream has less to do.
    "$fec" keygen -q --stream -o "$scratch/stream.key"
    may_be_missing python3 scripts/campaigns/streams_field.py --fec "$fec" --quick --seed "$seed" --only forge --key-file "$scratch/stream.key"
}

stores() {
    local servers=(moto rclone)
    [ -z "$long" ] || servers=()
    scripts/checks/test-stores.sh --install "${servers[@]}"
}

# By day the fewest and the most threads.
bounds() {
    local threads='1 16'
    [ -z "$long" ] || threads='1 2 16'
    scripts/checks/bounds.sh --threads "$threads" "$fec"
}

gates() { "$fec" bench --gates; }
model() { may_be_missing scripts/checks/model.sh "$fec"; }

# A smoke test, but for the long form: what is written on one model of a processor is what is written here.
arm() {
    if [ -n "$long" ]; then
        FEC_NATIVE=$fec scripts/checks/test-arm.sh
    else
        FEC_NATIVE=$fec scripts/checks/test-arm.sh --smoke
    fi
}

# The module for Python, from its wheel, against the command.
python_module() {
    local manifest=crates/fec-python/Cargo.toml extra
    CARGO_TARGET_DIR=$target cargo clippy --profile ci --locked --manifest-path "$manifest" -- -D warnings
    # In the profile of the other tests, whose packages it shares; by night the wheel is what is shipped.
    FEC_PROFILE=ci scripts/release/package.sh --to "$scratch/wheel" wheel
    python3 -m venv "$scratch/venv"
    "$scratch/venv/bin/pip" install -q pytest "$scratch"/wheel/fecshards-*.whl
    for extra in fsspec zarr; do
        "$scratch/venv/bin/pip" install -q "$(echo "$scratch"/wheel/fecshards-*.whl)[$extra]" ||
            echo "$extra cannot be installed here: its tests are left out"
    done
    FEC=$(realpath "$fec") "$scratch/venv/bin/python" -m pytest -q -rs -p no:cacheprovider -c crates/fec-python/pyproject.toml crates/fec-python/tests
}

webassembly() { scripts/checks/test-wasm.sh; }

# The page that restores, in Chromium, and the package for Node. By night with 300 MB and more hostile files.
web() {
    may_be_missing scripts/release/page.sh "$scratch/fec.html" --modules "$scratch/modules"
    [ -e "$scratch/fec.html" ] || return 0
    scripts/checks/test-page.sh ${long:+--full} --fec "$fec" --page "$scratch/fec.html"
    scripts/checks/test-npm.sh ${long:+--mutations 5000} --fec "$fec" --modules "$scratch/modules"
}

emulated() { scripts/checks/test-emulated.sh; }

windows() { scripts/checks/test-windows.sh --fec "$fec"; }

# The library for C, as a stranger gets it; its own tests are among those of the workspace.
c_library() { FEC_PROFILE=ci may_be_missing scripts/checks/test-c.sh; }

# ---------------------------------------------------------------- only in .ci/nightly

faults() {
    may_be_missing python3 scripts/campaigns/faults.py --fec "$fec" --every 40 --seed "$seed"
    may_be_missing python3 scripts/campaigns/encoding_faults.py --fec "$fec" --every 600 --seed "$seed"
}

hostile() { "$python" scripts/campaigns/hostile.py --fec "$fec" --random 1200 --structured 500 --sealed 150 --seed "$seed"; }
sidecars() { "$python" scripts/campaigns/sidecars.py --fec "$fec" --cases 1000 --seed "$seed" --jobs 1; }
lists() { "$python" scripts/campaigns/lists.py --fec "$fec" --rounds 100 --seed "$seed"; }
mirrors() { "$python" scripts/campaigns/mirrors.py --fec "$fec" --rounds 150 --seed "$seed"; }
updates() { "$python" scripts/campaigns/updates.py --fec "$fec" --rounds 100 --seed "$seed"; }

# Years of a folder and its owner: in memory, and on file systems whose disks rot. The latter take root.
years() {
    local form
    "$python" scripts/campaigns/years.py --fec "$fec" --selftest
    "$python" scripts/campaigns/years.py --fec "$fec" --rounds 20 --seed "$seed"
    for form in ext4 vfat exfat; do
        may_be_missing "$python" scripts/campaigns/years.py --fec "$fec" --form $form --seed "$seed" --rounds 2
    done
}

# Repositories of backup programs, which stand in Debian.
repositories() {
    ! may_install || { need restic restic && need borg borgbackup && need git-annex git-annex; }
    may_be_missing "$python" scripts/campaigns/repositories.py --fec "$fec" --seed "$seed" --cycles 28 restic borg git annex
}

# Where borgmatic, borg and git can be had.
hooks() { ! may_install || scripts/checks/test-hooks.sh --install "$fec"; }

units() { ! may_install || scripts/checks/test-units.sh --install "$fec"; }

# The campaigns that are tests of crates, with more cases.
mutations() {
    export FEC_SEED=$seed FEC_UNDER_TEST
    FEC_UNDER_TEST=$(realpath -e -- "$fec")
    FEC_MUTATIONS=6000 cargo test --profile ci -p fec-cli --test campaign
    FEC_MUTATIONS=1500 cargo test --profile ci -p fec-cli --test sidecar campaign
    FEC_EVERY_BIT=1 cargo test --profile ci -p fec-cli --test hostile detection
    FEC_ATTACKS=2000 cargo test --profile ci -p fecfile --lib seal::attacks
    FEC_MUTATIONS=6000 cargo test --profile ci -p fec-c --test c campaign
}

fuzzing() { may_be_missing scripts/checks/fuzz.sh --seconds 12 --seed "$seed"; }
interpreted() { may_be_missing scripts/checks/miri.sh --install; }
packages_of_others() { may_be_missing scripts/checks/deny.sh --install; }

# The examples that need no packages; scripts/checks/engines.sh alone runs the others too.
engines() {
    scripts/checks/engines.sh --fec "$fec" --only xargs
    scripts/checks/engines.sh --fec "$fec" --only slurm
}

# The step `stores` installs the server.
immutable() { may_be_missing python3 scripts/campaigns/immutable.py --fec "$fec" --install; }

instructions() { scripts/checks/count-arm.sh; }

# Some of the packages: a clean root gets them. `scripts/release/package.sh && scripts/release/test-packages.sh`
# makes and tests all. It takes root, on Debian.
packaged() {
    scripts/release/package.sh --to "$scratch/packages" wheel crates-unbuilt
    if ! may_install; then
        echo "not root on Debian: nothing is installed"
        return
    fi
    # Signed by a key that stands for that of a release.
    ssh-keygen -q -t ed25519 -N '' -f "$scratch/key"
    FEC_RELEASE_KEY=$scratch/key scripts/release/package.sh --to "$scratch/packages" x86_64 aarch64 deb source
    scripts/release/test-packages.sh "$scratch/packages"
}

# Twice from nothing, in two folders.
reproducible() { scripts/release/test-reproducible.sh x86_64 deb source; }

# ---------------------------------------------------------------- running them

# A tool, a compiler or a right that it needs may not be there (exit code 2): that is told, and is no failure of fec.
may_be_missing() {
    local code=0
    "$@" || code=$?
    [ "$code" = 2 ] || return "$code"
}

unchanged() {
    if ! git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
        echo "not a git checkout (or no git): nothing to compare with"
        return
    fi
    git status --porcelain > "$scratch/status"
    diff "$scratch/status.before" "$scratch/status"
}

steps=()
declare -A kind after heading
# step NAME KIND AFTER HEADING: NAME is a function; KIND is `compiles`, or `runs`; AFTER are the steps that have to end
# first, with commas.
step() { steps+=("$1") kind[$1]=$2 after[$1]=$3 heading[$1]=$4; }

list_steps() {
    local name seconds
    for name in "${steps[@]}"; do
        seconds=$(awk -v name="$name" '$1 == name { print $2 }' "$times" 2> /dev/null || true)
        printf '%-20s %6s  %s\n' "$name" "${seconds:--}" "${heading[$name]}"
    done
}

# is_ready NAME: nothing that it waits for is still to be done.
is_ready() {
    local other
    for other in ${after[$1]//,/ }; do
        [ -z "${waiting[$other]-}${running[$other]-}" ] || return 1
    done
    if [ "${kind[$1]}" = compiles ]; then
        for other in "${!running[@]}"; do
            [ "${kind[$other]}" != compiles ] || return 1
        done
    fi
}

start_step() {
    printf '.... %s begins (%d s)\n' "$1" $SECONDS
    started[$1]=$SECONDS
    # Each step has a session of its own, so that all its processes can be ended. (A process in the background leads no
    # group, so setsid need not fork.)
    # A step that hangs is a failure that shows how far the step came.
    scratch=$scratch long=$long seed=$seed setsid timeout --foreground -k 10 "$step_limit" \
        bash "$root/.ci/steps.sh" "$1" > "$scratch/log.$1" 2>&1 < /dev/null &
    running[$1]=$!
    unset "waiting[$1]"
}

# end_step NAME CODE
end_step() {
    local took=$((SECONDS - started[$1]))
    printf '\n==== %s: %s\n' "$1" "${heading[$1]}"
    cat "$scratch/log.$1"
    printf -- '---- %s: %d s (%d s in all)\n' "$1" $took $SECONDS
    unset "running[$1]"
    [ "$2" != 124 ] || echo "$1 was not done after $step_limit s, and was ended" >&2
    [ "$2" = 0 ] || { echo "failed with exit code $2: $1" >&2; return 1; }
    timings+=$(printf '%5d s  %s' $took "$1")$'\n'
    mkdir -p "$target"
    { awk -v name="$1" '$1 != name' "$times" 2> /dev/null || true; echo "$1 $took"; } > "$scratch/times"
    cp "$scratch/times" "$times"
}

end_all() {
    local code=$? name
    for name in "${!running[@]}"; do
        # The step leads its session, and its group.
        pkill -KILL -s "${running[$name]}" 2> /dev/null || kill -KILL -- "-${running[$name]}" 2> /dev/null || true
        wait "${running[$name]}" 2> /dev/null || true
        printf '\n==== %s: stopped after %d s; the end of what it printed\n' "$name" $((SECONDS - started[$name]))
        tail -n 5 "$scratch/log.$name" || true
    done
    rm -rf "$scratch"
    [ "$code" = 0 ] || echo "$script failed after $SECONDS s" >&2
}

# run_steps [NAME…]: all of them, or these and what they need.
run_steps() {
    local name other class code ended
    declare -gA waiting=() running=() started=()
    timings=
    scratch=$(mktemp -d)
    trap end_all EXIT
    trap 'exit 130' INT TERM
    git status --porcelain > "$scratch/status.before" 2> /dev/null || true
    [ $# -gt 0 ] || set -- "${steps[@]}"
    for name in "$@"; do
        [ -n "${kind[$name]-}" ] || { echo "$script: no step is called $name; --list has them" >&2; exit 2; }
        waiting[$name]=yes
        # Only the binary is made for other steps; what else stands before a step is order.
        if [[ ,${after[$name]}, == *,build,* ]]; then waiting[build]=yes; fi
    done
    while [ ${#waiting[@]} -gt 0 ] || [ ${#running[@]} -gt 0 ]; do
        # Those that compile first: there is always another kind to run beside them.
        for class in compiles runs; do
            for name in "${steps[@]}"; do
                [ ${#running[@]} -lt 2 ] || break
                if [ -n "${waiting[$name]-}" ] && [ "${kind[$name]}" = $class ] && is_ready "$name"; then start_step "$name"; fi
            done
        done
        code=0
        wait -n -p ended "${running[@]}" || code=$?
        for other in "${!running[@]}"; do
            [ "${running[$other]}" != "$ended" ] || { end_step "$other" $code || exit 1; break; }
        done
    done
    printf '\n%s' "$timings"
    echo "$script passed in $SECONDS s"
    echo "steps: ${#started[@]} passed, 0 failed"
}

# The script itself runs a step, in a process of its own.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    [ $# = 1 ] && declare -F "$1" > /dev/null || { echo "usage: .ci/run STEP, or .ci/nightly STEP" >&2; exit 2; }
    : "${scratch:?}"
    "$1"
fi
