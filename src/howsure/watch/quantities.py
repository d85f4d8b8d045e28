"""What is watched of each row: numbers whose mean is 0 as long as the promise is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.metrics.view import View
from howsure.predictions import EvalSet
from howsure.stats.evidence import Bounds

COMPONENTS = ("bias", "spread", "skew", "tails")
"""Components of the PIT, in order."""
ALL = ""
"""The name of all rows among groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Numbers of rows, one line a quantity."""

    names: tuple[str, ...]
    values: FloatArray  # shape (quantities, n)
    bounds: tuple[Bounds, ...]


def watched(evalset: EvalSet, coverage: float, tolerance: float) -> Watched:
    """Whether y is covered, less the nominal coverage; and the components of the PIT.

    Their variances under the promise are c (1 − c) and 1.
    """
    view = View(evalset)
    names: list[str] = []
    rows: list[FloatArray] = []
    bounds: list[Bounds] = []
    if not math.isnan(coverage):
        try:
            rows.append(view.get("covered", coverage) - coverage)
        except UnanswerableError:
            pass
        else:
            names.append("coverage")
            bounds.append(
                Bounds(
                    variance=coverage * (1.0 - coverage),
                    lowest=-coverage,
                    highest=1.0 - coverage,
                    tolerance=tolerance,
                )
            )
    try:
        placed = view.get("placed")
        components = placed.polynomials(placed.place(0.0, 1.0))
    except UnanswerableError:
        components = np.empty((0, evalset.n))
    else:
        extremes = _extremes(placed.table)
        for name, values, (low, high) in zip(COMPONENTS, components, extremes, strict=False):
            names.append(name)
            rows.append(values)
            bounds.append(Bounds(variance=1.0, lowest=low, highest=high))
    if not names:
        raise InputError(
            "nothing can be watched: predictions must be distributions, samples, quantiles, or "
            "intervals whose nominal coverage is known"
        )
    values = np.array(rows, dtype=np.float64)
    return Watched(names=tuple(names), values=values, bounds=tuple(bounds))


def _extremes(table: FloatArray | None) -> list[tuple[float, float]]:
    """The least and the greatest value of each component."""
    if table is not None:
        return [(float(row.min()), float(row.max())) for row in table]
    # of Legendre polynomials on [0, 1]
    one, two, three, four = (math.sqrt(k) for k in (3.0, 5.0, 7.0, 9.0))
    return [(-one, one), (-two / 2.0, two), (-three, three), (-four * 3.0 / 7.0, four)]


def days_of(times: npt.NDArray[Any]) -> IntArray:
    """The number of each row's day: of dates since 1970, else the whole part."""
    if times.dtype.kind == "M":
        if np.isnat(times).any():
            raise InputError("time must not be missing")
        return np.asarray(times.astype("datetime64[D]"), dtype=np.int64)
    if times.dtype.kind in "iuf":
        return np.asarray(np.floor(times), dtype=np.int64)
    raise InputError(f"time must hold dates or numbers of days, got {times.dtype}")


def day_in_words(day: int, dated: bool) -> str:
    """A day for people."""
    return str(np.datetime64(day, "D")) if dated else f"day {day}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySums:
    """What the rows of one group add up to on one day."""

    day: int
    group: str
    n: float
    sums: FloatArray  # shape (quantities,)


def sums_by_day(evalset: EvalSet, days: IntArray, watched: Watched) -> Iterator[DaySums]:
    """Of all rows, and of each group of each column."""
    mass = np.ones(evalset.n) if evalset.multiplicities is None else evalset.multiplicities
    columns: Mapping[str, tuple[IntArray, list[str]]] = {
        ALL: (np.zeros(evalset.n, dtype=np.int64), [ALL]),
        **{
            name: (column.codes, [f"{name}={label}" for label in column.labels.tolist()])
            for name, column in evalset.groups.items()
        },
    }
    known, place = np.unique(days, return_inverse=True)
    for codes, labels in columns.values():
        cells = place * len(labels) + codes
        size = len(known) * len(labels)
        counts = np.bincount(cells, weights=mass, minlength=size)
        sums = np.array(
            [np.bincount(cells, weights=mass * row, minlength=size) for row in watched.values]
        )
        for cell in np.flatnonzero(counts).tolist():
            yield DaySums(
                day=int(known[cell // len(labels)]),
                group=labels[cell % len(labels)],
                n=float(counts[cell]),
                sums=sums[:, cell],
            )
