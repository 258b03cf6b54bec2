"""BLAKE3, SHA-256, the tagged nodes of §3, and CRC-32C."""
import hashlib
import struct

from .basics import SHA256, ceil_div

try:
    import blake3 as blake3_package
except ImportError:
    blake3_package = None

# Both compression functions work on many inputs at once: a "lane int" holds one 32-bit word of each input in the low
# half of 64 bits.

# SHA-256 begins with the same words.
B3_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
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


def own_blake3(inputs, key=None, first=0, is_whole=True):
    """BLAKE3 of several inputs of one length (keyed when a key is given). Inputs that are not whole are subtrees of
    longer ones, from chunk number `first` on; the results are chaining values then."""
    words = struct.unpack("<8I", key) if key else B3_IV
    base = KEYED if key else 0
    root_flag = ROOT_FLAG if is_whole else 0
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
        values = chunk_values([x[1024 * c:1024 * c + 1024] for x in inputs for c in range(full)], list(range(first, first + full)) * len(inputs), 0)
        levels = [values[full * j:full * j + full] for j in range(len(inputs))]
    for level, value in zip(levels, chunk_values([x[1024 * full:] for x in inputs], [first + full] * len(inputs), 0 if full else root_flag)):
        level.append(value)
    while len(levels[0]) > 1:
        blocks = [level[j] + level[j + 1] for level in levels for j in range(0, len(level) - 1, 2)]
        flags = base | PARENT | (root_flag if len(levels[0]) == 2 else 0)
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
    """Compresses each of several blocks by SHA-256, once, from the same eight start words."""
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

# These dictionaries remember results, because a reader comes to the same shards and upper nodes again and again.
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


def crc_is_right(data):
    return struct.unpack_from("<I", data, 8)[0] == crc32c(data[12:])
