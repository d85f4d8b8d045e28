"""The guard of the suite's length: a test that is dear must say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
DEAR = """
import time

import pytest


def burn(seconds):
    begun = time.process_time()
    while time.process_time() < begun + seconds:
        pass


def test_quick():
    burn(0.01)


def test_dear():
    burn(0.2)


@pytest.mark.slow
def test_marked():
    burn(0.2)
"""
GUARD = """
import pace

pace.LIMIT, pace.slowness = 0.1, lambda: {slowness}
pytest_plugins = ["pace"]
"""


def run(folder: Path, slowness: float) -> str:
    (folder / "test_dear.py").write_text(DEAR)
    (folder / "conftest.py").write_text(GUARD.format(slowness=slowness))
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers = slow\npythonpath = {TESTS}\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--pace", "1"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.stdout


def test_a_dear_test_fails_unless_it_is_marked(tmp_path: Path) -> None:
    shown = run(tmp_path, 1.0)
    assert "FAILED test_dear.py::test_dear - Failed: 0.2 s of processor time" in shown
    assert "1 failed, 2 passed" in shown


def test_a_machine_that_is_slow_just_then_is_allowed_for(tmp_path: Path) -> None:
    shown = run(tmp_path, 3.0)
    assert "3 passed" in shown
    assert "test_dear.py::test_" in shown  # the dearest is listed
