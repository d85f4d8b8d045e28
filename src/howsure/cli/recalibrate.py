"""`howsure recalibrate`, `improve` and `conformal`: new rows served by a held-out table."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from howsure.cli.options import ConformalFlags, FitFlags, ReadOptions, TableFlags
from howsure.cli.progress import Stages
from howsure.cli.show import show_grid
from howsure.cli.terminal import SIGNS, Console, escape, say_written
from howsure.core import formats
from howsure.core.arrays import AnyArray, check_levels
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import level
from howsure.core.progress import subscribe
from howsure.core.records import Direction, ResultTable
from howsure.core.registry import unknown
from howsure.core.threads import one_thread
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.engine.view import View, choose_coverages
from howsure.inputs import write_table
from howsure.predictions import EvalSet
from howsure.recalibration import FittedRecalibration, compare_recalibrations
from howsure.recalibration.base import kinds_of
from howsure.recalibration.comparison import Line, side_by_side
from howsure.recalibration.dispatch import BEST, method_names, method_of
from howsure.recalibration.serialization import check_place
from howsure.report.apply import RecalibratedFiles, Recalibration
from howsure.report.document import Cell, Column, Document, Grid, Section
from howsure.report.grids import BETTER, DIRECTIONS, number_cell
from howsure.report.options import Options
from howsure.report.recalibrate import recalibrate, rows_to_compare
from howsure.report.table import Table

ALL = "all"
"""The methods of a comparison that names none."""
# A coverage of 90 % is then known to .26 points (95 %), and measures take seconds.
_MAX_ROWS_OF_CHANGE: Final = 50_000


@one_thread()
def run(
    file: str,
    calibration: Path,
    fit: FitFlags,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
    *,
    compare: bool,
) -> None:
    """Learn from the held-out table, apply to the file, write, and tell what it did.

    A folder or a pattern of files, and a file with too many rows to be held, are served part by
    part. A comparison of several methods need not be written.
    """
    read.refuse_common_rows()
    levels = _levels(fit.levels) if fit.levels else None
    is_fitted = calibration.suffix.lower() == ".json"
    if compare:
        _compare(file, calibration, fit, table, options, read)
        return
    if fit.method == ALL:
        raise InputError("--method all needs --compare: only one method can be applied")
    done = serve_table(
        recalibrate,
        file,
        calibration,
        table,
        read,
        seed=options.seed,
        coverage=None if is_fitted or not read.assessed else read.assessed[0],
        **{**asdict(fit), "levels": levels},
    )
    console = Console()
    for line in done.lines():
        console.print(escape(line))
    if done.in_memory is not None and done.labelled and done.recalibrators:
        _show_change(console, done.in_memory, read.assessed, options.seed)
    elif done.in_memory is None and done.labelled:
        words = f"To see the effect: howsure assess {table.output}"
        console.print(escape(words), soft_wrap=True)
    console.print(f"{done.served:,} rows recalibrated")
    _tell_written(console, done, table)


def _compare(
    file: str,
    calibration: Path,
    fit: FitFlags,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
) -> None:
    """Compare several methods on the rows of a file."""
    methods = _compared(fit.method)
    if fit.levels:
        raise InputError("--levels cannot be given with --compare: use --at instead")
    if table.keep is not None or calibration.suffix.lower() == ".json":
        raise InputError("--compare needs a calibration table, and cannot be used with --keep")
    if table.output is not None:
        comparison_form(table.output)
        check_outputs([table.output], [Path(file), calibration])
    new, held_out = rows_to_compare(
        file, calibration, fit.by, fit.since, read.columns, read.reading, read.large
    )
    print_comparison(
        new,
        held_out,
        table.output,
        methods,
        coverages=read.assessed,
        seed=options.seed,
        by=fit.by,
        too_few=fit.too_few,
        rank=fit.rank,
        delta=fit.delta,
    )


def serve_table(
    verb: Callable[..., Any],
    file: str,
    calibration: Path | FittedRecalibration,
    table: TableFlags,
    read: ReadOptions,
    **options: Any,
) -> RecalibratedFiles:
    """Serve new rows and write them, and keep what was learnt."""
    output, keep = table.output, table.keep
    if output is None:
        raise InputError("no output: name the file of the new table with -o")
    outputs = [path for path in (output, keep) if path is not None and not path.is_dir()]
    inputs = [Path(file), *([calibration] if isinstance(calibration, Path) else [])]
    check_outputs(outputs, inputs)
    if keep is not None:
        check_place(keep)
    rows: Any = Table(file, **read.reading, **read.columns)
    options |= {"output": output, "csv_safe": table.csv_safe, "large": read.large}
    with Stages() as stages, subscribe(stages):
        done: RecalibratedFiles = verb(rows, calibration, **options)
    if keep is not None:
        done.fitted.save(keep)
    return done


def _tell_written(console: Console, done: RecalibratedFiles, table: TableFlags) -> None:
    """Print which files were written."""
    many = len(done.files) > 1
    first = f"{table.output} ({len(done.files):,} files)" if many else str(done.files[0])
    say_written(console, first, *filter(None, [table.keep]))


def _compared(method: str | None) -> list[str]:
    """The methods to compare; all if none is named."""
    chosen = [] if method is None else [name.strip() for name in method.split(",")]
    if chosen == [ALL]:
        return []
    for way in chosen:
        if way == BEST:
            raise InputError("--method best selects a method itself: omit --compare")
        if way not in method_names():
            raise InputError(unknown(way, [*method_names(), ALL], "--method"))
    return chosen


def _show_change(
    console: Console, done: Recalibration, assessed: Sequence[float], seed: int
) -> None:
    """Print every measure before and after, of some of the rows that count if these are many."""
    original = done.rows.evalset
    if original.weights is not None:
        original = original.take(np.flatnonzero(original.weights.values))
    sample = View(original, seed=seed).take_at_most(_MAX_ROWS_OF_CHANGE).evalset
    before = evaluate(sample, coverages=assessed, seed=seed)
    wanted = assessed or [c for c in before.coverages if not math.isnan(c)]
    after = evaluate(done.fitted.apply(sample, ()).evalset, coverages=wanted, seed=seed)
    lines, notes = side_by_side([before, after])
    if sample.n < original.n:
        notes = [f"On {sample.n:,} of {original.n:,} rows, chosen by their content.", *notes]
    show_grid(console, _before_after(lines, notes))


def _levels(texts: Sequence[str]) -> tuple[float, ...]:
    try:
        levels = [float(number) for number in texts]
    except ValueError as error:
        raise InputError(
            f"--levels must be numbers separated by commas, got {','.join(texts)!r}"
        ) from error
    return tuple(check_levels(levels, "--levels").tolist())


def _before_after(lines: Sequence[Line], notes: Sequence[str]) -> Grid:
    rows = []
    for line in lines:
        at = "" if math.isnan(line.coverage) else f"at {level(line.coverage)}"
        numbers = (number_cell(value, digits=4) for value in (*line.values, line.perfect))
        better = DIRECTIONS[catalogue()[line.metric].direction][0]
        rows.append((Cell(line.title, small=at), *numbers, Cell(better)))
    columns = [Column(title, numeric=True) for title in ("before", "after", "perfect")]
    columns = [Column("Measure"), *columns, Column("")]
    return Grid.of("Before and after", columns, rows, (*notes, BETTER))


# ---- `howsure recalibrate --compare`: every way to recalibrate a prediction, through every measure

ENDINGS = (".csv", ".md", ".json")
"""What a comparison can be written to."""

# Columns of a comparison before those of the ways.
_COLUMNS_BEFORE_WAYS = 5


def comparison_form(path: Path) -> str:
    """The ending of a file that a comparison may be written to."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"path must end in {', '.join(ENDINGS)}, got {str(path)!r}")
    return ending


def print_comparison(
    evalset: EvalSet,
    held_out: EvalSet,
    output: Path | None,
    methods: Sequence[str],
    *,
    coverages: Sequence[float],
    **options: Any,
) -> None:
    """Print each prediction of a table, recalibrated in every way, through every measure."""
    tables = []
    sets = [replace(evalset, predictions=(prediction,)) for prediction in evalset.predictions] or [
        evalset
    ]
    alien = {way for way in methods if not any(_suits(way, rows) for rows in sets)}
    for rows in sets:
        ways = [way for way in methods if way in alien or _suits(way, rows)]
        if methods and not ways:
            continue
        chosen = tuple(c for c in choose_coverages(rows, coverages) if not math.isnan(c))
        table = compare_recalibrations(
            rows,
            held_out,
            methods=ways or None,
            coverages=chosen or (0.9,),
            **options,
        )
        labels = {way: way for way in list(table.columns)[_COLUMNS_BEFORE_WAYS:]}
        tables.append(replace(table, name=f"recalibration methods: {_kind(rows)}", labels=labels))
    console = Console()
    grids = [_grid(table) for table in tables]
    for grid in grids:
        show_grid(console, grid)
    if output is not None:
        _write(tables, grids, output)
        say_written(console, output)


def _kind(evalset: EvalSet) -> str:
    (kind,) = kinds_of(evalset)
    return kind


def _suits(way: str, evalset: EvalSet) -> bool:
    """Whether a method suits a prediction."""
    return method_of(_kind(evalset), way) is not None


def _grid(table: ResultTable) -> Grid:
    """A row a measure, a column a way; the best of a row is marked."""
    ways = list(table.columns)[_COLUMNS_BEFORE_WAYS:]
    rows = tuple(
        _row(table, row, ways)
        for row in range(len(table))
        if not all(math.isnan(float(table.columns[way][row])) for way in ways[1:])
    )
    columns = [Column(title, numeric=True) for title in (*ways, "perfect")]
    notes = [*filter(None, [table.notes]), "*: best in its row; significance is not tested."]
    return Grid.of(table.name.capitalize(), [Column("Measure"), *columns], rows, notes)


def _row(table: ResultTable, row: int, ways: Sequence[str]) -> tuple[Cell, ...]:
    """A measure of every way; as it is called, with its coverage."""
    values = {way: float(table.columns[way][row]) for way in ways}
    perfect, at = (float(table.columns[name][row]) for name in ("perfect", "coverage"))
    best = _best(list(values.values()), Direction(table.columns["direction"][row]), perfect)
    marked = number_cell(best).text if not math.isnan(best) else ""
    shown = [number_cell(value) for value in values.values()]
    title = str(table.columns["title"][row])
    small = "" if math.isnan(at) else f"at {formats.level(at)}"
    return (
        Cell(title, small=small),
        *(replace(cell, small="*" if cell.text == marked else "") for cell in shown),
        number_cell(perfect),
    )


def _best(values: Sequence[float], direction: Direction, perfect: float) -> float:
    """The best of some values, some of which are missing; NaN where there is no better or worse."""
    finite = [value for value in values if not math.isnan(value)]
    if direction is Direction.LOWER:
        return min(finite)
    if direction is Direction.HIGHER:
        return max(finite)
    if direction is Direction.TARGET and not math.isnan(perfect):
        return min(finite, key=lambda value: abs(value - perfect))
    return math.nan


def _write(tables: Sequence[ResultTable], grids: Sequence[Grid], output: Path) -> None:
    ending = comparison_form(output)
    if ending == ".csv":
        write_table(_together(tables), output)
        return
    Document(
        title="Recalibration methods",
        opening=Section(title=""),
        sections=tuple(
            Section(title=grid.title, grids=(replace(grid, title=""),)) for grid in grids
        ),
        tables=tuple(tables),
        command=shlex.join(["howsure", *sys.argv[1:]]),
    ).save(output)


def _together(tables: Sequence[ResultTable]) -> dict[str, AnyArray]:
    """One table of all, with a column ``belief``: the kind of prediction that a method is for."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    columns: dict[str, AnyArray] = {}
    if len(tables) > 1:
        predictions = [np.full(len(t), t.name.split(": ")[1], dtype=object) for t in tables]
        columns["belief"] = np.concatenate(predictions)
    for name in names:
        parts = [t.columns.get(name, np.full(len(t), np.nan)) for t in tables]
        columns[name] = np.concatenate(parts)
    return columns


# ---- `howsure improve`: recalibrate by a held-out table, with proof on rows held back ------------


def run_improve(
    calibration: Path,
    new: str | None,
    proof: Path,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
    *,
    until_right: bool,
    hold_back: float,
) -> bool:
    """Improve, tell, write the proof and the new table; true if a fault is still proven."""
    from howsure.report.improve import check_proof, improve

    read.refuse_common_rows()
    output, keep = table.output, table.keep
    if (new is None) != (output is None):
        raise InputError(
            "no output: name the file of the new table with -o"
            if new
            else "-o needs a table of new predictions; none was given"
        )
    check_proof(proof)
    if keep is not None:
        check_place(keep)
    ends = [path for path in (output, proof, keep) if path is not None]
    check_outputs(ends, [calibration, *([] if new is None else [Path(new)])])
    with Stages() as stages, subscribe(stages):
        improvement = improve(
            calibration,
            until_right=until_right,
            hold_back=hold_back,
            coverages=read.assessed,
            seed=options.seed,
            large=read.large,
            **read.reading,
            **read.columns,
        )
    console = Console()
    for tone, line in improvement.lines():
        sign = f"{SIGNS[tone]}  " if tone else ""
        console.print(f"{sign}{escape(line)}")
    improvement.save(proof)
    say_written(console, proof)
    if new is not None and output is not None:
        fitted = improvement.fitted
        done = serve_table(recalibrate, new, fitted, table, read, seed=options.seed)
        console.print(f"{done.served:,} rows recalibrated")
        for note in done.notes:
            console.print(escape(f"note: {note}"))
        _tell_written(console, done, table)
    elif keep is not None:
        improvement.fitted.save(keep)
        say_written(console, keep)
    return not improvement.right


# ---- `howsure conformal`: label sets and intervals that cover, by a held-out table ---------------

_SIZES: Final = {"set_size": "Mean set size", "mean_width": "Mean width"}


@one_thread()
def run_conformal(
    new: str,
    calibration: Path,
    fit: ConformalFlags,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
) -> None:
    """Learn from the held-out table, write the new one, and tell what was learnt or reached."""
    from howsure.report.conformal import DEFAULT_COVERAGE, conformal

    read.refuse_common_rows()
    if len(read.assessed) > 1:
        raise InputError(f"--coverage must be one number, got {len(read.assessed)}")
    (coverage,) = read.assessed or [DEFAULT_COVERAGE]
    done = serve_table(
        conformal,
        new,
        calibration,
        table,
        read,
        seed=options.seed,
        coverage=coverage,
        **asdict(fit),
    )
    console = Console()
    rows = done.in_memory if done.labelled else None
    reached = [] if rows is None else _reached(rows, options.seed)
    for line in (*done.lines(), *reached):
        console.print(escape(line))
    console.print(f"{done.served:,} rows written")
    _tell_written(console, done, table)


def _reached(done: Recalibration, seed: int) -> list[str]:
    """Coverage and mean size on the new rows, whose y is known, each with its interval."""
    rows = done.evalset
    if rows.weights is not None:
        rows = rows.take(np.flatnonzero(rows.weights.values))
    sentences = []
    for record in evaluate(rows, metrics=("empirical_coverage", *_SIZES), seed=seed).records:
        if math.isnan(record.value):
            continue
        if record.metric == "empirical_coverage":
            share = formats.share(record.value) + formats.between(record)
            sentences.append(
                f"Empirical coverage on new rows: {share}, nominal {formats.level(record.coverage)}"
            )
        else:
            ends = formats.interval(record.lower, record.upper)
            sentences.append(f"{_SIZES[record.metric]}: {formats.number(record.value)} ({ends})")
    return sentences
