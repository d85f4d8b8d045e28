"""Optional libraries, loaded when first needed."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType
from typing import Any

from howsure.core.errors import MissingDependencyError


def installs(extra: str, of: str = "howsure") -> str:
    """The command that adds an extra to what pip finds installed: it needs no release."""
    return f'pip install "{of}[{extra}]"'


def way_to_install(module: str | None) -> str:
    """How a message on a missing library goes on; empty where no extra brings it.

    >>> way_to_install("dask.distributed")
    '; run pip install "howsure[cluster]"'
    """
    wanted = (module or "").partition(".")[0].lower()
    for of in ("howsure", "howsure-studies"):
        with suppress(PackageNotFoundError):
            for line in requires(of) or ():
                name = re.match(r"[\w.-]+", line)
                extra = re.search(r"extra == ['\"]([\w-]+)", line)
                if name is None or extra is None or extra[1] in ("all", "dev", "docs"):
                    continue
                plain = name[0].lower().replace("-", "_")
                if wanted and (plain == wanted or plain.startswith(f"{wanted}_")):
                    return f"; run {installs(extra[1], of)}"
    return ""


def require(module: str, *, extra: str, of: str = "howsure") -> ModuleType:
    """Import an optional library, or say how to install it, as an extra of a distribution."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise
        raise MissingDependencyError(
            f"this needs the library {name!r}, which is not installed: run {installs(extra, of)}"
        ) from error


# ---- packages whose names are loaded when first asked for, or that can be called -----------------


def exporting(
    package: str,
    homes: Mapping[str, str],
    rooms: Callable[[], tuple[str, ...]] = tuple,
    base: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by the names of each module.

    Modules are those of the package, or of `base`; `rooms` gives submodules to be found too. Type
    checkers need the names as imports besides.
    """
    home = {name: module for module, exports in homes.items() for name in exports.split()}

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(f"{base or package}.{home[name]}"), name)
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
