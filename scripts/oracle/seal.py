"""The second implementation of sealed payloads, written from docs/FORMAT.md, section 20 ("§" refers to it), and of as much of age's
format (age-encryption.org/v1) as that needs: X25519 and scrypt.

    oracle seal selftest
    oracle seal encode --form shards|container -k K -m M [--set-size N] [--name NAME] [--cipher 1|2]
                          (--identity FILE | --passphrase TEXT) -o OUT FILE       sealed for this identity
    oracle seal decode [--root HEX] (--identity FILE | --passphrase TEXT) -o OUT PATH…
    oracle seal restore --root HEX (--identity FILE | --passphrase TEXT) -o OUT FOLDER…    of folders that stores keep objects in
    oracle seal golden DIR                   writes sealed.json and sealed/ (the same bytes on each run)
    oracle seal check DIR                    reads them again

Exit codes as of encodings. Needs Python 3.9 and nothing else; plain and slow on purpose.
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import struct
import sys
from collections import namedtuple

from . import encoding, stores
from .aead import aes_256_gcm, chacha20_poly1305, selftest as test_aead
from .encoding import Fault

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


# ---------------------------------------------------------------- X25519 (RFC 7748) and Bech32 (BIP 173)

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


# ---------------------------------------------------------------- age

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
    """stanzas: (arguments, body); plain goes into one chunk."""
    head = b"age-encryption.org/" + version + b"\n"
    for arguments, body in stanzas:
        text = b64(body)
        lines = [text[i:i + 64] for i in range(0, len(text) + 1, 64)]       # the last line is shorter than 64, perhaps empty
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


# ---------------------------------------------------------------- §20.2 the seal

Seal = namedtuple("Seal", "cipher content age private public data")


def parse_seal(data):
    if len(data) > MAX_SEAL:
        raise Fault("invalid", "§20.2: longer than 65,000 bytes")
    if len(data) < 8:
        raise Fault("invalid", "§20.2: cut short")
    version, cipher, content, zero, size = struct.unpack_from("<BBBBI", data)
    if version > 1 or version == 1 and cipher > 2 or version == 1 and 1 <= cipher <= 2 and content > 1:
        raise Fault("refused", "§20.2: version, cipher or kind")
    if version == 0 or cipher == 0 or zero:
        raise Fault("invalid", "§20.2: version 0, cipher 0, or a byte that is not zero")
    private = data[8 + size:]
    if 8 + size > len(data) or len(private) < 256 + TAG or (len(private) - TAG) % 256:
        raise Fault("invalid", "§20.2: lengths")
    return Seal(cipher, content, data[8:8 + size], private, data[:8 + size], data)


def key_of(content_key, cipher, info):
    return hkdf(content_key, b"fec sealed payload", info + bytes([cipher]))


def private_key(content_key, cipher):
    return key_of(content_key, cipher, b"fec seal 1, private part")


def chunk_key(content_key, cipher):
    return key_of(content_key, cipher, b"fec seal 1, chunks")


def make_private(meta):
    text = struct.pack("<H", len(meta)) + meta
    return text + bytes(-len(text) % 256)


def make_seal(content_key, cipher, age, meta=b"", private=None, content=0, **front):
    """front: fields that lie"""
    field = dict(dict(version=1, said_cipher=cipher, content=content, zero=0, size=len(age)), **front)
    public = struct.pack("<BBBBI", field["version"], field["said_cipher"], field["content"], field["zero"], field["size"]) + age
    private = make_private(meta) if private is None else private
    return public + lock_up(CIPHERS[cipher], private_key(content_key, cipher), bytes(12), public, private)


def open_private(seal, content_key):
    """The meta bytes in the private part."""
    if len(content_key) != 32:
        raise Fault("invalid", "§20.3: the content key has another length than 32 bytes")
    text = unlock(CIPHERS[seal.cipher], private_key(content_key, seal.cipher), bytes(12), seal.public, seal.private, "§20.2: the private part")
    size = struct.unpack_from("<H", text)[0]
    if make_private(text[2:2 + size]) != text:
        raise Fault("invalid", "§20.2: the private part is not padded as it has to be")
    encoding.check_meta(text[2:2 + size])
    return text[2:2 + size]


# ---------------------------------------------------------------- §20.1 chunks

def nonce_of(number, is_last):
    return struct.pack("<QI", number, 0)[:11] + bytes([is_last])


def seal_payload(content_key, cipher, seal, plain):
    key, associated = chunk_key(content_key, cipher), hashlib.sha256(seal).digest()
    starts = range(0, len(plain), CHUNK) or [0]
    return b"".join(lock_up(CIPHERS[cipher], key, nonce_of(i, start + CHUNK >= len(plain)), associated, plain[start:start + CHUNK])
                    for i, start in enumerate(starts))


def open_payload(content_key, seal, sealed):
    key, associated = chunk_key(content_key, seal.cipher), hashlib.sha256(seal.data).digest()
    if len(sealed) < TAG or 0 < len(sealed) % (CHUNK + TAG) < TAG or (len(sealed) % (CHUNK + TAG) == TAG and len(sealed) > TAG):
        raise Fault("invalid", "§20.1: no sealed payload has this length")
    starts = range(0, len(sealed), CHUNK + TAG)
    return b"".join(unlock(CIPHERS[seal.cipher], key, nonce_of(i, i == len(starts) - 1), associated, sealed[start:start + CHUNK + TAG], "§20.1: chunk %d" % i)
                    for i, start in enumerate(starts))


# ---------------------------------------------------------------- §20.3 what a reader does

def sealed_of(blobs, several, root=None):
    """(the seal, whether it is marked, the sealed payload, the root) of an encoding"""
    result = encoding.read_all(blobs, several, root)
    if result.cls:
        raise Fault(result.cls, "; ".join(result.lines))
    return open_up(result.sealed, None if result.meta is None else encoding.check_meta(result.meta)) + (result.payload, result.root)


def open_up(is_marked, entries):
    """The seal, and that it is marked."""
    if not is_marked:
        raise Fault("invalid", "§20.3: it is not marked as sealed")
    if entries is None:
        raise Fault("damaged", "§20.3: the meta is lost")
    if 9 not in entries:
        raise Fault("invalid", "§20.3: there is no seal")
    return entries[9], is_marked


def open_sealed(data, sealed, secrets, passphrase):
    """(the plaintext, the recorded name)"""
    seal = parse_seal(data)
    content_key = open_age(seal.age, secrets, passphrase)
    name = encoding.check_meta(open_private(seal, content_key)).get(2)
    return open_payload(content_key, seal, sealed), name


# ---------------------------------------------------------------- golden vectors

IDENTITY = hashlib.sha256(b"the identity of the vectors").digest()
OTHER = hashlib.sha256(b"another identity").digest()
PASSPHRASE = "correct horse battery staple"


def some(what, size=32):
    return hashlib.sha256(what.encode()).digest()[:size]


def wrap(content_key, to="x25519", **lie):
    """An age file of a vector."""
    file_key, public = some("file key", 16), x25519(IDENTITY, BASE_POINT)
    first = for_x25519(file_key, public, some("ephemeral"))
    stanzas = {"x25519": [first],
               "two": [for_x25519(file_key, x25519(OTHER, BASE_POINT), some("ephemeral 2")), first],
               "unknown": [([b"something", b"else"], bytes(70)), first],
               "scrypt": [for_passphrase(file_key, PASSPHRASE.encode(), some("salt", 16), 10)],
               "scrypt-23": [([b"scrypt", b64(some("salt", 16)), b"23"], bytes(32))],
               "scrypt-and-x25519": [for_passphrase(file_key, PASSPHRASE.encode(), some("salt", 16), 10), first],
               "other": [for_x25519(file_key, x25519(OTHER, BASE_POINT), some("ephemeral 2"))]}[to]
    return age_file(content_key, stanzas, file_key, some("nonce", 16), **lie)


def valid_vectors():
    """(entry of sealed.json, files)"""
    for nth, (name, cipher, form, to, size, file_name) in enumerate((
            ("aes", AES, "container", "x25519", 50, b"letter.txt"), ("chacha", CHACHA, "container", "x25519", 50, b""),
            ("aes-shards", AES, "shards", "x25519", 1000, b"letter.txt"), ("chacha-shards", CHACHA, "shards", "two", 1000, "lettres d\u2019été".encode()),
            ("passphrase", AES, "container", "scrypt", 70, b"x"), ("passphrase-chacha", CHACHA, "shards", "scrypt", 70, b"x"),
            ("unknown-stanza", AES, "container", "unknown", 10, b""), ("long-name", CHACHA, "container", "two", 10, b"n" * 255),
            ("empty", AES, "container", "x25519", 0, b""), ("empty-chacha", CHACHA, "container", "x25519", 0, b""), ("one", AES, "container", "x25519", 1, b""),
            ("without-copies", AES, "container", "x25519", 50, b""))):
        content_key, plain = some("content key " + name), encoding.generate(size, 20 + nth)
        seal = make_seal(content_key, cipher, wrap(content_key, to), encoding.entry(2, file_name) if file_name else b"")
        files, root = encode_sealed(form, 2, 1, seal, seal_payload(content_key, cipher, seal, plain), copies=name != "without-copies")
        yield vector(name, form, cipher, content_key, seal, plain, root, file_name, 20 + nth, to), files
    # Of these the chunks alone are kept, as a digest.
    for size in (CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 77):
        for cipher in (AES, CHACHA):
            name = "%d-%d" % (size, cipher)
            content_key, plain = some("content key " + name), encoding.generate(size, 7)
            seal = make_seal(content_key, cipher, wrap(content_key))
            yield vector(name, None, cipher, content_key, seal, plain, None, b"", 7, "x25519"), None


def vector(name, form, cipher, content_key, seal, plain, root, file_name, seed, to):
    sealed = seal_payload(content_key, cipher, seal, plain)
    entry = dict(name=name, cipher=cipher, content_key=content_key.hex(), age=parse_seal(seal).age.hex(), seal=seal.hex(), seed=seed,
                 payload_len=len(plain), sealed_sha256=hashlib.sha256(sealed).hexdigest(), file_name=file_name.decode() or None)
    if form:
        entry.update(path="sealed/" + name + (".fec" if form == "container" else ""), root=root.hex(), passphrase=to == "scrypt")
    return entry


def encode_sealed(form, k, m, seal, sealed, flags=encoding.SEALED, set_size=None, copies=True):
    return encoding.encode(encoding.FORMS[form], encoding.BLAKE3, k, m, sealed, set_size, meta=encoding.entry(9, seal) if seal is not None else b"", flags=flags, copies=copies)


def error_vectors():
    """(entry, bytes of a container): everything under it is well formed, with right digests, trees and roots."""
    content_key, plain = some("content key"), encoding.generate(50, 3)
    name = encoding.entry(2, b"letter.txt")

    def seal_of(cipher=AES, age=None, meta=name, **lie):
        return make_seal(content_key, cipher, wrap(content_key) if age is None else age, meta, **lie)

    def make(seal, sealed=None, cipher=AES, flags=encoding.SEALED):
        sealed = seal_payload(content_key, cipher, seal, plain) if sealed is None else sealed
        return encode_sealed("container", 1, 0, seal, sealed, flags)[0][0]

    good = seal_of()
    chunks, data = seal_payload(content_key, AES, good, plain), make(good)
    cases = []

    def add(name, rule, cls, data, **more):
        cases.append((dict(dict(name=name, rule=rule, path="sealed/%s.fec" % name, passphrase=False), **more, **{"class": cls, "exit": encoding.EXIT[cls]}), data))

    add("not-marked", "§20.3: bit 4 of the flags is not set", "invalid", make(good, flags=0))
    add("no-seal", "§20.3: it is marked, and there is no seal", "invalid", make(None, sealed=chunks))
    lost = bytearray(data)
    for magic in (encoding.MAGIC_M, encoding.MAGIC_X):
        for at in encoding.spots(data, magic):
            lost[at] ^= 1
    add("meta-lost", "§20.3: the meta is lost", "damaged", bytes(lost))
    for field, value, cls in (("version", 0, "invalid"), ("version", 2, "refused"), ("said_cipher", 0, "invalid"), ("said_cipher", 3, "refused"),
                              ("said_cipher", CHACHA, "invalid"), ("content", 2, "refused"), ("zero", 1, "invalid"), ("size", 1 << 20, "invalid"), ("size", 0, "invalid")):
        add("seal-%s-%d" % (field.split("_")[-1], value), "§20.2: %s is %d" % (field.split("_")[-1], value), cls, make(seal_of(**{field: value}), sealed=chunks))
    for size in (0, 7, len(good) - 1, len(good) - 256, 8 + len(parse_seal(good).age)):
        add("seal-cut-%d" % size, "§20.2: the seal is cut short", "invalid", make(good[:size], sealed=chunks))
    add("seal-long", "§20.2: it is longer than 65,000 bytes", "invalid", make(seal_of(private=bytes(64 << 10)[:252 * 256]), sealed=chunks))
    for where, at in (("public", 8), ("private", -TAG - 1), ("tag", -1)):
        changed = bytearray(good)
        changed[at] ^= 1
        add("private-%s-changed" % where, "§20.3: the private part is not authentic", "invalid", make(bytes(changed), sealed=chunks))
    text = make_private(name)
    for what, private in (("longer", text + bytes(256)), ("padding", text[:-1] + b"\1"), ("beyond", struct.pack("<H", 300) + text[2:]),
                          ("meta", make_private(name + name)), ("path", make_private(encoding.entry(2, b"../x")))):
        seal = seal_of(private=private)
        add("private-" + what, "§20.2: the private part: " + what, "invalid", make(seal))
    add("meta-critical", "§7: the private part has an entry of an unknown even type", "refused", make(seal_of(meta=name + encoding.entry(4, b"x"))))
    for size in (0, 16, 31, 33):
        key = some("content key")[:size].ljust(size, b"x")
        add("content-key-%d" % size, "§20.3: the content key has another length than 32 bytes", "invalid", make(seal_of(age=wrap(key))))
    add("age-other", "§20.3: no key fits", "invalid", make(seal_of(age=wrap(content_key, "other"))))
    add("age-mac", "age: the header is not authentic", "invalid", make(seal_of(age=wrap(content_key, mac=bytes(32)))))
    add("age-version", "age: version", "invalid", make(seal_of(age=wrap(content_key, version=b"v2"))))
    add("age-mixed", "age: a passphrase stands alone", "invalid", make(seal_of(age=wrap(content_key, "scrypt-and-x25519"))), passphrase=True)
    add("age-work", "§20.2: a work factor of 23", "refused", make(seal_of(age=wrap(content_key, "scrypt-23"))), passphrase=True)
    add("age-longer", "age: a byte behind the end", "invalid", make(seal_of(age=wrap(content_key) + b"\0")))
    add("age-cut", "age: it is cut", "invalid", make(seal_of(age=wrap(content_key)[:-1])))
    add("age-crlf", "age: lines end with a line feed", "invalid", make(seal_of(age=wrap(content_key).replace(b"\n", b"\r\n", 1))))
    for what, number, is_last in (("not-last", 0, False), ("number", 1, True)):
        key, associated = chunk_key(content_key, AES), hashlib.sha256(good).digest()
        sealed = lock_up(CIPHERS[AES], key, nonce_of(number, is_last), associated, plain)
        add("chunk-" + what, "§20.1: the nonce of a chunk", "invalid", make(good, sealed))
    sealed = lock_up(CIPHERS[AES], chunk_key(content_key, AES), nonce_of(0, True), hashlib.sha256(good[:-1]).digest(), plain)
    add("chunk-associated", "§20.1: the associated data is the SHA-256 of the seal", "invalid", make(good, sealed))
    sealed = lock_up(CIPHERS[AES], private_key(content_key, AES), nonce_of(0, True), hashlib.sha256(good).digest(), plain)
    add("chunk-key", "§20.2: chunks have a key of their own", "invalid", make(good, sealed))
    add("chunk-flipped", "§20.3: a chunk is not authentic", "invalid", make(good, bytes([chunks[0] ^ 1]) + chunks[1:]))
    for size in (0, 15, 16):
        add("sealed-%d" % size, "§20.1: a sealed payload of %d bytes" % size, "invalid", make(good, chunks[:size]))
    # A whole chunk, and an empty one that is the last.
    key, associated = chunk_key(content_key, CHACHA), hashlib.sha256(seal_of(CHACHA)).digest()
    first = lock_up(CIPHERS[CHACHA], key, nonce_of(0, False), associated, bytes(CHUNK))
    second = lock_up(CIPHERS[CHACHA], key, nonce_of(1, True), associated, b"")
    add("chunk-empty", "§20.3: an empty chunk is valid only as chunk 0", "invalid", make(seal_of(CHACHA), first + second))
    return cases


def copy_vectors():
    """(entry, bytes of a container): what is left of the copies of the seal (§9), and what verify says of it without a
    key"""
    content_key, plain = some("content key"), encoding.generate(50, 3)
    seal = make_seal(content_key, AES, wrap(content_key))
    data = encode_sealed("container", 2, 3, seal, seal_payload(content_key, AES, seal, plain))[0][0]
    frames, indexes = encoding.spots(data, encoding.MAGIC_M), encoding.spots(data, encoding.MAGIC_X)
    size = 192 + encoding.align(3 + len(seal), 64)
    copies = [at - 32 for at in frames[1:]]
    cases = []

    def add(name, rule, verify, data):
        cases.append((dict(name=name, rule=rule, path="sealed/%s.fec" % name, verify=verify), data))

    add("copies-all", "§9: m + 1 copies of the meta frame between the records", 0, data)
    gone = data
    for at in reversed(copies):
        gone = gone[:at] + gone[at + size:]
    add("copies-none", "§9: none of them is there: it was written without", 0, gone)
    add("copies-none-damaged", "§9: the same, and a record is damaged", 1, encoding.flipped(gone, encoding.spots(gone, encoding.MAGIC_R)[1] + 300))
    for nth, at in enumerate(copies):
        add("copies-without-%d" % nth, "§9: one of them is gone", 1, data[:at] + data[at + size:])
        lost = [x + 70 for x in frames + indexes if x != at + 32]
        add("copies-only-%d" % nth, "§9, §20.3: one copy of the meta is left", 1, encoding.flipped(data, *lost))
    add("copies-lost", "§20.3: every copy of the meta is lost, and every shard is there", 3, encoding.flipped(data, *[x + 70 for x in frames + indexes]))
    add("copies-behind-the-end", "§9.4: a whole annex is no damage, whatever it is", 0, data + data[copies[0]:copies[0] + size])
    add("copies-moved", "§9: one of them stands in front of another record", 1,
        data[:copies[0]] + data[copies[0] + size:copies[1]] + data[copies[0]:copies[0] + size] + data[copies[1]:])
    first = encoding.spots(data, encoding.MAGIC_R)
    add("copies-shards-lost", "§9: m shards are lost with what stands in front of them, and the index", 1,
        data[:first[1]] + bytes(first[4] - first[1]) + data[first[4]:indexes[0]])
    return cases


def golden(folder):
    valid, errors, copies = list(valid_vectors()), error_vectors(), copy_vectors()
    kept = [dict(identity=identity_text(IDENTITY), recipient=recipient_text(IDENTITY), passphrase=PASSPHRASE,
                 valid=[entry for entry, _ in valid], errors=[entry for entry, _ in errors], copies=[entry for entry, _ in copies])]
    encoding.store(os.path.join(folder, "sealed.json"), (json.dumps(kept[0], indent=1, ensure_ascii=False) + "\n").encode())
    for entry, files in valid:
        if files is None:
            continue
        path = os.path.join(folder, entry["path"])
        named = encoding.shard_names("payload", files) if not path.endswith(".fec") else {"": files[0]}
        for name, data in named.items():
            encoding.store(os.path.join(path, name) if name else path, data)
    for entry, data in errors + copies:
        encoding.store(os.path.join(folder, entry["path"]), data)
    return 0


def check(folder):
    with open(os.path.join(folder, "sealed.json"), encoding="utf-8") as f:
        kept = json.load(f)
    secrets, passphrase = [from_bech32(kept["identity"], "age-secret-key-")], kept["passphrase"].encode()
    for entry in kept["valid"]:
        plain, seal = encoding.generate(entry["payload_len"], entry["seed"]), bytes.fromhex(entry["seal"])
        content_key = bytes.fromhex(entry["content_key"])
        if "path" not in entry:
            sealed = seal_payload(content_key, entry["cipher"], seal, plain)
            assert hashlib.sha256(sealed).hexdigest() == entry["sealed_sha256"] and open_payload(content_key, parse_seal(seal), sealed) == plain
            continue
        data, _, sealed, root = sealed_of(*encoding.load([os.path.join(folder, entry["path"])]))
        opened, name = open_sealed(data, sealed, secrets, passphrase)
        assert opened == plain and data == seal and root.hex() == entry["root"], entry["name"]
        assert name == (entry["file_name"] or "").encode() or name is None and not entry["file_name"], entry["name"]
    for entry in kept["errors"]:
        try:
            data, _, sealed, _ = sealed_of(*encoding.load([os.path.join(folder, entry["path"])]))
            open_sealed(data, sealed, () if entry["passphrase"] else secrets, passphrase if entry["passphrase"] else None)
            cls = None
        except Fault as fault:
            cls = fault.cls
        assert cls == entry["class"], (entry["name"], cls)
    for entry in kept["copies"]:
        blobs, several = encoding.load([os.path.join(folder, entry["path"])])
        result = encoding.read_all(blobs, several)
        assert (result.exit if result.cls else 0 if result.clean else 1) == entry["verify"], entry["name"]
        if result.cls is None:
            data, _, sealed, _ = sealed_of(blobs, several)
            assert len(open_sealed(data, sealed, secrets, None)[0]) == 50
    print("%d sealed payloads, %d errors, %d with copies of the seal: all good" % tuple(len(kept[x]) for x in ("valid", "errors", "copies")))
    return 0


def selftest():
    test_aead()
    # RFC 7748, 5.2; RFC 5869, A.1 (its first 32 bytes)
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    # Both sides of an exchange come to the same.
    assert x25519(IDENTITY, x25519(OTHER, BASE_POINT)) == x25519(OTHER, x25519(IDENTITY, BASE_POINT))
    okm = hkdf(b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA)))
    assert okm.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
    # Bech32: a key of age's own documentation.
    recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
    assert bech32("age", from_bech32(recipient, "age")) == recipient
    # There and back, and nothing but the key opens it.
    key = some("key")
    wrapped = wrap(key)
    assert open_age(wrapped, [IDENTITY]) == key == open_age(wrap(key, "scrypt"), passphrase=PASSPHRASE.encode())
    for secrets in ([], [OTHER]):
        try:
            open_age(wrapped, secrets)
            raise AssertionError("it opens without its key")
        except Fault as fault:
            assert fault.cls == "invalid"
    for size in (0, 1, CHUNK, CHUNK + 1):
        seal = make_seal(key, CHACHA, wrapped)
        assert open_payload(key, parse_seal(seal), seal_payload(key, CHACHA, seal, bytes(size))) == bytes(size)
    print("ok")
    return 0


# ---------------------------------------------------------------- commands

def secrets_of(path):
    with open(path, encoding="utf-8") as f:
        return [from_bech32(line.strip(), "age-secret-key-") for line in f if line.strip() and not line.startswith("#")]


def main():
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("selftest")
    for name in ("golden", "check"):
        commands.add_parser(name).add_argument("folder")
    for name in ("encode", "decode", "restore"):
        one = commands.add_parser(name)
        who = one.add_mutually_exclusive_group(required=True)
        who.add_argument("--identity")
        who.add_argument("--passphrase", type=str.encode)
        one.add_argument("-o", required=True)
        if name == "encode":
            one.add_argument("--form", choices=encoding.FORMS, required=True)
            one.add_argument("-k", type=int, required=True)
            one.add_argument("-m", type=int, required=True)
            one.add_argument("--set-size", type=int)
            one.add_argument("--name", default="")
            one.add_argument("--cipher", type=int, choices=CIPHERS, default=AES)
            one.add_argument("paths", nargs=1)
        else:
            one.add_argument("--root", type=bytes.fromhex, required=name == "restore")
            one.add_argument("paths", nargs="+")
    args = top.parse_args()
    if args.command == "selftest":
        return selftest()
    if args.command in ("golden", "check"):
        return globals()[args.command](args.folder)
    secrets = secrets_of(args.identity) if args.identity else []
    if args.command == "encode":
        with open(args.paths[0], "rb") as f:
            plain = f.read()
        content_key, file_key = os.urandom(32), os.urandom(16)
        if args.passphrase is None:
            stanza = for_x25519(file_key, x25519(secrets[0], BASE_POINT), os.urandom(32))
        else:
            stanza = for_passphrase(file_key, args.passphrase, os.urandom(16), 12)
        age = age_file(content_key, [stanza], file_key, os.urandom(16))
        seal = make_seal(content_key, args.cipher, age, encoding.entry(2, args.name.encode()) if args.name else b"")
        files, root = encode_sealed(args.form, args.k, args.m, seal, seal_payload(content_key, args.cipher, seal, plain), set_size=args.set_size)
        for name, data in encoding.shard_names("payload", files).items() if args.form == "shards" else [("", files[0])]:
            encoding.store(os.path.join(args.o, name) if name else args.o, data)
        print(root.hex())
        return 0
    try:
        if args.command == "decode":
            data, _, sealed, _ = sealed_of(*encoding.load(args.paths), args.root)
        else:
            sealed, entries, is_marked = stores.restore_all(args.root, args.paths)
            data, _ = open_up(is_marked, entries)
        plain, name = open_sealed(data, sealed, secrets, args.passphrase)
    except Fault as fault:
        print("%s: %s" % (fault.cls, fault.text), file=sys.stderr)
        return encoding.EXIT[fault.cls]
    encoding.store(args.o, plain)
    print((name or b"").decode())
    return 0
