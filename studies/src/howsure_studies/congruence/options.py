"""What a plan says of the congruence study, with defaults and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, final, get_args

from howsure.core.classes import frozen
from howsure.core.convert import (
    Bound,
    Checked,
    Count,
    Positive,
    filled,
    from_options,
    option_names,
    plain,
)
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure_studies.congruence.measure import CongruenceMeasure
from howsure_studies.congruence.worlds import COMPONENTS
from howsure_studies.engine import Plan

Kind = Literal["blur", "label_shift", "label_noise", "mixup"]
Experiment = Literal["correctness", "rejection", "monotonicity", "diagnosis", "robustness"]
STUDIES: Final[tuple[Experiment, ...]] = get_args(Experiment)
TRAINING: Final = (
    *("layers", "epochs", "batch_size", "learning_rate", "penalty", "weight_decay"),
    *("schedule", "keep", "initial", "warm", "standardise"),
)
"""Options of `HeadNetwork` that a plan sets for all heads."""
OWN_SPACES: Final = ("task", "features")


def _rising(value: tuple[float, ...], name: str) -> tuple[float, ...]:
    if not value or not all(first < second for first, second in pairwise((0.0, *value))):
        raise InputError(f"{name} must rise from above 0, got {list(value)}")
    return value


def _over(whole: Any, own: Any) -> Any:
    """A table of a plan with what a world says in place of some of it."""
    if not (isinstance(whole, Mapping) and isinstance(own, Mapping)):
        return own
    return {**whole, **{key: _over(whole.get(key), value) for key, value in own.items()}}


def _space(value: str, name: str) -> str:
    if value not in OWN_SPACES and ":" not in value:
        raise InputError(
            f"{name} must be 'task', 'features' or an encoder that assess takes, such as "
            f"'transformers:FOLDER' or 'MODULE:NAME', got {value!r}"
        )
    return value


@final
@frozen(kw_only=True)
class CongruenceStudyOptions(Checked):
    """Options with their defaults; those of `CongruenceMeasure` and `TRAINING` stand among them.

    Attributes
    ----------
    studies : tuple of str
        Which of `STUDIES`. A diagnosis needs a world whose truth is known, and is left out
        elsewhere.
    methods : tuple of str, optional
        Labels of the methods that are meant; all if omitted. A world's own entry is the place.
    reference : {"test", "val"}
        The labelled rows S of correctness.
    truth : bool
        Whether the true distribution is judged as if it were a model, where it is known.
    embedding : str
        Where inputs are alike: ``task``, in the task's own embedding; ``features``, in each
        model's own features; or as an encoder has it, by any name that
        `howsure.inputs.encoders.encode` takes, such as ``open_clip:NAME/PRETRAINED`` or
        ``MODULE:NAME``. A model by name takes worlds of images alone.
    components : int
        Principal components of images: of the embedding, and of what heads for tables take.
    kinds : tuple of str, optional
        Perturbations; by default as published, and blur of images alone.
    severities : mapping of str to list of float
        In place of the published.
    trials : int
        How often each perturbation is done.
    resample : bool
        Whether each takes a bootstrap sample of the test part.
    gamma_of_y : {"each", "fixed"}
        Whether γ of y is set anew for each perturbed part.
    orders : int
        Random orders behind p-values of rejection.
    outliers : tuple of int
        Rows spoilt, setting by setting.
    distance : float
        How far, in predicted standard deviations.
    narrowing : float
        What one prediction's standard deviation is multiplied by; 0 for no such setting.
    absent : {"error", "skip"}
        What becomes of worlds whose data are not on this machine.
    measure : CongruenceMeasure
        How CCE and ECE are measured.
    training : mapping
        Options of heads.
    network : mapping, optional
        Options of `ImageNetwork`, as ``backbone`` and ``recipe``. Where it is given, heads on
        worlds of images are networks for images, trained one by one; else they are networks for
        tables, on principal components. What a world says of it, as of its ``recipe``, stands
        over what the plan says of all.

    Examples
    --------
    >>> CongruenceStudyOptions(**CongruenceStudyOptions(trials=3).identity()).trials
    3
    """

    studies: Annotated[tuple[Experiment, ...], filled] = STUDIES
    methods: Annotated[tuple[str, ...], filled] | None = None
    reference: Literal["test", "val"] = "test"
    truth: bool = True
    embedding: Annotated[str, _space] = "task"
    components: Count = COMPONENTS
    kinds: tuple[Kind, ...] | None = None
    severities: Mapping[Kind, Annotated[tuple[float, ...], _rising]] = field(default_factory=dict)
    trials: Count = 5
    resample: bool = True
    gamma_of_y: Literal["each", "fixed"] = "each"
    orders: Count = 999
    outliers: tuple[Count, ...] = (1, 2, 5)
    distance: Positive = 10.0
    narrowing: Annotated[float, Bound(0.0, 1.0)] = 1e-3
    absent: Literal["error", "skip"] = "error"
    measure: CongruenceMeasure = field(default_factory=CongruenceMeasure)
    training: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, plan: Plan, world: str | None = None) -> CongruenceStudyOptions:
        """Check those of a plan, or of one of its worlds."""
        for key in plan.options:
            check_known(key, NAMES, "option of study 'congruence'")
        entry = {} if world is None else plan.worlds[world]
        own = {key: entry[key] for key in entry if key in NAMES}
        if isinstance(own.get("network"), Mapping) and "network" in plan.options:
            own["network"] = _over(plan.options["network"], own["network"])
        given = {**plan.options, **own}
        if given.get("draws") == "exact":
            given["draws"] = None
        training = {key: given.pop(key) for key in TRAINING if key in given}
        options = from_options(cls, {**given, "training": training}, "option")
        for label in options.methods or ():
            check_known(label, plan.methods, "methods")
        return options

    def identity(self) -> dict[str, Any]:
        """What decides the results of a trial, as plain values; training is the methods' own."""
        names = ["reference", "embedding", "measure"]
        if "monotonicity" in self.studies:
            names += ["kinds", "severities", "trials", "resample", "gamma_of_y"]
        names += ["orders"] * ("rejection" in self.studies)
        if "robustness" in self.studies:
            names += ["outliers", "distance", "narrowing"]
        values = plain(self)
        return {"studies": sorted(self.studies), **{name: values[name] for name in names}}


NAMES: Final = (*(n for n in option_names(CongruenceStudyOptions) if n != "training"), *TRAINING)
"""All options that a plan or a world may set."""
