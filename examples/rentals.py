"""Make rentals.csv: bicycle rentals by the hour, with 90 % intervals, on days not trained on.

python examples/rentals.py

The data are "Bike Sharing" of UCI (Fanaee-T and Gama, CC BY 4.0), as `howsure data get bike-hours`
fetches them. Two boosted models of scikit-learn learn the 5 % and the 95 % quantile on four fifths
of the days, and predict the last fifth; each fifth is the last once. They are not told which days
are off. Of each day two hours are kept, so that rows hardly depend on each other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold

from howsure_studies.tasks import find_folder

FILE = Path(__file__).with_suffix(".csv")
INPUTS = ("hr", "mnth", "yr", "weathersit", "temp", "hum", "windspeed")


def make_table(seed: int = 0) -> pa.Table:
    """Two hours of each day: the hour, the kind of day, y, and the ends of a 90 % interval."""
    folder = find_folder("bike-hours", "shift_bike_hour")
    (path,) = (folder / name for name in ("data.csv.gz", "hour.csv") if (folder / name).exists())
    hours = csv.read_csv(path)
    x = np.column_stack([hours[name].to_numpy() for name in INPUTS]).astype(float)
    y = hours["cnt"].to_numpy()
    date = hours["dteday"].to_numpy()
    day = np.cumsum(np.r_[False, date[1:] != date[:-1]])

    ends = np.empty((2, len(y)))
    for train, test in GroupKFold(5, shuffle=True, random_state=seed).split(x, groups=day):
        for end, level in zip(ends, (0.05, 0.95), strict=True):
            model = HistGradientBoostingRegressor(
                loss="quantile", quantile=level, random_state=seed
            )
            end[test] = model.fit(x[train], y[train]).predict(x[test])

    rng = np.random.default_rng(seed)
    kept = [rng.permutation(np.flatnonzero(day == each))[:2] for each in range(day.max() + 1)]
    rows = np.sort(np.concatenate(kept))
    lower, upper = ends[:, rows].round(1)
    return pa.table(
        {
            "hour": x[rows, 0].astype(int),
            "day": np.where(hours["workingday"].to_numpy()[rows] == 1, "working", "off"),
            "y": y[rows],
            "lower_90": lower,
            "upper_90": upper,
        }
    )


if __name__ == "__main__":
    csv.write_csv(make_table(), FILE, csv.WriteOptions(quoting_style="none"))
