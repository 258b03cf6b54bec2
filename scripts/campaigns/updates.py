#!/usr/bin/env python3
"""A seeded campaign against `fec protect --update`, with scripts/oracle beside it ("§" refers to docs/FORMAT.md).

    updates.py --fec PATH [--seed S] [--rounds N] [--dir DIR]

Each round protects a random tree, and then changes the tree and updates the sidecar a few times. After each update `fec
verify` has to say that all is intact, and so has the oracle; the sidecar must only have grown, unless fec says that it
made a new one or wrote it again. Random damage to files and sidecar follows, by which no set loses more than it can
stand; `fec repair` must then make the tree what it was, byte for byte, with modes and times. Some updates are killed
first, and some meet rot in files that nobody touched, which must not be taken for an edit. Round r of seed S is round 0
of seed S + r: a failure prints the seed and the changes, and leaves the tree. Exit code 1 when there are failures.
"""
import argparse
import collections
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from judge import Wrong, expect
from oracle import sidecar as oracle_sidecar
from oracle.basics import Fault
from oracle.sidecar import FILE, GONE, NOTHING, block_place, piece_place

SECONDS = 60
REDUNDANCIES = ("8%", "16%", "16%", "30%", "50%", "100%", "200%")
NAMES = [b"a", b"b", b"log", b"log.1", b"caf\xc3\xa9", b"\xff\xfe", b"A", b"new\nline", b"z z", b"x.fecp.old", b"0"]
FOLDERS = [b"", b"sub", b"sub/deep", b"other", b"\xe9"]

What = collections.namedtuple("What", "kind mode time content")     # content: of a file, or the target of a link


# ---------------------------------------------------------------- trees

def look(base):
    """The items below a folder by path, with all that a sidecar says of them; and the paths of each file. Folders have
    no times."""
    found, inodes = {}, {}
    for at, folders, files in os.walk(base):
        for name in folders + files:
            path = os.path.join(at, name)
            key, info = os.path.relpath(path, base), os.lstat(path)
            mode = info.st_mode & 0o7777
            if stat.S_ISLNK(info.st_mode):
                found[key] = What("link", None, None, os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                found[key] = What("folder", mode, None, None)
            else:
                with open(path, "rb") as f:
                    found[key] = What("file", mode, info.st_mtime_ns, f.read())
                inodes.setdefault(info.st_ino, []).append(key)
    return found, sorted(sorted(names) for names in inodes.values())


def difference(a, b):
    """The difference of two trees, in words."""
    out = []
    for path in sorted(set(a[0]) | set(b[0])):
        x, y = a[0].get(path), b[0].get(path)
        if x != y:
            fields = "only before" if y is None else "only now" if x is None else ", ".join(n for n, p, q in zip(What._fields, x, y) if p != q)
            out.append("%r: %s" % (path, fields))
    return "; ".join(out) or "the names of files with several of them"


class Round:
    def __init__(self, fec, seed, place):
        self.fec, self.rng, self.home, self.story = fec, random.Random(seed), place, []
        self.base = os.path.join(os.fsencode(place), b"d")
        self.time = 1_700_000_000 * 10 ** 9
        self.counts = collections.Counter()
        os.mkdir(self.base)

    # ------------------------------------------------------------ running fec

    def run(self, *args, exits=(0,)):
        p = subprocess.run([self.fec, *args], cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS)
        said = (p.stderr + p.stdout).decode("utf-8", "replace")
        expect(b"panicked" not in p.stderr, "%s: %s" % (args, said))
        expect(p.returncode in exits, "%s ended with %s: %s" % (" ".join(args), p.returncode, said))
        return p.returncode, p.stdout, said

    def sidecar(self):
        with open(os.path.join(self.home, self.name), "rb") as f:
            return f.read()

    def put_sidecar(self, data):
        with open(os.path.join(self.home, self.name), "wb") as f:
            f.write(data)

    # ------------------------------------------------------------ the tree

    def path(self, key):
        return os.path.join(self.base, key)

    def stamp(self, path):
        """Gives a file that was written a time of its own."""
        self.time += self.rng.choice((10 ** 9, 1, 123_456_789, 3600 * 10 ** 9))
        os.utime(path, ns=(self.time, self.time), follow_symlinks=False)

    def bytes(self):
        rng = self.rng
        size = rng.choice((0, rng.randrange(1, 1024), rng.randrange(1, 1024), 1024 * rng.randrange(1, 9), rng.randrange(20_000), rng.randrange(20_000), rng.randrange(self.largest)))
        if rng.random() < 0.1:
            return bytes(size)
        content = rng.randbytes(size)
        if rng.random() < 0.2:
            at = rng.randrange(size + 1)
            content = (content[:at] + bytes(rng.choice((5000, 20_000, size))))[:size].ljust(size, b"x")
        return content

    def write(self, key, content):
        path = self.path(key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.truncate(len(content))
            for at in range(0, len(content), 4096):     # zeros are holes
                if any(content[at:at + 4096]):
                    f.seek(at)
                    f.write(content[at:at + 4096])
        self.stamp(path)

    def keys(self, kind="file"):
        return sorted(key for key, x in look(self.base)[0].items() if x.kind == kind and not key.endswith(b".fecp"))

    def fresh(self):
        """A path with nothing at it, and no file or link on the way."""
        for _ in range(100):
            key = os.path.join(self.rng.choice(FOLDERS), self.rng.choice(NAMES) + b"%d" % self.rng.randrange(30))
            above = self.path(os.path.dirname(key))
            if not os.path.lexists(self.path(key)) and (os.path.isdir(above) and not os.path.islink(above) or not os.path.lexists(above)):
                os.makedirs(above, exist_ok=True)
                return key
        raise AssertionError("no free name")

    def plant(self):
        self.largest = self.rng.choice((30_000, 60_000, 120_000))
        for _ in range(self.rng.randrange(3, 25)):
            self.write(self.fresh(), self.bytes())
        self.write(b"anchor", self.rng.randbytes(self.rng.randrange(self.largest, 3 * self.largest)))
        for _ in range(self.rng.randrange(3)):
            os.symlink(self.rng.choice((b"a1", b"nowhere", b"sub")), self.path(self.fresh()))
        for key in self.keys():
            os.chmod(self.path(key), self.rng.choice((0o644, 0o600, 0o755)))

    def change(self):
        """Does an operation to the tree, as users and programs do; returns its name."""
        rng, files = self.rng, self.keys()
        if not files:
            self.write(self.fresh(), self.bytes())
            return "add"
        key = rng.choice(files)
        path = self.path(key)
        with open(path, "rb") as f:
            content = f.read()
        at, piece = rng.randrange(len(content) + 1), rng.randbytes(rng.choice((1, 100, 3000)))
        do = rng.choice("edit edit edit append append truncate insert cut rename rename folder swap delete add add copy rotate chmod touch symlink hardlink unlink dir replace empty".split())
        if do == "edit":
            self.overwrite(path, content[:at] + piece + content[at + len(piece):])
        elif do == "append":
            self.overwrite(path, content + piece)
        elif do == "truncate":
            self.overwrite(path, content[:max(at, 1)])
        elif do == "insert":
            self.overwrite(path, content[:at] + piece + content[at:])
        elif do == "cut":
            self.overwrite(path, content[:at] + content[at + len(piece):] or b"x")
        elif do == "rename":
            os.rename(path, self.path(self.fresh()))
        elif do == "folder":
            folders = self.keys("folder")
            if folders:
                folder, to = rng.choice(folders), b"moved%d" % rng.randrange(10 ** 6)
                os.rename(self.path(folder), self.path(to))
        elif do == "swap":
            other = self.path(rng.choice(files))
            if other != path:
                os.rename(path, path + b"~")
                os.rename(other, path)
                os.rename(path + b"~", other)
        elif do == "delete":
            os.remove(path)
        elif do == "add":
            self.write(self.fresh(), self.bytes())
        elif do == "copy":
            to = self.path(self.fresh())
            shutil.copy2(path, to)
            if rng.random() < 0.5:
                self.stamp(to)
        elif do == "rotate":
            os.rename(path, self.path(self.fresh()))
            self.write(key, self.rng.randbytes(rng.randrange(1, 2000)))
        elif do == "chmod":
            os.chmod(path, rng.choice((0o644, 0o600, 0o755, 0o444)))
        elif do == "touch":
            self.stamp(path)
        elif do == "symlink":
            os.remove(path)
            os.symlink(rng.choice((b"anchor", b"../anchor", b"/etc/hostname", b"gone")), path)
        elif do == "hardlink":
            os.link(path, self.path(self.fresh()))
        elif do == "unlink":
            names = [x for x in look(self.base)[1] if len(x) > 1]
            if names:
                os.remove(self.path(rng.choice(rng.choice(names))))
        elif do == "dir":
            os.remove(path)
            os.mkdir(path)
            self.write(key + b"/inside", self.bytes())
        elif do == "replace":
            with open(path + b"~", "wb") as f:
                f.write(piece)
            self.stamp(path + b"~")
            os.rename(path + b"~", path)
        elif do == "empty":
            self.overwrite(path, b"")
        return "%s %r" % (do, key)

    def overwrite(self, path, content):
        with open(path, "wb") as f:
            f.truncate(len(content))
            for at in range(0, len(content), 4096):     # zeros are holes
                if any(content[at:at + 4096]):
                    f.seek(at)
                    f.write(content[at:at + 4096])
        self.stamp(path)

    # ------------------------------------------------------------ checks

    def is_intact(self, what):
        """Expects that both implementations call everything intact."""
        self.run("verify", self.name)
        lines, code = oracle_sidecar.verify(self.sidecar(), os.fsencode(self.home))
        bad = [x for x in lines if not x.startswith("intact ")]
        expect(code == 0, "%s: the oracle's verify ended with %d: %s" % (what, code, bad))
        if self.sha256:
            out = self.run("manifest", self.name, "--sha256")[1]
            tree = look(self.base)
            sums = collections.Counter(hashlib.sha256(tree[0][names[0]].content).hexdigest() for names in tree[1] for _ in names if not names[0].endswith(b".fecp"))
            listed = collections.Counter(line.lstrip(b"\\")[:64].decode() for line in out.split(b"\n") if line)
            expect(set(sums) == set(listed), "%s: the list of SHA-256 is not that of the files" % what)

    def update(self, before, rotten):
        """Runs an update, with -f where an update needs it; returns the report, or None where rot stops the update."""
        old, tree = self.sidecar(), look(self.base)
        args = ["protect", "--update", "d", "-o", self.name, "--json", "--no-sync"]
        if self.rng.random() < 0.1:
            old = self.kill(args[:-1], old)
        code, out, said = self.run(*args, exits=(0, 1, 2) if rotten else (0, 2))
        expect(self.same(tree), "an update wrote to the tree")
        size = lambda groups: sum(len(before[0][names[0]].content) for names in groups)
        if code == 2:
            self.counts["refused"] += 1
            is_file = {key for key, x in tree[0].items() if x.kind == "file"}
            emptied = [key for key, x in before[0].items() if x.kind == "file" and x.content and key in is_file and not tree[0][key].content]
            gone = [names for names in before[1] if names[0] not in is_file]
            is_much = len(gone) == len(before[1]) or size(gone) * 10 > size(before[1])
            expect(emptied or is_much, "refused, and nothing is gone: " + said)
            expect(self.sidecar().startswith(old), "an update that was refused wrote")
            code, out, said = self.run(*args, "-f", exits=(0, 1) if rotten else (0,))
        else:
            now = {x.content for x in tree[0].values() if x.kind == "file"}
            gone = [names for names in before[1] if not set(names) & set(tree[0]) and before[0][names[0]].content not in now]
            expect(size(gone) * 10 <= size(before[1]) or code == 1, "%d of %d bytes are gone, and it was not refused" % (size(gone), size(before[1])))
        if code == 1:
            self.counts["stopped by rot"] += 1
            expect(self.sidecar().startswith(old), "an update that was refused because of rot wrote")
            return None
        report = json.loads(out)
        update = report["update"]
        new = self.sidecar()
        files = [names for names in tree[1] if not any(name.endswith(b".fecp") for name in names)]
        expect(report["payload_bytes"] == sum(len(tree[0][names[0]].content) for names in files), "payload_bytes: " + said)
        expect(sum(update[x] for x in ("unchanged", "changed", "added", "moved")) == len(files), "the counts do not sum up to %d: %s" % (len(files), update))
        if not update["written"]:
            expect(new == old, "it says that nothing was written")
        elif update["anew"] is None and not update["joined"]:
            expect(len(new) > len(old) and new.startswith(old), "the sidecar did not only grow")
            expect(update["generation"] > 1, str(update))
        is_new = update["anew"] is not None or update["joined"]
        expect(not is_new or update["generation"] == 1, str(update))
        expect(update["coded_bytes"] <= report["payload_bytes"], str(update))
        self.counts["not written" if not update["written"] else "anew" if update["anew"] else "joined" if update["joined"] else "appended"] += 1
        self.most = max(self.most, update["generation"])
        return report

    def same(self, tree):
        """Tells whether the tree on the disk is `tree`; sidecars in it do not count."""
        now = look(self.base)
        drop = lambda t: ({k: x for k, x in t[0].items() if not k.endswith(b".fecp")}, [n for n in t[1] if not n[0].endswith(b".fecp")])
        return drop(now) == drop(tree)

    def kill(self, args, old):
        """Kills an update at a random moment. The sidecar must be the old one or the new one; returns the one it is."""
        before = self.found(old)
        child = subprocess.Popen([self.fec, *args], cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.rng.random() * 0.012)
        child.kill()
        if child.wait() >= 0:
            return self.sidecar()
        self.counts["killed"] += 1
        left = self.sidecar()
        if left == old:
            return old
        self.counts["killed while writing"] += 1
        found = self.found(left)
        is_old = found[0] == before[0]
        expect(found == before if is_old else {"intact"} >= set(found[1]) or "rotten" in found[1], "killed: %s -> %s" % (before, found))
        expect(not is_old or left.startswith(old), "killed: the old sidecar is another")
        for name in os.listdir(self.home):
            if name.startswith(".fec-"):
                os.remove(os.path.join(self.home, name))
        return old if is_old else left

    def found(self, data):
        """The root of the generation that is meant, and the states of all entries, by the oracle."""
        reader = oracle_sidecar.Reader(data)
        return reader.catalog.root, oracle_sidecar.inspect(reader, os.fsencode(self.home))[0]

    # ------------------------------------------------------------ damage

    def damage(self):
        """Damages files and sidecar at random, no set more than it can stand; returns whether anything was edited."""
        rng, data = self.rng, self.sidecar()
        reader = oracle_sidecar.Reader(data)
        catalog = reader.catalog
        block, spare, set_of = catalog.block, {}, {}
        shard_at = []                                      # (place, set) of each recovery shard
        for nth, group in enumerate(catalog.groups):
            k, m, G, extent, first, position = group[:6]
            for s in range(G):
                spare[nth, s] = m
            for p in range(k * G):
                set_of[position + p] = nth, group.set_of(p)
            for x in range(m * G):
                shard_at.append((catalog.extents[extent][0] + block_place(first + x, catalog.extents[extent], block), (nth, x % G)))
        named = {p for x in catalog.entries for p in oracle_sidecar.places_of(catalog, x)}
        for nth, group in enumerate(catalog.groups):
            position, digest_at = group.position, group.digest_at
            for p in range(group.k * group.G):
                d = catalog.digests[digest_at + p]
                if d == GONE or position + p not in named and d != NOTHING:
                    spare[nth, group.set_of(p)] -= 1
        lost = set()

        def take(positions, shards=()):
            need = collections.Counter(set_of[p] for p in set(positions) - lost)
            need.update(shards)
            if any(spare[s] < n for s, n in need.items()):
                return False
            for s, n in need.items():
                spare[s] -= n
            lost.update(positions)
            return True

        files, edited = [x for x in catalog.entries if x.kind & 15 == FILE], False
        for _ in range(rng.randrange(6)):
            x = rng.choice(files) if files else None
            path = os.path.join(os.fsencode(self.home), x.path) if x else None
            if not x or not x.size or not os.path.lexists(path) or os.path.getsize(path) != x.size:
                continue
            places = oracle_sidecar.places_of(catalog, x)
            do = rng.choice("flip flip hole delete cut".split())
            info = os.lstat(path)
            if do in ("flip", "hole"):
                at = rng.randrange(x.size)
                end = at + 1 if do == "flip" else min(x.size, at + rng.randrange(1, 5000))
                if not take(places[at // block:(end - 1) // block + 1]):
                    continue
                with open(path, "r+b") as f:
                    held = f.read()
                    f.seek(at)
                    f.write(bytes(b ^ 0x55 for b in held[at:end]))
                os.utime(path, ns=(info.st_mtime_ns, info.st_mtime_ns))
            elif not take(places):
                continue
            elif do == "delete" and info.st_nlink == 1:
                os.remove(path)
            else:
                with open(path, "r+b") as f:
                    f.truncate(rng.randrange(x.size))
                edited = True
            self.story.append("damage: %s %r" % (do, x.path))
        if rng.random() < 0.6 and shard_at:
            data = bytearray(data)
            for at, s in rng.sample(shard_at, min(len(shard_at), rng.randrange(1, 6))):
                if take((), [s]):
                    data[at + rng.randrange(block)] ^= 1 << rng.randrange(8)
                    self.story.append("damage: sidecar, shard at %d" % at)
            extent = catalog.extents[-1]
            t = rng.randrange(extent[2])
            pieces = [extent[0] + piece_place(t, extent, block)] if rng.random() < 0.5 else []
            for at in pieces:
                data[at + rng.randrange(extent[3])] ^= 4
                self.story.append("damage: sidecar, piece at %d" % at)
            if not pieces and rng.random() < 0.4:
                # Bytes come in or go at a single place: shards around the place are lost.
                at = rng.randrange(len(data))
                if rng.random() < 0.5:
                    size = rng.randrange(1, 700)
                    hit = [s for place, s in shard_at if place < at + size and place + block > at]
                    if take((), hit):
                        del data[at:at + size]
                        self.story.append("damage: sidecar, %d bytes less at %d" % (size, at))
                else:
                    hit = [s for place, s in shard_at if place < at < place + block]
                    if take((), hit):
                        data[at:at] = rng.randbytes(rng.randrange(1, 700))
                        self.story.append("damage: sidecar, more bytes at %d" % at)
            self.put_sidecar(bytes(data))
        return edited

    def mended(self):
        """Damages files and sidecar, and expects that a repair makes all as it was."""
        tree, whole = look(self.base), self.sidecar()
        edited = self.damage()
        self.run("verify", self.name, exits=(0, 1))
        self.run("repair", self.name, "--no-sync", *(("--revert",) if edited else ()))
        now = look(self.base)
        expect(self.same(tree), "repair made something else: " + difference(tree, now))
        after = self.sidecar()
        if after != whole:
            # Repair may leave two things: pieces of earlier generations, of which the format says nothing, and recovery
            # shards of sets whose originals are gone, which serve nothing.
            catalog = oracle_sidecar.Reader(whole).catalog
            block = catalog.block
            plain = [bytearray(after), bytearray(whole)]
            named = {p for x in catalog.entries for p in oracle_sidecar.places_of(catalog, x)}
            for group in catalog.groups:
                k, m, G, extent, first, position, digest_at, _ = group
                alive = {group.set_of(p) for p in range(k * G) if position + p in named}
                gone = {group.set_of(p) for p in range(k * G) if catalog.digests[digest_at + p] == GONE} - alive
                for x in range(m * G):
                    at = catalog.extents[extent][0] + block_place(first + x, catalog.extents[extent], block)
                    for y in plain if x % G in gone else ():
                        y[at:at + block] = bytes(block)
            for extent in catalog.extents[:-1]:
                for t in range(extent[2]):
                    at = extent[0] + piece_place(t, extent, catalog.block)
                    for x in plain:
                        x[at:at + extent[3]] = bytes(extent[3])
            if plain[0] != plain[1]:
                store = os.path.join(self.home, "whole")
                with open(store, "wb") as f:
                    f.write(whole)
                raise Wrong("repair made another sidecar than %s was" % store)
            self.counts["pieces of generations before lost"] += 1
            if self.rng.random() < 0.5:
                self.put_sidecar(whole)
        self.counts["repaired"] += 1

    def rot(self, before, tree):
        """Flips a bit of a file that nobody touched since the last update; its path, or None."""
        same = [names for names in tree[1] if names in before[1] and all(tree[0][n] == before[0][n] for n in names) and tree[0][names[0]].content]
        same = [names for names in same if not names[0].endswith(b".fecp")]
        if not same:
            return None
        key = self.rng.choice(same)[0]
        path, x = self.path(key), tree[0][key]
        at = self.rng.randrange(len(x.content))
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(bytes([x.content[at] ^ 1 << self.rng.randrange(8)]))
        os.utime(path, ns=(x.time, x.time))
        self.story.append("rot %r at %d" % (key, at))
        return key

    def mend_rot(self, rotten, tree, report):
        """Repairs a rotten file after an update that left it rotten or stopped there; returns the tree after that."""
        code, _, said = self.run("repair", self.name, "--no-sync", exits=(0,) if report else (0, 1, 3))
        if report:
            expect(look(self.base)[0].get(rotten) == tree[0][rotten], "rot in %r was not mended: %s" % (rotten, said))
            return tree
        # Edits may cost the old sidecar more than it can stand; and its repair brings back files that were deleted.
        if code == 3:
            self.run("repair", self.name, "--no-sync", "--partial", exits=(0, 1, 3))
        if look(self.base)[0].get(rotten) != tree[0][rotten]:
            expect(code == 3, "rot in %r was not mended: %s" % (rotten, said))
            self.counts["rot beside too many changes"] += 1
            with open(self.path(rotten), "wb") as f:
                f.write(tree[0][rotten].content)
            os.utime(self.path(rotten), ns=(tree[0][rotten].time,) * 2)
        return look(self.base)

    # ------------------------------------------------------------ a round

    def go(self):
        rng = self.rng
        self.plant()
        self.name = "d.fecp"
        self.sha256, self.most = rng.random() < 0.2, 1
        redundancy = rng.choice(REDUNDANCIES)
        self.story.append("protect -r %s%s" % (redundancy, " --sha256" if self.sha256 else ""))
        root = self.run("protect", "--portable", "d", "-o", self.name, "-q", "--no-sync", "-r", redundancy, *(("--sha256",) if self.sha256 else ()))[1].decode().strip()
        is_whole = True                                    # no piece of a generation before was lost
        for _ in range(rng.randrange(2, 9)):
            before = look(self.base)
            for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 8))):
                self.story.append(self.change())
            tree = look(self.base)
            rotten = self.rot(before, tree) if rng.random() < 0.15 else None
            self.story.append("update")
            report = self.update(before, rotten)
            if rotten and report:
                report_of = json.loads(self.run("verify", self.name, "--json", exits=(1,))[1])
                bad = [x["state"] for x in report_of["files"]]
                expect(bad == ["rotten"], "rot in %r was blessed, or more is wrong: %s" % (rotten, report_of["files"]))
                self.counts["rot told"] += 1
            if rotten:
                tree = self.mend_rot(rotten, tree, report)
                if not report:
                    report = self.update(before, None)
            expect(self.same(tree), "the tree is another: " + difference(tree, look(self.base)))
            self.is_intact("after an update")
            is_new = report["update"]["anew"] is not None or report["update"]["joined"]
            if not is_new and report["update"]["written"] and is_whole:
                self.run("verify", self.name, "--root", root, exits=(0, 1, 3))
                expect(oracle_sidecar.Reader(self.sidecar(), bytes.fromhex(root)).catalog.root.hex() == root, "the root of before is not readable")
            root = report["root"]
            if is_new:
                is_whole = True
            if rng.random() < 0.7:
                lost = self.counts["pieces of generations before lost"]
                self.mended()
                is_whole = is_whole and lost == self.counts["pieces of generations before lost"]
                self.is_intact("after a repair")
        self.counts["rounds"] += 1


def main():
    p = argparse.ArgumentParser(description="random changes, updates, damage and repairs")
    p.add_argument("--fec", default="target/release/fec")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=100)
    p.add_argument("--dir", help="where trees stand [default: a temporary folder]")
    args = p.parse_args()
    fec, counts, bad, most = os.path.abspath(args.fec), collections.Counter(), 0, 0
    home = args.dir or tempfile.mkdtemp(prefix="update-campaign-")
    for seed in range(args.seed, args.seed + args.rounds):
        place = os.path.join(home, str(seed))
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        one = Round(fec, seed, place)
        try:
            one.go()
            shutil.rmtree(place)
        except (Wrong, subprocess.TimeoutExpired, AssertionError, Fault) as wrong:
            bad += 1
            text = wrong.text if isinstance(wrong, Fault) else str(wrong) or traceback.format_exc()
            print("seed %d: %s\n  %s\n  left in %s; again: --seed %d --rounds 1\n" % (seed, text, "\n  ".join(one.story), place, seed), flush=True)
        counts.update(one.counts)
        most = max(most, one.most if hasattr(one, "most") else 0)
    if not args.dir and not bad:
        shutil.rmtree(home)
    print("%s; up to generation %d; %s" % (", ".join("%d %s" % (n, x) for x, n in sorted(counts.items())), most, "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
