#!/usr/bin/env python3
"""Checks that each file and each test that tests/PEERS.md names is there.

    peers.py [FILE]

A name in backquotes is `FILE::TEST`, `FILE`, or a `TEST` of the file before it in the same cell of a table, or in the
same paragraph. A file stands below crates/fec-cli/tests, crates, or the project, or in the folder of the file before
it. Ends with 1 if a name leads nowhere. Python 3.9, nothing else.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACES = ("crates/fec-cli/tests", "crates", "")


def passages(text):
    """(number of its first line, text) of each cell and each paragraph."""
    number = 1
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0].startswith("|"):
            yield from ((number + i, cell) for i, line in enumerate(lines) for cell in line.split("|")[3:])
        else:
            yield number, paragraph
        number += len(lines) + 1


def find_file(name, before):
    folders = [os.path.join(ROOT, place) for place in PLACES] + ([os.path.dirname(before)] if before else [])
    return next((path for path in (os.path.join(folder, name) for folder in folders) if os.path.isfile(path)), None)


def has_test(path, name):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".py"):
        return re.search(r"^\s*def %s\(" % name, text, re.M)
    return re.search(r"#\[test\]\s*(#\[[^\]]*\]\s*|//[^\n]*\s*)*fn %s\(" % name, text)


def names_of(text):
    """The names that lead nowhere, and the number of all names."""
    wrong, count = [], 0
    for number, passage in passages(text):
        path = None
        for name in re.findall(r"`([^`\s]+)`", passage):
            file, _, test = name.partition("::")
            if re.fullmatch(r"[\w./-]+\.(rs|py|sh)", file):
                path = find_file(file, path)
            elif path and re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name):
                test = name
            else:
                continue
            count += 1
            if not path or (test and not has_test(path, test)):
                wrong.append("%d: %s" % (number, name))
    return wrong, count


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    page = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests/PEERS.md")
    with open(page, encoding="utf-8") as f:
        wrong, count = names_of(f.read())
    for name in wrong:
        print("%s:%s is not there" % (os.path.relpath(page, ROOT), name))
    print("%d names of files and tests, %d wrong" % (count, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
