"""Conformal methods compared by how they adapt: one trial a task, method and seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import Checked, Count, Positive, plain
from howsure.core.errors import InputError
from howsure.core.records import Table
from howsure.core.registry import check_known, unknown
from howsure.methods.catalogue import methods as registered
from howsure.methods.interface import Coverages, Method
from howsure.studies.adaptivity.comparison import MethodComparison, floor_of
from howsure.studies.adaptivity.intervals import (
    INTERVAL_MEASURES,
    INTERVAL_METHODS,
    Regressed,
    compare_intervals,
    forest_task,
)
from howsure.studies.adaptivity.label_sets import (
    LABEL_MEASURES,
    LABEL_METHODS,
    OTHERS,
    Classified,
    LabelMethod,
    compare_label_sets,
    given_probabilities,
    label_method,
)
from howsure.studies.engine import (
    Combined,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    absolute,
    canonical,
    make_method,
    make_world,
    method_identity,
    numbers_hash,
    records_table,
    stacked,
    world_identity,
)

if TYPE_CHECKING:
    from howsure.report.document import Document

_ARRAYS: Final = ("predictions", "ground_truth")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(Checked):
    """Options of a plan of this protocol, with their defaults."""

    coverages: Coverages = (0.8, 0.9)
    repeats: Count = 10
    rows: Count = 2000
    n_train: Count = 1000
    bins: Count = 20
    groups: Count = 5
    trees: Count = 60
    noise: Positive = 0.2

    def identity(self, *, labels: bool) -> dict[str, Any]:
        """What decides a trial: label sets know no forests and no groups of intervals."""
        every = plain(self)
        return {k: every[k] for k in ("coverages", "repeats", "bins", "rows")} if labels else every


@final
class AdaptivityStudy(Study):
    """The study of Jang and Lee: a trial is one method on all random splits of one task.

    A world with the key ``softmax`` names a file of NumPy's (``.npz``) with arrays
    ``predictions``, shape (n, classes), and ``ground_truth``, shape (n,): the task of LAC, APS,
    RAPS, SAPS, O-LAC and O-SAPS, by a surrogate ease. Any other world, as `pointwise` has them
    (a table needs ``source = "cut"``), is the task of CP, CP-A, PAC, SSCP, O-CPA and O-PAC around
    two forests. Methods and worlds that do not fit are left out.

    Any other method is named as everywhere: for intervals, by a name of `howsure.methods` or as
    ``module:attribute``; for label sets, ``label_conformal`` or ``module:attribute`` of a class
    that `LabelMethod` describes. It is fitted to the inputs and outcomes of the validation rows
    and of those that trained the forests, or calibrated on the validation rows' probabilities.

    Options of a plan: ``coverages``, ``repeats`` (random splits; 10), ``rows`` (of a task, at
    most; 2000), ``bins`` (cells by ease; 20), and for intervals ``n_train`` (rows that train;
    1000), ``trees``, ``noise`` (share of each column's sd) and ``groups`` (by ease; 5).
    """

    __slots__ = ()
    name: ClassVar[str] = "adaptivity"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("t_cv", "t_ss", "empirical_coverage"),
        *("set_size", "width", "kendall_tau"),
    )

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Every world, method that fits it, and seed."""
        options = plan.read(_Options)
        entered = {
            label: _Entered.read(label, entry, options.coverages)
            for label, entry in plan.methods.items()
        }
        trials: list[Trial] = []
        for world, entry in plan.worlds.items():
            labels = "softmax" in entry
            identity, files = _identity(world, entry, plan.folder)
            for label, method in entered.items():
                if method.labels is not labels:
                    continue
                common = {
                    "world": identity,
                    "method": method.identity,
                    "options": options.identity(labels=labels),
                }
                context = {"files": files, "method": plan.methods[label]}
                trials += [
                    self.trial({**common, "seed": seed}, {"world": world, "method": label}, context)
                    for seed in plan.seeds
                ]
        if not trials:
            raise InputError("a plan must have a method that fits one of its worlds, got none")
        return tuple(trials)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Compare one method alone: its splits are those of every other method."""
        identity = trial.identity
        options = identity["options"]
        task = _task(
            canonical(identity["world"]),
            canonical(trial.context["files"]),
            canonical(options),
            identity["seed"],
        )
        coverages = tuple(options["coverages"])
        entered = _Entered.read(trial.labels["method"], trial.context["method"], coverages)
        own = {} if entered.own is None else {entered.name: entered.own}
        common: dict[str, Any] = {
            "coverages": coverages,
            "methods": () if own else (entered.name,),
            "own": own,
            "repeats": options["repeats"],
            "bins": options["bins"],
            "seed": identity["seed"],
        }
        if isinstance(task, Classified):
            compared = compare_label_sets(task, **common)
        else:
            compared = compare_intervals(task, groups=options["groups"], **common)
        return _output(compared, trial)

    def combine(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Combined:
        """One `MethodComparison` of each world, coverage and seed, named as the plan does."""
        groups: dict[tuple[str, int], list[Trial]] = {}
        for trial in trials:
            groups.setdefault((trial.labels["world"], trial.identity["seed"]), []).append(trial)
        results: dict[str, list[MethodComparison]] = {}
        tables = []
        for (world, seed), parts in groups.items():
            whole = _joined(parts, store)
            for result in whole:
                records = result.records()
                for method in result.methods:
                    keys: dict[str, str | int] = {"world": world, "method": method, "seed": seed}
                    tables.append(records_table([r for r in records if r.model == method], keys))
            named = f"{world}, seed {seed}" if len(plan.seeds) > 1 else world
            results.setdefault(world, []).extend(replace(result, task=named) for result in whole)
        return Combined(table=stacked(tables), results=results)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """See `howsure.studies.adaptivity.page`."""
        from howsure.studies.adaptivity.page import adaptivity_report

        return adaptivity_report(combined.results, facts=facts, command=command)


@final
@dataclass(frozen=True, slots=True)
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
        known = (*LABEL_METHODS, *INTERVAL_METHODS)
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


def _identity(
    label: str, entry: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    if "softmax" not in entry:
        return world_identity(label, entry, folder)
    if set(entry) != {"softmax"}:
        raise InputError(f"world {label!r} must have softmax alone, got {', '.join(entry)}")
    path = Path(absolute(folder, entry["softmax"]))
    return {"softmax": numbers_hash(*_arrays(path))}, {"softmax": str(path)}


def _arrays(path: Path) -> tuple[FloatArray, IntArray]:
    """Probabilities, each row's sum made one, and true classes."""
    try:
        with np.load(path, allow_pickle=False) as held:
            missing = [name for name in _ARRAYS if name not in held.files]
            if missing:
                raise InputError(f"{path} must hold arrays {', '.join(_ARRAYS)}, got {held.files}")
            table, y = (np.asarray(held[name]) for name in _ARRAYS)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if table.ndim != 2 or table.dtype.kind != "f" or y.shape != (len(table),):
        raise InputError(
            f"{path} must hold numbers of shapes (n, classes) and (n,), got "
            f"{table.shape} and {y.shape}"
        )
    wide: FloatArray = table.astype(np.float64)
    sums = wide.sum(axis=1)
    if not (np.isfinite(wide).all() and (wide >= 0).all() and np.abs(sums - 1).max() < 1e-3):
        raise InputError(f"{path}: rows of predictions must be probabilities that sum to one")
    return wide / sums[:, None], y.astype(np.int64)


@lru_cache(maxsize=2)
def _task(world_text: str, files_text: str, options_text: str, seed: int) -> Classified | Regressed:
    """The task of a trial; the last ones are remembered, for forests take time to grow."""
    world, files, options = map(json.loads, (world_text, files_text, options_text))
    rows = options["rows"]
    if "softmax" in world:
        table, y = _arrays(Path(files["softmax"]))
        if numbers_hash(table, y) != world["softmax"]:
            raise InputError(f"{files['softmax']} has changed since the plan was read")
        return given_probabilities(table[:rows], y[:rows], seed=seed, name="splits")
    made = make_world(world, files)
    training = made.training_set(seed, 0, options["n_train"], n_test=rows)
    rest = made.test_set(seed, rows)
    return forest_task(
        (training.x, training.y),
        (rest.x, rest.y),
        noise=options["noise"],
        trees=options["trees"],
        seed=seed,
        name="splits",
    )


def _output(compared: Sequence[MethodComparison], trial: Trial) -> TrialOutput:
    """Every number, one row a repeat, coverage and measure."""
    first = compared[0]
    values = np.stack([result.values[:, 0] for result in compared])
    coverages, repeats, measures = values.shape
    reasons = [
        result.reasons.get((result.methods[0], measure), "")
        for result in compared
        for _ in range(repeats)
        for measure in first.measures
    ]
    columns = {
        "coverage": np.repeat([result.coverage for result in compared], repeats * measures),
        "repeat": np.tile(np.repeat(np.arange(repeats), measures), coverages),
        "metric": np.tile(np.array(first.measures, dtype=object), coverages * repeats),
        "value": values.ravel(),
        "reason": np.array(reasons, dtype=object),
    }
    return TrialOutput(
        records=Table(name="records", columns=columns),
        keys={**trial.labels, "seed": first.seed},
        facts={
            "calibration_rows": first.calibration_rows,
            "test_rows": first.test_rows,
            "bins": first.bins,
            "surrogate": first.surrogate,
            "units": first.units,
        },
    )


def _joined(trials: Sequence[Trial], store: Store) -> list[MethodComparison]:
    """All methods on one task's splits, one comparison a coverage."""
    options = trials[0].identity["options"]
    facts = store.entry(trials[0].address).facts
    measures = LABEL_MEASURES if facts["units"] == "labels" else INTERVAL_MEASURES
    shape = (len(options["coverages"]), options["repeats"], len(measures))
    values, reasons = [], []
    for trial in trials:
        table = store.table(trial.address, "records")
        values.append(np.asarray(table["value"].to_numpy()).reshape(shape))
        why = np.asarray(table["reason"].to_pylist(), dtype=object).reshape(shape)
        reasons.append(why)
    methods = tuple(trial.labels["method"] for trial in trials)
    return [
        MethodComparison(
            task=trials[0].labels["world"],
            methods=methods,
            measures=measures,
            values=np.stack([each[place] for each in values], axis=1),
            coverage=coverage,
            calibration_rows=facts["calibration_rows"],
            test_rows=facts["test_rows"],
            bins=facts["bins"],
            floor=floor_of(facts["bins"], facts["test_rows"], coverage),
            seed=trials[0].identity["seed"],
            surrogate=facts["surrogate"],
            reasons={
                (method, measure): str(why[place, 0, k])
                for method, why in zip(methods, reasons, strict=True)
                for k, measure in enumerate(measures)
                if why[place, 0, k]
            },
            units=facts["units"],
        )
        for place, coverage in enumerate(options["coverages"])
    ]
