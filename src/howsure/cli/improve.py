"""`howsure improve`: recalibrate by a held-out table, with proof on rows held back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from howsure.cli.options import PartFlags, ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.recalibrate import tell_written, written
from howsure.cli.terminal import SIGNS, Console, escape
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.progress import subscribe
from howsure.recalibration.serialization import check_place
from howsure.report.improve import Improvement, check_proof, improve_table
from howsure.report.recalibrate import Recalibration, served
from howsure.report.recalibrate_parts import RecalibratedFiles
from howsure.streaming.load import Resources


def run(
    calibration: Path,
    new: str | None,
    output: Path | None,
    proof: Path,
    keep: Path | None,
    seed: int,
    read: ReadOptions,
    parts: PartFlags,
    *,
    until_right: bool,
    hold_back: float,
    csv_safe: bool = False,
) -> bool:
    """Improve, tell, write the proof and the new table; true if a fault is still proven."""
    if (new is None) != (output is None):
        missing = (
            "-o must name the file of the new table" if new else "-o needs a table of new rows"
        )
        raise InputError(f"{missing}, got nothing")
    check_proof(proof)
    if keep is not None:
        check_place(keep)
    ends = [path for path in (output, proof, keep) if path is not None]
    check_outputs(ends, [calibration, *([] if new is None else [Path(new)])])
    resources = parts.resources()
    with Stages() as stages, subscribe(stages):
        found = improve_table(
            calibration,
            read.columns,
            until_right=until_right,
            hold_back=hold_back,
            coverages=read.assessed,
            seed=seed,
            reading=read.reading,
            resources=resources,
        )
    console = Console()
    for tone, line in found.lines():
        sign = f"{SIGNS[tone]}  " if tone else ""
        console.print(f"{sign}{escape(line)}", highlight=False)
    found.save(proof)
    console.print(f"written: {escape(str(proof))}", highlight=False, soft_wrap=True)
    if new is not None and output is not None:
        done = serve_new(
            found, new, calibration, output, keep, read, resources, seed=seed, csv_safe=csv_safe
        )
        console.print(f"{done.served:,} rows recalibrated", highlight=False)
        for note in done.notes:
            console.print(escape(f"note: {note}"), highlight=False)
        tell_written(console, done, output, keep)
    elif keep is not None:
        found.fitted.save(keep)
        console.print(f"written: {escape(str(keep))}", highlight=False, soft_wrap=True)
    return not found.right


def serve_new(
    found: Improvement,
    new: str,
    calibration: Path,
    output: Path,
    keep: Path | None,
    read: ReadOptions,
    resources: Resources,
    *,
    seed: int = 0,
    csv_safe: bool = False,
) -> Recalibration | RecalibratedFiles:
    """Apply all confirmed steps to new rows, and write them."""
    work = partial(
        served,
        new=new,
        calibration=found.fitted,
        columns=read.columns,
        method=None,
        by=None,
        since=None,
        seed=seed,
        reading=read.reading,
        resources=resources,
        csv_safe=csv_safe,
    )
    return written(new, calibration, output, keep, resources, work, csv_safe=csv_safe)
