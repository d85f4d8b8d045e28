"""`howsure recalibrate`: correct predictions by a held-out table, and show what it changed."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.cli.options import PartFlags, ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.show import BETTER, show_grid
from howsure.cli.terminal import Console, escape
from howsure.conformal import DELTA, RankRule, TooFew
from howsure.core import formats
from howsure.core.arrays import check_levels
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import level
from howsure.core.progress import subscribe
from howsure.core.records import Direction, Table
from howsure.core.registry import unknown
from howsure.core.threads import one_thread
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.engine.view import choose_coverages
from howsure.inputs import write_table
from howsure.inputs.files import table_form
from howsure.inputs.places import places
from howsure.inputs.sources import is_huge
from howsure.predictions import EvalSet
from howsure.recalibration import compare_recalibrations
from howsure.recalibration.base import kinds_of
from howsure.recalibration.comparison import Line, side_by_side
from howsure.recalibration.dispatch import BEST, method_names, method_of
from howsure.recalibration.serialization import check_place
from howsure.report.document import Cell, Column, Document, Grid, GridRows, Section
from howsure.report.grids import DIRECTIONS, number_cell
from howsure.report.recalibrate import (
    Recalibration,
    check_method,
    names_of,
    rows_to_compare,
    served,
)
from howsure.report.recalibrate_parts import RecalibratedFiles
from howsure.streaming.load import Resources

ALL = "all"
"""The methods of a comparison that names none."""


@one_thread()
def run(
    file: str | os.PathLike[str],
    calibration: Path,
    output: Path | None,
    method: str | None,
    too_few: TooFew,
    seed: int,
    read: ReadOptions,
    rank: RankRule = "conformal",
    delta: float = DELTA,
    levels: str | None = None,
    *,
    parts: PartFlags = PartFlags(),  # noqa: B008 - frozen
    by: str | None = None,
    since: str | None = None,
    keep: Path | None = None,
    comparing: bool = False,
    csv_safe: bool = False,
) -> None:
    """Learn from the held-out table, apply to the file, write, and tell what it did.

    Parameters
    ----------
    file, calibration, output : path
        The table of new rows, the held-out table or a kept recalibration, and where the new table
        goes; a comparison need not be written. A folder or a pattern of files, and a file with
        too many rows to be held, are served part by part.
    method, too_few, rank, delta, by, since
        As in `howsure.recalibrate`; a comparison takes several methods with commas between.
    seed : int
        Fixes all random draws.
    read, parts
        How tables are read, and by whom.
    levels : str, optional
        Levels of the quantiles that distributions and samples become, with commas between.
    keep : Path, optional
        Where to keep what was learnt.
    comparing : bool
        Compare every way on the file instead, as `howsure.cli.recalibrate.compare` does.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    """
    wanted_levels = None if levels is None else _levels(levels)
    asked = names_of(by)
    if comparing:
        chosen = _compared(method)
        if levels is not None:
            raise InputError("--levels cannot be given with --compare, which takes those of --at")
        if keep is not None or calibration.suffix.lower() == ".json":
            raise InputError("--compare keeps nothing, and needs a calibration table")
    else:
        if method == ALL:
            raise InputError("--method all needs --compare, as one method is applied")
        check_method(method or ("group" if asked else None), asked)
        if output is None:
            raise InputError("-o must name the file of the new table, got nothing")
    target = (
        None if calibration.suffix.lower() == ".json" or not read.assessed else read.assessed[0]
    )
    shared: Any = {"rank": rank, "delta": delta, "too_few": too_few}
    resources = parts.resources()
    if comparing:
        if output is not None:
            comparison_form(output)
            check_outputs([output], [Path(file), calibration])
        given, held_out = rows_to_compare(
            file, calibration, asked, since, read.columns, read.reading, resources
        )
        compare(
            given,
            held_out,
            output,
            chosen,
            coverages=read.assessed,
            seed=seed,
            by=asked,
            **shared,
        )
        return
    assert output is not None
    shared |= {
        "method": method,
        "by": asked,
        "since": since,
        "seed": seed,
        "reading": read.reading,
        "coverage": target,
        "levels": wanted_levels,
        "resources": resources,
        "csv_safe": csv_safe,
    }
    serve = partial(served, new=file, calibration=calibration, columns=read.columns, **shared)
    done = written(file, calibration, output, keep, resources, serve, csv_safe=csv_safe)
    console = Console()
    for line in done.lines():
        console.print(escape(line), highlight=False)
    if isinstance(done, Recalibration):
        if done.rows.labelled and done.recalibrators:
            _show_change(console, done.rows.evalset, done.evalset, read.assessed, seed)
    elif done.labelled:
        words = f"To see the effect on rows read in parts: howsure assess {output}"
        console.print(escape(words), highlight=False, soft_wrap=True)
    console.print(f"{done.served:,} rows recalibrated", highlight=False)
    tell_written(console, done, output, keep)


def written(
    file: str | os.PathLike[str],
    calibration: Path,
    output: Path,
    keep: Path | None,
    resources: Resources,
    serve: Callable[..., Recalibration | RecalibratedFiles],
    *,
    csv_safe: bool,
) -> Recalibration | RecalibratedFiles:
    """Serve new rows and write them: some at a time, where they are many or lie in many files."""
    apart = output.is_dir() or is_huge(file, resources.rows)
    outputs = [path for path in (None if apart else output, keep) if path is not None]
    if not apart:
        table_form(output)
    read = [place.path for place in places(os.fspath(file)).places] if apart else [file]
    check_outputs(outputs, [*map(Path, read), calibration])
    if keep is not None:
        check_place(keep)
    with Stages() as stages, subscribe(stages):
        done = serve(output if apart else None)
    if isinstance(done, Recalibration):
        done.save(output, csv_safe=csv_safe)
    if keep is not None:
        done.fitted.save(keep)
    return done


def tell_written(
    console: Console, done: Recalibration | RecalibratedFiles, output: Path, keep: Path | None
) -> None:
    """Print which files were written."""
    files = [output] if isinstance(done, Recalibration) else done.files
    first = str(output) if len(files) > 1 else str(files[0])
    more = f" ({len(files):,} files)" if len(files) > 1 else ""
    console.print(f"written: {escape(first)}{more}", highlight=False, soft_wrap=True)
    if keep is not None:
        console.print(f"written: {escape(str(keep))}", highlight=False, soft_wrap=True)


def _compared(method: str | None) -> list[str]:
    """The methods to compare; all if none is named."""
    chosen = [] if method is None else [part.strip() for part in method.split(",")]
    if chosen == [ALL]:
        return []
    for way in chosen:
        if way == BEST:
            raise InputError("--method best chooses by itself: leave --compare out")
        if way not in method_names():
            raise InputError(unknown(way, [*method_names(), ALL], "--method"))
    return chosen


def _show_change(
    console: Console, given: EvalSet, mended: EvalSet, assessed: Sequence[float], seed: int
) -> None:
    """Print every measure before and after, of the rows that count."""
    if given.weights is not None:
        rows = np.flatnonzero(given.weights.values)
        given, mended = given.take(rows), mended.take(rows)
    before = evaluate(given, coverages=assessed, seed=seed)
    wanted = assessed or [c for c in before.coverages if not math.isnan(c)]
    after = evaluate(mended, coverages=wanted, seed=seed)
    lines, notes = side_by_side([before, after])
    show_grid(console, _before_after(lines, notes))


def _levels(text: str) -> tuple[float, ...]:
    try:
        given = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--levels must be numbers with commas between, got {text!r}") from error
    return tuple(check_levels(given, "--levels").tolist())


def _before_after(lines: Sequence[Line], notes: Sequence[str]) -> Grid:
    rows = []
    for line in lines:
        at = "" if math.isnan(line.coverage) else f"at {level(line.coverage)}"
        numbers = (number_cell(value, digits=4) for value in (*line.values, line.perfect))
        better = DIRECTIONS[catalogue()[line.metric].direction][0]
        rows.append((Cell(text=line.title, small=at), *numbers, Cell(text=better)))
    columns = [Column(title=title, numeric=True) for title in ("before", "after", "perfect")]
    return Grid(
        title="Before and after",
        columns=(Column(title="Measure"), *columns, Column(title="")),
        parts=(GridRows(rows=tuple(rows)),),
        notes=(*notes, BETTER),
    )


# ---- `howsure recalibrate --compare`: every way to recalibrate a prediction, through every measure

ENDINGS = (".csv", ".md", ".json")
"""What a comparison can be written to."""

_SCORES = 5  # columns of a comparison before those of the ways


def comparison_form(path: Path) -> str:
    """The ending of a file that a comparison may be written to."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"path must end in {', '.join(ENDINGS)}, got {str(path)!r}")
    return ending


def compare(
    evalset: EvalSet,
    held_out: EvalSet,
    output: Path | None,
    methods: Sequence[str],
    *,
    coverages: Sequence[float],
    seed: int,
    rank: RankRule,
    delta: float,
    too_few: TooFew,
    by: tuple[str, ...] = (),
) -> None:
    """Print each prediction of a table, recalibrated in every way, through every measure."""
    tables = []
    parts = _each_belief(evalset)
    alien = {way for way in methods if not any(_suits(way, part) for part in parts)}
    for part in parts:
        ways = [way for way in methods if way in alien or _suits(way, part)]
        if methods and not ways:
            continue
        chosen = tuple(c for c in choose_coverages(part, coverages) if not math.isnan(c))
        table = compare_recalibrations(
            part,
            held_out,
            methods=ways or None,
            coverages=chosen or (0.9,),
            seed=seed,
            rank=rank,
            delta=delta,
            too_few=too_few,
            by=by,
        )
        labels = {way: way for way in list(table.columns)[_SCORES:]}
        tables.append(replace(table, name=f"ways to recalibrate: {_kind(part)}", labels=labels))
    console = Console()
    grids = [_grid(table) for table in tables]
    for grid in grids:
        show_grid(console, grid)
    if output is not None:
        _write(tables, grids, output)
        console.print(f"written: {escape(str(output))}", highlight=False, soft_wrap=True)


def _each_belief(evalset: EvalSet) -> list[EvalSet]:
    """The rows once for each belief that they hold, with that one alone."""
    return [replace(evalset, beliefs=(belief,)) for belief in evalset.beliefs] or [evalset]


def _kind(evalset: EvalSet) -> str:
    (kind,) = kinds_of(evalset)
    return kind


def _suits(way: str, evalset: EvalSet) -> bool:
    """Whether a method suits a prediction."""
    return method_of(_kind(evalset), way) is not None


def _grid(table: Table) -> Grid:
    """A row a measure, a column a way; the best of a row is marked."""
    ways = list(table.columns)[_SCORES:]
    rows = tuple(
        _row(table, row, ways)
        for row in range(len(table))
        if not all(math.isnan(float(table.columns[way][row])) for way in ways[1:])
    )
    return Grid(
        title=table.name.capitalize(),
        columns=(
            Column(title="Measure"),
            *(Column(title=title, numeric=True) for title in (*ways, "perfect")),
        ),
        parts=(GridRows(rows=rows),),
        notes=(
            *([table.notes] if table.notes else []),
            "*: the best of a row; chance is not tested.",
        ),
    )


def _row(table: Table, row: int, ways: Sequence[str]) -> tuple[Cell, ...]:
    """A measure of every way; as it is called, with its coverage."""
    values = {way: float(table.columns[way][row]) for way in ways}
    perfect, at = (float(table.columns[name][row]) for name in ("perfect", "coverage"))
    best = _best(list(values.values()), Direction(table.columns["direction"][row]), perfect)
    marked = number_cell(best).text if not math.isnan(best) else ""
    shown = [number_cell(value) for value in values.values()]
    title = str(table.columns["title"][row])
    small = "" if math.isnan(at) else f"at {formats.level(at)}"
    return (
        Cell(text=title, small=small),
        *(replace(cell, small="*" if cell.text == marked else "") for cell in shown),
        number_cell(perfect),
    )


def _best(values: Sequence[float], direction: Direction, perfect: float) -> float:
    """The best of some values, some of which are missing; NaN where there is no better or worse."""
    known = [value for value in values if not math.isnan(value)]
    if direction is Direction.LOWER:
        return min(known)
    if direction is Direction.HIGHER:
        return max(known)
    if direction is Direction.TARGET and not math.isnan(perfect):
        return min(known, key=lambda value: abs(value - perfect))
    return math.nan


def _write(tables: Sequence[Table], grids: Sequence[Grid], output: Path) -> None:
    ending = comparison_form(output)
    if ending == ".csv":
        write_table(_together(tables), output)
        return
    Document(
        title="Ways to recalibrate",
        opening=Section(title=""),
        sections=tuple(
            Section(title=grid.title, grids=(replace(grid, title=""),)) for grid in grids
        ),
        tables=tuple(tables),
        command=shlex.join(["howsure", *sys.argv[1:]]),
    ).save(output)


def _together(tables: Sequence[Table]) -> dict[str, npt.NDArray[Any]]:
    """One table of all, with a column ``belief``; a way that does not suit a belief is missing."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    found: dict[str, npt.NDArray[Any]] = {}
    if len(tables) > 1:
        beliefs = [np.full(len(t), t.name.split(": ")[1], dtype=object) for t in tables]
        found["belief"] = np.concatenate(beliefs)
    for name in names:
        parts = [t.columns.get(name, np.full(len(t), np.nan)) for t in tables]
        found[name] = np.concatenate(parts)
    return found
