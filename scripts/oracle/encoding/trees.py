"""§6: trees and proofs."""
import struct

from ..basics import ZERO32, Fault, clog2
from ..hashes import node, nodes
from .geometry import group_of, pack


def tree(h, hashes):
    """All levels of the tree over these hashes, the hashes first; the root is tree(…)[-1][0]."""
    levels = [list(hashes)]
    while len(levels[-1]) > 1:
        low = levels[-1]
        up = nodes(h, "NODE", [low[j] + low[j + 1] for j in range(0, len(low) - 1, 2)])
        levels.append(up + low[2 * len(up):])
    return levels


def tree_root(h, hashes):
    """The root of the tree; 32 zero bytes for no hashes (Q of a set without recovery shards)."""
    return tree(h, hashes)[-1][0] if hashes else ZERO32


def path(levels, pos):
    out = []
    for level in levels[:-1]:
        if pos ^ 1 < len(level):
            out.append(level[pos ^ 1])
        pos >>= 1
    return b"".join(out)


def follow(h, value, pos, count, field):
    """The root that a path in `field` leads to, and the rest of the field."""
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
