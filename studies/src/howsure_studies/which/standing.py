"""Numbers of all methods over tables, and what may be said of them: means, ranks, and the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.rng import child
from howsure_studies.engine.confidence_sets import (
    ConfidenceSet,
    MeanIntervals,
    RankIntervals,
    confidence_set,
    difference_intervals,
    mean_intervals,
    problems_needed,
    rank_intervals,
)
from howsure_studies.which.results import WhichResult

Kind = Literal["home", "large", "shift"]
"""Random cuts of up to 1,000 rows, or of more; or late and foreign rows."""
MOST_AT_HOME: Final = 1000
CLIMATOLOGY: Final = "climatology"
"""The label of the method whose score the others are relative to."""
_FEWEST: Final = 5
"""Tables without which nothing is said of methods."""


def kind_of(result: WhichResult) -> Kind:
    """Which comparison a result belongs to."""
    if result.shift:
        return "shift"
    return "home" if result.rows[0] + result.rows[1] <= MOST_AT_HOME else "large"


@final
@frozen(kw_only=True, eq=False)
class Crossed:
    """One number of every method on every table: the mean over cuts, NaN where none is known."""

    methods: tuple[str, ...]
    tables: tuple[str, ...]
    values: FloatArray  # shape (tables, methods)

    @classmethod
    def of(cls, results: Iterable[WhichResult], value: Callable[[WhichResult], float]) -> Crossed:
        """A number of results, by table and method, in the order in which they come."""
        given = list(results)
        methods = tuple(dict.fromkeys(result.method for result in given))
        tables = tuple(dict.fromkeys(result.table for result in given))
        cells: dict[tuple[str, str], list[float]] = {}
        for result in given:
            cells.setdefault((result.table, result.method), []).append(value(result))
        rows = [
            [float(np.mean(cells.get((table, method), [math.nan]))) for method in methods]
            for table in tables
        ]
        return cls(
            methods=methods, tables=tables, values=np.array(rows).reshape(len(tables), len(methods))
        )

    def column(self, method: str) -> FloatArray:
        """The numbers of a method on all tables."""
        return self.values[:, self.methods.index(method)]

    def some(self, methods: Sequence[str]) -> Crossed:
        """Some of the methods."""
        at = [self.methods.index(method) for method in methods]
        return Crossed(methods=tuple(methods), tables=self.tables, values=self.values[:, at])

    def means(self) -> dict[str, MeanOf]:
        """Each method's mean over tables, with its interval; none without a table."""
        if not self.tables:
            return {}
        found = mean_intervals(self.values)
        return {
            method: MeanOf(
                value=float(found.mean[k]),
                lower=float(found.lower[k]),
                upper=float(found.upper[k]),
                tables=int(found.problems[k]),
            )
            for k, method in enumerate(self.methods)
        }


@final
@frozen(kw_only=True)
class MeanOf:
    """A mean over tables with its 95 % interval."""

    value: float
    lower: float
    upper: float
    tables: int

    @classmethod
    def over(cls, values: Iterable[float]) -> MeanOf:
        """The mean of one number a table."""
        found = mean_intervals(np.array(list(values))[:, None])
        return cls(
            value=float(found.mean[0]),
            lower=float(found.lower[0]),
            upper=float(found.upper[0]),
            tables=int(found.problems[0]),
        )

    @property
    def percent(self) -> MeanOf:
        """Of logarithms of ratios: by how many per cent the ratio is off 1."""
        ends = (100.0 * math.expm1(each) for each in (self.value, self.lower, self.upper))
        value, lower, upper = ends
        return MeanOf(value=value, lower=lower, upper=upper, tables=self.tables)


def log_ratio(arm: str) -> Callable[[WhichResult], float]:
    """The logarithm of the score of an arm over that of climatology."""
    return lambda result: math.log(result.ratio(arm))


def coverage(arm: str) -> Callable[[WhichResult], float]:
    """The coverage of the 90 % intervals of an arm."""
    return lambda result: result.covered(arm)


@final
@frozen(kw_only=True, eq=False)
class MethodScores:
    """How methods stand by their scores on common tables; lower is better."""

    scores: Crossed  # logarithms of ratios to climatology
    ranks: RankIntervals
    best: ConfidenceSet
    differences: MeanIntervals

    @classmethod
    def of(cls, scores: Crossed) -> MethodScores | None:
        """The standing, from the lowest mean on; None of fewer than five tables or two methods."""
        known = [
            method
            for method in scores.methods
            if method != CLIMATOLOGY and not np.isnan(scores.column(method)).all()
        ]
        if len(scores.tables) < _FEWEST or len(known) < 2:
            return None
        means = scores.means()
        ordered = scores.some(sorted(known, key=lambda method: means[method].value))
        return cls(
            scores=ordered,
            ranks=rank_intervals(ordered.values, child(0, "which", "ranks")),
            best=confidence_set(ordered.values, child(0, "which", "set")),
            differences=difference_intervals(ordered.values),
        )

    @property
    def leaders(self) -> tuple[str, ...]:
        """Methods not shown to be worse than the best, from the lowest mean score on."""
        return tuple(
            method
            for method, member in zip(self.scores.methods, self.best.member, strict=True)
            if member
        )

    def gap(self, method: str) -> MeanOf:
        """By how much a method's score is above that of the lowest mean, as a logarithm."""
        k = self.scores.methods.index(method)
        found = self.differences
        return MeanOf(
            value=float(found.mean[k, 0]),
            lower=float(found.lower[k, 0]),
            upper=float(found.upper[k, 0]),
            tables=int(found.problems[k, 0]),
        )

    def sd(self) -> float:
        """The median sd over tables of the difference of two of the leading half of methods."""
        half = max(2, len(self.scores.methods) // 2)
        first, second = np.triu_indices(half, 1)
        return float(np.nanmedian(self.differences.sd[first, second]))

    def separable(self, tables: int) -> float:
        """The gap, as a ratio less 1, that so many tables show in four of five cases."""
        low, high = 1e-5, 5.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            if problems_needed(self.sd(), middle) <= tables:
                high = middle
            else:
                low = middle
        return math.expm1(high)

    def tables_needed(self, method: str) -> int | None:
        """How many tables would show a method's gap to the lowest mean; None without a gap."""
        k = self.scores.methods.index(method)
        gap, sd = float(self.differences.mean[k, 0]), float(self.differences.sd[k, 0])
        if not gap > 0.0 or not math.isfinite(sd):
            return None
        # Past some thousands the normal limit serves, and the noncentral t is slow.
        z = float(special.ndtri(0.975) + special.ndtri(0.8))
        near = (z * sd / gap) ** 2
        return problems_needed(sd, gap) if near < 2000 else math.ceil(near)


@final
class Which:
    """All results of the study, and what is said of them."""

    def __init__(self, results: Mapping[str, Sequence[WhichResult]]) -> None:
        self.results = tuple(result for own in results.values() for result in own)
        self.methods = tuple(dict.fromkeys(result.method for result in self.results))

    def of(self, kind: Kind, method: str = "") -> list[WhichResult]:
        """Results of one comparison, of one method or of all."""
        return [
            result
            for result in self.results
            if kind_of(result) == kind and method in ("", result.method)
        ]

    def crossed(self, kind: Kind, value: Callable[[WhichResult], float]) -> Crossed:
        """A number of all methods on the tables of a comparison."""
        return Crossed.of(self.of(kind), value)

    @cached_property
    def _standings(self) -> dict[tuple[Kind, str], MethodScores | None]:
        return {}

    def standing(self, kind: Kind, arm: str) -> MethodScores | None:
        """How methods stand by an arm's score; None where there is too little."""
        key = (kind, arm)
        if key not in self._standings:
            crossed = self.crossed(kind, log_ratio(arm))
            self._standings[key] = MethodScores.of(crossed)
        return self._standings[key]
