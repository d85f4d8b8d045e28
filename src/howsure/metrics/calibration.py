"""Calibration error: how far observed shares lie from the probabilities that were stated.

Probabilities are judged through the PIT of y (see `howsure.metrics.pit`), or at the levels of
quantile columns.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, check_levels, check_quantiles
from howsure.core.errors import InputError
from howsure.core.weights import check_multiplicities
from howsure.metrics.pit import PitCells, pit_cells
from howsure.stats.estimate import Estimate, weighted_mean

Weighting = Literal["uniform", "frequency"]


def calibration_error(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    exponent: float = 1.0,
    levels: int | npt.ArrayLike = 100,
    weighting: Weighting = "uniform",
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Regression calibration error: how far observed shares lie from the levels they should have.

    Σ_j v_j |p_j − q_j|^a, where q_j is the share of rows whose PIT is at most p_j (averaged over
    the PIT cell of a discrete law, so that a perfect discrete law has 0 in expectation of q too),
    and the v_j sum to one: all equal (``uniform``) or in proportion to q_j (``frequency``). Lower
    is better, 0 is perfect; units are those of probability to the power a; the notion is marginal.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,), optional
        P(Y < y) of each row, for discrete laws.
    exponent : float
        The power a, at least 1.
    levels : int or array-like of shape (m,)
        The levels p_j, or their number m for even steps from 1e-5 to 1 − 1e-5.
    weighting : {"uniform", "frequency"}
        The v_j above.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        ``null`` is the expectation for a perfect model of this n: from the exact mean absolute
        deviation of a binomial (a = 1, continuous laws), the exact variance (a = 2), else the
        normal limit. The influence is the derivative by the q_j; within noise of a perfect model
        the absolute value has a kink, so there compare with ``null`` rather than with 0.

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.

    Notes
    -----
    Kuleshov, Fenner and Ermon (2018), Accurate uncertainties for deep learning using calibrated
    regression, ICML, which has a = 2 and any v_j.

    Examples
    --------
    >>> calibration_error((np.arange(1000) + 0.5) / 1000).value < 1e-3
    True
    >>> calibration_error([0.5, 0.5], levels=[0.25, 0.75]).value
    0.25
    """
    grid = _levels(levels)
    cells = pit_cells(pit, left, weights)
    observed = cells.observed(grid)
    value, slope = _gap(grid, observed, exponent, weighting)
    if math.isnan(value):
        return Estimate(value, reason="no row has its PIT at or below any level")
    influence = cells.dot(grid, slope) - float(slope @ observed)
    expected = expected_gap(grid, cells, exponent)
    return Estimate(value, influence, _level_mean(expected, grid, weighting))


def calibration_error_quantiles(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    exponent: float = 1.0,
    weighting: Weighting = "uniform",
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Regression calibration error of quantile columns, at their own levels only.

    As `calibration_error`, with q_j the share of rows where y is at most the quantile at p_j.
    Lower is better, 0 is perfect; the notion is marginal. Values at other levels than the same
    are not comparable.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles in the units of y, one column a level.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).
    exponent, weighting, weights
        As in `calibration_error`.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If an argument leaves its domain, or shapes differ.

    Notes
    -----
    Source as in `calibration_error`.

    Examples
    --------
    >>> calibration_error_quantiles([1.0, 2.0], [[1.5], [1.5]], [0.9]).value
    0.4
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    w = check_multiplicities(weights, len(truth))
    observed = column_shares(truth, table, w)
    value, slope = _gap(grid, observed, exponent, weighting)
    if math.isnan(value):
        return Estimate(value, reason="no row lies at or below any quantile")
    influence = np.full(len(truth), -float(slope @ observed))
    for column, factor in zip(table.T, slope, strict=True):
        influence += factor * (truth <= column)
    total = float(len(truth)) if w is None else float(w.sum())
    expected = _moment(grid, grid * (1.0 - grid), total, exponent, exact=True)
    return Estimate(value, influence, _level_mean(expected, grid, weighting))


def column_shares(y: FloatArray, quantiles: FloatArray, w: FloatArray | None) -> FloatArray:
    """Share of rows where y is at most the quantile, for each column; nothing is checked.

    Parameters
    ----------
    y : ndarray of float, shape (n,)
        What happened.
    quantiles : ndarray of float, shape (n, k)
        Predicted quantiles.
    w : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    ndarray of float, shape (k,)

    Examples
    --------
    >>> column_shares(np.array([1.0, 2.0]), np.array([[1.5, 3.0], [1.5, 3.0]]), None)
    array([0.5, 1. ])
    """
    return np.array([weighted_mean((y <= column).astype(np.float64), w) for column in quantiles.T])


def expected_gap(grid: FloatArray, cells: PitCells, exponent: float) -> FloatArray:
    """E|q(p) − p|^a of a perfect model, at each level.

    Given y, a share h(p) of a row is the mean of an indicator; so under the right law its
    variance is p(1 − p) less the mean of h(1 − h), which the rows estimate.

    Parameters
    ----------
    grid : ndarray of float, shape (k,)
        Levels p, rising, in (0, 1).
    cells : PitCells
        Where each row's PIT may lie.
    exponent : float
        The power a, at least 1.

    Returns
    -------
    ndarray of float, shape (k,)

    Examples
    --------
    >>> expected_gap(np.array([0.5]), pit_cells([0.2, 0.7]), 2.0)
    array([0.125])
    """
    variance = grid * (1.0 - grid)
    if not cells.continuous:
        observed = cells.observed(grid)
        within = observed - cells.second_moment(grid, observed)
        variance = np.maximum(variance - within, 0.0)
    return _moment(grid, variance, cells.total, exponent, exact=cells.continuous)


def _gap(
    grid: FloatArray, observed: FloatArray, exponent: float, weighting: str
) -> tuple[float, FloatArray]:
    """Σ_j v_j |p_j − q_j|^a, and its derivative by each q_j."""
    if not exponent >= 1.0:
        raise InputError(f"exponent must be at least 1, got {exponent!r}")
    difference = observed - grid
    size = np.abs(difference)
    power = size**exponent
    slope = exponent * size ** (exponent - 1.0) * np.sign(difference)
    if weighting == "uniform":
        return float(power.mean()), slope / len(grid)
    if weighting != "frequency":
        raise InputError(f"weighting must be 'uniform' or 'frequency', got {weighting!r}")
    norm = float(observed.sum())
    if norm == 0.0:
        return math.nan, slope
    value = float(observed @ power) / norm
    return value, (power + observed * slope - value) / norm


def _level_mean(expected: FloatArray, grid: FloatArray, weighting: str) -> float:
    return float(expected.mean() if weighting == "uniform" else grid @ expected / grid.sum())


def _moment(
    grid: FloatArray, variance: FloatArray, total: float, exponent: float, *, exact: bool
) -> FloatArray:
    """E|mean of n − p|^a, exact for binomial counts at a = 1 (De Moivre) and at a = 2."""
    if exact and exponent == 1.0:
        n = max(1.0, float(round(total)))
        above = np.floor(n * grid) + 1.0
        logs = (
            special.gammaln(n + 1.0)
            - special.gammaln(above)
            - special.gammaln(n - above + 1.0)
            + above * np.log(grid)
            + (n - above + 1.0) * np.log1p(-grid)
        )
        return np.asarray(2.0 * np.exp(logs) / n)
    half = exponent / 2.0
    absolute = 2.0**half * special.gamma(half + 0.5) / math.sqrt(math.pi)  # E|Z|^a
    return np.asarray(absolute * (variance / total) ** half)


def _levels(levels: int | npt.ArrayLike) -> FloatArray:
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        if levels < 2:
            raise InputError(f"levels must be at least 2, got {levels}")
        return np.linspace(1e-5, 1.0 - 1e-5, int(levels))
    return check_levels(levels)
