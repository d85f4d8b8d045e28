"""Who is told how a run goes."""

from __future__ import annotations

from howsure.studies.engine.study import Trial
from howsure.studies.engine.work import Outcome


class Watcher:
    """Told how a run goes; this one does nothing with it."""

    def begin(self, trials: int, settled: int) -> None:
        """So many trials, of which so many need no work."""

    def within(self, stage: str, done: int, total: int) -> None:
        """Steps of the trial at hand; not told where several run at once."""

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """A trial ended."""

    def waiting(self, trials: int, whom: str) -> None:
        """Nothing is left but so many trials that another run works on."""

    def killed(self, trials: int) -> None:
        """A worker died, and so many trials that it had in hand were lost."""

    def workers(self, count: int) -> None:
        """So many workers of a cluster are there; told at first, and when it changes."""
