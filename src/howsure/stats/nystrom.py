"""Nyström approximation of a regularised kernel system, for rows past counting in pairs."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.progress import reported
from howsure.core.rng import child
from howsure.stats.gram import tiles
from howsure.stats.kernels import Kernel
from howsure.stats.low_rank import coordinates, pivoted_cholesky
from howsure.stats.namespace import (
    Array,
    add_to_diagonal,
    cholesky,
    cholesky_solve,
    like,
    namespace,
    on_host,
)
from howsure.stats.ridge import KernelSystem, RidgeSystem, Solution
from howsure.stats.solvers import SolverOptions

_EXACT_ROWS = 50_000  # above, `auto` approximates
_ROWS = 8192  # rows whose features are held at once
_CHECK_ROWS = 4000  # rows of the exact system that the error is estimated on
_CHECK_GRID = 1000


class NystromSystem(KernelSystem):
    """The system of `RidgeSystem` with K replaced by its projection on p landmark rows.

    With features f(x) = L⁻¹ k(Z, x), L the Cholesky factor of k(Z, Z), the prediction is
    f(x)ᵀ (FᵀF + ρI)⁻¹ FᵀT: two passes over the rows, n p² operations, p n kernel values, and no
    more than a tile of them held. The landmarks Z are the pivots of a pivoted Cholesky factor
    of a random sample of rows; where the kernel is smooth enough they stop early, and the
    approximation is then exact to the tolerance at the rows, and to its root elsewhere.

    Parameters
    ----------
    kernel : Kernel
        The input kernel.
    rows : ndarray or tensor of float, shape (n, d)
        The inputs, in the number type and on the device to work in.
    regularization : float
        λ, positive; multiplied by the number of rows.
    options : SolverOptions
        How to solve; `landmarks` and `seed` matter.

    Examples
    --------
    >>> from howsure.stats.kernels import RBF
    >>> system = NystromSystem(RBF(1.0), np.array([[0.0], [9.0]]), 0.5)
    >>> solution = system.solve(np.array([[1.0], [0.0]]))
    >>> system.predict(np.array([[0.0]]), solution).tolist()
    [[0.5]]
    """

    __slots__ = ("_check", "_gram", "_landmarks", "_triangle")

    def __init__(
        self,
        kernel: Kernel,
        rows: Array,
        regularization: float,
        options: SolverOptions | None = None,
    ) -> None:
        super().__init__(kernel, rows, regularization, options)
        self._gram: Array | None = None
        self._check: tuple[FloatArray, RidgeSystem, Solution, Array] | None = None
        self._landmarks, self._triangle = self._choose(float(regularization))

    @property
    def landmarks(self) -> int:
        return len(self._landmarks)

    def solve(self, targets: FloatArray, counts: FloatArray | None = None) -> Solution:
        gram, right = self._sums(self.rows, self._in_range(targets), counts)
        return Solution(coefficients=_weights(gram, right, self.ridge), solver="nystrom")

    def predict(self, grid: Array, solution: Solution) -> Array:
        xp = namespace(grid)
        width = solution.coefficients.shape[1]
        out: Array = xp.empty((len(grid), width), dtype=grid.dtype, device=grid.device)
        weights = like(solution.coefficients, grid)
        for part in reported(tiles(len(grid), _ROWS), "landmarks at new rows"):
            out[part] = self._features(grid[part]) @ weights
        return out

    def estimate_error(self, targets: FloatArray, grid: Array) -> tuple[float, float]:
        """Compare with the exact system on a random sample of rows.

        Up to 4,000 rows and 1,000 grid rows are drawn. The system of the sample has the same λ,
        and its kernel matrix divided by its size the same spectrum but for sampling noise, so
        what the landmarks miss on the sample is what they miss on all rows.
        """
        if self._check is None or self._check[0] is not targets:
            self._check = (targets, *self._on_sample(targets))
        _, exact, solution, weights = self._check
        rng = child(self.options.seed, "nystrom error", "grid")
        where = grid[_sample(rng, len(grid), _CHECK_GRID)]
        guess = self._features(where) @ like(weights, where)
        gap = np.linalg.norm(on_host(exact.predict(where, solution) - guess), axis=1)
        return float(np.sqrt(np.mean(np.square(gap)))), float(gap.max())

    def _on_sample(self, targets: FloatArray) -> tuple[RidgeSystem, Solution, Array]:
        """The exact system of a sample of rows, its solution, and the landmarks' weights."""
        rng = child(self.options.seed, "nystrom error", "rows")
        chosen = _sample(rng, len(self.rows), _CHECK_ROWS)
        rows, some = self.rows[chosen], targets[chosen]
        regularization = self.ridge / len(self.rows)
        exact = RidgeSystem(self.kernel, rows, regularization, self.options)
        gram, right = self._sums(rows, some, None)
        return exact, exact.solve(some), _weights(gram, right, regularization * len(rows))

    def _choose(self, regularization: float) -> tuple[Array, Array]:
        rng = child(self.options.seed, "nystrom landmarks")
        sample = self.rows[_sample(rng, len(self.rows), 10 * self.options.landmarks)]
        found = pivoted_cholesky(
            self.kernel.diagonal(sample),
            lambda row: self.kernel.gram(sample[row : row + 1], sample)[0],
            # a hundredth of what the answer may err: what is left out is not seen in it
            tolerance=len(sample) * regularization * self.options.accuracy * 1e-2,
            max_rank=self.options.landmarks,
        )
        return sample[found.pivots], found.triangle

    def _features(self, rows: Array) -> Array:
        return coordinates(self._triangle, self.kernel.gram(self._landmarks, rows))

    def _sums(
        self, rows: Array, targets: FloatArray, counts: FloatArray | None
    ) -> tuple[Array, Array]:
        """FᵀF and FᵀT in 64 bits, the first kept when it is that of all rows, each seen once."""
        xp = namespace(rows)
        whole = rows is self.rows and counts is None
        size = self.landmarks
        gram: Array = xp.zeros((size, size), dtype=xp.float64, device=rows.device)
        right: Array = xp.zeros((size, targets.shape[1]), dtype=xp.float64, device=rows.device)
        parts = tiles(len(rows), _ROWS)
        for part in reported(parts, "landmark features"):
            features = self._features(rows[part])
            scaled = features
            if counts is not None:
                scaled = features * like(counts[part, None], features)
            if not (whole and self._gram is not None):
                gram += features.T @ scaled
            right += scaled.T @ like(targets[part], features)
        if whole:
            self._gram = gram if self._gram is None else self._gram
            gram = self._gram
        return gram, right


def _weights(gram: Array, right: Array, ridge: float) -> Array:
    system = namespace(gram).asarray(gram, copy=True)
    add_to_diagonal(system, ridge)
    try:
        return cholesky_solve(cholesky(system), right)
    except np.linalg.LinAlgError as error:
        raise InputError(
            "regularization must be larger for this many rows in this number type, got "
            f"{ridge:.3g} in all, which rounding outweighs"
        ) from error


def _sample(
    rng: np.random.Generator, rows: int, size: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if rows <= size:
        return np.arange(rows)
    return np.sort(rng.choice(rows, size, replace=False, shuffle=False))


def kernel_system(
    kernel: Kernel, rows: Array, regularization: float, options: SolverOptions
) -> KernelSystem:
    """The exact system, or its Nyström approximation past 50,000 rows or where asked for."""
    many = options.method == "auto" and len(rows) > _EXACT_ROWS
    if many or options.method == "nystrom":
        return NystromSystem(kernel, rows, regularization, options)
    return RidgeSystem(kernel, rows, regularization, options)
