"""What a measure of adaptivity gives: a number, its interval, and what chance alone would show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.rng import child
from howsure.core.weights import MOST_COPIES, check_multiplicities, merge_rows
from howsure.stats.bootstrap import resampled_counts
from howsure.stats.cells import Cells
from howsure.stats.estimate import Estimate
from howsure.stats.permutation import Resampling

_PERMUTED = 20_000
_LEAST = 5.0  # rows of a cell: the share or mean of fewer may be anything
_RATES, _STEPS = 61, 100  # true rates that are tried, and steps that weigh them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTable:
    """The cells behind a measure, each array of shape (B,).

    Attributes
    ----------
    low, high : ndarray of float
        Range of what the cells are made by: ease, size or rank.
    n : ndarray of float
        Rows in each cell.
    means : dict of str to ndarray of float
        Mean of each column in the cell; NaN where it is empty.
    """

    low: FloatArray
    high: FloatArray
    n: FloatArray
    means: dict[str, FloatArray]

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptivityMeasure:
    """One number on how a prediction adapts, with what is needed to judge it.

    Attributes
    ----------
    estimate : Estimate
        The number. It estimates what such a table shows on average at this n and these cells,
        noise of the cells included, and its bounds are an interval of that: of a violation of
        coverage and of T-SS by cells of as many rows drawn anew, else by a bootstrap over rows.
        There is none where a cell or stratum has fewer than 5 rows, which T-SS alone does not
        need. More rows would show less violation, and more association. The null is what
        chance alone gives on average at this n and these cells: for a violation of coverage, a
        perfect model; for an association, shuffled rows. A value below its upper end says nothing.
    cells : CellTable
        The cells.
    """

    estimate: Estimate
    cells: CellTable

    __repr__ = brief_repr


def canonical_rows(
    columns: FloatArray, weights: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Rows sorted by content, equal ones made one, and how often each counts."""
    counts = check_multiplicities(weights, len(columns))
    if counts is None or _counts_copies(counts):
        return merge_rows(columns, counts)
    order = np.lexsort(columns.T)
    return columns[order], counts[order]


def _counts_copies(counts: FloatArray) -> bool:
    """Whether counts are of copies, each a row of its own, and not shares of rows."""
    return bool((counts == np.floor(counts)).all() and counts.sum() <= MOST_COPIES)


def few_rows(mass: FloatArray) -> str:
    """Why cells leave no interval: one of them has fewer rows than tell its share or mean."""
    return "no interval: a cell has fewer than 5 rows" if mass.min() < _LEAST else ""


def bootstrapped(
    statistic: Callable[[FloatArray], float], counts: FloatArray, resampling: Resampling, name: str
) -> FloatArray:
    """A statistic of multiplicities on resamples of the rows, shape (replicates,)."""
    rng = child(resampling.seed, "adaptivity", name, "bootstrap")
    whole = _counts_copies(counts)
    copies = counts if whole else np.ones(len(counts))
    drawn = (
        row if whole else row * counts
        for table in resampled_counts(rng, copies, resampling.replicates)
        for row in table
    )
    return np.array([statistic(row) for row in drawn])


def error_of_largest(
    violations: Callable[[FloatArray], FloatArray],
    shares: FloatArray,
    mass: FloatArray,
    resampling: Resampling,
    name: str,
) -> float:
    """Standard error of a largest violation of shares of shape (..., B), by cells drawn anew.

    Resampled rows would add the noise of the shares once more. So true rates are drawn: in three
    quarters of the replicates each cell's from its law given all cells, mixed by the nonparametric
    maximum likelihood of binomial rates (N. Laird 1978), which moves what is noise to where most
    cells are; in the others they are the cells' own, four rows of the mean rate added, so that one
    cell that is off is not moved away. Two tables of each, with as many rows in each cell, differ
    by their noise alone. Of fewer than five rows a share may be anything: NaN.
    """
    half = resampling.replicates // 2
    if half < 2 or few_rows(mass):
        return math.nan
    rng = child(resampling.seed, "adaptivity", name, "cells")
    hits = shares * mass
    rate = (hits.sum() + 2.0) / (mass.sum() + 4.0)  # neither 0 nor 1 (A. Agresti, B. Coull 1998)
    own = (hits + 4.0 * rate) / (mass + 4.0)
    ends = np.arcsin(np.sqrt([own.min(), own.max()]))
    grid = np.clip(np.sin(np.linspace(ends[0], ends[1], _RATES)) ** 2, 1e-6, 1.0 - 1e-6)
    logs = hits[:, None] * np.log(grid) + (mass - hits)[:, None] * np.log1p(-grid)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(_RATES, 1.0 / _RATES)
    for _ in range(_STEPS):
        joint = likely * prior
        chance = joint / joint.sum(axis=1, keepdims=True)
        prior = chance.mean(axis=0)
    true = np.broadcast_to(own, (half, len(mass))).copy()
    mixed = 3 * half // 4
    for cell, upto in enumerate(np.cumsum(chance, axis=1)):
        place = np.searchsorted(upto, rng.random(mixed))
        true[:mixed, cell] = grid[np.minimum(place, _RATES - 1)]
    rows = np.round(mass).astype(np.int64)
    first, second = violations(rng.binomial(rows, np.broadcast_to(true, (2, *true.shape))) / rows)
    return float(np.sqrt(np.square(first - second).mean() / 2.0))


def largest_interval(value: float, error: float, confidence: float) -> tuple[float, float]:
    """Interval of the mean of a largest violation: its error grows with it, so on its logarithm."""
    if math.isnan(error):
        return math.nan, math.nan
    reach = float(special.ndtri(0.5 + confidence / 2.0)) * error
    if value <= 0.0:
        return 0.0, min(reach, 1.0)
    factor = math.exp(min(reach / value, 2.0))
    return value * math.exp(-reach / value), min(value * factor, value + 2.0 * reach, 1.0)


def simulated_means(
    cells: Cells, columns: FloatArray, counts: FloatArray, resampling: Resampling, name: str
) -> FloatArray:
    """Means of two columns in cells that are drawn anew, shape (replicates, B, 2).

    Means seen are wider apart than true ones by their noise. So they are moved towards those of all
    cells, jointly, until their covariance is that of the means seen less the mean covariance of
    their noise (T. A. Louis 1984), and each cell then draws normal noise. Columns come in units of
    the spread of their means.
    """
    rng = child(resampling.seed, "adaptivity", name, "cells")
    middle = columns - np.average(columns, axis=0, weights=counts)
    products = np.column_stack([middle, middle**2, middle[:, :1] * middle[:, 1:]])
    mass, found = cells.means(products, counts)
    unit = found[:, :2].std(axis=0, ddof=1)
    off = (found[:, :2] - found[:, :2].mean(axis=0)) / unit
    rest = np.maximum(mass - 1.0, 1.0)
    own = np.maximum(found[:, 2:4] - found[:, :2] ** 2, 0.0) / unit**2 / rest[:, None]
    joint = (found[:, 4] - found[:, 0] * found[:, 1]) / unit.prod() / rest
    seen = off.T @ off / (len(off) - 1.0)
    noise = np.array([[own[:, 0].mean(), joint.mean()], [joint.mean(), own[:, 1].mean()]])
    size, axes = np.linalg.eigh(seen)
    root = axes * np.sqrt(np.maximum(size, 1e-12))
    back = (axes / np.sqrt(np.maximum(size, 1e-12))).T
    kept, turn = np.linalg.eigh(back @ (seen - noise) @ back.T)
    shrunken = off @ (root @ (turn * np.sqrt(np.clip(kept, 0.0, 1.0))) @ turn.T @ back).T
    first = np.sqrt(own[:, 0])
    slope = np.divide(joint, first, out=np.zeros_like(first), where=first > 0.0)
    drawn = rng.standard_normal((resampling.replicates, len(off), 2))
    second = slope * drawn[..., 0] + np.sqrt(np.maximum(own[:, 1] - slope**2, 0.0)) * drawn[..., 1]
    return np.asarray(shrunken + np.stack([first * drawn[..., 0], second], axis=-1))


def shuffled_column(values: FloatArray, counts: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Mean of the values that the copies of each row get when all copies swap at random.

    Up to 20,000 copies (or two a row) are permuted; more are drawn from the normal limit of it.
    """
    if not _counts_copies(counts):
        return rng.permutation(values)
    total = float(counts.sum())
    if total <= max(_PERMUTED, 2 * len(values)):
        sizes = counts.astype(np.int64)
        moved = rng.permutation(np.repeat(values, sizes))
        return np.add.reduceat(moved, np.r_[0, np.cumsum(sizes)[:-1]]) / counts
    mean = float(values @ counts) / total
    sd = math.sqrt(float(np.square(values - mean) @ counts) / total)
    noise = rng.standard_normal(len(values)) / np.sqrt(counts)
    return np.asarray(mean + sd * (noise - float(noise @ counts) / total))
