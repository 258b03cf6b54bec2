#!/bin/bash
# Encodes every file of a folder on two workers: xargs hands out the files, fec makes it safe to do so again.
#
#   xargs.sh IN OUT
#
# A line of JSON for each file on standard output. FEC is the command, fec if it is not set.
set -euo pipefail
in=${1?IN} out=${2?OUT}
mkdir -p "$out"
export FEC=${FEC:-fec} OUT=$out
# Four files for each fec. If any of them fails xargs goes on, and ends with 123: the lines say which, and with which
# code.
# shellcheck disable=SC2016 # The shell of each worker expands it.
find "$in" -type f -print0 | sort -z | xargs -0 -r -P 2 -n 4 sh -c \
    'printf "%s\0" "$@" | "$FEC" encode --files-from - -0 -o "$OUT/{/}.fec" --keep --json -q -j 1' sh
