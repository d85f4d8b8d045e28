"""The characteristics curve of methods on worlds: one trial a world, method and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.convert import Count, plain
from howsure.core.records import Table
from howsure.core.rng import child
from howsure.metrics.characteristic.view import characteristic_view, recentred_rows
from howsure.metrics.view import View
from howsure.predictions import EvalSet
from howsure.report.document import Document
from howsure.studies.characteristic.measures import (
    Measuring,
    MethodResult,
    columns_of,
    joint_draws,
    measure,
    records_of,
)
from howsure.studies.characteristic.worlds import identity_of, split_of
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

_COVERAGES: Final = (0.9,)
_BANDS: Final = ("y", "point", "lower", "upper")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(Measuring):
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

    Options of a plan: ``low`` (the low miss rates end here; 0.2), ``miss_rates`` (operating
    points; 0.1 and 0.5), ``replicates`` (200), ``confidence`` (0.95), ``n_train`` and ``n_test``
    (a table's rows are split four to one where both are left out).
    """

    __slots__ = ()
    name: ClassVar[str] = "characteristic"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("auucc", "characteristic_gain", "characteristic_partial_gain"),
        *("left_gain", "crossing"),
    )

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Every world, method and seed."""
        options = plain(plan.read(_Options))
        made = {label: make_method(label, e, _COVERAGES) for label, e in plan.methods.items()}
        found = []
        for world, entry in plan.worlds.items():
            identity, files = identity_of(world, entry, plan.folder)
            for label, method in made.items():
                words = plan.methods[label]
                common = {
                    "world": identity,
                    "method": method_identity(method, words),
                    "options": options,
                }
                labels = {"world": world, "method": label}
                found += [
                    self.trial({**common, "seed": seed}, labels, {"files": files, "method": words})
                    for seed in plan.seeds
                ]
        return tuple(found)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Fit the method, and measure the bands of the test rows."""
        told = trial.identity
        seed = told["seed"]
        options = _Options(**told["options"])
        rows = split_of(
            told["world"],
            trial.context["files"],
            seed=seed,
            n_train=options.n_train,
            n_test=options.n_test,
        )
        method = make_method(trial.labels["method"], trial.context["method"], _COVERAGES)
        fitted = method.fit(rows.x, rows.y, child(seed, "characteristic", "fit"))
        outcome = fitted.predict(rows.x_test).outcome
        view = View(EvalSet.checked(rows.y_test, outcome))
        curve = characteristic_view(view)
        draws = joint_draws(fitted, rows.x_test, outcome, replicates=options.replicates, seed=seed)
        records = measure(curve, options, draws=draws, cluster=rows.cluster, seed=seed)
        bands = curve.bands
        point = bands.y - bands.error
        arrays: dict[str, npt.NDArray[Any]] = {
            "y": bands.y,
            "point": point,
            "lower": point - bands.below,
            "upper": point + bands.above,
        }
        beside = {"cluster": rows.cluster, "place": rows.place}
        arrays |= {name: held for name, held in beside.items() if held is not None}
        return TrialOutput(
            records=Table(name="records", columns=columns_of(records)),
            arrays=arrays,
            keys={**trial.labels, "seed": seed},
            facts={
                "train": len(rows.y),
                "recentred": len(recentred_rows(view)),
                "axis": rows.axis,
                "window": rows.window,
                "notes": getattr(fitted, "notes", ""),
            },
        )

    def combine(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Combined:
        """One `MethodResult` of each trial, named as the plan does."""
        results: dict[str, list[MethodResult]] = {}
        tables = []
        for trial in trials:
            result = _read(trial, store)
            results.setdefault(result.world, []).append(result)
            keys: Mapping[str, str | int] = {**trial.labels, "seed": result.seed}
            tables.append(records_table(result.records, keys))
        return Combined(table=stacked(tables), results=results)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """See `howsure.studies.characteristic.page`."""
        from howsure.studies.characteristic.page import characteristic_report

        return characteristic_report(combined.results, facts=facts, command=command)


def _read(trial: Trial, store: Store) -> MethodResult:
    arrays = store.arrays(trial.address)
    facts: Mapping[str, Any] = store.entry(trial.address).facts
    table = store.table(trial.address, "records")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    wanted = {item.name for item in fields(Measuring)}
    told = trial.identity["options"]
    return MethodResult(
        world=trial.labels["world"],
        method=trial.labels["method"],
        seed=trial.identity["seed"],
        records=records_of(columns),
        options=Measuring(**{name: told[name] for name in wanted}),
        **{name: np.asarray(arrays[name]) for name in _BANDS},
        cluster=arrays.get("cluster"),
        place=arrays.get("place"),
        axis=facts["axis"],
        window=tuple(facts["window"]) if facts["window"] else None,
        notes=facts["notes"],
    )
