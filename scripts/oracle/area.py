"""The code of areas, written from section 22 of docs/FORMAT.md ("§" refers to that file), by its definition.

    oracle area selftest         the field, the points and the check values of §22; codewords against the definition
    oracle area golden DIR       writes area.json (the same bytes on each run)
    oracle area check DIR        computes it again

Needs Python 3.9 and nothing else.
"""
import argparse
import hashlib
import json
import os
import struct

from .gf import GF_EXP, GF_LOG

LAMBDA = 0xE6
UNIT = 128
MASK, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


# ---- §22.1: the field and the points

def mul8(a, b):
    return GF_EXP[GF_LOG[a] + GF_LOG[b]] if a and b else 0


def mul(x, y):
    """(a + bθ)(c + dθ) with θ² = θ + λ"""
    a, b, c, d = x & 255, x >> 8, y & 255, y >> 8
    squares = mul8(b, d)
    return mul8(a, c) ^ mul8(squares, LAMBDA) | (mul8(a, d) ^ mul8(b, c) ^ squares) << 8


def basis():
    """β_0 = 1, and β_i the smaller root of x² + x = β_(i−1)."""
    chain = [1]
    while len(chain) < 16:
        limit = 256 if len(chain) < 8 else 65536
        chain.append(next(x for x in range(limit) if mul(x, x) ^ x == chain[-1]))
    return chain


def field():
    """Points of all positions; powers of a generator, twice over, and logarithms."""
    points = [0]
    for beta in basis():
        points += [x ^ beta for x in points]
    generator = 256
    while True:
        powers, x = [1], generator
        while x != 1:
            powers.append(x)
            x = mul(x, generator)
        if len(powers) == 65535:
            break
        generator += 1
    logs = [0] * 65536
    for exponent, power in enumerate(powers):
        logs[power] = exponent
    return points, powers * 2, logs


POINTS, EXP, LOG = field()


def product(x, y):
    return EXP[LOG[x] + LOG[y]] if x and y else 0


# ---- §22.2: the code, one column of symbols

def checks(column, m):
    """The m sums that are zero for a codeword: Σ x_p^i · v_p, with 0^0 = 1."""
    terms, sums = list(column), []
    for _ in range(m):
        total = 0
        for term in terms:
            total ^= term
        sums.append(total)
        terms = [product(term, x) for term, x in zip(terms, POINTS)]
    return sums


def lagrange(k, m):
    """Rows of factors: recovery symbol x is Σ_y L_x(y) · original y, with L_x the polynomial of degree below m that is
    1 at recovery point x and 0 at the others."""
    recovery, originals = POINTS[:m], POINTS[m:m + k]
    weights = [sum(LOG[x ^ z] for z in recovery if z != x) for x in recovery]
    wholes = [sum(LOG[y ^ z] for z in recovery) for y in originals]
    return [[EXP[(whole - LOG[x ^ y] - weight) % 65535] for y, whole in zip(originals, wholes)]
            for x, weight in zip(recovery, weights)]


def encode(columns, k, m):
    """Recovery columns of columns of k symbols."""
    logs = [[LOG[factor] for factor in row] for row in lagrange(k, m)]
    out = []
    for column in columns:
        known = [(y, LOG[v]) for y, v in enumerate(column) if v]
        recovery = []
        for row in logs:
            total = 0
            for y, log in known:
                total ^= EXP[row[y] + log]
            recovery.append(total)
        out.append(recovery)
    return out


# ---- §22.3: symbols in blocks

def symbols(block):
    return [block[at + t] | block[at + 64 + t] << 8 for at in range(0, len(block), UNIT) for t in range(64)]


def block_of(values):
    out = bytearray()
    for at in range(0, len(values), 64):
        out += bytes(v & 255 for v in values[at:at + 64]) + bytes(v >> 8 for v in values[at:at + 64])
    return bytes(out)


def recovery_blocks(originals, m):
    k = len(originals)
    columns = list(zip(*map(symbols, originals)))
    busy = [t for t, column in enumerate(columns) if any(column)]
    out = [[0] * len(columns) for _ in range(m)]
    for t, recovery in zip(busy, encode([columns[t] for t in busy], k, m)):
        for row, value in zip(out, recovery):
            row[t] = value
    return [block_of(row) for row in out]


# ---- golden vectors

def noise(size, seed):
    """SplitMix64, eight bytes a draw."""
    out, state = b"", seed
    for _ in range(-(-size // 8)):
        state = state + GOLDEN & MASK
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        out += struct.pack("<Q", z ^ z >> 31)
    return out[:size]


def sparse(seed):
    """A block of one unit, with noise in the first and the last symbol alone."""
    low, first, high, last = noise(4, seed)
    return bytes([low]) + bytes(62) + bytes([first, high]) + bytes(62) + bytes([last])


WHOLE = ((1, 1, 128), (1, 4, 128), (6, 1, 256), (2, 3, 128), (11, 5, 128), (7, 8, 256), (40, 33, 128), (3, 65, 128))
SPARSE = ((200, 64), (500, 82), (700, 129), (61, 300), (1000, 250), (3000, 65), (2500, 520))


def vectors():
    for k, m, block in WHOLE:
        originals = [noise(block, 1000 * k + i) for i in range(k)]
        recovery = recovery_blocks(originals, m)
        yield dict(k=k, m=m, block=block, sparse=False, recovery=[r.hex() for r in recovery])
    for k, m in SPARSE:
        recovery = recovery_blocks([sparse(1000 * k + i) for i in range(k)], m)
        yield dict(k=k, m=m, block=UNIT, sparse=True, sha256=hashlib.sha256(b"".join(recovery)).hexdigest())


def golden(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "area.json"), "w") as f:
        json.dump(list(vectors()), f, indent=0)
        f.write("\n")
    return 0


def check(folder):
    with open(os.path.join(folder, "area.json")) as f:
        committed = json.load(f)
    assert committed == list(vectors())
    print("area.json is what §22 gives: %d codes" % len(committed))
    return 0


def selftest():
    assert basis()[7] == LAMBDA and basis()[8] == 0x100
    assert mul(0x1234, 0xABCD) == product(0x1234, 0xABCD) == 0xD2D3 and POINTS[1000] == 0xD71C
    assert encode([[0x1234, 0xABCD]], 2, 3) == [[0x7604, 0xC066, 0x0F9B]]
    eleven = [0x1111 * i for i in range(1, 12)]
    assert encode([eleven], 11, 5) == [[0xCCCC, 0xDDDD, 0xEEEE, 0xFFFF, 0x0000]]
    for k, m in ((1, 1), (2, 3), (11, 5), (40, 33), (300, 70)):
        originals = [struct.unpack("<H", noise(2, i))[0] for i in range(k)]
        sums = checks(encode([originals], k, m)[0] + originals, m + 1)
        assert sums[:m] == [0] * m and sums[m], (k, m)
    print("the code of areas is what its definition says")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    args = parser.parse_args()
    return selftest() if args.command == "selftest" else {"golden": golden, "check": check}[args.command](args.folder)
