#!/usr/bin/env python3
"""Lists the imports between the files of the crates that run up, and the circles of files. Fails on one of either.

ROOT/scripts/checks/layers.txt says what is up. The exit code is 0 when all is well, 1 when not, 2 for wrong usage.

An arrow A → B stands where code of A names an item that B defines: in a `use`, or by a path such as `stages::enter`.
Names are followed through re-exports and modules to where they are defined, so `pub use` and `mod` alone are no arrows.
A name that is not found in its module (a macro made it) counts as defined in the module's own file. Tests, comments and
strings do not count. Methods and fields do not either: whoever calls one has its type from somewhere, and that mostly
is an arrow. This reads tokens and compiles nothing: every `cfg` but `test` is on, and a `use` in a function holds for
its whole module.
"""

import argparse
import pathlib
import re
import sys

TOKEN = re.compile(r"""
    //.* | /\*[\s\S]*?\*/ | (?:b|c)?r(?P<hashes>\#*)"[\s\S]*?"(?P=hashes) | (?:b|c)?"(?:\\[\s\S]|[^"\\])*"
  | b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])' | '[^\W\d]\w*
  | (?P<token> (?:r\#)?[^\W\d]\w* | \d\w* | :: | \.\.\.? | \S )""", re.VERBOSE)
DEFINING = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules", "mod"}


def tokens_of(text):
    """The tokens as (text, line), without comments, strings and lifetimes."""
    return [(m["token"].removeprefix("r#"), text.count("\n", 0, m.start()) + 1) for m in TOKEN.finditer(text) if m["token"]]


def is_name(token):
    return token[0].isalpha() or token[0] == "_"


def end_of_group(tokens, at):
    """The index behind the group that the bracket at `at` opens."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at][0] in "([{") - (tokens[at][0] in ")]}")
        at += 1
        if depth == 0:
            break
    return at


def without_tests(tokens):
    """Leaves out each item behind `#[cfg(test)]`: up to its semicolon or the end of its braces."""
    kept, at = [], 0
    while at < len(tokens):
        start, test = at, False
        while [token for token, _ in tokens[at:at + 2]] == ["#", "["]:
            attribute = "".join(token for token, _ in tokens[at:at + 7])
            test |= attribute.startswith(("#[cfg(test)", "#[cfg(all(test"))
            at = end_of_group(tokens, at + 1)
        if test:
            while tokens[at][0] not in "{;":
                at = end_of_group(tokens, at)
            at = end_of_group(tokens, at)
        else:
            at = max(at, start + 1)
            kept += tokens[start:at]
    return kept


class Module:
    """A module, in a file of its own or inside one, and what its code says."""

    def __init__(self, file, parent, crates):
        self.file, self.parent, self.root, self.crates = file, parent, parent.root if parent else self, crates
        self.items, self.children = set(), {}
        self.uses = []  # (name or "*", path, line, whether it is a re-export)
        self.paths = []  # (path, line)

    def look_up(self, name, wants_module, busy):
        """The meaning of `name` here: a Module, an item as (file, name), "external", or None if it is unknown."""
        key = (self, name, wants_module)
        if key in busy:
            return None
        busy |= {key}
        item = (self.file, name) if name in self.items else None
        child = self.children.get(name)
        if child if wants_module else item:
            return child if wants_module else item
        for alias, path, *_ in self.uses:
            if alias == name:
                return self.resolve(path, wants_module, busy)
        globs = (self.resolve(path, True, busy) for alias, path, *_ in self.uses if alias == "*")
        found = (target.look_up(name, wants_module, busy) for target in globs if isinstance(target, Module))
        return child or item or next(filter(None, found), None)

    def resolve(self, path, wants_module=False, busy=frozenset()):
        """The meaning of `path` here: a Module, an item as (file, name), or "external"."""
        at, (head, *rest) = self, path
        if head in ("crate", "self", "super"):
            at = self.root if head == "crate" else self if head == "self" else self.parent
            while rest[:1] == ["super"]:
                at, rest = at.parent, rest[1:]
        else:
            at = self.look_up(head, wants_module or bool(rest), busy) or self.crates.get(head, "external")
        for index, name in enumerate(rest, 1):
            if not isinstance(at, Module):
                return at
            at = at.look_up(name, wants_module or index < len(rest), busy) or (at.file, name)
        return at

    def walk(self):
        yield self
        for child in self.children.values():
            yield from child.walk()


def use_tree(tokens, at, prefix=()):
    """The (name, path, line) of the use tree at `at`, and the index behind it."""
    path, found = list(prefix), []
    while tokens[at][0] == "::" or tokens[at + 1][0] == "::":
        path += [tokens[at][0]] * (tokens[at][0] != "::")
        at += 1
    token, line = tokens[at]
    at += 1
    if token == "*":
        return [("*", path, line)], at
    if token == "{":
        while tokens[at][0] != "}":
            more, at = use_tree(tokens, at, path)
            found += more
            at += tokens[at][0] == ","
        return found, at + 1
    path += [token] * (token != "self" or not path)
    if tokens[at][0] == "as":
        return [(tokens[at + 1][0], path, line)], at + 2
    return [(path[-1], path, line)], at


def load(files, file, folder, parent, crates):
    """The module in `file`, with all modules below it, whose files are in `folder`."""
    top = module = Module(file, parent, crates)
    tokens = without_tests(tokens_of(files[file])) + [(";", 0)] * 3
    around = []  # for each open brace the module around it, if the brace opens a module
    at = 0
    while at < len(tokens) - 3:
        (token, line), (after, _), (second, _) = tokens[at:at + 3]
        before = tokens[at - 1][0] if at else ";"
        at += 1
        if token == "use" and after != "<":
            found, at = use_tree(tokens, at)
            module.uses += [(*use, before in ("pub", ")")) for use in found]
        elif token == "mod" and second == ";":
            child = next((name for name in (f"{folder}{after}.rs", f"{folder}{after}/mod.rs") if name in files), None)
            if not child:
                raise SystemExit(f"layers: {file}:{line}: no file for the module {after} where it usually is")
            module.children[after] = load(files, child, f"{folder}{after}/", module, crates)
        elif token == "mod" and second == "{":
            around.append(module)
            module = module.children.setdefault(after, Module(file, module, crates))
            at += 2
        elif token == "{":
            around.append(None)
        elif token == "}" and around:
            module = around.pop() or module
        elif token in DEFINING and before != "*" and all(around):
            module.items.add(second if after in ("!", "mut") else after)
        elif is_name(token) and before not in DEFINING | {".", "$"} or token == "crate":
            path = [token]
            while tokens[at][0] == "::" and is_name(tokens[at + 1][0]):
                path.append(tokens[at + 1][0])
                at += 2
            # A single small word is a function or a macro, if it is called. A word behind a type in brackets belongs to
            # that type.
            called = tokens[at][0] in ("(", "!")
            if len(path) > 1 or before != "::" and (called or not token[0].islower()):
                module.paths.append((path, line))
    return top


def arrows_of(files):
    """{(A, B): {item: line in A}}, and all files that are compiled. `files` has the texts by crate/path."""
    roots, crates, arrows = [], {}, {}
    for file in sorted(files):
        crate, inner = file.split("/", 1)
        if re.fullmatch(r"lib\.rs|main\.rs|bin/\w+\.rs", inner):
            roots.append(load(files, file, file[:file.rindex("/") + 1], None, crates))
            if inner == "lib.rs":
                crates[crate.replace("-", "_")] = roots[-1]
    modules = [module for root in roots for module in root.walk()]
    for module in modules:
        named = [(path, line, alias == "*") for alias, path, line, exported in module.uses if not exported]
        for path, line, wants_module in named + [(path, line, False) for path, line in module.paths]:
            target = module.resolve(path, wants_module)
            if isinstance(target, tuple) and target[0] != module.file:
                arrows.setdefault((module.file, target[0]), {}).setdefault(target[1], line)
    return arrows, sorted({module.file for module in modules})


def circles_of(arrows):
    """The sets of files of which each reaches each."""
    reached = {}
    for start, _ in arrows:
        new, reached[start] = {start}, set()
        while new:
            new = {b for a, b in arrows if a in new} - reached[start]
            reached[start] |= new
    circles = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in reached if a in reached[a]}
    return sorted(sorted(circle) for circle in circles)


def floors_of(layers, nodes):
    """{file: (crate, line), counted from the bottom}, and what is wrong with the text `layers`."""
    entries, crates, floors, report = {}, ["?"], {}, []
    for number, line in enumerate(layers.splitlines()):
        words = line.split("#")[0].split()
        if words and words[0][0] == "[":
            crates.append(words.pop(0).strip("[]"))
        for word in words:
            name = f"{crates[-1]}/{word.removesuffix('/')}"
            if entries.setdefault(name, (len(crates), number)) != (len(crates), number):
                report.append(f"layers.txt names {name} twice")
    unused = set(entries)
    for node in nodes:
        # By its own name, by its module's, or by that of a folder around it, the inner one first.
        names = [node, node.removesuffix(".rs")] + [node[:m.start()] for m in re.finditer("/", node)][::-1]
        found = next((name for name in names if name in entries), None)
        unused.discard(found)
        if found:
            floors[node] = entries[found]
        else:
            report.append(f"layers.txt has no layer for {node}")
    return floors, report + [f"layers.txt names {name}, but no file takes its layer from that" for name in sorted(unused)]


def check(files, layers):
    """The lines of the report; none if all is well."""
    arrows, nodes = arrows_of(files)
    floors, report = floors_of(layers, nodes)

    def show(a, b):
        (item, line), *more = arrows[a, b].items()
        return f"{a}:{line} → {b} ({item}{f' and {len(more)} more' if more else ''})"

    report += ["up: " + show(a, b) for a, b in sorted(arrows) if a in floors and b in floors and floors[a] < floors[b]]
    for circle in circles_of(arrows):
        report.append(f"circle of {len(circle)} files: {' '.join(circle)}")
        report += ["    " + show(a, b) for a, b in sorted(arrows) if a in circle and b in circle]
    return report


# Two small crates, and every arrow that they have.
NAMES = {
    "low-part/lib.rs": "pub mod inner; pub mod helper; pub use inner::Deep as Shallow;",
    "low-part/helper.rs": "pub fn help() {} pub const LONE: u8 = 1; macro_rules! twice { () => {} } pub(crate) use twice;",
    "low-part/inner/mod.rs": """
        mod deep; mod other; pub use deep::{Deep, make}; pub(crate) use self::other::*;
        fn shared() {} fn other() {} thread_local! { static ROOM: u8 = 1; }
        #[cfg(test)] use crate::helper::help;
        #[cfg(test)] mod tests { use super::other::Other; fn f() { crate::helper::help(); } }""",
    "low-part/inner/deep.rs": """
        // use crate::helper::help;
        /* crate::helper::help() */
        use super::{ROOM, other::{self, Other as Another}}; pub struct Deep; pub fn make() { other::build(); super::shared() }
        const TEXT: &str = r#"crate::helper::help() " "#; const QUOTE: char = '"'; fn f<'a>(x: &'a str) { x.help(); self::make() }""",
    "low-part/inner/other.rs": """
        pub struct Other; pub fn build() { crate::helper::twice!(); mod inside { fn f() { super::super::shared(); super::build(); } } }""",
    "top/main.rs": "mod far; mod near; mod plain; use far::*; fn main() { let help = near::run(|| Way); help + Vec::<u8>::help(); }",
    "top/far.rs": """
        pub use {crate::near::run, low_part::helper::help}; pub struct Way; impl Way { fn run() {} }
        fn f() { let make = low_part::inner::make; ::low_part::Shallow; }""",
    "top/near.rs": "pub fn run() { use crate::far as there; there::Way; low_part::helper::LONE; low_part::inner::Other; }",
    "top/plain.rs": "#![allow(unused)] fn f() { Vec::<u8>::run(); super::run(); missing::run() } use std::fmt;",
}
NAMES_ARROWS = """\
low-part/inner/deep.rs → low-part/inner/mod.rs: ROOM, other, shared
low-part/inner/deep.rs → low-part/inner/other.rs: Other, build
low-part/inner/other.rs → low-part/helper.rs: twice
low-part/inner/other.rs → low-part/inner/mod.rs: shared
top/far.rs → low-part/inner/deep.rs: Deep, make
top/main.rs → top/far.rs: Way
top/main.rs → top/near.rs: run
top/near.rs → low-part/helper.rs: LONE
top/near.rs → low-part/inner/other.rs: Other
top/near.rs → top/far.rs: Way
top/plain.rs → top/near.rs: run
"""
# Two more, with layers for them, and the report.
FLOORS = {
    "one/lib.rs": "mod a; mod b; mod c; mod d;",
    "one/a.rs": "use crate::b::*; pub struct A; fn f(b: B, c: super::c::C) {}",
    "one/b.rs": "pub struct B; pub struct Next(crate::a::A, super::a::A);",
    "one/c.rs": "pub struct C; use crate::d::D; use two::{T, U};",
    "one/d/mod.rs": "mod e; pub struct D; use e::E;",
    "one/d/e.rs": "pub struct E;",
    "two/lib.rs": "mod free; pub struct T; pub struct U; use one::d::D;",
    "two/free.rs": "",
}
FLOORS_LAYERS = """
[one]
c     # a comment
d/e b
a b
d  none/
lib.rs

[two]
lib.rs"""
FLOORS_REPORT = """\
layers.txt names one/b twice
layers.txt has no layer for two/free.rs
layers.txt names one/none, but no file takes its layer from that
up: one/b.rs:1 → one/a.rs (A)
up: one/c.rs:1 → one/d/mod.rs (D)
up: one/c.rs:1 → two/lib.rs (T and 1 more)
circle of 2 files: one/a.rs one/b.rs
    one/a.rs:1 → one/b.rs (B)
    one/b.rs:1 → one/a.rs (A)
"""


def selftest():
    arrows = "".join(f"{a} → {b}: {', '.join(sorted(items))}\n" for (a, b), items in sorted(arrows_of(NAMES)[0].items()))
    report = "".join(line + "\n" for line in check(FLOORS, FLOORS_LAYERS))
    for found, wanted in (arrows, NAMES_ARROWS), (report, FLOORS_REPORT):
        if found != wanted:
            print(f"layers: the self-test failed. It found\n{found}and should have found\n{wanted}", end="")
            return 1
    print("layers: the self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path,
                        metavar="ROOT", help="the project; this script's own if it is not given")
    parser.add_argument("--arrows", action="store_true", help="only print every arrow, with all its items")
    parser.add_argument("--selftest", action="store_true", help="check this script with tiny crates")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    files = {}
    for source in options.root.glob("crates/*/src"):
        for file in source.rglob("*.rs"):
            files[f"{source.parent.name}/{file.relative_to(source).as_posix()}"] = file.read_text(encoding="utf-8")
    if not files:
        parser.error(f"{options.root} has no crates/*/src")
    if options.arrows:
        for (a, b), items in sorted(arrows_of(files)[0].items()):
            print(f"{a} → {b}: {', '.join(items)}")
        return 0
    layers = options.root / "scripts/checks/layers.txt"
    report = check(files, layers.read_text(encoding="utf-8") if layers.exists() else "")
    print("\n".join(report) or f"layers: {len(files)} files: no import up, no circle")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
