"""§4: geometry."""
import struct
from collections import namedtuple

from ..basics import SHARDS, Fault, ceil_div

Geo = namedtuple("Geo", "version hash form flags k m L G payload nr")   # nr: N in P, g in Pg
LAST, CRITICAL, SEALED = 1, 14, 16


def pack(geo):
    return struct.pack("<BBBBHHIIQQ", *geo)


def unpack(data):
    return Geo(*struct.unpack("<BBBBHHIIQQ", data))


def check_kind(hash_, form, flags, place, is_p):
    """§4.1, rule 1 without the version. A meta frame has only these three fields of a geometry."""
    if hash_ not in (1, 2) or form != place or flags & (CRITICAL | LAST if is_p else CRITICAL):
        raise Fault("refused", "rule 1: hash, form or flags")


def check_geometry(geo, form, is_p):
    """§4.1; form: that of this kind of file; is_p: geo is P, and else Pg."""
    k, n, L, G, b = geo.k, geo.k + geo.m, geo.L, geo.G, geo.payload
    if geo.version != 1:
        raise Fault("refused", "rule 1: version")
    check_kind(geo.hash, geo.form, geo.flags, form, is_p)
    if k == 0 or n > 256 or L > 1 << 26 or b >= 1 << 63 or geo.nr >= ((1 << 32) if is_p else (1 << 32) - 1):
        raise Fault("refused", "rule 2: out of range")
    last = bool(geo.flags & LAST)
    if L == 0 or L % 64 or G == 0 or is_p and geo.nr == 0:
        raise Fault("invalid", "rule 3: L, G or N")
    if geo.nr == 1 if is_p else geo.nr == 0 and last:
        if L != 64 * max(1, ceil_div(b, 64 * k * G)) or G > max(1, ceil_div(b, 4096 * k)):
            raise Fault("invalid", "rule 4: L or G is not canonical")
    elif is_p:
        if L < 4096 or not (geo.nr - 1) * k * G * L < b <= geo.nr * k * G * L:
            raise Fault("invalid", "rule 5: L is below 4096, or payload and number of groups do not agree")
    elif not last:
        if b != k * G * L or L < 4096:
            raise Fault("invalid", "rule 6: a group before the last is not full, or its L is below 4096")
    elif b == 0 or L != 64 * ceil_div(b, 64 * k * G) or G > ceil_div(b, 4096 * k):
        raise Fault("invalid", "rule 7: L or G of the last group is not canonical")
    if form == SHARDS and (is_p or geo.nr or not last):
        raise Fault("invalid", "§4.1: shard files have one group")


def group_of(P, g):
    """§4.2: the Pg of group g."""
    if g < P.nr - 1:
        return P._replace(payload=P.k * P.G * P.L, nr=g)
    if P.nr == 1:
        return P._replace(flags=P.flags | LAST, nr=0)
    b = P.payload - (P.nr - 1) * P.k * P.G * P.L
    G = ceil_div(b, P.k * P.L)
    return P._replace(flags=P.flags | LAST, payload=b, G=G, L=64 * ceil_div(b, 64 * P.k * G), nr=g)


def plan(form, h, k, m, B, set_size=None, group_size=None, whole=True, flags=0):
    """§4.3: P."""
    n = k + m

    def shard_len():
        return 64 * ceil_div(set_size, 64 * k)

    if set_size is None:
        set_size = 1 << 22
        while n * shard_len() > 1 << 24:
            set_size //= 2
        while ceil_div(B, k * shard_len()) > 1 << 20 and n * shard_len() <= 24 << 20:
            set_size *= 2
    L0 = shard_len()
    if not 4096 <= L0 <= 1 << 26:
        raise Fault("refused", "§4.3: with this set size shards would have %d bytes; 4096 to 2^26 are allowed" % L0)
    N, G0 = 1, group_size or max(1, (48 << 20) // (n * L0))
    if not whole:
        N = max(1, ceil_div(B, k * G0 * L0))
    if N == 1:
        G = max(1, ceil_div(B, k * L0))
        P = Geo(1, h, form, flags, k, m, 64 * max(1, ceil_div(B, 64 * k * G)), G, B, 1)
    else:
        P = Geo(1, h, form, flags, k, m, L0, G0, B, N)
    if P.G >= 1 << 32 or N >= 1 << 32:
        raise Fault("refused", "§4: more than 2^32 − 1 sets or groups")
    for g in {0, N - 1}:
        check_geometry(group_of(P, g), form, False)
    return P
