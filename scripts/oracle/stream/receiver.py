"""§15: a receiver that has everything before it starts."""
from collections import namedtuple

from ..basics import ceil_div
from ..gf import GF_EXP, GF_LOG, mul_table
from .packets import BLOCKS, MARK, REPAIR, SOURCE, Bad, open_symbol, parse, symbol_of
from .rows import coefficients, combine, gmul

Received = namedtuple("Received", "p payloads end dropped start is_whole")


def start_of(p, kind, number, what):
    """The number from which a stream is received if this packet is its first, or None: §15 rule 3."""
    if kind == SOURCE:
        return number if number >= p.D else 0
    if kind == REPAIR:
        end = what.first + what.count
        return end if end > p.D else 0
    return 0 if number <= p.D else None


def receive(packets):
    """Receives packets. The result has the payloads by number, the end if a mark told it, the count of dropped packets
    by kind, the start, and whether the stream is whole."""
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
