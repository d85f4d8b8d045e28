"""Recalibration: a held-out table teaches a model's predictions to tell the truth.

A method holds its options; `fit` learns from calibration rows and gives a recalibrator, whose
`apply` recalibrates any rows. `recalibrate` does both for all predictions of a test set at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.recalibration.affine import Multiply as Multiply
    from howsure.recalibration.affine import PointShift as PointShift
    from howsure.recalibration.affine import Shift as Shift
    from howsure.recalibration.affine import ShiftScale as ShiftScale
    from howsure.recalibration.affine import ShiftScaledIntervals as ShiftScaledIntervals
    from howsure.recalibration.affine import Widths as Widths
    from howsure.recalibration.base import FittedParameter as FittedParameter
    from howsure.recalibration.base import RecalibrationMethod as RecalibrationMethod
    from howsure.recalibration.base import Recalibrator as Recalibrator
    from howsure.recalibration.comparison import compare_recalibrations as compare_recalibrations
    from howsure.recalibration.conformal import ConformalIntervals as ConformalIntervals
    from howsure.recalibration.conformal import ConformalQuantiles as ConformalQuantiles
    from howsure.recalibration.dispatch import METHODS as METHODS
    from howsure.recalibration.dispatch import Recalibrated as Recalibrated
    from howsure.recalibration.dispatch import methods_of as methods_of
    from howsure.recalibration.dispatch import recalibrate as recalibrate
    from howsure.recalibration.group import ByGroup as ByGroup
    from howsure.recalibration.info import MethodInfo as MethodInfo
    from howsure.recalibration.info import RecalibrationOptions as RecalibrationOptions
    from howsure.recalibration.inputs import ByInputs as ByInputs
    from howsure.recalibration.intervals_from_distributions import (
        DerivedIntervals as DerivedIntervals,
    )
    from howsure.recalibration.levels import DEFAULT_LEVELS as DEFAULT_LEVELS
    from howsure.recalibration.recent import Recent as Recent
    from howsure.recalibration.recent import since_rows as since_rows
    from howsure.recalibration.scaling import QuantileScaling as QuantileScaling
    from howsure.recalibration.scaling import SpreadScaling as SpreadScaling
    from howsure.recalibration.scaling import VarianceScaling as VarianceScaling
    from howsure.recalibration.serialization import FittedRecalibration as FittedRecalibration
    from howsure.recalibration.serialization import load_recalibration as load_recalibration
    from howsure.recalibration.sets import ProbabilitySets as ProbabilitySets
    from howsure.recalibration.shape import Crude as Crude
    from howsure.recalibration.shape import Isotonic as Isotonic
    from howsure.recalibration.shape import Shape as Shape
    from howsure.recalibration.variance import IsotonicVariance as IsotonicVariance

_HOMES = {
    "affine": "Multiply PointShift Shift ShiftScale ShiftScaledIntervals Widths",
    "base": "FittedParameter RecalibrationMethod Recalibrator",
    "comparison": "compare_recalibrations",
    "conformal": "ConformalIntervals ConformalQuantiles",
    "intervals_from_distributions": "DerivedIntervals",
    "dispatch": "METHODS Recalibrated methods_of recalibrate",
    "group": "ByGroup",
    "info": "MethodInfo RecalibrationOptions",
    "inputs": "ByInputs",
    "serialization": "FittedRecalibration load_recalibration",
    "levels": "DEFAULT_LEVELS",
    "recent": "Recent since_rows",
    "scaling": "QuantileScaling SpreadScaling VarianceScaling",
    "sets": "ProbabilitySets",
    "shape": "Crude Isotonic Shape",
    "variance": "IsotonicVariance",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
