"""
A probabilistic forecast in time
================================

A forecast states a mean and a standard deviation for every hour. Hours that follow each other err
alike. So a year of hours says less than its number of rows suggests, and a forecast that is right
in spring may be wrong in autumn. This page shows what changes when howsure knows the time of each
row.

The data are hourly counts of cars on a motorway near Minneapolis, 2012 to 2016 (UCI 492). If they
are not on the machine, a simulated series stands in.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv

import howsure
from howsure_studies.tasks import DataNotFoundError, find_folder

# %%
# The data
# --------

try:
    table = csv.read_csv(find_folder("traffic", "metro_traffic") / "data.csv.gz")
    time, first = np.unique(
        np.array(table["date_time"].to_pylist(), dtype="datetime64[h]"), return_index=True
    )
    y = table["traffic_volume"].to_numpy().astype(float)[first]
except DataNotFoundError:
    rng = np.random.default_rng(0)
    time = np.arange("2012-10-01", "2017-01-01", dtype="datetime64[h]")
    error = np.zeros(len(time))
    for i, shock in enumerate(rng.normal(scale=250, size=len(time))):
        error[i] = 0.8 * error[i - 1] + shock
    hour = np.arange(len(time)) % 24
    y = 3000 - 2000 * np.cos(2 * np.pi * hour / 24) + (0.5 + hour / 24) * error

train = time < np.datetime64("2015-01-01")
test = (time >= np.datetime64("2016-01-01")) & (time < np.datetime64("2017-01-01"))
print(f"train {train.sum():,} hours, test {test.sum():,} hours of 2016")

# %%
# Two forecasts
# -------------
#
# The first is the climate of the week: the mean and the sd of each of its 168 hours, learnt from
# the training years. The second also looks back one hour. If there were more cars than usual, it
# expects more.

slot = time.astype("int64") % 168


def by_slot(values, rows, reduce):
    """One number for each hour of the week."""
    return np.array([reduce(values[rows & (slot == each)]) for each in range(168)])[slot]


climate = by_slot(y, train, np.mean)
climate_sd = by_slot(y, train, np.std)

surprise = (y - climate) / climate_sd
follows = np.diff(time, prepend=time[0]) == np.timedelta64(1, "h")
last = np.where(follows, np.roll(surprise, 1), 0.0)
slope = (last * surprise)[train].sum() / (last**2)[train].sum()
adapted = climate + slope * last * climate_sd
adapted_sd = by_slot(y - adapted, train, np.std)

forecasts = {
    "climate": howsure.Distribution.normal(climate[test], climate_sd[test]),
    "last hour": howsure.Distribution.normal(adapted[test], adapted_sd[test]),
}
print(f"a surprise of 1 sd is followed by one of {slope:.2f} sd on average")

# %%
# Rows that depend
# ----------------
#
# First without the time of the rows, then with it. The coverage is the same number. Its interval
# is not: correlated rows count as fewer.

widths = []
for known in ({}, {"time": time[test]}):
    result = howsure.assess(
        y[test], forecasts["climate"], **known, options=howsure.Options(trials=False)
    )
    record = result.record("empirical_coverage")
    print(f"{'with time' if known else 'without':10}", end="")
    print(f"{record.value:.1%} ({record.lower:.1%} to {record.upper:.1%})")
    widths.append(record.upper - record.lower)
assert widths[1] > widths[0]
(told,) = [finding.sentence for finding in result.findings if finding.id == "dependence"]
print(told)

# %%
# Coverage through the year
# -------------------------
#
# The verdict on a dated table holds a finding on drift: does coverage change over time? The figure
# shows coverage in windows of time.

(told,) = [finding for finding in result.findings if finding.id == "drift"]
print(f"{told.state}: {told.sentence}")
result.plot("rolling_coverage")
plt.show()

# %%
# Which forecast is better?
# -------------------------
#
# Both forecasts are judged on the same hours, by the CRPS. It is in cars per hour, and lower is
# better. The test compares the hours in pairs, and respects that they depend.

both = howsure.assess(y[test], forecasts, time=time[test])
for name in forecasts:
    score = both.record("crps", model=name)
    print(f"{name:10} CRPS {score.value:.0f} ({score.lower:.0f} to {score.upper:.0f})", end="")
    print(f", coverage {both.value('empirical_coverage', model=name):.1%}")
(told,) = [finding.sentence for finding in both.findings if finding.id == "comparison"]
print(told)

# %%
# What was decided
# ----------------

scores = {name: both.value("crps", model=name) for name in forecasts}
best = min(scores, key=scores.get)
print(f"Use the forecast called {best!r}. These findings on it are bad:")
for finding in both.findings:
    if finding.model == best and finding.state == "bad":
        print("-", finding.sentence)

# %%
# Where to go next:
#
# - name the time column in every command: ``howsure assess FILE --time when``;
# - rows that depend in groups, such as patients or stations, take ``--cluster`` instead;
# - a forecast whose errors change needs fresh held-out rows: :doc:`tomorrow's rows
#   <plot_6_tomorrows_rows>`.
