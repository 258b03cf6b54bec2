"""§13: packets, sealed ones too."""
import hashlib
import hmac
import struct
from collections import namedtuple

from ..aead import aes_256_gcm, chacha20_poly1305
from ..basics import ceil_div
from ..hashes import crc32c

MAGIC = bytes.fromhex("89666570")
SOURCE, REPAIR, MARK, CALL, REPORT = 0, 1, 2, 3, 4
BOUNDED, CLASSIC, CLASSIC_BLOCKS, BLOCKS = 1, 2, 3, 4
PROFILES = {"bounded": BOUNDED, "classic": CLASSIC, "classic-blocks": CLASSIC_BLOCKS, "blocks": BLOCKS}
MASK = (1 << 64) - 1
Params = namedtuple("Params", "profile id W P D")
Row = namedtuple("Row", "number first count part symbol")
Call = namedtuple("Call", "number time token answers")
Report = namedtuple(
    "Report",
    "receiver token challenge number time held lacking clock begin heard received rows oldest lost bursts longest delay")


class Bad(Exception):
    """A packet that is dropped; kind is the rule's class."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def header(p, kind, number, body, **lie):
    """A header of 36 bytes; `lie` sets fields to wrong values. The checksum is right unless `lie` names it."""
    f = dict(magic=MAGIC, version=1, type=kind, auth=0, profile=p.profile, id=p.id, number=number, W=p.W, P=p.P, D=p.D)
    f.update({{"nr": "number"}.get(k, k): v for k, v in lie.items() if k != "sum"})
    head = f["magic"] + struct.pack("<BBBBQQIHH", f["version"], f["type"], f["auth"], f["profile"], f["id"], f["number"], f["W"], f["P"], f["D"])
    value = crc32c(head + bytes(4) + (b"" if f["type"] == SOURCE else body))
    return head + struct.pack("<I", value ^ lie.get("sum", 0))


def payload_sum(stream_id, seq, payload):
    return crc32c(struct.pack("<QQH", stream_id, seq, len(payload)) + payload)


def source_packet(p, seq, payload, **lie):
    body = short_symbol(p, seq, payload)
    return header(p, SOURCE, seq, body, **lie) + body


def short_symbol(p, seq, payload):
    return struct.pack("<IH", payload_sum(p.id, seq, payload), len(payload)) + payload


def symbol_of(p, seq, payload):
    return short_symbol(p, seq, payload).ljust(p.P + 6, b"\0")


def repair_packet(p, row, **lie):
    body = struct.pack("<QII", row.first, row.count, row.part) + row.symbol
    return header(p, REPAIR, row.number, body, **lie) + body


def mark_packet(p, sent, flags, **lie):
    body = struct.pack("<I", flags)
    return header(p, MARK, sent, body, **lie) + body


def open_symbol(p, seq, symbol):
    """The payload of a symbol that was rebuilt, or None."""
    value, size = struct.unpack_from("<IH", symbol)
    payload = symbol[6:6 + size]
    return payload if size <= p.P and not any(symbol[6 + size:]) and value == payload_sum(p.id, seq, payload) else None


def parse_header(packet, kinds):
    """(Params, type, number, body) of a packet of these types, by the rules of §13.1 in their order."""
    if packet[:4] != MAGIC:
        raise Bad("magic", "magic")
    if len(packet) < 36:
        raise Bad("damaged", "shorter than a header")
    version, kind, auth, profile, stream_id, number, W, P, D, value = struct.unpack_from("<BBBBQQIHHI", packet, 4)
    body = packet[36:]
    if version != 1:
        raise Bad("version", "version")
    if kind not in kinds:
        raise Bad("type", "type")
    if auth:
        raise Bad("authentication", "authentication")
    if value != crc32c(packet[:32] + bytes(4) + (b"" if kind == SOURCE else body)):
        raise Bad("damaged", "checksum")
    if profile not in PROFILES.values():
        raise Bad("profile", "profile")
    if P < 16 or not 1 <= W <= 65536 or D < 1:
        raise Bad("invalid", "parameters")
    if not {BOUNDED: D <= ceil_div(W, 2) and (D >= 48 or ceil_div(W, D) <= 8), CLASSIC_BLOCKS: D <= W, BLOCKS: D <= 255}[profile if profile > 2 else BOUNDED]:
        raise Bad("invalid", "block")
    if number >= 1 << 63:
        raise Bad("invalid", "number")
    return Params(profile, stream_id, W, P, D), kind, number, body


def parse(packet):
    """(Params, type, number, contents of the body) of a packet of a stream."""
    p, kind, number, body = parse_header(packet, (SOURCE, REPAIR, MARK))
    profile, stream_id, W, P, D = p
    if kind == SOURCE:
        if len(body) < 6 or len(body) != struct.unpack_from("<H", body, 4)[0] + 6:
            raise Bad("damaged", "length")
        payload = body[6:]
        if struct.unpack_from("<I", body)[0] != payload_sum(stream_id, number, payload):
            raise Bad("damaged", "payload checksum")
        if len(payload) > P:
            raise Bad("invalid", "payload length")
        return p, kind, number, payload
    if kind == MARK:
        if len(body) != 4:
            raise Bad("damaged", "length")
        flags = struct.unpack("<I", body)[0]
        if flags > 1:
            raise Bad("invalid", "flags")
        return p, kind, number, flags
    if not 16 + 6 <= len(body) <= 16 + 6 + P:
        raise Bad("damaged", "length")
    first, count, part = struct.unpack_from("<QII", body)
    if not 1 <= count <= W or first + count >= 1 << 63:
        raise Bad("invalid", "range")
    if profile == BLOCKS:
        s = ceil_div(count, D)
        fits = (first % W == 0 or s == 1) and part // s + ceil_div(count, s) < 256
    else:
        fits = first % D == 0 and part == 0 and (profile != CLASSIC_BLOCKS or count <= D)
    if not fits:
        raise Bad("invalid", "row")
    return p, kind, number, Row(number, first, count, part, body[16:])


def call_packet(p, call, **lie):
    body = struct.pack("<QQI", call.time, call.token, lie.pop("count", len(call.answers)))
    body += b"".join(struct.pack("<Q", answer) for answer in call.answers)
    return header(p, CALL, call.number, body, **lie) + body


def report_packet(p, report, **lie):
    body = struct.pack("<QQQQIIQQQQQQQIII", *report[1:])
    return header(p, REPORT, report.receiver, body, **lie) + body


def parse_control(packet):
    """(Params, a call or a report), by §13.4."""
    p, kind, number, body = parse_header(packet, (CALL, REPORT))
    if kind == CALL:
        if len(body) < 20:
            raise Bad("damaged", "length")
        time, token, count = struct.unpack_from("<QQI", body)
        if count > 4:
            raise Bad("invalid", "answers")
        if len(body) != 20 + 8 * count:
            raise Bad("damaged", "length")
        answers = struct.unpack_from("<%dQ" % count, body, 20)
        if token == 0 or 0 in answers:
            raise Bad("invalid", "zero")
        return p, Call(number, time, token, list(answers))
    if len(body) != 108:
        raise Bad("damaged", "length")
    r = Report(number, *struct.unpack("<QQQQIIQQQQQQQIII", body))
    if r.token == 0 or r.challenge == 0 or max(r.heard, r.rows) >= 1 << 63 or not r.begin <= r.oldest <= r.heard:
        raise Bad("invalid", "numbers")
    if r.received > r.heard - r.begin or r.lost > r.heard or r.lacking > 65536:
        raise Bad("invalid", "counts")
    return p, r


CIPHERS = {1: aes_256_gcm, 2: chacha20_poly1305}


def stream_key(key, authentication, stream_id):
    """HKDF-SHA256 (RFC 5869): one block is enough."""
    pseudorandom = hmac.new(b"fec live stream", key, hashlib.sha256).digest()
    info = b"fec stream 1, sender to receivers" + struct.pack("<BQ", authentication, stream_id)
    return hmac.new(pseudorandom, info + b"\1", hashlib.sha256).digest()


def report_key(key, authentication, stream_id, receiver):
    pseudorandom = hmac.new(b"fec live stream", key, hashlib.sha256).digest()
    info = b"fec stream 1, receiver to sender" + struct.pack("<BQQ", authentication, stream_id, receiver)
    return hmac.new(pseudorandom, info + b"\1", hashlib.sha256).digest()


def packet_key(key, authentication, packet):
    stream_id, number = struct.unpack_from("<QQ", packet, 8)
    if packet[5] == REPORT:
        return report_key(key, authentication, stream_id, number)
    return stream_key(key, authentication, stream_id)


def seal(key, authentication, packet, time, counter):
    head = packet[:6] + bytes([authentication]) + packet[7:32] + struct.pack("<IQ", time, counter)
    out, tag = CIPHERS[authentication](packet_key(key, authentication, packet), head[32:], head, packet[36:])
    return head + out + tag


def unseal(key, sealed, seen):
    """The packet in a sealed one, or None; `seen` holds the streams and counters that came before."""
    if sealed[:4] != MAGIC or len(sealed) < 60 or sealed[4] != 1 or sealed[5] > 4 or sealed[6] not in CIPHERS:
        return None
    head, body, tag = sealed[:44], sealed[44:-16], sealed[-16:]
    stream_id, counter = struct.unpack_from("<Q", head, 8)[0], struct.unpack_from("<Q", head, 36)[0]
    out, expected = CIPHERS[head[6]](packet_key(key, head[6], head), head[32:], head, body, True)
    if tag != expected or (stream_id, counter) in seen:
        return None
    seen.add((stream_id, counter))
    plain = head[:6] + b"\0" + head[7:32]
    return plain + struct.pack("<I", crc32c(plain + bytes(4) + (b"" if plain[5] == SOURCE else out))) + out


def unseal_all(key, packets):
    seen = set()
    return [x for x in (unseal(key, packet, seen) for packet in packets) if x is not None]


def passphrase_key(passphrase):
    return hashlib.scrypt(passphrase.encode(), salt=b"fec stream passphrase 1", n=1 << 16, r=8, p=1, dklen=32, maxmem=1 << 28)
