"""Does coverage, bias or spread change with time?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from howsure.core import formats
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, p_words, percent
from howsure.core.labels import Categories
from howsure.core.records import Axis, Curve, Direction, Layout, Notion
from howsure.engine.autocorrelation import MAX_BATCHES
from howsure.engine.finding import (
    MARGIN,
    SDS,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    between,
    known_drift,
    points,
)
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    SHARE,
    Array,
    Metric,
    Question,
    Topic,
    estimated,
    stated,
)
from howsure.engine.view import View
from howsure.stats.binomial import clopper_pearson
from howsure.stats.changes import Change, Level, find_changes
from howsure.stats.estimate import Estimate, weighted_mean
from howsure.topics.calibration.components import MOVED, scale_of, shift_of
from howsure.topics.coverage import unequal_hits

# Points of a curve that a figure shows apart; each has 50 rows at least. By hand; not tuned.
WINDOWS = 60
# More than the batches, which are at most so many.
MIN_CLUSTERS = MAX_BATCHES + 1
"""Clusters that must follow each other in time to be the rows that stay together: more than the
batches that stand for rows which depend, since these tell too little of when.
"""
# Half a point, as shown: a claim that moves by less reads the same.
_MIN_CHANGE_OF_CLAIM = 0.005
# The usual level, of words under a figure.
_LEVEL = 0.05
# Share of the change off by which a side is still right. By hand; it decides words alone.
_SHARE_OF_CHANGE = 0.2
Natural = Callable[[float], float]


@frozen
class PitDrift:
    """Changes of the first two components of the PIT."""

    bias: Estimate
    spread: Estimate


def _times(view: View, _: float) -> Categories:
    """The times of the rows, in rising order."""
    if view.evalset.time is None:
        raise UnanswerableError("the table has no time")
    return Categories.checked(view.evalset.time, "time")


def _units(view: View, _: float) -> IntArray:
    """Numbers of the times, or of what clusters hold together in time, shape (n,)."""
    times: IntArray = view.get("times").codes
    cluster = view.evalset.cluster
    if cluster is None:
        return times
    if len(cluster.labels) < 2:
        raise UnanswerableError("all rows are one cluster")
    joined = _joined(times, cluster.codes)
    return joined if joined.max() + 1 >= MIN_CLUSTERS else times


def _joined(times: IntArray, cluster: IntArray) -> IntArray:
    """Numbers of the stretches of time that no cluster reaches beyond."""
    count = int(times.max()) + 1
    first, last = np.full(cluster.max() + 1, count), np.zeros(cluster.max() + 1, dtype=np.int64)
    np.minimum.at(first, cluster, times)
    np.maximum.at(last, cluster, times)
    open_clusters = np.cumsum(
        np.bincount(first, minlength=count) - np.bincount(last, minlength=count)
    )
    stretch = np.append(0, np.cumsum(open_clusters[:-1] == 0))
    return np.asarray(stretch[times])


def _changes(view: View, series: FloatArray) -> list[Change | None]:
    weights, times = view.evalset.weights, view.evalset.chronology
    if times is not None and times.few:
        raise UnanswerableError("dependent rows are too few to detect a change")
    noise = None
    if weights is not None and weights.kind == "importance":
        noise = np.square(weights.values)
    return find_changes(
        series,
        view.get("units_of_time"),
        mass=None if weights is None else weights.values,
        noise=noise,
        confidence=view.confidence,
        seed=view.seed,
    )


def _coverage_drift(view: View, coverage: float) -> Estimate:
    """Of hits less what each row claims."""
    units: IntArray = view.get("units_of_time")
    hits = unequal_hits(view, coverage)
    claimed = np.zeros(len(hits)) if math.isnan(coverage) else view.get("claim", coverage)
    change = _changes(view, (hits - claimed)[None])[0]
    if change is None:
        raise UnanswerableError("coverage is the same at all times")
    weights = view.evalset.multiplicities

    def claim(part: BoolArray) -> float:
        return weighted_mean(claimed[part], None if weights is None else weights[part])

    def share(level: Level, claim: float) -> float:
        return min(max(level.mean + claim, 0.0), 1.0)

    since = units >= change.start
    claims = claim(~since), claim(since)
    before, after = share(change.before, claims[0]), share(change.after, claims[1])
    latest = share(change.latest, claim(units >= change.late))
    details = {
        **_details_of(view, change, before, after, latest),
        **_ends(partial(_share_ends, view.confidence), change, after, latest),
    }
    if abs(claims[1] - claims[0]) > _MIN_CHANGE_OF_CLAIM:
        details |= {"claimed_before": claims[0], "claimed_after": claims[1]}
    if math.isnan(coverage):
        del details["wrong"]
    return _estimate(change, 1.0, details)


def _pit_drift(view: View, _: float) -> PitDrift:
    placed = view.get("placed")
    view.get("units_of_time")  # or the reason why there are none
    series = placed.polynomials(placed.place(0.0, 1.0))[:2]
    changes = _changes(view, series)
    estimates = []
    for change, name, natural in zip(changes, MOVED, (shift_of, scale_of), strict=False):
        if change is None:
            estimates.append(Estimate(math.nan, reason=f"the {name} is the same at all times"))
            continue
        levels = (change.before, change.after, change.latest)
        before, after, latest = (natural(level.mean) for level in levels)

        def ends(level: Level, _: float, natural: Natural = natural) -> tuple[float, float]:
            reach = level.reach(view.confidence)
            return natural(level.mean - reach), natural(level.mean + reach)

        details = _details_of(view, change, before, after, latest) | _ends(
            ends, change, after, latest
        )
        estimates.append(_estimate(change, MOVED[name], details))
    return PitDrift(*estimates)


def _details_of(
    view: View, change: Change, before: float, after: float, latest: float
) -> dict[str, str | float]:
    units, times = view.get("units_of_time"), view.get("times")
    start = int(times.codes[units >= change.start].min())
    return {
        "when": _when(view, start),
        "before": before,
        "after": after,
        "latest": latest,
        "wrong": _wrong(change, view.confidence),
    }


def _ends(
    of: Callable[[Level, float], tuple[float, float]], change: Change, after: float, latest: float
) -> dict[str, float]:
    """Ends of the intervals about the level since the change, and about the latest one."""
    bounds: dict[str, float] = {}
    for name, level, value in (("after", change.after, after), ("latest", change.latest, latest)):
        bounds[f"{name}_lower"], bounds[f"{name}_upper"] = of(level, value)
    return bounds


def _share_ends(confidence: float, level: Level, share: float) -> tuple[float, float]:
    low, high = clopper_pearson(share * level.rows, level.rows, confidence=confidence)
    return float(low), float(high)


def _wrong(change: Change, confidence: float) -> str:
    """On which side of the change predictions are off: after, before, or throughout."""
    little = _SHARE_OF_CHANGE * abs(change.size)
    right = [
        abs(side.mean) <= max(side.reach(confidence), little)
        for side in (change.before, change.after)
    ]
    return "after" if right[0] else "before" if right[1] else "throughout"


def _estimate(change: Change, unit: float, details: Mapping[str, str | float]) -> Estimate:
    return Estimate(
        unit * abs(change.size),
        details={"way": "up" if change.size > 0 else "down", **details},
        error=unit * change.error,
        lower=unit * change.lower,
        upper=min(unit * change.upper, 1.0),
        null=unit * change.null,
        null_lower=0.0,
        null_upper=unit * change.null_upper,
        p=change.p,
    )


def _when(view: View, start: int) -> str:
    """The time of a change; where single rows are not told of, the mean of as many as may be."""
    times: Categories = view.get("times")
    fewest = view.evalset.fewest
    if fewest == 1:
        return stamp(times.labels, start)
    rising = np.sort(times.codes)
    row = int(np.searchsorted(rising, start))
    first = max(min(row - fewest // 2, len(rising) - fewest), 0)
    near = times.labels[rising[first : first + fewest]]
    if near.dtype.kind == "M":
        mean = near.astype("datetime64[s]").astype(np.int64).mean().astype("datetime64[s]")
    elif near.dtype.kind in "iuf":
        mean = near.mean()
    else:
        return f"row {row + 1:,} of {len(rising):,} in time"
    return _written(mean, times.labels)


def stamp(times: AnyArray, place: int) -> str:
    """One of some rising times as people write it: as a date, where all are whole days."""
    return _written(times[place], times)


def _written(value: Any, times: AnyArray) -> str:
    """A time to the unit of others."""
    if times.dtype.kind == "M":
        for unit in ("D", "m", "s"):
            if (times == times.astype(f"datetime64[{unit}]")).all():
                return str(value.astype(f"datetime64[{unit}]")).replace("T", " ")
        return str(value).replace("T", " ")
    return f"time {value:.6g}" if times.dtype.kind in "biuf" else str(value)


def _rolling_coverage(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Coverage in windows of equal numbers of rows, in order of time."""
    evalset, view = evaluation.evalset, evaluation.view
    times: Categories = view.get("times")
    coverage = evaluation.coverages[-1]
    covered = view.get("covered", coverage)
    claimed = np.full(evalset.n, math.nan)
    if not math.isnan(coverage):
        claimed = view.get("claimed", coverage)
    order = np.argsort(times.codes, kind="stable")
    count = max(min(WINDOWS, len(order) // 50), 1)
    window = np.arange(len(order)) * count // len(order)
    weights = evalset.multiplicities
    mass = np.ones(len(order)) if weights is None else weights[order]
    n = np.bincount(window, weights=mass)
    share = np.bincount(window, weights=mass * covered[order]) / n
    reference = np.bincount(window, weights=mass * claimed[order]) / n
    edges = np.flatnonzero(np.diff(window, prepend=-1, append=count))
    middle = (edges[:-1] + edges[1:]) // 2
    hits = np.minimum(np.round(share * n), n)  # n is no whole number where weights are none
    lower, upper = clopper_pearson(hits, n, confidence=confidence)
    labels = times.labels
    if labels.dtype.kind == "M":
        labels = labels.astype("datetime64[ms]")
    x = middle.astype(np.float64)
    if labels.dtype.kind in "iufMb":
        rising = labels[times.codes[order]].astype(np.float64)
        x = rising[middle]
        if evalset.fewest > 1:  # the mean time: that of the middle row is a row's own
            x = np.bincount(window, weights=rising) / np.bincount(window)
    at = formats.level(confidence)
    return [
        Curve(
            name="rolling_coverage",
            x=x,
            y=share,
            lower=np.asarray(lower),
            upper=np.asarray(upper),
            reference=reference,
            x_label="Time (ms since 1970)" if labels.dtype.kind == "M" else "Time",
            y_label=f"Empirical coverage of {round(len(order) / count):,} rows",
            band=f"{at} binomial interval in each window, rows taken as independent",
            model=evalset.model,
            notes=_in_words(view, coverage),
        )
    ]


def _in_words(view: View, coverage: float) -> str:
    """What the test says of the curve."""
    try:
        estimate: Estimate = view.get("coverage_drift", coverage)
    except UnanswerableError as reason:
        return f"Drift is not tested: {reason}."
    details = estimate.details
    before, after = (percent(float(details[name])) for name in ("before", "after"))
    sentence = f"The clearest change is from {before} to {after} around {details['when']}"
    proof = "not significant evidence of drift" if estimate.p >= _LEVEL else "significant"
    return f"{sentence} ({p_words(estimate.p)}): {proof}."


_entry = partial(
    Metric,
    question=Question.TIME,
    direction=Direction.LOWER,
    source="CUSUM test by permuted batches; Shao and Zhang 2010, Kiefer and Vogelsang 2005",
    merges="rows",
    standard_normal=math.nan,
    notion=Notion.LOCAL,
    target=0.0,
    bounds=SHARE,
    beware=(
        "The change point is chosen where the change is clearest, so compare the value with that "
        "of stationary rows, not with 0."
    ),
)

_ENTRIES = (
    _entry(
        name="coverage_drift",
        title="Largest change of coverage over time",
        synonyms=("drift",),
        meaning="Change of coverage minus nominal coverage at the clearest change point in time.",
        formula="max over splits in time of |mean (c − p) after − before|, the clearest one",
        forms=(estimated("coverage_drift"),),
        per_coverage=True,
    ),
    _entry(
        name="bias_drift",
        title="Largest change of bias over time",
        meaning="Largest change of a predicted probability due to a change of bias over time.",
        formula="max over splits in time of |mean φ_1 after − before| · max |∫φ_1|",
        forms=(stated("pit_drift", "bias"),),
    ),
    _entry(
        name="spread_drift",
        title="Largest change of spread over time",
        meaning="Largest change of a predicted probability due to a change of spread over time.",
        formula="max over splits in time of |mean φ_2 after − before| · max |∫φ_2|",
        forms=(stated("pit_drift", "spread"),),
    ),
)


def _drift(case: Case) -> Draft:
    """Of coverage, spread and bias what is proven to have changed most."""
    records = {name: record for name in _SIGNALS if (record := known_drift(case, name)) is not None}
    if not records:
        case.get("coverage_drift")
    families = len({name == "coverage" for name in records})  # bias and spread have one test
    least = min(record.p for record in records.values())
    clear = [name for name in records if records[name].p <= _FACTOR_OF_EQUAL_P * least]
    name = max(clear, key=lambda each: records[each].lower)  # the first of equals
    record = records[name]
    sign = 1.0 if record.options["way"] == "up" else -1.0
    ends = sorted((sign * record.lower, sign * record.upper))
    if record.lower == 0:
        ends = [-record.upper, record.upper]
    return Draft(
        effect=sign * record.value,
        lower=ends[0],
        upper=ends[1],
        p=min(families * least, 1.0),
        where=f"from {record.options['when']} on",
        n=record.n,
        good=max(record.upper for record in records.values()) <= MARGIN,
        facts={"record": record, "signal": name},
    )


_SIGNALS = ("coverage", "spread", "bias")
# P-values are as clear as the least up to this factor: they are drawn.
_FACTOR_OF_EQUAL_P = 3.0


def _drift_words(draft: Draft, finding: Finding) -> Words:
    options, signal = draft.facts["record"].options, str(draft.facts["signal"])
    before, after, latest = (float(options[name]) for name in ("before", "after", "latest"))
    low, high = float(options["after_lower"]), float(options["after_upper"])
    what, unit = {
        "coverage": ("coverage", ""),
        "spread": ("actual errors", " × the predicted spread"),
        "bias": ("y − prediction", f" {SDS}"),
    }[signal]
    times, places = (100.0, 1) if signal == "coverage" else (1.0, 2)

    def in_words(value: float) -> str:
        return percent(value) if signal == "coverage" else fixed(value, 2)

    way = "rose" if draft.effect > 0 else "fell"
    moved = {"coverage": way, "spread": "changed", "bias": "moved"}[signal]
    interval = between(times * low, times * high, places)
    levels = f"from {in_words(before)} to {in_words(after)}{interval}{unit}"
    if "claimed_after" in options:
        claim, later = (percent(float(options[f"claimed_{side}"])) for side in ("before", "after"))
        what = "coverage relative to nominal"
        levels = (
            f"from {in_words(before)} ({claim} expected) to {in_words(after)} ({later} expected)"
        )
    fault = {"coverage": "coverage", "spread": "the spread", "bias": "the bias"}[signal] + " drifts"
    margin = points(max(MARGIN, finding.tolerance))
    well = f"changes stay within {margin}"
    if signal != "coverage":
        well = f"no probability shifts by {margin}"
    if finding.state not in ("bad", "negligible"):
        verb = "change" if signal == "spread" else "changes"
        begins = what if signal == "bias" else what.capitalize()
        return Words(f"{begins} {verb} most around {options['when']}, {levels}", fault, well)
    sentence = f"Around {options['when']} {what} {moved} {levels}"
    if finding.state == "negligible":
        return Words(sentence, fault, well)
    clause = f"{what} {moved} {levels} around {options['when']}"
    sure = points(draft.facts["record"].lower)
    more = f"It {way} by at least {sure}."
    if signal != "coverage":
        more = f"Predicted probabilities shifted by at least {sure}."
    if not low <= latest <= high:
        more += f" Over the last tenth of rows it is {in_words(latest)}."
    return Words(sentence, fault, well, more, clause=clause)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("times", _times),
        Array("units_of_time", _units),
        Array("coverage_drift", _coverage_drift, per_coverage=True),
        Array("pit_drift", _pit_drift),
    ),
    curves=(_rolling_coverage,),
    findings=(
        FindingQuestion(
            id="drift",
            asked="Does coverage change over time?",
            label="Drift",
            draft=_drift,
            words=_drift_words,
            measures=("coverage_drift", "bias_drift", "spread_drift"),
            cause="the drift",
            needs=(
                "Needed for drift: a longer history since the change, or a model trained on recent "
                "rows."
            ),
        ),
    ),
    label="Time",
    layouts={
        "rolling_coverage": Layout(
            order=12,
            question="Is coverage stable over time?",
            title="Rolling coverage",
            reading=(
                "Below the dashed line the intervals under-cover, above it they over-cover. Single "
                "windows deviate by chance; a lasting shift is drift."
            ),
            x=Axis(title="Time"),
            y=Axis(title="Empirical coverage", kind="percent"),
            data="in the window",
            reference="nominal",
            band="band",
        ),
    },
)
