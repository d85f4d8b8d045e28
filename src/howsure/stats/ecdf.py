"""Empirical cumulative shares on a grid.

A probability integral transform (PIT) is uniform on [0, 1] where the belief is right. A discrete
law gives no single PIT but a cell [P(Y < y), P(Y ≤ y)] over which the row is spread evenly; a
continuous law is the case of cells without width. Everything here takes the two ends of the cell.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_vector
from howsure.core.errors import InputError
from howsure.core.weights import check_multiplicities

_WIDE = 0.01  # cells wider than this are summed through prefix sums, which lose 1e-16 / width


def ecdf_on_grid(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    grid: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Share of rows at or below each grid point, rows being spread evenly over their cells.

    q(p) = Σ w_i t_i(p) / Σ w_i with t_i(p) = clip((p − left_i)/(right_i − left_i), 0, 1), and
    t_i(p) = 1{p ≥ right_i} for a cell without width. Takes O(n log k + k) for k grid points.

    For the PIT of counts this is the mean of the non-randomised PIT of Czado, Gneiting and Held
    (2009, Biometrics 65, section 2), which is uniform in expectation under the right law.
    """
    high = as_vector(right, "right")
    low = high if left is right else as_vector(left, "left", length=len(high))
    if low is not high and (low > high).any():
        row = int(np.argmax(low > high))
        raise InputError(
            f"left must not exceed right, got {low[row]:g} > {high[row]:g} (first at row {row})"
        )
    points = as_vector(grid, "grid")
    if (np.diff(points) <= 0).any():
        raise InputError("grid must rise strictly")
    w = check_multiplicities(weights, len(high))
    total = float(len(high)) if w is None else float(w.sum())
    return grid_sums(low, high, points, w) / total


def grid_sums(
    left: FloatArray,
    right: FloatArray,
    grid: FloatArray,
    weights: FloatArray | None = None,
    *,
    power: int = 1,
) -> FloatArray:
    """Σ_i w_i t_i(p)^power at each grid point, t as in `ecdf_on_grid`; nothing is checked."""
    size = len(grid)
    last = np.searchsorted(grid, right, side="left")
    total = np.bincount(last, weights=weights, minlength=size + 1)[:size].cumsum()
    total = total.astype(np.float64)
    if left is right:
        return total
    first = np.searchsorted(grid, left, side="right")
    width = right - left
    wide = np.flatnonzero((first < last) & (width >= _WIDE))
    if len(wide):
        factor = width[wide] ** -float(power) * (1.0 if weights is None else weights[wide])
        ends = (first[wide], last[wide])
        if power == 1:
            total += grid * _between(factor, *ends, size)
            total -= _between(factor * left[wide], *ends, size)
        else:
            total += grid * grid * _between(factor, *ends, size)
            total -= 2.0 * grid * _between(factor * left[wide], *ends, size)
            total += _between(factor * np.square(left[wide]), *ends, size)
    narrow = np.flatnonzero((first < last) & (width < _WIDE))
    for rows, points in _crossings(narrow, first, last):
        share = ((grid[points] - left[rows]) / width[rows]) ** power
        total += np.bincount(
            points, weights=share if weights is None else share * weights[rows], minlength=size
        )
    return total


def grid_dot(
    left: FloatArray, right: FloatArray, grid: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Σ_j c_j t_i(p_j) for each row, t as in `ecdf_on_grid`; nothing is checked.

    The adjoint of `grid_sums`: it turns the derivative of a statistic by the shares on the grid
    into the influence of each row.
    """
    last = np.searchsorted(grid, right, side="left")
    tail = np.append(coefficients[::-1].cumsum()[::-1], 0.0)
    out = tail[last]
    if left is right:
        return out
    first = np.searchsorted(grid, left, side="right")
    width = right - left
    wide = np.flatnonzero((first < last) & (width >= _WIDE))
    if len(wide):
        start, stop = first[wide], last[wide]
        sums = np.append(0.0, coefficients.cumsum())
        moments = np.append(0.0, (coefficients * grid).cumsum())
        inside = moments[stop] - moments[start] - left[wide] * (sums[stop] - sums[start])
        out[wide] += inside / width[wide]
    narrow = np.flatnonzero((first < last) & (width < _WIDE))
    for rows, points in _crossings(narrow, first, last):
        out[rows] += coefficients[points] * (grid[points] - left[rows]) / width[rows]
    return out


def check_pit(value: npt.ArrayLike, name: str = "pit", *, length: int | None = None) -> FloatArray:
    """Check probabilities in [0, 1], one a row."""
    array = as_vector(value, name, length=length)
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{name} must lie in [0, 1], got {int(outside.sum())} values outside "
            f"(first at row {row}: {array[row]:g})"
        )
    return array


def _between(values: FloatArray, first: IntArray, last: IntArray, size: int) -> FloatArray:
    """Sum of the values of the rows whose range [first, last) holds each grid point."""
    steps = np.bincount(first, weights=values, minlength=size + 1)
    steps -= np.bincount(last, weights=values, minlength=size + 1)
    return np.asarray(steps.cumsum()[:size])


def _crossings(rows: IntArray, first: IntArray, last: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The grid points inside the cells of the rows: first points, second points, …"""
    found = []
    points = first[rows]
    while len(rows):
        found.append((rows, points))
        points = points + 1
        keep = points < last[rows]
        rows, points = rows[keep], points[keep]
    return found
