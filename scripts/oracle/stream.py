"""The second implementation of live streams, written from docs/FORMAT.md sections 13 to 16 alone ("§" refers to it).

    oracle stream selftest
    oracle stream encode [--key-file KEY] [--profile NAME] [--window W] [--block D] [--packet P] [--rate R/S] [--stream-id HEX] -o OUT FILE
    oracle stream decode [--key-file KEY] -o OUT FILE        a framed byte stream; gaps are left out
    oracle stream verify FILE               recomputes every repair packet of a framed byte stream
    oracle stream golden DIR                writes the test vectors (the same bytes on each run)
    oracle stream check DIR                 reads them all again

Exit codes: 0 ok, 2 usage, 3 the stream is not whole, 4 I/O, 5 a packet is not what the specification says. Python 3.9, nothing else; plain and slow on purpose.
"""
import argparse
import hashlib
import hmac
import json
import os
import random
import struct
import sys
from collections import namedtuple

from .aead import aes_256_gcm, chacha20_poly1305, selftest as test_aead
from .encoding import GF_EXP, GF_LOG, ceil_div, crc32c, evaluate, generate, mul_table, store

MAGIC = bytes.fromhex("89666570")
SOURCE, REPAIR, MARK = 0, 1, 2
BOUNDED, CLASSIC, CLASSIC_BLOCKS, BLOCKS = 1, 2, 3, 4
PROFILES = {"bounded": BOUNDED, "classic": CLASSIC, "classic-blocks": CLASSIC_BLOCKS, "blocks": BLOCKS}
MASK = (1 << 64) - 1

Params = namedtuple("Params", "profile id W P D")
Row = namedtuple("Row", "number first count part symbol")


class Bad(Exception):
    """A packet that is dropped; kind is the rule's class."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


# ---------------------------------------------------------------- §13 packets

def header(p, kind, number, body, **lie):
    """36 bytes; `lie` sets fields to what they should not be, the checksum is right unless it is named."""
    f = dict(magic=MAGIC, version=1, type=kind, auth=0, profile=p.profile, id=p.id, number=number, W=p.W, P=p.P, D=p.D)
    f.update({{"nr": "number"}.get(k, k): v for k, v in lie.items() if k != "sum"})
    head = f["magic"] + struct.pack("<BBBBQQIHH", f["version"], f["type"], f["auth"], f["profile"], f["id"], f["number"], f["W"], f["P"], f["D"])
    value = crc32c(head + bytes(4) + (b"" if f["type"] == SOURCE else body))
    return head + struct.pack("<I", value ^ lie.get("sum", 0))


def payload_sum(stream_id, seq, payload):
    return crc32c(struct.pack("<QQH", stream_id, seq, len(payload)) + payload)


def source_packet(p, seq, payload, **lie):
    body = short_symbol(p, seq, payload)
    return header(p, SOURCE, seq, body, **lie) + body


def short_symbol(p, seq, payload):
    return struct.pack("<IH", payload_sum(p.id, seq, payload), len(payload)) + payload


def symbol_of(p, seq, payload):
    return short_symbol(p, seq, payload).ljust(p.P + 6, b"\0")


def repair_packet(p, row, **lie):
    body = struct.pack("<QII", row.first, row.count, row.part) + row.symbol
    return header(p, REPAIR, row.number, body, **lie) + body


def mark_packet(p, sent, flags, **lie):
    body = struct.pack("<I", flags)
    return header(p, MARK, sent, body, **lie) + body


def open_symbol(p, seq, symbol):
    """The payload of a symbol that was rebuilt, or None."""
    value, size = struct.unpack_from("<IH", symbol)
    payload = symbol[6:6 + size]
    return payload if size <= p.P and not any(symbol[6 + size:]) and value == payload_sum(p.id, seq, payload) else None


def parse(packet):
    """(Params, type, number, what the body says): §13.1's rules in their order."""
    if packet[:4] != MAGIC:
        raise Bad("magic", "magic")
    if len(packet) < 36:
        raise Bad("damaged", "shorter than a header")
    version, kind, auth, profile, stream_id, number, W, P, D, value = struct.unpack_from("<BBBBQQIHHI", packet, 4)
    body = packet[36:]
    if version != 1:
        raise Bad("version", "version")
    if kind > 2:
        raise Bad("type", "type")
    if auth:
        raise Bad("authentication", "authentication")
    if value != crc32c(packet[:32] + bytes(4) + (b"" if kind == SOURCE else body)):
        raise Bad("damaged", "checksum")
    if profile not in PROFILES.values():
        raise Bad("profile", "profile")
    if P < 16 or not 1 <= W <= 65536 or D < 1:
        raise Bad("invalid", "parameters")
    if not {BOUNDED: D <= ceil_div(W, 2) and (D >= 48 or ceil_div(W, D) <= 8), CLASSIC_BLOCKS: D <= W, BLOCKS: D <= 255}[profile if profile > 2 else BOUNDED]:
        raise Bad("invalid", "block")
    if number >= 1 << 63:
        raise Bad("invalid", "number")
    p = Params(profile, stream_id, W, P, D)
    if kind == SOURCE:
        if len(body) < 6 or len(body) != struct.unpack_from("<H", body, 4)[0] + 6:
            raise Bad("damaged", "length")
        payload = body[6:]
        if struct.unpack_from("<I", body)[0] != payload_sum(stream_id, number, payload):
            raise Bad("damaged", "payload checksum")
        if len(payload) > P:
            raise Bad("invalid", "payload length")
        return p, kind, number, payload
    if kind == MARK:
        if len(body) != 4:
            raise Bad("damaged", "length")
        flags = struct.unpack("<I", body)[0]
        if flags > 1:
            raise Bad("invalid", "flags")
        return p, kind, number, flags
    if not 16 + 6 <= len(body) <= 16 + 6 + P:
        raise Bad("damaged", "length")
    first, count, part = struct.unpack_from("<QII", body)
    if not 1 <= count <= W or first + count >= 1 << 63:
        raise Bad("invalid", "range")
    if profile == BLOCKS:
        s = ceil_div(count, D)
        fits = (first % W == 0 or s == 1) and part // s + ceil_div(count, s) < 256
    else:
        fits = first % D == 0 and part == 0 and (profile != CLASSIC_BLOCKS or count <= D)
    if not fits:
        raise Bad("invalid", "row")
    return p, kind, number, Row(number, first, count, part, body[16:])


# ---------------------------------------------------------------- §13.3 sealed packets

CIPHERS = {1: aes_256_gcm, 2: chacha20_poly1305}


def stream_key(key, authentication, stream_id):
    """HKDF-SHA256 (RFC 5869): one block is enough."""
    pseudorandom = hmac.new(b"fec live stream", key, hashlib.sha256).digest()
    info = b"fec stream 1, sender to receivers" + struct.pack("<BQ", authentication, stream_id)
    return hmac.new(pseudorandom, info + b"\1", hashlib.sha256).digest()


def seal(key, authentication, packet, time, counter):
    head = packet[:6] + bytes([authentication]) + packet[7:32] + struct.pack("<IQ", time, counter)
    out, tag = CIPHERS[authentication](stream_key(key, authentication, struct.unpack_from("<Q", packet, 8)[0]), head[32:], head, packet[36:])
    return head + out + tag


def unseal(key, sealed, seen):
    """The packet in a sealed one, or None; `seen` holds the streams and counters that came before."""
    if sealed[:4] != MAGIC or len(sealed) < 60 or sealed[4] != 1 or sealed[5] > 2 or sealed[6] not in CIPHERS:
        return None
    head, body, tag = sealed[:44], sealed[44:-16], sealed[-16:]
    stream_id, counter = struct.unpack_from("<Q", head, 8)[0], struct.unpack_from("<Q", head, 36)[0]
    out, expected = CIPHERS[head[6]](stream_key(key, head[6], stream_id), head[32:], head, body, True)
    if tag != expected or (stream_id, counter) in seen:
        return None
    seen.add((stream_id, counter))
    plain = head[:6] + b"\0" + head[7:32]
    return plain + struct.pack("<I", crc32c(plain + bytes(4) + (b"" if plain[5] == SOURCE else out))) + out


def unseal_all(key, packets):
    seen = set()
    return [x for x in (unseal(key, packet, seen) for packet in packets) if x is not None]


def passphrase_key(passphrase):
    return hashlib.scrypt(passphrase.encode(), salt=b"fec stream passphrase 1", n=1 << 16, r=8, p=1, dklen=32, maxmem=1 << 28)


# ---------------------------------------------------------------- §14 rows

def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


class Draws:
    def __init__(self, seed):
        self.state = seed

    def draw(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return mix(self.state)

    def below(self, b):
        return (self.draw() >> 32) * b >> 32


def gmul(a, b):
    return GF_EXP[GF_LOG[a] + GF_LOG[b]] if a and b else 0


def g(n):
    v = n.bit_length() - 1
    return (v << 16) + (n << 16 >> v) - (1 << 16)


def e(x):
    v, y = x >> 16, x & 0xFFFF
    return ((1 << 16) + y << v) >> 16


def strata(m):
    """The ages at which the strata of a row over m columns end: §14.2, step 3."""
    unit = 1 << max(0, m.bit_length() - 6)
    rounded = ceil_div(m, unit) * unit
    d = min(20, rounded // 2)
    if d == 0:
        return []
    a = [e(g(1024) + (g(rounded + 1024) - g(1024)) * i // d) - 1024 for i in range(d + 1)]
    assert (a[0], a[d]) == (0, rounded)
    ends = []
    for i in range(d):
        ends += [(a[i] + a[i + 1]) // 2, a[i + 1]] if i < 2 else [a[i + 1]]
    return ends[:-1] + [m]


def tap_columns(draws, number, F, m):
    """The column c of each tap, in the order of t."""
    E, n, ends = F + m, 0, strata(m)
    for t, f in enumerate(ends):
        w = f - n
        if t == len(ends) - 1 or w < 8:
            yield E - f + draws.below(w)
        else:
            G = 1 << (w // 8).bit_length() - 1
            q = (E - n) // (4 * G) - 1
            kappa = mix(256 * q + t & MASK)
            j = q * G + (number * (kappa | 1) + (kappa >> 32) & MASK) % G
            h = (j * 0x9E3779B97F4A7C15 & MASK) >> 62
            b = number // G if F == 0 else 0
            yield 4 * j + (t + h + b) % 4
        n = f


def group(c, D):
    """The group of four columns that c lies in, or none."""
    o, s = c % D, D // 4
    return [c - o + o % s + i * s for i in range(4)] if o < 4 * s else []


def added(c, D, E):
    """The columns whose symbols a tap at column c of a row that ends before E adds."""
    four = group(c, D)
    return [x for x in four if x != c] if four and four[3] < E else [c]


def coefficients(p, number, F, m):
    """The coefficient of each column of a row: §14.2, §14.3."""
    profile, draws = p.profile, Draws(number)
    r = 2 + draws.below(254)
    factor = [1, r, gmul(r, r), gmul(r, gmul(r, r))]
    lanes = 16 if profile == BOUNDED else 8
    sums = []                                   # for each lane the (sum, class) pairs that are added
    if profile == BOUNDED:
        x = [draws.draw(), draws.draw()]
        for lane in range(lanes):
            n = x[lane // 8] >> 8 * (lane % 8) & 255
            sums.append([((n >> 2) % 3, n & 3)])
    else:
        x = draws.draw()
        for lane in range(lanes):
            n = x >> 6 * lane & 63 or 4
            sums.append([(i % 3, i // 3) for i in range(6) if n >> i & 1])
    row = {}
    for c in range(F, F + m):
        i = c // lanes
        u = (1, GF_EXP[i % 255], GF_EXP[(2 * i + i // 255) % 255])
        row[c] = 0
        for which, k in sums[c % lanes]:
            row[c] ^= gmul(factor[k], u[which])
    if profile != BOUNDED:
        for _ in range(ceil_div(m, 16)):
            for k in (0, 1):
                row[F + draws.below(m)] ^= factor[k]
        return row
    y = [draws.draw(), draws.draw()]
    for t, c in enumerate(tap_columns(draws, number, F, m)):
        k = (sums[c % lanes][0][1] + 1 + (y[t // 16] >> 4 * (t % 16) & 15) % 3) % 4
        for x in added(c, p.D, F + m):
            row[x] ^= factor[k]
    return row


def combine(terms, size):
    """Σ coefficient · symbol."""
    groups = {}
    for c, symbol in terms:
        groups[c] = groups.get(c, 0) ^ int.from_bytes(symbol, "little")
    total = 0
    for c, value in groups.items():
        if c:
            total ^= int.from_bytes(value.to_bytes(size, "little").translate(mul_table(c)), "little")
    return total.to_bytes(size, "little")


def row_symbol(p, number, first, count, part, symbols):
    """The symbol of a repair packet; symbols maps columns to symbols."""
    if p.profile == BLOCKS:
        s = ceil_div(count, p.D)
        members = [symbols[first + j] for j in range(count) if j % s == part % s]
        return evaluate(range(len(members)), members, [len(members) + part // s])[0]
    row = coefficients(p, number, first, count)
    return combine([(c, symbols[column]) for column, c in row.items()], p.P + 6)


# ---------------------------------------------------------------- §14.5 a sender, without timers

ENDS = 3


def send(p, repair, source, payloads):
    """All packets of a stream that is sent without pause."""
    symbols, packets, state = {}, [], dict(number=0, block=None, part=0, owed=0)
    paid = earned = 0                           # §14.5: the credits of packets and of bytes
    size = p.D if p.profile == CLASSIC_BLOCKS else p.W

    def row(first, count, part=0):
        s = ceil_div(count, p.D) if p.profile == BLOCKS else 1
        longest = max(len(payloads[first + j]) for j in range(count) if j % s == part % s)
        symbol = row_symbol(p, state["number"], first, count, part, symbols)
        assert not any(symbol[6 + longest:])
        symbol = symbol[:6 + longest]
        packets.append(repair_packet(p, Row(state["number"], first, count, part, symbol)))
        state["number"] += 1

    def start(n):
        return 0 if n <= p.W else p.D * ceil_div(n - p.W, p.D)

    def sliding(n):
        row(start(n), n - start(n))

    def of_block():
        """The next row of the last complete block or window, if it lacks one."""
        if state["owed"]:
            row(*state["block"], state["part"] if p.profile == BLOCKS else 0)
            state["owed"] -= 1
            state["part"] += 1

    def close(first, count):
        while state["owed"]:
            of_block()
        sets = ceil_div(count, p.D) if p.profile == BLOCKS else 1
        state.update(block=(first, count), part=0, owed=sets * ceil_div(ceil_div(count, sets) * repair, source))

    for n, payload in enumerate(payloads, 1):
        packets.append(source_packet(p, n - 1, payload))
        symbols[n - 1] = symbol_of(p, n - 1, payload)
        if p.profile > CLASSIC and n % size == 0:
            close(n - size, size)
        if p.profile <= CLASSIC:
            paid = min(paid, source) + repair
            earned += repair * 9 * (42 + len(payload))
            cost = source * 8 * (58 + max(map(len, payloads[start(n):n])))
            while paid >= source and earned >= cost:
                sliding(n)
                paid -= source
                earned -= cost
        else:
            for _ in range(n * repair // source - (n - 1) * repair // source):
                of_block()
    n = len(payloads)
    if p.profile <= CLASSIC:
        tail = min(n, max(24, min(n // 12, max(p.W // 4, p.D))))
        for _ in range(ceil_div(tail * repair, source)):
            sliding(n)
    else:
        if n % size:
            close(n - n % size, n % size)
        while state["owed"]:
            of_block()
    return packets, [mark_packet(p, n, 1)] * ENDS


# ---------------------------------------------------------------- §15 a receiver that has everything before it starts

Received = namedtuple("Received", "p payloads end dropped start is_whole")


def start_of(p, kind, number, what):
    """Where the stream is received from if this is its first packet, or None: §15 rule 3."""
    if kind == SOURCE:
        return number if number >= p.D else 0
    if kind == REPAIR:
        end = what.first + what.count
        return end if end > p.D else 0
    return 0 if number <= p.D else None


def receive(packets):
    """Payloads by number, the end if it was told, the packets that were dropped, by kind, and whether the stream is
    whole."""
    p, payloads, symbols, rows, end, dropped, start, conflicts, top = None, {}, {}, [], None, {}, None, 0, 0

    def drop(kind):
        dropped[kind] = dropped.get(kind, 0) + 1

    for packet in packets:
        try:
            q, kind, number, what = parse(packet)
        except Bad as bad:
            drop(bad.kind)
            continue
        p = p or q
        if q != p:
            drop("other stream" if q.id != p.id else "other parameters")
            continue
        start = start_of(p, kind, number, what) if start is None else start
        top = max(top, number + 1 if kind == SOURCE else what.first + what.count if kind == REPAIR else number)
        if kind == MARK:
            if what:
                conflicts += end not in (None, number)
                end = max(end or 0, number)
        elif number < start if kind == SOURCE else what.first < start:
            drop("from before the start")
        elif kind == SOURCE:
            conflicts += payloads.get(number, what) != what
            payloads.setdefault(number, what)
            symbols.setdefault(number, symbol_of(p, number, what))
        else:
            rows.append(what)
    if p:
        solve(p, payloads, symbols, rows)
    contradicted = conflicts or end is not None and top > end or "other stream" in dropped or "other parameters" in dropped
    is_whole = start == 0 and end is not None and sorted(payloads) == list(range(end)) and not contradicted
    return Received(p, payloads, end, dropped, start, is_whole)


def equations(p, symbols, rows):
    """(coefficients of the columns that are unknown, right side) of each row."""
    for row in rows:
        if p.profile == BLOCKS:
            s = ceil_div(row.count, p.D)
            members = [row.first + j for j in range(row.count) if j % s == row.part % s]
            k = len(members)
            target = k + row.part // s
            # the Lagrange coefficients of the row, as values of unit vectors
            c = {}
            for j, column in enumerate(members):
                up = down = 0
                for i in range(k):
                    if i != j:
                        up += GF_LOG[target ^ i]
                        down += GF_LOG[j ^ i]
                c[column] = GF_EXP[(up - down) % 255]
        else:
            c = coefficients(p, row.number, row.first, row.count)
        known = [(value, symbols[column]) for column, value in c.items() if column in symbols]
        unknown = {column: value for column, value in c.items() if column not in symbols and value}
        right = int.from_bytes(row.symbol.ljust(p.P + 6, b"\0"), "little") ^ int.from_bytes(combine(known, p.P + 6), "little")
        yield unknown, right.to_bytes(p.P + 6, "little")


def solve(p, payloads, symbols, rows):
    """Gauss-Jordan elimination, in reduced form at every step."""
    pivots = {}                                 # column -> (coefficients of other unknown columns, right side)
    size = p.P + 6

    def add(into, right, c, other, other_right):
        for column, value in other.items():
            value = into.get(column, 0) ^ gmul(c, value)
            if value:
                into[column] = value
            else:
                into.pop(column, None)
        return (int.from_bytes(right, "little") ^ int.from_bytes(other_right.translate(mul_table(c)), "little")).to_bytes(size, "little")

    for c, right in equations(p, symbols, rows):
        for column in [x for x in c if x in pivots]:
            value = c.pop(column)
            right = add(c, right, value, *pivots[column])
        if not c:
            continue
        pivot = min(c)
        inverse = GF_EXP[255 - GF_LOG[c.pop(pivot)]]
        c = {column: gmul(inverse, value) for column, value in c.items()}
        right = right.translate(mul_table(inverse))
        for column, (other, other_right) in list(pivots.items()):
            if pivot in other:
                value = other.pop(pivot)
                pivots[column] = (other, add(other, other_right, value, c, right))
        pivots[pivot] = (c, right)
    for column, (c, right) in pivots.items():
        if not c:
            payload = open_symbol(p, column, right)
            if payload is not None:
                payloads[column] = payload


# ---------------------------------------------------------------- §16 framed byte stream

DELIMITER = b"\xFE\xFD"
FIRST, LATER = 252, 64008


def stuff(packet):
    out, rest, most = b"", packet + DELIMITER, FIRST
    while rest:
        at = rest.find(DELIMITER)
        run = min(at if at >= 0 else len(rest), most)
        out += bytes([run % 253]) + (bytes([run // 253]) if most == LATER else b"") + rest[:run]
        rest = rest[run + 2 if run < most else run:]
        most = LATER
    return out


def unstuff(frame):
    out, at, most = b"", 0, FIRST
    while at < len(frame):
        digits = frame[at:at + (1 if most == FIRST else 2)]
        run = sum(digit * 253 ** i for i, digit in enumerate(digits))
        at += len(digits) + run
        if max(digits) > 252 or len(digits) != (1 if most == FIRST else 2) or run > most or at > len(frame):
            return None
        out += frame[at - run:at] + (DELIMITER if run < most else b"")
        last, most = run < most, LATER
    return out[:-2] if frame and last else None


def frames(packets):
    return DELIMITER + b"".join(stuff(packet) + DELIMITER for packet in packets)


def deframe(data):
    """Packets between two delimiters; what was no frame is left out."""
    return [x for x in (unstuff(piece) for piece in data.split(DELIMITER)[:-1] if piece) if x is not None]


# ---------------------------------------------------------------- golden vectors

def lengths(P, n, seed):
    """Payload lengths of a vector: mostly full, some short, some empty."""
    rng = generate(n, seed)
    return [P if x < 160 else x * P // 255 if x > 170 else 0 for x in rng]


def payloads_of(v):
    sizes = lengths(v["packet"], v["packets"], v["seed"])
    data = generate(sum(sizes), v["seed"] + 1)
    out, at = [], 0
    for size in sizes:
        out.append(data[at:at + size])
        at += size
    return out


def params_of(v):
    return Params(PROFILES[v["profile"]], int(v["stream_id"], 16), v["window"], v["packet"], v["block"])


def encode_cases():
    seed = 100
    for profile, window, block, packet, repair, source, packets in (
            ("bounded", 1, 1, 16, 1, 1, 9), ("bounded", 8, 2, 16, 1, 2, 40), ("bounded", 100, 25, 40, 1, 6, 400), ("bounded", 100, 25, 1350, 3, 4, 150),
            ("bounded", 480, 120, 16, 1, 6, 1500), ("bounded", 6000, 240, 16, 1, 60, 6900), ("bounded", 65536, 240, 16, 1, 500, 5000), ("bounded", 300, 60, 17, 5, 1, 60),
            ("bounded", 700, 48, 33, 2, 7, 900), ("bounded", 64, 16, 9000, 1, 6, 80), ("bounded", 2, 1, 65535, 1, 2, 7), ("bounded", 40, 10, 16, 1, 6, 0),
            ("classic", 1, 1, 16, 1, 1, 9), ("classic", 8, 2, 16, 1, 2, 40), ("classic", 100, 25, 40, 1, 6, 400), ("classic", 500, 125, 16, 1, 6, 1500),
            ("classic", 6000, 240, 16, 1, 120, 6900), ("classic", 300, 60, 17, 5, 1, 60), ("classic", 64, 16, 1350, 1, 6, 200),
            ("classic-blocks", 1, 1, 16, 1, 1, 9), ("classic-blocks", 480, 240, 40, 1, 6, 1000), ("classic-blocks", 6000, 240, 16, 1, 6, 960),
            ("classic-blocks", 60, 17, 33, 2, 3, 200), ("classic-blocks", 40, 40, 1350, 1, 4, 130),
            ("blocks", 1, 1, 16, 1, 1, 9), ("blocks", 480, 214, 40, 1, 6, 1500), ("blocks", 24, 24, 1350, 1, 6, 80), ("blocks", 60, 17, 33, 2, 3, 200),
            ("blocks", 1000, 100, 16, 1, 1, 2100), ("blocks", 255, 255, 16, 1, 255, 600), ("blocks", 7, 3, 100, 5, 1, 30), ("blocks", 6000, 219, 16, 1, 6, 6300),
            ("bounded", 28, 7, 16, 1, 1, 60), ("bounded", 4, 1, 16, 1, 1, 12), ("bounded", 400, 98, 16, 1, 20, 600)):
        seed += 2
        name = "%s-%d-%d-%d-%d-%d" % (profile, window, block, packet, repair, source)
        yield dict(name=name, profile=profile, window=window, block=block, packet=packet, repair=repair, source=source, packets=packets, seed=seed,
                   stream_id="%016x" % Draws(seed).draw())


def sha(data):
    return hashlib.sha256(data).hexdigest()


def encode_vector(v):
    p = params_of(v)
    packets, end = send(p, v["repair"], v["source"], payloads_of(v))
    repairs = [sha(x)[:16] for x in packets if x[5] == REPAIR]
    total = sha(b"".join(struct.pack("<I", len(x)) + x for x in packets + end))
    return dict(v, sha256=total, repairs=repairs, end=end[0].hex(), framed_sha256=sha(frames(packets + end)))


def packet_cases():
    """One packet for each rule of §13: (name, rule, kind or None, packet)."""
    p = Params(BOUNDED, 0x0123456789ABCDEF, 480, 32, 240)
    text = b"payload of a packet"
    symbol = bytes(range(38))
    out = []

    def add(name, rule, kind, packet):
        out.append((name, rule, kind, packet))

    def S(p=p, seq=7, payload=text, **lie):
        return source_packet(p, seq, payload, **lie)

    def R(p=p, number=3, first=240, count=100, part=0, symbol=None, **lie):
        return repair_packet(p, Row(number, first, count, part, symbol if symbol is not None else bytes(i % 251 for i in range(p.P + 6))), **lie)

    def M(p=p, sent=9, flags=1, **lie):
        return mark_packet(p, sent, flags, **lie)

    for name, make in (("source", S), ("repair", R), ("mark", M)):
        good = make()
        add(name, "§13.2 a good packet", None, good)
        add(name + "-magic", "§13.1 rule 1: magic", "magic", make(magic=MAGIC[:3] + b"q"))
        for at in (0, 3):
            add("%s-magic-cut-%d" % (name, at), "§13.1 rule 1: magic", "magic", good[:at])
        add(name + "-cut-header", "§13.1 rule 1: 36 bytes", "damaged", good[:35])
        add(name + "-cut-body", "§13.1, §13.2: checksum, where it ends", "damaged", good[:-1])
        add(name + "-no-body", "§13.2: where it ends", "damaged", good[:36])
        add(name + "-longer", "§13.2: where it ends", "damaged", good + b"\0")
        add(name + "-version-0", "§13.1 rule 1: version", "version", make(version=0))
        add(name + "-version-2", "§13.1 rule 1: version", "version", make(version=2))
        add(name + "-authentication", "§13.1 rule 1: authentication", "authentication", make(auth=1))
        add(name + "-sum", "§13.1 rule 1: checksum", "damaged", make(sum=1))
        add(name + "-profile-0", "§13.1 rule 1: profile", "profile", make(profile=0))
        add(name + "-profile-5", "§13.1 rule 1: profile", "profile", make(profile=5))
        add(name + "-number", "§13.1 rule 3", "invalid", make(nr=1 << 63))
        for at in range(len(good)):
            if at not in (0, 1, 2, 3, 4, 5, 6):
                kind = "damaged"
                add("%s-flip-%d" % (name, at), "§13.1, §13.2: a byte differs", kind, good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
    add("type-3", "§13.1 rule 1: type", "type", M(type=3))
    add("largest-number", "§13.1 rule 3: 2^63 − 1", None, S(seq=(1 << 63) - 1))
    for name, q, good in (
            ("P-15", p._replace(P=15), False), ("P-16", p._replace(P=16), True), ("W-0", p._replace(W=0), False), ("W-65536", p._replace(W=65536), True),
            ("W-65537", p._replace(W=65537), False), ("D-0", p._replace(D=0), False), ("D-half", p._replace(W=479), True), ("D-above-half", p._replace(W=478), False),
            ("D-48", p._replace(W=480, D=48), True), ("D-47", p._replace(W=480, D=47), False), ("D-eighth", p._replace(W=376, D=47), True),
            ("W-1", p._replace(W=1, D=1), True),
            ("classic-D-above-half", p._replace(profile=CLASSIC, W=478), False), ("classic-D-47", p._replace(profile=CLASSIC, D=47), False),
            ("classic-blocks-D-W", p._replace(profile=CLASSIC_BLOCKS, W=240), True), ("classic-blocks-D-above-W", p._replace(profile=CLASSIC_BLOCKS, W=239), False),
            ("blocks-D-255", p._replace(profile=BLOCKS, D=255), True), ("blocks-D-256", p._replace(profile=BLOCKS, D=256), False),
            ("blocks-D-above-W", p._replace(profile=BLOCKS, W=100), True)):
        add("parameters-" + name, "§13.1 rule 2", None if good else "invalid", M(q))
    add("payload-empty", "§13.2: length 0", None, S(payload=b""))
    add("payload-P", "§13.2: length = P", None, S(payload=bytes(32)))
    add("payload-above-P", "§13.2: length ≤ P", "invalid", S(payload=bytes(33)))
    add("payload-sum-of-other-seq", "§13.2: the checksum covers seq", "damaged", header(p, SOURCE, 8, b"") + S()[36:])
    add("payload-sum-of-other-stream", "§13.2: the checksum covers the stream id", "damaged", header(p._replace(id=1), SOURCE, 7, b"") + S()[36:])
    body = S()[36:]
    add("payload-length-wrong", "§13.2: where it ends", "damaged", header(p, SOURCE, 7, b"") + body[:4] + struct.pack("<H", 18) + body[6:])
    add("repair-symbol-short", "§13.2: a symbol may be cut", None, R(symbol=symbol[:-1]))
    add("repair-symbol-shortest", "§13.2: a symbol may be cut", None, R(symbol=symbol[:6]))
    add("repair-symbol-too-short", "§13.2: 6 ≤ S", "damaged", R(symbol=symbol[:5]))
    add("repair-symbol-long", "§13.2: S ≤ P + 6", "damaged", R(symbol=symbol + b"\0"))
    for name, row, good in (
            ("count-0", dict(count=0), False), ("count-1", dict(count=1), True), ("count-W", dict(count=480), True), ("count-above-W", dict(count=481), False),
            ("first-not-on-block", dict(first=239), False), ("part", dict(part=1), False), ("last-column", dict(first=(1 << 63) - 8 - ((1 << 63) - 8) % 240, count=1), True),
            ("past-last-column", dict(first=(1 << 63) - 1 - ((1 << 63) - 1) % 240, count=480), False), ("first-huge", dict(first=(1 << 64) - 16, count=240), False)):
        add("row-" + name, "§13.2: rows", None if good else "invalid", R(**row))
    c, b = p._replace(profile=CLASSIC_BLOCKS), p._replace(profile=BLOCKS, W=480, D=200)
    for name, row, good in (
            ("classic-blocks", dict(p=c, count=240), True), ("classic-blocks-count-above-D", dict(p=c, count=241), False), ("classic-blocks-part", dict(p=c, part=1), False),
            ("classic-blocks-first", dict(p=c, first=241), False), ("blocks", dict(p=b, first=480, count=480, part=5), True), ("blocks-first", dict(p=b, first=240, count=480), False),
            ("blocks-tail", dict(p=b, first=241, count=200, part=55), True), ("blocks-tail-part", dict(p=b, first=241, count=200, part=56), False),
            ("blocks-first-of-two-sets", dict(p=b, first=241, count=201), False),
            ("blocks-last-part", dict(p=b, first=0, count=480, part=(255 - 160) * 3 + 2), True), ("blocks-part-above", dict(p=b, first=0, count=480, part=(256 - 160) * 3), False),
            ("blocks-short-window", dict(p=b, first=0, count=1, part=254), True), ("blocks-short-window-part", dict(p=b, first=0, count=1, part=255), False)):
        add("row-" + name, "§13.2: rows", None if good else "invalid", R(**row))
    add("mark-flags-0", "§13.2: flags", None, M(flags=0))
    add("mark-flags-2", "§13.2: flags", "invalid", M(flags=2))
    return out


def shuffled(items, seed, reach):
    """Each item moves by less than `reach` places."""
    rng = random.Random(seed)
    return [x for _, _, x in sorted((i + rng.random() * reach, i, x) for i, x in enumerate(items))]


def file_cases():
    """Framed byte streams: (name, rule, bytes, packets that must be delivered as (seq, payload), exit)."""
    for profile, W, D, repair, source, n, lose in (("bounded", 200, 50, 1, 4, 500, 0.12), ("classic", 200, 50, 1, 4, 500, 0.12), ("classic-blocks", 100, 50, 1, 3, 450, 0.1), ("blocks", 120, 60, 1, 3, 480, 0.1)):
        v = dict(profile=profile, window=W, block=D, packet=64, packets=n, seed=W + n, stream_id="%016x" % Draws(n + PROFILES[profile]).draw())
        p, payloads = params_of(v), payloads_of(v)
        packets, end = send(p, repair, source, payloads)
        full = packets + end
        want = list(enumerate(payloads))
        rng = random.Random(n)
        yield profile, "§13 to §16: nothing is lost", frames(full), want, 0
        kept = [x for i, x in enumerate(packets) if rng.random() >= lose or i > len(packets) - 60]
        yield profile + "-lost", "§14: lost packets are rebuilt", frames(kept + end), want, 0
        mixed = shuffled([x for x in kept for _ in range(1 + (rng.random() < 0.1))], 5, 12)
        yield profile + "-mixed", "§15: reordered and doubled", frames(mixed + end), want, 0
        data = bytearray(frames(full))
        for at in range(3000, len(data) - 12000, 2900):
            data[at] ^= 0x10
        yield profile + "-flipped", "§16: damaged frames are lost packets", bytes(data), want, 0
    v = dict(profile="bounded", window=200, block=50, packet=64, packets=300, seed=77, stream_id="00000000000000aa")
    p, payloads = params_of(v), payloads_of(v)
    packets, end = send(p, 1, 6, payloads)
    data, want = frames(packets + end), list(enumerate(payloads))
    sources = [x for x in packets if x[5] == SOURCE]
    yield "cut-mark", "§16: the last frame is cut", data[:-3], want, 0
    yield "cut-end", "§16: the last frame is cut, and no mark says that the stream has ended", frames(packets)[:-3], want, 3
    yield "inserted", "§16: bytes inserted", data[:5000] + b"inserted" * 90 + data[5000:], want, 0
    yield "deleted", "§16: bytes deleted", data[:5000] + data[5300:], want, 0
    yield "delimiters", "§16: empty frames", data.replace(DELIMITER, DELIMITER * 3), want, 0
    yield "gap", "§15 rule 5: lost for good", frames(sources[:100] + sources[110:] + end), want[:100] + want[110:], 3
    yield "late", "§15 rule 3: joined later", frames(sources[60:] + end), want[60:], 3
    yield "end-first", "§15 rule 3: a first mark does not say where the stream begins", frames(end + packets), want, 0
    yield "end-first-and-lost", "§15 rules 3 and 5", frames(end + sources[:100] + sources[110:]), want[:100] + want[110:], 3
    yield "end-only", "§15 rule 3: nothing but an end", frames(end), [], 3
    yield "end-early-only", "§15 rule 3: nothing but an end within the first block", frames([mark_packet(p, 50, 1)]), [], 3
    yield "end-0", "§15 rule 2: an empty stream", frames([mark_packet(p, 0, 1)] * 2), [], 0
    yield "mark-first", "§15 rule 3: a first mark that is no end, and a late join", frames([mark_packet(p, 200, 0)] + sources[60:] + end), want[60:], 3
    yield "mark-0-first", "§15 rule 3: a first mark of the beginning", frames([mark_packet(p, 0, 0)] + sources[60:] + end), want[60:], 3
    yield "tail", "§15 rule 3: the rows of the tail and the end", frames(packets[-4:] + end), [], 3
    yield "backwards", "§15 rule 3: all packets, the last one first", frames((packets + end)[::-1]), [], 3
    yield "cut-front", "§15 rule 3: the first block is hit, and mended", frames(packets[3:] + end), want, 0
    other = source_packet(p._replace(id=0xBB), 5, b"foreign")
    yield "foreign", "§15 rule 1: a packet of another stream", frames(sources[:50] + [other] + sources[50:] + end), want, 3
    changed = [source_packet(p._replace(D=100), 5, b"other parameters"), source_packet(p, 3, b"a conflict")]
    yield "conflict", "§15 rules 1 and 2", frames(sources[:50] + changed + sources[50:] + end), want, 3
    # The payload holds frames of the same stream: they are no packets.
    inner = frames([source_packet(p, i, b"false") for i in range(5)])[:64]
    nested = [source_packet(p, i, inner) for i in range(20)]
    yield "nested", "§16: frames inside a payload", frames(nested + [mark_packet(p, 20, 1)]), [(i, inner) for i in range(20)], 0
    # One long payload in many short ones: rows are cut, and one that was cut can still tell of the long one.
    q = p._replace(id=0xEE)
    mixed = [x[:64 if i == 130 else i % 7] for i, x in enumerate(payloads_of(dict(packet=64, packets=700, seed=8)))]
    some, last = send(q, 1, 2, mixed)
    yield "short", "§13.2: symbols that were cut", frames([x for i, x in enumerate(some) if i % 9 != 4 and x[5:6] + x[16:18] != b"\0\x82\0"] + last), list(enumerate(mixed)), 0
    # Rows far from the start, with row numbers that a sender reaches late.
    for profile, count, packet in ((BOUNDED, 400, 16), (CLASSIC, 200, 64)):
        q = p._replace(profile=profile, W=count, P=packet, id=0xCC)
        start = (1 << 62) // 50 * 50
        block = payloads_of(dict(packet=packet, packets=count, seed=5))
        symbols = {start + i: symbol_of(q, start + i, x) for i, x in enumerate(block)}
        rows = [repair_packet(q, Row(number, start, count, 0, row_symbol(q, number, start, count, 0, symbols))) for number in (0, 255, 1 << 32, (1 << 63) - 1, 123456789123)]
        some = [source_packet(q, start + i, x) for i, x in enumerate(block) if i not in (3, 50, 51, 199)]
        yield "far-%d" % profile, "§14: large numbers", frames(some + rows + [mark_packet(q, start + count, 1)]), [(start + i, x) for i, x in enumerate(block)], 3
    # A window that is not full yet and has two tails, and a packet of it that the window's own rows lack one for.
    q = p._replace(profile=BLOCKS, W=120, D=60, id=0xDD)
    block = payloads_of(dict(packet=64, packets=120, seed=6))
    symbols = {i: symbol_of(q, i, x) for i, x in enumerate(block)}
    rows = [repair_packet(q, Row(number, first, count, part, row_symbol(q, number, first, count, part, symbols)))
            for number, (first, count, part) in enumerate(((13, 20, 0), (13, 20, 7), (30, 60, 0), (0, 120, 0), (0, 120, 1), (0, 120, 3)))]
    at = {i: source_packet(q, i, x) for i, x in enumerate(block) if i not in (14, 32, 50, 100, 101, 103)}
    some = [at[i] for i in range(90) if i in at] + rows[:3] + [at[i] for i in range(90, 120) if i in at] + rows[3:]
    yield "tails", "§14.4: tails", frames(some + [mark_packet(q, 120, 1)]), list(enumerate(block)), 0


KEY = bytes(range(100, 132))


def sealed_cases():
    """Packets and what they are when sealed: (name, key, authentication, time, counter, packet)."""
    p = Params(BOUNDED, 0x0123456789ABCDEF, 480, 32, 240)
    packets = dict(source=source_packet(p, 7, b"payload of a packet"), empty=source_packet(p, 8, b""), mark=mark_packet(p, 9, 1),
                   repair=repair_packet(p, Row(3, 240, 100, 0, bytes(range(38)))), long=source_packet(p._replace(P=1350), 1, generate(1350, 3)))
    for authentication in CIPHERS:
        for name, packet in packets.items():
            yield "%s-%d" % (name, authentication), KEY, authentication, 1_800_000_000, 5, packet
        yield "largest-%d" % authentication, bytes([255] * 32), authentication, (1 << 32) - 1, (1 << 64) - 1, packets["mark"]
        yield "zero-%d" % authentication, bytes(32), authentication, 0, 0, packets["mark"]
        yield "passphrase-%d" % authentication, passphrase_key("correct horse battery"), authentication, 1, 2, packets["source"]


def sealed_vector(case):
    name, key, authentication, time, counter, packet = case
    return dict(name=name, key=key.hex(), authentication=authentication, time=time, counter=counter, packet=packet.hex(), sealed=seal(key, authentication, packet, time, counter).hex())


def sealed_file_cases():
    """Sealed streams, with what nobody without the key can do to them: as file_cases. The key is KEY."""
    p = Params(BOUNDED, 0x5EA1ED, 60, 40, 15)
    payloads = payloads_of(dict(packet=40, packets=90, seed=9))
    packets, end = send(p, 1, 3, payloads)
    want = list(enumerate(payloads))
    for authentication in CIPHERS:
        sealed = [seal(KEY, authentication, x, 1_800_000_000 + i // 50, i) for i, x in enumerate(packets + end)]
        n = "-%d" % authentication
        yield "sealed" + n, "§13.3: sealed", frames(sealed), want, 0
        yield "sealed-end-first" + n, "§13.3, §15 rule 3: whoever has no key can move the end to the front", frames(sealed[-3:] + sealed[:-3]), want, 0
        yield "sealed-end-only" + n, "§13.3, §15 rule 3: nothing but an end", frames(sealed[-3:]), [], 3
        kept = [x for i, x in enumerate(sealed) if i % 8 != 3 or i > len(packets) - 9]
        yield "sealed-lost" + n, "§13.3: sealed, with losses", frames(kept), want, 0
        # Everything that somebody without the key can make: nothing of it counts.
        at = lambda x, i: x[:i] + bytes([x[i] ^ 1]) + x[i + 1:]
        forged = [at(sealed[20 + i], i) for i in range(60)] + [at(sealed[30], i) for i in range(60, len(sealed[30]))]
        forged += [mark_packet(p, 3, 1), source_packet(p, 5, b"unsealed"), source_packet(p, 95, b"unsealed"), packets[4], end[0]]
        forged += [seal(bytes(32), authentication, x, 1_800_000_000, 500 + i) for i, x in enumerate(packets[:9] + [mark_packet(p, 3, 1)])]
        forged += [seal(KEY, 3 - authentication, x, 1_800_000_000, 600 + i)[:6] + bytes([authentication]) + seal(KEY, 3 - authentication, x, 1_800_000_000, 600 + i)[7:] for i, x in enumerate(packets[:3])]
        forged += [x[:-1] for x in sealed[40:50]] + [x + b"\0" for x in sealed[50:60]] + [sealed[i][:44] + sealed[i + 1][44:] for i in range(5)]
        mixed = sealed[:10] + [x for i, y in enumerate(sealed[10:-3]) for x in ([y] + forged[i::len(sealed) - 13] + ([sealed[i]] if i % 3 == 0 else []))] + sealed[-3:]
        yield "sealed-attacked" + n, "§13.3: forged, changed, cut, repeated, not sealed", frames(forged + mixed), want, 0


def write_json(name, items):
    store(name, ("[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]\n").encode())


def file_vector(case):
    name, rule, data, want, code = case
    return dict(name=name, rule=rule, path="stream/%s.fecs" % name, packets=len(want), payload_len=sum(len(x) for _, x in want),
                payload_sha256=sha(b"".join(x for _, x in want)), exit=code)


def golden(folder):
    encodings = [encode_vector(v) for v in encode_cases()]
    write_json(os.path.join(folder, "stream.json"), encodings)
    packets = [dict(name=name, rule=rule, error=kind, packet=packet.hex()) for name, rule, kind, packet in packet_cases()]
    assert len({v["name"] for v in packets}) == len(packets)
    write_json(os.path.join(folder, "stream-packets.json"), packets)
    files = []
    for case in file_cases():
        store(os.path.join(folder, "stream", case[0] + ".fecs"), case[2])
        files.append(file_vector(case))
    store(os.path.join(folder, "stream", "sealed.key"), KEY)
    for case in sealed_file_cases():
        store(os.path.join(folder, "stream", case[0] + ".fecs"), case[2])
        files.append(dict(file_vector(case), key="stream/sealed.key"))
    write_json(os.path.join(folder, "stream-files.json"), files)
    write_json(os.path.join(folder, "stream-sealed.json"), [sealed_vector(case) for case in sealed_cases()])
    print("%d encodings, %d packets, %d framed streams" % (len(encodings), len(packets), len(files)))
    return 0


def check(folder):
    bad = 0

    def expect(good, what):
        nonlocal bad
        if not good:
            bad += 1
            print(what)

    def read(name):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return json.load(f)

    for v, stored in zip(encode_cases(), read("stream.json")):
        expect(encode_vector(v) == stored, v["name"] + ": differs")
    for v in read("stream-packets.json"):
        try:
            parse(bytes.fromhex(v["packet"]))
            kind = None
        except Bad as error:
            kind = error.kind
        expect(kind == v["error"], "%s: %s instead of %s" % (v["name"], kind, v["error"]))
    for case, v in zip(sealed_cases(), read("stream-sealed.json")):
        expect(sealed_vector(case) == v, v["name"] + ": differs")
    for v in read("stream-files.json"):
        with open(os.path.join(folder, v["path"]), "rb") as f:
            packets = deframe(f.read())
        if "key" in v:
            packets = unseal_all(KEY, packets)
        received = receive(packets)
        got = b"".join(received.payloads[i] for i in sorted(received.payloads))
        expect(len(received.payloads) == v["packets"] and sha(got) == v["payload_sha256"], v["name"] + ": other payload")
        expect(v["exit"] == (0 if received.is_whole else 3), v["name"] + ": whole or not")
    print("%d BAD" % bad if bad else "all good")
    return 1 if bad else 0


def test_taps():
    """Strata ascend, groups divide a block, taps stay in their stratum and rows in their window: §14.2."""
    for m in [*range(1, 4097), *range(4097, 65537, 64), 65535, 65536]:
        ends = strata(m)
        assert all(n < f for n, f in zip([0] + ends, ends)) and ends[-1:] == [m][:m // 2] and len(ends) <= 22, m
    assert [len(strata(m)) for m in (1, 2, 3, 4, 5, 6, 39, 40, 65536)] == [0, 2, 2, 4, 4, 5, 21, 22, 22]
    for D in range(1, 256):
        start, s = 5 * D, D // 4
        groups = {tuple(group(start + o, D)) for o in range(4 * s)}
        assert sorted(x for four in groups for x in four) == list(range(start, start + 4 * s)) and len(groups) == s
        assert all(o in {x - start for x in group(start + o, D)} for o in range(4 * s)) and not any(group(start + o, D) for o in range(4 * s, D))
    rng = random.Random(2)
    incomplete = complete = 0
    for number in range(400):
        D = rng.choice((1, 3, 4, 5, 7, 50, 98, 240))
        m, F = rng.randrange(1, rng.choice((8, 100, 1000, 8000))), D * rng.choice((0, 1, 1000, (1 << 62) // D))
        ends = strata(m)
        for c, n, f in zip(tap_columns(Draws(number), number, F, m), [0] + ends, ends):
            assert F + m - f <= c < F + m - n
            columns = added(c, D, F + m)
            assert all(F <= x < F + m and x // D == c // D for x in columns)
            assert len(columns) == 3 and c not in columns or columns == [c]
            complete += len(columns) == 3
            incomplete += columns == [c]
        row = coefficients(Params(BOUNDED, 0, 65536, 16, D), number, F, m)
        assert sorted(row) == list(range(F, F + m)) and all(0 <= x < 256 for x in row.values())
    assert complete > 1000 and incomplete > 1000


def selftest():
    assert Draws(1234567).draw() == 6457827717110365317
    assert all(e(g(n)) == n for n in range(1, 70000))
    test_taps()
    test_aead()
    # RFC 5869, test case 1, by the same steps.
    pseudorandom = hmac.new(bytes(range(13)), b"\x0b" * 22, hashlib.sha256).digest()
    assert hmac.new(pseudorandom, bytes(range(0xF0, 0xFA)) + b"\1", hashlib.sha256).hexdigest()[:16] == "3cb25f25faacd57a"
    rng = random.Random(1)
    for size in (0, 1, 2, 251, 252, 253, 254, 255, 64259, 64260, 64261, 64262, 65600):
        for data in (bytes(size), b"\xFE" * size, b"\xFD" * size, (DELIMITER * size)[:size], bytes(rng.choice(b"\xFE\xFD\x00") for _ in range(size))):
            frame = stuff(data)
            assert DELIMITER not in frame and unstuff(frame) == data and len(frame) <= size + 1 + 2 * (size // LATER + 2)
    assert stuff(bytes.fromhex("11FEFD22")).hex() == "011101" + "0022"
    for profile in PROFILES.values():
        p = Params(profile, 5, 60, 20, 30)
        payloads = [generate(i % 21, i) for i in range(180)]
        packets, end = send(p, 1, 3, payloads)
        assert all(parse(x)[0] == p for x in packets + end)
        lost = [x for i, x in enumerate(packets) if i % 11 != 5]
        got = receive(deframe(frames(lost + end)))
        assert got.payloads == dict(enumerate(payloads)) and got.end == 180 and not got.dropped and got.is_whole, profile
    print("ok")
    return 0


# ---------------------------------------------------------------- commands

def verify(packets):
    """Recomputes every repair packet from the source packets."""
    p, symbols, rows, wrong, seen = None, {}, [], 0, set()
    for packet in packets:
        p, kind, number, what = parse(packet)
        if kind == SOURCE:
            symbols[number] = symbol_of(p, number, what)
        elif kind == REPAIR:
            rows.append(what)
    for row in rows:
        whole = row_symbol(p, row.number, row.first, row.count, row.part, symbols)
        wrong += row.number in seen or row.symbol.ljust(len(whole), b"\0") != whole
        seen.add(row.number)
    print("%d source packets, %d repair packets, %d wrong" % (len(symbols), len(rows), wrong))
    return 5 if wrong else 0


def main():
    top = argparse.ArgumentParser(description="second implementation of the live streams of fec")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    enc = commands.add_parser("encode")
    enc.add_argument("--profile", choices=PROFILES, default="bounded")
    for name, value in (("window", 6000), ("block", 240), ("packet", 1350)):
        enc.add_argument("--" + name, type=int, default=value)
    enc.add_argument("--rate", default="1/6")
    enc.add_argument("--stream-id", default="1")
    dec = commands.add_parser("decode")
    for one in (enc, dec):
        one.add_argument("-o", required=True)
        one.add_argument("--key-file")
        one.add_argument("file")
    commands.add_parser("verify").add_argument("file")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return globals()[args.command](args.folder)
    with open(args.file, "rb") as f:
        data = f.read()
    key = None
    if getattr(args, "key_file", None):
        with open(args.key_file, "rb") as f:
            key = f.read()
    try:
        if args.command == "verify":
            return verify(deframe(data))
        if args.command == "encode":
            p = Params(PROFILES[args.profile], int(args.stream_id, 16), args.window, args.packet, args.block)
            parse(mark_packet(p, 0, 0))
            repair, source = map(int, args.rate.split("/"))
            packets, end = send(p, repair, source, [data[i:i + p.P] for i in range(0, len(data), p.P)])
            packets += end
            if key:
                packets = [seal(key, 1 + i % 2, x, 0, i) for i, x in enumerate(packets)]
            store(args.o, frames(packets))
            return 0
    except Bad as bad:
        print(bad, file=sys.stderr)
        return 5
    packets = deframe(data)
    if key:
        packets = unseal_all(key, packets)
    received = receive(packets)
    store(args.o, b"".join(received.payloads[i] for i in sorted(received.payloads)))
    print("%d packets from %s on, end %s, dropped %s" % (len(received.payloads), received.start, received.end, received.dropped), file=sys.stderr)
    return 0 if received.is_whole else 3
