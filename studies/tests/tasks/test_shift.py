"""Tables that shift: who is home, who is elsewhere, and what becomes of columns."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import DataNotFoundError, shift_names, shift_task, table_task

pd = needs("pandas")
pl = needs("polars")


def table(n: int = 100) -> dict[str, list[object]]:
    """Half the rows in the north, then two smaller regions; y tells the row."""
    return {
        "y": list(range(n)),
        "size": [float(row) / 2 for row in range(n)],
        "kind": ["old" if row % 3 else "new" for row in range(n)],
        "region": ["north"] * (n // 2) + ["south"] * (n // 4) + ["west"] * (n - n // 2 - n // 4),
        "year": [2000 + row // 10 for row in range(n)],
    }


def test_home_rows_are_cut_in_three_and_others_tested_apart() -> None:
    task = table_task(table(), "y", split_by="region", features=["size", "kind"])
    assert task.tests == ("shift", "home", "south", "west")
    rows = {name: task.part(name).y for name in ("train", "val", *task.tests)}
    assert {name: len(part) for name, part in rows.items()} == {
        "train": 30,
        "val": 10,
        "shift": 50,
        "home": 10,
        "south": 25,
        "west": 25,
    }
    home = np.concatenate([rows["train"], rows["val"], rows["home"]])
    assert sorted(home) == list(range(50))
    assert rows["shift"].tolist() == list(range(50, 100))
    assert rows["west"].tolist() == list(range(75, 100))
    assert task.columns == ("size", "kind=new", "kind=old")
    part = task.part("south")
    assert np.array_equal(part.x[:, 0], part.y / 2)
    assert np.array_equal(part.x[:, 1], part.y % 3 == 0)
    assert np.array_equal(part.x[:, 1] + part.x[:, 2], np.ones(25))
    assert part.ids.tolist() == [str(row) for row in range(50, 75)]
    assert part.in_range is not None
    assert not part.in_range.any()
    assert task.test is task.part("shift")
    assert not task.images


def test_home_can_be_values_or_a_bound() -> None:
    listed = table_task(table(), "y", split_by="region", home=["south", "west"])
    assert listed.test.y.tolist() == list(range(50))
    assert listed.tests == ("shift", "home")
    bound = table_task(table(), "y", split_by="year", up_to=2006)
    assert bound.test.y.tolist() == list(range(70, 100))
    assert bound.tests == ("shift", "home", "2007", "2008", "2009")
    middle = table_task(table(), "y", split_by="year")
    assert middle.test.y.tolist() == list(range(50, 100))


def test_years_are_years_whatever_they_were_read_as() -> None:
    read = table() | {"year": np.asarray(table()["year"], dtype=np.float64)}
    assert table_task(read, "y", split_by="year", up_to=2006).tests[2:] == ("2007", "2008", "2009")
    assert "2000" not in table_task(read, "y", split_by="year", home=[2000, 2001]).tests


def test_the_cut_of_home_depends_on_the_seed_alone() -> None:
    first = table_task(table(), "y", split_by="region", home=["north"])
    fewer = {key: column[:80] for key, column in table().items()}
    again = table_task(fewer, "y", split_by="region", home=["north"])
    assert first.train.y.tolist() == again.train.y.tolist()
    other = table_task(table(), "y", split_by="region", home=["north"], seed=1)
    assert first.train.y.tolist() != other.train.y.tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_any_dataframe_will_do(make: Callable[[object], object]) -> None:
    task = table_task(make(table()), "y", split_by="region")
    plain = table_task(table(), "y", split_by="region")
    assert np.array_equal(task.train.x, plain.train.x)
    assert task.columns == plain.columns


def test_a_value_unseen_in_training_is_no_known_value() -> None:
    held = table()
    held["kind"] = ["new" if row == 99 else "old" for row in range(100)]
    task = table_task(held, "y", split_by="region", features=["kind"])
    assert task.columns == ("kind=old",)
    assert task.test.x[-1].tolist() == [0.0]


def test_missing_values_are_what_is_asked_for() -> None:
    held = table()
    held["size"][60] = None
    held["size"][3] = float("nan")
    held["y"][70] = None
    with pytest.raises(
        InputError, match=r"column 'y' must have no missing value, got 1 \(first at row 70"
    ):
        table_task(held, "y", split_by="region")
    dropped = table_task(held, "y", split_by="region", missing="drop")
    assert len(dropped.test) == 48
    assert dropped.train.notes == ("3 rows with missing values left out",)
    assert dropped.notes == dropped.train.notes
    filled = table_task(held, "y", split_by="region", missing="median", features=["size"])
    assert len(filled.test) == 49
    known = filled.train.x[filled.train.ids != "3", 0]
    wanted = np.median(known)
    assert filled.test.x[10, 0] == wanted
    assert filled.test.ids[10] == "60"


@pytest.mark.parametrize(
    ("change", "wish", "words"),
    [
        ({}, {"target": "z"}, "target must be one of y"),
        ({}, {"split_by": "religion"}, "near: region"),
        ({}, {"features": ["y"]}, "not the target"),
        ({}, {"features": []}, "at least one column"),
        ({}, {"features": ["sise"]}, "near: size"),
        ({}, {"home": ["east"]}, "home must be one of north, south, west, got 'east'"),
        ({}, {"home": ["north", "south", "west"]}, "one elsewhere, got 100 of 100 home"),
        ({}, {"home": ["north"], "up_to": 3}, "must not be given together"),
        ({}, {"missing": "ignore"}, "missing must be error, drop or median"),
        ({"size": [float("inf")] * 100}, {}, "must hold finite numbers"),
        ({"y": ["a"] * 100}, {}, "column 'y' must hold numbers"),
        ({"kind": [date(2020, 1, 1)] * 100}, {}, "must hold numbers or text"),
    ],
)
def test_wrong_wishes_are_refused(
    change: dict[str, list[object]], wish: dict[str, object], words: str
) -> None:
    arguments: dict[str, object] = {"target": "y", "split_by": "region", **wish}
    with pytest.raises(InputError, match=words):
        table_task(table() | change, **arguments)  # type: ignore[arg-type]


def test_a_column_of_names_is_no_category() -> None:
    held = table(400) | {"kind": [f"Mr {row}" for row in range(400)]}
    with pytest.raises(InputError, match="column 'kind' must have at most 50 values, got 120"):
        table_task(held, "y", split_by="region")


def test_what_is_no_table_is_refused() -> None:
    for thing in (3, {"y": [1, 2], "x": [1]}):
        with pytest.raises(InputError, match="table must be a dataframe"):
            table_task(thing, "y", split_by="x")
    with pytest.raises(InputError, match="part must be one of train, val, shift"):
        table_task(table(), "y", split_by="region").part("tests")


SIZES = {
    "california": (14089, 6551),
    "bike-hours": (8645, 8734),
    "traffic": (15971, 32233),
    "poverty": (11797, 7872),
}


@pytest.mark.parametrize("name", list(SIZES))
def test_real_tables_are_whole_and_shift(name: str, data_dir: Callable[[str], Path]) -> None:
    from howsure_studies.tasks.shift import TABLES

    data_dir(TABLES[name].folder)
    task = shift_task(name)
    home = len(task.train) + len(task.val) + len(task.part("home"))
    assert (home, len(task.test)) == SIZES[name]
    assert task.target not in task.columns
    assert np.isfinite(task.train.x).all()


def test_inland_houses_are_cheaper(data_dir: Callable[[str], Path]) -> None:
    data_dir("shift_california_housing")
    task = shift_task("california")
    assert task.test.y.mean() == pytest.approx(124805, rel=1e-4)
    assert task.train.y.mean() > 1.8 * task.test.y.mean()


def test_traffic_knows_the_hour_and_the_holiday(data_dir: Callable[[str], Path]) -> None:
    data_dir("metro_traffic")
    task = shift_task("traffic")
    column = dict(zip(task.columns, task.test.x.T, strict=True))
    assert set(column["hour"]) == set(range(24))
    night, rush = (task.test.y[column["hour"] == hour].mean() for hour in (3, 17))
    assert rush > 5 * night
    assert 0.02 < column["holiday"].mean() < 0.04


def test_wine_is_read_where_it_lies(tmp_path: Path) -> None:
    text = "fixed acidity;alcohol;quality\n"
    rows = {"red": 1599, "white": 4898}
    for colour, n in rows.items():
        lines = "".join(f"{row / 7};{row % 9};{row % 6 + 3}\n" for row in range(n))
        (tmp_path / f"winequality-{colour}.csv").write_text(text + lines)
    task = shift_task("wine", tmp_path)
    assert len(task.test) == 4898
    assert task.columns == ("fixed acidity", "alcohol")
    (tmp_path / "winequality-white.csv").unlink()
    with pytest.raises(InputError, match=r"must hold winequality-white\.csv"):
        shift_task("wine", tmp_path)


def test_tables_that_are_not_theirs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in shift_names():
        with pytest.raises(DataNotFoundError, match=f"howsure data get {name} shows how"):
            shift_task(name)
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 17379))
    with pytest.raises(InputError, match="columns are not those of bike-hours"):
        shift_task("bike-hours", tmp_path)
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match="must hold 17379 rows of bike-hours, got 1"):
        shift_task("bike-hours", tmp_path)
    path.write_bytes(b"no gzip")
    with pytest.raises(InputError, match="cannot be read"):
        shift_task("bike-hours", tmp_path)
