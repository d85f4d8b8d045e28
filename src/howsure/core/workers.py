"""A crew: whoever does calls for us, processes of this machine or the workers of a Dask cluster.

A call is handed in under a key, and what came of it is heard by that key. joblib and
`concurrent.futures` were weighed: when one of their processes is killed all that are out are lost,
and they do not say whose fault it was. joblib's backend for Dask survives a worker that is killed
once, but where a call kills every worker that takes it, its iteration over results never ends.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NoReturn, final
from uuid import uuid4

from howsure._version import __version__
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError, error_line
from howsure.core.optional import require
from howsure.core.progress import report_progress, subscribe

# ---- processes of our own, which do what they are sent for as long as this one lives -------------
# A process is started by its own command line, not forked and not by `multiprocessing`: it
# inherits no lock in an unknown state, imports nobody's main module, and may be started by a
# daemon. It leads a group of its own, so that whatever it starts ends with it, and a Ctrl-C at the
# terminal reaches the parent alone. It ends by itself when the parent is gone.

# Seconds in which a process that says no more is dead: it ends at once unless it is stuck.
_SECONDS_TO_END = 0.5
# Seconds between words of how far work has come: no eye sees more than ten a second.
_SECONDS_BETWEEN_WORDS = 0.1
_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)  # Arrow goes by the first
_SERVE = "import sys; sys.path[:] = {!r}; from howsure.core.workers import serve; serve()"


class Child:
    """One process, as its parent sees it."""

    def __init__(self, one_thread: bool) -> None:
        limits = dict.fromkeys(_THREADS, "1") if one_thread else {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **limits},
            start_new_session=True,
        )

    def send(self, function: Callable[..., Any], *args: Any) -> None:
        """Have a function called; a process that is dead is heard of by `word`."""
        packed = pickle.dumps((function, args))
        with suppress(OSError, ValueError):  # broken, or closed
            pickle.dump(packed, _pipe(self.process.stdin))
            _pipe(self.process.stdin).flush()

    def word(self) -> tuple[str, Any]:
        """What it says next: begun, step, done or error, and then no more of that call.

        Raises whatever a broken stream makes pickle raise, once the process is dead.
        """
        kind, word = pickle.load(_pipe(self.process.stdout))
        return kind, word

    def hung_up(self) -> None:
        """Close the end from which its words came."""
        _pipe(self.process.stdout).close()

    def kill(self) -> None:
        """End it, and all that it has started."""
        if sys.platform == "win32":
            self.process.kill()
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with suppress(OSError):
            _pipe(self.process.stdin).close()

    def death(self) -> str:
        """How it died, in words."""
        try:
            code = self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL if sys.platform != "win32" else 1
        self.kill()
        if code >= 0:
            return f"exited with status {code}"
        how = f"was terminated by {signal.Signals(-code).name}"
        return f"{how}, perhaps because memory ran out" if how.endswith("KILL") else how


def serve() -> NoReturn:
    """Do what comes by stdin, and say by stdout what came of it, for as long as the parent lives.

    What the work prints goes to stderr.
    """
    words, calls = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(calls, inbox), daemon=True).start()
    last = 0.0

    def send(kind: str, word: Any = None) -> None:
        pickle.dump((kind, word), words)
        words.flush()

    def step(*stage: Any) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN_WORDS:
            last = time.monotonic()
            send("step", stage)

    while True:
        packed = inbox.get()
        send("begun")
        try:
            function, arguments = pickle.loads(packed)
            with subscribe(step):
                result = function(*arguments)
            send("done", result)
        except Exception as error:  # noqa: BLE001 - the parent is told whatever it is
            kind = type(error) if isinstance(error, HowsureError) else HowsureError
            send("error", kind(error if kind is type(error) else error_line(error)))


def _receive(calls: BinaryIO, inbox: SimpleQueue[bytes]) -> None:
    """Take calls; when the parent is gone, end this process and all that it has started."""
    try:
        while True:
            inbox.put(pickle.load(calls))
    finally:
        if sys.platform != "win32":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _pipe(stream: Any) -> Any:
    assert stream is not None
    return stream


# ---- crews ----------------------------------------------------------------------

# Seconds in which a scheduler must answer: a slow network takes one or two.
SECONDS_TO_ANSWER = 10
# Looks at a dead process whose last words may still be read: ten seconds, at two looks a second.
_LOOKS_AT_THE_DEAD = 20
# Seconds between looks at a cluster, each of which asks its scheduler.
_SECONDS_BETWEEN_LOOKS = 1.0
# Seconds before a result that was lost is looked at again, lest the loop take a core.
_SECONDS_TO_PAUSE = 0.05


@final
@frozen
class LostWorker:
    """A call whose worker died, or was ended because its time was up."""

    words: str = ""  # how it ended; nothing where all that tried it died
    beside: bool = False  # others ran beside it, whose fault it may have been
    overdue: bool = False


@final
@frozen
class RaisedError:
    """What a call raised."""

    error: BaseException


class Crew(ABC):
    """Does calls somewhere."""

    @property
    @abstractmethod
    def room(self) -> int:
        """Calls that may be out, so that all have work."""

    @abstractmethod
    def submit(self, key: Any, function: Callable[..., Any], *args: Any) -> None:
        """Take a call, to be begun when there is room."""

    @abstractmethod
    def next(self, seconds: float) -> tuple[Any, Any] | None:
        """The key of a call that ended, with its result, a `LostWorker` or a `RaisedError`.

        None where none ends in about so many seconds.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of all that is not done."""


@final
class Processes(Crew):
    """Processes of this machine; they start when there is work, and stay until `close`.

    How far a call is, is heard where there is one process. Of several, each has one thread. With
    a limit, a call that takes more seconds is ended.
    """

    def __init__(self, jobs: int = 1, limit: float | None = None) -> None:
        self._jobs, self._limit = jobs, limit
        self._words: SimpleQueue[tuple[_Heard, str, Any]] = SimpleQueue()
        self._waiting = deque[tuple[Any, Callable[..., Any], tuple[Any, ...]]]()  # by key
        self._idle: list[_Heard] = []
        self._at_work: dict[_Heard, Any] = {}
        self._lock = threading.Lock()  # a process that is done takes the next call at once
        self._closed = False

    @property
    def room(self) -> int:
        return self._jobs

    def submit(self, key: Any, function: Callable[..., Any], *args: Any) -> None:
        with self._lock:
            self._waiting.append((key, function, args))
        self._begin()

    def next(self, seconds: float) -> tuple[Any, Any] | None:
        self._begin()
        try:
            child, kind, word = self._words.get(timeout=seconds)
        except Empty:
            return self._overdue()
        if kind == "gone":
            with self._lock:
                if child in self._idle:
                    self._idle.remove(child)
                at_work = child in self._at_work
            if at_work:
                return self._dead(child)
            child.kill()
        elif kind == "begun":
            child.deadline = time.monotonic() + self._limit if self._limit else None
        elif kind == "step" and self._jobs == 1:
            report_progress(*word)
        elif kind in _ENDS:
            key, result = word
            return key, RaisedError(result) if kind == "error" else result
        return self._overdue()

    def close(self) -> None:
        """End all, with whatever they have in hand."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            children = (*self._idle, *self._at_work)
            self._idle.clear()
            self._at_work.clear()
        for child in children:
            child.kill()

    def ended(self, child: _Heard) -> tuple[Any, ...]:
        """The key of the call that a process has ended, if it was not given up; another begins."""
        with self._lock:
            if child not in self._at_work:
                return ()
            key = self._at_work.pop(child)
            child.deadline = None
            self._idle.append(child)
        self._begin()
        return (key,)

    def _begin(self) -> None:
        """Give calls that wait to processes that are free."""
        with self._lock:
            while self._waiting and len(self._at_work) < self._jobs and not self._closed:
                child = self._idle.pop() if self._idle else _Heard(self, self._words, self._jobs)
                key, function, arguments = self._waiting.popleft()
                self._at_work[child] = key
                child.deadline = None
                child.send(function, *arguments)

    def _overdue(self) -> tuple[Any, LostWorker] | None:
        """The first call whose time is up, or whose process died and left its pipe to another."""
        with self._lock:
            children = tuple(self._at_work)
        for child in children:
            if child.deadline is not None and time.monotonic() > child.deadline:
                return self._dead(child, overdue=True)
            if child.process.poll() is not None:
                child.kill()  # the rest of its group, so that the end of its words is heard
                child.looks += 1
                if child.looks > _LOOKS_AT_THE_DEAD:
                    return self._dead(child)
        return None

    def _dead(self, child: _Heard, *, overdue: bool = False) -> tuple[Any, LostWorker] | None:
        if overdue:
            child.kill()
        words = "" if overdue else child.death()
        with self._lock:
            if child not in self._at_work:
                return None
            key = self._at_work.pop(child)
        shared = self._jobs > 1 and not overdue
        return key, LostWorker(words, beside=shared, overdue=overdue)


@final
class _Heard(Child):
    """A process of which the crew hears by a queue."""

    def __init__(self, crew: Processes, words: SimpleQueue[Any], jobs: int) -> None:
        super().__init__(one_thread=jobs > 1)
        self.deadline: float | None = None
        self.looks = 0  # at which it was dead
        threading.Thread(target=self._listen, args=(crew, words), daemon=True).start()

    def _listen(self, crew: Processes, words: SimpleQueue[Any]) -> None:
        """Pass on what it says, until it says no more."""
        try:
            while True:
                kind, word = self.word()
                if kind in _ENDS:
                    for key in crew.ended(self):
                        words.put((self, kind, (key, word)))
                else:
                    words.put((self, kind, word))
        except Exception:  # noqa: BLE001 - cut off in a word, or something else wrote there
            words.put((self, "gone", None))
        self.hung_up()


_ENDS = ("done", "error")


class SilentSchedulerError(HowsureError):
    """A Dask scheduler that no longer answers."""


@final
class Cluster(Crew):
    """The workers of a Dask scheduler; Dask itself gives a dead worker's call to another."""

    def __init__(self, scheduler: Any, client: Any = None) -> None:
        self._own = isinstance(scheduler, str)
        self._client = client or (connected(scheduler) if self._own else scheduler)
        self.name = scheduler if self._own else self._client.scheduler_info()["address"]
        self._keys: dict[str, Any] = {}  # by the key of the future
        self._futures: dict[str, Any] = {}
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self.workers, self._looked = -1, 0.0

    @property
    def room(self) -> int:
        return int(sum(self._client.nthreads().values()))

    def submit(self, key: Any, function: Callable[..., Any], *args: Any) -> None:
        packed = pickle.dumps((function, args, __version__))
        # as code, and only the call itself needs howsure: a worker without it then says so, where
        # it would end without a word if it met a function of howsure's in the message
        name = f"howsure-{uuid4().hex}"
        future = self._client.submit(_caller(), packed, key=name, pure=False)
        self._keys[future.key], self._futures[future.key] = key, future
        future.add_done_callback(self._ended.put)

    def next(self, seconds: float) -> tuple[Any, Any] | None:
        self.look()
        try:
            future = self._ended.get(timeout=seconds)
        except Empty:
            return None
        if future.status in ("pending", "lost"):  # its worker died with the result: it runs again
            time.sleep(_SECONDS_TO_PAUSE)
            future.add_done_callback(self._ended.put)
            return None
        key = self._keys.pop(future.key)
        self._futures.pop(future.key, None)
        if future.status not in ("finished", "error"):
            raise SilentSchedulerError(self._silent())
        try:
            return key, future.result()
        except killed_worker():  # Dask blames a death on all that waited for that worker
            return key, LostWorker(beside=bool(self._futures))
        except Exception as error:  # noqa: BLE001 - whatever a call raises
            return key, RaisedError(error)

    def look(self) -> None:
        """See, now and then, whether the scheduler is there and how many work for it."""
        if time.monotonic() - self._looked <= _SECONDS_BETWEEN_LOOKS:
            return
        self._looked = time.monotonic()
        try:
            self.workers = len(self._client.nthreads())
        except (OSError, TimeoutError, RuntimeError) as error:
            raise SilentSchedulerError(self._silent()) from error

    def close(self) -> None:
        """Drop what is not begun; what workers have in hand they finish."""
        for future in self._futures.values():
            with suppress(Exception):  # the scheduler may be gone
                future.cancel()
        self._futures.clear()
        if self._own:
            self._client.close(timeout=SECONDS_TO_ANSWER)

    def _silent(self) -> str:
        return f"the scheduler {self.name} no longer answers"


def connected(scheduler: str) -> Any:
    """A client of a Dask scheduler."""
    distributed = require("distributed", extra="cluster")
    try:
        if not re.search(r":\d+/?$|^inproc://", scheduler):
            raise ValueError("it has no port")  # a client of such a one is never let go of
        return distributed.Client(scheduler, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise InputError(
            "scheduler must be the address of a running Dask scheduler, such as "
            f"tcp://host:8786, got {scheduler!r}: {error}"
        ) from error


def killed_worker() -> type[Exception]:
    """What tells that all workers died that ran a task."""
    killed: type[Exception] = require("distributed.scheduler", extra="cluster").KilledWorker
    return killed


def _caller() -> Callable[[bytes], Any]:
    """What a worker is sent to call, if it has the same howsure."""

    def call(packed: bytes) -> Any:
        import pickle

        from howsure.core.workers import check_version

        function, args, version = pickle.loads(packed)
        check_version(version)
        return function(*args)

    return call


def check_version(wanted: str) -> None:
    """Refuse to work for another version of howsure."""
    if wanted != __version__:
        raise InputError(f"workers must run howsure {wanted}, got {__version__}")
