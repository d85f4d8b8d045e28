"""Solvers for many right-hand sides at once: options, preconditioning, block conjugate gradients.

No inverse is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.stats.gram import Progress
from howsure.stats.kernels import Array

Method = Literal["auto", "iterative", "dense", "nystrom"]

_ITERATIONS = 500
_NEGLIGIBLE = 1e-3  # of ρ: eigenvalues that a preconditioner need not see


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How kernel systems are solved.

    Attributes
    ----------
    method : {"auto", "iterative", "dense", "nystrom"}
        ``auto``: exact (to `tolerance`) up to 50,000 rows, by whichever exact way is cheaper,
        and Nyström above. The others insist.
    tolerance : float, optional
        Absolute error allowed in a squared discrepancy for a kernel of size one: 1e-10 in
        64 bits, 1e-4 in 32 bits by default.
    dtype : {"float64", "float32"}
        Number type of the products with the input kernel.
    landmarks : int
        Most landmarks of a Nyström approximation.
    memory : float
        Bytes that one kernel matrix may take; above, it is made tile by tile.
    seed : int
        Seed of the rows on which a Nyström approximation is built and its error estimated.
    progress : callable, optional
        Called with a stage's name, steps done and steps in all.

    Raises
    ------
    InputError
        If an option lies outside its domain.

    Examples
    --------
    >>> SolverOptions(dtype="float32").accuracy
    0.0001
    """

    method: Method = "auto"
    tolerance: float | None = None
    dtype: Literal["float64", "float32"] = "float64"
    landmarks: int = 1000
    memory: float = 2e9
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.method not in ("auto", "iterative", "dense", "nystrom"):
            raise InputError(
                f"method must be auto, iterative, dense or nystrom, got {self.method!r}"
            )
        if self.dtype not in ("float64", "float32"):
            raise InputError(f"dtype must be float64 or float32, got {self.dtype!r}")
        if self.tolerance is not None and not 0.0 < self.tolerance < 1.0:
            raise InputError(f"tolerance must lie between 0 and 1, got {self.tolerance!r}")
        if self.landmarks < 1:
            raise InputError(f"landmarks must be at least 1, got {self.landmarks!r}")

    @property
    def accuracy(self) -> float:
        """The tolerance, or its default for the number type."""
        if self.tolerance is not None:
            return self.tolerance
        return 1e-10 if self.dtype == "float64" else 1e-4


class Preconditioner:
    """M = F Fᵀ + ρI with F a pivoted Cholesky factor of K: products with M⁻¹ and M^(-1/2).

    K − F Fᵀ is positive semi-definite, so M ≤ K + ρI. Two things follow. First, for any x,
    ‖k(x)ᵀ(K+ρI)⁻¹R‖ ≤ √k(x,x) ‖M^(-1/2) R‖: the error that a residual R leaves in a prediction.
    Second, where the trace of K − F Fᵀ is tiny, M⁻¹T is the solution, with a known error.

    Parameters
    ----------
    factor : ndarray of float, shape (n, p)
        F.
    ridge : float
        ρ, positive.

    Examples
    --------
    >>> m = Preconditioner(np.array([[1.0], [0.0]]), 3.0)
    >>> m.solve(np.eye(2)).round(3).tolist()
    [[0.25, 0.0], [0.0, 0.333]]
    >>> m.whiten(np.eye(2)).round(3).tolist()
    [[0.5, 0.0], [0.0, 0.577]]
    """

    __slots__ = ("_basis", "_factor", "_shrink", "_values", "_vectors", "ridge")

    def __init__(self, factor: Array, ridge: float) -> None:
        self.ridge = ridge
        self._factor = factor
        inner: FloatArray = (factor.T @ factor).astype(np.float64)
        values, vectors = np.linalg.eigh(inner)
        self._values: FloatArray = np.maximum(values, 0.0)
        self._vectors: FloatArray = vectors
        # Directions far below ρ are left as they are in the root: M shrinks by a thousandth
        # there, stays below K + ρI, and the basis stays orthonormal to many digits.
        kept = self._values > _NEGLIGIBLE * ridge
        scaled = vectors[:, kept] / np.sqrt(self._values[kept])
        self._basis: Array = factor @ scaled.astype(factor.dtype)
        shrink = 1.0 - np.sqrt(ridge / (ridge + self._values[kept]))
        self._shrink: Array = shrink[:, None].astype(factor.dtype)

    def solve(self, vectors: Array) -> Array:
        """M⁻¹ V, by Woodbury's identity."""
        inner = self._vectors.T @ (self._factor.T @ vectors)
        inner = self._vectors @ (inner / (self.ridge + self._values)[:, None])
        solved: Array = vectors - self._factor @ inner.astype(vectors.dtype, copy=False)
        solved /= vectors.dtype.type(self.ridge)
        return solved

    def whiten(self, vectors: Array) -> Array:
        """M^(-1/2) V."""
        kept = self._basis.T @ vectors
        whitened: Array = vectors - self._basis @ (self._shrink * kept)
        whitened /= vectors.dtype.type(np.sqrt(self.ridge))
        return whitened


def block_cg(
    apply: Callable[[Array], Array],
    targets: Array,
    *,
    stop: float,
    max_iterations: int = _ITERATIONS,
) -> tuple[Array, int, bool]:
    """Block conjugate gradients for A X = B, A symmetric positive definite.

    All right-hand sides share one search space. The residual block is kept as an orthonormal
    basis times a small matrix, which keeps the method sound when the right-hand sides are
    dependent or converge at different times (Dubrulle 2001, BCGrQ).

    Parameters
    ----------
    apply : callable
        V ↦ A V.
    targets : ndarray of float, shape (n, r)
        B, with r ≤ n.
    stop : float
        Stop once the Frobenius norm of the (updated) residual is at most this.
    max_iterations : int
        Give up after this many.

    Returns
    -------
    solution : ndarray of float, shape (n, r)
    iterations : int
        Products with A.
    converged : bool

    Raises
    ------
    InputError
        If a direction of negative curvature shows that A is not positive definite.

    Examples
    --------
    >>> a = np.diag([1.0, 2.0, 3.0])
    >>> block_cg(lambda v: a @ v, np.ones((3, 1)), stop=1e-12)[0][:, 0].round(6).tolist()
    [1.0, 0.5, 0.333333]
    """
    solution = np.zeros_like(targets)
    if float(np.linalg.norm(targets)) <= stop:
        return solution, 0, True
    basis, scale = np.linalg.qr(targets)
    direction = basis
    for iteration in range(1, max_iterations + 1):
        image = apply(direction)
        curvature = direction.T @ image
        step = _solve_curvature((curvature + curvature.T) / 2)
        solution += direction @ (step @ scale)
        basis, ratio = np.linalg.qr(basis - image @ step)
        scale = ratio @ scale
        if float(np.linalg.norm(scale)) <= stop:
            return solution, iteration, True
        direction = basis + direction @ ratio.T
    return solution, max_iterations, False


def _solve_curvature(curvature: Array) -> Array:
    """Inverse of the small matrix of one block step."""
    values, vectors = np.linalg.eigh(curvature)
    if values[0] <= 0.0:
        raise InputError(
            "kernel must be positive definite, got a direction of negative curvature "
            f"({values[0]:.3g})"
        )
    inverse: Array = (vectors / values) @ vectors.T
    return inverse
