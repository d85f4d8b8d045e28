"""Whether models differ in their gain over a constant band."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.rng import row_keys
from howsure.engine.metric import MISS_RANGE
from howsure.stats.bootstrap import subsample
from howsure.topics.characteristic import AreaRequest, CharacteristicCurve
from howsure.topics.characteristic.resampling import gain_differences, permutation_tests

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation

_ROWS = 20_000
"""The most rows of which curves are compared."""


def compared(
    evaluations: Sequence[Evaluation],
    pairs: Sequence[tuple[int, int]],
    confidence: float,
    seed: int,
) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Gain over a constant band: paired bootstrap of the difference, permutation of the areas."""
    curves: dict[int, CharacteristicCurve] = {}
    for place, evaluation in enumerate(evaluations):
        with contextlib.suppress(UnanswerableError):
            if not len(evaluation.view.get("recentred_rows")):
                curves[place] = evaluation.view.get("characteristic")
    asked = [(a, b) for a, b in pairs if a in curves and b in curves]
    if not asked:
        return
    held, note = evaluations[0].evalset, ""
    cluster = None if held.cluster is None else held.cluster.codes
    if held.n > _ROWS:
        keys = row_keys(held.y, *(curve.bands.error for curve in curves.values()))
        rows = subsample(keys, _ROWS, seed=seed, name="compare curves")
        curves = {place: curve.take(rows) for place, curve in curves.items()}
        cluster = None if cluster is None else np.unique(cluster[rows], return_inverse=True)[1]
        note = f"on {_ROWS:,} rows"
    column = {place: index for index, place in enumerate(curves)}
    columns = [(column[a], column[b]) for a, b in asked]
    every = list(curves.values())
    requests = {"characteristic_gain": AreaRequest()}
    part = evaluations[0].view.miss_range
    if part != MISS_RANGE:  # each partial area needs a curve for every swap: only where asked for
        requests |= {
            "characteristic_partial_gain": AreaRequest(y_range=part),
            "characteristic_left_gain": AreaRequest(y_range=part, reading="left"),
        }
    for metric, request in requests.items():
        swaps = 2_000 if request.y_range is None else 500
        common: dict[str, Any] = {"cluster": cluster, "seed": seed}
        gains = gain_differences(
            every, columns, request, confidence=confidence, replicates=500, **common
        )
        tests = permutation_tests(every, columns, request, permutations=swaps, **common)
        values = {place: curve.gain_by(request).value for place, curve in curves.items()}
        for pair, drawn, tested in zip(asked, gains, tests, strict=True):
            yield (
                pair,
                {
                    "metric": metric,
                    "coverage": math.nan,
                    "value_a": values[pair[0]],
                    "value_b": values[pair[1]],
                    "difference": drawn.value,
                    "lower": drawn.lower,
                    "upper": drawn.upper,
                    "p_value": tested.p_value,
                    "note": "; ".join(p for p in (note, drawn.reason, tested.reason) if p),
                },
            )
