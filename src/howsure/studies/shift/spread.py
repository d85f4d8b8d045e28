"""How far a mean over models may lie from the truth, where models share the rows they meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.stats.binomial import wilson


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Variance of a mean over runs, by where it comes from, and the interval that follows.

    Attributes
    ----------
    models : float
        From the runs: other models would give other numbers. It holds what the chance of rows
        does to each run alone. 0 for a single run, of whose models nothing is known.
    rows, calibration : float
        From the test rows and from the validation rows, as far as all runs share their chance.
    degrees : float
        Degrees of freedom of the sum, by Satterthwaite's approximation.
    """

    models: float
    rows: float
    calibration: float
    degrees: float

    @property
    def variance(self) -> float:
        """The sum of the parts; NaN where one cannot be known."""
        return self.models + self.rows + self.calibration

    @property
    def standard_error(self) -> float:
        """Its root."""
        return math.sqrt(self.variance)

    def interval(self, value: float, confidence: float) -> tuple[float, float]:
        """value ± t · standard error."""
        reach = self._quantile(confidence) * self.standard_error
        return value - reach, value + reach

    def share_interval(self, value: float, n: float, confidence: float) -> tuple[float, float]:
        """Wilson's interval for a share, at the n that a binomial share of this variance has.

        Parameters
        ----------
        value : float
            The share.
        n : float
            The n to take where the variance is 0, as for a share of 0 or 1.
        confidence : float
            Of the interval.

        Returns
        -------
        low, high : float

        Notes
        -----
        With z and t the normal and the t quantile, n* = p(1 − p)/V · (z/t)²: the effective n of
        E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998), which they put into the
        exact interval.
        """
        if math.isnan(self.variance):
            return math.nan, math.nan
        z = float(special.ndtri(0.5 + 0.5 * confidence))
        alike = n if self.variance <= 0.0 else value * (1.0 - value) / self.variance
        if alike <= 0.0:
            alike = n
        effective = alike * (z / self._quantile(confidence)) ** 2
        low, high = wilson(value * effective, effective, confidence)
        return float(low), float(high)

    def _quantile(self, confidence: float) -> float:
        return float(special.stdtrit(self.degrees, 0.5 + 0.5 * confidence))


def crossed_spread(
    values: FloatArray,
    rows: Sequence[FloatArray],
    calibration: Sequence[FloatArray],
    degrees: float = math.inf,
) -> Spread:
    """Variance of the mean of runs that meet the same rows.

    Parameters
    ----------
    values : ndarray of float, shape (r,)
        One number a run.
    rows, calibration : sequence of r ndarrays of float, each of shape (n,) and (m,)
        For each run, how each test row and each validation row moves its number: influence
        values with mean 0. Empty where such rows play no part.
    degrees : float
        Degrees of freedom of the calibration part, where less than its rows allow.

    Returns
    -------
    Spread

    Notes
    -----
    A two-way layout of random effects, runs × rows: run r's number is θ + A_r + mean_i ψ_ri. With
    v the sample variance of the numbers and c the mean covariance of two runs' numbers that comes
    from the rows they share, the mean of R runs has the variance v/R + c: the idiosyncratic part
    of each run, also of its rows, is within v. c is the mean over pairs of runs of the sample
    covariance of their ψ over rows, over n, and 0 where that is negative; one run's own variance
    where there is one run. Runs that share models, as ensembles drawn with overlap do, are taken
    as independent.

    Examples
    --------
    >>> moved = np.array([0.5, -0.5, 0.5, -0.5])
    >>> crossed_spread(np.array([0.5]), [moved], []).rows
    0.0833
    """
    count = len(values)
    models = float(np.var(values, ddof=1)) / count if count > 1 else 0.0
    parts = [(models, count - 1.0)]
    for influences, most in ((rows, math.inf), (calibration, degrees)):
        n = len(influences[0]) if len(influences) else 0
        parts.append((_common(influences), min(n - 1.0, most)))
    total = sum(part for part, _ in parts)
    below = sum(part * part / most for part, most in parts if part > 0.0 and most > 0.0)
    free = total * total / below if below > 0.0 else math.inf
    return Spread(models=models, rows=parts[1][0], calibration=parts[2][0], degrees=free)


def _common(influences: Sequence[FloatArray]) -> float:
    """What shared rows add to the variance of a mean of runs; NaN where they are fewer than 2."""
    if not len(influences):
        return 0.0
    n, count = len(influences[0]), len(influences)
    if n < 2:
        return math.nan
    own = sum(float(np.square(one).sum()) for one in influences)
    if count == 1:
        return own / (n * (n - 1.0))
    together = float(np.square(np.sum(influences, axis=0)).sum())
    pairs = (together - own) / (count * (count - 1.0))
    return max(pairs / (n * (n - 1.0)), 0.0)
