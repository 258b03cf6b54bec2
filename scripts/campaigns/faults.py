#!/usr/bin/env python3
"""Faults at every system call of `fec protect`, `repair` and `protect --update` that writes, and errors of reads, made
by strace.

    faults.py --fec BIN [--only NAME,...] [--every N] [--seed S] [--jobs J] [--threads N] [--dir DIR] [--keep]
              [--point CALL:N:FAULT]

A clean run under strace tells the calls. Then each fault happens at each call that writes, in a tree of its own: the
command is killed (kill) or interrupted (int) there; the call fails once with ENOSPC or EIO, or from then on (ENOSPC+,
EIO+); all calls that write fail from there on (dead). Each read or open fails too, and each file in turn cannot be read
at all (unreadable). NAME is protect, verify, repair or update, or one of their scenarios: protect-force,
repair-resumed, repair-revert, repair-anew, update-anew.

These things must hold:
- protect and update never change a protected file, and repair changes it only towards what it was;
- a sidecar that was there is still usable, and a new one is whole or not there;
- the same command then ends without a fault as the clean run did (bytes, times, modes, links, sidecar, exit code), and
  nothing is left behind;
- a run that failed says so in one line and with exit code 4 (or 3, if it could not read enough);
- a run with the exit code of the clean one did what the clean one does;
- nothing takes more than a minute.
Exit code 1 if anything did not hold; 2 if strace cannot be used. With --every 20 it takes about half a minute.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import queue
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 60                                          # seconds for one command
WHEN = 1_700_000_000 * 10**9                        # when all files were last changed
BLOCK = 4096                                        # of the sidecar
SIDECAR, JOURNAL = "t.fecp", "t.fecp.repairing"
WRITERS = ("write pwrite64 pwritev pwritev2 fsync fdatasync syncfs sync_file_range ftruncate truncate fallocate rename renameat renameat2 link "
           "linkat symlink symlinkat mkdir mkdirat unlink unlinkat rmdir utimensat fchmod fchmodat chmod copy_file_range sendfile flock").split()
READERS = "read pread64 preadv getdents64 readlinkat".split()
OPENERS = "open openat openat2".split()             # writers if they create, else readers
# Calls that tidy up: if one fails, something may be left until the next run.
UNDO = ("unlink", "unlinkat", "rmdir", "ftruncate")

# The thing at a path. first: the first path of the same file
Node = collections.namedtuple("Node", "kind data mode when first")
Run = collections.namedtuple("Run", "code out err log")
# rest: what follows the call's name, in each thread that makes such a call for the nth time
Point = collections.namedtuple("Point", "call nth reads rest", defaults=[""])
# A command in a state: `end` is what it comes to, `made` the folders whose times it has to set
Scenario = collections.namedtuple("Scenario", "name op args state end code made points")


class Failed(Exception):
    """Something is wrong before any fault."""


# ---------------------------------------------------------------- trees

def snap(folder):
    """{path: Node} of all that lies in a folder."""
    found, first = {}, {}
    for at, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(at, name)
            info, key = os.lstat(path), os.path.relpath(path, folder)
            if stat.S_ISDIR(info.st_mode):
                kind, data = "folder", b""
            elif stat.S_ISLNK(info.st_mode):
                kind, data = "link", os.fsencode(os.readlink(path))
            else:
                with open(path, "rb") as f:
                    kind, data = "file", f.read()
                first[key] = info.st_ino
            found[key] = Node(kind, data, stat.S_IMODE(info.st_mode), info.st_mtime_ns, None)
    names = {first[key]: key for key in sorted(first, reverse=True)}
    return {key: node._replace(first=names.get(first.get(key))) for key, node in found.items()}


def restore(folder, state):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for key, node in sorted(state.items()):
        path = os.path.join(folder, key)
        if node.kind == "folder":
            os.mkdir(path)
        elif node.kind == "link":
            os.symlink(os.fsdecode(node.data), path)
        elif node.first != key:
            os.link(os.path.join(folder, node.first), path)
        else:
            with open(path, "wb") as f:
                f.write(node.data)
    # The list of a repair comes first: files that the repair has begun were changed later, by the clock of the system.
    for key, node in sorted(state.items(), key=lambda x: (x[0] == JOURNAL, x[0]), reverse=True):
        path = os.path.join(folder, key)
        if node.kind != "link":
            os.chmod(path, node.mode)
        os.utime(path, ns=(node.when, node.when), follow_symlinks=False)
        if key == JOURNAL:
            time.sleep(0.03)


def is_left(key):
    name = os.path.basename(key)
    return name.startswith(".fec-") or key.split("/")[0].startswith(".fec-") or name.endswith(".repairing")


def differences(got, want, made):
    """The paths that are not as they should be, in words; the times of folders count only in `made`."""
    found = []
    for key in sorted(set(got) | set(want)):
        a, b = got.get(key), want.get(key)
        if a is None or b is None:
            found.append("%s is missing" % key if a is None else "%s is left behind" % re.sub(r"\d+", "N", key) if is_left(key) else "%s is new" % key)
        elif a != b:
            wrong = [name for name in Node._fields if getattr(a, name) != getattr(b, name)
                     and not (name == "when" and (a.kind == "folder" and key not in made or key == SIDECAR))]
            found += ["%s has other %s" % (key, ", ".join(wrong))] * bool(wrong)
    return found


def towards(got, before, end):
    """The changes by a repair that did not end which are no step towards the mended state, in words."""
    found, is_begun = [], JOURNAL in got
    for key in (x for x in sorted(set(got) | set(before) | set(end)) if not is_left(x)):
        a, b, e = got.get(key), before.get(key), end.get(key)
        bare = [node and node._replace(first=None, when=0 if node.kind != "file" or key == SIDECAR else node.when) for node in (a, b, e)]
        if bare[0] in bare[1:] or a and b is None and e and a.kind == e.kind == "folder":
            continue
        if not all(node and node.kind == "file" for node in (a, b, e)):
            found.append("%s is neither what it was nor what it should be" % key)
        elif b.data == e.data and (a.data != b.data or a.mode != b.mode or not is_begun):
            found.append("%s was not damaged, and is changed" % key)
        elif a.mode not in (b.mode, e.mode):
            found.append("%s has mode %o" % (key, a.mode))
        else:
            step = 1 if key == SIDECAR else BLOCK  # its blocks stand anywhere
            for at in [] if a.data in (b.data, e.data) else range(0, len(a.data), step):
                now, old, new = (node.data[at:at + step] for node in (a, b, e))
                if now not in (old, new, old.ljust(len(now), b"\0"), new.ljust(len(now), b"\0")):
                    found.append("%s: bytes from %d on are neither old nor right" % (key, at))
                    break
    return found


def tree(seed):
    """About thirty files."""
    rng, state = random.Random(seed), {}

    def add(key, data, mode=0o644):
        state["t/" + key] = Node("file", data, mode, WHEN + len(state) * 10**9, "t/" + key)
    for key in ("", "/a", "/a/deep", "/b", "/c", "/lost", "/lost/in"):
        state["t" + key] = Node("folder", b"", 0o775 if "lost" in key else 0o755, WHEN - 10**9 * (1 + len(state)), None)
    for nth, size in enumerate((1, 100, 511, 1000, 1024, 1025, 3000, 4095, 4096, 4097, 5000, 8192, 10_000, 12_288, 20_000, 33_000, 50_000, 70_001)):
        add("%s/%d" % (("a", "a/deep", "b", "c")[nth % 4], size), rng.randbytes(size))
    for key, size in (("big", 300_000), ("hole", 100_000), ("b/grown", 60_000), ("lost/one", 9000), ("lost/in/two", 30_000), ("moved", 41_000),
                      ("c/cut", 25_000), ("c/named", 15_000), ("linked", 22_000)):
        add(key, rng.randbytes(size))
    add("empty", b"")
    add("run", b"#!/bin/sh\n" + rng.randbytes(6000), 0o755)
    state["t/a/again"] = state["t/linked"] = state["t/linked"]._replace(first="t/a/again")
    state["t/c/link"] = Node("link", b"../big", 0o777, WHEN - 5, None)
    return state


class Edit:
    """Changes of a state."""

    def __init__(self, state, seed):
        self.state, self.rng, self.now = dict(state), random.Random("%s edit" % seed), WHEN + 10**15

    def put(self, key, data=None, when=None, mode=None, **more):
        node = self.state.get(key, Node("file", b"", 0o644, self.now, key))
        new = node._replace(data=node.data if data is None else data, when=when or node.when, mode=mode or node.mode, **more)
        for other in [x for x, y in self.state.items() if y.first and y.first == node.first] + [key]:
            self.state[other] = new
        return self

    def flip(self, *keys):
        for key in keys:
            data = bytearray(self.state[key].data)
            for at in self.rng.sample(range(len(data)), min(len(data), 3)):
                data[at] ^= 1 << self.rng.randrange(8)
            self.put(key, bytes(data))
        return self

    def zero(self, key, at, count):
        data = self.state[key].data
        return self.put(key, data[:at] + bytes(count) + data[at + count:])

    def write(self, key, at, count, keep=True):
        """Other bytes there, inserted before those that are there (keep) or over them, and a new time."""
        data = self.state.get(key, Node("file", b"", 0, 0, key)).data
        return self.put(key, data[:at] + self.rng.randbytes(count) + data[at if keep else at + count:], self.now)

    def remove(self, *keys):
        for key in keys:
            gone = self.state.pop(key)
            left = sorted(x for x, y in self.state.items() if y.first and y.first == gone.first)
            self.state.update((x, self.state[x]._replace(first=left[0])) for x in left)
        return self

    def rename(self, key, to):
        self.state[to] = self.state.pop(key)._replace(first=to)
        return self


# ---------------------------------------------------------------- commands

def pour(pipe, feed):
    """Writes all of `feed`, as far as somebody reads it, and closes the pipe."""
    try:
        with pipe:
            pipe.write(feed)
    except BrokenPipeError:
        pass


def run(command, folder, log=None, feed=None, limit=LIMIT):
    """Runs a command to its end, with `feed` in a pipe as its input. In the text of its output each byte that is not
    UTF-8 is a surrogate."""
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
    if feed is not None:
        # The thread writes as other programs do: as much at a time as the pipe takes.
        pipe, child.stdin = child.stdin, None
        threading.Thread(target=pour, args=(pipe, feed), daemon=True).start()
    try:
        out, err = child.communicate(timeout=limit)
        code = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        code = "no end"
    with open(log or os.devnull, errors="replace") as f:
        return Run(code, out.decode(errors="surrogateescape"), err.decode(errors="replace"), f.read())


def points_of(log, folder):
    """The calls of a run on a folder or on the run's output, counted as strace does, by thread."""
    counts, points, elsewhere = collections.Counter(), {}, set()
    for thread, call, rest in re.findall(r"^(\d+) +(\w+)\((.*)", log, re.M):
        counts[thread, call] += 1
        if folder in rest or call == "write" and rest[:2] in ("1<", "2<"):
            reads = call in READERS or call in OPENERS and "O_CREAT" not in rest
            points[call, counts[thread, call]] = Point(call, counts[thread, call], reads)
        else:
            # A fault of this number would also hit another thread, while its libraries are loaded.
            elsewhere.add((call, counts[thread, call]))
    return [point for key, point in points.items() if key not in elsewhere]


def faults_of(point):
    if not point.nth:
        return ["unreadable"]
    if point.reads:
        return ["EIO"] if point.call in OPENERS + ["readlinkat"] else ["EIO", "EIO+"]
    return ["kill", "int", "ENOSPC", "ENOSPC+", "EIO", "dead"]


def injected(point, fault, points, home):
    """The arguments of strace for a fault."""
    if fault == "unreadable":
        return ["-P", os.path.join(home, point.call), "-e", "inject=read,pread64:error=EIO:when=1+"]
    calls, what = [(point.call, point.nth)], fault.rstrip("+")
    what = what if "=" in what else "error=" + what
    if fault in ("kill", "int"):
        what = "signal=%s" % fault.upper()
    elif fault == "dead":
        # All kinds of calls that write fail, each from the number on that it had reached at this point of the clean
        # run. Messages still go out.
        later = [x for x in points[points.index(point):] if not x.reads and x.call in WRITERS and x.call != "write"]
        what, calls = "error=EIO", {**{x.call: x.nth for x in reversed(later)}, point.call: point.nth}.items()
    more = "+" if fault.endswith("+") or fault == "dead" else ""
    return [x for call, nth in calls for x in ("-e", "inject=%s:%s:when=%d%s" % (call, what, nth, more))]


class Campaign:
    """Scenarios, their faults, and what has to hold after each."""

    calls = WRITERS + READERS + OPENERS

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.binary = os.path.join(folder, "fec")
        shutil.copy2(args.fec, self.binary)
        self.counts, self.problems, self.skipped = collections.defaultdict(collections.Counter), [], []
        self.home, self.homes = os.path.join(folder, "w0"), queue.Queue()
        for nth in range(args.jobs):
            self.homes.put(os.path.join(folder, "w%d" % nth))

    def fec(self, *arguments):
        return [self.binary, arguments[0], "-j", str(self.args.threads), *arguments[1:]]

    def strace(self, home, trace, *more):
        return ["strace", "-f", "-qq", "-y", "-o", home + ".log", "-e", "trace=" + ",".join("?" + x for x in ",".join(trace).split(",")), *more]

    def perform(self, case, home, *before, more=()):
        """Runs the command of a scenario, under strace if `before` is its command line."""
        return run([*before, *self.fec(*case.args, *more)], home, before and home + ".log")

    def faults(self, case, point):
        return faults_of(point) if case.op != "verify" or point.reads else []

    def result(self, state, *arguments):
        """The state after a command without a fault."""
        restore(self.home, state)
        done = run(self.fec(*arguments), self.home)
        if done.code:
            raise Failed("%s: exit code %s: %s" % (" ".join(arguments), done.code, done.err))
        return snap(self.home)

    def scenario(self, name, state, end, *arguments):
        """Runs a command without a fault. `end`: the state that should come of it, if it is known."""
        home, made = self.home, {key for key, node in (end or {}).items() if node.kind == "folder" and key not in state}
        restore(home, state)
        done = run(self.strace(home, self.calls) + self.fec(*arguments), home, home + ".log")
        got = snap(home)
        wrong = [] if end is None else differences(got, end, made)
        check = run(self.fec("verify", SIDECAR), home)
        if wrong or done.code not in (0, 1) or check.code != done.code or any(map(is_left, got)):
            raise Failed("%s: without a fault: exit code %s, verify %s: %s %s" % (name, done.code, check.code, "; ".join(wrong), done.err.strip()))
        unreadable = [Point(key, 0, True) for key, node in sorted(state.items()) if node.kind == "file" and node.data]
        return Scenario(name, name.split("-")[0], arguments, state, got, done.code, made, points_of(done.log, home) + unreadable)

    def is_asked(self, name):
        return not self.args.only or name in self.args.only or name.split("-")[0] in self.args.only

    def scenarios(self):
        original, seed, is_asked = tree(self.args.seed), self.args.seed, self.is_asked
        if is_asked("protect"):
            yield self.scenario("protect", original, None, "protect", "--portable", "t")
        if is_asked("protect-force"):
            old = self.result(original, "protect", "--portable", "-r", "30%", "t")
            yield self.scenario("protect-force", old, None, "protect", "--portable", "-f", "--sha256", "t")
        kept = self.result(original, "protect", "--portable", "-r", "60%", "t")
        rotten = Edit(kept, seed).flip("t/big", "t/b/5000", "t/a/1", "t/run", "t/linked", "t/c/1000").zero("t/hole", 30_001, 20_000)
        rotten.remove("t/a/10000", "t/c/4095", "t/empty", "t/c/link", "t/lost/one", "t/lost/in/two", "t/lost/in", "t/lost")
        rotten.zero(SIDECAR, len(kept[SIDECAR].data) // 3, 30_000)
        edited = Edit(rotten.state, seed).write("t/c/cut", 700, 300, False)
        mended = {**kept, "t/c/cut": edited.state["t/c/cut"]}
        if is_asked("verify"):
            yield self.scenario("verify", edited.state, edited.state, "verify", SIDECAR)
        plain = is_asked("repair-resumed") and self.scenario("repair", edited.state, mended, "repair", SIDECAR)
        if is_asked("repair"):
            yield plain
        if is_asked("repair-resumed"):
            # A repair is killed on the way, between the first and the last bytes that it writes to files.
            writes = [x for x in plain.points if x.call == "pwrite64"]
            restore(self.home, plain.state)
            where = injected(writes[len(writes) * 2 // 5], "kill", plain.points, self.home)
            run(self.strace(self.home, ["pwrite64"], *where) + self.fec(*plain.args), self.home)
            yield self.scenario("repair-resumed", snap(self.home), mended, "repair", SIDECAR)
        if is_asked("repair-revert"):
            changed = Edit(rotten.state, seed).write("t/b/grown", 5, 100).write("t/c/cut", 700, 300, False).rename("t/moved", "t/b/elsewhere")
            changed.put("t/b/20000", mode=0o755).put("t/c/named", b"other", changed.now)
            changed.state["t/b/named"] = changed.state["t/c/named"] = changed.state["t/c/named"]._replace(first="t/b/named")
            changed.put("t/b/511", kept["t/b/511"].data[:300], changed.now)
            changed.state["t/c/link"] = kept["t/c/link"]._replace(data=b"elsewhere")
            more = {key: changed.state[key]._replace(first=key) for key in ("t/b/elsewhere", "t/b/named")}
            yield self.scenario("repair-revert", changed.state, {**kept, **more}, "repair", "--revert", SIDECAR)
        if is_asked("repair-anew"):
            yield self.scenario("repair-anew", Edit(edited.state, seed).write(SIDECAR, 0, 77).state, mended, "repair", SIDECAR)
        if "--update" not in run(self.fec("protect", "--help"), self.folder).out:
            self.skipped.append("protect --update, which this fec does not have")
            return
        old = self.result(original, "protect", "--portable", "t")
        new = Edit(old, seed).write("t/big", 100_000, 5000, False).write("t/b/grown", 60_000, 3000).write("t/a/1", 0, 1, False)
        new.remove("t/c/4095").write("t/new", 0, 40_000).write("t/a/new", 0, 77).rename("t/moved", "t/b/elsewhere")
        new.state["t/run"] = new.state["t/run"]._replace(when=new.now)
        if is_asked("update"):
            yield self.scenario("update", new.state, None, "protect", "--update", "t")
        if is_asked("update-anew"):
            yield self.scenario("update-anew", new.state, None, "protect", "--update", "--sha256", "t")

    def fault(self, case, point, fault):
        home = self.homes.get()
        try:
            restore(home, case.state)
            where = injected(point, fault, case.points, home)
            calls = [x.split("=")[1].split(":")[0] for x in where if x.startswith("inject=")]
            done = self.perform(case, home, *self.strace(home, calls, *where))
            is_hit = done.code == -signal.SIGKILL if fault == "kill" else "INJECTED" in done.log or "SIGINT" in done.log
            wrong, notes = self.judge(case, point, fault, done, home)
            if wrong and self.args.keep:
                place = "%s/%s-%s-%d-%s" % (self.folder, case.name, point.call.replace("/", "_"), point.nth, fault)
                restore(place + ".before", case.state)
                restore(place, snap(home))
                with open(place + ".txt", "w", errors="replace") as f:
                    print(*wrong, *done, sep="\n", file=f)
            return done.code, is_hit, wrong, notes
        finally:
            self.homes.put(home)

    def judge(self, case, point, fault, done, home):
        """The problems after a fault, and after the same command again; and notes, which are no problems."""
        got, wrong, notes = snap(home), [], []
        before, end = case.state.get(SIDECAR), case.end.get(SIDECAR)
        sidecar, left = got.get(SIDECAR), [key for key in got if is_left(key) and key not in case.state]
        is_killed = done.code == -signal.SIGKILL
        # The call that tidies up may have failed too
        # Nothing stops at a file that cannot be read: it is told, and the rest is protected.
        is_told = case.op in ("protect", "update") and done.code == 1 and re.search(r"(not protected|cannot be looked at): \d+ path", done.err)
        is_lame = fault in ("dead", "EIO+", "ENOSPC+") or point.call in (*UNDO, *OPENERS, "getdents64")
        if case.op in ("repair", "verify"):
            wrong += towards(got, case.state, case.end)
        else:
            files = [{k: v for k, v in x.items() if k != SIDECAR and not is_left(k)} for x in (got, case.state)]
            wrong += ["protected: " + x for x in differences(*files, set(files[1]))]
            is_part = case.name == "update" and sidecar and sidecar.data.startswith(before.data) and (is_killed or is_lame)
            if (sidecar and sidecar.data) not in (before and before.data, end.data) and not is_part and not is_told:
                wrong.append("the sidecar is neither the old nor the new one")
            if is_part:
                check = run(self.fec("verify", "--json", SIDECAR), home)
                report = json.loads(check.out) if check.code in (0, 1) else {}
                if not report.get("mendable") or report["recovery_damaged"]:
                    wrong.append("the sidecar is worse than before: verify ends with %s: %s" % (check.code, check.err.strip()[-200:]))
        if not is_killed:
            may = [case.code, 4] + [130] * (fault == "int") + [3] * (fault in ("EIO+", "unreadable") and case.op != "protect")
            may += [1] * ("left out" in done.err or bool(is_told))
            may += [1] * (point.reads and case.op == "update")  # refused: a file that cannot be read looks damaged
            if done.code not in may:
                wrong.append("exit code %s: %s" % (done.code, done.err.strip()[-200:]))
            elif done.code == case.code:
                # A message names each path of which the place, as it says, cannot take something.
                out = re.findall(r"left out (?:the \w+ of )?(\S+): the place", done.err)
                more = [x for x in differences(got, case.end, case.made) if not (is_lame and x.endswith("left behind")) and x.split(" ")[0] not in out]
                wrong += ["exit code %d, but %s" % (done.code, x) for x in more]
            elif done.code == 4 and point.call != "write":
                if len(re.findall(r"^fec: .*os error", done.err, re.M)) != 1:
                    notes.append("another message: " + " / ".join(done.err.strip().split("\n")[-2:])[-150:])
            if not is_lame:
                wrong += ["%s is left behind" % re.sub(r"\d+", "N", key) for key in left if key != JOURNAL or case.op != "repair"]
        if re.search(r"panicked|RUST_BACKTRACE|core dumped", done.err):
            wrong.append("it panics: " + done.err.strip()[-200:])
        # The same command runs again; a protect that had ended, except for its output, needs -f.
        is_there = case.name == "protect" and sidecar is not None
        notes += ["exit code 4, and the sidecar is there"] * (is_there and done.code == 4)
        again = self.perform(case, home, more=["-f"] * is_there)
        if again.code != case.code:
            wrong.append("again: exit code %s: %s" % (again.code, again.err.strip()[-200:]))
        # The files that were told are protected by another update then.
        is_another = is_told and case.op == "update"
        wrong += ["again: " + what for what in differences(snap(home), case.end, case.made) if not (is_another and what.startswith(SIDECAR))]
        if is_another and run(self.fec("verify", SIDECAR), home).code:
            wrong.append("again: verify finds something")
        return wrong, notes

    def session(self):
        args = self.args
        for case in self.scenarios():
            todo = [(point, fault) for point in case.points for fault in self.faults(case, point)
                    if args.point in (None, "%s:%d:%s" % (point.call, point.nth, fault))]
            todo = [todo[x] for x in sorted(random.Random(args.seed).sample(range(len(todo)), -(-len(todo) // args.every)))]
            counts = self.counts[case.name]
            counts["calls"] = len(case.points)
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                for (point, fault), (code, is_hit, wrong, notes) in zip(todo, pool.map(lambda x: self.fault(case, *x), todo)):
                    counts["faults"] += 1
                    counts["not reached"] += not is_hit
                    counts["killed" if fault == "kill" and is_hit else "exit %s" % code] += 1
                    counts["failed"] += bool(wrong)
                    counts.update("note: " + note for note in set(notes))
                    self.problems += [(case.name, re.sub(r"\b[0-9a-f]{64}\b|\d+", "N", x).replace("\n", " / ")) for x in set(wrong)]
                    if wrong:
                        where, what = "%s:%d:%s" % (point.call, point.nth, fault), "; ".join(wrong).replace("\n", " / ")
                        print("FAILED %s %s: %s   [--only %s --point %s --keep]" % (case.name, where, what, case.name, where), flush=True)
            print("faults: %s: %d calls, %d faults, %d failed" % (case.name, len(case.points), counts["faults"], counts["failed"]), file=sys.stderr)
        self.table()
        return 1 if self.problems else 0

    def table(self):
        keys = [x for x in sorted({key for counts in self.counts.values() for key in counts}) if not re.match("note|calls|faults|failed", x)]
        print("\n| scenario | calls | faults | %s | failed |\n|---%s|" % (" | ".join(keys), "|---" * (len(keys) + 3)))
        for name, counts in self.counts.items():
            print("| %s | %s |" % (name, " | ".join(str(counts[x]) for x in ["calls", "faults", *keys, "failed"])))
        for (name, what), count in collections.Counter(self.problems).most_common():
            print("- %s, %d times: %s" % (name, count, what))
        for name, key in [(name, key) for name, counts in self.counts.items() for key in counts if key.startswith("note")]:
            print("- %s, %d times a %s" % (name, self.counts[name][key], key))
        for what in self.skipped:
            print("- left out: " + what)


def options(text, threads):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--only", type=lambda x: x.split(","))
    parser.add_argument("--every", type=int, default=1, help="take only each N-th fault (1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="faults at the same time (2)")
    parser.add_argument("--threads", type=int, default=threads, help="threads of fec; with 1 the calls are the same in each run (%d)" % threads)
    parser.add_argument("--dir")
    parser.add_argument("--keep", action="store_true", help="keep what failed in DIR")
    parser.add_argument("--point")
    return parser


def main(parser, campaign):
    args = parser.parse_args()
    min(args.every, args.jobs, args.threads) > 0 or parser.error("--every, --jobs and --threads are at least 1")
    args.fec = shutil.which(args.fec) or parser.error("there is no program %s" % args.fec)
    test = shutil.which("strace") and run(["strace", "-f", "-qq", "-o", os.devnull, "-e", "inject=getppid:error=EIO:when=1", "true"], ".")
    if not test or test.code:
        print("faults: needs strace with inject=, and permission to trace. " + (test.err.strip().split("\n")[-1] if test else ""), file=sys.stderr)
        return 2
    # Files are restored with no more permissions than the mask of the process allows, and all of them are compared.
    os.umask(0)
    place = args.dir or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else os.getcwd())
    os.makedirs(place, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="fec-faults-", dir=os.path.realpath(place))
    try:
        return campaign(args, folder).session()
    except Failed as e:
        print("FAILED " + str(e))
        return 1
    finally:
        print("kept in " + folder) if args.keep else shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(options(__doc__, 1), Campaign))
