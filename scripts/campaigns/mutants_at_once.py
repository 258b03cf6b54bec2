#!/usr/bin/env python3
"""The faults of cargo-mutants, all of them in one build, so that trying one costs a run of tests and no compiling.

    scripts/campaigns/mutants_at_once.py [--folder DIR] [--near] [--built] [--sample N] [--seed SEED] [--only TEXT]
                                         [--again] [PART…]

A function with faults gets one body for each fault, and FEC_MUTANT says which body runs: `match mutant::on() { 1 => {…}
… }`. PART is as for scripts/campaigns/mutants.sh, which runs cargo-mutants itself, one build for each fault. Without
PART all parts of fec-core run, then all of fecfile. DIR (target/mutants-at-once) gets a copy of the tree and
results.tsv: id, part, verdict, the test that noticed, the fault.

--only takes the faults whose names contain TEXT, --sample N of each part by SEED (1). --built builds nothing and runs
the programs in DIR, which were built for the same parts. The first run of a fault takes the tests near it; --again runs
every test that may notice on the faults that results.tsv calls MISSED; --near builds the near tests alone, which is
much quicker.

Verdicts: caught; timeout (20 s of processor for one process; noticed too); MISSED; unviable (does not compile); left
(in a const fn, or in a fn that returns `impl Trait`, whose bodies would have several types, or outside of functions:
for scripts/campaigns/mutants.sh). Faults that .cargo/mutants.toml explains are not in the list. Exit code 1 if a fault
was missed. Runs of the tests take about one core; memory of each process is bounded.
"""
import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "merkle": ("fec-core", "merkle.rs"),
    "params": ("fec-core", "params.rs", "params/**"),
    "format": ("fec-core", "format/**"),
    "set": ("fec-core", "set/**"),
    "window": ("fec-core", "window/**"),
    "choose": ("fecfile", "choose.rs"),
    "restore": ("fecfile", "restore.rs"),
    "output": ("fec-base", "io/output.rs", "io/output/**"),
}
# Tests that have to notice, the quickest first: test binary, filter. Tests for --again come last.
CLI = [("environment", ""), ("redirects", ""), ("repair", ""), ("words", ""), ("leftovers", ""), ("syncs", ""),
       ("cli", ""), ("keep", ""), ("hostile", ""), ("seal", ""), ("sign", ""), ("reports", ""), ("campaign", ""), ("encodings", ""), ("golden", "")]
STAGES = {
    "merkle": [("fec_core", "merkle"), ("set", "")],
    "params": [("fec_core", "params"), ("format", "")],
    "format": [("vectors", ""), ("layouts", ""), ("fec_core", "format"), ("format", "")],
    "set": [("set", ""), ("fec_core", "set")],
    "window": [("fec_core", "window"), ("vectors", "streams"), ("window", "")],
    "choose": [("fecfile", "{part}::"), *CLI], "restore": [("fecfile", "{part}::"), *CLI], "output": [("fec_base", "{part}::"), *CLI],
}
GOLDEN = [("encodings", ""), ("sidecars", "golden"), ("golden", ""), ("seal_golden", ""), ("stream_golden", ""), ("cli", ""), ("hostile", "")]
CORE = [("set", ""), ("fec_core", ""), ("simple", ""), ("window", ""), ("fecfile", ""), *GOLDEN]
MORE = [("fecfile", ""), ("encodings", ""), ("sidecars", ""), ("sidecar", "")]
AGAIN = {part: CORE if crate == "fec-core" else MORE for part, (crate, *_) in FILES.items()}
# Library crates, by their unit tests, and the crates of other test binaries. Every other binary is of fec-cli.
LIBS = {"fec_core": "fec-core", "fec_base": "fec-base", "fec_live": "fec-live", "fecfile": "fecfile"}
LIBRARY = {**LIBS, "encodings": "fecfile", "sidecars": "fec-sidecar"}
COMMAND = {name for name, _ in CLI + MORE + GOLDEN} - LIBRARY.keys() - {"set", "simple", "window"}
AGAIN["window"] = [("fec_live", ""), ("stream_golden", "")]
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
    out = subprocess.run(["cargo", "mutants", "--list", "--json", "-p", crate, *wanted,
                          # Compiled with the feature trace alone.
                          "--exclude", "crates/fec-core/src/window/encoder/trace.rs"],
                         cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(out)


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


def build(folder, faults, verdicts, near):
    """Makes a copy of the tree with all faults, without those that do not compile, and builds its test binaries."""
    tree, env = folder / "tree", cargo_env(folder)
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns("target", ".git", "mutants.out"))
    lib = tree / "crates/fec-core/src/lib.rs"
    lib.write_text(lib.read_text() + SWITCH)
    sources = {}
    for fault in faults:
        source = sources.setdefault(fault["file"], Source(fault["file"]))
        if fault["function"] is None:
            verdicts[fault["id"]] = ("left", "no function")
            continue
        start, end = source.span(fault["function"]["span"])
        head, brace = head_of(source.text, start)
        if "const fn" in head or "impl " in returned(head) or not brace < source.span(fault["span"])[0] < end:
            verdicts[fault["id"]] = ("left", "kind of function")
            continue
        source.functions[start, end].append(fault)
    names = {name for part in {fault["part"] for fault in faults} for name, _ in STAGES[part] + ([] if near else AGAIN[part])}
    packages = sorted({"fec-core"} | {LIBRARY[name] for name in names & LIBRARY.keys()} | ({"fec-cli"} if names & COMMAND else set()))
    test = ["cargo", "test", *(f"-p={crate}" for crate in packages), "--no-default-features", "--no-run", "--message-format=json", "-q",
            "--lib", *(f"--test={name}" for name in sorted(names - LIBS.keys()))]
    # cargo check finds most faults that do not compile, and is quick.
    commands = [["cargo", "check", "-p", "fec-core", "-p", "fec-base", "-p", "fecfile", "--message-format=json", "-q"], test]
    while commands:
        owners = {}
        for path, source in sources.items():
            text, owners[path] = source.render(path.split("/")[1], verdicts)
            (tree / path).write_text(text)
        built = subprocess.run(commands[0], cwd=tree, env=env, capture_output=True, text=True)
        if built.returncode == 0:
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
        print(f"{len(new)} do not compile", flush=True)
    binaries = {}
    for line in built.stdout.splitlines():
        artifact = json.loads(line)
        if artifact.get("executable") and artifact["profile"]["test"]:
            binaries[artifact["target"]["name"]] = (artifact["executable"], str(Path(artifact["manifest_path"]).parent))
    return binaries


def bounds():
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def verdict_of(number, part, stages, binaries):
    for test, words in stages[part]:
        binary, place = binaries[test]
        env = dict(os.environ, FEC_MUTANT=str(number), RUST_TEST_THREADS="1", RUST_BACKTRACE="0", FEC_MUTATIONS="300")
        command = [binary, *words.format(part=part).split()]
        with subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace", preexec_fn=bounds, start_new_session=True) as run:
            late = threading.Timer(300, os.killpg, (run.pid, 9))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "target/mutants-at-once")
    parser.add_argument("--near", action="store_true")
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    parts = options.parts or list(FILES)
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    faults = [dict(fault, part=part) for part in parts for fault in listed(part)]
    for number, fault in enumerate(faults, 1):
        fault["id"] = number
    kept = folder / "built.json"
    if options.built or options.again:
        binaries, verdicts = json.loads(kept.read_text())
        verdicts = {int(number): tuple(verdict) for number, verdict in verdicts.items()}
    else:
        verdicts = {}
        binaries = build(folder, faults, verdicts, options.near)
        kept.write_text(json.dumps((binaries, verdicts)))
    stages, file = (AGAIN, "again.tsv") if options.again else (STAGES, "results.tsv")
    for part in parts:
        if (without := verdict_of(0, part, stages, binaries))[0] != "MISSED":
            sys.exit(f"{part}: {without} without any fault")
    chosen = [fault for fault in faults if (options.only or "") in fault["name"]]
    if options.again:
        lines = [line.split("\t") for line in (folder / "results.tsv").read_text().splitlines()]
        missed = {int(line[0]) for line in lines if line[2] == "MISSED"}
        chosen = [fault for fault in chosen if fault["id"] in missed]
    if options.sample:
        several = [[fault for fault in chosen if fault["part"] == part] for part in parts]
        chosen = [fault for some in several
                  for fault in random.Random(options.seed).sample(some, min(options.sample, len(some)))]
    counts = defaultdict(lambda: defaultdict(int))
    with (folder / file).open("w") as results:
        for fault in chosen:
            verdict = verdicts.get(fault["id"]) or verdict_of(fault["id"], fault["part"], stages, binaries)
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
