#!/bin/sh
# Installs fec @VERSION@, its manual and completions: from a release, or from the folder or address that FEC_FROM names,
# to ~/.local, or the folder that PREFIX names. Nothing of it is unpacked before the signature of the list of digests,
# and then the digest of the package, were checked. It needs ssh-keygen (OpenSSH 8.2), tar, and sha256sum or shasum.
set -eu
version=@VERSION@
from=${FEC_FROM:-@REPOSITORY@/releases/download/v$version}
prefix=${PREFIX:-$HOME/.local}
key='@KEY@'

fail() { echo "install: $*" >&2; exit 1; }
get() { case $from in *://*) curl -fsSL --proto =https -o "$1" "$from/$1" ;; *) cp "$from/$1" "$1" ;; esac || fail "cannot get $from/$1"; }
sums() { if command -v sha256sum > /dev/null; then sha256sum -c; else shasum -a 256 -c; fi > /dev/null; }

# As a function, so that half of the script, after a cut connection, does nothing.
main() {
    case $(uname -sm) in
    'Linux x86_64') machine=x86_64-unknown-linux-gnu ;;
    'Linux aarch64' | 'Linux arm64') machine=aarch64-unknown-linux-gnu ;;
    'Linux armv7l' | 'Linux armv8l') machine=armv7-unknown-linux-gnueabihf ;;
    'Linux riscv64') machine=riscv64gc-unknown-linux-gnu ;;
    *) fail "there is no package for $(uname -sm): build it with cargo, from @REPOSITORY@" ;;
    esac
    command -v ssh-keygen > /dev/null || fail "ssh-keygen checks the signature: install OpenSSH's client first"
    case $from in /* | *://*) ;; *) from=$PWD/$from ;; esac
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
    name=fec-$version-$machine
    for file in SHA256SUMS SHA256SUMS.sig "$name.tar.gz"; do get "$file"; done
    echo "fec namespaces=\"fec-release\" $key" > signers
    ssh-keygen -q -Y verify -f signers -I fec -n fec-release -s SHA256SUMS.sig < SHA256SUMS > /dev/null 2>&1 ||
        fail "the list of digests is not signed by the release key: nothing was installed"
    awk -v file="$name.tar.gz" '$2 == file' SHA256SUMS > sum
    [ -s sum ] && sums < sum || fail "$name.tar.gz is not what the release key signed: nothing was installed"
    tar -xzf "$name.tar.gz"
    mkdir -p "$prefix/bin"
    cp -R "$name/share" "$name/lib" "$prefix/"
    # Whole or not at all, also while an older one runs.
    for command in fec fec-night; do
        cp "$name/bin/$command" "$prefix/bin/.$command.new"
        mv "$prefix/bin/.$command.new" "$prefix/bin/$command"
    done
    "$prefix/bin/fec" --version
    case :$PATH: in *:"$prefix/bin":*) ;; *) echo "add it to your path: PATH=$prefix/bin:\$PATH" ;; esac
}
main
