#!/bin/bash
# Checks that the anonymous memory of fec stays under 128 MiB, whatever the shape, the threads and the size.
#
#   scripts/checks/bounds.sh [--full] [--threads LIST] [--folder DIR] [FEC]
#
# Without --full: a payload of 200 MiB, shapes 33+67, 200+10, 1+255 and 128+128, 1, 2 and 16 threads (or LIST): encode
# to shard files, to a container from a file and from a pipe, decode of both and from a pipe (whole, and with m shards
# lost), verify. At 1+255 the payload is 3 MiB, which becomes 768 MiB.
# With --full only: 5 GiB through `fec encode - | fec decode - | cmp`, which uses no disk, and a sparse file of 5 GiB as
# shard files 200 + 10 and back (about 11 GiB of DIR, the system's folder for temporary files if unset).
#
# With one thread the system is told not to grant more than the limit (RLIMIT_DATA), as on a small board.
# Peaks are the largest RssAnon of /proc/PID/status, read every 2 ms: pages of files do not count, stacks and buffers
# do.
#   FEC_LIMIT_MIB   the limit; 128 if unset
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

folder=${TMPDIR:-/tmp} full='' fec='' all_threads='1 2 16'
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --full) full=yes ;;
    --threads) [ $# -ge 2 ] || usage; all_threads=$2; shift ;;
    --folder) [ $# -ge 2 ] || usage; folder=$2; shift ;;
    -*) usage ;;
    *) [ -z "$fec" ] || usage; fec=$1 ;;
    esac
    shift
done
folder=$(realpath -e -- "$folder")
fec=$(find_fec "$fec")
need_space "$folder" "$([ -n "$full" ] && echo 12000 || echo 3500)"
make_scratch -p "$folder" --suffix=.fec-bounds
cd "$scratch"

# watch.py LABEL COMMAND…: runs it, and adds "LABEL <tab> peak in KiB <tab> seconds" to the file peaks.
cat > watch.py <<'PYTHON'
import subprocess, sys, time

start = time.perf_counter()
child = subprocess.Popen(sys.argv[2:])
peak = 0
with open("/proc/%d/status" % child.pid, "rb", buffering=0) as status:
    while child.poll() is None:
        status.seek(0)
        try:
            for line in status.read().splitlines():
                if line.startswith(b"RssAnon:"):
                    peak = max(peak, int(line.split()[1]))
        except OSError:
            break
        time.sleep(0.002)
child.wait()
with open("peaks", "a") as f:
    f.write("%s\t%d\t%.1f\n" % (sys.argv[1], peak, time.perf_counter() - start))
sys.exit(child.returncode if child.returncode >= 0 else 1)
PYTHON

# generate.py BYTES: bytes without repetition: random megabytes from a pool, each with its number in front.
cat > generate.py <<'PYTHON'
import random, sys

left, pool, number = int(sys.argv[1]), random.Random("bounds").randbytes(64 << 20), 0
while left:
    at = number * 4099 % (63 << 20)
    block = (number.to_bytes(8, "little") + pool[at + 8:at + (1 << 20)])[:left]
    sys.stdout.buffer.write(block)
    left -= len(block)
    number += 1
PYTHON

# lose.py CONTAINER: overwrites the records of shards 0 … m-1 of every group but the last (docs/FORMAT.md, 9).
cat > lose.py <<'PYTHON'
import os, struct, sys

with open(sys.argv[1], "r+b") as f:
    head = f.read(128)
    k, m, length, sets = struct.unpack_from("<HHII", head, 36)
    proof = 32 * ((max(k, m) - 1).bit_length() + 1 + (sets - 1).bit_length())
    row = sets * (128 + -(-proof // 64) * 64 + length)
    at = 0
    while at + (k + m) * row < os.path.getsize(sys.argv[1]):
        f.seek(at)
        f.write(bytes(m * row))
        at += (k + m) * row
PYTHON

limit=${FEC_LIMIT_MIB:-128}
over=0
printf '%-30s %8s %3s %10s %8s\n' command shape -j 'peak MiB' seconds

# run LABEL SHAPE THREADS ARGUMENTS…: watches one fec; its output goes on, so that it can stand in a pipe.
run() {
    local label=$1 shape=$2 threads=$3
    shift 3
    if ! (
        # As on a small board: one thread, and the system grants no more than the limit.
        if [ "$threads" = 1 ]; then ulimit -d $((limit * 1024)); fi
        exec python3 watch.py "$label"$'\t'"$shape"$'\t'"$threads" "$fec" "$@" -q -j "$threads" 2> "complaint of $1"
    ); then
        echo "bounds: $label $shape -j $threads failed: $(cat "complaint of $1")" >&2
        return 1
    fi
}

# Prints what was measured since the last call, and counts what is over the limit.
report() {
    local label shape threads peak seconds mark
    while IFS=$'\t' read -r label shape threads peak seconds; do
        mark=
        if [ "$peak" -ge $((limit * 1024)) ]; then
            mark='  OVER'
            over=$((over + 1))
        fi
        printf '%-30s %8s %3s %8d.%d %8s%s\n' \
            "$label" "$shape" "$threads" $((peak / 1024)) $((peak % 1024 * 10 / 1024)) "$seconds" "$mark"
    done < peaks
    rm -f peaks
}

if [ -n "$full" ]; then
    bytes=$((5 << 30))
    for threads in 2 16; do
        python3 generate.py "$bytes" | run 'encode -, 5 GiB' 33+67 "$threads" encode - -o - |
            run 'decode -, 5 GiB' 33+67 "$threads" decode - -o - | cmp - <(python3 generate.py "$bytes")
        report
    done
    truncate -s "$bytes" payload
    # Data at both ends and in the middle, or every set would be the same.
    for at in 0 2500 5119; do
        python3 generate.py $((1 << 20)) | dd of=payload bs=1M seek="$at" conv=notrunc status=none
    done
    run 'encode to shards, 5 GiB' 200+10 2 encode payload -k 200 -m 10 -o shards/ > root
    run 'verify shards, 5 GiB' 200+10 2 verify shards --root @root
    rm shards/payload.00[0-9].shard
    run 'decode shards, m lost, 5 GiB' 200+10 2 decode shards --root @root -o back
    cmp payload back
    report
else
    for entry in 33:67:200 200:10:200 1:255:3 128:128:200; do
        IFS=: read -r k m mib <<< "$entry"
        shape=$k+$m
        python3 generate.py $((mib << 20)) > payload
        for threads in $all_threads; do
            run 'encode to shards' "$shape" "$threads" encode payload -k "$k" -m "$m" -o shards/ --no-sync > root
            run 'verify shards' "$shape" "$threads" verify shards --root @root
            run 'decode shards' "$shape" "$threads" decode shards -o back --no-sync
            cmp payload back
            # The worst case: as many shards are gone as may be, originals first.
            find shards -name '*.shard' | sort | sed -n "1,${m}p" | xargs rm
            run 'decode shards, m lost' "$shape" "$threads" decode shards -o back --no-sync -f
            cmp payload back
            run 'repair shards, m lost' "$shape" "$threads" repair shards --root @root --no-sync
            [ "$(find shards -name '*.shard' | wc -l)" = $((k + m)) ]
            rm -r shards
            run 'encode to container' "$shape" "$threads" encode payload -k "$k" -m "$m" -o whole.fec --no-sync > root
            # shellcheck disable=SC2002 # It shall be a pipe.
            cat payload | run 'encode from pipe' "$shape" "$threads" encode - -k "$k" -m "$m" > piped.fec
            run 'verify container' "$shape" "$threads" verify whole.fec --root @root
            # The container `whole` has a single group as large as the payload, `piped` has groups of a bounded size.
            for container in whole piped; do
                run "decode container, $container" "$shape" "$threads" decode $container.fec -o back --no-sync -f
                cmp payload back
                # shellcheck disable=SC2002
                cat $container.fec | run "decode from pipe, $container" "$shape" "$threads" decode - | cmp - payload
                was=$(sha256sum < $container.fec)
                python3 lose.py $container.fec
                run "decode, m lost, $container" "$shape" "$threads" decode $container.fec -o back --no-sync -f
                cmp payload back
                # shellcheck disable=SC2002
                cat $container.fec | run "from pipe, m lost, $container" "$shape" "$threads" decode - | cmp - payload
                run "repair, m lost, $container" "$shape" "$threads" repair $container.fec --no-sync
                [ "$(sha256sum < $container.fec)" = "$was" ]
                rm $container.fec
            done
            rm back
        done
        report
    done
fi
[ "$over" = 0 ] || fail "$over above $limit MiB"
echo "bounds: all under $limit MiB"
