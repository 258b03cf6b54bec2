"""Vectors of errors: meta and index."""
import struct

from ..basics import MAGIC_R, MAGIC_X, SHA256, flipped, generate
from .forge import C, F, NAMED, P50, alone, poke, poke_head, spots
from .geometry import group_of, unpack
from .meta import entry
from .trees import group_root


def rules_of_meta_and_index(add):
    """Meta, the meta frame and the index (§7, §9)"""
    name = NAMED
    # ---- §7 meta, in both forms; a meta frame or an index alone gives the class of its meta
    block = struct.pack("<IQ", 2, 5) + bytes(32)
    for stem, rule, cls, meta in (
            ("even", "unknown even type", "refused", name + entry(4, b"x")), ("type-0", "unknown even type 0", "refused", entry(0, b"") + name),
            ("even-254", "unknown even type 254", "refused", name + entry(254, b"")), ("odd", "an unknown odd type is skipped", None, entry(1, b"") + name + entry(9, b"xyz")),
            ("descending", "types do not ascend", "invalid", entry(9, b"") + name), ("twice", "the same type twice", "invalid", name + name),
            ("entry-too-long", "an entry is longer than the meta", "invalid", struct.pack("<BH", 2, 2) + b"a"),
            ("name-empty", "empty name", "invalid", entry(2, b"")), ("name-slash", "name with a slash", "invalid", entry(2, b"a/b")),
            ("name-nul", "name with NUL", "invalid", entry(2, b"a\0b")), ("name-dot", "name .", "invalid", entry(2, b".")),
            ("name-dotdot", "name ..", "invalid", entry(2, b"..")), ("name-256", "name of 256 bytes", "invalid", entry(2, b"n" * 256)),
            ("name-255", "name of 255 bytes", None, entry(2, b"n" * 255)), ("name-dots", "name ... is allowed", None, entry(2, b"...")),
            ("trailing-byte", "a byte is left over", "invalid", name + b"\3"), ("trailing-bytes", "two bytes are left over", "invalid", name + b"\3\0"),
            ("sha256-short", "a SHA-256 of 31 bytes", "invalid", name + entry(3, bytes(31))), ("blake3-long", "a BLAKE3 of 33 bytes", "invalid", name + entry(5, bytes(33))),
            ("annexes", "blocks kept in annexes", None, name + entry(7, block + b"\3" + block[1:])), ("annexes-none", "blocks kept in annexes: a list of none", None, name + entry(7, b"")),
            ("annexes-twice", "blocks kept in annexes: the same type twice", "invalid", entry(7, block + block)),
            ("annexes-length", "blocks kept in annexes: bytes left over", "invalid", entry(7, block + b"x")),
            ("empty", "the meta may be empty", None, b""), ("400", "400 bytes", None, name + entry(9, generate(393, 1)))):
        files, root = F(only=[0], meta=meta)
        if stem not in ("type-0", "even-254"):
            add("s-meta-" + stem, "§7: " + rule, cls, files, None, P50 if cls is None else None)
        data, root = C(meta=meta)
        if stem != "type-0":
            add("c-meta-" + stem, "§7, §9.2: " + rule, cls, data, root, P50 if cls is None else None)
        if cls:
            add("c-meta-%s-frame-alone" % stem, "§7: " + rule, cls, alone(meta=meta, index=False)[0])
            add("c-meta-%s-index-alone" % stem, "§7: " + rule, cls, alone(meta=meta, frame=False)[0])
    data, root = C(meta=name + entry(4, b"x"))
    add("c-meta-even-no-root", "§9.2: index and meta frame are refused, and so is what has this meta", "refused", data)
    add("c-meta-even-elsewhere", "§9.2: meta that is refused, and not that of the records", None, data[:spots(data, MAGIC_R)[0]] + C(meta=name)[0], None, P50)
    add("s-meta-65537", "§8: meta length 65,537", "invalid", F(only=[0], hdr=lambda i, head: head.__setitem__(slice(20, 24), struct.pack("<I", 65537)))[0])
    add("c-meta-65537", "§9: meta length 65,537 (index)", "invalid", alone(xh=lambda head: head.__setitem__(slice(24, 28), struct.pack("<I", 65537)))[0])
    long_name = entry(2, b"a" * 60) + entry(9, b"b" * 40)
    files, root = F(k=1, m=0, meta=long_name)
    (shard,) = files.values()
    both_lost = flipped(shard, 195, len(shard) - 192 - 100)
    add("s-meta-first-damaged", "§8: the first copy of the meta is damaged", None, [flipped(shard, 195)], None, P50, file_name="a" * 60, verify=1)
    add("s-meta-last-damaged", "§8: the last copy of the meta is damaged", None, [flipped(shard, len(shard) - 192 - 100)], None, P50, file_name="a" * 60, verify=1)
    add("s-meta-zeros-damaged", "§8: the zeros behind both copies of the meta are not zero", None, F(meta=long_name, met=poke(-1, 1))[0], None, P50, meta_lost=True)
    add("s-meta-lost", "§8: both copies of the meta are damaged", None, [both_lost], None, P50, meta_lost=True)
    add("s-meta-lost-in-one", "§8: another shard has the meta", None, [flipped(x, 195, len(x) - 192 - 100) if n == 0 else x for n, x in enumerate(F(meta=long_name)[0].values())], None, P50,
        file_name="a" * 60)

    # ---- the meta frame
    def length(value):
        def change(head, body):
            head[16:20] = struct.pack("<I", value)
            body.clear()
        return change

    for stem, rule, cls, mh in (
            ("version", "version 2", "refused", poke_head(32, 3)), ("hash", "hash 0", "refused", poke_head(33, 2)), ("form", "form 1", "refused", poke_head(34, 3)),
            ("flags", "a critical flag", "refused", poke_head(35, 2)), ("flag-last", "bit 0 of the flags", "refused", poke_head(35, 1)),
            ("length-0", "length 0", "invalid", length(0)), ("length-65537", "length 65,537", "invalid", length(65537)), ("length-2-32", "length 2^32 − 1", "invalid", length((1 << 32) - 1)),
            ("M", "M is not the hash of the meta", "damaged", poke_head(64, 1)), ("meta", "M is not the hash of the meta", "damaged", poke(3, 1)),
            ("zeros", "zeros behind the meta", "damaged", poke(-1, 1)), ("zero-bytes-12", "zero bytes", "damaged", poke_head(12, 1)), ("zero-bytes-20", "zero bytes", "damaged", poke_head(20, 1)),
            ("zero-bytes-36", "zero bytes", "damaged", poke_head(36, 1)), ("zero-bytes-96", "zero bytes", "damaged", poke_head(96, 1)), ("zero-bytes-127", "zero bytes", "damaged", poke_head(127, 1))):
        add("c-frame-" + stem, "§9 meta frame: " + rule, None, C(meta=name, index=False, mh=mh)[0], None, P50, meta_lost=True)
        if cls != "damaged":
            add("c-frame-%s-alone" % stem, "§9 meta frame: " + rule, cls, alone(meta=name, index=False, mh=mh)[0])
    data, root = C(meta=name, index=False)
    add("c-frame-only", "§9: the index is lost, the meta frame is not", None, data, None, P50, file_name="a")
    add("c-frame-crc", "§9 meta frame: the CRC is wrong", None, flipped(data, 8), None, P50, meta_lost=True)
    add("c-frame-at-the-end", "§9 meta frame: it counts wherever it stands", None, data[192:] + data[:192], None, P50, file_name="a")
    add("c-frame-other-flags", "§9 meta frame: it counts for every encoding with its M", None, C(meta=name, index=False, mh=poke_head(35, 32))[0], None, P50, file_name="a")
    foreign = C(meta=entry(2, b"other"), index=False)[0][:192]
    add("c-frame-foreign", "§9: a foreign meta frame in front", None, foreign + data, root, P50, file_name="a")
    add("c-frame-foreign-no-root", "§9: a foreign meta frame in front", None, foreign + data, None, P50, file_name="a")
    add("c-frame-foreign-alone", "§9: only a foreign meta frame", None, foreign + data[192:], None, P50, meta_lost=True)
    add("c-frame-foreign-empty-meta", "§9: a foreign meta frame, the encoding has no meta", None, foreign + C()[0], None, P50)
    add("c-frames-100-foreign", "§12: 100 foreign meta frames in front", None,
        b"".join(alone(meta=entry(2, b"n%d" % j), index=False)[0] for j in range(100)) + C(meta=name)[0], None, P50, file_name="a")

    # ---- the index
    def set_M(head):
        head[96] ^= 1
        head[64:96] = group_root(SHA256, group_of(unpack(head[32:64]), 0), alone()[0][128:160], bytes(head[96:128]))

    for stem, rule, o in (("zero-bytes-12", "zero bytes", dict(xh=poke(12, 1))), ("zero-bytes-28", "zero bytes", dict(xh=poke(28, 1))),
                          ("zero-bytes-31", "zero bytes", dict(xh=poke(31, 1))), ("body-longer", "body length is 64 too large, and so is the body", dict(idx=lambda b: b.extend(bytes(64)))),
                          ("body-length", "body length in XH is wrong", dict(xh=poke(16, 128))), ("body-zeros", "zeros of the body", dict(idx=poke(63, 1))),
                          ("R", "R does not follow", dict(xh=poke(64, 1))), ("M", "M is not the hash of the meta (R follows from it)", dict(xh=set_M)),
                          ("X", "another X in the body", dict(idx=poke(0, 1))), ("meta-byte", "another meta than M has", dict(idx=poke(35, 1)))):
        data, root = C(meta=name, frame=False, **o)
        add("c-index-" + stem, "§9 index: %s; the root is known from the records" % rule, None, data, root, P50, meta_lost=True)
        add("c-index-%s-no-root" % stem, "§9 index: %s; losing the index costs no payload" % rule, None, data, None, P50, meta_lost=True)
    data, root = C(meta=name, frame=False)
    heads = spots(data, MAGIC_X)
    add("c-index-crc", "§9 index: the CRC of every XH is wrong", None, flipped(data, *[at + 8 for at in heads]), root, P50, meta_lost=True)
    add("c-index-only-first", "§9 index: XH and the body that follows it", None, flipped(data, heads[1], heads[2], heads[1] + 128), root, P50, file_name="a")
    add("c-index-only-last", "§9 index: XH and the body that stands before it", None, flipped(data, heads[0], heads[1], heads[0] + 128), root, P50, file_name="a")
    add("c-index-middle-before", "§9 index: the middle XH and the body before it", None, flipped(data, heads[0], heads[2], heads[1] + 128), root, P50, file_name="a")
    add("c-index-bodies-lost", "§9 index: both bodies are damaged", None, flipped(data, heads[0] + 128, heads[1] + 128), root, P50, meta_lost=True)
    add("c-metas-all-lost", "§9: the meta frame and both index bodies are damaged", None,
        *(lambda x, r: [flipped(x, 128, *[at + 130 for at in spots(x, MAGIC_X)[:2]]), r, P50])(*C(meta=name)), meta_lost=True)
    add("c-metas-all-lost-no-root", "§9: the meta frame and both index bodies are damaged", None,
        *(lambda x, r: [flipped(x, 128, *[at + 130 for at in spots(x, MAGIC_X)[:2]]), None, P50])(*C(meta=name)), meta_lost=True)
    data, root = C(p=dict(nr=1 << 20, payload=4096 << 20, L=4096), xh=lambda head: head.__setitem__(slice(16, 24), struct.pack("<Q", 32 << 20)))
    add("c-index-of-2-20-groups", "§9 index: its body is not there", None, data, None, P50)
    one, one_root = C()
    other, other_root = C(meta=name)
    add("c-two-metas", "§9.2: the same payload with two metas", "ambiguous", one + other)
    add("c-two-metas-root-1", "§9.2: the same, the root is given", None, one + other, one_root, P50)
    add("c-two-metas-root-2", "§9.2: the same, the root is given", None, one + other, other_root, P50, file_name="a")
    mixed = one + other[spots(other, MAGIC_X)[0]:]
    add("c-two-indexes", "§9.2: a foreign index of the same payload: its groups have no records", None, mixed, None, P50)
    add("c-two-indexes-root-1", "§9.2: the same, the root is given", None, mixed, one_root, P50)
    add("c-two-indexes-root-2", "§9.2: the same, the root of the foreign index is given", "damaged", mixed, other_root)
    add("c-indexes-100-foreign", "§12: 100 foreign indexes in front", None, b"".join(alone(payload=generate(50, j))[0] for j in range(100, 200)) + other, None, P50)
