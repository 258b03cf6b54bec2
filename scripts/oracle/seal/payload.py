"""§20: the seal, its chunks, and reading them."""
import hashlib
import struct
from collections import namedtuple

from .. import encoding
from ..basics import Fault
from .age import CHUNK, CIPHERS, MAX_SEAL, TAG, hkdf, lock_up, open_age, unlock

Seal = namedtuple("Seal", "cipher content age again private public data")
# first: SHA-256 of the first seal of the payload; salt: that of the private part's key
Again = namedtuple("Again", "first salt")


def parse_seal(data):
    if len(data) > MAX_SEAL:
        raise Fault("invalid", "§20.2: longer than 65,000 bytes")
    if len(data) < 8:
        raise Fault("invalid", "§20.2: cut short")
    version, cipher, content, zero, size = struct.unpack_from("<BBBBI", data)
    if version > 2 or version and cipher > 2 or version and 1 <= cipher <= 2 and content > 1:
        raise Fault("refused", "§20.2: version, cipher or kind")
    if version == 0 or cipher == 0 or zero:
        raise Fault("invalid", "§20.2: version 0, cipher 0, or a byte that is not zero")
    if version == 2 and content == 1:
        raise Fault("invalid", "§20.4: a seal of version 2 is of a payload")
    front = 8 + size + (64 if version == 2 else 0)
    private = data[front:]
    if front > len(data) or len(private) < 256 + TAG or (len(private) - TAG) % 256:
        raise Fault("invalid", "§20.2: lengths")
    again = Again(data[front - 64:front - 32], data[front - 32:front]) if version == 2 else None
    return Seal(cipher, content, data[8:8 + size], again, private, data[:front], data)


def key_of(content_key, cipher, info, salt=b""):
    return hkdf(content_key, b"fec sealed payload", info + bytes([cipher]) + salt)


def private_key(content_key, cipher, again=None):
    if again is None:
        return key_of(content_key, cipher, b"fec seal 1, private part")
    return key_of(content_key, cipher, b"fec seal 2, private part", again.salt)


def chunk_key(content_key, cipher):
    return key_of(content_key, cipher, b"fec seal 1, chunks")


def make_private(meta):
    text = struct.pack("<H", len(meta)) + meta
    return text + bytes(-len(text) % 256)


def make_seal(content_key, cipher, age, meta=b"", private=None, content=0, **front):
    """A seal; front: fields that lie"""
    field = dict(dict(version=1, said_cipher=cipher, content=content, zero=0, size=len(age)), **front)
    public = struct.pack("<BBBBI", field["version"], field["said_cipher"], field["content"], field["zero"], field["size"]) + age
    private = make_private(meta) if private is None else private
    return public + lock_up(CIPHERS[cipher], private_key(content_key, cipher), bytes(12), public, private)


def make_again(content_key, cipher, age, again, meta=b"", content=0):
    """A seal that replaces another (§20.4)"""
    public = struct.pack("<BBBBI", 2, cipher, content, 0, len(age)) + age + again.first + again.salt
    return public + lock_up(CIPHERS[cipher], private_key(content_key, cipher, again), bytes(12), public, make_private(meta))


def associated_of(seal):
    """The associated data of the chunks: the SHA-256 of the first seal"""
    return seal.again.first if seal.again else hashlib.sha256(seal.data).digest()


def open_private(seal, content_key):
    """The meta bytes in the private part."""
    if len(content_key) != 32:
        raise Fault("invalid", "§20.3: the content key has another length than 32 bytes")
    text = unlock(CIPHERS[seal.cipher], private_key(content_key, seal.cipher, seal.again), bytes(12), seal.public, seal.private, "§20.2: the private part")
    size = struct.unpack_from("<H", text)[0]
    if make_private(text[2:2 + size]) != text:
        raise Fault("invalid", "§20.2: the private part is not padded as it has to be")
    encoding.check_meta(text[2:2 + size])
    return text[2:2 + size]


def nonce_of(number, is_last):
    return struct.pack("<QI", number, 0)[:11] + bytes([is_last])


def seal_payload(content_key, cipher, seal, plain):
    key, associated = chunk_key(content_key, cipher), hashlib.sha256(seal).digest()
    starts = range(0, len(plain), CHUNK) or [0]
    return b"".join(lock_up(CIPHERS[cipher], key, nonce_of(i, start + CHUNK >= len(plain)), associated, plain[start:start + CHUNK])
                    for i, start in enumerate(starts))


def open_payload(content_key, seal, sealed):
    key, associated = chunk_key(content_key, seal.cipher), associated_of(seal)
    if len(sealed) < TAG or 0 < len(sealed) % (CHUNK + TAG) < TAG or (len(sealed) % (CHUNK + TAG) == TAG and len(sealed) > TAG):
        raise Fault("invalid", "§20.1: no sealed payload has this length")
    starts = range(0, len(sealed), CHUNK + TAG)
    return b"".join(unlock(CIPHERS[seal.cipher], key, nonce_of(i, i == len(starts) - 1), associated, sealed[start:start + CHUNK + TAG], "§20.1: chunk %d" % i)
                    for i, start in enumerate(starts))


def sealed_of(blobs, several, root=None):
    """(the seal, whether it is marked, the sealed payload, the root) of an encoding"""
    result = encoding.read_all(blobs, several, root)
    if result.cls:
        raise Fault(result.cls, "; ".join(result.lines))
    return open_up(result.sealed, None if result.meta is None else encoding.check_meta(result.meta)) + (result.payload, result.root)


def open_up(is_marked, entries):
    """The seal of an encoding that is marked as sealed, and the mark."""
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
