"""Recalibration: a held-out table teaches a model's predictions to tell the truth.

A method holds its options; `fit` learns from calibration rows and gives a recalibrator, whose
`apply` mends any rows. `recalibrate` does both for all predictions of a test set at once.
"""

from howsure.recalibration.affine import (
    PointShift,
    Shift,
    ShiftScale,
    ShiftScaledIntervals,
    Widths,
)
from howsure.recalibration.base import Learnt, Method, Recalibrator
from howsure.recalibration.comparison import compare_recalibrations
from howsure.recalibration.conformal import ConformalQuantiles
from howsure.recalibration.crude import Crude
from howsure.recalibration.derived import DerivedIntervals
from howsure.recalibration.dispatch import METHODS, Recalibrated, recalibrate
from howsure.recalibration.group import ByGroup
from howsure.recalibration.inputs import ByInputs
from howsure.recalibration.intervals import ConformalIntervals
from howsure.recalibration.isotonic import Isotonic
from howsure.recalibration.kept import Mend, load_mend
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.recent import Recent, since_rows
from howsure.recalibration.scaling import QuantileScaling, SpreadScaling, VarianceScaling
from howsure.recalibration.sets import ProbabilitySets
from howsure.recalibration.shape import Shape
from howsure.recalibration.variance import IsotonicVariance
from howsure.recalibration.wrapper import RecalibratedMethod

__all__ = [
    "DEFAULT_LEVELS",
    "METHODS",
    "ByGroup",
    "ByInputs",
    "ConformalIntervals",
    "ConformalQuantiles",
    "Crude",
    "DerivedIntervals",
    "Isotonic",
    "IsotonicVariance",
    "Learnt",
    "Mend",
    "Method",
    "PointShift",
    "ProbabilitySets",
    "QuantileScaling",
    "Recalibrated",
    "RecalibratedMethod",
    "Recalibrator",
    "Recent",
    "Shape",
    "Shift",
    "ShiftScale",
    "ShiftScaledIntervals",
    "SpreadScaling",
    "VarianceScaling",
    "Widths",
    "compare_recalibrations",
    "load_mend",
    "recalibrate",
    "since_rows",
]
