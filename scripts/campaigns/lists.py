#!/usr/bin/env python3
"""A seeded campaign against the list of a repair (docs/FORMAT.md, section 17.10), beside scripts/oracle.

    lists.py --fec PATH [--seed S] [--rounds N] [--dir DIR]

Each round protects a random tree, lets some files rot, and kills `fec repair` at a random write (with strace; where
that cannot be used the list is the oracle's). The list has to be the oracle's, byte for byte. Then files are half
mended and edited at random, and the list is sometimes replaced by a made-up one, or by a later one with the right
digests. `fec repair` has to mend exactly what the oracle takes for half mended, and to leave every other edit as it is.
Round r of seed S is round 0 of seed S + r. Exit code 1 when anything did not hold.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from judge import Wrong, expect
from oracle import sidecar as oracle_sidecar
from oracle.sidecar import FILE

WHEN = 1_600_000_000 * 10**9
LIST = "d.fecp.repairing"


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data, when=None):
    with open(path, "r+b" if os.path.exists(path) else "wb") as f:
        f.write(data)
        f.truncate()
    if when:
        os.utime(path, ns=(when, when))


def tick():
    """Waits, so that later changes are later by the clock of the system."""
    time.sleep(0.02)


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def rotten(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data))
        end = min(len(data), at + rng.choice([1, 100, 5000]))
        data[at:end] = rng.randbytes(end - at)
    return bytes(data)


def round_of(fec, rng, folder, traced):
    names = ["d/%d" % nth for nth in range(rng.randint(1, 6))]
    os.mkdir(os.path.join(folder, "d"))
    at = {name: os.path.join(folder, name) for name in names}
    scale = rng.choice([300, 9000, 200_000])
    right = {name: rng.randbytes(rng.randint(1, scale)) for name in names}
    for nth, name in enumerate(names):
        write(at[name], right[name], WHEN + nth)
    expect(run([fec, "protect", "--portable", "-q", "-r", "300%", "d"], folder).returncode == 0, "protect fails")
    hit = rng.sample(names, rng.randint(1, len(names)))
    old = {name: rotten(rng, right[name]) for name in hit}
    for name in hit:
        write(at[name], old[name], WHEN + names.index(name))
    reader = oracle_sidecar.Reader(read(os.path.join(folder, "d.fecp")))
    number = {os.fsdecode(x.path): n for n, x in enumerate(reader.catalog.entries) if x.kind & 15 == FILE}
    base, path = os.fsencode(folder), os.path.join(folder, LIST)
    damaged = [number[name] for name in hit if old[name] != right[name]]
    text = oracle_sidecar.repair_list(reader, base, damaged)
    if traced and damaged:
        # The first write is that of the list.
        where = ["-e", "trace=pwrite64", "-e", "inject=pwrite64:signal=KILL:when=%d" % rng.randint(2, 3)]
        run(["strace", "-f", "-qq", "-o", os.devnull, *where, fec, "repair", "-j", "1", "d.fecp"], folder)
        if os.path.exists(path):
            expect(read(path).decode() == text, "the list is\n%s\nand not\n%s" % (read(path).decode(), text))
        for name in hit:
            write(at[name], old[name], WHEN + names.index(name))
    if os.path.exists(path):
        os.remove(path)
    if rng.random() < 0.2:
        text = text.splitlines()[0] + "\n" + "".join("%d\n" % x for x in range(len(names) + 1))
    write(path, text.encode())
    os.chmod(path, 0o600)
    tick()
    changed = {}
    for name in hit:
        now = bytearray(old[name])
        for start in range(0, len(now), 512):                       # as writes reach the disk
            if rng.random() < 0.5:
                end = start + rng.choice([512, 4096, 100_000])
                now[start:end] = right[name][start:end]
        if rng.random() < 0.4:
            at_byte = rng.randrange(len(now))
            now[at_byte] ^= 1 << rng.randrange(8)                   # somebody's edit
        changed[name] = bytes(now)
        write(at[name], changed[name])
    if rng.random() < 0.2:
        tick()
        planted = oracle_sidecar.repair_list(reader, base, [number[x] for x in hit])
        os.remove(path)
        write(path, planted.encode())
        os.chmod(path, 0o600)
    begun = oracle_sidecar.half_mended(reader, base, path)
    done = run([fec, "repair", "d.fecp"], folder)
    for name in hit:
        is_begun = number[name] in begun or changed[name] == right[name]
        expect(read(at[name]) == (right[name] if is_begun else changed[name]),
               "%s: %s\n%s" % (name, "was not mended" if is_begun else "was reverted", done.stderr.decode()))
    left = any(number[x] not in begun and changed[x] != right[x] for x in hit)
    expect(done.returncode == int(left), "exit code %d: %s" % (done.returncode, done.stderr.decode()))
    return len(begun), sum(number[x] not in begun and changed[x] != right[x] for x in hit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--dir")
    args = parser.parse_args()
    fec = os.path.abspath(args.fec)
    test = shutil.which("strace") and run(["strace", "-f", "-e", "trace=none", "true"], ".")
    traced, failed, mended, kept = bool(test) and test.returncode == 0, 0, 0, 0
    for nth in range(args.rounds):
        folder = tempfile.mkdtemp(prefix="fec-list-", dir=args.dir)
        try:
            begun, left = round_of(fec, random.Random(args.seed + nth), folder, traced)
            mended, kept = mended + begun, kept + left
        except Wrong as wrong:
            failed += 1
            print("FAILED %s; again: --seed %d --rounds 1" % (wrong, args.seed + nth), flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print("lists: %d rounds%s, %d half mended files mended, %d edits left, %d failed"
          % (args.rounds, "" if traced else " without strace", mended, kept, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
