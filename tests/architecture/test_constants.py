"""Constants of numerical code say what they limit, and why they have their value."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import howsure

SOURCE = Path(howsure.__file__).parent


def is_numeric(node: ast.expr) -> bool:
    """Whether an expression holds a number that somebody chose."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return is_numeric(operand)
        case ast.BinOp(left=left, right=right):
            return is_numeric(left) or is_numeric(right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(map(is_numeric, parts))
        case ast.Dict(values=parts) | ast.Call(args=parts):
            return any(map(is_numeric, parts))
    return False


def names_of(node: ast.stmt) -> list[str]:
    """The constants that a statement sets to numbers."""
    match node:
        case ast.Assign(targets=[target], value=value) if is_numeric(value):
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
        case ast.AnnAssign(target=target, value=ast.expr() as value) if is_numeric(value):
            parts = [target]
        case _:
            return []
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return [name for name in names if name.isupper() and not name.startswith("__")]


def read_uncommented(source: str) -> Iterator[str]:
    """Constants of numbers, of a module or a class, without a comment.

    A comment stands on the line above or in the statement itself; constants on the lines after one
    that has a comment share it.
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    tree = ast.parse(source)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for body in (tree.body, *(node.body for node in classes)):
        said_to = -1  # the last line of constants that share a comment
        for node in body:
            end = node.end_lineno or node.lineno
            if names := names_of(node):
                said = not comments.isdisjoint(range(node.lineno - 1, end + 1))
                if said or said_to == node.lineno - 1:
                    said_to = end
                else:
                    yield from (f"{node.lineno}: {name}" for name in names)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("# Why.\nA = 1\nB, C = 2.0, 3\n", []),
        ("A = 1  # why\nB: Final = (1, 2)\n", []),
        ("A = (\n    1,  # why\n    2,\n)\n", []),
        ("A = 1\n", ["1: A"]),
        ("# Why.\nA = 1\n\nB = -2\n", ["4: B"]),
        ('# Why.\nA = 1\n"""What."""\nB, _C = 2, 3\n', ["4: B", "4: _C"]),
        ("class A:\n    LEVEL = np.array([0.05])\n", ["2: LEVEL"]),
        ('A = "1"\nB = True\nC = A\n__all__ = [1]\nsmall = 1\n', []),
    ],
)
def test_a_constant_without_a_comment_is_found(source: str, found: list[str]) -> None:
    assert list(read_uncommented(source)) == found


def test_constants_have_a_comment() -> None:
    """Write above a new one what it limits and why it has its value, or that it was not tuned."""
    bare = [
        f"{path.relative_to(SOURCE)}:{found}"
        for path in sorted(SOURCE.rglob("*.py"))
        for found in read_uncommented(path.read_text(encoding="utf-8"))
    ]
    assert bare == []
