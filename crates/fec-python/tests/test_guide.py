"""The examples of docs/guide/python.md and of README.md run."""

import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parents[1]
GUIDE, README = HERE.parents[1] / "docs/guide/python.md", HERE / "README.md"


def examples(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def extra(example):
    """The package that an example needs besides fecshards: one of its extras, or none."""
    needed = re.search(r"^import (fsspec|zarr)$", example, re.MULTILINE)
    return needed[1] if needed else None


def test_there_are_examples():
    assert len(examples(GUIDE)) >= 7 and len(examples(README)) == 1
    assert {extra(example) for example in examples(GUIDE)} == {None, "fsspec", "zarr"}


@pytest.mark.parametrize("page, wanted", [(GUIDE, None), (GUIDE, "fsspec"), (GUIDE, "zarr"), (README, None)])
def test_the_examples_run(page, wanted, tmp_path, monkeypatch, payload):
    """Those of an extra run behind the others, where its package is."""
    if wanted:
        pytest.importorskip(wanted, reason=f"the example needs {wanted}, which is not there")
    monkeypatch.chdir(tmp_path)
    pathlib.Path("photos.tar").write_bytes(payload)
    names = {}
    for nth, example in enumerate(examples(page)):
        if extra(example) in (None, wanted):
            exec(compile(example, f"{page.name}, example {nth}", "exec"), names)


def test_the_exit_codes_in_the_guide():
    import fecshards

    codes = dict(re.findall(r"^\| `(\w+)`.*\| (\d) \|$", GUIDE.read_text(), re.MULTILINE))
    assert codes.pop("OSError") == "4"
    assert {name: getattr(fecshards, name).exit_code for name in codes} == {name: int(code) for name, code in codes.items()}
    assert set(codes) == {cls.__name__ for cls in fecshards.FecError.__subclasses__()}
