"""Recalibration: a held-out table teaches a model's predictions to tell the truth.

`method` gives a way to recalibrate by its name, with its options; its ``fit`` learns from
calibration rows and gives a `Recalibrator`, whose ``apply`` recalibrates any rows. `recalibrate`
does both for all predictions of a test set at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.recalibration.base import FittedParameter as FittedParameter
    from howsure.recalibration.base import RecalibrationMethod as RecalibrationMethod
    from howsure.recalibration.base import Recalibrator as Recalibrator
    from howsure.recalibration.comparison import compare_recalibrations as compare_recalibrations
    from howsure.recalibration.dispatch import METHODS as METHODS
    from howsure.recalibration.dispatch import Recalibrated as Recalibrated
    from howsure.recalibration.dispatch import method as method
    from howsure.recalibration.dispatch import methods_of as methods_of
    from howsure.recalibration.dispatch import recalibrate as recalibrate
    from howsure.recalibration.info import MethodInfo as MethodInfo
    from howsure.recalibration.serialization import FittedRecalibration as FittedRecalibration
    from howsure.recalibration.serialization import load_recalibration as load_recalibration

_HOMES = {
    "base": "FittedParameter RecalibrationMethod Recalibrator",
    "comparison": "compare_recalibrations",
    "dispatch": "METHODS Recalibrated method methods_of recalibrate",
    "info": "MethodInfo",
    "serialization": "FittedRecalibration load_recalibration",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
