"""Does coverage survive a shift: networks, densities of their features, and methods, as trials."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import check_known
from howsure.methods.selective import FeatureScore
from howsure.report.document import Document
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
from howsure.studies.shift.methods import (
    SHIFT_METHODS,
    VARIATIONS,
    ShiftMethod,
    paper_runs,
    shift_method,
)
from howsure.studies.shift.options import Options
from howsure.studies.shift.plan_tasks import task_identity
from howsure.studies.shift.result import ShiftResult
from howsure.studies.shift.work import (
    density_spec,
    fit_density,
    network_method,
    own_method,
    read_result,
    train_network,
)
from howsure.studies.tasks import DataNotFoundError

_KNOWN = (*SHIFT_METHODS, *VARIATIONS)


@final
class ShiftStudy(Study):
    """`howsure.studies.shift.evaluate`: networks are trained once, and every method reads them.

    A world is an image task, a table with a natural shift, or a table of one's own with
    ``target`` and ``split_by``; see `task_identity`. A method is one of the ten of the benchmark
    or their variations, or any method of howsure's or one's own, which is then trained in each
    of ``runs`` runs. Options of a plan are those of `Options` and of `Recipe`.
    """

    __slots__ = ()
    name: ClassVar[str] = "shift"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("test_coverage", "prediction_rate", "coverage_error"),
        *("val_mae", "val_width", "val_coverage", "relative_mae_change"),
    )

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Networks of all worlds, then densities of their features, then methods."""
        options = plan.read(Options)
        for label, entry in plan.methods.items():
            _check_method(label, entry, options)
        worlds = [
            _World.of(self, plan, options, label, seed)
            for label in _present(plan, options)
            for seed in plan.seeds
        ]
        stages = zip(*(world.stages for world in worlds), strict=True)
        return tuple(trial for stage in stages for part in stage for trial in part)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Train a network, fit a density, or ask a method."""
        stage = trial.context["stage"]
        if stage == "network":
            return train_network(trial, store)
        if stage == "own":
            return own_method(trial)
        if store is None:
            raise InputError("store must be given for trials that read others, got none")
        return fit_density(trial, store) if stage == "density" else network_method(trial, store)

    def combine(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Combined:
        """One `ShiftResult` of each world, method, seed and coverage, named as the plan does."""
        groups: dict[tuple[str, str, int], list[Trial]] = {}
        for trial in trials:
            if trial.context["stage"] in ("method", "own"):
                key = (trial.labels["world"], trial.labels["method"], trial.identity["seed"])
                groups.setdefault(key, []).append(trial)
        results: dict[str, list[ShiftResult]] = {}
        tables = []
        for (world, method, seed), parts in groups.items():
            named = f"{world}, seed {seed}" if len(plan.seeds) > 1 else world
            for place in range(len(parts[0].identity["options"]["coverages"])):
                result = read_result(parts, store, named, method, place)
                tables += _tables(result, {"method": method, "seed": seed}, world)
                results.setdefault(world, []).append(result)
        return Combined(table=stacked(tables), results=results)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """See `howsure.studies.shift.page`."""
        from howsure.studies.shift.page import shift_report

        return shift_report(combined.results, facts=facts, command=command)


@dataclass
class _World:
    """The trials of one world under one seed, stage by stage."""

    adapter: ShiftStudy
    label: str
    identity: Mapping[str, Any]
    files: Mapping[str, str]
    options: Options
    seed: int
    networks: dict[str, Trial] = field(default_factory=dict)
    densities: dict[tuple[str, FeatureScore], Trial] = field(default_factory=dict)
    methods: list[Trial] = field(default_factory=list)

    @classmethod
    def of(cls, adapter: ShiftStudy, plan: Plan, options: Options, label: str, seed: int) -> _World:
        """All trials of a world."""
        identity, files = task_identity(label, plan.worlds[label], plan.folder, seed)
        world = cls(adapter, label, identity, files, options, seed)
        for method, entry in plan.methods.items():
            world.add(method, entry)
        return world

    @property
    def stages(self) -> tuple[list[Trial], list[Trial], list[Trial]]:
        """Networks, densities, methods."""
        return list(self.networks.values()), list(self.densities.values()), self.methods

    def add(self, label: str, entry: Mapping[str, Any]) -> None:
        """The trials of a method, and those that it needs."""
        if entry.get("method") in _KNOWN:
            self._add_benchmark(label, shift_method(entry["method"]), entry.get("revision", 0))
        else:
            self._add_own(label, entry)

    def _add_benchmark(self, label: str, method: ShiftMethod, revision: Any) -> None:
        drawn = paper_runs(self.options.networks, self.options.members, self.options.runs)
        runs = [list(places) for places in (drawn.ensembles if method.ensemble else drawn.single)]
        places = sorted({place for run in runs for place in run})
        networks = {
            name: trial
            for place in places
            for coverage in self._coverages(method)
            for name, trial in (self._network(method, place, coverage),)
        }
        densities = {}
        if isinstance(method.score, FeatureScore):
            densities = {name: self._density(name, method.score) for name in networks}
        held = {"key": method.key, "networks": _pattern(method), "revision": revision}
        identity = {
            "world": self.identity,
            "method": held,
            "runs": runs,
            "options": self._asked(),
            "seed": self.seed,
        }
        needed = [*networks.values(), *densities.values()]
        context = {
            "stage": "method",
            "networks": {name: trial.address for name, trial in networks.items()},
            "densities": {name: trial.address for name, trial in densities.items()},
        }
        self.methods.append(
            self.adapter.trial(
                identity,
                {"world": self.label, "method": label},
                context,
                [trial.address for trial in needed],
            )
        )

    def _add_own(self, label: str, entry: Mapping[str, Any]) -> None:
        method = make_method(label, entry, self.options.coverages)
        common = {
            "world": self.identity,
            "method": method_identity(method, entry),
            "options": self._asked(),
            "seed": self.seed,
        }
        context = {"stage": "own", "files": self.files, "method": dict(entry)}
        labels = {"world": self.label, "method": label}
        self.methods += [
            self.adapter.trial({**common, "run": run}, labels, context)
            for run in range(self.options.runs)
        ]

    def _network(
        self, method: ShiftMethod, place: int, coverage: float | None
    ) -> tuple[str, Trial]:
        name = _pattern(method).format(place=place, coverage=coverage)
        if name not in self.networks:
            network: dict[str, Any] = {"kind": method.network, "index": place, "name": name}
            if coverage is not None:
                network["coverage"] = coverage
            training = self.options.training(
                images="images" in self.identity, spectral=method.spectral_norm
            )
            self.networks[name] = self.adapter.trial(
                {
                    "world": self.identity,
                    "network": network,
                    "training": training,
                    "seed": self.seed,
                },
                {"world": self.label, "network": name},
                {"stage": "network", "files": self.files},
            )
        return name, self.networks[name]

    def _density(self, name: str, score: FeatureScore) -> Trial:
        if (name, score) not in self.densities:
            self.densities[name, score] = self.adapter.trial(
                {
                    "world": self.identity,
                    "network": {"name": name},
                    "density": density_spec(score),
                    "seed": self.seed,
                },
                {"world": self.label, "network": name, "density": score.name},
                {"stage": "density"},
                [self.networks[name].address],
            )
        return self.densities[name, score]

    def _coverages(self, method: ShiftMethod) -> tuple[float | None, ...]:
        """Networks of quantiles are of one coverage each; others serve all."""
        return self.options.coverages if method.network == "quantile" else (None,)

    def _asked(self) -> dict[str, Any]:
        return {
            "coverages": list(self.options.coverages),
            "rule": self.options.rule,
            "share": self.options.share,
        }


def _present(plan: Plan, options: Options) -> list[str]:
    """Labels of the worlds whose data are on this machine; all, where none may be absent."""
    if options.absent == "error":
        return list(plan.worlds)
    there, lost = [], {}
    for label, entry in plan.worlds.items():
        try:
            task_identity(label, entry, plan.folder, plan.seeds[0])
            there.append(label)
        except DataNotFoundError as error:
            lost[label] = error
    if not there:
        raise next(iter(lost.values()))
    if lost:
        told = f"left out, as their data are not on this machine: {', '.join(lost)}"
        warnings.warn(f"{told}; see howsure data get NAME", HowsureWarning, stacklevel=2)
    return there


def _pattern(method: ShiftMethod) -> str:
    """How networks of a method are called, by their place and coverage."""
    kind = f"{method.network}{' spectral' if method.spectral_norm else ''}"
    return f"{kind} {{coverage}} {{place}}" if method.network == "quantile" else f"{kind} {{place}}"


def _check_method(label: str, entry: Mapping[str, Any], options: Options) -> None:
    """Benchmark methods take no options; others are made once, so that errors come early."""
    if entry.get("method") not in _KNOWN:
        make_method(label, entry, options.coverages)
        return
    for key in entry:
        check_known(key, ("method", "revision"), f"option of method {label!r}")


def _tables(result: ShiftResult, keys: Mapping[str, str | int], world: str) -> list[Any]:
    """Records of each test part as a table; the main one stands under the world's own name."""
    main, found = result.tests[0], []
    for test in result.tests:
        own = [
            record
            for record in result.records()
            if record.options["test"] == test or (test == main and not record.options["test"])
        ]
        named = world if test == main else f"{world}: {test}"
        found.append(records_table(own, {"world": named, **keys}))
    return found
