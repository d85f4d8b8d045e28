"""Kernels on rows of numbers, and Gram matrices made quickly.

A kernel says how alike two rows are. Every kernel here returns the matrix of all pairs of two
sets of rows, in the number type that came (32 or 64 bits), and works on small blocks so that
nothing larger than the answer is held.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_matrix
from howsure.core.errors import InputError

Array = npt.NDArray[np.floating[Any]]

_BLOCK = 1 << 15  # elements worked on at once: a quarter of a megabyte stays in the cache
_NARROW = 6  # up to this width distances are sums of squared differences, free of cancellation
_SAMPLE = 256  # rows on which a kernel's positive definiteness is looked at


class Kernel(ABC):
    """A symmetric similarity of two rows.

    Every kernel has `gram`, `diagonal` and `describe`; `certain` says whether theory guarantees
    that it is positive definite for rows of a given width.
    """

    __slots__ = ()

    @abstractmethod
    def gram(self, a: Array, b: Array) -> Array:
        """Kernel of every row of ``a`` with every row of ``b``.

        Parameters
        ----------
        a, b : ndarray of float, shape (n, d) and (m, d)
            Rows.

        Returns
        -------
        ndarray of float, shape (n, m)
        """

    @abstractmethod
    def diagonal(self, a: Array) -> Array:
        """Kernel of every row with itself, shape (n,)."""

    @abstractmethod
    def certain(self, width: int) -> bool:
        """Whether the kernel is known to be positive definite on rows of this width."""

    @abstractmethod
    def describe(self) -> str:
        """Name and constants, as text for a record."""


@dataclass(frozen=True, slots=True)
class RBF(Kernel):
    """Gaussian kernel exp(−γ‖a−b‖²).

    Parameters
    ----------
    gamma : float
        γ, positive, in the inverse square of the units of the rows.

    Raises
    ------
    InputError
        If γ is not a positive number.

    Examples
    --------
    >>> RBF(0.5).gram(np.array([[0.0]]), np.array([[0.0], [1.0]]))
    array([[1. , 0.60653066]])
    """

    gamma: float

    def __post_init__(self) -> None:
        _check_positive(self.gamma, "gamma")

    def gram(self, a: Array, b: Array) -> Array:
        out = np.empty((len(a), len(b)), dtype=a.dtype)
        if a.shape[1] <= _NARROW:
            scale = np.sqrt(self.gamma).astype(a.dtype)
            left, right = scale * a, np.ascontiguousarray((scale * b).T)
            _in_blocks(out, lambda rows: _exp_minus(_squares(left[rows], right, out[rows])))
            return out
        centre = b.mean(axis=0)
        np.matmul(
            _lifted(a - centre, self.gamma), _lifted(b - centre, self.gamma, last=True).T, out
        )
        _in_blocks(out, lambda rows: _exp_capped(out[rows]))
        return out

    def diagonal(self, a: Array) -> Array:
        return np.ones(len(a), dtype=a.dtype)

    def certain(self, width: int) -> bool:
        return True

    def describe(self) -> str:
        return f"rbf(gamma={self.gamma:.6g})"


@dataclass(frozen=True, slots=True)
class Laplacian(Kernel):
    """Laplacian kernel exp(−γ‖a−b‖₁), with the sum of absolute differences.

    Parameters
    ----------
    gamma : float
        γ, positive, in the inverse of the units of the rows.
    squared : bool
        Whether the distance is squared, exp(−γ‖a−b‖₁²), as one public implementation of the
        conditional congruence error has it. That is the Gaussian kernel for one column, and for
        more it is not positive definite in general.

    Raises
    ------
    InputError
        If γ is not a positive number.

    Examples
    --------
    >>> Laplacian(1.0).gram(np.array([[0.0, 0.0]]), np.array([[0.5, -0.5]]))
    array([[0.36787944]])
    """

    gamma: float
    squared: bool = False

    def __post_init__(self) -> None:
        _check_positive(self.gamma, "gamma")

    def gram(self, a: Array, b: Array) -> Array:
        out = np.empty((len(a), len(b)), dtype=a.dtype)
        scale = np.array(np.sqrt(self.gamma) if self.squared else self.gamma, dtype=a.dtype)
        left, right = scale * a, np.ascontiguousarray((scale * b).T)

        def fill(rows: slice) -> None:
            block = _absolutes(left[rows], right, out[rows])
            if self.squared:
                np.multiply(block, block, out=block)
            _exp_minus(block)

        _in_blocks(out, fill)
        return out

    def diagonal(self, a: Array) -> Array:
        return np.ones(len(a), dtype=a.dtype)

    def certain(self, width: int) -> bool:
        return not self.squared or width == 1

    def describe(self) -> str:
        name = "laplacian-squared" if self.squared else "laplacian"
        return f"{name}(gamma={self.gamma:.6g})"


@dataclass(frozen=True, slots=True)
class Polynomial(Kernel):
    """Polynomial kernel (γ⟨a,b⟩ + c)^q.

    Parameters
    ----------
    degree : int
        q, one or more.
    gamma : float
        γ, positive. One by default; common libraries divide by the number of columns instead.
    offset : float
        c, zero or more.

    Raises
    ------
    InputError
        If a constant lies outside its domain (the kernel would not be positive definite).

    Examples
    --------
    >>> Polynomial(degree=3).gram(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[8., 1.]])
    """

    degree: int = 3
    gamma: float = 1.0
    offset: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.degree, bool) or int(self.degree) != self.degree or self.degree < 1:
            raise InputError(f"degree must be a whole number of at least 1, got {self.degree!r}")
        _check_positive(self.gamma, "gamma")
        if not 0.0 <= self.offset < np.inf:
            raise InputError(f"offset must be a number of at least 0, got {self.offset!r}")

    def gram(self, a: Array, b: Array) -> Array:
        out = np.empty((len(a), len(b)), dtype=a.dtype)
        np.matmul(np.array(self.gamma, dtype=a.dtype) * a, b.T, out=out)
        _in_blocks(out, lambda rows: self._raise(out[rows]))
        return out

    def diagonal(self, a: Array) -> Array:
        squares = np.einsum("ij,ij->i", a, a)
        return np.asarray((self.gamma * squares + self.offset) ** self.degree, dtype=a.dtype)

    def certain(self, width: int) -> bool:
        return True

    def describe(self) -> str:
        return f"polynomial(degree={self.degree}, gamma={self.gamma:.6g}, offset={self.offset:.6g})"

    def _raise(self, block: Array) -> None:
        block += np.array(self.offset, dtype=block.dtype)
        base = block.copy()
        for _ in range(int(self.degree) - 1):  # repeated products: far faster than a power
            block *= base


@dataclass(frozen=True, slots=True)
class CustomKernel(Kernel):
    """A kernel given as a function of two sets of rows.

    Nothing is known of it, so wherever it is used a sample is checked for symmetry, finite
    values and positive definiteness.

    Parameters
    ----------
    function : callable
        Takes arrays of shape (n, d) and (m, d), returns shape (n, m).
    name : str
        What to call it in records.

    Examples
    --------
    >>> linear = CustomKernel(lambda a, b: a @ b.T, "linear")
    >>> linear.gram(np.array([[2.0]]), np.array([[3.0]]))
    array([[6.]])
    """

    function: Callable[[Array, Array], npt.ArrayLike]
    name: str = "custom"

    def gram(self, a: Array, b: Array) -> Array:
        out: Array = np.asarray(self.function(a, b), dtype=a.dtype)
        if out.shape != (len(a), len(b)):
            raise InputError(
                f"kernel {self.name!r} must return shape {(len(a), len(b))}, got {out.shape}"
            )
        if not np.isfinite(out).all():
            raise InputError(f"kernel {self.name!r} must return finite numbers, got others")
        return out

    def diagonal(self, a: Array) -> Array:
        blocks = [a[start : start + 32] for start in range(0, len(a), 32)]
        return np.concatenate([np.diagonal(self.gram(block, block)) for block in blocks])

    def certain(self, width: int) -> bool:
        return False

    def describe(self) -> str:
        return self.name


def check_positive_definite(kernel: Kernel, rows: Array, name: str = "kernel") -> None:
    """Look at a sample of rows for proof that a kernel is not positive definite.

    Kernels for which theory answers are not looked at. A pass is no proof; a failure is.

    Parameters
    ----------
    kernel : Kernel
        What to look at.
    rows : ndarray of float, shape (n, d)
        Where it will be used; up to 256 rows, evenly spaced, are taken.
    name : str
        The argument's name, for the message.

    Raises
    ------
    InputError
        If the Gram matrix of the sample is not symmetric, or has an eigenvalue clearly below 0.

    Examples
    --------
    >>> backwards = CustomKernel(lambda a, b: -(a @ b.T), "backwards")
    >>> check_positive_definite(backwards, np.array([[1.0], [2.0]]))
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: kernel must be positive definite, got backwards with smallest
    eigenvalue -5 beside largest 0 on 2 rows
    """
    if kernel.certain(rows.shape[1]):
        return
    take = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64))
    sample = rows[take]
    gram = kernel.gram(sample, sample).astype(np.float64)
    slack = np.sqrt(np.finfo(rows.dtype).eps) * max(float(np.abs(gram).max()), 1e-300)
    if np.abs(gram - gram.T).max() > slack:
        raise InputError(f"{name} must be symmetric, got {kernel.describe()}, which is not")
    values = np.linalg.eigvalsh((gram + gram.T) / 2)
    if values[0] < -slack * len(take):
        raise InputError(
            f"{name} must be positive definite, got {kernel.describe()} with smallest eigenvalue "
            f"{values[0]:.3g} beside largest {max(values[-1], 0.0):.3g} on {len(take)} rows"
        )


def as_rows(
    value: npt.ArrayLike,
    name: str,
    *,
    columns: int | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> Array:
    """Check a matrix of finite numbers, keeping 32-bit numbers where those are asked for.

    Parameters
    ----------
    value : array-like of shape (n, d) or (n,)
        What came.
    name : str
        The argument's name, for the message.
    columns : int, optional
        The width that it must have.
    dtype : dtype
        32- or 64-bit; anything else counts as 64-bit.

    Returns
    -------
    ndarray of float, shape (n, d)
        Not copied where it is already right.

    Raises
    ------
    InputError
        As `howsure.core.arrays.as_matrix`.

    Examples
    --------
    >>> as_rows([1, 2], "x").shape
    (2, 1)
    """
    kind = np.dtype(dtype) if np.dtype(dtype) in (np.float32, np.float64) else np.dtype(np.float64)
    array: Array = np.asarray(value)
    if array.dtype != kind or array.ndim != 2 or not array.shape[1] or not len(array):
        checked = as_matrix(value, name, columns=columns)
        with np.errstate(over="ignore"):  # what overflows is refused below
            array = checked.astype(kind, copy=False)
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns, got {array.shape[1]}")
    if not np.isfinite(array).all():
        as_matrix(array, name)  # raises, and says where
    return np.ascontiguousarray(array)


def _check_positive(value: float, name: str) -> None:
    if not (isinstance(value, (int, float, np.number)) and 0.0 < value < np.inf):
        raise InputError(f"{name} must be a positive number, got {value!r}")


def _in_blocks(out: Array, work: Callable[[slice], object]) -> None:
    """Run `work` over blocks of rows of `out` on all cores; it must only use elementwise steps.

    Matrix products stay outside: their library keeps its own threads, and the two would fight.
    """
    rows = max(1, _BLOCK // max(1, out.shape[1]))
    blocks = [slice(start, start + rows) for start in range(0, len(out), rows)]
    workers = min(os.cpu_count() or 1, 16)
    if workers == 1 or len(blocks) < 8:
        for block in blocks:
            work(block)
        return

    def run(share: list[slice]) -> None:
        for block in share:
            work(block)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, [blocks[start::workers] for start in range(workers)]))


def _squares(left: Array, right: Array, out: Array) -> Array:
    """Squared distances of rows of `left` to columns of `right`, written to `out`."""
    np.subtract(left[:, :1], right[0], out=out)
    np.multiply(out, out, out=out)
    if left.shape[1] > 1:
        step = np.empty_like(out)
        for column in range(1, left.shape[1]):
            np.subtract(left[:, column : column + 1], right[column], out=step)
            np.multiply(step, step, out=step)
            out += step
    return out


def _absolutes(left: Array, right: Array, out: Array) -> Array:
    """Sums of absolute differences, written to `out`."""
    np.subtract(left[:, :1], right[0], out=out)
    np.abs(out, out=out)
    if left.shape[1] > 1:
        step = np.empty_like(out)
        for column in range(1, left.shape[1]):
            np.subtract(left[:, column : column + 1], right[column], out=step)
            np.abs(step, out=step)
            out += step
    return out


def _exp_minus(block: Array) -> None:
    np.negative(block, out=block)
    np.exp(block, out=block)


def _exp_capped(block: Array) -> None:
    np.minimum(block, 0.0, out=block)  # rounding may lift a zero distance above zero
    np.exp(block, out=block)


def _lifted(rows: Array, gamma: float, *, last: bool = False) -> Array:
    """Rows with two columns more, so that one product gives −γ‖a−b‖²."""
    squares = -gamma * np.einsum("ij,ij->i", rows, rows)
    ones = np.ones_like(squares)
    tail = (ones, squares) if last else (squares, ones)
    return np.column_stack([np.sqrt(2.0 * gamma) * rows, *tail]).astype(rows.dtype, copy=False)
