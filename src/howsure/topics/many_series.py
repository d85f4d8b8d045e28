"""How does it do on each series? Scores scaled by what each series is like, and their mean.

A mean over rows is the mean of the series with the largest numbers. Divided by what the series'
own distribution scores, or by its own changes, a score has no units, and each series weighs the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_numbers
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, InputError, UnanswerableError
from howsure.core.formats import counted, listed
from howsure.core.labels import Categories
from howsure.core.records import Direction, ResultTable, TableLayout
from howsure.core.rng import child
from howsure.core.text import capitalized
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    POSITIVE,
    Array,
    Metric,
    Question,
    Topic,
    estimated,
)
from howsure.engine.view import View
from howsure.predictions import Distribution, Quantiles, Samples
from howsure.stats.bootstrap import bootstrap_means
from howsure.stats.estimate import Estimate, skewed_ends, spread_of
from howsure.topics.crps import crps_quantiles, trapezoid
from howsure.topics.scores import interval_score, pinball
from howsure.topics.shared import shared_by_all

TABLES = {"relative_skill": TableLayout(title="Relative skill over series")}
"""How the table of models over series is shown, which is no section's own."""

# The mean score of its own distribution is biased by some 1/n: a tenth. By hand; not tuned.
MIN_ROWS_OF_SERIES = 10
"""Rows of a series, below which its own distribution is not known."""
# A table of more is not read; the mean is of all.
MAX_SERIES_LISTED = 1_000
"""Series in the table, the worst first."""
# Missing combinations that are named: a line.
_MAX_MISSING_NAMED = 6
NOT_DRAWN = {"no_null": "y is not simulated by series"}
"""Why there is no perfect model's value."""


@frozen(eq=False)
class ScaledScores:
    """Mean scores of series, and what they are divided by."""

    what: str  # the score, in words
    scores: FloatArray  # shape (g,): NaN of series that are not told of
    references: FloatArray  # shape (g,)
    rows: FloatArray  # shape (g,)

    @property
    def scored(self) -> BoolArray:
        """Which series have a score."""
        return np.isfinite(self.scores) & (self.references > 0.0)

    @property
    def ratios(self) -> FloatArray:
        """Shape (g,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.scored, self.scores / self.references, np.nan)


def _series(view: View) -> Categories:
    evalset = view.evalset
    if evalset.series is None:
        raise UnanswerableError("the table has no series")
    if len(evalset.series.labels) < 2:
        raise UnanswerableError("all rows are one series")
    if evalset.weights is not None:
        raise UnanswerableError("rows have weights, which scores by series do not support")
    return evalset.series


def _relative(view: View, _: float) -> ScaledScores:
    """Mean scores of series beside those of their own distribution of y."""
    series = _series(view)
    y, codes = view.evalset.y, series.codes
    size, rows = len(series.labels), series.counts.astype(np.float64)
    levels: FloatArray | None = None
    if view.find_prediction(Distribution) is not None:
        what, scores = "CRPS", view.get("crps_of_law")
    elif view.find_prediction(Samples) is not None:
        what, scores = "CRPS", view.get("crps_of_samples")
    elif view.find_prediction(Quantiles) is not None:
        levels = view.get("levels")
        what, factors = "CRPS", trapezoid(levels)
        scores = crps_quantiles(y, view.get("quantiles"), levels)
    else:
        what, scores, levels, factors = _of_interval_or_point(view)
    if levels is None:
        references = 0.5 * mean_differences(y, codes, size)
    else:
        of_levels = own_pinball(y, codes, size, levels)
        references = of_levels @ factors
    means = np.bincount(codes, scores, size) / rows
    return ScaledScores(what, np.where(rows >= MIN_ROWS_OF_SERIES, means, np.nan), references, rows)


def _of_interval_or_point(view: View) -> tuple[str, FloatArray, FloatArray, FloatArray]:
    """The score of intervals, else that of a point, with levels and factors of its pinballs."""
    y, coverage = view.evalset.y, view.headline
    try:
        lower, upper = view.get("ends", coverage)
        nominal = view.get("coverage", coverage)
    except UnanswerableError:
        error = np.abs(y - view.get("point"))
        return "MAE", error, np.array([0.5]), np.array([2.0])
    miss = 0.5 * (1.0 - nominal)
    ends, factors = np.array([miss, 1.0 - miss]), np.full(2, 1.0 / miss)
    return "interval score", interval_score(y, lower, upper, coverage=nominal), ends, factors


def mean_differences(y: FloatArray, codes: IntArray, size: int) -> FloatArray:
    """Mean of |y_i − y_j| over pairs of different rows of each group (Gini), shape (size,)."""
    order = np.lexsort((y, codes))
    group, values = codes[order], y[order]
    count = np.bincount(codes, minlength=size).astype(np.float64)
    rank = np.arange(len(y)) - (np.cumsum(count) - count)[group]
    centred = values - (np.bincount(codes, y, size) / np.maximum(count, 1.0))[group]
    sums = np.bincount(group, (2.0 * rank - count[group] + 1.0) * centred, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(2.0 * sums / (count * (count - 1.0)))


def own_pinball(y: FloatArray, codes: IntArray, size: int, levels: FloatArray) -> FloatArray:
    """Mean pinball loss in each group of its own quantiles of y, shape (size, k).

    The mean of the loss at the quantile of all rows of the group and at that of all others, as
    `howsure.topics.skill.climatology_pinball` has it.
    """
    order = np.lexsort((y, codes))
    group, values = codes[order], y[order]
    count = np.bincount(codes, minlength=size)
    first = (np.cumsum(count) - count)[group]
    n, rank = count[group], np.arange(len(y)) - first
    losses = np.empty((size, len(levels)))
    for k, level in enumerate(levels.tolist()):
        of_all, of_others = np.zeros(len(y)), np.zeros(len(y))
        for side in (-1.0, 1.0):  # the first value that reaches the level, and that passes it
            of_all += 0.5 * values[first + _reach(level, n, side)]
            place = _reach(level, np.maximum(n - 1, 1), side)
            of_others += 0.5 * values[first + np.minimum(place + (place >= rank), n - 1)]
        loss = 0.5 * (pinball(values, of_all, level) + pinball(values, of_others, level))
        losses[:, k] = np.bincount(group, loss, size) / np.maximum(count, 1)
    return losses


def _reach(level: float, n: IntArray, side: float) -> IntArray:
    """Place of the value whose rank reaches a share of n, or passes it."""
    rank = np.ceil(level * n + side * 1e-9 * n).astype(np.int64) - 1
    return np.clip(rank, 0, n - 1)


def _relative_score(view: View, _: float) -> Estimate:
    scaled: ScaledScores = view.get("scaled")
    return _mean_of_series(view, scaled, {"score": scaled.what})


def _changes(view: View, _: float) -> ScaledScores:
    """Root mean squared errors of series beside those of the value before."""
    series, evalset = _series(view), view.evalset
    if evalset.time is None:
        raise UnanswerableError("the table has no time")
    codes, size = series.codes, len(series.labels)
    times = Categories.checked(evalset.time, "time").codes
    order = np.lexsort((times, codes))
    group, when, y = codes[order], times[order], evalset.y[order]
    fresh = (np.diff(group, prepend=-1) != 0) | (np.diff(when, prepend=-1) != 0)
    moment = np.cumsum(fresh) - 1
    if (y != y[fresh][moment]).any():
        raise UnanswerableError("one series has different y at the same time")
    group, y = group[fresh], y[fresh]
    inside = np.diff(group) == 0
    steps = np.bincount(group[1:][inside], minlength=size)
    squares = np.bincount(group[1:][inside], np.square(np.diff(y)[inside]), size)
    errors = np.square(evalset.y - view.get("point"))
    rows = series.counts.astype(np.float64)
    mean = np.sqrt(np.bincount(codes, errors, size) / rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.sqrt(squares / steps)
    return ScaledScores(
        "RMSE", np.where(steps + 1 >= MIN_ROWS_OF_SERIES, mean, np.nan), change, rows
    )


def _rmsse(view: View, _: float) -> Estimate:
    return _mean_of_series(view, view.get("scaled_by_changes"), {})


def _mean_of_series(view: View, scaled: ScaledScores, details: dict[str, str | float]) -> Estimate:
    """The mean ratio, each series weighing the same, with an error by series."""
    ratios = scaled.ratios[scaled.scored]
    if len(ratios) < 2:
        raise UnanswerableError(
            f"fewer than two series have {MIN_ROWS_OF_SERIES} rows and a y that is not constant"
        )
    mean = float(ratios.mean())
    spread = spread_of(ratios - mean)
    lower, upper = skewed_ends(mean, spread, view.confidence)
    left_out = int((~scaled.scored).sum())
    reason = f"{left_out:,} of {len(scaled.scored):,} series left out" if left_out else ""
    return Estimate(
        mean,
        error=float(spread.error[0]),
        lower=max(float(lower[0]), 0.0),
        upper=float(upper[0]),
        n=float(scaled.rows[scaled.scored].sum()),
        reason=reason,
        details={**details, "series": float(len(ratios)), **NOT_DRAWN},
    )


def missing_combinations(
    series: Categories, horizon: FloatArray
) -> tuple[int, int, list[tuple[str, float]]]:
    """How many series and horizons there are, and the combinations without a row."""
    horizons, horizon_of = np.unique(horizon, return_inverse=True)
    size, count = len(series.labels), len(horizons)
    present = np.unique(series.codes * count + horizon_of)
    absent = np.setdiff1d(np.arange(size * count), present, assume_unique=True)
    named = [(str(series.labels[k // count]), float(horizons[k % count])) for k in absent.tolist()]
    return size, count, named


def _absent(view: View) -> str:
    """Which series lack which horizons, in words."""
    evalset = view.evalset
    if evalset.series is None or evalset.horizon is None:
        return ""
    size, count, absent = missing_combinations(evalset.series, evalset.horizon)
    if not absent:
        return f"All {size:,} series have rows at all {counted(count, 'horizon')}."
    some = listed([f"{name} at {horizon:g}" for name, horizon in absent], most=_MAX_MISSING_NAMED)
    return (
        f"Of {size:,} series × {counted(count, 'horizon')}, {len(absent):,} have no rows: {some}."
    )


def _tables(evaluation: Evaluation) -> list[ResultTable]:
    """Series, that of the highest relative score first, and what is missing."""
    view = evaluation.view
    scaled: ScaledScores = view.get("scaled")
    if np.isnan(scaled.scores).all():  # all are short
        return []
    labels = _series(view).labels
    ranked = np.argsort(-np.where(scaled.scored, scaled.ratios, -1.0), kind="stable")
    chosen = ranked[:MAX_SERIES_LISTED]
    columns = {
        "series": np.array([str(label) for label in labels[chosen].tolist()], dtype=object),
        "n": scaled.rows[chosen],
        "score": scaled.scores[chosen],
        "own_distribution": scaled.references[chosen],
        "relative_score": scaled.ratios[chosen],
    }
    with suppress(UnanswerableError):  # without points or times
        by_changes: ScaledScores = view.get("scaled_by_changes")
        columns["rmsse"] = by_changes.ratios[chosen]
    notes = []
    if len(chosen) < len(labels):
        notes.append(f"The {len(chosen):,} of {len(labels):,} with the highest relative score.")
    notes.append(
        "Below 1 predictions score better than the distribution of the series' own y. Series of "
        f"fewer than {MIN_ROWS_OF_SERIES} rows are omitted."
    )
    return [
        ResultTable(
            name="series",
            columns=columns,
            labels={
                "series": "Series",
                "n": "Rows",
                "score": capitalized(scaled.what),
                "own_distribution": "Of its own y",
                "relative_score": "Relative score",
                "rmsse": "RMSSE",
            },
            model=view.evalset.model,
            notes=" ".join(filter(None, (*notes, _absent(view)))),
        )
    ]


# ---- several models ------------------------------------------------------------------------------


def relative_skill(scores: npt.ArrayLike, *, baseline: int | None = None) -> FloatArray:
    """How each model scores beside all others: the geometric mean of ratios of mean scores.

    θ_i = (Π_j S̄_ij / S̄_ji)^{1/M}, with S̄_ij the mean score of model i over what it has in common
    with model j, and the ratio of a model to itself 1. Below 1 is better than the others; with a
    baseline all are divided by its own, so that below 1 is better than the baseline.

    Source: E. Y. Cramer et al., PNAS 119 (2022) e2113561119, as scoringutils has it.

    Examples
    --------
    >>> relative_skill([[1.0, 2.0], [3.0, 6.0]])
    array([0.70710678, 1.41421356])
    >>> relative_skill([[1.0, 2.0], [3.0, 6.0]], baseline=1)
    array([0.5, 1. ])
    """
    table = as_numbers(scores, "scores")
    if table.ndim != 2:
        raise InputError(f"scores must have two dimensions, got shape {table.shape}")
    if np.isinf(table).any():
        raise InputError("scores must be finite, or NaN where there is none, got an infinite one")
    count = table.shape[1]
    if baseline is not None and not 0 <= baseline < count:
        raise InputError(f"baseline must be a column from 0 to {count - 1}, got {baseline}")
    logs = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            common = ~(np.isnan(table[:, i]) | np.isnan(table[:, j]))
            means = table[common][:, [i, j]].mean(axis=0) if common.any() else np.zeros(2)
            if not (means > 0.0).all():
                what = "a mean above 0" if common.any() else "rows in common"
                raise DegenerateError(f"scores of columns {j} and {i} must have {what}, got none")
            logs[i, j] = math.log(means[0] / means[1])
            logs[j, i] = -logs[i, j]
    skill = logs.mean(axis=1)
    return np.asarray(np.exp(skill if baseline is None else skill - skill[baseline]))


def standing_over_series(
    evaluations: Sequence[Evaluation],
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> ResultTable | None:
    """Relative skill and rank of each model, with intervals by bootstrap over series.

    It is scaled to the model that is the baseline, if one is. None where rows are of no series, or
    models have no score in common.
    """
    series = evaluations[0].evalset.series
    shared = shared_by_all(evaluations)
    if series is None or len(series.labels) < 2 or shared is None:
        return None
    weights = evaluations[0].evalset.weights
    names = [evaluation.evalset.model for evaluation in evaluations]
    baselines = (baseline for found in evaluations for baseline in found.evalset.baselines)
    base = next((names.index(each.name) for each in baselines if each.name in names), None)
    table = np.stack([shared.rows[model] for model in range(len(names))], axis=1)
    rng = child(seed, "relative skill", *sorted(names))
    drawn = bootstrap_means(table, rng, weights=weights, cluster=series.values())
    if not ((drawn.estimate > 0.0).all() and (drawn.replicates > 0.0).all()):
        return None
    value, replicates = (
        np.exp(logs - (logs.mean(axis=-1, keepdims=True) if base is None else logs[..., [base]]))
        for logs in (np.log(drawn.estimate), np.log(drawn.replicates))
    )
    tails = [0.5 * (1.0 - confidence), 0.5 * (1.0 + confidence)]
    lower, upper = np.quantile(replicates, tails, axis=0)
    ranks = _ranks(replicates)
    first, last = np.quantile(ranks, tails, axis=0, method="inverted_cdf")
    order = np.argsort(value, kind="stable")
    columns = {
        "model": np.array(names, dtype=object),
        "relative_skill": value,
        "lower": lower,
        "upper": upper,
        "rank": _ranks(value[None])[0],
        "rank_from": first.astype(np.int64),
        "rank_to": last.astype(np.int64),
    }
    to = "the geometric mean of all" if base is None else names[base]
    return ResultTable(
        name="relative_skill",
        columns={name: values[order] for name, values in columns.items()},
        labels={"lower": "from", "upper": "to", "rank_from": "from", "rank_to": "to"},
        notes=(
            f"Mean {shared.score.title} as a multiple of that of {to}; lower is better. Intervals "
            f"and ranks are by bootstrap over {len(series.labels):,} series ({confidence:.0%})."
        ),
    )


def _ranks(values: FloatArray) -> IntArray:
    """Ranks within each row, equal ones alike, the lowest first."""
    return np.stack([(values < each[:, None]).sum(axis=1) + 1 for each in values.T], axis=1)


_entry: Callable[..., Metric] = partial(
    Metric,
    question=Question.SERIES,
    direction=Direction.LOWER,
    merges="rows",
    standard_normal=math.nan,
    bounds=POSITIVE,
)
_ALIKE = (
    "Its error assumes independent series: correlated series have a smaller effective sample size."
)

_ENTRIES = (
    _entry(
        name="relative_score",
        title="Relative score over series",
        synonyms=("relative CRPS", "scaled CRPS", "relative score by series"),
        meaning=(
            "Score of each series as a multiple of that of the distribution of its own y; the mean "
            "over series, with equal weights."
        ),
        formula="mean over series of S_s / R_s, S_s a mean score, R_s that of the series' own y",
        source="as crps_skill, by series",
        forms=(estimated("relative_score"),),
        beware=f"The distribution of these y is known only afterwards. {_ALIKE}",
    ),
    _entry(
        name="rmsse",
        title="Root mean squared scaled error (RMSSE)",
        synonyms=("scaled error", "root mean squared scaled error over series"),
        meaning=(
            "Root mean squared error of each series as a multiple of that of its value before; the "
            "mean over series, with equal weights."
        ),
        formula="mean over series of √(mean (y − f)² / mean (y_t − y_{t−1})²)",
        source="Hyndman and Koehler 2006; M5 competition, there with changes of training rows",
        forms=(estimated("rmsse"),),
        beware=f"It is scaled by changes in these rows, not in the training rows. {_ALIKE}",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("scaled", _relative),
        Array("relative_score", _relative_score),
        Array("scaled_by_changes", _changes),
        Array("rmsse", _rmsse),
    ),
    tables=(_tables,),
    label="Series",
    titles={"series": "By series"},
)
