"""§16: the framed byte stream."""

DELIMITER = b"\xFE\xFD"
FIRST, LATER = 252, 64008


def stuff(packet):
    out, rest, most = b"", packet + DELIMITER, FIRST
    while rest:
        at = rest.find(DELIMITER)
        run = min(at if at >= 0 else len(rest), most)
        out += bytes([run % 253]) + (bytes([run // 253]) if most == LATER else b"") + rest[:run]
        rest = rest[run + 2 if run < most else run:]
        most = LATER
    return out


def unstuff(frame):
    out, at, most = b"", 0, FIRST
    while at < len(frame):
        digits = frame[at:at + (1 if most == FIRST else 2)]
        run = sum(digit * 253 ** i for i, digit in enumerate(digits))
        at += len(digits) + run
        if max(digits) > 252 or len(digits) != (1 if most == FIRST else 2) or run > most or at > len(frame):
            return None
        out += frame[at - run:at] + (DELIMITER if run < most else b"")
        last, most = run < most, LATER
    return out[:-2] if frame and last else None


def frames(packets):
    return DELIMITER + b"".join(stuff(packet) + DELIMITER for packet in packets)


def deframe(data):
    """The packets between delimiters; bytes that are no frame are left out."""
    return [x for x in (unstuff(piece) for piece in data.split(DELIMITER)[:-1] if piece) if x is not None]
