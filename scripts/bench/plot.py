#!/usr/bin/env python3
"""Draws a result of `fec bench` as PNG and SVG.

    scripts/bench/plot.py RESULT.json [-o NAME]

`fec bench PRESET --save RESULT.json` writes what it reads. The reference workload becomes bars of phases; sweeps
become lines of Mb/s, and of modelled misses where there are any. Needs matplotlib (`pip install matplotlib`).
"""

import argparse
import json
import os
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    sys.exit("plot: needs matplotlib: pip install matplotlib")


def number(cell):
    """The figure in a cell, if there is one."""
    if isinstance(cell, dict):
        return cell["median"]
    return cell if isinstance(cell, (int, float)) else None


def phases(axes, tables):
    """Stacked bars: one for each hash and thread count of each direction."""
    labels, stacks = [], []
    for table in tables:
        rows = {}
        for row in table["rows"]:
            if row["phase"] not in ("total", "set-up"):
                rows.setdefault((row["hash"], row["threads"]), []).append((row["phase"], number(row["time_ms"])))
        for (name, threads), stack in rows.items():
            labels.append(f"{table['name']}\n{name}, {threads} thr.")
            stacks.append(stack)
    names = list(dict.fromkeys(phase for stack in stacks for phase, _ in stack))
    bottom = [0.0] * len(stacks)
    for name in names:
        heights = [dict(stack).get(name) or 0.0 for stack in stacks]
        axes.bar(labels, heights, bottom=bottom, label=name)
        bottom = [b + h for b, h in zip(bottom, heights)]
    axes.set_ylabel("ms (medians)")
    axes.legend()


def sweep(axes, table, x, y, label):
    """Draws a line for each value of the other keys."""
    keys = [c["name"] for c in table["columns"] if c["key"] and c["name"] != x]
    lines = {}
    for row in table["rows"]:
        if number(row.get(x)) is not None and number(row.get(y)) is not None:
            lines.setdefault(" ".join(str(row[k]) for k in keys), []).append((number(row[x]), number(row[y])))
    for name, points in lines.items():
        points.sort()
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel(x.replace("_", " "))
    axes.set_ylabel(label)
    if lines:
        axes.legend(fontsize=7)


def bars(axes, table):
    """Mb/s of every row."""
    keys = [c["name"] for c in table["columns"] if c["key"]]
    rate = next((c["name"] for c in table["columns"] if c["name"].endswith("per_second")), None)
    rows = [(" ".join(str(row[k]) for k in keys), number(row.get(rate))) for row in table["rows"]]
    rows = [(name, value) for name, value in rows if value is not None]
    axes.barh([name for name, _ in rows], [value for _, value in rows])
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=6)
    axes.set_xlabel((rate or "").replace("_", " "))


def draw(report):
    """The figure of a report."""
    tables = [t for t in report["tables"] if t["rows"]]
    names = [t["name"] for t in tables]
    if not tables:
        sys.exit("plot: the result has no rows")
    if "encode" in names and "decode" in names:
        figure, axes = pyplot.subplots(figsize=(9, 5))
        phases(axes, tables)
    else:
        table = tables[0]
        columns = {c["name"]: c["key"] for c in table["columns"]}
        x = next((n for n in ("block", "shard_bytes") if columns.get(n) and len({r[n] for r in table["rows"]}) > 1), None)
        if x is None:
            figure, axes = pyplot.subplots(figsize=(9, 1 + 0.18 * len(table["rows"])))
            bars(axes, table)
        else:
            misses = [n for n in ("model_l1_misses_per_kib", "model_l2_misses_per_kib") if n in columns]
            figure, axes = pyplot.subplots(1, 1 + len(misses), figsize=(6 * (1 + len(misses)), 5), squeeze=False)
            sweep(axes[0][0], table, x, "megabits_per_second", "Mb/s")
            for place, name in zip(axes[0][1:], misses):
                sweep(place, table, x, name, name.replace("_", " "))
    machine = report["machine"]
    emulated = " EMULATED, no speed means anything" if machine["emulated"] else ""
    figure.suptitle(f"fec bench {report['preset']}: {machine['cpu']}, {report['backend']}, {machine['date'][:10]}{emulated}", fontsize=9)
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("result", help="what `fec bench --save` wrote")
    parser.add_argument("-o", "--output", help="name of the pictures without its ending [default: that of the result]")
    args = parser.parse_args()
    with open(args.result, encoding="utf-8") as file:
        report = json.load(file)
    if report.get("command") != "bench":
        sys.exit(f"plot: {args.result} is no result of fec bench")
    name = args.output or os.path.splitext(args.result)[0]
    figure = draw(report)
    for ending in ("png", "svg"):
        figure.savefig(f"{name}.{ending}", dpi=150)
        print(f"{name}.{ending}")


if __name__ == "__main__":
    main()
