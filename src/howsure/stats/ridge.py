"""Regularised systems with a kernel matrix: (K + ρI) C = T, and predictions from C.

`RidgeSystem` chooses between the spectrum of a smooth kernel, a Cholesky factor and preconditioned
block conjugate gradients, says what it did, and measures or bounds the residual of every solve.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, InputError, UnanswerableError
from howsure.core.progress import report_progress, reported
from howsure.core.rng import child
from howsure.stats.kernels import (
    GramOperator,
    Kernel,
    check_positive_definite,
    cross_product,
    tiles,
)
from howsure.stats.namespace import (
    Array,
    add_to_diagonal,
    cholesky,
    cholesky_solve,
    like,
    namespace,
    on_host,
    same_rows,
)
from howsure.stats.solvers import (
    NegativeCurvatureError,
    Preconditioner,
    SolverOptions,
    block_cg,
    coordinates,
    dense_factor,
    landmark_factor,
    pivoted_cholesky,
)

# Right-hand sides solved together: they share a search space, but their inner products grow with
# the square. By hand; not tuned: larger takes more memory.
_SIDES_AT_ONCE = 256
# Largest rank of the preconditioner: 200 columns cost as much as 200 products with one vector. By
# hand; not tuned: larger saves iterations of a slow spectrum.
_MAX_RANK = 200
_PERCENT = 100
_CHOLESKY_SHARE = 30  # a Cholesky factor pays off from n / this right-hand sides on
_SPECTRUM_SHARE = 4  # the spectrum of a smooth kernel does so from n / this on
# Share of the trace that the preconditioner of a smooth kernel leaves out: more, and the rank of
# the whole is high, so that a spectrum does not pay off. By hand.
_SMOOTH = 1e-3
_FINE = 1e-5  # of ρ: eigenvalues below change a solution so little that 32 bits carry it


@frozen(kw_only=True)
class Solution:
    """Coefficients of a solved system, and how good they are."""

    coefficients: Array  # shape (n, r): C, or the weights of p landmarks
    # shape (n, r): K C, the smoothed targets at the rows themselves, where that came with the
    # solution
    fitted: Array | None = None
    solver: str  # what solved it
    iterations: int = 0  # products with K that conjugate gradients took; 0 for a direct solve
    # ‖T − (K+ρI)C‖ / ‖T‖ in the Frobenius norm; NaN for an approximate system
    residual: float = math.nan
    # bound of ‖k(x)ᵀ(C − exact C)‖ for any x with k(x,x) = 1, and √k(x,x) times this for others, up
    # to the rounding of the number type; NaN for an approximate system
    error: float = math.nan


class KernelSystem(ABC):
    """A regularised kernel system over n rows with ρ = n λ, exact or approximate."""

    def __init__(
        self,
        kernel: Kernel,
        rows: Array,
        regularization: float,
        options: SolverOptions | None = None,
    ) -> None:
        if not 0.0 < regularization < np.inf:
            raise InputError(f"regularization must be a positive number, got {regularization!r}")
        check_positive_definite(kernel, rows)
        self.kernel = kernel
        self.rows = rows
        self.options = options or SolverOptions()
        self.ridge = len(rows) * float(regularization)
        self._peak = float(kernel.diagonal(rows).max())
        if len(rows) ** 2 * self._peak > self._largest():
            raise InputError(
                f"kernel must be smaller for sums over {len(rows)} rows in {self.options.dtype}, "
                f"got {kernel.describe()} of up to {self._peak:.3g}; scale x, or use float64"
            )
        self._prepare(float(regularization))

    @abstractmethod
    def _prepare(self, regularization: float) -> None:
        """Set up what the rows are solved with."""

    def with_regularization(self, regularization: float) -> KernelSystem:
        """The system of the same rows with another λ."""
        return type(self)(self.kernel, self.rows, regularization, self.options)

    @property
    def landmarks(self) -> int:
        """Landmark rows of an approximate system; 0 for an exact one."""
        return 0

    @abstractmethod
    def solve(self, targets: FloatArray, counts: FloatArray | None = None) -> Solution:
        """Solve for one set of targets."""

    @abstractmethod
    def predict(self, grid: Array, solution: Solution) -> Array:
        """k(grid)ᵀ C, shape (g, r)."""

    def fitted(self, solution: Solution) -> Array:
        """Predictions at the rows themselves, shape (n, r)."""
        return self.predict(self.rows, solution) if solution.fitted is None else solution.fitted

    def _in_range(self, targets: FloatArray) -> FloatArray:
        """Refuse targets whose solution's squares overflow the number type."""
        size = max(1.0, 1.0 / self.ridge, math.sqrt(self._peak))
        largest = max(float(targets.max(initial=0.0)), -float(targets.min(initial=0.0)))
        if size * largest * targets.size > math.sqrt(self._largest()):
            raise DegenerateError(
                f"targets must be smaller to be solved for in {self.options.dtype}, got numbers of "
                f"up to {largest:.3g}; scale y, or use float64"
            )
        return targets

    def _largest(self) -> float:
        return float(namespace(self.rows).finfo(self.rows.dtype).max) / 8.0


class RidgeSystem(KernelSystem):
    """(K + ρI) C = T for a kernel matrix K of n rows, ρ = n λ, and predictions from C.

    With counts c (rows seen c times, as in a bootstrap sample) the system is the one of the
    repeated rows: only the diagonal changes, so K, its spectrum and the factor behind the
    preconditioner are shared, and a Cholesky factor is not.

    Parameters
    ----------
    kernel : Kernel
        The input kernel.
    rows : ndarray or tensor of float, shape (n, d)
        The inputs, in the number type and on the device to work in.
    regularization : float
        λ, positive; multiplied by the number of rows.
    options : SolverOptions
        How to solve.

    Examples
    --------
    >>> from howsure.stats.kernels import RBF
    >>> system = RidgeSystem(RBF(1.0), np.array([[0.0], [9.0]]), 0.5)
    >>> system.solve(np.array([[1.0], [0.0]])).coefficients[:, 0].tolist()
    [0.5, 0.0]
    """

    def _prepare(self, regularization: float) -> None:
        self.operator = GramOperator(self.kernel, self.rows, memory=self.options.memory)
        self._cholesky: Array | None = None
        self._factor: tuple[Array, Array] | None = None
        self._preconditioner: Preconditioner | None = None
        self._spectrum: tuple[Array, Array, Array, float] | None = None

    def solve(self, targets: FloatArray, counts: FloatArray | None = None) -> Solution:
        right = like(self._in_range(targets), self.rows)
        root = None if counts is None else like(np.sqrt(counts)[:, None], self.rows)
        if self._smooth(right.shape[1] if counts is None else 0):
            return self._by_spectrum(right, None if root is None else root * root)
        method, many = self.options.method, right.shape[1] * _CHOLESKY_SHARE >= len(self.rows)
        if method == "dense" or (method != "iterative" and many and self.operator.fits):
            return self._by_cholesky(right, root)
        try:
            return self._by_gradients(right, root)
        except NegativeCurvatureError as error:
            if not self.kernel.certain(self.rows.shape[1]):
                raise
            reason: Exception = error  # rounding, then: a factor may fare better
        except _NotConvergedError as error:
            reason = error
        if self.operator.fits:
            return self._by_cholesky(right, root)
        raise UnanswerableError(
            f"conjugate gradients did not converge in {self.options.dtype}; a larger "
            "regularization, or fewer rows, would help"
        ) from reason

    def with_regularization(self, regularization: float) -> KernelSystem:
        other = RidgeSystem(self.kernel, self.rows, regularization, self.options)
        other.operator = self.operator  # with its matrix, once made
        return other

    def predict(self, grid: Array, solution: Solution) -> Array:
        if solution.fitted is not None and same_rows(grid, self.rows):
            return solution.fitted
        return cross_product(self.kernel, grid, self.rows, solution.coefficients)

    def factor(self) -> tuple[Array, Array]:
        """The low-rank factor of K behind the preconditioner, and what it leaves out."""
        if self._factor is None:
            self._factor = landmark_factor(
                self.kernel,
                self.rows,
                # a hundredth of what the answer may err: what is left out is not seen in it
                tolerance=self.ridge * self.options.accuracy * 1e-2,
                max_rank=max(1, min(_MAX_RANK, len(self.rows) // 8)),
                seed=self.options.seed,
            )
        return self._factor

    def _smooth(self, columns: int) -> bool:
        """Whether K's spectrum is known, or pays off for so many columns, and its rank is low."""
        rows, fits = len(self.rows), self.options.method == "auto" and self.operator.fits
        plain = isinstance(self.rows, np.ndarray) and self.rows.dtype == np.float64
        enough = self._spectrum is None and columns * _SPECTRUM_SHARE >= rows
        if enough and fits and plain and self._left_out(None) <= _SMOOTH * rows * self._peak:
            factor, discarded = dense_factor(np.array(self.operator.matrix(), dtype=np.float64))
            values, vectors = np.linalg.eigh(factor.T @ factor)
            resolved = values > 0.1 * self.options.accuracy * self.ridge
            discarded += float(values[~resolved].max(initial=0.0))
            values, basis = values[resolved][::-1], factor @ vectors[:, resolved][:, ::-1]
            fine = basis[:, values <= _FINE * self.ridge].astype(np.float32)
            self._spectrum = basis, values, fine, discarded
        return self._spectrum is not None and 2 * len(self._spectrum[1]) <= rows

    def _by_spectrum(self, targets: Array, counts: Array | None) -> Solution:
        """Solve in K's range: K is B Bᵀ with BᵀB diagonal, but for what is far below accuracy."""
        assert self._spectrum is not None
        basis, values, fine, discarded = self._spectrum
        if counts is None:
            weights, split = (self.ridge + values)[:, None], values.size - fine.shape[1]
            fitted = basis[:, :split] @ (basis[:, :split].T @ targets / weights[:split])
            unit = np.abs(targets).max(initial=0.0, keepdims=True) or np.ones((1, 1))
            low = (targets / unit).astype(np.float32)
            fitted += unit * (fine @ (fine.T @ low / weights[split:].astype(np.float32)))
        else:
            small = basis.T @ (counts * basis)
            inner = cholesky_solve(self._decompose(small), basis.T @ (counts * targets))
            fitted = basis @ inner
        coefficients = targets - fitted
        coefficients /= self.ridge
        if counts is not None:
            coefficients *= counts
            targets, discarded = np.sqrt(counts) * targets, discarded * float(counts.max())
        size = _norm(targets)
        return Solution(
            coefficients=coefficients,
            fitted=fitted,
            solver="spectrum",
            residual=discarded * _norm(coefficients) / size if size else 0.0,
            error=discarded / self.ridge**1.5 * size,
        )

    def _by_cholesky(self, targets: Array, root: Array | None) -> Solution:
        if root is None:
            if self._cholesky is None:
                gram = self.operator.matrix()
                self._cholesky = self._decompose(namespace(gram).asarray(gram, copy=True))
            coefficients = cholesky_solve(self._cholesky, targets)
        else:
            scaled = self.operator.matrix() * root
            scaled *= root[:, 0]
            coefficients = root * cholesky_solve(self._decompose(scaled), root * targets)
        return self._measured(targets, root, coefficients, "cholesky", 0)

    def _decompose(self, matrix: Array) -> Array:
        add_to_diagonal(matrix, self.ridge)
        try:
            return cholesky(matrix)
        except np.linalg.LinAlgError as error:
            raise self._not_definite() from error

    def _not_definite(self) -> InputError:
        kind, kernel = self.options.dtype, self.kernel.describe()
        if self.kernel.certain(self.rows.shape[1]):
            return InputError(
                f"regularization must be larger to outweigh rounding in {kind}, got "
                f"{self.ridge / len(self.rows):.3g} beside kernel {kernel} of {len(self.rows)} rows"
            )
        return InputError(
            f"kernel must be positive definite, got {kernel}, whose Gram matrix is not even with "
            "the regularization added"
        )

    def _by_gradients(self, targets: Array, root: Array | None) -> Solution:
        xp = namespace(targets)
        whitener = self._whitener(root)
        scaled = targets if root is None else root * targets
        allowed = self.options.accuracy / 8.0
        direct = whitener.solve(scaled)
        size = math.sqrt(max(float(xp.sum(direct * scaled, dtype=xp.float64)), 0.0))
        error = self._left_out(root) / self.ridge * size
        if error <= allowed:  # K is its own low-rank factor: nothing to iterate
            coefficients = direct if root is None else root * direct
            factor, _ = self.factor()
            norm = _norm(targets)
            return Solution(
                coefficients=coefficients,
                fitted=factor @ (factor.T @ coefficients),
                solver="low-rank factor",
                residual=self._left_out(root) * _norm(direct) / norm if norm else 0.0,
                error=error,
            )
        whitened = whitener.whiten(scaled)

        def apply(vectors: Array) -> Array:
            inner = whitener.whiten(vectors)
            product = self.operator.product(inner if root is None else root * inner)
            product = product if root is None else root * product
            return whitener.whiten(product + self.ridge * inner)

        solved, iterations = [], 0
        blocks = tiles(targets.shape[1], _SIDES_AT_ONCE)
        for number, block in enumerate(blocks):
            solution, steps, converged = block_cg(
                apply,
                whitened[:, block],
                stop=allowed / math.sqrt(len(blocks)),
                progress=partial(_report_share, number, len(blocks)),
            )
            if not converged:
                raise _NotConvergedError(f"residual too large after {steps} iterations")
            solved.append(solution)
            iterations = max(iterations, steps)
        coefficients = whitener.whiten(xp.concat(solved, axis=1))
        coefficients = coefficients if root is None else root * coefficients
        return self._measured(targets, root, coefficients, "block conjugate gradients", iterations)

    def _measured(
        self, targets: Array, root: Array | None, coefficients: Array, solver: str, iterations: int
    ) -> Solution:
        """Check a solution against the system itself, by one product more."""
        fitted = self.operator.product(coefficients)
        if root is None:
            off = targets - fitted - self.ridge * coefficients
        else:
            xp = namespace(root)
            inner = coefficients / xp.where(root > 0, root, 1.0)  # 0 where no row was seen
            off = root * (targets - fitted) - self.ridge * inner
            targets = targets[root[:, 0] > 0]
        size = _norm(targets)
        if solver == "cholesky":
            error = _norm(off) / math.sqrt(self.ridge)
        else:
            error = _norm(self._whitener(root).whiten(off))
        return Solution(
            coefficients=coefficients,
            fitted=fitted,
            solver=solver,
            iterations=iterations,
            residual=_norm(off) / size if size else 0.0,
            error=error,
        )

    def _whitener(self, root: Array | None) -> Preconditioner:
        if root is not None:
            return Preconditioner(root * self.factor()[0], self.ridge)
        if self._preconditioner is None:
            self._preconditioner = Preconditioner(self.factor()[0], self.ridge)
        return self._preconditioner

    def _left_out(self, root: Array | None) -> float:
        """Trace of the kernel matrix less its low-rank factor."""
        residual = self.factor()[1]
        return float(residual.sum() if root is None else residual @ (root[:, 0] * root[:, 0]))


class _NotConvergedError(Exception):
    """Conjugate gradients ran out of iterations."""


def _norm(matrix: Array) -> float:
    return float(namespace(matrix).linalg.matrix_norm(matrix))


def _report_share(number: int, blocks: int, share: float) -> None:
    """Say how far one block of right-hand sides is among all, in per cent."""
    report_progress("conjugate gradients", int(_PERCENT * (number + share)), _PERCENT * blocks)


# ---- nyström approximation of a regularised kernel system, for rows past counting in pairs -------

# Above, `auto` approximates: a product with the exact matrix makes 2.5 · 10⁹ kernel values,
# which takes seconds, and iterations need tens of them.
_MAX_EXACT_ROWS = 50_000
# Rows whose features are held at once: with 1,000 landmarks, 65 MB.
_ROWS_AT_ONCE = 8192
# Rows of the exact system that the error is estimated on: 4,000³/3 operations, a second.
_CHECK_ROWS = 4000
# A mean over 1,000 grid rows is known to 3 % of the spread of errors: enough to say their size.
_CHECK_GRID_ROWS = 1000


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

    def _prepare(self, regularization: float) -> None:
        self._gram: Array | None = None
        self._check: tuple[FloatArray, RidgeSystem, Solution, Array] | None = None
        self._landmarks, self._triangle = self._choose(regularization)

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
        for tile in reported(tiles(len(grid), _ROWS_AT_ONCE), "landmarks at new rows"):
            out[tile] = self._features(grid[tile]) @ weights
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
        where = grid[_sample(rng, len(grid), _CHECK_GRID_ROWS)]
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
        factor = pivoted_cholesky(
            self.kernel.diagonal(sample),
            lambda row: self.kernel.gram(sample[row : row + 1], sample)[0],
            # a hundredth of what the answer may err: what is left out is not seen in it
            tolerance=len(sample) * regularization * self.options.accuracy * 1e-2,
            max_rank=self.options.landmarks,
        )
        return sample[factor.pivots], factor.triangle

    def _features(self, rows: Array) -> Array:
        return coordinates(self._triangle, self.kernel.gram(self._landmarks, rows))

    def _sums(
        self, rows: Array, targets: FloatArray, counts: FloatArray | None
    ) -> tuple[Array, Array]:
        """FᵀF and FᵀT in 64 bits, the first kept when it is that of all rows, each seen once."""
        xp = namespace(rows)
        complete = rows is self.rows and counts is None
        size = self.landmarks
        gram: Array = xp.zeros((size, size), dtype=xp.float64, device=rows.device)
        right: Array = xp.zeros((size, targets.shape[1]), dtype=xp.float64, device=rows.device)
        parts = tiles(len(rows), _ROWS_AT_ONCE)
        for tile in reported(parts, "landmark features"):
            features = self._features(rows[tile])
            scaled = features
            if counts is not None:
                scaled = features * like(counts[tile, None], features)
            if not (complete and self._gram is not None):
                gram += features.T @ scaled
            right += scaled.T @ like(targets[tile], features)
        if complete:
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
    many = options.method == "auto" and len(rows) > _MAX_EXACT_ROWS
    if many or options.method == "nystrom":
        return NystromSystem(kernel, rows, regularization, options)
    return RidgeSystem(kernel, rows, regularization, options)
