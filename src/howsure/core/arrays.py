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
        Numbers, booleans and dates as they are; everything else as text, in an array of objects
        (an array of fixed width would lose trailing NULs, and spend the longest text's room on
        every row).

    Raises
    ------
    InputError
        If it is not of one dimension, empty, of another length, or holds missing labels or text
        that is not Unicode.

    Examples
    --------
    >>> as_labels(["north", "south"], "groups").tolist()
    ['north', 'south']
    """
    array = _plain(value, name, text=True)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    _check_length(array, name, length)
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind in "fmM":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    elif array.dtype.kind in "OSU":
        array, missing = _text_labels(array.tolist(), name)
    else:
        raise InputError(f"{name} must hold labels, got dtype {array.dtype}")
    if missing.any():
        count = int(missing.sum())
        raise InputError(
            f"{name} must hold no missing labels, got {count} (first at row {np.argmax(missing)})"
        )
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


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """Labels of rows, stored once each: groups, clusters.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        For each row, the place of its label in `labels`.
    labels : ndarray, shape (g,)
        The distinct labels in rising order, each used by a row.
    """

    codes: IntArray
    labels: npt.NDArray[Any]

    @classmethod
    def checked(
        cls, values: npt.ArrayLike | Categories, name: str, *, length: int | None = None
    ) -> Self:
        """Check labels at the door, and find the distinct ones.

        Parameters
        ----------
        values : array-like of shape (n,), or Categories
            What came.
        name : str
            The argument's name, for the message.
        length : int, optional
            The length that it must have.

        Raises
        ------
        InputError
            As `as_labels`.

        Examples
        --------
        >>> groups = Categories.checked(["south", "north", "south"], "groups")
        >>> groups.codes.tolist(), groups.labels.tolist()
        ([1, 0, 1], ['north', 'south'])
        """
        if isinstance(values, Categories):
            _check_length(values.codes, name, length)
            return cls.from_codes(values.codes, values.labels)
        array = as_labels(values, name, length=length)
        if array.dtype.kind != "O":
            labels, codes = np.unique(array, return_inverse=True)
            return cls(codes.astype(np.int64, copy=False), labels)
        seen: dict[str, int] = {}
        codes = np.fromiter(
            (seen.setdefault(item, len(seen)) for item in array.tolist()), np.int64, len(array)
        )
        return cls.from_codes(codes, _object_array(list(seen)))

    @classmethod
    def from_codes(cls, codes: npt.NDArray[Any], labels: npt.NDArray[Any]) -> Self:
        """Put codes of distinct labels into the form above: sorted, and used ones alone.

        Examples
        --------
        >>> Categories.from_codes(np.array([0, 2]), np.array(["b", "x", "a"])).codes.tolist()
        [1, 0]
        """
        used = np.flatnonzero(np.bincount(codes, minlength=len(labels)))
        order = used[np.argsort(labels[used], kind="stable")]
        place = np.zeros(len(labels), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(place[codes], labels[order])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> IntArray:
        """Number of rows of each label, shape (g,)."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64, copy=False)

    def values(self) -> npt.NDArray[Any]:
        """The label of each row, shape (n,)."""
        return np.asarray(self.labels[self.codes])

    def take(self, rows: npt.NDArray[Any]) -> Categories:
        """Labels of the rows chosen by an index or a mask; unused labels go."""
        return Categories.from_codes(self.codes[rows], self.labels)


@dataclass(frozen=True, slots=True, eq=False)
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
        if not np.isfinite(float(array.max()) * len(array)):
            raise InputError(f"weights must have a finite sum, got one of {array.max():g}")
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
        shares = self.values / self.values.max()
        return float(shares.sum()) ** 2 / float(np.square(shares).sum())

    def take(self, rows: npt.NDArray[Any]) -> Weights:
        """Weights of the rows chosen by an index or a mask."""
        return Weights(self.values[rows], self.kind)


def _numeric(value: npt.ArrayLike, name: str) -> FloatArray:
    array = _plain(value, name)
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must hold real numbers, got dtype {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
        raise InputError(f"{name} must hold real numbers, got text: {_sample(value)}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers, got {_sample(value)}") from error


def _plain(value: npt.ArrayLike, name: str, *, text: bool = False) -> npt.NDArray[Any]:
    """An ordinary array: a mask becomes missing values, text in lists stays apart from numbers."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        return np.asarray(np.ma.filled(value.astype(object), np.nan))
    try:
        array = np.asarray(value)
        if text and array.dtype.kind in "SU" and not hasattr(value, "__array__"):
            return np.asarray(value, dtype=object)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of one shape, got {_sample(value)}") from error
    return array


def _object_array(items: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_missing(item: object) -> bool:
    """Whether it is None, or unlike itself as NaN and NaT are, or pandas' NA."""
    if isinstance(item, str):
        return False
    return item is None or type(item).__name__ == "NAType" or bool(item != item)


def _text_labels(items: list[Any], name: str) -> tuple[npt.NDArray[Any], BoolArray]:
    """Items as text, and which of them are missing."""
    missing = np.zeros(len(items), dtype=np.bool_)
    try:
        if set(map(type, items)) != {str}:
            missing[:] = [_is_missing(item) for item in items]
            items = [item.decode() if isinstance(item, bytes) else str(item) for item in items]
        "".join(items).encode()
    except UnicodeError as error:
        raise InputError(f"{name} must hold Unicode text, got {_sample(items)}") from error
    return _object_array(items), missing


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
