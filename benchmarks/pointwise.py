"""Processor time of `howsure simulate` against a plain script of the same trials, in the same run.

    python benchmarks/pointwise.py
    python benchmarks/pointwise.py --trials 100 --pairs linear_t/heteroscedastic

The plain script draws each training set of the same world, fits the same method, and compares its
intervals at four coverages with the known truth at each x; it keeps nothing and makes no bands.
Both are whole processes, children and imports included; beside it stands what is left of both when
the time of two trials, which is nearly all imports, is taken off. Bar: 5× with imports.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from scipy import special

COVERAGES = (0.7, 0.8, 0.9, 0.95)
BAR = 5
PAIRS = (
    "linear_t/heteroscedastic",
    "linear_t/linear",
    "naive_bootstrap:regressor=linear/linear",
)
Array = np.ndarray
Drawn = tuple[Array, Array]
PredictiveLaw = tuple[Array, Array, Array, float]
"""Mean, its standard error, that of a new y, and degrees of freedom."""


def line(x: Array, y: Array, points: Array) -> PredictiveLaw:
    """Least squares with Student's t intervals."""
    columns, at = (np.column_stack([np.ones(len(each)), each]) for each in (x, points))
    inverse = np.linalg.inv(columns.T @ columns)
    slopes = inverse @ (columns.T @ y)
    freedom = len(y) - columns.shape[1]
    variance = np.square(y - columns @ slopes).sum() / freedom
    leverage = np.einsum("ij,jk,ik->i", at, inverse, at)
    own, new = np.sqrt(variance * leverage), np.sqrt(variance * (1 + leverage))
    return at @ slopes, own, new, freedom


def bootstrap(x: Array, y: Array, points: Array, members: int = 50) -> PredictiveLaw:
    """The naive bootstrap of straight lines; 13 % of the rows tell the noise."""
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(1)
    order, share = rng.permutation(len(y)), round(0.13 * len(y))
    held, own = order[:share], order[share:]
    at, forecasts = np.concatenate([x[held], points]), []
    for _ in range(members):
        rows = own[rng.integers(len(own), size=len(own))]
        forecasts.append(LinearRegression().fit(x[rows], y[rows]).predict(at))
    mean, variance = np.mean(forecasts, axis=0), np.var(forecasts, axis=0, ddof=1)
    noise = np.maximum(np.square(y[held] - mean[:share]) - variance[:share], 0.0).mean()
    spread = variance[share:]
    return mean[share:], np.sqrt(spread), np.sqrt(spread + noise), members


def plain(method: str, world: str, trials: int) -> None:
    """The same trials without howsure."""
    fit: Callable[[Array, Array, Array], PredictiveLaw] = (
        line if method == "linear_t" else bootstrap
    )
    rng, straight = np.random.default_rng(0), world == "linear"
    rows, count, reach = (25, 500, 2.0) if straight else (1000, 1000, 0.5)

    def truth(x: Array) -> Drawn:
        return (x, np.full(len(x), 0.1)) if straight else ((2 * x - 1) ** 3, 0.1 + x**2)

    def draw(n: int) -> Drawn:
        x = rng.uniform(-reach, reach, n)
        mean, scale = truth(x)
        return x[:, None], mean + scale * rng.standard_normal(n)

    points, outcomes = draw(count)
    mean, sd = truth(points[:, 0])
    mass, holds = np.empty((2, trials, len(COVERAGES), count))
    seen, widths = np.empty((2, trials, len(COVERAGES)))
    for trial in range(trials):
        center, own, new, freedom = fit(*draw(rows), points)
        for k, coverage in enumerate(COVERAGES):
            times = special.stdtrit(freedom, 0.5 + coverage / 2)
            low, high = center - times * new, center + times * new
            mass[trial, k] = special.ndtr((high - mean) / sd) - special.ndtr((low - mean) / sd)
            holds[trial, k] = np.abs(mean - center) <= times * own
            seen[trial, k] = ((low <= outcomes) & (outcomes <= high)).mean()
            widths[trial, k] = (high - low).mean()
    for k, coverage in enumerate(COVERAGES):
        picf, cicf = mass[:, k].mean(axis=0), holds[:, k].mean(axis=0)
        error = mass[:, k].std(axis=0, ddof=1) / np.sqrt(trials)
        off = (np.abs(picf - coverage) > 3 * error).mean()
        brier = np.square(picf - coverage).mean()
        means = seen[:, k].mean(), picf.mean(), brier, off, cicf.mean(), widths[:, k].mean()
        print(coverage, *means)


def spent(command: list[str], repeats: int) -> float:
    """The least processor time of a command, in seconds."""
    alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    best = float("inf")
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env={**os.environ, **alone}, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, sum(after[:2]) - sum(before[:2]))
    return best


def main() -> None:
    """Print one line for each pair and number of trials."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", nargs="+", default=PAIRS, help="METHOD/WORLD")
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plain", nargs=3, metavar=("METHOD", "WORLD", "TRIALS"))
    chosen = parser.parse_args()
    if chosen.plain:
        method, world, trials = chosen.plain
        plain(method, world, int(trials))
        return
    for pair in chosen.pairs:
        method, _, world = pair.partition("/")
        scripts = (
            [sys.executable, __file__, "--plain", method, world],
            [sys.executable, "-m", "howsure", "simulate", world, "--method", method, "--trials"],
        )
        few = [spent([*script, "2"], chosen.repeats) for script in scripts]
        for trials in chosen.trials:
            theirs, ours = (spent([*script, str(trials)], chosen.repeats) for script in scripts)
            left = [max(own - start, 0.01) for own, start in zip((theirs, ours), few, strict=True)]
            print(
                f"{pair}, {trials} trials: plain {theirs:.2f} s, howsure {ours:.2f} s: "
                f"{ours / theirs:.1f}× (bar {BAR}×); without imports {left[0]:.2f} and "
                f"{left[1]:.2f} s: {left[1] / left[0]:.1f}×",
                flush=True,
            )


if __name__ == "__main__":
    main()
