"""Encodes every file of a folder by Ray tasks, two at a time; fec makes it safe to do so again.

    ray_tasks.py IN OUT

A line of JSON for each file on standard output. FEC is the command, fec if it is not set.
"""
import json
import os
import pathlib
import subprocess
import sys

import ray


class TryAgain(Exception):
    """fec failed in a way that may pass."""


# Ray repeats a task whose worker was lost, and one that says so itself.
@ray.remote(num_cpus=1, max_retries=2, retry_exceptions=[TryAgain])
def encode(path, out):
    command = [os.environ.get("FEC", "fec"), "encode", "--files-from", "-", "-0", "-o", f"{out}/{{/}}.fec", "--keep", "--json",
               "-q", "-j", "1"]
    done = subprocess.run(command, input=path.encode(errors="surrogateescape") + b"\0", stdout=subprocess.PIPE, check=False)
    # 4 is an error of input or output, and below 0 stands a signal: both may pass. Nothing else does.
    if done.returncode == 4 or done.returncode < 0:
        raise TryAgain(path, done.returncode)
    return {"input": path, "exit_code": done.returncode, **json.loads(done.stdout or "{}")}


def main(folder, out):
    os.makedirs(out, exist_ok=True)
    paths = sorted(str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file())
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    tasks = {encode.remote(path, out): path for path in paths}
    left, failed = list(tasks), False
    while left:
        [task], left = ray.wait(left, num_returns=1)
        try:
            result = ray.get(task)
        except ray.exceptions.RayError as error:
            result = {"input": tasks[task], "exit_code": 4, "error": str(error)}
        failed |= result["exit_code"] != 0
        print(json.dumps(result), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(*(os.path.abspath(path) for path in sys.argv[1:])))
