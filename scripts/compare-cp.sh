#!/bin/bash
# Times `fec encode` to 100 shard files against `cp`, in turns, and prints medians and their ratios.
#
#   scripts/compare-cp.sh [--folder DIR] [--pairs N] [--mib M] [--threads N] [FEC]
#
# Rivals of each encoding of M MiB (200) of random data with -j N (2), all read from the page cache, N pairs (9):
#   cp of one file as large as all shard files together, and cp of the payload alone;
#   with sync (fec's default against `cp` followed by `sync` of the copy) and without (--no-sync against cp alone).
# DIR (the system's folder for temporary files if unset) must be on a disk for the figures with sync to mean anything.
set -euo pipefail

usage() { echo "usage: scripts/compare-cp.sh [--folder DIR] [--pairs N] [--mib M] [--threads N] [FEC]" >&2; exit 2; }
folder=${TMPDIR:-/tmp} pairs=9 mib=200 threads=2 fec=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --folder | --pairs | --mib | --threads)
        [ $# -ge 2 ] || usage
        case $1 in --folder) folder=$2 ;; --pairs) pairs=$2 ;; --mib) mib=$2 ;; --threads) threads=$2 ;; esac
        shift ;;
    -*) usage ;;
    *) [ -z "$fec" ] || usage; fec=$(realpath -e -- "$1") ;;
    esac
    shift
done
folder=$(realpath -e -- "$folder")
cd "$(dirname "$0")/.."
if [ -z "$fec" ]; then
    cargo build --release --quiet
    fec=$(realpath -e -- "${CARGO_TARGET_DIR:-target}/release/fec")
fi
scratch=$(mktemp -d "$folder/fec-cp.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
file_system=$(stat -f -c %T "$scratch")
echo "compare-cp: $mib MiB to 33 + 67 shard files, -j $threads, $pairs pairs, file system $file_system, $(nproc) CPUs"
[ "$file_system" != tmpfs ] || echo "compare-cp: tmpfs is no disk: the figures with sync say nothing" >&2

python3 - "$fec" "$scratch" "$mib" "$threads" "$pairs" <<'PYTHON'
import os, shutil, subprocess, sys, time

fec, scratch, mib, threads, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
payload, shards, big, copy = (os.path.join(scratch, x) for x in ("payload", "shards", "big", "copy"))


def warm(path, size):
    with open(path, "wb") as f:
        for left in range(size, 0, -(1 << 20)):
            f.write(os.urandom(min(1 << 20, left)))


def timed(*commands):
    # Nothing of an earlier turn may still be on its way to the disk.
    os.sync()
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    for path in (shards, copy):
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
    return seconds


def median(values):
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2


encode = [fec, "encode", "-q", "-k", "33", "-m", "67", "-j", threads, "-o", shards + "/", payload]
warm(payload, mib << 20)
subprocess.run(encode + ["--no-sync"], check=True, stdout=subprocess.DEVNULL)
size = sum(os.path.getsize(os.path.join(shards, x)) for x in os.listdir(shards))
shutil.rmtree(shards)
warm(big, size)
print("%d bytes of payload, %d bytes of shard files" % (mib << 20, size), flush=True)
rivals = {
    "with sync": (encode, ["sync", copy]),
    "without sync": (encode + ["--no-sync"], None),
}
print("%-13s %10s %12s %12s %14s %14s" % ("", "fec", "cp as many", "cp payload", "fec / as many", "fec / payload"))
for name, (ours, sync) in rivals.items():
    turns = [[ours]] + [[["cp", source, copy]] + ([sync] if sync else []) for source in (big, payload)]
    for commands in turns:
        timed(*commands)
    times = [[], [], []]
    for _ in range(pairs):
        for i, commands in enumerate(turns):
            times[i].append(timed(*commands))
    a, b, c = map(median, times)
    print("%-13s %8.3f s %10.3f s %10.3f s %14.2f %14.2f" % (name, a, b, c, a / b, a / c), flush=True)
    print("%-13s %s" % ("  range", "   ".join("%.3f–%.3f" % (min(t), max(t)) for t in times)), flush=True)
PYTHON
