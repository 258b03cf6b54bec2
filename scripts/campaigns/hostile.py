#!/usr/bin/env python3
"""A seeded campaign against `fec decode` and `fec verify`, with scripts/oracle beside them ("§" refers to
docs/FORMAT.md).

    hostile.py [--random N] [--structured M] [--sealed L] [--seed S] [--fec PATH] [--jobs J] [--keep DIR]
               [--only KIND:NUMBER]

Each case is one input: encodings that the oracle made, damaged at random or forged. `fec` and the oracle must agree on
whether the payload is restored and to which bytes, from a file and through a pipe, with a root and without; no run may
panic, leave something behind, need more than 10 seconds or 150 MiB. Differences in the class of a failure, and between
verify's 0 and 1, are counted apart. For sealed inputs decode has the key, and verify and repair have not; all three
must agree with the oracle.

Every difference is stored in the folder DIR (hostile-failures), with the input and the command that runs the case
again. Exit code 1 when there are any differences. With the package `blake3` the oracle takes two thirds of the time.
"""
import argparse
import collections
import hashlib
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import hostile_sealed
from hostile_sealed import pieces_of
from oracle import encoding, stream as oracle_stream
from oracle.encoding import (
    CONTAINER, MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_S, MAGIC_X, SHARDS, annex, entry, pack, put_crc, reader, shard_files, spots,
    unpack,
)

SECONDS, WALL, KIB = 10, 60, 150 << 10              # of processor time; by the clock, of a loaded machine; of memory
SHAPES = ((1, 0), (1, 1), (1, 1), (1, 3), (2, 0), (2, 1), (2, 1), (2, 2), (3, 2), (4, 3), (10, 4))
MAGICS = (MAGIC_S, MAGIC_R, MAGIC_M, MAGIC_X, MAGIC_A)

# An encoding: its form, its files (one if it is a container), its root and payload
Made = collections.namedtuple("Made", "form files root payload")
# An input: its files, whether they are several (or a folder), and the encodings in it
Case = collections.namedtuple("Case", "blobs several made")


# ---------------------------------------------------------------- encodings

def payload_of(rng, size):
    kind = rng.random()
    if kind < 0.1:
        return bytes(size)
    if kind < 0.2:
        return b"".join(rng.choice(MAGICS + (b"\xfe\xfd", b"\x01\xfe\xfd")) + rng.randbytes(rng.choice((0, 4, 30))) for _ in range(size // 2 + 1))[:size]
    return rng.randbytes(size)


def live_stream(rng):
    p = next(oracle_stream.params_of(v) for v in oracle_stream.encode_cases())
    packets = [oracle_stream.source_packet(p, seq, rng.randbytes(10)) for seq in range(rng.randint(1, 4))]
    return oracle_stream.frames(packets)


def meta_of(rng, payload, name=False):
    return encoding.make_meta(b"name" if name or rng.random() < 0.5 else b"", payload, [h for h in (1, 2) if rng.random() < 0.2],
                            entry(9, rng.randbytes(rng.choice((0, 50, 400)))) if rng.random() < 0.2 else b"")


def parts_of(rng, k, limit=30000):
    """The groups of a container: (payload bytes, L, G)"""
    if rng.random() < 0.5:
        size = rng.choice((0, 1, 50, 64 * k, 64 * k + 1, rng.randint(0, 4000), rng.randint(1, limit)))
        return (encoding.part(size, rng.randint(1, max(1, min(4, encoding.ceil_div(size, 4096 * k)))), k),)
    G, L = rng.randint(1, 2), rng.choice((4096, 4096, 4160))
    full = k * G * L
    last = rng.choice((1, full, rng.randint(1, full)))
    return ((full, L, G),) * rng.randint(1, 3 if full < 20000 else 1) + (encoding.part(last, encoding.ceil_div(last, k * L), k),)


def make(rng, form=None, payload=None, **hooks):
    """A random encoding; `hooks` are arguments of encoding.forge."""
    form = form or rng.choice((SHARDS, CONTAINER, CONTAINER))
    k, m = (33, 67) if rng.random() < 0.01 and payload is None else rng.choice(SHAPES)
    k, m = hooks.pop("k", k), hooks.pop("m", m)
    parts = hooks.pop("parts", None)
    if parts is None and payload is not None:
        parts = (encoding.part(len(payload), 1, k),)
    elif parts is None:
        parts = parts_of(rng, k) if form == CONTAINER and k < 33 else (encoding.part(rng.choice((0, 1, 100, rng.randint(0, 20000))), 1, k),)
        if form == SHARDS and k < 5 and rng.random() < 0.5:
            parts = (encoding.part(rng.randint(8192 * k, 16000 * k), rng.randint(1, 3), k),)
    if payload is None:
        payload = payload_of(rng, sum(p[0] for p in parts))
    meta = hooks.pop("meta", None)
    meta = meta_of(rng, payload, form == SHARDS) if meta is None else meta
    flags = rng.choice((0, 0, 0, 32, 64))                    # not 16: what is sealed needs a key, see hostile_sealed.py
    if flags and "lie" not in hooks and all(len(p) == 3 for p in parts):
        parts = tuple(p + (dict(flags=flags | int(g == len(parts) - 1)),) for g, p in enumerate(parts))
    files, root = encoding.forge(form, parts, rng.choice((1, 2)), k, m, payload=payload, meta=meta, **hooks)
    return Made(form, files if form == SHARDS else [files], root, payload)


def case_of(rng, *made, data=None, several=None):
    """The files of one or more encodings as an input; data: bytes in place of the files. A folder may get only some of
    the shards."""
    if data is not None:
        return Case([data], False, made)
    shards = [x for e in made for x in (e.files if e.form == SHARDS else [])]
    if several is None:
        several = len(made) > 1 and bool(shards) or len(shards) > 1 and rng.random() < 0.8
    if not several:
        return Case([b"".join(rng.choice(e.files) for e in made)], False, made)
    blobs = [x for e in made for x in e.files]
    if rng.random() < 0.8:
        k = min([unpack(x[32:64]).k for x in shards], default=1)
        blobs = rng.sample(blobs, min(len(blobs), max(1, rng.choice((k - 1, k, k, k + 1, len(blobs))))))
    return Case(blobs, True, made)


# ---------------------------------------------------------------- random damage

def place(rng, data):
    """A position, mostly in or near a header or an end"""
    near = spots(data, *MAGICS) + [0, max(0, len(data) - 192)]
    at = rng.choice(near) + rng.randint(-8, 200) if rng.random() < 0.7 else rng.randint(0, len(data))
    return min(max(at, 0), len(data))


def hurt(rng, data):
    """The data after a random damage"""
    at, size = place(rng, data), rng.choice((1, 8, 64, rng.randint(1, 300), rng.randint(1, 1 << rng.randint(1, 13))))
    cut = min(at + size, len(data))
    how = rng.randrange(11)
    if how < 3:
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            at = min(place(rng, data), len(data) - 1)
            if data:
                out[at] ^= 1 << rng.randrange(8)
        return bytes(out)
    if how == 3:
        return data[:at] + bytes(cut - at) + data[cut:]
    if how == 4:
        return data[:at] + rng.randbytes(cut - at) + data[cut:]
    if how == 5:
        return rng.choice((data[:at], data[at:]))
    if how == 6:
        return data[:at] + rng.randbytes(size) + data[at:]
    if how == 7:
        return data[:at] + data[cut:]
    other = place(rng, data)
    if how == 8:                                         # a piece once more
        return data[:other] + data[at:cut] + data[other:]
    if how == 9:                                         # a piece over another place
        return data[:other] + data[at:cut] + data[other + cut - at:]
    pieces = pieces_of(data, *MAGICS)
    change = rng.randrange(3)
    if change == 0:
        rng.shuffle(pieces)
    elif change == 1:
        del pieces[rng.randrange(len(pieces))]
    else:
        pieces.insert(rng.randint(0, len(pieces)), rng.choice(pieces))
    return b"".join(pieces)


def hurt_some(rng, case, most=6):
    blobs = list(case.blobs)
    for _ in range(rng.choice((1, 1, 2, 3, rng.randint(1, most)))):
        if not blobs:
            break
        j = rng.randrange(len(blobs))
        blobs[j] = hurt(rng, blobs[j])
    return case._replace(blobs=blobs)


def random_case(rng, _):
    case = case_of(rng, make(rng))
    if rng.random() < 0.15:
        case = case._replace(blobs=[x + annex(rng.choice((1, 77)), rng.randbytes(rng.randint(0, 90))) for x in case.blobs])
    return hurt_some(rng, case)


# ---------------------------------------------------------------- forgeries: each gives a Case

INTERESTING = (0, 1, 2, 3, 63, 64, 255, 256, 4095, 4096, 65535, 65536, (1 << 26) - 64, 1 << 26, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
WIDTH = dict(version=8, hash=8, form=8, flags=8, k=16, m=16, L=32, G=32, payload=64, nr=64)


def lie_of(rng):
    return {x: rng.choice(INTERESTING) & (1 << WIDTH[x]) - 1 for x in rng.sample(sorted(WIDTH), rng.choice((1, 1, 2, 3)))}


def any_meta(rng):
    return b"".join(entry(kind, rng.choice((b"", b"..", b"a/b", b"ok", bytes(32), bytes(44), rng.randbytes(88))))
                    for kind in sorted(rng.sample((0, 2, 3, 4, 5, 7, 9, 254), rng.randint(0, 2)))) + rng.choice((b"", b"", b"\2", rng.randbytes(5)))


def forged_fields(rng):
    """Headers with arbitrary fields and right CRCs"""
    def now(*_):
        return rng.random() < often

    def poked(most, *which):
        def change(*args):
            if now():
                args[which[0] if which else -1][rng.randrange(12, most)] ^= 1 << rng.randrange(8)
        return change

    often, kind = rng.choice((0.1, 0.5, 1)), rng.randrange(5)
    if kind == 0:
        # A false number of bytes makes another payload.
        return case_of(rng, make(rng, lie=lie_of(rng))._replace(payload=None))
    if kind == 1:
        return case_of(rng, make(rng, CONTAINER, p=lie_of(rng), keep=lambda g, s, i: not now()))
    if kind == 2:
        return case_of(rng, make(rng, SHARDS, hdr=poked(192)))
    if kind == 3:
        return case_of(rng, make(rng, CONTAINER, rec=poked(128, -2)))
    return case_of(rng, make(rng, CONTAINER, xh=poked(128), mh=poked(128, 0)))


def re_signed(rng):
    """Records or other headers with fields of others, and right CRCs"""
    a, b = make(rng, CONTAINER), make(rng)
    pieces = pieces_of(a.files[0], *MAGICS)
    heads = [x for x in pieces + pieces_of(b.files[0], *MAGICS) if len(x) >= 128]
    for _ in range(rng.randint(1, 4)):
        j, other = rng.randrange(len(pieces)), rng.choice(heads)
        x = bytearray(pieces[j])
        if len(x) < 128:
            continue
        at, size = rng.choice(((16, 4), (20, 4), (24, 8), (32, 32), (64, 32), (96, 32), (64, 64), (32, 96), (32, 4), (44, 4), (48, 8), (56, 8)))
        x[at:at + size] = other[at:at + size]
        end = 128 + (encoding.align(encoding.proof_size(unpack(x[32:64])), 64) if x[:8] == MAGIC_R else len(x) if x[:8] == MAGIC_M else 0)
        pieces[j] = put_crc(x[:min(end, len(x))]) + bytes(x[end:])
    return case_of(rng, a, b, data=b"".join(pieces))


def false_header(rng):
    """A header whose CRC is right and whose geometry is allowed; nothing else in the header is true"""
    kind, k, m, h = rng.randrange(5), rng.choice((1, 2, 200)), rng.choice((0, 1, 55)), rng.choice((1, 2))
    b, G = rng.choice((0, 100, 50000, 1 << 20, 1 << 33, 1 << 50)), 1
    if b >= 1 << 33:
        G = encoding.ceil_div(b, k << 25)
    pg = encoding.Geo(1, h, CONTAINER, 1, k, m, 64 * max(1, encoding.ceil_div(b, 64 * k * G)), G, b, 0)
    if kind < 2:
        return put_crc(MAGIC_R + bytes(8) + (0).to_bytes(4, "little") + rng.choice((0, k)).to_bytes(4, "little") + bytes(8) + pack(pg) + rng.randbytes(64),
                       bytes(encoding.align(encoding.proof_size(pg), 64)))
    if kind == 2:
        N = rng.choice((1, 2, 1 << 10, 1 << 20, (1 << 32) - 1))
        P = pg._replace(flags=0, nr=N) if N == 1 else encoding.Geo(1, h, CONTAINER, 0, k, m, 4096, 1, N * k * 4096, N)
        return put_crc(MAGIC_X + bytes(8) + encoding.align(32 * N, 64).to_bytes(8, "little") + bytes(8) + pack(P) + rng.randbytes(64))
    if kind == 3:
        return annex(1, b"", size=rng.choice((1, 1 << 20, (1 << 64) - 64)))[:rng.choice((32, 64))]
    files, _ = encoding.forge(SHARDS, (encoding.part(rng.choice((50, 5000)), 1, k),), h, k, m, payload=rng.randbytes(50).ljust(5000))
    return files[0][:192]


def false_headers(rng):
    e = make(rng)
    data, heads = rng.choice(e.files), [false_header(rng) for _ in range(rng.choice((1, 3, 20)))]
    for head in heads:
        at = rng.choice((0, len(data), place(rng, data), rng.choice(spots(data, *MAGICS) or [0])))
        data = data[:at] + head + data[at:]
    return case_of(rng, e, data=data)


def indexes(rng):
    """Some of the indexes, meta frames and records of several encodings, in any order"""
    made = [make(rng, CONTAINER) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.5:                               # the same groups with another meta, last group, …
        made.append(make(rng, CONTAINER, payload=made[0].payload, k=unpack(made[0].files[0][32:64]).k or 1, m=1, meta=any_meta(rng)))
    pieces = [x for e in made for x in pieces_of(e.files[0], *MAGICS) if rng.random() < 0.9]
    if rng.random() < 0.5:
        pieces.append(encoding.write_meta_frame(rng.choice((1, 2)), unpack(bytes.fromhex("0101020001000100") + bytes(24)), any_meta(rng) or b"\2"))
    if rng.random() < 0.7:
        rng.shuffle(pieces)
    return case_of(rng, *made, data=b"".join(pieces))


def metas(rng):
    """Meta of any kind, bound by the root"""
    form = rng.choice((SHARDS, CONTAINER))
    return case_of(rng, make(rng, form, meta=any_meta(rng), **(rng.choice(({}, dict(index=False), dict(frame=False))) if form == CONTAINER else {})))


def joined(rng):
    made = [make(rng) for _ in range(rng.randint(2, 3))]
    data = b"".join(rng.choice(e.files) for e in made)
    if rng.random() < 0.3:
        data += made[0].files[0]
    return case_of(rng, *made, data=data)


def many(rng):
    """More last groups, indexes or meta frames than some readers keep"""
    whole = make(rng, CONTAINER)
    few = rng.choice((dict(keep=lambda g, s, i: i == 1), dict(keep=lambda g, s, i: False), dict(index=False, keep=lambda g, s, i: i == 1)))
    others = [make(rng, CONTAINER, k=2, m=0, parts=((100, 64, 1),), meta=entry(9, bytes([j])), **few) for j in range(rng.choice((3, 20, 70)))]
    data = [x.files[0] for x in others]
    if rng.random() < 0.3:
        kind = rng.choice((1, 2))
        data = [encoding.write_meta_frame(kind, unpack(bytes([1, kind, 2]) + bytes(29)), b"\4\4\0" + j.to_bytes(4, "big")) for j in range(len(data))]
    data.insert(rng.randint(0, len(data)), whole.files[0])
    return case_of(rng, whole, data=b"".join(data))


def nested(rng):
    """The payload is a container, a shard file or a live stream; the outer one is whole or damaged"""
    inner = [make(rng, rng.choice((SHARDS, CONTAINER)), parts=(encoding.part(rng.randint(0, 3000), 1),), k=1, m=rng.randint(0, 1)) for _ in range(rng.randint(1, 2))]
    payload = live_stream(rng) if rng.random() < 0.2 else b"".join(rng.choice(e.files) for e in inner)
    outer = make(rng, payload=payload, k=rng.choice((1, 1, 2)), m=rng.choice((0, 1, 1, 2)))
    case = case_of(rng, outer, *inner, several=False, data=rng.choice(outer.files))
    if outer.form == SHARDS and rng.random() < 0.4:
        case = case._replace(blobs=list(outer.files), several=True)
    return case


def sandwiched(rng):
    """A shard file's headers around, in front of or behind other things"""
    s, other = make(rng, SHARDS), make(rng)
    a, b = rng.choice(s.files), rng.choice(other.files)
    at = rng.choice((192, len(a) - 192, place(rng, a)))
    return case_of(rng, s, other, data=rng.choice((a[:192] + b, b + a[-192:], a[:192] + b + a[-192:], a[:at] + b + a[at:], a + b, b + a, a + b + a)))


def wrapped(rng):
    """An accepted record of another encoding hides (a part of) the victim"""
    victim = make(rng, CONTAINER)
    data = victim.files[0]
    start = rng.choice([0] + spots(data, *MAGICS))
    size = 64 * rng.randint(1, max(1, len(data) // 64))
    body = data[start:start + size].ljust(size, b"\0")
    k = rng.choice((1, 2))
    cover = make(rng, CONTAINER, k=k, m=rng.choice((0, 1)), parts=((k * size, size, 1),), payload=body + bytes((k - 1) * size), index=rng.random() < 0.3, keep=lambda g, s, i: i == 0)
    return case_of(rng, victim, cover, data=data[:start] + cover.files[0] + data[start + size:])


def annexes(rng):
    e, inner = make(rng), make(rng, CONTAINER, parts=(encoding.part(rng.randint(0, 500), 1),), k=1, m=1)
    case = case_of(rng, e, inner, data=None if e.form == CONTAINER else rng.choice(e.files)) if rng.random() < 0.5 else case_of(rng, e)
    blobs = list(case.blobs)
    for _ in range(rng.randint(1, 4)):
        j = rng.randrange(len(blobs))
        x = annex(rng.choice((0, 1, 2, 1 << 31)), rng.choice((b"", rng.randbytes(70), inner.files[0], MAGIC_A * 5, annex(1, b"x"))))
        at = len(blobs[j]) if rng.random() < 0.6 else place(rng, blobs[j])
        blobs[j] = blobs[j][:at] + rng.choice((x, x, hurt(rng, x))) + blobs[j][at:]
    return case._replace(blobs=blobs, made=(e, inner))


def folders(rng):
    """Foreign shard files, containers, the same shard twice and in two halves"""
    made = [make(rng, SHARDS)] + [make(rng) for _ in range(rng.randint(0, 2))]
    blobs = [x for e in made for x in e.files if rng.random() < 0.8]
    for _ in range(rng.randint(0, 3)):
        x, y = rng.choice(made[0].files), rng.choice([z for e in made for z in e.files])
        blobs.append(rng.choice((x, hurt(rng, x), x[:192] + y[192:], x[:-192] + y[-192:], x + y, rng.randbytes(300))))
    rng.shuffle(blobs)
    return Case(blobs or [b""], True, made)


def cheated(rng):
    """Shards that are signed but wrong, and padding that is not zero"""
    k, m = rng.choice(((2, 1), (2, 2), (2, 4), (3, 5), (1, 3), (3, 40)))
    wrong, lost = set(rng.sample(range(k + m), rng.randint(0, m + 1))), set(rng.sample(range(k + m), rng.randint(0, m)))

    def alter(shards):
        for i in wrong:
            s = rng.randrange(len(shards[i]))
            shards[i][s] = encoding.flipped(shards[i][s], rng.randrange(64))

    if rng.random() < 0.5:
        e = make(rng, CONTAINER, k=k, m=m, alter=alter, keep=lambda g, s, i: i not in lost)
    elif rng.random() < 0.5:
        part = encoding.part(rng.randint(1, 300), 1, k)
        e = make(rng, CONTAINER, k=k, m=m, parts=(part,), pieces=[rng.randbytes(part[1] * k)], keep=lambda g, s, i: i not in lost)
    else:
        e = make(rng, SHARDS, k=k, m=m, alter=alter)
        return Case([x for i, x in enumerate(e.files) if i not in lost], True, (e._replace(payload=None),))
    return case_of(rng, e._replace(payload=None), data=e.files[0])


def forked(rng):
    """Chains that share groups, and groups that do not fit"""
    k, m, h = rng.choice((1, 2)), rng.choice((0, 1)), rng.getrandbits(32)
    full = 4096 * k
    made, common = [], payload_of(rng, 2 * full)
    for _ in range(rng.randint(1, 3)):
        parts = [(full, 4096, 1)] * rng.randint(1, 2) + [encoding.part(rng.randint(1, full), 1, k)]
        if rng.random() < 0.4:
            j = rng.randrange(len(parts))
            parts[j] = parts[j][:3] + ({rng.choice(("flags", "nr", "hash")): rng.choice((0, 1, 2, 3, 32, 33, 65))},)
        payload = (common[:full * (len(parts) - 1)] + rng.randbytes(full))[:sum(p[0] for p in parts)]
        made.append(make(random.Random(h), CONTAINER, k=k, m=m, parts=tuple(parts), payload=payload, meta=b"", index=rng.random() < 0.5))
    data = [x for e in made for x in pieces_of(e.files[0], *MAGICS) if rng.random() < 0.95]
    if rng.random() < 0.3:
        rng.shuffle(data)
    return case_of(rng, *[e._replace(payload=None) for e in made], data=b"".join(data))


FORGERIES = (forged_fields, re_signed, false_headers, indexes, metas, joined, many, nested, sandwiched, wrapped, annexes, folders, cheated, forked)


def structured_case(rng, number):
    case = FORGERIES[number % len(FORGERIES)](rng)
    return hurt_some(rng, case, 3) if rng.random() < 0.4 else case


def sealed_case(rng, _):
    blobs, several, made = hostile_sealed.case_of(rng, hurt)
    return Case(blobs, several, [Made(e.form, e.files, e.root, e.plain) for e in made])


KINDS = dict(random=random_case, structured=structured_case, sealed=sealed_case)


# ---------------------------------------------------------------- running and comparing

def is_live(data):
    """Tells whether a whole valid packet stands at the very start (§9.3)"""
    end = data.find(b"\xfe\xfd", 2)
    if data[:2] != b"\xfe\xfd" or end < 0:
        return False
    packet = oracle_stream.unstuff(data[2:end])
    if packet is None:
        return False
    try:
        oracle_stream.parse(packet)
        return True
    except oracle_stream.Bad:
        return False


def pipe_serves(data, root):
    """Tells whether a reader of a pipe must restore this root (§9.3): the first group 0 whose sets have k records each
    is of the root's chain, and the records come group by group, with two groups open at a time."""
    scan = encoding.Scan(data, encoding.Notes())
    members = next((x.groups for x in encoding.find_chains(scan) if x.root == root), {})
    have, first = {}, None
    for r in scan.records:
        sets = have.setdefault(r.gr, {})
        sets.setdefault(r.s, set()).add(r.i)
        if r.pg.nr == 0 and first is None and len(sets) == r.pg.G and all(len(x) >= r.pg.k for x in sets.values()):
            first = r.gr
    in_order = [r.pg.nr for r in scan.records]
    known = {g.gr for g in members.values()}
    return 0 in members and first == members[0].gr and in_order == sorted(in_order) and all(r.gr in known for r in scan.records)


class Reading:
    """The results of the oracle. In a pipe, shard files and bodies in front of an XH are not looked for; a reader MAY
    also try positions from the end of a shard file without a good header (§8)."""

    def __init__(self, blobs, several):
        self.blobs, self.several = blobs, several

    def of_file(self, root, strict):
        return encoding.read_all(self.blobs, self.several, root, strict)

    def of_pipe(self):
        encoding.Scan.looks_before = False
        try:
            return self.instead(reader, "read_shard_file", lambda data, notes: (False, []), None)
        finally:
            encoding.Scan.looks_before = True

    def from_both_ends(self, root, strict, of_file):
        if not any(MAGIC_S in data for _, data in self.blobs):
            return of_file
        own = shard_files.ShardFile
        return self.instead(shard_files, "ShardFile", lambda header, data, at: own(header, data, at=(0, max(0, len(data) - 192))), root, strict)

    def instead(self, module, name, what, root, strict=False):
        own = getattr(module, name)
        setattr(module, name, what)
        try:
            return self.of_file(root, strict)
        finally:
            setattr(module, name, own)


class Runner:
    """Runs fec on one case, in a folder of its own."""

    def __init__(self, fec, case):
        self.fec, self.case, self.found, self.runs = fec, case, [], 0
        self.home = tempfile.mkdtemp(prefix="hostile-")
        names = ["%02d" % j for j in range(len(case.blobs))]
        os.makedirs(os.path.join(self.home, "in"))
        for name, data in zip(names, case.blobs):
            encoding.store(os.path.join(self.home, "in", name), data)
        self.paths = [os.path.join("..", "in", x) for x in names] if len(names) > 1 else [os.path.join("..", "in")] if case.several else [os.path.join("..", "in", names[0])]

    def note(self, kind, text, args=()):
        self.found.append((kind, "%s: %s" % (" ".join(args), text)))

    def run(self, args, stdin=None):
        """(exit code, bytes of standard output, bytes of the file `out` or None)"""
        work = os.path.join(self.home, "work")
        os.makedirs(work)
        self.runs += 1
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run([self.fec, *args, "-q", "--progress", "never"], cwd=work, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                                  capture_output=True, timeout=WALL, env=dict(os.environ, TMPDIR=work), check=False)
            code, text, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, text, errors = -1, b"", b""
            self.note("time", "more than %d seconds" % WALL, args)
        global memory
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime > SECONDS:
            self.note("time", "more than %d seconds of processor time" % SECONDS, args)
        used = after.ru_maxrss
        if used > max(memory, KIB):
            memory = used
            self.note("memory", "%d MiB" % (used >> 10), args)
        if code not in (-1, 0, 1, 2, 3, 4, 5, 6) or b"panicked" in errors:
            self.note("panic", "exit %d: %s" % (code, errors.decode(errors="replace")[-400:]), args)
        left = sorted(os.listdir(work))
        out = None
        if "out" in left:
            left.remove("out")
            with open(os.path.join(work, "out"), "rb") as f:
                out = f.read()
        if left:
            self.note("left-behind", str(left), args)
        shutil.rmtree(work)
        self.errors = errors.decode(errors="replace").strip()[-300:]
        return code, text, out


memory = 0


def attack(job):
    """Runs one case. The result is (kind, number, kinds and texts of the differences, number of runs, classes of the
    oracle's results, most memory so far)"""
    kind, number, options = job
    rng = random.Random("%d:%s:%d" % (options.seed, kind, number))
    case = KINDS[kind](rng, number)
    run = Runner(options.fec, case)
    try:
        classes = compare_sealed(run, rng, case) if kind == "sealed" else compare(run, rng, case)
    finally:
        if run.found and options.keep:
            folder = os.path.join(options.keep, "%s-%s-%d" % (sorted({x for x, _ in run.found})[0], kind, number))
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(os.path.join(run.home, "in"), os.path.join(folder, "in"))
            again = "hostile.py --seed %d --only %s:%d" % (options.seed, kind, number)
            made = ["root %s: %s" % (e.root.hex(), e.payload is not None and hashlib.sha256(e.payload).hexdigest()) for e in case.made]
            encoding.store(os.path.join(folder, "what.txt"), "\n".join([again] + ["%s: %s" % x for x in run.found] + made + [""]).encode())
        shutil.rmtree(run.home)
        encoding.forget()
    return kind, number, run.found, run.runs, classes, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def compare(run, rng, case):
    blobs = [(str(j), x) for j, x in enumerate(case.blobs)]
    roots = [e.root for e in rng.sample(case.made, min(len(case.made), 1 + (rng.random() < 0.2)))] + ([rng.randbytes(32)] if rng.random() < 0.04 else [])
    one = None if case.several else case.blobs[0]
    live = one is not None and is_live(one)
    known, payloads = {e.root: e.payload for e in case.made}, {e.payload for e in case.made} - {None}
    reading, classes = Reading(blobs, case.several), []
    for root in [None] + roots:
        for strict in (False, True) if rng.random() < 0.1 else (False,):
            want = reading.of_file(root, strict)
            both = reading.from_both_ends(root, strict, want)
            classes.append(want.cls)
            for x in (want, both):
                if x.payload is not None:
                    payloads.add(x.payload)
                    if known.get(x.root) not in (None, x.payload):
                        run.note("oracle-wrong", "the oracle restores other bytes than were encoded", [x.root.hex()])
            more = (["--root", root.hex()] if root else []) + ["--deep"] * strict
            threads = ["--no-sync", "-j", rng.choice("112")]
            check_decode(run, "file", ["decode", *run.paths, "-o", "out"] + more + threads, None, (want, both), root, live, payloads)
            if rng.random() < 0.2:
                check_decode(run, "file to pipe", ["decode", *run.paths, "-o", "-"] + more + threads, None, (want, both), root, live, payloads)
            if one is not None and rng.random() < 0.5:
                to = rng.choice(("out", "-"))
                wants = (want, both) if root or strict else (reading.of_pipe(),)
                payloads.update(x.payload for x in wants if x.payload is not None)
                check_decode(run, "pipe", ["decode", "-", "-o", to] + more + threads, one, wants, root or strict, live, payloads)
            if (not live or root) and rng.random() < 0.7:
                check_verify(run, ["verify", *run.paths, *more], (want, both), root, strict, one)
    return classes


def compare_sealed(run, rng, case):
    reading = Reading([(str(j), x) for j, x in enumerate(case.blobs)], case.several)
    return hostile_sealed.compare(run, rng, case, reading, check_verify)


def check_verify(run, args, wants, root, strict, one):
    code = run.run(args)[0]
    found = encoding.read_shard_file(one, encoding.Notes())[1] if root and one is not None else []
    if any(f.header.R == root for f in found):           # one shard file with its root is checked by itself
        if strict and code == 2:
            return
        expected = {0 if x.clean else 5 for x in found if x.header.R == root}
        if code not in expected:
            run.note("verify-one-shard", "exit %d, oracle %s" % (code, expected), args)
        return
    expected = [x.exit if x.cls else 0 if x.clean else 1 for x in wants]
    alone = [encoding.read_all([("0", x)], False, root) for x in run.case.blobs if is_container(x)] if run.case.several else []
    if run.case.several and not root and (2 in expected or alone) and code in [0, 1, 3] + [x.exit for x in alone]:
        # fec reports each of several encodings by itself, and each container in a folder too.
        return
    if root and code > 1 and code in [x.exit for x in alone]:
        return                                           # (fec tells why a container in a folder has not the root)
    if run.case.several and root and len(run.paths) > 1:  # named shard files: are they right?
        files = [encoding.read_shard_file(x, encoding.Notes())[1] for x in run.case.blobs]
        right = all(any(f.header.R == root and f.clean for f in found) for found in files)
        expected = expected + [0 if right else 5]
    claims = [(f.header.R, f.header.i) for x in run.case.blobs for f in encoding.read_shard_file(x, encoding.Notes())[1]] if run.case.several else []
    if code in (0, 1) and {0, 1} & set(expected) and (len(set(claims)) < len(claims) or len({R for R, _ in claims}) > 1):
        # The format leaves open whether copies and other shard files in a folder are damage.
        return
    if strict and code in (0, 1) and all("§7: the payload is not" in " ".join(x.lines) for x in wants):
        # A reader that does not write the payload need not compare the digests of the payload (§7).
        return
    cheated = any("§5" in x or "§10.3" in x for want in wants for x in want.lines)
    # Without --deep no set is computed.
    if code in expected or cheated and not strict and code in (0, 1, 2, 3, 5):
        return
    text = "exit %d, oracle %s (%s): %s" % (code, expected, wants[0].cls, run.errors)
    if not any((x in (0, 1)) == (code in (0, 1)) for x in expected):
        run.note("verify-restorable", text, args)
    else:
        run.note("verify-clean" if code < 2 else "verify-class", text, args)


def check_decode(run, way, args, stdin, wants, whole, live, payloads):
    """whole: an input from a pipe is read like a file"""
    code, text, out = run.run(args, stdin)
    to_pipe = args[args.index("-o") + 1] == "-"
    restored = text if to_pipe else out
    good = [x for x in wants if x.cls is None]
    if live and "--root" not in args:
        if code == 0 and good:
            run.note("live", "taken for a live stream, although a chain can be restored", args)
        return
    said = "oracle %s, exit %d: %s" % ([x.cls for x in wants], code, run.errors)
    if code == 0:
        if restored is None:
            run.note("no-output", said, args)
        elif not good:
            run.note("restored", "%s: %d bytes (known: %s), %s" % (way, len(restored), restored in payloads, said), args)
        elif all(restored != x.payload for x in good):
            run.note("WRONG-BYTES", way, args)
        return
    if out is not None:
        run.note("output-of-failure", "%s: %s" % (way, said), args)
    if text and not any(x.startswith(text) for x in payloads) and not any(e.payload is None for e in run.case.made):
        run.note("output-of-failure", "%s: %d bytes that are no beginning of a payload, %s" % (way, len(text), said), args)
    if code in [x.exit for x in wants]:
        return
    if len(good) == len(wants):
        # (A reader of a pipe may know only the first k shards of a set, §10.)
        if way == "pipe" and not whole and ("not one codeword" in run.errors or not pipe_serves(stdin, good[0].root)):
            run.note("pipe-allowed", "exit %d" % code, args)
        else:
            run.note("not-restored", "%s: %d bytes, %s" % (way, len(good[0].payload), said), args)
    elif way == "pipe" and not whole:
        # The message of fec is about a shard file in the pipe, about the chain that fec follows, or about the first
        # group of that chain that fails.
        run.note("pipe-allowed", said, args)
    elif code == 2 and "no shard files" in run.errors and len(run.paths) > 1 and all(is_container(x) for x in run.case.blobs):
        pass                                             # (a call that names several containers and no more: wrong use)
    else:
        run.note("class", "%s: %s" % (way, said), args)


def is_container(blob):
    return blob[:4] == b"\x89fec" and blob[4:5] in b"RXM"


def main():
    parser = argparse.ArgumentParser(description="hostile inputs for fec and for the oracle")
    parser.add_argument("--random", type=int, default=300)
    parser.add_argument("--structured", type=int, default=150)
    parser.add_argument("--sealed", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fec", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../target/release/fec"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", default="hostile-failures", help="a folder for the inputs that show a difference")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", help="one case: random:NUMBER, structured:NUMBER or sealed:NUMBER")
    options = parser.parse_args()
    options.fec = os.path.abspath(options.fec)
    jobs = [(kind, j, options) for kind in KINDS for j in range(options.first, getattr(options, kind))]
    jobs.sort(key=lambda job: job[1] / max(1, getattr(options, job[0])))              # (all kinds side by side)
    if options.only:
        kind, number = options.only.split(":")
        jobs = [(kind, int(number), options)]
    counts, classes, runs, cases, peak = collections.Counter(), collections.Counter(), 0, 0, 0
    with multiprocessing.Pool(options.jobs) as pool:
        for kind, number, found, more, results, used in pool.imap_unordered(attack, jobs, 4):
            cases, runs, peak = cases + 1, runs + more, max(peak, used)
            classes.update(x or "restored" for x in results)
            counts.update({x for x, _ in found})
            for what, text in found:
                if what != "pipe-allowed":
                    print("%s:%d %s: %s" % (kind, number, what, text), flush=True)
            if cases % 500 == 0:
                print("# %d cases, %d runs; %s" % (cases, runs, dict(counts)), flush=True)
    bad = {x: n for x, n in counts.items() if x != "pipe-allowed"}
    print("%d cases, %d runs, at most %d MiB; the oracle: %s; differences: %s; pipes that may fail: %d" % (cases, runs, peak >> 10, dict(classes), bad or "none", counts["pipe-allowed"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
