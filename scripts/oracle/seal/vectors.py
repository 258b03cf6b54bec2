"""The golden vectors of sealed payloads."""
import hashlib
import json
import os
import struct

from .. import encoding
from ..basics import Fault
from .age import (
    AES, BASE_POINT, CHACHA, CHUNK, CIPHERS, TAG, age_file, b64, for_passphrase, for_x25519, from_bech32,
    identity_text, lock_up, recipient_text, x25519,
)
from .payload import (
    Again, chunk_key, make_again, make_private, make_seal, nonce_of, open_payload, open_sealed, parse_seal, private_key, seal_payload,
    sealed_of,
)

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
    # These vectors keep only the chunks, as a digest.
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
    """(entry, bytes of a container): the container itself is well formed, with right digests, trees and roots."""
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
    for field, value, cls in (("version", 0, "invalid"), ("version", 2, "invalid"), ("version", 3, "refused"), ("said_cipher", 0, "invalid"), ("said_cipher", 3, "refused"),
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
    again = Again(hashlib.sha256(good).digest(), some("salt"))
    replaced = make_again(content_key, AES, wrap(content_key), again, name)
    front = 8 + len(wrap(content_key))
    for what, at in (("first", front), ("salt", front + 32)):
        changed = bytearray(replaced)
        changed[at] ^= 1
        add("again-%s-changed" % what, "§20.4: the private part is not authentic", "invalid", make(bytes(changed), sealed=chunks))
    add("again-sidecar", "§20.4: a seal of version 2 is of a payload", "invalid", make(make_again(content_key, AES, wrap(content_key), again, name, 1), sealed=chunks))
    add("again-cut", "§20.4: the seal is cut short", "invalid", make(replaced[:front + 63], sealed=chunks))
    other = make_again(content_key, AES, wrap(content_key), Again(some("another"), again.salt), name)
    add("again-other", "§20.4: the chunks are of another first seal", "invalid", make(other, sealed=chunks))
    add("again-old-key", "§20.4: the key of the private part takes the salt", "invalid",
        make(replaced[:front + 64] + lock_up(CIPHERS[AES], private_key(content_key, AES), bytes(12), replaced[:front + 64], text), sealed=chunks))
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


def again_vectors():
    """(entry, bytes of a container): the seal was replaced once, and twice (§20.4)"""
    cases, name = [], encoding.entry(2, b"letter.txt")
    for cipher, to, times, size in ((AES, "x25519", 1, CHUNK + 100), (CHACHA, "two", 2, 60), (AES, "scrypt", 1, 60)):
        content_key, plain = some("content key again"), encoding.generate(size, 4)
        first = make_seal(content_key, cipher, wrap(content_key, "other"), name)
        sealed, seal = seal_payload(content_key, cipher, first, plain), first
        for nth in range(times):
            again = Again(hashlib.sha256(first).digest(), some("salt %d" % nth))
            seal = make_again(content_key, cipher, wrap(content_key, to), again, name)
        files, root = encode_sealed("container", 2, 1, seal, sealed)
        title = "again-%s" % to
        cases.append((dict(name=title, path="sealed/%s.fec" % title, root=root.hex(), cipher=cipher, content_key=content_key.hex(),
                           first=first.hex(), salt=again.salt.hex(), age=parse_seal(seal).age.hex(), seal=seal.hex(), seed=4,
                           payload_len=len(plain), file_name="letter.txt", passphrase=to == "scrypt"), files[0]))
    return cases


def copy_vectors():
    """(entry, bytes of a container): some copies of the seal (§9) are lost or moved; the entry has the exit code of
    verify without a key"""
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

    def false_frame(number):
        meta, head = encoding.entry(2, b"a%02d" % number), bytearray(data[frames[0]:frames[0] + 128])
        head[16:20], head[64:96] = len(meta).to_bytes(4, "little"), encoding.digest(encoding.BLAKE3, meta)
        return bytes(encoding.put_crc(head, bytearray(meta + bytes(-len(meta) % 64))))

    false = b"".join(map(false_frame, range(70)))
    add("copies-behind-false-frames", "§12: more frames are in front than are kept, and the index is lost: a group names the copies", 1,
        false + data[frames[0]:indexes[0]])
    return cases


def golden(folder):
    valid, again, errors, copies = list(valid_vectors()), again_vectors(), error_vectors(), copy_vectors()
    kept = [dict(identity=identity_text(IDENTITY), recipient=recipient_text(IDENTITY), passphrase=PASSPHRASE,
                 valid=[entry for entry, _ in valid], again=[entry for entry, _ in again], errors=[entry for entry, _ in errors], copies=[entry for entry, _ in copies])]
    encoding.store(os.path.join(folder, "sealed.json"), (json.dumps(kept[0], indent=1, ensure_ascii=False) + "\n").encode())
    for entry, files in valid:
        if files is None:
            continue
        path = os.path.join(folder, entry["path"])
        named = encoding.shard_names("payload", files) if not path.endswith(".fec") else {"": files[0]}
        for name, data in named.items():
            encoding.store(os.path.join(path, name) if name else path, data)
    for entry, data in again + errors + copies:
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
    for entry in kept["again"]:
        data, _, sealed, root = sealed_of(*encoding.load([os.path.join(folder, entry["path"])]))
        opened, name = open_sealed(data, sealed, () if entry["passphrase"] else secrets, passphrase if entry["passphrase"] else None)
        assert opened == encoding.generate(entry["payload_len"], entry["seed"]) and data.hex() == entry["seal"], entry["name"]
        assert root.hex() == entry["root"] and name == entry["file_name"].encode(), entry["name"]
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
    print("%d sealed payloads, %d sealed again, %d errors, %d with copies of the seal: all good"
          % tuple(len(kept[x]) for x in ("valid", "again", "errors", "copies")))
    return 0
