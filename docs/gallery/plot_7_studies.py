"""
Figures of the studies
======================

What the pages of the other studies draw, here of published and of small results.
"""

import numpy as np

from howsure.core.records import Curve, Direction, Record, ResultTable
from howsure.figures import plot
from howsure.topics.characteristic.curve import characteristic_curve
from howsure_studies import adaptivity, characteristic, shift
from howsure_studies.engine import published

# %%
# Characteristics curves of several methods
# -----------------------------------------
# A world with a gap in its training data, and two ways to state a width.

part = characteristic.gap(0, n_test=400)
x, y = part.x_test[:, 0], part.y_test
results = []
for name, sd in {"wide in the gap": 0.1 + 0.5 * (np.abs(x) < 1), "constant": 0 * x + 0.3}.items():
    point = np.cos(2 * x) * (np.abs(x) > 1)
    curve = characteristic_curve(y, point, point - sd, point + sd)
    results.append(
        characteristic.MethodResult(
            world="gap",
            method=name,
            seed=0,
            y=y,
            point=point,
            lower=point - sd,
            upper=point + sd,
            records=characteristic.measure(curve, characteristic.Measuring(replicates=50)),
            options=characteristic.Measuring(replicates=50),
            place=x,
            axis="x",
        )
    )
plot(characteristic.curves_figure(results))

# %%
# Bands at the operating points
# -----------------------------

plot(characteristic.bands_figure(results[0]))

# %%
# Adaptivity: one measure of several methods
# ------------------------------------------
# Published by Jang and Lee (2025), at coverage 0.9.

printed = published("adaptivity", task="ImageNet, nine nets", measure="t_cv", coverage=0.9)
values = {"label sets": {row.method: row.value for row in printed}}
plot(adaptivity.methods_figure(values, "t_cv"))

# %%
# Adaptivity: does the way of disturbing matter?
# ----------------------------------------------

rng = np.random.default_rng(0)
ease = rng.normal(size=600)
size = 3 - ease + rng.normal(0, 0.3, 600)
eases = {f"noise {scale}": ease + scale * rng.normal(size=600) for scale in (0.2, 0.5, 1.0)}
found = adaptivity.ease_sensitivity(
    size, -ease, rng.random(600) < 0.9, eases, coverage=0.9, bins=(10,)
)
t_ss = {"made-up sets": np.asarray(found.columns["t_ss"])}
plot(adaptivity.sensitivity_figure([*eases], t_ss, "t_ss", title="size of the noise"))

# %%
# Shift: one measure of several methods
# -------------------------------------
# Numbers here and below were published by Gustafsson, Danelljan and Schön (2023).

NAMES = {"conformal": "Conformal Prediction", "gaussian": "Gaussian", "gaussian_gmm": "GMM"}
PLACES = {name: place for place, name in enumerate(NAMES.values())}


def numbers(dataset, quantity):
    """What a quantity was for each method; all is predicted where nothing is said."""
    said = published("shift", task=dataset, measure=quantity, coverage=0.9)
    held = {v.method: v for v in said}
    return {name: held.get(method) for method, name in NAMES.items()}


records = [
    Record(
        metric="test_empirical_coverage",
        value=v.value,
        lower=v.value - 2 * v.sd / 5**0.5,
        upper=v.value + 2 * v.sd / 5**0.5,
        model=name,
        direction=Direction.TARGET,
        target=0.9,
    )
    for name, v in numbers("cells-tails", "test_empirical_coverage").items()
]
plot(shift.measure_figure(records))

# %%
# Shift: coverage error against prediction rate
# ---------------------------------------------

SETS = ("cells", "cells-tails", "cells-gap", "chair-angle", "chair-angle-gap")


def over_sets(quantity, missing):
    """A quantity of each set and method."""
    held = [numbers(dataset, quantity) for dataset in SETS]
    return np.array([[v.value if v else missing for v in row.values()] for row in held])


errors = np.abs(over_sets("test_empirical_coverage", np.nan) - 0.9)
columns = {
    "method": np.array([*PLACES], dtype=object),
    "coverage_error": errors.mean(axis=0),
    "standard_error": errors.std(axis=0, ddof=1) / len(SETS) ** 0.5,
    "prediction_rate": over_sets("prediction_rate", 1.0).mean(axis=0),
}
plot(shift.trade_figure(ResultTable(name="averages", columns=columns), PLACES))

# %%
# Shift: coverage error against mean rank
# ---------------------------------------

widths = over_sets("val_width", np.nan)
ranked = {**columns, "mean_rank": (widths.argsort(axis=1).argsort(axis=1) + 1.0).mean(axis=0)}
plot(shift.rank_scatter(ResultTable(name="averages", columns=ranked), "val_width", PLACES))

# %%
# Shift: rank by width against rank by error
# ------------------------------------------

errors_at_home = over_sets("val_mae", np.nan)
both = {
    "method": columns["method"],
    "rank_val_mae": (errors_at_home.argsort(axis=1).argsort(axis=1) + 1.0).mean(axis=0),
    "rank_val_width": ranked["mean_rank"],
}
plot(shift.two_ranks(ResultTable(name="ranks", columns=both), PLACES))

# %%
# Shift: by its degree
# --------------------
# Made-up numbers: coverage that falls as the test range widens.

degrees = np.arange(4.0)
fall = Curve(
    name="degree_of_shift",
    x=degrees,
    y=0.9 - 0.1 * degrees,
    lower=0.87 - 0.1 * degrees,
    upper=0.93 - 0.1 * degrees,
    reference=np.full(4, 0.9),
    x_label="degree of shift",
    y_label="coverage",
    model="Gaussian",
    group="task=cells-tails",
)
plot(shift.degree_figure([fall], PLACES))

# %%
# Shift: coverage error against the change of the error
# -----------------------------------------------------
# Made-up numbers: a point a test, a colour a task.

change = {
    "task": np.array(["cells", "cells-tails", "cells-tails"], dtype=object),
    "test": np.array(["full", "full", "step-1"], dtype=object),
    "relative_mae_change": np.array([0.01, 2.0, 0.5]),
    "coverage_error": np.array([0.0, 0.35, 0.1]),
}
plot(shift.change_figure(ResultTable(name="changes", columns=change)))
