"""Measures of one model under shift, and how each test and validation row moves them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.studies.shift.rows import ShiftTest
from howsure.studies.shift.run import Cut, ShiftRun

MEASURES: Final = (
    *("val_mae", "val_width", "val_coverage"),
    *("test_coverage", "test_width", "test_mae", "prediction_rate"),
    *("coverage_error", "mae_change", "relative_mae_change"),
)
"""What is measured; test measures but the changes of MAE count the rows accepted alone."""
ALL_ROWS: Final = ("test_coverage_all", "test_width_all", "test_mae_all")
"""The same on all test rows, accepted or not."""

_OF_VAL: Final[Mapping[str, str]] = {
    "val_mae": "mae_all",
    "val_width": "width_all",
    "val_coverage": "coverage_all",
}
_OF_TEST: Final[Mapping[str, str]] = {
    "test_coverage": "coverage",
    "test_width": "width",
    "test_mae": "mae",
    "prediction_rate": "prediction_rate",
    "test_coverage_all": "coverage_all",
    "test_width_all": "width_all",
    "test_mae_all": "mae_all",
}
_ROWS: Final[Mapping[str, Callable[[ShiftTest], FloatArray | BoolArray]]] = {
    "coverage": lambda part: part.covered,
    "width": lambda part: part.width_rows,
    "mae": lambda part: part.error,
    "prediction_rate": lambda part: part.accepted,
    "coverage_all": lambda part: part.covered,
    "width_all": lambda part: part.width_rows,
    "mae_all": lambda part: part.error,
}
_OF_ACCEPTED: Final = ("coverage", "width", "mae")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunMeasure:
    """One number of one run, and its influence values.

    Attributes
    ----------
    value : float
        NaN where `reason` says why.
    n : float
        Rows behind it.
    rows, calibration : ndarray of float, shape (n,) and (m,), optional
        How each test row and each validation row moves it, with mean 0; None where they do not.
    degrees : float
        Degrees of freedom of what validation rows do, where less than their number.
    reason : str
        Why it is missing.
    """

    value: float
    n: float
    rows: FloatArray | None = None
    calibration: FloatArray | None = None
    degrees: float = math.inf
    reason: str = ""


def needs_test(measure: str) -> bool:
    """Whether a measure is of a test part.

    Examples
    --------
    >>> needs_test("val_mae"), needs_test("test_mae")
    (False, True)
    """
    return measure not in _OF_VAL


def run_measure(run: ShiftRun, measure: str, test: str) -> RunMeasure:
    """A measure of one run, with influence values.

    Parameters
    ----------
    run : ShiftRun
        One model.
    measure : str
        Of `MEASURES` but ``coverage_error``, or of `ALL_ROWS`.
    test : str
        Which test part.

    Returns
    -------
    RunMeasure

    Notes
    -----
    A mean over accepted rows moves by a_i(s_i − mean)/rate with row i. Validation row j moves Q
    by −(1{E_j ≤ Q} − mean) in units of its level, and likewise τ; what a measure gains by level
    is read off between the order statistics one standard error below and above (the interval of
    R. S. Woodruff, JASA 47 (1952), turned into a derivative).
    """
    if measure in _OF_VAL:
        return _val_measure(run, _OF_VAL[measure])
    part = run.tests[test]
    if measure in _OF_TEST:
        return _part_measure(run, part, _OF_TEST[measure])
    away, home = _part_measure(run, part, "mae_all"), _val_measure(run, "mae_all")
    if math.isnan(away.value) or math.isnan(home.value):
        return RunMeasure(value=math.nan, n=float(part.n), reason=away.reason or home.reason)
    if measure == "mae_change":
        return _difference(away, home, 1.0, 1.0, away.value - home.value)
    if home.value == 0.0:
        return RunMeasure(value=math.nan, n=away.n, reason="the validation MAE is 0")
    by_home = away.value / home.value
    return _difference(away, home, 1.0 / home.value, by_home / home.value, by_home - 1.0)


def _difference(
    away: RunMeasure, home: RunMeasure, gain: float, loss: float, value: float
) -> RunMeasure:
    """A function of two means that rises by `gain` with one and falls by `loss` with the other."""
    rows = None if away.rows is None else gain * away.rows
    calibration = None if home.calibration is None else -loss * home.calibration
    return RunMeasure(value=value, n=away.n, rows=rows, calibration=calibration)


def _val_measure(run: ShiftRun, name: str) -> RunMeasure:
    value, n = float(getattr(run.val, name)), float(run.val.n)
    if not math.isfinite(value):
        return RunMeasure(value=value, n=n, reason=_reason(run.val, name, value))
    scores = np.asarray(_ROWS[name](run.val), dtype=np.float64)
    moved, degrees = _moved_by_val(run, name, run.val)
    return RunMeasure(value=value, n=n, calibration=scores - value + moved, degrees=degrees)


def _part_measure(run: ShiftRun, part: ShiftTest, name: str) -> RunMeasure:
    value = float(getattr(part, name))
    accepted = part.accepted if name in _OF_ACCEPTED else np.ones(part.n, dtype=np.bool_)
    n = float(accepted.sum())
    if not math.isfinite(value):
        return RunMeasure(value=value, n=n, reason=_reason(part, name, value))
    scores = np.asarray(_ROWS[name](part), dtype=np.float64)
    rows = np.where(accepted, scores - value, 0.0) * (part.n / n)
    moved, degrees = _moved_by_val(run, name, part)
    return RunMeasure(value=value, n=n, rows=rows, calibration=moved, degrees=degrees)


def _moved_by_val(run: ShiftRun, name: str, rows: ShiftTest) -> tuple[FloatArray, float]:
    """How validation rows move a measure of a part through Q and τ, shape (m,), and how surely."""
    moved, degrees = np.zeros(run.val.n), math.inf
    if name in ("coverage", "width", "coverage_all", "width_all"):
        slope = _slope(run.offset, lambda q: float(getattr(rows.at(q=q), name)))
        moved -= slope * _centred(run.val.covered)
        degrees = run.offset.spacings / 2.0
    if run.cut is not None and name in (*_OF_ACCEPTED, "prediction_rate"):
        slope = _slope(run.cut, lambda t: float(getattr(rows.at(threshold=t), name)))
        moved -= slope * _centred(run.val.accepted)
        degrees = min(degrees, run.cut.spacings / 2.0)
    return moved, degrees


def _slope(cut: Cut, measure: Callable[[float], float]) -> float:
    """Rise of a measure by level between the neighbours of a cut; 0 where there is none."""
    if cut.spacings == 0:
        return 0.0
    low, high = measure(cut.low), measure(cut.high)
    return (high - low) / cut.step if math.isfinite(low) and math.isfinite(high) else 0.0


def _centred(flags: BoolArray) -> FloatArray:
    return np.asarray(flags - flags.mean())


def _reason(part: ShiftTest, name: str, value: float) -> str:
    if math.isinf(value):
        return "some intervals are unbounded"
    return part.reason(name)
