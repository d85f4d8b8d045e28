"""How much does empirical coverage differ from one data set to the next?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from scipy.stats import betabinom

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Count, Fraction, plain
from howsure.core.records import Direction, Record, ResultTable
from howsure.core.rng import child
from howsure.figures import Axis, Figure, Layer, Mark
from howsure.figures.figure import REFERENCE
from howsure.report.document import Document, Section, VerdictLine
from howsure_studies.engine import (
    Combined,
    Group,
    Plan,
    Store,
    Study,
    Trial,
    TrialOutput,
    choice_of,
    make_method,
    make_world,
    method_identity,
    records_table,
    stacked,
    world_identity,
)

_TAIL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Checked):
    """Options of a plan: nominal coverage, data sets, and the rows of each."""

    coverage: Fraction = 0.9
    repeats: Count = 200
    n_train: Count = 600
    n_test: Count = 500


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """Coverage of one method in every data set, and its distribution where that is known."""

    method: str
    coverages: FloatArray
    widths: FloatArray
    options: Options
    calibration: float | None  # share or number of rows, of split conformal alone

    @property
    def nominal(self) -> float:
        """Nominal coverage."""
        return self.options.coverage

    @property
    def known(self) -> Any | None:
        """The law of the hits of split conformal among the test rows; None for other methods."""
        if self.calibration is None:
            return None
        held, rows = self.calibration, self.options.n_train
        n = max(round(held * rows), 1) if held < 1 else int(held)
        k = math.ceil((n + 1) * self.nominal - 1e-9)
        return betabinom(self.options.n_test, k, n + 1 - k) if k <= n else None


@final
class CoverageScatter(Study):
    """A trial fits one method to many data sets, and counts the test rows that it covers."""

    __slots__ = ()
    name: ClassVar[str] = "coverage_scatter"
    version: ClassVar[int] = 1
    headline: ClassVar[tuple[str, ...]] = ("empirical_coverage", "coverage_sd", "width")
    kinds: ClassVar[tuple[type, ...]] = (Scatter,)

    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """Every world, method and seed."""
        options = plan.read(Options)
        found = []
        for world, entry in plan.worlds.items():
            identity, files = world_identity(world, entry, plan.folder)
            for label, words in plan.methods.items():
                method = make_method(label, words, (options.coverage,))
                common = {
                    "world": identity,
                    "method": method_identity(method, words),
                    "options": plain(options),
                }
                labels, context = {"world": world, "method": label}, {"files": files}
                context = {**context, "method": words}
                found += [
                    self.trial({**common, "seed": seed}, labels, context) for seed in plan.seeds
                ]
        return tuple(found)

    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Coverage and width in each data set: its first rows train, its last are tested."""
        told = trial.identity
        options = Options(**told["options"])
        world = make_world(told["world"], trial.context["files"])
        label = trial.labels["method"]
        method = make_method(label, trial.context["method"], (options.coverage,))
        covered, width = np.empty(options.repeats), np.empty(options.repeats)
        n = options.n_train
        for repeat in range(options.repeats):
            rows = world.training_set(told["seed"], repeat, n + options.n_test)
            rng = child(told["seed"], "coverage_scatter", "fit", repeat)
            fitted = method.fit(rows.x[:n], rows.y[:n], rng)
            lower, upper = fitted.predict(rows.x[n:]).outcome.interval(options.coverage)
            covered[repeat] = np.mean((lower <= rows.y[n:]) & (rows.y[n:] <= upper))
            width[repeat] = np.mean(upper - lower)
        columns = {"empirical_coverage": covered, "width": width}
        return TrialOutput(
            records=ResultTable(name="records", columns=columns),
            keys={**trial.labels, "seed": told["seed"]},
        )

    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> list[Scatter]:
        """Coverage and width of every data set of a trial, as `run` kept them."""
        results = []
        for trial in trials:
            table = store.table(trial.address, "records")
            covered, width = (table[n].to_numpy() for n in ("empirical_coverage", "width"))
            results.append(
                Scatter(
                    method=trial.labels["method"],
                    coverages=covered,
                    widths=width,
                    options=Options(**trial.identity["options"]),
                    calibration=_calibration(trial.identity["method"]),
                )
            )
        return results

    def combine(self, plan: Plan, results: Mapping[Group, Sequence[Scatter]]) -> Combined:
        """Mean and spread of coverage, and `Scatter`s by world."""
        by_world: dict[str, list[Scatter]] = {}
        tables = []
        for (world, method, seed), own in results.items():
            name = f"{method}, seed {seed}" if len(plan.seeds) > 1 else method
            for scatter in (replace(each, method=name) for each in own):
                by_world.setdefault(world, []).append(scatter)
                keys = {"world": world, "method": method, "seed": seed}
                tables.append(records_table(_records(scatter), keys))
        return Combined(table=stacked(tables), results=by_world)

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """The default page, with a headline and a figure before its tables."""
        made = super().page(combined, facts=facts, command=command)
        lines = [_line(world, found) for world, found in combined.results.items()]
        figures = [(world, _figure(found)) for world, found in combined.results.items()]
        opening = Section(title="", lines=tuple(lines), choices=choice_of("World", figures))
        title = "How much does coverage differ from one data set to the next?"
        return replace(made, title=title, opening=opening, lines=tuple(lines))


def _calibration(method: Mapping[str, Any]) -> float | None:
    """What split conformal sets aside; None for other methods."""
    if method["method"] != "split_conformal":
        return None
    return float(method["options"]["calibration"])


def _records(found: Scatter) -> list[Record]:
    """The mean and the standard deviation of coverage, with what is known of them."""
    rows, m, width = len(found.coverages), found.options.n_test, found.widths
    spread = float(np.std(found.coverages, ddof=1)) if rows > 1 else math.nan
    error = spread / math.sqrt(rows)
    known = found.known
    common = {"n": float(rows), "coverage": found.nominal}
    return [
        Record(
            metric="empirical_coverage",
            value=float(np.mean(found.coverages)),
            standard_error=error,
            direction=Direction.TARGET,
            target=found.nominal,
            null=math.nan if known is None else float(known.mean()) / m,
            **common,
        ),
        Record(
            metric="coverage_sd",
            value=spread,
            standard_error=spread / math.sqrt(2 * (rows - 1)) if rows > 1 else math.nan,
            direction=Direction.LOWER,
            null=math.nan if known is None else float(known.std()) / m,
            **common,
        ),
        Record(
            metric="width",
            value=float(np.mean(width)),
            standard_error=float(np.std(width, ddof=1)) / math.sqrt(rows) if rows > 1 else math.nan,
            direction=Direction.LOWER,
            units="y",
            **common,
        ),
    ]


def _line(world: str, found: Sequence[Scatter]) -> VerdictLine:
    """Whose coverage differs most."""
    most = max(found, key=lambda one: float(np.std(one.coverages)))
    low, high = np.quantile(most.coverages, [_TAIL, 1 - _TAIL])
    text = (
        f"At nominal {formats.level(most.nominal)}, coverage of {most.method} differs most: "
        f"from {formats.percent(low)} to {formats.percent(high)} in 90 % of data sets."
    )
    return VerdictLine(text=text, question=world)


def _figure(found: Sequence[Scatter]) -> Figure:
    """Where the coverage of most data sets lies, beside where it should by the closed form."""
    rows = np.arange(len(found), dtype=np.float64)
    names = tuple(one.method for one in found)
    low, high = np.array([np.quantile(one.coverages, [_TAIL, 1 - _TAIL]) for one in found]).T
    sure = [(at, one.known) for at, one in zip(rows, found, strict=True) if one.known is not None]
    seen: dict[str, Any] = {"labels": names, "series": "this study", "offset": -0.15}
    layers = [
        Layer(mark=Mark.RULE, x=np.array([found[0].nominal]), series="nominal", colour=REFERENCE),
        Layer(mark=Mark.INTERVALS, y=rows, lower=low, upper=high, **seen, listed=False),
        Layer(mark=Mark.POINTS, x=np.array([o.coverages.mean() for o in found]), y=rows, **seen),
    ]
    if sure:
        hits = [(law.ppf(_TAIL), law.mean(), law.ppf(1 - _TAIL)) for _, law in sure]
        ends = np.array(hits) / np.array([[law.support()[1]] for _, law in sure])
        at = np.array([row for row, _ in sure])
        exact: dict[str, Any] = {"series": "beta-binomial", "colour": 1, "offset": 0.15}
        layers += [
            Layer(
                mark=Mark.INTERVALS, y=at, lower=ends[:, 0], upper=ends[:, 2], **exact, listed=False
            ),
            Layer(mark=Mark.POINTS, x=ends[:, 1], y=at, **exact),
        ]
    return Figure(
        name="coverage_scatter",
        question="How far from nominal is the coverage of one data set?",
        title="Coverage of single data sets",
        reading="Bars hold the coverage of 90 % of data sets; marks are means.",
        x=Axis(title="Empirical coverage", kind="percent"),
        y=Axis(kind="category", categories=names),
        layers=tuple(layers),
        naming="Method",
    )
