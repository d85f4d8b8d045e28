"""The study of repeated splits: usual numbers of a table, beside coverage where truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray
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
from howsure.core.errors import InputError, UnanswerableError, within
from howsure.core.records import Record
from howsure.core.registry import check_known
from howsure.engine.catalogue import metric_named
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialError,
    TrialOutput,
    absolute,
    make_method,
    method_identity,
    numbers_hash,
    records_table,
    stacked,
    table_column,
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
    time_splits,
    unit_splits,
)
from howsure_studies.pointwise.study import PointwiseStudy

_PUBLISHED_SHARE: Final = 0.1
"""Share of test rows in the published splits."""
_BY_COLUMN: Final[Mapping[str, Literal["label", "time"]]] = {"unit": "label", "time": "time"}
"""Ways to divide by a column, with what it holds."""
METRICS: Final = ("rmse", "log_score", "empirical_coverage", "mean_width", "interval_score")
"""What is measured on each split."""


@final
@frozen(kw_only=True, eq=False)
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


@frozen(kw_only=True)
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

    def simulation(self, plan: Plan, world: str, entry: Mapping[str, Any], split: Split) -> Plan:
        """The plan of simulations in a table's world, with as many rows as a split has."""
        train, test = split
        return replace(
            plan,
            study=PointwiseStudy.name,
            worlds={world: entry},
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
    source asks for one division of its rows is divided so, and once. A ``table`` with ``split``
    (``unit`` or ``time``) and ``split_by``, a column of its file, is divided by `unit_splits` or
    `time_splits`, which does without ``share``; simulations have the rows of the last split. The
    column is left out of x unless it is among ``features``.
    ``metrics`` names measures to add, such as ``crps``; ``levels``, those of quantiles over which
    ``pinball`` is averaged.
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
        given = plan.worlds[world]
        if "world" in given or given.get("source", "forest") != "forest":
            raise InputError(f"world {world!r} must be a table to be split, got {dict(given)}")
        entry, division = _division(world, given, plan.folder)
        identity, files = world_identity(world, entry, plan.folder)
        data = {"data": identity["data"]}
        rows = len(table_data(data, files).y)
        cuts, told = _cuts(files, division, rows, options.splits, options.share)
        shared = _fixed(files) is None and division.get("split") != "time"
        share = options.share if shared else len(cuts[-1][1]) / rows
        for label, words in plan.methods.items():
            method = make_method(label, words, options.coverages)
            chosen = {
                "coverages": plain(answered(method, options.coverages)),
                "splits": len(cuts),
                "share": share,
                **told,
                **options.further(),
            }
            common = {
                "world": data,
                "method": method_identity(method, words),
                "options": chosen,
            }
            labels = {"world": world, "method": label}
            context = {"files": files, "division": division, "method": words}
            for seed in plan.seeds:
                yield self.trial({**common, "seed": seed}, labels, context)
        if options.simulations:
            yield from PointwiseStudy().trials(options.simulation(plan, world, entry, cuts[-1]))

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Run all splits of a table; it fails where every one does."""
        options, files = trial.identity["options"], trial.context["files"]
        coverages = tuple(options["coverages"])
        data = table_data(trial.identity["world"], files)
        division = trial.context["division"]
        count, share = options["splits"], options["share"]
        cuts, told = _cuts(files, division, len(data.y), count, share)
        if any(options[key] != value for key, value in told.items()):
            raise InputError(
                f"column {division['split_by']!r} has changed since the plan was read: run it again"
            )
        result = over_splits(
            data.x,
            data.y,
            make_method(trial.labels["method"], trial.context["method"], coverages),
            splits=cuts,
            way=options.get("split", "random"),
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


def _division(
    world: str, given: Mapping[str, Any], folder: Path
) -> tuple[dict[str, Any], dict[str, str]]:
    """The entry of a table without how it is divided, and that: nothing where it is at random."""
    entry = dict(given)
    keys: tuple[str, ...] = ("split", "split_by")
    asked = {key: str(entry.pop(key)) for key in keys if key in entry}
    if not asked:
        return entry, {}
    if len(asked) < 2 or "table" not in entry:
        raise InputError(
            f"world {world!r} must be a table of a file with split and split_by to be divided by a "
            f"column, got {dict(given)}"
        )
    check_known(asked["split"], tuple(_BY_COLUMN), f"split of world {world!r}")
    from howsure.inputs import open_table

    reading = {key: entry[key] for key in ("encoding", "decimal") if key in entry}
    names = open_table(absolute(folder, entry["table"]), **reading).names
    check_known(asked["split_by"], names, f"split_by of world {world!r}")
    beside = (entry.get("target"), asked["split_by"])
    features = [name for name in names if name not in beside]
    if not features:
        raise InputError(f"world {world!r} must have a column beside {beside}, got none")
    return {"features": features, **entry}, asked


def _fixed(files: Mapping[str, Any]) -> Split | None:
    """The one division that a table's source asks for, if it does."""
    from howsure_studies.tasks import uci_fixed

    return uci_fixed(files["uci"]) if "uci" in files else None


def _cuts(
    files: Mapping[str, Any], division: Mapping[str, str], rows: int, count: int, share: float
) -> tuple[tuple[Split, ...], dict[str, str]]:
    """The splits of a table, and what tells a division by a column: its way, and a hash.

    Without one they are those that were published for so many rows, unless one is fixed.
    """
    if not division:
        fixed = _fixed(files)
        made = published_splits(rows, count, share=share) if fixed is None else (fixed,)
        return made, {}
    way, column = division["split"], division["split_by"]
    codes = table_column(files, column, _BY_COLUMN[way])
    by_time = way == "time"
    with within(f"column {column!r}"):
        cuts = time_splits(codes, count) if by_time else unit_splits(codes, count, share=share)
    return cuts, {"split": way, "split_by": numbers_hash(codes)}


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
        way=trial.identity["options"].get("split", "random"),
    )


def _records(result: SplitsBesideTruth) -> tuple[Record, ...]:
    """Numbers over the splits, and those of the simulations that no split can give."""
    simulated = () if result.simulated is None else records(result.simulated)
    if result.summary is not None:
        simulated = result.summary.records
    numbers = result.splits.records()
    return (*numbers, *(record for record in simulated if record.metric.startswith("picf_")))
