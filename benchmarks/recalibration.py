"""How long each way to recalibrate takes, as a ratio to `scale` on the same rows, the plainest.

Run: python -m benchmarks.recalibration [--rows 5000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import special

from howsure import Distribution, Quantiles, Samples
from howsure.core.rng import child
from howsure.predictions import EvalSet, Prediction
from howsure.recalibration import METHODS, methods_of
from howsure.recalibration.info import RecalibrationOptions

LEVELS = np.arange(1, 24) / 24
WAYS = ("scale", "shift", "shift_scale", "widths", "shape", "isotonic_variance")
REPEATS = 5


def rows(kind: str, n: int) -> EvalSet:
    """Rows whose predicted spreads are a power of the right ones."""
    rng = child(0, "benchmark", "recalibration", kind)
    center, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    y = center + sd * rng.normal(size=n)
    made: dict[str, Prediction] = {
        "distributions": Distribution.normal(center, sd**1.4),
        "quantiles": Quantiles(
            LEVELS, center[:, None] + sd[:, None] ** 1.4 * special.ndtri(LEVELS)
        ),
        "samples": Samples(center[:, None] + sd[:, None] ** 1.4 * rng.normal(size=(n, 50))),
    }
    return EvalSet.checked(y, made[kind])


def seconds(kind: str, way: str, held: EvalSet) -> float:
    """The fastest of a few runs of fit and apply."""
    took = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        METHODS[way].make(kind, RecalibrationOptions()).fit(held).apply(held)
        took.append(time.perf_counter() - start)
    return min(took)


def main() -> None:
    """Print seconds and ratios, a row a kind and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    n = parser.parse_args().rows
    for kind in ("distributions", "quantiles", "samples"):
        held = rows(kind, n)
        plainest = seconds(kind, "scale", held)
        for way in WAYS:
            if way in methods_of(kind):
                took = seconds(kind, way, held)
                print(f"{kind:>14} {way:<18} {took:7.3f} s  {took / plainest:6.1f} × scale")


if __name__ == "__main__":
    main()
