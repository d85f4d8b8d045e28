"""Data on persons: with --no-rows nothing that is written tells of a single row.

Names, features, groups, times and pictures of single rows bear secrets that nothing else can hold
by chance. The same commands without the option write them, so the scan can find them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import howsure
from howsure.cli.main import app
from howsure.core.labels import Categories
from howsure.engine.view import View
from howsure.predictions import EvalSet
from howsure.report.no_rows import FEWEST, pooled
from howsure.topics.congruence.examples import rejection_curves
from howsure.topics.drift import _when
from howsure.topics.groups import groupings

ROWS = 420
HEAD = "person,y,mean,sd,age,income,job,region,site,ward,visited,photo"
READ = (
    "--row-id person --features age,income,job --ease age --groups region,site --cluster ward "
    "--time visited --image photo"
)
SECRET = re.compile(r"SECRET|[1-9.]\d*577215\d{4}")
"""What stands in names and labels, and the digits that only values of single rows have."""
MOMENT = re.compile(r"(?=(\d{13}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d))")


def _times() -> list[np.datetime64]:
    """One a row, about two a day, at odd seconds that no mean of them is likely to hit."""
    gaps = np.random.default_rng(7).integers(20_000, 70_000, ROWS)
    return list(np.datetime64("2024-01-01T08:13:37") + np.cumsum(gaps).astype("timedelta64[s]"))


def persons(seed: int = 0) -> str:
    """A table of persons, who are wrongly served from 60 on and after a year."""
    rng = np.random.default_rng(seed)
    lines = [HEAD]
    for row, time in enumerate(_times()):
        age, income = rng.uniform(20, 90), rng.normal()
        sd = 0.5 + abs(income)
        mean = age / 10 + income
        y = mean + sd * rng.normal() * (2.5 if age > 60 else 1) * (1.6 if row > ROWS // 2 else 1)
        own = f"577215{row:04d}"
        job = f"SECRET job {row}" if row < 4 else ("nurse", "clerk")[row % 2]
        region = "SECRET region" if row == 5 else ("north", "south", "east")[row % 3]
        site = "SECRET site" if row in (7, 8, 9, 10) else "abc"[0 if row % 4 else 1]
        site = "c" if row in range(20, 40) else site  # six or seven of each region
        cells = [f"SECRET {row:04d}", *(f"{v:.3f}{own}" for v in (y, mean, sd, age, income))]
        cells += [job, region, site, f"SECRET ward {row // 2}", str(time), f"SECRET{row}.png"]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


ASSESS = f"assess persons.csv {READ} --no-trials"
REFERENCE = "persons.csv --reference known.csv --row-id person --features age,income,job"
CHECK = f"check persons.csv {READ} --by region,site --min-coverage 0.8"
COMMANDS = {
    "assess": f"{ASSESS} -o a.html -o a.json -o a.md -o a.csv -o a.card.md",
    "assess, all printed": f"{ASSESS} --all",
    "assess, JSON printed": f"{ASSESS} --json",
    "two models": f"assess persons.csv known.csv {READ} -o two.html -o two.json",
    "merge": "merge kept.arrow --no-trials -o m.html -o m.json -o m.md",
    "monitor": f"assess {REFERENCE} -o n.html -o n.json -o n.md",
    "check": f"{CHECK} --fail-on caution --github --junit c.xml --sarif c.sarif",
    "check, JSON": f"{CHECK} --json",
}
"""Every command that writes something of single rows."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("persons")
    (made / "persons.csv").write_text(persons(), encoding="utf-8")
    other = persons(1).split("\n")
    first = persons().split("\n")
    other = [  # another model of the same persons
        ",".join([*a.split(",")[:2], b.split(",")[2], *a.split(",")[3:]]) if "SECRET" in a else a
        for a, b in zip(first, other, strict=True)
    ]
    (made / "known.csv").write_text("\n".join(other), encoding="utf-8")
    _run(made, f"{ASSESS} --quiet -o k.md --state kept.arrow")
    return made


def _run(folder: Path, line: str) -> str:
    """What a command prints, run in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = CliRunner().invoke(app, line.split())
    assert told.exit_code in (0, 1), told.output + str(told.exception)
    return told.output


def _written(folder: Path, line: str) -> dict[str, str]:
    """Everything that a command writes: what it prints, and each file."""
    made = {"terminal": _run(folder, line)}
    for name in re.findall(r"(?:-o|--junit|--sarif) (\S+)", line):
        made[name] = (folder / name).read_text(encoding="utf-8")
        (folder / name).unlink()
    return made


def _secrets(text: str) -> list[str]:
    """The secrets of single rows in a text, times of rows among them."""
    spelt = {match[1].replace(" ", "T") for match in MOMENT.finditer(text)}
    moments = {str(time) for time in _times()}
    moments |= {str(time.astype("datetime64[ms]").astype(int)) for time in _times()}
    return [*SECRET.findall(text), *(spelt & moments)]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_tells_of_a_single_row(folder: Path, name: str) -> None:
    with_rows = _written(folder, COMMANDS[name])
    found = {what: _secrets(text) for what, text in with_rows.items()}
    assert any(found.values()), "the scan must find what the command writes without the option"
    for what, secrets in found.items():
        shown = what.endswith((".html", ".json")) or (name, what) == ("monitor", "terminal")
        assert not shown or secrets, what
    without = _written(folder, f"{COMMANDS[name]} --no-rows")
    assert without.keys() == with_rows.keys()
    for what, text in without.items():
        assert not _secrets(text), what
        assert len(text) > 100, f"{what} still tells the rest"


@pytest.mark.slow
def test_nothing_is_of_fewer_than_ten_rows(folder: Path) -> None:
    with_rows, without = (
        json.loads(_written(folder, f"{ASSESS} -o a.json{more}")["a.json"])
        for more in ("", " --no-rows")
    )
    assert any(n < FEWEST for n in _sizes(with_rows))
    assert min(_sizes(without)) >= FEWEST
    assert not [table["name"] for table in without["tables"] if "row" in table["columns"]]
    curves = {curve["name"]: curve for curve in without["curves"]}
    assert min(curves["risk_coverage"]["x"]) * ROWS > FEWEST - 0.5
    assert without["facts"]["Single rows"] == "not shown, and no result on fewer than 10 rows"
    assert (
        "region: labels of fewer than 10 rows are pooled as others" in (without["facts"]["Reading"])
    )
    assert "region × site has groups of fewer than 10 rows: left out" in without["facts"]["Notes"]


def _sizes(report: dict[str, Any]) -> Iterator[float]:
    """Of how many rows each group is, wherever it is told."""
    yield from (r["n"] for r in report["records"] if r["group"] or "where" in r["options"])
    for table in report["tables"]:
        for name in {"n", "rows"} & table["columns"].keys():
            yield from table["columns"][name]
    for curve in report["curves"]:
        yield from curve["hover"].get("Rows", [])


def _columns(n: int = 600) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    return {"y": x + rng.normal(size=n), "mean": x, "sd": np.ones(n), "x": x, "ease": -np.abs(x)}


@pytest.mark.slow
def test_counts_groups_and_means_remain() -> None:
    table = _columns()
    table["group"] = np.where(np.arange(600) % 3 == 0, "a", "b")
    full, less = (
        howsure.assess(table, options=howsure.Options(trials=False, no_rows=each))
        for each in (False, True)
    )
    assert less.verdict == full.verdict
    assert [r.as_dict() for r in less.records] == [r.as_dict() for r in full.records]
    gone = {table.name for table in full.tables} - {table.name for table in less.tables}
    assert gone == {"worst_rows", "intervals", "cce_map", "cce_rows"}
    (curve,) = (curve for curve in less.curves if curve.name == "coverage_by_ease")
    assert curve.hover.keys() == {"Rows"}  # no ends of cells, which are those of single rows
    assert min(curve.hover["Rows"]) >= FEWEST
    assert {f"ease_{end}" for end in ("low", "high")}.isdisjoint(
        next(table for table in less.tables if table.name == "adaptivity_cells").columns
    )
    assert "worst_rows" not in less._repr_html_()


@pytest.mark.slow
def test_a_value_that_few_rows_have_is_not_told() -> None:
    table = _columns()
    table["y"][:4] = -98765.0
    full, less = (
        howsure.assess(table, options=howsure.Options(trials=False, no_rows=each))
        for each in (False, True)
    )
    assert "98765" in full.verdict
    assert "98765" not in less.to_html() + less.to_json() + less.to_markdown()


def test_a_group_of_few_is_put_together_with_the_next() -> None:
    few = Categories.checked(["a"] * 40 + ["b"] * 12 + ["c"] * 3, "g")
    told = dict(zip(pooled(few).labels, pooled(few).counts, strict=True))
    assert told == {"a": 40, "b and others": 15}
    two = Categories.checked(["a"] * 40 + ["c"] * 3, "g")
    assert pooled(two).labels.tolist() == ["a and others"]
    enough = Categories.checked([1] * 40 + [2] * 10, "g")
    assert pooled(enough) is enough
    named = Categories.checked(["others"] * 30 + ["c"] * 9 + ["d"] * 9, "g")
    assert pooled(named).labels.tolist() == ["others", "others (few rows)"]
    twice = pooled(few, np.r_[np.ones(52), 4.0, 4.0, 4.0])  # each of them is four persons
    assert twice is few


@pytest.mark.slow
def test_groups_of_a_table_in_parts_are_put_together_as_by_hand(tmp_path: Path) -> None:
    table = {name: _columns(3_000)[name] for name in ("y", "mean", "sd")}
    table["site"] = np.where(np.arange(3_000) < 4, "rare", np.resize(["a", "b", "c"], 3_000))
    table["half"] = np.resize(["x", "y"], 3_000)
    by_hand = {**table, "site": np.where(np.isin(table["site"], ["rare", "a"]), "A", table["site"])}
    told = []
    for name, columns, more in (("own", table, " --no-rows"), ("hand", by_hand, "")):
        (tmp_path / name).mkdir()
        for part in range(2):
            rows = pa.table(columns).slice(1_500 * part, 1_500)
            parquet.write_table(rows, tmp_path / name / f"{part}.parquet")
        line = f"assess {name} --groups site,half --memory 1MB --jobs 1 --no-trials --quiet"
        report = json.loads(_written(tmp_path, f"{line} -o {name}.json{more}")[f"{name}.json"])
        told.append(
            {
                (r["metric"], r["coverage"], r["group"].replace("a and others", "A")): r["value"]
                for r in report["records"]
                if r["group"] and r["exact"] == "rows" and r["value"] is not None
            }
        )
        gate = _run(tmp_path, f"check {name} --by site --min-coverage 0.5 --memory 1MB{more}")
        assert "site=A" in gate or "site=a and others" in gate
        assert "rare" not in gate
    assert len(told[0]) > 60
    assert told[0].keys() == told[1].keys()
    for key, value in told[0].items():
        assert value == pytest.approx(told[1][key], rel=1e-9, abs=1e-12), key


def test_pairs_of_groups_with_a_small_one_are_left_out() -> None:
    y = np.arange(60.0)
    first, second = np.arange(60) % 2, (np.arange(60) < 12).astype(int)
    held = EvalSet.checked(y, point=y, groups={"f": first, "s": second})
    assert [each.name for each in groupings(held)[0]] == ["f", "s", "f × s"]
    divided, notes = groupings(replace(held, fewest=10))
    assert [each.name for each in divided] == ["f", "s"]
    assert notes == ("f × s has groups of fewer than 10 rows: left out",)
    assert replace(held, fewest=10).take(y < 5).fewest == 10


def test_a_curve_of_rows_kept_ends_where_few_are() -> None:
    y = np.random.default_rng(0).normal(size=50)
    held = EvalSet.checked(y, point=np.zeros(50))
    whole, short = (
        rejection_curves(each, np.abs(y))[0] for each in (held, replace(held, fewest=10))
    )
    assert max(whole.x) == pytest.approx(49 / 50)
    assert max(short.x) == pytest.approx(40 / 50)  # ten are kept
    assert short.y[-1] == pytest.approx(np.sort(np.abs(y))[:10].mean())


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (np.datetime64("2024-01-01") + np.arange(40), "2024-01-20"),  # of 15 to 24 January
        (np.datetime64("2024-01-01T00:00:30") + np.arange(40), "2024-01-01 00:00:49"),
        (np.arange(40) ** 2.0, "time 388.5"),
        (np.array([f"t{k:02d}" for k in range(40)], dtype=object), "row 21 of 40 in time"),
    ],
)
def test_a_change_is_told_by_the_mean_of_ten_times(times: Any, told: str) -> None:
    y = np.zeros(40)
    held = EvalSet.checked(y, point=y, time=times)
    assert _when(View(replace(held, fewest=10)), 20) == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ("assess persons.csv --no-rows --state s.arrow", "saves a sample of rows"),
        ("merge kept.arrow --no-rows --state s.arrow", "saves a sample of rows"),
        (
            "check persons.csv --min-coverage 0.1 --no-rows --state s.arrow",
            "saves a sample of rows",
        ),
        ("assess few.csv --no-rows", "needs at least 10 rows, got 9"),
        ("check few.csv --min-coverage 0.1 --no-rows", "needs at least 10 rows, got 9"),
        (
            "assess persons.csv --reference known.csv --features age --no-rows -o scores.csv",
            "allows no table of rows: name a report (.html, .json, .md), got 'scores.csv'",
        ),
    ],
)
def test_what_would_show_rows_is_refused(folder: Path, arguments: str, rule: str) -> None:
    (folder / "few.csv").write_text("\n".join(persons().split("\n")[:10]), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = CliRunner().invoke(app, arguments.split())
    assert rule in str(told.exception)
    assert not _secrets(str(told.exception))
    assert not (folder / "s.arrow").exists()
    assert not (folder / "scores.csv").exists()
