"""Local PIT coverage: do the predictions hold at every level, near every input?

Over all rows the probability integral transform (PIT) of a right model is uniform, but so is
that of many wrong ones. A right model's PIT is uniform near every input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import AnyArray, FloatArray, as_matrix, check_fraction, check_levels
from howsure.core.classes import frozen
from howsure.core.rng import child
from howsure.stats.ecdf import check_pit, uniformity_test
from howsure.stats.estimate import Estimate
from howsure.topics.conditional.forests import (
    DRAWS,
    MIN_ROWS_PER_FOLD,
    Region,
    Smoother,
    add_null,
    as_names,
    check_model,
    content_order,
    folds_of,
    judge_parts,
    shares_elsewhere,
    tree_inputs,
    tree_parts,
)

LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""Levels that are judged by default."""


@frozen(kw_only=True, eq=False)
class LocalPit:
    """Outcome of `local_pit`.

    Attributes
    ----------
    estimate : Estimate
        Excess risk of the uniform law, negative where the local estimates are worse than the
        uniform law. Its null and p are by draws of right models; with a regressor the null is 0,
        which the mean over right models does not exceed, and p by the normal limit, one-sided.
    levels : ndarray of float, shape (k,)
        Levels that were judged.
    cdf : ndarray of float, shape (n, k)
        Cross-fitted local share of the PIT at or below each level, near each row; in the order
        of the rows given.
    distance : ndarray of float, shape (n,)
        Mean over the levels of (local share − level)², near each row.
    region : Region or None
        Where it is worst: the part of the inputs whose local shares, fitted on one half of the
        rows, lie farthest from the levels; judged by the central interval on the other half.
    fault : str
        What is wrong there, in words: too narrow, too wide, too low, too high.
    region_cdf : ndarray of float, shape (k,)
        Share of the PIT at or below each level there, on the other half.
    region_p_value : float
        Of a test that the PIT of the other half is uniform there.
    parts : tuple of Region
        All parts, the worst first.
    """

    estimate: Estimate
    levels: FloatArray
    cdf: FloatArray
    distance: FloatArray
    region: Region | None = None
    fault: str = ""
    region_cdf: FloatArray
    region_p_value: float = math.nan
    parts: tuple[Region, ...] = ()


def local_pit(
    pit: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    levels: npt.ArrayLike = LEVELS,
    coverage: float = 0.9,
    regressor: Any = None,
    folds: int = 5,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LocalPit:
    """Distance of the local distribution of the PIT from the uniform one; 0 or less is best.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1]; the randomised PIT for discrete laws.
    x : array-like of shape (n, d)
        Inputs; finite.
    levels : array-like of shape (k,)
        Levels to judge, rising, in (0, 1).
    coverage : float
        Of the central interval that the parts are told by, in (0, 1).
    regressor : scikit-learn regressor, optional
        Anything that can be cloned and takes several outputs. If omitted, 50 trees that see the
        inputs alone and average 1{PIT ≤ γ} in their leaves.
    folds : int
        Parts that the rows are cut into; each is estimated by the others.
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the intervals.
    seed : int
        Fixes folds and halves.

    Returns
    -------
    LocalPit
        NaN with a reason where a fold holds fewer than ten rows, or no input varies.

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or the regressor lacks a method.

    Notes
    -----
    With r_γ(x) = P(PIT ≤ γ | x), estimated on other rows as r̂, the value is the mean over rows
    and levels of (γ − 1{PIT ≤ γ})² − (r̂_γ(x) − 1{PIT ≤ γ})². Its expectation is at most the
    mean of (r_γ(x) − γ)², and largest at r̂ = r: over evenly spaced levels it is the CRPS of the
    PIT under the uniform law minus that under r̂. Sources: r_γ(x) and the mean of (r_γ(x) − γ)²
    over levels as a local statistic: D. Zhao, N. Dalmasso, R. Izbicki and A. B. Lee (UAI 2021,
    arXiv:2102.10473); one model for all levels: B. Dey et al. (arXiv:2205.14568). Ours is the
    excess risk in place of a plug-in estimate, which even a right model makes positive.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> error = rng.normal(size=2000) * np.where(x[:, 0] > 1, 2.0, 1.0)
    >>> found = local_pit(special.ndtr(error), x, names=["age", "dose"])
    >>> found.region.where, found.fault, found.estimate.p
    ('age > 1.157', 'too narrow', 0.005)
    """
    ranks = check_pit(pit)
    inputs = as_matrix(x, "x", length=len(ranks))
    grid = check_levels(levels)
    nominal, level = check_fraction(coverage, "coverage"), check_fraction(confidence, "confidence")
    checked_names = as_names(names, inputs.shape[1])
    if regressor is not None:
        check_model(regressor, "predict", "regressor")
    n = len(ranks)
    fold = folds_of(n, folds)
    if n < MIN_ROWS_PER_FOLD * folds:
        need = MIN_ROWS_PER_FOLD * folds
        return _unanswered(f"{folds} folds need at least {need} rows, got {n}", n, grid)
    if np.ptp(inputs, axis=0).max() == 0:
        return _unanswered("no input varies", n, grid)
    rising = np.argsort(ranks, kind="stable")  # among equal inputs the PIT decides, not the place
    order = rising[content_order(seed, inputs[rising])]
    ranks, inputs = ranks[order], inputs[order]
    tree_rows = inputs if regressor is not None else tree_inputs(inputs)[0]
    below = (ranks[:, None] <= grid).astype(np.float64)
    local, drawn = np.empty_like(below), None
    if regressor is None:
        smoother = Smoother(tree_rows, fold)
        local = np.clip(grid + smoother(below - grid).astype(np.float64), 0.0, 1.0)
        drawn = _drawn(smoother, n, grid, seed)
    else:
        for number in range(folds):
            here = fold == number
            local[here] = shares_elsewhere(
                regressor, tree_rows[~here], below[~here], tree_rows[here]
            )
    scores = (np.square(grid - below) - np.square(local - below)).mean(axis=1)
    value, error = float(scores.mean()), float(scores.std(ddof=1)) / math.sqrt(n)
    reach = float(special.ndtri((1 + level) / 2)) * error
    cdf = np.empty_like(local)
    cdf[order] = local
    half = n // 2
    learnt = shares_elsewhere(regressor, tree_rows[:half], below[:half], tree_rows)
    distance = np.square(learnt - grid).mean(axis=1)
    leaf_of_row, words = tree_parts(inputs, distance, checked_names)
    inside = np.abs(2 * ranks - 1) <= nominal
    regions = judge_parts(words, leaf_of_row, distance, inside, np.full(n, nominal), level)
    parts = tuple(regions.values())
    there = ranks[half:][leaf_of_row[half:] == next(iter(regions))]
    fault = _fault(there)
    tested = uniformity_test(there).p_value if len(there) else math.nan
    details: dict[str, str | float] = {
        "region_p_value": tested,
        "fault": fault,
        "where": parts[0].where,
    }
    estimate = Estimate(
        value,
        null=0.0,
        details=details,
        error=error,
        lower=value - reach,
        upper=value + reach,
        p=float(special.ndtr(-value / error)) if error > 0 else float(value <= 0),
        n=n,
    )
    return LocalPit(
        estimate=add_null(estimate, drawn),
        levels=grid,
        cdf=cdf,
        distance=np.square(cdf - grid).mean(axis=1),
        region=parts[0],
        fault=fault,
        region_cdf=(there[:, None] <= grid).mean(axis=0) if len(there) else grid * math.nan,
        region_p_value=tested,
        parts=parts,
    )


def _drawn(smoother: Smoother, n: int, levels: FloatArray, seed: int) -> FloatArray:
    """The same measure of right models, whose PIT is uniform at every input."""
    rng, step = child(seed, "local pit null"), smoother.per_pass(len(levels))
    scores: list[FloatArray] = []
    for start in range(0, DRAWS, step):
        ranks = rng.random((n, min(step, DRAWS - start)), dtype=np.float32)
        off: AnyArray = (ranks[:, :, None] <= levels) - levels.astype(np.float32)
        off = off.reshape(n, -1)
        local = smoother(off)
        gain = (local * (2 * off - local)).mean(axis=0, dtype=np.float64)  # off² − (local − off)²
        scores.append(gain.reshape(-1, len(levels)).mean(axis=1))
    return np.concatenate(scores)


def _unanswered(reason: str, n: int, levels: FloatArray) -> LocalPit:
    return LocalPit(
        estimate=Estimate(math.nan, reason=reason, n=n),
        levels=levels,
        cdf=np.full((n, len(levels)), np.nan),
        distance=np.full(n, np.nan),
        region_cdf=np.full(len(levels), np.nan),
    )


def _fault(ranks: FloatArray) -> str:
    """What the PIT of some rows says of their predictions: the stronger of shift and spread."""
    if not len(ranks):
        return ""
    root = math.sqrt(len(ranks))
    shift = float((ranks - 0.5).mean()) * root * math.sqrt(12)
    spread = float((np.square(2 * ranks - 1) - 1 / 3).mean()) * root * math.sqrt(45 / 4)
    if abs(shift) > abs(spread):
        return "too low" if shift > 0 else "too high"
    return "too narrow" if spread > 0 else "too wide"
