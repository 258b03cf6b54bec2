"""§17.4, §17.8: the writer."""
import struct
from collections import namedtuple

from ..basics import BLAKE3, ZERO32, Fault, align, ceil_div
from ..encoding.geometry import group_of, pack, plan
from ..encoding.trees import proof_size
from ..encoding.writer import Group, padded, put_crc
from ..gf import evaluate
from ..hashes import digest
from .parts import (
    EXECUTABLE, FILE, HARDLINK, HEADER, LAST_PACKED, LAYOUT, MAGIC_P, NOTHING, SIDECAR, SYMLINK, Rec, anchors_of,
    area_size, block_place, catalog_root, file_fields, piece_place, plain_digests, varint, whole_digests,
    write_entries,
)

# content: of a file; target: of a symbolic link, or the path that a hard link has
Item = namedtuple("Item", "path kind content target mode seconds nanos")


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
    """A sidecar before it is written. The hooks of `seal` and the lists here give negative vectors right digests and
    roots although the vectors break a rule."""

    def __init__(self, items, r, hint=b""):
        items = sorted(items)
        files = [x for x in items if x.kind == FILE]
        self.total = sum(len(x.content) for x in files)
        self.block = block = pick_block(self.total)
        whole = {x.path: len(x.content) // block if len(x.content) > block else 0 for x in files}
        positions, packed, first = [], [], sum(whole.values())      # packed: the bytes of each packed position
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
        # §17.1: position i·G + s; all sets of the group at once
        rows = [b"".join(positions[i * G:i * G + G]) for i in range(k)]
        self.recovery = [row[o:o + block] for row in evaluate(list(range(k)), rows, range(k, k + m)) for o in range(0, G * block, block)]
        self.digests += plain_digests(self.recovery)
        self.groups, self.areas, self.hint = [[k, m, G, 0, 0]], [], hint
        self.version, self.features = 1, 0
        self.lie, self.pokes, self.left_over, self.behind, self.hint_size, self.cut = {}, [], b"", b"", None, 0

    def add(self, rec, size=0):
        """Adds an entry, for the vectors."""
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
    """§17.8: a writer does not write paths that a reader would refuse"""
    if sum(len(x.path) for x in draft.recs) > path_limit(len(write_entries(draft.recs))):
        raise Fault("refused", "§17.2: the bytes of all paths")
    return draft


def seal(draft, start=0, before=ZERO32, generation=1, late=None, layout=None, piece=None, geometry=None, lie=None, alter=None, drop=()):
    """§17.4, §17.5: (the bytes of an area, E, root). Hooks: late changes the draft when its area is known, layout and
    piece change bytes that are written. geometry: fields of Pg (and L with them) that are changed before anything is
    built; lie: fields of Pg that differ from the group that is built; drop: pieces that are overwritten with zeros."""
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
