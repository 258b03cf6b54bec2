"""§7: meta."""
import struct

from ..basics import BLAKE3, SHA256, Fault
from ..hashes import digest

META_LIMIT = 65536


def entry(kind, data):
    return struct.pack("<BH", kind, len(data)) + data


def check_meta(meta):
    """The entries {type: bytes}"""
    pos, before, entries = 0, -1, {}
    while pos < len(meta):
        if pos + 3 > len(meta):
            raise Fault("invalid", "§7: bytes left over")
        kind, size = struct.unpack_from("<BH", meta, pos)
        data = meta[pos + 3:pos + 3 + size]
        if len(data) < size:
            raise Fault("invalid", "§7: an entry is longer than the meta")
        if kind <= before:
            raise Fault("invalid", "§7: the types do not ascend")
        if kind % 2 == 0 and kind != 2:
            raise Fault("refused", "§7: unknown even type %d" % kind)
        if kind == 2 and (not 1 <= size <= 255 or b"/" in data or b"\0" in data or data in (b".", b"..")):
            raise Fault("invalid", "§7: not a file name")
        if kind in (3, 5) and size != 32:
            raise Fault("invalid", "§7: a digest of the payload has 32 bytes")
        if kind == 7:
            types = [struct.unpack_from("<I", data, at)[0] for at in range(0, size - size % 44, 44)]
            if size % 44 or any(x >= y for x, y in zip(types, types[1:])):
                raise Fault("invalid", "§7: blocks kept in annexes")
        entries[kind] = data
        pos, before = pos + 3 + size, kind
    return entries


def make_meta(name=b"", payload=b"", digests_of=(), extra=b""):
    """The meta. digests_of: SHA256, BLAKE3 or both; the meta records these digests of the payload"""
    meta = entry(2, name) if name else b""
    for kind, h in ((3, SHA256), (5, BLAKE3)):
        meta += entry(kind, digest(h, payload)) if h in digests_of else b""
    return meta + extra
