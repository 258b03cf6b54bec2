"""The examples of docs/guide/python.md and of README.md run."""

import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).parents[1]
GUIDE, README = HERE.parents[1] / "docs/guide/python.md", HERE / "README.md"


def examples(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_there_are_examples():
    assert len(examples(GUIDE)) >= 5 and len(examples(README)) == 1


@pytest.mark.parametrize("page", [GUIDE, README], ids=lambda page: page.name)
def test_the_examples_run(page, tmp_path, monkeypatch, payload):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("photos.tar").write_bytes(payload)
    names = {}
    for nth, example in enumerate(examples(page)):
        exec(compile(example, f"{page.name}, example {nth}", "exec"), names)


def test_the_exit_codes_in_the_guide():
    import fecshards

    codes = dict(re.findall(r"^\| `(\w+)`.*\| (\d) \|$", GUIDE.read_text(), re.MULTILINE))
    assert codes.pop("OSError") == "4"
    assert {name: getattr(fecshards, name).exit_code for name in codes} == {name: int(code) for name, code in codes.items()}
    assert set(codes) == {cls.__name__ for cls in fecshards.FecError.__subclasses__()}
