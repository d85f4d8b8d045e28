"""`howsure conformal`: label sets and intervals that cover, by a held-out table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from howsure.cli.options import ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.terminal import Console, escape
from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.progress import subscribe
from howsure.core.threads import one_thread
from howsure.inputs.files import table_form
from howsure.metrics.measure import evaluate
from howsure.recalibration.kept import check_place
from howsure.report.conformal import COVERAGE, conformal
from howsure.report.recalibrate import Recalibration


@one_thread()
def run(
    table: Path,
    calibration: Path,
    output: Path,
    read: ReadOptions,
    *,
    keep: Path | None = None,
    csv_safe: bool = False,
    seed: int = 0,
    **options: Any,
) -> None:
    """Learn from the held-out table, write the new one, and tell what was learnt or reached.

    Parameters
    ----------
    table, calibration, output : Path
        The table of new rows, the held-out table or what was kept, and where the new one goes.
    read : ReadOptions
        How tables are read.
    keep : Path, optional
        Where to keep what was learnt.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    seed, **options
        As in `howsure.conformal`.

    Raises
    ------
    InputError
        If an option or a table breaks its rule.
    """
    if len(read.assessed) > 1:
        raise InputError(f"--coverage must be one number, got {len(read.assessed)}")
    table_form(output)
    outputs = [path for path in (output, keep) if path is not None]
    check_outputs(outputs, [table, calibration])
    if keep is not None:
        check_place(keep)
    (coverage,) = read.assessed or [COVERAGE]
    columns: Any = {name: value for name, value in read.columns.items() if name != "coverage"}
    with Stages() as stages, subscribe(stages):
        done = conformal(
            table,
            calibration,
            coverage=coverage,
            seed=seed,
            missing=read.missing,
            crossing=read.crossing,
            encoding=read.encoding,
            decimal=read.decimal,
            **options,
            **columns,
        )
    done.save(output, csv_safe=csv_safe)
    if keep is not None:
        done.mend.save(keep)
    console = Console()
    for line in (*done.lines(), *(_reached(done, seed) if done.rows.labelled else ())):
        console.print(escape(line), highlight=False)
    console.print(f"{done.evalset.n:,} rows served", highlight=False)
    for path in outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


_SIZES: Final = {"set_size": "Mean set size", "mean_width": "Mean width"}


def _reached(done: Recalibration, seed: int) -> list[str]:
    """Coverage and mean size on the new rows, whose y is known, each with its interval."""
    rows = done.evalset
    if rows.weights is not None:
        rows = rows.take(np.flatnonzero(rows.weights.values))
    wanted = ("empirical_coverage", "set_size", "mean_width")
    told = []
    for record in evaluate(rows, metrics=wanted, seed=seed).records:
        if math.isnan(record.value):
            continue
        if record.metric == "empirical_coverage":
            share = formats.share(record.value) + formats.between(record)
            told.append(
                f"Covered: {share} of new rows, of a nominal {formats.level(record.coverage)}"
            )
        else:
            ends = formats.interval(record.lower, record.upper)
            told.append(f"{_SIZES[record.metric]}: {formats.number(record.value)} ({ends})")
    return told
