#!/bin/bash
# Builds fec as one static, stripped binary that runs on any Linux of its architecture, and prints its path.
#
#   scripts/release/build-static.sh [--install | --env] [TARGET…]
#
# TARGET: aarch64 (64-bit ARM; the default), x86_64, armv7 (32-bit ARM), riscv64, or wasm32, for which fec-core alone is
# built. The one for x86_64 has everything that `cargo install` brings; those for boards are without stores.
# Where rustup has the target's standard library (`rustup target add aarch64-unknown-linux-gnu`), that is used, with a
# cross gcc for the linker: aarch64-linux-gnu-gcc and so on. On Debian and as root what is missing is installed first,
# cargo too (about 280 MB once for aarch64), and the standard library of the binary is built from its sources with it,
# which makes it smaller. Elsewhere rustup, where it is there, is asked for the standard library.
# With --install it installs and stops; with --env it prints the environment in which cargo builds for a target so.
#
#   CARGO_TARGET_DIR   it builds in the folder static in there (target/static if unset), so that other builds, perhaps
#                      by another compiler, are not disturbed
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

only='' machines=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install | --env) only=$1 ;;
    aarch64 | x86_64 | armv7 | riscv64 | wasm32) machines+=("$1") ;;
    *) usage "scripts/release/build-static.sh [--install | --env] [aarch64|x86_64|armv7|riscv64|wasm32]…" ;;
    esac
    shift
done
[ ${#machines[@]} -gt 0 ] || machines=(aarch64)
cd "$root"

# Without `grep -q`, which would end the pipe early: that is a failure here.
rustup_has() { has rustup && rustup target list --installed 2> /dev/null | grep -x "$1" > /dev/null; }
debian_has() { [ -x /usr/bin/rustc ] && [ -x /usr/bin/rustdoc ] && [ -d "/usr/lib/rustlib/$1/lib" ]; }
debian_has_sources() { [ -x /usr/bin/rustc ] && [ -f /usr/lib/rustlib/src/rust/library/Cargo.lock ]; }

# describe MACHINE: its target, what links for it, the Debian packages that bring Rust and that, and the way to its
# standard library.
describe() {
    packages=() cross=() sources=''
    case $1 in
    x86_64)
        target=x86_64-unknown-linux-gnu linker=cc
        packages=(rustc-web libstd-rust-web-dev rust-web-src) cross=(gcc libc6-dev)
        ;;
    aarch64)
        target=aarch64-unknown-linux-gnu linker=aarch64-linux-gnu-gcc
        packages=(rustc-web libstd-rust-web-dev libstd-rust-web-dev:arm64 rust-web-src) cross=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
        ;;
    armv7)
        target=armv7-unknown-linux-gnueabihf linker=arm-linux-gnueabihf-gcc sources=std,panic_abort
        packages=(rustc-web rust-web-src) cross=(gcc-arm-linux-gnueabihf libc6-dev-armhf-cross)
        ;;
    riscv64)
        target=riscv64gc-unknown-linux-gnu linker=riscv64-linux-gnu-gcc sources=std,panic_abort
        packages=(rustc-web rust-web-src) cross=(gcc-riscv64-linux-gnu libc6-dev-riscv64-cross)
        ;;
    wasm32)
        target=wasm32-unknown-unknown linker='' sources=std,panic_abort
        packages=(rustc-web rust-web-src lld) cross=()
        ;;
    esac
}

need_cargo() {
    has cargo && return
    may_install || refuse "needs cargo, which comes with Rust 1.89 or newer (rustup.rs; on Debian: run as root)"
    install_packages cargo-web gcc libc6-dev
}

has_library() { rustup_has "$target" || { debian_has_sources && { [ -n "$sources" ] || debian_has "$target"; }; }; }
has_all() { { [ -z "$linker" ] || has "$linker"; } && has_library; }

install() {
    need_cargo
    has_all && return
    if ! may_install; then
        if ! has_library && has rustup; then rustup target add "$target" >&2 || true; fi
        has_library || refuse "$machine needs Rust's $target (rustup target add $target; on Debian: run as root)"
        has_all || refuse "$machine needs $linker, which links for it (Debian and Ubuntu: apt-get install ${cross[*]})"
        return
    fi
    if [ "$machine" = aarch64 ]; then dpkg --add-architecture arm64; fi
    install_packages "${packages[@]}" "${cross[@]}"
    has_all || refuse "$machine: something is still missing after the installation"
}

# Prints assignments, one a line, that `export` takes.
environment() {
    local name=${target^^}
    name=CARGO_TARGET_${name//-/_}
    printf '%s\n' "CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/static" "${name}_RUSTFLAGS=-C target-feature=+crt-static"
    if [ -n "$linker" ]; then echo "${name}_LINKER=$linker"; fi
    rustup_has "$target" && return
    # Both, or doctests are built by one compiler and linked with the library of another.
    printf '%s\n' RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
    if [ -n "$sources" ]; then echo RUSTC_BOOTSTRAP=1; fi
}

# In a shell of its own, whose environment it changes.
build() (
    mapfile -t assignments < <(environment)
    export "${assignments[@]}"
    # Nothing unwinds, so no tables for that are asked for. A sequence of instructions becomes a function of its own
    # only where that saves more than the function's entry in them takes, which it may have all the same.
    name=CARGO_TARGET_${target^^}_RUSTFLAGS
    name=${name//-/_}
    flags='-C force-unwind-tables=no -C llvm-args=-outliner-benefit-threshold=32'
    flags+=$(path_maps --remap-path-prefix)
    export "$name=${!name} $flags" CFLAGS=${CFLAGS-}
    CFLAGS+=$(path_maps -ffile-prefix-map)
    arguments=(--profile board --quiet --target "$target")
    # A standard library that is built with it, where its sources are: it is as small as the rest, and has neither
    # tables for unwinding nor what prints backtraces, which would have no names to print.
    if [ "${RUSTC-}" = /usr/bin/rustc ] && debian_has_sources; then
        export RUSTC_BOOTSTRAP=1
        arguments+=("-Zbuild-std=std,panic_abort" "-Zbuild-std-features=default,optimize_for_size")
    fi
    if [ "$machine" = wasm32 ]; then
        cargo build "${arguments[@]}" -p fec-core
        realpath -e -- "$CARGO_TARGET_DIR/$target/board/libfec_core.rlib"
        return
    fi
    # Boards do without stores, which double the binary, and without AWS-LC, which takes a C compiler for each target.
    if [ "$machine" != x86_64 ]; then arguments+=(--no-default-features); fi
    cargo build "${arguments[@]}" -p fec-cli
    binary=$(realpath -e -- "$CARGO_TARGET_DIR/$target/board/fec")
    if readelf --dynamic "$binary" 2> /dev/null | grep NEEDED >&2; then
        fail "$binary needs the libraries above: it is not static"
    fi
    echo "$binary"
)

for machine in "${machines[@]}"; do
    describe "$machine"
    install
    case $only in
    --install) ;;
    --env) environment ;;
    *) build ;;
    esac
done
