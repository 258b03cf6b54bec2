"""Vectors: trees to protect."""
from fractions import Fraction

from ..basics import BLAKE3, generate
from ..hashes import digest
from .parts import FILE, FOLDER, HARDLINK, SYMLINK
from .writer import Draft, Item, check_paths, seal


def file(path, size, seed=0, mode=0o644, seconds=1700000000, nanos=123456789):
    return dict(path=path, kind="file", size=size, seed=seed or size + 1, mode=mode, seconds=seconds, nanos=nanos)


def folder(path, mode=0o755, seconds=1700000001, nanos=0):
    return dict(path=path, kind="folder", mode=mode, seconds=seconds, nanos=nanos)


def symlink(path, target):
    return dict(path=path, kind="symlink", target=target, mode=0o777, seconds=1700000002, nanos=999999999)


def hardlink(path, target, of):
    return dict(of, path=path, kind="hardlink", target=target)


def many(count, suffix, size=0):
    """count files whose names are six digits and the suffix"""
    return dict(kind="many", count=count, suffix=suffix, size=size, seed=9, mode=0o600, seconds=1600000000, nanos=5)


def even(path, size, byte):
    """a file whose bytes are all the same"""
    return dict(file(path, size), byte=byte)


def zeroed(item, *ranges):
    """the file with zeros in (start, length)"""
    return dict(item, zeros=[list(x) for x in ranges])


KIND_NAMES = {"file": FILE, "folder": FOLDER, "symlink": SYMLINK, "hardlink": HARDLINK}
HEXED = ("path", "target", "suffix")


def items_of(tree):
    """The items of a tree in the form of a vector (paths, targets and suffixes as bytes, or in hex)"""
    out = []
    for x in tree:
        x = {name: bytes.fromhex(value) if name in HEXED and isinstance(value, str) else value for name, value in x.items()}
        more = x["mode"], x["seconds"], x["nanos"]
        if x["kind"] == "many":
            content = generate(x["size"], x["seed"])
            out += [Item(b"%06d" % j + x["suffix"], FILE, content, None, *more) for j in range(x["count"])]
        else:
            content = None
            if x["kind"] == "file":
                content = bytes([x["byte"]]) * x["size"] if "byte" in x else generate(x["size"], x["seed"])
                for at, size in x.get("zeros", ()):
                    content = content[:at] + bytes(size) + content[at + size:]
            out.append(Item(x["path"], KIND_NAMES[x["kind"]], content, x.get("target"), *more))
    return out


def in_hex(tree):
    return [{name: value.hex() if name in HEXED else value for name, value in x.items() if x["kind"] != "hardlink" or name not in ("size", "seed")} for x in tree]


def mixed_tree(scale):
    shared, run = file(b"one/shared", 1500 * scale), file(b"one/run.sh", 77, mode=0o755)
    return [folder(b"one"), folder(b"one/empty", 0o700), folder(b"one/two", seconds=-1, nanos=500000000), folder(b"one/two/three"), shared, run,
            file(b"one/two/three/deep", 5000 * scale, mode=0o400), file(b"one.txt", 1024), file(b"one/none", 0), file(b"one-", 1025, seconds=4102444800, nanos=0),
            symlink(b"one/link", b"two/three/deep"), symlink(b"one/dangling", b"/nowhere/\xff"), symlink(b"one/up", b".."),
            hardlink(b"one/two/same", b"one/shared", shared), hardlink(b"one/two/three/same", b"one/shared", shared), hardlink(b"zz", b"one/run.sh", run),
            file(b"caf\xe9", 100), file(b"\x01\xff\n\\", 2048), file("ü€😀".encode(), 3), folder(b"-\xc3"), file(b"-\xc3/" + b"n" * 255, 513), file(b"old", 9, seconds=0, nanos=0)]


def protect_cases():
    def case(name, tree, redundancy=16, base=b""):
        return dict(name=name, redundancy=redundancy, base=base.hex(), tree=in_hex(tree))

    yield case("empty-folder", [folder(b"empty")])
    yield case("nothing", [])
    for size in (0, 1, 1023, 1024, 1025, 4096, 4097, 300000, (1 << 20) + 17):
        yield case("one-%d" % size, [file(b"file", size)])
    every = [file(b"size-%d" % size, size) for size in (0, 1, 1023, 1024, 1025, 4096, 4097, 300000)]
    for redundancy in (5, 16, 100, 200):
        yield case("mixed-%d" % redundancy, mixed_tree(1), redundancy, b"../the base" if redundancy == 5 else b"")
        yield case("mixed-larger-%d" % redundancy, mixed_tree(47), redundancy)
        yield case("one-4097-%d" % redundancy, [file(b"file", 4097)], redundancy)
    yield case("every-size", every, 16)
    yield case("every-size-100", every, 100, b"\xff/x")
    for size in (1 << 18, (1 << 18) + 1):
        yield case("total-%d" % size, [file(b"a", 200000), file(b"b", size - 200000)], 200)
        yield case("total-%d-1" % size, [file(b"a", 200000), file(b"b", size - 200000)], 1)
    yield case("small", SMALL, 50)
    yield case("anchors", [file(b"a", 1024), file(b"b", 1025), file(b"c", 65536), file(b"d", 66559), file(b"e", 66560), folder(b"f"), file(b"g", 131072 - 1)], 25)
    yield case("anchors-large", [file(b"a", 65535), file(b"b", 69632), file(b"c", 69631), file(b"d", 4097), even(b"e", 70000, 0), even(b"f", 140000, 255)], 25)
    yield case("anchors-even", [even(b"a", 66560, 0), even(b"b", 2000, 7), even(b"c", 1024, 7), file(b"d", 2000)], 25)
    large = 1 << 20
    yield case("zeros", [zeroed(file(b"a", large + 3000), (5000, 900000)), even(b"b", large, 0), file(b"c", 5000), zeroed(file(b"d", large + 1, 7), (0, 4096), (large - 8192, 8193)),
                         zeroed(file(b"e", large, 8), (4096, 4096)), zeroed(file(b"f", large - 1, 9), (0, large - 1)), even(b"g", large + 4096, 0), even(b"h", large + 9, 0)], 25)
    yield case("duplicates", [file(b"a", 300000), file(b"b", 4096), file(b"c", 4096), file(b"d", 4097), folder(b"e"), file(b"e/a", 300000, mode=0o755), file(b"e/b", 300000, 5), file(b"e/d", 4097),
                              file(b"e/z", 300000), file(b"f", 5000, 1), file(b"g", 5000, 2), hardlink(b"h", b"a", file(b"a", 300000)), zeroed(file(b"i", large + 77), (9000, 1000000)), zeroed(file(b"j", large + 77), (9000, 1000000))], 50)
    for redundancy in ("0.01", "12.34", "12700"):
        yield case("redundancy-" + redundancy, [file(b"file", 5000)], redundancy)
    yield case("wide", [file(b"a", 1000000), file(b"b", 5000), even(b"c", 300000, 9)], 30)        # one set of code 1
    yield case("wide-sets", [file(b"a", 150000)], 6000)                        # two sets of it
    yield case("many-small", [many(300, b".txt", 333), file(b"1", 1000)], 5)
    yield case("many-packed", [file(b"f%03d" % j, (j * 37) % 3000, j + 1) for j in range(150)], 16, b"..")
    yield case("many-long-names", [many(1700, b"x" * 190)], 16)                # metadata above 4096·k'
    yield case("many-longer-names", [many(3600, b"y" * 200)], 100)             # metadata of two sets


def protect_vector(case):
    """The whole vector, and the sidecar"""
    data, E, root = seal(check_paths(Draft(items_of(case["tree"]), Fraction(case["redundancy"]) / 100, bytes.fromhex(case["base"]))))
    return dict(case, root=root.hex(), blake3=digest(BLAKE3, data).hex(), len=len(data)), data


SMALL = [file(b"a", 100), folder(b"b"), file(b"b/c", 3000), symlink(b"d", b"a"), hardlink(b"e", b"a", file(b"a", 100))]
