"""Finite-sample quantiles of calibration scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.weights import Weights
from howsure.methods.conformal.ranks import (
    RankRule,
    conformal_rank,
    order_statistics,
    repetitions,
    rows_needed,
)
from howsure.methods.conformal.scores import Band, Score

TooFew = Literal["infinite", "error"]


@dataclass(frozen=True, slots=True)
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


def calibrate(
    score: Score,
    y: FloatArray,
    band: Band,
    coverage: float,
    *,
    weights: Weights | None = None,
    rule: RankRule = "conformal",
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
    coverage : float
        Nominal coverage, in (0, 1).
    weights : Weights, optional
        A frequency of two is a row seen twice. Importance weights give the weighted quantile at
        Kish's effective number of rows, without a guarantee.
    rule : {"conformal", "paper"}
        See `conformal_rank`.
    too_few : {"infinite", "error"}
        What to do where no finite threshold reaches the coverage.

    Returns
    -------
    Threshold
        Raised by as many roundings as the calibration rows that it captures need in order to lie
        inside the closed region as computed.

    Raises
    ------
    InputError
        If the coverage is not in (0, 1), no finite threshold reaches it and ``too_few="error"``,
        so many regions are unbounded already that none is needed, or numbers overflow.

    Examples
    --------
    >>> from howsure.methods.conformal import Offset
    >>> y = np.arange(1.0, 10.0)
    >>> calibrate(Offset(), y, Band(0 * y, 0 * y, 0 * y), 0.8).value
    8.0
    """
    check_too_few(too_few)
    n = float(len(y)) if weights is None else weights.effective_n
    exact = weights is None or weights.kind == "frequency"
    rank = conformal_rank(n, coverage, rule)
    if rank > n:
        check_few(too_few, f"coverage {coverage:g} needs {rows_needed(coverage)}, got {n:g}")
        return Threshold(math.inf, rank, n, exact)
    scores = score.score(y, band)
    if np.isnan(scores).any():
        raise_too_large()
    value = float(order_statistics(scores, np.array([rank]), repetitions(weights))[0])
    if value == -math.inf:
        raise InputError(
            f"intervals at coverage {coverage:g} must be bounded on most calibration rows, "
            "got too many with infinite ends to learn how far to move them"
        )
    if value == math.inf:
        check_few(too_few, f"coverage {coverage:g} is out of reach where so many have no width")
        return Threshold(value, rank, n, exact)
    captured = np.flatnonzero(scores <= value)
    held = _held_by(score, y[captured], band.take(captured), value)
    return Threshold(held, rank, n, exact)


def check_too_few(too_few: str) -> None:
    """Raise `InputError` unless the choice is known."""
    if too_few not in ("infinite", "error"):
        raise InputError(f"too_few must be 'infinite' or 'error', got {too_few!r}")


def check_few(too_few: TooFew, reason: str) -> None:
    """Refuse where finite answers need more calibration rows and the caller wants no others."""
    if too_few == "error":
        raise InputError(f"calibration rows must suffice for a finite answer: {reason}")


def raise_too_large() -> NoReturn:
    """Raise `InputError`: a difference or a ratio has left the range of floating point."""
    raise InputError(
        "y and predictions must differ by amounts that floating point holds, got some too large"
    )


def held(value: float, lost: Callable[[float], bool]) -> float:
    """Raise a number by roundings, doubling, until nothing is lost.

    Subtracting and adding again may miss a value by its last bit; a threshold learnt from a row
    must still hold that row.

    Examples
    --------
    >>> held(1.0, lambda value: value < 1.0)
    1.0
    """
    step = float(np.spacing(max(abs(value), 1e-300)))
    while lost(value):
        value += step
        step *= 2.0
    return value


def _held_by(score: Score, y: FloatArray, band: Band, value: float) -> float:
    lower, upper = score.region(band, value)
    near = np.flatnonzero((y < lower) | (y > upper))
    if not len(near):
        return value
    edge, rows = y[near], band.take(near)

    def lost(threshold: float) -> bool:
        low, high = score.region(rows, threshold)
        return bool(((edge < low) | (edge > high)).any())

    return held(value, lost)
