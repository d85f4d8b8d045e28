"""Do rows with wider intervals get covered more, or less? HSIC and Pearson's correlation.

Where coverage holds at every input, whether a row is covered says nothing of its width. The
reverse is not true: constant widths are independent of everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_vector
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.binomial import shift_shares
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

_BANDS = 10
_GROUPS = 50
_TOLERANCE = 1e-11  # of the kernel's mean diagonal, left out of the factor
_MAX_RANK = 500
_CLOSE = 1e-9
_FLAT = 1e-12  # of the largest width: below it, widths differ by rounding alone


@dataclass(frozen=True, slots=True, kw_only=True)
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
            tolerance=_TOLERANCE * len(hit),
            max_rank=_MAX_RANK,
            seed=seed,
        )
        rank, centred = factor.shape[1], factor - factor.mean(axis=0)
        norm = float(np.linalg.norm(centred.T @ centred))
        null = float(np.square(centred).sum()) / ((len(hit) - 1) * norm)
        if float(left_out.sum()) > _TOLERANCE * len(hit):
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
        p=share_as_large(sizes, abs(value) * (1 - _CLOSE)),
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
    if wide[-1] - wide[0] <= _FLAT * wide[-1]:
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
    parts = min(_GROUPS, len(hit))
    part = np.empty(len(hit), dtype=np.int64)
    part[content_order(seed, wide, hit.astype(np.float64))] = np.arange(len(hit)) % parts
    values = [measure_without(part == number) for number in range(parts)]
    return math.sqrt((parts - 1) * float(np.var(values)))


def _correlation_without(
    hit: BoolArray, surplus: FloatArray, wide: FloatArray, rows: BoolArray
) -> float:
    """The correlation of the other rows, or NaN.

    It is computed afresh: sums less a part's sums would lose all digits of the other widths
    wherever one width is huge beside them.
    """
    width, inside, moved = wide[~rows], hit[~rows], surplus[~rows]
    if inside.all() or not inside.any() or width[-1] - width[0] <= _FLAT * width[-1]:
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
    if spread <= 0 or norm <= _FLAT * float(np.linalg.norm(sums_of_all[1])):
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
        seen = hits / rows
        off = seen - np.bincount(band[search], claimed[search], minlength=len(edges) + 1) / rows
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
        found=float(seen[worst]),
        confidence=confidence,
    )
