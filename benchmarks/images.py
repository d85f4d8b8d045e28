"""Time the drawing of the synthetic images, and compare the two recipes for cells.

    python benchmarks/images.py
    python benchmarks/images.py --images 2000

Rates are images a second of one core's own time (and of the clock, in brackets), in one process
and one thread, after the bank of nuclei is drawn. Counts are uniform on 1 … 200.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from howsure.studies.tasks.images import draw_cells, draw_chairs
from howsure.studies.tasks.images.cells import Recipe

GOALS = {"faithful": 100, "direct": 2000}


def rate(draw: Callable[[], np.ndarray]) -> tuple[float, float, np.ndarray]:
    """Images a second of the processor's time and of the clock, and the images."""
    busy, clock = time.process_time(), time.perf_counter()
    drawn = draw()
    busy, clock = time.process_time() - busy, time.perf_counter() - clock
    return len(drawn) / busy, len(drawn) / clock, drawn


def looks(drawn: np.ndarray, counts: np.ndarray) -> str:
    """Mean and sd of brightness, and the slope of a picture's mean on its count."""
    means = drawn.mean(axis=(1, 2))
    spread = drawn.reshape(len(drawn), -1).std(axis=1).mean()
    return f"mean {means.mean():.1f}, sd {spread:.1f}, slope {np.polyfit(counts, means, 1)[0]:.3f}"


def cells(images: int) -> None:
    counts = np.random.default_rng(0).integers(1, 201, images)
    recipes: tuple[Recipe, ...] = ("faithful", "direct")
    for recipe in recipes:
        _, start, _ = rate(partial(draw_cells, [10], recipe=recipe))
        busy, clock, drawn = rate(partial(draw_cells, counts, recipe=recipe))
        print(
            f"cells, {recipe}: {busy:,.0f} images/s ({clock:,.0f}); goal {GOALS[recipe]:,}; "
            f"first one {1 / start:.1f} s; {looks(drawn, counts)}"
        )


def chairs(images: int) -> None:
    draws = np.random.default_rng(0)
    design, yaw = draws.integers(0, 49, images), draws.uniform(0.1, 89.9, images)
    draw_chairs(np.arange(49), np.full(49, 45.0))
    busy, clock, _ = rate(partial(draw_chairs, design, yaw))
    print(f"chairs: {busy:,.0f} images/s ({clock:,.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=1000)
    images = parser.parse_args().images
    cells(images)
    chairs(images)


if __name__ == "__main__":
    main()
