"""A table of quantiles at fixed levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    as_matrix,
    as_vector,
    check_levels,
    plain_array,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError, either
from howsure.predictions.base import (
    Prediction,
    Rows,
    interpolated,
    levels_in_words,
    listed_numbers,
    stated_levels,
    tail_levels,
    wanted_levels,
)


@final
@frozen(init=False, eq=False, repr=False)
class Quantiles(Prediction):
    """Predicted quantiles, one column for each level.

    Between two given levels a quantile is interpolated linearly in the level; outside the
    outermost levels nothing is known, and nothing is extrapolated. Where all levels lie on one
    side of a half, each bounds a one-sided interval. Columns at the levels 0 and 1 are bounds of
    y, beside which y is impossible.

    Parameters
    ----------
    levels : array-like of shape (k,)
        Distinct levels in [0, 1], some of them inside.
    values : array-like of shape (n, k)
        Quantiles in the units of y, one column per level.
    crossing : {"error", "sort"}
        What to do with rows whose quantiles fall: refuse them, or sort each row (the isotonic
        rearrangement) and count them in `crossed_rows`.

    Raises
    ------
    InputError
        If levels leave [0, 1] or repeat, shapes differ, a value is not finite, or quantiles cross
        under ``crossing="error"``.

    Examples
    --------
    >>> prediction = Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 4.0]])
    >>> prediction.quantile([0.3])
    array([[1.5]])
    """

    kind: ClassVar[str] = "quantiles"
    point_is: ClassVar[str] = "median"
    levels: FloatArray
    values: FloatArray
    crossed_rows: int
    bounds: FloatArray | None  # shape (n, 2): quantiles at 0 and 1, infinite where none is stated

    def __init__(
        self,
        levels: npt.ArrayLike,
        values: npt.ArrayLike,
        crossing: Literal["error", "sort"] = "error",
    ) -> None:
        if _swapped(levels, values):
            raise InputError(
                "the levels are the first argument: Quantiles(levels, values); got levels of "
                f"shape {np.shape(plain_array(levels, 'levels'))}"
            )
        stated = stated_levels(levels)
        order = np.argsort(stated)
        table = as_matrix(values, "quantiles", finite=False)
        if table.shape[1] != len(stated):
            turned = "; they look transposed: give values.T" if len(table) == len(stated) else ""
            raise InputError(
                f"quantiles must have {len(stated)} columns, got {table.shape[1]} (the levels "
                f"are the first argument; values have shape {table.shape}){turned}"
            )
        table, stated = table[:, order], stated[order]
        inner = (stated > 0) & (stated < 1)
        as_matrix(table[:, inner], "quantiles")  # bounds alone may be infinite
        crossed = np.asarray((table[:, 1:] < table[:, :-1]).any(axis=1))
        if crossing not in ("error", "sort"):
            raise InputError(f"crossing must be 'error' or 'sort', got {crossing!r}")
        if crossed.any():
            if crossing == "error":
                raise InputError(_told_crossing(table, crossed))
            table = np.sort(table, axis=1)
        bounds = None
        if not inner.all():
            bounds = np.column_stack(
                [
                    table[:, side] if stated[side] == level else np.full(len(table), none)
                    for side, level, none in ((0, 0.0, -np.inf), (-1, 1.0, np.inf))
                ]
            )
        object.__setattr__(self, "levels", check_levels(stated[inner]))
        object.__setattr__(self, "values", np.ascontiguousarray(table[:, inner]))
        object.__setattr__(self, "crossed_rows", int(crossed.sum()))
        object.__setattr__(self, "bounds", bounds)

    def _shown_fields(self) -> list[str]:
        return [f"levels={listed_numbers(self.levels.tolist())}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def own_levels(self) -> tuple[float, ...]:
        """The levels of the quantiles."""
        return tuple(self.levels.tolist())

    @property
    def own_coverages(self) -> tuple[float, ...]:
        """Of one-sided intervals, where no two levels bound a central one."""
        if self.widest:
            return ()
        return tuple(sorted(round(max(p, 1.0 - p), 12) for p in self.levels.tolist()))

    def one_sided(self, coverage: float) -> float | None:
        """The level that alone bounds the interval at a coverage; None where two do."""
        if self.widest:
            return None
        return next((p for p in self.own_levels if abs(max(p, 1.0 - p) - coverage) < 1e-9), None)

    def described(self) -> str:
        """What it is, in words."""
        return f"quantiles at {levels_in_words(self.levels)}"

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        return {"quantiles": self.values}

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        levels, values = self.levels, self.values[rows]
        if self.bounds is not None:
            levels = np.r_[0.0, levels, 1.0]
            values = np.column_stack([self.bounds[rows, 0], values, self.bounds[rows, 1]])
        return type(self)(levels, values)

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """Quantiles at the levels, interpolated between the given ones, shape (n, k)."""
        wanted = wanted_levels(levels)
        low, high = self.levels[0], self.levels[-1]
        # Levels such as 1 − .9 are off by rounding, and nobody states nine digits.
        outside = (wanted < low - 1e-9) | (wanted > high + 1e-9)
        if outside.any():
            raise UnanswerableError(
                f"level {wanted[np.argmax(outside)]:g} is outside the given quantiles ({low:g} "
                f"to {high:g}); quantiles are not extrapolated"
            )
        if len(self.levels) == 1:
            return np.repeat(self.values, len(wanted), axis=1)
        above = np.clip(np.searchsorted(self.levels, wanted), 1, len(self.levels) - 1)
        below = above - 1
        share = (wanted - self.levels[below]) / (self.levels[above] - self.levels[below])
        share = np.where(np.abs(share - np.round(share)) < 1e-9, np.round(share), share)
        return interpolated(self.values, below, above, share)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Central interval between two interpolated quantiles, or that which one level bounds."""
        level = self.one_sided(coverage)
        if level is not None:
            end = self.quantile([level])[:, 0]
            return (
                (np.full(self.n, -np.inf), end) if level >= 0.5 else (end, np.full(self.n, np.inf))
            )
        ends = self.quantile(tail_levels(coverage))
        return ends[:, 0], ends[:, 1]

    @property
    def widest(self) -> float:
        """Coverage between the outermost levels that lie alike on both sides; 0 where none do."""
        tail = float(max(self.levels[0], 1.0 - self.levels[-1]))
        return max(round(1.0 - 2.0 * tail, 12), 0.0)

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """What P(Y < q) ≤ p ≤ P(Y ≤ q) says of a quantile q at level p, of any law.

        So P(Y < q) is at most p, and at least p less the probability of q itself, which shows in
        the rows whose y is q. In tables of whole numbers a level between two given ones has no
        quantile of its own, and claims what these two do.
        """
        lower, upper = self.interval(coverage)
        level = self.one_sided(coverage)
        levels = tail_levels(coverage) if level is None else (level, level)
        bottom, top = (self._given_about(bound, y) for bound in levels)
        below = np.stack([bottom[0] - (y == lower), np.full(self.n, bottom[1])], axis=1)
        above = np.stack([1.0 - top[1] - (y == upper), np.full(self.n, 1.0 - top[0])], axis=1)
        if level is not None:  # the side without an end misses none
            open_side = below if level >= 0.5 else above
            open_side[:] = 0.0
        return below, above

    def _given_about(self, level: float, y: FloatArray) -> tuple[float, float]:
        """The level twice; for whole numbers the given levels next to it, below and above."""
        if not ((y == np.round(y)).all() and (self.values == np.round(self.values)).all()):
            return level, level
        last = int(np.searchsorted(self.levels, level + 1e-9, side="right")) - 1
        first = int(np.searchsorted(self.levels, level - 1e-9))
        return float(self.levels[last]), float(self.levels[first])

    def point(self) -> FloatArray:
        """The median."""
        return self.quantile([0.5])[:, 0]

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """Quantiles at the uniforms; infinite beyond the outermost levels."""
        if (self.values == np.floor(self.values)).all() and (y == np.floor(y)).all():
            raise UnanswerableError("quantiles of whole numbers give only bounds on the coverage")
        low, high = self.levels[0], self.levels[-1]
        drawn = np.where(uniforms < low, -np.inf, np.inf)
        rows = np.flatnonzero((uniforms >= low) & (uniforms <= high))
        if len(self.levels) > 1:
            right = np.clip(np.searchsorted(self.levels, uniforms[rows]), 1, len(self.levels) - 1)
            below, above = self.levels[right - 1], self.levels[right]
            share = (uniforms[rows] - below) / (above - below)
            drawn[rows] = (1.0 - share) * self.values[rows, right - 1] + share * self.values[
                rows, right
            ]
        return drawn, self


def _swapped(levels: npt.ArrayLike, values: npt.ArrayLike) -> bool:
    """Whether the values stand where levels belong: these alone are probabilities."""
    first, second = plain_array(levels, "levels").shape, plain_array(values, "quantiles").shape
    if len(first) == 2 and 1 not in first:
        return len(second) < 2
    if len(first) != 1 or len(second) != 1 or first == second:
        return False
    first_numbers, other = as_vector(levels, "levels"), as_vector(values, "quantiles")
    return not _are_shares(first_numbers) and _are_shares(other)


def _told_crossing(table: FloatArray, crossed: BoolArray) -> str:
    """The message for rows that do not rise, of columns in the order of their levels."""
    count = int(crossed.sum())
    message = (
        f"quantiles must increase with their level; they cross in {count} "
        f"{'row' if count == 1 else 'rows'} (first at row {int(np.argmax(crossed))})"
    )
    sort = either("howsure.Table(…, crossing='sort')", "--crossing sort")
    if len(table) == table.shape[1] and (np.diff(table, axis=0) >= 0).all():
        return f"{message}; they look transposed: give values.T"
    if count == len(table) > 1 and (np.diff(table, axis=1) <= 0).all():
        return (
            f"{message}; the quantiles decrease in each row, so levels look reversed: give "
            f"levels[::-1]; {sort} reverses each row"
        )
    return f"{message}; {sort} sorts each row"


def _are_shares(values: FloatArray) -> bool:
    return bool(((values > 0) & (values < 1)).all())
