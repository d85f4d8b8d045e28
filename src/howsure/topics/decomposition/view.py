"""The parts of a score of an evaluation set, and their figures: reliability and Murphy diagrams.

A reliability diagram shows each forecast beside the best rising function of itself (CORP:
Dimitriadis, Gneiting and Jordan 2021; of quantiles Gneiting and Resin 2023), in a band of what
chance makes of right forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray, power_of_two
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level as in_per_cent
from howsure.core.records import Axis, Curve, Direction, Layout, ResultTable, TableLayout
from howsure.core.rng import row_keys, row_uniforms
from howsure.engine.metric import SLOW_ROWS, Array, Laws, Metric, Question, Topic, stated
from howsure.stats.bootstrap import subsample
from howsure.stats.estimate import Estimate, quantile_statistic, weighted_mean
from howsure.stats.isotonic import Rising, fitted_together, isotonic_mean
from howsure.topics.calibration.components import count_rows
from howsure.topics.decomposition.parts import (
    Decomposition,
    ScoreParts,
    elementary_means,
    elementary_quantiles,
    interpolate_rising,
    mean_parts,
    quantile_parts,
    skill_by_group,
)

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

# The median, and the ends of an 80 % interval, which any table of quantiles is near.
SHOWN_LEVELS = {"low": 0.1, "median": 0.5, "high": 0.9}
"""Levels that are drawn; of a table of quantiles the nearest that it has."""
# A recalibration is fitted for each of many levels and each fold. By hand; not tuned: more rows
# narrow the intervals and take more time; by name, 100,000 are used.
ROWS_OF_PART = 1_500
"""Rows whose score is taken apart, unless more are asked for."""
# Nine draws of them, the fewest there are, read nearly the 200,000 rows of all draws.
MAX_ROWS_DRAWN = 20_000
"""Rows for which y is drawn from the forecasts."""
# 39 draws: the least number whose extremes are a 95 % range; the band takes 90 % of them.
_DRAWS_OF_BAND = 39
# With few draws 5 and 95 % are steadier than 2.5 and 97.5 %.
_CONFIDENCE_OF_BAND = 0.9
# Places along a diagram: on every page, and where a part of the score is asked for by name. The
# curve between is a straight line; pages grow with them.
_PLACES_OF_CURVE = 33, 49
OUTSIDE = "quantiles give no distribution beyond their outermost levels"
_ALONE = "a point forecast alone gives no distribution of y"


def some_rows(view: View, most: int) -> View:
    """At most so many rows by their content: rows of the same y whatever the forecasts are."""
    evalset = view.evalset
    if evalset.n <= most:
        return view
    numbers = (
        numbers_of_row
        for prediction in evalset.predictions
        for numbers_of_row in prediction.numbers().values()
    )
    order = np.argsort(row_keys(evalset.y, *numbers))  # in which rows of one y are told apart
    keys = np.empty(evalset.n, dtype=np.uint64)
    keys[order] = row_keys(evalset.y[order])
    return view.of(np.sort(subsample(keys, most, seed=view.seed, name="part of score")))


def right_outcomes(view: View, draws: int) -> Iterator[View]:
    """The same forecasts where each y is drawn from its own.

    A y outside a table of quantiles by an unknown amount is infinite.
    """
    from howsure.engine.view import KIND_PRIORITY  # which reads the catalogue

    evalset = view.evalset
    if evalset.units is not None:
        raise UnanswerableError("rows are dependent, and each y would be simulated independently")
    if copies(view) > MAX_ROWS_DRAWN:
        raise UnanswerableError(f"y is simulated for at most {MAX_ROWS_DRAWN:,} rows")
    if evalset.weights is not None and evalset.weights.kind == "frequency":
        rows = np.repeat(np.arange(evalset.n), evalset.weights.values.astype(np.int64))
        evalset = replace(evalset.take(rows), weights=None)
    drawers = [kind for kind in KIND_PRIORITY if kind.answers("redrawn")]
    prediction = next(
        (b for kind in drawers for b in evalset.predictions if isinstance(b, kind)), None
    )
    if prediction is None:
        raise UnanswerableError(_ALONE)
    undrawn = view.on(evalset)
    other_predictions = tuple(column for column in evalset.predictions if column is not prediction)
    as_they_are = {}
    for name in () if prediction.draws else ("knowledge", "shown", "mean_point"):
        try:
            as_they_are[name] = undrawn.get(name)
        except UnanswerableError:
            continue
    keys = row_keys(
        evalset.y, *(column for b in evalset.predictions for column in b.numbers().values())
    )
    for number in range(draws):
        y, redrawn = prediction.redrawn(
            evalset.y, row_uniforms(view.seed, f"outcome {number}", keys)
        )
        yield view.on(
            replace(evalset, y=y, predictions=(redrawn, *other_predictions)), given=as_they_are
        )


def copies(view: View) -> int:
    """How many rows there are where each of a frequency weight stands for itself."""
    weights = view.evalset.weights
    return int(weights.total) if weights and weights.kind == "frequency" else view.evalset.n


def shown(view: View, _: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles to draw, and their levels."""
    predictions = view.evalset.predictions
    table = next((b for b in predictions if b.own_levels and b.answers("quantile")), None)
    wanted = list(SHOWN_LEVELS.values())
    if table is not None:
        levels = np.array(table.own_levels)
        wanted = levels[
            np.unique([np.argmin(np.abs(levels - nearest_level)) for nearest_level in wanted])
        ].tolist()
        view.note_source("shown", table.kind)
        return table.quantile(wanted), np.array(wanted)
    quantiles: FloatArray = view.ask("shown", "quantile", wanted)
    return quantiles, np.array(wanted)


def reliability_drawn(evaluation: Evaluation, _: float) -> list[Curve]:
    """Forecasts beside their recalibrated selves, in bands of right forecasts.

    As bands are dear and many, only where a part of the score is asked for by name. A recalibrated
    quantile is the y of a row, so not where single rows are not told.
    """
    if not wants_parts(evaluation.view) or evaluation.evalset.fewest > 1:
        return []
    sampled: View = evaluation.view.get("part_of_score")
    evalset = sampled.evalset
    columns = _columns(sampled)
    if not columns:
        return []
    steps = np.linspace(0.0, 1.0, _PLACES_OF_CURVE[True])
    grids = [np.unique(np.quantile(column, steps, method="nearest")) for _, _, column in columns]
    views, why = [sampled], ""
    try:
        views += right_outcomes(sampled, _DRAWS_OF_BAND)
    except UnanswerableError as error:
        why = f"No band: {error}."
    of_rows = "" if evalset.n == evaluation.evalset.n else f"Based on {evalset.n:,} rows."
    drawn = _along(grids, views)
    curves = []
    for column, grid, (recalibrated, *right) in zip(columns, grids, drawn, strict=True):
        name, level, _forecasts = column
        ends, no_band = _band(right) if right else (None, why)
        curves.append(
            Curve(
                name=name,
                x=grid,
                y=recalibrated,
                lower=None if ends is None else ends[0],
                upper=None if ends is None else ends[1],
                reference=grid,
                x_label="" if math.isnan(level) else f"Predicted {in_per_cent(level)} quantile",
                band=f"{in_per_cent(_CONFIDENCE_OF_BAND)} of correct forecasts, pointwise",
                model=evalset.model,
                notes=f"{of_rows} {no_band}".strip(),
            )
        )
    return curves


def _band(drawn: list[FloatArray]) -> tuple[FloatArray | None, str]:
    """Ends of the band of right forecasts; where they have none, the reason."""
    values = np.array(drawn)
    if not np.isfinite(values).all():
        return None, f"No band: {OUTSIDE}."
    tails = (0.5 - _CONFIDENCE_OF_BAND / 2.0, 0.5 + _CONFIDENCE_OF_BAND / 2.0)
    return np.quantile(values, tails, axis=0, method="nearest"), ""


def _columns(view: View) -> list[tuple[str, float, FloatArray]]:
    """Of each forecast the name of its curve, its level (of a mean NaN), and its values."""
    columns: list[tuple[str, float, FloatArray]] = []
    try:
        quantiles, levels = view.get("shown")
        columns = [
            (f"reliability_{_nearest(levels, level)}", level, column)
            for level, column in zip(levels.tolist(), quantiles.T, strict=True)
        ]
    except UnanswerableError:
        pass  # a record of the same question tells the reason
    try:
        mean = view.get("mean_point")
    except UnanswerableError:
        return columns
    return [*columns, ("reliability_mean", math.nan, mean)]


def wants_parts(view: View) -> bool:
    """Whether a part of the score is asked for by name."""
    return any(name.endswith("miscalibration") for name in view.slow)


def _nearest(levels: FloatArray, level: float) -> str:
    """The first of the levels to draw for which this one stands."""
    nearest = {
        name: levels[np.argmin(np.abs(levels - wanted))] for name, wanted in SHOWN_LEVELS.items()
    }
    return next(name for name, nearest_level in nearest.items() if nearest_level == level)


@np.errstate(invalid="ignore")
def _along(grids: list[FloatArray], views: list[View]) -> list[list[FloatArray]]:
    """Of each forecast, and of each view, recalibrated values along a grid of forecasts."""
    problems: list[Rising] = []
    sorted_by: list[tuple[int, FloatArray, FloatArray]] = []
    recalibrated: list[list[FloatArray]] = [[] for _ in grids]
    for view in views:
        y, w = view.evalset.y, view.evalset.multiplicities
        mass = np.ones(len(y)) if w is None else w
        values, rank = np.unique(y, return_inverse=True)
        for diagram, (_, level, x) in enumerate(_columns(view)):
            if math.isnan(level):
                fitted = isotonic_mean(x, y, w)
                recalibrated[diagram].append(interpolate_rising(x, fitted, grids[diagram]))
                continue
            order = np.argsort(x, kind="stable")
            problems.append(Rising.of(x[order], rank[order], level, mass[order]))
            sorted_by.append((diagram, x[order], values))
    if problems:
        fits = fitted_together(problems)
        for (diagram, x, values), problem, fit in zip(sorted_by, problems, fits, strict=True):
            ends = problem.ends
            recalibrated[diagram].append(np.interp(grids[diagram], x[ends], values[fit[ends]]))
    return recalibrated


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
    view, evalset = evaluation.view, evaluation.evalset
    y, w = evalset.y, evalset.multiplicities
    at = _thresholds(y, evalset.fewest, _PLACES_OF_CURVE[wants_parts(view)])
    draw = partial(
        Curve, x=at, x_label="Threshold", y_label="Mean elementary score", model=evalset.model
    )
    curves = []
    try:
        quantiles, levels = view.get("shown")
    except UnanswerableError:
        pass  # a record of the same question tells the reason
    else:
        for column in np.flatnonzero(np.isclose(levels, 0.5)):  # none of a table without a median
            of = partial(elementary_quantiles, y, thresholds=at, level=0.5, weights=w)
            reference = of(np.full(evalset.n, quantile_statistic(y, 0.5, weights=w).value))
            notes = f"Of the {in_per_cent(0.5)} quantile."
            curves.append(
                draw(name="murphy", y=of(quantiles[:, column]), reference=reference, notes=notes)
            )
    if curves and not wants_parts(view):  # so that a page stays small
        return curves
    try:
        mean = view.get("mean_point")
    except UnanswerableError:
        return curves
    of_mean = partial(elementary_means, y, thresholds=at, weights=w)
    reference = of_mean(np.full(evalset.n, weighted_mean(y, w)))
    return [*curves, draw(name="murphy_mean", y=of_mean(mean), reference=reference)]


# ---- the parts of a score of an evaluation set, and their figures --------------------------------

# Rows that are measured where a part of the score is asked for by name. By hand; not tuned.
_MAX_ROWS_BY_NAME = 100_000
# With 9 draws an sd is known to 24 %, with 49 to 10 %.
_RANGE_OF_DRAWS = (9, 49)
# Rows of all draws together: each draw fits all recalibrations anew. By hand; it decides how well
# a range is known.
_ROWS_OF_ALL_DRAWS = 200_000
_ASKED = "shown if requested by name"
_Measure = Callable[["View"], ScoreParts]


def _of_quantiles(view: View) -> ScoreParts:
    quantiles, levels = view.get("knowledge")
    return quantile_parts(view.evalset.y, quantiles, levels, _mass(view), view.evalset.units)


def _of_mean(view: View) -> ScoreParts:
    return mean_parts(view.evalset.y, view.get("mean_point"), _mass(view), view.evalset.units)


def _mass(view: View) -> FloatArray:
    counts = view.evalset.multiplicities
    return np.ones(view.evalset.n) if counts is None else counts


def _decomposed(
    view: View, _: float, *, array: str, of: _Measure, forecast: str, names: tuple[str, ...]
) -> Decomposition:
    """The parts, of some rows; of all, with what right forecasts show, where one is asked for."""
    named = view.slow.intersection(names)
    sampled: View = some_rows(view, _MAX_ROWS_BY_NAME) if named else view.get("part_of_score")
    evalset = sampled.evalset
    kind = "frequency" if evalset.weights is None else evalset.weights.kind
    sampled.get(forecast)  # so that it is known who answers
    view.note_source(array, sampled.source([forecast]))
    parts = of(sampled).estimated(_mass(sampled), evalset.units, kind, view.confidence)
    estimates = [parts.miscalibration, parts.discrimination, parts.uncertainty]
    if named:
        try:
            draws = _if_right(sampled, of)
        except UnanswerableError as error:
            estimates = [_without(each, str(error)) for each in estimates]
        else:
            estimates = [_add_null(*each) for each in zip(estimates, draws.T, strict=True)]
            larger = int((draws[:, 0] >= parts.miscalibration.value).sum())
            estimates[0] = replace(estimates[0], p=(1 + larger) / (1 + len(draws)))
    else:
        estimates = [_without(estimate, _ASKED) for estimate in estimates]
    if sampled is not view:
        n = count_rows(evalset.n, evalset.weights)
        estimates = [replace(each, n=n) for each in estimates]
    return Decomposition(parts.score, *estimates)


def _without(estimate: Estimate, why: str) -> Estimate:
    """An estimate that says why no perfect model stands beside it."""
    return replace(estimate, details={**estimate.details, "no_null": why})


def _add_null(estimate: Estimate, draws: FloatArray) -> Estimate:
    """With the mean and the 95 % range of what right forecasts show."""
    centre, count = float(draws.mean()), len(draws)
    reach = float(special.stdtrit(count - 1, 0.975)) * math.sqrt(1.0 + 1.0 / count)
    off = reach * float(draws.std(ddof=1))
    return replace(estimate, null=centre, null_lower=centre - off, null_upper=centre + off)


def _if_right(view: View, of: _Measure) -> FloatArray:
    """MCB, DSC and UNC of these forecasts where each y is drawn from its own, shape (draws, 3)."""
    means = []
    for drawn in right_outcomes(
        view, int(np.clip(_ROWS_OF_ALL_DRAWS // copies(view), *_RANGE_OF_DRAWS))
    ):
        if np.isinf(drawn.evalset.y).any():
            raise UnanswerableError(OUTSIDE)
        means.append(of(drawn).means(_mass(drawn)))
    return np.array(means)


def score_parts(evaluation: Evaluation) -> list[ResultTable]:
    """S = UNC − DSC + MCB, of the mean pinball loss or else of the squared error."""
    view = evaluation.view
    if view.evalset.n > SLOW_ROWS and not wants_parts(view):
        return []
    for name, title in (
        ("quantile_decomposition", "mean pinball loss"),
        ("mean_decomposition", "mean squared error"),
    ):
        try:
            parts: Decomposition = view.get(name)
        except UnanswerableError:
            continue
        estimates = {
            "mcb": parts.miscalibration,
            "dsc": parts.discrimination,
            "unc": parts.uncertainty,
        }
        if not all(math.isfinite(estimate.value) for estimate in estimates.values()):
            continue
        columns: dict[str, AnyArray] = {
            "measure": np.array([title]),
            "score": np.array([parts.score]),
        }
        for name_of_part, each in estimates.items():
            columns |= {
                name_of_part: np.array([each.value]),
                f"{name_of_part}_lower": np.array([each.lower]),
                f"{name_of_part}_upper": np.array([each.upper]),
            }
        n = parts.miscalibration.n
        return [
            ResultTable(
                name="score_parts",
                columns=columns,
                model=view.evalset.model,
                notes="" if math.isnan(n) else f"Of {n:,.0f} rows.",
            )
        ]
    return []


_entry = partial(
    Metric,
    question=Question.SKILL,
    source="Gneiting and Resin 2023; cross-fitted here",
    merges="rows",
    slow=True,
)
_FOLDED = "folds are drawn again where y and forecasts are negated"
_QUANTILES = partial(_entry, units="y", laws=Laws(scale=1.0, reflection="varies", why=_FOLDED))
_MEANS = partial(_entry, units="y²", laws=Laws(scale=2.0, reflection="varies", why=_FOLDED))
_SOME = (
    f"Above {ROWS_OF_PART:,} rows it uses a subset of that size, and above {SLOW_ROWS:,} it is "
    "omitted, unless it is requested by name."
)
_UNMENDED = "It is what the best recalibration would save; a real one saves less."
_RANGED = "It rises with the spread of y in the rows chosen."

_ENTRIES = (
    _QUANTILES(
        name="miscalibration",
        title="Miscalibration (MCB)",
        synonyms=("reliability component", "reliability part of the score"),
        meaning=(
            "How much of the mean pinball loss would be saved if each quantile were replaced by "
            "the best increasing function of itself."
        ),
        formula="S − S_r, S_r the loss of recalibrated quantiles; S = MCB − DSC + UNC",
        direction=Direction.LOWER,
        forms=(stated("quantile_decomposition", "miscalibration"),),
        standard_normal=0.0,
        target=0.0,
        beware=f"{_UNMENDED} {_SOME}",
    ),
    _QUANTILES(
        name="discrimination",
        title="Discrimination (DSC)",
        synonyms=("resolution component", "resolution part of the score"),
        meaning=(
            "The information in the forecast: how much lower the mean pinball loss is with "
            "recalibrated quantiles than with those of all y."
        ),
        formula="UNC − S_r, S_r the loss of recalibrated quantiles; S = MCB − DSC + UNC",
        direction=Direction.HIGHER,
        forms=(stated("quantile_decomposition", "discrimination"),),
        standard_normal=0.0,
        beware=f"It could be reached after recalibration. {_RANGED} {_SOME}",
    ),
    _QUANTILES(
        name="outcome_uncertainty",
        title="Uncertainty of y (UNC)",
        synonyms=("uncertainty component", "score of climatology"),
        meaning="Mean pinball loss of the quantiles of all y, the same for every row.",
        formula="mean pinball loss of the quantiles of y in new rows; S = MCB − DSC + UNC",
        direction=Direction.NONE,
        forms=(stated("quantile_decomposition", "uncertainty"),),
        standard_normal=0.2969,
        beware=f"It does not depend on the forecast. {_SOME}",
    ),
    _MEANS(
        name="mean_miscalibration",
        title="Miscalibration of the mean",
        synonyms=("MCB of the mean",),
        meaning=(
            "How much of the mean squared error would be saved if the forecast were replaced by "
            "the best increasing function of itself."
        ),
        formula="MSE − MSE_r, MSE_r of the recalibrated forecast; MSE = MCB − DSC + UNC",
        direction=Direction.LOWER,
        forms=(stated("mean_decomposition", "miscalibration"),),
        standard_normal=0.0,
        target=0.0,
        beware=f"{_UNMENDED} {_SOME}",
    ),
    _MEANS(
        name="mean_discrimination",
        title="Discrimination of the mean",
        synonyms=("DSC of the mean",),
        meaning=(
            "How much lower the squared error of the recalibrated forecast is than that of the "
            "mean of all y."
        ),
        formula="UNC − MSE_r, MSE_r of the recalibrated forecast; MSE = MCB − DSC + UNC",
        direction=Direction.HIGHER,
        forms=(stated("mean_decomposition", "discrimination"),),
        standard_normal=0.0,
        beware=f"It could be reached after recalibration. {_RANGED} {_SOME}",
    ),
    _MEANS(
        name="mean_outcome_uncertainty",
        title="Variance of y",
        synonyms=("UNC of the mean",),
        meaning="Squared error of the mean of all y in new rows.",
        formula="Σ (y − ȳ)²/(n − 1); MSE = MCB − DSC + UNC",
        direction=Direction.NONE,
        forms=(stated("mean_decomposition", "uncertainty"),),
        standard_normal=1.0,
        beware=f"It does not depend on the forecast. {_SOME}",
    ),
)
_OF_QUANTILES = tuple(entry.name for entry in _ENTRIES[:3])
_OF_MEANS = tuple(entry.name for entry in _ENTRIES[3:])

_RELIABILITY = partial(
    Layout,
    reading=(
        "Recalibrated values against predicted ones. On the diagonal they agree; a departure "
        "inside the band may be chance."
    ),
    folded=True,
    square=True,
    reference="perfect calibration",
    band_about="reference",
)
_MURPHY = partial(
    Layout,
    order=17,
    folded=True,
    x=Axis(title="Threshold"),
    y=Axis(title="Mean elementary score", zero=True),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("shown", shown, predicted=True),
        Array("part_of_score", lambda view, _: some_rows(view, ROWS_OF_PART)),
        Array(
            "quantile_decomposition",
            partial(
                _decomposed,
                array="quantile_decomposition",
                of=_of_quantiles,
                forecast="knowledge",
                names=_OF_QUANTILES,
            ),
        ),
        Array(
            "mean_decomposition",
            partial(
                _decomposed,
                array="mean_decomposition",
                of=_of_mean,
                forecast="point",
                names=_OF_MEANS,
            ),
        ),
    ),
    curves=(reliability_drawn, murphy_drawn),
    tables=(score_parts, skill_by_group),
    titles={
        "score_parts": TableLayout(listed=False, figure="parts"),
        "skill_by_group": TableLayout(listed=False, figure="skill"),
    },
    label="Skill",
    layouts={
        "score_parts": Layout(
            order=14,
            folded=True,
            question="Is the score due to miscalibration or to missing information?",
            title="Parts of the score",
            reading=(
                "Each bar is a score; lower is better. MCB is what the best recalibration would "
                "save. DSC is how much lower the recalibrated forecast scores than the "
                "distribution of y."
            ),
        ),
        "skill_by_group": Layout(
            order=15,
            folded=True,
            question="Does it beat a baseline in each group?",
            title="Skill by group",
            reading=(
                "How much lower the score is than a climatology baseline (the distribution of y in "
                "the same group). Skill is not significant where a bar crosses the line."
            ),
        ),
        **{
            f"reliability_{name}": _RELIABILITY(
                order=16,
                question=f"Is the {words} right at both low and high values?",
                title=f"Reliability of the {words} (CORP)",
                x=Axis(title=f"Predicted {words}"),
                y=Axis(title=f"Recalibrated {words}"),
            )
            for name, words in (
                ("low", "low quantile"),
                ("median", "median"),
                ("high", "high quantile"),
                ("mean", "mean"),
            )
        },
        "murphy": _MURPHY(
            question="Is the median better at every decision threshold?",
            title="Murphy diagram of the median",
            reading=(
                "The loss at each threshold if you act where the forecast is above it. A curve "
                "that is never above another is better in every score of the median."
            ),
            reference="distribution of y",
        ),
        "murphy_mean": _MURPHY(
            question="Is the mean better at every decision threshold?",
            title="Murphy diagram of the mean",
            reading=(
                "The loss at each threshold if you pay it where the forecast is above it. A curve "
                "that is never above another is better in every score of the mean."
            ),
            reference="mean of y",
        ),
    },
)
