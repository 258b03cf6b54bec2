"""§9.2, §10, §11: reading any input."""
import os
from collections import namedtuple

from ..basics import EXIT, WORST, Fault, Notes
from .containers import Scan, find_chains
from .geometry import SEALED
from .shard_files import ShardStream, read_shard_file

LAST_GROUPS = 65536                         # §12, the column of fec
Result = namedtuple("Result", "cls exit payload root meta clean lines sealed", defaults=[False])


def tried(stream):
    try:
        stream.restore()
        return True
    except Fault:
        return False


def read_one(data, root, is_one, shards, notes):
    """§9.3: the records in a file that stands alone; (scan or None, chains)."""
    if root is not None and root in shards:
        return None, []
    unproved = bytearray(data)
    for shard in shards.values() if root is None else ():
        for f in shard.files:
            for start, end in f.places:
                unproved[start:end] = bytes(end - start)
    inside = Notes()
    scan = Scan(bytes(unproved), inside, root)
    chains = find_chains(scan)
    notes.right = notes.right or inside.right
    if is_one and root is None and not any(tried(x) for x in chains):
        return None, []                                  # a shard file, whatever is in it
    notes.faults += inside.faults
    return scan, chains


def read_all(blobs, several, root=None, strict=False, span=None):
    """Reads blobs, [(name, bytes)], and gives a Result for any input; several is as load gives it."""
    lines, notes, shards, chains, scan, bad_header = [], Notes(), {}, [], None, False
    for name, data in blobs:
        is_one, found = read_shard_file(data, notes)
        bad_header = bool(notes.faults)
        for f in found:
            shards.setdefault(f.header.R, ShardStream(f.header)).files.append(f)
            state = "ok" if f.clean else "damaged" if len(f.valid) < f.header.pg.G else "damaged, all sets usable"
            lines.append("%s: root %s shard %d: %d of %d sets: %s" % (name, f.header.R.hex(), f.header.i, len(f.valid), f.header.pg.G, state))
        if not several:
            scan, chains = read_one(data, root, is_one, shards, notes)
        elif not is_one:
            lines.append("%s: not a shard file" % name)
    if scan:
        lines += ["record at %d: group %d set %d shard %d: ok" % (r.pos, r.pg.nr, r.s, r.i) for r in scan.records]
        lines += ["meta frame at %d: ok" % x.pos for x in scan.frames] + ["annex at %d: ok" % start for start, _ in scan.annexes]
        lines += ["index at %d: root %s: ok" % (x.pos, x.R.hex()) for x in scan.indexes]
    streams = list(shards.values()) + chains
    faults = notes.faults
    if root is not None:
        chosen = [x for x in streams if x.root == root]
        if not chosen and (any(x.root for x in streams) or scan and scan.has_other_root):
            faults.append(Fault("wrong-root", "what is there leads to another root"))
    else:
        chosen = streams
        if sum(1 for x in chains if x.root) > LAST_GROUPS:
            return Result("ambiguous", 2, None, None, None, False, lines + ["more than %d last groups" % LAST_GROUPS])
    restored = []
    for x in chosen:
        try:
            restored.append((x, x.restore(strict, span)))
        except Fault as fault:
            faults.append(fault)
            lines.append("root %s: %s: %s" % (x.root.hex() if x.root else "?", fault.cls, fault.text))
    notes.settle()
    lines += ["%s: %s" % (f.cls, f.text) for f in faults]
    if len(restored) > 1:
        return Result("ambiguous", 2, None, None, None, False, lines + ["root " + x.root.hex() for x, _ in restored])
    if restored:
        x, payload = restored[0]
        clean = not bad_header and len(chosen) == 1 and x.clean(scan)
        lines.append("root %s: can be restored, %d bytes" % (x.root.hex(), len(payload)))
        if x.meta is None:
            lines.append("the meta is lost")
        return Result(None, 0, payload, x.root, x.meta, clean, lines, bool(x.flags & SEALED))
    cls = min((f.cls for f in faults), key=WORST.index, default="damaged")
    return Result(cls, EXIT[cls], None, None, None, False, lines + ["cannot be restored: " + cls])


def load(paths):
    """(the files as (name, bytes), whether they are several or a folder)"""
    blobs = []
    for p in paths:
        names = [os.path.join(p, x) for x in sorted(os.listdir(p))] if os.path.isdir(p) else [p]
        for name in names:
            if os.path.isfile(name) or name in paths:
                with open(name, "rb") as f:
                    blobs.append((name, f.read()))
    return blobs, len(paths) > 1 or os.path.isdir(paths[0])
