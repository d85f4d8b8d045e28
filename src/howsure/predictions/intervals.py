"""Closed intervals at one or several nominal coverages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    as_matrix,
    as_vector,
    check_fraction,
    check_interval,
    in_percent,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError, either
from howsure.core.formats import percent
from howsure.core.registry import check_known
from howsure.predictions.base import Prediction, Rows, listed_numbers, tail_levels


@final
@frozen(init=False, eq=False, repr=False)
class Intervals(Prediction):
    """Closed intervals [lower, upper], one column for each nominal coverage.

    Parameters
    ----------
    lower, upper : array-like of shape (n,) or (n, c)
        Ends in the units of y; −inf and +inf are legal, NaN and crossed ends are not.
    coverage : float or array-like of shape (c,), optional
        Nominal coverage of each column, in (0, 1). Unknown if omitted: then there is one column,
        and nothing can be said of its calibration.
    crossing : {"error", "sort"}
        What to do with rows where a lower end exceeds its upper end: refuse them, or exchange the
        two and count the rows in `crossed_rows`.

    Raises
    ------
    InputError
        If the shapes differ, an end is NaN, ends cross under ``crossing="error"``, or the coverages
        are not distinct numbers in (0, 1), one per column.

    Examples
    --------
    >>> prediction = Intervals([0.0, 1.0], [2.0, 3.0], coverage=0.9)
    >>> prediction.interval(0.9)
    (array([0., 1.]), array([2., 3.]))
    """

    kind: ClassVar[str] = "intervals"
    point_is: ClassVar[str] = "midpoint"
    lower: FloatArray
    upper: FloatArray
    coverages: tuple[float, ...]
    crossed_rows: int

    def __init__(
        self,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        coverage: npt.ArrayLike | None = None,
        crossing: Literal["error", "sort"] = "error",
    ) -> None:
        low = as_matrix(lower, "lower", finite=False)
        high = as_matrix(upper, "upper", length=len(low), columns=low.shape[1], finite=False)
        check_known(crossing, ("error", "sort"), "crossing")
        crossed = (low > high).any(axis=1)
        if crossing == "sort" and crossed.any():
            low, high = np.minimum(low, high), np.maximum(low, high)
        try:
            for column in range(low.shape[1]):
                check_interval(low[:, column], high[:, column])
        except InputError as error:
            sort = either("howsure.Table(…, crossing='sort')", "--crossing sort")
            way = f"; {sort} swaps them" * bool(crossed.any())
            raise InputError(f"{error}{way}") from error
        if (low == np.inf).any() or (high == -np.inf).any():
            raise InputError("lower must not be +inf and upper must not be -inf")
        order = np.arange(low.shape[1])
        values: tuple[float, ...] = ()
        if coverage is None:
            if low.shape[1] > 1:
                raise InputError(f"coverage must be given for {low.shape[1]} columns of intervals")
        else:
            stated = as_vector(coverage, "coverage", scalar=True)
            if len(stated) != low.shape[1]:
                raise InputError(
                    f"coverage needs one number per column ({low.shape[1]}); got {len(stated)}"
                )
            if ((stated <= 0) | (stated >= 1)).any() or len(set(stated.tolist())) < len(stated):
                raise InputError(
                    "coverage must contain distinct numbers strictly between 0 and 1, got "
                    f"{stated.tolist()}{in_percent(stated)}"
                )
            order = np.argsort(stated)
            values = tuple(float(c) for c in stated[order])
        object.__setattr__(self, "lower", np.ascontiguousarray(low[:, order].T).T)
        object.__setattr__(self, "upper", np.ascontiguousarray(high[:, order].T).T)
        object.__setattr__(self, "coverages", values)
        object.__setattr__(self, "crossed_rows", int(crossed.sum()))

    def _shown_fields(self) -> list[str]:
        return [f"coverage={listed_numbers(self.coverages) or 'unknown'}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.lower)

    @property
    def own_coverages(self) -> tuple[float, ...]:
        """The nominal coverages; one NaN where it is unknown."""
        return self.coverages or (math.nan,)

    @property
    def own_levels(self) -> tuple[float, ...]:
        """The levels that bound the intervals."""
        return tuple(sorted(level for c in self.coverages for level in tail_levels(c)))

    def described(self) -> str:
        """What it is, in words."""
        shares = " and ".join(percent(c) for c in self.coverages)
        return f"intervals at {shares}" if shares else "intervals of unknown coverage"

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        return {"lower": self.lower, "upper": self.upper}

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        return type(self)(self.lower[rows], self.upper[rows], self.coverages or None)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """The interval given for this coverage; no other can be derived from it."""
        if not self.coverages:
            raise UnanswerableError("the nominal coverage of the intervals is unknown")
        distances = np.abs(np.asarray(self.coverages) - check_fraction(coverage, "coverage"))
        column = int(np.argmin(distances))
        if distances[column] > 1e-9:
            stated = ", ".join(f"{c:g}" for c in self.coverages)
            raise UnanswerableError(f"intervals were given at coverage {stated}, not {coverage:g}")
        return self.lower[:, column], self.upper[:, column]

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Of an end q that is a quantile of any law only P(Y < q) ≤ p ≤ P(Y ≤ q) is claimed.

        Nothing lies beyond an infinite end, so all misses are claimed beyond the other.
        """
        ends = self.interval(coverage)
        shares: list[FloatArray | float] = [(1.0 - coverage) / 2.0] * 2
        infinite = [np.isinf(end) for end in ends]
        if any(unbounded.any() for unbounded in infinite):
            miss_rate = np.where(infinite[0] ^ infinite[1], 1.0 - coverage, (1.0 - coverage) / 2.0)
            shares = [np.where(unbounded, 0.0, miss_rate) for unbounded in infinite]
        below, above = (_range_of(tail, y == end) for tail, end in zip(shares, ends, strict=True))
        return below, above

    def point(self) -> FloatArray:
        """Midpoint of the interval of the lowest coverage; an infinite end has none."""
        lower, upper = self.lower[:, 0], self.upper[:, 0]
        if not (np.isfinite(lower) & np.isfinite(upper)).all():
            raise UnanswerableError("some intervals are unbounded and have no midpoint")
        return lower / 2.0 + upper / 2.0

    def inside(self, coverage: float, uniforms: FloatArray) -> BoolArray:
        """A coin with the claimed coverage, one for all columns; always where unbounded."""
        lower, upper = self.interval(coverage)
        return np.asarray((uniforms < coverage) | ((lower == -np.inf) & (upper == np.inf)))


def _range_of(tail: FloatArray | float, met: BoolArray) -> FloatArray:
    """What may lie beyond an end, the least and the most; shape (n, 2)."""
    if not met.any() and np.ndim(tail) == 0:
        return np.broadcast_to(tail, (len(met), 2))
    return np.stack([tail - met, np.broadcast_to(tail, len(met))], axis=1)
