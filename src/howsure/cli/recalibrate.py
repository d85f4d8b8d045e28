"""`howsure recalibrate`: correct predictions by a held-out table, and show what it changed."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from howsure.cli.options import ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.recalibrate_compare import compare, comparison_form
from howsure.cli.show import BETTER, show_grid
from howsure.cli.terminal import Console, escape
from howsure.conformal import DELTA, RankRule, TooFew
from howsure.core.arrays import check_levels
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import level
from howsure.core.progress import subscribe
from howsure.core.registry import unknown
from howsure.core.threads import one_thread
from howsure.inputs.files import table_form
from howsure.inputs.new_parts import is_large, parts_of
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import evaluate
from howsure.predictions import EvalSet
from howsure.recalibration.comparison import Line, side_by_side
from howsure.recalibration.kept import check_place
from howsure.recalibration.registry import method_names
from howsure.report.document import Cell, Column, Grid, GridRows
from howsure.report.grids import DIRECTIONS, number_cell
from howsure.report.recalibrate import (
    BEST,
    check_method,
    names_of,
    recalibrate_tables,
    rows_to_compare,
)
from howsure.report.recalibrate_parts import RecalibratedFiles, recalibrate_parts

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
    read : ReadOptions
        How tables are read.
    levels : str, optional
        Levels of the quantiles that distributions and samples become, with commas between.
    keep : Path, optional
        Where to keep what was learnt.
    comparing : bool
        Compare every way on the file instead, as `howsure.cli.recalibrate_compare.compare` does.
    csv_safe : bool
        As in `howsure.inputs.write_table`.

    Raises
    ------
    InputError
        If an option or a table breaks its rule.
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
    cut = not comparing and output is not None and (output.is_dir() or is_large(file))
    outputs = [path for path in (None if cut else output, keep) if path is not None]
    if output is not None and not cut:
        (comparison_form if comparing else table_form)(output)
    files = [part.path for part in parts_of(file)] if cut else [os.fspath(file)]
    check_outputs(outputs, [*map(Path, files), calibration])
    if keep is not None:
        check_place(keep)
    reading: dict[str, Any] = {
        "missing": read.missing,
        "crossing": read.crossing,
        "encoding": read.encoding,
        "decimal": read.decimal,
    }
    target = (
        None if calibration.suffix.lower() == ".json" or not read.assessed else read.assessed[0]
    )
    shared: Any = {"rank": rank, "delta": delta, "too_few": too_few}
    if comparing:
        given, held_out = rows_to_compare(file, calibration, asked, since, read.columns, reading)
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
        "reading": reading,
        "coverage": target,
        "levels": wanted_levels,
    }
    console = Console()
    with Stages() as stages, subscribe(stages):
        if cut:
            served = recalibrate_parts(
                file, calibration, output, read.columns, csv_safe=csv_safe, **shared
            )
        else:
            done = recalibrate_tables(file, calibration, read.columns, **shared)
    if cut:
        if keep is not None:
            served.mend.save(keep)
        _tell_of_files(console, served, output, keep)
        return
    done.save(output, csv_safe=csv_safe)
    if keep is not None:
        done.mend.save(keep)
    for line in done.lines():
        console.print(escape(line), highlight=False)
    if done.rows.labelled and done.recalibrators:
        _show_change(console, done.rows.evalset, done.evalset, read.assessed, seed)
    console.print(f"{done.evalset.n:,} rows recalibrated", highlight=False)
    for path in outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _tell_of_files(
    console: Console, served: RecalibratedFiles, output: Path, keep: Path | None
) -> None:
    """Print what was done to rows that were served part by part."""
    for line in served.lines():
        console.print(escape(line), highlight=False)
    if served.labelled:
        words = f"To see the effect on rows read in parts: howsure assess {output}"
        console.print(escape(words), highlight=False, soft_wrap=True)
    console.print(f"{served.served:,} rows recalibrated", highlight=False)
    count = len(served.files)
    written = str(output) if count > 1 else str(served.files[0])
    more = f" ({count:,} files)" if count > 1 else ""
    console.print(f"written: {escape(written)}{more}", highlight=False, soft_wrap=True)
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
