"""Does coverage survive a shift? Calibrate at home, then test at home and elsewhere.

Intervals [L, U] of a trained model are moved outward by one offset Q, learnt on validation rows,
and kept so on test rows; a score κ may refuse rows that look foreign. Source: F. K. Gustafsson,
M. Danelljan and T. B. Schön, "How reliable is your regression model's uncertainty under
real-world distribution shifts?" (TMLR 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import final, get_args

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector, check_fraction, check_length, plain_array
from howsure.core.errors import InputError
from howsure.methods.conformal.ranks import conformal_rank
from howsure.methods.selective.threshold import SHARE, threshold_rank
from howsure.studies.shift.result import Cut, Rule, ShiftResult, ShiftRun, ShiftTest

__all__ = ["Answers", "ShiftResult", "calibration_shift", "evaluate_shift"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """What one model says of the rows of one part, before calibration.

    Attributes
    ----------
    y : ndarray of float, shape (n,)
        What happened; finite.
    point : ndarray of float, shape (n,)
        Point forecasts, in the units of y.
    lower, upper : ndarray of float, shape (n,)
        Ends of the intervals; they may cross, and −inf and +inf are legal.
    score : ndarray of float, shape (n,), optional
        κ: higher is more foreign. None where every row shall be predicted.

    Raises
    ------
    InputError
        If there is no row, y is not finite, or an array is not numeric or of another length.

    Notes
    -----
    A model that has diverged may answer NaN: what depends on it is then missing, with the reason.

    Examples
    --------
    >>> Answers(y=[1.0], point=[1.5], lower=[0.0], upper=[2.0]).excess()
    array([-1.])
    """

    y: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    score: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check types and lengths."""
        object.__setattr__(self, "y", as_vector(self.y, "y"))
        for name in [item.name for item in fields(self)][1:]:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _numbers(value, name, len(self.y)))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.y)

    def excess(self) -> FloatArray:
        """max(L − y, y − U): how far the interval must grow to hold y, shape (n,)."""
        return np.maximum(self.lower - self.y, self.y - self.upper)


def calibration_shift(val: Answers, coverage: float = 0.9, rule: Rule = "paper") -> float:
    """The offset Q by which both ends of intervals move outward.

    Parameters
    ----------
    val : Answers
        Of validation rows.
    coverage : float
        Nominal coverage 1 − α, in (0, 1).
    rule : {"paper", "conformal"}
        ``paper``: the (⌊(1 − α)n⌋ + 1)-th smallest excess, as Gustafsson, Danelljan and Schön's
        code has it. ``conformal``: the ⌈(1 − α)(n + 1)⌉-th smallest, which covers 1 − α of
        exchangeable rows at least, on average over validation rows; infinite where n is less.

    Returns
    -------
    float
        In the units of y; negative where intervals shrink, NaN where an interval is missing.

    Raises
    ------
    InputError
        If the coverage leaves (0, 1) or the rule is unknown.

    Examples
    --------
    >>> y = np.arange(1.0, 10.0)
    >>> val = Answers(y=y, point=0 * y, lower=0 * y, upper=0 * y)
    >>> calibration_shift(val, 0.8), calibration_shift(val, 0.95, "conformal")
    (8.0, inf)
    """
    return _offset(val, coverage, rule).value


def evaluate_shift(
    val: Answers,
    tests: Mapping[str, Answers],
    *,
    coverage: float = 0.9,
    rule: Rule = "paper",
    share: float = SHARE,
) -> ShiftRun:
    """Calibrate one model on validation rows and see what its intervals do on test parts.

    Parameters
    ----------
    val : Answers
        Of validation rows: all of them give Q, accepted or not.
    tests : mapping of str to Answers
        Of test parts by name; the first is the main one.
    coverage : float
        Nominal coverage 1 − α, in (0, 1).
    rule : {"paper", "conformal"}
        See `calibration_shift`.
    share : float
        The threshold τ of the score is the (⌊share · n⌋ + 1)-th smallest κ of validation rows;
        rows with κ ≤ τ are predicted.

    Returns
    -------
    ShiftRun
        Missing answers, as of a network that diverged, leave numbers missing, with the reason.

    Raises
    ------
    InputError
        If there is no test, an option leaves its domain, or some parts have scores and others
        none.

    Examples
    --------
    >>> y = np.arange(10.0)
    >>> home = Answers(y=y, point=y, lower=y - 1, upper=y + 1, score=y)
    >>> away = Answers(y=y + 1.5, point=y, lower=y - 1, upper=y + 1, score=y + 5)
    >>> run = evaluate_shift(home, {"away": away})
    >>> run.q, run.tests["away"].coverage, run.tests["away"].prediction_rate
    (-1.0, 0.0, 0.5)
    """
    if not tests:
        raise InputError("tests must hold at least one part, got none")
    check_fraction(share, "share")
    for name, test in tests.items():
        if (test.score is None) != (val.score is None):
            has, lacks = ("val", name) if test.score is None else (name, "val")
            raise InputError(f"all parts must have scores or none, got them in {has}, not {lacks}")
    offset = _offset(val, coverage, rule)
    cut = None
    if val.score is not None:
        cut = Cut.at(val.score, threshold_rank(len(val), share), share)
    limit = np.inf if cut is None else cut.value
    return ShiftRun(
        val=_part(val, offset.value, limit),
        tests=MappingProxyType(
            {name: _part(test, offset.value, limit) for name, test in tests.items()}
        ),
        offset=offset,
        cut=cut,
    )


def _offset(val: Answers, coverage: float, rule: Rule) -> Cut:
    if rule not in get_args(Rule):
        raise InputError(f"rule must be 'paper' or 'conformal', got {rule!r}")
    return Cut.at(val.excess(), conformal_rank(len(val), coverage, rule), coverage)


@np.errstate(invalid="ignore")
def _part(answers: Answers, q: float, threshold: float) -> ShiftTest:
    return ShiftTest(
        excess=answers.excess(),
        error=np.abs(answers.y - answers.point),
        base_width=answers.upper - answers.lower,
        score=answers.score,
        q=q,
        threshold=threshold,
    )


def _numbers(value: npt.ArrayLike, name: str, length: int) -> FloatArray:
    """Numbers of which some may be missing or infinite, shape (n,)."""
    array = plain_array(value, name)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    check_length(array, name, length)
    return np.asarray(array, dtype=np.float64)
