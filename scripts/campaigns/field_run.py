"""A run of a live stream in a laboratory: senders that are fed with lines, receivers whose output is looked at, and
what must hold.

This module is for streams_field.py. A line is as long as a packet's payload, and has the sender's tag, its number, the
time and a digest; so each packet that a receiver names as lost is a line that must be missing, and no other line may be
missing. A single thread does all of this, by the clock.
"""
import hashlib
import heapq
import json
import os
import re
import selectors
import signal
import subprocess
import time

from router import as_child

PACKET = 1174                                       # what `--packet auto` is in a network
PORT = 5000
PAD = bytes(33 + i * 7 % 90 for i in range(1500))
SETTLE = 0.3                                        # after the last line, until the sender is ended


class Broken(Exception):
    """The run cannot go on: something does not hold."""


class Skipped(Exception):
    """The scenario needs what is not here."""


def digest(bare):
    return hashlib.blake2b(bare, digest_size=8).hexdigest().encode()


def make_line(tag, number, size):
    bare = b"%s %08d %016d " % (tag, number, time.monotonic_ns())
    bare += PAD[number % 90:][:size - len(bare) - 17]
    return bare + digest(bare) + b"\n"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


class Sender:
    """A `fec encode --stream` and its input. mbps 0: as fast as the sender takes the input. data: the input, in place
    of lines. to: a socket in place of its standard input."""

    def __init__(self, run, command, tag=b"A", mbps=4.0, seconds=6.0, size=PACKET, end="eof", data=None, to=None):
        self.run, self.tag, self.size, self.end, self.data = run, tag, size, end, data
        self.interval = size * 8 / (mbps * 1e6) if mbps else 0
        self.count = -(-len(data) // size) if data else int(seconds / self.interval) if mbps else int(seconds)
        self.sent, self.times, self.code, self.ended = 0, [], None, None
        self.out, self.err = run.file(), run.file()
        self.process = run.start(command, self, stdin=subprocess.DEVNULL if to else subprocess.PIPE, stdout=self.out, stderr=self.err)
        self.pipe_in = to or self.process.stdin
        os.set_blocking(self.pipe_in.fileno(), False)
        self.first = time.monotonic()
        run.at(self.first, self.feed)

    def piece(self):
        return self.data[self.sent * self.size:(self.sent + 1) * self.size] if self.data else make_line(self.tag, self.sent, self.size)

    def feed(self):
        now, pipe = time.monotonic(), self.pipe_in
        try:
            while self.sent < self.count and self.first + self.sent * self.interval <= now:
                if os.write(pipe.fileno(), self.piece()) < 1:
                    raise BlockingIOError
                self.times.append(now)
                self.sent += 1
        except BlockingIOError:
            return self.run.at(now + 0.002, self.feed)
        except OSError:                             # it is gone
            self.ended = self.ended or now
            return None
        if self.sent < self.count:
            return self.run.at(self.first + self.sent * self.interval, self.feed)
        return self.run.at(now + SETTLE, self.finish)

    def finish(self):
        self.ended = self.ended or time.monotonic()
        if self.end == "eof":
            self.pipe_in.close()
        elif self.process.poll() is None:
            self.process.send_signal(self.end)

    def kill(self, how=signal.SIGKILL):
        self.count, self.end = self.sent, how
        self.finish()

    def exited(self, code):
        self.code, self.ended = code, self.ended or time.monotonic()

    def said(self):
        return self.run.text(self.err)

    def report(self):
        return last_json(self.run.text(self.out)) or {}


class Receiver:
    """A `fec decode` of a network, and its output. of: a socket in place of its standard output."""

    def __init__(self, run, command, raw=False, of=None):
        self.run, self.raw, self.code, self.ended, self.paused = run, raw, None, None, False
        self.err = run.file()
        self.process = run.start(command, self, stdin=subprocess.DEVNULL, stdout=self.err + "out" if of else subprocess.PIPE, stderr=self.err)
        self.pipe = of or self.process.stdout
        self.rest, self.bytes, self.wrong = bytearray() if raw else b"", 0, 0
        self.got, self.order, self.delays, self.marks, self.high = {}, 0, [], [], 0
        run.watch(self.pipe, self.read)

    def listens(self):
        """Waits until the receiver listens."""
        self.run.until(lambda: re.search(r"receiving on|\"listening\"", self.said()) or self.code is not None, 20, "a receiver to listen")
        return self

    def read(self):
        data, now = os.read(self.pipe.fileno(), 1 << 18), time.monotonic()
        if not data:
            self.run.unwatch(self.pipe)
            self.pipe = None
            return
        self.bytes += len(data)
        self.marks.append((now, self.bytes))
        if self.raw:
            self.rest += data
            return
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.line(line, now)

    def line(self, line, now):
        bare = line[:-16]
        if len(line) < 42 or digest(bare) != line[-16:]:
            self.wrong += 1
            return
        tag, number, stamp = line[:1], int(line[2:10]), int(line[11:27])
        got = self.got.setdefault(tag, [])
        self.order += bool(got) and number <= got[-1]
        got.append(number)
        self.delays.append(now - stamp / 1e9)

    def pause(self, seconds):
        self.run.unwatch(self.pipe)
        self.run.at(time.monotonic() + seconds, lambda: self.run.watch(self.pipe, self.read))

    def sample(self):
        """Notes the most memory that the process has had, in MiB."""
        try:
            with open("/proc/%d/status" % self.process.pid) as f:
                self.high = max(self.high, int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) // 1024)
        except (OSError, TypeError):
            pass

    def exited(self, code):
        self.code, self.ended = code, time.monotonic()

    def said(self):
        return self.run.text(self.err)

    def report(self):
        return last_json(self.said()) or {}

    def silence(self, sender):
        """The longest time without output, between the first output and the last input."""
        end = sender.times[-1] if sender.times else 0
        times = [*(now for now, _ in self.marks if now < end), end]
        return max((b - a for a, b in zip(times, times[1:])), default=0.0)


def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith('{"schema_version"'):
            return json.loads(line)
    return None


class Run:
    """Processes, files, timers, and one loop."""

    def __init__(self, lab, folder):
        self.lab, self.folder, self.selector = lab, folder, selectors.DefaultSelector()
        self.timers, self.number, self.running, self.files = [], 0, {}, 0

    def file(self):
        self.files += 1
        return os.path.join(self.folder, "%d.txt" % self.files)

    @staticmethod
    def text(path):
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")

    def at(self, when, action):
        self.number += 1
        heapq.heappush(self.timers, (when, self.number, action))

    def after(self, seconds, action):
        self.at(time.monotonic() + seconds, action)

    def watch(self, file, action):
        if file is not None:
            self.selector.register(file, selectors.EVENT_READ, action)

    def unwatch(self, file):
        if file is not None and file.fileno() in self.selector.get_map():
            self.selector.unregister(file)

    def start(self, command, owner, **streams):
        opened = {name: open(to, "wb") for name, to in streams.items() if isinstance(to, str)}
        process = subprocess.Popen(list(map(str, command)), preexec_fn=as_child, **{**streams, **opened})
        for file in opened.values():
            file.close()
        handle = os.pidfd_open(process.pid)
        self.running[handle] = process

        def exited():
            self.selector.unregister(handle)
            os.close(handle)
            del self.running[handle]
            owner.exited(process.wait())
        self.selector.register(handle, selectors.EVENT_READ, exited)
        return process

    def until(self, is_so, seconds, what):
        end = time.monotonic() + seconds
        while not is_so():
            now = time.monotonic()
            if now > end:
                raise Broken("after %d s still waiting for %s" % (seconds, what))
            while self.timers and self.timers[0][0] <= now:
                heapq.heappop(self.timers)[2]()
            wait = min(end, now + 0.2, self.timers[0][0] if self.timers else end)
            for key, _ in self.selector.select(max(0, wait - time.monotonic())):
                key.data()

    def close(self):
        for process in list(self.running.values()):
            process.kill()
            process.wait()
        self.running.clear()


# ---------------------------------------------------------------- what must hold

def named_lost(report):
    """The packets that a receiver says are lost, and whether it says which ones."""
    lost = set(range(report.get("joined_at") or 0))
    for gap in report.get("gaps", []):
        lost.update(range(gap["first"], gap["first"] + gap["count"]))
    return lost, report.get("gap_count", 0) == len(report.get("gaps", []))


def check_lines(receiver, sender, want, is_one_stream=True):
    """A list of problems, and in words the lines that came. want: "exact", or "named": every line that does not come
    is named as lost."""
    wrong, report = [], receiver.report()
    got, count = receiver.got.get(sender.tag, []), sender.sent
    missing = set(range(count)).difference(got)
    if receiver.wrong or receiver.rest:
        wrong.append("%d lines came out that nobody sent" % (receiver.wrong + bool(receiver.rest)))
    if receiver.order:
        wrong.append("%d lines came out again, or in another order" % receiver.order)
    if is_one_stream:
        if not report:
            return wrong + ["the receiver reported nothing: exit code %s, %s" % (receiver.code, receiver.said()[-300:])], "nothing"
        named, is_all = named_lost(report)
        behind = max(got, default=-1)
        unnamed = [n for n in missing - named if report["ended"] or n < behind]
        if is_all and (unnamed or named - missing):
            wrong.append("%d lines are missing and not named, %d are named and not missing" % (len(unnamed), len(named - missing)))
        if not is_all and len(missing) != report["lost"] + (report["joined_at"] or 0):
            wrong.append("%d lines are missing, %d are named" % (len(missing), report["lost"]))
        code = 0 if not missing and report["ended"] else 3
        if receiver.code != code:
            wrong.append("exit code %s of the receiver in place of %d" % (receiver.code, code))
    if want == "exact" and (missing or receiver.code):
        wrong.append("%d of %d lines are missing (exit code %s): all should have come" % (len(missing), count, receiver.code))
    if want != "exact" and not missing:
        return wrong, "exact"
    return wrong, "exact" if not missing else "%d of %d lost, named" % (len(missing), count)


def film(folder, seconds):
    """MPEG-TS of a constant rate."""
    path = os.path.join(folder, "in.ts")
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=640x360:rate=25", "-t", str(seconds), "-c:v", "mpeg2video", "-b:v", "3M", "-maxrate", "3M",
                    "-minrate", "3M", "-bufsize", "1M", "-muxrate", "4M", "-f", "mpegts", path], check=True, stdin=subprocess.DEVNULL)
    with open(path, "rb") as f:
        return f.read()


def decoder_errors(path):
    done = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f", "null", "-"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return len(done.stderr.splitlines())
