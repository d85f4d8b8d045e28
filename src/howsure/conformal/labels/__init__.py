"""Conformal prediction for classification: sets of labels with guaranteed coverage."""

from howsure.conformal.labels.classifier import CalibratedLabels, LabelConformal
from howsure.conformal.labels.scores import (
    APS,
    LAC,
    RAPS,
    SAPS,
    GivenScore,
    LabelScore,
    fit_temperature,
    tempered,
)
from howsure.conformal.labels.tuning import (
    EaseBins,
    EaseColumn,
    EaseGroups,
    TunedCalibration,
    TunedLabels,
)

__all__ = [
    "APS",
    "LAC",
    "RAPS",
    "SAPS",
    "CalibratedLabels",
    "EaseBins",
    "EaseColumn",
    "EaseGroups",
    "GivenScore",
    "LabelConformal",
    "LabelScore",
    "TunedCalibration",
    "TunedLabels",
    "fit_temperature",
    "tempered",
]
