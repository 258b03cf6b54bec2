"""§17.10: the list of a repair."""
import os
import re
import stat

from ..basics import BLAKE3
from ..hashes import digest
from .files import Originals, add_known, check_entry, look, mend
from .parts import FILE

MOST_OF_LIST = 1 << 26


def piece_digest(data):
    return digest(BLAKE3, data)[:8].hex()


def pieces_of(catalog, x, rows, content):
    """{offset: bytes} of the pieces in positions of a file that are not intact; bytes behind its end are zeros"""
    piece, found, block = min(4096, catalog.block), {}, catalog.block
    whole = x.size // block if x.size > block else 0
    has = {first + j: rows[start + j] is not None for first, start, length in x.runs for j in range(length)}
    for number in range(whole + (x.tail is not None)):
        zeros = number < whole and number not in has
        if not content[number * block:(number + 1) * block].strip(b"\0") if zeros else has[number] if number < whole else rows[x.tail // block] is not None:
            continue
        end = min(x.size, (number + 1) * block)
        for at in range(number * block, end, piece):
            part = content[at:min(at + piece, end)]
            found[at] = part + bytes(min(piece, end - at) - len(part))
    return found


def repair_list(reader, base, mended, made=()):
    """The text of the list before a repair that mends the entries `mended`, and makes the entries `made`"""
    catalog, contents = reader.catalog, {}
    for number, x in enumerate(catalog.entries):
        check_entry(catalog, base, x, contents, number)
    rows = Originals(catalog, contents).rows
    lines = ["fec repair of " + catalog.root.hex()] + ["+%d" % x for x in sorted(made)]
    for number in sorted(mended):
        line, end = str(number), None
        for at, part in sorted(pieces_of(catalog, catalog.entries[number], rows, contents[number]).items()):
            line += ("" if at == end else " %d:" % at) + piece_digest(part)
            end = at + min(4096, catalog.block)
        lines.append(line)
    return "".join(x + "\n" for x in lines)


def read_list(text, catalog):
    """{entry: {offset: digits}} of the files that a list names; nothing for a list of another root"""
    piece, files = min(4096, catalog.block), {}
    lines = text.split("\n")
    if lines[0] != "fec repair of " + catalog.root.hex():
        return {}
    for line in lines[1:]:
        words, pieces, end = line.split(" "), {}, 0
        good = re.fullmatch("[0-9]+", words[0]) is not None
        for word in words[1:]:
            match = re.fullmatch("([0-9]+):((?:[0-9a-f]{16})+)", word)
            if not match or int(match[1]) % piece or int(match[1]) < end:
                good = False
                break
            digits = [match[2][x:x + 16] for x in range(0, len(match[2]), 16)]
            pieces.update({int(match[1]) + n * piece: x for n, x in enumerate(digits)})
            end = int(match[1]) + len(digits) * piece
        if good:
            files[int(words[0])] = pieces
    return files


def half_mended(reader, base, path):
    """The numbers of the entries that a list shows to be half mended"""
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1 or info.st_uid not in (0, os.geteuid()):
        return set()
    catalog, contents, found = reader.catalog, {}, set()
    with open(path, "rb") as f:
        files = read_list(f.read(MOST_OF_LIST).decode("ascii", "replace"), catalog)
    for number, x in enumerate(catalog.entries):
        check_entry(catalog, base, x, contents, number)
    originals = Originals(catalog, contents)
    rows = list(originals.rows)
    originals.right = {n for n, data in contents.items() if data is not None and digest(BLAKE3, data[:catalog.entries[n].size]) == catalog.entries[n].blake3}
    add_known(catalog, originals)
    right, _ = mend(catalog, originals, reader.recovery)
    for number, listed in files.items():
        x = catalog.entries[number] if number < len(catalog.entries) else None
        if x is None or x.kind & 15 != FILE or contents.get(number) is None or len(contents[number]) != x.size:
            continue
        if look(base, x.path).st_ctime_ns <= info.st_ctime_ns:
            continue
        now = pieces_of(catalog, x, rows, contents[number])
        places = {first + j: start + j for first, start, length in x.runs for j in range(length)}

        def is_right(at, part):
            number = at // catalog.block
            tail = x.tail is not None and at >= x.size - x.size % catalog.block if x.size > catalog.block else x.tail is not None
            if not tail and number not in places:
                return not any(part)
            row = right[x.tail // catalog.block if tail else places[number]]
            start = at % catalog.block + (x.tail % catalog.block if tail else 0)
            return row is not None and row[start:start + len(part)] == part

        if all(listed.get(at) == piece_digest(part) or is_right(at, part) for at, part in now.items()):
            found.add(number)
    return found
