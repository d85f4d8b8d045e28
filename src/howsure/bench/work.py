"""One trial, in whatever process: claimed, run, and kept."""

from __future__ import annotations

import os
import platform
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, final

from howsure.bench.protocol import Progress, Trial, adapter_of
from howsure.results import Store, TrialEntry, TrialError, TrialOutput, provenance

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
    root: Path,
    run: str,
    *,
    retry: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run a trial and keep what it gives, unless another process works on it or did so.

    Parameters
    ----------
    trial : Trial
        What to run.
    root : Path
        The store's folder.
    run : str
        A token of the run that this is part of.
    retry : bool
        Whether a trial that failed is run again.
    progress : callable, optional
        Called with a stage, the steps done, and the steps in all.

    Returns
    -------
    Outcome

    Raises
    ------
    InputError
        If the store cannot be written. Whatever the trial itself raises is kept as its failure;
        interrupts and exits pass.
    """
    store, address = Store(root), trial.address
    note = {"host": platform.node(), "pid": os.getpid(), "run": run}
    with store.claimed(address, note) as mine:
        if not mine:
            return Outcome(address=address, ending="busy", told=holder(store, address))
        if settled(store.entry(address, thorough=True), retry=retry):
            return Outcome(address=address, ending="settled")
        started, clock = datetime.now(UTC), time.perf_counter()
        found = _tried(trial, progress)
        made = provenance(started, time.perf_counter() - clock)
        if isinstance(found, TrialError):
            store.write_failure(address, trial.identity, found, made)
            told = f"{found.error}: {found.message}"
            return Outcome(address=address, ending="failed", told=told)
        store.write(address, trial.identity, found, made)
        return Outcome(address=address, ending="done", failed_parts=found.failed_parts)


def settled(entry: TrialEntry, *, retry: bool) -> bool:
    """Whether a trial needs no more work: done, or failed and not to be tried again."""
    if retry and (entry.status == "failed" or entry.failed_parts):
        return False
    return entry.status in ("done", "failed")


def holder(store: Store, address: str) -> str:
    """Who works on a trial, in words."""
    note = store.claim_note(address)
    return f"process {note.get('pid', 'unknown')} on {note.get('host', 'an unknown machine')}"


def _tried(trial: Trial, progress: Progress | None) -> TrialOutput | TrialError:
    try:
        return adapter_of(trial.protocol).run(trial, progress)
    except Exception as error:  # noqa: BLE001 - a trial may raise anything, and that is its result
        trace = "".join(traceback.format_exception(error))
        return TrialError(error=type(error).__name__, message=str(error), trace=trace)
