"""Those who do the work of a run on other machines: the workers of a Dask scheduler.

Trials go to the scheduler by the client of `distributed` itself, each a task of its own. joblib's
backend for Dask was tried: it survives a worker that is killed once, but where a trial kills every
worker that takes it, its iteration over results never ends.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Final, final

from howsure._version import __version__
from howsure.core.errors import HowsureError, InputError
from howsure.core.optional import require
from howsure.studies.engine.child import in_time
from howsure.studies.engine.store import Store
from howsure.studies.engine.study import Trial
from howsure.studies.engine.trials import TrialError
from howsure.studies.engine.watcher import Watcher
from howsure.studies.engine.work import Outcome, ended, holder, work

_TIMEOUT: Final = 10  # seconds in which a scheduler must answer
_WAIT: Final = 0.05  # seconds between looks at a result that was lost
_LOOK: Final = 1.0  # seconds between looks at workers, and at what another run works on
_PATIENCE: Final = 3  # deaths of workers at one trial
_KILLED: Final = TrialError(
    error="WorkerDied",
    message="every worker that ran this trial was lost, perhaps for want of memory",
)


def work_there(
    trial: Trial,
    location: str,
    run: str,
    version: str,
    *,
    retry: bool = False,
    needs: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> Outcome:
    """Run a trial on a worker of a cluster, if it sees the same store by the same howsure.

    Parameters
    ----------
    trial, location, run, retry, needs
        As in `howsure.studies.engine.work.work`.
    version : str
        The howsure that made the trial.
    limit : float, optional
        Seconds that it may take; with one it runs in a child of the worker.

    Returns
    -------
    Outcome

    Raises
    ------
    InputError
        If the worker has another version, sees no such store, or cannot write to it.
    """
    if version != __version__:
        raise InputError(f"workers must have howsure {version}, got {__version__}")
    if not Store(location).sees(run):
        raise InputError(
            f"workers must see the store of the run at {location!r}, got another or none there: "
            "give a folder that all machines share, by its full path, or a URL"
        )
    if limit is not None:
        return in_time(((trial, location, run), {"retry": retry, "needs": needs}), limit)
    return work(trial, location, run, retry=retry, needs=needs)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCrew:
    """The workers of a Dask scheduler.

    Attributes
    ----------
    scheduler : str
        Its address, as ``tcp://host:8786``.
    store, retry, watch, token, titles, limit
        As of `howsure.studies.engine.crew.Crew`.
    """

    scheduler: str
    store: Store
    retry: bool
    watch: Watcher
    token: str
    titles: Mapping[str, str]
    limit: float | None

    def all(self, todo: Mapping[str, Trial]) -> Generator[Outcome, None, None]:
        """Every trial's ending, once each; a trial goes out when those that it needs have ended.

        Raises
        ------
        InputError
            If the scheduler does not answer, or a worker cannot work for this run.
        HowsureError
            If the scheduler goes away.
        """
        if todo:
            with _connected(self.scheduler) as client, self.store.shown(self.token):
                yield from _Watch(crew=self, client=client, left=dict(todo)).endings()


@final
@dataclass(slots=True, kw_only=True)
class _Watch:
    """Trials on their way through a cluster."""

    crew: ClusterCrew
    client: Any
    left: dict[str, Trial]
    out: dict[str, str] = field(default_factory=dict)  # address by key of the future
    busy: set[str] = field(default_factory=set)
    deaths: Counter[str] = field(default_factory=Counter)
    heard: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    workers: int = -1
    looked: float = 0.0

    def endings(self) -> Iterator[Outcome]:
        """Send trials and tell of their endings, until none is left."""
        followers = defaultdict[str, list[Trial]](list)
        for trial in self.left.values():
            for need in trial.needs:
                followers[need].append(trial)
        self._send(self.left.values())
        while self.left:
            ending = self._next()
            if ending is not None:
                del self.left[ending.address]
                yield ending
                self._send(followers[ending.address])

    def _send(self, trials: Iterable[Trial]) -> None:
        """Send those trials that wait for none of the others."""
        for trial in trials:
            if self.left.keys().isdisjoint(trial.needs):
                self._submit(trial)

    def _submit(self, trial: Trial) -> None:
        crew, address = self.crew, trial.address
        given = (trial, crew.store.location, crew.token, __version__)
        needs = {need: crew.titles[need] for need in trial.needs}
        options = {"retry": crew.retry, "needs": needs, "limit": crew.limit}
        future = self.client.submit(
            _caller(),
            pickle.dumps((work_there, given, options)),
            key=f"howsure-{address}-{crew.token}-{time.monotonic_ns()}",
            pure=False,
        )
        self.out[future.key] = address
        future.add_done_callback(self.heard.put)

    def _next(self) -> Outcome | None:
        """What is heard next, if it ends a trial."""
        if time.monotonic() - self.looked > _LOOK:
            self._look()
        try:
            future = self.heard.get(timeout=_LOOK)
        except Empty:
            return self._retried()
        if future.status in ("pending", "lost"):  # its worker died with the result: it runs again
            time.sleep(_WAIT)
            future.add_done_callback(self.heard.put)
            return None
        trial = self.left[self.out.pop(future.key)]
        if future.status == "finished":
            try:
                outcome = future.result()
            except _killed_worker() as error:  # the result was lost, and running again went wrong
                return self._failed(trial, error)
            return self._checked(trial, outcome)
        if future.status == "error":
            return self._failed(trial, future.exception())
        raise HowsureError(_gone(self.crew.scheduler))

    def _checked(self, trial: Trial, outcome: Outcome) -> Outcome | None:
        store = self.crew.store
        if outcome.ending == "busy":
            if not self.busy:
                self.crew.watch.waiting(1, holder(store, trial.address))
            self.busy.add(trial.address)
            return None
        if store.entry(trial.address).status not in ("done", "failed"):
            raise InputError(
                f"workers must see the store of the run at {store.location!r}: {trial.title} is "
                "done, and nothing of it is here"
            )
        return outcome

    def _failed(self, trial: Trial, error: BaseException) -> Outcome | None:
        """What becomes of a trial whose task could not be carried out."""
        if type(error).__name__ == "KilledWorker":
            self.crew.watch.killed(1)
            return self._lost(trial, _PATIENCE)
        if isinstance(error, HowsureError):
            raise error
        raise HowsureError(
            f"workers of {self.crew.scheduler} cannot run trials; each must have howsure "
            f"{__version__} and all that the plan needs: {type(error).__name__}: {error}"
        ) from error

    def _lost(self, trial: Trial, deaths: int) -> Outcome | None:
        """Send a trial again that a worker died at, or not at all; else tell that it failed."""
        store, address = self.crew.store, trial.address
        entry = store.entry(address)
        if entry.provenance.get("run") == self.crew.token and entry.status in ("done", "failed"):
            return ended(entry)  # what it gave is here, though the word of it was lost
        if store.claim_note(address).get("run") == self.crew.token:
            self.deaths[address] += deaths
        if self.deaths[address] < _PATIENCE:
            self._submit(trial)
            return None
        store.write_failure(address, trial.identity, _KILLED, {"run": self.crew.token})
        told = f"{_KILLED.error}: {_KILLED.message}"
        return Outcome(address=address, ending="failed", told=told)

    def _retried(self) -> Outcome | None:
        """Take up what another had in work, or a worker that died, if it is free now."""
        for address in tuple(self.busy):
            if not self.crew.store.in_work(address):
                self.busy.discard(address)
                ending = self._lost(self.left[address], 1)
                if ending is not None:
                    return ending
        return None

    def _look(self) -> None:
        """See whether the scheduler is there, and who works for it."""
        self.looked = time.monotonic()
        try:
            workers = len(self.client.nthreads())
        except (OSError, TimeoutError, RuntimeError) as error:
            raise HowsureError(_gone(self.crew.scheduler)) from error
        if workers != self.workers:
            self.workers = workers
            self.crew.watch.workers(workers)


def _killed_worker() -> type[Exception]:
    """What tells that all workers died that ran a task."""
    killed: type[Exception] = require("distributed.scheduler", extra="cluster").KilledWorker
    return killed


def _caller() -> Callable[[bytes], Any]:
    """What a worker is sent to call: it goes as code, and only the call itself needs howsure.

    A worker without howsure then says so. It would end without a word if it met a function of
    howsure's in the message.
    """

    def call(packed: bytes) -> Any:
        import pickle

        function, given, options = pickle.loads(packed)
        return function(*given, **options)

    return call


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    """A client of a scheduler; what it has sent and is not begun goes with it."""
    distributed = require("distributed", extra="cluster")
    try:
        client = distributed.Client(scheduler, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise InputError(
            f"scheduler must be the address of a Dask scheduler that answers, as "
            f"tcp://host:8786, got {scheduler!r}: {error}"
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=_TIMEOUT)


def _gone(scheduler: str) -> str:
    return (
        f"the scheduler {scheduler} no longer answers: finished trials are kept, and the same "
        "command continues from here"
    )
