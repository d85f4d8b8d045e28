"""The value and the range of a perfect model, for every record, by drawing y from the prediction.

Means: a stack of draws goes through the measure's own formula; of each row's scores the mean, the
variance and the third moment are kept, and sums of independent rows have three known moments.
Statistics: draw by draw through the same formula. Past some rows a part stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError, attempt
from howsure.core.records import Key, Record
from howsure.core.rng import row_uniforms
from howsure.engine.autocorrelation import Dependence
from howsure.engine.catalogue import arrays, catalogue
from howsure.engine.measure import Evaluation, apply_form, find_form
from howsure.engine.metric import Form, Metric
from howsure.engine.view import KIND_PRIORITY, View
from howsure.predictions import EvalSet, Intervals, LabelSets, Prediction, Samples
from howsure.predictions.quantiles import Quantiles
from howsure.stats.estimate import Estimate
from howsure.topics.groups import Grouping, groupings
from howsure.verdict.draws import (
    Copula,
    Population,
    Subsample,
    copula_of,
    draw_outcomes,
    reach,
    strata,
)

WHY = "no_null"
"""The option of a record that says why it has no perfect model's value."""
ROWS = "null_rows"
"""The option that says how many rows stood for all."""
BY = "null_by"
"""The option that says which prediction drew y, where another one answered."""
_AT_ONCE = 2_000_000  # numbers of predictions that are drawn from at once, of all draws
_MEANS = 10_000  # rows that stand for all, of means
_STATISTICS = 1_000  # and of statistics
_DEPENDENT = 5_000  # and of statistics of rows that depend
_LEAST, _MOST = 10, 100  # draws of means
_TABLES, _MANY_TABLES = 400_000, 1_999  # rows of tables made of the draws of few rows; tables
_DRAWS, _OF_PART, _FEW, _FEWEST = 49, 29, 19, 9
"""Draws of a statistic: of all rows, of a part, of a group, of many rows."""
_GROUPS = 16  # groups whose statistics are drawn
_TAIL = 0.025
_Z = float(special.ndtri(1.0 - _TAIL))
_STILL = "does not depend on y"
_POINT = "a point forecast alone gives no distribution of y"
_MANY = f"statistics of more than {_GROUPS} groups are not drawn"
_OUTSIDE = "quantiles give no distribution beyond their outermost levels"


@dataclass(frozen=True, slots=True)
class Null:
    """A perfect model's value (NaN: the target) and range, and what else to say of them."""

    value: float
    lower: float
    upper: float
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _AskedMetric:
    """One metric at one coverage, with the form that answered."""

    metric: Metric
    key: Key
    form: Form

    @property
    def outcomes(self) -> set[str]:
        """The arrays that it needs and that differ with what happened."""
        needs = {*self.form.needs, *self.form.keywords.values()} - {"coverage"}
        return {name for name in needs if not arrays()[name].predicted}

    def integrated(self, belief: Prediction) -> bool:
        """Whether it is the CRPS of a law that has no closed form."""
        (first, *others), known = self.form.needs, arrays()
        test = known[first].integrated if first in known and not others else None
        return test is not None and test(belief)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def with_nulls(
    evaluation: Evaluation,
    grouped: Sequence[Record] = (),
    *,
    seed: int = 0,
    dependence: Dependence | str = "",
    n: float | None = None,
) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """Records with a perfect model's value and 95 % range, or the option that says why not.

    `n` is the number of rows that those of the evaluation stand for, if these are a sample.
    """
    return _Nulls(evaluation, seed, dependence, n).attach(grouped)


class _Nulls:
    """Nulls of one evaluation, by metric and coverage, and by group."""

    def __init__(
        self,
        evaluation: Evaluation,
        seed: int,
        dependence: Dependence | str,
        n: float | None = None,
    ) -> None:
        self.copula = copula_of(evaluation.view, dependence)
        self.view = evaluation.view
        self.records = evaluation.records
        self.model = evaluation.evalset.model
        self.seed = seed
        self.pool = Population(self.view, seed, n)
        self.divided: Sequence[Grouping] | None = None
        self.found: dict[Key, Null | str] = {}
        self.in_groups: dict[tuple[Key, str], Null | str] = {}

    def attach(self, grouped: Sequence[Record]) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        by_kind: dict[type[Prediction], list[_AskedMetric]] = {}
        for record in self.records:
            if not _lacks_null(record):
                continue
            key = record.key
            drawn = attempt(
                f"how y is drawn for {record.metric} of {self.model}",
                partial(self._kind, record),
                partial(self.found.__setitem__, key),
            )
            if drawn is not None:
                by_kind.setdefault(drawn[0], []).append(drawn[1])
        by_group, in_groups = bool(grouped), {record.metric for record in grouped}
        for kind, asked in by_kind.items():
            means = [each for each in asked if each.form.reduce != "statistic"]
            rest = [each for each in asked if each.form.reduce == "statistic"]
            if means:
                self._try(partial(self._means, kind, means, by_group), means)
            usual = [each for each in rest if not each.metric.by_size]
            if usual:
                self._try(partial(self._statistics, kind, usual), usual)
            sized = [each for each in rest if each.metric.by_size]
            if sized:
                self._try(partial(self._sized, kind, sized), sized)
            rest = [each for each in rest if each.metric.name in in_groups]
            if rest:
                self._try_groups(kind, rest)
        records = tuple(
            self._attach_null(record, self.found.get(record.key)) for record in self.records
        )
        return records, tuple(self._of_group(record) for record in grouped)

    def _kind(self, record: Record) -> tuple[type[Prediction], _AskedMetric] | None:
        """Which kind draws y for a record; None where the null is known at once."""
        metric, key = catalogue()[record.metric], record.key
        if metric.units == "p-value":
            self.found[key] = Null(0.5, 0.05, 1.0)
            return None
        form = metric.forms[0]
        if len(metric.forms) > 1:  # of one form, what it needs may have been let go
            form = find_form(self.view, metric, record.coverage)
        asked = _AskedMetric(metric, key, form)
        if not asked.outcomes:
            self.found[key] = _STILL
            return None
        if reasons := [why for name in asked.outcomes if (why := arrays()[name].undrawn)]:
            self.found[key] = reasons[0]
            return None
        kind = _drawer(self.view.evalset, asked, record.source)
        return kind, asked

    def _try(self, draw: Any, asked: Sequence[_AskedMetric]) -> None:
        """Draw for several metrics; where that is refused, each has the reason."""

        def otherwise(reason: str) -> None:
            for each in asked:
                self.found.setdefault(each.key, reason)

        attempt(f"perfect models of {self.model}", draw, otherwise)

    def _means(self, kind: type[Prediction], asked: Sequence[_AskedMetric], by_group: bool) -> None:
        most = min(_MEANS, max(reach(self.view.evalset, kind) // _LEAST, 1))
        part = self.pool.stand(most)
        stack = _Stack(part, kind, self.seed, self.copula)
        divided = [_codes(self.view.evalset, part, each) for each in self._groupings(by_group)]
        every = np.zeros(len(part.rows), dtype=np.int64)
        whole = self._companions(np.zeros(self.view.evalset.n, dtype=np.int64), 1)
        companions = [
            self._companions(each.codes, len(each.labels)) for each in self._groupings(by_group)
        ]
        for each, moments in stack.moments(asked):
            key = each.key
            if isinstance(moments, str):
                self.found[key] = moments
                continue
            options = {**_options(part), **_drawn_by(kind, each, self.view)}
            n = np.array([part.n]) / moments.design(self.copula, part, every, whole)
            self.found[key] = moments.nulls(part, each, every, n, options)[0]
            for (labels, codes, n), companion in zip(divided, companions, strict=True):
                n = n / moments.design(self.copula, part, codes, companion)
                nulls = moments.nulls(part, each, codes, n, options)
                self.in_groups |= {
                    (key, label): null for label, null in zip(labels, nulls, strict=True)
                }

    def _companions(self, codes: IntArray, groups: int) -> FloatArray:
        if self.copula is None:
            return np.zeros((1, groups))
        return self.copula.companions(codes, groups)

    def _statistics(self, kind: type[Prediction], asked: Sequence[_AskedMetric]) -> None:
        part = self.pool.stand(self._most(kind))
        self._find_statistics(part, kind, asked, _DRAWS if part.whole else _OF_PART)

    def _sized(self, kind: type[Prediction], asked: Sequence[_AskedMetric]) -> None:
        most = 2 * reach(self.view.evalset, kind) // _FEWEST
        part = self.pool.stand(most)
        if not part.whole:
            raise UnanswerableError(
                "the value depends on the number of rows, so no part of them stands for all"
            )
        self._find_statistics(
            part, kind, asked, _FEWEST if len(part.rows) > _STATISTICS else _DRAWS
        )

    def _find_statistics(
        self, part: Subsample, kind: type[Prediction], asked: Sequence[_AskedMetric], draws: int
    ) -> None:
        options = _options(part)
        uniforms = self._dependent_uniforms(part, np.arange(self.view.evalset.n))
        drawn = _draw_statistics(part, kind, asked, draws, self.seed, uniforms)
        for each, null in zip(asked, drawn, strict=True):
            if not isinstance(null, str):
                null = replace(null, options={**options, **_drawn_by(kind, each, self.view)})
            self.found[each.key] = null

    def _most(self, kind: type[Prediction]) -> int:
        """Rows that a statistic is drawn on: more where rows depend, as no part then serves."""
        most = _STATISTICS if self.copula is None else _DEPENDENT
        # All draws together read at most 2½ times the rows within reach.
        return max(min(most, 5 * reach(self.view.evalset, kind) // (2 * _DRAWS)), 1)

    def _dependent_uniforms(
        self, part: Subsample, rows: IntArray
    ) -> Callable[[int], FloatArray] | None:
        """How uniforms of some rows of the set are drawn, where rows depend."""
        copula = self.copula
        if copula is None:
            return None
        if not part.whole or len(part.rows) > len(rows) or self.view.evalset.n > _MEANS:
            raise UnanswerableError("rows depend, so no part of them stands for all")
        chosen = rows[part.rows]
        return lambda number: copula.uniforms(self.seed, f"outcome {number}")[chosen]

    def _try_groups(self, kind: type[Prediction], asked: Sequence[_AskedMetric]) -> None:
        """Statistics of groups, of the groupings that come first while groups are few."""
        left = _GROUPS
        for grouping in self._groupings(True):
            left -= len(grouping.labels)
            for code, label in enumerate(grouping.labels):
                if left < 0:
                    self._refuse_groups(asked, label, _MANY)
                    continue
                rows = np.flatnonzero(grouping.codes == code)
                attempt(
                    f"perfect models in {label} of {self.model}",
                    partial(self._group, kind, asked, rows, label),
                    partial(self._refuse_groups, asked, label),
                )

    def _group(
        self, kind: type[Prediction], asked: Sequence[_AskedMetric], rows: IntArray, label: str
    ) -> None:
        most = self._most(kind)
        part = Population(self.view.of(rows), self.seed).stand(most)
        options = _options(part)
        kept = [each for each in asked if part.whole or not each.metric.by_size]
        uniforms = self._dependent_uniforms(part, rows)
        drawn = _draw_statistics(part, kind, kept, _FEW, self.seed, uniforms)
        for each, null in zip(kept, drawn, strict=True):
            if not isinstance(null, str):
                null = replace(null, options=options)
            self.in_groups[(each.key, label)] = null

    def _refuse_groups(self, asked: Sequence[_AskedMetric], label: str, reason: str) -> None:
        for each in asked:
            self.in_groups[(each.key, label)] = reason

    def _groupings(self, wanted: bool) -> Sequence[Grouping]:
        if wanted and self.divided is None:
            self.divided = groupings(self.view.evalset)[0]
        return self.divided if wanted and self.divided is not None else ()

    def _of_group(self, record: Record) -> Record:
        key = record.key
        found = self.in_groups.get((key, record.group))
        if found is None and (isinstance(self.found.get(key), str) or record.units == "p-value"):
            found = self.found.get(key)
        return self._attach_null(record, found) if record.group and _lacks_null(record) else record

    def _attach_null(self, record: Record, found: Null | str | None) -> Record:
        if found is None or not _lacks_null(record):
            return record
        if isinstance(found, str):
            return replace(record, options={**record.options, WHY: found})
        return replace(
            record,
            null=found.value if math.isnan(record.null) else record.null,
            null_lower=found.lower,
            null_upper=found.upper,
            options={**record.options, **found.options},
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Of each row's score, over draws: mean, variance, third central moment, error of the mean."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    noise: FloatArray
    tables: FloatArray | None = None
    hermite: FloatArray | None = None

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        chosen: IntArray | None,
        *,
        exact: bool,
        hermite: FloatArray | None = None,
    ) -> _Moments:
        """Of scores of shape (draws, m), whose halves are independent unless they are all there.

        ``chosen``, shape (m, tables), says which draw of each row makes which table.
        """
        mean = scores.mean(axis=0)
        off = scores - mean
        squares = np.square(off)
        half = len(scores) // 2
        noise = np.zeros(len(mean))
        if not exact:
            noise = np.square(scores[:half].mean(axis=0) - scores[half:].mean(axis=0)) / 4.0
        tables = None if chosen is None else np.take_along_axis(scores.T, chosen, axis=1)
        third = (squares * off).mean(axis=0)
        return cls(mean, squares.mean(axis=0) + noise, third, noise, tables, hermite)

    def design(
        self, copula: Copula | None, part: Subsample, codes: IntArray, companions: FloatArray
    ) -> FloatArray:
        """By what the variance of each group's mean grows as rows depend.

        Scores of two rows with normal scores of correlation ρ have covariance Σ c_j c'_j ρ^j.
        """
        if copula is None or self.hermite is None:
            return np.ones(companions.shape[1])
        w = np.ones(len(codes)) if part.weights is None else part.weights
        add = partial(np.bincount, codes, minlength=companions.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            within = add(weights=np.square(w) * self.variance) / add(weights=np.square(w))
            means = np.stack([add(weights=w * each) / add(weights=w) for each in self.hermite])
            grown = (np.square(means) * companions).sum(axis=0) / within
        return np.where(np.isfinite(grown), 1.0 + grown, 1.0)

    def nulls(
        self,
        part: Subsample,
        asked: _AskedMetric,
        codes: IntArray,
        n: FloatArray,
        options: dict[str, str],
    ) -> list[Null | str]:
        """The null of each group of rows, whose numbers of rows stood for are given."""
        groups, w = len(n), part.weights
        w = np.ones(len(codes)) if w is None else w / w.max()
        add = partial(np.bincount, codes, minlength=groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            total, squared = add(weights=w), add(weights=np.square(w))
            size = np.square(total) / squared  # Kish's, of the rows at hand
            mean = add(weights=w * self.mean) / total
            within = add(weights=np.square(w) * self.variance) / squared
            third = add(weights=w**3 * self.third) / add(weights=w**3)
            error = add(weights=np.square(w) * self.noise) / squared / size
            if not part.whole:
                error = self._between(part, codes, mean) / size
            target = asked.metric.target_at(asked.key.at)
            # Draws that do not contradict the target are noise about it, which it has none of.
            met = np.abs(mean - target) <= 3.0 * np.sqrt(error) + 1e-9 * max(1.0, abs(target))
            mean, error = np.where(met, target, mean), np.where(met, 0.0, error)
            shape = add(weights=w**3) / total**3 * np.square(size) * third / np.square(n)
            if asked.form.reduce == "share" and part.weights is None:
                low, high = _binomial(n, np.clip(mean, 0.0, 1.0))
            elif self.tables is not None:
                low, high = self._among_tables(codes, w)
                low, high = mean + low * np.sqrt(within / n), mean + high * np.sqrt(within / n)
            else:
                low, high = _pearson(mean, within / n, shape)
            low = mean - np.hypot(mean - low, _Z * np.sqrt(error))
            high = mean + np.hypot(high - mean, _Z * np.sqrt(error))
        bottom, top = asked.metric.bounds
        low, high = np.maximum(low, bottom), np.minimum(high, top)
        shown = np.where(met, math.nan, mean)
        return [
            Null(float(shown[g]), float(low[g]), float(high[g]), options)
            if total[g] > 0 and math.isfinite(mean[g])
            else "none of its rows is among those that stand for all"
            for g in range(groups)
        ]

    def _among_tables(self, codes: IntArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The middle 95 % of tables that take any draw of each row, their mean 0 and sd 1."""
        assert self.tables is not None
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
        sums = np.add.reduceat((w[:, None] * self.tables)[order], starts, axis=0)
        spread = sums.std(axis=1)
        ends = np.quantile(sums, [_TAIL, 1.0 - _TAIL], axis=1, method="weibull")
        low, high = (ends - sums.mean(axis=1)) / np.where(spread > 0, spread, 1.0)
        return low, high

    def _between(self, part: Subsample, codes: IntArray, mean: FloatArray) -> FloatArray:
        """How the rows' expectations vary: about their group's, or from one row to the next."""
        if len(mean) == 1:  # rows lie in rising uncertainty
            return np.array([np.square(np.diff(self.mean)).mean() / 2.0])
        off = np.square(self.mean - mean[codes])
        count = np.bincount(codes, minlength=len(mean))
        return np.asarray(np.bincount(codes, weights=off, minlength=len(mean)) / count)


class _Stack:
    """Many draws of all rows, one below the other, seen as named arrays.

    So many draws at once as fit in memory, and of each coverage no longer than its scores take.
    """

    def __init__(
        self, part: Subsample, kind: type[Prediction], seed: int, copula: Copula | None = None
    ) -> None:
        self.part, self.kind, self.copula = part, kind, copula
        evalset, m = part.view.evalset, len(part.rows)
        self.belief = _of_kind(evalset, kind)
        draws = min(max(reach(evalset, kind) // m, _LEAST), _MOST) // 2 * 2
        self.exact = isinstance(self.belief, Samples) and self.belief.size < draws
        if self.exact:
            assert isinstance(self.belief, Samples)
            places = (np.arange(self.belief.size + 1) + 0.5) / (self.belief.size + 1)
            self.uniforms = np.repeat(places[:, None], m, axis=1)
        else:
            self.uniforms = strata(part.keys, draws, seed=seed)
        self.chosen = None
        if part.whole and m <= _STATISTICS:  # few enough to be added up table by table
            tables = min(_TABLES // m, _MANY_TABLES)
            mixed = row_uniforms(seed, "tables", part.keys, columns=tables)
            self.chosen = (mixed * len(self.uniforms)).astype(np.int64)

    def moments(
        self, asked: Sequence[_AskedMetric]
    ) -> Iterator[tuple[_AskedMetric, _Moments | str]]:
        """Of the scores of each mean, or why there are none."""
        beliefs = self.part.view.evalset.beliefs
        numbers = sum(column.size for belief in beliefs for column in belief.numbers().values())
        draws = max(_AT_ONCE // max(numbers, 1), 1)
        scores: dict[_AskedMetric, list[FloatArray]] = {each: [] for each in asked}
        for start in range(0, len(self.uniforms), draws):
            uniforms = self.uniforms[start : start + draws]
            evalsets = [] if self.kind in (Intervals, LabelSets) else self._draw(uniforms)
            for key in {each.key.coverage: each.key for each in scores}.values():
                views = self._views(evalsets, uniforms, key.at)
                for each in [metric for metric in scores if metric.key.coverage == key.coverage]:
                    what = f"perfect {each.metric.name} of {self.part.view.evalset.model}"
                    found = attempt(what, partial(self._scores, views, each, len(uniforms)), str)
                    if isinstance(found, str):
                        del scores[each]
                        yield each, found
                        continue
                    scores[each].append(found)
                    if start + draws >= len(self.uniforms):
                        yield each, self._moments(each, np.concatenate(scores.pop(each)))

    def _moments(self, asked: _AskedMetric, scores: FloatArray) -> _Moments | str:
        if asked.integrated(self.belief):
            scores = _crps_among(scores)
        if not np.isfinite(scores).all():
            return "some rows of a perfect model score infinity"
        hermite = None if self.copula is None else self.copula.hermite(scores, self.uniforms)
        return _Moments.of(scores, self.chosen, exact=self.exact, hermite=hermite)

    def _scores(self, views: Sequence[View], asked: _AskedMetric, draws: int) -> FloatArray | str:
        """Shape (draws, m); y itself where each is scored among all draws of its row."""
        if asked.integrated(self.belief):
            return views[0].evalset.y.reshape(draws, -1)
        first, *others = (np.asarray(_evaluate(view, asked), dtype=np.float64) for view in views)
        for other in others:
            if not np.allclose(first, other, rtol=1e-9, atol=0.0, equal_nan=True):
                raise UnanswerableError(_OUTSIDE)
        return first.reshape(draws, -1)

    def _views(
        self, evalsets: Sequence[EvalSet], uniforms: FloatArray, coverage: float
    ) -> list[View]:
        """Of drawn outcomes, or of whether these lie inside where no more is known."""
        view = self.part.view
        if not evalsets:
            inside = [self.belief.inside(coverage, row) for row in uniforms]
            return [View(view.evalset, given={"covered": np.concatenate(inside)})]
        given = {} if self.kind is Samples else _fixed_arrays(view, coverage, len(uniforms))
        return [View(evalset, given=given) for evalset in evalsets]

    def _draw(self, uniforms: FloatArray) -> list[EvalSet]:
        evalset = self.part.view.evalset
        tile = np.tile(np.arange(evalset.n), len(uniforms))
        y, belief = self.belief.take(tile).redrawn(evalset.y[tile], uniforms.ravel())
        others = [each.take(tile) for each in evalset.beliefs if each is not self.belief]
        point = None if evalset.point is None else evalset.point[tile]
        return [
            EvalSet(y=each, beliefs=(belief, *others), point=point)
            for each in _finite_outcomes(y, belief, uniforms.ravel())
        ]


def _draw_statistics(
    subsample: Subsample,
    kind: type[Prediction],
    asked: Sequence[_AskedMetric],
    draws: int,
    seed: int,
    uniforms: Callable[[int], FloatArray] | None,
) -> list[Null | str]:
    """Statistics, draw by draw."""
    view = subsample.view
    belief = _of_kind(view.evalset, kind)
    fixed = {
        key.coverage: {} if kind is Samples else _fixed_arrays(view, key.at)
        for key in {each.key.coverage: each.key for each in asked}.values()
    }
    values = np.full((len(asked), draws), math.nan)
    influence: list[FloatArray | None] = [np.zeros(len(subsample.rows)) for _ in asked]
    reasons: dict[int, str] = {}
    outcomes = draw_outcomes(
        belief, view.evalset.y, subsample.keys, draws, seed=seed, together=uniforms
    )
    others = [each for each in view.evalset.beliefs if each is not belief]
    for number, (y, given) in enumerate(outcomes):
        sets = [
            replace(view.evalset, y=each, beliefs=(given, *others))
            for each in _finite_outcomes(y, given, row_uniforms(seed, "outside", subsample.keys))
        ]
        for version, drawn in enumerate(sets):
            views = {at: view.on(drawn, given=arrays) for at, arrays in fixed.items()}
            for place, each in enumerate(asked):
                if place in reasons:
                    continue
                try:
                    found = _evaluate(views[each.key.coverage], each)
                except UnanswerableError as error:
                    reasons[place] = str(error)
                    continue
                if version and not math.isclose(found.value, values[place, number], rel_tol=1e-9):
                    reasons[place] = _OUTSIDE
                    continue
                values[place, number] = found.value
                sums = influence[place]
                if subsample.whole or found.influence is None or sums is None:
                    influence[place] = None
                else:
                    sums += found.influence
    nulls: list[Null | str] = []
    for place, each in enumerate(asked):
        finite = values[place][np.isfinite(values[place])]
        if place not in reasons and len(finite) < 0.9 * draws:
            reasons[place] = "perfect models often have no value either"
        if place in reasons:
            nulls.append(reasons[place])
            continue
        summed = influence[place]
        nulls.append(
            _statistic_null(subsample, each, finite, None if summed is None else summed / draws)
        )
    return nulls


def _statistic_null(
    subsample: Subsample, asked: _AskedMetric, values: FloatArray, influence: FloatArray | None
) -> Null:
    """The range of drawn values, rescaled where a part stands for all."""
    centre, ratio = float(values.mean()), math.sqrt(subsample.size / subsample.n)
    bottom, top = asked.metric.bounds
    below, above = (ratio * each for each in _reaches(values))
    if subsample.whole:
        return Null(centre, max(centre - below, bottom), min(centre + above, top))
    if asked.metric.target == 0.0 and bottom == 0.0:  # a floor of noise
        centre *= ratio
        return Null(centre, max(centre - below, bottom), min(centre + above, top))
    # of a part with other rows the centre would be another
    error = (
        float(values.var()) if influence is None else _from_row_to_row(influence, subsample.size)
    )
    target = asked.metric.target_at(asked.key.at)
    if abs(centre - target) <= 3.0 * math.sqrt(error):
        return Null(math.nan, max(target - below, bottom), min(target + above, top))
    below, above = (math.hypot(each, _Z * math.sqrt(error)) for each in (below, above))
    return Null(centre, max(centre - below, bottom), min(centre + above, top))


def _reaches(values: FloatArray) -> tuple[float, float]:
    """How far below and above their mean 95 % of further values lie, from three moments."""
    count = len(values)
    off = values - values.mean()
    variance = np.array([float(np.square(off).sum()) / (count - 1)])
    third = np.array([float((off**3).sum()) * count / ((count - 1) * (count - 2))])
    low, high = _pearson(np.zeros(1), variance, third)
    wider = float(special.stdtrit(count - 1, 1.0 - _TAIL)) * math.sqrt(1.0 + 1.0 / count) / _Z
    return -wider * float(low[0]), wider * float(high[0])


def _from_row_to_row(influence: FloatArray, size: float) -> float:
    """Squared error of a mean over rows that lie evenly in rising uncertainty."""
    return float(np.square(np.diff(influence)).mean() / 2.0 / size) if len(influence) > 1 else 0.0


def _evaluate(view: View, asked: _AskedMetric) -> Any:
    """A metric's formula on a view; of a statistic the one estimate that it makes."""
    found = apply_form(view, asked.form, asked.key.at)
    if asked.form.reduce == "statistic" and not isinstance(found, Estimate):
        raise UnanswerableError("several numbers answer at once")
    return found


def _drawer(evalset: EvalSet, asked: _AskedMetric, source: str) -> type[Prediction]:
    """The kind that draws y: a coin for coverage, else who answered, else who knows most."""
    named = source.split(", ")
    if asked.outcomes == {"covered"} and asked.form.reduce != "statistic":
        for coin in (Intervals, LabelSets):
            if coin.kind in named:
                return coin
    drawers = [
        kind
        for kind in KIND_PRIORITY
        if kind.answers("redrawn") and any(type(belief) is kind for belief in evalset.beliefs)
    ]
    if not drawers:
        if not evalset.beliefs:
            raise UnanswerableError(_POINT)
        raise UnanswerableError(f"{evalset.beliefs[0].kind} give only how often y lies inside")
    return next((kind for kind in drawers if kind.kind in named), drawers[0])


def _drawn_by(kind: type[Prediction], asked: _AskedMetric, view: View) -> dict[str, str]:
    """Who drew y, where that is not who answered."""
    source = view.source([*asked.form.needs, "ends"], asked.key.at)
    if not source or kind.kind in source.split(", "):
        return {}
    several = len(view.evalset.beliefs) > 1
    return {BY: kind.kind} if several else {}


def _options(subsample: Subsample) -> dict[str, str]:
    """How many rows stood for all, where some did."""
    return {} if subsample.whole else {ROWS: f"{len(subsample.rows):,} rows stand for all"}


def _of_kind(evalset: EvalSet, kind: type[Prediction]) -> Prediction:
    return next(belief for belief in evalset.beliefs if type(belief) is kind)


def _finite_outcomes(
    y: FloatArray, prediction: Prediction, mixed: FloatArray
) -> Iterator[FloatArray]:
    """y as it is; where some lie outside by an unknown amount, just outside and at any distance."""
    outside = np.isinf(y)
    if not outside.any() or not isinstance(prediction, Quantiles):
        yield y
        return
    below, low, high = y < 0, prediction.values[:, 0], prediction.values[:, -1]
    yield np.where(
        outside, np.where(below, np.nextafter(low, -np.inf), np.nextafter(high, np.inf)), y
    )
    away = (1.0 + np.mod(997.0 * mixed, 1.0)) * (1.0 + float(np.ptp(prediction.values)))
    yield np.where(outside, np.where(below, low - away, high + away), y)


def _fixed_arrays(view: View, coverage: float, draws: int = 1) -> dict[str, Any]:
    """Arrays that follow from the prediction alone, those that can be had, as often as drawn."""
    found: dict[str, Any] = {}
    for name in (name for name, array in arrays().items() if array.by_row):
        try:
            values = view.get(name, coverage)
        except UnanswerableError:
            continue
        found[name] = None if values is None else np.tile(values, draws)
    for wanted in (coverage,) if not math.isnan(coverage) else (0.9, 0.8, 0.5):
        try:
            lower, upper = (np.tile(end, draws) for end in view.get("ends", wanted))
        except UnanswerableError:
            continue
        return {**found, "ends": (lower, upper), "lower": lower, "upper": upper}
    return found


def _codes(
    evalset: EvalSet, subsample: Subsample, grouping: Grouping
) -> tuple[tuple[str, ...], IntArray, FloatArray]:
    """Labels of a grouping, the groups of the rows at hand, and rows stood for in each."""
    weights = evalset.mass
    add = partial(np.bincount, grouping.codes, minlength=len(grouping.labels))
    n = np.asarray(add(weights=weights), dtype=np.float64)
    if evalset.weights is not None and evalset.weights.kind == "importance":
        n = np.square(n) / add(weights=np.square(weights))
    return grouping.labels, grouping.codes[subsample.rows], n * subsample.times


def _crps_among(y: FloatArray) -> FloatArray:
    """CRPS of each draw under the law that all draws of its row make, shape (draws, m)."""
    distance = np.zeros_like(y)
    for each in y:
        distance += np.abs(y - each)
    distance /= len(y)
    return np.asarray(distance - distance.mean(axis=0) / 2.0)


def _pearson(
    mean: FloatArray, variance: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The middle 95 % of Pearson's type III law of these moments: normal where not skew."""
    sd = np.sqrt(variance)
    skew = np.where(variance > 0, third / np.where(variance > 0, sd**3, 1.0), 0.0)
    size = np.clip(np.abs(skew), 1e-3, 2.0)  # beyond, a few draws say little of it
    k = 4.0 / np.square(size)
    near, far = ((special.gammaincinv(k, p) - k) / np.sqrt(k) for p in (_TAIL, 1.0 - _TAIL))
    low, high = np.where(skew < 0, -far, near), np.where(skew < 0, -near, far)
    return mean + sd * low, mean + sd * high


def _binomial(n: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the middle 95 % of a binomial share: the least counts whose probability reaches."""
    n = np.round(n)
    ends = []
    for level in (_TAIL, 1.0 - _TAIL):
        count = np.ceil(np.nan_to_num(special.bdtrik(level, n, share), nan=0.0))
        count = np.where(share >= 1.0, n, np.where(share <= 0.0, 0.0, np.clip(count, 0.0, n)))
        ends.append(count / n)
    return ends[0], ends[1]


def _lacks_null(record: Record) -> bool:
    """Whether a record is answered, lacks a perfect model's range, and does not say why."""
    known = not (math.isnan(record.null_lower) and math.isnan(record.null_upper))
    known |= WHY in record.options
    return math.isfinite(record.value) and not known and bool(catalogue()[record.metric].forms)
