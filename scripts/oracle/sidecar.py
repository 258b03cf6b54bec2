"""The second implementation of sidecars (form 3), written from docs/FORMAT.md alone ("§" refers to it), mainly section 17.

    oracle sidecar selftest
    oracle sidecar protect -o SIDECAR --base BASE [-r PERCENT] PATH…      paths are relative to BASE
    oracle sidecar verify SIDECAR [--base BASE] [--root HEX] [--deep]
    oracle sidecar repair SIDECAR --base BASE [--root HEX] -o DIR         a mended copy of all files
    oracle sidecar golden DIR                             writes DIR/sidecar.json and DIR/sidecar-errors/ (the same bytes on each run)
    oracle sidecar check DIR                              reads them all again

Exit codes: 0 ok, 1 something is wrong but can be mended, 2 usage or ambiguous, 3 cannot be mended, 4 I/O, 5 invalid or wrong root, 6 refused.
Needs Python 3.9 and nothing else; the package `blake3` is used when it is there. It is plain and slow on purpose.
Where the text leaves a choice to the reader the comment says "choice"; the vectors that rest on one have "choice": true.
"""
import argparse
import json
import hashlib
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
from collections import namedtuple
from fractions import Fraction

from .encoding import (B3_IV, BLAKE3, CHUNK_END, CHUNK_START, EXIT, LAST, PARENT, WORK, WORST, ZERO32, Fault, Geo, Group, Notes, align, b3_compress,
                       blake3_package, block_lanes, ceil_div, check_geometry, check_version, crc32c, digest, digests, evaluate, flipped, follow_proof,
                       generate, group_of, group_root, lanes_to_hashes, own_blake3, pack, padded, plan, proof_size, put_crc, raise_worst, restore_group, store, unpack)
from .stream import MASK, Draws

SIDECAR = 3                                             # §4 form
MAGIC_P = bytes.fromhex("89666563500D0A1A")             # §17.4 piece
FILE, FOLDER, SYMLINK, HARDLINK = range(4)              # §17.2 kinds
EXECUTABLE, WITH_SHA256 = 16, 32                        # §17.2 flags of a kind
KINDS = (FILE, FILE | EXECUTABLE, FILE | WITH_SHA256, FILE | EXECUTABLE | WITH_SHA256, FOLDER, SYMLINK, HARDLINK)
HEADER, LAYOUT = 128, 96                                # §17.4
KEY = b"fec/1 sidecar: catalog".ljust(32)               # §17.2
NOTHING, GONE = bytes(16), b"\xff" * 16                 # §17.1: the digests of nothing and of bytes that are lost
LAST_PACKED = 16                                        # §17.8
ANCHORED = 65536                                        # §17.2: the offsets of blocks that have an anchor
DRAWS = [Draws(b).draw() for b in range(256)]      # §17.2: G(b)


def common(a, b):
    """The length of what two paths begin with."""
    return len(os.path.commonprefix([a, b]))


# ---------------------------------------------------------------- §17.1 digests

def chaining_values(pieces, offsets):
    """Of the subtrees over pieces (all of one size: 1024 bytes times a power of two) that stand at these offsets of their files; never as a root."""
    def start(count):
        return [int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little") * w for w in B3_IV]

    out, per = [], len(pieces[0]) // 1024 if pieces else 1
    step = max(1, 2048 // per)
    for at in range(0, len(pieces), step):
        chunks = [p[1024 * c:1024 * c + 1024] for p in pieces[at:at + step] for c in range(per)]
        counters = [o // 1024 + c for o in offsets[at:at + step] for c in range(per)]
        cv = start(len(chunks))
        for b in range(16):
            flags = (CHUNK_START if b == 0 else 0) | (CHUNK_END if b == 15 else 0)
            cv = b3_compress(cv, block_lanes([c[64 * b:64 * b + 64] for c in chunks], "<"), counters, 64, flags, len(chunks))
        values, width = lanes_to_hashes(cv, len(chunks), "<"), per
        while width > 1:
            pairs = [x + y for x, y in zip(values[::2], values[1::2])]
            cv = b3_compress(start(len(pairs)), block_lanes(pairs, "<"), [0] * len(pairs), 64, PARENT, len(pairs))
            values, width = lanes_to_hashes(cv, len(pairs), "<"), width // 2
        out += values
    return out


def whole_digests(data, block, count):
    """Of the first whole blocks of a file."""
    at = [block * j for j in range(count)]
    return [v[:16] for v in chaining_values([data[o:o + block] for o in at], at)]


def plain_digests(blocks):
    return [v[:16] for v in digests(BLAKE3, blocks)] if blocks else []


def catalog_root(catalog):
    if blake3_package:
        return blake3_package.blake3(catalog, key=KEY).digest()
    return own_blake3([catalog], KEY)[0]


def anchor(block):
    """§17.2"""
    h = 0
    for b in block[:64]:
        h = 2 * h + DRAWS[b] & MASK
    return 0 if len(set(block[:64])) == 1 else h


def anchors_of(content, block):
    """Of the blocks of a file that is longer than a block, the whole ones at offsets that have an anchor."""
    return [anchor(content[o:o + block]) for o in range(0, len(content) // block * block, max(block, ANCHORED))] if len(content) > block else []


# ---------------------------------------------------------------- §17.2 varints and entries

def varint(x):
    out = bytearray()
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    return bytes(out) + bytes([x])


def step(d):
    return varint(2 * d if d >= 0 else -2 * d - 1)


def file_fields(size, content, runs=None, tail=None, sha256=b""):
    """runs: (step, length) of each, or None; tail: a step, or None. content is what the entry says, the digest is computed."""
    out = varint(size) + digest(BLAKE3, content) + sha256
    if runs is not None:
        out += varint(len(runs)) + b"".join(step(d) + varint(n) for d, n in runs)
    return out + (step(tail) if tail is not None else b"")


class Rec:
    """An entry as it is written; shared: what it says in place of the longest that serves (§17.8)"""

    def __init__(self, path, kind, fields=b"", shared=None):
        self.path, self.kind, self.fields, self.shared = path, kind, fields, shared


def write_entries(recs):
    out, before = [], b""
    for rec in recs:
        if isinstance(rec, bytes):
            out.append(rec)
            continue
        shared = common(before, rec.path) if rec.shared is None else rec.shared
        out.append(varint(shared) + varint(len(rec.path) - shared) + rec.path[shared:] + bytes([rec.kind]) + rec.fields)
        before = rec.path
    return b"".join(out)


# ---------------------------------------------------------------- §17.5 where things stand

def piece_place(t, area, block):
    """Behind the start of the area; area: (start, blocks, pieces, bytes)"""
    _, B, N, q = area
    return t * B // (N - 1) * block + t * q


def block_place(b, area, block):
    """The number of t with ⌊t·B / (N − 1)⌋ ≤ b is ⌈(b + 1)·(N − 1) / B⌉, for b < B."""
    _, B, N, q = area
    return b * block + q * ceil_div((b + 1) * (N - 1), B)


def area_size(area, block):
    return area[1] * block + area[2] * area[3]


# ---------------------------------------------------------------- the writer

Item = namedtuple("Item", "path kind content target mode seconds nanos")    # content: of a file; target: of a symbolic link, or the path that a hard link has


def pick_block(total):
    """§17.8"""
    if total <= 256 << 10:
        return 1024
    block = 4096
    while total > 1 << 30 and ceil_div(total, block) > 1 << 18 and block < 65536:
        block *= 2
    return block


def pick_code(b, r):
    """§17.8: (k, m, G) for b positions"""
    def recovery(k):
        return ceil_div(k * r.numerator, r.denominator)

    K = max((k for k in range(1, 256) if k + recovery(k) <= 256), default=None)
    if K is None or not 0 < r <= 127 or (10000 * r).denominator != 1:
        raise Fault("refused", "§17.8: no code has this redundancy")
    G = max(1, ceil_div(b, K))
    k = max(1, ceil_div(b, G))
    return k, recovery(k), G


def metadata_geometry(k, m, b):
    """§17.8: Pg"""
    m1 = min(127, max(32, ceil_div(128 * m, k + m)))
    k1 = 128 - m1
    shape = k1, m1
    if b < 4096 * k1:
        k2 = max(1, ceil_div(b, 4096))
        shape = k2, ceil_div(k2 * m1, k1) + 1
    return group_of(plan(SIDECAR, BLAKE3, *shape, b, set_size=8192 * k1), 0)


class Draft:
    """What a sidecar will say. The hooks of `seal` and the lists here let the negative vectors be signed properly although they break a rule."""

    def __init__(self, items, r, hint=b""):
        items = sorted(items)
        files = [x for x in items if x.kind == FILE]
        self.total = sum(len(x.content) for x in files)
        self.block = block = pick_block(self.total)
        whole = {x.path: len(x.content) // block if len(x.content) > block else 0 for x in files}
        positions, packed, first = [], [], sum(whole.values())      # packed: of each position that was begun, its bytes
        cursor, self.recs, self.attributes = 0, [], []
        numbers = {x.path: n for n, x in enumerate(items)}
        self.digests, self.anchors = [], []
        for x in items:
            kind, fields = x.kind, b""
            if x.kind == FILE:
                cut = whole[x.path] * block
                tail = x.content[cut:]
                place = None
                if tail:
                    j = next((j for j in range(max(0, len(packed) - LAST_PACKED), len(packed)) if len(packed[j]) + len(tail) <= block), len(packed))
                    if j == len(packed):
                        packed.append(b"")
                    place = (first + j) * block + len(packed[j])
                    packed[j] += tail
                fields = file_fields(len(x.content), x.content, [(0, whole[x.path])] if cut else None, place - cursor if tail else None)
                cursor = place + len(tail) if tail else cursor
                kind |= EXECUTABLE if x.mode & 0o100 else 0
                positions += [x.content[o:o + block] for o in range(0, cut, block)]
                self.digests += whole_digests(x.content, block, whole[x.path])
                self.anchors += anchors_of(x.content, block)
            elif x.kind == SYMLINK:
                fields = varint(len(x.target)) + x.target
            elif x.kind == HARDLINK:
                fields = varint(numbers[x.target])
            self.recs.append(Rec(x.path, kind, fields))
            self.attributes.append(struct.pack("<qIHH", x.seconds, x.nanos, x.mode & 0o7777, 0))
        tails = [padded(x, block) for x in packed]
        self.digests += plain_digests(tails)
        positions += tails
        k, m, G = pick_code(len(positions), r)
        self.digests += [NOTHING] * (k * G - len(positions))
        positions += [bytes(block)] * (k * G - len(positions))
        rows = [b"".join(positions[i * G:i * G + G]) for i in range(k)]         # §17.1: position i·G + s; all sets of the group at once
        self.recovery = [row[o:o + block] for row in evaluate(list(range(k)), rows, range(k, k + m)) for o in range(0, G * block, block)]
        self.digests += plain_digests(self.recovery)
        self.groups, self.areas, self.hint = [[k, m, G, 0, 0]], [], hint
        self.version, self.features = 1, 0
        self.lie, self.pokes, self.left_over, self.behind, self.hint_size, self.cut = {}, [], b"", b"", None, 0

    def add(self, rec, size=0):
        """One more entry, for the vectors."""
        self.recs.append(rec)
        self.attributes.append(self.attributes[0])
        self.total += size

    def replace(self, number, fields):
        self.recs[number].fields = fields

    def catalog(self):
        """§17.2"""
        entries = write_entries(self.recs) + self.left_over
        has = dict(block=self.block, areas=len(self.areas), groups=len(self.groups), entries=len(self.recs), size=len(entries), total=self.total)
        has.update(self.lie)
        out = bytearray(struct.pack("<IIIIIIQQ", self.version, self.features, *(has[x] for x in ("block", "areas", "groups", "entries", "size", "total"))) + bytes(24))
        out += b"".join(struct.pack("<QQIIQ", *area, 0) for area in self.areas)
        out += b"".join(struct.pack("<HHIIIQQ", k, m, G, area, 0, first, 0) for k, m, G, area, first in self.groups)
        out += entries + b"".join(self.digests) + b"".join(struct.pack("<Q", x) for x in self.anchors)
        out = out[:len(out) - self.cut]
        for at, value in self.pokes:
            out[at] ^= value
        return bytes(out)

    def metadata(self):
        """§17.3, and the bytes of the catalog"""
        catalog = self.catalog()
        size = len(self.hint) if self.hint_size is None else self.hint_size
        return catalog + b"".join(self.attributes) + struct.pack("<H", size) + self.hint + self.behind, len(catalog)


def path_limit(entry_bytes):
    """§17.2"""
    return 65536 + 32 * entry_bytes


def check_paths(draft):
    """§17.8: what a reader would refuse is not written"""
    if sum(len(x.path) for x in draft.recs) > path_limit(len(write_entries(draft.recs))):
        raise Fault("refused", "§17.2: the bytes of all paths")
    return draft


def seal(draft, start=0, before=ZERO32, generation=1, late=None, layout=None, piece=None, geometry=None, lie=None, alter=None, drop=()):
    """§17.4, §17.5: (the bytes of an area, E, root). late changes the draft when its area is known; layout and piece are hooks on what is written;
    geometry changes Pg (and L with it) before anything is built, lie what Pg says; drop: pieces that are overwritten with zeros."""
    draft.areas.append([start, len(draft.recovery), 2, 64])
    size = len(draft.metadata()[0])
    pg = metadata_geometry(*(max(1, x) for x in draft.groups[-1][:2]), size) if draft.groups else metadata_geometry(1, 1, size)
    if geometry:
        pg = pg._replace(**geometry)
        pg = pg._replace(L=64 * ceil_div(size, 64 * pg.k * pg.G))
    n, front = pg.k + pg.m, align(HEADER + LAYOUT + proof_size(pg), 64)
    area = [start, len(draft.recovery), n * pg.G, front + pg.L]
    draft.areas[-1] = list(area)
    if late:
        late(draft)
    metadata, cut = draft.metadata()
    assert len(metadata) == size
    lay = bytearray(before + struct.pack("<QQQQI", generation, start, area[1], cut, draft.block) + bytes(28))
    if layout:
        layout(lay)
    group = Group(pg, metadata, digest(BLAKE3, bytes(lay)), alter, lie)
    out = bytearray(area_size(area, draft.block))
    for b, data in enumerate(draft.recovery):
        at = block_place(b, area, draft.block)
        out[at:at + draft.block] = data
    for i in range(n):
        for s in range(pg.G):
            head = bytearray(MAGIC_P + bytes(8) + struct.pack("<IIQ", s, i, 0) + pack(group.pg) + group.gr + group.before)
            rest = bytearray(lay + group.proof(s, i))
            rest += bytes(-(HEADER + len(rest)) % 64)
            if piece:
                piece(s, i, head, rest)
            t = i * pg.G + s
            data = put_crc(head, rest) + group.shards[i][s]
            at = piece_place(t, area, draft.block)
            out[at:at + area[3]] = bytes(area[3]) if t in drop else data.ljust(area[3], b"\0")
    return bytes(out), group.gr, catalog_root(metadata[:cut])


# ---------------------------------------------------------------- the reader: the catalog

Entry = namedtuple("Entry", "path kind size blake3 sha256 runs tail target link seconds nanos mode")


class Cursor:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, size):
        if size > len(self.data) - self.pos:
            raise Fault("invalid", "§17.2: the entries end inside an entry")
        self.pos += size
        return self.data[self.pos - size:self.pos]

    def varint(self):
        x = 0
        for j in range(10):
            byte = self.take(1)[0]
            x |= (byte & 127) << 7 * j
            if byte < 128:
                if x >= 1 << 63 or j and not byte:
                    raise Fault("invalid", "§17.2: a varint is too large, or not the shortest")
                return x
        raise Fault("invalid", "§17.2: a varint has more than 10 bytes")

    def step(self):
        z = self.varint()
        return -((z + 1) // 2) if z & 1 else z // 2


def check_disjoint(ranges, what):
    ranges = sorted(ranges)
    for (_, end), (start, _) in zip(ranges, ranges[1:]):
        if start < end:
            raise Fault("invalid", "§17.2: %s overlap" % what)


def check_path(path, before):
    """§17.2: a path by itself, and behind the one before"""
    if not 1 <= len(path) <= 4096 or b"\0" in path:
        raise Fault("invalid", "§17.2: a path is empty, too long or has a NUL")
    if any(not 1 <= len(part) <= 255 or part in (b".", b"..") for part in path.split(b"/")):
        raise Fault("invalid", "§17.2: a part of a path")
    if before is not None and path <= before:
        raise Fault("invalid", "§17.2: paths do not ascend")


def check_folders(kinds):
    """§17.2: what lies in an entry lies in a folder. kinds: by path, ascending"""
    for path in kinds:
        at = path.rfind(b"/")
        while at >= 0 and path[:at] not in kinds:       # those above an entry were looked at with it
            at = path.rfind(b"/", 0, at)
        if at >= 0 and kinds[path[:at]] != FOLDER:
            raise Fault("invalid", "§17.2: below an entry that is no folder")


class Catalog:
    """§17.2, §17.3: the metadata of an encoding, checked"""

    def __init__(self, metadata, layout, pg):
        self.before, self.generation, start, blocks, size, block = struct.unpack_from("<32sQQQQI", layout)
        if size > len(metadata) or size < 64:
            raise Fault("invalid", "§17.4: the catalog is longer than the metadata, or too short")
        data = metadata[:size]
        self.root = catalog_root(data)
        version, features, self.block, areas, groups, entries, entry_bytes, total = struct.unpack_from("<IIIIIIQQ", data)
        if version != 1 or features:
            raise Fault("refused", "§17.2: version or features")
        if self.block not in [1 << j for j in range(10, 21)] or areas < 1 or groups < 1 or any(data[40:64]):
            raise Fault("invalid", "§17.2: the block, no areas, no groups, or bytes that are not zero")
        at = 64 + 32 * areas + 32 * groups
        if at + entry_bytes > size:
            raise Fault("invalid", "§17.2: the catalog is too short for what it says")
        self.areas, self.groups = [], []
        for j in range(areas):
            *area, zero = struct.unpack_from("<QQIIQ", data, 64 + 32 * j)
            if zero or area[2] < 2 or area[0] + area_size(area, self.block) >= 1 << 62:
                raise Fault("invalid", "§17.2: an area")
            if self.areas and area[0] < self.areas[-1][0] + area_size(self.areas[-1], self.block):
                raise Fault("invalid", "§17.2: areas overlap or do not ascend")
            self.areas.append(area)
        positions = shards = 0
        taken = []
        for j in range(groups):
            k, m, G, area, zero, first, zeros = struct.unpack_from("<HHIIIQQ", data, at - 32 * (groups - j))
            if zero or zeros or k < 1 or m < 1 or G < 1 or k + m > 256 or area >= areas or first + m * G > self.areas[area][1]:
                raise Fault("invalid", "§17.2: a group")
            self.groups.append((k, m, G, area, first, positions, shards))     # its first position and its first digest
            taken.append(((area, first), (area, first + m * G)))
            positions, shards = positions + k * G, shards + (k + m) * G
        check_disjoint(taken, "the recovery shards of groups")
        self.positions = positions
        if at + entry_bytes + 16 * shards > size:
            raise Fault("invalid", "§17.2: the catalog does not have the bytes that it says")
        attributes = metadata[size:]
        self.digests = [data[o:o + 16] for o in range(at + entry_bytes, at + entry_bytes + 16 * shards, 16)]
        self.read_entries(Cursor(data[at:at + entry_bytes]), entries)
        n, front = pg.k + pg.m, align(HEADER + LAYOUT + proof_size(pg), 64)
        if self.areas[-1] != [start, blocks, n * pg.G, front + pg.L] or block != self.block or (self.generation == 1) != (self.before == ZERO32) or not self.generation:
            raise Fault("invalid", "§17.2: the last area is not that of the pieces, or §17.4: the generation")
        if self.generation == 1 and (start or areas > 1):
            raise Fault("invalid", "§17.4: generation 1 has one area, which starts at 0")
        self.read_attributes(attributes)
        if sum(x.size for x in self.entries) != total:
            raise Fault("invalid", "§17.2: the sum of the sizes")
        anchored = sum(o * self.block % ANCHORED == 0 for start, end, _, first in self.whole for o in range(first, first + end - start))
        if at + entry_bytes + 16 * shards + 8 * anchored != size:
            raise Fault("invalid", "§17.2: the catalog does not end behind the anchors")
        self.hint = attributes[16 * entries + 2:]
        if len(self.hint) != struct.unpack_from("<H", attributes, 16 * entries)[0] or b"\0" in self.hint:
            raise Fault("invalid", "§17.3: the metadata do not end behind the base, or it has a NUL")

    def read_attributes(self, attributes):
        """§17.3"""
        if len(attributes) < 16 * len(self.entries) + 2:
            raise Fault("invalid", "§17.3: the metadata are too short")
        for number, x in enumerate(self.entries):
            seconds, nanos, mode, zero = struct.unpack_from("<qIHH", attributes, 16 * number)
            if zero or mode > 0o7777 or nanos >= 10 ** 9:
                raise Fault("invalid", "§17.3: bytes that are not zero, permissions or nanoseconds")
            self.entries[number] = x._replace(seconds=seconds, nanos=nanos, mode=mode)

    def read_entries(self, data, count):
        """§17.2, in the order that it gives"""
        block, kinds, path, whole_at, packed_at, paths = self.block, {}, None, 0, 0, 0
        self.entries, self.whole, self.packed = [], [], []      # whole: (position, end, entry, first block of the file); packed: (byte, end, entry, byte of the file)
        for number in range(count):
            shared = data.varint()
            if shared > len(path or b""):
                raise Fault("invalid", "§17.2: more is shared than there is")
            rest = data.varint()
            if shared + rest > 4096:
                raise Fault("invalid", "§17.2: a path is too long")
            before, path = path, (path or b"")[:shared] + data.take(rest)
            paths += len(path)
            if paths > path_limit(len(data.data)):
                raise Fault("refused", "§17.2: the bytes of all paths")
            kind = data.take(1)[0]
            if kind not in KINDS:
                raise Fault("refused", "§17.2: kind %d" % kind)
            check_path(path, before)
            kinds[path] = kind & 15
            size, content, sha256, runs, tail, target, link = 0, None, None, [], None, None, None
            if kind & 15 == FILE:
                size, content = data.varint(), data.take(32)
                sha256 = data.take(32) if kind & WITH_SHA256 else None
                if not size and content != digest(BLAKE3, b""):
                    raise Fault("invalid", "§17.2: an empty file has the BLAKE3 of no bytes")
                left = size // block if size > block else 0
                if left:
                    for _ in range(data.varint()):
                        whole_at += data.step()
                        length = data.varint()
                        if not 1 <= length <= left or whole_at < 0 or whole_at + length >= 1 << 62:
                            raise Fault("invalid", "§17.2: a run is empty, too long or too far")
                        runs.append((whole_at, length))
                        self.whole.append((whole_at, whole_at + length, number, size // block - left))
                        whole_at, left = whole_at + length, left - length
                    if left:
                        raise Fault("invalid", "§17.2: the runs are too short")
                rest = size % block if size > block else size
                if rest:
                    packed_at += data.step()
                    if packed_at < 0 or packed_at + rest >= 1 << 62 or packed_at // block != (packed_at + rest - 1) // block:
                        raise Fault("invalid", "§17.2: a tail is too far, or not within one position")
                    tail = packed_at
                    self.packed.append((packed_at, packed_at + rest, number, size - rest))
                    packed_at += rest
            elif kind == SYMLINK:
                length = data.varint()
                if not 1 <= length <= 4095:
                    raise Fault("invalid", "§17.2: the length of a target")
                target = data.take(length)
                if b"\0" in target:
                    raise Fault("invalid", "§17.2: a target has a NUL")
            elif kind == HARDLINK:
                link = data.varint()
                if link >= number or self.entries[link].kind & 15 != FILE:
                    raise Fault("invalid", "§17.2: a hard link to what is not a file before it")
            self.entries.append(Entry(path, kind, size, content, sha256, runs, tail, target, link, 0, 0, 0))
        if data.pos != len(data.data):
            raise Fault("invalid", "§17.2: bytes of the entries are left over")
        check_folders(kinds)
        if any(end > self.positions for _, end, _, _ in self.whole) or any(end > self.positions * block for _, end, _, _ in self.packed):
            raise Fault("invalid", "§17.2: a run or a tail is outside")
        check_disjoint([x[:2] for x in self.whole], "runs")
        check_disjoint([x[:2] for x in self.packed], "pieces of packed bytes")
        used = {start // block for start, _, _, _ in self.packed}
        check_disjoint([x[:2] for x in self.whole] + [(p, p + 1) for p in used], "a run and packed bytes")
        for k, _, G, _, _, first, at in self.groups:
            for p in range(first, first + k * G):
                if self.digests[at + p - first] == GONE and (p in used or any(start <= p < end for start, end, _, _ in self.whole)):
                    raise Fault("invalid", "§17.2: a position that is named is marked as lost")


# ---------------------------------------------------------------- the reader: pieces

Piece = namedtuple("Piece", "pos end shift t s i pg E M layout body sr O")
Head = namedtuple("Head", "pos shift t E area")         # what a header says, whether its piece is usable or not; shift: how far it has moved


def read_piece(data, pos, notes):
    """§17.4; a fault, or the piece. The classes are those of §9."""
    check_version(data, pos)
    if pos + HEADER + LAYOUT > len(data):
        raise Fault("damaged", "a piece is cut short")
    head = data[pos:pos + HEADER]
    pg = unpack(head[32:64])
    front = align(HEADER + LAYOUT + proof_size(pg), 64)
    before = data[pos:pos + front]
    if len(before) < front or struct.unpack_from("<I", head, 8)[0] != crc32c(before[12:]):
        raise Fault("damaged", "the CRC of a piece is wrong")
    notes.right = True
    notes.work, notes.end = notes.work + front, max(notes.end, pos + front)
    layout, proof = before[HEADER:HEADER + LAYOUT], before[HEADER + LAYOUT:][:proof_size(pg)]
    if any(head[12:16]) or any(head[24:32]):
        raise Fault("damaged", "§17.4: bytes that are not zero")
    check_geometry(pg, SIDECAR, False)
    if any(before[HEADER + LAYOUT + len(proof):]):
        raise Fault("damaged", "§17.4: bytes before the body that are not zero")
    if pg.nr or not pg.flags & LAST:
        raise Fault("invalid", "§17.4: a sidecar has one group")
    if pg.hash != BLAKE3:
        raise Fault("refused", "§17.4: the hash")        # choice: SHA-256 is a hash that a reader knows, but not here
    s, i = struct.unpack_from("<II", head, 16)
    if s >= pg.G or i >= pg.k + pg.m:
        raise Fault("invalid", "§17.4: set or index out of range")
    E, M = head[64:96], head[96:]
    if digest(BLAKE3, layout) != M:
        raise Fault("damaged", "§17.4: M is not the hash of the layout")
    if any(layout[68:]):
        raise Fault("damaged", "§17.4: bytes of the layout that are not zero")
    size, block = struct.unpack_from("<QI", layout, 56)
    if block not in [1 << j for j in range(10, 21)] or size > pg.payload or (pg.k + pg.m) * pg.G >= 1 << 32:
        raise Fault("invalid", "§17.4: the layout")
    before, generation, start = struct.unpack_from("<32sQQ", layout)
    if (generation == 1) != (before == ZERO32) or not generation or generation == 1 and start:
        raise Fault("invalid", "§17.4: the generation, or the start of the first")
    t = i * pg.G + s
    shift = pos - piece_place(t, layout_area(pg, layout), layout_block(layout)) - start if (pg.k + pg.m) * pg.G > 1 else 0
    notes.heads.append(Head(pos, shift, t, E, layout_area(pg, layout)))
    body = data[pos + front:pos + front + pg.L]
    notes.work, notes.end = notes.work + len(body), max(notes.end, pos + front + len(body))
    if len(body) < pg.L:
        raise Fault("damaged", "a piece is cut short")
    X, sr, O = follow_proof(pg, digest(BLAKE3, body), s, i, proof)
    if group_root(BLAKE3, pg, X, M) != E:
        raise Fault("damaged", "§17.4: a piece that is not what E says")
    return Piece(pos, pos + front + pg.L, shift, t, s, i, pg, E, M, layout, body, sr, O)


def layout_area(pg, layout):
    start, blocks = struct.unpack_from("<QQ", layout, 40)
    return start, blocks, (pg.k + pg.m) * pg.G, align(HEADER + LAYOUT + proof_size(pg), 64) + pg.L


def layout_block(layout):
    return struct.unpack_from("<I", layout, 64)[0]


def walk(data, notes):
    """§17.5: the pieces at their places, area by area; and whether all of the file is areas that have all their pieces"""
    pieces, pos, complete = [], 0, True
    while pos < len(data):
        if data[pos:pos + 8] != MAGIC_P:
            return pieces, False
        try:
            first = read_piece(data, pos, notes)
        except Fault as fault:
            notes.faults.append(fault)
            return pieces, False
        area, block = layout_area(first.pg, first.layout), layout_block(first.layout)
        if first.t or first.shift or area[2] < 2 or pos + area_size(area, block) > len(data):
            return pieces, False
        for t in range(area[2]):
            at = pos + piece_place(t, area, block)
            try:
                piece = read_piece(data, at, notes) if data[at:at + 8] == MAGIC_P else None
                if piece and piece.E == first.E and piece.t == t:
                    pieces.append(piece)
                else:
                    complete = False
            except Fault as fault:
                complete = False
                notes.faults.append(fault)
        pos += area_size(area, block)
    return pieces, complete


def scan(data, notes):
    """§17.5, §9.1: every piece that is anywhere"""
    pieces, pos = [], data.find(MAGIC_P)
    while pos >= 0:
        try:
            pieces.append(read_piece(data, pos, notes))
            pos, notes.work = pieces[-1].end, notes.work - (pieces[-1].end - pos)
        except Fault as fault:
            notes.faults.append(fault)
            pos = notes.end if notes.work > 4 * notes.end + WORK else pos + 8
        pos = data.find(MAGIC_P, pos)
    return pieces


class Encoding:
    def __init__(self, piece):
        self.first, self.sets, self.roots, self.catalog, self.fault, self.root = piece, {}, {}, None, None, None

    def add(self, piece):
        self.sets.setdefault(piece.s, {})[piece.i] = piece.body
        self.roots[piece.s] = (piece.sr, piece.O)

    def restore(self):
        layout = self.first.layout
        self.before, self.generation, _, _, size = struct.unpack_from("<32sQQQQ", layout)
        try:
            metadata = restore_group(self.first.pg, self.sets, self.roots)
            self.metadata, self.root = metadata, catalog_root(metadata[:size])
            self.catalog = Catalog(metadata, layout, self.first.pg)
        except Fault as fault:
            self.fault = fault

    def is_coded_right(self):
        """Tells whether the metadata, coded once more, gives E"""
        return self.root is not None and Group(self.first.pg, self.metadata, digest(BLAKE3, self.first.layout)).gr == self.first.E

    def counts(self):
        """§17.6"""
        return self.catalog or self.root and self.fault.cls == "refused"


def encodings(pieces):
    out = {}
    for piece in pieces:
        out.setdefault(piece.E, Encoding(piece)).add(piece)
    for x in out.values():
        x.restore()
    return out


def choose(found, root, notes):
    """§17.6"""
    counted = {E: x for E, x in found.items() if x.counts()}
    faults = notes.faults + [x.fault for x in found.values() if x.fault]
    best = {}                                           # of several with one root: the greatest generation, then the first in the file
    for x in sorted(counted.values(), key=lambda x: (-x.generation, x.first.pos)):
        best.setdefault(x.root, x)
    if root is not None:
        left = [best[root]] if root in best else []
        if counted and not left:
            faults.append(Fault("wrong-root", "§17.6: no catalog has this root"))
    else:
        # choice: what cannot be restored itself leads on from one that counts, but does not alone take away the one that can be; else a generation
        # that was not written to its end would make the one before unreadable, and there would be nothing to report
        named, todo = set(), list(counted.values())
        while todo:
            x = todo.pop()
            if x.before in found and found[x.before].generation < x.generation and x.before not in named:
                named.add(x.before)
                todo.append(found[x.before])
        left = [x for x in best.values() if x.first.E not in named]
        if len(left) > 1:
            raise Fault("ambiguous", "§17.6: %d generations could be meant: %s" % (len(left), ", ".join(x.root.hex() for x in left)))
    if not left:
        notes.settle()
        raise_worst(faults)
        raise Fault("damaged", "no sidecar was found")
    if left[0].fault:
        raise left[0].fault
    return left[0]


class Reader:
    """A sidecar: its catalog, and the recovery shards that are intact."""

    def __init__(self, data, root=None):
        notes = Notes()
        notes.work = notes.end = 0
        notes.heads = []
        pieces, complete = walk(data, notes)
        found = encodings(pieces)
        if not complete or root is not None and all(x.root != root for x in found.values()):
            notes.faults, notes.work, notes.end, notes.heads = [], 0, 0, []
            pieces = scan(data, notes)
            found = encodings(pieces)
        meant = choose(found, root, notes)
        self.data, self.catalog, self.generations = data, meant.catalog, [meant]
        kept = [tuple(x) for x in meant.catalog.areas[:-1]]             # those before whose areas it has
        x = meant
        while x.before in found and found[x.before].generation < x.generation:
            x = found[x.before]
            if layout_area(x.first.pg, x.first.layout) in kept and (x.root or x.fault.cls == "invalid"):
                self.generations.append(x)
        areas, copies = [tuple(x) for x in self.catalog.areas], {}      # of each piece of the areas of the catalog the headers that were found
        for head in sorted(notes.heads):
            if head.area in areas[:-1] or head.E == meant.first.E:
                copies.setdefault((head.area, head.t), []).append(head)
        # (place, how far it has moved), by place
        self.moves = sorted((x[0].pos - x[0].shift, 0 if any(not y.shift for y in x) else x[0].shift) for x in copies.values())
        self.mine = [p for p in pieces if p.E == meant.first.E]
        self.newer = max((x.generation for x in found.values() if x.generation > self.catalog.generation and not x.root), default=None)
        self.recovery, self.displaced = [], 0           # of each group its m·G shards, None for an erasure
        self.idle = []                                  # of each group the sets whose recovery shards serve nothing (§17.7)
        named = {p for x in self.catalog.entries for p in places_of(self.catalog, x)}
        for group in self.catalog.groups:
            k, m, G, area, first, position, digest_at = group
            area = self.catalog.areas[area]
            gone = {p % G for p in range(k * G) if self.catalog.digests[digest_at + p] != NOTHING}
            self.idle.append(gone - {p % G for p in range(k * G) if position + p in named})
            self.recovery.append([self.find(area, first + x, self.catalog.digests[digest_at + k * G + x], x % G in self.idle[-1]) for x in range(m * G)])

    def find(self, area, b, wanted, is_idle):
        """§17.5: the place, and where the nearest pieces before and behind it say that it has moved to"""
        place, block = area[0] + block_place(b, area, self.catalog.block), self.catalog.block
        shifts = [0] + [shift for at, shift in self.moves if at < place][-1:] + [shift for at, shift in self.moves if at > place][:1]
        for at in dict.fromkeys(place + x for x in shifts):
            data = self.data[at:at + block] if at >= 0 else b""
            if len(data) == block and GONE != wanted == plain_digests([data])[0]:
                self.displaced += at != place and not is_idle
                return data
        return None

    def count(self):
        sets = [(idle, x % group[2], shard) for group, idle, row in zip(self.catalog.groups, self.idle, self.recovery) for x, shard in enumerate(row)]
        return sum(shard is not None or s in idle for idle, s, shard in sets), len(sets)

    def whole(self):
        """Tells whether the sidecar is as it was written (choice: what stands behind the last area is wrong, be it a
        generation that is not meant)"""
        placed = {p.t for p in self.mine if not p.shift}
        intact, count = self.count()
        end = self.catalog.areas[-1][0] + area_size(self.catalog.areas[-1], self.catalog.block)
        return intact == count and not self.displaced and len(placed) == self.catalog.areas[-1][2] and len(self.data) == end


# ---------------------------------------------------------------- the reader: files

def look(base, path):
    """lstat, never through a symbolic link below the base; None if there is nothing"""
    at = base
    parts = path.split(b"/")
    try:
        for part in parts[:-1]:
            at = os.path.join(at, part)
            if not stat.S_ISDIR(os.lstat(at).st_mode):
                return None
        return os.lstat(os.path.join(at, parts[-1]))
    except OSError:
        return None


def read_file(base, path):
    info = look(base, path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return info, None
    try:
        with open(os.path.join(base, path), "rb") as f:
            return info, f.read()
    except OSError:
        return info, None


def check_entry(catalog, base, x, contents, number, held=False):
    """§17.7: intact, missing, edited or rotten; held: a root was given, which does not prove the record (§17.9)"""
    info = look(base, x.path)
    if info is None:
        return "missing"
    of = catalog.entries[x.link] if x.kind == HARDLINK else x
    data = read_file(base, x.path)[1]
    whole = data is not None and len(data) == of.size and digest(BLAKE3, data) == of.blake3 if of.kind & 15 == FILE else False
    right = bool(info.st_mode & 0o100) == bool(of.kind & EXECUTABLE)
    if x.kind & 15 == FILE:
        contents[number] = data
        intact = whole and right
    elif x.kind == FOLDER:
        intact = stat.S_ISDIR(info.st_mode)
    elif x.kind == SYMLINK:
        intact = stat.S_ISLNK(info.st_mode) and os.readlink(os.path.join(base, x.path)) == x.target
    else:
        file = look(base, of.path)
        intact = (info.st_dev, info.st_ino) == (file.st_dev, file.st_ino) if file else whole
    if intact:
        return "intact"
    kind = {FOLDER: stat.S_ISDIR, SYMLINK: stat.S_ISLNK}.get(x.kind, stat.S_ISREG)
    size = len(x.target) if x.kind == SYMLINK else of.size
    return "rotten" if (not held or kind != stat.S_ISREG) and kind(info.st_mode) and info.st_size == size and info.st_mtime_ns == x.seconds * 10 ** 9 + x.nanos and (right or x.kind == SYMLINK) else "edited"


class Originals:
    """§17.1: what stands at each position, None for an erasure; named: whether an entry names it"""

    def __init__(self, catalog, contents):
        block, count = catalog.block, catalog.positions
        starts = [(a + p, d + p) for k, m, G, _, _, a, d in catalog.groups for p in range(k * G)]
        digest_of = {p: catalog.digests[d] for p, d in starts}
        self.rows, self.named = [None] * count, [False] * count
        for start, end, number, first in catalog.whole:
            data = contents.get(number) or b""
            held = [p for p in range(start, end) if (first + p - start + 1) * block <= len(data)]
            at = [(first + p - start) * block for p in held]
            for p, o, value in zip(held, at, chaining_values([data[o:o + block] for o in at], at)):
                if value[:16] == digest_of[p]:
                    self.rows[p] = data[o:o + block]
            self.named[start:end] = [True] * (end - start)
        blocks, lost = {}, set()
        for start, end, number, offset in catalog.packed:
            part, p = (contents.get(number) or b"")[offset:offset + end - start], start // block
            self.named[p] = True
            if len(part) < end - start:
                lost.add(p)
            else:
                blocks.setdefault(p, bytearray(block))[start - p * block:end - p * block] = part        # bytes that no entry names are zero
        for p, row in blocks.items():
            if p not in lost and plain_digests([bytes(row)])[0] == digest_of[p]:
                self.rows[p] = bytes(row)
        for p in range(count):
            if not self.named[p] and digest_of[p] == NOTHING:
                self.rows[p] = bytes(block)
        self.digest_of = digest_of
        self.rows = [None if digest_of[p] == GONE else row for p, row in enumerate(self.rows)]


def sets_of(catalog, originals, recovery):
    """(k, m, positions, recovery shards) of each set; recovery may be None"""
    for number, (k, m, G, _, _, a, _) in enumerate(catalog.groups):
        for s in range(G):
            yield k, m, [a + i * G + s for i in range(k)], [recovery[number][j * G + s] for j in range(m)]


def places_of(catalog, x):
    """The positions that the bytes of a file stand at, in order"""
    return [p for start, length in x.runs for p in range(start, start + length)] + ([x.tail // catalog.block] if x.tail is not None else [])


def assemble(catalog, x, rows):
    """The content that a file has by its blocks, or None when one of them is lacking (§17.1: whole, or the catalog contradicts itself)"""
    held, whole = [rows[p] for p in places_of(catalog, x)], sum(n for _, n in x.runs)
    if None in held:
        return None
    tail = held[whole][x.tail % catalog.block:][:x.size - whole * catalog.block] if x.tail is not None else b""
    content = b"".join(held[:whole]) + tail
    if digest(BLAKE3, content) != x.blake3:
        raise Fault("invalid", "§17.1: all blocks of a file have their digests and it is not whole: " + shown(x.path))
    return content


def mendable(catalog, originals, recovery, states):
    """Every position that a file needs which is not whole can be had; what stands at others need not be (choice)"""
    able = {p for k, m, places, shards in sets_of(catalog, originals, recovery) for p in places
            if originals.rows[p] is not None or originals.digest_of[p] != GONE and sum(originals.rows[q] is None for q in places) <= sum(x is not None for x in shards)}
    return all(able.issuperset(places_of(catalog, x)) for x, state in zip(catalog.entries, states) if state != "intact" and x.kind & 15 == FILE)


def shown(path):
    """§7: escaped"""
    return "".join(c if c.isprintable() and c != "\\" else "".join("\\x%02x" % x for x in os.fsencode(c)) for c in path.decode("utf-8", "surrogateescape"))


def inspect(reader, base, held=False):
    """(states, whether all can be mended, the originals)"""
    catalog, contents = reader.catalog, {}
    states = [check_entry(catalog, base, x, contents, number, held) for number, x in enumerate(catalog.entries)]
    for x, state in zip(catalog.entries, states):       # §17.7: a missing file stands elsewhere: under another of its names
        if x.kind == HARDLINK and state == "intact" and states[x.link] == "missing":
            contents[x.link] = read_file(base, x.path)[1]
    originals = Originals(catalog, contents)
    right = set()                                       # files whose bytes are right, whatever is behind them
    for number, x in enumerate(catalog.entries):
        if x.kind & 15 != FILE:
            continue
        data = contents.get(number)
        if data is not None and len(data) >= x.size and digest(BLAKE3, data[:x.size]) == x.blake3:
            right.add(number)
            if states[number] != "missing" and any(originals.rows[p] is None for start, length in x.runs for p in range(start, start + length)):
                raise Fault("invalid", "§17.1: a file has its BLAKE3, and one of its whole blocks has not its digest: " + shown(x.path))
        elif states[number] != "intact":
            assemble(catalog, x, originals.rows)
    originals.right, originals.contents, originals.untrue, originals.misplaced = right, contents, set(), None
    for start, end, number, offset in catalog.packed:   # positions that have not their digest, and whose files are right: only looked at deeper
        p = start // catalog.block
        if originals.rows[p] is None and all(n in right for s, _, n, _ in catalog.packed if s // catalog.block == p):
            originals.untrue.add(p)
    for start, end, number, first in catalog.whole:     # and whole blocks of a file that stands elsewhere, and is right
        for p in range(start, end) if number in right and states[number] == "missing" else ():
            if originals.rows[p] is None:
                at = (first + p - start) * catalog.block
                originals.rows[p] = contents[number][at:at + catalog.block]
                originals.misplaced = p
    for p in originals.untrue:
        row = bytearray(catalog.block)
        for start, end, number, offset in catalog.packed:
            if start // catalog.block == p:
                row[start - p * catalog.block:end - p * catalog.block] = contents[number][offset:offset + end - start]
        originals.rows[p] = bytes(row)
    needs = ["intact" if number in right else state for number, state in enumerate(states)]     # what is right needs nothing
    return states, mendable(catalog, originals, reader.recovery, needs), originals


def look_deeper(reader, originals):
    """§17.1: every set decoded and coded again, and every file put together"""
    catalog = reader.catalog
    if not all(x.is_coded_right() for x in reader.generations):
        raise Fault("invalid", "§17.1: metadata, coded once more, is not that of E")
    if originals.untrue or originals.misplaced is not None:
        raise Fault("invalid", "§17.1: whole files stand in a position that has not its digest")
    rows, wrong = mend(catalog, originals, reader.recovery, True)
    if wrong:
        raise Fault("invalid", "§17.1: a set is no codeword")
    for number, (k, m, G, _, _, a, d) in enumerate(catalog.groups):
        for s in set(range(G)) - reader.idle[number]:
            have = {i: rows[a + i * G + s] for i in range(k)}
            if None in have.values():                   # bytes that are lost for good: as any of them that can be had
                more = {k + j: reader.recovery[number][j * G + s] for j in range(m) if reader.recovery[number][j * G + s] is not None}
                have = dict(list({**{i: x for i, x in have.items() if x is not None}, **more}.items())[:k])
                if len(have) < k:
                    continue
            points = sorted(have)
            made = evaluate(points, [have[x] for x in points], range(k, k + m))
            if plain_digests(made) != [catalog.digests[d + k * G + j * G + s] for j in range(m)]:
                raise Fault("invalid", "§17.1: recovery shards are not those of their set")
    for x in catalog.entries:
        if x.kind & 15 == FILE:
            assemble(catalog, x, rows)


def check_base(reader, named):
    """§17.3: another folder than that of the sidecar has to be named"""
    if not named and reader.catalog.hint:
        raise Fault("ambiguous", "§17.3: the base is another folder than that of the sidecar: name it with --base; it may be " + shown(reader.catalog.hint))


def verify(data, base, root=None, named=True, deep=False):
    """(lines, exit code)"""
    reader = Reader(data, root)
    check_base(reader, named)
    catalog, (intact, count) = reader.catalog, reader.count()
    states, able, originals = inspect(reader, base, root is not None)
    if deep and able:                                   # §17.1: what is lost is said first
        look_deeper(reader, originals)
    # folders and symbolic links only when they are wrong
    lines = ["%s %s" % (state, shown(x.path)) for x, state in zip(catalog.entries, states) if x.kind & 15 in (FILE, HARDLINK) or state != "intact"]
    lines += ["recovery %d of %d blocks intact, %d displaced" % (intact, count, reader.displaced), "root " + catalog.root.hex(), "mendable " + ("yes" if able else "no")]
    if reader.newer:
        lines.append("generation %d cannot be restored; this is %d" % (reader.newer, catalog.generation))
    return lines, 3 if not able else 0 if set(states) <= {"intact"} and reader.whole() else 1


def mend(catalog, originals, recovery, everything=False):
    """Every position that can be had; everything: also what no entry names"""
    rows, wrong = list(originals.rows), 0
    for k, m, places, shards in sets_of(catalog, originals, recovery):
        have = {i: rows[p] for i, p in enumerate(places) if rows[p] is not None}
        gone = [i for i in range(k) if i not in have]
        more = {k + j: x for j, x in enumerate(shards) if x is not None}
        is_idle = not any(originals.named[p] for p in places) and any(originals.digest_of[p] != NOTHING for p in places)       # §17.7
        if not any(originals.named[places[i]] or everything for i in gone) or len(gone) > len(more) or is_idle:
            continue
        points = sorted(have) + sorted(more)[:len(gone)]                # choice: one selection of k is tried
        for i, row in zip(gone, evaluate(points, [have[x] if x in have else more[x] for x in points], gone)):
            whole = [(first + places[i] - start) * catalog.block for start, end, _, first in catalog.whole if start <= places[i] < end]
            value = chaining_values([row], whole)[0][:16] if whole else plain_digests([row])[0]
            if value == originals.digest_of[places[i]] != GONE:
                rows[places[i]] = row
            elif originals.named[places[i]] or everything and originals.digest_of[places[i]] != GONE:
                wrong += 1
    return rows, wrong


def repair(data, base, out, root=None):
    """(lines, exit code): the files that are proved, in a new folder"""
    reader = Reader(data, root)
    catalog, lines = reader.catalog, []
    states, able, originals = inspect(reader, base)
    rows, wrong = mend(catalog, originals, reader.recovery)
    mask = os.umask(0)
    os.umask(mask)
    os.makedirs(out)
    lost = 0
    made = {}

    def place(path):
        os.makedirs(os.path.dirname(os.path.join(out, path)), exist_ok=True)
        return os.path.join(out, path)

    for number, x in enumerate(catalog.entries):
        if x.kind == FOLDER:
            os.makedirs(os.path.join(out, x.path), exist_ok=True)
        elif x.kind & 15 == FILE:
            try:
                content = originals.contents[number][:x.size] if number in originals.right else assemble(catalog, x, rows)
            except Fault:
                content, wrong = None, wrong + 1
            if content is None:
                lost += 1
                lines.append("lost " + shown(x.path))
                continue
            with open(place(x.path), "wb") as f:
                f.write(content)
            made[number] = x.path
        elif x.kind == HARDLINK and x.link in made:
            os.link(os.path.join(out, made[x.link]), place(x.path))
    for x in catalog.entries:
        if x.kind == SYMLINK:
            os.symlink(x.target, place(x.path))
    for number, x in reversed(list(enumerate(catalog.entries))):        # folders after what is in them; no setuid, setgid or sticky bit
        if x.kind == FOLDER or number in made or x.kind == SYMLINK:
            path = os.path.join(out, x.path)
            if x.kind != SYMLINK:
                may_run = x.kind == FOLDER or x.kind & EXECUTABLE
                mode = x.mode & 0o777 & ~mask & (0o777 if may_run else 0o666)       # §17.3: nothing here is proved
                os.chmod(path, mode | (0o100 if x.kind & EXECUTABLE and x.kind != FOLDER else 0))
            os.utime(path, ns=(0, x.seconds * 10 ** 9 + x.nanos), follow_symlinks=False)
    return lines + ["root " + catalog.root.hex()], 0 if not lost else 5 if wrong and able else 3


# ---------------------------------------------------------------- the list of a repair (§17.10)

MOST_OF_LIST = 1 << 26


def piece_digest(data):
    return digest(BLAKE3, data)[:8].hex()


def pieces_of(catalog, x, rows, content):
    """{offset: bytes} of the pieces of what is not intact; what is behind the end is zeros"""
    piece, found = min(4096, catalog.block), {}
    for number, p in enumerate(places_of(catalog, x)):
        if rows[p] is None:
            end = min(x.size, (number + 1) * catalog.block)
            for at in range(number * catalog.block, end, piece):
                part = content[at:min(at + piece, end)]
                found[at] = part + bytes(min(piece, end - at) - len(part))
    return found


def repair_list(reader, base, mended, made=()):
    """The text of the list before these entries are mended, and those made"""
    catalog, contents = reader.catalog, {}
    for number, x in enumerate(catalog.entries):
        check_entry(catalog, base, x, contents, number)
    rows = Originals(catalog, contents).rows
    lines = ["fec repair of " + catalog.root.hex()] + ["+%d" % x for x in sorted(made)]
    for number in sorted(mended):
        line, end = str(number), None
        for at, part in sorted(pieces_of(catalog, catalog.entries[number], rows, contents[number]).items()):
            line += ("" if at == end else " %d:" % at) + piece_digest(part)
            end = at + min(4096, catalog.block)
        lines.append(line)
    return "".join(x + "\n" for x in lines)


def read_list(text, catalog):
    """{entry: {offset: digits}} of the files that a list names; of a list of another root nothing"""
    piece, files = min(4096, catalog.block), {}
    lines = text.split("\n")
    if lines[0] != "fec repair of " + catalog.root.hex():
        return {}
    for line in lines[1:]:
        words, pieces, end = line.split(" "), {}, 0
        good = re.fullmatch("[0-9]+", words[0]) is not None
        for word in words[1:]:
            match = re.fullmatch("([0-9]+):((?:[0-9a-f]{16})+)", word)
            if not match or int(match[1]) % piece or int(match[1]) < end:
                good = False
                break
            digits = [match[2][x:x + 16] for x in range(0, len(match[2]), 16)]
            pieces.update({int(match[1]) + n * piece: x for n, x in enumerate(digits)})
            end = int(match[1]) + len(digits) * piece
        if good:
            files[int(words[0])] = pieces
    return files


def half_mended(reader, base, path):
    """The numbers of the entries that a list shows to be half mended"""
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1 or info.st_uid not in (0, os.geteuid()):
        return set()
    catalog, contents, found = reader.catalog, {}, set()
    with open(path, "rb") as f:
        files = read_list(f.read(MOST_OF_LIST).decode("ascii", "replace"), catalog)
    for number, x in enumerate(catalog.entries):
        check_entry(catalog, base, x, contents, number)
    originals = Originals(catalog, contents)
    right, _ = mend(catalog, originals, reader.recovery)
    for number, listed in files.items():
        x = catalog.entries[number] if number < len(catalog.entries) else None
        if x is None or x.kind & 15 != FILE or contents.get(number) is None or len(contents[number]) != x.size:
            continue
        if look(base, x.path).st_ctime_ns <= info.st_ctime_ns:
            continue
        now, whole = pieces_of(catalog, x, originals.rows, contents[number]), places_of(catalog, x)

        def is_right(at, part):
            row = right[whole[at // catalog.block]]
            start = at % catalog.block + (x.tail % catalog.block if x.tail is not None and at // catalog.block == sum(n for _, n in x.runs) else 0)
            return row is not None and row[start:start + len(part)] == part

        if all(listed.get(at) == piece_digest(part) or is_right(at, part) for at, part in now.items()):
            found.add(number)
    return found


# ---------------------------------------------------------------- trees on disk

def collect(base, paths, not_this):
    """The items of these paths below the base, which are given as bytes."""
    found = {}

    def visit(path):
        full = os.path.join(base, path) if path else base
        info = os.lstat(full)
        if not_this and (info.st_dev, info.st_ino) == not_this:
            return
        if path:
            found[path] = info
        if stat.S_ISDIR(info.st_mode):
            for name in os.listdir(full):
                visit(path + b"/" + name if path else name)

    for path in paths:
        path = os.path.normpath(path)
        if os.path.isabs(path) or path.split(b"/")[0] == b"..":
            raise Fault("refused", "a path is not below the base")
        visit(b"" if path == b"." else path)
    items, inodes = [], {}
    for path, info in sorted(found.items()):
        more = info.st_mode & 0o7777, info.st_mtime_ns // 10 ** 9, info.st_mtime_ns % 10 ** 9
        full = os.path.join(base, path)
        if stat.S_ISDIR(info.st_mode):
            items.append(Item(path, FOLDER, None, None, *more))
        elif stat.S_ISLNK(info.st_mode):
            items.append(Item(path, SYMLINK, None, os.readlink(full), *more))
        elif not stat.S_ISREG(info.st_mode):            # §17.8: devices, sockets, pipes
            continue
        elif (info.st_dev, info.st_ino) in inodes:
            items.append(Item(path, HARDLINK, None, inodes[info.st_dev, info.st_ino], *more))
        else:
            inodes[info.st_dev, info.st_ino] = path
            with open(full, "rb") as f:
                items.append(Item(path, FILE, f.read(), None, *more))
    return items


def write_tree(items, base):
    """The opposite of collect."""
    for x in sorted(items):
        path = os.path.join(base, x.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if x.kind == FOLDER:
            os.makedirs(path, exist_ok=True)
        elif x.kind == FILE:
            with open(path, "wb") as f:
                f.write(x.content)
        elif x.kind == SYMLINK:
            os.symlink(x.target, path)
        else:
            os.link(os.path.join(base, x.target), path)
    for x in sorted(items, reverse=True):
        path = os.path.join(base, x.path)
        if x.kind != SYMLINK:
            os.chmod(path, x.mode)
        os.utime(path, ns=(0, x.seconds * 10 ** 9 + x.nanos), follow_symlinks=False)


def same_tree(a, b):
    def plain(items):
        return [(x.path, x.kind, x.content, x.target, x.mode, x.seconds, x.nanos) for x in sorted(items)]
    return plain(a) == plain(b)


# ---------------------------------------------------------------- golden vectors: what is protected

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


KIND_NAMES = {"file": FILE, "folder": FOLDER, "symlink": SYMLINK, "hardlink": HARDLINK}
HEXED = ("path", "target", "suffix")


def items_of(tree):
    """The items of a tree as a vector has it (paths, targets and suffixes as bytes, or in hex)"""
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
    for redundancy in ("0.01", "12.34", "12700"):
        yield case("redundancy-" + redundancy, [file(b"file", 5000)], redundancy)
    yield case("many-small", [many(300, b".txt", 333), file(b"1", 1000)], 5)
    yield case("many-packed", [file(b"f%03d" % j, (j * 37) % 3000, j + 1) for j in range(150)], 16, b"..")
    yield case("many-long-names", [many(1700, b"x" * 190)], 16)                # metadata above 4096·k'
    yield case("many-longer-names", [many(3600, b"y" * 200)], 100)             # metadata of two sets


def protect_vector(case):
    """The whole vector, and the sidecar"""
    data, E, root = seal(check_paths(Draft(items_of(case["tree"]), Fraction(case["redundancy"]) / 100, bytes.fromhex(case["base"]))))
    return dict(case, root=root.hex(), blake3=digest(BLAKE3, data).hex(), len=len(data)), data


# ---------------------------------------------------------------- golden vectors: what breaks a rule

SMALL = [file(b"a", 100), folder(b"b"), file(b"b/c", 3000), symlink(b"d", b"a"), hardlink(b"e", b"a", file(b"a", 100))]
TALL = [file(b"a", 70000), file(b"b", 3000), file(b"c", 1024)]     # block 1024, three anchors: of a at 0 and at 65,536, of b at 0
HOLLOW = [file(b"a", 0)]                                # no positions but one of nothing: k = 1, m = 1, G = 1
MOVED = {"cut-first": 2, "inserted-first": 2, "inserted-in-piece": 1, "inserted-in-block": 1, "area-end-2-62-1": 2, "moved-one-piece": 2, "moved-header-only": 1, "moved-copies-first": 1}    # recovery shards that were found elsewhere
A, B_, BC, D_, E_ = range(5)                            # the entries of SMALL
# SMALL: block 1024, positions 0 and 1 are b/c, a (100 bytes) is packed in 2 and what is left of b/c (952) in 3; k = 4, m = 2, G = 1


def error_cases():
    """(name, rule, class, bytes, root or None, {more})"""
    out = []
    a, c = generate(100, 101), generate(3000, 3001)

    def add(name, rule, cls, data, root=None, choice=False, **more):
        out.append((name, rule, cls, data, root, dict(more, choice=True) if choice else more))

    def draft(change=None, tree=SMALL):
        d = Draft(items_of(in_hex(tree)), Fraction(1, 2))
        if change:
            change(d)
        return d

    def bad(name, rule, cls, change=None, tree=SMALL, choice=False, **options):
        """A sidecar of SMALL that breaks one rule; change: a hook on the draft"""
        add(name, rule, cls, seal(draft(change, tree), **options)[0], None, choice)

    def put(**fields):
        return lambda d: d.__dict__.update(fields)

    def lie(**fields):
        return lambda d: d.lie.update(fields)

    def poke_at(at, value=1):
        return lambda d: d.pokes.append((at, value))

    def group(**fields):
        def change(d):
            d.groups[0] = [fields.get(name, old) for name, old in zip(("k", "m", "G", "area", "first"), d.groups[0])]
        return change

    def area(**fields):
        def change(d):
            d.areas[-1] = [fields.get(name, old) for name, old in zip(("start", "blocks", "pieces", "bytes"), d.areas[-1])]
        return change

    def fields(number, data):
        return lambda d: d.replace(number, data)

    def recs(change):
        """change gets the list of entries"""
        return lambda d: change(d.recs)

    def more(*added, size=0, anchors=()):
        def change(d):
            d.anchors += anchors
            for rec in added:
                d.add(rec, 0)
            d.total += size
        return change

    def both(*changes):
        def change(d):
            for x in changes:
                x(d)
        return change

    # ---- §17.2, the head of the catalog
    bad("catalog-version-0", "§17.2: version is not 1", "refused", put(version=0))
    bad("catalog-version-2", "§17.2: version is not 1", "refused", put(version=2))
    bad("catalog-features", "§17.2: features are not zero", "refused", put(features=1))
    bad("catalog-features-high", "§17.2: features are not zero", "refused", put(features=1 << 31))
    for block in (0, 1, 512, 1536, 1025, 1 << 21, 1 << 31):
        # the layout says the same, and the groups are left out, so that no place depends on it
        bad("block-%d" % block, "§17.2: the block is not a power of two from 2^10 to 2^20", "invalid", lie(block=block),
            layout=lambda lay, x=block: lay.__setitem__(slice(64, 68), struct.pack("<I", x)), tree=HOLLOW)
    bad("areas-none", "§17.2: no areas", "invalid", late=lambda d: (d.areas.clear(), d.lie.update(areas=0), setattr(d, "behind", bytes(32))), tree=[])
    bad("groups-none", "§17.2: no groups", "invalid", lambda d: (d.groups.clear(), d.digests.clear()), tree=HOLLOW)
    bad("areas-too-many", "§17.2: more areas than the catalog has bytes", "invalid", lie(areas=0xFFFFFFFF))
    bad("groups-too-many", "§17.2: more groups than the catalog has bytes", "invalid", lie(groups=0xFFFFFFFF))
    bad("groups-one-more", "§17.2: the groups do not agree with the bytes of the catalog", "invalid", lie(groups=2))
    bad("entries-more", "§17.2: more entries than there are", "invalid", lie(entries=6))
    bad("entries-fewer", "§17.2: bytes of the entries are left over", "invalid", lambda d: (d.lie.update(entries=4), d.attributes.pop()))
    bad("entries-too-many", "§17.2: four billion entries", "invalid", lie(entries=0xFFFFFFFF))
    bad("entries-left-over", "§17.2: a byte behind the last entry", "invalid", put(left_over=b"\0"))
    for name, size in (("more", 1000), ("huge", (1 << 64) - 1)):
        bad("entry-bytes-" + name, "§17.2: the bytes of the entries are more than the catalog has", "invalid", lie(size=size))
    bad("entry-bytes-fewer", "§17.2: the bytes of the entries are too few", "invalid", lambda d: d.lie.update(size=len(write_entries(d.recs)) - 1))
    for name, x in (("more", 3101), ("fewer", 3099), ("huge", (1 << 64) - 1), ("links", 3200)):
        bad("sum-" + name, "§17.2: the sum of the sizes of all files", "invalid", lie(total=x))
    for at in (40, 63, 64 + 24, 64 + 31, 96 + 12, 96 + 15, 96 + 24, 96 + 31):
        bad("catalog-zero-%d" % at, "§17.2: a byte that has to be zero", "invalid", poke_at(at))

    # ---- areas and groups
    bad("area-one-piece", "§17.5: N ≥ 2", "invalid", late=area(pieces=1))
    bad("area-no-pieces", "§17.5: N ≥ 2", "invalid", late=area(pieces=0))
    bad("area-start-huge", "§17.2: an area behind 2^64", "invalid", late=area(start=(1 << 64) - 1))
    bad("area-blocks-huge", "§17.2: an area whose size is above 2^64", "invalid", late=area(blocks=(1 << 64) - 1))
    bad("area-blocks-wraps", "§17.2: an area whose size is 0 modulo 2^64", "invalid", late=area(blocks=1 << 54))
    bad("area-start", "§17.4: the start is not that of the layout", "invalid", late=area(start=1))
    bad("area-blocks", "§17.4: the blocks are not those of the layout", "invalid", late=area(blocks=3))
    bad("area-pieces", "§17.4: the pieces are not those of Pg", "invalid", late=area(pieces=4))
    bad("area-piece-bytes", "§17.4: the bytes of a piece are not those of Pg", "invalid", late=area(bytes=64))
    bad("group-k-0", "§17.1: k ≥ 1", "invalid", both(group(k=0), lambda d: d.digests.pop(0)), tree=HOLLOW)
    bad("group-m-0", "§17.1: m ≥ 1", "invalid", both(group(m=0), lambda d: (d.digests.pop(), d.recovery.clear())), tree=HOLLOW)
    bad("group-G-0", "§17.1: G ≥ 1", "invalid", both(group(G=0), lambda d: (d.digests.clear(), d.recovery.clear())), tree=HOLLOW)
    bad("group-n-257", "§17.1: k + m ≤ 256", "invalid", both(group(k=256), lambda d: d.digests.__setitem__(slice(0, 1), [NOTHING] * 256)), tree=HOLLOW)
    bad("group-G-huge", "§17.2: more positions than the catalog has digests", "invalid", group(G=0xFFFFFFFF))
    bad("group-G-2", "§17.2: the digests do not agree with the groups", "invalid", group(G=2))
    bad("group-area", "§17.2: a group in an area that is not there", "invalid", group(area=1))
    bad("group-area-huge", "§17.2: a group in an area that is not there", "invalid", group(area=0xFFFFFFFF))
    bad("group-first", "§17.2: the recovery shards go beyond the area", "invalid", group(first=1))
    bad("group-first-huge", "§17.2: the recovery shards go beyond the area, by wrapping", "invalid", group(first=(1 << 64) - 1))

    def two_groups(d):
        d.groups.append(list(d.groups[0]))
        d.digests += d.digests

    bad("groups-overlap", "§17.2: two groups have the same recovery shards", "invalid", two_groups, tree=HOLLOW)

    def four_groups(d, *firsts):
        d.groups[0][4] = firsts[0]
        d.groups += [[1, 1, 1, 0, x] for x in firsts[1:]]
        d.recovery = [bytes(1024)] * 4
        d.digests = d.digests * len(firsts)

    bad("groups-overlap-far", "§17.2: two groups have the same recovery shards, with another between", "invalid", lambda d: four_groups(d, 2, 1, 2), tree=HOLLOW)
    bad("groups-overlap-part", "§17.2: two groups have one recovery shard in common", "invalid",
        lambda d: (d.groups.append([1, 2, 1, 0, 1]), d.digests.extend([NOTHING] + plain_digests([bytes(1024)] * 2)), d.recovery.extend([bytes(1024)])))

    # ---- varints
    def first_size(data):
        """the size of a, written in another way"""
        return fields(A, data + digest(BLAKE3, a) + step(2048))

    bad("varint-long", "§17.2: a varint that is not the shortest", "invalid", first_size(b"\xe4\x00"))
    bad("varint-long-zero", "§17.2: zero in two bytes", "invalid", recs(lambda r: r.__setitem__(A, b"\x80\x00\x01a\x00" + r[A].fields)))
    bad("varint-11-bytes", "§17.2: a varint of 11 bytes", "invalid", first_size(b"\xe4" + b"\x80" * 9 + b"\x01"))
    bad("varint-2-63", "§17.2: a varint that is 2^63", "invalid", first_size(b"\x80" * 9 + b"\x01"))
    bad("varint-2-64", "§17.2: a varint that is 2^64 + 100", "invalid", first_size(b"\xe4" + b"\x80" * 8 + b"\x02"))
    bad("size-2-63-1", "§17.2: a file of 2^63 − 1 bytes", "invalid", both(fields(BC, varint((1 << 63) - 1) + digest(BLAKE3, c) + varint(1) + step(0) + varint(2) + step(0)), lie(total=(1 << 63) + 99)))
    bad("varint-cut", "§17.2: the entries end inside a varint", "invalid", recs(lambda r: r.__setitem__(E_, Rec(b"e", HARDLINK, b"\x80"))))
    bad("entry-cut", "§17.2: the entries end inside a path", "invalid", recs(lambda r: r.__setitem__(E_, b"\x00\x05e")))
    bad("entry-no-kind", "§17.2: the entries end before a kind", "invalid", recs(lambda r: r.__setitem__(E_, b"\x00\x01e")))
    bad("hash-cut", "§17.2: the entries end inside the hash of a file", "invalid", both(lambda d: d.add(Rec(b"f", FILE, b"\x00" + bytes(31)))))
    bad("target-cut", "§17.2: the entries end inside a target", "invalid", both(lambda d: d.add(Rec(b"f", SYMLINK, varint(100) + b"x"))))

    # ---- paths
    bad("shared-first", "§17.2: the first entry shares", "invalid", recs(lambda r: r.__setitem__(A, Rec(b"a", FILE, r[A].fields, shared=1))))
    bad("shared-too-much", "§17.2: more is shared than the path before has", "invalid", recs(lambda r: r.__setitem__(D_, b"\x04\x01d\x02\x01a")))
    bad("shared-huge", "§17.2: more is shared than the path before has", "invalid", recs(lambda r: r.__setitem__(D_, varint((1 << 63) - 1) + b"\x01d\x02\x01a")))
    bad("count-huge", "§17.2: a path of 2^63 − 1 bytes", "invalid", recs(lambda r: r.__setitem__(D_, b"\x00" + varint((1 << 63) - 1) + b"d\x02\x01a")))
    bad("path-empty", "§17.2: an empty path", "invalid", recs(lambda r: r.__setitem__(A, Rec(b"", FILE, r[A].fields))))
    bad("path-equal", "§17.2: a path twice", "invalid", more(Rec(b"e", FOLDER)))
    bad("path-descends", "§17.2: paths do not ascend", "invalid", more(Rec(b"dz", FOLDER)))
    bad("path-prefix", "§17.2: paths do not ascend: what the path before begins with", "invalid", more(Rec(b"f/g", FOLDER), Rec(b"f", FOLDER)))
    deep = b"f" + b"/" + b"/".join([b"x" * 203] * 20) + b"/" + b"y" * 13
    assert len(deep) == 4095
    bad("path-4097", "§17.2: a path of 4097 bytes", "invalid", more(Rec(deep + b"zz", FOLDER)))
    bad("part-256", "§17.2: a part of 256 bytes", "invalid", more(Rec(b"f" * 256, FOLDER)))
    bad("part-256-inside", "§17.2: a part of 256 bytes", "invalid", more(Rec(b"f/" + b"f" * 256 + b"/x", FOLDER)))
    for name, path in (("dot", b"f/."), ("dots", b"f/.."), ("dots-inside", b"f/../../x"), ("slash-last", b"f/"), ("slashes", b"f//x"), ("nul", b"f\0"), ("dot-inside", b"f/./x")):
        bad("path-" + name, "§17.2: the parts of a path", "invalid", more(Rec(path, FOLDER)))
    for name, path in (("slash-first", b"/a"), ("dots-first", b"../a"), ("dots-alone", b".."), ("dot-alone", b".")):
        bad("path-" + name, "§17.2: the parts of a path", "invalid", recs(lambda r, x=path: r.__setitem__(A, Rec(x, FILE, r[A].fields))))
    bad("below-file", "§17.2: below a file", "invalid", recs(lambda r: r.__setitem__(B_, Rec(b"a/x", FOLDER))))
    bad("below-file-far", "§17.2: below a file, with another path between", "invalid", recs(lambda r: (r.__setitem__(B_, Rec(b"a.x", FOLDER)), r.__setitem__(BC, Rec(b"a/x/y", FILE, r[BC].fields)))))
    bad("below-symlink", "§17.2: below a symbolic link", "invalid", recs(lambda r: r.__setitem__(E_, Rec(b"d/e", FOLDER))))
    bad("below-hard-link", "§17.2: below a hard link", "invalid", more(Rec(b"e/f", FOLDER)))

    # ---- all paths together: 20 bytes of the entries stand for 16,000 of paths
    def long_paths(last):
        """d without its entries, then paths of 4000 bytes and more, the last as long as the limit allows, and `last` bytes more"""
        def change(d):
            deep = b"/".join([b"x" * 199] * 20)
            d.recs = [Rec(deep, FOLDER)] + [Rec(deep + b"/%02d" % j, FOLDER) for j in range(49)]
            d.attributes, d.total, d.anchors = [d.attributes[0]] * (len(d.recs) + 1), 0, []
            paths, entries = sum(len(x.path) for x in d.recs), len(write_entries(d.recs))
            for size in range(200, 3990):
                if paths + size + 1 == path_limit(entries + 5) + last:      # two bytes for size, one each for a count, y and the kind
                    d.recs.append(Rec(deep[:size] + b"y", FOLDER))
                    return
            assert False
        return change

    bad("path-bytes", "§17.2: all paths together have one byte more than 65,536 and 32 for each byte of the entries", "refused", long_paths(1))
    bad("path-bytes-many", "§17.2: two thousand entries of a few bytes stand for 8 MB of paths", "refused", lambda d: (d.add(Rec(b"f" + deep[1:3998], FOLDER)), [d.add(Rec(b"f" + deep[1:3998] + b"%04x" % j, FOLDER)) for j in range(2000)]))

    # ---- kinds
    for kind in (4, 5, 15, 64, 128, 255):
        bad("kind-%d" % kind, "§17.2: a kind that is not named", "refused", more(Rec(b"f", kind)))
    for name, path in (("dots", b"f/.."), ("descends", b"0"), ("equal", b"e"), ("below-link", b"e/f"), ("part-256", b"f" * 256)):
        bad("kind-122-" + name, "§17.2: a kind that is not named comes before what is wrong with the path of its entry", "refused", more(Rec(path, 122)))
    bad("kind-122-sum", "§17.2: a kind that is not named comes before the sum of the sizes", "refused", both(more(Rec(b"f", 122)), lie(total=7)))
    bad("kind-122-attributes", "§17.2: a kind that is not named comes before §17.3", "refused", both(more(Rec(b"f", 122)), lambda d: d.attributes.__setitem__(0, b"\xff" * 16)))
    bad("kind-122-below-file", "§17.2: a kind that is not named comes before what entries say together", "refused", both(recs(lambda r: r.__setitem__(B_, Rec(b"a/x", FOLDER))), more(Rec(b"f", 122))))
    bad("kind-122-late", "§17.2: an entry that breaks a rule by itself comes before one of a kind that is not named", "invalid", more(Rec(b"f/..", FOLDER), Rec(b"g", 122)))
    bad("kind-122-4097", "§17.2: a path of 4097 bytes comes before its kind", "invalid", more(Rec(b"f" + deep + b"z", 122)))
    bad("kind-64-file", "§17.2: a flag of a file that is not named", "refused", recs(lambda r: setattr(r[A], "kind", 64)))
    for kind in (FOLDER | 16, SYMLINK | 16, HARDLINK | 16, FOLDER | 32, SYMLINK | 32, HARDLINK | 32):
        bad("kind-%d" % kind, "§17.2: a flag of what is not a file", "refused", more(Rec(b"f", kind, {SYMLINK: b"\x01a", HARDLINK: b"\x00"}.get(kind & 15, b""))))
    bad("target-empty", "§17.2: a target has 1 to 4095 bytes", "invalid", fields(D_, b"\x00"))
    bad("target-4096", "§17.2: a target has 1 to 4095 bytes", "invalid", fields(D_, varint(4096) + b"x" * 4096))
    bad("target-nul", "§17.2: a target has no NUL", "invalid", fields(D_, b"\x02a\0"))
    for name, n in (("itself", E_), ("forward", 5), ("folder", B_), ("symlink", D_), ("huge", (1 << 63) - 1)):
        bad("hard-link-" + name, "§17.2: a hard link is to a file before it", "invalid", both(fields(E_, varint(n)), more(Rec(b"f", FILE, file_fields(0, b"")))))
    bad("hard-link-hard-link", "§17.2: a hard link to a hard link", "invalid", more(Rec(b"f", HARDLINK, varint(E_))))

    # ---- runs and tails; the file is b/c: two whole blocks, a tail of 952 bytes
    def runs(*pairs, tail=3072 - 2148):
        return fields(BC, file_fields(3000, c, pairs, tail))

    bad("kind-122-outside", "§17.2: a kind that is not named comes before places that are not there", "refused", both(runs((0, 1), (3, 1)), more(Rec(b"f", 122))))
    bad("runs-none", "§17.2: no runs of a file that has whole blocks", "invalid", runs())
    bad("runs-short", "§17.2: the runs are too short", "invalid", runs((0, 1)))
    bad("runs-long", "§17.2: the runs are too long", "invalid", runs((0, 2), (0, 1)))
    bad("run-long", "§17.2: a run is too long", "invalid", runs((0, 3)))
    bad("run-empty", "§17.2: a run of no blocks", "invalid", runs((0, 0), (0, 2)))
    bad("run-empty-last", "§17.2: a run of no blocks", "invalid", runs((0, 2), (0, 0)))
    bad("run-huge", "§17.2: a run of 2^63 − 1 blocks", "invalid", runs((0, (1 << 63) - 1)))
    bad("runs-wrap", "§17.2: the lengths are 2 modulo 2^64", "invalid", runs((0, (1 << 63) - 1), (0, (1 << 63) - 1), (0, 4)))
    bad("runs-many", "§17.2: more runs than there are bytes", "invalid", fields(BC, varint(3000) + digest(BLAKE3, c) + varint((1 << 63) - 1) + step(0) + varint(1)))
    bad("run-before", "§17.2: a run before position 0", "invalid", runs((-1, 2)))
    bad("run-far-before", "§17.2: a run before position 0", "invalid", runs((-(1 << 62), 2)))
    bad("run-behind", "§17.2: a run behind the positions", "invalid", runs((0, 1), (3, 1)))
    bad("run-across-end", "§17.2: a run across the end of the positions", "invalid", runs((3, 2)))
    bad("run-far-behind", "§17.2: a run behind the positions", "invalid", runs(((1 << 62) - 1, 2)))
    bad("runs-overlap", "§17.2: two runs of a file overlap", "invalid", runs((0, 1), (-1, 1)))
    bad("runs-overlap-other", "§17.2: runs of two files overlap", "invalid", more(Rec(b"f", FILE, file_fields(2048, c[:2048], [(-1, 1), (-2, 1)])), size=2048, anchors=[0]))
    bad("run-packed", "§17.2: a run and a position that has packed bytes", "invalid", runs((0, 1), (1, 1)))
    bad("run-packed-last", "§17.2: a run and a position that has packed bytes", "invalid", runs((0, 1), (2, 1)))
    bad("tail-before", "§17.2: a tail before byte 0", "invalid", runs((0, 2), tail=-2149))
    bad("tail-behind", "§17.2: a tail across the end of the positions", "invalid", runs((0, 2), tail=4096 - 952 + 1 - 2148))
    bad("tail-far-behind", "§17.2: a tail behind the positions", "invalid", runs((0, 2), tail=(1 << 62) - 1))
    bad("tails-overlap", "§17.2: two pieces of packed bytes overlap", "invalid", both(fields(A, file_fields(100, a, None, 3072)), runs((0, 2), tail=4096 - 952 - 3172)))
    bad("tail-across", "§17.2: a tail lies within one position", "invalid", runs((0, 2), tail=0))
    bad("tail-across-last-byte", "§17.2: a tail lies within one position", "invalid", runs((0, 2), tail=3072 - 951 - 2148))
    bad("tail-across-small", "§17.2: a tail lies within one position", "invalid", both(fields(A, file_fields(100, a, None, 3072 - 1)), runs((0, 2), tail=4096 - 952 - 3171)))
    bad("tails-overlap-all", "§17.2: two pieces of packed bytes overlap", "invalid", runs((0, 2), tail=-100))
    bad("tail-on-run", "§17.2: a run and a position that has packed bytes", "invalid", both(fields(A, file_fields(100, a, None, 1948)), runs((0, 2), tail=3072 - 2048)))
    bad("tail-missing", "§17.2: a file without its tail", "invalid", runs((0, 2), tail=None))
    bad("empty-with-tail", "§17.2: an empty file has no tail", "invalid", more(Rec(b"f", FILE, file_fields(0, b"", None, 0))))
    bad("empty-digest", "§17.2: an empty file has the BLAKE3 of no bytes", "invalid", more(Rec(b"f", FILE, file_fields(0, b"x"))))
    bad("block-with-runs", "§17.2: a file that is not longer than a block has no runs", "invalid", more(Rec(b"f", FILE, file_fields(1024, bytes(1024), [(0, 1)], 0)), size=1024))

    for p in (0, 1):
        bad("lost-run-%d" % p, "§17.2: a whole block that is marked as lost", "invalid", lambda d, x=p: d.digests.__setitem__(x, GONE))
    bad("lost-packed", "§17.2: a position with packed bytes that is marked as lost", "invalid", lambda d: d.digests.__setitem__(2, GONE))
    bad("lost-all", "§17.2: every position is marked as lost", "invalid", lambda d: d.digests.__setitem__(slice(0, 4), [GONE] * 4))
    bad("lost-moved", "§17.2: two runs, the second of them leads to a position that is marked as lost", "invalid", both(runs((1, 1), (-2, 1)), lambda d: d.digests.__setitem__(0, GONE)))

    # ---- anchors
    def anchored(change):
        return lambda d: change(d.anchors)

    bad("anchors-none", "§17.2: no anchors", "invalid", anchored(list.clear))
    bad("anchors-none-three", "§17.2: no anchors", "invalid", anchored(list.clear), tree=TALL)
    bad("anchors-one-fewer", "§17.2: one anchor too few", "invalid", anchored(list.pop), tree=TALL)
    bad("anchors-one-more", "§17.2: one anchor too many", "invalid", anchored(lambda x: x.append(0)), tree=TALL)
    bad("anchors-of-no-block", "§17.2: an anchor, and no file that is longer than a block", "invalid", anchored(lambda x: x.append(0)), tree=HOLLOW)
    bad("anchors-two-more", "§17.2: two anchors too many: as many bytes as one digest has", "invalid", anchored(lambda x: x.extend([0, 0])))
    bad("anchors-each-block", "§17.2: an anchor for each block", "invalid", anchored(lambda x: x.extend([0] * 67)), tree=TALL)
    bad("anchors-of-files", "§17.2: one anchor for each file that is longer than a block", "invalid", anchored(lambda x: x.pop(1)), tree=TALL)
    for cut in (1, 4, 7):
        bad("anchors-cut-%d" % cut, "§17.2: the last anchor is not there in full", "invalid", put(cut=cut), tree=TALL)

    # ---- §17.3
    bad("attributes-zero", "§17.3: bytes that are not zero", "invalid", lambda d: d.attributes.__setitem__(0, d.attributes[0][:14] + b"\1\0"))
    bad("attributes-mode", "§17.3: more than the lower 12 bits of the mode", "invalid", lambda d: d.attributes.__setitem__(0, d.attributes[0][:12] + b"\xa4\x81\0\0"))
    bad("attributes-nanoseconds", "§17.3: nanoseconds are below 10^9", "invalid", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", 0, 10 ** 9, 0o644, 0)))
    bad("attributes-mode-13", "§17.3: permissions are below 2^12", "invalid", lambda d: d.attributes.__setitem__(E_, struct.pack("<qIHH", 0, 0, 0o10644, 0)))
    bad("base-nul", "§17.3: the base has no NUL", "invalid", put(hint=b"..\0"))
    bad("base-nul-empty", "§17.3: the base has no NUL", "invalid", put(hint=b"\0"))
    bad("attributes-cut", "§17.3: the metadata are too short", "invalid", lambda d: d.attributes.pop())
    bad("base-cut", "§17.3: the base is longer than what is there", "invalid", put(hint=b"x", hint_size=2))
    bad("base-huge", "§17.3: the base is longer than what is there", "invalid", put(hint_size=65535))
    bad("left-over", "§17.3: bytes behind the base", "invalid", put(behind=b"\0"))

    # ---- §17.4, in all pieces
    for name, lies in (("version-0", dict(version=0)), ("version-2", dict(version=2)), ("hash-0", dict(hash=0)), ("hash-3", dict(hash=3)), ("form-1", dict(form=1)), ("form-2", dict(form=2)),
                       ("form-4", dict(form=4)), ("flag-1", dict(flags=3)), ("flag-2", dict(flags=5)), ("flag-3", dict(flags=9)), ("k-0", dict(k=0)), ("n-257", dict(m=256)),
                       ("L", dict(L=(1 << 26) + 64)), ("payload", dict(payload=1 << 63)), ("g-huge", dict(nr=(1 << 32) - 1))):
        bad("piece-" + name, "§4.1: rules 1 and 2", "refused", lie=lies)
    bad("piece-hash-2", "§17.4: the hash is SHA-256", "refused", lie=dict(hash=2), choice=True)
    for name, lies in (("L-0", dict(L=0)), ("L-63", dict(L=63)), ("G-0", dict(G=0)), ("L-large", dict(L=1 << 16)), ("G-2", dict(G=2)), ("payload-large", dict(payload=1 << 20))):
        bad("piece-" + name, "§4.1: rules 3 and 4", "invalid", lie=lies)
    bad("piece-not-last", "§17.4: the last flag is not set", "invalid", lie=dict(flags=0))
    bad("piece-g-1", "§17.4: g is not 0", "invalid", lie=dict(nr=1))
    bad("piece-s", "§17.4: the set is out of range", "invalid", piece=lambda s, i, head, rest: head.__setitem__(16, 1))
    bad("piece-i", "§17.4: the index is out of range", "invalid", piece=lambda s, i, head, rest: head.__setitem__(20, i + 3))
    for at in (12, 15, 24, 31):
        bad("piece-zero-%d" % at, "§17.4: a byte of the header that has to be zero", "damaged", piece=lambda s, i, head, rest, x=at: head.__setitem__(x, 1))
    bad("piece-zero-padding", "§17.4: a byte of the padding", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(-1, 1))
    bad("piece-unused-proof", "§6.1: an unused hash", "damaged", geometry=dict(k=2, m=3), piece=lambda s, i, head, rest: rest.__setitem__(LAYOUT + 64, 1), drop=(2, 3, 4))
    bad("layout-zero-68", "§17.4: a byte of the layout that has to be zero", "damaged", layout=lambda lay: lay.__setitem__(68, 1))
    bad("layout-zero-95", "§17.4: a byte of the layout that has to be zero", "damaged", layout=lambda lay: lay.__setitem__(95, 1))
    bad("piece-M", "§17.4: M is not the hash of the layout", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(40, 1))
    bad("piece-E", "§17.4: E is not what the piece leads to", "damaged", piece=lambda s, i, head, rest: head.__setitem__(64, head[64] ^ 1))
    bad("piece-proof", "§17.4: the proof does not lead to E", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(LAYOUT, rest[LAYOUT] ^ 1))

    def other_shards(shards):
        for i in (1, 2):
            shards[i][0] = flipped(shards[i][0], 5)

    bad("not-a-codeword", "§10.3: the pieces that are left do not give what the tree says", "invalid", alter=other_shards, drop=(0,))

    def not_zero(shards):
        for row in shards:
            row[0] = flipped(row[0], len(row[0]) - 1)

    assert len(draft().metadata()[0]) % 64
    bad("behind-payload", "§5: a byte past the end of the metadata", "invalid", alter=not_zero)

    def layout_number(at, value, form="<Q"):
        return lambda lay: lay.__setitem__(slice(at, at + struct.calcsize(form)), struct.pack(form, value))

    bad("layout-catalog-more", "§17.4: the catalog is longer than the metadata", "invalid", layout=layout_number(56, 1 << 40))
    bad("layout-catalog-huge", "§17.4: the catalog is longer than the metadata", "invalid", layout=layout_number(56, (1 << 64) - 1))
    bad("layout-catalog-short", "§17.4: the catalog is shorter than its head", "invalid", layout=layout_number(56, 63))
    bad("layout-catalog-fewer", "§17.4: the catalog does not end where it says", "invalid", layout=lambda lay: layout_number(56, struct.unpack_from("<Q", lay, 56)[0] - 16)(lay))
    bad("layout-block", "§17.4: the block is not that of the catalog", "invalid", layout=layout_number(64, 2048, "<I"))
    bad("layout-block-0", "§17.4: the block is not that of the catalog", "invalid", layout=layout_number(64, 0, "<I"))
    for name, start in (("", 4096), ("-1", 1), ("-huge", (1 << 64) - 1)):
        bad("layout-start" + name, "§17.4: in generation 1 the area starts at 0", "invalid", layout=layout_number(40, start))
    for name, start in (("", 0), ("-far", 1 << 40), ("-huge", (1 << 64) - 1)):
        bad("layout-start-2" + name, "§17.4: in generation 2 the start is not that of the area", "invalid", start=4096, before=digest(BLAKE3, b""), generation=2, layout=layout_number(40, start))
    bad("first-area-not-0", "§17.4: layout and catalog of generation 1 agree that its area starts at byte 1", "invalid", start=1)
    bad("first-area-far", "§17.4: layout and catalog of generation 1 agree that its area starts far away", "invalid", start=1 << 40)
    bad("first-two-areas", "§17.4: the catalog of generation 1 has another area, of no bytes, before that of the pieces", "invalid", both(put(areas=[[0, 0, 2, 0]]), group(area=1)))
    bad("layout-blocks-huge", "§17.4: the blocks are not those of the area", "invalid", layout=layout_number(48, (1 << 64) - 1))
    bad("layout-generation-0", "§17.4: generations count from 1", "invalid", layout=layout_number(32, 0))
    bad("layout-generation-0-before", "§17.4: a generation that names one before has a number above 1", "invalid", layout=layout_number(32, 0), before=digest(BLAKE3, b""))
    large = Geo(1, BLAKE3, SIDECAR, LAST, 1, 255, 4096, 1 << 24, 1 << 36, 0)
    for name, G, cls in (("", 1 << 24, "invalid"), ("-below", (1 << 24) - 1, "damaged")):
        wide = large._replace(G=G, payload=G << 12)
        lay = bytes(32) + struct.pack("<QQQQI", 1, 0, 1, 64, 1024) + bytes(28)
        head = MAGIC_P + bytes(8) + struct.pack("<IIQ", 0, 0, 0) + pack(wide) + bytes(32) + digest(BLAKE3, lay)
        rest = lay + bytes(align(HEADER + LAYOUT + proof_size(wide), 64) - HEADER - LAYOUT)
        add("layout-pieces%s" % name, "§17.4: n·G is below 2^32 (if it is, the piece is damaged)", cls, put_crc(bytearray(head), bytearray(rest)) + bytes(4096))
    bad("layout-before-1", "§17.4: the first generation names one before", "invalid", before=digest(BLAKE3, b""))
    bad("layout-before-2", "§17.4: the second generation names none", "invalid", layout=layout_number(32, 2))

    # ---- what is accepted all the same; recovery: the blocks that a reader finds
    data, E, root = seal(draft())
    q = (len(data) - 2048) // 3                         # bytes of a piece

    def good(name, rule, data=data, root_=root, recovery=(2, 2), given=None, **more):
        moved = MOVED.get(name, 0)
        add(name, rule, None, data, given, more.pop("choice", False), found=root_.hex(), recovery=list(recovery), **dict(more, displaced=moved) if moved else more)

    places = [piece_place(t, (0, 2, 3, q), 1024) for t in range(3)]
    good("good", "a sidecar that breaks no rule")
    good("good-root", "the same, with its root given", given=root)
    add("wrong-root", "§17.6: another root is given", "wrong-root", data, bytes(32))
    for t in (0, 2):
        good("piece-%d-lost" % t, "§17.4: a piece is lost", data[:places[t]] + bytes(q) + data[places[t] + q:])
    good("pieces-two-lost", "§17.4: two of three pieces are lost", bytes(q) + data[q:places[1]] + bytes(q) + data[places[1] + q:])
    add("pieces-all-lost", "§17.4: no piece is left", "damaged", b"".join([bytes(q), data[q:places[1]], bytes(q), data[places[1] + q:-q], bytes(q)]))
    add("crc-all", "§17.4: the CRC of every piece is wrong", "damaged", flipped(data, *[p + 20 for p in places]))
    add("body-all", "§17.4: the body of every piece is wrong", "damaged", flipped(data, *[p + q - 1 for p in places]))
    good("version-one", "§11: one piece has another version", flipped(data, 32))
    add("version-others", "§11: one piece has another version, and of the others the bodies are wrong", "damaged", flipped(data, 32, *[p + q - 1 for p in places[1:]]))
    add("empty", "no bytes at all", "damaged", b"")
    good("cut-first", "§17.5: 100 bytes of the beginning are gone", data[100:])
    good("cut-last", "§17.5: 100 bytes of the end are gone", data[:-100])
    good("inserted-first", "§17.5: 10 bytes before it", generate(10, 5) + data)
    good("appended", "§17.5: 10 bytes behind it", data + generate(10, 5))
    good("inserted-in-piece", "§17.5: 10 bytes inside the second piece", data[:places[1] + 50] + generate(10, 5) + data[places[1] + 50:])
    good("inserted-in-block", "§17.5: 10 bytes inside the first block", data[:q + 50] + generate(10, 5) + data[q + 50:], recovery=(1, 2))
    good("deleted-in-block", "§17.5: 10 bytes of the second block are gone", data[:places[2] - 500] + data[places[2] - 490:], recovery=(1, 2))
    good("block-rotten", "§17.1: a recovery shard is not intact", flipped(data, q), recovery=(1, 2))
    good("block-zero-digest", "§17.1: a recovery shard whose digest is zeros is never intact", *(lambda x: (x[0], x[2]))(seal(draft(lambda d: d.digests.__setitem__(-1, NOTHING)))), recovery=(1, 2))
    good("block-lost-digest", "§17.1: a recovery shard whose digest is sixteen times FF is never intact", *(lambda x: (x[0], x[2]))(seal(draft(lambda d: d.digests.__setitem__(-2, GONE)))), recovery=(1, 2))
    for name, change in (("shared-less", recs(lambda r: setattr(r[BC], "shared", 0))), ("sealed", None), ("path-4096", more(Rec(deep + b"z", FOLDER))), ("part-255", more(Rec(b"f" * 255, FOLDER))),
                         ("target-4095", fields(D_, varint(4095) + b"x" * 4095)), ("base", put(hint=b"../x")), ("hard-link-name", more(Rec(b"f", HARDLINK, varint(BC)))),
                         ("runs-two", runs((1, 1), (-2, 1))), ("tail-elsewhere", runs((0, 2), tail=1024 - 76)), ("folder-not-named", recs(lambda r: r.__setitem__(B_, Rec(b"aa", FOLDER)))),
                         ("sha256", recs(lambda r: (setattr(r[A], "kind", WITH_SHA256), setattr(r[A], "fields", file_fields(100, a, None, 2048, hashlib.sha256(a).digest()))))),
                         ("anchor-other", anchored(lambda x: x.__setitem__(0, x[0] ^ 1))), ("anchor-zero", anchored(lambda x: x.__setitem__(0, 0))), ("path-bytes", long_paths(0)), ("tail-zero", both(fields(A, file_fields(100, a, None, 2048 + 924)), runs((0, 2), tail=0))),
                         ("tails-swapped", both(fields(A, file_fields(100, a, None, 3072 + 924)), runs((0, 2), tail=2048 - 4096))), ("base-empty", put(hint=b"")), ("nanoseconds", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", -1, 10 ** 9 - 1, 0, 0))),
                         ("backslash", more(Rec(b"f\\..\\g", FOLDER))), ("time-before-1970", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", -(1 << 40), 1, 0o7777, 0)))):
        x = seal(draft(change), lie=dict(flags=17) if name == "sealed" else None)
        good("good-" + name, "what a reader accepts", x[0], x[2])


    x = bytes(7) + data
    good("moved-one-piece", "§17.5: all has moved, and the pieces on both sides of the second recovery shard are lost: it is where the nearest one that was found says", x[:7 + places[1]] + bytes(q) + x[7 + places[1] + q:-q] + bytes(q))
    # what stands between piece 0 and piece 2, which is lost: block 0, piece 1, block 1
    one, last = data[places[1]:places[1] + q], data[places[1] + q:places[2]]
    good("moved-header-only", "§17.5: 10 bytes before the second piece; its body is rotten, its header was found and says where the second block is", data[:places[1]] + bytes(10) + flipped(one, q - 1) + last + bytes(q))
    good("moved-no-header", "§17.5: the same with a rotten header: the second block is not found", data[:places[1]] + bytes(10) + flipped(one, 20) + last + bytes(q), recovery=(1, 2))
    good("moved-copy-in-place", "§17.5: the second piece stands in its place, and once more before the second block: that in its place says where the block is", data[:places[1]] + one + one + last + bytes(q), recovery=(1, 2))
    good("moved-copy-first", "§17.5: the second piece stands at two other places: the first says where the second block is, wrongly", data[:places[1]] + bytes(5) + one + one + last + bytes(q), recovery=(1, 2))
    good("moved-copies-first", "§17.5: the same, and the block is behind the first of them", data[:places[1]] + bytes(5) + one + last + one + bytes(q))
    x = seal(draft(lambda d: four_groups(d, 3, 0, 2), HOLLOW))
    good("good-groups-out-of-order", "§17.2: the recovery shards of groups in any order, and one that is of no group", x[0], x[2], recovery=(3, 3))

    def together(d):
        """a and f, a new file, stand in position 2 together"""
        f = generate(50, 51)
        d.add(Rec(b"f", FILE, file_fields(50, f, None, 2048 + 500 - 4024)), 50)
        row = bytearray(padded(a, 1024))
        row[500:550] = f
        d.digests[2] = plain_digests([bytes(row)])[0]
        rows = [c[:1024], c[1024:2048], bytes(row), padded(c[2048:], 1024)]
        d.recovery = evaluate([0, 1, 2, 3], rows, range(4, 6))
        d.digests[4:] = plain_digests(d.recovery)

    x = seal(draft(fields(BC, file_fields(3000, b"other", [(0, 2)], 924))))
    good("good-contradiction", "§17.1: the digests of all blocks of b/c are right and its BLAKE3 is not: seen when the files are read", x[0], x[2])
    x = seal(draft(lambda d: d.digests.__setitem__(1, bytes(range(16)))))
    good("good-wrong-block", "§17.1: the digest of a whole block of b/c is wrong: seen when the files are read", x[0], x[2])
    x = seal(draft(together))
    good("good-tails-together", "§17.1: two tails in one position, with zeros between them", x[0], x[2])

    def without_a(d):
        """a and the link to it are no longer named, as in a further generation; their position is an erasure"""
        for number in (E_, A):
            del d.recs[number], d.attributes[number]
        d.total -= 100
        next(r for r in d.recs if r.path == b"b/c").fields = file_fields(3000, c, [(0, 2)], 3072)

    x = seal(draft(without_a))
    good("good-entry-gone", "§17.1: a position that no entry names and whose digest is not zeros", x[0], x[2])
    x = seal(draft(both(without_a, lambda d: d.digests.__setitem__(2, GONE))))
    good("good-entry-lost", "§17.1: the same, and its bytes are lost", x[0], x[2])

    # ---- §17.6
    def second(start, areas, before, **options):
        """A second generation: d has another target, and the first area is kept; no new recovery shards"""
        d = draft(fields(D_, b"\x03b/c"))
        d.areas, d.recovery = [list(x) for x in areas], []
        return seal(d, start, before, 2, **options)

    def second_alone(generation, before, start=None):
        return seal(draft(fields(D_, b"\x03b/c")), len(data) if start is None else start, before, generation)

    first_areas = [[0, 2, 3, q]]

    def same_catalog():
        d = draft(fields(D_, b"\x03b/c"))
        d.areas, d.recovery = [list(x) for x in first_areas], []
        return d

    more_data, E2, root2 = second(len(data), first_areas, E)
    good("generations-two", "§17.6: the second of two generations is meant", data + more_data, root2, generation=2)
    good("generations-two-root-1", "§17.6: the root of the first is given", data + more_data, root, given=root, generation=1)
    good("generations-two-first-lost", "§17.6: the pieces of the first are lost", flipped(data, *[p + 20 for p in places]) + more_data, root2, generation=2)
    good("generations-two-invalid", "§17.6: the second is invalid", data + second(len(data), first_areas, E, late=lambda d: d.pokes.append((40, 1)))[0], root, generation=1, choice=True)
    good("generations-two-invalid-root-1", "§17.6: the second is invalid, the root of the first is given", data + second(len(data), first_areas, E, late=lambda d: d.pokes.append((40, 1)))[0], root, given=root, generation=1)
    add("generations-two-refused", "§17.6: the second is refused", "refused", data + second(len(data), first_areas, E, late=lambda d: setattr(d, "features", 1))[0])
    good("generations-two-refused-root-1", "§17.6: the second is refused, the root of the first is given", data + second(len(data), first_areas, E, late=lambda d: setattr(d, "features", 1))[0], root, given=root, generation=1)
    good("generations-two-first-refused", "§17.6: the first of two generations is refused", *(lambda x: (lambda y: (x[0] + y[0], y[2]))(second(len(x[0]), [[0, 2, 3, (len(x[0]) - 2048) // 3]], x[1])))(seal(draft(put(features=1)))), generation=2)
    x = second(len(data), first_areas, E, geometry=dict(k=2, m=1), drop=(0, 2))
    good("generations-two-newer", "§17.6: one piece of the second is left, and two are needed: to be reported", data + x[0], root, generation=1, newer=2, choice=True)
    good("generations-two-newer-root-1", "§17.6: the same, with the root of the first given", data + x[0], root, given=root, generation=1, newer=2)
    good("generations-two-moved", "§17.5: a byte inside the first piece of the second, whose header is right, and one less at the end: the others are looked for, although the file has its length",
         data + more_data[:500] + b"\0" + more_data[500:-1], root2, generation=2)
    x = second(len(data), first_areas, E)
    good("generations-two-no-piece", "§17.6: of the second nothing is left", data + bytes(len(x[0])), root, generation=1)

    def third(start, areas, before, number=3, **options):
        d = draft(fields(D_, b"\x02b/"))
        d.areas, d.recovery = [list(x) for x in areas], []
        return seal(d, start, before, number, **options)

    second_areas = first_areas + [[len(data), 0, 3, len(more_data) // 3]]
    third_data, _, root3 = third(len(data + more_data), second_areas, E2)
    good("generations-three", "§17.6: the third of three", data + more_data + third_data, root3, generation=3)
    good("generations-three-root-2", "§17.6: the third of three, with the root of the second given", data + more_data + third_data, root2, given=root2, generation=2)
    add("generations-three-second-lost", "§17.6: of the second nothing is left, so that nothing leads from the third to the first", "ambiguous", data + bytes(len(more_data)) + third_data)
    add("generations-three-second-rotten", "§17.6: of the second headers are left, but no piece is usable", "ambiguous",
        data + flipped(more_data, *[j * len(more_data) // 3 - 1 for j in (1, 2, 3)]) + third_data)
    good("generations-three-second-lost-root-1", "§17.6: of the second nothing is left, the root of the first is given", data + bytes(len(more_data)) + third_data, root, given=root, generation=1)
    good("generations-three-second-lost-root-3", "§17.6: of the second nothing is left, the root of the third is given", data + bytes(len(more_data)) + third_data, root3, given=root3, generation=3)
    add("generations-three-second-lost-other-root", "§17.6: of the second nothing is left, its root is given", "wrong-root", data + bytes(len(more_data)) + third_data, root2)
    x, Ex, _ = second(len(data), first_areas, E, geometry=dict(k=2, m=1), drop=(0, 2))
    after = first_areas + [[len(data), 0, 3, len(x) // 3]]
    y = third(len(data + x), after, Ex)
    good("generations-three-second-one-piece", "§17.6: of the second one piece is left, and two are needed: it still names the first", data + x + y[0], y[2], generation=3)
    x, Ex, _ = second(len(data), first_areas, E, late=lambda d: d.pokes.append((40, 1)))
    y = third(len(data + x), second_areas, Ex)
    good("generations-three-second-invalid", "§17.6: the second is invalid: it still names the first", data + x + y[0], y[2], generation=3)
    x, Ex, _ = second(len(data), first_areas, E, late=lambda d: setattr(d, "features", 1))
    y = third(len(data + x), second_areas, Ex)
    good("generations-three-second-refused", "§17.6: the second is refused: it still names the first", data + x + y[0], y[2], generation=3)
    x = third(len(data + more_data), second_areas, E2, geometry=dict(k=2, m=1), drop=(0, 2))
    good("generations-three-third-newer", "§17.6: of the third one piece is left, and two are needed: to be reported", data + more_data + x[0], root2, generation=2, newer=3, choice=True)
    x, Ex, _ = third(len(data + more_data), second_areas, E2)
    d = draft(fields(D_, b"\x02b."))
    d.areas, d.recovery = [list(x) for x in second_areas + [[len(data + more_data), 0, 3, len(x) // 3]]], []
    y = seal(d, len(data + more_data + x), Ex, 4)
    good("generations-four", "§17.6: the fourth of four", data + more_data + x + y[0], y[2], generation=4)
    z = flipped(more_data, 20, len(more_data) - 1)           # one piece of each is usable, which is enough
    good("generations-four-one-piece-each", "§17.6: the fourth of four, of each of which one piece is left", flipped(data, 20, len(data) - 1) + z + flipped(x, 20, len(x) - 1) + flipped(y[0], 20, len(y[0]) - 1), y[2], generation=4)
    add("generations-four-two-lost", "§17.6: of the second and the third nothing is left", "ambiguous", data + bytes(len(more_data) + len(x)) + y[0])
    other_features = seal(draft(put(features=1)))
    add("refused-other-root", "§17.6, §11: the only catalog is refused, and another root is given: refused goes before wrong-root", "refused", other_features[0], root)
    add("refused-its-root", "§17.6: the root of a catalog that is refused is given", "refused", other_features[0], other_features[2])
    x = second(len(data), first_areas, E, late=lambda d: setattr(d, "features", 1))
    add("generations-two-refused-other-root", "§17.6, §11: the second is refused, and another root is given", "refused", data + x[0], bytes(32))
    add("generations-two-refused-root-2", "§17.6: the second is refused, and its root is given", "refused", data + x[0], x[2])
    add("two-sidecars-refused", "§17.6: two sidecars, one of them refused", "ambiguous", data + other_features[0])
    good("two-sidecars-refused-root", "§17.6: two sidecars, one of them refused, the root of the other given", data + other_features[0], root, given=root)
    x = seal(draft(), lie=dict(version=2))
    add("version-2-other-root", "§11: all pieces of another sidecar have another version, and another root is given: since a header of version 1 is right, that counts as damaged", "wrong-root", data + x[0], bytes(32))
    x = seal(draft(), lie=dict(form=2))
    good("other-form", "§11: a sidecar, and one whose pieces are refused", data + x[0])
    add("other-form-other-root", "§17.6, §11: the same, and another root is given", "refused", data + x[0], bytes(32))
    add("pieces-lost-root", "§17.6: no piece is left, and a root is given", "damaged", b"".join([bytes(q), data[q:places[1]], bytes(q), data[places[1] + q:-q], bytes(q)]), root)
    # one root, two encodings: the same catalog, which stands elsewhere
    twice = second(len(data), first_areas, E)
    again, same_E, _ = seal(same_catalog(), len(data), E, 3)
    good("one-root-greater", "§17.6: two encodings of one catalog: the one of generation 3 is meant", data + twice[0] + again, root2, generation=3)
    good("one-root-greater-first", "§17.6: the same, the other way round", data + again + twice[0], root2, generation=3)
    good("one-root-chain", "§17.6: the same, and the third names the second as before", data + twice[0] + seal(same_catalog(), len(data), E2, 3)[0], root2, generation=3)
    good("one-root-same-generation", "§17.6: two copies of a sidecar with other times: the first is meant", data + seal(draft(lambda d: d.attributes.__setitem__(0, bytes(16))))[0], root)
    add("areas-descend", "§17.2: the second area stands before the first", "invalid", second(0, [[1 << 40, 2, 3, q]], E)[0])
    add("areas-equal", "§17.2: an area twice", "invalid", second(0, [[0, 0, 3, len(more_data) // 3]], E)[0])
    add("areas-overlap-byte", "§17.2: the second area overlaps the first by one byte", "invalid", second(len(data) - 1, first_areas, E)[0])
    good("areas-apart", "§17.2: a gap between two areas", second(1 << 40, [[7, 2, 3, q]], E)[0], second(1 << 40, [[7, 2, 3, q]], E)[2], recovery=(0, 2), generation=2)
    far = (1 << 62) - len(seal(draft(), 1 << 61, E, 2)[0])
    add("area-end-2-62", "§17.2: an area ends below 2^62", "invalid", seal(draft(), far, E, 2)[0])
    x = seal(draft(), far - 1, E, 2)
    good("area-end-2-62-1", "§17.2: an area that ends just below 2^62; all of it has moved", x[0], x[2], generation=2)
    add("areas-overlap", "§17.5: the second area overlaps the first", "invalid", second(len(data) - 64, first_areas, E, late=None)[0])
    other = draft(fields(D_, b"\x03b/c"))
    twin, _, twin_root = seal(other)
    add("two-sidecars", "§17.6: two sidecars one after the other", "ambiguous", data + twin)
    good("two-sidecars-root", "§17.6: two sidecars, the root of the second given; its recovery shards have moved with its pieces", data + twin, twin_root, given=twin_root)
    add("two-sidecars-wrong-root", "§17.6: two sidecars and a third root", "wrong-root", data + twin, bytes(32))
    # the second names the first, but its number is not greater
    two, E_two, _ = second_alone(2, digest(BLAKE3, b"unknown"), 0)
    add("generations-not-greater", "§17.6: one names another as before, but has no greater number", "ambiguous", two + second_alone(2, E_two, len(two))[0])
    three = second_alone(3, E_two, len(two))
    good("generations-gap", "§17.6: one names another as before, which has a smaller number", two + three[0], three[2], generation=3)

    # ---- a sidecar of a file that has a piece of another sidecar, with k = 1: its recovery shards are copies of it
    inner, _, _ = seal(draft(tree=HOLLOW))
    nest = Draft([Item(b"nest", FILE, inner[:(len(inner) - 1024) // 3], None, 0o644, 0, 0)], Fraction(2))
    outer, _, outer_root = seal(nest)
    assert nest.groups == [[1, 2, 1, 0, 0]] and nest.recovery[0] == padded(nest.recovery[0][:nest.total], 1024) and outer.count(MAGIC_P) == nest.areas[0][2] + 2
    good("nested", "§17.5, §17.6: pieces of another sidecar in recovery shards are not looked for while all is at its place", outer, outer_root)
    broken = bytes(8) + outer[8:]
    add("nested-first-lost", "§17.6: the first piece is lost, so that the pieces in recovery shards are found", "ambiguous", broken)
    good("nested-first-lost-root", "§17.6: the same, with the root given", broken, outer_root, given=outer_root)
    return out


# ---------------------------------------------------------------- golden vectors: damaged trees

def tree_cases():
    """(name, protect case, sidecar file or None, damages, states, mendable). Damages are done in this order; at each path the time of modification is put back
    afterwards, but by "edit", which makes it a second later, and what is made anew has none. The numbers of recovery shards are what this reader finds."""
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
    yield "executable", "small", None, [on("mode", b"a", mode=0o755)], {b"a": "edited"}, True
    yield "not-executable", "mixed-16", None, [on("mode", b"one/run.sh", mode=0o644)], {b"one/run.sh": "edited"}, True
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
    yield "inserted-in-file", "one-300000", None, [on("insert", b"file", at=5000, len=1, seed=1)], {b"file": "edited"}, False
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
    yield "first-name-gone", "small", None, [on("delete", b"a")], {b"a": "missing"}, True
    yield "two-tails-one-position", "small", "good-tails-together", [on("flip", b"a", at=0), on("flip", b"b/c", at=0)], {b"a": "rotten", b"b/c": "rotten", b"f": "missing"}, True


def damage(x, base, data):
    """The sidecar afterwards"""
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
    """What a reader finds: states by path, recovery, displaced, mendable, exit"""
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
        assert (repair(data, base, out)[1] == 0) == able, name
        return dict(states=bad, recovery=[intact, count], displaced=reader.displaced, mendable=able, exit=code)


EXITS = dict(EXIT, **{"wrong-root": 5})


def read_class(data, root):
    """(class, catalog, text, what was found)"""
    try:
        reader = Reader(data, root)
    except Fault as fault:
        return fault.cls, None, fault.text, None
    return None, reader.catalog, "", dict(recovery=list(reader.count()), displaced=reader.displaced, generation=reader.catalog.generation, newer=reader.newer)


def golden(place):
    shutil.rmtree(os.path.join(place, "sidecar-errors"), ignore_errors=True)
    protects = [protect_vector(case)[0] for case in protect_cases()]
    assert len({v["name"] for v in protects}) == len(protects)
    errors, places = [], {}
    for name, rule, cls, data, root, more in error_cases():
        where = places.setdefault(data, "sidecar-errors/%s.fecp" % name)        # the same bytes are stored once
        store(os.path.join(place, where), data)
        errors.append({"name": name, "rule": rule, "path": where, "root": root.hex() if root else None, "class": cls, "exit": EXITS[cls], **more})
    assert len({v["name"] for v in errors}) == len(errors)
    cases, trees = {v["name"]: v for v in protects}, []
    for name, of, sidecar, damages, states, able in tree_cases():
        tree = cases[of]["tree"]
        data = protect_vector({x: cases[of][x] for x in ("name", "redundancy", "base", "tree")})[1]
        where = None
        if sidecar:
            where = "sidecar-errors/%s.fecp" % sidecar
            data = next(x for x, y in places.items() if y == where)
        found = tree_vector(name, tree, data, damages)
        assert found.get("class") == states if isinstance(states, str) else (states is None or found["states"] == {x.hex(): y for x, y in states.items()}) and found["mendable"] == able, (name, found)
        trees.append(dict(name=name, protect=of, sidecar=where, damages=damages, **found))

    def rows(items):
        return "[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]"

    store(os.path.join(place, "sidecar.json"), ('{"protect": %s,\n"errors": %s,\n"trees": %s}\n' % (rows(protects), rows(errors), rows(trees))).encode())
    print("%d sidecars, %d errors, %d trees" % (len(protects), len(errors), len(trees)))


def check(place):
    bad = 0

    def complain(text):
        nonlocal bad
        bad += 1
        print(text)

    with open(os.path.join(place, "sidecar.json"), encoding="utf-8") as f:
        stored = json.load(f)
    cases = {case["name"]: case for case in protect_cases()}
    for v in stored["protect"]:
        case = cases.pop(v["name"], None)
        made, data = protect_vector({x: v[x] for x in ("name", "redundancy", "base", "tree")})
        if made != v or case is None or {x: v[x] for x in case} != case:
            complain(v["name"] + ": differs")
            continue
        items = sorted(items_of(v["tree"]))
        for root in (None, bytes.fromhex(v["root"])):
            cls, catalog, text, found = read_class(data, root)
            if cls or found["recovery"][0] != found["recovery"][1] or found["displaced"] or catalog.hint.hex() != v["base"]:
                complain("%s: %s %s" % (v["name"], cls, text))
                break
            if [(x.path, x.kind & 15, x.mode, x.seconds, x.nanos) for x in catalog.entries] != [(x.path, x.kind, x.mode, x.seconds, x.nanos) for x in items]:
                complain(v["name"] + ": the entries are not what was protected")
        else:
            contents = {n: x.content for n, x in enumerate(items) if x.kind == FILE}
            originals = Originals(catalog, contents)
            if None in originals.rows:
                complain(v["name"] + ": an original does not have its digest")
            # as many originals of each set are lost as can be mended
            for k, m, spots, _ in sets_of(catalog, originals, [[None] * (g[1] * g[2]) for g in catalog.groups]):
                for p in spots[:m] if len(spots) % 2 else spots[-m:]:
                    originals.rows[p] = None
            reader = Reader(data)
            before = Originals(catalog, contents).rows
            rows, wrong = mend(catalog, originals, reader.recovery)
            if wrong or any(x != y for x, y, z in zip(rows, before, originals.named) if z):
                complain(v["name"] + ": not mended")
    for name in cases:
        complain(name + ": no vector")
    for v in stored["errors"]:
        with open(os.path.join(place, v["path"]), "rb") as f:
            data = f.read()
        cls, catalog, text, found = read_class(data, bytes.fromhex(v["root"]) if v["root"] else None)
        if cls != v["class"] or EXITS[cls] != v["exit"]:
            complain("%s: class %s instead of %s: %s" % (v["name"], cls, v["class"], text))
        elif not cls and (catalog.root.hex() != v["found"] or any(v.get(x, {"generation": 1, "newer": None, "displaced": 0}.get(x)) != y for x, y in found.items())):
            complain("%s: root %s, %s" % (v["name"], catalog.root.hex(), found))
    cases = {case["name"]: case for case in protect_cases()}
    for v in stored["trees"]:
        if v["sidecar"]:
            with open(os.path.join(place, v["sidecar"]), "rb") as f:
                data = f.read()
        else:
            data = protect_vector(cases[v["protect"]])[1]
        found = tree_vector(v["name"], cases[v["protect"]]["tree"], data, v["damages"])
        if any(v[x] != y for x, y in found.items()):
            complain("%s: %s" % (v["name"], found))
    print("%d sidecars, %d errors, %d trees; %s" % (len(stored["protect"]), len(stored["errors"]), len(stored["trees"]), "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0


# ---------------------------------------------------------------- selftest

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
            area, q, block = (0, B, N, 3), 3, 10
            c = [t * B // (N - 1) for t in range(N)]
            spans = [(piece_place(t, area, block), q) for t in range(N)] + [(block_place(b, area, block), block) for b in range(B)]
            assert [block_place(b, area, block) for b in range(B)] == [b * block + q * sum(x <= b for x in c) for b in range(B)]
            end = 0
            for at, size in sorted(spans):
                assert at == end
                end += size
            assert end == area_size(area, block) and piece_place(N - 1, area, block) + q == end
    for x in (0, 1, 127, 128, 300, (1 << 63) - 1):
        assert Cursor(varint(x)).varint() == x
    for d in (0, 1, -1, 2, -2, 100, -100, (1 << 62) - 1, -(1 << 62)):
        assert Cursor(step(d)).step() == d
    # §17.8
    assert [pick_block(x) for x in (0, 1 << 18, (1 << 18) + 1, 1 << 30, (1 << 30) + 1, 1 << 31, (1 << 31) + 1, 1 << 34, 1 << 50)] == [1024, 1024, 4096, 4096, 8192, 8192, 16384, 65536, 65536]
    assert pick_code(0, Fraction(1667, 10000)) == (1, 1, 1) and pick_code(256, Fraction(2)) == (64, 128, 4) and pick_code(221, Fraction(16, 100)) == (111, 18, 2)
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


# ---------------------------------------------------------------- commands

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
        return globals()[args.command](args.folder)
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
