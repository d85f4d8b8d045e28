"""Is a score lost to miscalibration, or to what the forecast does not know?

S = MCB − DSC + UNC (Gneiting and Resin 2023): UNC is what the distribution of y scores, the same
for every row; DSC by how much less the forecast would score once recalibrated by the best rising
function of itself; MCB what the recalibration would save.

That function must be learnt. In the rows that it was learnt from it flatters, in others it pays
for having been learnt from few: what it would score after endless rows lies between. Two fifths of
the first with three fifths of the second estimate it: of 300 rows and more of 18 kinds of
forecasts MCB was then off by at most 1 % of UNC, where for a right forecast the first alone is off
by 6 % and the second by −4 % (docs/verdict.md). Where between them it lies is not known, and is
part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_vector,
    check_fraction,
    check_quantiles,
    power_of_two,
)
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError, UnanswerableError
from howsure.core.formats import listed
from howsure.core.labels import Categories
from howsure.core.records import ResultTable
from howsure.core.rng import KeyArray, row_hashes, row_keys, row_uniforms
from howsure.core.times import Chronology, Units
from howsure.core.weights import Weights, check_multiplicities
from howsure.stats.estimate import Estimate, skewed_ends, spread_of, weighted_mean
from howsure.stats.isotonic import Rising, fitted_together, isotonic_mean
from howsure.topics.scores import pinball, weighted_pinball
from howsure.topics.skill import MIN_ROWS, climatology_losses

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

# Four fifths of the rows teach each recalibration, near to all of them; the weight below corrects
# for the rest.
FOLDS = 5
# By so much the bias of parts in-sample and that in folds cancel: of right forecasts of 100 rows
# +12.3 and −7.7 % of UNC become +.3 (docs/verdict.md, "Parts of a score").
SHARE_INSIDE = 0.4
"""Share of the score in the rows that a recalibration was learnt from; the rest is of others."""
# Rows, or times: two in a fold.
_MIN_ROWS = 10
# Copies of one row whose folds are drawn; others are dealt evenly, as draws of so many nearly are.
_MAX_COPIES_DRAWN = 64
# Copies from which on all are: in a draw, their share of a fold strays by .6 points.
_MIN_COPIES_DEALT = 4_096
# Share of a row's weight that rounding leaves.
_WEIGHT_ROUNDING = 1e-9
# Rows of problems that are solved together: a few arrays of 1.6 MB.
_ROWS_AT_ONCE = 200_000


@frozen(eq=False)
class Decomposition:
    """A mean score in three parts: score = miscalibration − discrimination + uncertainty.

    Attributes
    ----------
    score : float
        Mean score of the forecast; lower is better.
    miscalibration : Estimate
        MCB: what the best recalibration would save.
    discrimination : Estimate
        DSC: how much less the recalibrated forecast scores than the distribution of y.
    uncertainty : Estimate
        UNC: what the distribution of y scores in new rows.

    Examples
    --------
    >>> y = np.arange(20.0)
    >>> parts = mean_decomposition(y, y + 3.0)
    >>> parts.score, round(parts.uncertainty.value, 6)
    (9.0, 35.0)
    """

    score: float
    miscalibration: Estimate
    discrimination: Estimate
    uncertainty: Estimate


def quantile_decomposition(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    cluster: npt.ArrayLike | None = None,
) -> Decomposition:
    """The mean pinball loss in parts: miscalibration, discrimination, uncertainty.

    Each quantile is recalibrated by isotonic regression at its level, two fifths in-sample and
    three fifths in five folds. In the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened, at least ten rows.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, one column per level.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.
    cluster : array-like of shape (n,), optional
        What rows go together: no fold parts them.

    Returns
    -------
    Decomposition
        Each part with its standard error and 95 % interval. To the error of the rows two fifths of
        what the score in folds exceeds that in-sample are added in quadrature.

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or rows or clusters are too few.

    Notes
    -----
    Gneiting and Resin (2023), Regression diagnostics meets forecast evaluation, Electronic Journal
    of Statistics 17, section 3.3, whose form in-sample finds MCB in perfect forecasts.

    Examples
    --------
    >>> y = np.arange(20.0)
    >>> parts = quantile_decomposition(y, y[:, None] + 4.0, [0.5])
    >>> parts.score, round(parts.uncertainty.value, 2)
    (2.0, 2.63)
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    rows, mass, units = _counted(len(truth), weights, cluster)
    return quantile_parts(truth[rows], table[rows], grid, mass, units).estimated(mass, units)


def mean_decomposition(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    cluster: npt.ArrayLike | None = None,
) -> Decomposition:
    """The mean squared error in parts: miscalibration, discrimination, uncertainty.

    The forecast is recalibrated by isotonic regression (pool adjacent violators), two fifths
    in-sample and three fifths in five folds. In squared units of y; uncertainty is the variance of
    y.

    Parameters
    ----------
    y, mean : array-like of shape (n,)
        What happened and its predicted mean, at least ten rows.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.
    cluster : array-like of shape (n,), optional
        What rows go together: no fold parts them.

    Returns
    -------
    Decomposition
        As that of `quantile_decomposition`.

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or rows or clusters are too few.

    Notes
    -----
    Source as in `quantile_decomposition`.

    Examples
    --------
    >>> y = np.arange(20.0)
    >>> round(mean_decomposition(y, y).uncertainty.value, 6)
    35.0
    """
    truth = as_vector(y, "y")
    point = as_vector(mean, "mean", length=len(truth))
    rows, mass, units = _counted(len(truth), weights, cluster)
    return mean_parts(truth[rows], point[rows], mass, units).estimated(mass, units)


def _counted(
    n: int, weights: npt.ArrayLike | None, cluster: npt.ArrayLike | None
) -> tuple[BoolArray, FloatArray, Units]:
    """Which rows count, their multiplicities, and codes of their clusters."""
    counts = check_multiplicities(weights, n)
    mass = np.ones(n) if counts is None else counts
    rows = mass > 0.0
    if cluster is None:
        return rows, mass[rows], None
    labels = Categories.checked(cluster, "cluster", length=n)
    return rows, mass[rows], labels.take(rows).codes


def quantile_parts(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, mass: FloatArray, units: Units
) -> ScoreParts:
    """`quantile_decomposition` of what was checked; units may be times too."""
    factor = 1.0 / len(levels)
    left_out = _held_out((y, *quantiles.T), mass, units)
    inside, outside = _recalibrated_quantiles(y, quantiles, levels, mass, left_out)
    of_all, noise = climatology_losses(y, levels, np.full(len(levels), factor), mass)
    scores = weighted_pinball(y, quantiles, levels, np.full(len(levels), factor))
    return ScoreParts.of(scores, factor * inside, factor * outside, of_all, noise, mass)


def mean_parts(y: FloatArray, mean: FloatArray, mass: FloatArray, units: Units) -> ScoreParts:
    """`mean_decomposition` of what was checked; units may be times too."""
    centre = weighted_mean(y, mass)
    unit = power_of_two(np.concatenate((y - centre, mean - centre)))
    truth, point = (y - centre) / unit, (mean - centre) / unit  # whose squares are numbers
    left_out = _held_out((y, mean), mass, units)
    inside = np.square(truth - isotonic_mean(point, truth, mass))
    outside = np.zeros(len(y))
    for share in left_out.T:
        others_mass = mass - share
        learnt, judged = (
            np.flatnonzero(others_mass > _WEIGHT_ROUNDING * mass),
            np.flatnonzero(share),
        )
        fitted = isotonic_mean(point[learnt], truth[learnt], others_mass[learnt])
        there = interpolate_rising(point[learnt], fitted, point[judged])
        outside[judged] += share[judged] / mass[judged] * np.square(truth[judged] - there)
    total = float(mass.sum())
    of_all = np.square(truth) * (total / (total - 1.0))
    scores, square = np.square(truth - point), unit**2
    return ScoreParts.of(
        square * scores, square * inside, square * outside, square * of_all, 0.0, mass
    )


def _recalibrated_quantiles(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, mass: FloatArray, left_out: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pinball losses, summed over levels, of the quantiles recalibrated on all rows, and on those
    of other folds.
    """
    values, rank = np.unique(y, return_inverse=True)
    inside, outside = np.zeros(len(y)), np.zeros(len(y))
    step = max(1, _ROWS_AT_ONCE // (FOLDS * len(y)))
    for first in range(0, len(levels), step):
        tasks: list[tuple[int, FloatArray | None, IntArray]] = []
        problems: list[Rising] = []
        for column in range(first, min(first + step, len(levels))):
            x, level = quantiles[:, column], float(levels[column])
            order = np.argsort(x, kind="stable")
            for share in (None, *left_out.T):
                others_mass = mass if share is None else mass - share
                learnt = order[others_mass[order] > _WEIGHT_ROUNDING * mass[order]]
                tasks.append((column, share, learnt))
                problems.append(Rising.of(x[learnt], rank[learnt], level, others_mass[learnt]))
        fits = fitted_together(problems)
        for (column, share, learnt), problem, fit in zip(tasks, problems, fits, strict=True):
            x, level = quantiles[:, column], float(levels[column])
            if share is None:
                inside[learnt] += pinball(y[learnt], values[fit], level)
                continue
            rows, ends = np.flatnonzero(share), problem.ends
            there = np.interp(x[rows], x[learnt[ends]], values[fit[ends]])
            outside[rows] += share[rows] / mass[rows] * pinball(y[rows], there, level)
    return inside, outside


def interpolate_rising(x: FloatArray, fitted: FloatArray, at: FloatArray) -> FloatArray:
    """A rising function at other places: straight lines between, flat outside."""
    known, first = np.unique(x, return_index=True)
    return np.interp(at, known, fitted[first])


@frozen(eq=False)
class ScoreParts:
    """Scores of each row, shape (n,), whose means are the parts of a score."""

    scores: FloatArray  # of the forecast
    recalibrated: FloatArray  # of the forecast recalibrated
    of_all: FloatArray  # of the distribution of y
    learnt: float  # standard error that is due to learning the recalibration
    noise: float  # as of `skill_score`

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        inside: FloatArray,
        outside: FloatArray,
        of_all: FloatArray,
        noise: float,
        mass: FloatArray,
    ) -> Self:
        """Of recalibrations that were learnt from the rows themselves, and from others."""
        recalibrated = SHARE_INSIDE * inside + (1.0 - SHARE_INSIDE) * outside
        learnt = SHARE_INSIDE * abs(weighted_mean(outside - inside, mass))
        return cls(scores, recalibrated, of_all, learnt, noise)

    def means(self, mass: FloatArray) -> tuple[float, float, float]:
        """MCB, DSC and UNC."""
        columns = (self.scores - self.recalibrated, self.of_all - self.recalibrated, self.of_all)
        mcb, dsc, unc = (weighted_mean(column, mass) for column in columns)
        return mcb, dsc, unc

    def estimated(
        self, mass: FloatArray, units: Units, kind: str = "", confidence: float = 0.95
    ) -> Decomposition:
        """Means with their errors; without a kind of weights, whole numbers are frequencies."""
        copies = kind == "frequency" or (not kind and bool((mass == np.floor(mass)).all()))
        weights = Weights(mass, "frequency" if copies else "importance")
        finish = partial(_finished, weights=weights, units=units, confidence=confidence)
        uncertainty = finish(self.of_all, self.noise)
        return Decomposition(
            weighted_mean(self.scores, mass),
            finish(self.scores - self.recalibrated, self.learnt),
            finish(self.of_all - self.recalibrated, math.hypot(self.learnt, self.noise)),
            replace(uncertainty, lower=max(uncertainty.lower, 0.0)),  # no score is below 0
        )


def _finished(
    rows: FloatArray, hidden: float, *, weights: Weights, units: Units, confidence: float
) -> Estimate:
    """A mean with the error of its rows, and one more that they do not show."""
    value = weighted_mean(rows, weights.values)
    if not math.isfinite(value):
        return Estimate(math.nan, reason="some rows have an infinite score")
    spread = spread_of(rows - value, weights, units)
    shown = float(spread.error[0])
    if not math.isfinite(shown):
        return Estimate(value, reason="no interval: the effective sample size is too small")
    error = math.hypot(shown, hidden)
    skew = spread.skew * (shown / error) ** 3 if error > 0.0 else spread.skew
    wider = replace(spread, error=np.array([error]), skew=skew)
    low, high = skewed_ends(value, wider, confidence)
    return Estimate(value, error=error, lower=float(low[0]), upper=float(high[0]))


def _held_out(columns: Sequence[FloatArray], mass: FloatArray, units: Units) -> FloatArray:
    """Weight of each row that each fold leaves out, shape (n, folds).

    Folds are clusters, or a fifth of the time each, or drawn by what rows hold: copies of one row
    are each drawn.
    """
    if not float(mass.sum()) >= _MIN_ROWS * (1.0 - _WEIGHT_ROUNDING):
        raise DegenerateError(f"rows that count must be at least {_MIN_ROWS}, got {mass.sum():g}")
    if isinstance(units, Chronology):
        times, time_of_row = units.ranks()
        if len(times) < _MIN_ROWS:
            raise DegenerateError(f"rows must be of at least {_MIN_ROWS} times, got {len(times)}")
        upto = np.cumsum(np.bincount(time_of_row, weights=mass))
        fold = np.minimum(FOLDS * (upto - 0.5 * upto[0]) / upto[-1], FOLDS - 0.5)
        return _of_folds(fold.astype(np.int64)[time_of_row], mass)
    # Ranks, which no change of units moves.
    ranks = (np.unique(column, return_inverse=True)[1] for column in columns)
    state = row_hashes(*(rank.astype(np.float64) for rank in ranks))
    if units is not None:
        clusters = int(units.max()) + 1
        if clusters < FOLDS:
            raise DegenerateError(f"rows must be of at least {FOLDS} clusters, got {clusters}")
        sums = np.zeros(clusters, dtype=np.uint64)
        np.add.at(sums, units, row_hashes(state, mass))
        fold = np.empty(clusters, dtype=np.int64)
        fold[np.argsort(sums, kind="stable")] = np.arange(clusters) % FOLDS
        return _of_folds(fold[units], mass)
    if (mass != np.floor(mass)).any():  # no copies
        lightest = np.argsort(mass, kind="stable")  # equal rows are told apart by their weights
        fold = np.empty(len(mass), dtype=np.int64)
        fold[lightest] = _drawn(state[lightest])
        return _of_folds(fold, mass)
    different, row = np.unique(state, return_inverse=True)
    total = np.bincount(row, weights=mass)
    few = np.where(total > _MIN_COPIES_DEALT, 0, np.minimum(total, _MAX_COPIES_DRAWN)).astype(
        np.int64
    )
    copy = np.repeat(np.arange(len(different)), few)
    joint = copy * FOLDS + _drawn(different[copy])
    dealt = np.bincount(joint, minlength=FOLDS * len(different)).reshape(-1, FOLDS)
    copies = dealt + (total - few)[:, None] / FOLDS
    return copies[row] * (mass / total[row])[:, None]


def _drawn(state: KeyArray) -> IntArray:
    """A fold of each row, by its hash."""
    if not len(state):
        return np.zeros(0, dtype=np.int64)
    return (FOLDS * row_uniforms(0, "folds", row_keys(state))).astype(np.int64)


def _of_folds(fold: IntArray, mass: FloatArray) -> FloatArray:
    return np.where(fold[:, None] == np.arange(FOLDS), mass[:, None], 0.0)


# ---- Murphy diagrams: the mean elementary score of a forecast at every threshold -----------------
# Every score that a quantile, or a mean, is best for is a mixture over thresholds of elementary
# ones (Ehm, Gneiting, Jordan and Krüger 2016). So a forecast that scores less at every threshold
# is the better one whatever score is asked for, and where curves cross the score decides.


def elementary_quantiles(
    y: npt.ArrayLike,
    quantile: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    level: float,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Mean elementary score of a quantile at thresholds; lower is better.

    At θ a row scores 1 − τ where y ≤ θ < q, τ where q ≤ θ < y, else 0: what who acts where q > θ,
    and should where y > θ, loses. Over all θ it integrates to the mean pinball loss.

    Ehm, Gneiting, Jordan and Krüger (2016), Of quantiles and expectiles, JRSS B 78, equation 6.
    O((n + k) log n).

    Examples
    --------
    >>> elementary_quantiles([3.0], [1.0], [0.0, 2.0, 4.0], level=0.9)
    array([0. , 0.9, 0. ])
    """
    truth, point, at, mass = _checked(y, quantile, "quantile", thresholds, weights)
    share = check_fraction(level, "level")
    cost = mass * np.where(truth < point, 1.0 - share, share)
    low, high = np.minimum(truth, point), np.maximum(truth, point)
    return np.maximum(_up_to(low, cost, at) - _up_to(high, cost, at), 0.0)


def elementary_means(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Mean elementary score of a mean at thresholds; lower is better.

    At θ a row scores 2 |y − θ| where θ lies between y and the mean, else 0. Over all θ it
    integrates to the mean squared error.

    Source as in `elementary_quantiles`, equation 8 for the mean, times four.

    Examples
    --------
    >>> elementary_means([3.0], [1.0], [0.0, 2.0, 4.0])
    array([0., 2., 0.])
    """
    truth, point, at, mass = _checked(y, mean, "mean", thresholds, weights)
    centre = float(np.median(truth))  # so that products keep their digits
    truth, point, at = truth - centre, point - centre, at - centre
    side = 2.0 * mass * np.where(truth < point, 1.0, -1.0)
    low, high = np.minimum(truth, point), np.maximum(truth, point)
    slope = _up_to(low, side, at) - _up_to(high, side, at)
    moment = _up_to(low, side * truth, at) - _up_to(high, side * truth, at)
    return np.maximum(slope * at - moment, 0.0)


def _checked(
    y: npt.ArrayLike,
    point: npt.ArrayLike,
    name: str,
    thresholds: npt.ArrayLike,
    weights: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Arguments, and weights that sum to 1."""
    truth = as_vector(y, "y")
    forecast = as_vector(point, name, length=len(truth))
    counts = check_multiplicities(weights, len(truth))
    mass = np.ones(len(truth)) if counts is None else counts
    return truth, forecast, as_vector(thresholds, "thresholds", scalar=True), mass / mass.sum()


def _up_to(places: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Sums of values at places up to each threshold."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    return sums[np.searchsorted(places[order], at, side="right")]


# ---- what a forecast knows within each group: its skill against the y of the same group ----------

# A table of more is not read. Chosen by hand; not tuned.
MOST_GROUPS = 40
_TITLES = {"crps_skill": "CRPS", "interval_skill": "interval score"}
"""The measures of skill, the finest first, and the scores that they compare."""


def skill_of_groups(
    view: View, codes: IntArray, wanted: Iterable[int], coverage: float
) -> tuple[str, FloatArray, FloatArray]:
    """The measure, the skill of groups (NaN of others), and each row's influence on its own's."""
    from howsure.engine.measure import arrays_of, find_measure  # which reads the catalogue

    name, form = find_measure(view, tuple(_TITLES), coverage)
    arrays, keywords = arrays_of(view, form, coverage)
    weights = view.evalset.multiplicities
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    value, influence = np.full(len(parts), np.nan), np.zeros(len(codes))
    for group in wanted:
        rows = parts[group]
        arrays_of_group = [
            array if need == "levels" else array[rows]
            for need, array in zip(form.needs, arrays, strict=True)
        ]
        weighting = {} if weights is None else {"weights": weights[rows]}
        skill: Estimate = form.function(*arrays_of_group, **keywords, **form.options, **weighting)
        value[group] = skill.value
        if skill.influence is not None:
            influence[rows] = skill.influence
    return name, value, influence


def skill_by_group(evaluation: Evaluation) -> list[ResultTable]:
    """Skill of each group of at least 30 rows, with intervals that hold for all at once."""
    from howsure.topics.groups import Grouping, rows_in_groups  # which reads the catalogue

    view, evalset = evaluation.view, evaluation.evalset
    chosen: list[tuple[Grouping, FloatArray, IntArray]] = []
    left_out: list[str] = []
    count = 0
    for name, column in evalset.groups.items():
        grouping = Grouping(name, column.codes, tuple(map(str, column.labels.tolist())))
        n = rows_in_groups(evalset, grouping)
        large = np.flatnonzero(n >= max(MIN_ROWS, evalset.fewest))
        if count + len(large) > MOST_GROUPS:
            left_out.append(name)
        elif len(large):
            chosen.append((grouping, n, large))
            count += len(large)
    lines: list[tuple[str, str, float, float, float, str, float]] = []
    for grouping, n, large in chosen:
        codes = grouping.codes
        try:
            score, value, influence = skill_of_groups(view, codes, large, view.headline)
        except UnanswerableError:  # a record of the same question tells the reason
            return []
        spread = spread_of(influence, evalset.weights, evalset.units, codes, len(value))
        low, high = skewed_ends(value, spread, 1.0 - (1.0 - view.confidence) / count)
        lines += [
            (
                grouping.name,
                grouping.labels[group],
                value[group],
                low[group],
                min(high[group], 1.0),
                _TITLES[score],
                n[group],
            )
            for group in large.tolist()
            if math.isfinite(low[group] + high[group])
        ]
    if not lines:
        return []
    heads = ("grouping", "group", "skill", "lower", "upper", "score", "n")
    notes = [
        f"Intervals are simultaneous over {count} groups (Bonferroni). The y of a group are known "
        "only afterwards."
    ]
    if left_out:
        notes.append(f"Left out, past {MOST_GROUPS} groups: {listed(left_out, most=3)}.")
    return [
        ResultTable(
            name="skill_by_group",
            columns={
                head: np.array(values)
                for head, values in zip(heads, zip(*lines, strict=True), strict=True)
            },
            model=evalset.model,
            notes=" ".join(notes),
        )
    ]
