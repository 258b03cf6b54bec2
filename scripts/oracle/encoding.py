"""The second implementation of the formats of fec, written from docs/FORMAT.md alone ("§" refers to it).

    oracle encoding selftest
    oracle encoding encode --form shards|container -k K -m M [--hash blake3|sha256] [--set-size N] [--group-size G | --whole yes|no]
                     [--name NAME] [--sha256-entry] [--blake3-entry] [--sealed] -o OUT FILE
    oracle encoding decode [--root HEX] [--strict] [--range FROM TO] -o OUT PATH…       a folder of shard files, shard files, or one container
    oracle encoding verify [--root HEX] [--strict] PATH…
    oracle encoding golden DIR                             writes the test vectors (the same bytes on each run)
    oracle encoding check DIR                              reads them all again

Exit codes: 0 ok, 1 verify: damaged but restorable, 2 usage or ambiguous, 3 cannot be restored, 4 I/O, 5 invalid or wrong root, 6 refused.
Needs Python 3.9 and nothing else; the package `blake3` is used when it is there. It is plain and slow on purpose.
"""
import argparse
import hashlib
import json
import operator
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
MAGIC_M = bytes.fromhex("896665634D0D0A1A")  # §9 meta frame
MAGIC_X = bytes.fromhex("89666563580D0A1A")  # §9 index
MAGIC_A = bytes.fromhex("89666563410D0A1A")  # §9.4 annex
ZERO32 = bytes(32)

# §11, worst first for "several causes"; the exit codes of decode.
EXIT = {None: 0, "damaged": 3, "refused": 6, "invalid": 5, "wrong-root": 5, "ambiguous": 2}
WORST = ["refused", "invalid", "wrong-root", "damaged"]

# §12, the column of fec; §10.3; §9.1
LAST_GROUPS, INDEXES_KEPT, INDEX_BYTES_KEPT, FRAMES_KEPT = 65536, 64, 32 << 20, 64
OTHER_CHOICES = 16
WORK = 1 << 30


class Fault(Exception):
    """An object that is not accepted: cls is a class of §11."""

    def __init__(self, cls, text, version=False):
        super().__init__(text)
        self.cls, self.text, self.version = cls, text, version


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
    missing = list(dict.fromkeys(x for x in inputs if x not in digest_memo))
    if missing:
        if len(digest_memo) > 20000:
            digest_memo.clear()
            missing = list(dict.fromkeys(inputs))
        digest_memo.update(zip(missing, own_blake3(missing)))
    return [digest_memo[x] for x in inputs]


def digest(h, data):
    return digests(h, [data])[0]


# §3
TAGS = {name: text.encode().ljust(32) for name, text in (
    ("LEAF", "fec/1 leaf: digest, set, index"), ("NODE", "fec/1 node: left, right"), ("SET", "fec/1 set: originals, recovery"),
    ("LINK", "fec/1 link: geometry, before"), ("GROUP", "fec/1 group: set tree, link"))}
# Remembered, because a reader comes to the same shards and upper nodes again and again
node_memo, digest_memo = {}, {}


def forget():
    node_memo.clear()
    digest_memo.clear()


def nodes(h, tag, inputs):
    """N(tag, x) for several x"""
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
LAST, CRITICAL, SEALED = 1, 14, 16


def pack(geo):
    return struct.pack("<BBBBHHIIQQ", *geo)


def unpack(data):
    return Geo(*struct.unpack("<BBBBHHIIQQ", data))


def check_kind(hash_, form, flags, place, is_p):
    """§4.1, rule 1 behind the version, of which a meta frame has these three fields alone."""
    if hash_ not in (1, 2) or form != place or flags & (CRITICAL | LAST if is_p else CRITICAL):
        raise Fault("refused", "rule 1: hash, form or flags")


def check_geometry(geo, form, is_p):
    """§4.1; form is the one this kind of file has; is_p tells P from Pg."""
    k, n, L, G, b = geo.k, geo.k + geo.m, geo.L, geo.G, geo.payload
    if geo.version != 1:
        raise Fault("refused", "rule 1: version")
    check_kind(geo.hash, geo.form, geo.flags, form, is_p)
    if k == 0 or n > 256 or L > 1 << 26 or b >= 1 << 63 or geo.nr >= ((1 << 32) if is_p else (1 << 32) - 1):
        raise Fault("refused", "rule 2: out of range")
    last = bool(geo.flags & LAST)
    if L == 0 or L % 64 or G == 0 or is_p and geo.nr == 0:
        raise Fault("invalid", "rule 3: L, G or N")
    if geo.nr == 1 if is_p else geo.nr == 0 and last:
        if L != 64 * max(1, ceil_div(b, 64 * k * G)) or G > max(1, ceil_div(b, 4096 * k)):
            raise Fault("invalid", "rule 4: L or G is not canonical")
    elif is_p:
        if L < 4096 or not (geo.nr - 1) * k * G * L < b <= geo.nr * k * G * L:
            raise Fault("invalid", "rule 5: L is below 4096, or payload and number of groups do not agree")
    elif not last:
        if b != k * G * L or L < 4096:
            raise Fault("invalid", "rule 6: a group before the last is not full, or its L is below 4096")
    elif b == 0 or L != 64 * ceil_div(b, 64 * k * G) or G > ceil_div(b, 4096 * k):
        raise Fault("invalid", "rule 7: L or G of the last group is not canonical")
    if form == SHARDS and (is_p or geo.nr or not last):
        raise Fault("invalid", "§4.1: shard files have one group")


def group_of(P, g):
    """§4.2: the Pg of group g."""
    if g < P.nr - 1:
        return P._replace(payload=P.k * P.G * P.L, nr=g)
    if P.nr == 1:
        return P._replace(flags=P.flags | LAST, nr=0)
    b = P.payload - (P.nr - 1) * P.k * P.G * P.L
    G = ceil_div(b, P.k * P.L)
    return P._replace(flags=P.flags | LAST, payload=b, G=G, L=64 * ceil_div(b, 64 * P.k * G), nr=g)


def plan(form, h, k, m, B, set_size=None, group_size=None, whole=True, flags=0):
    """§4.3: P."""
    n = k + m

    def shard_len():
        return 64 * ceil_div(set_size, 64 * k)

    if set_size is None:
        set_size = 1 << 22
        while n * shard_len() > 1 << 24:
            set_size //= 2
        while ceil_div(B, k * shard_len()) > 1 << 20 and n * shard_len() <= 24 << 20:
            set_size *= 2
    L0 = shard_len()
    if not 4096 <= L0 <= 1 << 26:
        raise Fault("refused", "§4.3: with this set size shards would have %d bytes; 4096 to 2^26 are allowed" % L0)
    N, G0 = 1, group_size or max(1, (48 << 20) // (n * L0))
    if not whole:
        N = max(1, ceil_div(B, k * G0 * L0))
    if N == 1:
        G = max(1, ceil_div(B, k * L0))
        P = Geo(1, h, form, flags, k, m, 64 * max(1, ceil_div(B, 64 * k * G)), G, B, 1)
    else:
        P = Geo(1, h, form, flags, k, m, L0, G0, B, N)
    if P.G >= 1 << 32 or N >= 1 << 32:
        raise Fault("refused", "§4: more than 2^32 − 1 sets or groups")
    for g in {0, N - 1}:
        check_geometry(group_of(P, g), form, False)
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
    """32 zero bytes for no hashes (Q of a set without recovery shards)."""
    return tree(h, hashes)[-1][0] if hashes else ZERO32


def path(levels, pos):
    out = []
    for level in levels[:-1]:
        if pos ^ 1 < len(level):
            out.append(level[pos ^ 1])
        pos >>= 1
    return b"".join(out)


def follow(h, value, pos, count, field):
    """The root that a path leads to, and the rest of its field."""
    used = 0
    while count > 1:
        if pos ^ 1 < count:
            other = field[used:used + 32]
            value = node(h, "NODE", other + value if pos & 1 else value + other)
            used += 32
        pos, count = pos >> 1, (count + 1) >> 1
    return value, field[used:]


def leaf_input(d, s, i):
    return d + struct.pack("<II", s, i) + bytes(24)


def set_field(geo):
    """§6.1: the bytes of the set path's field"""
    return 32 * (clog2(max(geo.k, geo.m)) + 1)


def proof_size(geo):
    return set_field(geo) + 32 * clog2(geo.G)


def group_root(h, pg, X, before):
    """GR; before is M or the GR of the group before"""
    return node(h, "GROUP", X + node(h, "LINK", pack(pg) + before))


def chain_roots(P, X, M):
    """GR of all groups of P; the last one is R."""
    out = []
    for g in range(P.nr):
        out.append(group_root(P.hash, group_of(P, g), X[g], out[-1] if g else M))
    return out


def set_root(h, k, leaves):
    """(SR, O) of the leaves of a set"""
    O = tree_root(h, leaves[:k])
    return node(h, "SET", O + tree_root(h, leaves[k:])), O


def follow_proof(pg, d, s, i, proof):
    """§6.1: (X, SR, O) that digest d and the proof lead to."""
    h, k, cut = pg.hash, pg.k, set_field(pg)
    own, rest = follow(h, node(h, "LEAF", leaf_input(d, s, i)), i if i < k else i - k, k if i < k else pg.m, proof[:cut])
    O, Q = (own, rest[:32]) if i < k else (rest[:32], own)
    if pg.m == 0 and any(Q):
        raise Fault("damaged", "§5: a proof without recovery shards whose other root is not zero")
    sr = node(h, "SET", O + Q)
    X, unused = follow(h, sr, s, pg.G, proof[cut:])
    if any(rest[32:]) or any(unused):
        raise Fault("damaged", "§6.1: the unused rest of a path is not zero")
    return X, sr, O


# ---------------------------------------------------------------- §7 meta

META_LIMIT = 65536


def entry(kind, data):
    return struct.pack("<BH", kind, len(data)) + data


def check_meta(meta):
    """The entries {type: bytes}"""
    pos, before, entries = 0, -1, {}
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
        if kind in (3, 5) and size != 32:
            raise Fault("invalid", "§7: a digest of the payload has 32 bytes")
        if kind == 7:
            types = [struct.unpack_from("<I", data, at)[0] for at in range(0, size - size % 44, 44)]
            if size % 44 or any(x >= y for x, y in zip(types, types[1:])):
                raise Fault("invalid", "§7: blocks kept in annexes")
        entries[kind] = data
        pos, before = pos + 3 + size, kind
    return entries


def make_meta(name=b"", payload=b"", digests_of=(), extra=b""):
    """digests_of: of SHA256 and BLAKE3, those whose digest of the payload is recorded"""
    meta = entry(2, name) if name else b""
    for kind, h in ((3, SHA256), (5, BLAKE3)):
        meta += entry(kind, digest(h, payload)) if h in digests_of else b""
    return meta + extra


# ---------------------------------------------------------------- the writer
# The hooks (alter, lie, rec, …) let the negative vectors be signed properly although they break a rule; the normal writer has none of them.

class Group:
    def __init__(self, geo, piece, before, alter=None, lie=None):
        """geo is what is built; before is M, or GR of the group before. alter may change the shards before they are hashed, lie what Pg says."""
        h, k, n, L, G = geo.hash, geo.k, geo.k + geo.m, geo.L, geo.G
        self.geo, self.pg, self.before = geo, geo._replace(**(lie or {})), before
        piece = piece[:k * G * L].ljust(k * G * L, b"\0")                                # §5
        rows = [piece[i * G * L:(i + 1) * G * L] for i in range(k)]
        rows += evaluate(list(range(k)), rows, range(k, n))                              # §2; all sets of the group at once
        self.shards = [[row[s * L:(s + 1) * L] for s in range(G)] for row in rows]       # [i][s]
        if alter:
            alter(self.shards)
        found = digests(h, [x for row in self.shards for x in row])
        leaves = nodes(h, "LEAF", [leaf_input(found[i * G + s], s, i) for s in range(G) for i in range(n)])
        self.sets = [[tree(h, leaves[s * n:s * n + k]), tree(h, leaves[s * n + k:s * n + n] or [ZERO32])] for s in range(G)]   # O and Q
        self.top = tree(h, [node(h, "SET", O[-1][0] + Q[-1][0]) for O, Q in self.sets])
        self.X = self.top[-1][0]
        self.gr = group_root(h, self.pg, self.X, before)

    def proof(self, s, i):
        a, b, k = set_field(self.pg), 32 * clog2(self.pg.G), self.geo.k
        mine, other = self.sets[s] if i < k else self.sets[s][::-1]
        return (path(mine, i if i < k else i - k) + other[-1][0]).ljust(a, b"\0")[:a] + path(self.top, s).ljust(b, b"\0")[:b]


def p_of(groups, lie=None):
    """P of these groups."""
    first = groups[0].pg
    P = first._replace(flags=first.flags & ~LAST, payload=sum(g.pg.payload for g in groups), nr=len(groups))
    return P._replace(**(lie or {}))


def put_crc(head, rest=b""):
    head = bytearray(head)
    head[8:12] = struct.pack("<I", crc32c(bytes(head[12:]) + bytes(rest)))
    return bytes(head) + bytes(rest)


def padded(data, to=64):
    return bytes(data) + bytes(-len(data) % to)


def write_shards(group, meta, hdr=None, prf=None, gap=None, met=None):
    """§8: the n files, and the root."""
    geo, pg = group.geo, group.pg
    files = []
    for i in range(geo.k + geo.m):
        head = bytearray(MAGIC_S + bytes(8) + struct.pack("<IIQ", i, len(meta), pg.G * pg.L) + pack(pg) + group.gr + group.X + group.before + ZERO32)
        if hdr:
            hdr(i, head)
        head = put_crc(head)
        proofs = [bytearray(group.proof(s, i)) for s in range(geo.G)]
        for s in range(geo.G):
            if prf:
                prf(s, i, proofs[s])
        proofs, info = b"".join(proofs), bytearray(padded(meta))
        if met:
            met(info)
        zeros = bytearray(-(192 + len(info) + len(proofs)) % (4096 if geo.G * geo.L >= 65536 else 64))
        if gap:
            gap(zeros)
        files.append(b"".join([head, info, proofs, zeros, b"".join(group.shards[i]), proofs, info, head]))
    return files, group.gr


def write_meta_frame(h, P, meta, mh=None):
    """§9: MH and the meta"""
    head = bytearray(MAGIC_M + bytes(8) + struct.pack("<I", len(meta)) + bytes(12) + pack(P)[:4] + bytes(28) + digest(h, meta) + ZERO32)
    body = bytearray(padded(meta))
    if mh:
        mh(head, body)
    return put_crc(head, body)


META_COPY = 4                               # §9.4, type of an annex


def copy_places(k, m):
    """§9: the shards of group 0 in front of whose first records a copy of the meta frame stands"""
    return [ceil_div(j * (k + m), m + 1) - 1 for j in range(1, m + 2)]


def has_seal(flags, meta):
    """§9: the payload is sealed, and what opens it stands in this meta"""
    try:
        return bool(flags & SEALED) and 9 in check_meta(meta)
    except Fault:
        return False


def write_container(groups, P, meta=b"", rec=None, xh=None, idx=None, mh=None, keep=None, index=True, frame=True, copies=True):
    """§9: the bytes, and the root."""
    h = groups[0].geo.hash
    out = [write_meta_frame(h, P, meta, mh)] if meta and frame else []
    places = copy_places(P.k, P.m) if copies and has_seal(P.flags, meta) else []
    for g, group in enumerate(groups):
        for i in range(group.geo.k + group.geo.m):
            if g == 0 and i in places:
                out.append(annex(META_COPY, write_meta_frame(h, P, meta)))
            for s in range(group.geo.G):
                header = bytearray(MAGIC_R + bytes(8) + struct.pack("<IIQ", s, i, 0) + pack(group.pg) + group.gr + group.before)
                proof = bytearray(padded(group.proof(s, i)))
                if rec:
                    rec(g, s, i, header, proof)
                if keep is None or keep(g, s, i):
                    out.append(put_crc(header, proof) + group.shards[i][s])
    R, M = groups[-1].gr, digest(h, meta)
    body = bytearray(padded(b"".join(x.X for x in groups) + meta))
    if idx:
        idx(body)
    head = bytearray(MAGIC_X + bytes(8) + struct.pack("<QII", len(body), len(meta), 0) + pack(P) + R + M)
    if xh:
        xh(head)
    head = put_crc(head)
    if index:
        out += [head, body, head, body, head]
    return b"".join(out), R


def annex(kind, data, size=None, head=None):
    """§9.4; size and head (a hook) may lie"""
    ah = bytearray(MAGIC_A + bytes(4) + struct.pack("<IQQ", kind, len(data) if size is None else size, 0))
    if head:
        head(ah)
    ah[8:12] = struct.pack("<I", crc32c(bytes(ah[12:]) + data))
    return bytes(ah) + data + bytes(ah)


def encode(form, h, k, m, payload, set_size=None, group_size=None, meta=b"", whole=True, flags=0, copies=True):
    """(list of files, root); copies: as writers put them into containers of sealed payloads now"""
    P = plan(form, h, k, m, len(payload), set_size, group_size, whole, flags)
    step, groups, before = P.k * P.G * P.L, [], digest(h, meta)
    for g in range(P.nr):
        groups.append(Group(group_of(P, g), payload[g * step:(g + 1) * step], before))
        before = groups[-1].gr
    if form == SHARDS:
        return write_shards(groups[0], meta)
    data, root = write_container(groups, P, meta, copies=copies)
    return [data], root


# ---------------------------------------------------------------- the reader: sets and groups (§10)

def restore_set(pg, s, have, root, strict=False):
    """§10.3: the k originals, from the proved shards {i: bytes} of a set; root = (SR, O)."""
    h, k, n = pg.hash, pg.k, pg.k + pg.m
    if len(have) < k:
        raise Fault("damaged", "set %d has %d valid shards of the %d it needs" % (s, len(have), k))

    def leaves(shards, first):
        return nodes(h, "LEAF", [leaf_input(d, s, first + j) for j, d in enumerate(digests(h, shards))] if shards else [])

    rows = {i: have[i] for i in have if i < k}
    known = sorted(rows)
    missing = [i for i in range(k) if i not in rows]
    if missing:
        recovery, r = sorted(i for i in have if i >= k), len(missing)
        a = len(recovery)
        T = min(a, OTHER_CHOICES) if a > r else 1
        for t in range(T):
            points = known + [recovery[(t * a // T + j) % a] for j in range(r)]
            rows.update(zip(missing, evaluate(points, [have[i] for i in points], missing)))
            if tree_root(h, leaves([rows[i] for i in range(k)], 0)) == root[1]:
                break
        else:
            raise Fault("invalid", "§10.3: set %d is not a codeword" % s)
    originals = [rows[i] for i in range(k)]
    if strict:
        recovery = evaluate(list(range(k)), originals, range(k, n))
        if set_root(h, k, leaves(originals, 0) + leaves(recovery, k))[0] != root[0]:
            raise Fault("invalid", "§10.5: the recovery shards of set %d do not belong to its originals" % s)
    return originals


def restore_group(pg, sets, roots, strict=False, span=None):
    """sets: {s: {i: bytes}}, roots: {s: (SR, O)}; gives the piece of the payload. All faults are looked for, the worst is raised.
    With a span (from, to) of the piece only that is restored."""
    k, L, G = pg.k, pg.L, pg.G
    if span and span[1] > pg.payload:
        raise Fault("damaged", "a part of the range is behind the end")
    if span is None:
        needed = sorted(sets)
        faults = [] if len(sets) == G else [Fault("damaged", "%d of %d sets are gone" % (G - len(sets), G))]
    else:
        rows = range(span[0] // L, ceil_div(span[1], L))
        needed = sorted({r % G for r in rows})
        faults = []
    whole = {}
    for s in needed:
        try:
            have = sets.get(s, {})
            if span and all(r // G in have for r in rows if r % G == s):     # §10.2: an original that is proved is payload
                whole[s] = have
            else:
                whole[s] = dict(enumerate(restore_set(pg, s, have, roots.get(s), strict)))
        except Fault as fault:
            faults.append(fault)
    raise_worst(faults)
    if span:
        return b"".join(whole[r % G][r // G] for r in rows)[span[0] - rows[0] * L:][:span[1] - span[0]] if rows else b""
    piece = b"".join(whole[s][i] for i in range(k) for s in range(G))
    if any(piece[pg.payload:]):
        raise Fault("invalid", "§5: bytes past the end of the payload are not zero")
    return piece[:pg.payload]


def compare_digests(meta, payload):
    """§7, for a strict reader"""
    entries = check_meta(meta)
    for kind, h in ((3, SHA256), (5, BLAKE3)):
        if entries.get(kind, digest(h, payload)) != digest(h, payload):
            raise Fault("invalid", "§7: the payload is not what entry %d of the meta says" % kind)


def check_seal(stream):
    """§20.3: whatever is left of a sealed payload, nobody can open it"""
    if stream.flags & SEALED and stream.meta is None:
        raise Fault("damaged", "§20.3: it is sealed, and every copy of its meta is lost")


def raise_worst(faults):
    if faults:
        raise min(faults, key=lambda f: WORST.index(f.cls))


class Notes:
    """What was found wrong. §11: one byte that rotted is no future version."""

    def __init__(self):
        self.faults, self.right = [], False        # right: a header of version 1 whose CRC is right was found

    def settle(self):
        for fault in self.faults:
            if fault.version and self.right:
                fault.cls = "damaged"


# ---------------------------------------------------------------- the reader: annexes (§9.4)

def annex_size(data, pos):
    """The size of the whole annex that stands at pos, or None; and how many bytes its CRC was computed over."""
    if data[pos:pos + 8] != MAGIC_A or pos + 64 > len(data):
        return None, 0
    head = data[pos:pos + 32]
    crc, _, size, zero = struct.unpack("<IIQQ", head[8:])
    if zero or size > 1 << 20 or data[pos + 32 + size:pos + 64 + size] != head:
        return None, 0
    return size + 64 if crc32c(head[12:] + data[pos + 32:pos + 32 + size]) == crc else None, size + 20


def take_off_annexes(data):
    while data[-32:-24] == MAGIC_A:
        start = len(data) - 64 - struct.unpack("<Q", data[-16:-8])[0]
        if start < 0 or annex_size(data, start)[0] != len(data) - start:
            break
        data = data[:start]
    return data


# ---------------------------------------------------------------- the reader: shard files (§8)

Header = namedtuple("Header", "i pg R X M meta_len")


def crc_is_right(data):
    return struct.unpack_from("<I", data, 8)[0] == crc32c(data[12:])


def check_version(data, pos):
    """The first thing that is looked at behind a magic."""
    if data[pos + 32:pos + 33] not in (b"", b"\1"):
        raise Fault("refused", "§4: version %d" % data[pos + 32], version=True)


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
    """What one file gives under one of its headers: valid = {s: bytes}, roots = {s: (SR, O)}, places = where they stand; meta is None if it is lost."""

    def __init__(self, header, data, bases=None, at=()):
        """at: where the header stands."""
        pg, size, meta_size = header.pg, proof_size(header.pg), align(header.meta_len, 64)
        self.header, self.valid, self.roots, self.places = header, {}, {}, []
        a = 192 + meta_size                                                # proofs, body, proofs, meta, the end
        body = align(a + pg.G * size, 4096 if pg.G * pg.L >= 65536 else 64)
        b = body + pg.G * pg.L
        c = b + pg.G * size
        total = c + meta_size + 192
        # bases: where the file would have to begin, once counted from its first header, once from its last
        bases = list(dict.fromkeys(x if x == 0 else x + 192 - total for x in at))
        self.meta = b"" if header.M == digest(pg.hash, b"") else None
        good = []
        for base in bases:
            for start in (base + 192, base + c):
                copy = data[start:start + meta_size] if start >= 0 else b""
                meta = copy[:header.meta_len]
                if len(copy) == meta_size and digest(pg.hash, meta) == header.M and not any(copy[header.meta_len:]):
                    self.meta = meta
                    good.append(start)
        if self.meta is not None:
            check_meta(self.meta)
        for base in bases:
            first = max(0, ceil_div(-body - base, pg.L))
            for s in range(first, min(pg.G, max(0, (len(data) - body - base) // pg.L))):
                place = base + body + s * pg.L
                shard = data[place:place + pg.L]
                d = None if s in self.valid else digest(pg.hash, shard)
                for start in [other + x + s * size for other in bases for x in (a, b)]:
                    if s in self.valid or start < 0 or start + size > len(data):
                        continue
                    try:
                        X, sr, O = follow_proof(pg, d, s, header.i, data[start:start + size])
                    except Fault:
                        continue
                    if X == header.X:
                        self.valid[s], self.roots[s] = shard, (sr, O)
                        self.places.append((place, place + pg.L))
        self.clean = len(self.valid) == pg.G and bases == [0] and len(data) == total and data[:192] == data[-192:] and len(good) == 2 \
            and not any(data[a + pg.G * size:body]) and data[a:a + pg.G * size] == data[b:c]


def header_checks(data):
    """§9.3: magic and CRC are right"""
    return data[:8] == MAGIC_S and len(data) == 192 and crc_is_right(data)


def read_shard_file(data, notes):
    """(does a header check, its ShardFiles)"""
    data = take_off_annexes(data)
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
            result.append(ShardFile(header, data, at=places))
        except Fault as fault:                                   # its meta
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


# ---------------------------------------------------------------- the reader: containers (§9)

Record = namedtuple("Record", "pos end pg gr s i before body sr O")
Index = namedtuple("Index", "pos start P R M X grs meta")
MetaFrame = namedtuple("MetaFrame", "pos end M meta")


class Scan:
    """§9.1"""

    def __init__(self, data, notes, root=None):
        self.data, self.notes, self.root = data, notes, root
        self.records, self.indexes, self.frames, self.faults, self.annexes = [], [], [], [], []
        self.bad_metas = set()                      # M of meta that breaks a rule of §7
        self.has_other_root = False                 # a last group of another root than the given one
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
        """The CRC of a header at pos that is computed up to `end`: is it right?"""
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
        if len({f.M for f in self.frames} | {M}) <= FRAMES_KEPT:
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
        for start in (pos + 128, pos - size):              # the body that follows, or the one that stands before
            if start < 0 or start + size > len(data):
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
        """§12"""
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
        """groups: {g: RecordGroup} of those that have records; N is None when the chain is cut (and root, too)."""
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
        """Every byte is as it was written."""
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
    """§9.2: b names a; does it follow it?"""
    kind = operator.itemgetter(0, 1, 2, 4, 5)
    if a.nr != b.nr - 1 or a.flags & LAST or kind(a) != kind(b) or (a.flags ^ b.flags) & 240:
        raise Fault("invalid", "§9.2: group %d does not fit the one before it" % b.nr)
    P = a._replace(nr=b.nr + 1, payload=b.nr * a.payload + b.payload)
    if b.flags & LAST:
        check_geometry(P, CONTAINER, True)
    if (b.L, b.G) != (a.L, a.G) if not b.flags & LAST else group_of(P, b.nr) != b:
        raise Fault("invalid", "§9.2: L or G of group %d is not what the group before it implies" % b.nr)


def find_chains(scan):
    """§9.2: all chains of a container; notes what does not follow."""
    groups = {}
    for record in scan.records:
        if scan.root is not None and record.pg.flags & LAST and record.gr != scan.root:
            scan.has_other_root = True                           # nothing of it leads to the root: as if it were not there
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


# ---------------------------------------------------------------- the reader: everything together (§9.2, §10, §11)

Result = namedtuple("Result", "cls exit payload root meta clean lines sealed", defaults=[False])


def tried(stream):
    try:
        stream.restore()
        return True
    except Fault:
        return False


def read_one(data, root, is_one, shards, notes):
    """§9.3: the records in a file that stands alone; (scan or None, chains)."""
    if root is not None and root in shards:
        return None, []
    unproved = bytearray(data)
    for shard in shards.values() if root is None else ():
        for f in shard.files:
            for start, end in f.places:
                unproved[start:end] = bytes(end - start)
    inside = Notes()
    scan = Scan(bytes(unproved), inside, root)
    chains = find_chains(scan)
    notes.right = notes.right or inside.right
    if is_one and root is None and not any(tried(x) for x in chains):
        return None, []                                  # a shard file, whatever is in it
    notes.faults += inside.faults
    return scan, chains


def read_all(blobs, several, root=None, strict=False, span=None):
    """blobs: [(name, bytes)], several as load gives it; total: any input gives a Result."""
    lines, notes, shards, chains, scan, bad_header = [], Notes(), {}, [], None, False
    for name, data in blobs:
        is_one, found = read_shard_file(data, notes)
        bad_header = bool(notes.faults)
        for f in found:
            shards.setdefault(f.header.R, ShardStream(f.header)).files.append(f)
            state = "ok" if f.clean else "damaged" if len(f.valid) < f.header.pg.G else "damaged, all sets usable"
            lines.append("%s: root %s shard %d: %d of %d sets: %s" % (name, f.header.R.hex(), f.header.i, len(f.valid), f.header.pg.G, state))
        if not several:
            scan, chains = read_one(data, root, is_one, shards, notes)
        elif not is_one:
            lines.append("%s: not a shard file" % name)
    if scan:
        lines += ["record at %d: group %d set %d shard %d: ok" % (r.pos, r.pg.nr, r.s, r.i) for r in scan.records]
        lines += ["meta frame at %d: ok" % x.pos for x in scan.frames] + ["annex at %d: ok" % start for start, _ in scan.annexes]
        lines += ["index at %d: root %s: ok" % (x.pos, x.R.hex()) for x in scan.indexes]
    streams = list(shards.values()) + chains
    faults = notes.faults
    if root is not None:
        chosen = [x for x in streams if x.root == root]
        if not chosen and (any(x.root for x in streams) or scan and scan.has_other_root):
            faults.append(Fault("wrong-root", "what is there leads to another root"))
    else:
        chosen = streams
        if sum(1 for x in chains if x.root) > LAST_GROUPS:
            return Result("ambiguous", 2, None, None, None, False, lines + ["more than %d last groups" % LAST_GROUPS])
    restored = []
    for x in chosen:
        try:
            restored.append((x, x.restore(strict, span)))
        except Fault as fault:
            faults.append(fault)
            lines.append("root %s: %s: %s" % (x.root.hex() if x.root else "?", fault.cls, fault.text))
    notes.settle()
    lines += ["%s: %s" % (f.cls, f.text) for f in faults]
    if len(restored) > 1:
        return Result("ambiguous", 2, None, None, None, False, lines + ["root " + x.root.hex() for x, _ in restored])
    if restored:
        x, payload = restored[0]
        clean = not bad_header and len(chosen) == 1 and x.clean(scan)
        lines.append("root %s: can be restored, %d bytes" % (x.root.hex(), len(payload)))
        if x.meta is None:
            lines.append("the meta is lost")
        return Result(None, 0, payload, x.root, x.meta, clean, lines, bool(x.flags & SEALED))
    cls = min((f.cls for f in faults), key=WORST.index, default="damaged")
    return Result(cls, EXIT[cls], None, None, None, False, lines + ["cannot be restored: " + cls])


def load(paths):
    """(the files, and whether they are several or a folder)"""
    blobs = []
    for p in paths:
        names = [os.path.join(p, x) for x in sorted(os.listdir(p))] if os.path.isdir(p) else [p]
        for name in names:
            if os.path.isfile(name) or name in paths:
                with open(name, "rb") as f:
                    blobs.append((name, f.read()))
    return blobs, len(paths) > 1 or os.path.isdir(paths[0])


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
    """The fields of a vector that say what is encoded; those that are not named are in DEFAULTS."""
    both = [(f, h) for f in FORMS for h in HASHES]

    def case(form, h, k, m, size, **more):
        return dict(DEFAULTS, form=form, hash=h, k=k, m=m, payload_len=size, **more)

    for number, (k, m) in enumerate(SHAPES):
        small, least = k <= 10, 4096 * k                       # least: the smallest set_size

        def pick(j):
            return both if small else [both[(number + j) % 4]]

        for j, size in enumerate(dict.fromkeys((0, 1, k - 1, k, k + 1, 64 * k - 1, 64 * k, 64 * k + 1))):
            for f, h in pick(j):
                yield case(f, h, k, m, size, stored=(k, m) in ((1, 1), (2, 1)) and size in (1, 64 * k + 1))
        # several sets: lone nodes in the tree, a last set that is not full, L below L0 (down to 2112), the set size that is just allowed
        several = [(least, least + 1)]
        if k <= 2:
            several += [(2 * least, 5 * least), (least - 64 * k + 1, least), (least, 3 * least - 5), (least, 5 * least), (least, 5 * least + 1), (least, 6 * least),
                        (least, 7 * least - 32 * k), (3 * least - 1, 10 * least + 7)]
        elif small:
            several += [(2 * least, 5 * least), (least, 3 * least - 5)]
        for j, (set_size, size) in enumerate(several):
            for f, h in pick(j + 1):
                yield case(f, h, k, m, size, set_size=set_size, stored=(k, m, f) == (2, 1, "container") and size == 3 * least - 5)
        # several groups
        if k <= 2:
            for groups in (1, 2, 3):
                for size in (2 * groups * least - 1, 2 * groups * least, 2 * groups * least + 1, 3 * groups * least + least + 7):
                    for h in HASHES:
                        yield case("container", h, k, m, size, set_size=least, group_size=groups, stored=(k, m) == (2, 1) and (groups, size) == (2, 4 * least + 1))
            for h in HASHES:
                yield case("container", h, k, m, 9 * least + 7, set_size=2 * least, group_size=2, stored=(k, m, h) == (1, 1, "sha256"))   # the last group: one set, smaller L
                yield case("container", h, k, m, 5 * least + 1, set_size=least, group_size=7)                   # one group, although groups are bounded
                yield case("container", h, k, m, 0, set_size=least, group_size=2)
        else:
            yield case("container", list(HASHES)[number % 2], k, m, least + 99, set_size=least, group_size=1)
    for f, h in both:                                                                  # longer shards: BLAKE3 chunks
        for k, m, size in ((1, 1, 1024), (1, 1, 1025), (1, 1, 2048), (1, 0, 3073), (1, 1, 7000), (2, 1, 100000), (10, 4, 100000), (3, 5, 30000)):
            yield case(f, h, k, m, size)
        yield case(f, h, 1, 1, 65535)                                                  # (65,536 bytes of body and more begin at a multiple of 4096)
        yield case(f, h, 1, 1, 65536 - 63)
        yield case(f, h, 1, 1, 65536 - 64)
        yield case(f, h, 2, 1, 2 * 65536 + 1, set_size=8192)
        if (f, h) != both[1]:
            yield case(f, h, 256, 0, 70000)
        # meta
        for entries in (["sha256"], ["blake3"], ["sha256", "blake3"]):
            for size in (0, 1000):
                yield case(f, h, 2, 1, size, entries=entries, file_name="payload.bin")
        yield case(f, h, 1, 1, 100, entries=["sha256", "blake3"], file_name="n" * 255)
        yield case(f, h, 1, 1, 100, file_name="\u00fc" * 127 + "x")                      # 255 bytes in UTF-8; cut in the file's name
        yield case(f, h, 1, 1, 100, file_name="x" + "\u00fc" * 127)
        if f == "container":
            yield case(f, h, 1, 1, 100, file_name="a", stored=True)
            yield case(f, h, 1, 1, 3 * 4096 + 1, set_size=4096, group_size=1, file_name="payload.bin", entries=["sha256"], stored=h == "blake3")
            yield case(f, h, 2, 1, 1000, entries=["sha256"])
        # meta that no present writer makes: an unknown odd entry behind the name
        yield case(f, h, 1, 0 if f == "shards" else 1, 100, file_name="payload.bin", extra={"type": 9, "len": 65536 - 14 - 3}, stored=h == "blake3")
        yield case(f, h, 2, 1, 300, file_name="payload.bin", extra={"type": 9, "len": 400}, stored=h == "sha256")
    # the default set_size (65,536 for this shape); one group for all of it, and groups of the default size (3 sets)
    for f, size, grouping in (("shards", 65537, None), ("container", 196608, "bounded"), ("container", 196609, "whole"), ("container", 196609, "bounded")):
        yield case(f, "sha256", 1, 255, size, grouping=grouping)


DEFAULTS = {"set_size": None, "group_size": None, "grouping": None, "file_name": None, "entries": [], "extra": None, "stored": False}


def encode_vector(case):
    v = dict(case)
    form, size, with_path = v["form"], v["payload_len"], v.pop("stored")
    if form == "shards":
        v["file_name"] = v["file_name"] or "payload.bin"
    else:
        v["grouping"] = v["grouping"] or ("bounded" if v["group_size"] else "whole")
    name = "%s-%s-%d+%d-b%d" % (form, v["hash"], v["k"], v["m"], size)
    name += "".join(mark + str(x) for mark, x in (("-s", v["set_size"]), ("-g", v["group_size"])) if x)
    name += "-bounded" if v["grouping"] == "bounded" and not v["group_size"] else ""
    if v["file_name"] and (form, v["file_name"]) != ("shards", "payload.bin"):
        name += "-name%d" % len(v["file_name"].encode()) + ("u" if v["file_name"][0] > "x" else "")
    name += "".join("-" + x for x in v["entries"]) + ("-extra%d" % v["extra"]["len"] if v["extra"] else "")
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    payload = generate(size, seed)
    extra = entry(v["extra"]["type"], generate(v["extra"]["len"], seed)) if v["extra"] else b""
    meta = make_meta((v["file_name"] or "").encode(), payload, [HASHES[x] for x in v["entries"]], extra)
    files, root = encode(FORMS[form], HASHES[v["hash"]], v["k"], v["m"], payload, v["set_size"], v["group_size"], meta, v["grouping"] != "bounded")
    v = dict({"name": name}, **v, seed=seed, meta_len=len(meta), root=root.hex(), file_len=len(files[0]), digests=[hashlib.sha256(x).hexdigest() for x in files])
    if with_path:
        v["path"] = "files/" + name + ("" if form == "shards" else ".fec")
    return v, files


def shard_names(stem, files):
    """§8: the file names; stem is bytes or text"""
    stem = os.fsencode(stem)
    if len(stem) + 10 > 255:
        end = 245
        while end > 242 and stem[end] & 0xC0 == 0x80:
            end -= 1
        stem = stem[:end]
    return {"%s.%03d.shard" % (os.fsdecode(stem), i): x for i, x in enumerate(files)}


def forge(form, parts=((50, 64, 1),), h=SHA256, k=1, m=1, lie=None, p=None, alter=None, pieces=None, payload=None, meta=None, **hooks):
    """A container or shard files signed over whatever the arguments say. parts: (payload bytes, L, G[, other fields]) of each group;
    lie: fields of every Pg (and so of P) that differ from what is built; p: of P alone."""
    groups, pos = [], 0
    payload = generate(sum(part[0] for part in parts), 7) if payload is None else payload
    meta = (entry(2, b"a") if form == SHARDS else b"") if meta is None else meta
    before = digest(h, meta)
    for g, part in enumerate(parts):
        geo = Geo(1, h, form, int(g == len(parts) - 1), k, m, part[1], part[2], part[0], g)._replace(**(part[3] if len(part) > 3 else {}))
        groups.append(Group(geo, pieces[g] if pieces else payload[pos:pos + geo.payload], before, alter, lie))
        pos, before = pos + geo.payload, groups[-1].gr
    if form == SHARDS:
        return write_shards(groups[0], meta, **hooks)
    return write_container(groups, p_of(groups, p), meta, **hooks)


def part(b, G, k=1):
    """One group of b bytes and G sets for forge, with the canonical L"""
    return b, 64 * max(1, ceil_div(b, 64 * k * G)), G


def poke(at, value):
    """A hook that changes one byte: of a header, by XOR."""
    def change(*args):
        args[-1][at] ^= value
    return change


def poke_head(at, value):
    """The same for the header of a record or a meta frame (the proof or the meta is the hook's last argument)."""
    def change(*args):
        args[-2][at] ^= value
    return change


def flipped(data, *places):
    data = bytearray(data)
    for at in places:
        data[at] ^= 1
    return bytes(data)


def spots(data, magic):
    return [at for at in range(len(data)) if data.startswith(magic, at)]


def error_cases():
    """(name, rule, class, bytes or {file name: bytes}, root or None, payload or None, {more fields of the vector})"""
    out = []

    def add(name, rule, cls, what, root=None, payload=None, **more):
        if isinstance(what, list):
            what = shard_names("x", what)
        assert (cls is None) == (payload is not None), name
        out.append((name, rule, cls, what, root, payload, more))

    def F(only=None, **o):
        """shard files; only: the indices that are there"""
        files, root = forge(SHARDS, **o)
        return {x: y for i, (x, y) in enumerate(shard_names("x", files).items()) if only is None or i in only}, root

    def C(**o):
        return forge(CONTAINER, **o)

    def alone(**o):
        """an index, or a meta frame, without records"""
        return C(keep=lambda g, s, i: False, **o)

    P50 = generate(50, 7)
    name = entry(2, b"a")

    # ---- §4.1, rules 1 and 2 and what a lie can break
    for stem, rule, lie in (
            ("version-2", "1: version is not 1", dict(version=2)), ("version-0", "1: version is not 1", dict(version=0)),
            ("hash-0", "1: hash is not 1 or 2", dict(hash=0)), ("hash-3", "1: hash is not 1 or 2", dict(hash=3)),
            ("form-0", "1: form is not 1 or 2", dict(form=0)), ("form-3", "1: form is not 1 or 2 (3 is reserved)", dict(form=3)),
            ("k-0", "2: k = 0", dict(k=0)), ("k-0-m-0", "2: k = 0 and m = 0", dict(k=0, m=0)), ("n-257", "2: k + m > 256", dict(m=256)),
            ("n-65536", "2: k + m > 256, more than 16 bits", dict(k=1, m=65535)),
            ("shard-len-over-limit", "2: L > 2^26", dict(L=(1 << 26) + 64)), ("payload-2-63", "2: payload bytes ≥ 2^63", dict(payload=1 << 63)),
            ("payload-2-64", "2: payload bytes ≥ 2^63 (2^64 − 1)", dict(payload=(1 << 64) - 1)),
            ("group-number-over-limit", "2: g ≥ 2^32 − 1", dict(nr=(1 << 32) - 1)), ("group-number-2-63", "2: g ≥ 2^32 − 1", dict(nr=1 << 63)),
            ("huge-product", "2: k·G·L beyond 64 bits", dict(k=65535, m=65535, L=(1 << 32) - 64, G=(1 << 32) - 1))):
        if stem not in ("version-0", "form-0", "n-65536", "payload-2-64"):
            add("s-" + stem, "§4.1 rule " + rule, "refused", F(only=[0], lie=lie)[0])
        add("c-" + stem, "§4.1 rule " + rule, "refused", C(lie=lie)[0])
    add("s-form-2", "§8: form MUST be 1", "refused", F(only=[0], lie=dict(form=2))[0])
    add("c-form-1", "§9: form MUST be 2", "refused", C(lie=dict(form=1))[0])
    for bit in (1, 2, 3):
        add("s-flag-bit%d" % bit, "§4.1 rule 1: a critical flag is set", "refused", F(only=[0], lie=dict(flags=1 | 1 << bit))[0])
        add("c-flag-bit%d" % bit, "§4.1 rule 1: a critical flag is set", "refused", C(lie=dict(flags=1 | 1 << bit))[0])
    for bit in (4, 5, 7):
        stem = "sealed" if bit == 4 else "flag-bit%d" % bit
        add("s-" + stem, "§4: an ignorable flag is set", None, F(lie=dict(flags=1 | 1 << bit))[0], None, P50, verify=0)
        add("c-" + stem, "§4: an ignorable flag is set, in P and in Pg", None, C(lie=dict(flags=1 | 1 << bit), meta=name)[0], None, P50, verify=0, file_name="a")
    add("c-flag-in-P-only", "§4: an ignorable flag is set in P and not in Pg: the index does not lead to R", None, C(p=dict(flags=32), meta=name, frame=False)[0], None, P50, meta_lost=True)
    add("c-flag-in-Pg-only", "§4: an ignorable flag is set in Pg and not in P", None, C(lie=dict(flags=33), p=dict(flags=0), meta=name, frame=False)[0], None, P50, meta_lost=True)
    data, root = C(p=dict(flags=4))
    add("c-flag-critical-in-P", "§4.1 rule 1: a critical flag is set in P alone (the index is refused, and costs no payload)", None, data, root, P50)
    add("c-flag-critical-in-P-alone", "§4.1 rule 1: a critical flag is set in P; nothing else is there", "refused", alone(p=dict(flags=4))[0])
    data, root = C(p=dict(flags=1))
    add("c-flag-last-in-P", "§4.1 rule 1: bit 0 is set in P (the index is refused, and costs no payload)", None, data, root, P50)
    add("c-flag-last-in-P-no-root", "§4.1 rule 1: bit 0 is set in P; losing the index costs no payload", None, data, None, P50)
    add("c-flag-last-in-P-alone", "§4.1 rule 1: bit 0 is set in P; nothing else is there", "refused", alone(p=dict(flags=1))[0])
    add("c-groups-over-limit", "§4.1 rule 2: N ≥ 2^32 (index)", "refused", alone(p=dict(nr=1 << 32, payload=4096 << 32, L=4096))[0])
    add("c-group-number-largest", "§4.1 rule 2: g = 2^32 − 2 is allowed; the groups before it are not there", "damaged", C(lie=dict(nr=(1 << 32) - 2))[0])

    # ---- rule 3
    add("s-shard-len-0", "§4.1 rule 3: L = 0", "invalid", F(only=[0], parts=((0, 0, 1),))[0])
    add("c-shard-len-0", "§4.1 rule 3: L = 0", "invalid", C(parts=((0, 0, 1),))[0])
    add("s-shard-len-96", "§4.1 rule 3: L mod 64 ≠ 0", "invalid", F(only=[0], parts=((90, 96, 1),))[0])
    add("c-shard-len-96", "§4.1 rule 3: L mod 64 ≠ 0", "invalid", C(parts=((90, 96, 1),))[0])
    add("s-sets-0", "§4.1 rule 3: G = 0", "invalid", F(only=[0], parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("c-sets-0", "§4.1 rule 3: G = 0", "invalid", C(parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("c-groups-0", "§4.1 rule 3: N = 0 (index)", "invalid", alone(p=dict(nr=0))[0])
    data, root = C(p=dict(nr=0))
    add("c-groups-0-root", "§4.1 rule 3: N = 0 (index); losing it costs no payload", None, data, root, P50)
    add("s-group-1", "§4.1: shard files have one group: g = 1", "invalid", F(only=[0], lie=dict(nr=1))[0])
    add("s-flag-not-last", "§4.1: shard files have one group: no last flag", "invalid", F(only=[0], parts=((4096, 4096, 1),), lie=dict(flags=0))[0])

    # ---- rule 4
    for stem, rule, x in (("shard-len-large", "L is larger than canonical", (50, 128, 1)), ("shard-len-small", "L is smaller than canonical", (100, 64, 1)),
                          ("sets-above-bound", "G > ⌈b / (4096·k)⌉", (4096, 2048, 2)), ("empty-two-sets", "b = 0 has G = 1", (0, 64, 2)),
                          ("empty-shard-len-128", "b = 0 has L = 64", (0, 128, 1))):
        if x[0]:
            add("s-" + stem, "§4.1 rule 4: " + rule, "invalid", F(only=[0], parts=(x,))[0])
        add("c-" + stem, "§4.1 rule 4: " + rule, "invalid", C(parts=(x,))[0])
    P4097 = generate(4097, 7)
    add("s-sets-at-bound", "§4.1 rule 4: two sets from 4096·k + 1 bytes on", None, F(parts=(part(4097, 2),), only=[1])[0], None, P4097)
    add("c-sets-at-bound", "§4.1 rule 4: two sets from 4096·k + 1 bytes on", None, C(parts=(part(4097, 2),))[0], None, P4097)
    lie = dict(payload=(1 << 63) - 1, k=256, m=0, L=1 << 26, G=(1 << 32) - 1)
    add("s-payload-2-63-less-1", "§4.1 rule 4 on the largest payload", "invalid", F(only=[0], lie=lie)[0])
    lie = dict(payload=((1 << 32) - 1) << 25, L=1 << 25, G=(1 << 32) - 1)
    add("s-huge-but-canonical", "§4.1: 2^32 − 1 sets; its body is not there", "damaged", F(only=[0], lie=lie)[0])
    add("c-huge-but-canonical", "§4.1: 2^32 − 1 sets; its bodies are not there", "damaged", C(lie=lie)[0])

    # ---- rules 5, 6, 7, §4.2 and §9.2
    two = ((4096, 4096, 1), (20, 64, 1))
    P4116 = generate(4116, 7)
    add("c-payload-too-large-for-groups", "§9.2, §4.1 rule 5: the last group is larger than the others", "invalid", C(parts=((4096, 4096, 1), (5000, 5056, 1)))[0])
    for stem, size in (("too-small", 4096), ("too-large", 8193)):
        data, root = C(parts=two, p=dict(payload=size))
        add("c-index-payload-%s-for-groups" % stem, "§4.1 rule 5, in the index: the records are enough", None, data, root, P4116)
        add("c-index-payload-%s-for-groups-no-root" % stem, "§4.1 rule 5, in the index: the records are enough", None, data, None, P4116)
        add("c-index-payload-%s-for-groups-alone" % stem, "§4.1 rule 5, in the index", "invalid", alone(parts=two, p=dict(payload=size))[0])
    add("c-index-shard-len-small", "§4.1 rule 5: L of P is below 4096", "invalid", alone(parts=((4032, 4032, 1), (20, 64, 1)))[0])
    add("c-index-payload-differs", "§9: P has another number of payload bytes: the index does not lead to R", None, C(parts=two, p=dict(payload=4117), meta=name, frame=False)[0], None, P4116,
        meta_lost=True)
    for stem, rule, x in (("not-full", "§4.1 rule 6: a group before the last is not full", (4095, 4096, 1)),
                          ("shard-len-small", "§4.1 rule 6: L of a group before the last is below 4096", (4032, 4032, 1)),
                          ("shard-len-4104", "§4.1 rule 3: L mod 64 ≠ 0 in a group before the last", (4104, 4104, 1))):
        add("c-group-" + stem, rule, "invalid", C(parts=(x, (20, 64, 1)))[0])
        add("c-group-%s-alone" % stem, rule + "; the last group is lost", "invalid", C(parts=(x, (20, 64, 1)), index=False, keep=lambda g, s, i: g == 0)[0])
    for stem, rule, parts in (("empty", "b = 0", ((4096, 4096, 1), (0, 64, 1))), ("shard-len-large", "L is larger", ((4096, 4096, 1), (20, 128, 1))),
                              ("shard-len-small", "L is smaller", ((4096, 4096, 1), (100, 64, 1))), ("sets-above-bound", "G > ⌈b / (4096·k)⌉", ((8192, 4096, 2), (4096, 2048, 2)))):
        add("c-last-group-" + stem, "§4.1 rule 7: " + rule, "invalid", C(parts=parts)[0])
        add("c-last-group-%s-alone" % stem, "§4.1 rule 7: %s; the group before is lost" % rule, "invalid", C(parts=parts, index=False, keep=lambda g, s, i: g)[0])
    for index in (True, False):
        tail = "" if index else "-no-index"
        for stem, rule, parts in (("sets", "G of the last group (L and G obey rule 7)", ((16384, 8192, 2), part(9000, 1))),
                                  ("middle", "L and G of a middle group (obey rule 6)", ((8192, 4096, 2), (8192, 8192, 1), (30, 64, 1))),
                                  ("middle-smaller", "payload of a middle group", ((8192, 4096, 2), (4096, 4096, 1), (30, 64, 1))),
                                  ("middle-shape", "k and m of the groups behind the first", ((4096, 4096, 1), (8192, 4096, 1, dict(k=2, m=0)), (100, 64, 1, dict(k=2, m=0)))),
                                  ("middle-flags", "ignorable flags of the groups behind the first",
                                   ((4096, 4096, 1, dict(flags=16)), (4096, 4096, 1, dict(flags=32)), (20, 64, 1, dict(flags=33)))),
                                  ("shape", "k and m of the last group", ((8192, 4096, 2), (100, 64, 1, dict(k=2, m=0)))),
                                  ("flags", "ignorable flags of the last group", ((4096, 4096, 1, dict(flags=16)), (20, 64, 1, dict(flags=33)))),
                                  ("number", "the last group has number 2, there is none with number 1", ((4096, 4096, 1), (20, 64, 1, dict(nr=2)))),
                                  ("after-last", "a group follows one that has the last flag", ((4096, 4096, 1, dict(flags=1)), (20, 64, 1)))):
            if stem != "after-last":
                add("c-group-differs-" + stem + tail, "§9.2: " + rule, "invalid", C(parts=parts, index=index)[0])
            elif not index:
                add("c-group-after-last", "§9.2: " + rule + ": only the first chain can be restored", None, C(parts=parts, index=False)[0], None, P4116[:4096])
        add("c-group-hash-differs" + tail, "§9.2: the hash of the last group", "invalid",
            C(parts=((4096, 4096, 1), (20, 64, 1, dict(hash=BLAKE3))), index=index)[0])

    # ---- §5 padding, §10 codeword
    dirty = generate(70, 7) + bytes(57) + b"\1"
    add("s-padding", "§5: a byte past the end is not zero", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 1])[0])
    add("s-padding-from-recovery", "§5: a byte past the end is not zero; its shard is gone", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 2])[0])
    add("c-padding", "§5: a byte past the end is not zero", "invalid", C(k=2, parts=((70, 64, 1),), pieces=[dirty])[0])
    add("c-padding-first-byte", "§5: the first byte past the end is not zero", "invalid", C(pieces=[P50 + b"\1"])[0])
    add("c-padding-empty", "§5: payload of 0 bytes, padding not zero", "invalid", C(parts=((0, 64, 1),), pieces=[b"\0\1"])[0])
    add("c-padding-last-group", "§5: padding of the second group", "invalid", C(parts=two, pieces=[bytes(4096), bytes(20) + b"\1"])[0])

    def wrong(*places):
        """shards (i, s) are not what belongs to the others"""
        def change(shards):
            for i, s in places:
                shards[i][s] = flipped(shards[i][s], 5)
        return change

    P9000 = generate(9000, 7)
    two_sets = part(9000, 2, 2)
    for stem, place, payload in (("recovery", (2, 0), P9000), ("original", (0, 0), flipped(P9000, 5)), ("second-set", (2, 1), P9000)):
        o = dict(k=2, parts=(two_sets,), alter=wrong(place))
        add("s-not-a-codeword-" + stem, "§10.2: valid tree over what is not a codeword, all originals are there", None, F(**o)[0], None, payload)
        add("s-not-a-codeword-%s-strict" % stem, "§10.5: the same, strictly", "invalid", F(**o)[0], strict=True)
        add("c-not-a-codeword-" + stem, "§10.2: valid tree over what is not a codeword, all originals are there", None, C(**o)[0], None, payload)
        add("c-not-a-codeword-%s-strict" % stem, "§10.5: the same, strictly", "invalid", C(**o)[0], strict=True)
        add("c-not-a-codeword-%s-lost" % stem, "§10.3: the same, an original is lost", "invalid", C(keep=lambda g, s, i: i != 1, **o)[0])
    P100 = generate(100, 7)
    for only in ([0, 1], [0, 2], [1, 2]):
        bad = 2 in only
        add("s-not-a-codeword-k-shards-%d%d" % tuple(only), "§10.3: a wrong recovery shard" if bad else "§10.2: the wrong recovery shard is not there", "invalid" if bad else None,
            F(k=2, parts=((100, 64, 1),), alter=wrong((2, 0)), only=only)[0], None, None if bad else P100)
    add("s-not-a-codeword-absent-strict", "§10.5: the wrong recovery shard is not there, but SR speaks of it", "invalid",
        F(k=2, parts=((100, 64, 1),), alter=wrong((2, 0)), only=[0, 1])[0], strict=True)
    for stem, m, places, only, ok in (
            ("other-choice", 2, [2], [0, 2, 3], True), ("other-choice-2", 2, [2], [1, 2, 3], True), ("first-is-right", 2, [3], [0, 2, 3], True), ("too-few", 2, [2], [0, 2], False),
            ("both-originals-lost", 4, [3], [2, 3, 4, 5], True), ("cyclic", 3, [3], [2, 3, 4], True), ("both-originals-lost-too-few", 4, [3], [2, 3], False), ("nothing-fits", 4, [2, 3, 4, 5], [0, 2, 3, 4, 5], False)):
        o = dict(k=2, m=m, parts=((100, 64, 1),), alter=wrong(*[(i, 0) for i in places]))
        rule = "§10.3: recovery shards %s are wrong, the shards %s are there" % (places, only)
        add("s-cheat-" + stem, rule, None if ok else "invalid", F(only=only, **o)[0], None, P100 if ok else None)
        add("c-cheat-" + stem, rule, None if ok else "invalid", C(keep=lambda g, s, i: i in only, **o)[0], None, P100 if ok else None)
        if ok:
            add("c-cheat-%s-strict" % stem, rule + "; strictly", "invalid", C(keep=lambda g, s, i: i in only, **o)[0], strict=True)
    o = dict(k=3, m=40, parts=((150, 64, 1),), alter=wrong(*[(i, 0) for i in range(3, 43) if i != 27]))
    P150 = generate(150, 7)
    add("c-cheat-many", "§10.3: of 40 recovery shards all but one are wrong, two originals are lost", "invalid", C(keep=lambda g, s, i: i >= 2, **o)[0])
    o["alter"] = wrong(*[(i, 0) for i in range(3, 43) if i not in (40, 41)])
    add("c-cheat-choice-15", "§10.3: of 40 recovery shards only c_37 and c_38 are right, two originals are lost: choice t = 15", None,
        C(keep=lambda g, s, i: i >= 2, **o)[0], None, P150)
    strict_meta = name + entry(3, hashlib.sha256(P50).digest())
    for stem, rule, meta, bad in (("right", "the payload's SHA-256 in the meta", strict_meta, False), ("sha256-wrong", "the SHA-256 in the meta is another's", name + entry(3, bytes(32)), True),
                                  ("blake3-right", "both digests in the meta", strict_meta + entry(5, digest(BLAKE3, P50)), False),
                                  ("blake3-wrong", "the BLAKE3 in the meta is another's", strict_meta + entry(5, bytes(32)), True)):
        for form, what in (("s", F(meta=meta)[0]), ("c", C(meta=meta)[0])):
            add("%s-digest-%s" % (form, stem), "§7: " + rule, None, what, None, P50, file_name="a")
            add("%s-digest-%s-strict" % (form, stem), "§7: " + rule + "; strictly", "invalid" if bad else None, what, None, None if bad else P50, strict=True)

    # ---- §6.1 proofs
    add("s-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        F(k=2, parts=((100, 64, 1),), only=[1, 2], prf=lambda s, i, proof: i == 2 and poke(63, 1)(proof))[0])
    add("c-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        C(k=2, parts=((100, 64, 1),), keep=lambda g, s, i: i > 0, rec=lambda g, s, i, head, proof: i == 2 and poke(32, 1)(proof))[0])
    three = (part(9000, 3),)
    add("s-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        F(parts=three, prf=lambda s, i, proof: s == 2 and poke(95, 1)(proof))[0])
    add("c-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        C(parts=three, rec=lambda g, s, i, head, proof: s == 2 and poke(64, 1)(proof))[0])

    def swap(*args):
        args[-1][:64] = args[-1][32:64] + args[-1][:32]

    add("s-paths-swapped", "§6.1: set path and group path are swapped", "damaged", F(parts=(part(5000, 2),), prf=swap)[0])
    add("c-paths-swapped", "§6.1: set path and group path are swapped", "damaged", C(parts=(part(5000, 2),), rec=swap)[0])
    add("s-other-tree-first", "§6.1: the other tree stands before the siblings", "damaged", F(k=2, parts=((100, 64, 1),), prf=swap)[0])
    add("s-path-wrong", "§8: the proof leads elsewhere", "damaged", F(prf=poke(0, 1))[0])
    add("c-path-wrong", "§9: the proof leads elsewhere", "damaged", C(rec=poke(0, 1))[0])
    add("c-gr-wrong", "§9: the record does not lead to the GR it states", "damaged", C(rec=poke_head(64, 1))[0])

    # ---- indices
    add("s-index-too-large", "§8: i ≥ n", "invalid", F(hdr=poke(16, 2))[0])
    add("s-index-wrong", "§8: another i than the leaf has", "damaged", F(k=3, m=1, parts=((150, 64, 1),), hdr=poke(16, 1))[0])
    add("c-index-too-large", "§9: i ≥ n", "invalid", C(rec=poke_head(20, 2))[0])
    add("c-index-wrong", "§9: another i than the leaf has", "damaged", C(rec=poke_head(20, 1))[0])
    add("c-set-too-large", "§9: s ≥ G", "invalid", C(rec=poke_head(16, 1))[0])
    add("c-set-wrong", "§9: another s than the leaf has", "damaged", C(parts=(part(5000, 2),), rec=poke_head(16, 1))[0])

    # ---- zero bytes
    for at in (12, 15, 160, 191):
        add("s-zero-bytes-%d" % at, "§8: zero bytes of H", "damaged", F(only=[0], hdr=poke(at, 1))[0])
    add("s-zero-bytes-gap", "§8: zeros before the body are not zero: no record is lost by it", None, F(k=1, m=0, gap=poke(-1, 1))[0], None, P50, verify=1)
    for at in (12, 15, 24, 31):
        add("c-zero-bytes-record-%d" % at, "§9: zero bytes of a record", "damaged", C(rec=poke_head(at, 1))[0])
    add("c-zero-bytes-record-proof", "§9: the padding of the proof is not zero", "damaged", C(rec=poke(63, 1))[0])

    # ---- what a group says is before it
    wrong_head = dict(parts=two, rec=lambda g, s, i, head, proof: g == 1 and poke(96, 1)(head))
    add("c-head-wrong-no-index", "§9: another H than GR binds, no index", "damaged", C(index=False, **wrong_head)[0])
    add("c-head-wrong-with-index", "§9: another H than GR binds", "damaged", C(**wrong_head)[0])
    add("c-head-wrong-in-one-record", "§9: one record of group 1 has a wrong H, no index", None,
        C(parts=two, index=False, rec=lambda g, s, i, head, proof: (g, i) == (1, 0) and poke(96, 1)(head))[0], None, P4116)
    add("c-head-of-group-0", "§9: another M than GR binds", "damaged", C(rec=poke_head(96, 1))[0])

    # ---- CRC, equations of the shard file's header
    files, root = F(only=[0])
    add("s-crc", "§8: the CRC of both header copies is wrong", "damaged", {x: flipped(y, 8, len(y) - 184) for x, y in files.items()})
    add("s-magic", "§8: the magic of both header copies is wrong", "damaged", {x: flipped(y, 0, len(y) - 192) for x, y in files.items()})
    data, root = C()
    add("c-crc", "§9: the CRC of every record is wrong", "damaged", flipped(data, *[at + 8 for at in spots(data, MAGIC_R)]), root)
    add("c-crc-covers-proof", "§9: a byte of every proof's padding differs: the CRC is wrong", "damaged", flipped(data, *[at + 191 for at in spots(data, MAGIC_R)]))
    add("s-body-length", "§8: body length ≠ G·L", "damaged", F(only=[0], hdr=poke(24, 128))[0])
    add("s-R", "§8: R does not follow", "damaged", F(only=[0], hdr=poke(64, 1))[0])

    def resign(at):
        def change(i, head):
            head[at] ^= 1
            head[64:96] = group_root(SHA256, unpack(head[32:64]), bytes(head[96:128]), bytes(head[128:160]))
        return change

    add("s-M", "§8: both copies of the meta are not what M says (R follows from it): the records lead elsewhere only in R", None, F(only=[0], hdr=resign(128))[0], None, P50, meta_lost=True)
    add("s-X", "§8: the records do not lead to X (R follows from it)", "damaged", F(only=[0], hdr=resign(96))[0])

    # ---- §7 meta, in both forms; alone it gives its class
    block = struct.pack("<IQ", 2, 5) + bytes(32)
    for stem, rule, cls, meta in (
            ("even", "unknown even type", "refused", name + entry(4, b"x")), ("type-0", "unknown even type 0", "refused", entry(0, b"") + name),
            ("even-254", "unknown even type 254", "refused", name + entry(254, b"")), ("odd", "an unknown odd type is skipped", None, entry(1, b"") + name + entry(9, b"xyz")),
            ("descending", "types do not ascend", "invalid", entry(9, b"") + name), ("twice", "the same type twice", "invalid", name + name),
            ("entry-too-long", "an entry is longer than the meta", "invalid", struct.pack("<BH", 2, 2) + b"a"),
            ("name-empty", "empty name", "invalid", entry(2, b"")), ("name-slash", "name with a slash", "invalid", entry(2, b"a/b")),
            ("name-nul", "name with NUL", "invalid", entry(2, b"a\0b")), ("name-dot", "name .", "invalid", entry(2, b".")),
            ("name-dotdot", "name ..", "invalid", entry(2, b"..")), ("name-256", "name of 256 bytes", "invalid", entry(2, b"n" * 256)),
            ("name-255", "name of 255 bytes", None, entry(2, b"n" * 255)), ("name-dots", "name ... is allowed", None, entry(2, b"...")),
            ("trailing-byte", "a byte is left over", "invalid", name + b"\3"), ("trailing-bytes", "two bytes are left over", "invalid", name + b"\3\0"),
            ("sha256-short", "a SHA-256 of 31 bytes", "invalid", name + entry(3, bytes(31))), ("blake3-long", "a BLAKE3 of 33 bytes", "invalid", name + entry(5, bytes(33))),
            ("annexes", "blocks kept in annexes", None, name + entry(7, block + b"\3" + block[1:])), ("annexes-none", "blocks kept in annexes: a list of none", None, name + entry(7, b"")),
            ("annexes-twice", "blocks kept in annexes: the same type twice", "invalid", entry(7, block + block)),
            ("annexes-length", "blocks kept in annexes: bytes left over", "invalid", entry(7, block + b"x")),
            ("empty", "the meta may be empty", None, b""), ("400", "400 bytes", None, name + entry(9, generate(393, 1)))):
        files, root = F(only=[0], meta=meta)
        if stem not in ("type-0", "even-254"):
            add("s-meta-" + stem, "§7: " + rule, cls, files, None, P50 if cls is None else None)
        data, root = C(meta=meta)
        if stem != "type-0":
            add("c-meta-" + stem, "§7, §9.2: " + rule, cls, data, root, P50 if cls is None else None)
        if cls:
            add("c-meta-%s-frame-alone" % stem, "§7: " + rule, cls, alone(meta=meta, index=False)[0])
            add("c-meta-%s-index-alone" % stem, "§7: " + rule, cls, alone(meta=meta, frame=False)[0])
    data, root = C(meta=name + entry(4, b"x"))
    add("c-meta-even-no-root", "§9.2: index and meta frame are refused, and so is what has this meta", "refused", data)
    add("c-meta-even-elsewhere", "§9.2: meta that is refused, and not that of the records", None, data[:spots(data, MAGIC_R)[0]] + C(meta=name)[0], None, P50)
    add("s-meta-65537", "§8: meta length 65,537", "invalid", F(only=[0], hdr=lambda i, head: head.__setitem__(slice(20, 24), struct.pack("<I", 65537)))[0])
    add("c-meta-65537", "§9: meta length 65,537 (index)", "invalid", alone(xh=lambda head: head.__setitem__(slice(24, 28), struct.pack("<I", 65537)))[0])
    long_name = entry(2, b"a" * 60) + entry(9, b"b" * 40)
    files, root = F(k=1, m=0, meta=long_name)
    (shard,) = files.values()
    both_lost = flipped(shard, 195, len(shard) - 192 - 100)
    add("s-meta-first-damaged", "§8: the first copy of the meta is damaged", None, [flipped(shard, 195)], None, P50, file_name="a" * 60, verify=1)
    add("s-meta-last-damaged", "§8: the last copy of the meta is damaged", None, [flipped(shard, len(shard) - 192 - 100)], None, P50, file_name="a" * 60, verify=1)
    add("s-meta-zeros-damaged", "§8: the zeros behind both copies of the meta are not zero", None, F(meta=long_name, met=poke(-1, 1))[0], None, P50, meta_lost=True)
    add("s-meta-lost", "§8: both copies of the meta are damaged", None, [both_lost], None, P50, meta_lost=True)
    add("s-meta-lost-in-one", "§8: another shard has the meta", None, [flipped(x, 195, len(x) - 192 - 100) if n == 0 else x for n, x in enumerate(F(meta=long_name)[0].values())], None, P50,
        file_name="a" * 60)

    # ---- the meta frame
    def length(value):
        def change(head, body):
            head[16:20] = struct.pack("<I", value)
            body.clear()
        return change

    for stem, rule, cls, mh in (
            ("version", "version 2", "refused", poke_head(32, 3)), ("hash", "hash 0", "refused", poke_head(33, 2)), ("form", "form 1", "refused", poke_head(34, 3)),
            ("flags", "a critical flag", "refused", poke_head(35, 2)), ("flag-last", "bit 0 of the flags", "refused", poke_head(35, 1)),
            ("length-0", "length 0", "invalid", length(0)), ("length-65537", "length 65,537", "invalid", length(65537)), ("length-2-32", "length 2^32 − 1", "invalid", length((1 << 32) - 1)),
            ("M", "M is not the hash of the meta", "damaged", poke_head(64, 1)), ("meta", "M is not the hash of the meta", "damaged", poke(3, 1)),
            ("zeros", "zeros behind the meta", "damaged", poke(-1, 1)), ("zero-bytes-12", "zero bytes", "damaged", poke_head(12, 1)), ("zero-bytes-20", "zero bytes", "damaged", poke_head(20, 1)),
            ("zero-bytes-36", "zero bytes", "damaged", poke_head(36, 1)), ("zero-bytes-96", "zero bytes", "damaged", poke_head(96, 1)), ("zero-bytes-127", "zero bytes", "damaged", poke_head(127, 1))):
        add("c-frame-" + stem, "§9 meta frame: " + rule, None, C(meta=name, index=False, mh=mh)[0], None, P50, meta_lost=True)
        if cls != "damaged":
            add("c-frame-%s-alone" % stem, "§9 meta frame: " + rule, cls, alone(meta=name, index=False, mh=mh)[0])
    data, root = C(meta=name, index=False)
    add("c-frame-only", "§9: the index is lost, the meta frame is not", None, data, None, P50, file_name="a")
    add("c-frame-crc", "§9 meta frame: the CRC is wrong", None, flipped(data, 8), None, P50, meta_lost=True)
    add("c-frame-at-the-end", "§9 meta frame: it counts wherever it stands", None, data[192:] + data[:192], None, P50, file_name="a")
    add("c-frame-other-flags", "§9 meta frame: it counts for every encoding with its M", None, C(meta=name, index=False, mh=poke_head(35, 32))[0], None, P50, file_name="a")
    foreign = C(meta=entry(2, b"other"), index=False)[0][:192]
    add("c-frame-foreign", "§9: a foreign meta frame in front", None, foreign + data, root, P50, file_name="a")
    add("c-frame-foreign-no-root", "§9: a foreign meta frame in front", None, foreign + data, None, P50, file_name="a")
    add("c-frame-foreign-alone", "§9: only a foreign meta frame", None, foreign + data[192:], None, P50, meta_lost=True)
    add("c-frame-foreign-empty-meta", "§9: a foreign meta frame, the encoding has no meta", None, foreign + C()[0], None, P50)
    add("c-frames-100-foreign", "§12: 100 foreign meta frames in front", None,
        b"".join(alone(meta=entry(2, b"n%d" % j), index=False)[0] for j in range(100)) + C(meta=name)[0], None, P50, file_name="a")

    # ---- the index
    def set_M(head):
        head[96] ^= 1
        head[64:96] = group_root(SHA256, group_of(unpack(head[32:64]), 0), alone()[0][128:160], bytes(head[96:128]))

    for stem, rule, o in (("zero-bytes-12", "zero bytes", dict(xh=poke(12, 1))), ("zero-bytes-28", "zero bytes", dict(xh=poke(28, 1))),
                          ("zero-bytes-31", "zero bytes", dict(xh=poke(31, 1))), ("body-longer", "body length is 64 too large, and so is the body", dict(idx=lambda b: b.extend(bytes(64)))),
                          ("body-length", "body length in XH is wrong", dict(xh=poke(16, 128))), ("body-zeros", "zeros of the body", dict(idx=poke(63, 1))),
                          ("R", "R does not follow", dict(xh=poke(64, 1))), ("M", "M is not the hash of the meta (R follows from it)", dict(xh=set_M)),
                          ("X", "another X in the body", dict(idx=poke(0, 1))), ("meta-byte", "another meta than M has", dict(idx=poke(35, 1)))):
        data, root = C(meta=name, frame=False, **o)
        add("c-index-" + stem, "§9 index: %s; the root is known from the records" % rule, None, data, root, P50, meta_lost=True)
        add("c-index-%s-no-root" % stem, "§9 index: %s; losing the index costs no payload" % rule, None, data, None, P50, meta_lost=True)
    data, root = C(meta=name, frame=False)
    heads = spots(data, MAGIC_X)
    add("c-index-crc", "§9 index: the CRC of every XH is wrong", None, flipped(data, *[at + 8 for at in heads]), root, P50, meta_lost=True)
    add("c-index-only-first", "§9 index: XH and the body that follows it", None, flipped(data, heads[1], heads[2], heads[1] + 128), root, P50, file_name="a")
    add("c-index-only-last", "§9 index: XH and the body that stands before it", None, flipped(data, heads[0], heads[1], heads[0] + 128), root, P50, file_name="a")
    add("c-index-middle-before", "§9 index: the middle XH and the body before it", None, flipped(data, heads[0], heads[2], heads[1] + 128), root, P50, file_name="a")
    add("c-index-bodies-lost", "§9 index: both bodies are damaged", None, flipped(data, heads[0] + 128, heads[1] + 128), root, P50, meta_lost=True)
    add("c-metas-all-lost", "§9: the meta frame and both index bodies are damaged", None,
        *(lambda x, r: [flipped(x, 128, *[at + 130 for at in spots(x, MAGIC_X)[:2]]), r, P50])(*C(meta=name)), meta_lost=True)
    add("c-metas-all-lost-no-root", "§9: the meta frame and both index bodies are damaged", None,
        *(lambda x, r: [flipped(x, 128, *[at + 130 for at in spots(x, MAGIC_X)[:2]]), None, P50])(*C(meta=name)), meta_lost=True)
    data, root = C(p=dict(nr=1 << 20, payload=4096 << 20, L=4096), xh=lambda head: head.__setitem__(slice(16, 24), struct.pack("<Q", 32 << 20)))
    add("c-index-of-2-20-groups", "§9 index: its body is not there", None, data, None, P50)
    one, one_root = C()
    other, other_root = C(meta=name)
    add("c-two-metas", "§9.2: the same payload with two metas", "ambiguous", one + other)
    add("c-two-metas-root-1", "§9.2: the same, the root is given", None, one + other, one_root, P50)
    add("c-two-metas-root-2", "§9.2: the same, the root is given", None, one + other, other_root, P50, file_name="a")
    mixed = one + other[spots(other, MAGIC_X)[0]:]
    add("c-two-indexes", "§9.2: a foreign index of the same payload: its groups have no records", None, mixed, None, P50)
    add("c-two-indexes-root-1", "§9.2: the same, the root is given", None, mixed, one_root, P50)
    add("c-two-indexes-root-2", "§9.2: the same, the root of the foreign index is given", "damaged", mixed, other_root)
    add("c-indexes-100-foreign", "§12: 100 foreign indexes in front", None, b"".join(alone(payload=generate(50, j))[0] for j in range(100, 200)) + other, None, P50)

    # ---- lost parts of a container
    many = ((8192, 4096, 1), (8192, 4096, 1), part(1000, 1, 2))
    PM = generate(17384, 7)
    size = 128 + 64 + 4096
    last = 128 + 64 + 512
    data, root = C(k=2, parts=many)
    end = spots(data, MAGIC_X)[0]
    add("c-no-index", "§9: all copies of the index are lost, all groups are there", None, data[:end], None, PM)
    add("c-no-index-root", "§9.2: the last group states R", None, data[:end], root, PM)
    add("c-cut-last-group", "§9.2: cut before the last group", "damaged", data[:6 * size])
    add("c-cut-last-group-root", "§9.2: cut before the last group: no root is known", "damaged", data[:6 * size], root)
    add("c-cut-in-last-group", "§9.2: cut in the last group, k records are there", None, data[:end - 50], None, PM)
    add("c-cut-in-last-group-k-1", "§9.2: cut in the last group, k − 1 records are there", "damaged", data[:end - last - 50], None)
    add("c-first-group-lost", "§9.2: the first group is lost, no index", "damaged", data[3 * size:end])
    add("c-first-group-lost-root", "§9.2: the first group is lost, no index; the last group still states R", "damaged", data[3 * size:end], root)
    add("c-middle-group-lost", "§9.2: a middle group is lost", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g != 1)[0])
    add("c-middle-group-lost-root", "§9.2: a middle group is lost", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g != 1)[0], root)
    add("c-middle-group-lost-no-index", "§9.2: a middle group is lost, no index", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g != 1)[0])
    add("c-middle-group-lost-no-index-root", "§9.2: a middle group is lost, no index", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g != 1)[0], root)
    add("c-last-group-lost", "§9.2: the last group is lost, the index is there", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g < 2)[0])
    add("c-last-group-lost-root", "§9.2: the last group is lost, the index is there", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g < 2)[0], root)
    add("c-only-last-group", "§9.2: only the last group is left", "damaged", data[6 * size:end])
    add("c-index-alone", "§9: only the index is left", "damaged", data[end:])
    add("c-index-alone-root", "§9: only the index is left, its root is given", "damaged", data[end:], root)
    add("c-index-alone-other-root", "§9: only the index is left, another root is given", "wrong-root", data[end:], hashlib.sha256(b"other").digest())
    add("c-k-1", "§10: k − 1 records of each set", "damaged", C(k=2, parts=many, keep=lambda g, s, i: i == 1)[0])
    add("c-k", "§10: k records of each set", None, C(k=2, parts=many, keep=lambda g, s, i: i != (g + s) % 3)[0], None, PM)
    sets2 = ((16384, 4096, 2), part(9000, 2, 2))
    add("c-k-sets", "§10: k records of each set, several sets", None, C(k=2, parts=sets2, keep=lambda g, s, i: i != (g + s) % 3)[0], None, generate(25384, 7))
    add("c-k-1-of-one-set", "§10: k − 1 records of one set", "damaged", C(k=2, parts=sets2, keep=lambda g, s, i: (g, s) != (1, 1) or i == 2)[0])
    add("c-set-gone", "§10: no record of one set", "damaged", C(k=2, parts=sets2, keep=lambda g, s, i: (g, s) != (1, 1))[0])
    add("c-wrong-root", "§11: another root is asked for", "wrong-root", data, hashlib.sha256(b"other").digest())
    add("c-root-of-middle-group", "§9.2: GR of a group that is not the last is no root", "wrong-root", data, data[3 * size + 64:3 * size + 96])
    add("c-empty-file", "§11: nothing is there", "damaged", b"")
    add("c-junk", "§11: nothing is there", "damaged", generate(5000, 3))
    add("c-junk-root", "§11: nothing is there, a root is given", "damaged", generate(5000, 3), root)
    shift = data[:300] + generate(77, 1) + data[300:]
    add("c-inserted", "§9.1: bytes inserted inside a record", None, shift, None, PM, verify=1)
    add("c-inserted-magic", "§9.1: magics inserted between records", None, MAGIC_R * 3 + MAGIC_X + MAGIC_M + MAGIC_A + MAGIC_S + MAGIC_R[:5] + data, None, PM)
    add("c-deleted", "§9.1: bytes deleted inside a record", None, data[:400] + data[433:], None, PM)
    turned = b"".join(data[at:at + size] for at in reversed(range(0, 6 * size, size)))
    add("c-shuffled", "§9.2: records of two groups in reverse order", None, turned + data[6 * size:], None, PM)

    # ---- versions (§4, §11)
    whole, whole_root = C(meta=name, m=0)
    noise = generate(600, 11)

    def future(x):
        """version 2, with another layout behind the magics and the version"""
        places = sorted(spots(x, MAGIC_R) + spots(x, MAGIC_X) + spots(x, MAGIC_M) + spots(x, MAGIC_S))
        x = bytearray(x)
        for at in places:
            x[at + 8:at + 128] = noise[:24] + b"\2" + noise[25:120]
        return bytes(x)

    add("c-version-future", "§4: version 2 with another layout", "refused", future(whole))
    add("c-version-future-root", "§4: version 2 with another layout", "refused", future(whole), whole_root)
    add("c-version-future-short", "§4: version 2; the file ends behind the version", "refused", future(whole)[:33])
    add("c-version-future-cut", "§4: the file ends before the version", "damaged", future(whole)[:32])
    add("s-version-future", "§4: version 2 with another layout", "refused", [future(x) for x in F(m=0)[0].values()])
    add("s-version-future-file", "§4: version 2 with another layout, one file", "refused", future(F(m=0)[0]["x.000.shard"]))
    add("s-version-future-magic-first", "§4: version 2, and only the first header stands where version 1 has it", "refused", [future(F(m=0)[0]["x.000.shard"]) + noise])
    rotten = bytearray(whole)
    rotten[192 + 32] = 3
    add("c-version-rotten", "§11: the version of the only record rotted; there are headers of version 1 whose CRC is right", "damaged", bytes(rotten))
    rotten_only = bytearray(C(m=0, index=False)[0])
    rotten_only[32] ^= 2
    add("c-version-beside-cut-record", "§11: version 2, and the beginning of a record of version 1 whose CRC nobody can tell", "refused", future(whole) + C()[0][:150])
    for stem, what in (("", [future(F(m=0)[0]["x.000.shard"])[:100]]), ("-file", future(F(m=0)[0]["x.000.shard"])[:100])):
        add("s-version-future-short" + stem, "§4: version 2; the file ends within the header", "refused", what)
    first, other = C(parts=two, keep=lambda g, s, i: g == 0), C(parts=((4096, 4096, 1), (20, 64, 1, dict(nr=2))), index=False, keep=lambda g, s, i: g == 1)
    add("c-group-of-other-root", "§9.2: with a root, a last group of another one is ignored, whatever is wrong with it", "damaged", first[0] + other[0], first[1])
    add("c-group-of-other-root-no-root", "§9.2: the same, and no root is given", "invalid", first[0] + other[0])
    add("c-version-rotten-alone", "§11: the version of the only header rotted", "refused", bytes(rotten_only))
    add("c-version-2-index-1", "§11: records of version 2 that are right, an index of version 1", "damaged", C(lie=dict(version=2), p=dict(version=1))[0])
    add("c-version-rotten-restored", "§11: the version of one record rotted, the others are enough", None, flipped(C()[0], 32), None, P50)
    files, root = F()
    a, b = files.values()
    rotten = {"x.000.shard": flipped(a, 32, len(a) - 160)}
    add("s-version-rotten-alone", "§11: the version in both headers of the only shard rotted", "refused", rotten)
    f2, _ = F(k=2, parts=((100, 64, 1),))
    a2, b2, c2 = f2.values()
    add("s-version-rotten", "§11: the version in both headers of a shard rotted, another shard is right", "damaged", {"a": flipped(a2, 32, len(a2) - 160), "b": b2})
    add("s-version-rotten-one-header", "§11: the version in one header rotted", None, {"a": flipped(a2, 32), "b": b2}, None, P100)

    # ---- several streams
    add("c-joined-with-itself", "§9.2: the same container twice is one stream", None, data + data, None, PM, verify=1)
    other, other_root = C(parts=(part(5000, 2),), payload=generate(5000, 9))
    PO = generate(5000, 9)
    add("c-joined", "§9.2: two containers joined", "ambiguous", data + other)
    add("c-joined-root-1", "§9.2: two containers joined, the root is given", None, data + other, root_of(data), PM)
    add("c-joined-root-2", "§9.2: two containers joined, the root is given", None, data + other, other_root, PO)
    add("c-joined-no-index", "§9.2: two containers joined, both without index", "ambiguous", data[:end] + other[:spots(other, MAGIC_X)[0]])
    add("c-joined-other-root", "§11: two containers joined, a third root is given", "wrong-root", data + other, hashlib.sha256(b"other").digest())
    add("c-joined-one-damaged", "§9.2: two containers joined, only one can be restored", None, data[:end] + other[:3000], None, PM)
    root = root_of(data)
    outer, outer_root = C(parts=(part(len(other), 1),), payload=other)
    end_o = spots(outer, MAGIC_X)[-3]
    second = 192 + part(len(other), 1)[1]
    add("c-nested", "§9.2: a container in a container", None, outer, None, other, verify=0)
    add("c-nested-root", "§9.2: a container in a container, the outer root is given", None, outer, outer_root, other, verify=0)
    add("c-nested-first-damaged", "§9.2: the outer record 0 is damaged, the inner container is seen: both can be restored", "ambiguous", flipped(outer, 8))
    add("c-nested-first-damaged-root", "§9.2: the same, the outer root is given", None, flipped(outer, 8), outer_root, other)
    add("c-nested-second-damaged", "§9.2: the outer record 1, a recovery shard equal to the original, is damaged", "ambiguous", flipped(outer, second + 8))
    add("c-nested-first-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end_o], 8))
    add("c-nested-second-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end_o], second + 8))
    add("c-nested-first-damaged-inner-root", "§9.2: the inner root is given", None, flipped(outer, 8), other_root, PO)
    add("c-nested-inner-root", "§9.1: with a root given, records that do not belong to it hide nothing", None, outer, other_root, PO)
    add("c-nested-both-damaged-inner-root", "§9.2: only the inner container is left, and is asked for", None, flipped(outer, 8, second + 8), other_root, PO)
    groups_outer, groups_root = C(parts=((4096, 4096, 1),) * 2 + (part(len(other) - 2 * 4096, 1),), payload=other)
    add("c-nested-groups-root", "§9.1: several groups, the outer root is given", None, groups_outer, groups_root, other, verify=0)
    # a record of another encoding whose body is the beginning of the victim
    cover, _ = C(k=2, m=0, parts=((2 * 16384, 16384, 1),), payload=data[:16384] + bytes(16384), index=False, keep=lambda g, s, i: i == 0)
    add("c-wrapped", "§9.1: a record of another encoding hides the beginning; no root is given", "damaged", cover + data[16384:])
    add("c-wrapped-root", "§9.1: the same, with the victim's root: nothing is hidden", None, cover + data[16384:], root, PM)
    add("c-wrapped-no-index-root", "§9.1: the same, and the index is lost", None, cover + data[16384:end], root, PM)
    L = align(len(data), 64)
    cover, cover_root = C(k=2, m=0, parts=((2 * L, L, 1),), payload=data + bytes(2 * L - len(data)), keep=lambda g, s, i: i == 0)
    add("c-wrapped-whole", "§9.1: a record of another encoding hides all of it; no root is given", "damaged", cover)
    add("c-wrapped-whole-root", "§9.1: the same, with the victim's root", None, cover, root, PM)
    add("c-wrapped-whole-its-root", "§9.1: the same, with the root of the other encoding", "damaged", cover, cover_root)
    # an encoding of one record, k = 1, whose geometry speaks of 256: what follows lies where its other records would
    P64 = generate(64, 8)
    one, one_root = C(k=1, m=255, parts=((64, 64, 1),), payload=P64, index=False, keep=lambda g, s, i: i == 255)
    one_index = alone(k=1, m=255, parts=((64, 64, 1),), payload=P64)[0]
    for stem, what in (("appended", data + one), ("prepended", one + data), ("around", one + data + one + one_index), ("inside", data[:size] + one + data[size:])):
        add("c-one-record-" + stem, "§9.2: one record of another encoding can be restored: " + stem, "ambiguous", what)
        add("c-one-record-%s-root" % stem, "§9.2: the same, the root is given", None, what, root, PM)
        add("c-one-record-%s-its-root" % stem, "§9.2: the same, its own root is given", None, what, one_root, P64)
    forked, fork_root = C(k=2, parts=many, payload=PM[:16384] + bytes(1000))
    fork_end = spots(forked, MAGIC_X)[0]
    add("c-fork", "§9.2: two chains share their first groups", "ambiguous", data[:end] + forked)
    add("c-fork-root", "§9.2: the same, the root is given", None, data[:end] + forked, root, PM)
    add("c-fork-no-index", "§9.2: two last groups follow one group, no index", "ambiguous", data[:end] + forked[6 * size:fork_end])
    add("c-fork-cut", "§9.2: two last groups, one of which cannot be restored", None, data[:end] + forked[6 * size:6 * size + last], None, PM)
    add("c-index-claims-groups", "§9.2: a foreign index lists groups of a chain", None, data[:end] + forked[fork_end:], None, PM)
    meta_file, meta_root = C(k=2, parts=many, meta=entry(9, b"x"))
    add("c-meta", "§9: meta, several groups", None, meta_file, None, PM, verify=0)
    add("c-meta-root", "§9: the same, the root is given", None, meta_file, meta_root, PM, verify=0)

    # ---- what a file is
    (shard,), shard_root = [[list(x.values()), y] for x, y in [F(k=1, m=0, parts=(part(len(data), 1),), payload=data)]][0]
    add("c-magic-as-shard-file", "§9.3: one bit makes the first magic that of a shard file", None, data[:4] + b"S" + data[5:], None, PM)
    add("c-magic-as-shard-file-root", "§9.3: the same, the root is given", None, data[:4] + b"S" + data[5:], root, PM)
    add("c-behind-shard-magic", "§9.3: the magic of a shard file in front", None, MAGIC_S + data, root, PM)
    add("c-behind-shard-header", "§9.3: the header of a shard file in front", None, shard[:192] + data, None, PM)
    add("c-behind-shard-header-root", "§9.3: the same, the root is given", None, shard[:192] + data, root, PM)
    add("c-in-shard-file", "§9.3: proved shards are not scanned", None, shard, None, data, verify=0)
    add("c-in-shard-file-root", "§9.3: the same, the root is given", None, shard, shard_root, data)
    add("c-in-shard-file-inner-root", "§9.3: the root of the container inside is given", None, shard, root, PM)
    for stem, what in (("behind", shard + other), ("before", other + shard)):
        add("c-%s-shard-file" % stem, "§9.3: a shard file that can be restored alone, and a container", "ambiguous", what)
        add("c-%s-shard-file-root-1" % stem, "§9.3: the same, the root of the shard file is given", None, what, shard_root, data)
        add("c-%s-shard-file-root-2" % stem, "§9.3: the same, the root of the container is given", None, what, other_root, PO)
    files, _ = F(k=2, parts=(part(17000, 3, 2),))
    P17000 = generate(17000, 7)
    add("s-magic-as-record", "§9.3: one bit makes the first magic that of a record", None,
        {x: y[:4] + b"R" + y[5:] if x.endswith("0.shard") else y for x, y in files.items()}, None, P17000)
    add("s-and-container", "§9.3: among shard files a container is foreign", None, dict(files, c=other), None, P17000)
    add("s-folder-with-container", "§9.3: in a folder a container is foreign, also alone", "damaged", {"c": other})
    fake = MAGIC_R * 5 + C(lie=dict(version=2))[0] + C(rec=poke(0, 1))[0] + C(payload=P50[::-1])[0][:256] + MAGIC_S + MAGIC_X + MAGIC_M + annex(1, b"x")
    outer, _ = C(k=2, parts=(part(len(fake), 1, 2),), payload=fake)
    add("c-imitation", "§9.1: the payload imitates records", None, outer, None, fake)
    add("c-imitation-damaged", "§9.1: the payload imitates records, and its record is damaged", None, flipped(outer, 8), None, fake)
    # false headers with long bodies
    mib = 1 << 20

    def false(L):
        return put_crc(MAGIC_R + bytes(24) + pack(Geo(1, SHA256, CONTAINER, 1, 1, 0, L, 1, L, 0)) + bytes(64), bytes(64))

    for count in (10, 400):
        tail = bytes(mib) if count == 400 else b""
        add("c-false-headers-%d" % count, "§9.1: %d false headers in front%s; the root is given" % (count, ", whose bodies are there" if tail else ""), None,
            false(mib) * count + data + tail, root, PM)
    add("c-false-headers-10-no-root", "§9.1: 10 false headers in front", None, false(mib) * 10 + data, None, PM)
    add("c-false-headers-2100", "§9.1: more work than is allowed: the reader goes on behind what was hashed", None,
        false(mib // 2) * 2100 + bytes(mib // 2 + 64) + data, None, PM)

    # ---- annexes (§9.4)
    files, s_root = F(k=2, parts=((100, 64, 1),))
    a, b, c = files.values()
    inner = C(payload=P64, parts=((64, 64, 1),))
    several = annex(1, b"signature") + annex(1, b"") + annex(1 << 31, generate(70, 2)) + annex(77, MAGIC_R * 3)
    broken = bytearray(annex(9, b"some data"))
    broken[34] ^= 1
    for stem, rule, x, clean in (
            ("unknown", "of an unknown type", annex(77, b"data"), 0), ("empty", "without data", annex(2, b""), 0), ("several", "several", several, 0),
            ("broken", "broken: its CRC is wrong", bytes(broken), 1), ("heads-differ", "its two AH differ", annex(9, b"data")[:-1] + b"\1", 1),
            ("zero-bytes", "zero bytes of AH", annex(9, b"data", head=poke(31, 1)), 1), ("cut", "cut short", annex(9, b"data")[:-5], 1),
            ("broken-before-whole", "a whole one behind a broken one", bytes(broken) + annex(1, b"x"), 1),
            ("container", "with a container inside", annex(5, inner[0]), 0)):
        add("s-annex-" + stem, "§9.4: annexes behind shard files: " + rule, None, {"a": a + x, "b": b, "c": c + x}, None, P100, verify=clean)
        add("s-annex-%s-k" % stem, "§9.4: annexes behind shard files: %s; k shards, the first headers are damaged" % rule, None if not clean else "damaged",
            {"a": flipped(a + x, 40), "c": flipped(c + x, 40)}, None, None if clean else P100)
        ambiguous = stem == "container"
        add("c-annex-" + stem, "§9.4: annexes behind a container: " + rule + ("; an annex hides nothing" if ambiguous else ""), "ambiguous" if ambiguous else None,
            whole + x, None, None if ambiguous else P50, **({} if ambiguous else dict(verify=clean)))
        add("c-annex-%s-root" % stem, "§9.4: the same, the root is given", None, whole + x, whole_root, P50, verify=clean)
    add("c-annex-container-its-root", "§9.4: the root of the container in the annex is given", None, whole + annex(5, inner[0]), inner[1], P64)
    add("c-annex-in-front", "§9.4: an annex in front of a container", None, several + whole, None, P50)
    single = F(m=0)[0]["x.000.shard"]
    add("s-annex-file", "§9.4: one shard file with annexes", None, single + several, None, P50, verify=0)
    add("s-annex-file-container", "§9.4, §9.3: one shard file with a container in an annex", "ambiguous", single + annex(5, inner[0]))
    add("s-annex-file-container-root", "§9.4, §9.3: the same, the root of the shard file is given", None, single + annex(5, inner[0]), F(m=0)[1], P50)
    add("s-annex-file-container-its-root", "§9.4, §9.3: the same, the root of the container is given", None, single + annex(5, inner[0]), inner[1], P64)
    add("c-annex-too-long", "§9.4: an annex of more than 2^20 bytes is bytes like any other", None, whole + annex(3, bytes(mib + 1)), None, P50, verify=1)

    # ---- shard folders
    P17 = P17000
    files, root = F(k=2, parts=(part(17000, 3, 2),))
    a, b, c = list(files.values())
    L, proof = part(17000, 3, 2)[1], 32 * (1 + 1 + 2)
    pre, size = 256, 3 * proof                              # (H and the meta; the proofs)
    body = pre + size
    post = body + 3 * L                                     # (where the second proofs begin)
    assert len(a) == post + size + 256 and body % 64 == 0
    add("s-k-1", "§10: k − 1 shards", "damaged", [a])
    add("s-k", "§10: k shards", None, {"q": b, "r": c}, None, P17)
    add("s-file-names", "§8: a file's name says nothing", None, {"x.000.shard": c, "x.001.shard": a, "x.002.shard": b}, None, P17, verify=0)
    add("s-wrong-root", "§11: another root is asked for", "wrong-root", [a, b], hashlib.sha256(b"other").digest())
    add("s-root", "§11: the root is given", None, [a, b], root, P17)
    second, second_root = F(k=2, parts=(part(17000, 3, 2),), h=BLAKE3)
    both = dict({"a" + x: y for x, y in list(files.items())[:2]}, **{"b" + x: y for x, y in list(second.items())[1:]})
    add("s-two-encodings", "§11: two roots could be restored", "ambiguous", both)
    add("s-two-encodings-root-1", "§11: two encodings, the root is given", None, both, root, P17)
    add("s-two-encodings-root-2", "§11: two encodings, the root is given", None, both, second_root, P17)
    add("s-two-encodings-one-whole", "§11: two encodings, one of which could be restored", None, [a, b, list(second.values())[0]], None, P17)
    add("s-two-encodings-other-root", "§11: two encodings, only one has enough shards, the other is asked for", "damaged", [a, b, list(second.values())[0]], second_root)
    hurt = flipped(a, body + 4, body + L + 10)
    add("s-copy-bad-first", "§10.1: a valid copy beats an invalid one", None, {"a": hurt, "b": a, "c": b}, None, P17)
    add("s-copy-bad-last", "§10.1: a valid copy beats an invalid one", None, {"a": a, "b": b, "c": hurt}, None, P17)
    add("s-copies-each-half", "§10.1: two damaged copies of a shard make one whole", None, {"a": flipped(a, body + 4), "b": flipped(a, body + L + 10), "c": b}, None, P17)
    add("s-body-damaged", "§10: k shards, one body byte differs", "damaged", [flipped(a, body + 4), b])
    add("s-body-damaged-k-1-sets", "§10: k + 1 shards, each lacks another set", None, [flipped(a, body + 4), flipped(b, body + L), flipped(c, body + 2 * L)], None, P17, verify=1)
    add("s-header-first-damaged", "§8: the first header is damaged", None, [flipped(a, 40), b], None, P17)
    add("s-header-last-damaged", "§8: the last header is damaged", None, [a, flipped(b, len(b) - 100)], None, P17)
    add("s-header-mixed", "§8: one header's version is 2, the other is good", None, [put_crc(a[:32] + b"\2" + a[33:192]) + a[192:], b], None, P17)
    add("s-headers-differ", "§8: two good headers that differ: each counts for itself", None, [a, b[:-192] + list(second.values())[1][-192:]], root, P17)
    add("s-proofs-first-damaged", "§8: the first proofs are damaged", None, [flipped(a, *[pre + 8 + proof * s for s in range(3)]), b], None, P17)
    add("s-proofs-second-damaged", "§8: the second proofs are damaged", None, [a, flipped(b, *[post + proof * s for s in range(3)])], None, P17)
    add("s-proofs-one-copy-each", "§8: one proof of each copy is damaged", None, [flipped(a, pre + 8, post + proof + 2), b], None, P17)
    add("s-proofs-both-damaged", "§8: both copies of one proof are damaged", "damaged", [flipped(a, pre + 8, post + 8), b])
    new = generate(10, 5)
    for stem, rule, at, cut, extra in (
            ("inserted-between-sets", "10 bytes inserted between two sets", body + L, 0, new), ("inserted-in-meta", "10 bytes inserted into the first meta", 200, 0, new),
            ("inserted-in-first-proofs", "10 bytes inserted into the first proofs", pre + 100, 0, new), ("inserted-in-second-proofs", "10 bytes inserted into the second proofs", post + 100, 0, new),
            ("inserted-first", "10 bytes inserted before the file", 0, 0, new), ("appended", "10 bytes appended", len(a), 0, new),
            ("inserted-in-header", "10 bytes inserted into the first header", 100, 0, new), ("deleted-in-meta", "33 bytes deleted from the first meta", 200, 33, b""),
            ("deleted-header-first", "the first header is gone", 0, 192, b""), ("deleted-header-last", "the last header is gone", len(a) - 192, 192, b""),
            ("deleted-proofs-first", "the first proofs are gone", pre, size, b""), ("deleted-to-body", "all before the body is gone", 0, body, b""),
            ("cut-after-body", "all behind the body is gone", post, 99999, b"")):
        add("s-" + stem, "§8: k shards; " + rule, None, [a[:at] + extra + a[at + cut:], b], None, P17, verify=1)
    for stem, rule, at, cut, extra in (("inserted-in-set", "10 bytes inserted into set 1", body + L + 10, 0, new), ("deleted-in-set", "5 bytes deleted from set 1", body + L + 10, 5, b""),
                                       ("deleted-set", "the whole of set 1 deleted", body + L, L, b"")):
        changed = a[:at] + extra + a[at + cut:]
        add("s-" + stem + "-k", "§8: k shards; " + rule, "damaged", [changed, b])
        add("s-" + stem, "§8: k + 1 shards; " + rule + "; the other sets are usable", None, [changed, b, flipped(c, body + 4, body + 2 * L + 48)], None, P17)
    return out


def root_of(container):
    """R, as the index states it"""
    return container[spots(container, MAGIC_X)[0] + 64:][:32]


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
            for name, data in shard_names(v["file_name"].encode(), files).items():
                store(os.path.join(folder, v["path"], name), data)
    assert len({v["name"] for v in vectors}) == len(vectors)
    write_json(os.path.join(folder, "encode.json"), vectors)
    errors, places = [], {}
    for name, rule, cls, what, root, payload, more in error_cases():
        where = "errors/" + name + ("" if isinstance(what, dict) else ".fec")
        where = places.setdefault(tuple(sorted(what.items())) if isinstance(what, dict) else what, where)      # the same bytes are stored once
        for file, data in what.items() if isinstance(what, dict) else [("", what)]:
            store(os.path.join(folder, where, file).rstrip("/"), data)
        v = {"name": name, "rule": rule, "path": where, "root": root.hex() if root else None, "class": cls, "exit": EXIT[cls]}
        if payload is not None:
            v.update(payload_len=len(payload), payload_sha256=hashlib.sha256(payload).hexdigest())
        v.update(more)
        errors.append(v)
    assert len({v["name"] for v in errors}) == len(errors)
    write_json(os.path.join(folder, "errors.json"), errors)
    print("%d encodings, %d errors" % (len(vectors), len(errors)))


def check(folder):
    bad = 0

    def complain(text, *more):
        nonlocal bad
        bad += 1
        print("\n    ".join([text, *more]))

    def expect(name, result, cls, payload_sha, root):
        sha = hashlib.sha256(result.payload).hexdigest() if result.payload is not None else None
        if result.cls != cls or sha != payload_sha or root and not result.cls and result.root.hex() != root:
            complain("%s: class %s instead of %s, root %s" % (name, result.cls, cls, result.root and result.root.hex()), *result.lines[-30:])

    with open(os.path.join(folder, "encode.json"), encoding="utf-8") as f:
        vectors = {v["name"]: v for v in json.load(f)}
    for case in encode_cases():
        v, files = encode_vector(case)
        shards = v["form"] == "shards"
        if vectors.pop(v["name"], None) != v:
            complain(v["name"] + ": differs")
        payload = generate(v["payload_len"], v["seed"])
        sha = hashlib.sha256(payload).hexdigest()
        if "path" in v:
            blobs, _ = load([os.path.join(folder, v["path"])])
            if [x for _, x in blobs] != files:
                complain(v["name"] + ": the stored files differ")
        blobs = [(str(i), x) for i, x in enumerate(files)]
        result = read_all(blobs, shards, strict=v["file_len"] < 10000)
        expect(v["name"], result, None, sha, v["root"])
        if not result.clean or len(result.meta) != v["meta_len"]:
            complain(v["name"] + ": not clean")
        # the first m of n shards lost: the most that can be repaired
        m, n = v["m"], v["k"] + v["m"]
        if v["k"] < 200 and v["payload_len"] % 2 or v["payload_len"] % 3 == 0:
            if not shards:
                records = Scan(files[0], Notes()).records
                blobs = [("cut", b"".join(files[0][r.pos:r.end] for r in records if (r.i + r.s + r.pg.nr) % n >= m))]
            expect(v["name"] + " (repaired)", read_all(blobs[m:] if shards else blobs, shards), None, sha, v["root"])
    for name in vectors:
        complain(name + ": not written by this program")
    with open(os.path.join(folder, "errors.json"), encoding="utf-8") as f:
        errors = json.load(f)
    for v in errors:
        result = read_all(*load([os.path.join(folder, v["path"])]), bytes.fromhex(v["root"]) if v["root"] else None, v.get("strict", False))
        expect(v["name"], result, v["class"], v.get("payload_sha256"), v["root"])
        if result.exit != v["exit"]:
            complain(v["name"] + ": exit")
        if "verify" in v and v["verify"] != (0 if result.clean else 1):
            complain(v["name"] + ": verify", *result.lines)
        if "file_name" in v and (result.meta is None or check_meta(result.meta).get(2) != v["file_name"].encode()):
            complain(v["name"] + ": the name")
        if "meta_lost" in v and result.meta is not None:
            complain(v["name"] + ": the meta is there")
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
    # §9.4, §12: what would be too large for a vector
    assert annex_size(annex(3, bytes(1 << 20)), 0)[0] == 64 + (1 << 20)
    global LAST_GROUPS, INDEXES_KEPT
    kept, data = (LAST_GROUPS, INDEXES_KEPT), [forge(CONTAINER, payload=generate(50, j), keep=lambda g, s, i: j == 0 or i == 2)[0] for j in range(4)]
    last_groups = [forge(CONTAINER, k=2, m=0, payload=generate(100, j), parts=((100, 64, 1),), index=False, keep=lambda g, s, i: i == 0)[0] for j in range(4)]
    LAST_GROUPS, INDEXES_KEPT = 5, 2
    assert read_all([("", b"".join(last_groups) + data[0])], False).payload == generate(50, 0)
    assert len(Scan(b"".join(data), Notes()).indexes) == 6
    LAST_GROUPS = 4
    assert read_all([("", b"".join(last_groups) + data[0])], False).cls == "ambiguous"
    LAST_GROUPS, INDEXES_KEPT = kept
    print("ok")


# ---------------------------------------------------------------- commands

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
        return globals()[args.command](args.folder)
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
