"""Optional libraries, loaded when first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from howsure.core.errors import MissingDependencyError


def installs(extra: str) -> str:
    """The command that adds an extra to howsure, which pip finds installed: it needs no release."""
    return f'pip install "howsure[{extra}]"'


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise
        raise MissingDependencyError(
            f"this needs the library {name!r}, which is not installed: run {installs(extra)}"
        ) from error
