"""A correction begins a new promise, and none runs beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.topics.crps_closed import crps_normal
from howsure.watch import Watch

DAY = np.datetime64("2024-01-01", "D")
ROWS = 50


def rows(first: int, last: int, sd: float = 1.0) -> dict[str, Any]:
    """Some rows a day, fewer and more in turn, of which predictions state an sd of 1."""
    days = np.arange(first, last)
    day = np.repeat(days, np.where(days % 2, ROWS + 10, ROWS - 10))
    n = len(day)
    y = sd * child(2, "correction", first, last).normal(size=n)
    names = [f"r{first}-{k}" for k in range(n)]
    return {"day": DAY + day, "id": names, "y": y, "mean": np.zeros(n), "sd": np.ones(n)}


def broken(folder: Path, **options: Any) -> Watch:
    watch = Watch.init(folder / "model.watch", rows(0, 60), time="day", **options)
    watch.add(rows(60, 70))
    watch.add(rows(70, 90, sd=1.6))
    return watch


def test_a_correction_begins_a_new_promise(tmp_path: Path) -> None:
    watch = broken(tmp_path)
    assert not watch.show().kept
    found = watch.correct(rows(70, 90, sd=1.6))
    assert found.rows == 1_000
    assert found.lower > 0
    told = watch.show()
    assert told.kept
    assert told.sentence == "Corrected after 2024-03-30; no day has been evaluated since."
    watch.add(rows(90, 130, sd=1.6))
    told = watch.show()
    assert told.kept
    assert told.sentence.startswith(
        "No fault detected since the correction after 2024-03-30: 40 days, "
    )
    assert np.mean(told.covered) == pytest.approx(0.9, abs=0.02)
    lines = [line.text for line in told.document().opening.lines]
    assert lines[1].startswith("The correction lowers the CRPS by ")
    assert lines[2] == found.sentence
    assert lines[3].startswith("Fault detected on 2024-03-1")
    watch.add(rows(130, 160))  # errors are again as they were
    told = watch.show()
    assert not told.kept
    assert told.since is not None
    assert abs(told.since - int((DAY + 130).astype(int))) <= 2
    assert "intervals cover" in " ".join(each.sentence for each in told.broken)
    ended = watch.correct(rows(130, 160))
    assert ended.method == ""
    assert ended.lower > 0
    assert (
        watch.show().sentence
        == "Correction ended after 2024-06-08; no day has been evaluated since."
    )
    watch.add(rows(160, 170))
    told = watch.show()
    assert [each.days for each in (*told.past, told)] == [30, 70, 10]
    assert told.sentence.startswith(
        "No fault detected since the end of the correction after 2024-06-08: 10 "
    )
    lines = [line.text for line in told.document().opening.lines]
    assert lines[1] == ended.sentence
    assert ended.sentence.startswith("Correction ended after 2024-06-08, using 1,500 rows since ")
    with pytest.raises(
        InputError, match=r"none of those tried on .* gave a significant improvement"
    ):
        watch.correct(rows(160, 170), since=DAY)


def test_the_score_beside_that_without_a_correction_is_the_ratio_of_both(tmp_path: Path) -> None:
    watch = broken(tmp_path)
    found = watch.correct(rows(70, 90, sd=1.6))
    since = rows(90, 100, sd=1.6)
    watch.add(since)
    (law,) = howsure.recalibrate(since, found.fitted).evalset.predictions
    before = crps_normal(since["y"], since["mean"], since["sd"])
    after = crps_normal(since["y"], law.parameters["loc"], law.parameters["scale"])
    gain = watch.show().gain
    assert gain is not None
    assert gain[0] == pytest.approx(1.0 - after.sum() / before.sum())
    days = np.bincount(since["day"].astype(int) % 10, after - (1.0 - gain[0]) * before)
    error = np.sqrt(10 / 9 * np.sum(days**2)) / before.sum()
    assert gain[2] - gain[0] == pytest.approx(2.262157 * error, rel=1e-6)


def test_rows_of_days_before_a_correction_stay_as_they_were(tmp_path: Path) -> None:
    watch = broken(tmp_path, mature=5)
    before = watch.show()
    watch.correct(rows(70, 90, sd=1.6))
    watch.add(rows(88, 90, sd=1.6))  # late, and not booked yet
    watch.add(rows(90, 100, sd=1.6))
    told = watch.show()
    assert told.past[0].rows == before.rows + before.open_rows + 2 * ROWS
    assert told.rows == len(rows(90, 95)["y"])


@pytest.mark.slow
def test_rows_that_wait_are_corrected_by_their_day(tmp_path: Path) -> None:
    watch = broken(tmp_path, mature=30, row_id="id")
    old, new = rows(90, 95, sd=1.6), rows(95, 100, sd=1.6)
    watch.add({name: value for name, value in old.items() if name != "y"})
    watch.correct(rows(70, 90, sd=1.6), since=DAY + 70)
    watch.add({name: value for name, value in new.items() if name != "y"})
    for each in (old, new):
        watch.add({"id": each["id"], "y": each["y"]})
    watch.add(rows(160, 161, sd=1.6))
    told = watch.show()
    assert [each.rows for each in told.past] == [len(rows(60, 95)["y"])]
    assert told.rows == len(rows(95, 100)["y"])
    assert told.covered.mean() > 0.85 > told.past[0].covered[-5:].mean()


def test_what_cannot_be_corrected_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    watch = Watch.init(tmp_path / "model.watch", rows(0, 60), time="day")
    watch.add(rows(60, 70))
    before = (tmp_path / "model.watch").read_bytes()
    with pytest.raises(
        InputError, match="a significant fault, and there is none: give the first day"
    ):
        watch.correct(rows(60, 70))
    with pytest.raises(
        InputError, match="500 rows since 2024-03-01 gave a significant improvement"
    ):
        watch.correct(rows(60, 70), since="2024-03-01")
    panel = {name: values[: 10 * (ROWS - 10)] for name, values in rows(60, 80).items()}
    panel["day"] = DAY + np.repeat(np.arange(60, 70), ROWS - 10)
    with pytest.raises(InputError, match="may be series, and need 30 days"):
        watch.correct({**panel, "y": 1.6 * panel["y"]}, since="2024-03-01")
    with pytest.raises(InputError, match="since must be a date, like the times, got 'soon'"):
        watch.correct(rows(60, 70), since="soon")
    with pytest.raises(InputError, match="rows must be from 2025-01-01 or later, got rows up to"):
        watch.correct(rows(60, 70), since="2025-01-01")
    with pytest.raises(InputError, match="must have y, in the column 'y'"):
        watch.correct({name: v for name, v in rows(60, 70).items() if name != "y"}, since=DAY)
    with pytest.raises(InputError, match="rows with y since the change must be given"):
        watch.correct(since=DAY)
    assert (tmp_path / "model.watch").read_bytes() == before


def test_series_that_are_named_need_no_month(tmp_path: Path) -> None:
    """The same rows without their names are refused: see above."""

    def panel(first: int, last: int, sd: float = 1.0) -> dict[str, Any]:
        shape = (last - first, ROWS - 10)
        z = child(8, f"panel {first}").normal(size=shape)
        there = {"day": DAY + np.arange(first, last)[:, None], "site": np.arange(shape[1])}
        held = {name: np.broadcast_to(values, shape).ravel() for name, values in there.items()}
        return {**held, "y": sd * z.ravel(), "mean": 0.0 * z.ravel(), "sd": 0.0 * z.ravel() + 1.0}

    place = tmp_path / "model.watch"
    watch = Watch.init(place, panel(0, 60), time="day", series="site")
    assert Watch(place).promise.columns["series"] == "site"
    found = watch.correct(panel(60, 80, 1.6), since=DAY + 60)
    assert found.method == "scale"
    assert found.lower > 0.0
    with pytest.raises(InputError, match="'site' is missing"):
        watch.add({name: values for name, values in panel(80, 81).items() if name != "site"})


def test_without_times_a_correction_holds_from_the_next_addition_on(tmp_path: Path) -> None:
    plain = [{k: v for k, v in rows(k, k + 1, sd).items() if k != "day"} for k, sd in DAYS]
    reference = {k: v for k, v in rows(0, 60).items() if k != "day"}
    watch = Watch.init(tmp_path / "model.watch", reference)
    for each in plain[:30]:
        watch.add(each)
    assert not watch.show().kept
    watch.correct(*plain[10:30])
    for each in plain[30:]:
        watch.add(each)
    told = watch.show()
    assert told.kept
    assert (told.past[0].days, told.days) == (30, 20)


DAYS = [(k, 1.0) for k in range(60, 70)] + [(k, 1.6) for k in range(70, 110)]


def test_forms_hold_what_came_before(tmp_path: Path) -> None:
    watch = broken(tmp_path)
    watch.correct(rows(70, 90, sd=1.6))
    watch.add(rows(90, 100, sd=1.6))
    told = watch.show()
    tables = {each["name"]: each["columns"] for each in json.loads(told.to_json())["tables"]}
    assert tables["corrections"]["after"] == ["2024-03-30"]
    assert tables["days"]["corrections"] == [0] * 30 + [1] * 10
    assert told.to_csv().splitlines()[0] == '"day","log_evidence","coverage","corrections"'
    assert told.past[0].sentence in told.to_markdown().replace("\\", "")
