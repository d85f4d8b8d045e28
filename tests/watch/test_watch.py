"""One promise: kept or broken, whatever the order in which rows and labels come."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import write_table
from howsure.watch import Watch
from howsure.watch.report import _describe_not_counted

DAY = np.datetime64("2024-01-01", "D")
ROWS = 40


def rows(first: int, last: int, *names: Any, sd: float = 1.0, south: float = 1.0) -> dict[str, Any]:
    """Some rows a day, half of them in the south, whose errors have these standard deviations."""
    day = np.repeat(np.arange(first, last), ROWS)
    n = len(day)
    region = np.where(np.arange(n) % 2, "south", "north")
    y = child(1, "watch", first, last, *names).normal(size=n) * sd
    y = np.where(region == "south", y * south, y)
    mean = np.zeros(n)
    names = [f"r{first}-{k}" for k in range(n)]
    return {"day": DAY + day, "id": names, "region": region, "y": y, "mean": mean, "sd": mean + 1}


def begun(folder: Path, name: str = "model.watch", **options: Any) -> Watch:
    given = {"time": "day", "groups": ["region"], "row_id": "id", **options}
    return Watch.init(folder / name, rows(0, 60), **given)


def without_y(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != "y"}


def labels_of(table: dict[str, Any]) -> dict[str, Any]:
    return {"id": table["id"], "y": table["y"]}


def test_a_promise_that_is_kept(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    assert watch.show().sentence == "No day has been evaluated yet."
    for day in range(60, 130):
        watch.add(rows(day, day + 1))
    report = watch.show()
    assert report.kept
    assert (report.days, report.rows) == (70, 2_800)
    assert report.sentence.startswith("No fault detected so far: 70 days, 2,800 rows. A drop of ")
    assert "probably be detected after" in report.sentence


def test_a_promise_that_breaks_is_told_with_its_group_and_day(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    for day in range(60, 110):
        watch.add(rows(day, day + 1, south=1.0 if day < 90 else 1.6))
    report = watch.show()
    assert not report.kept
    first = report.broken[0]
    assert first.group == "region=south"
    assert abs(first.since - int((DAY + 90).astype(int))) <= 2
    assert first.earliest <= int((DAY + 90).astype(int)) <= first.latest
    assert {each.group for each in report.broken} <= {"", "region=south"}
    covered = next(each for each in report.broken if each.quantity == "coverage")
    assert covered.lower < 0.70 < covered.upper  # 1.645/1.6 sd cover 69.6 %
    assert report.sentence.startswith("Fault detected on 2024-04-")


def test_order_files_and_machines_do_not_matter(tmp_path: Path) -> None:
    parts = [rows(day, day + 5) for day in range(60, 90, 5)]
    one, other = (begun(tmp_path / name, mature=60) for name in made(tmp_path, "a", "b"))
    for part in parts:
        one.add(part)
    late = [parts[k] for k in (5, 0, 3, 1, 4, 2)]
    labels = [labels_of(each) for each in late]
    for part in late:
        other.add(without_y(part))
    assert other.show().waiting == 6 * 5 * ROWS
    for each in reversed(labels):
        assert other.add(each).rows == 5 * ROWS
    assert other.show().waiting == 0
    for watch in (one, other):
        watch.add(rows(160, 161))
    first, second = one.show(), other.show()
    np.testing.assert_allclose(first.curve, second.curve, rtol=1e-12, atol=1e-12)
    assert first.days == 30


def made(folder: Path, *names: str) -> tuple[str, ...]:
    for name in names:
        (folder / name).mkdir()
    return names


@pytest.mark.parametrize("address", ["file", "folder", "memory"])
def test_places(tmp_path: Path, address: str) -> None:
    if address == "memory":
        needs("fsspec")
    place = {
        "file": str(tmp_path / "a.watch"),
        "folder": f"{tmp_path}/a/",
        "memory": f"memory://{tmp_path.name}",
    }[address]
    watch = Watch.init(place, rows(0, 30), time="day")
    watch.add(rows(30, 40))
    again = Watch(place)
    again.add(rows(40, 45))
    assert watch.show().days == again.show().days == 15
    assert watch.show().to_json() == again.show().to_json()
    with pytest.raises(InputError, match="already has a reference"):
        Watch.init(place, rows(0, 30), time="day")


def test_days_are_booked_once_and_when_mature(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=7, row_id=None)
    watch.add(rows(60, 70))
    assert watch.show().days == 3  # of ten days, the last seven may still grow
    assert watch.show().open_rows == 7 * ROWS
    watch.add(rows(63, 64, "more"))  # as long as a day is open, rows come in
    done = watch.add({name: value[: 2 * ROWS] for name, value in rows(62, 64, "late").items()})
    assert (done.late, done.rows) == (ROWS, ROWS)
    with pytest.raises(InputError, match="only days that were already evaluated"):
        watch.add(rows(60, 61, "late"))
    assert "40 rows arrived too late and are not used." in watch.show().sentence


def test_the_same_rows_are_refused(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=30)
    part = rows(60, 62)
    write_table(part, tmp_path / "part.csv")
    watch.add(tmp_path / "part.csv")
    before = watch.show().open_rows
    with pytest.raises(InputError, match="no new row: 80 rows added before"):
        watch.add(tmp_path / "part.csv")
    waits = without_y(rows(62, 63))
    watch.add(waits)
    with pytest.raises(InputError, match="no new row: 40 rows added before"):
        watch.add({**waits, "sd": waits["sd"] * 2})
    assert watch.show().open_rows == before


@pytest.mark.slow
def test_misses_that_come_first_break_nothing_where_days_mature(tmp_path: Path) -> None:
    """Booked as they come, y far off would break every promise that is kept."""
    watch = begun(tmp_path, mature=5)
    for day in range(60, 100):
        part = rows(day, day + 1)
        watch.add(without_y(part))
        far = np.abs(part["y"]) > 1.0
        watch.add({"id": list(np.array(part["id"])[far]), "y": part["y"][far]})
        near = rows(day - 3, day - 2) if day >= 63 else None
        if near is not None:
            slow = np.abs(near["y"]) <= 1.0
            watch.add({"id": list(np.array(near["id"])[slow]), "y": near["y"][slow]})
    report = watch.show()
    assert report.kept
    assert report.days == 35


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"day": [DAY + 60], "y": [1.0], "mean": [0.0]}, "'sd' is missing"),
        ({"id": ["x"], "y": [1.0]}, "has no y for a waiting row"),
        ({"y": [1.0]}, "contains only y, which is matched to predictions by row name"),
        ({**rows(60, 61), "sd": [np.nan] * ROWS}, "missing"),
        ({**rows(60, 61), "sd": [-1.0] * ROWS}, "sd"),
    ],
)
def test_what_cannot_be_added_is_refused_and_leaves_nothing(
    tmp_path: Path, table: Any, message: str
) -> None:
    watch = begun(tmp_path)
    watch.add(rows(60, 61))
    before = watch.show().to_json()
    with pytest.raises(InputError, match=message):
        watch.add(table)
    assert Watch(tmp_path / "model.watch").show().to_json() == before


def test_a_ledger_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ledger at"):
        Watch(tmp_path / "none.watch")
    (tmp_path / "text").write_text("no database")
    with pytest.raises(InputError, match="cannot be used"):
        Watch(tmp_path / "text")


@pytest.mark.slow
def test_two_writers_are_safe(tmp_path: Path) -> None:
    place = f"{tmp_path}/shared/"
    Watch.init(place, rows(0, 30), time="day", row_id="id", mature=100)
    parts = [rows(day, day + 1) for day in range(30, 42)]

    def write(part: dict[str, Any]) -> None:
        watch = Watch(place)
        watch.add(without_y(part))
        watch.add(labels_of(part))

    with ThreadPoolExecutor(6) as crew:
        list(crew.map(write, parts))
    report = Watch(place).show()
    assert (report.open_rows, report.waiting) == (12 * ROWS, 0)


def test_a_ledger_holds_no_rows_but_those_that_wait(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    place.mkdir()
    watch = Watch.init(place, rows(0, 30), time="day", row_id="id", mature=3)
    part = {**rows(30, 31), "sd": np.full(ROWS, 1.234567)}
    watch.add(without_y(part))
    held = b"".join(path.read_bytes() for path in place.iterdir())
    assert sum("waiting" in path.name for path in place.iterdir()) == 1
    watch.add(labels_of(part))
    watch.add(rows(31, 32))  # since when that of the labels is taken back no more
    assert not any("waiting" in path.name for path in place.iterdir())
    assert held


def test_intervals_and_quantiles_and_samples_are_watched(tmp_path: Path) -> None:
    base = rows(0, 60)
    day, y = base["day"], base["y"]
    kinds: dict[str, dict[str, Any]] = {
        "intervals": {"lower_90": y * 0 - 1.645, "upper_90": y * 0 + 1.645},
        "quantiles": {"q0.05": y * 0 - 1.645, "q0.5": y * 0, "q0.95": y * 0 + 1.645},
        "samples": {f"s_{k}": child(2, "samples", k).normal(size=len(y)) for k in range(9)},
    }
    watched = {
        "intervals": ("coverage",),
        "quantiles": ("coverage", "bias", "spread", "skew"),
        "samples": ("coverage", "bias", "spread", "skew", "tails"),
    }
    for kind, columns in kinds.items():
        table = {"day": day, "y": y, **columns}
        first = {name: value[: 30 * ROWS] for name, value in table.items()}
        rest = {name: value[30 * ROWS :] for name, value in table.items()}
        watch = Watch.init(tmp_path / kind, first, time="day")
        watch.add(rest)
        assert watch.show().kept, kind
        assert watch.promise.quantities == watched[kind]


def points(first: int, last: int, sd: float = 1.0) -> dict[str, Any]:
    made = rows(first, last, "points", sd=sd)
    return {"day": made["day"], "y": made["y"], "pred": made["mean"]}


def test_of_points_alone_it_is_told_when_errors_grow(tmp_path: Path) -> None:
    watch = Watch.init(tmp_path / "model.watch", points(0, 60), time="day")
    assert watch.promise.quantities == ("error",)
    watch.add(points(60, 90))
    watch.add(points(90, 130, sd=0.6))  # which keeps the promise
    assert watch.show().kept
    watch.add(points(130, 160, sd=1.4))
    told = watch.show()
    assert not told.kept
    assert told.since == pytest.approx((DAY + 130).astype(int), abs=2)
    (broken,) = told.broken
    assert broken.value == pytest.approx(1.4, abs=0.1)
    assert "errors are 3" in told.sentence or "errors are 4" in told.sentence
    assert "% larger (" in told.sentence
    assert told.sentence.endswith(" than in the reference since 2024-05-10.")


def test_a_huge_file_is_added_some_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, other = (begun(tmp_path, name=name, row_id=None) for name in ("a.watch", "b.watch"))
    write_table(rows(60, 90), tmp_path / "a.parquet")
    write_table(rows(60, 90), tmp_path / "a.csv")
    monkeypatch.setattr("howsure.watch.watch.HUGE_ROWS", 100)
    monkeypatch.setattr("howsure.watch.watch.PIECE_ROWS", 250)
    assert watch.add(tmp_path / "a.parquet").rows == 1_200
    monkeypatch.undo()
    other.add(rows(60, 90))
    assert watch.show().curve == pytest.approx(other.show().curve)
    for again in (tmp_path / "a.parquet", tmp_path / "a.csv", rows(60, 90)):
        with pytest.raises(InputError, match="was added before"):
            watch.add(again)


def test_rows_without_y_need_names_and_days_to_wait(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    with pytest.raises(InputError, match=r"40 rows without y; they can wait .* mature=DAYS"):
        watch.add(without_y(rows(60, 61)))


def test_without_times_each_addition_is_a_day(tmp_path: Path) -> None:
    def bare(*span: int) -> dict[str, Any]:
        return {k: v for k, v in rows(*span).items() if k in ("y", "mean", "sd", "id")}

    watch = Watch.init(tmp_path / "a", bare(0, 30))
    for day in range(30, 40):
        watch.add(bare(day, day + 1))
    report = watch.show()
    assert (report.days, report.rows, report.open_rows) == (10, 10 * ROWS, 0)


def test_evidence_of_the_past_does_not_change_with_groups_that_come(tmp_path: Path) -> None:
    """Shares of the capital are fixed before rows are seen; else looking twice would cheat."""
    watch = begun(tmp_path)
    watch.add(rows(60, 75))
    before = watch.show().curve
    for number in range(3):
        part = rows(75 + number, 76 + number)
        watch.add({**part, "region": np.where(part["y"] > 0, f"new {number}", "south")})
    after = watch.show().curve
    np.testing.assert_allclose(after[:15], before, rtol=1e-12, atol=1e-14)
    assert len(after) == 18


def test_a_row_that_waited_and_comes_whole_waits_no_more(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=5)
    watch.add(without_y(rows(60, 61)))
    watch.add(rows(60, 61))
    assert (watch.show().waiting, watch.show().open_rows) == (0, ROWS)
    with pytest.raises(InputError, match="no new row: 40 rows added before"):
        watch.add(labels_of(rows(60, 61)))


def test_the_same_file_by_two_writers_is_added_once(tmp_path: Path) -> None:
    place = f"{tmp_path}/shared/"
    Watch.init(place, rows(0, 30), time="day", row_id="id", mature=100)
    part = without_y(rows(30, 31))

    def write(_: int) -> bool:
        try:
            Watch(place).add(part)
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(6) as crew:
        assert sum(crew.map(write, range(6))) == 1
    assert Watch(place).show().waiting == ROWS


def test_another_file_is_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as base, base:
        base.execute("CREATE TABLE own (a)")
    before = other.read_bytes()
    for use in (Watch, lambda place: Watch.init(place, rows(0, 30), time="day")):
        with pytest.raises(InputError, match="it is not a howsure file"):
            use(other)
        assert other.read_bytes() == before
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "promise.json").write_text("{}")
    with pytest.raises(InputError, match="is not a ledger of this version of howsure: create"):
        Watch(tmp_path / "f")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"y": ["a", "b"] * 20, "p_a": [0.4] * 40, "p_b": [0.6] * 40},
            "number classes from 0",
        ),
        (
            {
                "id": list(range(20)) * 2,
                "quantile_level": [0.1] * 20 + [0.9] * 20,
                "value": [-1.0] * 20 + [1.0] * 20,
                "y": [0.0] * 40,
            },
            "got a long table",
        ),
        ({"y": [0.0] * 40, "mean": [0.0] * 40}, "nothing can be monitored"),
        (
            {
                "y": [0.0, 1.0] * 20,
                "mean": [0.0] * 40,
                "sd": [1.0] * 40,
                "importance_weight": [0.5] * 40,
            },
            "must be frequencies",
        ),
    ],
)
def test_a_reference_that_cannot_be_watched_is_refused(
    tmp_path: Path, table: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Watch.init(tmp_path / "a", table)
    assert not (tmp_path / "a").exists()


def test_a_reference_that_breaks_the_promise_says_so(tmp_path: Path) -> None:
    told = Watch.init(tmp_path / "a", rows(0, 60, sd=1.5), time="day").promise.sentence
    assert "The reference itself has a fault: errors are larger" in told
    assert "has a fault" not in begun(tmp_path).promise.sentence


def test_y_that_is_no_number_and_a_date_far_off_are_refused(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=5)
    watch.add(rows(60, 61))
    with pytest.raises(InputError, match="'y' must contain numbers, got 40 cells"):
        watch.add({**rows(61, 62), "y": ["x"] * ROWS})
    with pytest.raises(InputError, match=r"more than 366 days after the last .*got 2099-12-31"):
        watch.add({**rows(61, 62), "day": [np.datetime64("2099-12-31")] * ROWS})
    assert watch.show().open_rows == ROWS


def test_every_form_holds_what_is_seen(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    watch.add(rows(60, 75, sd=1.5))
    report = watch.show()
    report.save(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0] == '"day","log_evidence","coverage"'
    assert len(lines) == 16
    told = json.loads(report.to_json())
    (broken,) = (table for table in told["tables"] if table["name"] == "broken")
    assert broken["columns"]["since"][0].startswith("2024-0")
    assert report.sentence in report.to_markdown().replace("\\", "")


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ((0, 0, 0, 0), ""),
        (
            (1, 1, 1, 1),
            "1 row awaits the 3-day label delay. 1 prediction waits for y. "
            "1 row arrived too late and is not used. 1 addition was undone.",
        ),
        (
            (2, 3, 4, 5),
            "2 rows await the 3-day label delay. 3 predictions wait for y. "
            "4 rows arrived too late and are not used. 5 additions were undone.",
        ),
    ],
)
def test_what_is_left_out_is_said(counts: tuple[int, int, int, int], told: str) -> None:
    open_rows, waiting, late, undone = counts
    assert _describe_not_counted(waiting, open_rows, late, undone, 3) == told
