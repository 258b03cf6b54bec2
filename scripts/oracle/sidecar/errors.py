"""Vectors of sidecars that break a rule."""
import hashlib
import struct
from fractions import Fraction

from ..basics import BLAKE3, align, flipped, generate
from ..encoding.geometry import LAST, Geo, pack
from ..encoding.trees import proof_size
from ..encoding.writer import padded, put_crc
from ..gf import evaluate
from ..hashes import digest
from .group import WIDE
from .parts import (
    EXCLUSION, FILE, FOLDER, GONE, HARDLINK, HEADER, LAYOUT, MAGIC_P, MARKS, NOTHING, OMITTED, POLICY, SIDECAR, STACKS, SYMLINK,
    WITH_SHA256, WITH_ZEROS, Rec, anchor, file_fields, part, piece_place, plain_digests, step, texts, varint,
    write_entries,
)
from .protected import SMALL, even, file, in_hex, items_of, zeroed
from .writer import Draft, Item, difference, path_limit, seal

# block 1024, three anchors: of a at 0 and at 65,536, of b at 0
TALL = [file(b"a", 70000), file(b"b", 3000), file(b"c", 1024)]
RUNS = [file(b"a", 150000)]
HOLLOW = [file(b"a", 0)]                                # a single position, of nothing: k = 1, m = 1, G = 1
# recovery shards that a reader finds elsewhere
MOVED = {"cut-first": 2, "inserted-first": 2, "inserted-in-piece": 1, "inserted-in-block": 1, "extent-end-2-62-1": 2, "moved-one-piece": 2, "moved-header-only": 1, "moved-copies-first": 1}
A, B_, BC, D_, E_ = range(5)                            # the entries of SMALL


# SMALL: block 1024, positions 0 and 1 are b/c, a (100 bytes) is packed in 2 and the rest of b/c (952 bytes) in 3;
# k = 4, m = 2, G = 1


def error_cases():
    """(name, rule, class, bytes, root or None, {more})"""
    out = []
    a, c = generate(100, 101), generate(3000, 3001)

    def add(name, rule, cls, data, root=None, choice=False, **more):
        out.append((name, rule, cls, data, root, dict(more, choice=True) if choice else more))

    def draft(change=None, tree=SMALL):
        d = Draft(items_of(in_hex(tree)), Fraction(1, 2))
        if change:
            change(d)
        return d

    def bad(name, rule, cls, change=None, tree=SMALL, choice=False, **options):
        """Adds a sidecar of SMALL that breaks one rule; change: a hook on the draft"""
        add(name, rule, cls, seal(draft(change, tree), **options)[0], None, choice)

    def put(**fields):
        return lambda d: d.__dict__.update(fields)

    def lie(**fields):
        return lambda d: d.lie.update(fields)

    def poke_at(at, value=1):
        return lambda d: d.pokes.append((at, value))

    def group(**fields):
        def change(d):
            d.groups[0] = [fields.get(name, old) for name, old in zip(("k", "m", "G", "extent", "first"), d.groups[0])]
        return change

    def extent(**fields):
        def change(d):
            d.extents[-1] = [fields.get(name, old) for name, old in zip(("start", "blocks", "pieces", "bytes"), d.extents[-1])]
        return change

    def fields(number, data):
        return lambda d: d.replace(number, data)

    def recs(change):
        """change gets the list of entries"""
        return lambda d: change(d.recs)

    def more(*added, size=0, anchors=()):
        def change(d):
            d.anchors += anchors
            for rec in added:
                d.add(rec, 0)
            d.total += size
        return change

    def both(*changes):
        def change(d):
            for x in changes:
                x(d)
        return change

    # ---- §17.2, the head of the catalog
    bad("catalog-version-0", "§17.2: version is not 1", "refused", put(version=0))
    bad("catalog-version-2", "§17.2: version is not 1", "refused", put(version=2))
    bad("catalog-features", "§17.2: features that are not known", "refused", put(features=8))
    bad("catalog-features-high", "§17.2: features that are not known", "refused", put(features=1 << 31))
    for block in (0, 1, 512, 1536, 1025, 1 << 21, 1 << 31):
        # the layout says the same block, and the groups are left out, so that no place depends on the block
        bad("block-%d" % block, "§17.2: the block is not a power of two from 2^10 to 2^20", "invalid", lie(block=block),
            layout=lambda lay, x=block: lay.__setitem__(slice(64, 68), struct.pack("<I", x)), tree=HOLLOW)
    bad("extents-none", "§17.2: no extents", "invalid", late=lambda d: (d.extents.clear(), d.lie.update(extents=0), setattr(d, "behind", bytes(32))), tree=[])
    bad("groups-none", "§17.2: no groups", "invalid", lambda d: (d.groups.clear(), d.digests.clear()), tree=HOLLOW)
    bad("extents-too-many", "§17.2: more extents than the catalog has bytes", "invalid", lie(extents=0xFFFFFFFF))
    bad("groups-too-many", "§17.2: more groups than the catalog has bytes", "invalid", lie(groups=0xFFFFFFFF))
    bad("groups-one-more", "§17.2: the groups do not agree with the bytes of the catalog", "invalid", lie(groups=2))
    bad("entries-more", "§17.2: more entries than there are", "invalid", lie(entries=6))
    bad("entries-fewer", "§17.2: bytes of the entries are left over", "invalid", lambda d: (d.lie.update(entries=4), d.attributes.pop()))
    bad("entries-too-many", "§17.2: four billion entries", "invalid", lie(entries=0xFFFFFFFF))
    bad("entries-left-over", "§17.2: a byte behind the last entry", "invalid", put(left_over=b"\0"))
    for name, size in (("more", 1000), ("huge", (1 << 64) - 1)):
        bad("entry-bytes-" + name, "§17.2: the bytes of the entries are more than the catalog has", "invalid", lie(size=size))
    bad("entry-bytes-fewer", "§17.2: the bytes of the entries are too few", "invalid", lambda d: d.lie.update(size=len(write_entries(d.recs)) - 1))
    for name, x in (("more", 3101), ("fewer", 3099), ("huge", (1 << 64) - 1), ("links", 3200)):
        bad("sum-" + name, "§17.2: the sum of the sizes of all files", "invalid", lie(total=x))
    for at in (40, 63, 64 + 24, 64 + 31, 96 + 12, 96 + 15, 96 + 24, 96 + 31):
        bad("catalog-zero-%d" % at, "§17.2: a byte that has to be zero", "invalid", poke_at(at))

    # ---- extents and groups
    bad("extent-one-piece", "§17.5: N ≥ 2", "invalid", late=extent(pieces=1))
    bad("extent-no-pieces", "§17.5: N ≥ 2", "invalid", late=extent(pieces=0))
    bad("extent-start-huge", "§17.2: an extent behind 2^64", "invalid", late=extent(start=(1 << 64) - 1))
    bad("extent-blocks-huge", "§17.2: an extent whose size is above 2^64", "invalid", late=extent(blocks=(1 << 64) - 1))
    bad("extent-blocks-wraps", "§17.2: an extent whose size is 0 modulo 2^64", "invalid", late=extent(blocks=1 << 54))
    bad("extent-start", "§17.4: the start is not that of the layout", "invalid", late=extent(start=1))
    bad("extent-blocks", "§17.4: the blocks are not those of the layout", "invalid", late=extent(blocks=3))
    bad("extent-pieces", "§17.4: the pieces are not those of Pg", "invalid", late=extent(pieces=4))
    bad("extent-piece-bytes", "§17.4: the bytes of a piece are not those of Pg", "invalid", late=extent(bytes=64))
    bad("group-k-0", "§17.1: k ≥ 1", "invalid", both(group(k=0), lambda d: d.digests.pop(0)), tree=HOLLOW)
    bad("group-m-0", "§17.1: m ≥ 1", "invalid", both(group(m=0), lambda d: (d.digests.pop(), d.recovery.clear())), tree=HOLLOW)
    bad("group-G-0", "§17.1: G ≥ 1", "invalid", both(group(G=0), lambda d: (d.digests.clear(), d.recovery.clear())), tree=HOLLOW)
    bad("group-n-257", "§17.1: k + m ≤ 256", "invalid", both(group(k=256), lambda d: d.digests.__setitem__(slice(0, 1), [NOTHING] * 256)), tree=HOLLOW)
    bad("group-code-2", "§17.1: there are two codes", "invalid", put(codes={0: 2}, features=2))
    bad("group-code-high", "§17.2: bytes behind the code of a group that are not zero", "invalid", put(codes={0: 0x10000}, features=2))
    bad("group-code-1", "§17.2: a group has code 1, and no feature says so", "invalid", put(codes={0: 1}))
    bad("group-runs", "§17.1: with code 1 and several sets, k is a multiple of 128", "invalid", both(group(k=192, G=2), put(codes={0: 1}, features=2)), tree=HOLLOW)
    bad("runs-alone", "§17.2: groups say their runs, and none may have code 1", "refused", put(features=4))
    for name, rule, said, features in (
            ("unsaid", "§17.2: with feature 4, a group of code 1 and several sets says L", 0, 6),
            ("uneven", "§17.1: k is a multiple of L", 31, 6),
            ("longer", "§17.1: k is a multiple of L", 256, 6),
            ("no-feature", "§17.2: a group says L, and no feature says so", 32, 2)):
        bad("runs-" + name, rule, "invalid", both(group(k=128, G=2), put(codes={0: WIDE | said << 16}, features=features)), tree=HOLLOW)
    bad("runs-one-set", "§17.2: a group of one set says L", "invalid", put(codes={0: WIDE | 1 << 16}, features=6))
    bad("runs-small", "§17.2: a group of code 0 says L", "invalid", put(codes={0: 1 << 16}, features=6))
    bad("group-wide-m", "§22: m ≤ 32,768", "invalid", both(group(k=1, m=32769), put(codes={0: 1}, features=2)), tree=HOLLOW)
    bad("group-wide-n", "§22: k + m ≤ 65,536", "invalid", both(group(k=65535, m=2), put(codes={0: 1}, features=2)), tree=HOLLOW)
    bad("group-G-huge", "§17.2: more positions than the catalog has digests", "invalid", group(G=0xFFFFFFFF))
    bad("group-G-2", "§17.2: the digests do not agree with the groups", "invalid", group(G=2))
    bad("group-extent", "§17.2: a group in an extent that is not there", "invalid", group(extent=1))
    bad("group-extent-huge", "§17.2: a group in an extent that is not there", "invalid", group(extent=0xFFFFFFFF))
    bad("group-first", "§17.2: the recovery shards go beyond the extent", "invalid", group(first=1))
    bad("group-first-huge", "§17.2: the recovery shards go beyond the extent, by wrapping", "invalid", group(first=(1 << 64) - 1))

    def two_groups(d):
        d.groups.append(list(d.groups[0]))
        d.digests += d.digests

    bad("groups-overlap", "§17.2: two groups have the same recovery shards", "invalid", two_groups, tree=HOLLOW)

    def four_groups(d, *firsts):
        d.groups[0][4] = firsts[0]
        d.groups += [[1, 1, 1, 0, x] for x in firsts[1:]]
        d.recovery = [bytes(1024)] * 4
        d.digests = d.digests * len(firsts)

    bad("groups-overlap-far", "§17.2: two groups have the same recovery shards, with another between", "invalid", lambda d: four_groups(d, 2, 1, 2), tree=HOLLOW)
    bad("groups-overlap-part", "§17.2: two groups have one recovery shard in common", "invalid",
        lambda d: (d.groups.append([1, 2, 1, 0, 1]), d.digests.extend([NOTHING] + plain_digests([bytes(1024)] * 2)), d.recovery.extend([bytes(1024)])))

    # ---- varints
    def first_size(data):
        """the size of a, written in another way"""
        return fields(A, data + digest(BLAKE3, a) + step(2048))

    bad("varint-long", "§17.2: a varint that is not the shortest", "invalid", first_size(b"\xe4\x00"))
    bad("varint-long-zero", "§17.2: zero in two bytes", "invalid", recs(lambda r: r.__setitem__(A, b"\x80\x00\x01a\x00" + r[A].fields)))
    bad("varint-11-bytes", "§17.2: a varint of 11 bytes", "invalid", first_size(b"\xe4" + b"\x80" * 9 + b"\x01"))
    bad("varint-2-63", "§17.2: a varint that is 2^63", "invalid", first_size(b"\x80" * 9 + b"\x01"))
    bad("varint-2-64", "§17.2: a varint that is 2^64 + 100", "invalid", first_size(b"\xe4" + b"\x80" * 8 + b"\x02"))
    bad("size-2-63-1", "§17.2: a file of 2^63 − 1 bytes", "invalid", both(fields(BC, varint((1 << 63) - 1) + digest(BLAKE3, c) + varint(1) + step(0) + varint(2) + step(0)), lie(total=(1 << 63) + 99)))
    bad("varint-cut", "§17.2: the entries end inside a varint", "invalid", recs(lambda r: r.__setitem__(E_, Rec(b"e", HARDLINK, b"\x80"))))
    bad("entry-cut", "§17.2: the entries end inside a path", "invalid", recs(lambda r: r.__setitem__(E_, b"\x00\x05e")))
    bad("entry-no-kind", "§17.2: the entries end before a kind", "invalid", recs(lambda r: r.__setitem__(E_, b"\x00\x01e")))
    bad("hash-cut", "§17.2: the entries end inside the hash of a file", "invalid", both(lambda d: d.add(Rec(b"f", FILE, b"\x00" + bytes(31)))))
    bad("target-cut", "§17.2: the entries end inside a target", "invalid", both(lambda d: d.add(Rec(b"f", SYMLINK, varint(100) + b"x"))))

    # ---- paths
    bad("shared-first", "§17.2: the first entry shares", "invalid", recs(lambda r: r.__setitem__(A, Rec(b"a", FILE, r[A].fields, shared=1))))
    bad("shared-too-much", "§17.2: more is shared than the path before has", "invalid", recs(lambda r: r.__setitem__(D_, b"\x04\x01d\x02\x01a")))
    bad("shared-huge", "§17.2: more is shared than the path before has", "invalid", recs(lambda r: r.__setitem__(D_, varint((1 << 63) - 1) + b"\x01d\x02\x01a")))
    bad("count-huge", "§17.2: a path of 2^63 − 1 bytes", "invalid", recs(lambda r: r.__setitem__(D_, b"\x00" + varint((1 << 63) - 1) + b"d\x02\x01a")))
    bad("path-empty", "§17.2: an empty path", "invalid", recs(lambda r: r.__setitem__(A, Rec(b"", FILE, r[A].fields))))
    bad("path-equal", "§17.2: a path twice", "invalid", more(Rec(b"e", FOLDER)))
    bad("path-descends", "§17.2: paths do not ascend", "invalid", more(Rec(b"dz", FOLDER)))
    bad("path-prefix", "§17.2: paths do not ascend: what the path before begins with", "invalid", more(Rec(b"f/g", FOLDER), Rec(b"f", FOLDER)))
    deep = b"f" + b"/" + b"/".join([b"x" * 203] * 20) + b"/" + b"y" * 13
    assert len(deep) == 4095
    bad("path-4097", "§17.2: a path of 4097 bytes", "invalid", more(Rec(deep + b"zz", FOLDER)))
    bad("part-256", "§17.2: a part of 256 bytes", "invalid", more(Rec(b"f" * 256, FOLDER)))
    bad("part-256-inside", "§17.2: a part of 256 bytes", "invalid", more(Rec(b"f/" + b"f" * 256 + b"/x", FOLDER)))
    for name, path in (("dot", b"f/."), ("dots", b"f/.."), ("dots-inside", b"f/../../x"), ("slash-last", b"f/"), ("slashes", b"f//x"), ("nul", b"f\0"), ("dot-inside", b"f/./x")):
        bad("path-" + name, "§17.2: the parts of a path", "invalid", more(Rec(path, FOLDER)))
    for name, path in (("slash-first", b"/a"), ("dots-first", b"../a"), ("dots-alone", b".."), ("dot-alone", b".")):
        bad("path-" + name, "§17.2: the parts of a path", "invalid", recs(lambda r, x=path: r.__setitem__(A, Rec(x, FILE, r[A].fields))))
    bad("below-file", "§17.2: below a file", "invalid", recs(lambda r: r.__setitem__(B_, Rec(b"a/x", FOLDER))))
    bad("below-file-far", "§17.2: below a file, with another path between", "invalid", recs(lambda r: (r.__setitem__(B_, Rec(b"a.x", FOLDER)), r.__setitem__(BC, Rec(b"a/x/y", FILE, r[BC].fields)))))
    bad("below-symlink", "§17.2: below a symbolic link", "invalid", recs(lambda r: r.__setitem__(E_, Rec(b"d/e", FOLDER))))
    bad("below-hard-link", "§17.2: below a hard link", "invalid", more(Rec(b"e/f", FOLDER)))

    # ---- all paths together: 20 bytes of the entries stand for 16,000 of paths
    def long_paths(last):
        """A hook that replaces the entries with paths of 4000 bytes and more; the last path is as long as the limit
        allows, and `last` bytes longer"""
        def change(d):
            deep = b"/".join([b"x" * 199] * 20)
            d.recs = [Rec(deep, FOLDER)] + [Rec(deep + b"/%02d" % j, FOLDER) for j in range(49)]
            d.attributes, d.total, d.anchors = [d.attributes[0]] * (len(d.recs) + 1), 0, []
            paths, entries = sum(len(x.path) for x in d.recs), len(write_entries(d.recs))
            for size in range(200, 3990):
                # two bytes for size, one each for a count, y and the kind
                if paths + size + 1 == path_limit(entries + 5) + last:
                    d.recs.append(Rec(deep[:size] + b"y", FOLDER))
                    return
            assert False
        return change

    bad("path-bytes", "§17.2: all paths together have one byte more than 65,536 and 32 for each byte of the entries", "refused", long_paths(1))
    bad("path-bytes-many", "§17.2: two thousand entries of a few bytes stand for 8 MB of paths", "refused", lambda d: (d.add(Rec(b"f" + deep[1:3998], FOLDER)), [d.add(Rec(b"f" + deep[1:3998] + b"%04x" % j, FOLDER)) for j in range(2000)]))

    # ---- kinds
    for kind in (4, 5, 15, 65, 128, 255):
        bad("kind-%d" % kind, "§17.2: a kind that is not named", "refused", more(Rec(b"f", kind)))
    for name, path in (("dots", b"f/.."), ("descends", b"0"), ("equal", b"e"), ("below-link", b"e/f"), ("part-256", b"f" * 256)):
        bad("kind-122-" + name, "§17.2: a kind that is not named comes before what is wrong with the path of its entry", "refused", more(Rec(path, 122)))
    bad("kind-122-sum", "§17.2: a kind that is not named comes before the sum of the sizes", "refused", both(more(Rec(b"f", 122)), lie(total=7)))
    bad("kind-122-attributes", "§17.2: a kind that is not named comes before §17.3", "refused", both(more(Rec(b"f", 122)), lambda d: d.attributes.__setitem__(0, b"\xff" * 16)))
    bad("kind-122-below-file", "§17.2: a kind that is not named comes before what entries say together", "refused", both(recs(lambda r: r.__setitem__(B_, Rec(b"a/x", FOLDER))), more(Rec(b"f", 122))))
    bad("kind-122-late", "§17.2: an entry that breaks a rule by itself comes before one of a kind that is not named", "invalid", more(Rec(b"f/..", FOLDER), Rec(b"g", 122)))
    bad("kind-122-4097", "§17.2: a path of 4097 bytes comes before its kind", "invalid", more(Rec(b"f" + deep + b"z", 122)))
    bad("kind-128-file", "§17.2: a flag of a file that is not named", "refused", recs(lambda r: setattr(r[A], "kind", 128)))
    for kind in (FOLDER | 16, SYMLINK | 16, HARDLINK | 16, FOLDER | 32, SYMLINK | 32, HARDLINK | 32):
        bad("kind-%d" % kind, "§17.2: a flag of what is not a file", "refused", more(Rec(b"f", kind, {SYMLINK: b"\x01a", HARDLINK: b"\x00"}.get(kind & 15, b""))))
    bad("target-empty", "§17.2: a target has 1 to 4095 bytes", "invalid", fields(D_, b"\x00"))
    bad("target-4096", "§17.2: a target has 1 to 4095 bytes", "invalid", fields(D_, varint(4096) + b"x" * 4096))
    bad("target-nul", "§17.2: a target has no NUL", "invalid", fields(D_, b"\x02a\0"))
    for name, n in (("itself", E_), ("forward", 5), ("folder", B_), ("symlink", D_), ("huge", (1 << 63) - 1)):
        bad("hard-link-" + name, "§17.2: a hard link is to a file before it", "invalid", both(fields(E_, varint(n)), more(Rec(b"f", FILE, file_fields(0, b"")))))
    bad("hard-link-hard-link", "§17.2: a hard link to a hard link", "invalid", more(Rec(b"f", HARDLINK, varint(E_))))

    # ---- zeros; the file is b/c
    def zeros(*pairs, tail=3072 - 2148, size=3000):
        """pairs: (step, length) of each run, with no step for zeros"""
        data = varint(size) + digest(BLAKE3, c) + varint(len(pairs)) + b"".join(varint(2 * n + 1) if d is None else varint(2 * n) + step(d) for d, n in pairs)
        return both(fields(BC, data + (step(tail) if tail is not None else b"")), recs(lambda r: setattr(r[BC], "kind", WITH_ZEROS)), lambda d: d.anchors.clear())

    bad("zeros-none", "§17.2: flag 64 without a run of zeros", "invalid", zeros((0, 2)))
    bad("zeros-small", "§17.2: flag 64 of a file without whole blocks", "invalid", recs(lambda r: setattr(r[A], "kind", WITH_ZEROS)))
    bad("zeros-empty", "§17.2: a run of no zeros", "invalid", zeros((None, 0), (None, 2)))
    bad("zeros-long", "§17.2: a run of zeros is too long", "invalid", zeros((None, 3)))
    bad("zeros-short", "§17.2: the runs are too short", "invalid", zeros((None, 1)))
    bad("zeros-run-empty", "§17.2: a run of no blocks", "invalid", zeros((None, 1), (0, 0), (0, 1)))
    bad("zeros-run-long", "§17.2: a run is too long", "invalid", zeros((None, 1), (0, 2)))
    bad("zeros-many", "§17.2: more runs than there are bytes", "invalid", fields(BC, varint(3000) + digest(BLAKE3, c) + varint((1 << 63) - 1) + varint(5)), late=lambda d: setattr(d.recs[BC], "kind", WITH_ZEROS))
    bad("zeros-cut", "§17.2: the entries end inside a run", "invalid", lambda d: (setattr(d.recs[BC], "kind", WITH_ZEROS), d.replace(BC, varint(3000) + digest(BLAKE3, c) + varint(2) + varint(3) + varint(2))))
    bad("zeros-too-many", "§17.2: zeros of more than 2^46 bytes", "refused", zeros((None, (1 << 36) + 1), tail=None, size=(1 << 46) + 1024))
    bad("zeros-too-many-in-two", "§17.2: zeros of more than 2^46 bytes in two files", "refused", both(zeros((None, 1 << 36), tail=None, size=1 << 46), more(Rec(b"f", WITH_ZEROS, varint(2048) + digest(BLAKE3, bytes(2048)) + varint(1) + varint(5)))))
    bad("zeros-anchor", "§17.2: zeros have no anchors", "invalid", both(zeros((None, 1), (1, 1)), lambda d: d.anchors.append(0)))

    # ---- files that share positions
    def twin(*pairs, tail=-952, feature=1, content=c):
        """Another file like b/c, with runs from position 2 on and a tail from behind that of b/c on"""
        return both(more(Rec(b"f", FILE, file_fields(len(content), content, list(pairs), tail)), size=len(content), anchors=[anchor(content)]), put(features=feature))

    bad("shared-no-feature", "§17.2: two files share positions, which the catalog does not say", "invalid", twin((-2, 2), feature=0))
    bad("shared-part", "§17.2: two files share a part of a run", "invalid", twin((-2, 1), (0, 1)))
    bad("shared-other-blocks", "§17.2: two files share a run, for other blocks", "invalid", both(fields(BC, file_fields(3000, c, [(0, 1), (0, 1)], 3072 - 2148)), twin((-1, 1), (-2, 1))))
    bad("shared-tail-part", "§17.2: two files share a part of a tail", "invalid", more(Rec(b"f", FILE, file_fields(951, c[:951], None, -952)), size=951), late=put(features=1))

    # ---- runs and tails; the file is b/c: two whole blocks, a tail of 952 bytes
    def runs(*pairs, tail=3072 - 2148):
        return fields(BC, file_fields(3000, c, pairs, tail))

    bad("kind-122-outside", "§17.2: a kind that is not named comes before places that are not there", "refused", both(runs((0, 1), (3, 1)), more(Rec(b"f", 122))))
    bad("runs-none", "§17.2: no runs of a file that has whole blocks", "invalid", runs())
    bad("runs-short", "§17.2: the runs are too short", "invalid", runs((0, 1)))
    bad("runs-long", "§17.2: the runs are too long", "invalid", runs((0, 2), (0, 1)))
    bad("run-long", "§17.2: a run is too long", "invalid", runs((0, 3)))
    bad("run-empty", "§17.2: a run of no blocks", "invalid", runs((0, 0), (0, 2)))
    bad("run-empty-last", "§17.2: a run of no blocks", "invalid", runs((0, 2), (0, 0)))
    bad("run-huge", "§17.2: a run of 2^63 − 1 blocks", "invalid", runs((0, (1 << 63) - 1)))
    bad("runs-wrap", "§17.2: the lengths are 2 modulo 2^64", "invalid", runs((0, (1 << 63) - 1), (0, (1 << 63) - 1), (0, 4)))
    bad("runs-many", "§17.2: more runs than there are bytes", "invalid", fields(BC, varint(3000) + digest(BLAKE3, c) + varint((1 << 63) - 1) + step(0) + varint(1)))
    bad("run-before", "§17.2: a run before position 0", "invalid", runs((-1, 2)))
    bad("run-far-before", "§17.2: a run before position 0", "invalid", runs((-(1 << 62), 2)))
    bad("run-behind", "§17.2: a run behind the positions", "invalid", runs((0, 1), (3, 1)))
    bad("run-across-end", "§17.2: a run across the end of the positions", "invalid", runs((3, 2)))
    bad("run-far-behind", "§17.2: a run behind the positions", "invalid", runs(((1 << 62) - 1, 2)))
    bad("runs-overlap", "§17.2: two runs of a file overlap", "invalid", runs((0, 1), (-1, 1)))
    bad("runs-overlap-other", "§17.2: runs of two files overlap", "invalid", more(Rec(b"f", FILE, file_fields(2048, c[:2048], [(-1, 1), (-2, 1)])), size=2048, anchors=[0]))
    bad("run-packed", "§17.2: a run and a position that has packed bytes", "invalid", runs((0, 1), (1, 1)))
    bad("run-packed-last", "§17.2: a run and a position that has packed bytes", "invalid", runs((0, 1), (2, 1)))
    bad("tail-before", "§17.2: a tail before byte 0", "invalid", runs((0, 2), tail=-2149))
    bad("tail-behind", "§17.2: a tail across the end of the positions", "invalid", runs((0, 2), tail=4096 - 952 + 1 - 2148))
    bad("tail-far-behind", "§17.2: a tail behind the positions", "invalid", runs((0, 2), tail=(1 << 62) - 1))
    bad("tails-overlap", "§17.2: two pieces of packed bytes overlap", "invalid", both(fields(A, file_fields(100, a, None, 3072)), runs((0, 2), tail=4096 - 952 - 3172)))
    bad("tail-across", "§17.2: a tail lies within one position", "invalid", runs((0, 2), tail=0))
    bad("tail-across-last-byte", "§17.2: a tail lies within one position", "invalid", runs((0, 2), tail=3072 - 951 - 2148))
    bad("tail-across-small", "§17.2: a tail lies within one position", "invalid", both(fields(A, file_fields(100, a, None, 3072 - 1)), runs((0, 2), tail=4096 - 952 - 3171)))
    bad("tails-overlap-all", "§17.2: two pieces of packed bytes overlap", "invalid", runs((0, 2), tail=-100))
    bad("tail-on-run", "§17.2: a run and a position that has packed bytes", "invalid", both(fields(A, file_fields(100, a, None, 1948)), runs((0, 2), tail=3072 - 2048)))
    bad("tail-missing", "§17.2: a file without its tail", "invalid", runs((0, 2), tail=None))
    bad("empty-with-tail", "§17.2: an empty file has no tail", "invalid", more(Rec(b"f", FILE, file_fields(0, b"", None, 0))))
    bad("empty-digest", "§17.2: an empty file has the BLAKE3 of no bytes", "invalid", more(Rec(b"f", FILE, file_fields(0, b"x"))))
    bad("block-with-runs", "§17.2: a file that is not longer than a block has no runs", "invalid", more(Rec(b"f", FILE, file_fields(1024, bytes(1024), [(0, 1)], 0)), size=1024))

    for p in (0, 1):
        bad("lost-run-%d" % p, "§17.2: a whole block that is marked as lost", "invalid", lambda d, x=p: d.digests.__setitem__(x, GONE))
    bad("lost-packed", "§17.2: a position with packed bytes that is marked as lost", "invalid", lambda d: d.digests.__setitem__(2, GONE))
    bad("lost-all", "§17.2: every position is marked as lost", "invalid", lambda d: d.digests.__setitem__(slice(0, 4), [GONE] * 4))
    bad("lost-moved", "§17.2: two runs, the second of them leads to a position that is marked as lost", "invalid", both(runs((1, 1), (-2, 1)), lambda d: d.digests.__setitem__(0, GONE)))

    # ---- anchors
    def anchored(change):
        return lambda d: change(d.anchors)

    bad("anchors-none", "§17.2: no anchors", "invalid", anchored(list.clear))
    bad("anchors-none-three", "§17.2: no anchors", "invalid", anchored(list.clear), tree=TALL)
    bad("anchors-one-fewer", "§17.2: one anchor too few", "invalid", anchored(list.pop), tree=TALL)
    bad("anchors-one-more", "§17.2: one anchor too many", "invalid", anchored(lambda x: x.append(0)), tree=TALL)
    bad("anchors-of-no-block", "§17.2: an anchor, and no file that is longer than a block", "invalid", anchored(lambda x: x.append(0)), tree=HOLLOW)
    bad("anchors-two-more", "§17.2: two anchors too many: as many bytes as one digest has", "invalid", anchored(lambda x: x.extend([0, 0])))
    bad("anchors-each-block", "§17.2: an anchor for each block", "invalid", anchored(lambda x: x.extend([0] * 67)), tree=TALL)
    bad("anchors-of-files", "§17.2: one anchor for each file that is longer than a block", "invalid", anchored(lambda x: x.pop(1)), tree=TALL)
    for cut in (1, 4, 7):
        bad("anchors-cut-%d" % cut, "§17.2: the last anchor is not there in full", "invalid", put(cut=cut), tree=TALL)

    # ---- §17.3
    bad("attributes-zero", "§17.3: bytes that are not zero", "invalid", lambda d: d.attributes.__setitem__(0, d.attributes[0][:14] + b"\1\0"))
    bad("attributes-mode", "§17.3: more than the lower 12 bits of the mode", "invalid", lambda d: d.attributes.__setitem__(0, d.attributes[0][:12] + b"\xa4\x81\0\0"))
    bad("attributes-nanoseconds", "§17.3: nanoseconds are below 10^9", "invalid", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", 0, 10 ** 9, 0o644, 0)))
    bad("attributes-mode-13", "§17.3: permissions are below 2^12", "invalid", lambda d: d.attributes.__setitem__(E_, struct.pack("<qIHH", 0, 0, 0o10644, 0)))
    bad("base-nul", "§17.3: the base has no NUL", "invalid", put(hint=b"..\0"))
    bad("base-nul-empty", "§17.3: the base has no NUL", "invalid", put(hint=b"\0"))
    bad("attributes-cut", "§17.3: the metadata are too short", "invalid", lambda d: d.attributes.pop())
    bad("base-cut", "§17.3: the base is longer than what is there", "invalid", put(hint=b"x", hint_size=2))
    bad("base-huge", "§17.3: the base is longer than what is there", "invalid", put(hint_size=65535))
    def parts(*of):
        return put(behind=b"".join(part(kind, data) for kind, data in of))

    left_out = b"\1" + texts(b"b", b"*.tmp", b"/cache/")
    hidden = b"\1" + texts(b"b/hidden") + b"\4" + texts(b"x" * 4352)
    bad("left-over", "§17.3: a part of kind 0", "refused", put(behind=b"\0"))
    rules = b"\0" + texts(b"b") + b"".join(bytes([words]) + texts(pattern) for words, pattern in ((5, b"/data/"), (10, b"/info/"), (16, b"*.tmp"), (32, b"/lock.exclusive")))
    stacks = varint(BC) + bytes(range(32))
    bad("part-6", "§17.3: a part of kind 6", "refused", parts((6, b"x")))
    bad("part-6-late", "§17.3: a part of kind 6 behind the others", "refused", parts((MARKS, bytes(40)), (EXCLUSION, left_out), (OMITTED, hidden), (POLICY, rules), (STACKS, stacks), (6, b"x")))
    bad("part-6-no-length", "§17.3: a part of kind 6, and no length", "refused", put(behind=b"\6"))
    bad("part-6-attributes", "§17.3: times come before parts", "invalid", both(parts((6, b"x")), lambda d: d.attributes.__setitem__(0, b"\xff" * 16)))
    bad("part-6-sum", "§17.2: the sum of the sizes comes before parts", "invalid", both(parts((6, b"x")), lie(total=7)))
    bad("part-no-length", "§17.3: a part has no length", "invalid", put(behind=b"\1"))
    bad("part-empty", "§17.3: an empty part", "invalid", parts((OMITTED, b"")))
    bad("part-cut", "§17.3: a part is longer than what is there", "invalid", put(behind=b"\3\5\1\1a"))
    bad("part-huge", "§17.3: a part of 2^63 − 1 bytes", "invalid", put(behind=b"\1" + varint((1 << 63) - 1)))
    bad("part-twice", "§17.3: a part twice", "invalid", parts((MARKS, bytes(40)), (MARKS, bytes(40))))
    bad("parts-descend", "§17.3: the parts do not ascend", "invalid", parts((EXCLUSION, left_out), (MARKS, bytes(40))))
    bad("marks-fewer", "§17.3: not one mark for each entry", "invalid", parts((MARKS, bytes(32))))
    bad("marks-more", "§17.3: not one mark for each entry", "invalid", parts((MARKS, bytes(48))))
    bad("marks-cut", "§17.3: not one mark for each entry", "invalid", parts((MARKS, bytes(39))))
    for name, data in (("nothing", b"\0\0"), ("no-anchor", b"\1"), ("anchor-dots", b"\0" + texts(b"..", b"x")), ("anchor-slash", b"\0" + texts(b"/b", b"x")), ("anchor-part", b"\0" + texts(b"b" * 256, b"x")),
                       ("anchor-4097", b"\1" + texts(b"b/" * 2048 + b"b")), ("empty", b"\0" + texts(b"", b"")), ("equal", b"\0" + texts(b"", b"x", b"x")), ("descend", b"\0" + texts(b"", b"y", b"x")),
                       ("nul", b"\0" + texts(b"", b"x\0")), ("latin", b"\0" + texts(b"", b"\xe9")), ("1025", b"\0" + texts(b"", b"x" * 1025)), ("cut", b"\0" + texts(b"", b"x")[:-1]),
                       ("many", b"\0" + texts(b"", *[b"%04d" % j for j in range(3300)]))):
        bad("patterns-" + name, "§17.3: part 2", "invalid", parts((EXCLUSION, data)))
    bad("patterns-flag", "§17.3: a flag of part 2 that is not named", "refused", parts((EXCLUSION, b"\2" + texts(b"", b"x"))))
    for name, data in (("no-path", b"\1"), ("path-empty", b"\1" + texts(b"")), ("slash-first", b"\1" + texts(b"/a")), ("dots", b"\1" + texts(b"a/../b")), ("nul", b"\1" + texts(b"a\0")),
                       ("equal", b"\1" + texts(b"a") + b"\2" + texts(b"a")), ("descend", b"\1" + texts(b"b") + b"\1" + texts(b"a")), ("4353", b"\4" + texts(b"x" * 4353)), ("cut", b"\1\2a")):
        bad("omitted-" + name, "§17.3: part 3", "invalid", parts((OMITTED, data)))
    for reason in (0, 5, 255):
        bad("omitted-reason-%d" % reason, "§17.3: a reason that is not named", "refused", parts((OMITTED, bytes([reason]) + texts(b"a"))))

    def policy(*of):
        return b"\0" + texts(b"") + b"".join(bytes([words]) + texts(pattern) for words, pattern in of)

    for name, data in (("nothing", b"\0\0"), ("announced-nothing", b"\1\0"), ("no-anchor", b"\0"), ("anchor-dots", b"\0" + texts(b"..") + b"\1" + texts(b"x")), ("anchor-4097", b"\0" + texts(b"b/" * 2048 + b"b") + b"\1" + texts(b"x")),
                       ("no-pattern", b"\0\0\1"), ("empty", policy((1, b""))), ("equal", policy((1, b"x"), (1, b"x"))), ("descend", policy((1, b"y"), (1, b"x"))), ("words-descend", policy((4, b"x"), (1, b"y"))),
                       ("nul", policy((1, b"x\0"))), ("latin", policy((1, b"\xe9"))), ("1025", policy((1, b"x" * 1025))), ("cut", policy((1, b"x"))[:-1]), ("many", policy(*[(1, b"%04d" % j) for j in range(2800)]))):
        bad("policy-" + name, "§17.3: part 4", "invalid", parts((POLICY, data)))
    for words in (0, 3, 7, 12, 17, 20, 33, 48, 63):
        bad("policy-words-%d" % words, "§17.3: words that contradict each other", "invalid", parts((POLICY, policy((words, b"x")))))
    for words in (64, 65, 255):
        bad("policy-words-%d" % words, "§17.3: bits of words that are not named", "refused", parts((POLICY, policy((words, b"x")))))
    bad("policy-flag", "§17.3: a flag of part 4 that is not named", "refused", parts((POLICY, b"\2" + policy((1, b"x"))[1:])))
    for name, data in (("folder", varint(B_) + bytes(32)), ("small-file", varint(A) + bytes(32)), ("no-entry", varint(5) + bytes(32)), ("huge", varint((1 << 63) - 1) + bytes(32)), ("zeros-in-front", bytes([128 + BC, 0]) + bytes(32)),
                       ("no-value", varint(BC)), ("cut", varint(BC) + bytes(31)), ("more", varint(BC) + bytes(33)), ("twice", stacks + stacks), ("behind-the-last", stacks + varint(0) + bytes(32))):
        bad("stacks-" + name, "§17.3: part 5", "invalid", parts((STACKS, data)))
    bad("stacks-before-policy", "§17.3: the parts do not ascend", "invalid", parts((STACKS, stacks), (POLICY, rules)))
    bad("policy-before-omitted", "§17.3: the parts do not ascend", "invalid", parts((POLICY, rules), (OMITTED, hidden)))

    # ---- §17.4, in all pieces
    for name, lies in (("version-0", dict(version=0)), ("version-2", dict(version=2)), ("hash-0", dict(hash=0)), ("hash-3", dict(hash=3)), ("form-1", dict(form=1)), ("form-2", dict(form=2)),
                       ("form-4", dict(form=4)), ("flag-1", dict(flags=3)), ("flag-2", dict(flags=5)), ("flag-3", dict(flags=9)), ("k-0", dict(k=0)), ("n-257", dict(m=256)),
                       ("L", dict(L=(1 << 26) + 64)), ("payload", dict(payload=1 << 63)), ("g-huge", dict(nr=(1 << 32) - 1))):
        bad("piece-" + name, "§4.1: rules 1 and 2", "refused", lie=lies)
    bad("piece-hash-2", "§17.4: the hash is SHA-256", "refused", lie=dict(hash=2), choice=True)
    for name, lies in (("L-0", dict(L=0)), ("L-63", dict(L=63)), ("G-0", dict(G=0)), ("L-large", dict(L=1 << 16)), ("G-2", dict(G=2)), ("payload-large", dict(payload=1 << 20))):
        bad("piece-" + name, "§4.1: rules 3 and 4", "invalid", lie=lies)
    bad("piece-not-last", "§17.4: the last flag is not set", "invalid", lie=dict(flags=0))
    bad("piece-g-1", "§17.4: g is not 0", "invalid", lie=dict(nr=1))
    bad("piece-s", "§17.4: the set is out of range", "invalid", piece=lambda s, i, head, rest: head.__setitem__(16, 1))
    bad("piece-i", "§17.4: the index is out of range", "invalid", piece=lambda s, i, head, rest: head.__setitem__(20, i + 3))
    for at in (12, 15, 24, 31):
        bad("piece-zero-%d" % at, "§17.4: a byte of the header that has to be zero", "damaged", piece=lambda s, i, head, rest, x=at: head.__setitem__(x, 1))
    bad("piece-zero-padding", "§17.4: a byte of the padding", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(-1, 1))
    bad("piece-unused-proof", "§6.1: an unused hash", "damaged", geometry=dict(k=2, m=3), piece=lambda s, i, head, rest: rest.__setitem__(LAYOUT + 64, 1), drop=(2, 3, 4))
    bad("layout-zero-68", "§17.4: a byte of the layout that has to be zero", "damaged", layout=lambda lay: lay.__setitem__(68, 1))
    bad("layout-zero-95", "§17.4: a byte of the layout that has to be zero", "damaged", layout=lambda lay: lay.__setitem__(95, 1))
    bad("piece-M", "§17.4: M is not the hash of the layout", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(40, 1))
    bad("piece-E", "§17.4: E is not what the piece leads to", "damaged", piece=lambda s, i, head, rest: head.__setitem__(64, head[64] ^ 1))
    bad("piece-proof", "§17.4: the proof does not lead to E", "damaged", piece=lambda s, i, head, rest: rest.__setitem__(LAYOUT, rest[LAYOUT] ^ 1))

    def other_shards(shards):
        for i in (1, 2):
            shards[i][0] = flipped(shards[i][0], 5)

    bad("not-a-codeword", "§10.3: the pieces that are left do not give what the tree says", "invalid", alter=other_shards, drop=(0,))

    def not_zero(shards):
        for row in shards:
            row[0] = flipped(row[0], len(row[0]) - 1)

    assert len(draft().metadata()[0]) % 64
    bad("behind-payload", "§5: a byte past the end of the metadata", "invalid", alter=not_zero)

    def layout_number(at, value, form="<Q"):
        return lambda lay: lay.__setitem__(slice(at, at + struct.calcsize(form)), struct.pack(form, value))

    bad("layout-catalog-more", "§17.4: the catalog is longer than the metadata", "invalid", layout=layout_number(56, 1 << 40))
    bad("layout-catalog-huge", "§17.4: the catalog is longer than the metadata", "invalid", layout=layout_number(56, (1 << 64) - 1))
    bad("layout-catalog-short", "§17.4: the catalog is shorter than its head", "invalid", layout=layout_number(56, 63))
    bad("layout-catalog-fewer", "§17.4: the catalog does not end where it says", "invalid", layout=lambda lay: layout_number(56, struct.unpack_from("<Q", lay, 56)[0] - 16)(lay))
    bad("layout-block", "§17.4: the block is not that of the catalog", "invalid", layout=layout_number(64, 2048, "<I"))
    bad("layout-block-0", "§17.4: the block is not that of the catalog", "invalid", layout=layout_number(64, 0, "<I"))
    for name, start in (("", 4096), ("-1", 1), ("-huge", (1 << 64) - 1)):
        bad("layout-start" + name, "§17.4: in generation 1 the extent starts at 0", "invalid", layout=layout_number(40, start))
    for name, start in (("", 0), ("-far", 1 << 40), ("-huge", (1 << 64) - 1)):
        bad("layout-start-2" + name, "§17.4: in generation 2 the start is not that of the extent", "invalid", start=4096, before=digest(BLAKE3, b""), generation=2, layout=layout_number(40, start))
    bad("first-extent-not-0", "§17.4: layout and catalog of generation 1 agree that its extent starts at byte 1", "invalid", start=1)
    bad("first-extent-far", "§17.4: layout and catalog of generation 1 agree that its extent starts far away", "invalid", start=1 << 40)
    bad("first-two-extents", "§17.4: the catalog of generation 1 has another extent, of no bytes, before that of the pieces", "invalid", both(put(extents=[[0, 0, 2, 0]]), group(extent=1)))
    bad("layout-blocks-huge", "§17.4: the extent of the layout does not end below 2^62", "invalid", layout=layout_number(48, (1 << 64) - 1))
    bad("layout-blocks-most", "§17.4: the extent of the layout ends below 2^62, and is not that of the catalog", "invalid", layout=layout_number(48, 1 << 51))
    bad("layout-generation-0", "§17.4: generations count from 1", "invalid", layout=layout_number(32, 0))
    bad("layout-generation-0-before", "§17.4: a generation that names one before has a number above 1", "invalid", layout=layout_number(32, 0), before=digest(BLAKE3, b""))
    large = Geo(1, BLAKE3, SIDECAR, LAST, 1, 255, 4096, 1 << 24, 1 << 36, 0)
    for name, G, cls in (("", 1 << 24, "invalid"), ("-below", (1 << 24) - 1, "damaged")):
        wide = large._replace(G=G, payload=G << 12)
        lay = bytes(32) + struct.pack("<QQQQI", 1, 0, 1, 64, 1024) + bytes(28)
        head = MAGIC_P + bytes(8) + struct.pack("<IIQ", 0, 0, 0) + pack(wide) + bytes(32) + digest(BLAKE3, lay)
        rest = lay + bytes(align(HEADER + LAYOUT + proof_size(wide), 64) - HEADER - LAYOUT)
        add("layout-pieces%s" % name, "§17.4: n·G is below 2^32 (if it is, the piece is damaged)", cls, put_crc(bytearray(head), bytearray(rest)) + bytes(4096))
    bad("layout-before-1", "§17.4: the first generation names one before", "invalid", before=digest(BLAKE3, b""))
    bad("layout-before-2", "§17.4: the second generation names none", "invalid", layout=layout_number(32, 2))

    # ---- sidecars that are accepted all the same; recovery: the blocks that a reader finds
    data, E, root = seal(draft())
    q = (len(data) - 2048) // 3                         # bytes of a piece

    def good(name, rule, data=data, root_=root, recovery=(2, 2), given=None, **more):
        moved = MOVED.get(name, 0)
        add(name, rule, None, data, given, more.pop("choice", False), found=root_.hex(), recovery=list(recovery), **dict(more, displaced=moved) if moved else more)

    places = [piece_place(t, (0, 2, 3, q), 1024) for t in range(3)]
    good("good", "a sidecar that breaks no rule")
    for L in (128, 64, 1):
        good("good-runs-%d" % L, "§17.1: two sets of code 1, and L is %d" % L, *(lambda x: (x[0], x[2]))(seal(Draft(items_of(in_hex(RUNS)), Fraction(1), shape=(WIDE, 128, 3, 2, L)))), recovery=(6, 6))
    good("good-root", "the same, with its root given", given=root)
    add("wrong-root", "§17.6: another root is given", "wrong-root", data, bytes(32))
    for t in (0, 2):
        good("piece-%d-lost" % t, "§17.4: a piece is lost", data[:places[t]] + bytes(q) + data[places[t] + q:])
    good("pieces-two-lost", "§17.4: two of three pieces are lost", bytes(q) + data[q:places[1]] + bytes(q) + data[places[1] + q:])
    add("pieces-all-lost", "§17.4: no piece is left", "damaged", b"".join([bytes(q), data[q:places[1]], bytes(q), data[places[1] + q:-q], bytes(q)]))
    add("crc-all", "§17.4: the CRC of every piece is wrong", "damaged", flipped(data, *[p + 20 for p in places]))
    add("body-all", "§17.4: the body of every piece is wrong", "damaged", flipped(data, *[p + q - 1 for p in places]))
    good("version-one", "§11: one piece has another version", flipped(data, 32))
    add("version-others", "§11: one piece has another version, and of the others the bodies are wrong", "damaged", flipped(data, 32, *[p + q - 1 for p in places[1:]]))
    add("empty", "no bytes at all", "damaged", b"")
    good("cut-first", "§17.5: 100 bytes of the beginning are gone", data[100:])
    good("cut-last", "§17.5: 100 bytes of the end are gone", data[:-100])
    good("inserted-first", "§17.5: 10 bytes before it", generate(10, 5) + data)
    good("appended", "§17.5: 10 bytes behind it", data + generate(10, 5))
    good("inserted-in-piece", "§17.5: 10 bytes inside the second piece", data[:places[1] + 50] + generate(10, 5) + data[places[1] + 50:])
    good("inserted-in-block", "§17.5: 10 bytes inside the first block", data[:q + 50] + generate(10, 5) + data[q + 50:], recovery=(1, 2))
    good("deleted-in-block", "§17.5: 10 bytes of the second block are gone", data[:places[2] - 500] + data[places[2] - 490:], recovery=(1, 2))
    good("block-rotten", "§17.1: a recovery shard is not intact", flipped(data, q), recovery=(1, 2))
    good("block-zero-digest", "§17.1: a recovery shard whose digest is zeros is never intact", *(lambda x: (x[0], x[2]))(seal(draft(lambda d: d.digests.__setitem__(-1, NOTHING)))), recovery=(1, 2))
    good("block-lost-digest", "§17.1: a recovery shard whose digest is sixteen times FF is never intact", *(lambda x: (x[0], x[2]))(seal(draft(lambda d: d.digests.__setitem__(-2, GONE)))), recovery=(1, 2))
    for name, change in (("shared-less", recs(lambda r: setattr(r[BC], "shared", 0))), ("sealed", None), ("path-4096", more(Rec(deep + b"z", FOLDER))), ("part-255", more(Rec(b"f" * 255, FOLDER))),
                         ("target-4095", fields(D_, varint(4095) + b"x" * 4095)), ("base", put(hint=b"../x")), ("hard-link-name", more(Rec(b"f", HARDLINK, varint(BC)))),
                         ("runs-two", runs((1, 1), (-2, 1))), ("tail-elsewhere", runs((0, 2), tail=1024 - 76)), ("folder-not-named", recs(lambda r: r.__setitem__(B_, Rec(b"aa", FOLDER)))),
                         ("sha256", recs(lambda r: (setattr(r[A], "kind", WITH_SHA256), setattr(r[A], "fields", file_fields(100, a, None, 2048, hashlib.sha256(a).digest()))))),
                         ("anchor-other", anchored(lambda x: x.__setitem__(0, x[0] ^ 1))), ("anchor-zero", anchored(lambda x: x.__setitem__(0, 0))), ("path-bytes", long_paths(0)), ("tail-zero", both(fields(A, file_fields(100, a, None, 2048 + 924)), runs((0, 2), tail=0))),
                         ("tails-swapped", both(fields(A, file_fields(100, a, None, 3072 + 924)), runs((0, 2), tail=2048 - 4096))), ("base-empty", put(hint=b"")), ("marks", parts((MARKS, struct.pack("<5Q", 1, 0, 2 ** 64 - 1, 3, 0)))), ("patterns", parts((EXCLUSION, left_out))), ("patterns-caches", parts((EXCLUSION, b"\1\0"))), ("omitted", parts((OMITTED, hidden))), ("omitted-part", parts((OMITTED, b"\3" + texts(b"n" * 300)))), ("parts", parts((MARKS, bytes(40)), (EXCLUSION, left_out), (OMITTED, hidden), (POLICY, rules), (STACKS, stacks))), ("stacks", parts((STACKS, stacks))), ("policy", parts((POLICY, rules))), ("policy-announced", parts((POLICY, b"\1" + rules[1:]))), ("policy-words", parts((POLICY, policy(*[(words, b"x") for words in (1, 2, 4, 5, 6, 8, 9, 10, 16, 32)])))), ("nanoseconds", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", -1, 10 ** 9 - 1, 0, 0))),
                         ("backslash", more(Rec(b"f\\..\\g", FOLDER))), ("time-before-1970", lambda d: d.attributes.__setitem__(0, struct.pack("<qIHH", -(1 << 40), 1, 0o7777, 0)))):
        x = seal(draft(change), lie=dict(flags=17) if name == "sealed" else None)
        good("good-" + name, "what a reader accepts", x[0], x[2])


    x = bytes(7) + data
    good("moved-one-piece", "§17.5: all has moved, and the pieces on both sides of the second recovery shard are lost: it is where the nearest one that was found says", x[:7 + places[1]] + bytes(q) + x[7 + places[1] + q:-q] + bytes(q))
    # Piece 2 is lost; before it stand block 0, piece 1 and block 1, behind piece 0.
    one, last = data[places[1]:places[1] + q], data[places[1] + q:places[2]]
    good("moved-header-only", "§17.5: 10 bytes before the second piece; its body is rotten, its header was found and says where the second block is", data[:places[1]] + bytes(10) + flipped(one, q - 1) + last + bytes(q))
    good("moved-no-header", "§17.5: the same with a rotten header: the second block is not found", data[:places[1]] + bytes(10) + flipped(one, 20) + last + bytes(q), recovery=(1, 2))
    good("moved-copy-in-place", "§17.5: the second piece stands in its place, and once more before the second block: that in its place says where the block is", data[:places[1]] + one + one + last + bytes(q), recovery=(1, 2))
    good("moved-copy-first", "§17.5: the second piece stands at two other places: the first says where the second block is, wrongly", data[:places[1]] + bytes(5) + one + one + last + bytes(q), recovery=(1, 2))
    good("moved-copies-first", "§17.5: the same, and the block is behind the first of them", data[:places[1]] + bytes(5) + one + last + one + bytes(q))
    x = seal(draft(lambda d: four_groups(d, 3, 0, 2), HOLLOW))
    good("good-groups-out-of-order", "§17.2: the recovery shards of groups in any order, and one that is of no group", x[0], x[2], recovery=(3, 3))

    def together(d):
        """a and f, a new file, stand in position 2 together"""
        f = generate(50, 51)
        d.add(Rec(b"f", FILE, file_fields(50, f, None, 2048 + 500 - 4024)), 50)
        row = bytearray(padded(a, 1024))
        row[500:550] = f
        d.digests[2] = plain_digests([bytes(row)])[0]
        rows = [c[:1024], c[1024:2048], bytes(row), padded(c[2048:], 1024)]
        d.recovery = evaluate([0, 1, 2, 3], rows, range(4, 6))
        d.digests[4:] = plain_digests(d.recovery)

    x = seal(draft(fields(BC, file_fields(3000, b"other", [(0, 2)], 924))))
    good("good-contradiction", "§17.1: the digests of all blocks of b/c are right and its BLAKE3 is not: seen when the files are read", x[0], x[2])
    x = seal(draft(lambda d: d.digests.__setitem__(1, bytes(range(16)))))
    good("good-wrong-block", "§17.1: the digest of a whole block of b/c is wrong: seen when the files are read", x[0], x[2])
    x = seal(draft(together))
    good("good-tails-together", "§17.1: two tails in one position, with zeros between them", x[0], x[2])

    def without_a(d):
        """a and the link to it are no longer named, as in a further generation; their position is an erasure"""
        for number in (E_, A):
            del d.recs[number], d.attributes[number]
        d.total -= 100
        next(r for r in d.recs if r.path == b"b/c").fields = file_fields(3000, c, [(0, 2)], 3072)

    x = seal(draft(twin((-2, 2))))
    good("good-shared", "§17.2: two files share all of their positions", x[0], x[2])
    x = seal(draft(put(features=1)))
    good("good-shared-by-none", "§17.2: files may share positions, and do not", x[0], x[2])
    x = seal(draft(zeros((None, 1 << 36), tail=None, size=1 << 46)), late=lambda d: d.lie.update(total=(1 << 46) + 100))
    good("good-zeros-most", "§17.2: a file of as many zeros as can be", x[0], x[2])
    x = seal(Draft(items_of(in_hex([even(b"a", 5000, 0), zeroed(file(b"b", 5000), (1024, 2048)), even(b"c", 5000, 0)])), Fraction(1), sparing=True))
    good("good-zeros", "§17.2: zeros and duplicates without positions", x[0], x[2], recovery=(4, 4))
    x = seal(draft(without_a))
    good("good-entry-gone", "§17.1: a position that no entry names and whose digest is not zeros", x[0], x[2])
    x = seal(draft(both(without_a, lambda d: d.digests.__setitem__(2, GONE))))
    good("good-entry-lost", "§17.1: the same, and its bytes are lost", x[0], x[2])

    # ---- §17.6
    def second(start, extents, before, **options):
        """A second generation: d has another target, and the first extent is kept; no new recovery shards"""
        d = draft(fields(D_, b"\x03b/c"))
        d.extents, d.recovery = [list(x) for x in extents], []
        return seal(d, start, before, 2, **options)

    def second_alone(generation, before, start=None):
        return seal(draft(fields(D_, b"\x03b/c")), len(data) if start is None else start, before, generation)

    first_extents = [[0, 2, 3, q]]

    def same_catalog():
        d = draft(fields(D_, b"\x03b/c"))
        d.extents, d.recovery = [list(x) for x in first_extents], []
        return d

    more_data, E2, root2 = second(len(data), first_extents, E)
    good("generations-two", "§17.6: the second of two generations is meant", data + more_data, root2, generation=2)
    good("generations-two-root-1", "§17.6: the root of the first is given", data + more_data, root, given=root, generation=1)
    good("generations-two-first-lost", "§17.6: the pieces of the first are lost", flipped(data, *[p + 20 for p in places]) + more_data, root2, generation=2)
    good("generations-two-invalid", "§17.6: the second is invalid", data + second(len(data), first_extents, E, late=lambda d: d.pokes.append((40, 1)))[0], root, generation=1, choice=True)
    good("generations-two-invalid-root-1", "§17.6: the second is invalid, the root of the first is given", data + second(len(data), first_extents, E, late=lambda d: d.pokes.append((40, 1)))[0], root, given=root, generation=1)
    add("generations-two-refused", "§17.6: the second is refused", "refused", data + second(len(data), first_extents, E, late=lambda d: setattr(d, "features", 8))[0])
    good("generations-two-refused-root-1", "§17.6: the second is refused, the root of the first is given", data + second(len(data), first_extents, E, late=lambda d: setattr(d, "features", 8))[0], root, given=root, generation=1)
    good("generations-two-first-refused", "§17.6: the first of two generations is refused", *(lambda x: (lambda y: (x[0] + y[0], y[2]))(second(len(x[0]), [[0, 2, 3, (len(x[0]) - 2048) // 3]], x[1])))(seal(draft(put(features=8)))), generation=2)
    x = second(len(data), first_extents, E, geometry=dict(k=2, m=1), drop=(0, 2))
    good("generations-two-newer", "§17.6: one piece of the second is left, and two are needed: to be reported", data + x[0], root, generation=1, newer=2, choice=True)
    good("generations-two-newer-root-1", "§17.6: the same, with the root of the first given", data + x[0], root, given=root, generation=1, newer=2)
    good("generations-two-moved", "§17.5: a byte inside the first piece of the second, whose header is right, and one less at the end: the others are looked for, although the file has its length",
         data + more_data[:500] + b"\0" + more_data[500:-1], root2, generation=2)
    x = second(len(data), first_extents, E)
    good("generations-two-no-piece", "§17.6: of the second nothing is left", data + bytes(len(x[0])), root, generation=1)

    def third(start, extents, before, number=3, **options):
        d = draft(fields(D_, b"\x02b/"))
        d.extents, d.recovery = [list(x) for x in extents], []
        return seal(d, start, before, number, **options)

    second_extents = first_extents + [[len(data), 0, 3, len(more_data) // 3]]
    third_data, _, root3 = third(len(data + more_data), second_extents, E2)
    good("generations-three", "§17.6: the third of three", data + more_data + third_data, root3, generation=3)
    good("generations-three-root-2", "§17.6: the third of three, with the root of the second given", data + more_data + third_data, root2, given=root2, generation=2)
    add("generations-three-second-lost", "§17.6: of the second nothing is left, so that nothing leads from the third to the first", "ambiguous", data + bytes(len(more_data)) + third_data)
    add("generations-three-second-rotten", "§17.6: of the second headers are left, but no piece is usable", "ambiguous",
        data + flipped(more_data, *[j * len(more_data) // 3 - 1 for j in (1, 2, 3)]) + third_data)
    good("generations-three-second-lost-root-1", "§17.6: of the second nothing is left, the root of the first is given", data + bytes(len(more_data)) + third_data, root, given=root, generation=1)
    good("generations-three-second-lost-root-3", "§17.6: of the second nothing is left, the root of the third is given", data + bytes(len(more_data)) + third_data, root3, given=root3, generation=3)
    add("generations-three-second-lost-other-root", "§17.6: of the second nothing is left, its root is given", "wrong-root", data + bytes(len(more_data)) + third_data, root2)
    x, Ex, _ = second(len(data), first_extents, E, geometry=dict(k=2, m=1), drop=(0, 2))
    after = first_extents + [[len(data), 0, 3, len(x) // 3]]
    y = third(len(data + x), after, Ex)
    good("generations-three-second-one-piece", "§17.6: of the second one piece is left, and two are needed: it still names the first", data + x + y[0], y[2], generation=3)
    x, Ex, _ = second(len(data), first_extents, E, late=lambda d: d.pokes.append((40, 1)))
    y = third(len(data + x), second_extents, Ex)
    good("generations-three-second-invalid", "§17.6: the second is invalid: it still names the first", data + x + y[0], y[2], generation=3)
    x, Ex, _ = second(len(data), first_extents, E, late=lambda d: setattr(d, "features", 8))
    y = third(len(data + x), second_extents, Ex)
    good("generations-three-second-refused", "§17.6: the second is refused: it still names the first", data + x + y[0], y[2], generation=3)
    x = third(len(data + more_data), second_extents, E2, geometry=dict(k=2, m=1), drop=(0, 2))
    good("generations-three-third-newer", "§17.6: of the third one piece is left, and two are needed: to be reported", data + more_data + x[0], root2, generation=2, newer=3, choice=True)
    x, Ex, _ = third(len(data + more_data), second_extents, E2)
    d = draft(fields(D_, b"\x02b."))
    d.extents, d.recovery = [list(x) for x in second_extents + [[len(data + more_data), 0, 3, len(x) // 3]]], []
    y = seal(d, len(data + more_data + x), Ex, 4)
    good("generations-four", "§17.6: the fourth of four", data + more_data + x + y[0], y[2], generation=4)
    z = flipped(more_data, 20, len(more_data) - 1)           # one piece of each is usable, which is enough
    good("generations-four-one-piece-each", "§17.6: the fourth of four, of each of which one piece is left", flipped(data, 20, len(data) - 1) + z + flipped(x, 20, len(x) - 1) + flipped(y[0], 20, len(y[0]) - 1), y[2], generation=4)
    add("generations-four-two-lost", "§17.6: of the second and the third nothing is left", "ambiguous", data + bytes(len(more_data) + len(x)) + y[0])

    # ---- §17.4, differences
    first = draft()
    seal(first)
    whole = E, first.metadata()[0]
    behind = len(whole[1]) - len(first.catalog()) + 16 * len(first.digests) + 8 * len(first.anchors)

    def differs(start=len(data), extents=first_extents, before=E, generation=2, to=whole, change=lambda x: x, **options):
        """A further generation as a difference; change: of the payload"""
        d = draft(fields(D_, b"\x03b/c" if generation == 2 else b"\x02b/"))
        d.extents, d.recovery = [list(x) for x in extents], []
        return seal(d, start, before, generation, payload=lambda metadata, size: change(difference(to, metadata, size, behind)), **options)

    def poked(at, value):
        return lambda x: x[:at] + value + x[at + len(value):]

    x, Ed, rd = differs()
    good("difference", "§17.4: the second generation is a difference to the first", data + x, rd, generation=2)
    good("difference-root-1", "§17.4: the same, with the root of the first given", data + x, root, given=root, generation=1)
    good("difference-pieces-lost", "§17.4: of both generations one piece is left", flipped(data, 20, len(data) - 1) + flipped(x, 20, len(x) - 1), rd, generation=2)
    add("difference-alone", "§17.4: of the whole generation nothing is left", "damaged", flipped(data, *[p + 20 for p in places]) + x)
    y = differs(len(data + x), first_extents + [[len(data), 0, 3, len(x) // 3]], Ed, 3)
    good("difference-third", "§17.4: the third generation is a difference to the first, as the second is", data + x + y[0], y[2], generation=3)
    z = differs(len(data + x), first_extents + [[len(data), 0, 3, len(x) // 3]], Ed, 3, geometry=dict(k=2, m=1), drop=(0, 2))
    good("difference-third-newer", "§17.4: of the third one piece is left, and two are needed: to be reported", data + x + z[0], rd, generation=2, newer=3, choice=True)
    good("difference-third-second-lost-root-3", "§17.4: of the second nothing is left, the root of the third is given", data + bytes(len(x)) + y[0], y[2], given=y[2], generation=3)
    y = differs(len(data + x), first_extents + [[len(data), 0, 3, len(x) // 3]], Ed, 3, to=(Ed, whole[1]))
    good("difference-of-difference", "§17.4: the third is a difference to the second, which is one: it cannot be restored", data + x + y[0], rd, generation=2, newer=3)
    y = differs(to=(bytes(32), whole[1]))
    good("difference-unknown", "§17.4: a difference to what is not there", data + y[0], root, generation=1, newer=2)
    y = differs(extents=[[7, 2, 3, q]])
    good("difference-no-extent", "§17.4: the extent of the whole generation is none of the catalog's", data + y[0], root, generation=1, choice=True)
    z = seal(draft(), 0, digest(BLAKE3, b"unknown"), 3)
    y = differs(len(z[0]), first_extents, digest(BLAKE3, b"other"), 3, to=(z[1], whole[1]))
    good("difference-not-before", "§17.4: the whole generation has no smaller number", z[0] + y[0], z[2], generation=3)
    for name, change in (("zero-4", poked(4, b"\1")), ("zero-24", poked(31, b"\1")), ("catalog-more", poked(8, b"\xff" * 8)), ("metadata-more", poked(16, b"\xff" * 8)),
                         ("metadata-fewer", lambda x: poked(16, struct.pack("<Q", struct.unpack_from("<Q", x, 16)[0] - 1))(x)),
                         ("step-nothing", lambda x: x + bytes(3)), ("skip-out", lambda x: x + b"\1\0\1x"), ("copy-out", lambda x: x + b"\0\1\0"), ("add-out", lambda x: x + b"\0\0\2x"), ("step-cut", lambda x: x + b"\0"), ("copy-huge", lambda x: x + b"\0" + varint((1 << 63) - 1) + b"\0")):
        good("difference-" + name, "§17.4: a difference that breaks a rule: the first is meant", data + differs(change=change)[0], root, generation=1, newer=2, choice=True)
    for version in (0, 1, 3):
        add("difference-version-%d" % version, "§17.4: the version of a difference", "refused", data + differs(change=poked(0, struct.pack("<I", version)))[0])
    other_features = seal(draft(put(features=8)))
    add("refused-other-root", "§17.6, §11: the only catalog is refused, and another root is given: refused goes before wrong-root", "refused", other_features[0], root)
    add("refused-its-root", "§17.6: the root of a catalog that is refused is given", "refused", other_features[0], other_features[2])
    x = second(len(data), first_extents, E, late=lambda d: setattr(d, "features", 8))
    add("generations-two-refused-other-root", "§17.6, §11: the second is refused, and another root is given", "refused", data + x[0], bytes(32))
    add("generations-two-refused-root-2", "§17.6: the second is refused, and its root is given", "refused", data + x[0], x[2])
    add("two-sidecars-refused", "§17.6: two sidecars, one of them refused", "ambiguous", data + other_features[0])
    good("two-sidecars-refused-root", "§17.6: two sidecars, one of them refused, the root of the other given", data + other_features[0], root, given=root)
    x = seal(draft(), lie=dict(version=2))
    add("version-2-other-root", "§11: all pieces of another sidecar have another version, and another root is given: since a header of version 1 is right, that counts as damaged", "wrong-root", data + x[0], bytes(32))
    x = seal(draft(), lie=dict(form=2))
    good("other-form", "§11: a sidecar, and one whose pieces are refused", data + x[0])
    add("other-form-other-root", "§17.6, §11: the same, and another root is given", "refused", data + x[0], bytes(32))
    add("pieces-lost-root", "§17.6: no piece is left, and a root is given", "damaged", b"".join([bytes(q), data[q:places[1]], bytes(q), data[places[1] + q:-q], bytes(q)]), root)
    # two encodings with one root: the same catalog stands at two places
    twice = second(len(data), first_extents, E)
    again, same_E, _ = seal(same_catalog(), len(data), E, 3)
    good("one-root-greater", "§17.6: two encodings of one catalog: the one of generation 3 is meant", data + twice[0] + again, root2, generation=3)
    good("one-root-greater-first", "§17.6: the same, the other way round", data + again + twice[0], root2, generation=3)
    good("one-root-chain", "§17.6: the same, and the third names the second as before", data + twice[0] + seal(same_catalog(), len(data), E2, 3)[0], root2, generation=3)
    good("one-root-same-generation", "§17.6: two copies of a sidecar with other times: the first is meant", data + seal(draft(lambda d: d.attributes.__setitem__(0, bytes(16))))[0], root)
    add("extents-descend", "§17.2: the second extent stands before the first", "invalid", second(0, [[1 << 40, 2, 3, q]], E)[0])
    add("extents-equal", "§17.2: an extent twice", "invalid", second(0, [[0, 0, 3, len(more_data) // 3]], E)[0])
    add("extents-overlap-byte", "§17.2: the second extent overlaps the first by one byte", "invalid", second(len(data) - 1, first_extents, E)[0])
    good("extents-apart", "§17.2: a gap between two extents", second(1 << 40, [[7, 2, 3, q]], E)[0], second(1 << 40, [[7, 2, 3, q]], E)[2], recovery=(0, 2), generation=2)
    far = (1 << 62) - len(seal(draft(), 1 << 61, E, 2)[0])
    add("extent-end-2-62", "§17.2: an extent ends below 2^62", "invalid", seal(draft(), far, E, 2)[0])
    x = seal(draft(), far - 1, E, 2)
    good("extent-end-2-62-1", "§17.2: an extent that ends just below 2^62; all of it has moved", x[0], x[2], generation=2)
    add("extents-overlap", "§17.5: the second extent overlaps the first", "invalid", second(len(data) - 64, first_extents, E, late=None)[0])
    other = draft(fields(D_, b"\x03b/c"))
    twin, _, twin_root = seal(other)
    add("two-sidecars", "§17.6: two sidecars one after the other", "ambiguous", data + twin)
    good("two-sidecars-root", "§17.6: two sidecars, the root of the second given; its recovery shards have moved with its pieces", data + twin, twin_root, given=twin_root)
    add("two-sidecars-wrong-root", "§17.6: two sidecars and a third root", "wrong-root", data + twin, bytes(32))
    # the second generation names the first, but has no greater number
    two, E_two, _ = second_alone(2, digest(BLAKE3, b"unknown"), 0)
    add("generations-not-greater", "§17.6: one names another as before, but has no greater number", "ambiguous", two + second_alone(2, E_two, len(two))[0])
    three = second_alone(3, E_two, len(two))
    good("generations-gap", "§17.6: one names another as before, which has a smaller number", two + three[0], three[2], generation=3)

    # ---- a sidecar of a file that has a piece of another sidecar, with k = 1: recovery shards are copies of the file
    inner, _, _ = seal(draft(tree=HOLLOW))
    nest = Draft([Item(b"nest", FILE, inner[:(len(inner) - 1024) // 3], None, 0o644, 0, 0)], Fraction(2))
    outer, _, outer_root = seal(nest)
    assert nest.groups == [[1, 2, 1, 0, 0]] and nest.recovery[0] == padded(nest.recovery[0][:nest.total], 1024) and outer.count(MAGIC_P) == nest.extents[0][2] + 2
    good("nested", "§17.5, §17.6: pieces of another sidecar in recovery shards are not looked for while all is at its place", outer, outer_root)
    broken = bytes(8) + outer[8:]
    add("nested-first-lost", "§17.6: the first piece is lost, so that the pieces in recovery shards are found", "ambiguous", broken)
    good("nested-first-lost-root", "§17.6: the same, with the root given", broken, outer_root, given=outer_root)
    return out
