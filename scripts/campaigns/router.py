"""Networks to try live streams in: namespaces, and between them a router in user space that loses, delays and changes
packets by seed.

This module is for streams_field.py, and knows nothing of fec. A *link* is two TUN devices, one in each of two
namespaces; a router, a process of its own, carries packets between them, and `Way` says what the router does to packets
of one direction. The same seed does the same to the same packets. `Lab` makes namespaces and removes them, which takes
root, iproute2 and /dev/net/tun.
"""
import contextlib
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PR_SET_PDEATHSIG = 1
UDP = 17
MTU = 1500
LIBC = ctypes.CDLL(None, use_errno=True)


class CannotRun(Exception):
    """This machine, or this user, has no such networks."""


@dataclass(frozen=True)
class Way:
    """The faults of one direction. Only UDP packets are lost, doubled and corrupted."""
    loss: float = 0                                 # of each packet on its own
    steps: tuple = ()                               # (start, loss from then on), from the first UDP packet on
    bursts: tuple = ()                              # Gilbert-Elliott: (mean loss, mean length of a burst)
    # seconds; jitter: at most so many seconds more or less, so packets overtake each other
    delay: float = 0
    jitter: float = 0
    double: float = 0
    corrupt: float = 0                              # one to three bytes, and the checksum of UDP is made right
    # the most megabits of IP packets a second; queue: the most bytes that wait in front of it
    mbps: float = 0
    queue: int = 65536
    outages: tuple = ()                             # (start, seconds), from the first UDP packet on


def die_with_parent(how=signal.SIGKILL):
    LIBC.prctl(PR_SET_PDEATHSIG, how)


def as_child():
    """Prepares a command: it ends with its parent, and takes SIGINT also where a background job does not."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ip(*args):
    done = subprocess.run(["ip", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise CannotRun("ip %s: %s" % (" ".join(args), done.stderr.strip().splitlines()[0] if done.stderr.strip() else done.returncode))


class Lab:
    """Namespaces with a prefix, removed by close()."""

    def __init__(self, prefix):
        self.prefix, self.spaces, self.routers = prefix, [], []

    def name(self, space):
        return "%s-%s" % (self.prefix, space)

    def command(self, space, *command):
        """A command in a namespace. `ip netns exec` becomes the command, which keeps its process id."""
        return ["ip", "netns", "exec", self.name(space), *map(str, command)]

    def space(self, space):
        ip("netns", "add", self.name(space))
        self.spaces.append(space)
        ip("-n", self.name(space), "link", "set", "lo", "up")

    def address(self, space, device, *addresses):
        for address in addresses:
            ip("-n", self.name(space), "addr", "add", address, "dev", device, *["nodad"] * (":" in address))

    @contextlib.contextmanager
    def inside(self, space):
        """Moves this thread into a namespace, for sockets and devices that are made there."""
        with open("/proc/self/ns/net") as own, open("/run/netns/" + self.name(space)) as there:
            self.enter(there)
            try:
                yield
            finally:
                self.enter(own)

    @staticmethod
    def enter(place):
        if LIBC.setns(place.fileno(), CLONE_NEWNET):
            raise CannotRun("setns: " + os.strerror(ctypes.get_errno()))

    def tun(self, space, device, *addresses):
        with self.inside(space):
            try:
                fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            except OSError as e:
                raise CannotRun("/dev/net/tun: %s" % e.strerror) from e
        ip("-n", self.name(space), "link", "set", device, "mtu", str(MTU), "txqueuelen", "10000", "up")
        self.address(space, device, *addresses)
        return fd

    def link(self, number, one="a", other="b"):
        """Devices way0, way1, … of 10.77.N.1 and fd77:N::1 in one namespace and .2 in the other; their files."""
        net4, net6 = "10.77.%d." % number, "fd77:%d::" % number
        return [self.tun(space, "way%d" % number, "%s%d/24" % (net4, end), "%s%d/64" % (net6, end)) for space, end in ((one, 1), (other, 2))]

    def plug(self, one="a", other="b"):
        """A cable between two namespaces, each with a device `usb0`: 10.78.0.1, fd78::1 and 10.78.0.2, fd78::2."""
        ip("-n", self.name(one), "link", "add", "usb0", "type", "veth", "peer", "name", "usb0", "netns", self.name(other))
        for space, host in ((one, 1), (other, 2)):
            self.address(space, "usb0", "10.78.0.%d/24" % host, "fd78::%d/64" % host, "fe80::78:%d/64" % host)
            ip("-n", self.name(space), "link", "set", "usb0", "up")

    def unplug(self, one="a"):
        """Takes the devices of `plug` away. The next ones have the same name, and another number."""
        ip("-n", self.name(one), "link", "del", "usb0")

    def narrow(self, mtu):
        """Makes a way from `a` over `r` to `b`, forwarded by the kernel, whose second half has a smaller MTU. Addresses
        of `b`: 10.79.1.2, fd79:1::2."""
        self.space("r")
        for number, space, end in ((0, "a", 1), (1, "b", 2)):
            near = "to-%s" % space
            ip("-n", self.name("r"), "link", "add", near, "type", "veth", "peer", "name", "net", "netns", self.name(space))
            for where, device, host in (("r", near, 3 - end), (space, "net", end)):
                self.address(where, device, "10.79.%d.%d/24" % (number, host), "fd79:%d::%d/64" % (number, host))
                ip("-n", self.name(where), "link", "set", device, "mtu", str(mtu if number else MTU), "up")
            for family, network, gate in (("-4", "10.79.0.0/16", "10.79.%d.%d"), ("-6", "fd79::/16", "fd79:%d::%d")):
                ip("-n", self.name(space), family, "route", "add", network, "via", gate % (number, 3 - end))
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward && echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
        done = subprocess.run(self.command("r", "sh", "-c", forward), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise CannotRun("forwarding: " + done.stderr.strip())

    def route(self, links, seed, attack=None):
        """Starts a router. links: (files, Way there, Way back) for each."""
        self.routers.append(Router(links, seed, attack))
        return self.routers[-1]

    def close(self):
        for router in self.routers:
            router.kill()
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", self.name(space)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.spaces = []


def remove_left(prefix):
    """Removes namespaces of Labs that are no more: PREFIX and the number of a process that is gone, or of this one."""
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    for name in (line.split()[0] for line in done.stdout.splitlines() if line.startswith(prefix)):
        owner = name[len(prefix):].split("-")[0]
        if owner == str(os.getpid()) or not os.path.exists("/proc/" + owner):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def why_not(lab):
    """The reason why there can be no Lab here, or None."""
    if os.geteuid():
        return "it takes root"
    if not shutil.which("ip"):
        return "there is no `ip` (Debian: iproute2)"
    try:
        lab.space("try")
        os.close(lab.tun("try", "way0", "10.77.0.1/24", "fd77::1/64"))
    except (CannotRun, OSError) as e:
        return str(e)
    finally:
        lab.close()
    return None


# ---------------------------------------------------------------- packets

def ones_sum(data):
    """The sum of the Internet's checksums."""
    data = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def body_at(packet):
    """The offset of the payload in a UDP packet; None for other packets."""
    if packet[0] >> 4 == 4:
        return (packet[0] & 15) * 4 + 8 if packet[9] == UDP else None
    return 48 if packet[0] >> 4 == 6 and packet[6] == UDP else None


def with_body(packet, at, body):
    """A UDP packet with another payload, and right lengths and checksums."""
    head, length = bytearray(packet[:at]), len(body) + 8
    if head[0] >> 4 == 4:
        head[2:4] = struct.pack("!H", at + len(body))
        head[10:12] = b"\0\0"
        head[10:12] = struct.pack("!H", ones_sum(head[:at - 8]) ^ 0xFFFF)
        addresses = head[12:20]
    else:
        head[4:6] = struct.pack("!H", length)
        addresses = head[8:40]
    head[at - 4:at] = struct.pack("!HH", length, 0)
    total = ones_sum(bytes(addresses) + struct.pack("!HH", UDP, length) + bytes(head[at - 8:]) + body) ^ 0xFFFF
    head[at - 2:at] = struct.pack("!H", total or 0xFFFF)
    return bytes(head) + body


class Direction:
    """The packets of one direction: their fate, and their time."""

    def __init__(self, way, seed, attack=None):
        self.way, self.attack, self.random = way, attack, random.Random(seed)
        self.is_bad, self.free, self.first = False, 0.0, None
        self.counts = dict.fromkeys("packets bytes lost corrupted doubled queue outage forged".split(), 0)

    def is_lost(self, now):
        if self.way.bursts:
            mean, length = self.way.bursts
            self.is_bad = self.random.random() < (1 - 1 / length if self.is_bad else mean / (length * (1 - mean)))
            return self.is_bad
        loss = next((loss for start, loss in reversed(self.way.steps) if start <= now - self.first), self.way.loss)
        return loss and self.random.random() < loss

    def corrupted(self, packet, at):
        body = bytearray(packet[at:])
        for place in self.random.sample(range(len(body)), min(len(body), self.random.randint(1, 3))):
            body[place] ^= self.random.randint(1, 255)
        return with_body(packet, at, bytes(body))

    def late(self, now):
        return now + self.way.delay + (self.random.uniform(-self.way.jitter, self.way.jitter) if self.way.jitter else 0)

    def take(self, packet, now):
        """[(when, packet)]"""
        way, at = self.way, body_at(packet)
        if at is None or at >= len(packet):
            return [(now + way.delay, packet)]
        self.counts["packets"] += 1
        self.counts["bytes"] += len(packet)
        self.first = self.first or now
        forged = self.attack.see(packet[at:]) if self.attack else ()
        self.counts["forged"] += len(forged)
        out = [(now + way.delay, with_body(packet, at, body)) for body in forged]
        if any(start <= now - self.first < start + length for start, length in way.outages):
            self.counts["outage"] += 1
            return out
        if self.is_lost(now):
            self.counts["lost"] += 1
            return out
        if way.mbps:
            if (self.free - now) * way.mbps * 125000 > way.queue:
                self.counts["queue"] += 1
                return out
            self.free = max(self.free, now) + len(packet) / (way.mbps * 125000)
        if way.corrupt and self.random.random() < way.corrupt:
            self.counts["corrupted"] += 1
            packet = self.corrupted(packet, at)
        start = max(now, self.free)
        out.append((self.late(start), packet))
        if way.double and self.random.random() < way.double:
            self.counts["doubled"] += 1
            out.append((self.late(start), packet))
        return out


class Router:
    """A process that carries packets until stop(), which gives its counts: [[counts there, counts back] of each
    link]."""

    def __init__(self, links, seed, attack):
        stop, self.stopper = os.pipe()
        self.told, tell = os.pipe()
        self.result = None
        self.pid = os.fork()
        if self.pid:
            os.close(stop)
            os.close(tell)
            for files, _, _ in links:
                list(map(os.close, files))
            return
        try:
            die_with_parent()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            os.close(self.stopper)
            counts = carry(links, seed, attack, stop)
            os.write(tell, json.dumps(counts).encode())
            os._exit(0)
        except BaseException as e:  # noqa: B902: the process must not go on as its parent
            sys.stderr.write("router: %r\n" % e)
            os._exit(1)

    def stop(self):
        if self.result is None:
            os.close(self.stopper)
            text = b"".join(iter(lambda: os.read(self.told, 65536), b""))
            os.close(self.told)
            os.waitpid(self.pid, 0)
            self.pid = None
            self.result = json.loads(text or b"[]")
        return self.result

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None


def carry(links, seed, attack, stop):
    """The router's loop."""
    ways, directions = {}, []
    for number, ((one, other), there, back) in enumerate(links):
        pair = Direction(there, "%s/%d/there" % (seed, number), attack), Direction(back, "%s/%d/back" % (seed, number))
        ways[one], ways[other] = (pair[0], other), (pair[1], one)
        directions.append(pair)
    files, pending, order = [stop, *ways], [], 0
    while True:
        wait = max(0, pending[0][0] - time.monotonic()) if pending else None
        ready = select.select(files, (), (), wait)[0]
        if stop in ready:
            return [[direction.counts for direction in pair] for pair in directions]
        for file in ready:
            direction, out = ways[file]
            for _ in range(64):
                try:
                    packet = os.read(file, 65536)
                except (BlockingIOError, OSError):
                    break
                now = time.monotonic()
                for when, made in direction.take(packet, now):
                    order += 1
                    heapq.heappush(pending, (when, order, out, made))
        now = time.monotonic()
        while pending and pending[0][0] <= now:
            _, _, out, packet = heapq.heappop(pending)
            with contextlib.suppress(OSError):      # the device is down: the packet is lost
                os.write(out, packet)
