"""Conditional coverage from the definitions, slowly, with nothing from the library."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from scipy.spatial.distance import pdist, squareform


def lowest_slab(covered: np.ndarray, rows: np.ndarray, direction: np.ndarray, least: int) -> float:
    """Lowest coverage between two parallel planes with at least so many rows, by trying all."""
    place = np.round(rows @ direction, 12)  # rows on one plane differ by rounding
    best = math.inf
    for low in place:
        for high in place:
            inside = (place >= low) & (place <= high)
            if inside.sum() >= least:
                best = min(best, covered[inside].mean())
    return best


def dense_hsic(covered: np.ndarray, width: np.ndarray) -> float:
    """Normalised HSIC with whole matrices; a linear kernel on coverage."""
    n = len(covered)
    gaps = pdist(width[:, None])
    k = np.exp(-np.square(squareform(gaps)) / (2 * np.median(gaps) ** 2))
    centre = np.eye(n) - 1.0 / n
    k, c = centre @ k @ centre, covered - covered.mean()
    other = np.outer(c, c)
    return float((k * other).sum() / math.sqrt((k * k).sum() * (other * other).sum()))


def permuted_mean(covered: np.ndarray, width: np.ndarray) -> float:
    """Mean of the dense HSIC over all permutations, for a handful of rows."""
    from itertools import permutations

    return float(np.mean([dense_hsic(np.array(p), width) for p in permutations(covered)]))


def mean_deviation(n: int, share: float) -> float:
    """E|X/n − p| of a binomial X, term by term."""
    counts = np.arange(n + 1)
    return float(np.abs(counts / n - share) @ stats.binom.pmf(counts, n, share))


def friedman_by_hand(scores: np.ndarray) -> float:
    """Friedman's statistic as (k−1) Σ_j (R_j − N(k+1)/2)² / Σ_ij (r_ij − (k+1)/2)², with N k ranks.

    Conover's form, which holds with ties.
    """
    ranks = stats.rankdata(scores, axis=1)
    n, k = ranks.shape
    between = np.square(ranks.sum(axis=0) - n * (k + 1) / 2).sum()
    within = np.square(ranks - (k + 1) / 2).sum()
    return float((k - 1) * between / within)
