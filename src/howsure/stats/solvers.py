"""Solvers for many right-hand sides at once: options, preconditioning, block conjugate gradients.

No inverse is ever formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.rng import child
from howsure.stats.kernels import MEMORY, Kernel
from howsure.stats.namespace import Array, like, namespace, on_host, triangular_solve

Method = Literal["auto", "iterative", "dense", "nystrom"]

# Chosen by hand; not tuned. Larger, a badly conditioned system takes longer before it is given up.
_MAX_ITERATIONS = 500
_NEGLIGIBLE = 1e-3  # of ρ: eigenvalues that a preconditioner need not see


@frozen
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
            raise InputError(f"tolerance must be between 0 and 1, got {self.tolerance!r}")
        if self.landmarks < 1:
            raise InputError(f"landmarks must be at least 1, got {self.landmarks!r}")

    @property
    def accuracy(self) -> float:
        """The tolerance, or its default for the number type."""
        if self.tolerance is not None:
            return self.tolerance
        # Two thirds of the digits of a number: a residual cannot be trusted to more of them.
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

    def __init__(self, factor: Array, ridge: float) -> None:
        xp = namespace(factor)
        self.ridge = ridge
        self._factor = factor
        values, vectors = xp.linalg.eigh(xp.asarray(factor.T @ factor, dtype=xp.float64))
        self._values: Array = xp.clip(values, 0.0, None)
        self._vectors: Array = vectors
        # Directions far below ρ are left as they are in the root: M shrinks by a thousandth
        # there, stays below K + ρI, and the basis stays orthonormal to many digits.
        retained = self._values > _NEGLIGIBLE * ridge
        scaled = vectors[:, retained] / xp.sqrt(self._values[retained])
        self._basis: Array = factor @ xp.asarray(scaled, dtype=factor.dtype)
        shrink = 1.0 - xp.sqrt(ridge / (ridge + self._values[retained]))
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
        projected = self._basis.T @ vectors
        whitened: Array = vectors - self._basis @ (self._shrink * projected)
        whitened /= math.sqrt(self.ridge)
        return whitened


def block_cg(
    apply: Callable[[Array], Array],
    targets: Array,
    *,
    stop: float,
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
    for iteration in range(1, _MAX_ITERATIONS + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # of divergence, looked for below
            image = apply(direction)
            curvature = direction.T @ image
            if not bool(xp.all(xp.isfinite(curvature))):
                return solution, iteration, False
            step = _solve_curvature((curvature + curvature.T) / 2)
            solution += direction @ (step @ scale)
            basis, ratio = xp.linalg.qr(basis - image @ step)
            scale = ratio @ scale
            residual = float(xp.linalg.matrix_norm(scale))
        if not residual < most:  # beyond what rounding in this number type can recover from
            return solution, iteration, False
        if progress is not None:
            progress(_share(first, residual, stop))
        if residual <= stop:
            return solution, iteration, True
        direction = basis + direction @ ratio.T
    return solution, _MAX_ITERATIONS, False


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


# ---- low-rank factors of positive semi-definite matrices that are only known by their columns ----

# Chosen by hand; not tuned. Each round adds the worst rows; more would go on where a kernel is too
# rough for landmarks.
_MAX_ROUNDS = 4
# Badly served rows that join the candidates in each round: few beside the sample. By hand; not
# tuned.
_ROWS_ADDED = 100


@frozen
class PivotedFactor:
    """L with A ≈ L Lᵀ, exact in the pivots' rows and columns."""

    factor: Array  # shape (n, r): L. Its rows at the pivots form a lower triangle.
    pivots: IntArray  # shape (r,): the chosen rows, in order
    # shape (n,): diagonal of A − L Lᵀ, which is positive semi-definite; so its sum bounds every
    # norm of what is left out
    residual: Array

    @property
    def rank(self) -> int:
        """Number of columns of L."""
        return len(self.pivots)

    @property
    def triangle(self) -> Array:
        """Rows of L at the pivots, lower triangular, shape (r, r)."""
        rows: Array = self.factor[self.pivots]
        return rows


def pivoted_cholesky(
    diagonal: Array,
    column: Callable[[int], Array],
    *,
    tolerance: float = 0.0,
    max_rank: int | None = None,
    weights: FloatArray | None = None,
    name: str = "kernel",
) -> PivotedFactor:
    """Greedy pivoted Cholesky factor of a positive semi-definite matrix.

    Each step takes the row with the largest (weighted) residual diagonal. Cost: r columns of the
    matrix and n r² operations; the matrix itself is never formed (Harbrecht, Peters and
    Schneider 2012).
    """
    xp = namespace(diagonal)
    residual: Array = xp.asarray(diagonal, copy=True)
    shares = None if weights is None else like(weights, residual)
    size, scale = len(residual), float(residual.max())
    if float(residual.min()) < 0.0:
        raise InputError(f"{name} must be positive definite, got a negative diagonal")
    limit = size if max_rank is None else min(size, max_rank)
    factor: Array = xp.empty((limit, size), dtype=residual.dtype, device=residual.device)
    pivots = np.empty(limit, dtype=np.int64)  # factor holds a column of L in each row
    precision = float(xp.finfo(residual.dtype).eps)
    rank = 0
    while rank < limit:
        weighted = residual if shares is None else residual * shares
        if float(weighted.sum()) <= tolerance:
            break
        pivot = int(xp.argmax(xp.where(residual > 16 * precision * scale, weighted, 0.0)))
        peak = float(residual[pivot])
        if peak <= 16 * precision * scale:
            break
        fresh = column(pivot) - factor[:rank, pivot] @ factor[:rank]
        fresh /= math.sqrt(peak)
        fresh[pivots[:rank]] = 0.0  # exactly: earlier pivots are settled
        residual -= fresh * fresh
        residual[pivot] = 0.0
        _check_residual(residual, math.sqrt(precision) * scale, name)
        xp.clip(residual, 0.0, None, out=residual)
        factor[rank], pivots[rank] = fresh, pivot
        rank += 1
        report_progress("landmarks", rank, limit)
    report_progress("landmarks", limit, limit)
    return PivotedFactor(factor[:rank].T, pivots[:rank].copy(), residual)


def landmark_factor(
    kernel: Kernel, rows: Array, *, tolerance: float, max_rank: int, seed: int = 0
) -> tuple[Array, Array]:
    """Low-rank factor of a kernel's Gram matrix by a few large steps.

    As good as `pivoted_cholesky` where it matters, and made of few matrix products: landmarks
    are pivots within a random sample of rows. While the rank stays below its limit, so that the
    kernel is smooth, the rows served worst join the sample until the tolerance is met.
    """
    rng = child(seed, "landmark factor")
    chosen = rng.permutation(len(rows))[: 2 * max_rank]
    xp = namespace(rows)
    diagonal = kernel.diagonal(rows)
    if not diagonal.any():
        return xp.zeros_like(diagonal)[:, None], xp.zeros_like(diagonal)
    slack = math.sqrt(xp.finfo(rows.dtype).eps) * float(diagonal.max())
    for _ in range(_MAX_ROUNDS):
        sample = rows[chosen]
        pivots, triangle = _pivots_of(on_host(kernel.gram(sample, sample)), max_rank)
        landmarks = chosen[pivots]
        factor = coordinates(like(triangle, rows), kernel.gram(rows[landmarks], rows))
        residual = diagonal - xp.vecdot(factor, factor)
        rank = len(pivots)
        while float(residual.min()) < -slack and triangle[rank - 1, rank - 1] ** 2 <= slack:
            # rounding, which division by ever smaller pivots has grown: do without the last
            rank -= 1
            residual += factor[:, rank] ** 2
        factor, landmarks = factor[:, :rank], landmarks[:rank]
        _check_residual(residual, slack, "kernel")
        xp.clip(residual, 0.0, None, out=residual)
        if float(residual.sum()) <= tolerance or rank >= max_rank:
            break
        worst = np.argsort(on_host(residual))[-_ROWS_ADDED:]
        chosen = np.union1d(landmarks, worst)
    return factor, residual


def coordinates(triangle: Array, cross: Array) -> Array:
    """Rows' coordinates in the landmarks' span: (L⁻¹ k(Z, rows))ᵀ, shape (n, r)."""
    return triangular_solve(triangle, cross).T


def dense_factor(
    matrix: FloatArray, name: str = "kernel", *, scale: float = 0.0
) -> tuple[FloatArray, float]:
    """Full-precision factor A ≈ L Lᵀ of a positive semi-definite matrix held in memory."""
    from scipy.linalg import lapack

    size = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    scale = max(scale, float(diagonal.max()))
    stop = size * float(np.finfo(np.float64).eps) * scale
    if float(diagonal.max()) <= stop:
        return np.zeros((size, 1)), float(np.maximum(diagonal, 0.0).sum())
    lower, order, rank, _ = lapack.dpstrf(matrix.T, tol=stop, lower=1, overwrite_a=1)
    factor = np.empty((size, rank))
    factor[order - 1] = np.tril(lower[:, :rank])
    residual = diagonal - np.einsum("ij,ij->i", factor, factor)
    _check_residual(residual, np.sqrt(np.finfo(np.float64).eps) * scale, name)
    return factor, float(np.maximum(residual, 0.0).sum())


def _pivots_of(gram: Array, max_rank: int) -> tuple[IntArray, Array]:
    """Pivots and triangle of a Gram matrix held in memory, in one library call."""
    from scipy.linalg import lapack

    factorise = lapack.spstrf if gram.dtype == np.float32 else lapack.dpstrf
    stop = 16 * float(np.finfo(gram.dtype).eps) * float(np.diagonal(gram).max(initial=0.0))
    lower, order, rank, _ = factorise(gram.T, tol=stop, lower=1, overwrite_a=1)
    count = min(int(rank), max_rank) if gram.any() else 0
    triangle: Array = np.tril(lower[:count, :count])
    return np.asarray(order[:count] - 1, dtype=np.int64), triangle


def _check_residual(residual: Array, slack: float, name: str) -> None:
    smallest = float(residual.min())
    if smallest < -slack:
        raise InputError(
            f"{name} must be positive definite, got a Gram matrix that is not: a factor's "
            f"residual fell to {smallest:.3g}"
        )
