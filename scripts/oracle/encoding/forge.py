"""Encodings for the vectors: right ones, and ones that break a rule."""
import os

from ..basics import CONTAINER, MAGIC_X, SHA256, SHARDS, ceil_div, generate
from ..hashes import digest
from .geometry import Geo
from .meta import entry
from .writer import Group, p_of, write_container, write_shards


def shard_names(stem, files):
    """§8: the file names; stem is bytes or text"""
    stem = os.fsencode(stem)
    if len(stem) + 10 > 255:
        end = 245
        while end > 242 and stem[end] & 0xC0 == 0x80:
            end -= 1
        stem = stem[:end]
    return {"%s.%03d.shard" % (os.fsdecode(stem), i): x for i, x in enumerate(files)}


def forge(form, parts=((50, 64, 1),), h=SHA256, k=1, m=1, lie=None, p=None, alter=None, pieces=None, payload=None, meta=None, **hooks):
    """A container or shard files, with right hashes and CRCs over all that the arguments change. parts: (payload bytes,
    L, G[, other fields]) of each group; lie: fields of every Pg (and so of P) that differ from the group that is built;
    p: such fields of P alone."""
    groups, pos = [], 0
    payload = generate(sum(part[0] for part in parts), 7) if payload is None else payload
    meta = (entry(2, b"a") if form == SHARDS else b"") if meta is None else meta
    before = digest(h, meta)
    for g, part in enumerate(parts):
        geo = Geo(1, h, form, int(g == len(parts) - 1), k, m, part[1], part[2], part[0], g)._replace(**(part[3] if len(part) > 3 else {}))
        groups.append(Group(geo, pieces[g] if pieces else payload[pos:pos + geo.payload], before, alter, lie))
        pos, before = pos + geo.payload, groups[-1].gr
    if form == SHARDS:
        return write_shards(groups[0], meta, **hooks)
    return write_container(groups, p_of(groups, p), meta, **hooks)


def part(b, G, k=1):
    """A group of b bytes and G sets for forge, with the canonical L"""
    return b, 64 * max(1, ceil_div(b, 64 * k * G)), G


def poke(at, value):
    """A hook that changes a byte of the hook's last argument, mostly a header, by XOR."""
    def change(*args):
        args[-1][at] ^= value
    return change


def poke_head(at, value):
    """A hook that changes a byte in the header of a record or a meta frame, the hook's last argument but one."""
    def change(*args):
        args[-2][at] ^= value
    return change


def spots(data, *magics):
    """The places of these magics: all of the first magic, then all of the next."""
    found = []
    for magic in magics:
        at = data.find(magic)
        while at >= 0:
            found.append(at)
            at = data.find(magic, at + 1)
    return found


P50 = generate(50, 7)
NAMED = entry(2, b"a")


def F(only=None, **o):
    """shard files; only: the indices that are there"""
    files, root = forge(SHARDS, **o)
    return {x: y for i, (x, y) in enumerate(shard_names("x", files).items()) if only is None or i in only}, root


def C(**o):
    return forge(CONTAINER, **o)


def alone(**o):
    """an index, or a meta frame, without records"""
    return C(keep=lambda g, s, i: False, **o)


def root_of(container):
    """R, as the index states it"""
    return container[spots(container, MAGIC_X)[0] + 64:][:32]
