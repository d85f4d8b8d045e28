"""What is added: each row once, on its day, all tables or none, and the last taken back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import write_table
from howsure.watch import Watch
from howsure.watch.ledger import RowNames, marks_of, name_hashes, row_keys
from watch.test_watch import DAY, ROWS, begun, labels_of, made, rows, without_y

Table = dict[str, Any]


def some(table: Table, chosen: slice) -> Table:
    return {name: values[chosen] for name, values in table.items()}


def spans(first: int, last: int) -> Table:
    """Days as they come one by one, in one table."""
    parts = [rows(day, day + 1) for day in range(first, last)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def stores(first: int, last: int) -> Table:
    """Rows whose names recur on each day."""
    table = spans(first, last)
    return {**table, "id": np.tile([f"store {k}" for k in range(ROWS)], last - first)}


def of_ledger(watch: Watch) -> tuple[int, int]:
    told = watch.show()
    return told.rows + told.open_rows, told.waiting


def in_file(table: Table, path: Path) -> Path:
    write_table(pa.table(table), path)
    return path


def test_rows_that_come_again_count_once(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=30)
    first = watch.add(some(rows(60, 61), slice(0, 20)))
    assert (first.rows, first.again) == (20, 0)
    for last in range(61, 64):
        done = watch.add(spans(60, last))
        assert done.rows == (20 if last == 61 else ROWS)
        assert done.again == (20 if last == 61 else (last - 61) * ROWS)
    assert done.sentence == "Added: 40 rows with y; 80 rows added before."
    again = spans(60, 65)
    note = {**again, "note": ["x"] * len(again["y"])}
    assert watch.add(in_file(note, tmp_path / "a.csv")).rows == 2 * ROWS
    with pytest.raises(InputError, match="no new row: 200 rows added before, in the ref"):
        watch.add(in_file(again, tmp_path / "a.parquet"))
    assert of_ledger(watch) == (5 * ROWS, 0)


def test_of_a_row_that_comes_again_with_another_y_the_first_counts(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=30)
    watch.add(rows(60, 61))
    before = watch.show().to_json()
    changed = rows(60, 61)
    changed["y"][:5] += 9.0
    with pytest.raises(InputError, match=r"40 rows added before \(5 with a different y now; the f"):
        watch.add(changed)
    assert watch.show().to_json() == before
    part = rows(61, 62)
    watch.add(without_y(part))
    watch.add(labels_of(part))
    for table in (labels_of(changed), {"day": changed["day"], **labels_of(changed)}):
        with pytest.raises(InputError, match=r"\(5 with a different y now"):
            watch.add(table)
    single = {**rows(60, 61), "y": rows(60, 61)["y"].astype(np.float32)}
    with pytest.raises(InputError, match="40 rows added before, in"):
        watch.add(single)


def test_an_export_of_the_last_days_is_worth_each_of_its_days_once(tmp_path: Path) -> None:
    """Without names, 11 of 12 lives of kept promises were told broken by it."""
    daily, export = (begun(tmp_path / name, mature=7) for name in made(tmp_path, "a", "b"))
    for day in range(60, 85):
        daily.add(rows(day, day + 1))
        export.add(spans(max(60, day - 6), day + 1))
    one, other = daily.show(), export.show()
    assert one.kept
    np.testing.assert_allclose(one.curve, other.curve, rtol=1e-12, atol=1e-14)
    assert (one.days, one.late) == (other.days, other.late) == (18, 0)


def test_rows_that_came_too_late_are_counted_once(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=2)
    watch.add(rows(65, 66))
    with pytest.raises(InputError, match="contains only days that were already evaluated"):
        watch.add(rows(59, 63))
    part = {name: np.concatenate([rows(60, 61)[name], rows(66, 67)[name]]) for name in rows(0, 1)}
    assert watch.add(part).late == ROWS
    with pytest.raises(InputError, match="no new row: 80 rows added before"):
        watch.add(part)
    assert watch.show().late == ROWS


@pytest.mark.slow
def test_names_that_recur_each_day_lose_no_prediction(tmp_path: Path) -> None:
    given = {"time": "day", "row_id": "id", "mature": 9}
    watch = Watch.init(tmp_path / "a.watch", stores(0, 60), **given)
    for first, last in ((60, 62), (62, 63)):
        watch.add(without_y(stores(first, last)))
    assert of_ledger(watch) == (0, 3 * ROWS)
    table = stores(61, 62)
    with pytest.raises(InputError, match=r"have the column 'day' too: in the reference, names rec"):
        watch.add(labels_of(table))
    assert watch.add({"day": table["day"], **labels_of(table)}).rows == ROWS
    assert watch.add(stores(62, 63)).rows == ROWS
    assert of_ledger(watch) == (2 * ROWS, ROWS)
    watch.add(stores(200, 201))
    assert watch.show().rows == 2 * ROWS
    other = begun(tmp_path, mature=9)
    other.add(without_y(stores(60, 62)))
    with pytest.raises(InputError, match="rows of several days wait under the same name"):
        other.add(labels_of(table))


def test_the_reference_is_no_news(tmp_path: Path) -> None:
    named, bare = begun(tmp_path), begun(tmp_path, name="b.watch", row_id=None)
    for table in (rows(0, 60), in_file(rows(0, 60), tmp_path / "reference.csv")):
        with pytest.raises(InputError, match="no new row: 2,400 rows added before"):
            named.add(table)
        with pytest.raises(InputError, match="is the reference"):
            bare.add(table)
    both = {name: np.concatenate([rows(0, 60)[name], rows(60, 61)[name]]) for name in rows(0, 1)}
    assert named.add(both).rows == ROWS


def zoned(first: int, last: int, offset: str) -> Table:
    """Rows of 20 o'clock."""
    table = rows(first, last)
    return {**table, "day": [f"{day}T20:00{offset}" for day in table["day"]]}


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (np.full(ROWS, np.datetime64("2204-03-03")), "1,830 days after .* got 2204-03-03"),
        (DAY + np.r_[np.full(ROWS - 1, 60), 900], "366 days after .* got 2026-06-19"),
        (np.full(ROWS, np.datetime64("1999-03-03")), "366 days before the reference"),
        (np.full(ROWS, 20240303), "numbers of days, .* got 20240303; write .* as dates"),
        (np.full(ROWS, 60), "must contain dates such as 2024-02-29, like the reference, got 60"),
        (zoned(60, 61, "-05:00")["day"], "without a time zone, like the reference"),
    ],
)
def test_days_of_another_kind_or_far_off_close_no_ledger(
    tmp_path: Path, days: Any, message: str
) -> None:
    watch = begun(tmp_path, mature=2)
    with pytest.raises(InputError, match=message):
        watch.add({**rows(60, 61), "day": days})
    assert watch.add(rows(60, 61)).rows == ROWS
    assert of_ledger(watch) == (ROWS, 0)


def test_a_model_may_be_watched_long_after_its_reference(tmp_path: Path) -> None:
    watch = begun(tmp_path)
    assert watch.add(rows(1_000, 1_002)).rows == 2 * ROWS


@pytest.mark.parametrize(
    "days",
    [
        1_700_000_000 + 86_400 * np.repeat(np.arange(10), ROWS),
        20240301 + np.repeat(np.arange(10), ROWS),
    ],
)
def test_numbers_that_are_no_days_begin_no_ledger(tmp_path: Path, days: Any) -> None:
    with pytest.raises(InputError, match="'day' must contain dates or numbers of days"):
        Watch.init(tmp_path / "a.watch", {**rows(0, 10), "day": days}, time="day")
    assert not (tmp_path / "a.watch").exists()


def test_an_evening_is_of_its_own_day(tmp_path: Path) -> None:
    reference = in_file(zoned(0, 60, "-05:00"), tmp_path / "reference.csv")
    watch = Watch.init(tmp_path / "a.watch", reference, time="day", row_id="id")
    watch.add(in_file(zoned(60, 61, "-04:00"), tmp_path / "summer.csv"))
    stamps = (DAY + np.repeat(61, ROWS)).astype("M8[s]") + np.timedelta64(25, "h")  # 20 o'clock
    watch.add(pa.table({**rows(61, 62), "day": pa.array(stamps, pa.timestamp("s", "-05:00"))}))
    assert watch.show().booked.astype("M8[D]").tolist() == (DAY + np.array([60, 61])).tolist()
    with pytest.raises(
        InputError, match=r"times of one time zone, like the ref.* got 2024-03-03T20"
    ):
        watch.add(zoned(62, 63, "Z"))
    with pytest.raises(InputError, match="with a time zone, like the reference"):
        watch.add(rows(62, 63))


def test_the_last_addition_is_taken_back(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=5)
    with pytest.raises(InputError, match="no addition to undo"):
        watch.undo()
    today = rows(61, 62)
    watch.add(rows(60, 61))
    watch.add(without_y(today))
    before = watch.show()
    watch.add(labels_of(today))
    assert watch.undo() == "Undone: the last addition: 40 rows with y."
    told = Watch(tmp_path / "model.watch").show()
    assert of_ledger(watch) == (told.open_rows, told.waiting) == (ROWS, ROWS)
    assert told.expected is not None
    assert told.sentence == f"{before.sentence} 1 addition was undone."
    with pytest.raises(InputError, match="was already undone"):
        watch.undo()
    assert watch.add(labels_of(today)).rows == ROWS
    watch.add({**rows(62, 63), "day": [DAY + 300] * ROWS})  # which closes all days before
    with pytest.raises(InputError, match="days that were already evaluated"):
        watch.add(rows(63, 64))
    watch.undo()
    assert watch.add(rows(63, 64)).rows == ROWS
    assert of_ledger(watch) == (3 * ROWS, 0)


def test_a_correction_is_taken_back(tmp_path: Path) -> None:
    watch = begun(tmp_path, row_id=None)
    watch.add(rows(60, 90, sd=1.6))
    before = watch.show()
    watch.correct(rows(60, 90, sd=1.6))
    assert watch.show().kept
    assert watch.undo() == "Undone: the last correction."
    assert watch.show().broken == before.broken


def test_a_correction_is_refused_where_the_ledger_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, other = begun(tmp_path, row_id=None), Watch(tmp_path / "model.watch")
    watch.add(rows(60, 95, sd=1.6))
    read = Watch._with_y

    def meanwhile(self: Watch, *given: Any) -> Any:
        other.add(rows(95, 96, sd=1.6))
        return read(self, *given)

    monkeypatch.setattr(Watch, "_with_y", meanwhile)
    with pytest.raises(InputError, match="the ledger changed while the correction was fitted"):
        watch.correct(rows(60, 95, sd=1.6))


def test_all_tables_are_added_or_none(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=5)
    wrong = {"id": ["x"], "mean": [0.0]}
    with pytest.raises(InputError, match="'sd' is missing"):
        watch.add(rows(60, 61), wrong)
    assert of_ledger(watch) == (0, 0)
    today = rows(61, 62)
    done = watch.add(labels_of(today), rows(60, 61), without_y(today), rows(60, 61))
    assert (done.rows, done.waiting, done.again, done.unknown) == (2 * ROWS, 0, ROWS, 0)
    with pytest.raises(InputError, match="must have each row name once per day"):
        watch.add({name: [*v, v[0]] for name, v in rows(62, 63).items()})
    with pytest.raises(InputError, match="'id' must have a name in each row, got none at row 3"):
        watch.add({**rows(62, 63), "id": [*range(3), None, *range(36)]})
    bare = begun(tmp_path, name="b.watch", row_id=None)
    with pytest.raises(InputError, match="was added before"):
        bare.add(rows(60, 61), rows(60, 61))


def test_predictions_of_files_of_several_forms_wait_together(tmp_path: Path) -> None:
    watch = begun(tmp_path, mature=5)
    parts = [some(without_y(rows(60, 61)), slice(k, None, 2)) for k in (0, 1)]
    names = ("a.csv", "b.parquet")
    files = [in_file(part, tmp_path / name) for part, name in zip(parts, names, strict=True)]
    assert watch.add(*files).waiting == ROWS
    assert watch.add(labels_of(rows(60, 61))).rows == ROWS


def test_what_init_is_told_of_missing_cells_holds_for_all_that_comes(tmp_path: Path) -> None:
    reference = rows(0, 60)
    reference["y"][3], reference["sd"][4] = -9.0, np.nan
    with pytest.raises(InputError, match=r"cells are missing: 1 in 'sd'"):
        Watch.init(tmp_path / "b.watch", reference)
    given: Any = {"time": "day", "row_id": "id", "mature": 5, "missing": "drop"}
    watch = Watch.init(tmp_path / "a.watch", reference, missing_value=-9, **given)
    assert watch.promise.sentence.startswith("Reference saved (2,398 rows).")
    assert "2 rows are left out because of missing cells." in watch.promise.sentence
    part = rows(60, 61)
    part["y"][:5], part["mean"][7], part["sd"][8] = -9.0, -9.0, np.nan
    done = watch.add(part)
    assert (done.rows, done.waiting, done.dropped) == (33, 5, 2)
    assert done.sentence.endswith("; 2 rows left out because of missing cells.")
    late = labels_of(rows(60, 61))
    late["y"][:2] = -9.0
    assert watch.add(late).rows == 3
    assert of_ledger(watch) == (36, 2)


def test_rows_of_a_cluster_count_as_fewer(tmp_path: Path) -> None:
    """Of ten copies each row is worth a tenth."""
    y = np.repeat(child(5, "cluster").normal(size=300), 10)
    table = {"y": y, "mean": 0 * y, "sd": 0 * y + 1}
    clustered = {**table, "who": np.arange(3_000) // 10}
    watch = Watch.init(tmp_path / "a.watch", clustered, cluster="who")
    assert watch.promise.worth_of("", "bias") == pytest.approx(10.0, rel=0.2)
    assert Watch.init(tmp_path / "b.watch", table).promise.worth == {}
    with pytest.raises(InputError, match="'who' is missing"):
        watch.add(table)
    with pytest.raises(InputError, match="'embedding' must be left out"):
        Watch.init(tmp_path / "c.watch", clustered, embedding="sd")


@pytest.mark.parametrize("statement", ["", "VACUUM", "PRAGMA user_version = 3"])
def test_an_empty_file_begins_a_ledger(tmp_path: Path, statement: str) -> None:
    place = tmp_path / "a.watch"
    place.touch()
    with closing(sqlite3.connect(place)) as base:
        base.execute(statement)
    with pytest.raises(InputError, match="there is no ledger at"):
        Watch(place)
    assert Watch.init(place, rows(0, 30), time="day").add(rows(30, 31)).rows == ROWS


def test_names_are_found_again() -> None:
    rng = child(6, "names")
    keys, days = rng.integers(0, 500, 400), rng.integers(0, 5, 400)
    hashed = name_hashes(pa.chunked_array([[str(key) for key in keys]]), "id")
    pairs = row_keys(hashed, days)
    told = list(zip(keys.tolist(), days.tolist(), strict=True))
    assert len(set(pairs.tolist())) == len(set(told))
    y = rng.normal(size=400)
    parts = [RowNames.of(pairs[k::3], y[k::3]) for k in range(2)]
    known = {told[i] for k in range(2) for i in range(k, 400, 3)}
    joined = RowNames.joined(parts)
    again = RowNames.from_bytes(joined.to_bytes())
    assert again.contains(pairs).tolist() == [each in known for each in told]
    assert (again.marks == joined.marks).all()
    assert marks_of(np.array([0.0, np.nan])).tolist() == [*marks_of(np.array([-0.0])), 0]
    share = np.mean(marks_of(y) == marks_of(y + 1e-3))
    assert share < 0.03  # two marks are alike by chance in 1 of 255
    with pytest.raises(InputError, match="names of rows must take 9 bytes each"):
        RowNames.from_bytes(joined.to_bytes()[:-1])


def test_names_of_days_long_booked_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.watch.ledger.MAX_NAMES_KEPT", 3 * ROWS)
    place = f"{tmp_path}/a/"
    watch = Watch.init(place, rows(0, 30), time="day", row_id="id", mature=2)
    for day in range(60, 70):
        watch.add(rows(day, day + 1))
    kept = [path for path in Path(place).iterdir() if path.name.startswith("names")]
    assert len(kept) == 1 + 3  # of the reference, and of three days
    with pytest.raises(InputError, match="days that were already evaluated"):
        watch.add(rows(60, 61))


def test_the_command_line_takes_back_and_drops(tmp_path: Path) -> None:
    table = in_file(rows(0, 60), tmp_path / "reference.csv")
    part = rows(60, 61)
    part["sd"][0] = np.nan
    news, place = in_file(part, tmp_path / "news.csv"), str(tmp_path / "a.watch")

    def said(*words: str) -> str:
        done = CliRunner().invoke(app, ["watch", *words])
        return done.output if done.exception is None else str(done.exception)

    flags = ["--reference", str(table), "--time", "day", "--row-id", "id"]
    assert "--at is not used here" in said("init", place, *flags, "--at", "0.5")
    assert "Reference saved" in said("init", place, *flags, "--missing", "drop")
    assert "39 rows with y; 1 row left out" in said("add", place, str(news))
    assert "Undone: the last addition: 39 rows with y." in said("undo", place)
    assert "1 addition was undone." in said("show", place)
