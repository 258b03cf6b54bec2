"""Constants and small things that all parts share ("§" refers to docs/FORMAT.md)."""
import json
import os

SHARDS, CONTAINER = 1, 2                    # §4 form
BLAKE3, SHA256 = 1, 2                       # §4 hash
MAGIC_S = bytes.fromhex("89666563530D0A1A")  # §8 shard file header
MAGIC_R = bytes.fromhex("89666563520D0A1A")  # §9 record
MAGIC_M = bytes.fromhex("896665634D0D0A1A")  # §9 meta frame
MAGIC_X = bytes.fromhex("89666563580D0A1A")  # §9 index
MAGIC_A = bytes.fromhex("89666563410D0A1A")  # §9.4 annex
ZERO32 = bytes(32)

# §11, worst first for "several causes"; the exit codes of decode.
EXIT = {None: 0, "damaged": 3, "refused": 6, "invalid": 5, "wrong-root": 5, "ambiguous": 2}
WORST = ["refused", "invalid", "wrong-root", "damaged"]
WORK = 1 << 30                              # §9.1


class Fault(Exception):
    """An object that is not accepted: cls is a class of §11."""

    def __init__(self, cls, text, version=False):
        super().__init__(text)
        self.cls, self.text, self.version = cls, text, version


def ceil_div(a, b):
    return -(-a // b)


def align(x, to):
    return ceil_div(x, to) * to


def clog2(x):
    return max(0, x - 1).bit_length()


def raise_worst(faults):
    if faults:
        raise min(faults, key=lambda f: WORST.index(f.cls))


class Notes:
    """The faults that were found. A single byte that rotted is no future version (§11)."""

    def __init__(self):
        self.faults, self.right = [], False        # right: a header of version 1 whose CRC is right was found

    def settle(self):
        for fault in self.faults:
            if fault.version and self.right:
                fault.cls = "damaged"


def check_version(data, pos):
    """Checks the version, which a reader looks at first behind a magic."""
    if data[pos + 32:pos + 33] not in (b"", b"\1"):
        raise Fault("refused", "§4: version %d" % data[pos + 32], version=True)


def store(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as f:
        f.write(data)


def generate(size, seed):
    """The payload of a vector."""
    x, out = seed, bytearray()
    for _ in range(size):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        out.append(x >> 56)
    return bytes(out)


def flipped(data, *places):
    data = bytearray(data)
    for at in places:
        data[at] ^= 1
    return bytes(data)


def write_json(name, items):
    store(name, ("[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]\n").encode())
