#!/usr/bin/env python3
"""Lists the imports between the files of the crates that run up, and the circles of files. Fails on one of either.

    scripts/check-layers.py [ROOT]              checks crates/*/src below ROOT against its scripts/layers.txt
    scripts/check-layers.py --arrows [ROOT]     prints every import between two files, and checks nothing
    scripts/check-layers.py --selftest

ROOT is this script's project if it is not given. The exit code is 0 when all is well, 1 when not, 2 for wrong usage.

An arrow A → B stands where code of A names an item that B defines: in a `use`, or by a path such as `stages::enter`. Names are
followed through re-exports and modules to where they are defined, so `pub use` and `mod` alone are no arrows. A name that is not
found in its module (a macro made it) counts as defined in the module's own file. Tests, comments and strings do not count.
Methods and fields do not either: whoever calls one mostly has the type from somewhere, and that is an arrow.
This reads tokens, it does not compile: every `cfg` but `test` is on, and a `use` in a function holds for its whole module.
"""

import pathlib
import re
import sys

TOKEN = re.compile(r"""
    (?P<comment> //[^\n]* ) | (?P<block> /\* )
  | (?P<string> (?:b|c)?r(?P<hashes>\#*)"[\s\S]*?"(?P=hashes) | (?:b|c)?"(?:\\[\s\S]|[^"\\])*" )
  | (?P<char> b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])' ) | (?P<lifetime> '[^\W\d]\w* )
  | (?P<name> (?:r\#)?[^\W\d]\w* ) | (?P<other> \d\w* | :: | \.\.\.? | \S )""", re.VERBOSE)
DEFINING = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro_rules"}
OPEN, CLOSE = set("([{"), set(")]}")
EXTERNAL = "external"


class Module:
    """A module, in a file of its own or inside one, and what its code says."""

    def __init__(self, file, parent=None):
        self.file, self.parent, self.root = file, parent, parent.root if parent else self
        self.items, self.children = set(), {}
        self.uses = []  # (name or "*", path, line, whether it is a re-export)
        self.paths = []  # (path, line)


def tokens_of(text):
    """(token, line) pairs without comments; a string becomes `""`."""
    tokens, at, line = [], 0, 1
    while match := TOKEN.search(text, at):
        line += text.count("\n", at, match.start())
        at = match.end()
        if match["block"]:
            depth = 1
            while depth and (edge := re.compile(r"/\*|\*/").search(text, at)):
                depth, at = depth + (1 if edge[0] == "/*" else -1), edge.end()
        elif match["string"]:
            tokens.append(('""', line))
        elif match["name"] or match["other"]:
            tokens.append((match[0].removeprefix("r#"), line))
        line += text.count("\n", match.start(), at)
    return tokens


def end_of_group(tokens, at):
    """The index behind the group that the bracket at `at` opens."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at][0] in OPEN) - (tokens[at][0] in CLOSE)
        at += 1
        if depth == 0:
            break
    return at


def without_tests(tokens):
    """Leaves out whatever stands behind `#[cfg(test)]`."""
    kept, at = [], 0
    while at < len(tokens):
        if tokens[at][0] == "#" and tokens[at + 1][0] == "[":
            end = end_of_group(tokens, at + 1)
            attribute = [token for token, _ in tokens[at + 2:end - 1]]
            if attribute[:1] == ["path"]:
                raise SystemExit(f"check-layers: #[path] in line {tokens[at][1]}: not known here")
            if attribute == ["cfg", "(", "test", ")"] or attribute[:5] == ["cfg", "(", "all", "(", "test"]:
                at = end_of_item(tokens, end)
                continue
            kept += tokens[at:end]
            at = end
        else:
            kept.append(tokens[at])
            at += 1
    return kept


def end_of_item(tokens, at):
    """The index behind an item, statement, field or arm, with the attributes before it."""
    while tokens[at][0] == "#":
        at = end_of_group(tokens, at + 1)
    comma_ends = tokens[at][0] not in DEFINING | {"pub", "use", "impl", "unsafe", "extern", "async"}
    while at < len(tokens) and tokens[at][0] not in CLOSE:
        token = tokens[at][0]
        at = end_of_group(tokens, at) if token in OPEN else at + 1
        if token in ";{" or token == "," and comma_ends:
            break
    return at


def use_tree(tokens, at, prefix):
    """The (name, path, line) of a use tree at `at`, and the index behind it."""
    path, found = list(prefix), []
    while True:
        token, line = tokens[at]
        if token == "{":
            at += 1
            while tokens[at][0] != "}":
                more, at = use_tree(tokens, at, path)
                found += more
                at += tokens[at][0] == ","
            return found, at + 1
        if token == "*":
            return [("*", path, line)], at + 1
        if token != "::" or not path:
            path.append("" if token == "::" else token)
        if tokens[at + 1][0] != "::" and token != "::":
            break
        at += 1
    if path[-1] == "self" and len(path) > 1:
        path.pop()
    if tokens[at + 1][0] == "as":
        return [(tokens[at + 2][0], path, line)], at + 3
    return [(path[-1], path, line)], at + 1


def load(files, file, base, parent=None):
    """The module in `file`, with all modules below it; `base` is the folder of its children."""
    top = module = Module(file, parent)
    tokens = without_tests(tokens_of(files[file]))
    tokens += [(";", 0)] * 4
    blocks = []  # for each open brace the module around it if it opens one, or None
    at = 0
    while at < len(tokens) - 4:
        (token, line), (after, _) = tokens[at], tokens[at + 1]
        before = tokens[at - 1][0] if at else ";"
        at += 1
        if token == "pub" and after == "(":
            end = end_of_group(tokens, at)
            # In a tuple struct the parentheses may be a type.
            at = end if tokens[at + 1][0] in ("crate", "super", "self", "in") else at
            token = "pub" if tokens[at][0] == "use" else ""
            after = tokens[at][0]
        if token == "pub" and after == "use":
            found, at = use_tree(tokens, at + 1, [])
            module.uses += [(*use, True) for use in found]
        elif token == "use" and after != "<":
            found, at = use_tree(tokens, at, [])
            module.uses += [(*use, False) for use in found]
        elif token == "mod" and tokens[at + 1][0] == "{":
            blocks.append(module)
            module = module.children.setdefault(after, Module(file, module))
            base += f"{after}/"
            at += 2
        elif token == "mod" and tokens[at + 1][0] == ";":
            for child in (f"{base}{after}.rs", f"{base}{after}/mod.rs"):
                if child in files:
                    module.children[after] = load(files, child, f"{base}{after}/", module)
            at += 2
        elif token == "{":
            blocks.append(None)
        elif token == "}" and blocks:
            outer = blocks.pop()
            if outer:
                module, base = outer, base[:base.rindex("/", 0, -1) + 1]
        elif token in DEFINING:
            at += (token, after) in (("macro_rules", "!"), ("static", "mut"))
            if re.match(r"[^\W\d]", tokens[at][0]) and tokens[at][0] not in DEFINING | {"unsafe", "extern", "async"}:
                if not any(block is None for block in blocks):
                    module.items.add(tokens[at][0])
                at += 1
        elif (re.match(r"[^\W\d]", token) or token == "::" and before not in (">", "::")) and before not in (".", "::"):
            if before == "$" and token != "crate":
                continue
            path = ["" if token == "::" else token]
            at -= token == "::"
            while tokens[at][0] == "::" and re.match(r"[^\W\d]", tokens[at + 1][0]):
                path.append(tokens[at + 1][0])
                at += 2
            # One small word alone is a function or a macro only where it is called.
            if len(path) > 1 or not path[0][:1].islower() or tokens[at][0] in ("(", "!"):
                module.paths.append((path, line))
            at += token == "::" and len(path) == 1
    return top


class Names:
    """Finds what a path means. The answer is a Module, an item as (file, name), or EXTERNAL."""

    def __init__(self, crates):
        self.crates, self.busy = crates, set()

    def resolve(self, module, path, wants_module=False):
        at, rest = module, list(path)
        if rest[0] in ("crate", "self", "super"):
            at = module.root if rest[0] == "crate" else module
            while rest and rest[0] in ("crate", "self", "super"):
                at = at.parent or at if rest.pop(0) == "super" else at
        else:
            head = None if rest[0] == "" else self.look_up(module, rest[0], wants_module or len(rest) > 1)
            at = head or self.crates.get(rest[rest[0] == ""] if path != [""] else "", EXTERNAL)
            rest = rest[1 + (rest[0] == ""):]
        for index, name in enumerate(rest):
            if not isinstance(at, Module):
                return at
            at = self.look_up(at, name, wants_module or index + 1 < len(rest)) or (at.file, name)
        return at

    def look_up(self, module, name, wants_module):
        key = (id(module), name, wants_module)
        if key in self.busy:
            return None
        self.busy.add(key)
        try:
            return self.search(module, name, wants_module)
        finally:
            self.busy.remove(key)

    def search(self, module, name, wants_module):
        item = (module.file, name) if name in module.items else None
        child = module.children.get(name)
        if first := child if wants_module else item:
            return first
        named = [self.resolve(module, path, wants_module) for alias, path, *_ in module.uses if alias == name]
        if found := named[0] if named else child or item:
            return found
        for alias, path, *_ in module.uses:
            if alias == "*" and isinstance(target := self.resolve(module, path, True), Module):
                if found := self.look_up(target, name, wants_module):
                    return found
        return None


def walk(module):
    yield module
    for child in module.children.values():
        yield from walk(child)


def arrows_of(files):
    """{(A, B): {item: line in A}} and all files that are compiled; `files` maps `crate/path` to text."""
    roots, crates = [], {}
    for file in sorted(files):
        crate, inner = file.split("/", 1)
        if inner in ("lib.rs", "main.rs") or re.fullmatch(r"bin/[^/]+\.rs", inner):
            roots.append(load(files, file, file[:file.rindex("/") + 1]))
            if inner == "lib.rs":
                crates[crate.replace("-", "_")] = roots[-1]
    names, arrows, nodes = Names(crates), {}, set()
    for module in (module for root in roots for module in walk(root)):
        nodes.add(module.file)
        said = [(path, line, alias == "*") for alias, path, line, exported in module.uses if not exported]
        for path, line, wants_module in said + [(path, line, False) for path, line in module.paths]:
            target = names.resolve(module, path, wants_module)
            if isinstance(target, tuple) and target[0] != module.file:
                arrows.setdefault((module.file, target[0]), {}).setdefault(target[1], line)
    return arrows, nodes


def circles_of(arrows, nodes):
    """The strongly connected components of more than one file (Tarjan)."""
    after = {}
    for a, b in sorted(arrows):
        after.setdefault(a, []).append(b)
    number, low, stack, circles = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in after.get(node, []):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(nodes):
        if node not in number:
            visit(node)
    return circles


def floors_of(layers, nodes):
    """The (crate, layer) of each file as numbers from the bottom, and what is wrong with the text `layers`."""
    entries, errors, crates, layer = {}, [], [], 0
    for line in layers.splitlines():
        words = line.split("#")[0].split()
        layer += 1
        if len(words) == 1 and words[0].startswith("["):
            crates.append(words[0].strip("[]"))
            continue
        for word in words:
            name = f"{crates[-1] if crates else '?'}/{word.removesuffix('/')}"
            if name in entries:
                errors.append(f"layers.txt names {name} twice")
            entries[name] = (len(crates), layer)
    floors, matched = {}, set()
    for node in sorted(nodes):
        # A file by its name, by its module's, or by a folder's around it.
        names = [node, node.removesuffix(".rs")] + [node[:at.start()] for at in re.finditer("/", node)][::-1]
        found = next((name for name in names if name in entries), None)
        if found:
            matched.add(found)
            floors[node] = entries[found]
        else:
            errors.append(f"layers.txt has no layer for {node}")
    errors += [f"layers.txt names {name}, which is no file's nearest name" for name in entries if name not in matched]
    return floors, errors


def check(files, layers):
    """The lines of a report: wrong layers, imports that run up, circles."""
    arrows, nodes = arrows_of(files)
    floors, report = floors_of(layers, nodes)

    def show(a, b):
        (item, line), *more = arrows[a, b].items()
        return f"{a}:{line} → {b} ({item}{f' and {len(more)} more' if more else ''})"

    report += [f"up: {show(a, b)}" for a, b in sorted(arrows) if a in floors and b in floors and floors[a] < floors[b]]
    for circle in circles_of(arrows, nodes):
        report.append(f"circle of {len(circle)} files: {' '.join(circle)}")
        report += [f"    {show(a, b)}" for a, b in sorted(arrows) if a in circle and b in circle]
    return report


def main(arguments):
    options = [argument for argument in arguments if argument.startswith("-")]
    roots = [argument for argument in arguments if not argument.startswith("-")]
    if options in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if options == ["--selftest"] and not roots:
        return selftest()
    if options not in ([], ["--arrows"]) or len(roots) > 1:
        print("usage: scripts/check-layers.py [--arrows | --selftest] [ROOT]", file=sys.stderr)
        return 2
    root = pathlib.Path(roots[0]) if roots else pathlib.Path(__file__).resolve().parent.parent
    files = {}
    for source in root.glob("crates/*/src"):
        for file in source.rglob("*.rs"):
            files[f"{source.parent.name}/{file.relative_to(source).as_posix()}"] = file.read_text(encoding="utf-8")
    if not files:
        print(f"check-layers: no crates/*/src below {root}", file=sys.stderr)
        return 2
    if options:
        for (a, b), items in sorted(arrows_of(files)[0].items()):
            print(f"{a} → {b}: {', '.join(items)}")
        return 0
    layers = root / "scripts/layers.txt"
    report = check(files, layers.read_text(encoding="utf-8") if layers.exists() else "")
    print("\n".join(report) if report else f"check-layers: {len(files)} files, no import up, no circle")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
