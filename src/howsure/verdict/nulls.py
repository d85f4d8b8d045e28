"""The value and the range of a perfect model, for every record, by drawing y from the prediction.

Means: a stack of draws goes through the measure's own formula; of each row's scores the mean, the
variance and the third moment are kept, and sums of independent rows have three known moments.
Statistics: draw by draw through the same formula. Past some rows a part stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
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
# Numbers of predictions that are drawn from at once, of all draws: 16 MB.
_NUMBERS_AT_ONCE = 2_000_000
# Rows that stand for all, of means: these are known to 1 % of the sd of a row's score, and the
# error is part of the range.
_ROWS_OF_MEANS = 10_000
# The same of statistics, whose formula runs for each of the draws: 49 of them read 49,000 rows.
_ROWS_OF_STATISTICS = 1_000
# The same where rows depend, as no part then stands for all; above, they have no range.
_DEPENDENT_ROWS = 5_000
# Draws of each row's score, for means. Ten give its variance to a half, which averages over the
# rows; more than 100 are no better than more rows.
_MIN_DRAWS_OF_MEANS, _MAX_DRAWS_OF_MEANS = 10, 100
# Rows of tables made of the draws of few rows, 400,000 of 3 MB together; and tables: of 1,999 the
# 2.5 % end is known to .35 points.
_ROWS_OF_TABLES, _MAX_TABLES = 400_000, 1_999
# Draws of a statistic: of all rows, of a part, of a group, of many rows. The sd that a range rests
# on is known to 10, 13, 16 and 24 % (1/√(2n)); Student's t widens the range for it. Each costs the
# formula once.
_DRAWS_OF_ALL, _DRAWS_OF_PART, _DRAWS_OF_GROUP, _DRAWS_OF_MANY_ROWS = 49, 29, 19, 9
# Groups whose statistics are drawn; each takes the time of 19 assessments of its rows. Not tuned.
_MAX_GROUPS = 16
# Ranges are of 95 %, as intervals are.
_TAIL = 0.025
_Z = float(special.ndtri(1.0 - _TAIL))
_OUTSIDE = "quantiles give no distribution beyond their outermost levels"


@frozen
class Null:
    """A perfect model's value (NaN: the target) and range, and what else to say of them."""

    value: float
    lower: float
    upper: float
    options: Mapping[str, str] = field(default_factory=dict)


@frozen(eq=False)
class _Measure:
    """One metric at one coverage, with the form that answered."""

    metric: Metric
    key: Key
    form: Form

    @property
    def outcomes(self) -> set[str]:
        """The arrays that it needs and that differ with what happened."""
        needs = {*self.form.needs, *self.form.keywords.values()} - {"coverage"}
        return {name for name in needs if not arrays()[name].predicted}

    @property
    def target(self) -> float:
        return self.metric.target_at(self.key.at)

    def apply(self, view: View) -> Any:
        """Its formula on a view; of a statistic the one estimate that it makes."""
        answer = apply_form(view, self.form, self.key.at)
        if self.form.reduce == "statistic" and not isinstance(answer, Estimate):
            raise UnanswerableError("the answer is several numbers at once")
        return answer

    def integrated(self, prediction: Prediction) -> bool:
        """Whether it is the CRPS of a law that has no closed form."""
        (first, *others), known = self.form.needs, arrays()
        test = known[first].integrated if first in known and not others else None
        return test is not None and test(prediction)


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
        self, evaluation: Evaluation, seed: int, dependence: Dependence | str, n: float | None
    ) -> None:
        self.copula = copula_of(evaluation.view, dependence)
        self.view = evaluation.view
        self.records = evaluation.records
        self.model = evaluation.evalset.model
        self.seed = seed
        self.population = Population(self.view, seed, n)
        self.nulls: dict[tuple[Key, str], Null | str] = {}  # by group too; "" of all rows

    def attach(self, grouped: Sequence[Record]) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        by_kind: dict[type[Prediction], list[_Measure]] = {}
        for record in filter(_lacks_null, self.records):
            drawn = attempt(
                f"how y is drawn for {record.metric} of {self.model}",
                partial(self._drawn_by, record),
                partial(self.nulls.__setitem__, (record.key, "")),
            )
            if drawn is not None:
                by_kind.setdefault(drawn[0], []).append(drawn[1])
        in_groups = {record.metric for record in grouped}
        divisions = groupings(self.view.evalset)[0] if grouped and by_kind else ()
        for kind, measures in by_kind.items():
            means = [measure for measure in measures if measure.form.reduce != "statistic"]
            statistics = [measure for measure in measures if measure.form.reduce == "statistic"]
            self._try(partial(self._find_means, kind, means, divisions), means)
            self._try(partial(self._find_statistics, kind, statistics), statistics)
            of_groups = [measure for measure in statistics if measure.metric.name in in_groups]
            if of_groups:
                self._find_in_groups(kind, of_groups, divisions)
        return (
            tuple(_attach(record, self.nulls.get((record.key, ""))) for record in self.records),
            tuple(self._attach_of_group(record) for record in grouped),
        )

    def _drawn_by(self, record: Record) -> tuple[type[Prediction], _Measure] | None:
        """Which kind draws y for a record; None where the null is known at once."""
        metric, key = catalogue()[record.metric], record.key
        if metric.units == "p-value":
            self.nulls[key, ""] = Null(0.5, 0.05, 1.0)
            return None
        form = metric.forms[0]
        if len(metric.forms) > 1:  # of one form, what it needs may have been let go
            form = find_form(self.view, metric, record.coverage)
        measure = _Measure(metric, key, form)
        if not measure.outcomes:
            raise UnanswerableError("does not depend on y")
        if reasons := [why for name in measure.outcomes if (why := arrays()[name].undrawn)]:
            raise UnanswerableError(reasons[0])
        return _drawer(self.view.evalset, measure, record.source), measure

    def _try(
        self, draw: Callable[[], object], measures: Sequence[_Measure], group: str = ""
    ) -> None:
        """Draw for several metrics; where that is refused, each has the reason."""

        def refuse(reason: str) -> None:
            for measure in measures:
                self.nulls.setdefault((measure.key, group), reason)

        if measures:
            where = f" in {group}" if group else ""
            attempt(f"perfect models{where} of {self.model}", draw, refuse)

    def _find_means(
        self, kind: type[Prediction], measures: Sequence[_Measure], divisions: Sequence[Grouping]
    ) -> None:
        most = min(_ROWS_OF_MEANS, max(reach(self.view.evalset, kind) // _MIN_DRAWS_OF_MEANS, 1))
        part = self.population.stand(most)
        stack = _Stack(part, kind, self.seed, self.copula)
        every = np.zeros(self.view.evalset.n, dtype=np.int64)
        groups = [_Groups(("",), every[part.rows], np.array([part.n]), self._companions(every, 1))]
        for grouping in divisions:
            n = _rows_of_groups(self.view.evalset, grouping) * part.times
            companions = self._companions(grouping.codes, len(grouping.labels))
            groups.append(_Groups(grouping.labels, grouping.codes[part.rows], n, companions))
        for measure, moments in stack.moments(measures):
            if isinstance(moments, str):
                self.nulls[measure.key, ""] = moments
                continue
            options = {**_options(part), **_answered_by(kind, measure, self.view)}
            for division in groups:
                nulls = moments.nulls(part, measure, division, options)
                for label, null in zip(division.labels, nulls, strict=True):
                    self.nulls[measure.key, label] = null

    def _companions(self, codes: IntArray, groups: int) -> FloatArray | None:
        return None if self.copula is None else self.copula.companions(codes, groups)

    def _find_statistics(self, kind: type[Prediction], measures: Sequence[_Measure]) -> None:
        part = self.population.stand(self._most(kind))
        if not part.whole or len(part.rows) > _ROWS_OF_STATISTICS:
            sized = [measure for measure in measures if measure.metric.by_size]
            self._try(partial(self._find_sized, kind, sized), sized)
            measures = [measure for measure in measures if not measure.metric.by_size]
        self._draw(part, kind, measures, _DRAWS_OF_ALL if part.whole else _DRAWS_OF_PART)

    def _find_sized(self, kind: type[Prediction], measures: Sequence[_Measure]) -> None:
        part = self.population.stand(2 * reach(self.view.evalset, kind) // _DRAWS_OF_MANY_ROWS)
        if not part.whole:
            raise UnanswerableError(
                "the value depends on the number of rows, so no subset can represent them all"
            )
        self._draw(
            part,
            kind,
            measures,
            _DRAWS_OF_MANY_ROWS if len(part.rows) > _ROWS_OF_STATISTICS else _DRAWS_OF_ALL,
        )

    def _draw(
        self,
        part: Subsample,
        kind: type[Prediction],
        measures: Sequence[_Measure],
        draws: int,
        group: str = "",
        rows: IntArray | None = None,
    ) -> None:
        """Find statistics of all rows, or of the rows of a group, draw by draw."""
        if not measures:
            return
        uniforms, view = self._dependent_uniforms(part, rows), part.view
        evalset, prediction = view.evalset, _of_kind(view.evalset, kind)
        fixed = {
            key.coverage: {} if kind is Samples else _fixed_arrays(view, key.at)
            for key in _coverages(measures)
        }
        statistics = [_Statistic(measure, part) for measure in measures]
        beside = [other for other in evalset.predictions if other is not prediction]
        mixed = row_uniforms(self.seed, "outside", part.keys)
        for y, redrawn in draw_outcomes(
            prediction, evalset.y, part.keys, draws, seed=self.seed, together=uniforms
        ):
            sets = [
                replace(evalset, y=finite, predictions=(redrawn, *beside))
                for finite in _finite_outcomes(y, redrawn, mixed)
            ]
            views = {
                at: [view.on(drawn, given=arrays) for drawn in sets] for at, arrays in fixed.items()
            }
            for statistic in statistics:
                statistic.add(views[statistic.measure.key.coverage])
        for statistic in statistics:
            measure, null = statistic.measure, statistic.null(draws)
            if not isinstance(null, str):
                source = {} if group else _answered_by(kind, measure, self.view)
                null = replace(null, options={**_options(part), **source})
            self.nulls[measure.key, group] = null

    def _most(self, kind: type[Prediction]) -> int:
        """Rows that a statistic is drawn on: more where rows depend, as no part then serves."""
        most = _ROWS_OF_STATISTICS if self.copula is None else _DEPENDENT_ROWS
        # All draws together read at most 2½ times the rows within reach.
        return max(min(most, 5 * reach(self.view.evalset, kind) // (2 * _DRAWS_OF_ALL)), 1)

    def _dependent_uniforms(
        self, part: Subsample, rows: IntArray | None
    ) -> Callable[[int], FloatArray] | None:
        """How uniforms of some rows of the set, or of all, are drawn, where rows depend."""
        copula, n = self.copula, self.view.evalset.n
        if copula is None:
            return None
        rows = np.arange(n) if rows is None else rows
        if not part.whole or len(part.rows) > len(rows) or n > _ROWS_OF_MEANS:
            raise UnanswerableError("rows are dependent, so no subset can represent them all")
        chosen = rows[part.rows]
        return lambda number: copula.uniforms(self.seed, f"outcome {number}")[chosen]

    def _find_in_groups(
        self, kind: type[Prediction], measures: Sequence[_Measure], divisions: Sequence[Grouping]
    ) -> None:
        """Statistics of groups, of the groupings that come first while groups are few."""
        count = 0
        for grouping in divisions:
            count += len(grouping.labels)
            for code, label in enumerate(grouping.labels):
                if count > _MAX_GROUPS:
                    reason = f"statistics of more than {_MAX_GROUPS} groups are not simulated"
                    self.nulls |= dict.fromkeys(
                        ((measure.key, label) for measure in measures), reason
                    )
                    continue
                rows = np.flatnonzero(grouping.codes == code)
                self._try(partial(self._find_group, kind, measures, rows, label), measures, label)

    def _find_group(
        self, kind: type[Prediction], measures: Sequence[_Measure], rows: IntArray, group: str
    ) -> None:
        part = Population(self.view.of(rows), self.seed).stand(self._most(kind))
        fitting = [measure for measure in measures if part.whole or not measure.metric.by_size]
        self._draw(part, kind, fitting, _DRAWS_OF_GROUP, group, rows)

    def _attach_of_group(self, record: Record) -> Record:
        null = self.nulls.get((record.key, record.group))
        of_all = self.nulls.get((record.key, ""))
        if null is None and (isinstance(of_all, str) or record.units == "p-value"):
            null = of_all
        return _attach(record, null) if record.group else record


def _attach(record: Record, null: Null | str | None) -> Record:
    if null is None or not _lacks_null(record):
        return record
    if isinstance(null, str):
        return replace(record, options={**record.options, WHY: null})
    return replace(
        record,
        null=null.value if math.isnan(record.null) else record.null,
        null_lower=null.lower,
        null_upper=null.upper,
        options={**record.options, **null.options},
    )


class _Groups(NamedTuple):
    """Groups of rows: their labels, the group of each row at hand, the rows that each stands for,
    and what a row's companions in its group add where rows depend.
    """

    labels: tuple[str, ...]
    codes: IntArray
    n: FloatArray
    companions: FloatArray | None


@frozen(eq=False)
class _Moments:
    """Of each row's score, over draws: mean, variance, third central moment, error of the mean."""

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    noise: FloatArray
    tables: FloatArray | None  # shape (m, tables): of tables that take any draw of each row
    hermite: FloatArray | None

    def _design(self, part: Subsample, groups: _Groups) -> FloatArray | float:
        """By what the variance of each group's mean grows as rows depend.

        Scores of two rows with normal scores of correlation ρ have covariance Σ c_j c'_j ρ^j.
        """
        if groups.companions is None or self.hermite is None:
            return 1.0
        w = np.ones(len(groups.codes)) if part.weights is None else part.weights
        add = partial(np.bincount, groups.codes, minlength=len(groups.n))
        with np.errstate(invalid="ignore", divide="ignore"):
            within = add(weights=np.square(w) * self.variance) / add(weights=np.square(w))
            means = np.stack([add(weights=w * row) / add(weights=w) for row in self.hermite])
            grown = (np.square(means) * groups.companions).sum(axis=0) / within
        return np.where(np.isfinite(grown), 1.0 + grown, 1.0)

    def nulls(
        self, part: Subsample, measure: _Measure, groups: _Groups, options: dict[str, str]
    ) -> list[Null | str]:
        """The null of each group of rows."""
        codes, w = groups.codes, part.weights
        n = groups.n / self._design(part, groups)
        w = np.ones(len(codes)) if w is None else w / w.max()
        add = partial(np.bincount, codes, minlength=len(n))
        with np.errstate(invalid="ignore", divide="ignore"):
            total, squared = add(weights=w), add(weights=np.square(w))
            size = np.square(total) / squared  # Kish's, of the rows at hand
            mean = add(weights=w * self.mean) / total
            within = add(weights=np.square(w) * self.variance) / squared
            third = add(weights=w**3 * self.third) / add(weights=w**3)
            error = add(weights=np.square(w) * self.noise) / squared / size
            if not part.whole:
                error = self._between(codes, mean) / size
            target = measure.target
            # Draws that do not contradict the target are noise about it, which it has none of.
            met = np.abs(mean - target) <= 3.0 * np.sqrt(error) + 1e-9 * max(1.0, abs(target))
            mean, error = np.where(met, target, mean), np.where(met, 0.0, error)
            shape = add(weights=w**3) / total**3 * np.square(size) * third / np.square(n)
            if measure.form.reduce == "share" and part.weights is None:
                low, high = _binomial(n, np.clip(mean, 0.0, 1.0))
            elif self.tables is not None:
                low, high = mean + self._among_tables(codes, w) * np.sqrt(within / n)
            else:
                low, high = _pearson(mean, within / n, shape)
            low = mean - np.hypot(mean - low, _Z * np.sqrt(error))
            high = mean + np.hypot(high - mean, _Z * np.sqrt(error))
        bottom, top = measure.metric.bounds
        low, high = np.maximum(low, bottom), np.minimum(high, top)
        shown = np.where(met, math.nan, mean)
        return [
            Null(float(shown[g]), float(low[g]), float(high[g]), options)
            if total[g] > 0 and math.isfinite(mean[g])
            else "none of its rows is in the subset that represents them all"
            for g in range(len(n))
        ]

    def _among_tables(self, codes: IntArray, w: FloatArray) -> FloatArray:
        """The middle 95 % of tables that take any draw of each row, their mean 0 and sd 1."""
        assert self.tables is not None
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
        sums = np.add.reduceat((w[:, None] * self.tables)[order], starts, axis=0)
        spread = sums.std(axis=1)
        ends = np.quantile(sums, [_TAIL, 1.0 - _TAIL], axis=1, method="weibull")
        return np.asarray((ends - sums.mean(axis=1)) / np.where(spread > 0, spread, 1.0))

    def _between(self, codes: IntArray, mean: FloatArray) -> FloatArray:
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
        self, part: Subsample, kind: type[Prediction], seed: int, copula: Copula | None
    ) -> None:
        self.part, self.kind, self.copula = part, kind, copula
        evalset, m = part.view.evalset, len(part.rows)
        self.prediction = _of_kind(evalset, kind)
        draws = (
            min(max(reach(evalset, kind) // m, _MIN_DRAWS_OF_MEANS), _MAX_DRAWS_OF_MEANS) // 2 * 2
        )
        self.exact = isinstance(self.prediction, Samples) and self.prediction.size < draws
        if isinstance(self.prediction, Samples) and self.exact:
            places = (np.arange(self.prediction.size + 1) + 0.5) / (self.prediction.size + 1)
            self.uniforms = np.repeat(places[:, None], m, axis=1)
        else:
            self.uniforms = strata(part.keys, draws, seed=seed)
        self.chosen = None  # shape (m, tables): which draw of each row makes which table
        if part.whole and m <= _ROWS_OF_STATISTICS:  # few enough to be added up table by table
            tables = min(_ROWS_OF_TABLES // m, _MAX_TABLES)
            mixed = row_uniforms(seed, "tables", part.keys, columns=tables)
            self.chosen = (mixed * len(self.uniforms)).astype(np.int64)

    def moments(self, measures: Sequence[_Measure]) -> Iterator[tuple[_Measure, _Moments | str]]:
        """Of the scores of each mean, or why there are none."""
        predictions, model = self.part.view.evalset.predictions, self.part.view.evalset.model
        numbers = sum(
            column.size for prediction in predictions for column in prediction.numbers().values()
        )
        draws = max(_NUMBERS_AT_ONCE // max(numbers, 1), 1)
        scores: dict[_Measure, list[FloatArray]] = {measure: [] for measure in measures}
        for start in range(0, len(self.uniforms), draws):
            uniforms = self.uniforms[start : start + draws]
            evalsets = [] if self.kind in (Intervals, LabelSets) else self._draw(uniforms)
            for key in _coverages(scores):
                views = self._views(evalsets, uniforms, key.at)
                for measure in [m for m in scores if m.key.coverage == key.coverage]:
                    what = f"perfect {measure.metric.name} of {model}"
                    score = partial(self._scores, views, measure, len(uniforms))
                    rows = attempt(what, score, str)
                    if isinstance(rows, str):
                        del scores[measure]
                        yield measure, rows
                        continue
                    scores[measure].append(rows)
                    if start + draws >= len(self.uniforms):
                        yield measure, self._moments(measure, np.concatenate(scores.pop(measure)))

    def _moments(self, measure: _Measure, scores: FloatArray) -> _Moments | str:
        if measure.integrated(self.prediction):
            scores = _crps_among(scores)
        if not np.isfinite(scores).all():
            return "some rows of a perfect model have an infinite score"
        mean = scores.mean(axis=0)
        off = scores - mean
        squares = np.square(off)
        noise = np.zeros(len(mean))
        if not self.exact:  # the halves are independent
            first, second = np.split(scores, 2)
            noise = np.square(first.mean(axis=0) - second.mean(axis=0)) / 4.0
        chosen = self.chosen
        return _Moments(
            mean,
            squares.mean(axis=0) + noise,
            (squares * off).mean(axis=0),
            noise,
            None if chosen is None else np.take_along_axis(scores.T, chosen, axis=1),
            None if self.copula is None else self.copula.hermite(scores, self.uniforms),
        )

    def _scores(self, views: Sequence[View], measure: _Measure, draws: int) -> FloatArray | str:
        """Shape (draws, m); y itself where each is scored among all draws of its row."""
        if measure.integrated(self.prediction):
            return views[0].evalset.y.reshape(draws, -1)
        first, *further = (np.asarray(measure.apply(view), dtype=np.float64) for view in views)
        for scores in further:
            if not np.allclose(first, scores, rtol=1e-9, atol=0.0, equal_nan=True):
                raise UnanswerableError(_OUTSIDE)
        return first.reshape(draws, -1)

    def _views(
        self, evalsets: Sequence[EvalSet], uniforms: FloatArray, coverage: float
    ) -> list[View]:
        """Of drawn outcomes, or of whether these lie inside where no more is known."""
        view = self.part.view
        if not evalsets:
            inside = [self.prediction.inside(coverage, row) for row in uniforms]
            return [View(view.evalset, given={"covered": np.concatenate(inside)})]
        fixed = {} if self.kind is Samples else _fixed_arrays(view, coverage, len(uniforms))
        return [View(evalset, given=fixed) for evalset in evalsets]

    def _draw(self, uniforms: FloatArray) -> list[EvalSet]:
        evalset = self.part.view.evalset
        tile = np.tile(np.arange(evalset.n), len(uniforms))
        y, prediction = self.prediction.take(tile).redrawn(evalset.y[tile], uniforms.ravel())
        beside = [other.take(tile) for other in evalset.predictions if other is not self.prediction]
        point = None if evalset.point is None else evalset.point[tile]
        return [
            EvalSet(y=outcomes, predictions=(prediction, *beside), point=point)
            for outcomes in _finite_outcomes(y, prediction, uniforms.ravel())
        ]


def _coverages(measures: Iterable[_Measure]) -> list[Key]:
    """A key of each coverage at which measures are asked for."""
    return list({measure.key.coverage: measure.key for measure in measures}.values())


class _Statistic:
    """What perfect models of some rows show of a statistic, draw by draw."""

    def __init__(self, measure: _Measure, part: Subsample) -> None:
        self.measure = measure
        self.part = part
        self.values: list[float] = []
        self.influence = None if part.whole else np.zeros(len(part.rows))
        self.reason = ""

    def add(self, views: Sequence[View]) -> None:
        """One draw, as one view or as two that must agree; no more once there is none."""
        if self.reason:
            return
        try:
            first, *further = (self.measure.apply(view) for view in views)
        except UnanswerableError as error:
            self.reason = str(error)
            return
        for estimate in (first, *further):
            if self.influence is not None and estimate.influence is not None:
                self.influence += estimate.influence
            else:
                self.influence = None
            if estimate is not first and not math.isclose(
                first.value, estimate.value, rel_tol=1e-9
            ):
                self.reason = _OUTSIDE
        self.values.append(estimate.value)

    def null(self, draws: int) -> Null | str:
        values = np.array(self.values)
        finite = values[np.isfinite(values)]
        if not self.reason and len(finite) < 0.9 * draws:
            return "perfect models often have no value either"
        return self.reason or self._range(finite, draws)

    def _range(self, values: FloatArray, draws: int) -> Null:
        """The range of drawn values, rescaled where a part stands for all."""
        part, metric = self.part, self.measure.metric
        centre, ratio = float(values.mean()), math.sqrt(part.size / min(part.n, metric.most_rows))
        bottom, top = metric.bounds
        below, above = (ratio * distance for distance in _reaches(values))
        if not part.whole and metric.target == 0.0 and bottom == 0.0:  # a floor of noise
            centre *= ratio
        elif not part.whole:  # of a part with other rows the centre would be another
            error = float(values.var())
            if self.influence is not None:
                steps = np.diff(self.influence / draws)  # rows lie in rising uncertainty
                error = float(np.square(steps).mean() / 2.0 / part.size) if len(steps) else 0.0
            target = self.measure.target
            if abs(centre - target) <= 3.0 * math.sqrt(error):
                return Null(math.nan, max(target - below, bottom), min(target + above, top))
            below, above = (math.hypot(side, _Z * math.sqrt(error)) for side in (below, above))
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


def _drawer(evalset: EvalSet, measure: _Measure, source: str) -> type[Prediction]:
    """The kind that draws y: a coin for coverage, else who answered, else who knows most."""
    named = source.split(", ")
    if measure.outcomes == {"covered"} and measure.form.reduce != "statistic":
        for coin in (Intervals, LabelSets):
            if coin.kind in named:
                return coin
    types = {type(prediction) for prediction in evalset.predictions}
    drawers = [kind for kind in KIND_PRIORITY if kind in types and kind.answers("redrawn")]
    if not types:
        raise UnanswerableError("a point forecast alone gives no distribution of y")
    if not drawers:
        raise UnanswerableError(
            f"{evalset.predictions[0].kind} give only the probability that y is inside"
        )
    return next((kind for kind in drawers if kind.kind in named), drawers[0])


def _answered_by(kind: type[Prediction], measure: _Measure, view: View) -> dict[str, str]:
    """Who drew y, where that is not who answered."""
    source = view.source([*measure.form.needs, "ends"], measure.key.at)
    alone = len(view.evalset.predictions) < 2
    return {} if alone or not source or kind.kind in source.split(", ") else {BY: kind.kind}


def _options(subsample: Subsample) -> dict[str, str]:
    """How many rows stood for all, where some did."""
    return {} if subsample.whole else {ROWS: f"from a subset of {len(subsample.rows):,} rows"}


def _of_kind(evalset: EvalSet, kind: type[Prediction]) -> Prediction:
    return next(prediction for prediction in evalset.predictions if type(prediction) is kind)


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
    fixed: dict[str, Any] = {}
    for name in (name for name, array in arrays().items() if array.by_row):
        with suppress(UnanswerableError):
            values = view.get(name, coverage)
            fixed[name] = None if values is None else np.tile(values, draws)
    for nominal in (coverage,) if not math.isnan(coverage) else (0.9, 0.8, 0.5):
        with suppress(UnanswerableError):
            lower, upper = (np.tile(end, draws) for end in view.get("ends", nominal))
            return {**fixed, "ends": (lower, upper), "lower": lower, "upper": upper}
    return fixed


def _rows_of_groups(evalset: EvalSet, grouping: Grouping) -> FloatArray:
    """How many rows each group counts."""
    mass = evalset.mass
    add = partial(np.bincount, grouping.codes, minlength=len(grouping.labels))
    n = np.asarray(add(weights=mass), dtype=np.float64)
    if evalset.weights is not None and evalset.weights.kind == "importance":
        n = np.square(n) / add(weights=np.square(mass))
    return n


def _crps_among(y: FloatArray) -> FloatArray:
    """CRPS of each draw under the law that all draws of its row make, shape (draws, m)."""
    distance = np.zeros_like(y)
    for draw in y:
        distance += np.abs(y - draw)
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
    lacks = math.isnan(record.null_lower) and math.isnan(record.null_upper)
    lacks = lacks and WHY not in record.options and math.isfinite(record.value)
    return lacks and bool(catalogue()[record.metric].forms)
