"""Coverage at every point: the five-step procedure of simulation-based testing.

1. A world is chosen. 2. One test set is drawn and kept. 3. In each trial a training set is drawn,
a method is fitted, and intervals are made at several coverages. 4. PICF and CICF follow at each
test point. 5. Scores and widths follow from these. Source: Sluijterman, Cator and Heskes, arXiv
2106.03395, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

from howsure.core.arrays import check_fraction
from howsure.core.convert import Positive, check_fields, check_whole
from howsure.core.errors import InputError
from howsure.core.progress import tell
from howsure.methods.interface import COVERAGES, Method, checked_coverages
from howsure.methods.regressors import as_method
from howsure.studies.pointwise.result import PointwiseResult
from howsure.studies.pointwise.run import Run
from howsure.studies.tasks.worlds import Covariates, Draw, World, world_named


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
    >>> from howsure.methods.linear import LinearT
    >>> result = pointwise("linear", LinearT(), coverages=(0.8,), trials=50, n_test=20)
    >>> score = result.brier("picf", 0.8)
    >>> bool(abs(score.corrected) < 3 * score.standard_error)
    True
    """
    source = world_named(world)
    tested = as_method(method, coverages)
    answers = _coverages(tested, coverages)
    check_fraction(confidence, "confidence")
    _check_trials(source, first_trial, trials, n_train, n_test)
    if stop is not None and not source.knows_truth:
        raise InputError(f"stop must be left out for world {source.name!r}: {source.no_truth}")
    test = source.test_set(seed, n_test)
    truth = source.truth(test.x) if source.knows_truth else None
    run = Run(tested, answers, test, truth, seed)
    numbers = range(first_trial, first_trial + trials)

    def draw(trial: int) -> Draw:
        return source.training_set(seed, trial, n_train, covariates=covariates, n_test=n_test)

    rows, tried, met = 0, 0, False
    tell("trials", 0, trials)
    for tried, drawn in enumerate(run.trials(numbers, draw), start=1):
        rows = drawn.n
        tell("trials", tried, trials)
        if stop is not None and run.looked_at(stop, tried):
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
        log_likelihood=run.log_likelihood(),
        failures=tuple(run.failures),
        warnings=dict(run.warned),
        trials_planned=int(trials),
        stop=run.stopped(stop, met=met, tried=tried),
        reasons=run.reasons(),
        first_trial=int(first_trial),
    )


def _check_trials(
    world: World, first: int, trials: int, n_train: int | None, n_test: int | None
) -> None:
    check_whole(first, "first_trial", 0)
    check_whole(trials, "trials")
    available = world.trials_available(n_train, n_test)
    if first + trials > available:
        raise InputError(
            f"trials must be at most {max(available - first, 0):.0f}, the training sets that "
            f"world {world.name!r} holds{f' from number {first}' if first else ''}, got {trials}"
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
