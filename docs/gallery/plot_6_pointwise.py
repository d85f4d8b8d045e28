"""
Coverage at every point
=======================

Where the truth is known, coverage can be measured at each x: PICF of a new y, CICF of the mean.
"""

import numpy as np

from howsure.figures import plot
from howsure_studies.methods.linear import LinearT
from howsure_studies.pointwise import (
    FigureWords,
    coverage_profile,
    curves,
    intervals_along_x,
    one_run,
    pointwise,
    share_histogram,
)
from howsure_studies.pointwise.measures import local_curve

result = pointwise("toy_heteroscedastic", LinearT(), trials=60, seed=0)
made = {curve.name: curve for curve in curves(result, coverages=[0.9])}
print(sorted(made))

# %%
# PICF along x
# ------------
# The straight line covers a new y too often where noise is small, and too rarely where it is large.

plot(made["picf"])

# %%
# CICF along x
# ------------
# The same for the confidence interval of the mean.

plot(made["cicf"])

# %%
# In rising order
# ---------------
# Which share of points has at most this coverage? This works for any number of columns.

plot(made["picf_sorted"])

# %%

plot(made["cicf_sorted"])

# %%
# In bins of any number
# ---------------------
# Of several columns of x, one at a time: points with like values share a bin.

along = np.linspace(0, 1, len(result.y))
plot(local_curve(result, "picf", 0.9, along, name="place in the test set"))  # picf_local

# %%

plot(local_curve(result, "cicf", 0.9, along, name="place in the test set"))  # cicf_local

# %%
# Several methods over each other
# -------------------------------
# ``coverage_profile`` draws the curves of several methods with words of your own.

words = FigureWords(
    name="profile",
    question="Does coverage hold at every x?",
    title="PICF at 90 %",
    reading="A correct method follows the dashed line.",
    x="x",
)
plot(coverage_profile([made["picf"]], 0.9, words, places={result.method: 0}))

# %%
# How coverages are spread
# ------------------------

shares = {result.method: np.asarray(made["picf_sorted"].y)}
plot(share_histogram(shares, 0.9, words, places={result.method: 0}, of="points"))

# %%
# Intervals of one trial over the truth
# -------------------------------------

plot(intervals_along_x(one_run(result, 0.9), words, colour=0))
