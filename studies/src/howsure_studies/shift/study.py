"""Does coverage survive a shift: networks, densities of their features, and methods, as trials.

A network's outputs, features and own bytes are kept as arrays of its trial, and so are a
density's scores; methods read them, and nothing is trained or fitted twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
import pyarrow as pa

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import (
    Checked,
    Count,
    Coverages,
    Fraction,
    Natural,
    packed,
    plain,
    unpacked,
)
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.records import Record
from howsure.core.registry import check_known, unknown
from howsure.core.rng import child
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
    method_identity,
    numbers_hash,
    present,
    records_table,
    stacked,
)
from howsure_studies.methods.deep.heads import Gaussian, Head, PairHead, SquaredError
from howsure_studies.methods.deep.modules import (
    ModuleNetwork,
    ModuleTraining,
    backbone_named,
    train_module,
)
from howsure_studies.methods.options import options_of
from howsure_studies.methods.selective import SHARE, FeatureScore, GMMScore, KNNScore, Selective
from howsure_studies.shift.attribution import HOME, SharedInputs
from howsure_studies.shift.evaluate import Answers, Rule, ShiftRun, evaluate_shift
from howsure_studies.shift.methods import (
    BASELINES,
    SHIFT_METHODS,
    VARIATIONS,
    NetworkOutputs,
    SharedWork,
    ShiftMethod,
    check_coverages,
    fit_shift,
    fold_of,
    is_for_elsewhere,
    model_answers,
    network_answers,
    paper_runs,
    shift_method,
)
from howsure_studies.shift.results import ShiftResult
from howsure_studies.tasks import (
    Part,
    Task,
    shift_names,
    shift_task,
    table_task,
)
from howsure_studies.tasks.images import (
    image_names,
    image_task,
    settled,
    settled_source,
    settled_task,
)

Arrays = dict[str, AnyArray]

_KNOWN: Final = (*SHIFT_METHODS, *VARIATIONS)
_SPECTRAL: Final = 3.0
"""The bound on convolutions in the benchmark's variation."""
_SCORES: Final[Mapping[str, type[GMMScore | KNNScore]]] = {"gmm": GMMScore, "knn": KNNScore}
_IMAGES: Final = (
    *("folder", "source", "train", "val", "test", "recipe", "shortcut", "edge"),
    *("order", "frames", "empty", "broken", "complete"),
)
"""Options of drawn and of real images."""
_ANSWER: Final = ("point", "lower", "upper", "score")
"""What is kept of an answer beside y."""
_TABLE: Final = (*("table", "target", "split_by", "home", "up_to", "features", "missing", "units"),)


@final
@frozen(kw_only=True)
class ShiftOptions(Checked):
    """Options of a plan, with their defaults; those of `ModuleTraining` stand among them in a plan.

    Attributes
    ----------
    coverages : tuple of float
        Nominal coverages.
    rule : {"paper", "conformal", "own"}
        Which order statistic calibrates. Methods that calibrate themselves for another population
        have ``own`` always.
    share : float, optional
        Share of validation rows that scores accept, nearly; the method's own, or 0.95, if omitted.
    networks, members, runs : int
        Networks trained of each kind, those in an ensemble, and runs of a method; see
        `howsure_studies.shift.paper_runs`.
    folds : int
        Runs of a method that calibrates itself, each on other validation rows from home; see
        `fold_of`.
    draws : int
        Bootstrap samples behind the errors of what coverage is lost to, on tables that have rows
        from home among their tests; it is not asked where there are none.
    backbone : str or mapping
        For images; see `backbone_named`. A world of a plan may have its own ``backbone``.
    table_backbone : str or mapping
        For tables.
    absent : {"error", "skip"}
        What becomes of worlds whose data are not on this machine: an error, or they are left out
        with a warning, as long as one is left.
    recipe : ModuleTraining
        How networks are trained.
    """

    coverages: Coverages = (0.9,)
    rule: Rule = "paper"
    share: Fraction | None = None
    networks: Count = 5
    members: Count = 5
    runs: Count = 5
    folds: Count = 4
    draws: Natural = 0
    backbone: Any = "resnet34"
    table_backbone: Any = "mlp"
    absent: Literal["error", "skip"] = "error"
    recipe: ModuleTraining = field(default_factory=ModuleTraining)

    def training(self, own: Any = None, *, images: bool, spectral: bool) -> dict[str, Any]:
        """What decides how a network is trained, as plain values; the device is no part of it."""
        backbone = backbone_named(own or (self.backbone if images else self.table_backbone))
        if backbone.spec is None:
            raise InputError(f"backbone of a plan must be a name or a table, got {backbone.name}")
        spec = dict(backbone.spec)
        if spectral and images:
            spec["spectral"] = _SPECTRAL
        recipe = options_of(self.recipe, "recipe")
        del recipe["device"]
        return {"backbone": spec, "recipe": recipe}


@final
class ShiftStudy(Study):
    """Networks are trained once, and every method reads them; see `evaluate_shift`.

    A world is an image task, a table with a natural shift, or a table of one's own with
    ``target`` and ``split_by``; see `task_identity`. A method is one of the ten of the benchmark
    or their variations, or any method of howsure's or one's own, which is then trained in each
    of ``runs`` runs. Options of a plan are those of `ShiftOptions` and of `ModuleTraining`.
    """

    __slots__ = ()
    name: ClassVar[str] = "shift"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("test_empirical_coverage", "prediction_rate", "coverage_error"),
        *("val_mae", "val_width", "val_empirical_coverage", "relative_mae_change"),
    )
    kinds: ClassVar[tuple[type, ...]] = (ShiftResult,)
    report: ClassVar[str] = "howsure_studies.shift.page:shift_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Networks of all worlds, densities of their features, ratios of inputs, then methods."""
        options = plan.read(ShiftOptions)
        for label, entry in plan.methods.items():
            _check_method(label, entry, options)
        worlds = [
            _World(self, plan, options, label, seed)
            for label in present(
                plan.worlds,
                lambda label: task_identity(label, plan.worlds[label], plan.folder, plan.seeds[0]),
                lambda _: options.absent,
            )
            for seed in plan.seeds
        ]
        stages = zip(*(world.stages for world in worlds), strict=True)
        return tuple(trial for stage in stages for of_world in stage for trial in of_world)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Train a network, fit a density, tell home from elsewhere, or ask a method."""
        stage = trial.context["stage"]
        if stage == "network":
            return _train_network(trial, store)
        if stage == "shared":
            return _shared_inputs(trial)
        if stage == "own":
            return _own_method(trial)
        if store is None:
            raise InputError("store must be given for trials that read others, got none")
        return _fit_density(trial, store) if stage == "density" else _network_method(trial, store)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[ShiftResult]:
        """A method's result at each coverage, from the trials that hold its runs."""
        return _results(trials, store)

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[ShiftResult]]) -> Combined:
        """One `ShiftResult` of each world, method, seed and coverage, named as the plan does."""
        by_world: dict[str, list[ShiftResult]] = {}
        tables = []
        for (world, method, seed), own in results.items():
            task = f"{world}, seed {seed}" if len(plan.seeds) > 1 else world
            for result in (replace(each, task=task, method=method) for each in own):
                tables += _tables(result, {"method": method, "seed": seed}, world)
                by_world.setdefault(world, []).append(result)
        return Combined(table=stacked(tables), results=by_world)

    def shortened(self, result: ShiftResult) -> ShiftResult:
        """Its values alone."""
        return result.without_runs()


# The tasks of a plan


def task_identity(
    label: str, entry: Mapping[str, Any], folder: Path, seed: int
) -> tuple[dict[str, Any], dict[str, str]]:
    """What decides a task, as plain values, and where its files lie.

    Parameters
    ----------
    label : str
        What the plan calls it, for messages.
    entry : mapping
        Its entry in the plan: ``world``, a name of `image_names` or `shift_names`
        of `howsure_studies.tasks`, with options of `image_task` or a ``folder``; or ``table``, a
        file, with ``target``, ``split_by`` and further options of `table_task`. Its ``backbone``
        is no part of the task.
    folder : Path
        Where relative paths start.
    seed : int
        Fixes what is drawn and split.

    Returns
    -------
    identity : dict
        Tables stand there by the hash of their numbers; images by the options that draw them, or
        by those that choose them from a published set.
    files : dict of str to str
        Absolute paths, as far as the entry names any.

    Raises
    ------
    InputError
        If a name or an option is not known, or a table cannot be read.

    Examples
    --------
    >>> task_identity("c", {"world": "chair-angle", "train": 100}, Path(), 0)
    ({'images': 'chair-angle', 'train': 100, 'seed': 0}, {})
    """
    entry = dict(entry)
    entry.pop("backbone", None)
    if ("world" in entry) == ("table" in entry):
        raise InputError(f"world {label!r} must have one of world and table, got {list(entry)}")
    world = entry.get("world")
    files: dict[str, str] = {
        key: absolute(folder, entry[key]) for key in ("table", "folder") if key in entry
    }
    own: dict[str, Any] = {key: entry[key] for key in entry if key not in ("world", *files)}
    if "table" in entry:
        check_options(label, entry, _TABLE)
        for key in ("target", "split_by"):
            if key not in entry:
                raise InputError(f"world {label!r} must name its {key} column, got none")
    elif world in image_names():
        check_options(label, entry, ("world", *_IMAGES))
        task = image_task(world, seed=seed, folder=files.get("folder"), **own)
        return {"images": world, **settled(task, own), "seed": seed}, files
    elif world in shift_names():
        check_options(label, entry, ("world", "folder"))
        own = {"shift": world}
    else:
        names = (*image_names(), *shift_names())
        raise InputError(unknown(str(world), names, f"world {label!r}"))
    identity = {**own, "seed": seed}
    return {**identity, "data": _hash(_table_task(identity, files))}, files


def make_task(identity: Mapping[str, Any], files: Mapping[str, str]) -> Task:
    """The task of an identity; the last few are remembered, for drawing takes time.

    Examples
    --------
    >>> make_task({"images": "cells", "train": 4, "val": 4, "test": 4, "seed": 0}, {}).name
    'cells'
    """
    return _make_task(canonical(identity), canonical(files))


@lru_cache(maxsize=2)
def _make_task(identity_text: str, files_text: str) -> Task:
    identity, files = json.loads(identity_text), json.loads(files_text)
    if "images" in identity:
        return settled_task(identity.pop("images"), **identity, **files)
    data = identity.pop("data")
    task = _table_task(identity, files)
    if _hash(task) != data:
        name = files.get("table", identity.get("shift"))
        raise InputError(f"table {name!r} has changed since the plan was read: run it again")
    return task


def _table_task(own: Mapping[str, Any], files: Mapping[str, str]) -> Task:
    if "shift" in own:
        return shift_task(own["shift"], files.get("folder"), seed=own["seed"])
    path = Path(files["table"])
    return table_task(_columns(path), name=path.name.partition(".")[0], **own)


def _columns(path: Path) -> dict[str, Any]:
    """A file's columns: numbers where every cell is one or is missing, and text otherwise."""
    from howsure.inputs import open_table
    from howsure.inputs.values import numbers

    source = open_table(path)
    read = source.read(dict.fromkeys(source.names, "any"))
    columns: dict[str, Any] = {}
    for name in source.names:
        try:
            columns[name] = numbers(read[name], name, decimal=source.decimal)
        except InputError:
            columns[name] = read[name].cast(pa.string())
    return columns


def _hash(task: Task) -> str:
    parts = [task.part(name) for name in ("train", "val", *task.tests)]
    return numbers_hash(*(array for part in parts for array in (part.x, part.y)))


def _source(identity: Mapping[str, Any]) -> str:
    """Whether a world is drawn or read from its originals; of a table of one's own, neither."""
    if "images" in identity:
        return settled_source(identity["images"], identity)
    return "original" if "shift" in identity else ""


# The trials of a plan


class _World:
    """The trials of one world under one seed, stage by stage."""

    def __init__(
        self, study: ShiftStudy, plan: Plan, options: ShiftOptions, label: str, seed: int
    ) -> None:
        self.study, self.options, self.label, self.seed = study, options, label, seed
        self.identity, self.files = task_identity(label, plan.worlds[label], plan.folder, seed)
        self.backbone = plan.worlds[label].get("backbone")
        self.source = _source(self.identity)
        self.networks: dict[str, Trial] = {}
        self.densities: dict[tuple[str, FeatureScore], Trial] = {}
        self.shared: list[Trial] = []
        self.methods: list[Trial] = []
        if options.draws and "images" not in self.identity:
            self.shared = [
                self._trial(
                    {"shared": {"draws": options.draws}},
                    {"inputs": "home and elsewhere"},
                    {"stage": "shared", "files": self.files},
                )
            ]
        for method, entry in plan.methods.items():
            if entry.get("method") in _KNOWN:
                known = shift_method(entry["method"])
                self._add_benchmark(method, known, entry.get("revision", 0))
            else:
                once = entry.get("method") in BASELINES  # they draw nothing
                self._add_own(method, _full_entry(entry), 1 if once else options.runs)

    @property
    def stages(self) -> tuple[list[Trial], ...]:
        """Networks, densities, ratios of inputs, methods."""
        networks, densities = list(self.networks.values()), list(self.densities.values())
        return networks, densities, self.shared, self.methods

    def _trial(
        self,
        identity: Mapping[str, Any],
        labels: Mapping[str, str],
        context: Mapping[str, Any],
        needs: Sequence[str] = (),
    ) -> Trial:
        whole = {"world": self.identity, "seed": self.seed, **identity}
        context = {**context, "source": self.source}
        if self.shared:  # read where it is done, and no part of what decides a method's numbers
            context["shared"] = self.shared[0].address
        return self.study.trial(whole, {"world": self.label, **labels}, context, needs)

    def _add_benchmark(self, label: str, method: ShiftMethod, revision: Any) -> None:
        options = self.options
        drawn = paper_runs(options.networks, options.members, options.runs)
        runs = [list(places) for places in (drawn.ensembles if method.ensemble else drawn.single)]
        # Networks of quantiles are of one coverage each; others serve all.
        coverages = options.coverages if method.network == "quantile" else (None,)
        networks = dict(
            self._network(method, index, coverage)
            for index in sorted({index for run in runs for index in run})
            for coverage in coverages
        )
        densities = {}
        if isinstance(method.score, FeatureScore):
            densities = {name: self._density(name, method.score) for name in networks}
        names = {"key": method.key, "networks": _pattern(method), "revision": revision}
        trial = self._trial(
            {"method": names, "runs": runs, "options": self._options_of(SHARE, self.options.rule)},
            {"method": label},
            {
                "stage": "method",
                "networks": {name: trial.address for name, trial in networks.items()},
                "densities": {name: trial.address for name, trial in densities.items()},
            },
            [trial.address for trial in (*networks.values(), *densities.values())],
        )
        self.methods.append(trial)

    def _add_own(self, label: str, entry: Mapping[str, Any], runs: int) -> None:
        method = make_method(label, entry, self.options.coverages)
        share = method.share if isinstance(method, Selective) else SHARE
        rule: Rule = self.options.rule
        if is_for_elsewhere(method):
            rule, runs = "own", self.options.folds
        common = {
            "method": method_identity(method, entry),
            "options": self._options_of(share, rule),
        }
        context = {"stage": "own", "files": self.files, "method": dict(entry)}
        self.methods += [
            self._trial({**common, "run": run}, {"method": label}, context) for run in range(runs)
        ]

    def _network(
        self, method: ShiftMethod, index: int, coverage: float | None
    ) -> tuple[str, Trial]:
        name = _pattern(method).format(place=index, coverage=coverage)
        if name not in self.networks:
            network: dict[str, Any] = {"kind": method.network, "index": index, "name": name}
            if coverage is not None:
                network["coverage"] = coverage
            images = "images" in self.identity
            training = self.options.training(
                self.backbone, images=images, spectral=method.spectral_norm
            )
            self.networks[name] = self._trial(
                {"network": network, "training": training},
                {"network": name},
                {"stage": "network", "files": self.files},
            )
        return name, self.networks[name]

    def _density(self, name: str, score: FeatureScore) -> Trial:
        if (name, score) not in self.densities:
            self.densities[name, score] = self._trial(
                {"network": {"name": name}, "density": _density_spec(score)},
                {"network": name, "density": score.name},
                {"stage": "density"},
                [self.networks[name].address],
            )
        return self.densities[name, score]

    def _options_of(self, share: float, rule: Rule) -> dict[str, Any]:
        options = self.options
        return {
            "coverages": list(options.coverages),
            "rule": rule,
            "share": share if options.share is None else options.share,
        }


def _pattern(method: ShiftMethod) -> str:
    """How networks of a method are called, by their place and coverage."""
    kind = f"{method.network}{' spectral' if method.spectral_norm else ''}"
    return f"{kind} {{coverage}} {{place}}" if method.network == "quantile" else f"{kind} {{place}}"


def _check_method(label: str, entry: Mapping[str, Any], options: ShiftOptions) -> None:
    """Benchmark methods take no options; others are made once, so that errors come early."""
    if entry.get("method") in (*_KNOWN, *BASELINES):
        for key in entry:
            check_known(key, ("method", "revision"), f"option of method {label!r}")
        return
    check_coverages(make_method(label, entry, options.coverages), options.coverages)


def _full_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what a baseline's key is short for."""
    return {**entry, **BASELINES.get(entry.get("method", ""), {})}


def _density_spec(score: FeatureScore) -> dict[str, Any]:
    """What decides a density, as plain values."""
    for name, kind in _SCORES.items():
        if isinstance(score, kind):
            return {"name": name, **plain(score)}
    raise InputError(f"score must be one of {', '.join(_SCORES)}, got {score.name!r}")


# What trials do


def _train_network(trial: Trial, store: Store | None) -> TrialOutput:
    """Train one network, and let it speak of every part of its task.

    Training that was cut off goes on from its last minute, where the store is on a disk.
    """
    identity = trial.identity
    task = make_task(identity["world"], trial.context["files"])
    asked, training = identity["network"], identity["training"]
    kind = asked["kind"]
    inputs = _Inputs(task)
    network = train_module(
        inputs.of(task.part("train")),
        task.part("train").y,
        head=_head(asked),
        backbone=training["backbone"],
        recipe=ModuleTraining(**training["recipe"]),
        rng=child(identity["seed"], "shift", kind, asked["index"]),
        scaling=inputs.scaling,
        checkpoint=None if store is None else store.scratch(trial.address),
    )
    arrays: Arrays = {"network": np.frombuffer(network.to_bytes(), dtype=np.uint8)}
    for name in ("train", "val", *task.tests):
        outputs, features = network.predict_all(inputs.of(task.part(name)))
        arrays[f"features/{name}"] = features.astype(np.float32)
        if name != "train":
            arrays[f"outputs/{name}"] = _in_units(network, outputs, kind)
            arrays[f"y/{name}"] = task.part(name).y
    facts = {
        "failure": network.failure,
        "kept": network.kept,
        "training_loss": float(network.losses[-1, 0]),
        "tests": list(task.tests),
        "units": task.units,
    }
    return TrialOutput(arrays=arrays, facts=facts)


class _Inputs:
    """A task's inputs as networks take them: tables are standardised by their training rows."""

    def __init__(self, task: Task) -> None:
        self.images, self.scaling = task.images, task.scaling
        if not self.images:
            x = task.part("train").x
            spread = x.std(axis=0)
            self._center, self._unit = x.mean(axis=0), np.where(spread > 0.0, spread, 1.0)

    def of(self, part: Part) -> AnyArray:
        if self.images:
            return part.x
        return np.asarray((part.x - self._center) / self._unit, dtype=np.float32)


def _head(network: Mapping[str, Any]) -> Head:
    if network["kind"] == "quantile":
        return PairHead(network["coverage"])
    return Gaussian() if network["kind"] == "gaussian" else SquaredError()


def _in_units(network: ModuleNetwork, outputs: FloatArray, kind: str) -> FloatArray:
    """Outputs in the units of y: (mean), (mean, sd) or (low, high)."""
    if kind == "gaussian":
        predicted = network.believed(outputs)
        return np.stack([predicted.point(), predicted.sd()])
    return network.scale.y_center + network.scale.y_unit * outputs


def _fit_density(trial: Trial, store: Store) -> TrialOutput:
    """Fit a density to a network's training features, and score every other part."""
    identity = trial.identity
    spec = dict(identity["density"])
    score = _SCORES[spec.pop("name")](**spec)
    features = _under(store.arrays(trial.needs[0]), "features")
    network = NetworkOutputs(outputs={}, features=features, name=identity["network"]["name"])
    work = SharedWork(identity["seed"])
    arrays: Arrays = {
        f"scores/{part}": work.score(network, score, part) for part in features if part != "train"
    }
    return TrialOutput(arrays=arrays, facts={"notes": work.notes})


def _shared_inputs(trial: Trial) -> TrialOutput:
    """Ratios of densities between the main test and home; none where no test is of home."""
    identity = trial.identity
    task = make_task(identity["world"], trial.context["files"])
    if HOME not in task.tests[1:]:
        return TrialOutput()
    shared = SharedInputs.learnt(
        task.part(HOME).x,
        task.test.x,
        identity["shared"]["draws"],
        child(identity["seed"], "shift", "shared"),
    )
    arrays, _ = packed(shared)
    return TrialOutput(
        arrays={
            name: array.astype(np.float32 if array.dtype.kind == "f" else np.int16)
            for name, array in arrays.items()
        }
    )


def _network_method(trial: Trial, store: Store) -> TrialOutput:
    """A method's answers from networks that the store holds."""
    identity = trial.identity
    method = shift_method(identity["method"]["key"])
    work = SharedWork(identity["seed"])
    networks: dict[str, NetworkOutputs] = {}
    y: dict[str, FloatArray] = {}
    units, notes, failures = "", list[str](), list[str]()
    for name, address in trial.context["networks"].items():
        arrays, facts = store.arrays(address), store.entry(address).facts
        y, units = _under(arrays, "y"), facts["units"]
        networks[name] = NetworkOutputs(outputs=_under(arrays, "outputs"), name=name)
        if facts["failure"] is not None:
            failures.append(f"network {name} stopped: {facts['failure']}")
    for name, address in trial.context["densities"].items():
        notes += store.entry(address).facts["notes"]
        if isinstance(method.score, FeatureScore):
            work.keep(networks[name], method.score, _under(store.arrays(address), "scores"))
    pattern = identity["method"]["networks"]
    answers = [
        [
            network_answers(
                method,
                [networks[pattern.format(place=index, coverage=coverage)] for index in indices],
                y,
                coverage=coverage,
                work=work,
            )
            for indices in identity["runs"]
        ]
        for coverage in identity["options"]["coverages"]
    ]
    return _answered(trial, answers, units, [*notes, *failures])


def _own_method(trial: Trial) -> TrialOutput:
    """One run of any other method: fitted at home, asked about every part."""
    identity = trial.identity
    task = make_task(identity["world"], trial.context["files"])
    coverages = tuple(identity["options"]["coverages"])
    method = make_method(trial.labels["method"], trial.context["method"], coverages)
    if is_for_elsewhere(method):
        task = fold_of(task, identity["run"], identity["seed"])
    report_progress("fit", 0, 1)
    fitted = fit_shift(method, task, child(identity["seed"], "shift", "own", identity["run"]))
    answers = [[model_answers(fitted, task, coverage)] for coverage in coverages]
    return _answered(trial, answers, task.units, list(getattr(fitted, "notes", ())))


def _answered(
    trial: Trial,
    answers: Sequence[Sequence[tuple[Answers, Mapping[str, Answers]]]],
    units: str,
    notes: list[str],
) -> TrialOutput:
    """Answers of all runs, by coverage and run; measures are taken of them when they are read."""
    options = trial.identity["options"]
    arrays: Arrays = {}
    for level, (coverage, runs) in enumerate(zip(options["coverages"], answers, strict=True)):
        for run, (val, tests) in enumerate(runs):
            _evaluated(val, tests, coverage, options)  # what cannot be evaluated fails here
            for name, rows in {"val": val, **tests}.items():
                arrays[f"y/{name}"] = rows.y
                for item in _ANSWER:
                    if getattr(rows, item) is not None:
                        arrays[f"{level}/{run}/{name}/{item}"] = getattr(rows, item)
    facts = {"runs": len(answers[0]), "tests": list(answers[0][0][1]), "units": units}
    return TrialOutput(arrays=arrays, facts={**facts, "notes": notes})


def _evaluated(
    val: Answers, tests: Mapping[str, Answers], coverage: float, options: Mapping[str, Any]
) -> ShiftRun:
    return evaluate_shift(
        val, tests, coverage=coverage, rule=options["rule"], share=options["share"]
    )


def _under(arrays: Arrays, folder: str) -> Arrays:
    """Arrays of one folder, by their names in it."""
    return {
        name.removeprefix(f"{folder}/"): array
        for name, array in arrays.items()
        if name.startswith(f"{folder}/")
    }


# What results are made of


def _results(trials: Sequence[Trial], store: Store) -> list[ShiftResult]:
    """One method's runs from the trials that hold them, a result a coverage."""
    options = trials[0].identity["options"]
    runs: list[list[ShiftRun]] = [[] for _ in options["coverages"]]
    notes, units = list[str](), ""
    for trial in trials:
        arrays, facts = store.arrays(trial.address), store.entry(trial.address).facts
        notes += facts["notes"]
        units = facts["units"]
        for level, coverage in enumerate(options["coverages"]):
            for run in range(facts["runs"]):
                parts = {
                    name: Answers(
                        y=arrays[f"y/{name}"],
                        **{
                            item: arrays[key]
                            for item in _ANSWER
                            if (key := f"{level}/{run}/{name}/{item}") in arrays
                        },
                    )
                    for name in ("val", *facts["tests"])
                }
                runs[level].append(_evaluated(parts.pop("val"), parts, coverage, options))
    shared = _shared_of(trials[0], store)
    results = []
    for coverage, done in zip(options["coverages"], runs, strict=True):
        result = ShiftResult(
            task=trials[0].labels["world"],
            method=trials[0].labels["method"],
            coverage=coverage,
            rule=options["rule"],
            runs=tuple(done),
            units=units,
            share=options["share"],
            notes=tuple(dict.fromkeys(notes)),
        )
        if shared is not None:
            rng = child(trials[0].identity["seed"], "shift", "losses")
            result = replace(result, values=result.losses(shared, rng))
        results.append(result)
    return results


def _shared_of(trial: Trial, store: Store) -> SharedInputs | None:
    """Ratios of densities of a trial's world, where they are done and there is a home."""
    address = trial.context.get("shared")
    if address is None or store.entry(address).status != "done":
        return None
    arrays = store.arrays(address)
    return unpacked(SharedInputs, arrays, {}) if arrays else None


def _tables(result: ShiftResult, keys: Mapping[str, str | int], world: str) -> list[pa.Table]:
    """Records of each test part as a table; the main one stands under the world's own name."""
    main = result.tests[0]
    by_test: dict[str, list[Record]] = {test: [] for test in result.tests}
    for record in result.records():
        by_test[str(record.options["test"]) or main].append(record)
    return [
        records_table(
            own,
            {"world": world if test == main else f"{world}: {test}", "part_of": world, **keys},
        )
        for test, own in by_test.items()
    ]
