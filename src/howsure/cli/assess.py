"""`howsure assess` and `howsure merge`: the verdict first, then the numbers behind it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.table import Table

from howsure.cli.options import ReadOptions, ReportFlags
from howsure.cli.progress import Stages
from howsure.cli.show import show_grid, show_lines, show_note
from howsure.cli.terminal import Console, escape, say_written
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.progress import report_progress, subscribe
from howsure.inputs import ColumnUse
from howsure.inputs.roles import ROLES
from howsure.inputs.tables import FILES, SAMPLE
from howsure.report.assess import MISSING_IMAGES, WEIGHTS, assess_loaded
from howsure.report.assessment import Assessment
from howsure.report.coercion import source_fact
from howsure.report.document import Document, Tone, VerdictLine, form_of
from howsure.report.grids import record_grid, silent_grids
from howsure.report.no_rows import check_no_state
from howsure.report.options import Options
from howsure.report.plain import in_brief, sentences, states_beside
from howsure.streaming import State, loaded_state, merged_states

_CAUTIONS: dict[str, Tone] = {
    MISSING_IMAGES: "caution",
    WEIGHTS: "info",
    FILES: "info",
    SAMPLE: "info",
}
"""Facts that a reader of the verdict must know."""


def run(
    files: Sequence[Path],
    report: ReportFlags,
    reference: Path | None,
    options: Options,
    read: ReadOptions,
    *,
    explain_input: bool,
) -> None:
    """Read, assess, print, and write what is asked for."""
    shown = report.printed
    if reference is not None:
        if shown != "brief":
            raise InputError(f"--{shown} cannot be given with --reference")
        if explain_input:
            raise InputError("--explain-input cannot be given with --reference")
        from howsure.cli import monitor

        monitor.run(files, reference, report, options, read)
        return
    if report.csv_safe:
        raise InputError("--csv-safe applies only to tables of rows, which need --reference")
    if shown == "quiet" and not report.output:
        raise InputError("--quiet prints nothing: name a report with -o")
    written = _written(files, report, read.large.state, options)
    if explain_input:
        uses = read.explain(list(files) if len(files) > 1 else files[0])
        print_explanation(Console(), uses, names=shown == "all")
        return
    work = partial(judged, files, read, options, command=_command())
    _report(work, report, written)


def merge(files: Sequence[Path], report: ReportFlags, state: Path | None, options: Options) -> None:
    """One assessment of tables that were assessed apart, without their rows."""
    if report.printed == "quiet" and not report.output and state is None:
        raise InputError("--quiet prints nothing: name a report with -o, or --state")
    written = _written(files, report, state, options)
    _report(partial(_merged, files, state, options), report, written)


def _merged(files: Sequence[Path], path: Path | None, options: Options) -> Assessment:
    """Read states, keep what they are together, and assess that."""
    states = []
    for number, file in enumerate(files):
        report_progress("reading states", number, len(files))
        states.append(State.open(file))
    merged = merged_states(states, [str(file) for file in files])
    if path is not None:
        merged.save(path)
    return assess_loaded(
        loaded_state(merged),
        options,
        facts=source_fact(list(files)),
        coverages=merged.models[0].coverages,
        command=_command(),
        recalibration={},
    )


def _command() -> str:
    """What was typed."""
    return shlex.join(["howsure", *sys.argv[1:]])


def _written(
    files: Sequence[Path],
    report: ReportFlags,
    state: str | os.PathLike[str] | None,
    options: Options,
) -> list[Path]:
    """All files that are written; what cannot be done is refused before any work."""
    for path in report.output:
        form_of(path)
    written = [*report.output, *([] if state is None else [Path(state)])]
    check_outputs(written, files)
    if options.no_rows:
        check_no_state(state)
    return written


def judged(
    files: Sequence[Path],
    read: ReadOptions,
    options: Options,
    *,
    command: str,
) -> Assessment:
    """Read tables and assess them."""
    report_progress("reading")
    loaded = read.load(list(files) if len(files) > 1 else files[0], options.seed)
    return assess_loaded(
        loaded,
        options,
        facts=source_fact(files),
        coverages=read.assessed,
        command=command,
        recalibration=_recalibration(files, read, [evalset.model for evalset in loaded.evalsets]),
    )


def _report(work: Callable[[], Assessment], report: ReportFlags, written: Sequence[Path]) -> None:
    """Assess, write what is asked for, print it as is asked for, and say what was written."""
    console, shown = Console(), report.printed
    with Stages(report.progress) as stages, subscribe(stages):
        result = work()
        if shown in ("all", "json"):
            result.whole()  # while progress is shown
        for path in report.output:
            report_progress(f"writing {path.name}")
            result.save(path)
    if shown == "json":
        sys.stdout.write(result.to_json())
    if shown in ("json", "quiet"):
        return
    everything = shown == "all"
    document = result.document() if everything else result.brief_document()
    print_report(console, document, everything=everything)
    if not everything:
        show_note(console, "--all shows every sentence and number; -o report.html writes a page.")
    say_written(console, *written)


def _recalibration(
    files: Sequence[Path], read: ReadOptions, models: Sequence[str]
) -> dict[str, str]:
    """How the command begins that recalibrates new rows of each model that has its own table."""
    flags = read.words(
        without={"groups", "at", "common_rows"}
    )  # the method names the columns that it needs
    words = ["howsure", "recalibrate", "NEW.csv", "--calibration"]
    if len(models) != len(files):
        return {}
    return {
        model: shlex.join([*words, str(path), *flags])
        for model, path in zip(models, files, strict=True)
    }


def print_explanation(console: Console, uses: Sequence[ColumnUse], *, names: bool = False) -> None:
    """How the columns would be read, what to do next, and, if wanted, every recognised name."""
    several = len({use.source for use in uses}) > 1
    table = Table(title="How the columns are read", title_justify="left")
    for heading in (*(["table"] if several else []), "column", "role", "note"):
        table.add_column(heading, overflow="fold")
    for use in uses:
        cells = (*([use.source] if several else []), use.column, use.role, use.note)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    if names:
        _print_names(console)
    more = "" if names else "; --all lists every flag with its recognised names"
    show_note(
        console,
        "If this is right, run the same command without --explain-input. If not, name columns "
        f"with flags, such as --y COLUMN{more}.",
    )


def _print_names(console: Console) -> None:
    """Names of columns that are recognised."""
    names_table = Table(title="Recognised names", title_justify="left")
    for heading in ("flag", "names (upper or lower case)"):
        names_table.add_column(heading, overflow="fold")
    for role in ROLES:
        if role.shown:
            beginning = "such as " if role.examples else ""
            names_table.add_row(role.option, escape(beginning + ", ".join(role.shown)))
    console.print(names_table)


def print_report(console: Console, document: Document, *, everything: bool = False) -> None:
    """The verdict, then the key numbers; or all numbers, and what has none."""
    brief = in_brief(document)
    console.print()
    show_lines(console, sentences(document) if everything else brief.opening.lines)
    cautions = [name for name in _CAUTIONS if name in document.facts]
    facts = [VerdictLine(f"{name}: {document.facts[name]}.", _CAUTIONS[name]) for name in cautions]
    show_lines(console, facts)
    grids = list(brief.opening.grids)
    if everything:
        numbers = record_grid(document.records, document.glossary, narrow=True)
        grids = list(filter(None, (states_beside(document), numbers)))
        grids += [replace(section.grids[0], title=section.title) for section in brief.sections]
        grids += silent_grids(document.records, document.glossary, document.tables, by_model=False)
    for grid in grids:
        show_grid(console, grid)
