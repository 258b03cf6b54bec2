#!/bin/bash
# Builds the static binary for 64-bit ARM boards and prints its path; see build-static.sh, which this calls.
#
#   scripts/release/build-arm.sh [--install]
set -euo pipefail
exec "$(dirname "$0")/build-static.sh" "$@" aarch64
