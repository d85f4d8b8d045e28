"""Rejection: how error falls as the rows that score worst are withheld."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.brief import brief_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionCurve:
    """Mean error of the rows kept against the share rejected.

    Attributes
    ----------
    rejected : ndarray of float, shape (n,)
        Share rejected, 0, 1/n, …, (n−1)/n.
    error : ndarray of float, shape (n,)
        Mean error of the rows kept, those with the highest scores rejected first.
    random : float
        Mean error of all rows: what random rejection keeps in expectation.
    oracle : ndarray of float, shape (n,)
        The same with the largest errors rejected first.
    area, random_area, oracle_area : float
        Means of the three over the shares; lower is better.
    gain : float
        (random_area − area) / (random_area − oracle_area): 1 for the oracle, 0 for random
        rejection, negative for worse; NaN where all errors are equal.
    """

    rejected: FloatArray
    error: FloatArray
    random: float
    oracle: FloatArray
    area: float
    random_area: float
    oracle_area: float
    gain: float

    __repr__ = brief_repr


def rejection_curve(scores: npt.ArrayLike, errors: npt.ArrayLike) -> RejectionCurve:
    """Error of the rows kept when the rows with the highest scores are withheld.

    Parameters
    ----------
    scores : array-like of shape (n,)
        What decides: higher is rejected earlier, such as a congruence error. Rows of equal
        score are rejected in random order; the curve is its expectation.
    errors : array-like of shape (n,)
        Loss of each row: absolute error, or negative log likelihood.

    Returns
    -------
    RejectionCurve

    Raises
    ------
    InputError
        If the lengths differ or a number is not finite.

    Examples
    --------
    >>> curve = rejection_curve([1.0, 2.0, 3.0], [0.0, 1.0, 5.0])
    >>> curve.error.tolist(), curve.gain
    ([2.0, 0.5, 0.0], 1.0)
    """
    score = as_vector(scores, "scores")
    loss = as_vector(errors, "errors", length=len(score))
    kept = _kept_means(score, loss)
    oracle = _kept_means(loss, loss)
    overall = float(loss.mean())
    area, best = float(kept.mean()), float(oracle.mean())
    flat = np.ptp(loss) == 0.0
    return RejectionCurve(
        rejected=np.arange(len(loss)) / len(loss),
        error=kept[::-1],
        random=overall,
        oracle=oracle[::-1],
        area=area,
        random_area=overall,
        oracle_area=best,
        gain=float("nan") if flat else (overall - area) / (overall - best),
    )


def rejection_at(
    scores: npt.ArrayLike, errors: npt.ArrayLike, thresholds: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Share rejected and error of the rows kept, at given thresholds of the score.

    Parameters
    ----------
    scores, errors : array-like of shape (n,)
        As in `rejection_curve`; a row is rejected if its score exceeds the threshold.
    thresholds : array-like of shape (t,)
        In the units of the score.

    Returns
    -------
    rejected : ndarray of float, shape (t,)
    error : ndarray of float, shape (t,)
        NaN where every row is rejected.

    Raises
    ------
    InputError
        If the lengths differ or a number is not finite.

    Examples
    --------
    >>> rejection_at([0.1, 0.3], [1.0, 3.0], [0.0, 0.2, 0.4])
    (array([1. , 0.5, 0. ]), array([nan, 1., 2.]))
    """
    score = as_vector(scores, "scores")
    loss = as_vector(errors, "errors", length=len(score))
    order = np.argsort(score, kind="stable")
    kept = np.searchsorted(score[order], as_vector(thresholds, "thresholds"), side="right")
    total = np.concatenate([[0.0], np.cumsum(loss[order])])
    error = np.divide(total[kept], kept, out=np.full(len(kept), np.nan), where=kept > 0)
    return 1.0 - kept / len(score), error


def _kept_means(score: FloatArray, loss: FloatArray) -> FloatArray:
    """Expected mean loss of the 1, 2, …, n rows with the lowest scores."""
    order = np.argsort(score, kind="stable")
    ranked = score[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    sizes = np.diff(np.r_[starts, len(ranked)])
    tied = np.add.reduceat(loss[order], starts) / sizes
    means: FloatArray = np.cumsum(np.repeat(tied, sizes)) / np.arange(1, len(loss) + 1)
    return means
