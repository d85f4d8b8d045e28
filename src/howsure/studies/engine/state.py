"""What a store holds of a plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

from howsure.core.errors import UnanswerableError
from howsure.studies.engine.plan import Plan
from howsure.studies.engine.store import Store
from howsure.studies.engine.study import Combined, Trial, study_of, trials_of
from howsure.studies.engine.trials import TrialEntry


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every trial of a plan with what the store says of it.

    Attributes
    ----------
    found : tuple of (Trial, TrialEntry)
        In the plan's order; two labels of one thing share an entry.
    at_work : tuple of str
        Addresses of the trials that some process works on now.
    """

    found: tuple[tuple[Trial, TrialEntry], ...]
    at_work: tuple[str, ...]

    @property
    def counts(self) -> Counter[str]:
        """Number of addresses of each status."""
        return Counter({e.address: e.status for _, e in self.found}.values())

    def done(self) -> tuple[Trial, ...]:
        """Trials whose results are there and whole."""
        return tuple(trial for trial, entry in self.found if entry.status == "done")

    def not_done(self) -> tuple[tuple[Trial, TrialEntry], ...]:
        """The others."""
        return tuple((t, e) for t, e in self.found if e.status != "done")


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

    Raises
    ------
    InputError
        If the plan names what is not known.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.studies.engine import load_plan
    >>> survey(load_plan("smoke"), Store(tempfile.mkdtemp())).counts["missing"]
    8
    """
    trials = trials_of(plan)
    entries = store.entries((trial.address for trial in trials), thorough=True)
    waiting = [a for a, entry in entries.items() if entry.status != "done" and store.in_work(a)]
    return Survey(
        found=tuple((trial, entries[trial.address]) for trial in trials),
        at_work=tuple(waiting),
    )


def combined(plan: Plan, found: Survey, store: Store) -> Combined:
    """Results of a plan, from the trials that are done so far.

    Parameters
    ----------
    plan : Plan
        What was to be run.
    found : Survey
        What is done, of `survey`.
    store : Store
        Where results are kept.

    Returns
    -------
    Combined

    Raises
    ------
    UnanswerableError
        If no trial is done.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.studies.engine import load_plan, run
    >>> plan, store = load_plan("smoke"), Store(tempfile.mkdtemp())
    >>> _ = run(plan, store)
    >>> sorted(combined(plan, survey(plan, store), store).results)
    ['fan', 'line']
    """
    done = found.done()
    if not done:
        raise UnanswerableError(f"no trial of plan {plan.name!r} is done in {store.location}")
    return study_of(plan.study).combine(plan, done, store)
