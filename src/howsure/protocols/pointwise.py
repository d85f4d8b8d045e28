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
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.methods.interface import COVERAGES, Beliefs, Method, checked_coverages
from howsure.methods.regressors import as_method
from howsure.metrics.pointwise import brier, interval_mass
from howsure.predictions import Prediction
from howsure.protocols.pointwise_result import Failure, PointwiseResult, Stage
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
    >>> bool(abs(score.corrected) < 3 * score.standard_error)
    True
    """
    source = world_named(world)
    tested = as_method(method, COVERAGES if coverages is None else coverages)
    answers = _coverages(tested, coverages)
    check_fraction(confidence, "confidence")
    _check_trials(source, trials, n_train, n_test)
    if stop is not None and not source.knows_truth:
        raise InputError(f"stop must be left out for world {source.name!r}: {source.no_truth}")
    test = source.test_set(seed, n_test)
    truth = source.truth(test.x) if source.knows_truth else None
    run = _Run(tested, answers, test, truth, seed)
    rows, trial, met = 0, 0, False
    for trial in _counted(trials, progress):
        drawn = source.training_set(seed, trial, n_train, covariates=covariates, n_test=n_test)
        rows = drawn.n
        run.one(trial, drawn)
        if stop is not None and run.looked_at(stop, trial + 1):
            met = run.error(stop.of) <= stop.standard_error
        if met:
            break
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
        lower=run.stacked([trial.lower for trial in run.done]),
        upper=run.stacked([trial.upper for trial in run.done]),
        mass=None if truth is None else run.stacked(run.mass),
        mean_ends=run.mean_ends(),
        log_likelihood=np.array([trial.log_likelihood for trial in run.done], dtype=np.float64),
        failures=tuple(run.failures),
        warnings=dict(run.warned),
        trials_planned=int(trials),
        stop=run.stopped(stop, met=met, tried=trial + 1),
        reasons=run.reasons(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Intervals of one trial: ends of shape (n, c), of y and perhaps of its mean."""

    lower: FloatArray
    upper: FloatArray
    mean_ends: tuple[FloatArray, FloatArray] | None
    log_likelihood: float


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One method on one world, trial by trial."""

    method: Method
    coverages: tuple[float, ...]
    test: Draw
    truth: Truth | None
    seed: int
    done: list[_Trial] = field(default_factory=list)
    mass: list[FloatArray] = field(default_factory=list)
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
            self._keep(beliefs)
        self.warned.update({f"{item.category.__name__}: {item.message}" for item in caught})
        if guard.failure is not None:
            self.failures.append(guard.failure)

    def looked_at(self, stop: Precision, tried: int) -> bool:
        """Whether the standard error is looked at after so many trials."""
        due = tried >= stop.least and (tried - stop.least) % stop.every == 0
        return due and len(self.done) >= 3

    def error(self, of: str) -> float:
        """The standard error that `Precision` speaks of, from at least three trials."""
        root = math.sqrt(len(self.done))
        if of == "cicf":
            share = (self._means_held() + 2.0) / (len(self.done) + 4.0)
            return math.sqrt(float((share * (1.0 - share)).max())) / root
        mass = np.stack(self.mass)
        if of == "picf":
            return float(mass.std(axis=0, ddof=1).max()) / root
        scores = (brier(mass[:, :, k], c) for k, c in enumerate(self.coverages))
        return max(score.standard_error for score in scores)

    def stopped(self, stop: Precision | None, *, met: bool, tried: int) -> str:
        """Why trials ended, in words."""
        if stop is None:
            return "all trials planned"
        wish = f"standard error {stop.standard_error:g} of the {stop.of}"
        if met:
            return f"{wish} met after {tried} trials"
        count = len(self.done)
        if count < 3:
            return f"{wish} not met: {count} of {tried} trials succeeded"
        needed = math.ceil(count * (self.error(stop.of) / stop.standard_error) ** 2)
        return f"{wish} not met in {tried} trials: about {max(needed, count + 1)} would be needed"

    def stacked(self, tables: list[FloatArray]) -> FloatArray:
        """Tables of the trials, shape (S, n, c), also where there are none."""
        return np.stack(tables) if tables else np.empty((0, self.test.n, len(self.coverages)))

    def mean_ends(self) -> tuple[FloatArray, FloatArray] | None:
        """Ends of the confidence intervals, each (S, n, c); None unless all trials have them."""
        ends = [trial.mean_ends for trial in self.done if trial.mean_ends is not None]
        if not ends or len(ends) < len(self.done):
            return None
        return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])

    def reasons(self) -> dict[str, str]:
        """Why something cannot be known, by what it is."""
        if not self.done:
            first = self.failures[0]
            failed = f"no trial succeeded; the first failed in {first.stage}: {first.message}"
            return dict.fromkeys(("picf", "cicf", "trials", "log_likelihood"), failed)
        reasons = {}
        if self.truth is None:
            reasons = dict.fromkeys(("picf", "cicf"), "the world does not know the law of y")
        elif self.mean_ends() is None:
            reasons["cicf"] = self._no_mean()
        if any(math.isnan(trial.log_likelihood) for trial in self.done):
            reasons["log_likelihood"] = f"{self.method.name} gives no density"
        return reasons

    def _keep(self, beliefs: Beliefs) -> None:
        lower, upper = self._ends(beliefs.outcome, "prediction intervals")
        mean_ends = None
        if beliefs.mean is not None:
            mean_ends = self._ends(beliefs.mean, "confidence intervals")
        likelihood = _log_likelihood(beliefs.outcome, self.test.y)
        if self.truth is not None:
            self.mass.append(interval_mass(lower, upper, self.truth.cdf))
        self.done.append(_Trial(lower, upper, mean_ends, likelihood))

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

    def _means_held(self) -> FloatArray:
        """In how many trials each confidence interval held the mean, shape (n, c)."""
        ends = self.mean_ends()
        if ends is None or self.truth is None:
            raise InputError(f"stop must not ask for the cicf: {self._no_mean()}")
        mean = self.truth.mean[:, None]
        return np.asarray(((ends[0] <= mean) & (mean <= ends[1])).sum(axis=0), dtype=np.float64)

    def _no_mean(self) -> str:
        return f"{self.method.name} gives no confidence intervals for the mean"


class _Guard:
    """Keeps whatever a method raises, which may be anything. Interrupts and exits pass."""

    __slots__ = ("failure", "stage", "trial")

    def __init__(self, trial: int) -> None:
        self.trial = trial
        self.stage: Stage = "fit"
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


def _check_trials(world: World, trials: int, n_train: int | None, n_test: int | None) -> None:
    whole = isinstance(trials, int | np.integer) and not isinstance(trials, bool)
    if not whole or trials < 1:
        raise InputError(f"trials must be a whole number of at least 1, got {trials!r}")
    available = world.trials_available(n_train, n_test)
    if trials > available:
        raise InputError(
            f"trials must be at most {available:.0f}, the training sets that world "
            f"{world.name!r} holds, got {trials}"
        )


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
