"""Independent pieces of work, done in this process, in several, or on a Dask cluster, in order.

Whoever does them, a thread here waits for each piece that is out, keeps what came of it where that
is asked, and has it done again if its process died. joblib and `concurrent.futures` were weighed:
when one of their processes is killed all that are out are lost, and they do not say whose fault it
was; so the processes are those that bench uses.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar, final
from uuid import uuid4

import pyarrow as pa

from howsure._version import __version__
from howsure.core.brief import brief
from howsure.core.children import Child
from howsure.core.cluster import TIMEOUT, connected, killed_worker, submitted
from howsure.core.errors import HowsureError, InputError, error_line
from howsure.core.progress import report_progress
from howsure.core.threads import one_thread
from howsure.streaming.kept import keep, kept, packed, unpacked

Item = TypeVar("Item")

_DEATHS: Final = 3  # of processes at one piece
_AHEAD: Final = 2  # pieces out, or done and not yet handed back, for each process
_FEWEST: Final = 16  # pieces out on a cluster, whose workers may yet come
_LOOK: Final = 1.0  # seconds between looks at a cluster
_PAUSE: Final = 0.05  # seconds before a piece that was lost is looked at again


class _Call(NamedTuple):
    """One call of the work."""

    work: Callable[[Any], pa.Table]
    item: Any
    identity: str
    title: str


def done_in_order(
    work: Callable[[Item], pa.Table],
    items: Sequence[Item],
    *,
    identities: Sequence[str],
    jobs: int | None = None,
    scheduler: Any = None,
    resume: Path | None = None,
    stage: str = "rows",
    sizes: Sequence[int] | None = None,
) -> Generator[pa.Table, None, None]:
    """What the work makes of each item, in order, whoever does it; a few pieces are out at a time.

    `jobs` are processes: None as many as there are cores, 1 this process alone. `scheduler` is the
    address of a Dask scheduler, or a client of one. In the folder `resume` each piece is kept under
    its identity, if it has one, and is read if it is there. The first error by order of the items
    ends all. Close the generator to end what is out.
    """
    if len(identities) != len(items) or (sizes is not None and len(sizes) != len(items)):
        raise InputError("identities and sizes must be as many as items")
    if jobs is not None and scheduler is not None:
        raise InputError(f"jobs must be left out with a scheduler, got {jobs}")
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be a whole number of at least 1, got {jobs}")
    pieces = [
        _Call(work, item, identity, f"piece {number:,} of {len(items):,} ({brief(item)})")
        for number, (item, identity) in enumerate(zip(items, identities, strict=True), start=1)
    ]
    return _told(_done(pieces, jobs, scheduler, resume, stage), stage, sizes or [1] * len(items))


def _told(
    tables: Generator[pa.Table, None, None], stage: str, sizes: Sequence[int]
) -> Generator[pa.Table, None, None]:
    """Tables, telling how many rows are done."""
    done, total = 0, sum(sizes)
    report_progress(stage, done, total)
    try:
        for size, table in zip(sizes, tables, strict=True):
            done += size
            report_progress(stage, done, total)
            yield table
    finally:
        tables.close()


def _done(
    pieces: Sequence[_Call], jobs: int | None, scheduler: Any, resume: Path | None, stage: str
) -> Generator[pa.Table, None, None]:
    if scheduler is None:
        jobs = min(jobs or _cores(), len(pieces))
    if jobs is not None and jobs <= 1:
        for piece in pieces:
            yield unpacked(_kept_or_done(piece, resume, _here))
        return
    place = _Processes(jobs) if jobs is not None else _Cluster(scheduler, stage)
    threads = _Threads(min(place.out, len(pieces)))
    window, left = deque[Future[bytes]](), iter(pieces)
    try:
        while True:
            for piece in islice(left, place.ahead - len(window)):
                window.append(threads.submit(_kept_or_done, piece, resume, place.do))
            if not window:
                break
            yield unpacked(_waited(window.popleft(), place))
    finally:
        place.stop()
        threads.join()
        place.close()


def _kept_or_done(piece: _Call, resume: Path | None, do: Callable[[_Call], bytes]) -> bytes:
    """A piece as it is kept, or done now and kept."""
    if resume is None or not piece.identity:
        return do(piece)
    stream = kept(resume, piece.identity)
    if stream is None:
        stream = do(piece)
        keep(resume, piece.identity, stream)
    return stream


@final
class _Threads:
    """Threads that wait for pieces; a program that ends with a generator left open ends them too.

    Those of `concurrent.futures` it would wait for, and so for the pieces in hand.
    """

    def __init__(self, count: int) -> None:
        self._calls = SimpleQueue[tuple[Future[bytes], Callable[[], bytes]] | None]()
        self._all = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]
        for thread in self._all:
            thread.start()

    def submit(self, call: Callable[..., bytes], *given: Any) -> Future[bytes]:
        """Have a call made by one of the threads."""
        future = Future[bytes]()
        self._calls.put((future, partial(call, *given)))
        return future

    def join(self) -> None:
        """Wait until all calls have ended."""
        for _ in self._all:
            self._calls.put(None)
        for thread in self._all:
            thread.join()

    def _run(self) -> None:
        while (asked := self._calls.get()) is not None:
            future, call = asked
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked
                future.set_exception(error)


def _waited(future: Future[bytes], place: _Place) -> bytes:
    """A piece when it is done; meanwhile the place is looked at."""
    while not wait([future], _LOOK).done:
        place.look()
    return future.result()


def _here(piece: _Call) -> bytes:
    """Do a piece in this process, whose threads are others' too."""
    with one_thread():
        return _alone(piece)


def _alone(piece: _Call) -> bytes:
    """Do a piece in a process of our own, which has one thread."""
    return packed(piece.work(piece.item))


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


class _Place(ABC):
    """Where pieces are done, asked by several threads at once."""

    out: int  # pieces that may be out at a time
    ahead: int  # and with those that are done and wait for their turn

    @abstractmethod
    def do(self, piece: _Call) -> bytes:
        """Have a piece done and wait for it; what is asked after `stop` is cancelled."""

    @abstractmethod
    def look(self) -> None:
        """See whether the place is there."""

    @abstractmethod
    def stop(self) -> None:
        """End what is out, so that nobody waits for it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the place, when nobody waits."""


@final
class _Processes(_Place):
    """Processes of this machine, each of one thread; they start when there is work."""

    def __init__(self, jobs: int) -> None:
        self.out, self.ahead = jobs, _AHEAD * jobs
        self._all: list[Child] = []
        self._idle: list[Child] = []
        self._lock = threading.Lock()
        self._stopped = False

    def do(self, piece: _Call) -> bytes:
        death = ""
        for _ in range(_DEATHS):
            child = self._child()
            child.send(_alone, piece)
            try:
                kind, word = child.word()
                while kind not in ("done", "error"):
                    kind, word = child.word()
            except Exception:  # noqa: BLE001 - cut off in a word, or something else wrote there
                death = child.death()
                self._gone(child)
                continue
            self._idle.append(child)
            if kind == "error":
                raise word
            return bytes(word)
        raise HowsureError(
            f"{piece.title} was tried by {_DEATHS} processes in turn, and each was lost: the last "
            f"{death}"
        )

    def look(self) -> None:
        """A process that is gone is heard of by who waits for it."""

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._all:
                child.kill()

    def close(self) -> None:
        for child in self._all:
            child.hung_up()

    def _child(self) -> Child:
        with self._lock:
            if self._stopped:
                raise CancelledError
            if self._idle:
                return self._idle.pop()
            self._all.append(Child(one_thread=True))
            return self._all[-1]

    def _gone(self, child: Child) -> None:
        with self._lock:
            if not self._stopped:
                self._all.remove(child)
                child.hung_up()


@final
class _Cluster(_Place):
    """The workers of a Dask scheduler; Dask itself gives a dead worker's piece to another."""

    def __init__(self, scheduler: Any, stage: str) -> None:
        self._own = isinstance(scheduler, str)
        self._client = connected(scheduler) if self._own else scheduler
        self._name = scheduler if self._own else self._client.scheduler_info()["address"]
        self._stage, self._stopped = stage, False
        self._out = dict[Any, threading.Event]()  # each future, and what wakes who waits for it
        self.out = self.ahead = max(_AHEAD * sum(self._client.nthreads().values()), _FEWEST)

    def do(self, piece: _Call) -> bytes:
        future = submitted(self._client, f"howsure-{uuid4().hex}", _there, piece, __version__)
        woken = self._out[future] = threading.Event()
        future.add_done_callback(lambda _: woken.set())
        try:
            while not woken.wait(_LOOK) or future.status in ("pending", "lost"):
                if self._stopped:
                    raise CancelledError
                if woken.is_set():  # its worker died with the result: it runs again
                    woken.clear()
                    future.add_done_callback(lambda _: woken.set())
                    time.sleep(_PAUSE)
            return self._result(piece, future)
        finally:
            del self._out[future]

    def look(self) -> None:
        try:
            workers = self._client.nthreads()
        except (OSError, TimeoutError, RuntimeError) as error:
            raise HowsureError(self._silent()) from error
        if not workers:
            report_progress(f"{self._stage}: waiting for workers of {self._name}")

    def stop(self) -> None:
        self._stopped = True
        for future, woken in list(self._out.items()):
            with suppress(Exception):  # the scheduler may be gone
                future.cancel()
            woken.set()

    def close(self) -> None:
        if self._own:
            self._client.close(timeout=TIMEOUT)

    def _result(self, piece: _Call, future: Any) -> bytes:
        if future.status == "cancelled":
            raise HowsureError(self._silent())
        try:
            return bytes(future.result())
        except killed_worker() as error:
            raise HowsureError(
                f"{piece.title}: every worker that tried it was lost, perhaps for want of memory"
            ) from error
        except HowsureError:
            raise
        except Exception as error:
            raise HowsureError(
                f"workers of {self._name} cannot do {piece.title}; each must have howsure "
                f"{__version__} and see the same files: {error_line(error)}"
            ) from error

    def _silent(self) -> str:
        return f"the scheduler {self._name} no longer answers"


def _there(piece: _Call, version: str) -> bytes:
    """Do a piece on a worker of a cluster, if it has the same howsure."""
    if version != __version__:
        raise InputError(f"workers must have howsure {version}, got {__version__}")
    return _here(piece)
