"""Parts of a page on coverage under shift, and their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.records import Record
from howsure.report.document import TONES, Cell, Column, Grid, Rows, Section, Tone
from howsure.report.grids import number_cell, share_cell, sort_key
from howsure.studies.engine import overview
from howsure.studies.shift.findings import (
    TOLERANCE,
    TONE_OF,
    Finding,
    kept_count,
    published_of,
    shared_part,
)
from howsure.studies.shift.panels import across_choices, task_choices, trade_choice
from howsure.studies.shift.views import average_errors
from howsure.studies.shift.words import cost_lines, task_lines

ACROSS: Final = "Across datasets"
"""The title of what compares methods over datasets."""
_QUANTITIES: Final[Mapping[str, str]] = {
    "test_coverage": "Coverage",
    "prediction_rate": "Prediction rate",
    "val_mae": "Validation MAE",
    "val_width": "Validation width",
}


def opening(findings: Sequence[Finding], places: Mapping[str, int]) -> Section:
    """Coverage of methods × datasets at one coverage, and what it costs."""
    _, inside = _compared(findings)
    states: dict[str, dict[str, Cell]] = {method: {} for method in _ordered(findings)}
    for found in findings:
        states[found.method][found.task] = replace(_measured(found, "test_coverage"), small="")
    coverage = findings[0].result.coverage
    title = f"Coverage at nominal {formats.level(coverage)}"
    return Section(
        title="",
        lines=cost_lines(findings),
        grids=(overview(title, states, _STATES, f"Of the accepted rows. {_meaning(coverage)}"),),
        choices=trade_choice(inside, places),
    )


def across_section(findings: Sequence[Finding], places: Mapping[str, int]) -> Section:
    """Averages, ranks and degrees over all datasets, of the methods and datasets with answers."""
    methods = _ordered(findings)
    compared, inside = _compared(findings)
    facts = {
        "Datasets compared": ", ".join(dict.fromkeys(f.task for f in inside)),
        "Methods compared": str(len(compared)),
        "Left out": ", ".join(method for method in methods if method not in compared),
    }
    selective = [name for name in methods if any(f.selective for f in findings if f.method == name)]
    grids = [_averages(findings, methods), _by_task(findings, methods, "test_coverage")]
    if selective:
        grids.append(_by_task(findings, selective, "prediction_rate"))
    return Section(
        title=ACROSS,
        facts={name: fact for name, fact in facts.items() if fact},
        grids=tuple(grids),
        choices=across_choices(inside, findings, places),
    )


def _compared(findings: Sequence[Finding]) -> tuple[tuple[str, ...], list[Finding]]:
    """The methods that can be compared, and what was found of them on the datasets of all."""
    methods, tasks = shared_part(findings)
    return methods, [f for f in findings if f.method in methods and f.task in tasks]


def task_section(findings: Sequence[Finding], coverage: float) -> Section:
    """Everything of one task; sentences and figures are of one coverage, tables of all."""
    spoken = [found for found in findings if found.result.coverage == coverage]
    first = (spoken or findings)[0].result
    grids = [_tests(findings), _validation(findings), _beside(findings)]
    runs = sorted({len(found.result.runs) for found in findings})
    return Section(
        title=first.task,
        facts={
            "Validation rows": f"{first.runs[0].val.n:,}",
            "Test rows": f"{first.runs[0].tests[first.tests[0]].n:,}",
            "Test parts": ", ".join(first.tests),
            "Runs": " or ".join(map(str, runs)),
            "Units of y": "–" if first.units == "1" else first.units,
        },
        lines=task_lines(spoken),
        grids=tuple(grid for grid in grids if grid is not None),
        choices=task_choices(spoken),
    )


def _ordered(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Methods by how often coverage is nominal, the most often first; then by coverage error."""
    tasks = tuple(dict.fromkeys(found.task for found in findings))

    def key(method: str) -> tuple[int, float]:
        off = [f.record("coverage_error").value for f in findings if f.method == method]
        known = [value for value in off if math.isfinite(value)]
        return -kept_count(findings, method, tasks), float(np.mean(known)) if known else math.inf

    return tuple(sorted(dict.fromkeys(found.method for found in findings), key=key))


def _averages(findings: Sequence[Finding], methods: Sequence[str]) -> Grid:
    """Over the datasets that a method has an answer for."""
    table = average_errors([found.result for found in findings])
    at = {str(name): row for row, name in enumerate(table.columns["method"])}
    rows = []
    for method in methods:
        own = [found for found in findings if found.method == method]
        error, spread, null = (
            float(table.columns[name][at[method]])
            for name in ("coverage_error", "standard_error", "null")
        )
        rates = [found.record("prediction_rate").value for found in own]
        known = [rate for rate in rates if math.isfinite(rate)]
        count = int(table.columns["tasks"][at[method]])
        kept = kept_count(own, method, [found.task for found in own])
        rate = float(np.mean(known)) if known else math.nan
        rows.append(
            (
                Cell(text=method),
                Cell(text=f"{kept} of {count}", key=str(kept)),
                _points(error, spread),
                _points(null),
                share_cell(rate),
            )
        )
    titles = ("Nominal coverage on", "Coverage error, points", "Chance alone", "Prediction rate")
    columns = (Column(title="Method"), *(Column(title=t, numeric=True) for t in titles))
    notes = (
        "Averages over datasets, of their main tests. Coverage error is |coverage − nominal|, "
        "± its standard error for these datasets. Chance alone: the error of a model of nominal "
        "coverage.",
    )
    return Grid(title="Averages", columns=columns, parts=(Rows(rows=tuple(rows)),), notes=notes)


def _by_task(findings: Sequence[Finding], methods: Sequence[str], measure: str) -> Grid:
    tasks = tuple(dict.fromkeys(found.task for found in findings))
    held = {(found.method, found.task): found for found in findings}
    rows = []
    for method in methods:
        cells = [Cell(text=method)]
        for task in tasks:
            found = held.get((method, task))
            cells.append(_missing() if found is None else _measured(found, measure))
        rows.append(tuple(cells))
    coverage = findings[0].result.coverage
    notes = [f"Small: {_level(findings)} intervals over models and rows, in percent."]
    if measure == "test_coverage":
        notes.insert(
            0, f"Nominal {formats.level(coverage)}; of the accepted rows. {legend(coverage)}"
        )
    else:
        notes.insert(0, "Share of rows accepted, by the methods that may reject rows.")
    columns = (Column(title="Method"), *(Column(title=task, numeric=True) for task in tasks))
    title = "Coverage by dataset" if measure == "test_coverage" else "Prediction rate by dataset"
    return Grid(title=title, columns=columns, parts=(Rows(rows=tuple(rows)),), notes=tuple(notes))


_STATES: Final[Mapping[Tone, str]] = {
    "good": "Nominal",
    "bad": "Below",
    "watch": "Above",
    "undecided": "Undecided",
}


def legend(coverage: float) -> str:
    """What the marks of verdicts mean."""
    told = "; ".join(f"{TONES[tone][0]} {words.lower()}" for tone, words in _STATES.items())
    return f"{told}. {_meaning(coverage)}"


def _meaning(coverage: float) -> str:
    points = f"{100 * TOLERANCE * (1 - coverage):.2g} points"
    return f"Nominal: shown to lie within {points}; below, above: significantly."


def _tests(findings: Sequence[Finding]) -> Grid:
    """All test parts at all coverages, one part of the table each."""
    parts = []
    several = len({found.result.coverage for found in findings}) > 1
    tests = dict.fromkeys(test for found in findings for test in found.result.tests)
    for coverage in sorted({found.result.coverage for found in findings}):
        for test in tests:
            rows = [
                (
                    Cell(text=found.method),
                    _measured(found, "test_coverage", test),
                    _measured(found, "prediction_rate", test),
                    *(_number(found.record(name, test)) for name in ("test_width", "test_mae")),
                )
                for found in findings
                if found.result.coverage == coverage and test in found.result.tests
            ]
            level = f", nominal {formats.level(coverage)}" if several else ""
            parts.append(Rows(title=f"Test {test}{level}", rows=tuple(rows)))
    if len(parts) == 1:
        parts = [replace(parts[0], title="")]
    units = _units(findings)
    columns = (
        Column(title="Method"),
        *(
            Column(title=title, numeric=True)
            for title in ("Coverage", "Prediction rate", f"Width{units}", f"MAE{units}")
        ),
    )
    told = dict.fromkeys(f"{f.method}: {note}." for f in findings for note in f.result.notes)
    reasons: dict[str, dict[str, None]] = {}
    for found in findings:
        if why := found.record("test_coverage").reason:
            reasons.setdefault(why, {})[found.method] = None
    limits = (f"{', '.join(methods)}: {why}." for why, methods in reasons.items())
    notes = (
        f"Of the accepted rows. {legend(findings[0].result.coverage)} "
        f"Small: {_level(findings)} intervals over models and rows.",
        *limits,
        *told,
    )
    return Grid(title="Test rows", columns=columns, parts=tuple(parts), notes=notes)


def _validation(findings: Sequence[Finding]) -> Grid:
    parts = []
    coverages = sorted({found.result.coverage for found in findings})
    names = ("val_mae", "val_width")
    for coverage in coverages:
        rows = [
            (
                Cell(text=found.method),
                *(_number(found.record(name)) for name in names),
                share_cell(found.record("val_coverage").value),
                share_cell(
                    found.record("relative_mae_change").value,
                    small=formats.between(found.record("relative_mae_change")).strip(),
                ),
            )
            for found in findings
            if found.result.coverage == coverage
        ]
        title = f"Nominal {formats.level(coverage)}" if len(coverages) > 1 else ""
        parts.append(Rows(title=title, rows=tuple(rows)))
    units = _units(findings)
    titles = (f"MAE{units}", f"Width{units}", "Coverage", "Change of MAE to test")
    columns = (Column(title="Method"), *(Column(title=t, numeric=True) for t in titles))
    notes = ("All validation rows, on which intervals are calibrated.",)
    return Grid(title="Validation rows", columns=columns, parts=tuple(parts), notes=notes)


def _beside(findings: Sequence[Finding]) -> Grid | None:
    """Published numbers beside ours; None where there are none."""
    parts, tables = [], dict[str, None]()
    several = len({found.result.coverage for found in findings}) > 1
    for coverage in sorted({found.result.coverage for found in findings}):
        held = [found for found in findings if found.result.coverage == coverage]
        for quantity, title in _QUANTITIES.items():
            rows = []
            for found in held:
                for theirs in published_of(found):
                    everything = quantity == "prediction_rate" and not found.selective
                    if theirs.quantity != quantity or everything:
                        continue
                    tables[theirs.table] = None
                    ours = found.record(quantity)
                    show = _percents if quantity in ("test_coverage", "prediction_rate") else _plain
                    rows.append((Cell(text=found.method), *show(ours, theirs.mean, theirs.sd)))
            level = f", nominal {formats.level(coverage)}" if several else ""
            if rows:
                parts.append(Rows(title=f"{title}{level}", rows=tuple(rows)))
    if not parts:
        return None
    titles = ("Here", "Published", "Difference")
    columns = (Column(title="Method"), *(Column(title=t, numeric=True) for t in titles))
    drawn = findings[0].world.casefold().startswith(("cells", "chair"))
    images = "other networks, and from images drawn by howsure unless the plan names the originals"
    named = "tables" if len(tables) > 1 else "table"
    notes = (
        f"Published: {named} {', '.join(tables)} of Gustafsson, Danelljan and Schön (TMLR 2023), "
        f"± the sd over five runs. Ours come from {images if drawn else 'other networks'}: "
        "compare patterns, not values.",
    )
    return Grid(title="Beside the published", columns=columns, parts=tuple(parts), notes=notes)


def _percents(ours: Record, mean: float, sd: float) -> tuple[Cell, ...]:
    spread = "" if math.isnan(sd) else f"± {100 * sd:.1f}"
    own = _sd(ours)
    away = ours.value - mean
    told = formats.MISSING if math.isnan(away) else formats.fixed(100.0 * away, 1, plus=True)
    return (
        share_cell(ours.value, small="" if math.isnan(own) else f"± {100 * own:.1f}"),
        share_cell(mean, small=spread),
        Cell(text=told, key=sort_key(away)),
    )


def _plain(ours: Record, mean: float, sd: float) -> tuple[Cell, ...]:
    cells = []
    for value, spread in ((ours.value, _sd(ours)), (mean, sd)):
        small = "" if math.isnan(spread) else f"± {formats.number(spread, 2)}"
        cells.append(number_cell(value, small))
    away = ours.value - mean
    sign = "+" if away > 0 else ""
    cells.append(Cell(text=f"{sign}{formats.number(away, 3)}", key=sort_key(away)))
    return tuple(cells)


def _sd(record: Record) -> float:
    """The sd over runs; NaN where one run alone has an answer."""
    return float(record.options["sd"]) if float(record.options["answered"]) > 1 else math.nan


def _measured(found: Finding, measure: str, test: str | None = None) -> Cell:
    """A share with its interval, and for coverage with its verdict."""
    record = found.record(measure, test)
    if measure == "prediction_rate" and not found.selective:
        return share_cell(record.value)
    if math.isnan(record.value):
        return _missing()
    cell = share_cell(record.value, small=formats.between(record).strip())
    return replace(cell, tone=TONE_OF[found.verdict(test)]) if measure == "test_coverage" else cell


def _number(record: Record) -> Cell:
    if math.isnan(record.value):
        return _missing()
    ends = formats.interval(record.lower, record.upper)
    small = f"({ends})" if ends else ""
    return number_cell(record.value, small)


def _points(value: float, spread: float = math.nan) -> Cell:
    if math.isnan(value):
        return _missing()
    error = "" if math.isnan(spread) else f" ± {100 * spread:.1f}"
    return Cell(text=f"{100 * value:.1f}{error}", key=sort_key(value))


def _missing() -> Cell:
    return Cell(text=formats.MISSING)


def _units(findings: Sequence[Finding]) -> str:
    units = findings[0].result.units
    return "" if units == "1" else f" ({units})"


def _level(findings: Sequence[Finding]) -> str:
    return f"{formats.level(findings[0].record('test_coverage').confidence)}"
