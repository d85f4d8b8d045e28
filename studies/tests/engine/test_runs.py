"""Runs: what is done stays, what failed is told, and blocks make the whole."""

from __future__ import annotations

import errno
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError, UnanswerableError
from howsure_studies.engine import (
    Outcome,
    Plan,
    RunListener,
    Store,
    Trial,
    combined,
    run,
    survey,
    trials_of,
)
from howsure_studies.methods.catalogue import method_named
from howsure_studies.pointwise import PointwiseStudy, pointwise
from howsure_studies.tasks.worlds import CutWorld, ForestWorld, world_named
from sameness import same

pd = needs("pandas")

OPTIONS = {"coverages": [0.8, 0.9], "simulations": 5, "block": 2, "n_test": 9, "n_train": 12}


def plan(**changes: Any) -> Plan:
    given: dict[str, Any] = {
        "name": "test",
        "study": "pointwise",
        "worlds": {"line": "linear", "fan": {"world": "fan", "noise": "skewed"}},
        "methods": {"t": "linear_t"},
        "options": OPTIONS,
    }
    return Plan(**{**given, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def stamps(store: Store) -> dict[str, tuple[int, str]]:
    """When each finished trial was written, and when it was begun."""
    found = {}
    for address in store.addresses():
        entry = store.entry(address)
        if entry.status == "done":
            file = store.root / "trials" / address / "trial.json"
            found[address] = (file.stat().st_mtime_ns, entry.provenance["started"])
    return found


class Seen(RunListener):
    """Keeps all that it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.steps: list[tuple[str, int, int]] = []

    def begin(self, trials: int, settled: int) -> None:
        self.told.append((trials, settled))

    def within(self, stage: str, done: int, total: int) -> None:
        self.steps.append((stage, done, total))

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        self.told.append((trial.labels["world"], outcome.ending))

    def waiting(self, trials: int, whom: str) -> None:
        self.told.append(("waiting", trials, whom))

    def killed(self, trials: int) -> None:
        self.told.append(("killed", trials))


def test_blocks_from_the_store_make_the_whole(store: Store) -> None:
    """Stored, read and joined, blocks equal one run of the protocol, bit by bit."""
    made = plan(
        methods={"t": "linear_t", "q": {"method": "linear_quantiles"}},
        seeds=(0, 3),
    )
    run(made, store)
    found = combined(made, survey(made, store), store)
    options: dict[str, Any] = {"trials": 5, "n_test": 9, "n_train": 12}
    for label, world in (("line", world_named("linear")), ("fan", world_named("fan", "skewed"))):
        results = found.results[label]
        assert [r.method for r in results] == ["t, seed 0", "t, seed 3", "q, seed 0", "q, seed 3"]
        for result, (name, seed) in zip(
            results,
            [("linear_t", 0), ("linear_t", 3), ("linear_quantiles", 0), ("linear_quantiles", 3)],
            strict=True,
        ):
            method = (
                method_named(name)
                if name == "linear_t"
                else method_named(name, coverages=[0.8, 0.9])
            )
            whole = pointwise(world, method, coverages=(0.8, 0.9), seed=seed, **options)
            same(result, whole, labels=True)


def test_a_block_is_kept_as_one_run_gives_it(store: Store, tmp_path: Path) -> None:
    """Worlds without truth and from tables too; here labels are the names."""
    rng = np.random.default_rng(0)
    x = rng.random((60, 2))
    y = x[:, 0] + 0.3 * rng.standard_normal(60)
    rows = "\n".join(f"{a!r},{b!r},{c!r}" for (a, b), c in zip(x.tolist(), y.tolist(), strict=True))
    (tmp_path / "mine.csv").write_text(f"a,b,y\n{rows}\n")
    table = {"table": "mine.csv", "target": "y"}
    made = plan(
        worlds={
            "forest": {**table, "trees": 25, "noise": "laplace"},
            "cut": {**table, "source": "cut", "rows": 9},
        },
        options={"coverages": [0.8], "simulations": 4, "block": 3},
        folder=tmp_path,
    )
    run(made, store)
    results = combined(made, survey(made, store), store).results
    forest = ForestWorld.from_data(x, y, trees=25, noise="laplace")
    cut = CutWorld.from_data(x, y, rows=9)
    for label, world in (("forest", forest), ("cut", cut)):
        whole = pointwise(world, method_named("linear_t"), coverages=(0.8,), trials=4)
        same(results[label][0], whole, labels=True)
    assert results["cut"][0].truth is None


def test_a_run_goes_on_where_the_last_one_stopped(store: Store) -> None:
    few, many = plan(), plan(options={**OPTIONS, "simulations": 8})
    first = run(few, store)
    assert (first.trials, first.done, first.skipped) == (6, 6, 0)
    before = stamps(store)
    again = run(few, store)
    assert (again.done, again.skipped) == (0, 6)
    more = run(many, store)
    assert (more.trials, more.done, more.skipped) == (8, 4, 4)
    after = stamps(store)
    assert before.items() <= after.items()
    assert len(after) == 10


def test_what_changed_runs_again(store: Store) -> None:
    run(plan(), store)
    other = plan(methods={"t": {"method": "linear_t", "intercept": False}})
    assert run(other, store).done == 6
    assert run(plan(), store).done == 0


@pytest.mark.parametrize("harm", ["cut", "gone", "flipped", "list"])
def test_what_is_damaged_runs_again(store: Store, harm: str) -> None:
    run(plan(), store)
    before = stamps(store)
    victim = sorted(before)[2]
    folder = store.root / "trials" / victim
    file = folder / ("trial.json" if harm == "list" else "predictions.parquet")
    data = bytearray(file.read_bytes())
    if harm == "gone":
        file.unlink()
    else:
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data if harm == "flipped" else data[: len(data) // 2])
    found = survey(plan(), store)
    assert found.counts == {"done": 5, "damaged": 1}
    assert str(file) in found.not_done()[0][1].problem
    partial = combined(plan(), found, store)
    assert sum(r.trials for results in partial.results.values() for r in results) < 10
    assert run(plan(), store).done == 1
    assert survey(plan(), store).counts == {"done": 6}
    assert {a: t for a, t in before.items() if a != victim}.items() <= stamps(store).items()


def test_results_so_far_are_shown(store: Store) -> None:
    class Enough(RunListener):
        def ended(self, trial: Trial, outcome: Outcome) -> None:
            if trial.identity["first_trial"] == 2:
                raise KeyboardInterrupt

    with pytest.raises(UnanswerableError, match="no trial of plan 'test' is done"):
        combined(plan(), survey(plan(), store), store)
    with pytest.raises(KeyboardInterrupt):
        run(plan(), store, monitor=Enough())
    found = survey(plan(), store)
    assert found.counts == {"done": 2, "missing": 4}
    (result,) = combined(plan(), found, store).results["line"]
    assert (result.trials, result.trials_planned) == (4, 5)
    assert result.stop == "4 of 5 trials at hand"


def test_a_monitor_hears_of_a_run(store: Store) -> None:
    seen = Seen()
    run(plan(), store, monitor=seen)
    assert seen.told == [(6, 0)] + [("line", "done")] * 3 + [("fan", "done")] * 3
    assert seen.steps[:3] == [("trials", 0, 2), ("trials", 1, 2), ("trials", 2, 2)]
    again = Seen()
    run(plan(), store, monitor=again)
    assert again.told == [(6, 6)]


def test_a_failed_trial_is_kept_and_stops_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PointwiseStudy.run

    def broken(self: PointwiseStudy, trial: Trial, *given: Any) -> Any:
        if trial.labels["world"] == "line":
            raise ZeroDivisionError("half done")
        return real(self, trial, *given)

    monkeypatch.setattr(PointwiseStudy, "run", broken)
    first = run(plan(), store)
    assert (first.done, first.failed) == (3, 3)
    entry = survey(plan(), store).not_done()[0][1]
    assert entry.status == "failed"
    assert entry.failure is not None
    assert (entry.failure.error, entry.failure.message) == ("ZeroDivisionError", "half done")
    assert "in broken" in entry.failure.trace
    assert entry.provenance["seconds"] >= 0
    monkeypatch.undo()
    second = run(plan(), store)
    assert (second.done, second.failed, second.failed_before, second.skipped) == (0, 0, 3, 6)
    third = run(plan(), store, retry_failed=True)
    assert (third.done, third.failed, third.failed_before) == (3, 0, 0)
    assert survey(plan(), store).counts == {"done": 6}


def test_an_interrupt_is_no_failure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: PointwiseStudy, trial: Trial, *given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(PointwiseStudy, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(plan(), store)
    assert survey(plan(), store).counts == {"missing": 6}


@pytest.mark.parametrize("stop", [SystemExit(3), GeneratorExit(), BaseException("odd")])
def test_an_exit_ends_its_trial_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    real = PointwiseStudy.run

    def leaving(self: PointwiseStudy, trial: Trial, *given: Any) -> Any:
        if trial.labels["world"] == "line":
            raise stop
        return real(self, trial, *given)

    monkeypatch.setattr(PointwiseStudy, "run", leaving)
    summary = run(plan(), store)
    assert (summary.done, summary.failed) == (3, 3)
    failure = survey(plan(), store).not_done()[0][1].failure
    assert failure is not None
    assert (failure.error, failure.message) == (type(stop).__name__, str(stop))


def test_a_trial_whose_every_part_failed_failed(store: Store) -> None:
    """Seven rows do not bear a line in ten inputs: every simulation fails."""
    made = plan(
        worlds={"f": "friedman1"},
        options={"simulations": 4, "block": 2, "n_train": 7, "n_test": 5},
    )
    summary = run(made, store)
    assert (summary.done, summary.failed, summary.failed_parts) == (0, 2, 0)
    for _, entry in survey(made, store).entries:
        assert entry.failure is not None
        assert entry.failure.message.startswith("all 2 simulations failed; the first in fit: ")
        assert "in fit" in entry.failure.trace.partition("\n\n")[2] + entry.failure.trace
    assert run(made, store).failed_before == 2
    assert run(made, store, retry_failed=True).failed == 2


def test_parts_that_failed_are_counted_and_tried_again_on_request(store: Store) -> None:
    bad = {"method": "engine.guilty:Bad", "how": "error", "share": 0.3}
    made = plan(
        methods={"b": bad},
        worlds={"line": "linear"},
        options={**OPTIONS, "simulations": 12, "block": 12},
    )
    summary = run(made, store)
    assert (summary.done, summary.failed) == (1, 0)
    assert 0 < summary.failed_parts < 12
    (result,) = combined(made, survey(made, store), store).results["line"]
    assert result.trials == 12 - summary.failed_parts
    assert len(result.failures) == summary.failed_parts
    assert run(made, store).done == 0
    assert run(made, store, retry_failed=True).done == 1


@pytest.mark.rate
def test_workers_give_what_this_process_gives(store: Store, tmp_path: Path) -> None:
    alone = Store(tmp_path / "alone")
    run(plan(), alone)
    summary = run(plan(), store, jobs=2)
    assert (summary.done, summary.failed) == (6, 0)
    for address in alone.addresses():
        for name in ("records", "predictions", "points"):
            one, other = (held.table(address, name).to_pandas() for held in (store, alone))
            pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("kind", ["memory", "file", "local"])
def test_a_store_at_a_url_gives_what_a_folder_gives(
    store: Store, tmp_path: Path, kind: str
) -> None:
    needs("fsspec")
    url = f"{kind}://{tmp_path}/there"
    made = plan(options={**OPTIONS, "simulations": 2})
    assert run(made, Store(url)).done == 2
    assert run(made, Store(url)).done == 0
    run(made, store)
    one, other = (combined(made, survey(made, s), s).table.to_pandas() for s in (Store(url), store))
    pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.rate
def test_workers_have_one_thread(store: Store) -> None:
    made = plan(methods={"t": "engine.guilty:Threads"})
    run(made, store, jobs=2)
    (result,) = combined(made, survey(made, store), store).results["line"]
    assert not result.failures


@pytest.mark.parametrize("kind", ["", "local://"])
@pytest.mark.rate
def test_a_killed_worker_loses_no_other_trial(store: Store, tmp_path: Path, kind: str) -> None:
    """Its trial runs again at once, alone; the others are done once."""
    store = Store(f"{kind}{store.root}")
    flags = tmp_path / "flags"
    flags.mkdir()
    killer = {"method": "engine.guilty:Killer", "flags": str(flags), "share": 0.3}
    made = plan(methods={"k": killer, "t": "linear_t"}, worlds={"line": "linear"})
    seen = Seen()
    summary = run(made, store, jobs=2, monitor=seen)
    assert (summary.done, summary.failed) == (6, 0)
    assert any(isinstance(told, tuple) and told[0] == "killed" for told in seen.told)
    assert len(list(flags.iterdir())) >= 1
    results = combined(made, survey(made, store), store).results["line"]
    assert np.array_equal(results[0].lower, results[1].lower)


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_is_kept_as_failed(store: Store, tmp_path: Path) -> None:
    flags = tmp_path / "flags"
    flags.mkdir()
    killer = {
        "method": "engine.guilty:Killer",
        "flags": str(flags),
        "share": 2.0,
        "once": False,
    }
    made = plan(
        methods={"k": killer, "t": "linear_t"},
        worlds={"line": "linear"},
        options={**OPTIONS, "simulations": 2},
    )
    summary = run(made, store, jobs=2)
    assert (summary.done, summary.failed) == (1, 1)
    ((trial, entry),) = survey(made, store).not_done()
    assert trial.labels["method"] == "k"
    assert entry.failure is not None
    assert entry.failure.error == "WorkerDied"


def test_a_full_disk_ends_the_run_with_one_message(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(plan(options={**OPTIONS, "simulations": 2}), store)
    real = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if self.suffix == ".parquet":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left on device"):
        run(plan(), store)
    monkeypatch.undo()
    assert survey(plan(), store).counts == {"done": 2, "missing": 4}
    assert run(plan(), store).done == 4


def test_two_runs_share_one_store(store: Store) -> None:
    """Both end when all is done, and no trial is done twice."""
    made = plan(
        methods={"s": {"method": "engine.guilty:Slow", "seconds": 0.02}},
        options={**OPTIONS, "simulations": 24},
    )
    summaries = []

    def go() -> None:
        summaries.append(run(made, Store(store.root)))

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(summary.done for summary in summaries) == 24
    assert min(summary.done for summary in summaries) > 2
    assert survey(made, store).counts == {"done": 24}


def test_a_run_waits_for_what_another_works_on(store: Store) -> None:
    made = plan(options={**OPTIONS, "simulations": 2}, worlds={"line": "linear"})
    address = trials_of(made)[0].address
    seen, release = Seen(), threading.Event()

    def hold() -> None:
        with Store(store.root).claimed(address, {"pid": 7, "host": "there"}) as mine:
            assert mine
            release.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    while not store.in_work(address):
        time.sleep(0.01)
    assert survey(made, store).at_work == (address,)
    timer = threading.Timer(0.3, release.set)
    timer.start()
    summary = run(made, store, monitor=seen)
    thread.join()
    assert summary.done == 1  # the other gave it up undone
    assert seen.told[1] == ("waiting", 1, "process 7 on there")


@pytest.mark.parametrize("jobs", [-2, 1.5, True, "2"])
def test_bad_jobs_are_refused(store: Store, jobs: Any) -> None:
    with pytest.raises(InputError, match="jobs must be a whole number"):
        run(plan(), store, jobs=jobs)


def test_a_table_that_changes_in_the_run_is_told(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"{k / 50},{np.sin(k) + k / 50:.3f}" for k in range(50)]
    path.write_text("\n".join(["a,y", *rows]))
    made = plan(worlds={"w": {"table": str(path), "target": "y", "trees": 21}})
    trial = trials_of(made)[0]
    path.write_text("\n".join(["a,y", *rows[::-1]]))
    with pytest.raises(InputError, match="has changed since the plan was read"):
        PointwiseStudy().run(trial)


def finished(store: Store) -> int:
    return len(list((store.root / "trials").glob("*/trial.json")))


def kill_at_random(made: Plan, store: Store, times: int, jobs: int) -> int:
    """Start a run and kill it, so many times; how often trials were still missing then.

    Every other time at any moment of its life, else when it has done a trial at least. After
    each kill all that is done is whole, and what was done before is untouched.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["howsure_studies.pointwise.study", "scipy.stats", "sklearn.base"]
    )
    rng, unfinished = np.random.default_rng(0), 0
    known: dict[str, tuple[int, str]] = {}
    for turn in range(times):
        process = context.Process(target=run, args=(made, store), kwargs={"jobs": jobs})
        process.start()
        while turn % 2 and process.is_alive() and finished(store) == len(known):
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0.0, 0.15)))
        process.kill()
        process.join()
        found = survey(made, store)
        assert set(found.counts) <= {"done", "missing"}
        now = stamps(store)
        assert known.items() <= now.items()
        known, unfinished = now, unfinished + (found.counts["missing"] > 0)
    return unfinished


def check_all_done_once(made: Plan, store: Store, known: dict[str, tuple[int, str]]) -> None:
    total = len(trials_of(made))
    summary = run(made, store)
    assert (summary.failed, summary.trials) == (0, total)
    assert survey(made, store).counts == {"done": total}
    assert known.items() <= stamps(store).items()
    assert set(store.addresses()) == {trial.address for trial in trials_of(made)}
    assert store.tables("predictions").num_rows == 2 * 60 * 9 * 2


@pytest.mark.rate
def test_kill_at_any_moment_loses_only_what_was_in_flight(store: Store) -> None:
    """Twenty times SIGKILL at random moments; in the end every trial is done once."""
    made = plan(options={**OPTIONS, "simulations": 60, "block": 1})
    unfinished = kill_at_random(made, store, 20, 1)
    known = stamps(store)
    assert unfinished >= 10
    assert len(known) >= 10
    check_all_done_once(made, store, known)


def test_killing_a_run_with_workers_loses_only_what_was_in_flight(store: Store) -> None:
    """The workers outlive it for a moment, and do no trial that the next run does."""
    slow = {"method": "engine.guilty:Slow", "seconds": 0.02}
    made = plan(methods={"s": slow}, options={**OPTIONS, "simulations": 60, "block": 2})
    unfinished = kill_at_random(made, store, 2, 2)
    known = stamps(store)
    assert unfinished >= 1
    assert known
    check_all_done_once(made, store, known)


@pytest.mark.parametrize("name", ["boston", "yacht"])
def test_a_uci_table_is_a_world(
    name: str, store: Store, data_dir: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(data_dir(f"uci_{name}").parent))
    made = plan(
        worlds={"w": {"uci": name, "trees": 30}},
        options={"coverages": [0.8], "simulations": 4, "block": 2},
    )
    assert run(made, store).done == 2
    (result,) = combined(made, survey(made, store), store).results["w"]
    assert result.trials == 4
    assert 0.5 < result.by_trial("picf", 0.8).mean() < 1.0
