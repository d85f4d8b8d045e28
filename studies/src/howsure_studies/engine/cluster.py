"""Those who do the work of a run on other machines: the workers of a Dask scheduler.

Trials go to the scheduler by the client of `distributed` itself, each a task of its own. joblib's
backend for Dask was tried: it survives a worker that is killed once, but where a trial kills every
worker that takes it, its iteration over results never ends.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from queue import Empty, SimpleQueue
from typing import Any, Final, final

from howsure._version import __version__
from howsure.core.cluster import TIMEOUT, connected, killed_worker, submitted
from howsure.core.errors import HowsureError, InputError, error_line
from howsure_studies.engine.executor import KILLED, Executor, Lost, RunListener, in_time
from howsure_studies.engine.store import Store
from howsure_studies.engine.trials import Call, Outcome, work

_WAIT: Final = 0.05  # seconds between looks at a result that was lost
_LOOK: Final = 1.0  # seconds between looks at workers


def work_there(call: Call, version: str, limit: float | None) -> Outcome:
    """Run a trial on a worker of a cluster, if it sees the same store by the same howsure.

    With a limit it runs in a child of the worker, for so many seconds at most.
    """
    if version != __version__:
        raise InputError(f"workers must have howsure {version}, got {__version__}")
    if not Store(call.location).sees(call.run):
        raise InputError(
            f"workers must see the store of the run at {call.location!r}, got another or none "
            "there: give a folder that all machines share, by its full path, or a URL"
        )
    return work(call) if limit is None else in_time(call, limit)


@final
class Cluster(Executor):
    """The workers of a Dask scheduler; Dask itself gives a dead worker's trial to another."""

    def __init__(
        self,
        scheduler: str,
        store: Store,
        run: str,
        monitor: RunListener,
        limit: float | None = None,
        client: Any = None,
    ) -> None:
        self._scheduler, self._store, self._monitor = scheduler, store, monitor
        self._client, self._limit = client or connected(scheduler), limit
        self._calls: dict[str, Call] = {}  # by key of the future
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._workers, self._looked = -1, 0.0
        with ExitStack() as opened:
            opened.callback(self._client.close, timeout=TIMEOUT)
            opened.enter_context(store.shown(run))
            self._opened = opened.pop_all()

    def submit(self, call: Call) -> None:
        key = f"howsure-{call.address}-{call.run}-{time.monotonic_ns()}"
        future = submitted(self._client, key, work_there, call, __version__, self._limit)
        self._calls[future.key] = call
        future.add_done_callback(self._ended.put)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        if time.monotonic() - self._looked > _LOOK:
            self._look()
        try:
            future = self._ended.get(timeout=seconds)
        except Empty:
            return None
        if future.status in ("pending", "lost"):  # its worker died with the result: it runs again
            time.sleep(_WAIT)
            future.add_done_callback(self._ended.put)
            return None
        call = self._calls.pop(future.key)
        if future.status == "finished":
            try:
                outcome = future.result()
            except killed_worker():  # the result was lost, and running again went wrong
                return call, Lost(KILLED)
            self._check(call, outcome)
            return call, outcome
        if future.status == "error":
            return call, self._lost(future.exception())
        raise HowsureError(self._gone())

    def close(self) -> None:
        """Drop what is not begun; what workers have in hand they finish."""
        self._opened.close()

    def _check(self, call: Call, outcome: Outcome) -> None:
        if outcome.ending == "busy":
            return
        if self._store.entry(call.address).status not in ("done", "failed"):
            raise InputError(
                f"workers must see the store of the run at {call.location!r}: "
                f"{call.trial.title} is done, and nothing of it is here"
            )

    def _lost(self, error: BaseException) -> Lost:
        if isinstance(error, killed_worker()):
            return Lost(KILLED)
        if isinstance(error, HowsureError):
            raise error
        raise HowsureError(
            f"workers of {self._scheduler} cannot run trials; each must have howsure "
            f"{__version__} and all that the plan needs: {error_line(error)}"
        ) from error

    def _look(self) -> None:
        """See whether the scheduler is there, and who works for it."""
        self._looked = time.monotonic()
        try:
            workers = len(self._client.nthreads())
        except (OSError, TimeoutError, RuntimeError) as error:
            raise HowsureError(self._gone()) from error
        if workers != self._workers:
            self._workers = workers
            self._monitor.workers(workers)

    def _gone(self) -> str:
        return (
            f"the scheduler {self._scheduler} no longer answers: finished trials are kept, and "
            "the same command continues from here"
        )
