"""The golden vectors of sidecars."""
import json
import os
import shutil

from ..basics import Fault, store
from .errors import error_cases
from .files import Originals, mend, sets_of
from .parts import EXITS, FILE
from .pieces import Reader
from .protected import items_of, protect_cases, protect_vector
from .trees import tree_cases, tree_vector
from .verdict import table


def read_class(data, root):
    """(class, catalog, text, findings)"""
    try:
        reader = Reader(data, root)
    except Fault as fault:
        return fault.cls, None, fault.text, None
    return None, reader.catalog, "", dict(recovery=list(reader.count()), displaced=reader.displaced, generation=reader.catalog.generation, newer=reader.newer)


def golden(place):
    shutil.rmtree(os.path.join(place, "sidecar-errors"), ignore_errors=True)
    protects = [protect_vector(case)[0] for case in protect_cases()]
    assert len({v["name"] for v in protects}) == len(protects)
    errors, places = [], {}
    for name, rule, cls, data, root, more in error_cases():
        where = places.setdefault(data, "sidecar-errors/%s.fecp" % name)        # the same bytes are stored once
        store(os.path.join(place, where), data)
        errors.append({"name": name, "rule": rule, "path": where, "root": root.hex() if root else None, "class": cls, "exit": EXITS[cls], **more})
    assert len({v["name"] for v in errors}) == len(errors)
    cases, trees = {v["name"]: v for v in protects}, []
    for name, of, sidecar, damages, states, able in tree_cases():
        tree = cases[of]["tree"]
        data = protect_vector({x: cases[of][x] for x in ("name", "redundancy", "base", "tree")})[1]
        where = None
        if sidecar:
            where = "sidecar-errors/%s.fecp" % sidecar
            data = next(x for x, y in places.items() if y == where)
        found = tree_vector(name, tree, data, damages)
        assert found.get("class") == states if isinstance(states, str) else (states is None or found["states"] == {x.hex(): y for x, y in states.items()}) and found["mendable"] == able, (name, found)
        trees.append(dict(name=name, protect=of, sidecar=where, damages=damages, **found))

    def rows(items):
        return "[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in items) + "\n]"

    store(os.path.join(place, "sidecar.json"), ('{"protect": %s,\n"errors": %s,\n"trees": %s}\n' % (rows(protects), rows(errors), rows(trees))).encode())
    found = table()
    store(os.path.join(place, "verdicts.json"), ('{%s}\n' % ",\n".join('"%s": %s' % (name, rows(found[name])) for name in found)).encode())
    print("%d sidecars, %d errors, %d trees" % (len(protects), len(errors), len(trees)))


def check(place):
    bad = 0

    def complain(text):
        nonlocal bad
        bad += 1
        print(text)

    with open(os.path.join(place, "sidecar.json"), encoding="utf-8") as f:
        stored = json.load(f)
    with open(os.path.join(place, "verdicts.json"), encoding="utf-8") as f:
        if json.load(f) != table():
            complain("verdicts.json: differs")
    cases = {case["name"]: case for case in protect_cases()}
    for v in stored["protect"]:
        case = cases.pop(v["name"], None)
        made, data = protect_vector({x: v[x] for x in ("name", "redundancy", "base", "tree")})
        if made != v or case is None or {x: v[x] for x in case} != case:
            complain(v["name"] + ": differs")
            continue
        items = sorted(items_of(v["tree"]))
        for root in (None, bytes.fromhex(v["root"])):
            cls, catalog, text, found = read_class(data, root)
            if cls or found["recovery"][0] != found["recovery"][1] or found["displaced"] or catalog.hint.hex() != v["base"]:
                complain("%s: %s %s" % (v["name"], cls, text))
                break
            if [(x.path, x.kind & 15, x.mode, x.seconds, x.nanos) for x in catalog.entries] != [(x.path, x.kind, x.mode, x.seconds, x.nanos) for x in items]:
                complain(v["name"] + ": the entries are not what was protected")
        else:
            contents = {n: x.content for n, x in enumerate(items) if x.kind == FILE}
            originals = Originals(catalog, contents)
            if None in originals.rows:
                complain(v["name"] + ": an original does not have its digest")
            # Each set loses as many originals as can be mended.
            for group, spots, _ in sets_of(catalog, originals, [[None] * (g.m * g.G) for g in catalog.groups]):
                for p in spots[:group.m] if len(spots) % 2 else spots[-group.m:]:
                    originals.rows[p] = None
            reader = Reader(data)
            before = Originals(catalog, contents).rows
            rows, wrong = mend(catalog, originals, reader.recovery)
            if wrong or any(x != y for x, y, z in zip(rows, before, originals.named) if z):
                complain(v["name"] + ": not mended")
    for name in cases:
        complain(name + ": no vector")
    for v in stored["errors"]:
        with open(os.path.join(place, v["path"]), "rb") as f:
            data = f.read()
        cls, catalog, text, found = read_class(data, bytes.fromhex(v["root"]) if v["root"] else None)
        if cls != v["class"] or EXITS[cls] != v["exit"]:
            complain("%s: class %s instead of %s: %s" % (v["name"], cls, v["class"], text))
        elif not cls and (catalog.root.hex() != v["found"] or any(v.get(x, {"generation": 1, "newer": None, "displaced": 0}.get(x)) != y for x, y in found.items())):
            complain("%s: root %s, %s" % (v["name"], catalog.root.hex(), found))
    cases = {case["name"]: case for case in protect_cases()}
    for v in stored["trees"]:
        if v["sidecar"]:
            with open(os.path.join(place, v["sidecar"]), "rb") as f:
                data = f.read()
        else:
            data = protect_vector(cases[v["protect"]])[1]
        found = tree_vector(v["name"], cases[v["protect"]]["tree"], data, v["damages"])
        if any(v[x] != y for x, y in found.items()):
            complain("%s: %s" % (v["name"], found))
    print("%d sidecars, %d errors, %d trees; %s" % (len(stored["protect"]), len(stored["errors"]), len(stored["trees"]), "%d BAD" % bad if bad else "all good"))
    return 1 if bad else 0
