#!/usr/bin/python3
"""A file system in user space whose names are like those of HFS+, the older one of macOS: a file is found by any normal
form of its name, and listed by the decomposed one. It keeps the files in FOLDER. Needs python3-fusepy and root.

    decomposed.py FOLDER MOUNTPOINT
"""

import os
import sys
import unicodedata

from fusepy import FUSE, FuseOSError, Operations

STAT = ("st_atime", "st_ctime", "st_mtime", "st_gid", "st_mode", "st_nlink", "st_size", "st_uid", "st_ino", "st_blocks")
ROOM = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize", "f_namemax")


class Decomposed(Operations):
    def __init__(self, folder):
        self.folder = folder

    def __call__(self, operation, path, *arguments):
        try:
            return super().__call__(operation, path, *arguments)
        except OSError as error:
            raise FuseOSError(error.errno) from error

    def at(self, path):
        return self.folder + unicodedata.normalize("NFD", path)

    def getattr(self, path, _file=None):
        stat = os.lstat(self.at(path))
        return {field: getattr(stat, field) for field in STAT}

    def statfs(self, path):
        room = os.statvfs(self.at(path))
        return {field: getattr(room, field) for field in ROOM}

    def readdir(self, path, _file):
        return [".", "..", *os.listdir(self.at(path))]

    def readlink(self, path):
        return os.readlink(self.at(path))

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def unlink(self, path):
        os.unlink(self.at(path))

    def symlink(self, path, target):
        os.symlink(target, self.at(path))

    def link(self, path, of):
        os.link(self.at(of), self.at(path))

    def rename(self, path, to):
        os.rename(self.at(path), self.at(to))

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, user, group):
        os.lchown(self.at(path), user, group)

    def utimens(self, path, times=None):
        os.utime(self.at(path), times, follow_symlinks=False)

    def open(self, path, flags):
        return os.open(self.at(path), flags)

    def create(self, path, mode, _info=None):
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, _path, size, offset, file):
        return os.pread(file, size, offset)

    def write(self, _path, data, offset, file):
        return os.pwrite(file, data, offset)

    def truncate(self, path, length, _file=None):
        os.truncate(self.at(path), length)

    def fsync(self, _path, _data, file):
        os.fsync(file)

    def release(self, _path, file):
        os.close(file)


if len(sys.argv) != 3:
    sys.exit("usage: decomposed.py FOLDER MOUNTPOINT")
# The kernel would remember other forms of a name that is gone.
FUSE(Decomposed(os.path.realpath(sys.argv[1])), sys.argv[2], nothreads=True, use_ino=True, default_permissions=True,
     entry_timeout=0, attr_timeout=0)
