"""CCE beside ECE, NLL and MAE of fitted models, with their spreads.

A model is fitted to the training part of a task, and predicts the test part. The labelled
reference S of its CCE is the test part itself or, where labels of the test part shall not be
seen, the validation part. Several sets of Monte-Carlo draws stand for the predictions; bootstrap
samples of the data say how far the numbers would move on other data. Source: Young et al. 2025,
sections 4.3 and 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, Natural, checked, plain
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import part_of, report_progress
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Prediction, Samples
from howsure.predictions.counts import CountFamily, DoublePoisson
from howsure.topics.calibration.curve import Weighting, calibration_error
from howsure.topics.congruence.laws import embeds_exactly, predictive_of
from howsure.topics.congruence.null import null_reference
from howsure.topics.congruence.predictive import Draws, PredictiveLaw
from howsure.topics.congruence.reference import CongruenceReference
from howsure.topics.congruence.view import CongruenceOptions
from howsure_studies.congruence.networks import fit_methods
from howsure_studies.congruence.result import CongruenceResult, CongruenceRun
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.tasks import Part, Task
from howsure_studies.tasks.task import Embedding

TRUTH: Final = "the truth"
"""What the true conditional distribution is called among models."""


@final
@frozen(eq=False)
class TrueDistribution(Fitted):
    """The distribution that a task's data come from, as if it were a model."""

    task: Task

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is true at inputs."""
        if self.task.truth is None:
            name = self.task.name
            raise InputError(f"task must be simulated, with a known truth, got {name!r}")
        return Predictions(self.task.truth(np.asarray(x)))


@final
@frozen(kw_only=True)
class CongruenceMeasure(Checked):
    """How CCE and ECE are measured, and how often.

    Kernels, λ, and the exact embedding in place of draws are those of `howsure.assess`, so that a
    study and an assessment of the same rows give one number. The paper's one draw a row (five on
    the wave) is set by the plans; its ECE (50 levels, power 1, weights by frequency) is taken
    here, as no other would be comparable with what it prints.

    Parameters
    ----------
    draws : int or None
        ℓ, Monte-Carlo draws a row. None, as in an assessment: the exact embedding,
        which has no noise, and 5 draws where they have none.
    samplings : int
        Sets of draws, at least 1; taken as 1 in exact mode.
    bootstraps : int
        Bootstrap samples of the data; 0 for none.
    grid : {"resampled", "fixed"}
        Whether a bootstrap sample is also where CCE is taken, as for a new data set, or CCE is
        always taken at the test inputs, so that a band over x can be had.
    kernel, bandwidth, output_bandwidth, regularization
        As in `howsure.topics.congruence.cce`; kernel ``auto`` and no bandwidth are the task's.
    levels, weighting, exponent
        Of the ECE, as in `howsure.topics.calibration.calibration_error`.
    replicates : int
        Data sets drawn from the predictions themselves, for the CCE that a correctly specified
        model would have; 0 for none.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> CongruenceMeasure(draws=5).kernel_for(64)
    'polynomial'
    """

    draws: Count | None = None
    samplings: Count = 5
    bootstraps: Natural = 10
    grid: Literal["resampled", "fixed"] = "resampled"
    kernel: str = "auto"
    bandwidth: str | float | None = None
    output_bandwidth: str | float | None = None
    regularization: float = 0.1
    levels: int = 50
    weighting: Weighting = "frequency"
    exponent: float = 1.0
    replicates: Natural = 0

    @property
    def sets(self) -> int:
        """Sets of draws: one where none are asked for."""
        return 1 if self.draws is None else self.samplings

    def kernel_for(self, width: int) -> str:
        """The kernel for embeddings of so many columns."""
        options = CongruenceOptions(kernel=self.kernel, bandwidth=self.bandwidth)
        return options.kernel_for(width)

    def of_task(self, task: Task) -> CongruenceMeasure:
        """The same with the task's kernel and bandwidth, where none is chosen."""
        if self.kernel != "auto" or self.bandwidth is not None:
            return self
        return replace(self, kernel=task.space.kernel, bandwidth=task.space.bandwidth)

    def options(self) -> dict[str, str | float]:
        """The choices as plain values."""
        return {
            name: value if isinstance(value, str) else float(value)
            for name, value in plain(self).items()
            if value is not None
        }


def answer(
    fitted: Fitted, part: Part, embed: Embedding | None = None, *, model: str = "model"
) -> EvalSet:
    """What a fitted method predicts of a part's rows, beside what happened.

    Parameters
    ----------
    fitted : Fitted
        A fitted method.
    part : Part
        Rows.
    embed : callable, optional
        Inputs to embeddings; by default the fitted method's own ``features``.
    model : str
        Its name.

    Raises
    ------
    InputError
        If no embedding is given and the method has no features.
    UnanswerableError
        If the method has failed, or gives no predictive distribution.

    Examples
    --------
    >>> from howsure_studies.congruence import wave_task
    >>> task = wave_task(rows=60)
    >>> answer(TrueDistribution(task), task.test, task.space.embed).n
    6
    """
    space = embed or own_features(fitted)
    return stated(fitted.predict(part.x).outcome, part.y, space(part.x), model=model)


def stated(law: Prediction, y: FloatArray, embedding: FloatArray, *, model: str) -> EvalSet:
    """Predictive distributions beside what happened and embedded inputs."""
    if not isinstance(law, Distribution | Samples):
        raise UnanswerableError(f"congruence needs distributions or samples of y, got {law.kind}")
    return EvalSet.checked(y, law, embedding=embedding, model=model)


def own_features(fitted: Fitted) -> Embedding:
    """The features of a fitted method, as an embedding."""
    features = getattr(fitted, "features", None)
    if not callable(features):
        raise InputError("embed must be given where a method has no features, got none")
    return lambda x: np.asarray(features(x), dtype=np.float64)


def law_of(evaluation: EvalSet) -> Prediction:
    """The predictive distributions of a set."""
    for law in evaluation.predictions:
        if isinstance(law, Distribution | Samples):
            return law
    raise UnanswerableError("congruence needs distributions or samples of y, got neither")


def congruence_at(
    evaluation: EvalSet,
    grid: npt.ArrayLike | None,
    measure: CongruenceMeasure,
    rng: np.random.Generator,
) -> FloatArray:
    """CCE at points, with a set as the labelled reference S."""
    return reference_of(evaluation, measure, rng).score(grid).values


def reference_of(
    evaluation: EvalSet, measure: CongruenceMeasure, rng: np.random.Generator
) -> CongruenceReference:
    """A set as the labelled reference of a CCE, by draws or exactly.

    Raises
    ------
    UnanswerableError
        If there is no predictive distribution.

    Examples
    --------
    >>> from howsure_studies.congruence import wave_task
    >>> task = wave_task(rows=60)
    >>> evaluation = answer(TrueDistribution(task), task.test, task.space.embed)
    >>> reference_of(evaluation, CongruenceMeasure(), np.random.default_rng(0)).score().n
    6
    """
    assert evaluation.embedding is not None
    predictive: PredictiveLaw
    if measure.draws is None:
        predictive = predictive_of(evaluation, "exact" if embeds_exactly(evaluation) else "samples")
    else:
        predictive = Draws(law_of(evaluation).sample(rng, measure.draws))
    return CongruenceReference(
        evaluation.embedding,
        evaluation.y,
        predictive,
        kernel=measure.kernel_for(evaluation.embedding.shape[1]),
        bandwidth=measure.bandwidth,
        output_bandwidth=measure.output_bandwidth,
        regularization=measure.regularization,
    )


def calibration_of(evaluation: EvalSet, measure: CongruenceMeasure, *, exact: bool) -> float:
    """ECE of a set: by P(Y ≤ y) as published, or spread over the cells of discrete laws."""
    law, y = law_of(evaluation), evaluation.y
    return calibration_error(
        np.clip(law.cdf(y), 0.0, 1.0),
        left=np.clip(law.cdf_left(y), 0.0, 1.0) if exact else None,
        levels=measure.levels,
        weighting=measure.weighting,
        exponent=measure.exponent,
    ).value


def losses(evaluation: EvalSet) -> dict[str, FloatArray]:
    """NLL and absolute error of each row, and NLL as published of double Poisson laws.

    The published likelihood of the double Poisson law lacks its normalising constant; for any
    other law, ``nll_unnormalised`` is the NLL.
    """
    law = law_of(evaluation)
    scores = {"error": np.abs(evaluation.y - law.point())}
    try:
        scores["nll"] = -law.log_density(evaluation.y)
    except UnanswerableError:
        return scores
    scores["nll_unnormalised"] = scores["nll"]
    if isinstance(law, Distribution) and isinstance(law.law, CountFamily):
        frozen = law.law.frozen(law.parameters)
        if isinstance(frozen, DoublePoisson):
            scores["nll_unnormalised"] = -frozen.log_pmf(evaluation.y, "none")
    return scores


def evaluate(
    evaluation: EvalSet,
    *,
    measure: CongruenceMeasure | None = None,
    reference: EvalSet | None = None,
    task: str = "",
    seed: int = 0,
) -> CongruenceRun:
    """Measure one model on labelled rows."""
    how = measure or CongruenceMeasure()
    n, model, grid = evaluation.n, evaluation.model, evaluation.embedding
    if grid is None:
        raise UnanswerableError("congruence needs an embedding of the inputs, got none")
    source = evaluation if reference is None else reference
    stage, total = f"congruence of {model}", how.sets * (1 + how.bootstraps)

    def by_draws(rows: EvalSet, at: FloatArray, sample: int, *words: str | int) -> list[FloatArray]:
        """CCE at points, once a set of draws."""
        points = []
        for turn in range(how.sets):
            with part_of(stage, how.sets * sample + turn, total):
                points.append(congruence_at(rows, at, how, child(seed, *words, turn)))
        return points

    points = by_draws(source, grid, 0, "congruence draws", model)
    repeats = np.array([errors.mean() for errors in points])
    known = losses(evaluation)
    values = {"cce": float(np.mean(repeats)), "mae": float(known["error"].mean())}
    values |= {name: float(known[name].mean()) for name in known if name.startswith("nll")}
    reasons: dict[str, str] = {} if "nll" in known else {"nll": "samples give no density"}
    values["ece"] = calibration_of(evaluation, how, exact=False)
    values["ece_exact"] = calibration_of(evaluation, how, exact=True)
    values["cce_null"] = _null(source, evaluation, how, seed, reasons)
    samples: dict[str, list[Any]] = {"cce": [], "ece": [], "nll": [], "mae": []}
    fixed: list[FloatArray] = []
    for number in range(how.bootstraps):
        rng = child(seed, "congruence bootstrap", number)
        rows = rng.integers(n, size=n)  # ECE and NLL take the rows of CCE, where it has no others
        labelled = source.take(rows if reference is None else rng.integers(source.n, size=source.n))
        at = grid if how.grid == "fixed" else grid[rows]
        errors = by_draws(labelled, at, 1 + number, "congruence bootstrap draws", model, number)
        fixed += errors if how.grid == "fixed" else []
        samples["cce"].append([each.mean() for each in errors])
        samples["ece"].append(calibration_of(evaluation.take(rows), how, exact=False))
        samples["mae"].append(known["error"][rows].mean())
        if "nll" in known:
            samples["nll"].append(known["nll"][rows].mean())
    report_progress(stage, total, total)
    points = fixed or points
    several = len(points) > 1
    return CongruenceRun(
        task=task,
        model=model,
        seed=seed,
        n=n,
        values=values,
        repeats=repeats,
        bootstraps={name: np.array(value) for name, value in samples.items() if value},
        rows={
            "cce": np.mean(points, axis=0),
            "cce_sd": np.std(points, axis=0, ddof=1) if several else np.full(n, np.nan),
            **{name: value for name, value in known.items() if name != "nll_unnormalised"},
        },
        reasons=reasons,
    )


def _null(
    source: EvalSet, evaluation: EvalSet, how: CongruenceMeasure, seed: int, reasons: dict[str, str]
) -> float:
    """Mean CCE if these predictions were correct, in the measure's mode."""
    if not how.replicates:
        reasons["cce_null"] = "no replicates were asked for"
        return math.nan
    law = law_of(source)
    exact = how.draws is None and embeds_exactly(source)
    null = null_reference(
        reference_of(source, how, child(seed, "congruence draws", evaluation.model, 0)),
        evaluation.embedding,
        outcomes=None if exact else lambda rng: law.sample(rng, 1),
        replicates=how.replicates,
        seed=seed,
    )
    return null.expected


def compare(
    methods: Mapping[str, Method],
    tasks: Sequence[Task],
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
    tasks : sequence of Task
        On what: different tasks, or one task of several seeds.
    measure : CongruenceMeasure, optional
        How.
    seeds : sequence of int, optional
        One a task; 0, 1, … by default.
    reference : {"test", "val"}
        The labelled rows S: the test part, or the validation part.
    truth : bool
        Whether the true distribution is judged as if it were a model, where a task knows it.
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

    Examples
    --------
    >>> from howsure_studies.congruence import wave_task
    >>> exact = CongruenceMeasure(bootstraps=0)
    >>> result = compare({}, [wave_task(rows=60)], measure=exact, truth=True, fits=[{}])
    >>> result.models
    ('the truth',)
    """
    checked(reference, Literal["test", "val"], "reference")
    how = measure or CongruenceMeasure()
    own = list(range(len(tasks))) if seeds is None else [int(seed) for seed in seeds]
    fitted = fits or fit_methods(methods, tasks, seeds=own)
    runs = []
    for task, seed, models in zip(tasks, own, fitted, strict=True):
        known = truth and task.truth is not None
        judged = {**models, TRUTH: TrueDistribution(task)} if known else models
        for label, model in judged.items():
            space, rule = task.space.embed, how.of_task(task)
            try:
                test = answer(model, task.test, space, model=label)
                val = answer(model, task.val, space, model=label) if reference == "val" else None
                run = evaluate(test, measure=rule, reference=val, task=task.name, seed=seed)
            except UnanswerableError as error:
                reasons = dict.fromkeys(("cce", "ece", "ece_exact", "nll", "mae"), str(error))
                run = CongruenceRun(
                    task=task.name, model=label, seed=seed, n=len(task.test), reasons=reasons
                )
            runs.append(run)
    return CongruenceResult(runs=tuple(runs), options={**how.options(), "reference": reference})
