"""Calibration curve: observed shares against the levels they should have, with bands.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, check_levels, check_quantiles
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import check_multiplicities
from howsure.stats.ecdf import EcdfBand, pointwise_band, simultaneous_band
from howsure.stats.estimate import Estimate, NormNoise, weighted_mean
from howsure.topics.pit import PitCells, Version, pit_cells


@frozen
class CalibrationCurve:
    """Observed shares against the levels they should have."""

    levels: FloatArray  # shape (k,): nominal levels
    # shape (k,): share of rows at or below each level, or inside the centred interval of that
    # coverage
    observed: FloatArray
    standard_error: FloatArray  # shape (k,): of `observed`, each alone; NaN for one row
    # what a perfect model of this n stays inside, at one level and at all levels together. Exact
    # for continuous laws, conservative for discrete ones.
    pointwise: EcdfBand
    simultaneous: EcdfBand


def calibration_curve(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    levels: npt.ArrayLike | None = None,
    version: Version = "quantile",
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
) -> CalibrationCurve:
    """Observed shares at nominal levels, with the bands of a perfect model.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,), optional
        P(Y < y) of each row, for discrete laws.
    levels : array-like of shape (k,), optional
        Nominal levels in (0, 1), rising; 0.01 to 0.99 by default.
    version : {"quantile", "interval"}
        Share of y at or below the quantile of a level, or inside the centred interval of that
        coverage, |2·PIT − 1| ≤ level.
    confidence : float
        Confidence of the bands, in (0, 1).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    CalibrationCurve

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.

    Notes
    -----
    Bands as in `howsure.stats.ecdf.simultaneous_band`.

    Examples
    --------
    >>> calibration_curve([0.2, 0.6], levels=[0.5]).observed
    array([0.5])
    >>> calibration_curve([0.2, 0.6], levels=[0.5], version="interval").observed
    array([0.5])
    """
    grid = np.arange(1, 100) / 100.0 if levels is None else check_levels(levels)
    cells = pit_cells(pit, left, weights, version)
    observed = cells.observed(grid)
    square = cells.second_moment(grid, observed)
    return _curve(grid, observed, square, cells.total, confidence)


def calibration_curve_quantiles(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
) -> CalibrationCurve:
    """Observed shares below quantile columns, at their own levels only.

    Bands as in `howsure.stats.ecdf.simultaneous_band`.

    Examples
    --------
    >>> calibration_curve_quantiles([1.0, 2.0], [[1.5], [1.5]], [0.9]).observed
    array([0.5])
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    w = check_multiplicities(weights, len(truth))
    observed = column_shares(truth, table, grid, w)
    total = float(len(truth)) if w is None else float(w.sum())
    return _curve(grid, observed, observed, total, confidence)


def _curve(
    grid: FloatArray, observed: FloatArray, square: FloatArray, total: float, confidence: float
) -> CalibrationCurve:
    size = max(1, round(total))
    variance = np.maximum(square - np.square(observed), 0.0)
    error = np.sqrt(variance / (total - 1.0)) if total > 1.0 else np.full(len(grid), math.nan)
    return CalibrationCurve(
        grid,
        observed,
        error,
        pointwise_band(size, grid, confidence=confidence),
        simultaneous_band(size, grid, confidence=confidence),
    )


# ---- calibration error: how far observed shares lie from the probabilities that were stated ------
# Probabilities are judged through the PIT of y (see `howsure.topics.pit`), or at the levels of
# quantile columns.
# Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
# so that they sum to Kish's effective n, which then is the n of the nulls and the bands.

Weighting = Literal["uniform", "frequency"]
# Levels over which the expected area of a perfect model is averaged: the curve is smooth, so that
# a midpoint rule of 512 has six digits.
_NULL_POINTS = 512
# Levels at which the noise of an area is drawn; its law hardly depends on them.
_NOISE_POINTS = (np.arange(100) + 0.5) / 100
# PIT cells narrower than this count as one point in exact areas: a quotient by their width would
# be rounding.
_MIN_WIDTH_OF_CELL = 1e-9


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
    null = _level_mean(expected, grid, weighting)
    noise = _noise(value, grid, cells.total, weighting) if exponent == 1.0 else None
    return Estimate(value, influence, null, noise=noise)


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
    Where y repeats, as whole numbers do, a quantile claims P(Y < q) ≤ p ≤ P(Y ≤ q), and q_j is
    p_j where the two shares enclose it, else the nearer of them. Lower is better, 0 is perfect;
    the notion is marginal. Values at other levels than the same are not comparable. ``null`` is
    that of values that do not repeat, and an upper bound for others.

    Source as in `calibration_error`.

    Examples
    --------
    >>> calibration_error_quantiles([1.0, 2.0], [[1.5], [1.5]], [0.9]).value
    0.4
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    w = check_multiplicities(weights, len(truth))
    observed = column_shares(truth, table, grid, w)
    value, slope = _gap(grid, observed, exponent, weighting)
    if math.isnan(value):
        return Estimate(value, reason="no row is at or below any quantile")
    influence = np.zeros(len(truth))
    for column, factor, level, share in zip(table.T, slope, grid, observed, strict=True):
        below = (truth <= column if share <= level else truth < column).astype(np.float64)
        if weighted_mean(below, w) == share:  # else it lies between both, where no row moves it
            influence += factor * (below - share)
    total = float(len(truth)) if w is None else float(w.sum())
    expected = _moment(grid, grid * (1.0 - grid), total, exponent, exact=True)
    null = _level_mean(expected, grid, weighting)
    noise = _noise(value, grid, total, weighting) if exponent == 1.0 else None
    return Estimate(value, influence, null, noise=noise)


def column_shares(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, w: FloatArray | None
) -> FloatArray:
    """The share of rows below each quantile column that is nearest to its level, see Notes.

    From the share where y < q to the share where y ≤ q, which differ where some y are equal to
    their quantile.

    Examples
    --------
    >>> column_shares(np.array([1.0, 2.0]), np.array([[1.5, 2.0], [1.5, 2.0]]), [0.3, 0.9], None)
    array([0.5, 0.9])
    """
    below, upto = (
        np.array([weighted_mean(side(y, column).astype(np.float64), w) for column in quantiles.T])
        for side in (np.less, np.less_equal)
    )
    return np.clip(levels, below, upto)


def expected_gap(grid: FloatArray, cells: PitCells, exponent: float) -> FloatArray:
    """E|q(p) − p|^a of a perfect model, at each level.

    Given y, a share h(p) of a row is the mean of an indicator; so under the right law its
    variance is p(1 − p) less the mean of h(1 − h), which the rows estimate.

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


def _noise(value: float, grid: FloatArray, total: float, weighting: str) -> NormNoise:
    """What chance adds to a mean of |q(p) − p|: the same mean of a Brownian bridge over √n."""
    norms = _bridge_norms(grid.tobytes(), weighting) / math.sqrt(total)
    return NormNoise(norms, lambda most: value - most)


@lru_cache(maxsize=32)
def _bridge_norms(levels: bytes, weighting: str) -> FloatArray:
    grid = np.frombuffer(levels)
    steps = np.sqrt(np.diff(grid, prepend=0.0, append=1.0))
    # A 95 % quantile of 4,000 draws is off by .3 points.
    walk = np.cumsum(child(0, "bridges").standard_normal((4_000, len(steps))) * steps, axis=1)
    share = grid / grid.sum() if weighting == "frequency" else np.full(len(grid), 1.0 / len(grid))
    norms = np.abs(walk[:, :-1] - walk[:, -1:] * grid) @ share
    norms.setflags(write=False)
    return np.asarray(norms)


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
        return 2.0 * np.exp(logs) / n
    half = exponent / 2.0
    absolute = 2.0**half * special.gamma(half + 0.5) / math.sqrt(math.pi)  # E|Z|^a
    return np.asarray(absolute * (variance / total) ** half)


def _levels(levels: int | npt.ArrayLike) -> FloatArray:
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        if levels < 2:
            raise InputError(f"levels must be at least 2, got {levels}")
        return np.linspace(1e-5, 1.0 - 1e-5, int(levels))
    return check_levels(levels)


def miscalibration_area(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    version: Version = "quantile",
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Area between the calibration curve and the diagonal.

    ∫₀¹ |q(p) − p| dp, integrated exactly piece by piece, where q(p) is the share of rows whose PIT
    is at most p (``quantile``), or whose centred interval of coverage p holds y (``interval``).
    Lower is better, from 0 to ½, in units of probability; the notion is marginal. The interval
    version does not see errors that cancel between the two sides, such as bias.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,), optional
        P(Y < y) of each row, for discrete laws.
    version : {"quantile", "interval"}
        Which curve.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        ``null`` is the expectation for a perfect model of this n, about 0.313/√n for continuous
        laws. On the influence near a perfect model see
        `calibration_error`.

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.

    Notes
    -----
    Named by Tran et al. (2020), Methods for comparing uncertainty quantifications for material
    property predictions, Machine Learning: Science and Technology 1.

    Examples
    --------
    >>> miscalibration_area([0.5]).value
    0.25
    >>> miscalibration_area([0.5], version="interval").value
    0.5
    """
    cells = pit_cells(pit, left, weights, version)
    value, influence = _area(cells)
    grid = (np.arange(_NULL_POINTS) + 0.5) / _NULL_POINTS
    null = float(expected_gap(grid, cells, 1.0).mean())
    return Estimate(
        value, influence, null, noise=_noise(value, _NOISE_POINTS, cells.total, "uniform")
    )


def _area(cells: PitCells) -> tuple[float, FloatArray]:
    """∫₀¹ |q(p) − p| dp for piecewise linear q, and its influence values.

    With S(x) = ∫ₓ¹ sign(q(p) − p) dp, adding a row at x moves the area by S(x), and one spread
    over a cell by the mean of S over it.
    """
    lower_ends, right = cells.left, cells.right
    mass = cells.mass(cells.share)
    wide = (
        np.flatnonzero(right - lower_ends >= _MIN_WIDTH_OF_CELL)
        if not cells.continuous
        else np.arange(0)
    )
    width = right[wide] - lower_ends[wide]
    jump = np.ones(len(lower_ends)) if mass is None else mass.copy()
    rate = jump[wide] / width
    jump[wide] = 0.0
    position = np.concatenate([lower_ends, right[wide], [0.0, 1.0]])
    order = np.argsort(position, kind="stable")
    knot = np.empty(len(order), dtype=np.int64)
    knot[order] = np.arange(len(order))
    opens, closes = knot[: len(lower_ends)], knot[len(lower_ends) : len(lower_ends) + len(wide)]
    knots = position[order]
    step = np.diff(knots)
    pad = np.zeros(len(wide) + 2)
    after = np.append(jump, pad)[order].cumsum()  # share at each knot, slopes left out so far
    start, end = after[:-1], after[:-1]
    if len(wide):
        bend = np.zeros(len(order))
        bend[opens[wide]] = rate
        bend[closes] = -rate
        coarse, fine = _halves(bend)
        slope = coarse.cumsum() + fine.cumsum()
        rise = np.append(0.0, (slope[:-1] * step).cumsum())
        start, end = start + rise[:-1], end + rise[1:]
    first, last = start / cells.total - knots[:-1], end / cells.total - knots[1:]
    area, signed, doubled = _signed_areas(first, last, step)
    sign_after = np.append(signed[::-1].cumsum()[::-1], 0.0)  # S at each knot
    moved = sign_after[opens]
    if len(wide):
        integrals = _halves(doubled + sign_after[1:] * step)  # ∫ S over each step
        coarse, fine = (np.append(0.0, half.cumsum()) for half in integrals)
        within = (coarse[closes] - coarse[opens[wide]]) + (fine[closes] - fine[opens[wide]])
        moved[wide] = within / width
    influence = cells.by_row(moved)
    return area, influence - weighted_mean(influence, cells.weights)


def _halves(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values as a coarse half, whose running sums are exact, and the fine rest.

    Sums over a few of many values, such as the slopes that remain where a steep cell has closed,
    then keep their digits.
    """
    unit = 2.0 ** (math.frexp(float(np.abs(values).sum()))[1] - 50)
    coarse = np.round(values / unit) * unit
    return coarse, values - coarse


def _signed_areas(
    first: FloatArray, last: FloatArray, step: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Areas of straight gaps from ``first`` to ``last`` over segments of length ``step``.

    Returns the sum of ∫|gap|, and for each segment ∫ sign(gap) dp and ∫ sign(gap)·(p − start) dp.
    """
    a, b = np.abs(first), np.abs(last)
    crossing = first * last < 0.0
    before_crossing = np.ones(len(step))
    before_crossing[crossing] = a[crossing] / (a[crossing] + b[crossing])
    area = (
        float(
            (
                np.where(crossing, a * before_crossing + b * (1.0 - before_crossing), a + b) * step
            ).sum()
        )
        / 2.0
    )
    sign = np.where(first == 0.0, np.sign(last), np.sign(first))
    signed = sign * (2.0 * before_crossing - 1.0) * step
    doubled = sign * (2.0 * np.square(before_crossing) - 1.0) * np.square(step) / 2.0
    return area, signed, doubled
