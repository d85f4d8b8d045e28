"""Speed and memory of the characteristics curve, beside the time of a sort in the same run.

Run ``python benchmarks/characteristic.py``. Bars: the four axes at a million rows within 40 sorts
of a million floats; at most 20 arrays of N floats; 10,000 permutations at 100,000 rows within
20 s; 1,000 bootstrap resamples at 100,000 rows within 30 s.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from howsure.topics.characteristic.curve import characteristic_curve
from howsure.topics.characteristic.resampling import bootstrap_curve, permutation_test
from howsure.topics.characteristic.trace import AreaRequest


def data(n: int, kind: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Errors with heavy tails, and bands: symmetric, asymmetric, or the worst case for memory."""
    rng = np.random.default_rng(seed)
    error = rng.standard_t(4, n)
    below = rng.uniform(0.5, 2.0, n)
    above = below if kind == "symmetric" else rng.uniform(0.5, 2.0, n)
    if kind == "one-sided errors":
        error, above = np.abs(error), below + above
    point = rng.normal(size=n)
    return {"y": point + error, "point": point, "lower": point - below, "upper": point + above}


def seconds(task: Callable[[], object], repeats: int) -> float:
    """Shortest time of a few runs."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        task()
        times.append(time.perf_counter() - begin)
    return min(times)


def sort_of_a_million(repeats: int) -> float:
    """The unit: one sort of a million random floats."""
    values = np.random.default_rng(1).random(1_000_000)
    return seconds(lambda: np.sort(values), repeats)


def report_curve(n: int, repeats: int) -> None:
    """Time of all four axes in sorts, and peak memory in arrays of n floats."""
    unit = sort_of_a_million(repeats)
    print(f"one sort of a million floats: {unit:.4f} s")
    for kind in ("symmetric", "asymmetric", "one-sided errors"):
        for move in ("scale", "bias"):
            rows = data(n, kind)
            spent = seconds(lambda: characteristic_curve(**rows, move=move), repeats)  # noqa: B023
            tracemalloc.start()
            characteristic_curve(**rows, move=move)
            arrays = tracemalloc.get_traced_memory()[1] / (8 * n)
            tracemalloc.stop()
            print(
                f"four axes, N = {n:,}, {kind}, {move}: {spent:.3f} s = {spent / unit:.1f} sorts; "
                f"peak {arrays:.1f} arrays of N"
            )


def report_growth(largest: int, repeats: int) -> None:
    """Time at growing N, per N log N, and the slope of log time in log N."""
    sizes = [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= largest]
    times = []
    for n in sizes:
        rows = data(n, "symmetric")
        times.append(seconds(lambda: characteristic_curve(**rows), repeats))  # noqa: B023
        per = times[-1] / (n * np.log2(n))
        print(f"growth: N = {n:,}: {times[-1]:.4f} s, {per * 1e9:.2f} ns per N log2 N")
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        ideal = np.polyfit(np.log(sizes), np.log(sizes * np.log(sizes)), 1)[0]
        print(f"slope of log time in log N: {slope:.3f} (N log N: {ideal:.3f})")


def report_resampling(n: int, by_curves: bool) -> None:
    """Time of the permutation test and of the bootstrap."""
    rows = data(n, "symmetric")
    first = characteristic_curve(**rows)
    noise = np.random.default_rng(2).lognormal(0.0, 0.3, n)
    centre = rows["point"]
    rows["lower"] = centre - noise * (centre - rows["lower"])
    rows["upper"] = centre + noise * (rows["upper"] - centre)
    second = characteristic_curve(**rows)
    spent = seconds(lambda: permutation_test(first, second), 1)
    print(f"permutation test, 10,000 by products, N = {n:,}: {spent:.1f} s (bar 20 s)")
    spent = seconds(lambda: bootstrap_curve(first), 1)
    print(f"bootstrap, 1,000 of bandwidth and miss rate, N = {n:,}: {spent:.1f} s (bar 30 s)")
    other = first.on(x="excess", y_axis="deficit")
    spent = seconds(lambda: bootstrap_curve(other), 1)
    print(f"bootstrap, 1,000 of excess and deficit, N = {n:,}: {spent:.1f} s (bar 30 s)")
    if by_curves:
        part = AreaRequest(y_range=(0.0, 0.2))
        spent = seconds(lambda: permutation_test(first, second, part), 1)
        print(f"permutation test, 1,000 by curves, N = {n:,}: {spent:.1f} s (no bar)")


def main() -> None:
    """Read the options and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="rows of the timed curve")
    parser.add_argument("--largest", type=int, default=10_000_000, help="largest N for growth")
    parser.add_argument("--resampled", type=int, default=100_000, help="rows for resampling")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the best counts")
    parser.add_argument("--by-curves", action="store_true", help="time permutations by curves too")
    options = parser.parse_args()
    report_curve(options.n, options.repeats)
    report_growth(options.largest, options.repeats)
    report_resampling(options.resampled, options.by_curves)


if __name__ == "__main__":
    main()
