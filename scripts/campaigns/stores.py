#!/usr/bin/env python3
"""Shards in stores, on real servers: how fast, with how many bytes, and what happens when servers and networks do
wrong.

    stores.py --fec BIN [--tools DIR] [--install] [--server moto|versitygw|rclone] PART

    PART is faults [COUNT]         2000 faults by proxies
            forgets [COUNT]        500 faults by proxies while encodings are listed and removed
            kills [COUNT]          killed encodes and repairs, 50 points
            speed [ROUNDS [MIB]]   encodes beside `rclone copy`
            losses [ROUNDS [MIB]]  decodes with a place down, one slow and one lying
            ranges [COUNT]         4 KiB out of places with stragglers
            memory [GIB]           a sparse payload, into a server that keeps nothing

Five servers run on loopback, for 10 + 4 shards. The script prints tables. Exit code 1 if a wrong byte went out at exit
code 0, or a promise was not kept; 2 if the servers cannot be had. Python 3.9; scripts/campaigns/store_servers.py starts
the servers.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler

import store_servers
from store_proxy import Proxy

PLACES = 5
CODE = ["-k", "10", "-m", "4"]
# Faults that pass when a client tries again.
PASSING = "refuse:0.02,reset:0.03,lost:0.02,500:0.03,503:0.03,429:0.02,cut:0.04,truncate:0.03,shorten:0.02,delay:0.05"
LYING = "flip:0.03,swap:0.03,range:0.03,whole:0.02,lengthen:0.02,deny:0.03"


class Field:
    """Five places, each perhaps behind a proxy, and a scratch folder."""

    def __init__(self, options, stack):
        self.fec = os.path.realpath(options.fec)
        self.random = random.Random(options.seed)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fec-campaign-")))
        names = ["%s#%d" % (options.server, i) for i in range(PLACES)]
        if options.server == "moto":
            names = ["moto"]                            # one server for all places: moto takes long to start
        self.servers = stack.enter_context(store_servers.Servers(*names, tools=options.tools, install=options.install))
        self.endpoints = [self.servers[names[i % len(names)]].endpoint for i in range(PLACES)]
        self.env = dict(os.environ, **store_servers.environment(self.servers))
        self.wrong = 0

    def places(self, option, prefix, endpoints=None, without=()):
        endpoints = endpoints or self.endpoints
        return [word for i in range(PLACES) if i not in without for word in (option, "s3://bucket/%s-%d,endpoint=%s,domain=d%d" % (prefix, i, endpoints[i], i))]

    def command(self, *words):
        return [self.fec, *map(str, words)]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words), cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def payload(self, name, size):
        path = self.folder / name
        with open(path, "wb") as f:
            while size > 0:
                f.write(self.random.randbytes(min(size, 1 << 24)))
                size -= 1 << 24
        return path

    def hold(self, is_true, what):
        if not is_true:
            self.wrong += 1
            print("FAILED " + what[:500], flush=True)


def faults(field, count):
    """Runs commands until the proxies have done `count` faults."""
    proxies = [Proxy(endpoint.split("://")[-1], seed=i, delay=0.05) for i, endpoint in enumerate(field.endpoints)]
    counts, runs, codes = {}, 0, {}
    with contextlib.ExitStack() as stack:
        for proxy in proxies:
            stack.enter_context(proxy)
        endpoints = [proxy.endpoint for proxy in proxies]
        while sum(counts.values()) < count:
            runs += 1
            size = field.random.choice((0, 1, 5_000, 300_000, 2_000_000))
            path = field.payload("in", size)
            prefix = "run%d" % runs
            kind = field.random.choice(("passing", "lying", "both"))
            text = {"passing": PASSING, "lying": LYING, "both": PASSING + "," + LYING}[kind]
            for proxy in proxies:
                proxy.set_faults(text)
            segment = field.random.choice(("100K", "1M"))
            options = ["--timeout", "2s", "--retries", "8"]
            sent = field.run("encode", path, *CODE, "--segment-size", segment, *options, *field.places("--to", prefix, endpoints))
            note = lambda what, code: codes.__setitem__((what, code), codes.get((what, code), 0) + 1)
            note("encode", sent.returncode)
            field.hold(sent.returncode in (0, 1, 4), "encode: exit code %d: %s" % (sent.returncode, sent.stderr[-300:]))
            root = sent.stdout.decode().strip()
            if sent.returncode in (0, 1):
                bytes_in = path.read_bytes()
                again = ["--root", root, *options, *field.places("--from", prefix, endpoints)]
                for command in (["decode", "-o", "-"], ["decode", "-o", "-", "--range", "%d..%d" % (size // 3, size // 2)], ["verify", "--deep"], ["repair", "--now", "--deep"], ["decode", "-o", "-"]):
                    done = field.run(*command, *again)
                    note(command[0], done.returncode)
                    if command[0] == "decode":
                        wanted = bytes_in[size // 3:size // 2] if "--range" in command else bytes_in
                        field.hold(done.returncode != 0 or done.stdout == wanted, "%s gave other bytes at exit code 0" % command)
                        field.hold(done.returncode == 0 or wanted.startswith(done.stdout), "%s gave other bytes" % command)
                        # The places hold everything, so faults that pass must not make decode fail.
                        field.hold(done.returncode == 0 or kind != "passing" or sent.returncode != 0, "%s: exit code %d with %s faults: %s" % (command, done.returncode, kind, done.stderr[-300:]))
                        field.hold(done.returncode in (0, 3, 4), "%s: exit code %d: %s" % (command, done.returncode, done.stderr[-300:]))
                    field.hold(done.returncode in (0, 1, 3, 4), "%s: exit code %d: %s" % (command, done.returncode, done.stderr[-300:]))
                # The proxies are honest again: everything must be there.
                for proxy in proxies:
                    for name, times in proxy.counts.items() - {("requests", proxy.counts["requests"])}:
                        counts[name] = counts.get(name, 0) + times
                    proxy.set_faults("")
                mended = field.run("repair", "--now", "--deep", *again)
                field.hold(mended.returncode == 0, "repair without faults: exit code %d: %s" % (mended.returncode, mended.stderr[-300:]))
                done = field.run("verify", "--deep", *again)
                field.hold(done.returncode == 0, "verify without faults: exit code %d: %s" % (done.returncode, done.stderr[-300:]))
                done = field.run("decode", "-o", "-", *again)
                field.hold(done.returncode == 0 and done.stdout == bytes_in, "decode without faults: exit code %d: %s" % (done.returncode, done.stderr[-300:]))
    print("%d runs, %d faults: %s" % (runs, sum(counts.values()), ", ".join("%s %d" % item for item in sorted(counts.items()))))
    print("exit codes: " + ", ".join("%s %d: %d" % (what, code, times) for (what, code), times in sorted(codes.items())))


def forgets(field, count):
    """Lists and removes one of two encodings in the same places, by proxies that do wrong, until they did `count`
    faults."""
    counts, runs, codes = {}, 0, {}
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(endpoint.split("://")[-1], seed=i, delay=0.05)) for i, endpoint in enumerate(field.endpoints)]
        endpoints = [proxy.endpoint for proxy in proxies]
        while sum(counts.values()) < count:
            runs += 1
            prefix, segment = "forget%d" % runs, field.random.choice(("100K", "1M"))
            roots = []
            for name in ("goes", "stays"):
                path = field.payload(name, field.random.choice((0, 5_000, 300_000)))
                roots.append(field.run("encode", path, *CODE, "--segment-size", segment, *field.places("--to", prefix)).stdout.decode().strip())
            goes, stays = roots

            def named(endpoints, *options):
                done = field.run("list", "--json", *options, *field.places("--from", prefix, endpoints))
                found = json.loads(done.stdout)
                return done.returncode, {of["root"]: of["state"] for of in found["encodings"]}, found["alone"]

            for proxy in proxies:
                proxy.set_faults(PASSING if runs % 2 else PASSING + "," + LYING)
            options = ["--timeout", "2s", "--retries", "8"]
            code, found, _ = named(endpoints, *options)
            codes["list", code] = codes.get(("list", code), 0) + 1
            field.hold(code in (0, 1, 3, 4), "list: exit code %d" % code)
            field.hold(set(found) <= {goes, stays}, "list names what is not there: %s" % found)
            field.hold(code != 0 or found == {goes: "intact", stays: "intact"}, "list says at exit code 0: %s" % found)
            done = field.run("forget", "--root", goes, "--yes", *options, *field.places("--from", prefix, endpoints))
            codes["forget", done.returncode] = codes.get(("forget", done.returncode), 0) + 1
            field.hold(done.returncode in (0, 1, 2, 3, 4), "forget: exit code %d: %s" % (done.returncode, done.stderr[-300:]))
            for proxy in proxies:
                for name, times in proxy.counts.items() - {("requests", proxy.counts["requests"])}:
                    counts[name] = counts.get(name, 0) + times
                proxy.set_faults("")
            code, found, alone = named(field.endpoints)
            field.hold(done.returncode != 0 or (code == 0 and set(found) == {stays} and not alone), "after forget said 0: %s, alone %s" % (found, alone))
            if done.returncode != 0:
                again = field.run("forget", "--root", goes, "--yes", *field.places("--from", prefix))
                field.hold(again.returncode in (0, 3), "forget without faults, after %d: exit code %d: %s" % (done.returncode, again.returncode, again.stderr[-300:]))
                code, found, alone = named(field.endpoints)
                field.hold(code == 0 and set(found) == {stays} and not alone, "after a second forget: %s, alone %s" % (found, alone))
            whole = field.run("decode", "-o", "-", "--root", stays, *field.places("--from", prefix))
            field.hold(whole.returncode == 0 and whole.stdout == path.read_bytes(), "the other encoding: exit code %d" % whole.returncode)
            deep = field.run("verify", "--deep", "--root", stays, *field.places("--from", prefix))
            field.hold(deep.returncode == 0, "the other encoding: verify --deep gave %d" % deep.returncode)
    print("%d runs, %d faults: %s" % (runs, sum(counts.values()), ", ".join("%s %d" % item for item in sorted(counts.items()))))
    print("exit codes: " + ", ".join("%s %d: %d" % (what, code, times) for (what, code), times in sorted(codes.items())))


def kills(field, count):
    """Encodes and repairs that are killed, and run again."""
    path = field.payload("in", 24_000_000)
    options = ["--segment-size", "4M", "--json"]
    fresh = field.run("encode", path, *CODE, *options, *field.places("--to", "fresh"))
    whole = json.loads(fresh.stdout)
    kept = 0
    for nth in range(count):
        prefix = "kill%d" % nth
        encode = ["encode", path, *CODE, *options, *field.places("--to", prefix)]
        start = time.monotonic()
        process = subprocess.Popen(field.command(*encode), cwd=field.folder, env=field.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole["seconds"] * field.random.random())
        process.kill()
        process.wait()
        again = json.loads(field.run(*encode).stdout)
        kept += again["kept"]
        # The root binds the places too; the segments are the same.
        field.hold(again["segment_roots"] == whole["segment_roots"] and again["sent"] + again["kept"] == whole["sent"], "killed after %.2f s: %s" % (time.monotonic() - start, again))
        # A domain is lost, and the repair is killed.
        where = ["--root", again["root"], *field.places("--from", prefix, without=(nth % PLACES,)), "--now"]
        process = subprocess.Popen(field.command("repair", *where), cwd=field.folder, env=field.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(whole["seconds"] * field.random.random())
        process.kill()
        process.wait()
        done = field.run("repair", *where)
        field.hold(done.returncode == 0, "repair: exit code %d: %s" % (done.returncode, done.stderr[-300:]))
        done = field.run("decode", "-o", "-", *where[:-1])
        field.hold(done.returncode == 0 and done.stdout == path.read_bytes(), "decode: exit code %d: %s" % (done.returncode, done.stderr[-300:]))
    print("%d encodes and %d repairs killed and run again; of %d objects each, %.0f were kept on average" % (count, count, whole["sent"], kept / max(count, 1)))


class Late(Proxy):
    """Answers each request late; `sample` says how late, in seconds."""

    sample = staticmethod(lambda: 0)

    def pass_on(self, upstream, request):
        time.sleep(self.sample())
        return super().pass_on(upstream, request)


def speed(field, rounds, mib):
    """In each round an encode, one with --enough, and a copy by rclone, in random order."""
    path = field.payload("in", mib << 20)
    size = (mib << 20) * 14 // 10
    many = field.folder / "many"
    many.mkdir()
    for i in range(14):
        with open(many / ("%03d.shard" % i), "wb") as f:
            f.write(field.random.randbytes(1 << 20) * (size // 14 >> 20))
    rclone = store_servers.program("rclone", pathlib.Path(field.tools), field.install)

    def remote(prefix, endpoint=field.endpoints[0]):
        return ':s3,provider=Other,access_key_id=testkey,secret_access_key=testsecret,endpoint="%s",force_path_style=true:bucket/%s' % (endpoint, prefix)

    ours = {"fec encode --to": [], "fec encode --to --enough": ["--enough"]}
    copy = "rclone copy of as many bytes to one of them"
    times = {name: [] for name in [*ours, copy]}
    for nth in range(rounds):
        for name in field.random.sample(sorted(times), len(times)):
            prefix = "speed%d-%d" % (nth, len(name))
            start = time.monotonic()
            if name == copy:
                done = subprocess.run([rclone, "copy", "--config", os.devnull, many, remote(prefix)], env=field.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            else:
                done = field.run("encode", path, *CODE, "-q", *ours[name], *field.places("--to", prefix))
            times[name].append(time.monotonic() - start)
            field.hold(done.returncode == 0, "%s: %s" % (name, done.stderr[-300:]))
            for i, endpoint in enumerate(field.endpoints):
                made = remote(prefix if name == copy else "%s-%d" % (prefix, i), endpoint)
                subprocess.run([rclone, "purge", "--config", os.devnull, made], env=field.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print("| %d MiB as 10 + 4 to five places, %d rounds | median, s | of rclone's, median | in the worst round |\n|---|---|---|---|" % (mib, rounds))
    for name, seconds in times.items():
        ratios = [a / b for a, b in zip(seconds, times[copy])]
        print("| %s | %.2f | %.2f | %.2f |" % (name, statistics.median(seconds), statistics.median(ratios), max(ratios)))


def losses(field, rounds, mib):
    """Decodes with all places well, and with one down, one ten times as late, and one that lies in every answer."""
    path = field.payload("in", mib << 20)
    print("| %d MiB over five places, one down, one ten times as late, one lying; %d rounds | median, s | worst | bytes, median | worst |\n|---|---|---|---|---|" % (mib, rounds))
    for code in (["-k", "7", "-m", "8"], ["-k", "33", "-m", "67"]):
        prefix = "losses-" + code[1]
        root = field.run("encode", path, *code, "-q", *field.places("--to", prefix)).stdout.decode().strip()
        found = {"well": [], "bad": []}
        with contextlib.ExitStack() as stack:
            well = [stack.enter_context(slow(endpoint, 0.005)).endpoint for endpoint in field.endpoints]
            for _ in range(rounds):
                down, late, lying = field.random.sample(range(PLACES), 3)
                with contextlib.ExitStack() as of_round:
                    bad = list(well)
                    bad[down] = "http://127.0.0.1:1"
                    bad[late] = of_round.enter_context(slow(field.endpoints[late], 0.05)).endpoint
                    liar = of_round.enter_context(slow(field.endpoints[lying], 0.005))
                    liar.set_faults("flip:1")
                    bad[lying] = liar.endpoint
                    for name in field.random.sample(sorted(found), 2):
                        start = time.monotonic()
                        done = field.run("decode", "--root", root, *field.places("--from", prefix, well if name == "well" else bad), "-o", "out", "-f", "--json")
                        seconds = time.monotonic() - start
                        same = done.returncode == 0 and subprocess.run(["cmp", "-s", path, field.folder / "out"]).returncode == 0
                        field.hold(same, "decode, %s: exit code %d: %s" % (name, done.returncode, done.stderr[-300:]))
                        found[name].append((seconds, json.loads(done.stdout)["fetched_bytes"]))
        print("| %s + %s, all well | %s |" % (code[1], code[3], " | ".join("%.2f | %.2f" % (statistics.median(of), max(of)) for of in zip(*[(s, b / (mib << 20)) for s, b in found["well"]]))))
        ratios = [[b / w for w, b in zip(*pair)] for pair in zip(found["well"], found["bad"])]
        print("| with these, of that | %s |" % " | ".join("%.2f | %.2f" % (statistics.median(of), max(of)) for of in zip(*ratios)))


def slow(endpoint, delay):
    proxy = Late(endpoint.split("://")[-1])
    proxy.sample = lambda: delay
    return proxy


def ranges(field, count):
    path = field.payload("in", 64 << 20)
    done = field.run("encode", path, *CODE, "-q", *field.places("--to", "ranges"))
    root, bytes_in = done.stdout.decode().strip(), path.read_bytes()
    times, fetched = [], []
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Late(endpoint.split("://")[-1])) for endpoint in field.endpoints]
        chance = random.Random(1)
        for proxy in proxies:
            # Delays are log-normal around 40 ms, and one of fifty is ten times as long.
            proxy.sample = lambda: chance.lognormvariate(-3.219, 0.25) * (10 if chance.random() < 0.02 else 1)
        places = field.places("--from", "ranges", [proxy.endpoint for proxy in proxies])
        for _ in range(count):
            at = field.random.randrange(len(bytes_in) - 4096)
            start = time.monotonic()
            done = field.run("decode", "--root", root, *places, "--range", "%d..+4K" % at, "-o", "part", "-f", "--json")
            times.append(time.monotonic() - start)
            field.hold(done.returncode == 0 and (field.folder / "part").read_bytes() == bytes_in[at:at + 4096], "range at %d: %s" % (at, done.stderr[-300:]))
            fetched.append(json.loads(done.stdout)["fetched_bytes"])
    times.sort()
    p50, p99 = statistics.median(times), times[len(times) * 99 // 100]
    record = (4 << 20) // 10
    print("| %d ranges of 4 KiB, requests log-normal around 40 ms, 2 %% ten times as long | |\n|---|---|" % count)
    print("| p50, p99 | %.0f ms, %.0f ms |\n| ratio | %.2f |\n| bytes fetched: median, most | %d, %d |\n| records (%d bytes) that is | %.2f, %.2f |" % (p50 * 1e3, p99 * 1e3, p99 / p50, statistics.median(fetched), max(fetched), record, statistics.median(fetched) / record, max(fetched) / record))


class Nothing(BaseHTTPRequestHandler):
    """Takes everything, and keeps nothing."""
    protocol_version = "HTTP/1.1"

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.answer(200, b'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>')

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>"
        if "uploadId" in self.path:
            body = b"<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key><ETag>x</ETag></CompleteMultipartUploadResult>"
        self.answer(200, body)

    def do_PUT(self):
        left, buffer = int(self.headers.get("Content-Length") or 0), memoryview(bytearray(1 << 20))
        while left > 0:
            left -= self.rfile.readinto(buffer[:min(left, len(buffer))]) or left
        self.answer(200)

    def do_DELETE(self):
        self.answer(204)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    request_queue_size = 64


def memory(fec, gib):
    with Server(("127.0.0.1", 0), Nothing) as server, tempfile.TemporaryDirectory(prefix="fec-memory-") as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = os.path.join(folder, "sparse")
        with open(path, "wb") as f:
            f.truncate(gib << 30)
        endpoint = "http://127.0.0.1:%d" % server.server_address[1]
        env = dict(os.environ, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", NO_PROXY="127.0.0.1")
        places = [word for i in range(PLACES) for word in ("--to", "s3://bucket/%d,endpoint=%s,domain=d%d" % (i, endpoint, i))]
        start = time.monotonic()
        process = subprocess.Popen([fec, "encode", path, *CODE, "-q", "--spool", folder, *places], env=env, stdout=subprocess.PIPE)
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        # The server gives nothing back, so fec must not say that the objects which it looks at again are there.
        print("| %d GiB, sparse, 10 + 4 to five places | |\n|---|---|\n| exit code | %d |\n| most memory | %.0f MiB |\n| time | %.0f s |" % (gib, code, usage.ru_maxrss / 1024, time.monotonic() - start))
        return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", default="target/release/fec")
    parser.add_argument("--tools", default=None)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--server", default="versitygw", choices=("moto", "versitygw", "rclone"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("what", choices=("faults", "forgets", "kills", "speed", "losses", "ranges", "memory"))
    parser.add_argument("numbers", nargs="*", type=int)
    options = parser.parse_args()
    number = lambda nth, default: options.numbers[nth] if len(options.numbers) > nth else default
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.what == "memory":
        return memory(os.path.realpath(options.fec), number(0, 100))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with contextlib.ExitStack() as stack:
        try:
            field = Field(options, stack)
        except store_servers.CannotRun as e:
            print("stores: %s" % e, file=sys.stderr)
            return 2
        field.tools, field.install = options.tools or store_servers.default_tools(), options.install
        if options.what == "faults":
            faults(field, number(0, 2000))
        elif options.what == "forgets":
            forgets(field, number(0, 500))
        elif options.what == "kills":
            kills(field, number(0, 50))
        elif options.what == "speed":
            speed(field, number(0, 7), number(1, 1024))
        elif options.what == "losses":
            losses(field, number(0, 20), number(1, 64))
        else:
            ranges(field, number(0, 300))
        return 1 if field.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
