"""Coverage at every point: the five-step procedure of simulation-based testing.

1. A world is chosen. 2. One test set is drawn and kept. 3. In each trial a training set is drawn,
a method is fitted, and intervals are made at several coverages. 4. PICF and CICF follow at each
test point. 5. Scores and widths follow from these. Source: Sluijterman, Cator and Heskes, arXiv
2106.03395, section 4.
"""

from __future__ import annotations

import math
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, check_fraction
from howsure.core.errors import HowsureError, InputError, UnanswerableError
from howsure.core.rng import child
from howsure.methods.interface import COVERAGES, Beliefs, Method, checked_coverages
from howsure.methods.regressors import as_method
from howsure.metrics.pointwise import brier
from howsure.predictions import Prediction
from howsure.protocols.pointwise_result import Failure, PointwiseResult
from howsure.stats.gram import Progress
from howsure.worlds import Covariates, Draw, Truth, World, world_named


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
        Trials between looks.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    A CICF of 0 or 1 so far gets the error of (k + 2)/(S + 4), so that a lucky start does not end
    the run.
    """

    standard_error: float
    of: Literal["picf", "cicf", "brier"] = "picf"
    least: int = 20
    every: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.standard_error < math.inf:
            raise InputError(f"standard_error must be above 0, got {self.standard_error!r}")
        if self.of not in ("picf", "cicf", "brier"):
            raise InputError(f"of must be 'picf', 'cicf' or 'brier', got {self.of!r}")
        if self.least < 3 or self.every < 1:
            raise InputError(
                f"least must be at least 3 and every at least 1, got {self.least}, {self.every}"
            )


def pointwise(
    world: World | str,
    method: Any,
    *,
    coverages: tuple[float, ...] | None = None,
    trials: int = 100,
    n_train: int | None = None,
    n_test: int | None = None,
    covariates: Covariates = "random",
    stop: Precision | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> PointwiseResult:
    """Test a method's intervals at every point of a world, over many training sets.

    Parameters
    ----------
    world : World or str
        Where data come from, or its name.
    method : Method or scikit-learn regressor
        What is tested; see `as_method`.
    coverages : tuple of float, optional
        Nominal coverages, all answered in one pass; the method's own if omitted, else 0.7, 0.8,
        0.9 and 0.95.
    trials : int
        Training sets to draw, at most.
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
    progress : callable, optional
        Called with (stage, trials done, trials at most).

    Returns
    -------
    PointwiseResult
        A trial in which the method raises an error, or gives missing or crossed intervals, is
        left out and kept among `failures`; warnings are counted.

    Raises
    ------
    InputError
        If an argument breaks its rule, the method cannot answer a coverage, the world has too
        few rows for so many trials, or `stop` asks for what cannot be known.

    Examples
    --------
    >>> from howsure.methods.linear import LinearT
    >>> result = pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20)
    >>> score = result.brier("picf", 0.8)
    >>> bool(abs(score.corrected) < 3 * score.standard_error < score.raw)
    True
    """
    source = world_named(world)
    tested = as_method(method, COVERAGES if coverages is None else coverages)
    answers = _coverages(tested, coverages)
    check_fraction(confidence, "confidence")
    if isinstance(trials, bool) or not isinstance(trials, int | np.integer) or trials < 1:
        raise InputError(f"trials must be a whole number of at least 1, got {trials!r}")
    available = source.trials_available(n_train, n_test)
    if trials > available:
        raise InputError(
            f"trials must be at most {available:.0f}, the training sets that world "
            f"{source.name!r} holds, got {trials}"
        )
    if stop is not None and not source.knows_truth:
        raise InputError(f"stop must be left out for world {source.name!r}: {source.no_truth}")
    test = source.test_set(seed, n_test)
    truth = source.truth(test.x) if source.knows_truth else None
    run = _Run(tested, answers, test, truth, seed, _Tally(test.n, len(answers)))
    tried, met, rows = 0, False, 0
    for tried in _counted(trials, progress):
        drawn = source.training_set(
            seed, tried - 1, n_train, covariates=covariates, n_test=n_test
        )
        rows = drawn.n
        run.one(tried - 1, drawn)
        met = stop is not None and run.met(stop, tried)
        if met:
            break
    tally = run.tally
    whole = len(tally.mean_covered) == tally.trials
    return PointwiseResult(
        world=source.name,
        method=tested.name,
        seed=seed,
        covariates=covariates,
        n_train=rows,
        coverages=answers,
        confidence=confidence,
        x=test.x,
        y=test.y,
        truth=truth,
        mass=_table(tally.mass, tally) if truth is not None else None,
        mean_covered=_table(tally.mean_covered, tally) if truth is not None and whole else None,
        y_covered=_table(tally.y_covered, tally),
    )


@dataclass(slots=True, eq=False)
class _Tally:
    """What the trials gave so far; see `PointwiseResult` for the arrays."""

    points: int
    coverages: int
    mass: list[FloatArray] = field(default_factory=list)
    mean_covered: list[BoolArray] = field(default_factory=list)
    y_covered: list[BoolArray] = field(default_factory=list)
    width: list[FloatArray] = field(default_factory=list)
    mean_width: list[FloatArray] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    total_width: FloatArray | float = 0.0
    total_mass: FloatArray | float = 0.0
    total_square: FloatArray | float = 0.0

    @property
    def trials(self) -> int:
        return len(self.y_covered)

    def by_trial(self, items: Sequence[Any], kind: type[Any] = np.float64) -> Any:
        """Arrays of shape (n, c), one a trial, as one of shape (S, n, c); (c,) likewise."""
        shape = (0, self.points, self.coverages) if kind is np.bool_ else (0, self.coverages)
        return np.stack(items) if items else np.empty(shape, dtype=kind)

    def picf_error(self) -> float:
        """Largest standard error over points and coverages of the PICF."""
        mean = self.total_mass / self.trials
        spread = np.maximum(self.total_square / self.trials - np.square(mean), 0.0)
        return math.sqrt(float(np.max(spread)) / (self.trials - 1))

    def cicf_error(self) -> float:
        """The same of the CICF, with two successes and two failures added."""
        share = (np.sum(self.mean_covered, axis=0) + 2.0) / (self.trials + 4.0)
        return math.sqrt(float((share * (1.0 - share)).max()) / self.trials)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One method on one world, trial by trial."""

    method: Method
    coverages: tuple[float, ...]
    test: Draw
    truth: Truth | None
    seed: int
    tally: _Tally
    failures: list[Failure] = field(default_factory=list)
    warned: Counter[str] = field(default_factory=Counter)

    def one(self, trial: int, drawn: Draw) -> None:
        """Run one trial; whatever the method raises is kept, and ends this trial alone."""
        guard = _Guard(trial)
        with warnings.catch_warnings(record=True) as caught, guard:
            warnings.simplefilter("always")
            rng = child(self.seed, "methods", self.method.name, trial)
            fitted = self.method.fit(drawn.x, drawn.y, rng)
            guard.stage = "predict"
            beliefs = fitted.predict(self.test.x)
            guard.stage = "intervals"
            self._count(beliefs)
        self.warned.update({f"{item.category.__name__}: {item.message}" for item in caught})
        if guard.failure is not None:
            self.failures.append(guard.failure)

    def met(self, stop: Precision, tried: int) -> bool:
        """Whether the wanted standard error is met after so many trials."""
        tally = self.tally
        if tried < stop.least or (tried - stop.least) % stop.every or tally.trials < 3:
            return False
        if stop.of == "picf":
            return tally.picf_error() <= stop.standard_error
        if stop.of == "cicf":
            if len(tally.mean_covered) < tally.trials:
                raise InputError(f"stop must not ask for the cicf: {no_mean(self.method)}")
            return tally.cicf_error() <= stop.standard_error
        mass = np.stack(tally.mass)
        scores = (brier(mass[:, :, k], c) for k, c in enumerate(self.coverages))
        return max(score.standard_error for score in scores) <= stop.standard_error

    def reasons(self) -> dict[str, str]:
        """Why something cannot be known, by what it is."""
        tally = self.tally
        if not tally.trials:
            first = self.failures[0]
            failed = f"no trial succeeded; the first failed in {first.stage}: {first.message}"
            return dict.fromkeys(("picf", "cicf", "trials", "log_likelihood"), failed)
        reasons = {}
        if self.truth is None:
            reasons = dict.fromkeys(("picf", "cicf"), "the world does not know the law of y")
        elif len(tally.mean_covered) < tally.trials:
            reasons["cicf"] = no_mean(self.method)
        if any(map(math.isnan, tally.log_likelihood)):
            reasons["log_likelihood"] = f"{self.method.name} gives no density"
        return reasons

    def _count(self, beliefs: Beliefs) -> None:
        """Measure the intervals of one trial. Nothing is kept unless all of it can be."""
        tally, y = self.tally, self.test.y[:, None]
        lower, upper = self._ends(beliefs.outcome, "prediction intervals")
        likelihood = _log_likelihood(beliefs.outcome, self.test.y)
        if beliefs.mean is not None:
            low, high = self._ends(beliefs.mean, "confidence intervals")
            tally.mean_width.append((high - low).mean(axis=0))
            if self.truth is not None:
                mean = self.truth.mean[:, None]
                tally.mean_covered.append((low <= mean) & (mean <= high))
        if self.truth is not None:
            mass = self.truth.cdf(upper) - self.truth.cdf(lower)
            tally.mass.append(mass)
            tally.total_mass = tally.total_mass + mass
            tally.total_square = tally.total_square + np.square(mass)
        tally.width.append((upper - lower).mean(axis=0))
        tally.total_width = tally.total_width + (upper - lower)
        tally.log_likelihood.append(likelihood)
        tally.y_covered.append((lower <= y) & (y <= upper))

    def _ends(self, belief: Prediction, what: str) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals at all coverages, each of shape (n, c)."""
        if belief.n != self.test.n:
            raise InputError(f"{what} must have {self.test.n} rows, got {belief.n}")
        pairs = [belief.interval(coverage) for coverage in self.coverages]
        lower = np.stack([pair[0] for pair in pairs], axis=1)
        upper = np.stack([pair[1] for pair in pairs], axis=1)
        bad = ~(lower <= upper)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            raise InputError(
                f"{what} must have lower ends at or below their upper ends, got "
                f"{int(bad.sum())} missing or crossed (first at row {row})"
            )
        return lower, upper


class _Guard:
    """Keeps whatever a method raises. Interrupts and exits pass."""

    __slots__ = ("failure", "stage", "trial")

    def __init__(self, trial: int) -> None:
        self.trial = trial
        self.stage: Literal["fit", "predict", "intervals"] = "fit"
        self.failure: Failure | None = None

    def __enter__(self) -> _Guard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failure = Failure(
            trial=self.trial,
            stage=self.stage,
            error=type(error).__name__,
            message=str(error),
            trace="".join(traceback.format_exception(error)),
        )
        return True


def _coverages(method: Method, wanted: tuple[float, ...] | None) -> tuple[float, ...]:
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


def _counted(trials: int, progress: Progress | None) -> Iterator[int]:
    for trial in range(trials):
        if progress is not None:
            progress("trials", trial, trials)
        yield trial
    if progress is not None:
        progress("trials", trials, trials)


def _log_likelihood(belief: Prediction, y: FloatArray) -> float:
    """Mean log density at y; NaN where the belief has none."""
    try:
        return float(belief.log_density(y).mean())
    except UnanswerableError:
        return math.nan


def no_mean(method: Method) -> str:
    """Why a method has no CICF."""
    return f"{method.name} gives no confidence intervals for the mean"


def _stop_words(stop: Precision | None, *, met: bool, tried: int) -> str:
    if stop is None:
        return "all trials planned"
    wish = f"standard error {stop.standard_error:g} of the {stop.of}"
    return f"{wish} met after {tried} trials" if met else f"{wish} not met in {tried} trials"
