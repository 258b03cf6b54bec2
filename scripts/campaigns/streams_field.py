#!/usr/bin/env python3
"""Live streams over bad networks: real `fec encode` and `fec decode` in network namespaces, and a seeded router between
them.

    streams_field.py --fec BIN [--only NAME,...] [--quick] [--seed N] [--jobs J] [--key-file FILE] [--keep DIR] [--list]
                     [--rivals]

Senders are fed with numbered, timed lines. In each scenario every line has to come out as it went in, or its packet has
to be among those that the receiver names as lost, and no other; exit codes are as README.md says; attackers change
nothing unnoticed (with --key-file, which both ends then get: nothing at all); memory stays bounded. NAME is a scenario
(--list) or the beginning of several: outage, forge.

The full form (about 20 minutes) also holds times to their bounds: the silence after an outage, after joining late, and
the end after a signal; a scenario that only was too slow is tried again, twice. The quick form (--quick, about two
minutes) runs a part of the scenarios, shorter, at low rates and several at a time, and holds no times. --rivals
measures other tools beside fec instead (field_rivals.py). The script prints a table. Exit code 1 if anything did not
hold; 2 if namespaces or TUN devices, which take root and iproute2, cannot be had here. The scenario `mpeg-ts` needs
ffmpeg, and is left out without it.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stream_attacks
from field_run import (
    PACKET, PORT, Broken, Receiver, Run, Sender, Skipped, check_lines, decoder_errors, film, percentile,
)
from oracle import stream as oracle_stream
from router import CannotRun, Lab, Way, die_with_parent, ip, remove_left, why_not

PREFIX = "fecfield"
MEMORY = 200                                        # MiB that no receiver may need
TRIES = 3
SCENARIOS = {}
COLUMNS = ("scenario", "what came", "exit", "delay p50 / p99 ms", "silence s", "end s", "MiB", "sent / payload")


class Anybody:
    def exited(self, code):
        self.code = code


class Field:
    """The surroundings of a scenario: a laboratory, a run, the command, and the findings."""

    def __init__(self, options, lab, folder):
        self.options, self.quick, self.lab = options, options.quick, lab
        self.run, self.key = Run(lab, folder), ["--key-file", options.key_file] if options.key_file else []
        self.folder, self.wrong, self.slow, self.row = folder, [], [], {}

    def pick(self, pair):
        """The value for this form, from a pair (quick, full)."""
        return pair[0 if self.quick else 1] if isinstance(pair, tuple) else pair

    def network(self, ways=1, there=(), back=(), attack=None):
        for space in "ab":
            self.lab.space(space)
        there, back = (list(x) + [Way()] * (ways - len(x)) for x in (there, back))
        links = [(self.lab.link(n), there[n], back[n]) for n in range(ways)]
        return self.lab.route(links, self.options.seed, attack)

    def receiver(self, url="udp://:%d" % PORT, *options, raw=False, waits=True):
        command = [self.options.fec, "decode", url, "-o", "-", "--json", "--stats", "json", *options, *self.key]
        receiver = Receiver(self.run, self.lab.command("b", *command), raw)
        return receiver.listens() if waits else receiver

    def sender(self, urls="udp://10.77.0.2:%d" % PORT, *options, **how):
        outs = [x for url in ([urls] if isinstance(urls, str) else urls) for x in ("-o", url)]
        if self.key and "--packet" not in options:
            options = ("--packet", PACKET, *options)        # a line is a packet, sealed or not
        command = [self.options.fec, "encode", "--stream", "-", *outs, "--json", *options, *self.key]
        return Sender(self.run, self.lab.command("a", *command), **how)

    def raw_receiver(self, command, **how):
        return Receiver(self.run, self.lab.command("b", *command), **how)

    def raw_sender(self, command, **how):
        return Sender(self.run, self.lab.command("a", *command), **how)

    def start(self, command):
        """Starts another process at the sender's place; nothing is expected of the process."""
        return self.run.start(self.lab.command("a", *command), Anybody(), stdin=subprocess.DEVNULL, stdout=self.run.file(), stderr=self.run.file())

    def wait(self, *those, seconds=20):
        last = max([x.first + x.count * x.interval for x in those if isinstance(x, Sender)], default=time.monotonic())
        self.run.until(lambda: all(x.code is not None and getattr(x, "pipe", None) is None for x in those),
                       max(0, last - time.monotonic()) + seconds, "the end of all")

    def sleep(self, seconds):
        end = time.monotonic() + seconds
        self.run.until(lambda: time.monotonic() >= end, seconds + 5, "the time")

    def watch_memory(self, receiver):
        receiver.sample()
        if receiver.code is None:
            self.run.after(0.2, lambda: self.watch_memory(receiver))

    def hold(self, is_so, words):
        if not is_so:
            self.wrong.append(words)

    def bound(self, value, most, what):
        """Notes a time above its bound; times count in the full form alone."""
        if value > most and not self.quick:
            self.slow.append("%s: %.2f s, at most %.2f" % (what, value, most))

    def tell(self, came, receiver, sender, silence=None):
        delays = [1000 * percentile(receiver.delays, share) for share in (0.5, 0.99)] if receiver.delays else None
        end = receiver.ended - sender.ended if receiver.ended and sender.ended else None
        self.row = {"what came": came, "exit": "%s, %s" % (sender.code, receiver.code), "delay p50 / p99 ms": "%.1f / %.0f" % tuple(delays) if delays else "",
                    "silence s": "%.2f" % (receiver.silence(sender) if silence is None else silence) if delays else "", "end s": "" if end is None or end < 0 else "%.2f" % end, "MiB": receiver.high}
        self.hold(receiver.high <= MEMORY, "the receiver needed %d MiB" % receiver.high)


def scenario(name, what, quick=True, **fixed):
    def add(function):
        SCENARIOS[name] = (what, quick, function, fixed)
        return function
    return add


# ---------------------------------------------------------------- one sender, one receiver, one way

def plain(field, there=Way(), back=None, mbps=(4, 20), seconds=(6, 12), want="exact", v6=False, late=0, end="eof", encode=(), decode=(), silence=None, size=PACKET, code=0, sent=None, delay=None):
    """`silence`: the longest silence that is allowed after the first output; an outage's length comes on top. `sent`:
    the most packets for each source packet. `delay`: that of 99 of 100 lines at most, in seconds."""
    field.network(1, [there], [back or Way(delay=there.delay)])
    receiver = None if late else field.receiver("udp://:%d" % PORT, *decode)
    sender = field.sender("udp://[fd77:0::2]:5000" if v6 else "udp://10.77.0.2:5000", *encode, mbps=field.pick(mbps), seconds=field.pick(seconds), size=size, end=end)
    if late:
        field.sleep(late)
        receiver = field.receiver("udp://:%d" % PORT, *decode)
    field.watch_memory(receiver)
    field.wait(sender, receiver)
    wrong, came = check_lines(receiver, sender, want)
    field.wrong += wrong
    field.hold(sender.code == code, "exit code %s of the sender: %s" % (sender.code, sender.said()[-300:]))
    quiet = receiver.silence(sender)
    if silence is not None:
        field.bound(quiet, silence + sum(length for _, length in there.outages), "silence")
    if sent:
        report = sender.report()
        factor = 1 + report["repair_packets"] / report["source_packets"]
        field.hold(report["feedback"]["reports"] > 10, "only %d reports" % report["feedback"]["reports"])
        field.bound(factor, sent, "packets for a source packet")
        field.bound(percentile(receiver.delays, 0.99), delay, "delay of 99 of 100 lines")
        came += ", %.3f sent for each" % factor
    if end != "eof":
        field.bound(receiver.ended - sender.ended, 0.5, "end after the signal")
    field.tell(came, receiver, sender, quiet)


LAN = Way(delay=0.05)
for arguments in (
        ("clean", "nothing is lost", True, {}),
        ("clean-v6", "the same over IPv6", True, dict(v6=True)),
        ("random-1", "1 % lost", False, dict(there=Way(loss=0.01))),
        ("random-5", "5 % lost", True, dict(there=Way(loss=0.05))),
        ("random-10", "10 % lost", True, dict(there=Way(loss=0.1), v6=True)),
        ("random-14", "14 % lost", False, dict(there=Way(loss=0.14), want="named")),
        ("bursts-20", "10 % lost in bursts of 20", True, dict(there=Way(bursts=(0.1, 20)), want="named")),
        ("bursts-50", "5 % lost in bursts of 50", True, dict(there=Way(bursts=(0.05, 50)), want="named")),
        ("bursts-150", "5 % lost in bursts of 150", False, dict(there=Way(bursts=(0.05, 150)), want="named")),
        ("jitter", "50 ± 20 ms, reordered", True, dict(there=Way(delay=0.05, jitter=0.02))),
        ("jitter-loss", "the same, and 5 % lost", True, dict(there=Way(delay=0.05, jitter=0.02, loss=0.05))),
        ("double-1", "1 % doubled", False, dict(there=Way(double=0.01))),
        ("double-50", "50 % doubled, 20 ± 10 ms", True, dict(there=Way(double=0.5, delay=0.02, jitter=0.01))),
        ("corrupt-1", "1 % corrupted past the checksum", True, dict(there=Way(corrupt=0.01))),
        ("corrupt-10", "10 % corrupted, 3 % lost", True, dict(there=Way(corrupt=0.1, loss=0.03), want="named")),
        ("corrupt-v6", "5 % corrupted, IPv6", False, dict(there=Way(corrupt=0.05), v6=True)),
        ("rate-limit", "more than the way carries", False, dict(there=Way(mbps=20), mbps=0, seconds=50_000, encode=("--mbps", 50), want="named")),
        ("rate-limit-slow", "10 Mb/s into 4, a queue of 64 kB", True, dict(there=Way(mbps=4), mbps=0, seconds=4_000, encode=("--mbps", 10), want="named")),
        ("outage-0.1", "an outage that is mended within a second", False, dict(there=Way(outages=((4, 0.1),)), mbps=10, seconds=12, silence=1)),
        ("outage-0.3", "one that takes longer to be mended", False, dict(there=Way(outages=((4, 0.3),)), mbps=10, seconds=12, want="named", silence=1)),
        ("outage-0.3-none", "the same, --latency none at the receiver", False, dict(there=Way(outages=((4, 0.3),)), mbps=10, seconds=12, decode=("--latency", "none"))),
        ("outage-0.5", "one that the window just does not stand", False, dict(there=Way(outages=((4, 0.5),)), mbps=10, seconds=15, want="named", silence=1)),
        ("outage-0.7-none", "a longer one, --latency none at both ends", False, dict(there=Way(outages=((4, 0.7),)), mbps=10, seconds=20, encode=("--latency", "none"), decode=("--latency", "none"))),
        ("outage-1", "1 s away", False, dict(there=Way(outages=((4, 1),)), mbps=10, seconds=20, want="named", silence=1)),
        ("outage-0.5-latency", "0.5 s away, --latency 500 at the receiver", True, dict(there=Way(outages=((3, 0.5),)), mbps=(4, 10), decode=("--latency", 500), want="named", silence=1)),
        ("outage-2", "2 s away", True, dict(there=Way(outages=((2, 2),)), mbps=(6, 10), seconds=(8, 20), want="named", silence=1)),
        ("outage-2-loss", "2 s away, 2 % lost, 50 ms", False, dict(there=Way(outages=((4, 2),), loss=0.02, delay=0.05), mbps=10, want="named", silence=1)),
        ("outage-3-slow", "3 s away at 5 Mb/s, 2 % lost", False, dict(there=Way(outages=((4, 3),), loss=0.02), mbps=5, seconds=30, want="named", silence=1)),
        ("outage-5", "5 s away", False, dict(there=Way(outages=((4, 5),)), mbps=10, seconds=25, want="named", silence=1)),
        ("outage-12", "12 s away, --idle-ms 20000", False, dict(there=Way(outages=((3, 12),)), mbps=5, seconds=25, decode=("--idle-ms", 20000), want="named", silence=1)),
        ("outages", "0.3 s away every 2 s", False, dict(there=Way(outages=tuple((2 * i, 0.3) for i in range(1, 10))), mbps=10, seconds=20, want="named")),
        ("follow-0.1", "0.1 % lost, 25 ms: the rate follows", False, dict(there=Way(loss=0.001, delay=0.025), mbps=20, seconds=30, sent=1.03, delay=0.07)),
        ("follow-5", "5 % lost, 25 ms: the rate follows", True, dict(there=Way(loss=0.05, delay=0.025), mbps=(8, 20), seconds=(8, 30), sent=1.12, delay=0.07)),
        ("follow-bursts", "1 % lost in bursts of 30, 50 ms: the rate follows", True, dict(there=Way(bursts=(0.01, 30), delay=0.05), mbps=(8, 20), seconds=(8, 30), sent=1.1, delay=0.35)),
        ("follow-step", "10 % lost from the fifth second on: the rate follows", False, dict(there=Way(steps=((5, 0.1),), delay=0.025), back=Way(loss=0.1, delay=0.025), mbps=20, seconds=20)),
        ("follow-not", "5 % lost, no reports", False, dict(there=Way(loss=0.05, delay=0.025), decode=("--no-reports",))),
        ("late", "joined 3 s late", True, dict(late=3, want="named", silence=0.5)),
        ("late-loss", "joined 3 s late, 5 % lost", True, dict(there=Way(loss=0.05), late=3, want="named", silence=0.5)),
        ("signal", "SIGINT at the sender", True, dict(end=signal.SIGINT, code=130)),
        ("signal-loss", "SIGINT, 5 % lost, 50 ms", True, dict(there=Way(loss=0.05, delay=0.05), end=signal.SIGTERM, code=130)),
        ("slow-lines", "two short lines a second, 10 % lost", True, dict(there=Way(loss=0.1), mbps=80 * 8 * 2e-6, seconds=(5, 30), size=80)),
        ("fast", "50 Mb/s, 5 % lost", False, dict(there=Way(loss=0.05), mbps=50, seconds=20))):
    scenario(*arguments[:3], **arguments[3])(plain)


# ---------------------------------------------------------------- several of them

@scenario("restart-receiver", "a receiver is killed and started again")
def restart_receiver(field):
    field.network(1, [Way(loss=0.02)])
    first = field.receiver()
    sender = field.sender(mbps=field.pick((4, 10)), seconds=field.pick((7, 16)))
    field.sleep(3)
    first.process.kill()
    field.wait(first)
    second = field.receiver()
    field.watch_memory(second)
    field.wait(sender, second)
    first.rest = b""                                # half a line of a receiver that was killed is no line
    field.wrong += check_lines(first, sender, "named", is_one_stream=False)[0]
    wrong, came = check_lines(second, sender, "named")
    field.wrong += wrong
    field.bound(second.silence(sender), 0.5, "silence")
    field.tell(came, second, sender, second.silence(sender))


@scenario("restart-sender", "a sender ends by SIGINT, another follows", how=signal.SIGINT)
@scenario("restart-sender-killed", "a sender is killed, another follows", how=signal.SIGKILL)
@scenario("restart-sender-same-id", "a sender is killed, another begins under its number", how=signal.SIGKILL, options=("--stream-id", "77"))
def restart_sender(field, how, options=()):
    if options and field.key:
        raise Skipped("a sealed stream takes no number")
    field.network()
    receiver = field.receiver("udp://:5000", *(() if options else ("--follow", "--wait-ms", 4000)), "--idle-ms", 5000)
    field.watch_memory(receiver)
    mbps, seconds = field.pick((4, 10)), field.pick((3, 8))
    first = field.sender("udp://10.77.0.2:5000", *options, tag=b"A", mbps=mbps, seconds=99)
    field.sleep(seconds)
    first.kill(how)
    field.run.until(lambda: first.code is not None, 5, "the end of the sender")
    field.sleep(0.5)
    second = field.sender("udp://10.77.0.2:5000", *options, tag=b"B", mbps=mbps, seconds=seconds)
    field.wait(second, receiver)
    got = receiver.got.get(b"A", [])
    field.hold(got == list(range(len(got))), "lines of the first sender are missing in the middle")
    if options:
        field.hold(receiver.code == 3 and receiver.report().get("conflicts"), "two contents of one number are not noticed: exit code %s" % receiver.code)
        came = "conflict noticed"
    else:
        wrong, came = check_lines(receiver, second, "named", is_one_stream=False)
        field.wrong += wrong
        field.hold(came == "exact", "of the second sender: " + came)
        is_clean = how == signal.SIGINT
        field.hold(len(got) >= first.sent - (0 if is_clean else 200), "%d of %d lines of the first sender came" % (len(got), first.sent))
        field.hold(receiver.code == (0 if is_clean else 3), "exit code %s of the receiver: %s" % (receiver.code, receiver.said()[-300:]))
    field.tell("both " + came if not options else came, receiver, second)
    field.row["end s"] = ""


@scenario("two-senders", "another stream at the same place")
def two_senders(field):
    field.network(1, [Way(loss=0.02)])
    receiver = field.receiver()
    field.watch_memory(receiver)
    first = field.sender(tag=b"A", mbps=field.pick((3, 10)), seconds=field.pick((5, 12)))
    field.sleep(1)
    second = field.sender(tag=b"B", mbps=field.pick((3, 10)), seconds=field.pick((2, 8)))
    field.wait(first, second, receiver)
    wrong, came = check_lines(receiver, first, "exact")
    field.wrong += wrong
    field.hold(receiver.report().get("foreign", 0) > 0 and b"B" not in receiver.got, "the other stream is not told apart")
    field.tell(came, receiver, first)


@scenario("multicast-v4", "a group, two receivers, 5 % lost", group="udp://239.255.77.7:5000")
@scenario("multicast-v6", "an IPv6 group, two receivers, 5 % lost", group="udp://[ff15::77]:5000")
def multicast(field, group):
    field.network(1, [Way(loss=0.05)])
    those = [field.receiver(group, "--interface", "way0") for _ in range(2)]
    list(map(field.watch_memory, those))
    sender = field.sender(group, "--interface", "way0", mbps=field.pick((4, 20)), seconds=field.pick((5, 15)))
    field.wait(sender, *those)
    for receiver in those:
        wrong, came = check_lines(receiver, sender, "exact")
        field.wrong += wrong
    field.tell(came, those[0], sender)


BOTH = ["udp://10.77.0.2:5000", "udp://10.77.1.2:5000"]


@scenario("two-ways", "two ways, 30 % lost on each", there=[Way(loss=0.3), Way(loss=0.3, delay=0.02)])
@scenario("two-ways-one-dead", "two ways, one of them dies", there=[Way(outages=((1, 1e9),)), Way(loss=0.02, delay=0.03)], silence=0.5)
@scenario("two-ways-v6", "one way by IPv6, outages in turns", False, there=[Way(outages=((3, 2), (9, 2))), Way(outages=((6, 2),), delay=0.01)], urls=[BOTH[0], "udp://[fd77:1::2]:5000"], silence=0.5)
def two_ways(field, there, urls=tuple(BOTH), silence=None):
    field.network(2, there)
    receiver = field.receiver()
    field.watch_memory(receiver)
    sender = field.sender(urls, "--interface", "way0", "--interface", "way1", mbps=field.pick((3, 10)), seconds=field.pick((6, 15)))
    field.wait(sender, receiver)
    wrong, came = check_lines(receiver, sender, "exact")
    field.wrong += wrong
    quiet = receiver.silence(sender)
    if silence:
        field.bound(quiet, silence, "silence")
    field.tell(came, receiver, sender, quiet)


@scenario("narrow", "an MTU of 1280 on the way", url="udp://10.79.1.2:5000")
@scenario("narrow-v6", "an MTU of 1280 on the way, IPv6", url="udp://[fd79:1::2]:5000")
def narrow(field, url):
    for space in "ab":
        field.lab.space(space)
    field.lab.narrow(1280)
    receiver = field.receiver("udp://:5000", "--idle-ms", 1500, "--wait-ms", 4000)
    large = field.sender(url, "--packet", 1350, mbps=4, seconds=3, size=1350)
    field.wait(large, receiver)
    said = large.said()
    field.hold(large.code == 4 and "--packet" in said, "packets that are too long: exit code %s of the sender, %s" % (large.code, said[-300:]))
    fits = int(said.split("--packet")[-1].split()[0].rstrip(".")) if "choose --packet" in said else PACKET
    for packet in ("auto", fits):
        receiver = field.receiver()
        field.watch_memory(receiver)
        sender = field.sender(url, "--packet", packet, mbps=4, seconds=2, size=PACKET if packet == "auto" else packet)
        field.wait(sender, receiver)
        # `auto` may know of the narrow way by now; then lines are not packets.
        wrong, came = check_lines(receiver, sender, "exact", is_one_stream=sender.report().get("packet") == sender.size)
        field.wrong += wrong
        field.hold(receiver.code == 0 and sender.code == 0, "--packet %s: exit codes %s, %s" % (packet, sender.code, receiver.code))
    field.tell("%s; --packet 1350 refused, %d named" % (came, fits), receiver, sender)


@scenario("link-down", "the sender's network is down for 1 s")
def link_down(field):
    field.network()
    receiver = field.receiver()
    field.watch_memory(receiver)
    sender = field.sender(mbps=field.pick((4, 10)), seconds=field.pick((6, 15)))
    for at, state in ((2, "down"), (3, "up")):
        field.run.after(at, lambda state=state: ip("-n", field.lab.name("a"), "link", "set", "way0", state))
    field.wait(sender, receiver)
    wrong, came = check_lines(receiver, sender, "named")
    field.wrong += wrong
    field.hold(sender.code == 0, "exit code %s of the sender: %s" % (sender.code, sender.said()[-300:]))
    field.tell(came, receiver, sender, receiver.silence(sender))


@scenario("unplugged", "the interfaces of both are taken away for 2 s", url="udp://10.78.0.2:5000")
@scenario("unplugged-group", "the same, to a group", url="udp://239.255.77.7:5000", at="udp://239.255.77.7:5000")
@scenario("unplugged-scope", "the same, to an address of the link", url="udp://[fe80::78:2%usb0]:5000", at="udp://[fe80::78:2%usb0]:5000", named=False)
@scenario("unplugged-group-any", "the same, and the receiver lets the system choose", False, url="udp://239.255.77.7:5000", at="udp://239.255.77.7:5000", route=True)
def unplugged(field, url, at="udp://:5000", named=True, route=False):
    for space in "ab":
        field.lab.space(space)

    def plug():
        field.lab.plug()
        if route:
            ip("-n", field.lab.name("b"), "route", "add", "default", "dev", "usb0")
    plug()
    through = ("--interface", "usb0") if named else ()
    receiver = field.receiver(at, "--idle-ms", 8000, "--latency", 300, *(() if route else through))
    field.watch_memory(receiver)
    sender = field.sender(url, *through, mbps=4, seconds=field.pick((9, 15)))
    field.run.after(2, field.lab.unplug)
    field.run.after(4, plug)
    field.wait(sender, receiver)
    wrong, came = check_lines(receiver, sender, "named")
    field.wrong += wrong
    field.hold(sender.code == 0, "exit code %s of the sender: %s" % (sender.code, sender.said()[-300:]))
    after = sum(number > sender.count * 7 // field.pick((9, 15)) for number in receiver.got.get(sender.tag, []))
    field.hold(after > 0.95 * sender.count * field.pick((2, 8)) / field.pick((9, 15)), "%d lines came out after the interfaces were back" % after)
    field.bound(receiver.silence(sender), 3.5, "silence")
    field.tell(came, receiver, sender)


@scenario("stall", "whoever reads the output stalls")
def stall(field):
    field.network()
    receiver = field.receiver()
    field.watch_memory(receiver)
    sender = field.sender(mbps=field.pick((10, 50)), seconds=field.pick((5, 15)))
    field.sleep(1)
    receiver.pause(field.pick((2, 8)))
    field.wait(sender, receiver, seconds=30)
    wrong, came = check_lines(receiver, sender, "named")
    field.wrong += wrong
    field.tell(came, receiver, sender)


# ---------------------------------------------------------------- attackers

def recorded(field, data):
    """The packets that carry `data`, as they are on the wire."""
    command = [field.options.fec, "encode", "--stream", "-", "-o", "-", "-q", "--packet", PACKET, *field.key]
    done = subprocess.run(list(map(str, command)), input=data, stdout=subprocess.PIPE, check=True)
    return oracle_stream.deframe(done.stdout)


def forge(field, attack, packets=(0, 0), mbps=(3, 6), seconds=(6, 8)):
    made = stream_attacks.ATTACKS[attack](field.options.seed, field.pick(packets), example=recorded(field, b"x" * 3000)[0])
    if attack.startswith("old"):
        made.record = recorded(field, os.urandom(1_000_000 if attack == "old-stream" else 50_000))
        time.sleep(made.age)
    router = field.network(1, [Way(loss=0.02)], attack=made)
    receiver = field.receiver("udp://:5000", "--idle-ms", 5000)
    field.watch_memory(receiver)
    with field.lab.inside("a"):
        place = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for packet in made.opening():
        place.sendto(packet, ("10.77.0.2", PORT))
    place.close()
    field.sleep(0.1)
    sender = field.sender(mbps=field.pick(mbps), seconds=field.pick(seconds))
    field.wait(sender, receiver, seconds=30)
    missing = set(range(sender.sent)).difference(receiver.got.get(sender.tag, []))
    changed = receiver.wrong + bool(receiver.rest) + receiver.order
    is_exact = not missing and not changed
    holds = made.with_key if field.key else made.holds
    if holds == "first":
        field.hold(receiver.code in (0, 3), "exit code %s of the receiver" % receiver.code)
    elif holds == "whole":
        field.hold(is_exact and receiver.code == 0, "%d lines missing, %d changed, exit code %s: %s" % (len(missing), changed, receiver.code, receiver.said()[-300:]))
    else:
        field.hold(receiver.code == 3 or receiver.code == 0 and is_exact, "%d lines missing, %d changed, and exit code %s" % (len(missing), changed, receiver.code))
    forged = router.stop()[0][0]["forged"]
    field.hold(forged >= field.pick(packets) * 0.9, "only %d packets were forged" % forged)
    came = "exact" if is_exact else "%d of %d missing, %d foreign lines" % (len(missing), sender.sent, changed)
    field.tell("%s%s" % (came, "; %d forged" % forged if forged else ""), receiver, sender)


for title, what in (("another-id-first", "packets of another stream come first"), ("future-sources", "source packets that are still to come"),
                    ("end-ahead", "one end, 3000 packets ahead"), ("ends-ahead", "three ends, 3000 packets ahead"), ("end-in-the-past", "an end in the past"),
                    ("end-here", "an end at the next packet, three times"), ("far-sources", "17 packets at 2^40"), ("far-mark", "a mark and a row at 2^40"),
                    ("random-rows", "rows of random bytes"), ("replay", "everything again, later"), ("old-stream", "a recorded stream in between"), ("old-stream-first", "a recorded stream comes first")):
    scenario("forge-" + title, "attacker: " + what, attack=title)(forge)
scenario("forge-older-stream-first", "attacker: one of 12 s ago comes first", False, attack="older-stream-first")(forge)
scenario("forge-storm", "attacker: forged, replayed, mixed, truncated", attack="storm", packets=(5_000, 100_000), mbps=(4, 5), seconds=(6, 60))(forge)
scenario("forge-damage", "attacker: replayed, mixed, truncated, noise", attack="damage", packets=(3_000, 30_000), mbps=(4, 6), seconds=(5, 20))(forge)


# ---------------------------------------------------------------- a film

@scenario("mpeg-ts", "a film, 5 % lost both ways, round trip 50 ms", delay=0.025)
@scenario("mpeg-ts-far", "a film, 5 % lost both ways, round trip 100 ms", False, delay=0.05)
def mpeg_ts(field, delay):
    if not shutil.which("ffmpeg"):
        raise Skipped("there is no ffmpeg")
    way, size = Way(loss=0.05, delay=delay), 7 * 188
    data = film(field.folder, field.pick((8, 30)))
    field.network(1, [way], [way])
    receiver = field.receiver(raw=True)
    field.watch_memory(receiver)
    sender = field.sender(data=data, size=size, mbps=4)
    field.wait(sender, receiver)
    out = os.path.join(field.folder, "out.ts")
    with open(out, "wb") as f:
        f.write(receiver.rest)
    errors = decoder_errors(out)
    field.hold(receiver.rest == data and receiver.code == 0, "%d of %d bytes came, exit code %s" % (receiver.bytes, len(data), receiver.code))
    field.hold(errors == decoder_errors(os.path.join(field.folder, "in.ts")), "%d errors of the decoder" % errors)
    place = 0
    for now, count in receiver.marks:               # when each piece was complete
        while place < sender.sent and min((place + 1) * size, len(data)) <= count:
            receiver.delays.append(now - sender.times[place])
            place += 1
    field.bound(percentile(receiver.delays or [9], 0.99), 0.075 + delay, "delay, 99th percentile")
    field.tell("%s, %d errors of the decoder" % ("exact" if receiver.rest == data else "not exact", errors), receiver, sender)


# ---------------------------------------------------------------- all of them

def run_one(options):
    """Runs a scenario in a process of its own, and prints the findings as JSON."""
    def end(*_):                                    # once: a parent that is killed sends a signal from each thread
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(1)
    signal.signal(signal.SIGTERM, end)
    die_with_parent(signal.SIGTERM)
    _, _, function, fixed = SCENARIOS[options.one]
    lab = Lab(options.prefix)
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        field = Field(options, lab, folder)
        skipped = None
        try:
            function(field, **fixed)
        except Broken as e:
            field.wrong.append(str(e))
        except Skipped as e:
            skipped = str(e)
        finally:
            field.run.close()
            lab.close()
        if options.keep:
            shutil.copytree(folder, os.path.join(options.keep, options.one), dirs_exist_ok=True)
    print(json.dumps({"row": field.row, "wrong": field.wrong, "slow": field.slow, "skipped": skipped}))


class Campaign:
    """Runs scenarios as processes, and ends them when it ends."""

    def __init__(self, options):
        self.options, self.processes, self.lock, self.is_over = options, set(), threading.Lock(), False

    def once(self, name, number):
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name, "--prefix", "%s%d-%d" % (PREFIX, os.getpid(), number)]
        with self.lock:
            if self.is_over:
                raise Broken("it was interrupted")
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.processes.add(process)
        out, err = process.communicate()
        self.processes.discard(process)
        try:
            return json.loads(out.splitlines()[-1])
        except (ValueError, IndexError):
            return {"row": {}, "wrong": ["the run failed: " + (err.strip().splitlines() or ["exit code %d" % process.returncode])[-1]], "slow": [], "skipped": None}

    def scenario(self, name, number):
        for _ in range(TRIES):
            found = self.once(name, number)
            if found["wrong"] or not found["slow"]:
                break
        return found

    def end(self):
        with self.lock:
            self.is_over = True
        for process in list(self.processes):
            process.terminate()
        for process in list(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        remove_left(PREFIX)


def chosen(options):
    names = [name for name, (_, quick, _, _) in SCENARIOS.items() if quick or not options.quick]
    if options.only:
        wanted = options.only.split(",")
        names = [name for name in SCENARIOS if any(name == x or name.startswith(x + "-") for x in wanted)]
        for x in wanted:
            if not any(name == x or name.startswith(x + "-") for name in names):
                sys.exit("streams_field: no scenario %s; --list shows them" % x)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", default="target/release/fec")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=0, help="scenarios at a time (1; with --quick 6)")
    parser.add_argument("--key-file")
    parser.add_argument("--keep", help="a folder for what the commands said")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--prefix", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rivals:
        import field_rivals
        SCENARIOS.clear()
        field_rivals.register(scenario)
    if options.list:
        for name, (what, quick, _, _) in SCENARIOS.items():
            print("%-24s %s%s" % (name, what, "" if quick else "  (not with --quick)"))
        return 0
    if options.one:
        run_one(options)
        return 0
    options.fec = os.path.realpath(options.fec)
    names = chosen(options)
    if not os.geteuid():
        remove_left(PREFIX)
    reason = "there is no %s" % options.fec if not os.access(options.fec, os.X_OK) else why_not(Lab("%s%d-0" % (PREFIX, os.getpid())))
    if reason:
        print("streams_field: not here: " + reason, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    campaign, start, failed, left_out = Campaign(options), time.monotonic(), [], []
    columns = [column for column in COLUMNS if (column == "sent / payload") <= options.rivals and (column not in ("exit", "end s", "MiB")) >= options.rivals]
    print("| %s |\n|%s" % (" | ".join(columns), "---|" * len(columns)), flush=True)
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs or (6 if options.quick else 1))
    try:
        waiting = [(name, pool.submit(campaign.scenario, name, i)) for i, name in enumerate(names, 1)]
        for name, future in waiting:
            found = future.result()
            if found["skipped"]:
                left_out.append("%s: left out, %s" % (name, found["skipped"]))
                continue
            row = {"scenario": "%s: %s" % (name, SCENARIOS[name][0]), **found["row"]}
            print("| %s |" % " | ".join(str(row.get(column, "")) for column in columns), flush=True)
            failed += ["%s: %s" % (name, words) for words in found["wrong"] + found["slow"]]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        campaign.end()
    print("\n%d scenarios, seed %d, %.0f s" % (len(names) - len(left_out), options.seed, time.monotonic() - start))
    for line in left_out:
        print(line)
    for line in failed:
        print("FAILED " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRun as e:
        print("streams_field: not here: %s" % e, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
