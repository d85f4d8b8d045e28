"""`howsure recalibrate`: mend beliefs by a held-out table, and show what it changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from howsure.cli.options import ReadOptions
from howsure.cli.recalibrate_compare import compare, comparison_form
from howsure.cli.terminal import Console, escape
from howsure.core.arrays import check_levels
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import short
from howsure.core.registry import unknown
from howsure.core.threads import one_thread
from howsure.inputs import write_table
from howsure.inputs.files import table_form
from howsure.methods.conformal import DELTA, RankRule, TooFew
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import evaluate
from howsure.predictions import EvalSet
from howsure.predictions.columns import to_columns
from howsure.recalibration import DEFAULT_LEVELS, METHODS, recalibrate
from howsure.recalibration.comparison import Line, side_by_side


@one_thread()
def run(
    file: Path,
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
    comparing: bool = False,
    csv_safe: bool = False,
) -> None:
    """Fit on the held-out table, apply to the file, write, and print before and after.

    Parameters
    ----------
    file, calibration, output : Path
        The table to mend, the held-out table, and where the new one goes; a comparison need not
        be written.
    method, too_few, rank, delta
        As in `howsure.recalibration.recalibrate`.
    seed : int
        Fixes all random draws.
    read : ReadOptions
        How tables are read.
    levels : str, optional
        Levels of the quantiles that laws and samples become, with commas between.
    comparing : bool
        Compare every way on the file instead, as `howsure.cli.recalibrate_compare.compare` does.
    csv_safe : bool
        As in `howsure.inputs.write_table`.

    Raises
    ------
    InputError
        If an option or a table breaks its rule.
    """
    console = Console()
    wanted_levels = DEFAULT_LEVELS if levels is None else _levels(levels)
    if comparing and levels is not None:
        raise InputError("--levels cannot be given with --compare, which takes those of --at")
    known = dict.fromkeys(way for ways in METHODS.values() for way in ways)
    chosen = [] if method is None else [part.strip() for part in method.split(",")]
    if comparing and chosen == ["all"]:
        chosen = []
    for way in chosen if comparing else filter(None, [method]):
        if way not in known:
            raise InputError(unknown(way, known, "--method"))
    if output is None and not comparing:
        raise InputError("-o must say where the new table goes, got nothing")
    if output is not None:
        (comparison_form if comparing else table_form)(output)
        check_outputs([output], [file, calibration])
    given, held_out = _one(read, file), _one(read, calibration)
    if comparing or output is None:
        compare(
            given,
            held_out,
            output,
            chosen,
            coverages=read.assessed,
            seed=seed,
            rank=rank,
            delta=delta,
            too_few=too_few,
        )
        return
    coverage = read.assessed[0] if read.assessed else None
    mended = recalibrate(
        given,
        held_out,
        method=method,
        coverage=coverage,
        too_few=too_few,
        rank=rank,
        delta=delta,
        levels=wanted_levels,
    )
    write_table(to_columns(mended.evalset), output, csv_safe=csv_safe)
    for belief, used in mended.methods.items():
        guarantee = mended.guarantees[belief]
        console.print(f"{escape(belief)}: {escape(used)}. {escape(guarantee)}", highlight=False)
    for note in mended.notes:
        console.print(f"note: {escape(note)}", highlight=False)
    before = evaluate(given, coverages=read.assessed, seed=seed)
    wanted = read.assessed or [c for c in before.coverages if not math.isnan(c)]
    after = evaluate(mended.evalset, coverages=wanted, seed=seed)
    lines, notes = side_by_side([before, after])
    console.print(_before_after(lines))
    for note in notes:
        console.print(f"note: {escape(note)}", highlight=False)
    console.print(f"written: {escape(str(output))}", highlight=False, soft_wrap=True)


def _levels(text: str) -> tuple[float, ...]:
    try:
        given = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--levels must be numbers with commas between, got {text!r}") from error
    return tuple(check_levels(given, "--levels").tolist())


def _one(read: ReadOptions, path: Path) -> EvalSet:
    sets = read.load(path).evalsets
    if len(sets) != 1:
        names = ", ".join(held.model for held in sets)
        raise InputError(f"{path.name} must hold one model to be recalibrated, got {names}")
    return sets[0]


def _before_after(lines: Sequence[Line]) -> Table:
    table = Table(title="Before and after", title_justify="left")
    for heading in ("measure", "at", "before", "after", "perfect", "better"):
        table.add_column(heading)
    for line in lines:
        before, after = line.values
        table.add_row(
            escape(line.title),
            short(line.coverage, 6),
            short(before, 4),
            short(after, 4),
            short(line.perfect, 4),
            catalogue()[line.metric].direction.value.removesuffix(" is better"),
        )
    return table
