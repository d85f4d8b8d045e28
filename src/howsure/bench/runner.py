"""A run: the trials of a plan that are not done yet, on this machine's processes."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, final

from howsure.bench.plan import Plan
from howsure.bench.protocol import Trial, trials_of
from howsure.bench.work import Outcome, holder, settled, work
from howsure.core.errors import HowsureError, InputError
from howsure.results import Store, TrialError

_WAIT: Final = 0.2  # seconds between looks at what another run works on

_PATIENCE: Final = 3  # deaths of workers in a row that end no trial
_KILLED: Final = TrialError(
    error="WorkerKilled",
    message="the process that ran this trial alone was killed, perhaps for want of memory",
)


class Watcher:
    """Told how a run goes; this one does nothing with it."""

    def begin(self, trials: int, settled: int) -> None:
        """So many trials, of which so many need no work."""

    def within(self, stage: str, done: int, total: int) -> None:
        """Steps of the trial at hand; told only of trials that run in this process."""

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """A trial ended."""

    def waiting(self, trials: int, whom: str) -> None:
        """Nothing is left but so many trials that another run works on."""

    def killed(self, trials: int) -> None:
        """A worker was killed; so many trials that may have been the cause run one by one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did.

    Attributes
    ----------
    trials : int
        Trials of the plan.
    skipped : int
        Those that needed no work, or that another run did meanwhile.
    done, failed : int
        Those that this run did, and that failed.
    failed_before : int
        Those of `skipped` that failed in an earlier run.
    failed_parts : int
        Parts that failed in those done.
    seconds : float
        By the wall clock.
    """

    trials: int
    skipped: int
    done: int
    failed: int
    failed_before: int
    failed_parts: int
    seconds: float


def run(
    plan: Plan,
    store: Store,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
) -> RunSummary:
    """Run the trials of a plan that are not in the store; what is done is left alone.

    Parameters
    ----------
    plan : Plan
        What to run.
    store : Store
        Where results are kept. Several runs may share one: each trial is done by one of them.
    jobs : int
        Processes; each has one thread for linear algebra and torch. One runs in this process,
        and -1 stands for as many as there are cores.
    retry_failed : bool
        Whether trials that failed, or in which a part failed, are run again.
    watcher : Watcher, optional
        Told how it goes.

    Returns
    -------
    RunSummary
        A trial that fails is kept with its traceback and stops no other. Where a worker process
        is killed, the trials it may have been killed for run again, each alone; one that is
        killed again is kept as failed.

    Raises
    ------
    InputError
        If the plan names what is not known, or the store cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.bench import load_plan
    >>> plan, store = load_plan("smoke"), Store(tempfile.mkdtemp())
    >>> run(plan, store).done, run(plan, store).done
    (8, 0)
    """
    if type(jobs) is not int or (jobs < 1 and jobs != -1):
        raise InputError(f"jobs must be a whole number of at least 1, or -1, got {jobs!r}")
    started = time.perf_counter()
    every = {trial.address: trial for trial in trials_of(plan)}
    watch = watcher or Watcher()
    held = {address: store.entry(address, thorough=True) for address in every}
    todo = {a: every[a] for a, entry in held.items() if not settled(entry, retry=retry_failed)}
    watch.begin(len(every), len(every) - len(todo))
    crew = _Crew(store=store, jobs=jobs, retry=retry_failed, watch=watch)
    outcomes = []
    for outcome in crew.all(todo):
        watch.ended(todo[outcome.address], outcome)
        outcomes.append(outcome)
    endings = Counter(outcome.ending for outcome in outcomes)
    return RunSummary(
        trials=len(every),
        skipped=len(every) - endings["done"] - endings["failed"],
        done=endings["done"],
        failed=endings["failed"],
        failed_before=sum(held[a].status == "failed" for a in held.keys() - todo.keys()),
        failed_parts=sum(outcome.failed_parts for outcome in outcomes),
        seconds=time.perf_counter() - started,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Crew:
    """Those who do the work of one run."""

    store: Store
    jobs: int
    retry: bool
    watch: Watcher
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def all(self, todo: Mapping[str, Trial]) -> Iterator[Outcome]:
        """Every trial's ending, once each."""
        busy: dict[str, Trial] = {}
        for outcome in self._pass(list(todo.values())):
            if outcome.ending == "busy":
                busy[outcome.address] = todo[outcome.address]
            else:
                yield outcome
        yield from self._after_others(busy)

    def _after_others(self, busy: dict[str, Trial]) -> Iterator[Outcome]:
        """Wait for the trials that another run works on, and do those it leaves undone."""
        if busy:
            self.watch.waiting(len(busy), holder(self.store, next(iter(busy))))
        while busy:
            free = [t for address, t in busy.items() if not self.store.in_work(address)]
            for outcome in self._pass(free):
                if outcome.ending != "busy":
                    del busy[outcome.address]
                    yield outcome
            if busy:
                time.sleep(_WAIT)

    def _pass(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Try each trial once, here or in workers."""
        if self.jobs == 1:
            for trial in trials:
                yield work(
                    trial,
                    self.store.root,
                    self.token,
                    retry=self.retry,
                    progress=self.watch.within,
                )
            return
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left, barren = {trial.address: trial for trial in trials}, 0
        while left:
            try:
                for outcome in self._in_workers(list(left.values()), self.jobs):
                    barren = 0
                    del left[outcome.address]
                    yield outcome
            except TerminatedWorkerError as error:
                barren += 1
                if barren > _PATIENCE:
                    told = f"worker processes are killed before they begin a trial: {error}"
                    raise HowsureError(told) from error
                for outcome in self._after_a_death(dict(left)):
                    barren = 0
                    del left[outcome.address]
                    yield outcome

    def _after_a_death(self, left: Mapping[str, Trial]) -> Iterator[Outcome]:
        """Tell what was done before a worker was killed; run alone what it may have died of."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        begun = [address for address in left if self._begun(address)]
        self.watch.killed(len(begun))
        for address in left.keys() - begun:
            if self.store.entry(address).status == "done":
                yield Outcome(address=address, ending="done")
        for address in begun:
            try:
                yield from self._in_workers([left[address]], 2)
            except TerminatedWorkerError:
                self.store.write_failure(address, left[address].identity, _KILLED)
                told = f"{_KILLED.error}: {_KILLED.message}"
                yield Outcome(address=address, ending="failed", told=told)

    def _begun(self, address: str) -> bool:
        """Whether a worker of this run began a trial and did not end it."""
        return self.store.claim_note(address).get("run") == self.token

    def _in_workers(self, trials: Sequence[Trial], jobs: int) -> Iterator[Outcome]:
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            crew = Parallel(return_as="generator_unordered")
        call = delayed(work)
        tasks = (call(t, self.store.root, self.token, retry=self.retry) for t in trials)
        with closing(crew(tasks)) as outcomes:
            yield from outcomes
