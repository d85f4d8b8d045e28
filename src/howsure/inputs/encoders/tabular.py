"""Tables of numbers, dates and labels become vectors in which every column counts alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, as_vector, plain_array, power_of_two
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, InputError
from howsure.core.labels import as_labels, find_labels, rank_labels
from howsure.inputs.source import listed

Features = Mapping[str, npt.ArrayLike]

# Share of the rows below which a label has no column of its own: a kernel hardly sees it. By hand;
# not tuned.
_MIN_SHARE_OF_LABEL = 0.01
# For the labels of one column, the rare ones' included, lest it outweigh all other inputs. By
# hand; not tuned.
_MAX_COLUMNS = 20


@final
@frozen
class _Numbers:
    """Numbers, dates or truth values, less their mean, over their standard deviation.

    Both are those of the numbers over a power of two, whose squares neither overflow nor vanish.
    """

    unit: float
    mean: float
    sd: float
    dates: str = ""
    width: int = 1

    def encode(self, values: AnyArray, name: str) -> FloatArray:
        numbers = _as_numbers(values, name, self.dates) / self.unit
        return ((numbers - self.mean) / self.sd)[:, None]


@final
@frozen
class _Labels:
    """Labels, one 0/1 column each and one for rare labels, scaled to variance one in all."""

    frequent: list[str]
    scale: float
    width: int

    def encode(self, values: AnyArray, name: str) -> FloatArray:
        if values.dtype.kind != "O":
            raise InputError(f"{name} must contain labels, as before, got {values.dtype}")
        return _indicators(values, self.frequent)[:, : self.width] * self.scale


@final
@frozen
class TabularEncoder:
    """A fitted encoder of tables; `tabular_encoder` makes it.

    Attributes
    ----------
    columns : tuple of str
        Columns that are encoded, in order.
    dropped : tuple of str
        Columns that say nothing: constant ones, and labels that are all rare, such as names
        of rows.
    width : int
        Numbers that encode a row.
    """

    columns: tuple[str, ...]
    dropped: tuple[str, ...]
    width: int
    _fitted: tuple[_Numbers | _Labels, ...]

    def transform(self, features: Features) -> FloatArray:
        """Encode a table.

        Parameters
        ----------
        features : mapping of str to array-like of shape (n,)
            At least the columns that are encoded, of the types that they had. A label that
            was not seen when the encoder was fitted counts as rare.

        Returns
        -------
        ndarray of float, shape (n, width)

        Raises
        ------
        InputError
            If a column is absent, of another type or length, misses values, or lies too far
            out for the result to be a number of 32 bits.

        Examples
        --------
        >>> encoder = tabular_encoder({"age": [20.0, 40.0], "const": [1, 1]})
        >>> encoder.transform({"age": [30.0, 60.0]})
        array([[0.],
               [3.]])
        """
        if not isinstance(features, Mapping):
            raise InputError(f"features must be a mapping, got {type(features).__name__}")
        absent = [name for name in self.columns if name not in features]
        if absent:
            raise InputError(f"features has no columns {listed(absent)}")
        out: FloatArray | None = None
        start = 0
        for name, column in zip(self.columns, self._fitted, strict=True):
            title = f"feature {name!r}"
            length = None if out is None else len(out)
            with np.errstate(over="ignore"):
                block = column.encode(_as_column(features[name], title, length), title)
            if not (np.abs(block) <= np.finfo(np.float32).max).all():
                raise InputError(f"{title} has a number too far outside its previous range")
            if out is None:
                out = np.empty((len(block), self.width))
            out[:, start : start + column.width] = block
            start += column.width
        assert out is not None  # an encoder has a column
        return out


def tabular_encoder(features: Features) -> TabularEncoder:
    """Fit an encoder that turns tables of mixed types into vectors.

    Every column contributes variance one, whatever its type and units, so that a kernel on the
    vectors heeds all columns alike. Numbers, truth values and dates are centred and divided by
    their standard deviation. Labels get one 0/1 column each, at most 20 of them, with rare labels
    sharing one: those of less than 1 % of the rows, or seen once. The columns are divided by the
    square root of their summed variance Σ p(1−p), p being a label's share: a truth value and a
    column of two labels then give the same distances.

    Parameters
    ----------
    features : mapping of str to array-like of shape (n,)
        Columns by name: numbers, truth values, dates, or labels. Text is labels; numbers that
        stand for labels should come as text.

    Returns
    -------
    TabularEncoder
        Its `transform` encodes tables with these columns.

    Raises
    ------
    InputError
        If there is no column, lengths differ, a value is missing or not finite, or no column
        varies.

    Examples
    --------
    >>> table = {"size": [1.0, 2.0, 3.0, 4.0], "site": ["a", "a", "b", "b"], "unit": ["m"] * 4}
    >>> encoder = tabular_encoder(table)
    >>> encoder.columns, encoder.dropped
    (('size', 'site'), ('unit',))
    >>> encoder.transform(table).round(2)
    array([[-1.34,  1.41,  0.  ],
           [-0.45,  1.41,  0.  ],
           [ 0.45,  0.  ,  1.41],
           [ 1.34,  0.  ,  1.41]])
    """
    if not isinstance(features, Mapping) or not features:
        raise InputError(
            f"features must be a mapping with at least one column, got {features!r}"[:200]
        )
    fitted: dict[str, _Numbers | _Labels] = {}
    length = None
    for name, feature in features.items():
        title = f"feature {name!r}"
        values = _as_column(feature, title, length)
        length = len(values)
        labels = values.dtype.kind == "O"
        column = _fit_labels(values) if labels else _fit_numbers(values, title)
        if column is not None:
            fitted[name] = column
    if not fitted:
        raise DegenerateError(
            f"features must have a column that varies; {listed(features)} are constant or have "
            "only rare labels"
        )
    return TabularEncoder(
        columns=tuple(fitted),
        dropped=tuple(name for name in features if name not in fitted),
        width=sum(column.width for column in fitted.values()),
        _fitted=tuple(fitted.values()),
    )


def _as_column(value: npt.ArrayLike, title: str, length: int | None) -> AnyArray:
    """Labels as objects; numbers and dates as they are, also where they came as objects."""
    array = plain_array(value, title, text=True)
    if array.dtype.kind == "O" and all(isinstance(item, Real) for item in array.flat):
        return as_vector(array, title, length=length)
    return as_labels(array, title, length=length)


def _as_numbers(values: AnyArray, title: str, dates: str) -> FloatArray:
    """Numbers; dates in microseconds."""
    kind = values.dtype.kind if values.dtype.kind in "mMO" else ""
    if kind != dates:
        wanted = {"": "numbers", "M": "dates", "m": "durations"}[dates]
        raise InputError(f"{title} must contain {wanted}, as before, got {values.dtype}")
    if dates:
        values = values.astype(f"{dates}8[us]").astype(np.int64)
    return as_vector(values, title)


def _fit_numbers(values: AnyArray, title: str) -> _Numbers | None:
    dates = values.dtype.kind if values.dtype.kind in "mM" else ""
    numbers = _as_numbers(values, title, dates)
    if numbers.min() == numbers.max():
        return None
    unit = power_of_two(numbers)
    scaled = numbers / unit
    mean = float(scaled.mean())
    spread = power_of_two(scaled - mean)
    sd = spread * float(((scaled - mean) / spread).std())
    return _Numbers(unit, mean, sd, dates)


def _fit_labels(values: AnyArray) -> _Labels | None:
    labels, counts = rank_labels(values, later_first=True)
    frequent = min(
        int((counts >= max(2, math.ceil(_MIN_SHARE_OF_LABEL * len(values)))).sum()),
        _MAX_COLUMNS - 1,
    )
    width = frequent + (frequent < len(labels))
    chosen = sorted(labels[:frequent])
    shares = _indicators(values, chosen)[:, :width].mean(axis=0)
    variance = float((shares * (1.0 - shares)).sum())
    return _Labels(chosen, 1.0 / math.sqrt(variance), width) if variance else None


def _indicators(values: AnyArray, labels: list[str]) -> FloatArray:
    """Which of the labels each row holds, and in the last column whether none."""
    return np.eye(len(labels) + 1)[find_labels(values, labels)]
