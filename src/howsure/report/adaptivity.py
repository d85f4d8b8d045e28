"""The report of a comparison of methods by how they adapt: one page, Markdown, JSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

from howsure._version import __version__
from howsure.core import formats
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.figures import Figure
from howsure.figures.adaptivity import TITLES, Rule, ease_figure, methods_figure, size_figure
from howsure.figures.ranks import rank_figure
from howsure.protocols.adaptivity_result import MethodComparison
from howsure.report.adaptivity_words import GLOSSARY, headline, method_lines, published_of
from howsure.report.document import (
    Cell,
    Choice,
    Column,
    GlossaryEntry,
    Grid,
    Option,
    Rows,
    VerdictLine,
)
from howsure.report.grids import number_cell
from howsure.report.parted import PartedReport
from howsure.report.pointwise_sections import WorldPart

_FIRST_CHOICE: Final = 0.9
_RANKED: Final = ("t_cv", "t_ss")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptivityPage(PartedReport):
    """What comparisons of methods found, in every form; `adaptivity_report` makes it.

    Attributes
    ----------
    coverage : float
        The nominal coverage that sentences speak of; tables hold all.
    results : tuple of MethodComparison
        What it is made from.
    """

    glossary: ClassVar[tuple[GlossaryEntry, ...]] = GLOSSARY

    coverage: float
    results: tuple[MethodComparison, ...]

    def data(self) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
        """A table of every comparison."""
        return tuple(result.table() for result in self.results), ()


def adaptivity_report(
    results: Mapping[str, Sequence[MethodComparison]],
    *,
    title: str = "Adaptivity",
    coverage: float | None = None,
    curves: Mapping[str, Sequence[Curve]] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> AdaptivityPage:
    """A report on methods compared by how they adapt, beside what was published."""
    held = [result for found in results.values() for result in found]
    if not held or not all(results.values()):
        raise InputError("results must hold at least one comparison for each task, got none")
    levels = sorted({result.coverage for result in held})
    if coverage is None:
        wanted = _FIRST_CHOICE if _FIRST_CHOICE in levels else levels[-1]
    else:
        wanted = check_fraction(coverage, "coverage")
        if wanted not in levels:
            known = ", ".join(f"{level:g}" for level in levels)
            raise InputError(f"coverage must be one that was compared ({known}), got {wanted:g}")
    parts = tuple(
        _part(name, found, wanted, (curves or {}).get(name, ())) for name, found in results.items()
    )
    stated = {
        "Tasks": ", ".join(map(str, results)),
        "Methods": ", ".join(dict.fromkeys(m for result in held for m in result.methods)),
        "Nominal coverage shown": f"{formats.level(wanted)}",
        "howsure": __version__,
    }
    spoken = [result for result in held if result.coverage == wanted]
    return AdaptivityPage(
        title=title,
        coverage=wanted,
        headline=headline(spoken),
        parts=parts,
        results=tuple(held),
        facts={**stated, **(facts or {})},
        command=command,
    )


def write_report(
    results: Mapping[str, Sequence[MethodComparison]],
    path: str | os.PathLike[str],
    *,
    title: str = "Adaptivity",
) -> None:
    """Write a report on methods compared: a page, Markdown, JSON or CSV by its ending."""
    adaptivity_report(results, title=title).save(path)


def _part(
    name: str, found: Sequence[MethodComparison], wanted: float, curves: Sequence[Curve]
) -> WorldPart:
    first = found[0]
    spoken = [result for result in found if result.coverage == wanted]
    lines: list[VerdictLine] = []
    for result in spoken:
        lines += method_lines(result)
    grids = [_medians(found), _published(found)]
    return WorldPart(
        name=str(name),
        facts={
            "Validation rows": f"{first.calibration_rows:,}",
            "Test rows": f"{first.test_rows:,}",
            "Cells by ease": str(first.bins),
            "Splits": str(first.repeats),
            "Ease": "surrogate, from the probabilities" if first.surrogate else "from inputs",
        },
        lines=tuple(lines),
        grids=tuple(grid for grid in grids if grid is not None),
        panels=_panels(found, wanted, curves),
        findings=(),
        records=tuple(record for result in found for record in result.records()),
    )


def _heading(result: MethodComparison, found: Sequence[MethodComparison]) -> str:
    seeds = len({other.seed for other in found}) > 1
    seed = f", seed {result.seed}" if seeds else ""
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
        "Medians over the splits. Beside T-CV and T-SS stands a shared rank: 1 + the number of "
        "methods that are significantly better (Friedman, then Wilcoxon–Holm). Splits share "
        "rows, so that the tests are too sure.",
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
        f"Published: averages over {of} (Jang and Lee 2025). Data and models differ, so that "
        "patterns can be compared and numbers cannot.",
    )
    return Grid(title="Beside the published", columns=columns, parts=tuple(parts), notes=notes)


def _panels(
    found: Sequence[MethodComparison], wanted: float, curves: Sequence[Curve]
) -> tuple[Choice, ...]:
    """Curves, and figures by coverage: the one that sentences speak of comes first."""
    made = []
    by_name = {
        name: [curve for curve in curves if curve.name == name]
        for name in ("coverage_by_ease", "size_by_difficulty")
    }
    drawn = [
        draw(by_name[name])
        for name, draw in (("coverage_by_ease", ease_figure), ("size_by_difficulty", size_figure))
        if by_name[name]
    ]
    if drawn:
        made.append(Choice(label="", options=(Option(label="", figures=tuple(drawn)),)))
    options = tuple(
        Option(label=_heading(result, found), figures=_figures(result))
        for result in sorted(found, key=lambda result: result.coverage != wanted)
    )
    made.append(Choice(label="Coverage", options=options))
    return tuple(made)


def _figures(result: MethodComparison) -> tuple[Figure, ...]:
    figures = []
    for measure in _RANKED:
        values = {"here": dict(zip(result.methods, result.median(measure).tolist(), strict=True))}
        known = published_of(result, measure)
        shared = {name: known[name] for name in result.methods if name in known}
        if shared:
            values["published, other data"] = shared
        rules = (Rule(at=result.floor.median, label="perfect model"),) if measure == "t_cv" else ()
        figures.append(methods_figure(values, measure, rules=rules))
    if result.repeats > 1 and len(result.methods) > 2:
        for measure in _RANKED:
            ranks: Table = result.ranks(measure).table(f"ranks_{measure}")
            figure = rank_figure(ranks)
            figures.append(replace(figure, title=f"{figure.title}, by {TITLES[measure]}"))
    return tuple(figures)
