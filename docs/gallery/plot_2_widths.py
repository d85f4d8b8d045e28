"""
Intervals and their widths
==========================

How wide are intervals, do widths follow errors, and what does covering more rows cost?
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 800)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=800)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=0.1 + 0.2 * x**2)
result = howsure.assess(y, prediction, options=howsure.Options(trials=False))

# %%
# Intervals and y
# ---------------
# A row each, by their place in the table. What is missed stands out.

result.plot("intervals")

# %%
# Error by predicted uncertainty
# ------------------------------
# Rising points mean that widths separate easy rows from hard ones.

result.plot("error_by_width")

# %%
# Risk and coverage
# -----------------
# The mean error of the most certain rows. The further below random order, the better.

result.plot("risk_coverage")

# %%
# Characteristics curve
# ---------------------
# Intervals are scaled from nothing to wide enough for all rows. Where the constant band lies lower,
# varying widths do not pay.

result.plot("characteristic")

# %%
# Half-width against deficit
# --------------------------
# The curve touches the straight line at the scale with the best interval score.

result.plot("characteristic_deficit")
