"""The study of repeated splits: usual numbers of a table, beside coverage where truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
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
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Record
from howsure.metrics.catalogue import metric_named
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialError,
    TrialOutput,
    make_method,
    method_identity,
    records_table,
    stacked,
    table_data,
    world_identity,
)
from howsure_studies.pointwise.finding import PointwiseSummary
from howsure_studies.pointwise.measures import records
from howsure_studies.pointwise.simulation import PointwiseResult, answered
from howsure_studies.pointwise.splits import (
    PUBLISHED,
    Split,
    SplitFailure,
    SplitsResult,
    over_splits,
    published_splits,
)
from howsure_studies.pointwise.study import PointwiseStudy

_PUBLISHED_SHARE: Final = 0.1
"""Share of test rows in the published splits."""
METRICS: Final = ("rmse", "log_score", "empirical_coverage", "mean_width", "interval_score")
"""What is measured on each split."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitsBesideTruth:
    """One method on the splits of a table, and in the world that was made of that table.

    Attributes
    ----------
    splits : SplitsResult
        The usual procedure.
    simulated : PointwiseResult, optional
        The same method, with as many rows, where y is simulated and its distribution is known.
        None where no simulation was asked for, or none is done.
    summary : PointwiseSummary, optional
        What the page tells of the simulation, where its trials are not at hand.
    published : mapping of str to ndarray of float, shape (splits,)
        MC dropout on these splits as `howsure_studies.tasks.uci` gives it; empty where nothing
        was published.
    """

    splits: SplitsResult
    simulated: PointwiseResult | None = None
    summary: PointwiseSummary | None = None
    published: Mapping[str, FloatArray] = field(default_factory=dict)

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitsOptions(Checked):
    """Options of a plan, with their defaults."""

    coverages: Coverages = (0.9,)
    splits: Count = 20
    share: Fraction = _PUBLISHED_SHARE
    simulations: Natural = 20
    metrics: tuple[str, ...] = ()
    levels: Coverages | None = None

    def further(self) -> dict[str, Any]:
        """What is measured beyond `METRICS`, as a trial's identity has it: where there is any."""
        names = dict.fromkeys(metric_named(name, "metrics").name for name in self.metrics)
        given = {
            "metrics": [n for n in names if n not in METRICS],
            "levels": list(self.levels or ()),
        }
        return {key: value for key, value in given.items() if value}

    def simulation(self, plan: Plan, world: str, split: Split) -> Plan:
        """The plan of simulations in a table's world, with as many rows as a split has."""
        train, test = split
        return replace(
            plan,
            study=PointwiseStudy.name,
            worlds={world: plan.worlds[world]},
            options={
                "coverages": list(self.coverages),
                "simulations": self.simulations,
                "n_train": len(train),
                "n_test": len(test),
            },
        )


@final
class SplitsStudy(Study):
    """Repeated splits of real tables, beside simulations of worlds made of them.

    Worlds of a plan are tables (``uci`` or ``table``); options are ``coverages``, ``splits`` (20),
    ``share`` of test rows (0.1) and ``simulations`` (20; 0 leaves them out), which are trials of
    `PointwiseStudy` with as many rows for training and for testing as a split has. A table whose
    source asks for one division of its rows is divided so, and once. ``metrics`` names measures to
    add, such as ``crps``; ``levels``, those of quantiles over which ``pinball`` is averaged.
    """

    __slots__ = ()
    name: ClassVar[str] = "splits"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = (
        *("rmse", "log_score", "empirical_coverage", "mean_width"),
        *("picf_mean", "picf_brier_corrected", "picf_points_off"),
    )
    kinds: ClassVar[tuple[type, ...]] = (SplitsBesideTruth,)
    report: ClassVar[str] = "howsure_studies.pointwise.splits_page:splits_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Every table, method and seed: all splits in one trial, then the simulations."""
        options = plan.read(_SplitsOptions)
        for label, words in plan.methods.items():
            if "n_train" in words:
                raise InputError(f"method {label!r} must leave out n_train: splits decide the rows")
        return tuple(
            trial for world in plan.worlds for trial in self._of_table(plan, options, world)
        )

    def _of_table(self, plan: Plan, options: _SplitsOptions, world: str) -> Iterator[Trial]:
        entry = plan.worlds[world]
        if "world" in entry or entry.get("source", "forest") != "forest":
            raise InputError(f"world {world!r} must be a table to be split, got {dict(entry)}")
        identity, files = world_identity(world, entry, plan.folder)
        data = {"data": identity["data"]}
        rows = len(table_data(data, files).y)
        cuts = _cuts(files, rows, options.splits, options.share)
        share = options.share if _fixed(files) is None else len(cuts[0][1]) / rows
        for label, words in plan.methods.items():
            method = make_method(label, words, options.coverages)
            chosen = {
                "coverages": plain(answered(method, options.coverages)),
                "splits": len(cuts),
                "share": share,
                **options.further(),
            }
            common = {
                "world": data,
                "method": method_identity(method, words),
                "options": chosen,
            }
            labels = {"world": world, "method": label}
            context = {"files": files, "method": words}
            for seed in plan.seeds:
                yield self.trial({**common, "seed": seed}, labels, context)
        if options.simulations:
            yield from PointwiseStudy().trials(options.simulation(plan, world, cuts[0]))

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Run all splits of a table; it fails where every one does."""
        options, files = trial.identity["options"], trial.context["files"]
        coverages = tuple(options["coverages"])
        data = table_data(trial.identity["world"], files)
        result = over_splits(
            data.x,
            data.y,
            make_method(trial.labels["method"], trial.context["method"], coverages),
            splits=_cuts(files, len(data.y), options["splits"], options["share"]),
            coverages=coverages,
            metrics=(*METRICS, *options.get("metrics", ())),
            levels=options.get("levels", ()),
            table=trial.labels["world"],
            seed=trial.identity["seed"],
        )
        if not result.done:
            first = result.failures[0]
            error = UnanswerableError(
                f"all {len(result.failures)} splits failed; the first: {first.error}: "
                f"{first.message}"
            )
            error.add_note(first.trace)
            raise error
        published = _published(files, options)
        arrays, facts = packed(SplitsBesideTruth(splits=result, published=published))
        return TrialOutput(arrays=arrays, facts=facts, failed_parts=len(result.failures))

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[SplitsBesideTruth]:
        """A method's splits beside its simulation; nothing before the splits are done."""
        options = plan.read(_SplitsOptions)
        known = replace(plan, options={"simulations": max(options.simulations, 1)})
        simulations = [trial for trial in trials if trial.study == PointwiseStudy.name]
        simulated = PointwiseStudy().read(known, simulations, store) if simulations else [None]
        return [
            replace(_read(trial, store), simulated=simulated[0])
            for trial in trials
            if trial.study == self.name
        ]

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[SplitsBesideTruth]]) -> Combined:
        """One `SplitsBesideTruth` of each table, method and seed, named as the plan does."""
        by_world: dict[str, list[SplitsBesideTruth]] = {}
        tables = []
        for (world, method, seed), own in results.items():
            shown = f"{method}, seed {seed}" if len(plan.seeds) > 1 else method
            for result in own:
                beside, summary = result.simulated, result.summary
                named = replace(
                    result,
                    splits=replace(result.splits, table=world, method=shown),
                    simulated=None if beside is None else replace(beside, method=shown),
                    summary=None if summary is None else summary.called(shown, world),
                )
                keys: Mapping[str, str | int] = {"world": world, "method": method, "seed": seed}
                tables.append(records_table(_records(named), keys))
                by_world.setdefault(world, []).append(named)
        return Combined(table=stacked(tables), results=by_world)

    def shortened(self, result: SplitsBesideTruth) -> SplitsBesideTruth:
        """Its numbers, and a summary of the simulation."""
        summary = None
        if result.simulated is not None:
            summary = PointwiseStudy().shortened(result.simulated)
        return replace(result, simulated=None, summary=summary, published={})


def _fixed(files: Mapping[str, Any]) -> Split | None:
    """The one division that a table's source asks for, if it does."""
    from howsure_studies.tasks import uci_fixed

    return uci_fixed(files["uci"]) if "uci" in files else None


def _cuts(files: Mapping[str, Any], rows: int, count: int, share: float) -> tuple[Split, ...]:
    """The splits of a table: those that were published for so many rows, unless one is fixed."""
    fixed = _fixed(files)
    return published_splits(rows, count, share=share) if fixed is None else (fixed,)


def _published(files: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Published MC dropout by split, where these are the published splits of a table."""
    if "uci" not in files or options["share"] != _PUBLISHED_SHARE:
        return {}
    from howsure_studies.tasks import uci

    reference = uci(files["uci"]).reference
    return {name: reference[name] for name in PUBLISHED.values() if name in reference}


def _read(trial: Trial, store: Store) -> SplitsBesideTruth:
    """What a store keeps of a trial."""
    entry = store.entry(trial.address)
    if entry.failure is None:
        return unpacked(SplitsBesideTruth, store.arrays(trial.address), entry.facts)
    return SplitsBesideTruth(splits=_all_failed(trial, entry.failure))


def _all_failed(trial: Trial, error: TrialError) -> SplitsResult:
    share, count = trial.identity["options"]["share"], trial.identity["options"]["splits"]
    return SplitsResult(
        table=trial.labels["world"],
        method=trial.labels["method"],
        seed=trial.identity["seed"],
        test_share=share / (1.0 - share),
        done=(),
        by_split=(),
        seconds=np.zeros(0),
        failures=tuple(
            SplitFailure(split=k, error=error.error, message=error.message, trace=error.trace)
            for k in range(count)
        ),
        warnings={},
    )


def _records(result: SplitsBesideTruth) -> tuple[Record, ...]:
    """Numbers over the splits, and those of the simulations that no split can give."""
    simulated = () if result.simulated is None else records(result.simulated)
    if result.summary is not None:
        simulated = result.summary.records
    numbers = result.splits.records()
    return (*numbers, *(record for record in simulated if record.metric.startswith("picf_")))
