"""What methods that learn through a `Frame` share: the rows that they learn from and serve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.methods.conformal import raise_too_large
from howsure.predictions import EvalSet, Intervals, Prediction, Quantiles
from howsure.recalibration.base import effective_rows, kinds_of, signature
from howsure.recalibration.moving import Frame


def stated(prediction: Prediction) -> str:
    """What must agree between the rows that a method learns from and those that it mends."""
    if isinstance(prediction, Quantiles):
        return f"quantiles at levels {_listed(prediction.levels)}"
    if isinstance(prediction, Intervals):
        return f"intervals at coverage {_listed(prediction.coverages) or 'unknown'}"
    return signature(prediction)


def _listed(numbers: Any) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def held_as(evalset: EvalSet, kind: str, expected: str) -> Prediction:
    """The prediction of this kind, which must state what that of the calibration rows did.

    Raises
    ------
    InputError
        If there is none, or it differs in coverages, levels, family or number of samples.
    """
    found = [each for each in evalset.beliefs if each.kind == kind]
    if not found or stated(found[0]) != expected:
        came = stated(found[0]) if found else ", ".join(kinds_of(evalset))
        raise InputError(f"the rows must hold {expected} as the calibration rows do, got {came}")
    return found[0]


def counts(calibration: EvalSet) -> FloatArray:
    """How often each row counts, summing to the rows that count."""
    found = calibration.multiplicities
    return np.ones(calibration.n) if found is None else found


def checked_frame(calibration: EvalSet, frame: Frame) -> Frame:
    """The frame of calibration rows from which a shift and a factor can be learnt.

    Raises
    ------
    InputError
        If the rows are fewer than two, a row has no spread, or every error is zero.
    """
    n = effective_rows(calibration)[0]
    if n < 2:
        raise InputError(f"calibration must hold at least 2 rows to learn from, got {n:g}")
    frame.check_spread()
    error = calibration.y - frame.center
    if not (np.isfinite(error).all() and math.isfinite(float(np.square(error).sum()))):
        raise_too_large()
    return frame


def check_factor(factor: float) -> float:
    """A factor by which spreads can be multiplied.

    Raises
    ------
    InputError
        If it is zero, as it is where errors are all alike.
    """
    if not 0.0 < factor < math.inf:
        raise InputError(
            "errors must vary in the calibration rows "
            "for spreads to be scaled, got a factor of zero"
        )
    return factor


def bare(evalset: EvalSet, kind: str) -> EvalSet:
    """y, the prediction of one kind and what each row counts, without all that lies beside."""
    return EvalSet(
        y=evalset.y,
        beliefs=tuple(each for each in evalset.beliefs if each.kind == kind),
        point=evalset.point,
        weights=evalset.weights,
        model=evalset.model,
    )
