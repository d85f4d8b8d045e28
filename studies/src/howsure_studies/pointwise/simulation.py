"""Coverage at every point: the five-step procedure of simulation-based testing, and its result.

1. A world is chosen. 2. One test set is drawn and kept. 3. In each trial a training set is drawn,
a method is fitted, and intervals are made at several coverages. 4. PICF and CICF follow at each
test point. 5. Scores and widths follow from these. Source: Sluijterman, Cator and Heskes, arXiv
2106.03395, section 4.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby, pairwise
from typing import Any, Literal, TypeVar, cast, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import Positive, check_fields, check_whole, checked_coverages
from howsure.core.errors import InputError, UnanswerableError, cut_text
from howsure.core.progress import report_progress
from howsure.core.rng import child
from howsure.predictions import Prediction
from howsure_studies.engine import kept_error
from howsure_studies.methods.interface import COVERAGES, Fitted, Method, Predictions
from howsure_studies.methods.regressors import as_method
from howsure_studies.pointwise.formulas import (
    Brier,
    CoverageBand,
    brier,
    coverage_band,
    interval_mass,
)
from howsure_studies.tasks.worlds import Covariates, Draw, Truth, World, world_named

Stage = Literal["fit", "predict", "intervals"]
Which = Literal["picf", "cicf"]
T = TypeVar("T")


@final
@frozen(kw_only=True)
class Precision:
    """When to stop drawing trials: once a Monte-Carlo standard error is small enough.

    Parameters
    ----------
    standard_error : float
        The wanted standard error, above 0.
    of : {"picf", "cicf", "brier"}
        The largest over test points and coverages of the PICF's or the CICF's, or the largest
        over coverages of the corrected Brier score's (of the PICF).
    least : int
        Trials before it is looked at, at least 3.
    every : int
        Trials between looks, at least 1.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    The CICF's error is that of (k + 2)/(S + 4), so that k = 0 or S does not end the run.

    Examples
    --------
    >>> Precision(standard_error=0.01).of
    'picf'
    """

    standard_error: Positive
    of: Literal["picf", "cicf", "brier"] = "picf"
    least: int = 20
    every: int = 10

    def __post_init__(self) -> None:
        check_fields(self)
        if self.least < 3 or self.every < 1:
            raise InputError(
                f"least must be at least 3 and every at least 1, got {self.least}, {self.every}"
            )

    def due(self, tried: int) -> bool:
        """Whether the standard error is looked at after so many trials."""
        return tried >= self.least and (tried - self.least) % self.every == 0

    def first_met(self, result: PointwiseResult, *, after: int = 0) -> PointwiseResult | None:
        """The least part of the first trials that is precise enough, looked at after so many.

        None where trials must go on; else what `pointwise` gives that stops by this rule.
        """
        for tried in filter(self.due, range(after + 1, result.tried + 1)):
            first = result.head(tried)
            if first.trials >= 3 and first.largest_error(self.of) <= self.standard_error:
                return replace(first, stop=f"{self._wish} met after {tried} trials")
        return None

    def not_met(self, result: PointwiseResult) -> PointwiseResult:
        """The result of all trials, which says how many would be needed."""
        count, tried = result.trials, result.tried
        if count < 3:
            return replace(
                result, stop=f"{self._wish} not met: {count} of {tried} trials succeeded"
            )
        share = result.largest_error(self.of) / self.standard_error
        needed = max(math.ceil(count * share**2), count + 1)
        stop = f"{self._wish} not met in {tried} trials: about {needed} would be needed"
        return replace(result, stop=stop)

    @property
    def _wish(self) -> str:
        return f"standard error {self.standard_error:g} of the {self.of}"


def pointwise(
    world: World | str,
    method: Any,
    *,
    coverages: tuple[float, ...] | None = None,
    trials: int = 100,
    first_trial: int = 0,
    n_train: int | None = None,
    n_test: int | None = None,
    covariates: Covariates = "random",
    stop: Precision | None = None,
    seed: int = 0,
    confidence: float = 0.95,
) -> PointwiseResult:
    """Test a method's intervals at every point of a world, over many training sets.

    Parameters
    ----------
    world : World or str
        Where data come from, or its name.
    method : Method, regressor, or own class
        What is tested; see `as_method`.
    coverages : tuple of float, optional
        Nominal coverages, all answered in one pass; the method's own if omitted, else 0.7, 0.8,
        0.9 and 0.95.
    trials : int
        Training sets to draw, at most.
    first_trial : int
        Number of the first, so that one test can be run in parts: trial 7 is the same whichever
        trials ran beside it, and `joined` puts parts together.
    n_train, n_test : int, optional
        Rows of each training set and of the test set; the world's own numbers if omitted.
    covariates : {"random", "fixed"}
        Whether each trial draws its own x, or all share one x and draw y anew.
    stop : Precision, optional
        Stop before that many trials once this is met.
    seed : int
        Seed of everything. The test set depends on it and the world alone, training sets on the
        trial too: methods compared under one seed see the same data.
    confidence : float
        Of the simultaneous bands over test points.

    Returns
    -------
    PointwiseResult
        A trial in which the method raises an error, or gives missing or crossed intervals, is
        left out and kept among `failures`; warnings are counted. A method that batches fits many
        trials at once; where a batch raises, its trials are fitted one by one.

    Raises
    ------
    InputError
        If an argument breaks its rule, the method cannot answer a coverage, the world has too
        few rows for so many trials, or `stop` asks for what cannot be known.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> result = pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20)
    >>> score = result.brier("picf", 0.8)
    >>> bool(abs(score.corrected) < 3 * score.standard_error)
    True
    """
    source = world_named(world)
    tested = as_method(method, coverages)
    answers = answered(tested, coverages)
    check_fraction(confidence, "confidence")
    check_trials(source, first_trial, trials, n_train, n_test)
    if stop is not None and not source.knows_truth:
        raise InputError(f"stop must be left out for world {source.name!r}: {source.no_truth}")
    test = source.test_set(seed, n_test)
    truth = source.truth(test.x) if source.knows_truth else None
    run = _Run(tested, answers, test, truth, seed)
    numbers = range(first_trial, first_trial + trials)

    def draw(trial: int) -> Draw:
        return source.training_set(seed, trial, n_train, covariates=covariates, n_test=n_test)

    def result(rows: int) -> PointwiseResult:
        made = PointwiseResult(
            world=source.name,
            seed=seed,
            covariates=covariates,
            n_train=rows,
            confidence=confidence,
            trials_planned=int(trials),
            stop="all trials planned",
            reasons={},
            first_trial=int(first_trial),
            **run.fields(),
        )
        return _with_reasons(made)

    rows = 0
    report_progress("trials", 0, trials)
    for tried, drawn in enumerate(run.trials(numbers, draw), start=1):
        rows = drawn.n
        report_progress("trials", tried, trials)
        if stop is not None and stop.due(tried):
            met = stop.first_met(result(rows), after=tried - 1)
            if met is not None:
                return met
    return result(rows) if stop is None else stop.not_met(result(rows))


def check_trials(
    world: World, first: int, trials: int, n_train: int | None, n_test: int | None
) -> None:
    """Refuse more trials than a world has training sets for."""
    check_whole(first, "first_trial", 0)
    check_whole(trials, "trials")
    available = world.trials_available(n_train, n_test)
    if first + trials > available:
        raise InputError(
            f"trials must be at most {max(available - first, 0):.0f}, the training sets that "
            f"world {world.name!r} holds{f' from number {first}' if first else ''}, got {trials}"
            "; sets of fewer rows give more"
        )


def answered(method: Method, wanted: tuple[float, ...] | None) -> tuple[float, ...]:
    """The coverages at which a method is tested: those wanted, or its own."""
    fixed = method.fixed_coverages
    if wanted is None:
        return checked_coverages(COVERAGES if fixed is None else fixed)
    answers = checked_coverages(wanted)
    missing = [c for c in answers if fixed is not None and min(abs(c - f) for f in fixed) > 1e-9]
    if missing:
        given = ", ".join(f"{c:g}" for c in fixed or ())
        raise InputError(
            f"coverages must be among those of {method.name} ({given}), got {missing[0]:g}; "
            "make the method with the coverages wanted"
        )
    return answers


@frozen(kw_only=True)
class Failure:
    """A trial that gave no intervals.

    Attributes
    ----------
    trial : int
        Which trial.
    stage : {"fit", "predict", "intervals"}
        Where it ended: in the method's fit or predict, or because its intervals were missing,
        crossed or too few.
    error, message, trace : str
        The error's class, its message, and the traceback.
    """

    trial: int
    stage: Stage
    error: str
    message: str
    trace: str = ""


@frozen(kw_only=True, eq=False)
class PointwiseResult:
    """Intervals of many trials on one test set, and how they cover at each of its points.

    Arrays have S trials that succeeded, n test points and c coverages.

    Attributes
    ----------
    world, method : str
        Their names.
    seed : int
        The experiment's seed.
    covariates : str
        Whether trials drew their own x (``random``) or shared it (``fixed``).
    n_train : int
        Rows of a training set.
    coverages : tuple of float
        Nominal coverages in rising order.
    confidence : float
        Of the bands over test points.
    x, y : ndarray of float, shape (n, d) and (n,)
        The test set.
    truth : Truth, optional
        The true law of y at each test point; None where the world knows none.
    lower, upper : ndarray of float, shape (S, n, c)
        Ends of the prediction intervals.
    mass : ndarray of float, shape (S, n, c), optional
        Probability that a new y falls in each; None without a truth.
    mean_ends : tuple of two ndarrays of float, shape (S, n, c), optional
        Ends of the confidence intervals; None where the method gives none.
    log_likelihood : ndarray of float, shape (S,)
        Mean log density at the test set's y, in nats; NaN without a density.
    failures : tuple of Failure
        Trials left out.
    warnings : mapping of str to int
        Warnings, with the number of trials that gave each; trials fitted together count once.
    trials_planned : int
        Trials at most.
    stop : str
        Why trials ended, in words.
    reasons : mapping of str to str
        Why ``picf``, ``cicf``, ``trials`` or ``log_likelihood`` is not known.
    first_trial : int
        Number of the first trial.
    """

    world: str
    method: str
    seed: int
    covariates: str
    n_train: int
    coverages: tuple[float, ...]
    confidence: float
    x: FloatArray
    y: FloatArray
    truth: Truth | None
    lower: FloatArray
    upper: FloatArray
    mass: FloatArray | None
    mean_ends: tuple[FloatArray, FloatArray] | None
    log_likelihood: FloatArray
    failures: tuple[Failure, ...]
    warnings: Mapping[str, int]
    trials_planned: int
    stop: str
    reasons: Mapping[str, str]
    first_trial: int = 0
    _known: dict[Any, Any] = field(init=False, repr=False, default_factory=dict)

    @property
    def trials(self) -> int:
        """Trials that succeeded."""
        return len(self.lower)

    @property
    def tried(self) -> int:
        """Trials that succeeded or failed."""
        return self.trials + len(self.failures)

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """A value that takes time, computed when it is first asked for."""
        if key not in self._known:
            self._known[key] = make()
        return cast("T", self._known[key])

    def head(self, tried: int) -> PointwiseResult:
        """What the first so many trials gave."""
        failures = tuple(f for f in self.failures if f.trial < self.first_trial + tried)
        kept = slice(0, tried - len(failures))
        ends = self.mean_ends
        return _with_reasons(
            replace(
                self,
                lower=self.lower[kept],
                upper=self.upper[kept],
                mass=None if self.mass is None else self.mass[kept],
                mean_ends=None if ends is None else (ends[0][kept], ends[1][kept]),
                log_likelihood=self.log_likelihood[kept],
                failures=failures,
            )
        )

    def largest_error(self, of: Literal["picf", "cicf", "brier"]) -> float:
        """The standard error that `Precision` speaks of, from at least three trials."""
        if of == "brier":
            return max(self.brier("picf", c).standard_error for c in self.coverages)
        if of == "picf":
            sds = [self.by_trial("picf", c).std(axis=0, ddof=1) for c in self.coverages]
            return max(float(sd.max()) for sd in sds) / math.sqrt(self.trials)
        if self.mean_ends is None:
            raise InputError(f"stop must not ask for the cicf: {_no_mean(self.method)}")
        shares = [
            (self.by_trial("cicf", c).sum(axis=0) + 2.0) / (self.trials + 4.0)
            for c in self.coverages
        ]
        most = max(float((share * (1.0 - share)).max()) for share in shares)
        return math.sqrt(most) / math.sqrt(self.trials)

    def by_trial(self, which: Which, coverage: float) -> FloatArray:
        """Coverage of each trial at each point, shape (S, n): what PICF and CICF are means of.

        For the PICF the probability that the interval holds a new y, for the CICF whether it
        holds the mean (0 or 1).

        Raises
        ------
        InputError
            If there is no such coverage or measure.
        UnanswerableError
            If it cannot be known; the message says why.
        """
        column = self._column(coverage)
        if which not in ("picf", "cicf"):
            raise InputError(f"which must be 'picf' or 'cicf', got {which!r}")
        why = self.reasons.get(which, "")
        if which == "picf" and self.mass is not None and not why:
            return self.mass[:, :, column]
        if which == "cicf" and self.mean_ends is not None and self.truth is not None and not why:
            low, high = (ends[:, :, column] for ends in self.mean_ends)
            return ((low <= self.truth.mean) & (self.truth.mean <= high)).astype(np.float64)
        raise UnanswerableError(why)

    def band(self, which: Which, coverage: float) -> CoverageBand:
        """PICF or CICF at each point, with a band that is simultaneous over points.

        Raises
        ------
        InputError, UnanswerableError
            As `by_trial`; also where fewer than two trials succeeded.
        """
        return self.once(
            ("band", which, coverage),
            lambda: coverage_band(
                self.by_trial(which, coverage),
                binary=which == "cicf",
                confidence=self.confidence,
                seed=self.seed,
            ),
        )

    def brier(self, which: Which, coverage: float) -> Brier:
        """Brier score of the PICF or the CICF, raw and corrected for Monte-Carlo error.

        Raises
        ------
        InputError, UnanswerableError
            As `by_trial`.
        """
        return self.once(
            ("brier", which, coverage), lambda: brier(self.by_trial(which, coverage), coverage)
        )

    def picp(self, coverage: float) -> FloatArray:
        """Share of the test set's y covered in each trial, shape (S,)."""
        return np.asarray(self.covered(coverage).mean(axis=1))

    def covered(self, coverage: float) -> BoolArray:
        """Whether the test set's y are covered, shape (S, n)."""
        column = self._column(coverage)
        return (self.lower[:, :, column] <= self.y) & (self.y <= self.upper[:, :, column])

    def cicp(self, coverage: float) -> FloatArray:
        """Share of the test points' means covered in each trial, shape (S,).

        Raises
        ------
        UnanswerableError
            If it cannot be known; the message says why.
        """
        return np.asarray(self.by_trial("cicf", coverage).mean(axis=1))

    def width(self, which: Which, coverage: float) -> FloatArray:
        """Width of the prediction (PICF) or confidence (CICF) intervals, shape (S, n)."""
        column = self._column(coverage)
        if which == "picf":
            return np.asarray(self.upper[:, :, column] - self.lower[:, :, column])
        if self.mean_ends is None:
            raise UnanswerableError(self.reasons.get("cicf", "there are no confidence intervals"))
        return np.asarray(self.mean_ends[1][:, :, column] - self.mean_ends[0][:, :, column])

    def _column(self, coverage: float) -> int:
        distances = np.abs(np.array(self.coverages) - check_fraction(coverage, "coverage"))
        column = int(np.argmin(distances))
        if distances[column] > 1e-9:
            given = ", ".join(f"{c:g}" for c in self.coverages)
            raise InputError(f"coverage must be one of {given}, got {coverage:g}")
        return column


def joined(blocks: Sequence[PointwiseResult], *, planned: int | None = None) -> PointwiseResult:
    """One result from several of other trials of the same test.

    Parameters
    ----------
    blocks : sequence of PointwiseResult
        Of `pointwise` with one world, method, seed and options, and each with its own
        `first_trial`; in any order.
    planned : int, optional
        Trials that there shall be in the end; those of the blocks if omitted.

    Returns
    -------
    PointwiseResult
        What one run of all the trials gives.

    Raises
    ------
    InputError
        If there is none, they are not of one test, or two hold the same trial.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> from howsure_studies.pointwise import pointwise
    >>> whole = pointwise("linear", LinearT(), trials=5, n_test=9)
    >>> head = pointwise("linear", LinearT(), trials=3, n_test=9)
    >>> rest = pointwise("linear", LinearT(), trials=2, first_trial=3, n_test=9)
    >>> bool((joined([rest, head]).lower == whole.lower).all())
    True
    """
    if not blocks:
        raise InputError("blocks must contain at least one result, got none")
    parts = sorted(blocks, key=lambda block: block.first_trial)
    for before, after in pairwise(parts):
        _check_one_test(before, after)
    ends = [block.mean_ends for block in parts if block.trials]
    masses = [block.mass for block in parts if block.mass is not None]
    wanted = sum(block.trials_planned for block in parts) if planned is None else planned
    tried = sum(block.tried for block in parts)
    return _with_reasons(
        replace(
            parts[0],
            lower=np.concatenate([block.lower for block in parts]),
            upper=np.concatenate([block.upper for block in parts]),
            mass=np.concatenate(masses) if masses else None,
            mean_ends=_joined_ends(ends),
            log_likelihood=np.concatenate([block.log_likelihood for block in parts]),
            failures=tuple(failure for block in parts for failure in block.failures),
            warnings=dict(sum((Counter(block.warnings) for block in parts), Counter())),
            trials_planned=wanted,
            stop="all trials planned" if tried == wanted else f"{tried} of {wanted} trials at hand",
        )
    )


def _check_one_test(before: PointwiseResult, after: PointwiseResult) -> None:
    for name in ("world", "method", "seed", "covariates", "n_train", "coverages", "confidence"):
        first, second = getattr(before, name), getattr(after, name)
        if first != second:
            raise InputError(f"blocks must be of one test, got {name} {first!r} and {second!r}")
    if not (np.array_equal(before.x, after.x) and np.array_equal(before.y, after.y)):
        raise InputError("blocks must be of one test, got different test sets")
    if after.first_trial < before.first_trial + before.tried:
        raise InputError(f"blocks must contain a trial once, got trial {after.first_trial} twice")


def _joined_ends(
    parts: Sequence[tuple[FloatArray, FloatArray] | None],
) -> tuple[FloatArray, FloatArray] | None:
    """Ends of the confidence intervals of all parts; None unless all have them."""
    known = [ends for ends in parts if ends is not None]
    if not known or len(known) < len(parts):
        return None
    return np.concatenate([low for low, _ in known]), np.concatenate([high for _, high in known])


def _with_reasons(result: PointwiseResult) -> PointwiseResult:
    """The result with why ``picf``, ``cicf``, ``trials`` or ``log_likelihood`` is not known."""
    reasons: dict[str, str] = {}
    if not result.trials:
        first = result.failures[0]
        failed = f"no trial succeeded; the first failed in {first.stage}: {first.message}"
        reasons = dict.fromkeys(("picf", "cicf", "trials", "log_likelihood"), failed)
        return replace(result, reasons=reasons)
    if result.truth is None:
        reasons = dict.fromkeys(("picf", "cicf"), "the world does not know the distribution of y")
    elif result.mean_ends is None:
        reasons["cicf"] = _no_mean(result.method)
    if np.isnan(result.log_likelihood).any():
        reasons["log_likelihood"] = f"{result.method} gives no density"
    return replace(result, reasons=reasons)


def _no_mean(method: str) -> str:
    return f"{method} gives no confidence intervals for the mean"


@final
@frozen(eq=False)
class _Trial:
    """Intervals of one trial: ends of shape (n, c), of y and perhaps of its mean."""

    lower: FloatArray
    upper: FloatArray
    mean_ends: tuple[FloatArray, FloatArray] | None
    mass: FloatArray | None
    log_likelihood: float


@final
@frozen(eq=False)
class _Run:
    """One method on one world, trial by trial."""

    method: Method
    coverages: tuple[float, ...]
    test: Draw
    truth: Truth | None
    seed: int
    done: list[_Trial] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warned: Counter[str] = field(default_factory=Counter)

    def trials(self, numbers: Sequence[int], draw: Callable[[int], Draw]) -> Iterator[Draw]:
        """Run trials by their numbers, and give the training set of each when it is done.

        A method that batches is handed the trials of one batch together. Batches begin at
        multiples of its size, wherever the numbers begin.
        """
        size = max(self.method.batch, 1)
        for _, group in groupby(numbers, key=lambda trial: trial // size):
            drawn = {trial: draw(trial) for trial in group}
            fitted = self._together(drawn) if len(drawn) > 1 else {}
            for trial, data in drawn.items():
                self.run_trial(trial, data, fitted.pop(trial, None))
                yield data

    def run_trial(self, trial: int, drawn: Draw, fitted: Fitted | None = None) -> None:
        """Run one trial; whatever the method raises is kept, and ends this trial alone."""
        stage: Stage = "fit"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if fitted is None:
                    fitted = self.method.fit(drawn.x, drawn.y, self._rng(trial))
                stage = "predict"
                predictions = fitted.predict(self.test.x)
                stage = "intervals"
                self._keep(predictions)
            except Exception as error:  # noqa: BLE001 - a method may raise anything
                self.failures.append(Failure(trial=trial, stage=stage, **kept_error(error)))
        self._count(caught)

    def fields(self) -> dict[str, Any]:
        """The fields of a result that the trials so far decide."""
        ends = [trial.mean_ends for trial in self.done if trial.mean_ends is not None]
        whole = bool(ends) and len(ends) == len(self.done)
        return {
            "method": self.method.name,
            "coverages": self.coverages,
            "x": self.test.x,
            "y": self.test.y,
            "truth": self.truth,
            "lower": self._table([trial.lower for trial in self.done]),
            "upper": self._table([trial.upper for trial in self.done]),
            "mass": None
            if self.truth is None
            else self._table([trial.mass for trial in self.done if trial.mass is not None]),
            "mean_ends": (
                (np.stack([low for low, _ in ends]), np.stack([high for _, high in ends]))
                if whole
                else None
            ),
            "log_likelihood": np.array([trial.log_likelihood for trial in self.done], dtype=float),
            "failures": tuple(self.failures),
            "warnings": dict(self.warned),
        }

    def _table(self, parts: list[FloatArray]) -> FloatArray:
        """Tables of the trials, shape (S, n, c), also where there are none."""
        return np.stack(parts) if parts else np.empty((0, self.test.n, len(self.coverages)))

    def _together(self, drawn: Mapping[int, Draw]) -> dict[int, Fitted]:
        """Fit the trials of a batch at once; none of them if that fails, for then each is alone."""
        data = [(draw.x, draw.y) for draw in drawn.values()]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted = self.method.fit_many(data, [self._rng(trial) for trial in drawn])
            except Exception:  # noqa: BLE001 - a method may raise anything
                return {}
        if len(fitted) != len(drawn):
            return {}
        self._count(caught)
        return dict(zip(drawn, fitted, strict=True))

    def _rng(self, trial: int) -> np.random.Generator:
        return child(self.seed, "methods", self.method.name, trial)

    def _count(self, caught: Sequence[warnings.WarningMessage]) -> None:
        self.warned.update(
            {cut_text(f"{item.category.__name__}: {item.message}", 300) for item in caught}
        )

    def _keep(self, predictions: Predictions) -> None:
        lower, upper = self._ends(predictions.outcome, "prediction intervals")
        mean_ends = None
        if predictions.mean is not None:
            mean_ends = self._ends(predictions.mean, "confidence intervals")
        likelihood = _log_likelihood(predictions.outcome, self.test.y)
        mass = None if self.truth is None else interval_mass(lower, upper, self.truth.cdf)
        self.done.append(_Trial(lower, upper, mean_ends, mass, likelihood))

    def _ends(self, prediction: Prediction, what: str) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals at all coverages, each of shape (n, c)."""
        if prediction.n != self.test.n:
            raise InputError(f"{what} must have {self.test.n} rows, got {prediction.n}")
        lower, upper = prediction.intervals(self.coverages)
        bad = ~(lower <= upper)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            raise InputError(
                f"{what} must have lower ends at or below their upper ends, got "
                f"{int(bad.sum())} missing or crossed (first at row {row})"
            )
        return lower, upper


def _log_likelihood(prediction: Prediction, y: FloatArray) -> float:
    """Mean log density at y; NaN where the prediction has none."""
    try:
        return float(prediction.log_density(y).mean())
    except UnanswerableError:
        return math.nan
