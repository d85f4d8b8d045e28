"""Packages whose names are loaded when first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def exporting(
    package: str, homes: Mapping[str, str], rooms: Callable[[], tuple[str, ...]] = tuple
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that exports names of its modules.

    Parameters
    ----------
    package : str
        Its dotted name.
    homes : mapping of str to str
        Where each name is defined: a module's dotted name.
    rooms : callable
        Gives the names of submodules to be found too.

    Returns
    -------
    tuple of callable

    Examples
    --------
    >>> find, names = exporting("howsure.core", {"sqrt": "math"})
    >>> find("sqrt")(4.0), names()
    (2.0, ['sqrt'])
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        if not name.startswith("_") and name in rooms():
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules.get(package),
        )

    def names() -> list[str]:
        return sorted({*homes, *rooms()})

    return find, names
