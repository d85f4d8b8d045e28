"""The page of a comparison of methods by how they adapt: its figures, tables and sentences."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
    GridRows,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.grids import number_cell
from howsure_studies.adaptivity.comparison import (
    RANKED,
    MethodComparison,
    average_table,
    floor_of,
)
from howsure_studies.adaptivity.intervals import CLIPPED
from howsure_studies.adaptivity.validation import VALIDATED, MethodValidation, rank_counts
from howsure_studies.engine import choice_of, coverage_of, named, overview, study_document

TITLES: Final[Mapping[str, str]] = {
    "t_cv": "T-CV",
    "t_ss": "T-SS",
    "sscv": "SSCV",
    "escv": "ESCV",
    "rank_cv": "Rank-CV",
    "rank_ss": "Rank-SS",
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
    "t_ss": (
        "Signed R² of mean size on mean difficulty over cells; higher is better. Sizes that "
        "ignore difficulty stay below the line 95 % of the time."
    ),
}
_KINDS: Final = {"labels": "Label sets", "y": "Intervals"}
_SOURCES: Final = {"labels": "nine nets on ImageNet", "y": "four nets on visual acuity"}
_TEST: Final = {"labels": (50, 20_000)}
"""Cells and test rows of the published, where they are known."""
_WHY: Final = {
    "labels": "ImageNet and its nets are out of reach here",
    "y": "the images of eyes are not public",
}
_PRINTED_RANKS: Final = {
    "t_ss": (24, 12, 0, 0, 0),
    "set_deficit": (12, 23, 0, 1, 0),
    "sscv": (0, 1, 16, 11, 8),
    "escv": (0, 0, 11, 12, 13),
    "set_excess": (0, 0, 9, 12, 15),
}
"""How often each measure ranks first, second, … in the published table 1, of 36."""
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
        name="rank_cv",
        title="Rank-CV",
        meaning="Largest coverage gap over strata of the true label's rank, which none can close.",
        source="Jang and Lee 2025",
        direction="descriptive",
        notion="local",
    ),
    GlossaryEntry(
        name="rank_ss",
        title="Rank-SS",
        meaning="How well mean size follows mean rank over strata of the true label's rank.",
        source="Jang and Lee 2025",
        direction="descriptive",
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
    results: Mapping[str, Sequence[MethodComparison | MethodValidation]],
    *,
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A page on methods compared by how they adapt, beside what was published.

    Parameters
    ----------
    results : mapping of str to sequence of MethodComparison and MethodValidation
        By task: comparisons at one coverage or several, and what measures say of methods.
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
    compared = {
        name: [result for result in of_task if isinstance(result, MethodComparison)]
        for name, of_task in results.items()
    }
    checks = [
        result
        for of_task in results.values()
        for result in of_task
        if isinstance(result, MethodValidation)
    ]
    every = [result for of_task in compared.values() for result in of_task]
    if not every or not all(compared.values()):
        raise InputError("results must hold at least one comparison for each task, got none")
    wanted = coverage_of((result.coverage for result in every), coverage)
    spoken = {
        f"{name}, seed {result.seed}" if _seeded(of_task) else str(name): result
        for name, of_task in compared.items()
        for result in of_task
        if result.coverage == wanted
    }
    methods = dict.fromkeys(method for result in every for method in result.methods)
    on = f"{counted(len(methods), 'method')} on {named(list(map(str, compared)), 'task')}"
    stated = {
        "Tasks": ", ".join(map(str, compared)),
        "Methods": ", ".join(methods),
        "Nominal coverage shown": formats.level(wanted),
    }
    averages = _averages(every)
    return study_document(
        title=f"Do prediction methods cover easy and hard inputs alike? {on}",
        headline=_headline(spoken),
        opening=_opening(spoken),
        sections=(
            *(_average_section(kind, parts, wanted) for kind, parts in averages.items()),
            *(_section(name, of_task, wanted) for name, of_task in compared.items()),
            *_validation(checks),
        ),
        records=tuple(record for result in every for record in result.records()),
        tables=(
            *(average_table(some) for parts in averages.values() for some in parts),
            *(result.table() for result in every),
        ),
        glossary=_GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _averages(every: Iterable[MethodComparison]) -> dict[str, list[list[MethodComparison]]]:
    """Tasks that can be averaged, by kind, one list a coverage; kinds are titles of sections.

    Of one kind are those with the same methods, with ease of inputs or by a surrogate, and with
    clipped intervals or others.
    """
    groups = defaultdict[tuple[str, str, tuple[str, ...]], list[MethodComparison]](list)
    for result in every:
        kind = _KINDS[result.units] + (", clipped," if CLIPPED in result.about else "")
        kind += " by surrogate ease" if result.surrogate else ""
        groups[kind, result.units, result.methods].append(result)
    averages: dict[str, list[list[MethodComparison]]] = {}
    for (kind, units, methods), some in groups.items():
        levels = sorted({result.coverage for result in some})
        parts = [[result for result in some if result.coverage == level] for level in levels]
        printed = any(published(units, m).get(_key(level)) for m in RANKED for level in levels)
        if len(parts[0]) > 1 or printed:
            title = f"{kind.rstrip(',')}: averages over tasks"
            if printed:
                title = f"{kind} beside the published"
            averages[f"{title}: {', '.join(methods)}" if title in averages else title] = parts
    return averages


def _average_section(title: str, parts: list[list[MethodComparison]], wanted: float) -> Section:
    """Averages over tasks at every coverage, and what of the published pattern they show."""
    first = parts[0][0]
    titles = {
        name: TITLES.get(name) or f"{TITLES[name.removesuffix('_rank')]} rank"
        for name in average_table(parts[0]).columns
        if name not in ("method", "t_ss_tasks")
    }
    shown = []
    for some in parts:
        columns = average_table(some).columns
        rows = []
        for row, method in enumerate(some[0].methods):
            cells = [Cell(text=method)]
            for name in titles:
                known = published(first.units, name).get(_key(some[0].coverage), {})
                small = f"published {known[method]:g}" if method in known else ""
                if name == "t_ss" and 0 < (there := columns["t_ss_tasks"][row]) < len(some):
                    small = "; ".join(filter(None, (f"of {there} of {len(some)} tasks", small)))
                value = columns[name][row] if name in columns else math.nan
                cells.append(number_cell(float(value), small))
            rows.append(tuple(cells))
        level = formats.level(some[0].coverage)
        shown.append(
            GridRows(title=f"Nominal {level}, {counted(len(some), 'task')}", rows=tuple(rows))
        )
    grid = Grid(
        title="Averages over tasks",
        columns=(
            Column(title="Method"),
            *(Column(title=title, numeric=True) for title in titles.values()),
        ),
        parts=tuple(shown),
        notes=(
            "Means of medians over the splits, and of shared ranks: 1 + the number of methods that "
            "are significantly better (Friedman, then Wilcoxon–Holm).",
            f"Small: published averages over {_SOURCES[first.units]} (Jang and Lee 2025). Data and "
            "models differ: compare patterns, not values.",
        ),
    )
    spoken = [some for some in parts if some[0].coverage == wanted]
    lines = [line for some in spoken for line in _reached(some)]
    return Section(title=title, lines=tuple(lines), grids=(grid,))


def _reached(some: Sequence[MethodComparison]) -> list[VerdictLine]:
    """Which of the published patterns the averages show, which they do not, and why."""
    first, table = some[0], average_table(some)
    lines = []
    for measure in RANKED:
        known = published(first.units, measure).get(_key(first.coverage), {})
        here = dict(zip(first.methods, table.columns[measure].tolist(), strict=True))
        whole = measure != "t_ss" or table.columns["t_ss_tasks"] == len(some)
        there = dict(zip(first.methods, np.broadcast_to(whole, len(here)).tolist(), strict=True))
        both = [m for m in first.methods if m in known and math.isfinite(here[m]) and there[m]]
        if len(both) < 3:
            continue
        ends = []
        for numbers in (here, known):
            rising = sorted(both, key=numbers.__getitem__)
            ends.append((rising[0], rising[-1]) if measure == "t_cv" else (rising[-1], rising[0]))
        pairs = [(a, b) for k, a in enumerate(both) for b in both[k + 1 :] if known[a] != known[b]]
        same = sum((here[a] - here[b]) * (known[a] - known[b]) > 0 for a, b in pairs)
        beside = "as published" if ends[0] == ends[1] else f"published: {listed(ends[1])}"
        text = f"By {TITLES[measure]}, {ends[0][0]} is best and {ends[0][1]} worst; {beside}. "
        text += f"{same} of {len(pairs)} pairs of methods stand in the published order."
        lines.append(VerdictLine(text=text, question="Reached"))
    if lines:
        floors = sorted({f"{result.floor.median:.3f}" for result in some})
        text = f"The published values are not reached, for {_WHY[first.units]}. "
        text += f"Chance alone shows a T-CV of {' to '.join(floors[:: len(floors) - 1 or 1])} here"
        if first.units in _TEST:
            text += f", {floor_of(*_TEST[first.units], first.coverage).median:.3f} there"
        lines.append(VerdictLine(text=f"{text}.", question="Not reached"))
    return lines


def _key(coverage: float) -> float:
    """A coverage as the published are kept by."""
    return round(coverage, 9)


def _validation(checks: Sequence[MethodValidation]) -> tuple[Section, ...]:
    """Which measure follows Property 1, and what T-CV and T-SS are by other eases."""
    if not checks:
        return ()
    rho = np.array([check.found.rho for check in checks])
    counts = rank_counts(rho).columns
    order = np.argsort(counts["average"], kind="stable")
    ranks = range(1, len(VALIDATED) + 1)
    rows = []
    for k in order.tolist():
        measure = VALIDATED[k]
        printed = _PRINTED_RANKS[measure]
        average = sum(rank * n for rank, n in zip(ranks, printed, strict=True)) / sum(printed)
        cells = [
            number_cell(float(counts[f"rank_{rank}"][k]), f"published {printed[rank - 1]}")
            for rank in ranks
        ]
        mean = number_cell(float(counts["average"][k]), f"published {average:.2f}")
        rows.append((Cell(text=TITLES[measure]), *cells, mean))
    first = checks[0].found
    best = [TITLES[VALIDATED[k]] for k in order[:2].tolist()]
    line = VerdictLine(
        text=(
            f"{best[0]} follows Property 1 most closely, {best[1]} next, over "
            f"{len(checks)} settings; published: T-SS and Deficit over 36."
        ),
        question="Measures",
    )
    counted_grid = Grid(
        title="How often each measure ranks first to last",
        columns=(
            Column(title="Measure"),
            *(Column(title=str(rank), numeric=True) for rank in ranks),
            Column(title="Average", numeric=True),
        ),
        parts=(GridRows(rows=tuple(rows)),),
        notes=(
            "Property 1: of two random subsets the harder one has the larger sets. Ranks are by "
            "the size of Spearman's correlation with the share of pairs for which it holds.",
            f"{len(first.rate)} trials a setting, of at most {max(c.found.rows for c in checks)} "
            f"rows and {first.pairs:,} pairs of subsets. More pairs allow larger correlations.",
        ),
    )
    correlations = Grid(
        title="Correlations",
        columns=(
            *(Column(title=t) for t in ("Task", "Method")),
            *(Column(title=TITLES[m], numeric=True) for m in VALIDATED),
            Column(title="At most about", numeric=True),
        ),
        parts=(
            GridRows(
                rows=tuple(
                    (
                        *(Cell(text=check.task), Cell(text=check.method)),
                        *(number_cell(float(value)) for value in check.found.rho),
                        number_cell(check.found.reliability**0.5),
                    )
                    for check in checks
                )
            ),
        ),
    )
    measures = Section(
        title="Which measure follows Property 1?", lines=(line,), grids=(counted_grid, correlations)
    )
    tasks = {check.task: check for check in checks if len(check.ways) > 1}
    made: list[Choice] = []
    for measure in RANKED:
        options = []
        for task, check in tasks.items():
            values = {
                check.method: np.asarray(getattr(check, measure))
                for check in checks
                if check.task == task
            }
            figure = sensitivity_figure(check.ways, values, measure, title="way of disturbing")
            options.append((task, figure))
        made += choice_of("Task", options)
    if not made:
        return (measures,)
    return (measures, Section(title="Does the way of disturbing matter?", choices=tuple(made)))


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


def _section(name: str, results: Sequence[MethodComparison], wanted: float) -> Section:
    first = results[0]
    return Section(
        title=str(name),
        facts={
            "Validation rows": f"{first.calibration_rows:,}",
            "Test rows": f"{first.test_rows:,}",
            "Cells by ease": str(first.bins),
            "Splits": str(first.repeats),
            "Ease": first.ease,
            **first.about,
        },
        lines=tuple(
            line for result in results if result.coverage == wanted for line in _task_lines(result)
        ),
        grids=(_medians(results),),
        choices=_choices(results, wanted),
    )


def _seeded(results: Sequence[MethodComparison]) -> bool:
    return len({result.seed for result in results}) > 1


def _heading(result: MethodComparison, results: Sequence[MethodComparison]) -> str:
    seed = f", seed {result.seed}" if _seeded(results) else ""
    return f"Nominal {formats.level(result.coverage)}{seed}"


def _medians(results: Sequence[MethodComparison]) -> Grid:
    """Medians of every measure, one part a coverage."""
    first = results[0]
    columns = [Column(title="Method")]
    columns += [Column(title=TITLES[m], numeric=True) for m in first.measures]
    parts = []
    for result in results:
        medians = {measure: result.median(measure) for measure in result.measures}
        shared = {
            measure: result.ranks(measure).shared_ranks for measure in RANKED if result.ranked
        }
        rows = []
        for number, method in enumerate(result.methods):
            cells = [Cell(text=method)]
            for measure, values in medians.items():
                small = f"rank {shared[measure][number]}" if measure in shared else ""
                cells.append(number_cell(float(values[number]), small))
            rows.append(tuple(cells))
        parts.append(GridRows(title=_heading(result, results), rows=tuple(rows)))
    missing = sorted({f"{m}: {why}." for r in results for (m, _), why in r.reasons.items()})
    notes = (
        "Medians over the splits. Small: a shared rank, 1 + the number of methods that are "
        "significantly better (Friedman, then Wilcoxon–Holm). Splits share rows, so these tests "
        "are overconfident.",
        *missing,
    )
    return Grid(title="Methods", columns=tuple(columns), parts=tuple(parts), notes=notes)


def _choices(results: Sequence[MethodComparison], wanted: float) -> tuple[Choice, ...]:
    """Figures by coverage: the one that sentences speak of comes first."""
    order = sorted(results, key=lambda result: result.coverage != wanted)
    made: list[Choice] = []
    for make in (_measured, _ranked):
        for measure in RANKED:
            options = [(_heading(result, results), make(result, measure)) for result in order]
            made += choice_of("Coverage", options)
    return tuple(made)


def _measured(result: MethodComparison, measure: str) -> Figure:
    """The medians of one measure."""
    floors = {"t_cv": result.floor.median, "t_ss": result.slope_floor}
    rules = {"chance alone": floors[measure]}
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
        text = f"T-SS, how well size follows difficulty, is {_span(known)}. "
        text += (
            f"Sizes that ignore difficulty stay below {comparison.slope_floor:.3f}, 95 % of times."
        )
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
    on visual acuity (tables 10 and 11); these data are not public. Ranks are those of tables 2
    and 5, deficit and excess means of table 6.
    """
    averages: dict[float, dict[str, float]] = {}
    lines = files(__package__).joinpath("published.csv").read_text(encoding="utf-8").splitlines()
    for row in csv.DictReader(lines):
        if (row.pop("units"), row.pop("measure")) == (units, measure):
            method = row.pop("method")
            for coverage, value in row.items():
                if value:
                    averages.setdefault(float(coverage), {})[method] = float(value)
    return averages


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
    for number, (series, numbers) in enumerate(values.items()):
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
                colour=number,
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
    height = np.arange(len(ways), dtype=np.float64)
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
                y=height[np.isfinite(column)],
                series=name,
                colour=number,
                labels=tuple(ways[k] for k in np.flatnonzero(np.isfinite(column))),
            )
            for number, (name, column) in enumerate(values.items())
        ),
        naming="Way",
    )
