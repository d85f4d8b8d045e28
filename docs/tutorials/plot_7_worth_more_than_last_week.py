"""
Is a forecast worth more than last week?
========================================

A forecast can beat the distribution of y and still be worth less than what anybody knows: the hour
of the day, or what happened a week ago. This page asks a model of bicycle rentals three questions.
Does it know more than the distribution of y? More than that of the same hour? More than last week?

The data are hourly rentals in Washington, 2011 and 2012 (UCI 275). If they are not on the machine,
a simulated series stands in.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyarrow import csv
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, cross_val_predict

import howsure
from howsure_studies.tasks import DataNotFoundError, find_folder

# %%
# The data
# --------

try:
    folder = find_folder("bike-hours", "shift_bike_hour")
    (path,) = (folder / name for name in ("data.csv.gz", "hour.csv") if (folder / name).exists())
    table = csv.read_csv(path)
    date, hour = table["dteday"].to_numpy(), table["hr"].to_numpy()
    day = np.cumsum(np.r_[False, date[1:] != date[:-1]])
    names = ("hr", "workingday", "season", "temp", "hum", "windspeed", "weathersit")
    x = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
    y = table["cnt"].to_numpy().astype(float)
except DataNotFoundError:
    rng = np.random.default_rng(0)
    day, hour = np.divmod(np.arange(731 * 24), 24)
    working = (day % 7 < 5).astype(float)
    shape = 1 - np.cos(2 * np.pi * (hour - 4) / 24) + working * np.isin(hour, (8, 17))
    mild = -np.cos(2 * np.pi * day / 365) + 0.3 * rng.normal(size=731)[day]
    x = np.column_stack([hour, working, day // 91 % 4, mild])
    y = (60 + 20 * mild) * (1 + day / 365) * shape * rng.gamma(20, 1 / 20, size=len(day))

time = np.datetime64("2011-01-01T00", "h") + 24 * day + hour
train = time < np.datetime64("2012-01-01")
test = (time >= np.datetime64("2012-01-01")) & (time < np.datetime64("2012-04-01"))
print(f"train {train.sum():,} hours of 2011, test {test.sum():,} hours of early 2012")

# %%
# A model
# -------
#
# Boosted trees learn the mean from the hour, the kind of day, the season and the weather. What they
# missed on days that they had not seen is added, as 50 samples for each hour. Nothing tells them
# that more people rent each year.

model = HistGradientBoostingRegressor(random_state=0)
folds = GroupKFold(5)
missed = y[train] - cross_val_predict(model, x[train], y[train], groups=day[train], cv=folds)
mean = model.fit(x[train], y[train]).predict(x[test])
forecast = howsure.Samples(mean[:, None] + np.quantile(missed, (np.arange(50) + 0.5) / 50))

# %%
# More than the distribution of y?
# --------------------------------
#
# Skill is the share by which the mean score is lower than that of a reference. The first reference
# states the distribution of y for every hour.

groups = {"hour": hour[test]}
rows = {"groups": groups, "time": time[test]}
result = howsure.assess(y[test], forecast, **rows, options=howsure.Options(trials=False))


def show(name):
    """One skill, with its interval, in per cent."""
    record = result.record(name)
    span = f"{100 * record.lower:.0f} to {100 * record.upper:.0f}"
    print(f"{name:17} {100 * record.value:4.0f} % ({span})")
    return record


everything = show("crps_skill")

# %%
# More than the same hour's?
# --------------------------
#
# Rentals at five in the morning are few, and anybody knows it. The second reference states the
# distribution of y of the same hour. It is that of these very weeks, so it is known in hindsight
# alone.

same_hour = show("crps_skill_within")

# %%
# More than last week?
# --------------------
#
# The third reference was known at the time. A forecast 24 hours ahead may use the same hour a week
# before. To it are added the changes of such a week in the past. howsure makes this forecast if it
# is told the lead. Then the finding on skill is judged against it, too.

options = howsure.Options(lead=24, trials=False)
result = howsure.assess(y[test], forecast, **rows, options=options)
last_week = show("seasonal_skill")
(finding,) = [each for each in result.findings if each.id == "skill"]
print(f"{finding.state}: {finding.sentence}")

# %%
# The three side by side, with their intervals:

records = {"all y": everything, "same hour": same_hour, "a week before": last_week}
values = np.array([100 * each.value for each in records.values()])
ends = np.array([(100 * each.lower, 100 * each.upper) for each in records.values()])
figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
axes.errorbar(values, list(records), xerr=np.abs(ends - values[:, None]).T, fmt="o", capsize=4)
axes.axvline(0, color="grey", linewidth=1)
axes.set(xlabel="Skill (%)", ylim=(2.5, -0.5))
plt.show()

# %%
# What was decided
# ----------------

if last_week.upper < 0:
    print("The model of 2011 is retired: last week's rentals say more about 2012.")
else:
    print("The model stays: it is not proven to be worse than last week's rentals.")

# %%
# Where to go next:
#
# - in a pipeline: ``howsure check FILE --time when --lead 24 --baseline seasonal --min-skill 0.1``;
# - what skill is and is not: :doc:`calibrated is not useful
#   </explanations/calibrated-is-not-useful>`;
# - a model that was right and is no longer: :doc:`a probabilistic forecast in time
#   <plot_2_forecast_in_time>`.
