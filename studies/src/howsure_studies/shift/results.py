"""What comes of methods under shift: measures over runs, and tables and curves over tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final, final

import numpy as np

from howsure.conformal.ranks import coverage_range
from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Curve, Direction, Notion, Record, ResultTable
from howsure.core.registry import check_known
from howsure_studies.engine import RunVariance, columns_of, crossed_spread
from howsure_studies.engine.ranks import PostHoc, RankComparison, compare_ranks
from howsure_studies.methods.selective import SHARE
from howsure_studies.shift.attribution import (
    ATTRIBUTED,
    LOSSES,
    SharedInputs,
    normal_reach,
    run_losses,
)
from howsure_studies.shift.evaluate import Rule, ShiftRun, run_measure
from howsure_studies.shift.methods import INTERVAL_METHODS

DIRECTIONS: Final[Mapping[str, Direction]] = {
    "val_mae": Direction.LOWER,
    "val_width": Direction.LOWER,
    "val_empirical_coverage": Direction.TARGET,
    "test_empirical_coverage": Direction.TARGET,
    "test_width": Direction.LOWER,
    "test_mae": Direction.LOWER,
    "prediction_rate": Direction.HIGHER,
    "coverage_error": Direction.LOWER,
    "mae_change": Direction.LOWER,
    "relative_mae_change": Direction.LOWER,
    "test_empirical_coverage_all": Direction.TARGET,
    "test_width_all": Direction.LOWER,
    "test_mae_all": Direction.LOWER,
    "test_unbounded": Direction.LOWER,
    **dict.fromkeys(ATTRIBUTED, Direction.TARGET),
}
"""Measures, and which values are better."""
ALL_ROWS: Final = ("test_empirical_coverage_all", "test_width_all", "test_mae_all")
"""Measures of all test rows, accepted or not."""
_WHERE_ANY: Final = ("test_unbounded", *ATTRIBUTED)
"""Measures that results hold where there is something to tell."""
MEASURES: Final = tuple(name for name in DIRECTIONS if name not in (*ALL_ROWS, *_WHERE_ANY))
"""What records hold; of the test measures, all but the changes of MAE count accepted rows alone."""

SHARES: Final = (
    *("val_empirical_coverage", "test_empirical_coverage", "test_empirical_coverage_all"),
    *("prediction_rate", "test_unbounded"),
)
"""Measures that are shares."""
_WITHOUT_UNITS: Final = (*SHARES, "coverage_error", "relative_mae_change", *ATTRIBUTED)
LABELS: Final[Mapping[str, str]] = {
    "test_empirical_coverage": "empirical coverage of accepted rows",
    "prediction_rate": "prediction rate",
    "coverage_error": "|empirical − nominal coverage|",
    "val_mae": "validation MAE",
    "val_width": "validation width",
    "mae_change": "change of MAE from validation to test",
    "relative_mae_change": "change of MAE from validation to test, as a share",
}
"""What measures are called in tables and on axes."""


@final
@frozen(kw_only=True, eq=False)
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
        Where the variance comes from; None where runs are not at hand.
    reason : str
        Why the number is missing, or what limits it.
    """

    measure: str
    test: str
    mean: float
    sd: float = math.nan
    standard_error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float
    n: float
    by_run: FloatArray
    spread: RunVariance | None = None
    reason: str = ""


@final
@frozen(kw_only=True, eq=False)
class ShiftResult:
    """One method on one task at one coverage: calibrated at home, tried on every test part.

    Attributes
    ----------
    task, method : str
        Their names.
    coverage : float
        Nominal coverage.
    rule : {"paper", "conformal", "own"}
        Which order statistic Q is; see `calibration_shift`.
    runs : tuple of ShiftRun
        One a model, or an ensemble; all on the same rows. Empty where `values` are kept alone.
    units : str
        Of y.
    share : float
        The share of validation rows that the threshold accepts, nearly.
    notes : tuple of str
        What the reader must know beside the numbers.
    options : mapping of str to str or float
        The choices that decided the numbers.
    rows : mapping of str to int
        Rows of the part ``val`` and of each test, the main one first; those of the runs.
    selective : bool
        Whether rows may be declined; as the runs say.
    values : tuple of ShiftValue
        What is known where there are no runs, see `without_runs`; beside runs, their `losses`.

    Raises
    ------
    InputError
        If there is neither a run nor a value, or runs differ in their tests or numbers of rows.
    """

    task: str
    method: str
    coverage: float
    rule: Rule
    runs: tuple[ShiftRun, ...] = ()
    units: str = "1"
    share: float = SHARE
    notes: tuple[str, ...] = ()
    options: Mapping[str, str | float] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    selective: bool = False
    values: tuple[ShiftValue, ...] = ()
    _values: dict[tuple[str, str, float], ShiftValue] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Check that runs answer the same rows."""
        object.__setattr__(self, "runs", tuple(self.runs))
        check_fraction(self.coverage, "coverage")
        self._values.update(
            {(value.measure, value.test, value.confidence): value for value in self.values}
        )
        if not self.runs:
            if not self.values:
                raise InputError("runs must contain at least one run, got none")
            return
        sizes = [
            {"val": run.val.n, **{name: part.n for name, part in run.tests.items()}}
            for run in self.runs
        ]
        for number, size in enumerate(sizes):
            if size != sizes[0]:
                raise InputError(
                    f"runs must be of the same parts, got rows {sizes[0]} and, in run {number}, "
                    f"{size}"
                )
        object.__setattr__(self, "rows", sizes[0])
        object.__setattr__(self, "selective", any(run.cut is not None for run in self.runs))

    @property
    def tests(self) -> tuple[str, ...]:
        """Names of the test parts; the first is the main one."""
        return tuple(name for name in self.rows if name != "val")

    @property
    def run_count(self) -> int:
        """The number of runs, at hand or not."""
        return len(self.runs) or len(self.values[0].by_run)

    def without_runs(self) -> ShiftResult:
        """The same result as its values alone: little to keep, and all that pages read."""
        every = tuple(
            replace(self.value(measure, test), spread=None)
            for measure in DIRECTIONS
            if measure not in _WHERE_ANY
            for test in (("",) if measure.startswith("val_") else self.tests)
        )
        losses = [value for value in self.values if value.measure in ATTRIBUTED]
        unbounded = (replace(self.value("test_unbounded", t), spread=None) for t in self.tests)
        losses += (value for value in unbounded if value.mean > 0.0)
        return replace(self, runs=(), values=(*every, *losses))

    def losses(
        self, shared: SharedInputs, rng: np.random.Generator, *, confidence: float = 0.95
    ) -> tuple[ShiftValue, ...]:
        """What coverage is lost to, on the main test; see `loss_terms`.

        Parameters
        ----------
        shared : SharedInputs
            Of the rows of the tests ``home`` and the main one.
        rng : numpy.random.Generator
            Redraws validation rows.
        confidence : float
            Of the intervals, normal ones.

        Returns
        -------
        tuple of ShiftValue
            ``loss_home``, the share missed at home less the nominal one; ``loss_x``,
            ``loss_y_given_x`` and ``loss_support``, which together are the nominal coverage less
            the empirical one of the main test; and ``inputs_in_common``. Empty where a run has
            no answer.
        """
        known = run_losses(
            self.runs,
            shared,
            coverage=self.coverage,
            rule=self.rule,
            share=self.share,
            rng=rng,
        )
        if known is None:
            return ()
        reach = normal_reach(confidence)
        return tuple(
            ShiftValue(
                measure=measure,
                test=self.tests[0],
                mean=float(mean),
                sd=float(own.std()),
                standard_error=float(error),
                low=float(mean - reach * error),
                high=float(mean + reach * error),
                confidence=confidence,
                n=float(shared.away.shape[1]),
                by_run=own,
            )
            for measure, mean, error, own in zip(
                ATTRIBUTED, known[0], known[1], known[2].T, strict=True
            )
        )

    def value(
        self, measure: str, test: str | None = None, *, confidence: float = 0.95
    ) -> ShiftValue:
        """A measure over runs, with an interval over both models and rows; computed once.

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
        |mean empirical coverage − coverage|, its interval the image of the empirical coverage's.
        ``val_empirical_coverage`` is fixed by the rule, but for ties; its interval is the range
        of the share of new home rows that one such Q covers.

        Examples
        --------
        >>> from howsure_studies.shift import Answers, evaluate_shift
        >>> y = np.arange(20.0)
        >>> home = Answers(y=y, point=y + 0.5, lower=y, upper=y + 1.0)
        >>> run = evaluate_shift(home, {"far": Answers(y=y, point=y, lower=y, upper=y + 1.0)})
        >>> result = ShiftResult(
        ...     task="line", method="mine", coverage=0.9, rule="paper", runs=(run,)
        ... )
        >>> result.value("test_empirical_coverage", "far").mean
        1.0
        """
        check_known(measure, DIRECTIONS, "measure")
        check_fraction(confidence, "confidence")
        name = self.tests[0] if test is None else test
        if measure.startswith("val_"):
            name = ""
        else:
            check_known(name, self.tests, "test")
        key = (measure, name, confidence)
        if key not in self._values and measure in ATTRIBUTED:
            return _unknown(*key)
        if key not in self._values and measure == "test_unbounded" and not self.runs:
            return replace(_unknown(*key), mean=0.0, reason="")
        if key not in self._values:
            if not self.runs:
                known = self.values[0].confidence
                raise InputError(f"confidence must be {known:g} without runs, got {confidence:g}")
            make = self._coverage_error if measure == "coverage_error" else self._over_runs
            self._values[key] = make(*key)
        return self._values[key]

    def records(self, *, confidence: float = 0.95) -> tuple[Record, ...]:
        """Every measure of `MEASURES`, those of test parts once a part.

        Returns
        -------
        tuple of Record
            `group` holds ``test=NAME`` for measures of a test part; options hold the sd over runs
            (ddof 0), the number of runs, the rule, and `options`.
        """
        return tuple(
            self.record(measure, name, confidence=confidence)
            for measure in MEASURES
            for name in ((None,) if measure.startswith("val_") else self.tests)
        ) + tuple(
            self.record(measure)
            for measure in _WHERE_ANY
            if confidence == 0.95 and self._has_answer(measure)
        )

    def _has_answer(self, measure: str) -> bool:
        """Whether a measure that results hold where there is something to tell is known here."""
        if measure == "test_unbounded":
            return math.isinf(self.value("test_width").mean)
        return math.isfinite(self.value(measure).mean)

    def record(self, measure: str, test: str | None = None, *, confidence: float = 0.95) -> Record:
        """A measure as `value` has it, as a record."""
        value = self.value(measure, test, confidence=confidence)
        is_error = measure == "coverage_error"
        target = self.coverage if DIRECTIONS[measure] is Direction.TARGET else math.nan
        target = 0.0 if measure in LOSSES else 1.0 if measure in ATTRIBUTED else target
        return Record(
            metric=measure,
            value=value.mean,
            standard_error=value.standard_error,
            lower=value.low,
            upper=value.high,
            confidence=value.confidence,
            n=value.n,
            direction=DIRECTIONS[measure],
            units="1" if measure in _WITHOUT_UNITS else self.units,
            notion=Notion.MARGINAL,
            target=0.0 if is_error else target,
            null=self.null_error(value.n) if is_error else math.nan,
            coverage=self.coverage,
            model=self.method,
            group=f"test={value.test}" if value.test else "",
            reason=value.reason,
            options={
                "task": self.task,
                "test": value.test,
                "rule": self.rule,
                "share": self.share,
                "runs": float(self.run_count),
                "answered": float(np.isfinite(value.by_run).sum()),
                "sd": value.sd,
                **self.options,
            },
        )

    def null_error(self, n: float) -> float:
        """|empirical − nominal coverage| expected of a perfect model on n test rows, by chance.

        Notes
        -----
        √(2c(1 − c)(1/n + 1/m)/π) for coverage c and m validation rows: the mean of a normal
        deviation of the empirical coverage of exchangeable rows, of which m give Q.
        """
        if not n > 0:
            return math.nan
        noise = self.coverage * (1.0 - self.coverage) * (1.0 / n + 1.0 / self.rows["val"])
        return math.sqrt(2.0 / math.pi * noise)

    def _over_runs(self, measure: str, test: str, confidence: float) -> ShiftValue:
        every = [run_measure(run, measure, test) for run in self.runs]
        answered = [measured for measured in every if not math.isnan(measured.value)]
        reasons = list(dict.fromkeys(measured.reason for measured in every if measured.reason))
        if answered and len(answered) < len(every):
            reasons.insert(0, f"{len(every) - len(answered)} of {len(every)} runs have no answer")
        values = np.array([measured.value for measured in answered])
        n = float(np.mean([measured.n for measured in answered or every]))
        mean = float(values.mean()) if answered else math.nan
        value = ShiftValue(
            measure=measure,
            test=test,
            mean=mean,
            confidence=confidence,
            n=n,
            by_run=np.array([measured.value for measured in every]),
            reason="; ".join(reasons),
        )
        if not math.isfinite(mean):
            return value
        if len(every) == 1 and measure != "val_empirical_coverage":
            reasons.append("only one run: the interval does not include variation between models")
        spread = crossed_spread(
            values,
            [measured.rows for measured in answered if measured.rows is not None],
            [measured.calibration for measured in answered if measured.calibration is not None],
            min(measured.degrees for measured in answered),
        )
        low, high = spread.interval(mean, confidence)
        if measure in SHARES:
            low, high = spread.share_interval(mean, n, confidence)
        if measure in ("val_mae", "test_mae", "test_mae_all"):
            low = max(low, 0.0)
        if measure == "prediction_rate" and self.runs[0].cut is None:
            low, high = 1.0, 1.0
        if measure == "val_empirical_coverage" and self.rule != "own":
            rank = max(mean * n, float(self.runs[0].offset.rank))
            low, high = coverage_range(rank, n, confidence)
            spread = RunVariance(
                models=math.nan, rows=math.nan, calibration=math.nan, degrees=math.nan
            )
            reasons.append("fixed by the rule on the rows that Q comes from")
        if math.isnan(low) and not reasons:
            reasons.append("fewer than two rows")
        return replace(
            value,
            sd=float(values.std()),
            standard_error=spread.standard_error,
            low=low,
            high=high,
            spread=spread,
            reason="; ".join(reasons),
        )

    def _coverage_error(self, measure: str, test: str, confidence: float) -> ShiftValue:
        seen = self.value("test_empirical_coverage", test, confidence=confidence)
        ends = np.abs(np.array([seen.low, seen.high]) - self.coverage)
        inside = seen.low <= self.coverage <= seen.high
        return replace(
            seen,
            measure=measure,
            mean=abs(seen.mean - self.coverage),
            low=0.0 if inside else float(ends.min()),
            high=float(ends.max()),
            by_run=np.abs(seen.by_run - self.coverage),
        )


def _unknown(measure: str, test: str, confidence: float) -> ShiftValue:
    """A measure that was not asked for."""
    return ShiftValue(
        measure=measure,
        test=test,
        mean=math.nan,
        confidence=confidence,
        n=0.0,
        by_run=np.empty(0),
        reason="causes of lost coverage were not requested, or the task has no home test",
    )


# Tables and curves over results, side by side


def average_errors(results: Sequence[ShiftResult]) -> ResultTable:
    """Average coverage error of each method over tasks, on their main tests.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task.

    Returns
    -------
    ResultTable
        One row a method, in the order given: ``coverage_error``, the mean over tasks of
        |mean empirical coverage − nominal|; its ``standard_error``, tasks being held fixed;
        ``null``, the mean expected of a model that covers just so; ``tasks``, the number behind
        it, being all that the method has an answer for.

    Raises
    ------
    InputError
        If there is no result, coverages differ, or a method meets a task twice.

    Notes
    -----
    Means of different tasks are not comparable: see ``tasks``. Source: Gustafsson, Danelljan and
    Schön (TMLR 2023), section 5.

    Examples
    --------
    >>> from howsure_studies.shift import Answers, evaluate_shift
    >>> y = np.arange(20.0)
    >>> part = Answers(y=y, point=y + 1.0, lower=y + 1.0, upper=y + 1.0)
    >>> run = evaluate_shift(part, {"far": part})
    >>> line = ShiftResult(
    ...     task="line", method="conformal", coverage=0.9, rule="paper", runs=(run,)
    ... )
    >>> average_errors([line]).columns["coverage_error"]
    array([0.1])
    """
    rows = []
    for method, by_task in _grid(results).items():
        errors = [(result, result.value("coverage_error")) for result in by_task.values()]
        known = [(result, error) for result, error in errors if not math.isnan(error.mean)]
        spread = np.linalg.norm([error.standard_error for _, error in known])
        rows.append(
            {
                "method": method,
                "coverage_error": _mean([error.mean for _, error in known]),
                "standard_error": float(spread) / len(known) if known else math.nan,
                "null": _mean([result.null_error(error.n) for result, error in known]),
                "tasks": len(known),
            }
        )
    tasks = list(dict.fromkeys(result.task for result in results))
    return ResultTable(
        name="shift_average_errors",
        columns=columns_of(rows),
        labels={"coverage_error": "average coverage error", "null": "expected of a perfect model"},
        notes=f"Nominal coverage {results[0].coverage:g}; tasks: {', '.join(tasks)}.",
    )


def shift_ranks(
    results: Sequence[ShiftResult],
    measure: str = "val_mae",
    *,
    method: PostHoc = "nemenyi",
    confidence: float = 0.95,
) -> RankComparison:
    """Rank methods over tasks, ties averaged, and find who shares a rank.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task; every method on every task.
    measure : {"val_mae", "val_width", "coverage_error"}
        What to rank by; lower is better.
    method : {"wilcoxon-holm", "nemenyi"}
        The test of pairs.
    confidence : float
        1 − level of all tests.

    Returns
    -------
    RankComparison
        Its `table` has the mean ranks and the cliques.

    Raises
    ------
    InputError
        If there are fewer than three methods or two tasks, a method misses a task, or a measure
        has no answer.

    Examples
    --------
    >>> from howsure_studies.shift import Answers, evaluate_shift
    >>> y, results = np.arange(20.0), []
    >>> for method, off in (("near", 0.1), ("far", 2.0), ("as far", 2.0)):
    ...     part = Answers(y=y, point=y + off, lower=y + off, upper=y + off)
    ...     runs = (evaluate_shift(part, {"test": part}),)
    ...     results += [
    ...         ShiftResult(task=task, method=method, coverage=0.9, rule="paper", runs=runs)
    ...         for task in ("first", "second")
    ...     ]
    >>> shift_ranks(results).mean_ranks
    array([1. , 2.5, 2.5])
    """
    if measure not in ("val_mae", "val_width", "coverage_error"):
        raise InputError(
            f"measure must be 'val_mae', 'val_width' or 'coverage_error', got {measure!r}"
        )
    grid = _grid(results)
    tasks = list(dict.fromkeys(result.task for result in results))
    scores = np.full((len(tasks), len(grid)), np.nan)
    for column, (name, by_task) in enumerate(grid.items()):
        for row, task in enumerate(tasks):
            if task not in by_task:
                raise InputError(
                    f"results must contain every method on every task, {name} lacks {task}"
                )
            scores[row, column] = by_task[task].value(measure).mean
    if measure == "coverage_error":
        scores = scores.round(12)  # |0.95 − 0.9| and |0.85 − 0.9| differ by rounding alone
    return compare_ranks(scores, list(grid), method=method, confidence=confidence)


def degree_curves(
    results: Sequence[ShiftResult],
    tests: Sequence[str],
    *,
    home: Sequence[ShiftResult] = (),
    measure: str = "test_empirical_coverage",
) -> tuple[Curve, ...]:
    """A measure against the degree of shift, one curve a method.

    Parameters
    ----------
    results : sequence of ShiftResult
        Of one task, one a method.
    tests : sequence of str
        Names of its tests, from the mildest shift to the strongest.
    home : sequence of ShiftResult
        Of a task without shift, whose main test stands at degree 0; methods that are not among
        them have no point there.
    measure : str
        A measure of test parts.

    Returns
    -------
    tuple of Curve
        ``degree_of_shift``: x counts the degrees from 0, or from 1 without a home; the band is
        the interval over models and rows; ``hover`` has n, and the sd over runs.

    Raises
    ------
    InputError
        If there are no tests, results are of several tasks or coverages, or a test is unknown.

    Examples
    --------
    >>> from howsure_studies.shift import Answers, evaluate_shift
    >>> y = np.arange(20.0)
    >>> part = Answers(y=y, point=y + 1.0, lower=y + 1.0, upper=y + 1.0)
    >>> run = evaluate_shift(part, {"far": part})
    >>> line = ShiftResult(
    ...     task="line", method="conformal", coverage=0.9, rule="paper", runs=(run,)
    ... )
    >>> degree_curves([line], ["far"], home=[line])[0].x
    array([0., 1.])
    """
    if not tests:
        raise InputError("tests must contain at least one name, got none")
    if len({result.task for result in results}) != 1:
        raise InputError("results must be of one task, to compare degrees of shift")
    at_home = _grid(home) if home else {}
    curves = []
    for method, by_task in _grid(results).items():
        result = next(iter(by_task.values()))
        values = [result.value(measure, test) for test in tests]
        values[:0] = [at_task.value(measure) for at_task in at_home.get(method, {}).values()][:1]
        start = len(tests) + 1 - len(values)
        covered = measure.startswith("test_empirical_coverage")
        curves.append(
            Curve(
                name="degree_of_shift",
                x=np.arange(start, len(tests) + 1, dtype=np.float64),
                y=np.array([value.mean for value in values]),
                lower=np.array([value.low for value in values]),
                upper=np.array([value.high for value in values]),
                reference=np.full(len(values), result.coverage) if covered else None,
                x_label="degree of shift",
                y_label=LABELS.get(measure, measure),
                band="95 % interval over models and rows",
                model=result.method,
                group=f"task={result.task}",
                notes=f"Degrees: {'none, ' if start == 0 else ''}{', '.join(tests)}.",
                hover={
                    "sd": np.array([value.sd for value in values]),
                    "n": np.array([value.n for value in values]),
                },
            )
        )
    return tuple(curves)


def shift_against_error(
    results: Sequence[ShiftResult],
    *,
    by: str = "conformal",
    methods: Sequence[str] = INTERVAL_METHODS,
    every_test: bool = False,
) -> ResultTable:
    """How much a task shifts, against how far its coverage is off.

    Parameters
    ----------
    results : sequence of ShiftResult
        At one coverage, one a method and task.
    by : str
        The method whose MAE measures the shift.
    methods : sequence of str
        Those whose coverage errors are averaged; all must be at hand for a task.
    every_test : bool
        Whether each test part is a row, or main tests alone.

    Returns
    -------
    ResultTable
        One row a task, or test: ``relative_mae_change`` = (MAE of all test rows − MAE of
        validation rows)/MAE of validation rows with its interval, ``mae_change`` in the units of
        y, ``coverage_error``, the mean over the methods of |empirical − nominal coverage|, and
        ``null``, what a perfect model would show. Notes have Spearman's correlation of the two.

    Raises
    ------
    InputError
        If no task has all methods.

    Notes
    -----
    Source: Gustafsson, Danelljan and Schön (TMLR 2023), figures A16 and A17, which do not say
    whether the change is divided by the MAE; scales of y differ by 10³ between tasks.

    Examples
    --------
    >>> from howsure_studies.shift import Answers, evaluate_shift
    >>> y = np.arange(20.0)
    >>> part = Answers(y=y, point=y + 1.0, lower=y + 1.0, upper=y + 1.0)
    >>> run = evaluate_shift(part, {"far": part})
    >>> line = ShiftResult(
    ...     task="line", method="conformal", coverage=0.9, rule="paper", runs=(run,)
    ... )
    >>> table = shift_against_error([line], methods=["conformal"])
    >>> table.columns["relative_mae_change"], table.columns["coverage_error"]
    (array([0.]), array([0.1]))
    """
    grid = _grid(results)
    needed = list(dict.fromkeys((by, *methods)))
    missing = [name for name in needed if name not in grid]
    if missing:
        raise InputError(f"results must have {', '.join(needed)}, got none of {', '.join(missing)}")
    tasks = [task for task in grid[by] if all(task in grid[name] for name in needed)]
    if not tasks:
        raise InputError(f"results must contain a task with all of {', '.join(needed)}, got none")
    rows = []
    for task in tasks:
        first = grid[by][task]
        for test in first.tests if every_test else first.tests[:1]:
            change = first.value("relative_mae_change", test)
            errors = [grid[name][task].value("coverage_error", test) for name in methods]
            rows.append(
                {
                    "task": task,
                    "test": test,
                    "relative_mae_change": change.mean,
                    "low": change.low,
                    "high": change.high,
                    "mae_change": first.value("mae_change", test).mean,
                    "coverage_error": float(np.mean([error.mean for error in errors])),
                    "null": first.null_error(change.n),
                }
            )
    columns = columns_of(rows)
    return ResultTable(
        name="shift_against_error",
        columns=columns,
        labels=LABELS,
        notes=_correlation(columns["relative_mae_change"], columns["coverage_error"]),
    )


def _grid(results: Sequence[ShiftResult]) -> dict[str, dict[str, ShiftResult]]:
    """Results by method and task."""
    if not results:
        raise InputError("results must contain at least one result, got none")
    coverages = sorted({result.coverage for result in results})
    if len(coverages) > 1:
        raise InputError(f"results must be of one coverage, got {coverages}")
    grid: dict[str, dict[str, ShiftResult]] = {}
    for result in results:
        by_task = grid.setdefault(result.method, {})
        if result.task in by_task:
            raise InputError(
                f"results must contain {result.method} on {result.task} once, got it twice"
            )
        by_task[result.task] = result
    return grid


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _correlation(change: FloatArray, error: FloatArray) -> str:
    known = np.isfinite(change) & np.isfinite(error)
    change, error = change[known], error[known]
    if len(change) < 3 or np.ptp(change) == 0 or np.ptp(error) == 0:
        return "Too few different points for a correlation."
    from scipy.stats import spearmanr

    correlation = spearmanr(change, error).statistic
    return f"Spearman's correlation {correlation:.2f} over {len(change)} points."
