"""Reliability diagrams: what a quantile, or a mean, would be if it were recalibrated.

Each forecast beside the best rising function of itself (CORP: Dimitriadis, Gneiting and Jordan
2021; of quantiles Gneiting and Resin 2023), in a band of what chance makes of right forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray, power_of_two
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level as in_per_cent
from howsure.core.records import Curve
from howsure.core.rng import row_keys, row_uniforms
from howsure.stats.bootstrap import subsample
from howsure.stats.estimate import quantile_statistic, weighted_mean
from howsure.stats.isotonic import Rising, fitted_together, isotonic_mean
from howsure.topics.decomposition.parts import elementary_means, elementary_quantiles

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

SHOWN = {"low": 0.1, "median": 0.5, "high": 0.9}
"""Levels that are drawn; of a table of quantiles the nearest that it has."""
PART = 1_500
"""Rows whose score is taken apart, unless more are asked for."""
DRAWN = 20_000
"""Rows for which y is drawn from the forecasts."""
_DRAWS = 39  # of y from the forecasts
_BAND = 0.9
_PLACES = 33, 49
"""Places along a diagram: on every page, and where a part of the score is asked for by name."""
OUTSIDE = "quantiles give no distribution beyond their outermost levels"
_ALONE = "a point forecast alone gives no distribution of y"


def some_rows(view: View, most: int) -> View:
    """At most so many rows by their content: rows of the same y whatever the forecasts are."""
    held = view.evalset
    if held.n <= most:
        return view
    numbers = (each for belief in held.beliefs for each in belief.numbers().values())
    order = np.argsort(row_keys(held.y, *numbers))  # in which rows of one y are told apart
    keys = np.empty(held.n, dtype=np.uint64)
    keys[order] = row_keys(held.y[order])
    return view.of(np.sort(subsample(keys, most, seed=view.seed, name="part of score")))


def right_outcomes(view: View, draws: int) -> Iterator[View]:
    """The same forecasts where each y is drawn from its own.

    A y outside a table of quantiles by an unknown amount is infinite.
    """
    from howsure.engine.view import KIND_PRIORITY  # which reads the catalogue

    held = view.evalset
    if held.units is not None:
        raise UnanswerableError("rows depend, and each y would be drawn by itself")
    if copies(view) > DRAWN:
        raise UnanswerableError(f"y is drawn for at most {DRAWN:,} rows")
    if held.weights is not None and held.weights.kind == "frequency":
        rows = np.repeat(np.arange(held.n), held.weights.values.astype(np.int64))
        held = replace(held.take(rows), weights=None)
    drawers = [kind for kind in KIND_PRIORITY if kind.answers("redrawn")]
    belief = next((b for kind in drawers for b in held.beliefs if isinstance(b, kind)), None)
    if belief is None:
        raise UnanswerableError(_ALONE)
    whole = view.on(held)
    others = tuple(each for each in held.beliefs if each is not belief)
    given = {}
    for name in () if belief.draws else ("knowledge", "shown", "mean_point"):
        try:
            given[name] = whole.get(name)
        except UnanswerableError:
            continue
    keys = row_keys(held.y, *(each for b in held.beliefs for each in b.numbers().values()))
    for number in range(draws):
        y, redrawn = belief.redrawn(held.y, row_uniforms(view.seed, f"outcome {number}", keys))
        yield view.on(replace(held, y=y, beliefs=(redrawn, *others)), given=given)


def copies(view: View) -> int:
    """How many rows there are where each of a frequency weight stands for itself."""
    weights = view.evalset.weights
    return int(weights.total) if weights and weights.kind == "frequency" else view.evalset.n


def shown(view: View, _: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles to draw, and their levels."""
    beliefs = view.evalset.beliefs
    table = next((b for b in beliefs if b.own_levels and b.answers("quantile")), None)
    wanted = list(SHOWN.values())
    if table is not None:
        levels = np.array(table.own_levels)
        wanted = levels[np.unique([np.argmin(np.abs(levels - each)) for each in wanted])].tolist()
        view.told("shown", table.kind)
        return table.quantile(wanted), np.array(wanted)
    found: FloatArray = view.ask("shown", "quantile", wanted)
    return found, np.array(wanted)


def reliability_drawn(evaluation: Evaluation, _: float) -> list[Curve]:
    """Forecasts beside their recalibrated selves, in bands of right forecasts.

    As bands are dear and many, only where a part of the score is asked for by name. A recalibrated
    quantile is the y of a row, so not where single rows are not told.
    """
    if not asked(evaluation.view) or evaluation.evalset.fewest > 1:
        return []
    part: View = evaluation.view.get("part_of_score")
    held = part.evalset
    columns, names, levels = _columns(part)
    if not columns:
        return []
    steps = np.linspace(0.0, 1.0, _PLACES[True])
    grids = [np.unique(np.quantile(column, steps, method="nearest")) for column in columns]
    views, why = [part], ""
    try:
        views += right_outcomes(part, _DRAWS)
    except UnanswerableError as error:
        why = f"No band: {error}."
    of_rows = "" if held.n == evaluation.evalset.n else f"Drawn of {held.n:,} rows."
    drawn = _along(grids, views, levels)
    curves = []
    for name, level, grid, (own, *others) in zip(names, levels, grids, drawn, strict=True):
        ends, no_band = _band(others) if others else (None, why)
        curves.append(
            Curve(
                name=name,
                x=grid,
                y=own,
                lower=None if ends is None else ends[0],
                upper=None if ends is None else ends[1],
                reference=grid,
                x_label="" if math.isnan(level) else f"Predicted {in_per_cent(level)} quantile",
                band=f"{in_per_cent(_BAND)} of right forecasts, at each place",
                model=held.model,
                notes=f"{of_rows} {no_band}".strip(),
            )
        )
    return curves


def _band(drawn: list[FloatArray]) -> tuple[FloatArray | None, str]:
    """Ends of the band of right forecasts; where they have none, the reason."""
    values = np.array(drawn)
    if not np.isfinite(values).all():
        return None, f"No band: {OUTSIDE}."
    tails = (0.5 - _BAND / 2.0, 0.5 + _BAND / 2.0)
    return np.asarray(np.quantile(values, tails, axis=0, method="nearest")), ""


def _columns(view: View) -> tuple[list[FloatArray], list[str], list[float]]:
    """Forecasts, the names of their curves, and their levels; that of a mean is NaN."""
    columns: list[FloatArray] = []
    names: list[str] = []
    levels: list[float] = []
    try:
        quantiles, known = view.get("shown")
        columns, levels = [*quantiles.T], known.tolist()
        names = [f"reliability_{_nearest(known, level)}" for level in levels]
    except UnanswerableError:
        pass  # a record of the same question tells the reason
    try:
        mean = view.get("mean_point")
    except UnanswerableError:
        return columns, names, levels
    return [*columns, mean], [*names, "reliability_mean"], [*levels, math.nan]


def asked(view: View) -> bool:
    """Whether a part of the score is asked for by name."""
    return any(name.endswith("miscalibration") for name in view.slow)


def _nearest(levels: FloatArray, level: float) -> str:
    """The first of the levels to draw for which this one stands."""
    nearest = {name: levels[np.argmin(np.abs(levels - wanted))] for name, wanted in SHOWN.items()}
    return next(name for name, each in nearest.items() if each == level)


@np.errstate(invalid="ignore")
def _along(
    grids: list[FloatArray], views: list[View], levels: list[float]
) -> list[list[FloatArray]]:
    """Of each forecast, and of each view, recalibrated values along a grid of forecasts."""
    problems: list[Rising] = []
    sorted_by: list[tuple[int, FloatArray, FloatArray]] = []
    found: list[list[FloatArray]] = [[] for _ in grids]
    for view in views:
        y, w = view.evalset.y, view.evalset.multiplicities
        mass = np.ones(len(y)) if w is None else w
        values, rank = np.unique(y, return_inverse=True)
        for place, (x, level) in enumerate(zip(_columns(view)[0], levels, strict=True)):
            if math.isnan(level):
                known, first = np.unique(x, return_index=True)
                fitted = isotonic_mean(x, y, w)[first]
                found[place].append(np.interp(grids[place], known, fitted))
                continue
            order = np.argsort(x, kind="stable")
            problems.append(Rising.of(x[order], rank[order], level, mass[order]))
            sorted_by.append((place, x[order], values))
    if problems:
        fits = fitted_together(problems)
        for (place, x, values), problem, fit in zip(sorted_by, problems, fits, strict=True):
            ends = problem.ends
            found[place].append(np.interp(grids[place], x[ends], values[fit[ends]]))
    return found


def _thresholds(y: FloatArray, fewest: int, places: int) -> FloatArray:
    """Quantiles of y; where single rows are not told, numbers that are no row's own."""
    if fewest == 1:
        return np.unique(np.quantile(y, np.linspace(0.0, 1.0, places)))
    edge = min(fewest / len(y), 0.5)
    ends = np.quantile(y, [edge, 1.0 - edge])
    size = power_of_two(y)
    spread = size * float((y / size).std())
    if not spread > 0.0:
        return np.unique(ends)
    unit = 10.0 ** math.floor(math.log10(max(spread, 1e-290) / 10.0))
    low, high = (unit * np.round(ends / unit)).tolist()
    return np.unique(np.linspace(low, high, places))


def murphy_drawn(evaluation: Evaluation, _: float) -> list[Curve]:
    """Mean elementary scores at thresholds, beside those of the distribution of y."""
    view, held = evaluation.view, evaluation.evalset
    y, w = held.y, held.multiplicities
    at = _thresholds(y, held.fewest, _PLACES[asked(view)])
    draw = partial(
        Curve, x=at, x_label="Threshold", y_label="Mean elementary score", model=held.model
    )
    curves = []
    try:
        quantiles, levels = view.get("shown")
    except UnanswerableError:
        pass  # a record of the same question tells the reason
    else:
        for column in np.flatnonzero(np.isclose(levels, 0.5)):  # none of a table without a median
            of = partial(elementary_quantiles, y, thresholds=at, level=0.5, weights=w)
            reference = of(np.full(held.n, quantile_statistic(y, 0.5, weights=w).value))
            told = f"Of the {in_per_cent(0.5)} quantile."
            curves.append(
                draw(name="murphy", y=of(quantiles[:, column]), reference=reference, notes=told)
            )
    if curves and not asked(view):  # so that a page stays small
        return curves
    try:
        mean = view.get("mean_point")
    except UnanswerableError:
        return curves
    of_mean = partial(elementary_means, y, thresholds=at, weights=w)
    reference = of_mean(np.full(held.n, weighted_mean(y, w)))
    return [*curves, draw(name="murphy_mean", y=of_mean(mean), reference=reference)]
