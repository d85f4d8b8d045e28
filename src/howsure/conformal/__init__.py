"""Split conformal prediction: a score, its finite-sample quantile, and the region that follows.

A score says how far y lies from what was predicted. If a new row is exchangeable with n
calibration rows, the rank of its score among the n + 1 is uniform; so its score is at most the
k-th smallest calibration score with probability k/(n + 1) where scores do not tie, and with at
least that probability where they do. The y that score at most that threshold form the region.
Given the calibration set, the share of new rows covered follows the law Beta(k, n + 1 − k)
(Vovk 2012, "Conditional validity of inductive conformal predictors").

Called, it is the verb that makes such regions for tables: see `howsure.report.conformal.conformal`.
"""

from howsure.conformal.ranks import conformal_rank, pac_rank, rows_needed
from howsure.conformal.scores import Band, Offset, Scaled, Score
from howsure.conformal.thresholds import Threshold, calibrate, conformal_threshold
from howsure.core.optional import called_as

__all__ = [
    "Band",
    "Offset",
    "Scaled",
    "Score",
    "Threshold",
    "calibrate",
    "conformal_rank",
    "conformal_threshold",
    "pac_rank",
    "rows_needed",
]

called_as(__name__, "howsure.report.conformal")
