"""The congruence study in a plan: its options, its worlds, a trial, and what is put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeVar, final

import numpy as np
import pyarrow as pa

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.predictions import Distribution, Samples
from howsure_studies.congruence import worlds
from howsure_studies.congruence.encoders import encoded, kind_of
from howsure_studies.congruence.experiments import (
    diagnosis,
    monotonicity,
    possible_kinds,
    rejection,
    robustness,
)
from howsure_studies.congruence.measure import (
    TRUTH,
    TrueDistribution,
    answer,
    compare,
    own_features,
)
from howsure_studies.congruence.networks import OnFeatures, batched, fit_methods
from howsure_studies.congruence.options import NAMES, OWN_SPACES, CongruenceStudyOptions, Experiment
from howsure_studies.congruence.result import (
    CongruenceResult,
    CongruenceStudies,
    ModelPredictions,
    Robustness,
    joined,
)
from howsure_studies.congruence.stored import packed, shortened, unpacked
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    make_method,
    method_identity,
    present,
    records_table,
    stacked,
)
from howsure_studies.methods.deep.heads import HEADS, CountHead
from howsure_studies.methods.deep.modules.method import ImageFit, ImageNetwork
from howsure_studies.methods.deep.modules.training import train_module
from howsure_studies.methods.interface import Fitted, Method
from howsure_studies.tasks import Space, Task

T = TypeVar("T")
COVERAGES: Final = (0.9,)
"""For methods that fix theirs when they are made; such methods give no distribution of y."""
_ENDS: Final = (0.025, 0.975)
_HEADED: Final = "head_regressor"
_PICTURED: Final = "image_network"
_ASIDE: Final = 0.1
"""Has no effect but that the best epoch may be kept: the rows set aside are the validation part."""
_World = tuple[dict[str, Any], dict[str, str]]
_Chosen = tuple[Method, Mapping[str, Any]]
"""A method, and the plan's words for it with what the plan says of all heads."""


def _on(task: Task, method: Method, world: Mapping[str, Any]) -> Method:
    """Methods for tables see components of images and texts, or the vectors of an encoder."""
    if worlds.input_kind(world) is None or isinstance(method, ImageNetwork):
        return method
    encoder = world.get("encoder", "")
    return OnFeatures(method=method, components=world["components"], encoder=encoder)


def fit_all(methods: Mapping[str, Method], task: Task, seed: int) -> dict[str, Fitted]:
    """Fit every method to the training part; heads train as one batch."""
    fits: dict[str, Fitted] = {
        label: image_fit(method, task, label, seed)
        for label, method in methods.items()
        if isinstance(method, ImageNetwork)
    }
    if others := {label: method for label, method in methods.items() if label not in fits}:
        fits |= fit_methods(others, [task], seeds=[seed])[0]
    return {label: fits[label] for label in methods}


def image_fit(method: ImageNetwork, task: Task, label: str, seed: int) -> ImageFit:
    """Train networks for images, with the validation part as rows set aside."""
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
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int
) -> CongruenceStudies:
    """All experiments with one fitted model; what has no answer is left out, with a note."""
    notes: list[str] = []
    if options.embedding == "features":
        task = replace(task, space=Space(own_features(fit)))
    elif options.embedding != "task":
        task = replace(task, space=Space(encoded(options.embedding, kind_of(task.train.x))))
        notes.append(f"Inputs are compared using vectors of {options.embedding}.")
    if options.kinds is not None:
        options = replace(options, kinds=possible_kinds(task, options.kinds))

    def tried(study: Experiment, do: Callable[..., T], known: bool = True) -> tuple[T, ...]:
        if study not in options.studies or not known:
            return ()
        try:
            return (do(task, label, fit, options, seed),)
        except UnanswerableError as error:
            notes.append(f"{label} has no {study}: {error}")
            return ()

    return CongruenceStudies(
        task=task.name,
        units=task.units,
        counts=task.counts,
        result=next(iter(tried("correctness", _correctness)), CongruenceResult(runs=())),
        rejections=tried("rejection", rejection),
        monotonicity=next(iter(tried("monotonicity", monotonicity, options.kinds != ())), None),
        diagnoses=tried("diagnosis", diagnosis, task.truth is not None),
        robustness=tried("robustness", _robustness),
        beliefs=_predicted(label, fit, task, seed),
        seed=seed,
        notes=tuple(notes),
    )


def _correctness(
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int
) -> CongruenceResult:
    how, rows = options.measure, options.reference
    return compare({}, [task], measure=how, seeds=[seed], reference=rows, fits=[{label: fit}])


def _robustness(
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int
) -> Robustness:
    test = answer(fit, task.test, task.space.embed, model=label)
    own = replace(
        options,
        measure=options.measure.of_task(task),
        outliers=tuple(number for number in options.outliers if number <= test.n),
    )
    return robustness(test, own, counts=task.counts, seed=seed)


def _predicted(label: str, fit: Fitted, task: Task, seed: int) -> tuple[ModelPredictions, ...]:
    """Predictions of the test part; none if the model has failed, or gives no distribution."""
    try:
        law = fit.predict(task.test.x).outcome
    except UnanswerableError:
        return ()
    if not isinstance(law, Distribution | Samples):
        return ()
    x, y, ends = task.test.x, task.test.y, law.quantile(_ENDS)
    single = x.ndim < 3 and x.size == len(y) and kind_of(x) is None
    predictions = ModelPredictions(
        model=label,
        y=y,
        point=law.point(),
        lower=ends[:, 0],
        upper=ends[:, 1],
        x=np.asarray(x.reshape(-1), dtype=np.float64) if single else None,
        pit=law.cdf(y),
        seed=seed,
    )
    return (predictions,)


@final
class CongruenceStudy(Study):
    """The experiments of Young and others: a trial fits methods once for all of them.

    A world is one of `howsure_studies.congruence.worlds.NAMED` or a set of photographs, with
    options of its maker, or a ``table`` of one's own with its ``target``; it may set any
    option of the plan for itself. A method is the name of a head, which stands for a
    `HeadNetwork` of a table's columns or of principal components of images, or any method of
    howsure's or one's own. Heads for counts are left out where y counts nothing. Networks for
    images choose their epoch by the validation part, as heads do.

    Single networks with heads train as one batch, in one trial a world and seed; every other
    method is a trial of its own. So a head more means that the heads of a world are trained
    again, and no other method. Labels of methods seed their draws, and are part of a trial's
    identity. Options of a plan are those of `CongruenceStudyOptions`.
    """

    __slots__ = ()
    name: ClassVar[str] = "congruence"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("mean_cce", "ece", "nll", "mae"),
        *("rejection_gain_mae", "cce_error_spearman", "cce_steps_up"),
    )
    kinds: ClassVar[tuple[type, ...]] = (CongruenceStudies,)
    report: ClassVar[str] = "howsure_studies.congruence.page:congruence_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """World by world and seed by seed: the truth, heads together, and other methods."""
        CongruenceStudyOptions.of(plan)
        if TRUTH in plan.methods:
            raise InputError(f"a method must not be called {TRUTH!r}, the world's own distribution")
        trials = [
            trial
            for label in present(
                plan.worlds,
                lambda label: _world(plan, label, plan.seeds[0]),
                lambda label: CongruenceStudyOptions.of(plan, label).absent,
            )
            for seed in plan.seeds
            for trial in self._of_world(plan, label, seed)
        ]
        if not trials:
            raise InputError("a plan must have a method that fits one of its worlds, got none")
        return tuple(trials)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Fit the methods of a trial once, and do all its experiments with them."""
        identity = trial.identity
        task = worlds.make_task(identity["world"], trial.context["files"])
        options, seed = CongruenceStudyOptions(**identity["options"]), identity["seed"]
        methods = {
            label: _on(task, make_method(label, entry, COVERAGES), identity["world"])
            for label, entry in trial.context["methods"].items()
        }
        fits = fit_all(methods, task, seed)
        if identity["truth"]:
            fits[TRUTH] = TrueDistribution(task)
        parts = [model_studies(task, label, fit, options, seed) for label, fit in fits.items()]
        arrays, facts = packed(joined(parts))
        return TrialOutput(arrays=arrays, keys={**trial.labels, "seed": seed}, facts=facts)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[CongruenceStudies]:
        """What each trial gave: studies of the models that it fitted together, or of the truth."""
        return [unpacked(store.arrays(t.address), store.entry(t.address).facts) for t in trials]

    def shortened(self, result: CongruenceStudies) -> CongruenceStudies:
        """See `howsure_studies.congruence.stored.shortened`."""
        return shortened(result)

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[CongruenceStudies]]) -> Combined:
        """One `CongruenceStudies` of each world and seed, named as the plan does."""
        groups: dict[tuple[str, int], list[CongruenceStudies]] = {}
        for (world, _, seed), own in results.items():
            groups.setdefault((world, seed), []).extend(own)
        by_world: dict[str, list[CongruenceStudies]] = {}
        tables: list[pa.Table] = []
        for (world, seed), parts in groups.items():
            studies = joined(parts, world, (*plan.methods, TRUTH))
            by_world.setdefault(world, []).append(studies)
            for (setting, method), records in _by_setting(studies, world).items():
                keys: Mapping[str, str | int] = {
                    **{"world": setting, "part_of": world},
                    **{"method": method, "seed": seed},
                }
                tables.append(records_table(records, keys))
        return Combined(table=stacked(tables), results=by_world)

    def _of_world(self, plan: Plan, label: str, seed: int) -> Iterator[Trial]:
        options, world = CongruenceStudyOptions.of(plan, label), _world(plan, label, seed)
        kind = worlds.input_kind(world[0])
        pictured = kind == "image"
        if options.embedding not in OWN_SPACES:
            worlds.check_encoder(options.embedding, label, kind)
        chosen = {
            method: made
            for method, made in _methods(plan, options, images=pictured).items()
            if worlds.is_counted(world[0])
            or not isinstance(getattr(made[0], "head", None), CountHead)
        }
        batch = {label: made for label, made in chosen.items() if batched(made[0]) is not None}
        groups = [{method: made} for method, made in chosen.items() if method not in batch]
        known = worlds.is_simulated(world[0]) and options.embedding != "features"
        if known and options.truth and "correctness" in options.studies:
            alone = replace(options, studies=("correctness",))
            yield self._trial(label, world, {}, alone, seed)
        for group in ([batch] if batch else []) + groups:
            yield self._trial(label, world, group, options, seed)

    def _trial(
        self,
        label: str,
        world: _World,
        group: Mapping[str, _Chosen],
        options: CongruenceStudyOptions,
        seed: int,
    ) -> Trial:
        identity, files = world
        methods = {k: method_identity(made, entry) for k, (made, entry) in group.items()}
        return self.trial(
            {
                "world": identity,
                "methods": methods,
                "truth": not group,
                "options": options.identity(),
                "seed": seed,
            },
            {"world": label, "method": ", ".join(group) or TRUTH},
            {
                "files": files,
                "methods": {k: dict(entry) for k, (_, entry) in group.items()},
                "source": worlds.source_of(identity),
            },
        )


def _world(plan: Plan, label: str, seed: int) -> _World:
    entry = {key: value for key, value in plan.worlds[label].items() if key not in NAMES}
    components = CongruenceStudyOptions.of(plan, label).components
    return worlds.task_identity(label, entry, plan.folder, seed=seed, components=components)


def _methods(plan: Plan, options: CongruenceStudyOptions, *, images: bool) -> dict[str, _Chosen]:
    """The methods that are meant; heads take what the plan says of all of them."""
    pictured = None if options.network is None or not images else dict(options.network)
    chosen: dict[str, _Chosen] = {}
    for label, entry in plan.methods.items():
        if options.methods is not None and label not in options.methods:
            continue
        words = dict(entry)
        if words.get("method") in HEADS:
            kind = _HEADED if pictured is None else _PICTURED
            words = {**words, "method": kind, "head": words["method"]}
        if words.get("method") == _PICTURED:
            words = {"validation": _ASIDE, **(pictured or {}), **words}
        if words.get("method") == _HEADED:
            words = {**options.training, **words}
        chosen[label] = (make_method(label, words, COVERAGES), words)
    return chosen


def _by_setting(studies: CongruenceStudies, world: str) -> dict[tuple[str, str], list[Record]]:
    """Records by world and model; perturbations and spoilt rows stand as worlds of their own."""
    records_of: dict[tuple[str, str], list[Record]] = {}
    for record in studies.records():
        setting, group = world, record.group.rpartition("=")[2]
        if record.metric == "cce_steps_up":
            setting = f"{world}: {group}"
        elif "rows_changed" in record.options:
            setting = f"{world}: {record.options['rows_changed']:g} rows, {group}"
        records_of.setdefault((setting, record.model), []).append(record)
    return records_of
