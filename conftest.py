"""What tests share: real data, a browser, marks by what a test needs, few draws of perfect models.

`extras` says what a machine may lack, `pace` how long tests may take.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import signal
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import typer.main
import typer.testing

from extras import absent, check_bare
from howsure.core.errors import strict
from howsure.topics.congruence import view
from howsure.verdict import nulls

pytest_plugins = ["pace", "forms"]


NEEDS = {"data_dir": "data", "chromium": "browser"}
"""The mark of each test that uses a fixture, itself or by another."""
REST = ("slow", "data", "browser")
"""Marks of what `make test-rest` runs."""
FEW_DRAWS = {
    **{(nulls, name): 5 for name in ("_DRAWS_OF_ALL", "_DRAWS_OF_PART")},
    (nulls, "_DRAWS_OF_GROUP"): 4,
    (nulls, "_DRAWS_OF_MANY_ROWS"): 3,
    (nulls, "_MAX_DRAWS_OF_MEANS"): 10,
    (nulls, "_MAX_TABLES"): 19,
    (view, "MAX_REPLICATES"): 999,  # each finding is still proven beside all others
}
"""Draws of perfect models in tests that are not about their range."""
USERS_DRAWS = {(module, name): getattr(module, name) for module, name in FEW_DRAWS}
FULL_DRAWS = ("draws", "rate")
"""Marks of tests that draw as often as for users, unless they are marked `few_draws`."""


def pytest_configure() -> None:
    check_bare()
    # the tests' tree is large, and every full collection would walk all of it
    gc.set_threshold(20_000, 20, 20)
    # each call of the command line would build all its commands anew
    typer.testing._get_command = functools.cache(typer.main.get_command)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quarter", type=int, metavar="Q", help="run one of four parts of the tests")
    parser.addoption("--one-variant", action="store_true", help="run one case of each test")


@pytest.hookimpl(tryfirst=True)  # before marks are selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in set(NEEDS) & set(getattr(item, "fixturenames", ())):
            item.add_marker(NEEDS[fixture])
    _check_found(items)
    quarter = config.getoption("--quarter")
    if quarter is not None:
        _select(items, lambda item: zlib.crc32(item.nodeid.encode()) % 4 == quarter % 4)
    if config.getoption("--one-variant"):
        first: dict[str, pytest.Item] = {}
        for item in items:
            first.setdefault(item.nodeid.partition("[")[0], item)
        _select(items, lambda item: first[item.nodeid.partition("[")[0]] is item)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def _check_found(items: list[pytest.Item]) -> None:
    """`make test-rest` seeks its tests in files that name what makes them tests of that lane."""
    makefile = Path(__file__).with_name("Makefile").read_text(encoding="utf-8")
    named = re.compile(re.findall('^RESTED = .*"(.+)"', makefile, flags=re.MULTILINE)[0])
    files = {item.path for item in items if any(map(item.get_closest_marker, REST))}
    lost = [str(path) for path in files if not named.search(path.read_text(encoding="utf-8"))]
    if lost:
        raise pytest.UsageError(f"RESTED of the Makefile finds no test in {', '.join(lost)}")


def _select(items: list[pytest.Item], chosen: Callable[[pytest.Item], bool]) -> None:
    dropped = [item for item in items if not chosen(item)]
    if dropped:
        dropped[0].config.hook.pytest_deselected(items=dropped)
        items[:] = filter(chosen, items)


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Perfect models are drawn a few times, or as for users in docstrings and marked tests."""
    full = isinstance(item, pytest.DoctestItem) or any(map(item.get_closest_marker, FULL_DRAWS))
    few = item.get_closest_marker("few_draws") or not full
    for (module, name), count in (FEW_DRAWS if few else USERS_DRAWS).items():
        setattr(module, name, count)


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
