"""One model, calibrated on validation rows and tried on test parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.methods.conformal.ranks import order_statistics
from howsure.studies.shift.rows import ShiftTest

_Z: Final = 1.959964
"""How many standard errors off the neighbours of a cut lie: near enough for a derivative, and far
enough that it is not all chance."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """An order statistic of validation numbers, and what it might have been on other rows.

    Attributes
    ----------
    value : float
        The order statistic; +inf where its rank exceeds the rows, NaN where a row has no number.
    rank : int
        Its rank, counted from 1.
    n : int
        How many numbers there are.
    low, high : float
        The order statistics whose ranks lie 1.96 standard errors, √(n p(1 − p)), below and above.
    spacings : int
        Difference of their ranks; 0 where they are one.
    """

    value: float
    rank: int
    n: int
    low: float
    high: float
    spacings: int

    @property
    def step(self) -> float:
        """Difference of the levels of `low` and `high`."""
        return self.spacings / self.n

    @classmethod
    def at(cls, values: FloatArray, rank: int, share: float) -> Cut:
        """The order statistic of this rank, shape (n,) of numbers.

        Examples
        --------
        >>> cut = Cut.at(np.arange(100.0), 91, 0.9)
        >>> cut.value, cut.low, cut.high, cut.step
        (90.0, 84.0, 96.0, 0.12)
        """
        n = len(values)
        if np.isnan(values).any() or rank > n:
            none = math.nan if rank <= n else math.inf
            return cls(value=none, rank=rank, n=n, low=none, high=none, spacings=0)
        reach = max(round(_Z * math.sqrt(n * share * (1.0 - share))), 1)
        ranks = np.clip([rank - reach, rank, rank + reach], 1, n)
        low, value, high = map(float, order_statistics(values, ranks))
        spacings = int(ranks[2] - ranks[0])
        return cls(value=value, rank=rank, n=n, low=low, high=high, spacings=spacings)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftRun:
    """One model's numbers on the validation rows and on every test part.

    Attributes
    ----------
    val : ShiftTest
        The validation rows under their own calibration.
    tests : mapping of str to ShiftTest
        The test parts by name; the first is the main one.
    offset : Cut
        Q among the validation rows' excesses.
    cut : Cut, optional
        τ among the validation rows' scores; None where every row is accepted.
    """

    val: ShiftTest
    tests: Mapping[str, ShiftTest]
    offset: Cut
    cut: Cut | None = None

    @property
    def q(self) -> float:
        """The calibration offset Q, in the units of y."""
        return self.offset.value

    @property
    def rank(self) -> int:
        """Rank of Q among the excesses of the validation rows, counted from 1."""
        return self.offset.rank

    @property
    def threshold(self) -> float:
        """τ, in the units of the score; +inf where every row is accepted."""
        return math.inf if self.cut is None else self.cut.value

    @property
    def val_mae(self) -> float:
        """Mean |y − point| of all validation rows."""
        return self.val.mae_all

    @property
    def val_width(self) -> float:
        """Mean calibrated width of all validation rows."""
        return self.val.width_all

    @property
    def val_coverage(self) -> float:
        """Share of all validation rows that are covered."""
        return self.val.coverage_all
