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

from howsure.core.arrays import BoolArray, FloatArray, IntArray, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.convert import check_whole
from howsure.core.labels import Categories
from howsure.core.rng import child
from howsure.stats.binomial import binomial_test, clopper_pearson, holm, worst_part
from howsure.stats.estimate import Estimate
from howsure.topics.conditional.forests import Region, as_claimed, as_covered, share_as_large

_CLOSE = 1e-12
_CHUNK = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoverageGap:
    """Outcome of `coverage_gap`.

    Attributes
    ----------
    raw : Estimate
        Raw gap. Its error is by the delta method, too large near 0, and its interval reaches down
        by what chance may add to the gaps of groups near their claim; the null and its upper end
        are the mean (exact where all rows claim the same) and the 95 % quantile (simulated) of a
        right model with groups of
        these sizes, and p is the share of simulated right models with a gap as large.
    debiased : Estimate
        Mean squared gap without the binomial noise, each group cut at 0; its null mean is
        simulated, and above 0 as groups are cut.
    region : Region or None
        The group that under-covers beyond its interval by most; where none does, that of
        the smallest p-value. Its p-value is Holm-adjusted over the groups.
    labels : ndarray of shape (g,)
        The groups.
    sizes : ndarray of int, shape (g,)
        Rows of each group.
    empirical_coverage, p_values : ndarray of float, shape (g,)
        Coverage of each group, and its exact two-sided p-value, Holm-adjusted; of unequal claims
        it is conservative.
    """

    raw: Estimate
    debiased: Estimate
    region: Region | None = None
    labels: npt.NDArray[np.generic]
    sizes: IntArray
    empirical_coverage: FloatArray
    p_values: FloatArray

    __repr__ = brief_repr


def coverage_gap(
    covered: npt.ArrayLike,
    groups: npt.ArrayLike | Categories,
    *,
    coverage: float | npt.ArrayLike,
    name: str = "group",
    replicates: int = 999,
    confidence: float = 0.95,
    seed: int = 0,
) -> CoverageGap:
    """Mean distance of the groups' coverages from what they claim; lower is better.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    groups : array-like of shape (n,)
        The group of each row.
    coverage : float or array-like of shape (n,)
        Nominal coverage 1 − α, in (0, 1), or what each row claims, p_i, in [0, 1].
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
    [(cov_g − (1−α))² − α(1−α)/n_g]₊. Of unequal claims, 1−α is their mean in the group, and the
    noise Σ p_i(1−p_i)/n_g². The null mean of the raw gap uses De Moivre's formula of
    the mean absolute deviation of a binomial count. Rows must be independent. Source: class-
    conditional coverage gap of T. Ding et al. (2023, arXiv:2306.09335), for any groups.

    Examples
    --------
    >>> hit = np.r_[np.ones(90), np.zeros(10), np.ones(70), np.zeros(30)]
    >>> found = coverage_gap(hit, ["a"] * 100 + ["b"] * 100, coverage=0.9)
    >>> found.raw.value, found.region.where
    (0.1, 'group=b')
    """
    hit = as_covered(covered)
    claimed = as_claimed(coverage, len(hit))
    level = check_fraction(confidence, "confidence")
    check_whole(replicates, "replicates")
    column = Categories.checked(groups, "groups", length=len(hit))
    sizes = column.counts
    hits = np.bincount(column.codes, weights=hit, minlength=len(sizes)).astype(np.float64)
    seen = hits / sizes
    free = bool((claimed != claimed[0]).any())
    nominal = np.full(len(sizes), claimed[0])
    noise = nominal * (1 - nominal) / sizes
    if free:
        nominal = np.clip(np.bincount(column.codes, weights=claimed) / sizes, 0.0, 1.0)
        noise = np.bincount(column.codes, weights=claimed * (1 - claimed)) / np.square(sizes)
    adjusted = holm(binomial_test(hits, sizes, nominal))
    if len(sizes) < 2:
        reason = "all rows are in one group, so its coverage is the marginal one"
        none = Estimate(math.nan, reason=reason, details={"column": name}, n=len(hit))
        return CoverageGap(
            raw=none,
            debiased=none,
            labels=column.labels,
            sizes=sizes,
            empirical_coverage=seen,
            p_values=adjusted,
        )
    raw, squared = _gaps(seen[None, :], nominal, noise)
    drawn = _simulated(column, claimed, nominal, noise, replicates, seed)
    variance = seen * (1 - seen) / sizes
    slope = np.where(np.square(seen - nominal) > noise, 2 * (seen - nominal), 0.0)
    region = _worst(column, hits, adjusted, nominal, name, level)
    reach = float(special.ndtri(0.5 + level / 2))
    errors = [
        math.sqrt(float((variance * factor).sum())) / len(sizes) for factor in (1.0, slope**2)
    ]
    details = {"column": name, "where": region.where}
    by_chance = float(_added_by_chance(seen - nominal, np.sqrt(noise)).mean())

    def estimate(
        value: float, gaps: FloatArray, null: FloatArray, error: float, *, by_chance: float = 0.0
    ) -> Estimate:
        return Estimate(
            value,
            null=float(null.mean()),
            details=details,
            error=error,
            lower=max(value - by_chance - reach * error, 0.0),
            upper=min(value + reach * error, 1.0),
            null_upper=float(np.quantile(gaps, 0.95)),
            p=share_as_large(gaps, value - _CLOSE),
            n=len(hit),
        )

    null = drawn[0] if free else _mean_deviation(sizes, claimed[0])
    return CoverageGap(
        raw=estimate(float(raw[0]), drawn[0], null, errors[0], by_chance=by_chance),
        debiased=estimate(float(squared[0]), drawn[1], drawn[1], errors[1]),
        region=region,
        labels=column.labels,
        sizes=sizes,
        empirical_coverage=seen,
        p_values=adjusted,
    )


def _gaps(
    seen: FloatArray, claimed: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Raw and debiased gap of each row of group coverages."""
    off = seen - claimed
    return np.abs(off).mean(axis=1), np.maximum(off * off - noise, 0.0).mean(axis=1)


def _simulated(
    column: Categories,
    claimed: FloatArray,
    nominal: FloatArray,
    noise: FloatArray,
    replicates: int,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Raw and debiased gaps of right models; where claims differ, rows are drawn one by one."""
    rng = child(seed, "coverage gap")
    rank = np.lexsort((noise, nominal, column.counts))  # so that no name and no place matters
    order = np.lexsort((claimed, np.argsort(rank)[column.codes]))
    chances, sizes = claimed[order], column.counts[rank]
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    same = bool((claimed == claimed[0]).all())
    step = max(1, _CHUNK // len(sizes if same else chances))
    parts = []
    for start in range(0, replicates, step):
        count = min(step, replicates - start)
        if same:
            hits = rng.binomial(sizes, claimed[0], (count, len(sizes)))
        else:
            lucky: BoolArray = rng.random((count, len(chances))) < chances
            hits = np.add.reduceat(lucky, starts, axis=1, dtype=np.int64)
        parts.append(_gaps(hits / sizes, nominal[rank], noise[rank]))
    raw, squared = zip(*parts, strict=True)
    return np.concatenate(raw), np.concatenate(squared)


def _added_by_chance(off: FloatArray, error: FloatArray) -> FloatArray:
    """E|d + e Z| − |d| of normal Z, at most, where d is an error nearer to 0 than what was seen."""
    if not error.all():  # a claim of 0 or 1
        error = np.maximum(error, 1e-300)
    near = np.maximum(np.abs(off) / error - 1.0, 0.0)
    density = np.exp(-0.5 * near * near) / math.sqrt(2.0 * math.pi)
    return np.asarray(2.0 * error * (density - near * special.ndtr(-near)))


def _mean_deviation(sizes: IntArray, share: float) -> FloatArray:
    """E|X/n − p| of a binomial X: 2 p^(m+1) (1−p)^(n−m) (m+1) C(n, m+1) / n with m = ⌊np⌋."""
    n = sizes.astype(np.float64)
    m = np.minimum(np.floor(n * share), n - 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(m + 2) - special.gammaln(n - m)
    log_mass = log_choose + special.xlogy(m + 1, share) + special.xlog1py(n - m, -share)
    return 2 * (m + 1) * np.exp(log_mass) / n


def _worst(
    column: Categories,
    hits: FloatArray,
    adjusted: FloatArray,
    coverage: FloatArray,
    name: str,
    confidence: float,
) -> Region:
    sizes = column.counts
    off = np.abs(hits / sizes - coverage)
    lower, upper = clopper_pearson(hits, sizes, confidence)
    farthest = int(np.lexsort((-off, binomial_test(hits, sizes, coverage)))[0])
    g = worst_part(upper, coverage, farthest)
    return Region(
        where=f"{name}={column.labels[g]}",
        n=int(sizes[g]),
        share=float(sizes[g] / sizes.sum()),
        empirical_coverage=float(hits[g] / sizes[g]),
        lower=float(lower[g]),
        upper=float(upper[g]),
        p_value=float(adjusted[g]),
        expected=float(coverage[g]),
    )
