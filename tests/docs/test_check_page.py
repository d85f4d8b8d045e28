"""docs/check.md: every command is run, and what is shown is what is printed."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
WORKFLOW = (ROOT / "examples" / "check.yml").read_text(encoding="utf-8")
COVERED = {"north": (683, 700), "east": (558, 600), "west": (560, 700)}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's table, and the page's own file of limits."""
    y, region = [], []
    for name, (covered, n) in COVERED.items():  # misses on either side by turns
        rows = np.arange(n)
        y.append(np.where(rows < covered, 0.0, np.where(rows % 2, 3.0, -3.0)))
        region += [name] * n
    ends = {"lower_90": np.full(2_000, -1.645), "upper_90": np.full(2_000, 1.645)}
    table = pa.table({"y": np.concatenate(y), **ends, "region": region})
    csv.write_csv(table, tmp_path / "predictions.csv")
    (limits,) = (text for text in blocks("toml") if text.startswith("# limits.toml"))
    (tmp_path / "limits.toml").write_text(limits, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def run(command: str) -> tuple[int, str]:
    words = shlex.split(command)
    assert words[0] == "howsure"
    result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
    return result.exit_code, result.stdout


def commands() -> list[tuple[str, str]]:
    """Each command with what the page shows of it; nothing if it shows none."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown))
    return found


@pytest.mark.parametrize(("command", "shown"), commands())
def test_a_command_prints_what_the_page_shows(folder: Path, command: str, shown: str) -> None:
    code, printed = run(command)
    assert printed == (shown or printed)
    assert f"exit {code}" in printed


def test_commands_were_found() -> None:
    assert len(commands()) == 6


def test_commands_in_a_line_run_too(folder: Path) -> None:
    """Those that the page names without what they print."""
    flags = re.findall(r"`(--(?:min|max) \w+=[\d.]+)`", PAGE)
    assert flags == ["--max misses_below=0.07", "--min worst_group=0.8"]
    for flag in flags:
        assert run(f"howsure check predictions.csv {flag} --groups region")[0] == 0
    tables = [text for text in blocks("toml") if "[tool.howsure.check]" in text]
    (folder / "pyproject.toml").write_text("".join(tables), encoding="utf-8")
    code, printed = run("howsure check predictions.csv")
    assert code == 1
    assert printed.startswith("limits: pyproject.toml [tool.howsure.check]\n")
    assert "`howsure check predictions.csv`" in PAGE


def test_the_keys_of_the_table_are_those_of_a_file() -> None:
    from howsure.report.check import rules_from

    table = PAGE.split("| key | of |")[1].split("\n\n")[0]
    told = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    written: dict[str, object] = {
        "limits": [
            {"measure": "coverage", "min": 0.5, "max": 0.9, "at": 0.9, "model": "m", "by": ["a"]}
        ],
        "by": ["a"],
        "confidence": 0.9,
        "sided": "one",
        "undecided": "pass",
        "fail_on": "bad",
        "findings": ["coverage"],
        "ignore": ["width"],
        "tolerance": 0.02,
        "miss_range": [0.0, 0.5],
        "baseline": "seasonal",
        "lead": 1,
        "season": 7,
    }
    rules_from(written, "a file")
    (limit,) = written["limits"]  # type: ignore[misc]
    assert told == {*written, *limit}


def test_the_keys_of_the_json_are_those_of_the_page(folder: Path) -> None:
    import json

    told = json.loads(run("howsure check predictions.csv --limits limits.toml --json")[1])
    table = PAGE.split("| key of the JSON |")[1].split("\n\n")[0]
    rows = {row.split("|")[1].strip(): row for row in table.splitlines()[2:]}
    named = {name for key in rows for name in re.findall(r"`(\w+)`", key)}
    assert set(told) - {"howsure"} == named
    for key in ("limits", "findings"):
        said = set(re.findall(r"`(\w+)`", rows[f"`{key}`"].split("|")[2]))
        assert set(told[key][0]) <= said
        assert said - set(told[key][0]) <= {"min", "max", "holds", "fails", "undecided"}


def test_the_workflow_is_sound_and_its_command_runs(folder: Path) -> None:
    (line,) = re.findall(r"- run: (howsure .*)", WORKFLOW)
    assert f"$ {line}\n" in PAGE
    assert run(line)[0] == 0
    assert ElementTree.parse(folder / "howsure.xml").getroot().get("failures") == "0"
    assert "path: howsure.xml" in WORKFLOW


def test_the_workflow_is_yaml_of_the_right_form() -> None:
    yaml = needs("yaml")
    held = yaml.safe_load(WORKFLOW)
    assert held[True] == ["push", "pull_request"]  # YAML 1.1 reads the key "on" as true
    steps = held["jobs"]["check"]["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert held["jobs"]["check"]["runs-on"] == "ubuntu-latest"


def test_the_tests_of_the_page_pass_and_fail() -> None:
    (block,) = blocks("python")
    held: dict[str, object] = {}
    exec(compile(block, "docs/check.md", "exec"), held)  # the page's own words
    tests = [value for name, value in held.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()  # type: ignore[operator]
    held["prediction"] = held["prediction"].take(np.arange(1000))  # type: ignore[attr-defined]
    held["y"] = 2.0 * held["y"]  # type: ignore[operator]
    for test in tests:
        with pytest.raises(AssertionError):
            test()  # type: ignore[operator]


def test_toml_on_the_page_is_toml() -> None:
    for text in blocks("toml"):
        assert tomllib.loads(text)
