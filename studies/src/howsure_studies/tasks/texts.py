"""Real text that every machine has: what Python's standard library says of its functions."""

from __future__ import annotations

import ast
import platform
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from howsure.core.convert import check_whole
from howsure.core.rng import child
from howsure_studies.tasks.files import DataNotFoundError
from howsure_studies.tasks.task import Part

_LEFT_OUT: Final = frozenset(
    (
        *("site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"),
        *("turtledemo", "ensurepip", "pydoc_data"),
    )
)
"""Folders of others, of tests, and such as distributions leave away."""
_LEAST: Final = 15  # characters of a summary; shorter ones say nothing
_MOST: Final = 400  # characters of it that count


def read_docstrings(
    seed: int = 0, *, python: str | None = None, train: int = 1200, val: int = 200, test: int = 400
) -> Mapping[str, Part]:
    """Read first paragraphs of docstrings, and how long the functions are that they describe.

    Parameters
    ----------
    seed : int
        Which rows, and which are in which part.
    python : str, optional
        Version, such as ``3.11`` or ``3.11.7``, that must be the running one, for each has a
        library of its own; any if omitted.
    train, val, test : int
        Rows of each part.

    Returns
    -------
    mapping of str to Part
        ``train``, ``val`` and ``test``: x are texts, y is the natural logarithm of the number of
        characters of the function's body but for its docstring, lines without their indentation.
        A text that several functions have is the first one's.

    Raises
    ------
    DataNotFoundError
        If another version of Python runs, or its library lies not in files.
    InputError
        If there are fewer texts than rows are asked for.

    Notes
    -----
    Some 5,500 texts. Python's licence (PSF) holds for them; they are read where they lie.

    Examples
    --------
    >>> parts = read_docstrings(train=20, val=5, test=5)  # doctest: +SKIP
    >>> parts["train"].x.shape, parts["test"].ids.shape  # doctest: +SKIP
    ((20,), (5,))
    """
    running = platform.python_version()
    if python is not None and not f"{running}.".startswith(f"{python}."):
        raise DataNotFoundError(
            f"docstrings are those of Python {python}, but Python {running} runs, whose library "
            "is another"
        )
    rows = described(sysconfig.get_paths()["stdlib"])
    if not rows:
        raise DataNotFoundError("the standard library is not on this machine as files of text")
    sizes = {"train": train, "val": val, "test": test}
    for name, size in sizes.items():
        check_whole(size, name, 2)
    check_whole(sum(sizes.values()), "rows", most=len(rows))
    order = child(seed, "docstrings").permutation(len(rows))
    cuts = np.cumsum(list(sizes.values()))
    chosen = zip(sizes, np.split(order, cuts)[:-1], strict=True)
    return {
        name: Part(
            x=np.array([rows[row][0] for row in own]),
            y=np.log([rows[row][1] for row in own]),
            ids=np.array([rows[row][2] for row in own]),
        )
        for name, own in chosen
    }


@cache
def described(folder: str) -> tuple[tuple[str, int, str], ...]:
    """Of each function below a folder: its summary, characters of its body, and where it stands."""
    rows: dict[str, tuple[str, int, str]] = {}
    root = Path(folder)
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if _LEFT_OUT.isdisjoint(place.parts):
            for summary, size, name in _functions(path):
                rows.setdefault(summary, (summary, size, f"{place.as_posix()}:{name}"))
    return tuple(rows.values())


def _functions(path: Path) -> Iterator[tuple[str, int, str]]:
    """Functions of a file that have both a docstring and a body; none where it is no Python."""
    try:
        source = path.read_text("utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return
    lines = source.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            whole = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            body = node.body[1:]
            if len(whole) >= _LEAST and body:
                own = lines[body[0].lineno - 1 : body[-1].end_lineno]
                size = sum(len(line.strip()) for line in own)
                yield whole[:_MOST], size, f"{node.name}:{node.lineno}"
