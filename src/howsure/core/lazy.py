"""Packages whose names are loaded when first asked for, or that can be called."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def exporting(
    package: str,
    homes: Mapping[str, str],
    rooms: Callable[[], tuple[str, ...]] = tuple,
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


def called_as(package: str, module: str) -> None:
    """Let a package be called as its namesake, a function of another module, is.

    ``howsure.conformal`` is so: a verb, and the package with what the verb is made of.
    """
    name = package.rpartition(".")[2]

    def verb() -> Any:
        return getattr(importlib.import_module(module), name)

    class Verb(ModuleType):
        """A package that is a verb too."""

        def __call__(self, *args: Any, **options: Any) -> Any:
            return verb()(*args, **options)

        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(verb())

    sys.modules[package].__class__ = Verb
