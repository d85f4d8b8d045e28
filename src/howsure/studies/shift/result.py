"""What a test under shift gives: numbers of each run, and their means with honest intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record
from howsure.core.registry import check_known
from howsure.methods.conformal.ranks import coverage_range
from howsure.studies.shift.measures import (
    ALL_ROWS,
    MEASURES,
    RunMeasure,
    needs_test,
    run_measure,
)
from howsure.studies.shift.rows import ShiftTest
from howsure.studies.shift.run import Cut, ShiftRun
from howsure.studies.shift.spread import Spread, crossed_spread

__all__ = [
    "ALL_ROWS",
    "MEASURES",
    "Cut",
    "ShiftResult",
    "ShiftRun",
    "ShiftTest",
    "ShiftValue",
]

Rule = Literal["paper", "conformal"]

DIRECTIONS: Final[Mapping[str, Direction]] = {
    "val_mae": Direction.LOWER,
    "val_width": Direction.LOWER,
    "val_coverage": Direction.TARGET,
    "test_coverage": Direction.TARGET,
    "test_width": Direction.LOWER,
    "test_mae": Direction.LOWER,
    "prediction_rate": Direction.HIGHER,
    "coverage_error": Direction.LOWER,
    "mae_change": Direction.LOWER,
    "relative_mae_change": Direction.LOWER,
    "test_coverage_all": Direction.TARGET,
    "test_width_all": Direction.LOWER,
    "test_mae_all": Direction.LOWER,
}
"""Measures, and which values are better."""
_SHARES: Final = ("val_coverage", "test_coverage", "prediction_rate", "test_coverage_all")
_ERRORS: Final = ("val_mae", "test_mae", "test_mae_all")
_PLAIN: Final = (*_SHARES, "coverage_error", "relative_mae_change")
_ONE_RUN: Final = "one run alone: the interval leaves out what other models would give"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftValue:
    """A measure over runs.

    Attributes
    ----------
    measure, test : str
        What, and on which test part; no part for what the validation rows alone tell.
    mean, sd : float
        Over the runs that have an answer, the sd with ddof 0; NaN where none has.
    standard_error : float
        Over models and rows.
    low, high : float
        The interval over models and rows, at `confidence`.
    confidence : float
        Of the interval.
    n : float
        Rows behind the number: those accepted, on average over runs, where only they count.
    by_run : ndarray of float, shape (r,)
        Each run's number; NaN where it has none.
    spread : Spread, optional
        Where the variance comes from.
    reason : str
        Why the number is missing, or what limits it.
    """

    measure: str
    test: str
    mean: float
    sd: float
    standard_error: float
    low: float
    high: float
    confidence: float
    n: float
    by_run: FloatArray
    spread: Spread | None = None
    reason: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftResult:
    """One method on one task at one coverage: calibrated at home, tried on every test part.

    Attributes
    ----------
    task, method : str
        Their names.
    coverage : float
        Nominal coverage.
    rule : {"paper", "conformal"}
        Which order statistic Q is; see `calibration_shift`.
    runs : tuple of ShiftRun
        One a model, or an ensemble; all on the same rows.
    units : str
        Of y.
    share : float
        The share of validation rows that the threshold accepts, nearly.
    notes : tuple of str
        What the reader must know beside the numbers.
    options : mapping of str to str or float
        The choices that decided the numbers.

    Raises
    ------
    InputError
        If there is no run, or runs differ in their tests or numbers of rows.
    """

    task: str
    method: str
    coverage: float
    rule: Rule
    runs: tuple[ShiftRun, ...]
    units: str = "1"
    share: float = 0.95
    notes: tuple[str, ...] = ()
    options: Mapping[str, str | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that runs answer the same rows."""
        object.__setattr__(self, "runs", tuple(self.runs))
        check_fraction(self.coverage, "coverage")
        if not self.runs:
            raise InputError("runs must hold at least one run, got none")
        sizes = [
            {"val": run.val.n, **{name: part.n for name, part in run.tests.items()}}
            for run in self.runs
        ]
        for place, size in enumerate(sizes):
            if size != sizes[0]:
                raise InputError(
                    f"runs must be of the same parts, got rows {sizes[0]} and, in run {place}, "
                    f"{size}"
                )

    @property
    def tests(self) -> tuple[str, ...]:
        """Names of the test parts; the first is the main one."""
        return tuple(self.runs[0].tests)

    def value(
        self, measure: str, test: str | None = None, *, confidence: float = 0.95
    ) -> ShiftValue:
        """A measure over runs, with an interval over both models and rows.

        Parameters
        ----------
        measure : str
            One of `MEASURES` or `ALL_ROWS`.
        test : str, optional
            Which test part; the first if omitted. Of no account for validation measures.
        confidence : float
            Of the interval.

        Returns
        -------
        ShiftValue

        Raises
        ------
        InputError
            If there is no such measure or part.

        Notes
        -----
        The interval allows for other models (the runs are a sample), other test rows and other
        validation rows, which fix Q and the threshold; see `crossed_spread`. The chance of
        training rows is part of it only where runs differ in them. Shares get Wilson's interval
        at their effective n; mean errors are not taken below 0. ``coverage_error`` is
        |mean coverage − nominal coverage|, its interval the image of the coverage's.
        ``val_coverage`` is fixed by the rule, but for ties; its interval is the range of the
        coverage of new home rows that one such Q leads to.

        Examples
        --------
        >>> from howsure.studies.shift.evaluate import Answers, evaluate_shift
        >>> y = np.arange(20.0)
        >>> home = Answers(y=y, point=y + 0.5, lower=y, upper=y + 1.0)
        >>> run = evaluate_shift(home, {"far": Answers(y=y, point=y, lower=y, upper=y + 1.0)})
        >>> result = ShiftResult(
        ...     task="line", method="mine", coverage=0.9, rule="paper", runs=(run,)
        ... )
        >>> result.value("test_coverage", "far").mean
        1.0
        """
        check_known(measure, DIRECTIONS, "measure")
        check_fraction(confidence, "confidence")
        name = self._test(test) if needs_test(measure) else ""
        if measure == "coverage_error":
            return self._coverage_error(name, confidence)
        found = [run_measure(run, measure, name) for run in self.runs]
        return self._summary(measure, name, found, confidence)

    def records(self, *, confidence: float = 0.95) -> tuple[Record, ...]:
        """Every measure of `MEASURES`, those of test parts once a part.

        Returns
        -------
        tuple of Record
            `group` holds ``test=NAME`` for measures of a test part; options hold the sd over runs
            (ddof 0), the number of runs, the rule, and `options`.
        """
        return tuple(
            self._record(self.value(measure, name, confidence=confidence))
            for measure in MEASURES
            for name in (self.tests if needs_test(measure) else (None,))
        )

    def null_error(self, n: float) -> float:
        """|coverage − nominal| expected of a perfect model on n test rows, by chance alone.

        Notes
        -----
        √(2c(1 − c)(1/n + 1/m)/π) for coverage c and m validation rows: the mean of a normal
        deviation of the coverage of exchangeable rows, of which m give Q.
        """
        if not n > 0:
            return math.nan
        noise = self.coverage * (1.0 - self.coverage) * (1.0 / n + 1.0 / self.runs[0].val.n)
        return math.sqrt(2.0 / math.pi * noise)

    def _test(self, test: str | None) -> str:
        if test is None:
            return self.tests[0]
        check_known(test, self.tests, "test")
        return test

    def _summary(
        self, measure: str, name: str, found: list[RunMeasure], confidence: float
    ) -> ShiftValue:
        by_run = np.array([one.value for one in found])
        answered = [one for one in found if not math.isnan(one.value)]
        reasons = list(dict.fromkeys(one.reason for one in found if one.reason))
        if answered and len(answered) < len(found):
            reasons.insert(0, f"{len(found) - len(answered)} of {len(found)} runs have no answer")
        n = float(np.mean([one.n for one in answered or found]))
        common: dict[str, Any] = {
            "measure": measure,
            "test": name,
            "confidence": confidence,
            "by_run": by_run,
            "n": n,
        }
        values = np.array([one.value for one in answered])
        mean = float(values.mean()) if answered else math.nan
        if not math.isfinite(mean):
            return _missing(common, "; ".join(reasons), mean=mean)
        if len(found) == 1 and measure != "val_coverage":
            reasons.append(_ONE_RUN)
        spread = crossed_spread(
            values,
            [one.rows for one in answered if one.rows is not None],
            [one.calibration for one in answered if one.calibration is not None],
            min(one.degrees for one in answered),
        )
        low, high = spread.interval(mean, confidence)
        if measure in _SHARES:
            low, high = spread.share_interval(mean, n, confidence)
        if measure in _ERRORS:
            low = max(low, 0.0)
        if measure == "prediction_rate" and self.runs[0].cut is None:
            low, high = 1.0, 1.0
        if measure == "val_coverage":
            rank = max(mean * n, float(self.runs[0].rank))
            low, high = coverage_range(rank, n, confidence)
            spread = Spread(models=math.nan, rows=math.nan, calibration=math.nan, degrees=math.nan)
            reasons.append("fixed by the rule on the rows that Q comes from")
        if math.isnan(low) and not reasons:
            reasons.append("fewer than two rows")
        return ShiftValue(
            **common,
            mean=mean,
            sd=float(values.std()),
            standard_error=spread.standard_error,
            low=low,
            high=high,
            spread=spread,
            reason="; ".join(reasons),
        )

    def _coverage_error(self, name: str, confidence: float) -> ShiftValue:
        seen = self.value("test_coverage", name, confidence=confidence)
        ends = np.abs(np.array([seen.low, seen.high]) - self.coverage)
        inside = seen.low <= self.coverage <= seen.high
        return ShiftValue(
            measure="coverage_error",
            test=name,
            mean=abs(seen.mean - self.coverage),
            sd=seen.sd,
            standard_error=seen.standard_error,
            low=0.0 if inside else float(ends.min()),
            high=float(ends.max()),
            confidence=confidence,
            n=seen.n,
            by_run=np.abs(seen.by_run - self.coverage),
            spread=seen.spread,
            reason=seen.reason,
        )

    def _record(self, found: ShiftValue) -> Record:
        told: dict[str, str | float] = {
            "task": self.task,
            "test": found.test,
            "rule": self.rule,
            "share": self.share,
            "runs": float(len(self.runs)),
            "answered": float(np.isfinite(found.by_run).sum()),
            "sd": found.sd,
            **self.options,
        }
        measure = found.measure
        target = self.coverage if DIRECTIONS[measure] is Direction.TARGET else math.nan
        if measure == "coverage_error":
            target = 0.0
        return Record(
            metric=measure,
            value=found.mean,
            standard_error=found.standard_error,
            lower=found.low,
            upper=found.high,
            confidence=found.confidence,
            n=found.n,
            direction=DIRECTIONS[measure],
            units="1" if measure in _PLAIN else self.units,
            notion=Notion.MARGINAL,
            target=target,
            null=self.null_error(found.n) if measure == "coverage_error" else math.nan,
            coverage=self.coverage,
            model=self.method,
            group=f"test={found.test}" if found.test else "",
            reason=found.reason,
            options=told,
        )


def _missing(common: dict[str, Any], reason: str, *, mean: float = math.nan) -> ShiftValue:
    return ShiftValue(
        **common,
        mean=mean,
        sd=math.nan,
        standard_error=math.nan,
        low=math.nan,
        high=math.nan,
        reason=reason,
    )
