"""Vectors: damaged trees."""
import os
import shutil
import stat
import tempfile

from ..basics import Fault, flipped, generate
from .disk import write_tree
from .files import inspect, repair, verify
from .parts import EXITS
from .pieces import Reader
from .protected import items_of


def tree_cases():
    """(name, protect case, sidecar file or None, damages, states, mendable). Damages are done in this order. A damage
    puts the time of modification of its path back afterwards; "edit" makes that time a second later, and a path that is
    made anew has no time to put back. The numbers of recovery shards come from this reader."""
    def on(do, path, **more):
        return dict(do=do, path=path.hex(), **more)

    def side(do, **more):
        return dict(do="sidecar-" + do, **more)

    flip_deep = on("zero", b"one/two/three/deep", at=4000, len=5000)
    yield "intact", "mixed-16", None, [], {}, True
    yield "flips", "every-size", None, [on("flip", b"size-300000", at=0), on("flip", b"size-300000", at=299999), on("flip", b"size-1", at=0), on("flip", b"size-4097", at=4095)], \
        dict.fromkeys((b"size-300000", b"size-1", b"size-4097"), "rotten"), True
    yield "every-state", "mixed-larger-100", None, [flip_deep, on("edit", b"one.txt", at=5), on("delete", b"one/run.sh"), on("delete", b"one/link"), on("truncate", b"one/shared", len=1024 * 33 + 5), on("delete", b"one/empty"),
        on("folder", b"old"), on("edit", b"\x01\xff\n\\", at=2047)], \
        {b"one/two/three/deep": "rotten", b"one.txt": "edited", b"one/run.sh": "missing", b"one/link": "missing", b"one/shared": "edited",
         b"one/empty": "missing", b"old": "edited", b"\x01\xff\n\\": "edited"}, True
    yield "swapped", "mixed-larger-100", None, [on("swap", b"one.txt", other=b"one-".hex())], {b"one.txt": "edited", b"one-": "edited"}, True
    yield "swapped-same-size", "many-small", None, [on("swap", b"000000.txt", other=b"1".hex()), on("swap", b"000000.txt", other=b"1".hex()), on("flip", b"000001.txt", at=332), on("swap", b"000001.txt", other=b"000002.txt".hex())], \
        {b"000002.txt": "rotten"}, True
    yield "touched", "every-size", None, [on("edit", b"size-1025", at=0), on("edit", b"size-1025", at=0)], {}, True
    yield "grown", "every-size", None, [on("append", b"size-1024", len=10, seed=1), on("append", b"size-0", len=1, seed=1), on("truncate", b"size-4096", len=4095)], dict.fromkeys((b"size-1024", b"size-0", b"size-4096"), "edited"), True
    yield "folder-is-file", "mixed-larger-16", None, [on("delete", b"one/two"), on("file", b"one/two", len=5, seed=1)], {b"one/two": "edited", b"one/two/three": "missing", b"one/two/three/deep": "missing", b"one/two/same": "missing", b"one/two/three/same": "missing"}, False
    yield "all-gone", "mixed-200", None, [on("delete", x) for x in (b"one", b"one.txt", b"one-", b"caf\xe9", b"\x01\xff\n\\", "ü€😀".encode(), b"-\xc3", b"old", b"zz")], None, True
    yield "as-many-as-can-be", "one-300000", None, [on("zero", b"file", at=4096 * 20, len=4096 * 12)], {b"file": "rotten"}, True
    yield "one-more", "one-300000", None, [on("zero", b"file", at=4096 * 20 - 1, len=4096 * 12 + 1)], {b"file": "rotten"}, False
    yield "sidecar-hole", "mixed-larger-100", None, [flip_deep, side("zero", at=30000, len=20000)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-cut-first", "mixed-larger-100", None, [flip_deep, side("cut-first", len=30001)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-cut-last", "mixed-larger-100", None, [flip_deep, side("cut-last", len=30001)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-inserted", "mixed-larger-16", None, [on("flip", b"one/two/three/deep", at=7), side("insert", at=20000, len=777, seed=5)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-deleted", "mixed-larger-16", None, [on("flip", b"one/two/three/deep", at=7), side("delete", at=20000, len=777)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-thrice", "mixed-larger-200", None, [flip_deep, side("insert", at=100000, len=3, seed=5), side("delete", at=200000, len=5000), side("flip", at=300000), side("cut-first", len=1)], {b"one/two/three/deep": "rotten"}, True
    yield "sidecar-little-left", "mixed-larger-16", None, [on("zero", b"one/two/three/deep", at=0, len=50000), side("zero", at=20000, len=30000)], {b"one/two/three/deep": "rotten"}, False
    yield "executable", "small", None, [on("mode", b"a", mode=0o755)], {b"a": "mode"}, True
    yield "not-executable", "mixed-16", None, [on("mode", b"one/run.sh", mode=0o644)], {b"one/run.sh": "mode"}, True
    yield "permissions", "small", None, [on("mode", b"a", mode=0o600), on("mode", b"b", mode=0o700), on("mode", b"b/c", mode=0o466)], {}, True
    yield "hard-link-copied", "small", None, [on("copy", b"e", other=b"a".hex())], {b"e": "rotten"}, True
    yield "hard-link-copied-edited", "small", None, [on("copy", b"e", other=b"a".hex()), on("edit", b"e", at=0)], {b"e": "edited"}, True
    yield "hard-link-rotten", "small", None, [on("copy", b"e", other=b"a".hex()), on("flip", b"a", at=0)], {b"a": "rotten", b"e": "rotten"}, True
    yield "hard-link-alone-rotten", "small", None, [on("delete", b"a"), on("flip", b"e", at=5)], {b"a": "missing", b"e": "rotten"}, True
    yield "hard-link-gone", "small", None, [on("delete", b"e")], {b"e": "missing"}, True
    yield "through-symlink", "mixed-200", None, [on("move", b"one/two/three", other=b"x".hex()), on("symlink", b"one/two/three", target=b"../../x".hex())], {b"one/two/three": "edited", b"one/two/three/deep": "missing", b"one/two/three/same": "missing"}, True
    yield "symlink-is-file", "small", None, [on("delete", b"d"), on("file", b"d", len=1, seed=1)], {b"d": "edited"}, True
    yield "symlink-elsewhere", "small", None, [on("delete", b"d"), on("symlink", b"d", target=b"b/c".hex())], {b"d": "edited"}, True
    yield "file-is-symlink", "small", None, [on("move", b"a", other=b"x".hex()), on("symlink", b"a", target=b"x".hex())], None, True
    yield "moved", "mixed-larger-100", None, [on("move", b"one.txt", other=b"two.txt".hex())], {b"one.txt": "missing"}, True
    yield "inserted-in-file", "one-300000", None, [on("insert", b"file", at=5000, len=1, seed=1)], {b"file": "edited"}, True
    yield "anchors-hole", "anchors-large", None, [on("zero", b"b", at=0, len=5000), on("flip", b"f", at=100000), on("flip", b"e", at=69999)], dict.fromkeys((b"b", b"e", b"f"), "rotten"), True
    yield "redundancy-little", "redundancy-0.01", None, [on("zero", b"file", at=1000, len=1000)], {b"file": "rotten"}, False
    yield "redundancy-least", "redundancy-0.01", None, [on("flip", b"file", at=4999)], {b"file": "rotten"}, True
    yield "redundancy-most", "redundancy-12700", None, [on("delete", b"file"), side("zero", at=10000, len=600000)], {b"file": "missing"}, True
    yield "lost", "small", "good-entry-lost", [on("delete", b"a"), on("flip", b"b/c", at=1024)], {b"b/c": "rotten"}, True
    yield "lost-too-many", "small", "good-entry-lost", [on("flip", b"b/c", at=1024), on("flip", b"b/c", at=2999)], {b"b/c": "rotten"}, False
    yield "position-of-nobody", "small", "good-entry-gone", [on("delete", b"a"), on("delete", b"e"), on("flip", b"b/c", at=0)], {b"b/c": "rotten"}, True
    yield "position-of-nobody-too-many", "small", "good-entry-gone", [on("flip", b"b/c", at=0), on("flip", b"b/c", at=2999)], {b"b/c": "rotten"}, False
    yield "contradiction", "small", "good-contradiction", [], "invalid", False
    yield "contradiction-longer", "small", "good-contradiction", [on("append", b"b/c", len=10, seed=1)], "invalid", False
    yield "contradiction-of-a-block", "small", "good-wrong-block", [], "invalid", False
    yield "contradiction-of-a-block-longer", "small", "good-wrong-block", [on("append", b"b/c", len=10, seed=1)], "invalid", False
    of_first = [on("flip", b"a", at=1024 * block) for block in (0, 40, 100, 127)]        # one set only with L = 128
    yield "runs-128-too-many", "wide-sets", "good-runs-128", of_first, {b"a": "rotten"}, False
    yield "runs-128", "wide-sets", "good-runs-128", of_first[1:] + [on("flip", b"a", at=1024 * block) for block in (128, 135, 145)], {b"a": "rotten"}, True
    yield "runs-64", "wide-sets", "good-runs-64", of_first + [on("flip", b"a", at=1024 * block) for block in (70, 128)], {b"a": "rotten"}, True
    yield "runs-1", "wide-sets", "good-runs-1", [on("zero", b"a", at=1024 * 60, len=6 * 1024)], {b"a": "rotten"}, True
    yield "runs-1-too-many", "wide-sets", "good-runs-1", [on("zero", b"a", at=1024 * 60, len=6 * 1024 + 1)], {b"a": "rotten"}, False
    yield "first-name-gone", "small", None, [on("delete", b"a")], {b"a": "missing"}, True
    yield "two-tails-one-position", "small", "good-tails-together", [on("flip", b"a", at=0), on("flip", b"b/c", at=0)], {b"a": "rotten", b"b/c": "rotten", b"f": "missing"}, True
    yield "zeros-gone", "zeros", None, [on("delete", x) for x in (b"b", b"g", b"h", b"f")], dict.fromkeys((b"b", b"g", b"h", b"f"), "missing"), True
    yield "zeros-rotten", "zeros", None, [on("flip", b"a", at=500000), on("flip", b"a", at=3), on("flip", b"b", at=1), on("flip", b"h", at=(1 << 20) + 8), on("flip", b"d", at=(1 << 20))], dict.fromkeys((b"a", b"b", b"h", b"d"), "rotten"), True
    yield "zeros-cut", "zeros", None, [on("truncate", b"b", len=5), on("truncate", b"a", len=100000)], dict.fromkeys((b"a", b"b"), "edited"), True
    yield "duplicates-gone", "duplicates", None, [on("delete", x) for x in (b"a", b"e/d", b"i", b"b")], {b"a": "missing", b"e/d": "missing", b"i": "missing", b"b": "missing"}, True
    yield "duplicates-all-gone", "duplicates", None, [on("delete", x) for x in (b"d", b"e/d")], {b"d": "missing", b"e/d": "missing"}, True
    yield "duplicates-too-many", "duplicates", None, [on("zero", x, at=0, len=250000) for x in (b"a", b"e/a", b"e/z", b"e/b")], dict.fromkeys((b"a", b"e/a", b"e/z", b"e/b"), "rotten"), False
    yield "duplicates-apart", "duplicates", None, [on("zero", b"a", at=0, len=150000), on("zero", b"e/a", at=150000, len=150000), on("flip", b"e/z", at=299999), on("zero", b"e/z", at=70000, len=10000), on("flip", b"j", at=(1 << 20) + 76)], dict.fromkeys((b"a", b"e/a", b"e/z", b"j"), "rotten"), True


def damage(x, base, data):
    """Does a damage, and returns the sidecar after it"""
    do = x["do"]
    if do.startswith("sidecar-"):
        at, size = x.get("at", 0), x.get("len", 0)
        return {"zero": lambda: data[:at] + bytes(size) + data[at + size:], "cut-first": lambda: data[size:], "cut-last": lambda: data[:-size], "insert": lambda: data[:at] + generate(size, x["seed"]) + data[at:],
                "delete": lambda: data[:at] + data[at + size:], "flip": lambda: flipped(data, at)}[do[8:]]()
    path = os.path.join(base, bytes.fromhex(x["path"]))
    info = os.lstat(path) if os.path.lexists(path) else None
    later = 10 ** 9 if do == "edit" else 0

    def rewrite(path, change, later=0):
        info = os.lstat(path)
        with open(path, "rb") as f:
            old = f.read()
        os.chmod(path, info.st_mode | 0o600)
        with open(path, "wb") as f:
            f.write(change(old))
        os.chmod(path, info.st_mode & 0o7777)
        os.utime(path, ns=(0, info.st_mtime_ns + later))

    if do == "mode":
        os.chmod(path, x["mode"])
        return data
    if do == "move":
        os.rename(path, os.path.join(base, bytes.fromhex(x["other"])))
        return data
    if do == "copy":                                    # with its time and permissions
        os.remove(path)
        shutil.copy2(os.path.join(base, bytes.fromhex(x["other"])), path)
        return data
    if do == "symlink":
        os.symlink(bytes.fromhex(x["target"]), path)
        return data
    if do in ("flip", "edit"):
        rewrite(path, lambda old: flipped(old, x["at"]), later)
    elif do == "zero":
        rewrite(path, lambda old: old[:x["at"]] + bytes(x["len"]) + old[x["at"] + x["len"]:])
    elif do == "insert":
        rewrite(path, lambda old: old[:x["at"]] + generate(x["len"], x["seed"]) + old[x["at"]:])
    elif do == "truncate":
        rewrite(path, lambda old: old[:x["len"]])
    elif do == "append":
        rewrite(path, lambda old: old + generate(x["len"], x["seed"]))
    elif do == "swap":
        other = os.path.join(base, bytes.fromhex(x["other"]))
        with open(path, "rb") as f, open(other, "rb") as g:
            one, two = f.read(), g.read()
        rewrite(path, lambda old: two)
        rewrite(other, lambda old: one)
    elif do == "file":
        with open(path, "wb") as f:
            f.write(generate(x["len"], x["seed"]))
    elif info and stat.S_ISDIR(info.st_mode):
        shutil.rmtree(path)
    else:
        os.remove(path)
    if do == "folder":
        os.mkdir(path)
    return data


def tree_vector(name, tree, data, damages):
    """The findings of a reader: states by path, recovery, displaced, mendable, exit"""
    with tempfile.TemporaryDirectory() as home:
        base = os.path.join(os.fsencode(home), b"base")
        os.mkdir(base)
        write_tree(items_of(tree), base)
        for x in damages:
            data = damage(x, base, data)
        reader = Reader(data)
        try:
            states, able, _ = inspect(reader, base)
        except Fault as fault:
            return dict({"class": fault.cls}, exit=EXITS[fault.cls])
        code = verify(data, base)[1]
        intact, count = reader.count()
        bad = {x.path.hex(): state for x, state in zip(reader.catalog.entries, states) if state != "intact"}
        out = os.path.join(os.fsencode(home), b"out")
        # Edits are not lost, and need not be undone.
        assert (repair(data, base, out)[1] == 0) <= able, name
        return dict(states=bad, recovery=[intact, count], displaced=reader.displaced, mendable=able, exit=code)
