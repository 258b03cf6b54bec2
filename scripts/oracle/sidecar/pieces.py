"""§17.4 to §17.6: reading pieces."""
import struct
from collections import namedtuple

from ..basics import BLAKE3, WORK, ZERO32, Fault, Notes, align, check_version, raise_worst
from ..encoding.geometry import LAST, check_geometry, unpack
from ..encoding.sets import restore_group
from ..encoding.trees import follow_proof, group_root, proof_size
from ..encoding.writer import Group
from ..hashes import crc32c, digest
from .catalog import Catalog, Cursor, places_of
from .parts import (
    GONE, HEADER, LAYOUT, MAGIC_P, NOTHING, SIDECAR, extent_size, block_place, catalog_root, piece_place, plain_digests,
)

Piece = namedtuple("Piece", "pos end shift t s i pg E M layout body sr O")
# A header, whether its piece is usable or not; shift: how far the piece has moved
Head = namedtuple("Head", "pos shift t E extent")


def read_piece(data, pos, notes):
    """§17.4: the piece at pos, or a Fault. The classes are those of §9."""
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
    extent = layout_extent(pg, layout)
    if extent[0] + extent_size(extent, block) >= 1 << 62:
        raise Fault("invalid", "§17.4: the extent of the layout does not end below 2^62")
    before, generation, start = struct.unpack_from("<32sQQ", layout)
    if (generation == 1) != (before == ZERO32) or not generation or generation == 1 and start:
        raise Fault("invalid", "§17.4: the generation, or the start of the first")
    t = i * pg.G + s
    shift = pos - piece_place(t, layout_extent(pg, layout), layout_block(layout)) - start if (pg.k + pg.m) * pg.G > 1 else 0
    notes.heads.append(Head(pos, shift, t, E, layout_extent(pg, layout)))
    body = data[pos + front:pos + front + pg.L]
    notes.work, notes.end = notes.work + len(body), max(notes.end, pos + front + len(body))
    if len(body) < pg.L:
        raise Fault("damaged", "a piece is cut short")
    X, sr, O = follow_proof(pg, digest(BLAKE3, body), s, i, proof)
    if group_root(BLAKE3, pg, X, M) != E:
        raise Fault("damaged", "§17.4: a piece that is not what E says")
    return Piece(pos, pos + front + pg.L, shift, t, s, i, pg, E, M, layout, body, sr, O)


def layout_extent(pg, layout):
    start, blocks = struct.unpack_from("<QQ", layout, 40)
    return start, blocks, (pg.k + pg.m) * pg.G, align(HEADER + LAYOUT + proof_size(pg), 64) + pg.L


def layout_block(layout):
    return struct.unpack_from("<I", layout, 64)[0]


def walk(data, notes):
    """§17.5: the pieces at their places, extent by extent; and whether the file consists of extents that have all
    their pieces"""
    pieces, pos, complete = [], 0, True
    while pos < len(data):
        if data[pos:pos + 8] != MAGIC_P:
            return pieces, False
        try:
            first = read_piece(data, pos, notes)
        except Fault as fault:
            notes.faults.append(fault)
            return pieces, False
        extent, block = layout_extent(first.pg, first.layout), layout_block(first.layout)
        if first.t or first.shift or extent[2] < 2 or pos + extent_size(extent, block) > len(data):
            return pieces, False
        for t in range(extent[2]):
            at = pos + piece_place(t, extent, block)
            try:
                piece = read_piece(data, at, notes) if data[at:at + 8] == MAGIC_P else None
                if piece and piece.E == first.E and piece.t == t:
                    pieces.append(piece)
                else:
                    complete = False
            except Fault as fault:
                complete = False
                notes.faults.append(fault)
        pos += extent_size(extent, block)
    return pieces, complete


def scan(data, notes):
    """§17.5, §9.1: every piece, at any place"""
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
        self.before, self.generation, _, _, self.size = struct.unpack_from("<32sQQQQ", self.first.layout)
        self.is_difference = self.size == self.first.pg.payload
        self.whole = self.payload = None
        try:
            self.payload = restore_group(self.first.pg, self.sets, self.roots)
        except Fault as fault:
            self.fault = fault

    def read(self, found):
        """§17.4: the metadata, from the payload and that of the whole generation that this differs from"""
        if self.payload is None:
            return
        metadata, size, extent = self.payload, self.size, None
        try:
            if self.is_difference:
                metadata, size, extent = self.apply(found)
            self.root = catalog_root(metadata[:size])
            self.catalog = Catalog(metadata, self.first.layout, self.first.pg, size, extent)
        except Fault as fault:
            self.fault = fault

    def apply(self, found):
        """§17.4: (metadata, bytes of the catalog, extent of the whole generation)"""
        if len(self.payload) < 64:
            raise Fault("invalid", "§17.4: a difference is too short")
        version, zero, size, total, more, named = struct.unpack_from("<IIQQQ32s", self.payload)
        if version != 2:
            raise Fault("refused", "§17.4: the version of a difference")
        if zero or more or size > total:
            raise Fault("invalid", "§17.4: the head of a difference")
        x = found.get(named)
        if x is None or x.is_difference or x.payload is None and x.fault.cls != "invalid":
            self.payload = None
            raise Fault("damaged", "§17.4: the whole generation is not there")
        self.whole = x
        if x.payload is None or x.generation >= self.generation:
            raise Fault("invalid", "§17.4: the whole generation is invalid, or not before this one")
        cursor, at, out = Cursor(self.payload[64:]), 0, b""
        while cursor.pos < len(cursor.data):
            skip, copy = cursor.varint(), cursor.varint()
            added = cursor.take(cursor.varint())
            if at + skip + copy > len(x.payload) or not copy + len(added) or len(out) + copy + len(added) > total:
                raise Fault("invalid", "§17.4: a step of a difference")
            out += x.payload[at + skip:at + skip + copy] + added
            at += skip + copy
        if len(out) != total:
            raise Fault("invalid", "§17.4: the length that a difference gives")
        return out, size, layout_extent(x.first.pg, x.first.layout)

    def is_coded_right(self):
        """Tells whether the payload, coded once more, gives E"""
        return self.payload is not None and Group(self.first.pg, self.payload, digest(BLAKE3, self.first.layout)).gr == self.first.E

    def counts(self):
        """§17.6"""
        return self.catalog or self.payload is not None and self.fault.cls == "refused"


def encodings(pieces):
    out = {}
    for piece in pieces:
        out.setdefault(piece.E, Encoding(piece)).add(piece)
    for x in out.values():
        x.restore()
    for x in out.values():
        x.read(out)
    return out


def choose(found, root, notes):
    """§17.6"""
    counted = {E: x for E, x in found.items() if x.counts()}
    faults = notes.faults + [x.fault for x in found.values() if x.fault]
    # best: for each root the encoding of the greatest generation, then the first in the file
    best = {}
    for x in sorted(counted.values(), key=lambda x: (-x.generation, x.first.pos)):
        best.setdefault(x.root, x)
    if root is not None:
        left = [best[root]] if root in best else []
        if counted and not left:
            faults.append(Fault("wrong-root", "§17.6: no catalog has this root"))
    else:
        # choice: a generation that cannot be restored leads on from one that counts, but does not alone take away one
        # that can be restored. Otherwise a generation that was not written to its end would make the one before
        # unreadable, and there would be nothing to report.
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
        kept = [tuple(x) for x in meant.catalog.extents[:-1]]             # extents of generations before
        x = meant
        while x.before in found and found[x.before].generation < x.generation:
            x = found[x.before]
            if layout_extent(x.first.pg, x.first.layout) in kept and (x.root or x.fault.cls == "invalid"):
                self.generations.append(x)
        if meant.whole and meant.whole not in self.generations:
            self.generations.append(meant.whole)
        # copies: for each piece of the catalog's extents, the headers that were found
        extents, copies = [tuple(x) for x in self.catalog.extents], {}
        for head in sorted(notes.heads):
            if head.extent in extents[:-1] or head.E == meant.first.E:
                copies.setdefault((head.extent, head.t), []).append(head)
        # moves: (place of a piece, how far the piece has moved), by place
        self.moves = sorted((x[0].pos - x[0].shift, 0 if any(not y.shift for y in x) else x[0].shift) for x in copies.values())
        # needed: its own pieces, and those of the whole generation that it differs from
        self.needed = [(x.first, [p for p in pieces if p.E == x.first.E]) for x in (meant, meant.whole) if x]
        self.newer = max((x.generation for x in found.values() if x.generation > self.catalog.generation and not x.root), default=None)
        # recovery: the m·G shards of each group, None for an erasure
        # idle: for each group, the sets whose recovery shards serve nothing (§17.7)
        self.recovery, self.displaced = [], 0
        self.idle = []
        named = {p for x in self.catalog.entries for p in places_of(self.catalog, x)}
        for group in self.catalog.groups:
            k, m, G, _, first, position, digest_at, *_ = group
            extent = self.catalog.extents[group.extent]
            gone = {group.set_of(p) for p in range(k * G) if self.catalog.digests[digest_at + p] != NOTHING}
            self.idle.append(gone - {group.set_of(p) for p in range(k * G) if position + p in named})
            self.recovery.append([self.find(extent, first + x, self.catalog.digests[digest_at + k * G + x], x % G in self.idle[-1]) for x in range(m * G)])

    def find(self, extent, b, wanted, is_idle):
        """§17.5: recovery shard b of an extent, at its place, or moved as far as a nearest piece before or behind"""
        place, block = extent[0] + block_place(b, extent, self.catalog.block), self.catalog.block
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
        """Tells whether the sidecar is as it was written (choice: anything behind the last extent is wrong, even a
        generation that is not meant)"""
        intact, count = self.count()
        end = self.catalog.extents[-1][0] + extent_size(self.catalog.extents[-1], self.catalog.block)
        return intact == count and not self.displaced and len(self.data) == end and all(
            len({p.t for p in mine if not p.shift}) == layout_extent(first.pg, first.layout)[2] for first, mine in self.needed)
