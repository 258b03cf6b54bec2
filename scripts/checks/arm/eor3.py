#!/usr/bin/env python3
"""Asks llvm-mca what the three-input addition of ARMv8.2 (EOR3, feature sha3) would gain in the hot loops.

    scripts/checks/arm/eor3.py LLVM_MCA CORE...

Prints for each core and loop, written out by hand as compilers write them, the cycles for 64 bytes without and with it.
These are models: they know nothing of caches, and no speed follows from them.
"""

import re
import subprocess
import sys

TURNS = 200


def cost(mca, core, loop):
    """Cycles of one turn."""
    command = [mca, "-mtriple=aarch64", f"-mcpu={core}", "-mattr=+sha3", f"-iterations={TURNS}"]
    result = subprocess.run(command, input=loop, capture_output=True, text=True, check=False)
    total = re.search(r"Total Cycles:\s+(\d+)", result.stdout)
    if not total:
        sys.exit(f"eor3.py: {' '.join(command)}: {result.stderr.strip()[:500]}")
    return int(total.group(1)) / TURNS


def add(eor3, total, one, other):
    """total += one + other"""
    if eor3:
        return f"eor3 v{total}.16b, v{total}.16b, v{one}.16b, v{other}.16b\n"
    return f"eor v{one}.16b, v{one}.16b, v{other}.16b\neor v{total}.16b, v{total}.16b, v{one}.16b\n"


def sums(eor3, n):
    """Two rows into n registers."""
    loop = "ldp x8, x9, [x10], #32\nldur x11, [x10, #-16]\nadd x8, x8, x12\nadd x11, x11, x12\n"
    step = min(n, (32 - n) // 4 * 2)
    for start in range(0, n, step):
        a, b, some = n, n + step, range(min(step, n - start))
        for j in some[::2]:
            loop += f"ldp q{a + j}, q{a + j + 1}, [x8, #{16 * (start + j)}]\n"
            loop += f"ldp q{b + j}, q{b + j + 1}, [x11, #{16 * (start + j)}]\n"
        loop += "".join(add(eor3, start + j, a + j, b + j) for j in some)
    return loop + "subs x13, x13, #2\nb.ne somewhere\n"


def multiply(eor3):
    """64 bytes of a row times a factor are added to four registers."""
    loop = "ldp q4, q5, [x0]\nldp q6, q7, [x0, #32]\nadd x0, x0, #64\n"
    for i in range(4):
        loop += f"and v{20 + i}.16b, v{4 + i}.16b, v18.16b\nushr v{24 + i}.16b, v{4 + i}.16b, #4\n"
    for i in range(4):
        loop += f"tbl v{20 + i}.16b, {{v16.16b}}, v{20 + i}.16b\ntbl v{24 + i}.16b, {{v17.16b}}, v{24 + i}.16b\n"
    loop += "".join(add(eor3, i, 20 + i, 24 + i) for i in range(4))
    return loop + "subs x3, x3, #1\nb.ne somewhere\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    loops = [("sum of packets, 64 B", sums, 4, 128), ("sum of packets, 256 B", sums, 16, 512), ("product added", multiply, None, 64)]
    for core in sys.argv[2:]:
        for name, make, n, loaded in loops:
            figures = [cost(sys.argv[1], core, make(*([e] if n is None else [e, n]))) * 64 / loaded for e in (False, True)]
            print(f"{core:<14}{name:<24}{figures[0]:7.2f}{figures[1]:7.2f}{(figures[1] / figures[0] - 1) * 100:+6.0f} %")


main()
