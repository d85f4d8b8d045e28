"""Low-rank factors of positive semi-definite matrices that are only known by their columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.rng import child
from howsure.stats.kernels import Kernel
from howsure.stats.namespace import Array, like, namespace, on_host, triangular_solve

_ROUNDS = 4
_WORST = 100  # badly served rows that join the candidates in each round


@dataclass(frozen=True, slots=True)
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
    for _ in range(_ROUNDS):
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
        worst = np.argsort(on_host(residual))[-_WORST:]
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
    kept = min(int(rank), max_rank) if gram.any() else 0
    triangle: Array = np.tril(lower[:kept, :kept])
    return np.asarray(order[:kept] - 1, dtype=np.int64), triangle


def _check_residual(residual: Array, slack: float, name: str) -> None:
    smallest = float(residual.min())
    if smallest < -slack:
        raise InputError(
            f"{name} must be positive definite, got a Gram matrix that is not: a factor's "
            f"residual fell to {smallest:.3g}"
        )
