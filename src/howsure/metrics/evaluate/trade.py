"""The characteristics curve of an evaluation set: its bands, its points, its perfect model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve, Table
from howsure.core.rng import child
from howsure.metrics.characteristic import CharacteristicCurve, OperatingPoint, characteristic_curve
from howsure.metrics.characteristic.bands import Bands, YAxis
from howsure.metrics.characteristic.cost import Cost
from howsure.metrics.characteristic.statistics import (
    PerfectGains,
    perfect_gains,
    permuted_errors,
)
from howsure.predictions import Distribution, Intervals

if TYPE_CHECKING:
    from howsure.metrics.evaluate.view import View

MOST_ROWS = 20_000
REPLICATES = 100


def characteristic_view(view: View) -> CharacteristicCurve:
    """The bandwidth–miss-rate curve of the intervals nearest to 90 % about the point forecast."""
    evalset = view.evalset
    lower, upper = _ends(view)
    point = view.get("point")
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise UnanswerableError("some intervals are unbounded, so their bands cannot be scaled")
    if not (lower < upper).any():
        raise UnanswerableError("every interval has width 0, so none can be scaled")
    outside = ((point < lower) | (point > upper)).any()
    weights = evalset.weights
    return characteristic_curve(
        evalset.y,
        point,
        lower,
        upper,
        weights=None if weights is None else weights.values,
        weights_kind="frequency" if weights is None else weights.kind,
        outside="recentre" if outside else "error",
    )


def _ends(view: View) -> tuple[FloatArray, FloatArray]:
    for belief in view.evalset.beliefs:
        if isinstance(belief, Intervals):
            nearest = int(np.argmin(np.abs(np.array(belief.coverages or (0.9,)) - 0.9)))
            return belief.lower[:, nearest], belief.upper[:, nearest]
    reasons = []
    for coverage in (0.9, 0.8, 0.5):
        try:
            return view.get("lower", coverage), view.get("upper", coverage)
        except UnanswerableError as error:
            reasons.append(str(error))
    raise UnanswerableError(reasons[0])


def perfect_view(view: View) -> PerfectGains:
    """Gains of a perfectly specified model with these widths, on at most 20,000 rows.

    A distribution draws its own y; bare intervals swap the signed critical scales of rows.
    """
    curve: CharacteristicCurve = view.get("characteristic")
    if view.evalset.weights is not None and view.evalset.weights.kind == "importance":
        raise UnanswerableError("a perfect model is not simulated for importance weights")
    if curve.uncaptured:
        raise UnanswerableError("some rows are captured at no scale")
    rows = _rows(view, curve.bands)
    bands = replace(curve.bands.take(rows), weights=None)
    rng = child(view.seed, "perfect gains")
    distribution = next((b for b in view.evalset.beliefs if isinstance(b, Distribution)), None)
    given = any(isinstance(belief, Intervals) for belief in view.evalset.beliefs)
    if distribution is None or given:
        return perfect_gains(bands, permuted_errors(bands, rng, REPLICATES), "permuted scales")
    point = (bands.y - bands.error)[:, None]
    errors = (distribution.take(rows).sample(rng, REPLICATES) - point).T
    return perfect_gains(bands, errors, "draws from the belief")


def _rows(view: View, bands: Bands) -> IntArray:
    """Rows by their frequency, in the order of their content; past 20,000 every so manieth."""
    order = np.argsort(bands.y)
    if not np.diff(bands.y[order]).all():
        order = np.lexsort((bands.above, bands.below, bands.error, bands.y))
    weights = view.evalset.weights
    upto = np.cumsum(np.ones(len(order)) if weights is None else weights.values[order])
    size = int(min(upto[-1], MOST_ROWS))
    places = (np.arange(size) + 0.5) * (upto[-1] / size)
    return np.asarray(order[np.searchsorted(upto, places, side="right")])


def characteristic_curves(view: View, coverages: Sequence[float] = ()) -> list[Curve]:
    """The curve against misses and against the deficit, the constant band's, the isocost line.

    Parameters
    ----------
    view : View
        What happened and what was believed.
    coverages : sequence of float
        Nominal coverages; the one nearest to 0.9 prices the interval score of the isocost line.

    Returns
    -------
    list of Curve
        Thinned for drawing: ``characteristic`` and ``characteristic_constant`` (miss rate),
        ``characteristic_deficit``, ``characteristic_deficit_constant`` and
        ``characteristic_isocost`` (deficit), all against the bandwidth.
    """
    curve: CharacteristicCurve = view.get("characteristic")
    constant, model = curve.constant(), view.evalset.model
    made = []
    for name, y_axis in _DRAWN_AGAINST.items():
        for ending, each in (("", curve), ("_constant", constant)):
            on = each.on(x="bandwidth", y_axis=y_axis)
            drawn = on.drawn(300, model=model, reference=False)
            made.append(replace(drawn, name=name + ending, notes=on.area().reason))
    return [*made, *_isocost(curve, coverages, model)]


_DRAWN_AGAINST: dict[str, YAxis] = {
    "characteristic": "miss_rate",
    "characteristic_deficit": "deficit",
}


def _isocost(curve: CharacteristicCurve, coverages: Sequence[float], model: str) -> list[Curve]:
    """The line along which the interval score is the least that scaling can reach."""
    known = [coverage for coverage in coverages if not math.isnan(coverage)]
    coverage = min(known, key=lambda each: abs(each - 0.9), default=0.9)
    cost = _interval_cost(curve, coverage)
    if not (math.isfinite(cost.cost) and cost.cost > 0):
        return []
    ends = np.array([0.0, cost.cost / cost.x_weight])
    told = (
        f"Along the line the interval score at {coverage:.4g} is {cost.cost:.4g}, the least that "
        f"scaling can reach (k = {cost.knob:.3g}); as predicted it is {cost.cost_now:.4g}."
    )
    line = np.maximum(cost.isocost(ends), 0.0)
    return [Curve(name="characteristic_isocost", x=ends, y=line, model=model, notes=told)]


def _interval_cost(curve: CharacteristicCurve, coverage: float) -> Cost:
    """The cost that is the mean interval score: 2·bandwidth + (2/α)·deficit."""
    on = curve.on(x="bandwidth", y_axis="deficit")
    return on.cost(x_weight=2.0, y_weight=2.0 / (1.0 - coverage))


def operating_points(view: View, coverages: Sequence[float]) -> Table:
    """Where the model stands, where it should, and where its interval score would be least.

    Returns
    -------
    Table
        Named ``characteristic_points``: point, k, bandwidth, miss_rate, excess, deficit, note.

    Raises
    ------
    UnanswerableError
        If there is no curve.
    """
    curve: CharacteristicCurve = view.get("characteristic")
    points: list[tuple[str, OperatingPoint, str]] = [("as predicted", curve.at(), "")]
    for coverage in coverages:
        if math.isnan(coverage):
            continue
        wanted = curve.at(miss_rate=1.0 - coverage)
        promise = wanted.conformal
        note = promise.reason or (
            f"a fresh row is covered with probability {promise.coverage:.4f} on average over "
            f"such tables, and at least {promise.coverage_lower:.4f} in {promise.confidence:.0%}"
        )
        points.append((f"miss rate {1.0 - coverage:.3g}", wanted, note))
        cost = _interval_cost(curve, coverage)
        if math.isfinite(cost.knob):
            note = f"interval score {cost.cost:.4g}, now {cost.cost_now:.4g}"
            name = f"least interval score at {coverage:.3g}"
            points.append((name, curve.at(knob=cost.knob), note))
    held = [point for _, point, _ in points]
    columns = {
        "point": np.array([name for name, _, _ in points], dtype=object),
        "k": np.array([point.knob for point in held]),
        "bandwidth": np.array([point.bandwidth for point in held]),
        "miss_rate": np.array([point.miss_rate for point in held]),
        "excess": np.array([point.excess for point in held]),
        "deficit": np.array([point.deficit for point in held]),
        "note": np.array([note for _, _, note in points], dtype=object),
    }
    return Table(
        name="characteristic_points",
        columns=columns,
        model=view.evalset.model,
        notes="k multiplies each row's bands about its point forecast; 1 leaves them as they are.",
    )
