"""Conditional congruence of models in a plan: what is fitted together, and all studies of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeVar, final

import pyarrow as pa

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.records import Record
from howsure.methods.deep.heads import HEADS, CountHead
from howsure.methods.interface import Method
from howsure.report.document import Document
from howsure.studies.congruence.bundle import CongruenceStudies, ModelBeliefs
from howsure.studies.congruence.diagnosis import Diagnosis
from howsure.studies.congruence.options import NAMES, Options
from howsure.studies.congruence.perturbations import Monotonicity, MonotonicityResult
from howsure.studies.congruence.plan_worlds import (
    is_counted,
    is_pictured,
    is_simulated,
    task_identity,
)
from howsure.studies.congruence.rejection import Rejection
from howsure.studies.congruence.result import CongruenceRun
from howsure.studies.congruence.robustness import Robustness
from howsure.studies.congruence.store import joined, unpacked
from howsure.studies.congruence.suite import TRUTH
from howsure.studies.congruence.work import COVERAGES, run_studies, together
from howsure.studies.engine import (
    Combined,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    make_method,
    method_identity,
    records_table,
    stacked,
)
from howsure.studies.tasks import DataNotFoundError

_HEADED: Final = "head_regressor"
_PICTURED: Final = "image_network"
_HELD: Final = 0.1
"""Has no effect but that the best epoch may be kept: the rows held out are the validation part."""
_World = tuple[dict[str, Any], dict[str, str]]
Chosen = tuple[Method, Mapping[str, Any]]
"""A method, and the plan's words for it with what the plan says of all heads."""

_Item = TypeVar(
    "_Item", CongruenceRun, Rejection, Monotonicity, Diagnosis, Robustness, ModelBeliefs
)


@final
class CongruenceStudy(Study):
    """The experiments of Young and others: a trial fits methods once for all of them.

    A world is one of `howsure.studies.congruence.plan_worlds.NAMED` or a set of photographs,
    with options of its maker, or a ``table`` of one's own with its ``target``; it may set any
    option of the plan for itself. A method is the name of a head, which stands for a
    `HeadNetwork` of a table's columns or of principal components of images, or any method of
    howsure's or one's own. Heads for counts are left out where y counts nothing. Networks for
    images choose their epoch by the validation part, as heads do.

    Single networks with heads train as one batch, in one trial a world and seed; every other
    method is a trial of its own. So a head more means that the heads of a world are trained
    again, and no other method. Labels of methods seed their draws, and are part of a trial's
    identity. Options of a plan are those of `Options`.
    """

    __slots__ = ()
    name: ClassVar[str] = "congruence"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("mean_cce", "ece", "nll", "mae"),
        *("rejection_gain_mae", "cce_error_spearman", "cce_steps_up"),
    )

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """World by world and seed by seed: the truth, heads together, and other methods."""
        Options.of(plan)
        if TRUTH in plan.methods:
            raise InputError(f"a method must not be called {TRUTH!r}, the world's own distribution")
        found = [
            trial
            for label in _present(plan)
            for seed in plan.seeds
            for trial in self._of_world(plan, label, seed)
        ]
        if not found:
            raise InputError("a plan must have a method that fits one of its worlds, got none")
        return tuple(found)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Fit the methods, and do all studies."""
        return run_studies(trial)

    def combine(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Combined:
        """One `CongruenceStudies` of each world and seed, named as the plan does."""
        groups: dict[tuple[str, int], list[Trial]] = {}
        for trial in trials:
            groups.setdefault((trial.labels["world"], trial.identity["seed"]), []).append(trial)
        results: dict[str, list[CongruenceStudies]] = {}
        tables: list[pa.Table] = []
        for (world, seed), parts in groups.items():
            read = [unpacked(store.arrays(t.address), store.entry(t.address).facts) for t in parts]
            studies = _ordered(_named(joined(read), world), (*plan.methods, TRUTH))
            results.setdefault(world, []).append(studies)
            for (place, method), records in _by_place(studies, world).items():
                keys: Mapping[str, str | int] = {"world": place, "method": method, "seed": seed}
                tables.append(records_table(records, keys))
        return Combined(table=stacked(tables), results=results)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """See `howsure.studies.congruence.page`."""
        from howsure.studies.congruence.page import congruence_report

        return congruence_report(combined.results, facts=facts, command=command)

    def _of_world(self, plan: Plan, label: str, seed: int) -> Iterator[Trial]:
        options, world = Options.of(plan, label), _world(plan, label, seed)
        chosen = {
            method: made
            for method, made in _methods(plan, options, images=is_pictured(world[0])).items()
            if is_counted(world[0]) or not _counts(made[0])
        }
        batch = {method: made for method, made in chosen.items() if together(made[0])}
        groups = [{method: made} for method, made in chosen.items() if method not in batch]
        known = is_simulated(world[0]) and options.embedding == "task"
        if known and options.truth and "correctness" in options.studies:
            plain = Options(
                studies=("correctness",), reference=options.reference, measure=options.measure
            )
            yield self._trial(label, world, {}, plain, seed)
        for group in ([batch] if batch else []) + groups:
            yield self._trial(label, world, group, options, seed)

    def _trial(
        self, label: str, world: _World, group: Mapping[str, Chosen], options: Options, seed: int
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
            {"files": files, "methods": {k: dict(entry) for k, (_, entry) in group.items()}},
        )


def _world(plan: Plan, label: str, seed: int) -> _World:
    entry = {key: value for key, value in plan.worlds[label].items() if key not in NAMES}
    components = Options.of(plan, label).components
    return task_identity(label, entry, plan.folder, seed=seed, components=components)


def _methods(plan: Plan, options: Options, *, images: bool) -> dict[str, Chosen]:
    """The methods that are meant; heads take what the plan says of all of them."""
    pictured = None if options.network is None or not images else dict(options.network)
    found: dict[str, Chosen] = {}
    for label, entry in plan.methods.items():
        if options.methods is not None and label not in options.methods:
            continue
        words = dict(entry)
        if words.get("method") in HEADS:
            kind = _HEADED if pictured is None else _PICTURED
            words = {**words, "method": kind, "head": words["method"]}
        if words.get("method") == _PICTURED:
            words = {"validation": _HELD, **(pictured or {}), **words}
        if words.get("method") == _HEADED:
            words = {**options.training, **words}
        found[label] = (make_method(label, words, COVERAGES), words)
    return found


def _counts(method: Method) -> bool:
    """Whether a method's head is for counts alone."""
    return isinstance(getattr(method, "head", None), CountHead)


def _present(plan: Plan) -> list[str]:
    """Labels of the worlds whose data are on this machine; all, where none may be absent."""
    there, lost = [], {}
    for label in plan.worlds:
        try:
            _world(plan, label, plan.seeds[0])
            there.append(label)
        except DataNotFoundError as error:
            if Options.of(plan, label).absent == "error":
                raise
            lost[label] = error
    if not there:
        raise next(iter(lost.values()))
    if lost:
        told = f"left out, as their data are not on this machine: {', '.join(lost)}"
        warnings.warn(f"{told}; see howsure data get NAME", HowsureWarning, stacklevel=2)
    return there


def _named(studies: CongruenceStudies, world: str) -> CongruenceStudies:
    """The studies under the plan's name of their task."""
    result, curves = studies.result, studies.monotonicity
    return replace(
        studies,
        task=world,
        result=replace(result, runs=tuple(replace(run, task=world) for run in result.runs)),
        rejections=tuple(replace(item, task=world) for item in studies.rejections),
        monotonicity=None
        if curves is None
        else replace(curves, curves=tuple(replace(c, task=world) for c in curves.curves)),
        diagnoses=tuple(replace(item, task=world) for item in studies.diagnoses),
    )


def _ordered(studies: CongruenceStudies, models: Sequence[str]) -> CongruenceStudies:
    """Models in the order of the plan."""
    curves = studies.monotonicity
    return replace(
        studies,
        result=replace(studies.result, runs=_sorted(studies.result.runs, models)),
        rejections=_sorted(studies.rejections, models),
        monotonicity=None
        if curves is None
        else replace(curves, curves=_sorted(curves.curves, models)),
        diagnoses=_sorted(studies.diagnoses, models),
        robustness=_sorted(studies.robustness, models),
        beliefs=_sorted(studies.beliefs, models),
    )


def _sorted(items: Sequence[_Item], models: Sequence[str]) -> tuple[_Item, ...]:
    return tuple(sorted(items, key=lambda item: models.index(item.model)))


def _by_place(studies: CongruenceStudies, world: str) -> dict[tuple[str, str], list[Record]]:
    """Records by world and model; perturbations and spoilt rows stand as worlds of their own."""
    found: dict[tuple[str, str], list[Record]] = {}
    plain = replace(studies, monotonicity=None, robustness=())
    for record in plain.records():
        found.setdefault((world, record.model), []).append(record)
    curves = studies.monotonicity
    for curve in () if curves is None else curves.curves:
        own = MonotonicityResult(curves=(curve,), options=curves.options if curves else {})
        found.setdefault((f"{world}: {curve.kind}", curve.model), []).extend(own.records())
    for part in studies.robustness:
        for record in part.records():
            setting = record.group.removeprefix("setting=")
            named = f"{world}: {record.options['rows_changed']:g} rows, {setting}"
            found.setdefault((named, record.model), []).append(record)
    return found
