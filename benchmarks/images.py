"""Time the drawing of the synthetic images, compare the recipes for cells, and count in them.

    python benchmarks/images.py
    python benchmarks/images.py --images 2000
    python benchmarks/images.py --counting --train 10000 --epochs 15

Rates are images a second of one core's own time (and of the clock, in brackets), in one process
and one thread, after the bank of nuclei is drawn. Counts are uniform on 1 … 200.

With ``--counting``: mean absolute errors on 1,000 validation pictures of boosting on global
statistics and of networks trained on the same pictures as the plan ``shift_small`` trains them,
and what their conformal intervals cover on each set's test pictures.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from howsure.core.rng import child
from howsure_studies.tasks import Part
from howsure_studies.tasks.images import draw_cells, draw_chairs, image_task
from howsure_studies.tasks.images.cells import RECIPE, Recipe

GOALS = {"faithful": 100, "direct": 2000, "micrograph": 1000}
SETS = {
    "mean brightness": slice(0, 1),
    "statistics": slice(0, 62),
    "statistics divided by the mean": slice(62, 124),
    "statistics standardised": slice(124, 186),
    "all statistics": slice(None),
}


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
    for recipe in get_args(Recipe):
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


def counted(world: str, args: argparse.Namespace) -> None:
    """Errors of statistics and of networks on one task, and the networks' coverage on its test."""
    import torch
    from sklearn.ensemble import HistGradientBoostingRegressor

    from howsure_studies.engine import load_plan
    from howsure_studies.methods.deep.heads import SquaredError
    from howsure_studies.methods.deep.modules import ModuleTraining, train_module
    from howsure_studies.shift import ShiftOptions
    from howsure_studies.shift.baselines import global_statistics

    torch.set_num_threads(1)
    task = image_task(world, train=args.train, val=1000, test=1000, recipe=args.recipe)
    train, val, test = (task.part(name) for name in ("train", "val", task.tests[0]))
    home, held = global_statistics(train.x), global_statistics(val.x)
    for name, columns in SETS.items():
        boosting = HistGradientBoostingRegressor(random_state=0).fit(home[:, columns], train.y)
        error = np.abs(boosting.predict(held[:, columns]) - val.y).mean()
        print(f"{world}, boosting on {name}: MAE {error:.2f}", flush=True)
    plan = load_plan("shift_small")
    asked = plan.read(ShiftOptions).training(
        plan.worlds[world]["backbone"], images=True, spectral=False
    )
    training = ModuleTraining(**asked["recipe"])
    if args.epochs:
        short = args.epochs / training.epochs
        training = replace(
            training,
            epochs=args.epochs,
            warm_epochs=round(short * training.warm_epochs),
            frozen_epochs=round(short * training.frozen_epochs),
        )
    answers = []
    for number in range(args.networks):
        busy = time.process_time()
        network = train_module(
            train.x,
            train.y,
            head=SquaredError(),
            backbone=asked["backbone"],
            recipe=training,
            rng=child(0, "shift", "direct", number),
            scaling=task.scaling,
        )
        scale = network.scale
        answers.append(
            [
                scale.y_center + scale.y_unit * network.predict_all(part.x)[0][0]
                for part in (val, test)
            ]
        )
        told(
            f"{world}, network {number} ({time.process_time() - busy:.0f} s)",
            answers[-1:],
            val,
            test,
        )
    if len(answers) > 1:
        told(f"{world}, mean of the networks", answers, val, test)


def told(name: str, answers: list[list[np.ndarray]], val: Part, test: Part) -> None:
    """Print the error at home, and what intervals of one width cover elsewhere."""
    home, away = (np.mean([one[place] for one in answers], axis=0) for place in (0, 1))
    errors = np.sort(np.abs(home - val.y))
    reach = errors[int(np.ceil(0.9 * (len(errors) + 1))) - 1]
    covered = np.abs(away - test.y) <= reach
    print(f"{name}: MAE {errors.mean():.2f}, ± {reach:.1f} covers {covered.mean():.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--counting", action="store_true")
    parser.add_argument("--recipe", choices=get_args(Recipe), default=RECIPE)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--epochs", type=int, help="those of the plan if omitted")
    parser.add_argument("--networks", type=int, default=3)
    args = parser.parse_args()
    if args.counting:
        for world in ("cells", "cells-tails", "cells-gap"):
            counted(world, args)
        return
    cells(args.images)
    chairs(args.images)


if __name__ == "__main__":
    main()
