"""Runs on a real Dask cluster on this machine: a scheduler and workers, each a process."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engine.chain import announce
from extras import needs
from howsure.cli.main import app
from howsure.core.errors import HowsureError, InputError, MissingDependencyError
from howsure.core.workers import killed_worker
from howsure_studies.engine import (
    Outcome,
    Plan,
    RunListener,
    Store,
    combined,
    run,
    study_of,
    survey,
    trials_of,
)
from howsure_studies.engine import cluster as cluster_module
from howsure_studies.engine.executor import outcomes
from howsure_studies.engine.trials import Call
from pace import slowness

pd = needs("pandas")

needs("distributed")

DASK = [sys.executable, "-m", "dask"]
TESTS = str(Path(__file__).parents[1])
SCHEDULER = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
ALONE = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]


class Cluster:
    """A scheduler and what is started beside it; all are killed in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        announce(folder / "packages")
        path = [str(folder / "packages"), TESTS, os.environ.get("PYTHONPATH", "")]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path).rstrip(os.pathsep)}
        port_file = folder / "scheduler.json"
        self.scheduler = self.start([*DASK, *SCHEDULER, "--scheduler-file", str(port_file)])
        self.wait(port_file.exists)
        self.wait(lambda: '"address"' in port_file.read_text())
        self.address = str(pd.read_json(port_file, typ="series")["address"])

    def start(self, command: list[str], **environment: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{len(self.started)}.log").open("wb")
        process = subprocess.Popen(
            command,
            env={**self.environment, **environment},
            stdout=log,
            stderr=log,
            cwd=self.folder,
        )
        log.close()
        self.started.append(process)
        return process

    def worker(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        place = self.folder / f"worker{len(self.started)}"
        command = [*DASK, "worker", self.address, *ALONE, "--local-directory", str(place)]
        return self.start([*command, *arguments], **environment)

    def registered(self, count: int) -> None:
        """Wait until so many workers are known to the scheduler."""
        with needs("distributed").Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)

    def wait(self, true: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self) -> None:
        for process in self.started:
            process.kill()
        for process in self.started:
            process.wait()


@pytest.fixture
def cluster(chain: str, tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.end()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def plan(tmp_path: Path, **options: Any) -> Plan:
    (tmp_path / "log").mkdir(exist_ok=True)
    return Plan(
        name="test",
        study="chain",
        worlds={"a": "a", "b": "b"},
        methods={"sum": "sum", "other": "other"},
        options={"networks": 8, "log": str(tmp_path / "log"), **options},
    )


def begun(tmp_path: Path) -> Counter[str]:
    """How often each trial was begun, by address."""
    return Counter(path.name.split("-")[0] for path in (tmp_path / "log").iterdir())


def processes(tmp_path: Path) -> set[int]:
    return {int(path.name.split("-")[1]) for path in (tmp_path / "log").iterdir()}


def same_results(made: Plan, one: Store, other: Store) -> None:
    tables = [
        combined(made, survey(made, store), store).table.to_pandas() for store in (one, other)
    ]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    for trial in trials_of(made):
        entries = [held.entry(trial.address, thorough=True) for held in (one, other)]
        assert entries[0].identity == entries[1].identity
        arrays = [held.arrays(trial.address) for held in (one, other)]
        assert {k: a.tobytes() for k, a in arrays[0].items()} == {
            k: a.tobytes() for k, a in arrays[1].items()
        }


class Kill(RunListener):
    """Kills a worker when so many trials have ended, while it has one in hand."""

    def __init__(self, victim: subprocess.Popen[bytes], after: int) -> None:
        self.victim, self.after, self.count = victim, after, 0
        self.seen: list[int] = []

    def ended(self, *_: Any) -> None:
        self.count += 1
        if self.count == self.after:
            time.sleep(0.05)
            os.kill(self.victim.pid, signal.SIGKILL)

    def workers(self, count: int) -> None:
        self.seen.append(count)


@pytest.mark.parametrize("kind", ["", "local://"])
@pytest.mark.rate
def test_a_killed_worker_costs_only_what_it_had_in_hand(
    cluster: Cluster,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """Two workers, one killed mid-run: every trial is done once, as a local run does it."""
    if kind:
        sitecustomize = "import howsure_studies.engine.locks as c\nc._EXPIRY, c._BEAT = 3.0, 0.5\n"
        (tmp_path / "cluster" / "packages" / "sitecustomize.py").write_text(sitecustomize)
        monkeypatch.setattr("howsure_studies.engine.locks._EXPIRY", 3.0)
    made = plan(tmp_path, seconds=0.2)
    victim, other = cluster.worker(), cluster.worker()
    cluster.registered(2)  # so that both are seen before one is killed
    watch = Kill(victim, 6)
    there = Store(f"{kind}{store.root}")
    summary = run(made, there, scheduler=cluster.address, monitor=watch)
    assert (summary.trials, summary.done, summary.failed, summary.skipped) == (20, 20, 0, 0)
    assert victim.wait(10) == -signal.SIGKILL
    assert {2, 1} <= set(watch.seen)
    assert processes(tmp_path) == {victim.pid, other.pid}
    counts = begun(tmp_path)
    assert set(counts) == {trial.address for trial in trials_of(made)}
    assert sum(counts.values()) in (20, 21)  # the one in hand ran again
    entries = there.entries(counts, thorough=True)
    assert {entry.status for entry in entries.values()} == {"done"}
    assert len({entry.provenance["run"] for entry in entries.values()}) == 1
    assert not any(there.in_work(address) for address in counts)
    assert list((store.root / "runs").iterdir()) == []
    alone = Store(tmp_path / "alone")
    run(made, alone)
    same_results(made, there, alone)
    again = run(made, there, scheduler=cluster.address)
    assert (again.done, again.skipped) == (0, 20)


@pytest.mark.rate
def test_a_trial_that_kills_every_worker_is_kept_as_failed(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    """With a nanny, which starts a worker anew; what needs the trial fails too."""
    made = plan(tmp_path, kill=2, networks=4)
    nanny = [*DASK, "worker", cluster.address, "--nthreads", "1", "--no-dashboard"]
    for name in ("one", "two"):
        cluster.start([*nanny, "--local-directory", str(tmp_path / name)])
    summary = run(made, store, scheduler=cluster.address)
    assert (summary.done, summary.failed) == (6, 6)
    messages = [e.failure.message for _, e in survey(made, store).entries if e.failure is not None]
    assert sum("every worker that ran this trial was lost" in m for m in messages) == 6
    assert sum(m.startswith("it needs network 2 on ") for m in messages) == 4


@pytest.mark.slow
def test_a_trial_that_hangs_on_a_worker_is_ended(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    """In a process of its own; the worker lives on, and what needs the trial fails."""
    made = plan(tmp_path, hang=1, networks=2)
    nanny = [*DASK, "worker", cluster.address, "--nthreads", "1", "--no-dashboard"]
    cluster.start([*nanny, "--local-directory", str(tmp_path / "one")])
    limit = math.ceil(8 * slowness())  # in which the others are done
    summary = run(made, store, scheduler=cluster.address, trial_timeout=limit)
    assert (summary.done, summary.failed) == (2, 6)
    messages = [e.failure.message for _, e in survey(made, store).entries if e.failure is not None]
    assert sum(f"it took more than {limit} s" in message for message in messages) == 6
    assert set(begun(tmp_path).values()) == {1}


def test_a_result_that_died_with_its_worker_is_waited_for(
    chain: str, store: Store, tmp_path: Path
) -> None:
    """The scheduler then runs the task again; the run must not take that for its own end."""
    made = plan(tmp_path, networks=1)
    trial = next(trial for trial in trials_of(made) if not trial.needs)
    adapter = study_of(made.study)
    output = adapter.run(trial, store)
    store.write(trial.address, trial.identity, output, {"run": "t"})
    killed = killed_worker()

    class Lost:
        key = "task"
        asked = 0
        fails = False

        @property
        def status(self) -> str:
            self.asked += 1
            return ("lost", "pending", "finished")[min(self.asked, 3) - 1]

        def add_done_callback(self, call: Any) -> None:
            call(self)

        def result(self) -> Outcome:
            if self.fails:
                raise killed("task", None, 4)
            return Outcome(address=trial.address, ending="done")

    class Client:
        future = Lost()

        def submit(self, *_: Any, **__: Any) -> Lost:
            return self.future

        def nthreads(self) -> dict[str, int]:
            return {}

        def close(self, **_: Any) -> None: ...

    client = Client()
    cluster = cluster_module.OnCluster("tcp://none", store, "t", RunListener(), client=client)
    call = Call(trial=trial, location=store.location, run="t")
    cluster.submit(call)
    assert cluster.next(1.0) is None
    assert cluster.next(1.0) is None
    ended = cluster.next(1.0)
    assert ended is not None
    assert (ended[0], getattr(ended[1], "ending", "")) == (call, "done")
    client.future.fails = True  # run again, and killed by its fellows
    (ended_well,) = outcomes(cluster, {trial.address: call}, store, RunListener())
    assert (ended_well.address, ended_well.ending) == (trial.address, "done")
    cluster.close()


@pytest.mark.slow
def test_two_runs_and_a_local_one_share_a_store(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    made = plan(tmp_path, seconds=0.05)
    cluster.worker()
    summaries = []

    def go(**where: Any) -> None:
        summaries.append(run(made, Store(store.root), **where))

    threads = [
        threading.Thread(target=go, kwargs=where)
        for where in ({"scheduler": cluster.address}, {"scheduler": cluster.address}, {})
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(summary.done for summary in summaries) == 20
    assert set(begun(tmp_path).values()) == {1}
    assert survey(made, store).counts == {"done": 20}


@pytest.mark.rate
def test_the_command_runs_on_a_cluster(cluster: Cluster, store: Store) -> None:
    cluster.worker()
    where = ["--store", str(store.root), "--scheduler", cluster.address]
    told = CliRunner().invoke(app, ["bench", "run", "smoke", *where], env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.exception
    assert "8 trials: 8 done, 0 already done" in told.stdout
    assert "workers of the cluster: " in told.stderr
    where[-1] = "127.0.0.1"
    told = CliRunner().invoke(app, ["bench", "run", "smoke", *where])
    assert "0 done, 8 already done" in told.stdout  # nothing to do, nobody is asked


def test_a_worker_that_sees_another_store_is_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is another folder there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    cluster.worker()
    with pytest.raises(InputError, match="workers must see the store of the run at 'mine'"):
        run(plan(tmp_path), Store("mine"), scheduler=cluster.address)
    assert not begun(tmp_path)


def test_a_worker_without_howsure_is_told(cluster: Cluster, store: Store, tmp_path: Path) -> None:
    block = tmp_path / "block" / "howsure"
    block.mkdir(parents=True)
    (block / "__init__.py").write_text("raise ModuleNotFoundError('No module named howsure')")
    path = f"{block.parent}{os.pathsep}{cluster.environment['PYTHONPATH']}"
    cluster.worker(PYTHONPATH=path)
    with pytest.raises(HowsureError, match=r"each must have howsure .* No module named howsure"):
        run(plan(tmp_path), store, scheduler=cluster.address)


def test_another_howsure_there_is_told(
    cluster: Cluster, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.core.workers.__version__", "99.0")
    cluster.worker()
    with pytest.raises(InputError, match=r"workers must run howsure 99.0, got "):
        run(plan(tmp_path), store, scheduler=cluster.address)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_ends_the_run(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    made = plan(tmp_path, seconds=0.2)
    cluster.worker()
    started = time.monotonic()
    with pytest.raises(HowsureError, match="no longer answers: finished trials are kept"):
        run(made, store, scheduler=cluster.address, monitor=Kill(cluster.scheduler, 3))
    assert time.monotonic() - started < 60
    cluster.end()
    found = survey(made, store).counts
    assert found["done"] >= 3
    assert run(made, store).done == 20 - found["done"]


@pytest.mark.slow
def test_an_interrupt_leaves_what_is_in_hand_to_its_worker(
    cluster: Cluster, store: Store, tmp_path: Path
) -> None:
    class Enough(RunListener):
        def ended(self, *_: Any) -> None:
            raise KeyboardInterrupt

    made = plan(tmp_path, seconds=0.2)
    cluster.worker()
    with pytest.raises(KeyboardInterrupt):
        run(made, store, scheduler=cluster.address, monitor=Enough())
    cluster.wait(lambda: not any(store.in_work(address) for address in store.addresses()))
    held = survey(made, store).counts["done"]
    assert 1 <= held <= 3
    time.sleep(0.6)
    assert survey(made, store).counts["done"] == held
    assert run(made, store).done == 20 - held


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1:9", "tcp://"])
def test_a_scheduler_that_does_not_answer_is_told(
    chain: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("howsure.core.workers.SECONDS_TO_ANSWER", 2)
    started = time.monotonic()
    with pytest.raises(
        InputError, match="scheduler must be the address of a running Dask scheduler"
    ):
        run(plan(tmp_path), store, scheduler=address)
    assert time.monotonic() - started < 15


def test_what_does_not_go_together_is_refused(chain: str, store: Store, tmp_path: Path) -> None:
    made = plan(tmp_path)
    with pytest.raises(InputError, match="jobs must be left out with a scheduler, got 2"):
        run(made, store, scheduler="tcp://127.0.0.1:9", jobs=2)
    memory = Store("memory://own")
    with pytest.raises(InputError, match=r"shared with other processes .* got 'memory://own'"):
        run(made, memory, jobs=2)
    with pytest.raises(InputError, match=r"shared with other processes .* got 'memory://own'"):
        run(made, memory, scheduler="tcp://127.0.0.1:9")


def test_without_dask_the_extra_is_named(
    chain: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "howsure\[cluster\]"'):
        run(plan(tmp_path), store, scheduler="tcp://127.0.0.1:9")
