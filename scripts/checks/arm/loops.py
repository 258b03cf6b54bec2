#!/usr/bin/env python3
"""Cuts the innermost loops of vector code out of a disassembly and asks llvm-mca what a model of each core makes of
them.

    aarch64-linux-gnu-objdump -d --no-show-raw-insn -C PROGRAM | scripts/checks/arm/loops.py LLVM_MCA CORE...

Prints for each loop its instructions, the bytes of vectors that it loads and stores in one turn, and the cycles of one
turn and of 64 bytes loaded on each core. These are models: they know nothing of cache misses or of prefetching, and no
speed follows from them.
"""

import re
import subprocess
import sys

TURNS = 200
# Functions of the NEON kernel; what is inlined into them counts as theirs.
WANTED = re.compile(r"^[0-9a-f]+ <(.*kernel::neon::.*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
BRANCH = re.compile(r"^(b|b\.\w+|cbz|cbnz|tbz|tbnz)$")
TARGET = re.compile(r"([0-9a-f]+) <[^>]*>")


def functions(lines):
    """Names with their instructions: address, mnemonic, operands."""
    name, body = None, []
    for line in lines:
        heading = re.match(r"^[0-9a-f]+ <.*>:$", line)
        if heading:
            if name:
                yield name, body
            wanted = WANTED.match(line)
            name, body = (wanted.group(1) if wanted else None), []
        elif name:
            instruction = LINE.match(line)
            if instruction:
                address, mnemonic, operands = instruction.groups()
                body.append((int(address, 16), mnemonic, operands.split("//")[0].strip()))
    if name:
        yield name, body


def innermost(body):
    """The loops without a loop or a call in them: each a list of instructions."""
    start = body[0][0] if body else 0
    spans = set()
    for address, mnemonic, operands in body:
        target = TARGET.search(operands)
        if BRANCH.match(mnemonic) and target and start <= int(target.group(1), 16) <= address:
            spans.add((int(target.group(1), 16), address))
    for low, high in sorted(spans):
        if any((a, b) != (low, high) and low <= a and b <= high for a, b in spans):
            continue
        loop = [i for i in body if low <= i[0] <= high]
        if not any(mnemonic in ("bl", "blr") for _, mnemonic, _ in loop):
            yield loop


def vector_bytes(loop, single, pair, many):
    """Bytes of whole vector registers that loads, or stores, move in one turn."""
    total = 0
    for _, mnemonic, operands in loop:
        if mnemonic in (single, single.replace("r", "ur")) and operands.startswith("q"):
            total += 16
        elif mnemonic == pair and operands.startswith("q"):
            total += 32
        elif mnemonic == many:
            registers = operands.split("}")[0]
            first_last = re.findall(r"v(\d+)\.16b", registers)
            span = int(first_last[-1]) - int(first_last[0]) + 1 if "-" in registers else len(first_last)
            total += 16 * span
    return total


def cycles(mca, core, loop):
    """Cycles of one turn, in the model."""
    text = []
    for _, mnemonic, operands in loop:
        operands = TARGET.sub("somewhere", operands)
        text.append(f"\t{mnemonic}\t{operands}")
    command = [mca, "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={TURNS}"]
    result = subprocess.run(command, input="\n".join(text) + "\n", capture_output=True, text=True, check=False)
    total = re.search(r"Total Cycles:\s+(\d+)", result.stdout)
    if not total:
        sys.exit(f"loops.py: {' '.join(command)}: {result.stderr.strip()[:500]}")
    return int(total.group(1)) / TURNS


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    mca, cores = sys.argv[1], sys.argv[2:]
    heads = "".join(f"{core:>22}" for core in cores)
    print(f"{'function':<44}{'insns':>7}{'loads B':>9}{'stores B':>9}{heads}")
    found = 0
    for name, body in functions(sys.stdin):
        for loop in innermost(body):
            loads = vector_bytes(loop, "ldr", "ldp", "ld1")
            stores = vector_bytes(loop, "str", "stp", "st1")
            # Loops that test or copy a register or two are left out.
            if loads < 64:
                continue
            found += 1
            short = re.sub(r"^.*kernel::neon::", "", name)[:42]
            figures = ""
            for core in cores:
                turn = cycles(mca, core, loop)
                figures += f"{turn:>10.1f}{turn * 64 / loads:>7.1f}/64B"
            print(f"{short:<44}{len(loop):>7}{loads:>9}{stores:>9}{figures}")
    if not found:
        sys.exit("loops.py: no loop of the NEON kernel in the disassembly")


main()
