"""Rows that depend become units: times that follow each other, and batches of them to resample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.labels import Categories
from howsure.metrics.calibration.components import legendre
from howsure.metrics.serial import (
    Dependence,
    batches_for,
    batches_of,
    file_dependence,
    in_time_order,
    is_sorted,
    mid_ranks,
    serial_dependence,
    stretches,
)
from howsure.metrics.view import View
from howsure.predictions import EvalSet, Intervals
from howsure.stats.memory import HARDLY, Chronology, slots

Known = Dependence | str
"""How the rows of a model go together, or the reason why that is not known."""


def follow(evalsets: Sequence[EvalSet], order: IntArray) -> tuple[list[EvalSet], tuple[Known, ...]]:
    """The sets in the order of their content, with the units of their errors where rows depend."""
    sets = [held.take(order) for held in evalsets]
    first = sets[0]
    if first.time is None and first.cluster is None:
        return sets, tuple(_known(held, partial(_in_file_order, held)) for held in evalsets)
    times = None if first.time is None else Categories.checked(first.time, "time").codes
    if first.cluster is None:
        assert times is not None
        units, ranked = times, True
        grid = slots(np.asarray(first.time))
        known = [_known(held, partial(_within, held, grid)) for held in sets]
    else:
        later = None if times is None else in_time_order(times, first.cluster.codes)
        units, ranked = (first.cluster.codes, False) if later is None else (later, True)
        grid = units
        known = [_known(held, partial(_of_clusters, held, units, ranked)) for held in sets]
    serial = [each for each in known if isinstance(each, Dependence) and each.doubted]
    if not serial:
        return sets, tuple(known)
    longest = max(serial, key=lambda each: each.tau)
    sets = [replace(held, chronology=_chronology(held, grid, longest)) for held in sets]
    if not any(each.found for each in serial):
        return sets, tuple(known)
    wanted = batches_for(longest)
    codes = batches_of(units, _mass(first), wanted)
    batches = Categories(codes, np.arange(1, int(codes.max()) + 2))
    told = (
        replace(each, batches=len(batches.labels)) if isinstance(each, Dependence) else each
        for each in known
    )
    return [replace(held, cluster=batches) for held in sets], tuple(told)


def _chronology(held: EvalSet, units: IntArray, found: Dependence) -> Chronology:
    """The times of its rows, and what signals hits and misses hide."""
    known = signals_in_time(View(held))
    return Chronology(units, known.get("side"), known.get("size"), few=found.effective < HARDLY)


def batches_in_words(known: Sequence[Known]) -> str:
    """What the batches are, for people; empty where there are none."""
    count = next((each.batches for each in known if isinstance(each, Dependence)), 0)
    if count == 1:
        return "one: too few effective rows for batches of time"
    return f"{count} batches of consecutive rows in time" if count else ""


def signals(view: View) -> dict[str, FloatArray]:
    """What of each row is correlated with other rows: the side of its error, and the size."""
    try:
        found = view.get("placed")
        side, size = found.polynomials(found.place(0.0, 1.0))[:2]
    except (UnanswerableError, ValueError):  # no PIT, or one order alone
        pass
    else:
        return {"side": side, "size": size}
    evalset, coverage = view.evalset, view.headline
    try:
        missed = 1.0 - view.get("covered", coverage)
    except UnanswerableError:
        off = evalset.y - view.get("point")
        return dict(zip(("side", "size"), legendre(mid_ranks(off))[:2], strict=True))
    try:
        missed = missed - (1.0 - view.get("claim", coverage))
        lower, upper = view.get("ends", coverage)
    except UnanswerableError:
        return {"size": missed}
    return {"side": (evalset.y > upper).astype(np.float64) - (evalset.y < lower), "size": missed}


def signals_in_time(view: View) -> dict[str, FloatArray]:
    """The same where order is known: of bare intervals, how far y lies from their middle.

    Hits hardly vary, and hide their memory.
    """
    known, evalset = signals(view), view.evalset
    if any(not isinstance(each, Intervals) for each in evalset.beliefs):
        return known
    try:
        lower, upper = view.get("ends", view.headline)
    except UnanswerableError:
        return known
    half = (upper - lower) / 2.0
    if not (np.isfinite(half).all() and (half > 0).all()):
        return known
    off = (evalset.y - (lower + upper) / 2.0) / half
    folded = (1.0 + mid_ranks(np.abs(off))) / 2.0
    return {"side": legendre(mid_ranks(off))[0], "size": legendre(folded)[1]}


def _known(held: EvalSet, ask: Callable[[], Known]) -> Known:
    return attempt(f"dependence of the rows of {held.model}", ask, str)


def _mass(held: EvalSet) -> FloatArray:
    return np.ones(held.n) if held.weights is None else held.weights.values


def _within(held: EvalSet, units: IntArray) -> Dependence:
    return serial_dependence(signals_in_time(View(held)), units, "time", weights=held.weights)


def _of_clusters(held: EvalSet, units: IntArray, ranked: bool) -> Dependence:
    """Within clusters; and from one to the next, where they follow each other in time."""
    if ranked:
        told = signals_in_time(View(held))
        mass = _mass(held)
        sums = {
            name: np.bincount(
                units, weights=mass * (values - np.average(values, weights=mass))
            ).astype(np.float64)
            for name, values in told.items()
        }
        try:
            follows = serial_dependence(sums, np.arange(int(units.max()) + 1), "time").found
        except UnanswerableError:  # too few clusters
            follows = False
        if follows:
            return serial_dependence(told, units, "time", weights=held.weights)
    return serial_dependence(signals(View(held)), units, "clusters", weights=held.weights)


def _in_file_order(held: EvalSet) -> Known:
    """Strong dependence of neighbours in a file that no column has evidently sorted."""
    rows = stretches(held.n)
    columns = {"y": held.y, **({} if held.point is None else {"point": held.point})}
    for each in held.beliefs:
        columns |= {f"{each.kind} {name}": values for name, values in each.numbers().items()}
    if rows.shape[1] > 2 and not is_sorted(_taken(columns, rows)):
        found = file_dependence(signals(View(held.take(rows.ravel()))), rows.shape)
        if found is not None:
            return found
    return "neither times nor clusters were given"


def _taken(columns: Mapping[str, FloatArray], rows: IntArray) -> FloatArray:
    """Chosen rows of several columns side by side, shape (*rows.shape, columns)."""
    parts = [each.reshape(len(each), -1)[rows] for each in columns.values()]
    return np.concatenate(parts, axis=-1)
