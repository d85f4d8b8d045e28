"""Coverage held in every cell: by ease (T-CV), by size (SSCV, ESCV) or by the label's rank."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import MAX_COPIES, check_multiplicities, merge_rows
from howsure.stats.cells import (
    RAPS_STRATA,
    TORCHCP_STRATA,
    Cells,
    EaseCells,
    Strata,
    StratumCells,
    largest_violation,
)
from howsure.stats.estimate import Estimate
from howsure.stats.permutation import Resampling

# Rows of a cell: the share or mean of fewer may be anything. Not tuned.
_MIN_ROWS_OF_CELL = 5.0
# True rates that are tried, evenly in arcsin √p, where binomial noise is the same everywhere, and
# steps that weigh them. Chosen by hand; not tuned: finer takes more time, and more steps fit the
# noise of the cells.
_RATES_TRIED, _MIXING_STEPS = 61, 100


@frozen(kw_only=True, eq=False)
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


@frozen(kw_only=True, eq=False)
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


DEFAULT = Resampling()


def t_cv(
    covered: npt.ArrayLike,
    ease: npt.ArrayLike,
    *,
    coverage: float,
    bins: int = 50,
    weights: npt.ArrayLike | None = None,
    claimed: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Largest violation of coverage over cells of equal mass by ease (T-CV); lower is better.

    T-CV = max_b |(1−α) − cov_b|, cov_b the share covered in cell b.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered: 0 or 1.
    ease : array-like of shape (n,)
        Ease of each row; see `howsure.topics.adaptivity.ease`.
    coverage : float
        Nominal coverage 1−α.
    bins : int
        Number of cells, from 1 to n.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.
    claimed : array-like of shape (n,), optional
        Probability with which each row claims to be covered, where that is not the coverage: the
        floor is then drawn from it.
    resampling : Resampling
        How the bootstrap interval and a drawn floor are drawn.

    Returns
    -------
    AdaptivityMeasure
        In [0, 1], with the exact law for a perfect model as its floor.

    Raises
    ------
    InputError
        If lengths differ, an entry of `covered` is neither 0 nor 1, an ease is not finite, or
        the bins are more than the rows.

    Notes
    -----
    Over-coverage counts as under-coverage does. Rows that tie in ease at an edge are shared
    between the cells. Source: Jang and Lee 2025, equations 2 and 3.

    Examples
    --------
    >>> t_cv([1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], coverage=0.9, bins=2).estimate.value
    0.4
    """
    table = stack_columns(ease, "ease", covered=covered, claimed=claimed)
    rows, counts = canonical_rows(table, weights)
    cells = EaseCells(rows[:, 0], bins, counts)
    return _violation("t_cv", cells, rows[:, 1:], counts, coverage, resampling)


def sscv(
    covered: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    coverage: float,
    strata: Strata | None = TORCHCP_STRATA,
    weights: npt.ArrayLike | None = None,
    claimed: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Largest violation of coverage over strata of set size (SSCV); lower is better.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered: 0 or 1.
    size : array-like of shape (n,)
        Size of each label set, or width of each interval.
    coverage : float
        Nominal coverage 1−α.
    strata : sequence of (low, high), or None
        Closed ranges of size; None makes every size a stratum. Empty strata are skipped.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.
    claimed : array-like of shape (n,), optional
        Probability with which each row claims to be covered, where that is not the coverage: the
        floor is then drawn from it.
    resampling : Resampling
        How the bootstrap interval and a drawn floor are drawn.

    Returns
    -------
    AdaptivityMeasure
        NaN where no row is in a stratum.

    Raises
    ------
    InputError
        If lengths differ, `covered` is neither 0 nor 1, or strata are not in rising order.

    Notes
    -----
    A perfect *adaptive* model need not have this at its floor: size and coverage may depend on
    each other even where coverage holds at each x. The floor supposes that they do not. Source:
    Angelopoulos et al. 2021, section 4.

    Examples
    --------
    >>> sscv([1, 1, 0, 1], [1, 1, 2, 3], coverage=0.9).estimate.value
    0.4
    """
    table = stack_columns(size, "size", covered=covered, claimed=claimed)
    rows, counts = canonical_rows(table, weights)
    cells = StratumCells(rows[:, 0], strata)
    return _violation("sscv", cells, rows[:, 1:], counts, coverage, resampling)


def escv(
    covered: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    coverage: float,
    two_sided: bool = True,
    weights: npt.ArrayLike | None = None,
    claimed: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Largest violation of coverage over each exact set size of at least 1 (ESCV); lower is better.

    Parameters
    ----------
    covered, size, coverage, weights, claimed, resampling
        As `sscv`.
    two_sided : bool
        Whether over-coverage counts too, as Jang and Lee use the measure; otherwise
        max_j max(0, 1−α−cov_j), as the paper of SAPS defines it.

    Returns
    -------
    AdaptivityMeasure
        NaN where all sets are empty.

    Raises
    ------
    InputError
        As `sscv`.

    Notes
    -----
    Source: Huang et al. 2024 (one-sided); Jang and Lee 2025 (two-sided). Its floor is two-sided
    in both.

    Examples
    --------
    >>> escv([0, 1, 1, 1], [0, 1, 1, 2], coverage=0.9).estimate.value
    0.1
    >>> escv([0, 1, 1, 1], [0, 1, 1, 2], coverage=0.9, two_sided=False).estimate.value
    0.0
    """
    table = stack_columns(size, "size", covered=covered, claimed=claimed)
    rows, counts = canonical_rows(table, weights)
    filled = rows[:, 0] >= 1
    rows, counts = rows[filled], counts[filled]
    if not len(rows):
        empty = np.zeros(0)
        return _missing(CellTable(low=empty, high=empty, n=empty, means={}))
    cells = StratumCells(rows[:, 0], None)
    return _violation("escv", cells, rows[:, 1:], counts, coverage, resampling, two_sided=two_sided)


def rank_cv(
    covered: npt.ArrayLike,
    rank: npt.ArrayLike,
    *,
    coverage: float,
    weights: npt.ArrayLike | None = None,
    claimed: npt.ArrayLike | None = None,
    resampling: Resampling = DEFAULT,
) -> AdaptivityMeasure:
    """Largest violation of coverage over RAPS' strata of the true label's rank; descriptive.

    Parameters
    ----------
    covered, coverage, weights, claimed, resampling
        As `sscv`.
    rank : array-like of shape (n,)
        Rank of the true label, from 1; see `label_rank`.

    Returns
    -------
    AdaptivityMeasure
        Its cells hold the coverage of each stratum.

    Raises
    ------
    InputError
        As `sscv`.

    Notes
    -----
    Sets are formed without the label, and a label of high rank is one that the model missed: no
    method can hold coverage by rank, so a large value is no fault by itself.

    Examples
    --------
    >>> rank_cv([1, 1, 0], [1, 1, 7], coverage=0.9).cells.means["coverage"]
    array([ 1., nan, nan,  0., nan, nan])
    """
    table = stack_columns(rank, "rank", covered=covered, claimed=claimed)
    rows, counts = canonical_rows(table, weights)
    cells = StratumCells(rows[:, 0], RAPS_STRATA)
    return _violation("rank_cv", cells, rows[:, 1:], counts, coverage, resampling)


def _violation(
    name: str,
    cells: Cells,
    rows: FloatArray,
    counts: FloatArray,
    coverage: float,
    resampling: Resampling,
    *,
    two_sided: bool = True,
) -> AdaptivityMeasure:
    target = check_fraction(coverage, "coverage")
    covered = rows[:, 0]
    if ((covered != 0) & (covered != 1)).any():
        raise InputError("covered must be 0 or 1 in every row")

    mass, means = cells.means(covered[:, None], counts)
    table = CellTable(low=cells.low, high=cells.high, n=mass, means={"coverage": means[:, 0]})
    value = largest_violation(cells, covered, counts, target, two_sided=two_sided)
    if math.isnan(value):
        return _missing(table)
    filled = mass > 0.0

    def violations(shares: FloatArray) -> FloatArray:
        gaps = np.abs(target - shares) if two_sided else np.maximum(target - shares, 0.0)
        return np.asarray(gaps.max(axis=-1))

    error = error_of_largest(violations, means[filled, 0], mass[filled], resampling, name)
    lower, upper = largest_interval(value, error, resampling.confidence)
    if rows.shape[1] > 1:
        floor = _draw_floor(name, cells, rows[:, 1], counts, target, value, resampling)
    else:
        floor = noise_floor(
            np.maximum(mass, mass > 0), target, observed=value, confidence=resampling.confidence
        )
    estimate = Estimate(
        value,
        null=floor.mean,
        details={"cells": float((mass > 0).sum())},
        lower=lower,
        upper=upper,
        null_upper=floor.upper,
        p=floor.p_value,
        n=float(mass.sum()),
        reason=few_rows(mass[filled]),
    )
    return AdaptivityMeasure(estimate=estimate, cells=table)


def _missing(table: CellTable) -> AdaptivityMeasure:
    none = Estimate(math.nan, reason="no row is in any stratum", n=0.0)
    return AdaptivityMeasure(estimate=none, cells=table)


def _draw_floor(
    name: str,
    cells: Cells,
    claimed: FloatArray,
    counts: FloatArray,
    target: float,
    observed: float,
    resampling: Resampling,
) -> NoiseFloor:
    """The law of the largest violation where each row is covered as often as it claims."""
    if ((claimed < 0) | (claimed > 1)).any():
        raise InputError(f"claimed must be in [0, 1], got {claimed.min():g} to {claimed.max():g}")
    rng = child(resampling.seed, "adaptivity", name, "claims")
    counts_rows = bool((counts == np.floor(counts)).all())
    copies = counts.astype(np.int64) if counts_rows else np.ones(len(counts), dtype=np.int64)
    largest = np.array(
        [
            largest_violation(cells, rng.binomial(copies, claimed) / copies, counts, target)
            for _ in range(max(resampling.permutations, 1))
        ]
    )
    level = resampling.confidence
    upper = float(np.quantile(largest, level, method="higher"))
    above = int((largest >= observed - 1e-9).sum())
    p = (1 + above) / (1 + len(largest))
    return NoiseFloor(float(largest.mean()), float(np.median(largest)), upper, level, p)


def stack_columns(by: npt.ArrayLike, name: str, **columns: npt.ArrayLike | None) -> FloatArray:
    """What cells are made by, beside those of the columns that are given; all of one length."""
    first = as_vector(by, name)
    vectors = (
        as_vector(column, key, length=len(first))
        for key, column in columns.items()
        if column is not None
    )
    return np.column_stack([first, *vectors])


def canonical_rows(
    columns: FloatArray, weights: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Rows sorted by content, equal ones made one, and how often each counts."""
    counts = check_multiplicities(weights, len(columns))
    if counts is None or counts_copies(counts):
        return merge_rows(columns, counts)
    order = np.lexsort(columns.T)
    return columns[order], counts[order]


def counts_copies(counts: FloatArray) -> bool:
    """Whether counts are of copies, each a row of its own, and not shares of rows."""
    return bool((counts == np.floor(counts)).all() and counts.sum() <= MAX_COPIES)


def few_rows(mass: FloatArray) -> str:
    """Why cells leave no interval: one of them has fewer rows than tell its share or mean."""
    return "no interval: a cell has fewer than 5 rows" if mass.min() < _MIN_ROWS_OF_CELL else ""


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
    nearly_seen = (hits + 4.0 * rate) / (mass + 4.0)
    ends = np.arcsin(np.sqrt([nearly_seen.min(), nearly_seen.max()]))
    grid = np.clip(np.sin(np.linspace(ends[0], ends[1], _RATES_TRIED)) ** 2, 1e-6, 1.0 - 1e-6)
    logs = hits[:, None] * np.log(grid) + (mass - hits)[:, None] * np.log1p(-grid)
    likely = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(_RATES_TRIED, 1.0 / _RATES_TRIED)
    for _ in range(_MIXING_STEPS):
        joint = likely * prior
        chance = joint / joint.sum(axis=1, keepdims=True)
        prior = chance.mean(axis=0)
    true = np.broadcast_to(nearly_seen, (half, len(mass))).copy()
    mixed = 3 * half // 4
    for cell, upto in enumerate(np.cumsum(chance, axis=1)):
        component = np.searchsorted(upto, rng.random(mixed))
        true[:mixed, cell] = grid[np.minimum(component, _RATES_TRIED - 1)]
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


# ---- label sets beside the rank of the true label: how many labels short, how many to spare ------


def set_deficit(rank: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Labels that a set falls short of the true one: max(0, rank − size); lower is better.

    Parameters
    ----------
    rank : array-like of shape (n,)
        Rank of the true label, from 1.
    size : array-like of shape (n,)
        Number of labels in each set.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ or a value is not finite.

    Notes
    -----
    It supposes that sets hold the labels of highest score. Mean deficit less mean excess plus
    mean size is the mean rank, whatever the sets. Source: Jang and Lee 2025.

    Examples
    --------
    >>> set_deficit([1, 4], [2, 2])
    array([0., 2.])
    """
    ranks = as_vector(rank, "rank")
    return np.maximum(ranks - as_vector(size, "size", length=len(ranks)), 0.0)


def set_excess(rank: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Labels of a set past the true one: max(0, size − rank); lower is better.

    Parameters
    ----------
    rank, size
        As `set_deficit`.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        As `set_deficit`.

    Examples
    --------
    >>> set_excess([1, 4], [2, 2])
    array([1., 0.])
    """
    ranks = as_vector(rank, "rank")
    return np.maximum(as_vector(size, "size", length=len(ranks)) - ranks, 0.0)


# ---- what a perfect model shows: the largest deviation of coverage over cells by chance alone ----

# A cumulative sum that should reach a level exactly is off by less.
_LEVEL_ROUNDING = 1e-12
# Up to 100,000 rows in a cell every share that may occur is a point (800 kB); beyond, 20,000 steps
# over ten deviations are finer than 1/1,000 of one.
_MAX_ROWS_EXACT, _STEPS_OF_GRID = 100_000, 20_000


@frozen
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
    # Those that differ by rounding only are one.
    grid = np.unique(np.round(np.concatenate([_places(n, target) for n in counts]), 12))
    logs = [r * _log_within(n, target, grid) for n, r in zip(counts, repeats, strict=True)]
    cdf = np.exp(np.sum(logs, axis=0))
    mean = float(grid[0] + ((1.0 - cdf[:-1]) * np.diff(grid)).sum())
    tail = float("nan")
    if observed is not None:
        first = int(np.searchsorted(grid, observed - 1e-9))
        tail = 1.0 if first == 0 else float(1.0 - cdf[first - 1])
    median, upper = (float(grid[np.searchsorted(cdf, q - _LEVEL_ROUNDING)]) for q in (0.5, level))
    return NoiseFloor(mean, median, upper, level, tail)


def _places(n: float, target: float) -> FloatArray:
    """|k/n − target| for every k; of many, as many as a fine grid of ten deviations holds."""
    if n <= _MAX_ROWS_EXACT:
        return np.abs(np.arange(n + 1) / n - target)
    reach = min(10.0 * np.sqrt(target * (1.0 - target) / n), max(target, 1.0 - target))
    return np.append(np.linspace(0.0, reach, _STEPS_OF_GRID), max(target, 1.0 - target))


def _log_within(n: float, target: float, grid: FloatArray) -> FloatArray:
    """log P(|K/n − target| ≤ t) on a grid of t."""
    slack = 1e-9
    high = np.minimum(np.floor(n * (target + grid) + slack), n)
    low = np.maximum(np.ceil(n * (target - grid) - slack), 0.0)
    if (
        n > _MAX_ROWS_EXACT
    ):  # both sides' terms of skewness cancel: the normal law errs by order 1/n
        sd = np.sqrt(n * target * (1.0 - target))
        ends = (np.stack((high + 0.5, low - 0.5)) - n * target) / sd
        outside = special.ndtr(-ends[0]) + special.ndtr(ends[1])
    else:
        below = np.where(low > 0, special.bdtr(np.maximum(low - 1, 0.0), int(n), target), 0.0)
        outside = 1.0 - (special.bdtr(high, int(n), target) - below)
    with np.errstate(divide="ignore"):
        return np.log1p(-np.where(high >= low, np.minimum(outside, 1.0), 1.0))
