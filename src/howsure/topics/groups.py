"""The same measures within groups, and whether chance explains how groups differ.

Two questions are kept apart. Is a group's coverage the one that its rows claim (exact binomial
tests, Holm-adjusted)? Do groups differ among themselves at all (a test of the largest deviation
from what all rows lead one to expect)? A model that under-covers everywhere fails the first and
passes the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError, attempt, either
from howsure.core.formats import listed
from howsure.core.labels import Categories, joint
from howsure.core.records import Notion, Record, ResultTable, TableLayout
from howsure.core.rng import child
from howsure.core.times import Chronology
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import LEVEL, Parts
from howsure.engine.measure import Evaluation, evaluate, of_its_rows, record_of, unknown
from howsure.engine.metric import MOST_LABELS, Metric
from howsure.predictions import EvalSet
from howsure.stats.binomial import binomial_test, clopper_pearson, holm
from howsure.stats.estimate import Estimate, Spread, like_rows, share_ends, skewed_ends, spread_of
from howsure.stats.permutation import groups_differ
from howsure.topics.group_scores import (
    ERRORS,
    MIN_UNITS,
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

# Statistics of groups take time in rows and groups; means are sums. By hand; not tuned.
MAX_ROWS_OF_STATISTICS = 50_000
# The same.
MAX_GROUPS_OF_STATISTICS = 100
# As many as any test of the verdict: p = .005 is known to .0007.
MAX_DRAWS = 9_999
# Draws of the largest shortfall by chance, for a mean and a 95 % range of it.
_WORLDS = 199
# 2 million counts of 64 bits are 16 MB.
_COUNTS_AT_ONCE = 2_000_000
# Per unit of arcsin √p: chances of one level differ by less than .025 in that, which is .015 at a
# coverage of 90 % and .025 at 50 %.
_STEPS_OF_CHANCE = 40


@frozen
class Grouping:
    """One way to divide the rows: a column, or a pair of columns."""

    name: str  # column name, or two names joined by ` × `
    codes: IntArray  # shape (n,): the group of each row
    labels: tuple[str, ...]  # names of the groups, as `column=value`


@frozen
class GroupReport:
    """What groups tell: records, the table of coverages, and notes on what was left out."""

    records: tuple[Record, ...]
    table: ResultTable | None
    notes: tuple[str, ...]


def groupings(evalset: EvalSet) -> tuple[tuple[Grouping, ...], tuple[str, ...]]:
    """Each group column and each pair of them, with notes on those that are left out.

    They have too many labels, or groups of fewer rows than may be told of.
    """
    single: list[Grouping] = []
    notes: list[str] = []
    for name, column in evalset.groups.items():
        if len(column.labels) > MOST_LABELS:
            notes.append(
                f"column {name} has {len(column.labels):,} labels; at most {MOST_LABELS:,} groups "
                "are assessed"
            )
            continue
        labels = tuple(f"{name}={label}" for label in column.labels.tolist())
        single.append(Grouping(name, column.codes, labels))
    single = _large(evalset, single, notes)
    crossed: list[Grouping] = []
    for first, second in itertools.combinations(single, 2):
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
    return (*single, *_large(evalset, crossed, notes)), tuple(notes)


def _large(evalset: EvalSet, divided: list[Grouping], notes: list[str]) -> list[Grouping]:
    """Those whose groups all have the fewest rows of which anything may be told."""
    if evalset.fewest == 1:
        return divided
    large: list[Grouping] = []
    for grouping in divided:
        if _smallest(evalset, grouping) >= evalset.fewest:
            large.append(grouping)
        else:
            notes.append(
                f"{grouping.name} has groups of fewer than {evalset.fewest} rows: left out"
            )
    return large


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
            evaluation.evalset.n <= MAX_ROWS_OF_STATISTICS
            and len(grouping.labels) <= MAX_GROUPS_OF_STATISTICS
        ):
            records.extend(_statistics(evaluation, grouping, confidence, seed))
        else:
            left_out.append(grouping.name)
    if tests is None:
        tests = compare_groups(evaluation, confidence=confidence, seed=seed)
    notes = tests.notes
    if left_out:
        also = either("howsure.Options(also={'group_statistics'})", "--also group_statistics")
        note = (
            f"for groups by {listed(left_out, most=3)} only means of rows are reported: above "
            f"{MAX_ROWS_OF_STATISTICS:,} rows or {MAX_GROUPS_OF_STATISTICS} groups, {also} adds "
            "all measures"
        )
        notes = (*notes, note)
    return replace(tests, records=(*records, *tests.records), notes=notes)


def means_in_groups(
    evaluation: Evaluation, grouping: Grouping, confidence: float = 0.95
) -> list[Record]:
    """Every measure that is a mean, in every group of one grouping."""
    return [
        record
        for record_of_all in evaluation.records
        if math.isnan(record_of_all.coverage) or record_of_all.coverage in evaluation.coverages
        for record in attempt(
            f"{record_of_all.metric} in groups of {record_of_all.model}",
            partial(_means, evaluation, grouping, record_of_all, confidence),
            partial(_unanswered, grouping, record_of_all),
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
    shown: ResultTable | None = None
    entries, evalset = catalogue(), evaluation.evalset
    for coverage in evaluation.coverages:
        if evaluation.row_scores("empirical_coverage", coverage) is None:
            continue
        compared = GroupComparison(evaluation, divided, coverage, confidence, seed)
        estimate = attempt(f"groups_differ of {evalset.model}", compared.difference, unknown)
        records.append(record_of(entries["groups_differ"], estimate, evalset, coverage=coverage))
        table = attempt(f"coverage in groups of {evalset.model}", compared.table, lambda _: None)
        if table is None:
            continue
        shown = table
        estimate, named = attempt(
            f"worst_group_shortfall of {evalset.model}",
            compared.shortfall,
            lambda reason: (unknown(reason), {}),
        )
        record = record_of(entries["worst_group_shortfall"], estimate, evalset, coverage=coverage)
        records.append(replace(record, **named))
    if evalset.predictions and ERRORS in entries:
        estimate = attempt(
            f"{ERRORS} of {evalset.model}",
            partial(errors_differ, evaluation.view, divided, confidence=confidence),
            unknown,
        )
        records.append(record_of(entries[ERRORS], estimate, evalset))
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
    evaluation: Evaluation, grouping: Grouping, record_of_all: Record, confidence: float
) -> list[Record]:
    """Records of a metric that is a mean, for every group of one grouping; none of others."""
    scores = evaluation.row_scores(record_of_all.metric, record_of_all.coverage)
    if scores is None:
        return []
    evalset = evaluation.evalset
    means = group_means(evalset, grouping, scores, catalogue()[record_of_all.metric])
    records = records_of_means(means, grouping, record_of_all, confidence)
    return [of_its_rows(record, evalset) for record in records]


def records_of_means(
    means: GroupMeans, grouping: Grouping, record_of_all: Record, confidence: float
) -> list[Record]:
    """Records of the means in the groups of one grouping."""
    low, high = means.ends(1.0 - (1.0 - confidence) / len(means.total))
    value, error, n = means.value, means.error, means.n
    if math.isfinite(record_of_all.value) and math.isnan(
        record_of_all.lower
    ):  # then no group has an interval
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    shared = replace(record_of_all, notion=Notion.GROUP, confidence=confidence, null=math.nan)
    return [
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
    ]


@frozen
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
            freedom = np.where(self.total > 1.0, self.total - 1.0, np.nan)
            return np.asarray(np.sqrt(self.value * (1.0 - self.value) / freedom))

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


@dataclass(frozen=True)
class GroupComparison:
    """Coverage in the groups of all groupings at one coverage, beside what all rows lead one to
    expect of them."""

    evaluation: Evaluation
    groupings: Sequence[Grouping]
    coverage: float
    confidence: float = 0.95
    seed: int = 0

    @property
    def evalset(self) -> EvalSet:
        return self.evaluation.evalset

    @cached_property
    def hits(self) -> FloatArray:
        """Whether each row is covered."""
        scores = self.evaluation.row_scores("empirical_coverage", self.coverage)
        assert scores is not None
        return scores.astype(np.float64)

    @cached_property
    def means(self) -> tuple[GroupMeans, ...]:
        """Coverage in the groups of each grouping."""
        metric = catalogue()["empirical_coverage"]
        return tuple(group_means(self.evalset, each, self.hits, metric) for each in self.groupings)

    @property
    def labels(self) -> list[str]:
        """Those of all groups."""
        return [label for grouping in self.groupings for label in grouping.labels]

    @property
    def level(self) -> float:
        """The confidence of the interval of one group, such that those of all hold together."""
        return 1.0 - (1.0 - self.confidence) / len(self.labels)

    def claims(self, grouping: Grouping, total: FloatArray) -> FloatArray:
        """Mean of what the rows of each group claim; unequal claims spread less than their mean.

        So the binomial law of the mean is conservative in both tails (Hoeffding 1956).
        """
        if math.isnan(self.coverage):
            return np.full(len(total), np.nan)
        rows = self.evaluation.view.get("claimed", self.coverage)
        if (rows == rows[0]).all():
            return np.full(len(total), rows[0])
        return np.clip(_counts(self.evalset, grouping, rows) / total, 0.0, 1.0)

    def table(self) -> ResultTable:
        """Coverage of every group with its band, its exact test and the Holm adjustment."""
        evalset, parts = self.evalset, []
        widths = self.evaluation.row_scores("mean_width", self.coverage)
        for grouping, means in zip(self.groupings, self.means, strict=True):
            total, value = means.total, means.value
            low, high = means.ends(1.0 - (1.0 - self.confidence) / len(total))
            width = np.full(len(total), np.nan)
            if widths is not None:
                width = _counts(evalset, grouping, widths) / total
            claimed = self.claims(grouping, total)
            names = np.full(len(total), grouping.name, dtype=object)
            labels = np.array(grouping.labels, dtype=object)
            numbers = (means.n, value, low, high, claimed - value, width, claimed)
            parts.append((names, labels, *(column.astype(np.float64) for column in numbers)))
        columns: dict[str, AnyArray] = {
            name: np.concatenate(part)
            for name, part in zip(_COLUMNS, zip(*parts, strict=True), strict=True)
        }
        columns["nominal"] = np.full(len(columns["n"]), self.coverage)
        p = np.full(len(columns["n"]), np.nan)
        if evalset.independent and not math.isnan(self.coverage):
            hits = np.round(columns["empirical_coverage"] * columns["n"])
            p = np.asarray(binomial_test(hits, columns["n"], columns["claimed"]))
        columns["p_value"] = p
        columns["adjusted_p_value"] = holm(p) if not np.isnan(p).any() else p
        return ResultTable(
            name="groups",
            columns=columns,
            model=evalset.model,
            notes=(
                f"Bands are simultaneous for all groups of a grouping ({self.confidence:.0%}). "
                "P-values are exact binomial against the nominal coverage, Holm-adjusted over all "
                "groups."
            ),
        )

    def difference(self) -> Estimate:
        """Do groups differ at all? The test of the largest standardised deviation from all rows."""
        evalset, groupings = self.evalset, self.groupings
        expected = self.evaluation.view.get("expected_coverage", self.coverage)
        if not evalset.independent:
            return self.robust_difference(expected)
        cells = joint(*(grouping.codes for grouping in groupings))
        free = bool((expected != expected[0]).any())
        if free:  # rows of one cell and nearly one chance are drawn together
            cells = joint(
                cells, np.floor(_STEPS_OF_CHANCE * np.arcsin(np.sqrt(expected))).astype(np.int64)
            )
        rows, all_cells = _rows_of_cells(cells)
        sizes = np.round(_counts(evalset, all_cells)).astype(np.int64)
        hits = np.round(_counts(evalset, all_cells, self.hits)).astype(np.int64)
        chances = None
        if free:
            chances = np.clip(
                _counts(evalset, all_cells, expected) / np.maximum(sizes, 1), 0.0, 1.0
            )
        tested = groups_differ(
            sizes,
            hits,
            [grouping.codes[rows] for grouping in groupings],
            child(self.seed, "groups differ"),
            MAX_DRAWS,
            chances=chances,
            staged=True,
        )
        if tested.note:
            raise UnanswerableError(tested.note)
        first = sum(len(grouping.labels) for grouping in groupings[: tested.grouping])
        details = {
            "statistic": tested.statistic,
            "permutations": float(tested.resamples),
            **self.parts(expected).named(first + tested.group)[1],
        }
        return p_value(tested.p_value, details)

    def parts(self, expected: FloatArray) -> Parts:
        """All groups of all groupings, beside what all rows lead one to expect."""
        columns = [
            (
                means.value,
                _counts(self.evalset, grouping, expected) / means.total,
                *means.ends(self.level),
                means.n,
            )
            for grouping, means in zip(self.groupings, self.means, strict=True)
        ]
        return Parts(self.labels, *map(np.concatenate, zip(*columns, strict=True)))

    def robust_difference(self, expected: FloatArray) -> Estimate:
        """The same of weighted or clustered rows: Student's t of each, Bonferroni over all."""
        evalset, groupings = self.evalset, self.groupings
        units, hidden = None, None
        if evalset.chronology is not None:
            pairs = zip(groupings, self.means, strict=True)
            units = np.concatenate([_independent(evalset, *pair) for pair in pairs])
            hidden = evalset.chronology.size
        noise = expected * (1.0 - expected)
        scores = group_scores(
            evalset, groupings, self.hits - expected, noise, units=units, hidden=hidden
        )
        tested, what, few, p = scores.tested, scores.what, scores.few, scores.p
        if not tested.any():
            raise UnanswerableError(f"no group of at least {MIN_UNITS} {what} to compare")
        farthest = int(np.lexsort((scores.own, p))[0])
        value = min(1.0, float(p[farthest] * tested.sum()))
        group, details_of_group = self.parts(expected).named(
            farthest, tested & (p * tested.sum() < LEVEL)
        )
        here, spells = (
            min(1.0, float(scores.own[group] * tested.sum())),
            float(scores.spells[group]),
        )
        details = {
            "statistic": float(abs(scores.t[farthest])),
            **({"spells": spells, "p_here": min(1.0, here)} if spells else {}),
            **details_of_group,
        }
        left_out = f"groups of fewer than {MIN_UNITS} {what} are left out: {few}" if few else ""
        return p_value(value, details, left_out)

    def shortfall(self) -> tuple[Estimate, dict[str, Any]]:
        """The group that is proven to fall short by most, or else the lowest beside its claim."""
        if math.isnan(self.coverage):
            raise UnanswerableError("the nominal coverage of the intervals is unknown")
        evalset, level, parts = self.evalset, self.level, []
        for grouping, means in zip(self.groupings, self.means, strict=True):
            due = self.claims(grouping, means.total)
            expected = due[grouping.codes]
            visits = spells_in(evalset, grouping, self.hits - expected, expected * (1.0 - expected))
            units = _independent(evalset, grouping, means)
            parts.append(
                (means.value, means.error, *means.ends(level), means.n, due, units, *visits)
            )
        cover, error, low, high, size, claimed, units, spells, p_spells = map(
            np.concatenate, zip(*parts, strict=True)
        )
        least = claimed - high
        judged = np.isfinite(cover)
        if not evalset.independent:
            judged &= units >= MIN_UNITS
        if not judged.any():
            raise UnanswerableError(f"no group of at least {MIN_UNITS} clusters")
        proven = judged & (least > 0)
        rank = np.where(proven, least, -np.inf) if proven.any() else claimed - cover
        worst = int(np.argmax(np.where(judged, rank, -np.inf)))
        p = np.full(len(cover), np.nan)
        rows, hits = size[judged], np.round(cover[judged] * size[judged])
        if not evalset.independent:
            rows = like_rows(cover, error, size, units, level)[judged]
            hits = np.clip(cover[judged], 0.0, 1.0) * rows
        p[judged] = np.fmax(binomial_test(hits, rows, claimed[judged]), p_spells[judged])
        null = self.worst_by_chance()
        ends = np.quantile(null, (0.025, 0.975)) if len(null) else (math.nan, math.nan)
        shortfall = Estimate(
            float(claimed[worst] - cover[worst]),
            null=float(null.mean()) if len(null) else math.nan,
            null_lower=float(ends[0]),
            null_upper=float(ends[1]),
            reason="" if proven.any() else "no group under-covers significantly",
            details={
                "claimed": float(claimed[worst]),
                **({"spells": float(spells[worst])} if spells[worst] else {}),
            },
            lower=float(least[worst]),
            upper=float(claimed[worst] - low[worst]),
            p=float(holm(p)[worst]),
        )
        return shortfall, {"group": self.labels[worst], "n": float(size[worst])}

    def worst_by_chance(self) -> FloatArray:
        """The largest shortfall of a group in draws of a perfect model; none where rows depend."""
        evalset = self.evalset
        if evalset.units is not None:
            return np.empty(0)
        rows, all_cells = _rows_of_cells(joint(*(grouping.codes for grouping in self.groupings)))
        total = _counts(evalset, all_cells)
        filled = total > 0
        trials = total.copy()
        if evalset.weights is not None and evalset.weights.kind == "importance":
            squares = _counts(evalset, all_cells, evalset.weights.values)
            trials[filled] = np.maximum(np.square(total[filled]) / squares[filled], 1.0)
        counts: IntArray = np.round(trials[filled]).astype(np.int64)
        claimed = self.claims(all_cells, np.where(filled, total, 1.0))[filled]
        trials, total = counts.astype(np.float64), total[filled]
        rng = child(self.seed, "worst group")
        worst = np.full(_WORLDS, -np.inf)
        step = max(1, _COUNTS_AT_ONCE // len(counts))
        for start in range(0, _WORLDS, step):
            size = (min(step, _WORLDS - start), len(counts))
            hits: FloatArray = rng.binomial(counts, claimed, size).astype(np.float64)
            off = (claimed - hits / trials) * total
            chunk = worst[start : start + len(off)]
            for grouping in self.groupings:
                codes = grouping.codes[rows][filled]
                order = np.argsort(codes, kind="stable")
                starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
                sums = np.add.reduceat(off[:, order], starts, axis=1)
                mass = np.add.reduceat(total[order], starts)
                np.maximum(chunk, (sums / mass).max(axis=1), out=chunk)
        return worst


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


def _rows_of_cells(cells: IntArray) -> tuple[IntArray, Grouping]:
    """A row of each cell, and the cells as groups without names."""
    rows = np.empty(int(cells.max()) + 1, dtype=np.int64)
    rows[cells] = np.arange(len(cells))
    return rows, Grouping("cells", cells, ("",) * len(rows))


def _independent(evalset: EvalSet, grouping: Grouping, means: GroupMeans) -> FloatArray:
    """How many units each group has: rows, effective rows in time, or clusters."""
    if evalset.chronology is not None:
        assert means.spread is not None
        return means.spread.units
    if evalset.cluster is None:
        return means.n
    clusters = len(evalset.cluster.labels)
    clusters_of_groups = np.unique(grouping.codes * clusters + evalset.cluster.codes)
    return np.bincount(clusters_of_groups // clusters, minlength=len(grouping.labels)).astype(
        np.float64
    )


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
    coverages = [c for c in evaluation.coverages if not math.isnan(c)]
    level = 1.0 - (1.0 - confidence) / len(grouping.labels)
    order = np.argsort(grouping.codes, kind="stable")
    ends = np.cumsum(np.bincount(grouping.codes, minlength=len(grouping.labels)))
    records: list[Record] = []
    for label, rows in zip(grouping.labels, np.split(order, ends[:-1]), strict=True):
        of_group = evaluate(
            evaluation.evalset.take(rows),
            coverages=coverages,
            metrics=names,
            confidence=level,
            seed=seed,
            miss_range=evaluation.view.miss_range,
        )
        records.extend(
            replace(r, group=label, notion=Notion.GROUP, confidence=confidence)
            for r in of_group.records
        )
    return records
