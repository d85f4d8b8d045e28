"""Measures of label sets in the assessment of a table, by their definitions and their laws."""

from __future__ import annotations

import math

import numpy as np

from howsure.core.records import Direction, Record
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet, LabelSets

MEASURES = ("set_size", "empty_sets", "sscv")


def made(n: int, seed: int, share: float = 0.9) -> EvalSet:
    """Sets of sizes 0 to 12 of 12 classes, each holding the class by a coin of its own."""
    rng = child(seed, "label sets")
    y = rng.integers(0, 12, n)
    members = rng.random((n, 12)) < rng.beta(0.5, 1.0, n)[:, None]
    members[np.arange(n), y] = rng.random(n) < share
    return EvalSet.checked(y, LabelSets(members, coverage=0.9))


def found(held: EvalSet) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held).records}


def test_values_follow_the_definitions() -> None:
    held = made(300, 0)
    records = found(held)
    prediction = held.predictions[0]
    assert isinstance(prediction, LabelSets)
    sizes = [sum(row) for row in prediction.members.tolist()]
    hits = [row[int(k)] for row, k in zip(prediction.members.tolist(), held.y, strict=True)]
    empty = sum(size == 0 for size in sizes)
    assert 0 < empty < 300
    assert records["empty_sets"].value == empty / 300
    assert records["empty_sets"].lower < empty / 300 < records["empty_sets"].upper
    assert records["empty_sets"].direction is Direction.NONE
    gaps = []
    for low, high in ((0, 1), (2, 3), (4, 10), (11, 100)):
        stratum = [hit for hit, size in zip(hits, sizes, strict=True) if low <= size <= high]
        gaps += [abs(0.9 - sum(stratum) / len(stratum))] if stratum else []
    assert math.isclose(records["sscv"].value, max(gaps), rel_tol=1e-12)
    assert records["sscv"].coverage == 0.9


def test_sscv_of_a_perfect_model_keeps_to_its_null() -> None:
    """Coins of the claimed coverage, drawn for sets of given sizes, give the null of the record."""
    held = made(300, 1)
    record = found(held)["sscv"]
    prediction = held.predictions[0]
    assert isinstance(prediction, LabelSets)
    strata = [
        (prediction.sizes >= low) & (prediction.sizes <= high)
        for low, high in ((0, 1), (2, 3), (4, 10), (11, 100))
    ]
    hits = child(2, "coins").random((4000, 300)) < 0.9
    drawn = np.max([abs(0.9 - hits[:, s].mean(axis=1)) for s in strata if s.any()], axis=0)
    assert abs(drawn.mean() - record.null) < 4 * drawn.std() / math.sqrt(4000)
    beyond = (drawn > record.null_upper + 1e-9).mean()
    assert beyond <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    as_far = (drawn >= record.value - 1e-9).mean()
    assert abs(record.p - as_far) < 4 * math.sqrt(0.25 / 4000)


def test_order_changes_nothing_and_a_weight_of_two_is_a_row_twice() -> None:
    held = made(120, 3)
    counts = child(4, "weights").integers(0, 4, 120)
    order = child(5, "order").permutation(120)
    weighted = EvalSet.checked(held.y, held.predictions, weights=counts)
    repeated = held.take(np.repeat(np.arange(120), counts))
    for one, other in ((held, held.take(order)), (weighted, repeated)):
        first, second = found(one), found(other)
        for name in MEASURES:
            for part in ("value", "lower", "upper", "null", "null_upper", "p", "n"):
                a, b = (getattr(each[name], part) for each in (first, second))
                assert math.isclose(a, b, rel_tol=1e-9) or (math.isnan(a) and math.isnan(b)), part


def test_what_other_tables_lack_is_told() -> None:
    clusters = EvalSet.checked(made(60, 6).y, made(60, 6).predictions, cluster=np.arange(60) // 3)
    told = found(clusters)
    assert "independent rows" in told["sscv"].reason
    assert told["empty_sets"].upper > told["empty_sets"].value
