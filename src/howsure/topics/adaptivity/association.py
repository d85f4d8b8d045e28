"""Larger where it is harder: size against difficulty over cells (T-SS, Rank-SS), and Property 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.bootstrap import resampled_counts
from howsure.stats.cells import (
    RAPS_STRATA,
    ROUNDING,
    Cells,
    EaseCells,
    Strata,
    StratumCells,
    signed_r2,
)
from howsure.stats.estimate import Estimate
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.coverage import (
    DEFAULT,
    AdaptivityMeasure,
    CellTable,
    canonical_rows,
    counts_copies,
    few_rows,
    stack_columns,
)

# Copies that are permuted one by one, as of rows that are resampled: more take too long, and equal
# copies are then drawn by their counts, which is the same law. Time alone depends on it.
_MAX_ROWS_PERMUTED = 20_000


def t_ss(
    size: npt.ArrayLike,
    difficulty: npt.ArrayLike,
    ease: npt.ArrayLike,
    *,
    bins: int = 50,
    weights: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Signed R² of mean size on mean difficulty over cells by ease (T-SS); higher is better.

    T-SS = sign(β)·R² of the straight line through the B pairs of means, which is sign(ρ)·ρ².

    Parameters
    ----------
    size : array-like of shape (n,)
        Size of each label set, or width of each interval.
    difficulty : array-like of shape (n,)
        Rank of the true label (classification), or |y − prediction| (regression).
    ease : array-like of shape (n,)
        Ease of each row.
    bins : int
        Number of cells of equal mass, from 3 to n.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.
    resampling : Resampling
        How the interval and the floor are drawn.

    Returns
    -------
    AdaptivityMeasure
        In [−1, 1]. NaN where cells agree in mean size (intervals of one width adapt to nothing)
        or in mean difficulty (a model that never errs). The floor is that of difficulties
        shuffled over the rows: 0 on average.

    Raises
    ------
    InputError
        If lengths differ, a value is not finite, or bins are fewer than 3 or more than the rows.

    Notes
    -----
    Source: Jang and Lee 2025, equation 4.

    Examples
    --------
    >>> t_ss([1, 2, 4, 4], [1, 2, 3, 4], [0.9, 0.7, 0.4, 0.1], bins=4).estimate.value
    0.896
    """
    if isinstance(bins, int) and bins < 3:
        raise InputError(f"bins must be at least 3 for a line, got {bins}")
    columns = stack_columns(ease, "ease", size=size, difficulty=difficulty)
    rows, counts = canonical_rows(columns, weights)
    return _line("t_ss", EaseCells(rows[:, 0], bins, counts), rows[:, 1:], counts, resampling)


def rank_ss(
    size: npt.ArrayLike,
    rank: npt.ArrayLike,
    *,
    strata: Strata | None = RAPS_STRATA,
    weights: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Signed R² of mean size on mean rank over strata of the true label's rank.

    Parameters
    ----------
    size, weights, resampling
        As `t_ss`.
    rank : array-like of shape (n,)
        Rank of the true label, from 1.
    strata : sequence of (low, high), or None
        Closed ranges of rank; empty strata are skipped.

    Returns
    -------
    AdaptivityMeasure
        In [−1, 1]; its cells hold the mean size of each stratum. NaN with fewer than three
        strata.

    Raises
    ------
    InputError
        If lengths differ, a value is not finite, or strata are not in rising order.

    Examples
    --------
    >>> rank_ss([1, 2, 5], [1, 2, 5]).estimate.value
    1.0
    """
    columns = stack_columns(rank, "rank", size=size, difficulty=rank)
    rows, counts = canonical_rows(columns, weights)
    return _line("rank_ss", StratumCells(rows[:, 0], strata), rows[:, 1:], counts, resampling)


def satisfaction_rate(
    size: npt.ArrayLike,
    difficulty: npt.ArrayLike,
    *,
    subset: int = 100,
    pairs: int = 1000,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """How often the harder of two random subsets has the larger sets (Property 1).

    Parameters
    ----------
    size : array-like of shape (n,)
        Size of each label set, or width of each interval.
    difficulty : array-like of shape (n,)
        Rank of the true label, or |y − prediction|.
    subset : int
        Rows in a subset, drawn with replacement; at least 1.
    pairs : int
        Pairs of subsets, at least 1.
    resampling : Resampling
        How the interval and the floor are drawn.

    Returns
    -------
    AdaptivityMeasure
        In [0, 1]; higher is better. The floor is that of difficulties shuffled over the rows,
        about one half; its one cell holds the means of size and difficulty.

    Raises
    ------
    InputError
        If lengths differ, a value is not finite, or a count is below 1.

    Notes
    -----
    With mean difficulties d₁, d₂ and mean sizes s₁, s₂ the property holds if d₁ < d₂ and s₁ ≤ s₂,
    or d₁ > d₂ and s₁ ≥ s₂, or d₁ = d₂. Source: Jang and Lee 2025, Property 1; what happens at
    equal sizes is not said there.

    Examples
    --------
    >>> satisfaction_rate([1, 2, 3, 4], [1, 2, 3, 4], subset=2, pairs=50).estimate.value
    1.0
    """
    check_whole(subset, "subset")
    check_whole(pairs, "pairs")
    rows = stack_columns(size, "size", difficulty=difficulty)
    rows = rows[np.lexsort(rows.T)]
    n = len(rows)
    rng = child(resampling.seed, "adaptivity", "property")

    def rate(drawn: FloatArray) -> float:
        chosen = rng.integers(0, n, size=(pairs, 2, subset))
        means = (column[chosen].mean(axis=2).T for column in drawn.T)
        larger, harder = (np.sign(first - second) for first, second in means)
        return float((larger * harder >= 0).mean())

    value = rate(rows)
    draws = np.array([rate(rows[rng.integers(0, n, size=n)]) for _ in range(resampling.replicates)])
    shuffled = np.array(
        [
            rate(np.column_stack((rows[:, 0], rng.permutation(rows[:, 1]))))
            for _ in range(resampling.permutations)
        ]
    )
    table = CellTable(
        low=rows.min(axis=0)[:1],
        high=rows.max(axis=0)[:1],
        n=np.array([float(n)]),
        means={"size": rows[:, :1].mean(axis=0), "difficulty": rows[:, 1:].mean(axis=0)},
    )
    return _measure(value, draws, shuffled, table, resampling)


def _line(
    name: str, cells: Cells, rows: FloatArray, counts: FloatArray, resampling: Resampling
) -> AdaptivityMeasure:
    def slope(multiplicities: FloatArray, columns: FloatArray = rows) -> float:
        mass, means = cells.means(columns, multiplicities)
        return signed_r2(*means[mass > 0].T)

    mass, means = cells.means(rows, counts)
    table = CellTable(
        low=cells.low,
        high=cells.high,
        n=mass,
        means={"size": means[:, 0], "difficulty": means[:, 1]},
    )
    value = slope(counts)
    if math.isnan(value):
        filled = means[mass > 0]
        why = "fewer than three cells have rows"
        if len(filled) >= 3:
            spread = np.ptp(filled, axis=0) <= 2 * ROUNDING * np.abs(filled).max(axis=0)
            why = f"all cells agree in mean {'size' if spread[0] else 'difficulty'}"
        none = Estimate(math.nan, reason=why, n=float(mass.sum()))
        return AdaptivityMeasure(estimate=none, cells=table)
    if not isinstance(cells, EaseCells):
        few = few_rows(mass[mass > 0])
        draws = np.zeros(0) if few else bootstrapped(slope, counts, resampling, name)
        measure = _measure(value, draws, np.zeros(0), table, resampling)
        return replace(measure, estimate=replace(measure.estimate, reason=few))
    drawn = simulated_means(cells, rows, counts, resampling, name)
    draws = np.array([signed_r2(*pair.T) for pair in drawn])
    rng = child(resampling.seed, "adaptivity", name, "shuffle")
    shuffled = np.array(
        [
            slope(counts, np.column_stack((rows[:, 0], shuffled_column(rows[:, 1], counts, rng))))
            for _ in range(resampling.permutations)
        ]
    )
    measure = _measure(value, draws, shuffled, table, resampling)
    # ρ's inverse hyperbolic tangent spreads alike whatever ρ is (R. A. Fisher 1915)
    ends = np.tanh(resampling.around(float(_turned(value)), _turned(draws)))
    lower, upper = (math.copysign(float(end) ** 2, float(end)) for end in ends)
    return replace(measure, estimate=replace(measure.estimate, lower=lower, upper=upper))


def _turned(slopes: npt.ArrayLike) -> FloatArray:
    """Signed R² as Fisher's z of the correlation."""
    squares = np.asarray(slopes, dtype=np.float64)
    rho = np.sign(squares) * np.sqrt(np.abs(squares))
    # The z of a correlation of 1 would be infinite; this one is 17.6.
    return np.asarray(np.arctanh(np.clip(rho, -1.0 + 1e-15, 1.0 - 1e-15)))


def _measure(
    value: float,
    draws: FloatArray,
    shuffled: FloatArray,
    table: CellTable,
    resampling: Resampling,
) -> AdaptivityMeasure:
    lower, upper = resampling.interval(draws)
    lower, upper = min(lower, value), max(upper, value)
    floor, high, p_value = math.nan, math.nan, math.nan
    finite = shuffled[np.isfinite(shuffled)]
    if len(finite) > 1:
        floor = float(finite.mean())
        high = float(np.quantile(finite, resampling.confidence, method="weibull"))
        p_value = float((1 + (finite >= value - ROUNDING).sum()) / (1 + len(finite)))
    estimate = Estimate(
        value,
        null=floor,
        details={"cells": float((table.n > 0).sum())},
        lower=lower,
        upper=upper,
        null_upper=high,
        p=p_value,
        n=float(table.n.sum()),
    )
    return AdaptivityMeasure(estimate=estimate, cells=table)


def bootstrapped(
    statistic: Callable[[FloatArray], float], counts: FloatArray, resampling: Resampling, name: str
) -> FloatArray:
    """A statistic of multiplicities on resamples of the rows, shape (replicates,)."""
    rng = child(resampling.seed, "adaptivity", name, "bootstrap")
    counts_rows = counts_copies(counts)
    copies = counts if counts_rows else np.ones(len(counts))
    drawn = (
        row if counts_rows else row * counts
        for table in resampled_counts(rng, copies, resampling.replicates)
        for row in table
    )
    return np.array([statistic(row) for row in drawn])


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
    mass, moments = cells.means(products, counts)
    unit = moments[:, :2].std(axis=0, ddof=1)
    off = (moments[:, :2] - moments[:, :2].mean(axis=0)) / unit
    degrees = np.maximum(mass - 1.0, 1.0)
    variance = np.maximum(moments[:, 2:4] - moments[:, :2] ** 2, 0.0) / unit**2 / degrees[:, None]
    joint = (moments[:, 4] - moments[:, 0] * moments[:, 1]) / unit.prod() / degrees
    covariance = off.T @ off / (len(off) - 1.0)
    noise = np.array([[variance[:, 0].mean(), joint.mean()], [joint.mean(), variance[:, 1].mean()]])
    size, axes = np.linalg.eigh(covariance)
    # Keeps a division by the root of 0 from being one by 0; coordinates have variances about 1.
    root = axes * np.sqrt(np.maximum(size, 1e-12))
    whitening = (axes / np.sqrt(np.maximum(size, 1e-12))).T
    shares, turn = np.linalg.eigh(whitening @ (covariance - noise) @ whitening.T)
    shrunken = off @ (root @ (turn * np.sqrt(np.clip(shares, 0.0, 1.0))) @ turn.T @ whitening).T
    first = np.sqrt(variance[:, 0])
    slope = np.divide(joint, first, out=np.zeros_like(first), where=first > 0.0)
    drawn = rng.standard_normal((resampling.replicates, len(off), 2))
    second = (
        slope * drawn[..., 0] + np.sqrt(np.maximum(variance[:, 1] - slope**2, 0.0)) * drawn[..., 1]
    )
    return np.asarray(shrunken + np.stack([first * drawn[..., 0], second], axis=-1))


def shuffled_column(values: FloatArray, counts: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Mean of the values that the copies of each row get when all copies swap at random.

    Up to 20,000 copies (or two a row) are permuted; more are drawn from the normal limit of it.
    """
    if not counts_copies(counts):
        return rng.permutation(values)
    total = float(counts.sum())
    if total <= max(_MAX_ROWS_PERMUTED, 2 * len(values)):
        sizes = counts.astype(np.int64)
        moved = rng.permutation(np.repeat(values, sizes))
        return np.add.reduceat(moved, np.r_[0, np.cumsum(sizes)[:-1]]) / counts
    mean = float(values @ counts) / total
    sd = math.sqrt(float(np.square(values - mean) @ counts) / total)
    noise = rng.standard_normal(len(values)) / np.sqrt(counts)
    return mean + sd * (noise - float(noise @ counts) / total)
