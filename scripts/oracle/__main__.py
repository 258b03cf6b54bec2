"""The second implementation of the formats of fec, written from docs/FORMAT.md alone.

    python3 scripts/oracle PART COMMAND …

PART is encoding (shard files and containers), stream, sidecar, stores, seal, area or reference (the codes alone); `PART
--help` tells its commands.
"""
import importlib
import sys
from pathlib import Path

PARTS = ("encoding", "stream", "sidecar", "stores", "seal", "area", "reference")


def run():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        print("usage: python3 scripts/oracle PART COMMAND …, where PART is one of " + ", ".join(PARTS), file=sys.stderr)
        return 2
    part = sys.argv.pop(1)
    sys.argv[0] = "oracle " + part
    # Called by its folder's name, Python looks for modules in the folder and not beside it.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    try:
        return importlib.import_module("oracle." + part).main()
    except OSError as error:
        print(error, file=sys.stderr)
        return 4


sys.exit(run())
