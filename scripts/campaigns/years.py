#!/usr/bin/env python3
"""Simulated years of a folder, its sidecar, and an owner who follows the printed advice to the letter.

    years.py --fec PATH [--seed S] [--rounds YEARS] [--nights N] [--form FORM] [--dir DIR] [--jobs N] [--selftest]

A year is 365 nights over a tree of 300 files. On a night files are edited, moved, copied without times, shifted by an
hour, deleted, or rot; the sidecar rots too; folders are renamed; a disk fails to read, and a command is killed. Then
the owner runs `fec verify` and the commands that it prints. Where these depend on what he did himself, he answers by
what he knows. Four things are faults: rot that is protected as good, an edit that is undone unasked, exit code 3 while
k intact blocks of every set are left, and exit code 0 over rot. Advice that leads nowhere is another.

FORM says how the disk rots. `portable`, in any folder: the bytes change and the time is put back; no marks are
recorded, since the time of change cannot be put back. `ext4`, `exfat` and `vfat`, as root: the bytes change in the
image of an unmounted file system, and marks are recorded. Year r of seed S is year 0 of seed S + r. With --dir the tree
stands there. Exit codes: 0 nothing was found, 1 faults, 2 it cannot be run here.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import mmap
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from judge import Wrong, expect
from oracle.sidecar import FILE, Reader
from oracle.sidecar.files import Originals, sets_of

NS, DAY = 10 ** 9, 86_400
STATES = ("moved and damaged", "rotten", "unreadable", "missing", "changed", "changing", "edited", "shifted", "moved", "mode")
LINE = re.compile("^  (%s) +(\\S.*)$" % "|".join(STATES))
FILES, FOLDERS = 300, 12
# How to make and mount a file system on a loop device: the first way that works here is taken.
IMAGES = {
    "ext4": ("mkfs.ext4 -q -F %s", ["mount -t ext4 %s %s"]),
    "vfat": ("mkfs.vfat %s", ["mount -t vfat %s %s"]),
    "exfat": ("mkfs.exfat %s", ["mount -t exfat %s %s", "mount.exfat-fuse %s %s"]),
}


class File:
    """A file as its owner means it to be."""

    def __init__(self, content, when, mode=0o644):
        self.content, self.when, self.mode = content, when, mode
        self.edited = True                                          # by the owner, since the last update
        self.bad = None                                             # the disk's doing
        self.was = None                                             # its path in the sidecar
        self.recorded = None                                        # its time in the sidecar


class Year:
    def __init__(self, fec, seed, home, form, nights):
        self.fec, self.rng, self.form, self.nights = fec, random.Random(seed), form, nights
        self.home, self.image = home, None
        self.story, self.counts, self.took = collections.deque(maxlen=60), collections.Counter(), 0.0
        self.night, self.serial = 0, 0
        self.files, self.old, self.removed, self.folders = {}, {}, set(), set()
        self.sidecar_bad = False
        if form in IMAGES:
            with open(home + ".img", "wb") as f:
                f.truncate(64 << 20)
            os.makedirs(home, exist_ok=True)
            self.image = self.shell("losetup -f --show " + home + ".img")
            try:
                self.shell(IMAGES[form][0] % self.image)
                self.mount()
            except OSError:
                self.end()
                raise

    # ------------------------------------------------------------ the system

    def shell(self, line):
        done = subprocess.run(line.split(), capture_output=True, text=True)
        if done.returncode:
            raise OSError("%s: %s" % (line, done.stderr.strip() or done.stdout.strip()))
        return done.stdout.strip()

    def mount(self):
        ways = IMAGES[self.form][1]
        for nth, way in enumerate(ways):
            try:
                return self.shell(way % (self.image, self.home))
            except OSError:
                if nth + 1 == len(ways):
                    raise

    def unmount(self):
        self.shell("umount " + self.home)
        # A file system in a process of its own ends a little later.
        for _ in range(100):
            try:
                with open(self.image, "r+b", opener=lambda path, flags: os.open(path, flags | os.O_EXCL)):
                    return
            except OSError:
                time.sleep(0.02)
        # The file system would read the bytes that it has in memory, and not those that rot.
        raise OSError("%s is still mounted: perhaps in the namespace of another process" % self.image)

    def end(self):
        if self.image:
            if os.path.ismount(self.home):
                self.unmount()
            self.shell("losetup -d " + self.image)
            os.remove(self.home + ".img")

    def path(self, name):
        return os.path.join(self.home, name)

    def now(self):
        """A time of the night, with a fraction of a second of its own."""
        return (1_700_000_000 + self.night * DAY + self.rng.randrange(DAY)) * NS + self.rng.randrange(1, NS)

    def read(self, name):
        try:
            with open(self.path(name), "rb") as f:
                return f.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def put(self, name, content, when, mode=None):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)
        if mode is not None:
            os.chmod(path, mode)
        os.utime(path, ns=(when, when))

    def run(self, *args, prefix=()):
        began = time.perf_counter()
        done = subprocess.run([*prefix, self.fec, *args], cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        self.took += time.perf_counter() - began
        said = done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")
        self.story.append("$ fec %s: %d" % (" ".join(args), done.returncode))
        self.last = said
        expect("panicked" not in said and done.returncode in range(7), said)
        self.counts["runs"] += 1
        return done.returncode, said

    # ------------------------------------------------------------ the disk

    def rot(self, name, at, new):
        """Writes bytes that no writer wrote."""
        old = self.read(name)
        if old is None or len(old) < 64:
            return False
        new = new[:len(old) - at]
        if not self.image:
            when = os.stat(self.path(name)).st_mtime_ns
            with open(self.path(name), "r+b") as f:
                f.seek(at)
                f.write(new)
            os.utime(self.path(name), ns=(when, when))
            return old[at:at + len(new)] != new
        # The content is random, so it is found by itself: pieces of 512 bytes, which stand in one cluster each.
        self.unmount()
        try:
            with open(self.image, "r+b") as f, mmap.mmap(f.fileno(), 64 << 20) as image:
                hit = False
                for start in range(at - at % 512, at + len(new), 512):
                    piece = old[start:start + 512]
                    place = image.find(piece) if len(piece) >= 64 else -1
                    # A copy of the same bytes would be hit instead.
                    if place < 0 or image.find(piece, place + 1) >= 0:
                        continue
                    first, last = max(at, start), min(at + len(new), start + len(piece))
                    image[place + first - start:place + last - start] = new[first - at:last - at]
                    hit = True
        finally:
            self.mount()
        return hit and self.read(name) != old

    def fresh(self):
        self.serial += 1
        folder = self.rng.choice(sorted(self.folders))
        return "%s/%s%d" % (folder, self.rng.choice(("img ", "note-", "IMG_", "x")), self.serial)

    def content(self):
        rng = self.rng
        size = rng.choice((rng.randrange(64, 4096), rng.randrange(1000, 12_000), rng.randrange(1000, 20_000)))
        kind = rng.random()
        if kind < 0.02:
            return bytes(size) if kind < 0.01 else b""
        return rng.randbytes(200_000 if kind < 0.04 else size)

    def plant(self):
        for nth in range(FOLDERS):
            self.folders.add("d/%d" % nth if nth % 3 else "d/%d/deep" % nth)
        for _ in range(FILES):
            name = self.fresh()
            self.files[name] = File(self.content(), self.now(), 0o755 if self.rng.random() < 0.05 else 0o644)
            self.put(name, self.files[name].content, self.files[name].when, self.files[name].mode)
        for folder in sorted(self.folders)[::3] if self.form != "exfat" and self.form != "vfat" else ():
            os.symlink(self.rng.choice(("nothing", "../away")), self.path(folder + "/link"))
        options = ["--portable"] if not self.image else []
        options += ["-r", self.rng.choice(("8%", "16%", "16%", "30%", "100%"))]
        code, said = self.run("protect", "--sha256", "--no-sync", "-q", *options, "d")
        expect(code == 0, said)
        self.took_over()

    def took_over(self, is_careless=False):
        """Takes what the sidecar says now, and expects no rot in it. Who updates without looking gives up what is gone,
        and takes for edited a file that was cut short, or that rotted after its time had changed."""
        code, said = self.run("manifest", "--sha256", "d.fecp")
        expect(code == 0, said)
        listed = {}
        for line in said.splitlines():
            if re.match("^[0-9a-f]{64}  ", line):
                listed[line[66:]] = line[:64]
        self.old = {}
        for name, digest in listed.items():
            of = self.files.get(name)
            if of is None:
                # The owner knows nothing of it: what a repair has brought back.
                expect(name in self.removed, "%s is protected, and nobody made it" % name)
                self.old[name] = None
                continue
            right = hashlib.sha256(of.content).hexdigest()
            if digest != right and is_careless and self.looks_edited(name):
                self.counts["cut short or rotten under another time, unseen"] += 1
                self.old[name] = self.read(name)
                expect(hashlib.sha256(self.old[name]).hexdigest() == digest, "%s was protected as it never was" % name)
                continue
            expect(digest == right, "rot was protected as good: %s (%s)" % (name, of.bad))
            of.edited, of.was = False, name
            self.old[name] = of.content
        for name, of in self.files.items():
            if name not in listed:
                expect(is_careless and of.bad == "lost", "%s is not protected by an update (%s)" % (name, of.bad))
                self.counts["given up unseen"] += 1
        lost = [name for name, of in self.files.items() if name not in listed or self.looks_edited(name)]
        for name, of in self.files.items():
            of.recorded = self.time(name)
        if is_careless:
            self.restore(lost)
        with open(self.path("d.fecp"), "rb") as f:
            self.whole = f.read()
        self.sidecar_bad, self.marks = False, "told"

    def time(self, name):
        return os.stat(self.path(name)).st_mtime_ns if os.path.isfile(self.path(name)) else None

    def looks_edited(self, name):
        """Tells whether damage looks like an edit: the size is another one, or the time is. Where marks are recorded,
        whole hours and fractions that a file system drops make no other time."""
        of = self.files[name]
        if of.bad != "rotten" or of.recorded is None:
            return of.bad == "cut"
        apart = abs(self.time(name) - of.recorded)
        return apart > 0 and not (self.image and (apart + 2 * NS) % (3600 * NS) <= 4 * NS)

    # ------------------------------------------------------------ what happens on a night

    def healthy(self):
        return sorted(name for name, of in self.files.items() if not of.bad)

    def any_file(self, of=None):
        names = self.healthy() if of is None else of
        return self.rng.choice(names) if names else None

    def unedited(self):
        """Files whose content is protected, maybe under another name, and right on the disk."""
        return sorted(name for name, of in self.files.items() if not of.bad and not of.edited and len(of.content) >= 64)

    def do_edit(self):
        name, rng = self.any_file(), self.rng
        of = self.files[name]
        at, piece = rng.randrange(len(of.content) + 1), rng.randbytes(rng.choice((1, 100, 3000)))
        how = rng.choice(("over", "over", "insert", "append", "cut", "all", "over", "insert", "append", "empty"))
        content = {
            "over": of.content[:at] + piece + of.content[at + len(piece):],
            "insert": of.content[:at] + piece + of.content[at:],
            "append": of.content + piece,
            "cut": of.content[:max(at, 64)],
            "all": self.content(),
            "empty": b"",
        }[how]
        of.content, of.when, of.edited = content, self.now(), True
        self.put(name, content, of.when)
        return "edit (%s) %s" % (how, name)

    def do_keep_time(self):
        """An edit by a program that puts the time back. It takes marks: without them, and where all files have others
        than the recorded ones, nothing tells it from rot."""
        name = self.any_file(self.unedited())
        if self.form != "ext4" or self.marks != "told" or name is None:
            return None
        self.marks = "needed"
        of = self.files[name]
        when = os.stat(self.path(name)).st_mtime_ns
        at = self.rng.randrange(len(of.content) - 8)
        of.content, of.edited = of.content[:at] + self.rng.randbytes(8) + of.content[at + 8:], True
        self.put(name, of.content, when)
        return "edit that keeps its time %s" % name

    def rename(self, name, to):
        os.makedirs(os.path.dirname(self.path(to)), exist_ok=True)
        os.rename(self.path(name), self.path(to))
        self.files[to] = self.files.pop(name)
        self.removed.add(name)

    def do_move(self):
        names = sorted(name for name, of in self.files.items() if of.bad != "lost")
        name, to = self.any_file(names), self.fresh()
        if self.rng.random() < 0.3:
            to = os.path.join(os.path.dirname(to), os.path.basename(name))
        if to in self.files or os.path.exists(self.path(to)):
            return None
        bad = self.files[name].bad
        self.rename(name, to)
        return "move %s to %s%s" % (name, to, " (%s)" % bad if bad else "")

    def do_rename_folder(self):
        self.serial += 1
        folder, to = self.rng.choice(sorted(self.folders)), "d/folder %d" % self.serial
        if not os.path.isdir(self.path(folder)):
            return None
        os.rename(self.path(folder), self.path(to))
        self.folders.remove(folder)
        self.folders.add(to)
        for name in [name for name in self.files if name.startswith(folder + "/")]:
            self.files[to + name[len(folder):]] = self.files.pop(name)
            self.removed.add(name)
        return "rename folder %s to %s" % (folder, to)

    def do_swap(self):
        a, b = self.any_file(), self.any_file()
        if a == b:
            return None
        for name, to in ((a, a + "~"), (b, a), (a + "~", b)):
            os.rename(self.path(name), self.path(to))
        self.files[a], self.files[b] = self.files[b], self.files[a]
        return "swap %s and %s" % (a, b)

    def do_copy_one(self):
        name = self.any_file()
        of = self.files[name]
        of.when = self.now()
        os.remove(self.path(name))
        self.put(name, of.content, of.when, of.mode)
        return "copy without its time %s" % name

    def do_copy_all(self):
        """`cp -r` without times, and the copy takes the place of the folder."""
        if not self.loses_marks():
            return None
        with_times = self.rng.random() < 0.5
        copy = shutil.copy2 if with_times else shutil.copyfile
        shutil.copytree(self.path("d"), self.path("copy"), symlinks=True, copy_function=copy)
        if not with_times:
            when = self.now()
            for at, _, names in os.walk(self.path("copy")):
                for nth, name in enumerate(sorted(names)):
                    os.utime(os.path.join(at, name), ns=(when + nth * 7_000_003,) * 2, follow_symlinks=False)
        shutil.rmtree(self.path("d"))
        os.rename(self.path("copy"), self.path("d"))
        return "copy all %s times" % ("with" if with_times else "without")

    def all_times(self, change):
        for name, of in self.files.items():
            if of.bad != "lost":
                of.when = change(os.stat(self.path(name)).st_mtime_ns)
                os.utime(self.path(name), ns=(of.when, of.when))

    def loses_marks(self):
        """Tells whether all files may be given other marks."""
        if self.marks == "needed":
            return False
        self.marks = "lost"
        return True

    def do_shift(self):
        if not self.loses_marks():
            return None
        hours = self.rng.choice((1, -1))
        self.all_times(lambda when: when + hours * 3600 * NS)
        return "all times shifted by %d h" % hours

    def do_round(self):
        # Without marks a time is taken exactly (17.7), and files that were rounded before keep theirs.
        if not self.image or not self.loses_marks():
            return None
        self.all_times(lambda when: when - when % (2 * NS))
        return "all times rounded to 2 s"

    def do_mode(self):
        name = self.any_file()
        os.chmod(self.path(name), self.rng.choice((0o644, 0o755, 0o600, 0o444)))
        return "chmod %s" % name

    def remove(self, name):
        if os.path.exists(self.path(name)):
            os.remove(self.path(name))
        del self.files[name]
        self.removed.add(name)

    def do_delete(self):
        name = self.any_file(sorted(self.files))
        self.remove(name)
        return "delete %s" % name

    def do_delete_folder(self):
        folder = self.rng.choice(sorted(self.folders))
        names = [name for name in self.files if name.startswith(folder + "/")]
        if len(self.folders) < 6 or len(self.files) < FILES * 2 // 3:
            return None
        for name in names:
            self.remove(name)
        shutil.rmtree(self.path(folder), ignore_errors=True)
        self.folders.remove(folder)
        return "delete folder %s, %d files" % (folder, len(names))

    def do_new(self):
        name = self.fresh()
        self.files[name] = File(self.content(), self.now())
        self.put(name, self.files[name].content, self.files[name].when, 0o644)
        return "new %s" % name

    def do_new_many(self):
        self.serial += 1
        folder = "d/new %d" % self.serial
        self.folders.add(folder)
        for nth in range(self.rng.randrange(max(1, FILES - len(self.files)) + 12)):
            name = "%s/%d" % (folder, nth)
            self.files[name] = File(self.content(), self.now())
            self.put(name, self.files[name].content, self.files[name].when, 0o644)
        os.makedirs(self.path(folder), exist_ok=True)
        return "new folder %s" % folder

    def do_duplicate(self):
        name, to = self.any_file(), self.fresh()
        shutil.copy2(self.path(name), self.path(to)) if os.path.isdir(os.path.dirname(self.path(to))) else None
        if not os.path.exists(self.path(to)):
            return None
        of = self.files[name]
        self.files[to] = File(of.content, of.when, of.mode)
        if self.rng.random() < 0.5:
            self.files[to].when = self.now()
            os.utime(self.path(to), ns=(self.files[to].when,) * 2)
        return "duplicate %s as %s" % (name, to)

    def do_rotate(self):
        name = self.any_file()
        to = name + ".1"
        if to in self.files or os.path.exists(self.path(to)):
            return None
        self.rename(name, to)
        self.files[name] = File(self.content(), self.now())
        self.removed.discard(name)
        self.put(name, self.files[name].content, self.files[name].when, 0o644)
        return "rotate %s" % name

    def do_turn(self):
        """A folder takes the place of a file."""
        name = self.any_file()
        self.remove(name)
        os.mkdir(self.path(name))
        inner = name + "/inside"
        self.files[inner] = File(self.content(), self.now())
        self.put(inner, self.files[inner].content, self.files[inner].when, 0o644)
        return "a folder in the place of %s" % name

    def do_rot(self):
        rng, hit = self.rng, []
        for _ in range(rng.choice((1, 1, 2, 4))):
            name = self.any_file(self.unedited())
            if name is None:
                break
            size = len(self.files[name].content)
            at = rng.randrange(size)
            new = rng.choice((rng.randbytes(1), rng.randbytes(5), bytes(4096), rng.randbytes(512)))
            if self.rot(name, at, new):
                self.files[name].bad = "rotten"
                hit.append("%s at %d" % (name, at))
        return "rot %s" % ", ".join(hit) if hit else None

    def do_rot_all(self):
        """A file of zeros, as after a crash."""
        name = self.any_file(self.unedited())
        if name is None or not self.rot(name, 0, bytes(len(self.files[name].content))):
            return None
        self.files[name].bad = "rotten"
        return "zeros %s" % name

    def do_lose(self):
        name = self.any_file(self.unedited())
        if name is None:
            return None
        os.remove(self.path(name))
        self.files[name].bad = "lost"
        return "lose %s" % name

    def do_cut(self):
        name = self.any_file(self.unedited())
        if name is None:
            return None
        of = self.files[name]
        when = os.stat(self.path(name)).st_mtime_ns
        os.truncate(self.path(name), self.rng.randrange(len(of.content)))
        os.utime(self.path(name), ns=(when, when))
        of.bad = "cut"
        return "cut short %s" % name

    def do_rot_sidecar(self):
        data, rng = bytearray(self.read("d.fecp")), self.rng
        at, size = rng.randrange(len(data)), rng.choice((1, 64, 5000))
        how = rng.choice(("over", "over", "over", "more", "less", "cut"))
        if how == "more":
            data[at:at] = rng.randbytes(size)
        elif how == "less":
            del data[at:at + size]
        elif how == "cut":
            del data[-min(size, len(data) // 200):]
        for _ in range(rng.choice((1, 3)) if how == "over" else 0):
            at, size = rng.randrange(len(data)), rng.choice((1, 1000, 5000))
            data[at:at + size] = rng.randbytes(len(data[at:at + size]))
        with open(self.path("d.fecp"), "r+b") as f:
            f.write(data)
            f.truncate()
        self.sidecar_bad = bytes(data) != self.whole
        return "rot in the sidecar (%s)" % how

    EVENTS = {
        "edit": 30, "keep_time": 4, "move": 8, "rename_folder": 4, "swap": 2, "copy_one": 4, "copy_all": 0.7, "shift": 1.5,
        "round": 0.7, "mode": 2, "delete": 5, "delete_folder": 0.5, "new": 8, "new_many": 0.7, "duplicate": 3, "rotate": 3, "turn": 1,
        "rot": 14, "rot_all": 2, "lose": 4, "cut": 2, "rot_sidecar": 4,
    }

    def happen(self):
        names, weights = list(self.EVENTS), list(self.EVENTS.values())
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 1, 2, 3, 6))):
            if len(self.files) < 50:
                self.do_new_many()
            for name in self.rng.choices(names, weights):
                told = getattr(self, "do_" + name)()
                if told:
                    self.counts[name] += 1
                    self.story.append("night %d: %s" % (self.night, told))

    # ------------------------------------------------------------ the owner

    def parse(self, said):
        """The printed commands by the sentence above each, and the entries by state."""
        advice, entries, above = [], collections.defaultdict(list), ""
        for line in said.splitlines():
            listed = LINE.match(line)
            if line.lstrip().startswith(("fec ", "mv ", "tar ")):
                advice.append((above, shlex.split(line)))
            elif listed:
                entries[listed.group(1)].append(listed.group(2))
            elif not line.startswith("  ") or line.startswith("     "):
                above = line.strip()
        return advice, entries

    @staticmethod
    def old_name(line, names):
        """The path of a line such as `d/a: bytes 0..4096`, among these."""
        found = [line[:at.start()] for at in re.finditer(": |$", line)]
        return next((name for name in found if name in names), found[0])

    def mine(self, line):
        """Tells whether the owner has done what stands in a line."""
        name = self.old_name(line, set(self.old) | set(self.files))
        of = self.files.get(name)
        if of is None:
            # It was moved or deleted by the owner, or is a folder that he renamed.
            return True
        return not of.bad and (of.edited or self.read(name) == of.content)

    def seems_mine(self, name):
        """Tells whether damage looks like what the owner does: a file that was lost has moved to where a new copy of it
        stands."""
        of = self.files[name]
        copies = (copy for copy, other in self.files.items() if other.content == of.content and not other.bad)
        return self.looks_edited(name) or of.bad == "lost" and any(copy not in self.old for copy in copies)

    def verify(self, *options, prefix=()):
        code, said = self.run("verify", "-v", *options, "d.fecp", prefix=prefix)
        expect(code in (0, 1, 3, 4) if prefix else code in (0, 1, 3), "verify: %d %s" % (code, said))
        bad = [name for name, of in self.files.items() if of.bad and not (options and self.seems_mine(name))]
        expect(code or not bad, "exit code 0 over %s" % bad)
        if not code and self.sidecar_bad and not options:
            # It was hit where nothing serves any more.
            deep, report = self.run("verify", "--deep", "d.fecp")
            expect(deep == 0, "exit code 0 over a damaged sidecar: " + report)
            self.sidecar_bad = False
        if code == 3:
            self.is_lost(said)
        return code, said

    def is_lost(self, said):
        """Exit code 3 takes a set with fewer than k intact blocks, wherever they stand."""
        reader = Reader(self.read("d.fecp"))
        catalog, contents = reader.catalog, {}
        now = {of.was: name for name, of in self.files.items() if of.was}
        for number, x in enumerate(catalog.entries):
            path = os.fsdecode(x.path)
            contents[number] = self.read(now.get(path, path)) if x.kind & 15 == FILE else None
        originals = Originals(catalog, {number: data for number, data in contents.items() if data is not None})
        few = [places for group, places, shards in sets_of(catalog, originals, reader.recovery)
               if any(originals.named[p] for p in places)
               and sum(originals.rows[p] is not None for p in places) + sum(x is not None for x in shards) < group.k]
        expect(few, "exit code 3, and every set has k intact blocks: " + said)
        self.counts["lost"] += 1

    def repair(self, words):
        """Runs a repair, and expects that it undoes no edit."""
        asked = "--revert" in words
        before = {name: self.read(name) for name, of in self.files.items() if not of.bad}
        words = ["undo.tar" if word == "FILE" else word for word in words]
        for name in os.listdir(self.home):
            if name.startswith("undo"):
                os.remove(self.path(name))
        code, said = self.run(*words[1:], "--no-sync")
        away = {}
        while code == 2 and ": it is a folder" in said and "move it away" in said:
            name = re.search("repair (?:\\./)?(.*): it is a folder", said).group(1)
            away[name] = self.path("away %d" % len(away))
            os.rename(self.path(name), away[name])
            before = {name: content for name, content in before.items() if os.path.exists(self.path(name))}
            words = ["undo %d.tar" % len(away) if word.startswith("undo") else word for word in words]
            code, said = self.run(*words[1:], "--no-sync")
        for name, place in away.items():
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
            os.rename(place, self.path(name))
        expect(code in (0, 1, 3), "repair: %d %s" % (code, said))
        for name, content in before.items():
            now = self.read(name)
            expect(now == content or asked, "an edit was undone: %s, %s bytes and now %s" % (
                name, content if content is None else len(content), now if now is None else len(now)))
        if asked:
            self.take_back(before)
        self.look()
        return code, said

    def take_back(self, before):
        """A revert that was asked for undoes edits too: the owner takes his own out of the archive again."""
        undone = [name for name, content in before.items() if self.read(name) != content]
        if not undone:
            return
        archives = [tarfile.open(self.path(name)) for name in sorted(os.listdir(self.home)) if name.startswith("undo")]
        kept_in = {name: tar for tar in reversed(archives) for name in tar.getnames()}
        for name in undone:
            expect(name in kept_in, "an edit was undone, and not kept: %s" % name)
            kept = kept_in[name].extractfile(name).read()
            expect(kept == before[name], "the archive of a revert has other bytes of %s" % name)
            self.put(name, kept, self.files[name].when, self.files[name].mode)
        self.counts["edits taken back"] += len(undone)

    def look(self):
        """Looks at what the disk has now, after a repair."""
        for name, of in self.files.items():
            if of.bad and self.read(name) == of.content:
                of.bad = None
        # A repair may leave what serves nothing any more; --deep looks at the rest.
        self.sidecar_bad = False

    def delete_again(self):
        """Deletes what a repair has brought back, although the owner had deleted or moved it."""
        for at, _, names in os.walk(self.path("d")):
            for name in names:
                name = os.path.relpath(os.path.join(at, name), self.home)
                if name not in self.files:
                    os.remove(self.path(name))

    def update(self, words):
        words = words[1:] + ["--no-sync"]
        code, said = self.run(*words)
        if code == 0:
            return self.took_over() or True
        advice, _ = self.parse(said)
        self.counts["refused updates"] += 1
        if "run fec repair again first" in said:
            again, _ = self.repair(["fec", "repair", "d.fecp"])
            self.delete_again()
            if again == 3 and "remove the list" in said:
                os.remove(self.path("d.fecp.repairing"))
            return True
        if "newer generation" in said:
            # The newest state of the sidecar is lost: what is there is protected as it is, when it is right.
            self.counts["newest generation lost"] += 1
            self.restore()
            code, said = self.run(*words, "-f")
            expect(code == 0, "an update with -f is refused: " + said)
            return self.took_over() or True
        gone_by_disk = any(of.bad == "lost" for of in self.files.values())
        if "probably moved, and then damaged" in said or "rotten:" in said or "damaged or edited" in said:
            bad = [name for name, of in self.files.items() if of.bad]
            named = [name for name in self.files if name in said]
            if bad and ("rotten:" in said or any(name in named for name in bad)):
                return False
            if "rotten:" in said:
                raise Wrong("an update calls rotten what is not: " + said)
            if any(of.bad for of in self.files.values()):
                return False
        elif not ("are gone" in said or "has become empty" in said):
            raise Wrong("an update is refused: " + said)
        elif gone_by_disk:
            return False
        way_on = "--pruned" if "are gone" in said else "-f"
        expect("with " + way_on in said, "no way on is named: " + said)
        code, said = self.run(*words, way_on)
        if code and way_on != "-f":
            # Behind the first reason stands another.
            code, said = self.run(*words, "-f")
        expect(code == 0, "an update with %s is refused: %s" % (way_on, said))
        return self.took_over() or True

    def restore(self, names=None):
        """Takes from a backup what is lost beyond repair."""
        for name, of in self.files.items():
            if of.bad and (names is None or name in names):
                of.bad, of.when, of.edited = None, self.now(), True
                self.removed.discard(name)
                self.put(name, of.content, of.when, of.mode)
                self.counts["from the backup"] += 1

    def command(self, advice, sentence):
        for above, words in advice:
            if sentence in above:
                return words
        return None

    def evening(self):
        """Follows the advice until nothing is said any more."""
        told = []
        for _ in range(12):
            code, said = self.verify()
            advice, entries = self.parse(said)
            damaged = [name for name, of in self.files.items() if of.bad]
            told.append((said, damaged))
            if code == 0 and not advice:
                return
            missing = [line for line in entries["missing"] if not self.mine(line)]
            words = self.command(advice, "cannot be mended")
            if words and not damaged and not missing and not self.sidecar_bad:
                # All that is lost was deleted on purpose.
                self.take_over_deletions(advice)
                continue
            if words:
                self.counts["not all mended"] += 1
                self.repair(words)
                self.delete_again()
                self.restore()
                continue
            words = self.command(advice, "what is damaged can be mended")
            is_needed = damaged or self.sidecar_bad or entries["rotten"] or entries["unreadable"]
            if words and (is_needed or missing or not entries["missing"]):
                _, report = self.repair(words)
                self.put_in_place(report)
                self.delete_again()
                if any(of.bad for of in self.files.values()) or self.sidecar_bad or missing:
                    if self.worse(told):
                        raise Wrong("a repair mends nothing: " + said)
                # Edits come next.
                code, said = self.verify()
                advice, entries = self.parse(said)
                damaged = [name for name, of in self.files.items() if of.bad]
            if self.edits(advice, entries, damaged):
                continue
            if code == 0 and not advice:
                return
        raise Wrong("the advice does not end:\n" + told[-1][0])

    def worse(self, told):
        return len(told) > 1 and told[-1] == told[-2]

    def put_in_place(self, said):
        """Puts what a repair has restored in the place of a damaged file that was moved."""
        advice, _ = self.parse(said)
        for _, words in advice:
            if words[0] == "mv":
                of = self.files.get(words[-1])
                if of is not None and of.bad:
                    os.rename(self.path(words[-2]), self.path(words[-1]))
                    self.counts["put in place"] += 1
        self.look()

    def edits(self, advice, entries, damaged):
        """Answers what is said of edits; returns whether anything was done."""
        revert = self.command(advice, "to make it what it was")
        strayed = [name for name in damaged if self.files[name].was != name]
        if strayed:
            return self.take_from_copy(strayed)
        if damaged:
            # Something is not the owner's doing, and no repair has mended it.
            if revert:
                self.counts["reverted"] += 1
                self.repair(revert)
                self.delete_again()
                return True
            self.counts["no way but the backup"] += 1
            self.restore()
            return True
        for sentence in ("if it is as it should be", "to protect it as it is now", "to add what is new", "to give it up", "to record that"):
            words = self.command(advice, sentence)
            if words:
                expect(self.update(words), "an update is refused over files that are right: " + self.last)
                return True
        return False

    def take_over_deletions(self, advice):
        words = self.command(advice, "to give it up")
        expect(words, "nothing says how deletions are taken over")
        expect(self.update(words), "an update is refused over deletions: " + self.last)

    def take_from_copy(self, names):
        """Takes files that were damaged under another name from a folder that a repair writes."""
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        code, said = self.run("repair", "-o", "out", "--no-sync", "d.fecp")
        expect(code in (0, 1, 3), said)
        for name in names:
            of = self.files[name]
            made = os.path.join(out, of.was or "")
            if os.path.isfile(made) and open(made, "rb").read() == of.content:
                os.rename(made, self.path(name))
                self.counts["taken from a repair elsewhere"] += 1
        shutil.rmtree(out, ignore_errors=True)
        self.look()
        if any(self.files[name].bad for name in names):
            self.counts["no way but the backup"] += 1
            self.restore(names)
        return True

    def impatient(self):
        """Updates without looking first: no rot may be protected by that."""
        self.counts["impatient"] += 1
        code, said = self.run("protect", "--update", "--no-sync", "d")
        if code == 0:
            self.took_over(True)

    def interrupted(self):
        """A command that is killed leaves right what was right, and records no rot."""
        if not shutil.which("strace"):
            return
        self.counts["killed"] += 1
        before = {name: self.read(name) for name, of in self.files.items() if not of.bad}
        words = self.rng.choice((["protect", "--update", "d"], ["repair", "d.fecp"]))
        calls = self.rng.choice(("pwrite64", "renameat,renameat2", "ftruncate"))
        where = ["-e", "trace=" + calls, "-e", "inject=%s:signal=KILL:when=%d" % (calls, self.rng.randint(1, 6))]
        child = subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, *where, self.fec, *words, "--no-sync", "-j", "1"],
                               cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        self.story.append("$ fec %s, killed at %s: %d" % (" ".join(words), calls, child.returncode))
        for name, content in before.items():
            expect(self.read(name) == content, "a command that was killed changed %s" % name)
        # A repair may have made already what the owner had deleted.
        self.delete_again()
        was_bad = self.sidecar_bad
        self.look()
        self.sidecar_bad = was_bad
        code, said = self.run("manifest", "--sha256", "d.fecp")
        expect(code == 0, said)
        listed = {line[66:]: line[:64] for line in said.splitlines() if re.match("^[0-9a-f]{64}  ", line)}
        right = {name: hashlib.sha256(of.content).hexdigest() for name, of in self.files.items()}
        if child.returncode == 0 and words[0] == "protect" or listed == right:
            return self.took_over(True)
        old = {name: hashlib.sha256(content).hexdigest() for name, content in self.old.items() if content is not None}
        for name, digest in listed.items():
            known = [old.get(name), right.get(name)]
            if name in self.files and self.looks_edited(name):
                known.append(hashlib.sha256(self.read(name)).hexdigest())
            expect(digest in known, "rot was protected by a killed command: %s" % name)
            if digest == right.get(name):
                of = self.files[name]
                of.was, of.edited, self.old[name] = name, False, of.content
        if listed != old:
            with open(self.path("d.fecp"), "rb") as f:
                self.whole = f.read()
            # Nobody has looked: files that were cut short or lost may not be protected any more.
            self.restore([name for name, of in self.files.items() if of.bad == "lost" or self.looks_edited(name)])

    def disk_error(self):
        """A file that cannot be read while the folder is verified."""
        name = self.any_file([name for name in self.unedited() if name in self.old])
        if not shutil.which("strace") or name is None:
            return
        self.counts["disk errors"] += 1
        where = ["-e", "trace=pread64,read,preadv", "-e", "inject=pread64,read,preadv:error=EIO", "-P", self.path(name)]
        prefix = ("strace", "-f", "-qq", "-o", os.devnull, *where)
        code, said = self.run("verify", "-v", "d.fecp", prefix=prefix)
        expect(code in (1, 3) and name + ": Input/output error" in said, "a disk error is not told: %d %s" % (code, said))
        before = self.read(name)
        code, said = self.run("repair", "--no-sync", "d.fecp", prefix=prefix)
        self.delete_again()
        self.look()
        expect(self.read(name) == before, "a repair over a disk error changed %s: %s" % (name, said))

    def go(self):
        self.plant()
        for self.night in range(1, self.nights + 1):
            self.happen()
            if self.rng.random() < 0.04:
                self.impatient()
            if self.rng.random() < 0.01:
                self.disk_error()
            if self.rng.random() < 0.03:
                self.interrupted()
            # The owner is away on some nights, and things pile up.
            if self.rng.random() < 0.8:
                self.evening()
            else:
                self.verify("--ignore", "edited,moved,new")
        self.evening()
        code, said = self.run("verify", "--deep", "d.fecp")
        expect(code == 0, "--deep: " + said)
        self.counts["nights"] += self.nights


def year(fec, seed, form, nights, place):
    home = os.path.join(place, "%s-%d" % (form, seed))
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    one, bad = Year(fec, seed, home, form, nights), ""
    try:
        one.go()
    except (Wrong, subprocess.TimeoutExpired, AssertionError, OSError, KeyError, tarfile.TarError) as wrong:
        text = str(wrong) if isinstance(wrong, Wrong) else traceback.format_exc()
        if one.image:
            one.end()
        bad = "seed %d, night %d: %s\n  %s\n  left in %s; again: --seed %d --rounds 1 --form %s" % (
            seed, one.night, text, "\n  ".join(one.story), home, seed, form)
    else:
        one.end()
        shutil.rmtree(home)
    return bad, one.counts, one.took


def cannot_mount(form, place):
    """Why file systems of this form cannot be had here; None where they can."""
    try:
        probe = Year("", 0, os.path.join(place, "probe"), form, 0)
        probe.end()
        os.rmdir(probe.home)
    except OSError as error:
        return str(error)
    return None


# Commands that do what must not be: each has to be found. `$fec` is the real one.
LIARS = {
    "exit code 0 over": 'case $1 in verify) "$fec" "$@" > /dev/null 2>&1; exit 0 ;; esac\nexec "$fec" "$@"',
    "an edit was undone": 'case $1 in repair) shift; exec "$fec" repair --revert "$@" ;; esac\nexec "$fec" "$@"',
    "rot was protected": 'case "$*" in *--update*) set -- protect --portable --sha256 -f d ;; esac\nexec "$fec" "$@"',
    "exit code 3, and every": '"$fec" "$@"; code=$?\ncase $1,$code in verify,1) exit 3 ;; esac; exit $code',
    "a repair mends nothing": 'case $1 in repair) exit 1 ;; esac\nexec "$fec" "$@"',
}


def selftest(fec, place):
    """Expects each lie to be found, by its name, and returns the number of those that were not."""
    missed = 0
    for words, line in LIARS.items():
        liar = os.path.join(place, "liar")
        with open(liar, "w") as f:
            f.write("#!/bin/sh\nfec=%s\n%s\n" % (shlex.quote(fec), line))
        os.chmod(liar, 0o755)
        found = any(words in year(liar, seed, "portable", 60, place)[0] for seed in range(5))
        print("%s: %s" % (words, "found" if found else "MISSED"), flush=True)
        missed += not found
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4, help="years")
    parser.add_argument("--nights", type=int, default=365, help="of a year")
    parser.add_argument("--form", choices=["portable", *IMAGES], default="portable")
    parser.add_argument("--dir", help="where trees stand [default: memory]")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--selftest", action="store_true", help="only see that false commands are found")
    args = parser.parse_args()
    fec, began = os.path.abspath(args.fec), time.monotonic()
    os.environ["RUST_LOG"] = "off"
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    place = args.dir or tempfile.mkdtemp(prefix="fec-years-", dir=memory)
    if args.form in IMAGES:
        why = cannot_mount(args.form, place)
        if why:
            print("years: %s cannot be had here: %s" % (args.form, why.splitlines()[0]), file=sys.stderr)
            shutil.rmtree(place) if not args.dir else None
            return 2
    if args.selftest:
        missed = selftest(fec, place)
        shutil.rmtree(place)
        return 1 if missed else 0
    counts, bad, took = collections.Counter(), 0, 0.0
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        seeds = range(args.seed, args.seed + args.rounds)
        for wrong, of_year, seconds in pool.map(year, *zip(*((fec, seed, args.form, args.nights, place) for seed in seeds))):
            counts.update(of_year)
            took += seconds
            if wrong:
                bad += 1
                print(wrong + "\n", flush=True)
    if not args.dir and not bad:
        shutil.rmtree(place)
    print("years: %d (%s), %s; %.0f s, %.0f of them in fec; %s" % (
        args.rounds, args.form, ", ".join("%d %s" % (n, x) for x, n in sorted(counts.items())),
        time.monotonic() - began, took, "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
