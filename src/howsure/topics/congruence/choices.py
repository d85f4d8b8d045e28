"""Kernels and bandwidths by name: the defaults, and the choices of published code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, to_host
from howsure.core.errors import DegenerateError, InputError
from howsure.stats.kernels import (
    RBF,
    CustomKernel,
    Kernel,
    Laplacian,
    Polynomial,
    median_distance,
    normalize_rows,
    total_variance,
)
from howsure.stats.namespace import Array, as_rows, namespace, row_parts

KernelChoice = str | Kernel | Callable[[Array, Array], npt.ArrayLike]
Bandwidth = str | float | None

_NAMES = ("rbf", "laplacian", "laplacian-squared", "polynomial")


@dataclass(frozen=True, slots=True)
class KernelInputs:
    """Checked inputs and their kernel."""

    kernel: Kernel  # the input kernel
    rows: Array  # shape (n, d): reference inputs, normalised where asked
    normalize: bool  # whether rows are divided by their length

    def more(self, value: npt.ArrayLike, name: str) -> Array:
        """Check further inputs and treat them alike, where the reference inputs live."""
        rows = as_rows(value, name, columns=self.rows.shape[1], beside=self.rows)
        return check_size(normalize_rows(rows, name) if self.normalize else rows, name)


def choose_inputs(
    x: npt.ArrayLike,
    kernel: KernelChoice,
    bandwidth: Bandwidth,
    *,
    normalize: bool | None,
    dtype: str,
    grid: npt.ArrayLike | None = None,
) -> KernelInputs:
    """Check reference inputs and settle their kernel.

    Parameters
    ----------
    x : array-like or tensor of shape (n,) or (n, d)
        Reference inputs; at least two rows.
    kernel : str, Kernel or callable
        See `choose_kernel`.
    bandwidth : str, float or None
        See `choose_kernel`; ``"grid-variance"`` takes the variance of `grid`.
    normalize : bool, optional
        Whether to divide rows by their length. By default that is done for the kernel *named*
        polynomial when there are several columns.
    dtype : str
        Number type.
    grid : array-like, optional
        Evaluation points, for ``"grid-variance"``.

    Returns
    -------
    Inputs
    """
    rows = at_least_two(as_rows(x, "x", dtype=dtype), "x")
    unit = kernel == "polynomial" and rows.shape[1] > 1 if normalize is None else bool(normalize)
    rows = check_size(normalize_rows(rows, "x") if unit else rows, "x")
    source, name = rows, "x"
    if bandwidth == "grid-variance":
        if grid is None:
            raise InputError("bandwidth 'grid-variance' needs a grid, got none")
        points = as_rows(grid, "grid", columns=rows.shape[1], beside=rows)
        source, name = normalize_rows(points, "grid") if unit else points, "grid"
        bandwidth = "variance"
    return KernelInputs(choose_kernel(kernel, bandwidth, source, name), rows, unit)


def choose_kernel(kernel: KernelChoice, bandwidth: Bandwidth, rows: Array, name: str) -> Kernel:
    """Settle a kernel from its name and bandwidth.

    Parameters
    ----------
    kernel : str, Kernel or callable
        ``rbf`` exp(−γ‖a−b‖²), ``laplacian`` exp(−γ‖a−b‖₁), ``polynomial`` (γ⟨a,b⟩+1)³, or
        ``laplacian-squared`` exp(−γ‖a−b‖₁²), which is what one public implementation computes
        under the name of Laplacian. A `Kernel` is taken as it is; a function is wrapped.
    bandwidth : str, float or None
        A number is γ. ``variance`` (the default but for polynomials): γ = 1/(2v) with v the
        summed sample variance of the columns; 1/√(2v) for the Laplacian, whose distance is not
        squared. ``median``: the same with the median distance in place of √v (for the
        Laplacian 1/median). ``half-variance``: γ = v/2, as the code behind one published
        figure has it. ``inverse-width``: γ = 1/d, for polynomials, whose default is 1.
    rows : ndarray of float, shape (n, d)
        Rows that set the bandwidth.
    name : str
        Their name, for messages.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> choose_kernel("rbf", "variance", np.array([[0.0], [1.0], [2.0]]), "y")
    RBF(gamma=0.5)
    """
    if bandwidth is not None and not isinstance(kernel, str):
        raise InputError(
            f"bandwidth must not be given beside a kernel that carries its own, got {bandwidth!r}"
        )
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return CustomKernel(kernel, getattr(kernel, "__name__", "custom"))
    if kernel not in _NAMES:
        raise InputError(f"kernel must be one of {', '.join(_NAMES)}, got {kernel!r}")
    gamma = _gamma(kernel, bandwidth, rows, name)
    if kernel == "polynomial":
        return Polynomial(gamma=gamma)
    return RBF(gamma) if kernel == "rbf" else Laplacian(gamma, squared=kernel != "laplacian")


def at_least_two(rows: Array, name: str) -> Array:
    """Refuse a sample of one row, from which no conditional law can be estimated."""
    if len(rows) < 2:
        raise DegenerateError(f"{name} must have at least 2 rows, got {len(rows)}")
    return rows


def as_outputs(
    value: npt.ArrayLike, name: str, *, length: int, columns: int | None = None
) -> FloatArray:
    """Check outputs, which are worked with on the host in 64 bits; tensors are copied there.

    Examples
    --------
    >>> as_outputs([1, 2], "y", length=2).tolist()
    [[1.0], [2.0]]
    """
    outputs = as_matrix(to_host(value, name), name, length=length, columns=columns)
    check_size(outputs, name)
    return outputs


def check_size(rows: Array, name: str) -> Array:
    """Refuse numbers so large that the sum of their squares overflows their number type."""
    xp = namespace(rows)
    largest = max(float(xp.max(xp.abs(block))) for block in row_parts(rows))
    limit = math.sqrt(float(xp.finfo(rows.dtype).max) / (8.0 * rows.shape[0] * rows.shape[1]))
    if largest > limit:
        raise DegenerateError(
            f"{name} must hold numbers of at most {limit:.2g} for their squares to be added up, "
            f"got {largest:.3g}"
        )
    return rows


def _gamma(kernel: str, bandwidth: Bandwidth, rows: Array, name: str) -> float:
    if isinstance(bandwidth, (int, float)) and not isinstance(bandwidth, bool):
        return float(bandwidth)
    if kernel == "polynomial":
        if bandwidth is None:
            return 1.0
        if bandwidth == "inverse-width":
            return 1.0 / float(rows.shape[1])
        raise InputError(
            "bandwidth of a polynomial kernel must be a positive number or inverse-width, "
            f"got {bandwidth!r}"
        )
    absolute = kernel == "laplacian"
    if bandwidth is None or bandwidth == "variance":
        inverse = 1.0 / (2.0 * total_variance(rows, name))
        return math.sqrt(inverse) if absolute else inverse
    if bandwidth == "median":
        median = median_distance(rows, name, absolute=absolute)
        inverse = 1.0 / median
        return inverse if absolute else 0.5 * inverse * inverse
    if bandwidth == "half-variance":
        return total_variance(rows, name) / 2.0
    raise InputError(
        f"bandwidth must be a positive number, variance, median or half-variance, got {bandwidth!r}"
    )
