"""Which rows to predict: those whose score is at most a threshold learnt at home."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import conformal_rank, order_statistics
from howsure.core.arrays import BoolArray, as_vector, check_fraction
from howsure.topics.selective import Acceptance, acceptance

SHARE: Final = 0.95
"""The share of validation rows accepted, nearly; that of Gustafsson, Danelljan and Schön."""


def threshold_rank(n: int, share: float = SHARE) -> int:
    """Rank of the validation score that serves as threshold, ⌊share · n⌋ + 1.

    Parameters
    ----------
    n : int
        Number of validation rows, at least 1.
    share : float
        In (0, 1).

    Returns
    -------
    int
        Counted from 1; at most n.

    Examples
    --------
    >>> threshold_rank(20), threshold_rank(1)
    (20, 1)
    """
    return conformal_rank(n, check_fraction(share, "share"), "paper")


def threshold(scores: npt.ArrayLike, share: float = SHARE) -> float:
    """The threshold τ of a score: rows with κ ≤ τ are predicted.

    Parameters
    ----------
    scores : array-like of shape (n,)
        κ of validation rows; higher is more foreign.
    share : float
        The share of validation rows to accept, in (0, 1).

    Returns
    -------
    float
        The (⌊share · n⌋ + 1)-th smallest score, so that a little more than the share of the
        validation rows is accepted; more where scores tie.

    Raises
    ------
    InputError
        If there is no row, a score is NaN, or the share leaves (0, 1).

    Notes
    -----
    Source: Gustafsson, Danelljan and Schön (TMLR 2023), section 4, and their code.

    Examples
    --------
    >>> threshold(range(100))
    95.0
    """
    given = as_vector(scores, "scores", finite=False)
    rank = threshold_rank(len(given), share)
    return float(order_statistics(given, np.array([rank]))[0])


def accepts(scores: npt.ArrayLike, limit: float) -> BoolArray:
    """Whether each row is predicted, κ ≤ τ.

    Parameters
    ----------
    scores : array-like of shape (n,)
        κ of the rows.
    limit : float
        τ, of `threshold`.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> accepts([1.0, 2.0], 1.0)
    array([ True, False])
    """
    return np.asarray(as_vector(scores, "scores", finite=False) <= limit)


def prediction_rate(scores: npt.ArrayLike, limit: float) -> float:
    """Share of the rows that are predicted, in [0, 1].

    Parameters
    ----------
    scores, limit
        As in `accepts`.

    Returns
    -------
    float

    Examples
    --------
    >>> prediction_rate([1.0, 2.0], 1.0)
    0.5
    """
    return float(accepts(scores, limit).mean())


def score_acceptance(loss: npt.ArrayLike, scores: npt.ArrayLike) -> Acceptance:
    """Rows in the order in which a falling threshold of the score would refuse them.

    Parameters
    ----------
    loss : array-like of shape (n,)
        |y − point|, 1 for a miss and 0 for a hit, or any other loss; lower is better.
    scores : array-like of shape (n,)
        κ of the rows.

    Returns
    -------
    Acceptance
        Its `curve` is the risk–coverage curve, its `aurc` the area under it.

    Raises
    ------
    InputError
        As `howsure.topics.selective.acceptance`.

    Examples
    --------
    >>> score_acceptance([1.0, 3.0], [0.1, 0.2]).curve(at=()).risk
    array([1., 2.])
    """
    return acceptance(loss, scores)
