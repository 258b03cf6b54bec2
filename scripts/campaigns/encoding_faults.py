#!/usr/bin/env python3
"""Faults at every system call of `fec encode`, `decode`, `verify` and `repair` with shard files and containers, made by
strace.

    encoding_faults.py --fec BIN [--only NAME,...] [--every N] [--seed S] [--jobs J] [--threads N] [--dir DIR] [--keep]
                       [--point CALL:N:FAULT] [--power]

The machinery is that of faults.py, which does the same for sidecars. A clean run under strace tells the calls that
open, read, write, sync, rename, map, lock, close, cut and start threads, from when the loader and Rust's runtime are
done. Each run then has a fault at one of these calls. FAULTS lists the faults that suit a call: the call fails once or
from then on (ENOSPC+); the process is killed there; all calls that write fail from there on (dead); or the call does
nothing and lies about it (retval=0, retval=1). NAME is a scenario (encode-shards), or encode, decode, verify or repair
for all scenarios of one command.

These things must hold:
- inputs are unchanged, and an output is the old or the new one, whole, or is not there;
- after the exit code of the clean run, everything is what the clean run made, byte for byte;
- any other exit code is 4, or 3 where fec could not read enough, or 1 of verify, with one line on stderr;
- there is no signal, panic or abort, and nothing takes more than ten seconds;
- nothing temporary is left, except by a process that was killed or could not remove a file; the same command then
  succeeds, and removes the rest.
Exit code 1 if anything did not hold; 2 if strace cannot be used. A whole run takes hours; with --every 400 half a
minute.

strace counts the calls of each thread, so a fault at the n-th call hits the n-th call of every thread. Numbers that
calls of the loader have too are left out. Faults that no program can notice are left out as well: a false end of file
in a pipe (retval=0 of reads of standard input); one byte that is not written, or not read from the only copy, though
the system says that it is (retval=1 of writes, of reads when encoding, and of reads of the temporary file of an output
to a pipe); and data that is lost although fsync says that it is safe.

--power tests clean runs against losses of power instead, by a model (class Disk): after each call, any part of the data
that is not synced may be on the disk, and any other part may be missing. Each output must be the old or the new one,
whole, in every case, and the new one in the end.
"""
import collections
import os
import random
import re
import signal
import sys

import faults
from faults import Failed, Node, is_left, restore, run, snap

LIMIT = 10                                          # seconds for one command
STREAMS = "write writev read readv".split()
# Which faults suit which calls
FAULTS = {
    "open openat": "EMFILE EMFILE+ EIO ENOSPC EDQUOT EINTR kill",
    "read readv pread64 preadv preadv2": "EIO EIO+ EINTR retval=0 retval=1 kill",
    "getdents64": "EIO EINTR retval=0 kill",
    "readlink readlinkat stat lstat fstat newfstatat statx statfs fstatfs lseek": "EIO",
    "fcntl flock": "EIO ENOLCK EINTR",
    "write writev pwrite64 pwritev pwritev2": "ENOSPC ENOSPC+ EIO EDQUOT EINTR retval=0 kill dead",
    "copy_file_range sendfile splice": "ENOSPC EIO EINTR retval=0 kill dead",
    "fsync fdatasync syncfs sync_file_range": "EIO EIO+ ENOSPC EDQUOT EINTR kill dead",
    "ftruncate fallocate": "ENOSPC EIO EDQUOT EINTR kill dead",
    "rename renameat renameat2 link linkat mkdir mkdirat": "ENOSPC EIO EDQUOT kill dead",
    "unlink unlinkat rmdir chmod fchmod fchmodat": "EIO EIO+ kill dead",
    "close": "EIO EINTR ENOSPC kill",
    "mmap mprotect mremap": "ENOMEM ENOMEM+ kill",
    # brk never gives an error: the kernel returns the old end, which is below the end that was asked for.
    "brk": "retval=0 retval=0+ kill",
    "munmap madvise": "ENOMEM",
    "clone clone3": "EAGAIN EAGAIN+ ENOMEM kill",
}
FAULTS_OF = {call: named.split() for calls, named in FAULTS.items() for call in calls.split()}
READ = re.compile("read|pread|open|getdents|stat|lseek|mmap|fcntl")

# outputs: names of what is made. by_file: the files of a folder are made anew one by one. feed: what comes through a
# pipe. out: what the clean run prints. key: the signer's public key, if signatures make bytes differ from run to run
Case = collections.namedtuple("Case", "name op args state end code made points outputs by_file feed out key")


def points_of(log):
    """The calls that can be hit: those after the loader and Rust's runtime, which makes a stack for signals last."""
    counts, rests, early, is_ours = collections.Counter(), {}, set(), False
    for thread, call, rest in re.findall(r"^(\d+) +(\w+)\((.*)", log, re.M):
        if not is_ours:
            is_ours = call == "sigaltstack" and rest.startswith("{")
        counts[thread, call] += 1
        key = call, counts[thread, call]
        if is_ours and call in FAULTS_OF:
            rests.setdefault(key, []).append(rest[:150])
        elif not is_ours:
            early.add(key)
    if not is_ours:
        raise Failed("it is not seen where the program begins: no call of sigaltstack")
    return [faults.Point(*key, key[0] not in faults.WRITERS, " | ".join(rest)) for key, rest in rests.items() if key not in early]


def bare(state, name=None, key=lambda path: path):
    """The things that are compared of a state, or of one output in it: kinds, bytes and permissions."""
    return {key(path): (x.kind, x.data, x.mode) for path, x in state.items() if name in (None, path, path.split("/")[0])}


class Campaign(faults.Campaign):
    calls = list(FAULTS_OF) + ["sigaltstack"]

    def __init__(self, args, folder):
        super().__init__(args, folder)
        self.by_call = collections.defaultdict(collections.Counter)

    # ------------------------------------------------------------ scenarios

    def perform(self, case, home, *before, more=()):
        return run([*before, *self.fec(*case.args, *more)], home, before and home + ".log", case.feed, LIMIT)

    def case(self, name, state, outputs, *arguments, feed=None, code=0, by_file=False, key=None):
        """Runs a command twice without a fault. Both runs must make the same."""
        case = Case(name, name.split("-")[0], arguments, state, None, code, (), [], outputs, by_file, feed, None, key)
        runs = []
        for before in self.strace(self.home, self.calls), ():
            restore(self.home, state)
            done = self.perform(case, self.home, *before)
            runs.append((done, snap(self.home)))
            made = runs[-1][1]
            if done.code != code or any(map(is_left, made)) or bare({k: v for k, v in made.items() if k.split("/")[0] not in outputs}) != bare(
                    {k: v for k, v in state.items() if k.split("/")[0] not in outputs}):
                raise Failed("%s: without a fault: exit code %s: %s, and %s" % (name, done.code, done.err.strip(), ", ".join(sorted(made))))
        case = case._replace(end=runs[0][1], out=runs[0][0].out, points=points_of(runs[0][0].log))
        restore(self.home, state)
        if runs[0][0].out != runs[1][0].out or not all(self.is_new(case, self.home, runs[1][1], x, runs[1][1]) for x in outputs if not key):
            raise Failed("%s: two runs differ" % name)
        return case

    def files(self, **contents):
        return {name.replace("_", "."): Node("file", data, 0o644, faults.WHEN, name.replace("_", ".")) for name, data in contents.items()}

    def made(self, state, *arguments):
        """A state, and what a command adds to it."""
        return self.result(state, *arguments)

    def scenarios(self):
        for name, make in self.plans():
            if self.is_asked(name):
                yield make(name)

    def plans(self):
        """(name, what makes the scenario)"""
        rng = random.Random(self.args.seed)
        big, old, tiny = rng.randbytes(5_000_000), rng.randbytes(2_000_000), rng.randbytes(1000)
        five = ["-k", "3", "-m", "2", "--set-size", "1M"]
        hundred = ["--set-size", "1M"]
        plain, small = self.files(in_bin=big), self.files(in_bin=tiny)
        both = self.files(in_bin=big, old_bin=old)

        def damaged(state, count):
            """Some files are gone, and bytes are flipped in all others, in a third of the sets."""
            edit = faults.Edit(state, self.args.seed)
            shards = [x for x in sorted(state) if x.endswith(".shard")]
            edit.remove("in.bin", *shards[:count])
            edit.flip(*shards[count:count + 1], *[x for x in state if x.endswith(".fec")])
            return edit.state

        def shards(options, payload=plain):
            return self.made(payload, "encode", *options, "in.bin")

        def container(options, payload=plain):
            return self.made(payload, "encode", *options, "in.bin", "-o", "c.fec")

        folder = ["in.bin.shards"]
        yield "encode-shards", lambda name: self.case(name, plain, folder, "encode", *five, "in.bin")
        yield "encode-shards-100", lambda name: self.case(name, plain, folder, "encode", *hundred, "in.bin")
        yield "encode-shards-tiny", lambda name: self.case(name, small, folder, "encode", *five, "in.bin")
        yield "encode-shards-read", lambda name: self.case(name, plain, folder, "encode", *five, "--no-mmap", "in.bin")
        yield "encode-container", lambda name: self.case(name, plain, ["c.fec"], "encode", *five, "in.bin", "-o", "c.fec")
        yield "encode-container-tiny", lambda name: self.case(name, small, ["c.fec"], "encode", *five, "in.bin", "-o", "c.fec")
        yield "encode-pipe", lambda name: self.case(name, {}, ["c.fec"], "encode", *five, "--group-size", "2", "-o", "c.fec", feed=big)
        yield "encode-stdout", lambda name: self.case(name, plain, [], "encode", *five, "in.bin", "-o", "-")

        def forced(name, before, *more):
            state = self.made(both, "encode", *five, "old.bin", "-o", before)
            return self.case(name, state, [before.rstrip("/")], "encode", "-f", *five, "in.bin", *more)
        yield "encode-force-shards", lambda name: forced(name, "in.bin.shards/")
        yield "encode-force-container", lambda name: forced(name, "c.fec", "-o", "c.fec")

        def kept(name):
            state = damaged(shards(five), 1)
            state.update(plain)
            return self.case(name, state, folder, "encode", "--keep", *five, "in.bin", by_file=True)
        yield "encode-keep", kept

        def signed(name, outputs, *more):
            os.environ["FEC_SIGN_PASSPHRASE"] = ""     # without a terminal, a key without one is made only so
            state = self.made(plain, "keygen", "--sign", "-o", "key")
            return self.case(name, state, outputs, "encode", *five, "--sign", "key", "in.bin", *more, key="key.pub")
        yield "encode-sign", lambda name: signed(name, folder)
        yield "encode-sign-container", lambda name: signed(name, ["c.fec"], "-o", "c.fec")
        yield "encode-sign-detached", lambda name: signed(name, [*folder, "sig", "root"], "--signature", "sig", "--root-file", "root")
        yield "decode-shards", lambda name: self.case(name, damaged(shards(five), 1), ["back"], "decode", *folder, "-o", "back")
        yield "decode-shards-100", lambda name: self.case(name, damaged(shards(hundred), 60), ["back"], "decode", *folder, "-o", "back")
        yield "decode-shards-tiny", lambda name: self.case(name, damaged(shards(five, small), 1), ["back"], "decode", *folder, "-o", "back")

        def decoded(name, *more, outputs=("back",), deep=(), piped=False):
            state = damaged(container(five), 0)
            state.update({"back": plain["in.bin"]._replace(data=old, first="back")} if outputs else {})
            feed = state.pop("c.fec").data if piped else None
            return self.case(name, state, list(outputs), "decode", *deep, *["-"] * piped or ["c.fec"], "-o", *more, feed=feed)
        yield "decode-container", lambda name: decoded(name, "back", "-f")
        yield "decode-pipe", lambda name: decoded(name, "back", "-f", piped=True)
        yield "decode-stdout", lambda name: decoded(name, "-", outputs=())
        for deep in [], ["--deep"]:
            more = "-deep" * bool(deep)
            yield "verify-shards" + more, lambda name, deep=deep: self.case(name, shards(five), [], "verify", *deep, *folder)
            yield "verify-damaged" + more, lambda name, deep=deep: self.case(
                name, damaged(shards(five), 1), [], "verify", *deep, *folder, code=1)
            yield "verify-container" + more, lambda name, deep=deep: self.case(name, container(five), [], "verify", *deep, "c.fec")
        yield "repair-shards", lambda name: self.case(name, damaged(shards(five), 1), folder, "repair", *folder, by_file=True)
        yield "repair-shards-100", lambda name: self.case(name, damaged(shards(hundred), 60), folder, "repair", *folder, by_file=True)
        yield "repair-container", lambda name: self.case(name, damaged(container(five), 0), ["c.fec"], "repair", "c.fec")

    def faults(self, case, point):
        # A pipe gives other pieces in each run, so any read may be a read of the pipe.
        named, is_pipe = FAULTS_OF[point.call], case.feed is not None and point.call == "read"
        if is_pipe or case.op == "encode" or "(deleted)" in point.rest:
            named = [x for x in named if x != "retval=1"]
        if is_pipe:
            named = [x for x in named if x != "retval=0"]
        if point.call in ("open", "openat") and "O_CREAT" not in point.rest:
            named = [x for x in named if x not in ("ENOSPC", "EDQUOT")]
        return named

    # ------------------------------------------------------------ what has to hold

    def is_new(self, case, home, got, name, end=None):
        """Tells whether an output is what the clean run made. Signatures name the time: such outputs need the same
        files, and a signature."""
        a, b = bare(got, name), bare(end or case.end, name)
        if not case.key or a == b or not a:
            return a == b
        sizes = [{path: (kind, len(data), mode) for path, (kind, data, mode) in x.items()} for x in (a, b)]
        detached = ["--signature", "sig"] * ("sig" in case.args)
        if detached and name not in ("sig", "root"):
            return False
        target = next(x for x in case.outputs if x not in ("sig", "root")) if name not in ("sig", "root") or case.outputs[0] in got else None
        if name == "root" or target is None:
            return sizes[0] == sizes[1]
        return sizes[0] == sizes[1] and not run(self.fec("verify", "--signer", case.key, *detached, target), home).code

    def changes(self, case, home, got):
        """Three lists: outputs that are neither old nor new, outputs that are not new, and other paths that changed."""
        torn, old = [], []
        outside = [{k: v for k, v in x.items() if k.split("/")[0] not in case.outputs and not is_left(k)} for x in (got, case.state)]
        inputs = ["input: " + x for x in faults.differences(*outside, ())]
        for name in case.outputs:
            if self.is_new(case, home, got, name):
                continue
            old.append(name)
            now, was, new = (bare(x, name) for x in (got, case.state, case.end))
            # In a folder that is mended, temporary files stand beside the others.
            now = {k: v for k, v in now.items() if not (case.by_file and is_left(k))}
            wrong = [k for k in {*now, *was, *new} if now.get(k) not in (was.get(k), new.get(k))]
            if now != was and (not case.by_file or wrong):
                torn.append("%s is neither the old nor the new one: %s" % (name, ", ".join(sorted(wrong)[:3])))
        return torn, old, inputs

    def judge(self, case, point, fault, done, home):
        if done.code == "no end":  # a machine that is busy may be slow once
            restore(home, case.state)
            done = self.perform(case, home, *self.strace(home, [point.call], *faults.injected(point, fault, case.points, home)))
        got, notes = snap(home), []
        torn, old, wrong = self.changes(case, home, got)
        wrong += torn
        left = [key for key in got if is_left(key)]
        is_killed = done.code == -signal.SIGKILL
        is_lame = fault.endswith("+") or fault == "dead" or point.call in faults.UNDO
        # A report of verify takes the place of a message. Where standard error fails, fec can write no message.
        is_told = not re.search(r"(^|\| )2<", point.rest) and fault != "dead" and not (point.call == "write" and fault.endswith("+"))
        is_told &= case.op != "verify" or not done.out
        if not is_killed:
            # 2: an old shard file that seems to be empty is none, so encode refuses to replace it.
            may = [case.code, 4] + [2] * (case.op == "encode" and fault.startswith("retval")) + [3] * (case.op != "encode" and bool(READ.match(point.call))) + [1] * (case.op == "verify")
            if done.code not in may or case.op == "verify" and case.code == 1 and done.code == 0:
                wrong.append("exit code %s: %s" % (done.code, done.err.strip()[-300:]))
            elif done.code == case.code:
                wrong += ["exit code %d, but %s is not new" % (done.code, x) for x in old]
                if done.out != case.out and case.code == 0:
                    wrong.append("exit code 0, but another standard output: " + done.out[-100:])
            elif is_told and len(re.findall(r"^fec: ", done.err, re.M)) != 1:
                wrong.append("exit code %s, and not one message: %s" % (done.code, done.err.strip()[-300:]))
            if fault == "EINTR" and done.code != case.code and point.call != "close":
                notes.append("EINTR of %s is an error" % point.call)
            if not is_lame:
                wrong += ["%s is left behind" % re.sub(r"\d+", "N", key) for key in left]
        if re.search(r"panicked|RUST_BACKTRACE|core dumped|SIGSEGV|SIGABRT", done.err):
            wrong.append("it panics: " + done.err.strip()[-300:])
        # The same command runs again, with -f where an output of the first run is in its way.
        is_there = case.op in ("encode", "decode") and any(x in got and x not in case.state for x in case.outputs)
        may_replace = is_there and not {"-f", "--keep"} & {*case.args}
        notes += ["exit code 4, and the output is there"] * (is_there and done.code == 4)
        again = self.perform(case, home, more=["-f"] * may_replace)
        after = snap(home)
        if again.code != case.code:
            wrong.append("again: exit code %s: %s" % (again.code, again.err.strip()[-300:]))
        torn, old, inputs = self.changes(case, home, after)
        wrong += ["again: " + x for x in torn + inputs] + ["again: %s is not new" % x for x in old]
        # A temporary file that was made while the machine's own number could not be read counts as another machine's.
        # Such a file goes away after a day.
        is_unnamed = not is_killed and bool(READ.match(point.call))
        wrong += ["again: %s is left behind" % re.sub(r"\d+", "N", key) for key in after if is_left(key) and not (is_unnamed and key in left)]
        self.by_call[point.call].update({"faults": 1, "held": not wrong, "not held": bool(wrong)})
        return wrong, notes

    def table(self):
        super().table()
        print("\n| call | faults | held | not held |\n|---|---|---|---|")
        for call, counts in sorted(self.by_call.items()):
            print("| %s | %d | %d | %d |" % (call, counts["faults"], counts["held"], counts["not held"]))

    # ------------------------------------------------------------ losses of power

    def power(self):
        """Tests each scenario that makes outputs against the model. The model itself is tested with --no-sync: each
        scenario must then be wrong."""
        calls, bad = [*faults.WRITERS, *faults.OPENERS, *STREAMS, "creat"], 0

        def held(case, more=()):
            restore(self.home, case.state)
            done = self.perform(case, self.home, *self.strace(self.home, calls, "-s", "0"), more=more)
            disk = Disk(case, self.home)
            disk.replay(done.log)
            return disk
        cases = [case for case in self.scenarios() if case.outputs]
        print("| scenario | calls replayed | not held |\n|---|---|---|")
        for case in cases:
            disk = held(case)
            bad += bool(disk.wrong)
            print("| %s | %d | %d |" % (case.name, disk.events, len(disk.wrong)), flush=True)
            for what, count in collections.Counter(re.sub(r"\d{4,}", "N", x) for x in disk.wrong).most_common(4):
                print("FAILED %s, at %d calls: %s" % (case.name, count, what))
        blind = [case.name for case in cases if not held(case, ["--no-sync"]).wrong]
        if blind:
            print("FAILED the model sees nothing wrong in --no-sync: " + ", ".join(blind))
        return 1 if bad or blind else 0

    def session(self):
        return self.power() if self.args.power else super().session()


class Thing:
    """A file or folder as the program sees it, and the states of it that may be on the disk."""

    def __init__(self, is_folder, is_old):
        self.is_folder, self.is_old, self.is_touched = is_folder, is_old, False
        self.changes, self.flying, self.is_dirty = 0, 0, False
        # names: what each name stands for now; maybe: all that it may stand for on the disk
        self.names, self.maybe = {}, {}

    def touch(self):
        self.changes, self.is_touched, self.is_dirty = self.changes + 1, True, True

    def bind(self, name, thing):
        """A name stands for another thing, or for nothing, from now on. On the disk it may stand for either until this
        folder is synced."""
        self.maybe.setdefault(name, [self.names.get(name)]).append(thing)
        self.names[name] = thing
        self.touch()

    def synced(self):
        self.is_dirty = False
        self.maybe = {name: [thing] for name, thing in self.names.items()}

    def is_untouched(self):
        return not self.is_touched and all(x.is_untouched() for x in self.names.values())

    def is_settled(self):
        """Tells whether this thing, and all in it, is on the disk as it is now."""
        inside = [(self.names.get(name), may) for name, may in self.maybe.items()]
        return not self.is_dirty and all(may == [now] and (now is None or now.is_settled()) for now, may in inside)


class Disk:
    """The things that a disk may hold when power is lost, from the calls of a run: anything that was not synced may be
    there or not. A new name may be there before or without the thing that it names, and the thing that it named before
    may be gone. A folder's sync puts the names in it on the disk, a file's sync puts its bytes there, as they were when
    the sync began."""

    def __init__(self, case, home):
        self.case, self.home, self.root = case, os.path.realpath(home), Thing(True, True)
        self.events, self.wrong = 0, []
        for path, node in sorted(case.state.items()):
            folder, name = self.place(path)
            folder.names[name] = Thing(node.kind == "folder", True)
            folder.maybe[name] = [folder.names[name]]
        files = [x for x, node in case.end.items() if node.kind == "file"]
        self.outputs = [x for x in files if x.split("/")[0] in case.outputs] if case.by_file else case.outputs

    def place(self, path):
        """The folder that holds a path, and its name there."""
        *folders, name = path.split("/")
        at = self.root
        for folder in folders:
            at = at.names[folder]
        return at, name

    def local(self, path, folder=""):
        """A path below the home, or none."""
        path = os.path.relpath(os.path.join(folder or self.home, path), self.home)
        return None if path.startswith("..") else path

    def thing(self, path):
        if path in (None, "."):
            return self.root if path else None
        folder, name = self.place(path)
        return folder.names.get(name)

    def replay(self, log):
        begun = {}
        for thread, call, rest, resumed, more in re.findall(r"^(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$", log, re.M):
            if resumed:
                call, rest, effect = begun.pop(thread)
                self.end(call, rest + more, effect)
            else:
                effect = self.begin(call, rest)
                if "<unfinished" in rest:
                    begun[thread] = call, rest.split("<unfinished")[0], effect
                else:
                    self.end(call, rest, effect)
        for name in self.outputs:
            folder, key = self.place(name)
            if folder.maybe.get(key) != [folder.names.get(key)]:
                self.wrong.append("in the end %s is not synced" % name)

    def begin(self, call, rest):
        """Bytes of a write may be on the disk from the start of the call on; a sync covers only earlier writes."""
        opened = re.findall(r"\d+<(/[^>]*)>", rest)
        if call in faults.WRITERS + STREAMS and re.match("write|pwrite|ftruncate|fallocate|copy_file|sendfile", call) and opened:
            thing = self.thing(self.local(opened[call == "copy_file_range"]))
            if thing:
                thing.touch()
                thing.flying += 1
                self.check(call, rest)
            return thing
        if call in ("fsync", "fdatasync") and opened:
            thing = self.thing(self.local(opened[0]))
            return thing and not thing.flying and (thing, thing.changes)
        return None

    def end(self, call, rest, effect):
        done = re.search(r"= (-?\d+)[^=]*$", rest)
        if isinstance(effect, Thing):
            effect.flying -= 1
        elif effect and done and done[1] == "0" and effect[0].changes == effect[1]:
            effect[0].synced()
        elif done and int(done[1]) >= 0 and self.names(call, rest):
            self.check(call, rest)

    def names(self, call, rest):
        """Applies the changes of names by a call that is done, and tells whether the call changed anything."""
        if not re.match("open|creat|mkdir|rename|link|unlink|rmdir", call):
            return False
        paths = [self.local(name, folder) for folder, name in re.findall(r'(?:\w+<([^>"]*)>, )?"([^"]*)"', rest)]
        if None in paths:
            return False
        places = [self.place(x) for x in paths]
        folder, name = places[0]
        if re.match("open|creat|mkdir", call):
            is_made = call.startswith("mkdir") or "O_CREAT" in rest and not folder.names.get(name)
            if is_made:
                folder.bind(name, Thing(call.startswith("mkdir"), False))
            elif "O_TRUNC" in rest:
                folder.names[name].touch()
            return is_made or "O_TRUNC" in rest
        if call in ("unlink", "unlinkat", "rmdir"):
            folder.bind(name, None)
            return True
        (other, to), thing = places[1], folder.names[name]
        if not call.startswith("link"):
            folder.bind(name, other.names.get(to) if "RENAME_EXCHANGE" in rest else None)
        other.bind(to, thing)
        return True

    def check(self, call, rest):
        """Tells whether each output is whole in every case, if power is lost now."""
        self.events += 1
        for name in self.outputs:
            folder, key = self.place(name)
            for thing in folder.maybe.get(key, [None]):
                was = name in self.case.state
                if thing is None:
                    what = "%s may be gone" % name if was else None
                elif thing.is_old:
                    what = None if thing.is_untouched() else "%s may be the old one, of which something is gone or changed" % name
                else:
                    what = None if thing.is_settled() else "%s may be the new one, of which something is not on the disk" % name
                if what:
                    self.wrong.append("%s, after %s(%s" % (what, call, rest[:80].replace(self.home, "")))


def main():
    parser = faults.options(__doc__, 2)
    parser.add_argument("--power", action="store_true", help="losses of power, by a model, instead of faults")
    return faults.main(parser, Campaign)


if __name__ == "__main__":
    sys.exit(main())
