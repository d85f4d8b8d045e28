"""Does coverage depend on the width of intervals, or on the group?

Where it holds at every input, whether a row is covered says nothing of its width. The reverse is
not true: constant widths are independent of everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.core.rng import child
from howsure.stats.binomial import binomial_test, clopper_pearson, holm, shift_shares, worst_part
from howsure.stats.estimate import Estimate
from howsure.stats.kernels import RBF
from howsure.stats.solvers import landmark_factor
from howsure.topics.conditional.forests import (
    Region,
    as_claimed,
    as_covered,
    content_order,
    region_of,
    share_as_large,
)

Floats = npt.NDArray[np.floating[Any]]

# Chosen by hand; not tuned. With more, bands of the half that judges have too few rows.
_BANDS = 10
# Fifty parts know a standard error to 10 % (1/√(2·50)); each costs the whole measure once.
_JACKKNIFE_PARTS = 50
# Of the kernel's mean diagonal, left out of the factor: what that changes in a norm is below what
# is shown.
_FACTOR_TOLERANCE = 1e-11
# Memory of the factor is n times that: 500 columns of 5,000 rows are 20 MB; what it leaves out is
# told.
_MAX_RANK = 500
# Sizes that are equal but for the order of additions count as ties.
_TIE_TOLERANCE = 1e-9
_WIDTH_ROUNDING = 1e-12  # of the largest width: below it, widths differ by rounding alone


@frozen(kw_only=True)
class DependenceTest:
    """Outcome of `hsic` and of `width_correlation`.

    Attributes
    ----------
    estimate : Estimate
        The measure. Its error is by leaving out a fiftieth of the rows at a time, too large near
        the least HSIC; the null is its exact mean over all permutations of the coverage
        indicators, with the 95 % quantile of its size over those drawn; p is the share of these
        with a size as large.
    region : Region or None
        The tenth of the widths whose coverage is farthest below the nominal one, chosen on one
        half of the rows and judged on the other.
    bandwidth : float
        Of the kernel, in the units of the width; NaN for the correlation.
    rank : int
        Of the kernel's factor; 0 for the correlation.
    """

    estimate: Estimate
    region: Region | None = None
    bandwidth: float = math.nan
    rank: int = 0


def hsic(
    covered: npt.ArrayLike,
    width: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    permutations: int = 999,
    confidence: float = 0.95,
    seed: int = 0,
) -> DependenceTest:
    """Hilbert–Schmidt independence criterion of width and coverage, normalised; lower is better.

    Sees any dependence, not only a straight one, and does not change with the units of y.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    width : array-like of shape (n,)
        Width of each interval, or size of each set; finite.
    coverage : float or array-like of shape (n,)
        Nominal coverage, in (0, 1), or what each row claims, p_i, in [0, 1]. The worst band of
        widths is judged by it. Where claims differ, c_i − p̃_i takes the place of c_i, with p̃ the
        claims moved to the coverage of all rows, and draws of p̃ that of permutations.
    permutations : int
        Permutations of the coverage indicators.
    confidence : float
        Of the region's interval.
    seed : int
        Fixes permutations and halves.

    Returns
    -------
    Dependence
        In [0, 1]; 0 for independence. NaN with a reason where all widths are equal, or all rows
        covered, or none.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    HSIC(K, L)/√(HSIC(K, K) HSIC(L, L)) with HSIC(K, L) = tr(KHLH)/n², K the Gaussian kernel of
    the widths, whose bandwidth is their median distance (of different widths, where more than
    half of the pairs are equal), and H the centring. Every kernel on two values centres to a
    multiple of u uᵀ, u the centred indicators, which the norm divides out: the value is
    uᵀKu / (‖HKH‖ uᵀu) for any L. K comes as a pivoted Cholesky factor F of small rank, so the
    cost is O(n r²) and ‖K − FFᵀ‖ ≤ 1e-11 n; `reason` says so where the rank did not reach. Over
    permutations its mean is tr(HKH)/((n − 1)‖HKH‖). Sources: A. Gretton et al. (2005);
    C. Cortes, M. Mohri and A. Rostamizadeh, JMLR 13 (2012); of width and coverage:
    S. Feldman, S. Bates and Y. Romano (2021, arXiv:2106.00394).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> width = rng.uniform(1, 3, 1000)
    >>> found = hsic(rng.random(1000) < np.where(width < 1.5, 0.6, 0.98), width, coverage=0.9)
    >>> found.estimate.p, found.region.where
    (0.001, '1.247 ≤ width < 1.453')
    """
    return _dependence(covered, width, coverage, permutations, confidence, seed)


def width_correlation(
    covered: npt.ArrayLike,
    width: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    permutations: int = 999,
    confidence: float = 0.95,
    seed: int = 0,
) -> DependenceTest:
    """Pearson's correlation of width and coverage; closer to 0 is better.

    Parameters
    ----------
    covered, width, coverage, permutations, confidence, seed
        As in `hsic`.

    Returns
    -------
    Dependence
        In [−1, 1]; positive where wider intervals are covered more often. NaN as in `hsic`.

    Raises
    ------
    InputError
        As `hsic`.

    Notes
    -----
    Σ (w_i − w̄)(c_i − c̄)/√(Σ (w_i − w̄)² Σ (c_i − c̄)²); 0 on average over permutations. Source:
    S. Feldman, S. Bates and Y. Romano (2021, arXiv:2106.00394), who take its size.

    Examples
    --------
    >>> width_correlation([0, 1, 1, 1], [1.0, 2.0, 3.0, 4.0], coverage=0.9).estimate.value
    0.775
    """
    return _dependence(covered, width, coverage, permutations, confidence, seed, straight=True)


def _dependence(
    covered: npt.ArrayLike,
    width: npt.ArrayLike,
    coverage: float | npt.ArrayLike,
    permutations: int,
    confidence: float,
    seed: int,
    *,
    straight: bool = False,
) -> DependenceTest:
    """HSIC, or the correlation, which sees a straight relation alone."""
    hit, wide, claimed, reason = _checked(covered, width, coverage, permutations)
    if reason:
        return DependenceTest(estimate=Estimate(math.nan, reason=reason, n=len(hit)))
    expected = shift_shares(claimed, float(hit.mean()))
    surplus = hit - expected
    scale, rank = math.nan, 0
    if straight:
        centred: FloatArray = ((wide - wide.mean()) / np.ptp(wide))[:, None]
        norm, null = float(np.square(centred).sum()), 0.0
        error = _jackknife(hit, wide, seed, partial(_correlation_without, hit, surplus, wide))
    else:
        scale = median_gap(wide)
        factor, left_out = landmark_factor(
            RBF(0.5),
            wide[:, None] / scale,
            tolerance=_FACTOR_TOLERANCE * len(hit),
            max_rank=_MAX_RANK,
            seed=seed,
        )
        rank, centred = factor.shape[1], factor - factor.mean(axis=0)
        norm = float(np.linalg.norm(centred.T @ centred))
        null = float(np.square(centred).sum()) / ((len(hit) - 1) * norm)
        if float(left_out.sum()) > _FACTOR_TOLERANCE * len(hit):
            reason = f"the factor leaves out {left_out.mean():.1g} of the kernel"
        sums = _moments(factor, surplus)
        error = _jackknife(hit, wide, seed, partial(_hsic_without, factor, surplus, sums))

    def measure(products: FloatArray, spread: float) -> float:
        if straight:
            return float(products[0]) / math.sqrt(norm * spread)
        return _square(products) / (norm * spread)

    value = measure(surplus @ centred, _square(surplus))
    drawn = _by_chance(centred, hit, expected, permutations, seed)
    sizes = np.abs([measure(products, spread) for products, spread in drawn])
    if not straight and (expected != expected[0]).any():
        null = float(sizes.mean())
    region = _worst_band(hit, wide, claimed, confidence, seed)
    reach = float(special.ndtri(0.5 + confidence / 2)) * error
    estimate = Estimate(
        value,
        null=null,
        reason=reason,
        details={} if region is None else {"where": region.where},
        error=error,
        lower=max(value - reach, -1.0 if straight else 0.0),
        upper=min(value + reach, 1.0),
        null_upper=float(np.quantile(sizes, 0.95)),
        p=share_as_large(sizes, abs(value) * (1 - _TIE_TOLERANCE)),
        n=len(hit),
    )
    return DependenceTest(estimate=estimate, region=region, bandwidth=scale, rank=rank)


def median_gap(values: FloatArray) -> float:
    """Median distance of two numbers; of two different ones where half of the pairs are equal."""
    rising = np.sort(values)
    n = len(rising)
    pairs = n * (n - 1) // 2
    ranks = [(pairs - 1) // 2, pairs // 2]
    equal = _pairs_within(rising, 0.0)
    if equal > ranks[0]:
        ranks = [equal + (pairs - equal - 1) // 2, equal + (pairs - equal) // 2]
    gaps = [_gap_of_rank(rising, rank) for rank in dict.fromkeys(ranks)]
    return float(np.mean(gaps))


def _pairs_within(rising: FloatArray, gap: float) -> int:
    """Pairs at most so far apart."""
    upto = np.searchsorted(rising, rising + gap, side="right")
    return int(upto.sum()) - len(rising) * (len(rising) + 1) // 2


def _gap_of_rank(rising: FloatArray, rank: int) -> float:
    """The distance that this many pairs fall short of, by bisection."""
    low, high = 0.0, float(rising[-1] - rising[0])
    # As many digits as a difference of two widths has.
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _pairs_within(rising, middle) > rank:
            high = middle
        else:
            low = middle
    return high


def _checked(
    covered: npt.ArrayLike,
    width: npt.ArrayLike,
    coverage: float | npt.ArrayLike,
    permutations: int,
) -> tuple[BoolArray, FloatArray, FloatArray, str]:
    """Rows in the order of their widths, and why there is no answer, if so."""
    hit = as_covered(covered)
    claimed = as_claimed(coverage, len(hit))
    wide = as_vector(width, "width", length=len(hit), finite=False)
    check_whole(permutations, "permutations")
    if not np.isfinite(wide).all():
        return hit, wide, claimed, "some intervals are unbounded"
    if (wide < 0).any():
        raise InputError(f"width must not be negative, got {wide.min():g}")
    order = np.lexsort((claimed, hit, wide))
    hit, wide, claimed = hit[order], wide[order], claimed[order]
    if wide[-1] - wide[0] <= _WIDTH_ROUNDING * wide[-1]:
        return hit, wide, claimed, "all widths are equal"
    if hit.all() or not hit.any():
        return hit, wide, claimed, "every row is covered" if hit.any() else "no row is covered"
    return hit, wide, claimed, ""


def _square(vector: FloatArray) -> float:
    return float(vector @ vector)


def _by_chance(
    centred: FloatArray, hit: BoolArray, expected: FloatArray, permutations: int, seed: int
) -> Iterator[tuple[FloatArray, float]]:
    """Products of the centred factor with chance surpluses, up to the sign, and their squares.

    Of equal claims these are permutations: sums over as many random rows as are covered.
    """
    rng = child(seed, "width and coverage")
    n = len(hit)
    if (expected == expected[0]).all():
        spread = n * float(hit.mean()) * (1 - float(hit.mean()))
        few = int(min(hit.sum(), n - hit.sum()))
        for _ in range(permutations):
            yield centred[rng.choice(n, few, replace=False)].sum(axis=0), spread
        return
    noise = expected * (1 - expected)
    for _ in range(permutations):
        surplus = (rng.random(n) < expected) - expected
        surplus -= surplus.sum() * noise / noise.sum()  # the mean of all rows was fitted
        yield surplus @ centred, _square(surplus)


def _jackknife(
    hit: BoolArray, wide: FloatArray, seed: int, measure_without: Callable[[BoolArray], float]
) -> float:
    """Standard error by leaving out one of fifty parts of the rows, or each row, at a time."""
    parts = min(_JACKKNIFE_PARTS, len(hit))
    part_of_row = np.empty(len(hit), dtype=np.int64)
    part_of_row[content_order(seed, wide, hit.astype(np.float64))] = np.arange(len(hit)) % parts
    values = [measure_without(part_of_row == number) for number in range(parts)]
    return math.sqrt((parts - 1) * float(np.var(values)))


def _correlation_without(
    hit: BoolArray, surplus: FloatArray, wide: FloatArray, rows: BoolArray
) -> float:
    """The correlation of the other rows, or NaN.

    It is computed afresh: sums less a part's sums would lose all digits of the other widths
    wherever one width is huge beside them.
    """
    width, inside, moved = wide[~rows], hit[~rows], surplus[~rows]
    if inside.all() or not inside.any() or width[-1] - width[0] <= _WIDTH_ROUNDING * width[-1]:
        return math.nan
    centred = (width - width.mean()) / (width[-1] - width[0])
    moved = moved - moved.mean()
    return float(centred @ moved) / math.sqrt(_square(centred) * _square(moved))


def _hsic_without(
    factor: Floats, surplus: FloatArray, sums_of_all: Sequence[FloatArray], rows: BoolArray
) -> float:
    """HSIC of the other rows, the bandwidth held, or NaN."""
    removed = _moments(factor[rows], surplus[rows])
    sums, products, covered = (sums_of_all[i] - removed[i] for i in range(3))
    mean = surplus[~rows].mean()
    spread = _square(surplus[~rows] - mean)
    matrix = products - np.outer(sums, sums) / np.count_nonzero(~rows)
    norm = float(np.linalg.norm(matrix))
    if spread <= 0 or norm <= _WIDTH_ROUNDING * float(np.linalg.norm(sums_of_all[1])):
        return math.nan
    return _square(covered - sums * float(mean)) / (norm * spread)


def _moments(factor: Floats, surplus: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums and products over all rows, and products with the surplus of coverage."""
    return factor.sum(axis=0), factor.T @ factor, surplus @ factor


def _worst_band(
    hit: BoolArray, wide: FloatArray, claimed: FloatArray, confidence: float, seed: int
) -> Region | None:
    """The tenth of the widths covered least for its claim on half of the rows, judged on others."""
    order = content_order(seed, wide, hit.astype(np.float64))
    search, judge = np.sort(order[: len(hit) // 2]), np.sort(order[len(hit) // 2 :])
    if len(search) < 2 * _BANDS:
        return None
    edges = np.unique(np.quantile(wide[search], np.arange(1, _BANDS) / _BANDS))
    band = np.searchsorted(edges, wide, side="right")
    rows = np.bincount(band[search], minlength=len(edges) + 1)
    hits = np.bincount(band[search], weights=hit[search], minlength=len(edges) + 1)
    with np.errstate(invalid="ignore"):
        shares = hits / rows
        off = shares - np.bincount(band[search], claimed[search], minlength=len(edges) + 1) / rows
    worst = int(np.nanargmin(off))
    low = -math.inf if worst == 0 else float(edges[worst - 1])
    high = math.inf if worst == len(edges) else float(edges[worst])
    least = f"{low:.4g} ≤ " if math.isfinite(low) else ""
    most = f" < {high:.4g}" if math.isfinite(high) else ""
    return region_of(
        f"{least}width{most}",
        band[judge] == worst,
        hit[judge],
        claimed[judge],
        found=float(shares[worst]),
        confidence=confidence,
    )


# ---- coverage gap over groups: how far the groups' coverages lie from the nominal one ------------
# The raw gap of a right model is not 0: a group of n rows is off by chance. The null says by how
# much, and the debiased form takes the binomial noise out.

# Gaps that are equal but for the order of additions count as ties.
_GAP_ROUNDING = 1e-12
# 2 million numbers of 64 bits are 16 MB.
_NUMBERS_AT_ONCE = 2_000_000


@frozen(kw_only=True, eq=False)
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
    shares = hits / sizes
    free = bool((claimed != claimed[0]).any())
    nominal = np.full(len(sizes), claimed[0])
    noise = nominal * (1 - nominal) / sizes
    if free:
        nominal = np.clip(np.bincount(column.codes, weights=claimed) / sizes, 0.0, 1.0)
        noise = np.bincount(column.codes, weights=claimed * (1 - claimed)) / np.square(sizes)
    adjusted = holm(binomial_test(hits, sizes, nominal))
    gap = partial(
        CoverageGap,
        labels=column.labels,
        sizes=sizes,
        empirical_coverage=shares,
        p_values=adjusted,
    )
    if len(sizes) < 2:
        reason = "all rows are in one group, so its coverage is the marginal one"
        none = Estimate(math.nan, reason=reason, details={"column": name}, n=len(hit))
        return gap(raw=none, debiased=none)
    raw, squared = _gaps(shares[None, :], nominal, noise)
    drawn = _simulated(column, claimed, nominal, noise, replicates, seed)
    variance = shares * (1 - shares) / sizes
    slope = np.where(np.square(shares - nominal) > noise, 2 * (shares - nominal), 0.0)
    region = _worst(column, hits, adjusted, nominal, name, level)
    reach = float(special.ndtri(0.5 + level / 2))
    errors = [
        math.sqrt(float((variance * factor).sum())) / len(sizes) for factor in (1.0, slope**2)
    ]
    details = {"column": name, "where": region.where}
    by_chance = float(_added_by_chance(shares - nominal, np.sqrt(noise)).mean())

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
            p=share_as_large(gaps, value - _GAP_ROUNDING),
            n=len(hit),
        )

    null = drawn[0] if free else _mean_deviation(sizes, claimed[0])
    return gap(
        raw=estimate(float(raw[0]), drawn[0], null, errors[0], by_chance=by_chance),
        debiased=estimate(float(squared[0]), drawn[1], drawn[1], errors[1]),
        region=region,
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
    step = max(1, _NUMBERS_AT_ONCE // len(sizes if same else chances))
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
