"""Who does a run's trials: one interface, and what is the same wherever they are done.

`outcomes` hands out trials when those that they need have ended, waits for what other runs work
on, and tries a trial again whose worker died. `Here` and `InProcesses` do them on this machine,
`howsure_studies.engine.cluster` on others.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final

from howsure.core.classes import frozen
from howsure.core.workers import Crew, LostWorker, Processes, RaisedError
from howsure_studies.engine.store import Store, TrialError
from howsure_studies.engine.study import Trial
from howsure_studies.engine.trials import Call, Outcome, freed, holder, lost, work

_LOOK: Final = 0.5  # seconds between looks at what says nothing
_DEATHS: Final = 3  # of workers at one trial
KILLED: Final = TrialError(
    error="WorkerDied",
    message="every worker that ran this trial was lost, possibly because of too little memory",
)

_HERE: Final = threading.local()  # of each thread of a cluster's worker


class RunListener:
    """Hears how a run goes; this one does nothing with it."""

    def sources(self, words: str) -> None:
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
@frozen
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
    monitor: RunListener,
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


class OfCrew(Executor):
    """What a crew does."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    def submit(self, call: Call) -> None:
        self.crew.submit(call, work, call)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        ended = self.crew.next(seconds)
        if ended is None:
            return None
        call, result = ended
        if isinstance(result, RaisedError):
            raise self.refusal(result.error)
        return call, self.failed(result) if isinstance(result, LostWorker) else result

    def close(self) -> None:
        self.crew.close()

    def refusal(self, error: BaseException) -> BaseException:
        """What to raise where a worker could not begin a trial."""
        return error

    def failed(self, lost: LostWorker) -> Lost:
        """What is kept of a trial whose worker was lost."""
        message = f"the process that ran this trial {lost.words}" if lost.words else KILLED.message
        return Lost(TrialError(error=KILLED.error, message=message), again=lost.beside)


@final
class InProcesses(OfCrew):
    """Child processes of this machine, where a trial may have a time limit."""

    def __init__(self, jobs: int = 1, limit: float | None = None) -> None:
        super().__init__(Processes(jobs, limit))
        self._limit = limit

    def failed(self, lost: LostWorker) -> Lost:
        if not lost.overdue:
            return super().failed(lost)
        message = f"it took more than {self._limit:g} s, the trial timeout, and was stopped"
        return Lost(TrialError(error="TrialTimeout", message=message))


def in_time(call: Call, limit: float) -> Outcome:
    """A trial in a child of this thread, which is ended when the time is up, else kept for more."""
    last, processes = getattr(_HERE, "processes", (None, None))
    if processes is None or last != limit:
        if processes is not None:
            processes.close()
        processes = InProcesses(limit=limit)
        _HERE.processes = limit, processes
    processes.submit(call)
    while (ended := processes.next(_LOOK)) is None:
        pass
    result = ended[1]
    return lost(call, result.failure) if isinstance(result, Lost) else result
