"""A run on the terminal: how far it is, and how long it has still to go."""

from __future__ import annotations

from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from howsure.cli.terminal import Console, escape
from howsure.studies.engine import Outcome, Trial, Watcher


class Shown(Watcher):
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

    def __enter__(self) -> Shown:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

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
            self._say(f"failed: {trial.title}: {outcome.told}")
        if self._trials is not None:
            self._bars.advance(self._trials)

    def waiting(self, trials: int, whom: str) -> None:
        """Say what is waited for."""
        self._say(f"waiting for {trials} trials that {whom} works on")

    def killed(self, trials: int) -> None:
        """Say that a worker died."""
        self._say(f"a worker process died with {trials} trial in hand")

    def workers(self, count: int) -> None:
        """Say who is there to work."""
        self._say(f"workers of the cluster: {count or 'none, waiting for one'}")

    def _say(self, text: str) -> None:
        self._bars.console.print(text, highlight=False, markup=False, soft_wrap=True)
