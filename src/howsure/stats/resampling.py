"""How draws give a measure its interval, and what chance alone would show."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Fraction, Natural


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling(Checked):
    """How the interval and the simulated floor of a measure are drawn.

    Parameters
    ----------
    replicates : int
        Bootstrap resamples of the rows; 0 for no interval.
    permutations : int
        Shuffles for a floor that has no closed form; 0 for none.
    confidence : float
        Of the interval and of the floor's upper end.
    seed : int
        Seed of all draws.

    Raises
    ------
    InputError
        If a count is negative, or the confidence leaves (0, 1).

    Examples
    --------
    >>> Resampling(replicates=0).confidence
    0.95
    """

    replicates: Natural = 500
    permutations: Natural = 500
    confidence: Fraction = 0.95
    seed: int = 0

    def interval(self, draws: FloatArray) -> tuple[float, float]:
        """Percentile interval; NaN without draws, or where one is not finite."""
        if len(draws) < 2 or not np.isfinite(draws).all():
            return math.nan, math.nan
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(draws, [tail, 1 - tail], method="weibull")
        return float(low), float(high)

    def around(self, value: float, draws: FloatArray) -> tuple[float, float]:
        """Interval of what a value estimates, from how draws lie about their own mean."""
        low, high = self.interval(draws)
        middle = float(draws.mean()) if len(draws) else math.nan
        return value - (high - middle), value - (low - middle)
