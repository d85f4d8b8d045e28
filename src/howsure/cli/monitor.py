"""`howsure assess NEW --reference VAL`: score rows whose y is not known yet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from howsure.cli.assess import print_report
from howsure.cli.flags import address
from howsure.cli.options import ReadOptions, ReportFlags
from howsure.cli.progress import Stages
from howsure.cli.show import show_grid
from howsure.cli.terminal import Console, say_written
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.options import options_of, options_set
from howsure.core.progress import part_of, report_progress, subscribe
from howsure.core.records import ResultTable
from howsure.inputs import Loaded, Unlabelled, load_unlabelled, write_table
from howsure.inputs.files import table_form
from howsure.inputs.new import load_bare
from howsure.inputs.tables import SAMPLE
from howsure.report.coercion import columns_of
from howsure.report.grids import table_grid
from howsure.report.monitor import Monitor, Monitored, fit_monitor, monitored
from howsure.report.options import Options
from howsure.topics.congruence_options import CongruenceOptions

# Half a screen.
WORST_ROWS = 10
REPORTS = (".html", ".json", ".md")
"""Endings of outputs that hold a report; others hold the rows with their scores."""


_WITHOUT_Y = ("seed", "trials", "also", "no_rows")
"""Options that need no y, besides those of congruence."""


def run(
    files: Sequence[Path],
    reference: Path,
    report: ReportFlags,
    options: Options,
    read: ReadOptions,
) -> None:
    """Fit on the labelled reference, score the file's rows, print and write."""
    if len(files) != 1:
        raise InputError(f"--reference needs exactly one file, got {len(files)}")
    if refused := sorted({*options.also} - {"mean_cce"}):
        raise InputError(f"--also must be mean_cce where --reference is given, got {refused[0]!r}")
    if read.large.state is not None:
        raise InputError("--state cannot be given with --reference, which scores single rows")
    needs_y = {option.name for option in options_of(Options)} - {*_WITHOUT_Y}
    for option, _ in (*options_set(options), *options_set(read)):
        if option.name in (*needs_y, "at", "common_rows"):
            raise InputError(f"{option.typed} needs y, but --reference scores rows without y")
    (file,), no_rows = files, options.no_rows
    console = Console()
    tables = [path for path in report.output if path.suffix.lower() not in REPORTS]
    for path in tables:
        if no_rows:
            raise InputError(
                f"--no-rows allows no table of rows: name a report ({', '.join(REPORTS)}), "
                f"got {str(path)!r}"
            )
        table_form(path)
    check_outputs(report.output, [file, reference])
    with Stages(report.progress) as stages, subscribe(stages):
        report_progress(f"reading {reference.name}")
        loaded, monitor = watching(reference, read, options)
        report_progress(f"reading {file.name}")
        new = load_unlabelled(address(file), loaded, encoding=read.encoding, decimal=read.decimal)
        scored = monitored(
            monitor,
            new,
            facts={"Source": file.name, "Reference table": _name(reference, loaded)},
            command=shlex.join(["howsure", *sys.argv[1:]]),
            no_rows=no_rows,
        )
        for path in report.output:
            report_progress(f"writing {path.name}")
            if path in tables:
                write_table(scored.columns(new), path, csv_safe=report.csv_safe)
            else:
                scored.report.save(path)
    print_report(console, scored.report.document())
    for table in () if no_rows else _worst(scored, new):
        show_grid(console, table_grid(table, limit=WORST_ROWS))
    say_written(console, *report.output)


def watching(
    reference: Path,
    read: ReadOptions,
    options: Options,
) -> tuple[Loaded, Monitor]:
    """The reference, labelled or of inputs alone, and what is fitted on it.

    Columns of groups and times that it lacks may be those of the new rows.
    """
    from howsure.inputs.sources import sources

    columns: Any = dict(read.columns)
    if columns.get("time") or columns.get("groups"):  # else the file is opened once
        names = next(sources(address(reference), read.encoding, read.decimal)).names
        if columns.get("time") not in names:
            columns["time"] = None
        if columns.get("groups"):
            columns["groups"] = [name for name in columns_of(columns["groups"]) if name in names]
        read = replace(read, columns=columns)
    try:
        loaded = read.load(reference, options.seed)
    except InputError:
        bare = load_bare(
            address(reference), encoding=read.encoding, decimal=read.decimal, **columns
        )
        if bare is None:
            raise
        loaded = bare
    if len(loaded.evalsets) != 1:
        raise InputError(
            f"{reference.name} must have exactly one model, got {len(loaded.evalsets)}"
        )
    with part_of("fitting the reference"):
        monitor = fit_monitor(
            loaded.evalsets[0],
            seed=options.seed,
            everything="mean_cce" in options.also,
            options=options.congruence or CongruenceOptions(),
        )
    return loaded, monitor


def _name(reference: Path, loaded: Loaded) -> str:
    """What the report calls the reference; of one too large to be held, how many rows serve."""
    return f"{reference.name}{f' ({loaded.facts[SAMPLE]})' if loaded.totals else ''}"


def _worst(scored: Monitored, new: Unlabelled) -> Iterator[ResultTable]:
    """The rows farthest outside the reference, and the flagged rows of the highest CCE."""
    inputs = {**new.inputs.features, **new.texts}
    for table in scored.report.tables:
        if table.name == "outside":
            yield _with(table, ("row", "why", "distance", *inputs))
    scores = scored.table.columns
    if "flagged" not in scores:
        return
    flagged = np.flatnonzero(scores["flagged"])
    order = flagged[np.argsort(-scores["cce"][flagged], kind="stable")]
    columns = {name: values[order] for name, values in {**inputs, **scores}.items()}
    flagged_rows = replace(scored.table, name="flagged", columns=columns, notes="")
    yield _with(flagged_rows, ("row", "cce", "perfect", "p_value", "near_p_value", *inputs))


def _with(table: ResultTable, names: Sequence[str]) -> ResultTable:
    """The columns of a table that a terminal has room for."""
    columns = {name: table.columns[name] for name in names if name in table.columns}
    return replace(table, columns=columns, model="")
