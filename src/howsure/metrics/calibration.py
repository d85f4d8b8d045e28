"""Calibration: do the stated probabilities and standard deviations match what happens?

Probabilities are judged through the probability integral transform (PIT) of y, which is uniform
on [0, 1] where the belief is right. A discrete law has P(Y < y) < P(Y ≤ y), and y's PIT is then
spread evenly between the two (the non-randomised PIT of Czado, Gneiting and Held 2009): pass the
first as ``left``. For a continuous law leave ``left`` out.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    FloatArray,
    IntArray,
    Weights,
    as_matrix,
    as_vector,
    check_fraction,
    check_levels,
)
from howsure.core.errors import InputError
from howsure.stats.ecdf import (
    EcdfBand,
    check_pit,
    grid_dot,
    grid_sums,
    pointwise_band,
    simultaneous_band,
)
from howsure.stats.estimate import Statistic, mean_statistic

Version = Literal["quantile", "interval"]
Weighting = Literal["uniform", "frequency"]

_NULL_POINTS = 512  # levels over which the expected area of a perfect model is averaged
_NARROW = 1e-9  # PIT cells narrower than this count as one point in exact areas


# --- the PIT -------------------------------------------------------------------------------------


def randomised_pit(pit: npt.ArrayLike, left: npt.ArrayLike, uniforms: npt.ArrayLike) -> FloatArray:
    """Randomised PIT: a uniform draw between P(Y < y) and P(Y ≤ y).

    u = left + v (pit − left). Exactly uniform under the right law, discrete or not.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,)
        P(Y < y) of each row, at most ``pit``.
    uniforms : array-like of shape (n,)
        One draw v in [0, 1] a row, such as those of `howsure.core.rng.row_uniforms`.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a value leaves [0, 1], ``left`` exceeds ``pit``, or lengths differ.

    Notes
    -----
    Czado, Gneiting and Held (2009), Predictive model assessment for count data, Biometrics 65,
    1254-1261, section 2.

    Examples
    --------
    >>> randomised_pit([0.5, 1.0], [0.0, 0.5], [0.5, 0.5])
    array([0.25, 0.75])
    """
    low, high = _check_cells(pit, left)
    draws = check_pit(uniforms, "uniforms", length=len(high))
    return low + draws * (high - low)


@dataclass(frozen=True, slots=True)
class PitHistogram:
    """Shares of the PIT in bins of equal width.

    Attributes
    ----------
    edges : ndarray of float, shape (bins + 1,)
        From 0 to 1. A bin holds its right edge, and the first its left edge too.
    share : ndarray of float, shape (bins,)
        Share of the rows in each bin; 1/bins where the belief is right.
    lower, upper : float
        Ends of the band that all shares of a perfect model stay inside together.
    confidence : float
        Probability of that, or more.
    """

    edges: FloatArray
    share: FloatArray
    lower: float
    upper: float
    confidence: float


def pit_histogram(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    bins: int = 20,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
) -> PitHistogram:
    """Histogram of the PIT, non-randomised for discrete laws, with a simultaneous band.

    The band takes each bin's binomial quantiles at (1 − confidence)/bins (Bonferroni). It is
    conservative for discrete laws, whose shares vary less. A hump means too wide beliefs, a U too
    narrow ones, a slope bias.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,), optional
        P(Y < y) of each row, for discrete laws.
    bins : int
        Number of bins, at least 2.
    confidence : float
        Probability that a perfect model stays inside the band, in (0, 1).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    PitHistogram

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.

    Notes
    -----
    Czado, Gneiting and Held (2009), Biometrics 65, section 2.

    Examples
    --------
    >>> pit_histogram([0.1, 0.2, 0.6, 0.9], bins=2).share
    array([0.5, 0.5])
    """
    if bins < 2:
        raise InputError(f"bins must be at least 2, got {bins}")
    check_fraction(confidence, "confidence")
    spread = _spread(pit, left, weights)
    edges = np.arange(bins + 1) / bins
    share = np.diff(spread.observed(edges[1:-1]), prepend=0.0, append=1.0)
    size = max(1, round(spread.total))
    band = pointwise_band(size, [1.0 / bins], confidence=1.0 - (1.0 - confidence) / bins)
    return PitHistogram(edges, share, float(band.lower[0]), float(band.upper[0]), confidence)


# --- calibration error and curve -----------------------------------------------------------------


def calibration_error(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    exponent: float = 1.0,
    levels: int | npt.ArrayLike = 100,
    weighting: Weighting = "uniform",
    weights: npt.ArrayLike | None = None,
) -> Statistic:
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
    Statistic
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
    spread = _spread(pit, left, weights)
    observed = spread.observed(grid)
    value, slope = _gap(grid, observed, exponent, weighting)
    if math.isnan(value):
        return Statistic(value, reason="no row has its PIT at or below any level")
    influence = spread.dot(grid, slope) - float(slope @ observed)
    expected = _expected_gap(grid, spread, exponent)
    return Statistic(value, influence, _level_mean(expected, grid, weighting))


def calibration_error_quantiles(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    exponent: float = 1.0,
    weighting: Weighting = "uniform",
    weights: npt.ArrayLike | None = None,
) -> Statistic:
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
    Statistic

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
    truth, table, grid, w = _check_quantiles(y, quantiles, levels, weights)
    observed = _column_shares(truth, table, w)
    value, slope = _gap(grid, observed, exponent, weighting)
    if math.isnan(value):
        return Statistic(value, reason="no row lies at or below any quantile")
    influence = np.full(len(truth), -float(slope @ observed))
    for column, factor in zip(table.T, slope, strict=True):
        influence += factor * (truth <= column)
    total = float(len(truth)) if w is None else float(w.sum())
    expected = _moment(grid, grid * (1.0 - grid), total, exponent, exact=True)
    return Statistic(value, influence, _level_mean(expected, grid, weighting))


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Observed shares against the levels they should have.

    Attributes
    ----------
    levels : ndarray of float, shape (k,)
        Nominal levels.
    observed : ndarray of float, shape (k,)
        Share of rows at or below each level, or inside the centred interval of that coverage.
    standard_error : ndarray of float, shape (k,)
        Of ``observed``, each alone; NaN for one row.
    pointwise, simultaneous : EcdfBand
        What a perfect model of this n stays inside, at one level and at all levels together.
        Exact for continuous laws, conservative for discrete ones.
    """

    levels: FloatArray
    observed: FloatArray
    standard_error: FloatArray
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
    spread = _spread(pit, left, weights, version)
    observed = spread.observed(grid)
    square = spread.second_moment(grid, observed)
    return _curve(grid, observed, square, spread.total, confidence)


def calibration_curve_quantiles(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
) -> CalibrationCurve:
    """Observed shares below quantile columns, at their own levels only.

    Parameters
    ----------
    y, quantiles, levels
        As in `calibration_error_quantiles`.
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
        If an argument leaves its domain, or shapes differ.

    Notes
    -----
    Bands as in `howsure.stats.ecdf.simultaneous_band`.

    Examples
    --------
    >>> calibration_curve_quantiles([1.0, 2.0], [[1.5], [1.5]], [0.9]).observed
    array([0.5])
    """
    truth, table, grid, w = _check_quantiles(y, quantiles, levels, weights)
    observed = _column_shares(truth, table, w)
    total = float(len(truth)) if w is None else float(w.sum())
    return _curve(grid, observed, observed, total, confidence)


def miscalibration_area(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    version: Version = "quantile",
    weights: npt.ArrayLike | None = None,
) -> Statistic:
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
    Statistic
        ``null`` is the expectation for a perfect model of this n, about 0.313/√n for continuous
        laws. On the influence near a perfect model see `calibration_error`.

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
    spread = _spread(pit, left, weights, version)
    value, influence = _area(spread)
    grid = (np.arange(_NULL_POINTS) + 0.5) / _NULL_POINTS
    null = float(_expected_gap(grid, spread, 1.0).mean())
    return Statistic(value, influence, null)


# --- standard deviations -------------------------------------------------------------------------


def mean_squared_z(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Statistic:
    """Mean squared z-score (ZMS), 1 where the predicted variances are right on average.

    mean((y − mean)²/sd²). Above 1 means overconfident, below 1 underconfident; closer to 1 is
    better; no units; the notion is marginal. Rows of small sd weigh most.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic
        A mean, so its influence is z² − ZMS and its standard error is exact to first order.

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Pernot (2024), Negative impact of heavy-tailed uncertainty and error distributions on the
    reliability of calibration statistics for machine learning regression tasks,
    arXiv:2402.10043.

    Examples
    --------
    >>> mean_squared_z([1.0, 2.0], [0.0, 0.0], [1.0, 1.0]).value
    2.5
    """
    error, scale = _check_errors(y, mean, sd)
    with np.errstate(over="ignore"):
        return mean_statistic(np.square(error / scale), _check_weights(weights, len(error)))


def relative_calibration_error(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Statistic:
    """Relative calibration error (RCE) of the root mean variance against the RMSE.

    (RMV − RMSE)/RMV with RMV = √mean(sd²) and RMSE = √mean((y − mean)²). Positive means
    underconfident, negative overconfident; closer to 0 is better; no units; the notion is
    marginal. Not the regression calibration error of `calibration_error`.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic
        With RMSE/RMV = r, the influence is −(r/2)·((y − mean)²/RMSE² − sd²/RMV²). ``null`` is
        the small bias of a perfect model with normal errors, as in `ence`.

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Pernot (2024), arXiv:2402.10043.

    Examples
    --------
    >>> relative_calibration_error([1.0, -1.0], [0.0, 0.0], [2.0, 2.0]).value
    0.5
    """
    error, scale = _check_errors(y, mean, sd)
    w = _check_weights(weights, len(error))
    unit = max(float(scale.max()), float(np.abs(error).max()))
    squared_error, variance = np.square(error / unit), np.square(scale / unit)
    mse, mv = _average(squared_error, w), _average(variance, w)
    if mv == 0.0:
        return Statistic(math.nan, reason="every sd is negligible beside the largest error")
    total = float(len(error)) if w is None else float(w.sum())
    ratio = math.sqrt(mse / mv)
    shape = np.square(scale / scale.max())
    freedom = total * _average(shape, w) ** 2 / _average(np.square(shape), w)
    null = 1.0 - float(_chi_mean(np.array([freedom]))[0])
    if mse == 0.0:
        return Statistic(1.0, np.zeros(len(error)), null)
    return Statistic(1.0 - ratio, -0.5 * ratio * (squared_error / mse - variance / mv), null)


def ence(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    bins: int = 15,
    weights: npt.ArrayLike | None = None,
) -> Statistic:
    """Expected normalised calibration error: is the sd right at every size of sd?

    Rows are binned by sd into bins of equal mass; the mean over bins of |RMV_b − RMSE_b|/RMV_b.
    Lower is better, 0 is perfect; no units; the notion is local in the predicted sd.

    Rows of one sd are shared among the bins that they reach into, each in the same proportion,
    and so is a single row on an edge. So bins hold exactly n/bins rows, row order does not
    matter, a weight of two is a row twice, and where no row is cut the bins are the usual ones.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).
    bins : int
        Number of bins, at least 1.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic
        NaN where there are fewer than two rows a bin. The influence holds the edges fixed.
        ``null`` is the expectation for normal errors, where RMSE_b/RMV_b is close to χ_k/√k with
        Satterthwaite's k = (Σsd²)²/Σsd⁴ over the bin, each row by its share in it.

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, a value is missing, or bins is below 1.

    Notes
    -----
    Levi, Gispan, Giladi and Fetaya (2022), Evaluating and calibrating uncertainty prediction in
    regression tasks, Sensors 22, 5540.

    Examples
    --------
    >>> ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=2).value
    0.5
    """
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}")
    error, scale = _check_errors(y, mean, sd)
    w = _check_weights(weights, len(error))
    total = float(len(error)) if w is None else float(w.sum())
    if total < 2 * bins:
        return Statistic(
            math.nan, reason=f"{total:g} rows are fewer than two for each of {bins} bins"
        )
    cut = _equal_mass_bins(scale, w, bins)
    unit = max(float(scale.max()), float(np.abs(error).max()))
    squared_error, variance = np.square(error / unit), np.square(scale / unit)
    mse, mv = cut.means(squared_error), cut.means(variance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.sqrt(mse / mv)
        sign = np.where(mse > 0.0, np.sign(ratio - 1.0), 0.0)
        by_error = np.where(mse > 0.0, sign / (2.0 * np.sqrt(mse * mv)), 0.0)
        by_variance = sign * ratio / (2.0 * mv)
        freedom = np.square(mv * cut.capacity) / cut.sums_of_squares(variance)
        influence = squared_error * cut.spread(by_error) - variance * cut.spread(by_variance)
    value = float(np.abs(1.0 - ratio).mean())
    if not (math.isfinite(value) and np.isfinite(influence).all()):
        return Statistic(value, reason="the sd spans too many orders of magnitude")
    return Statistic(value, influence, float(_chi_gap(freedom).mean()))


def sharpness(
    sd: npt.ArrayLike,
    *,
    kind: Literal["root_mean_variance", "mean_sd"] = "root_mean_variance",
    weights: npt.ArrayLike | None = None,
) -> Statistic:
    """Typical predicted standard deviation, whatever happened.

    √mean(sd²), or mean(sd). Lower is sharper, and better among calibrated models only; in the
    units of y; the notion is marginal.

    Parameters
    ----------
    sd : array-like of shape (n,)
        Predicted standard deviations, above 0.
    kind : {"root_mean_variance", "mean_sd"}
        Which average.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic

    Raises
    ------
    InputError
        If an sd is not above 0 or missing, or the kind is unknown.

    Notes
    -----
    Root mean variance: Tran et al. (2020), there called sharpness.

    Examples
    --------
    >>> sharpness([3.0, 4.0]).value, sharpness([3.0, 4.0], kind="mean_sd").value
    (3.5355, 3.5)
    """
    scale = _check_sd(sd)
    w = _check_weights(weights, len(scale))
    if kind == "mean_sd":
        return mean_statistic(scale, w)
    if kind != "root_mean_variance":
        raise InputError(f"kind must be 'root_mean_variance' or 'mean_sd', got {kind!r}")
    unit = float(scale.max())
    variance = np.square(scale / unit)
    mean = _average(variance, w)
    value = unit * math.sqrt(mean)
    return Statistic(value, 0.5 * value * (variance / mean - 1.0))


# --- PIT cells -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spread:
    """Where each row's PIT may lie: pieces [left, right] with a share of a row each.

    A row has one piece, or, where a cell is folded about ½, two that follow each other:
    ``before`` is then the share of the row below the piece.
    """

    left: FloatArray
    right: FloatArray
    n: int
    weights: FloatArray | None
    share: FloatArray | None = None
    before: FloatArray | None = None
    row: IntArray | None = None

    @property
    def continuous(self) -> bool:
        return self.left is self.right

    @property
    def total(self) -> float:
        return float(self.n) if self.weights is None else float(self.weights.sum())

    def mass(self, factor: FloatArray | None = None) -> FloatArray | None:
        """Weight of each piece times its factor; None where all are one."""
        w = self.weights
        if w is not None and self.row is not None:
            w = w[self.row]
        if factor is None or w is None:
            return w if factor is None else factor
        return w * factor

    def observed(self, grid: FloatArray) -> FloatArray:
        """Mean of the rows' shares h(p) at or below each grid point."""
        return grid_sums(self.left, self.right, grid, self.mass(self.share)) / self.total

    def second_moment(self, grid: FloatArray, observed: FloatArray) -> FloatArray:
        """Mean of h(p)²; equal to the first where every h is 0 or 1."""
        if self.continuous:
            return observed
        if self.share is None or self.before is None:
            return grid_sums(self.left, self.right, grid, self.mass(), power=2) / self.total
        cross = self.mass(2.0 * self.before * self.share)
        square = self.mass(np.square(self.share))
        sums = grid_sums(self.left, self.right, grid, cross)
        return (sums + grid_sums(self.left, self.right, grid, square, power=2)) / self.total

    def dot(self, grid: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Σ_j c_j h(p_j) of each row."""
        return self.by_row(grid_dot(self.left, self.right, grid, coefficients))

    def by_row(self, pieces: FloatArray) -> FloatArray:
        """Sum over the pieces of each row."""
        if self.share is None or self.row is None:
            return pieces
        sums = np.bincount(self.row, weights=self.share * pieces, minlength=self.n)
        return sums.astype(np.float64)


def _spread(
    pit: npt.ArrayLike,
    left: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    version: Version = "quantile",
) -> _Spread:
    low, high = _check_cells(pit, left)
    n = len(high)
    w = _check_weights(weights, n)
    if version == "quantile":
        return _Spread(low, high, n, w)
    if version != "interval":
        raise InputError(f"version must be 'quantile' or 'interval', got {version!r}")
    if low is high:
        folded = np.abs(2.0 * high - 1.0)
        return _Spread(folded, folded, n, w)
    below, above = 1.0 - 2.0 * low, 2.0 * high - 1.0
    near = np.minimum(np.abs(below), np.abs(above))
    far = np.maximum(np.abs(below), np.abs(above))
    row = np.arange(n)
    cut = np.flatnonzero((below > 0.0) & (above > 0.0))
    if not len(cut):
        return _Spread(near, far, n, w)
    lower_end, upper_end = near.copy(), far.copy()
    lower_end[cut], upper_end[cut] = 0.0, near[cut]
    share, before = np.ones(n), np.zeros(n)
    share[cut] = 2.0 * near[cut] / (near[cut] + far[cut])
    return _Spread(
        np.append(lower_end, near[cut]),
        np.append(upper_end, far[cut]),
        n,
        w,
        np.append(share, 1.0 - share[cut]),
        np.append(before, share[cut]),
        np.append(row, cut),
    )


def _area(spread: _Spread) -> tuple[float, FloatArray]:
    """∫₀¹ |q(p) − p| dp for piecewise linear q, and its influence values.

    With S(x) = ∫ₓ¹ sign(q(p) − p) dp, adding a row at x moves the area by S(x), and one spread
    over a cell by the mean of S over it.
    """
    left, right = spread.left, spread.right
    mass = spread.mass(spread.share)
    wide = np.flatnonzero(right - left >= _NARROW) if not spread.continuous else np.arange(0)
    rate = (1.0 if mass is None else mass[wide]) / (right[wide] - left[wide])
    jump = np.ones(len(left)) if mass is None else mass.copy()
    jump[wide] = 0.0
    position = np.concatenate([left, right[wide], [0.0, 1.0]])
    order = np.argsort(position, kind="stable")
    knots = position[order]
    step = np.diff(knots)
    pad = np.zeros(len(wide) + 2)
    after = np.append(jump, pad)[order].cumsum()  # share at each knot, slopes left out so far
    start, end = after[:-1], after[:-1]
    if len(wide):
        bend = np.append(np.zeros(len(left)), pad)
        bend[wide] = rate
        bend[len(left) : len(left) + len(wide)] = -rate
        rise = np.append(0.0, (bend[order].cumsum()[:-1] * step).cumsum())
        start, end = start + rise[:-1], end + rise[1:]
    first, last = start / spread.total - knots[:-1], end / spread.total - knots[1:]
    area, signed, doubled = _signed_areas(first, last, step)
    sign_after = np.append(signed[::-1].cumsum()[::-1], 0.0)  # S at each knot
    at = np.empty(len(order))
    at[order] = sign_after
    moved = at[: len(left)]
    if len(wide):
        integral = np.append((doubled + sign_after[1:] * step)[::-1].cumsum()[::-1], 0.0)
        beyond = np.empty(len(order))
        beyond[order] = integral
        moved[wide] = beyond[wide] - beyond[len(left) : len(left) + len(wide)]
        moved[wide] /= right[wide] - left[wide]
    influence = spread.by_row(moved)
    return area, influence - _average(influence, spread.weights)


def _signed_areas(
    first: FloatArray, last: FloatArray, step: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Areas of straight gaps from ``first`` to ``last`` over segments of length ``step``.

    Returns the sum of ∫|gap|, and for each segment ∫ sign(gap) dp and ∫ sign(gap)·(p − start) dp.
    """
    a, b = np.abs(first), np.abs(last)
    crossing = first * last < 0.0
    part = np.ones(len(step))
    part[crossing] = a[crossing] / (a[crossing] + b[crossing])
    area = float((np.where(crossing, a * part + b * (1.0 - part), a + b) * step).sum()) / 2.0
    sign = np.where(first == 0.0, np.sign(last), np.sign(first))
    signed = sign * (2.0 * part - 1.0) * step
    doubled = sign * (2.0 * np.square(part) - 1.0) * np.square(step) / 2.0
    return area, signed, doubled


# --- shares at levels ----------------------------------------------------------------------------


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


def _expected_gap(grid: FloatArray, spread: _Spread, exponent: float) -> FloatArray:
    """E|q(p) − p|^a of a perfect model, at each level.

    Given y, a share h(p) of a row is the mean of an indicator; so under the right law its
    variance is p(1 − p) less the mean of h(1 − h), which the rows estimate.
    """
    variance = grid * (1.0 - grid)
    if not spread.continuous:
        observed = spread.observed(grid)
        within = observed - spread.second_moment(grid, observed)
        variance = np.maximum(variance - within, 0.0)
    return _moment(grid, variance, spread.total, exponent, exact=spread.continuous)


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


def _column_shares(y: FloatArray, quantiles: FloatArray, w: FloatArray | None) -> FloatArray:
    return np.array([_average((y <= column).astype(np.float64), w) for column in quantiles.T])


# --- bins of equal mass --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bins:
    """Rows sorted into groups of one sd, and groups shared among bins of equal mass."""

    order: IntArray
    starts: IntArray
    weights: FloatArray | None
    group: IntArray
    bin: IntArray
    share: FloatArray
    count: int
    capacity: float

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of the values in each bin."""
        weighted = values if self.weights is None else values * self.weights
        sums = np.add.reduceat(weighted[self.order], self.starts)
        shared = self.share * sums[self.group]
        return np.bincount(self.bin, weights=shared, minlength=self.count) / self.capacity

    def sums_of_squares(self, values: FloatArray) -> FloatArray:
        """Sum over the rows of each bin of the square of what they bring to it."""
        squares = np.square(values)
        weighted = squares if self.weights is None else squares * self.weights
        sums = np.add.reduceat(weighted[self.order], self.starts)
        shared = np.square(self.share) * sums[self.group]
        totals = np.bincount(self.bin, weights=shared, minlength=self.count)
        return totals.astype(np.float64)

    def spread(self, by_bin: FloatArray) -> FloatArray:
        """Value of each row's bin, averaged over the bins that it is shared among."""
        shared = np.bincount(self.group, weights=self.share * by_bin[self.bin])
        sizes = np.diff(self.starts, append=len(self.order))
        out = np.empty(len(self.order))
        out[self.order] = np.repeat(shared, sizes)
        return out


def _equal_mass_bins(key: FloatArray, w: FloatArray | None, bins: int) -> _Bins:
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    masses = np.add.reduceat(np.ones(len(key)) if w is None else w[order], starts)
    ends = masses.cumsum()
    scale = bins / ends[-1]
    low = np.append(0.0, ends[:-1]) * scale
    high = ends * scale
    first = np.minimum(np.floor(low).astype(np.int64), bins - 1)
    last = np.clip(np.ceil(high).astype(np.int64) - 1, first, bins - 1)
    reach = last - first + 1
    group = np.repeat(np.arange(len(starts)), reach)
    offset = np.arange(len(group)) - np.repeat(np.append(0, reach.cumsum()[:-1]), reach)
    number = first[group] + offset
    overlap = np.minimum(high[group], number + 1.0) - np.maximum(low[group], number)
    width = np.where(masses > 0.0, high - low, 1.0)
    return _Bins(
        order, starts, w, group, number, overlap / width[group], bins, float(ends[-1]) / bins
    )


def _chi_mean(k: FloatArray) -> FloatArray:
    """E R where √k R has the χ law with k degrees of freedom."""
    return np.asarray(np.sqrt(2.0 / k) * special.poch(k / 2.0, 0.5))


def _chi_gap(k: FloatArray) -> FloatArray:
    """E|1 − R| where √k R has the χ law with k degrees of freedom."""
    mean = _chi_mean(k)
    below = special.gammainc(k / 2.0, k / 2.0)
    mean_below = mean * special.gammainc((k + 1.0) / 2.0, k / 2.0)
    return np.asarray(mean - 1.0 + 2.0 * (below - mean_below))


# --- checks --------------------------------------------------------------------------------------


def _check_cells(pit: npt.ArrayLike, left: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    high = check_pit(pit)
    if left is None or left is pit:
        return high, high
    low = check_pit(left, "left", length=len(high))
    crossed = low > high
    if crossed.any():
        row = int(np.argmax(crossed))
        raise InputError(
            f"left must not exceed pit, got {int(crossed.sum())} rows where it does "
            f"(first at row {row}: {low[row]:g} > {high[row]:g})"
        )
    return (high, high) if np.array_equal(low, high) else (low, high)


def _check_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray | None:
    if weights is None:
        return None
    return Weights.checked(weights, "importance", length=n).values


def _check_sd(sd: npt.ArrayLike, n: int | None = None) -> FloatArray:
    scale = as_vector(sd, "sd", length=n)
    wrong = scale <= 0.0
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"sd must be above 0, got {int(wrong.sum())} that are not "
            f"(first at row {row}: {scale[row]:g})"
        )
    return scale


def _check_errors(
    y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    centre = as_vector(mean, "mean", length=len(truth))
    with np.errstate(over="ignore"):
        error = truth - centre
    if not np.isfinite(error).all():
        row = int(np.argmin(np.isfinite(error)))
        raise InputError(f"y - mean must be finite, got an overflow at row {row}")
    return error, _check_sd(sd, len(truth))


def _check_quantiles(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    weights: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    truth = as_vector(y, "y")
    grid = check_levels(levels)
    table = as_matrix(quantiles, "quantiles", length=len(truth), columns=len(grid))
    return truth, table, grid, _check_weights(weights, len(truth))


def _levels(levels: int | npt.ArrayLike) -> FloatArray:
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool):
        if levels < 2:
            raise InputError(f"levels must be at least 2, got {levels}")
        return np.linspace(1e-5, 1.0 - 1e-5, int(levels))
    return check_levels(levels)


def _average(values: FloatArray, w: FloatArray | None) -> float:
    return float(values.mean()) if w is None else float(w @ values / w.sum())
