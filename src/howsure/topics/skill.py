"""What does a forecast know? Its score beside that of the distribution of y, or of strange rows.

The reference is climatology: the same forecast for every row, the distribution of all y. What it
would score on new rows is estimated without bias by pairs of different rows for the CRPS; for
quantiles, which have no such form, in-sample scores flatter by as much as leave-one-out scores
overdo it, and their mean is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    FloatArray,
    IntArray,
    as_vector,
    check_fraction,
    check_quantiles,
)
from howsure.core.errors import DegenerateError, UnanswerableError
from howsure.core.formats import fixed
from howsure.core.records import Direction, Record
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, small, span
from howsure.engine.metric import (
    MOST_LABELS,
    Array,
    Form,
    Metric,
    Question,
    Topic,
    estimated,
    statistic,
)
from howsure.engine.view import View
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.stats.estimate import Estimate, weighted_mean
from howsure.topics.crps import crps_quantiles, trapezoid
from howsure.topics.scores import interval_score, pinball

# Nine midpoints are a midpoint rule for the CRPS; a table of quantiles gives as many. Not tuned.
MIDPOINTS = (np.arange(9) + 0.5) / 9
"""Levels at which distributions and samples are compared with strange rows."""
# Two per cent, as of spread and bias in the verdict.
TOLERANCE = 0.02
"""Share of the reference's score by which a forecast may differ and be neither better nor worse."""
# How many times the score of a reference another may be; its square is a number still, 10²⁴.
_MAX_RATIO = 1e12
# Chosen by hand; not tuned. The distribution of fewer rows is itself a bad forecast: by 1/n, 3 %,
# more than the tolerance.
MIN_ROWS = 30
"""Independent rows, of rows that depend, by which skill is judged; rows of a group."""
# Of a gain of 45 % the standard error is .14 points there; each level sorts the rows once.
_MAX_ROWS_OF_PAIRING = 100_000
# The usual level, of all references together (Bonferroni).
_LEVEL = 0.05
MEASURE_OF = {
    "persistence": "persistence_skill",
    "seasonal": "seasonal_skill",
    "model": "baseline_skill",
}
"""The measure that tells skill against a baseline of a kind."""


def climatology_crps(y: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> FloatArray:
    """CRPS at each row of the distribution of all y, such that the mean is unbiased.

    mean_{j≠i} |y_i − y_j| − Δ/2 with Δ the mean of |y_i − y_j| over pairs of different rows
    (Gini's mean difference). The mean over rows is Δ/2: in expectation, whatever n is, the CRPS of
    the distribution that y was drawn from. Lower is better, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened, at least two rows.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a value is missing or infinite, lengths differ, or the rows count as one or fewer.

    Notes
    -----
    The distribution of y in-sample scores (1 − 1/n) Δ/2, and without the row itself
    (1 + 1/(n − 1)) Δ/2 on average: this is the fair score (Ferro 2014) of an ensemble whose members
    are the other rows.

    Examples
    --------
    >>> climatology_crps([0.0, 2.0, 4.0])
    array([1.66666667, 0.66666667, 1.66666667])
    """
    truth, mass = _rows(y, weights)
    return _climatology_in_groups(truth, np.zeros(len(truth), dtype=np.int16), mass)[0]


def climatology_pinball(
    y: npt.ArrayLike, *, level: float, weights: npt.ArrayLike | None = None
) -> FloatArray:
    """Pinball loss at each row of the quantile of all y, such that the mean is nearly unbiased.

    The mean of the loss at the quantile of all rows, which flatters by about c/n, and at that of
    all other rows, which overdoes it by as much. Lower is better, in the units of y.

    Examples
    --------
    >>> climatology_pinball([0.0, 1.0, 5.0], level=0.5)
    array([1.   , 0.375, 2.125])
    """
    truth, mass = _rows(y, weights)
    inside, outside = _in_and_out(_RankedOutcomes.of(truth, mass), check_fraction(level, "level"))
    return 0.5 * (inside + outside)


def skill_score(
    scores: npt.ArrayLike,
    reference: npt.ArrayLike,
    *,
    weights: FloatArray | None = None,
    noise: float = 0.0,
) -> Estimate:
    """Share by which a mean score is lower than that of a reference; 1 is perfect, 0 no better.

    Parameters
    ----------
    scores, reference : array-like of shape (n,)
        Scores of the forecast and of the reference in the same rows, lower is better.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.
    noise : float
        Standard error of the mean of the reference that its row scores do not show, as they are of
        pairs of rows.

    Returns
    -------
    Estimate
        1 − S/R, with influence −(s_i − S)/R + S (r_i − R)/R². NaN where R is 0.

    Raises
    ------
    InputError
        If a score is missing, or lengths differ.

    Examples
    --------
    >>> skill_score([1.0, 2.0], [2.0, 4.0]).value
    0.5
    """
    own_scores = as_vector(scores, "scores", finite=False)
    other = as_vector(reference, "reference", length=len(own_scores), finite=False)
    mean = weighted_mean(own_scores, weights)
    if not math.isfinite(mean):
        return Estimate(math.nan, reason="some rows have an infinite score")
    base = weighted_mean(other, weights)
    if not base > 0.0:
        return Estimate(
            math.nan, reason="the score of the reference is 0, for example because y is constant"
        )
    if not mean < _MAX_RATIO * base:
        return Estimate(math.nan, reason=f"its score is over {_MAX_RATIO:g} times the reference's")
    ratio = mean / base
    influence = (ratio * (other - base) - (own_scores - mean)) / base
    count = float(len(own_scores)) if weights is None else float(weights.sum())
    seen_variance = weighted_mean(np.square(influence), weights) / max(count - 1.0, 1.0)
    hidden = (ratio * noise / base) ** 2
    if seen_variance > 0.0:
        influence *= math.sqrt(1.0 + hidden / seen_variance)
    return Estimate(1.0 - ratio, influence)


def pairing_gain(
    y: npt.ArrayLike,
    quantiles: npt.ArrayLike,
    levels: npt.ArrayLike,
    *,
    weights: FloatArray | None = None,
) -> Estimate:
    """By what share forecasts score better in their own rows than dealt to rows at random.

    1 − S/T, with S the mean pinball loss and T its mean over all pairs of a forecast and the y of
    another row. It is 0 on average for any forecast that does not know which row is which, however
    wrong it is; higher is better.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, one column per level.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        With influence −(s_i − S)/T + S (t_i − T)/T², where t_i is the mean loss of row i's forecast
        elsewhere and of others' forecasts in row i, less T. O(n log n).

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or the rows count as one or fewer.

    Examples
    --------
    >>> float(pairing_gain([0.0, 1.0], [[0.0], [1.0]], [0.5]))
    1.0
    >>> float(pairing_gain([0.0, 1.0], [[0.5], [0.5]], [0.5]))
    0.0
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    truth, mass = _rows(truth, weights)
    total, centre = float(mass.sum()), weighted_mean(truth, mass)
    rising = np.argsort(truth, kind="stable")
    off, mass_of = truth[rising] - centre, mass[rising]
    count = np.append(0.0, np.cumsum(mass_of))
    sums = np.append(0.0, np.cumsum(mass_of * off))
    scores, strange = np.zeros(len(truth)), np.zeros(len(truth))
    # of forecasts by the number of y below them, so that y needs no ranks among each level's
    forecasts, sums_of_forecasts = np.zeros_like(count), np.zeros_like(count)
    for column, level in zip(table.T, grid, strict=True):
        here, order = pinball(truth, column, level), np.argsort(column, kind="stable")
        moved, mass_of_moved = column[order] - centre, mass[order]
        rank = np.searchsorted(off, moved)  # in order, for the cache
        distance = moved * (2.0 * count[rank] - total) + sums[-1] - 2.0 * sums[rank]
        scores += here
        # a pinball loss is half a distance and a tilt
        strange[order] += 0.5 * np.maximum(distance, 0.0) / total - (level - 0.5) * moved
        forecasts += np.bincount(rank, weights=mass_of_moved, minlength=len(count))
        sums_of_forecasts += np.bincount(rank, weights=mass_of_moved * moved, minlength=len(count))
    below, sums_below = np.cumsum(forecasts), np.cumsum(sums_of_forecasts)
    distance = off * (2.0 * below[:-1] - below[-1]) + sums_below[-1] - 2.0 * sums_below[:-1]
    at_row = 0.5 * np.maximum(distance, 0.0) / total + float((grid - 0.5).sum()) * off
    strange[rising] += at_row - weighted_mean(at_row, mass_of)
    strange -= scores / total
    return skill_score(scores, strange * (total / (total - 1.0)), weights=weights)


def _rows(y: npt.ArrayLike, weights: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Values and their multiplicities, of more than one row."""
    truth = as_vector(y, "y")
    mass = np.ones(len(truth))
    if weights is not None:
        mass = as_vector(weights, "weights", length=len(truth))
    if not float(mass.sum()) > 1.0:
        raise DegenerateError(f"y needs more than one row with weight, got {mass.sum():g}")
    return truth, mass


class _RankedOutcomes(NamedTuple):
    """y, its distinct values in rising order, each row's rank, and the mass up to each value."""

    y: FloatArray
    values: FloatArray
    rank: IntArray
    below: FloatArray

    @classmethod
    def of(cls, y: FloatArray, mass: FloatArray) -> Self:
        values, rank = np.unique(y, return_inverse=True)
        return cls(y, values, rank, np.cumsum(np.bincount(rank, weights=mass)))


def _in_and_out(outcomes: _RankedOutcomes, level: float) -> tuple[FloatArray, FloatArray]:
    """Pinball loss at each row of the quantile of all rows, and of that of all others."""
    y, values, rank, below = outcomes
    total, of_others = float(below[-1]), np.zeros(len(y))
    reached = values[_reach(below, level * total)].mean()
    # without one row counts fall by one from its own value on
    here = _reach(below, level * (total - 1.0))
    behind = _reach(below, level * (total - 1.0) + 1.0)
    for before, after in zip(here, behind, strict=True):
        of_others += 0.5 * np.where(before < rank, values[before], values[after])
    return pinball(y, reached, level), pinball(y, of_others, level)


def _reach(below: FloatArray, count: float) -> list[int]:
    """Places of the first value that reaches a count of rows, and of the first that passes it."""
    slack = 1e-9 * float(below[-1])  # sums of weights are off by their last digits
    ends = np.searchsorted(below, (count - slack, count + slack))
    return [min(int(end), len(below) - 1) for end in ends]


def crps_skill(y: FloatArray, scores: FloatArray, *, weights: FloatArray | None = None) -> Estimate:
    """Of row scores that are CRPS."""
    truth, mass = _rows(y, weights)
    reference, noise = _climatology_in_groups(truth, np.zeros(len(truth), dtype=np.int16), mass)
    return skill_score(scores, reference, weights=weights, noise=noise)


def _skill_of_quantiles(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, *, weights: FloatArray | None = None
) -> Estimate:
    """By the CRPS between the outermost levels, of both."""
    scores = crps_quantiles(y, quantiles, levels)
    return skill_at_levels(scores, y, levels.tolist(), trapezoid(levels).tolist(), weights)


def _interval_skill(
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    coverage: float,
    weights: FloatArray | None = None,
) -> Estimate:
    miss = 0.5 * (1.0 - coverage)
    ends, factor = (miss, 1.0 - miss), 1.0 / miss
    scores = interval_score(y, lower, upper, coverage=coverage)
    return skill_at_levels(scores, y, ends, (factor, factor), weights)


def skill_at_levels(
    scores: FloatArray,
    y: FloatArray,
    levels: Sequence[float],
    factors: Sequence[float],
    weights: FloatArray | None,
) -> Estimate:
    """Against the climatology's pinball losses at several levels, summed with a factor each."""
    truth, mass = _rows(y, weights)
    total, noise = climatology_losses(truth, levels, factors, mass)
    return skill_score(scores, total, weights=weights, noise=noise)


def climatology_losses(
    y: FloatArray, levels: Iterable[float], factors: Iterable[float], mass: FloatArray
) -> tuple[FloatArray, float]:
    """Pinball losses of the quantiles of all y at several levels, summed with a factor each, and
    the noise of their mean that row scores do not show.

    The loss at a quantile of n rows is off by G²/(2 f n), G²/(τ(1 − τ)) being χ²₁, and the loss of
    all other rows less that of all is twice its mean, and so tells the error.
    """
    total, errors, outcomes = np.zeros(len(y)), [], _RankedOutcomes.of(y, mass)
    for level, factor in zip(levels, factors, strict=True):
        inside, outside = _in_and_out(outcomes, level)
        total += 0.5 * factor * (inside + outside)
        errors.append(factor * weighted_mean(outside - inside, mass) / math.sqrt(2.0))
    return total, _error_of_sum(np.array(errors), np.fromiter(levels, np.float64))


def _error_of_sum(errors: FloatArray, levels: FloatArray) -> float:
    """Of losses at quantiles with these errors: as squares of a Brownian bridge they correlate."""
    odds = levels / (1.0 - levels)
    squared = np.minimum.outer(odds, odds) / np.maximum.outer(odds, odds)  # the bridge's ρ²
    return math.sqrt(max(float(errors @ squared @ errors), 0.0))


def _within_groups(view: View, _: float) -> Estimate:
    """Against the distribution of y in the row's own group, of the column that tells most of y."""
    evalset = view.evalset
    columns = [
        (name, column.codes)
        for name, column in evalset.groups.items()
        if len(column.labels) <= MOST_LABELS
    ]
    if not columns:
        raise UnanswerableError("the table has no groups")
    of_law = view.find_prediction(Distribution) is not None
    scores = view.get("crps_of_law" if of_law else "crps_of_samples")
    weights = evalset.multiplicities
    mass = np.ones(evalset.n) if weights is None else weights
    skills: dict[str, Estimate] = {}
    for name, codes in columns:
        reference, noise = _climatology_in_groups(evalset.y, codes.astype(np.int16), mass)
        if np.isfinite(reference).all():  # else a row is alone in its group
            skill = skill_score(scores, reference, weights=weights, noise=noise)
            if math.isfinite(skill.value):
                skills[name] = skill
    if not skills:
        raise UnanswerableError("rows that are alone in their group have no distribution of y")
    lowest = min(skills, key=lambda name: skills[name].value)
    return replace(skills[lowest], details={"within": lowest, "columns": float(len(skills))})


def _climatology_in_groups(
    y: FloatArray, codes: IntArray, mass: FloatArray
) -> tuple[FloatArray, float]:
    """`climatology_crps` of each row's own group, NaN of lone rows, and the standard error of its
    mean that is due to pairs of rows alone.

    Of A_ij = |y_i − y_j| less its means by row and by column, E A² = 2 var y + Δ² − 2 E h² (h the
    mean distance of a row), and the second term of Hoeffding's decomposition has variance
    E A² / (2 n (n − 1)).
    """
    order = np.argsort(y, kind="stable")
    order = order[np.argsort(codes[order], kind="stable")]
    group, sorted_mass = codes[order], mass[order]
    add = partial(np.bincount, group)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], len(group)) - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        total = add(sorted_mass)
        off = y[order] - (add(sorted_mass * y[order]) / total)[group]
        unit = np.ones(len(total))  # sums of one group must not drown in those of another
        unit[group[first]] = np.maximum(np.abs(off[first]), np.abs(off[last]))
        off /= np.where(unit > 0.0, unit, 1.0)[group]
        count, sums = np.cumsum(sorted_mass), np.cumsum(sorted_mass * off)
        before = np.zeros((2, len(total)))
        before[:, group[first[1:]]] = count[last[:-1]], sums[last[:-1]]
        mass_of_group = total[group]
        distance = off * (2.0 * (count - before[0, group]) - mass_of_group)
        distance += add(sorted_mass * off)[group] - 2.0 * (sums - before[1, group])
        away = np.maximum(distance, 0.0) / np.where(
            mass_of_group > 1.0, mass_of_group - 1.0, np.nan
        )
        half = 0.5 * add(sorted_mass * away) / total
        square = 2.0 * add(sorted_mass * np.square(off)) / total + np.square(2.0 * half)
        square -= 2.0 * add(sorted_mass * np.square(away)) / total
        noise = unit * np.sqrt(np.maximum(square, 0.0) / (2.0 * total * (total - 1.0)))
    rows = np.empty(len(y))
    rows[order] = unit[group] * (away - half[group])
    shares = total / float(mass.sum())
    return rows, math.sqrt(float(np.square(noise * shares)[total > 1.0].sum()))


def _knowledge(view: View, _: float) -> tuple[FloatArray, FloatArray]:
    """Quantiles and their levels, at most nine."""
    table = view.find_prediction(Quantiles)
    if table is None:
        quantiles: FloatArray = view.ask("knowledge", "quantile", MIDPOINTS)
        return quantiles, MIDPOINTS
    view.note_source("knowledge", table.kind)
    chosen = np.unique(np.linspace(0, len(table.levels) - 1, len(MIDPOINTS)).round().astype(int))
    return table.values[:, chosen], table.levels[chosen]


def _pairing(
    y: FloatArray,
    knowledge: tuple[FloatArray, FloatArray],
    *,
    weights: FloatArray | None = None,
) -> Estimate:
    return pairing_gain(y, *knowledge, weights=weights)


_entry = partial(
    Metric,
    question=Question.SKILL,
    direction=Direction.HIGHER,
    standard_normal=0.0,
    bounds=(-math.inf, 1.0),
    merges="rows",
)
_CLIMATOLOGY = "The distribution of these y is known only afterwards."

_ENTRIES = (
    _entry(
        name="crps_skill",
        title="Skill in CRPS",
        synonyms=("skill", "CRPSS", "CRPS skill score", "skill against climatology"),
        meaning="Share by which the CRPS is lower than a climatology baseline (all y, for every "
        "row).",
        formula="1 − 2 mean CRPS / mean_{i≠j} |y_i − y_j|",
        source="Gneiting and Raftery 2007; fair scores of samples and reference by Ferro 2014",
        forms=(
            statistic(crps_skill, "y", "crps_of_law"),
            statistic(crps_skill, "y", "crps_of_samples"),
            statistic(_skill_of_quantiles, "y", "quantiles", "levels"),
        ),
        beware=f"{_CLIMATOLOGY} It rises with the spread of y in the rows chosen.",
    ),
    _entry(
        name="crps_skill_within",
        title="Skill in CRPS within groups",
        synonyms=("skill against climatology within groups",),
        meaning=(
            "Share by which the CRPS is lower than a climatology baseline within the row's own "
            "group, such as its hour; for the column of groups with the least skill."
        ),
        formula="1 − mean CRPS / mean of Δ_g / 2, Δ_g the mean of |y_i − y_j| within group g",
        source="as crps_skill",
        standard_normal=math.nan,
        forms=(estimated("skill_within_groups"),),
        beware=f"{_CLIMATOLOGY} In small groups it is based on few rows.",
    ),
    _entry(
        name="interval_skill",
        title="Skill in interval score",
        synonyms=("interval skill score", "interval score skill", "Winkler skill score"),
        meaning=(
            "Share by which the interval score is lower than a climatology baseline (the interval "
            "of all y, for every row)."
        ),
        formula="1 − mean interval score / that of the quantiles of y",
        source="Gneiting and Raftery 2007",
        forms=(
            Form(
                needs=("y", "lower", "upper"),
                keywords={"coverage": "coverage"},
                function=_interval_skill,
                reduce="statistic",
            ),
        ),
        calibration=True,
        per_coverage=True,
        beware=(
            f"{_CLIMATOLOGY} It rises with the spread of y in the rows chosen. With 100 rows or "
            "fewer, its 95 % interval contains the truth in 90 to 93 % of tables."
        ),
    ),
    _entry(
        name="pairing_gain",
        title="Gain from pairing",
        synonyms=("pairing test", "discrimination by pairing"),
        meaning="Share by which forecasts score better for their own rows than for rows assigned "
        "at random.",
        formula="1 − mean_i L(q_i, y_i) / mean_{i≠j} L(q_j, y_i), L the pinball loss",
        forms=(statistic(_pairing, "y", "knowledge"),),
        most_rows=_MAX_ROWS_OF_PAIRING,
        beware="It shows that forecasts discriminate between rows, not that they are right or "
        "useful.",
    ),
)


def skill_measure(evalset: EvalSet) -> str:
    """The measure of skill by which a model is judged: against its baseline, by its best score."""
    kind = next((baseline.kind for baseline in evalset.baselines if baseline.asked), None)
    if kind is not None:
        return MEASURE_OF[kind]
    kinds = {type(prediction) for prediction in evalset.predictions}
    if Probabilities in kinds:
        return "class_skill"
    return "crps_skill" if kinds - {Intervals} else "interval_skill"


def _skill(case: Case) -> Draft:
    judged = _judged(case)
    tests = len(judged)
    record = judged[0][0]
    worst, p = min(judged, key=lambda pair: pair[1])
    if p < _LEVEL / tests:
        record = worst
    return Draft(
        effect=record.value,
        lower=record.lower,
        upper=record.upper,
        p=min(1.0, tests * p),
        n=record.n,
        good=record.lower > TOLERANCE,
        caution=record.lower >= -TOLERANCE and record.upper <= TOLERANCE,
        facts={
            "record": record,
            "informed": _informed(case),
            "within": _within(case),
            "beside": [each for each in _naive(case) if each is not record],
        },
    )


def _judged(case: Case) -> list[tuple[Record, float]]:
    """The skill by which the state is told, then others that may be lost, each with its p.

    One-sided: the chance of a skill as low, were it as low as the tolerance allows.
    """
    if any(baseline.asked for baseline in case.evalset.baselines):
        record = case.get(skill_measure(case.evalset))
        _check_error(record)
        return [(record, float(record.options["p_of_loss"]))]
    naive = [(each, float(each.options["p_of_loss"])) for each in _naive(case)]
    try:
        return [_by_climatology(case), *naive]
    except UnanswerableError:
        if not naive:
            raise
        return sorted(naive, key=lambda pair: pair[0].value)


def _by_climatology(case: Case) -> tuple[Record, float]:
    """Skill against the distribution of y, by the score that tells most of the predictions."""
    try:
        record = case.get("crps_skill")
    except UnanswerableError:
        record = case.get("interval_skill")
    _check_error(record)
    dependent = case.evalset.units is not None
    if dependent and case.freedom + 1.0 < MIN_ROWS:
        raise UnanswerableError(
            f"the effective sample size is below {MIN_ROWS}, too few for a distribution"
        )
    # Of rows that depend, the distribution in hindsight flatters itself, as pairs of them are
    # close: by about the share that one independent row has of all.
    hindsight = 1.0 / (case.freedom + 1.0) if dependent else 0.0
    off = (record.value + TOLERANCE + hindsight) / record.standard_error
    return record, float(special.stdtr(case.freedom, off))


def _check_error(record: Record) -> None:
    if not record.standard_error > 0:
        raise UnanswerableError(record.reason or "every row has the same score as the reference")


def _naive(case: Case) -> list[Record]:
    """Skill against what anyone could have predicted at the time."""
    records = (case.records.get(MEASURE_OF[kind]) for kind in ("persistence", "seasonal"))
    return [record for record in records if record is not None and record.standard_error > 0]


def _informed(case: Case) -> bool:
    """Whether forecasts are proven to fit their own rows better than others."""
    gain = case.records.get("pairing_gain")
    return gain is not None and gain.lower > 0


def _within(case: Case) -> Record | None:
    """The skill within groups, where it is proven to be negative in the one of several columns."""
    record = case.records.get("crps_skill_within")
    if record is None or not record.standard_error > 0:
        return None
    level = 1.0 - 0.025 / float(record.options["columns"])
    reach = float(special.stdtrit(case.freedom, level)) * record.standard_error
    return record if max(record.upper, record.value + reach) < 0.0 else None


def _skill_words(draft: Draft, finding: Finding) -> Words:
    record = draft.facts["record"]
    baseline, own = _rival(record, ""), f"{small(100.0 * abs(record.value), 1)} %"
    sentence = f"The {_score(record)} is {_compared(record)} than {_rival(record)}"
    within, also = draft.facts["within"], [*map(_also, draft.facts["beside"])]
    if within is not None:
        size = f"{small(-100.0 * within.value, 1)} %{span(within, times=-100.0)}"
        also.append(
            f"The CRPS is {size} higher than the distribution of y in the same "
            f"{within.options['within']}, known only in hindsight."
        )
    more = " ".join(filter(None, also))
    if finding.state == "good":
        return Words(sentence, more=more, clause=f"{own} better than {baseline}")
    if draft.caution:
        ends = (record.value, record.lower, record.upper)
        skill, low, high = (fixed(100.0 * each, 1, trim=True) for each in ends)
        clause = f"no better than {baseline} (skill {skill} %, {low} to {high})"
        return Words(f"Predictions are {clause}", more=more, clause=clause)
    discriminates = "Forecasts do discriminate between rows." if draft.facts["informed"] else ""
    more = f"{discriminates} {more}".strip()
    if finding.state == "undecided":
        sentence = f"{sentence}. No significant gain or loss"
        return Words(sentence, more=more, clause=f"possibly no better than {baseline}")
    return Words(sentence, "the baseline is better", more=more, clause=f"{baseline} is better")


def _rival(record: Record, gloss: str = " (the distribution of y for every row)") -> str:
    """What predictions are compared with; `gloss` explains climatology."""
    return str(record.options.get("baseline", f"a climatology baseline{gloss}"))


def _score(record: Record) -> str:
    """By which score."""
    if record.metric == "crps_skill" and record.source == Samples.kind:
        return "fair CRPS"
    named = {"crps_skill": "CRPS", "interval_skill": "interval score"}.get(record.metric)
    return named or str(record.options["score"])


def _compared(record: Record) -> str:
    """By how much the score is lower or higher."""
    way, side = ("lower", 100.0) if record.value >= 0 else ("higher", -100.0)
    return f"{small(side * record.value, 1)} % {way}{span(record, times=side)}"


def _also(record: Record) -> str:
    """What is said beside the reference by which the state is told; empty where it is open."""
    if record.lower <= 0.0 <= record.upper:
        return ""
    return f"The {_score(record)} is {_compared(record)} than {_rival(record)}."


FINDINGS = (
    FindingQuestion(
        id="skill",
        asked="Does it beat a baseline?",
        label="Skill",
        unit="ratio − 1",
        draft=_skill,
        words=_skill_words,
        tolerance=TOLERANCE,
        margin=math.nan,
        measures=("crps_skill", "interval_skill", *MEASURE_OF.values()),
        told_by=("crps_skill_within", "pairing_gain"),
        needs="Needed for skill: inputs that are informative about y.",
        sought="skill",
        healed="aimed",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    findings=FINDINGS,
    arrays=(
        Array("knowledge", _knowledge, predicted=True),
        Array("skill_within_groups", _within_groups),
    ),
    label="Skill",
    title="Does it beat a baseline?",
)
