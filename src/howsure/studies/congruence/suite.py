"""Conditional congruence of fitted models: CCE beside ECE, NLL and MAE, with their spreads.

A model is fitted to the training part of a task, and says what it believes of the test part. The
labelled reference S of its CCE is the test part itself or, where labels of the test part shall
not be seen, the validation part. Monte-Carlo draws stand for the beliefs, several sets of them;
bootstrap samples of the data say how far the numbers would move on other data. Source: Young et
al. 2025, sections 4.3 and 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole, checked
from howsure.core.errors import UnanswerableError
from howsure.core.progress import part_of, tell
from howsure.core.rng import child
from howsure.methods.interface import Fitted, Method
from howsure.metrics.congruence import null_reference
from howsure.metrics.congruence.laws import embeds_exactly
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.studies.congruence.measure import (
    CongruenceMeasure,
    believed,
    calibration_of,
    congruence_at,
    law_of,
    losses,
    reference_of,
)
from howsure.studies.congruence.networks import fit_methods
from howsure.studies.congruence.result import CongruenceResult, CongruenceRun
from howsure.studies.congruence.tasks import CongruenceTask, wave_task
from howsure.studies.tasks import Part

TRUTH: Final = "the truth"


def evaluate(
    held: EvalSet,
    *,
    measure: CongruenceMeasure | None = None,
    reference: EvalSet | None = None,
    task: str = "",
    seed: int = 0,
) -> CongruenceRun:
    """Measure one model on labelled rows.

    Parameters
    ----------
    held : EvalSet
        Rows to judge by, with beliefs and embeddings.
    measure : CongruenceMeasure, optional
        How.
    reference : EvalSet, optional
        Labelled rows S of the CCE, with the same model's beliefs; `held` by default. With another
        set, CCE uses no label of `held`.
    task : str
        Its name, for reports.
    seed : int
        Fixes draws and bootstrap samples.

    Returns
    -------
    CongruenceRun

    Raises
    ------
    UnanswerableError
        If there are no embeddings or no laws of y.
    """
    how = measure or CongruenceMeasure()
    if held.embedding is None:
        raise UnanswerableError("congruence needs an embedding of the inputs, got none")
    stage, total = f"congruence of {held.model}", how.sets * (1 + how.bootstraps)
    source = held if reference is None else reference
    plain, points = [], []
    for number in range(how.sets):
        rng = child(seed, "congruence draws", held.model, number)
        with part_of(stage, number, total):
            points.append(congruence_at(source, held.embedding, how, rng))
        plain.append(points[-1].mean())
    known = losses(held)
    values = {"cce": float(np.mean(plain)), "mae": float(known["error"].mean())}
    values |= {name: float(known[name].mean()) for name in known if name.startswith("nll")}
    reasons: dict[str, str] = {} if "nll" in known else {"nll": "samples give no density"}
    values["ece"] = calibration_of(held, how, exact=False)
    values["ece_exact"] = calibration_of(held, how, exact=True)
    values["cce_null"] = _null(source, held, how, seed, reasons)
    spread, again = _bootstrapped(held, source, reference is None, known, how, seed)
    points = again or points
    rows = {
        "cce": np.mean(points, axis=0),
        "cce_sd": np.std(points, axis=0, ddof=1) if len(points) > 1 else np.full(held.n, np.nan),
        **{name: value for name, value in known.items() if name != "nll_unnormalised"},
    }
    return CongruenceRun(
        task=task,
        model=held.model,
        seed=seed,
        n=held.n,
        values=values,
        repeats=np.array(plain),
        bootstraps=spread,
        rows=rows,
        reasons=reasons,
    )


def _bootstrapped(
    held: EvalSet,
    source: EvalSet,
    own: bool,
    known: Mapping[str, FloatArray],
    how: CongruenceMeasure,
    seed: int,
) -> tuple[dict[str, FloatArray], list[FloatArray]]:
    """Measures on bootstrap samples, and CCE at fixed rows in each of them.

    ECE and NLL take the same samples of rows as CCE where the reference is the set itself.
    """
    found: dict[str, list[Any]] = {"cce": [], "ece": [], "nll": [], "mae": []}
    points: list[FloatArray] = []
    stage, total = f"congruence of {held.model}", how.sets * (1 + how.bootstraps)
    assert held.embedding is not None
    for number in range(how.bootstraps):
        rng = child(seed, "congruence bootstrap", number)
        rows = rng.integers(held.n, size=held.n)
        chosen = rows if own else rng.integers(source.n, size=source.n)
        sample = source.take(chosen)
        grid = held.embedding if how.grid == "fixed" else held.embedding[rows]
        means = []
        for turn in range(how.sets):
            drawn = child(seed, "congruence bootstrap draws", held.model, number, turn)
            with part_of(stage, how.sets * (1 + number) + turn, total):
                errors = congruence_at(sample, grid, how, drawn)
            means.append(errors.mean())
            if how.grid == "fixed":
                points.append(errors)
        found["cce"].append(means)
        found["ece"].append(calibration_of(held.take(rows), how, exact=False))
        found["mae"].append(known["error"][rows].mean())
        if "nll" in known:
            found["nll"].append(known["nll"][rows].mean())
    tell(stage, total, total)
    return {name: np.array(value) for name, value in found.items() if value}, points


def _null(
    source: EvalSet, held: EvalSet, how: CongruenceMeasure, seed: int, reasons: dict[str, str]
) -> float:
    """Mean CCE that a right model of these beliefs would have, in the measure's mode."""
    if not how.replicates:
        reasons["cce_null"] = "no replicates were asked for"
        return math.nan
    law = law_of(source)
    exact = how.draws is None and embeds_exactly(source)
    found = null_reference(
        reference_of(source, how, child(seed, "congruence draws", held.model, 0)),
        held.embedding,
        outcomes=None if exact else lambda rng: law.sample(rng, 1),
        replicates=how.replicates,
        seed=seed,
    )
    return found.expected


def compare(
    methods: Mapping[str, Method],
    tasks: Sequence[CongruenceTask],
    *,
    measure: CongruenceMeasure | None = None,
    seeds: Sequence[int] | None = None,
    reference: Literal["test", "val"] = "test",
    truth: bool = False,
    fits: Sequence[Mapping[str, Fitted]] | None = None,
) -> CongruenceResult:
    """Fit methods to tasks, and measure each.

    Parameters
    ----------
    methods : mapping of str to Method
        What is compared.
    tasks : sequence of CongruenceTask
        On what: different tasks, or one task of several seeds.
    measure : CongruenceMeasure, optional
        How.
    seeds : sequence of int, optional
        One a task; 0, 1, … by default.
    reference : {"test", "val"}
        The labelled rows S: the test part, or the validation part.
    truth : bool
        Whether the law that the data came from is judged as if it were a model, where a task
        knows it.
    fits : sequence of mapping of str to Fitted, optional
        Methods already fitted, one mapping a task.

    Returns
    -------
    CongruenceResult
        A method without an answer, such as one that failed in training, has NaN and a reason.

    Raises
    ------
    InputError
        If an argument breaks its rule.
    """
    checked(reference, Literal["test", "val"], "reference")
    how = measure or CongruenceMeasure()
    own = list(range(len(tasks))) if seeds is None else [int(seed) for seed in seeds]
    fitted = fits or fit_methods(methods, tasks, seeds=own)
    runs = []
    for task, seed, models in zip(tasks, own, fitted, strict=True):
        asked: dict[str, Callable[[Part], Prediction]] = {
            label: _saying(model) for label, model in models.items()
        }
        if truth and task.truth is not None:
            asked[TRUTH] = _stating(task.truth)
        for label, say in asked.items():
            runs.append(_run(task, label, say, how.of_task(task), reference, seed))
    return CongruenceResult(runs=tuple(runs), options={**how.options(), "reference": reference})


def _saying(model: Fitted) -> Callable[[Part], Prediction]:
    return lambda part: model.predict(part.x).outcome


def _stating(law: Callable[[npt.NDArray[Any]], Distribution]) -> Callable[[Part], Prediction]:
    return lambda part: law(part.x)


def _run(
    task: CongruenceTask,
    label: str,
    say: Callable[[Part], Prediction],
    how: CongruenceMeasure,
    reference: str,
    seed: int,
) -> CongruenceRun:
    try:
        held = believed(say(task.test), task.test, task.embed, model=label)
        other = None
        if reference == "val":
            other = believed(say(task.val), task.val, task.embed, model=label)
        return evaluate(held, measure=how, reference=other, task=task.name, seed=seed)
    except UnanswerableError as error:
        return CongruenceRun(
            task=task.name,
            model=label,
            seed=seed,
            n=len(task.test),
            values={},
            repeats=np.empty(0),
            bootstraps={},
            rows={},
            reasons=dict.fromkeys(("cce", "ece", "ece_exact", "nll", "mae"), str(error)),
        )


def correctness(
    methods: Mapping[str, Method],
    *,
    seeds: int = 3,
    first_seed: int = 0,
    rows: int = 1000,
    measure: CongruenceMeasure | None = None,
) -> CongruenceResult:
    """The study of correctness: heads on the discrete wave, beside the law the data came from.

    Parameters
    ----------
    methods : mapping of str to Method
        What is compared; see `howsure.studies.congruence.networks.head_methods`.
    seeds : int
        Sets of data, each with networks of its own.
    first_seed : int
        Seed of the first.
    rows : int
        Rows of each set.
    measure : CongruenceMeasure, optional
        By default as published: ℓ = 5, five sets of draws, ten bootstrap samples of the test part
        as reference, CCE at the test inputs.

    Returns
    -------
    CongruenceResult
        With rows of each run for the three rows of figure 2: beliefs and ECE, NLL at each test
        input, CCE at each with its spread.

    Raises
    ------
    InputError
        If `seeds` is below 1, or an argument breaks its rule.
    """
    check_whole(seeds, "seeds", 1)
    how = measure or CongruenceMeasure(draws=5, grid="fixed")
    own = list(range(first_seed, first_seed + seeds))
    tasks = [wave_task(seed, rows=rows) for seed in own]
    return compare(methods, tasks, measure=how, seeds=own, truth=True)
