"""§9.5: the outlines of shards, and leaves that are proved by them."""
import hashlib
import struct

from .basics import BLAKE3, SHA256, SHARDS, Notes, align, ceil_div, generate
from .encoding import annex, encode, make_meta, proof_size, read_header
from .encoding.shard_files import take_off_annexes
from .encoding.trees import follow_proof
from .hashes import B3_IV, PARENT, ROOT_FLAG, b3_compress, block_lanes, lanes, lanes_to_hashes, own_blake3

LEAF = 16384
TYPE = 2


def outline(data, first=0):
    """The values of leaves of a shard, from number `first` on: of all, if the data are the shard."""
    leaves = [data[at:at + LEAF] for at in range(0, len(data), LEAF)]
    return [own_blake3([leaf], first=16 * (first + j), is_whole=False)[0] for j, leaf in enumerate(leaves)]


def digest_of(values):
    """The digest to which the values of all leaves lead."""
    while len(values) > 1:
        pairs = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
        flags = PARENT | (ROOT_FLAG if len(values) == 2 else 0)
        start = [lanes([word] * len(pairs)) for word in B3_IV]
        above = lanes_to_hashes(b3_compress(start, block_lanes(pairs, "<"), [0] * len(pairs), 64, flags, len(pairs)), len(pairs), "<")
        values = above + values[2 * len(pairs):]
    return values[0]


def has_outlines(pg):
    return pg.hash == BLAKE3 and pg.L > LEAF


def sets_of_annex(pg):
    return ((1 << 20) - 16) // (32 * ceil_div(pg.L, LEAF))


def annexes(pg, body):
    """The annexes behind a shard file with this body, in front of all others."""
    if not has_outlines(pg):
        return b""
    out, most = b"", sets_of_annex(pg)
    for first in range(0, pg.G, most):
        sets = range(first, min(pg.G, first + most))
        data = b"".join(b"".join(outline(body[s * pg.L:(s + 1) * pg.L])) for s in sets)
        out += annex(TYPE, struct.pack("<4I", LEAF, first, len(sets), 0) + data)
    return out


def outline_at(pg, s):
    """Where the outline of set s stands, from the first annex on."""
    size, most = 32 * ceil_div(pg.L, LEAF), sets_of_annex(pg)
    return s // most * (64 + 16 + most * size) + 32 + 16 + s % most * size


def leaves_are_proved(pg, X, s, i, proof, values, first, data):
    """Whether data are leaves of shard i of set s from number `first` on."""
    end = min(pg.L, (first + ceil_div(len(data), LEAF)) * LEAF)
    if len(values) != ceil_div(pg.L, LEAF) or not data or len(data) != end - first * LEAF:
        return False
    found = outline(data, first)
    return found == values[first:first + len(found)] and follow_proof(pg, digest_of(values), s, i, proof)[0] == X


# ---------------------------------------------------------------- golden vectors

def vectors():
    """For each encoding the length and the SHA-256 of the annexes behind each shard file."""
    for name, h, k, m, set_size, size in (
            ("one set", BLAKE3, 3, 2, None, 150_000), ("two leaves, several sets", BLAKE3, 2, 1, 40_000, 200_000),
            ("whole leaves", BLAKE3, 2, 2, 65_536, 131_072), ("one leaf", BLAKE3, 2, 1, 32_768, 65_536), ("SHA-256", SHA256, 3, 2, None, 150_000)):
        files, root = encode(SHARDS, h, k, m, generate(size, 3), set_size, meta=make_meta(b"data"))
        tails = []
        for file in files:
            header = read_header(file[:192], Notes())
            tails.append(annexes(header.pg, body_of(header, file)))
        yield dict(name=name, hash=h, k=k, m=m, set_size=set_size, payload_len=size, seed=3, root=root.hex(),
                   annexes=[dict(len=len(tail), sha256=hashlib.sha256(tail).hexdigest()) for tail in tails])


def body_of(header, file):
    size = header.pg.G * header.pg.L
    start = 192 + align(header.meta_len, 64) + header.pg.G * proof_size(header.pg)
    start = align(start, 4096 if size >= 65_536 else 64)
    return file[start:start + size]


def check(vector):
    """Reads leaves of every shard by the outlines, as a reader of a range does."""
    files, _ = encode(SHARDS, vector["hash"], vector["k"], vector["m"], generate(vector["payload_len"], vector["seed"]), vector["set_size"], meta=make_meta(b"data"))
    for file, expected in zip(files, vector["annexes"]):
        header = read_header(file[:192], Notes())
        pg, body = header.pg, body_of(header, file)
        tail = annexes(pg, body)
        assert (len(tail), hashlib.sha256(tail).hexdigest()) == (expected["len"], expected["sha256"]), vector["name"]
        assert take_off_annexes(file + tail) == file
        for s in range(pg.G) if tail else ():
            at, count = outline_at(pg, s), ceil_div(pg.L, LEAF)
            values = [tail[at + 32 * j:at + 32 * j + 32] for j in range(count)]
            proof_at = 192 + align(header.meta_len, 64) + s * proof_size(pg)
            proof = file[proof_at:proof_at + proof_size(pg)]
            shard, first = body[s * pg.L:(s + 1) * pg.L], count - 1
            last = shard[first * LEAF:]
            assert leaves_are_proved(pg, header.X, s, header.i, proof, values, first, last)
            assert leaves_are_proved(pg, header.X, s, header.i, proof, values, 0, shard)
            assert not leaves_are_proved(pg, header.X, s, header.i, proof, values, first - 1, last)
            assert not leaves_are_proved(pg, header.X, s, header.i, proof, values, first, last[:-1] + bytes([last[-1] ^ 1]))
            assert not leaves_are_proved(pg, header.X, s, header.i, proof, values[::-1], first, last)
