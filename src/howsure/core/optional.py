"""Optional libraries, loaded when first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from howsure.core.errors import MissingDependencyError


def installs(extra: str, of: str = "howsure") -> str:
    """The command that adds an extra to what pip finds installed: it needs no release."""
    return f'pip install "{of}[{extra}]"'


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
