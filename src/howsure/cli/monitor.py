"""`howsure assess NEW --reference VAL`: score rows whose y is not known yet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.table import Table as Shown

from howsure.cli.assess import print_verdict
from howsure.cli.options import CongruenceFlags, ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import cell
from howsure.core.progress import listening, part_of, tell
from howsure.inputs import Unlabelled, load_unlabelled, write_table
from howsure.inputs.files import table_form
from howsure.report.monitor import fit_monitor
from howsure.report.watch import Watched, watch

WORST = 10
REPORTS = (".html", ".json", ".md")
"""Endings of outputs that hold a report; others hold the rows with their scores."""


def run(
    file: Path,
    reference: Path,
    outputs: Sequence[Path],
    everything: bool,
    seed: int,
    progress: bool | None,
    tuned: CongruenceFlags,
    read: ReadOptions,
    csv_safe: bool,
) -> None:
    """Fit on the labelled reference, score the file's rows, print and write."""
    console = Console()
    tables = [path for path in outputs if path.suffix.lower() not in REPORTS]
    for path in tables:
        table_form(path)
    check_outputs(outputs, [file, reference])
    with Stages(progress) as stages, listening(stages):
        options = tuned.options()
        tell(f"reading {reference.name}")
        loaded = read.load(reference)
        if len(loaded.evalsets) != 1:
            raise InputError(f"{reference.name} must hold one model, got {len(loaded.evalsets)}")
        with part_of("fitting the reference"):
            monitor = fit_monitor(
                loaded.evalsets[0], seed=seed, everything=everything, options=options
            )
        tell(f"reading {file.name}")
        new = load_unlabelled(file, loaded, encoding=read.encoding, decimal=read.decimal)
        found = watch(
            monitor,
            new,
            facts={"Source": file.name, "Reference table": reference.name},
            command=shlex.join(["howsure", *sys.argv[1:]]),
        )
        for path in outputs:
            tell(f"writing {path.name}")
            if path in tables:
                write_table(found.columns(new), path, csv_safe=csv_safe)
            else:
                found.report.save(path)
    print_verdict(console, found.report)
    for shown in (_outermost(found, new), _flagged(found, new)):
        if shown is not None:
            console.print(shown)
    for path in outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _outermost(found: Watched, new: Unlabelled) -> Shown | None:
    """The rows farthest outside the reference, if there are any."""
    for table in found.report.tables:
        if table.name == "outside":
            far = table.columns
            shown = Shown(title="Rows outside the reference", title_justify="left")
            beside = [name for name in {**new.features, **new.texts} if name in far]
            for heading in ("row", "why", "distance", *beside):
                shown.add_column(escape(heading), overflow="fold")
            for row in range(min(WORST, len(table))):
                known = [escape(cell(far[name][row])[:200]) for name in beside]
                named = [escape(str(far[name][row])) for name in ("row", "why")]
                shown.add_row(*named, f"{far['distance'][row]:.3g}", *known)
            return shown
    return None


def _flagged(found: Watched, new: Unlabelled) -> Shown | None:
    """The flagged rows of the highest errors, if there are any."""
    columns = found.table.columns
    beside = {**new.features, **new.texts}
    flagged = np.flatnonzero(columns["flagged"])
    if not len(flagged):
        return None
    shown = Shown(title="Flagged rows, of the highest CCE", title_justify="left")
    for heading in ("row", "CCE", "perfect model", "p", "p nearest", *beside):
        shown.add_column(escape(heading), overflow="fold")
    for row in flagged[np.argsort(-columns["cce"][flagged], kind="stable")][:WORST]:
        names = ("cce", "perfect", "p_value", "near_p_value")
        numbers = [f"{columns[name][row]:.3g}" for name in names]
        known = [escape(cell(value[row])[:200]) for value in beside.values()]
        shown.add_row(escape(str(columns["row"][row])), *numbers, *known)
    return shown
