"""Trials in processes of their own: what dies, leaves or hangs ends alone."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howsure.core.errors import InputError
from howsure_studies.engine import (
    OutputError,
    Plan,
    Store,
    TrialError,
    TrialOutput,
    run,
    survey,
    trials_of,
)
from howsure_studies.engine.trials import Call, lost
from pace import slowness

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")

WRONG = {
    "error": "UnanswerableError: all 2 simulations failed; the first in fit: RuntimeError: no",
    "exit": "SystemExit: 3",
    "exit 0": "SystemExit: 0",
    "interrupt": "KeyboardInterrupt: ",
    "base": "BaseException: odd",
    "unspeakable": "UnanswerableError: all 2 simulations failed; the first in fit: "
    "UnspeakableError",
    "status": "WorkerDied: the process that ran this trial exited with status 7",
    "abort": "WorkerDied: the process that ran this trial was terminated by SIGABRT",
    "segfault": "WorkerDied: the process that ran this trial was terminated by SIGSEGV",
    "rows": "UnanswerableError: all 2 simulations failed; the first in intervals: InputError: "
    "prediction intervals must have 5 rows, got 4",
    "none": "UnanswerableError: all 2 simulations failed; the first in intervals: AttributeError",
}


def plan(*kinds: str) -> Plan:
    methods: dict[str, Any] = {k: {"method": "engine.guilty:Bad", "how": k} for k in kinds}
    return Plan(
        name="test",
        study="pointwise",
        worlds={"line": "linear"},
        methods={
            **methods,
            "good": "linear_t",
            "odd": {"method": "engine.guilty:Bad", "how": "-"},
        },
        options={"coverages": [0.9], "simulations": 2, "block": 2, "n_train": 12, "n_test": 5},
    )


def wait(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def failures(made: Plan, store: Store) -> dict[str, str]:
    found = {}
    for trial, entry in survey(made, store).entries:
        if entry.failure is not None:
            found[trial.labels["method"]] = f"{entry.failure.error}: {entry.failure.message}"
    return found


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.rate
def test_whatever_a_method_does_it_fails_alone(tmp_path: Path, jobs: int) -> None:
    made, store = plan(*WRONG), Store(tmp_path / "store")
    summary = run(made, store, jobs=jobs)
    assert (summary.failed, summary.done) == (len(WRONG), 2)
    told = failures(made, store)
    assert told.keys() == WRONG.keys()
    for kind, words in WRONG.items():
        assert told[kind].startswith(words)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.rate
def test_a_trial_that_hangs_is_ended(tmp_path: Path, jobs: int) -> None:
    """So is what it has started, which holds the lock of its claim."""
    made, store = plan("hang"), Store(tmp_path / "store")
    limit = math.ceil(8 * slowness())  # in which the others are done
    summary = run(made, store, jobs=jobs, trial_timeout=limit)
    assert (summary.failed, summary.done) == (1, 2)
    words = f"TrialTimeout: it took more than {limit} s, the trial timeout, and was stopped"
    assert failures(made, store) == {"hang": words}
    assert not any(store.in_work(trial.address) for trial in trials_of(made))


@pytest.mark.parametrize("limit", [0, -1.0, math.inf, math.nan, True])
def test_bad_limits_are_refused(tmp_path: Path, limit: float) -> None:
    with pytest.raises(InputError, match=f"trial_timeout must be a positive number, got {limit!r}"):
        run(plan(), Store(tmp_path), jobs=1, trial_timeout=limit)


def test_a_limit_needs_processes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="jobs must not be 0, got 0"):
        run(plan(), Store(tmp_path), trial_timeout=1.0)


def test_when_a_run_is_killed_its_children_end(tmp_path: Path) -> None:
    """Even one that hangs, and what it has started."""
    code = (
        "import sys\nfrom engine.test_children import plan\n"
        "from howsure_studies.engine import run\n"
        "from howsure_studies.engine import Store\nrun(plan('hang'), Store(sys.argv[1]), jobs=2)\n"
    )
    store, path = Store(tmp_path / "store"), os.pathsep.join(sys.path)
    hanging = trials_of(plan("hang"))[0].address
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store.root)], env={**os.environ, "PYTHONPATH": path}
    ) as running:
        wait(lambda: store.in_work(hanging))
        running.kill()
    wait(lambda: not store.in_work(hanging))
    assert survey(plan("hang"), store).counts["failed"] == 0


def test_what_cannot_be_kept_fails_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from howsure_studies.pointwise import PointwiseStudy

    real = PointwiseStudy.run

    def odd(self: PointwiseStudy, trial: Any, *given: Any) -> TrialOutput:
        found = real(self, trial, *given)
        if trial.labels["method"] == "good":
            return TrialOutput(records=found.records, facts={"what": object()})
        return found

    monkeypatch.setattr(PointwiseStudy, "run", odd)
    store = Store(tmp_path / "store")
    summary = run(plan(), store)
    assert (summary.failed, summary.done) == (1, 1)
    (told,) = failures(plan(), store).values()
    assert told.startswith(f"{OutputError.__name__}: facts must be plain values: Object of type")


def test_a_result_outlives_the_word_of_it(tmp_path: Path) -> None:
    """A process may die between its result and its last word; another's result is left alone."""
    made, store = plan(), Store(tmp_path / "store")
    run(made, store)
    trial = trials_of(made)[0]
    token = store.entry(trial.address).provenance["run"]
    failure = TrialError(error="WorkerDied", message="gone")
    call = Call(trial=trial, location=store.location, run=token)
    outcome = lost(call, failure)
    assert (outcome.ending, store.entry(trial.address).status) == ("done", "done")
    with Store(store.root).claimed(trial.address, {"pid": 9, "host": "there", "run": "other"}):
        outcome = lost(call, failure)
    assert (outcome.ending, outcome.message) == ("busy", "process 9 on there")


def test_an_interrupt_ends_what_children_have_in_hand(tmp_path: Path) -> None:
    made, store = plan("hang"), Store(tmp_path / "store")

    def at_work() -> bool:
        return any(store.in_work(trial.address) for trial in trials_of(made))

    def interrupt() -> None:
        wait(at_work)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(made, store, jobs=1)
    thread.join()
    wait(lambda: not at_work())
    assert survey(made, store).counts == {"missing": 3}
