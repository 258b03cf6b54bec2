"""Helpers of the tests. FEC names the command `fec` that the module is compared with."""

import os
import pathlib
import random
import shutil
import subprocess

import pytest


@pytest.fixture
def payload():
    return random.Random(1).randbytes(3_000_001)


@pytest.fixture
def file(tmp_path, payload):
    path = tmp_path / "payload.bin"
    path.write_bytes(payload)
    return path


@pytest.fixture(scope="session")
def fec():
    """Runs the command: its exit code and standard output."""
    built = pathlib.Path(__file__).parents[3] / "target/release/fec"
    command = os.environ.get("FEC") or (str(built) if built.exists() else shutil.which("fec"))
    if command is None:
        pytest.fail("there is no fec to hold it against: build it, or name it with FEC")

    def run(*arguments):
        done = subprocess.run([command, "-q", *map(str, arguments)], capture_output=True)
        return done.returncode, done.stdout.decode().strip()

    return run


@pytest.fixture
def damage():
    """Overwrites some bytes of a file."""

    def change(path, at, data=b"rot"):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data)

    return change
