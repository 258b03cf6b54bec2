#!/bin/bash
# Checks what becomes part of fec by the rules of deny.toml: licences, sources, versions without bounds.
#
#   scripts/checks/deny.sh [--install] [--advisories]
#
# --advisories asks for known faults of the packages too, which takes the network: the list of them is a repository that
# is fetched.
# --install gets cargo-deny if it is not there, which takes minutes. Exit code 2 if it is not there.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

install='' checks=(licenses bans sources)
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --install) install=yes ;;
    --advisories) checks+=(advisories) ;;
    *) usage ;;
    esac
    shift
done
if ! cargo deny --version > /dev/null 2>&1; then
    [ -n "$install" ] || refuse "needs cargo-deny (--install gets it)"
    cargo install cargo-deny --locked || refuse "cargo-deny cannot be had here"
fi
cd "$root"
for manifest in Cargo.toml crates/fec-python/Cargo.toml; do
    cargo deny --manifest-path "$manifest" --config "$root/deny.toml" --locked check --hide-inclusion-graph "${checks[@]}" ||
        fail "$manifest: cargo deny refuses it"
done
