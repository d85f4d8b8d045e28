"""
Follow a model from its first day
=================================

A model that passed its test is used for a year, and somebody looks at it every day. A test at 5 %
that is repeated each day fails sooner or later by chance. A watch does not: it may be looked at as
often as one likes. This page follows a model of bicycle rentals through fifteen months.

The data are hourly rentals in Washington, 2011 and 2012 (UCI 275). If they are not on the machine,
a simulated series stands in.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from howsure.watch import Watch
from howsure_studies.tasks import DataNotFoundError, find_folder

# %%
# The data
# --------

try:
    folder = find_folder("bike-hours", "shift_bike_hour")
    (path,) = (folder / name for name in ("data.csv.gz", "hour.csv") if (folder / name).exists())
    table = csv.read_csv(path)
    date = table["dteday"].to_numpy()
    day = np.cumsum(np.r_[False, date[1:] != date[:-1]])
    names = ("hr", "workingday", "temp", "hum", "windspeed", "weathersit")
    x = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
    y = table["cnt"].to_numpy().astype(float)
except DataNotFoundError:
    rng = np.random.default_rng(0)
    day, hour = np.divmod(np.arange(731 * 24), 24)
    working = (day % 7 < 5).astype(float)
    shape = 1 - np.cos(2 * np.pi * (hour - 4) / 24) + working * np.isin(hour, (8, 17))
    mild = -np.cos(2 * np.pi * day / 365) + 0.3 * rng.normal(size=731)[day]
    x = np.column_stack([hour, working, mild])
    y = (60 + 20 * mild) * (1 + day / 365) * shape * rng.gamma(20, 1 / 20, size=len(day))

date = np.datetime64("2011-01-01") + day
learn, last = date < np.datetime64("2011-10-01"), date >= np.datetime64("2011-10-01")
print(f"{learn.sum():,} hours to learn from, {last.sum():,} hours to come")

# %%
# The model and its promise
# -------------------------
#
# Boosted trees learn the 5 %, 50 % and 95 % quantile from nine months. The promise is frozen on the
# same months, each day predicted by trees that did not see it.

levels = (0.05, 0.5, 0.95)
folds = GroupKFold(5)
held_out, to_come = [], []
for level in levels:
    trees = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
    held_out.append(cross_val_predict(trees, x[learn], y[learn], groups=day[learn], cv=folds))
    to_come.append(trees.fit(x[learn], y[learn]).predict(x[last]))


def rows(which, quantiles):
    """A table: the day, y and the quantiles."""
    low, middle, high = np.sort(quantiles, axis=0)
    made = {"day": date[which], "y": y[which]}
    return {**made, "q0.05": low, "q0.5": middle, "q0.95": high}


place = tempfile.mkdtemp()
watch = Watch.init(f"{place}/rentals.watch", rows(learn, held_out), time="day")
print(watch.promise.sentence)

# %%
# Day by day
# ----------
#
# Each evening the rows of the day are added, and the ledger is looked at.

new = rows(last, to_come)
days = np.unique(new["day"])
reports = {}
for today in days:
    chosen = new["day"] == today
    watch.add({name: values[chosen] for name, values in new.items()})
    reports[today] = watch.show()
    if not reports[today].kept:
        break
print(f"{len(reports)} days: {reports[today].sentence}")

# %%
# The evidence of each day, and the line at which the promise is proven broken:

report = reports[today]
figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.step(days[: len(report.curve)], report.curve / np.log(10), where="post")
axes.axhline(np.log10(20), color="grey", linestyle="--")
axes.set(ylabel="Evidence (log₁₀)")
plt.show()

# %%
# What was decided
# ----------------

if report.kept:
    print("The model stays.")
else:
    print("The model is recalibrated, or learns again. A new promise needs a new ledger.")
    for broken in report.broken:
        print("-", broken.sentence)

# %%
# Where to go next:
#
# - the same on the command line, with y that comes late: :doc:`how do I follow a model
#   </how-to/watch>`;
# - how often such a watch errs: :doc:`measured </watch>`;
# - correcting tomorrow's rows: :doc:`tomorrow's rows <plot_6_tomorrows_rows>`.
