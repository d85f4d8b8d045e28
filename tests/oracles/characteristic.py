"""The characteristics curve from its definition, slowly: exact fractions, or loops over rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One row: what happened, the point, the two bands, and the weight."""

    y: Fraction
    point: Fraction
    below: Fraction
    above: Fraction
    weight: Fraction


def rows_of(y, point, lower, upper, weights=None):
    """Rows as exact fractions of the floats given."""
    weights = [1] * len(y) if weights is None else weights
    table = []
    for one in zip(y, point, lower, upper, weights, strict=True):
        truth, centre, low, high, weight = (Fraction(float(number)) for number in one)
        table.append(Row(truth, centre, centre - low, high - centre, weight))
    return table


def ends(row, knob, move):
    """The interval at a setting of the knob."""
    if move == "scale":
        return row.point - knob * row.below, row.point + knob * row.above
    below, above = max(row.below + knob, Fraction(0)), max(row.above + knob, Fraction(0))
    return row.point - below, row.point + above


def measures(rows, knob, move="scale"):
    """Bandwidth, miss rate, excess and deficit at a setting, from eqs. 1, 2, 6 and 7."""
    total = sum(row.weight for row in rows)
    sums = dict.fromkeys(("bandwidth", "miss_rate", "excess", "deficit"), Fraction(0))
    for row in rows:
        low, high = ends(row, knob, move)
        sums["bandwidth"] += row.weight * (high - low) / 2
        if low <= row.y <= high:
            sums["excess"] += row.weight * min(row.y - low, high - row.y)
        else:
            sums["miss_rate"] += row.weight
            sums["deficit"] += row.weight * min(abs(row.y - low), abs(row.y - high))
    return {name: value / total for name, value in sums.items()}


def settings(rows, move="scale"):
    """Every setting at which some row's part of some measure may bend, rising, from the start."""
    found = set()
    if move == "scale":
        found.add(Fraction(0))
        for row in rows:
            error = row.y - row.point
            if error >= 0 and row.above > 0:
                found.add(error / row.above)
            if error <= 0 and row.below > 0:
                found.add(-error / row.below)
            if row.above != row.below:
                found.add(2 * error / (row.above - row.below))
        return sorted(setting for setting in found if setting >= 0)
    start = -max(max(row.below, row.above) for row in rows)
    found.add(start)
    for row in rows:
        error = row.y - row.point
        for band, toward in ((row.above, error), (row.below, -error)):
            found.update((-band, toward - band, 2 * toward - band))
    return sorted(setting for setting in found if setting >= start)


def polyline(rows, x, y_axis, move="scale"):
    """Corners of the curve, vertical drops included: a list of (x, y)."""
    knobs = settings(rows, move)
    corners = []
    for this, following in zip(knobs, knobs[1:] + knobs[-1:], strict=True):
        here = measures(rows, this, move)
        corners.append((here[x], here[y_axis]))
        if following > this:
            middle = measures(rows, (this + following) / 2, move)
            corners.append(
                (2 * middle[x] - here[x], 2 * middle[y_axis] - here[y_axis])  # limits from the left
            )
    return corners


def under(corners, left, right):
    """Area under the corners between two x, y being constant past the last corner."""
    area = Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(corners):
        low, high = max(x0, left), min(x1, right)
        if high > low:
            slope = (y1 - y0) / (x1 - x0)
            area += (high - low) * (y0 + slope * ((low + high) / 2 - x0))
    past = max(corners[-1][0], left)
    return area + max(right - past, Fraction(0)) * corners[-1][1]


def reach(corners, level):
    """Smallest x at which y is at most a level; None where it never is."""
    if corners[0][1] <= level:
        return corners[0][0]
    for (x0, y0), (x1, y1) in pairwise(corners):
        if y1 <= level < y0:
            return x0 + (x1 - x0) * (y0 - level) / (y0 - y1)
    return None


def toolkit(y, point, lower, upper, *, move="scale", by_rounded_ends=False):
    """UQ360's critical points by loops: settings, miss rate, bandwidth, excess and deficit.

    The toolkit itself tells inside from outside by the rounded ends of the interval.
    """
    error, below, above = y - point, point - lower, upper - point
    active = np.where(error >= 0, above, below)
    scaling = move == "scale"
    knobs = np.sort(np.abs(error) / active if scaling else np.abs(error) - active)
    own = np.abs(error) / active if scaling else np.abs(error) - active
    table = []
    for knob in knobs:
        low, high = (
            (knob * below, knob * above)
            if scaling
            else (np.maximum(below + knob, 0), np.maximum(above + knob, 0))
        )
        near = np.where(error >= 0, high, low)
        missed = (error < -low) | (error > high) if by_rounded_ends else own > knob
        table.append(
            (
                knob,
                np.mean(missed),
                np.mean([low, high]),
                np.mean(np.maximum(near - np.abs(error), 0)),
                np.mean(np.maximum(np.abs(error) - near, 0)),
            )
        )
    names = ("knob", "miss_rate", "bandwidth", "excess", "deficit")
    return dict(zip(names, np.array(table).T, strict=True))
