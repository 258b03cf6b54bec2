"""The second implementation of payloads in stores, written from sections 18 and 9.5 of docs/FORMAT.md ("§" refers to
that file).

    oracle stores restore --root HEX -o OUT FOLDER…    from folders that stores keep their objects in
    oracle stores golden DIR                           writes manifest.json and outlines.json, always the same
    oracle stores check DIR                            reads them again

Exit codes: 0 ok, 3 cannot be restored, 5 invalid, 6 refused. Needs Python 3.9 and nothing else.
"""
import argparse
import json
import os
import struct
import sys

from . import encoding, outlines
from .encoding import BLAKE3, SHA256, Fault, Notes, crc32c, digest

MAGIC_L = bytes.fromhex("896665634C0D0A1A")
FRONT = 64


def text(value):
    data = value.encode()
    return struct.pack("<H", len(data)) + data


def manifest(h, k, m, C, segments, meta, targets, **lie):
    """segments: headers of shard files 0, with their payload bytes. `lie` replaces fields, for vectors that break a
    rule."""
    body = b"".join(header for header, _ in segments) + meta + b"".join(text(x) for pair in targets for x in pair)
    body = lie.get("body", lambda x: x)(body)
    fields = dict(length=FRONT + len(body), S=len(segments), C=C, version=1, hash=h, form=1, flags=0, k=k, m=m,
                  payload=sum(size for _, size in segments), T=len(targets), meta=len(meta), zero=0, zeros=0, magic=MAGIC_L)
    fields.update({name: value for name, value in lie.items() if name in fields})
    f = fields
    front = struct.pack("<IIIQBBBBHHQIIQ", f["zero"], f["length"], f["S"], f["C"], f["version"], f["hash"], f["form"], f["flags"], f["k"], f["m"],
                        f["payload"], f["T"], f["meta"], f["zeros"])
    data = front + body
    return f["magic"] + struct.pack("<I", lie.get("crc", crc32c(data))) + data


def take(data, at, size):
    if at + size > len(data):
        raise Fault("invalid", "§18.1: it is cut short")
    return data[at:at + size], at + size


def parse(data):
    """(C, headers, entries of the meta, targets)"""
    if len(data) < FRONT:
        raise Fault("damaged", "§18.1: length")
    if data[:8] != MAGIC_L:
        raise Fault("damaged", "§18.1: magic")
    if data[32] != 1:
        raise Fault("refused", "§18.1: version")
    crc, zero, length, S, C, _, h, form, flags, k, m, payload, T, meta_len, zeros = struct.unpack("<IIIIQBBBBHHQIIQ", data[8:FRONT])
    if len(data) > 1 << 24 or length != len(data):
        raise Fault("damaged", "§18.1: length")
    if crc != crc32c(data[12:]):
        raise Fault("damaged", "§18.1: CRC")
    if h not in (BLAKE3, SHA256) or form != 1 or flags:
        raise Fault("refused", "§18.1: hash, form or flags")
    if zero or zeros:
        raise Fault("invalid", "§18.1: zero bytes")
    if k < 1 or k + m > 256:
        raise Fault("invalid", "§18.1: k and m")
    if S < 1 or (len(data) - FRONT) // 192 < S:
        raise Fault("invalid", "§18.1: S")
    headers, at = [], FRONT
    for s in range(S):
        raw, at = take(data, at, 192)
        if raw[:8] != encoding.MAGIC_S:
            raise Fault("damaged", "§8: magic")
        header = encoding.read_header(raw, Notes())
        size = header.pg.payload
        if header.i or (header.pg.hash, header.pg.k, header.pg.m) != (h, k, m):
            raise Fault("invalid", "§18.1: a segment of another kind")
        if not (size == C or s == S - 1 and size < C) or size == 0 and S > 1:
            raise Fault("invalid", "§18.1: payload of a segment")
        headers.append(header)
    total = sum(header.pg.payload for header in headers)
    if C == 0 or total >= 1 << 63 or total != payload:
        raise Fault("invalid", "§18.1: payload")
    if meta_len > encoding.META_LIMIT:
        raise Fault("invalid", "§18.1: meta length")
    meta, at = take(data, at, meta_len)
    entries = encoding.check_meta(meta)
    if T > 1024:
        raise Fault("invalid", "§18.1: T")
    texts = []
    for _ in range(2 * T):
        size, at = take(data, at, 2)
        raw, at = take(data, at, struct.unpack("<H", size)[0])
        try:
            value = raw.decode()
        except UnicodeDecodeError:
            raise Fault("invalid", "§18.1: text")
        if not 1 <= len(raw) <= 2048 or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
            raise Fault("invalid", "§18.1: text")
        texts.append(value)
    if at != len(data):
        raise Fault("invalid", "§18.1: bytes behind its end")
    return C, headers, entries, list(zip(texts[::2], texts[1::2]))


def open_manifest(root, data):
    if len(data) < 34 or data[33] not in (BLAKE3, SHA256) or digest(data[33], data) != root:
        raise Fault("damaged", "§18.1: root")
    return parse(data)


def restore(root, folders):
    """The payload, from all that the folders have under its root."""
    return restore_all(root, folders)[0]


def restore_all(root, folders):
    """The payload, the entries of the meta, and whether all segments are marked as sealed."""
    headers = entries = None
    for folder in folders:
        path = os.path.join(folder, root.hex(), "manifest")
        if headers is None and os.path.isfile(path):
            with open(path, "rb") as f:
                data = f.read()
            try:
                _, headers, entries, _ = open_manifest(root, data)
            except Fault as fault:
                if fault.cls != "damaged":
                    raise
    roots = [header.R for header in headers] if headers else [root]
    payload, is_sealed = b"", True
    for segment in roots:
        blobs = []
        for folder in folders:
            path = os.path.join(folder, segment.hex())
            for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
                if len(name) == 9 and name.endswith(".shard") and name[:3].isdigit():
                    with open(os.path.join(path, name), "rb") as f:
                        blobs.append((os.path.join(path, name), f.read()))
        result = encoding.read_all(blobs, True, root=segment)
        if result.payload is None:
            raise Fault(result.cls, "segment %s cannot be restored" % segment.hex())
        payload += result.payload
        is_sealed &= result.sealed
        if headers is None and result.meta is not None:
            entries = encoding.check_meta(result.meta)
    return payload, entries, is_sealed


# ---------------------------------------------------------------- golden vectors

def segments_of(h, k, m, sizes, seed=7):
    out = []
    for nth, size in enumerate(sizes):
        name = b"letters.tar" if len(sizes) == 1 else b"letters.tar.%05d.segment" % nth
        files, _ = encoding.encode(encoding.SHARDS, h, k, m, encoding.generate(size, seed + nth), meta=encoding.make_meta(name))
        out.append((files[0][:192], size))
    return out


def vectors():
    targets = [("s3://bucket-%d/backup" % i, "place-%d" % (i % 2)) for i in range(3)]
    meta = encoding.make_meta(b"letters.tar")
    for name, h, k, m, C, sizes, where in (
            ("one", BLAKE3, 3, 2, 1 << 30, [10_000], targets),
            ("three", BLAKE3, 3, 2, 10_000, [10_000, 10_000, 77], targets),
            ("whole", SHA256, 10, 4, 5_000, [5_000, 5_000], [("/mnt/a b", "ümlaut")]),
            ("empty", BLAKE3, 1, 0, 1 << 30, [0], [])):
        segments = segments_of(h, k, m, sizes)
        data = manifest(h, k, m, C, segments, meta, where)
        yield dict(name=name, hash=h, k=k, m=m, segment_len=C, payload_len=sum(sizes), segments=len(sizes), targets=where, bytes=data.hex(), root=digest(h, data).hex(), error=None)

    good = segments_of(BLAKE3, 3, 2, [10_000, 77])
    base = dict(h=BLAKE3, k=3, m=2, C=10_000, segments=good, meta=meta, targets=targets)

    def bad(name, **changes):
        arguments = dict(base)
        arguments.update({key: changes.pop(key) for key in list(changes) if key in base})
        data = manifest(arguments.pop("h"), arguments.pop("k"), arguments.pop("m"), arguments.pop("C"), arguments.pop("segments"), arguments.pop("meta"), arguments.pop("targets"), **changes)
        try:
            parse(data)
            error = None
        except Fault as fault:
            error = fault.cls
        assert error, name
        return dict(name=name, bytes=data.hex(), root=digest(BLAKE3, data).hex(), error=error)

    other = segments_of(BLAKE3, 3, 3, [10_000])[0]
    yield bad("magic", magic=encoding.MAGIC_M)
    yield bad("version", version=2)
    yield bad("hash", hash=3)
    yield bad("form", form=2)
    yield bad("flags", flags=1)
    yield bad("crc", crc=1)
    yield bad("length", length=9)
    yield bad("zero", zero=1)
    yield bad("zeros", zeros=1 << 63)
    yield bad("k-0", k=0)
    yield bad("n-257", k=200, m=57)
    yield bad("other-code", m=3)
    yield bad("other-hash", hash=SHA256)
    yield bad("no-segments", S=0, segments=[], payload=0)
    yield bad("too-many-segments", S=1 << 31)
    yield bad("first-is-short", segments=good[::-1])
    yield bad("last-is-long", C=70)
    yield bad("empty-last", segments=[good[0], segments_of(BLAKE3, 3, 2, [0])[0]])
    yield bad("C-0", C=0, segments=segments_of(BLAKE3, 3, 2, [0]))
    yield bad("payload", payload=10_076)
    yield bad("segment-of-another-code", segments=[good[0], other])
    yield bad("header-damaged", body=lambda x: x[:150] + b"\x99" + x[151:])
    yield bad("header-version", body=lambda x: x[:32] + b"\x02" + x[33:])
    yield bad("index-1", segments=[(encoding.encode(encoding.SHARDS, BLAKE3, 3, 2, encoding.generate(10_000, 7), meta=encoding.make_meta(b"x"))[0][1][:192], 10_000), good[1]])
    yield bad("meta-long", meta=b"\x09\xff\xff" + bytes(65_535))
    yield bad("meta-unknown", meta=b"\x0c\x01\x00x")
    yield bad("meta-name", meta=b"\x02\x03\x00a/b")
    yield bad("targets-1025", T=1025)
    yield bad("target-empty", targets=[("", "x")])
    yield bad("target-long", targets=[("x" * 2049, "x")])
    yield bad("target-control", targets=[("a\x1bb", "x")])
    yield bad("target-c1", targets=[("a\x9bb", "x")])
    yield bad("target-utf8", targets=[("ab", "x")], body=lambda x: x[:-5] + b"\xff" + x[-4:])
    yield bad("cut", body=lambda x: x[:-1])
    yield bad("behind", body=lambda x: x + b"\0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("restore")
    one.add_argument("--root", required=True)
    one.add_argument("-o", required=True)
    one.add_argument("folders", nargs="+")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    options = parser.parse_args()
    try:
        if options.command == "restore":
            encoding.store(options.o, restore(bytes.fromhex(options.root), options.folders))
            return 0
    except Fault as fault:
        print("%s: %s" % (fault.cls, fault.text), file=sys.stderr)
        return encoding.EXIT[fault.cls]
    path, outlined = (os.path.join(options.folder, name) for name in ("manifest.json", "outlines.json"))
    if options.command == "golden":
        for file, of in ((path, vectors()), (outlined, outlines.vectors())):
            encoding.store(file, (json.dumps(list(of), indent=1, ensure_ascii=False) + "\n").encode())
        return 0
    with open(outlined, encoding="utf-8") as f:
        for vector in json.load(f):
            outlines.check(vector)
    with open(path, encoding="utf-8") as f:
        for vector in json.load(f):
            data = bytes.fromhex(vector["bytes"])
            try:
                # A vector that breaks a rule has a right root too, but open_manifest may not get as far as the rule.
                C, headers, entries, targets = parse(data) if vector["error"] else open_manifest(bytes.fromhex(vector["root"]), data)
                assert vector["error"] is None and (C, len(headers)) == (vector["segment_len"], vector["segments"]), vector["name"]
            except Fault as fault:
                assert fault.cls == vector["error"], (vector["name"], fault.cls)
    return 0
