"""
Several models
==============

Which model is significantly better?
"""

import numpy as np

import howsure
from howsure.figures import figures_of, plot, to_vega
from howsure_studies.engine import compare_ranks, rank_figure

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 600)
noise = 0.1 + 0.3 * x**2
y = np.sin(3 * x) + noise * rng.normal(size=600)
models = {
    "constant sd": howsure.Distribution.normal(mean=np.sin(3 * x), sd=np.full(600, 0.2)),
    "right sd": howsure.Distribution.normal(mean=np.sin(3 * x), sd=noise),
    "linear mean": howsure.Distribution.normal(mean=1.2 * x, sd=noise),
}
result = howsure.assess(y, models, options=howsure.Options(trials=False))

# %%
# Paired differences
# ------------------
# Differences of a score on the same rows. If an interval crosses zero, the difference is not
# significant.

result.plot("models")

# %%
# Any curve of all models
# -----------------------
# Each figure of one model holds several, too.

# sphinx_gallery_thumbnail_number = 2
result.plot("calibration")

# %%
# Mean ranks
# ----------
# Over several tables: a bar joins models whose ranks do not differ significantly.

scores = 1 + rng.gamma(4, 0.1, (12, 3)) + [0.3, 0.0, 0.1]
ranks = compare_ranks(scores, names=[*models])
plot(rank_figure(ranks.table("ranks")))

# %%
# Figures as data
# ---------------
# ``result.figures`` holds them. ``to_vega`` gives Vega-Lite, which Altair and browsers draw.

figure = figures_of([curve for curve in result.curves if curve.name == "pit_ecdf"])[0]
print(figure.title, "|", figure.question)
print(sorted(to_vega(figure)))
