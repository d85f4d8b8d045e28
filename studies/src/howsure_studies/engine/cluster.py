"""Those who do the work of a run on other machines: the workers of a Dask scheduler."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, final

from howsure._version import __version__
from howsure.core.errors import HowsureError, InputError, error_line
from howsure.core.workers import Cluster, SilentSchedulerError
from howsure_studies.engine.executor import Lost, OfCrew, RunListener, in_time
from howsure_studies.engine.store import Store
from howsure_studies.engine.trials import Call, Outcome, work


def work_there(call: Call, limit: float | None) -> Outcome:
    """Run a trial on a worker of a cluster, if it sees the same store.

    With a limit it runs in a child of the worker, for so many seconds at most.
    """
    if not Store(call.location).sees(call.run):
        raise InputError(
            f"workers must see the store of the run at {call.location!r}, got another or none "
            "there: use the full path of a folder that all machines share, or a URL"
        )
    return work(call) if limit is None else in_time(call, limit)


@final
class OnCluster(OfCrew):
    """The workers of a Dask scheduler."""

    crew: Cluster

    def __init__(
        self,
        scheduler: str,
        store: Store,
        run: str,
        monitor: RunListener,
        limit: float | None = None,
        client: Any = None,
    ) -> None:
        super().__init__(Cluster(scheduler, client))
        self._store, self._monitor, self._limit = store, monitor, limit
        self._workers = -1
        with ExitStack() as opened:
            opened.callback(self.crew.close)
            opened.enter_context(store.shown(run))
            self._opened = opened.pop_all()

    def submit(self, call: Call) -> None:
        self.crew.submit(call, work_there, call, self._limit)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        try:
            ended = super().next(seconds)
        except SilentSchedulerError as error:
            raise HowsureError(
                f"{error}: finished trials are kept; to resume, repeat the command"
            ) from error
        if self.crew.workers != self._workers:
            self._workers = self.crew.workers
            self._monitor.workers(self._workers)
        if ended is not None and isinstance(ended[1], Outcome):
            self._check(ended[0], ended[1])
        return ended

    def close(self) -> None:
        """Drop what is not begun; what workers have in hand they finish."""
        self._opened.close()

    def refusal(self, error: BaseException) -> BaseException:
        if isinstance(error, HowsureError):
            return error
        made = HowsureError(
            f"workers of {self.crew.name} cannot run trials; each must have howsure {__version__} "
            f"and everything that the plan needs: {error_line(error)}"
        )
        made.__cause__ = error
        return made

    def _check(self, call: Call, outcome: Outcome) -> None:
        if outcome.ending == "busy":
            return
        if self._store.entry(call.address).status not in ("done", "failed"):
            raise InputError(
                f"workers must see the store of the run at {call.location!r}: "
                f"{call.trial.title} is done, but its results are not here"
            )
