#!/usr/bin/env python3
"""Repairs sidecars from copies behind HTTP that lie, lack, fail, break off and know no ranges, and kills the repair.

    mirrors.py --fec BIN [--rounds N] [--seed S] [--dir DIR]
    mirrors.py --fec BIN --mb N [--percent P] [--kills K] [--seed S] [--dir DIR]

The first form makes small trees, damages them, edits some files, and repairs from one to four random copies, some runs
killed: no edit may be touched, no wrong byte be written, exit code 0 means that all else is as it was, and with an
honest copy nothing may be missing. The second damages P per cent (0.1) of a file of N MB, repairs it from two servers
of which one lies, the repair killed K times, and tells what was fetched and how fast. Ends with 1 if anything is wrong.
Python 3.9, nothing else. Servers listen on 127.0.0.1 alone.
"""
import argparse
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

PIECE = 1 << 20
LIMIT = 120                                     # seconds for a repair of a small tree


class Copy:
    """A copy of files behind HTTP, and its conduct."""

    def __init__(self, folder, conduct="honest", pause=0.0, fails_after=None):
        self.folder, self.conduct, self.pause, self.fails_after = folder, conduct, pause, fails_after
        self.requests = self.sent = 0
        copy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def do_HEAD(self):
                self.answer(False)

            def do_GET(self):
                self.answer(True)

            def answer(self, has_body):
                try:
                    copy.answer(self, has_body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *request):
                """Clients that were killed are none of ours."""

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def answer(self, request, has_body):
        self.requests += 1
        time.sleep(self.pause)
        path = os.path.join(self.folder, urllib.parse.unquote(request.path).lstrip("/"))
        is_over = self.fails_after is not None and self.requests > self.fails_after
        if is_over or not os.path.isfile(path):
            request.send_response(500 if is_over else 404)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        size = os.path.getsize(path)
        start, end, status = 0, size, 200
        asked = request.headers.get("Range")
        if asked and self.conduct != "whole":
            first, last = asked.split("=")[1].split("-")
            start, end, status = int(first), min(size, int(last or size) + 1), 206
            if start >= size:
                request.send_response(416)
                request.send_header("Content-Length", "0")
                request.end_headers()
                return
        request.send_response(status)
        request.send_header("Content-Length", str(end - start))
        request.send_header("ETag", '"copy"')
        request.send_header("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
        if status == 206:
            request.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        request.end_headers()
        if not has_body:
            return
        with open(path, "rb") as file:
            file.seek(start)
            while start < end:
                piece = file.read(min(PIECE, end - start))
                if not piece:
                    return
                if self.conduct == "lies":
                    piece = bytes(byte ^ 1 for byte in piece[:64]) + piece[64:]
                    piece = bytearray(piece)
                    piece[::512] = bytes(byte ^ 1 for byte in piece[::512])
                if self.conduct == "breaks" and start + len(piece) >= end:
                    request.wfile.write(piece[:len(piece) // 2])
                    request.close_connection = True
                    return
                request.wfile.write(piece)
                self.sent += len(piece)
                start += len(piece)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(path, data, when=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    if when is not None:
        os.utime(path, (when, when))


def rot(path, change):
    """Changes bytes as a broken disk would: the file keeps its time."""
    stat = os.stat(path)
    with open(path, "r+b") as file:
        change(file, stat.st_size)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


class Round:
    def __init__(self, fec, seed, folder):
        self.fec, self.random, self.home = fec, random.Random(seed), os.path.join(folder, f"round-{seed}")
        self.seed = seed

    def run(self):
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.home)
        self.make()
        self.damage()
        before = {path: read(self.at(path)) for path in self.paths}
        copies = [self.copy(nth) for nth in range(self.random.randrange(1, 5))]
        urls = [copy.url + self.random.choice(["", "/d"]) for copy in copies]
        urls = [url if copy.conduct != "folder" else copy.folder for url, copy in zip(urls, copies)]
        partial = self.random.random() < 0.5
        for _ in range(self.random.randrange(3)):
            self.repair(urls, partial, kill=self.random.random() * 0.2)
        code = self.repair(urls, partial)
        self.check(code in (0, 1, 3, 4), f"exit code {code}")
        for path in self.paths:
            now, right = read(self.at(path)), read(self.true(path))
            if path in self.edited:
                self.check(now == before[path], f"the edit of {path} is gone")
            elif code == 0:
                self.check(now == right, f"exit code 0, and {path} is wrong")
            else:
                self.check(self.is_between(now, before[path], right), f"{path} has other bytes than before and after")
        whole = Copy(os.path.join(self.home, "true"))
        code = self.repair(urls + [whole.url], False)
        self.check(code == (1 if self.edited else 0), f"exit code {code} with an honest copy")
        for path in set(self.paths) - self.edited:
            self.check(read(self.at(path)) == read(self.true(path)), f"{path} is not back")
        self.check(not os.path.exists(os.path.join(self.home, "d.fecp.fetched")), "the stash is left")
        for copy in copies + [whole]:
            copy.close()
        shutil.rmtree(self.home)

    def check(self, is_so, words):
        if not is_so:
            raise AssertionError(f"seed {self.seed}: {words}; see {self.home}\n{getattr(self, 'said', '')}")

    def is_between(self, now, before, right):
        """Each byte is the damaged or the right one."""
        if now in (before, right):
            return True
        if now is None or len(now) not in (len(right), len(before or b"")):
            return False
        pad = (before or b"").ljust(len(now), b"\0")
        return all(byte in (old, new) for byte, old, new in zip(now, pad, right.ljust(len(now), b"\0")))

    def at(self, path):
        return os.path.join(self.home, path)

    def true(self, path):
        return os.path.join(self.home, "true", path)

    def make(self):
        self.paths, self.edited = [], set()
        twin = self.random.randbytes(self.random.randrange(1, 60_000))
        for nth in range(self.random.randrange(1, 16)):
            path = "d/" + self.random.choice(["", "sub/", "a b/", "ü/"]) + f"file {nth}%20"
            size = self.random.choice([0, 1, 700, 4096, 5000, 70_000, 3_000_000])
            data = twin if self.random.random() < 0.15 else self.random.randbytes(self.random.randrange(size + 1))
            for place in (self.at(path), self.true(path)):
                write(place, data, 1_600_000_000 + nth)
            self.paths.append(path)
        share = self.random.choice(["1%", "5%", "20%"])
        done = subprocess.run([self.fec, "protect", "-q", "--portable", "-r", share, "d"], cwd=self.home, capture_output=True)
        self.check(done.returncode == 0, done.stderr.decode())

    def damage(self):
        for path in self.paths:
            place, kind = self.at(path), self.random.randrange(8)
            size = os.path.getsize(place)
            if kind == 0:
                os.remove(place)
            elif kind in (1, 2) and size:
                spots = [self.random.randrange(size) for _ in range(self.random.randrange(1, 30))]
                rot(place, lambda file, _: [(file.seek(at), file.write(b"\xa5")) for at in spots])
            elif kind == 3 and size > 1:
                rot(place, lambda file, size: (file.seek(size // 3), file.write(bytes(size // 2))))
            elif kind == 4:
                write(place, b"an edit " * 100)
                self.edited.add(path)
        if self.random.random() < 0.2:
            shutil.rmtree(self.at("d"))
            self.edited.clear()

    def copy(self, nth):
        folder = os.path.join(self.home, f"copy-{nth}")
        for path in self.paths:
            data, kind = bytearray(read(self.true(path))), self.random.randrange(10)
            if kind == 0:
                continue
            if kind == 1:
                del data[self.random.randrange(len(data) + 1):]
            elif kind == 2 and data:
                for _ in range(20):
                    data[self.random.randrange(len(data))] ^= 1
            elif kind == 3:
                data.insert(self.random.randrange(len(data) + 1), 7)
            write(os.path.join(folder, path), bytes(data))
        os.makedirs(folder, exist_ok=True)
        conduct = self.random.choice(["honest", "honest", "lies", "whole", "breaks", "folder"])
        after = self.random.randrange(20) if self.random.random() < 0.2 else None
        return Copy(folder, conduct, self.random.choice([0, 0, 0.02]), after)

    def repair(self, urls, partial, kill=None):
        words = [self.fec, "repair", "d.fecp", "--retries", "1", "--timeout", "5s"]
        words += ["--partial"] * partial + [word for url in urls for word in ("--from", url)]
        child = subprocess.Popen(words, cwd=self.home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            said = child.communicate(timeout=LIMIT if kill is None else kill)[1].decode(errors="replace")
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            self.check(kill is not None, "it does not end")
            return None
        self.check("panicked" not in said, said)
        self.said = said
        return child.returncode


def large(args, folder):
    """Repairs a large file with little damage from two servers, of which one lies, and kills the repair."""
    draw = random.Random(args.seed)
    home, size = os.path.join(folder, "large"), args.mb * 1_000_000
    shutil.rmtree(home, ignore_errors=True)
    for place in ("d/file", "copy/d/file"):
        os.makedirs(os.path.join(home, os.path.dirname(place)))
    with open(os.path.join(home, "d/file"), "wb") as file, open(os.path.join(home, "copy/d/file"), "wb") as other:
        for at in range(0, size, PIECE):
            piece = draw.randbytes(min(PIECE, size - at))
            file.write(piece)
            other.write(piece)
    # Far less recovery data than is damaged.
    subprocess.run([args.fec, "protect", "-q", "--portable", "-r", "0.01%", "d"], cwd=home, check=True)
    block = 65536
    count = max(1, int(size * args.percent / 100) // block)
    spots = sorted(draw.sample(range(size // block), count))
    rot(os.path.join(home, "d/file"), lambda file, _: [(file.seek(at * block), file.write(bytes(block))) for at in spots])
    honest, liar = Copy(os.path.join(home, "copy")), Copy(os.path.join(home, "copy"), "lies")
    words = [args.fec, "repair", "d.fecp", "--json", "--from", liar.url, "--from", honest.url]
    killed = 0
    for _ in range(args.kills):
        child = subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = honest.requests + liar.requests
        aim = before + max(1, count // (args.kills + 1))
        while child.poll() is None and honest.requests + liar.requests < aim:
            time.sleep(0.001)
        if child.poll() is None:
            child.kill()
            killed += 1
        child.wait()
    started = time.monotonic()
    done = subprocess.run(words, cwd=home, capture_output=True)
    took = time.monotonic() - started
    report = json.loads(done.stdout)
    is_same = subprocess.run(["cmp", "d/file", "copy/d/file"], cwd=home).returncode == 0
    fetched = honest.sent + liar.sent
    print(f"{size} bytes, {count * block} damaged ({100 * count * block / size:.4f} %), killed {killed} times")
    print(f"fetched over all runs: {fetched} bytes ({100 * fetched / size:.4f} %), {liar.sent} of the liar")
    print(f"requests: {honest.requests} to the honest one, {liar.requests} to the liar; the last run took {took:.1f} s")
    print(json.dumps(report["fetched"]))
    is_left = os.path.exists(os.path.join(home, "d.fecp.fetched"))
    if done.returncode != 0 or not is_same or is_left:
        sys.exit(f"exit code {done.returncode}, the same: {is_same}, stash left: {is_left}")
    shutil.rmtree(home)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", required=True)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir")
    parser.add_argument("--mb", type=int)
    parser.add_argument("--percent", type=float, default=0.1)
    parser.add_argument("--kills", type=int, default=0)
    args = parser.parse_args()
    args.fec = os.path.abspath(args.fec)
    # The folder stays after a failure.
    folder = tempfile.mkdtemp(dir=args.dir)
    if args.mb:
        large(args, folder)
    else:
        for seed in range(args.seed, args.seed + args.rounds):
            Round(args.fec, seed, folder).run()
            if (seed - args.seed + 1) % 50 == 0:
                print(f"{seed - args.seed + 1} rounds", flush=True)
        print(f"{args.rounds} rounds from seed {args.seed}: no wrong byte, no edit touched, all back")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
