"""The methods of the shift examples go on the leaderboard, and the docs' Python runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from howsure.cli.main import app

ROOT = Path(__file__).parents[3]
PLAN = """
[plan]
name = "tiny"
study = "shift"
[options]
runs = 1
[worlds]
cells = { world = "cells", train = 80, val = 60, test = 60 }
cells-tails = { world = "cells-tails", train = 80, val = 60, test = 60 }
[methods]
"Conformal Prediction" = "conformal"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.toml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def blocks() -> list[str]:
    text = (ROOT / "docs" / "shift.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def submit(method: str) -> Result:
    given = ("bench", "submit", method, "--plan", "tiny.toml", "--store", "kept")
    return CliRunner().invoke(app, [*given, "-o", "page.html"], env={"COLUMNS": "120"})


@pytest.mark.rate
def test_the_example_is_submitted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    told = submit("shift_submit:Brightness")
    assert told.exit_code == 0, told.output
    assert "Prediction rate by dataset" in told.stdout
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "<dd>Brightness</dd>" in page


@pytest.mark.rate
def test_the_method_of_the_docs_is_submitted(place: Path) -> None:
    (place / "my_methods.py").write_text(blocks()[1], encoding="utf-8")
    try:
        told = submit("my_methods:Brightness")
    finally:
        sys.modules.pop("my_methods", None)
    assert told.exit_code == 0, told.output
    assert "Brightness" in told.stdout
    assert "Prediction rate by dataset" not in told.stdout


def test_the_table_of_the_docs_is_cut_and_tested(place: Path) -> None:
    held: dict[str, object] = {}
    exec(blocks()[0], held)
    linear = held["results"][0]  # type: ignore[index]
    home = linear.value("test_empirical_coverage", "home")
    assert home.low < 0.9 < home.high
    assert linear.value("test_empirical_coverage", "shift").mean < 0.88
    assert (place / "years.html").exists()
