"""§9: reading containers."""
import operator
import struct
from collections import namedtuple

from ..basics import CONTAINER, MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_X, WORK, Fault, align, check_version, raise_worst
from ..hashes import crc_is_right, digest
from .geometry import LAST, check_geometry, check_kind, group_of, pack, unpack
from .meta import META_LIMIT, check_meta
from .sets import check_seal, compare_digests, restore_group
from .shard_files import annex_size
from .trees import chain_roots, follow_proof, group_root, proof_size
from .writer import META_COPY, annex, copy_places, has_seal

INDEXES_KEPT, INDEX_BYTES_KEPT, FRAMES_KEPT = 64, 32 << 20, 64     # §12, the column of fec
Record = namedtuple("Record", "pos end pg gr s i before body sr O")
Index = namedtuple("Index", "pos start P R M X grs meta")
MetaFrame = namedtuple("MetaFrame", "pos end M meta")


class Scan:
    """§9.1"""

    looks_before = True                             # at bodies in front of an XH: not in a pipe (§9.3)

    def __init__(self, data, notes, root=None):
        self.data, self.notes, self.root = data, notes, root
        self.records, self.indexes, self.frames, self.faults, self.annexes = [], [], [], [], []
        self.bad_metas = set()                      # M of meta that breaks a rule of §7
        self.has_other_root = False                 # a last group has another root than the given one
        self.sum = self.e = pos = annex_end = 0
        readers = {MAGIC_R: self.record, MAGIC_M: self.meta_frame, MAGIC_X: self.index, MAGIC_A: self.annex}
        while True:
            pos = data.find(MAGIC_R[:4], pos)
            if pos < 0:
                break
            reader = readers.get(data[pos:pos + 8])
            if reader is None:
                pos += 1
                continue
            end, self.hashed = None, []
            try:
                if reader != self.annex:
                    check_version(data, pos)
                    end = reader(pos)
                elif pos >= annex_end:
                    annex_end = self.annex(pos)
            except Fault as fault:
                self.faults.append(fault)
            if end is None:
                self.sum += sum(count for count, _ in self.hashed)
                self.e = max([self.e] + [x for _, x in self.hashed])
                end = max(pos + 8, self.e) if self.sum > 4 * self.e + WORK else pos + 8
            pos = end
        notes.faults += self.faults

    def crc(self, pos, end):
        """Tells whether the CRC of the header at pos, computed up to `end`, is right."""
        if end > len(self.data):
            return False
        self.hashed.append((end - pos - 12, end))
        right = crc_is_right(self.data[pos:end])
        self.notes.right = self.notes.right or right
        return right

    def record(self, pos):
        data = self.data
        if pos + 128 > len(data):
            return None
        pg = unpack(data[pos + 32:pos + 64])
        size = proof_size(pg)
        start = pos + 128 + align(size, 64)
        if not self.crc(pos, start):
            return None
        if any(data[pos + 12:pos + 16]) or any(data[pos + 24:pos + 32]) or any(data[pos + 128 + size:start]):
            raise Fault("damaged", "§9: zero bytes of a record")
        check_geometry(pg, CONTAINER, False)
        s, i = struct.unpack_from("<II", data, pos + 16)
        if s >= pg.G or i >= pg.k + pg.m:
            raise Fault("invalid", "§9: set ≥ G or shard index ≥ n")
        gr, before, end = data[pos + 64:pos + 96], data[pos + 96:pos + 128], start + pg.L
        if end > len(data):
            raise Fault("damaged", "§9: the body is cut short")
        body = data[start:end]
        self.hashed.append((pg.L, end))
        X, sr, O = follow_proof(pg, digest(pg.hash, body), s, i, data[pos + 128:pos + 128 + size])
        if group_root(pg.hash, pg, X, before) != gr:
            raise Fault("damaged", "§9: the record does not lead to its GR")
        self.records.append(Record(pos, end, pg, gr, s, i, before, body, sr, O))
        return end if self.root in (None, gr) else None

    def meta_frame(self, pos):
        data = self.data
        if pos + 128 > len(data):
            return None
        size, = struct.unpack_from("<I", data, pos + 16)
        wrong = not 1 <= size <= META_LIMIT
        end = pos + 128 + (0 if wrong else align(size, 64))
        if not self.crc(pos, end):
            return None
        head, meta = data[pos:pos + 128], data[pos + 128:pos + 128 + size]
        if any(head[12:16]) or any(head[20:32]) or any(head[36:64]) or any(head[96:]) or not wrong and any(data[pos + 128 + size:end]):
            raise Fault("damaged", "§9: zero bytes of a meta frame")
        check_kind(head[33], head[34], head[35], CONTAINER, True)
        if wrong:
            raise Fault("invalid", "§9: length of the meta")
        self.hashed.append((size, end))
        M = head[64:96]
        if M != digest(head[33], meta):
            raise Fault("damaged", "§9: M is not the hash of the meta")
        self.check_meta(M, meta)
        kept = {f.M for f in self.frames}
        if len(kept | {M}) > FRAMES_KEPT:
            named = {r.before for r in self.records if r.pg.nr == 0}
            unnamed = next((f.M for f in self.frames if M in named and f.M not in named), None)
            if unnamed is None:
                return end
            self.frames = [f for f in self.frames if f.M != unnamed]
        self.frames.append(MetaFrame(pos, end, M, meta))
        return end

    def index(self, pos):
        data = self.data
        if not self.crc(pos, pos + 128):
            return None
        if any(data[pos + 12:pos + 16]) or any(data[pos + 28:pos + 32]):
            raise Fault("damaged", "§9: zero bytes of an index header")
        P, R, M = unpack(data[pos + 32:pos + 64]), data[pos + 64:pos + 96], data[pos + 96:pos + 128]
        check_geometry(P, CONTAINER, True)
        size, meta_size = struct.unpack_from("<QI", data, pos + 16)
        if meta_size > META_LIMIT:
            raise Fault("invalid", "§9: meta length > 65,536")
        if size != align(32 * P.nr + meta_size, 64):
            raise Fault("damaged", "§9: index body length")
        for start in (pos + 128, pos - size):              # the body behind the header, or the body before it
            if start < pos and not self.looks_before or start < 0 or start + size > len(data):
                continue
            if start < pos and self.sum + sum(x for x, _ in self.hashed) + 4 * size > 4 * (pos + 128) + WORK:
                continue
            body = data[start:start + size]
            self.hashed.append((4 * size, start + size))
            meta = body[32 * P.nr:32 * P.nr + meta_size]
            X = [body[32 * g:32 * g + 32] for g in range(P.nr)]
            if any(body[32 * P.nr + meta_size:]) or M != digest(P.hash, meta):
                continue
            grs = chain_roots(P, X, M)
            if grs[-1] != R:
                continue
            self.check_meta(M, meta)
            self.keep_index(Index(pos, start, P, R, M, X, grs, meta))
            return start + size if start > pos else None
        raise Fault("damaged", "§9: no good index body")

    def check_meta(self, M, meta):
        try:
            check_meta(meta)
        except Fault:
            self.bad_metas.add(M)
            raise

    def keep_index(self, index):
        """§12: keeps an index, as far as the limits allow"""
        if self.root is None:
            others = {x.R: x for x in self.indexes if x.R != index.R}.values()
            if len(others) >= INDEXES_KEPT or sum(32 * x.P.nr + len(x.meta) for x in others) + 32 * index.P.nr + len(index.meta) > INDEX_BYTES_KEPT:
                return
        self.indexes.append(index)

    def annex(self, pos):
        size, count = annex_size(self.data, pos)
        self.hashed.append((count, pos + 32 + count))
        if size:
            self.annexes.append((pos, pos + size))
        return pos + (size or 0)


class RecordGroup:
    """§9.2: the records with one GR."""

    def __init__(self, record):
        self.pg, self.gr, self.before, self.sets, self.roots = record.pg, record.gr, record.before, {}, {}

    def add(self, record):
        self.sets.setdefault(record.s, {})[record.i] = record.body
        self.roots[record.s] = (record.sr, record.O)


class Chain:
    def __init__(self, groups, N, root, frames, index=None):
        """groups: {g: RecordGroup} of the groups that have records; N and root are None when the chain is cut."""
        self.groups, self.N, self.root, self.index, self.meta = groups, N, root, index, None
        if index:
            self.meta = index.meta
        elif 0 in groups:
            h, M = groups[0].pg.hash, groups[0].before
            self.meta = next((f.meta for f in frames if f.M == M), b"" if M == digest(h, b"") else None)

    @property
    def flags(self):
        return next(iter(self.groups.values())).pg.flags if self.groups else self.index.P.flags

    def restore(self, strict=False, span=None):
        check_seal(self)
        faults, pieces, N = [], [], self.N or 0
        if self.N is None:
            faults.append(Fault("damaged", "the chain is cut: its end is not known"))
        if len(self.groups) < N and not span:
            faults.append(Fault("damaged", "%d of %d groups are gone" % (N - len(self.groups), N)))
        C = max((x.pg.k * x.pg.G * x.pg.L for x in self.groups.values() if not x.pg.flags & LAST), default=0)
        for g, group in sorted(self.groups.items()):
            part = (max(0, span[0] - g * C), min(group.pg.payload, span[1] - g * C)) if span else None
            try:
                if not part or part[0] < part[1]:
                    pieces.append(restore_group(group.pg, group.sets, group.roots, strict, part))
            except Fault as fault:
                faults.append(fault)
        payload = b"".join(pieces)
        if span and len(payload) < span[1] - span[0]:
            faults.append(Fault("damaged", "a part of the range is gone, or behind the end"))
        raise_worst(faults)
        if strict and self.meta is not None and not span:
            compare_digests(self.meta, payload)
        return payload

    def clean(self, scan):
        """Tells whether every byte is as it was written."""
        if not self.index:
            return False
        P, meta, data = self.index.P, self.index.meta, scan.data
        frames, records = {f.pos: f for f in scan.frames}, {r.pos: r for r in scan.records}
        annexes, at = dict(scan.annexes), 0
        if meta:
            if 0 not in frames or frames[0].meta != meta or data[32:36] != pack(P)[:4]:
                return False
            at = frames[0].end
        # §9: all copies are there, or none was written
        whole = annex(META_COPY, data[:at])
        own = {start for start, _ in scan.annexes if start < self.index.pos and data[start:start + len(whole)] == whole} if has_seal(P.flags, meta) else ()
        places = copy_places(P.k, P.m) if own else []
        for g in range(P.nr):
            pg = group_of(P, g)
            for i in range(pg.k + pg.m):
                if g == 0 and i in places:
                    if at not in own:
                        return False
                    at = annexes[at]
                for s in range(pg.G):
                    r = records.get(at)
                    if r is None or (r.gr, r.i, r.s) != (self.index.grs[g], i, s):
                        return False
                    at = r.end
        head = data[self.index.pos:self.index.pos + 128]
        body = data[self.index.start:self.index.start + align(32 * P.nr + len(meta), 64)]
        tail = head + body + head + body + head
        if data[at:at + len(tail)] != tail:
            return False
        at += len(tail)
        while at in annexes:
            at = annexes[at]
        return at == len(data)


def check_follows(a, b):
    """§9.2: b names a as the group before; raises a Fault if b does not follow a"""
    kind = operator.itemgetter(0, 1, 2, 4, 5)
    if a.nr != b.nr - 1 or a.flags & LAST or kind(a) != kind(b) or (a.flags ^ b.flags) & 240:
        raise Fault("invalid", "§9.2: group %d does not fit the one before it" % b.nr)
    P = a._replace(nr=b.nr + 1, payload=b.nr * a.payload + b.payload)
    if b.flags & LAST:
        check_geometry(P, CONTAINER, True)
    if (b.L, b.G) != (a.L, a.G) if not b.flags & LAST else group_of(P, b.nr) != b:
        raise Fault("invalid", "§9.2: L or G of group %d is not what the group before it implies" % b.nr)


def find_chains(scan):
    """§9.2: all chains of a container; the notes get each group that does not follow the group it names."""
    groups = {}
    for record in scan.records:
        if scan.root is not None and record.pg.flags & LAST and record.gr != scan.root:
            # This record does not lead to the root, so the reader acts as if it were not there.
            scan.has_other_root = True
            continue
        if record.gr not in groups:
            groups[record.gr] = RecordGroup(record)
        groups[record.gr].add(record)
    before, followed = {}, set()
    for group in groups.values():
        if group.pg.nr and group.before in groups:
            try:
                check_follows(groups[group.before].pg, group.pg)
                before[group.gr] = groups[group.before]
                followed.add(group.before)
            except Fault as fault:
                scan.notes.faults.append(fault)
    chains, listed = {}, set()
    for index in scan.indexes:
        if index.R not in chains:
            chains[index.R] = Chain({g: groups[gr] for g, gr in enumerate(index.grs) if gr in groups}, index.P.nr, index.R, scan.frames, index)
            listed.update(index.grs)
    for gr, last in groups.items():
        if gr in followed or gr in listed:
            continue
        members, at = {last.pg.nr: last}, last
        while at.gr in before:
            at = before[at.gr]
            members[at.pg.nr] = at
        if 0 in members and members[0].before in scan.bad_metas:
            continue                                         # §9.2: its class was noted
        ends = last.pg.flags & LAST
        chains[gr] = Chain(members, last.pg.nr + 1 if ends else None, gr if ends else None, scan.frames)
    return list(chains.values())
