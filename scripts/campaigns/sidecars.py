#!/usr/bin/env python3
"""A seeded forge of sidecars, with scripts/oracle beside fec ("§" refers to docs/FORMAT.md).

    sidecars.py --fec PATH [--seed S] [--cases N] [--jobs J] [--only CASE] [--keep DIR]

Each case makes a random tree and a sidecar of the tree, and changes the sidecar before it is sealed, so that checksums,
digests and roots are right again all the way up: counts, bytes, paths, kinds, groups, extents, layouts, pieces,
geometry, attributes, the base, digests, recovery data that is of other files, entries that contradict themselves,
further generations. Some cases change bytes of the sealed file instead. Then files of the tree are damaged. fec must do
this:

- no command ends with an error of the system (4), a panic or a signal, or is slow;
- verify, verify --deep and repair -o end as the oracle does, and repair -o writes the same files;
- repair --revert mends everything that verify --deep says can be mended, and nothing is wrong afterwards;
- repair --revert ends with 3 where verify does, and with 5 only where verify --deep does;
- a dry run changes nothing, and nothing but the tree and the sidecar is left behind.

A case that fails is printed with its seed and its changes; --seed S --only CASE runs the case again. Exit code 1 when
a case fails.
"""
import argparse
import collections
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from judge import Wrong
from oracle import sidecar as oracle
from oracle.basics import BLAKE3, ZERO32, Fault, flipped
from oracle.hashes import digest
from oracle.sidecar import (
    EXECUTABLE, FILE, FOLDER, GONE, HARDLINK, NOTHING, SYMLINK, Draft, Item, Rec, part, plain_digests, seal, step,
    texts, varint,
)

SECONDS = 20
NAMES = [b"a", b"b", b"log", b"log.1", b"caf\xc3\xa9", b"\xff\xfe", b"A", b"new\nline", b"z z", b"0", b"x" * 255]
FOLDERS = [b"d", b"d/sub", b"d/sub/deep", b"other"]
EDGES = (0, 1, 2, 63, 64, 127, 128, 255, 256, 1023, 1024, 4096, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
WIDE = EDGES + (1 << 32, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def tree(rng):
    """Random items, sorted by path: some files have the bytes of others, or blocks of zeros."""
    items = {path: Item(path, FOLDER, None, None, rng.choice((0o755, 0o700, 0o1777)), 1500000000 + n, 0) for n, path in enumerate(FOLDERS[:rng.randint(1, 4)])}
    folders = list(items)
    for _ in range(rng.randint(0, 9)):
        path = rng.choice(folders) + b"/" + rng.choice(NAMES)
        more = rng.choice((0o644, 0o600, 0o755)), rng.randint(-5, 1 << 31), rng.choice((0, 1, 123456789))
        files = [x for x in items.values() if x.kind == FILE]
        kind = rng.choice((FILE,) * 8 + (SYMLINK, HARDLINK))
        if path in items or kind == HARDLINK and not files:
            continue
        if kind == FILE:
            size = rng.choice((0, 1, 700, 1023, 1024, 1025, 2048, 5000, 20000, 70000))
            content = bytearray(rng.randbytes(size + (rng.randint(0, 9) if size > 1 else 0)))
            if rng.random() < .3:
                at = rng.randrange(size + 1)
                content[at:] = bytes(len(content) - at) if rng.random() < .5 else bytes(min(5000, len(content) - at)) + content[at + 5000:]
            elif files and rng.random() < .3:
                content = rng.choice(files).content
            items[path] = Item(path, FILE, bytes(content), None, *more)
        elif kind == SYMLINK:
            items[path] = Item(path, SYMLINK, None, rng.choice((b"a", b"../nowhere", b"/etc/hostname")), *more)
        else:
            of = rng.choice(files)
            if of.path < path:                          # §17.8: the first name is the file
                items[path] = Item(path, HARDLINK, None, of.path, *of[4:])
    return sorted(items.values())


def damage(rng, items, base):
    """Damages files by rot, edits and losses; returns the damages in words"""
    story = []
    files = [x for x in items if x.kind == FILE and x.content]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        if not files:
            break
        x = files.pop(rng.randrange(len(files)))
        path, content = os.path.join(base, x.path), bytearray(x.content)
        what = rng.choice(("rot", "rot", "rot", "edit", "truncate", "append", "delete", "mode", "touch"))
        at = rng.randrange(len(content))
        if what in ("rot", "edit"):
            for o in range(at, min(len(content), at + rng.choice((1, 30, 3000)))):
                content[o] ^= 0x55
        elif what == "truncate":
            del content[at:]
        elif what == "append":
            content += rng.randbytes(rng.choice((1, 1500)))
        os.chmod(path, 0o600)
        if what == "delete":
            os.remove(path)
        else:
            with open(path, "wb") as f:
                f.write(content)
            os.chmod(path, x.mode ^ (0o100 if what == "mode" else 0))
            os.utime(path, ns=(0, x.seconds * 10 ** 9 + x.nanos + (7 * 10 ** 9 if what in ("edit", "touch") else 0)))
        story.append("%s %r at %d" % (what, x.path, at))
    return story


# ---------------------------------------------------------------- mutations of a draft
# A mutation gets (rng, draft, options of seal) and returns its change in words.

def counts(rng, d, options):
    name = rng.choice(("extents", "groups", "entries", "size", "total", "block"))
    real = {"extents": 1, "groups": len(d.groups), "entries": len(d.recs), "size": len(oracle.write_entries(d.recs)), "total": d.total, "block": d.block}[name]
    d.lie[name] = rng.choice((max(0, real + rng.choice((-2, -1, 1, 2))), rng.choice(WIDE if name in ("size", "total") else EDGES)))
    return "%s = %d" % (name, d.lie[name])


def pokes(rng, d, options):
    def late(d):
        size = len(d.catalog())
        d.pokes += [(rng.randrange(size if rng.random() < .5 else min(size, 400)), 1 << rng.randrange(8)) for _ in range(rng.randint(1, 3))]
    options["late"] = late
    return "bits of the catalog"


def some_rec(rng, d):
    return d.recs[rng.randrange(len(d.recs))]


def paths(rng, d, options):
    rec = some_rec(rng, d)
    rec.path = rng.choice((b"", b".", b"..", b"/etc/x", b"../x", rec.path + b"/x", rec.path + b"/../x", rec.path + b"\0", b"x" * 256, b"d/" * 2048 + b"x", b"zz", rec.path + b"/", rec.path[:-1], b"d//x"))
    if rng.random() < .3:
        rec.shared = rng.choice((0, min(1, len(rec.path))))
    return "a path %r" % rec.path[:40]


def kinds(rng, d, options):
    rec = some_rec(rng, d)
    rec.kind = rng.choice((rec.kind ^ EXECUTABLE, rec.kind ^ 32, 1, 2, 3, 4, 15, 64, 122, 255, FOLDER | 16))
    if rng.random() < .3:
        return "a kind %d and %s" % (rec.kind, paths(rng, d, options))
    return "a kind %d" % rec.kind


def entries(rng, d, options):
    number = rng.randrange(len(d.recs))
    rec, what = d.recs[number], rng.choice(("cut", "more", "twice", "gone", "link", "target", "swap"))
    if what == "cut":
        rec.fields = rec.fields[:rng.randrange(len(rec.fields) + 1)]
    elif what == "more":
        rec.fields += rng.randbytes(rng.randint(1, 3))
    elif what == "twice":
        d.add(Rec(rec.path, rec.kind, rec.fields))
    elif what == "gone":
        del d.recs[number], d.attributes[number]
    elif what == "link":
        d.add(Rec(b"zzz", HARDLINK, varint(rng.choice((number, len(d.recs), 1 << 40)))))
    elif what == "target":
        d.add(Rec(b"zzz", SYMLINK, rng.choice((b"\0", varint(3) + b"a\0b", varint(4096) + b"x" * 4096))))
    else:
        d.recs.reverse()
    return "an entry: " + what


def files(rng, d, options):
    """Fields of a file: its digest, its size, its run or bits behind the digest"""
    found = [n for n, x in enumerate(d.recs) if x.kind & 15 == FILE]
    if not found:
        return "no file"
    rec = d.recs[rng.choice(found)]
    at = next((n for n, byte in enumerate(rec.fields) if byte < 128), -1) + 1
    what = rng.choice(("digest", "digest", "size", "run", "bits"))
    if what == "digest":
        rec.fields = rec.fields[:at] + rng.choice((rng.randbytes(32), digest(BLAKE3, b""), bytes(32))) + rec.fields[at + 32:]
    elif what == "size":
        rec.fields = varint(rng.choice(WIDE[:-2])) + rec.fields[at:]
    elif what == "run":
        rec.fields = rec.fields[:at + 32] + varint(rng.choice((0, 1, 2, 1 << 40))) + step(rng.choice((-1, 0, 1, 1 << 60))) + varint(rng.choice((0, 1, 5, 1 << 61)))
    elif len(rec.fields) > at + 32:
        out = bytearray(rec.fields)
        out[rng.randrange(at + 32, len(out))] ^= 1 << rng.randrange(8)
        rec.fields = bytes(out)
    return "of a file: " + what


def zeros(rng, d, options):
    """Runs of a file that are zeros or not, or a flag that says so, and the feature of shared positions"""
    what = rng.choice(("flag", "feature", "runs"))
    if what == "feature":
        d.features ^= 1
        return "features %d" % d.features
    found = [x for x in d.recs if x.kind & 15 == FILE]
    if not found:
        return "no file"
    rec = rng.choice(found)
    rec.kind ^= 64
    at = next((n for n, byte in enumerate(rec.fields) if byte < 128), -1) + 33
    if what == "runs" and len(rec.fields) > at:
        count = rng.choice((1, 2, 3))
        rec.fields = rec.fields[:at] + varint(count) + b"".join(varint(rng.choice((1, 3, 5, 9, 41, 2, 4, 1 << 40))) + rng.choice((b"", step(0))) for _ in range(count))
    return "zeros of %r: %s" % (rec.path[:40], what)


def groups(rng, d, options):
    if rng.random() < .2:
        d.groups.append([1, 1, 1, 0, rng.choice((0, len(d.recovery)))])
        d.digests += [rng.choice((NOTHING, GONE))] + [NOTHING]
        if rng.random() < .5:
            d.recovery.append(bytes(d.block))
            d.groups[-1][4] = len(d.recovery) - 1
            d.digests[-1] = plain_digests([bytes(d.block)])[0]
        return "one group more"
    if rng.random() < .3:
        d.codes = {0: rng.choice((0, 1, 1, 2, 0x10000))}
        d.features = rng.choice((d.features, d.features ^ 2, d.features | 2))
    at = rng.randrange(5)
    d.groups[0][at] = rng.choice((max(0, d.groups[0][at] + rng.choice((-1, 1))), rng.choice(EDGES if at in (2, 3) else WIDE if at == 4 else EDGES[:13])))
    return "a group: %r, of code %r" % (d.groups[0], d.codes)


def extents(rng, d, options):
    what, value = rng.randrange(5), rng.choice(WIDE)

    def late(d):
        d.extents[-1][what] = value % (1 << (32 if what > 1 else 64))
    if what == 4:
        d.extents.insert(0, [0, 0, 2, 0])
    else:
        options["late"] = late
    return "an extent: %d, %d" % (what, value)


def layouts(rng, d, options):
    at, size = rng.choice(((0, 32), (32, 8), (40, 8), (48, 8), (56, 8), (64, 4), (68, 1)))
    value = rng.choice((rng.randbytes(size), bytes(size), b"\xff" * size, struct.pack("<Q", rng.choice(EDGES))[:size].ljust(size, b"\0")))

    def layout(lay):
        lay[at:at + size] = value
    options["layout"] = layout
    return "the layout at %d: %s" % (at, value.hex())


def pieces(rng, d, options):
    where, at, bit, which = rng.choice(("head", "rest")), rng.random(), 1 << rng.randrange(8), rng.choice((None, 0, 1))

    def piece(s, i, head, rest):
        if which is None or i == which:
            target = head if where == "head" else rest
            start = 12 if where == "head" else 0
            target[start + int(at * (len(target) - start))] ^= bit
    options["piece"] = piece
    return "a bit of %s of %s" % (where, "all pieces" if which is None else "piece %d" % which)


def geometry(rng, d, options):
    name = rng.choice(("k", "m", "L", "G", "payload", "flags", "hash", "form", "version", "nr"))
    options["lie"] = {name: rng.choice(EDGES[:8] if name in ("flags", "hash", "form", "version", "k", "m") else EDGES)}
    return "geometry %r" % options["lie"]


def shape(rng, d, options):
    options["geometry"] = dict(k=rng.randint(1, 4), m=rng.randint(1, 6))
    options["drop"] = tuple(rng.sample(range(4), rng.randint(0, 3)))
    return "pieces lost: %r of %r" % (options["drop"], options["geometry"])


def metadata(rng, d, options):
    """Metadata whose shards are no codeword, or that goes on behind its end"""
    index = rng.randrange(2)

    def alter(shards):
        row = shards[-1 if index else 0]
        row[0] = flipped(row[0], rng.randrange(len(row[0])))
    options["alter"] = alter
    return "a shard of the metadata"


def attributes(rng, d, options):
    if not d.attributes:
        return "no attributes"
    n = rng.randrange(len(d.attributes))
    d.attributes[n] = struct.pack("<qIHH", rng.choice((-1, 0, 1 << 62, 1600000000)), rng.choice((0, 10 ** 9 - 1, 10 ** 9, 1 << 31)), rng.choice((0, 0o777, 0o7777, 0o10000, 0o6755)), rng.choice((0, 0, 0, 1)))
    return "attributes"


def hints(rng, d, options):
    d.hint = rng.choice((b"..", b"/", b"x\0", b"\0", b"y" * 300))
    d.hint_size = rng.choice((None, None, 0, 1, 65535))
    d.behind = rng.choice((b"", b"", b"\0", b"\4\1x", part(2, b"\1" + texts(b"", b"*.tmp")), part(2, b"\2\0"), part(3, b"\1" + texts(b"a")), part(3, b"\7" + texts(b"a"))))
    return "the base %r" % d.hint[:9]


def digests(rng, d, options):
    """Digests that do not belong to their shards"""
    for _ in range(rng.choice((1, 1, 2, 5))):
        n = rng.randrange(len(d.digests))
        d.digests[n] = rng.choice((rng.randbytes(16), NOTHING, GONE, d.digests[rng.randrange(len(d.digests))]))
    return "digests"


def no_codeword(rng, d, options):
    """Recovery shards of other bytes, with the digests that belong to these shards"""
    k, m, G = d.groups[0][:3]
    if not m * G or len(d.recovery) < m * G or len(d.digests) < (k + m) * G:
        return "no recovery shards"
    for n in (range(m * G) if rng.random() < .5 else [rng.randrange(m * G) for _ in range(rng.choice((1, 2)))]):
        d.recovery[n] = flipped(d.recovery[n], rng.randrange(d.block))
        d.digests[k * G + n] = plain_digests([d.recovery[n]])[0]
    return "recovery shards"


def no_block(rng, d, options):
    """A random digest for a block that is whole, as are its file and its recovery data"""
    k, m, G = d.groups[0][:3]
    n = rng.randrange(min(k * G, len(d.digests)) or 1)
    d.digests[n] = rng.randbytes(16)
    return "the digest of position %d" % n


def anchors(rng, d, options):
    what = rng.choice(("more", "fewer", "others"))
    if what == "more":
        d.anchors.append(rng.getrandbits(64))
    elif what == "fewer" and d.anchors:
        d.anchors.pop()
    else:
        d.anchors = [rng.getrandbits(64) for _ in d.anchors]
    return "anchors: " + what


MUTATIONS = (counts, pokes, paths, kinds, entries, files, files, zeros, zeros, groups, extents, layouts, pieces, geometry, shape, metadata, attributes, hints, digests, digests, no_codeword, no_codeword, no_block, anchors)


def mutate(rng, d, options):
    return [rng.choice(MUTATIONS)(rng, d, options) for _ in range(rng.choice((0, 1, 1, 1, 1, 2)))]


def raw(rng, data):
    data, what = bytearray(data), rng.choice(("flip", "zero", "cut", "delete", "insert", "twice", "front"))
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((1, 40, 1500, 9000)))
    if what == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif what == "zero":
        data[at:end] = bytes(end - at)
    elif what == "cut":
        del data[at:]
    elif what == "delete":
        del data[at:end]
    elif what == "insert":
        data[at:at] = rng.randbytes(rng.choice((1, 700)))
    elif what == "twice":
        data[at:at] = data[at:end]
    else:
        del data[:end - at]
    return bytes(data), "raw: %s at %d" % (what, at)


def forge(rng, items):
    """(sidecar, its root, the changes in words)"""
    r, sparing = Fraction(rng.choice((5, 16, 50, 100, 300)), 100), rng.random() < .6
    d, options = Draft(items, r, sparing=sparing), {}
    story = mutate(rng, d, options)
    data, E, root = seal(d, **options)
    if rng.random() < .2 and d.groups:                   # a further generation of the same tree, forged too
        again, options = Draft(items, r, sparing=sparing), {"start": len(data), "before": rng.choice((E, E, E, ZERO32, rng.randbytes(32))), "generation": rng.choice((2, 2, 2, 1, 3, 0, 1 << 40))}
        again.extents, again.recovery, again.digests, again.groups = [list(x) for x in d.extents], [], list(d.digests), [list(x) for x in d.groups]
        story.append("generation %d, then %r" % (options["generation"], mutate(rng, again, options) if rng.random() < .5 else []))
        more = seal(again, **options)
        data += more[0]
        root = rng.choice((root, more[2]))
    if rng.random() < .1:                                # pieces and blocks of another sidecar
        other = seal(Draft(items[:-1] or items, r))[0]
        at, size = rng.randrange(len(data)), rng.randrange(1, len(other) + 1)
        data = data[:at] + other[:size] + data[at + rng.choice((0, size)):]
        story.append("a splice at %d" % at)
    if rng.random() < .25:
        data, what = raw(rng, data)
        story.append(what)
    return data, root, story


# ---------------------------------------------------------------- one case

def look(base):
    out = {}
    for at, folders, names in os.walk(base):
        for name in folders + names:
            path = os.path.join(at, name)
            if os.path.islink(path):
                out[path[len(base):]] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    out[path[len(base):]] = f.read()
            else:
                out[path[len(base):]] = None
    return out


class Case:
    def __init__(self, fec, seed, number, home):
        self.fec, self.home = fec, os.fsencode(home)
        self.rng = random.Random("%s:%s" % (seed, number))
        self.story = []

    def run(self, *args):
        started = time.monotonic()
        done = subprocess.run([self.fec, *args], cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        self.story.append("fec %s: %d %s" % (" ".join(x if isinstance(x, str) else repr(x) for x in args), done.returncode, done.stdout.decode("utf-8", "replace").splitlines()[-1:]))
        if done.returncode not in (0, 1, 2, 3, 5, 6):
            raise Wrong("exit code %d: %s" % (done.returncode, done.stdout.decode("utf-8", "replace")[:600]))
        if time.monotonic() - started > SECONDS / 2:
            raise Wrong("slow")
        return done.returncode

    def oracle(self, do, *args, **more):
        try:
            code = do(*args, **more)[1]
        except Fault as fault:
            self.story.append("oracle: " + str(fault))
            return oracle.EXITS[fault.cls]
        self.story.append("oracle %s: %d" % (do.__name__, code))
        return code

    def same(self, what, fec, oracle):
        if fec != oracle:
            raise Wrong("%s: fec %d, oracle %d" % (what, fec, oracle))

    def go(self):
        rng = self.rng
        items = tree(rng)
        base = os.path.join(self.home, b"base")
        os.mkdir(base)
        oracle.write_tree(items, base)
        self.data, root, story = forge(rng, items)
        self.story += story + damage(rng, items, base)
        with open(os.path.join(base, b"x.fecp"), "wb") as f:
            f.write(self.data)
        root = root if rng.random() < .3 else None
        self.remove_strangers(base, root)
        how = ["base/x.fecp"] + (["--root", root.hex()] if root else [])
        named = rng.random() < .9
        how += ["--base", "base"] if named else []
        before = look(base)
        codes = {}
        for name, args in (("verify", ["verify"]), ("deep", ["verify", "--deep"]), ("dry", ["repair", "-n", "--revert"]), ("copy", ["repair", "-o", "out"])):
            codes[name] = self.run(*args, *how)
            if look(base) != before:
                raise Wrong(name + " changed something")
        for name in ("verify", "deep"):
            self.same(name, codes[name], self.oracle(oracle.verify, self.data, base, root, named, deep=name == "deep"))
        self.copies(codes["copy"], base, root, named)
        # More may be edited than can be made what it was, which is no loss.
        codes["revert"] = 3 if codes["verify"] == 1 and codes["copy"] == 3 else codes["verify"]
        if codes["dry"] != codes["revert"]:
            raise Wrong("dry run: %d, verify: %d" % (codes["dry"], codes["verify"]))
        self.mends(codes, how, base, before)
        return codes

    def remove_strangers(self, base, root):
        """fec looks for missing files among those that no entry names, and the oracle does not."""
        try:
            named = {x.path for x in oracle.Reader(self.data, root).catalog.entries}
        except Fault:
            return
        for path in look(base):
            place = base + path
            if path[1:] not in named and (os.path.islink(place) or os.path.isfile(place)) and path != b"/x.fecp":
                os.remove(place)

    def copies(self, code, base, root, named):
        def repair(*args):
            reader = oracle.Reader(self.data, root)
            oracle.check_base(reader, base, named)
            return oracle.repair(*args)
        copy = os.path.join(self.home, b"copy")
        self.same("repair -o", code, self.oracle(repair, self.data, base, copy, root))
        if code == 0 and look(os.path.join(self.home, b"out")) != look(copy):
            raise Wrong("repair -o wrote something else than the oracle")

    def mends(self, codes, how, base, before):
        code = self.run("repair", "--revert", *how)
        after = look(base)
        strange = [path for path in after if path not in before and (b".repairing" in path or b".fec-" in path)]
        if strange:
            raise Wrong("left behind: %r" % strange)
        if (code == 3) != (codes["revert"] == 3) or code == 5 and codes["deep"] != 5 or code in (2, 6) and code != codes["verify"]:
            raise Wrong("repair --revert ends with %d" % code)
        if code in (3, 2, 6) and after != before:
            raise Wrong("a repair that ends with %d changed something" % code)
        if codes["deep"] in (0, 1) and code not in (0, 1, codes["revert"]):
            raise Wrong("verify --deep says %d, and repair %d" % (codes["deep"], code))
        if codes["deep"] in (0, 1) and code == 0 and self.run("verify", "--deep", *how) != 0:
            raise Wrong("mended, and then not intact")


def one(task):
    fec, seed, number, keep = task
    home = tempfile.mkdtemp(prefix="sidecar-campaign-", dir=keep)
    case = Case(fec, seed, number, home)
    try:
        return number, case.go(), None
    except Exception as error:
        text = str(error) if isinstance(error, Wrong) else traceback.format_exc()
        return number, {}, "case %d: %s\n  %s" % (number, text, "\n  ".join(case.story))
    finally:
        if not keep:
            for at, folders, _ in os.walk(home):
                for name in folders:
                    if not os.path.islink(os.path.join(at, name)):
                        os.chmod(os.path.join(at, name), 0o700)
            shutil.rmtree(home, ignore_errors=True)


def main():
    top = argparse.ArgumentParser(description="a forge of sidecars")
    top.add_argument("--fec", required=True)
    top.add_argument("--seed", type=int, default=int(time.time()))
    top.add_argument("--cases", type=int, default=1000)
    top.add_argument("--jobs", type=int, default=os.cpu_count())
    top.add_argument("--only", type=int, help="this case alone")
    top.add_argument("--keep", help="a folder to leave all of it in")
    args = top.parse_args()
    fec = os.path.abspath(args.fec)
    numbers = range(args.cases) if args.only is None else [args.only]
    bad, found = 0, collections.Counter()
    with multiprocessing.Pool(args.jobs) as pool:
        for number, codes, text in pool.imap_unordered(one, ((fec, args.seed, n, args.keep) for n in numbers), 8):
            found.update("%s %d" % x for x in codes.items())
            if text:
                bad += 1
                print(text, flush=True)
    print("seed %d, %d cases: %s; %s" % (args.seed, len(numbers), ", ".join("%s: %d" % x for x in sorted(found.items())), "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
