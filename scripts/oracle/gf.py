"""§2: the field and the code, by Lagrange."""

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
    """The values of f at the targets, from the values of f at the points (rows of bytes), by Lagrange. No target is one
    of the points."""
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
