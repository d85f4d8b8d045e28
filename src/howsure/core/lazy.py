"""Packages whose names are loaded when first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def exporting(
    package: str, homes: Mapping[str, str], rooms: Callable[[], tuple[str, ...]] = tuple
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by the names of each module.

    `rooms` gives submodules to be found too. Type checkers need the names as imports besides.
    """
    home = {name: module for module, held in homes.items() for name in held.split()}

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        if not name.startswith("_") and name in rooms():
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}",
            name=name,
            obj=sys.modules.get(package),
        )

    def names() -> list[str]:
        return sorted({*home, *rooms()})

    return find, names, sorted(home)
