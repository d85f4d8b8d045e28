"""A few counts, with weights, that stand for all counts of a wide law.

A sum over a run of counts of something smooth needs only some of them: the rule is Gauss's for
whole numbers (whose orthogonal polynomials are Gram's), with its places rounded to whole numbers
and its weights settled anew. Runs are as long as the law and the kernel are smooth, and grow from
short ones at an end where the law stops.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray

PLACES: Final = 16
"""Places in a run; shorter runs are counted one by one."""

_LONGEST: Final = 1 << 60


@lru_cache(maxsize=64)
def lattice_rule(length: int) -> tuple[FloatArray, FloatArray]:
    """Places in 0 … length − 1 and weights that sum a smooth function over all of them.

    Exact for polynomials of degree below 16, and nearly so below 32 on long runs: a Gaussian bump
    is summed to 2e-13 of its sum on a run of two of its standard deviations, to 2e-10 on three.
    """
    if length <= PLACES:
        places = np.arange(float(PLACES))
        return np.minimum(places, length - 1.0), (places < length).astype(np.float64)
    order = np.arange(1.0, PLACES)
    beta = np.square(order) * (float(length) ** 2 - np.square(order))
    beta /= 4.0 * (4.0 * np.square(order) - 1.0)
    side = np.sqrt(beta)
    roots, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    half = 0.5 * (length - 1.0)
    places = np.rint(roots + half)
    sums = (np.square(vectors[0]) * length) @ _polynomials(roots / half)
    weights = np.linalg.solve(_polynomials((places - half) / half).T, sums)
    return places, weights


def _polynomials(at: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.legendre.legvander(at, PLACES - 1))


def lattice_runs(
    low: FloatArray,
    high: FloatArray,
    *,
    longest: FloatArray,
    stops_below: npt.NDArray[np.bool_],
    stops_above: npt.NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """Cut every row's counts in runs of 16, 32, 64, … counts, the last of what remains."""
    at, starts, lengths = low.copy(), [], []
    most = _power_below(np.clip(longest, PLACES, _LONGEST))
    while (remaining := np.maximum(high - at + 1.0, 0.0)).any():
        step = np.where(stops_below, np.minimum(most, np.maximum(at - low, PLACES)), most)
        near = np.where(stops_above, remaining / 2.0, remaining)
        step = _power_below(np.maximum(np.minimum(step, near), PLACES))
        step = np.minimum(step, remaining)
        starts.append(at)
        lengths.append(step)
        at = at + step
    return np.stack(starts, axis=1), np.stack(lengths, axis=1)


def lattice_nodes(starts: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Places and weights of the runs of `lattice_runs`, shape (n, k, 16) each."""
    known, which = np.unique(lengths, return_inverse=True)
    rules = [lattice_rule(max(int(length), 1)) for length in known]
    places = np.stack([rule[0] for rule in rules])[which.reshape(lengths.shape)]
    weights = np.stack([rule[1] for rule in rules])[which.reshape(lengths.shape)]
    return starts[:, :, None] + places, np.where(lengths[:, :, None] > 0.0, weights, 0.0)


def _power_below(values: FloatArray) -> FloatArray:
    """The largest power of two that is no greater."""
    return np.asarray(np.ldexp(0.5, np.frexp(values)[1]))
