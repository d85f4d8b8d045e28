"""What a machine may lack: real data, a browser, optional libraries.

A test asks for them, and is skipped by name where they are absent. Two variables of the
environment, each a comma-separated list, change that:

- `HOWSURE_REQUIRE`: ``data``, ``browser``, ``libraries`` or ``site`` turns such a skip into a
  failure. ``libraries`` are those of the extra ``dev``, another goes by its name; ``site`` is what
  `make docs` builds.
  ``bare`` requires the opposite: that no library is there.
- `HOWSURE_WITHOUT`: top-level names of libraries that count as absent.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    "pillow": "PIL",
    "dask": "distributed",
    "vl-convert-python": "vl_convert",
    "pyyaml": "yaml",
    "xgboost-cpu": "xgboost",
}


def named(variable: str) -> frozenset[str]:
    """The names that a variable of the environment lists."""
    return frozenset(filter(None, map(str.strip, os.environ.get(variable, "").split(","))))


def absent(what: str, reason: str) -> None:
    """Skip with a reason, or fail where the machine promised to have it."""
    __tracebackhide__ = True
    if what in named("HOWSURE_REQUIRE"):
        pytest.fail(f"HOWSURE_REQUIRE names {what!r}, but {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


@cache
def libraries() -> dict[str, tuple[str, ...]]:
    """Each extra's libraries by the name that is imported, those of other extras included.

    Those of the studies come too, but for what both houses call alike.
    """
    extras: dict[str, list[str]] = {}
    for folder in (ROOT / "studies", ROOT):
        with (folder / "pyproject.toml").open("rb") as file:
            extras |= tomllib.load(file)["project"]["optional-dependencies"]
    extras["dev"] = [*extras["dev"], "howsure-studies[vision,tables,trees]"]

    def brought(extra: str) -> tuple[str, ...]:
        found: list[str] = []
        for requirement in extras[extra]:
            inner = re.fullmatch(r"howsure(?:-studies)?\[(.*)\]", requirement)
            if inner:
                found += [name for one in inner[1].split(",") for name in brought(one)]
            else:
                name = re.split(r"[^\w.-]", requirement)[0]
                found.append(MODULES.get(name, name.replace("-", "_")))
        return tuple(found)

    return {extra: brought(extra) for extra in extras}


def check_bare() -> None:
    """Refuse a machine that was promised to have no optional library, and has one."""
    if "bare" in named("HOWSURE_REQUIRE"):
        optional = set(libraries()["dev"]) - {"pytest", "pytest_xdist", "hypothesis"}
        there = sorted(name for name in optional if importlib.util.find_spec(name) is not None)
        if there:
            raise pytest.UsageError(f"HOWSURE_REQUIRE names 'bare', but there is {there}")


def needs(module: str) -> ModuleType:
    """An optional library; without it, the test (or all the file) is skipped and says so."""
    __tracebackhide__ = True
    name = module.partition(".")[0]
    if name not in named("HOWSURE_WITHOUT"):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != name:
                raise
    else:
        pytest.skip(f"HOWSURE_WITHOUT names {name}", allow_module_level=True)
    extras = [extra for extra, brought in libraries().items() if name in brought]
    extra = min(extras, key=lambda one: len(libraries()[one]), default="")
    promised = name in libraries()["dev"]
    source = f"extra {extra}" if extra else "no extra has it"  # as what `make rates` alone installs
    absent("libraries" if promised else name, f"{name} is not installed ({source})")
    raise AssertionError("absent returned")
