#!/bin/bash
# Builds the library for C, and installs it: include/fec.h, libfec.so, libfec.a, and fec.pc for pkg-config.
#
#   scripts/release/c-library.sh PREFIX
#
# PREFIX is a folder such as /usr/local. CARGO_TARGET_DIR is where it builds, FEC_PROFILE another profile than release.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

case ${1-} in -h | --help) show_help ;; '' | -*) usage ;; esac
[ $# = 1 ] || usage
profile=${FEC_PROFILE:-release}
mkdir -p "$1"
prefix=$(realpath -e -- "$1")
cd "$root"
cargo build --locked --profile "$profile" -p fec-c
built=${CARGO_TARGET_DIR:-target}/$profile
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | sed -n 1p)

mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
install -m 644 crates/fec-c/include/fec.h "$prefix/include/fec.h"
install -m 644 "$built/libfec.a" "$prefix/lib/libfec.a"
# Programs look for the name of the interface's version, linkers for the one without.
install -m 755 "$built/libfec.so" "$prefix/lib/libfec.so.$version"
ln -sf "libfec.so.$version" "$prefix/lib/libfec.so.${version%%.*}"
ln -sf "libfec.so.${version%%.*}" "$prefix/lib/libfec.so"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" crates/fec-c/fec.pc.in > "$prefix/lib/pkgconfig/fec.pc"
echo "fec $version for C is in $prefix"
