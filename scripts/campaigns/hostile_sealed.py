"""Sealed inputs for hostile.py, and the second implementation's results for them ("§" refers to docs/FORMAT.md)."""
import os
import shutil
from collections import namedtuple

from oracle import encoding, seal as oracle_seal
from oracle.encoding import (
    CONTAINER, MAGIC_A, MAGIC_M, MAGIC_R, MAGIC_S, MAGIC_X, META_COPY, SEALED, SHARDS, Fault, annex, entry, spots,
)
from oracle.seal import AES, CHACHA

SHAPES = ((1, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (4, 3), (10, 4), (5, 20))

# An encoding: its form, its files (one if it is a container), its root, its plaintext if it opens, and its meta
Sealed = namedtuple("Sealed", "form files root plain meta")
# The result of an input: for those without a key `result`, for those with the key `cls` and `plain`
Opened = namedtuple("Opened", "result cls plain")


def seal_parts(rng, lie, content_key, cipher):
    """A seal; `lie` makes a wrong one, in a random way"""
    age = oracle_seal.wrap(content_key)
    name = entry(2, b"letter.txt") if rng.random() < 0.5 else b""
    if not lie:
        return oracle_seal.make_seal(content_key, cipher, age, name)
    how = rng.randrange(7)
    if how == 0:
        field, value = rng.choice((("version", 0), ("version", 2), ("said_cipher", 0), ("said_cipher", 3), ("said_cipher", 3 - cipher), ("content", 1), ("content", 2), ("zero", 1), ("size", 0), ("size", 1 << 20)))
        return oracle_seal.make_seal(content_key, cipher, age, name, **{field: value})
    if how == 1:
        lies = rng.choice((dict(to="other"), dict(to="two"), dict(to="unknown"), dict(mac=bytes(32)), dict(version=b"v2")))
        return oracle_seal.make_seal(content_key, cipher, oracle_seal.wrap(content_key, **lies), name)
    if how == 2:
        age = rng.choice((age + b"\0", age[:-1], age.replace(b"\n", b"\r\n", 1), oracle_seal.wrap(content_key[:31]), oracle_seal.wrap(content_key + b"x")))
        return oracle_seal.make_seal(content_key, cipher, age, name)
    if how == 3:
        text = oracle_seal.make_private(name)
        private = rng.choice((text + bytes(256), text[:-1] + b"\1", b"\xff\xff" + text[2:], oracle_seal.make_private(entry(4, b"")), oracle_seal.make_private(name + entry(2, b"../x"))))
        return oracle_seal.make_seal(content_key, cipher, age, private=private)
    seal = oracle_seal.make_seal(content_key, cipher, age, name)
    if how == 4:
        return seal[:rng.randrange(len(seal))]
    return encoding.flipped(seal, *[rng.randrange(len(seal)) for _ in range(rng.choice((1, 3)))])


def make(rng, form=None, lie=False, marked=True, copies=True, wrong_chunks=False, sizes=(0, 1, 50, 50, 300, 300, 900, 2500)):
    cipher, content_key, plain = rng.choice((AES, CHACHA)), rng.randbytes(32), rng.randbytes(rng.choice(sizes))
    seal = seal_parts(rng, lie, content_key, cipher)
    sealed = oracle_seal.seal_payload(content_key, cipher, seal, plain)
    if wrong_chunks:
        sealed = rng.choice((encoding.flipped(sealed, rng.randrange(len(sealed))), sealed[:rng.randrange(len(sealed))], sealed + b"x", sealed + bytes(16), b""))
    form, (k, m) = form or rng.choice((SHARDS, CONTAINER, CONTAINER, CONTAINER)), rng.choice(SHAPES)
    meta = entry(9, seal) if marked is not None else b""
    flags, size = SEALED if marked in (True, None) else 0, len(sealed)
    if form == CONTAINER and rng.random() < 0.25:               # several groups
        parts, full = [], k * 4096
        while size > full:
            parts.append((full, 4096, 1, dict(flags=flags)))
            size -= full
        parts.append(encoding.part(size, 1, k) + (dict(flags=flags | 1),))
    else:
        G = rng.randint(1, max(1, min(3, encoding.ceil_div(size, 4096 * k)))) if form == CONTAINER else 1
        parts = [encoding.part(size, G, k) + (dict(flags=flags | 1),)]
    more = dict(copies=copies) if form == CONTAINER else {}
    files, root = encoding.forge(form, tuple(parts), rng.choice((1, 2)), k, m, payload=sealed, meta=meta, **more)
    return Sealed(form, files if form == SHARDS else [files], root, None if lie or wrong_chunks or marked is not True else plain, meta)


def lose_copies(rng, data):
    """Damages copies of the meta: some, most or all"""
    often, out = rng.choice((0.5, 0.9, 1, 1)), bytearray(data)
    for at in spots(data, MAGIC_M, MAGIC_X):
        if rng.random() < often:
            out[min(at + rng.choice((0, 9, 70, 140, 200)), len(out) - 1)] ^= 1 << rng.randrange(8)
    return bytes(out)


def lose_ends(rng, data):
    """Loses random parts of the front and of the end"""
    front, end = (rng.choice((0, 1, 200, 700, rng.randrange(max(1, len(data) // 2)))) for _ in range(2))
    data = data[:max(front, len(data) - end)]
    return rng.choice((bytes(front) + data[front:], data[front:], encoding.flipped(data, rng.randrange(max(1, min(front, len(data))))) if data else data))


def with_annexes(rng, e, data):
    """Adds annexes of any kind, copies of the meta too, behind the end or anywhere"""
    P = encoding.unpack(bytes([1, 1, e.form]) + bytes(29))
    frame = encoding.write_meta_frame(rng.choice((1, 2)), P._replace(flags=rng.choice((0, SEALED))), rng.choice((e.meta, entry(2, b"x"))) or b"\2")
    known = [data[at:at + 128 + encoding.align(len(e.meta), 64)] for at in spots(data, MAGIC_M)[:1]]
    for _ in range(rng.randint(1, 3)):
        x = annex(rng.choice((META_COPY, META_COPY, 1, 77)), rng.choice([frame, b"", rng.randbytes(70)] + known * 3))
        inside = [0] + spots(data, MAGIC_A, MAGIC_X)
        at = rng.choice((len(data), len(data), rng.choice(inside), rng.randint(0, len(data))))
        data = data[:at] + x + data[at:]
    return data


def case_of(rng, hurt):
    """The files of an input, whether they are several, and the encodings in the input; hurt does a random damage."""
    kind = rng.randrange(9)
    e = make(rng, CONTAINER if kind in (1, 2, 3, 6, 7) else None, lie=kind == 4, marked=rng.choice((False, None)) if kind == 8 else True, copies=rng.random() < 0.8,
             wrong_chunks=kind == 5)
    made, blobs, several = [e], list(e.files), e.form == SHARDS
    if kind == 1:
        blobs = [lose_copies(rng, x) for x in blobs]
    elif kind == 2:
        blobs = [lose_ends(rng, x) for x in blobs]
    elif kind == 3:
        blobs = [with_annexes(rng, e, x) for x in blobs]
    elif kind == 6:
        pieces = [x for x in pieces_of(blobs[0], MAGIC_R, MAGIC_M, MAGIC_X, MAGIC_A) if rng.random() < 0.9]
        if rng.random() < 0.4:
            rng.shuffle(pieces)
        blobs = [b"".join(pieces)]
    elif kind == 7:
        made.append(make(rng, CONTAINER))
        blobs = [b"".join(rng.sample([x.files[0] for x in made], 2))] if rng.random() < 0.7 else [e.files[0] + annex(77, made[1].files[0])]
    if several:
        blobs = rng.sample(blobs, max(1, len(blobs) - rng.choice((0, 0, 1, 2))))
        if rng.random() < 0.3:                                  # damages every copy of the meta, or all but one
            keep = rng.choice((-1, rng.randrange(len(blobs))))
            size = 192 + encoding.align(len(e.meta), 64)
            blobs = [x if j == keep else encoding.flipped(x, 200, len(x) - size + 20) for j, x in enumerate(blobs)]
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 2, 4))):
            j = rng.randrange(len(blobs))
            blobs[j] = hurt(rng, blobs[j])
    return blobs, several, made


def pieces_of(data, *magics):
    """The bytes cut in front of each of these magics"""
    cuts = sorted({0, len(data), *spots(data, *magics)})
    return [data[a:b] for a, b in zip(cuts, cuts[1:])] or [b""]


def open_up(result):
    """The result for somebody with the key, from what was restored."""
    if result.cls:
        return Opened(result, result.cls, None)
    try:
        seal, _ = oracle_seal.open_up(result.sealed, None if result.meta is None else encoding.check_meta(result.meta))
        if oracle_seal.parse_seal(seal).content:
            return Opened(result, "other", None)                # a sidecar in place of a payload: wrong use
        plain, _ = oracle_seal.open_sealed(seal, result.payload, [oracle_seal.IDENTITY], None)
        return Opened(result, None, plain)
    except Fault as fault:
        return Opened(result, fault.cls, None)


EXIT = dict(encoding.EXIT, other=2)


# ---------------------------------------------------------------- comparing

def compare(run, rng, case, reading, check_verify):
    """Compares decode with the key, and verify and repair without it"""
    identity = os.path.join(run.home, "identity")
    encoding.store(identity, oracle_seal.identity_text(oracle_seal.IDENTITY).encode())
    one = None if case.several else case.blobs[0]
    known, payloads = {e.root: e.payload for e in case.made}, {e.payload for e in case.made} - {None}
    classes = []
    for root in (None, rng.choice(case.made).root):
        want = reading.of_file(root, False)
        both = reading.from_both_ends(root, False, want)
        wants = [open_up(x) for x in ([want] if both is want else [want, both])]
        classes.append(wants[0].cls)
        for x in wants:
            if x.plain is not None and known.get(x.result.root) not in (None, x.plain):
                run.note("oracle-wrong", "the oracle opens other bytes than were sealed", [x.result.root.hex()])
        more = ["--root", root.hex()] if root else []
        opening = more + ["-i", identity, "--no-sync", "-j", rng.choice("12")]
        check_opened(run, "file", ["decode", *run.paths, "-o", rng.choice(("out", "-"))] + opening, None, wants, True, payloads)
        if one is not None and rng.random() < 0.5:
            of_pipe = wants if root else [open_up(reading.of_pipe())]
            check_opened(run, "pipe", ["decode", "-", "-o", rng.choice(("out", "-"))] + opening, one, of_pipe, root, payloads)
            check_verify_pipe(run, one, [x.result for x in of_pipe], more)
        check_verify(run, ["verify", *run.paths, *more], [x.result for x in wants], root, False, one)
        if not any(x.lines and "not a shard file" in " ".join(x.lines) for x in (want,)):
            check_repair(run, ["repair", *run.paths, *more, "--no-sync"], [x.result for x in wants], case)
    return classes


def check_opened(run, way, args, stdin, wants, whole, payloads):
    code, text, out = run.run(args, stdin)
    restored = text if args[args.index("-o") + 1] == "-" else out
    said = "%s: oracle %s, exit %d: %s" % (way, [(x.result.cls, x.cls) for x in wants], code, run.errors)
    if code == 0:
        if not any(x.cls is None for x in wants):
            run.note("restored", said, args)
        elif all(restored != x.plain for x in wants):
            run.note("WRONG-BYTES", said, args)
        return
    if out is not None or text and not any(x.startswith(text) for x in payloads):
        run.note("output-of-failure", said, args)
    if code in [EXIT[x.cls] for x in wants]:
        return
    if run.errors.startswith("fec: open ") and all(x.cls == "damaged" for x in wants):
        # fec looks at the seal first, and a fault of the seal goes before damage (§11).
        return
    if way == "pipe" and not whole:                      # (a reader of a pipe may know only what came before, §10)
        run.note("pipe-allowed", said, args)
    else:
        run.note("not-restored" if wants[0].cls is None else "class", said, args)


def check_verify_pipe(run, stdin, wants, more):
    code = run.run(["verify", "-", *more], stdin)[0]
    expected = [x.exit if x.cls else 0 if x.clean else 1 for x in wants]
    # (A reader of a pipe may leave a body in front of its index aside, §9.)
    if code not in expected and not (code == 1 and 0 in expected) and MAGIC_S not in stdin:
        lost = code == 3 and any("meta is lost" in y or x.cls is None and not x.clean for x in wants for y in x.lines)
        run.note("pipe-allowed" if lost else "verify-pipe", "exit %d, oracle %s: %s" % (code, expected, run.errors), more)


def check_repair(run, args, wants, case):
    """Repair must make a restorable input anew, to the last byte, and must fail for any other input."""
    fixed = os.path.join(run.home, "fixed")
    code = run.run(args + ["-o", fixed])[0]
    said = "exit %d, oracle %s: %s" % (code, [x.exit for x in wants], run.errors)
    meta_lost = any(x.cls is None and x.meta is None for x in wants)         # (of what is not sealed)
    if code not in [x.exit for x in wants] and not (meta_lost and code == 3):
        run.note("repair-class", said, args)
    elif code == 0 and os.path.exists(fixed):
        if not case.several:
            with open(fixed, "rb") as f:
                again = encoding.read_all([("fixed", f.read())], False, wants[0].root)
            if not again.clean or again.payload not in [x.payload for x in wants]:
                run.note("repair-not-clean", "%s: %s" % (said, again.lines[-3:]), args)
    elif code == 0 and not any(x.clean for x in wants):
        run.note("repair-nothing", said, args)
    if os.path.isdir(fixed):
        shutil.rmtree(fixed)
    elif os.path.exists(fixed):
        os.remove(fixed)
