#!/usr/bin/env python3
"""Damage that is scattered over files, and how much of it `fec repair` mends.

    scattered.py --fec FEC --mb MB [--files N] [--seeds N] [--seed N] [--blocks SHARE] [--sectors N] [--deleted SHARE]
                 [--redundancy PERCENT]

Each seed damages the same tree of N files with MB million random bytes anew: a byte in SHARE % of all blocks of 4 KiB,
N sectors of 512 bytes, and whole files with SHARE % of the bytes deleted. Times of files are put back, as rot leaves
them. `fec repair` has to end with 0, and every file to be what it was, bit for bit. Exit code 1 if not.
"""
import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile

BLOCK, SECTOR = 4096, 512


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "blake2b").digest()


def make(folder, total, files, seed):
    """Files of random bytes, of about the same length; their digests."""
    os.mkdir(folder)
    rng, made = random.Random(seed), {}
    for nth in range(files):
        path = os.path.join(folder, "%05d" % nth)
        left = total // files
        with open(path, "wb") as f:
            while left:
                now = min(left, 1 << 24)
                f.write(rng.randbytes(now))
                left -= now
        made[path] = digest(path)
    return made


def spoil(path, at, length, rng):
    stat = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(at)
        old = f.read(length)
        f.seek(at)
        f.write(bytes(x ^ rng.randrange(1, 256) for x in old))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def damage(made, args, rng):
    """Damages the tree; returns what was done, in words."""
    paths, told = sorted(made), []
    if args.deleted:
        order = rng.sample(paths, len(paths))
        share, gone = 0, 0
        total = sum(os.path.getsize(path) for path in paths)
        while share + os.path.getsize(order[gone]) <= total * args.deleted / 100:
            share += os.path.getsize(order[gone])
            os.remove(order[gone])
            gone += 1
        told.append("%d files" % gone)
    left = [path for path in paths if os.path.exists(path)]
    for what, unit, count in (("blocks", BLOCK, None), ("sectors", SECTOR, args.sectors)):
        places = [(path, at) for path in left for at in range(0, os.path.getsize(path), unit)]
        if what == "blocks":
            count = int(len(places) * args.blocks / 100)
        for path, at in rng.sample(places, count):
            spoil(path, at, 1 if what == "blocks" else unit, rng)
        told += ["%d %s" % (count, what)] if count else []
    return ", ".join(told)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--mb", type=int, required=True)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--blocks", type=float, default=0)
    parser.add_argument("--sectors", type=int, default=0)
    parser.add_argument("--deleted", type=float, default=0)
    parser.add_argument("--redundancy", type=float, default=16)
    args = parser.parse_args()
    fec, bad, told = os.path.abspath(args.fec), 0, ""
    with tempfile.TemporaryDirectory(prefix="scattered-") as home:
        made = make(os.path.join(home, "tree"), args.mb * 1_000_000, args.files, args.seed)
        run = lambda *words: subprocess.run([fec, *words], cwd=home, capture_output=True, text=True)
        protected = run("protect", "--portable", "--no-sync", "-r", "%g%%" % args.redundancy, "tree")
        if protected.returncode:
            sys.exit(protected.stderr)
        for seed in range(args.seed, args.seed + args.seeds):
            told = damage(made, args, random.Random(seed))
            repaired = run("repair", "--no-sync", "-q", "tree.fecp")
            wrong = [path for path in made if not os.path.exists(path) or digest(path) != made[path]]
            if repaired.returncode or wrong:
                bad += 1
                print("seed %d: %s: exit code %d, %d files wrong: %s" % (seed, told, repaired.returncode, len(wrong), repaired.stderr))
                break
    print("%d MB in %d files, %s: %d of %d seeds mended" % (args.mb, args.files, told, seed - args.seed + 1 - bad, args.seeds))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
