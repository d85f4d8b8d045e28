"""Recalibration: a held-out table teaches a model's beliefs to tell the truth.

A method holds its options; `fit` learns from calibration rows and gives a recalibrator, whose
`apply` mends any rows. `recalibrate` does both for every belief of a test set at once.
"""

from howsure.methods.recalibration.base import Learnt, Method, Recalibrator
from howsure.methods.recalibration.comparison import compare_recalibrations
from howsure.methods.recalibration.crude import Crude
from howsure.methods.recalibration.derived import DerivedIntervals
from howsure.methods.recalibration.dispatch import METHODS, Recalibrated, recalibrate
from howsure.methods.recalibration.intervals import ConformalIntervals
from howsure.methods.recalibration.isotonic import Isotonic
from howsure.methods.recalibration.levels import DEFAULT_LEVELS
from howsure.methods.recalibration.scaling import SpreadScaling, VarianceScaling
from howsure.methods.recalibration.shift import QuantileShift
from howsure.methods.recalibration.wrapper import RecalibratedMethod

__all__ = [
    "DEFAULT_LEVELS",
    "METHODS",
    "ConformalIntervals",
    "Crude",
    "DerivedIntervals",
    "Isotonic",
    "Learnt",
    "Method",
    "QuantileShift",
    "Recalibrated",
    "RecalibratedMethod",
    "Recalibrator",
    "SpreadScaling",
    "VarianceScaling",
    "compare_recalibrations",
    "recalibrate",
]
