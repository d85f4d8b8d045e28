"""One method on one world, training set by training set."""

from __future__ import annotations

import math
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.methods.interface import Beliefs, Fitted, Method
from howsure.metrics.pointwise import brier, interval_mass
from howsure.predictions import Prediction
from howsure.studies.pointwise.result import Failure, Stage, no_mean, why_unknown
from howsure.studies.tasks.worlds import Draw, Truth

if TYPE_CHECKING:
    from howsure.studies.pointwise.simulation import Precision


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Intervals of one trial: ends of shape (n, c), of y and perhaps of its mean."""

    lower: FloatArray
    upper: FloatArray
    mean_ends: tuple[FloatArray, FloatArray] | None
    log_likelihood: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One method on one world, trial by trial."""

    method: Method
    coverages: tuple[float, ...]
    test: Draw
    truth: Truth | None
    seed: int
    done: list[Trial] = field(default_factory=list)
    mass: list[FloatArray] = field(default_factory=list)
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
                self.one(trial, data, fitted.pop(trial, None))
                yield data

    def one(self, trial: int, drawn: Draw, fitted: Fitted | None = None) -> None:
        """Run one trial; whatever the method raises is kept, and ends this trial alone."""
        guard = _Guard(trial)
        with warnings.catch_warnings(record=True) as caught, guard:
            warnings.simplefilter("always")
            if fitted is None:
                fitted = self.method.fit(drawn.x, drawn.y, self._rng(trial))
            guard.stage = "predict"
            beliefs = fitted.predict(self.test.x)
            guard.stage = "intervals"
            self._keep(beliefs)
        self._count(caught)
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
        return why_unknown(
            self.method.name,
            failures=self.failures,
            knows_truth=self.truth is not None,
            knows_mean=self.mean_ends() is not None,
            log_likelihood=self.log_likelihood(),
        )

    def log_likelihood(self) -> FloatArray:
        """Mean log density of each trial, shape (S,)."""
        return np.array([trial.log_likelihood for trial in self.done], dtype=np.float64)

    def _together(self, drawn: Mapping[int, Draw]) -> dict[int, Fitted]:
        """Fit the trials of a batch at once; none of them if that fails, for then each is alone."""
        guard = _Guard(min(drawn))
        fitted: Sequence[Fitted] = ()
        with warnings.catch_warnings(record=True) as caught, guard:
            warnings.simplefilter("always")
            data = [(held.x, held.y) for held in drawn.values()]
            fitted = self.method.fit_many(data, [self._rng(trial) for trial in drawn])
        if guard.failure is not None or len(fitted) != len(drawn):
            return {}
        self._count(caught)
        return dict(zip(drawn, fitted, strict=True))

    def _rng(self, trial: int) -> np.random.Generator:
        return child(self.seed, "methods", self.method.name, trial)

    def _count(self, caught: Sequence[warnings.WarningMessage]) -> None:
        self.warned.update({f"{item.category.__name__}: {item.message}" for item in caught})

    def _keep(self, beliefs: Beliefs) -> None:
        lower, upper = self._ends(beliefs.outcome, "prediction intervals")
        mean_ends = None
        if beliefs.mean is not None:
            mean_ends = self._ends(beliefs.mean, "confidence intervals")
        likelihood = _log_likelihood(beliefs.outcome, self.test.y)
        if self.truth is not None:
            self.mass.append(interval_mass(lower, upper, self.truth.cdf))
        self.done.append(Trial(lower, upper, mean_ends, likelihood))

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
            raise InputError(f"stop must not ask for the cicf: {no_mean(self.method.name)}")
        mean = self.truth.mean[:, None]
        return np.asarray(((ends[0] <= mean) & (mean <= ends[1])).sum(axis=0), dtype=np.float64)


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


def _log_likelihood(belief: Prediction, y: FloatArray) -> float:
    """Mean log density at y; NaN where the belief has none."""
    try:
        return float(belief.log_density(y).mean())
    except UnanswerableError:
        return math.nan
