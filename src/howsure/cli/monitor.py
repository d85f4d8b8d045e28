"""`howsure assess NEW --reference VAL`: score rows whose y is not known yet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from howsure.cli.options import ReadOptions
from howsure.core.errors import InputError
from howsure.inputs import load_inputs, write_table
from howsure.report.monitor import fit_monitor

WORST = 10


def run(
    file: Path,
    reference: Path,
    outputs: Sequence[Path],
    everything: bool,
    seed: int,
    read: ReadOptions,
) -> None:
    """Fit on the labelled reference, score the file's rows, print and write."""
    console = Console()
    with Console(stderr=True).status("reading") as status:
        sets = read.load(reference).evalsets
        if len(sets) != 1:
            raise InputError(f"{reference.name} must hold one model, got {len(sets)}")
        status.update("fitting the reference")
        monitor = fit_monitor(sets[0], seed=seed, everything=everything)
        features = load_inputs(file, sets[0].features, encoding=read.encoding, decimal=read.decimal)
        status.update("scoring")
        table = monitor.score(features)
        for path in outputs:
            write_table({**table.columns, **features}, path)
    scores, flagged = table.columns["cce"], table.columns["flagged"]
    share = float(flagged.mean())
    tone = "red" if share > 0.1 else "green"
    console.print(
        f"[{tone}]{100 * share:.1f} %[/{tone}] of {len(scores):,} rows are flagged; 5 % would be "
        "if the model were right.",
        highlight=False,
    )
    shown = Shown(title="Rows where the model is farthest from the data", title_justify="left")
    for heading in ("row", "CCE", "right model", "p", *features):
        shown.add_column(escape(heading))
    for row in np.argsort(-scores)[:WORST]:
        numbers = [f"{table.columns[name][row]:.3g}" for name in ("cce", "perfect", "p_value")]
        shown.add_row(str(row), *numbers, *(escape(str(v[row])) for v in features.values()))
    console.print(shown)
    for path in outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)
