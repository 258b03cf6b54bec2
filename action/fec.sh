#!/bin/bash
# Finds the command for the actions: one that is there already, a package that is fetched and has the digest that was
# asked for, or what cargo builds of the action's own sources. Its path is the output `path`.
#
# Environment, as action.yml gives it: GIVEN (a path, or empty), URL and SHA256 (of a package, or both empty), and of
# the runner RUNNER_TEMP, GITHUB_OUTPUT and GITHUB_ACTION_PATH.
set -euo pipefail

fail() { echo "::error::fec: $*" >&2; exit 1; }
folder=$RUNNER_TEMP/fec-bin

if [ -n "$GIVEN" ]; then
    [ -z "$URL$SHA256" ] || fail "fec names a command that is there, so binary-url and binary-sha256 say nothing"
    path=$GIVEN
elif [ -n "$URL$SHA256" ]; then
    [[ $SHA256 =~ ^[0-9a-f]{64}$ ]] || fail "binary-sha256 is the digest of the package, 64 hexadecimal digits, not '$SHA256'"
    [[ $URL = https://* || $URL = file://* ]] || fail "binary-url begins with https://, not '$URL'"
    rm -rf "$folder"
    mkdir -p "$folder"
    curl --fail --silent --show-error --location --proto =https,file --retry 3 --output "$folder.tar.gz" "$URL" || fail "$URL cannot be fetched"
    # Before anything is unpacked.
    sha256sum --check --status <<< "$SHA256  $folder.tar.gz" ||
        fail "$URL has another digest: $(sha256sum < "$folder.tar.gz" | cut -d ' ' -f 1)"
    tar --extract --gzip --file "$folder.tar.gz" --directory "$folder" --strip-components=1
    path=$folder/bin/fec
    [ -x "$path" ] || fail "$URL is no package of fec: it has no bin/fec"
else
    # As old as the action itself: the reference that names it pins both.
    cargo install --quiet --locked --path "$GITHUB_ACTION_PATH/../../crates/fec-cli" --root "$folder"
    path=$folder/bin/fec
fi
"$path" --version
echo "path=$path" >> "$GITHUB_OUTPUT"
