"""The golden vectors of live streams."""
import hashlib
import json
import os
import random
import struct

from ..basics import generate, store
from .frames import DELIMITER, deframe, frames
from .packets import (
    BLOCKS, BOUNDED, CIPHERS, CLASSIC, CLASSIC_BLOCKS, MAGIC, MASK, PROFILES, REPAIR, SOURCE, Bad, Call, Params,
    Report, Row, call_packet, header, mark_packet, parse, parse_control, passphrase_key, repair_packet,
    report_packet, seal, source_packet, symbol_of, unseal_all,
)
from .receiver import receive
from .rows import Draws, row_symbol
from .sender import send


def lengths(P, n, seed):
    """Payload lengths of a vector: mostly full, some short, some empty."""
    rng = generate(n, seed)
    return [P if x < 160 else x * P // 255 if x > 170 else 0 for x in rng]


def payloads_of(v):
    sizes = lengths(v["packet"], v["packets"], v["seed"])
    data = generate(sum(sizes), v["seed"] + 1)
    out, at = [], 0
    for size in sizes:
        out.append(data[at:at + size])
        at += size
    return out


def params_of(v):
    return Params(PROFILES[v["profile"]], int(v["stream_id"], 16), v["window"], v["packet"], v["block"])


def encode_cases():
    seed = 100
    for profile, window, block, packet, repair, source, packets in (
            ("bounded", 1, 1, 16, 1, 1, 9), ("bounded", 8, 2, 16, 1, 2, 40), ("bounded", 100, 25, 40, 1, 6, 400), ("bounded", 100, 25, 1350, 3, 4, 150),
            ("bounded", 480, 120, 16, 1, 6, 1500), ("bounded", 6000, 240, 16, 1, 60, 6900), ("bounded", 65536, 240, 16, 1, 500, 5000), ("bounded", 300, 60, 17, 5, 1, 60),
            ("bounded", 700, 48, 33, 2, 7, 900), ("bounded", 64, 16, 9000, 1, 6, 80), ("bounded", 2, 1, 65535, 1, 2, 7), ("bounded", 40, 10, 16, 1, 6, 0),
            ("classic", 1, 1, 16, 1, 1, 9), ("classic", 8, 2, 16, 1, 2, 40), ("classic", 100, 25, 40, 1, 6, 400), ("classic", 500, 125, 16, 1, 6, 1500),
            ("classic", 6000, 240, 16, 1, 120, 6900), ("classic", 300, 60, 17, 5, 1, 60), ("classic", 64, 16, 1350, 1, 6, 200),
            ("classic-blocks", 1, 1, 16, 1, 1, 9), ("classic-blocks", 480, 240, 40, 1, 6, 1000), ("classic-blocks", 6000, 240, 16, 1, 6, 960),
            ("classic-blocks", 60, 17, 33, 2, 3, 200), ("classic-blocks", 40, 40, 1350, 1, 4, 130),
            ("blocks", 1, 1, 16, 1, 1, 9), ("blocks", 480, 214, 40, 1, 6, 1500), ("blocks", 24, 24, 1350, 1, 6, 80), ("blocks", 60, 17, 33, 2, 3, 200),
            ("blocks", 1000, 100, 16, 1, 1, 2100), ("blocks", 255, 255, 16, 1, 255, 600), ("blocks", 7, 3, 100, 5, 1, 30), ("blocks", 6000, 219, 16, 1, 6, 6300),
            ("bounded", 28, 7, 16, 1, 1, 60), ("bounded", 4, 1, 16, 1, 1, 12), ("bounded", 400, 98, 16, 1, 20, 600)):
        seed += 2
        name = "%s-%d-%d-%d-%d-%d" % (profile, window, block, packet, repair, source)
        yield dict(name=name, profile=profile, window=window, block=block, packet=packet, repair=repair, source=source, packets=packets, seed=seed,
                   stream_id="%016x" % Draws(seed).draw())


def sha(data):
    return hashlib.sha256(data).hexdigest()


def encode_vector(v):
    p = params_of(v)
    packets, end = send(p, v["repair"], v["source"], payloads_of(v))
    repairs = [sha(x)[:16] for x in packets if x[5] == REPAIR]
    total = sha(b"".join(struct.pack("<I", len(x)) + x for x in packets + end))
    return dict(v, sha256=total, repairs=repairs, end=end[0].hex(), framed_sha256=sha(frames(packets + end)))


def packet_cases():
    """A packet for each rule of §13: (name, rule, kind or None, packet)."""
    p = Params(BOUNDED, 0x0123456789ABCDEF, 480, 32, 240)
    text = b"payload of a packet"
    symbol = bytes(range(38))
    out = []

    def add(name, rule, kind, packet):
        out.append((name, rule, kind, packet))

    def S(p=p, seq=7, payload=text, **lie):
        return source_packet(p, seq, payload, **lie)

    def R(p=p, number=3, first=240, count=100, part=0, symbol=None, **lie):
        return repair_packet(p, Row(number, first, count, part, symbol if symbol is not None else bytes(i % 251 for i in range(p.P + 6))), **lie)

    def M(p=p, sent=9, flags=1, **lie):
        return mark_packet(p, sent, flags, **lie)

    for name, make in (("source", S), ("repair", R), ("mark", M)):
        good = make()
        add(name, "§13.2 a good packet", None, good)
        add(name + "-magic", "§13.1 rule 1: magic", "magic", make(magic=MAGIC[:3] + b"q"))
        for at in (0, 3):
            add("%s-magic-cut-%d" % (name, at), "§13.1 rule 1: magic", "magic", good[:at])
        add(name + "-cut-header", "§13.1 rule 1: 36 bytes", "damaged", good[:35])
        add(name + "-cut-body", "§13.1, §13.2: checksum, where it ends", "damaged", good[:-1])
        add(name + "-no-body", "§13.2: where it ends", "damaged", good[:36])
        add(name + "-longer", "§13.2: where it ends", "damaged", good + b"\0")
        add(name + "-version-0", "§13.1 rule 1: version", "version", make(version=0))
        add(name + "-version-2", "§13.1 rule 1: version", "version", make(version=2))
        add(name + "-authentication", "§13.1 rule 1: authentication", "authentication", make(auth=1))
        add(name + "-sum", "§13.1 rule 1: checksum", "damaged", make(sum=1))
        add(name + "-profile-0", "§13.1 rule 1: profile", "profile", make(profile=0))
        add(name + "-profile-5", "§13.1 rule 1: profile", "profile", make(profile=5))
        add(name + "-number", "§13.1 rule 3", "invalid", make(nr=1 << 63))
        for at in range(len(good)):
            if at not in (0, 1, 2, 3, 4, 5, 6):
                kind = "damaged"
                add("%s-flip-%d" % (name, at), "§13.1, §13.2: a byte differs", kind, good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
    add("type-3", "§13.1 rule 1: type", "type", M(type=3))
    add("largest-number", "§13.1 rule 3: 2^63 − 1", None, S(seq=(1 << 63) - 1))
    for name, q, good in (
            ("P-15", p._replace(P=15), False), ("P-16", p._replace(P=16), True), ("W-0", p._replace(W=0), False), ("W-65536", p._replace(W=65536), True),
            ("W-65537", p._replace(W=65537), False), ("D-0", p._replace(D=0), False), ("D-half", p._replace(W=479), True), ("D-above-half", p._replace(W=478), False),
            ("D-48", p._replace(W=480, D=48), True), ("D-47", p._replace(W=480, D=47), False), ("D-eighth", p._replace(W=376, D=47), True),
            ("W-1", p._replace(W=1, D=1), True),
            ("classic-D-above-half", p._replace(profile=CLASSIC, W=478), False), ("classic-D-47", p._replace(profile=CLASSIC, D=47), False),
            ("classic-blocks-D-W", p._replace(profile=CLASSIC_BLOCKS, W=240), True), ("classic-blocks-D-above-W", p._replace(profile=CLASSIC_BLOCKS, W=239), False),
            ("blocks-D-255", p._replace(profile=BLOCKS, D=255), True), ("blocks-D-256", p._replace(profile=BLOCKS, D=256), False),
            ("blocks-D-above-W", p._replace(profile=BLOCKS, W=100), True)):
        add("parameters-" + name, "§13.1 rule 2", None if good else "invalid", M(q))
    add("payload-empty", "§13.2: length 0", None, S(payload=b""))
    add("payload-P", "§13.2: length = P", None, S(payload=bytes(32)))
    add("payload-above-P", "§13.2: length ≤ P", "invalid", S(payload=bytes(33)))
    add("payload-sum-of-other-seq", "§13.2: the checksum covers seq", "damaged", header(p, SOURCE, 8, b"") + S()[36:])
    add("payload-sum-of-other-stream", "§13.2: the checksum covers the stream id", "damaged", header(p._replace(id=1), SOURCE, 7, b"") + S()[36:])
    body = S()[36:]
    add("payload-length-wrong", "§13.2: where it ends", "damaged", header(p, SOURCE, 7, b"") + body[:4] + struct.pack("<H", 18) + body[6:])
    add("repair-symbol-short", "§13.2: a symbol may be cut", None, R(symbol=symbol[:-1]))
    add("repair-symbol-shortest", "§13.2: a symbol may be cut", None, R(symbol=symbol[:6]))
    add("repair-symbol-too-short", "§13.2: 6 ≤ S", "damaged", R(symbol=symbol[:5]))
    add("repair-symbol-long", "§13.2: S ≤ P + 6", "damaged", R(symbol=symbol + b"\0"))
    for name, row, good in (
            ("count-0", dict(count=0), False), ("count-1", dict(count=1), True), ("count-W", dict(count=480), True), ("count-above-W", dict(count=481), False),
            ("first-not-on-block", dict(first=239), False), ("part", dict(part=1), False), ("last-column", dict(first=(1 << 63) - 8 - ((1 << 63) - 8) % 240, count=1), True),
            ("past-last-column", dict(first=(1 << 63) - 1 - ((1 << 63) - 1) % 240, count=480), False), ("first-huge", dict(first=(1 << 64) - 16, count=240), False)):
        add("row-" + name, "§13.2: rows", None if good else "invalid", R(**row))
    c, b = p._replace(profile=CLASSIC_BLOCKS), p._replace(profile=BLOCKS, W=480, D=200)
    for name, row, good in (
            ("classic-blocks", dict(p=c, count=240), True), ("classic-blocks-count-above-D", dict(p=c, count=241), False), ("classic-blocks-part", dict(p=c, part=1), False),
            ("classic-blocks-first", dict(p=c, first=241), False), ("blocks", dict(p=b, first=480, count=480, part=5), True), ("blocks-first", dict(p=b, first=240, count=480), False),
            ("blocks-tail", dict(p=b, first=241, count=200, part=55), True), ("blocks-tail-part", dict(p=b, first=241, count=200, part=56), False),
            ("blocks-first-of-two-sets", dict(p=b, first=241, count=201), False),
            ("blocks-last-part", dict(p=b, first=0, count=480, part=(255 - 160) * 3 + 2), True), ("blocks-part-above", dict(p=b, first=0, count=480, part=(256 - 160) * 3), False),
            ("blocks-short-window", dict(p=b, first=0, count=1, part=254), True), ("blocks-short-window-part", dict(p=b, first=0, count=1, part=255), False)):
        add("row-" + name, "§13.2: rows", None if good else "invalid", R(**row))
    add("mark-flags-0", "§13.2: flags", None, M(flags=0))
    add("mark-flags-2", "§13.2: flags", "invalid", M(flags=2))
    return out


def shuffled(items, seed, reach):
    """Each item moves by less than `reach` places."""
    rng = random.Random(seed)
    return [x for _, _, x in sorted((i + rng.random() * reach, i, x) for i, x in enumerate(items))]


def file_cases():
    """Framed byte streams: (name, rule, bytes, packets that must be delivered as (seq, payload), exit)."""
    for profile, W, D, repair, source, n, lose in (("bounded", 200, 50, 1, 4, 500, 0.12), ("classic", 200, 50, 1, 4, 500, 0.12), ("classic-blocks", 100, 50, 1, 3, 450, 0.1), ("blocks", 120, 60, 1, 3, 480, 0.1)):
        v = dict(profile=profile, window=W, block=D, packet=64, packets=n, seed=W + n, stream_id="%016x" % Draws(n + PROFILES[profile]).draw())
        p, payloads = params_of(v), payloads_of(v)
        packets, end = send(p, repair, source, payloads)
        full = packets + end
        want = list(enumerate(payloads))
        rng = random.Random(n)
        yield profile, "§13 to §16: nothing is lost", frames(full), want, 0
        kept = [x for i, x in enumerate(packets) if rng.random() >= lose or i > len(packets) - 60]
        yield profile + "-lost", "§14: lost packets are rebuilt", frames(kept + end), want, 0
        mixed = shuffled([x for x in kept for _ in range(1 + (rng.random() < 0.1))], 5, 12)
        yield profile + "-mixed", "§15: reordered and doubled", frames(mixed + end), want, 0
        data = bytearray(frames(full))
        for at in range(3000, len(data) - 12000, 2900):
            data[at] ^= 0x10
        yield profile + "-flipped", "§16: damaged frames are lost packets", bytes(data), want, 0
    v = dict(profile="bounded", window=200, block=50, packet=64, packets=300, seed=77, stream_id="00000000000000aa")
    p, payloads = params_of(v), payloads_of(v)
    packets, end = send(p, 1, 6, payloads)
    data, want = frames(packets + end), list(enumerate(payloads))
    sources = [x for x in packets if x[5] == SOURCE]
    yield "cut-mark", "§16: the last frame is cut", data[:-3], want, 0
    yield "cut-end", "§16: the last frame is cut, and no mark says that the stream has ended", frames(packets)[:-3], want, 3
    yield "inserted", "§16: bytes inserted", data[:5000] + b"inserted" * 90 + data[5000:], want, 0
    yield "deleted", "§16: bytes deleted", data[:5000] + data[5300:], want, 0
    yield "delimiters", "§16: empty frames", data.replace(DELIMITER, DELIMITER * 3), want, 0
    yield "gap", "§15 rule 5: lost for good", frames(sources[:100] + sources[110:] + end), want[:100] + want[110:], 3
    yield "late", "§15 rule 3: joined later", frames(sources[60:] + end), want[60:], 3
    yield "end-first", "§15 rule 3: a first mark does not say where the stream begins", frames(end + packets), want, 0
    yield "end-first-and-lost", "§15 rules 3 and 5", frames(end + sources[:100] + sources[110:]), want[:100] + want[110:], 3
    yield "end-only", "§15 rule 3: nothing but an end", frames(end), [], 3
    yield "end-early-only", "§15 rule 3: nothing but an end within the first block", frames([mark_packet(p, 50, 1)]), [], 3
    yield "end-0", "§15 rule 2: an empty stream", frames([mark_packet(p, 0, 1)] * 2), [], 0
    yield "mark-first", "§15 rule 3: a first mark that is no end, and a late join", frames([mark_packet(p, 200, 0)] + sources[60:] + end), want[60:], 3
    yield "mark-0-first", "§15 rule 3: a first mark of the beginning", frames([mark_packet(p, 0, 0)] + sources[60:] + end), want[60:], 3
    yield "tail", "§15 rule 3: the rows of the tail and the end", frames(packets[-4:] + end), [], 3
    yield "backwards", "§15 rule 3: all packets, the last one first", frames((packets + end)[::-1]), [], 3
    yield "cut-front", "§15 rule 3: the first block is hit, and mended", frames(packets[3:] + end), want, 0
    other = source_packet(p._replace(id=0xBB), 5, b"foreign")
    yield "foreign", "§15 rule 1: a packet of another stream", frames(sources[:50] + [other] + sources[50:] + end), want, 3
    changed = [source_packet(p._replace(D=100), 5, b"other parameters"), source_packet(p, 3, b"a conflict")]
    yield "conflict", "§15 rules 1 and 2", frames(sources[:50] + changed + sources[50:] + end), want, 3
    # Frames of the same stream that stand in a payload are no packets.
    inner = frames([source_packet(p, i, b"false") for i in range(5)])[:64]
    nested = [source_packet(p, i, inner) for i in range(20)]
    yield "nested", "§16: frames inside a payload", frames(nested + [mark_packet(p, 20, 1)]), [(i, inner) for i in range(20)], 0
    # A long payload among many short ones: rows are cut short, and still rebuild the long payload when it is lost.
    q = p._replace(id=0xEE)
    mixed = [x[:64 if i == 130 else i % 7] for i, x in enumerate(payloads_of(dict(packet=64, packets=700, seed=8)))]
    some, last = send(q, 1, 2, mixed)
    yield "short", "§13.2: symbols that were cut", frames([x for i, x in enumerate(some) if i % 9 != 4 and x[5:6] + x[16:18] != b"\0\x82\0"] + last), list(enumerate(mixed)), 0
    # Rows far from the start, with row numbers that a sender reaches late.
    for profile, count, packet in ((BOUNDED, 400, 16), (CLASSIC, 200, 64)):
        q = p._replace(profile=profile, W=count, P=packet, id=0xCC)
        start = (1 << 62) // 50 * 50
        block = payloads_of(dict(packet=packet, packets=count, seed=5))
        symbols = {start + i: symbol_of(q, start + i, x) for i, x in enumerate(block)}
        rows = [repair_packet(q, Row(number, start, count, 0, row_symbol(q, number, start, count, 0, symbols))) for number in (0, 255, 1 << 32, (1 << 63) - 1, 123456789123)]
        some = [source_packet(q, start + i, x) for i, x in enumerate(block) if i not in (3, 50, 51, 199)]
        yield "far-%d" % profile, "§14: large numbers", frames(some + rows + [mark_packet(q, start + count, 1)]), [(start + i, x) for i, x in enumerate(block)], 3
    # A window has two tails from before it was full. The tails rebuild packets that the window's own rows are too few
    # for.
    q = p._replace(profile=BLOCKS, W=120, D=60, id=0xDD)
    block = payloads_of(dict(packet=64, packets=120, seed=6))
    symbols = {i: symbol_of(q, i, x) for i, x in enumerate(block)}
    rows = [repair_packet(q, Row(number, first, count, part, row_symbol(q, number, first, count, part, symbols)))
            for number, (first, count, part) in enumerate(((13, 20, 0), (13, 20, 7), (30, 60, 0), (0, 120, 0), (0, 120, 1), (0, 120, 3)))]
    at = {i: source_packet(q, i, x) for i, x in enumerate(block) if i not in (14, 32, 50, 100, 101, 103)}
    some = [at[i] for i in range(90) if i in at] + rows[:3] + [at[i] for i in range(90, 120) if i in at] + rows[3:]
    yield "tails", "§14.4: tails", frames(some + [mark_packet(q, 120, 1)]), list(enumerate(block)), 0


KEY = bytes(range(100, 132))


def sealed_cases():
    """Packets to be sealed: (name, key, authentication, time, counter, packet)."""
    p = Params(BOUNDED, 0x0123456789ABCDEF, 480, 32, 240)
    packets = dict(source=source_packet(p, 7, b"payload of a packet"), empty=source_packet(p, 8, b""), mark=mark_packet(p, 9, 1),
                   repair=repair_packet(p, Row(3, 240, 100, 0, bytes(range(38)))), long=source_packet(p._replace(P=1350), 1, generate(1350, 3)))
    for authentication in CIPHERS:
        for name, packet in packets.items():
            yield "%s-%d" % (name, authentication), KEY, authentication, 1_800_000_000, 5, packet
        yield "largest-%d" % authentication, bytes([255] * 32), authentication, (1 << 32) - 1, (1 << 64) - 1, packets["mark"]
        yield "zero-%d" % authentication, bytes(32), authentication, 0, 0, packets["mark"]
        yield "passphrase-%d" % authentication, passphrase_key("correct horse battery"), authentication, 1, 2, packets["source"]


def control_cases():
    """A call or report for each rule of §13.4: (name, rule, kind or None, packet)."""
    p = Params(BOUNDED, 0x0123456789ABCDEF, 480, 32, 240)
    report = Report(0x7766554433221100, 5, 6, 7, 8_000_000, 900, 10, 1_800_000_000_000_000, 11, 500, 480, 77, 450, 3, 12, 13, 14_000)
    top = (1 << 63) - 1

    def C(number=3, time=4_000_000, token=5, answers=(), **lie):
        return call_packet(p, Call(number, time, token, list(answers)), **lie)

    def R(**changes):
        lie = {name: changes.pop(name) for name in list(changes) if name not in Report._fields}
        return report_packet(p, report._replace(**changes), **lie)

    yield "call", "§13.4 a good call", None, C()
    yield "call-answers", "§13.4 four answers", None, C(answers=(1, 2, 3, MASK))
    yield "call-largest", "§13.4 the largest numbers", None, C(number=top, time=MASK, token=MASK)
    yield "report", "§13.4 a good report", None, R()
    yield "report-empty", "§13.4 nothing came yet", None, R(lacking=0, begin=0, heard=0, received=0, rows=0, oldest=0, lost=0, bursts=0, longest=0, delay=0)
    yield "report-largest", "§13.4 the largest numbers", None, R(
        receiver=top, token=MASK, challenge=MASK, number=MASK, time=MASK, held=(1 << 32) - 1, lacking=65536, clock=MASK, begin=0, heard=top,
        received=top, rows=top, oldest=top, lost=top, bursts=(1 << 32) - 1, longest=(1 << 32) - 1, delay=(1 << 32) - 1)
    yield "report-all-missing", "§13.4 nothing of it came", None, R(begin=500, heard=500, received=0, oldest=500, lost=500)
    for name, make in (("call", C), ("report", R)):
        good = make()
        yield name + "-magic", "§13.1 rule 1: magic", "magic", make(magic=MAGIC[:3] + b"q")
        yield name + "-version", "§13.1 rule 1: version", "version", make(version=2)
        yield name + "-sum", "§13.1 rule 1: checksum", "damaged", make(sum=1)
        yield name + "-body", "§13.1 rule 1: checksum", "damaged", good[:-1] + bytes([good[-1] ^ 1])
        yield name + "-authentication", "§13.1 rule 1: authentication", "authentication", make(auth=1)
        yield name + "-profile", "§13.1 rule 1: profile", "profile", make(profile=5)
        yield name + "-window", "§13.1 rule 2: W", "invalid", make(W=0)
        yield name + "-number", "§13.1 rule 3: number", "invalid", make(nr=1 << 63)
        yield name + "-short", "§13.4 ends there", "damaged", good[:-1]
        yield name + "-header", "§13.4 ends there", "damaged", make()[:36]
    yield "source-type", "§13.4 types 3 and 4", "type", source_packet(p, 7, b"payload")
    yield "mark-type", "§13.4 types 3 and 4", "type", mark_packet(p, 7, 0)
    yield "call-type", "§13.4 types 3 and 4", "type", C(type=5)
    yield "call-token", "§13.4 a token is not 0", "invalid", C(token=0)
    yield "call-answer", "§13.4 an answer is not 0", "invalid", C(answers=(1, 0))
    yield "call-five", "§13.4 four answers at most", "invalid", C(answers=(1, 2, 3, 4, 5))
    yield "call-fewer", "§13.4 ends there", "damaged", C(answers=(1, 2), count=3)
    yield "call-more", "§13.4 ends there", "damaged", C(answers=(1, 2), count=1)
    for name, changes in (
            ("token", dict(token=0)), ("challenge", dict(challenge=0)), ("heard", dict(heard=1 << 63)), ("rows", dict(rows=1 << 63)),
            ("begin", dict(begin=501)), ("oldest-before", dict(oldest=10)), ("oldest-behind", dict(oldest=501)),
            ("received", dict(received=490)), ("lost", dict(lost=501)), ("lacking", dict(lacking=65537))):
        yield "report-" + name, "§13.4 the bounds of the fields", "invalid", R(**changes)


def control_vector(case):
    name, rule, kind, packet = case
    vector = dict(name=name, rule=rule, error=kind, packet=packet.hex())
    if kind is None:
        content = parse_control(packet)[1]
        # Numbers above 2^53 are no numbers in every reader of JSON.
        strings = {field: [str(x) for x in value] if isinstance(value, list) else str(value) for field, value in content._asdict().items()}
        vector["content"] = strings
        vector["sealed"] = [dict(authentication=a, time=1_800_000_000, counter=5, bytes=seal(KEY, a, packet, 1_800_000_000, 5).hex()) for a in CIPHERS]
    return vector


def sealed_vector(case):
    name, key, authentication, time, counter, packet = case
    return dict(name=name, key=key.hex(), authentication=authentication, time=time, counter=counter, packet=packet.hex(), sealed=seal(key, authentication, packet, time, counter).hex())


def sealed_file_cases():
    """Sealed streams, with attacks by somebody without the key, which is KEY. Cases are those of file_cases."""
    p = Params(BOUNDED, 0x5EA1ED, 60, 40, 15)
    payloads = payloads_of(dict(packet=40, packets=90, seed=9))
    packets, end = send(p, 1, 3, payloads)
    want = list(enumerate(payloads))
    for authentication in CIPHERS:
        sealed = [seal(KEY, authentication, x, 1_800_000_000 + i // 50, i) for i, x in enumerate(packets + end)]
        n = "-%d" % authentication
        yield "sealed" + n, "§13.3: sealed", frames(sealed), want, 0
        yield "sealed-end-first" + n, "§13.3, §15 rule 3: whoever has no key can move the end to the front", frames(sealed[-3:] + sealed[:-3]), want, 0
        yield "sealed-end-only" + n, "§13.3, §15 rule 3: nothing but an end", frames(sealed[-3:]), [], 3
        kept = [x for i, x in enumerate(sealed) if i % 8 != 3 or i > len(packets) - 9]
        yield "sealed-lost" + n, "§13.3: sealed, with losses", frames(kept), want, 0
        # No packet counts that somebody without the key can make.
        at = lambda x, i: x[:i] + bytes([x[i] ^ 1]) + x[i + 1:]
        forged = [at(sealed[20 + i], i) for i in range(60)] + [at(sealed[30], i) for i in range(60, len(sealed[30]))]
        forged += [mark_packet(p, 3, 1), source_packet(p, 5, b"unsealed"), source_packet(p, 95, b"unsealed"), packets[4], end[0]]
        forged += [seal(bytes(32), authentication, x, 1_800_000_000, 500 + i) for i, x in enumerate(packets[:9] + [mark_packet(p, 3, 1)])]
        forged += [seal(KEY, 3 - authentication, x, 1_800_000_000, 600 + i)[:6] + bytes([authentication]) + seal(KEY, 3 - authentication, x, 1_800_000_000, 600 + i)[7:] for i, x in enumerate(packets[:3])]
        forged += [x[:-1] for x in sealed[40:50]] + [x + b"\0" for x in sealed[50:60]] + [sealed[i][:44] + sealed[i + 1][44:] for i in range(5)]
        mixed = sealed[:10] + [x for i, y in enumerate(sealed[10:-3]) for x in ([y] + forged[i::len(sealed) - 13] + ([sealed[i]] if i % 3 == 0 else []))] + sealed[-3:]
        yield "sealed-attacked" + n, "§13.3: forged, changed, cut, repeated, not sealed", frames(forged + mixed), want, 0


def write_json(name, items):
    store(name, ("[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]\n").encode())


def file_vector(case):
    name, rule, data, want, code = case
    return dict(name=name, rule=rule, path="stream/%s.fecs" % name, packets=len(want), payload_len=sum(len(x) for _, x in want),
                payload_sha256=sha(b"".join(x for _, x in want)), exit=code)


def golden(folder):
    encodings = [encode_vector(v) for v in encode_cases()]
    write_json(os.path.join(folder, "stream.json"), encodings)
    packets = [dict(name=name, rule=rule, error=kind, packet=packet.hex()) for name, rule, kind, packet in packet_cases()]
    assert len({v["name"] for v in packets}) == len(packets)
    write_json(os.path.join(folder, "stream-packets.json"), packets)
    files = []
    for case in file_cases():
        store(os.path.join(folder, "stream", case[0] + ".fecs"), case[2])
        files.append(file_vector(case))
    store(os.path.join(folder, "stream", "sealed.key"), KEY)
    for case in sealed_file_cases():
        store(os.path.join(folder, "stream", case[0] + ".fecs"), case[2])
        files.append(dict(file_vector(case), key="stream/sealed.key"))
    write_json(os.path.join(folder, "stream-files.json"), files)
    write_json(os.path.join(folder, "stream-sealed.json"), [sealed_vector(case) for case in sealed_cases()])
    write_json(os.path.join(folder, "stream-reports.json"), [control_vector(case) for case in control_cases()])
    print("%d encodings, %d packets, %d framed streams" % (len(encodings), len(packets), len(files)))
    return 0


def check(folder):
    bad = 0

    def expect(good, what):
        nonlocal bad
        if not good:
            bad += 1
            print(what)

    def read(name):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return json.load(f)

    for v, stored in zip(encode_cases(), read("stream.json")):
        expect(encode_vector(v) == stored, v["name"] + ": differs")
    for v in read("stream-packets.json"):
        try:
            parse(bytes.fromhex(v["packet"]))
            kind = None
        except Bad as error:
            kind = error.kind
        expect(kind == v["error"], "%s: %s instead of %s" % (v["name"], kind, v["error"]))
    for case, v in zip(control_cases(), read("stream-reports.json")):
        try:
            parse_control(bytes.fromhex(v["packet"]))
            kind = None
        except Bad as error:
            kind = error.kind
        expect(kind == v["error"], "%s: %s instead of %s" % (v["name"], kind, v["error"]))
        expect(control_vector(case) == v, v["name"] + ": differs")
    for case, v in zip(sealed_cases(), read("stream-sealed.json")):
        expect(sealed_vector(case) == v, v["name"] + ": differs")
    for v in read("stream-files.json"):
        with open(os.path.join(folder, v["path"]), "rb") as f:
            packets = deframe(f.read())
        if "key" in v:
            packets = unseal_all(KEY, packets)
        received = receive(packets)
        got = b"".join(received.payloads[i] for i in sorted(received.payloads))
        expect(len(received.payloads) == v["packets"] and sha(got) == v["payload_sha256"], v["name"] + ": other payload")
        expect(v["exit"] == (0 if received.is_whole else 3), v["name"] + ": whole or not")
    print("%d BAD" % bad if bad else "all good")
    return 1 if bad else 0
