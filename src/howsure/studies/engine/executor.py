"""Who does a run's trials: one interface, and what is the same wherever they are done.

`outcomes` hands out trials when those that they need have ended, waits for what other runs work
on, and tries a trial again whose worker died. `Here` and `Processes` do them on this machine,
`howsure.studies.engine.cluster` on others.

A process is started by its own command line, not forked and not by `multiprocessing`: it inherits
no lock in an unknown state, imports nobody's main module, and may be started by a daemon. It leads
a group of its own, so that whatever its method starts ends with it, and a Ctrl-C at the terminal
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
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final, NoReturn, final

from howsure.core.errors import HowsureError
from howsure.core.progress import listening, tell
from howsure.studies.engine.store import Store, TrialError
from howsure.studies.engine.study import Trial
from howsure.studies.engine.trials import Call, Outcome, freed, holder, lost, work

_LOOK: Final = 0.5  # seconds between looks at what says nothing
_PATIENCE: Final = 20  # looks at a dead process whose last words may still be read
_DEATHS: Final = 3  # of workers at one trial
_STEP: Final = 0.1  # seconds between words of a trial's progress
_THREADS: Final = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
_SERVE: Final = (
    "import sys; sys.path[:] = {!r}; from howsure.studies.engine.executor import serve; serve()"
)
KILLED: Final = TrialError(
    error="WorkerDied",
    message="every worker that ran this trial was lost, perhaps for want of memory",
)

_HERE: Final = threading.local()  # of each thread of a cluster's worker


class Monitor:
    """Hears how a run goes; this one does nothing with it."""

    def sources(self, told: str) -> None:
        """Which worlds are drawn and which are read from originals, where a study tells."""

    def begin(self, trials: int, settled: int) -> None:
        """So many trials, of which so many need no work."""

    def within(self, stage: str, done: int, total: int) -> None:
        """Steps of the trial at hand; not heard where several run at once."""

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """A trial ended."""

    def waiting(self, trials: int, whom: str) -> None:
        """Nothing is left but so many trials that another run works on."""

    def killed(self, trials: int) -> None:
        """A worker died, and so many trials that it had in hand were lost."""

    def workers(self, count: int) -> None:
        """So many workers of a cluster are there; heard at first, and when it changes."""


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """A trial whose worker died, or was ended because its time was up.

    `again` where others ran beside it, whose fault it may have been.
    """

    failure: TrialError
    again: bool = False


class Executor(ABC):
    """Does trials somewhere."""

    @abstractmethod
    def submit(self, call: Call) -> None:
        """Take a trial, to be begun when there is room."""

    @abstractmethod
    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        """A trial that ended; None where none does in about so many seconds."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all that is not done."""


def outcomes(
    executor: Executor,
    calls: Mapping[str, Call],
    store: Store,
    monitor: Monitor,
) -> Iterator[Outcome]:
    """Every trial's outcome, once each; a trial is handed out when those it needs have ended.

    Trials that another run works on are waited for, and done if it leaves them undone. One whose
    worker died is done again when no other is out, if others ran beside it.
    """
    left, out, busy, waited = dict(calls), set[str](), set[str](), False
    alone, deaths = deque[Call](), Counter[str]()
    followers = defaultdict[str, list[Call]](list)
    for call in calls.values():
        for need in call.trial.needs:
            followers[need].append(call)

    def send(some: Iterable[Call]) -> None:
        for call in some:
            if left.keys().isdisjoint(call.trial.needs):
                out.add(call.address)
                executor.submit(call)

    send(calls.values())
    while left:
        if not out and alone:
            send([alone.popleft()])
        elif not out and not waited:
            monitor.waiting(len(busy), holder(store, next(iter(busy))))
            waited = True
        ended = executor.next(_LOOK)
        if ended is None:
            free = next((address for address in busy if not store.in_work(address)), None)
            if free is None:
                continue
            call = calls[free]
            busy.discard(free)
            deaths[free] += store.claim_note(free).get("run") == call.run  # it was a worker of ours
            if deaths[free] < _DEATHS:
                send([call])
                continue
            ended = call, Lost(KILLED)
        call, result = ended
        out.discard(call.address)
        if isinstance(result, Lost):
            if result.failure.error == KILLED.error:
                monitor.killed(1)
            if result.again and not deaths[call.address]:
                deaths[call.address] += 1
                freed(call)
                alone.append(call)
                continue
            result = lost(call, result.failure)
        if result.ending == "busy":
            busy.add(call.address)
            continue
        del left[call.address]
        yield result
        send(followers[call.address])


@final
class Here(Executor):
    """This process: a trial that crashes takes the run with it."""

    def __init__(self) -> None:
        self._calls = deque[Call]()

    def submit(self, call: Call) -> None:
        self._calls.append(call)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        if not self._calls:
            time.sleep(seconds)
            return None
        call = self._calls.popleft()
        return call, work(call)

    def close(self) -> None:
        self._calls.clear()


@final
class Processes(Executor):
    """Child processes; they start when there is work, and stay until `close`.

    How far a trial is, is heard where there is one process. Of several, each has one thread.
    """

    def __init__(self, jobs: int = 1, limit: float | None = None) -> None:
        self._jobs = jobs
        self._limit = limit
        self._words: SimpleQueue[tuple[_Child, str, Any]] = SimpleQueue()
        self._waiting = deque[Call]()
        self._idle: list[_Child] = []
        self._at_work: dict[_Child, Call] = {}

    def submit(self, call: Call) -> None:
        self._waiting.append(call)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        while self._waiting and len(self._at_work) < self._jobs:
            child = self._idle.pop() if self._idle else _Child(self._words, self._jobs > 1)
            self._at_work[child] = self._waiting.popleft()
            child.send(self._at_work[child])
        try:
            child, kind, word = self._words.get(timeout=seconds)
        except Empty:
            return self._overdue()
        if child not in self._at_work:
            if kind == "gone" and child in self._idle:
                child.kill()
                self._idle.remove(child)
        elif kind == "gone":
            return self._dead(child)
        elif kind == "begun":
            child.deadline = time.monotonic() + self._limit if self._limit else None
        elif kind == "step" and self._jobs == 1:
            tell(*word)
        elif kind in ("done", "error"):
            call = self._at_work.pop(child)
            self._idle.append(child)
            if kind == "error":
                raise word
            return call, word
        return self._overdue()

    def close(self) -> None:
        """End all, with whatever they have in hand."""
        for child in (*self._idle, *self._at_work):
            child.kill()
        self._idle.clear()
        self._at_work.clear()

    def _overdue(self) -> tuple[Call, Lost] | None:
        """The first trial whose time is up, or whose process died and left its pipe to another."""
        for child in tuple(self._at_work):
            if child.deadline is not None and time.monotonic() > child.deadline:
                child.kill()
                message = f"it took more than {self._limit:g} s, the trial timeout, and was ended"
                failure = TrialError(error="TrialTimeout", message=message)
                return self._at_work.pop(child), Lost(failure)
            if child.process.poll() is not None:
                child.kill()  # the rest of its group, so that the end of its words is heard
                child.dead += 1
                if child.dead > _PATIENCE:
                    return self._dead(child)
        return None

    def _dead(self, child: _Child) -> tuple[Call, Lost]:
        failure = TrialError(error=KILLED.error, message=child.death())
        return self._at_work.pop(child), Lost(failure, again=self._jobs > 1)


@final
class _Child:
    """One process, as the run sees it."""

    def __init__(self, words: SimpleQueue[Any], one_thread: bool) -> None:
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
        threading.Thread(target=self._listen, args=(words,), daemon=True).start()

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

    def death(self) -> str:
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
        return f"the process that ran this trial {how}"

    def _listen(self, words: SimpleQueue[Any]) -> None:
        """Pass on what it says, until it says no more."""
        pipe = _pipe(self.process.stdout)
        try:
            while True:
                words.put((self, *pickle.load(pipe)))
        except Exception:  # noqa: BLE001 - cut off in a word, or something else wrote there
            words.put((self, "gone", None))
        pipe.close()


def in_time(call: Call, limit: float) -> Outcome:
    """A trial in a child of this thread, which is ended when the time is up, else kept for more."""
    last, processes = getattr(_HERE, "processes", (None, None))
    if processes is None or last != limit:
        if processes is not None:
            processes.close()
        processes = Processes(limit=limit)
        _HERE.processes = limit, processes
    processes.submit(call)
    while (ended := processes.next(_LOOK)) is None:
        pass
    result = ended[1]
    return lost(call, result.failure) if isinstance(result, Lost) else result


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
    last = 0.0

    def say(kind: str, word: Any = None) -> None:
        pickle.dump((kind, word), words)
        words.flush()

    def step(*stage: Any) -> None:
        nonlocal last
        if time.monotonic() - last > _STEP:
            last = time.monotonic()
            say("step", stage)

    while True:
        packed = given.get()
        say("begun")
        try:
            with listening(step):
                outcome = work(pickle.loads(packed))
            say("done", outcome)
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
