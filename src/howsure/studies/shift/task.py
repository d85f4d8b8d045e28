"""Any method on any task with a shift: train, calibrate on validation rows, and test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import part_of, tell
from howsure.core.rng import child
from howsure.methods.catalogue import method_named
from howsure.methods.interface import Fitted, Method
from howsure.methods.regressors import as_method
from howsure.methods.selective import SHARE, Selective
from howsure.predictions import Prediction
from howsure.studies.shift.evaluate import Answers, evaluate_shift
from howsure.studies.shift.result import Rule, ShiftResult, ShiftRun
from howsure.studies.tasks import Part, Task


def run_shift(
    task: Task,
    method: Any,
    *,
    coverage: float = 0.9,
    rule: Rule = "paper",
    share: float | None = None,
    seeds: Sequence[int] = (0,),
) -> ShiftResult:
    """Train a method at home, calibrate it there, and see whether its coverage survives.

    Parameters
    ----------
    task : Task
        Training rows, validation rows and tests.
    method : Method, regressor or str
        As `method_named` takes it. Its intervals are moved by Q of `calibration_shift`, whatever
        it did to calibrate itself. A `Selective` method trains on all training rows, its
        threshold coming from the validation rows; any other whose fitted model has ``score(x)``
        is taken as selective too.
    coverage : float
        Nominal coverage, in (0, 1).
    rule : {"paper", "conformal"}
        See `calibration_shift`.
    share : float, optional
        See `evaluate_shift`; the method's own, or 0.95, if omitted.
    seeds : sequence of int
        One run each; a method that draws nothing gives the same in all.

    Returns
    -------
    ShiftResult

    Raises
    ------
    InputError
        If an option leaves its domain, or the method refuses the rows.
    UnanswerableError
        If the method gives no intervals.

    Examples
    --------
    >>> from howsure.studies.tasks import table_task
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> table = {"x": x, "y": np.where(x < 0.5, x, 1.0) + 0.01 * np.sin(99 * x), "at": x}
    >>> task = table_task(table, "y", split_by="at", up_to=0.5)
    >>> result = run_shift(task, "linear_t")
    >>> bool(result.value("test_coverage", "home").mean > 0.6)
    True
    >>> bool(result.value("test_coverage", "shift").mean < 0.1)
    True
    """
    check_fraction(coverage, "coverage")
    chosen = as_method(method_named(method), (coverage,))
    _check_coverage(chosen, coverage)
    if not seeds:
        raise InputError("seeds must hold at least one seed, got none")
    own = chosen.share if isinstance(chosen, Selective) else SHARE
    wanted = own if share is None else share
    runs: list[ShiftRun] = []
    notes: list[str] = []
    for done, seed in enumerate(seeds):
        with part_of(task.name, done, len(seeds)):
            fitted = fit_shift(chosen, task, child(seed, "shift", task.name))
        notes += [f"seed {seed}: {note}" for note in getattr(fitted, "notes", ())]
        val = model_answers(fitted, task.part("val"), coverage)
        tests = {name: model_answers(fitted, task.part(name), coverage) for name in task.tests}
        runs.append(evaluate_shift(val, tests, coverage=coverage, rule=rule, share=wanted))
    tell(task.name, len(seeds), len(seeds))
    return ShiftResult(
        task=task.name,
        method=chosen.name,
        coverage=coverage,
        rule=rule,
        runs=tuple(runs),
        units=task.units,
        share=wanted,
        notes=tuple(notes),
        options={"seeds": ", ".join(map(str, seeds))},
    )


def model_answers(fitted: Fitted, part: Part, coverage: float) -> Answers:
    """What a fitted method says of a part, before calibration.

    Parameters
    ----------
    fitted : Fitted
        Gives beliefs, and scores where it has ``score(x)``.
    part : Part
        Inputs and targets.
    coverage : float
        Nominal coverage of the intervals.

    Returns
    -------
    Answers
        Point forecasts are NaN where the beliefs imply none, as intervals without end do.

    Raises
    ------
    UnanswerableError
        If the beliefs give no interval at this coverage.
    """
    belief = fitted.predict(part.x).outcome
    lower, upper = belief.interval(coverage)
    score = getattr(fitted, "score", None)
    return Answers(
        y=part.y,
        point=_point(belief),
        lower=lower,
        upper=upper,
        score=score(part.x) if callable(score) else None,
    )


def fit_shift(method: Method, task: Task, rng: np.random.Generator) -> Fitted:
    """A method trained on a task's training rows; a `Selective` one keeps none of them back."""
    train = task.part("train")
    if isinstance(method, Selective):
        return method.fit_with(train.x, train.y, task.part("val").x, rng)
    return method.fit(train.x, train.y, rng)


def _point(belief: Prediction) -> FloatArray:
    try:
        return belief.point()
    except UnanswerableError:
        return np.full(belief.n, math.nan)


def _check_coverage(method: Method, coverage: float) -> None:
    fixed = method.fixed_coverages
    if fixed is not None and all(abs(coverage - known) > 1e-9 for known in fixed):
        known = ", ".join(f"{one:g}" for one in fixed)
        raise InputError(f"coverage must be one that {method.name} gives ({known}), got {coverage}")
