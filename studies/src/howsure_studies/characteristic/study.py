"""The characteristics curve of methods on worlds: one trial a world, method and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, final

from howsure.core.classes import frozen
from howsure.core.convert import Count, option_names, plain
from howsure.core.rng import child
from howsure.engine.view import View
from howsure.predictions import EvalSet
from howsure.topics.characteristic.view import characteristic_view
from howsure_studies.characteristic.measures import Measuring, joint_draws, measure
from howsure_studies.characteristic.results import MethodResult, compare
from howsure_studies.characteristic.worlds import identity_of, split_of
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
    packed,
    records_table,
    stacked,
    unpacked,
)

_COVERAGES: Final = (0.9,)
_SHOWN: Final = ("cluster", "place", "axis", "window", "problem")
"""What a result has of the rows of its world."""


@final
@frozen(kw_only=True)
class _CharacteristicOptions(Measuring):
    """Options of a plan of this study, with their defaults."""

    n_train: Count | None = None
    n_test: Count | None = None


@final
class CharacteristicStudy(Study):
    """The curve of bandwidth and miss rate, after Navrátil et al.: where do varying widths pay?

    A method is fitted to the training rows of a world, and the bands that it gives test rows are
    measured against a constant band. Worlds: ``gap``; ``traffic``, a folder that holds the Metro
    traffic table, or its name in ``$HOWSURE_DATA`` (with ``every`` = 4 each fourth hour trains);
    and all that `pointwise` has, where a table is split in place of simulated if it names no other
    ``source``. Every method of howsure serves; the interval nearest to 90 % is what is scaled.

    Options of a plan: ``miss_range`` (the low miss rates; 0 to 0.2), ``miss_rates`` (operating
    points; 0.1 and 0.5), ``replicates`` (200), ``confidence`` (0.95), ``n_train`` and ``n_test``
    (a table's rows are split four to one where both are left out).
    """

    __slots__ = ()
    name: ClassVar[str] = "characteristic"
    version: ClassVar[int] = 2
    headline: ClassVar[tuple[str, ...]] = (
        *("auucc", "characteristic_gain", "characteristic_partial_gain"),
        *("characteristic_left_gain", "crossing"),
    )
    kinds: ClassVar[tuple[type, ...]] = (MethodResult,)
    report: ClassVar[str] = "howsure_studies.characteristic.page:characteristic_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Every world, method and seed."""
        options = plain(plan.read(_CharacteristicOptions))
        made = {label: make_method(label, e, _COVERAGES) for label, e in plan.methods.items()}
        trials = []
        for world, entry in plan.worlds.items():
            identity, files = identity_of(world, entry, plan.folder)
            for label, method in made.items():
                context = {"files": files, "method": plan.methods[label]}
                common = {"world": identity, "method": method_identity(method, plan.methods[label])}
                trials += [
                    self.trial(
                        {**common, "options": options, "seed": seed},
                        {"world": world, "method": label},
                        context,
                    )
                    for seed in plan.seeds
                ]
        return tuple(trials)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Fit the method, and measure the bands of the test rows."""
        identity = trial.identity
        seed = identity["seed"]
        options = _CharacteristicOptions(**identity["options"])
        sizes = {name: getattr(options, name) for name in ("n_train", "n_test")}
        rows = split_of(identity["world"], trial.context["files"], seed=seed, **sizes)
        label = trial.labels["method"]
        method = make_method(label, trial.context["method"], _COVERAGES)
        fitted = method.fit(rows.x, rows.y, child(seed, "characteristic", "fit"))
        outcome = fitted.predict(rows.x_test).outcome
        curve = characteristic_view(View(EvalSet.checked(rows.y_test, outcome)))
        draws = joint_draws(fitted, rows.x_test, outcome, replicates=options.replicates, seed=seed)
        bands = curve.bands
        point = bands.y - bands.error
        arrays, facts = packed(
            MethodResult(
                world=trial.labels["world"],
                method=label,
                seed=seed,
                y=bands.y,
                point=point,
                lower=point - bands.below,
                upper=point + bands.above,
                records=measure(curve, options, draws=draws, cluster=rows.cluster, seed=seed),
                options=Measuring(**{n: getattr(options, n) for n in option_names(Measuring)}),
                notes=getattr(fitted, "notes", ""),
                **{name: getattr(rows, name) for name in _SHOWN},
            )
        )
        return TrialOutput(arrays=arrays, facts=facts)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[MethodResult]:
        """What a trial measured."""
        return [
            unpacked(MethodResult, store.arrays(trial.address), store.entry(trial.address).facts)
            for trial in trials
        ]

    def shipping(
        self, results: Mapping[Group, Sequence[MethodResult]]
    ) -> dict[Group, list[MethodResult]]:
        """All but test rows; of these what figures of a method's first seed show, and tests."""
        by_world: dict[str, list[MethodResult]] = {}
        first: dict[tuple[str, str], int] = {}
        for (world, method, seed), own in results.items():
            by_world.setdefault(world, []).extend(replace(each, method=method) for each in own)
            first.setdefault((world, method), seed)
        pairs = {
            world: compare(own) if len({result.seed for result in own}) == 1 else ()
            for world, own in by_world.items()
        }
        return {
            (world, method, seed): [
                replace(
                    result.without_rows(),
                    method=method,
                    kept=result.picture() if first[world, method] == seed else None,
                    pairs=tuple(pair for pair in pairs[world] if pair.first == method),
                )
                for result in own
            ]
            for (world, method, seed), own in results.items()
        }

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[MethodResult]]) -> Combined:
        """One `MethodResult` of each trial, named as the plan does."""
        by_world: dict[str, list[MethodResult]] = {}
        names = {
            (group[0], result.method): group[1] for group, own in results.items() for result in own
        }
        tables = []
        for (world, method, seed), own in results.items():
            for each in own:
                pairs = (
                    replace(
                        pair,
                        first=names.get((world, pair.first), pair.first),
                        second=names.get((world, pair.second), pair.second),
                    )
                    for pair in each.pairs
                )
                result = replace(each, world=world, method=method, pairs=tuple(pairs))
                by_world.setdefault(world, []).append(result)
                keys: Mapping[str, str | int] = {"world": world, "method": method, "seed": seed}
                tables.append(records_table(result.records, keys))
        return Combined(table=stacked(tables), results=by_world)
