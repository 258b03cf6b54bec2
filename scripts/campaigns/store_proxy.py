#!/usr/bin/env python3
"""A proxy between a client and an object store, over plain HTTP, that does wrong by seed.

  scripts/campaigns/store_proxy.py --to HOST:PORT [--listen PORT] [--seed N] [--faults 'flip:0.01,reset:0.02,503@4']
                                   [--rate BYTES]

Requests go through unchanged, the header Host too, so signatures stay right. NAME:P in --faults is the fault NAME with
probability P for each request, NAME@N is the fault NAME for the N-th request that can have it (from 1). Each request
gets one fault at most: the first that is drawn, in the order of --faults. When the proxy ends, it prints the number of
requests and of each fault. The faults:
  any request      delay (up to --delay seconds), refuse (the connection is reset when it is made, before the first
                   request), reset (before the server sees the request), lost (done, but the answer is lost), silent
                   (done, but never answered), 500, 503, 429 (answered so, and not done)
  reads of objects cut (a reset in the middle of the body), truncate (the body ends early), shorten (the body ends
                   early, and its length fits), lengthen (a byte more), endless (as chunks, without an end), stall
                   (half of the body, then silence), flip (a bit of the body), swap (the body of an earlier answer of
                   the same length), range (honestly another range), whole (status 200 and all of the object), deny
                   (404)
For `range` and `whole` the proxy makes requests of its own, signed with the keys of store_servers.py.

A client may change the faults by PUT /-/faults with the text of --faults as body, which starts the counts anew, and
read the counts as JSON by GET /-/counts. DELETE /-/listen refuses connections for as many seconds as the body says.
Python 3.9 or newer; its standard library is enough.
"""
import argparse
import collections
import contextlib
import json
import random
import re
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse

import store_servers

FOR_ALL = ("delay", "refuse", "reset", "lost", "silent", "500", "503", "429")
FOR_READS = ("cut", "truncate", "shorten", "lengthen", "endless", "stall", "flip", "swap", "range", "whole", "deny")
PIECE = 64 << 10
# Bodies that are kept to be sent again for another request.
KEPT = 64 << 20


class Closed(Exception):
    """The other side has gone."""


def parse_faults(text):
    """[(name, probability, number of the request or None)]"""
    faults = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, kind, value = re.fullmatch(r"(\w+)([:@])([\d.]+)", part).groups() if re.fullmatch(r"\w+[:@][\d.]+", part) else ("", "", "")
        if name not in FOR_ALL + FOR_READS:
            raise ValueError(f"{part!r} is no fault: write NAME:PROBABILITY or NAME@NUMBER")
        faults.append((name, float(value), None) if kind == ":" else (name, 0.0, int(value)))
    return faults


class Message:
    """The head of a request or an answer, as it came, and its body."""

    def __init__(self, first, headers, body):
        self.first, self.headers, self.body = first, headers, body

    def get(self, name):
        return next((value for key, value in self.headers if key.lower() == name), None)

    def set(self, name, value):
        self.headers = [(k, v) for k, v in self.headers if k.lower() != name.lower()] + ([(name, value)] if value is not None else [])

    def head(self):
        return "\r\n".join([self.first] + [f"{k}: {v}" for k, v in self.headers] + ["", ""]).encode("latin-1")


def read_message(stream, after_head=None, bodiless=lambda first: False):
    """The next message of a stream, or None at the end. Chunks are put together, and the message then has a length."""
    first = stream.readline(65536)
    if not first.endswith(b"\r\n"):
        return None
    headers = []
    while True:
        line = stream.readline(65536)
        if line in (b"\r\n", b""):
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip(), value.strip()))
    message = Message(first.decode("latin-1").rstrip(), headers, b"")
    if after_head:
        after_head(message)
    if bodiless(message.first):
        return message
    if (message.get("transfer-encoding") or "").lower() == "chunked":
        pieces = []
        while True:
            size = int(stream.readline(1024).split(b";")[0], 16)
            pieces.append(stream.read(size))
            stream.readline(1024)
            if size == 0:
                break
        message.body = b"".join(pieces)
        message.set("Transfer-Encoding", None)
        message.set("Content-Length", str(len(message.body)))
    elif message.get("content-length") is not None:
        message.body = stream.read(int(message.get("content-length")))
        if len(message.body) < int(message.get("content-length")):
            return None
    elif message.first.startswith("HTTP/"):
        message.body = stream.read()
        message.set("Content-Length", str(len(message.body)))
    return message


class Proxy:
    """`with Proxy("127.0.0.1:9000", faults="flip:0.1", seed=1) as proxy: proxy.endpoint`; `proxy.counts` has the number
    of requests and of each fault."""

    def __init__(self, to, listen=0, seed=0, faults="", rate=0, delay=0.5, control=True):
        self.to, self.rate, self.delay, self.control, self.seed = to, rate, delay, control, seed
        self.lock = threading.Lock()
        self.port = listen
        self.kept = collections.OrderedDict()
        self.kept_bytes = 0
        self.sockets = set()
        self.free_at = 0.0
        self.stopping = False
        self.set_faults(faults)

    # Faults

    def set_faults(self, text):
        faults = parse_faults(text)
        with self.lock:
            self.faults = faults
            self.random = random.Random(self.seed)
            self.counts = collections.Counter()
            self.fitting = collections.Counter()

    def draw(self, reads, names=FOR_ALL + FOR_READS):
        """The fault of the next request, or None."""
        with self.lock:
            drawn = None
            for name, probability, number in self.faults:
                if name not in names or (name in FOR_READS and not reads):
                    continue
                self.fitting[name, number] += 1
                hit = self.random.random() < probability if number is None else self.fitting[name, number] == number
                drawn = drawn or (name if hit else None)
            if drawn:
                self.counts[drawn] += 1
            return drawn

    # Connections

    def __enter__(self):
        self.open()
        return self

    def open(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.endpoint = f"http://{self.host}"
        self.listener, self.refusing = listener, False
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def refuse(self):
        """Refuses new connections until open() is called, and resets those that are there."""
        self.close_door()
        with self.lock:
            standing = list(self.sockets)
        for each in standing:
            self.reset(each)

    def close_door(self):
        self.refusing = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __exit__(self, *_):
        self.stopping = True
        self.refuse()

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def reset(sock):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Other threads may be blocked in the socket: shutdown wakes them, and close then resets the connection.
            sock.shutdown(socket.SHUT_RD)
        with contextlib.suppress(OSError):
            sock.close()

    def serve(self, client):
        with self.lock:
            self.sockets.add(client)
        upstream = None
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = client.makefile("rb")
        try:
            if self.draw(False, ("refuse",)):
                return self.reset_with(client, stream)
            while True:
                request = read_message(stream, lambda head: self.go_on(client, head))
                if request is None:
                    return None
                if self.refusing:
                    return self.reset_with(client, stream)
                if self.control and request.first.split(" ")[1].startswith("/-/"):
                    self.obey(client, request)
                    continue
                self.pace(len(request.body))
                fault = self.draw(self.reads_object(request), tuple(set(FOR_ALL + FOR_READS) - {"refuse"}))
                self.counts["requests"] += 1
                if fault == "delay":
                    with self.lock:
                        wait = self.random.random() * self.delay
                    time.sleep(wait)
                if fault == "reset":
                    return self.reset_with(client, stream)
                if fault in ("500", "503", "429", "deny"):
                    self.say(client, request, "404" if fault == "deny" else fault)
                    continue
                if upstream is None:
                    upstream = self.connect()
                answer = self.pass_on(upstream, request)
                if answer is None:  # the server has closed a connection that was idle
                    upstream = self.connect()
                    answer = self.pass_on(upstream, request)
                if answer is None:
                    return self.reset_with(client, stream)
                if (answer.get("connection") or "").lower() == "close":
                    upstream = None
                    answer.set("Connection", None)
                if fault == "lost":
                    return self.reset_with(client, stream)
                if fault == "silent":
                    return self.wait_for_end(client)
                if not self.answer(client, request, answer, fault):
                    return self.reset_with(client, stream) if fault == "cut" else None
                if (request.get("connection") or "").lower() == "close":
                    return None
        except (OSError, Closed, ValueError):
            return None
        finally:
            with self.lock:
                self.sockets.discard(client)
            with contextlib.suppress(OSError):
                stream.close()
            client.close()

    def reset_with(self, client, stream):
        stream.close()
        self.reset(client)

    def go_on(self, client, head):
        if (head.get("expect") or "").lower() == "100-continue":
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            head.set("Expect", None)

    def connect(self):
        host, port = self.to.rsplit(":", 1)
        upstream = socket.create_connection((host, int(port)), 30)
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream.settimeout(120)
        return upstream, upstream.makefile("rb")

    def pass_on(self, upstream, request):
        sock, stream = upstream
        is_head = request.first.startswith("HEAD ")
        try:
            sock.sendall(request.head() + request.body)
            while True:
                answer = read_message(stream, bodiless=lambda first: is_head or first.split(" ")[1] in ("204", "304", "100"))
                if answer is None or answer.first.split(" ")[1] != "100":
                    return answer
        except OSError:
            return None

    @staticmethod
    def reads_object(request):
        method, target, _ = request.first.split(" ")
        return method == "GET" and "?" not in target

    def pace(self, size):
        if not self.rate or not size:
            return
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + size / self.rate
            wait = self.free_at - now
        time.sleep(wait)

    def send(self, client, data):
        for at in range(0, len(data), PIECE):
            piece = data[at:at + PIECE]
            self.pace(len(piece))
            client.sendall(piece)

    def say(self, client, request, status):
        reason = {"404": "Not Found", "500": "Internal Server Error", "503": "Slow Down", "429": "Too Many Requests"}[status]
        code = {"404": "NoSuchKey", "500": "InternalError", "503": "SlowDown", "429": "TooManyRequests"}[status]
        body = f"<Error><Code>{code}</Code><Message>by the proxy</Message></Error>".encode()
        head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        client.sendall(head + (b"" if request.first.startswith("HEAD ") else body))

    def wait_for_end(self, client):
        """Waits until the client goes."""
        client.settimeout(0.1)
        while not self.stopping:
            try:
                if not client.recv(4096):
                    return
            except socket.timeout:
                pass

    # Answers

    def answer(self, client, request, answer, fault):
        """Sends an answer, changed as the fault wants; False when the connection is of no more use."""
        good = self.reads_object(request) and answer.first.split(" ")[1] in ("200", "206")
        body, size = answer.body, len(answer.body)
        if not good:
            client.sendall(answer.head())
            self.send(client, body)
            return True
        if fault in FOR_READS and fault != "swap" and not body:
            self.counts[fault] -= 1
            fault = None
        if fault == "swap":
            earlier = self.earlier(request, body)
            if earlier is None:
                self.counts[fault] -= 1
            body = earlier or body
        self.keep(request, answer.body)
        with self.lock:
            at = self.random.randrange(max(size, 1))
        if fault == "flip":
            body = body[:at] + bytes([body[at] ^ 1 << at % 8]) + body[at + 1:]
        elif fault == "shorten":
            body = body[:at]
        elif fault == "lengthen":
            body += b"x"
        elif fault in ("range", "whole"):
            answer, body = self.other(request, answer, fault)
        if fault == "endless":
            answer.set("Content-Length", None)
            answer.set("Transfer-Encoding", "chunked")
            client.sendall(answer.head())
            while not self.stopping:
                self.pace(PIECE)
                client.sendall(b"%x\r\n" % PIECE + (body * (PIECE // size + 1))[:PIECE] + b"\r\n")
            return False
        answer.set("Content-Length", str(size if fault == "truncate" else len(body)))
        client.sendall(answer.head())
        if fault in ("cut", "stall", "truncate"):
            self.send(client, body[:at])
            if fault == "stall":
                self.wait_for_end(client)
            return False
        self.send(client, body)
        return True

    def earlier(self, request, body):
        with self.lock:
            fitting = [old for old in self.kept.values() if len(old) == len(body) and old != body]
            return self.random.choice(fitting) if fitting else None

    def keep(self, request, body):
        with self.lock:
            key = request.first, request.get("range")
            self.kept_bytes += len(body) - len(self.kept.pop(key, b""))
            self.kept[key] = body
            while self.kept_bytes > KEPT:
                self.kept_bytes -= len(self.kept.popitem(last=False)[1])

    def other(self, request, answer, fault):
        """Another range of the object, or all of it, as the server gives it."""
        path = urllib.parse.unquote(request.first.split(" ")[1])
        headers = {}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.get("range") or "")
        if fault == "range" and asked:
            start, end = int(asked[1]), int(asked[2])
            start, end = (start - 1, end - 1) if start else (1, end + 1)
            headers["Range"] = f"bytes={start}-{end}"
        status, headers, body = store_servers.ask(self.to, "GET", path, headers=headers)
        out = Message(f"HTTP/1.1 {status} Other", [(k, v) for k, v in headers.items() if k not in ("connection", "date")], body)
        return (out, body) if status in (200, 206) else (answer, answer.body)

    # Orders

    def obey(self, client, request):
        method, target, _ = request.first.split(" ")
        status, body = "200 OK", b""
        if (method, target) == ("PUT", "/-/faults"):
            try:
                self.set_faults(request.body.decode())
            except ValueError as error:
                status, body = "400 Bad Request", str(error).encode()
        elif (method, target) == ("GET", "/-/counts"):
            body = json.dumps(self.counts).encode()
        elif (method, target) == ("DELETE", "/-/listen"):
            # The door closes before the answer goes out: a client with the answer is refused, and not reset.
            self.close_door()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            threading.Timer(float(request.body), self.open).start()
            self.refuse()
            raise Closed
        else:
            status = "404 Not Found"
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="The top of this file describes the faults.")
    parser.add_argument("--to", required=True, metavar="HOST:PORT")
    parser.add_argument("--listen", type=int, default=0, metavar="PORT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", default="", help=", ".join(FOR_ALL + FOR_READS))
    parser.add_argument("--rate", type=int, default=0, help="bytes a second, up and down together")
    parser.add_argument("--delay", type=float, default=0.5, help="the longest delay, in seconds")
    options = parser.parse_args()
    try:
        proxy = Proxy(options.to.split("://")[-1], options.listen, options.seed, options.faults, options.rate, options.delay)
    except ValueError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with proxy:
        print(proxy.endpoint, flush=True)
        try:
            signal.pause()
        except (KeyboardInterrupt, SystemExit):
            with contextlib.suppress(BrokenPipeError):
                print(json.dumps(proxy.counts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
