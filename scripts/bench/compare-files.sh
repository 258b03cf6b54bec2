#!/bin/bash
# Times whole commands against plain tools that go through the same bytes, in turns, and prints medians and their
# ratios.
#
#   scripts/bench/compare-files.sh [--folder DIR] [--pairs N] [--mib M] [--threads N] [--no-disk] [FEC]
#
# M MiB (1024) of random data become 100 shard files with -j N (2), all read from the page cache, N pairs (5):
#   `fec encode` against `cp` of one file as large as all shard files together: on the disk at the end (fec's default
#   against `cp` followed by `sync` of the copy; not with --no-disk), and in the page cache (--no-sync against cp
#   alone);
#   `fec decode` of the shard files, all intact, to a file against `cat` of those with the originals to one: on the disk
#   (the copy followed by `sync` of it), and in the page cache;
#   `fec verify` of the shard files against `b3sum` of them, if b3sum is there (cargo install b3sum).
# DIR (the system's folder for temporary files if unset) must be on a disk for the figures with sync to mean anything;
# it takes 8 times M MiB. Processor time tells more than the clock where other work runs on the machine.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

folder=${TMPDIR:-/tmp} pairs=5 mib=1024 threads=2 disk=yes fec=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --folder | --pairs | --mib | --threads)
        [ $# -ge 2 ] || usage
        case $1 in --folder) folder=$2 ;; --pairs) pairs=$2 ;; --mib) mib=$2 ;; --threads) threads=$2 ;; esac
        shift ;;
    --no-disk) disk=no ;;
    -*) usage ;;
    *) [ -z "$fec" ] || usage; fec=$1 ;;
    esac
    shift
done
folder=$(realpath -e -- "$folder")
fec=$(find_fec "$fec")
need_space "$folder" $((8 * mib))
make_scratch -p "$folder" --suffix=.fec-files
file_system=$(stat -f -c %T "$scratch")
echo "compare-files: $mib MiB to 33 + 67 shard files, -j $threads, $pairs pairs, file system $file_system, $(nproc) CPUs," \
    "load $(cut -d ' ' -f 1-3 /proc/loadavg)"
[ "$file_system" != tmpfs ] || echo "compare-files: tmpfs is no disk: the figures with sync say nothing" >&2

python3 - "$fec" "$scratch" "$mib" "$threads" "$pairs" "$disk" <<'PYTHON'
import os, resource, shutil, subprocess, sys, time

fec, scratch, mib, threads, pairs, disk = sys.argv[1:4] + sys.argv[4:7]
mib, pairs = int(mib), int(pairs)
payload, shards, kept, big, copy, again = (
    os.path.join(scratch, x) for x in ("payload", "shards", "kept", "big", "copy", "again")
)


def warm(path, size):
    with open(path, "wb") as f:
        for left in range(size, 0, -(1 << 20)):
            f.write(os.urandom(min(1 << 20, left)))


def processor():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(commands):
    # Nothing of an earlier turn may still be on its way to the disk.
    os.sync()
    start, used = time.perf_counter(), processor()
    for command in commands:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    times = time.perf_counter() - start, processor() - used
    shutil.rmtree(shards, ignore_errors=True)
    for path in copy, again:
        if os.path.exists(path):
            os.remove(path)
    return times


def median(values):
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2


def race(name, ours, theirs):
    sides = ours, theirs
    for side in sides:
        timed(side)
    times = [], []
    for turn in range(pairs):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            times[i].append(timed(sides[i]))
    clock = [median([t[0] for t in side]) for side in times]
    cpu = [median([t[1] for t in side]) for side in times]
    ratio = median([a[0] / b[0] for a, b in zip(*times)])
    row = (name, clock[0], clock[1], ratio, cpu[0], cpu[1], cpu[0] / cpu[1])
    print("| %s | %.3f | %.3f | %.2f | %.3f | %.3f | %.2f |" % row, flush=True)


encode = [fec, "encode", "-q", "-k", "33", "-m", "67", "-j", threads, payload, "-o"]
warm(payload, mib << 20)
subprocess.run(encode + [kept + "/", "--no-sync"], check=True, stdout=subprocess.DEVNULL)
files = sorted(os.path.join(kept, x) for x in os.listdir(kept))
size = sum(os.path.getsize(x) for x in files)
warm(big, size)
print("%d bytes of payload, %d bytes of shard files; medians in seconds\n" % (mib << 20, size))
print("| | fec | other | ratio | fec's processor time | other's | ratio |\n|---|---|---|---|---|---|---|", flush=True)
if disk == "yes":
    race("encode / cp, on the disk", [encode + [shards + "/"]], [["cp", big, copy], ["sync", copy]])
race("encode / cp, in the page cache", [encode + [shards + "/", "--no-sync"]], [["cp", big, copy]])
decode = [fec, "decode", "-q", "-j", threads, kept, "-o", again]
cat = ["sh", "-c", 'cat "$@" > "$0"', copy] + files[:33]
if disk == "yes":
    race("decode / cat of the originals, on the disk", [decode], [cat, ["sync", copy]])
race("decode / cat of the originals, in the page cache", [decode + ["--no-sync"]], [cat])
if shutil.which("b3sum"):
    race("verify / b3sum", [[fec, "verify", "-q", "-j", threads, kept]], [["b3sum", "--num-threads", threads] + files])
else:
    print("compare-files: no b3sum (cargo install b3sum): verify is not compared", file=sys.stderr)
PYTHON
