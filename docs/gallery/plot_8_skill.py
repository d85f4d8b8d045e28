"""
What a forecast knows
=====================

Is a score lost to miscalibration, or to what the forecast does not know?
"""

import numpy as np

import howsure

rng = np.random.default_rng(0)
n = 1500
site = rng.choice(["coast", "hill", "plain"], n)
level = np.select([site == "coast", site == "hill"], [2.0, -2.0])
weather = rng.normal(size=n)
y = level + weather + 0.5 * rng.normal(size=n)
models = {
    "knows the site": howsure.Distribution.normal(level, np.full(n, 1.1)),
    "too narrow": howsure.Distribution.normal(level + weather, np.full(n, 0.25)),
}
options = howsure.Options(trials=False, also=["miscalibration"])
result = howsure.assess(y, models, groups={"site": site}, options=options)

# %%
# Parts of a score
# ----------------
# MCB is lost to miscalibration, DSC is known. The distribution of y stands above.

result.plot("score_parts")

# %%
# Skill by group
# --------------
# Against the distribution of y in the same group. Who knows the site alone knows nothing there.

result.plot("skill_by_group")

# %%
# Reliability of quantiles
# ------------------------
# Which quantile y had where this one was predicted, in a band of what chance makes of right
# forecasts.

alone = howsure.assess(y, models["too narrow"], options=options)
alone.plot("reliability_low")

# %%
# The median has no such fault.

alone.plot("reliability_median")

# %%
# The high quantile does.

alone.plot("reliability_high")

# %%
# Reliability of the mean
# -----------------------

alone.plot("reliability_mean")

# %%
# Murphy diagrams
# ---------------
# The lower curve is better at each threshold. One that is never above another is better by every
# score of the median, or of the mean.

# sphinx_gallery_thumbnail_number = 7
result.plot("murphy")

# %%
# Here of the mean.

result.plot("murphy_mean")
