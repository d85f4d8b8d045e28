"""What is told of worlds in a report on coverage at every point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from howsure.core import formats
from howsure.core.errors import UnanswerableError
from howsure.core.records import Record
from howsure.report.document import Cell, Column, Grid, Rows, Section, Tone, VerdictLine
from howsure.report.grids import number_cell, share_cell
from howsure.studies.engine import choice_of, overview
from howsure.studies.pointwise.figures import spread_figure
from howsure.studies.pointwise.panels import ALL, choices
from howsure.studies.pointwise.result import PointwiseResult, Which
from howsure.studies.pointwise.views import records
from howsure.studies.pointwise.words import (
    Finding,
    comparison_line,
    failed_line,
    finding,
    method_line,
)

MOST_REGIONS: Final = 5
"""The most regions listed of one method."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """What was found of the methods of one world, at one coverage.

    Attributes
    ----------
    name : str
        The world.
    results : tuple of PointwiseResult
        One a method, on one test set.
    coverage : float
        The nominal coverage that sentences and figures speak of.
    names : tuple of str, optional
        Names of the columns of x.
    held : mapping
        Findings of the methods that can be judged, on prediction and on confidence intervals.
    missing : tuple of VerdictLine
        Why other methods cannot be.
    numbers : tuple of tuple of Record
        Every number of each method, at every coverage.
    """

    name: str
    results: tuple[PointwiseResult, ...]
    coverage: float
    names: tuple[str, ...] | None
    held: Mapping[Which, tuple[Finding, ...]]
    missing: tuple[VerdictLine, ...]
    numbers: tuple[tuple[Record, ...], ...]

    @classmethod
    def of(
        cls,
        name: str,
        results: Sequence[PointwiseResult],
        coverage: float,
        names: Sequence[str] | None,
    ) -> World:
        """Judge every method."""
        held: dict[Which, list[Finding]] = {"picf": [], "cicf": []}
        missing: list[VerdictLine] = []
        fits = names is not None and len(names) == results[0].x.shape[1]
        known = tuple(names) if names is not None and fits else None
        for result in results:
            for which in ALL:
                try:
                    held[which].append(finding(result, which, coverage, known))
                except UnanswerableError as error:
                    if which == "picf":
                        missing.append(failed_line(result, str(error)))
        return cls(
            name=name,
            results=tuple(results),
            coverage=coverage,
            names=known,
            held={which: tuple(found) for which, found in held.items()},
            missing=tuple(missing),
            numbers=tuple(tuple(records(result)) for result in results),
        )

    def section(self) -> Section:
        """Everything that a page shows of the world."""
        best = comparison_line(self.held["picf"])
        told = map(method_line, (*self.held["picf"], *self.held["cicf"]))
        first = self.results[0]
        tables = [{_key(record): record for record in found} for found in self.numbers]
        grids = [
            *(_comparison(self.results, tables, which) for which in ALL),
            _trials(self.results, tables),
            _regions(self.held, self.coverage),
        ]
        return Section(
            title=self.name,
            facts={
                "Test points": f"{len(first.y):,}",
                "Training rows": f"{first.n_train:,}",
                "Columns of x": str(first.x.shape[1]),
                "Covariates": first.covariates,
                "Seed": str(first.seed),
            },
            lines=(*([best] if best else []), *told, *self.missing),
            grids=tuple(grid for grid in grids if grid is not None),
            choices=choices(self.results, self.held, self.coverage, self.names),
        )


def opening(worlds: Sequence[World], coverage: float) -> Section:
    """How every method covers, over the points of every world; empty where none can be judged."""
    every = [(world.name, found) for world in worlds for found in world.held["picf"]]
    if not every:
        return Section(title="")
    states: dict[str, dict[str, Cell]] = {}
    for name, found in every:
        cell = replace(share_cell(found.off), tone=found.tone)
        states.setdefault(found.result.method, {})[name] = cell
    told = "Share of test points significantly off nominal coverage."
    title = f"Points off nominal {formats.level(coverage)}"
    names = [
        found.result.method if len(worlds) == 1 else f"{n}: {found.result.method}"
        for n, found in every
    ]
    figure = spread_figure(names, [found.value for _, found in every], coverage)
    return Section(
        title="",
        grids=(overview(title, states, _STATES, told),),
        choices=choice_of("", [("", figure)]),
    )


_STATES: Final[Mapping[Tone, str]] = {
    "good": "Right",
    "bad": "Off",
    "undecided": "Undecided",
}


def _key(record: Record) -> tuple[str, float]:
    return record.metric, -1.0 if math.isnan(record.coverage) else record.coverage


_COMPARED: Final[Mapping[Which, tuple[str, tuple[tuple[str, str], ...]]]] = {
    "picf": (
        "Prediction intervals",
        (
            ("Mean PICP", "empirical_coverage"),
            ("Mean PICF", "picf_mean"),
            ("Failing points", "picf_points_off"),
            ("Mean width", "prediction_width"),
            ("Brier, raw", "picf_brier"),
            ("Brier, corrected", "picf_brier_corrected"),
            ("Bias²", "picf_bias_squared"),
            ("Variance", "picf_variance"),
        ),
    ),
    "cicf": (
        "Confidence intervals for the mean",
        (
            ("Mean CICP", "cicp"),
            ("Failing points", "cicf_points_off"),
            ("Mean width", "confidence_width"),
            ("Brier, raw", "cicf_brier"),
            ("Brier, corrected", "cicf_brier_corrected"),
            ("Bias²", "cicf_bias_squared"),
            ("Variance", "cicf_variance"),
        ),
    ),
}


def _comparison(
    results: Sequence[PointwiseResult],
    tables: Sequence[Mapping[tuple[str, float], Record]],
    which: Which,
) -> Grid | None:
    """Methods beside each other, one part a coverage; None where nothing is known."""
    title, shown = _COMPARED[which]
    parts = []
    reasons: dict[str, None] = {}
    for coverage in sorted({c for result in results for c in result.coverages}):
        rows = []
        for result, table in zip(results, tables, strict=True):
            if (shown[0][1], coverage) not in table:
                continue
            found = [table[metric, coverage] for _, metric in shown]
            if all(math.isnan(record.value) for record in found):
                why = found[0].reason.removeprefix(f"{result.method} ")
                reasons[f"{result.method}: {why}."] = None
                continue
            rows.append((Cell(text=result.method), *map(_number, found)))
        if rows:
            parts.append(Rows(title=f"Nominal {formats.level(coverage)}", rows=tuple(rows)))
    if not parts:
        return None
    columns = [Column(title="Method"), *(Column(title=words, numeric=True) for words, _ in shown)]
    notes = (
        "± is the Monte Carlo standard error over trials; that of a raw Brier score is that of the "
        "corrected one. MC: the raw score that Monte Carlo error alone would give.",
        *reasons,
    )
    return Grid(title=title, columns=tuple(columns), parts=tuple(parts), notes=notes)


def _number(record: Record) -> Cell:
    """A number with its error; a raw Brier score with its Monte Carlo part."""
    if math.isnan(record.value):
        return Cell(text=formats.MISSING)
    if record.metric.endswith("points_off"):
        return share_cell(record.value)
    if record.metric.endswith("_brier"):
        noise = formats.number(record.null, 2) if math.isfinite(record.null) else ""
        small = f"MC {noise}" if noise else ""
        return number_cell(record.value, small)
    value, error = formats.estimate(record.value, record.standard_error)
    return Cell(text=value, small=f"± {error}" if error else "", key=repr(record.value))


def _trials(
    results: Sequence[PointwiseResult], tables: Sequence[Mapping[tuple[str, float], Record]]
) -> Grid:
    """Log-likelihood, failures, and how many trials were needed."""
    rows = []
    for result, table in zip(results, tables, strict=True):
        failures = len(result.failures)
        first = result.failures[0] if failures else None
        told = f"{first.stage}: {first.error}: {first.message}" if first else ""
        rows.append(
            (
                Cell(text=result.method, small=told),
                _number(table["log_likelihood", -1.0]),
                Cell(text=f"{result.trials:,}", key=str(result.trials)),
                Cell(text=f"{result.trials_planned:,}", key=str(result.trials_planned)),
                Cell(text=str(failures), key=str(failures)),
                Cell(
                    text=str(sum(result.warnings.values())), key=str(sum(result.warnings.values()))
                ),
                Cell(text=result.stop),
            )
        )
    titles = (
        ("Method", False),
        ("Log-likelihood", True),
        ("Trials", True),
        ("At most", True),
        ("Failed", True),
        ("Warnings", True),
        ("Why they ended", False),
    )
    columns = tuple(Column(title=title, numeric=numeric) for title, numeric in titles)
    return Grid(title="Trials", columns=columns, parts=(Rows(rows=tuple(rows)),))


def _regions(held: Mapping[Which, Sequence[Finding]], coverage: float) -> Grid | None:
    """Where each method fails; None where none does."""
    parts, notes = [], []
    for which in ALL:
        rows = []
        for found in held[which]:
            where = found.where.columns
            if found.where.notes:
                notes.append(found.where.notes)
            rows += [
                (
                    Cell(text=str(where["where"][row])),
                    Cell(text=found.result.method),
                    share_cell(where["coverage"][row]),
                    Cell(text="under-covers" if where["verdict"][row] < 0 else "over-covers"),
                    Cell(text=f"{where['points'][row]:,}", key=str(int(where["points"][row]))),
                )
                for row in range(min(len(found.where), MOST_REGIONS))
            ]
        if rows:
            parts.append(Rows(title=_COMPARED[which][0], rows=tuple(rows)))
    if not parts:
        return None
    columns = (
        Column(title="Where"),
        Column(title="Method"),
        Column(title="Mean coverage there", numeric=True),
        Column(title="Verdict"),
        Column(title="Test points", numeric=True),
    )
    title = f"Where coverage differs significantly from nominal {formats.level(coverage)}"
    return Grid(title=title, columns=columns, parts=tuple(parts), notes=tuple(dict.fromkeys(notes)))
