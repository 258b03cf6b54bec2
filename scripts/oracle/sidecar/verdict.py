"""§17.7, §17.9: the state of a file, by what is known of it."""
import itertools
import struct

from ..basics import BLAKE3
from ..hashes import digest

HOUR = 3600 * 10 ** 9
FACTS = "is_file has_size has_bytes has_mode time writer record".split()
VALUES = [(False, True)] * 4 + [("same", "shifted", "other"), ("nobody", "somebody", "unknown"), ("believed", "older", "newer", "unproved")]


def state_of(is_file, has_size, has_bytes, has_mode, time, writer, record):
    """The table of §17.7. record: nothing was asked for (believed), or a root or a signature, which proves the record
    of a file that changed before the sidecar (older) or not (newer), or does not prove it (unproved)"""
    if not is_file or not has_size:
        return "edited"
    if has_bytes:
        return "intact" if has_mode else "mode"
    if time == "other":
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


def table():
    """All facts with their state, and times and marks, for tests/golden/verdicts.json"""
    rows = [dict(zip(FACTS, facts), state=state_of(*facts)) for facts in itertools.product(*VALUES)]
    bases = [1700000001123456789, 1700000002000000000, 1700000001000000000, 1700000001120000000, -1500000000, 0, 4102444800999999999]
    moves = [0, 1, -1, 10 ** 7, 10 ** 9, -10 ** 9, 2 * 10 ** 9, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 25 * HOUR, HOUR // 2, HOUR + 1]
    rounded = [lambda x, s=s, up=up: (x // s + up) * s for s in (10 ** 7, 10 ** 9, 2 * 10 ** 9) for up in (0, 1)] + [lambda x: x]
    times = [dict(found=list(divmod(change(base) + move, 10 ** 9)), recorded=list(divmod(base, 10 ** 9)), has_marks=has, time=time_of(change(base) + move, base, has))
             for base in bases for move in moves for change in rounded for has in (True, False)]
    marks = [dict(changed=list(divmod(changed, 10 ** 9)), inode=inode, mark="%016x" % mark_of(changed, inode))
             for changed, inode in ((0, 0), (1700000001123456789, 42), (-1, 2 ** 64 - 1))]
    return dict(states=rows, times=times, marks=marks)
