"""A run of a plan's trials that are not done yet, and what a store holds of a plan."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, final

from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import subscribe
from howsure.core.registry import NotImportedError, importing_nothing
from howsure_studies.engine.cluster import OnCluster
from howsure_studies.engine.executor import Executor, Here, InProcesses, RunListener, outcomes
from howsure_studies.engine.plan import Plan
from howsure_studies.engine.shipped import shipped, shipped_by_name
from howsure_studies.engine.store import Store, TrialEntry
from howsure_studies.engine.study import (
    Combined,
    Group,
    Trial,
    grouped,
    needed_by,
    sources_of,
    study_of,
    trials_of,
)
from howsure_studies.engine.trials import Call, settled


@final
@frozen(kw_only=True)
class RunSummary:
    """What a run did.

    Attributes
    ----------
    trials : int
        Trials of the plan, or those that the results asked for need.
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
    results: Collection[Group] | None = None,
    monitor: RunListener | None = None,
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
    results : collection of (str, str, int), optional
        World, method and seed of the results that are asked for, as the plan calls them. Trials
        that none of them needs are left out.
    monitor : Monitor, optional
        Hears how it goes.

    Returns
    -------
    RunSummary
        A trial starts when those that it needs have ended. One that fails is kept with its
        traceback and stops no other than those that need it, which are kept as failed. So is one
        whose process dies; where others ran beside it, it runs again first, alone.

    Raises
    ------
    InputError
        If the plan names what is not known, results are asked for that it does not have, trials
        need what the plan does not have or each other, the store cannot be written, the scheduler
        does not answer, or its workers cannot work for this run.
    HowsureError
        If the scheduler goes away.
    MissingDependencyError
        If there is a scheduler and Dask is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from howsure_studies.engine import load_plan
    >>> plan, store = load_plan("smoke"), Store(tempfile.mkdtemp())
    >>> run(plan, store).done, run(plan, store).done
    (8, 0)
    """
    if type(jobs) is not int or jobs < -1:
        raise InputError(f"jobs must be a whole number of at least 0, or -1, got {jobs!r}")
    if not store.shared and (jobs != 0 or scheduler is not None):
        raise InputError(
            "a store shared with other processes must be a folder or URL that they can use, got "
            f"{store.location!r}"
        )
    if scheduler is not None and jobs != 0:
        raise InputError(f"jobs must be left out with a scheduler, got {jobs!r}")
    if trial_timeout is not None:
        if isinstance(trial_timeout, bool) or not 0 < trial_timeout < math.inf:
            raise InputError(f"trial_timeout must be a positive number, got {trial_timeout!r}")
        if scheduler is None and jobs == 0:
            raise InputError("trial_timeout needs worker processes: jobs must not be 0, got 0")
    started = time.perf_counter()
    trials = trials_of(plan)
    every = {trial.address: trial for trial in trials}
    _check_needs(every)
    if results is not None:
        groups = grouped(trials)
        for key in results:
            if key not in groups:
                raise InputError(f"results must be of plan {plan.name!r}, got {key!r}")
        wanted = set(needed_by((trial for key in results for trial in groups[key]), every))
        every = {address: trial for address, trial in every.items() if address in wanted}
    sources = sources_of(every.values())
    listener, monitor = (None, RunListener()) if monitor is None else (monitor.within, monitor)
    if sources:
        monitor.sources(sources)
    store.sweep()
    if any(":" in text for text in _texts([plan.worlds, plan.methods, plan.options])):
        store.keep_plan(_plan_address(plan), [asdict(trial) for trial in trials])
    entries = store.entries(every, thorough=True)
    todo = [a for a, entry in entries.items() if not settled(entry, retry=retry_failed)]
    monitor.begin(len(every), len(every) - len(todo))
    token = secrets.token_hex(8)
    calls = {
        address: Call(
            trial=every[address],
            location=store.location,
            run=token,
            retry=retry_failed,
            needs={need: every[need].title for need in every[address].needs},
        )
        for address in todo
    }
    endings, failed_parts = Counter[str](), 0
    with ExitStack() as opened:
        if calls:
            executor = _executor(jobs, scheduler, store, token, monitor, trial_timeout)
            opened.enter_context(closing(executor))
            opened.enter_context(subscribe(listener))
            for outcome in outcomes(executor, calls, store, monitor):
                monitor.ended(every[outcome.address], outcome)
                endings[outcome.ending] += 1
                failed_parts += outcome.failed_parts
    return RunSummary(
        trials=len(every),
        skipped=len(every) - endings["done"] - endings["failed"],
        done=endings["done"],
        failed=endings["failed"],
        failed_before=sum(entries[a].status == "failed" for a in entries.keys() - calls.keys()),
        failed_parts=failed_parts,
        seconds=time.perf_counter() - started,
    )


def _executor(
    jobs: int,
    scheduler: str | None,
    store: Store,
    token: str,
    monitor: RunListener,
    limit: float | None,
) -> Executor:
    if scheduler is not None:
        return OnCluster(scheduler, store, token, monitor, limit)
    if jobs == 0:
        return Here()
    if jobs == -1:
        from joblib import cpu_count

        jobs = cpu_count()
    return InProcesses(jobs, limit)


def _check_needs(every: Mapping[str, Trial]) -> None:
    """Every need is a trial of the plan, and none comes round to itself."""
    for trial in every.values():
        for need in trial.needs:
            if need not in every:
                raise InputError(
                    f"a trial can only need trials of the same plan: {trial.title!r} needs "
                    f"{need[:12]}, which is not"
                )
    try:
        TopologicalSorter({a: trial.needs for a, trial in every.items()}).prepare()
    except CycleError as error:
        circle = ", ".join(repr(every[a].title) for a in error.args[1])
        raise InputError(f"trials must not need each other, got {circle}") from error


@final
@frozen(kw_only=True)
class Survey:
    """Every trial of a plan with what the store says of it.

    Attributes
    ----------
    entries : tuple of (Trial, TrialEntry)
        In the plan's order; two labels of one thing share an entry.
    at_work : tuple of str
        Addresses of the trials that some process works on now.
    as_run : bool
        Whether trials are those of the plan's last run, as it names code that was not loaded.
    """

    entries: tuple[tuple[Trial, TrialEntry], ...]
    at_work: tuple[str, ...]
    as_run: bool = False

    @property
    def counts(self) -> Counter[str]:
        """Number of addresses of each status."""
        return Counter({e.address: e.status for _, e in self.entries}.values())

    def done(self) -> tuple[Trial, ...]:
        """Trials whose results are there and whole."""
        return tuple(trial for trial, entry in self.entries if entry.status == "done")

    def not_done(self) -> tuple[tuple[Trial, TrialEntry], ...]:
        """The others."""
        return tuple((t, e) for t, e in self.entries if e.status != "done")


def survey(plan: Plan, store: Store) -> Survey:
    """Look up every trial of a plan; files on a disk are compared with their hashes.

    Parameters
    ----------
    plan : Plan
        What was to be run.
    store : Store
        Where results are kept.

    Returns
    -------
    Survey
        No module that the plan names is imported for it: where one is needed to know what the
        trials are, they are those of the last run of the same plan.

    Raises
    ------
    InputError
        If the plan names what is not known.
    UnanswerableError
        If the plan names a module that is not imported yet, and was not run as it stands.

    Examples
    --------
    >>> import tempfile
    >>> from howsure_studies.engine import load_plan
    >>> survey(load_plan("smoke"), Store(tempfile.mkdtemp())).counts["missing"]
    8
    """
    trials, as_run = _trials_seen(plan, store)
    entries = store.entries((trial.address for trial in trials), thorough=True)
    waiting = [a for a, entry in entries.items() if entry.status != "done" and store.in_work(a)]
    return Survey(
        entries=tuple((trial, entries[trial.address]) for trial in trials),
        at_work=tuple(waiting),
        as_run=as_run,
    )


def _trials_seen(plan: Plan, store: Store) -> tuple[tuple[Trial, ...], bool]:
    """The trials of a plan without running its code, and whether they are those of a run."""
    try:
        with importing_nothing():
            return trials_of(plan), False
    except NotImportedError as error:
        kept = store.kept_plan(_plan_address(plan))
        if kept is None:
            raise UnanswerableError(
                f"plan {plan.name!r} was not run in {store.location} in its current form: only "
                f"howsure bench run loads its code ({error})"
            ) from error
        return tuple(Trial(**{**fields, "needs": tuple(fields["needs"])}) for fields in kept), True


def _plan_address(plan: Plan) -> str:
    """What stands for the words of a plan and the bytes of the tables that it names."""
    tables = {
        text: hashlib.sha256(Path(plan.folder, text).read_bytes()).hexdigest()
        for text in _texts(plan.worlds)
        if os.path.isfile(os.path.join(plan.folder, text))
    }
    version = study_of(plan.study).version
    words = [plan.study, version, plan.worlds, plan.methods, plan.options, plan.seeds, tables]
    return hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()


def _texts(value: Any) -> Iterator[str]:
    """All texts within plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def combined(plan: Plan, survey: Survey, store: Store, *, absent: Collection[str] = ()) -> Combined:
    """Results of a plan, from the trials that are done so far and from results that ship with it.

    Parameters
    ----------
    plan : Plan
        What was to be run.
    survey : Survey
        What is done, of `survey`.
    store : Store
        Where results are kept.
    absent : collection of str
        Methods of the plan whose trials the survey lacks, as their libraries are not here: what
        ships of them is told by name.

    Returns
    -------
    Combined
        A method's results on a world ship with the plan or are the store's: the latter where all
        of its trials are done here.

    Raises
    ------
    UnanswerableError
        If there is no result.

    Examples
    --------
    >>> import tempfile
    >>> from howsure_studies.engine import load_plan, run
    >>> plan, store = load_plan("smoke"), Store(tempfile.mkdtemp())
    >>> _ = run(plan, store)
    >>> sorted(combined(plan, survey(plan, store), store).results)
    ['fan', 'line']
    """
    undone = {trial.address for trial, _ in survey.not_done()}
    groups = grouped(trial for trial, _ in survey.entries)
    left = {
        key: trials
        for key, trials in groups.items()
        if any(trial.address in undone for trial in trials)
    }
    there = shipped(plan, left) if left else None
    lent = {} if there is None else there.results
    study = study_of(plan.study)
    results: dict[Group, Sequence[Any]] = {}
    for key, trials in groups.items():
        done = [trial for trial in trials if trial.address not in undone]
        if key in lent:
            results[key] = lent[key]
        elif done and (own := study.read(plan, done, store)):
            results[key] = own
    named = shipped_by_name(plan, absent) if absent else None
    if named is not None:
        results |= named.results
    if not results:
        if not survey.counts["done"]:
            raise UnanswerableError(f"no trial of plan {plan.name!r} is done in {store.location}")
        raise UnanswerableError(
            f"no result of plan {plan.name!r} is complete yet: {survey.counts['done']} of "
            f"{survey.counts.total()} trials are done in {store.location}"
        )
    sources = sources_of(trial for trial, _ in survey.entries)
    facts = {"Data": sources} if sources else {}
    # trials that others only need are not missed where all results ship
    every = {trial.address: trial for trial, _ in survey.entries}
    short = {a for key, own in left.items() if key not in lent for a in needed_by(own, every)}
    return replace(
        study.combine(plan, results),
        facts={**facts, **{k: v for each in (named, there) if each for k, v in each.facts.items()}},
        missing=len(short & undone),
    )
