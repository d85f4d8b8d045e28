"""`howsure assess`: the verdict first, then the numbers behind it."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from howsure.cli.options import CongruenceFlags, PartFlags, ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.show import BETTER, show_grid, show_lines, show_note
from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.progress import report_progress, subscribe
from howsure.engine.catalogue import asked_for
from howsure.engine.metric import MISS_RANGE
from howsure.inputs import ColumnUse
from howsure.inputs.roles import ROLES
from howsure.inputs.tables import FILES, SAMPLE
from howsure.report.assess import MISSING_IMAGES, WEIGHTS, assess_loaded
from howsure.report.assessment import Assessment
from howsure.report.coercion import source_fact
from howsure.report.document import Cell, Document, Grid, Tone, VerdictLine, form_of
from howsure.report.no_rows import check_no_state
from howsure.report.short_forms import in_brief, sentences, states_beside
from howsure.verdict.family import check_judging

_CAUTIONS: dict[str, Tone] = {
    MISSING_IMAGES: "caution",
    WEIGHTS: "info",
    FILES: "info",
    SAMPLE: "info",
}
"""Facts that a reader of the verdict must know."""
_LEFT_OUT = ("n", "Units")
_DIRECTION = "Better"


def run(
    files: Sequence[Path],
    outputs: Sequence[Path],
    explain: bool,
    slow: Sequence[str],
    judging: tuple[float, Sequence[str], tuple[float, float] | None, int | None],
    confidence: float,
    seed: int,
    progress: bool | None,
    tuned: CongruenceFlags,
    read: ReadOptions,
    trials: bool = True,
    shown: str = "brief",
    parts: PartFlags | None = None,
    beside: Mapping[str, Any] | None = None,
    *,
    no_rows: bool = False,
) -> None:
    """Read, assess, print, and write what is asked for."""
    if shown == "quiet" and not outputs:
        raise InputError("--quiet prints nothing: name a report with -o")
    console = Console()
    for path in outputs:
        form_of(path)
    kept = [] if parts is None or parts.state is None else [parts.state]
    check_outputs([*outputs, *kept], files)
    if no_rows:
        check_no_state(next(iter(kept), None))
    tolerance, ignore, miss_range, cells = judging
    check_judging(tolerance, ignore)
    slow = asked_for(slow, "--with")
    if explain:
        print_explanation(console, read.explain(list(files) if len(files) > 1 else files[0]))
        return
    choices = tuned.options()
    with Stages(progress) as stages, subscribe(stages):
        result = judged(
            files,
            read,
            parts,
            command=shlex.join(["howsure", *sys.argv[1:]]),
            confidence=confidence,
            seed=seed,
            slow=slow,
            tolerance=tolerance,
            ignore=ignore,
            trials=trials,
            congruence=choices,
            miss_range=miss_range or MISS_RANGE,
            cells=cells,
            no_rows=no_rows,
            **(beside or {}),
        )
        write(result, shown, outputs)
    show(console, result, shown, [*outputs, *kept])


def judged(
    files: Sequence[Path],
    read: ReadOptions,
    parts: PartFlags | None = None,
    *,
    command: str,
    seed: int = 0,
    **options: Any,
) -> Assessment:
    """Read tables and assess them; options are those of `assess_loaded`."""
    report_progress("reading")
    loaded = read.load(list(files) if len(files) > 1 else files[0], parts, seed)
    return assess_loaded(
        loaded,
        facts=source_fact(files),
        coverages=read.assessed,
        seed=seed,
        command=command,
        recalibration=_recalibration(files, read, [evalset.model for evalset in loaded.evalsets]),
        **options,
    )


def write(result: Assessment, shown: str, outputs: Sequence[Path]) -> None:
    """Compute all that will be shown, while progress is, and write what is asked for."""
    if shown in ("all", "json"):
        result.whole()
    for path in outputs:
        report_progress(f"writing {path.name}")
        result.save(path)


def show(console: Console, result: Assessment, shown: str, written: Sequence[Path]) -> None:
    """Print an assessment as it is asked for, and what was written."""
    if shown == "json":
        sys.stdout.write(result.to_json())
    if shown in ("json", "quiet"):
        return
    everything = shown == "all"
    document = result.document() if everything else result.brief_document()
    print_report(console, document, everything=everything)
    if not everything:
        show_note(console, "--all shows every sentence and number, -o report.html a page.")
    for path in written:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _recalibration(
    files: Sequence[Path], read: ReadOptions, models: Sequence[str]
) -> dict[str, str]:
    """How the command begins that recalibrates new rows of each model that has its own table."""
    told = read.flags(without={"groups"})  # the method names the columns that it needs
    words = ["howsure", "recalibrate", "NEW.csv", "--calibration"]
    if len(models) != len(files):
        return {}
    return {
        model: shlex.join([*words, str(path), *told])
        for model, path in zip(models, files, strict=True)
    }


def print_explanation(console: Console, uses: Sequence[ColumnUse]) -> None:
    """How the columns would be read."""
    several = len({use.source for use in uses}) > 1
    table = Table(title="How the columns are read", title_justify="left")
    for heading in (*(["table"] if several else []), "column", "role", "note"):
        table.add_column(heading, overflow="fold")
    for use in uses:
        cells = (*([use.source] if several else []), use.column, use.role, use.note)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    known = Table(title="Recognised names", title_justify="left")
    for heading in ("flag", "names, in any case"):
        known.add_column(heading, overflow="fold")
    for role in ROLES:
        if role.shown:
            beginning = "such as " if role.examples else ""
            known.add_row(role.option, escape(beginning + ", ".join(role.shown)))
    console.print(known)


def print_report(console: Console, document: Document, *, everything: bool = False) -> None:
    """The verdict, then the key numbers; or all numbers, and what has none."""
    brief = in_brief(document)
    console.print()
    show_lines(console, sentences(document) if everything else brief.opening.lines)
    known = [name for name in _CAUTIONS if name in document.facts]
    facts = [VerdictLine(f"{name}: {document.facts[name]}.", _CAUTIONS[name]) for name in known]
    show_lines(console, facts)
    grids = list(brief.opening.grids)
    if everything:
        held = {section.label: section.grids for section in document.sections}
        states = states_beside(document)
        grids = [*([states] if states else []), *map(_narrow, held.get("Numbers", ())[:1])]
        grids += [replace(part.grids[0], title=part.title) for part in brief.sections]
        grids += [_without_models(grid) for grid in held.get("Silent", ())]
    for grid in grids:
        show_grid(console, grid)


def _narrow(grid: Grid) -> Grid:
    """The numbers of a page for a terminal: without what an interval beside them tells anyway."""
    titles = [column.title for column in grid.columns]
    kept = [place for place, title in enumerate(titles) if title not in _LEFT_OUT]
    rows = [row for part in grid.parts for row in part.rows]
    alike = Counter((row[0].text, _shortened(row[0]).small) for row in rows)

    def narrowed(cell: Cell, title: str) -> Cell:
        if title == titles[0]:
            less = _shortened(cell)
            return less if alike[cell.text, less.small] == 1 else cell
        if title == _DIRECTION:
            return replace(cell, text=cell.text[:1])
        return replace(cell, small="") if title == "Value" else cell

    parts = tuple(
        replace(
            part,
            rows=tuple(tuple(narrowed(row[k], titles[k]) for k in kept) for row in part.rows),
        )
        for part in grid.parts
    )
    columns = tuple(
        replace(grid.columns[k], title="" if titles[k] == _DIRECTION else titles[k]) for k in kept
    )
    return replace(grid, columns=columns, parts=parts, notes=(*grid.notes, BETTER))


def _shortened(cell: Cell) -> Cell:
    """Of what decided a number, its coverage and its rows."""
    return cell.remarked(remark for remark in cell.remarks if remark[0] in ("coverage", "where"))


def _without_models(grid: Grid) -> Grid:
    """A table whose rows are the same for several models, each row once."""
    if grid.columns[0].title != "Model":
        return grid
    parts = tuple(
        replace(part, rows=tuple(dict.fromkeys(row[1:] for row in part.rows)))
        for part in grid.parts
    )
    return replace(grid, columns=grid.columns[1:], parts=parts)
