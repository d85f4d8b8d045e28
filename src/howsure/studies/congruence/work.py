"""A trial of the congruence studies: methods are fitted once, and every study is done with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.methods.deep import HeadNetwork
from howsure.methods.deep.modules.method import ImageFit, ImageNetwork
from howsure.methods.deep.modules.training import train_module
from howsure.methods.interface import Fitted, Method
from howsure.predictions import Distribution, Prediction, Samples
from howsure.studies.congruence.bundle import CongruenceStudies, ModelBeliefs, beliefs_of
from howsure.studies.congruence.diagnosis import Diagnosis, diagnosis
from howsure.studies.congruence.measure import answer, own_features
from howsure.studies.congruence.networks import OnFeatures, fit_methods
from howsure.studies.congruence.options import Options
from howsure.studies.congruence.perturbations import MonotonicityResult, monotonicity
from howsure.studies.congruence.plan_worlds import make_task
from howsure.studies.congruence.rejection import Rejection, rejection
from howsure.studies.congruence.result import CongruenceResult
from howsure.studies.congruence.robustness import Robustness, robustness
from howsure.studies.congruence.store import joined, packed
from howsure.studies.congruence.suite import TRUTH, compare
from howsure.studies.congruence.tasks import CongruenceTask
from howsure.studies.engine import Trial, TrialOutput, make_method

COVERAGES: Final = (0.9,)
"""For methods that fix theirs when they are made; such methods have no law of y, and no answer."""
_ENDS: Final = (0.025, 0.975)
_Found = TypeVar("_Found")


def together(method: Method) -> bool:
    """Whether a method is one network with a head, so that it trains with others as a batch."""
    return isinstance(method, HeadNetwork) and method.members == 1 and not method.resampled


def run_studies(trial: Trial) -> TrialOutput:
    """Fit the methods of a trial, and do all its studies."""
    told = trial.identity
    task = make_task(told["world"], trial.context["files"])
    options, seed = Options(**told["options"]), told["seed"]
    methods = {
        label: _on(task, make_method(label, entry, COVERAGES), told["world"])
        for label, entry in trial.context["methods"].items()
    }
    fits = fit_all(methods, task, seed)
    parts = [model_studies(task, label, fit, options, seed) for label, fit in fits.items()]
    if told["truth"]:
        parts.append(truth_studies(task, options, seed))
    studies = joined(parts)
    arrays, facts = packed(studies)
    return TrialOutput(
        records=_numbers(studies),
        arrays=arrays,
        keys={**trial.labels, "seed": seed},
        facts=facts,
    )


def _on(task: CongruenceTask, method: Method, world: Mapping[str, Any]) -> Method:
    """Methods for tables see principal components of images."""
    if not task.images or isinstance(method, ImageNetwork):
        return method
    return OnFeatures(method=method, components=world["components"])


def fit_all(
    methods: Mapping[str, Method],
    task: CongruenceTask,
    seed: int,
) -> dict[str, Fitted]:
    """Fit every method to the training part.

    Heads train as one batch. Networks for images and for heads choose their epoch by the
    validation part; any other method sees the training part alone.
    """
    pictured = {k: method for k, method in methods.items() if isinstance(method, ImageNetwork)}
    others = {k: method for k, method in methods.items() if k not in pictured}
    found: dict[str, Fitted] = {}
    if others:
        found |= fit_methods(others, [task], seeds=[seed])[0]
    for label, method in pictured.items():
        found[label] = image_fit(method, task, label, seed)
    return {label: found[label] for label in methods}


def image_fit(
    method: ImageNetwork,
    task: CongruenceTask,
    label: str,
    seed: int,
) -> ImageFit:
    """Train networks for images, with the validation part as rows held out."""
    own = int(child(seed, "congruence fit", label).integers(2**63 - 1))
    networks = tuple(
        train_module(
            task.train.x,
            task.train.y,
            head=method.head,
            backbone=method.backbone,
            recipe=method.recipe,
            rng=child(own, "member", member),
            held=(task.val.x, task.val.y),
            scaling=method.scaling,
        )
        for member in range(method.members)
    )
    return ImageFit(networks)


def model_studies(
    task: CongruenceTask,
    label: str,
    fit: Fitted,
    options: Options,
    seed: int,
) -> CongruenceStudies:
    """All studies of one fitted model; what has no answer is left out, with a note.

    Parameters
    ----------
    task : CongruenceTask
        What it was fitted to.
    label : str
        Its name, which also seeds its draws.
    fit : Fitted
        The model.
    options : Options
        Which studies, and how.
    seed : int
        Of data and model.
    """
    own, asked = _embedded(task, fit, options), _Asked(label, fit, options, seed)
    notes: list[str] = []

    def tried(study: str, do: Callable[[CongruenceTask], _Found | None]) -> _Found | None:
        if study not in options.studies:
            return None
        try:
            return do(own)
        except UnanswerableError as error:
            notes.append(f"{label} has no {study}: {error}")
            return None

    result = asked.correctness(own) if "correctness" in options.studies else None
    rejected = tried("rejection", asked.rejection)
    curves = tried("monotonicity", asked.monotonicity)
    diagnosed = tried("diagnosis", asked.diagnosis)
    robust = tried("robustness", asked.robustness)
    beliefs = asked.beliefs(own)
    return CongruenceStudies(
        task=task.name,
        units=task.units,
        counts=task.counts,
        result=result or CongruenceResult(runs=()),
        rejections=() if rejected is None else (rejected,),
        monotonicity=curves,
        diagnoses=() if diagnosed is None else (diagnosed,),
        robustness=() if robust is None else (robust,),
        beliefs=() if beliefs is None else (beliefs,),
        seed=seed,
        notes=tuple(notes),
    )


def truth_studies(task: CongruenceTask, options: Options, seed: int) -> CongruenceStudies:
    """The law that the data came from, judged as if it were a model."""
    assert task.truth is not None
    result = compare(
        {},
        [task],
        measure=options.measure,
        seeds=[seed],
        reference=options.reference,
        truth=True,
        fits=[{}],
    )
    beliefs = _beliefs(TRUTH, task.truth(task.test.x), task, seed)
    return CongruenceStudies(
        task=task.name,
        units=task.units,
        counts=task.counts,
        result=result,
        beliefs=() if beliefs is None else (beliefs,),
        seed=seed,
    )


class _Asked:
    """The studies of one fitted model, each a method that takes its task."""

    def __init__(self, label: str, fit: Fitted, options: Options, seed: int) -> None:
        self.label, self.options, self.seed = label, options, seed
        self.models = {label: fit}

    def correctness(self, task: CongruenceTask) -> CongruenceResult:
        """CCE beside ECE, NLL and MAE."""
        return compare(
            {},
            [task],
            measure=self.options.measure,
            seeds=[self.seed],
            reference=self.options.reference,
            fits=[self.models],
        )

    def rejection(self, task: CongruenceTask) -> Rejection:
        """Rows withheld by a CCE that knows no label of theirs."""
        return rejection(
            task,
            self.models,
            measure=self.options.measure,
            replicates=self.options.orders,
            seed=self.seed,
        )[self.label]

    def monotonicity(self, task: CongruenceTask) -> MonotonicityResult | None:
        """Perturbations that rise; blur is for images alone."""
        kinds = self.options.kinds
        if kinds is not None:
            kinds = tuple(kind for kind in kinds if kind != "blur" or task.images)
        if kinds == ():
            return None
        return monotonicity(
            task,
            self.models,
            kinds=kinds,
            severities=self.options.severities,
            trials=self.options.trials,
            resample=self.options.resample,
            output_bandwidth=self.options.gamma_of_y,
            measure=self.options.measure,
            seed=self.seed,
        )

    def diagnosis(self, task: CongruenceTask) -> Diagnosis | None:
        """CCE without labels beside the true error, where that is known; embedded exactly."""
        if task.truth is None:
            return None
        measure = replace(self.options.measure, draws=None)
        return diagnosis(task, self.models, measure=measure, seed=self.seed)[self.label]

    def robustness(self, task: CongruenceTask) -> Robustness:
        """A few rows spoilt; no more than there are."""
        held = answer(self.models[self.label], task.test, task.embed, model=self.label)
        return robustness(
            held,
            outliers=tuple(number for number in self.options.outliers if number <= held.n),
            distance=self.options.distance,
            narrowing=self.options.narrowing or None,
            counts=task.counts,
            measure=self.options.measure.of_task(task),
            seed=self.seed,
        )

    def beliefs(self, task: CongruenceTask) -> ModelBeliefs | None:
        """The model's beliefs of the test part; None if it has failed, or has no law."""
        try:
            law = self.models[self.label].predict(task.test.x).outcome
        except UnanswerableError:
            return None
        return _beliefs(self.label, law, task, self.seed)


def _beliefs(label: str, law: Prediction, task: CongruenceTask, seed: int) -> ModelBeliefs | None:
    if not isinstance(law, Distribution | Samples):
        return None
    x, y = task.test.x, task.test.y
    return beliefs_of(label, y, law.point(), law.quantile(_ENDS), x, seed, law.cdf(y))


def _embedded(task: CongruenceTask, fit: Fitted, options: Options) -> CongruenceTask:
    """The task, with inputs alike as the task or as the model itself has it."""
    if options.embedding == "task":
        return task
    return replace(task, embed=own_features(fit), kernel="auto", bandwidth=None)


def _numbers(studies: CongruenceStudies) -> Table:
    """Every number of every study, one a row."""
    records = studies.records()
    text = {name: [getattr(r, name) for r in records] for name in ("metric", "group", "reason")}
    numbers = {name: [getattr(r, name) for r in records] for name in ("value", "standard_error")}
    columns: dict[str, Any] = {"model": np.array([r.model for r in records], dtype=object)}
    columns |= {name: np.array(held, dtype=object) for name, held in text.items()}
    columns |= {name: np.array(held, dtype=np.float64) for name, held in numbers.items()}
    return Table(name="records", columns=columns)
