"""Every row of the papers: what the table says of each, and that the commands that it names run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from docs.test_how_to import parsed
from extras import absent
from howsure.cli.main import app
from howsure_studies.engine import load_plan, plan_file, plan_names, shipped_studies
from howsure_studies.tasks import DataNotFoundError
from scripts import script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "case-studies" / "rows.md").read_text("utf-8")
KINDS = {"system", "method", "measure", "protocol", "data set", "table", "figure"}
STATES = ("reached", "other scale", "not reached")


def sections() -> dict[str, tuple[str, list[list[str]]]]:
    """Of each paper the command of its rows, and the rows."""
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        (command,) = re.findall(r"^\$ (.+)$", text, flags=re.MULTILINE)
        lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
        found[title] = (
            command,
            [[cell.strip() for cell in line[1:-1].split("|")] for line in lines],
        )
    return found


def commands() -> list[str]:
    told = [command for command, _ in sections().values()]
    for _, rows in sections().values():
        told += [name for row in rows for name in re.findall(r"`([^`]+)`", row[-1])]
    return list(dict.fromkeys(told))


def test_every_row_says_what_became_of_it() -> None:
    assert len(sections()) == 5
    rows = [row for _, part in sections().values() for row in part]
    assert len(rows) > 170
    for row in rows:
        assert len(row) == 5, row
        name, kind, state, here, _ = row
        assert name
        assert kind in KINDS, row
        assert state in STATES, row
        assert here or state == "reached", row


def test_every_kind_of_row_is_there() -> None:
    for title, (_, rows) in sections().items():
        assert {row[1] for row in rows} == KINDS, title


def test_the_counts_are_those_of_the_rows() -> None:
    told = re.findall(r"^\| ([A-Z][a-z ]+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    held = {name: tuple(map(int, counts)) for name, *counts in told}
    for title, (_, rows) in sections().items():
        counts = Counter(row[2] for row in rows)
        assert held[title] == tuple(counts[state] for state in STATES), title


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo's table, and nothing else at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "demo").mkdir()
    csv.write_csv(script("examples/demo.py").make_table(500), "demo/predictions.csv")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_table_runs(command: str, folder: Path) -> None:
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "pytest"]:
        assert (ROOT / words[3]).exists()
    elif words[0] == "python":
        told = [sys.executable, str(ROOT / words[1]), *words[2:], "--help"]
        subprocess.run(told, check=True, capture_output=True, cwd=ROOT)
    elif words[0] == "make":
        assert words[1] == "papers"
        names = words[2].removeprefix("PAPERS=").split()
        assert set(names) <= set(plan_names())
    elif words[:3] == ["howsure", "bench", "run"]:
        parsed(command)
        options = words[4:]
        profile = options[options.index("--profile") + 1] if "--profile" in options else None
        assert load_plan(words[3], [], profile=profile).worlds
    elif words[:3] == ["howsure", "bench", "report"]:  # pages are made in `test_docs`
        parsed(command)
        assert words[3] in shipped_studies() or plan_file(words[3]).with_suffix(".parquet").exists()
    else:
        result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
        if isinstance(result.exception, DataNotFoundError):
            absent("data", str(result.exception))
        assert result.exit_code == 0, result.output
        for written in re.findall(r"(?:-o|--plot) (\S+)", command):
            assert (folder / written).stat().st_size > 1_000
