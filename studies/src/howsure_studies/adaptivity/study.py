"""Conformal methods compared by how they adapt: one trial a task, method and seed.

Classifiers are trained, and their ease is computed, in trials of their own, which all methods read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, final

import numpy as np

from howsure.core.arrays import AnyArray, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Count, Coverages, Positive, from_options, plain
from howsure.core.errors import InputError
from howsure.core.registry import check_known, unknown
from howsure.stats.dominance import class_numbers
from howsure.stats.ease import REPEATS
from howsure_studies.adaptivity.comparison import SURROGATE, MethodComparison, joined
from howsure_studies.adaptivity.intervals import (
    CONTROL,
    INTERVAL_METHODS,
    Regressed,
    compare_intervals,
    forest_task,
)
from howsure_studies.adaptivity.label_sets import (
    IMAGES,
    LABEL_METHODS,
    OTHERS,
    SCORES,
    Classified,
    LabelMethod,
    RankByEase,
    classifier_named,
    classifier_task,
    compare_label_sets,
    given_probabilities,
    label_method,
    transformations_named,
)
from howsure_studies.adaptivity.validation import MethodValidation, validate_method
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    absolute,
    canonical,
    check_options,
    make_method,
    make_world,
    method_identity,
    numbers_hash,
    packed,
    present,
    records_table,
    stacked,
    unpacked,
    world_identity,
)
from howsure_studies.methods.catalogue import methods as registered
from howsure_studies.methods.interface import Method

Result = MethodComparison | MethodValidation | RankByEase
_World = tuple[dict[str, Any], dict[str, Any]]
"""What decides a world, and where its files lie."""
_ARRAYS: Final = ("predictions", "ground_truth")
_EASE: Final = "ease"
_OWN: Final = (*("rows", "n_train", "bins", "groups", "clip", "transformations", "disturbances"),)
"""Options of a plan that a world may set for itself."""


@frozen(kw_only=True)
class _Options(Checked):
    """Options of a plan of this study, with their defaults."""

    coverages: Coverages = (0.8, 0.9)
    repeats: Count = 10
    rows: Count = 2000
    n_train: Count = 1000
    bins: Count = 20
    groups: Count = 5
    trees: Count = 60
    noise: Positive = 0.2
    clip: tuple[float, float] | None = None
    transformations: Annotated[tuple[str, ...], transformations_named] = (
        *("noise 0.5", "noise 0.2", "noise 0.1"),
    )
    disturbances: Count = REPEATS
    validation: Annotated[int, Bound(0)] = 0
    absent: Literal["error", "skip"] = "error"

    @classmethod
    def of(cls, plan: Plan, label: str) -> tuple[_Options, dict[str, Any]]:
        """Options for one world, and the rest of its entry."""
        plan.read(cls)
        entry = dict(plan.worlds[label])
        own = {key: entry.pop(key) for key in _OWN if key in entry}
        return from_options(cls, {**plan.options, **own}, f"option of world {label!r}"), entry

    def some(self, *names: str) -> dict[str, Any]:
        """Some of them, as plain values."""
        every = plain(self)
        return {name: every[name] for name in names}


@frozen(kw_only=True, eq=False)
class _Results:
    """What the trial of a method gives: a comparison at each coverage."""

    comparisons: tuple[MethodComparison, ...]


@final
class AdaptivityStudy(Study):
    """The study of Jang and Lee: a trial is one method on all random splits of one task.

    Worlds for label sets, the tasks of LAC, APS, RAPS, SAPS, O-LAC and O-SAPS, are of two kinds.
    ``images`` names pictures, ``digits`` (scikit-learn's), ``mnist`` (its 10,000 test images) or
    ``letters`` (drawn, with their truth), on ``train`` of which (2000) a ``classifier`` is trained;
    see `classifier_task`. Ease comes from disturbing the others. ``softmax`` names a file of
    NumPy's (``.npz``) with arrays ``predictions``, shape (n, classes), ``ground_truth`` and
    ``ease``, shape (n,); where it has no ease, ``ease = "surrogate"`` asks for noise on
    log-probabilities.

    Any other world, as `pointwise` has them (a table needs ``source = "cut"``), is the task of CP,
    CP-A, PAC, SSCP, O-CPA, O-PAC and R-CPA (O-CPA, each threshold from random rows) around two
    forests. Methods and worlds that do not fit are left out.

    Any other method is named as everywhere: for intervals, by a name of
    `howsure_studies.methods` or as ``module:attribute``; for label sets, ``label_conformal`` or
    ``module:attribute`` of a class
    that `LabelMethod` describes. It is fitted to the inputs and outcomes of the validation rows
    and of those that trained the forests, or calibrated on the validation rows' probabilities.

    Options of a plan: ``coverages``, ``repeats`` (random splits; 10), ``rows`` (of a task, at
    most; 2000), ``bins`` (cells by ease; 20), ``disturbances`` (of a row; 20), ``absent`` (``skip``
    leaves out worlds whose data are not on this machine); for label sets ``transformations`` (of
    images), and ``validation`` (trials that ask which measure follows Property 1, for LAC, APS,
    RAPS and SAPS; 0); for intervals ``n_train`` (rows that train; 1000), ``trees``, ``noise``
    (share of each column's sd), ``groups`` (by ease; 5) and ``clip`` (two ends at which intervals
    are cut off). A world may set ``rows``, ``n_train``, ``bins``, ``groups``,
    ``clip``, ``transformations`` and ``disturbances`` for itself. What stands after a comma in its
    name is a variant, and is averaged apart.
    """

    __slots__ = ()
    name: ClassVar[str] = "adaptivity"
    version: ClassVar[int] = 2
    headline: ClassVar[tuple[str, ...]] = (
        *("t_cv", "t_ss", "empirical_coverage"),
        *("set_size", "width", "kendall_tau"),
    )
    kinds: ClassVar[tuple[type, ...]] = (MethodComparison, MethodValidation, RankByEase)
    report: ClassVar[str] = "howsure_studies.adaptivity.page:adaptivity_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Classifiers of all worlds, then every method that fits a world, and validations."""
        coverages = plan.read(_Options).coverages
        methods = {
            label: _Entered.read(label, entry, coverages) for label, entry in plan.methods.items()
        }
        trials = [
            trial
            for label, identity in present(
                plan.worlds,
                lambda label: _identity(label, _Options.of(plan, label)[1], plan.folder),
                lambda label: _Options.of(plan, label)[0].absent,
            ).items()
            for seed in plan.seeds
            for trial in self._of_world(plan, label, identity, methods, seed)
        ]
        order = ("outputs", "method", "validation")
        trials.sort(key=lambda trial: order.index(trial.context["stage"]))
        if not any(trial.context["stage"] == "method" for trial in trials):
            raise InputError("a plan must have a method that fits one of its worlds, got none")
        # worlds that differ in their cells alone share a classifier, which is trained once
        trained = {each.address: each for each in trials if each.context["stage"] == "outputs"}
        return (*trained.values(), *(t for t in trials if t.context["stage"] != "outputs"))

    def _of_world(
        self,
        plan: Plan,
        label: str,
        world: _World,
        methods: Mapping[str, _Entered],
        seed: int,
    ) -> Iterator[Trial]:
        """The trials of one world under one seed."""
        options, entry = _Options.of(plan, label)
        identity, files = world
        labels = "softmax" in entry or "images" in entry
        fitting = {name: made for name, made in methods.items() if made.labels is labels}
        if not fitting:
            return
        needs: tuple[str, ...] = ()
        common: dict[str, Any] = {"world": identity, "seed": seed}
        if labels:
            what = ("transformations", "disturbances", "rows") if "images" in entry else ("rows",)
            outputs = self.trial(
                {**common, "options": options.some(*what)},
                {"world": label, "outputs": _classifier(entry)},
                {"stage": "outputs", "files": files},
            )
            yield outputs
            needs = (outputs.address,)
            own = options.some("coverages", "repeats", "bins")
        else:
            own = options.some(
                *("coverages", "repeats", "bins", "rows", "n_train", "groups", "trees", "noise"),
                *("disturbances", "clip"),
            )
        for name, made in fitting.items():
            known = {**common, "method": made.identity}
            context = {"files": files, "method": plan.methods[name], "label": name}
            yield self.trial(
                {**known, "options": own},
                {"world": label, "method": name},
                {**context, "stage": "method"},
                needs,
            )
            if labels and options.validation and (made.own is not None or made.name in SCORES):
                from howsure_studies.engine import coverage_of  # it brings reports, which take time

                spoken = coverage_of(options.coverages, None)
                checks = {"coverage": spoken, **options.some("validation", "bins")}
                yield self.trial(
                    {**known, "validation": checks},
                    {"world": label, "method": name, "stage": "validation"},
                    {**context, "stage": "validation"},
                    needs,
                )

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Train a classifier, compare one method alone, or ask what measures say of it."""
        identity, stage = trial.identity, trial.context["stage"]
        if stage == "outputs":
            made = _outputs(identity, trial.context["files"])
            eases = np.array(list(made.eases.values()))
            kept = {"probabilities": made.probabilities, "y": made.y, "eases": eases}
            if made.truth is not None:
                kept["truth"] = made.truth
            return TrialOutput(arrays=kept, facts={"eases": list(made.eases)})
        options = identity.get("options") or identity["validation"]
        coverages = tuple(options.get("coverages") or [options["coverage"]])
        entered = _Entered.read(trial.context["label"], trial.context["method"], coverages)
        name, own = entered.name, {} if entered.own is None else {entered.name: entered.own}
        common: dict[str, Any] = {"bins": options["bins"], "seed": identity["seed"], "own": own}
        if stage == "validation":
            common |= {"coverage": options["coverage"], "trials": options["validation"]}
            arrays, facts = packed(validate_method(_outputs_of(trial, store), name, **common))
            return TrialOutput(arrays=arrays, facts=facts)
        common |= {"coverages": coverages, "repeats": options["repeats"]}
        common |= {"methods": () if own else (name,)}
        if trial.needs:
            compared = compare_label_sets(_outputs_of(trial, store), **common)
        else:
            texts = (identity["world"], trial.context["files"], {k: options[k] for k in _FOREST})
            task = _forests(*map(canonical, texts), identity["seed"])
            clip = None if options["clip"] is None else tuple(options["clip"])
            compared = compare_intervals(task, groups=options["groups"], clip=clip, **common)
        arrays, facts = packed(_Results(comparisons=compared))
        return TrialOutput(arrays=arrays, facts=facts)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[Result]:
        """A method's comparison at each coverage, or what measures say of it; and ranks by ease."""
        results: list[Result] = []
        for trial in trials:
            kept = store.arrays(trial.address), store.entry(trial.address).facts
            if trial.context["stage"] == "method":
                results += unpacked(_Results, *kept).comparisons
                if trial.needs and trial.identity["method"].get("name") == SCORES[0]:  # once
                    bins = trial.identity["options"]["bins"]
                    results.append(RankByEase.of(_outputs_of(trial, store), bins))
            elif trial.context["stage"] != "outputs":
                results.append(unpacked(MethodValidation, *kept))
        return results

    def shortened(self, result: Result) -> Result:
        """All, but for what each measure says in each trial of a validation."""
        if not isinstance(result, MethodValidation):
            return result
        trials = result.found
        return replace(result, found=replace(trials, values=trials.values[:0]))

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[Result]]) -> Combined:
        """One `MethodComparison` of each world, coverage and seed, and the other results."""
        groups: dict[tuple[str, int], dict[str, list[MethodComparison]]] = {}
        others: dict[tuple[str, int], list[MethodValidation | RankByEase]] = {}
        for (world, method, seed), own in results.items():
            for each in own:
                if isinstance(each, MethodComparison):
                    groups.setdefault((world, seed), {}).setdefault(method, []).append(each)
                elif isinstance(each, MethodValidation):
                    others.setdefault((world, seed), []).append(replace(each, method=method))
                else:
                    others.setdefault((world, seed), []).append(each)
        by_world: dict[str, list[Result]] = {}
        tables = []
        for (world, seed), by_method in groups.items():
            named = f"{world}, seed {seed}" if len(plan.seeds) > 1 else world
            for level in zip(*by_method.values(), strict=True):
                whole = replace(joined(level, tuple(by_method)), task=named)
                by_world.setdefault(world, []).append(whole)
                records = whole.records()
                for method in whole.methods:
                    keys: dict[str, str | int] = {"world": world, "method": method, "seed": seed}
                    tables.append(records_table([r for r in records if r.model == method], keys))
            by_world[world] += [replace(r, task=named) for r in others.get((world, seed), ())]
        return Combined(table=stacked(tables), results=by_world)


@final
@frozen
class _Entered:
    """A plan's method: one of the paper's by name, or any other."""

    name: str
    labels: bool
    identity: Mapping[str, Any]
    own: Method | LabelMethod | None = None

    @classmethod
    def read(cls, label: str, entry: Mapping[str, Any], coverages: tuple[float, ...]) -> _Entered:
        """From the plan's words."""
        name = str(entry.get("method"))
        known = (*LABEL_METHODS, *INTERVAL_METHODS, CONTROL)
        if name in known:
            for key in entry:
                check_known(key, ("method", "revision"), f"option of method {label!r}")
            identity = {"name": name, "revision": entry.get("revision", 0)}
            return cls(name, name in LABEL_METHODS, identity)
        every = (*known, *OTHERS.names(), *registered())
        if ":" not in name and name not in every:
            raise InputError(unknown(name, every, f"method {label!r}"))
        own = label_method(label, entry)
        if own is not None:
            return cls(name, True, own.identity(entry, coverages[0]), own)
        method = make_method(label, entry, coverages)
        return cls(name, False, method_identity(method, entry), method)


_FOREST: Final = ("rows", "n_train", "noise", "trees", "disturbances")


def _classifier(entry: Mapping[str, Any]) -> str:
    """What the plan calls a world's classifier."""
    given = entry.get("classifier", "given")
    return str(given.get("name") if isinstance(given, Mapping) else given)


def _identity(label: str, entry: Mapping[str, Any], folder: Path) -> _World:
    """What decides a world, and where its files lie."""
    if "images" in entry:
        check_options(label, entry, ("images", "classifier", "train"))
        if "classifier" not in entry:
            raise InputError(f"world {label!r} must name its classifier, got none")
        classifier_named(entry["classifier"])
        return {"train": 2000, **entry, "data": _images(entry["images"])}, {}
    if "softmax" not in entry:
        return world_identity(label, entry, folder)
    check_options(label, entry, ("softmax", _EASE))
    path = Path(absolute(folder, entry["softmax"]))
    arrays, surrogate = _arrays(path), _EASE in entry
    if entry.get(_EASE, SURROGATE) != SURROGATE:
        raise InputError(
            f"ease of world {label!r} must be {SURROGATE!r} or left out, got {entry[_EASE]!r}"
        )
    if len(arrays) < 3 and not surrogate:
        raise InputError(
            f"world {label!r} has no ease, for {path} has no inputs to disturb: add an array "
            f"{_EASE}, one number per row (howsure.topics.adaptivity.ease makes it), or set "
            f"{_EASE} = {SURROGATE!r} for noise on log-probabilities, which has no more "
            "information than they have"
        )
    decides = {"softmax": numbers_hash(*arrays[: 2 if surrogate else 3])}
    return decides | ({_EASE: SURROGATE} if surrogate else {}), {"softmax": str(path)}


@lru_cache(maxsize=4)
def _images(name: Any) -> str:
    """The hash of named images and their classes."""
    check_known(name, IMAGES, "images")
    return numbers_hash(*IMAGES[name]())


def _arrays(path: Path) -> tuple[AnyArray, ...]:
    """Probabilities, each row's sum made one, true classes, and ease where the file has it."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in _ARRAYS if name not in archive.files]
            if missing:
                raise InputError(
                    f"{path} must contain arrays {', '.join(_ARRAYS)}, got {archive.files}"
                )
            table, y = (np.asarray(archive[name]) for name in _ARRAYS)
            eases = [np.asarray(archive[_EASE])] if _EASE in archive.files else []
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if table.ndim != 2 or table.dtype.kind != "f" or y.shape != (len(table),):
        raise InputError(
            f"{path} must contain numbers of shapes (n, classes) and (n,), got "
            f"{table.shape} and {y.shape}"
        )
    wide = table.astype(np.float64)
    sums = wide.sum(axis=1)
    fair = np.isfinite(wide).all(axis=1) & (wide >= 0).all(axis=1) & (np.abs(sums - 1) < 1e-3)
    if not fair.all():
        row = int(np.argmin(fair))
        raise InputError(
            f"{path}: rows of predictions must be probabilities that sum to one, got "
            f"{sums[row]:g} in row {row}"
        )
    labels = class_numbers(y, *wide.shape)
    eases = [as_vector(ease, f"ease in {path}", length=len(wide)) for ease in eases]
    for ease in eases:
        if np.ptp(ease) == 0:
            raise InputError(f"ease in {path} must differ between rows, got {ease[0]:g} in all")
    return wide / sums[:, None], labels, *eases


def _outputs(identity: Mapping[str, Any], files: Mapping[str, str]) -> Classified:
    """A classifier's outputs on its rows, and their ease."""
    world, options, seed = identity["world"], identity["options"], identity["seed"]
    rows = options["rows"]
    if "images" in world:
        if _images(world["images"]) != world["data"]:
            raise InputError(f"images {world['images']!r} have changed since the plan was read")
        images, labels, *truth = IMAGES[world["images"]]()
        return classifier_task(
            images,
            labels,
            world["classifier"],
            train=world["train"],
            rows=rows,
            transformations=options["transformations"],
            repeats=options["disturbances"],
            seed=seed,
            name="splits",
            truth=truth[0] if truth else None,
        )
    arrays = _arrays(Path(files["softmax"]))[: 2 if _EASE in world else 3]
    if numbers_hash(*arrays) != world["softmax"]:
        raise InputError(f"{files['softmax']} has changed since the plan was read")
    p, y, *eases = (array[:rows] for array in arrays)
    if not eases:
        return given_probabilities(p, y, seed=seed, name="splits")
    return Classified(name="splits", probabilities=p, y=y, eases={"given": eases[0]})


def _outputs_of(trial: Trial, store: Store | None) -> Classified:
    """The outputs that a trial needs."""
    if store is None:
        raise InputError("store must be given for trials that read others, got none")
    (address,) = trial.needs
    arrays = store.arrays(address)
    eases = dict(zip(store.entry(address).facts["eases"], arrays.pop("eases"), strict=True))
    return Classified(name="splits", eases=eases, **arrays)


@lru_cache(maxsize=2)
def _forests(world_text: str, files_text: str, options_text: str, seed: int) -> Regressed:
    """The task of a trial; the last ones are remembered, for forests take time to grow."""
    world, files, options = map(json.loads, (world_text, files_text, options_text))
    made = make_world(world, files)
    training = made.training_set(seed, 0, options["n_train"], n_test=options["rows"])
    rest = made.test_set(seed, options["rows"])
    task = forest_task(
        (training.x, training.y),
        (rest.x, rest.y),
        noise=options["noise"],
        trees=options["trees"],
        repeats=options["disturbances"],
        seed=seed,
        name="splits",
    )
    return replace(task, drawn="world" in world)
