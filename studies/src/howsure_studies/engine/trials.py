"""One trial, in whatever process: claimed, run, and kept."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final, Literal, final

from howsure._version import __version__
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, cut_text
from howsure_studies.engine.store import OutputError, Store, TrialEntry, TrialError, TrialOutput
from howsure_studies.engine.study import Trial, study_of

Ending = Literal["done", "failed", "busy", "settled"]
"""Kept a result; kept an error; another process has it; another process has just done it."""

_LIBRARIES: Final = ("numpy", "scipy", "sklearn", "torch")
_FREE: Final = 5.0  # seconds in which the claim of a dead process ends
_LOOK: Final = 0.05  # seconds between looks at it


@final
@frozen(kw_only=True)
class Outcome:
    """How a trial ended.

    Attributes
    ----------
    address : str
        The trial's address.
    ending : {"done", "failed", "busy", "settled"}
        What happened.
    message : str
        The error in one line, where it failed; who has it, where it is busy.
    failed_parts : int
        Parts that failed and were left out.
    """

    address: str
    ending: Ending
    message: str = ""
    failed_parts: int = 0


@final
@frozen(kw_only=True)
class Call:
    """What a worker is asked to do: one trial of a run, for the store at a location.

    `run` is the token of the run, `retry` whether a trial that failed is run again, and `needs`
    tells by address what the trials that it needs are called.
    """

    trial: Trial
    location: str
    run: str
    retry: bool = False
    needs: Mapping[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The trial's address."""
        return self.trial.address


def work(call: Call) -> Outcome:
    """Run a trial and keep what it gives, unless another process works on it or did so.

    Whatever the trial raises is kept as its failure, exits too; a person's interrupt passes.
    """
    trial, run, retry = call.trial, call.run, call.retry
    store, address = Store(call.location), trial.address
    note = {"host": platform.node(), "pid": os.getpid(), "run": run}
    with store.claimed(address, note) as mine:
        if not mine:
            return Outcome(address=address, ending="busy", message=holder(store, address))
        entry = store.entry(address, thorough=True)
        if entry.provenance.get("run") == run and entry.status in ("done", "failed"):
            return ended(entry)
        if settled(entry, retry=retry):
            return Outcome(address=address, ending="settled")
        started, clock, cpu = datetime.now(UTC), time.perf_counter(), time.process_time()
        result = _lacking(store, call.needs) or _tried(trial, store)
        spent = time.perf_counter() - clock, time.process_time() - cpu
        made = {**provenance(started, *spent), "run": run}
        now = store.entry(address)
        if now.status == "done" and now.provenance != entry.provenance:
            return Outcome(address=address, ending="settled")  # a claim by files was void
        if isinstance(result, TrialError):
            store.write_failure(address, trial.identity, result, made)
            return ended(store.entry(address))
        try:
            store.write(address, trial.identity, result, made)
        except OutputError as error:
            store.write_failure(address, trial.identity, _failure(error), made)
        return ended(store.entry(address))


def freed(call: Call) -> Store:
    """The store, when the claim of a process of this run that is dead has ended in it."""
    store, address, until = Store(call.location), call.address, time.monotonic() + _FREE
    if store.claim_note(address).get("run") == call.run:
        store.disclaim(address)
    while store.claim_note(address).get("run") == call.run and store.in_work(address):
        if time.monotonic() > until:
            break  # something that it started outlives it, and has its lock
        time.sleep(_LOOK)
    return store


def lost(call: Call, failure: TrialError) -> Outcome:
    """Keep a trial as failed whose process is dead, unless its result is there."""
    store, address = freed(call), call.address
    with store.claimed(address, {"run": call.run}) as mine:
        if not mine and store.claim_note(address).get("run") != call.run:
            return Outcome(address=address, ending="busy", message=holder(store, address))
        entry = store.entry(address)
        if entry.provenance.get("run") != call.run or entry.status not in ("done", "failed"):
            store.write_failure(address, call.trial.identity, failure, {"run": call.run})
            entry = store.entry(address)
        return ended(entry)


def ended(entry: TrialEntry) -> Outcome:
    """The ending of a trial that this run has done already, but was not heard of."""
    failure = entry.failure
    return Outcome(
        address=entry.address,
        ending="done" if failure is None else "failed",
        message="" if failure is None else f"{failure.error}: {failure.message}",
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


def provenance(started: datetime, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """Versions, machine, start and duration, as plain values.

    Parameters
    ----------
    started : datetime
        When the work began, with a time zone.
    seconds : float
        How long it took, by the wall clock.
    cpu_seconds : float
        What its process used of the processor meanwhile: on a busy machine, less.

    Returns
    -------
    dict
        Libraries are those that this process has loaded.

    Examples
    --------
    >>> provenance(datetime(2026, 1, 1, tzinfo=UTC), 1.5, 1.4)["started"]
    '2026-01-01T00:00:00+00:00'
    """
    loaded = {name: sys.modules[name] for name in _LIBRARIES if name in sys.modules}
    return {
        "howsure": __version__,
        "python": platform.python_version(),
        "libraries": {name: str(module.__version__) for name, module in loaded.items()},
        "platform": platform.platform(),
        "host": platform.node(),
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
    }


def _lacking(store: Store, needs: Mapping[str, str]) -> TrialError | None:
    """Why a trial cannot run: the first of those it needs that has no result."""
    for address, title in needs.items():
        entry = store.entry(address)
        if entry.status != "done":
            why = entry.problem
            if entry.failure is not None:
                why = f"{entry.failure.error}: {entry.failure.message}"
            message = f"it needs {title} ({address[:12]}), which is {entry.status}"
            return TrialError(error="NeedError", message=f"{message}: {why}" if why else message)
    return None


def _tried(trial: Trial, store: Store) -> TrialOutput | TrialError:
    try:
        return study_of(trial.study).run(trial, store)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _by_a_person():
            raise
        return _failure(error)


def _by_a_person() -> bool:
    """Whether an interrupt may be a Ctrl-C; else the trial raised it on its own."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) != signal.SIG_IGN


def _failure(error: BaseException) -> TrialError:
    return TrialError(**kept_error(error))


def kept_error(error: BaseException) -> dict[str, str]:
    """What is kept of an error of somebody else's: class, message and traceback, none endless."""
    most = 2_000 if isinstance(error, HowsureError) else 1_000  # ours may hold one of others
    told = traceback.TracebackException.from_exception(error)
    trace = "".join(cut_text(line, most) for line in told.format())
    return {
        "error": cut_text(type(error).__name__),
        "message": cut_text(str(told), most),
        "trace": cut_text(trace, 20_000),
    }
