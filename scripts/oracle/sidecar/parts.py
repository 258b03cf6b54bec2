"""§17.1, §17.2, §17.5: digests, entries as bytes, and places in the file."""
import os

from ..basics import BLAKE3, EXIT, ceil_div
from ..hashes import (
    B3_IV, CHUNK_END, CHUNK_START, PARENT, b3_compress, blake3_package, block_lanes, digest, digests, lanes_to_hashes,
    own_blake3,
)
from ..stream.packets import MASK
from ..stream.rows import Draws

SIDECAR = 3                                             # §4 form
MAGIC_P = bytes.fromhex("89666563500D0A1A")             # §17.4 piece
FILE, FOLDER, SYMLINK, HARDLINK = range(4)              # §17.2 kinds
EXECUTABLE, WITH_SHA256, WITH_ZEROS = 16, 32, 64        # §17.2 flags of a kind
KINDS = tuple(range(0, 128, 16)) + (FOLDER, SYMLINK, HARDLINK)
MOST_ZEROS = 1 << 46                                    # §17.2
MARKS, EXCLUSION, OMITTED, POLICY, STACKS = 1, 2, 3, 4, 5     # §17.3 parts
CACHES = 1                                              # §17.3 flag of part 2
ANNOUNCED = 1                                           # §17.3 flag of part 4
ONCE, CHANGES, STAYS, GOES, OUT, BUSY = 1, 2, 4, 8, 16, 32      # §17.3 words of a rule
WORDS = (ONCE, CHANGES, STAYS, GOES, OUT, BUSY, ONCE + STAYS, ONCE + GOES, CHANGES + STAYS, CHANGES + GOES)
HEADER, LAYOUT = 128, 96                                # §17.4
KEY = b"fec/1 sidecar: catalog".ljust(32)               # §17.2
NOTHING, GONE = bytes(16), b"\xff" * 16                 # §17.1: the digests of nothing and of bytes that are lost
LAST_PACKED = 16                                        # §17.8
ANCHORED = 65536                                        # §17.2: the offsets of blocks that have an anchor
DRAWS = [Draws(b).draw() for b in range(256)]      # §17.2: G(b)


def common(a, b):
    """The length of the common beginning of two paths."""
    return len(os.path.commonprefix([a, b]))


def chaining_values(pieces, offsets):
    """The chaining values of BLAKE3's subtrees over pieces (all of one size: 1024 bytes times a power of two) at these
    offsets of their files; never as a root."""
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
    """The digests of the first whole blocks of a file."""
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
    """The anchors of a file that is longer than a block: of its whole blocks, at the offsets that have an anchor."""
    return [anchor(content[o:o + block]) for o in range(0, len(content) // block * block, max(block, ANCHORED))] if len(content) > block else []


def varint(x):
    out = bytearray()
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    return bytes(out) + bytes([x])


def part(kind, data):
    """§17.3: a part behind the base"""
    return bytes([kind]) + varint(len(data)) + data


def texts(*items):
    return b"".join(varint(len(x)) + x for x in items)


def step(d):
    return varint(2 * d if d >= 0 else -2 * d - 1)


def file_fields(size, content, runs=None, tail=None, sha256=b""):
    """The fields of a file's entry, with the digest of `content`. runs: (step, length) of each, or None; with one whose
    step is None, which is of zeros, they are those of flag 64. tail: a step, or None."""
    out = varint(size) + digest(BLAKE3, content) + sha256
    if runs is not None and any(d is None for d, _ in runs):
        out += varint(len(runs)) + b"".join(varint(2 * n + 1) if d is None else varint(2 * n) + step(d) for d, n in runs)
    elif runs is not None:
        out += varint(len(runs)) + b"".join(step(d) + varint(n) for d, n in runs)
    return out + (step(tail) if tail is not None else b"")


class Rec:
    """An entry as it is written; shared: the shared length that it states in place of the longest one (§17.8)"""

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


def piece_place(t, extent, block):
    """The place of piece t, counted from the start of the extent; extent: (start, blocks, pieces, bytes)"""
    _, B, N, q = extent
    return t * B // (N - 1) * block + t * q


def block_place(b, extent, block):
    """The place of block b, counted from the start of the extent. Before the block stand the pieces t with
    ⌊t·B / (N − 1)⌋ ≤ b; for b < B their number is ⌈(b + 1)·(N − 1) / B⌉."""
    _, B, N, q = extent
    return b * block + q * ceil_div((b + 1) * (N - 1), B)


def extent_size(extent, block):
    return extent[1] * block + extent[2] * extent[3]


EXITS = dict(EXIT, **{"wrong-root": 5})
