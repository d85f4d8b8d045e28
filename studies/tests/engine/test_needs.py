"""Trials that read what other trials of the plan gave."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engine.chain import ChainStudy
from howsure.core.errors import InputError
from howsure_studies.cli.display import print_status
from howsure_studies.engine import Plan, Store, Trial, combined, run, survey, trials_of


def plan(**options: Any) -> Plan:
    return Plan(
        name="test",
        study="chain",
        worlds={"a": "a", "b": "b"},
        methods={"sum": "sum", "other": "other"},
        seeds=(0, 1),
        options={"networks": 3, **options},
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def begun(log: Path) -> list[str]:
    """Addresses of the trials begun, in the order of their beginning."""
    names = [path.name.split("-") for path in log.iterdir()]
    return [name[0] for name in sorted(names, key=lambda name: int(name[2]))]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_needed_runs_first_and_once(
    chain: str, store: Store, tmp_path: Path, jobs: int
) -> None:
    """Sums of 0..2, 0..3 and 0..4 are 3, 6, 10: 19 with seed 0, twice that with seed 1."""
    (tmp_path / "log").mkdir()
    made = plan(log=str(tmp_path / "log"))
    summary = run(made, store, jobs=jobs)
    assert (summary.trials, summary.done, summary.failed) == (20, 20, 0)
    order = begun(tmp_path / "log")
    assert len(order) == len(set(order)) == 20
    place = {address: k for k, address in enumerate(order)}
    for trial in trials_of(made):
        assert all(place[need] < place[trial.address] for need in trial.needs)
    table = combined(made, survey(made, store), store).table.to_pandas()
    assert len(table) == 8
    assert table["value"].tolist() == [19.0 * (1 + seed) for seed in table["seed"]]
    assert run(made, store, jobs=jobs).done == 0


def test_more_methods_train_nothing_twice(chain: str, store: Store, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    run(plan(), store)
    more = plan(log=str(tmp_path / "log"))
    more = Plan(
        **{
            **{name: getattr(more, name) for name in ("name", "study", "worlds", "options")},
            "methods": {"sum": "sum", "new": "new"},
            "seeds": (0, 1),
        }
    )
    assert run(more, store).done == 4
    assert len(begun(tmp_path / "log")) == 4


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.rate
def test_what_needs_a_failed_trial_is_kept_as_failed(chain: str, store: Store, jobs: int) -> None:
    made = plan(fail=1)
    summary = run(made, store, jobs=jobs)
    assert (summary.done, summary.failed) == (8, 12)
    told = {t.title: e for t, e in survey(made, store).entries if "method" in t.labels}
    failure = told["sum on a"].failure
    assert failure is not None
    assert failure.error == "NeedError"
    assert failure.message.startswith("it needs network 1 on a (")
    assert "which is failed: ZeroDivisionError: no network today" in failure.message
    assert run(made, store, jobs=jobs).failed_before == 12
    again = run(plan(), store, jobs=jobs, retry_failed=True)
    assert (again.done, again.failed) == (12, 0)


@pytest.mark.rate
def test_a_worker_killed_by_a_network_fails_what_needs_it(chain: str, store: Store) -> None:
    made = plan(kill=2)
    summary = run(made, store, jobs=2)
    assert (summary.done, summary.failed) == (8, 12)
    messages = [e.failure.message for _, e in survey(made, store).entries if e.failure is not None]
    assert sum("which is failed: WorkerDied" in message for message in messages) == 8


def test_a_damaged_need_is_made_again_and_what_is_done_stays(chain: str, store: Store) -> None:
    made = plan()
    run(made, store)
    network = next(trial for trial in trials_of(made) if "network" in trial.labels)
    file = store.root / "trials" / network.address / "arrays.npz"
    data = bytearray(file.read_bytes())
    data[-40] ^= 0xFF
    file.write_bytes(data)
    assert survey(made, store).counts == {"done": 19, "damaged": 1}
    assert run(made, store).done == 1


def test_a_need_damaged_within_the_run_is_named(
    chain: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ChainStudy.run

    def harmed(self: ChainStudy, trial: Trial, *given: Any) -> Any:
        if "method" in trial.labels:
            file = store.root / "trials" / trial.needs[0] / "arrays.npz"
            data = file.read_bytes()
            file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        return real(self, trial, *given)

    monkeypatch.setattr(ChainStudy, "run", harmed)
    run(plan(), store)
    failures = [e.failure for _, e in survey(plan(), store).entries if e.failure is not None]
    assert {failure.error for failure in failures} == {"DamagedError"}
    assert all("arrays.npz has changed since it was written" in f.message for f in failures)


def test_needs_decide_the_address(chain: str) -> None:
    few, many = (
        {t.address for t in trials_of(plan(networks=n)) if "method" in t.labels} for n in (2, 3)
    )
    assert not few & many


def test_needs_must_be_of_the_plan_and_go_one_way(
    chain: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lone(self: ChainStudy, plan: Plan) -> Sequence[Trial]:
        return [self.trial({"a": 1}, {"world": "w", "method": "m"}, needs=["ff" * 32])]

    monkeypatch.setattr(ChainStudy, "trials", lone)
    with pytest.raises(InputError, match="'m on w' needs ffffffffffff, which is not"):
        run(plan(), store)

    def circle(self: ChainStudy, plan: Plan) -> Sequence[Trial]:
        one, two = self.trial({"a": 1}, {"world": "w"}), self.trial({"a": 2}, {"world": "v"})
        return [
            Trial(
                study="chain",
                identity=trial.identity,
                labels=trial.labels,
                needs=(other.address,),
            )
            for trial, other in ((one, two), (two, one))
        ]

    monkeypatch.setattr(ChainStudy, "trials", circle)
    with pytest.raises(InputError, match=r"trials must not need each other, got '[vw]', '[vw]'"):
        run(plan(), store)


def test_trials_without_a_method_are_told_by_their_labels(chain: str, store: Store) -> None:
    made = plan(fail=1)
    run(made, store)
    console = Console(file=io.StringIO(), width=160)
    print_status(console, survey(made, store))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    headings = lines[1].replace("┃", " ").split()
    assert headings == ["world", "network", "method", "done", "failed"]
    assert any(line.startswith("failed: network 1 on a (") for line in lines)
