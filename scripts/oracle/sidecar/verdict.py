"""§17.7, §17.9: the state of a file, by what is known of it."""
import itertools
import re
import struct

from ..basics import BLAKE3
from ..hashes import digest
from .parts import CHANGES, GOES, ONCE, STAYS

HOUR = 3600 * 10 ** 9
FACTS = "is_file has_size has_bytes has_mode once time writer record".split()
VALUES = [(False, True)] * 4 + [("no", "yes", "grown"), ("same", "shifted", "other"), ("nobody", "somebody", "unknown"), ("believed", "older", "newer", "unproved")]


def state_of(is_file, has_size, has_bytes, has_mode, once, time, writer, record):
    """The table of §17.7. record: nothing was asked for (believed), or a root or a signature, which proves the record
    of a file that changed before the sidecar (older) or not (newer), or does not prove it (unproved). once: whether the
    policy says that the file is written once, and if so whether it has grown"""
    if not is_file:
        return "edited"
    if has_size and has_bytes:
        return "intact" if has_mode else "mode"
    if once == "yes" and record != "unproved":
        return "rotten"
    if not has_size or time == "other":
        return "edited"
    if writer == "somebody":
        return "changed"
    if record == "unproved" or record == "newer" and writer != "nobody":
        return "edited"
    return "rotten"


def time_of(found, recorded, has_marks):
    """§17.7, in nanoseconds: a time against the recorded one"""
    if found == recorded:
        return "same"
    steps = {recorded}
    for step in (10 ** 7, 10 ** 9, 2 * 10 ** 9):
        down = recorded // step * step
        steps |= {down} if recorded % 10 ** 9 == 0 else {down, down + step}
    hours = {found - hours * HOUR for hours in range(-24, 25)}
    return "shifted" if has_marks and steps & hours else "other"


def mark_of(changed, inode):
    """§17.3; changed in nanoseconds"""
    seconds, nanos = divmod(changed, 10 ** 9)
    return max(1, struct.unpack("<Q", digest(BLAKE3, struct.pack("<qIQ", seconds, nanos, inode))[:8])[0])


def writer_of(found, recorded):
    return "unknown" if recorded == 0 else "nobody" if found == recorded else "somebody"


def marks_speak(writers):
    """§17.7: the marks of the files that are whole"""
    return "nobody" in writers or "somebody" not in writers


def regex_of(body):
    """§17.3: the expression that a glob stands for"""
    out, at, parts = "", 0, body.split("/")
    for number, text in enumerate(parts):
        last = number + 1 == len(parts)
        if text == "**":
            out += "(?:.+)" if last else "(?:[^/]+/)*"
            continue
        at = 0
        while at < len(text):
            c = text[at]
            at += 1
            if c == "\\":
                out += re.escape(text[at])
                at += 1
            elif c in "?*":
                out += "[^/]" + ("*" if c == "*" else "")
            elif c == "[":
                end = text.index("]", at + 1)
                inside = text[at:end]
                out += "[^/" + inside[1:] + "]" if inside[0] in "!^" else "[" + inside + "]"
                at = end + 1
            else:
                out += re.escape(c)
        out += "" if last else "/"
    return re.compile(out.encode("latin-1") if isinstance(out, str) else out, re.DOTALL)


def matches(pattern, path, anchor, is_folder):
    """§17.3: whether a pattern matches this path itself"""
    body = pattern[:-1] if pattern.endswith("/") else pattern
    if body != pattern and not is_folder:
        return False
    if "/" not in body:
        return bool(regex_of(body).fullmatch(path.split(b"/")[-1]))
    whole = regex_of(body.lstrip("/"))
    inner = path[len(anchor) + 1:] if anchor and path.startswith(anchor + b"/") else None
    return bool(whole.fullmatch(path) or inner is not None and whole.fullmatch(inner))


def words_of(rules, anchor, path, is_folder):
    """§17.3: the words that a policy has for a path, without those that give way"""
    parts, words = path.split(b"/"), 0
    for count in range(1, len(parts) + 1):
        at, folder = b"/".join(parts[:count]), count < len(parts) or is_folder
        for of, pattern in rules:
            words |= of if matches(pattern, at, anchor, folder) else 0
    return words & ~(ONCE if words & CHANGES else 0) & ~(STAYS if words & GOES else 0)


def policies():
    """Policies with the words of paths"""
    restic = [(5, "/config"), (5, "/data/"), (5, "/snapshots/"), (16, "*-tmp-*"), (16, "/locks/")]
    git = [(5, "/objects/"), (10, "/objects/info/"), (16, "*.lock"), (16, "tmp_obj_*")]
    mixed = [(1, "*.[jJ][pP][gG]"), (2, "raw/**"), (4, "**/old/*"), (9, "cur/"), (32, "/lock.*")]
    for rules, anchor, paths in (
            (restic, "repo", "repo repo/config repo/data repo/data/ab repo/data/ab/abcd repo/data/ab/x-tmp-1 repo/locks/1 repo/x/data/y other/data/y config data/ab repo/snapshots/1 repo/x/locks"),
            (restic, "", "config data/ab x/config x/data/ab repo"),
            (git, "g.git", "g.git/objects/ab/cd g.git/objects/info/packs g.git/objects/pack/p.idx g.git/HEAD.lock g.git/objects/pack/tmp_obj_1 g.git/refs"),
            (mixed, "d", "d/a.jpg d/b.JPG d/c.jpg.xmp d/raw/a.jpg d/raw d/x/old/y d/x/old/y/z d/old/y old/y d/cur/1 d/x/cur/2:2,S d/lock.exclusive d/x/lock.roster")):
        for path in paths.split():
            for is_folder in (False, True):
                yield dict(rules=[list(rule) for rule in rules], anchor=anchor, path=path, is_folder=is_folder, words=words_of(rules, anchor.encode(), path.encode(), is_folder))


def table():
    """All facts with their state, times and marks, and words of policies, for tests/golden/verdicts.json"""
    rows = [dict(zip(FACTS, facts), state=state_of(*facts)) for facts in itertools.product(*VALUES)]
    bases = [1700000001123456789, 1700000002000000000, 1700000001000000000, 1700000001120000000, -1500000000, 0, 4102444800999999999]
    moves = [0, 1, -1, 10 ** 7, 10 ** 9, -10 ** 9, 2 * 10 ** 9, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 25 * HOUR, HOUR // 2, HOUR + 1]
    rounded = [lambda x, s=s, up=up: (x // s + up) * s for s in (10 ** 7, 10 ** 9, 2 * 10 ** 9) for up in (0, 1)] + [lambda x: x]
    times = [dict(found=list(divmod(change(base) + move, 10 ** 9)), recorded=list(divmod(base, 10 ** 9)), has_marks=has, time=time_of(change(base) + move, base, has))
             for base in bases for move in moves for change in rounded for has in (True, False)]
    marks = [dict(changed=list(divmod(changed, 10 ** 9)), inode=inode, mark="%016x" % mark_of(changed, inode))
             for changed, inode in ((0, 0), (1700000001123456789, 42), (-1, 2 ** 64 - 1))]
    return dict(states=rows, times=times, marks=marks, policies=list(policies()))
