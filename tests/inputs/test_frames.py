"""Tables in memory: the same answer whatever library holds them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.core.rng import child
from howsure.inputs import load
from howsure.inputs.new import load_new
from howsure.inputs.tables import cut

pd = needs("pandas")
pl = needs("polars")

COLUMNS: dict[str, Any] = {
    "y": [1.0, 2.0, 3.0],
    "mean": [1, 2, 3],
    "sd": [0.5, 0.5, 1.0],
    "region": ["north", "south", "north"],
    "day": np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[ns]"),
    "note": [object(), {}, None],
}
KEPT = {name: values for name, values in COLUMNS.items() if name != "note"}


def pandas_arrow() -> pd.DataFrame:
    return pd.DataFrame(KEPT).convert_dtypes(dtype_backend="pyarrow")


TABLES = {
    "mapping": lambda: COLUMNS,
    "mapping of arrays": lambda: {name: np.asarray(values) for name, values in KEPT.items()},
    "mapping of series": lambda: {name: pl.Series(values) for name, values in KEPT.items()},
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS, index=[7, 7, 9]),
    "pandas objects": lambda: pd.DataFrame(KEPT).astype(object),
    "pandas categories": lambda: pd.DataFrame(KEPT).astype({"region": "category"}),
    "pandas arrow": pandas_arrow,
    "polars": lambda: pl.DataFrame(KEPT),
    "polars lazy": lambda: pl.LazyFrame(KEPT),
    "polars categories": lambda: pl.DataFrame(KEPT).with_columns(
        pl.col("region").cast(pl.Categorical)
    ),
    "arrow": lambda: pa.table(KEPT),
    "arrow batch": lambda: pa.RecordBatch.from_pydict(KEPT),
}


@pytest.mark.parametrize("name", TABLES)
def test_any_table_is_one(name: str) -> None:
    loaded = load(TABLES[name](), groups="region", time="day")
    (made,) = loaded.evalsets
    assert made.model == "model"
    assert made.y.tolist() == [1.0, 2.0, 3.0]
    assert made.predictions[0].point().tolist() == [1.0, 2.0, 3.0]
    assert made.predictions[0].sd().tolist() == [0.5, 0.5, 1.0]
    assert made.groups["region"].values().tolist() == ["north", "south", "north"]
    assert made.time is not None
    np.testing.assert_array_equal(made.time, COLUMNS["day"])


def test_one_model_after_another() -> None:
    first, second = pd.DataFrame(KEPT), pl.DataFrame(KEPT)
    assert [e.model for e in load([first, second]).evalsets] == ["model 1", "model 2"]


def test_columns_named_by_numbers() -> None:
    frame = pd.DataFrame({"y": [1.0], 0.1: [0.5], 0.9: [2.0]})
    assert load(frame).evalsets[0].predictions[0].quantile([0.1, 0.9]).tolist() == [[0.5, 2.0]]
    with pytest.raises(
        InputError, match="column names must differ; these occur more than once: '1'"
    ):
        load(pd.DataFrame([[1, 2]], columns=[1, "1"]))


def test_categories_are_columns_too() -> None:
    made = load({"y": [1, 2], "pred": [1, 2], "g": Categories.checked(["a", "b"], "g")}, groups="g")
    assert made.evalsets[0].groups["g"].labels.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no columns"),
        ({"y": [1.0], "pred": [1.0, 2.0]}, "the same length, got 1 rows and 2 in 'pred'"),
        ({"y": [], "pred": []}, "has columns but no rows"),
        ({"y": 1.0, "pred": 2.0}, "column 'y'"),
        (
            {"y": "12", "pred": [1, 2]},
            "column 'y' cannot be read: an array .* got str",
        ),
        ({"y": {1, 2}, "pred": [1, 2]}, "column 'y' .* an array .* got set"),
        ({"y": [1.0], "pred": np.zeros((1, 2))}, r"column 'pred' .* got shape \(1, 2\)"),
        ({"y": [1.0], "pred": [[1.0, 2.0]]}, "'pred' must have one value per row, got nested"),
        ({"y": [1.0], "pred": [1 + 2j]}, "'pred' must contain numbers, got a cell that is not one"),
        ({"y": [1.0, 2.0], "pred": [1.0, "x"]}, "'pred' must contain numbers, .* 'x' at row 1"),
        ({"y": [1.0], "pred": ["\ud800"]}, "column 'pred'"),
        (
            {"y": [1.0, 2.0], "pred": np.ma.array([1.0, 2.0], mask=[0, 1])},
            "cells are missing: 1 in 'pred' .first at row 1.",
        ),
        (pd.DataFrame([[1, 2]], columns=["y", "y"]), "unique column names|must differ"),
        (pd.DataFrame({"y": [1.0, 2.0], "pred": [1.0, "x"]}), "'x' at row 1"),
        (pd.DataFrame({"y": [1.0, None], "pred": [1, 2]}), "missing: 1 in 'y' .first at row 1."),
        (pd.DataFrame({"y": [1.0], "pred": [[1]]}), "nested type"),
        (pl.DataFrame({"y": [1.0], "pred": [[1]]}), "nested type"),
        (pl.DataFrame({"y": [1.0], "pred": ["x"]}), "'x' at row 0"),
        (pd.Series([1.0]), "cannot be read"),
        (np.zeros((2, 2)), "cannot be read"),
        (5, "cannot be read"),
        (None, "cannot be read"),
        ([], "no table given"),
    ],
)
def test_what_is_no_table_is_named(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(given)


def test_numbers_of_any_array() -> None:
    for values in (
        np.array([1.0, 2.0], dtype=">f8"),
        np.array([1.0, 2.0], dtype=np.longdouble),
        np.array([[1.0], [2.0]]),
        np.array([1, 2], dtype=np.uint8),
        np.array(["1", "2"]),
        (1, 2),
        range(1, 3),
    ):
        assert load({"y": values, "pred": [1, 2]}).evalsets[0].y.tolist() == [1.0, 2.0]


def test_an_index_of_times_is_the_time_with_a_note() -> None:
    pd = needs("pandas")
    times = pd.date_range("2026-01-01", periods=4, freq="h")
    columns = {"y": [1.0, 2.0, 3.0, 4.0], "pred": [1.5, 1.0, 2.0, 5.0]}
    loaded = load(pd.DataFrame(columns, index=times))
    (held,) = loaded.evalsets
    assert held.time is not None
    assert [str(each)[:13] for each in held.time] == [str(t)[:13].replace(" ", "T") for t in times]
    assert (
        "column 'index' is read as time, because it is the index of a frame"
        in loaded.facts["Reading"]
    )
    named = pd.DataFrame({**columns, "date": times[::-1]}, index=times)
    assert load(named).evalsets[0].time[0] > load(named).evalsets[0].time[1]
    assert load(pd.DataFrame(columns)).evalsets[0].time is None


_HOURS_ON = pd.date_range("2026-01-01", periods=24, freq="h")


@pytest.mark.parametrize(
    ("index", "times"),
    [
        (_HOURS_ON, True),
        (_HOURS_ON[::-1], True),
        (_HOURS_ON.rename("timestamp"), True),
        (_HOURS_ON.rename("when"), True),
        (_HOURS_ON.astype(str), True),
        (pd.RangeIndex(24), False),
        (pd.RangeIndex(24)[::-1], False),
        (pd.Index([f"row {k}" for k in range(24)]), False),
        (pd.MultiIndex.from_arrays([np.arange(24) % 2, _HOURS_ON], names=["group", "date"]), True),
    ],
    ids=["times", "back", "named", "when", "text", "numbers", "shuffled", "words", "levels"],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "xlsx"])
def test_a_file_of_a_frame_is_read_as_the_frame(
    tmp_path: Path, index: pd.Index, times: bool, form: str
) -> None:
    rng = child(0, "index of a frame")
    columns = {name: rng.normal(size=24) for name in ("y", "pred")}
    frame, path = pd.DataFrame(columns, index=index), tmp_path / f"t.{form}"
    write = frame.to_excel if form == "xlsx" else getattr(frame, f"to_{form}")
    write(path)
    held, read = load(frame).evalsets[0], load(path).evalsets[0]
    assert (held.time is not None) == times
    assert (read.time is None) == (held.time is None)
    if held.time is not None and read.time is not None:
        assert (held.time == read.time).all()
    assert list(held.groups) == list(read.groups)


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_a_column_without_a_name_can_be_named(tmp_path: Path, name: str) -> None:
    """As pandas calls it; row numbers are no times unless that is said, and "" leaves times out."""
    path = tmp_path / "t.csv"
    rows = pd.DataFrame({"y": [1.0, 2.0, 3.0], "pred": [1.5, 1.0, 2.0]})
    rows.to_csv(path)
    held = load(path, time=name).evalsets[0]
    assert (None if held.time is None else held.time.tolist()) == ([0, 1, 2] if name else None)
    assert load(path).evalsets[0].time is None
    rows.set_index(_HOURS_ON[:3]).to_csv(path)
    assert (load(path, time=name).evalsets[0].time is None) == (not name)


def test_a_first_column_of_dates_that_do_not_rise_is_no_time(tmp_path: Path) -> None:
    """As of dates of birth, or of one day that many rows share."""
    path = tmp_path / "t.csv"
    for moments in (_HOURS_ON[::-1], _HOURS_ON.floor("D")):
        pd.DataFrame({"born": moments, "y": 1.0, "pred": np.arange(24.0)}).to_csv(path, index=False)
        assert load(path).evalsets[0].time is None


def test_an_index_of_times_that_is_not_read_is_not_noted() -> None:
    times = pd.date_range("2026-01-01", periods=4, freq="h")
    table = {"y": [1.0, 2.0, 3.0, 4.0], "pred": [1.5, 1.0, 2.0, 5.0], "hour": [3.0, 2.0, 1.0, 0.0]}
    frame = pd.DataFrame(table, index=times)
    for loaded, kept in ((load(frame, time=""), None), (load(frame, time="hour"), table["hour"])):
        time = loaded.evalsets[0].time
        assert (None if time is None else time.tolist()) == kept
        assert "Reading" not in loaded.facts
    series = load(frame.assign(unique_id="a", ds=times[::-1]))
    assert series.evalsets[0].time.tolist() == times[::-1].to_numpy().tolist()


_DAYS = ["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02"]
_HOURS = ["6:00", "18:30", "06:00:15", "18:30"]
_MOMENTS = ["2026-01-01T06:00", "2026-01-01T18:30", "2026-01-02T06:00:15", "2026-01-02T18:30"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("names", [("Date", "Time"), ("time", "date"), ("timestamp", "time")])
@pytest.mark.parametrize("form", ["text", "date and time", "moment and time"])
def test_a_date_and_a_time_of_day_are_one_time_with_a_note(
    form: str, names: tuple[str, str], reverse: bool
) -> None:
    moments = [datetime.datetime.fromisoformat(each) for each in _MOMENTS]
    days: list[Any] = _DAYS
    hours: list[Any] = _HOURS
    if form != "text":
        hours = [each.time() for each in moments]
        days = [each.date() for each in moments]
    if form == "moment and time":
        days = [datetime.datetime.combine(each, datetime.time()) for each in days]
    held = [(names[0], days), (names[1], hours)]
    table = {"y": [1.0, 2.0, 3.0, 4.0], **dict(held[::-1] if reverse else held), "pred": [1.0] * 4}
    loaded = load(table)
    time = loaded.evalsets[0].time
    assert time is not None
    assert time.astype("datetime64[s]").tolist() == moments
    said = f"columns {names[0]!r} and {names[1]!r} are read as one time"
    assert said in loaded.facts["Reading"]
    assert [use.role for use in loaded.explanation if use.column in names] == ["time", "time"]


@pytest.mark.parametrize(
    ("days", "hours"),
    [
        (_DAYS, _DAYS),
        (_HOURS, _HOURS),
        (_MOMENTS, _HOURS),  # a moment already has its time of day
        (_DAYS, [0, 1, 0, 1]),
        ([1, 1, 2, 2], _HOURS),
        (_DAYS, ["06:00", "18:30", "25:00", "18:30"]),
        (_DAYS, ["06:00", "18:30", "soon", "18:30"]),
    ],
)
def test_two_columns_of_times_that_are_no_parts_of_one_are_refused(
    days: list[Any], hours: list[Any]
) -> None:
    table = {"y": [1.0, 2.0, 3.0, 4.0], "pred": [1.0] * 4, "Date": days, "Time": hours}
    with pytest.raises(
        InputError, match=r"time must be one column, but the names of 2.*pass .*time='Date'"
    ):
        load(table)
    assert load(table, time="").evalsets[0].time is None


def test_a_missing_time_of_day_is_told_of_its_own_column() -> None:
    table = {"y": [1.0, 2.0, 3.0], "pred": [1.0] * 3, "Date": _DAYS[:3]}
    with pytest.raises(InputError, match=r"missing: 1 in 'Time' \(first at row 1\)"):
        load({**table, "Time": ["06:00", None, "18:00"]})
    kept = load({**table, "Time": ["06:00", "", "18:00"]}, missing="drop")
    assert kept.evalsets[0].n == 2
    assert kept.dropped_by == {"Time": 1}


def test_dates_and_times_of_day_by_parts_and_in_new_rows() -> None:
    table = {"y": [1.0, 2.0, 3.0, 4.0], "mean": [1.0, 2.5, 3.0, 3.0], "sd": [1.0] * 4}
    table |= {"Time": _HOURS, "Date": _DAYS}
    held = cut(iter([pa.table(table).slice(0, 3), pa.table(table).slice(3)]), batch_rows=3)
    assert held.time_range is None
    assert "columns 'Date' and 'Time' are read as one time" in held.notes[0]
    found = [each for piece in held.pieces for each in held.reading.batches(piece)]
    times = [each.evalsets[0].time for each in found]
    np.testing.assert_array_equal(np.concatenate(times), load(table).evalsets[0].time)
    np.testing.assert_array_equal(load_new(table).evalset.time, load(table).evalsets[0].time)
    part = load_new({**table, "Time": ["06:00", None, "06:00", "06:00"]})  # no time of this row
    assert part.labelled
    assert part.evalset.time is None
