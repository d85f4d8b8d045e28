"""`howsure merge`: one assessment of tables that were assessed apart, without their rows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from howsure.cli.assess import show, write
from howsure.cli.progress import Stages
from howsure.cli.terminal import Console
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.progress import report_progress, subscribe
from howsure.report.assess import assess_loaded
from howsure.report.coercion import source_fact
from howsure.report.document import form_of
from howsure.report.no_rows import check_no_state
from howsure.streaming import State, loaded_state, merged_states
from howsure.verdict.family import check_judging


def run(
    files: Sequence[Path],
    outputs: Sequence[Path],
    state: Path | None,
    judging: tuple[float, Sequence[str]],
    confidence: float,
    seed: int,
    progress: bool | None,
    trials: bool,
    shown: str,
    *,
    no_rows: bool = False,
) -> None:
    """Merge states, assess, print, and write what is asked for."""
    if shown == "quiet" and not outputs and state is None:
        raise InputError("--quiet prints nothing: name a report with -o, or --state")
    console = Console()
    for path in outputs:
        form_of(path)
    kept = [] if state is None else [state]
    check_outputs([*outputs, *kept], files)
    if no_rows:
        check_no_state(state)
    tolerance, ignore = judging
    check_judging(tolerance, ignore)
    with Stages(progress) as stages, subscribe(stages):
        read = []
        for place, path in enumerate(files):
            report_progress("reading states", place, len(files))
            read.append(State.open(path))
        merged = merged_states(read, [str(path) for path in files])
        if state is not None:
            merged.save(state)
        result = assess_loaded(
            loaded_state(merged),
            facts=source_fact(list(files)),
            coverages=merged.models[0].coverages,
            confidence=confidence,
            seed=seed,
            tolerance=tolerance,
            ignore=ignore,
            command=shlex.join(["howsure", *sys.argv[1:]]),
            trials=trials,
            recalibration={},
            no_rows=no_rows,
        )
        write(result, shown, outputs)
    show(console, result, shown, [*outputs, *kept])
