"""Miscalibration area: the area between the calibration curve and the diagonal.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.metrics.calibration import expected_gap
from howsure.metrics.pit import PitCells, Version, pit_cells
from howsure.stats.estimate import Estimate, weighted_mean

_NULL_POINTS = 512  # levels over which the expected area of a perfect model is averaged
_NARROW = 1e-9  # PIT cells narrower than this count as one point in exact areas


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
        `howsure.metrics.calibration.calibration_error`.

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
    return Estimate(value, influence, null)


def _area(cells: PitCells) -> tuple[float, FloatArray]:
    """∫₀¹ |q(p) − p| dp for piecewise linear q, and its influence values.

    With S(x) = ∫ₓ¹ sign(q(p) − p) dp, adding a row at x moves the area by S(x), and one spread
    over a cell by the mean of S over it.
    """
    left, right = cells.left, cells.right
    mass = cells.mass(cells.share)
    wide = np.flatnonzero(right - left >= _NARROW) if not cells.continuous else np.arange(0)
    width = right[wide] - left[wide]
    jump = np.ones(len(left)) if mass is None else mass.copy()
    rate = jump[wide] / width
    jump[wide] = 0.0
    position = np.concatenate([left, right[wide], [0.0, 1.0]])
    order = np.argsort(position, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    opens, closes = place[: len(left)], place[len(left) : len(left) + len(wide)]
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
        held = _halves(doubled + sign_after[1:] * step)  # ∫ S over each step
        coarse, fine = (np.append(0.0, half.cumsum()) for half in held)
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
    part = np.ones(len(step))
    part[crossing] = a[crossing] / (a[crossing] + b[crossing])
    area = float((np.where(crossing, a * part + b * (1.0 - part), a + b) * step).sum()) / 2.0
    sign = np.where(first == 0.0, np.sign(last), np.sign(first))
    signed = sign * (2.0 * part - 1.0) * step
    doubled = sign * (2.0 * np.square(part) - 1.0) * np.square(step) / 2.0
    return area, signed, doubled
