"""
Where coverage is lost
======================

By group, by part of the inputs, over time, and where rows are hard.
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
n = 1000
x, time = rng.uniform(-1, 1, n), np.arange(n)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2 + 0.1 * (time > 600)) * rng.normal(size=n)
prediction = howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(n, 0.2) + 0.05 * x)
result = howsure.assess(
    howsure.Table(
        y,
        prediction,
        features={"x": x},
        ease=-np.abs(x),
        groups={"side": np.where(x < 0, "left", "right")},
        time=time,
    ),
    options=howsure.Options(trials=False),
)

# %%
# Groups
# ------
# Coverage of all rows and of each group, with 95 % intervals, beside what is claimed.

result.plot("groups")

# %%
# Coverage of all rows
# --------------------
# Without groups, or beside them, one row a nominal coverage.

result.plot("coverage")

# %%
# Local PIT
# ---------
# The PIT in the parts of the inputs where it is least uniform.

result.plot("local_pit")

# %%
# Rolling coverage
# ----------------
# Single windows stray by chance. A level that moves and stays is drift.

# sphinx_gallery_thumbnail_number = 4
result.plot("rolling_coverage")

# %%
# Coverage by ease
# ----------------
# Rows are sorted from hard to easy. A line that leaves the band departs significantly.

result.plot("coverage_by_ease")

# %%
# Size by difficulty
# ------------------
# Do intervals grow where errors do?

result.plot("size_by_difficulty")

# %%
# Coverage by lead time
# ---------------------
# Forecasts up to six steps ahead, whose sd grows too slowly. Bands are simultaneous.

lead = np.tile(np.arange(1, 7), 300)
known = rng.normal(size=len(lead)) / lead
y = known + np.sqrt(1.2 - 1 / lead**2 + 0.2 * lead) * rng.normal(size=len(lead))
sd = np.sqrt(1.5 - 1 / lead**2)
ahead = howsure.assess(
    howsure.Table(y, howsure.Distribution.normal(known, sd), horizon=lead),
    options=howsure.Options(trials=False),
)
ahead.plot("lead_time_coverage")

# %%
# Score by lead time
# ------------------
# Scores grow where the future is less known.

ahead.plot("lead_time_score")

# %%
# Skill by lead time
# ------------------
# Where the band reaches 0, no knowledge beyond the distribution of y is proven.

ahead.plot("lead_time_skill")

# %%
# Width by lead time
# ------------------
# Widths that stay while scores grow are what makes coverage fall.

ahead.plot("lead_time_width")
