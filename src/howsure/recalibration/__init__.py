"""Recalibration: a held-out table teaches a model's beliefs to tell the truth.

A method holds its options; `fit` learns from calibration rows and gives a recalibrator, whose
`apply` mends any rows. `recalibrate` does both for every belief of a test set at once.
"""

from howsure.recalibration.base import Learnt, Method, Recalibrator
from howsure.recalibration.comparison import compare_recalibrations
from howsure.recalibration.crude import Crude
from howsure.recalibration.derived import DerivedIntervals
from howsure.recalibration.dispatch import METHODS, Recalibrated, recalibrate
from howsure.recalibration.intervals import ConformalIntervals
from howsure.recalibration.isotonic import Isotonic
from howsure.recalibration.kept import Mend, load_mend
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.scaling import SpreadScaling, VarianceScaling
from howsure.recalibration.shift import QuantileShift
from howsure.recalibration.wrapper import RecalibratedMethod

__all__ = [
    "DEFAULT_LEVELS",
    "METHODS",
    "ConformalIntervals",
    "Crude",
    "DerivedIntervals",
    "Isotonic",
    "Learnt",
    "Mend",
    "Method",
    "QuantileShift",
    "Recalibrated",
    "RecalibratedMethod",
    "Recalibrator",
    "SpreadScaling",
    "VarianceScaling",
    "compare_recalibrations",
    "load_mend",
    "recalibrate",
]
