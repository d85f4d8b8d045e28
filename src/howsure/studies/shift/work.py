"""The trials of the shift benchmark: a network, a density of its features, a method's answers.

A network's outputs, features and own bytes are kept as arrays of its trial, and so are a
density's scores; methods read them, and nothing is trained or fitted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import plain
from howsure.core.errors import InputError
from howsure.core.progress import tell
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.methods.deep.heads import Gaussian, Head, PairHead, SquaredError
from howsure.methods.deep.modules import ModuleNetwork, Recipe, train_module
from howsure.methods.selective import FeatureScore, GMMScore, KNNScore
from howsure.studies.engine import Store, Trial, TrialOutput, make_method
from howsure.studies.shift.evaluate import Answers, evaluate_shift
from howsure.studies.shift.methods import shift_method
from howsure.studies.shift.networks import NetworkView, SharedWork, network_answers
from howsure.studies.shift.plan_tasks import make_task
from howsure.studies.shift.result import ShiftResult
from howsure.studies.shift.task import fit_shift, model_answers
from howsure.studies.tasks import Part, Task

Arrays = dict[str, npt.NDArray[Any]]

_SCORES: Final[Mapping[str, type[GMMScore | KNNScore]]] = {"gmm": GMMScore, "knn": KNNScore}
_FIELDS: Final = ("point", "lower", "upper", "score")


def train_network(trial: Trial, store: Store | None) -> TrialOutput:
    """Train one network, and let it speak of every part of its task.

    Training that was cut off goes on from its last minute, where the store is on a disk.
    """
    told = trial.identity
    task = make_task(told["world"], trial.context["files"])
    kind, training = told["network"]["kind"], told["training"]
    rng = child(told["seed"], "shift", kind, told["network"]["index"])
    inputs = _Inputs(task)
    network = train_module(
        inputs.of(task.part("train")),
        task.part("train").y,
        head=_head(told["network"]),
        backbone=training["backbone"],
        recipe=Recipe(**training["recipe"]),
        rng=rng,
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
    val = np.abs(arrays["y/val"] - arrays["outputs/val"][:1].mean(axis=0))
    columns: dict[str, Any] = {
        "metric": np.array(["training_loss", "val_mae"], dtype=object),
        "value": np.array([float(network.losses[-1, 0]), float(val.mean())]),
    }
    facts = {"failure": network.failure, "kept": network.kept, "tests": list(task.tests)}
    return TrialOutput(
        records=Table(name="records", columns=columns),
        arrays=arrays,
        keys=_keys(trial),
        facts={**facts, "units": task.units},
    )


def fit_density(trial: Trial, store: Store) -> TrialOutput:
    """Fit a density to a network's training features, and score every other part."""
    told = trial.identity
    held = store.arrays(trial.needs[0])
    spec = dict(told["density"])
    score = _SCORES[spec.pop("name")](**spec)
    view = NetworkView(outputs={}, features=_under(held, "features"), name=told["network"]["name"])
    work = SharedWork(told["seed"])
    arrays: Arrays = {
        f"scores/{part}": work.score(view, score, part) for part in view.features if part != "train"
    }
    columns: dict[str, Any] = {
        "metric": np.array(["mean_score"], dtype=object),
        "value": np.array([float(arrays["scores/val"].mean())]),
    }
    return TrialOutput(
        records=Table(name="records", columns=columns),
        arrays=arrays,
        keys=_keys(trial),
        facts={"notes": work.notes},
    )


def network_method(trial: Trial, store: Store) -> TrialOutput:
    """A method's answers from networks that the store holds."""
    told = trial.identity
    method = shift_method(told["method"]["key"])
    options = told["options"]
    work = SharedWork(told["seed"])
    views: dict[str, NetworkView] = {}
    y: dict[str, FloatArray] = {}
    facts: Mapping[str, Any] = {}
    for name, address in trial.context["networks"].items():
        held = store.arrays(address)
        y, facts = _under(held, "y"), store.entry(address).facts
        views[name] = NetworkView(outputs=_under(held, "outputs"), name=name)
    scored = trial.context["densities"]
    for name, address in scored.items():
        if isinstance(method.score, FeatureScore):
            work.keep(views[name], method.score, _under(store.arrays(address), "scores"))
    answers = [
        [
            network_answers(
                method,
                [views[_network(told, place, coverage)] for place in places],
                y,
                coverage=coverage,
                work=work,
            )
            for places in told["runs"]
        ]
        for coverage in options["coverages"]
    ]
    notes = [note for a in scored.values() for note in store.entry(a).facts["notes"]]
    notes += [
        f"network {name} stopped: {failure}"
        for name, address in trial.context["networks"].items()
        if (failure := store.entry(address).facts["failure"]) is not None
    ]
    return _output(trial, answers, str(facts["units"]), notes)


def own_method(trial: Trial) -> TrialOutput:
    """One run of any other method: fitted at home, asked about every part."""
    told = trial.identity
    task = make_task(told["world"], trial.context["files"])
    coverages = tuple(told["options"]["coverages"])
    method = make_method(trial.labels["method"], trial.context["method"], coverages)
    tell("fit", 0, 1)
    fitted = fit_shift(method, task, child(told["seed"], "shift", "own", told["run"]))
    answers = []
    for coverage in coverages:
        val, *tests = (model_answers(fitted, task.part(n), coverage) for n in ("val", *task.tests))
        answers.append([(val, dict(zip(task.tests, tests, strict=True)))])
    return _output(trial, answers, task.units, list(getattr(fitted, "notes", ())))


def read_result(
    trials: Sequence[Trial], store: Store, task: str, method: str, place: int
) -> ShiftResult:
    """One method's runs at one of its coverages, from the trials that hold them."""
    told = trials[0].identity["options"]
    coverage = told["coverages"][place]
    runs, notes = [], list[str]()
    units = ""
    for trial in trials:
        held, facts = store.arrays(trial.address), store.entry(trial.address).facts
        notes += facts["notes"]
        units = facts["units"]
        for run in range(facts["runs"]):
            parts = {name: _answers(held, place, run, name) for name in ("val", *facts["tests"])}
            val = parts.pop("val")
            asked = {"rule": told["rule"], "share": told["share"]}
            runs.append(evaluate_shift(val, parts, coverage=coverage, **asked))
    return ShiftResult(
        task=task,
        method=method,
        coverage=coverage,
        rule=told["rule"],
        runs=tuple(runs),
        units=units,
        share=told["share"],
        notes=tuple(dict.fromkeys(notes)),
    )


def density_spec(score: FeatureScore) -> dict[str, Any]:
    """What decides a density, as plain values.

    Raises
    ------
    InputError
        If it is none of those that trials know.

    Examples
    --------
    >>> density_spec(KNNScore(5))
    {'name': 'knn', 'neighbours': 5, 'metric': 'angular'}
    """
    for name, kind in _SCORES.items():
        if isinstance(score, kind):
            return {"name": name, **plain(score)}
    raise InputError(f"score must be one of {', '.join(_SCORES)}, got {score.name!r}")


class _Inputs:
    """A task's inputs as networks take them: tables are standardised by their training rows."""

    def __init__(self, task: Task) -> None:
        self.images = task.images
        self.scaling = task.scaling
        if not self.images:
            x = task.part("train").x
            spread = x.std(axis=0)
            self._center, self._unit = x.mean(axis=0), np.where(spread > 0.0, spread, 1.0)

    def of(self, part: Part) -> npt.NDArray[Any]:
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
        law = network.believed(outputs)
        return np.stack([law.point(), law.sd()])
    return network.scale.y_center + network.scale.y_unit * outputs


def _network(told: Mapping[str, Any], place: int, coverage: float) -> str:
    """The name of a network of a method's run."""
    return str(told["method"]["networks"]).format(place=place, coverage=coverage)


def _output(
    trial: Trial,
    answers: Sequence[Sequence[tuple[Answers, Mapping[str, Answers]]]],
    units: str,
    notes: list[str],
) -> TrialOutput:
    """Answers of all runs, by coverage and run, with the numbers that they give."""
    told = trial.identity["options"]
    arrays: Arrays = {}
    results = []
    for place, (coverage, runs) in enumerate(zip(told["coverages"], answers, strict=True)):
        done = []
        for run, (val, tests) in enumerate(runs):
            for name, part in {"val": val, **tests}.items():
                arrays[f"y/{name}"] = part.y
                for item in _FIELDS:
                    found = getattr(part, item)
                    if found is not None:
                        arrays[f"{place}/{run}/{name}/{item}"] = found
            done.append(
                evaluate_shift(
                    val, tests, coverage=coverage, rule=told["rule"], share=told["share"]
                )
            )
        result = ShiftResult(
            task=trial.labels["world"],
            method=trial.labels["method"],
            coverage=coverage,
            rule=told["rule"],
            runs=tuple(done),
            units=units,
            share=told["share"],
        )
        results.append(result)
    facts = {"runs": len(answers[0]), "tests": list(answers[0][0][1]), "units": units}
    return TrialOutput(
        records=_numbers(results),
        arrays=arrays,
        keys=_keys(trial),
        facts={**facts, "notes": notes},
    )


def _numbers(results: Sequence[ShiftResult]) -> Table:
    """Every measure of every test part, one a row."""
    records = [record for result in results for record in result.records()]
    columns = {
        "coverage": np.array([record.coverage for record in records]),
        "test": np.array([record.options["test"] for record in records], dtype=object),
        "metric": np.array([record.metric for record in records], dtype=object),
        "value": np.array([record.value for record in records]),
        "sd": np.array([record.options["sd"] for record in records], dtype=np.float64),
        "lower": np.array([record.lower for record in records]),
        "upper": np.array([record.upper for record in records]),
        "reason": np.array([record.reason for record in records], dtype=object),
    }
    return Table(name="records", columns=columns)


def _answers(held: Arrays, place: int, run: int, part: str) -> Answers:
    under = _under(held, f"{place}/{run}/{part}")
    return Answers(y=held[f"y/{part}"], **under)


def _under(arrays: Arrays, folder: str) -> Arrays:
    """Arrays of one folder, by their names in it."""
    return {
        name.removeprefix(f"{folder}/"): array
        for name, array in arrays.items()
        if name.startswith(f"{folder}/")
    }


def _keys(trial: Trial) -> dict[str, str | int]:
    return {**trial.labels, "seed": trial.identity["seed"]}
