"""What measures of congruence return, how accurate it is, and which of it may be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.stats.kernels import Kernel, check_range
from howsure.stats.namespace import Array, on_host
from howsure.stats.ridge import KernelSystem, NystromSystem, Solution
from howsure.topics.congruence.predictive import Mode


@frozen(kw_only=True)
class Diagnostics:
    """How a value was computed, and how far off it may be.

    Attributes
    ----------
    solver : str
        What solved the regularised system.
    rank : int
        Length of the vectors that stand for outputs.
    landmarks : int
        Landmark rows of a Nyström approximation; 0 without one.
    iterations : int
        Products with the kernel matrix that conjugate gradients took.
    residual : float
        Relative residual of the system, measured; NaN for Nyström.
    squared_error : float
        Bound, over all evaluation points, of the error of a *squared* value; NaN for Nyström.
    typical_error, largest_error : float
        Of the values of a Nyström approximation, estimated on a sample: root mean square, and
        maximum; 0 without one.
    note : str
        What limits the value, if anything.
    """

    solver: str
    rank: int
    landmarks: int = 0
    iterations: int = 0
    residual: float = math.nan
    squared_error: float = math.nan
    typical_error: float = 0.0
    largest_error: float = 0.0
    note: str = ""


@frozen(kw_only=True)
class MCMD:
    """Maximum conditional mean discrepancy of two samples at evaluation points.

    Attributes
    ----------
    values : ndarray of float, shape (g,)
        Not squared; zero or more, lower is more alike, in units of the output kernel's root.
    n : tuple of int
        Sizes of the two samples.
    regularization : tuple of float
        λ of the two samples.
    kernel, output_kernel : str
        Names and constants.
    diagnostics : Diagnostics
        How the values were computed.
    """

    values: FloatArray
    n: tuple[int, int]
    regularization: tuple[float, float]
    kernel: str
    output_kernel: str
    diagnostics: Diagnostics

    @property
    def mean(self) -> float:
        """Mean over the evaluation points."""
        return float(self.values.mean())


@frozen(kw_only=True)
class CCE:
    """Conditional congruence error of a model at evaluation points.

    Attributes
    ----------
    values : ndarray of float, shape (g,)
        Zero or more, lower is better, in units of the output kernel's root.
    mode : {"exact", "samples"}
        How predictions were embedded.
    draws : int
        Monte-Carlo draws for each row; 0 in exact mode.
    n : int
        Labelled reference rows.
    regularization : float
        λ.
    kernel, output_kernel : str
        Names and constants.
    diagnostics : Diagnostics
        How the values were computed.
    """

    values: FloatArray
    mode: Mode
    draws: int
    n: int
    regularization: float
    kernel: str
    output_kernel: str
    diagnostics: Diagnostics

    @property
    def mean(self) -> float:
        """Mean over the evaluation points."""
        return float(self.values.mean())

    @property
    def options(self) -> Mapping[str, str | float]:
        """The choices that decided the values; equal for values that may be compared."""
        return MappingProxyType(
            {
                "mode": self.mode,
                "draws": self.draws,
                "n": self.n,
                "regularization": self.regularization,
                "kernel": self.kernel,
                "output_kernel": self.output_kernel,
            }
        )


def require_comparable(*results: CCE) -> None:
    """Refuse to compare conditional congruence errors that were computed differently.

    Values have meaning only beside values of the same mode, number of draws, kernels,
    regularisation and number of reference rows.

    Examples
    --------
    >>> result = CCE(values=np.zeros(1), mode="exact", draws=0, n=2, regularization=0.1,
    ...              kernel="rbf", output_kernel="rbf",
    ...              diagnostics=Diagnostics(solver="cholesky", rank=1))
    >>> require_comparable(result, result)
    """
    for result in results[1:]:
        for name, value in results[0].options.items():
            other = result.options[name]
            if other != value:
                raise InputError(
                    "conditional congruence errors must have the same settings to be compared, got "
                    f"{name} {value} beside {name} {other}"
                )


def difference(first: CCE, second: CCE) -> FloatArray:
    """Difference of two models' errors, first − second, at each evaluation point.

    Examples
    --------
    >>> result = CCE(values=np.array([0.2]), mode="exact", draws=0, n=2, regularization=0.1,
    ...              kernel="rbf", output_kernel="rbf",
    ...              diagnostics=Diagnostics(solver="cholesky", rank=1))
    >>> difference(result, result).tolist()
    [0.0]
    """
    require_comparable(first, second)
    if len(first.values) != len(second.values):
        raise InputError(
            "conditional congruence errors must be at the same points, got "
            f"{len(first.values)} and {len(second.values)}"
        )
    return first.values - second.values


# ---- small steps shared by every measure of congruence: lengths, and what became of accuracy -----

# Squared length left out that a reader should know of: it moves a value of .03 by 2 · 10⁻⁵.
_MIN_NOTABLE = 1e-6
# The same of an error of the solve: as large as the square of a value of .03.
_MIN_ROUNDING_TOLD = 1e-3


def lengths(vectors: Array) -> FloatArray:
    """Euclidean length of every row, on the host and never NaN."""
    rows = on_host(vectors)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))


def largest_kernel(kernel: Kernel, *groups: Array) -> float:
    """Largest kernel of a row with itself."""
    for rows in groups:
        check_range(kernel, rows, "x")
    values = [kernel.diagonal(rows) for rows in groups]
    peak = max(float(value.max()) for value in values)
    if min(float(part.min()) for part in values) < 0.0:
        raise InputError(
            f"kernel must be positive definite, got {kernel.describe()}, which is negative at a "
            "row with itself"
        )
    if not peak > 0.0:
        raise InputError(
            f"kernel must be positive at some row with itself, got {kernel.describe()}, which is "
            "zero at all"
        )
    return peak


def diagnose(
    systems: Sequence[KernelSystem],
    solutions: Sequence[Solution],
    targets: Sequence[FloatArray],
    grid: Array,
    values: FloatArray,
    *,
    peak: float,
    left_out: float,
) -> Diagnostics:
    """Put together how values were computed; errors of several systems that approximate add up."""
    estimates = [
        system.estimate_error(target, grid)
        for system, target in zip(systems, targets, strict=True)
        if isinstance(system, NystromSystem)
    ]
    error = np.sqrt(peak) * sum(solution.error for solution in solutions)
    truncated = peak * left_out
    squared = 2.0 * float(values.max()) * error + error**2 + truncated
    note = f"squared values may be low by up to {truncated:.2g}" if truncated > _MIN_NOTABLE else ""
    if squared - truncated > _MIN_ROUNDING_TOLD:
        note = f"squared values may be off by up to {squared:.2g}, from rounding of the system"
    return Diagnostics(
        solver=" and ".join(dict.fromkeys(solution.solver for solution in solutions)),
        rank=targets[0].shape[1],
        landmarks=max(system.landmarks for system in systems),
        iterations=max(solution.iterations for solution in solutions),
        residual=max(solution.residual for solution in solutions),
        squared_error=float(squared),
        typical_error=sum(typical for typical, _ in estimates),
        largest_error=sum(largest for _, largest in estimates),
        note=note,
    )
