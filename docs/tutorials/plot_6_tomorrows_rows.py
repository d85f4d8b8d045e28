"""
Recalibrating tomorrow's rows
=============================

Yesterday's outcomes are known, tomorrow's are not. A correction that is learnt from the first
serves the second, for as long as the world stays as it was. This page learns one correction and
keeps it in a file. Then it compares three habits over a year: correct nothing, correct once, and
learn anew each month.

The data are hourly rentals of bicycles in Washington, 2011 and 2012 (UCI 275). Demand grew by two
thirds. If the data are not on the machine, a simulated series that grows stands in.
"""

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor

import howsure
from howsure_studies.tasks import DataNotFoundError, find_folder

# %%
# The data
# --------

try:
    table = csv.read_csv(find_folder("bike-hours", "shift_bike_hour") / "data.csv.gz")
    hour = table["hr"].to_numpy()
    dates = [f"20{d[6:]}-{d[3:5]}-{d[:2]}" for d in table["dteday"].to_pylist()]
    time = np.array(dates, dtype="datetime64[h]") + hour
    weather = [table[name].to_numpy() for name in ("workingday", "temp", "hum", "windspeed")]
    y = table["cnt"].to_numpy().astype(float)
except DataNotFoundError:
    rng = np.random.default_rng(0)
    time = np.arange("2011-01-01", "2013-01-01", dtype="datetime64[h]")
    hour = np.arange(len(time)) % 24
    warm = 0.5 - 0.3 * np.cos(2 * np.pi * np.arange(len(time)) / 8766)
    weather = [warm, rng.uniform(size=len(time))]
    level = (0.7 + 0.6 * np.arange(len(time)) / len(time)) * (1 - np.cos(2 * np.pi * hour / 24))
    y = level * 200 * warm * rng.gamma(8, 1 / 8, size=len(time))

X = np.column_stack([hour, *weather])
month = time.astype("datetime64[M]")
print(f"{len(y):,} hours from {time[0]} to {time[-1]}")
for year in ("2011", "2012"):
    print(year, f"{y[time.astype('datetime64[Y]') == np.datetime64(year)].mean():.0f} an hour")

# %%
# The model
# ---------
#
# It is trained once, on January to September of 2011, and states an interval of 90 % for every
# later hour.

train = month < np.datetime64("2011-10")
ends = [
    HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=60, random_state=0)
    .fit(X[train], y[train])
    .predict(X)
    for level in (0.05, 0.95)
]
lower, upper = np.minimum(*ends), np.maximum(*ends)


def rows(chosen):
    """Predictions of these rows, with y and time, as howsure reads them."""
    return {
        "y": y[chosen],
        "time": time[chosen],
        "lower_90": lower[chosen],
        "upper_90": upper[chosen],
    }


# %%
# Learn once, and keep it
# -----------------------
#
# October to December of 2011 were not seen in training, and their outcomes are known. They teach a
# correction of each end, by conformal prediction. It is a small file that can be read in any later
# process.

autumn = (month >= np.datetime64("2011-10")) & (month < np.datetime64("2012-01"))
january = month == np.datetime64("2012-01")
learnt = howsure.recalibrate(rows(january), rows(autumn), method="asymmetric")
print(learnt)

kept = Path(mkdtemp()) / "correction.json"
learnt.fitted.save(kept)
print(f"kept in {kept.stat().st_size:,} bytes")

# %%
# Tomorrow's rows have no y. They are corrected by the file alone:

tomorrow = {name: column for name, column in rows(january).items() if name != "y"}
again = howsure.recalibrate(tomorrow, kept)
assert np.array_equal(
    again.predictions["recalibrated_lower_90"], learnt.predictions["recalibrated_lower_90"]
)
print(again.table.column_names)

# %%
# At the command line:
#
# .. code-block:: console
#
#    $ howsure recalibrate new.csv --calibration autumn.csv --keep correction.json -o out.csv
#    $ howsure recalibrate tomorrow.csv --calibration correction.json -o out.csv
#
# The guarantee supposes that tomorrow's rows are exchangeable with those that taught. Demand that
# grows breaks it.
#
# Three habits
# ------------
#
# Each month of 2012 is predicted with what was known on its first day. The third habit learns from
# the two months before.

habits = {"nothing": [], "once": [], "each month": []}
months = np.arange("2012-01", "2013-01", dtype="datetime64[M]")
for this in months:
    new = rows(month == this)
    recent = (month >= this - 2) & (month < this)
    habits["nothing"].append((new["lower_90"], new["upper_90"]))
    for name, source in (("once", kept), ("each month", rows(recent))):
        way = {} if name == "once" else {"method": "asymmetric"}
        made = howsure.recalibrate(new, source, **way).predictions
        habits[name].append((made["recalibrated_lower_90"], made["recalibrated_upper_90"]))

year = month >= np.datetime64("2012-01")
axes = plt.subplots(figsize=(7, 4), layout="constrained")[1]
results = {}
for name, parts in habits.items():
    low, high = (np.concatenate(end) for end in zip(*parts, strict=True))
    results[name] = howsure.assess(
        y[year], (low, high), coverage=0.9, time=time[year], options=howsure.Options(trials=False)
    )
    inside = (low <= y[year]) & (y[year] <= high)
    axes.plot(months, [inside[month[year] == this].mean() for this in months], "o-", label=name)
axes.axhline(0.9, color="grey", linestyle="--", label="nominal")
axes.set(ylabel="Empirical coverage", xlabel="Month", title="Coverage of the 90 % intervals")
axes.legend()
plt.show()

# %%
# The year as a whole
# -------------------
#
# The interval score counts the width, and a price for each miss. Lower is better.

for name, result in results.items():
    covered = result.record("empirical_coverage")
    print(
        f"{name:10} covers {covered.value:.1%} ({covered.lower:.1%} to {covered.upper:.1%})", end=""
    )
    print(f", interval score {result.value('interval_score'):.0f}")

# %%
# What was decided
# ----------------

scores = {name: result.value("interval_score") for name, result in results.items()}
best = min(scores, key=scores.get)
worst = max(scores, key=scores.get)
saved = 1 - scores[best] / scores[worst]
print(f"Best habit: {best!r}. It saves {saved:.0%} of the score of {worst!r}.")
for finding in results[best].findings:
    if finding.id in ("coverage", "drift"):
        print(f"{finding.state}: {finding.sentence}")

# %%
# Where to go next:
#
# - of :doc:`recalibrate </recalibrate>`, ``--since`` leaves out old rows, and ``--method recent``
#   lets them count less;
# - ``howsure check --max-drift 0.05 --time day`` closes a gate when coverage moves;
# - a correction moves the ends of intervals. A model that sees the growth would serve better
#   still.
