"""Solvers for many right-hand sides at once: options, preconditioning, block conjugate gradients.

No inverse is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from howsure.core.errors import InputError
from howsure.stats.gram import MEMORY
from howsure.stats.namespace import Array, namespace

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
        Number type of the products with the input kernel, whatever the type of the inputs.
    landmarks : int
        Most landmarks of a Nyström approximation.
    memory : float
        Bytes that one kernel matrix may take: up to there it is made once and kept, above it is
        made again, tile by tile, in every product.
    seed : int
        Seed of the rows on which a Nyström approximation is built and its error estimated.

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
    memory: float = MEMORY
    seed: int = 0

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


class NegativeCurvatureError(InputError):
    """A matrix that should be positive definite is not, or not in the working precision."""


class Preconditioner:
    """M = F Fᵀ + ρI with F a pivoted Cholesky factor of K: products with M⁻¹ and M^(-1/2).

    K − F Fᵀ is positive semi-definite, so M ≤ K + ρI. Two things follow. First, for any x,
    ‖k(x)ᵀ(K+ρI)⁻¹R‖ ≤ √k(x,x) ‖M^(-1/2) R‖: the error that a residual R leaves in a prediction.
    Second, where the trace of K − F Fᵀ is tiny, M⁻¹T is the solution, with a known error.

    Parameters
    ----------
    factor : ndarray or tensor of float, shape (n, p)
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
        xp = namespace(factor)
        self.ridge = ridge
        self._factor = factor
        values, vectors = xp.linalg.eigh(xp.asarray(factor.T @ factor, dtype=xp.float64))
        self._values: Array = xp.clip(values, 0.0, None)
        self._vectors: Array = vectors
        # Directions far below ρ are left as they are in the root: M shrinks by a thousandth
        # there, stays below K + ρI, and the basis stays orthonormal to many digits.
        kept = self._values > _NEGLIGIBLE * ridge
        scaled = vectors[:, kept] / xp.sqrt(self._values[kept])
        self._basis: Array = factor @ xp.asarray(scaled, dtype=factor.dtype)
        shrink = 1.0 - xp.sqrt(ridge / (ridge + self._values[kept]))
        self._shrink: Array = xp.asarray(shrink[:, None], dtype=factor.dtype)

    def solve(self, vectors: Array) -> Array:
        """M⁻¹ V, by Woodbury's identity."""
        xp = namespace(vectors)
        inner = self._vectors.T @ xp.asarray(self._factor.T @ vectors, dtype=xp.float64)
        inner = self._vectors @ (inner / (self.ridge + self._values)[:, None])
        solved: Array = vectors - self._factor @ xp.asarray(inner, dtype=vectors.dtype)
        solved /= self.ridge
        return solved

    def whiten(self, vectors: Array) -> Array:
        """M^(-1/2) V."""
        kept = self._basis.T @ vectors
        whitened: Array = vectors - self._basis @ (self._shrink * kept)
        whitened /= math.sqrt(self.ridge)
        return whitened


def block_cg(
    apply: Callable[[Array], Array],
    targets: Array,
    *,
    stop: float,
    max_iterations: int = _ITERATIONS,
    progress: Callable[[float], object] | None = None,
) -> tuple[Array, int, bool]:
    """Block conjugate gradients for A X = B, A symmetric positive definite.

    All right-hand sides share one search space. The residual block is kept as an orthonormal
    basis times a small matrix, which keeps the method sound when the right-hand sides are
    dependent or converge at different times (Dubrulle 2001, BCGrQ).
    """
    xp = namespace(targets)
    solution: Array = xp.zeros_like(targets)
    first = float(xp.linalg.matrix_norm(targets))
    if first <= stop:
        return solution, 0, True
    basis, scale = xp.linalg.qr(targets)
    direction, most = basis, first / float(xp.finfo(targets.dtype).eps)
    for iteration in range(1, max_iterations + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # of divergence, looked for below
            image = apply(direction)
            curvature = direction.T @ image
            if not bool(xp.all(xp.isfinite(curvature))):
                return solution, iteration, False
            step = _solve_curvature((curvature + curvature.T) / 2)
            solution += direction @ (step @ scale)
            basis, ratio = xp.linalg.qr(basis - image @ step)
            scale = ratio @ scale
            rest = float(xp.linalg.matrix_norm(scale))
        if not rest < most:  # beyond what rounding in this number type can recover from
            return solution, iteration, False
        if progress is not None:
            progress(_share(first, rest, stop))
        if rest <= stop:
            return solution, iteration, True
        direction = basis + direction @ ratio.T
    return solution, max_iterations, False


def _share(first: float, now: float, stop: float) -> float:
    """How far a residual has come from the first one to the last, between 0 and 1."""
    if now <= stop:
        return 1.0
    return max(0.0, math.log(first / now) / math.log(first / stop))


def _solve_curvature(curvature: Array) -> Array:
    """Inverse of the small matrix of one block step."""
    values, vectors = namespace(curvature).linalg.eigh(curvature)
    smallest = float(values[0])
    if smallest <= 0.0:
        raise NegativeCurvatureError(
            "kernel must be positive definite, got a direction of negative curvature "
            f"({smallest:.3g})"
        )
    inverse: Array = (vectors / values) @ vectors.T
    return inverse
