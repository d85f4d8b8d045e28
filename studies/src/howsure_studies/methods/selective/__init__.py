"""Methods that decline: predict a row only where it looks like those of training."""

from howsure_studies.methods.selective.method import SCORES, FittedSelective, Selective
from howsure_studies.methods.selective.scores import (
    EnsembleVarianceScore,
    FeatureScore,
    FittedScore,
    GMMScore,
    KNNScore,
    PredictionScore,
    Score,
    VarianceScore,
    mean_likelihood,
)
from howsure_studies.methods.selective.threshold import (
    SHARE,
    accepts,
    prediction_rate,
    score_acceptance,
    threshold,
    threshold_rank,
)

__all__ = [
    "SCORES",
    "SHARE",
    "EnsembleVarianceScore",
    "FeatureScore",
    "FittedScore",
    "FittedSelective",
    "GMMScore",
    "KNNScore",
    "PredictionScore",
    "Score",
    "Selective",
    "VarianceScore",
    "accepts",
    "mean_likelihood",
    "prediction_rate",
    "score_acceptance",
    "threshold",
    "threshold_rank",
]
