"""
Calibration
===========

Do stated probabilities come true? Three figures of one table.
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 1000)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=1000)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(1000, 0.15))
result = howsure.assess(y, prediction, trials=False)

# %%
# Reliability diagram: below the diagonal y falls below a predicted quantile less often than stated.

result.plot("calibration")
