#!/usr/bin/env python3
"""Records the session of README.md with the real command, and draws it: docs/session.svg plays it once, and
docs/session-still.svg shows its end.

    session_svg.py [--fec BIN]            writes both
    session_svg.py [--fec BIN] --check    ends with 1 if they show something else than is printed now

The commands are those of the first block of `console` in README.md. Times, kernels and threads do not count in the
comparison. Python 3.9, nothing else: no service draws anything.
"""
import argparse
import html
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "checks"))
import docs  # noqa: E402: the checks read README.md in the same way

COLUMNS = 80
CELL, LINE, FONT, MARGIN = 8.4, 19, 14, 16
TYPING, READING = 0.03, 0.5               # seconds for a character of a command, and for a line of output


def session():
    """The commands that make the files of the session, and those that it shows."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        block = next(block for block in docs.blocks_of(f.read()) if block.kind == "console")
    before = [option[4:] for option in block.options if option.startswith("run ")]
    return before, [command for _, command, _, _ in block.commands]


def recorded(fec):
    """The session's lines: (is a command, text)."""
    before, commands = session()
    lines = []
    with tempfile.TemporaryDirectory(prefix="session-") as folder:
        path = os.path.dirname(os.path.abspath(fec)) + os.pathsep + os.environ["PATH"]
        environment = {"PATH": path, "HOME": folder, "LC_ALL": "C.UTF-8", "COLUMNS": str(COLUMNS)}
        for command in before:
            subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=True)
        for command in commands:
            lines.append((True, command))
            run = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            lines += [(False, line) for line in run.stdout.splitlines()]
    return lines


def wrapped(lines):
    """The lines as a terminal shows them, with the times at which each begins and ends to appear."""
    shown, now = [], 0.5
    for is_command, text in lines:
        text = "$ " + text if is_command else text
        pieces = [text[at:at + COLUMNS] for at in range(0, len(text), COLUMNS)] or [""]
        for piece in pieces:
            lasts = TYPING * len(piece) if is_command else 0.0
            shown.append((is_command, piece, now, lasts))
            now += lasts
        now += READING
    return shown


STYLE = """\
text { font: %dpx ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre }
.c { fill: #7ee787 }
.note { fill: #8b949e }
""" % FONT

# Whoever asks for less motion sees the end at once.
MOTION = """\
@keyframes shown { from { opacity: 0 } to { opacity: 1 } }
@keyframes typed { from { clip-path: inset(0 100% 0 0) } to { clip-path: inset(0 0 0 0) } }
.o { animation: shown 1ms backwards }
.c { animation: typed steps(40) backwards }
@media (prefers-reduced-motion: reduce) { .o, .c { animation: none } }
"""


def drawn(lines, is_moving):
    shown = wrapped(lines)
    width, height = 2 * MARGIN + round(COLUMNS * CELL), 2 * MARGIN + LINE * len(shown)
    title = "A recorded session: a file becomes 100 shard files, sixty are lost, one rots, and the file is restored."
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">' % (width, height, width, height, title), "<title>%s</title>" % title, "<style>", STYLE + (MOTION if is_moving else ""), "</style>", '<rect width="100%" height="100%" rx="8" fill="#0d1117" stroke="#30363d"/>']
    for nth, (is_command, text, begins, lasts) in enumerate(shown):
        y = MARGIN + FONT + LINE * nth
        time = ' style="animation-delay:%.2fs%s"' % (begins, ";animation-duration:%.2fs" % lasts if is_command else "") if is_moving else ""
        command, note = text, ""
        found = re.match(r"(.*?\S)(\s+# .*)", text) if is_command else None
        if found:
            command, note = found.groups()
        body = html.escape(command) + ('<tspan class="note">%s</tspan>' % html.escape(note) if note else "")
        out.append('<text x="%d" y="%d" class="%s" xml:space="preserve"%s>%s</text>' % (MARGIN, y, "c" if is_command else "o", time, body))
    return "\n".join(out + ["</svg>", ""])


def said(svg):
    """The text of a drawing, without what differs from machine to machine."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    return [docs.alike(html.unescape(re.sub(r"<[^>]*>", "", text))) for text in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fec", default=os.path.join(ROOT, "target/release/fec"))
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    lines = recorded(args.fec)
    wrong = 0
    for name, is_moving in [("session.svg", True), ("session-still.svg", False)]:
        path, svg = os.path.join(ROOT, "docs", name), drawn(lines, is_moving)
        if args.check:
            with open(path, encoding="utf-8") as f:
                if said(f.read()) != said(svg):
                    print("docs/%s shows another session than README.md: scripts/release/session_svg.py draws it" % name)
                    wrong = 1
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(svg)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
