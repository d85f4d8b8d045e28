"""What a comparison of conformal methods over repeats gives: medians, ranks, who ties with whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record, Table
from howsure.metrics.adaptivity import NoiseFloor
from howsure.stats.ranks import PostHoc, RankComparison, compare_ranks

DIRECTIONS: Final[Mapping[str, Direction]] = {
    "t_cv": Direction.LOWER,
    "t_ss": Direction.HIGHER,
    "sscv": Direction.LOWER,
    "escv": Direction.LOWER,
    "set_deficit": Direction.LOWER,
    "set_excess": Direction.LOWER,
    "binned_r2": Direction.HIGHER,
    "kendall_tau": Direction.HIGHER,
    "empirical_coverage": Direction.TARGET,
    "set_size": Direction.LOWER,
    "width": Direction.LOWER,
}
"""Measures of a comparison, and which values are better."""
_MARGINAL: Final = ("set_deficit", "set_excess", "empirical_coverage", "set_size", "width")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodComparison:
    """Methods on the same random splits of one task, at one coverage.

    Attributes
    ----------
    task : str
        The model and its rows.
    methods, measures : tuple of str
        What was compared, and by what.
    values : ndarray of float, shape (repeats, methods, measures)
        Every measure in every repeat; NaN where it has no answer.
    coverage : float
        Nominal coverage.
    calibration_rows, test_rows : int
        Rows of each part in every repeat.
    bins : int
        Cells by ease.
    floor : NoiseFloor
        T-CV of a perfect model with as many test rows and cells.
    seed : int
        The experiment's seed.
    surrogate : bool
        Whether ease came from the probabilities, inputs being lost.
    reasons : mapping of (method, measure) to str
        Why values are missing, by method and measure.
    units : str
        Of sizes: ``labels``, or ``y``.
    """

    task: str
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    values: FloatArray
    coverage: float
    calibration_rows: int
    test_rows: int
    bins: int
    floor: NoiseFloor
    seed: int
    surrogate: bool = False
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)
    units: str = "labels"

    @property
    def repeats(self) -> int:
        """Number of splits."""
        return len(self.values)

    def of(self, measure: str) -> FloatArray:
        """One measure in every repeat, shape (repeats, methods).

        Raises
        ------
        InputError
            If it was not measured.
        """
        if measure not in self.measures:
            known = ", ".join(self.measures)
            raise InputError(f"measure must be one of {known}, got {measure!r}")
        return self.values[:, :, self.measures.index(measure)]

    def median(self, measure: str) -> FloatArray:
        """Median over the repeats with an answer, shape (methods,); NaN where none has one."""
        return np.array([_median(column) for column in self.of(measure).T])

    def ranks(self, measure: str, method: PostHoc = "wilcoxon-holm") -> RankComparison:
        """Ranks of the methods over the repeats, and who ties with whom.

        A value without an answer counts as the worst. Repeats share rows, so that their
        differences are correlated and the tests too sure; the published ranks are made so too.

        Raises
        ------
        InputError
            If the measure has no better and worse, or there are fewer than three methods or two
            repeats.
        """
        direction = DIRECTIONS[measure]
        table = self.of(measure)
        if direction is Direction.TARGET:
            table, direction = np.abs(table - self.coverage), Direction.LOWER
        sign = 1.0 if direction is Direction.LOWER else -1.0
        known = table[np.isfinite(table)]
        worst = float((sign * known).max()) + 1.0 if len(known) else 0.0
        filled = np.where(np.isfinite(table), sign * table, worst)
        return compare_ranks(filled, self.methods, method=method)

    def table(self) -> Table:
        """Medians of every measure, one row a method, with shared ranks by T-CV and T-SS."""
        columns: dict[str, npt.NDArray[Any]] = {"method": np.array(self.methods, dtype=object)}
        columns |= {measure: self.median(measure) for measure in self.measures}
        if self.repeats > 1 and len(self.methods) > 2:
            for measure in ("t_cv", "t_ss"):
                columns[f"{measure}_rank"] = self.ranks(measure).shared_ranks
        told = "; ease is a surrogate from the probabilities" if self.surrogate else ""
        return Table(
            name="adaptivity_methods",
            columns=columns,
            labels={"t_cv_rank": "shared rank by T-CV", "t_ss_rank": "shared rank by T-SS"},
            model=self.task,
            notes=(
                f"Coverage {self.coverage:g}: medians over {self.repeats} splits in "
                f"{self.calibration_rows:,} and {self.test_rows:,} rows, {self.bins} cells by "
                f"ease; a perfect model shows a T-CV of {self.floor.median:.3g} in the median"
                f"{told}."
            ),
        )

    def records(self) -> tuple[Record, ...]:
        """The median of every measure and method; options hold the range over repeats."""
        return tuple(
            self._record(place, measure)
            for place in range(len(self.methods))
            for measure in self.measures
        )

    def _record(self, place: int, measure: str) -> Record:
        column = self.of(measure)[:, place]
        known = column[np.isfinite(column)]
        low, high = np.quantile(known, [0.05, 0.95]) if len(known) else (math.nan, math.nan)
        size = measure in ("set_size", "set_deficit", "set_excess", "width")
        return Record(
            metric=measure,
            value=_median(column),
            n=float(self.test_rows),
            direction=DIRECTIONS[measure],
            units=self.units if size else "1",
            notion=Notion.MARGINAL if measure in _MARGINAL else Notion.LOCAL,
            target=self.coverage if measure == "empirical_coverage" else math.nan,
            null=self.floor.median if measure == "t_cv" else math.nan,
            coverage=self.coverage,
            model=self.methods[place],
            group=f"task={self.task}",
            reason=self.reasons.get((self.methods[place], measure), ""),
            options={
                "repeats": float(self.repeats),
                "answered": float(len(known)),
                "low_5": float(low),
                "high_95": float(high),
                "ease": "surrogate" if self.surrogate else "inputs",
            },
        )


def average_table(comparisons: Sequence[MethodComparison]) -> Table:
    """Averages over tasks: mean of medians, and mean of shared ranks, by T-CV and T-SS.

    Parameters
    ----------
    comparisons : sequence of MethodComparison
        One a task, of the same methods at the same coverage.

    Returns
    -------
    Table
        Columns ``method``, ``t_cv``, ``t_cv_rank``, ``t_ss``, ``t_ss_rank``, means over the tasks
        that have an answer.

    Raises
    ------
    InputError
        If there is none, or methods or coverages differ.
    """
    if not comparisons:
        raise InputError("comparisons must hold at least one, got none")
    first = comparisons[0]
    for other in comparisons[1:]:
        if (other.methods, other.coverage) != (first.methods, first.coverage):
            raise InputError(
                "comparisons must have the same methods and coverage, got "
                f"{', '.join(other.methods)} at {other.coverage:g} beside "
                f"{', '.join(first.methods)} at {first.coverage:g}"
            )
    columns: dict[str, npt.NDArray[Any]] = {"method": np.array(first.methods, dtype=object)}
    for measure in ("t_cv", "t_ss"):
        medians = np.array([held.median(measure) for held in comparisons])
        ranks = np.array([held.ranks(measure).shared_ranks for held in comparisons])
        columns[measure] = np.array([_mean(column) for column in medians.T])
        columns[f"{measure}_rank"] = ranks.mean(axis=0)
    return Table(
        name="adaptivity_averages",
        columns=columns,
        notes=f"Means over {len(comparisons)} tasks at coverage {first.coverage:g}.",
    )


def _median(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else math.nan


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
