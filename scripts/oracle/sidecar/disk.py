"""Trees on disk."""
import os
import stat

from ..basics import Fault
from .parts import FILE, FOLDER, HARDLINK, SYMLINK
from .writer import Item


def collect(base, paths, not_this):
    """The items of these paths, which are bytes, below the base."""
    found = {}

    def visit(path):
        full = os.path.join(base, path) if path else base
        info = os.lstat(full)
        if not_this and (info.st_dev, info.st_ino) == not_this:
            return
        if path:
            found[path] = info
        if stat.S_ISDIR(info.st_mode):
            for name in os.listdir(full):
                visit(path + b"/" + name if path else name)

    for path in paths:
        path = os.path.normpath(path)
        if os.path.isabs(path) or path.split(b"/")[0] == b"..":
            raise Fault("refused", "a path is not below the base")
        visit(b"" if path == b"." else path)
    items, inodes = [], {}
    for path, info in sorted(found.items()):
        more = info.st_mode & 0o7777, info.st_mtime_ns // 10 ** 9, info.st_mtime_ns % 10 ** 9
        full = os.path.join(base, path)
        if stat.S_ISDIR(info.st_mode):
            items.append(Item(path, FOLDER, None, None, *more))
        elif stat.S_ISLNK(info.st_mode):
            items.append(Item(path, SYMLINK, None, os.readlink(full), *more))
        elif not stat.S_ISREG(info.st_mode):            # §17.8: devices, sockets, pipes
            continue
        elif (info.st_dev, info.st_ino) in inodes:
            items.append(Item(path, HARDLINK, None, inodes[info.st_dev, info.st_ino], *more))
        else:
            inodes[info.st_dev, info.st_ino] = path
            with open(full, "rb") as f:
                items.append(Item(path, FILE, f.read(), None, *more))
    return items


def write_tree(items, base):
    """Writes the items that collect reads."""
    for x in sorted(items):
        path = os.path.join(base, x.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if x.kind == FOLDER:
            os.makedirs(path, exist_ok=True)
        elif x.kind == FILE:
            with open(path, "wb") as f:
                f.write(x.content)
        elif x.kind == SYMLINK:
            os.symlink(x.target, path)
        else:
            os.link(os.path.join(base, x.target), path)
    for x in sorted(items, reverse=True):
        path = os.path.join(base, x.path)
        if x.kind != SYMLINK:
            os.chmod(path, x.mode)
        os.utime(path, ns=(0, x.seconds * 10 ** 9 + x.nanos), follow_symlinks=False)


def same_tree(a, b):
    def plain(items):
        return [(x.path, x.kind, x.content, x.target, x.mode, x.seconds, x.nanos) for x in sorted(items)]
    return plain(a) == plain(b)
