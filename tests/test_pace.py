"""The guard of the suite's length: a lane keeps its budget."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pace

TESTS = Path(__file__).parent
DEAR = """
import time

import pytest


def burn(seconds):
    begun = time.process_time()
    while time.process_time() < begun + seconds:
        pass


@pytest.fixture
def dear():
    burn(0.2)


def test_quick(dear):
    burn(0.01)


def test_dear():
    burn(0.2)


def test_as_dear():
    burn(0.2)
"""
GUARD = """
import pace

pace.time_unit, pace.budgets = lambda: 0.01, lambda: {{"lane": {budget}}}
pytest_plugins = ["pace"]
"""


def run(folder: Path, *options: str, budget: float = 100.0) -> str:
    (folder / "test_dear.py").write_text(DEAR)
    (folder / "conftest.py").write_text(GUARD.format(budget=budget))
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pace", "lane", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return f"{ran.stdout}\nexit status {ran.returncode}"


@pytest.mark.slow
def test_a_lane_within_its_budget_passes_and_lists_the_dearest(tmp_path: Path) -> None:
    shown = run(tmp_path)
    assert "3 passed" in shown
    assert "test_dear.py::test_" in shown
    assert "exit status 0" in shown


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_lane_that_exceeds_its_budget_fails(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Three times .2 s, those of fixtures included, are 60 units or more."""
    shown = run(tmp_path, *options, budget=50.0)
    assert "3 passed" in shown
    exceeded = re.search(r"^ERROR budget exceeded: .* are (\d+) units of 0.010 s", shown, re.M)
    assert exceeded is not None
    assert int(exceeded[1]) >= 60
    assert "exit status 1" in shown


def test_what_raises_a_budget_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raised = '[[raised]]\nlane = "test"\nby = 20\nfor = "a topic"\nfaster = "its page"\n'
    path = tmp_path / "budgets.toml"
    monkeypatch.setattr(pace, "BUDGETS", path)
    path.write_text(f"[units]\ntest = 100\nrest = 50\n{raised}{raised}")
    assert pace.budgets.__wrapped__() == {"test": 140, "rest": 50}
    path.write_text(f"[units]\ntest = 100\n{raised.replace('its page', ' ')}")
    with pytest.raises(ValueError, match="says what for, and what was made faster instead"):
        pace.budgets.__wrapped__()


def test_every_lane_of_the_suite_has_a_budget() -> None:
    assert set(pace.budgets()) == {"test", "bare", "rest", "rates", "rates-quarter"}
