"""Bootstrap of rows and of clusters, and a choice of rows that ignores their order.

What is resampled is a *unit*: a row, each copy of a row with a frequency weight, or a whole
cluster. Units are sorted by what they hold before any draw, so the order of rows changes
nothing, and a frequency weight of two draws exactly as the row written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.labels import as_labels
from howsure.core.rng import KeyArray, row_uniforms
from howsure.core.weights import Weights

AT_MOST = 20_000
_MOST_COPIES = 100_000_000
_CHUNK = 2_000_000
_LARGEST = 1e150

IntervalMethod = Literal["percentile", "bca"]


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Replicates of one or several numbers, drawn together.

    Attributes
    ----------
    estimate : ndarray of float, shape (k,)
        The numbers on the data.
    replicates : ndarray of float, shape (replicates, k)
        The numbers on each resample; columns share their draws, so that the difference of two
        columns is a replicate of the difference.
    units : int
        How many units were resampled.
    influence : ndarray of float, shape (units, k), optional
        How each unit moves the numbers; BCa needs it.
    note : str
        What limits the answer, in words.
    """

    estimate: FloatArray
    replicates: FloatArray
    units: int
    influence: FloatArray | None = None
    note: str = ""

    def standard_error(self) -> FloatArray:
        """Standard deviation of the replicates; NaN with fewer than two units."""
        if self.units < 2:
            return np.full(len(self.estimate), np.nan)
        return np.asarray(self.replicates.std(axis=0, ddof=1))

    def interval(
        self, confidence: float = 0.95, method: IntervalMethod = "percentile"
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence interval of each number.

        Parameters
        ----------
        confidence : float
            Nominal confidence.
        method : {"percentile", "bca"}
            Percentiles of the replicates at ranks (R + 1)p, or those that BCa corrects for bias
            and skewness.

        Returns
        -------
        lower, upper : ndarray of float, shape (k,)
            NaN with fewer than two units, or where a replicate is not finite.

        Raises
        ------
        InputError
            If the confidence lies outside (0, 1), the method is unknown, or BCa is asked for
            without influence values.

        Examples
        --------
        >>> from howsure.core.rng import child
        >>> drawn = bootstrap_means([1.0, 2.0, 3.0, 4.0], child(0, "example"))
        >>> lower, upper = drawn.interval(0.9)
        >>> bool(lower[0] < 2.5 < upper[0])
        True
        """
        alpha = 1 - check_fraction(confidence, "confidence")
        tails = np.broadcast_to([[alpha / 2], [1 - alpha / 2]], (2, len(self.estimate)))
        if method == "bca":
            tails = self._bca_tails(tails)
        elif method != "percentile":
            raise InputError(f"method must be 'percentile' or 'bca', got {method!r}")
        ends = np.full((2, len(self.estimate)), np.nan)
        for column, tail in enumerate(tails.T):
            draws = self.replicates[:, column]
            if self.units > 1 and np.isfinite(draws).all() and np.isfinite(tail).all():
                ends[:, column] = np.quantile(draws, tail, method="weibull")
        return ends[0], ends[1]

    def _bca_tails(self, tails: npt.NDArray[np.float64]) -> FloatArray:
        """Percentiles corrected for bias z₀ and acceleration a (Efron 1987, eq. 2.3)."""
        if self.influence is None:
            raise InputError("method 'bca' needs the influence of each unit")
        below = (self.replicates < self.estimate).mean(axis=0)
        equal = (self.replicates == self.estimate).mean(axis=0)
        rarest = 0.5 / len(self.replicates)
        bias = special.ndtri(np.clip(below + equal / 2, rarest, 1 - rarest))
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = self.influence / np.abs(self.influence).max(axis=0)
            squares, cubes = np.square(unit).sum(axis=0), (unit**3).sum(axis=0)
            skew = np.where(squares > 0, cubes / (6 * squares**1.5), 0.0)
        shifted = bias + special.ndtri(tails)
        stretch = 1 - skew * shifted
        with np.errstate(divide="ignore"):
            corrected = special.ndtr(bias + shifted / stretch)
        return np.where(stretch > 0, corrected, np.nan)


def bootstrap_means(
    scores: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 2000,
    *,
    weights: Weights | None = None,
    cluster: npt.ArrayLike | None = None,
    at_most: int = AT_MOST,
) -> Bootstrap:
    """Bootstrap weighted means of per-row scores, all columns on the same draws.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, k)
        Scores of the rows; for two models on the same rows, give a column each and their
        difference as a third.
    rng : numpy.random.Generator
        From `howsure.core.rng.child`.
    replicates : int
        How many resamples, at least 2.
    weights : Weights, optional
        Frequencies are copies of a row, drawn apart; an importance weight stays with its row.
    cluster : array-like of shape (n,), optional
        Labels of clusters of dependent rows: whole clusters are drawn, and the mean is the
        ratio of their sums.
    at_most : int
        With more units than this, units are first added up at random into this many blocks,
        and blocks are drawn: the standard error is still that of all rows.

    Returns
    -------
    Bootstrap

    Raises
    ------
    InputError
        If a score is not finite, lengths differ, or there are fewer than two replicates.
    UnanswerableError
        If frequency weights sum past a hundred million, or scores are too large to add up.

    Notes
    -----
    Source: B. Efron (1979); clusters: Davison and Hinkley, *Bootstrap Methods* (1997), 3.8.

    Examples
    --------
    >>> from howsure.core.rng import child
    >>> bootstrap_means([0.0, 1.0, 1.0, 1.0], child(0, "example")).standard_error()
    array([0.22])
    """
    table = as_matrix(scores, "scores")
    _check_count(replicates, "replicates", least=2)
    _check_count(at_most, "at_most", least=2)
    units = resampling_units(table, weights, cluster)
    note = ""
    if np.abs(units).max() > _LARGEST / len(units):
        raise UnanswerableError(f"scores that sum past {_LARGEST:g} are too large to resample")
    if len(units) > at_most:
        block = rng.permutation(len(units)) % at_most
        note = f"{len(units)} units were resampled in {at_most} random blocks"
        units = _sums_by(block, units)
    total = units.sum(axis=0)
    estimate = total[:-1] / total[-1]
    influence = (units[:, :-1] - estimate * units[:, -1:]) * (len(units) / total[-1])
    drawn = np.concatenate([counts @ units for counts in _unit_counts(rng, len(units), replicates)])
    return Bootstrap(estimate, drawn[:, :-1] / drawn[:, -1:], len(units), influence, note)


def bootstrap_statistic(
    function: Callable[[IntArray], npt.ArrayLike],
    n: int,
    rng: np.random.Generator,
    replicates: int = 2000,
    *,
    keys: KeyArray | None = None,
    influence: npt.ArrayLike | None = None,
) -> Bootstrap:
    """Bootstrap any statistic of rows.

    Parameters
    ----------
    function : callable
        Takes the numbers of the rows to use, shape (n,), with repeats, and returns a number or
        a vector of k numbers.
    n : int
        How many rows there are.
    rng : numpy.random.Generator
        From `howsure.core.rng.child`.
    replicates : int
        How many resamples, at least 2.
    keys : ndarray of uint64, shape (n,), optional
        From `howsure.core.rng.row_keys`: draws are attached to these, so that the order of rows
        changes nothing.
    influence : array-like of shape (n,) or (n, k), optional
        Influence of each row, for BCa; `jackknife_influence` computes it for any function.

    Returns
    -------
    Bootstrap

    Raises
    ------
    InputError
        If a count is too small, or lengths differ.

    Examples
    --------
    >>> from howsure.core.rng import child
    >>> y = np.array([1.0, 5.0, 2.0, 9.0])
    >>> bootstrap_statistic(lambda rows: np.median(y[rows]), 4, child(0, "example")).estimate
    array([3.5])
    """
    _check_count(n, "n", least=1)
    _check_count(replicates, "replicates", least=2)
    order = _canonical(n, keys)
    estimate = np.atleast_1d(np.asarray(function(order), dtype=np.float64))
    drawn = np.empty((replicates, len(estimate)))
    for row in drawn:
        row[:] = function(order[rng.integers(0, n, size=n)])
    moved = None if influence is None else as_matrix(influence, "influence", length=n)
    return Bootstrap(estimate, drawn, n, moved)


def jackknife_influence(function: Callable[[IntArray], npt.ArrayLike], n: int) -> FloatArray:
    """Influence of each row on a statistic, by leaving it out: (n − 1)(θ̄ − θ₋ᵢ).

    Parameters
    ----------
    function : callable
        As in `bootstrap_statistic`; it is called n times.
    n : int
        How many rows there are, at least 2.

    Returns
    -------
    ndarray of float, shape (n, k)

    Raises
    ------
    InputError
        If there are fewer than two rows.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> jackknife_influence(lambda rows: y[rows].mean(), 3)[:, 0]
    array([-2., -1.,  3.])
    """
    _check_count(n, "n", least=2)
    rows = np.arange(n)
    left_out = np.array(
        [np.atleast_1d(np.asarray(function(np.delete(rows, row)), dtype=float)) for row in rows]
    )
    return np.asarray((n - 1) * (left_out.mean(axis=0) - left_out))


def subsample(keys: KeyArray, at_most: int, *, seed: int, name: str) -> IntArray:
    """Choose at most so many rows at random, whatever their order.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n,)
        From `howsure.core.rng.row_keys`; rows with frequency weights are to be repeated first.
    at_most : int
        How many rows to choose, at least 1; all of them where there are no more.
    seed : int
        The experiment's seed.
    name : str
        What the choice is for; other names choose independently.

    Returns
    -------
    ndarray of int, shape (min(n, at_most),)
        Rows, in an order that depends on their content alone.

    Raises
    ------
    InputError
        If `at_most` is not a whole number of at least 1.

    Examples
    --------
    >>> from howsure.core.rng import row_keys
    >>> y = np.array([3.0, 1.0, 2.0, 5.0])
    >>> backwards = y[::-1]
    >>> first = y[subsample(row_keys(y), 2, seed=0, name="example")]
    >>> again = backwards[subsample(row_keys(backwards), 2, seed=0, name="example")]
    >>> bool((first == again).all())
    True
    """
    _check_count(at_most, "at_most", least=1)
    draws = row_uniforms(seed, name, keys)
    if len(draws) > at_most:
        rows = np.argpartition(draws, at_most - 1)[:at_most]
        return np.asarray(rows[np.argsort(draws[rows])])
    return np.asarray(np.argsort(draws))


def resampling_units(
    scores: FloatArray, weights: Weights | None = None, cluster: npt.ArrayLike | None = None
) -> FloatArray:
    """Sum scores and weights within each unit that is resampled as a whole.

    Parameters
    ----------
    scores : ndarray of float, shape (n, k)
        Scores of the rows.
    weights : Weights, optional
        Frequencies are copies of a row; an importance weight stays with its row.
    cluster : array-like of shape (n,), optional
        Labels of clusters.

    Returns
    -------
    ndarray of float, shape (units, k + 1)
        Sums of weight × score, and of the weights in the last column; sorted by content, so
        that neither the order of rows nor the names of clusters matter. Units of no weight are
        left out.

    Raises
    ------
    InputError
        If lengths differ.
    UnanswerableError
        If frequency weights sum past a hundred million.

    Examples
    --------
    >>> resampling_units(np.array([[5.0], [3.0], [4.0]]), cluster=["b", "a", "b"])
    array([[3., 1.], [9., 2.]])
    """
    n = len(scores)
    codes = np.arange(n) if cluster is None else _codes(cluster, n)
    if weights is None:
        units = np.column_stack((scores, np.ones(n)))
    elif weights.kind == "importance":
        mass = as_vector(weights.values, "weights", length=n)
        units = np.column_stack((scores * mass[:, None], mass))
    else:
        mass = as_vector(weights.values, "weights", length=n)
        if mass.sum() > _MOST_COPIES:
            raise UnanswerableError(
                f"frequency weights sum to {mass.sum():g} rows, too many to resample"
            )
        rows = np.repeat(np.arange(n), mass.astype(np.int64))
        units = np.column_stack((scores[rows], np.ones(len(rows))))
        codes = codes[rows]
    if cluster is not None:
        order = np.lexsort((*units.T, codes))
        units = _sums_by(codes[order], units[order])
    units = units[units[:, -1] > 0]
    return np.asarray(units[np.lexsort(units.T)])


def _codes(cluster: npt.ArrayLike, n: int) -> IntArray:
    labels = as_labels(cluster, "cluster", length=n)
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _sums_by(codes: IntArray, columns: FloatArray) -> FloatArray:
    return np.column_stack([np.bincount(codes, weights=column) for column in columns.T])


def _unit_counts(
    rng: np.random.Generator, units: int, replicates: int
) -> Iterator[npt.NDArray[np.int64]]:
    """How often each unit is drawn, some replicates at a time."""
    step = max(1, _CHUNK // units)
    for start in range(0, replicates, step):
        rows = min(step, replicates - start)
        drawn = rng.integers(0, units, size=(rows, units))
        drawn += units * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * units).reshape(rows, units)


def _canonical(n: int, keys: KeyArray | None) -> IntArray:
    if keys is None:
        return np.arange(n)
    if keys.shape != (n,):
        raise InputError(f"keys must have shape ({n},), got {keys.shape}")
    return np.asarray(np.argsort(keys))


def _check_count(value: int, name: str, *, least: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
