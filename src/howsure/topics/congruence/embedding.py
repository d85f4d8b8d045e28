"""Averages of an output kernel over laws of y, in closed form.

The mean embedding of a law is the average of the kernel over it. Every belief of
`howsure.topics.congruence.beliefs` is a weighted sum of *atoms*, points or independent normal
laws, whose kernel averages are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.stats.kernels import RBF, Kernel, Laplacian
from howsure.stats.namespace import Array


@dataclass(frozen=True, slots=True)
class Atoms:
    """Points, or normal laws with independent outputs."""

    mean: FloatArray  # shape (a, p): points, or means
    sd: FloatArray | None = None  # shape (a, p): standard deviations; None for points

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: npt.NDArray[np.int64] | slice) -> Atoms:
        """The atoms chosen by an index."""
        return Atoms(self.mean[rows], None if self.sd is None else self.sd[rows])

    def join(self, other: Atoms) -> Atoms:
        """These atoms, and then others."""
        mean = np.concatenate([self.mean, other.mean])
        if self.sd is None and other.sd is None:
            return Atoms(mean)
        first, second = (
            np.zeros_like(atoms.mean) if atoms.sd is None else atoms.sd for atoms in (self, other)
        )
        return Atoms(mean, np.concatenate([first, second]))


def expected_gram(kernel: Kernel, left: Atoms, right: Atoms, name: str = "output_kernel") -> Array:
    """Average kernel E κ(Y, Y') of independent draws from every two atoms.

    Parameters
    ----------
    kernel : Kernel
        The output kernel.
    left, right : Atoms
        a and b atoms.
    name : str
        The argument's name, for the message.

    Returns
    -------
    ndarray of float, shape (a, b)

    Notes
    -----
    The difference of two independent normal laws is N(δ, s²) with s² the sum of the variances.
    For each output, Gaussian kernel: (1+2γs²)^(-1/2) exp(−γδ²/(1+2γs²)). Laplacian kernel:
    ½e^(−δ²/2s²)[erfcx((γs²+δ)/s√2) + erfcx((γs²−δ)/s√2)]. Outputs multiply.

    Examples
    --------
    >>> law = Atoms(np.array([[0.0]]), np.array([[1.0]]))
    >>> expected_gram(RBF(0.5), law, Atoms(np.array([[0.0]])))
    array([[0.70710678]])
    """
    if left.sd is None and right.sd is None:
        return kernel.gram(left.mean, right.mean)
    average = _smoothed(kernel, name)
    out: FloatArray = np.ones((len(left), len(right)))
    zero = np.zeros(1)
    for output in range(left.mean.shape[1]):
        gap = left.mean[:, output, None] - right.mean[:, output]
        first = zero if left.sd is None else left.sd[:, output]
        second = zero if right.sd is None else right.sd[:, output]
        out *= average(gap, np.square(first)[:, None] + np.square(second))
    return out


def expected_diagonal(kernel: Kernel, atoms: Atoms, name: str = "output_kernel") -> Array:
    """Squared length of every atom's embedding, E κ(Y, Y') of two draws, shape (a,)."""
    if atoms.sd is None:
        return kernel.diagonal(atoms.mean)
    average = _smoothed(kernel, name)
    out: FloatArray = np.prod(average(np.zeros(1), 2.0 * np.square(atoms.sd)), axis=1)
    return out


def _smoothed(kernel: Kernel, name: str) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Average of the kernel over N(gap, variance), for one output."""
    if isinstance(kernel, RBF):
        return lambda gap, variance: _smooth_rbf(kernel.gamma, gap, variance)
    if isinstance(kernel, Laplacian) and not kernel.squared:
        return lambda gap, variance: _smooth_laplacian(kernel.gamma, gap, variance)
    raise InputError(
        f"{name} must be rbf or laplacian for the exact embedding of normal distributions, got "
        f"{kernel.describe()}; draw samples instead"
    )


def _smooth_rbf(gamma: float, gap: FloatArray, variance: FloatArray) -> FloatArray:
    widened = 1.0 + 2.0 * gamma * variance
    smooth: FloatArray = np.exp(-gamma * np.square(gap) / widened) / np.sqrt(widened)
    return smooth


def _smooth_laplacian(gamma: float, gap: FloatArray, variance: FloatArray) -> FloatArray:
    from scipy.special import erfc, erfcx

    distance, spread = np.broadcast_arrays(np.abs(gap), variance)
    sd = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    low = (gamma * spread - distance) / (sd * np.sqrt(2.0))
    high = (gamma * spread + distance) / (sd * np.sqrt(2.0))
    peak = np.exp(-0.5 * np.square(distance / sd))
    far = np.exp(np.minimum(gamma * (0.5 * gamma * spread - distance), 0.0))
    near_side = np.where(low >= 0.0, peak * erfcx(np.maximum(low, 0.0)), far * erfc(low))
    smooth: FloatArray = 0.5 * (near_side + peak * erfcx(high))
    return np.where(spread > 0.0, smooth, np.exp(-gamma * distance))


# ---- a few counts, with weights, that stand for all counts of a wide law -------------------------
# A sum over a run of counts of something smooth needs only some of them: the rule is Gauss's for
# whole numbers (whose orthogonal polynomials are Gram's), with its places rounded to whole numbers
# and its weights settled anew. Runs are as long as the law and the kernel are smooth, and grow from
# short ones at an end where the law stops.

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
