"""Results of the shift benchmark with made-up rows, quick to make."""

from __future__ import annotations

from functools import cache

import numpy as np

from howsure_studies.shift import SHIFT_METHODS, Answers, ShiftResult, evaluate_shift

SELECTIVE = tuple(key for key, method in SHIFT_METHODS.items() if method.score is not None)


def made(
    task: str,
    method: str,
    *,
    spread: float = 1.0,
    away: float = 0.0,
    selective: bool = False,
    tests: tuple[str, ...] = ("full",),
    coverage: float = 0.9,
    runs: int = 3,
    rows: int = 400,
) -> ShiftResult:
    """Errors normal at home; `spread` times as large on a half of each test's rows.

    A selective method's score tells the two halves apart where `away` is large.
    """
    rng = np.random.default_rng(sum(map(ord, task + method)))
    done = []
    for _ in range(runs):
        parts = {}
        for place, name in enumerate(("val", *tests)):
            degree = 0.0 if name == "val" else 1.0 if place == 1 else (place - 1) / len(tests)
            foreign = np.arange(rows) < rows // 2
            scale = np.where(foreign, 1 + degree * (spread - 1), 1.0)
            y = rng.normal(size=rows)
            point = y + scale * rng.normal(size=rows)
            score = rng.normal(size=rows) + degree * away * foreign if selective else None
            parts[name] = Answers(y=y, point=point, lower=point - 1, upper=point + 1, score=score)
        done.append(evaluate_shift(parts.pop("val"), parts, coverage=coverage))
    return ShiftResult(
        task=task,
        method=method,
        coverage=coverage,
        rule="paper",
        runs=tuple(done),
        units="nuclei",
    )


WORLDS = {
    "cells": 1.0,
    "cells-tails": 6.0,
    "cells-gap": 4.0,
    "chair-angle": 1.0,
    "chair-angle-gap": 3.0,
}


@cache
def benchmark(*, coverage: float = 0.9, titles: bool = True) -> dict[str, list[ShiftResult]]:
    """The ten methods on five sets; densities tell foreign rows apart, variances hardly."""
    found: dict[str, list[ShiftResult]] = {}
    for world, spread in WORLDS.items():
        steps = world in ("cells-tails", "chair-angle-gap")
        tests = ("full", "step-1", "step-2", "step-3") if steps else ("full",)
        for place, (key, method) in enumerate(SHIFT_METHODS.items()):
            away = 6.0 if key.endswith(("gmm", "knn")) else 0.5
            result = made(
                world,
                method.title if titles else key,
                spread=spread * (1 + 0.05 * place) if spread > 1 else 1.0,
                away=away if spread > 1 else 0.0,
                selective=key in SELECTIVE,
                tests=tests,
                coverage=coverage,
            )
            found.setdefault(world, []).append(result)
    return found
