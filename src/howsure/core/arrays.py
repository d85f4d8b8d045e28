"""Checks at the door: every array that enters howsure passes through here.

Each check returns a plain float64 array and raises `InputError` with a message that names the
argument, the rule and what came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WeightsKind = Literal["frequency", "importance"]


def as_vector(
    value: npt.ArrayLike, name: str, *, length: int | None = None, finite: bool = True
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
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    _check_length(array, name, length)
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
    _check_length(array, name, length)
    _check_finite(array, name, finite=finite)
    return array


def as_labels(value: npt.ArrayLike, name: str, *, length: int | None = None) -> npt.NDArray[Any]:
    """Check a one-dimensional array of labels of any kind, such as groups or clusters.

    Parameters
    ----------
    value : array-like of shape (n,)
        What came.
    name : str
        The argument's name, for the message.
    length : int, optional
        The length that it must have.

    Returns
    -------
    ndarray of shape (n,)
        Numbers and booleans as they are, everything else as text.

    Raises
    ------
    InputError
        If it is not of one dimension, empty, of another length, or holds missing labels.

    Examples
    --------
    >>> as_labels(["north", "south"], "groups").tolist()
    ['north', 'south']
    """
    array = np.asarray(value)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    _check_length(array, name, length)
    if array.dtype.kind == "f":
        _check_finite(array, name, finite=False)
    if array.dtype.kind == "O":
        missing = np.array([item is None or item != item for item in array])
        if missing.any():
            first = int(np.argmax(missing))
            raise InputError(
                f"{name} must hold no missing labels, got {int(missing.sum())} "
                f"(first at row {first})"
            )
    return array if array.dtype.kind in "biufUM" else array.astype(str)


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


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of rows, and what they mean.

    Attributes
    ----------
    values : ndarray of float, shape (n,)
        Non-negative, not all zero.
    kind : {"frequency", "importance"}
        ``frequency``: a weight of two is a row seen twice. ``importance``: a row stands for a
        share of another population; standard errors are approximate.
    """

    values: FloatArray
    kind: WeightsKind = "frequency"

    @classmethod
    def checked(
        cls, values: npt.ArrayLike, kind: str = "frequency", *, length: int | None = None
    ) -> Self:
        """Check weights at the door.

        Raises
        ------
        InputError
            If a weight is negative or not finite, if all are zero, if frequency weights are not
            whole numbers, or if the kind is unknown.

        Examples
        --------
        >>> Weights.checked([1, 2, 1]).total
        4.0
        """
        array = as_vector(values, "weights", length=length)
        if (array < 0).any():
            raise InputError(f"weights must not be negative, got {float(array.min()):g}")
        if not array.any():
            raise InputError("weights must not all be zero")
        if kind == "frequency":
            broken = array != np.floor(array)
            if broken.any():
                first = int(np.argmax(broken))
                raise InputError(
                    "frequency weights must be whole numbers (a weight of 2 is a row seen twice), "
                    f"got {array[first]:g} at row {first}; for other weights say importance"
                )
            return cls(array, "frequency")
        if kind == "importance":
            return cls(array, "importance")
        raise InputError(f"weights kind must be 'frequency' or 'importance', got {kind!r}")

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.values.sum())

    @property
    def effective_n(self) -> float:
        """Rows that count: the sum for frequencies, Kish's (Σw)²/Σw² for importance."""
        if self.kind == "frequency":
            return self.total
        return self.total**2 / float(np.square(self.values).sum())

    def take(self, rows: npt.NDArray[Any]) -> Weights:
        """Weights of the rows chosen by an index or a mask."""
        return Weights(self.values[rows], self.kind)


def _numeric(value: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(value)
    if array.dtype.kind in "cMm":
        raise InputError(f"{name} must hold real numbers, got dtype {array.dtype}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold real numbers, got {_sample(value)}") from error


def _sample(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_length(array: npt.NDArray[Any], name: str, length: int | None) -> None:
    if len(array) == 0:
        raise InputError(f"{name} must have at least one row, got none")
    if length is not None and len(array) != length:
        raise InputError(f"{name} must have {length} rows, got {len(array)}")


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
