"""What is expected of rows whose y is not known yet, from their inputs and a reference.

Two things may change: the inputs, and y given the inputs. The first shows before labels arrive,
and its effect is estimated here; the second does not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, BoolArray, FloatArray
from howsure.core.classes import brief_repr, frozen
from howsure.core.convert import Count, json_number, plain, read_json, restored
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.formats import interval, listed, number, percent, roughly
from howsure.core.labels import find_labels, is_numeric, rank_labels
from howsure.engine.finding import SharedScore, between
from howsure.engine.measure import apply_form, find_measure
from howsure.engine.view import View
from howsure.predictions import EvalSet, content_order
from howsure.stats.balance import Balanced, BalancedMean, KnownRows, RidgeFit
from howsure.stats.binomial import clopper_pearson
from howsure.stats.estimate import Spread, like_rows, skewed_ends
from howsure.watch.quantities import point_and_width, row_counts

# Each new row is compared with all of these, and a ledger holds them: 5,000 rows of ten inputs are
# 400 kB. By hand; not tuned: more narrow the expectation.
MOST_ROWS = 5_000
"""Rows of a reference that are kept, drawn by what they hold."""
# A share of 50 rows has a standard error of 4 points at 90 %; what is expected of fewer warns of
# nothing. By hand; not tuned.
MIN_EFFECTIVE = 50.0
# Chosen by hand; not tuned. Of fewer new rows nothing can be said later that chance would not say.
MIN_ROWS_INSIDE = 10.0
"""Fewer effective reference rows, or new rows among them, tell nothing."""
# As all intervals.
_CONFIDENCE = 0.95
# Share of rows outside from which on what is expected is told of the others by name. It decides
# words alone.
_MAX_SHARE_OUTSIDE = 0.5
# Levels of a label with an effect of their own, and rows without which one has none: each is a
# column, and an effect of fewer rows would be noise. By hand; not tuned.
_MAX_LEVELS, _MIN_ROWS_OF_LEVEL = 10, 10
# Below 0, where no place of a level is.
_OTHER, _UNKNOWN = -1.0, -2.0
_SCORES = ("crps", "interval_score", "mae")

InputKind = Literal["number", "label"]


@final
@frozen(kw_only=True)
class KnownInput:
    """One input of the reference's rows."""

    name: str
    kind: InputKind
    levels: tuple[str, ...] = ()  # of labels, those that count apart
    others: bool = False  # whether the reference has other levels, which count as one

    @classmethod
    def of(cls, name: str, values: AnyArray, copies: FloatArray) -> Self:
        """A column: numbers as they are, of labels the most frequent ones."""
        if is_numeric(values):
            return cls(name=name, kind="number")
        labels, counts = rank_labels(values, copies)
        frequent = min(int((counts >= _MIN_ROWS_OF_LEVEL).sum()), _MAX_LEVELS)
        levels = tuple(labels[:frequent])
        return cls(name=name, kind="label", levels=levels, others=frequent < len(labels))

    def read(self, values: AnyArray) -> FloatArray:
        """Numbers; of labels the places of their levels, or whether they are others or unknown."""
        if is_numeric(values) != (self.kind == "number"):
            raise InputError(f"feature {self.name!r} must contain {self.kind}s, got {values.dtype}")
        if self.kind == "number":
            return np.asarray(values, dtype=np.float64)
        places = find_labels(values.astype(str), self.levels)
        elsewhere = _OTHER if self.others else _UNKNOWN
        return np.where(places < len(self.levels), places, elsewhere)

    def block(self, values: FloatArray) -> FloatArray:
        """What `read` made as columns of a model, shape (n, c)."""
        if self.kind == "number":
            return values[:, None]
        return np.asarray(values[:, None] == np.arange(len(self.levels)), dtype=np.float64)


@final
@frozen(kw_only=True)
class ExpectedValue:
    """The expected mean of new rows inside the reference; NaN without an estimate.

    Attributes
    ----------
    value, lower, upper : float
        The expectation given the inputs of these rows, with its 95 % interval.
    seen_lower, seen_upper : float
        The 95 % interval of the mean once y is known, including chance in y.
    least, most : float
        Bounds of the expectation over all rows, whatever y of those outside.
    unchanged : float
        The mean of the reference.
    """

    value: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    seen_lower: float = math.nan
    seen_upper: float = math.nan
    least: float = math.nan
    most: float = math.nan
    unchanged: float = math.nan


@final
@frozen(kw_only=True, eq=False)
class Expected:
    """What is expected of new rows before labels, if y given its inputs has not changed.

    Attributes
    ----------
    rows : float
        New rows, with copies.
    inside : float
        Share of them within the reference; all that follows is about these.
    rows_inside : ndarray of bool, shape (m,)
        Which these are.
    effective : float
        The effective sample size of the reference for these rows.
    nominal : float
        Nominal coverage; NaN where no coverage is watched.
    coverage, score, factor : ExpectedValue
        Share of y that is covered; mean score; and the factor for half-widths under which the
        nominal coverage is expected, infinite where the reference is too short for it.
    score_name : str
        Name of the measure that scores rows.
    reason : str
        Why nothing is expected; empty where something is.
    """

    rows: float
    inside: float
    rows_inside: BoolArray
    effective: float
    nominal: float
    coverage: ExpectedValue = field(default_factory=ExpectedValue)
    score: ExpectedValue = field(default_factory=ExpectedValue)
    factor: ExpectedValue = field(default_factory=ExpectedValue)
    score_name: str = ""
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The result in words."""
        if self.reason:
            return f"No estimate for today before labels arrive: {self.reason}."
        value, outside = self._value_in_words, 1.0 - self.inside
        opening = "Expected today, before labels arrive"
        if not outside:
            return f"{opening}: {value}. All rows are within the reference."
        if outside <= _MAX_SHARE_OUTSIDE:
            return (
                f"{opening}: {value}; {_few(outside)} of rows are outside the reference, without "
                "an estimate."
            )
        return (
            f"{opening}, for the {_few(self.inside)} of rows within the reference: {value}. The "
            "other rows have no estimate."
        )

    @property
    def _value_in_words(self) -> str:
        """Coverage, or the score where no coverage is watched."""
        if math.isnan(self.coverage.value):
            score, ends = self.score, interval(self.score.lower, self.score.upper)
            return f"{SharedScore(self.score_name).title} {number(score.value, 3)} ({ends})"
        ends = between(100.0 * self.coverage.lower, 100.0 * self.coverage.upper, 1)
        return f"{percent(self.nominal)} intervals cover {percent(self.coverage.value)}{ends}"

    @property
    def width_sentence(self) -> str:
        """By how much intervals would have to grow, in words; empty where it is not known."""
        factor = self.factor
        if math.isnan(factor.value):
            return ""
        if math.isinf(factor.value):
            return (
                "The reference is too short to estimate how wide "
                f"{percent(self.nominal)} intervals must be for these inputs."
            )
        return (
            f"To cover {percent(self.nominal)} for these inputs, half-widths need a factor of "
            f"{number(factor.value, 3)} ({number(factor.lower, 3)} to {number(factor.upper, 3)})."
        )

    @property
    def beware(self) -> str:
        """What it cannot see."""
        return (
            "This estimate uses only inputs; a change of y given its inputs can be seen only in "
            "labels."
        )


def _few(share: float) -> str:
    """A share above 0 that is never shown as 0."""
    # Less would be rounded to 0.0 %.
    return percent(share) if share >= 0.0005 else "less than 0.1 %"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Background:
    """The part of a reference that is used to assess rows without y.

    Its inputs are the features that the table declares; without any, the point forecast and the
    logarithm of the width of the interval. Numbers have smooth effects; labels have one effect for
    each of the ten most frequent levels. Rows whose inputs are not finite are left out of the
    reference, and new ones are outside of it.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> rng = np.random.default_rng(0)
    >>> def rows(n, shift):
    ...     x = rng.normal(shift, size=n)  # errors grow with x, and the stated sd does not
    ...     y = np.exp(0.25 * x) * rng.normal(size=n)
    ...     return EvalSet.checked(y, Distribution.normal(0 * x, 0 * x + 1), features={"x": x})
    >>> known = Background.of(rows(2_000, 0.0), 0.9)
    >>> told = known.expected(rows(300, 1.0)).coverage
    >>> told.upper < told.unchanged
    True
    """

    columns: tuple[KnownInput, ...]
    predicted: bool  # whether these follow from the prediction, as there are no features
    inputs: FloatArray  # shape (n, d): numbers, and places of levels
    copies: FloatArray  # shape (n,): how many rows each stands for
    covered: FloatArray  # shape (n,): 1 or 0; NaN where no coverage is watched
    ratios: FloatArray  # shape (n,): |y − middle| over half the width; NaN likewise
    scores: FloatArray  # shape (n,); NaN where none is known
    score: str  # name of the measure that scores rows; empty where none does
    coverage: float  # nominal; NaN where none is watched
    rows: Count  # of the whole reference

    __repr__ = brief_repr

    @classmethod
    def of(cls, evalset: EvalSet, coverage: float) -> Self:
        """Of at most 5,000 rows, whatever their order.

        Raises
        ------
        InputError
            If weights are of importance, or no row has finite inputs.
        """
        if evalset.weights is not None and evalset.weights.kind == "importance":
            raise InputError("weights of the reference must be frequencies, got importance weights")
        rows = evalset.n
        chosen = evalset.take(content_order([evalset])[:MOST_ROWS])  # the order is a random one
        predicted = not chosen.features
        values = _predicted(chosen, coverage) if predicted else chosen.features
        usable = np.logical_and.reduce([_finite(column) for column in values.values()])
        if not usable.any():
            raise InputError("the reference must have rows whose inputs are finite, got none")
        chosen = chosen.take(np.flatnonzero(usable))
        values = {name: column[usable] for name, column in values.items()}
        copies = row_counts(chosen)
        columns = tuple(KnownInput.of(name, values[name], copies) for name in sorted(values))
        inputs = [column.read(values[column.name]) for column in columns]
        score, scores = _scores(chosen, coverage)
        covered, ratios = _covered(chosen, coverage)
        return cls(
            columns=columns,
            predicted=predicted,
            inputs=np.stack(inputs, axis=1),
            copies=copies,
            covered=covered,
            ratios=ratios,
            scores=scores,
            score=score,
            coverage=coverage,
            rows=rows,
        )

    def to_table(self) -> pa.Table:
        """As an Arrow table: what its columns are stands in the metadata."""
        arrays = {f"input_{index}": column for index, column in enumerate(self.inputs.T)}
        arrays |= {name: getattr(self, name) for name in _ROWS}
        fields = {name: getattr(self, name) for name in _BESIDE}
        table = pa.table({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        return table.replace_schema_metadata({"howsure": json.dumps(plain(fields, json_number))})

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """What `to_table` made.

        Raises
        ------
        InputError
            If it is damaged.
        """
        try:
            fields = read_json((table.schema.metadata or {})[b"howsure"])
            inputs = [table[f"input_{k}"].to_numpy() for k in range(len(fields["columns"]))]
            rows = {name: table[name].to_numpy() for name in _ROWS}
            fields |= {"inputs": np.stack(inputs, axis=1), **rows}
            background: Self = restored(fields, cls, "reference")
            copies = background.copies
            if not (len(copies) and np.isfinite(copies).all() and copies.min() > 0):
                raise InputError("it must have rows, each with a number of copies")
        except (LookupError, TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(f"the reference's inputs are damaged: {error}") from error
        return background

    def expected(self, evalset: EvalSet, *, worth: float = 1.0) -> Expected:
        """What is expected of new rows; their y are not looked at.

        Parameters
        ----------
        evalset : EvalSet
            New rows, with the inputs of the reference.
        worth : float
            How many rows that depend count as one, at least 1.

        Returns
        -------
        Expected

        Raises
        ------
        InputError
            If a feature is missing, or of another kind.
        """
        if not worth >= 1.0:
            raise InputError(f"worth must be at least 1, got {worth!r}")
        copies = row_counts(evalset)
        inputs = self._read(evalset)
        total = float(copies.sum())
        order = np.lexsort((copies, *inputs.T))  # so that the order of rows leaves no rounding
        alike = (inputs == self.inputs[:1]) | ~self._constant  # in what never changed before
        usable = (np.isfinite(inputs) & (inputs != _UNKNOWN) & alike).all(axis=1)
        order = order[usable[order]]
        fields: dict[str, Any] = {"rows": total, "nominal": self.coverage}
        balanced = self._known_rows.balance(self._blocks(inputs[order]), copies[order])
        rows_inside = np.zeros(evalset.n, dtype=np.bool_)
        rows_inside[order] = balanced.inside
        share = 1.0 if rows_inside.all() else balanced.rows / total
        lead = self._fit_of_covered or self._fit_of_scores
        shares = balanced.weights if lead is None else self._known_rows.shares(balanced, lead.ridge)
        effective = self._known_rows.effective(shares) / worth if balanced.rows else 0.0
        fields |= {"inside": share, "rows_inside": rows_inside, "effective": effective}
        reason = _refusal(total, balanced.rows, effective)
        if lead is None and not reason:
            reason = (
                "the reference has neither intervals with a nominal coverage nor a finite score"
            )
        if reason:
            return Expected(**fields, reason=reason)
        if self._fit_of_covered is not None:
            fields["coverage"] = self._covers(balanced, self._fit_of_covered, share, worth)
            ridge = self._fit_of_covered.ridge
            fields["factor"] = self._factor(balanced, shares, ridge, effective, worth)
        if self._fit_of_scores is not None:
            fields["score"] = self._scored(balanced, self._fit_of_scores, share, worth)
            fields["score_name"] = self.score
        return Expected(**fields)

    @cached_property
    def _known_rows(self) -> KnownRows:
        return KnownRows(self._blocks(self.inputs), self.copies)

    @cached_property
    def _fit_of_covered(self) -> RidgeFit | None:
        return None if math.isnan(self.coverage) else self._known_rows.fit(self.covered)

    @cached_property
    def _fit_of_scores(self) -> RidgeFit | None:
        return self._known_rows.fit(self.scores) if self.score else None

    @cached_property
    def _constant(self) -> BoolArray:
        """Inputs that are the same in all rows, shape (d,)."""
        return np.asarray((self.inputs == self.inputs[:1]).all(axis=0))

    def _blocks(self, inputs: FloatArray) -> list[FloatArray]:
        return [
            known_input.block(column)
            for known_input, column in zip(self.columns, inputs.T, strict=True)
        ]

    def _read(self, evalset: EvalSet) -> FloatArray:
        """Inputs of new rows, shape (m, d)."""
        values = _predicted(evalset, self.coverage) if self.predicted else evalset.features
        absent = [column.name for column in self.columns if column.name not in values]
        if absent:
            raise InputError(
                f"features must contain those of the reference, got none of {listed(absent)}"
            )
        return np.stack(
            [known_input.read(values[known_input.name]) for known_input in self.columns], axis=1
        )

    def _covers(
        self, balanced: Balanced, fitted: RidgeFit, share: float, worth: float
    ) -> ExpectedValue:
        """The share of y that is covered; what is seen is a beta-binomial share about it."""
        from scipy.stats import betabinom

        mean = self._known_rows.mean(balanced, fitted, worth=worth)
        value = float(np.clip(round(mean.value, 12), 0.0, 1.0))  # weights sum to 1 but for rounding
        like = _like(value, mean)
        low, high = _ends_of_share(value, like)
        rows, hits = max(round(balanced.rows / worth), 1), value * like
        tail = (1.0 - _CONFIDENCE) / 2.0
        seen_low, seen_high = 0.0, float(rows)
        if hits > 0.0:
            seen_low = betabinom.ppf(tail, rows, hits, like - hits + 1.0)
        if hits < like:
            seen_high = betabinom.ppf(1.0 - tail, rows, hits + 1.0, like - hits)
        return ExpectedValue(
            value=value,
            lower=low,
            upper=high,
            seen_lower=float(seen_low) / rows,
            seen_upper=float(seen_high) / rows,
            least=share * low,
            most=share * high + 1.0 - share,
            unchanged=float(np.average(self.covered, weights=self.copies)),
        )

    def _scored(
        self, balanced: Balanced, fitted: RidgeFit, share: float, worth: float
    ) -> ExpectedValue:
        """The mean score, which is at least 0."""
        mean = self._known_rows.mean(balanced, fitted, worth=worth)
        low, high = (float(end[0]) for end in skewed_ends(mean.value, mean.spread, _CONFIDENCE))
        rows = balanced.rows / worth
        error = math.sqrt(float(mean.spread.error[0]) ** 2 + float(mean.noise[0]) / rows)
        third = mean.third - float(mean.noise[1]) / rows**2
        skew = third / error**3 if error > 0.0 else 0.0
        spread = Spread(np.array([error]), np.array([skew]), mean.spread.units, mean.spread.degrees)
        seen_ends = (float(end[0]) for end in skewed_ends(mean.value, spread, _CONFIDENCE))
        seen_low, seen_high = seen_ends
        return ExpectedValue(
            value=max(mean.value, 0.0),
            lower=max(low, 0.0),
            upper=max(high, 0.0),
            seen_lower=max(seen_low, 0.0),
            seen_upper=max(seen_high, 0.0),
            least=share * max(low, 0.0),
            most=max(high, 0.0) if share == 1.0 else math.inf,
            unchanged=float(np.average(self.scores, weights=self.copies)),
        )

    def _factor(
        self, balanced: Balanced, shares: FloatArray, ridge: float, effective: float, worth: float
    ) -> ExpectedValue:
        """The weighted conformal quantile of the ratios, and Woodruff's range of it.

        A new row weighs, beside the reference's, what these weigh on average where it lies.
        """
        order = np.argsort(self.ratios, kind="stable")
        ratios = np.append(self.ratios[order], math.inf)
        reached = np.maximum.accumulate(np.cumsum((self.copies * shares)[order]))

        def quantile(level: float) -> float:
            return float(ratios[np.searchsorted(reached, level - 1e-12)])

        inflation = 1.0 + 1.0 / (effective * worth)
        value = quantile(self.coverage * inflation)
        within = np.asarray(self.ratios <= value, dtype=np.float64)
        mean = self._known_rows.mean(
            balanced, self._known_rows.fit(within), worth=worth, ridge=ridge
        )
        low, high = _ends_of_share(self.coverage, _like(self.coverage, mean))
        return ExpectedValue(
            value=value,
            lower=min(quantile(low), value),
            upper=quantile(max(high, self.coverage) * inflation),
            unchanged=_plain_quantile(self.ratios, self.copies, self.coverage),
        )


_ROWS = ("copies", "covered", "ratios", "scores")
_BESIDE = ("columns", "predicted", "score", "coverage", "rows")


def _like(value: float, mean: BalancedMean) -> float:
    """How many independent rows an expected share is worth."""
    spread = mean.spread
    rows = like_rows(np.array([value]), spread.error, spread.units, spread.units, _CONFIDENCE)
    return float(rows[0])


def _ends_of_share(value: float, like: float) -> tuple[float, float]:
    low, high = clopper_pearson(value * like, like, confidence=_CONFIDENCE)
    return float(low), float(high)


def _plain_quantile(ratios: FloatArray, copies: FloatArray, coverage: float) -> float:
    order = np.argsort(ratios, kind="stable")
    reached = np.cumsum(copies[order])
    position = int(np.searchsorted(reached, coverage * (reached[-1] + 1.0) - 1e-9))
    return float(np.append(ratios[order], math.inf)[position])


def _refusal(total: float, inside: float, effective: float) -> str:
    """Why too little is known of new rows; empty where enough is."""
    if inside == 0.0:
        rows = "its row is" if total == 1.0 else f"all {total:,.0f} rows are"
        return f"{rows} outside the reference"
    if inside < MIN_ROWS_INSIDE:
        rows = "row is" if inside == 1.0 else "rows are"
        return (
            f"{inside:,.0f} of {total:,.0f} {rows} within the reference; at least "
            f"{MIN_ROWS_INSIDE:.0f} are needed"
        )
    if effective < MIN_EFFECTIVE:
        return (
            "for these inputs, the effective sample size of the reference is "
            f"{roughly(effective)}; at least {MIN_EFFECTIVE:.0f} is needed"
        )
    return ""


def _finite(column: AnyArray) -> BoolArray:
    """Rows whose number is finite; of labels all."""
    if column.dtype.kind != "f":
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(np.isfinite(column))


def _predicted(evalset: EvalSet, coverage: float) -> Mapping[str, FloatArray]:
    """What predictions say of a row, where there are no features."""
    columns = point_and_width(evalset, coverage)
    if not columns:
        raise InputError("rows need features, intervals or a point forecast to be judged without y")
    return columns


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _scores(evalset: EvalSet, coverage: float) -> tuple[str, FloatArray]:
    """The finest score of rows, and its name; no name where it is not finite."""
    nothing = "", np.full(evalset.n, math.nan)
    try:
        view = View(evalset)
        name, form = find_measure(view, _SCORES, coverage)
    except UnanswerableError:
        return nothing
    scores = np.asarray(apply_form(view, form, coverage), dtype=np.float64)
    return (name, scores) if np.isfinite(scores).all() else nothing


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _covered(evalset: EvalSet, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Whether y is covered, and by which factor half-widths would just cover it."""
    if math.isnan(coverage):
        nothing = np.full(evalset.n, math.nan)
        return nothing, nothing
    view = View(evalset)
    covered = np.asarray(view.get("covered", coverage), dtype=np.float64)
    lower, upper = (view.get(end, coverage) for end in ("lower", "upper"))
    half = (upper - lower) / 2.0
    ratios = np.abs(evalset.y - (lower + half)) / half
    bounded = np.isfinite(half) & (half > 0.0)
    return covered, np.where(bounded, ratios, np.where(covered > 0.0, 0.0, math.inf))
