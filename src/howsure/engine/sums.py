"""Statistics written once, on sums over rows: of rows at hand, and of parts that are added up.

A mean needs nothing for that. A statistic of means names row values, and says how it follows from
their means. Its influence values are slopes times the deviations of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint

if TYPE_CHECKING:
    from howsure.engine.view import View

Columns = Callable[["View", float], tuple[FloatArray, ...]]
Value = Callable[[Joint], tuple[Estimate, FloatArray | None]]


def _nothing(view: View, coverage: float) -> tuple[FloatArray, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Sums:
    """How a statistic follows from sums over rows."""

    columns: Columns  # of a view and a coverage, row values whose moments are kept together
    # of all means, the estimate without influence values, and its slopes in those of `columns`: a
    # row's influence is slopes · (its values − means). None where it has none.
    value: Value
    # row values of which mean, least and greatest suffice; they follow the others
    beside: Columns = _nothing
    # the place of the column whose square is kept too, as the next one. Squares lose their digits
    # far from 0, so both are about an origin near the rows.
    squared: int | None = None

    def rows(self, view: View, coverage: float, origin: float = 0.0) -> tuple[FloatArray, ...]:
        """The columns of some rows, with the squares about an origin."""
        columns = list(self.columns(view, coverage))
        if self.squared is not None:
            off = columns[self.squared] - origin
            columns[self.squared : self.squared + 1] = off, np.square(off)
        return tuple(columns)


@np.errstate(over="ignore", invalid="ignore")
def of_rows(
    value: Value,
    columns: Sequence[FloatArray],
    *,
    beside: Sequence[FloatArray] = (),
    weights: FloatArray | None = None,
    unit: float = 1.0,
    squares: FloatArray | None = None,
    cancels: bool = False,
) -> Estimate:
    """A statistic of sums, of rows at hand: with the influence of each, and its squared errors.

    Columns may be in another unit than the statistic, of which `unit` is the size.
    """
    joint = Joint.of(columns, beside, weights, cubes=False)
    estimate, slopes = value(joint)
    if slopes is None:
        return estimate
    influence = np.zeros(len(columns[0]))
    for slope, column, mean in zip(unit * slopes, columns, joint.mean, strict=False):
        off = column - mean
        off *= slope
        influence += off
    if weights is not None:
        influence[weights == 0.0] = 0.0
    return replace(
        estimate, value=unit * estimate.value, influence=influence, squares=squares, cancels=cancels
    )


def root_mean(sums: Joint) -> tuple[Estimate, FloatArray]:
    """The root of a mean."""
    root = math.sqrt(float(sums.mean[0]))
    return Estimate(root), np.array([0.5 / root if root > 0.0 else 0.0])
