#!/usr/bin/env python3
"""Runs the commands that README.md and the guide tell people to type, and compares what the documents say comes of
them.

    docs.py [--fec BIN] [--keep] [PAGE.md…]

Each page gets a folder and a shell of its own, in which its blocks run one after the other:

    ```console    a line that begins with `$ ` is a command, which goes on in lines with `> `; the other lines are its
                  output, on both streams
    ```sh         commands alone

A command has to end with 0, or with N where it says `# exit code N`. Its output has to be that of the page: times,
kernels, threads and sizes of a terminal do not count, `…` stands for anything in a line, and a line with nothing but
`…` for any lines. Comments of HTML before a block, which readers do not see, say what differs:

    <!-- check: run COMMAND -->     run it first: makes the files that the page is about
    <!-- check: skip WHY -->        do not run the next block: it takes another machine, a camera, a cloud
    <!-- check: page WHY -->        run nothing of this page: something else does
    <!-- check: output differs -->  keys, and roots of what is sealed with them, are others each time

Links of the pages to files and headings are followed, too; without PAGE those of all other documents as well. A page of
the guide has at most 1,200 words, its first command stands on its first screen, and SUMMARY.md has it. Ends with 1 if
anything differs. Python 3.9, nothing else.
"""
import argparse
import difflib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MARK = "ended with"
LIMIT = 600                                     # seconds for a page
WORDS, SCREEN = 1200, 24                        # of a page of the guide


class Block:
    def __init__(self, line, kind, options):
        self.line, self.kind, self.options = line, kind, options
        self.commands = []                      # (line, text, expected exit code, lines of output or None)

    def parse(self, lines):
        for offset, line in enumerate(lines):
            if self.kind == "sh":
                going_on = self.commands and self.commands[-1][1].endswith("\\")
                if going_on:
                    self.commands[-1][1] += "\n" + line
                elif line.strip() and not line.startswith("#"):
                    self.commands.append([self.line + offset, line, 0, None])
            elif line.startswith("$ "):
                self.commands.append([self.line + offset, line[2:], 0, []])
            elif line.startswith("> ") and self.commands and not self.commands[-1][3]:
                self.commands[-1][1] += "\n" + line[2:]
            elif self.commands:
                self.commands[-1][3].append(line)
        for command in self.commands:
            found = re.search(r"# exit code (\d+)", command[1])
            command[2] = int(found.group(1)) if found else 0


def blocks_of(text):
    blocks, options, fence, inside = [], [], None, []
    for number, line in enumerate(text.split("\n"), 1):
        if fence is not None:
            if line.strip() == "```":
                fence.parse(inside)
                if fence.kind in ("sh", "console"):
                    blocks.append(fence)
                fence = None
            else:
                inside.append(line)
        elif line.startswith("```"):
            fence, inside, options = Block(number + 1, line[3:].strip(), options), [], []
        else:
            options += re.findall(r"<!-- check: (.*?) -->", line)
    return blocks


def alike(line):
    """A line, without what differs from machine to machine."""
    line = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "TIME", line.rstrip())
    line = re.sub(r"\b(avx512-gfni|avx2|ssse3|neon|scalar)\b", "KERNEL", line)
    line = re.sub(r"\b\d+ threads?\b", "THREADS", line)
    return re.sub(r"[\d.]+ [GM]b/s|[\d.]+ [GMk]i?B/s", "RATE", line)


def agrees(said, printed):
    """Tells whether a page says what was printed."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, alike(line).split("…"))) + "\n" for line in said)
    return re.fullmatch(pattern, "".join(alike(line) + "\n" for line in printed)) is not None


def script_of(block):
    """The block for a shell, which tells after each command how it ended."""
    parts = []
    for option in block.options:
        if option.startswith("run "):
            parts.append("{ %s\n} > /dev/null 2>&1 < /dev/null || echo '%s before: '$? >&2" % (option[4:], MARK))
    for nth, (_, text, _, _) in enumerate(block.commands):
        parts.append("{ %s\n} < /dev/null 2>&1; printf '\\n%s %d: %%d\\n' $?" % (text, MARK, nth))
    return "\n".join(parts) + "\n"


def check_page(path, fec, keep):
    """Lists the problems of a page."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    wrong = ["%s: no such file or heading: %s" % (path, link) for link in broken_links(path, text)]
    wrong += unreadable(path, text)
    ran = 0
    folder = tempfile.mkdtemp(prefix="docs-")
    environment = dict(os.environ, PATH=os.path.dirname(fec) + os.pathsep + os.environ["PATH"], HOME=folder, LC_ALL="C.UTF-8", TZ="UTC", COLUMNS="80")
    for name in [name for name in environment if name.startswith("FEC_")]:
        del environment[name]
    shell = subprocess.Popen(["timeout", str(LIMIT), "bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for block in blocks_of(text) if "<!-- check: page " not in text else []:
        if any(option.startswith("skip ") for option in block.options):
            continue
        shell.stdin.write(script_of(block) + "echo 'the block %s'\n" % MARK)
        shell.stdin.flush()
        printed, ends = [], {}
        while True:
            line = shell.stdout.readline()
            if not line:
                wrong.append("%s:%d: the shell ended" % (path, block.line))
                return wrong, ran
            line = line.rstrip("\n")
            if line == "the block " + MARK:
                break
            found = re.fullmatch(MARK + r" (\d+): (\d+)", line)
            if found:
                if printed and not printed[-1]:
                    printed.pop()               # the line feed that may have been missing
                ends[int(found.group(1))] = (int(found.group(2)), printed)
                printed = []
            elif line.startswith(MARK + " before"):
                wrong.append("%s:%d: what was to run first %s" % (path, block.line, line))
            else:
                printed.append(line)
        for nth, (number, command, code, said) in enumerate(block.commands):
            ran += 1
            ended, printed = ends[nth]
            if ended != code:
                wrong.append("%s:%d: exit code %d, not %d: %s\n    %s" % (path, number, ended, code, command, "\n    ".join(printed)))
            elif said is not None and "output differs" not in block.options and not agrees(said, printed):
                difference = "\n    ".join(difflib.unified_diff(said, printed, "the page", "printed", lineterm="", n=9))
                wrong.append("%s:%d: something else is printed by: %s\n    %s" % (path, number, command, difference))
    shell.stdin.close()
    shell.wait()
    if keep:
        print("%s ran in %s" % (path, folder))
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return wrong, ran


def unreadable(path, text):
    """Reasons why a page of the guide is hard to read."""
    name, folder = os.path.basename(path), os.path.dirname(path)
    if name == "SUMMARY.md" or os.path.basename(folder) != "guide":
        return
    if len(text.split()) > WORDS:
        yield "%s has %d words, and may have %d" % (path, len(text.split()), WORDS)
    shown = [line for line in text.split("\n") if not line.startswith("<!--")]
    fences = [number for number, line in enumerate(shown) if line.startswith("```")]
    if not fences or fences[0] >= SCREEN - 2:
        yield "%s: the first command does not stand on the first screen" % path
    with open(os.path.join(folder, "SUMMARY.md"), encoding="utf-8") as f:
        if "(%s)" % name not in f.read():
            yield "%s is not in SUMMARY.md" % path


def anchor(heading):
    """A heading as links name it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(path, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(file):
            yield target
        elif place:
            with open(file, encoding="utf-8") as f:
                if place not in [anchor(h) for h in re.findall(r"^#+ (.*)$", f.read(), flags=re.M)]:
                    yield target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fec", default=os.path.join(ROOT, "target/release/fec"))
    parser.add_argument("--keep", action="store_true", help="keep the folders that the pages ran in")
    parser.add_argument("pages", nargs="*")
    args = parser.parse_args()
    pages = args.pages or [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs/guide/*.md")))
    bad = 0
    for page in pages:
        wrong, ran = check_page(os.path.abspath(page), os.path.realpath(args.fec), args.keep)
        print("%s: %d commands, %s" % (os.path.relpath(page, ROOT), ran, "%d wrong" % len(wrong) if wrong else "as they say"), flush=True)
        for text in wrong:
            print("  " + text)
        bad += len(wrong)
    documents = ("*.md", "docs/*.md", "tests/*.md", "bench/record/**/*.md", "crates/*/*.md", "examples/**/*.md")
    for page in [] if args.pages else sorted(page for kind in documents for page in glob.glob(os.path.join(ROOT, kind), recursive=True)):
        with open(page, encoding="utf-8") as f:
            for link in broken_links(page, f.read()):
                print("%s: no such file or heading: %s" % (os.path.relpath(page, ROOT), link))
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
