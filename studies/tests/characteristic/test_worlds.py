"""Where the study's rows come from."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.characteristic import gap, read_traffic
from howsure_studies.characteristic.worlds import TrainTest, identity_of, split_of

HEADER = "holiday,temp,rain_1h,snow_1h,clouds_all,weather_main,weather_description,date_time"


def write_hours(folder: Path, lines: list[str]) -> None:
    text = "\n".join([f"{HEADER},traffic_volume", *lines])
    (folder / "data.csv.gz").write_bytes(gzip.compress(text.encode()))


def split(entry: dict[str, Any], folder: Path, seed: int = 0, **rows: int | None) -> TrainTest:
    asked = {"n_train": None, "n_test": None, **rows}
    return split_of(*identity_of("w", entry, folder), seed=seed, **asked)


def test_the_gap_is_where_no_training_row_lies() -> None:
    rows = gap(3, n_train=500, n_test=4_000)
    assert (np.abs(rows.x) >= 1).all()
    assert np.abs(rows.x_test).max() <= 4
    assert 0.2 < np.mean(np.abs(rows.x_test) < 1) < 0.3
    noise = rows.y_test - np.cos(2 * rows.x_test[:, 0])
    assert noise.std() == pytest.approx(0.1, rel=0.05)
    np.testing.assert_array_equal(rows.place, rows.x_test[:, 0])
    assert not np.array_equal(gap(4).y, gap(3).y)


def test_a_gap_of_a_plan_takes_its_numbers_of_rows(tmp_path: Path) -> None:
    rows = split({"world": "gap"}, tmp_path, n_train=30)
    assert (len(rows.y), len(rows.y_test)) == (30, 2_000)
    np.testing.assert_array_equal(rows.x, gap(0, n_train=30).x)


def test_traffic_reads_hours(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"folder must contain data\.csv\.gz"):
        read_traffic(tmp_path)
    rest = "0.0,0,40,Clouds,scattered clouds"
    lines = [
        f"Labor Day,280.0,{rest},2018-09-03 00:00,100",
        f"None,0.0,{rest},2018-09-03 09:00,500",
        "None,280.0,0.0,0,40,Rain,light rain,2018-09-03 09:00,500",
        "None,281.0,9831.3,0,40,Rain,heavy rain,2018-09-04 09:00,600",
        f"None,270.0,{rest},2016-01-04 05:00,50",
        f"None,270.0,{rest},2016-01-04 06:00,60",
        f"None,270.0,{rest},2016-01-04 07:00,70",
    ]
    write_hours(tmp_path, lines)
    hours = read_traffic(tmp_path)
    np.testing.assert_array_equal(hours.y, [50, 60, 70])
    np.testing.assert_array_equal(read_traffic(tmp_path, every=2).y, [50, 70])
    np.testing.assert_array_equal(hours.y_test, [100, 500, 600])
    x = hours.x_test
    np.testing.assert_array_equal(x[:, 0], [0, 9, 9])  # hour
    np.testing.assert_array_equal(x[:, 1], [0, 0, 1])  # a Monday, and the Tuesday after
    np.testing.assert_array_equal(x[:, 3], [1, 1, 0])  # the holiday holds all day
    np.testing.assert_array_equal(x[:, 4], [280, np.nan, 281])  # 0 K is a fault
    np.testing.assert_array_equal(x[:, 5], [0, 0, np.nan])  # so is 9.8 m of rain
    np.testing.assert_array_equal(x[:, 9], [np.nan, np.nan, 500])  # a day before
    assert hours.cluster is not None
    assert len(set(hours.cluster.tolist())) == 1  # three hours of one week
    assert hours.place is not None
    assert hours.place[0] == 105  # days after 21 May


def test_traffic_of_a_plan_is_known_by_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "roads").mkdir()
    rest = "0.0,0,40,Clouds,scattered clouds"
    write_hours(tmp_path / "roads", [f"None,280.0,{rest},201{y}-09-03 00:00,100" for y in (6, 8)])
    identity, files = identity_of("w", {"traffic": "roads"}, tmp_path)
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    assert identity_of("w", {"traffic": "roads"}, Path("/nowhere")) == (identity, files)
    assert identity_of("w", {"traffic": "roads", "every": 4}, tmp_path)[0] != identity
    write_hours(tmp_path / "roads", [f"None,280.0,{rest},201{y}-09-03 00:00,200" for y in (6, 8)])
    with pytest.raises(InputError, match="has changed since the plan was read"):
        split_of(identity, files, seed=0, n_train=None, n_test=None)
    with pytest.raises(InputError, match="every of world 'w' must be a whole number"):
        identity_of("w", {"traffic": "roads", "every": 0}, tmp_path)


def test_a_table_is_split_four_to_one(tmp_path: Path) -> None:
    table = np.column_stack([np.arange(50.0), np.arange(50.0) ** 2])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,y", comments="")
    entry = {"table": "t.csv", "target": "y"}
    rows = split(entry, tmp_path)
    assert (len(rows.y), len(rows.y_test)) == (40, 10)
    every = np.sort(np.concatenate([rows.y, rows.y_test]))
    np.testing.assert_array_equal(every, table[:, 1])
    other = split(entry, tmp_path, seed=1)
    assert not np.array_equal(rows.y_test, other.y_test)
    assert (len(split(entry, tmp_path, n_test=5).y), rows.axis) == (45, "x")


def test_a_named_table_and_a_drawn_world(tmp_path: Path, data_dir: Callable[[str], Path]) -> None:
    data_dir("uci_boston")
    rows = split({"uci": "boston"}, tmp_path)
    assert (len(rows.y), len(rows.y_test), rows.place) == (405, 101, None)
    fan = split({"world": "fan"}, tmp_path, n_train=20, n_test=30)
    assert (len(fan.y), len(fan.y_test)) == (20, 30)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"world": "gap", "rows": 3}, "option of world 'w' must be one of world"),
        ({"world": "gab"}, "near: gap|must be one of"),
        ({"traffic": "x", "evry": 3}, "near: every"),
        ({"traffic": "nowhere"}, r"folder must contain data\.csv\.gz"),
        ({"uci": "bostn"}, "near: boston"),
        ({}, "must have one of world, uci, dataset or table"),
    ],
)
def test_what_is_no_world_is_refused(entry: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        identity_of("w", entry, tmp_path)
