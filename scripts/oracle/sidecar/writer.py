"""§17.4, §17.8: the writer."""
import struct
from collections import namedtuple

from ..basics import BLAKE3, ZERO32, Fault, align, ceil_div
from ..encoding.geometry import group_of, pack, plan
from ..encoding.trees import proof_size
from ..encoding.writer import Group as EncodingGroup, padded, put_crc
from ..hashes import digest
from .group import SMALL as SMALL_CODE, UNSAID_RUN, WIDE, Group
from .parts import (
    ANCHORED, EXECUTABLE, FILE, HARDLINK, HEADER, LAST_PACKED, LAYOUT, MAGIC_P, NOTHING, SIDECAR, SYMLINK, WITH_ZEROS,
    Rec, anchor, extent_size, block_place, catalog_root, file_fields, piece_place, plain_digests, varint, whole_digests,
    write_entries,
)

SMALL, LARGE = 4096, 1 << 20                            # §17.8: files that are too small to be compared, or large

# content: of a file; target: of a symbolic link, or the path that a hard link has
Item = namedtuple("Item", "path kind content target mode seconds nanos")

MULTIPLE, RUN = 128, 32                                 # §17.8: of k, and L, where there are several sets of code 1


def pick_block(total):
    """§17.8"""
    if total <= 256 << 10:
        return 1024
    block = 4096
    while total > 1 << 34 and ceil_div(total, block) > 1 << 22 and block < 65536:
        block *= 2
    return block


def pick_code(b, r, block):
    """§17.8: (code, k, m, G) for b positions"""
    def recovery(k):
        return ceil_div(k * r.numerator, r.denominator)

    def most(m, n):
        return max((k for k in range(1, n) if recovery(k) <= m and k + recovery(k) <= n), default=None)

    K = most(255, 256)
    if K is None or not 0 < r <= 127 or (10000 * r).denominator != 1:
        raise Fault("refused", "§17.8: no code has this redundancy")
    W = most(min(8192, (1 << 25) // block), 65536) or 0
    if b <= K:
        return SMALL_CODE, max(1, b), recovery(max(1, b)), 1
    if b <= W:
        return WIDE, b, recovery(b), 1
    wide = W // MULTIPLE * MULTIPLE > K
    G = ceil_div(b, W // MULTIPLE * MULTIPLE if wide else K)
    k = ceil_div(b, G)
    k = align(k, MULTIPLE) if wide else k
    return WIDE if wide else SMALL_CODE, k, recovery(k), G


def metadata_geometry(k, m, b):
    """§17.8: Pg"""
    m1 = min(127, max(32, ceil_div(128 * m, k + m)))
    k1 = 128 - m1
    shape = k1, m1
    if b < 4096 * k1:
        k2 = max(1, ceil_div(b, 4096))
        shape = k2, ceil_div(k2 * m1, k1) + 1
    return group_of(plan(SIDECAR, BLAKE3, *shape, b, set_size=8192 * k1), 0)


def parts_of(content, block, sparing):
    """§17.8: the whole blocks of a file: [(whether they are zeros, their number)]. All zeros are those of no hole."""
    count, out = len(content) // block if len(content) > block else 0, []

    def is_zeros(n):
        return not any(content[n * block:(n + 1) * block])

    looks = sparing or len(content) >= LARGE and any(is_zeros(i * (count - 1) // 15) for i in range(16))
    for zeros in (looks and is_zeros(n) for n in range(count)):
        if out and out[-1][0] == zeros:
            out[-1][1] += 1
        else:
            out.append([zeros, 1])
    return out


class Draft:
    """A sidecar before it is written. The hooks of `seal` and the lists here give negative vectors right digests and
    roots although the vectors break a rule."""

    def __init__(self, items, r, hint=b"", sparing=False, shape=None):
        """sparing: all zeros and all duplicates take no positions, whatever §17.8 says
        shape: (code, k, m, G, L) in place of what §17.8 says"""
        items = sorted(items)
        files = [x for x in items if x.kind == FILE]
        self.total = sum(len(x.content) for x in files)
        self.block = block = pick_block(self.total)
        first_of = {}                                   # the first file with some bytes
        for x in files:
            if len(x.content) > (0 if sparing else SMALL):
                first_of.setdefault(x.content, x.path)
        parts = {x.path: parts_of(x.content, block, sparing) for x in files}    # (whether zeros, blocks)
        alone = [x for x in files if first_of.get(x.content, x.path) == x.path]
        first = sum(n for x in alone for zeros, n in parts[x.path] if not zeros)
        positions, packed, self.digests = [], [], []    # packed: the bytes of each packed position
        places, tails_at = {}, {}                       # by path: the starts of the runs, the byte of the tail
        for x in alone:
            cut = sum(n for _, n in parts[x.path]) * block
            values, at, places[x.path] = whole_digests(x.content, block, cut // block), 0, []
            for zeros, n in parts[x.path]:
                if not zeros:
                    places[x.path].append(len(positions))
                    positions += [x.content[o:o + block] for o in range(at * block, (at + n) * block, block)]
                    self.digests += values[at:at + n]
                at += n
            tail = x.content[cut:]
            if tail:
                j = next((j for j in range(max(0, len(packed) - LAST_PACKED), len(packed)) if len(packed[j]) + len(tail) <= block), len(packed))
                if j == len(packed):
                    packed.append(b"")
                tails_at[x.path] = (first + j) * block + len(packed[j])
                packed[j] += tail
        cursor = cursor_of_blocks = 0
        self.recs, self.attributes, self.anchors = [], [], []
        numbers = {x.path: n for n, x in enumerate(items)}
        for x in items:
            kind, fields = x.kind, b""
            if x.kind == FILE:
                of, runs, at = first_of.get(x.content, x.path), [], 0
                starts = iter(places[of])
                for zeros, n in parts[x.path]:
                    if zeros:
                        runs.append((None, n))
                    else:
                        start = next(starts)
                        runs.append((start - cursor_of_blocks, n))
                        cursor_of_blocks = start + n
                        self.anchors += [anchor(x.content[o * block:(o + 1) * block]) for o in range(at, at + n) if o * block % ANCHORED == 0]
                    at += n
                place = tails_at.get(of)
                fields = file_fields(len(x.content), x.content, runs or None, place - cursor if place is not None else None)
                cursor = place + len(x.content) - at * block if place is not None else cursor
                kind |= (EXECUTABLE if x.mode & 0o100 else 0) | (WITH_ZEROS if any(zeros for zeros, _ in parts[x.path]) else 0)
            elif x.kind == SYMLINK:
                fields = varint(len(x.target)) + x.target
            elif x.kind == HARDLINK:
                fields = varint(numbers[x.target])
            self.recs.append(Rec(x.path, kind, fields))
            self.attributes.append(struct.pack("<qIHH", x.seconds, x.nanos, x.mode & 0o7777, 0))
        tails = [padded(x, block) for x in packed]
        self.digests += plain_digests(tails)
        positions += tails
        code, k, m, G, L = shape or (*pick_code(len(positions), r, block), RUN)
        says_runs = code == WIDE and G > 1 and L != UNSAID_RUN
        group = Group(k, m, G, 0, 0, 0, 0, code, L)
        self.digests += [NOTHING] * (k * G - len(positions))
        positions += [bytes(block)] * (k * G - len(positions))
        made = [group.solve(dict(enumerate(positions[p] for p in group.places(s))), range(k, k + m)) for s in range(G)]
        self.recovery = [shards[j] for j in range(m) for shards in made]
        self.digests += plain_digests(self.recovery)
        self.groups, self.extents, self.hint = [[k, m, G, 0, 0]], [], hint
        self.codes = {0: code | (L << 16 if says_runs else 0)} if code else {}
        self.version, self.features = 1, int(any(x.content for x in files if x not in alone)) | 2 * (code == WIDE) | 4 * says_runs
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
        has = dict(block=self.block, extents=len(self.extents), groups=len(self.groups), entries=len(self.recs), size=len(entries), total=self.total)
        has.update(self.lie)
        out = bytearray(struct.pack("<IIIIIIQQ", self.version, self.features, *(has[x] for x in ("block", "extents", "groups", "entries", "size", "total"))) + bytes(24))
        out += b"".join(struct.pack("<QQIIQ", *extent, 0) for extent in self.extents)
        out += b"".join(struct.pack("<HHIIIQQ", k, m, G, extent, self.codes.get(x, 0), first, 0) for x, (k, m, G, extent, first) in enumerate(self.groups))
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


def difference(whole, metadata, size, behind, version=2):
    """§17.4: a difference to the metadata of `whole`, (E, metadata), that has the last `behind` bytes in common with
    it. size: bytes of the catalog"""
    E, old = whole
    ahead = metadata[:len(metadata) - behind]
    steps = varint(0) * 2 + varint(len(ahead)) + ahead + varint(len(old) - behind) + varint(behind) + varint(0)
    return struct.pack("<IIQQQ", version, 0, size, len(metadata), 0) + E + steps


def seal(draft, start=0, before=ZERO32, generation=1, late=None, layout=None, piece=None, geometry=None, lie=None, alter=None, drop=(), payload=None):
    """§17.4, §17.5: (the bytes of an extent, E, root). Hooks: late changes the draft when its extent is known, layout
    and piece change bytes that are written. geometry: fields of Pg (and L with them) that are changed before anything
    is built; lie: fields of Pg that differ from the group that is built; drop: pieces that are overwritten with zeros.
    payload: makes the payload, whose length is always the same, from the metadata and the bytes of the catalog."""
    payload = payload or (lambda metadata, cut: metadata)
    draft.extents.append([start, len(draft.recovery), 2, 64])
    size = len(payload(*draft.metadata()))
    pg = metadata_geometry(*(max(1, x) for x in draft.groups[-1][:2]), size) if draft.groups else metadata_geometry(1, 1, size)
    if geometry:
        pg = pg._replace(**geometry)
        pg = pg._replace(L=64 * ceil_div(size, 64 * pg.k * pg.G))
    n, front = pg.k + pg.m, align(HEADER + LAYOUT + proof_size(pg), 64)
    extent = [start, len(draft.recovery), n * pg.G, front + pg.L]
    draft.extents[-1] = list(extent)
    if late:
        late(draft)
    metadata, cut = draft.metadata()
    root = catalog_root(metadata[:cut])
    coded = payload(metadata, cut)
    assert len(coded) == size
    cut = cut if coded is metadata else size
    lay = bytearray(before + struct.pack("<QQQQI", generation, start, extent[1], cut, draft.block) + bytes(28))
    if layout:
        layout(lay)
    group = EncodingGroup(pg, coded, digest(BLAKE3, bytes(lay)), alter, lie)
    out = bytearray(extent_size(extent, draft.block))
    for b, data in enumerate(draft.recovery):
        at = block_place(b, extent, draft.block)
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
            at = piece_place(t, extent, draft.block)
            out[at:at + extent[3]] = bytes(extent[3]) if t in drop else data.ljust(extent[3], b"\0")
    return bytes(out), group.gr, root
