"""Optional libraries, loaded when first needed."""

from __future__ import annotations

import importlib
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from types import ModuleType

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
