"""The part of age's format (age-encryption.org/v1) that sealed payloads need: X25519 and scrypt."""
import base64
import hashlib
import hmac

from ..aead import aes_256_gcm, chacha20_poly1305
from ..basics import Fault

CHUNK, TAG = 65536, 16
AES, CHACHA = 1, 2
CIPHERS = {AES: aes_256_gcm, CHACHA: chacha20_poly1305}
MAX_SEAL, MAX_LOG_N = 65000, 22


def hkdf(secret, salt, info):
    """RFC 5869, 32 bytes"""
    extracted = hmac.digest(salt or bytes(32), secret, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")


def lock_up(aead, key, nonce, associated, plain):
    return b"".join(aead(key, nonce, associated, plain))


def unlock(aead, key, nonce, associated, sealed, what):
    if len(sealed) < TAG:
        raise Fault("invalid", what + " is too short")
    plain, tag = aead(key, nonce, associated, sealed[:-TAG], True)
    if not hmac.compare_digest(tag, sealed[-TAG:]):
        raise Fault("invalid", what + " is not authentic")
    return plain


P25519 = 2**255 - 19


def x25519(scalar, u):
    k = int.from_bytes(scalar, "little") & (1 << 254) - 8 | 1 << 254
    x1 = int.from_bytes(u, "little") & (1 << 255) - 1
    x2, z2, x3, z3 = 1, 0, x1, 1
    for bit in range(254, -1, -1):
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a, c * b, a * a, b * b
        e = aa - bb
        x3, z3 = pow(da + cb, 2, P25519), x1 * pow(da - cb, 2, P25519) % P25519
        x2, z2 = aa * bb % P25519, e * (aa + 121665 * e) % P25519
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, P25519 - 2, P25519) % P25519).to_bytes(32, "little")


BASE_POINT = bytes([9]) + bytes(31)
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def bech32_check(prefix, values):
    check = 1
    for value in [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + values:
        top, check = check >> 25, (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> bit & 1 else 0
    return check


def bech32(prefix, data):
    bits = "".join("{:08b}".format(b) for b in data)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[i:i + 5], 2) for i in range(0, len(bits), 5)]
    check = bech32_check(prefix, values + [0] * 6) ^ 1
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return prefix + "1" + "".join(BECH32[v] for v in values)


def from_bech32(text, prefix):
    text = text.lower()
    start, _, rest = text.rpartition("1")
    values = [BECH32.index(c) for c in rest]
    if start != prefix or bech32_check(prefix, values) != 1:
        raise Fault("invalid", "not a key: " + text)
    bits = "".join("{:05b}".format(v) for v in values[:-6])
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits) - 7, 8))


def identity_text(secret):
    return bech32("age-secret-key-", secret).upper()


def recipient_text(secret):
    return bech32("age", x25519(secret, BASE_POINT))


def b64(data):
    return base64.b64encode(data).rstrip(b"=")


def unb64(text, size=None):
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise Fault("invalid", "age: base64")
    if b64(data) != text or size not in (None, len(data)):
        raise Fault("invalid", "age: base64, or a length")
    return data


def age_file(plain, stanzas, file_key, nonce, version=b"v1", mac=None):
    """An age file with `plain` in one chunk; stanzas: (arguments, body)."""
    head = b"age-encryption.org/" + version + b"\n"
    for arguments, body in stanzas:
        text = b64(body)
        # the last line is shorter than 64, perhaps empty
        lines = [text[i:i + 64] for i in range(0, len(text) + 1, 64)]
        head += b"-> " + b" ".join(arguments) + b"\n" + b"\n".join(lines) + b"\n"
    head += b"---"
    made = hmac.digest(hkdf(file_key, b"", b"header"), head, "sha256") if mac is None else mac
    chunk = lock_up(chacha20_poly1305, hkdf(file_key, nonce, b"payload"), bytes(11) + b"\1", b"", plain)
    return head + b" " + b64(made) + b"\n" + nonce + chunk


def for_x25519(file_key, public, ephemeral):
    share = x25519(ephemeral, BASE_POINT)
    key = hkdf(x25519(ephemeral, public), share + public, b"age-encryption.org/v1/X25519")
    return [b"X25519", b64(share)], lock_up(chacha20_poly1305, key, bytes(12), b"", file_key)


def scrypt(passphrase, salt, log_n):
    return hashlib.scrypt(passphrase, salt=b"age-encryption.org/v1/scrypt" + salt, n=1 << log_n, r=8, p=1, maxmem=(1 << 31) - 1, dklen=32)


def for_passphrase(file_key, passphrase, salt, log_n):
    key = scrypt(passphrase, salt, log_n)
    return [b"scrypt", b64(salt), b"%d" % log_n], lock_up(chacha20_poly1305, key, bytes(12), b"", file_key)


def open_age(data, secrets=(), passphrase=None):
    """The plaintext of a small age file, for X25519 secrets or a passphrase."""
    lines, at = [], 0
    while True:
        end = data.find(b"\n", at)
        if end < 0:
            raise Fault("invalid", "age: the header does not end")
        lines.append(data[at:end])
        at = end + 1
        if lines[-1].startswith(b"---"):
            break
    if lines[0] != b"age-encryption.org/v1":
        raise Fault("invalid", "age: version")
    stanzas = []
    for line in lines[1:-1]:
        if line.startswith(b"-> "):
            if stanzas and not stanzas[-1][2]:
                raise Fault("invalid", "age: the body of a stanza does not end")
            stanzas.append([line[3:].split(b" "), b"", False])
        elif not stanzas or stanzas[-1][2] or len(line) > 64:
            raise Fault("invalid", "age: a line that is of no stanza")
        else:
            stanzas[-1][1] += line
            stanzas[-1][2] = len(line) < 64
    kinds = [arguments[0] for arguments, _, _ in stanzas]
    if not stanzas or not stanzas[-1][2] or b"scrypt" in kinds and len(kinds) > 1:
        raise Fault("invalid", "age: the stanzas")
    file_key = None
    for arguments, body, _ in stanzas:
        body = unb64(body)
        if arguments[0] == b"scrypt" and passphrase is not None:
            salt, log_n = unb64(arguments[1], 16), int(arguments[2])
            if log_n > MAX_LOG_N:
                raise Fault("refused", "§20.2: work factor")
            file_key = unlock(chacha20_poly1305, scrypt(passphrase, salt, log_n), bytes(12), b"", body, "age: the file key")
        if arguments[0] == b"X25519":
            share = unb64(arguments[1], 32)
            if len(body) != 32:
                raise Fault("invalid", "age: length of a file key")
            for secret in secrets:
                shared = x25519(secret, share)
                key = hkdf(shared, share + x25519(secret, BASE_POINT), b"age-encryption.org/v1/X25519")
                opened, tag = chacha20_poly1305(key, bytes(12), b"", body[:16], True)
                if tag == body[16:] and any(shared):
                    file_key = opened
    if file_key is None:
        raise Fault("invalid", "age: no key fits")
    head = data[:at - len(lines[-1]) - 1] + b"---"
    if unb64(lines[-1][4:], 32) != hmac.digest(hkdf(file_key, b"", b"header"), head, "sha256") or lines[-1][:4] != b"--- ":
        raise Fault("invalid", "age: the header is not authentic")
    nonce, body = data[at:at + 16], data[at + 16:]
    if len(nonce) < 16 or len(body) > CHUNK + TAG:
        raise Fault("invalid", "age: the payload of a seal has one chunk")
    return unlock(chacha20_poly1305, hkdf(file_key, nonce, b"payload"), bytes(11) + b"\1", b"", body, "age: the payload")
