#!/usr/bin/env python3
"""Measures what `fec protect --update` costs as a folder grows and is pruned: bytes coded, and the sidecar's length.

    growth.py --fec PATH [--seed S] [--nights N] [--mb MB] [--grow PERCENT] [--prune PERCENT] [--file KB] [--retire]
              [--dir DIR]

A folder of MB megabytes in files of KB kilobytes and around grows each night by PERCENT in new files; each seventh
night, PERCENT of its bytes are deleted first. With --retire these move to another folder, the update is told so, and
they are deleted after it. Each night ends with `fec verify`, each seventh with `fec verify --deep`, and the last one
with rot in 12 % of the blocks and `fec repair`. Exit code 1 if one of them fails.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile


class Folder:
    def __init__(self, args, home):
        self.args, self.rng = args, random.Random(args.seed)
        self.data, self.left, self.sidecar = (os.path.join(home, name) for name in ("data", "left", "data.fecp"))
        self.names, self.made = {}, 0
        os.makedirs(self.data)

    def fec(self, *words, allowed=(0,)):
        done = subprocess.run([self.args.fec, *words, "--json"], capture_output=True)
        if done.returncode not in allowed:
            sys.exit(f"fec {' '.join(words)}: {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
        return json.loads(done.stdout)

    def add(self, most):
        """New files of together `most` bytes."""
        added = 0
        while added < most:
            size = min(self.rng.randint(1, 2000 * self.args.file), most - added)
            name, self.made = f"{self.made:06}", self.made + 1
            with open(os.path.join(self.data, name), "wb") as out:
                out.write(self.rng.randbytes(size))
            self.names[name] = size
            added += size
        return added

    def prune(self, most):
        """Deletes files of together `most` bytes, or moves them away."""
        away = os.path.join(self.left, "data")
        os.makedirs(away)
        gone = 0
        while gone < most:
            name = self.rng.choice(sorted(self.names))
            gone += self.names.pop(name)
            os.rename(os.path.join(self.data, name), os.path.join(away, name))
        if not self.args.retire:
            shutil.rmtree(self.left)

    def rot(self):
        """A byte in 12 % of the blocks, without another time."""
        for name in self.names:
            path = os.path.join(self.data, name)
            info = os.stat(path)
            with open(path, "r+b") as out:
                for at in range(0, info.st_size, 4096):
                    if self.rng.random() < 0.12:
                        out.seek(at)
                        byte = out.read(1)
                        out.seek(at)
                        out.write(bytes([byte[0] ^ 1]))
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def run(args, home):
    folder = Folder(args, home)
    folder.add(args.mb * 1_000_000)
    folder.fec("protect", folder.data, "--portable")
    added = coded = retired = longest = anew = joined = 0
    for night in range(1, args.nights + 1):
        total = sum(folder.names.values())
        is_prune = args.prune > 0 and night % 7 == 0
        if is_prune:
            folder.prune(total * args.prune / 100)
        added += folder.add(int(total * args.grow / 100))
        words = ("--retired", folder.left) if is_prune and args.retire else ()
        update = folder.fec("protect", "--update", "--pruned", folder.data, *words)["update"]
        coded, retired = coded + update["coded_bytes"], retired + update["retired_bytes"]
        anew, joined = anew + (update["anew"] is not None), joined + update["joined"]
        longest = max(longest, os.path.getsize(folder.sidecar) / sum(folder.names.values()))
        folder.fec("verify", folder.sidecar, *(["--deep"] if night % 7 == 0 else []))
        shutil.rmtree(folder.left, ignore_errors=True)
    folder.rot()
    folder.fec("verify", folder.sidecar, allowed=(1,))
    folder.fec("repair", folder.sidecar)
    folder.fec("verify", folder.sidecar)
    print(f"{args.nights} nights, seed {args.seed}: {added / 1e6:.1f} MB added, {coded / added:.2f} coded and "
          f"{retired / added:.2f} taken out for each byte added; the sidecar at most {100 * longest:.1f} %; "
          f"written again {joined} times, made anew {anew} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--mb", type=int, default=100, help="the folder at first")
    parser.add_argument("--grow", type=float, default=1, help="percent a night")
    parser.add_argument("--prune", type=float, default=4, help="percent a week")
    parser.add_argument("--file", type=int, default=200, help="kilobytes of a file, on average")
    parser.add_argument("--retire", action="store_true")
    parser.add_argument("--dir")
    args = parser.parse_args()
    args.fec = os.path.abspath(args.fec)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=args.dir) as home:
        run(args, home)


if __name__ == "__main__":
    main()
