"""Worst-slab coverage: the coverage between two parallel planes, where it is worst.

The slab is sought on one half of the rows and judged on the other. Judged on the rows that
chose it, even a perfect model looks bad: that number is given too, beside what it would be if
every row were covered at the nominal rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.rng import child
from howsure.stats.binomial import Alternative, clopper_pearson, shift_shares
from howsure.stats.ecdf import check_pit
from howsure.stats.estimate import Estimate
from howsure.topics.conditional.forests import (
    Problem,
    Region,
    TreeInputs,
    as_claimed,
    as_covered,
    as_problem,
    between,
    region_of,
    share_as_large,
    tree_nodes,
)

# The search looks at all pairs of cuts of each direction, so time and memory grow with the square.
CUTS = 2_000
"""Slabs end at every row of the search, or at about so many evenly spaced ones where there are
more than twice as many."""
# Chosen by hand; not tuned. A slab of fewer rows is covered badly by chance alone.
MIN_ROWS_INSIDE = 5
"""Rows that the smallest slab must hold in the half that is searched."""
# Coverages and coordinates of unit vectors that differ by less differ by rounding.
_TIE_TOLERANCE = 1e-9
# Projections of equal rows differ by what a sum of products loses.
_PROJECTION_ROUNDING = 1e-12


@frozen(eq=False)
class Slab:
    """Rows with lower ≤ direction · (x − centre) / scale ≤ upper.

    Attributes
    ----------
    direction : ndarray of float, shape (d,)
        Of length one, on standardised inputs; 0 for an input that does not vary.
    lower, upper : float
        Its ends; infinite where it has none.
    centre, scale : ndarray of float, shape (d,)
        Mean and sd of the inputs.
    names : tuple of str
        Names of the inputs.
    """

    direction: FloatArray
    lower: float
    upper: float
    centre: FloatArray
    scale: FloatArray
    names: tuple[str, ...]

    def contains(self, x: FloatArray) -> BoolArray:
        """Which rows lie inside, shape (n,)."""
        projected = ((x - self.centre) / self.scale) @ self.direction
        return (projected >= self.lower) & (projected <= self.upper)

    def describe(self) -> str:
        """The slab in words, in the units of its one or two inputs."""
        order = np.argsort(-np.abs(self.direction), kind="stable")
        columns = [int(i) for i in order if abs(self.direction[i]) > _TIE_TOLERANCE]
        first = columns[0]
        slope = self.direction / self.scale
        ends = [(end + slope @ self.centre) / slope[first] for end in (self.lower, self.upper)]
        terms = self.names[first]
        for i in columns[1:]:
            factor = slope[i] / slope[first]
            terms += f" {'+' if factor > 0 else '−'} {abs(factor):.3g}·{self.names[i]}"
        return between(terms, min(ends), max(ends))

    def mostly(self, x: FloatArray) -> str:
        """Where nine tenths of its rows lie in each of its inputs: a slanted slab has no ends."""
        inside = x[self.contains(x)]
        columns = np.flatnonzero(np.abs(self.direction) > _TIE_TOLERANCE)
        if len(columns) < 2 or not len(inside):
            return self.describe()
        ends = np.quantile(inside, (0.05, 0.95), axis=0)
        ranges = [between(self.names[i], *ends[:, i].tolist()) for i in columns]
        return f"mostly {' and '.join(ranges)}"


@frozen(kw_only=True)
class WorstSlab:
    """Outcome of `worst_slab`.

    Attributes
    ----------
    estimate : Estimate
        Coverage inside the slab on the half that did not choose it, with its exact interval. The
        null is the mean coverage claimed inside, its lower end the 5 % quantile of a model with
        conditional coverage at this number of rows inside; p is exact, one-sided.
    searched : Estimate
        Coverage inside on the half that chose it: too low. Its null, the lower end of that and p
        are by the same search on simulated indicators.
    region : Region or None
        The slab in words, with its rows.
    slab : Slab or None
        The slab.
    """

    estimate: Estimate
    searched: Estimate
    region: Region | None = None
    slab: Slab | None = None


def worst_slab(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    share: float = 0.1,
    directions: int = 1000,
    replicates: int = 99,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> WorstSlab:
    """Find the slab of the inputs that is covered worst, and judge it on other rows.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs, in any units; finite.
    coverage : float or array-like of shape (n,)
        Nominal coverage, in (0, 1), or what each row claims, in [0, 1].
    share : float
        Least share of the searched rows in a slab, in (0, 1).
    directions : int
        Random directions of the slabs, each in two of the inputs that take more than two values;
        the inputs' own directions are tried besides. With fewer such inputs there is no other.
    replicates : int
        Searches on simulated indicators, for the null of `searched`.
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the interval.
    seed : int
        Fixes halves, directions and simulations.

    Returns
    -------
    WorstSlab
        In [0, 1]; the nominal coverage is best. NaN with a reason where no input varies, or where
        the smallest slab would hold fewer than five of the searched rows.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    min over unit vectors v in the planes of two inputs and a ≤ b, with a share of at least δ
    inside, of the mean of c_i over rows with a ≤ v·x_i ≤ b, for x in units of its sd. Rows are
    independent, so on the other half a model with conditional coverage covers a binomial number of
    the rows inside: that null is exact (of unequal claims it is conservative, by their mean:
    Hoeffding 1956). The null of the searched minimum is simulated: indicators drawn as claimed,
    the same rows and directions. For each direction the exact minimum is found by Dinkelbach's
    iteration on prefix sums of the sorted rows, O(n log n). Source: M. Cauchois, S. Gupta and
    J. C. Duchi, JMLR 22 (2021); halves as in Y. Romano, M. Sesia and E. Candès (2020,
    arXiv:2006.02544).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = worst_slab(covered, x, coverage=0.9, directions=50, names=["age", "dose"])
    >>> found.region.where, round(found.estimate.value, 2)
    ('age > 1.204', 0.5)
    """
    problem = as_problem(covered, x, coverage, names, seed)
    delta, level = check_fraction(share, "share"), check_fraction(confidence, "confidence")
    check_whole(directions, "directions")
    check_whole(replicates, "replicates")
    half = problem.n // 2
    if math.floor(delta * half) < MIN_ROWS_INSIDE:
        need = 2 * math.ceil(MIN_ROWS_INSIDE / delta)
        return _unanswered(f"two halves need at least {need} rows, got {problem.n}", problem.n)
    centre, scale = problem.x.mean(axis=0), problem.x.std(axis=0)
    varies = np.ptp(problem.x[:half], axis=0) > _PROJECTION_ROUNDING * np.abs(problem.x[:half]).max(
        axis=0
    )
    if not varies.any():
        return _unanswered("no input varies", problem.n)
    scale = np.where(varies, scale, 1.0)
    rows = ((problem.x[:half] - centre) / scale)[:, varies]
    tried = _directions(problem.x, varies, directions, seed)
    draws = (
        child(seed, "worst slab null").random((half, replicates)) < problem.coverage[:half, None]
    )
    columns = np.column_stack([problem.covered[:half], draws])
    values, worst, ends = _search(rows, columns, tried[:, varies], delta)
    slab = Slab(tried[worst], *ends, centre, scale, problem.names)
    region = region_of(
        slab.describe(),
        slab.contains(problem.x[half:]),
        problem.covered[half:],
        problem.coverage[half:],
        found=float(values[0]),
        confidence=level,
        alternative="less",
    )
    value, m, simulated = region.empirical_coverage, region.n, values[1:]
    reason = "no row of the other half is in the slab" if m == 0 else ""
    if problem.covered[:half].all():
        reason = "every searched row is covered: no slab is worse than another"
    searched = Estimate(
        float(values[0]),
        null=float(simulated.mean()),
        null_lower=float(np.quantile(simulated, 0.05)),
        p=share_as_large(-simulated, -values[0] - _TIE_TOLERANCE),
    )
    details: dict[str, str | float] = {
        "searched": searched.value,
        "searched_null": searched.null,
        "searched_p_value": searched.p,
        "where": region.where,
    }
    estimate = Estimate(
        value,
        null=region.expected,
        reason=reason,
        details=details,
        error=math.sqrt(value * (1 - value) / m) if m else math.nan,
        lower=region.lower,
        upper=region.upper,
        null_lower=_binomial_quantile(0.05, m, region.expected) / m if m else math.nan,
        p=region.p_value,
        n=problem.n,
    )
    return WorstSlab(estimate=estimate, searched=searched, region=region, slab=slab)


def _unanswered(reason: str, n: int) -> WorstSlab:
    none = Estimate(math.nan, reason=reason, n=n)
    return WorstSlab(estimate=none, searched=none)


def _binomial_quantile(level: float, n: int, share: float) -> float:
    counts = np.arange(n + 1)
    return float(np.searchsorted(special.bdtr(counts, n, share), level))


def _directions(x: FloatArray, varies: BoolArray, count: int, seed: int) -> FloatArray:
    """The axes of the inputs that vary, then random unit vectors in planes of two of them.

    A plane with an input that is yes or no, as labels are, has no slanted slab worth telling.
    """
    every = np.eye(len(varies))
    low, high = x.min(axis=0), x.max(axis=0)
    axes = every[varies & ((x > low) & (x < high)).any(axis=0)]
    if len(axes) < 2:
        return every[varies]
    rng = child(seed, "worst slab directions")
    pairs = rng.permuted(np.tile(np.arange(len(axes)), (count, 1)), axis=1)[:, :2]
    angle = rng.uniform(0, np.pi, (count, 1))
    drawn = np.cos(angle) * axes[pairs[:, 0]] + np.sin(angle) * axes[pairs[:, 1]]
    return np.concatenate([every[varies], drawn])


def _search(
    rows: FloatArray, columns: BoolArray, directions: FloatArray, share: float
) -> tuple[FloatArray, int, tuple[float, float]]:
    """Lowest mean of each column over all slabs; for the first column, also where it lies.

    All columns share the sorting of the rows and start from the best slab known so far: most
    directions need one pass to see that they hold nothing better.
    """
    n = len(rows)
    step = max(1, n // CUTS) if n > 2 * CUTS else 1
    least = math.ceil(share * n - _TIE_TOLERANCE)
    best = columns.mean(axis=0)
    kind = np.int16 if n < 2**15 else np.int32  # sums of small integers are quick
    counted = columns.astype(np.uint8)
    where, ends = 0, (-math.inf, math.inf)
    for number, direction in enumerate(directions):
        projected = rows @ direction
        order = np.argsort(projected, kind="stable")
        projected = projected[order]
        cuts = _cuts(projected, step)
        total = np.zeros((n + 1, columns.shape[1]), dtype=kind)  # over the rows before each cut
        np.cumsum(counted[order], axis=0, dtype=kind, out=total[1:])
        total = total if len(cuts) == len(total) else total[cuts]
        last = np.searchsorted(cuts, cuts - least, side="right") - 1
        open_ = last >= 0
        low, high = _improve(total, cuts, last[open_], np.flatnonzero(open_), best)
        if low >= 0:
            where, ends = number, _ends(projected, int(cuts[low]), int(cuts[high]))
    return best, where, ends


def _cuts(projected: FloatArray, step: int) -> IntArray:
    """Places where a slab may begin or end: never between rows that project alike."""
    tied = np.diff(projected) <= _PROJECTION_ROUNDING * max(abs(projected[0]), abs(projected[-1]))
    wanted: IntArray = np.r_[np.arange(0, len(projected), step), len(projected)]
    if not tied.any():
        return wanted
    legal = np.r_[0, np.flatnonzero(~tied) + 1, len(projected)]
    return np.unique(legal[np.searchsorted(legal, wanted)]).astype(np.int64)


def _improve(
    total: npt.NDArray[np.integer[Any]],
    cuts: IntArray,
    last: IntArray,
    ends: IntArray,
    best: FloatArray,
) -> tuple[int, int]:
    """Lower `best` where this direction holds a better slab; the first column's cuts, or −1.

    Dinkelbach (1967): with D_i = S_i − λ N_i, a slab has a mean below λ exactly where
    D_b − max(D_a over legal a) < 0; its mean is the next λ, until none is left.
    """
    # In 32 bits a gap is wrong by less than this bound.
    rough = total - cuts.astype(np.float32)[:, None] * best.astype(np.float32)
    low = rough[ends]
    _running_max(rough)
    low -= rough[last]
    bound = 8 * float(np.finfo(np.float32).eps) * int(cuts[-1])
    alive = np.flatnonzero(low.min(axis=0) < bound)
    best_cuts = (-1, -1)
    while len(alive):
        tilted = total[:, alive] - cuts[:, None] * best[alive]
        gaps = tilted[ends] - np.maximum.accumulate(tilted, axis=0)[last]
        row = gaps.argmin(axis=0)
        better = gaps[row, np.arange(len(alive))] < -_TIE_TOLERANCE
        for i in np.flatnonzero(better):
            b = int(ends[row[i]])
            a = int(tilted[: last[row[i]] + 1, i].argmax())
            column = int(alive[i])
            best[column] = (int(total[b, column]) - int(total[a, column])) / (cuts[b] - cuts[a])
            if column == 0:
                best_cuts = (a, b)
        alive = alive[better]
    return best_cuts


def _running_max(values: npt.NDArray[np.float32]) -> None:
    """Largest value so far down each column, in place: within blocks at once, then over them."""
    size = math.isqrt(len(values))
    blocks = values[: size * size].reshape(size, size, -1)
    for i in range(1, size):
        np.maximum(blocks[:, i], blocks[:, i - 1], out=blocks[:, i])
    for i in range(1, size):
        np.maximum(blocks[i], blocks[i - 1, -1], out=blocks[i])
    np.maximum.accumulate(values[size * size - 1 :], axis=0, out=values[size * size - 1 :])


def _ends(projected: FloatArray, low: int, high: int) -> tuple[float, float]:
    """Ends of a slab midway to the next rows outside; none where there is no row outside."""
    lower = -math.inf if low == 0 else float(projected[low - 1] + projected[low]) / 2
    upper = math.inf if high == len(projected) else float(projected[high - 1] + projected[high]) / 2
    return lower, upper


# ---- regions of the inputs: where is coverage lowest, and does any part differ from all rows? ----
# Each half of the rows seeks a part of the inputs in at most two conditions, and the other half
# judges it. To the second question a fault that is the same everywhere is none.

# Chosen by hand; not tuned. Below ten, a single miss more or less decides.
MIN_ROWS_JUDGED = 10
"""Rows that a region needs in the half that judges it."""
# Confidence by which nodes are ranked: at less, small nodes that are low by luck come first.
_CONFIDENCE_OF_SEARCH = 0.9999
# Sums of claims that are certain are 0 but for rounding.
_NO_VARIANCE = 1e-12


@frozen(kw_only=True)
class WorstRegion:
    """Outcome of `worst_region`.

    Attributes
    ----------
    estimate : Estimate
        Coverage inside, on the half that did not choose the region. The null is what its rows
        claim; interval and p, exact and one-sided, are adjusted for both halves. Details:
        ``where`` and the ``share`` of the rows.
    region : Region or None
        The region, with its interval.
    """

    estimate: Estimate
    region: Region | None = None


@frozen(kw_only=True)
class RegionTest:
    """Outcome of `regions_differ`.

    Attributes
    ----------
    estimate : Estimate
        The p-value, adjusted for both halves and all signals. Details tell of the region that is
        proven to under-cover, else of the one that differs most: ``where``, ``signal``,
        its mean inside (``deviation``), the ``share`` of the rows and how many (``rows``), their
        coverage (``value``, ``lower``, ``upper``) and the ``expected`` one.
    region : Region or None
        The region that differs most, whichever way, judged by coverage alone.
    """

    estimate: Estimate
    region: Region | None = None


def worst_region(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> WorstRegion:
    """Find the part of the inputs that is covered least, and judge it on other rows.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs, in any units; finite.
    coverage : float or array-like of shape (n,)
        Nominal coverage, in (0, 1), or what each row claims, in [0, 1].
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the interval.
    seed : int
        Fixes halves.

    Returns
    -------
    WorstRegion
        In [0, 1]; the nominal coverage is best. Where all rows of a half are covered alike, its
        region is all rows. NaN with a reason where no input varies or none would have ten judged
        rows.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    Each half of the rows fits a tree of depth two to c_i − p_i, whether covered less the claim, and
    takes the node below its root whose upper 99.99 % Clopper–Pearson end lies farthest below its
    mean claim. The other half judges it by the exact binomial test (conservative for unequal
    claims: Hoeffding 1956). The result is the region with the lower upper end; its p-value
    counts twice, and its interval is simultaneous for both (Bonferroni).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = worst_region(covered, x, coverage=0.9, names=["age", "dose"])
    >>> found.region.where, round(found.estimate.value, 2)
    ('age > 1', 0.52)
    """
    level = check_fraction(confidence, "confidence")
    problem = as_problem(covered, x, coverage, names, seed)
    if reason := _unanswerable(problem):
        return WorstRegion(estimate=Estimate(math.nan, reason=reason, n=problem.n))
    region = _lowest(problem, TreeInputs.of(problem.x), problem.coverage, level)
    if region is None:
        return WorstRegion(estimate=Estimate(math.nan, reason=_few(problem.n), n=problem.n))
    value, m = region.empirical_coverage, region.n
    estimate = Estimate(
        value,
        null=region.expected,
        details={"where": region.where, "share": region.share},
        error=math.sqrt(value * (1 - value) / m),
        lower=region.lower,
        upper=region.upper,
        null_lower=_binomial_quantile(0.025, m, region.expected) / m,
        null_upper=_binomial_quantile(0.975, m, region.expected) / m,
        p=min(1.0, 2 * region.p_value),
        n=m,
    )
    return WorstRegion(estimate=estimate, region=region)


def regions_differ(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    pit: npt.ArrayLike | None = None,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> RegionTest:
    """Test whether some part of the inputs strays from all rows, on rows that did not find it.

    Parameters
    ----------
    covered, x, coverage, names, confidence, seed
        As in `worst_region`.
    pit : array-like of shape (n,), optional
        P(Y ≤ y) of each row, which shows bias and spread besides; the randomised PIT for discrete
        laws.

    Returns
    -------
    RegionTest
        A p-value; NaN with a reason where no input varies or no region would hold ten judged rows.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    Signals of row i are c_i − p̃_i, where p̃ are the claims moved by one step on the logit scale
    to the coverage of all rows, and of the PIT u the Legendre components √3(2u − 1) (bias) and
    √5(6u² − 6u + 1) (spread), less their means over all rows. Each half of the rows fits a tree
    of depth two to each signal and takes the node whose sum of the signal is largest in the
    standard deviations that all rows lead one to expect. On the other half coverage is judged by
    the exact binomial test (of unequal p̃ conservative: Hoeffding 1956), a component by Student's
    t of its mean. The means of all rows hold the judged rows too, which makes both tests a little
    conservative. The smallest p-value counts as often as there are halves and signals (Bonferroni).

    Where coverage differs, or a region's spread is smaller, the region that is named is found as
    in `worst_region`, if other rows prove it to be covered less than expected, and than claimed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = regions_differ(covered, x, coverage=0.9, names=["age", "dose"])
    >>> found.estimate.details["where"], found.estimate.p < 1e-6
    ('age > 1', True)
    """
    level = check_fraction(confidence, "confidence")
    hits = as_covered(covered)
    inputs, claimed = as_matrix(x, "x", length=len(hits)), as_claimed(coverage, len(hits))
    ranks = None if pit is None else check_pit(pit, length=len(hits))
    if ranks is not None:  # among equal rows the PIT decides, not the place
        rising = np.argsort(ranks, kind="stable")
        ranks, hits = ranks[rising], hits[rising]
        inputs, claimed = inputs[rising], claimed[rising]
    problem = as_problem(hits, inputs, claimed, names, seed)
    if reason := _unanswerable(problem):
        return RegionTest(estimate=Estimate(math.nan, reason=reason, n=problem.n))
    hits, trees_see = problem.covered, TreeInputs.of(problem.x)
    expected = shift_shares(problem.coverage, float(hits.mean()))
    signals = {"coverage": hits - expected}
    if ranks is not None:
        u = ranks[problem.order]
        signals["bias"] = math.sqrt(3) * (2 * u - 1)
        signals["spread"] = math.sqrt(5) * (6 * u * u - 6 * u + 1)
    tests: list[tuple[float, str, float, Region]] = []
    for learn in _halves(problem.n):
        for name, values in signals.items():
            signal = values - values.mean()
            plain = np.full(problem.n, float(signal.var()))
            noise = expected * (1 - expected) if name == "coverage" else plain
            node = _strayed(trees_see, problem.names, signal, noise, learn)
            if node is None:
                continue
            where, inside = node
            strayed = signal[inside & ~learn]
            region = _judge_region(problem, where, inside, learn, expected, level)
            p = region.p_value if name == "coverage" else _t_test(strayed)
            tests.append((p, name, float(strayed.mean()), region))
    if not tests:
        return RegionTest(estimate=Estimate(math.nan, reason=_few(problem.n), n=problem.n))
    p, name, deviation, farthest = min(tests, key=lambda test: test[0])
    named = farthest
    if name == "coverage" or (name == "spread" and deviation < 0):
        lowest = _lowest(problem, trees_see, expected, level)
        mean_claim = float(np.mean(problem.coverage))  # where all cover more, less is no fault
        if lowest is not None and lowest.upper < min(lowest.expected, mean_claim):
            named, name = lowest, "coverage"
            deviation = lowest.empirical_coverage - lowest.expected
    p = min(1.0, 2 * len(signals) * p)
    estimate = Estimate(
        p,
        null=0.5,
        null_lower=0.05,
        null_upper=1.0,
        details={
            "where": named.where,
            "signal": name,
            "deviation": deviation,
            "share": named.share,
            "rows": float(named.n),
            "value": named.empirical_coverage,
            "expected": named.expected,
            "lower": named.lower,
            "upper": named.upper,
        },
        p=p,
        n=problem.n,
    )
    return RegionTest(estimate=estimate, region=farthest)


def _unanswerable(problem: Problem) -> str:
    """Why no region can be sought; empty where one can."""
    if problem.n // 2 < MIN_ROWS_JUDGED:
        return _few(problem.n)
    return "" if np.ptp(problem.x, axis=0).max() > 0 else "no input varies"


def _halves(n: int) -> tuple[BoolArray, BoolArray]:
    """Which rows learn, once each half."""
    first = np.arange(n) < n // 2
    return first, ~first


def _judge_region(
    problem: Problem,
    where: str,
    inside: BoolArray,
    learn: BoolArray,
    due: FloatArray,
    confidence: float,
    alternative: Alternative = "two-sided",
) -> Region:
    """A region on the rows that did not find it."""
    return region_of(
        where,
        inside[~learn],
        problem.covered[~learn],
        due[~learn],
        found=float(problem.covered[inside & learn].mean()),
        confidence=confidence,
        alternative=alternative,
    )


def _lowest(
    problem: Problem, trees_see: TreeInputs, due: FloatArray, confidence: float
) -> Region | None:
    """The region that falls short of what is due by most, with an interval for both halves."""
    regions = []
    for learn in _halves(problem.n):
        nodes, words = tree_nodes(trees_see, problem.covered - due, problem.names, learn)
        inside = nodes[learn].astype(np.float64)
        rows = inside.sum(axis=0)
        _, upper = clopper_pearson(problem.covered[learn] @ inside, rows, _CONFIDENCE_OF_SEARCH)
        short = due[learn] @ inside / rows - upper
        short[: len(words) > 1] = -np.inf  # all rows, unless no part differs
        short[nodes[~learn].sum(axis=0) < MIN_ROWS_JUDGED] = -np.inf
        lowest = int(short.argmax())
        if short[lowest] > -np.inf:
            both = 1.0 - (1.0 - confidence) / 2.0
            regions.append(
                _judge_region(problem, words[lowest], nodes[:, lowest], learn, due, both, "less")
            )
    return min(regions, key=lambda region: region.upper - region.expected, default=None)


def _few(n: int) -> str:
    return f"a region needs {MIN_ROWS_JUDGED} rows in each half, got {n} rows in all"


def _strayed(
    trees_see: TreeInputs,
    names: Sequence[str],
    signal: FloatArray,
    noise: FloatArray,
    learn: BoolArray,
) -> tuple[str, BoolArray] | None:
    """The node of a tree where the signal strays most clearly, by the rows that learn it."""
    nodes, words = tree_nodes(trees_see, signal, names, learn)
    rows = nodes[learn]
    z = np.abs(signal[learn] @ rows) / np.sqrt(np.maximum(noise[learn] @ rows, _NO_VARIANCE))
    z[0] = -1.0  # all rows
    z[nodes[~learn].sum(axis=0) < MIN_ROWS_JUDGED] = -1.0
    best = int(np.argmax(z))
    return (words[best], nodes[:, best]) if z[best] > 0 else None


def _t_test(values: FloatArray) -> float:
    """Two-sided p-value of mean 0."""
    m = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(m)
    if error <= _NO_VARIANCE:
        return 1.0
    return float(2 * special.stdtr(m - 1, -abs(float(values.mean())) / error))
