"""§17.7: checking and mending files."""
import os
import stat

from ..basics import BLAKE3, Fault
from ..hashes import digest
from .catalog import places_of
from .parts import EXECUTABLE, FILE, FOLDER, GONE, HARDLINK, NOTHING, SYMLINK, chaining_values, plain_digests
from .pieces import Reader
from .verdict import mark_of, marks_speak, state_of, time_of, writer_of


def look(base, path):
    """lstat, never through a symbolic link below the base; None if there is nothing"""
    at = base
    parts = path.split(b"/")
    try:
        for part in parts[:-1]:
            at = os.path.join(at, part)
            if not stat.S_ISDIR(os.lstat(at).st_mode):
                return None
        return os.lstat(os.path.join(at, parts[-1]))
    except OSError:
        return None


def read_file(base, path):
    info = look(base, path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return info, None
    try:
        with open(os.path.join(base, path), "rb") as f:
            return info, f.read()
    except OSError:
        return info, None


def check_entry(catalog, base, x, contents, number, held=False):
    """§17.7: the state of an entry, or the facts about a file; held: a root was given, which does not prove the record
    (§17.9)"""
    info = look(base, x.path)
    if info is None:
        return "missing"
    of = catalog.entries[x.link] if x.kind == HARDLINK else x
    data = read_file(base, x.path)[1]
    whole = data is not None and len(data) == of.size and digest(BLAKE3, data) == of.blake3 if of.kind & 15 == FILE else False
    if x.kind == FOLDER:
        return "intact" if stat.S_ISDIR(info.st_mode) else "edited"
    if x.kind == SYMLINK:
        return "intact" if stat.S_ISLNK(info.st_mode) and os.readlink(os.path.join(base, x.path)) == x.target else "edited"
    if x.kind & 15 == FILE:
        contents[number] = data
    else:
        file = look(base, of.path)
        if (info.st_dev, info.st_ino) == (file.st_dev, file.st_ino) if file else whole:
            return "intact"
        whole = False
    return dict(is_file=stat.S_ISREG(info.st_mode), has_size=info.st_size == of.size, has_bytes=whole, has_mode=bool(info.st_mode & 0o100) == bool(of.kind & EXECUTABLE), once="no",
                time=time_of(info.st_mtime_ns, x.seconds * 10 ** 9 + x.nanos, bool(catalog.marks)), record="unproved" if held else "believed",
                writer=writer_of(mark_of(info.st_ctime_ns, info.st_ino), catalog.marks[number] if catalog.marks else 0))


def check_entries(catalog, base, contents, held=False):
    """§17.7: the states of all entries. Marks say nothing where all files that are whole have others"""
    found = [check_entry(catalog, base, x, contents, number, held) for number, x in enumerate(catalog.entries)]
    facts = [x for x in found if isinstance(x, dict)]
    if not marks_speak([x["writer"] for x in facts if x["has_bytes"]]):
        for x in facts:
            x["writer"] = "unknown"
    times = {x["time"] for x in facts if x["has_bytes"]}
    if "same" in times and "shifted" not in times:
        for x in facts:
            x["time"] = "other" if x["time"] == "shifted" else x["time"]
    return [state_of(**x) if isinstance(x, dict) else x for x in found]


class Originals:
    """§17.1: rows: the bytes at each position, None for an erasure; named: whether an entry names the position"""

    def __init__(self, catalog, contents):
        block, count = catalog.block, catalog.positions
        # Bytes behind the end of a file are the zeros that they become when it gets its length.
        padded = {number: data.ljust(catalog.entries[number].size, b"\0") for number, data in contents.items() if data is not None}
        starts = [(x.position + p, x.digest_at + p) for x in catalog.groups for p in range(x.k * x.G)]
        digest_of = {p: catalog.digests[d] for p, d in starts}
        self.rows, self.named = [None] * count, [False] * count
        for start, end, number, first in catalog.whole:
            data = padded.get(number, b"")
            held = [p for p in range(start, end) if (first + p - start + 1) * block <= len(data)]
            at = [(first + p - start) * block for p in held]
            for p, o, value in zip(held, at, chaining_values([data[o:o + block] for o in at], at)):
                if value[:16] == digest_of[p]:
                    self.rows[p] = data[o:o + block]
            self.named[start:end] = [True] * (end - start)
        blocks, lost, shared = {}, set(), set()
        for start, end, number, offset in catalog.packed:
            if start in shared:                         # choice: the first file in a place gives its bytes
                continue
            shared.add(start)
            part, p = padded.get(number, b"")[offset:offset + end - start], start // block
            self.named[p] = True
            if len(part) < end - start:
                lost.add(p)
            else:
                # Bytes of the position that no entry names are zero.
                blocks.setdefault(p, bytearray(block))[start - p * block:end - p * block] = part
        for p, row in blocks.items():
            if p not in lost and plain_digests([bytes(row)])[0] == digest_of[p]:
                self.rows[p] = bytes(row)
        for p in range(count):
            if not self.named[p] and digest_of[p] == NOTHING:
                self.rows[p] = bytes(block)
        self.digest_of, self.contents = digest_of, contents
        self.right, self.tails, self.misplaced = set(), {}, None
        self.rows = [None if digest_of[p] == GONE else row for p, row in enumerate(self.rows)]


def add_known(catalog, originals):
    """§17.7: the bytes that need no recovery shards: zeros, and those that another file has. tails: the known tails,
    whatever else is lost in their positions"""
    block, rows, digest_of, contents = catalog.block, originals.rows, originals.digest_of, originals.contents
    at = {p: (first + p - start) * block for start, end, _, first in catalog.whole for p in range(start, end)}
    held = {(digest_of[p], o): rows[p] for p, o in at.items() if rows[p] is not None and p != originals.misplaced}
    lost = [p for p in at if rows[p] is None and digest_of[p] != GONE]
    for p, value in zip(lost, chaining_values([bytes(block)] * len(lost), [at[p] for p in lost])):
        rows[p] = bytes(block) if value[:16] == digest_of[p] else held.get((digest_of[p], at[p]))
    packed, held = {}, {}
    for start, end, number, offset in catalog.packed:
        packed.setdefault(start // block, []).append((start % block, end - start, number, offset))
        if number in originals.right or rows[start // block] is not None:
            row = contents[number][offset:] if number in originals.right else rows[start // block][start % block:]
            held[catalog.entries[number].blake3, offset, end - start] = row[:end - start]
    for p, parts in packed.items():                     # the tail of a file that is not the first one in its place
        row = bytearray(block)
        for start, size, number, offset in reversed(parts):
            row[start:start + size] = (contents.get(number) or b"")[offset:offset + size].ljust(size, b"\0")
        for start, size, number, offset in parts:
            own = (contents.get(number) or b"")[offset:offset + size]
            if len(own) == size and plain_digests([bytes(row[:start] + own + row[start + size:])])[0] == digest_of[p]:
                held[catalog.entries[number].blake3, offset, size] = own
    for p, parts in packed.items():
        if rows[p] is not None or digest_of[p] == GONE:
            continue
        row, unread, read, shared = bytearray(block), [], [], set()
        for start, size, number, offset in parts:
            x, own = catalog.entries[number], contents.get(number)
            part = (own or b"")[offset:offset + size].ljust(size, b"\0")
            if number not in originals.right:
                tail = bytes(size) if not offset and digest(BLAKE3, bytes(size)) == x.blake3 else held.get((x.blake3, offset, size))
                if tail is not None:
                    part = originals.tails[x.path] = tail
                else:
                    (unread if own is None else read).append((start, size))
            if start not in shared:
                row[start:start + size] = part
            shared.add(start)
        for zeros in (unread, read):
            for start, size in zeros:
                row[start:start + size] = bytes(size)
            if rows[p] is None and plain_digests([bytes(row)])[0] == digest_of[p]:
                rows[p] = bytes(row)


def sets_of(catalog, originals, recovery):
    """(group, positions, recovery shards) of each set; recovery may be None"""
    for group, row in zip(catalog.groups, recovery):
        for s in range(group.G):
            yield group, group.places(s), group.shards(s, row)


def has_blocks(catalog, x, data, rows):
    """Tells whether the whole blocks of a file are those of their positions, and zeros where they have none"""
    block, zeros = catalog.block, bytearray(data[:x.size // catalog.block * catalog.block if x.size > catalog.block else 0])
    for first, start, length in x.runs:
        if any(rows[start + j] != data[(first + j) * block:(first + j + 1) * block] for j in range(length)):
            return False
        zeros[first * block:(first + length) * block] = bytes(length * block)
    return not any(zeros)


def has_tail(catalog, x, data, rows):
    if x.tail is None:
        return True
    row, offset = rows[x.tail // catalog.block], x.size // catalog.block * catalog.block if x.size > catalog.block else 0
    return row is not None and row[x.tail % catalog.block:][:x.size - offset] == data[offset:x.size]


def assemble(catalog, x, rows, tails={}):
    """The content of a file from its blocks, or None when a block is missing. A file that has all blocks is whole, or
    the catalog contradicts itself (§17.1)"""
    block, content = catalog.block, bytearray(x.size)
    if x.tail is not None:
        row = bytes(x.tail % block) + tails[x.path] if x.path in tails else rows[x.tail // block]
        if row is None:
            return None
        offset = x.size // block * block if x.size > block else 0
        content[offset:] = row[x.tail % block:][:x.size - offset]
    for first, start, length in x.runs:
        if None in rows[start:start + length]:
            return None
        content[first * block:(first + length) * block] = b"".join(rows[start:start + length])
    content = bytes(content)
    if digest(BLAKE3, content) != x.blake3:
        raise Fault("invalid", "§17.1: all blocks of a file have their digests and it is not whole: " + shown(x.path))
    return content


def mendable(catalog, originals, recovery, states):
    """Tells whether every position can be had that a damaged file needs; other positions do not count (choice)"""
    able = {p for _, places, shards in sets_of(catalog, originals, recovery) for p in places
            if originals.rows[p] is not None or originals.digest_of[p] != GONE and sum(originals.rows[q] is None for q in places) <= sum(x is not None for x in shards)}
    def needs(x):
        return [p for _, start, length in x.runs for p in range(start, start + length)] if x.path in originals.tails else places_of(catalog, x)

    return all(able.issuperset(needs(x)) for x, state in zip(catalog.entries, states) if state != "intact" and x.kind & 15 == FILE)


def shown(path):
    """§7: a path, escaped"""
    return "".join(c if c.isprintable() and c != "\\" else "".join("\\x%02x" % x for x in os.fsencode(c)) for c in path.decode("utf-8", "surrogateescape"))


def inspect(reader, base, held=False):
    """(states, whether all can be mended, the originals)"""
    catalog, contents = reader.catalog, {}
    states = check_entries(catalog, base, contents, held)
    # §17.7: a missing file may stand under another of its names.
    for x, state in zip(catalog.entries, states):
        if x.kind == HARDLINK and state == "intact" and states[x.link] == "missing":
            contents[x.link] = read_file(base, x.path)[1]
    originals = Originals(catalog, contents)
    right = set()                                       # files whose bytes are right, perhaps with more behind them
    for number, x in enumerate(catalog.entries):
        if x.kind & 15 != FILE:
            continue
        data = contents.get(number)
        if data is not None and len(data) >= x.size and digest(BLAKE3, data[:x.size]) == x.blake3:
            right.add(number)
            if states[number] != "missing" and not has_blocks(catalog, x, data, originals.rows):
                raise Fault("invalid", "§17.1: a file has its BLAKE3, and one of its whole blocks has not its digest: " + shown(x.path))
        elif states[number] != "intact" and data is not None and len(data) >= x.size and has_blocks(catalog, x, data, originals.rows) and has_tail(catalog, x, data, originals.rows):
            raise Fault("invalid", "§17.1: all blocks of a file have their digests and it is not whole: " + shown(x.path))
    originals.right, originals.untrue = right, set()
    # untrue: positions that have not their digest though their files are right; look_deeper alone reports them.
    for start, end, number, offset in catalog.packed:
        p = start // catalog.block
        if originals.rows[p] is None and all(n in right for s, _, n, _ in catalog.packed if s // catalog.block == p):
            originals.untrue.add(p)
    # misplaced: a whole block that has not its digest, of a file that stands under another name and is right.
    for start, end, number, first in catalog.whole:
        for p in range(start, end) if number in right and states[number] == "missing" else ():
            if originals.rows[p] is None:
                at = (first + p - start) * catalog.block
                originals.rows[p] = contents[number][at:at + catalog.block]
                originals.misplaced = p
    for p in originals.untrue:
        row = bytearray(catalog.block)
        for start, end, number, offset in catalog.packed:
            if start // catalog.block == p:
                row[start - p * catalog.block:end - p * catalog.block] = contents[number][offset:offset + end - start]
        originals.rows[p] = bytes(row)
    add_known(catalog, originals)
    # A file whose bytes are right needs nothing, and what was edited is not lost.
    whole = ["intact" if number in right else state for number, state in enumerate(states)]
    originals.revertible = mendable(catalog, originals, reader.recovery, whole)
    needs = [state if state in ("rotten", "missing") else "intact" for state in whole]
    return states, mendable(catalog, originals, reader.recovery, needs), originals


def look_deeper(reader, originals):
    """§17.1: decodes every set and codes it again, and puts every file together"""
    catalog = reader.catalog
    if not all(x.is_coded_right() for x in reader.generations):
        raise Fault("invalid", "§17.1: metadata, coded once more, is not that of E")
    if originals.untrue or originals.misplaced is not None:
        raise Fault("invalid", "§17.1: whole files stand in a position that has not its digest")
    rows, wrong = mend(catalog, originals, reader.recovery, True)
    if wrong:
        raise Fault("invalid", "§17.1: a set is no codeword")
    for group, idle, row in zip(catalog.groups, reader.idle, reader.recovery):
        k, m, G, d = group.k, group.m, group.G, group.digest_at
        for s in set(range(G)) - idle:
            have = {i: rows[p] for i, p in enumerate(group.places(s)) if rows[p] is not None}
            # Bytes are lost for good: shards that can be had stand for the set.
            if len(have) < k:
                have.update((k + j, x) for j, x in enumerate(group.shards(s, row)) if x is not None)
                if len(have) < k:
                    continue
                have.update(zip([i for i in range(k) if i not in have], group.solve(have, [i for i in range(k) if i not in have])))
            made = group.solve({i: have[i] for i in range(k)}, range(k, k + m))
            if plain_digests(made) != [catalog.digests[d + k * G + j * G + s] for j in range(m)]:
                raise Fault("invalid", "§17.1: recovery shards are not those of their set")
    for x in catalog.entries:
        if x.kind & 15 == FILE:
            assemble(catalog, x, rows, originals.tails)


def around(folder):
    """§17.3: the folder around one named .fec, if that is no more open"""
    folder = os.path.realpath(folder)
    up = os.path.dirname(folder)
    inner, outer = os.stat(folder), os.stat(up)
    free = 0 if outer.st_mode & 0o1000 else outer.st_mode & 0o022
    may_group = free & 0o002 or free & 0o020 and inner.st_gid == outer.st_gid
    closed = (not inner.st_mode & 0o020 or may_group) and (not inner.st_mode & 0o002 or free & 0o002)
    owned = inner.st_uid in (outer.st_uid, os.geteuid(), 0)
    return up if os.path.basename(folder) == b".fec" and closed and owned else None


def check_base(reader, base, named):
    """§17.3: the base; the user has to name it if neither the folder of the sidecar nor its place tells it"""
    if named or not reader.catalog.hint:
        return base
    found = around(base) if reader.catalog.hint == b".." else None
    if found is None:
        raise Fault("ambiguous", "§17.3: the base is another folder than that of the sidecar: name it with --base; it may be " + shown(reader.catalog.hint))
    return found


def verify(data, base, root=None, named=True, deep=False):
    """(lines, exit code)"""
    reader = Reader(data, root)
    base = check_base(reader, base, named)
    catalog, (intact, count) = reader.catalog, reader.count()
    states, able, originals = inspect(reader, base, root is not None)
    if deep and originals.revertible:                   # §17.1: losses are reported first
        look_deeper(reader, originals)
    # Folders and symbolic links have a line only when they are wrong.
    lines = ["%s %s" % (state, shown(x.path)) for x, state in zip(catalog.entries, states) if x.kind & 15 in (FILE, HARDLINK) or state != "intact"]
    lines += ["recovery %d of %d blocks intact, %d displaced" % (intact, count, reader.displaced), "root " + catalog.root.hex(), "mendable " + ("yes" if able else "no")]
    if reader.newer:
        lines.append("generation %d cannot be restored; this is %d" % (reader.newer, catalog.generation))
    return lines, 3 if not able else 0 if set(states) <= {"intact", "mode"} and reader.whole() else 1


def mend(catalog, originals, recovery, everything=False):
    """(every position that can be had, the number of wrong ones); everything: also positions that no entry names"""
    rows, wrong = list(originals.rows), 0
    for group, places, shards in sets_of(catalog, originals, recovery):
        k = group.k
        have = {i: rows[p] for i, p in enumerate(places) if rows[p] is not None}
        gone = [i for i in range(k) if i not in have]
        more = {k + j: x for j, x in enumerate(shards) if x is not None}
        # §17.7
        is_idle = not any(originals.named[p] for p in places) and any(originals.digest_of[p] != NOTHING for p in places)
        if not any(originals.named[places[i]] or everything for i in gone) or len(gone) > len(more) or is_idle:
            continue
        for i, row in zip(gone, group.solve({**have, **more}, gone)):
            whole = [(first + places[i] - start) * catalog.block for start, end, _, first in catalog.whole if start <= places[i] < end]
            value = chaining_values([row], whole)[0][:16] if whole else plain_digests([row])[0]
            if value == originals.digest_of[places[i]] != GONE:
                rows[places[i]] = row
            elif originals.named[places[i]] or everything and originals.digest_of[places[i]] != GONE:
                wrong += 1
    return rows, wrong


def repair(data, base, out, root=None):
    """(lines, exit code): the files that are proved, in a new folder"""
    reader = Reader(data, root)
    catalog, lines = reader.catalog, []
    states, able, originals = inspect(reader, base)
    rows, wrong = mend(catalog, originals, reader.recovery)
    mask = os.umask(0)
    os.umask(mask)
    os.makedirs(out)
    lost = 0
    made = {}

    def place(path):
        os.makedirs(os.path.dirname(os.path.join(out, path)), exist_ok=True)
        return os.path.join(out, path)

    for number, x in enumerate(catalog.entries):
        if x.kind == FOLDER:
            os.makedirs(os.path.join(out, x.path), exist_ok=True)
        elif x.kind & 15 == FILE:
            try:
                content = originals.contents[number][:x.size] if number in originals.right else assemble(catalog, x, rows, originals.tails)
            except Fault:
                content, wrong = None, wrong + 1
            if content is None:
                lost += 1
                lines.append("lost " + shown(x.path))
                continue
            with open(place(x.path), "wb") as f:
                f.write(content)
            made[number] = x.path
        elif x.kind == HARDLINK and x.link in made:
            os.link(os.path.join(out, made[x.link]), place(x.path))
    for x in catalog.entries:
        if x.kind == SYMLINK:
            os.symlink(x.target, place(x.path))
    # A folder comes after the things in it. Nothing gets a setuid, setgid or sticky bit.
    for number, x in reversed(list(enumerate(catalog.entries))):
        if x.kind == FOLDER or number in made or x.kind == SYMLINK:
            path = os.path.join(out, x.path)
            if x.kind != SYMLINK:
                may_run = x.kind == FOLDER or x.kind & EXECUTABLE
                mode = x.mode & 0o777 & ~mask & (0o777 if may_run else 0o666)       # §17.3: nothing here is proved
                os.chmod(path, mode | (0o100 if x.kind & EXECUTABLE and x.kind != FOLDER else 0))
            os.utime(path, ns=(0, x.seconds * 10 ** 9 + x.nanos), follow_symlinks=False)
    return lines + ["root " + catalog.root.hex()], 0 if not lost else 5 if wrong and able else 3
