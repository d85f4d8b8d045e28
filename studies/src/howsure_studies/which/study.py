"""Which method should I use: each method is fitted once to each cut of a table, then judged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, final

import numpy as np

from howsure.core.arrays import AnyArray
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, Fraction, checked, packed, unpacked
from howsure.core.errors import InputError, MissingDependencyError, cut_text
from howsure.core.registry import check_known
from howsure.core.rng import child
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    check_options,
    in_bits,
    make_method,
    method_identity,
    numbers_hash,
    present,
    records_table,
    singles,
    stacked,
)
from howsure_studies.tasks import SplitTable, split_names, split_table
from howsure_studies.which.cuts import Cut, cut_rows
from howsure_studies.which.judging import INTERVALS, judged_fit, quantile_table
from howsure_studies.which.results import WhichResult

if TYPE_CHECKING:
    from howsure.report.document import Document

_WORLD: Final = {"world": str, "shifted": bool, "rows": Count, "cuts": Count}
_JUDGE: Final = 2
"""Raised when the verdict on a stored fit would be another; no method is fitted anew for it."""


@frozen(kw_only=True)
class WhichOptions(Checked):
    """Options of a plan, with their defaults.

    Attributes
    ----------
    rows : int
        Rows for training and calibration together, at most; a world may set its own.
    calibration : float
        The share of these that corrects.
    test : int
        Test rows, at most.
    absent : {"error", "skip"}
        What becomes of tables that are not on this machine: an error, or they are left out with
        a warning, as long as one is left.
    """

    rows: Count = 1000
    calibration: Fraction = 0.3
    test: Count = 2000
    absent: Literal["error", "skip"] = "skip"


@final
class WhichStudy(Study):
    """Methods on real tables: their scores, what their intervals cover, and what corrects them.

    A world of a plan is a table of `howsure_studies.tasks.split_names`, cut at random (by
    unit, where rows belong together), or, where it is ``shifted``, into the rows that are late or
    foreign and the others. It may set its ``rows``, and by ``cuts`` how many of the plan's seeds
    it is cut under; all, if omitted. A seed is a cut. A method is any of howsure's or one's own.

    A trial fits a method to the training rows, and to these and the calibration rows, and keeps
    quantiles at 19 levels. Another judges them, so that a new correction fits nothing.
    """

    __slots__ = ()
    name: ClassVar[str] = "which"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("score_ratio", "empirical_coverage", "corrected_score_ratio", "corrected_coverage"),
        *("region_coverage", "cpu_seconds"),
    )
    kinds: ClassVar[tuple[type, ...]] = (WhichResult,)

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Fits of every method to each cut, then verdicts on them; the first cut of all first."""
        options = plan.read(WhichOptions)
        methods = {
            label: method_identity(make_method(label, entry, INTERVALS), entry)
            for label, entry in plan.methods.items()
        }
        tables = present(
            plan.worlds,
            lambda label: _world(label, plan.worlds[label], options),
            lambda _: options.absent,
        )
        trials: list[Trial] = []
        for place, seed in enumerate(plan.seeds):
            for world, identity in tables.items():
                if place >= plan.worlds[world].get("cuts", len(plan.seeds)):
                    continue
                fits, verdicts = [], []
                for label, method in methods.items():
                    fit = self.trial(
                        {"world": identity, "seed": seed, "method": method},
                        {"world": world, "fit": label},
                        {"stage": "fit", "method": plan.methods[label]},
                    )
                    fits.append(fit)
                    verdicts.append(
                        self.trial(
                            {"world": identity, "seed": seed, "judge": _JUDGE},
                            {"world": world, "method": label},
                            {"stage": "judge"},
                            (fit.address,),
                        )
                    )
                trials += [*fits, *verdicts]
        return tuple(trials)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Fit a method to one cut, or judge what it predicted."""
        if trial.context["stage"] == "fit":
            return _fitted(trial)
        if store is None:
            raise InputError("store must be given for trials that read others, got none")
        return _judged(trial, store)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[WhichResult]:
        """What was said of a method on one cut."""
        return [
            unpacked(WhichResult, store.arrays(trial.address), store.entry(trial.address).facts)
            for trial in trials
        ]

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[WhichResult]]) -> Combined:
        """All results by world, named as the plan does."""
        by_world: dict[str, list[WhichResult]] = {}
        tables = []
        for (world, method, seed), own in results.items():
            for result in own:
                named = replace(result, method=method)
                by_world.setdefault(world, []).append(named)
                keys: dict[str, str | int] = {
                    **{"world": world, "part_of": result.table},
                    **{"method": method, "seed": seed},
                }
                tables.append(records_table(named.records(), keys))
        return Combined(table=stacked(tables), results=by_world)

    def shortened(self, result: WhichResult) -> WhichResult:
        """Its numbers to a ten-thousandth of their size, which no page tells from the whole."""
        bits = 13
        base = float(in_bits(np.asarray(result.climatology), bits))  # so that its own ratio is 1
        return replace(singles(result, bits), climatology=base)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """The page of `which_report`, which has the standings of methods that others end with."""
        from howsure_studies.which.page import which_report

        return which_report(combined.results, facts=facts, command=command)


def _world(label: str, entry: Mapping[str, Any], options: WhichOptions) -> dict[str, Any]:
    """What decides a cut of a table beside its seed."""
    check_options(label, entry, tuple(_WORLD))
    check_known(entry.get("world"), split_names(), f"table of world {label!r}")
    table = _table(entry["world"])
    for key, value in entry.items():
        checked(value, _WORLD[key], f"{key} of world {label!r}")
    shifted = entry.get("shifted", False)
    if shifted and table.shifted is None:
        raise InputError(f"world {label!r} must have a table with a shift, got {entry['world']!r}")
    return {
        "table": entry["world"],
        "data": _hash(table),
        "shifted": shifted,
        "rows": entry.get("rows", options.rows),
        "calibration": options.calibration,
        "test": options.test,
    }


@lru_cache(maxsize=2)
def _table(name: str) -> SplitTable:
    """A table; the last ones are remembered, for all methods read one after the other."""
    return split_table(name)


def _hash(table: SplitTable) -> str:
    """Of its numbers, of which rows belong together, and of which are shifted."""
    n = len(table.part)
    units = np.arange(n) if table.units is None else np.unique(table.units, return_inverse=True)[1]
    shifted = np.zeros(n, dtype=np.bool_) if table.shifted is None else table.shifted
    return numbers_hash(table.part.x, table.part.y, units, shifted)


def _cut(trial: Trial) -> tuple[SplitTable, Cut]:
    """The table of a trial, and its rows."""
    world = trial.identity["world"]
    table = _table(world["table"])
    if _hash(table) != world["data"]:
        raise InputError(f"table {world['table']!r} has changed since the plan was read")
    cut = cut_rows(
        table,
        seed=trial.identity["seed"],
        rows=world["rows"],
        calibration=world["calibration"],
        test=world["test"],
        shifted=world["shifted"],
    )
    return table, cut


def _fitted(trial: Trial) -> TrialOutput:
    """Quantiles of a fit to training rows and of one to all known rows; or why there are none."""
    table, cut = _cut(trial)
    label = trial.labels["fit"]
    method = make_method(label, trial.context["method"], INTERVALS)
    x, y = table.part.x, table.part.y
    arrays: dict[str, AnyArray] = {}
    clock: list[float] = []
    try:
        for name, rows in (("train", cut.train), ("known", cut.with_y)):
            started = time.process_time()
            rng = child(trial.identity["seed"], "which", name)
            fitted = method.fit(x[rows], y[rows], rng)
            clock.append(time.process_time() - started)
            started = time.process_time()
            arrays[f"{name} test"] = quantile_table(fitted.predict(x[cut.test]).outcome)
            if name == "train":
                clock.append(time.process_time() - started)
                held = fitted.predict(x[cut.calibration]).outcome
                arrays["train calibration"] = quantile_table(held)
    except MissingDependencyError:
        raise
    except Exception as error:  # noqa: BLE001 - a method may raise anything
        why = f"{type(error).__name__}: {cut_text(str(error), 300)}"
        return TrialOutput(facts={"failure": why, "seconds": []}, failed_parts=1)
    for name, quantiles in arrays.items():
        if not np.isfinite(quantiles).all():
            why = f"quantiles of {name} are not finite"
            return TrialOutput(facts={"failure": why, "seconds": []}, failed_parts=1)
    train, predict, known = clock
    return TrialOutput(
        arrays={name: quantiles.astype(np.float32) for name, quantiles in arrays.items()},
        facts={"failure": "", "seconds": [train, known, predict]},
    )


def _judged(trial: Trial, store: Store) -> TrialOutput:
    """The verdict on a stored fit."""
    table, cut = _cut(trial)
    (address,) = trial.needs
    facts, arrays = store.entry(address).facts, store.arrays(address)
    common: dict[str, Any] = {
        "table": trial.identity["world"]["table"],
        "method": trial.labels["method"],
        "shift": table.shift if trial.identity["world"]["shifted"] else "",
        "by": table.by if trial.identity["world"]["shifted"] else "",
        "seed": trial.identity["seed"],
        "rows": (len(cut.train), len(cut.calibration), len(cut.test)),
        "failure": facts["failure"],
    }
    if facts["failure"]:
        return replace(_output(WhichResult.failed(**common)), failed_parts=1)
    quantiles = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    # quantiles are kept in single precision: y beside them too, so that what was equal stays so
    y = table.part.y.astype(np.float32).astype(np.float64)
    judged = judged_fit(
        replace(table, part=replace(table.part, y=y)),
        cut,
        calibration=quantiles["train calibration"],
        test=quantiles["train test"],
        whole=quantiles["known test"],
        seed=trial.identity["seed"],
    )
    return _output(
        WhichResult(
            **common,
            score=judged.score,
            climatology=judged.climatology,
            coverage=judged.coverage,
            width=judged.width,
            worst=judged.worst,
            states=judged.states,
            seconds=np.array(facts["seconds"]),
            advised=judged.advised,
        )
    )


def _output(result: WhichResult) -> TrialOutput:
    arrays, facts = packed(result)
    return TrialOutput(arrays=arrays, facts=facts)
