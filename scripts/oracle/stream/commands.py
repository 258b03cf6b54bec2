"""The second implementation of live streams, written from sections 13 to 16 of docs/FORMAT.md alone ("§" refers to that
file).

    oracle stream selftest
    oracle stream encode [--key-file KEY] [--profile NAME] [--window W] [--block D] [--packet P] [--rate R/S]
                         [--stream-id HEX] -o OUT FILE
    oracle stream decode [--key-file KEY] -o OUT FILE        a framed byte stream; gaps are left out
    oracle stream verify FILE               recomputes every repair packet of a framed byte stream
    oracle stream golden DIR                writes the test vectors (the same bytes on each run)
    oracle stream check DIR                 reads them all again

Exit codes: 0 ok, 2 usage, 3 the stream is not whole, 4 I/O, 5 a packet is not what the specification says. Python 3.9,
nothing else; plain and slow on purpose.
"""
import argparse
import hashlib
import hmac
import random
import sys

from ..aead import selftest as test_aead
from ..basics import generate, store
from .frames import DELIMITER, LATER, deframe, frames, stuff, unstuff
from .packets import BOUNDED, PROFILES, REPAIR, SOURCE, Bad, Params, mark_packet, parse, seal, symbol_of, unseal_all
from .receiver import receive
from .rows import Draws, added, coefficients, e, g, group, row_symbol, strata, tap_columns
from .sender import send
from .vectors import check, golden


def test_taps():
    """Strata ascend, groups divide a block, taps stay in their stratum and rows in their window: §14.2."""
    for m in [*range(1, 4097), *range(4097, 65537, 64), 65535, 65536]:
        ends = strata(m)
        assert all(n < f for n, f in zip([0] + ends, ends)) and ends[-1:] == [m][:m // 2] and len(ends) <= 22, m
    assert [len(strata(m)) for m in (1, 2, 3, 4, 5, 6, 39, 40, 65536)] == [0, 2, 2, 4, 4, 5, 21, 22, 22]
    for D in range(1, 256):
        start, s = 5 * D, D // 4
        groups = {tuple(group(start + o, D)) for o in range(4 * s)}
        assert sorted(x for four in groups for x in four) == list(range(start, start + 4 * s)) and len(groups) == s
        assert all(o in {x - start for x in group(start + o, D)} for o in range(4 * s)) and not any(group(start + o, D) for o in range(4 * s, D))
    rng = random.Random(2)
    incomplete = complete = 0
    for number in range(400):
        D = rng.choice((1, 3, 4, 5, 7, 50, 98, 240))
        m, F = rng.randrange(1, rng.choice((8, 100, 1000, 8000))), D * rng.choice((0, 1, 1000, (1 << 62) // D))
        ends = strata(m)
        for c, n, f in zip(tap_columns(Draws(number), number, F, m), [0] + ends, ends):
            assert F + m - f <= c < F + m - n
            columns = added(c, D, F + m)
            assert all(F <= x < F + m and x // D == c // D for x in columns)
            assert len(columns) == 3 and c not in columns or columns == [c]
            complete += len(columns) == 3
            incomplete += columns == [c]
        row = coefficients(Params(BOUNDED, 0, 65536, 16, D), number, F, m)
        assert sorted(row) == list(range(F, F + m)) and all(0 <= x < 256 for x in row.values())
    assert complete > 1000 and incomplete > 1000


def selftest():
    assert Draws(1234567).draw() == 6457827717110365317
    assert all(e(g(n)) == n for n in range(1, 70000))
    test_taps()
    test_aead()
    # RFC 5869, test case 1, by the same steps.
    pseudorandom = hmac.new(bytes(range(13)), b"\x0b" * 22, hashlib.sha256).digest()
    assert hmac.new(pseudorandom, bytes(range(0xF0, 0xFA)) + b"\1", hashlib.sha256).hexdigest()[:16] == "3cb25f25faacd57a"
    rng = random.Random(1)
    for size in (0, 1, 2, 251, 252, 253, 254, 255, 64259, 64260, 64261, 64262, 65600):
        for data in (bytes(size), b"\xFE" * size, b"\xFD" * size, (DELIMITER * size)[:size], bytes(rng.choice(b"\xFE\xFD\x00") for _ in range(size))):
            frame = stuff(data)
            assert DELIMITER not in frame and unstuff(frame) == data and len(frame) <= size + 1 + 2 * (size // LATER + 2)
    assert stuff(bytes.fromhex("11FEFD22")).hex() == "011101" + "0022"
    for profile in PROFILES.values():
        p = Params(profile, 5, 60, 20, 30)
        payloads = [generate(i % 21, i) for i in range(180)]
        packets, end = send(p, 1, 3, payloads)
        assert all(parse(x)[0] == p for x in packets + end)
        lost = [x for i, x in enumerate(packets) if i % 11 != 5]
        got = receive(deframe(frames(lost + end)))
        assert got.payloads == dict(enumerate(payloads)) and got.end == 180 and not got.dropped and got.is_whole, profile
    print("ok")
    return 0


def verify(packets):
    """Recomputes every repair packet from the source packets."""
    p, symbols, rows, wrong, seen = None, {}, [], 0, set()
    for packet in packets:
        p, kind, number, what = parse(packet)
        if kind == SOURCE:
            symbols[number] = symbol_of(p, number, what)
        elif kind == REPAIR:
            rows.append(what)
    for row in rows:
        whole = row_symbol(p, row.number, row.first, row.count, row.part, symbols)
        wrong += row.number in seen or row.symbol.ljust(len(whole), b"\0") != whole
        seen.add(row.number)
    print("%d source packets, %d repair packets, %d wrong" % (len(symbols), len(rows), wrong))
    return 5 if wrong else 0


def main():
    top = argparse.ArgumentParser(description="second implementation of the live streams of fec")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    enc = commands.add_parser("encode")
    enc.add_argument("--profile", choices=PROFILES, default="bounded")
    for name, value in (("window", 6000), ("block", 240), ("packet", 1350)):
        enc.add_argument("--" + name, type=int, default=value)
    enc.add_argument("--rate", default="1/6")
    enc.add_argument("--stream-id", default="1")
    dec = commands.add_parser("decode")
    for one in (enc, dec):
        one.add_argument("-o", required=True)
        one.add_argument("--key-file")
        one.add_argument("file")
    commands.add_parser("verify").add_argument("file")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return {"golden": golden, "check": check}[args.command](args.folder)
    with open(args.file, "rb") as f:
        data = f.read()
    key = None
    if getattr(args, "key_file", None):
        with open(args.key_file, "rb") as f:
            key = f.read()
    try:
        if args.command == "verify":
            return verify(deframe(data))
        if args.command == "encode":
            p = Params(PROFILES[args.profile], int(args.stream_id, 16), args.window, args.packet, args.block)
            parse(mark_packet(p, 0, 0))
            repair, source = map(int, args.rate.split("/"))
            packets, end = send(p, repair, source, [data[i:i + p.P] for i in range(0, len(data), p.P)])
            packets += end
            if key:
                packets = [seal(key, 1 + i % 2, x, 0, i) for i, x in enumerate(packets)]
            store(args.o, frames(packets))
            return 0
    except Bad as bad:
        print(bad, file=sys.stderr)
        return 5
    packets = deframe(data)
    if key:
        packets = unseal_all(key, packets)
    received = receive(packets)
    store(args.o, b"".join(received.payloads[i] for i in sorted(received.payloads)))
    print("%d packets from %s on, end %s, dropped %s" % (len(received.payloads), received.start, received.end, received.dropped), file=sys.stderr)
    return 0 if received.is_whole else 3
