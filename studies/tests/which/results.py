"""Results of made-up methods on made-up tables, whose numbers are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from howsure_studies.which.judging import ALL, ARMS, BEST, FINDINGS
from howsure_studies.which.results import WhichResult


def result(
    table: str, method: str, ratios: Mapping[str, float], covers: Mapping[str, float], **more: Any
) -> WhichResult:
    """One result: scores against climatology and coverage by arm, 1 and 90 % where none is told."""
    share = np.full((len(ARMS), 3), 0.9)
    share[:, 2] = [covers.get(arm, 0.9) for arm in ARMS]
    facts: dict[str, Any] = {
        "shift": "",
        "by": "",
        "seed": 0,
        "rows": (700, 300, 2000),
        "failure": "",
        "width": np.ones(len(ARMS)),
        "worst": np.full((len(ARMS), 2), 0.85),
        "states": np.ones((len(ARMS), len(FINDINGS)), dtype=np.int8),
        "seconds": np.array([1.0, 1.5, 0.1]),
        **more,
    }
    return WhichResult(
        table=table,
        method=method,
        score=2.0 * np.array([ratios.get(arm, 1.0) for arm in ARMS]),
        climatology=2.0,
        coverage=share,
        **facts,
    )


def many(
    gaps: Mapping[str, float], tables: int = 12, noise: float = 0.02, **arms: float
) -> dict[str, list[WhichResult]]:
    """By world: methods whose log scores are these gaps and noise; arms have their own offset."""
    rng = np.random.default_rng(7)
    made: dict[str, list[WhichResult]] = {}
    for k in range(tables):
        world = f"table {k}"
        hard = rng.normal()
        made[world] = [result(world, "climatology", {}, {})]
        for method, gap in gaps.items():
            log = hard - 2.0 + gap + noise * rng.normal()
            ratios = {arm: math.exp(log + arms.get(arm, 0.0)) for arm in ARMS}
            made[world].append(result(world, method, ratios, {}))
    return made


__all__ = ["ALL", "BEST", "many", "result"]
