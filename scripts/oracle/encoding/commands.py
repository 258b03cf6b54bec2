"""The second implementation of the formats of fec, written from docs/FORMAT.md alone ("§" refers to that file).

    oracle encoding selftest
    oracle encoding encode --form shards|container -k K -m M [--hash blake3|sha256] [--set-size N]
                     [--group-size G | --whole yes|no] [--name NAME] [--sha256-entry] [--blake3-entry] [--sealed]
                     -o OUT FILE
    oracle encoding decode [--root HEX] [--strict] [--range FROM TO] -o OUT PATH…
    oracle encoding verify [--root HEX] [--strict] PATH…
    oracle encoding golden DIR                             writes the test vectors (the same bytes on each run)
    oracle encoding check DIR                              reads them all again

PATH… is a folder of shard files, shard files, or one container.

Exit codes: 0 ok, 1 verify: damaged but restorable, 2 usage or ambiguous, 3 cannot be restored, 4 I/O, 5 invalid or
wrong root, 6 refused. Needs Python 3.9 and nothing else; the package `blake3` is used when it is there. The program is
plain and slow on purpose.
"""
import argparse
import hashlib
import os
import sys

from ..basics import BLAKE3, CONTAINER, SHA256, Fault, Notes, clog2, generate, store
from ..gf import evaluate
from ..hashes import B3_IV, TAGS, crc32c, node, own_blake3, sha_compress
from . import containers, reader
from .containers import Scan
from .forge import forge, shard_names
from .geometry import SEALED, group_of, plan
from .meta import check_meta, make_meta
from .reader import load, read_all
from .shard_files import annex_size
from .vectors import FORMS, HASHES, check, golden
from .writer import annex, encode


def selftest():
    known = {0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262", 1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
             1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7", 1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
             2048: "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a", 2049: "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
             31744: "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"}
    text = bytes(i % 251 for i in range(31744))
    for size, value in known.items():
        assert own_blake3([text[:size]] * 2)[1].hex() == value, size
    assert own_blake3([text[:1]], b"whats the Elvish word for friend")[0].hex() == "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b"
    block = b"abc\x80" + bytes(59) + b"\x18"
    assert sha_compress(B3_IV, [bytes(64), block])[1] == hashlib.sha256(b"abc").digest()
    for tag, first, second in (("LEAF", "47f14ed8ec24427b", "b316e2a03520c77f"), ("NODE", "cb93fe97b2a24448", "8c83cd242cead87c"),
                               ("SET", "9061fa1ce070b018", "fab9bb1432072c6d"), ("LINK", "e3284e362b7a55aa", "ace267f98780f128"),
                               ("GROUP", "2304111eae4ad5e2", "d6b6f91501715a24")):
        assert node(BLAKE3, tag, bytes(64))[:8].hex() == first and node(SHA256, tag, bytes(64))[:8].hex() == second, tag
    assert TAGS["NODE"].hex() == "6665632f31206e6f64653a206c6566742c207269676874202020202020202020"
    assert node(SHA256, "NODE", bytes(64)).hex() == "8c83cd242cead87c64a7631e494199151886985d6f21437a0ba968cc9ff290ca"
    assert b"".join(evaluate([0, 1], [b"\x12", b"\xA5"], [2, 3, 4])).hex() == "61d6f4"
    rows = [generate(64, s) for s in range(5)]
    more = evaluate(range(5), rows, range(5, 12))
    assert evaluate([11, 3, 6, 8, 5], [more[6], rows[3], more[1], more[3], more[0]], [0, 1, 2, 4, 7]) == rows[:3] + [rows[4], more[2]]
    assert crc32c(b"123456789") == 0xE3069283
    assert [clog2(x) for x in (0, 1, 2, 3, 4, 5, 256, 257)] == [0, 0, 1, 2, 2, 3, 8, 9]
    # §4.3: sets and groups for the default set size, which is doubled for very large payloads
    for k, m, B, whole, G, N in ((10, 4, 1 << 30, True, 256, 1), (1, 255, 1 << 20, True, 16, 1), (1, 255, 1 << 20, False, 3, 6),
                                 (1, 0, (1 << 42) + 1, True, (1 << 19) + 1, 1), (1, 0, 1 << 50, False, 1, 1 << 25)):
        P = plan(CONTAINER, BLAKE3, k, m, B, whole=whole)
        assert (P.G, P.nr) == (G, N) and sum(group_of(P, g).payload for g in {0, N - 1}) == B - max(0, N - 2) * k * P.L * G, P
    # §9.4, §12: inputs that would be too large for a vector
    assert annex_size(annex(3, bytes(1 << 20)), 0)[0] == 64 + (1 << 20)
    kept, data = (reader.LAST_GROUPS, containers.INDEXES_KEPT), [forge(CONTAINER, payload=generate(50, j), keep=lambda g, s, i: j == 0 or i == 2)[0] for j in range(4)]
    last_groups = [forge(CONTAINER, k=2, m=0, payload=generate(100, j), parts=((100, 64, 1),), index=False, keep=lambda g, s, i: i == 0)[0] for j in range(4)]
    reader.LAST_GROUPS, containers.INDEXES_KEPT = 5, 2
    assert read_all([("", b"".join(last_groups) + data[0])], False).payload == generate(50, 0)
    assert len(Scan(b"".join(data), Notes()).indexes) == 6
    reader.LAST_GROUPS = 4
    assert read_all([("", b"".join(last_groups) + data[0])], False).cls == "ambiguous"
    reader.LAST_GROUPS, containers.INDEXES_KEPT = kept
    print("ok")


def main():
    top = argparse.ArgumentParser(description="second implementation of the formats of fec")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    enc = commands.add_parser("encode")
    enc.add_argument("--form", choices=FORMS, required=True)
    enc.add_argument("--hash", choices=HASHES, default="blake3")
    enc.add_argument("--set-size", type=int)
    enc.add_argument("--group-size", type=int, help="sets of a group of a container; groups have a bounded size then")
    enc.add_argument("--whole", choices=("yes", "no"), help="one group for the whole payload (the default without --group-size)")
    enc.add_argument("-k", type=int, required=True)
    enc.add_argument("-m", type=int, required=True)
    enc.add_argument("--name", help="in the meta; without it shard files have the file's, and containers none")
    enc.add_argument("--sha256-entry", action="store_true", help="the payload's SHA-256 in the meta")
    enc.add_argument("--blake3-entry", action="store_true")
    enc.add_argument("--sealed", action="store_true")
    enc.add_argument("-o", required=True)
    enc.add_argument("file")
    for name in ("decode", "verify"):
        dec = commands.add_parser(name)
        dec.add_argument("--root", type=bytes.fromhex)
        dec.add_argument("--strict", action="store_true")
        if name == "decode":
            dec.add_argument("--range", type=int, nargs=2, metavar=("FROM", "TO"))
            dec.add_argument("-o", required=True)
        dec.add_argument("paths", nargs="+")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return {"golden": golden, "check": check}[args.command](args.folder)
    if args.command == "encode":
        with open(args.file, "rb") as f:
            payload = f.read()
        shards = args.form == "shards"
        name = args.name or (os.path.basename(args.file) if shards else "")
        if args.k < 1 or args.m < 0 or args.k + args.m > 256 or min(args.set_size or 1, args.group_size or 1) < 1:
            top.error("shape, set size or group size is out of range")
        if shards and (args.group_size or args.whole) or args.group_size and args.whole == "yes":
            top.error("only containers have groups of a bounded size")
        meta = make_meta(os.fsencode(name), payload, [SHA256] * args.sha256_entry + [BLAKE3] * args.blake3_entry)
        try:
            check_meta(meta)
            files, root = encode(FORMS[args.form], HASHES[args.hash], args.k, args.m, payload, args.set_size, args.group_size, meta,
                                 not args.group_size and args.whole != "no", SEALED if args.sealed else 0)
        except Fault as fault:
            top.error(fault.text)
        for file, data in shard_names(name, files).items() if shards else [("", files[0])]:
            store(os.path.join(args.o, file) if file else args.o, data)
        print(root.hex())
        return 0
    if args.root is not None and len(args.root) != 32:
        top.error("a root has 64 hex digits")
    span = getattr(args, "range", None)
    if span and not 0 <= span[0] <= span[1]:
        top.error("a range goes from a byte to a later one")
    result = read_all(*load(args.paths), args.root, args.strict, span and tuple(span))
    if args.command == "verify":
        print("\n".join(result.lines))
        return 0 if result.clean else 1 if result.cls is None else result.exit
    if result.cls:
        print("\n".join(result.lines), file=sys.stderr)
        return result.exit
    store(args.o, result.payload)
    print(result.root.hex())
    return 0
