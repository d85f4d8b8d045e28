"""Small steps shared by every measure of congruence: lengths, and what became of accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.stats.kernels import Kernel, check_range
from howsure.stats.namespace import Array, on_host
from howsure.stats.ridge import KernelSystem, NystromSystem, Solution
from howsure.topics.congruence.results import Diagnostics

_NOTABLE = 1e-6  # squared length left out that a reader should know of
_ROUNDED = 1e-3  # the same of an error of the solve


def lengths(vectors: Array) -> FloatArray:
    """Euclidean length of every row, on the host and never NaN."""
    rows = on_host(vectors)
    found: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return found


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


def nystrom_error(
    systems: Sequence[KernelSystem], targets: Sequence[FloatArray], grid: Array
) -> tuple[float, float]:
    """Estimated error on a grid, typical and largest, summed over systems that approximate."""
    estimates = [
        system.estimate_error(target, grid)
        for system, target in zip(systems, targets, strict=True)
        if isinstance(system, NystromSystem)
    ]
    return sum(pair[0] for pair in estimates), sum(pair[1] for pair in estimates)


def diagnose(
    systems: Sequence[KernelSystem],
    solutions: Sequence[Solution],
    values: FloatArray,
    *,
    rank: int,
    peak: float,
    left_out: float,
    estimate: tuple[float, float],
) -> Diagnostics:
    """Put together how values were computed."""
    error = np.sqrt(peak) * sum(solution.error for solution in solutions)
    truncated = peak * left_out
    squared = 2.0 * float(values.max()) * error + error**2 + truncated
    note = f"squared values may be low by up to {truncated:.2g}" if truncated > _NOTABLE else ""
    if squared - truncated > _ROUNDED:
        note = f"squared values may be off by up to {squared:.2g}, from rounding of the system"
    return Diagnostics(
        solver=" and ".join(dict.fromkeys(solution.solver for solution in solutions)),
        rank=rank,
        landmarks=max(system.landmarks for system in systems),
        iterations=max(solution.iterations for solution in solutions),
        residual=max(solution.residual for solution in solutions),
        squared_error=float(squared),
        typical_error=estimate[0],
        largest_error=estimate[1],
        note=note,
    )
