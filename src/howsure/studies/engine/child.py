"""Processes of their own for trials: one that dies or hangs takes nothing else with it.

A child is started by its own command line, not forked and not by `multiprocessing`: it inherits no
lock in an unknown state, imports nobody's main module, and may be started by a daemon. It leads a
group of its own, so that whatever its method starts ends with it, and a Ctrl-C at the terminal
reaches the run alone. It ends by itself when the run is gone.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final, NoReturn, final

from howsure.core.errors import HowsureError
from howsure.core.progress import listening, tell
from howsure.studies.engine.store import Store
from howsure.studies.engine.trials import TrialError
from howsure.studies.engine.work import Outcome, ended, holder, work

_LOOK: Final = 0.5  # seconds between looks at processes that say nothing
_PATIENCE: Final = 20  # looks at a dead process whose last words may still be read
_STEP: Final = 0.1  # seconds between words of a trial's progress
_FREE: Final = 5.0  # seconds in which the claim of a dead process is let go
_THREADS: Final = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
_SERVE: Final = (
    "import sys; sys.path[:] = {!r}; from howsure.studies.engine.child import serve; serve()"
)

_HERE: Final = threading.local()  # of each thread of a cluster's worker

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""What `howsure.studies.engine.work.work` is called with."""


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """A trial whose process died, or was ended because its time was up."""

    failure: TrialError
    died: bool


@final
class Children:
    """Processes that do trials; they start when there is work, and stay until `close`.

    How far a trial is, is told where it runs alone.
    """

    def __init__(self, *, limit: float | None, alone: bool = True) -> None:
        self._limit = limit
        self._alone = alone
        self._heard: SimpleQueue[tuple[_Child, str, Any]] = SimpleQueue()
        self._idle: list[_Child] = []
        self._at_work: dict[_Child, str] = {}

    def all(self, calls: Mapping[str, Call], jobs: int) -> Iterator[tuple[str, Outcome | Lost]]:
        """What comes of each call, by address; so many at a time."""
        waiting = deque(calls.items())
        while waiting or self._at_work:
            while waiting and len(self._at_work) < jobs:
                address, call = waiting.popleft()
                child = self._idle.pop() if self._idle else _Child(self._heard, not self._alone)
                self._at_work[child] = address
                child.send(call)
            found = self._next()
            if found is not None:
                yield found

    def close(self) -> None:
        """End all, with whatever they have in hand."""
        for child in (*self._idle, *self._at_work):
            child.kill()
        self._idle.clear()
        self._at_work.clear()

    def _next(self) -> tuple[str, Outcome | Lost] | None:
        """What is heard next, if it ends a trial."""
        try:
            child, kind, told = self._heard.get(timeout=_LOOK)
        except Empty:
            return self._looked()
        if child not in self._at_work:
            if kind == "gone" and child in self._idle:
                child.kill()
                self._idle.remove(child)
        elif kind == "gone":
            return self._at_work.pop(child), child.lost()
        elif kind == "begun":
            child.deadline = time.monotonic() + self._limit if self._limit else None
        elif kind == "step" and self._alone:
            tell(*told)
        elif kind in ("done", "error"):
            address = self._at_work.pop(child)
            self._idle.append(child)
            if kind == "error":
                raise told
            return address, told
        return self._looked()

    def _looked(self) -> tuple[str, Lost] | None:
        """The first trial whose time is up, or whose process died and left its pipe to another."""
        for child in tuple(self._at_work):
            if child.deadline is not None and time.monotonic() > child.deadline:
                child.kill()
                told = f"it took more than {self._limit:g} s, the trial timeout, and was ended"
                failure = TrialError(error="TrialTimeout", message=told)
                return self._at_work.pop(child), Lost(failure, died=False)
            if child.process.poll() is not None:
                child.kill()  # the rest of its group, so that the end of its words is heard
                child.dead += 1
                if child.dead > _PATIENCE:
                    return self._at_work.pop(child), child.lost()
        return None


@final
class _Child:
    """One process, as the run sees it."""

    def __init__(self, heard: SimpleQueue[Any], one_thread: bool) -> None:
        limits = dict.fromkeys(_THREADS, "1") if one_thread else {}
        self.deadline: float | None = None
        self.dead = 0  # looks at which it was dead
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **limits},
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()

    def send(self, call: Call) -> None:
        """Hand over a call; a process that is dead is heard of elsewhere."""
        self.deadline = None
        with suppress(OSError):
            pickle.dump(pickle.dumps(call), _pipe(self.process.stdin))
            _pipe(self.process.stdin).flush()

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

    def lost(self) -> Lost:
        """How it died, in words."""
        try:
            code = self.process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL if sys.platform != "win32" else 1
        self.kill()
        how = f"ended by itself, with status {code}"
        if code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
            if how.endswith("KILL"):
                how += ", perhaps for want of memory"
        told = f"the process that ran this trial {how}"
        return Lost(TrialError(error="WorkerDied", message=told), died=True)

    def _listen(self, heard: SimpleQueue[Any]) -> None:
        """Pass on what it says, until it says no more."""
        words = _pipe(self.process.stdout)
        try:
            while True:
                heard.put((self, *pickle.load(words)))
        except Exception:  # noqa: BLE001 - cut off in a word, or something else wrote there
            heard.put((self, "gone", None))
        words.close()


def let_go(store: Store, call: Call) -> None:
    """End the claim of a process of this run that is dead, so that its trial can be claimed."""
    trial, _, token = call[0]
    address, until = trial.address, time.monotonic() + _FREE
    if store.claim_note(address).get("run") == token:
        store.disclaim(address)
    while store.claim_note(address).get("run") == token and store.in_work(address):
        if time.monotonic() > until:
            break  # something that it started outlives it, and holds its lock
        time.sleep(_LOOK / 10)


def kept_as_lost(store: Store, call: Call, lost: Lost) -> Outcome:
    """Keep a trial as failed whose process is dead, unless its result is there."""
    trial, _, token = call[0]
    address = trial.address
    let_go(store, call)
    with store.claimed(address, {"run": token}) as mine:
        if not mine and store.claim_note(address).get("run") != token:
            return Outcome(address=address, ending="busy", told=holder(store, address))
        entry = store.entry(address)
        if entry.provenance.get("run") != token or entry.status not in ("done", "failed"):
            store.write_failure(address, trial.identity, lost.failure, {"run": token})
            entry = store.entry(address)
        return ended(entry)


def in_time(call: Call, limit: float) -> Outcome:
    """A trial in a child of this thread, which is ended when the time is up, else kept for more."""
    held: tuple[float, Children] | None = getattr(_HERE, "held", None)
    if held is None or held[0] != limit:
        if held is not None:
            held[1].close()
        held = _HERE.held = limit, Children(limit=limit)
    ((_, found),) = held[1].all({call[0][0].address: call}, 1)
    return kept_as_lost(Store(call[0][1]), call, found) if isinstance(found, Lost) else found


def serve() -> NoReturn:
    """Do what comes by stdin, and say by stdout what came of it, for as long as the run lives.

    What a method prints goes to stderr.
    """
    words, calls = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    given: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(calls, given), daemon=True).start()
    told = 0.0

    def say(kind: str, what: Any = None) -> None:
        pickle.dump((kind, what), words)
        words.flush()

    def step(*stage: Any) -> None:
        nonlocal told
        if time.monotonic() - told > _STEP:
            told = time.monotonic()
            say("step", stage)

    while True:
        packed = given.get()
        say("begun")
        try:
            arguments, options = pickle.loads(packed)
            with listening(step):
                done = work(*arguments, **options)
            say("done", done)
        except Exception as error:  # noqa: BLE001 - the run is told whatever it is
            kind = type(error) if isinstance(error, HowsureError) else HowsureError
            name = "" if isinstance(error, HowsureError) else f"{type(error).__name__}: "
            say("error", kind(f"{name}{error}"))


def _receive(calls: BinaryIO, given: SimpleQueue[bytes]) -> None:
    """Take calls; when the run is gone, end this process and all that it has started."""
    try:
        while True:
            given.put(pickle.load(calls))
    finally:
        if sys.platform != "win32":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


def _pipe(stream: Any) -> Any:
    assert stream is not None
    return stream
