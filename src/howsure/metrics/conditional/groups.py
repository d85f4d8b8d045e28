"""Coverage gap over groups: how far the groups' coverages lie from the nominal one.

The raw gap of a right model is not 0: a group of n rows is off by chance. The null says by how
much, and the debiased form takes the binomial noise out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.convert import check_whole
from howsure.core.labels import Categories
from howsure.core.rng import child
from howsure.metrics.conditional.regions import Region
from howsure.metrics.conditional.rows import as_covered
from howsure.stats.binomial import binomial_test, clopper_pearson, holm

_CLOSE = 1e-12
_CHUNK = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoverageGap:
    """Outcome of `coverage_gap`.

    Attributes
    ----------
    value : float
        Raw gap; NaN where `reason` says why.
    standard_error : float
        Its standard error, by the delta method; too large near 0.
    null, null_upper : float
        Mean (exact) and 95 % quantile (simulated) of the raw gap of a right model with groups of
        these sizes.
    p_value : float
        Share of simulated right models with a raw gap as large.
    debiased : float
        Mean squared gap without the binomial noise, each group cut at 0.
    debiased_standard_error, debiased_null, debiased_null_upper, debiased_p_value : float
        The same for the debiased gap; its null mean is simulated, and above 0 as groups are cut.
    region : Region or None
        The worst group: that of the smallest p-value, the largest gap first. Its p-value is
        Holm-adjusted over the groups.
    labels : ndarray of shape (g,)
        The groups.
    sizes : ndarray of int, shape (g,)
        Rows of each group.
    empirical_coverage, p_values : ndarray of float, shape (g,)
        Coverage of each group, and its exact two-sided p-value, Holm-adjusted.
    n : int
        Number of rows.
    reason : str
        Why there is no answer.
    """

    value: float
    standard_error: float = math.nan
    null: float = math.nan
    null_upper: float = math.nan
    p_value: float = math.nan
    debiased: float = math.nan
    debiased_standard_error: float = math.nan
    debiased_null: float = math.nan
    debiased_null_upper: float = math.nan
    debiased_p_value: float = math.nan
    region: Region | None = None
    labels: npt.NDArray[np.generic]
    sizes: IntArray
    empirical_coverage: FloatArray
    p_values: FloatArray
    n: int
    reason: str = ""


def coverage_gap(
    covered: npt.ArrayLike,
    groups: npt.ArrayLike | Categories,
    *,
    coverage: float,
    name: str = "group",
    replicates: int = 999,
    confidence: float = 0.95,
    seed: int = 0,
) -> CoverageGap:
    """Mean distance of the groups' coverages from the nominal one; lower is better.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    groups : array-like of shape (n,)
        The group of each row.
    coverage : float
        Nominal coverage 1 − α, in (0, 1).
    name : str
        What the groups are, to name the worst one.
    replicates : int
        Simulated right models.
    confidence : float
        Of the worst group's interval.
    seed : int
        Fixes the simulation.

    Returns
    -------
    CoverageGap
        Values in [0, 1]; NaN with a reason where all rows are in one group, since its coverage
        is the marginal one.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    Raw: mean over groups of |cov_g − (1−α)|. Debiased, on the squared scale: mean over groups of
    [(cov_g − (1−α))² − α(1−α)/n_g]₊. The null mean of the raw gap uses De Moivre's formula of
    the mean absolute deviation of a binomial count. Rows must be independent. Source: class-
    conditional coverage gap of T. Ding et al. (2023, arXiv:2306.09335), for any groups.

    Examples
    --------
    >>> hit = np.r_[np.ones(90), np.zeros(10), np.ones(70), np.zeros(30)]
    >>> found = coverage_gap(hit, ["a"] * 100 + ["b"] * 100, coverage=0.9)
    >>> found.value, found.region.where
    (0.1, 'group=b')
    """
    hit = as_covered(covered)
    nominal = check_fraction(coverage, "coverage")
    level = check_fraction(confidence, "confidence")
    check_whole(replicates, "replicates")
    held = Categories.checked(groups, "groups", length=len(hit))
    sizes = held.counts
    hits = np.bincount(held.codes, weights=hit, minlength=len(sizes)).astype(np.float64)
    seen = hits / sizes
    adjusted = holm(binomial_test(hits, sizes, nominal))
    if len(sizes) < 2:
        return CoverageGap(
            value=math.nan,
            labels=held.labels,
            sizes=sizes,
            empirical_coverage=seen,
            p_values=adjusted,
            n=len(hit),
            reason="all rows are in one group, so its coverage is the marginal one",
        )
    raw, squared = _gaps(seen[None, :], sizes, nominal)
    drawn = _simulated(sizes, nominal, replicates, seed)
    variance = seen * (1 - seen) / sizes
    slope = np.where(
        np.square(seen - nominal) > nominal * (1 - nominal) / sizes, 2 * (seen - nominal), 0.0
    )
    return CoverageGap(
        value=float(raw[0]),
        standard_error=math.sqrt(float(variance.sum())) / len(sizes),
        null=float(_mean_deviation(sizes, nominal).mean()),
        null_upper=float(np.quantile(drawn[0], 0.95)),
        p_value=_tail(drawn[0], float(raw[0])),
        debiased=float(squared[0]),
        debiased_standard_error=math.sqrt(float((variance * slope**2).sum())) / len(sizes),
        debiased_null=float(drawn[1].mean()),
        debiased_null_upper=float(np.quantile(drawn[1], 0.95)),
        debiased_p_value=_tail(drawn[1], float(squared[0])),
        region=_worst(held, hits, adjusted, nominal, name, level),
        labels=held.labels,
        sizes=sizes,
        empirical_coverage=seen,
        p_values=adjusted,
        n=len(hit),
    )


def _gaps(seen: FloatArray, sizes: IntArray, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Raw and debiased gap of each row of group coverages."""
    off = seen - coverage
    noise = coverage * (1 - coverage) / sizes
    return np.abs(off).mean(axis=1), np.maximum(off * off - noise, 0.0).mean(axis=1)


def _simulated(
    sizes: IntArray, coverage: float, replicates: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Raw and debiased gaps of right models."""
    rng = child(seed, "coverage gap")
    sizes = np.sort(sizes)  # so that the names of the groups do not matter
    step = max(1, _CHUNK // len(sizes))
    parts = [
        _gaps(
            rng.binomial(sizes, coverage, (min(step, replicates - start), len(sizes))) / sizes,
            sizes,
            coverage,
        )
        for start in range(0, replicates, step)
    ]
    raw, squared = zip(*parts, strict=True)
    return np.concatenate(raw), np.concatenate(squared)


def _tail(drawn: FloatArray, value: float) -> float:
    return float((1 + np.count_nonzero(drawn >= value - _CLOSE)) / (1 + len(drawn)))


def _mean_deviation(sizes: IntArray, share: float) -> FloatArray:
    """E|X/n − p| of a binomial X: 2 p^(m+1) (1−p)^(n−m) (m+1) C(n, m+1) / n with m = ⌊np⌋."""
    n = sizes.astype(np.float64)
    m = np.minimum(np.floor(n * share), n - 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(m + 2) - special.gammaln(n - m)
    log_mass = log_choose + (m + 1) * math.log(share) + (n - m) * math.log1p(-share)
    return np.asarray(2 * (m + 1) * np.exp(log_mass) / n)


def _worst(
    held: Categories,
    hits: FloatArray,
    adjusted: FloatArray,
    coverage: float,
    name: str,
    confidence: float,
) -> Region:
    sizes = held.counts
    off = np.abs(hits / sizes - coverage)
    g = int(np.lexsort((-off, binomial_test(hits, sizes, coverage)))[0])
    lower, upper = clopper_pearson(hits[g], sizes[g], confidence)
    return Region(
        where=f"{name}={held.labels[g]}",
        n=int(sizes[g]),
        share=float(sizes[g] / sizes.sum()),
        empirical_coverage=float(hits[g] / sizes[g]),
        lower=float(lower),
        upper=float(upper),
        p_value=float(adjusted[g]),
    )
