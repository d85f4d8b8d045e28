"""What is the same wherever trials are done: their order, those that others have, and deaths."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from howsure_studies.engine import Outcome, RunListener, Store, Trial, TrialError
from howsure_studies.engine.executor import KILLED, Executor, Lost, outcomes
from howsure_studies.engine.trials import Call

DEAD = Lost(KILLED, again=True)


class Scripted(Executor):
    """Ends each trial as a script says, in turn; `done` where it says nothing."""

    def __init__(self, script: Mapping[str, Sequence[str | Lost]]) -> None:
        self.script = {name: deque(endings) for name, endings in script.items()}
        self.calls = deque[Call]()
        self.log: list[str] = []

    def submit(self, call: Call) -> None:
        self.log.append(f"{call.trial.labels['name']} beside {len(self.calls)}")
        self.calls.append(call)

    def next(self, seconds: float) -> tuple[Call, Outcome | Lost] | None:
        if not self.calls:
            return None
        call = self.calls.popleft()
        script = self.script.get(call.trial.labels["name"])
        ending = script.popleft() if script else "done"
        if isinstance(ending, Lost):
            return call, ending
        return call, Outcome(address=call.address, ending=ending)  # type: ignore[arg-type]

    def close(self) -> None: ...


class Heard(RunListener):
    def __init__(self) -> None:
        self.words: list[str] = []

    def waiting(self, trials: int, whom: str) -> None:
        self.words.append(f"waiting for {trials} of {whom}")

    def killed(self, trials: int) -> None:
        self.words.append("killed")


def ended(
    store: Store,
    needs: Mapping[str, str],
    script: Mapping[str, Sequence[str | Lost]],
) -> tuple[list[str], list[str], list[str]]:
    """Names and endings in order, what was submitted beside how many, and what was heard."""
    trials: dict[str, Trial] = {}
    for name, need in needs.items():
        given = tuple(trials[n].address for n in need)
        trials[name] = Trial(study="s", identity={"n": name}, labels={"name": name}, needs=given)
    calls = {t.address: Call(trial=t, location=store.location, run="r") for t in trials.values()}
    names = {trial.address: name for name, trial in trials.items()}
    executor, heard = Scripted(script), Heard()
    told = outcomes(executor, dict(reversed(calls.items())), store, heard)
    return [f"{names[o.address]} {o.ending}" for o in told], executor.log, heard.words


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_a_trial_goes_out_when_all_that_it_needs_have_ended(store: Store) -> None:
    order, log, _ = ended(store, {"a": "", "b": "", "c": "ab", "d": "c"}, {"a": ["failed"]})
    assert order == ["b done", "a failed", "c done", "d done"]
    assert log == ["b beside 0", "a beside 1", "c beside 0", "d beside 0"]


def test_one_that_died_among_others_runs_again_alone(store: Store) -> None:
    order, log, heard = ended(store, {"a": "", "b": "", "c": "b"}, {"b": [DEAD]})
    assert order == ["a done", "b done", "c done"]
    assert log == ["b beside 0", "a beside 1", "b beside 0", "c beside 0"]
    assert heard == ["killed"]


def test_one_that_dies_again_is_kept_as_failed(store: Store) -> None:
    order, _, heard = ended(store, {"a": "", "b": "a"}, {"a": [DEAD, DEAD]})
    assert order == ["a failed", "b done"]
    assert heard == ["killed", "killed"]
    (entry,) = store.entries(store.addresses()).values()
    assert entry.failure == KILLED


def test_one_whose_time_is_up_does_not_run_again(store: Store) -> None:
    late = Lost(TrialError(error="TrialTimeout", message="late"))
    order, log, heard = ended(store, {"a": ""}, {"a": [late]})
    assert (order, len(log), heard) == (["a failed"], 1, [])


def test_what_another_run_gave_up_is_done_here(store: Store) -> None:
    order, log, heard = ended(store, {"a": "", "b": ""}, {"b": ["busy"]})
    assert order == ["a done", "b done"]
    assert log == ["b beside 0", "a beside 1", "b beside 0"]
    assert heard == ["waiting for 1 of process unknown on an unknown machine"]


def test_a_worker_of_this_run_may_die_at_a_trial_three_times(store: Store) -> None:
    """Its claim says so, though no word of its death came: the trial was someone's in between."""
    (address,) = (Trial(study="s", identity={"n": "a"}, labels={}).address,)
    with pytest.raises(ZeroDivisionError), store.claimed(address, {"run": "r"}):
        raise ZeroDivisionError
    order, log, _ = ended(store, {"a": ""}, {"a": ["busy"] * 9})
    assert (order, len(log)) == (["a failed"], 3)
