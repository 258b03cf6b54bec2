#!/usr/bin/env python3
"""How the cost of whole commands grows: with the payload, with threads, with the shape of the code and with the length
of shards.

    growth.py --fec BIN [--folder DIR] [--rounds N] [--only PART,...] [--pipe GIB] > TABLES
    growth.py --plot NAME TABLES

Parts: payload (1 MiB to 1 GiB to 100 shard files, verified, and restored from them), pipe (a sparse file of GIB GiB
(100) through `fec encode - | fec decode - >/dev/null`, and smaller ones), threads (1 to 16, of 1 GiB), shapes (k + m
from 4 to 256, of 256 MiB) and lengths (shards of 4 KiB to 16 MiB, of 1 GiB; shorter ones no command makes: `fec bench
sets` has them).

Prints a table for each part: nanoseconds of processor time (user and system) for a byte of payload, medians of N rounds
(3) in which the cases of a part take turns in random order, and the largest anonymous memory, read every 2 ms. Nothing
is synced, and files are in the system's cache: what a disk does is not the tool's. DIR (/dev/shm) needs 6 GB. --plot
draws such tables as NAME.svg (needs matplotlib).
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PARTS = ("payload", "pipe", "threads", "shapes", "lengths")
SHAPES = ((2, 2), (4, 4), (10, 4), (33, 67), (86, 14), (50, 50), (100, 100), (220, 36), (128, 128))
MIB = 1 << 20


def peak_of(pid, found, done):
    """Puts the largest RssAnon of a process, in KiB, into `found` until `done` is set."""
    try:
        with open("/proc/%d/status" % pid, "rb", buffering=0) as status:
            while not done.is_set():
                status.seek(0)
                for line in status.read().splitlines():
                    if line.startswith(b"RssAnon:"):
                        found[0] = max(found[0], int(line.split()[1]))
                done.wait(0.002)
    except (OSError, ValueError):
        pass


class Running:
    """A command that runs, and is watched."""

    def __init__(self, command, **streams):
        self.command, self.began = command, time.monotonic()
        self.process = subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **streams})
        self.peak, self.done = [0], threading.Event()
        self.watch = threading.Thread(target=peak_of, args=(self.process.pid, self.peak, self.done))
        self.watch.start()

    def end(self):
        """Processor seconds, clock seconds, and KiB of memory."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.done.set()
        self.watch.join()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            sys.exit("%s: exit code %d" % (" ".join(self.command), self.process.returncode))
        return used.ru_utime + used.ru_stime, time.monotonic() - self.began, self.peak[0]


def run(*command):
    return Running(command).end()


class Growth:
    def __init__(self, arguments, folder):
        self.fec, self.rounds, self.folder = arguments.fec, arguments.rounds, folder
        self.largest_pipe = arguments.pipe
        self.random = random.Random(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def payload(self, size):
        """A file of so many bytes that do not repeat."""
        path = self.path("payload")
        if not os.path.exists(path) or os.path.getsize(path) != size:
            with open(path, "wb") as file:
                left = size
                while left:
                    left -= file.write(os.urandom(min(left, 16 * MIB)))
        return path

    def encode(self, path, *options):
        shutil.rmtree(self.path("shards"), ignore_errors=True)
        return run(self.fec, "encode", path, "-o", self.path("shards") + "/", "--no-sync", "-q", *options)

    def table(self, title, x, cases, columns, measure):
        """Measures all cases in rounds, each in another random order. `measure` returns (processor s, clock s, KiB) for
        each column."""
        found = {case: [] for case in cases}
        for turn in range(self.rounds):
            for case in self.random.sample(cases, len(cases)):
                # A minute of one case says as much as three.
                if turn and sum(part[1] for part in found[case][0]) > 60:
                    continue
                found[case].append(measure(case))
                print("growth: %s, %s: %s" % (title, case, found[case][-1]), file=sys.stderr)
        print("\n%s\n\n| %s | %s |\n|---|%s" % (title, x, " | ".join(
            "%s: ns/B, s, MiB" % column for column in columns), "---|" * len(columns)))
        for case in cases:
            parts = [[statistics.median(run[i][j] for run in found[case]) for j in range(3)] for i in range(len(columns))]
            size = self.size_of(case)
            print("| %s | %s |" % (case, " | ".join(
                "%.3f, %.2f, %.1f" % (processor / size * 1e9, clock, kib / 1024) for processor, clock, kib in parts)), flush=True)

    def three_commands(self, path, *options):
        encoded = self.encode(path, *options)
        shared = [option for option in options if option.startswith(("-j", "--max-memory="))]
        verified = run(self.fec, "verify", "-q", self.path("shards"), *shared)
        restored = run(self.fec, "decode", self.path("shards"), "-o", self.path("again"), "--no-sync", "-q", "-f",
                       *shared)
        os.remove(self.path("again"))
        shutil.rmtree(self.path("shards"))
        return encoded, verified, restored

    def run_payload(self):
        sizes = ["%d MiB" % (4 ** i) for i in range(6)]
        self.size_of = lambda case: int(case.split()[0]) * MIB
        self.table("payload to 33 + 67 shard files, -j 1", "payload", sizes, ("encode", "verify", "decode"),
                   lambda case: self.three_commands(self.payload(self.size_of(case)), "-j1"))

    def run_pipe(self):
        sizes = ["%d GiB" % size for size in (1, 10, 100) if size < self.largest_pipe] + ["%d GiB" % self.largest_pipe]
        self.size_of = lambda case: int(case.split()[0]) << 30

        def measure(case):
            path = self.path("sparse")
            with open(path, "wb") as file:
                file.truncate(self.size_of(case))
            with open(path, "rb") as file:
                encode = Running((self.fec, "encode", "-", "-o", "-", "-k", "86", "-m", "14", "-q", "-j1"), stdin=file,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                decode = Running((self.fec, "decode", "-", "-q", "-j1"), stdin=encode.process.stdout)
            encode.process.stdout.close()
            parts = encode.end(), decode.end()
            os.remove(path)
            return parts

        self.table("a sparse file through fec encode - | fec decode -, 86 + 14, -j 1 each", "payload", sizes, ("encode", "decode"), measure)

    def run_threads(self):
        path, size = self.payload(1024 * MIB), 1024 * MIB
        self.size_of = lambda _: size
        self.table("1 GiB to 33 + 67 shard files", "threads", [str(2 ** i) for i in range(5)], ("encode", "verify", "decode"),
                   lambda case: self.three_commands(path, "-j" + case))

    def run_shapes(self):
        path, size = self.payload(256 * MIB), 256 * MIB
        self.size_of = lambda _: size
        cases = ["%d + %d" % shape for shape in SHAPES]

        def measure(case):
            k, _, m = case.split()
            return self.three_commands(path, "-k", k, "-m", m, "-j1")

        self.table("256 MiB to shard files, -j 1", "k + m", cases, ("encode", "verify", "decode"), measure)

    def run_lengths(self):
        path, size = self.payload(1024 * MIB), 1024 * MIB
        self.size_of = lambda _: size
        cases = ["%d KiB" % (4 ** i) for i in range(1, 8)]

        def measure(case):
            # The bytes of a set fill its 33 shards of payload exactly.
            return self.three_commands(path, "-k", "33", "-m", "67", "--set-size", str(33 * int(case.split()[0]) << 10), "--max-memory=8G", "-j1")

        self.table("1 GiB to 33 + 67 shard files, -j 1", "shard", cases, ("encode", "verify", "decode"), measure)


def tables_in(path):
    """The tables of a file: a title, what the cases are, the columns' names, and of each case its figures by column."""
    tables, title = [], ""
    with open(path) as file:
        for line in map(str.strip, file):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not line.startswith("|"):
                title = line or title
            elif cells[-1].endswith("ns/B, s, MiB"):
                tables.append((title, cells[0], [cell.split(":")[0] for cell in cells[1:]], []))
            elif tables and not set(line) <= set("|-"):
                tables[-1][3].append((cells[0], [[float(figure) for figure in cell.split(",")] for cell in cells[1:]]))
    return tables


def plot(tables, name):
    try:
        import matplotlib
    except ImportError:
        sys.exit("growth: needs matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, len(tables), figsize=(3.6 * len(tables), 6), squeeze=False)
    for i, (title, x, columns, rows) in enumerate(tables):
        for place, which, label in ((axes[0][i], 0, "processor ns for a byte of payload"), (axes[1][i], 2, "anonymous memory, MiB")):
            for j, column in enumerate(columns):
                place.plot([case for case, _ in rows], [figures[j][which] for _, figures in rows], marker="o", label=column)
            place.set_ylim(bottom=0)
            place.tick_params(axis="x", labelsize=6, rotation=60)
            if i == 0:
                place.set_ylabel(label, fontsize=8)
        axes[0][i].set_title(title, fontsize=7)
        axes[0][i].legend(fontsize=6)
        axes[1][i].set_xlabel(x, fontsize=7)
    figure.tight_layout()
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    figure.savefig(name + ".svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--pipe", type=int, default=100)
    parser.add_argument("--plot", nargs=2, metavar=("NAME", "TABLES"))
    arguments = parser.parse_args()
    if arguments.plot:
        name, path = arguments.plot
        return plot(tables_in(path), name)
    if not arguments.fec:
        parser.error("--fec is missing")
    arguments.fec = os.path.abspath(arguments.fec)
    parts = arguments.only.split(",")
    if not set(parts) <= set(PARTS) or arguments.rounds < 1 or arguments.pipe < 1:
        parser.error("parts are %s, and there is at least one round, of one GiB" % ", ".join(PARTS))
    with tempfile.TemporaryDirectory(dir=arguments.folder, suffix=".fec-growth") as folder:
        growth = Growth(arguments, folder)
        for part in parts:
            getattr(growth, "run_" + part)()


if __name__ == "__main__":
    main()
