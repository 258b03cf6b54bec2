#!/usr/bin/env python3
"""Measures the cost of sealing: a whole `fec encode` of random bytes, sealed for one X25519 recipient, against the same
in the clear.

    seal_costs.py --fec BIN [--folder /dev/shm] [--size MIB] [--pairs N] [--cipher NAME] [--threads N] [--container]
                  [K+M ...]

The two commands take turns, the first of each pair is drawn, and their outputs are removed in between. The script
prints a table: medians of wall and processor time, and ratios of the medians with their quartiles by pairs. It needs
Python 3.9, nothing else.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CODES = ("33+67", "86+14")


def run(command):
    """Wall and processor seconds of a command that must succeed."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("%s: exit code %d" % (" ".join(command), process.returncode))
    return wall, usage.ru_utime + usage.ru_stime


def fill(path, size):
    with open(path, "wb") as f:
        left = size
        while left:
            left -= f.write(os.urandom(min(left, 1 << 24)))


def compare(options, data, recipient, code):
    """Times of all pairs, in the clear and sealed."""
    k, m = code.split("+")
    out = data + (".fec" if options.container else ".shards/")
    times = {False: [], True: []}
    for pair in range(options.pairs + 1):
        for is_sealed in random.sample([False, True], 2):
            command = [options.fec, "encode", "-q", "-k", k, "-m", m, "-o", out]
            if options.threads:
                command += ["-j", str(options.threads)]
            if is_sealed:
                command += ["--recipient", recipient, "--cipher", options.cipher]
            taken = run(command + [data])
            os.remove(out) if options.container else shutil.rmtree(out)
            if pair:                                # the first pair warms up
                times[is_sealed].append(taken)
    return times


def report(code, times):
    cells = [code]
    for what in (0, 1):
        clear, under_seal = ([taken[what] for taken in times[is_sealed]] for is_sealed in (False, True))
        pairs = sorted(b / a for a, b in zip(clear, under_seal))
        low, high = pairs[len(pairs) // 4], pairs[-1 - len(pairs) // 4]
        a, b = statistics.median(clear), statistics.median(under_seal)
        cells += ["%.2f" % a, "%.2f" % b, "%.3f" % (b / a), "%.3f to %.3f" % (low, high)]
    print("| %s |" % " | ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", default="target/release/fec")
    parser.add_argument("--folder", default="/dev/shm", help="where the files are [%(default)s]")
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="of the file [%(default)s]")
    parser.add_argument("--pairs", type=int, default=7, help="of runs that count [%(default)s]")
    parser.add_argument("--cipher", default="aes-256-gcm", help="[%(default)s]")
    parser.add_argument("--threads", type=int, help="of each run [all processors]")
    parser.add_argument("--container", action="store_true", help="write one file, not a folder of shards")
    parser.add_argument("codes", nargs="*", default=CODES, metavar="K+M", help="[%s]" % " ".join(CODES))
    options = parser.parse_args()
    options.fec = os.path.realpath(options.fec)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        data, key = os.path.join(folder, "data"), os.path.join(folder, "key")
        fill(data, options.size << 20)
        subprocess.run([options.fec, "keygen", "-o", key], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(key) as f:
            lines = [line.split()[-1] for line in f if line.startswith("# public key: age1")]
        if len(lines) != 1:
            sys.exit("fec keygen wrote no public key")
        print("%d MiB, %s, seconds; load of the machine before: %s\n" % (options.size, options.cipher, os.getloadavg()[0]))
        print("| shards | clear | sealed | ratio | by pairs | CPU clear | CPU sealed | ratio | by pairs |\n|---|---:|---:|---:|---|---:|---:|---:|---|")
        for code in options.codes:
            report(code, compare(options, data, lines[0], code))


if __name__ == "__main__":
    main()
