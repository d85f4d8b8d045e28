"""
A model of house prices
=======================

A boosted model predicts the value of a house with an interval around it. Can a buyer rely on that
interval? This page fits the model, lets howsure judge it, follows the advice, and judges again.

The data are 14,089 districts of California near the coast (census of 1990). If they are not on the
machine, the 442 patients of scikit-learn's ``load_diabetes`` stand in.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

import howsure
from howsure_studies.tasks import DataNotFoundError, shift_task

# %%
# The data
# --------
#
# Rows are divided into three parts. The model learns from the first. The second is held out, to
# correct the model later. The third is the test: no decision is taken on it before the end.

try:
    task = shift_task("california")
    parts = [task.train, task.val, task.part("home")]
    X, y = [part.x for part in parts], [part.y / 1000 for part in parts]
    columns, by, unit = list(task.columns), "median_income", "thousand dollars"
except DataNotFoundError:
    table = load_diabetes()
    cuts = [200, 320]
    X, y = np.split(table.data, cuts), np.split(table.target, cuts)
    columns, by, unit = list(table.feature_names), "bmi", "points"

print(f"train {len(y[0]):,}, held out {len(y[1]):,}, test {len(y[2]):,} rows; y in {unit}")

# %%
# The model
# ---------
#
# One gradient boosting model for each of five quantiles. Together, the quantiles at 5 % and 95 %
# are a 90 % interval.

levels = (0.05, 0.25, 0.5, 0.75, 0.95)
models = [
    HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=80, random_state=0)
    for level in levels
]
for model in models:
    model.fit(X[0], y[0])


def predict(x):
    """Quantiles of each row. Models that are fitted one by one may cross, so they are sorted."""
    columns = np.column_stack([model.predict(x) for model in models])
    return howsure.Quantiles(levels, columns, crossing="sort")


# %%
# The verdict
# -----------
#
# ``assess`` takes what happened and what was predicted. Features (``x``) let it search for regions
# where coverage fails; groups let it compare them. Groups here are thirds of the rows, by one
# feature.

third = np.quantile(X[0][:, columns.index(by)], [1 / 3, 2 / 3])


def assessed(prediction, part):
    """The verdict on a part of the rows, with features and groups."""
    band = np.searchsorted(third, X[part][:, columns.index(by)])
    return howsure.assess(
        y[part],
        prediction,
        features=dict(zip(columns, X[part].T, strict=True)),
        groups={by: np.array(["low", "middle", "high"])[band]},
    )


before = assessed(predict(X[2]), 2)
for finding in before.findings:
    print(f"{finding.state:11} {finding.sentence}")

# %%
# Findings come worst first. ``bad`` means: proven beyond chance, and large enough to matter.
# ``caution`` is a suspicion, ``good`` is evidence that all is well, and ``undecided`` asks for more
# rows.
#
# Each number carries its error. This is the empirical coverage of the 90 % interval:

record = before.record("empirical_coverage", coverage=0.9)
print(f"{record.value:.1%} of {record.n:,.0f} rows ({record.lower:.1%} to {record.upper:.1%})")

# %%
# The figure shows all five levels. A point on the diagonal is a stated probability that came true;
# the band is what chance allows.

before.plot("calibration")
plt.show()

# %%
# The next step
# -------------
#
# howsure has tried several ways to recalibrate, each on held-out fifths of the rows it was shown.
# It advises one only if that one gained beyond chance.

print(before.advice.sentence if before.advice else "No advice")

# %%
# The test rows must not teach the model. So we ask the same question of the held-out part, and let
# ``method="best"`` choose there. If nothing is proven to gain, ``best`` changes nothing.

held_out = howsure.EvalSet.checked(y[1], predict(X[1]))
new = howsure.EvalSet.checked(y[2], predict(X[2]))
corrected = howsure.recalibrate(new, held_out, method="best")
print(corrected)

# %%
# Judged again
# ------------

after = assessed(corrected.evalset.predictions, 2)
for name in ("empirical_coverage", "mean_width", "crps"):
    old, now = (r.value(name) for r in (before, after))
    print(f"{name:20} {old:8.4g} → {now:8.4g}")

# %%
# What was decided
# ----------------

old, now = (r.value("empirical_coverage") for r in (before, after))
cost = after.value("mean_width") / before.value("mean_width") - 1
closer = abs(now - 0.9) < abs(old - 0.9)
print(f"Use the {'recalibrated' if closer else 'original'} quantiles.")
print(f"Coverage went from {old:.1%} to {now:.1%}; widths changed by {cost:+.0%}.")
still = [finding.sentence for finding in after.findings if finding.state == "bad"]
print("Still bad:", *(still or ["nothing"]), sep="\n")

# %%
# Where to go next:
#
# - a fault in one group or region needs a correction of its own: ``method="group"`` or
#   ``"inputs"``, on :doc:`the page on recalibration </recalibrate>`;
# - a model that must keep working needs a gate: :doc:`a gate in CI <plot_5_gate_in_ci>`;
# - houses inland are another matter: :doc:`a model under shift <plot_4_under_shift>`.
