"""Time the ease of tabular rows against the model's own predictions, in the same run.

    python benchmarks/adaptivity.py [--rows 10000] [--repeats 20] [--model forest]

Ease needs one prediction of the rows and one of each disturbed copy, so the bound is the time of
`repeats` + 1 predictions. Disturbed inputs are made beforehand for the reference, and predicted in
batches of the same size, so that the reference holds nothing but the model's own time. Both are
measured in turn several times; the least of each counts. On a busy machine look at processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.rng import row_keys
from howsure.stats.ease import GaussianNoise, ease

Array = npt.NDArray[np.float64]
BATCH = 16_384


def model_of(name: str, x: Array, y: Array) -> Any:
    """A fitted regressor."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    if name == "forest":
        return RandomForestRegressor(100, min_samples_leaf=2, random_state=0).fit(x, y)
    return HistGradientBoostingRegressor(max_iter=200, random_state=0).fit(x, y)


def least(runs: Sequence[Callable[[], Any]], times: int) -> list[tuple[float, float]]:
    """Shortest wall time and shortest processor time of each run, taken in turn."""
    clocks = time.perf_counter, time.process_time
    found = np.empty((times, len(runs), 2))
    for k in range(times):
        for place, run in enumerate(runs):
            start = [clock() for clock in clocks]
            run()
            found[k, place] = [clock() - begun for clock, begun in zip(clocks, start, strict=True)]
    return [(float(wall), float(busy)) for wall, busy in found.min(axis=0)]


def measure(name: str, rows: int, repeats: int, times: int) -> None:
    """Print the time of ease, of the predictions alone, and their ratio."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 10))
    y = x[:, 0] + np.sin(3 * x[:, 1]) + rng.normal(size=rows)
    model = model_of(name, x[:5000], y[:5000])
    noise = GaussianNoise.relative(x, 0.2)
    keys = row_keys(x)
    moved = np.concatenate([noise.apply(x, keys, 0, m) for m in range(repeats)])
    step = repeats * max(1, BATCH // repeats)
    model.predict(x[:100])

    def alone() -> None:
        for start in range(0, len(x), step // repeats):
            model.predict(x[start : start + step // repeats])
        for start in range(0, len(moved), step):
            model.predict(moved[start : start + step])

    (wall, busy), (own_wall, own_busy) = least(
        [lambda: ease(model.predict, x, noise, repeats=repeats, rows_at_once=BATCH), alone], times
    )
    print(
        f"{name:9s} {rows:,} rows × {repeats} noises: ease {wall:.2f} s, predictions alone "
        f"{own_wall:.2f} s, ratio {wall / own_wall:.3f} (processor {busy / own_busy:.3f})"
    )


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--model", choices=("forest", "boosting"), nargs="*", default=["forest"])
    chosen = parser.parse_args()
    for name in chosen.model:
        measure(name, chosen.rows, chosen.repeats, chosen.times)


if __name__ == "__main__":
    main()
