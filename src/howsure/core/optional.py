"""Optional libraries, loaded when first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from howsure.core.errors import MissingDependencyError


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise
        raise MissingDependencyError(
            f"this needs the library {name!r}, which is not installed: "
            f'run pip install "howsure[{extra}]"'
        ) from error
