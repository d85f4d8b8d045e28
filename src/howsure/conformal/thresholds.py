"""Finite-sample quantiles of calibration scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import (
    DELTA,
    RankRule,
    conformal_rank,
    order_statistics,
    repetitions,
    rows_needed,
)
from howsure.conformal.scores import Band, Score
from howsure.core.arrays import FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.weights import Weights

TooFew = Literal["infinite", "error"]
"""What is done where too few rows calibrate: an infinite threshold, or an error."""


@frozen
class Threshold:
    """A finite-sample quantile of calibration scores, and what it guarantees.

    Attributes
    ----------
    value : float
        The threshold; +inf where no finite score has the rank.
    rank : int
        Its rank among the calibration scores, from 1; above n there are too few rows.
    n : float
        Number of calibration rows.
    exact : bool
        Whether rows count in whole numbers, so that the guarantee holds.
    """

    value: float
    rank: int
    n: float
    exact: bool = True

    @property
    def expected_coverage(self) -> float:
        """Probability that a new row is covered: rank/(n + 1); NaN where none is guaranteed."""
        if not self.exact:
            return math.nan
        return 1.0 if math.isinf(self.value) else self.rank / (self.n + 1)


def conformal_threshold(
    scores: npt.ArrayLike,
    coverage: float,
    *,
    weights: Weights | None = None,
    rule: RankRule = "conformal",
    delta: float = DELTA,
    too_few: TooFew = "infinite",
) -> Threshold:
    """The threshold that an array of calibration scores leads to.

    Parameters
    ----------
    scores : array-like of shape (n,)
        One score a calibration row, of any kind: larger is further from what was predicted; +inf
        is out of reach.
    coverage : float
        Nominal coverage, in (0, 1).
    weights : Weights, optional
        A frequency of two is a row seen twice. Importance weights give the weighted quantile at
        Kish's effective number of rows, without a guarantee.
    rule : {"conformal", "paper", "pac"}
        See `conformal_rank`.
    delta : float
        δ of the rule ``pac``.
    too_few : {"infinite", "error"}
        What to do where no finite threshold reaches the coverage.

    Returns
    -------
    Threshold
        A new row whose score is at most its value is covered.

    Raises
    ------
    InputError
        If a score is missing, the coverage or δ is not in (0, 1), an option is unknown, or no
        finite threshold reaches the coverage and ``too_few="error"``.

    Examples
    --------
    >>> conformal_threshold(np.arange(1.0, 20.0), 0.9).value
    18.0
    """
    checked(too_few, TooFew, "too_few")
    finite_scores = as_vector(scores, "scores", finite=False)
    if weights is not None and len(weights.values) != len(finite_scores):
        raise InputError(f"weights must have {len(finite_scores)} rows, got {len(weights.values)}")
    n = float(len(finite_scores)) if weights is None else weights.effective_n
    exact = weights is None or weights.kind == "frequency"
    rank = conformal_rank(n, coverage, rule, delta)
    if rank > n:
        needed = rows_needed(coverage, rule, delta)
        check_few(too_few, f"coverage {coverage:g} needs {needed}; got {n:g}")
        return Threshold(math.inf, rank, n, exact)
    value = float(order_statistics(finite_scores, np.array([rank]), repetitions(weights))[0])
    if value == math.inf:
        check_few(
            too_few, f"coverage {coverage:g} cannot be reached because too many rows have width 0"
        )
    return Threshold(value, rank, n, exact)


def calibrate(
    score: Score,
    y: FloatArray,
    band: Band,
    coverage: float,
    *,
    weights: Weights | None = None,
    rule: RankRule = "conformal",
    delta: float = DELTA,
    too_few: TooFew = "infinite",
) -> Threshold:
    """Learn the threshold of a score from calibration rows.

    Parameters
    ----------
    score : Score
        How far y lies from the band.
    y : ndarray of float, shape (n,)
        What happened.
    band : Band
        What was predicted.
    coverage, weights, rule, delta, too_few
        As in `conformal_threshold`.

    Returns
    -------
    Threshold
        Raised by as many roundings as the calibration rows that it captures need in order to lie
        inside the closed region as computed.

    Raises
    ------
    InputError
        As `conformal_threshold`, if so many regions are unbounded already that none is needed,
        or if numbers overflow.

    Examples
    --------
    >>> from howsure.conformal import Offset
    >>> y = np.arange(1.0, 10.0)
    >>> calibrate(Offset(), y, Band(0 * y, 0 * y, 0 * y), 0.8).value
    8.0
    """
    threshold = conformal_threshold(
        held_scores(score, y, band),
        coverage,
        weights=weights,
        rule=rule,
        delta=delta,
        too_few=too_few,
    )
    check_bounded(threshold.value, coverage)
    return threshold


def check_bounded(value: float, coverage: float) -> None:
    """Refuse a threshold of −inf: regions so large already that they teach nothing."""
    if value == -math.inf:
        raise InputError(
            f"intervals at coverage {coverage:g} must be bounded on most calibration rows; too "
            "many have infinite ends"
        )


def held_scores(score: Score, y: FloatArray, band: Band) -> FloatArray:
    """Scores of rows, raised by roundings until each row lies in the region of its own score.

    Subtracting and adding again may miss y by its last bit. As regions grow with the threshold,
    any row whose raised score is at most a threshold lies in the region as computed.

    Examples
    --------
    >>> from howsure.conformal import Offset
    >>> at = np.array([1.0])
    >>> held_scores(Offset(), np.array([1.5]), Band(at, at, at))
    array([0.5])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        raised = np.array(score.score(y, band), dtype=np.float64)
        if np.isnan(raised).any():
            raise_too_large()
        rows = np.flatnonzero(np.isfinite(raised))
        step = np.spacing(np.maximum(np.abs(raised), 1e-300))
        while len(rows):
            lower, upper = score.region(band.take(rows), raised[rows])
            rows = rows[(y[rows] < lower) | (y[rows] > upper)]
            raised[rows] += step[rows]
            step[rows] *= 2.0
    return raised


def check_few(too_few: TooFew, reason: str) -> None:
    """Refuse where finite answers need more calibration rows and the caller wants no others."""
    if too_few == "error":
        raise InputError(f"too few calibration rows for a finite result: {reason}")


def raise_too_large() -> NoReturn:
    """Raise `InputError`: a difference or a ratio has left the range of floating point."""
    raise InputError("the differences between y and predictions are too large for floating point")


def raise_until_kept(value: float, lost: Callable[[float], bool]) -> float:
    """Raise a number by roundings, doubling, until nothing is lost.

    Subtracting and adding again may miss a value by its last bit; a threshold learnt from a row
    must still hold that row.

    Examples
    --------
    >>> raise_until_kept(1.0, lambda value: value < 1.0)
    1.0
    """
    step = float(np.spacing(max(abs(value), 1e-300)))
    while lost(value):
        value += step
        step *= 2.0
    return value
