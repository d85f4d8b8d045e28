"""A run: the trials of a plan that are not done yet, on this machine or on a cluster."""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, final

from howsure.core.errors import InputError
from howsure.core.progress import listening
from howsure.studies.engine.cluster import ClusterCrew
from howsure.studies.engine.crew import Crew
from howsure.studies.engine.plan import Plan
from howsure.studies.engine.store import Store
from howsure.studies.engine.study import Trial, trials_of
from howsure.studies.engine.watcher import Watcher
from howsure.studies.engine.work import settled


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
    jobs: int = 0,
    trial_timeout: float | None = None,
    scheduler: str | None = None,
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
        Processes for the trials; -1 for as many as there are cores. 0 runs them in this process,
        where a trial that crashes takes the run with it. Of several, each has one thread for
        linear algebra and torch.
    trial_timeout : float, optional
        Seconds that a trial may take, the loading of its libraries included. One that takes
        longer is ended and kept as failed. It needs processes, here (`jobs`) or of a scheduler.
    scheduler : str, optional
        Address of a Dask scheduler, as ``tcp://host:8786``, whose workers do the trials in place
        of processes of this machine. They must see the store at the same location.
    retry_failed : bool
        Whether trials that failed, or in which a part failed, are run again.
    watcher : Watcher, optional
        Told how it goes.

    Returns
    -------
    RunSummary
        A trial starts when those that it needs have ended. One that fails is kept with its
        traceback and stops no other than those that need it, which are kept as failed. So is one
        whose process dies; where others ran beside it, it runs again first, alone.

    Raises
    ------
    InputError
        If the plan names what is not known, trials need what the plan does not have or each
        other, the store cannot be written, the scheduler does not answer, or its workers cannot
        work for this run.
    HowsureError
        If the scheduler goes away.
    MissingDependencyError
        If there is a scheduler and Dask is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.studies.engine import load_plan
    >>> plan, store = load_plan("smoke"), Store(tempfile.mkdtemp())
    >>> run(plan, store).done, run(plan, store).done
    (8, 0)
    """
    if type(jobs) is not int or jobs < -1:
        raise InputError(f"jobs must be a whole number of at least 0, or -1, got {jobs!r}")
    if not store.shared and (jobs != 0 or scheduler is not None):
        raise InputError(
            f"a store that other processes share must be a folder or a URL of theirs too, got "
            f"{store.location!r}"
        )
    if scheduler is not None and jobs != 0:
        raise InputError(f"jobs must be left out with a scheduler, got {jobs!r}")
    if trial_timeout is not None:
        if isinstance(trial_timeout, bool) or not 0 < trial_timeout < math.inf:
            raise InputError(f"trial_timeout must be a positive number, got {trial_timeout!r}")
        if scheduler is None and jobs == 0:
            raise InputError("trial_timeout must have processes to end: jobs must not be 0, got 0")
    started = time.perf_counter()
    every = {trial.address: trial for trial in trials_of(plan)}
    _check_needs(every)
    watch = watcher or Watcher()
    store.sweep()
    held = store.entries(every, thorough=True)
    todo = {a: every[a] for a, entry in held.items() if not settled(entry, retry=retry_failed)}
    watch.begin(len(every), len(every) - len(todo))
    common: dict[str, Any] = {
        "store": store,
        "retry": retry_failed,
        "watch": watch,
        "token": secrets.token_hex(8),
        "titles": {address: trial.title for address, trial in every.items()},
        "limit": trial_timeout,
    }
    crew = (
        Crew(jobs=jobs, **common)
        if scheduler is None
        else ClusterCrew(scheduler=scheduler, **common)
    )
    outcomes = []
    listener = None if watcher is None else watcher.within
    with listening(listener), closing(crew.all(todo)) as heard:
        for outcome in heard:
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


def _check_needs(every: Mapping[str, Trial]) -> None:
    """Every need is a trial of the plan, and none comes round to itself."""
    for trial in every.values():
        for need in trial.needs:
            if need not in every:
                raise InputError(
                    f"what a trial needs must be of the same plan: {trial.title!r} needs "
                    f"{need[:12]}, which is not"
                )
    try:
        TopologicalSorter({a: trial.needs for a, trial in every.items()}).prepare()
    except CycleError as error:
        circle = ", ".join(repr(every[a].title) for a in error.args[1])
        raise InputError(f"trials must not need each other, got {circle}") from error
