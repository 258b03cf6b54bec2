"""§14: rows of the codes."""
from ..basics import ceil_div
from ..gf import GF_EXP, GF_LOG, evaluate, mul_table
from .packets import BLOCKS, BOUNDED, MASK


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
    """The four columns of the group of column c, or no columns."""
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
