#!/bin/bash
# Builds fec for 64-bit ARM, static as for boards, and runs it on emulated processors: the whole test suite of fec-core,
# doctests too, and the binary, which must write the same bytes and print the same roots as the native one.
#
#   scripts/test-arm.sh [--install | arguments for `cargo test`]
#
# On Debian bookworm, as root, it first installs what is missing (about 240 MB, once); with --install it does only that.
# Elsewhere it needs on the PATH: qemu-aarch64, aarch64-linux-gnu-gcc, and a Rust standard library for
# aarch64-unknown-linux-gnu (`rustup target add aarch64-unknown-linux-gnu`).
#
#   CARGO_TARGET_DIR   it builds in the folder arm in there (target/arm if unset), so that native builds, perhaps by
#                      another compiler, are not disturbed
#   FEC_NATIVE         the native binary; without it one is built
#   FEC_PATTERNS       random loss patterns; 2000 if unset
#   FEC_ARM_CPUS       the models to emulate; "cortex-a53 max" if unset. Run-time detection follows them.
#   FEC_ARM_TIMEOUT    seconds that one program may take; 600 if unset
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
read -r -a cpus <<< "${FEC_ARM_CPUS:-cortex-a53 max}"
timeout=${FEC_ARM_TIMEOUT:-600}

has() { command -v "$1" > /dev/null 2>&1; }
# Without `grep -q`, which would end the pipe early: that is a failure here.
rustup_has_target() { has rustup && rustup target list --installed 2> /dev/null | grep -x "$target" > /dev/null; }
debian_has_target() { [ -x /usr/bin/rustc ] && [ -x /usr/bin/rustdoc ] && [ -d "/usr/lib/rustlib/$target/lib" ]; }
has_all() { has qemu-aarch64 && has aarch64-linux-gnu-gcc && { rustup_has_target || debian_has_target; }; }

if ! has_all; then
    if ! has apt-get || [ "$(id -u)" != 0 ]; then
        echo "test-arm: needs qemu-aarch64, aarch64-linux-gnu-gcc and Rust's $target (on Debian: run as root)" >&2
        exit 2
    fi
    dpkg --add-architecture arm64
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        rustc-web libstd-rust-web-dev libstd-rust-web-dev:arm64 \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user < /dev/null
    has_all || { echo "test-arm: something is still missing after the installation" >&2; exit 2; }
fi
[ "${1-}" != --install ] || exit 0

native=${FEC_NATIVE-}
if [ -z "$native" ]; then
    cargo build --release --quiet
    native=${CARGO_TARGET_DIR:-target}/release/fec
fi
native=$(realpath -e -- "$native")

if ! rustup_has_target; then
    # Both, or doctests are built by one compiler and linked with the library of another.
    export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/arm"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static'
export FEC_PATTERNS="${FEC_PATTERNS:-2000}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "test-arm: $("${RUSTC:-rustc}" --version), $(qemu-aarch64 --version | sed -n 1p)"
echo "test-arm: this is emulation: it shows what is right, never how fast it is"

# The binary under test: `arm CPU ARGUMENTS…`. No `-L` for qemu: it would mix two C libraries and hang at the first thread. The
# timeouts guard against the like.
cargo build --release --quiet -p fec-cli --target "$target"
binary=$(realpath -e -- "$CARGO_TARGET_DIR/$target/release/fec")
arm() { timeout "$timeout" qemu-aarch64 -cpu "$@"; }

fail() { echo "test-arm: $*" >&2; exit 1; }

# check_binary CPU: shard files and containers of a real file (the binary itself), by every kernel that this CPU has.
check_binary() (
    cpu=$1 compared=0
    mkdir "$scratch/$cpu"
    cd "$scratch/$cpu"
    cp "$binary" payload
    # It ends with an error that lists them.
    backends=$({ arm "$cpu" "$binary" encode payload --backend '?' 2>&1 || true; } | sed -n 's/^.*this machine has: //p')
    [ -n "$backends" ] || fail "$cpu: no list of kernels"
    for hash in blake3 sha256; do
        shape=(-k 33 -m 67 --hash "$hash" --set-size 256K)
        root=$("$native" encode -q payload "${shape[@]}" -o x86/)
        "$native" encode -q payload "${shape[@]}" --group-size 2 -o x86.fec > /dev/null
        for backend in ${backends//,/ }; do
            how=(-q -j 2 --backend "$backend")
            [ "$(arm "$cpu" "$binary" encode "${how[@]}" payload "${shape[@]}" -o arm/)" = "$root" ] ||
                fail "$cpu $backend $hash: another root"
            diff -r x86 arm || fail "$cpu $backend $hash: other shard files"
            arm "$cpu" "$binary" encode "${how[@]}" - "${shape[@]}" --group-size 2 -o - < payload 2> /dev/null |
                cmp - x86.fec || fail "$cpu $backend $hash: another container"
            arm "$cpu" "$binary" verify "${how[@]}" --deep --root "$root" arm
            rm arm/payload.00[0-9].shard arm/payload.05[0-9].shard
            arm "$cpu" "$binary" decode "${how[@]}" --root "$root" arm -o back
            cmp payload back
            arm "$cpu" "$binary" decode "${how[@]}" - -o - < x86.fec | cmp - payload
            rm -r arm back
            compared=$((compared + 1))
        done
        rm -r x86 x86.fec
    done
    echo "test-arm: the binary on emulated $cpu ($backends): $compared times the bytes and roots of the native one, $(stat -c %s payload) bytes restored"
)

for cpu in "${cpus[@]}"; do
    echo "test-arm: fec-core on emulated $cpu"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="timeout $timeout qemu-aarch64 -cpu $cpu"
    cargo test --release -p fec-core --target "$target" "$@"
    check_binary "$cpu"
done
echo "test-arm: passed on emulated ${cpus[*]}; no speed was measured"
