"""`howsure conformal`: label sets and intervals that cover, by a held-out table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np

from howsure.cli.options import PartFlags, ReadOptions
from howsure.cli.recalibrate import tell_written, written
from howsure.cli.terminal import Console, escape
from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.threads import one_thread
from howsure.engine.measure import evaluate
from howsure.report.conformal import COVERAGE, conformal
from howsure.report.recalibrate import Recalibration
from howsure.report.recalibrate_parts import RecalibratedFiles


@one_thread()
def run(
    table: str,
    calibration: Path,
    output: Path,
    read: ReadOptions,
    *,
    parts: PartFlags,
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
    read, parts
        How tables are read, and by whom.
    keep : Path, optional
        Where to keep what was learnt.
    csv_safe : bool
        As in `howsure.inputs.write_table`.
    seed, **options
        As in `howsure.conformal`.
    """
    if len(read.assessed) > 1:
        raise InputError(f"--coverage must be one number, got {len(read.assessed)}")
    (coverage,) = read.assessed or [COVERAGE]
    columns: Any = {name: value for name, value in read.columns.items() if name != "coverage"}

    def serve(target: Path | None) -> Recalibration | RecalibratedFiles:
        return conformal(
            table,
            calibration,
            output=target,
            csv_safe=csv_safe,
            coverage=coverage,
            seed=seed,
            missing=read.missing,
            crossing=read.crossing,
            encoding=read.encoding,
            decimal=read.decimal,
            memory=parts.memory,
            jobs=parts.jobs,
            scheduler=parts.scheduler,
            resume=parts.resume,
            **options,
            **columns,
        )

    resources = parts.resources()
    done = written(table, calibration, output, keep, resources, serve, csv_safe=csv_safe)
    console = Console()
    reached = _reached(done, seed) if isinstance(done, Recalibration) and done.rows.labelled else ()
    for line in (*done.lines(), *reached):
        console.print(escape(line), highlight=False)
    console.print(f"{done.served:,} rows served", highlight=False)
    tell_written(console, done, output, keep)


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
