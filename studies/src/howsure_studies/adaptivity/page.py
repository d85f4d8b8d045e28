"""The page of a comparison of methods by how they adapt: its figures, tables and sentences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.formats import counted, listed
from howsure.core.records import Record
from howsure.core.text import distinct
from howsure.figures import Axis, Figure, Layer, Mark
from howsure.figures.figure import REFERENCE
from howsure.report.document import (
    Cell,
    Choice,
    Document,
    Grid,
    Section,
    Tone,
    VerdictLine,
    glossary,
)
from howsure.report.grids import number_cell, sort_key
from howsure.topics.association import spearman
from howsure_studies.adaptivity.comparison import (
    RANKED,
    MethodComparison,
    agreed_mean,
    average_records,
    differences,
    floor_of,
)
from howsure_studies.adaptivity.intervals import CLIPPED, DRAWN
from howsure_studies.adaptivity.label_sets import RankByEase
from howsure_studies.adaptivity.validation import VALIDATED, MethodValidation, correlation_ranks
from howsure_studies.engine import (
    OwnNumber,
    beside_section,
    choice_of,
    coverage_of,
    interval_cell,
    named,
    number_grid,
    overview,
    pivot,
    published,
    record_cell,
    study_document,
)
from howsure_studies.engine.critical_difference import rank_figure

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
    "t_cv_exact": "T-CV without chance",
    "t_cv_true": "Without chance, by true ease",
    "ease_truth": "ρ of ease and true ease",
}
"""What figures and tables call the measures."""
_COLUMNS: Final[Mapping[str, str]] = {
    **{"t_cv": "T-CV", "t_cv_floor": "T-CV by chance", "t_cv_rank": "T-CV rank"},
    **{"t_ss": "T-SS", "t_ss_floor": "T-SS by chance", "t_ss_rank": "T-SS rank"},
    **TITLES,
}
"""The same, with ranks and with what chance alone shows."""
_QUESTIONS: Final[Mapping[str, str]] = {
    "t_cv": "Which methods have equal coverage for easy and hard inputs?",
    "t_ss": "Whose sets or intervals grow with difficulty?",
    "empirical_coverage": "Do the methods reach nominal coverage?",
    "set_size": "How large are the sets?",
    "width": "How wide are the intervals?",
}
_READINGS: Final[Mapping[str, str]] = {
    "t_cv": (
        "The largest gap between coverage and its nominal level over cells of similar "
        "difficulty; lower is better. The line shows the value expected by chance."
    ),
    "t_ss": (
        "Signed R² of mean size on mean difficulty over cells; higher is better. Sizes that "
        "ignore difficulty stay below the line 95 % of the time."
    ),
}
_KINDS: Final = {"labels": "Label sets", "y": "Intervals"}
_PAPERS: Final = {"labels": "ImageNet, nine nets", "y": "visual acuity, four nets"}
"""What the published averages are over, by the units of sizes."""
_VALIDATION: Final = ("Property 1, 36 settings", 36)
_PLACES: Final = tuple(f"rank_{place}" for place in range(1, len(VALIDATED) + 1))
_AS_MANY_ROWS: Final = "50,000 rows"
"""The variant whose test rows are as many as the paper's."""
_PRINTED_CELLS: Final = {
    **dict.fromkeys(("", "clipped", "50 cells"), ""),
    **{"20 cells": ", 20 cells", "100 cells": ", 100 cells", _AS_MANY_ROWS: ""},
}
"""Variants of tasks that the paper has too, and how its tasks are called there."""
_PAPERS_CELLS: Final = {"labels": (50, 20_000)}
"""Cells and test rows of the published, where they are known."""
_WHY: Final = "other data and models: ImageNet, its networks and images of eyes are not available"
_MAX_TASKS_BY_COLOUR: Final = 8
"""The most tasks that colours tell apart."""
_STATES: Final[Mapping[Tone, str]] = {"bad": "Gap", "undecided": "No gap shown"}
_GROUPS: Final[Mapping[Tone, str]] = {
    "bad": "Significant coverage gap",
    "undecided": "No significant gap",
}
_FLOORS: Final = (
    "By chance: the median T-CV of a correctly specified model, and the T-SS that sets which "
    "ignore difficulty exceed in 5 % of cases, with as many rows and cells."
)
_RANKS: Final = (
    "Ranks are shared: 1 + the number of methods that are significantly better (Friedman, then "
    "Wilcoxon–Holm)."
)
Spoken = Mapping[str, MethodComparison]
"""By task: the comparison that sentences speak of."""


def adaptivity_report(
    results: Mapping[str, Sequence[MethodComparison | MethodValidation | RankByEase]],
    *,
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A page on methods compared by how they adapt, beside what was published.

    Parameters
    ----------
    results : mapping of str to sequence of MethodComparison, MethodValidation and RankByEase
        By task: comparisons at one coverage or several, what measures say of methods, and ranks.
    coverage : float, optional
        The nominal coverage that sentences speak of; of each task 0.9, or the highest below it,
        if omitted.
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
    every = [result for of_task in compared.values() for result in of_task]
    given = [result for of_task in results.values() for result in of_task]
    checks = [result for result in given if isinstance(result, MethodValidation)]
    ranks = [result for result in given if isinstance(result, RankByEase)]
    if not every or not all(compared.values()):
        raise InputError("results must contain at least one comparison for each task, got none")
    if coverage is not None:
        coverage_of((result.coverage for result in every), coverage)
    wanted = {
        name: coverage_of((r.coverage for r in of_task), None) if coverage is None else coverage
        for name, of_task in compared.items()
    }
    variants = {name: _variant(str(name)) for name in compared}
    main = {name: own for name, own in compared.items() if not variants[name]} or compared
    spoken = {
        f"{name}, seed {result.seed}" if _seeded(of_task) else str(name): result
        for name, of_task in main.items()
        for result in of_task
        if result.coverage == wanted[name]
    }
    methods = dict.fromkeys(method for result in every for method in result.methods)
    on = f"{counted(len(methods), 'method')} on {named(list(map(str, main)), 'task')}"
    stated = {
        "Tasks": ", ".join(map(str, main)),
        "Methods": ", ".join(methods),
        "Nominal coverage shown": _levels(spoken),
    }
    averages = _averages(compared, variants)
    records = (
        *(record for result in every for record in (*result.records(), *_ranks_of(result))),
        *(
            replace(record, group=f"tasks={', '.join(filter(None, (kind, variant)))}")
            for (kind, variant), own in averages.items()
            for record in own
            if float(record.options["tasks"]) > 1
        ),
    )
    return study_document(
        title=f"Is coverage equal for easy and hard inputs? {on}",
        headline=_headline(spoken),
        opening=_opening(spoken),
        sections=(
            *(
                _average_section(kind, own, coverage)
                for (kind, variant), own in averages.items()
                if not variant and float(own[0].options["tasks"]) > 1
            ),
            *_rank_section(ranks),
            *_difference_section(compared, variants, coverage),
            *_variant_sections(averages, set(variants.values())),
            *(_section(name, of_task, wanted[name]) for name, of_task in main.items()),
            *_validation(checks),
        ),
        beside=beside_section(
            (*_own_averages(averages), *_own_ranks(checks)),
            published("adaptivity"),
            {
                **_COLUMNS,
                **{name: f"times at rank {name[-1]}, of 36" for name in _PLACES},
                "rank_average": "average rank",
            },
            _WHY,
            error="the standard error over tasks, or over settings",
        ),
        records=records,
        glossary=glossary(records),
        facts={**stated, **(facts or {})},
        command=command,
    )


# Averages over tasks, and what is published of them


def _variant(name: str) -> str:
    """What a world's name says after a comma: what sets it apart from the world of that name."""
    return name.partition(", ")[2]


def _averages(
    compared: Mapping[str, Sequence[MethodComparison]], variants: Mapping[str, str]
) -> dict[tuple[str, str], tuple[Record, ...]]:
    """Averages over tasks of each kind and variant, at each coverage.

    Of one kind are those with the same methods, with ease of inputs or by a surrogate, and with
    clipped intervals or others. They are of the measures that all of a kind have.
    """
    groups = defaultdict[tuple[str, str, tuple[str, ...]], list[MethodComparison]](list)
    for name, of_task in compared.items():
        for result in of_task:
            kind = _KINDS[result.units]
            kind += ", by surrogate ease" if result.surrogate else ""
            clipped = "clipped" if CLIPPED in result.about else ""
            groups[kind, variants[name] or clipped, result.methods].append(result)
    averages: dict[tuple[str, str], tuple[Record, ...]] = {}
    for (kind, variant, methods), some in groups.items():
        again = (kind, variant) in averages
        title = f"{kind}, {', '.join(methods)}" if again else kind
        averages[title, variant] = average_records(_alike(some))
    return averages


def _alike(some: Sequence[MethodComparison]) -> list[MethodComparison]:
    """Comparisons by the measures that all of them have."""
    shared = tuple(m for m in some[0].measures if all(m in each.measures for each in some))
    return [
        each
        if each.measures == shared
        else replace(each, measures=shared, values=np.stack([each.of(m) for m in shared], axis=-1))
        for each in some
    ]


def _average_section(kind: str, records: Sequence[Record], coverage: float | None) -> Section:
    """Averages over tasks at every coverage, and what of the published pattern they show."""
    note = f"{_means(records)} {_RANKS}"
    told = coverage_of((r.coverage for r in records), None) if coverage is None else coverage
    return Section(
        title=f"{kind}: averages over tasks",
        lines=tuple(_pattern([r for r in records if r.coverage == told], _units(kind))),
        grids=_numbers("Averages over tasks", records, note),
    )


def _rank_section(ranks: Sequence[RankByEase]) -> Iterator[Section]:
    """Whether the true class ranks higher where inputs are easier: the paper's figure 1."""
    if not ranks:
        return
    cells = np.arange(1.0, 1.0 + max(len(each.rank) for each in ranks))
    falls = [spearman(cells[: len(each.rank)], each.rank).value for each in ranks]
    low, high = (formats.fixed(end(falls), 3) for end in (min, max))
    figure = Figure(
        name="rank_by_ease",
        question="Does the rank of the true class fall as ease rises?",
        title="Mean rank of the true class by ease",
        reading="Cells have equal numbers of rows, the hardest first. 1: the likeliest class.",
        x=Axis(title="Cell by ease"),
        y=Axis(title="Mean rank of the true class"),
        layers=tuple(
            Layer(
                mark=Mark.LINE,
                x=cells[: len(each.rank)],
                y=each.rank,
                series=each.task.partition(",")[0],
                colour=colour,
            )
            for colour, each in enumerate(ranks)
        ),
    )
    yield Section(
        title="Do easier inputs have better ranks?",
        lines=(
            VerdictLine(
                text=(
                    "By cells, ease and the mean rank of the true class have rank correlations of "
                    f"{low} to {high}; as published, ranks fall."
                ),
                question="Rank by ease",
            ),
        ),
        choices=choice_of("", [("", figure)]),
    )


def _variant_sections(
    averages: Mapping[tuple[str, str], Sequence[Record]], named_variants: Collection[str]
) -> Iterator[Section]:
    """Averages over the tasks of each variant: other cells, rows, ways of disturbing, clipping."""
    kinds: dict[str, list[Record]] = {}
    for (kind, variant), own in averages.items():
        if variant and variant in named_variants:
            some = [replace(r, options={**r.options, "variant": variant}) for r in own]
            kinds.setdefault(kind, []).extend(some)
    for kind, records in kinds.items():

        def variant_title(record: Record) -> str:
            return f"{record.options['variant']}, nominal {formats.level(record.coverage)}"

        as_many = [r for r in records if r.options["variant"] == _AS_MANY_ROWS]
        level = coverage_of((r.coverage for r in as_many), None) if as_many else math.nan
        lines = _pattern([r for r in as_many if r.coverage == level], _units(kind))
        (grid,) = _numbers("Averages by variant", records, _means(records), by=variant_title)
        if len(grid.parts) == 1:  # which variant it is must be told all the same
            grid = replace(grid, parts=(replace(grid.parts[0], title=variant_title(records[0])),))
        yield Section(
            title=f"{kind}: variants",
            lines=tuple(replace(line, question=f"{line.question}, 50,000 rows") for line in lines),
            grids=(grid,),
        )


def _means(records: Sequence[Record]) -> str:
    """What averages are means of."""
    tasks = {float(record.options["tasks"]) for record in records}
    few, many = min(tasks), max(tasks)
    over = f"{many:g}" if few == many else f"{few:g} to {many:g}"
    return f"Means over {over} tasks of medians over the splits, ± the standard error over tasks."


_SIDES: Final = {-1: "worse than", 0: "not significantly different from", 1: "better than"}


def _difference_section(
    compared: Mapping[str, Sequence[MethodComparison]],
    variants: Mapping[str, str],
    coverage: float | None,
) -> Iterator[Section]:
    """Whether groups by ease help intervals: differences on real tables, and why they are so."""
    by_variant: dict[str, list[MethodComparison]] = {"": []}
    for name, of_task in compared.items():
        for each in of_task:
            if each.units == "y" and DRAWN not in each.about:
                variant = variants[name] or ("clipped" if CLIPPED in each.about else "")
                by_variant.setdefault(variant, []).append(replace(each, task=str(name)))
    records = differences(by_variant[""])
    overall = [record for record in records if not record.group]
    if not overall:
        return
    level = coverage_of((record.coverage for record in overall), None)
    if coverage in {record.coverage for record in overall}:
        level = coverage
    single = [record for record in records if record.group and record.coverage == level]
    titles = {TITLES[measure]: measure for measure in RANKED}
    grids = [
        pivot(
            [*overall, *(_counts(record) for record in overall)],
            "Differences over real tables",
            columns={
                name: measure
                for title, key in titles.items()
                for name, measure in ((title, key), (f"{title} better", f"{key}_better"))
            },
            show=lambda r: number_cell(r.value) if r.metric.endswith("r") else interval_cell(r),
            words="Contrast",
            notes=(
                f"Means over {overall[0].options['tasks']:g} real tables of the mean difference "
                "over splits, with Student's interval of 95 % over tables; and the number of "
                "tables on which the first method is better.",
                "R-CPA: groups by ease, each threshold is estimated from random rows.",
            ),
        ),
        pivot(
            single,
            "Differences by table",
            rows="group",
            columns="model",
            parts=lambda record: f"{TITLES[record.metric]}, nominal {formats.level(level)}",
            words="Table",
            notes=(
                "Mean difference over the splits ± its standard error, corrected for rows that "
                "splits share (Nadeau and Bengio 2003).",
            ),
        ),
    ]
    sized = [
        replace(record, options={**record.options, "rows": variant})
        for variant, some in by_variant.items()
        if variant
        for record in differences(some)
        if not record.group and record.coverage == level
    ]
    if sized:
        grids.append(
            pivot(
                sized,
                "Differences by variant",
                rows="rows",
                columns="model",
                parts=lambda record: f"{TITLES[record.metric]}, nominal {formats.level(level)}",
                show=interval_cell,
                words="Variant",
                notes=("Means over the tables of a variant, with Student's interval of 95 %.",),
            )
        )
    spoken = [record for record in overall if record.coverage == level]
    yield Section(
        title="Do groups by ease help intervals?",
        lines=tuple(map(_difference_line, spoken)),
        grids=tuple(grid for grid in grids if grid is not None),
    )


def _counts(record: Record) -> Record:
    """On how many tables the first method is better."""
    return replace(record, metric=f"{record.metric}_better", value=float(record.options["better"]))


def _difference_line(record: Record) -> VerdictLine:
    """One contrast by one measure, as far as chance over tables allows to say."""
    first, second = record.model.split(" − ")
    sign = -1 if record.metric == "t_cv" else 1
    proven = int(record.lower > 0) - int(record.upper < 0)
    tones: dict[int, Tone] = {-1: "bad", 0: "undecided", 1: "good"}
    side = sign * proven
    text = (
        f"By {TITLES[record.metric]}, {first} is {_SIDES[side]} {second}: "
        f"{formats.fixed(record.value, 3, plus=True)} "
        f"({formats.interval(record.lower, record.upper)}), and better on "
        f"{record.options['better']:g} of {counted(int(record.options['tasks']), 'table')}."
    )
    return VerdictLine(text=text, tone=tones[side], question=record.model)


def _units(kind: str) -> str:
    return next(units for units, words in _KINDS.items() if kind.startswith(words))


def _numbers(
    title: str,
    records: Sequence[Record],
    *notes: str,
    by: str | Callable[[Record], str] = "coverage",
) -> tuple[Grid, ...]:
    """Averages or medians of every measure and ranks, one part a coverage."""
    floors = [
        replace(record, metric=f"{record.metric}_floor")
        for record in records
        if record.metric in RANKED
    ]
    measured = {record.metric for record in (*records, *floors)}
    columns = {
        name: (measure, _floor_cell if measure.endswith("_floor") else _average)
        for measure, name in _COLUMNS.items()
        if measure in measured
    }
    notes = (*notes, _FLOORS) if floors else notes
    grid = pivot([*records, *floors], title, columns=columns, parts=by, notes=notes)
    return () if grid is None else (grid,)


def _floor_cell(record: Record) -> Cell:
    """What chance alone shows, on one task or from one to another."""
    ends = dict.fromkeys(f"{end:.3f}" for end in (record.null_lower, record.null_upper))
    return Cell(text=" to ".join(ends), key=sort_key(record.null_lower))


def _ranks_of(result: MethodComparison) -> Iterator[Record]:
    """The shared ranks of one task, as records of it."""
    for record in average_records([result]):
        if record.metric.endswith("_rank"):
            yield replace(record, group=f"task={result.task}")


def _average(record: Record) -> Cell:
    """A number with its error, and of how many tasks where not of all."""
    alone = math.isnan(record.standard_error)
    cell = number_cell(record.value) if alone else record_cell(record)
    answered, tasks = (float(record.options[name]) for name in ("answered", "tasks"))
    if answered in (0, tasks):
        return cell
    return replace(cell, small=f"{cell.small} of {answered:g} of {tasks:g} tasks".strip())


def _pattern(averages: Sequence[Record], units: str) -> Iterator[VerdictLine]:
    """Whether averages order the methods as the published do, and what chance alone shows."""
    level = averages[0].coverage if averages else math.nan
    for measure in RANKED:
        printed = published("adaptivity", task=_PAPERS[units], measure=measure, coverage=level)
        known = {row.method: row.value for row in printed}
        here = {
            r.model: r.value
            for r in averages
            if r.metric == measure
            and r.model in known
            and r.options["answered"] == r.options["tasks"]
        }
        if len(here) < 3:
            continue
        ends = []
        for numbers in (here, known):
            rising = sorted(here, key=numbers.__getitem__)
            ends.append((rising[0], rising[-1]) if measure == "t_cv" else (rising[-1], rising[0]))
        pairs = [(a, b) for a, b in combinations(here, 2) if known[a] != known[b]]
        same = sum((here[a] - here[b]) * (known[a] - known[b]) > 0 for a, b in pairs)
        beside = "as published" if ends[0] == ends[1] else f"published: {listed(ends[1])}"
        text = f"By {TITLES[measure]}, {ends[0][0]} is best and {ends[0][1]} worst; {beside}. "
        text += f"{same} of {len(pairs)} pairs of methods have the published order."
        yield VerdictLine(text=text, question=f"Order by {TITLES[measure]}")
    yield from _chance(averages, units, level)


def _chance(averages: Sequence[Record], units: str, level: float) -> Iterator[VerdictLine]:
    """What T-CV is by chance, and how much of the difference to the published that explains."""
    rows = published("adaptivity", task=_PAPERS[units], measure="t_cv", coverage=level)
    known = {row.method: row.value for row in rows}
    here = [r for r in averages if r.metric == "t_cv" and r.model in known]
    if not here:
        return
    low, high = here[0].null_lower, here[0].null_upper
    text = f"By chance alone, T-CV is {_floor_cell(here[0]).text} here"
    if units in _PAPERS_CELLS:
        there = floor_of(*_PAPERS_CELLS[units], level).median
        gap = float(np.mean([abs(record.value - known[record.model]) for record in here]))
        of_chance = abs((low + high) / 2 - there)
        text += (
            f", and {there:.3f} in the paper. On average T-CV is {gap:.3f} from the published; "
            f"chance explains up to {of_chance:.3f} of it, data and models the rest"
        )
    yield VerdictLine(text=f"{text}.", question="Chance")


def _own_averages(
    averages: Mapping[tuple[str, str], Sequence[Record]],
) -> Iterator[OwnNumber]:
    """Averages under the paper's names; a kind beyond the first of its units adds its words."""
    for (kind, variant), records in averages.items():
        if variant not in _PRINTED_CELLS:
            continue
        words = kind.removeprefix(_KINDS[_units(kind)]) + (f", {variant}" if variant else "")
        task = _PAPERS[_units(kind)] + _PRINTED_CELLS[variant]
        for record in records:
            own = replace(record, model=f"{record.model}{words}")
            yield OwnNumber(task=task, method=record.model, record=own)


# Which measure is valid


def _rank_records(checks: Sequence[MethodValidation], settings: int) -> dict[str, list[Record]]:
    """By measure: how often it ranks first to last, as of so many settings, and its average."""
    ranks = correlation_ranks(np.array([check.found.rho for check in checks]))
    records: dict[str, list[Record]] = {}
    for measure, column in zip(VALIDATED, ranks.T, strict=True):
        numbers = {name: settings * (column == int(name[-1])) for name in _PLACES}
        for name, values in {"rank_average": column, **numbers}.items():
            value, error = agreed_mean(values, float(settings) if name in _PLACES else 1.0)
            record = Record(metric=name, value=value, standard_error=error, model=TITLES[measure])
            records.setdefault(measure, []).append(record)
    return records


def _own_ranks(checks: Sequence[MethodValidation]) -> Iterator[OwnNumber]:
    """The same under the paper's names, as of as many settings as it has."""
    task, settings = _VALIDATION
    for measure, records in _rank_records(checks, settings).items() if checks else ():
        for record in records:
            yield OwnNumber(task=task, method=measure, record=record)


def _validation(checks: Sequence[MethodValidation]) -> tuple[Section, ...]:
    """Which measure follows Property 1, and what T-CV and T-SS are by other eases."""
    if not checks:
        return ()
    first = checks[0].found
    ranks = sorted(_rank_records(checks, len(checks)).values(), key=lambda own: own[0].value)
    line = VerdictLine(
        text=(
            f"{ranks[0][0].model} follows Property 1 most closely, {ranks[1][0].model} next, over "
            f"{len(checks)} settings; published: T-SS and Deficit over 36."
        ),
        question="Measures",
    )
    counts = pivot(
        (record for own in ranks for record in own),
        "How often each measure ranks first to last",
        columns={**{name[-1]: name for name in _PLACES}, "Average": "rank_average"},
        show=lambda record: number_cell(record.value),
        words="Measure",
        notes=(
            "Property 1: of two random subsets the harder one has the larger sets. Ranks are by "
            "the size of Spearman's correlation with the share of pairs that satisfy it.",
            f"{len(first.rate)} trials per setting, with at most "
            f"{max(c.found.rows for c in checks)} "
            f"rows and {first.pairs:,} pairs of subsets. More pairs allow larger correlations.",
        ),
    )
    correlations = number_grid(
        "Correlations",
        [*(TITLES[measure] for measure in VALIDATED), "At most about"],
        [
            (
                *(Cell(text=check.task), Cell(text=check.method)),
                *(number_cell(float(value)) for value in check.found.rho),
                number_cell(check.found.reliability**0.5),
            )
            for check in checks
        ],
        words=("Task", "Method"),
    )
    sections = [
        Section(
            title="Which measure follows Property 1?",
            lines=(line,),
            grids=(*([counts] if counts else []), correlations),
        )
    ]
    by_task: dict[str, list[MethodValidation]] = {}
    for check in (check for check in checks if len(check.ways) > 1):
        by_task.setdefault(check.task, []).append(check)
    choices: list[Choice] = []
    for measure in RANKED:
        figures = {
            task: sensitivity_figure(
                own[0].ways,
                {check.method: getattr(check, measure) for check in own},
                measure,
                title="way of disturbing",
            )
            for task, own in by_task.items()
        }
        choices += choice_of("Task", figures.items())
    if choices:
        title = "Does the way of disturbing matter?"
        sections.append(Section(title=title, choices=tuple(choices)))
    return tuple(sections)


# The first screen


def _gaps(result: MethodComparison) -> dict[str, Record]:
    """The T-CV of each method that has one, beside what chance alone shows."""
    records = (record for record in result.records() if record.metric == "t_cv")
    return {record.model: record for record in records if math.isfinite(record.value)}


def _tone(gap: Record) -> Tone:
    """Whether a gap is larger than chance alone shows 95 % of the time."""
    return "bad" if gap.value > gap.null_upper else "undecided"


def _headline(spoken: Spoken) -> VerdictLine | None:
    """Which methods cover easy and hard inputs alike, as far as chance allows to say."""
    gaps: dict[str, dict[str, list[bool]]] = {}
    for result in spoken.values():
        for method, gap in _gaps(result).items():
            of_kind = gaps.setdefault(_KINDS[result.units], {})
            of_kind.setdefault(method, []).append(_tone(gap) == "bad")
    shown = [gap for of_kind in gaps.values() for own in of_kind.values() for gap in own]
    if not shown:
        return None
    tone: Tone = "bad" if all(shown) else "undecided"
    level = f"at nominal {_levels(spoken)}"
    if len(spoken) == 1:
        (of_kind,) = gaps.values()
        good = [method for method, own in of_kind.items() if not any(own)]
        text = (
            f"{len(good) or 'None'} of {counted(len(of_kind), 'method')} on {next(iter(spoken))} "
            f"{'shows' if len(good) == 1 else 'show'} no significant coverage gap between easy and "
            f"hard inputs {level}"
        )
        text += f": {listed(good, 3)}." if good else "."
        if 0 < len(good) < len(of_kind):
            text += " The gaps of the others are larger than expected by chance."
        return VerdictLine(text=text, tone=tone)
    answer = "No" if all(shown) else "Not everywhere" if any(shown) else "No significant gap"
    sentences = [
        f"{answer}: in {sum(shown)} of {len(shown)} tests, coverage {level} differs significantly "
        "between easy and hard inputs.",
        *(_extremes(kind, of_kind) for kind, of_kind in gaps.items()),
    ]
    return VerdictLine(text=" ".join(sentences), tone=tone)


def _extremes(kind: str, gaps: Mapping[str, Sequence[bool]]) -> str:
    """With which methods gaps are fewest and most."""
    shares = {method: sum(own) / len(own) for method, own in gaps.items()}
    ends = []
    for share in dict.fromkeys((min(shares.values()), max(shares.values()))):
        names = [name for name, own in shares.items() if own == share]
        ends.append((listed(names, 3), sum(gaps[names[0]]), len(gaps[names[0]])))
    (best, few, of), (worst, many, of_worst) = ends[0], ends[-1]
    on = f"{few} of {counted(of, 'task')}"
    if len(ends) == 1:
        return f"{kind}: a gap on {on} for each method."
    return f"{kind}: least often for {best} ({on}), most often for {worst} ({many} of {of_worst})."


def _levels(spoken: Spoken) -> str:
    """The coverages that sentences speak of."""
    return " or ".join(
        formats.level(level) for level in sorted({result.coverage for result in spoken.values()})
    )


def _opening(spoken: Spoken) -> Section:
    """T-CV of every method on every task, beside what chance alone shows."""
    gaps = {name: _gaps(result) for name, result in spoken.items()}
    states: dict[str, dict[str, Cell]] = {}
    for name, own in gaps.items():
        for method, gap in own.items():
            cell = replace(number_cell(gap.value), tone=_tone(gap))
            states.setdefault(method, {})[name] = cell
    if not states:
        return Section(title="")
    floor = max(result.floor.median for result in spoken.values())
    medians = {name: {m: gap.value for m, gap in own.items()} for name, own in gaps.items()}
    label = "chance alone" if len(spoken) == 1 else "chance alone, at most"
    title = f"T-CV at nominal {_levels(spoken)}"
    note = "T-CV: the largest coverage gap over cells of similar difficulty; lower is better."
    grid = overview(title, states, _STATES, note)
    figure = methods_figure(medians, "t_cv", rules={label: floor})
    if len(spoken) > _MAX_TASKS_BY_COLOUR:
        figure = replace(
            figure,
            layers=tuple(
                replace(layer, series="a task", colour=0) if layer.mark is Mark.POINTS else layer
                for layer in figure.layers
            ),
        )
    return Section(title="", grids=(grid,), choices=choice_of("", [("", figure)]))


# One task


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
        grids=_medians(results),
        choices=_choices(results, wanted),
    )


def _seeded(results: Sequence[MethodComparison]) -> bool:
    return len({result.seed for result in results}) > 1


def _heading(result: MethodComparison, results: Sequence[MethodComparison]) -> str:
    seed = f", seed {result.seed}" if _seeded(results) else ""
    return f"Nominal {formats.level(result.coverage)}{seed}"


def _medians(results: Sequence[MethodComparison]) -> tuple[Grid, ...]:
    """Medians of every measure at every coverage, and under every seed."""
    return _numbers(
        "Methods",
        [
            replace(record, options={**record.options, "part": _heading(result, results)})
            for result in results
            for record in average_records([result])
        ],
        f"Medians over the splits. {_RANKS} Splits share rows, so these tests are overconfident.",
        *sorted({f"{m}: {why}." for r in results for (m, _), why in r.reasons.items()}),
        by="part" if _seeded(results) else "coverage",
    )


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
    floor, slopes = comparison.floor, comparison.medians("t_ss")
    chance = f"By chance alone it is {floor.median:.3f} (95 % of the time below {floor.upper:.3f})."
    lines = []
    for tone, question in _GROUPS.items():
        own = {m: gap.value for m, gap in _gaps(comparison).items() if _tone(gap) == tone}
        if own:
            text = f"T-CV is {_span(own)}. {chance}"
            lines.append(VerdictLine(text=text, tone=tone, question=question))
    known = {method: slope for method, slope in slopes.items() if math.isfinite(slope)}
    if known:
        text = f"T-SS (agreement of size and difficulty) is {_span(known)}. Sizes that ignore "
        text += f"difficulty stay below {comparison.slope_floor:.3f}, 95 % of the time."
        lines.append(VerdictLine(text=text, question="Size and difficulty"))
    for record in comparison.records():
        if record.metric in RANKED and math.isnan(record.value):
            reason = record.reason or "no repeat has an answer"
            text = f"{TITLES[record.metric]} of {record.model} is not known: {reason}."
            lines.append(VerdictLine(text=text, question="Not known"))
    return tuple(lines)


def _span(values: Mapping[str, float]) -> str:
    """Every value where they are few, else the ends of their range."""
    order = sorted(values, key=values.__getitem__)
    spoken = [f"{formats.fixed(values[method], 3)} ({method})" for method in order]
    if len(spoken) < 4:
        return listed(spoken)
    return f"{spoken[0]} to {spoken[-1]} for {len(spoken)} methods"


# Figures


def methods_figure(
    values: Mapping[str, Mapping[str, float]],
    measure: str,
    *,
    rules: Mapping[str, float] | None = None,
) -> Figure:
    """One measure of several methods as a dot plot, a colour a task or a source."""
    if not values or measure not in TITLES:
        raise InputError(
            f"values must contain a series and measure be one of {', '.join(TITLES)}, "
            f"got {len(values)} series and {measure!r}"
        )
    rows = list(dict.fromkeys(name for series in values.values() for name in series))
    layers = [
        Layer(mark=Mark.RULE, x=np.array([at]), series=label, colour=REFERENCE)
        for label, at in (rules or {}).items()
        if math.isfinite(at)
    ]
    for colour, (series, numbers) in enumerate(values.items()):
        known = [k for k, name in enumerate(rows) if math.isfinite(numbers.get(name, math.nan))]
        layers.append(
            Layer(
                mark=Mark.POINTS,
                x=np.array([numbers[rows[k]] for k in known], dtype=np.float64),
                y=np.array(known, dtype=np.float64),
                series=series,
                colour=colour,
                labels=tuple(rows[k] for k in known),
            )
        )
    return Figure(
        name=f"methods_{measure}",
        question=_QUESTIONS.get(measure, "How do the methods compare?"),
        title=f"{TITLES[measure]} of each method",
        reading=_READINGS.get(measure, ""),
        x=Axis(title=TITLES[measure]),
        y=Axis(kind="category", categories=distinct(rows)),
        layers=tuple(layers),
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
    by_way = {name: dict(zip(ways, column, strict=True)) for name, column in values.items()}
    return replace(
        methods_figure(by_way, measure),
        name=f"sensitivity_{measure}",
        question="Does the measure depend on how inputs are perturbed?",
        title=f"{TITLES[measure]} by {title}",
        reading="The choice makes no difference where points of one colour share a vertical line.",
        naming="Way",
    )
