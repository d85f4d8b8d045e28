"""Case study: hourly traffic a day ahead, and what the characteristics curve makes of two models.

The data are those of Metro Interstate Traffic Volume (UCI 492): hours of the I-94 near Minneapolis,
with weather and holidays. Two boosting models give intervals: three quantile regressors, and a
regressor of the mean with a second one of the size of its errors (a meta-model).

    python examples/characteristic_traffic.py FOLDER

where FOLDER holds data.csv.gz, or Metro_Interstate_Traffic_Volume.csv.gz as UCI gives it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from characteristic_gap import FloatArray, Study, operating_points, study_of
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.figures import Axis, Figure, Layer, Mark, plot
from howsure.metrics.characteristic import CharacteristicCurve, characteristic_curve

NAMES = ("data.csv.gz", "Metro_Interstate_Traffic_Volume.csv.gz")
LOW = (0.0, 0.2)
POINTS = (0.1, 0.5)
SPLIT = np.datetime64("2017-01-01T00", "h")
COVERAGE = 0.9
LAGS = (24, 48, 168, 336)
SHORTEST = 1.0  # vehicles an hour: no predicted size of errors may be less


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """One row an hour, in order of time.

    Attributes
    ----------
    hour : ndarray of datetime64[h], shape (n,)
        When.
    y : ndarray of float, shape (n,)
        Vehicles in that hour.
    x : ndarray of float, shape (n, d)
        Time, weather of the hour, and volumes one day and more before. NaN where unknown.
    """

    hour: npt.NDArray[np.datetime64]
    y: FloatArray
    x: FloatArray

    def take(self, rows: npt.NDArray[Any] | slice) -> Hours:
        """Some of the rows."""
        return Hours(self.hour[rows], self.y[rows], self.x[rows])

    def week(self) -> npt.NDArray[np.int64]:
        """The week of each row, as a cluster of dependent rows."""
        return self.hour.astype("datetime64[W]").astype(np.int64)


def read(folder: Path) -> Hours:
    """Read the table: one row an hour, sensor faults as missing, holidays on all of their hours."""
    path = next((folder / name for name in NAMES if (folder / name).is_file()), None)
    if path is None:
        raise InputError(f"folder must hold {' or '.join(NAMES)}, got {folder}")
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
        *(before(hour, y, lag) for lag in LAGS),
    ]
    return Hours(hour, y, np.stack(parts, axis=1).astype(np.float64))


def before(hour: npt.NDArray[np.datetime64], y: FloatArray, lag: int) -> FloatArray:
    """The volume so many hours before each row; NaN where that hour is not in the table."""
    asked = hour - np.timedelta64(lag, "h")
    place = np.searchsorted(hour, asked)
    return np.where(hour[place] == asked, y[place], np.nan)


def boosting(loss: str, rounds: int, **options: Any) -> HistGradientBoostingRegressor:
    """Boosted trees as scikit-learn keeps them, with weekday and weather as categories."""
    return HistGradientBoostingRegressor(
        loss=loss,
        max_iter=rounds,
        categorical_features=[1, 8],
        early_stopping=False,
        random_state=0,
        **options,
    )


def curves(train: Hours, test: Hours, rounds: int) -> dict[str, CharacteristicCurve]:
    """The curve of each model, by its name.

    The quantile regressors stand there twice: with their bands as predicted, and with their widths
    put equally on both sides of the median. A band that is thin on one side alone has a huge
    critical scale where y falls on that side, and a few such rows can rule the whole area.
    """
    lower, median, upper = quantiles(train, test, rounds)
    half = 0.5 * (upper - lower)
    mean, size = mean_and_size(train, test, rounds)
    return {
        "quantile regressors": characteristic_curve(test.y, median, lower, upper),
        "their widths": characteristic_curve(test.y, median, median - half, median + half),
        "error model": characteristic_curve(test.y, mean, mean - size, mean + size),
    }


def quantiles(train: Hours, test: Hours, rounds: int) -> FloatArray:
    """The ends and the median of a central interval, one model each. Shape (3, n)."""
    levels = (0.5 - 0.5 * COVERAGE, 0.5, 0.5 + 0.5 * COVERAGE)
    rows = [
        boosting("quantile", rounds, quantile=level).fit(train.x, train.y).predict(test.x)
        for level in levels
    ]
    ordered: FloatArray = np.sort(rows, axis=0)
    return ordered


def mean_and_size(train: Hours, test: Hours, rounds: int) -> tuple[FloatArray, FloatArray]:
    """The mean, and the mean size of its errors, learnt on blocks of time that it had not seen."""
    mean = boosting("squared_error", rounds)
    unseen = cross_val_predict(mean, train.x, train.y, cv=KFold(5))
    error = np.maximum(np.abs(train.y - unseen), SHORTEST)
    size = boosting("gamma", rounds).fit(np.column_stack([train.x, unseen]), error)
    point = mean.fit(train.x, train.y).predict(test.x)
    found = size.predict(np.column_stack([test.x, point]))
    return point, np.maximum(found, SHORTEST)


def main(
    folder: Path,
    *,
    every: int = 1,
    rounds: int = 100,
    replicates: int = 500,
    figure: Path | None = None,
) -> tuple[Study, ...]:
    """Train on the hours before 2017, test on those after, and study the curves.

    Parameters
    ----------
    folder : Path
        Where the data lie.
    every : int
        Train on each so many-th hour alone, for a test.
    rounds : int
        Trees of each boosting model.
    replicates : int
        Of the bootstrap over weeks, and of the perfect model.
    figure : Path, optional
        Draw a week of forecasts and the curves into this file.

    Returns
    -------
    tuple of Study
        One a model.
    """
    hours = read(folder)
    old = hours.hour < SPLIT
    train, test = hours.take(np.flatnonzero(old)[::every]), hours.take(~old)
    studies = tuple(
        study_of(name, curve, low=LOW, cluster=test.week(), replicates=replicates)
        for name, curve in curves(train, test, rounds).items()
    )
    if figure is not None:
        draw(figure, test, studies)
    return studies


def draw(path: Path, test: Hours, studies: Sequence[Study]) -> None:
    """A week of forecasts of the last model, and all curves."""
    matplotlib = require("matplotlib.figure", extra="plots")
    sheet = matplotlib.Figure(figsize=(11.0, 7.0), layout="constrained", dpi=72)
    names = [study.model for study in studies]
    axes = sheet.subplot_mosaic([["week"] * len(names), names])
    plot(week_figure(studies[-1], test), axes["week"])
    for study in studies:
        points = operating_points(study, POINTS)
        plot([study.curve.drawn(model=study.model), points], axes[study.model])
        axes[study.model].set_title(study.model, loc="left")
    sheet.savefig(path)


def week_figure(study: Study, test: Hours, first: str = "2018-05-21") -> Figure:
    """Eight days of forecasts; the last is a holiday (Memorial Day)."""
    begin = np.datetime64(first, "h")
    rows = np.flatnonzero((test.hour >= begin) & (test.hour < begin + np.timedelta64(192, "h")))
    day = (test.hour[rows] - begin).astype(np.float64) / 24.0
    bands = study.curve.bands
    point, scale = (bands.y - bands.error)[rows], study.curve.at(miss_rate=POINTS[0]).knob
    layers = (
        Layer(
            mark=Mark.BAND,
            x=day,
            lower=point - scale * bands.below[rows],
            upper=point + scale * bands.above[rows],
            series=f"band at miss rate {POINTS[0]:g}",
        ),
        Layer(mark=Mark.LINE, x=day, y=point, series="prediction"),
        Layer(mark=Mark.LINE, x=day, y=bands.y[rows], series="observed", colour=1),
    )
    return Figure(
        name="week",
        question="Where are the bands wide?",
        title=study.model,
        x=Axis(title=f"Days since {first}"),
        y=Axis(title="Vehicles an hour"),
        layers=layers,
    )


def command() -> None:
    """Read the command line, print the tables, draw the figure."""
    parser = argparse.ArgumentParser(description="The characteristics curve of traffic forecasts.")
    parser.add_argument("folder", type=Path, help="where the data lie")
    parser.add_argument("--every", type=int, default=1, help="train on each so many-th hour alone")
    parser.add_argument("--rounds", type=int, default=100, help="trees of each model")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure")
    asked = parser.parse_args()
    for study in main(asked.folder, every=asked.every, rounds=asked.rounds, figure=asked.plot):
        print(study.table(POINTS))


if __name__ == "__main__":
    command()
