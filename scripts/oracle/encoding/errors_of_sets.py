"""Vectors of errors in sets, proofs and headers."""
import hashlib

from ..basics import BLAKE3, MAGIC_R, SHA256, flipped, generate
from ..hashes import digest
from .forge import C, F, NAMED, P50, alone, part, poke, poke_head, spots
from .geometry import unpack
from .meta import entry
from .trees import group_root


def rules_of_sets(add):
    """Geometry, padding, codewords, proofs, indices and headers (§4 to §6, §8, §9)"""
    name = NAMED
    # ---- §4.1, rules 1 and 2, and the rules that a lie can break
    for stem, rule, lie in (
            ("version-2", "1: version is not 1", dict(version=2)), ("version-0", "1: version is not 1", dict(version=0)),
            ("hash-0", "1: hash is not 1 or 2", dict(hash=0)), ("hash-3", "1: hash is not 1 or 2", dict(hash=3)),
            ("form-0", "1: form is not 1 or 2", dict(form=0)), ("form-3", "1: form is not 1 or 2 (3 is reserved)", dict(form=3)),
            ("k-0", "2: k = 0", dict(k=0)), ("k-0-m-0", "2: k = 0 and m = 0", dict(k=0, m=0)), ("n-257", "2: k + m > 256", dict(m=256)),
            ("n-65536", "2: k + m > 256, more than 16 bits", dict(k=1, m=65535)),
            ("shard-len-over-limit", "2: L > 2^26", dict(L=(1 << 26) + 64)), ("payload-2-63", "2: payload bytes ≥ 2^63", dict(payload=1 << 63)),
            ("payload-2-64", "2: payload bytes ≥ 2^63 (2^64 − 1)", dict(payload=(1 << 64) - 1)),
            ("group-number-over-limit", "2: g ≥ 2^32 − 1", dict(nr=(1 << 32) - 1)), ("group-number-2-63", "2: g ≥ 2^32 − 1", dict(nr=1 << 63)),
            ("huge-product", "2: k·G·L beyond 64 bits", dict(k=65535, m=65535, L=(1 << 32) - 64, G=(1 << 32) - 1))):
        if stem not in ("version-0", "form-0", "n-65536", "payload-2-64"):
            add("s-" + stem, "§4.1 rule " + rule, "refused", F(only=[0], lie=lie)[0])
        add("c-" + stem, "§4.1 rule " + rule, "refused", C(lie=lie)[0])
    add("s-form-2", "§8: form MUST be 1", "refused", F(only=[0], lie=dict(form=2))[0])
    add("c-form-1", "§9: form MUST be 2", "refused", C(lie=dict(form=1))[0])
    for bit in (1, 2, 3):
        add("s-flag-bit%d" % bit, "§4.1 rule 1: a critical flag is set", "refused", F(only=[0], lie=dict(flags=1 | 1 << bit))[0])
        add("c-flag-bit%d" % bit, "§4.1 rule 1: a critical flag is set", "refused", C(lie=dict(flags=1 | 1 << bit))[0])
    for bit in (4, 5, 7):
        stem = "sealed" if bit == 4 else "flag-bit%d" % bit
        add("s-" + stem, "§4: an ignorable flag is set", None, F(lie=dict(flags=1 | 1 << bit))[0], None, P50, verify=0)
        add("c-" + stem, "§4: an ignorable flag is set, in P and in Pg", None, C(lie=dict(flags=1 | 1 << bit), meta=name)[0], None, P50, verify=0, file_name="a")
    add("c-flag-in-P-only", "§4: an ignorable flag is set in P and not in Pg: the index does not lead to R", None, C(p=dict(flags=32), meta=name, frame=False)[0], None, P50, meta_lost=True)
    add("c-flag-in-Pg-only", "§4: an ignorable flag is set in Pg and not in P", None, C(lie=dict(flags=33), p=dict(flags=0), meta=name, frame=False)[0], None, P50, meta_lost=True)
    data, root = C(p=dict(flags=4))
    add("c-flag-critical-in-P", "§4.1 rule 1: a critical flag is set in P alone (the index is refused, and costs no payload)", None, data, root, P50)
    add("c-flag-critical-in-P-alone", "§4.1 rule 1: a critical flag is set in P; nothing else is there", "refused", alone(p=dict(flags=4))[0])
    data, root = C(p=dict(flags=1))
    add("c-flag-last-in-P", "§4.1 rule 1: bit 0 is set in P (the index is refused, and costs no payload)", None, data, root, P50)
    add("c-flag-last-in-P-no-root", "§4.1 rule 1: bit 0 is set in P; losing the index costs no payload", None, data, None, P50)
    add("c-flag-last-in-P-alone", "§4.1 rule 1: bit 0 is set in P; nothing else is there", "refused", alone(p=dict(flags=1))[0])
    add("c-groups-over-limit", "§4.1 rule 2: N ≥ 2^32 (index)", "refused", alone(p=dict(nr=1 << 32, payload=4096 << 32, L=4096))[0])
    add("c-group-number-largest", "§4.1 rule 2: g = 2^32 − 2 is allowed; the groups before it are not there", "damaged", C(lie=dict(nr=(1 << 32) - 2))[0])

    # ---- rule 3
    add("s-shard-len-0", "§4.1 rule 3: L = 0", "invalid", F(only=[0], parts=((0, 0, 1),))[0])
    add("c-shard-len-0", "§4.1 rule 3: L = 0", "invalid", C(parts=((0, 0, 1),))[0])
    add("s-shard-len-96", "§4.1 rule 3: L mod 64 ≠ 0", "invalid", F(only=[0], parts=((90, 96, 1),))[0])
    add("c-shard-len-96", "§4.1 rule 3: L mod 64 ≠ 0", "invalid", C(parts=((90, 96, 1),))[0])
    add("s-sets-0", "§4.1 rule 3: G = 0", "invalid", F(only=[0], parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("c-sets-0", "§4.1 rule 3: G = 0", "invalid", C(parts=((0, 64, 1),), lie=dict(G=0))[0])
    add("c-groups-0", "§4.1 rule 3: N = 0 (index)", "invalid", alone(p=dict(nr=0))[0])
    data, root = C(p=dict(nr=0))
    add("c-groups-0-root", "§4.1 rule 3: N = 0 (index); losing it costs no payload", None, data, root, P50)
    add("s-group-1", "§4.1: shard files have one group: g = 1", "invalid", F(only=[0], lie=dict(nr=1))[0])
    add("s-flag-not-last", "§4.1: shard files have one group: no last flag", "invalid", F(only=[0], parts=((4096, 4096, 1),), lie=dict(flags=0))[0])

    # ---- rule 4
    for stem, rule, x in (("shard-len-large", "L is larger than canonical", (50, 128, 1)), ("shard-len-small", "L is smaller than canonical", (100, 64, 1)),
                          ("sets-above-bound", "G > ⌈b / (4096·k)⌉", (4096, 2048, 2)), ("empty-two-sets", "b = 0 has G = 1", (0, 64, 2)),
                          ("empty-shard-len-128", "b = 0 has L = 64", (0, 128, 1))):
        if x[0]:
            add("s-" + stem, "§4.1 rule 4: " + rule, "invalid", F(only=[0], parts=(x,))[0])
        add("c-" + stem, "§4.1 rule 4: " + rule, "invalid", C(parts=(x,))[0])
    P4097 = generate(4097, 7)
    add("s-sets-at-bound", "§4.1 rule 4: two sets from 4096·k + 1 bytes on", None, F(parts=(part(4097, 2),), only=[1])[0], None, P4097)
    add("c-sets-at-bound", "§4.1 rule 4: two sets from 4096·k + 1 bytes on", None, C(parts=(part(4097, 2),))[0], None, P4097)
    lie = dict(payload=(1 << 63) - 1, k=256, m=0, L=1 << 26, G=(1 << 32) - 1)
    add("s-payload-2-63-less-1", "§4.1 rule 4 on the largest payload", "invalid", F(only=[0], lie=lie)[0])
    lie = dict(payload=((1 << 32) - 1) << 25, L=1 << 25, G=(1 << 32) - 1)
    add("s-huge-but-canonical", "§4.1: 2^32 − 1 sets; its body is not there", "damaged", F(only=[0], lie=lie)[0])
    add("c-huge-but-canonical", "§4.1: 2^32 − 1 sets; its bodies are not there", "damaged", C(lie=lie)[0])

    # ---- rules 5, 6, 7, §4.2 and §9.2
    two = ((4096, 4096, 1), (20, 64, 1))
    P4116 = generate(4116, 7)
    add("c-payload-too-large-for-groups", "§9.2, §4.1 rule 5: the last group is larger than the others", "invalid", C(parts=((4096, 4096, 1), (5000, 5056, 1)))[0])
    for stem, size in (("too-small", 4096), ("too-large", 8193)):
        data, root = C(parts=two, p=dict(payload=size))
        add("c-index-payload-%s-for-groups" % stem, "§4.1 rule 5, in the index: the records are enough", None, data, root, P4116)
        add("c-index-payload-%s-for-groups-no-root" % stem, "§4.1 rule 5, in the index: the records are enough", None, data, None, P4116)
        add("c-index-payload-%s-for-groups-alone" % stem, "§4.1 rule 5, in the index", "invalid", alone(parts=two, p=dict(payload=size))[0])
    add("c-index-shard-len-small", "§4.1 rule 5: L of P is below 4096", "invalid", alone(parts=((4032, 4032, 1), (20, 64, 1)))[0])
    add("c-index-payload-differs", "§9: P has another number of payload bytes: the index does not lead to R", None, C(parts=two, p=dict(payload=4117), meta=name, frame=False)[0], None, P4116,
        meta_lost=True)
    for stem, rule, x in (("not-full", "§4.1 rule 6: a group before the last is not full", (4095, 4096, 1)),
                          ("shard-len-small", "§4.1 rule 6: L of a group before the last is below 4096", (4032, 4032, 1)),
                          ("shard-len-4104", "§4.1 rule 3: L mod 64 ≠ 0 in a group before the last", (4104, 4104, 1))):
        add("c-group-" + stem, rule, "invalid", C(parts=(x, (20, 64, 1)))[0])
        add("c-group-%s-alone" % stem, rule + "; the last group is lost", "invalid", C(parts=(x, (20, 64, 1)), index=False, keep=lambda g, s, i: g == 0)[0])
    for stem, rule, parts in (("empty", "b = 0", ((4096, 4096, 1), (0, 64, 1))), ("shard-len-large", "L is larger", ((4096, 4096, 1), (20, 128, 1))),
                              ("shard-len-small", "L is smaller", ((4096, 4096, 1), (100, 64, 1))), ("sets-above-bound", "G > ⌈b / (4096·k)⌉", ((8192, 4096, 2), (4096, 2048, 2)))):
        add("c-last-group-" + stem, "§4.1 rule 7: " + rule, "invalid", C(parts=parts)[0])
        add("c-last-group-%s-alone" % stem, "§4.1 rule 7: %s; the group before is lost" % rule, "invalid", C(parts=parts, index=False, keep=lambda g, s, i: g)[0])
    for index in (True, False):
        tail = "" if index else "-no-index"
        for stem, rule, parts in (("sets", "G of the last group (L and G obey rule 7)", ((16384, 8192, 2), part(9000, 1))),
                                  ("middle", "L and G of a middle group (obey rule 6)", ((8192, 4096, 2), (8192, 8192, 1), (30, 64, 1))),
                                  ("middle-smaller", "payload of a middle group", ((8192, 4096, 2), (4096, 4096, 1), (30, 64, 1))),
                                  ("middle-shape", "k and m of the groups behind the first", ((4096, 4096, 1), (8192, 4096, 1, dict(k=2, m=0)), (100, 64, 1, dict(k=2, m=0)))),
                                  ("middle-flags", "ignorable flags of the groups behind the first",
                                   ((4096, 4096, 1, dict(flags=16)), (4096, 4096, 1, dict(flags=32)), (20, 64, 1, dict(flags=33)))),
                                  ("shape", "k and m of the last group", ((8192, 4096, 2), (100, 64, 1, dict(k=2, m=0)))),
                                  ("flags", "ignorable flags of the last group", ((4096, 4096, 1, dict(flags=16)), (20, 64, 1, dict(flags=33)))),
                                  ("number", "the last group has number 2, there is none with number 1", ((4096, 4096, 1), (20, 64, 1, dict(nr=2)))),
                                  ("after-last", "a group follows one that has the last flag", ((4096, 4096, 1, dict(flags=1)), (20, 64, 1)))):
            if stem != "after-last":
                add("c-group-differs-" + stem + tail, "§9.2: " + rule, "invalid", C(parts=parts, index=index)[0])
            elif not index:
                add("c-group-after-last", "§9.2: " + rule + ": only the first chain can be restored", None, C(parts=parts, index=False)[0], None, P4116[:4096])
        add("c-group-hash-differs" + tail, "§9.2: the hash of the last group", "invalid",
            C(parts=((4096, 4096, 1), (20, 64, 1, dict(hash=BLAKE3))), index=index)[0])

    # ---- §5 padding, §10 codeword
    dirty = generate(70, 7) + bytes(57) + b"\1"
    add("s-padding", "§5: a byte past the end is not zero", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 1])[0])
    add("s-padding-from-recovery", "§5: a byte past the end is not zero; its shard is gone", "invalid", F(k=2, parts=((70, 64, 1),), pieces=[dirty], only=[0, 2])[0])
    add("c-padding", "§5: a byte past the end is not zero", "invalid", C(k=2, parts=((70, 64, 1),), pieces=[dirty])[0])
    add("c-padding-first-byte", "§5: the first byte past the end is not zero", "invalid", C(pieces=[P50 + b"\1"])[0])
    add("c-padding-empty", "§5: payload of 0 bytes, padding not zero", "invalid", C(parts=((0, 64, 1),), pieces=[b"\0\1"])[0])
    add("c-padding-last-group", "§5: padding of the second group", "invalid", C(parts=two, pieces=[bytes(4096), bytes(20) + b"\1"])[0])

    def wrong(*places):
        """shards (i, s) do not belong to the others"""
        def change(shards):
            for i, s in places:
                shards[i][s] = flipped(shards[i][s], 5)
        return change

    P9000 = generate(9000, 7)
    two_sets = part(9000, 2, 2)
    three = ((8192, 4096, 1), (8192, 4096, 1), part(1000, 1, 2))
    for stem, place, payload in (("recovery", (2, 0), P9000), ("original", (0, 0), flipped(P9000, 5)), ("second-set", (2, 1), P9000)):
        o = dict(k=2, parts=(two_sets,), alter=wrong(place))
        add("s-not-a-codeword-" + stem, "§10.2: valid tree over what is not a codeword, all originals are there", None, F(**o)[0], None, payload)
        add("s-not-a-codeword-%s-strict" % stem, "§10.5: the same, strictly", "invalid", F(**o)[0], strict=True)
        add("c-not-a-codeword-" + stem, "§10.2: valid tree over what is not a codeword, all originals are there", None, C(**o)[0], None, payload)
        add("c-not-a-codeword-%s-strict" % stem, "§10.5: the same, strictly", "invalid", C(**o)[0], strict=True)
        add("c-not-a-codeword-%s-lost" % stem, "§10.3: the same, an original is lost", "invalid", C(keep=lambda g, s, i: i != 1, **o)[0])
    lost = C(k=2, m=2, parts=three, alter=wrong((3, 0)), keep=lambda g, s, i: g != 1 or i == 0)[0]
    add("c-not-a-codeword-and-lost", "§11: a group is lost, and a recovery shard of others is wrong", "damaged", lost)
    add("c-not-a-codeword-and-lost-strict", "§11: the same, strictly: invalid goes before damaged", "invalid", lost, strict=True)
    P100 = generate(100, 7)
    for only in ([0, 1], [0, 2], [1, 2]):
        bad = 2 in only
        add("s-not-a-codeword-k-shards-%d%d" % tuple(only), "§10.3: a wrong recovery shard" if bad else "§10.2: the wrong recovery shard is not there", "invalid" if bad else None,
            F(k=2, parts=((100, 64, 1),), alter=wrong((2, 0)), only=only)[0], None, None if bad else P100)
    add("s-not-a-codeword-absent-strict", "§10.5: the wrong recovery shard is not there, but SR speaks of it", "invalid",
        F(k=2, parts=((100, 64, 1),), alter=wrong((2, 0)), only=[0, 1])[0], strict=True)
    for stem, m, places, only, ok in (
            ("other-choice", 2, [2], [0, 2, 3], True), ("other-choice-2", 2, [2], [1, 2, 3], True), ("first-is-right", 2, [3], [0, 2, 3], True), ("too-few", 2, [2], [0, 2], False),
            ("both-originals-lost", 4, [3], [2, 3, 4, 5], True), ("cyclic", 3, [3], [2, 3, 4], True), ("both-originals-lost-too-few", 4, [3], [2, 3], False), ("nothing-fits", 4, [2, 3, 4, 5], [0, 2, 3, 4, 5], False)):
        o = dict(k=2, m=m, parts=((100, 64, 1),), alter=wrong(*[(i, 0) for i in places]))
        rule = "§10.3: recovery shards %s are wrong, the shards %s are there" % (places, only)
        add("s-cheat-" + stem, rule, None if ok else "invalid", F(only=only, **o)[0], None, P100 if ok else None)
        add("c-cheat-" + stem, rule, None if ok else "invalid", C(keep=lambda g, s, i: i in only, **o)[0], None, P100 if ok else None)
        if ok:
            add("c-cheat-%s-strict" % stem, rule + "; strictly", "invalid", C(keep=lambda g, s, i: i in only, **o)[0], strict=True)
    o = dict(k=3, m=40, parts=((150, 64, 1),), alter=wrong(*[(i, 0) for i in range(3, 43) if i != 27]))
    P150 = generate(150, 7)
    add("c-cheat-many", "§10.3: of 40 recovery shards all but one are wrong, two originals are lost", "invalid", C(keep=lambda g, s, i: i >= 2, **o)[0])
    o["alter"] = wrong(*[(i, 0) for i in range(3, 43) if i not in (40, 41)])
    add("c-cheat-choice-15", "§10.3: of 40 recovery shards only c_37 and c_38 are right, two originals are lost: choice t = 15", None,
        C(keep=lambda g, s, i: i >= 2, **o)[0], None, P150)
    strict_meta = name + entry(3, hashlib.sha256(P50).digest())
    for stem, rule, meta, bad in (("right", "the payload's SHA-256 in the meta", strict_meta, False), ("sha256-wrong", "the SHA-256 in the meta is another's", name + entry(3, bytes(32)), True),
                                  ("blake3-right", "both digests in the meta", strict_meta + entry(5, digest(BLAKE3, P50)), False),
                                  ("blake3-wrong", "the BLAKE3 in the meta is another's", strict_meta + entry(5, bytes(32)), True)):
        for form, what in (("s", F(meta=meta)[0]), ("c", C(meta=meta)[0])):
            add("%s-digest-%s" % (form, stem), "§7: " + rule, None, what, None, P50, file_name="a")
            add("%s-digest-%s-strict" % (form, stem), "§7: " + rule + "; strictly", "invalid" if bad else None, what, None, None if bad else P50, strict=True)

    # ---- §6.1 proofs
    add("s-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        F(k=2, parts=((100, 64, 1),), only=[1, 2], prf=lambda s, i, proof: i == 2 and poke(63, 1)(proof))[0])
    add("c-set-path-rest", "§6.1: the unused rest of the set path is not zero", "damaged",
        C(k=2, parts=((100, 64, 1),), keep=lambda g, s, i: i > 0, rec=lambda g, s, i, head, proof: i == 2 and poke(32, 1)(proof))[0])
    three = (part(9000, 3),)
    add("s-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        F(parts=three, prf=lambda s, i, proof: s == 2 and poke(95, 1)(proof))[0])
    add("c-group-path-rest", "§6.1: the unused rest of the group path is not zero", "damaged",
        C(parts=three, rec=lambda g, s, i, head, proof: s == 2 and poke(64, 1)(proof))[0])

    def swap(*args):
        args[-1][:64] = args[-1][32:64] + args[-1][:32]

    add("s-paths-swapped", "§6.1: set path and group path are swapped", "damaged", F(parts=(part(5000, 2),), prf=swap)[0])
    add("c-paths-swapped", "§6.1: set path and group path are swapped", "damaged", C(parts=(part(5000, 2),), rec=swap)[0])
    add("s-other-tree-first", "§6.1: the other tree stands before the siblings", "damaged", F(k=2, parts=((100, 64, 1),), prf=swap)[0])
    add("s-path-wrong", "§8: the proof leads elsewhere", "damaged", F(prf=poke(0, 1))[0])
    add("c-path-wrong", "§9: the proof leads elsewhere", "damaged", C(rec=poke(0, 1))[0])
    add("c-gr-wrong", "§9: the record does not lead to the GR it states", "damaged", C(rec=poke_head(64, 1))[0])

    # ---- indices
    add("s-index-too-large", "§8: i ≥ n", "invalid", F(hdr=poke(16, 2))[0])
    add("s-index-wrong", "§8: another i than the leaf has", "damaged", F(k=3, m=1, parts=((150, 64, 1),), hdr=poke(16, 1))[0])
    add("c-index-too-large", "§9: i ≥ n", "invalid", C(rec=poke_head(20, 2))[0])
    add("c-index-wrong", "§9: another i than the leaf has", "damaged", C(rec=poke_head(20, 1))[0])
    add("c-set-too-large", "§9: s ≥ G", "invalid", C(rec=poke_head(16, 1))[0])
    add("c-set-wrong", "§9: another s than the leaf has", "damaged", C(parts=(part(5000, 2),), rec=poke_head(16, 1))[0])

    # ---- zero bytes
    for at in (12, 15, 160, 191):
        add("s-zero-bytes-%d" % at, "§8: zero bytes of H", "damaged", F(only=[0], hdr=poke(at, 1))[0])
    add("s-zero-bytes-gap", "§8: zeros before the body are not zero: no record is lost by it", None, F(k=1, m=0, gap=poke(-1, 1))[0], None, P50, verify=1)
    for at in (12, 15, 24, 31):
        add("c-zero-bytes-record-%d" % at, "§9: zero bytes of a record", "damaged", C(rec=poke_head(at, 1))[0])
    add("c-zero-bytes-record-proof", "§9: the padding of the proof is not zero", "damaged", C(rec=poke(63, 1))[0])

    # ---- the group that a group names as the one before
    wrong_head = dict(parts=two, rec=lambda g, s, i, head, proof: g == 1 and poke(96, 1)(head))
    add("c-head-wrong-no-index", "§9: another H than GR binds, no index", "damaged", C(index=False, **wrong_head)[0])
    add("c-head-wrong-with-index", "§9: another H than GR binds", "damaged", C(**wrong_head)[0])
    add("c-head-wrong-in-one-record", "§9: one record of group 1 has a wrong H, no index", None,
        C(parts=two, index=False, rec=lambda g, s, i, head, proof: (g, i) == (1, 0) and poke(96, 1)(head))[0], None, P4116)
    add("c-head-of-group-0", "§9: another M than GR binds", "damaged", C(rec=poke_head(96, 1))[0])

    # ---- CRC, equations of the shard file's header
    files, root = F(only=[0])
    add("s-crc", "§8: the CRC of both header copies is wrong", "damaged", {x: flipped(y, 8, len(y) - 184) for x, y in files.items()})
    add("s-magic", "§8: the magic of both header copies is wrong", "damaged", {x: flipped(y, 0, len(y) - 192) for x, y in files.items()})
    data, root = C()
    add("c-crc", "§9: the CRC of every record is wrong", "damaged", flipped(data, *[at + 8 for at in spots(data, MAGIC_R)]), root)
    add("c-crc-covers-proof", "§9: a byte of every proof's padding differs: the CRC is wrong", "damaged", flipped(data, *[at + 191 for at in spots(data, MAGIC_R)]))
    add("s-body-length", "§8: body length ≠ G·L", "damaged", F(only=[0], hdr=poke(24, 128))[0])
    add("s-R", "§8: R does not follow", "damaged", F(only=[0], hdr=poke(64, 1))[0])

    def resign(at):
        def change(i, head):
            head[at] ^= 1
            head[64:96] = group_root(SHA256, unpack(head[32:64]), bytes(head[96:128]), bytes(head[128:160]))
        return change

    add("s-M", "§8: both copies of the meta are not what M says (R follows from it): the records lead elsewhere only in R", None, F(only=[0], hdr=resign(128))[0], None, P50, meta_lost=True)
    add("s-X", "§8: the records do not lead to X (R follows from it)", "damaged", F(only=[0], hdr=resign(96))[0])
