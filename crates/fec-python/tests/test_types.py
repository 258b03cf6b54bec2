"""The type hints name everything in the module, and nothing else."""

import ast
import inspect
import pathlib

import fecshards
from fecshards import _native

STUBS = ast.parse((pathlib.Path(__file__).parents[1] / "python/fecshards/_native.pyi").read_text())


def test_every_name_has_a_hint():
    hinted = {node.name for node in STUBS.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name[0] != "_"}
    assert hinted == {name for name in dir(_native) if not name.startswith("_")}
    assert hinted | {"Damaged", "FecError", "Refused", "UsageError", "WrongRoot"} == set(fecshards.__all__)


def test_every_attribute_has_a_hint():
    for node in STUBS.body:
        if isinstance(node, ast.ClassDef) and node.name[0] != "_":
            hinted = {child.name for child in node.body if isinstance(child, ast.FunctionDef) and child.name != "__new__"}
            assert hinted == {name for name in vars(getattr(_native, node.name)) if not name.startswith("_")}


def test_arguments_are_those_of_the_hints():
    for node in STUBS.body:
        if isinstance(node, ast.FunctionDef):
            parameters = inspect.signature(getattr(_native, node.name)).parameters
            assert list(parameters) == [argument.arg for argument in node.args.args + node.args.kwonlyargs]


def test_everything_has_a_docstring():
    for name in fecshards.__all__:
        assert getattr(fecshards, name).__doc__, name
