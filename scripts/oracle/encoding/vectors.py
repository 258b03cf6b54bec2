"""The golden vectors of shard files and containers."""
import hashlib
import json
import os
import shutil

from ..basics import BLAKE3, CONTAINER, EXIT, SHA256, SHARDS, Notes, generate, store, write_json
from .containers import Scan
from .errors_of_meta import rules_of_meta_and_index
from .errors_of_reading import what_a_reader_finds
from .errors_of_sets import rules_of_sets
from .forge import shard_names
from .meta import check_meta, entry, make_meta
from .reader import load, read_all
from .writer import encode

FORMS, HASHES = {"shards": SHARDS, "container": CONTAINER}, {"blake3": BLAKE3, "sha256": SHA256}
SHAPES = ((1, 0), (1, 1), (2, 1), (10, 4), (33, 67), (86, 14), (200, 56))


def encode_cases():
    """The fields of each vector that say what is encoded; DEFAULTS has the fields that a case does not name."""
    both = [(f, h) for f in FORMS for h in HASHES]

    def case(form, h, k, m, size, **more):
        return dict(DEFAULTS, form=form, hash=h, k=k, m=m, payload_len=size, **more)

    for number, (k, m) in enumerate(SHAPES):
        small, least = k <= 10, 4096 * k                       # least: the smallest set_size

        def pick(j):
            return both if small else [both[(number + j) % 4]]

        for j, size in enumerate(dict.fromkeys((0, 1, k - 1, k, k + 1, 64 * k - 1, 64 * k, 64 * k + 1))):
            for f, h in pick(j):
                yield case(f, h, k, m, size, stored=(k, m) in ((1, 1), (2, 1)) and size in (1, 64 * k + 1))
        # several sets: lone nodes in the tree, a last set that is not full, L below L0 (down to 2112), the smallest set
        # size that is allowed
        several = [(least, least + 1)]
        if k <= 2:
            several += [(2 * least, 5 * least), (least - 64 * k + 1, least), (least, 3 * least - 5), (least, 5 * least), (least, 5 * least + 1), (least, 6 * least),
                        (least, 7 * least - 32 * k), (3 * least - 1, 10 * least + 7)]
        elif small:
            several += [(2 * least, 5 * least), (least, 3 * least - 5)]
        for j, (set_size, size) in enumerate(several):
            for f, h in pick(j + 1):
                yield case(f, h, k, m, size, set_size=set_size, stored=(k, m, f) == (2, 1, "container") and size == 3 * least - 5)
        # several groups
        if k <= 2:
            for groups in (1, 2, 3):
                for size in (2 * groups * least - 1, 2 * groups * least, 2 * groups * least + 1, 3 * groups * least + least + 7):
                    for h in HASHES:
                        yield case("container", h, k, m, size, set_size=least, group_size=groups, stored=(k, m) == (2, 1) and (groups, size) == (2, 4 * least + 1))
            for h in HASHES:
                # the last group: one set, smaller L
                yield case("container", h, k, m, 9 * least + 7, set_size=2 * least, group_size=2, stored=(k, m, h) == (1, 1, "sha256"))
                # one group, although groups are bounded
                yield case("container", h, k, m, 5 * least + 1, set_size=least, group_size=7)
                yield case("container", h, k, m, 0, set_size=least, group_size=2)
        else:
            yield case("container", list(HASHES)[number % 2], k, m, least + 99, set_size=least, group_size=1)
    for f, h in both:                                                                  # longer shards: BLAKE3 chunks
        for k, m, size in ((1, 1, 1024), (1, 1, 1025), (1, 1, 2048), (1, 0, 3073), (1, 1, 7000), (2, 1, 100000), (10, 4, 100000), (3, 5, 30000)):
            yield case(f, h, k, m, size)
        # (a body of 65,536 bytes or more begins at a multiple of 4096)
        yield case(f, h, 1, 1, 65535)
        yield case(f, h, 1, 1, 65536 - 63)
        yield case(f, h, 1, 1, 65536 - 64)
        yield case(f, h, 2, 1, 2 * 65536 + 1, set_size=8192)
        if (f, h) != both[1]:
            yield case(f, h, 256, 0, 70000)
        # meta
        for entries in (["sha256"], ["blake3"], ["sha256", "blake3"]):
            for size in (0, 1000):
                yield case(f, h, 2, 1, size, entries=entries, file_name="payload.bin")
        yield case(f, h, 1, 1, 100, entries=["sha256", "blake3"], file_name="n" * 255)
        # 255 bytes in UTF-8, and cut in the names of the shard files
        yield case(f, h, 1, 1, 100, file_name="\u00fc" * 127 + "x")
        yield case(f, h, 1, 1, 100, file_name="x" + "\u00fc" * 127)
        if f == "container":
            yield case(f, h, 1, 1, 100, file_name="a", stored=True)
            yield case(f, h, 1, 1, 3 * 4096 + 1, set_size=4096, group_size=1, file_name="payload.bin", entries=["sha256"], stored=h == "blake3")
            yield case(f, h, 2, 1, 1000, entries=["sha256"])
        # meta that no present writer makes: an unknown odd entry behind the name
        yield case(f, h, 1, 0 if f == "shards" else 1, 100, file_name="payload.bin", extra={"type": 9, "len": 65536 - 14 - 3}, stored=h == "blake3")
        yield case(f, h, 2, 1, 300, file_name="payload.bin", extra={"type": 9, "len": 400}, stored=h == "sha256")
    # the default set_size (65,536 for this shape); one group for the payload, and groups of the default size (3 sets)
    for f, size, grouping in (("shards", 65537, None), ("container", 196608, "bounded"), ("container", 196609, "whole"), ("container", 196609, "bounded")):
        yield case(f, "sha256", 1, 255, size, grouping=grouping)


DEFAULTS = {"set_size": None, "group_size": None, "grouping": None, "file_name": None, "entries": [], "extra": None, "stored": False}


def encode_vector(case):
    v = dict(case)
    form, size, with_path = v["form"], v["payload_len"], v.pop("stored")
    if form == "shards":
        v["file_name"] = v["file_name"] or "payload.bin"
    else:
        v["grouping"] = v["grouping"] or ("bounded" if v["group_size"] else "whole")
    name = "%s-%s-%d+%d-b%d" % (form, v["hash"], v["k"], v["m"], size)
    name += "".join(mark + str(x) for mark, x in (("-s", v["set_size"]), ("-g", v["group_size"])) if x)
    name += "-bounded" if v["grouping"] == "bounded" and not v["group_size"] else ""
    if v["file_name"] and (form, v["file_name"]) != ("shards", "payload.bin"):
        name += "-name%d" % len(v["file_name"].encode()) + ("u" if v["file_name"][0] > "x" else "")
    name += "".join("-" + x for x in v["entries"]) + ("-extra%d" % v["extra"]["len"] if v["extra"] else "")
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    payload = generate(size, seed)
    extra = entry(v["extra"]["type"], generate(v["extra"]["len"], seed)) if v["extra"] else b""
    meta = make_meta((v["file_name"] or "").encode(), payload, [HASHES[x] for x in v["entries"]], extra)
    files, root = encode(FORMS[form], HASHES[v["hash"]], v["k"], v["m"], payload, v["set_size"], v["group_size"], meta, v["grouping"] != "bounded")
    v = dict({"name": name}, **v, seed=seed, meta_len=len(meta), root=root.hex(), file_len=len(files[0]), digests=[hashlib.sha256(x).hexdigest() for x in files])
    if with_path:
        v["path"] = "files/" + name + ("" if form == "shards" else ".fec")
    return v, files


def error_cases():
    """(name, rule, class, bytes or {file name: bytes}, root or None, payload or None, {more fields of the vector})"""
    out = []

    def add(name, rule, cls, what, root=None, payload=None, **more):
        if isinstance(what, list):
            what = shard_names("x", what)
        assert (cls is None) == (payload is not None), name
        out.append((name, rule, cls, what, root, payload, more))

    for kind in (rules_of_sets, rules_of_meta_and_index, what_a_reader_finds):
        kind(add)
    return out


def golden(folder):
    for old in ("files", "errors"):
        shutil.rmtree(os.path.join(folder, old), ignore_errors=True)
    vectors = []
    for case in encode_cases():
        v, files = encode_vector(case)
        vectors.append(v)
        if "path" in v and v["form"] == "container":
            store(os.path.join(folder, v["path"]), files[0])
        elif "path" in v:
            for name, data in shard_names(v["file_name"].encode(), files).items():
                store(os.path.join(folder, v["path"], name), data)
    assert len({v["name"] for v in vectors}) == len(vectors)
    write_json(os.path.join(folder, "encode.json"), vectors)
    errors, places = [], {}
    for name, rule, cls, what, root, payload, more in error_cases():
        where = "errors/" + name + ("" if isinstance(what, dict) else ".fec")
        # the same bytes are stored once
        where = places.setdefault(tuple(sorted(what.items())) if isinstance(what, dict) else what, where)
        for file, data in what.items() if isinstance(what, dict) else [("", what)]:
            store(os.path.join(folder, where, file).rstrip("/"), data)
        v = {"name": name, "rule": rule, "path": where, "root": root.hex() if root else None, "class": cls, "exit": EXIT[cls]}
        if payload is not None:
            v.update(payload_len=len(payload), payload_sha256=hashlib.sha256(payload).hexdigest())
        v.update(more)
        errors.append(v)
    assert len({v["name"] for v in errors}) == len(errors)
    write_json(os.path.join(folder, "errors.json"), errors)
    print("%d encodings, %d errors" % (len(vectors), len(errors)))


def check(folder):
    bad = 0

    def complain(text, *more):
        nonlocal bad
        bad += 1
        print("\n    ".join([text, *more]))

    def expect(name, result, cls, payload_sha, root):
        sha = hashlib.sha256(result.payload).hexdigest() if result.payload is not None else None
        if result.cls != cls or sha != payload_sha or root and not result.cls and result.root.hex() != root:
            complain("%s: class %s instead of %s, root %s" % (name, result.cls, cls, result.root and result.root.hex()), *result.lines[-30:])

    with open(os.path.join(folder, "encode.json"), encoding="utf-8") as f:
        vectors = {v["name"]: v for v in json.load(f)}
    for case in encode_cases():
        v, files = encode_vector(case)
        shards = v["form"] == "shards"
        if vectors.pop(v["name"], None) != v:
            complain(v["name"] + ": differs")
        payload = generate(v["payload_len"], v["seed"])
        sha = hashlib.sha256(payload).hexdigest()
        if "path" in v:
            blobs, _ = load([os.path.join(folder, v["path"])])
            if [x for _, x in blobs] != files:
                complain(v["name"] + ": the stored files differ")
        blobs = [(str(i), x) for i, x in enumerate(files)]
        result = read_all(blobs, shards, strict=v["file_len"] < 10000)
        expect(v["name"], result, None, sha, v["root"])
        if not result.clean or len(result.meta) != v["meta_len"]:
            complain(v["name"] + ": not clean")
        # the first m of n shards lost: the most that can be repaired
        m, n = v["m"], v["k"] + v["m"]
        if v["k"] < 200 and v["payload_len"] % 2 or v["payload_len"] % 3 == 0:
            if not shards:
                records = Scan(files[0], Notes()).records
                blobs = [("cut", b"".join(files[0][r.pos:r.end] for r in records if (r.i + r.s + r.pg.nr) % n >= m))]
            expect(v["name"] + " (repaired)", read_all(blobs[m:] if shards else blobs, shards), None, sha, v["root"])
    for name in vectors:
        complain(name + ": not written by this program")
    with open(os.path.join(folder, "errors.json"), encoding="utf-8") as f:
        errors = json.load(f)
    for v in errors:
        result = read_all(*load([os.path.join(folder, v["path"])]), bytes.fromhex(v["root"]) if v["root"] else None, v.get("strict", False))
        expect(v["name"], result, v["class"], v.get("payload_sha256"), v["root"])
        if result.exit != v["exit"]:
            complain(v["name"] + ": exit")
        if "verify" in v and v["verify"] != (0 if result.clean else 1):
            complain(v["name"] + ": verify", *result.lines)
        if "file_name" in v and (result.meta is None or check_meta(result.meta).get(2) != v["file_name"].encode()):
            complain(v["name"] + ": the name")
        if "meta_lost" in v and result.meta is not None:
            complain(v["name"] + ": the meta is there")
    print("%d errors; %s" % (len(errors), "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0
