#!/usr/bin/env python3
"""The second implementation of the formats of fec, written from docs/FORMAT.md alone ("§" refers to it).

    oracle.py selftest
    oracle.py encode --form shards|container -k K -m M [--hash blake3|sha256] [--set-size N] [--group-size G] [--name NAME] -o OUT FILE
    oracle.py decode [--root HEX] -o OUT PATH…       a folder of shard files, shard files, or one container
    oracle.py verify [--root HEX] PATH…
    oracle.py golden DIR                             writes the test vectors (the same bytes on each run)
    oracle.py check DIR                              reads them all again

Exit codes: 0 ok, 1 verify: damaged but restorable, 2 usage or ambiguous, 3 cannot be restored, 4 I/O, 5 invalid or wrong root, 6 refused.
Needs Python 3.9 and nothing else; the package `blake3` is used when it is there. It is plain and slow on purpose.
"""
import argparse
import hashlib
import json
import os
import shutil
import struct
import sys
from collections import namedtuple

try:
    import blake3 as blake3_package
except ImportError:
    blake3_package = None

SHARDS, CONTAINER = 1, 2                    # §4 form
BLAKE3, SHA256 = 1, 2                       # §4 hash
MAGIC_S = bytes.fromhex("89666563530D0A1A")  # §8 shard file header
MAGIC_R = bytes.fromhex("89666563520D0A1A")  # §9 record
MAGIC_X = bytes.fromhex("89666563580D0A1A")  # §9 index
ZERO32 = bytes(32)

# §11, worst first for "several causes"; the exit codes of decode.
EXIT = {None: 0, "damaged": 3, "refused": 6, "invalid": 5, "wrong-root": 5, "ambiguous": 2}
WORST = ["refused", "invalid", "wrong-root", "damaged"]

# Places where FORMAT.md leaves the class open: the reading chosen here (see the notes to each vector in errors.json).
CLASS_FORM_MISPLACED = "refused"   # a known form in the wrong kind of file (rule 1 narrowed by "form MUST be …")
CLASS_META_LENGTH = "invalid"      # meta length > 350 (§7: "anything else that is wrong")
CLASS_ZERO_BYTES = "damaged"       # zero bytes of any header, zeros after the meta, the padding of a proof
CLASS_HEAD_NOT_ZERO = "damaged"    # a record of group 0 whose head is not zero
CLASS_RECORD_RANGE = "invalid"     # s ≥ G or i ≥ n in a record (as i ≥ n in a shard file)
CLASS_INDEX_EQUATION = "damaged"   # index body length, zeros, M, R (as in a shard file's header)


class Fault(Exception):
    """An object that is not accepted: cls is a class of §11."""

    def __init__(self, cls, text):
        super().__init__(text)
        self.cls, self.text = cls, text


def ceil_div(a, b):
    return -(-a // b)


def align(x, to):
    return ceil_div(x, to) * to


def clog2(x):
    return max(0, x - 1).bit_length()


# ---------------------------------------------------------------- hashes
# Both compression functions work on many inputs at once: a "lane int" holds one 32-bit word of each input in the low half of 64 bits.

B3_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)  # SHA-256's as well
B3_PERM = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
B3_STEPS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
CHUNK_START, CHUNK_END, PARENT, ROOT_FLAG, KEYED = 1, 2, 4, 8, 16


def lanes(values):
    return int.from_bytes(struct.pack("<%dQ" % len(values), *values), "little")


def block_lanes(blocks, order):
    words = struct.unpack("%s%dI" % (order, 16 * len(blocks)), b"".join(blocks))
    return [lanes(words[w::16]) for w in range(16)]


def lanes_to_hashes(state, count, order):
    columns = [struct.unpack("<%dQ" % count, word.to_bytes(8 * count, "little")) for word in state]
    return [struct.pack(order + "8I", *row) for row in zip(*columns)]


def b3_compress(cv, m, counters, length, flags, count):
    one = int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little")
    mask = one * 0xFFFFFFFF
    v = cv + [one * x for x in B3_IV[:4]]
    v += [lanes([c & 0xFFFFFFFF for c in counters]), lanes([c >> 32 for c in counters]), one * length, one * flags]
    for _ in range(7):
        for step, (a, b, c, d) in enumerate(B3_STEPS):
            for x, r1, r2 in ((m[2 * step], 16, 12), (m[2 * step + 1], 8, 7)):
                v[a] = (v[a] + v[b] + x) & mask
                y = v[d] ^ v[a]
                v[d] = (y >> r1 | y << 32 - r1) & mask
                v[c] = (v[c] + v[d]) & mask
                y = v[b] ^ v[c]
                v[b] = (y >> r2 | y << 32 - r2) & mask
        m = [m[p] for p in B3_PERM]
    return [v[i] ^ v[i + 8] for i in range(8)]


def own_blake3(inputs, key=None):
    """BLAKE3 of several inputs of one length (keyed when a key is given)."""
    words = struct.unpack("<8I", key) if key else B3_IV
    base = KEYED if key else 0
    size = len(inputs[0])

    def start(count):
        return [int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little") * w for w in words]

    def chunk_values(chunks, counters, root):
        cv, blocks = start(len(chunks)), max(1, ceil_div(len(chunks[0]), 64))
        for b in range(blocks):
            part = [c[64 * b:64 * b + 64] for c in chunks]
            flags = base | (CHUNK_START if b == 0 else 0) | ((CHUNK_END | root) if b == blocks - 1 else 0)
            cv = b3_compress(cv, block_lanes([p.ljust(64, b"\0") for p in part], "<"), counters, len(part[0]), flags, len(part))
        return lanes_to_hashes(cv, len(chunks), "<")

    full = (size - 1) // 1024 if size else 0       # chunks before the last one
    levels = [[] for _ in inputs]
    if full:
        values = chunk_values([x[1024 * c:1024 * c + 1024] for x in inputs for c in range(full)], list(range(full)) * len(inputs), 0)
        levels = [values[full * j:full * j + full] for j in range(len(inputs))]
    for level, value in zip(levels, chunk_values([x[1024 * full:] for x in inputs], [full] * len(inputs), 0 if full else ROOT_FLAG)):
        level.append(value)
    while len(levels[0]) > 1:
        blocks = [level[j] + level[j + 1] for level in levels for j in range(0, len(level) - 1, 2)]
        flags = base | PARENT | (ROOT_FLAG if len(levels[0]) == 2 else 0)
        cv = b3_compress(start(len(blocks)), block_lanes(blocks, "<"), [0] * len(blocks), 64, flags, len(blocks))
        values, pairs = lanes_to_hashes(cv, len(blocks), "<"), len(levels[0]) // 2
        levels = [values[pairs * j:pairs * j + pairs] + level[2 * pairs:] for j, level in enumerate(levels)]
    return [level[0] for level in levels]


def primes(count):
    found = []
    n = 2
    while len(found) < count:
        if all(n % p for p in found):
            found.append(n)
        n += 1
    return found


def sha_constant(p):
    """The first 32 bits of the fraction of the cube root of p."""
    low, high = 0, 1 << 40
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if mid ** 3 <= p << 96 else (low, mid)
    return low & 0xFFFFFFFF


SHA_K = [sha_constant(p) for p in primes(64)]


def sha_compress(start, blocks):
    """One compression of SHA-256 from eight start words for each of several blocks."""
    count = len(blocks)
    one = int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little")
    mask = one * 0xFFFFFFFF

    def rotate(x, r):
        return (x >> r | x << 32 - r) & mask

    w = block_lanes(blocks, ">")
    for t in range(16, 64):
        x, y = w[t - 15], w[t - 2]
        s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >> 3) & one * 0x1FFFFFFF
        s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >> 10) & one * 0x003FFFFF
        w.append((w[t - 16] + s0 + w[t - 7] + s1) & mask)
    first = [one * x for x in start]
    a, b, c, d, e, f, g, h = first
    for t in range(64):
        t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (e & f ^ (e ^ mask) & g) + one * SHA_K[t] + w[t]
        t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (t1 + t2) & mask, a, b, c, (d + t1) & mask, e, f, g
    return lanes_to_hashes([(x + y) & mask for x, y in zip(first, (a, b, c, d, e, f, g, h))], count, ">")


def digests(h, inputs):
    """§1: the plain hash of each of several inputs of one length."""
    if h == SHA256:
        return [hashlib.sha256(x).digest() for x in inputs]
    if blake3_package:
        return [blake3_package.blake3(x).digest() for x in inputs]
    return own_blake3(inputs)


def digest(h, data):
    return digests(h, [data])[0]


# §3
TAGS = {name: text.encode().ljust(32) for name, text in (
    ("LEAF", "fec/1 leaf: digest, set, index"), ("NODE", "fec/1 node: left, right"), ("GROUP", "fec/1 group: set tree, geometry"),
    ("PARAM", "fec/1 param: geometry, meta"), ("ROOT", "fec/1 root: group tree, param"))}
node_memo = {}


def nodes(h, tag, inputs):
    """N(tag, x) for several x; remembered, because a reader comes to the same upper nodes again and again."""
    missing = [x for x in dict.fromkeys(inputs) if (h, tag, x) not in node_memo]
    if missing:
        if len(node_memo) > 300000:
            node_memo.clear()
            missing = list(dict.fromkeys(inputs))
        if h == SHA256:
            values = sha_compress([x ^ y for x, y in zip(B3_IV, struct.unpack(">8I", TAGS[tag]))], missing)
        elif blake3_package:
            values = [blake3_package.blake3(x, key=TAGS[tag]).digest() for x in missing]
        else:
            values = own_blake3(missing, TAGS[tag])
        node_memo.update(((h, tag, x), y) for x, y in zip(missing, values))
    return [node_memo[h, tag, x] for x in inputs]


def node(h, tag, x):
    return nodes(h, tag, [x])[0]


def crc_table():
    table = []
    for x in range(256):
        for _ in range(8):
            x = x >> 1 ^ (0x82F63B78 if x & 1 else 0)
        table.append(x)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


# ---------------------------------------------------------------- §2 the code

GF_EXP, GF_LOG = [0] * 510, [0] * 256


def gf_tables():
    x = 1
    for e in range(255):
        GF_EXP[e] = GF_EXP[e + 255] = x
        GF_LOG[x] = e
        x = x << 1 ^ (0x11D if x & 128 else 0)


gf_tables()
mul_tables = {}


def mul_table(c):
    if c not in mul_tables:
        mul_tables[c] = bytes([0] + [GF_EXP[GF_LOG[c] + GF_LOG[x]] for x in range(1, 256)])
    return mul_tables[c]


def evaluate(points, rows, targets):
    """Given f at the points (rows of bytes), f at each target that is not one of the points: Lagrange."""
    size = len(rows[0])
    # log of the product of (x − p) over all other points p
    weights = [sum(GF_LOG[x ^ p] for p in points if p != x) for x in points]
    result = []
    for t in targets:
        whole = sum(GF_LOG[t ^ p] for p in points)
        total = 0
        for x, weight, row in zip(points, weights, rows):
            c = GF_EXP[(whole - GF_LOG[t ^ x] - weight) % 255]
            total ^= int.from_bytes(row if c == 1 else row.translate(mul_table(c)), "little")
        result.append(total.to_bytes(size, "little"))
    return result


# ---------------------------------------------------------------- §4 geometry

Geo = namedtuple("Geo", "version hash form flags k m L G payload nr")   # nr: N in P, g in Pg


def pack(geo):
    return struct.pack("<BBBBHHIIQQ", *geo)


def unpack(data):
    return Geo(*struct.unpack("<BBBBHHIIQQ", data))


def check_geometry(geo, form, is_p):
    """§4.1; form is the one this kind of file has; is_p tells P from Pg."""
    k, n, L, G, b = geo.k, geo.k + geo.m, geo.L, geo.G, geo.payload
    if geo.version != 1 or geo.hash not in (1, 2) or geo.form not in (1, 2) or geo.flags & (255 if is_p else 254):
        raise Fault("refused", "rule 1: version, hash, form or flags")
    if geo.form != form:
        raise Fault(CLASS_FORM_MISPLACED, "rule 1: this form does not belong into this kind of file")
    too_many = geo.nr > 1 << 20 if is_p else geo.nr >= 1 << 20
    if k == 0 or n > 256 or L > 1 << 26 or b >= 1 << 63 or too_many or G > (1 << 20 if form == SHARDS else 65536):
        raise Fault("refused", "rule 2: out of range")
    if form == CONTAINER and n * G * L > 50331648:
        raise Fault("refused", "rule 3: the group is larger than 48 MiB")
    last = bool(geo.flags & 1)
    if L == 0 or L % 64 or G == 0 or is_p and geo.nr == 0:
        raise Fault("invalid", "rule 4: L, G or N")
    if form == SHARDS and (geo.nr != 1 if is_p else geo.nr != 0 or not last):
        raise Fault("invalid", "rule 4: shard files have one group")
    if geo.nr == 1 if is_p else geo.nr == 0 and last:
        if L != 64 * max(1, ceil_div(b, 64 * k * G)) or G > max(1, ceil_div(b, 64 * k)):
            raise Fault("invalid", "rule 5: L or G is not canonical")
    elif is_p:
        if not (geo.nr - 1) * k * G * L < b <= geo.nr * k * G * L:
            raise Fault("invalid", "rule 6: payload and number of groups do not agree")
    elif not last:
        if b != k * G * L:
            raise Fault("invalid", "rule 7: a group before the last is not full")
    elif b == 0 or L != 64 * ceil_div(b, 64 * k * G) or G > ceil_div(b, 64 * k):
        raise Fault("invalid", "rule 8: L or G of the last group is not canonical")


def group_of(P, g):
    """§4.2: the Pg of group g."""
    if g < P.nr - 1:
        return P._replace(flags=0, payload=P.k * P.G * P.L, nr=g)
    if P.nr == 1:
        return P._replace(flags=1, nr=0)
    b = P.payload - (P.nr - 1) * P.k * P.G * P.L
    G = ceil_div(b, P.k * P.L)
    return P._replace(flags=1, payload=b, G=G, L=64 * ceil_div(b, 64 * P.k * G), nr=g)


def plan(form, h, k, m, B, set_size=None, group_size=None):
    """§4.3: P."""
    n = k + m
    if set_size is None:
        set_size = 1 << 22
        while set_size > 1 and n * 64 * ceil_div(set_size, 64 * k) > 1 << 24:
            set_size //= 2
    L0 = 64 * ceil_div(set_size, 64 * k)
    N = 1
    if form == CONTAINER:
        G0 = min(max(50331648 // (n * L0), 1), 65536, group_size or 65536)
        N = max(1, ceil_div(B, k * G0 * L0))
    if N == 1:
        G = max(1, ceil_div(B, k * L0))
        P = Geo(1, h, form, 0, k, m, 64 * max(1, ceil_div(B, 64 * k * G)), G, B, 1)
    else:
        P = Geo(1, h, form, 0, k, m, L0, G0, B, N)
    check_geometry(P, form, True)
    return P


# ---------------------------------------------------------------- §6 trees

def tree(h, hashes):
    """All levels, the hashes themselves first; the root is tree(…)[-1][0]."""
    levels = [list(hashes)]
    while len(levels[-1]) > 1:
        low = levels[-1]
        up = nodes(h, "NODE", [low[j] + low[j + 1] for j in range(0, len(low) - 1, 2)])
        levels.append(up + low[2 * len(up):])
    return levels


def tree_root(h, hashes):
    return tree(h, hashes)[-1][0]


def path(levels, pos):
    out = []
    for level in levels[:-1]:
        if pos ^ 1 < len(level):
            out.append(level[pos ^ 1])
        pos >>= 1
    return b"".join(out)


def follow(h, value, pos, count, field):
    """The root that a path leads to; the unused rest of its field must be zero."""
    used = 0
    while count > 1:
        if pos ^ 1 < count:
            other = field[used:used + 32]
            value = node(h, "NODE", other + value if pos & 1 else value + other)
            used += 32
        pos, count = pos >> 1, (count + 1) >> 1
    if any(field[used:]):
        raise Fault("damaged", "§6.1: the unused rest of a path is not zero")
    return value


def leaf_input(d, s, i):
    return d + struct.pack("<II", s, i) + bytes(24)


def proof_size(geo):
    return 32 * (clog2(geo.k + geo.m) + clog2(geo.G))


def group_root(pg, d, s, i, proof):
    """§6.1, §8, §9: (GR, SR) that digest d and the proof lead to."""
    cut = 32 * clog2(pg.k + pg.m)
    sr = follow(pg.hash, node(pg.hash, "LEAF", leaf_input(d, s, i)), i, pg.k + pg.m, proof[:cut])
    x = follow(pg.hash, sr, s, pg.G, proof[cut:])
    return node(pg.hash, "GROUP", x + pack(pg)), sr


def final_root(P, T, M):
    h = P.hash if P.hash in (1, 2) else SHA256      # (only a forger comes here with another hash)
    return node(h, "ROOT", T + node(h, "PARAM", pack(P) + M))


# ---------------------------------------------------------------- §7 meta

def entry(kind, data):
    return struct.pack("<BH", kind, len(data)) + data


def check_meta(meta):
    pos, before = 0, -1
    while pos < len(meta):
        if pos + 3 > len(meta):
            raise Fault("invalid", "§7: bytes left over")
        kind, size = struct.unpack_from("<BH", meta, pos)
        data = meta[pos + 3:pos + 3 + size]
        if len(data) < size:
            raise Fault("invalid", "§7: an entry is longer than the meta")
        if kind <= before:
            raise Fault("invalid", "§7: the types do not ascend")
        if kind % 2 == 0 and kind != 2:
            raise Fault("refused", "§7: unknown even type %d" % kind)
        if kind == 2 and (not 1 <= size <= 255 or b"/" in data or b"\0" in data or data in (b".", b"..")):
            raise Fault("invalid", "§7: not a file name")
        pos, before = pos + 3 + size, kind


# ---------------------------------------------------------------- the writer
# The hooks (alter, lie, rec, …) let the negative vectors be signed properly although they break a rule; the normal writer has none of them.

class Group:
    def __init__(self, geo, piece, alter=None, lie=None):
        """geo is what is built; alter may change the shards before they are hashed, lie what Pg says about them."""
        h, k, n, L, G = geo.hash, geo.k, geo.k + geo.m, geo.L, geo.G
        self.geo, self.pg = geo, geo._replace(**(lie or {}))
        piece = piece[:k * G * L].ljust(k * G * L, b"\0")                                # §5
        rows = [piece[i * G * L:(i + 1) * G * L] for i in range(k)]
        rows += evaluate(list(range(k)), rows, range(k, n))                              # §2; all sets of the group at once
        self.shards = [[row[s * L:(s + 1) * L] for s in range(G)] for row in rows]       # [i][s]
        if alter:
            alter(self.shards)
        found = digests(h, [x for row in self.shards for x in row])
        leaves = nodes(h, "LEAF", [leaf_input(found[i * G + s], s, i) for s in range(G) for i in range(n)])
        self.sets = [tree(h, leaves[s * n:s * n + n]) for s in range(G)]
        self.top = tree(h, [levels[-1][0] for levels in self.sets])
        self.gr = node(h, "GROUP", self.top[-1][0] + pack(self.pg))

    def proof(self, s, i):
        a, b = 32 * clog2(self.pg.k + self.pg.m), 32 * clog2(self.pg.G)
        return path(self.sets[s], i).ljust(a, b"\0")[:a] + path(self.top, s).ljust(b, b"\0")[:b]


def p_of(groups, lie=None):
    """P of these groups."""
    P = groups[0].pg._replace(flags=0, payload=sum(g.pg.payload for g in groups), nr=len(groups))
    return P._replace(**(lie or {}))


def put_crc(head, rest=b""):
    head[8:12] = struct.pack("<I", crc32c(bytes(head[12:]) + bytes(rest)))
    return bytes(head) + bytes(rest)


def write_shards(group, P, meta, hdr=None, prf=None, gap=None):
    """§8: the n files, and the root."""
    geo = group.geo
    T, M = group.gr, digest(geo.hash, meta)
    R = final_root(P, T, M)
    files = []
    for i in range(geo.k + geo.m):
        head = MAGIC_S + bytes(8) + struct.pack("<IIQ", i, 0, P.G * P.L) + pack(P) + R + T + M + struct.pack("<H", len(meta)) + meta
        head = bytearray(head[:512].ljust(512, b"\0"))
        if hdr:
            hdr(i, head)
        head = put_crc(head)
        proofs = [bytearray(group.proof(s, i)) for s in range(geo.G)]
        for s in range(geo.G):
            if prf:
                prf(s, i, proofs[s])
        proofs = b"".join(proofs)
        zeros = bytearray(-(512 + len(proofs)) % 4096)
        if gap:
            gap(zeros)
        files.append(head + proofs + bytes(zeros) + b"".join(group.shards[i]) + proofs + head)
    return files, R


def write_container(groups, P, meta=b"", rec=None, xh=None, idx=None, keep=None, index=True):
    """§9: the bytes, and the root."""
    h = groups[0].geo.hash
    out = []
    for g, group in enumerate(groups):
        head = tree_root(h, [x.gr for x in groups[:g]]) if g else ZERO32
        for i in range(group.geo.k + group.geo.m):
            for s in range(group.geo.G):
                header = bytearray(MAGIC_R + bytes(8) + struct.pack("<IIQ", s, i, 0) + pack(group.pg) + group.gr + head)
                proof = bytearray(group.proof(s, i))
                proof += bytes(-len(proof) % 64)
                if rec:
                    rec(g, s, i, header, proof)
                if keep is None or keep(g, s, i):
                    out.append(put_crc(header, proof) + group.shards[i][s])
    R, M = final_root(P, tree_root(h, [x.gr for x in groups]), digest(h, meta)), digest(h, meta)
    body = bytearray(b"".join(x.gr for x in groups) + meta)
    body += bytes(-len(body) % 64)
    if idx:
        idx(body)
    head = bytearray(MAGIC_X + bytes(8) + struct.pack("<QH", len(body), len(meta)) + bytes(6) + pack(P) + R + M)
    if xh:
        xh(head)
    head = put_crc(head)
    if index:
        out += [head, body, head, body, head]
    return b"".join(out), R


def encode(form, h, k, m, payload, set_size=None, group_size=None, name=b""):
    """(list of files, root)"""
    P = plan(form, h, k, m, len(payload), set_size, group_size)
    step = P.k * P.G * P.L
    groups = [Group(group_of(P, g), payload[g * step:(g + 1) * step]) for g in range(P.nr)]
    if form == SHARDS:
        return write_shards(groups[0], P, entry(2, name))
    data, root = write_container(groups, P)
    return [data], root


# ---------------------------------------------------------------- the reader: sets and groups (§10)

def restore_set(pg, have):
    """§10.2: from the valid shards {i: bytes} of a set all n, computed from k of them."""
    k, n = pg.k, pg.k + pg.m
    if len(have) < k:
        raise Fault("damaged", "a set has %d valid shards of the %d it needs" % (len(have), k))
    points = sorted(have)[:k]
    others = [i for i in range(n) if i not in points]
    every = dict(zip(points, (have[i] for i in points)))
    every.update(zip(others, evaluate(points, [have[i] for i in points], others)))
    return [every[i] for i in range(n)]


def restore_group(pg, sets, roots):
    """sets: {s: {i: bytes}}, roots: {s: SR}; gives the piece of the payload. All faults are looked for, the worst is raised."""
    faults = [] if len(sets) == pg.G else [Fault("damaged", "%d of %d sets are gone" % (pg.G - len(sets), pg.G))]
    whole = {}
    for s in sorted(sets):
        try:
            shards = restore_set(pg, sets[s])
            leaves = nodes(pg.hash, "LEAF", [leaf_input(d, s, i) for i, d in enumerate(digests(pg.hash, shards))])
            if tree_root(pg.hash, leaves) != roots[s]:
                raise Fault("invalid", "§10.4: set %d is not a codeword" % s)
            whole[s] = shards
        except Fault as fault:
            faults.append(fault)
    raise_worst(faults)
    piece = b"".join(whole[s][i] for i in range(pg.k) for s in range(pg.G))
    if any(piece[pg.payload:]):
        raise Fault("invalid", "§5: bytes past the end of the payload are not zero")
    return piece[:pg.payload]


def raise_worst(faults):
    if faults:
        raise min(faults, key=lambda f: WORST.index(f.cls))


# ---------------------------------------------------------------- the reader: shard files (§8)

Header = namedtuple("Header", "i P R T M meta")


def read_header(data):
    if data[:8] != MAGIC_S or len(data) < 512:
        raise Fault("damaged", "no header")
    if struct.unpack_from("<I", data, 8)[0] != crc32c(data[12:512]):
        raise Fault("damaged", "the header's CRC is wrong")
    if any(data[12:16]) or any(data[20:24]):
        raise Fault(CLASS_ZERO_BYTES, "the header's zero bytes are not zero")
    P = unpack(data[32:64])
    check_geometry(P, SHARDS, True)
    i, = struct.unpack_from("<I", data, 16)
    if i >= P.k + P.m:
        raise Fault("invalid", "§8: shard index ≥ n")
    if struct.unpack_from("<Q", data, 24)[0] != P.G * P.L:
        raise Fault("damaged", "§8: body length")
    size, = struct.unpack_from("<H", data, 160)
    if size > 350:
        raise Fault(CLASS_META_LENGTH, "§8: meta length > 350")
    meta, R, T, M = data[162:162 + size], data[64:96], data[96:128], data[128:160]
    if any(data[162 + size:512]):
        raise Fault(CLASS_ZERO_BYTES, "§8: zeros after the meta")
    if M != digest(P.hash, meta):
        raise Fault("damaged", "§8: M is not the hash of the meta")
    if R != final_root(P, T, M):
        raise Fault("damaged", "§8: R does not follow from T, P and M")
    check_meta(meta)
    return Header(i, P, R, T, M, meta)


class ShardFile:
    """What one file gives under one of its headers: valid = {s: bytes}, roots = {s: SR}, places = where they stand."""

    def __init__(self, header, data, bases):
        P = header.P
        self.header, self.valid, self.roots, self.places = header, {}, {}, []
        pg, size = P._replace(flags=1, nr=0), proof_size(P)
        body = align(512 + P.G * size, 4096)
        self.total = body + P.G * P.L + P.G * size + 512
        # bases: where the file would have to begin, once counted from its first header, once from its last
        for base in bases:
            first = max(0, ceil_div(-body - base, P.L))
            for s in range(first, min(P.G, max(0, (len(data) - body - base) // P.L))):
                at = base + body + s * P.L
                shard = data[at:at + P.L]
                d = None if s in self.valid else digest(P.hash, shard)
                for other in bases:
                    for start in (other + 512 + s * size, other + body + P.G * P.L + s * size):
                        if s in self.valid or start < 0 or start + size > len(data):
                            continue
                        try:
                            gr, sr = group_root(pg, d, s, header.i, data[start:start + size])
                        except Fault:
                            continue
                        if gr == header.T:
                            self.valid[s], self.roots[s] = shard, sr
                            self.places.append((at, at + P.L))
        a, b = 512 + P.G * size, body + P.G * P.L
        self.clean = len(self.valid) == P.G and bases == [0] and len(data) == self.total and data[:512] == data[-512:] \
            and not any(data[a:body]) and data[512:a] == data[b:b + P.G * size]


def header_checks(data):
    """§9.3: magic and CRC are right"""
    return data[:8] == MAGIC_S and len(data) == 512 and struct.unpack_from("<I", data, 8)[0] == crc32c(data[12:])


def read_shard_file(data):
    """(does a header check, its ShardFiles, its faults)"""
    found, faults, is_one = {}, [], False
    for at in dict.fromkeys((0, max(0, len(data) - 512))):
        is_one = is_one or header_checks(data[at:at + 512])
        try:
            header = read_header(data[at:at + 512])
            found.setdefault(header, []).append(at)
        except Fault as fault:
            if data[at:at + 8] == MAGIC_S:
                faults.append(fault)
    result = []
    for header, places in found.items():
        shard = ShardFile(header, b"", [])                # for its total length
        bases = list(dict.fromkeys(at if at == 0 else at + 512 - shard.total for at in places))
        result.append(ShardFile(header, data, bases))
    return is_one, result, faults


class ShardStream:
    def __init__(self, header):
        self.root, self.P, self.meta, self.files = header.R, header.P, header.meta, []

    def restore(self):
        sets, roots = {}, {}
        for f in self.files:
            for s, shard in f.valid.items():
                sets.setdefault(s, {})[f.header.i] = shard
                roots[s] = f.roots[s]
        return restore_group(self.P._replace(flags=1, nr=0), sets, roots)

    def restorable(self):
        try:
            self.restore()
            return True
        except Fault:
            return False

    def clean(self):
        return all(f.clean for f in self.files) and len({f.header.i for f in self.files}) == self.P.k + self.P.m


# ---------------------------------------------------------------- the reader: containers (§9)

Record = namedtuple("Record", "pos end pg gr s i head body sr")
Index = namedtuple("Index", "pos end P R M grs meta")


class Scan:
    """§9.1"""

    def __init__(self, data):
        self.data, self.records, self.indexes, self.faults = data, [], [], []
        self.rejected = self.furthest = 0
        pos = 0
        while True:
            pos = data.find(MAGIC_R[:4], pos)
            if pos < 0:
                return
            reader = {MAGIC_R: self.record, MAGIC_X: self.index, MAGIC_S: None}.get(data[pos:pos + 8], False)
            if reader is False:
                pos += 1
                continue
            end = None
            try:
                end = reader(pos) if reader else None    # a shard file's magic: nothing to accept in a container
            except Fault as fault:
                self.faults.append(fault)
            if self.rejected > 8 * self.furthest:
                self.faults.append(Fault("refused", "§9.1: too much work for false headers"))
                self.records, self.indexes = [], []      # the input is refused as a whole
                return
            pos = end or pos + 8

    def hashed(self, end, rejected):
        self.furthest = max(self.furthest, end)
        self.rejected += rejected

    def record(self, pos):
        data = self.data
        self.hashed(min(pos + 128, len(data)), 0)
        if pos + 128 > len(data):
            return None
        pg = unpack(data[pos + 32:pos + 64])
        size = proof_size(pg)
        start = pos + 128 + align(size, 64)
        if start > len(data) or struct.unpack_from("<I", data, pos + 8)[0] != crc32c(data[pos + 12:start]):
            return None
        self.hashed(start, 0)
        if any(data[pos + 12:pos + 16]) or any(data[pos + 24:pos + 32]) or any(data[pos + 128 + size:start]):
            raise Fault(CLASS_ZERO_BYTES, "§9: zero bytes of a record")
        check_geometry(pg, CONTAINER, False)
        s, i = struct.unpack_from("<II", data, pos + 16)
        if s >= pg.G or i >= pg.k + pg.m:
            raise Fault(CLASS_RECORD_RANGE, "§9: set ≥ G or shard index ≥ n")
        gr, head = data[pos + 64:pos + 96], data[pos + 96:pos + 128]
        if pg.nr == 0 and head != ZERO32:
            raise Fault(CLASS_HEAD_NOT_ZERO, "§9: head of group 0 is not zero")
        end = start + pg.L
        if end > len(data):
            raise Fault("damaged", "§9: the body is cut off")
        body = data[start:end]
        try:
            found, sr = group_root(pg, digest(pg.hash, body), s, i, data[pos + 128:pos + 128 + size])
            if found != gr:
                raise Fault("damaged", "§9: the record does not lead to its GR")
        except Fault:
            self.hashed(end, pg.L)
            raise
        self.hashed(end, 0)
        self.records.append(Record(pos, end, pg, gr, s, i, head, body, sr))
        return end

    def index(self, pos):
        data = self.data
        if pos + 128 > len(data) or struct.unpack_from("<I", data, pos + 8)[0] != crc32c(data[pos + 12:pos + 128]):
            return None
        self.hashed(pos + 128, 0)
        if any(data[pos + 12:pos + 16]) or any(data[pos + 26:pos + 32]):
            raise Fault(CLASS_ZERO_BYTES, "§9: zero bytes of an index header")
        P, R, M = unpack(data[pos + 32:pos + 64]), data[pos + 64:pos + 96], data[pos + 96:pos + 128]
        check_geometry(P, CONTAINER, True)
        size, meta_size = struct.unpack_from("<QH", data, pos + 16)
        if meta_size > 350:
            raise Fault(CLASS_META_LENGTH, "§9: meta length > 350")
        if size != align(32 * P.nr + meta_size, 64):
            raise Fault(CLASS_INDEX_EQUATION, "§9: index body length")
        fault = Fault(CLASS_INDEX_EQUATION, "§9: no good index body")
        for start in (pos + 128, pos - size):              # the body that follows, or the one that stands before
            body = data[max(0, start):start + size] if start + size >= 0 else b""
            if start < 0 or len(body) < size:
                continue
            meta = body[32 * P.nr:32 * P.nr + meta_size]
            grs = [body[32 * g:32 * g + 32] for g in range(P.nr)]
            if any(body[32 * P.nr + meta_size:]) or M != digest(P.hash, meta) or R != final_root(P, tree_root(P.hash, grs), M):
                self.hashed(start + size, size)
                continue
            try:
                check_meta(meta)
            except Fault as bad:
                fault = bad
                break
            first, end = min(pos, start), max(pos + 128, start + size)
            self.hashed(end, 0)
            self.indexes.append(Index(first, end, P, R, M, grs, meta))
            return end
        raise fault


class RecordGroup:
    """§9.2: the records with one GR and one Pg."""

    def __init__(self, pg, gr):
        self.pg, self.gr, self.heads, self.records, self.sets, self.roots = pg, gr, set(), [], {}, {}

    def add(self, record):
        self.heads.add(record.head)
        self.records.append(record)
        self.sets.setdefault(record.s, {})[record.i] = record.body
        self.roots[record.s] = record.sr


class ContainerStream:
    def __init__(self, P, groups, root=None, index=None, meta=b""):
        """groups: a RecordGroup, or None where none was found; P is None when the stream is cut."""
        self.P, self.groups, self.root, self.index, self.meta = P, groups, root, index, meta

    def restore(self):
        faults, pieces = [], []
        if self.P is None:
            faults.append(Fault("damaged", "the stream is cut: its end is not known"))
        for g, group in enumerate(self.groups):
            try:
                if group is None:
                    raise Fault("damaged", "group %d is gone" % g)
                pieces.append(restore_group(group.pg, group.sets, group.roots))
            except Fault as fault:
                faults.append(fault)
        raise_worst(faults)
        return b"".join(pieces)

    def restorable(self):
        try:
            self.restore()
            return True
        except Fault:
            return False


def find_streams(scan):
    """§9.2: all streams of a container; adds to scan.faults."""
    groups = {}
    for record in scan.records:
        key = (record.gr, record.pg)
        groups.setdefault(key, RecordGroup(record.pg, record.gr)).add(record)
    by_gr = {gr: group for (gr, _), group in groups.items()}
    streams, seen = [], set()
    for index in scan.indexes:
        if index.R in seen:
            continue
        seen.add(index.R)
        members = []
        for g, gr in enumerate(index.grs):
            group = by_gr.get(gr)
            if group and group.pg != group_of(index.P, g):
                scan.faults.append(Fault("invalid", "§4.2: Pg of group %d is not what P implies" % g))
                group = None
            members.append(group)
        streams.append(ContainerStream(index.P, members, index.R, index, index.meta))
    listed = [[group.gr if group else None for group in stream.groups] for stream in streams]
    chains = [[group] for group in groups.values() if group.pg.nr == 0]
    while chains:
        chain = chains.pop()
        first, last = chain[0].pg, chain[-1].pg
        h = first.hash
        grs = [x.gr for x in chain]
        if last.flags & 1:
            if grs in listed:
                continue
            N = len(chain)
            P = first._replace(flags=0, nr=N, payload=sum(x.pg.payload for x in chain))
            try:
                check_geometry(P, CONTAINER, True)
                if any(x.pg != group_of(P, g) for g, x in enumerate(chain)):
                    raise Fault("invalid", "§4.2: a Pg is not what P implies")
            except Fault as fault:
                scan.faults.append(fault)
                streams.append(ContainerStream(None, chain))
                continue
            M = digest(h, b"")
            streams.append(ContainerStream(P, chain, final_root(P, tree_root(h, [x.gr for x in chain]), M)))
            continue
        head, found = tree_root(h, [x.gr for x in chain]), False
        for group in groups.values():
            if group.pg.nr == len(chain) and head in group.heads:
                pg = group.pg
                if pg[:3] + pg[4:6] != first[:3] + first[4:6] or not pg.flags & 1 and pg[6:9] != first[6:9]:
                    scan.faults.append(Fault("invalid", "§4.2: Pg of group %d does not fit group 0" % pg.nr))
                    continue
                found = True
                chains.append(chain + [group])
        if not found and not any(set(grs) <= set(x) for x in listed):
            streams.append(ContainerStream(None, chain))
    return streams


def container_clean(scan, stream):
    """Every byte is as it was written."""
    if scan.faults or not stream.index or len(scan.indexes) != 3:
        return False
    at, end = 0, 0
    for group in stream.groups:
        if not group:
            return False
        pg, size = group.pg, 128 + align(proof_size(group.pg), 64) + group.pg.L
        end = at + (pg.k + pg.m) * pg.G * size
        if sorted((r.pos, r.i, r.s) for r in group.records) != [
                (at + (i * pg.G + s) * size, i, s) for i in range(pg.k + pg.m) for s in range(pg.G)]:
            return False
        at = end
    return end + 3 * 128 + 2 * align(32 * stream.P.nr + len(stream.meta), 64) == len(scan.data)


# ---------------------------------------------------------------- the reader: everything together (§9.2, §10, §11)

Result = namedtuple("Result", "cls exit payload root clean lines")


def read_one(name, data, root, is_one, shards, faults, lines):
    """§9.3: the records in a file that stands alone; (scan or None, streams). What does not count any more leaves `shards` and `faults`."""
    if root is not None and root in shards:
        return None, []
    unproved = bytearray(data)
    for shard in shards.values() if root is None else ():
        for start, end in shard.files[0].places:
            unproved[start:end] = bytes(end - start)
    scan = Scan(bytes(unproved))
    streams = find_streams(scan)
    if is_one:
        whole = [x for x in shards.values() if x.restorable()]
        if not any(x.restorable() if root is None else x.root == root for x in streams):
            return None, []
        if root is not None or not whole:
            shards.clear()
            faults.clear()
    faults += scan.faults
    lines += ["%s: %s: %s" % (name, f.cls, f.text) for f in scan.faults]
    lines += ["%s: record at %d: group %d set %d shard %d: ok" % (name, r.pos, r.pg.nr, r.s, r.i) for r in scan.records]
    lines += ["%s: index at %d: root %s: ok" % (name, x.pos, x.R.hex()) for x in scan.indexes]
    return scan, streams


def read_all(blobs, root=None):
    """blobs: [(name, bytes)]; total: any input gives a Result."""
    lines, faults, shards, containers, scan = [], [], {}, [], None
    for name, data in blobs:
        is_one, found, bad = read_shard_file(data)
        faults += bad
        lines += ["%s: header: %s: %s" % (name, f.cls, f.text) for f in bad]
        for f in found:
            shards.setdefault(f.header.R, ShardStream(f.header)).files.append(f)
            state = "ok" if f.clean else "damaged" if len(f.valid) < f.header.P.G else "damaged, all sets usable"
            lines.append("%s: root %s shard %d: %d of %d sets: %s" % (name, f.header.R.hex(), f.header.i, len(f.valid), f.header.P.G, state))
        if len(blobs) == 1:
            scan, containers = read_one(name, data, root, is_one, shards, faults, lines)
        elif not is_one:
            lines.append("%s: not a shard file" % name)
    streams = list(shards.values()) + containers
    if root is not None:
        chosen = [x for x in streams if x.root == root]
        if not chosen and any(x.root for x in streams):
            faults.append(Fault("wrong-root", "what is there leads to another root"))
    else:
        chosen = streams
    restored = []
    for x in chosen:
        try:
            restored.append((x, x.restore()))
        except Fault as fault:
            faults.append(fault)
            lines.append("root %s: %s: %s" % (x.root.hex() if x.root else "?", fault.cls, fault.text))
    if len(restored) > 1:
        return Result("ambiguous", 2, None, None, False, lines + ["root " + x.root.hex() for x, _ in restored])
    if restored:
        x, payload = restored[0]
        clean = not faults and (container_clean(scan, x) if x in containers else x.clean() and len(chosen) == 1)
        lines.append("root %s: can be restored, %d bytes" % (x.root.hex(), len(payload)))
        return Result(None, 0, payload, x.root, clean, lines)
    cls = min((f.cls for f in faults), key=WORST.index, default="damaged")
    return Result(cls, EXIT[cls], None, None, False, lines + ["cannot be restored: " + cls])


def load(paths):
    blobs = []
    for p in paths:
        names = [os.path.join(p, x) for x in sorted(os.listdir(p))] if os.path.isdir(p) else [p]
        for name in names:
            if os.path.isfile(name) or name in paths:
                with open(name, "rb") as f:
                    blobs.append((name, f.read()))
    return blobs


def store(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as f:
        f.write(data)


# ---------------------------------------------------------------- golden vectors

def generate(size, seed):
    """The payload of a vector."""
    x, out = seed, bytearray()
    for _ in range(size):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        out.append(x >> 56)
    return bytes(out)


FORMS, HASHES = {"shards": SHARDS, "container": CONTAINER}, {"blake3": BLAKE3, "sha256": SHA256}
SHAPES = ((1, 0), (1, 1), (2, 1), (10, 4), (33, 67), (86, 14), (200, 56))


def encode_cases():
    """(form, hash, k, m, set_size, group_size, payload_len, path?)"""
    both = [(f, h) for f in FORMS for h in HASHES]
    for number, (k, m) in enumerate(SHAPES):
        small = k <= 10
        c = 64 * k

        def pick(j):
            return both if small else [both[(number + j) % 4]]

        for j, size in enumerate(dict.fromkeys((0, 1, k - 1, k, k + 1, c - 1, c, c + 1))):
            for f, h in pick(j):
                yield f, h, k, m, None, None, size, (k, m) in ((1, 1), (2, 1)) and size in (1, c + 1)
        # several sets: lone nodes in the tree, a last set that is not full, and L below L0
        several = ((c, 3 * c - 5), (c, 5 * c), (5 * c, 11 * c)) + (((c, 5 * c + 1), (c, 6 * c), (c, 7 * c - c // 2), (3 * c - 1, 10 * c + 7)) if small else ())
        for j, (set_size, size) in enumerate(several):
            for f, h in pick(j + (2 if j == 2 else 1)):
                yield f, h, k, m, set_size, None, size, (k, m) == (2, 1) and size in (3 * c - 5, 6 * c)
        # several groups
        for j, (groups, size) in enumerate((g, s) for g in (1, 2, 3) for s in (2 * g * c - 1, 2 * g * c, 2 * g * c + 1, 3 * g * c + c + 7)):
            for h in HASHES if small else [list(HASHES)[j % 2]]:
                if small or groups == 2:
                    yield "container", h, k, m, c, groups, size, (k, m) == (2, 1) and groups == 2
        if small:
            for h in HASHES:
                yield "container", h, k, m, 4 * c, 2, 16 * c + 2 * c - 3, False       # the last group: one set, smaller L
                yield "container", h, k, m, 4 * c, 3, 12 * c + 7 * c + 1, (k, m) == (1, 1)
                yield "container", h, k, m, 4 * c, 1, 12 * c, False
    for f, h in both:                                                                  # longer shards: BLAKE3 chunks
        for k, m, size in ((1, 1, 1024), (1, 1, 1025), (1, 1, 2048), (1, 0, 3073), (1, 1, 7000), (2, 1, 100000), (10, 4, 100000), (3, 5, 30000)):
            yield f, h, k, m, None, None, size, False
        yield f, h, 3, 2, 1, None, 1000, False                                         # tiny set_size
        if (f, h) != both[1]:
            yield f, h, 256, 0, None, None, 70000, False
    # the default set_size (65,536 for this shape) and the default size of a group (3 sets)
    for f, size in (("shards", 65537), ("container", 196608), ("container", 196609)):
        yield f, "sha256", 1, 255, None, None, size, False


def encode_vector(case):
    form, h, k, m, set_size, group_size, size, with_path = case
    name = "%s-%s-%d+%d-b%d" % (form, h, k, m, size) + ("-s%d" % set_size if set_size else "") + ("-g%d" % group_size if group_size else "")
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    file_name = "payload.bin" if form == "shards" else None
    files, root = encode(FORMS[form], HASHES[h], k, m, generate(size, seed), set_size, group_size, (file_name or "").encode())
    v = {"name": name, "form": form, "hash": h, "k": k, "m": m, "set_size": set_size, "group_size": group_size, "file_name": file_name,
         "payload_len": size, "seed": seed, "root": root.hex(), "file_len": len(files[0]),
         "digests": [hashlib.sha256(x).hexdigest() for x in files]}
    if with_path:
        v["path"] = "files/" + name + ("" if form == "shards" else ".fec")
    return v, files


def shard_names(stem, files):
    return {"%s.%03d.shard" % (stem, i): x for i, x in enumerate(files)}


def forge(form, parts=((50, 64, 1),), h=SHA256, k=1, m=1, lie=None, p=None, alter=None, pieces=None, payload=None, meta=None, **hooks):
    """A container or shard files signed over whatever the arguments say. parts: (payload bytes, L, G[, other fields]) of each group;
    lie: fields of every Pg (and so of P) that differ from what is built; p: of P alone."""
    groups, pos = [], 0
    payload = generate(sum(part[0] for part in parts), 7) if payload is None else payload
    for g, part in enumerate(parts):
        geo = Geo(1, h, form, int(g == len(parts) - 1), k, m, part[1], part[2], part[0], g)._replace(**(part[3] if len(part) > 3 else {}))
        piece = pieces[g] if pieces else payload[pos:pos + geo.payload]
        groups.append(Group(geo, piece, alter, lie))
        pos += geo.payload
    if form == SHARDS:
        return write_shards(groups[0], p_of(groups, dict({"nr": 1}, **(p or {}))), entry(2, b"a") if meta is None else meta, **hooks)
    return write_container(groups, p_of(groups, p), meta or b"", **hooks)


def poke(at, value):
    """A hook that changes one byte: of a header, by XOR."""
    def change(*args):
        args[-1][at] ^= value
    return change


def poke_head(at, value):
    """The same for a record's header (the proof is the hook's last argument)."""
    return lambda g, s, i, head, proof: poke(at, value)(head)


def flipped(data, *places):
    data = bytearray(data)
    for at in places:
        data[at] ^= 1
    return bytes(data)


def spots(data, magic):
    return [at for at in range(len(data)) if data.startswith(magic, at)]


def error_cases():
    """(name, rule, class, bytes or {file name: bytes}, root or None, payload or None)"""
    out = []

    def add(name, rule, cls, what, root=None, payload=None):
        if isinstance(what, list):
            what = shard_names("x", what)
        assert (cls is None) == (payload is not None), name
        out.append((name, rule, cls, what, root, payload))

    def F(only=None, **o):
        """shard files; only: the indices that are there"""
        files, root = forge(SHARDS, **o)
        return {x: y for i, (x, y) in enumerate(shard_names("x", files).items()) if only is None or i in only}, root

    def C(**o):
        return forge(CONTAINER, **o)

    P50 = generate(50, 7)
    name = entry(2, b"a")

    # ---- §4.1, rules 1 to 3 and what a lie can break
    for stem, rule, lie in (
            ("version-2", "1: version is not 1", dict(version=2)), ("version-0", "1: version is not 1", dict(version=0)),
            ("hash-0", "1: hash is not 1 or 2", dict(hash=0)), ("hash-3", "1: hash is not 1 or 2", dict(hash=3)),
            ("form-0", "1: form is not 1 or 2", dict(form=0)), ("form-3", "1: form is not 1 or 2 (3 is reserved)", dict(form=3)),
            ("k-0", "2: k = 0", dict(k=0)), ("n-257", "2: k + m > 256", dict(m=256)), ("n-65536", "2: k + m > 256, more than 16 bits", dict(k=1, m=65535)),
            ("shard-len-over-limit", "2: L > 2^26", dict(L=(1 << 26) + 64)), ("payload-2-63", "2: payload bytes ≥ 2^63", dict(payload=1 << 63)),
            ("payload-2-64", "2: payload bytes ≥ 2^63 (2^64 − 1)", dict(payload=(1 << 64) - 1)),
            ("huge-product", "2: k·G·L beyond 64 bits", dict(k=65535, m=65535, L=(1 << 32) - 64, G=(1 << 32) - 1))):
        if stem not in ("version-0", "form-0", "n-65536", "payload-2-64"):
            add("s-" + stem, "§4.1 rule " + rule, "refused", F(only=[0], lie=lie)[0])
        add("c-" + stem, "§4.1 rule " + rule, "refused", C(lie=lie)[0])
    add("s-form-2", "§8: form MUST be 1", CLASS_FORM_MISPLACED, F(only=[0], lie=dict(form=2))[0])
    add("c-form-1", "§9: form MUST be 2", CLASS_FORM_MISPLACED, C(lie=dict(form=1))[0])
    for bit in (1, 7):
        add("s-flag-bit%d" % bit, "§4.1 rule 1: a reserved flag is set", "refused", F(only=[0], p=dict(flags=1 << bit))[0])
        add("c-flag-bit%d" % bit, "§4.1 rule 1: a reserved flag is set", "refused", C(lie=dict(flags=1 | 1 << bit))[0])
    add("s-flag-last-in-P", "§4.1 rule 1: bit 0 is set in P", "refused", F(only=[0], p=dict(flags=1))[0])
    data, root = C(p=dict(flags=1))
    add("c-flag-last-in-P", "§4.1 rule 1: bit 0 is set in P (the index is refused)", "refused", data, root)
    add("c-flag-last-in-P-no-root", "§4.1 rule 1: bit 0 is set in P; losing the index costs no payload", None, data, None, P50)
    add("s-sets-over-limit", "§4.1 rule 2: G > 2^20 in shard files", "refused", F(only=[0], lie=dict(G=(1 << 20) + 1, payload=(1 << 26) + 64))[0])
    add("c-sets-over-limit", "§4.1 rule 2: G > 65,536 in a container", "refused", C(m=0, lie=dict(G=65537, payload=65537 * 64))[0])
    add("s-groups-over-limit", "§4.1 rule 2: N > 2^20", "refused", F(only=[0], p=dict(nr=(1 << 20) + 1))[0])
    data, root = C(p=dict(nr=(1 << 20) + 1, payload=64 << 20 | 1))
    add("c-groups-over-limit", "§4.1 rule 2: N > 2^20 (index)", "refused", data, root)
    add("c-group-number-over-limit", "§4.1 rule 2: g ≥ 2^20", "refused", C(lie=dict(nr=1 << 20))[0])
    for stem, size, cls in (("c-group-over-48-mib", 196672, "refused"), ("c-group-of-48-mib", 196608, None)):
        data, root = C(parts=((size, size, 1),), k=1, m=255, payload=bytes(size), keep=lambda g, s, i: i == 3)
        data = data[:1000] if cls else data            # (a reader without the rule finds the body cut off: damaged)
        add(stem, "§4.1 rule 3: n·G·L > 50,331,648" if cls else "§4.1 rule 3: n·G·L = 50,331,648 is allowed", cls, data, None, None if cls else bytes(size))

    # ---- rule 4
    add("s-shard-len-0", "§4.1 rule 4: L = 0", "invalid", F(only=[0], parts=((0, 0, 1),))[0])
    add("c-shard-len-0", "§4.1 rule 4: L = 0", "invalid", C(parts=((0, 0, 1),))[0])
    add("s-shard-len-96", "§4.1 rule 4: L mod 64 ≠ 0", "invalid", F(only=[0], parts=((90, 96, 1),))[0])
    add("c-shard-len-96", "§4.1 rule 4: L mod 64 ≠ 0", "invalid", C(parts=((90, 96, 1),))[0])
    add("s-sets-0", "§4.1 rule 4: G = 0", "invalid", F(only=[0], parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("c-sets-0", "§4.1 rule 4: G = 0", "invalid", C(parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("s-groups-0", "§4.1 rule 4: N = 0", "invalid", F(only=[0], p=dict(nr=0))[0])
    data, root = C(p=dict(nr=0))
    add("c-groups-0", "§4.1 rule 4: N = 0 (index)", "invalid", data, root)
    add("s-groups-2", "§4.1 rule 4: N ≠ 1 in shard files", "invalid", F(only=[0], parts=((64, 64, 1),), p=dict(nr=2))[0])

    # ---- rule 5
    for stem, rule, part in (("shard-len-large", "L is larger than canonical", (50, 128, 1)), ("shard-len-small", "L is smaller than canonical", (100, 64, 1)),
                             ("sets-above-bound", "G > ⌈b / (64·k)⌉", (50, 64, 2)), ("empty-two-sets", "b = 0 has G = 1", (0, 64, 2)),
                             ("empty-shard-len-128", "b = 0 has L = 64", (0, 128, 1))):
        if part[0]:
            add("s-" + stem, "§4.1 rule 5: " + rule, "invalid", F(only=[0], parts=(part,))[0])
        add("c-" + stem, "§4.1 rule 5: " + rule, "invalid", C(parts=(part,))[0])
    lie = dict(payload=(1 << 63) - 1, k=256, m=0, L=1 << 26, G=1 << 20)
    add("s-payload-2-63-less-1", "§4.1 rule 5 on the largest payload", "invalid", F(only=[0], lie=lie)[0])
    lie["payload"] = 1 << 54
    add("s-huge-but-canonical", "§4.1: the largest canonical shard file; its body is not there", "damaged", F(only=[0], lie=lie)[0])

    # ---- rules 6, 7, 8 and §4.2
    add("c-payload-too-large-for-groups", "§4.1 rule 6: B > N·C", "invalid", C(parts=((64, 64, 1), (100, 128, 1)))[0])
    two = ((64, 64, 1), (20, 64, 1))
    P84 = generate(84, 7)
    for stem, payload in (("too-small", 64), ("too-large", 129)):
        data, root = C(parts=two, p=dict(payload=payload))
        add("c-index-payload-%s-for-groups" % stem, "§4.1 rule 6, in the index", "invalid", data, root)
        add("c-index-payload-%s-for-groups-no-root" % stem, "§4.1 rule 6, in the index: the records are enough", None, data, None, P84)
    data, root = C(parts=two, p=dict(payload=85))
    add("c-index-payload-differs", "§4.2: Pg of the last group is not what the index's P implies (payload bytes)", "invalid", data, root)
    add("c-group-not-full", "§4.1 rule 7: a group before the last is not full", "invalid", C(parts=((63, 64, 1), (20, 64, 1)))[0])
    for stem, rule, parts in (("empty", "b = 0", ((64, 64, 1), (0, 64, 1))), ("shard-len-large", "L is larger", ((128, 128, 1), (20, 128, 1))),
                              ("shard-len-small", "L is smaller", ((128, 128, 1), (100, 64, 1))), ("sets-above-bound", "G > ⌈b / (64·k)⌉", ((128, 64, 2), (20, 64, 2)))):
        add("c-last-group-" + stem, "§4.1 rule 8: " + rule, "invalid", C(parts=parts)[0])
    for index in (True, False):
        tail = "" if index else "-no-index"
        for stem, rule, parts in (("sets", "G of the last group (L and G obey rule 8)", ((256, 128, 2), (150, 192, 1))),
                                  ("middle", "L and G of a middle group (obey rule 7)", ((128, 64, 2), (128, 128, 1), (30, 64, 1))),
                                  ("shape", "k and m of the last group", ((128, 64, 2), (100, 64, 1, dict(k=2, m=0))))):
            add("c-group-differs-" + stem + tail, "§4.2: " + rule, "invalid", C(parts=parts, index=index)[0])

    # ---- §5 padding, §10 codeword
    dirty = generate(70, 7) + bytes(57) + b"\1"
    add("s-padding", "§5: a byte past the end is not zero", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 1])[0])
    add("s-padding-from-recovery", "§5: a byte past the end is not zero; its shard is gone", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 2])[0])
    add("c-padding", "§5: a byte past the end is not zero", "invalid", C(k=2, parts=((70, 64, 1),), pieces=[dirty])[0])
    add("c-padding-first-byte", "§5: the first byte past the end is not zero", "invalid", C(pieces=[P50 + b"\1"])[0])
    add("c-padding-empty", "§5: payload of 0 bytes, padding not zero", "invalid", C(parts=((0, 64, 1),), pieces=[b"\0\1"])[0])
    add("c-padding-last-group", "§5: padding of the second group", "invalid", C(parts=two, pieces=[bytes(64), bytes(20) + b"\1"])[0])

    def wrong(i, s):
        def change(shards):
            shards[i][s] = flipped(shards[i][s], 5)
        return change

    for stem, change in (("recovery", wrong(2, 0)), ("original", wrong(0, 0)), ("second-set", wrong(2, 1))):
        parts = ((200, 64, 2),)
        add("s-not-a-codeword-" + stem, "§10.4: valid tree over what is not a codeword", "invalid", F(k=2, parts=parts, alter=change)[0])
        add("c-not-a-codeword-" + stem, "§10.4: valid tree over what is not a codeword", "invalid", C(k=2, parts=parts, alter=change)[0])
    for only in ([0, 1], [0, 2], [1, 2]):
        add("s-not-a-codeword-k-shards-%d%d" % tuple(only), "§10.4: not a codeword, k shards are there", "invalid",
            F(k=2, parts=((100, 64, 1),), alter=wrong(2, 0), only=only)[0])

    # ---- §6.1 proofs
    add("s-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        F(k=2, parts=((100, 64, 1),), only=[1, 2], prf=lambda s, i, proof: i == 2 and poke(63, 1)(proof))[0])
    add("c-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        C(k=2, parts=((100, 64, 1),), keep=lambda g, s, i: i > 0, rec=lambda g, s, i, head, proof: i == 2 and poke(32, 1)(proof))[0])
    three = ((150, 64, 3),)
    add("s-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        F(parts=three, prf=lambda s, i, proof: s == 2 and poke(95, 1)(proof))[0])
    add("c-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        C(parts=three, rec=lambda g, s, i, head, proof: s == 2 and poke(64, 1)(proof))[0])

    def swap(*args):
        args[-1][:64] = args[-1][32:64] + args[-1][:32]

    add("s-paths-swapped", "§6.1: set path and group path are swapped", "damaged", F(parts=((100, 64, 2),), prf=swap)[0])
    add("c-paths-swapped", "§6.1: set path and group path are swapped", "damaged", C(parts=((100, 64, 2),), rec=swap)[0])
    add("s-path-wrong", "§8: the proof leads elsewhere", "damaged", F(prf=poke(0, 1))[0])
    add("c-path-wrong", "§9: the proof leads elsewhere", "damaged", C(rec=poke(0, 1))[0])
    add("c-gr-wrong", "§9: the record does not lead to the GR it states", "damaged", C(rec=poke_head(64, 1))[0])

    # ---- indices
    add("s-index-too-large", "§8: i ≥ n", "invalid", F(hdr=poke(16, 2))[0])
    add("s-index-wrong", "§8: another i than the leaf has", "damaged", F(hdr=poke(16, 1))[0])
    add("c-index-too-large", "§9: i ≥ n", CLASS_RECORD_RANGE, C(rec=poke_head(20, 2))[0])
    add("c-index-wrong", "§9: another i than the leaf has", "damaged", C(rec=poke_head(20, 1))[0])
    add("c-set-too-large", "§9: s ≥ G", CLASS_RECORD_RANGE, C(rec=poke_head(16, 1))[0])
    add("c-set-wrong", "§9: another s than the leaf has", "damaged", C(parts=((100, 64, 2),), rec=poke_head(16, 1))[0])

    # ---- zero bytes
    for at in (12, 20, 511):
        add("s-zero-bytes-%d" % at, "§8: zero bytes of H", CLASS_ZERO_BYTES, F(only=[0], hdr=poke(at, 1))[0])
    files, root = F(only=[0], gap=poke(-1, 1))
    add("s-zero-bytes-gap", "§8: zeros before the body are not zero: no record is lost by it", None, files, None, P50)
    for at in (12, 15, 24, 31):
        add("c-zero-bytes-record-%d" % at, "§9: zero bytes of a record", CLASS_ZERO_BYTES, C(rec=poke_head(at, 1))[0])
    add("c-zero-bytes-record-proof", "§9: the padding of the proof is not zero", CLASS_ZERO_BYTES, C(rec=poke(63, 1))[0])
    add("c-head-of-group-0", "§9: head of group 0 is not zero", CLASS_HEAD_NOT_ZERO, C(rec=poke_head(96, 1))[0])

    # ---- heads
    wrong_head = dict(parts=two, rec=lambda g, s, i, head, proof: g == 1 and poke(96, 1)(head))
    add("c-head-wrong-no-index", "§9.2: group 1 does not follow group 0, no index", "damaged", C(index=False, **wrong_head)[0])
    add("c-head-wrong-with-index", "§9.2: an accepted index lists the groups, whatever their heads", None, C(**wrong_head)[0], None, P84)
    add("c-head-wrong-in-one-record", "§9.2: one record of group 1 has a wrong head, no index", None,
        C(parts=two, index=False, rec=lambda g, s, i, head, proof: (g, i) == (1, 0) and poke(96, 1)(head))[0], None, P84)

    # ---- CRC, equations of the shard file's header
    files, root = F(only=[0])
    add("s-crc", "§8: the CRC of both header copies is wrong", "damaged", {x: flipped(y, 8, len(y) - 504) for x, y in files.items()})
    add("s-magic", "§8: the magic of both header copies is wrong", "damaged", {x: flipped(y, 0, len(y) - 512) for x, y in files.items()})
    data, root = C()
    add("c-crc", "§9: the CRC of every record is wrong", "damaged", flipped(data, *[at + 8 for at in spots(data, MAGIC_R)]), root)
    add("c-crc-covers-proof", "§9: a byte of every proof's padding differs: the CRC is wrong", "damaged", flipped(data, *[at + 191 for at in spots(data, MAGIC_R)]))
    add("s-body-length", "§8: body length ≠ G·L", "damaged", F(only=[0], hdr=poke(24, 128))[0])
    add("s-R", "§8: R does not follow", "damaged", F(only=[0], hdr=poke(64, 1))[0])

    def resign(at):
        def change(i, head):
            head[at] ^= 1
            head[64:96] = final_root(unpack(head[32:64]), bytes(head[96:128]), bytes(head[128:160]))
        return change

    add("s-M", "§8: M is not the hash of the meta (R follows from it)", "damaged", F(only=[0], hdr=resign(128))[0])
    add("s-T", "§8: the records do not lead to T (R follows from it)", "damaged", F(only=[0], hdr=resign(96))[0])

    # ---- §7 meta, in both forms; the container is asked for by its root, because its records alone do not know the meta
    long_meta = entry(2, b"a") + entry(3, generate(343, 1))
    for stem, rule, cls, meta in (
            ("even", "unknown even type", "refused", name + entry(4, b"x")), ("type-0", "unknown even type 0", "refused", entry(0, b"") + name),
            ("even-254", "unknown even type 254", "refused", name + entry(254, b"")), ("odd", "an unknown odd type is skipped", None, entry(1, b"") + name + entry(3, b"xyz")),
            ("descending", "types do not ascend", "invalid", entry(3, b"") + name), ("twice", "the same type twice", "invalid", name + name),
            ("entry-too-long", "an entry is longer than the meta", "invalid", struct.pack("<BH", 2, 2) + b"a"),
            ("name-empty", "empty name", "invalid", entry(2, b"")), ("name-slash", "name with a slash", "invalid", entry(2, b"a/b")),
            ("name-nul", "name with NUL", "invalid", entry(2, b"a\0b")), ("name-dot", "name .", "invalid", entry(2, b".")),
            ("name-dotdot", "name ..", "invalid", entry(2, b"..")), ("name-256", "name of 256 bytes", "invalid", entry(2, b"n" * 256)),
            ("name-255", "name of 255 bytes", None, entry(2, b"n" * 255)), ("name-dots", "name ... is allowed", None, entry(2, b"...")),
            ("trailing-byte", "a byte is left over", "invalid", name + b"\3"), ("trailing-bytes", "two bytes are left over", "invalid", name + b"\3\0"),
            ("empty", "the meta may be empty", None, b""), ("350", "350 bytes are allowed", None, long_meta)):
        files, root = F(only=[0], meta=meta)
        if stem not in ("type-0", "even-254"):
            add("s-meta-" + stem, "§7: " + rule, cls, files, None, P50 if cls is None else None)
        data, root = C(meta=meta)
        add("c-meta-" + stem, "§7: " + rule, cls, data, root, P50 if cls is None else None)
    add("c-meta-even-no-root", "§7, §11: the index is refused; losing it costs no payload", None, C(meta=name + entry(4, b"x"))[0], None, P50)
    add("s-meta-351", "§8: meta length 351", CLASS_META_LENGTH, F(only=[0], meta=long_meta, hdr=poke(160, 1))[0])
    data, root = C(meta=entry(2, b"a") + entry(3, generate(344, 1)))
    add("c-meta-351", "§9: meta length 351", CLASS_META_LENGTH, data, root)

    # ---- the index; with a meta, so that its root is known from it alone; without it the records lead to the root of the empty meta
    def set_r(T):
        def change(head):
            head[96] ^= 1
            head[64:96] = final_root(unpack(head[32:64]), T, bytes(head[96:128]))
        return change

    gr = C()[0][64:96]
    for stem, rule, o in (("zero-bytes-12", "zero bytes", dict(xh=poke(12, 1))), ("zero-bytes-26", "zero bytes", dict(xh=poke(26, 1))),
                          ("zero-bytes-31", "zero bytes", dict(xh=poke(31, 1))), ("body-longer", "body length is 64 too large, and so is the body", dict(idx=lambda b: b.extend(bytes(64)))),
                          ("body-length", "body length in XH is wrong", dict(xh=poke(16, 128))), ("body-zeros", "zeros of the body", dict(idx=poke(63, 1))),
                          ("R", "R does not follow", dict(xh=poke(64, 1))), ("M", "M is not the hash of the meta (R follows from it)", dict(xh=set_r(gr))),
                          ("GR", "another GR in the body", dict(idx=poke(0, 1))), ("meta-byte", "another meta than M has", dict(idx=poke(35, 1)))):
        data, root = C(meta=name, **o)
        if stem in ("R", "M"):
            root = data[spots(data, MAGIC_X)[0] + 64:][:32]
        add("c-index-" + stem, "§9 index: " + rule, "wrong-root", data, root)
        add("c-index-%s-no-root" % stem, "§9 index: %s; losing the index costs no payload" % rule, None, data, None, P50)
    data, root = C(meta=name)
    heads = spots(data, MAGIC_X)
    add("c-index-crc", "§9 index: the CRC of every XH is wrong", "wrong-root", flipped(data, *[at + 8 for at in heads]), root)
    add("c-index-only-first", "§9 index: XH and the body that follows it", None, flipped(data, heads[1], heads[2], heads[1] + 128), root, P50)
    add("c-index-only-last", "§9 index: XH and the body that stands before it", None, flipped(data, heads[0], heads[1], heads[0] + 128), root, P50)
    add("c-index-middle-before", "§9 index: the middle XH and the body before it", None, flipped(data, heads[0], heads[2], heads[1] + 128), root, P50)
    add("c-index-bodies-lost", "§9 index: both bodies are damaged", "wrong-root", flipped(data, heads[0] + 128, heads[1] + 128), root)
    data, root = C(p=dict(nr=1 << 20, payload=64 << 20), xh=lambda head: head.__setitem__(slice(16, 24), struct.pack("<Q", 32 << 20)))
    add("c-index-of-2-20-groups", "§9 index: its body is not there", None, data, None, P50)
    one, one_root = C()
    other, other_root = C(meta=name)
    mixed = one + other[spots(other, MAGIC_X)[0]:]
    add("c-two-indexes", "§9.2: two accepted indexes of the same groups", "ambiguous", mixed)
    add("c-two-indexes-root-1", "§9.2: two accepted indexes, the root is given", None, mixed, one_root, P50)
    add("c-two-indexes-root-2", "§9.2: two accepted indexes, the root is given", None, mixed, other_root, P50)

    # ---- lost parts of a container
    many = ((256, 64, 2), (256, 64, 2), (100, 64, 1))
    P612 = generate(612, 7)
    data, root = C(k=2, parts=many)
    end = spots(data, MAGIC_X)[0]
    add("c-no-index", "§9: all copies of the index are lost, all groups are there", None, data[:end], None, P612)
    add("c-no-index-root", "§9.2: R follows when the meta is empty", None, data[:end], root, P612)
    add("c-cut-last-group", "§9.2: cut before the last group", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g < 2)[0])
    add("c-cut-in-last-group", "§9.2: cut in the last group, k records are there", None, data[:end - 50], None, P612)
    add("c-cut-in-last-group-k-1", "§9.2: cut in the last group, k − 1 records are there", "damaged", data[:end - 400], None)
    add("c-first-group-lost", "§9.2: the first group is lost, no index", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g > 0)[0])
    add("c-middle-group-lost", "§9.2: a middle group is lost", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g != 1)[0])
    add("c-index-alone", "§9: only the index is left", "damaged", data[end:])
    add("c-k-1", "§10: k − 1 records of each set", "damaged", C(k=2, parts=many, keep=lambda g, s, i: i == 1)[0])
    add("c-k", "§10: k records of each set", None, C(k=2, parts=many, keep=lambda g, s, i: i != (g + s) % 3)[0], None, P612)
    add("c-wrong-root", "§11: another root is asked for", "wrong-root", data, hashlib.sha256(b"other").digest())
    add("c-empty-file", "§11: nothing is there", "damaged", b"")
    add("c-junk", "§11: nothing is there", "damaged", generate(5000, 3))
    add("c-junk-root", "§11: nothing is there, a root is given", "damaged", generate(5000, 3), root)
    shift = data[:300] + generate(77, 1) + data[300:]
    add("c-inserted", "§9.1: bytes inserted inside a record", None, shift, None, P612)
    add("c-inserted-magic", "§9.1: magics inserted between records", None, MAGIC_R * 3 + MAGIC_X + MAGIC_S + MAGIC_R[:5] + data, None, P612)
    add("c-deleted", "§9.1: bytes deleted inside a record", None, data[:400] + data[433:], None, P612)
    size = spots(data, MAGIC_R)[1]
    turned = b"".join(data[at:at + size] for at in reversed(range(0, 12 * size, size)))
    add("c-shuffled", "§9.2: records of two groups in reverse order", None, turned + data[12 * size:], None, P612)

    # ---- several streams
    add("c-joined-with-itself", "§9.2: the same container twice is one stream", None, data + data, None, P612)
    other, other_root = C(parts=((100, 64, 2),), payload=generate(100, 9))
    add("c-joined", "§9.2: two containers joined", "ambiguous", data + other)
    add("c-joined-root-1", "§9.2: two containers joined, the root is given", None, data + other, root, P612)
    add("c-joined-root-2", "§9.2: two containers joined, the root is given", None, data + other, other_root, generate(100, 9))
    add("c-joined-no-index", "§9.2: two containers joined, both without index", "ambiguous", data[:end] + other[:spots(other, MAGIC_X)[0]])
    add("c-joined-other-root", "§11: two containers joined, a third root is given", "wrong-root", data + other, hashlib.sha256(b"other").digest())
    size = align(len(other), 64)
    outer, outer_root = C(parts=((len(other), size, 1),), payload=other)
    end = spots(outer, MAGIC_X)[-3]
    second = 192 + size
    add("c-nested", "§9.2: a container in a container", None, outer, None, other)
    add("c-nested-first-damaged", "§9.2: the outer record 0 is damaged, the inner container is seen: both can be restored", "ambiguous", flipped(outer, 8))
    add("c-nested-first-damaged-root", "§9.2: the same, the outer root is given", None, flipped(outer, 8), outer_root, other)
    add("c-nested-second-damaged", "§9.2: the outer record 1, a recovery shard equal to the original, is damaged", "ambiguous", flipped(outer, second + 8))
    add("c-nested-first-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end], 8))
    add("c-nested-second-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end], second + 8))
    add("c-nested-first-damaged-inner-root", "§9.2: the inner root is given", None, flipped(outer, 8), other_root, generate(100, 9))
    add("c-nested-inner-root", "§9.1: bytes inside an accepted record are never scanned", "wrong-root", outer, other_root)
    add("c-nested-both-damaged-inner-root", "§9.2: only the inner container is left, and is asked for", None, flipped(outer, 8, second + 8), other_root, generate(100, 9))
    # an encoding of one record, k = 1, whose geometry speaks of 256: what follows lies where its other records would
    one, one_root = C(k=1, m=255, parts=((64, 64, 1),), payload=generate(64, 8), index=False, keep=lambda g, s, i: i == 255)
    one_index = C(k=1, m=255, parts=((64, 64, 1),), payload=generate(64, 8), keep=lambda g, s, i: False)[0]
    for stem, what in (("appended", data + one), ("prepended", one + data), ("around", one + data + one + one_index), ("inside", data[:size] + one + data[size:])):
        add("c-one-record-" + stem, "§9.2: one record of another encoding can be restored: " + stem, "ambiguous", what)
        add("c-one-record-%s-root" % stem, "§9.2: the same, the root is given", None, what, root, P612)
        add("c-one-record-%s-its-root" % stem, "§9.2: the same, its own root is given", None, what, one_root, generate(64, 8))
    add("c-fork", "§9.2: two chains share their first group", "ambiguous",
        *(lambda a, b: [a[:spots(a, MAGIC_X)[0]] + b])(C(k=2, parts=many)[0], C(k=2, parts=many, payload=P612[:512] + bytes(100))[0]))
    add("c-index-claims-groups", "§9.2: a foreign index lists groups of a chain", None,
        *(lambda a, b: [a[:spots(a, MAGIC_X)[0]] + b[spots(b, MAGIC_X)[0]:], None, P612])(data, C(k=2, parts=many, payload=P612[:512] + bytes(100))[0]))
    meta_file, meta_root = C(k=2, parts=many, meta=entry(3, b"x"))
    add("c-meta", "§9.2: an index with meta lists the groups of a chain: one encoding", None, meta_file, None, P612)
    add("c-meta-root", "§9.2: the same, the root is given", None, meta_file, meta_root, P612)
    # what a file is
    (shard,), shard_root = [[list(x.values()), y] for x, y in [F(k=1, m=0, parts=((len(data), align(len(data), 64), 1),), payload=data)]][0]
    add("c-magic-as-shard-file", "§9.3: one bit makes the first magic that of a shard file", None, data[:4] + b"S" + data[5:], None, P612)
    add("c-magic-as-shard-file-root", "§9.3: the same, the root is given", None, data[:4] + b"S" + data[5:], root, P612)
    add("c-behind-shard-magic", "§9.3: the magic of a shard file in front", None, MAGIC_S + data, root, P612)
    add("c-behind-shard-header", "§9.3: the header of a shard file in front", None, shard[:512] + data, None, P612)
    add("c-behind-shard-header-root", "§9.3: the same, the root is given", None, shard[:512] + data, root, P612)
    add("c-in-shard-file", "§9.3: proved shards are not scanned", None, shard, None, data)
    add("c-in-shard-file-root", "§9.3: the same, the root is given", None, shard, shard_root, data)
    add("c-in-shard-file-inner-root", "§9.3: the root of the container inside is given", None, shard, root, P612)
    for stem, what in (("behind", shard + other), ("before", other + shard)):
        add("c-%s-shard-file" % stem, "§9.3: a shard file that can be restored alone, and a container", "ambiguous", what)
        add("c-%s-shard-file-root-1" % stem, "§9.3: the same, the root of the shard file is given", None, what, shard_root, data)
        add("c-%s-shard-file-root-2" % stem, "§9.3: the same, the root of the container is given", None, what, other_root, generate(100, 9))
    files, _ = F(k=2, parts=((300, 64, 3),))
    add("s-magic-as-record", "§9.3: one bit makes the first magic that of a record", None,
        {x: y[:4] + b"R" + y[5:] if x.endswith("0.shard") else y for x, y in files.items()}, None, generate(300, 7))
    add("s-and-container", "§9.3: among shard files a container is foreign", None, dict(files, c=other), None, generate(300, 7))
    fake = MAGIC_R * 5 + C(lie=dict(version=2))[0] + C(rec=poke(0, 1))[0] + C(payload=P50[::-1])[0][:256] + MAGIC_S + MAGIC_X
    outer, _ = C(k=2, parts=((len(fake), 64 * ceil_div(len(fake), 128), 1),), payload=fake)
    add("c-imitation", "§9.1: the payload imitates records", None, outer, None, fake)
    add("c-imitation-damaged", "§9.1: the payload imitates records, and its record is damaged", None, flipped(outer, 8), None, fake)
    head = C(m=0, parts=((8192, 8192, 1),))[0][:128]
    head = put_crc(bytearray(flipped(head, 64)))
    add("c-false-headers", "§9.1: hashed bodies exceed 8 times the bytes read", "refused", head * 40 + bytes(8192))

    # ---- shard folders
    parts, P300 = ((300, 64, 3),), generate(300, 7)
    files, root = F(k=2, parts=parts)
    a, b, c = list(files.values())
    size = 3 * 128
    add("s-k-1", "§10: k − 1 shards", "damaged", [a])
    add("s-k", "§10: k shards", None, {"q": b, "r": c}, None, P300)
    add("s-file-names", "§8: a file's name says nothing", None, {"x.000.shard": c, "x.001.shard": a, "x.002.shard": b}, None, P300)
    add("s-wrong-root", "§11: another root is asked for", "wrong-root", [a, b], hashlib.sha256(b"other").digest())
    add("s-root", "§11: the root is given", None, [a, b], root, P300)
    second, second_root = F(k=2, parts=parts, h=BLAKE3)
    both = dict({"a" + x: y for x, y in list(files.items())[:2]}, **{"b" + x: y for x, y in list(second.items())[1:]})
    add("s-two-encodings", "§11: two roots could be restored", "ambiguous", both)
    add("s-two-encodings-root-1", "§11: two encodings, the root is given", None, both, root, P300)
    add("s-two-encodings-root-2", "§11: two encodings, the root is given", None, both, second_root, P300)
    add("s-two-encodings-one-whole", "§11: two encodings, one of which could be restored", None, [a, b, list(second.values())[0]], None, P300)
    add("s-two-encodings-other-root", "§11: two encodings, only one has enough shards, the other is asked for", "damaged", [a, b, list(second.values())[0]], second_root)
    add("s-copy-bad-first", "§10.1: a valid copy beats an invalid one", None, {"a": flipped(a, 4100, 4170), "b": a, "c": b}, None, P300)
    add("s-copy-bad-last", "§10.1: a valid copy beats an invalid one", None, {"a": a, "b": b, "c": flipped(a, 4100, 4170)}, None, P300)
    add("s-copies-each-half", "§10.1: two damaged copies of a shard make one whole", None, {"a": flipped(a, 4100), "b": flipped(a, 4170), "c": b}, None, P300)
    add("s-body-damaged", "§10: k shards, one body byte differs", "damaged", [flipped(a, 4100), b])
    add("s-header-first-damaged", "§8: the first header is damaged", None, [flipped(a, 40), b], None, P300)
    add("s-header-last-damaged", "§8: the last header is damaged", None, [a, flipped(b, len(b) - 400)], None, P300)
    add("s-header-mixed", "§8: one header's version is 2, the other is good", None,
        [put_crc(bytearray(a[:32] + b"\2" + a[33:512])) + a[512:], b], None, P300)
    add("s-proofs-first-damaged", "§8: the first proofs are damaged", None, [flipped(a, 520, 650, 780), b], None, P300)
    add("s-proofs-second-damaged", "§8: the second proofs are damaged", None, [a, flipped(b, *[len(b) - 512 - size + 128 * s for s in range(3)])], None, P300)
    add("s-proofs-one-copy-each", "§8: one proof of each copy is damaged", None, [flipped(a, 520, len(a) - 512 - size + 130), b], None, P300)
    add("s-proofs-both-damaged", "§8: both copies of one proof are damaged", "damaged", [flipped(a, 520, len(a) - 512 - size + 8), b])
    new = generate(10, 5)
    for stem, rule, at, cut, extra in (
            ("inserted-between-sets", "10 bytes inserted between two sets", 4160, 0, new), ("inserted-in-gap", "10 bytes inserted before the body", 3000, 0, new),
            ("inserted-in-first-proofs", "10 bytes inserted into the first proofs", 600, 0, new), ("inserted-in-second-proofs", "10 bytes inserted into the second proofs", 4300, 0, new),
            ("inserted-first", "10 bytes inserted before the file", 0, 0, new), ("appended", "10 bytes appended", len(a), 0, new),
            ("inserted-in-header", "10 bytes inserted into the first header", 100, 0, new), ("deleted-in-gap", "33 bytes deleted before the body", 3000, 33, b""),
            ("deleted-header-first", "the first header is gone", 0, 512, b""), ("deleted-header-last", "the last header is gone", len(a) - 512, 512, b""),
            ("deleted-proofs-first", "the first proofs are gone", 512, size, b""), ("deleted-to-body", "all before the body is gone", 0, 4096, b""),
            ("cut-after-body", "all behind the body is gone", 4096 + 192, 9999, b"")):
        add("s-" + stem, "§8: k shards; " + rule, None, [a[:at] + extra + a[at + cut:], b], None, P300)
    for stem, rule, at, cut, extra in (("inserted-in-set", "10 bytes inserted into set 1", 4170, 0, new), ("deleted-in-set", "5 bytes deleted from set 1", 4170, 5, b""),
                                       ("deleted-set", "the whole of set 1 deleted", 4160, 64, b"")):
        changed = a[:at] + extra + a[at + cut:]
        add("s-" + stem + "-k", "§8: k shards; " + rule, "damaged", [changed, b])
        add("s-" + stem, "§8: k + 1 shards; " + rule + "; the other sets are usable", None, [changed, b, flipped(c, 4100, 4240)], None, P300)
    return out


def write_json(name, items):
    store(name, ("[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]\n").encode())


def golden(folder):
    for old in ("files", "errors"):
        shutil.rmtree(os.path.join(folder, old), ignore_errors=True)
    vectors = []
    for case in encode_cases():
        v, files = encode_vector(case)
        vectors.append(v)
        if "path" in v and v["form"] == "container":
            store(os.path.join(folder, v["path"]), files[0])
        elif "path" in v:
            for name, data in shard_names(v["file_name"], files).items():
                store(os.path.join(folder, v["path"], name), data)
    assert len({v["name"] for v in vectors}) == len(vectors)
    write_json(os.path.join(folder, "encode.json"), vectors)
    errors = []
    for name, rule, cls, what, root, payload in error_cases():
        where = "errors/" + name + ("" if isinstance(what, dict) else ".fec")
        for file, data in what.items() if isinstance(what, dict) else [("", what)]:
            store(os.path.join(folder, where, file).rstrip("/"), data)
        v = {"name": name, "rule": rule, "path": where, "root": root.hex() if root else None, "class": cls, "exit": EXIT[cls]}
        if payload is not None:
            v.update(payload_len=len(payload), payload_sha256=hashlib.sha256(payload).hexdigest())
        errors.append(v)
    assert len({v["name"] for v in errors}) == len(errors)
    write_json(os.path.join(folder, "errors.json"), errors)
    print("%d encodings, %d errors" % (len(vectors), len(errors)))


def check(folder):
    bad = 0

    def expect(name, result, cls, payload_sha, root):
        nonlocal bad
        sha = hashlib.sha256(result.payload).hexdigest() if result.payload is not None else None
        if result.cls != cls or sha != payload_sha or root and not result.cls and result.root.hex() != root:
            bad += 1
            print("%s: class %s instead of %s, root %s" % (name, result.cls, cls, result.root and result.root.hex()))
            print("    " + "\n    ".join(result.lines))

    with open(os.path.join(folder, "encode.json"), encoding="utf-8") as f:
        vectors = {v["name"]: v for v in json.load(f)}
    for case in encode_cases():
        v, files = encode_vector(case)
        if vectors.pop(v["name"], None) != v:
            bad += 1
            print(v["name"] + ": differs")
        sha = hashlib.sha256(generate(v["payload_len"], v["seed"])).hexdigest()
        if "path" in v:
            blobs = load([os.path.join(folder, v["path"])])
            if [x for _, x in blobs] != files:
                bad += 1
                print(v["name"] + ": the stored files differ")
        blobs = [(str(i), x) for i, x in enumerate(files)]
        result = read_all(blobs)
        expect(v["name"], result, None, sha, v["root"])
        if not result.clean:
            bad += 1
            print(v["name"] + ": not clean")
        # the first m of n shards lost: the most that can be repaired
        m, n = v["m"], v["k"] + v["m"]
        if v["form"] == "container":
            scan = Scan(files[0])
            blobs = [("cut", b"".join(files[0][r.pos:r.end] for r in scan.records if (r.i + r.s + r.pg.nr) % n >= m))]
        if m and v["k"] < 200 or v["payload_len"] % 3 == 0:
            expect(v["name"] + " (repaired)", read_all(blobs[m:] if v["form"] == "shards" else blobs), None, sha, v["root"])
    for name in vectors:
        bad += 1
        print(name + ": not written by this program")
    with open(os.path.join(folder, "errors.json"), encoding="utf-8") as f:
        errors = json.load(f)
    for v in errors:
        result = read_all(load([os.path.join(folder, v["path"])]), bytes.fromhex(v["root"]) if v["root"] else None)
        expect(v["name"], result, v["class"], v.get("payload_sha256"), v["root"])
        if result.exit != v["exit"]:
            bad += 1
            print(v["name"] + ": exit")
    print("%d errors; %s" % (len(errors), "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0


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
                               ("GROUP", "dda876e0bf4b9df9", "9ef8efb1dbffc616"), ("PARAM", "5046ccf4abebd761", "ea55abd695e721f2"),
                               ("ROOT", "5682b93b24857138", "c3f964010abe9e13")):
        assert node(BLAKE3, tag, bytes(64))[:8].hex() == first and node(SHA256, tag, bytes(64))[:8].hex() == second, tag
    assert b"".join(evaluate([0, 1], [b"\x12", b"\xA5"], [2, 3, 4])).hex() == "61d6f4"
    rows = [generate(64, s) for s in range(5)]
    more = evaluate(range(5), rows, range(5, 12))
    assert evaluate([11, 3, 6, 8, 5], [more[6], rows[3], more[1], more[3], more[0]], [0, 1, 2, 4, 7]) == rows[:3] + [rows[4], more[2]]
    assert crc32c(b"123456789") == 0xE3069283
    assert [clog2(x) for x in (0, 1, 2, 3, 4, 5, 256, 257)] == [0, 0, 1, 2, 2, 3, 8, 9]
    print("ok")


# ---------------------------------------------------------------- commands

def main():
    top = argparse.ArgumentParser(description="second implementation of the formats of fec")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    enc = commands.add_parser("encode")
    enc.add_argument("--form", choices=FORMS, required=True)
    enc.add_argument("--hash", choices=HASHES, default="blake3")
    for option in ("--set-size", "--group-size"):
        enc.add_argument(option, type=int)
    enc.add_argument("-k", type=int, required=True)
    enc.add_argument("-m", type=int, required=True)
    enc.add_argument("--name")
    enc.add_argument("-o", required=True)
    enc.add_argument("file")
    for name in ("decode", "verify"):
        dec = commands.add_parser(name)
        dec.add_argument("--root", type=bytes.fromhex)
        if name == "decode":
            dec.add_argument("-o", required=True)
        dec.add_argument("paths", nargs="+")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return globals()[args.command](args.folder)
    if args.command == "encode":
        with open(args.file, "rb") as f:
            payload = f.read()
        name = args.name or os.path.basename(args.file)
        if args.k < 1 or args.m < 0 or args.k + args.m > 256 or min(args.set_size or 1, args.group_size or 1) < 1:
            top.error("shape, set size or group size is out of range")
        try:
            if args.form == "shards":
                check_meta(entry(2, os.fsencode(name)))
            files, root = encode(FORMS[args.form], HASHES[args.hash], args.k, args.m, payload, args.set_size, args.group_size, os.fsencode(name))
        except Fault as fault:
            top.error(fault.text)
        for file, data in shard_names(name, files).items() if args.form == "shards" else [("", files[0])]:
            store(os.path.join(args.o, file) if file else args.o, data)
        print(root.hex())
        return 0
    if args.root is not None and len(args.root) != 32:
        top.error("a root has 64 hex digits")
    result = read_all(load(args.paths), args.root)
    if args.command == "verify":
        print("\n".join(result.lines))
        return 0 if result.clean else 1 if result.cls is None else result.exit
    if result.cls:
        print("\n".join(result.lines), file=sys.stderr)
        return result.exit
    store(args.o, result.payload)
    print(result.root.hex())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(4)
