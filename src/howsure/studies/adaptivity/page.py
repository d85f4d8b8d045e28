"""The page of a comparison of methods by how they adapt: its figures, tables and sentences."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.formats import counted, listed
from howsure.figures import Axis, Figure, Layer, Mark
from howsure.figures.figure import REFERENCE
from howsure.figures.ranks import rank_figure
from howsure.figures.text import distinct
from howsure.report.document import (
    Cell,
    Choice,
    Column,
    Document,
    GlossaryEntry,
    Grid,
    Rows,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import number_cell
from howsure.studies.adaptivity.comparison import RANKED, MethodComparison
from howsure.studies.engine import choice_of, coverage_of, named, overview, study_document

TITLES: Final[Mapping[str, str]] = {
    "t_cv": "T-CV",
    "t_ss": "T-SS",
    "sscv": "SSCV",
    "escv": "ESCV",
    "set_deficit": "Deficit",
    "set_excess": "Excess",
    "binned_r2": "R² of error on width",
    "kendall_tau": "Kendall τ of error and width",
    "empirical_coverage": "Coverage",
    "set_size": "Set size",
    "width": "Width",
}
"""What figures and tables call the measures."""
_QUESTIONS: Final[Mapping[str, str]] = {
    "t_cv": "Which methods cover easy and hard inputs alike?",
    "t_ss": "Whose sets or intervals grow with difficulty?",
    "empirical_coverage": "Do the methods reach nominal coverage?",
    "set_size": "How large are the sets?",
    "width": "How wide are the intervals?",
}
_READINGS: Final[Mapping[str, str]] = {
    "t_cv": (
        "The largest gap between coverage and its nominal level over cells of similar "
        "difficulty; lower is better. Chance alone would show the value of the line."
    ),
    "t_ss": "Signed R² of mean size on mean difficulty over cells; higher is better.",
}
_STATES: Final[Mapping[Tone, str]] = {"bad": "Gap", "undecided": "No gap shown"}
_GLOSSARY: Final = (
    GlossaryEntry(
        name="t_cv",
        title="T-CV",
        meaning="Largest gap between coverage and nominal over cells of similar difficulty.",
        formula="max_b |(1−α) − cov_b|",
        source="Jang and Lee 2025, equation 3",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="t_ss",
        title="T-SS",
        meaning="How well mean size follows mean difficulty over cells of similar difficulty.",
        formula="sign(β)·R² of the line through the cells",
        source="Jang and Lee 2025, equation 4",
        direction="higher is better",
        notion="local",
    ),
    GlossaryEntry(
        name="sscv",
        title="SSCV",
        meaning="Largest coverage gap over strata of set size.",
        source="Angelopoulos et al. 2021",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="escv",
        title="ESCV",
        meaning="Largest coverage gap over each exact set size.",
        source="Huang et al. 2024, two-sided as in Jang and Lee 2025",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="set_deficit",
        title="Deficit",
        meaning="How many labels sets lack to contain the true one.",
        formula="mean max(0, rank − size)",
        direction="lower is better",
        units="labels",
    ),
    GlossaryEntry(
        name="set_excess",
        title="Excess",
        meaning="How many labels sets contain beyond the true one.",
        formula="mean max(0, size − rank)",
        direction="lower is better",
        units="labels",
    ),
)


def adaptivity_report(
    results: Mapping[str, Sequence[MethodComparison]],
    *,
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A page on methods compared by how they adapt, beside what was published.

    Parameters
    ----------
    results : mapping of str to sequence of MethodComparison
        By task: comparisons at one coverage or several.
    coverage : float, optional
        The nominal coverage that sentences speak of; 0.9, or the highest below it, if omitted.
    facts : mapping of str to str, optional
        What else is known.
    command : str
        What makes the page again.

    Returns
    -------
    Document

    Raises
    ------
    InputError
        If a task has no comparison, or the coverage was not studied.
    """
    every = [result for found in results.values() for result in found]
    if not every or not all(results.values()):
        raise InputError("results must hold at least one comparison for each task, got none")
    wanted = coverage_of((result.coverage for result in every), coverage)
    spoken = {
        f"{name}, seed {result.seed}" if _seeded(found) else str(name): result
        for name, found in results.items()
        for result in found
        if result.coverage == wanted
    }
    methods = dict.fromkeys(method for result in every for method in result.methods)
    on = f"{counted(len(methods), 'method')} on {named(list(map(str, results)), 'task')}"
    stated = {
        "Tasks": ", ".join(map(str, results)),
        "Methods": ", ".join(methods),
        "Nominal coverage shown": formats.level(wanted),
    }
    return study_document(
        title=f"Do prediction methods cover easy and hard inputs alike? {on}",
        headline=_headline(spoken),
        opening=_opening(spoken),
        sections=[_section(name, found, wanted) for name, found in results.items()],
        records=tuple(record for result in every for record in result.records()),
        tables=tuple(result.table() for result in every),
        glossary=_GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _opening(spoken: Mapping[str, MethodComparison]) -> Section:
    """T-CV of every method on every task, beside what chance alone shows."""
    medians = {name: result.medians("t_cv") for name, result in spoken.items()}
    if not any(math.isfinite(v) for values in medians.values() for v in values.values()):
        return Section(title="")
    states: dict[str, dict[str, Cell]] = {}
    for name, result in spoken.items():
        for method, value in medians[name].items():
            cell = number_cell(value)
            if math.isfinite(value):
                tone: Tone = "undecided" if value <= result.floor.upper else "bad"
                cell = replace(cell, tone=tone)
            states.setdefault(method, {})[name] = cell
    floor = max(result.floor.median for result in spoken.values())
    label = "chance alone" if len(spoken) == 1 else "chance alone, at most"
    coverage = next(iter(spoken.values())).coverage
    title = f"T-CV at nominal {formats.level(coverage)}"
    note = "T-CV: the largest coverage gap over cells of similar difficulty; lower is better."
    grid = overview(title, states, _STATES, note)
    figure = methods_figure(medians, "t_cv", rules={label: floor})
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


def _section(name: str, found: Sequence[MethodComparison], wanted: float) -> Section:
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
            line for result in found if result.coverage == wanted for line in _task_lines(result)
        ),
        grids=tuple(grid for grid in grids if grid is not None),
        choices=_choices(found, wanted),
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
            measure: result.ranks(measure).shared_ranks for measure in RANKED if result.ranked
        }
        rows = []
        for place, method in enumerate(result.methods):
            cells = [Cell(text=method)]
            for measure, values in medians.items():
                small = f"rank {shared[measure][place]}" if measure in shared else ""
                cells.append(number_cell(float(values[place]), small))
            rows.append(tuple(cells))
        parts.append(Rows(title=_heading(result, found), rows=tuple(rows)))
    missing = sorted({f"{m}: {why}." for r in found for (m, _), why in r.reasons.items()})
    notes = (
        "Medians over the splits. Small: a shared rank, 1 + the number of methods that are "
        "significantly better (Friedman, then Wilcoxon–Holm). Splits share rows, so these tests "
        "are overconfident.",
        *missing,
    )
    return Grid(title="Methods", columns=tuple(columns), parts=tuple(parts), notes=notes)


def _published(found: Sequence[MethodComparison]) -> Grid | None:
    """Published averages beside ours; None where no coverage was published."""
    parts = []
    for result in found:
        rows = [
            (
                Cell(text=TITLES[measure]),
                Cell(text=name),
                number_cell(value),
                number_cell(known[name]),
            )
            for measure in result.measures
            if (known := published(result.units, measure).get(round(result.coverage, 9)))
            for name, value in result.medians(measure).items()
            if name in known
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


def _choices(found: Sequence[MethodComparison], wanted: float) -> tuple[Choice, ...]:
    """Figures by coverage: the one that sentences speak of comes first."""
    order = sorted(found, key=lambda result: result.coverage != wanted)
    made: list[Choice] = []
    for make in (_measured, _ranked):
        for measure in RANKED:
            options = [(_heading(result, found), make(result, measure)) for result in order]
            made += choice_of("Coverage", options)
    return tuple(made)


def _measured(result: MethodComparison, measure: str) -> Figure:
    """The medians of one measure."""
    rules = {"chance alone": result.floor.median} if measure == "t_cv" else {}
    return methods_figure({result.task: result.medians(measure)}, measure, rules=rules)


def _ranked(result: MethodComparison, measure: str) -> Figure | None:
    """Critical differences over splits; None for too few methods or splits."""
    if not result.ranked:
        return None
    figure = rank_figure(result.ranks(measure).table(f"ranks_{measure}"))
    return replace(figure, title=f"{figure.title}, by {TITLES[measure]}")


def _task_lines(comparison: MethodComparison) -> tuple[VerdictLine, ...]:
    """Which methods cover easy and hard inputs alike, and whose sizes follow difficulty."""
    floor = comparison.floor
    gaps, slopes = comparison.medians("t_cv"), comparison.medians("t_ss")
    chance = f"Chance alone shows {floor.median:.3f}, 95 % of the time below {floor.upper:.3f}."
    groups: tuple[tuple[str, Tone, dict[str, float]], ...] = (
        ("Significant coverage gap", "bad", {m: v for m, v in gaps.items() if v > floor.upper}),
        ("No significant gap", "undecided", {m: v for m, v in gaps.items() if v <= floor.upper}),
    )
    lines = [
        VerdictLine(text=f"T-CV is {_span(values)}. {chance}", tone=tone, question=question)
        for question, tone, values in groups
        if values
    ]
    known = {method: slope for method, slope in slopes.items() if math.isfinite(slope)}
    if known:
        text = f"T-SS, how well size follows difficulty, is {_span(known)}."
        lines.append(VerdictLine(text=text, question="Size and difficulty"))
    for measure, values in (("t_cv", gaps), ("t_ss", slopes)):
        for method in (method for method, value in values.items() if math.isnan(value)):
            reason = comparison.reasons.get((method, measure), "no repeat has an answer")
            text = f"{TITLES[measure]} of {method} is not known: {reason}."
            lines.append(VerdictLine(text=text, question="Not known"))
    return tuple(lines)


def _span(values: Mapping[str, float]) -> str:
    """Every value where they are few, else the ends of their range."""
    order = sorted(values, key=values.__getitem__)
    spoken = [f"{values[method]:.3f} ({method})" for method in order]
    if len(spoken) < 4:
        return listed(spoken)
    return f"{spoken[0]} to {spoken[-1]} for {len(spoken)} methods"


def _headline(comparisons: Mapping[str, MethodComparison]) -> VerdictLine | None:
    """How many methods cover easy and hard inputs alike, as far as chance allows to say."""
    tests = [
        (task, method, violation <= result.floor.upper)
        for task, result in comparisons.items()
        for method, violation in result.medians("t_cv").items()
        if math.isfinite(violation)
    ]
    if not tests:
        return None
    tasks = list(dict.fromkeys(task for task, _, _ in tests))
    good = [method for _, method, alike in tests if alike]
    of = "methods" if len(tasks) == 1 else "tests of a method"
    text = (
        f"{len(good) or 'None'} of {len(tests)} {of} on {named(tasks, 'task')} "
        f"{'shows' if len(good) == 1 else 'show'} no significant coverage gap between easy and "
        f"hard inputs at nominal {formats.level(next(iter(comparisons.values())).coverage)}"
    )
    text += f": {listed(good, 3)}." if good and len(tasks) == 1 else "."
    if 0 < len(good) < len(tests):
        text += " The gaps of the others are larger than chance alone explains."
    return VerdictLine(text=text, tone="undecided" if good else "bad")


@cache
def published(units: str, measure: str) -> Mapping[float, Mapping[str, float]]:
    """Averages of Jang and Lee 2025 by coverage and method.

    Label sets: over nine nets on ImageNet (tables 2, 4 and 5; 50 cells). Intervals: over four nets
    on visual acuity (tables 10 and 11); these data are not public.
    """
    found: dict[float, dict[str, float]] = {}
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(lines):
        if (row.pop("units"), row.pop("measure")) == (units, measure):
            method = row.pop("method")
            for coverage, value in row.items():
                if value:
                    found.setdefault(float(coverage), {})[method] = float(value)
    return found


def methods_figure(
    values: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    rules: Mapping[str, float] | None = None,
) -> Figure:
    """One measure of several methods as a dot plot, a colour a task or a source."""
    if not values or measure not in TITLES:
        raise InputError(
            f"values must hold a series and measure be one of {', '.join(TITLES)}, "
            f"got {len(values)} series and {measure!r}"
        )
    methods = list(dict.fromkeys(name for series in values.values() for name in series))
    layers = []
    for place, (series, numbers) in enumerate(values.items()):
        known = [
            (k, numbers[name])
            for k, name in enumerate(methods)
            if math.isfinite(numbers.get(name, math.nan))
        ]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=np.array([value for _, value in known], dtype=np.float64),
                y=np.array([k for k, _ in known], dtype=np.float64),
                series=series,
                colour=place,
                labels=tuple(methods[k] for k, _ in known),
            )
        )
    lines = [
        Layer(mark=Mark.RULE, x=np.array([at]), series=label, colour=REFERENCE)
        for label, at in (rules or {}).items()
        if math.isfinite(at)
    ]
    title = TITLES[measure]
    return Figure(
        name=f"methods_{measure}",
        question=_QUESTIONS.get(measure, "How do the methods compare?"),
        title=f"{title} of each method",
        reading=_READINGS.get(measure, ""),
        x=Axis(title=title),
        y=Axis(kind="category", categories=distinct(methods)),
        layers=(*lines, *layers),
        naming="Method",
    )


def sensitivity_figure(
    x: Sequence[str], values: Mapping[str, FloatArray], measure: str, *, title: str
) -> Figure:
    """One measure of several methods over ways to perturb inputs."""
    for name, column in values.items():
        if len(column) != len(x):
            raise InputError(f"values of {name!r} must be {len(x)}, got {len(column)}")
    ways = distinct(x)
    place = np.arange(len(ways), dtype=np.float64)
    return Figure(
        name=f"sensitivity_{measure}",
        question="Does the measure depend on how inputs are perturbed?",
        title=f"{TITLES[measure]} by {title}",
        reading="The choice does not matter where points of one colour share a vertical line.",
        x=Axis(title=TITLES[measure]),
        y=Axis(kind="category", categories=ways),
        layers=tuple(
            Layer(
                mark=Mark.POINTS,
                x=column[np.isfinite(column)],
                y=place[np.isfinite(column)],
                series=name,
                colour=number,
                labels=tuple(ways[k] for k in np.flatnonzero(np.isfinite(column))),
            )
            for number, (name, column) in enumerate(values.items())
        ),
        naming="Way",
    )
