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

from howsure.core.arrays import BoolArray, FloatArray, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.methods.interface import COVERAGES, Beliefs, Method, checked_coverages
from howsure.methods.regressors import as_method
from howsure.metrics.pointwise import brier
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
    rows, met = 0, False
    for trial in _counted(trials, progress):
        drawn = source.training_set(seed, trial, n_train, covariates=covariates, n_test=n_test)
        rows = drawn.n
        run.one(trial, drawn)
        met = stop is not None and run.met(stop, trial + 1)
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
        failures=tuple(run.failures),
        warnings=dict(run.warned),
        trials_planned=int(trials),
        stop=_stop_words(stop, met=met, tried=trial + 1),
        reasons=run.reasons(),
        **run.arrays(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What one trial gives; arrays of shape (n, c) or (c,)."""

    y_covered: BoolArray
    width: FloatArray
    log_likelihood: float
    mass: FloatArray | None
    mean_covered: BoolArray | None
    mean_width: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
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
            self.done.append(self._measured(beliefs))
        self.warned.update({f"{item.category.__name__}: {item.message}" for item in caught})
        if guard.failure is not None:
            self.failures.append(guard.failure)

    def met(self, stop: Precision, tried: int) -> bool:
        """Whether the wanted standard error is met after so many trials."""
        count = len(self.done)
        if tried < stop.least or (tried - stop.least) % stop.every or count < 3:
            return False
        if stop.of == "cicf":
            covered = [trial.mean_covered for trial in self.done if trial.mean_covered is not None]
            if len(covered) < count:
                raise InputError(f"stop must not ask for the cicf: {self._no_mean()}")
            share = (np.sum(covered, axis=0) + 2.0) / (count + 4.0)
            return math.sqrt(float((share * (1.0 - share)).max()) / count) <= stop.standard_error
        mass = np.stack([trial.mass for trial in self.done if trial.mass is not None])
        if stop.of == "picf":
            largest = float(mass.std(axis=0, ddof=1).max())
            return largest / math.sqrt(count) <= stop.standard_error
        scores = (brier(mass[:, :, k], c) for k, c in enumerate(self.coverages))
        return max(score.standard_error for score in scores) <= stop.standard_error

    def arrays(self) -> dict[str, Any]:
        """The trials' arrays, stacked; None where one of them has none."""
        n, c = self.test.n, len(self.coverages)
        shapes = {"y_covered": (0, n, c), "width": (0, n, c), "log_likelihood": (0,)}
        if self.truth is not None:
            shapes["mass"] = (0, n, c)
        stacked: dict[str, Any] = {name: np.empty(shape) for name, shape in shapes.items()}
        stacked.update(dict.fromkeys(("mean_covered", "mean_width")), mass=stacked.get("mass"))
        for name in stacked if self.done else ():
            parts = [getattr(trial, name) for trial in self.done]
            stacked[name] = None if any(part is None for part in parts) else np.stack(parts)
        return stacked

    def reasons(self) -> dict[str, str]:
        """Why something cannot be known, by what it is."""
        if not self.done:
            first = self.failures[0]
            failed = f"no trial succeeded; the first failed in {first.stage}: {first.message}"
            return dict.fromkeys(("picf", "cicf", "trials", "log_likelihood"), failed)
        reasons = {}
        if self.truth is None:
            reasons = dict.fromkeys(("picf", "cicf"), "the world does not know the law of y")
        elif any(trial.mean_covered is None for trial in self.done):
            reasons["cicf"] = self._no_mean()
        if any(math.isnan(trial.log_likelihood) for trial in self.done):
            reasons["log_likelihood"] = f"{self.method.name} gives no density"
        return reasons

    def _no_mean(self) -> str:
        return f"{self.method.name} gives no confidence intervals for the mean"
