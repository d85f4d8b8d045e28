"""Real data and a browser, where the machine has them; `extras` says what else it may lack."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from extras import absent, check_bare
from howsure.core.faults import strict

pytest_plugins = ["pace", "forms"]
collect_ignore = ["src/howsure/methods.py", "src/howsure/studies.py"]  # old paths: they raise


def pytest_configure() -> None:
    check_bare()


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """A shell in the background has its children ignore Ctrl-C, and so those that tests start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
def libraries_draw_the_same_each_time() -> None:
    """howsure touches no global state, but peers that got no seed draw from NumPy's."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(autouse=True)
def every_fault_is_raised(request: pytest.FixtureRequest) -> Iterator[None]:
    """The net under the measures hides nothing from a test; what users see, examples show."""
    if isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with strict():
        yield
