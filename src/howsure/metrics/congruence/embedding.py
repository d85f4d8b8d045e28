"""Averages of an output kernel over laws of y, in closed form.

The mean embedding of a law is the average of the kernel over it. Every belief of
`howsure.metrics.congruence.beliefs` is a weighted sum of *atoms*, points or independent normal
laws, whose kernel averages are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
