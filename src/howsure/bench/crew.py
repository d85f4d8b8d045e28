"""Those who do the work of a run on this machine."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, final

from howsure.bench.protocol import Trial
from howsure.bench.watcher import Watcher
from howsure.bench.work import Outcome, holder, work
from howsure.core.errors import HowsureError
from howsure.results import Store, TrialError

_WAIT: Final = 0.2  # seconds between looks at what another run works on

_PATIENCE: Final = 3  # deaths of workers in a row that end no trial
_KILLED: Final = TrialError(
    error="WorkerKilled",
    message="the process that ran this trial alone was killed, perhaps for want of memory",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """This process, or worker processes of this machine.

    Attributes
    ----------
    store : Store
        Where results are kept.
    jobs : int
        Processes; -1 for as many as there are cores.
    retry : bool
        Whether trials that failed are run again.
    watch : Watcher
        Told how it goes.
    token : str
        Of this run.
    titles : mapping of str to str
        What every trial of the plan is called, by address.
    """

    store: Store
    jobs: int
    retry: bool
    watch: Watcher
    token: str
    titles: Mapping[str, str]

    def all(self, todo: Mapping[str, Trial]) -> Generator[Outcome, None, None]:
        """Every trial's ending, once each; a trial comes after those that it needs.

        Trials that another run works on are waited for, and done if it leaves them undone.
        """
        left, busy = dict(todo), set[str]()
        waits = False
        while left:
            ready = [t for a, t in left.items() if self._ready(t, left, a in busy)]
            if not ready:
                if not waits:
                    self.watch.waiting(len(busy), holder(self.store, next(iter(busy))))
                waits = True
                time.sleep(_WAIT)
            for outcome in self._pass(ready):
                if outcome.ending == "busy":
                    busy.add(outcome.address)
                else:
                    busy.discard(outcome.address)
                    del left[outcome.address]
                    yield outcome

    def _ready(self, trial: Trial, left: Mapping[str, Trial], busy: bool) -> bool:
        if not left.keys().isdisjoint(trial.needs):
            return False
        return not (busy and self.store.in_work(trial.address))

    def _work(self, trial: Trial) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What `work` is called with."""
        needs = {address: self.titles[address] for address in trial.needs}
        given = (trial, self.store.location, self.token)
        return given, {"retry": self.retry, "needs": needs}

    def _pass(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Try each trial once, here or in workers."""
        if self.jobs == 1:
            for trial in trials:
                given, options = self._work(trial)
                yield work(*given, **options, progress=self.watch.within)
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
            self.store.disclaim(address)
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
        tasks = (call(*given, **options) for given, options in map(self._work, trials))
        with closing(crew(tasks)) as outcomes:
            yield from outcomes
