"""What `howsure bench` shows: how far a run is, how it stands, and tables of its results."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from howsure.cli.entry import Interrupted
from howsure.cli.terminal import Console, escape
from howsure.core.errors import cut_text
from howsure_studies.engine import (
    Outcome,
    Plan,
    RunListener,
    RunSummary,
    Store,
    Survey,
    Trial,
    parquet_bytes,
    run,
)

KEPT: Final = "interrupted: finished trials are kept; to resume, repeat the command"
_LONGEST: Final = 2_000  # characters of an error, which earlier versions kept whole
_PARTS: Final = "failed parts"
_STATES: Final = ("done", "failed", "damaged", "at work", "missing", _PARTS)


class Bars(RunListener):
    """Bars on stderr: trials, and the steps of the trial at hand."""

    def __init__(self) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            speed_estimate_period=3600.0,
        )
        self._trials: TaskID | None = None
        self._steps: TaskID | None = None

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def sources(self, words: str) -> None:
        """Say which worlds are drawn and which are read from originals."""
        self._print_line(f"worlds {words}")

    def begin(self, trials: int, settled: int) -> None:
        """Start the bar of trials; what is there already does not count for speed."""
        self._trials = self._bars.add_task("trials", total=trials - settled)

    def within(self, stage: str, done: int, total: int) -> None:
        """Move the bar of the trial at hand."""
        if self._steps is None:
            self._steps = self._bars.add_task(escape(stage), total=total)
        self._bars.update(self._steps, description=escape(stage), completed=done, total=total)

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """Move the bar of trials, and tell of a failure."""
        if outcome.ending == "failed":
            self._print_line(f"failed: {trial.title}: {cut_text(outcome.message, _LONGEST)}")
        if self._trials is not None:
            self._bars.advance(self._trials)

    def waiting(self, trials: int, whom: str) -> None:
        """Say what is waited for."""
        self._print_line(f"waiting for {trials} trials that {whom} works on")

    def killed(self, trials: int) -> None:
        """Say that a worker died."""
        self._print_line(f"a worker process died with {trials} trial in hand")

    def workers(self, count: int) -> None:
        """Say who is there to work."""
        self._print_line(f"workers of the cluster: {count or 'none, waiting for one'}")

    def _print_line(self, text: str) -> None:
        self._bars.console.print(text, highlight=False, markup=False, soft_wrap=True)


def run_shown(plan: Plan, store: Store, **options: Any) -> RunSummary:
    """Run a plan with bars on stderr; an interrupt says what is kept."""
    try:
        with Bars() as monitor:
            return run(plan, store, monitor=monitor, **options)
    except KeyboardInterrupt:
        raise Interrupted(KEPT) from None


def print_status(console: Console, survey: Survey) -> None:
    """How many trials of each world, method and other label are in which state, and why."""
    from howsure.cli.show import show_grid
    from howsure.report.document import Cell, Column, Grid, GridRows

    given = dict.fromkeys(key for trial, _ in survey.entries for key in trial.labels)
    keys = sorted(given, key=lambda key: (key != "world", key == "method"))
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for trial, entry in survey.entries:
        labels = tuple(trial.labels.get(key, "") for key in keys)
        state = "at work" if entry.address in survey.at_work else entry.status
        counts.setdefault(labels, Counter())[state] += 1
        counts[labels][_PARTS] += entry.failed_parts
    shown = [state for state in _STATES if any(states[state] for states in counts.values())]
    rows = tuple(
        tuple(Cell(text=text) for text in (*labels, *(str(states[s] or "") for s in shown)))
        for labels, states in counts.items()
    )
    columns = (*(Column(title=k) for k in keys), *(Column(title=s, numeric=True) for s in shown))
    show_grid(console, Grid(title="", columns=columns, parts=(GridRows(rows=rows),)))
    for trial, entry in survey.not_done():
        why = entry.problem
        if entry.failure is not None:
            why = f"{entry.failure.error}: {entry.failure.message}"
        if why:
            reason = cut_text(why, _LONGEST)
            line = f"{entry.status}: {trial.title} ({entry.address[:12]}): {reason}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_results(
    console: Console, table: pa.Table, metrics: tuple[str, ...], over: tuple[str, ...] = ()
) -> None:
    """Methods on each world by some measures, then over all worlds by some of these."""
    from howsure.cli.show import show_grid, show_note
    from howsure_studies.engine import (
        SIDE_BY_SIDE_NOTE,
        over_worlds,
        side_by_side_grids,
        standings_grid,
    )

    for grid in side_by_side_grids(table, metrics):
        show_grid(console, grid)
    show_note(console, SIDE_BY_SIDE_NOTE)
    for found in over_worlds(table, over):
        show_grid(console, standings_grid(found))


def written(table: pa.Table, form: str) -> bytes:
    """A table as CSV, JSON (a list of rows; what is not a number is null) or Parquet."""
    if form == "parquet":
        return parquet_bytes(table)
    if form == "csv":
        sink = io.BytesIO()
        csv.write_csv(table, sink)
        return sink.getvalue()
    rows = [{key: _plain(value) for key, value in row.items()} for row in table.to_pylist()]
    return (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode()


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
