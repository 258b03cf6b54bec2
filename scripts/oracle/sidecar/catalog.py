"""§17.2, §17.3: reading the catalog."""
import struct
from collections import namedtuple

from ..basics import BLAKE3, ZERO32, Fault, align
from ..encoding.trees import proof_size
from ..hashes import digest
from .group import SMALL, UNSAID_RUN, WIDE, Group
from .parts import (
    ANCHORED, ANNOUNCED, BUSY, CACHES, EXCLUSION, FILE, FOLDER, GONE, HARDLINK, HEADER, KINDS, LAYOUT, MARKS, MOST_ZEROS, OMITTED, POLICY, STACKS, WORDS,
    SYMLINK, WITH_SHA256, WITH_ZEROS, extent_size, catalog_root,
)
from .writer import path_limit

Entry = namedtuple("Entry", "path kind size blake3 sha256 runs tail target link seconds nanos mode")


class Cursor:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, size):
        if size > len(self.data) - self.pos:
            raise Fault("invalid", "§17.2: the entries end inside an entry")
        self.pos += size
        return self.data[self.pos - size:self.pos]

    def varint(self):
        x = 0
        for j in range(10):
            byte = self.take(1)[0]
            x |= (byte & 127) << 7 * j
            if byte < 128:
                if x >= 1 << 63 or j and not byte:
                    raise Fault("invalid", "§17.2: a varint is too large, or not the shortest")
                return x
        raise Fault("invalid", "§17.2: a varint has more than 10 bytes")

    def step(self):
        z = self.varint()
        return -((z + 1) // 2) if z & 1 else z // 2


def limited(size, most):
    if size > most:
        raise Fault("invalid", "§17.3: a length is beyond its limit")
    return size


def check_disjoint(ranges, what):
    ranges = sorted(ranges)
    for (_, end), (start, _) in zip(ranges, ranges[1:]):
        if start < end:
            raise Fault("invalid", "§17.2: %s overlap" % what)


def check_path(path, before):
    """§17.2: checks a path by itself, and against the path before"""
    if not 1 <= len(path) <= 4096 or b"\0" in path:
        raise Fault("invalid", "§17.2: a path is empty, too long or has a NUL")
    if any(not 1 <= len(part) <= 255 or part in (b".", b"..") for part in path.split(b"/")):
        raise Fault("invalid", "§17.2: a part of a path")
    if before is not None and path <= before:
        raise Fault("invalid", "§17.2: paths do not ascend")


def check_folders(kinds):
    """§17.2: an entry with others below it is a folder. kinds: by path, ascending"""
    for path in kinds:
        at = path.rfind(b"/")
        while at >= 0 and path[:at] not in kinds:       # an entry that is found was checked with all above it
            at = path.rfind(b"/", 0, at)
        if at >= 0 and kinds[path[:at]] != FOLDER:
            raise Fault("invalid", "§17.2: below an entry that is no folder")


class Catalog:
    """§17.2, §17.3: the metadata of an encoding, checked"""

    def __init__(self, metadata, layout, pg, size, whole=None):
        """size: bytes of the catalog; whole: the extent of the generation that this one differs from"""
        self.before, self.generation, start, blocks, _, block = struct.unpack_from("<32sQQQQI", layout)
        if size > len(metadata) or size < 64:
            raise Fault("invalid", "§17.4: the catalog is longer than the metadata, or too short")
        data = metadata[:size]
        self.root = catalog_root(data)
        version, features, self.block, extents, groups, entries, entry_bytes, total = struct.unpack_from("<IIIIIIQQ", data)
        if version != 1 or features not in (0, 1, 2, 3, 6, 7):
            raise Fault("refused", "§17.2: version or features")
        if self.block not in [1 << j for j in range(10, 21)] or extents < 1 or groups < 1 or any(data[40:64]):
            raise Fault("invalid", "§17.2: the block, no extents, no groups, or bytes that are not zero")
        at = 64 + 32 * extents + 32 * groups
        if at + entry_bytes > size:
            raise Fault("invalid", "§17.2: the catalog is too short for what it says")
        self.extents, self.groups = [], []
        for j in range(extents):
            *extent, zero = struct.unpack_from("<QQIIQ", data, 64 + 32 * j)
            if zero or extent[2] < 2 or extent[0] + extent_size(extent, self.block) >= 1 << 62:
                raise Fault("invalid", "§17.2: an extent")
            if self.extents and extent[0] < self.extents[-1][0] + extent_size(self.extents[-1], self.block):
                raise Fault("invalid", "§17.2: extents overlap or do not ascend")
            self.extents.append(extent)
        positions = shards = 0
        taken = []
        for j in range(groups):
            k, m, G, extent, code, said, first, zeros = struct.unpack_from("<HHIIHHQQ", data, at - 32 * (groups - j))
            says = features & 4 and code == WIDE and G > 1
            if said and not says or zeros or k < 1 or m < 1 or G < 1 or extent >= extents or first + m * G > self.extents[extent][1]:
                raise Fault("invalid", "§17.2: a group")
            group = Group(k, m, G, extent, first, positions, shards, code, said if says else UNSAID_RUN)
            is_wide = code == WIDE and features & 2 and k + m <= 65536 and m <= 32768 and group.run and k % group.run == 0
            if not is_wide and (code != SMALL or k + m > 256):
                raise Fault("invalid", "§17.1: a code")
            self.groups.append(group)
            taken.append(((extent, first), (extent, first + m * G)))
            positions, shards = positions + k * G, shards + (k + m) * G
        check_disjoint(taken, "the recovery shards of groups")
        self.positions = positions
        if at + entry_bytes + 16 * shards > size:
            raise Fault("invalid", "§17.2: the catalog does not have the bytes that it says")
        attributes = metadata[size:]
        self.digests = [data[o:o + 16] for o in range(at + entry_bytes, at + entry_bytes + 16 * shards, 16)]
        self.read_entries(Cursor(data[at:at + entry_bytes]), entries, features & 1)
        n, front = pg.k + pg.m, align(HEADER + LAYOUT + proof_size(pg), 64)
        if self.extents[-1] != [start, blocks, n * pg.G, front + pg.L] or block != self.block or (self.generation == 1) != (self.before == ZERO32) or not self.generation:
            raise Fault("invalid", "§17.2: the last extent is not that of the pieces, or §17.4: the generation")
        if self.generation == 1 and (start or extents > 1):
            raise Fault("invalid", "§17.4: generation 1 has one extent, which starts at 0")
        if whole and list(whole) not in self.extents:
            raise Fault("invalid", "§17.4: the extent of the whole generation is none of these")
        self.read_attributes(attributes)
        if sum(x.size for x in self.entries) != total:
            raise Fault("invalid", "§17.2: the sum of the sizes")
        anchored = sum(o * self.block % ANCHORED == 0 for start, end, _, first in self.whole for o in range(first, first + end - start))
        if at + entry_bytes + 16 * shards + 8 * anchored != size:
            raise Fault("invalid", "§17.2: the catalog does not end behind the anchors")
        size = struct.unpack_from("<H", attributes, 16 * entries)[0]
        self.hint, parts = attributes[16 * entries + 2:][:size], attributes[16 * entries + 2 + size:]
        if len(self.hint) != size or b"\0" in self.hint:
            raise Fault("invalid", "§17.3: the base is cut off, or it has a NUL")
        self.read_parts(Cursor(parts), entries)

    def read_parts(self, data, entries):
        """§17.3"""
        self.marks, self.caches, self.anchor, self.patterns, self.omitted, before = [], False, b"", [], [], 0
        self.announced, self.policy_anchor, self.rules, self.stacks = False, b"", [], {}
        while data.pos < len(data.data):
            kind = data.take(1)[0]
            if not MARKS <= kind <= STACKS:
                raise Fault("refused", "§17.3: a part of kind %d" % kind)
            part = data.take(data.varint())
            if kind <= before or not part:
                raise Fault("invalid", "§17.3: parts do not ascend, or one is empty")
            before = kind
            if kind == MARKS:
                if len(part) != 8 * entries:
                    raise Fault("invalid", "§17.3: not one mark for each entry")
                self.marks = [x for x, in struct.iter_unpack("<Q", part)]
            elif kind == EXCLUSION:
                self.read_exclusion(part)
            elif kind == OMITTED:
                self.read_omitted(part)
            elif kind == POLICY:
                self.read_policy(part)
            else:
                self.read_stacks(part)

    def read_exclusion(self, part):
        """§17.3, part 2"""
        if len(part) > 1 << 14:
            raise Fault("invalid", "§17.3: the patterns are too long")
        data = Cursor(part)
        flags = data.take(1)[0]
        if flags & ~CACHES:
            raise Fault("refused", "§17.3: a flag of part 2")
        self.caches, self.anchor = bool(flags), self.read_anchor(data)
        while data.pos < len(part):
            pattern = self.read_pattern(data)
            if self.patterns and pattern <= self.patterns[-1]:
                raise Fault("invalid", "§17.3: a pattern does not ascend")
            self.patterns.append(pattern)
        if not self.caches and not self.patterns:
            raise Fault("invalid", "§17.3: part 2 leaves nothing out")

    @staticmethod
    def read_anchor(data):
        """§17.3, parts 2 and 4"""
        anchor = data.take(limited(data.varint(), 4096))
        if anchor:
            check_path(anchor, None)
        return anchor

    @staticmethod
    def read_pattern(data):
        """§17.3, parts 2 and 4"""
        pattern = data.take(limited(data.varint(), 1024))
        try:
            pattern.decode()
        except UnicodeDecodeError:
            raise Fault("invalid", "§17.3: a pattern is not UTF-8") from None
        if not pattern or b"\0" in pattern:
            raise Fault("invalid", "§17.3: a pattern is empty, or has a NUL")
        return pattern

    def read_policy(self, part):
        """§17.3, part 4"""
        if len(part) > 1 << 14:
            raise Fault("invalid", "§17.3: the policy is too long")
        data = Cursor(part)
        flags = data.take(1)[0]
        if flags & ~ANNOUNCED:
            raise Fault("refused", "§17.3: a flag of part 4")
        self.announced, self.policy_anchor = bool(flags), self.read_anchor(data)
        while data.pos < len(part):
            words = data.take(1)[0]
            if words >= 2 * BUSY:
                raise Fault("refused", "§17.3: words of a rule")
            if words not in WORDS:
                raise Fault("invalid", "§17.3: words of a rule that contradict each other")
            rule = words, self.read_pattern(data)
            if self.rules and rule <= self.rules[-1]:
                raise Fault("invalid", "§17.3: a rule does not ascend")
            self.rules.append(rule)
        if not self.rules:
            raise Fault("invalid", "§17.3: part 4 has no rule")

    def read_stacks(self, part):
        """§17.3, part 5"""
        data, number = Cursor(part), -1
        while data.pos < len(part):
            number += 1 + data.varint()
            file = self.entries[number] if number < len(self.entries) else None
            blocks = file.size // self.block - 1 if file and file.kind & 15 == FILE and file.size > self.block else 0
            if blocks < 1:
                raise Fault("invalid", "§17.3: a stack of no file with two whole blocks")
            self.stacks[number] = [data.take(32) for _ in range(bin(blocks).count("1"))]

    def read_omitted(self, part):
        """§17.3, part 3"""
        if len(part) > 1 << 22:
            raise Fault("invalid", "§17.3: too much is not protected")
        data = Cursor(part)
        while data.pos < len(part):
            reason = data.take(1)[0]
            if reason not in (1, 2, 3, 4):
                raise Fault("refused", "§17.3: reason %d" % reason)
            path = data.take(limited(data.varint(), 4352))
            if not path or b"\0" in path or any(x in (b"", b".", b"..") for x in path.split(b"/")) or self.omitted and path <= self.omitted[-1][1]:
                raise Fault("invalid", "§17.3: a path that is not protected")
            self.omitted.append((reason, path))

    def read_attributes(self, attributes):
        """§17.3"""
        if len(attributes) < 16 * len(self.entries) + 2:
            raise Fault("invalid", "§17.3: the metadata are too short")
        for number, x in enumerate(self.entries):
            seconds, nanos, mode, zero = struct.unpack_from("<qIHH", attributes, 16 * number)
            if zero or mode > 0o7777 or nanos >= 10 ** 9:
                raise Fault("invalid", "§17.3: bytes that are not zero, permissions or nanoseconds")
            self.entries[number] = x._replace(seconds=seconds, nanos=nanos, mode=mode)

    def read_entries(self, data, count, shares):
        """§17.2: checks the entries in the order that this section gives"""
        block, kinds, path, whole_at, packed_at, paths, zeros = self.block, {}, None, 0, 0, 0, 0
        # whole: (position, end, entry, first block of the file); packed: (byte, end, entry, byte of the file)
        self.entries, self.whole, self.packed = [], [], []
        for number in range(count):
            shared = data.varint()
            if shared > len(path or b""):
                raise Fault("invalid", "§17.2: more is shared than there is")
            rest = data.varint()
            if shared + rest > 4096:
                raise Fault("invalid", "§17.2: a path is too long")
            before, path = path, (path or b"")[:shared] + data.take(rest)
            paths += len(path)
            if paths > path_limit(len(data.data)):
                raise Fault("refused", "§17.2: the bytes of all paths")
            kind = data.take(1)[0]
            if kind not in KINDS:
                raise Fault("refused", "§17.2: kind %d" % kind)
            check_path(path, before)
            kinds[path] = kind & 15
            size, content, sha256, runs, tail, target, link = 0, None, None, [], None, None, None
            if kind & 15 == FILE:
                size, content = data.varint(), data.take(32)
                sha256 = data.take(32) if kind & WITH_SHA256 else None
                if not size and content != digest(BLAKE3, b""):
                    raise Fault("invalid", "§17.2: an empty file has the BLAKE3 of no bytes")
                left = size // block if size > block else 0
                before_it = zeros
                if left:
                    for _ in range(data.varint()):
                        length = data.varint() if kind & WITH_ZEROS else None
                        if length is not None and length & 1:
                            if not 1 <= length // 2 <= left:
                                raise Fault("invalid", "§17.2: a run of zeros is empty or too long")
                            zeros, left = zeros + length // 2 * block, left - length // 2
                            continue
                        whole_at += data.step()
                        length = data.varint() if length is None else length // 2
                        if not 1 <= length <= left or whole_at < 0 or whole_at + length >= 1 << 62:
                            raise Fault("invalid", "§17.2: a run is empty, too long or too far")
                        first = size // block - left
                        runs.append((first, whole_at, length))
                        self.whole.append((whole_at, whole_at + length, number, first))
                        whole_at, left = whole_at + length, left - length
                    if left:
                        raise Fault("invalid", "§17.2: the runs are too short")
                if kind & WITH_ZEROS and zeros == before_it:
                    raise Fault("invalid", "§17.2: no run is of zeros")
                rest = size % block if size > block else size
                if rest:
                    packed_at += data.step()
                    if packed_at < 0 or packed_at + rest >= 1 << 62 or packed_at // block != (packed_at + rest - 1) // block:
                        raise Fault("invalid", "§17.2: a tail is too far, or not within one position")
                    tail = packed_at
                    self.packed.append((packed_at, packed_at + rest, number, size - rest))
                    packed_at += rest
                if zeros > MOST_ZEROS:
                    raise Fault("refused", "§17.2: the zeros of all files")
            elif kind == SYMLINK:
                length = data.varint()
                if not 1 <= length <= 4095:
                    raise Fault("invalid", "§17.2: the length of a target")
                target = data.take(length)
                if b"\0" in target:
                    raise Fault("invalid", "§17.2: a target has a NUL")
            elif kind == HARDLINK:
                link = data.varint()
                if link >= number or self.entries[link].kind & 15 != FILE:
                    raise Fault("invalid", "§17.2: a hard link to what is not a file before it")
            self.entries.append(Entry(path, kind, size, content, sha256, runs, tail, target, link, 0, 0, 0))
        if data.pos != len(data.data):
            raise Fault("invalid", "§17.2: bytes of the entries are left over")
        check_folders(kinds)
        if any(end > self.positions for _, end, _, _ in self.whole) or any(end > self.positions * block for _, end, _, _ in self.packed):
            raise Fault("invalid", "§17.2: a run or a tail is outside")
        once = set if shares else list
        check_disjoint([x[:2] for x in once((start, end, first) for start, end, _, first in self.whole)], "runs")
        check_disjoint(once(x[:2] for x in self.packed), "pieces of packed bytes")
        used = {start // block for start, _, _, _ in self.packed}
        check_disjoint(list({x[:2] for x in self.whole}) + [(p, p + 1) for p in used], "a run and packed bytes")
        for group in self.groups:
            first, at = group.position, group.digest_at
            for p in range(first, first + group.k * group.G):
                if self.digests[at + p - first] == GONE and (p in used or any(start <= p < end for start, end, _, _ in self.whole)):
                    raise Fault("invalid", "§17.2: a position that is named is marked as lost")


def places_of(catalog, x):
    """The positions of the bytes of a file, in order"""
    return [p for _, start, length in x.runs for p in range(start, start + length)] + ([x.tail // catalog.block] if x.tail is not None else [])
