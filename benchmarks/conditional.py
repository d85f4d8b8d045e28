"""Time the measures of conditional coverage on one size of data.

    python benchmarks/conditional.py --rows 100000 --columns 10

The model is wrong where two inputs are large together, so that every measure has work to do.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from howsure.topics.conditional.dependence import coverage_gap, hsic, width_correlation
from howsure.topics.conditional.ert import ert
from howsure.topics.conditional.local_pit import local_pit
from howsure.topics.conditional.slab import worst_slab

Array = npt.NDArray[np.float64]
COVERAGE = 0.9


def problem(rows: int, columns: int) -> tuple[Array, Array, npt.NDArray[np.bool_], Array]:
    """Inputs, widths, coverage and PIT of a model that is wrong somewhere."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns))
    wrong = (x[:, 0] > 0.5) & (x[:, 1 % columns] > 0.5)
    covered = rng.random(rows) < np.where(wrong, 0.7, 0.92)
    width = np.exp(0.5 * x[:, 0])
    pit = np.where(covered, 0.05 + 0.9 * rng.random(rows), 0.05 * rng.random(rows))
    return x, width, covered, pit


def main() -> None:
    """Print one line for each measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--skip", nargs="*", default=[], help="measures to leave out")
    options = parser.parse_args()
    x, width, covered, pit = problem(options.rows, options.columns)
    groups = np.digitize(x[:, 0], [-1.0, 0.0, 1.0])
    work: dict[str, Callable[[], float]] = {
        "worst_slab": lambda: worst_slab(covered, x, coverage=COVERAGE).estimate.value,
        "ert": lambda: ert(covered, x, coverage=COVERAGE).squared.value,
        "hsic": lambda: hsic(covered, width, coverage=COVERAGE).estimate.value,
        "width_correlation": lambda: (
            width_correlation(covered, width, coverage=COVERAGE).estimate.value
        ),
        "coverage_gap": lambda: coverage_gap(covered, groups, coverage=COVERAGE).raw.value,
        "local_pit": lambda: local_pit(pit, x).estimate.value,
    }
    print(f"{options.rows:,} rows, {options.columns} inputs, load {os.getloadavg()[0]:.1f}")
    for name, measure in work.items():
        if name in options.skip:
            continue
        start, used = time.perf_counter(), time.process_time()
        value = measure()
        wall, cpu = time.perf_counter() - start, time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name:18s} {wall:7.1f} s wall {cpu:7.1f} s cpu {value:10.5f} peak {peak:.2f} GiB")


if __name__ == "__main__":
    main()
