"""Split conformal prediction: a score, its finite-sample quantile, and the region that follows.

A score says how far y lies from what was predicted. If a new row is exchangeable with n
calibration rows, the rank of its score among the n + 1 is uniform; so its score is at most the
k-th smallest calibration score with probability k/(n + 1) where scores do not tie, and with at
least that probability where they do. The y that score at most that threshold form the region.
Given the calibration set, the share of new rows covered follows the law Beta(k, n + 1 − k)
(Vovk 2012, "Conditional validity of inductive conformal predictors").

Called, it is the verb that makes such regions for tables: see `howsure.report.conformal.conformal`.
"""

from howsure.conformal.adapting import (
    Adaptation,
    Calibration,
    Marginal,
    Mondrian,
    RankChoice,
    Thresholds,
    UniformBins,
)
from howsure.conformal.ranks import (
    DELTA,
    RankRule,
    conformal_rank,
    coverage_range,
    level_ranks,
    order_statistics,
    pac_rank,
    repetitions,
    rows_needed,
)
from howsure.conformal.scores import (
    Band,
    LowerEnd,
    Offset,
    Range,
    Scaled,
    Score,
    UpperEnd,
    region_ends,
    uncrossed,
)
from howsure.conformal.thresholds import (
    Threshold,
    TooFew,
    calibrate,
    check_few,
    conformal_threshold,
    held_scores,
    raise_too_large,
    raise_until_kept,
)
from howsure.core.optional import called_as

__all__ = [
    "DELTA",
    "Adaptation",
    "Band",
    "Calibration",
    "LowerEnd",
    "Marginal",
    "Mondrian",
    "Offset",
    "Range",
    "RankChoice",
    "RankRule",
    "Scaled",
    "Score",
    "Threshold",
    "Thresholds",
    "TooFew",
    "UniformBins",
    "UpperEnd",
    "calibrate",
    "check_few",
    "conformal_rank",
    "conformal_threshold",
    "coverage_range",
    "held_scores",
    "level_ranks",
    "order_statistics",
    "pac_rank",
    "raise_too_large",
    "raise_until_kept",
    "region_ends",
    "repetitions",
    "rows_needed",
    "uncrossed",
]

called_as(__name__, "howsure.report.conformal")
