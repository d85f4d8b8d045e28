"""
Calibration
===========

Are predicted probabilities calibrated? Six figures of a model whose spread is too
small at the ends of x, and one of a classifier that is too sure.
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 1000)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=1000)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(1000, 0.15))
result = howsure.assess(
    y,
    prediction,
    options=howsure.Options(
        trials=False, also=["tail_miscalibration_left", "tail_miscalibration_right"]
    ),
)

# %%
# Reliability diagram
# -------------------
# Below the diagonal, y falls below a predicted quantile less often than its level says. A line that
# leaves the band departs significantly.

result.plot("calibration")

# %%
# Interval calibration
# --------------------
# The same of central intervals: below the diagonal they under-cover.

result.plot("interval_calibration")

# %%
# PIT, as a difference from uniform
# ---------------------------------
# Above, then below zero: distributions are too narrow.

result.plot("pit_ecdf")

# %%
# PIT histogram
# -------------
# A U shape says the same. A flat histogram is calibrated.

# sphinx_gallery_thumbnail_number = 4
result.plot("pit_histogram")

# %%
# Calibration of the right tail
# -----------------------------
# Of y above its 90 % quantile: the height at 1 is how many times as often as stated it lies there.

result.plot("tail_calibration_right")

# %%
# Calibration of the left tail
# ----------------------------
# The same of y below its 10 % quantile.

result.plot("tail_calibration_left")

# %%
# Reliability diagram of a classifier
# -----------------------------------
# Above the diagonal at the left and below it at the right: probabilities are too near 0 and 1.

happened = rng.random(1000) < 1 / (1 + np.exp(-2 * x))
stated = 1 / (1 + np.exp(-4 * x))
classified = howsure.assess(happened, stated, options=howsure.Options(trials=False))
classified.plot("class_reliability")
