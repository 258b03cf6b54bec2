"""§17.7: checking and mending files."""
import os
import stat

from ..basics import BLAKE3, Fault
from ..gf import evaluate
from ..hashes import digest
from .catalog import places_of
from .parts import EXECUTABLE, FILE, FOLDER, GONE, HARDLINK, NOTHING, SYMLINK, chaining_values, plain_digests
from .pieces import Reader


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
    """§17.7: intact, missing, edited or rotten; held: a root was given, which does not prove the record (§17.9)"""
    info = look(base, x.path)
    if info is None:
        return "missing"
    of = catalog.entries[x.link] if x.kind == HARDLINK else x
    data = read_file(base, x.path)[1]
    whole = data is not None and len(data) == of.size and digest(BLAKE3, data) == of.blake3 if of.kind & 15 == FILE else False
    right = bool(info.st_mode & 0o100) == bool(of.kind & EXECUTABLE)
    if x.kind & 15 == FILE:
        contents[number] = data
        intact = whole and right
    elif x.kind == FOLDER:
        intact = stat.S_ISDIR(info.st_mode)
    elif x.kind == SYMLINK:
        intact = stat.S_ISLNK(info.st_mode) and os.readlink(os.path.join(base, x.path)) == x.target
    else:
        file = look(base, of.path)
        intact = (info.st_dev, info.st_ino) == (file.st_dev, file.st_ino) if file else whole
    if intact:
        return "intact"
    kind = {FOLDER: stat.S_ISDIR, SYMLINK: stat.S_ISLNK}.get(x.kind, stat.S_ISREG)
    size = len(x.target) if x.kind == SYMLINK else of.size
    return "rotten" if (not held or kind != stat.S_ISREG) and kind(info.st_mode) and info.st_size == size and info.st_mtime_ns == x.seconds * 10 ** 9 + x.nanos and (right or x.kind == SYMLINK) else "edited"


class Originals:
    """§17.1: rows: the bytes at each position, None for an erasure; named: whether an entry names the position"""

    def __init__(self, catalog, contents):
        block, count = catalog.block, catalog.positions
        starts = [(a + p, d + p) for k, m, G, _, _, a, d in catalog.groups for p in range(k * G)]
        digest_of = {p: catalog.digests[d] for p, d in starts}
        self.rows, self.named = [None] * count, [False] * count
        for start, end, number, first in catalog.whole:
            data = contents.get(number) or b""
            held = [p for p in range(start, end) if (first + p - start + 1) * block <= len(data)]
            at = [(first + p - start) * block for p in held]
            for p, o, value in zip(held, at, chaining_values([data[o:o + block] for o in at], at)):
                if value[:16] == digest_of[p]:
                    self.rows[p] = data[o:o + block]
            self.named[start:end] = [True] * (end - start)
        blocks, lost = {}, set()
        for start, end, number, offset in catalog.packed:
            part, p = (contents.get(number) or b"")[offset:offset + end - start], start // block
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
        self.digest_of = digest_of
        self.rows = [None if digest_of[p] == GONE else row for p, row in enumerate(self.rows)]


def sets_of(catalog, originals, recovery):
    """(k, m, positions, recovery shards) of each set; recovery may be None"""
    for number, (k, m, G, _, _, a, _) in enumerate(catalog.groups):
        for s in range(G):
            yield k, m, [a + i * G + s for i in range(k)], [recovery[number][j * G + s] for j in range(m)]


def assemble(catalog, x, rows):
    """The content of a file from its blocks, or None when a block is missing. A file that has all blocks is whole, or
    the catalog contradicts itself (§17.1)"""
    held, whole = [rows[p] for p in places_of(catalog, x)], sum(n for _, n in x.runs)
    if None in held:
        return None
    tail = held[whole][x.tail % catalog.block:][:x.size - whole * catalog.block] if x.tail is not None else b""
    content = b"".join(held[:whole]) + tail
    if digest(BLAKE3, content) != x.blake3:
        raise Fault("invalid", "§17.1: all blocks of a file have their digests and it is not whole: " + shown(x.path))
    return content


def mendable(catalog, originals, recovery, states):
    """Tells whether every position can be had that a damaged file needs; other positions do not count (choice)"""
    able = {p for k, m, places, shards in sets_of(catalog, originals, recovery) for p in places
            if originals.rows[p] is not None or originals.digest_of[p] != GONE and sum(originals.rows[q] is None for q in places) <= sum(x is not None for x in shards)}
    return all(able.issuperset(places_of(catalog, x)) for x, state in zip(catalog.entries, states) if state != "intact" and x.kind & 15 == FILE)


def shown(path):
    """§7: a path, escaped"""
    return "".join(c if c.isprintable() and c != "\\" else "".join("\\x%02x" % x for x in os.fsencode(c)) for c in path.decode("utf-8", "surrogateescape"))


def inspect(reader, base, held=False):
    """(states, whether all can be mended, the originals)"""
    catalog, contents = reader.catalog, {}
    states = [check_entry(catalog, base, x, contents, number, held) for number, x in enumerate(catalog.entries)]
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
            if states[number] != "missing" and any(originals.rows[p] is None for start, length in x.runs for p in range(start, start + length)):
                raise Fault("invalid", "§17.1: a file has its BLAKE3, and one of its whole blocks has not its digest: " + shown(x.path))
        elif states[number] != "intact":
            assemble(catalog, x, originals.rows)
    originals.right, originals.contents, originals.untrue, originals.misplaced = right, contents, set(), None
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
    # A file whose bytes are right needs nothing.
    needs = ["intact" if number in right else state for number, state in enumerate(states)]
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
    for number, (k, m, G, _, _, a, d) in enumerate(catalog.groups):
        for s in set(range(G)) - reader.idle[number]:
            have = {i: rows[a + i * G + s] for i in range(k)}
            # Bytes are lost for good: any k shards that can be had stand for the set.
            if None in have.values():
                more = {k + j: reader.recovery[number][j * G + s] for j in range(m) if reader.recovery[number][j * G + s] is not None}
                have = dict(list({**{i: x for i, x in have.items() if x is not None}, **more}.items())[:k])
                if len(have) < k:
                    continue
            points = sorted(have)
            made = evaluate(points, [have[x] for x in points], range(k, k + m))
            if plain_digests(made) != [catalog.digests[d + k * G + j * G + s] for j in range(m)]:
                raise Fault("invalid", "§17.1: recovery shards are not those of their set")
    for x in catalog.entries:
        if x.kind & 15 == FILE:
            assemble(catalog, x, rows)


def check_base(reader, named):
    """§17.3: the user has to name a base that is another folder than that of the sidecar"""
    if not named and reader.catalog.hint:
        raise Fault("ambiguous", "§17.3: the base is another folder than that of the sidecar: name it with --base; it may be " + shown(reader.catalog.hint))


def verify(data, base, root=None, named=True, deep=False):
    """(lines, exit code)"""
    reader = Reader(data, root)
    check_base(reader, named)
    catalog, (intact, count) = reader.catalog, reader.count()
    states, able, originals = inspect(reader, base, root is not None)
    if deep and able:                                   # §17.1: losses are reported first
        look_deeper(reader, originals)
    # Folders and symbolic links have a line only when they are wrong.
    lines = ["%s %s" % (state, shown(x.path)) for x, state in zip(catalog.entries, states) if x.kind & 15 in (FILE, HARDLINK) or state != "intact"]
    lines += ["recovery %d of %d blocks intact, %d displaced" % (intact, count, reader.displaced), "root " + catalog.root.hex(), "mendable " + ("yes" if able else "no")]
    if reader.newer:
        lines.append("generation %d cannot be restored; this is %d" % (reader.newer, catalog.generation))
    return lines, 3 if not able else 0 if set(states) <= {"intact"} and reader.whole() else 1


def mend(catalog, originals, recovery, everything=False):
    """(every position that can be had, the number of wrong ones); everything: also positions that no entry names"""
    rows, wrong = list(originals.rows), 0
    for k, m, places, shards in sets_of(catalog, originals, recovery):
        have = {i: rows[p] for i, p in enumerate(places) if rows[p] is not None}
        gone = [i for i in range(k) if i not in have]
        more = {k + j: x for j, x in enumerate(shards) if x is not None}
        # §17.7
        is_idle = not any(originals.named[p] for p in places) and any(originals.digest_of[p] != NOTHING for p in places)
        if not any(originals.named[places[i]] or everything for i in gone) or len(gone) > len(more) or is_idle:
            continue
        points = sorted(have) + sorted(more)[:len(gone)]                # choice: one selection of k is tried
        for i, row in zip(gone, evaluate(points, [have[x] if x in have else more[x] for x in points], gone)):
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
                content = originals.contents[number][:x.size] if number in originals.right else assemble(catalog, x, rows)
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
