"""
Congruence at every input
=========================

The conditional congruence error (CCE) compares the predicted with the true distribution at every
row.
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
x, z = rng.uniform(-1, 1, (2, 500))
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=500)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(500, 0.2))
result = howsure.assess(
    y, prediction, features={"x": x, "z": z}, options=howsure.Options(trials=False)
)

# %%
# Map
# ---
# Each row at its inputs; dark rows have a distribution that is far from the true one.

result.plot("cce_map")

# %%
# Congruence error by input region
# --------------------------------
# The mean CCE in the leaves of a small tree.

result.plot("cce_tree")

# %%
# Rejection
# ---------
# Rows are withheld from the highest CCE on: does the error of the others fall?

result.plot("rejection")

# %%
# Rejection, by likelihood
# ------------------------

result.plot("rejection_nll")
