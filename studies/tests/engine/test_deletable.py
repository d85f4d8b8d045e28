"""A study is one folder: without it, and its line in the table of studies, the rest works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "howsure_studies"
ROOMS = {"cli", "engine", "methods", "tasks"}
STUDIES = sorted(
    folder.name
    for folder in SOURCE.iterdir()
    if folder.is_dir() and folder.name not in {*ROOMS, "__pycache__"}
)
WITHOUT = """
import sys
from importlib.util import find_spec

import howsure
import howsure_studies
from howsure_studies.engine import load_plan, plan_names, studies, trials_of

gone = sys.argv.pop()
assert howsure_studies.__file__.startswith(sys.argv.pop())
assert find_spec(f"howsure_studies.{gone}") is None
assert gone not in studies.names()
plans = [load_plan(name) for name in plan_names()]
assert plans and all(plan.study in studies.names() for plan in plans)
assert "assess" in howsure.__all__ and howsure.assess

from howsure.cli.entry import main

sys.argv = ["howsure", "--help"]
main()
"""


def test_every_study_is_known() -> None:
    assert STUDIES == ["adaptivity", "characteristic", "congruence", "pointwise", "shift", "which"]


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.rate
def test_a_study_can_be_deleted(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "howsure_studies"
    shutil.copytree(SOURCE, copy)  # compiled files are as old as theirs
    shutil.rmtree(copy / name)
    table = copy / "engine" / "plan.py"
    text, lines = re.subn(rf'\n *"{name}": "howsure[^\n]*', "", table.read_text())
    assert lines == 1
    table.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path), name],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "recalibrate" in done.stdout
    assert "bench" in done.stdout
    assert ("simulate" in done.stdout) == (name != "pointwise")
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    if name == "pointwise":
        assert len(notes) == 1
        assert notes[0].startswith("note: command 'simulate' cannot be loaded")
    else:
        assert done.stderr == ""
