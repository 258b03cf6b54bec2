"""§8, §9.4: reading shard files and annexes."""
import struct
from collections import namedtuple

from ..basics import MAGIC_A, MAGIC_S, SHARDS, Fault, align, ceil_div, check_version
from ..hashes import crc32c, crc_is_right, digest
from .geometry import check_geometry, unpack
from .meta import META_LIMIT, check_meta
from .sets import check_seal, compare_digests, restore_group
from .trees import follow_proof, group_root, proof_size


def annex_size(data, pos):
    """The size of the whole annex at pos, or None; and the number of bytes whose CRC was computed."""
    if data[pos:pos + 8] != MAGIC_A or pos + 64 > len(data):
        return None, 0
    head = data[pos:pos + 32]
    crc, _, size, zero = struct.unpack("<IIQQ", head[8:])
    if zero or size > 1 << 20 or data[pos + 32 + size:pos + 64 + size] != head:
        return None, 0
    return size + 64 if crc32c(head[12:] + data[pos + 32:pos + 32 + size]) == crc else None, size + 20


def take_off_annexes(data):
    """§9.4: as long as one stands at the end whose two AH are equal"""
    while data[-32:-24] == MAGIC_A:
        start = len(data) - 64 - struct.unpack("<Q", data[-16:-8])[0]
        if start < 0 or annex_size(data, start) == (None, 0):
            break
        data = data[:start]
    return data


def annexes_are_whole(data, pos):
    while pos < len(data):
        size = annex_size(data, pos)[0]
        if size is None:
            return False
        pos += size
    return True


Header = namedtuple("Header", "i pg R X M meta_len")


def read_header(data, notes):
    check_version(data, 0)
    if len(data) < 192 or not crc_is_right(data):
        raise Fault("damaged", "the header's CRC is wrong")
    notes.right = True
    if any(data[12:16]) or any(data[160:192]):
        raise Fault("damaged", "the header's zero bytes are not zero")
    pg = unpack(data[32:64])
    check_geometry(pg, SHARDS, False)
    i, meta_len, size = struct.unpack_from("<IIQ", data, 16)
    if i >= pg.k + pg.m:
        raise Fault("invalid", "§8: shard index ≥ n")
    if size != pg.G * pg.L:
        raise Fault("damaged", "§8: body length")
    if meta_len > META_LIMIT:
        raise Fault("invalid", "§8: meta length > 65,536")
    R, X, M = data[64:96], data[96:128], data[128:160]
    if R != group_root(pg.hash, pg, X, M):
        raise Fault("damaged", "§8: R does not follow from X, Pg and M")
    return Header(i, pg, R, X, M, meta_len)


class ShardFile:
    """The contents of a file under one of its headers: valid = {s: bytes}, roots = {s: (SR, O)}, places = the places of
    the valid shards; meta is None if it is lost."""

    def __init__(self, header, data, whole, at=()):
        """data: the file without annexes; whole: with them; at: the places of the header."""
        pg, size, meta_size = header.pg, proof_size(header.pg), align(header.meta_len, 64)
        self.header, self.valid, self.roots, self.places = header, {}, {}, []
        a = 192 + meta_size                                                # proofs, body, proofs, meta, the end
        body = align(a + pg.G * size, 4096 if pg.G * pg.L >= 65536 else 64)
        b = body + pg.G * pg.L
        c = b + pg.G * size
        total = c + meta_size + 192
        # bases: the places where the file may begin, counted once from its first header and once from its last
        bases = list(dict.fromkeys(x if x == 0 else x + 192 - total for x in at))
        self.meta = b"" if header.M == digest(pg.hash, b"") else None
        good = []
        for base in bases:
            for start in (base + 192, base + c):
                copy = whole[start:start + meta_size] if start >= 0 else b""
                meta = copy[:header.meta_len]
                if len(copy) == meta_size and digest(pg.hash, meta) == header.M and not any(copy[header.meta_len:]):
                    self.meta = meta
                    good.append(start)
        if self.meta is not None:
            check_meta(self.meta)
        for base in bases:
            first = max(0, ceil_div(-body - base, pg.L))
            for s in range(first, min(pg.G, max(0, (len(whole) - body - base) // pg.L))):
                place = base + body + s * pg.L
                shard = whole[place:place + pg.L]
                d = None if s in self.valid else digest(pg.hash, shard)
                for start in [other + x + s * size for other in bases for x in (a, b)]:
                    if s in self.valid or start < 0 or start + size > len(whole):
                        continue
                    try:
                        X, sr, O = follow_proof(pg, d, s, header.i, whole[start:start + size])
                    except Fault:
                        continue
                    if X == header.X:
                        self.valid[s], self.roots[s] = shard, (sr, O)
                        self.places.append((place, place + pg.L))
        self.clean = len(self.valid) == pg.G and bases == [0] and len(data) == total and data[:192] == data[-192:] and len(good) == 2 \
            and not any(data[a + pg.G * size:body]) and data[a:a + pg.G * size] == data[b:c] and annexes_are_whole(whole, len(data))


def header_checks(data):
    """§9.3: tells whether magic and CRC are right"""
    return data[:8] == MAGIC_S and len(data) == 192 and crc_is_right(data)


def read_shard_file(data, notes):
    """(whether a header of the file checks, the ShardFiles of its headers)"""
    whole, data = data, take_off_annexes(data)
    found, is_one = {}, False
    for at in dict.fromkeys((0, max(0, len(data) - 192))):
        head = data[at:at + 192]
        is_one = is_one or header_checks(head)
        if head[:8] == MAGIC_S:
            try:
                found.setdefault(read_header(head, notes), []).append(at)
            except Fault as fault:
                notes.faults.append(fault)
    result = []
    for header, places in found.items():
        try:
            result.append(ShardFile(header, data, whole, at=places))
        except Fault as fault:                                   # of the meta
            notes.faults.append(fault)
    return is_one, result


class ShardStream:
    def __init__(self, header):
        self.root, self.pg, self.files = header.R, header.pg, []

    def restore(self, strict=False, span=None):
        check_seal(self)
        sets, roots = {}, {}
        for f in self.files:
            for s, shard in f.valid.items():
                sets.setdefault(s, {})[f.header.i] = shard
                roots[s] = f.roots[s]
        payload = restore_group(self.pg, sets, roots, strict, span)
        if strict and self.meta is not None and not span:
            compare_digests(self.meta, payload)
        return payload

    @property
    def meta(self):
        return next((f.meta for f in self.files if f.meta is not None), None)

    @property
    def flags(self):
        return self.pg.flags

    def clean(self, scan):
        return all(f.clean for f in self.files) and len({f.header.i for f in self.files}) == self.pg.k + self.pg.m
