#!/usr/bin/env python3
"""Checks from outside that hold on Linux and on Windows alike: of fec.exe under Wine, and of the native binary.

    windows.py --fec PATH [--wine] [--reference NATIVE_FEC] [--seed N] [--only GROUP,...] [--cases N] [--jobs J]
               [--dir DIR] [--keep]

With --wine each command is `wine PATH arguments`, in a Wine prefix that lives in the scratch folder; without it PATH is
run as it is, so that the same checks show whether a finding belongs to Windows. Paths are relative to the working
folder in both. GROUP is golden, roundtrips, damage, hostile, outputs, names, sealing or rest; a line of each tells how
many checks it made. --reference names the native binary: it makes encodings that Windows cannot make, opens those that
Windows made, and each hostile input (there are --cases of them) has to get the same exit code and bytes from both.

Each command must end within a minute, with an exit code of docs/guide/reference.md, with words if the code is not 0,
and without a crash or a panic. The first check that fails ends the run with exit code 1, the command and its output;
exit code 2 means that nothing could be tested. Wine passes only 8 bits of an exit code on (an access violation is a 5),
so crashes are known by what Wine prints. With x86_64-w64-mingw32-gcc a helper of a few lines is built, which keeps
files open as Windows programs do; without it that check is left out. Python 3.9, nothing else.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from hostile import hurt
from judge import Wrong, expect
from oracle.basics import generate, store

LIMIT, PATIENCE = 60, 2                             # seconds for one command; for a temporary file, if there is one
CODES = {0, 1, 2, 3, 4, 5, 6}                       # docs/guide/reference.md; 130 only where a check interrupts
CRASH = re.compile(rb"panicked at|Unhandled exception|Unhandled page fault|c0000005|stack overflow|winedbg", re.I)
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden")
PASSPHRASE = "correct horse battery staple"
SMALL = ["-k", "3", "-m", "2"]
# Bytes that a stream in text mode changes, or takes for the end
TEXT = b"one\r\ntwo\nthree\rfour\n\r\x1afive\x00six\xef\xbb\xbf\x1a\r\n"
# Keeps a file open and lets others share it as the second argument says: 0 not at all, 1 to read it.
HELPER = """
#include <stdio.h>
#include <windows.h>
int wmain(int count, wchar_t **words) {
    if (count != 3) return 2;
    HANDLE file = CreateFileW(words[1], GENERIC_READ, words[2][0] - L'0', NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return 4;
    puts("held");
    fflush(stdout);
    getchar();
    return 0;
}
"""

Done = collections.namedtuple("Done", "line code out err")
# An encoding: whether it is a container, its files, its root and payload
Made = collections.namedtuple("Made", "is_container files root payload")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def files_of(path):
    """The bytes of the files of an encoding, in order of their names."""
    return [read(os.path.join(path, x)) for x in sorted(os.listdir(path))] if os.path.isdir(path) else [read(path)]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def shown(data):
    return data.decode(errors="replace") if len(data) < 2000 else "%d bytes, SHA-256 %s" % (len(data), sha256(data))


def told(done, text):
    return "%s\n  command: %s\n  exit code: %s\n  output: %s\n  errors: %s" % (
        text, " ".join(done.line), done.code, shown(done.out), shown(done.err))


# ---------------------------------------------------------------- commands

# Wine's own end, now and then, where the system has put something at an address that it needs: no program has begun.
NOT_BEGUN = b"failed to map the shared user data"


class Fec:
    """A binary of fec, and how it is started."""

    counts = itertools.count()                      # of commands, by all binaries
    started = []                                    # commands that may still run when a check fails

    def __init__(self, binary, before, env):
        self.binary, self.before, self.env, self.is_wine = os.path.abspath(binary), before, env, bool(before)

    def start(self, words, folder, binary=None):
        line = [*self.before, binary or self.binary, *words]
        pipe = subprocess.PIPE
        Fec.started.append(subprocess.Popen(line, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, env=self.env))
        return Fec.started[-1]

    def run(self, folder, *words, feed=b"", env=(), limit=LIMIT):
        """Runs a command, which may end with any documented exit code."""
        line = [*self.before, self.binary, *words]
        try:
            done = subprocess.run(line, cwd=folder, input=feed, capture_output=True, timeout=limit,
                                  env=dict(self.env, **dict(env)), check=False)
        except subprocess.TimeoutExpired as late:
            raise Wrong(told(Done(line, None, late.stdout or b"", late.stderr or b""), "no end after %d s" % limit))
        if self.is_wine and NOT_BEGUN in done.stderr:
            return self.run(folder, *words, feed=feed, env=env, limit=limit)
        is_reading = words[0] == "verify" or words[0] == "decode" and "-o -" in " ".join(words)
        if self.is_lost(done.returncode) and is_reading and limit == LIMIT:
            return self.run(folder, *words, feed=feed, env=env, limit=LIMIT - 1)
        return self.judged(Done(line, done.returncode, done.stdout, done.stderr))

    def is_lost(self, code):
        """Tells whether Wine's server killed a process that was slow to end, as it does after 1/64 s: no exit code."""
        return self.is_wine and code == -signal.SIGKILL

    def judged(self, done, codes=frozenset(CODES)):
        next(Fec.counts)
        expect(not CRASH.search(done.err), told(done, "it crashed"))
        expect(done.code in codes or self.is_lost(done.code), told(done, "the exit code is none of %s" % sorted(codes)))
        has_words = (done.err + done.out).strip() or self.is_lost(done.code)
        expect(not done.code or has_words, told(done, "it failed without a word"))
        return done

    def must(self, code, folder, *words, **options):
        done = self.run(folder, *words, **options)
        done = done._replace(code=code) if self.is_lost(done.code) else done
        expect(done.code == code, told(done, "exit code %d was due" % code))
        return done

    def encode(self, folder, *words, **options):
        """Encodes, and gives the root: a line of standard output that ends as on Linux."""
        done = self.must(0, folder, "encode", "-q", "--no-sync", *words, **options)
        expect(re.fullmatch(rb"[0-9a-f]{64}\n", done.out), told(done, "a line with a root was due"))
        return done.out.decode().strip()

    def gives(self, payload, folder, *words, **options):
        """Runs a command that prints the payload."""
        done = self.must(0, folder, *words, **options)
        expect(done.out == payload, told(done, "%d bytes were due, SHA-256 %s" % (len(payload), sha256(payload))))

    def end(self, process, feed=None, codes=frozenset(CODES)):
        """Waits for a command that was started, and gives it the rest of its input."""
        out, err = process.communicate(feed, LIMIT)
        return self.judged(Done(process.args, process.returncode, out, err), codes)


class Campaign:
    """The binaries, the scratch folder, and the options of a run."""

    def __init__(self, args, fec, reference, home):
        self.fec, self.reference, self.home = fec, reference, home
        self.seed, self.cases, self.jobs, self.is_wine = args.seed, args.cases, args.jobs, args.wine
        self.numbers, self.left_out = itertools.count(), []

    def rng(self, *names):
        return random.Random("%d %s" % (self.seed, names))

    @contextlib.contextmanager
    def folder(self, **files):
        """A folder of its own for a check, with files in it: a_bin is a.bin."""
        path = os.path.join(self.home, "%05d" % next(self.numbers))
        os.makedirs(path)
        for name, data in files.items():
            store(os.path.join(path, name.replace("_", ".")), data)
        yield path
        shutil.rmtree(path)

    def each(self, check, items):
        """Makes a check of each item, some at the same time. The first that fails ends it."""
        pool = concurrent.futures.ThreadPoolExecutor(self.jobs)
        try:
            for _ in pool.map(check, items):
                pass
        finally:
            pool.shutdown(cancel_futures=True)

    @staticmethod
    def only(folder, *names):
        """Nothing else lies in a folder, no temporary file above all."""
        found = sorted(os.listdir(folder))
        expect(found == sorted(names), "%s holds %s and not %s" % (folder, found, sorted(names)))

    def golden(self, path):
        return os.path.join("..", "golden", path)

    def vectors(self, name):
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
            return json.load(f)


# ---------------------------------------------------------------- golden vectors

def golden(c):
    """The vectors of shard files, containers and sealed payloads: bytes, roots, payloads and verdicts."""
    path = os.path.join(c.home, "golden")
    if not os.path.exists(path):
        for part in "files", "errors", "sealed":
            shutil.copytree(os.path.join(GOLDEN, part), os.path.join(path, part))
    encodings = c.vectors("encode.json")
    ours = [x for x in encodings if x["extra"] is None and (x["form"] == "shards" or x["file_name"] is None)]
    piped = [x for x in ours if x["grouping"] == "bounded" and not x["entries"]]
    whole = [x for x in ours if x["grouping"] != "bounded" or x["group_size"] is not None]
    # Hundreds of files each take most of the time: the seed chooses a fourth of these.
    whole = [x for nth, x in enumerate(whole) if x["k"] + x["m"] < 60 or nth % 4 == c.seed % 4]
    stored = [x for x in encodings if "path" in x]
    errors, sealed = c.vectors("errors.json"), c.vectors("sealed.json")
    opened = [x for x in sealed["valid"] + sealed["again"] if x.get("path")]
    for check, vectors in (
            (golden_file, whole), (golden_pipe, piped), (golden_stored, stored), (golden_verdict, errors)):
        expect(len(vectors) > 20, "there are only %d vectors for %s" % (len(vectors), check.__name__))
        c.each(lambda x: check(c, x), vectors)
    for check, vectors in (
            (golden_opened, opened), (golden_refused, sealed["errors"]), (golden_copies, sealed["copies"])):
        expect(len(vectors) > 10, "there are only %d vectors for %s" % (len(vectors), check.__name__))
        c.each(lambda x: check(c, sealed, x), vectors)


def options_of(vector):
    """The options of `encode` that make a vector."""
    options = ["-k", str(vector["k"]), "-m", str(vector["m"]), "--hash", vector["hash"]]
    for option, field in ("--set-size", "set_size"), ("--group-size", "group_size"):
        options += [option, str(vector[field])] if vector[field] is not None else []
    return options + (["--payload-digest=" + ",".join(vector["entries"])] if vector["entries"] else [])


def golden_file(c, vector):
    payload, name = generate(vector["payload_len"], vector["seed"]), vector["file_name"] or "payload.bin"
    out = "out.fec" if vector["form"] == "container" else "out/"
    with c.folder() as folder:
        store(os.path.join(folder, name), payload)
        root = c.fec.encode(folder, name, "-o", out, *options_of(vector))
        expect(root == vector["root"], "%s has the root %s" % (vector["name"], root))
        digests = [sha256(x) for x in files_of(os.path.join(folder, out))]
        expect(digests == vector["digests"], "%s has other bytes" % vector["name"])
        c.fec.must(0, folder, "decode", out, "-q", "-o", "back", "--deep", "--no-sync")
        expect(read(os.path.join(folder, "back")) == payload, "%s comes back otherwise" % vector["name"])
        c.only(folder, name, "back", out.strip("/"))


def golden_pipe(c, vector):
    payload = generate(vector["payload_len"], vector["seed"])
    with c.folder() as folder:
        made = c.fec.must(0, folder, "encode", "-", *options_of(vector), feed=payload)
        expect(sha256(made.out) == vector["digests"][0], told(made, "%s has other bytes" % vector["name"]))
        c.fec.gives(payload, folder, "decode", "-", feed=made.out)


def golden_stored(c, vector):
    payload, path = generate(vector["payload_len"], vector["seed"]), c.golden(vector["path"])
    with c.folder() as folder:
        c.fec.must(0, folder, "verify", "-q", path, "--root", vector["root"])
        c.fec.gives(payload, folder, "decode", path, "--root", vector["root"], "-o", "-")
        c.only(folder)


def golden_verdict(c, vector):
    """A vector of a rule has its exit code, and those that must be accepted their payload."""
    more = ["--root", vector["root"]] if vector["root"] else []
    path = c.golden(vector["path"])
    with c.folder() as folder:
        strict = ["--deep"] if vector.get("strict") else []
        done = c.fec.must(vector["exit"], folder, "decode", path, "-o", "out", "--no-sync", *more, *strict)
        c.only(folder, *["out"] * (done.code == 0))
        if done.code == 0:
            right = sha256(read(os.path.join(folder, "out"))) == vector["payload_sha256"]
            expect(right, told(done, "%s comes back otherwise" % vector["name"]))
        if "verify" in vector:
            c.fec.must(vector["verify"], folder, "verify", "-q", path, *more)


def open_sealed(c, sealed, vector, folder, code, *words):
    """Decodes a sealed vector with its key."""
    key = ["--passphrase"] if vector.get("passphrase") else ["-i", "key"]
    store(os.path.join(folder, "key"), sealed["identity"].encode())
    env = {"FEC_PASSPHRASE": sealed["passphrase"]} if vector.get("passphrase") else {}
    return c.fec.must(code, folder, "decode", c.golden(vector["path"]), *key, *words, env=env)


def golden_opened(c, sealed, vector):
    payload, path = generate(vector["payload_len"], vector["seed"]), c.golden(vector["path"])
    with c.folder() as folder:
        done = open_sealed(c, sealed, vector, folder, 0, "-o", "-")
        expect(done.out == payload, told(done, "%s comes back otherwise" % vector["name"]))
        c.fec.must(0, folder, "verify", path, "--deep", "--root", vector["root"])
        c.fec.must(2, folder, "decode", path, "-o", "nothing")
        c.only(folder, "key")


def golden_refused(c, sealed, vector):
    with c.folder() as folder:
        for out in "nothing", "-":
            done = open_sealed(c, sealed, vector, folder, vector["exit"], "-o", out)
            expect(not done.out, told(done, "%s lets bytes out" % vector["name"]))
            c.only(folder, "key")


def golden_copies(c, sealed, vector):
    code, path = vector["verify"], c.golden(vector["path"])
    with c.folder() as folder:
        c.fec.must(code, folder, "verify", path)
        c.fec.must(code, folder, "verify", feed=read(os.path.join(folder, path)))
        open_sealed(c, sealed, vector, folder, 3 if code == 3 else 0, "-o", "-")
        c.fec.must(code, folder, "repair", path, "-n")
        c.fec.must(3 if code == 3 else 0, folder, "repair", path, "-o", "fixed")


# ---------------------------------------------------------------- round trips

def text_of(rng, size):
    """Bytes of which many are ends of lines and of files, and others are random."""
    parts = (rng.choice((TEXT, TEXT[:rng.randrange(len(TEXT))], rng.randbytes(40))) for _ in range(size // 20 + 1))
    text = b"".join(itertools.islice(parts, 100_000))
    return (text + rng.randbytes(max(0, size - len(text))))[:size]


def roundtrips(c):
    """Sizes from nothing to 20 MB, as shard files and containers, through files and pipes, with all losses allowed."""
    for size in 0, 1, 1000, (1 << 20) + 3, 20_000_000:
        rng = c.rng("roundtrips", size)
        payload = text_of(rng, size)
        with c.folder(in_bin=payload) as folder:
            shards_there_and_back(c.fec, rng, folder, payload)
            container_there_and_back(c.fec, rng, folder, payload)
            pipe_there_and_back(c.fec, folder, payload)
            c.only(folder, "in.bin", "in.bin.shards", "in.fec", "root", "back", "again", "open.bin")


def shards_there_and_back(fec, rng, folder, payload):
    root = fec.encode(folder, "in.bin", "--root-file", "root")
    shards = os.path.join(folder, "in.bin.shards")
    expect(read(os.path.join(folder, "root")) == root.encode() + b"\n", "--root-file has other bytes")
    expect(len(os.listdir(shards)) == 100, "%d shard files" % len(os.listdir(shards)))
    fec.must(0, folder, "verify", "in.bin.shards", "--root", "@root")
    for name in rng.sample(sorted(os.listdir(shards)), 67):
        os.remove(os.path.join(shards, name))
    fec.must(1, folder, "verify", "-q", "in.bin.shards", "--root", root)
    fec.gives(payload, folder, "decode", "in.bin.shards", "-o", "-", "--root", root)
    fec.must(0, folder, "decode", "in.bin.shards", "-o", "back", "--no-sync", "--root", "@root")
    expect(read(os.path.join(folder, "back")) == payload, "shard files give %d other bytes" % len(payload))
    os.remove(os.path.join(shards, sorted(os.listdir(shards))[0]))
    for words in ("verify",), ("decode", "-o", "lost"), ("repair",):
        fec.must(3, folder, *words, "in.bin.shards")


def container_there_and_back(fec, rng, folder, payload):
    done = fec.must(0, folder, "encode", "in.bin", "-o", "in.fec", "--json", "--no-sync")
    report = json.loads(done.out)
    expect(report["payload_bytes"] == len(payload), told(done, "another length"))
    fec.must(0, folder, "verify", "in.fec", "--root", report["root"])
    path, gap = os.path.join(folder, "in.fec"), report["margin"]["gap_bytes"]
    data = read(path)
    at = rng.randrange(len(data) - gap + 1)
    for hurt_data in data[:at] + bytes(gap) + data[at + gap:], data[:at] + data[at + gap:]:
        store(path, hurt_data)
        fec.must(0, folder, "decode", "in.fec", "-o", "again", "-f", "--no-sync", "--root", report["root"])
        expect(read(os.path.join(folder, "again")) == payload, "a container with a gap gives other bytes")
    fec.must(0, folder, "repair", "in.fec", "-q", "--no-sync")
    expect(read(path) == data, "repair makes another container")


def pipe_there_and_back(fec, folder, payload):
    made = fec.must(0, folder, "encode", "-", feed=payload)
    fec.gives(payload, folder, "decode", "-", feed=made.out)
    fec.gives(made.out, folder, "encode", "in.bin", "-o", "-")
    fec.gives(payload, folder, "decode", "-o", "-", feed=made.out)
    fec.must(0, folder, "verify", feed=made.out)
    fec.must(0, folder, "decode", "-", "-o", "open.bin", "--no-sync", feed=made.out)
    expect(read(os.path.join(folder, "open.bin")) == payload, "a pipe gives other bytes to a file")
    if len(payload) > 1000:
        fec.gives(payload[100:900], folder, "decode", "in.fec", "--range", "100..900", "-o", "-")
        cut = fec.run(folder, "decode", "-", feed=made.out[:len(made.out) // 4])
        expect(cut.code and payload.startswith(cut.out), told(cut, "a pipe that is cut off gives other bytes"))


# ---------------------------------------------------------------- damage

DAMAGE = {
    "flip": lambda x: x[:len(x) // 2] + bytes([x[len(x) // 2] ^ 4]) + x[len(x) // 2 + 1:],
    "truncate": lambda x: x[:-100],
    "halve": lambda x: x[:len(x) * 7 // 10],
    "empty": lambda x: b"",
    "append": lambda x: x + b"\r\n" * 25,
    "zero": lambda x: x[:1000] + bytes(500) + x[1500:],
    "head": lambda x: bytes(64) + x[64:],
    "insert": lambda x: x[:700] + b"\n" + x[700:],
    "delete": None,
}
# Header and meta stand at both ends of a shard file: damage of these alone is told, and costs no record.
HARMLESS = "append", "truncate", "head"


def damage(c):
    """Each kind of damage in 0 to 5 of 5 shard files, and in a container, has its exit codes; repair mends it."""
    payload = text_of(c.rng("damage"), 40_000)
    c.each(lambda x: damaged_shards(c, payload, *x), [(kind, hit) for kind in DAMAGE for hit in range(6)])
    c.each(lambda x: damaged_container(c, payload, x), [x for x in DAMAGE if x != "delete"])


def damaged_shards(c, payload, kind, hit):
    with c.folder(a_bin=payload) as folder:
        root = c.fec.encode(folder, "a.bin", *SMALL)
        shards = os.path.join(folder, "a.bin.shards")
        whole = files_of(shards)
        for name in c.rng(kind, hit).sample(sorted(os.listdir(shards)), hit):
            path = os.path.join(shards, name)
            if DAMAGE[kind]:
                store(path, DAMAGE[kind](read(path)))
            else:
                os.remove(path)
        is_lost = hit > 2 and kind not in HARMLESS
        before = files_of(shards)
        code = 3 if is_lost else 1 if hit else 0
        for words in ("verify", "-q"), ("verify", "--root", root), ("repair", "-n"):
            c.fec.must(code, folder, *words, "a.bin.shards")
        expect(files_of(shards) == before, "%s: something was changed that was only looked at" % kind)
        c.fec.must(3 if is_lost else 0, folder, "decode", "a.bin.shards", "-o", "back", "--no-sync", "--root", root)
        repair = "repair", "a.bin.shards", "--no-sync", "--root", root
        c.fec.must(3 if is_lost else 0, folder, *repair)
        expect(files_of(shards) == (before if is_lost else whole), "%s: repair makes other shard files" % kind)
        if not is_lost:
            expect(read(os.path.join(folder, "back")) == payload, "%s: other bytes" % kind)
            c.fec.must(0, folder, "verify", "-q", "a.bin.shards", "--root", root)
            c.fec.must(5, folder, "verify", "a.bin.shards", "--root", "0" * 64)
        c.only(folder, "a.bin", "a.bin.shards", *["back"] * (not is_lost))


def damaged_container(c, payload, kind):
    with c.folder(a_bin=payload) as folder:
        root = c.fec.encode(folder, "a.bin", "-o", "a.fec", *SMALL)
        path = os.path.join(folder, "a.fec")
        whole = read(path)
        store(path, DAMAGE[kind](whole))
        before, is_lost = read(path), kind == "empty"
        code = 3 if is_lost else 1
        for words in ("verify", "-q"), ("repair", "-n"):
            c.fec.must(code, folder, *words, "a.fec", "--root", root)
        c.fec.must(code, folder, "verify", "-", "--root", root, feed=before)
        expect(read(path) == before, "%s: something was changed that was only looked at" % kind)
        c.fec.must(3 if is_lost else 0, folder, "repair", "a.fec", "--no-sync", "--root", root)
        expect(read(path) == (before if is_lost else whole), "%s: repair makes another container" % kind)
        if not is_lost:
            c.fec.must(0, folder, "verify", "a.fec", "--root", root)
            c.fec.gives(payload, folder, "decode", "a.fec", "-o", "-")
        c.only(folder, "a.bin", "a.fec")


# ---------------------------------------------------------------- hostile inputs

def hostile(c):
    """Seeded mutations: no wrong byte with exit code 0, no crash, and the verdicts of the reference."""
    rng, made = c.rng("hostile"), []
    for nth in range(24):
        k, m = rng.choice((1, 2, 3, 4, 10)), rng.choice((0, 1, 2, 4))
        options = ["-k", str(k), "-m", str(m)] + rng.choice(([], ["--hash", "sha256"], ["--outlines"] * (nth % 2)))
        options += rng.choice(([], ["--set-size", str(4096 * k)]))
        size = rng.choice((0, 1, 300, 3000, 9000, 20_000))
        pair = []                                   # with the same name and options: parts of one suit the other
        for _ in range(2):
            payload = text_of(rng, size)
            with c.folder(a_bin=payload) as folder:
                root = c.fec.encode(folder, "a.bin", "-o", "out/" if nth % 2 else "out", *options)
                pair.append(Made(not nth % 2, files_of(os.path.join(folder, "out")), root, payload))
        made.append(pair)
    c.each(lambda number: hostile_case(c, number, made), range(c.cases))


def mutated(rng, made, other):
    """The files of an encoding after a change, with parts of another one of the same shape."""
    files, how = list(made.files), rng.randrange(12)
    for _ in range(rng.choice((1, 1, 2, 4)) if how < 7 else 0):
        nth = rng.randrange(len(files))
        files[nth] = hurt(rng, files[nth])
    if how == 7:                                    # the header of another one
        nth = rng.randrange(len(files))
        size = rng.choice((64, 128, 192))
        files[nth] = other.files[nth % len(other.files)][:size] + files[nth][size:]
    elif how == 8:                                  # swapped with files of another one
        for nth in rng.sample(range(len(files)), rng.randint(1, len(files))):
            files[nth] = other.files[nth % len(other.files)]
    elif how == 9:                                  # both
        files += other.files if not made.is_container else []
        files[0] += other.files[0] if made.is_container else b""
    elif how == 10:                                 # spliced
        nth = rng.randrange(len(files))
        at = rng.randint(0, len(files[nth]))
        files[nth] = files[nth][:at] + rng.choice(other.files)[at:]
    elif how == 11:
        files = rng.sample(files, rng.randint(1, len(files)))
    return [hurt(rng, x) if rng.random() < 0.1 else x for x in files]


def hostile_case(c, number, all_made):
    rng = c.rng("case", number)
    made, other = rng.choice(all_made)[::rng.choice((1, -1))]
    files = mutated(rng, made, other)
    known, names = (made.payload, other.payload), ["%02d.fec" % x for x in range(len(files))]
    with c.folder() as folder:
        for name, data in zip(names, files):
            store(os.path.join(folder, "in", name), data)
        path = "in/00.fec" if made.is_container else "in"
        root = ["--root", made.root]
        decode, verify = ["decode", path, "-o", "-"], ["verify", path]
        runs = [(words, b"") for words in (decode + root, decode, verify + root, verify)]
        if made.is_container:
            runs += [(["decode", "-", "-o", "-", *rng.choice((root, []))], files[0])]
        done = [c.fec.run(folder, *words, feed=feed) for words, feed in runs]
        for (words, feed), x in zip(runs, done):
            right = (made.payload,) if root[0] in words else known
            where = "case %d of seed %d: " % (number, c.seed)
            if words[0] == "decode":
                fits = x.out in right if x.code == 0 else any(y.startswith(x.out) for y in right)
                expect(fits, told(x, where + "wrong bytes"))
            if c.reference:
                other_one = c.reference.run(folder, *words, feed=feed)
                is_same = x.code == other_one.code and (words[0] == "verify" or x.out == other_one.out)
                expect(is_same, told(other_one, told(x, where + "the reference says something else")))
        expect((done[0].code == 0) <= (done[2].code in (0, 1)), told(done[2], "decode restores what verify calls lost"))
        c.only(folder, "in")
        c.only(os.path.join(folder, "in"), *names)


# ---------------------------------------------------------------- outputs

def outputs(c):
    """Outputs are replaced with -f alone, appear whole or not at all, and leave nothing temporary."""
    kept_outputs(c)
    failed_outputs(c)
    for how in ("interrupt", "kill"):
        stopped_encode(c, how)
        stopped_decode(c, how)
    held_outputs(c)


def kept_outputs(c):
    payload, older = text_of(c.rng("outputs"), 30_000), b"older\r\n"
    with c.folder(a_bin=payload, old=older) as folder:
        root = c.fec.encode(folder, "a.bin", "-o", "a.fec", *SMALL)
        c.fec.encode(folder, "a.bin", *SMALL)
        old, shards = os.path.join(folder, "old"), files_of(os.path.join(folder, "a.bin.shards"))
        for words in (["encode", "a.bin", *SMALL], ["encode", "a.bin", "-o", "old"], ["decode", "a.fec", "-o", "old"],
                      ["decode", "a.bin.shards", "-o", "."], ["keygen", "-o", "old"],
                      ["encode", "a.bin", "-o", "new.fec", "--root-file", "old"]):
            c.fec.must(2, folder, *words)
            kept = read(old) == older and files_of(os.path.join(folder, "a.bin.shards")) == shards
            expect(kept and read(os.path.join(folder, "a.bin")) == payload, "replaced without -f by %s" % words)
        c.only(folder, "a.bin", "a.fec", "a.bin.shards", "old")
        c.fec.must(0, folder, "decode", "a.fec", "-o", "old", "-f")
        expect(read(old) == payload, "not replaced in spite of -f")
        c.fec.must(0, folder, "encode", "a.bin", "-o", "old", "-f", *SMALL)
        expect(read(old) == read(os.path.join(folder, "a.fec")), "not replaced in spite of -f")
        c.fec.must(0, folder, "encode", "a.bin", "-f", "-k", "2", "-m", "1")
        expect(len(os.listdir(os.path.join(folder, "a.bin.shards"))) == 3, "shard files of before stay in spite of -f")
        c.fec.must(0, folder, "encode", "a.bin", "-o", "a.fec", "--keep", *SMALL)
        c.fec.must(0, folder, "decode", "a.fec", "-o", "back", "--root", root)
        c.only(folder, "a.bin", "a.fec", "a.bin.shards", "old", "back")


def failed_outputs(c):
    with c.folder(a_bin=bytes(range(256)) * 40) as folder:
        c.fec.encode(folder, "a.bin", "-o", "s/", *SMALL)
        names = sorted(os.listdir(os.path.join(folder, "s")))
        for name in names[:3]:
            os.remove(os.path.join(folder, "s", name))
        c.fec.must(3, folder, "decode", "s", "-o", "back")
        c.fec.must(3, folder, "decode", "s", "-o", "folder/")
        c.fec.must(3, folder, "repair", "s")
        c.fec.must(5, folder, "decode", "s", "-o", "back", "--root", "1" * 64)
        c.fec.must(4, folder, "encode", "nothing.bin")
        c.fec.must(4, folder, "encode", "nothing.bin", "-o", "n.fec")
        c.fec.must(4, folder, "decode", "nothing.fec", "-o", "back")
        c.fec.must(4, folder, "encode", "a.bin", "-o", "no/such/folder.fec")
        c.fec.must(3, folder, "decode", "-", "-o", "back", feed=b"\x89fecR\r\n\x1a")
        shutil.rmtree(os.path.join(folder, "folder"), ignore_errors=True)
        c.only(folder, "a.bin", "s")
        c.only(os.path.join(folder, "s"), *names[3:])


def feed_slowly(process, data):
    """Gives a command a part of its input, and leaves the pipe open."""
    def give():
        with contextlib.suppress(OSError):
            process.stdin.write(data)
            process.stdin.flush()
    threading.Thread(target=give, daemon=True).start()


def stop(fec, process, folder, how):
    """Stops a command when its temporary file is there. The interrupted one ends with 130 and leaves nothing."""
    late = time.monotonic() + PATIENCE
    while not any(x.startswith(".fec-") for x in os.listdir(folder)) and time.monotonic() < late:
        time.sleep(0.02)
    time.sleep(0.3)
    expect(process.poll() is None, "%s ended before its input did" % process.args)
    if how == "kill":
        process.kill()
        process.communicate(timeout=LIMIT)
        return
    process.send_signal(signal.SIGINT)              # Wine makes it a Ctrl-C of the console.
    try:
        process.wait(PATIENCE + 8)                  # with its input still open
    except subprocess.TimeoutExpired:
        raise Wrong("%s goes on after Ctrl-C" % process.args)
    done = fec.end(process, codes={130})
    expect(not any(x.startswith(".fec-") for x in os.listdir(folder)), told(done, "a temporary file is left"))


def stopped_encode(c, how):
    with c.folder() as folder:
        process = c.fec.start(["encode", "-", "-o", "out.fec", *SMALL], folder)
        feed_slowly(process, bytes(3_000_000))
        stop(c.fec, process, folder, how)
        expect("out.fec" not in os.listdir(folder), "a part of an output is left after %s" % how)
        c.fec.encode(folder, "-", "-o", "out.fec", *SMALL, feed=TEXT)
        c.only(folder, "out.fec")
        c.fec.gives(TEXT, folder, "decode", "out.fec", "-o", "-")


def stopped_decode(c, how):
    payload = text_of(c.rng("stopped"), 3_000_000)
    with c.folder(a_bin=payload, back=b"older") as folder:
        root = c.fec.encode(folder, "a.bin", "-o", "a.fec", *SMALL, "--group-size", "1", "--set-size", "300K")
        data = read(os.path.join(folder, "a.fec"))
        words = ["decode", "-", "-o", "back", "-f", "--root", root]
        process = c.fec.start(words, folder)
        feed_slowly(process, data[:len(data) // 2])
        stop(c.fec, process, folder, how)
        expect(read(os.path.join(folder, "back")) == b"older", "an output is half of another after %s" % how)
        c.fec.must(0, folder, *words, feed=data)
        expect(read(os.path.join(folder, "back")) == payload, "other bytes")
        c.only(folder, "a.bin", "a.fec", "back")


def held_outputs(c):
    """A file that another program keeps open is replaced, or stays as it is with exit code 4 and words."""
    compiler = shutil.which("x86_64-w64-mingw32-gcc")
    if not c.is_wine or not compiler:
        c.left_out.append("files that are kept open" + (": no x86_64-w64-mingw32-gcc" if c.is_wine else ""))
        return
    helper, source = os.path.join(c.home, "helper.exe"), os.path.join(c.home, "helper.c")
    store(source, HELPER.encode())
    subprocess.run([compiler, "-O1", "-municode", source, "-o", helper], check=True)
    payload = text_of(c.rng("held"), 5000)
    for share in "0", "1":
        with c.folder(a_bin=payload, old=b"older") as folder:
            c.fec.encode(folder, "a.bin", "-o", "a.fec", *SMALL)
            for name, words in (("old", ["decode", "a.fec", "-o", "old", "-f"]),
                                ("a.bin", ["encode", "a.bin", "-o", "n.fec", *SMALL])):
                holder = c.fec.start([name, share], folder, helper)
                expect(holder.stdout.readline().strip() == b"held", "the helper cannot open %s" % name)
                done = c.fec.run(folder, *words)
                holder.communicate(b"\n", LIMIT)
                reads = name == "a.bin" and share == "1"        # an input that others may read
                expect(done.code in ((0,) if reads else (0, 4)), told(done, "%s was open elsewhere" % name))
                if name == "old":
                    whole = read(os.path.join(folder, "old")) == (payload if done.code == 0 else b"older")
                    expect(whole, told(done, "another output"))
                elif done.code == 0:
                    c.fec.gives(payload, folder, "decode", "n.fec", "-o", "-")
                    os.remove(os.path.join(folder, "n.fec"))
                c.only(folder, "a.bin", "a.fec", "old")
            c.fec.must(0, folder, "decode", "a.fec", "-o", "old", "-f")


# ---------------------------------------------------------------- names

# Names that Linux records, and that Windows takes for devices, streams, folders, patterns, or other names
STRANGE = [
    "con", "CON", "NUL.txt", "nul", "aux", "aux.tar.gz", "prn.", "com1", "COM9.log", "lpt1", "com\u00b9", "conin$",
    "CONOUT$", "nul .txt", "con:", "a:b", "a:b:$DATA", "c:", "c:evil", "::$INDEX_ALLOCATION", "dot.", "dots...",
    "space ", "a. .", "x?", "x*y", "x<y", "x>y", "x|y", 'x"y', "a\\b", "..\\up", "\\abs", "C:\\abs", "\\\\host\\share",
    "\\\\.\\NUL", "tab\t", "-o", "\udcff\udcfe", "\U0001f600" * 40 + ".", "%TEMP%", "~", "$x", "x\u202etxt"]
USUAL = [
    "Gr\u00fc\u00dfe \u20ac.txt", "\u65e5\u672c\u8a9e", "\U0001f600 \U0001f9ff.bin", "e\u0301.txt", "\u00e9.txt",
    "two  blanks.txt", "a'b&c;d.txt", "100%.txt", "a[1](2){3}.txt", "n" * 200, "console", "null.txt", "a.con",
    ".hidden"]


def names(c):
    """Recorded names that Windows reserves, long paths, and letters of the world."""
    maker = c.reference or (None if c.is_wine else c.fec)
    if maker:
        c.each(lambda x: strange_name(c, maker, x), STRANGE)
    else:
        c.left_out.append("names that Windows cannot make: no --reference")
    c.each(lambda x: usual_name(c, x), USUAL)
    long_paths(c)


def strange_name(c, maker, name):
    """The payload comes to stand in a file with the name that the report tells, or nothing is written, with words."""
    with c.folder() as made, c.folder() as folder:
        payload = TEXT + os.fsencode(name)
        store(os.path.join(made, name), payload)
        root = maker.encode(made, "./" + name, "-o", os.path.join("..", os.path.basename(folder), "s/"), *SMALL)
        # A shard file counts by its content: under its usual name Windows itself may not open it.
        for shard in os.listdir(os.path.join(folder, "s")):
            os.rename(os.path.join(folder, "s", shard), os.path.join(folder, "s", shard[-len("000.shard"):]))
        for to in "", "to":
            os.makedirs(os.path.join(folder, to), exist_ok=True)
            before = os.listdir(os.path.join(folder, to))
            done = c.fec.run(folder, "decode", "s", "--root", root, *(["-o", to + "/"] if to else []), "--json")
            new = [x for x in os.listdir(os.path.join(folder, to)) if x not in before]
            done = done._replace(code=0 if new else 2) if c.fec.is_lost(done.code) else done
            if done.code:
                expect(done.code in (2, 4, 6) and not new, told(done, "%r was neither restored nor refused" % name))
                expect(b"fec:" in done.err, told(done, "no words about %r" % name))
                continue
            expect(len(new) == 1, told(done, "%r became %s" % (name, new)))
            path = os.path.join(folder, to, new[0])
            expect(os.path.isfile(path) and not os.path.islink(path), told(done, "%r is no file" % name))
            expect(read(path) == payload, told(done, "%r has other bytes" % name))
            said = json.loads(done.out)["output"]
            said = os.path.basename(said.replace("\\", "/") if c.is_wine else said)
            expect(said == new[0] or "\udcff" in name, told(done, "not said that %r became %r" % (name, new[0])))
            os.remove(path)
        c.fec.gives(payload, folder, "decode", "s", "--root", root, "-o", "-")
        c.fec.must(0, folder, "decode", "s", "--root", root, "-o", "plain")
        c.fec.must(0, folder, "verify", "s", "--root", root)


def usual_name(c, name):
    """A name that all systems take stays the same, and so does the root that binds it."""
    with c.folder() as folder:
        store(os.path.join(folder, name), TEXT)
        root = c.fec.encode(folder, name, *SMALL)
        os.rename(os.path.join(folder, name), os.path.join(folder, "away"))
        expect(name + ".shards" in os.listdir(folder), "the shard files of %r are in %s" % (name, os.listdir(folder)))
        report = json.loads(c.fec.must(0, folder, "verify", name + ".shards", "--json").out)
        expect(report["recorded_name"] == name, "%r is recorded as %r" % (name, report["recorded_name"]))
        for fec in (c.fec, c.reference) if c.reference else (c.fec,):
            fec.must(0, folder, "decode", name + ".shards", "--root", root)
            expect(read(os.path.join(folder, name)) == TEXT, "%r comes back otherwise" % name)
            os.remove(os.path.join(folder, name))
        if c.reference:
            os.rename(os.path.join(folder, "away"), os.path.join(folder, name))
            same = c.reference.encode(folder, name, "-o", "other/", *SMALL)
            expect(same == root, "%r has another root on Linux" % name)


def long_paths(c):
    """Paths of more than 260 characters serve as inputs and outputs."""
    payload = text_of(c.rng("long"), 9000)
    for part in "d" * 60, "\u00e9" * 60:
        with c.folder() as folder:
            deep = "/".join([part] * 6)
            store(os.path.join(folder, deep, "a.bin"), payload)
            root = c.fec.encode(folder, deep + "/a.bin", *SMALL)
            c.fec.encode(folder, deep + "/a.bin", "-o", deep + "/a.fec", *SMALL)
            os.remove(os.path.join(folder, deep, "a.bin.shards", "a.bin.001.shard"))
            c.fec.must(1, folder, "verify", "-q", deep + "/a.bin.shards", "--root", root)
            c.fec.must(0, folder, "repair", deep + "/a.bin.shards", "--root", root)
            for source in "a.bin.shards", "a.fec":
                c.fec.must(0, folder, "decode", deep + "/" + source, "-o", deep + "/back", "-f")
                expect(read(os.path.join(folder, deep, "back")) == payload, "other bytes in a deep folder")
            c.only(os.path.join(folder, deep), "a.bin", "a.bin.shards", "a.fec", "back")


# ---------------------------------------------------------------- sealing

def sealing(c):
    """Keys, seals and signatures, made and opened by each binary for each other one."""
    every = [c.fec] + ([c.reference] if c.reference else [])
    for maker, reader in itertools.product(every, every):
        if maker is c.fec or reader is c.fec:
            sealed_for_keys(c, maker, reader)
            sealed_by_passphrase(c, maker, reader)
            signed(c, maker, reader)


def recipient_of(path):
    return re.search(rb"age1\w+", read(path)).group().decode()


def sealed_for_keys(c, maker, reader):
    payload = text_of(c.rng("sealed"), 150_000)
    for more in [], ["--pq"]:
        with c.folder(a_bin=payload) as folder:
            printed = reader.must(0, folder, "keygen", "-o", "key", *more).out.decode().strip()
            maker.must(0, folder, "keygen", "-o", "other", *more)
            expect(printed == recipient_of(os.path.join(folder, "key")), "keygen prints %s" % printed)
            store(os.path.join(folder, "all"), ("# two\r\n%s\r\n" % printed).encode())
            root = maker.encode(folder, "a.bin", "--recipient", printed, *SMALL)
            maker.encode(folder, "a.bin", "-o", "a.fec", "-R", "all", *SMALL)
            shards = os.path.join(folder, "a.bin.shards")
            os.remove(os.path.join(shards, sorted(os.listdir(shards))[0]))
            reader.must(1, folder, "verify", "-q", "a.bin.shards", "--root", root)
            for source in "a.bin.shards", "a.fec":
                reader.gives(payload, folder, "decode", source, "-i", "key", "-o", "-")
                for code, words in (5, ["-i", "other"]), (2, []):
                    done = reader.must(code, folder, "decode", source, "-o", "nothing", *words)
                    expect(not done.out, told(done, "bytes without the key"))
            reader.gives(payload, folder, "decode", "-", "-i", "key", feed=read(os.path.join(folder, "a.fec")))
            os.mkdir(os.path.join(folder, "back"))
            reader.must(0, folder, "decode", "a.bin.shards", "-i", "key", "-o", "back/")
            expect(files_of(os.path.join(folder, "back")) == [payload], "the sealed name leads elsewhere")
            c.only(folder, "a.bin", "a.fec", "a.bin.shards", "key", "other", "all", "back")


def sealed_by_passphrase(c, maker, reader):
    with c.folder(a_bin=TEXT) as folder:
        maker.must(2, folder, "encode", "a.bin", "-o", "short.fec", "--passphrase", env={"FEC_PASSPHRASE": "short"})
        maker.encode(folder, "a.bin", "-o", "a.fec", "--passphrase", *SMALL, env={"FEC_PASSPHRASE": PASSPHRASE})
        for cipher in "aes-256-gcm", "chacha20-poly1305":
            words = ["a.bin", "-o", "a.fec", "-f", "--passphrase", "--cipher", cipher, *SMALL]
            maker.encode(folder, *words, env={"FEC_PASSPHRASE": PASSPHRASE + "\u00e9"})
            words = ["decode", "a.fec", "--passphrase", "-o"]
            reader.gives(TEXT, folder, *words, "-", env={"FEC_PASSPHRASE": PASSPHRASE + "\u00e9"})
            reader.must(5, folder, *words, "nothing", env={"FEC_PASSPHRASE": PASSPHRASE})
        c.only(folder, "a.bin", "a.fec")


def signed(c, maker, reader):
    """Signatures within encodings and in files of their own, with keys of which one is locked by a passphrase."""
    payload = TEXT * 50
    for more in [], ["--pq"]:
        secret = b"" if more else PASSPHRASE.encode() + b"\n"
        with c.folder(a_bin=payload, pass_txt=secret, wrong_txt=b"wrong\n") as folder:
            locked, opened = ["--sign-passphrase-file", "pass.txt"], {"FEC_SIGN_PASSPHRASE": ""}
            maker.must(0, folder, "keygen", "--sign", "-o", "key", *locked, *more)
            maker.must(0, folder, "keygen", "--sign", "-o", "other", *more, env=opened)
            maker.encode(folder, "a.bin", "-o", "plain.fec", *SMALL)
            maker.encode(folder, "a.bin", "-o", "a.fec", "--sign", "key", *locked, *SMALL)
            maker.encode(folder, "a.bin", "--sign", "other", *SMALL, env=opened)
            apart = ["--signature", "b.minisig"]
            maker.encode(folder, "a.bin", "-o", "b.fec", "--sign", "other", *apart, *SMALL, env=opened)
            if not more:
                wrong = ["--sign", "key", "--sign-passphrase-file", "wrong.txt"]
                maker.must(2, folder, "encode", "a.bin", "-o", "no.fec", *wrong)
            for source, key, false in ("a.fec", "key.pub", "other.pub"), ("a.bin.shards", "other.pub", "key.pub"):
                reader.must(0, folder, "verify", source, "--signer", key)
                reader.gives(payload, folder, "decode", source, "--signer", key, "-o", "-")
                reader.must(5, folder, "decode", source, "--signer", false, "-o", "nothing")
            reader.must(0, folder, "verify", "b.fec", "--signer", "other.pub", *apart)
            reader.must(5, folder, "verify", "b.fec", "--signer", "key.pub", *apart)
            reader.must(5, folder, "verify", "plain.fec", "--signer", "key.pub")
            c.only(folder, "key", "key.pub", "other", "other.pub", "a.bin", "a.bin.shards", "a.fec", "b.fec",
                   "b.minisig", "plain.fec", "pass.txt", "wrong.txt")


# ---------------------------------------------------------------- the rest

WRONG = [
    "frob", "encode --frob", "verify --sample 5% a.fec", "decode a.fec --root xyz", "encode a.bin -k 300 -m 1",
    "encode a.bin -k 0", "decode a.bin -o x", "decode a.fec --spool . -o x", "encode a.bin -r 17% -k 3", "bench frob",
    "bench --quick --budget 1", "keygen"]
HELP = ["--help", "-h", "encode --help", "decode -h", "help verify", "man", "completions bash"]


def rest(c):
    """Version, help, bench, wrong use, lists of files, sidecars."""
    with c.folder(a_bin=TEXT * 300) as folder:
        expect(re.match(rb"fec \d+\.\d+\.\d+", c.fec.must(0, folder, "--version").out), "no version")
        for line in HELP:
            done = c.fec.must(0, folder, *line.split())
            expect(len(done.out) > 500 and not done.err, told(done, "no help on standard output"))
        c.fec.encode(folder, "a.bin", "-o", "a.fec", *SMALL)
        for line in WRONG:
            done = c.fec.must(2, folder, *line.split())
            expect(not done.out, told(done, "wrong use prints something on standard output"))
        backends = c.fec.must(0, folder, "encode", "--backend", "list").out.split()
        expect(b"scalar" in backends, "no kernel is named scalar: %s" % backends)
        for backend in backends:
            c.fec.gives(TEXT * 300, folder, "decode", "a.fec", "-o", "-", "--deep", "--backend", backend.decode())
        c.fec.gives(TEXT * 300, folder, "decode", "a.fec", "-o", "-", "--no-mmap", "-j", "1")
        bench = ["bench", "reference", "--budget", "1", *SMALL, "--set-size", "64K", "--json"]
        expect(json.loads(c.fec.must(0, folder, *bench).out), "bench reports nothing")
        c.fec.must(0, folder, "bench", "files", "--budget", "1", "--set-size", "1M", "--dir", ".")
        c.only(folder, "a.bin", "a.fec")
        several = ["encode", "-q", "--files-from", "-", "-o", "{}.shards/", *SMALL]
        listed = c.fec.must(0, folder, *several, feed=b"a.bin\na.fec\n")
        is_list = re.fullmatch(rb"([0-9a-f]{64}  a\.(bin|fec)\.shards[/\\]?\n){2}", listed.out)
        expect(is_list, told(listed, "a list of roots was due"))
        c.fec.must(0, folder, "verify", "--roots", "-", feed=listed.out)
        if c.is_wine and c.fec.run(folder, *several, "-f", feed=b"a.bin\r\na.fec\r\n").code:
            c.left_out.append("lists with line ends of Windows: refused")
    sidecar(c)


def sidecar(c):
    """A sidecar mends rot and finds edits; or it is refused with words, and nothing is written."""
    payload = text_of(c.rng("sidecar"), 100_000)
    with c.folder() as folder:
        path, small = os.path.join(folder, "photos", "1.jpg"), payload[:5000]
        for nth in range(4):
            store(os.path.join(folder, "photos", "%d.jpg" % nth), small if nth == 1 else payload[nth:])
        when = 1_700_000_000 * 10**9
        os.utime(path, ns=(when, when))
        done = c.fec.run(folder, "protect", "--portable", "photos")
        if done.code:
            expect(done.code in (2, 6) and b"fec:" in done.err, told(done, "sidecars are neither made nor refused"))
            c.only(folder, "photos")
            c.left_out.append("sidecars: refused")
            return
        c.fec.must(0, folder, "verify", "photos.fecp")
        store(path, DAMAGE["zero"](small))
        os.utime(path, ns=(when, when))
        c.fec.must(1, folder, "verify", "-q", "photos.fecp")
        c.fec.must(0, folder, "repair", "photos.fecp")
        expect(read(path) == small, "a sidecar mends otherwise")
        os.remove(path)
        c.fec.must(1, folder, "verify", "photos")
        c.fec.must(0, folder, "repair", "photos")
        expect(read(path) == small, "a sidecar makes a lost file otherwise")
        store(path, b"an edit")
        c.fec.must(1, folder, "repair", "photos.fecp")
        expect(read(path) == b"an edit", "an edit was reverted")
        c.fec.must(0, folder, "protect", "--update", "photos")
        c.fec.must(0, folder, "verify", "photos.fecp")
        c.only(folder, "photos", "photos.fecp")


# ---------------------------------------------------------------- the run

GROUPS = [golden, roundtrips, damage, hostile, outputs, names, sealing, rest]


@contextlib.contextmanager
def wine(home):
    """(the words that start a Windows program, their environment), in a prefix of its own that ends with the run."""
    program = shutil.which("wine") or shutil.which("wine64")
    if not program:
        raise FileNotFoundError("wine is not here")
    env = {**environment(home), "WINEPREFIX": os.path.join(home, "wine"), "WINEDEBUG": "-all,err+virtual",
           "WINEDLLOVERRIDES": "mscoree,mshtml="}
    env.pop("DISPLAY", None)
    os.makedirs(env["WINEPREFIX"])
    quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
    # `-p` keeps the server between commands, each of which would start one.
    subprocess.run(["wineserver", "-p"], env=env, check=True, timeout=60, **quiet)
    try:
        subprocess.run([program, "wineboot", "-i"], env=env, check=True, timeout=300, **quiet)
        yield [program], env
    finally:
        for words in ["-k"], ["-w"]:
            subprocess.run(["wineserver", *words], env=env, check=False, timeout=60, **quiet)


def environment(home):
    """The environment of all commands: nothing of fec's own, names in UTF-8, and a home and temporary folder apart."""
    for name in "tmp", "home":
        os.makedirs(os.path.join(home, name), exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("FEC_", "XDG_", "RUST_"))}
    return {**env, "LC_ALL": "C.UTF-8", "TMPDIR": os.path.join(home, "tmp"), "HOME": os.path.join(home, "home")}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True, help="the binary: fec.exe with --wine")
    parser.add_argument("--wine", action="store_true", help="start it with wine")
    parser.add_argument("--reference", metavar="NATIVE_FEC", help="the native binary, to compare with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="GROUP,...", help="these groups: " + ", ".join(x.__name__ for x in GROUPS))
    parser.add_argument("--cases", type=int, default=500, help="so many hostile inputs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="so many commands at the same time")
    parser.add_argument("--dir", help="a folder for the scratch folder")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
    args = parser.parse_args()
    args.groups = [x for x in GROUPS if not args.only or x.__name__ in args.only.split(",")]
    if not args.groups or args.only and len(args.groups) != len(set(args.only.split(","))):
        parser.error("--only: there is no such group")
    for path in filter(None, (args.fec, args.reference)):
        if not os.path.isfile(path):
            parser.error("%s is not there" % path)
    return args


def perform(c, groups):
    """Makes the checks of all groups. The exit code tells whether all hold."""
    for group in groups:
        start, first = time.monotonic(), next(Fec.counts)
        c.left_out.clear()
        try:
            group(c)
        except Wrong as wrong:
            again = "--seed %d --only %s" % (c.seed, group.__name__)
            print("FAILED %s: %s\n  again: %s" % (group.__name__, wrong, again), flush=True)
            return 1
        more = "; left out: " + ", ".join(c.left_out) if c.left_out else ""
        count, seconds = next(Fec.counts) - first - 1, time.monotonic() - start
        print("%s: %d commands, %.1f s%s" % (group.__name__, count, seconds, more), flush=True)
    return 0


def main():
    args = options()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:       # commands would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    home = tempfile.mkdtemp(prefix="fec-windows-", dir=args.dir)
    try:
        with contextlib.ExitStack() as stack:
            plain = environment(home)
            before, env = stack.enter_context(wine(home)) if args.wine else ([], plain)
            reference = Fec(args.reference, [], plain) if args.reference else None
            return perform(Campaign(args, Fec(args.fec, before, env), reference, home), args.groups)
    except (OSError, subprocess.SubprocessError) as error:
        print("windows: %s" % error, file=sys.stderr)
        return 2
    finally:
        for process in Fec.started:
            if process.poll() is None:
                process.kill()
        if args.keep:
            print("kept: %s" % home)
        else:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
