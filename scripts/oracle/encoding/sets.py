"""§10: restoring sets and groups."""
from ..basics import BLAKE3, SHA256, Fault, ceil_div, raise_worst
from ..gf import evaluate
from ..hashes import digest, digests, nodes
from .geometry import SEALED
from .meta import check_meta
from .trees import leaf_input, set_root, tree_root

OTHER_CHOICES = 16                          # §10.3


def restore_set(pg, s, have, root, strict=False):
    """§10.3: the k originals, from the proved shards {i: bytes} of a set; root = (SR, O)."""
    h, k, n = pg.hash, pg.k, pg.k + pg.m
    if len(have) < k:
        raise Fault("damaged", "set %d has %d valid shards of the %d it needs" % (s, len(have), k))

    def leaves(shards, first):
        return nodes(h, "LEAF", [leaf_input(d, s, first + j) for j, d in enumerate(digests(h, shards))] if shards else [])

    rows = {i: have[i] for i in have if i < k}
    known = sorted(rows)
    missing = [i for i in range(k) if i not in rows]
    if missing:
        recovery, r = sorted(i for i in have if i >= k), len(missing)
        a = len(recovery)
        T = min(a, OTHER_CHOICES) if a > r else 1
        for t in range(T):
            points = known + [recovery[(t * a // T + j) % a] for j in range(r)]
            rows.update(zip(missing, evaluate(points, [have[i] for i in points], missing)))
            if tree_root(h, leaves([rows[i] for i in range(k)], 0)) == root[1]:
                break
        else:
            raise Fault("invalid", "§10.3: set %d is not a codeword" % s)
    originals = [rows[i] for i in range(k)]
    if strict:
        recovery = evaluate(list(range(k)), originals, range(k, n))
        if set_root(h, k, leaves(originals, 0) + leaves(recovery, k))[0] != root[0]:
            raise Fault("invalid", "§10.5: the recovery shards of set %d do not belong to its originals" % s)
    return originals


def restore_group(pg, sets, roots, strict=False, span=None):
    """The piece of the payload in a group. sets: {s: {i: bytes}}; roots: {s: (SR, O)}; span: (from, to) of the piece,
    to restore only these bytes. All faults are looked for, and the worst is raised."""
    k, L, G = pg.k, pg.L, pg.G
    if span and span[1] > pg.payload:
        raise Fault("damaged", "a part of the range is behind the end")
    if span is None:
        needed = sorted(sets)
        faults = [] if len(sets) == G else [Fault("damaged", "%d of %d sets are gone" % (G - len(sets), G))]
    else:
        rows = range(span[0] // L, ceil_div(span[1], L))
        needed = sorted({r % G for r in rows})
        faults = []
    whole = {}
    for s in needed:
        try:
            have = sets.get(s, {})
            # §10.2: an original that is proved is payload
            if span and all(r // G in have for r in rows if r % G == s):
                whole[s] = have
            else:
                whole[s] = dict(enumerate(restore_set(pg, s, have, roots.get(s), strict)))
        except Fault as fault:
            faults.append(fault)
    raise_worst(faults)
    if span:
        return b"".join(whole[r % G][r // G] for r in rows)[span[0] - rows[0] * L:][:span[1] - span[0]] if rows else b""
    piece = b"".join(whole[s][i] for i in range(k) for s in range(G))
    if any(piece[pg.payload:]):
        raise Fault("invalid", "§5: bytes past the end of the payload are not zero")
    return piece[:pg.payload]


def compare_digests(meta, payload):
    """§7: a strict reader compares the digests in the meta with the payload"""
    entries = check_meta(meta)
    for kind, h in ((3, SHA256), (5, BLAKE3)):
        if entries.get(kind, digest(h, payload)) != digest(h, payload):
            raise Fault("invalid", "§7: the payload is not what entry %d of the meta says" % kind)


def check_seal(stream):
    """§20.3: nobody can open a sealed payload without its meta"""
    if stream.flags & SEALED and stream.meta is None:
        raise Fault("damaged", "§20.3: it is sealed, and every copy of its meta is lost")
