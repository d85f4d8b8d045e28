"""What every test may lean on: real data and a browser, where the machine has them.

`HOWSURE_REQUIRE`, a comma-separated list of ``data`` and ``browser``, turns their absence from a
named skip into a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howsure.core.faults import strict

REQUIRED = {part.strip() for part in os.environ.get("HOWSURE_REQUIRE", "").split(",") if part}


def absent(what: str, reason: str) -> None:
    """Skip with a reason, or fail where the machine promised to have it."""
    if what in REQUIRED:
        pytest.fail(f"HOWSURE_REQUIRE names {what!r}, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def data_dir() -> Callable[[str], Path]:
    """Find a folder of the shared real data."""

    def find(name: str) -> Path:
        root = os.environ.get("HOWSURE_DATA")
        if not root:
            absent("data", "HOWSURE_DATA is not set, so the real data is not at hand")
        folder = Path(str(root)) / name
        if not folder.is_dir():
            absent("data", f"HOWSURE_DATA holds no folder {name}")
        return folder

    return find


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the machine's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        absent("browser", "no Chromium is installed")
    return str(path)


@pytest.fixture(autouse=True)
def every_fault_is_raised() -> Iterator[None]:
    """The net under the measures hides nothing from a test."""
    with strict():
        yield
