"""Rows that depend become units: batches of consecutive rows in time take the place of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from howsure.core.arrays import FloatArray, IntArray, row_blocks
from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.labels import Categories
from howsure.metrics.calibration.components import legendre
from howsure.metrics.serial import (
    Dependence,
    Kind,
    batches_for,
    batches_of,
    file_dependence,
    in_time_order,
    is_sorted,
    serial_dependence,
    stretches,
)
from howsure.metrics.view import View
from howsure.predictions import EvalSet
from howsure.verdict.copies import copies

Known = Dependence | str
"""How the rows of a model go together, or the reason why that is not known."""


def follow(evalsets: Sequence[EvalSet], order: IntArray) -> tuple[list[EvalSet], tuple[Known, ...]]:
    """The sets in the order of their content; copies of a row are a cluster, and so are batches of
    time where rows depend.
    """
    sets = [held.take(order) for held in evalsets]
    alone = sets[0].cluster is None and sets[0].share == 1.0  # a sample has not all copies
    found = copies(sets) if alone else None
    if found is not None:
        sets = [replace(held, cluster=found.clusters) for held in sets]
    first = sets[0]
    if first.time is None and first.cluster is None:
        return sets, tuple(_known(held, partial(_in_file_order, held)) for held in evalsets)
    times = None if first.time is None else Categories.checked(first.time, "time").codes
    if first.cluster is None:
        assert times is not None
        units, ranked = times, True
        known = [_known(held, partial(_within, held, units, "time")) for held in sets]
    else:
        later = None if times is None else in_time_order(times, first.cluster.codes)
        units, ranked = (first.cluster.codes, False) if later is None else (later, True)
        known = [_known(held, partial(_of_clusters, held, units, ranked)) for held in sets]
    serial = [each for each in known if isinstance(each, Dependence) and each.by == "time"]
    serial = [each for each in serial if each.found]
    if not serial:
        return sets, tuple(known)
    wanted = batches_for(max(serial, key=lambda each: each.tau))
    codes = batches_of(units, _mass(first), wanted)
    batches = Categories(codes, np.arange(1, int(codes.max()) + 2))
    told = (
        replace(each, batches=len(batches.labels)) if isinstance(each, Dependence) else each
        for each in known
    )
    return [replace(held, cluster=batches) for held in sets], tuple(told)


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
        ranks = np.argsort(np.argsort(off, kind="stable"), kind="stable")
        side, size = legendre((ranks + 0.5) / len(ranks))[:2]
        return {"side": side, "size": size}
    try:
        missed = missed - (1.0 - view.get("claim", coverage))
        lower, upper = view.get("ends", coverage)
    except UnanswerableError:
        return {"size": missed}
    return {"side": (evalset.y > upper).astype(np.float64) - (evalset.y < lower), "size": missed}


def _known(held: EvalSet, ask: Callable[[], Known]) -> Known:
    return attempt(f"dependence of the rows of {held.model}", ask, str)


def _mass(held: EvalSet) -> FloatArray:
    return np.ones(held.n) if held.weights is None else held.weights.values


def _within(held: EvalSet, units: IntArray, by: Kind) -> Dependence:
    return serial_dependence(signals(View(held)), units, by, weights=held.weights)


def _of_clusters(held: EvalSet, units: IntArray, ranked: bool) -> Dependence:
    """Within clusters; and from one to the next, where they follow each other in time."""
    told = signals(View(held))
    if ranked:
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
    return serial_dependence(told, units, "clusters", weights=held.weights)


def _in_file_order(held: EvalSet) -> Known:
    """Strong dependence of neighbours in a file that no column has evidently sorted."""
    rows = stretches(held.n)
    if rows.shape[1] > 2 and not any(is_sorted(part[rows]) for part in _columns(held, rows.size)):
        looked = held if rows.size == held.n else held.take(rows.ravel())
        found = file_dependence(signals(View(looked)), rows.shape)
        if found is not None:
            return found
    return "neither times nor clusters were given"


def _columns(held: EvalSet, rows: int) -> Iterator[FloatArray]:
    """What is told of rows, some columns at a time, shape (n, columns)."""
    tables = [held.y, *([] if held.point is None else [held.point])]
    tables += [values for each in held.beliefs for values in each.numbers().values()]
    for table in (each.reshape(held.n, -1) for each in tables):
        yield from (table[:, some] for some in row_blocks(table.shape[1], rows))
