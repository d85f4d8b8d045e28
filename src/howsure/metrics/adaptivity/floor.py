"""What a perfect model shows: the largest deviation of coverage over cells by chance alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, as_vector, check_fraction
from howsure.core.errors import InputError

_GRID = 1e-12
_EXACT, _STEPS = 100_000, 20_000


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The law of max_b |coverage − cov_b| where every row is covered with that probability.

    Attributes
    ----------
    mean, median : float
        Its mean and median.
    upper : float
        Its quantile at `confidence`.
    confidence : float
        Level of `upper`.
    p_value : float
        Probability of a value at least as large as the one observed; NaN if none was given.
    """

    mean: float
    median: float
    upper: float
    confidence: float
    p_value: float = float("nan")


def noise_floor(
    sizes: npt.ArrayLike,
    coverage: float,
    *,
    observed: float | None = None,
    confidence: float = 0.95,
) -> NoiseFloor:
    """Law of the largest deviation of coverage over cells, for a perfect model.

    Parameters
    ----------
    sizes : array-like of shape (B,)
        Rows in each cell; cells without rows are left out, fractions are rounded.
    coverage : float
        Nominal coverage 1−α.
    observed : float, optional
        A value whose p-value is wanted.
    confidence : float
        Level of the upper quantile.

    Returns
    -------
    NoiseFloor

    Raises
    ------
    InputError
        If no cell has rows, or a fraction leaves (0, 1).

    Notes
    -----
    Cells are independent and K_b ~ Binomial(n_b, 1−α), so P(max ≤ t) = Π_b P(|K_b/n_b − (1−α)|
    ≤ t). Jump points are taken from every cell size, and the mean is the integral of 1 − P.
    Exact up to 100,000 rows in a cell; counts of more are normal, which errs by order 1/n.

    Examples
    --------
    >>> noise_floor([400] * 50, 0.9).median
    0.0375
    """
    target = check_fraction(coverage, "coverage")
    level = check_fraction(confidence, "confidence")
    counts = np.rint(as_vector(sizes, "sizes"))
    counts, repeats = np.unique(counts[counts > 0], return_counts=True)
    if not len(counts):
        raise InputError("sizes must have a cell with rows")
    grid = _deviations(counts, target)
    logs = [r * _log_within(n, target, grid) for n, r in zip(counts, repeats, strict=True)]
    cdf = np.exp(np.sum(logs, axis=0))
    mean = float(grid[0] + ((1.0 - cdf[:-1]) * np.diff(grid)).sum())
    tail = float("nan")
    if observed is not None:
        place = int(np.searchsorted(grid, observed - 1e-9))
        tail = 1.0 if place == 0 else float(1.0 - cdf[place - 1])
    median, upper = (float(grid[np.searchsorted(cdf, q - _GRID)]) for q in (0.5, level))
    return NoiseFloor(mean, median, upper, level, tail)


def _deviations(counts: FloatArray, target: float) -> FloatArray:
    """Values that |k/n − target| can take, sorted; those that differ by rounding only are one."""
    values = [_places(n, target) for n in counts]
    return np.unique(np.round(np.concatenate(values), 12))


def _places(n: float, target: float) -> FloatArray:
    """|k/n − target| for every k; of many, as many as a fine grid of ten deviations holds."""
    if n <= _EXACT:
        return np.abs(np.arange(n + 1) / n - target)
    reach = min(10.0 * np.sqrt(target * (1.0 - target) / n), max(target, 1.0 - target))
    return np.append(np.linspace(0.0, reach, _STEPS), max(target, 1.0 - target))


def _log_within(n: float, target: float, grid: FloatArray) -> FloatArray:
    """log P(|K/n − target| ≤ t) on a grid of t."""
    slack = 1e-9
    high = np.minimum(np.floor(n * (target + grid) + slack), n)
    low = np.maximum(np.ceil(n * (target - grid) - slack), 0.0)
    if n > _EXACT:  # both sides' terms of skewness cancel: the normal law errs by order 1/n
        sd = np.sqrt(n * target * (1.0 - target))
        ends = (np.stack((high + 0.5, low - 0.5)) - n * target) / sd
        outside = special.ndtr(-ends[0]) + special.ndtr(ends[1])
    else:
        below = np.where(low > 0, special.bdtr(np.maximum(low - 1, 0.0), int(n), target), 0.0)
        outside = 1.0 - (special.bdtr(high, int(n), target) - below)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.where(high >= low, np.minimum(outside, 1.0), 1.0)))
