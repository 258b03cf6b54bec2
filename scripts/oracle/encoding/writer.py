"""§5, §8, §9: the writer of shard files and containers."""
import struct

from ..basics import MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_S, MAGIC_X, SHARDS, ZERO32, Fault, ceil_div, clog2
from ..gf import evaluate
from ..hashes import crc32c, digest, digests, node, nodes
from .geometry import LAST, SEALED, group_of, pack, plan
from .meta import check_meta
from .trees import group_root, leaf_input, path, set_field, tree


# The hooks (alter, lie, rec, …) give negative vectors right hashes and CRCs although the vectors break a rule. The
# normal writer has no hooks.

class Group:
    def __init__(self, geo, piece, before, alter=None, lie=None):
        """geo: the group that is built; before: M, or GR of the group before; alter: changes the shards before they are
        hashed; lie: fields of Pg that differ from geo."""
        h, k, n, L, G = geo.hash, geo.k, geo.k + geo.m, geo.L, geo.G
        self.geo, self.pg, self.before = geo, geo._replace(**(lie or {})), before
        piece = piece[:k * G * L].ljust(k * G * L, b"\0")                                # §5
        rows = [piece[i * G * L:(i + 1) * G * L] for i in range(k)]
        # §2; all sets of the group at once
        rows += evaluate(list(range(k)), rows, range(k, n))
        self.shards = [[row[s * L:(s + 1) * L] for s in range(G)] for row in rows]       # [i][s]
        if alter:
            alter(self.shards)
        found = digests(h, [x for row in self.shards for x in row])
        leaves = nodes(h, "LEAF", [leaf_input(found[i * G + s], s, i) for s in range(G) for i in range(n)])
        # the trees of O and of Q
        self.sets = [[tree(h, leaves[s * n:s * n + k]), tree(h, leaves[s * n + k:s * n + n] or [ZERO32])] for s in range(G)]
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
    """§9: the shards of group 0 that have a copy of the meta frame in front of their first records"""
    return [ceil_div(j * (k + m), m + 1) - 1 for j in range(1, m + 2)]


def has_seal(flags, meta):
    """§9: tells whether the payload is sealed, with its seal in this meta"""
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
    """§9.4: an annex; size and head (a hook) may lie"""
    ah = bytearray(MAGIC_A + bytes(4) + struct.pack("<IQQ", kind, len(data) if size is None else size, 0))
    if head:
        head(ah)
    ah[8:12] = struct.pack("<I", crc32c(bytes(ah[12:]) + data))
    return bytes(ah) + data + bytes(ah)


def encode(form, h, k, m, payload, set_size=None, group_size=None, meta=b"", whole=True, flags=0, copies=True):
    """(list of files, root); copies: whether containers of sealed payloads get copies of the meta frame, as writers
    make them now"""
    P = plan(form, h, k, m, len(payload), set_size, group_size, whole, flags)
    step, groups, before = P.k * P.G * P.L, [], digest(h, meta)
    for g in range(P.nr):
        groups.append(Group(group_of(P, g), payload[g * step:(g + 1) * step], before))
        before = groups[-1].gr
    if form == SHARDS:
        return write_shards(groups[0], meta)
    data, root = write_container(groups, P, meta, copies=copies)
    return [data], root
