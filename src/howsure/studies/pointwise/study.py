"""Coverage at every point, in blocks of simulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, final

from howsure.core.convert import Checked, Count, Fraction, plain
from howsure.core.errors import UnanswerableError
from howsure.methods.interface import COVERAGES, Coverages
from howsure.report.document import Document
from howsure.studies.engine import (
    Combined,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    make_method,
    make_world,
    method_identity,
    noise_of,
    records_table,
    stacked,
    world_identity,
)
from howsure.studies.pointwise.result import PointwiseResult, joined
from howsure.studies.pointwise.simulation import pointwise
from howsure.studies.pointwise.tables import from_tables, to_output
from howsure.studies.pointwise.views import records

_TABLES: Final = ("records", "predictions", "points")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(Checked):
    """Options of a plan of this protocol, with their defaults."""

    coverages: Coverages = COVERAGES
    simulations: Count = 100
    block: Count | None = None
    n_train: Count | None = None
    n_test: Count | None = None
    covariates: Literal["random", "fixed"] = "random"
    confidence: Fraction = 0.95

    def identity(self, n_train: int | None) -> dict[str, Any]:
        """What decides the outcome of a block, apart from its place; a method may have its rows."""
        told = plain(self if n_train is None else replace(self, n_train=n_train))
        return {name: told[name] for name in ("coverages", "n_train", "n_test", "covariates")}


@final
class PointwiseStudy(Study):
    """`howsure.studies.pointwise.simulation`: a trial is a block of simulations.

    Options of a plan: ``simulations`` (training sets of each world, method and seed; 100),
    ``coverages``, ``n_train``, ``n_test``, ``covariates``, ``confidence`` (of the bands), and
    ``block``: simulations of one trial, by default the least multiple of what the method fits at
    once that is 10 or more. An ``n_train`` in a method's entry holds for that method.
    """

    __slots__ = ()
    name: ClassVar[str] = "pointwise"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("empirical_coverage", "picf_brier_corrected", "prediction_width"),
        *("cicp", "cicf_brier_corrected", "confidence_width"),
        *("log_likelihood", "failed_trials"),
    )

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Blocks of every world, method and seed."""
        options = plan.read(_Options)
        made = {
            label: make_method(label, entry, options.coverages)
            for label, entry in plan.methods.items()
        }
        found: list[Trial] = []
        for world, entry in plan.worlds.items():
            identity, files = world_identity(world, entry, plan.folder)
            for label, method in made.items():
                words = plan.methods[label]
                common = {
                    "world": identity,
                    "method": method_identity(method, words),
                    "options": options.identity(words.get("n_train")),
                }
                labels, context = {"world": world, "method": label}, {"files": files}
                found += [
                    self.trial(
                        {**common, "seed": seed, **place}, labels, {**context, "method": words}
                    )
                    for seed in plan.seeds
                    for place in _blocks(options, method.batch)
                ]
        return tuple(found)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Run a block; it fails where every simulation of it does."""
        told = trial.identity
        options = told["options"]
        coverages = tuple(options["coverages"])
        result = pointwise(
            make_world(told["world"], trial.context["files"]),
            make_method(trial.labels["method"], trial.context["method"], coverages),
            coverages=coverages,
            trials=told["trials"],
            first_trial=told["first_trial"],
            n_train=options["n_train"],
            n_test=options["n_test"],
            covariates=options["covariates"],
            seed=told["seed"],
        )
        if result.failures and not result.trials:
            first = result.failures[0]
            error = UnanswerableError(
                f"all {len(result.failures)} simulations failed; the first in {first.stage}: "
                f"{first.error}: {first.message}"
            )
            error.add_note(first.trace)
            raise error
        return to_output(result)

    def combine(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Combined:
        """One `PointwiseResult` of each world, method and seed, named as the plan does."""
        options = plan.read(_Options)
        groups: dict[tuple[str, str, int], list[Trial]] = {}
        for trial in trials:
            key = (trial.labels["world"], trial.labels["method"], trial.identity["seed"])
            groups.setdefault(key, []).append(trial)
        results: dict[str, list[PointwiseResult]] = {}
        tables = []
        for (world, method, seed), parts in groups.items():
            whole = joined([_read(part, store) for part in parts], planned=options.simulations)
            result = replace(whole, confidence=options.confidence)
            keys: Mapping[str, str | int] = {"world": world, "method": method, "seed": seed}
            tables.append(records_table(records(result), keys))
            many = len(plan.seeds) > 1
            shown = replace(result, method=f"{method}, seed {seed}") if many else result
            results.setdefault(world, []).append(shown)
        return Combined(table=stacked(tables), results=results)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """See `howsure.studies.pointwise.page`."""
        from howsure.studies.pointwise.page import pointwise_report

        return pointwise_report(combined.results, facts=facts, command=command)


def _blocks(options: _Options, batch: int) -> list[dict[str, int]]:
    """First trial and number of trials of each block."""
    size = options.block or batch * math.ceil(10 / batch)
    firsts = range(0, options.simulations, size)
    return [{"first_trial": k, "trials": min(size, options.simulations - k)} for k in firsts]


def _read(trial: Trial, store: Store) -> PointwiseResult:
    address = trial.address
    tables = {name: store.table(address, name) for name in _TABLES}
    knows = "scale" in tables["points"].column_names
    noise = noise_of(trial.identity["world"], trial.context["files"]) if knows else None
    found = from_tables(store.entry(address).facts, tables, noise)
    return replace(found, world=trial.labels["world"], method=trial.labels["method"])
