"""One trial, in whatever process: claimed, run, and kept."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, final

from howsure.studies.engine.provenance import provenance
from howsure.studies.engine.store import OutputError, Store
from howsure.studies.engine.study import Trial, study_of
from howsure.studies.engine.trials import TrialEntry, TrialError, TrialOutput

Ending = Literal["done", "failed", "busy", "settled"]
"""Kept a result; kept an error; another process has it; another process has just done it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a trial ended.

    Attributes
    ----------
    address : str
        The trial's address.
    ending : {"done", "failed", "busy", "settled"}
        What happened.
    told : str
        The error in one line, where it failed; who has it, where it is busy.
    failed_parts : int
        Parts that failed and were left out.
    """

    address: str
    ending: Ending
    told: str = ""
    failed_parts: int = 0


def work(
    trial: Trial,
    location: str,
    run: str,
    *,
    retry: bool = False,
    needs: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a trial and keep what it gives, unless another process works on it or did so.

    Parameters
    ----------
    trial : Trial
        What to run.
    location : str
        Where the store is.
    run : str
        A token of the run that this is part of.
    retry : bool
        Whether a trial that failed is run again.
    needs : mapping of str to str
        What the trials that it needs are called, by address.

    Returns
    -------
    Outcome

    Raises
    ------
    InputError
        If the store cannot be written. Whatever the trial itself raises is kept as its failure,
        exits too; a person's interrupt passes.
    """
    store, address = Store(location), trial.address
    note = {"host": platform.node(), "pid": os.getpid(), "run": run}
    with store.claimed(address, note) as mine:
        if not mine:
            return Outcome(address=address, ending="busy", told=holder(store, address))
        entry = store.entry(address, thorough=True)
        if entry.provenance.get("run") == run and entry.status in ("done", "failed"):
            return ended(entry)
        if settled(entry, retry=retry):
            return Outcome(address=address, ending="settled")
        started, clock, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
        found = _lacking(store, needs or {}) or _tried(trial, store)
        spent = time.perf_counter() - clock, time.process_time() - cpu
        made = {**provenance(started, *spent), "run": run}
        now = store.entry(address)
        if now.status == "done" and now.provenance != entry.provenance:
            return Outcome(address=address, ending="settled")  # a claim by files was void
        if isinstance(found, TrialError):
            store.write_failure(address, trial.identity, found, made)
            return ended(store.entry(address))
        try:
            store.write(address, trial.identity, found, made)
        except OutputError as error:
            store.write_failure(address, trial.identity, _told(error), made)
        return ended(store.entry(address))


def ended(entry: TrialEntry) -> Outcome:
    """The ending of a trial that this run has done already, but was not heard of."""
    failure = entry.failure
    return Outcome(
        address=entry.address,
        ending="done" if failure is None else "failed",
        told="" if failure is None else f"{failure.error}: {failure.message}",
        failed_parts=entry.failed_parts,
    )


def settled(entry: TrialEntry, *, retry: bool) -> bool:
    """Whether a trial needs no more work: done, or failed and not to be tried again."""
    if retry and (entry.status == "failed" or entry.failed_parts):
        return False
    return entry.status in ("done", "failed")


def holder(store: Store, address: str) -> str:
    """Who works on a trial, in words."""
    note = store.claim_note(address)
    return f"process {note.get('pid', 'unknown')} on {note.get('host', 'an unknown machine')}"


def _lacking(store: Store, needs: Mapping[str, str]) -> TrialError | None:
    """Why a trial cannot run: the first of those it needs that has no result."""
    for address, title in needs.items():
        entry = store.entry(address)
        if entry.status != "done":
            why = entry.problem
            if entry.failure is not None:
                why = f"{entry.failure.error}: {entry.failure.message}"
            told = f"it needs {title} ({address[:12]}), which is {entry.status}"
            return TrialError(error="NeedError", message=f"{told}: {why}" if why else told)
    return None


def _tried(trial: Trial, store: Store) -> TrialOutput | TrialError:
    try:
        return study_of(trial.study).run(trial, store)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _by_a_person():
            raise
        return _told(error)


def _by_a_person() -> bool:
    """Whether an interrupt may be a Ctrl-C; else the trial raised it on its own."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) != signal.SIG_IGN


def _told(error: BaseException) -> TrialError:
    """An error in words, even where it cannot say its own."""
    told = traceback.TracebackException.from_exception(error)
    return TrialError(error=type(error).__name__, message=str(told), trace="".join(told.format()))
