#!/usr/bin/env python3
"""The faults of cargo-mutants, all of them in one build, so that trying one costs a run of tests and no compiling.

    scripts/campaigns/mutants_at_once.py [--folder DIR] [--built] [--sample N] [--seed SEED] [--only TEXT] [--again]
                                         [PART…]

A function with faults gets one body for each fault, and FEC_MUTANT says which body runs: `match mutant::on() { 1 => {…}
… }`. PART is one that mutant_parts.py names, as for scripts/campaigns/mutants.sh, which runs cargo-mutants itself, one
build for each fault. Without PART all of them run. DIR (target/mutants-at-once) gets a copy of the tree and
results.tsv: id, part, verdict, the test that noticed, the fault.

--only takes the faults whose names contain TEXT, --sample N of each part by SEED (1), the same ones for the same seed.
--built builds nothing and runs the programs and the faults that are in DIR. The first run of a fault takes the tests
near it. --again builds and runs the faults that results.tsv calls MISSED once more, with the tests as they are now and
with all others that may notice, and writes again.tsv.

Verdicts: caught; timeout (20 s of processor for one process; noticed too); MISSED; unviable (does not compile); left
(in a const fn, or in a fn that returns `impl Trait`, whose bodies would have several types, or outside of functions:
for scripts/campaigns/mutants.sh). Faults that .cargo/mutants.toml explains are not in the list. Exit code 1 if a fault
was missed. Runs of the tests take about one core; memory of each process is bounded.
"""
import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

from mutant_parts import AGAIN, FILES, LIBS, STAGES, THREADS, WITHOUT, crate_of, sampled

ROOT = Path(__file__).resolve().parents[2]
SWITCH = """
/// Which fault is on.
pub mod mutant {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ON: AtomicU32 = AtomicU32::new(u32::MAX);
    /// Its number; 0 for none.
    #[inline]
    pub fn on() -> u32 {
        let on = ON.load(Ordering::Relaxed);
        if on == u32::MAX { first() } else { on }
    }
    #[cold]
    fn first() -> u32 {
        let on = std::env::var("FEC_MUTANT").ok().and_then(|on| on.parse().ok()).unwrap_or(0);
        ON.store(on, Ordering::Relaxed);
        on
    }
}
"""


def cargo_env(folder):
    env = dict(os.environ, CARGO_INCREMENTAL="1", CARGO_TARGET_DIR=str(folder / "target"))
    for profile in ("DEV", "TEST"):
        env |= {f"CARGO_PROFILE_{profile}_OPT_LEVEL": "1", f"CARGO_PROFILE_{profile}_DEBUG": "0"}
    return env


def listed(part):
    """The faults of a part, as cargo-mutants tells them."""
    crate, *files = FILES[part]
    wanted = [word for file in files for word in ("--file", f"crates/{crate}/src/{file}")]
    wanted += [word for file in WITHOUT.get(part, []) for word in ("--exclude", f"crates/{crate}/src/{file}")]
    out = subprocess.run(["cargo", "mutants", "--list", "--json", "-p", crate, *wanted],
                         cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [dict(fault, part=part) for fault in json.loads(out)]


def skip_token(text, at):
    """The end of the comment, string or character that starts at `at`, or `at` itself if none starts there."""
    if text.startswith("//", at):
        return text.index("\n", at)
    if text.startswith("/*", at):
        return text.index("*/", at) + 2
    if text[at] == '"':
        at += 1
        while text[at] != '"':
            at += 2 if text[at] == "\\" else 1
        return at + 1
    if text[at] == "'" and (text[at + 1] == "\\" or text[at + 2:at + 3] == "'"):
        return text.index("'", at + (3 if text[at + 1] == "\\" else 2)) + 1
    return at


def head_of(text, start):
    """The signature of the function that starts at `start`, and the position of its body's brace."""
    at, depth, head = start, 0, None
    while True:
        behind = skip_token(text, at)
        if behind > at:
            at = behind
            continue
        if head is None and text[at:at + 3] == "fn " and not (text[at - 1].isalnum() or text[at - 1] == "_"):
            head = at
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[at], 0)
        if head is not None and depth == 0 and text[at] == "{":
            line = text.rindex("\n", 0, head) + 1
            return text[line:at], at
        at += 1


def returned(head):
    """The return type in a signature. It stands behind the parameters, which may have arrows and brackets of their
    own."""
    depth = 0
    for at in range(head.index("fn "), len(head)):
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1}.get(head[at], 0) - (head[at] == ">" and head[at - 1] != "-")
        if head[at] == ")" and depth == 0:
            return head[at + 1:]
    return ""


class Source:
    """A file, and its functions with the faults in them."""

    def __init__(self, path):
        self.text = (ROOT / path).read_text()
        self.lines = [0]
        for line in self.text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.functions = defaultdict(list)

    def at(self, place):
        return self.lines[place["line"] - 1] + place["column"] - 1

    def span(self, of):
        return self.at(of["start"]), self.at(of["end"])

    def render(self, crate, dead):
        """The text with all faults that are not `dead`, and for each line of the text its fault."""
        on = "crate::mutant::on()" if crate == "fec-core" else "fec_core::mutant::on()"
        pieces, done = [], 0
        for (start, end), faults in sorted(self.functions.items()):
            faults = [fault for fault in faults if fault["id"] not in dead]
            if not faults:
                continue
            _, brace = head_of(self.text, start)
            pieces += [(self.text[done:brace], 0), ("{ match " + on + " {\n", 0)]
            for fault in faults:
                first, last = self.span(fault["span"])
                body = self.text[brace:first] + " " + fault["replacement"] + " " + self.text[last:end]
                pieces.append((f"{fault['id']} => {body}\n", fault["id"]))
            pieces.append(("_ => " + self.text[brace:end] + "\n} }", 0))
            done = end
        pieces.append((self.text[done:], 0))
        text, owners, line = "".join(piece for piece, _ in pieces), {}, 1
        for piece, owner in pieces:
            lines = piece.count("\n")
            if owner:
                owners.update((at, owner) for at in range(line, line + lines + 1))
            line += lines
        return text, owners


def needed(part, again):
    """The tests that have to notice: crate, test binary, filter."""
    return [(crate_of(test, part), test, words) for test, words in STAGES[part] + (AGAIN.get(part, []) if again else [])]


def put(path, data):
    """Writes a file unless it is there as it should be: what did not change is not built again."""
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def copy_tree(tree, without):
    """Makes a copy of the tree what the tree is, but for the files that get faults."""
    told = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout
    names = {name for name in told.split("\0") if name and (ROOT / name).exists()}
    for path in [path for path in tree.rglob("*") if path.is_file() or path.is_symlink()]:
        if str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names - without:
        if (ROOT / name).is_symlink():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).unlink(missing_ok=True)
            (tree / name).symlink_to((ROOT / name).readlink())
        else:
            put(tree / name, (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, tree / name)


def build(folder, faults, verdicts, again):
    """Makes a copy of the tree with all faults, without those that do not compile, and builds its test binaries. Those
    that did not compile in the same file the last time are not tried again."""
    tree, env = folder / "tree", cargo_env(folder)
    lib = "crates/fec-core/src/lib.rs"
    copy_tree(tree, {lib} | {fault["file"] for fault in faults})
    put(tree / lib, (ROOT / lib).read_bytes() + SWITCH.encode())
    unviable = folder / "unviable.json"
    known = set(json.loads(unviable.read_text())) if unviable.exists() else set()
    sources = {}
    for fault in faults:
        source = sources.setdefault(fault["file"], Source(fault["file"]))
        fault["key"] = hashlib.sha256((source.text + fault["name"] + fault["replacement"]).encode()).hexdigest()
        if fault["key"] in known:
            verdicts[fault["id"]] = ("unviable", "")
            continue
        if fault["function"] is None:
            verdicts[fault["id"]] = ("left", "no function")
            continue
        start, end = source.span(fault["function"]["span"])
        head, brace = head_of(source.text, start)
        if "const fn" in head or "impl " in returned(head) or not brace < source.span(fault["span"])[0] < end:
            verdicts[fault["id"]] = ("left", "kind of function")
            continue
        source.functions[start, end].append(fault)
    parts = {fault["part"] for fault in faults}
    # A name of test binaries may be that of several crates: each crate is built on its own.
    binaries_of = defaultdict(set)
    for part in parts:
        for crate, test, _ in needed(part, again):
            binaries_of[crate].add(test)
    # cargo check finds most faults that do not compile, and is quick.
    crates = sorted({"fec-core"} | {FILES[part][0] for part in parts})
    commands = [["cargo", "check", *(f"-p={crate}" for crate in crates), "--message-format=json", "-q"]]
    for crate, tests in sorted(binaries_of.items()):
        named = [f"--test={name}" for name in sorted(tests - LIBS.keys())] + (["--lib"] if tests & LIBS.keys() else [])
        commands.append(["cargo", "test", f"-p={crate}", "--no-default-features", "--no-run",
                         "--message-format=json", "-q", *named])
    binaries = {}
    while commands:
        owners = {}
        for path, source in sources.items():
            text, owners[path] = source.render(path.split("/")[1], verdicts)
            put(tree / path, text.encode())
        built = subprocess.run(commands[0], cwd=tree, env=env, capture_output=True, text=True)
        if built.returncode == 0:
            binaries |= programs(built.stdout)
            del commands[0]
            continue
        new = set()
        for line in built.stdout.splitlines():
            message = json.loads(line).get("message")
            if not message or message.get("level") != "error":
                continue
            for span in message["spans"]:
                if span["is_primary"]:
                    new.add(owners.get(span["file_name"].removeprefix(str(tree) + "/"), {}).get(span["line_start"]))
        new -= {None}
        if not new:
            sys.exit(built.stderr[-3000:] + built.stdout[-6000:])
        verdicts.update((one, ("unviable", "")) for one in new)
        known |= {fault["key"] for fault in faults if fault["id"] in new}
        unviable.write_text(json.dumps(sorted(known)))
        print(f"{len(new)} do not compile", flush=True)
    return binaries


def programs(told):
    """The test binaries that cargo tells of, by crate and name, each with the folder to run it in."""
    found = {}
    for artifact in map(json.loads, told.splitlines()):
        if artifact.get("executable") and artifact["profile"]["test"]:
            place = Path(artifact["manifest_path"]).parent
            found[f"{place.name} {artifact['target']['name']}"] = (artifact["executable"], str(place))
    return found


def bounds():
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def verdict_of(number, part, again, binaries):
    for crate, test, words in needed(part, again):
        binary, place = binaries[f"{crate} {test}"]
        env = dict(os.environ, FEC_MUTANT=str(number), RUST_TEST_THREADS=str(THREADS.get(part, 1)), RUST_BACKTRACE="0", FEC_MUTATIONS="300")
        command = [binary, *words.format(part=part).split()]
        with subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace", preexec_fn=bounds, start_new_session=True) as run:
            late = threading.Timer(120, os.killpg, (run.pid, 9))
            late.start()
            # The first test that fails is enough.
            failed = any(line.startswith("test ") and line.endswith(" FAILED\n") for line in run.stdout)
            if failed:
                os.killpg(run.pid, 9)
            code = run.wait()
            late.cancel()
        if failed or code:
            noticed = " ".join([test, words.format(part=part)]).strip()
            return ("timeout" if not failed and code in (-24, -9) else "caught", noticed)
    return ("MISSED", "")


def chosen(options, folder, parts):
    """The faults that are to be tried."""
    missed = None
    if options.again:
        lines = [line.split("\t") for line in (folder / "results.tsv").read_text().splitlines()]
        missed = {(line[1], line[4]) for line in lines if line[2] == "MISSED"}
    faults = []
    for part in parts:
        of = [fault for fault in listed(part) if (options.only or "") in fault["name"]]
        if missed is not None:
            of = [fault for fault in of if (part, fault["name"]) in missed]
        if options.sample:
            of = [of[at] for at in sampled([fault["name"] for fault in of], options.sample, options.seed)]
        faults += of
    return [dict(fault, id=number) for number, fault in enumerate(faults, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "target/mutants-at-once")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *FILES])
    options = parser.parse_args()
    parts = options.parts or list(FILES)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "built.json"
    if options.built:
        binaries, verdicts, faults = json.loads(kept.read_text())
        verdicts = {int(number): tuple(verdict) for number, verdict in verdicts.items()}
        faults = [fault for fault in faults if (options.only or "") in fault["name"] and fault["part"] in parts]
    else:
        verdicts, faults = {}, chosen(options, folder, parts)
        binaries = build(folder, faults, verdicts, options.again)
        kept.write_text(json.dumps((binaries, verdicts, faults)))
    for part in sorted({fault["part"] for fault in faults}):
        if (without := verdict_of(0, part, options.again, binaries))[0] != "MISSED":
            sys.exit(f"{part}: {without} without any fault")
    counts = defaultdict(lambda: defaultdict(int))
    with (folder / ("again.tsv" if options.again else "results.tsv")).open("w") as results:
        for fault in faults:
            verdict = verdicts.get(fault["id"]) or verdict_of(fault["id"], fault["part"], options.again, binaries)
            counts[fault["part"]][verdict[0]] += 1
            line = "\t".join([str(fault["id"]), fault["part"], *verdict, fault["name"]])
            print(line, file=results, flush=True)
            if verdict[0] == "MISSED":
                print(line, flush=True)
    for part, of in counts.items():
        print(f"{part}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(of.items())))
    sys.exit(any(of["MISSED"] for of in counts.values()))


if __name__ == "__main__":
    main()
