"""What a ledger tells beside the promise: before labels, of missing ones, and of what runs on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet
from howsure.watch import Watch
from howsure.watch.expected import Background

DAY = np.datetime64("2024-01-01", "D")
ROWS = 50


def rows(first: int, last: int, shift: float = 0.0, spread: Any = None) -> dict[str, Any]:
    """Some rows a day; where x is above 0 intervals are too narrow, elsewhere too wide."""
    day = np.repeat(np.arange(first, last), ROWS)
    n = len(day)
    rng = child(3, "joined", first, last)
    x = rng.normal(size=n) + shift
    sd = np.where(x > 0, 1.2, 0.76) * (1.0 if spread is None else spread(day))
    y = x + sd * rng.normal(size=n)
    names = [f"r{first}-{k}" for k in range(n)]
    return {"day": DAY + day, "id": names, "x": x, "y": y, "mean": x, "sd": np.ones(n)}


def without_y(table: dict[str, Any]) -> dict[str, Any]:
    return {name: values for name, values in table.items() if name != "y"}


def begun(folder: Path, **options: Any) -> Watch:
    given = {"time": "day", "row_id": "id", "features": ["x"], "mature": 3, **options}
    return Watch.init(folder / "a.watch", rows(0, 90), **given)


def texts(watch: Watch) -> list[str]:
    return [line.text for line in watch.show().document().opening.lines]


def test_what_inputs_let_expect_is_told_while_rows_wait(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    today = rows(90, 91, shift=1.0)
    watch.add(without_y(today))
    told = watch.show()
    assert told.expected is not None
    law = Distribution.normal(today["mean"], today["sd"])
    first = rows(0, 90)
    past = Distribution.normal(first["mean"], first["sd"])
    reference = EvalSet.checked(first["y"], past, features={"x": first["x"]})
    known = Background.of(reference, 0.9).expected(
        EvalSet.checked(np.zeros(ROWS), law, features={"x": today["x"]})
    )
    assert told.expected.coverage.value == pytest.approx(known.coverage.value, abs=1e-9)
    truth = np.where(today["x"] > 0, 0.8296, 0.9696).mean()
    assert told.expected.coverage.lower < truth < told.expected.coverage.upper
    line = texts(watch)[1]
    assert line.startswith("Expected today, before labels arrive: 90 % intervals cover 8")
    assert "To cover 90 % for these inputs, half-widths need a factor of 1." in line
    assert line.endswith("can be seen only in labels.")
    tables = {each["name"]: each["columns"] for each in json.loads(told.to_json())["tables"]}
    assert tables["expected"]["day"] == ["2024-03-31"]
    assert tables["expected"]["coverage"] == [pytest.approx(told.expected.coverage.value)]
    assert tables["expected"]["score_lower"] == [pytest.approx(told.expected.score.lower)]
    assert "running" not in tables  # no day is booked
    watch.add({"id": today["id"], "y": today["y"]})
    assert watch.show().expected is None
    assert 90 in {day - int(DAY.astype(int)) for day in watch.show().expected_by_day}


@pytest.mark.slow
@pytest.mark.parametrize("selected", [False, True])
def test_labels_that_are_missing_by_inputs_break_nothing(tmp_path: Path, selected: bool) -> None:
    watch = begun(tmp_path)
    rng = child(4, "labels", selected)
    for first in range(90, 190, 5):
        part = rows(first, first + 5)
        watch.add(without_y(part))
        rare = part["x"] <= 0 if selected else np.zeros(len(part["x"]), dtype=bool)
        known = rng.uniform(size=len(rare)) < np.where(rare, 0.2, 0.9)
        names = np.array(part["id"])[known]
        watch.add({"id": names.tolist(), "y": part["y"][known]})
    told = watch.show()
    assert told.kept
    share = np.nanmean(told.covered)
    assert share == pytest.approx(0.9, abs=0.02)
    lines = texts(watch)
    assert any("Labels are missing more often where" in line for line in lines) == selected
    assert any("% of the rows of evaluated days have no y. Whatever their" in x for x in lines)
    assert told.waiting < 400  # those of booked days wait no more


def test_what_all_rows_hold_is_the_same_with_labels_at_once_or_later(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    once, later = begun(tmp_path, mature=30), begun(tmp_path / "b", mature=30)
    part = rows(90, 110)
    once.add(part)
    later.add(without_y(part))
    later.add({"id": part["id"], "y": part["y"]})
    for each in (once, later):
        each.add(rows(140, 141))
    assert once.show().days == 20
    assert once.show().curve == pytest.approx(later.show().curve)
    assert once.show().missing == later.show().missing == ()


def test_one_width_in_all_rows_is_no_input_and_leaves_no_stratum_empty(tmp_path: Path) -> None:
    def made(first: int, last: int) -> dict[str, Any]:
        return {name: values for name, values in rows(first, last).items() if name != "x"}

    given = {"time": "day", "row_id": "id", "mature": 2}
    watch = Watch.init(tmp_path / "a.watch", made(0, 60), **given)
    strata = watch.promise.strata
    assert strata is not None
    assert strata.rows.min() >= 30
    assert not any("width" in words for words in strata.words)
    for first in range(60, 90, 2):
        part = made(first, first + 2)
        watch.add(without_y(part))
        watch.add({"id": part["id"][:60], "y": part["y"][:60]})
    assert np.isfinite(watch.show().curve).all()


def season(day: Any) -> Any:
    return np.where(day < 120, 1.0, np.exp(0.4 * np.sin(2 * np.pi * (day - 120) / 60)))


@pytest.mark.slow
def test_a_correction_that_runs_on_is_offered_and_taken(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=0, row_id=None)
    with pytest.raises(InputError, match="evaluated days"):
        watch.correct(rows(80, 90), since=DAY, running=True)
    watch.add(rows(90, 120))
    with pytest.raises(InputError, match=r"must have a significant gain; after 30 days"):
        watch.correct(rows(90, 120), since=DAY, running=True)
    for day in range(120, 240):
        watch.add(rows(day, day + 1, spread=season))
    told = watch.show()
    assert told.running is not None
    assert told.gain_of_running is not None
    assert told.gain_of_running.offered
    (offer,) = (
        line for line in told.document().opening.lines if "a running correction" in line.text
    )
    assert offer.command == "howsure watch correct LEDGER ROWS --running"
    tables = {each["name"]: each["columns"] for each in json.loads(told.to_json())["tables"]}
    assert tables["running"]["factor"] == [pytest.approx(told.running.factor)]
    assert tables["running"]["offered"] == [True]
    since = rows(120, 240, spread=season)
    found = watch.correct(since, since=DAY + 120, running=True)
    assert found.method == "running"
    assert found.factor == told.running.factor
    assert "a running factor, now " in found.sentence
    plain = []
    for day in range(240, 330):
        part = rows(day, day + 1, spread=season)
        plain.append(np.mean(np.abs(part["y"] - part["mean"]) < 1.6449))
        watch.add(part)
    told = watch.show()
    assert told.gain is not None
    assert told.gain[1] > 0
    assert abs(told.covered.mean() - 0.9) < abs(np.mean(plain) - 0.9)
    assert not any("a running correction" in line for line in texts(watch))


def test_the_first_day_that_runs_on_is_stretched_by_the_factor_that_stood(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=0, row_id=None)
    for day in range(90, 160):
        watch.add(rows(day, day + 1, spread=lambda at: np.full(len(at), 1.8)))
    found = watch.correct(
        rows(120, 160, spread=lambda at: np.full(len(at), 1.8)), since=DAY + 120, running=True
    )
    part = rows(160, 161)
    watch.add(part)
    covered = np.mean(np.abs(part["y"] - part["mean"]) <= 1.644854 * found.factor)
    assert watch.show().covered[0] == pytest.approx(covered, abs=1e-6)
