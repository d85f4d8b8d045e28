"""Whether predictions are larger where the example is harder, and hold their coverage there.

Ease comes from disturbing the input; cells of equal mass by ease replace bins of size, which
mislead. Source: Jang and Lee 2025.
"""

from howsure.stats.cells import (
    RAPS_STRATA,
    TORCHCP_STRATA,
    EaseCells,
    Strata,
    StratumCells,
    largest_violation,
    signed_r2,
)
from howsure.stats.dominance import class_numbers, label_rank
from howsure.stats.ease import (
    REPEATS,
    GaussianNoise,
    Perturbation,
    ease,
    surrogate_ease,
)
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.association import rank_ss, satisfaction_rate, t_ss
from howsure.topics.adaptivity.coverage import (
    AdaptivityMeasure,
    CellTable,
    NoiseFloor,
    escv,
    noise_floor,
    rank_cv,
    set_deficit,
    set_excess,
    sscv,
    t_cv,
)

__all__ = [
    "RAPS_STRATA",
    "REPEATS",
    "TORCHCP_STRATA",
    "AdaptivityMeasure",
    "CellTable",
    "EaseCells",
    "GaussianNoise",
    "NoiseFloor",
    "Perturbation",
    "Resampling",
    "Strata",
    "StratumCells",
    "class_numbers",
    "ease",
    "escv",
    "label_rank",
    "largest_violation",
    "noise_floor",
    "rank_cv",
    "rank_ss",
    "satisfaction_rate",
    "set_deficit",
    "set_excess",
    "signed_r2",
    "sscv",
    "surrogate_ease",
    "t_cv",
    "t_ss",
]
