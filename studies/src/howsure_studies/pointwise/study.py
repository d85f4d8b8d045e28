"""The study: blocks of simulations as trials, what a store keeps of one, and how they join."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Literal, cast, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, Coverages, Fraction, plain
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import ResultTable
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialError,
    TrialOutput,
    coverage_of,
    make_method,
    make_world,
    method_identity,
    noise_of,
    records_table,
    stacked,
    world_identity,
)
from howsure_studies.methods.interface import COVERAGES, Fitted, Method
from howsure_studies.pointwise.finding import PointwiseSummary
from howsure_studies.pointwise.measures import per_trial, records
from howsure_studies.pointwise.simulation import (
    Failure,
    PointwiseResult,
    Stage,
    answered,
    check_trials,
    joined,
    pointwise,
)
from howsure_studies.tasks.worlds import Truth, World

_FACTS: Final = (
    *("world", "method", "seed", "covariates", "n_train", "confidence"),
    *("trials_planned", "stop", "first_trial"),
)

_READ: Final = {"predictions": ("lower", "upper", "mean_lower", "mean_upper", "mass")}
"""Columns that are read again, of a table with more."""


@frozen(kw_only=True)
class _PointwiseOptions(Checked):
    """Options of a plan, with their defaults."""

    coverages: Coverages | Literal["own"] = COVERAGES
    simulations: Count = 100
    block: Count | None = None
    n_train: Count | None = None
    n_test: Count | None = None
    covariates: Literal["random", "fixed"] = "random"
    confidence: Fraction = 0.95

    def make_method(self, label: str, entry: Mapping[str, Any]) -> Method:
        """A method of the plan, at these coverages where it fixes them."""
        return make_method(label, entry, None if self.coverages == "own" else self.coverages)

    def identity(self, method: Method, n_train: int | None) -> dict[str, Any]:
        """What decides the outcome of a block, apart from its place; a method may have its rows."""
        wanted = None if self.coverages == "own" else self.coverages
        own = self if n_train is None else replace(self, n_train=n_train)  # which checks it
        return {
            "coverages": plain(answered(method, wanted)),
            "n_train": own.n_train,
            "n_test": self.n_test,
            "covariates": self.covariates,
        }

    def check_cut(self, world: World, n_train: int | None) -> None:
        """Refuse a table that is too small to be cut so often, before any simulation is run."""
        if self.covariates == "fixed":
            raise InputError("covariates must be 'random' in a cut table, got 'fixed'")
        rows = self.n_train if n_train is None else n_train
        check_trials(world, 0, self.simulations, rows, self.n_test)

    def blocks(self, method: Method) -> list[dict[str, int]]:
        """First trial and number of trials of each block."""
        size = self.block or block_size(method)
        firsts = range(0, self.simulations, size)
        return [{"first_trial": k, "trials": min(size, self.simulations - k)} for k in firsts]


@final
class PointwiseStudy(Study):
    """Coverage at every point: a trial is a block of simulations.

    Options of a plan: ``simulations`` (training sets of each world, method and seed; 100),
    ``coverages`` (or ``"own"``: each method's), ``n_train``, ``n_test``, ``covariates``,
    ``confidence`` (of the bands), and
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
    kinds: ClassVar[tuple[type, ...]] = (PointwiseSummary,)
    report: ClassVar[str] = "howsure_studies.pointwise.page:pointwise_report"

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Blocks of every world, method and seed."""
        options = plan.read(_PointwiseOptions)
        made = {label: options.make_method(label, entry) for label, entry in plan.methods.items()}
        trials: list[Trial] = []
        for world, entry in plan.worlds.items():
            identity, files = world_identity(world, entry, plan.folder)
            cut = make_world(identity, files) if identity.get("source") == "cut" else None
            for label, method in made.items():
                words = plan.methods[label]
                if cut is not None:
                    options.check_cut(cut, words.get("n_train"))
                common = {
                    "world": identity,
                    "method": method_identity(method, words),
                    "options": options.identity(method, words.get("n_train")),
                }
                labels = {"world": world, "method": label}
                context = {"files": files, "method": words}
                trials += [
                    self.trial({**common, "seed": seed, **block}, labels, context)
                    for seed in plan.seeds
                    for block in options.blocks(method)
                ]
        return tuple(trials)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Run a block; it fails where every simulation of it does."""
        coverages = tuple(trial.identity["options"]["coverages"])
        method = make_method(trial.labels["method"], trial.context["method"], coverages)
        result = _simulated(trial, method)
        if result.failures and not result.trials:
            first = result.failures[0]
            error = UnanswerableError(
                f"all {len(result.failures)} simulations failed; the first in {first.stage}: "
                f"{first.error}: {first.message}"
            )
            error.add_note(first.trace)
            raise error
        return _to_output(result)

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[PointwiseResult]:
        """The blocks of a method, joined; of one that failed, each simulation failed."""
        options = plan.read(_PointwiseOptions)
        whole = joined([_read(trial, store) for trial in trials], planned=options.simulations)
        return [replace(whole, confidence=options.confidence)]

    def combine(
        self, plan: Plan, results: Mapping[Group, Sequence[PointwiseResult | PointwiseSummary]]
    ) -> Combined:
        """A result of each world, method and seed, named as the plan does."""
        by_world: dict[str, list[PointwiseResult | PointwiseSummary]] = {}
        tables = []
        named: PointwiseResult | PointwiseSummary
        for (world, method, seed), own in results.items():
            shown = f"{method}, seed {seed}" if len(plan.seeds) > 1 else method
            for result in own:
                if isinstance(result, PointwiseSummary):
                    named, numbers = result.called(shown, world), result.records
                else:
                    named, numbers = replace(result, world=world, method=shown), records(result)
                keys: Mapping[str, str | int] = {"world": world, "method": method, "seed": seed}
                tables.append(records_table(numbers, keys))
                by_world.setdefault(world, []).append(named)
        return Combined(table=stacked(tables), results=by_world)

    def shortened(self, result: PointwiseResult) -> PointwiseSummary:
        """What the page tells, at the coverage that it speaks of."""
        return PointwiseSummary.of(result, coverage_of(result.coverages, None)).shortened()


def block_size(method: Method) -> int:
    """Simulations of one trial: the least multiple of those fitted at once that is 10 or more."""
    return method.batch * math.ceil(10 / method.batch)


def _simulated(trial: Trial, method: Method) -> PointwiseResult:
    identity = trial.identity
    options = identity["options"]
    return pointwise(
        make_world(identity["world"], trial.context["files"]),
        method,
        coverages=tuple(options["coverages"]),
        trials=identity["trials"],
        first_trial=identity["first_trial"],
        n_train=options["n_train"],
        n_test=options["n_test"],
        covariates=options["covariates"],
        seed=identity["seed"],
    )


def _read(trial: Trial, store: Store) -> PointwiseResult:
    """What a store keeps of a block, under the names of the plan."""
    address = trial.address
    entry = store.entry(address)
    if entry.failure is not None:
        result = _all_failed(trial, entry.failure)
    else:
        tables = {name: store.table(address, name, _READ.get(name)) for name in entry.tables}
        result = _from_tables(trial, entry.facts, tables)
    return replace(result, world=trial.labels["world"], method=trial.labels["method"])


@final
@dataclass(frozen=True)
class _Failing(Method):
    """Stands for a method that failed in every simulation of a block."""

    @property
    def name(self) -> str:
        return "failed"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        raise UnanswerableError("failed before")


def _all_failed(trial: Trial, error: TrialError) -> PointwiseResult:
    """A failed block as a result: what the first simulation met stands for all."""
    pattern = r"all \d+ simulations failed; the first in (fit|predict|intervals): (\w+): (.*)"
    first = re.fullmatch(pattern, error.message, re.DOTALL)
    stage, name, message = first.groups() if first else ("fit", error.error, error.message)
    result = _simulated(trial, _Failing())
    failures = tuple(
        Failure(
            trial=failure.trial,
            stage=cast("Stage", stage),
            error=name,
            message=message,
            trace=error.trace,
        )
        for failure in result.failures
    )
    return replace(result, failures=failures)


def _to_output(result: PointwiseResult) -> TrialOutput:
    """A result as what a store keeps; `_from_tables` is the way back.

    ``predictions`` has one row a simulation, test point and coverage: ends of the prediction
    interval (``lower``, ``upper``) and of the confidence interval (``mean_lower``,
    ``mean_upper``), and ``mass``, the probability that the former holds a new y. ``points`` has
    the test set and the truth. ``records`` has one row a simulation and coverage.
    """
    facts: dict[str, Any] = {name: getattr(result, name) for name in _FACTS}
    facts |= {
        "coverages": list(result.coverages),
        "failures": [asdict(failure) for failure in result.failures],
        "warnings": dict(result.warnings),
        "reasons": dict(result.reasons),
        "dimension": result.x.shape[1],
        "knows_mean": result.mean_ends is not None,
    }
    return TrialOutput(
        records=_records(result),
        predictions=ResultTable(name="predictions", columns=_predictions(result)),
        tables={"points": ResultTable(name="points", columns=_points(result))},
        keys={"world": result.world, "method": result.method, "seed": result.seed},
        facts=facts,
        failed_parts=len(result.failures),
    )


def _from_tables(
    trial: Trial, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]
) -> PointwiseResult:
    """The result that a store kept, arrays bit by bit."""
    predictions, points, numbers = (tables[n] for n in ("predictions", "points", "records"))
    x = np.column_stack([_column(points, f"x{k}") for k in range(facts["dimension"])])
    truth = None
    if "scale" in points.column_names:
        noise = noise_of(trial.identity["world"], trial.context["files"])
        truth = Truth(_column(points, "mean"), _column(points, "scale"), noise)
    coverages = tuple(facts["coverages"])

    def cube(name: str) -> FloatArray:
        return _column(predictions, name).reshape(-1, len(x), len(coverages))

    likelihood = np.array(numbers["metric"].to_pylist()) == "log_likelihood"
    return PointwiseResult(
        **{name: facts[name] for name in _FACTS},
        coverages=coverages,
        x=x,
        y=_column(points, "y"),
        truth=truth,
        lower=cube("lower"),
        upper=cube("upper"),
        mass=None if truth is None else cube("mass"),
        mean_ends=(cube("mean_lower"), cube("mean_upper")) if facts["knows_mean"] else None,
        log_likelihood=_column(numbers, "value")[likelihood],
        failures=tuple(Failure(**failure) for failure in facts["failures"]),
        warnings=facts["warnings"],
        reasons=facts["reasons"],
    )


def _records(result: PointwiseResult) -> ResultTable:
    """One row a simulation and number: PICP, CICP and widths at each coverage, likelihood."""
    numbers = _simulations(result)
    parts = [
        (metric, coverage, values)
        for coverage in result.coverages
        for metric, values in per_trial(result, coverage).items()
    ]
    parts.append(("log_likelihood", np.nan, result.log_likelihood))
    count = len(numbers)
    columns: dict[str, AnyArray] = {
        "simulation": np.tile(numbers, len(parts)),
        "metric": np.repeat([metric for metric, _, _ in parts], count),
        "coverage": np.repeat([coverage for _, coverage, _ in parts], count),
        "value": np.concatenate([values for _, _, values in parts]),
    }
    return ResultTable(name="records", columns=columns)


def _predictions(result: PointwiseResult) -> dict[str, AnyArray]:
    shape = result.lower.shape
    number, point, coverage = np.broadcast_arrays(
        _simulations(result)[:, None, None],
        np.arange(shape[1])[:, None],
        np.array(result.coverages),
    )
    columns: dict[str, AnyArray] = {
        "simulation": number,
        "point": point,
        "coverage": coverage,
        "lower": result.lower,
        "upper": result.upper,
    }
    if result.mean_ends is not None:
        columns |= {"mean_lower": result.mean_ends[0], "mean_upper": result.mean_ends[1]}
    if result.mass is not None:
        columns["mass"] = result.mass
    return {name: values.ravel() for name, values in columns.items()}


def _points(result: PointwiseResult) -> dict[str, AnyArray]:
    columns: dict[str, AnyArray] = {"point": np.arange(len(result.y))}
    columns |= {f"x{k}": result.x[:, k] for k in range(result.x.shape[1])}
    columns["y"] = result.y
    if result.truth is not None:
        columns |= {"mean": result.truth.mean, "scale": result.truth.scale}
    return columns


def _simulations(result: PointwiseResult) -> IntArray:
    """Numbers of the simulations that succeeded."""
    failed = [failure.trial for failure in result.failures]
    tried = np.arange(result.first_trial, result.first_trial + result.tried)
    return np.setdiff1d(tried, failed)


def _column(table: pa.Table, name: str) -> FloatArray:
    chunks = [np.from_dlpack(chunk) for chunk in table[name].chunks]
    return np.concatenate(chunks, dtype=np.float64) if chunks else np.empty(0)
