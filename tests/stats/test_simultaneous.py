"""How sure each of several intervals must be, for all to hold at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from howsure.core.rng import child
from howsure.core.times import Chronology
from howsure.core.weights import Weights
from howsure.stats.estimate import joint_level


def together(correlation: float, size: int) -> float:
    """The level by SciPy's multivariate normal law, for equal correlations."""
    matrix = np.full((size, size), correlation) + (1.0 - correlation) * np.eye(size)
    law = stats.multivariate_normal(cov=matrix, allow_singular=True)

    def off(z: float) -> float:
        ends = np.full(size, z)
        return float(law.cdf(ends, lower_limit=-ends, rng=np.random.default_rng(0))) - 0.95

    return float(2.0 * stats.norm.cdf(optimize.brentq(off, 1.5, 4.0, xtol=1e-5)) - 1.0)


@pytest.mark.parametrize("size", [1, 2, 12])
def test_independent_rows_of_disjoint_groups_need_the_root(size: int) -> None:
    groups = np.tile(np.arange(size), 30)
    values = child(0, "rows").normal(size=len(groups))
    assert joint_level(values, groups, size) == pytest.approx(0.95 ** (1 / size))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["clusters", "times"])
def test_groups_that_share_units_need_what_the_normal_law_says(
    kind: str, correlation: float
) -> None:
    """A row of each group in each of 4,000 units; the shrinkage of so many tells little."""
    size, count = 4, 4_000
    rng = child(0, "shared units", kind, str(correlation))
    common, own = rng.normal(size=(count, 1)), rng.normal(size=(count, size))
    values = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    values = (values - values.mean(axis=0)).ravel()
    groups, units = np.tile(np.arange(size), count), np.repeat(np.arange(count), size)
    held = Chronology(units) if kind == "times" else units
    found = joint_level(values, groups, size, units=held)
    assert found == pytest.approx(together(correlation, size), abs=0.0025)


def test_a_lag_between_groups_is_seen_through() -> None:
    """The same series three times later: means go together, though no time has both alike."""
    count = 2_000
    series = child(0, "lagged").normal(size=count)
    values = np.concatenate([series, np.roll(series, 3)])
    groups, times = np.repeat([0, 1], count), np.tile(np.arange(count), 2)
    found = joint_level(values - values.mean(), groups, 2, units=Chronology(times))
    assert 0.95 <= found < 0.965 < 0.95**0.5


def test_a_weight_of_two_is_a_row_twice() -> None:
    rng = child(0, "weights")
    groups, units = rng.integers(0, 3, 200), rng.integers(0, 20, 200)
    counts, values = rng.integers(1, 4, 200), rng.normal(size=200) + 0.2 * units
    twice = np.repeat(np.arange(200), counts)
    weights = Weights.checked(counts, "frequency", length=200)
    assert joint_level(values, groups, 3, weights, units) == pytest.approx(
        joint_level(values[twice], groups[twice], 3, units=units[twice])
    )


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200])
@pytest.mark.parametrize("kind", ["clusters", "times"])
def test_units_of_y_change_nothing(kind: str, unit: float) -> None:
    together = np.repeat(np.arange(50), 2)
    values, groups = child(0, "units").normal(size=50)[together], np.tile([0, 1], 50)
    units = Chronology(together) if kind == "times" else together
    found = joint_level(values, groups, 2, units=units)
    assert found < 0.95**0.5 - 0.003  # one and the same
    assert joint_level(unit * values, groups, 2, units=units) == pytest.approx(found, rel=1e-12)
