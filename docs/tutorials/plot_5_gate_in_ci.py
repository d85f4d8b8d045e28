"""
A gate in CI
============

A model is trained anew every week. Before it is released, a pipeline asks: do its intervals still
cover? This page writes the limits down, lets ``howsure check`` answer by its exit status, and does
the same in a test.

The data are the 442 patients of scikit-learn's ``load_diabetes``: y is the progress of the disease
in a year.
"""

from contextlib import chdir
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import csv
from scipy.stats import beta
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold

import howsure
from howsure.cli.main import app
from howsure.testing import assert_covers, assert_holds

# %%
# The model's predictions
# -----------------------
#
# Each patient is predicted by a model that was fitted to the others, in ten folds. So all 442 rows
# can be judged.

data = load_diabetes()
X, y = data.data, data.target
mean, sd = np.empty_like(y), np.empty_like(y)
for train, test in KFold(10, shuffle=True, random_state=0).split(X):
    model = BayesianRidge().fit(X[train], y[train])
    mean[test], sd[test] = model.predict(X[test], return_std=True)
sex = np.where(data.data[:, 1] > 0, "a", "b")

folder = Path(mkdtemp())
table = pa.table({"y": y, "mean": mean, "sd": sd, "sex": sex})
csv.write_csv(table, folder / "predictions.csv")

# %%
# The limits
# ----------
#
# They stand in a file beside the code, so that a change of a limit is reviewed like any other.
# Each limit is a number that somebody would defend: below it, the release does harm.

(folder / "limits.toml").write_text(
    """
fail_on = "bad"                 # a fault of the verdict fails, too
findings = ["coverage"]         # and only this one is judged
limits = [
    {measure = "coverage", min = 0.85},
    {measure = "coverage", min = 0.80, by = ["sex"]},
    {measure = "crps", max = 35},
]
"""
)

# %%
# The gate
# --------
#
# A pipeline runs the line after ``$`` and goes on only if the exit status is 0.


def howsure_check(*words):
    """Run the command in the folder, as a terminal would; its exit status."""
    print("$ howsure check", *words)
    with chdir(folder):
        try:
            app(["check", *words])
        except SystemExit as done:
            return done.code


status = howsure_check("predictions.csv", "--limits", "limits.toml")
assert status == 0

# %%
# Each limit is one of three things. It is held (✓) if the rows prove it, at 95 %. It fails (✗) only
# if they prove the contrary, and is inconclusive (?) in between. Inconclusive limits pass, so small
# tables do not cry wolf.
#
# The other half of the bargain: ``--undecided fail`` lets inconclusive limits fail.

status = howsure_check("predictions.csv", "--min-coverage", "0.9")
assert status == 0
status = howsure_check("predictions.csv", "--min-coverage", "0.9", "--undecided", "fail")
assert status == 1

# %%
# A release that must not pass
# ----------------------------
#
# Somebody divides the sd by two, perhaps by mistaking it for a width.

csv.write_csv(table.set_column(2, "sd", pa.array(sd / 2)), folder / "narrow.csv")
status = howsure_check("narrow.csv", "--limits", "limits.toml")
assert status == 1

# %%
# A fault within the limits
# -------------------------
#
# The limits above hold in both groups. Yet the verdict can prove that the groups differ:

status = howsure_check(
    "predictions.csv", "--groups", "sex", "--findings", "groups", "--fail-on", "bad"
)
assert status == 1

# %%
# Whether that stops a release is a decision, and it belongs in the file of limits. Here the limit
# of 80 % in each group was what mattered, so the finding is left out of the gate and noted.
#
# Exit status 1 says that a limit failed. Status 2 would say that no answer is possible, such as a
# column that is not there: a gate should stop then, too.
#
# The same in a test
# ------------------
#
# Where the predictions are at hand as arrays, no file is needed.


def test_intervals_cover():
    """Overall, and in each sex."""
    prediction = howsure.Distribution.normal(mean, sd)
    assert_covers(y, prediction, coverage=0.9, min=0.8, by={"sex": sex})


def test_the_verdict_has_no_fault_of_coverage():
    """The finding on coverage is not bad, and the CRPS keeps its limit."""
    prediction = howsure.Distribution.normal(mean, sd)
    limits = [{"measure": "crps", "max": 35}]
    assert_holds(y, prediction, limits=limits, findings=["coverage"], fail_on="bad")


test_intervals_cover()
test_the_verdict_has_no_fault_of_coverage()

try:
    assert_covers(y, howsure.Distribution.normal(mean, sd / 2), coverage=0.9, min=0.8)
except AssertionError as error:
    print(error)
else:
    raise RuntimeError("half an sd must fail")

# %%
# How many rows does a gate need?
# -------------------------------
#
# A gate that never fails is no gate. With 442 rows, this is how far coverage must fall before a
# limit of 85 % is proven broken:

broken = 376  # 85 % of 442
while True:
    broken -= 1
    inside = np.arange(442) < broken
    made = np.where(inside, 0.0, 9.0)
    try:
        assert_covers(made, howsure.Intervals(np.full(442, -1.0), np.ones(442), 0.9), min=0.85)
    except AssertionError:
        break
print(f"{broken} of 442 rows inside: {broken / 442:.1%}")

# %%
# The same at other sizes, by the one-sided bound of Clopper and Pearson. Between the curves the
# limit is inconclusive.


def proven(n):
    """The largest number of rows inside that breaks the limit, and the least that keeps it."""
    inside = np.arange(n)
    most = inside[beta.ppf(0.95, inside + 1, n - inside) < 0.85].max()
    return most, inside[1:][beta.ppf(0.05, inside[1:], n - inside[1:] + 1) >= 0.85].min()


assert proven(442)[0] == broken
sizes = np.unique(np.geomspace(50, 5000, 40).astype(int))
most, least = 100 * np.transpose([proven(n) for n in sizes]) / sizes
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.fill_between(sizes, least, 100, alpha=0.3, color="tab:green", label="kept, proven")
axes.fill_between(sizes, most, least, alpha=0.15, color="grey", label="inconclusive")
axes.fill_between(sizes, 60, most, alpha=0.3, color="tab:red", label="broken, proven")
axes.axhline(85, linestyle="--", color="grey")
axes.set(xscale="log", ylim=(70, 100), xlabel="rows", ylabel="empirical coverage in %")
axes.set_title("What a limit of 85 % answers")
axes.legend(loc="lower right")
plt.show()

# %%
# What was decided
# ----------------
#
# The model is released: all limits hold. That coverage differs between the groups goes into the
# notes of the release, with the command that showed it. The limits go into version control, the
# command into the workflow. ``--junit`` and ``--github`` let the pipeline show each limit by name.
#
# Where to go next:
#
# - :doc:`the page on check </check>` has every option, and a complete workflow;
# - limits on drift and on the worst group take one flag each: ``--max-drift``, ``--min
#   worst_group=0.8``;
# - what to do when the gate closes: :doc:`my intervals are too narrow
#   </how-to/intervals-too-narrow>`.
