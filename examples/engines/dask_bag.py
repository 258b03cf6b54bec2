"""Encodes every file of a folder as a Dask bag on two workers; fec makes it safe to do so again.

    dask_bag.py IN OUT

A line of JSON for each file on standard output. FEC is the command, fec if it is not set.
"""
import json
import os
import pathlib
import subprocess
import sys

import dask.bag

ATTEMPTS = 3


def encode(path, out):
    """Encodes a file, and returns the report of fec as a value that any engine can hand back."""
    command = [os.environ.get("FEC", "fec"), "encode", "--files-from", "-", "-0", "-o", f"{out}/{{/}}.fec", "--keep", "--json",
               "-q", "-j", "1"]
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, input=path.encode(errors="surrogateescape") + b"\0", stdout=subprocess.PIPE, check=False)
        # 4 is an error of input or output, and below 0 stands a signal: both may pass. Nothing else does.
        if done.returncode != 4 and done.returncode >= 0:
            break
    told = json.loads(done.stdout or "{}")
    return {"input": path, "exit_code": done.returncode, **told}


def main(folder, out):
    os.makedirs(out, exist_ok=True)
    paths = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file())
    bag = dask.bag.from_sequence(paths, npartitions=max(1, len(paths) // 4))
    results = bag.map(encode, out).compute(scheduler="processes", num_workers=2)
    for result in results:
        print(json.dumps(result))
    return max((result["exit_code"] != 0 for result in results), default=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
