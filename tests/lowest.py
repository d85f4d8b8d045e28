"""Print the oldest version of each library that both distributions declare, as constraints of pip.

python tests/lowest.py > lowest.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = ("dev", "docs")
"""Extras that serve development, and no user."""


def declared(*folders: Path) -> list[str]:
    """What users of distributions may install, but for our own: what all need, then extras."""
    found: list[str] = []
    for folder in folders:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        extras = project["optional-dependencies"].items()
        found += project["dependencies"]
        found += [each for name, brought in extras if name not in TOOLS for each in brought]
    return [each for each in found if not re.match(r"howsure\b", each)]


def lowest() -> dict[str, str]:
    """The bound of each library from below."""
    bounds: dict[str, str] = {}
    for requirement in declared(ROOT, ROOT / "studies"):
        parts = re.fullmatch(r"([\w-]+)(?:\[\w+\])?[>=]=([\d.]+)(?:,<\d+)?", requirement)
        if parts is None:
            raise ValueError(f"{requirement!r} states no lower bound alone")
        name, bound = parts.groups()
        if bounds.setdefault(name, bound) != bound:
            raise ValueError(f"{name} has two lower bounds, {bounds[name]} and {bound}")
    return bounds


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={bound}\n" for name, bound in lowest().items())
