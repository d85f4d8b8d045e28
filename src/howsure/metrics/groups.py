"""The same measures within groups, and whether chance explains how groups differ.

Two questions are kept apart. Is a group's coverage the nominal one (exact binomial tests,
Holm-adjusted)? Do groups differ among themselves at all (a permutation test of the largest
deviation)? A model that under-covers everywhere fails the first and passes the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, power_of_two
from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.labels import Categories
from howsure.core.records import Notion, Record, Table
from howsure.core.rng import child
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import Evaluation, evaluate, unknown
from howsure.metrics.metric import Metric
from howsure.metrics.recording import record_of
from howsure.predictions import EvalSet
from howsure.stats.binomial import binomial_test, clopper_pearson, holm
from howsure.stats.estimate import Estimate
from howsure.stats.permutation import groups_differ

MOST_LABELS = 1_000
STATISTIC_ROWS = 50_000
STATISTIC_GROUPS = 100


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to divide the rows: a column, or a pair of columns.

    Attributes
    ----------
    name : str
        Column name, or two names joined by `` × ``.
    codes : ndarray of int, shape (n,)
        The group of each row.
    labels : tuple of str
        Names of the groups, as ``column=value``.
    """

    name: str
    codes: IntArray
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What groups tell: records, the table of coverages, and notes on what was left out."""

    records: tuple[Record, ...]
    table: Table | None
    notes: tuple[str, ...]


def groupings(evalset: EvalSet) -> tuple[tuple[Grouping, ...], tuple[str, ...]]:
    """Each group column and each pair of them, with notes on those that have too many labels."""
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
    for first, second in itertools.combinations(tuple(made), 2):
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
        made.append(Grouping(name, codes.codes, labels))
    return tuple(made), tuple(notes)


def assess_groups(
    evaluation: Evaluation, *, confidence: float = 0.95, seed: int = 0, statistics: bool = False
) -> GroupReport:
    """Every measure in every group, the tests of chance, and the worst group."""
    divided, notes = groupings(evaluation.evalset)
    if not divided:
        return GroupReport((), None, notes)
    records: list[Record] = []
    for grouping in divided:
        for whole in evaluation.records:
            records.extend(
                attempt(
                    f"{whole.metric} in groups of {whole.model}",
                    partial(_means, evaluation, grouping, whole, confidence),
                    partial(_unanswered, grouping, whole),
                )
            )
        if statistics or (
            evaluation.evalset.n <= STATISTIC_ROWS and len(grouping.labels) <= STATISTIC_GROUPS
        ):
            records.extend(_statistics(evaluation, grouping, confidence, seed))
    shown: Table | None = None
    entries, evalset = catalogue(), evaluation.evalset
    for coverage in evaluation.coverages:
        if evaluation.row_scores("empirical_coverage", coverage) is None:
            continue
        found = attempt(
            f"groups_differ of {evalset.model}",
            partial(_difference, evaluation, divided, coverage, seed),
            unknown,
        )
        records.append(record_of(entries["groups_differ"], found, evalset, coverage=coverage))
        table = attempt(
            f"coverage in groups of {evalset.model}",
            partial(_coverage_table, evaluation, divided, coverage, confidence),
            lambda _: None,
        )
        if table is None:
            continue
        shown = table
        found, named = attempt(
            f"worst_group_shortfall of {evalset.model}",
            partial(_shortfall, table, coverage, seed),
            lambda reason: (unknown(reason), {}),
        )
        record = record_of(entries["worst_group_shortfall"], found, evalset, coverage=coverage)
        records.append(replace(record, **named))
    return GroupReport(tuple(records), shown, notes)


def _unanswered(grouping: Grouping, whole: Record, reason: str) -> list[Record]:
    """The record of all rows without its numbers, for every group."""
    gone = dict.fromkeys(("value", "standard_error", "lower", "upper", "null"), math.nan)
    lost: Record = replace(whole, **gone, notion=Notion.GROUP, reason=reason)  # type: ignore[arg-type]
    return [replace(lost, group=label) for label in grouping.labels]


def _counts(evalset: EvalSet, grouping: Grouping, values: FloatArray | None = None) -> FloatArray:
    """Weighted sums of row values within each group; of ones if no values are given."""
    size = len(grouping.labels)
    weights = None if evalset.weights is None else evalset.weights.values
    if values is not None:
        weights = values if weights is None else values * weights
    return np.bincount(grouping.codes, weights=weights, minlength=size).astype(np.float64)


def _exact(evalset: EvalSet) -> bool:
    frequency = evalset.weights is None or evalset.weights.kind == "frequency"
    return frequency and evalset.cluster is None


def _means(
    evaluation: Evaluation, grouping: Grouping, whole: Record, confidence: float
) -> list[Record]:
    """Records of a metric that is a mean, for every group of one grouping; none of others."""
    scores = evaluation.row_scores(whole.metric, whole.coverage)
    if scores is None:
        return []
    evalset, metric = evaluation.evalset, catalogue()[whole.metric]
    total = _counts(evalset, grouping)
    level = 1.0 - (1.0 - confidence) / len(total)
    value, error, low, high, n = _group_means(evalset, grouping, scores, total, level, metric)
    shared = replace(whole, notion=Notion.GROUP, confidence=confidence, null=math.nan)
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


def _group_means(
    evalset: EvalSet,
    grouping: Grouping,
    scores: FloatArray,
    total: FloatArray,
    level: float,
    metric: Metric,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, standard error, interval and n of row scores in each group."""
    from scipy import special

    share = any(form.reduce == "share" for form in metric.forms)
    rows = scores.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = _counts(evalset, grouping, rows) / total
        psi = rows - value[grouping.codes]
        n, unit = total, power_of_two(psi)  # so that squares neither vanish nor overflow
        psi = psi / unit
        importance = evalset.weights is not None and evalset.weights.kind == "importance"
        if evalset.weights is not None and importance:
            n = np.square(total) / _counts(evalset, grouping, evalset.weights.values)
        if evalset.cluster is not None:
            error = _clustered(evalset, grouping, psi) / total
        elif evalset.weights is not None and importance:
            w = evalset.weights.values
            error = np.sqrt(_counts(evalset, grouping, w * np.square(psi))) / total
        else:
            error = np.sqrt(_counts(evalset, grouping, np.square(psi)) / (total * (total - 1)))
        error = np.where(n > 1, unit * error, np.nan)
        if share and _exact(evalset):
            low, high = clopper_pearson(np.round(value * total), total, confidence=level)
            return value, error, np.asarray(low), np.asarray(high), n
        reach = special.stdtrit(np.maximum(n - 1, 1.0), 0.5 + level / 2) * error
        low, high = value - reach, value + reach
    bottom, top = metric.bounds
    return value, error, np.maximum(low, bottom), np.minimum(high, top), n


def _clustered(evalset: EvalSet, grouping: Grouping, psi: FloatArray) -> FloatArray:
    """√Σ (cluster sums of influence)² within each group, with the correction for their number."""
    assert evalset.cluster is not None
    clusters = len(evalset.cluster.labels)
    weights = 1.0 if evalset.weights is None else evalset.weights.values
    joint = grouping.codes * clusters + evalset.cluster.codes
    found, place = np.unique(joint, return_inverse=True)
    sums = np.bincount(place, weights=weights * psi)
    size = len(grouping.labels)
    squares = np.bincount(found // clusters, weights=np.square(sums), minlength=size)
    count = np.bincount(found // clusters, minlength=size)
    return np.sqrt(squares * count / np.where(count > 1, count - 1, np.nan))


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
    answered -= {name for name, _ in evaluation.scores}  # whose groups are told by `_means`
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
        )
        records.extend(
            replace(r, group=label, notion=Notion.GROUP, confidence=confidence)
            for r in part.records
        )
    return records


def _coverage_table(
    evaluation: Evaluation, divided: Sequence[Grouping], coverage: float, confidence: float
) -> Table:
    """Coverage of every group with its band, its exact test and the Holm adjustment."""
    scores = evaluation.row_scores("empirical_coverage", coverage)
    assert scores is not None
    evalset, metric = evaluation.evalset, catalogue()["empirical_coverage"]
    parts: dict[str, list[npt.NDArray[Any]]] = {key: [] for key in _COLUMNS}
    for grouping in divided:
        total = _counts(evalset, grouping)
        level = 1.0 - (1.0 - confidence) / len(total)
        value, _, low, high, n = _group_means(evalset, grouping, scores, total, level, metric)
        width = _mean_width(evaluation, grouping, total, coverage)
        parts["grouping"].append(np.full(len(total), grouping.name, dtype=object))
        parts["group"].append(np.array(grouping.labels, dtype=object))
        for key, column in zip(
            _COLUMNS[2:], (n, value, low, high, coverage - value, width), strict=True
        ):
            parts[key].append(np.broadcast_to(column, total.shape).astype(np.float64))
    columns = {key: np.concatenate(part) for key, part in parts.items()}
    columns["nominal"] = np.full(len(columns["n"]), coverage)
    raw = np.full(len(columns["n"]), np.nan)
    if _exact(evalset) and not math.isnan(coverage):
        hits = np.round(columns["empirical_coverage"] * columns["n"])
        raw = np.asarray(binomial_test(hits, columns["n"], coverage))
    columns["p_value"] = raw
    columns["adjusted_p_value"] = holm(raw) if not np.isnan(raw).any() else raw
    return Table(
        name="groups",
        columns=columns,
        model=evalset.model,
        notes=(
            f"Bands hold for all groups of a grouping at once ({confidence:.0%}); p-values are "
            "exact binomial against the nominal coverage, Holm-adjusted over all groups."
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
)


def _mean_width(
    evaluation: Evaluation, grouping: Grouping, total: FloatArray, coverage: float
) -> FloatArray:
    scores = evaluation.row_scores("mean_width", coverage)
    if scores is None:
        return np.full(len(total), np.nan)
    return _counts(evaluation.evalset, grouping, scores) / total


def _difference(
    evaluation: Evaluation, divided: Sequence[Grouping], coverage: float, seed: int
) -> Estimate:
    """Do groups differ at all? The permutation test of the largest standardised deviation."""
    evalset = evaluation.evalset
    if not _exact(evalset):
        raise UnanswerableError("the permutation test needs independent, unweighted rows")
    scores = evaluation.row_scores("empirical_coverage", coverage)
    assert scores is not None
    cells = _cells(divided)
    place = np.unique(cells, return_index=True)[1]
    whole = Grouping("cells", cells, ("",) * len(place))
    sizes = np.round(_counts(evalset, whole)).astype(np.int64)
    hits = np.round(_counts(evalset, whole, scores.astype(np.float64))).astype(np.int64)
    tested = groups_differ(
        sizes, hits, [grouping.codes[place] for grouping in divided], child(seed, "groups differ")
    )
    if tested.note:
        raise UnanswerableError(tested.note)
    details = {"statistic": tested.statistic, "permutations": float(tested.resamples)}
    return Estimate(tested.p_value, p=tested.p_value, details=details)


def _cells(divided: Sequence[Grouping]) -> IntArray:
    """The finest division that all groupings share, as codes from 0."""
    codes = divided[0].codes
    for grouping in divided[1:]:
        joint = codes * len(grouping.labels) + grouping.codes
        codes = np.unique(joint, return_inverse=True)[1].astype(np.int64)
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _shortfall(table: Table, coverage: float, seed: int) -> tuple[Estimate, dict[str, Any]]:
    """The worst group: the lowest coverage among those proven low, or else the lowest of all."""
    columns = table.columns
    if math.isnan(coverage):
        raise UnanswerableError("the nominal coverage of the intervals is unknown")
    cover, size = columns["empirical_coverage"], columns["n"]
    proven = (columns["adjusted_p_value"] < 0.05) & (cover < coverage)
    pool = np.flatnonzero(proven) if proven.any() else np.arange(len(cover))
    worst = int(pool[np.argmin(cover[pool])])
    trials = np.round(size).astype(np.int64)
    draws = child(seed, "worst group").binomial(trials, coverage, size=(200, len(size)))
    found = Estimate(
        float(coverage - cover[worst]),
        null=float((coverage - draws / np.maximum(size, 1)).max(axis=1).mean()),
        reason="" if proven.any() else "no group is proven to fall short",
        lower=float(coverage - columns["upper"][worst]),
        upper=float(coverage - columns["lower"][worst]),
        p=float(columns["adjusted_p_value"][worst]),
    )
    return found, {"group": str(columns["group"][worst]), "n": float(size[worst])}
