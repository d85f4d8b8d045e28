"""Pieces of work on a real Dask cluster of this machine: scheduler and workers are processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from extras import needs
from howsure.core.errors import DegenerateError, HowsureError, InputError, MissingDependencyError
from howsure.core.progress import subscribe
from howsure.streaming.engine import done_in_order
from pace import slowness
from streaming import pieces
from streaming.test_engine import TESTS, done, names, squares, wait

distributed = needs("distributed")

pytestmark = pytest.mark.slow

DASK = [sys.executable, "-m", "dask"]
SCHEDULER = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
ALONE = ["--no-nanny", "--no-dashboard"]


class Cluster:
    """A scheduler and what is started beside it; all are killed in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []
        path = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        self.environment = {**os.environ, "PYTHONPATH": path}
        file = folder / "scheduler.json"
        self.scheduler = self.start([*DASK, *SCHEDULER, "--scheduler-file", str(file)])
        wait(lambda: file.exists() and '"address"' in file.read_text())
        self.address = str(json.loads(file.read_text())["address"])

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, cwd=self.folder
            )
        self.started.append(process)
        return process

    def worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        place = self.folder / f"worker{len(self.started)}"
        how = [*ALONE, "--nthreads", str(threads), "--local-directory", str(place)]
        return self.start([*DASK, "worker", self.address, *how])

    def end(self) -> None:
        for process in self.started:
            process.kill()
        for process in self.started:
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    made = Cluster(tmp_path / "cluster")
    yield made
    made.end()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def begun(marks: Path, number: int | str = "*") -> set[int]:
    """The processes that have begun a piece."""
    return {int(path.name.split("-")[1]) for path in marks.glob(f"{number}-*")}


@pytest.mark.rate
def test_two_workers_give_what_this_process_gives(cluster: Cluster, marks: Path) -> None:
    workers = {cluster.worker().pid, cluster.worker().pid}
    items = [(number, marks, 0.1) for number in range(30)]
    found = done(pieces.logged, items, scheduler=cluster.address)
    assert found == squares(30)
    assert begun(marks) == workers
    kept = marks.parent / "kept"
    how = {"identities": names(6), "resume": kept}
    assert done(pieces.square, range(6), scheduler=cluster.address, **how) == squares(6)
    assert done(pieces.odd, range(6), jobs=1, **how) == squares(6)  # all are read
    assert done(pieces.odd, range(6), scheduler=cluster.address, **how) == squares(6)


@pytest.mark.rate
def test_a_worker_killed_midway_costs_only_time(cluster: Cluster, marks: Path) -> None:
    victim, other = cluster.worker(), cluster.worker()
    items = [(number, marks, 0.1) for number in range(40)]

    def kill() -> None:
        wait(lambda: victim.pid in begun(marks) and len(begun(marks)) == 2)
        victim.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    assert done(pieces.logged, items, scheduler=cluster.address) == squares(40)
    thread.join()
    assert begun(marks, 39) == {other.pid}


@pytest.mark.rate
def test_a_piece_that_kills_every_worker_is_named(cluster: Cluster, marks: Path) -> None:
    for _ in range(5):
        cluster.worker()
    items = [(number, marks, 99 if number == 1 else 0) for number in range(2)]
    some = done_in_order(
        pieces.dies, items, identities=["", ""], scheduler=cluster.address, stage="rows"
    )
    assert next(some) == pieces.square(0)
    with pytest.raises(HowsureError, match=r"^piece 2 of 2 .*: every worker that tried it was"):
        next(some)
    assert 2 <= len(list(marks.glob("1-*"))) <= 5


def test_errors_come_as_they_are(cluster: Cluster, marks: Path) -> None:
    cluster.worker()
    some = done_in_order(pieces.bad, range(9), identities=[""] * 9, scheduler=cluster.address)
    assert [next(some), next(some)] == squares(2)
    with pytest.raises(DegenerateError, match=r"^row 73 of part 2 has no y$") as caught:
        next(some)
    assert caught.value.__cause__ is None
    with pytest.raises(
        HowsureError, match=r"cannot process piece 1 of 1 \(3\); .* KeyError: 'no such"
    ):
        done(pieces.odd, [3], scheduler=cluster.address)


def test_another_version_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.worker()
    monkeypatch.setattr("howsure.core.workers.__version__", "99.0")
    with pytest.raises(InputError, match=r"^workers must run howsure 99\.0, got "):
        done(pieces.square, [1], scheduler=cluster.address)


def test_a_client_is_a_scheduler_and_stays_open(cluster: Cluster, marks: Path) -> None:
    cluster.worker()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        items = [(number, marks, 0.1) for number in range(60)]
        some = done_in_order(pieces.logged, items, identities=[""] * 60, scheduler=client)
        assert next(some) == pieces.square(0)
        started = time.monotonic()
        some.close()
        assert time.monotonic() - started < 5 * slowness()
        time.sleep(0.5)
        assert len(list(marks.iterdir())) < 10  # what was not begun is let go
        assert done(pieces.square, range(3), scheduler=client) == squares(3)
        assert client.submit(abs, -3).result() == 3


def test_workers_may_come_late(cluster: Cluster) -> None:
    told: list[str] = []

    def come(stage: str, *_: int) -> None:
        if "waiting for workers of tcp://" in stage and len(told) == 1:
            cluster.worker()
        told.append(stage)

    with subscribe(come):
        assert done(pieces.square, range(3), scheduler=cluster.address) == squares(3)
    assert told[-1] == "rows"


@pytest.mark.rate
def test_a_scheduler_that_dies_is_told(cluster: Cluster, marks: Path) -> None:
    cluster.worker(threads=3)  # whichever comes first, none waits for another
    items = [(0, marks, 0.0), (1, marks, 1000.0), (2, marks, 1000.0)]
    some = done_in_order(pieces.logged, items, identities=[""] * 3, scheduler=cluster.address)
    next(some)
    cluster.scheduler.kill()
    started = time.monotonic()
    with pytest.raises(HowsureError, match=re.escape(cluster.address) + " no longer answers"):
        next(some)
    assert time.monotonic() - started < 30 * slowness()


def test_no_scheduler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("howsure.core.workers.SECONDS_TO_ANSWER", 2)
    with pytest.raises(
        InputError, match="scheduler must be the address of a running Dask scheduler"
    ):
        done(pieces.square, [1, 2], scheduler="tcp://127.0.0.1:9")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "howsure\[cluster\]"'):
        done(pieces.square, [1, 2], scheduler="tcp://127.0.0.1:9")


INTERRUPTED = """
import sys
from pathlib import Path
from howsure.streaming.engine import done_in_order
from streaming.pieces import logged

marks = Path(sys.argv[2])
items = [(n, marks, 0.0 if n < 2 else 1.0) for n in range(30)]
for table in done_in_order(logged, items, identities=[""] * 30, scheduler=sys.argv[1]):
    print(table.num_rows, flush=True)
"""


@pytest.mark.rate
def test_an_interrupt_leaves_the_cluster_free(cluster: Cluster, marks: Path) -> None:
    cluster.worker()
    command: list[Any] = [sys.executable, "-c", INTERRUPTED, cluster.address, marks]
    with subprocess.Popen(
        command, env=cluster.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        wait(lambda: len(list(marks.iterdir())) >= 3)
        run.send_signal(signal.SIGINT)
        _, told = run.communicate(timeout=20 * slowness())
    assert told.rstrip().endswith("KeyboardInterrupt")
    count = len(list(marks.iterdir()))
    time.sleep(2.5)
    assert len(list(marks.iterdir())) <= count + 1
    assert isinstance(done(pieces.square, [1], scheduler=cluster.address)[0], pa.Table)
