# shellcheck shell=bash
# What the scripts share. It is sourced and does nothing but set a few variables and find cargo; nothing here leaves the
# folder that the script was called in.

# The script in full, its name in messages, and the project.
self=$(realpath -e -- "$0")
script=$(basename -- "$self" .sh)
root=$(realpath -e -- "$(dirname "${BASH_SOURCE[0]}")/..")

has() { command -v "$1" > /dev/null 2>&1; }

# In front: the packages for ARM bring another rustc to /usr/bin.
has cargo || export PATH="${HOME:-/root}/.cargo/bin:$PATH"

# The comment at the top of the script is its help.
show_help() {
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$self"
    exit 0
}

# usage [WORDS…]: the way to call the script; without WORDS the first indented line of its help.
usage() {
    [ $# -gt 0 ] || set -- "$(sed -n '/^#   /{s/^#   //p;q}' "$self")"
    echo "usage: $*" >&2
    exit 2
}

# fail WORDS…: what should hold does not. refuse WORDS…: the script cannot do its work here.
fail() { echo "$script: $*" >&2; exit 1; }
refuse() { echo "$script: $*" >&2; exit 2; }

# Tells whether packages can be installed: on Debian, as root.
may_install() { has apt-get && [ "$(id -u)" = 0 ]; }

# install_packages PACKAGE…: with the package lists that are there, or new ones if that does not do.
install_packages() {
    local apt=(apt-get install -y -q --no-install-recommends "$@")
    export DEBIAN_FRONTEND=noninteractive
    "${apt[@]}" < /dev/null >&2 || { apt-get update -q >&2 && "${apt[@]}" < /dev/null >&2; }
}

# need PROGRAM PACKAGE…: installs the packages if PROGRAM is not there.
need() {
    has "$1" && return
    may_install || refuse "needs $1 (on Debian: run as root)"
    install_packages "${@:2}"
}

# need_space FOLDER MIB
need_space() {
    local free
    free=$(df -m --output=avail "$1" | tail -n 1)
    [ "$free" -ge "$2" ] || refuse "$1 has $free MiB free, and $2 are needed"
}

# make_scratch [OPTIONS of mktemp…]: the folder $scratch, removed at the end whatever happens.
make_scratch() {
    scratch=$(mktemp -d "$@")
    trap 'rm -rf "$scratch"' EXIT
}

# find_fec [FEC]: the full path of FEC; without it, of one that is built.
find_fec() {
    if [ -n "${1-}" ]; then
        realpath -e -- "$1"
    else
        (cd "$root" && cargo build --release --quiet && realpath -e -- "${CARGO_TARGET_DIR:-target}/release/fec")
    fi
}

# of_workspace KEY: what all packages have in common, by Cargo.toml: version, repository, license.
of_workspace() { sed -n "s/^$1 = \"\(.*\)\"$/\1/p" "$root/Cargo.toml" | sed -n 1p; }

# path_maps OPTION: OPTION=FROM=TO for each folder of this machine whose path a compiler would put into what it makes,
# each with a space in front. Where something was built is nobody's business, and makes no other bytes.
path_maps() {
    local moved sysroot commit
    sysroot=$("${RUSTC:-rustc}" --print sysroot)
    commit=$("${RUSTC:-rustc}" -vV | sed -n 's/^commit-hash: //p')
    for moved in "$root=/fec" "$(realpath -m -- "$root/${CARGO_TARGET_DIR:-target}")=/fec/target" \
        "${CARGO_HOME:-${HOME:-/root}/.cargo}/registry/src=/registry" "$sysroot/lib/rustlib/src/rust=/rustc/$commit"; do
        # Flags cannot have spaces in them.
        if [[ $moved != *[[:space:]]* ]]; then printf ' %s=%s' "$1" "$moved"; fi
    done
}

# compiled_test NAME WHICH…: the program of the tests called NAME (`cargo test`'s WHICH: --lib, --test NAME).
# The whole workspace is named, as in README.md's test command: for one crate alone packages would be compiled again.
compiled_test() {
    cargo test --profile ci --workspace "${@:2}" --no-run --message-format json |
        sed -n "s/.*\"name\":\"$1\".*\"executable\":\"\([^\"]*\)\".*/\1/p"
}

# backends_of COMMAND…: the kernels that this fec has here, separated by commas.
backends_of() { "$@" bench --backend list | paste -s -d ,; }

# build_like MACHINE: exports the environment in which cargo builds as scripts/release/build-static.sh does for MACHINE.
build_like() {
    local assignments
    mapfile -t assignments < <("$root/scripts/release/build-static.sh" --env "$1")
    export "${assignments[@]}"
}

# When, of which revision, by which compiler and on what the figures are that follow.
show_provenance() {
    echo "date $(date -u +%F), revision $(git -C "$root" rev-parse --short HEAD 2> /dev/null || echo unknown), $(rustc --version)"
    grep -m1 'model name' /proc/cpuinfo || true
}

# on_one_core COMMAND…: on the last core, where taskset is there: the first often serves interrupts.
on_one_core() {
    if has taskset; then taskset -c "$(($(nproc) - 1))" "$@"; else "$@"; fi
}
