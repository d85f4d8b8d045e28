"""Quantiles of the probability integral transform, for laws with and without jumps."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.methods.conformal import order_statistics

_NARROW = 1e-9


def pit_knots(
    left: FloatArray, right: FloatArray, ranks: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """Where the summed PIT function first reaches each rank.

    Source of the non-randomised PIT: Czado, Gneiting and Held (2009), "Predictive model
    assessment for count data", equation 2.
    """
    width = right - left
    wide = width > _NARROW
    if not wide.any():
        return order_statistics(right, ranks, counts)
    weight = np.ones(len(left)) if counts is None else counts
    steep = weight[wide] / width[wide]
    place = np.concatenate([left[wide], right[wide], right[~wide]])
    bend = np.concatenate([steep, -steep, np.zeros(int((~wide).sum()))])
    jump = np.concatenate([np.zeros(2 * len(steep)), weight[~wide]])
    order = np.argsort(place, kind="stable")
    place, bend, jump = place[order], bend[order], jump[order]
    slope = np.r_[0.0, np.cumsum(bend)[:-1]]
    rise = slope * np.diff(place, prepend=place[0])
    after = np.cumsum(rise + jump)
    slack = 1e-9 * (float(weight.sum()) + 1.0)
    at = np.minimum(np.searchsorted(np.maximum.accumulate(after), ranks - slack), len(place) - 1)
    missing = np.maximum(after[at] - jump[at] - ranks, 0.0)
    back = np.divide(missing, slope[at], out=np.zeros(len(at)), where=slope[at] > 0)
    return np.asarray(np.clip(place[at] - back, 0.0, 1.0))
