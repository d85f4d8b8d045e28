"""Those who do the work of a run on this machine."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, final

from howsure.studies.engine.child import Call, Children, Lost, kept_as_lost, let_go
from howsure.studies.engine.store import Store
from howsure.studies.engine.study import Trial
from howsure.studies.engine.watcher import Watcher
from howsure.studies.engine.work import Outcome, holder, work

_WAIT: Final = 0.2  # seconds between looks at what another run works on


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """This process, or child processes of it.

    Attributes
    ----------
    store : Store
        Where results are kept.
    jobs : int
        Child processes; 0 for this process, -1 for as many children as there are cores.
    retry : bool
        Whether trials that failed are run again.
    watch : Watcher
        Told how it goes.
    token : str
        Of this run.
    titles : mapping of str to str
        What every trial of the plan is called, by address.
    limit : float or None
        Seconds that a trial may take.
    """

    store: Store
    jobs: int
    retry: bool
    watch: Watcher
    token: str
    titles: Mapping[str, str]
    limit: float | None

    def all(self, todo: Mapping[str, Trial]) -> Generator[Outcome, None, None]:
        """Every trial's ending, once each; a trial comes after those that it needs.

        Trials that another run works on are waited for, and done if it leaves them undone.
        """
        left, busy = dict(todo), set[str]()
        waits, children = False, Children(limit=self.limit, alone=self.jobs == 1)
        with closing(children):
            while left:
                ready = [t for a, t in left.items() if self._ready(t, left, a in busy)]
                if not ready:
                    if not waits:
                        self.watch.waiting(len(busy), holder(self.store, next(iter(busy))))
                    waits = True
                    time.sleep(_WAIT)
                for outcome in self._pass(ready, children):
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

    def _call(self, trial: Trial) -> Call:
        """What `work` is called with."""
        needs = {address: self.titles[address] for address in trial.needs}
        given = (trial, self.store.location, self.token)
        return given, {"retry": self.retry, "needs": needs}

    def _pass(self, trials: Sequence[Trial], children: Children) -> Iterator[Outcome]:
        """Try each trial once, here or in children; one whose child died runs again, alone."""
        calls = {trial.address: self._call(trial) for trial in trials}
        if self.jobs == 0:
            for given, options in calls.values():
                yield work(*given, **options)
            return
        jobs = self.jobs
        if jobs == -1:
            from joblib import cpu_count

            jobs = cpu_count()
        for at_once in (jobs, 1):
            again: dict[str, Call] = {}
            for address, found in children.all(calls, at_once):
                if not isinstance(found, Lost):
                    yield found
                elif at_once > 1 and found.died:
                    self.watch.killed(1)
                    let_go(self.store, calls[address])
                    again[address] = calls[address]
                else:
                    yield kept_as_lost(self.store, calls[address], found)
            calls = again
