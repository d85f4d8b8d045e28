"""The same measures within groups, and whether chance explains how groups differ.

Two questions are kept apart. Is a group's coverage the one that its rows claim (exact binomial
tests, Holm-adjusted)? Do groups differ among themselves at all (a test of the largest deviation
from what all rows lead one to expect)? A model that under-covers everywhere fails the first and
passes the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.brief import brief_repr
from howsure.core.errors import UnanswerableError, attempt
from howsure.core.formats import listed
from howsure.core.labels import Categories, joint
from howsure.core.layouts import TableLayout
from howsure.core.records import Notion, Record, Table
from howsure.core.rng import child
from howsure.core.times import Chronology
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import LEVEL, Parts
from howsure.engine.measure import Evaluation, evaluate, unknown
from howsure.engine.metric import MOST_LABELS, Metric
from howsure.engine.recording import of_its_rows, record_of
from howsure.predictions import EvalSet
from howsure.stats.binomial import binomial_test, clopper_pearson, holm
from howsure.stats.estimate import Estimate, Spread, like_rows, share_ends, skewed_ends, spread_of
from howsure.stats.permutation import groups_differ
from howsure.topics.group_scores import (
    ERRORS,
    FEWEST_UNITS,
    errors_differ,
    group_scores,
    p_value,
    spells_in,
)

TABLES = {
    "groups": TableLayout(
        title="Coverage by group", ranks=lambda table: table.columns["upper"], figure="cover"
    )
}
"""How the table of groups is shown."""

STATISTIC_ROWS = 50_000
STATISTIC_GROUPS = 100
MOST_DRAWS = 9_999
_WORLDS = 199
_CHUNK = 2_000_000
_LEVELS = 40
"""Per unit of arcsin √p: chances of one level differ by less than .025 in that."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to divide the rows: a column, or a pair of columns."""

    name: str  # column name, or two names joined by ` × `
    codes: IntArray  # shape (n,): the group of each row
    labels: tuple[str, ...]  # names of the groups, as `column=value`


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What groups tell: records, the table of coverages, and notes on what was left out."""

    records: tuple[Record, ...]
    table: Table | None
    notes: tuple[str, ...]

    __repr__ = brief_repr


def groupings(evalset: EvalSet) -> tuple[tuple[Grouping, ...], tuple[str, ...]]:
    """Each group column and each pair of them, with notes on those that are left out.

    They have too many labels, or groups of fewer rows than may be told of.
    """
    made: list[Grouping] = []
    notes: list[str] = []
    for name, column in evalset.groups.items():
        if len(column.labels) > MOST_LABELS:
            notes.append(
                f"column {name} has {len(column.labels):,} labels; groups are assessed up to "
                f"{MOST_LABELS:,}"
            )
            continue
        labels = tuple(f"{name}={label}" for label in column.labels.tolist())
        made.append(Grouping(name, column.codes, labels))
    made = _large(evalset, made, notes)
    crossed: list[Grouping] = []
    for first, second in itertools.combinations(made, 2):
        width = len(second.labels)
        codes = Categories.from_codes(
            first.codes * width + second.codes, np.arange(len(first.labels) * width)
        )
        name = f"{first.name} × {second.name}"
        if len(codes.labels) > MOST_LABELS:
            notes.append(f"{name} has {len(codes.labels):,} groups, too many to assess")
            continue
        pairs = [divmod(int(code), width) for code in codes.labels]
        labels = tuple(f"{first.labels[i]}, {second.labels[j]}" for i, j in pairs)
        crossed.append(Grouping(name, codes.codes, labels))
    return (*made, *_large(evalset, crossed, notes)), tuple(notes)


def _large(evalset: EvalSet, divided: list[Grouping], notes: list[str]) -> list[Grouping]:
    """Those whose groups all have the fewest rows of which anything may be told."""
    if evalset.fewest == 1:
        return divided
    kept: list[Grouping] = []
    for each in divided:
        if _smallest(evalset, each) >= evalset.fewest:
            kept.append(each)
        else:
            notes.append(f"{each.name} has groups of fewer than {evalset.fewest} rows: left out")
    return kept


def _smallest(evalset: EvalSet, grouping: Grouping) -> float:
    """Rows of the smallest group, each as often as its frequency says."""
    weights = evalset.weights
    frequent = weights is not None and weights.kind == "frequency"
    rows = _counts(evalset, grouping) if frequent else np.bincount(grouping.codes)
    return float(rows.min())


def assess_groups(
    evaluation: Evaluation,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    statistics: bool = False,
    tests: GroupReport | None = None,
) -> GroupReport:
    """Every measure in every group, the tests of chance, and the worst group.

    `tests` is what `compare_groups` found, where that was asked.
    """
    divided, _ = groupings(evaluation.evalset)
    records: list[Record] = []
    left_out: list[str] = []
    for grouping in divided:
        records.extend(means_in_groups(evaluation, grouping, confidence))
        if statistics or (
            evaluation.evalset.n <= STATISTIC_ROWS and len(grouping.labels) <= STATISTIC_GROUPS
        ):
            records.extend(_statistics(evaluation, grouping, confidence, seed))
        else:
            left_out.append(grouping.name)
    if tests is None:
        tests = compare_groups(evaluation, confidence=confidence, seed=seed)
    notes = tests.notes
    if left_out:
        told = (
            f"of groups by {listed(left_out, most=3)} only means of rows are told: past "
            f"{STATISTIC_ROWS:,} rows or {STATISTIC_GROUPS} groups --with group_statistics asks "
            "for all measures"
        )
        notes = (*notes, told)
    return replace(tests, records=(*records, *tests.records), notes=notes)


def means_in_groups(
    evaluation: Evaluation, grouping: Grouping, confidence: float = 0.95
) -> list[Record]:
    """Every measure that is a mean, in every group of one grouping."""
    return [
        record
        for whole in evaluation.records
        if math.isnan(whole.coverage) or whole.coverage in evaluation.coverages
        for record in attempt(
            f"{whole.metric} in groups of {whole.model}",
            partial(_means, evaluation, grouping, whole, confidence),
            partial(_unanswered, grouping, whole),
        )
    ]


def compare_groups(
    evaluation: Evaluation,
    divided: Sequence[Grouping] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> GroupReport:
    """The tests of chance and the worst group alone; of all groupings, unless some are given."""
    notes: tuple[str, ...] = ()
    if divided is None:
        divided, notes = groupings(evaluation.evalset)
    if not divided:
        return GroupReport((), None, notes)
    records: list[Record] = []
    shown: Table | None = None
    entries, evalset = catalogue(), evaluation.evalset
    for coverage in evaluation.coverages:
        if evaluation.row_scores("empirical_coverage", coverage) is None:
            continue
        means = cache(partial(_coverages, evaluation, divided, coverage))
        found = attempt(
            f"groups_differ of {evalset.model}",
            partial(_difference, evaluation, divided, means, coverage, confidence, seed),
            unknown,
        )
        records.append(record_of(entries["groups_differ"], found, evalset, coverage=coverage))
        table = attempt(
            f"coverage in groups of {evalset.model}",
            partial(_coverage_table, evaluation, divided, means, coverage, confidence),
            lambda _: None,
        )
        if table is None:
            continue
        shown = table
        found, named = attempt(
            f"worst_group_shortfall of {evalset.model}",
            partial(_shortfall, evaluation, divided, means, coverage, confidence, seed),
            lambda reason: (unknown(reason), {}),
        )
        record = record_of(entries["worst_group_shortfall"], found, evalset, coverage=coverage)
        records.append(replace(record, **named))
    if evalset.beliefs and ERRORS in entries:
        found = attempt(
            f"{ERRORS} of {evalset.model}",
            partial(errors_differ, evaluation.view, divided, confidence=confidence),
            unknown,
        )
        records.append(record_of(entries[ERRORS], found, evalset))
    return GroupReport(tuple(records), shown, notes)


def _unanswered(grouping: Grouping, record: Record, reason: str) -> list[Record]:
    """The record of all rows without its numbers, for every group."""
    gone = dict.fromkeys(("value", "standard_error", "lower", "upper", "null"), math.nan)
    lost: Record = replace(record, **gone, notion=Notion.GROUP, reason=reason)  # type: ignore[arg-type]
    return [replace(lost, group=label) for label in grouping.labels]


def _counts(evalset: EvalSet, grouping: Grouping, values: FloatArray | None = None) -> FloatArray:
    """Weighted sums of row values within each group; of ones if no values are given."""
    size = len(grouping.labels)
    weights = None if evalset.weights is None else evalset.weights.values
    if values is not None:
        weights = values if weights is None else values * weights
    return np.bincount(grouping.codes, weights=weights, minlength=size).astype(np.float64)


def rows_in_groups(evalset: EvalSet, grouping: Grouping) -> FloatArray:
    """How many rows of each group count: their frequencies, or Kish's number of them."""
    total = _counts(evalset, grouping)
    if evalset.weights is None or evalset.weights.kind == "frequency":
        return total
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.square(total) / _counts(evalset, grouping, evalset.weights.values))


def _means(
    evaluation: Evaluation, grouping: Grouping, whole: Record, confidence: float
) -> list[Record]:
    """Records of a metric that is a mean, for every group of one grouping; none of others."""
    scores = evaluation.row_scores(whole.metric, whole.coverage)
    if scores is None:
        return []
    evalset, metric = evaluation.evalset, catalogue()[whole.metric]
    means = group_means(evalset, grouping, scores, metric)
    low, high = means.ends(1.0 - (1.0 - confidence) / len(means.total))
    value, error, n = means.value, means.error, means.n
    if math.isfinite(whole.value) and math.isnan(whole.lower):  # then no group has an interval
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    shared = replace(whole, notion=Notion.GROUP, confidence=confidence, null=math.nan)
    made = (
        replace(
            shared,
            value=float(value[g]),
            standard_error=float(error[g]),
            lower=float(low[g]),
            upper=float(high[g]),
            n=float(n[g]),
            group=label,
        )
        for g, label in enumerate(grouping.labels)
    )
    return [of_its_rows(record, evalset) for record in made]


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """Means of row scores in each group, and what their errors follow from."""

    metric: Metric  # what the scores are of
    # shape (k,): weight, mean, and rows that count
    total: FloatArray
    value: FloatArray
    n: FloatArray
    spread: Spread | None  # none of a share of independent rows, whose law is exact

    @property
    def share(self) -> bool:
        return any(form.reduce == "share" for form in self.metric.forms)

    @property
    def error(self) -> FloatArray:
        if self.spread is not None:
            return self.spread.error
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = np.where(self.total > 1.0, self.total - 1.0, np.nan)
            return np.asarray(np.sqrt(self.value * (1.0 - self.value) / rest))

    def ends(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Of the intervals at a level of confidence."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.spread is None:
                hits = np.round(self.value * self.total)
                low, high = clopper_pearson(hits, self.total, confidence=level)
                return np.asarray(low), np.asarray(high)
            if self.share:
                return share_ends(self.value, self.spread, self.n, level)
            squares = any(form.squares for form in self.metric.forms)
            low, high = skewed_ends(self.value, self.spread, level, squares=squares)
        bottom, top = self.metric.bounds
        return np.maximum(low, bottom), np.minimum(high, top)


def group_means(
    evalset: EvalSet, grouping: Grouping, scores: FloatArray, metric: Metric
) -> GroupMeans:
    """Means of row scores in each group."""
    share = any(form.reduce == "share" for form in metric.forms)
    rows, total = scores.astype(np.float64, copy=False), _counts(evalset, grouping)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, n = _counts(evalset, grouping, rows) / total, rows_in_groups(evalset, grouping)
        if share and evalset.independent:
            return GroupMeans(metric, total, value, n, None)
        spread = _spread(evalset, grouping, rows - value[grouping.codes], share=share)
    return GroupMeans(metric, total, value, n, spread)


def _spread(evalset: EvalSet, grouping: Grouping, psi: FloatArray, *, share: bool) -> Spread:
    """How far the mean of each group strays."""
    units = evalset.units
    if share and isinstance(units, Chronology):
        units = units.hiding(units.size)
    return spread_of(psi, evalset.weights, units, grouping.codes, len(grouping.labels))


_Means = Callable[[], tuple[GroupMeans, ...]]
"""Coverage in the groups of each grouping, when first asked for."""


def _coverages(
    evaluation: Evaluation, divided: Sequence[Grouping], coverage: float
) -> tuple[GroupMeans, ...]:
    scores = evaluation.row_scores("empirical_coverage", coverage)
    assert scores is not None
    metric = catalogue()["empirical_coverage"]
    return tuple(group_means(evaluation.evalset, each, scores, metric) for each in divided)


def _independent(evalset: EvalSet, grouping: Grouping, means: GroupMeans) -> FloatArray:
    """How many units each group has: rows, effective rows in time, or clusters."""
    if evalset.chronology is not None:
        assert means.spread is not None
        return means.spread.units
    if evalset.cluster is None:
        return means.n
    clusters = len(evalset.cluster.labels)
    held = np.unique(grouping.codes * clusters + evalset.cluster.codes)
    return np.bincount(held // clusters, minlength=len(grouping.labels)).astype(np.float64)


def _statistics(
    evaluation: Evaluation, grouping: Grouping, confidence: float, seed: int
) -> list[Record]:
    """Records of metrics that are not means, group by group."""
    entries = catalogue()
    names = [
        name
        for name, metric in entries.items()
        if any(form.reduce == "statistic" for form in metric.forms)
    ]
    answered = {record.metric for record in evaluation.records if not math.isnan(record.value)}
    answered -= {key.metric for key in evaluation.scores}  # whose groups are told by `_means`
    names = [name for name in names if name in answered and not entries[name].slow]
    known = [c for c in evaluation.coverages if not math.isnan(c)]
    level = 1.0 - (1.0 - confidence) / len(grouping.labels)
    order = np.argsort(grouping.codes, kind="stable")
    ends = np.cumsum(np.bincount(grouping.codes, minlength=len(grouping.labels)))
    records: list[Record] = []
    for label, rows in zip(grouping.labels, np.split(order, ends[:-1]), strict=True):
        part = evaluate(
            evaluation.evalset.take(rows),
            coverages=known,
            metrics=names,
            confidence=level,
            seed=seed,
            miss_range=evaluation.view.miss_range,
        )
        records.extend(
            replace(r, group=label, notion=Notion.GROUP, confidence=confidence)
            for r in part.records
        )
    return records


def _coverage_table(
    evaluation: Evaluation,
    divided: Sequence[Grouping],
    means: _Means,
    coverage: float,
    confidence: float,
) -> Table:
    """Coverage of every group with its band, its exact test and the Holm adjustment."""
    evalset = evaluation.evalset
    parts: dict[str, list[npt.NDArray[Any]]] = {key: [] for key in _COLUMNS}
    for grouping, each in zip(divided, means(), strict=True):
        total, value = each.total, each.value
        low, high = each.ends(1.0 - (1.0 - confidence) / len(total))
        width = _mean_width(evaluation, grouping, total, coverage)
        claimed = _claimed(evaluation, grouping, total, coverage)
        parts["grouping"].append(np.full(len(total), grouping.name, dtype=object))
        parts["group"].append(np.array(grouping.labels, dtype=object))
        for key, column in zip(
            _COLUMNS[2:], (each.n, value, low, high, claimed - value, width, claimed), strict=True
        ):
            parts[key].append(np.broadcast_to(column, total.shape).astype(np.float64))
    columns = {key: np.concatenate(part) for key, part in parts.items()}
    columns["nominal"] = np.full(len(columns["n"]), coverage)
    raw = np.full(len(columns["n"]), np.nan)
    if evalset.independent and not math.isnan(coverage):
        hits = np.round(columns["empirical_coverage"] * columns["n"])
        raw = np.asarray(binomial_test(hits, columns["n"], columns["claimed"]))
    columns["p_value"] = raw
    columns["adjusted_p_value"] = holm(raw) if not np.isnan(raw).any() else raw
    return Table(
        name="groups",
        columns=columns,
        model=evalset.model,
        notes=(
            f"Bands are simultaneous for all groups of a grouping ({confidence:.0%}). P-values are "
            "exact binomial against the claims, Holm-adjusted over all groups."
        ),
    )


_COLUMNS = (
    "grouping",
    "group",
    "n",
    "empirical_coverage",
    "lower",
    "upper",
    "shortfall",
    "mean_width",
    "claimed",
)


def _mean_width(
    evaluation: Evaluation, grouping: Grouping, total: FloatArray, coverage: float
) -> FloatArray:
    scores = evaluation.row_scores("mean_width", coverage)
    if scores is None:
        return np.full(len(total), np.nan)
    return _counts(evaluation.evalset, grouping, scores) / total


def _claimed(
    evaluation: Evaluation, grouping: Grouping, total: FloatArray, coverage: float
) -> FloatArray:
    """Mean of what the rows of each group claim; unequal claims spread less than their mean.

    So the binomial law of the mean is conservative in both tails (Hoeffding 1956).
    """
    if math.isnan(coverage):
        return np.full(len(total), np.nan)
    rows = evaluation.view.get("claimed", coverage)
    if (rows == rows[0]).all():
        return np.full(len(total), rows[0])
    return np.clip(_counts(evaluation.evalset, grouping, rows) / total, 0.0, 1.0)


def difference(
    evaluation: Evaluation,
    divided: Sequence[Grouping],
    coverage: float,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The test of chance alone, of some groupings."""
    means = cache(partial(_coverages, evaluation, divided, coverage))
    return _difference(evaluation, divided, means, coverage, confidence, seed)


def _difference(
    evaluation: Evaluation,
    divided: Sequence[Grouping],
    means: _Means,
    coverage: float,
    confidence: float,
    seed: int,
) -> Estimate:
    """Do groups differ at all? The test of the largest standardised deviation from all rows."""
    evalset = evaluation.evalset
    scores = evaluation.row_scores("empirical_coverage", coverage)
    assert scores is not None
    expected = evaluation.view.get("expected_coverage", coverage)
    level = 1.0 - (1.0 - confidence) / sum(len(grouping.labels) for grouping in divided)
    if not evalset.independent:
        return _robust_difference(evalset, divided, means(), scores - expected, expected, level)
    cells = _cells(divided)
    free = bool((expected != expected[0]).any())
    if free:  # rows of one cell and nearly one chance are drawn together
        cells = joint(cells, np.floor(_LEVELS * np.arcsin(np.sqrt(expected))).astype(np.int64))
    place = _one_of_each(cells)
    whole = Grouping("cells", cells, ("",) * len(place))
    sizes = np.round(_counts(evalset, whole)).astype(np.int64)
    hits = np.round(_counts(evalset, whole, scores.astype(np.float64))).astype(np.int64)
    chances = _counts(evalset, whole, expected) / np.maximum(sizes, 1) if free else None
    tested = groups_differ(
        sizes,
        hits,
        [grouping.codes[place] for grouping in divided],
        child(seed, "groups differ"),
        MOST_DRAWS,
        chances=None if chances is None else np.clip(chances, 0.0, 1.0),
        staged=True,
    )
    if tested.note:
        raise UnanswerableError(tested.note)
    first = sum(len(grouping.labels) for grouping in divided[: tested.grouping])
    details = {
        "statistic": tested.statistic,
        "permutations": float(tested.resamples),
        **_parts(evalset, divided, means(), expected, level).named(first + tested.group)[1],
    }
    return p_value(tested.p_value, details)


def _parts(
    evalset: EvalSet,
    divided: Sequence[Grouping],
    means: Sequence[GroupMeans],
    expected: FloatArray,
    level: float,
) -> Parts:
    """All groups of all groupings, beside what all rows lead one to expect."""
    columns = [
        (each.value, _counts(evalset, grouping, expected) / each.total, *each.ends(level), each.n)
        for grouping, each in zip(divided, means, strict=True)
    ]
    labels = [label for grouping in divided for label in grouping.labels]
    return Parts(labels, *map(np.concatenate, zip(*columns, strict=True)))


def _robust_difference(
    evalset: EvalSet,
    divided: Sequence[Grouping],
    means: Sequence[GroupMeans],
    off: FloatArray,
    expected: FloatArray,
    level: float,
) -> Estimate:
    """The same of weighted or clustered rows: Student's t of each group, Bonferroni over all."""
    units, hidden = None, None
    if evalset.chronology is not None:
        pairs = zip(divided, means, strict=True)
        units = np.concatenate([_independent(evalset, *pair) for pair in pairs])
        hidden = evalset.chronology.size
    noise = expected * (1.0 - expected)
    found = group_scores(evalset, divided, off, noise, units=units, hidden=hidden)
    tested, what, few, p = found.tested, found.what, found.few, found.p
    if not tested.any():
        raise UnanswerableError(f"no group of at least {FEWEST_UNITS} {what} to compare")
    farthest = int(np.lexsort((found.own, p))[0])
    value = min(1.0, float(p[farthest] * tested.sum()))
    named, apart = _parts(evalset, divided, means, expected, level).named(
        farthest, tested & (p * tested.sum() < LEVEL)
    )
    here, spells = min(1.0, float(found.own[named] * tested.sum())), float(found.spells[named])
    details = {
        "statistic": float(abs(found.t[farthest])),
        **({"spells": spells, "p_here": here} if spells else {}),
        **apart,
    }
    left_out = f"groups of fewer than {FEWEST_UNITS} {what} are left out: {few}" if few else ""
    return p_value(value, details, left_out)


def _cells(divided: Sequence[Grouping]) -> IntArray:
    """The finest division that all groupings share, as codes from 0."""
    return joint(*(grouping.codes for grouping in divided))


def _one_of_each(cells: IntArray) -> IntArray:
    """A row of each cell."""
    rows = np.empty(int(cells.max()) + 1, dtype=np.int64)
    rows[cells] = np.arange(len(cells))
    return rows


def _shortfall(
    evaluation: Evaluation,
    divided: Sequence[Grouping],
    means: _Means,
    coverage: float,
    confidence: float,
    seed: int,
) -> tuple[Estimate, dict[str, Any]]:
    """The group that is proven to fall short by most, or else the lowest beside its claim."""
    if math.isnan(coverage):
        raise UnanswerableError("the nominal coverage of the intervals is unknown")
    evalset = evaluation.evalset
    scores = evaluation.row_scores("empirical_coverage", coverage)
    assert scores is not None
    labels = [label for grouping in divided for label in grouping.labels]
    level = 1.0 - (1.0 - confidence) / len(labels)
    parts = []
    for grouping, each in zip(divided, means(), strict=True):
        due = _claimed(evaluation, grouping, each.total, coverage)
        expected = due[grouping.codes]
        visits = spells_in(evalset, grouping, scores - expected, expected * (1.0 - expected))
        units = _independent(evalset, grouping, each)
        parts.append((each.value, each.error, *each.ends(level), each.n, due, units, *visits))
    cover, error, low, high, size, claimed, units, spells, p_spells = map(
        np.concatenate, zip(*parts, strict=True)
    )
    least = claimed - high
    judged = np.isfinite(cover)
    if not evalset.independent:
        judged &= units >= FEWEST_UNITS
    if not judged.any():
        raise UnanswerableError(f"no group of at least {FEWEST_UNITS} clusters")
    proven = judged & (least > 0)
    rank = np.where(proven, least, -np.inf) if proven.any() else claimed - cover
    worst = int(np.argmax(np.where(judged, rank, -np.inf)))
    raw = np.full(len(cover), np.nan)
    rows, hits = size[judged], np.round(cover[judged] * size[judged])
    if not evalset.independent:
        rows = like_rows(cover, error, size, units, level)[judged]
        hits = np.clip(cover[judged], 0.0, 1.0) * rows
    here = binomial_test(hits, rows, claimed[judged])
    raw[judged] = np.fmax(here, p_spells[judged])
    null = _worst_by_chance(evaluation, divided, coverage, seed)
    ends = np.quantile(null, (0.025, 0.975)) if len(null) else (math.nan, math.nan)
    shortfall = Estimate(
        float(claimed[worst] - cover[worst]),
        null=float(null.mean()) if len(null) else math.nan,
        null_lower=float(ends[0]),
        null_upper=float(ends[1]),
        reason="" if proven.any() else "no group is proven to fall short",
        details={
            "claimed": float(claimed[worst]),
            **({"spells": float(spells[worst])} if spells[worst] else {}),
        },
        lower=float(least[worst]),
        upper=float(claimed[worst] - low[worst]),
        p=float(holm(raw)[worst]),
    )
    return shortfall, {"group": labels[worst], "n": float(size[worst])}


def _worst_by_chance(
    evaluation: Evaluation, divided: Sequence[Grouping], coverage: float, seed: int
) -> FloatArray:
    """The largest shortfall of any group, in draws of a perfect model; none where rows depend."""
    evalset = evaluation.evalset
    if evalset.units is not None:
        return np.empty(0)
    cells = _cells(divided)
    place = _one_of_each(cells)
    whole = Grouping("cells", cells, ("",) * len(place))
    total = _counts(evalset, whole)
    kept = total > 0
    trials = total.copy()
    if evalset.weights is not None and evalset.weights.kind == "importance":
        squares = _counts(evalset, whole, evalset.weights.values)
        trials[kept] = np.maximum(np.square(total[kept]) / squares[kept], 1.0)
    counts: IntArray = np.round(trials[kept]).astype(np.int64)
    trials, total = counts.astype(np.float64), total[kept]
    claimed = _claimed(evaluation, whole, np.where(kept, _counts(evalset, whole), 1.0), coverage)
    claimed = claimed[kept]
    rng = child(seed, "worst group")
    worst = np.full(_WORLDS, -np.inf)
    step = max(1, _CHUNK // len(counts))
    for start in range(0, _WORLDS, step):
        size = (min(step, _WORLDS - start), len(counts))
        hits: FloatArray = rng.binomial(counts, claimed, size).astype(np.float64)
        off = (claimed - hits / trials) * total
        part = worst[start : start + len(off)]
        for grouping in divided:
            codes = grouping.codes[place][kept]
            order = np.argsort(codes, kind="stable")
            starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
            sums = np.add.reduceat(off[:, order], starts, axis=1)
            mass = np.add.reduceat(total[order], starts)
            np.maximum(part, (sums / mass).max(axis=1), out=part)
    return worst
