"""AES-256-GCM (NIST SP 800-38D) and ChaCha20-Poly1305 (RFC 8439) from their specifications, slow and plain: for streams
and seals."""
import struct


def _sbox():
    box, p, q = [0] * 256, 1, 1
    while True:
        p = p ^ p << 1 & 255 ^ (0x1B if p & 128 else 0)
        for shift in (1, 2, 4):
            q ^= q << shift & 255
        q ^= 0x09 if q & 128 else 0
        box[p] = q ^ _rot(q, 1) ^ _rot(q, 2) ^ _rot(q, 3) ^ _rot(q, 4) ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


def _rot(x, n):
    return (x << n | x >> 8 - n) & 255


SBOX = _sbox()


def _double(x):
    return x << 1 & 255 ^ (0x1B if x & 128 else 0)


def _expand(key):
    words = [list(key[i:i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        t = list(words[-1])
        if i % 8 == 0:
            t = [SBOX[x] for x in t[1:] + t[:1]]
            t[0] ^= rcon
            rcon = _double(rcon)
        elif i % 8 == 4:
            t = [SBOX[x] for x in t]
        words.append([a ^ b for a, b in zip(words[-8], t)])
    return [sum(words[i:i + 4], []) for i in range(0, 60, 4)]


def _block(keys, block):
    s = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 14:
            out = []
            for c in range(0, 16, 4):
                a = s[c:c + 4]
                every = a[0] ^ a[1] ^ a[2] ^ a[3]
                out += [a[i] ^ every ^ _double(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
            s = out
        s = [a ^ b for a, b in zip(s, key)]
    return bytes(s)


def _ghash(h, data):
    h, y = int.from_bytes(h, "big"), 0
    for at in range(0, len(data), 16):
        x, z, v = y ^ int.from_bytes(data[at:at + 16], "big"), 0, h
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                z ^= v
            v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
        y = z
    return y.to_bytes(16, "big")


def _pad(data):
    return data + bytes(-len(data) % 16)


def _xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def aes_256_gcm(key, nonce, associated, data, opens=False):
    """The ciphertext and the tag of `data`; with `opens` the plaintext and the tag that it should have."""
    keys = _expand(key)
    stream = b"".join(_block(keys, nonce + struct.pack(">I", 2 + i)) for i in range((len(data) + 15) // 16))
    out = _xor(data, stream)
    lengths = struct.pack(">QQ", 8 * len(associated), 8 * len(data))
    hashed = _ghash(_block(keys, bytes(16)), _pad(associated) + _pad(data if opens else out) + lengths)
    return out, _xor(hashed, _block(keys, nonce + struct.pack(">I", 1)))


def _chacha(key, counter, nonce):
    first = list(struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce))
    s = list(first)

    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = s[x] + s[y] & 0xFFFFFFFF
            t = s[z] ^ s[x]
            s[z] = (t << n | t >> 32 - n) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *(a + b & 0xFFFFFFFF for a, b in zip(s, first)))


def chacha20_poly1305(key, nonce, associated, data, opens=False):
    """Arguments and results are those of aes_256_gcm."""
    stream = b"".join(_chacha(key, 1 + i, nonce) for i in range((len(data) + 63) // 64))
    out = _xor(data, stream)
    one_time = _chacha(key, 0, nonce)
    r = int.from_bytes(one_time[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    text = _pad(associated) + _pad(data if opens else out) + struct.pack("<QQ", len(associated), len(data))
    total = 0
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return out, (total + int.from_bytes(one_time[16:32], "little") & (1 << 128) - 1).to_bytes(16, "little")


def selftest():
    assert SBOX[0x53] == 0xED and SBOX[0] == 0x63
    # FIPS 197, C.3.
    block = _block(_expand(bytes(range(32))), bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert block.hex() == "8ea2b7ca516745bfeafc49904b496089"
    # GCM specification (McGrew, Viega), test case 16.
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308") * 2
    text = bytes.fromhex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")
    associated = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    sealed, tag = aes_256_gcm(key, bytes.fromhex("cafebabefacedbaddecaf888"), associated, text)
    assert sealed.hex().startswith("522dc1f099567d07f47f37a32a84427d643a8cdc") and tag.hex() == "76fc6ece0f4e1768cddf8853bb2d551b"
    assert aes_256_gcm(key, bytes.fromhex("cafebabefacedbaddecaf888"), associated, sealed, True) == (text, tag)
    # RFC 8439, 2.8.2.
    text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
    nonce, associated = bytes.fromhex("070000004041424344454647"), bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    sealed, tag = chacha20_poly1305(bytes(range(0x80, 0xA0)), nonce, associated, text)
    assert sealed.hex().startswith("d31a8d34648e60db7b86afbc53ef7ec2") and tag.hex() == "1ae10b594f09e26a7e902ecbd0600691"
    assert chacha20_poly1305(bytes(range(0x80, 0xA0)), nonce, associated, sealed, True) == (text, tag)
