"""One code path for NumPy arrays and PyTorch tensors, wherever these live.

Formulas call the functions of an array's own namespace by the names of the array API standard.
What the standard lacks (triangular solves, copies to and from a device) is here, and so are the
checks of what comes in. PyTorch is never imported: a tensor proves that it is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_matrix, is_tensor, placed, plain_array, plain_tensor, to_host
from howsure.core.errors import InputError
from howsure.core.optional import require

Array = npt.NDArray[np.floating[Any]]  # or a tensor of such numbers

# A million numbers of 64 bits are 8 MB: what is made of a part of a larger array stays small.
_NUMBERS_AT_ONCE = 1 << 20


def namespace(array: Any) -> Any:
    """The functions for an array, by the names of the array API standard.

    NumPy itself for its arrays; `array_api_compat` wraps PyTorch. Beyond the standard, the
    elementwise functions of both take ``out``.
    """
    if isinstance(array, np.ndarray):
        return np
    return require("array_api_compat", extra="deep").array_namespace(array)


def on_host(array: Array) -> Array:
    """A checked array as a NumPy array."""
    return np.asarray(to_host(array))


def like(array: npt.ArrayLike, other: Array) -> Array:
    """An array in another's namespace, on its device and in its number type."""
    if not is_tensor(other):
        return np.asarray(to_host(array), dtype=other.dtype)
    value: Any = array
    value = value.detach() if is_tensor(value) else value
    moved: Array = placed(value, other.device, other.dtype)
    return moved


def as_rows(
    value: npt.ArrayLike,
    name: str,
    *,
    columns: int | None = None,
    dtype: npt.DTypeLike | None = np.float64,
    reference: Array | None = None,
) -> Array:
    """Check a matrix of finite numbers, on its device, in 32 or 64 bits."""
    if reference is not None:
        value = _to_device_of(value, reference, name)
        dtype = reference.dtype
    if is_tensor(value):
        array = _tensor_rows(value, name, dtype)
    else:
        array = _plain_rows(value, name, dtype)
        if reference is not None:
            array = like(array, reference)
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns, got {array.shape[1]}")
    _check_finite(array, name)
    return array


def row_parts(array: Array) -> Iterator[Array]:
    """An array in parts of about a million numbers, so that what is made of one stays small."""
    rows = max(1, _NUMBERS_AT_ONCE // array.shape[1])
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def same_rows(first: Array, second: Array) -> bool:
    """Whether two matrices hold the same numbers; those that differ do so soon, as a rule."""
    if first is second or tuple(first.shape) != tuple(second.shape):
        return first is second
    pairs = zip(row_parts(first), row_parts(second), strict=True)
    return all(bool((a == b).all()) for a, b in pairs)


def add_to_diagonal(matrix: Array, value: float) -> None:
    """Add a number to every element of a square array's diagonal, in place."""
    flat = matrix.reshape(-1)
    flat[:: len(matrix) + 1] += value


def cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor of a positive definite matrix; what lies above it is not to be read."""
    if not is_tensor(matrix):
        from scipy.linalg import cho_factor

        triangle: Array = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)[0]
        return triangle
    factor, failed = namespace(matrix).linalg.cholesky_ex(matrix)
    if int(failed):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    lower: Array = factor
    return lower


def cholesky_solve(factor: Array, targets: Array) -> Array:
    """Solve A X = T with the lower Cholesky factor of A."""
    if not is_tensor(factor):
        from scipy.linalg import cho_solve

        solution: Array = cho_solve((factor, True), targets, check_finite=False)
        return solution
    solved: Array = namespace(factor).cholesky_solve(targets, factor)
    return solved


def triangular_solve(triangle: Array, right: Array) -> Array:
    """Solve L X = B with a lower triangle; B may be overwritten."""
    if not is_tensor(triangle):
        from scipy.linalg import solve_triangular

        solution: Array = solve_triangular(
            triangle, right, lower=True, overwrite_b=True, check_finite=False
        )
        return solution
    solved: Array = namespace(triangle).linalg.solve_triangular(triangle, right, upper=False)
    return solved


def _plain_rows(value: npt.ArrayLike, name: str, dtype: npt.DTypeLike | None) -> Array:
    array = plain_array(value, name)
    kind = _bits(array.dtype if dtype is None else dtype)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        array = as_matrix(value, name)
    with np.errstate(over="ignore"):  # what overflows is refused for not being finite
        return np.ascontiguousarray(array, dtype=kind)


def _tensor_rows(value: Any, name: str, dtype: npt.DTypeLike | None) -> Array:
    tensor = plain_tensor(value, name)
    if tensor.ndim == 1:
        tensor = tensor[:, None]
    if tensor.ndim != 2:
        raise InputError(f"{name} must have two dimensions, got shape {tuple(tensor.shape)}")
    if 0 in tensor.shape:
        raise InputError(
            f"{name} must have at least one row and one column, got shape {tuple(tensor.shape)}"
        )
    xp = namespace(tensor)
    array: Array = xp.asarray(
        tensor, dtype=getattr(xp, _bits(tensor.dtype if dtype is None else dtype))
    )
    return array


def _to_device_of(value: Any, other: Any, name: str) -> Any:
    """Refuse a tensor on another device than the rows that it will be used with."""
    if not is_tensor(value) or value.device == other.device:
        return value
    if not is_tensor(other):
        if str(value.device) == "cpu":
            return to_host(value, name)
        raise InputError(
            f"{name} must be a NumPy array or on the CPU as the reference is, got a tensor on "
            f"device {value.device}"
        )
    raise InputError(
        f"{name} must be on device {other.device} as the reference is, got one on {value.device}"
    )


def _bits(dtype: Any) -> str:
    """``float32`` for that type of either library, ``float64`` for all else."""
    name = str(dtype).removeprefix("torch.") if "torch." in str(dtype) else np.dtype(dtype).name
    return "float32" if name == "float32" else "float64"


def _check_finite(array: Array, name: str) -> None:
    xp = namespace(array)
    if not all(bool(xp.all(xp.isfinite(block))) for block in row_parts(array)):
        as_matrix(on_host(array), name)  # raises, and says where
