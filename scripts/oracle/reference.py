"""The codes of fec, slow and short, to be read beside docs/ALGORITHM.md. The bytes are those of docs/FORMAT.md.
    oracle reference selftest      compares the matrix with the transform, and both codes with tests/golden
"""
import itertools
import random
import struct
import sys
from functools import reduce
from pathlib import Path
from .stream import deframe
VECTORS = Path(__file__).resolve().parents[2] / "tests/golden"

# ---- the field GF(2^8); addition is XOR
EXP, LOG, element = [0] * 255, [0] * 256, 1
for exponent in range(255):
    EXP[exponent], LOG[element] = element, exponent
    element = element << 1 ^ (0x11D if element & 0x80 else 0)
def mul(a, b):
    return EXP[(LOG[a] + LOG[b]) % 255] if a and b else 0
def div(a, b):
    return EXP[(LOG[a] - LOG[b]) % 255] if a else 0
def add(a, b):
    return [x ^ y for x, y in zip(a, b)]
def times(factor, row):
    return [mul(factor, x) for x in row]
def combine(factors, rows):
    return reduce(add, map(times, factors, rows))

# ---- the block code by the matrix
def lagrange(known, x):
    """The factors c with f(x) = Σ c[i] · f(known[i]) for each polynomial f of degree below len(known)."""
    factors = []
    for p in known:
        factors.append(1)
        for q in set(known) - {p}:
            factors[-1] = div(mul(factors[-1], x ^ q), p ^ q)
    return factors

def by_matrix(shards, wanted):
    """The shards `wanted` from any k others, a map of points to rows of bytes. Encoding and decoding are one."""
    return [combine(lagrange(list(shards), x), shards.values()) for x in wanted]

# ---- the block code by the truncated additive transform, for one column of bytes
def skew(half, x):
    """s(x): the polynomial whose roots are the points below `half`, scaled to s(half) = 1."""
    value = 1
    for p in range(half):
        value = div(mul(value, x ^ p), half ^ p)
    return value

def evaluate(coefficients, offset):
    """The values of f = low + s · high at as many points as it has coefficients, from `offset` on."""
    half = len(coefficients) // 2
    if half == 0:
        return coefficients
    low, high = coefficients[:half], coefficients[half:]
    first = add(low, times(skew(half, offset), high))         # s is one constant here, and that plus 1 behind
    return evaluate(first, offset) + evaluate(add(first, high), offset + half)

def interpolate(values, offset):
    """The inverse of `evaluate`: the coefficients from all values."""
    half = len(values) // 2
    if half == 0:
        return values
    first, second = interpolate(values[:half], offset), interpolate(values[half:], offset + half)
    high = add(first, second)
    return add(first, times(skew(half, offset), high)) + high

def interpolate_some(values, offset, size, residue):
    """The r coefficients of g in f = residue + g, where f is known at the first r of `size` points: r values."""
    r, half = len(values), size // 2
    if size == 1:
        return add(values, residue)
    low, high, s = residue[:half], residue[half:], skew(half, offset)
    reduced = add(low, times(s, high))                        # the residue on the first half
    if r <= half:
        return interpolate_some(values, offset, half, reduced)
    first = interpolate(values[:half], offset)                # f on the first half, where all is known
    g_high = interpolate_some(values[half:], offset + half, half, add(first, high))
    return add(add(first, reduced), times(s, g_high + [0] * (size - r))) + g_high

def by_transform(shards, wanted):
    """As by_matrix, where the known points are i ^ shift for all i below k and one shift."""
    k = len(shards)
    shift = next(s for s in shards if all(i ^ s in shards for i in range(k)))
    columns = []
    for column in zip(*(shards[i ^ shift] for i in range(k))):
        values = evaluate(interpolate_some(list(column), 0, 256, [0] * 256) + [0] * (256 - k), 0)
        columns.append([values[x ^ shift] for x in wanted])
    return [list(row) for row in zip(*columns)]

# ---- the window code: the rows of `bounded`, and elimination
MASK, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15

def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31

def strata(count):
    """The ages of packets in bands (from, to), each wider than the one before as age + 1024 grows."""
    def log(n):                                               # to base 2, in 2^-16; straight between powers of two
        return (n.bit_length() - 2 << 16) + (n << 16 >> n.bit_length() - 1)
    if count < 2:
        return []
    unit = 1 << max(0, count.bit_length() - 6)
    longest = -(-count // unit) * unit
    steps = min(20, longest // 2)
    ages = [log(1024) + (log(longest + 1024) - log(1024)) * i // steps for i in range(steps + 1)]
    ages = [((1 << 16 | x & 0xFFFF) << (x >> 16) >> 16) - 1024 for x in ages]
    ends = sorted(ages[1:] + [(a + b) // 2 for a, b in zip(ages[:2], ages[1:])])
    return list(zip([0] + ends, ends[:-1] + [count]))

def coefficients_of(number, first, count, block):
    """The coefficient of each packet that repair packet `number` covers, from these numbers alone."""
    end = first + count
    draws = (mix(number + i * GOLDEN & MASK) for i in itertools.count(1))                # SplitMix64
    def below(bound):
        return (next(draws) >> 32) * bound >> 32
    factor = 2 + below(254)
    powers = [1, factor, mul(factor, factor), mul(factor, mul(factor, factor))]
    x, result = [next(draws), next(draws)], {}
    lanes = [x[lane // 8] >> 8 * (lane % 8) & 255 for lane in range(16)]
    for c in range(first, end):                               # of each lane one of its three sums, times a power
        i, choice = c // 16, lanes[c % 16]
        result[c] = mul(powers[choice % 4], [1, EXP[i % 255], EXP[(2 * i + i // 255) % 255]][choice // 4 % 3])
    y = [next(draws), next(draws)]
    for t, (near, far) in enumerate(strata(count)):           # a tap of each stratum
        if far == count or far - near < 8:
            c = end - far + below(far - near)
        else:                                                 # rows take turns: four after four, and columns of a four
            fours = 1 << ((far - near) // 8).bit_length() - 1
            run = (end - near) // (4 * fours) - 1
            key = mix(256 * run + t & MASK)
            four = run * fours + (number * (key | 1) + (key >> 32) & MASK) % fours
            c = 4 * four + (t + ((four * GOLDEN & MASK) >> 62) + (number // fours if first == 0 else 0)) % 4
        power = powers[(lanes[c % 16] % 4 + 1 + (y[t // 16] >> 4 * (t % 16) & 15) % 3) % 4]
        place, step = c % block, block // 4                   # a group: four columns, a quarter of the block apart
        group = [c - place + place % step + i * step for i in range(4)] if place < 4 * step else [end]
        for other in [g for g in group if g != c] if group[-1] < end else [c]:
            result[other] ^= power
    return result

def solve(count, equations):
    """The `count` unknown symbols. An equation is as many coefficients, and behind them the bytes of the sum."""
    for i in range(count):
        pivot = equations.pop(next(n for n in range(i, len(equations)) if equations[n][i]))
        pivot = times(div(1, pivot[i]), pivot)
        equations = [add(e, times(e[i], pivot)) for e in equations]
        equations.insert(i, pivot)
    return [e[count:] for e in equations[:count]]

# ---- the self-test
def check_block_code(rng):
    assert by_matrix({0: [0x12], 1: [0xA5]}, [2, 3, 4]) == [[0x61], [0xD6], [0xF4]]      # FORMAT.md, section 2
    for k, n in (1, 3), (2, 5), (16, 40), (33, 100), (47, 64), (86, 100), (100, 256):
        originals = {i: [rng.randrange(256), rng.randrange(256)] for i in range(k)}
        shards = {**originals, **dict(zip(range(k, n), by_matrix(originals, range(k, n))))}
        assert by_transform(originals, range(k, n)) == [shards[i] for i in range(k, n)]
        assert by_matrix(dict(rng.sample(sorted(shards.items()), k)), range(n)) == list(shards.values())
    assert by_transform({i: shards[i] for i in range(128, 228)}, range(100)) == list(originals.values())
    for folder in VECTORS.glob("files/shards-*-2+1-*"):
        first, second, third = (path.read_bytes() for path in sorted(folder.iterdir()))
        start = 256 + -(-struct.unpack_from("<I", first, 20)[0] // 64) * 64              # header, meta and one proof
        body = slice(start, -start)
        assert [list(third[body])] == by_matrix({0: first[body], 1: second[body]}, [2]) and third[body]

def stream(name):
    """The symbols of the source packets, the repair packets as (number, first, count, part, symbol), and the block."""
    symbols, rows = {}, []
    for packet in deframe((VECTORS / "stream" / name).read_bytes()):
        number, P, block = struct.unpack_from("<Q4xHH", packet, 16)
        if packet[5] == 0:
            symbols[number] = list(packet[36:].ljust(P + 6, b"\0"))
        elif packet[5] == 1:
            rows.append((number, *struct.unpack_from("<QII", packet, 36), list(packet[52:].ljust(P + 6, b"\0"))))
    return symbols, rows, block

def check_window_code(rng):
    symbols, rows, block = stream("blocks.fecs")
    for _, first, count, part, symbol in rows:
        sets = -(-count // block)
        known = dict(enumerate(symbols[c] for c in range(first + part % sets, first + count, sets)))
        assert [symbol] == by_matrix(known, [len(known) + part // sets])
    symbols, rows, block = stream("bounded.fecs")
    equations, lost = [], rng.sample(range(rows[-1][1], len(symbols)), 12)
    for number, first, count, _, symbol in rows:
        terms = coefficients_of(number, first, count, block)
        assert symbol == combine(terms.values(), (symbols[x] for x in terms))
        known = {x: c for x, c in terms.items() if x not in lost}
        right = add(symbol, combine(known.values(), (symbols[x] for x in known)))
        equations.append([terms.get(x, 0) for x in lost] + right)
    assert solve(len(lost), equations[-14:]) == [symbols[x] for x in lost]

def main():
    sys.argv[1:] == ["selftest"] or sys.exit(__doc__)
    check_block_code(random.Random(1))
    check_window_code(random.Random(1))
    print("ok")
