"""What long work is doing, on stderr: a spinner at once, a bar when it takes longer."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from howsure.cli.terminal import Console, escape

# Shorter work is done before a bar is read.
SECONDS_BEFORE_BAR = 5.0
"""Seconds from which the bar is shown."""


class Stages:
    """A bar with the name of the stage that work has reached.

    On a terminal, a spinner with the stage stands from the start, and a bar beside it once the
    work takes longer than some seconds; both go when the work ends. Elsewhere nothing is shown,
    or, where progress is asked for, a line every few seconds.

    Parameters
    ----------
    wanted : bool, optional
        Whether to show it; by default on a terminal only.
    console : Console, optional
        Where; stderr by default.
    after : float
        Seconds before the bar, and between lines.

    Examples
    --------
    >>> with Stages(wanted=False) as stages:
    ...     stages("bootstrap", 1, 10)
    """

    def __init__(
        self,
        wanted: bool | None = None,
        console: Console | None = None,
        after: float = SECONDS_BEFORE_BAR,
    ) -> None:
        self._console = console or Console(stderr=True)
        shown = self._console.is_terminal if wanted is None else wanted
        self._lines = shown and not self._console.is_terminal
        self._after = after
        self._started = self._said = time.monotonic()
        self._stage = ""
        self._bar: Progress | None = None
        if shown and not self._lines:
            late = [_Late(column, after) for column in (BarColumn(), MofNCompleteColumn())]
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                *late,
                _Late(TimeElapsedColumn(), after),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell of a stage, steps done and steps in all; 0 where their number is not known."""
        if self._bar is not None:
            fresh = stage != self._stage  # a stage that is soon over is seen too
            self._stage = stage
            self._bar.update(
                self._task,
                description=escape(stage),
                completed=done,
                total=total or None,
                refresh=fresh,
            )
        elif self._lines:
            now = time.monotonic()
            if now - self._said >= self._after:
                self._said = now
                steps = f" ({done} of {total})" if total else ""
                words = f"howsure: {now - self._started:.0f} s: {stage}{steps}"
                self._console.print(words, markup=False, soft_wrap=True)


class _Late(ProgressColumn):
    """A column that stays empty at first."""

    def __init__(self, column: ProgressColumn, after: float) -> None:
        super().__init__()
        self._column = column
        self._after = after

    def render(self, task: Task) -> RenderableType:
        """The column, once the time has come."""
        if (task.elapsed or 0.0) < self._after:
            return Text()
        return self._column.render(task)
