"""Calibration curve: observed shares against the levels they should have, with bands.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, check_levels, check_quantiles
from howsure.core.brief import brief_repr
from howsure.core.weights import check_multiplicities
from howsure.metrics.calibration.errors import column_shares
from howsure.metrics.pit import Version, pit_cells
from howsure.stats.ecdf_bands import EcdfBand, pointwise_band, simultaneous_band


@dataclass(frozen=True, slots=True)
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

    __repr__ = brief_repr


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
    Bands as in `howsure.stats.ecdf_bands.simultaneous_band`.

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

    Parameters
    ----------
    y, quantiles, levels
        As in `howsure.metrics.calibration.calibration_error_quantiles`.
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
    Bands as in `howsure.stats.ecdf_bands.simultaneous_band`.

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
