"""Where the rows come from: the gap, hourly traffic, tables, and worlds that are drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.engine import absolute, check_options, make_world, numbers_hash, world_identity
from howsure_studies.tasks.worlds import CutWorld

_NOISE: Final = 0.1
_TEST_SHARE: Final = 5  # one row in so many of a real table is a test row
_FILES: Final = ("data.csv.gz", "Metro_Interstate_Traffic_Volume.csv.gz")
_BEGIN: Final = np.datetime64("2017-01-01T00", "h")  # of the test hours
_SHOWN: Final = np.datetime64("2018-05-21T00", "h")  # eight days; the last is Memorial Day
_LAGS: Final = (24, 48, 168, 336)


@final
@frozen(kw_only=True, eq=False)
class TrainTest:
    """Training rows and test rows.

    Attributes
    ----------
    x, y : ndarray of float, shape (n, d) and (n,)
        Training rows. Inputs may be NaN where the world does not know them.
    x_test, y_test : ndarray of float, shape (m, d) and (m,)
        Test rows.
    cluster : ndarray of int, shape (m,), optional
        Which test rows depend on each other: they are resampled and swapped together.
    place : ndarray of float, shape (m,), optional
        Where each test row stands on the x axis of a figure of bands.
    axis : str
        What that axis is.
    window : (float, float), optional
        The part of it that a figure shows.
    problem : {"", "gap", "traffic"}
        Which problem of the paper it does again.
    """

    x: FloatArray
    y: FloatArray
    x_test: FloatArray
    y_test: FloatArray
    cluster: IntArray | None = None
    place: FloatArray | None = None
    axis: str = ""
    window: tuple[float, float] | None = None
    problem: str = ""


def gap(seed: int, *, n_train: int = 80, n_test: int = 2_000) -> TrainTest:
    """cos 2x with normal noise of sd 0.1: trained on 1 ≤ |x| ≤ 4, tested on −4 ≤ x ≤ 4.

    The highest point of the function lies in the gap, where no training row shows it. The paper
    gives neither its function nor its noise; these are ours.

    Parameters
    ----------
    seed : int
        Of the rows.
    n_train, n_test : int
        How many there are.

    Returns
    -------
    TrainTest

    Examples
    --------
    >>> rows = gap(0)
    >>> float(abs(rows.x).min()) > 1, float(abs(rows.x_test).min()) < 0.01
    (True, True)
    """
    rng = child(seed, "gap", "data")
    x = rng.uniform(1.0, 4.0, n_train) * rng.choice([-1.0, 1.0], n_train)
    x_test = rng.uniform(-4.0, 4.0, n_test)
    y, y_test = (np.cos(2.0 * at) + _NOISE * rng.normal(size=len(at)) for at in (x, x_test))
    return TrainTest(
        x=x[:, None],
        y=y,
        x_test=x_test[:, None],
        y_test=y_test,
        place=x_test,
        axis="x",
        problem="gap",
    )


def read_traffic(folder: Path, every: int = 1) -> TrainTest:
    """Hours of Metro Interstate Traffic Volume (UCI 492): trained to 2016, tested on 2017 and 2018.

    Inputs are hour, weekday, day of the year, holiday, the weather of the hour (column 8: its
    kind, as a number) and the volume 24, 48, 168 and 336 hours before. Readings of 0 K and of
    9.8 m of rain in an hour count as missing. Hours of one week are a cluster.

    Parameters
    ----------
    folder : Path
        Where ``data.csv.gz``, or the file as UCI gives it, lies.
    every : int
        Each so many-th training hour is kept.

    Returns
    -------
    TrainTest

    Raises
    ------
    InputError
        If there is no such file.
    """
    path = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if path is None:
        raise InputError(f"folder must contain {' or '.join(_FILES)}, got {folder}")
    table = csv.read_csv(path)
    hour = table["date_time"].to_numpy().astype("datetime64[h]")
    hour, first = np.unique(hour, return_index=True)  # hours repeat with each weather label
    table = table.take(pa.array(first))
    column = {name: table[name].to_numpy().copy() for name in table.column_names}
    y = column["traffic_volume"].astype(np.float64)
    day = hour.astype("datetime64[D]")
    holidays = day[column["holiday"] != "None"]  # named at midnight alone
    parts = [
        (hour - day).astype(np.float64),
        (day.astype(np.int64) + 3) % 7,
        (day - day.astype("datetime64[Y]")).astype(np.float64),
        np.isin(day, holidays),
        np.where(column["temp"] < 200, np.nan, column["temp"]),  # kelvin
        np.where(column["rain_1h"] > 1_000, np.nan, column["rain_1h"]),  # mm
        column["snow_1h"],
        column["clouds_all"],
        np.unique(column["weather_main"], return_inverse=True)[1],
        *(_before(hour, y, lag) for lag in _LAGS),
    ]
    x = np.stack(parts, axis=1).astype(np.float64)
    old = hour < _BEGIN
    train, late = np.flatnonzero(old)[:: check_whole(every, "every")], hour[~old]
    return TrainTest(
        x=x[train],
        y=y[train],
        x_test=x[~old],
        y_test=y[~old],
        cluster=late.astype("datetime64[W]").astype(np.int64),
        place=(late - _SHOWN).astype(np.float64) / 24.0,
        axis=f"Days since {_SHOWN.astype('datetime64[D]')}",
        window=(0.0, 8.0),
        problem="traffic",
    )


def _before(hour: npt.NDArray[np.datetime64], y: FloatArray, lag: int) -> FloatArray:
    """The volume so many hours before each row; NaN where that hour is not in the table."""
    asked = hour - np.timedelta64(lag, "h")
    at = np.searchsorted(hour, asked)
    return np.where(hour[at] == asked, y[at], np.nan)


def identity_of(
    label: str, entry: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """What decides a world of a plan, and the files that it needs.

    The engine's `world_identity` knows drawn worlds and tables; a table is cut, if no other
    source is asked for.
    """
    if entry.get("world") == "gap":
        check_options(label, entry, ("world",))
        return {"world": "gap"}, {}
    if "traffic" not in entry:
        cut = {} if "world" in entry else {"source": "cut"}
        return world_identity(label, {**cut, **entry}, folder)
    check_options(label, entry, ("traffic", "every"))
    shared = Path(os.environ.get("HOWSURE_DATA", "")) / str(entry["traffic"])
    path = shared if shared.is_dir() else Path(absolute(folder, entry["traffic"]))
    every = check_whole(entry.get("every", 1), f"every of world {label!r}")
    return {"traffic": _hash(read_traffic(path)), "every": every}, {"traffic": str(path)}


def split_of(
    identity: Mapping[str, Any],
    files: Mapping[str, str],
    *,
    seed: int,
    n_train: int | None,
    n_test: int | None,
) -> TrainTest:
    """The rows of a world under a seed; a real table is split at random, one row in five tests."""
    if "traffic" in identity:
        folder = Path(files["traffic"])
        if _hash(read_traffic(folder)) != identity["traffic"]:
            raise InputError(f"{folder} has changed since the plan was read: run it again")
        return read_traffic(folder, identity["every"])
    if identity.get("world") == "gap":
        asked = {"n_train": n_train, "n_test": n_test}
        return gap(seed, **{name: rows for name, rows in asked.items() if rows is not None})
    world = make_world(identity, files)
    if isinstance(world, CutWorld):
        n_test = max(len(world.y) // _TEST_SHARE, 1) if n_test is None else n_test
        n_train = len(world.y) - n_test if n_train is None else n_train
    train = world.training_set(seed, 0, n_train, n_test=n_test)
    test = world.test_set(seed, n_test)
    alone = world.dimension == 1
    return TrainTest(
        x=train.x,
        y=train.y,
        x_test=test.x,
        y_test=test.y,
        place=test.x[:, 0] if alone else None,
        axis="x" if alone else "",
    )


def _hash(rows: TrainTest) -> str:
    return numbers_hash(rows.x, rows.y, rows.x_test, rows.y_test)
