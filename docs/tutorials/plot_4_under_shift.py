"""
A model under shift
===================

A model learns from one place and is used in another. On rows like those it learnt from, its 90 %
intervals cover about 90 %. Elsewhere nobody promised anything. This page measures what is lost,
asks whether it could have been noticed without the outcome, and tries two remedies.

The data are districts of California (census of 1990): near the coast at first, then inland. If
they are not on the machine, patients of scikit-learn's ``load_diabetes`` stand in, first those of
low, then of high body mass.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import StandardScaler

import howsure
from howsure_studies.tasks import DataNotFoundError, shift_task

# %%
# The data
# --------
#
# ``train``, ``held_out`` and ``home`` come from one place, ``away`` from another.

try:
    task = shift_task("california")
    names = ("income", "age", "rooms", "people")

    def features(x):
        """Log income, age of the houses, rooms and people a household."""
        rooms, people, households = x[:, 3], x[:, 5], x[:, 6]
        return np.column_stack(
            (np.log(x[:, 7]), x[:, 2], rooms / households, np.log(people / households))
        )

    parts = (task.train, task.val, task.part("home"), task.part("shift"))
    rows = {
        name: (features(part.x)[::6], part.y[::6] / 1000)
        for name, part in zip(("train", "held_out", "home", "away"), parts, strict=True)
    }
    here, there = "near the coast", "inland"
except DataNotFoundError:
    table = load_diabetes()
    names = ("age", "bmi", "bp", "s5")
    X = table.data[:, [table.feature_names.index(name) for name in names]]
    near, far = np.flatnonzero(X[:, 1] < 0.02), np.flatnonzero(X[:, 1] >= 0.02)
    train, held_out, home = np.split(near, [120, 200])
    cuts = {"train": train, "held_out": held_out, "home": home, "away": far}
    rows = {name: (X[cut], table.target[cut]) for name, cut in cuts.items()}
    here, there = "of low body mass", "of high body mass"

for name, (x, _) in rows.items():
    print(f"{name:9} {len(x):,} rows {there if name == 'away' else here}")

# %%
# The model
# ---------
#
# A Bayesian linear regression gives a mean and an sd for each row.

scaler = StandardScaler().fit(rows["train"][0])
model = BayesianRidge().fit(scaler.transform(rows["train"][0]), rows["train"][1])


def predict(name):
    """The normal distributions that the model states for a part of the rows."""
    return howsure.Distribution.normal(
        *model.predict(scaler.transform(rows[name][0]), return_std=True)
    )


# %%
# What is lost
# ------------
#
# ``bias`` is the mean of the prediction less y.


def judged(name, prediction):
    """The verdict on a part of the rows; one line of it is printed."""
    result = howsure.assess(rows[name][1], prediction, options=howsure.Options(trials=False))
    record = result.record("empirical_coverage")
    print(f"coverage {record.value:.1%} ({record.lower:.1%} to {record.upper:.1%})", end=", ")
    print(f"CRPS {result.value('crps'):.1f}, bias {result.value('bias'):+.1f}")
    return result


print(f"rows {here}:")
home = judged("home", predict("home"))
print(f"rows {there}:")
away = judged("away", predict("away"))
assert away.value("PICP") < home.value("PICP")

# %%
# These are the faults of the rows from elsewhere:

for finding in away.findings:
    if finding.state == "bad":
        print("-", finding.sentence)

# %%
# Could it have been noticed?
# ---------------------------
#
# ``howsure assess NEW --reference LABELLED`` needs no y of the new rows. It says which of them lie
# outside the labelled rows, where the model cannot be judged. Of the others it says around which
# ones the model errs, as the labelled rows show. Whether y itself has changed for the same inputs,
# it cannot see.


def written(path, name, count, outcome):
    """A table of predictions and inputs, with or without the outcome."""
    x, y = rows[name]
    mean, sd = model.predict(scaler.transform(x), return_std=True)
    columns = {"mean": mean, "sd": sd, **{f"x_{each}": x[:, i] for i, each in enumerate(names)}}
    columns |= {"y": y} if outcome else {}
    spaced = np.linspace(0, len(y) - 1, min(count, len(y))).astype(int)
    csv.write_csv(pa.table(columns).take(spaced), path)


program = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
with TemporaryDirectory() as folder:
    written(Path(folder, "held_out.csv"), "held_out", 450, outcome=True)
    for name in ("home", "away"):
        written(Path(folder, f"{name}.csv"), name, 200, outcome=False)
        command = f"assess {name}.csv --reference held_out.csv"
        print(f"$ howsure {command}")
        done = subprocess.run(
            [*program, *command.split()], cwd=folder, capture_output=True, text=True, check=True
        )
        print(done.stdout.partition("\n\n")[0])

# %%
# Compare the shares of rows outside: they are what the inputs alone show of the move.
#
# Two remedies
# ------------
#
# The first recalibrates on held-out rows from home. It cannot know what changed elsewhere.


def recalibrated(rows_that_teach, rows_to_correct):
    """Predictions of rows, corrected by the best of what others teach."""
    new, held = howsure.EvalSet.checked(*rows_to_correct), howsure.EvalSet.checked(*rows_that_teach)
    return howsure.recalibrate(new, held, method="best").evalset.predictions


teach = rows["held_out"][1], predict("held_out")
print("taught by rows from home:")
cheap = judged("away", recalibrated(teach, (rows["away"][1], predict("away"))))

# %%
# The second takes a hundred rows from elsewhere whose outcome has become known, and judges the
# others.

taught = np.random.default_rng(0).permutation(len(rows["away"][1]))
few, others = taught[:100], taught[100:]
x, y = rows["away"]
prediction = predict("away")
rows["others"] = x[others], y[others]
teach = y[few], prediction.take(few)
print("taught by 100 rows from elsewhere:")
dear = judged("others", recalibrated(teach, (y[others], prediction.take(others))))

# %%
# What was decided
# ----------------

gaps = {
    "no recalibration": away,
    "rows from home": cheap,
    "100 rows from elsewhere": dear,
}
for name, result in gaps.items():
    gap = 100 * (result.value("empirical_coverage") - 0.9)
    print(f"{name:24} {gap:+5.1f} points from 90 %, CRPS {result.value('crps'):.1f}")
best = min(gaps, key=lambda name: gaps[name].value("crps"))
print(f"The lowest CRPS: {best}.")

# %%
# Coverage with its 95 % interval, at home and elsewhere:

covered = {here: home, **{f"{there}: {name}": result for name, result in gaps.items()}}
records = [result.record("empirical_coverage") for result in covered.values()]
value, lower, upper = np.transpose([[each.value, each.lower, each.upper] for each in records])
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.errorbar(100 * value, [*covered], xerr=100 * np.stack([value - lower, upper - value]), fmt="o")
axes.axvline(90, linestyle="--", color="grey", label="nominal")
axes.margins(y=0.2)
axes.invert_yaxis()
axes.set(xlabel="empirical coverage in %", title="What the move costs, and what two remedies give")
axes.legend()
plt.show()

# %%
# Where to go next:
#
# - :doc:`the shift benchmark </shift>` trains ten methods and asks which still cover: ``howsure
#   bench run shift``;
# - rows that shift slowly in time: :doc:`tomorrow's rows <plot_6_tomorrows_rows>`;
# - :doc:`what no test can see </explanations/what-no-test-can-see>` says what monitoring cannot
#   do.
