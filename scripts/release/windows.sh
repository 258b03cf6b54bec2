#!/bin/bash
# fec.exe for Windows on x86_64, from Linux.
#
#   scripts/release/windows.sh [--to FOLDER] [--profile PROFILE]
#
# FOLDER gets fec.exe: without it, the folder of the build, which is printed. Needs rustup, which brings the standard
# library, Debian's mingw and nasm; on Debian, as root, it installs the latter two. Stores are in it, sidecars are not.
#
#   CARGO_TARGET_DIR   where it builds
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

to='' profile=release
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --to) to=${2:?} && shift 2 ;;
    --profile) profile=${2:?} && shift 2 ;;
    *) usage ;;
    esac
done
need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64
need nasm nasm
has rustup || refuse 'needs rustup, which has the standard library for Windows'
target=x86_64-pc-windows-gnu
rustup target add "$target"
cd "$root"
cargo build --locked --profile "$profile" --target "$target" -p fec-cli
made=${CARGO_TARGET_DIR:-target}/$target/$profile/fec.exe
if [ -n "$to" ]; then
    mkdir -p "$to"
    cp "$made" "$to/"
    made=$to/fec.exe
fi
echo "$made"
