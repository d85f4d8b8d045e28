"""The report of a comparison of methods by how they adapt to easy and hard inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.figures import Figure
from howsure.figures.ranks import rank_figure
from howsure.report.document import Cell, Choice, Column, Document, Grid, Rows, Section, Tone
from howsure.report.grids import number_cell
from howsure.studies.adaptivity.figures import (
    TITLES,
    Rule,
    ease_figure,
    methods_figure,
    size_figure,
)
from howsure.studies.adaptivity.result import MethodComparison
from howsure.studies.adaptivity.words import (
    GLOSSARY,
    headline,
    published_of,
    task_lines,
    title_of,
)
from howsure.studies.engine import choice_of, coverage_of, overview, study_document

_RANKED: Final = ("t_cv", "t_ss")
_STATES: Final[Mapping[Tone, str]] = {"bad": "Gap", "undecided": "No gap shown"}
_CURVES: Final[Mapping[str, Callable[[Sequence[Curve]], Figure]]] = {
    "coverage_by_ease": ease_figure,
    "size_by_difficulty": size_figure,
}


def adaptivity_report(
    results: Mapping[str, Sequence[MethodComparison]],
    *,
    title: str = "",
    coverage: float | None = None,
    curves: Mapping[str, Sequence[Curve]] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on methods compared by how they adapt, beside what was published."""
    held = [result for found in results.values() for result in found]
    if not held or not all(results.values()):
        raise InputError("results must hold at least one comparison for each task, got none")
    wanted = coverage_of((result.coverage for result in held), coverage)
    spoken = {
        f"{name}, seed {result.seed}" if _seeded(found) else str(name): result
        for name, found in results.items()
        for result in found
        if result.coverage == wanted
    }
    drawn = curves or {}
    methods = dict.fromkeys(method for result in held for method in result.methods)
    stated = {
        "Tasks": ", ".join(map(str, results)),
        "Methods": ", ".join(methods),
        "Nominal coverage shown": formats.level(wanted),
    }
    return study_document(
        title=title or title_of(len(methods), list(map(str, results))),
        headline=headline(spoken),
        opening=_opening(spoken),
        sections=[_section(n, found, wanted, drawn.get(n, ())) for n, found in results.items()],
        records=tuple(record for result in held for record in result.records()),
        curves=tuple(curve for name in results for curve in drawn.get(name, ())),
        tables=tuple(result.table() for result in held),
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _opening(spoken: Mapping[str, MethodComparison]) -> Section:
    """T-CV of every method on every task, beside what chance alone shows."""
    medians = {
        name: dict(zip(result.methods, result.median("t_cv").tolist(), strict=True))
        for name, result in spoken.items()
    }
    if not any(math.isfinite(v) for values in medians.values() for v in values.values()):
        return Section(title="")
    states: dict[str, dict[str, Cell]] = {}
    for name, result in spoken.items():
        for method, value in medians[name].items():
            tone: Tone = "undecided" if value <= result.floor.upper else "bad"
            cell = (
                replace(number_cell(value), tone=tone)
                if math.isfinite(value)
                else number_cell(value)
            )
            states.setdefault(method, {})[name] = cell
    floor = max(result.floor.median for result in spoken.values())
    label = "chance alone" if len(spoken) == 1 else "chance alone, at most"
    coverage = next(iter(spoken.values())).coverage
    title = f"T-CV at nominal {formats.level(coverage)}"
    told = "T-CV: the largest coverage gap over cells of similar difficulty; lower is better."
    grid = overview(title, states, _STATES, told)
    figure = methods_figure(medians, "t_cv", rules=(Rule(at=floor, label=label),))
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


def _section(
    name: str, found: Sequence[MethodComparison], wanted: float, curves: Sequence[Curve]
) -> Section:
    first = found[0]
    grids = [_medians(found), _published(found)]
    return Section(
        title=str(name),
        facts={
            "Validation rows": f"{first.calibration_rows:,}",
            "Test rows": f"{first.test_rows:,}",
            "Cells by ease": str(first.bins),
            "Splits": str(first.repeats),
            "Ease": "surrogate, from the probabilities" if first.surrogate else "from inputs",
        },
        lines=tuple(
            line for result in found if result.coverage == wanted for line in task_lines(result)
        ),
        grids=tuple(grid for grid in grids if grid is not None),
        choices=_choices(found, wanted, curves),
    )


def _seeded(found: Sequence[MethodComparison]) -> bool:
    return len({result.seed for result in found}) > 1


def _heading(result: MethodComparison, found: Sequence[MethodComparison]) -> str:
    seed = f", seed {result.seed}" if _seeded(found) else ""
    return f"Nominal {formats.level(result.coverage)}{seed}"


def _medians(found: Sequence[MethodComparison]) -> Grid:
    """Medians of every measure, one part a coverage."""
    first = found[0]
    columns = [Column(title="Method")]
    columns += [Column(title=TITLES[m], numeric=True) for m in first.measures]
    parts = []
    for result in found:
        medians = {measure: result.median(measure) for measure in result.measures}
        shared = {
            measure: result.ranks(measure).shared_ranks
            for measure in _RANKED
            if result.repeats > 1 and len(result.methods) > 2
        }
        rows = []
        for place, method in enumerate(result.methods):
            cells = [Cell(text=method)]
            for measure, values in medians.items():
                small = f"rank {shared[measure][place]}" if measure in shared else ""
                cells.append(number_cell(float(values[place]), small))
            rows.append(tuple(cells))
        parts.append(Rows(title=_heading(result, found), rows=tuple(rows)))
    told = sorted({f"{m}: {why}." for r in found for (m, _), why in r.reasons.items()})
    notes = (
        "Medians over the splits. Small: a shared rank, 1 + the number of methods that are "
        "significantly better (Friedman, then Wilcoxon–Holm). Splits share rows, so these tests "
        "are overconfident.",
        *told,
    )
    return Grid(title="Methods", columns=tuple(columns), parts=tuple(parts), notes=notes)


def _published(found: Sequence[MethodComparison]) -> Grid | None:
    """Published averages beside ours; None where no coverage was published."""
    parts = []
    for result in found:
        rows = []
        for measure in result.measures:
            known = published_of(result, measure)
            if not known:
                continue
            ours = dict(zip(result.methods, result.median(measure).tolist(), strict=True))
            shown = [name for name in result.methods if name in known]
            rows += [
                (
                    Cell(text=TITLES[measure]),
                    Cell(text=name),
                    number_cell(ours[name]),
                    number_cell(known[name]),
                )
                for name in shown
            ]
        if rows:
            parts.append(Rows(title=_heading(result, found), rows=tuple(rows)))
    if not parts:
        return None
    columns = (
        Column(title="Measure"),
        Column(title="Method"),
        Column(title="Here", numeric=True),
        Column(title="Published", numeric=True),
    )
    of = "nine nets on ImageNet" if found[0].units == "labels" else "four nets on visual acuity"
    notes = (
        f"Published: averages over {of} (Jang and Lee 2025). Data and models differ: compare "
        "patterns, not values.",
    )
    return Grid(title="Beside the published", columns=columns, parts=tuple(parts), notes=notes)


def _choices(
    found: Sequence[MethodComparison], wanted: float, curves: Sequence[Curve]
) -> tuple[Choice, ...]:
    """Curves, then figures by coverage: the one that sentences speak of comes first."""
    order = sorted(found, key=lambda result: result.coverage != wanted)
    made: list[Choice] = []
    for name, draw in _CURVES.items():
        held = [curve for curve in curves if curve.name == name]
        made += choice_of("", [("", draw(held) if held else None)])
    for make in (_measured, _ranked):
        for measure in _RANKED:
            options = [(_heading(result, found), make(result, measure)) for result in order]
            made += choice_of("Coverage", options)
    return tuple(made)


def _measured(result: MethodComparison, measure: str) -> Figure:
    """The medians of one measure."""
    medians = dict(zip(result.methods, result.median(measure).tolist(), strict=True))
    rules = (Rule(at=result.floor.median, label="chance alone"),) if measure == "t_cv" else ()
    return methods_figure({result.task: medians}, measure, rules=rules)


def _ranked(result: MethodComparison, measure: str) -> Figure | None:
    """Critical differences over splits; None for too few methods or splits."""
    if result.repeats < 2 or len(result.methods) < 3:
        return None
    figure = rank_figure(result.ranks(measure).table(f"ranks_{measure}"))
    return replace(figure, title=f"{figure.title}, by {TITLES[measure]}")
