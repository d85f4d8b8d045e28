"""Models on the same rows: paired differences of scores that mean the same, and the best set.

Resamples, sign patterns and swaps are drawn once for all models: a resampled mean of a
difference is the difference of two resampled means, so pairs cost next to nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.formats import roughly
from howsure.core.labels import Categories
from howsure.core.records import Direction, Key, ResultTable, TableLayout
from howsure.core.rng import child
from howsure.core.times import Chronology, slots
from howsure.core.weights import Weights
from howsure.engine.autocorrelation import follows, in_time_order
from howsure.engine.catalogue import catalogue, every_topic
from howsure.engine.finding import SharedScore, Standing
from howsure.engine.measure import Evaluation, record_of
from howsure.engine.metric import Question
from howsure.predictions import EvalSet, content_order
from howsure.predictions.evalset import check_same_rows, lone, series_of
from howsure.stats.binomial import holm
from howsure.stats.bootstrap import bootstrap_means
from howsure.stats.estimate import Spread, counts_as, mean_statistic, skewed_ends, spread_of
from howsure.stats.memory import MIN_EFFECTIVE
from howsure.stats.permutation import FlipTest, joint_flip_tests, sign_flip_tests
from howsure.topics.shared import Shared, meaning, row_scores, shared_by_all, shared_by_most

TABLES = {"models": TableLayout(title="Differences between models", figure="differences")}
"""How differences between models are shown."""

# Of measures that are computed anew for each resample; means use all rows. By hand; not tuned.
MAX_ROWS_COMPARED = 20_000
# 45 pairs; time grows with the square, and a page of more is not read.
MAX_MODELS_IN_PAIRS = 10
"""The most models of which all pairs are compared, and all of which are shown in detail."""
# Chosen by hand; not tuned. A chosen one, and two to choose from.
BEST_COMPARED = 3
"""With more models than that, how many of the best all others are compared with."""
# The usual level.
LEVEL = 0.05
"""Chance that the best set leaves out a model that is as good as any."""

Pair = tuple[int, int]


def per_cent(metric: str, base: float) -> float:
    """What turns a difference of scores into per cent of one of them; NaN where nothing does."""
    entry = catalogue()[metric]
    of_size = entry.units == "y" and entry.direction is Direction.LOWER and entry.bounds[0] == 0.0
    return 100.0 / base if of_size and base > 0.0 else math.nan


def standing(
    evaluations: Sequence[Evaluation], *, confidence: float = 0.95, seed: int = 0
) -> Standing | None:
    """Which of several models on the same rows are best; None where no two share a score."""
    sets = [evaluation.evalset for evaluation in evaluations]
    check_same_rows(sets)
    shared = shared_by_most(evaluations)
    if shared is None:
        return None
    score = shared.score
    means = {
        model: record_of(
            catalogue()[score.metric],
            mean_statistic(rows, sets[model].multiplicities),
            sets[model],
            coverage=score.coverage,
            confidence=confidence,
        )
        for model, rows in shared.rows.items()
    }
    order = sorted(means, key=lambda model: means[model].value)
    count = len(order)
    columns = _Columns.of(evaluations, shared.rows, score.metric, seed)
    pairs = list(itertools.combinations(order, 2))  # the better mean first
    p, adjusted = columns.joint(pairs)
    worse = adjusted < LEVEL
    behind = np.zeros((count, count), dtype=bool)
    rank = {model: number for number, model in enumerate(order)}
    for (better, worse_model), proven in zip(pairs, worse, strict=True):
        behind[rank[worse_model], rank[better]] = proven
    (difference, lower, upper), *_ = columns.differences(pairs[:1], confidence)
    return Standing(
        score=score,
        models=tuple(sets[model].model for model in order),
        values=np.array([means[model].value for model in order]),
        lower=np.array([means[model].lower for model in order]),
        upper=np.array([means[model].upper for model in order]),
        best=np.asarray(~behind.any(axis=1)),
        behind=behind,
        difference=difference,
        difference_lower=lower,
        difference_upper=upper,
        p=float(p[0]),
        p_adjusted=float(adjusted[0]),
        left_out={sets[model].model: why for model, why in shared.left_out.items()},
    )


def compare(
    evaluations: Sequence[Evaluation],
    *,
    order: Sequence[str] = (),
    confidence: float = 0.95,
    seed: int = 0,
) -> ResultTable:
    """Paired differences between models on the same rows.

    Past `MAX_MODELS_IN_PAIRS` models all are compared with the first `BEST_COMPARED` of the
    `order` alone.
    """
    sets = [evaluation.evalset for evaluation in evaluations]
    check_same_rows(sets)
    pairs, about = _pairs(sets, order)
    by_pair: dict[Pair, list[dict[str, Any]]] = {pair: [] for pair in pairs}
    scored = _Scored(evaluations, confidence, seed)
    for key in dict.fromkeys(key for found in evaluations for key in found.scores):
        for pair, row in scored.as_they_are(key, pairs):
            by_pair[pair].append(row)
    for pair, row in scored.in_common(by_pair):
        by_pair[pair].append(row)
    for topic in every_topic():
        if topic.compared is not None:
            for pair, row in topic.compared(evaluations, pairs, confidence, seed):
                by_pair[pair].append(row)
    rows = [
        {**row, "model_a": sets[a].model, "model_b": sets[b].model, "n": _rows_that_count(sets[a])}
        for (a, b), found in by_pair.items()
        for row in found
    ]
    names = (
        "metric", "coverage", "model_a", "model_b", "value_a", "value_b", "difference",
        "lower", "upper", "per_cent", "p_value", "adjusted_p_value", "n", "direction", "note",
    )  # fmt: skip
    text = ("metric", "model_a", "model_b", "direction", "note")
    for row in rows:
        row["direction"] = catalogue()[row["metric"]].direction.value
        row["adjusted_p_value"] = math.nan
        row["per_cent"] = row["difference"] * per_cent(row["metric"], row["value_b"])
    if len(evaluations) <= MAX_MODELS_IN_PAIRS:
        _adjust(rows)
    columns = {
        name: np.array([row[name] for row in rows], dtype=object if name in text else np.float64)
        for name in names
    }
    return ResultTable(
        name="models",
        columns=columns,
        notes=(
            f"Difference is model a minus model b on the same rows, with a {confidence:.0%} paired "
            "interval, also in per cent of model b. The p-value permutes the signs of paired "
            f"differences; the adjusted one is among all pairs of a measure (Holm).{about}"
        ),
    )


def _adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Holm's p-values among all pairs of models, for each measure."""
    families: dict[tuple[Key, str], list[dict[str, Any]]] = {}
    for row in rows:
        key = Key.of(row["metric"], row["coverage"])
        families.setdefault((key, row.get("how", "")), []).append(row)
    for family in families.values():
        adjusted = holm([row["p_value"] for row in family])
        for row, p in zip(family, adjusted, strict=True):
            row["adjusted_p_value"] = float(p)


def _pairs(sets: Sequence[EvalSet], order: Sequence[str]) -> tuple[list[Pair], str]:
    """Which models to compare, and what to say of the choice."""
    every = list(itertools.combinations(range(len(sets)), 2))
    if len(sets) <= MAX_MODELS_IN_PAIRS:
        return every, ""
    ranked = {name: number for number, name in enumerate(order)}
    places = sorted(range(len(sets)), key=lambda p: ranked.get(sets[p].model, len(ranked)))
    best = places[:BEST_COMPARED]
    names = ", ".join(sets[number].model for number in best)
    about = (
        f" With more than {MAX_MODELS_IN_PAIRS} models, all {len(sets):,} are compared with the "
        f"first {BEST_COMPARED} alone ({names}), not with each other."
    )
    return [pair for pair in every if set(pair).intersection(best)], about


def _rows_that_count(evalset: EvalSet) -> float:
    return float(evalset.n) if evalset.weights is None else float(evalset.weights.effective_n)


_TOLD = frozenset({Question.SCORE, Question.POINT})
"""Questions whose measures say so where they cannot be compared."""


Rows = Iterator[tuple[Pair, dict[str, Any]]]
"""Rows of the table of differences, each with its pair of models."""


@frozen
class _Scored:
    """Models with the scores of their rows."""

    evaluations: Sequence[Evaluation]
    confidence: float
    seed: int

    def as_they_are(self, key: Key, pairs: Sequence[Pair]) -> Rows:
        """One measure's differences, of every pair of models for which it means the same."""
        name, score, models = key.metric, SharedScore(key.metric, key.at), self.evaluations
        rows = {place: row_scores(model, name, key.at) for place, model in enumerate(models)}
        scores = {place: values for place, values in rows.items() if values is not None}
        means = {place: meaning(models[place], name, key.at) for place in scores}
        comparable = []
        for a, b in pairs:
            if a not in scores or b not in scores:
                continue
            if means[a] == means[b]:
                comparable.append((a, b))
            elif catalogue()[name].question in _TOLD:
                sides = (f"{means[k] or 'as stated'} of {models[k].evalset.model}" for k in (a, b))
                note = f"not compared: {', '.join(sides)}"
                yield (a, b), _unknown(score, note) | {"unlike": True}
        yield from self.paired(score, scores, comparable)

    def in_common(self, compared: Mapping[Pair, Sequence[Mapping[str, Any]]]) -> Rows:
        """The finest score of two models that are not compared by it as they are."""
        scores: dict[SharedScore, dict[int, FloatArray]] = {}
        pairs_of: dict[SharedScore, list[Pair]] = {}
        for pair, rows in compared.items():
            if not any(row.get("unlike") for row in rows):
                continue
            shared: Shared | None = shared_by_all([self.evaluations[place] for place in pair])
            if shared is None:
                continue
            done = {row["metric"] for row in rows if not math.isnan(row["difference"])}
            if shared.score.metric in done:
                continue
            by_model = {pair[place]: values for place, values in shared.rows.items()}
            scores.setdefault(shared.score, {}).update(by_model)
            pairs_of.setdefault(shared.score, []).append(pair)
        for score, pairs in pairs_of.items():
            yield from self.paired(score, scores[score], pairs)

    def paired(
        self, score: SharedScore, scores: Mapping[int, FloatArray], pairs: Sequence[Pair]
    ) -> Rows:
        """One score's differences, of every pair."""
        usable = {place: rows for place, rows in scores.items() if np.isfinite(rows).all()}
        comparable = [pair for pair in pairs if pair[0] in usable and pair[1] in usable]
        for pair in pairs:
            if pair not in comparable:
                yield pair, _unknown(score, "some rows have an infinite score")
        if not comparable:
            return
        columns = _Columns.of(self.evaluations, usable, score.metric, self.seed)
        tests = columns.tests(comparable)
        gaps = columns.differences(comparable, self.confidence)
        for pair, tested, (difference, lower, upper) in zip(comparable, tests, gaps, strict=True):
            value_a, value_b = map(columns.mean, pair)
            notes = (score.how, columns.note(pair), tested.note)
            yield (
                pair,
                {
                    "metric": score.metric,
                    "coverage": score.coverage,
                    "how": score.how,
                    "value_a": value_a,
                    "value_b": value_b,
                    "difference": difference,
                    "lower": lower,
                    "upper": upper,
                    "p_value": tested.p_value,
                    "note": "; ".join(filter(None, notes)),
                },
            )


def _unknown(score: SharedScore, note: str) -> dict[str, Any]:
    """A row without numbers."""
    numbers = ("value_a", "value_b", "difference", "lower", "upper", "p_value")
    row: dict[str, Any] = dict.fromkeys(numbers, math.nan)
    return row | {"metric": score.metric, "coverage": score.coverage, "note": note}


@frozen(eq=False)
class _Columns:
    """Row scores of several models as columns, in an order of rows that their content decides.

    Equal models share a column, so that they differ by exactly 0. `times` say when rows
    happened, and `known` that errors of a model follow each other; else each difference is tested.
    """

    table: FloatArray
    column: Mapping[int, int]
    weights: Weights | None
    cluster: IntArray | None
    times: Chronology | None
    known: bool
    metric: str
    seed: int
    spreads: dict[Pair, Spread | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        evaluations: Sequence[Evaluation],
        scores: Mapping[int, FloatArray],
        metric: str,
        seed: int,
    ) -> _Columns:
        """The columns of these models."""
        sets = [evaluation.evalset for evaluation in evaluations]
        order, first = content_order(sets), sets[0]
        times = _units_in_time(first)
        alike: dict[bytes, int] = {}
        column = {
            place: alike.setdefault(score[order].tobytes(), len(alike))
            for place, score in scores.items()
        }
        return cls(
            np.stack([np.frombuffer(score_bytes) for score_bytes in alike], axis=1),
            column,
            None if first.weights is None else first.weights.take(order),
            None if first.cluster is None else first.cluster.codes[order],
            None if times is None else times.take(order),
            first.chronology is not None
            or (times is not None and (times.few or times.series is not None)),
            metric,
            seed,
        )

    def note(self, pair: Pair) -> str:
        """What to say of the interval of a difference."""
        spread = self._in_time(pair)
        if spread is not None:
            if math.isnan(spread.error[0]):
                return f"no interval: effective sample size below {MIN_EFFECTIVE:g}"
            gap, mean = self._gap(pair)
            n = float(len(gap)) if self.weights is None else self.weights.effective_n
            return (
                "effective sample size about "
                f"{roughly(counts_as(gap - mean, self.weights, spread, n))}"
            )
        if self.cluster is None:
            return ""
        return f"interval from {len(np.unique(self.cluster)):,} clusters"

    def mean(self, place: int) -> float:
        """The mean score of a model."""
        values = self.table[:, self.column[place]]
        return float(np.average(values, weights=self._mass))

    @property
    def _mass(self) -> FloatArray | None:
        return None if self.weights is None else self.weights.values

    def _of(self, pairs: Sequence[Pair]) -> list[Pair]:
        return [(self.column[a], self.column[b]) for a, b in pairs]

    def _gap(self, pair: Pair) -> tuple[FloatArray, float]:
        """Differences of two models row by row, and their mean."""
        first, second = self.column[pair[0]], self.column[pair[1]]
        gap = self.table[:, first] - self.table[:, second]
        return gap, float(np.average(gap, weights=self._mass))

    def _in_time(self, pair: Pair) -> Spread | None:
        """How far a mean difference strays, if differences follow each other in time."""
        if self.times is None:
            return None
        if pair not in self.spreads:
            gap, mean = self._gap(pair)
            units = self.times.times
            follow = self.known or follows(gap, units, self.weights)
            self.spreads[pair] = spread_of(gap - mean, self.weights, self.times) if follow else None
        return self.spreads[pair]

    def tests(self, pairs: Sequence[Pair]) -> list[FlipTest]:
        """A test of each pair's mean difference, alone: by signs, or as of rows in time."""
        tests = sign_flip_tests(
            self.table,
            self._of(pairs),
            child(self.seed, "sign flips", self.metric),
            weights=self.weights,
            cluster=self.cluster,
        )
        for number, pair in enumerate(pairs):
            spread, note = self._in_time(pair), tests[number].note
            if spread is not None and tests[number].units > 0:
                mean = self._gap(pair)[1]
                units = float(spread.units[0])
                note = "p-value from Student's t, because rows are in time order"
                tests[number] = FlipTest(mean, spread.p(mean), units, "Student's t", 0, note)
        return tests

    def joint(self, pairs: Sequence[Pair]) -> tuple[FloatArray, FloatArray]:
        """P-values of all pairs, alone and jointly: Holm's; of very many pairs by their maxima.

        With thousands of pairs Holm asks for p-values finer than draws can give.
        """
        if len(self.column) <= MAX_MODELS_IN_PAIRS:
            p = np.array([tested.p_value for tested in self.tests(pairs)])
            return p, holm(p)
        return joint_flip_tests(
            self.table,
            self._of(pairs),
            child(self.seed, "joint sign flips", self.metric),
            weights=self.weights,
            cluster=self.cluster,
        )

    def differences(
        self, pairs: Sequence[Pair], confidence: float
    ) -> list[tuple[float, float, float]]:
        """Each pair's mean difference and its interval: by its units, else by a bootstrap."""
        spreads = [self._spread(pair) for pair in pairs]
        if all(spread is not None for spread in spreads):
            return [self._by_units(pair, confidence) for pair in pairs]
        # The first model's column comes last, where it decides the order of units: one more model
        # leaves that as it is.
        drawn = bootstrap_means(
            self.table[:, ::-1],
            child(self.seed, "paired bootstrap", self.metric),
            weights=self.weights,
        )
        ahead, behind = (-1 - np.array(side) for side in zip(*self._of(pairs), strict=True))
        gaps = replace(
            drawn,
            estimate=drawn.estimate[ahead] - drawn.estimate[behind],
            replicates=drawn.replicates[:, ahead] - drawn.replicates[:, behind],
        )
        lower, upper = gaps.interval(confidence)
        values = [self.mean(a) - self.mean(b) for a, b in pairs]
        bootstrapped = zip(values, lower.tolist(), upper.tolist(), strict=True)
        return [
            difference if spread is None else self._by_units(pair, confidence)
            for difference, spread, pair in zip(bootstrapped, spreads, pairs, strict=True)
        ]

    def _spread(self, pair: Pair) -> Spread | None:
        """How far a mean difference strays over times or clusters; None of independent rows."""
        spread = self._in_time(pair)
        if spread is not None or self.cluster is None:
            return spread
        gap, mean = self._gap(pair)
        return spread_of(gap - mean, self.weights, self.cluster)

    def _by_units(self, pair: Pair, confidence: float) -> tuple[float, float, float]:
        """The mean difference, and its interval as of any mean over units."""
        spread, value = self._spread(pair), self._gap(pair)[1]
        assert spread is not None
        low, high = skewed_ends(value, spread, confidence)
        return value, float(low[0]), float(high[0])


def _units_in_time(evalset: EvalSet) -> Chronology | None:
    """When rows, or their clusters, happened; None without times that give an order."""
    chronology = evalset.chronology
    if chronology is not None:
        few = lone(evalset, chronology.times, chronology.series)
        return Chronology(chronology.times, few=few, series=chronology.series)
    if evalset.time is None:
        return None
    times = Categories.checked(evalset.time, "time").codes
    series = series_of(evalset, times)
    if evalset.cluster is None or series is not None:
        return Chronology(slots(evalset.time), few=lone(evalset, times, series), series=series)
    units = in_time_order(times, evalset.cluster.codes)
    return None if units is None else Chronology(units)
