#!/bin/bash
# Builds fec for 64-bit ARM, static as for boards, and runs it on emulated processors: the whole test suite of fec-core,
# doctests too; the golden vectors; and the binary on a real file, where it must write the same bytes and print the same
# roots as the native one.
#
#   scripts/checks/test-arm.sh [--install | --smoke | arguments for `cargo test`]
#
# --smoke does less, in a profile that compiles faster: small sets by every kernel, and the binary on one model.
# Needs what build-static.sh needs for aarch64, and qemu-aarch64; on Debian bookworm, as root, it first installs
# what is missing; with --install it does only that.
#
#   CARGO_TARGET_DIR   it builds in the folder static in there, as scripts/release/build-static.sh does
#   FEC_NATIVE         the native binary; without it one is built
#   FEC_PATTERNS       random loss patterns; 2000 if unset
#   FEC_ARM_CPUS       the models to emulate; if unset cortex-a53, cortex-a55 where the emulator knows it, and max.
#                      Run-time detection follows them.
#   FEC_ARM_TIMEOUT    seconds that one program may take; 1200 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; esac
cd "$root"

target=aarch64-unknown-linux-gnu
timeout=${FEC_ARM_TIMEOUT:-1200}

scripts/release/build-static.sh --install aarch64
need qemu-aarch64 qemu-user
[ "${1-}" != --install ] || exit 0

# It lists them and ends with 1.
models=' '$({ qemu-aarch64 -cpu help || true; } | tr -s '[:space:]' ' ')' '
default='cortex-a53 max'
[[ $models != *' cortex-a55 '* ]] || default='cortex-a53 cortex-a55 max'
read -r -a cpus <<< "${FEC_ARM_CPUS:-$default}"

native=$(find_fec "${FEC_NATIVE-}")

# The very file that is made for boards; a smoke test compiles in a profile of its own.
build_for_smoke() (
    build_like aarch64
    cargo build --profile ci --quiet --target "$target" --no-default-features -p fec-cli
    realpath -e -- "$CARGO_TARGET_DIR/$target/ci/fec"
)
if [ "${1-}" = --smoke ]; then binary=$(build_for_smoke); else binary=$(scripts/release/build-static.sh aarch64); fi
export FEC_PATTERNS="${FEC_PATTERNS:-2000}"

make_scratch

echo "test-arm: $("${RUSTC:-rustc}" --version), $(qemu-aarch64 --version | sed -n 1p)"
echo "test-arm: this is emulation: it shows what is right, never how fast it is"

# The binary under test: `arm CPU ARGUMENTS…`. No `-L` for qemu: it would mix two C libraries and hang at the first
# thread. The timeouts guard against the like.
arm() { timeout "$timeout" qemu-aarch64 -cpu "$@"; }

# check_binary CPU: shard files and containers of a real file (the binary itself), by every kernel that this CPU has.
check_binary() (
    cpu=$1 compared=0
    mkdir "$scratch/$cpu"
    cd "$scratch/$cpu"
    cp "$binary" payload
    backends=$(backends_of arm "$cpu" "$binary")
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

# check_stream CPU: live streams of the same file. Without timers and with everything random fixed, the packets are the
# native ones to the byte; a twentieth of them is lost on the way. At last through a pipe, and over UDP on this machine.
check_stream() (
    cpu=$1 shown=''
    cd "$scratch/$cpu"
    fixed=(--window 600 --block 30 --rate 1/3 --stream-id 5eed --flush-ms 60000 --impair "random:0.05,reorder:4,dup:0.02,seed:7")
    for profile in bounded classic classic-blocks blocks; do
        "$native" encode -q --stream --profile "$profile" "${fixed[@]}" payload -o x86.stream
        arm "$cpu" "$binary" encode -q --stream --profile "$profile" "${fixed[@]}" payload -o arm.stream
        cmp x86.stream arm.stream || fail "$cpu: other packets of a $profile stream"
        arm "$cpu" "$binary" decode -q --stream arm.stream -o back
        cmp payload back
        rm x86.stream arm.stream back
    done
    arm "$cpu" "$binary" encode -q --stream --impair random:0.05,seed:7 - < payload |
        arm "$cpu" "$binary" decode -q --stream - | cmp - payload
    # A port that nobody has.
    port=$((20000 + RANDOM % 10000))
    socket() { grep -i ":$(printf '%04X' "$port") " /proc/net/udp > /dev/null; }
    while socket; do port=$((port + 1)); done
    arm "$cpu" "$binary" decode -q --stream --idle-ms 60000 "udp://127.0.0.1:$port" -o back &
    until socket; do
        kill -0 $! 2> /dev/null || fail "$cpu: the receiver did not start"
        sleep 0.1
    done
    arm "$cpu" "$binary" encode -q --stream --mbps 8 --rate 1/3 --impair random:0.05,seed:7 payload -o "udp://127.0.0.1:$port"
    wait $! || fail "$cpu: the stream over UDP was not restored"
    cmp payload back
    rm back
    # A report under emulation must say so, before the first figure.
    for preset in kernels window; do
        arm "$cpu" "$binary" bench "$preset" --budget 1 > report || fail "$cpu: fec bench $preset"
        shown=$(grep -m 1 -i emulated report) || fail "$cpu: fec bench $preset does not tell that it is emulated"
    done
    echo "test-arm: streams on emulated $cpu: the packets of the native ones, restored from files, a pipe and UDP; a report says: $shown"
)

# check_core CPU PROFILE ARGUMENTS…: in a shell of its own, whose environment it changes.
check_core() (
    cpu=$1 profile=$2
    shift 2
    build_like aarch64
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="timeout $timeout qemu-aarch64 -cpu $cpu"
    cargo test --profile "$profile" -p fec-core --features blake3-lanes --target "$target" "$@"
)

# check_golden CPU NAMES: the vectors of the independent implementation, in the tests with NAMES in theirs.
check_golden() (
    build_like aarch64
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="timeout $timeout qemu-aarch64 -cpu $1"
    cargo test --profile ci -p fecfile -p fec-sidecar --test encodings --test sidecars --target "$target" -- "$2"
)

if [ "${1-}" = --smoke ]; then
    check_core "${cpus[0]}" ci --test small
    check_binary "${cpus[0]}"
    echo "test-arm: a smoke test passed on emulated ${cpus[0]}; no speed was measured"
    exit
fi

# All of the golden tests on the first model; on the others the encodings with the kernel that detection picks there.
golden=''
for cpu in "${cpus[@]}"; do
    echo "test-arm: emulated $cpu"
    check_core "$cpu" release "$@"
    check_golden "$cpu" "$golden"
    golden=byte_for_byte
    check_binary "$cpu"
    # Streams run the same code on all models but for what detection picks.
    [ "$cpu" != "${cpus[0]}" ] || check_stream "$cpu"
done
echo "test-arm: passed on emulated ${cpus[*]}; no speed was measured"
