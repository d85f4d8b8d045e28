"""When rows happened: numbers of their times, and what they add to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, TypeVar

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError

# Times on a grid for each that is there, at most, for the gaps to be kept: with more gaps than
# times a spectrum is of the gaps. By hand; not tuned.
_MAX_TIMES_ON_GRID = 2.0
# Series times times, 16 MB: of more, some series stand as one, whose spectrum is the same.
_MAX_CELLS = 2_000_000
# Chosen by hand; not tuned. Lower, intervals of few days rest on the prior of shared shocks.
MIN_TIMES = 30
"""Times below which shocks that series share are too few to tell their own memory."""
# Rows beyond the first, for each time, from which on series are distinguished: in most times there
# is one. By hand; not tuned.
_MIN_ROWS_BESIDE = 0.5
# February.
_SHORTEST_MONTH = np.timedelta64(28, "D")
# Of a step: rounding of times that were written as numbers.
_MAX_SHARE_OFF_GRID = 1e-3
# Things made of one chronology: for two signals, with and without levels; a few arrays of its
# length.
_MAX_KEPT = 6
T = TypeVar("T")


@frozen(eq=False)
class Chronology:
    """When rows happened, where those near in time are alike: the units of every error.

    Attributes
    ----------
    times : ndarray of int, shape (n,)
        Number of each row's time on a grid, or its rank; equal of rows at one time.
    side, size : ndarray of float, shape (n,), optional
        On which side of its prediction y lies, and how far off.
    signal : ndarray of float, shape (n,), optional
        The one of these whose memory a score has at least: hits hardly vary, and hide theirs.
    levels : ndarray of int, shape (n,), optional
        Rows whose mean is no memory, by number: a group that differs, or one side of a step.
    few : bool
        Whether all rows count as too few for any error.
    series : ndarray of int, shape (n,), optional
        Number of the series of each row, where several are known at one time.
    made : dict
        What was worked out of these times before; see `once`.
    memories : dict
        What means cost in these times, by a digest of their numbers: trials ask again.
    """

    times: IntArray
    side: FloatArray | None = None
    size: FloatArray | None = None
    signal: FloatArray | None = None
    levels: IntArray | None = None
    few: bool = False
    series: IntArray | None = None
    made: dict[tuple[str | int, ...], tuple[tuple[object, ...], Any]] = field(
        default_factory=dict, repr=False
    )
    memories: dict[bytes, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, make: Callable[[], T], *of: object) -> T:
        """What is made of these very objects, made once while few others are asked for."""
        key: tuple[str | int, ...] = (name, *map(id, of))
        remembered = self.made.pop(key, None)
        if remembered is None or any(
            old is not new for old, new in zip(remembered[0], of, strict=True)
        ):
            remembered = of, make()
        while len(self.made) >= _MAX_KEPT:
            self.made.pop(next(iter(self.made)))
        self.made[key] = remembered
        value: T = remembered[1]
        return value

    def ranks(self) -> tuple[IntArray, IntArray]:
        """The different times, rising, and which of them each row has."""

        def ranked() -> tuple[IntArray, IntArray]:
            distinct, rank = np.unique(self.times, return_inverse=True)
            return distinct, rank

        return self.once("ranks", ranked)

    def take(self, rows: IntArray | BoolArray | slice) -> Chronology:
        """That of some of the rows; gaps between them only lower what one tells of the next."""
        columns: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in ("side", "size", "signal", "levels", "series")
        }
        return Chronology(self.times[rows], few=self.few, **columns)

    def hiding(self, signal: FloatArray | None) -> Chronology:
        """The same for a score that hides the memory of a signal."""
        return replace(self, signal=signal)

    def places(self) -> tuple[IntArray, int]:
        """Where each row's time is among all, and how many these are.

        Missing times count, as they would shift the seasons, unless most of them are missing.
        """
        distinct, rank = self.ranks()
        span = int(distinct[-1] - distinct[0]) + 1
        if span > _MAX_TIMES_ON_GRID * len(distinct):
            return rank, len(distinct)
        return self.once("places", lambda: distinct[rank] - distinct[0]), span

    def numbers(
        self, values: FloatArray, mass: FloatArray | None
    ) -> tuple[FloatArray, Panel | None]:
        """One number a time, whose plain mean is the weighted mean of values of mean 0.

        What levels differ by is taken away. Beside it what rows of known series add to these.
        """
        time, count = self.places()
        w = np.ones(len(values)) if mass is None else mass
        if self.levels is not None:
            values = less_means(values, self.levels, w)
        added = w * values * (count / float(w.sum()))
        sums = np.bincount(time, added, count).astype(np.float64)
        return sums, None if self.series is None else self._panel(self.series, added, sums)

    def _panel(self, named: IntArray, added: FloatArray, sums: FloatArray) -> Panel | None:
        """Rows less the mean of their time; None where most times have one row."""
        time, count = self.places()

        def index_cells() -> tuple[IntArray, IntArray, IntArray, IntArray]:
            """The cell of each row; of each cell its series and time; how many a time has."""
            cells, code = np.unique(named * count + time, return_inverse=True)
            series, when = np.divmod(cells, count)
            return (
                code,
                series % max(_MAX_CELLS // count, 1),
                when,
                np.bincount(when, minlength=count),
            )

        code, series, when, there = self.once("cells", index_cells)
        size = int(series.max()) + 1
        freedom = min(float(np.maximum(there - 1, 0).sum()) / count, size - 1.0)
        if freedom < _MIN_ROWS_BESIDE:
            return None
        cells = np.bincount(code, added)
        rows_at_time = there[when]
        deviations = cells - (sums / np.maximum(there, 1))[when]
        deviations *= np.sqrt(rows_at_time / np.maximum(rows_at_time - 1, 1))
        by_series = np.bincount(series * count + when, deviations, size * count).astype(np.float64)
        return Panel(
            by_series.reshape(size, count), freedom, float(len(cells)), float(cells @ cells)
        )


@frozen
class Panel:
    """What several series of the same times add to the numbers of these times."""

    # shape (series, times): rows less the mean of their time, and 0 where there is none; scaled to
    # have the variance of a row
    apart: FloatArray
    freedom: float  # rows of a time beyond the first, on average
    rows: float
    square: float  # sum of the squares of all rows


Units = IntArray | Chronology | None
"""What goes together: clusters, times that follow each other, or nothing."""


def less_means(values: FloatArray, levels: IntArray, mass: FloatArray) -> FloatArray:
    """Values less the mean of their level."""
    total = np.bincount(levels, mass)
    return np.asarray(
        values - (np.bincount(levels, mass * values) / np.maximum(total, 1e-300))[levels]
    )


def steps_between(before: AnyArray, after: AnyArray) -> FloatArray:
    """By how many steps of their common grid times come after others, row by row.

    >>> steps_between(np.array([1, 1, 2]), np.array([2, 3, 4]))
    array([1., 2., 2.])
    """
    numbers = [times.dtype.kind in "iuf" for times in (before, after)]
    if numbers[0] != numbers[1] or (not all(numbers) and before.dtype.kind != after.dtype.kind):
        raise InputError(
            f"cutoff and time must be of the same type; time is {after.dtype} (such as "
            f"{after[0]}), cutoff is {before.dtype} (such as {before[0]})"
        )
    if early := np.flatnonzero(before > after).tolist():
        got, of = (str(times[early[0]]).removesuffix(".0") for times in (before, after))
        raise InputError(
            f"cutoff must not be after time; got {got} for a row of {of} (first at row "
            f"{early[0]}, {len(early)} in total)"
        )
    places = slots(np.concatenate([before, after]))
    return np.asarray(places[len(before) :] - places[: len(before)], dtype=np.float64)


def slots(times: AnyArray) -> IntArray:
    """The number of each time on the grid of their common step; ranks where there is none.

    >>> slots(np.array([3.0, 1.5, 6.0, 3.0]))
    array([1, 0, 3, 1])
    >>> slots(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]"))
    array([0, 1, 2])
    """
    distinct, rank = np.unique(times, return_inverse=True)
    ranks: IntArray = np.asarray(rank, dtype=np.int64)
    if len(distinct) < 2 or distinct.dtype.kind not in "iufM":
        return ranks
    steps = np.diff(distinct)
    if distinct.dtype.kind == "M":
        months = distinct.astype("datetime64[M]")
        month_long = np.diff(distinct.astype("datetime64[D]")) >= _SHORTEST_MONTH
        if (months[1:] != months[:-1]).all() and month_long.all():
            distinct, steps = months, np.diff(months)  # which are of 28 to 31 days
    if distinct.dtype.kind == "f":
        counts = steps / steps.min()
        near = np.abs(counts - np.round(counts)).max() < _MAX_SHARE_OFF_GRID
        if not near or not counts.sum() < _MAX_TIMES_ON_GRID * len(distinct):
            return ranks
        gaps = np.round(counts).astype(np.int64)
    else:
        units = steps.astype(np.int64)
        gaps = units // np.gcd.reduce(units)
    return np.append(0, np.cumsum(gaps))[rank]
