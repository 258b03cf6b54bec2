"""The second implementation of sealed payloads, written from section 20 of docs/FORMAT.md ("§" refers to that file),
and of the part of age's format (age-encryption.org/v1) that sealed payloads need: X25519 and scrypt.

    oracle seal selftest
    oracle seal encode --form shards|container -k K -m M [--set-size N] [--name NAME] [--cipher 1|2]
                          (--identity FILE | --passphrase TEXT) -o OUT FILE       sealed for this identity
    oracle seal decode [--root HEX] (--identity FILE | --passphrase TEXT) -o OUT PATH…
    oracle seal restore --root HEX (--identity FILE | --passphrase TEXT) -o OUT FOLDER…
                                             from folders that stores keep objects in
    oracle seal golden DIR                   writes sealed.json and sealed/ (the same bytes on each run)
    oracle seal check DIR                    reads them again

Exit codes are those of `oracle encoding`. Needs Python 3.9 and nothing else; plain and slow on purpose.
"""
import argparse
import os
import sys

from .. import encoding, stores
from ..aead import selftest as test_aead
from ..basics import Fault
from .age import (
    AES, BASE_POINT, CHACHA, CHUNK, CIPHERS, age_file, bech32, for_passphrase, for_x25519, from_bech32, hkdf,
    open_age, x25519,
)
from .payload import make_seal, open_payload, open_sealed, open_up, parse_seal, seal_payload, sealed_of
from .vectors import IDENTITY, OTHER, PASSPHRASE, check, encode_sealed, golden, some, wrap


def selftest():
    test_aead()
    # RFC 7748, 5.2; RFC 5869, A.1 (its first 32 bytes)
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    # Both sides of an exchange come to the same secret.
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
        return {"golden": golden, "check": check}[args.command](args.folder)
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
