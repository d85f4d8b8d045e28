"""Every long loop tells of its progress, and stops at once and cleanly when it is interrupted."""

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.null import mean_cce, null_reference
from howsure.topics.congruence.predictive import Draws, Normals
from howsure.topics.congruence.reference import CongruenceReference, mcmd

ROWS = 300


class Bar:
    """Records progress; raises at a chosen call of a chosen stage."""

    def __init__(self):
        self.calls = []
        self.stop_at = None

    def __call__(self, stage, done, total):
        self.calls.append((stage, done, total))
        if stage == self.stop_at and done > 0:
            raise KeyboardInterrupt


def fitted(method, *, width=7, memory=2e9, **options):
    rng = child(0, "progress")
    x, y = rng.normal(size=(ROWS, width)), rng.normal(size=ROWS)
    solver = SolverOptions(method=method, memory=memory, landmarks=50, tolerance=1e-12)
    predictive = Normals(np.zeros(ROWS), np.ones(ROWS))
    return CongruenceReference(x, y, predictive, solver=solver, **options)


GRID = child(1, "grid").normal(size=(20, 7))
CASES = {
    "tiles": ("iterative", {"memory": 0.0}, "kernel product"),
    "iterations": ("iterative", {}, "conjugate gradients"),
    "matrix": ("dense", {}, "kernel matrix"),
    "outputs": ("auto", {}, "outputs"),
    "output matrix": ("dense", {}, "output kernel matrix"),
    "new rows": ("auto", {}, "kernel at new rows"),
    "landmarks": ("nystrom", {}, "landmarks"),
    "features": ("nystrom", {}, "landmark features"),
    "landmarks at new rows": ("nystrom", {}, "landmarks at new rows"),
    "bootstrap": ("auto", {}, "bootstrap"),
    "null": ("auto", {}, "null reference"),
}


def work(bar, method, options):
    with subscribe(bar):
        reference = fitted(method, **options)
        found = [reference.score(GRID).values]
        found.append(mean_cce(reference, GRID, bootstraps=2).bootstraps)
        found.append(null_reference(reference, GRID, replicates=3).replicates)
    return reference, found


@pytest.mark.parametrize("case", CASES)
def test_every_stage_is_told_from_start_to_end(case):
    method, options, stage = CASES[case]
    bar = Bar()
    work(bar, method, options)
    steps = [(done, total) for name, done, total in bar.calls if name == stage]
    assert steps
    assert steps[-1][0] == steps[-1][1]
    for (before, old), (after, new) in pairwise(steps):
        assert after >= before or before == old  # it rises, or the stage begins anew
        assert old == new or before == old
    assert all(0 <= done <= total for done, total in steps)


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_stage_leaves_nothing_running_and_nothing_broken(case):
    method, options, stage = CASES[case]
    bar = Bar()
    _, truth = work(bar, method, options)
    threads = threading.active_count()
    bar.stop_at = stage
    with pytest.raises(KeyboardInterrupt):
        work(bar, method, options)
    assert threading.active_count() <= threads
    bar.stop_at = None
    reference = fitted(method, **options)
    for stop in (stage, "kernel product", "kernel matrix", "landmark features", "bootstrap"):
        bar.stop_at = stop
        with subscribe(bar), suppress(KeyboardInterrupt):
            reference.score(GRID)
            mean_cce(reference, GRID, bootstraps=2)
            null_reference(reference, GRID, replicates=3)
    np.testing.assert_array_equal(reference.score(GRID).values, truth[0])
    np.testing.assert_array_equal(mean_cce(reference, GRID, bootstraps=2).bootstraps, truth[1])
    again = null_reference(reference, GRID, replicates=3)
    np.testing.assert_array_equal(again.replicates, truth[2])


def test_two_samples_tell_of_their_progress():
    rng, bar = child(2, "two"), Bar()
    x, y = rng.normal(size=(80, 7)), rng.normal(size=80)
    options = SolverOptions(method="iterative")
    with subscribe(bar):
        mcmd(x, y, x[:50], y[:50] + 1.0, GRID, solver=options)
    assert {"outputs", "conjugate gradients", "kernel at new rows"} <= {c[0] for c in bar.calls}


def test_what_a_callback_raises_is_what_comes_out():
    def stop(stage, done, total):
        raise RuntimeError(f"enough of {stage}")

    x = np.linspace(0.0, 1.0, 30)
    with pytest.raises(RuntimeError, match="enough of landmarks"), subscribe(stop):
        CongruenceReference(x, x, Draws(x + 1.0)).score()


LONG = """
import numpy as np
from howsure.core.progress import subscribe
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.predictive import Draws
from howsure.topics.congruence.reference import cce
told = []
def progress(stage, done, total):
    if stage == "kernel product" and not told:
        told.append(print("running", flush=True))
rng = np.random.default_rng(0)
x, y = rng.normal(size=(30_000, 8)), rng.normal(size=30_000)
try:
    solver = SolverOptions(method="iterative", memory=0.0)
    with subscribe(progress):
        cce(x, y, Draws(y + 1.0), kernel="laplacian", solver=solver)
except KeyboardInterrupt:
    import threading
    import time
    for _ in range(200):  # a thread may have the rest of its small share to finish
        if threading.active_count() > 1:
            time.sleep(0.05)
    print("threads", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no interrupt signal to send")
def test_an_interrupt_signal_ends_work_on_threads_at_once():
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline().strip() == "running"
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=60)
    assert rest.strip() == "threads 1"
    assert run.returncode == 0
