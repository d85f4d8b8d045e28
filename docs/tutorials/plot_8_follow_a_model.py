"""
Monitor a model from its first day
==================================

A model that passed its test is used for a year, and checked every day. A test at 5 % that is
repeated each day fails sooner or later by chance. A watch does not: you may check it as often as
you like. This page monitors a model of bicycle rentals for fifteen months: before labels arrive,
with labels, and after corrections.

The data are hourly rentals in Washington, 2011 and 2012 (UCI 275). If they are not on the machine,
a simulated series is used instead.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

from howsure.core.errors import InputError
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
    names = ("hour", "working", "mild")
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
    """A table: the day, the hours of it by number, the inputs, y and its quantiles."""
    low, middle, high = np.sort(quantiles, axis=0)
    inputs = dict(zip(names, x[which].T, strict=True))
    made = {"day": date[which], "id": np.flatnonzero(which), **inputs, "y": y[which]}
    return {**made, "q0.05": low, "q0.5": middle, "q0.95": high}


def chosen(table, some):
    """Some rows of a table."""
    return {name: values[some] for name, values in table.items()}


place = tempfile.mkdtemp()
reference = rows(learn, held_out)
watch = Watch.init(
    f"{place}/rentals.watch", reference, time="day", row_id="id", features=names, mature=1
)
print(watch.promise.sentence)

# %%
# The first morning
# -----------------
#
# The predictions of the day have no y yet. Their inputs predict their coverage, if y given its
# inputs has not changed.

new = rows(last, to_come)
days = np.unique(new["day"])
first = chosen(new, new["day"] == days[0])
watch.add({name: values for name, values in first.items() if name != "y"})
print(watch.show().expected.sentence)

# %%
# Day by day
# ----------
#
# Each evening, the rows of the day are added with y, and the ledger is checked.

for today in days:
    watch.add(chosen(new, new["day"] == today))
    report = watch.show()
    if not report.kept:
        break
print(f"{np.searchsorted(days, today) + 1} days: {report.sentence}")

# %%
# The evidence of each day, and the line above which a fault is significant:

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.step(report.booked - report.booked[0], report.curve / np.log(10), where="post")
axes.axhline(np.log10(20), color="grey", linestyle="--")
axes.set(xlabel="Days", ylabel="Evidence (log₁₀)")
plt.show()

# %%
# Corrected, and corrected again
# ------------------------------
#
# A correction is fitted to the rows since the change, and monitoring restarts. If no recalibration
# gives a significant improvement yet, we try again a week later, until the end of 2012.

patience, broke = 0, today
for today in days:
    if today <= broke:
        continue
    if not report.kept and patience == 0:
        try:
            print("-", watch.correct(chosen(new, new["day"] < today)).sentence)
        except InputError:
            patience = 7
    patience = max(patience - 1, 0)
    watch.add(chosen(new, new["day"] == today))
    kept, report = report.kept, watch.show()
    if kept and not report.kept:
        print("-", report.sentence)

# %%
# What was decided
# ----------------
#
# The corrections help: the ledger has the score with and without the last of them, and the
# coverage of each day.

done = np.concatenate([part.covered for part in (*report.past, report)])
low, high = new["q0.05"], new["q0.95"]
plain = np.mean((low <= new["y"]) & (new["y"] <= high))
print(f"coverage of the 90 % intervals: {plain:.0%} uncorrected, {done.mean():.0%} corrected")
if report.gain is not None:
    print(f"score of the last correction: {report.gain[0]:.0%} lower than without it")

# %%
# Where to go next:
#
# - the same on the command line, with late labels: :doc:`how do I monitor a model
#   </how-to/watch>`;
# - the error rates of a watch: :doc:`measured </watch>`;
# - correcting tomorrow's rows: :doc:`tomorrow's rows <plot_6_tomorrows_rows>`.
