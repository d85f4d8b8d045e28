"""Models beside each other: scores that mean the same, every pair, and the set of the best."""

from __future__ import annotations

import numpy as np
from scipy import stats

from howsure.core.records import Table
from howsure.core.rng import child
from howsure.metrics.compare import compare
from howsure.metrics.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples

N = 2_000
SCORES = ("crps", "crps_fair", "pinball", "weighted_interval_score", "interval_score", "log_score")
Z = child(0, "comparison").normal(size=N)
ZERO = np.zeros(N)
LAW = Distribution.normal(ZERO, 1.0)
QUARTERS = np.array([0.25, 0.5, 0.75])


def compared(*beliefs: Prediction | None, y: np.ndarray = Z, **known: object) -> Table:
    sets = [
        EvalSet.checked(y, () if b is None else b, model="abcdefghij"[place], **known)  # type: ignore[arg-type]
        for place, b in enumerate(beliefs)
    ]
    return compare([evaluate(held) for held in sets])


def won(table: Table, metrics: tuple[str, ...] = SCORES) -> dict[str, str]:
    """Which of two models is better by each score; "" where it does not tell them apart."""
    found = {}
    for row in range(len(table)):
        name = str(table.columns["metric"][row])
        if name in metrics and np.isfinite(table.columns["difference"][row]):
            apart = table.columns["p_value"][row] < 0.05
            lower = "a" if table.columns["difference"][row] < 0 else "b"
            found[name] = lower if apart else ""
    return found


def members(size: int, scale: float, name: str, n: int = N) -> Samples:
    return Samples(scale * child(1, "members", name).normal(size=(n, size)))


def test_three_wrong_quantiles_do_not_beat_the_law_that_is_right() -> None:
    wrong = Quantiles(QUARTERS, 0.2 + 1.3 * np.tile(stats.norm.ppf(QUARTERS), (N, 1)))
    found = won(compared(LAW, wrong))
    assert set(found.values()) == {"a"}
    assert "pinball" in found


def test_a_law_too_wide_does_not_win_by_more_members() -> None:
    found = won(compared(members(10, 1.0, "few"), members(50, 1.15, "many")))
    assert "b" not in found.values()
    assert found["crps"] == "a"


def test_the_same_law_in_few_members_and_in_many_cannot_be_told_apart() -> None:
    few, many = members(5, 1.0, "five"), members(100, 1.0, "hundred")
    assert set(won(compared(few, many)).values()) == {""}
    assert set(won(compared(LAW, few)).values()) == {""}
