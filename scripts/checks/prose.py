#!/usr/bin/env python3
"""Counts comments that a stranger has to read twice, and fails where there are more than before.

A sentence of a comment names its subject first, so none begins with What, Of, So or One, and a comment line ends at 120
columns. The script reads comments of Rust (doc comments too), of Python (docstrings too) and of shell scripts, without
the code examples and diagrams in them. LIMITS has the most wrong sentences and lines of each folder; numbers there may
only shrink. `--list FOLDER` prints the findings of a folder or a file. The exit code is 0 when all folders are within
their limits, 1 when not, 2 for wrong usage or without git.
"""

import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

COLUMNS = 120
# Sentences and lines of each folder. A folder that is not here has none.
LIMITS = {
    "crates/fec-cli": (10, 0),
}
RUST = re.compile(r"""
    (?P<comment>//.*) | /\*[\s\S]*?\*/ | (?:b|c)?r(?P<hashes>\#*)"[\s\S]*?"(?P=hashes) | (?:b|c)?"(?:\\[\s\S]|[^"\\])*"
  | b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'""", re.VERBOSE)
WRONG = re.compile(r"(?:^|(?<=[.:;?!] ))[(*_\"`\[]*(?:What|Of|So|One)\b")
# These begin a new paragraph, whatever stands before.
ITEM = re.compile(r"\s*(?:[-*+|#>]|\d+[.)]\s|$)")


def comments_of_rust(text):
    """The comments as (line, marker, text)."""
    for match in RUST.finditer(text):
        if match["comment"]:
            marker, words = re.match(r"(//[/!]?) ?(.*)", match["comment"]).groups()
            yield text.count("\n", 0, match.start()), marker, words


def comments_of_python(text):
    """The comments and docstrings as (line, marker, text)."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0] - 1, "#", token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            for line, words in enumerate(token.string.strip("rbu\"'").split("\n"), token.start[0] - 1):
                yield line, "string", words
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type


def comments_of_shell(text):
    """The comments on lines of their own as (line, marker, text)."""
    for line, words in enumerate(text.split("\n")):
        if match := re.match(r"\s*#(?!!) ?(.*)", words):
            yield line, "#", match[1]


READERS = {".rs": comments_of_rust, ".py": comments_of_python, ".sh": comments_of_shell}


def findings(path, text):
    """The wrong sentences as (line, text), and the numbers of the long lines."""
    lines, paragraphs, fenced, before = text.split("\n"), [], False, (-2, "")
    long = set()
    for line, marker, words in READERS[path.suffix](text):
        if len(lines[line]) > COLUMNS:
            long.add(line)
        alone = marker == "string" or lines[line].lstrip().startswith(marker)
        goes_on = alone and before == (line - 1, marker)
        before = (line, marker) if alone else (-2, "")
        fenced = fenced and goes_on
        if words.lstrip().startswith("```"):
            fenced, before = not fenced, (line, marker)
            paragraphs.append((line, ""))
        elif not fenced:
            if goes_on and not ITEM.match(words) and paragraphs:
                start, sofar = paragraphs[-1]
                paragraphs[-1] = start, f"{sofar} {words.strip()}".strip()
            else:
                paragraphs.append((line, re.sub(r"^\s*(?:[-*+]|\d+[.)])?\s+", "", words + " ").strip()))
    sentences = [(line, words[match.start():][:100]) for line, words in paragraphs for match in WRONG.finditer(words)]
    return sentences, sorted(long)


def folder_of(path):
    return "/".join(path.parts[:2]) if path.parts[0] == "crates" else path.parts[0]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    listed = sys.argv[2] if sys.argv[1:2] == ["--list"] and len(sys.argv) == 3 else None
    if len(sys.argv) > 1 and listed is None:
        print(f"usage: {sys.argv[0]} [--list FOLDER]", file=sys.stderr)
        sys.exit(2)
    names = subprocess.run(["git", "ls-files", "*.rs", "*.py", "*.sh"], cwd=root, capture_output=True, text=True)
    if names.returncode != 0:
        print("needs a checkout of git, which tells the files of the project", file=sys.stderr)
        sys.exit(2)
    counts = collections.defaultdict(lambda: [0, 0])
    for path in map(pathlib.Path, names.stdout.split()):
        if not (root / path).exists():
            continue
        sentences, long = findings(path, (root / path).read_text(encoding="utf-8"))
        counts[folder_of(path)][0] += len(sentences)
        counts[folder_of(path)][1] += len(long)
        if listed in (folder_of(path), str(path)):
            print(*(f"{path}:{line + 1}: {words}" for line, words in sentences), sep="\n", end="\n" if sentences else "")
            print(*(f"{path}:{line + 1}: over {COLUMNS} columns" for line in long), sep="\n", end="\n" if long else "")
    if listed:
        return
    above = False
    for folder, found in sorted(counts.items()):
        limit = LIMITS.get(folder, (0, 0))
        if any(count > most for count, most in zip(found, limit)):
            above = True
            print(f"{folder}: {found[0]} sentences and {found[1]} lines, above the limit of {limit[0]} and {limit[1]};"
                  f" {sys.argv[0]} --list {folder} prints them", file=sys.stderr)
        elif tuple(found) != limit:
            print(f"{folder}: {found[0]} sentences and {found[1]} lines, below the limit of {limit[0]} and {limit[1]}, which can shrink")
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
