"""Checks at the door: every array of numbers that enters howsure passes through here.

Each check raises `InputError` with a message that names the argument, the rule and what came;
what passes becomes a plain float64 array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.tensors import to_host

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def as_vector(
    value: npt.ArrayLike,
    name: str,
    *,
    length: int | None = None,
    finite: bool = True,
    scalar: bool = False,
) -> FloatArray:
    """Check a one-dimensional numeric array.

    Parameters
    ----------
    value : array-like of shape (n,)
        What came.
    name : str
        The argument's name, for the message.
    length : int, optional
        The length that it must have.
    finite : bool
        Whether infinities are refused. NaN always is.
    scalar : bool
        Whether a single number counts as an array of one.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If it is not numeric, not of one dimension, empty, of another length, or not finite.

    Examples
    --------
    >>> as_vector([1, 2], "y")
    array([1., 2.])
    >>> as_vector([1, float("nan")], "y")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: y must hold finite numbers, got 1 missing or infinite value
    (first at row 1)
    """
    array = _numeric(value, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 0 and scalar:
        array = array.reshape(1)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    check_length(array, name, length)
    _check_finite(array, name, finite=finite)
    return array


def as_matrix(
    value: npt.ArrayLike,
    name: str,
    *,
    length: int | None = None,
    columns: int | None = None,
    finite: bool = True,
) -> FloatArray:
    """Check a two-dimensional numeric array; one dimension counts as one column.

    Parameters
    ----------
    value : array-like of shape (n, k) or (n,)
        What came.
    name : str
        The argument's name, for the message.
    length, columns : int, optional
        The shape that it must have.
    finite : bool
        Whether infinities are refused. NaN always is.

    Returns
    -------
    ndarray of float, shape (n, k)

    Raises
    ------
    InputError
        As `as_vector`, or if the number of columns is wrong.

    Examples
    --------
    >>> as_matrix([[1, 2], [3, 4]], "samples").shape
    (2, 2)
    """
    array = _numeric(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} must have two dimensions, got shape {array.shape}")
    if array.shape[1] == 0:
        raise InputError(f"{name} must have at least one column, got shape {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} must have {columns} columns, got {array.shape[1]}")
    check_length(array, name, length)
    _check_finite(array, name, finite=finite)
    return array


def check_interval(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, length: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Check the two ends of closed intervals; infinite ends are legal, crossed ends are not.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        The ends, in the units of y.
    length : int, optional
        The number of rows that they must have.

    Returns
    -------
    lower, upper : ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an end is NaN, or a lower end lies above its upper end.

    Examples
    --------
    >>> check_interval([0.0], [1.0])
    (array([0.]), array([1.]))
    """
    low = as_vector(lower, "lower", length=length, finite=False)
    high = as_vector(upper, "upper", length=len(low), finite=False)
    crossed = low > high
    if crossed.any():
        first = int(np.argmax(crossed))
        raise InputError(
            f"lower must not exceed upper, got {int(crossed.sum())} crossed intervals "
            f"(first at row {first}: lower {low[first]:g}, upper {high[first]:g})"
        )
    return low, high


def check_fraction(value: float, name: str) -> float:
    """Check a number strictly between 0 and 1, such as a coverage or a level.

    Parameters
    ----------
    value : float
        What came.
    name : str
        The argument's name, for the message.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If it is not a number strictly between 0 and 1.

    Examples
    --------
    >>> check_fraction(0.9, "coverage")
    0.9
    >>> check_fraction(90, "coverage")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: coverage must lie strictly between 0 and 1, got 90
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 < number < 1.0:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return number


def check_levels(value: npt.ArrayLike, name: str = "levels") -> FloatArray:
    """Check strictly rising probabilities inside (0, 1).

    Parameters
    ----------
    value : array-like of shape (k,)
        What came.
    name : str
        The argument's name, for the message.

    Returns
    -------
    ndarray of float, shape (k,)

    Raises
    ------
    InputError
        If a level lies outside (0, 1), or they do not rise.

    Examples
    --------
    >>> check_levels([0.05, 0.5, 0.95])
    array([0.05, 0.5 , 0.95])
    """
    levels = as_vector(value, name)
    if (levels <= 0).any() or (levels >= 1).any() or (np.diff(levels) <= 0).any():
        raise InputError(
            f"{name} must rise strictly and lie strictly between 0 and 1, got {levels.tolist()}"
        )
    return levels


def check_quantiles(
    y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check what happened beside a table of quantiles, one column a level.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, in the units of y.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).

    Returns
    -------
    y, quantiles, levels : ndarray of float, shapes (n,), (n, k), (k,)

    Raises
    ------
    InputError
        If a level leaves its domain, shapes differ, or a value is missing or infinite.

    Examples
    --------
    >>> check_quantiles([1.0], [[0.0, 2.0]], [0.1, 0.9])[1].shape
    (1, 2)
    """
    truth = as_vector(y, "y")
    grid = check_levels(levels)
    return truth, as_matrix(quantiles, "quantiles", length=len(truth), columns=len(grid)), grid


def check_above(values: FloatArray, name: str, bound: float) -> None:
    """Check that every number lies above a bound, as an sd lies above 0.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        What came, checked already to hold finite numbers.
    name : str
        The argument's name, for the message.
    bound : float
        What they must exceed.

    Raises
    ------
    InputError
        If one does not.

    Examples
    --------
    >>> check_above(np.array([1.0, 0.0]), "sd", 0.0)
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: sd must be above 0, got 1 that are not (first at row 1: 0)
    """
    wrong = values <= bound
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must be above {bound:g}, got {int(wrong.sum())} that are not "
            f"(first at row {row}: {values[row]:g})"
        )


def power_of_two(values: FloatArray) -> float:
    """The power of two next to the largest size, by which division is exact; 1 where none is.

    >>> power_of_two(np.array([3.0, -5e-200])), power_of_two(np.zeros(2))
    (2.0, 1.0)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(largest) or largest == 0.0:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


def plain_array(value: npt.ArrayLike, name: str, *, text: bool = False) -> npt.NDArray[Any]:
    """Make an ordinary array of any kind: a mask becomes missing values.

    Parameters
    ----------
    value : array-like
        What came.
    name : str
        The argument's name, for the message.
    text : bool
        Whether text in lists stays apart from the numbers beside it.

    Returns
    -------
    ndarray

    Raises
    ------
    InputError
        If its parts differ in shape.

    Examples
    --------
    >>> plain_array(np.ma.array([1.0, 2.0], mask=[False, True]), "y")
    array([1.0, nan], dtype=object)
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        return np.asarray(np.ma.filled(value.astype(object), np.nan))
    value = to_host(value, name)
    try:
        array = np.asarray(value)
        if text and array.dtype.kind in "SU" and not hasattr(value, "__array__"):
            return np.asarray(value, dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of one shape, got {shortened(value)}") from error
    return array


def check_length(array: npt.NDArray[Any], name: str, length: int | None) -> None:
    """Check that an array has rows, and as many as it must.

    Raises
    ------
    InputError
        If it has no row, or another number of rows than ``length``.

    Examples
    --------
    >>> check_length(np.zeros(2), "y", 3)
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: y must have 3 rows, got 2
    """
    if len(array) == 0:
        raise InputError(f"{name} must have at least one row, got none")
    if length is not None and len(array) != length:
        raise InputError(f"{name} must have {length} rows, got {len(array)}")


def shortened(value: object) -> str:
    """What came, for a message, in at most 60 characters.

    Examples
    --------
    >>> shortened([1, "a"])
    "[1, 'a']"
    """
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _numeric(value: npt.ArrayLike, name: str) -> FloatArray:
    array = plain_array(value, name)
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
        raise InputError(f"{name} must hold real numbers, got text: {shortened(value)}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers, got {shortened(value)}") from error


def _check_finite(array: npt.NDArray[Any], name: str, *, finite: bool) -> None:
    bad = ~np.isfinite(array) if finite else np.isnan(array)
    count = int(bad.sum())
    if count:
        row = int(np.argmax(bad.reshape(len(array), -1).any(axis=1)))
        rule = "finite numbers" if finite else "no missing values"
        what = "missing or infinite" if finite else "missing"
        raise InputError(
            f"{name} must hold {rule}, got {count} {what} value{'s' * (count > 1)} "
            f"(first at row {row})"
        )
