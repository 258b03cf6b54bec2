"""Attacks on a receiver of live streams, by whoever sees the packets on their way and can add some, with right
checksums.

An attack gets the packets as they are on the wire (docs/FORMAT.md, section 13) and gives back packets to add:
`opening()` those before the stream begins, `see(packet)` those behind a packet. Nothing here knows of networks, nor of
keys: packets for an authenticated stream have the fields of that stream, and a tag that is random, or another packet's.

`holds` says what has to be true of a receiver without a key: "whole": everything came out, exit code 0; "told": the
same, or exit code 3, whatever came out; "first": a receiver takes the first stream that comes, which is the attacker's.
For a receiver with a key `with_key` says the same; it is "whole" for nearly all attacks.
"""
import random
import struct
import time

from oracle.hashes import crc32c
from oracle.stream import REPAIR, SOURCE, Params, header, mark_packet, source_packet

HEADER, AUTHENTICATION, TAG = 36, 6, 16
BASE = struct.Struct("<4sBBBBQQIHHI")


class Forger:
    """Makes packets of the stream of a given packet."""

    def __init__(self, packet, draw):
        fields = BASE.unpack_from(packet)
        self.draw, self.authentication = draw, fields[3]
        self.params = Params(profile=fields[4], id=fields[5], W=fields[7], P=fields[8], D=fields[9])

    def sealed(self, packet):
        """The packet as if sealed now (13.3), except that the tag is random; in a stream without a key the packet
        itself."""
        if not self.authentication:
            return packet
        seal = struct.pack("<IQ", int(time.time()) & 0xFFFFFFFF, self.draw.getrandbits(20))
        return packet[:AUTHENTICATION] + bytes([self.authentication]) + packet[AUTHENTICATION + 1:32] + seal + packet[HEADER:] + self.draw.randbytes(TAG)

    def source(self, seq, payload=None):
        payload = self.draw.randbytes(self.params.P) if payload is None else payload
        return self.sealed(source_packet(self.params, seq, payload))

    def repair(self, row, first, count):
        body = struct.pack("<QII", first, count, 0) + self.draw.randbytes(self.params.P + 6)
        return self.sealed(header(self.params, REPAIR, row, body) + body)

    def mark(self, sent, is_end=True):
        return self.sealed(mark_packet(self.params, sent, int(is_end)))


def kind(packet):
    return packet[5]


def number(packet):
    return struct.unpack_from("<Q", packet, 16)[0]


def summed(packet):
    """The packet with the right checksums for its bytes; a sealed packet has none, and stays as it is."""
    packet = bytearray(packet)
    if len(packet) < HEADER or packet[AUTHENTICATION]:
        return bytes(packet)
    if kind(packet) == SOURCE and len(packet) > HEADER + 4:
        packet[-4:] = struct.pack("<I", crc32c(bytes(packet[8:24] + packet[HEADER:-4])))
    packet[32:36] = bytes(4)
    packet[32:36] = struct.pack("<I", crc32c(bytes(packet[:HEADER] if kind(packet) == SOURCE else packet)))
    return bytes(packet)


class Attack:
    """An attack that adds nothing. Attacks that happen once do so after `after` source packets."""
    holds, with_key, after, age = "whole", "whole", 500, 0

    def __init__(self, seed, packets=0, example=None):
        self.draw, self.packets, self.example = random.Random(seed), packets, example
        self.forger, self.newest, self.seen, self.is_done = None, 0, 0, False

    def opening(self):
        return []

    def see(self, packet):
        self.seen += 1
        if self.forger is None:
            self.forger = Forger(packet, self.draw)
        if kind(packet) == SOURCE:
            self.newest = number(packet)
        if not self.is_done and self.newest >= self.after:
            self.is_done = True
            return self.once()
        return self.each(packet)

    def once(self):
        return []

    def each(self, packet):
        return []


class AnotherIdFirst(Attack):
    """Packets of another stream, before the first of this one."""
    holds = "first"

    def opening(self):
        like = bytearray(self.example)
        like[8:16] = self.draw.randbytes(8)
        forger = Forger(bytes(like), self.draw)
        return [forger.source(seq) for seq in range(12)]


class FutureSources(Attack):
    """Source packets that are still to come, with other contents."""
    holds = "told"

    def once(self):
        return [self.forger.source(self.newest + 50 + i) for i in range(10)]


class EndAhead(Attack):
    """A mark of an end, 3000 packets ahead, `times` times."""
    holds, times = "told", 1

    def once(self):
        return [self.forger.mark(self.newest + 3000)] * self.times


class EndsAhead(EndAhead):
    """A mark of an end, 3000 packets ahead, three times."""
    times = 3


class EndInThePast(EndAhead):
    """An end behind which packets came already, three times."""

    def once(self):
        return [self.forger.mark(self.newest - 200)] * 3


class EndHere(EndAhead):
    """An end at the next packet, three times."""

    def once(self):
        return [self.forger.mark(self.newest + 1)] * 3


class FarSources(Attack):
    """Seventeen source packets far ahead, near each other."""
    holds = "told"

    def once(self):
        return [self.forger.source((1 << 40) + i) for i in range(17)]


class FarMark(Attack):
    """A mark far ahead that tells no end, and a row far ahead."""
    holds = "told"

    def once(self):
        far = (1 << 40) // self.forger.params.D * self.forger.params.D
        return [self.forger.mark((1 << 40), False), self.forger.repair(1 << 40, far, self.forger.params.D)]


class RandomRows(Attack):
    """Rows of random bytes over windows of the stream, one for each hundred packets."""
    holds = "told"

    def each(self, packet):
        if self.seen % 100:
            return []
        size, end = self.forger.params.D, self.newest + 1
        first = max(0, end - self.forger.params.W) // size * size
        return [self.forger.repair(self.draw.getrandbits(40), first, min(end - first, self.forger.params.W))]


class Replay(Attack):
    """All packets again, some time later."""
    holds = "whole"

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.record = []

    def each(self, packet):
        self.record.append(packet)
        return [self.record[self.seen - 700]] if self.seen > 700 else []


class OldStream(Attack):
    """Another stream that was recorded (`record`, from the outside), in the middle of this one."""
    holds = "whole"
    record = ()

    def each(self, packet):
        return self.record[self.seen - 300:self.seen - 299] if self.seen >= 300 else []


class OldStreamFirst(Attack):
    """A recorded stream with its end, before this one. A receiver with a key believes a record for some seconds."""
    holds = with_key = "first"
    record = ()

    def opening(self):
        return self.record


class OlderStreamFirst(OldStreamFirst):
    """A recorded stream that is too old for a receiver with a key: recorded `age` seconds before."""
    with_key, age = "whole", 12


class Storm(Attack):
    """`packets` packets, forged, replayed, mixed and truncated, a few after each packet of the stream."""
    holds, rate = "told", 3

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.record, self.made = [], 0
        self.ways = [self.replayed, self.flipped, self.flipped_and_summed, self.truncated, self.longer, self.mixed, self.mixed_and_summed,
                     self.forged, self.of_another, self.with_other_fields, self.noise]

    def see(self, packet):
        if self.forger is None:
            self.forger = Forger(packet, self.draw)
        self.newest = max(self.newest, number(packet)) if kind(packet) == SOURCE else self.newest
        self.record.append(packet)
        if len(self.record) > 8192:
            del self.record[:4096]
        count = min(self.rate, self.packets - self.made)
        self.made += count
        return [self.draw.choice(self.ways)() for _ in range(count)]

    def any(self):
        return self.draw.choice(self.record[-64:] if self.draw.random() < 0.5 else self.record)

    def replayed(self):
        return self.any()

    def flipped(self):
        packet = bytearray(self.any())
        for _ in range(self.draw.randint(1, 4)):
            packet[self.draw.randrange(len(packet))] ^= 1 << self.draw.randrange(8)
        return bytes(packet)

    def flipped_and_summed(self):
        return summed(self.flipped())

    def truncated(self):
        packet = self.any()
        return packet[:self.draw.randrange(1, len(packet))]

    def longer(self):
        return self.any() + self.draw.randbytes(self.draw.randint(1, 40))

    def mixed(self):
        one, other = self.any(), self.any()
        return one[:HEADER] + other[HEADER:]

    def mixed_and_summed(self):
        return summed(self.mixed())

    def near(self):
        return max(0, self.newest + self.draw.randint(-8000, 8000))

    def forged(self):
        size, near = self.forger.params.D, self.near()
        far = self.draw.getrandbits(self.draw.randint(1, 62))
        return self.draw.choice([
            lambda: self.forger.source(near), lambda: self.forger.source(far), lambda: self.forger.mark(near, self.draw.random() < 0.5),
            lambda: self.forger.repair(far, near // size * size, self.draw.randint(1, self.forger.params.W))])()

    def of_another(self):
        packet = bytearray(self.any())
        packet[8:16] = self.draw.randbytes(8)
        return summed(packet)

    def with_other_fields(self):
        packet = bytearray(self.any())
        packet[self.draw.choice([4, 5, 6, 7, *range(24, 32)])] = self.draw.randrange(256)
        return summed(packet)

    def noise(self):
        return b"\x89fep\x01"[:self.draw.randint(0, 5)] + self.draw.randbytes(self.draw.randint(1, 1400))


class Damage(Storm):
    """A storm without packets whose checksums fit contents that no sender sent: no receiver believes any of it."""
    holds = "whole"

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.ways = [self.replayed, self.flipped, self.truncated, self.longer, self.mixed, self.of_another, self.noise]


ATTACKS = {
    "another-id-first": AnotherIdFirst, "future-sources": FutureSources, "end-ahead": EndAhead, "ends-ahead": EndsAhead, "end-in-the-past": EndInThePast,
    "end-here": EndHere, "far-sources": FarSources, "far-mark": FarMark, "random-rows": RandomRows, "replay": Replay, "old-stream": OldStream,
    "old-stream-first": OldStreamFirst, "older-stream-first": OlderStreamFirst, "storm": Storm, "damage": Damage,
}
