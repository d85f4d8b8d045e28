"""What docstrings name in single backticks exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from architecture.weigh import ROOT, SOURCES, read_file

REFERENCE = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")


def read_names(path: Path) -> Iterator[str]:
    """The names that a file defines, uses or writes as a string."""
    yield from (path.stem, path.parent.name)
    for node in read_file(path)[1]:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.ImportFrom(module=str(names)) | ast.alias(name=names):
                yield from names.split(".")
            case ast.Constant(value=str(text)):
                yield text


def read_references(path: Path) -> Iterator[str]:
    """What a file's docstrings refer to, by its last name."""
    for node in read_file(path)[1]:
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield from (name.split(".")[-1] for name in REFERENCE.findall(docstring))


def test_a_reference_to_what_is_gone_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('class A:\n    """Of `A.run`, `Gone` and ``column``."""\n    run = 1\n')
    assert set(read_references(path)) - set(read_names(path)) == {"Gone"}


def test_docstrings_name_what_exists() -> None:
    paths = [path for tree in SOURCES for path in sorted((ROOT / tree).rglob("*.py"))]
    names = {name for path in paths for name in read_names(path)}
    gone = [f"{path}: {name}" for path in paths for name in read_references(path)]
    assert not [line for line in gone if line.rpartition(" ")[2] not in names]
