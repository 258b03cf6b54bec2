"""§17.1: groups, and their sets."""
from collections import namedtuple

from ..area import EXP, LAMBDA, LOG, POINTS, UNIT, mul8
from ..gf import evaluate, mul_table

SMALL, WIDE = 0, 1                                      # §17.1 codes
UNSAID_RUN = 128                                        # §17.1: neighbouring positions of one set of code 1


class Group(namedtuple("Group", "k m G extent first position digest_at code L", defaults=(SMALL, UNSAID_RUN))):
    """position: the group's first position; digest_at: its first digest; L: what the record or the format says"""

    @property
    def run(self):
        return 1 if self.code == SMALL else self.k if self.G == 1 else self.L

    def set_of(self, p):
        """The set of a position that is counted from the first of the group"""
        return p // self.run % self.G

    def places(self, s):
        """The positions of the originals of a set"""
        L = self.run
        return [self.position + (i // L * self.G + s) * L + i % L for i in range(self.k)]

    def shards(self, s, row):
        """The recovery shards of a set, of those of the group"""
        return [row[j * self.G + s] for j in range(self.m)]

    def solve(self, have, wanted):
        """Blocks of a set, from those of at least k others; numbers count the originals first."""
        if self.code == SMALL:
            points = sorted(have)[:self.k]                          # choice: one selection of k is tried
            return evaluate(points, [have[x] for x in points], wanted)
        place = [x + self.m if x < self.k else x - self.k for x in range(self.k + self.m)]
        return solve_wide(self.k + self.m, {place[x]: row for x, row in have.items()}, [place[x] for x in wanted])


def split(block):
    return [b"".join(block[at + half:at + half + 64] for at in range(0, len(block), UNIT)) for half in (0, 64)]


def joined(low, high):
    return b"".join(low[at:at + 64] + high[at:at + 64] for at in range(0, len(low), 64))


def solve_wide(n, have, wanted):
    """§22.2: blocks at the wanted positions, from all that there are. With g the polynomial whose roots are the other
    lost points, Σ g(x_p)·v_p = 0, since its degree is below m."""
    lost = [POINTS[p] for p in range(n) if p not in have]
    wholes = {p: sum(LOG[POINTS[p] ^ u] for u in lost) for p in have}
    rows = {p: split(row) for p, row in have.items()}
    size, made = len(next(iter(have.values()))) // 2, []
    for position in wanted:
        t = POINTS[position]
        weight = sum(LOG[t ^ u] for u in lost if u != t)
        low = high = 0
        for p, whole in wholes.items():
            w = EXP[(whole - LOG[POINTS[p] ^ t] - weight) % 65535]
            c, d = w & 255, w >> 8
            a, b = rows[p]
            low ^= number(a, c) ^ number(b, mul8(d, LAMBDA))
            high ^= number(a, d) ^ number(b, c ^ d)
        made.append(joined(low.to_bytes(size, "little"), high.to_bytes(size, "little")))
    return made


def number(row, c):
    return int.from_bytes(row.translate(mul_table(c)), "little") if c else 0
