"""What predictions would have to be for y to agree: those of other rows, a logarithm, a multiple.

One list of transformations, one test. Each is learnt on every other row and judged on the rest,
where it must score better than the predictions as they stand, both after their own best shift and
stretch; so a bias or a spread that is off is none. It must be better than all other kinds, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.labels import Categories
from howsure.engine.autocorrelation import mid_ranks
from howsure.verdict.copies import OTHERS, RowFault

# 30 rows to learn from and 30 to judge by.
FEWEST_ROWS = 60
# Days of a quarter, hours of four days; each lag takes one pass, and each that is tried adds to
# chance.
MOST_LAGS = 100
# 20 labels are 190 pairs, each of which is tried.
MOST_LABELS = 20
# exp(−.1) = .9; less is not worth a word about columns, however sure it is.
LEAST_GAIN = 0.1
"""Nats a row that a transformation gains at least: a tenth off the size of errors."""
# Normal chance 3 in 100,000: with 200 lags that are tried, .6 % at most. Learning on other rows
# makes it less.
PROVEN = 4.0
"""Standard errors of a gain beside predictions as they stand."""
# Chosen by hand; not tuned. Higher, a true one is more often left unnamed beside a similar one.
APART = 2.0
"""The same beside other transformations."""
# .32 is right. Below .2 spreads are too wide, and above .45 errors are unlike what is stated.
RANGE_LARGER = (0.2, 0.45)
"""Share of errors larger than what covers 68 %, within which there is nothing to explain."""

# With one row's y in another's prediction few errors at all remain.
MIN_SHARE_LARGER = 0.05
"""The same, below which predictions are made of the y of another row."""


@frozen(kw_only=True)
class PredictedRows:
    """y beside its prediction, in the order of the file where `ordered`."""

    y: FloatArray
    centre: FloatArray
    spread: FloatArray  # half of what covers 68 %; 1 where it is not stated
    stated: bool
    ordered: bool
    timed: IntArray | None  # places of the rows, series by series in the order of time
    series: IntArray
    groups: Mapping[str, Categories]
    tau: float = 1.0  # how many rows tell as much as one


@frozen
class Transformed:
    """Predictions as they would be; NaN in rows that have none then, or that do not change."""

    name: str
    facts: Mapping[str, Any]
    centre: FloatArray
    spread: FloatArray
    near: tuple[FloatArray, ...] = ()  # centres of places next to these, which must fit less


def find_transformation(rows: PredictedRows) -> RowFault | None:
    """The transformation that makes predictions agree with y; None where none is proven."""
    if len(rows.y) < FEWEST_ROWS or np.ptp(rows.y) == 0 or np.ptp(rows.centre) == 0:
        return None
    teach = np.arange(len(rows.y)) % 2 == 0
    fits = [each for each in _transformed(rows, teach) if _explains(rows, each)]
    if not fits:
        return None
    gains = [_gain(rows, fit.centre, fit.spread, teach) for fit in fits]
    best = int(np.argmax([np.nansum(gain[teach]) for gain in gains]))
    chosen, gain = fits[best], gains[best]
    others = [
        np.nan_to_num(other)
        for each, other in zip(fits, gains, strict=True)
        if each.name != chosen.name
    ]
    others += [_gain(rows, centre, chosen.spread, teach) for centre in chosen.near]
    changed = np.isfinite(gain)
    proof = gain[~teach & changed]
    if not _above(proof, rows.tau, PROVEN) or proof.mean() < LEAST_GAIN:
        return None
    if not all(_above((gain - other)[~teach], rows.tau, APART) for other in others):
        return None
    part = chosen.name == "exchanged"
    return RowFault(
        name=chosen.name,
        rows=float(changed.sum()) if part else float(len(gain)),
        share=float(changed.mean()) if part else 1.0,
        bad=chosen.name == "log",
        explains={} if chosen.name == "multiple" else {OTHERS: math.inf},
        facts=chosen.facts,
    )


def _explains(rows: PredictedRows, each: Transformed) -> bool:
    """Whether errors have not their stated size as predictions stand, and then have no more.

    Of bare points nothing tells a multiple or a logarithm from predictions that only scatter.
    """
    if not rows.stated:
        return each.name in ("order", "exchanged")
    inside = np.isfinite(each.centre)
    before, after = (
        float((np.abs(rows.y - centre) > spread)[inside].mean())
        for centre, spread in ((rows.centre, rows.spread), (each.centre, each.spread))
    )
    least = MIN_SHARE_LARGER if each.name == "order" else 0.0
    return not RANGE_LARGER[0] <= before <= RANGE_LARGER[1] and least <= after <= RANGE_LARGER[1]


def _gain(
    rows: PredictedRows, centre: FloatArray, spread: FloatArray, teach: BoolArray
) -> FloatArray:
    """By how much the score of each row falls, NaN in rows without."""
    inside = np.isfinite(centre) & np.isfinite(spread)
    gain = np.full(len(rows.y), np.nan)
    learns = teach[inside]
    if learns.sum() < 2:
        return gain
    before, after = (
        _scores((rows.y - middle)[inside], size[inside], learns)
        for middle, size in ((rows.centre, rows.spread), (centre, spread))
    )
    gain[inside] = before - after
    return gain


def _scores(error: FloatArray, spread: FloatArray, learns: BoolArray) -> FloatArray:
    """Minus the log density of a Laplace law, after the best shift and stretch."""
    sizes = error / spread
    sizes = np.abs(sizes - np.median(sizes[learns]))
    mean = max(float(sizes[learns].mean()), 1e-12)
    return np.asarray(np.log(spread * mean) + sizes / mean)


def _above(values: FloatArray, tau: float, errors: float) -> bool:
    """Whether the mean of what is known is so many standard errors above 0."""
    known = values[np.isfinite(values)]
    return len(known) > 1 and bool(
        known.mean() * math.sqrt(len(known) / tau) > errors * known.std(ddof=1)
    )


# ---- what is tried -------------------------------------------------------------------------------


def _transformed(rows: PredictedRows, teach: BoolArray) -> Iterator[Transformed]:
    yield from _in_other_orders(rows, teach)
    yield from _exchanged(rows, teach)
    yield from _in_logarithms(rows)
    y, centre = rows.y[teach], rows.centre[teach]
    large = np.abs(centre) > np.median(np.abs(centre))
    factor = float(np.median(y[large] / centre[large])) if large.any() else 0.0
    if factor > 0:
        told = float(f"{factor:.3g}")
        yield Transformed("multiple", {"factor": told}, told * rows.centre, told * rows.spread)


def _in_other_orders(rows: PredictedRows, teach: BoolArray) -> Iterator[Transformed]:
    """Predictions of rows before or after, or turned round, in the order of the file or of time.

    Not where y rises with predictions as it should, as with those made of the value before.
    """
    slope, error = slope_of(rows.centre, rows.y)
    sure = 2.0 if rows.stated else 3.0
    if abs(slope - 1.0) <= sure * error * math.sqrt(rows.tau):
        return
    n = len(rows.y)
    here = np.arange(n)
    orders = [(here, np.zeros(n, dtype=np.int64), "")] if rows.ordered else []
    if rows.timed is not None:
        how = "series" if np.ptp(rows.series) else "time"
        same = np.array_equal(rows.timed, here)
        orders = [*([] if same else orders), (rows.timed, rows.series[rows.timed], how)]
    y, centre = mid_ranks(rows.y), mid_ranks(rows.centre)

    def correlate(source: IntArray, only: BoolArray | bool = True) -> float:
        there = (source >= 0) & only
        if there.sum() < n // 4:
            return -1.0
        with np.errstate(invalid="ignore", divide="ignore"):  # of equal values
            return float(np.nan_to_num(np.corrcoef(y[there], centre[source[there]])[0, 1]))

    for order, series, how in orders:
        move = partial(_moved, order=order, series=series)
        most = min(MOST_LAGS, n // 4)
        sources = {lag: move(lag) for lag in range(-most, most + 1) if lag}
        if rows.ordered and np.array_equal(order, here):
            sources[0] = here[::-1]
        lag = max(sources, key=lambda shift: correlate(sources[shift], teach))
        source = sources[lag]
        near = [move(lag + by) if lag else np.roll(here[::-1], by) for by in (-1, 1)]
        centres = [
            np.where(rank >= 0, rows.centre[rank], np.nan)
            for rank in (source, *(rank for rank in near if not np.array_equal(rank, here)))
        ]
        now, there = correlate(here), correlate(source)
        moved, _ = slope_of(centres[0][source >= 0], rows.y[source >= 0])
        past = lag < 0 and (now > 0.3 or there > 0.99)  # points made of the y before, perhaps
        if not rows.stated and (past or there < 0.6):
            continue
        if abs(moved - 1.0) < abs(slope - 1.0):
            facts = {"lag": lag, "how": how, "here": now, "there": there}
            spread = np.where(source >= 0, rows.spread[source], np.nan)
            yield Transformed("order", facts, centres[0], spread, tuple(centres[1:]))


def _moved(lag: int, order: IntArray, series: IntArray) -> IntArray:
    """The row whose prediction each then has; -1 where there is none."""
    n = len(order)
    before = np.arange(n) - lag
    within = (before >= 0) & (before < n)
    within &= series[np.clip(before, 0, n - 1)] == series
    source = np.full(n, -1)
    source[order[within]] = order[before[within]]
    return source


def _exchanged(rows: PredictedRows, teach: BoolArray) -> Iterator[Transformed]:
    """Two groups with each other's level, or, of equal size, with each other's predictions."""
    for name, column in rows.groups.items():
        count = len(column.labels)
        if not 1 < count <= MOST_LABELS:
            continue
        size = np.bincount(column.codes, minlength=count)
        level = np.bincount(column.codes, rows.centre, minlength=count) / size
        seen = np.bincount(column.codes[teach], minlength=count)
        sums = np.bincount(column.codes[teach], (rows.y - rows.centre)[teach], minlength=count)
        error = sums / np.maximum(seen, 1)
        apart = level[None, :] - level[:, None]  # what the first gains by the level of the second
        saved = seen[:, None] * (np.abs(error)[:, None] - np.abs(error[:, None] - apart))
        saved = saved + saved.T
        first, second = np.unravel_index(int(np.argmax(saved)), saved.shape)
        if first == second:
            continue
        pair = [np.flatnonzero(column.codes == code) for code in (first, second)]
        facts = {"column": name, "pair": (column.labels[first], column.labels[second])}
        moved = np.full(len(rows.y), np.nan)
        for inside, gain in zip(pair, (apart[first, second], -apart[first, second]), strict=True):
            moved[inside] = rows.centre[inside] + gain
        yield Transformed("exchanged", facts, moved, rows.spread)
        if len(pair[0]) == len(pair[1]):
            source = np.full(len(rows.y), -1)
            source[np.concatenate(pair)] = np.concatenate(pair[::-1])
            centre, spread = (
                np.where(source >= 0, values[source], np.nan)
                for values in (rows.centre, rows.spread)
            )
            yield Transformed("exchanged", facts, centre, spread)


def _in_logarithms(rows: PredictedRows) -> Iterator[Transformed]:
    """Predictions whose logarithm y is, or that are the logarithm of y."""
    for base, size in (("natural", 1.0), ("decimal", math.log(10.0))):
        if (rows.centre > 0).all():
            spread = rows.spread / (rows.centre * size)
            facts = {"of": "predictions", "base": base}
            yield Transformed("log", facts, np.log(rows.centre) / size, spread)
        if (rows.y > 0).all() and np.abs(rows.centre).max() * size < 100.0:
            raised = np.exp(rows.centre * size)
            yield Transformed("log", {"of": "y", "base": base}, raised, rows.spread * raised * size)


def slope_of(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """The slope of y on x, and its error whatever the law of errors."""
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    return slope, float(np.sqrt(((x * (y - slope * x)) ** 2).sum()) / (x @ x))
