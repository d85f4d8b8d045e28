"""A kind of prediction answers what it can be asked; no list elsewhere names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import pytest

import howsure
from howsure.core.arrays import FloatArray
from howsure.engine import view
from howsure.predictions import Distribution, Intervals, LabelSets, Quantiles, Samples
from howsure.predictions.base import Prediction, Rows, tail_levels


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ranges(Prediction):
    """Uniform laws, as a stranger would write them."""

    kind: ClassVar[str] = "ranges"
    low: FloatArray
    high: FloatArray

    @property
    def n(self) -> int:
        return len(self.low)

    def take(self, rows: Rows) -> Self:
        return type(self)(self.low[rows], self.high[rows])

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        first, last = tail_levels(coverage)
        width = self.high - self.low
        return self.low + first * width, self.low + last * width

    def cdf(self, y: FloatArray) -> FloatArray:
        return np.clip((y - self.low) / (self.high - self.low), 0.0, 1.0)

    def point(self) -> FloatArray:
        return (self.low + self.high) / 2.0

    def sd(self) -> FloatArray:
        return (self.high - self.low) / np.sqrt(12.0)


def test_a_new_kind_is_measured_as_the_same_law_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view, "KIND_PRIORITY", (*view.KIND_PRIORITY, Ranges))
    rng = np.random.default_rng(0)
    middle, half = rng.normal(size=300), rng.uniform(0.5, 2.0, 300)
    y, x = middle + half * rng.uniform(-1.2, 1.2, 300), {"x": half}
    new = howsure.assess(y, Ranges(middle - half, middle + half), features=x)
    law = Distribution("uniform", {"loc": middle - half, "scale": 2.0 * half})
    known = howsure.assess(y, law, features=x)
    for metric in ("empirical_coverage", "mean_squared_z", "miscalibration_area", "kendall_tau"):
        assert new.value(metric) == pytest.approx(known.value(metric), rel=1e-9), metric
    assert new.record("worst_slab").source == "ranges"
    assert new.record("crps").reason.startswith("the table has no distributions")


def test_what_kinds_say_of_themselves() -> None:
    low, high = np.zeros(3), np.ones(3)
    kinds = {
        "intervals at 90 %": Intervals(low, high, coverage=0.9),
        "intervals of unknown coverage": Intervals(low, high),
        "quantiles at levels 0.1, 0.9": Quantiles([0.1, 0.9], np.c_[low, high]),
        "4 members": Samples(np.ones((3, 4))),
        "a distribution": Distribution.normal(low, high),
        "label sets": LabelSets(np.ones((3, 2), dtype=bool), coverage=0.8),
    }
    assert [kind.described() for kind in kinds.values()] == list(kinds)
    bound = [kind.own_coverages for kind in kinds.values()]
    assert bound[0] == (0.9,)
    assert np.isnan(bound[1]).all()
    assert bound[2:] == [(), (), (), (0.8,)]
    levels = [kind.own_levels for kind in kinds.values()]
    assert levels == [(0.05, 0.95), (), (0.1, 0.9), (), (), ()]
    assert [kind.draws for kind in kinds.values()] == [0, 0, 0, 4, 0, 0]
    points = ["midpoint", "midpoint", "median", "mean", "mean", ""]
    assert [kind.point_is for kind in kinds.values()] == points
