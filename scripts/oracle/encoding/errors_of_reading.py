"""Vectors of errors: encodings that a reader finds among other things."""
import hashlib

from ..basics import BLAKE3, CONTAINER, MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_S, MAGIC_X, SHA256, align, flipped, generate
from .forge import C, F, NAMED, P50, alone, part, poke, root_of, spots
from .geometry import Geo, pack
from .meta import entry
from .writer import annex, put_crc


def what_a_reader_finds(add):
    """Lost parts, versions, several streams, kinds of files, annexes and folders (§8 to §12)"""
    name = NAMED
    two = ((4096, 4096, 1), (20, 64, 1))
    P100 = generate(100, 7)
    # ---- lost parts of a container
    many = ((8192, 4096, 1), (8192, 4096, 1), part(1000, 1, 2))
    PM = generate(17384, 7)
    size = 128 + 64 + 4096
    last = 128 + 64 + 512
    data, root = C(k=2, parts=many)
    end = spots(data, MAGIC_X)[0]
    add("c-no-index", "§9: all copies of the index are lost, all groups are there", None, data[:end], None, PM)
    add("c-no-index-root", "§9.2: the last group states R", None, data[:end], root, PM)
    add("c-cut-last-group", "§9.2: cut before the last group", "damaged", data[:6 * size])
    add("c-cut-last-group-root", "§9.2: cut before the last group: no root is known", "damaged", data[:6 * size], root)
    add("c-cut-in-last-group", "§9.2: cut in the last group, k records are there", None, data[:end - 50], None, PM)
    add("c-cut-in-last-group-k-1", "§9.2: cut in the last group, k − 1 records are there", "damaged", data[:end - last - 50], None)
    add("c-first-group-lost", "§9.2: the first group is lost, no index", "damaged", data[3 * size:end])
    add("c-first-group-lost-root", "§9.2: the first group is lost, no index; the last group still states R", "damaged", data[3 * size:end], root)
    add("c-middle-group-lost", "§9.2: a middle group is lost", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g != 1)[0])
    add("c-middle-group-lost-root", "§9.2: a middle group is lost", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g != 1)[0], root)
    add("c-middle-group-lost-no-index", "§9.2: a middle group is lost, no index", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g != 1)[0])
    add("c-middle-group-lost-no-index-root", "§9.2: a middle group is lost, no index", "damaged", C(k=2, parts=many, index=False, keep=lambda g, s, i: g != 1)[0], root)
    add("c-last-group-lost", "§9.2: the last group is lost, the index is there", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g < 2)[0])
    add("c-last-group-lost-root", "§9.2: the last group is lost, the index is there", "damaged", C(k=2, parts=many, keep=lambda g, s, i: g < 2)[0], root)
    add("c-only-last-group", "§9.2: only the last group is left", "damaged", data[6 * size:end])
    add("c-index-alone", "§9: only the index is left", "damaged", data[end:])
    add("c-index-alone-root", "§9: only the index is left, its root is given", "damaged", data[end:], root)
    add("c-index-alone-other-root", "§9: only the index is left, another root is given", "wrong-root", data[end:], hashlib.sha256(b"other").digest())
    add("c-k-1", "§10: k − 1 records of each set", "damaged", C(k=2, parts=many, keep=lambda g, s, i: i == 1)[0])
    add("c-k", "§10: k records of each set", None, C(k=2, parts=many, keep=lambda g, s, i: i != (g + s) % 3)[0], None, PM)
    sets2 = ((16384, 4096, 2), part(9000, 2, 2))
    add("c-k-sets", "§10: k records of each set, several sets", None, C(k=2, parts=sets2, keep=lambda g, s, i: i != (g + s) % 3)[0], None, generate(25384, 7))
    add("c-k-1-of-one-set", "§10: k − 1 records of one set", "damaged", C(k=2, parts=sets2, keep=lambda g, s, i: (g, s) != (1, 1) or i == 2)[0])
    add("c-set-gone", "§10: no record of one set", "damaged", C(k=2, parts=sets2, keep=lambda g, s, i: (g, s) != (1, 1))[0])
    add("c-wrong-root", "§11: another root is asked for", "wrong-root", data, hashlib.sha256(b"other").digest())
    add("c-root-of-middle-group", "§9.2: GR of a group that is not the last is no root", "wrong-root", data, data[3 * size + 64:3 * size + 96])
    add("c-empty-file", "§11: nothing is there", "damaged", b"")
    add("c-junk", "§11: nothing is there", "damaged", generate(5000, 3))
    add("c-junk-root", "§11: nothing is there, a root is given", "damaged", generate(5000, 3), root)
    shift = data[:300] + generate(77, 1) + data[300:]
    add("c-inserted", "§9.1: bytes inserted inside a record", None, shift, None, PM, verify=1)
    add("c-inserted-magic", "§9.1: magics inserted between records", None, MAGIC_R * 3 + MAGIC_X + MAGIC_M + MAGIC_A + MAGIC_S + MAGIC_R[:5] + data, None, PM)
    add("c-deleted", "§9.1: bytes deleted inside a record", None, data[:400] + data[433:], None, PM)
    turned = b"".join(data[at:at + size] for at in reversed(range(0, 6 * size, size)))
    add("c-shuffled", "§9.2: records of two groups in reverse order", None, turned + data[6 * size:], None, PM)

    # ---- versions (§4, §11)
    whole, whole_root = C(meta=name, m=0)
    noise = generate(600, 11)

    def future(x):
        """version 2, with another layout behind the magics and the version"""
        places = sorted(spots(x, MAGIC_R) + spots(x, MAGIC_X) + spots(x, MAGIC_M) + spots(x, MAGIC_S))
        x = bytearray(x)
        for at in places:
            x[at + 8:at + 128] = noise[:24] + b"\2" + noise[25:120]
        return bytes(x)

    add("c-version-future", "§4: version 2 with another layout", "refused", future(whole))
    add("c-version-future-root", "§4: version 2 with another layout", "refused", future(whole), whole_root)
    add("c-version-future-short", "§4: version 2; the file ends behind the version", "refused", future(whole)[:33])
    add("c-version-future-cut", "§4: the file ends before the version", "damaged", future(whole)[:32])
    add("s-version-future", "§4: version 2 with another layout", "refused", [future(x) for x in F(m=0)[0].values()])
    add("s-version-future-file", "§4: version 2 with another layout, one file", "refused", future(F(m=0)[0]["x.000.shard"]))
    add("s-version-future-magic-first", "§4: version 2, and only the first header stands where version 1 has it", "refused", [future(F(m=0)[0]["x.000.shard"]) + noise])
    rotten = bytearray(whole)
    rotten[192 + 32] = 3
    add("c-version-rotten", "§11: the version of the only record rotted; there are headers of version 1 whose CRC is right", "damaged", bytes(rotten))
    rotten_only = bytearray(C(m=0, index=False)[0])
    rotten_only[32] ^= 2
    add("c-version-beside-cut-record", "§11: version 2, and the beginning of a record of version 1 whose CRC nobody can tell", "refused", future(whole) + C()[0][:150])
    for stem, what in (("", [future(F(m=0)[0]["x.000.shard"])[:100]]), ("-file", future(F(m=0)[0]["x.000.shard"])[:100])):
        add("s-version-future-short" + stem, "§4: version 2; the file ends within the header", "refused", what)
    first, other = C(parts=two, keep=lambda g, s, i: g == 0), C(parts=((4096, 4096, 1), (20, 64, 1, dict(nr=2))), index=False, keep=lambda g, s, i: g == 1)
    add("c-group-of-other-root", "§9.2: with a root, a last group of another one is ignored, whatever is wrong with it", "damaged", first[0] + other[0], first[1])
    add("c-group-of-other-root-no-root", "§9.2: the same, and no root is given", "invalid", first[0] + other[0])
    add("c-version-rotten-alone", "§11: the version of the only header rotted", "refused", bytes(rotten_only))
    add("c-version-2-index-1", "§11: records of version 2 that are right, an index of version 1", "damaged", C(lie=dict(version=2), p=dict(version=1))[0])
    add("c-version-rotten-restored", "§11: the version of one record rotted, the others are enough", None, flipped(C()[0], 32), None, P50)
    files, root = F()
    a, b = files.values()
    rotten = {"x.000.shard": flipped(a, 32, len(a) - 160)}
    add("s-version-rotten-alone", "§11: the version in both headers of the only shard rotted", "refused", rotten)
    f2, _ = F(k=2, parts=((100, 64, 1),))
    a2, b2, c2 = f2.values()
    add("s-version-rotten", "§11: the version in both headers of a shard rotted, another shard is right", "damaged", {"a": flipped(a2, 32, len(a2) - 160), "b": b2})
    add("s-version-rotten-one-header", "§11: the version in one header rotted", None, {"a": flipped(a2, 32), "b": b2}, None, P100)

    # ---- several streams
    add("c-joined-with-itself", "§9.2: the same container twice is one stream", None, data + data, None, PM, verify=1)
    other, other_root = C(parts=(part(5000, 2),), payload=generate(5000, 9))
    PO = generate(5000, 9)
    add("c-joined", "§9.2: two containers joined", "ambiguous", data + other)
    add("c-joined-root-1", "§9.2: two containers joined, the root is given", None, data + other, root_of(data), PM)
    add("c-joined-root-2", "§9.2: two containers joined, the root is given", None, data + other, other_root, PO)
    add("c-joined-no-index", "§9.2: two containers joined, both without index", "ambiguous", data[:end] + other[:spots(other, MAGIC_X)[0]])
    add("c-joined-other-root", "§11: two containers joined, a third root is given", "wrong-root", data + other, hashlib.sha256(b"other").digest())
    add("c-joined-one-damaged", "§9.2: two containers joined, only one can be restored", None, data[:end] + other[:3000], None, PM)
    root = root_of(data)
    outer, outer_root = C(parts=(part(len(other), 1),), payload=other)
    end_o = spots(outer, MAGIC_X)[-3]
    second = 192 + part(len(other), 1)[1]
    add("c-nested", "§9.2: a container in a container", None, outer, None, other, verify=0)
    add("c-nested-root", "§9.2: a container in a container, the outer root is given", None, outer, outer_root, other, verify=0)
    add("c-nested-first-damaged", "§9.2: the outer record 0 is damaged, the inner container is seen: both can be restored", "ambiguous", flipped(outer, 8))
    add("c-nested-first-damaged-root", "§9.2: the same, the outer root is given", None, flipped(outer, 8), outer_root, other)
    add("c-nested-second-damaged", "§9.2: the outer record 1, a recovery shard equal to the original, is damaged", "ambiguous", flipped(outer, second + 8))
    add("c-nested-first-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end_o], 8))
    add("c-nested-second-damaged-no-index", "§9.2: the same without index", "ambiguous", flipped(outer[:end_o], second + 8))
    add("c-nested-first-damaged-inner-root", "§9.2: the inner root is given", None, flipped(outer, 8), other_root, PO)
    add("c-nested-inner-root", "§9.1: with a root given, records that do not belong to it hide nothing", None, outer, other_root, PO)
    add("c-nested-both-damaged-inner-root", "§9.2: only the inner container is left, and is asked for", None, flipped(outer, 8, second + 8), other_root, PO)
    groups_outer, groups_root = C(parts=((4096, 4096, 1),) * 2 + (part(len(other) - 2 * 4096, 1),), payload=other)
    add("c-nested-groups-root", "§9.1: several groups, the outer root is given", None, groups_outer, groups_root, other, verify=0)
    # a record of another encoding whose body is the beginning of the victim
    cover, _ = C(k=2, m=0, parts=((2 * 16384, 16384, 1),), payload=data[:16384] + bytes(16384), index=False, keep=lambda g, s, i: i == 0)
    add("c-wrapped", "§9.1: a record of another encoding hides the beginning; no root is given", "damaged", cover + data[16384:])
    add("c-wrapped-root", "§9.1: the same, with the victim's root: nothing is hidden", None, cover + data[16384:], root, PM)
    add("c-wrapped-no-index-root", "§9.1: the same, and the index is lost", None, cover + data[16384:end], root, PM)
    L = align(len(data), 64)
    cover, cover_root = C(k=2, m=0, parts=((2 * L, L, 1),), payload=data + bytes(2 * L - len(data)), keep=lambda g, s, i: i == 0)
    add("c-wrapped-whole", "§9.1: a record of another encoding hides all of it; no root is given", "damaged", cover)
    add("c-wrapped-whole-root", "§9.1: the same, with the victim's root", None, cover, root, PM)
    add("c-wrapped-whole-its-root", "§9.1: the same, with the root of the other encoding", "damaged", cover, cover_root)
    # an encoding of one record, k = 1, whose geometry speaks of 256: the next bytes lie where its other records would
    P64 = generate(64, 8)
    one, one_root = C(k=1, m=255, parts=((64, 64, 1),), payload=P64, index=False, keep=lambda g, s, i: i == 255)
    one_index = alone(k=1, m=255, parts=((64, 64, 1),), payload=P64)[0]
    for stem, what in (("appended", data + one), ("prepended", one + data), ("around", one + data + one + one_index), ("inside", data[:size] + one + data[size:])):
        add("c-one-record-" + stem, "§9.2: one record of another encoding can be restored: " + stem, "ambiguous", what)
        add("c-one-record-%s-root" % stem, "§9.2: the same, the root is given", None, what, root, PM)
        add("c-one-record-%s-its-root" % stem, "§9.2: the same, its own root is given", None, what, one_root, P64)
    forked, fork_root = C(k=2, parts=many, payload=PM[:16384] + bytes(1000))
    fork_end = spots(forked, MAGIC_X)[0]
    add("c-fork", "§9.2: two chains share their first groups", "ambiguous", data[:end] + forked)
    add("c-fork-root", "§9.2: the same, the root is given", None, data[:end] + forked, root, PM)
    add("c-fork-no-index", "§9.2: two last groups follow one group, no index", "ambiguous", data[:end] + forked[6 * size:fork_end])
    add("c-fork-cut", "§9.2: two last groups, one of which cannot be restored", None, data[:end] + forked[6 * size:6 * size + last], None, PM)
    add("c-index-claims-groups", "§9.2: a foreign index lists groups of a chain", None, data[:end] + forked[fork_end:], None, PM)
    meta_file, meta_root = C(k=2, parts=many, meta=entry(9, b"x"))
    add("c-meta", "§9: meta, several groups", None, meta_file, None, PM, verify=0)
    add("c-meta-root", "§9: the same, the root is given", None, meta_file, meta_root, PM, verify=0)

    # ---- the kind of a file
    (shard,), shard_root = [[list(x.values()), y] for x, y in [F(k=1, m=0, parts=(part(len(data), 1),), payload=data)]][0]
    add("c-magic-as-shard-file", "§9.3: one bit makes the first magic that of a shard file", None, data[:4] + b"S" + data[5:], None, PM)
    add("c-magic-as-shard-file-root", "§9.3: the same, the root is given", None, data[:4] + b"S" + data[5:], root, PM)
    add("c-behind-shard-magic", "§9.3: the magic of a shard file in front", None, MAGIC_S + data, root, PM)
    add("c-behind-shard-header", "§9.3: the header of a shard file in front", None, shard[:192] + data, None, PM)
    add("c-behind-shard-header-root", "§9.3: the same, the root is given", None, shard[:192] + data, root, PM)
    add("c-in-shard-file", "§9.3: proved shards are not scanned", None, shard, None, data, verify=0)
    add("c-in-shard-file-root", "§9.3: the same, the root is given", None, shard, shard_root, data)
    add("c-in-shard-file-inner-root", "§9.3: the root of the container inside is given", None, shard, root, PM)
    for stem, what in (("behind", shard + other), ("before", other + shard)):
        add("c-%s-shard-file" % stem, "§9.3: a shard file that can be restored alone, and a container", "ambiguous", what)
        add("c-%s-shard-file-root-1" % stem, "§9.3: the same, the root of the shard file is given", None, what, shard_root, data)
        add("c-%s-shard-file-root-2" % stem, "§9.3: the same, the root of the container is given", None, what, other_root, PO)
    files, _ = F(k=2, parts=(part(17000, 3, 2),))
    P17000 = generate(17000, 7)
    add("s-magic-as-record", "§9.3: one bit makes the first magic that of a record", None,
        {x: y[:4] + b"R" + y[5:] if x.endswith("0.shard") else y for x, y in files.items()}, None, P17000)
    add("s-and-container", "§9.3: among shard files a container is foreign", None, dict(files, c=other), None, P17000)
    add("s-folder-with-container", "§9.3: in a folder a container is foreign, also alone", "damaged", {"c": other})
    fake = MAGIC_R * 5 + C(lie=dict(version=2))[0] + C(rec=poke(0, 1))[0] + C(payload=P50[::-1])[0][:256] + MAGIC_S + MAGIC_X + MAGIC_M + annex(1, b"x")
    outer, _ = C(k=2, parts=(part(len(fake), 1, 2),), payload=fake)
    add("c-imitation", "§9.1: the payload imitates records", None, outer, None, fake)
    add("c-imitation-damaged", "§9.1: the payload imitates records, and its record is damaged", None, flipped(outer, 8), None, fake)
    # false headers with long bodies
    mib = 1 << 20

    def false(L):
        return put_crc(MAGIC_R + bytes(24) + pack(Geo(1, SHA256, CONTAINER, 1, 1, 0, L, 1, L, 0)) + bytes(64), bytes(64))

    for count in (10, 400):
        tail = bytes(mib) if count == 400 else b""
        add("c-false-headers-%d" % count, "§9.1: %d false headers in front%s; the root is given" % (count, ", whose bodies are there" if tail else ""), None,
            false(mib) * count + data + tail, root, PM)
    add("c-false-headers-10-no-root", "§9.1: 10 false headers in front", None, false(mib) * 10 + data, None, PM)
    add("c-false-headers-2100", "§9.1: more work than is allowed: the reader goes on behind what was hashed", None,
        false(mib // 2) * 2100 + bytes(mib // 2 + 64) + data, None, PM)

    # ---- annexes (§9.4)
    files, s_root = F(k=2, parts=((100, 64, 1),))
    a, b, c = files.values()
    inner = C(payload=P64, parts=((64, 64, 1),))
    several = annex(1, b"signature") + annex(1, b"") + annex(1 << 31, generate(70, 2)) + annex(77, MAGIC_R * 3)
    broken = bytearray(annex(9, b"some data"))
    broken[34] ^= 1
    for stem, rule, x, clean in (
            ("unknown", "of an unknown type", annex(77, b"data"), 0), ("empty", "without data", annex(2, b""), 0), ("several", "several", several, 0),
            ("broken", "broken: its CRC is wrong", bytes(broken), 1), ("heads-differ", "its two AH differ", annex(9, b"data")[:-1] + b"\1", 1),
            ("zero-bytes", "zero bytes of AH", annex(9, b"data", head=poke(31, 1)), 1), ("cut", "cut short", annex(9, b"data")[:-5], 1),
            ("broken-before-whole", "a whole one behind a broken one", bytes(broken) + annex(1, b"x"), 1),
            ("container", "with a container inside", annex(5, inner[0]), 0)):
        add("s-annex-" + stem, "§9.4: annexes behind shard files: " + rule, None, {"a": a + x, "b": b, "c": c + x}, None, P100, verify=clean)
        # An annex with a wrong CRC is damage; its equal AH tell where the file ends all the same.
        ends = not clean or stem.startswith("broken")
        add("s-annex-%s-k" % stem, "§9.4: annexes behind shard files: %s; k shards, the first headers are damaged" % rule, None if ends else "damaged",
            {"a": flipped(a + x, 40), "c": flipped(c + x, 40)}, None, P100 if ends else None)
        ambiguous = stem == "container"
        add("c-annex-" + stem, "§9.4: annexes behind a container: " + rule + ("; an annex hides nothing" if ambiguous else ""), "ambiguous" if ambiguous else None,
            whole + x, None, None if ambiguous else P50, **({} if ambiguous else dict(verify=clean)))
        add("c-annex-%s-root" % stem, "§9.4: the same, the root is given", None, whole + x, whole_root, P50, verify=clean)
    add("c-annex-container-its-root", "§9.4: the root of the container in the annex is given", None, whole + annex(5, inner[0]), inner[1], P64)
    add("c-annex-in-front", "§9.4: an annex in front of a container", None, several + whole, None, P50)
    single = F(m=0)[0]["x.000.shard"]
    # The payload begins with AH of an annex that reaches to the end of the file, and somebody appends the other one.
    size_of = lambda file: len(file) - file.index(MAGIC_A) - 32
    lie = lambda size: annex(9, b"", size=size)[:32]
    probe = list(F(k=1, m=1, parts=((64, 64, 1),), payload=lie(0) + P50[:32])[0].values())[0]
    ah = lie(size_of(probe))
    hidden, hidden_root = F(k=1, m=1, parts=((64, 64, 1),), payload=ah + P50[:32])
    add("s-annex-over-the-end", "§9.4: an annex hides no byte: its AH is in the body", None, {"a": list(hidden.values())[0] + ah}, hidden_root, ah + P50[:32], verify=1)
    add("s-annex-file", "§9.4: one shard file with annexes", None, single + several, None, P50, verify=0)
    add("s-annex-file-container", "§9.4, §9.3: one shard file with a container in an annex", "ambiguous", single + annex(5, inner[0]))
    add("s-annex-file-container-root", "§9.4, §9.3: the same, the root of the shard file is given", None, single + annex(5, inner[0]), F(m=0)[1], P50)
    add("s-annex-file-container-its-root", "§9.4, §9.3: the same, the root of the container is given", None, single + annex(5, inner[0]), inner[1], P64)
    add("c-annex-too-long", "§9.4: an annex of more than 2^20 bytes is bytes like any other", None, whole + annex(3, bytes(mib + 1)), None, P50, verify=1)

    # ---- shard folders
    P17 = P17000
    files, root = F(k=2, parts=(part(17000, 3, 2),))
    a, b, c = list(files.values())
    L, proof = part(17000, 3, 2)[1], 32 * (1 + 1 + 2)
    pre, size = 256, 3 * proof                              # (H and the meta; the proofs)
    body = pre + size
    post = body + 3 * L                                     # (where the second proofs begin)
    assert len(a) == post + size + 256 and body % 64 == 0
    add("s-k-1", "§10: k − 1 shards", "damaged", [a])
    add("s-k", "§10: k shards", None, {"q": b, "r": c}, None, P17)
    add("s-file-names", "§8: a file's name says nothing", None, {"x.000.shard": c, "x.001.shard": a, "x.002.shard": b}, None, P17, verify=0)
    add("s-wrong-root", "§11: another root is asked for", "wrong-root", [a, b], hashlib.sha256(b"other").digest())
    add("s-root", "§11: the root is given", None, [a, b], root, P17)
    def stating(file, meta_len):                            # (in both its headers, with right CRCs)
        header = put_crc(file[:20] + meta_len.to_bytes(4, "little") + file[24:192])
        return header + file[192:-192] + header

    for meta_len in (0, 200):
        stem, forged = str(meta_len), {"a": stating(a, meta_len), "b": b, "c": c}
        add("s-meta-length-forged-" + stem, "§8: R does not bind the length of the meta: a false one costs its own file", None, forged, None, P17)
        add("s-meta-length-forged-%s-root" % stem, "§8: the same, the root is given", None, forged, root, P17)
    second, second_root = F(k=2, parts=(part(17000, 3, 2),), h=BLAKE3)
    both = dict({"a" + x: y for x, y in list(files.items())[:2]}, **{"b" + x: y for x, y in list(second.items())[1:]})
    add("s-two-encodings", "§11: two roots could be restored", "ambiguous", both)
    add("s-two-encodings-root-1", "§11: two encodings, the root is given", None, both, root, P17)
    add("s-two-encodings-root-2", "§11: two encodings, the root is given", None, both, second_root, P17)
    add("s-two-encodings-one-whole", "§11: two encodings, one of which could be restored", None, [a, b, list(second.values())[0]], None, P17)
    add("s-two-encodings-other-root", "§11: two encodings, only one has enough shards, the other is asked for", "damaged", [a, b, list(second.values())[0]], second_root)
    hurt = flipped(a, body + 4, body + L + 10)
    add("s-copy-bad-first", "§10.1: a valid copy beats an invalid one", None, {"a": hurt, "b": a, "c": b}, None, P17)
    add("s-copy-bad-last", "§10.1: a valid copy beats an invalid one", None, {"a": a, "b": b, "c": hurt}, None, P17)
    add("s-copies-each-half", "§10.1: two damaged copies of a shard make one whole", None, {"a": flipped(a, body + 4), "b": flipped(a, body + L + 10), "c": b}, None, P17)
    add("s-body-damaged", "§10: k shards, one body byte differs", "damaged", [flipped(a, body + 4), b])
    add("s-body-damaged-k-1-sets", "§10: k + 1 shards, each lacks another set", None, [flipped(a, body + 4), flipped(b, body + L), flipped(c, body + 2 * L)], None, P17, verify=1)
    add("s-header-first-damaged", "§8: the first header is damaged", None, [flipped(a, 40), b], None, P17)
    add("s-header-last-damaged", "§8: the last header is damaged", None, [a, flipped(b, len(b) - 100)], None, P17)
    add("s-header-mixed", "§8: one header's version is 2, the other is good", None, [put_crc(a[:32] + b"\2" + a[33:192]) + a[192:], b], None, P17)
    add("s-headers-differ", "§8: two good headers that differ: each counts for itself", None, [a, b[:-192] + list(second.values())[1][-192:]], root, P17)
    add("s-proofs-first-damaged", "§8: the first proofs are damaged", None, [flipped(a, *[pre + 8 + proof * s for s in range(3)]), b], None, P17)
    add("s-proofs-second-damaged", "§8: the second proofs are damaged", None, [a, flipped(b, *[post + proof * s for s in range(3)])], None, P17)
    add("s-proofs-one-copy-each", "§8: one proof of each copy is damaged", None, [flipped(a, pre + 8, post + proof + 2), b], None, P17)
    add("s-proofs-both-damaged", "§8: both copies of one proof are damaged", "damaged", [flipped(a, pre + 8, post + 8), b])
    new = generate(10, 5)
    for stem, rule, at, cut, extra in (
            ("inserted-between-sets", "10 bytes inserted between two sets", body + L, 0, new), ("inserted-in-meta", "10 bytes inserted into the first meta", 200, 0, new),
            ("inserted-in-first-proofs", "10 bytes inserted into the first proofs", pre + 100, 0, new), ("inserted-in-second-proofs", "10 bytes inserted into the second proofs", post + 100, 0, new),
            ("inserted-first", "10 bytes inserted before the file", 0, 0, new), ("appended", "10 bytes appended", len(a), 0, new),
            ("inserted-in-header", "10 bytes inserted into the first header", 100, 0, new), ("deleted-in-meta", "33 bytes deleted from the first meta", 200, 33, b""),
            ("deleted-header-first", "the first header is gone", 0, 192, b""), ("deleted-header-last", "the last header is gone", len(a) - 192, 192, b""),
            ("deleted-proofs-first", "the first proofs are gone", pre, size, b""), ("deleted-to-body", "all before the body is gone", 0, body, b""),
            ("cut-after-body", "all behind the body is gone", post, 99999, b"")):
        add("s-" + stem, "§8: k shards; " + rule, None, [a[:at] + extra + a[at + cut:], b], None, P17, verify=1)
    for stem, rule, at, cut, extra in (("inserted-in-set", "10 bytes inserted into set 1", body + L + 10, 0, new), ("deleted-in-set", "5 bytes deleted from set 1", body + L + 10, 5, b""),
                                       ("deleted-set", "the whole of set 1 deleted", body + L, L, b"")):
        changed = a[:at] + extra + a[at + cut:]
        add("s-" + stem + "-k", "§8: k shards; " + rule, "damaged", [changed, b])
        add("s-" + stem, "§8: k + 1 shards; " + rule + "; the other sets are usable", None, [changed, b, flipped(c, body + 4, body + 2 * L + 48)], None, P17)
