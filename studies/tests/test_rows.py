"""Every row of the papers: what the table says of each, and that the commands that it names run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs.test_how_to import parsed
from extras import absent
from howsure.cli.demo import make_table
from howsure.cli.main import app
from howsure.inputs.write import write_table
from howsure_studies.engine import (
    load_plan,
    plan_file,
    plan_names,
    published,
    shipped_studies,
    study_of,
    study_shipped,
)
from howsure_studies.tasks import DataNotFoundError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "case-studies" / "rows.md").read_text("utf-8")
KINDS = {"system", "method", "measure", "protocol", "data set", "table", "figure"}
RESULTS = {"table", "figure"}
STATES = {
    True: ("reached", "same pattern", "other scale", "not reached"),  # of results
    False: ("built", "other scale", "not reached"),
}
STUDIES = dict(
    zip(
        ("Shift", "Pointwise coverage", "Characteristics curve", "Adaptivity", "Congruence"),
        ("shift", "pointwise", "characteristic", "adaptivity", "congruence"),
        strict=True,
    )
)
PLACE = re.compile(r"(Table|Figure)s? ((?:[A-Z]?\d+)(?:(?:, | and | to )[A-Z]?\d+)*)")


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
        assert state in STATES[kind in RESULTS], row
        assert here or state in ("reached", "built"), row


def test_every_kind_of_row_is_there() -> None:
    for title, (_, rows) in sections().items():
        assert {row[1] for row in rows} == KINDS, title


@pytest.mark.parametrize("results", [True, False])
def test_the_counts_are_those_of_the_rows(results: bool) -> None:
    states = STATES[results]
    _, _, table = PAGE.partition(f"| {' | '.join(states)} |")
    for title, (_, rows) in sections().items():
        counts = Counter(row[2] for row in rows if (row[1] in RESULTS) == results)
        line = f"| {title} | {' | '.join(str(counts[state]) for state in states)} |"
        assert line in table.split("\n\n")[0], title


def places(row: str) -> set[str]:
    """Tables and figures that the name of a row names, as ``published.csv`` calls them."""
    found = set[str]()
    for kind, numbers in PLACE.findall(row):
        for part in re.split(", | and ", numbers):
            ends = [re.fullmatch(r"([A-Z]?)(\d+)", end) for end in part.split(" to ")]
            first, last = ends[0], ends[-1]
            assert first is not None
            assert last is not None
            for number in range(int(first[2]), int(last[2]) + 1):
                found.add(f"{kind.lower()} {first[1]}{number}")
    if section := re.search(r"\((section [\d.]+)\)", row):
        found.add(section[1])
    return found


def test_places_are_read_from_names_of_rows() -> None:
    assert places("Tables A13 and A24: sets") == {"table A13", "table A24"}
    assert places("Figures 3, 31 to 33: sets") == {f"figure {n}" for n in (3, 31, 32, 33)}
    assert places("Gain 4.9 % (section 4.2)") == {"section 4.2"}


def compared(study: str) -> dict[str, Counter[str]]:
    """How the numbers of each table of a paper compare on a study's page, ours one by one."""
    page = study_of(study).page(study_shipped(study))
    (beside,) = (table for table in page.tables if table.name == "beside_published")
    found: dict[str, Counter[str]] = {}
    for table, differs in zip(beside.columns["table"], beside.columns["differs"], strict=True):
        found.setdefault(str(table).partition(" (")[0], Counter())[str(differs)] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("title", STUDIES)
def test_what_is_reached_has_no_number_that_differs(title: str) -> None:
    outcomes = compared(STUDIES[title])
    _, rows = sections()[title]
    for row in rows:
        if row[1] in RESULTS and row[2] == "reached":
            for place in places(row[0]):
                assert not outcomes.get(place, Counter())["yes"], row
        if row[1] in RESULTS and row[2] == "not reached":
            assert not any(place in outcomes for place in places(row[0])), row


def totals() -> dict[str, list[int]]:
    """The head's table of published numbers: of each paper all, beside ours, and outcomes."""
    _, _, text = PAGE.partition("| Paper | published numbers |")
    lines = [line[2:-2].split(" | ") for line in text.split("\n\n")[0].splitlines()[2:]]
    return {name: [int(count.replace(",", "")) for count in counts] for name, *counts in lines}


def test_the_head_counts_every_published_number_once() -> None:
    assert len(totals()) == len(STUDIES)
    for study in STUDIES.values():
        papers = Counter(row.paper for row in published(study))
        (paper,) = totals().keys() & papers.keys()
        every, beside, *outcomes = totals()[paper]
        assert every == papers[paper]
        assert sum(outcomes) == beside <= every


@pytest.mark.slow
def test_the_head_counts_a_paper_as_its_page_does() -> None:
    page = study_of("characteristic").page(study_shipped("characteristic"))
    (beside,) = (table for table in page.tables if table.name == "beside_published")
    outcomes: dict[tuple[str, ...], set[str]] = {}
    names = ("table", "task", "measure", "differs")
    for *key, differs in zip(*(map(str, beside.columns[name]) for name in names), strict=True):
        outcomes.setdefault(tuple(key), set()).add(differs)
    differ = sum("yes" in each for each in outcomes.values())
    agree = sum("yes" not in each and "no" in each for each in outcomes.values())
    (paper,) = {str(name) for name in beside.columns["paper"]}
    assert totals()[paper][1:] == [len(outcomes), agree, differ, len(outcomes) - agree - differ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo's table, and nothing else at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "demo").mkdir()
    write_table(make_table(500), "demo/predictions.csv")
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
