"""The second implementation of sidecars (form 3), written from docs/FORMAT.md alone ("§" refers to that file), mainly
from section 17.

    oracle sidecar selftest
    oracle sidecar protect -o SIDECAR --base BASE [-r PERCENT] PATH…      paths are relative to BASE
    oracle sidecar verify SIDECAR [--base BASE] [--root HEX] [--deep]
    oracle sidecar repair SIDECAR --base BASE [--root HEX] -o DIR         a mended copy of all files
    oracle sidecar golden DIR             writes DIR/sidecar.json and DIR/sidecar-errors/ (the same bytes on each run)
    oracle sidecar check DIR              reads them all again

Exit codes: 0 ok, 1 something is wrong but can be mended, 2 usage or ambiguous, 3 cannot be mended, 4 I/O, 5 invalid or
wrong root, 6 refused. Needs Python 3.9 and nothing else; the package `blake3` is used when it is there. The program is
plain and slow on purpose. Where docs/FORMAT.md leaves a choice to the reader, a comment says "choice"; vectors that
rest on a choice have "choice": true.
"""
import argparse
import os
import sys
import tempfile
from fractions import Fraction

from ..basics import Fault, generate, store
from ..hashes import B3_IV, PARENT, b3_compress, blake3_package, block_lanes, lanes_to_hashes, own_blake3
from ..stream.packets import MASK
from ..stream.rows import Draws
from .catalog import Cursor
from .disk import collect, same_tree, write_tree
from .files import repair, verify
from .parts import (
    DRAWS, EXITS, FILE, KEY, anchor, anchors_of, extent_size, block_place, catalog_root, chaining_values, piece_place,
    step, varint,
)
from .protected import in_hex, items_of, mixed_tree
from .vectors import check, golden
from .group import SMALL, WIDE
from .writer import Draft, check_paths, metadata_geometry, pick_block, pick_code, seal


def selftest():
    # §17.1: the chaining values of a file's whole blocks lead to its BLAKE3
    text = generate(8192, 3)
    for block in (1024, 2048, 4096):
        values = chaining_values([text[o:o + block] for o in range(0, 8192, block)], list(range(0, 8192, block)))
        while len(values) > 2:
            values = [lanes_to_hashes(b3_compress([w for w in B3_IV], block_lanes([x + y], "<"), [0], 64, PARENT, 1), 1, "<")[0] for x, y in zip(values[::2], values[1::2])]
        top = lanes_to_hashes(b3_compress(list(B3_IV), block_lanes([values[0] + values[1]], "<"), [0], 64, PARENT | 8, 1), 1, "<")[0]
        assert top == own_blake3([text])[0]
        if blake3_package:
            assert top == blake3_package.blake3(text).digest()
    assert catalog_root(b"x" * 3000) == own_blake3([b"x" * 3000], KEY)[0]
    # §14.1, §17.2
    assert Draws(1234567).draw() == 6457827717110365317
    assert anchor(bytes(1024)) == 0 == anchor(b"x" * 64 + bytes(960)) and anchor(bytes(63) + b"\1") == (DRAWS[0] * (2 ** 64 - 2) + DRAWS[1]) & MASK
    assert [len(anchors_of(bytes(x), 1024)) for x in (0, 1024, 1025, 65536, 66559, 66560)] == [0, 0, 1, 1, 1, 2] and len(anchors_of(bytes(1 << 21), 1 << 20)) == 2
    # §17.5: the places, against the definition
    for B in (0, 1, 2, 3, 7, 100):
        for N in (2, 3, 5, 100, 101, 250):
            extent, q, block = (0, B, N, 3), 3, 10
            c = [t * B // (N - 1) for t in range(N)]
            spans = [(piece_place(t, extent, block), q) for t in range(N)] + [(block_place(b, extent, block), block) for b in range(B)]
            assert [block_place(b, extent, block) for b in range(B)] == [b * block + q * sum(x <= b for x in c) for b in range(B)]
            end = 0
            for at, size in sorted(spans):
                assert at == end
                end += size
            assert end == extent_size(extent, block) and piece_place(N - 1, extent, block) + q == end
    for x in (0, 1, 127, 128, 300, (1 << 63) - 1):
        assert Cursor(varint(x)).varint() == x
    for d in (0, 1, -1, 2, -2, 100, -100, (1 << 62) - 1, -(1 << 62)):
        assert Cursor(step(d)).step() == d
    # §17.8
    assert [pick_block(x) for x in (0, 1 << 18, (1 << 18) + 1, 1 << 34, (1 << 34) + 1, 1 << 35, (1 << 35) + 1, 1 << 38, 1 << 50)] == [1024, 1024, 4096, 4096, 8192, 8192, 16384, 65536, 65536]
    assert pick_code(0, Fraction(1667, 10000), 1024) == (SMALL, 1, 1, 1) and pick_code(256, Fraction(2), 1024) == (WIDE, 256, 512, 1) and pick_code(220, Fraction(16, 100), 1024) == (SMALL, 220, 36, 1)
    assert pick_code(51201, Fraction(16, 100), 4096) == (WIDE, 25728, 4117, 2) and pick_code(1000, Fraction(127), 65536) == (SMALL, 2, 254, 500)
    for k, m, b in ((1, 1, 100), (220, 36, 10 ** 6), (1, 255, 10 ** 6), (85, 170, 10 ** 7), (1, 127, 10)):
        metadata_geometry(k, m, b)
    # a tree on disk, damaged and mended
    with tempfile.TemporaryDirectory() as name:
        home = os.fsencode(name)
        base, side = os.path.join(home, b"base"), os.path.join(home, b"side.fecp")
        os.mkdir(base)
        items = items_of(in_hex(mixed_tree(20)))
        write_tree(items, base)
        assert same_tree(collect(base, [b"."], None), items)
        data, _, root = seal(Draft(items, Fraction(1, 4), b"base"))
        store(side, data)
        assert verify(data, base)[1] == 0
        deep, shared = os.path.join(base, b"one/two/three/deep"), os.path.join(base, b"one/shared")
        os.chmod(deep, 0o600)
        info = os.stat(deep)
        with open(deep, "r+b") as f:
            f.seek(9000)
            f.write(bytes(6000))
        os.utime(deep, ns=(info.st_atime_ns, info.st_mtime_ns))
        with open(shared, "r+b") as f:
            f.truncate(25000)
        os.remove(os.path.join(base, b"one.txt"))
        lines, code = verify(data, base)
        assert code == 1 and {"rotten one/two/three/deep", "edited one/shared", "missing one.txt", "intact old", "edited zz"} - set(lines) == {"edited zz"}, lines
        assert repair(data, base, os.path.join(home, b"out"), root)[1] == 0
        assert [x[:4] + x[5:] for x in collect(os.path.join(home, b"out"), [b"."], None) if x.kind == FILE] == [x[:4] + x[5:] for x in sorted(items) if x.kind == FILE]
        worse = data[:len(data) // 2] + generate(33, 3) + data[len(data) // 2 + 9000:]
        lines, code = verify(worse, base, root)
        assert code in (1, 3) and repair(worse, base, os.path.join(home, b"out2"), root)[1] == (0 if code == 1 else 3)
        with open(deep, "wb"):
            pass
        assert verify(data, base)[1] == 3 and repair(data, base, os.path.join(home, b"out3"))[1] == 3
    print("ok")


def main():
    top = argparse.ArgumentParser(description="second implementation of sidecars of fec")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    p = commands.add_parser("protect")
    p.add_argument("-o", required=True)
    p.add_argument("--base", required=True)
    p.add_argument("-r", type=Fraction, default=Fraction(16), metavar="PERCENT")
    p.add_argument("paths", nargs="+")
    for name in ("verify", "repair"):
        p = commands.add_parser(name)
        p.add_argument("sidecar")
        p.add_argument("--base", required=name == "repair", help="the folder of the sidecar without it")
        p.add_argument("--root", type=bytes.fromhex)
        if name == "repair":
            p.add_argument("-o", required=True)
        else:
            p.add_argument("--deep", action="store_true", help="decode every set too")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return {"golden": golden, "check": check}[args.command](args.folder)
    try:
        if args.command == "protect":
            base, here = os.fsencode(args.base), os.path.realpath(os.path.dirname(os.fsencode(args.o)) or b".")
            out = os.lstat(args.o) if os.path.lexists(args.o) else None
            hint = os.path.relpath(os.path.realpath(base), here)
            items = collect(base, [os.fsencode(x) for x in args.paths], out and (out.st_dev, out.st_ino))
            data, _, root = seal(check_paths(Draft(items, args.r / 100, b"" if hint == b"." else hint)))
            store(args.o, data)
            print(root.hex())
            return 0
        if args.root is not None and len(args.root) != 32:
            top.error("a root has 64 hex digits")
        with open(args.sidecar, "rb") as f:
            data = f.read()
        base = os.fsencode(args.base) if args.base is not None else os.path.dirname(os.fsencode(args.sidecar)) or b"."
        if args.command == "verify":
            lines, code = verify(data, base, args.root, args.base is not None, args.deep)
        else:
            lines, code = repair(data, base, os.fsencode(args.o), args.root)
        print("\n".join(lines))
        return code
    except Fault as fault:
        print("%s: %s" % (fault.cls, fault.text), file=sys.stderr)
        return EXITS[fault.cls]
