"""An estimate with its influence values, and the standard error that follows from them.

If row i's weight grows by a share, the statistic moves by its influence ψ_i times that share:
θ(w) ≈ θ + Σ w_i ψ_i / Σ w_i, with Σ w_i ψ_i = 0. A mean's influence is ψ_i = s_i − mean. One
formula then gives every standard error: plain, weighted or clustered. Of means of several groups,
intervals hold together, and groups that come and go are tested by their spells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, power_of_two
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child
from howsure.core.times import Chronology, Panel, Units
from howsure.core.weights import Weights
from howsure.stats.binomial import clopper_pearson
from howsure.stats.memory import Memory, memory_of


@frozen
class NormNoise:
    """What chance alone does to a norm of deviations, such as a calibration error.

    By the triangle inequality a norm is off by at most the norm of the noise, at any truth; where
    the truth is near the floor, no standard error says as much.
    """

    norms: FloatArray  # shape (k,): draws of the norm of the noise of independent rows
    # the end of the interval towards perfection that a norm of noise permits
    end: Callable[[float], float]


@frozen
class Estimate:
    """The result of any measure that is not a plain mean: a number with its uncertainty.

    NaN means unknown, or that it follows from the influence values, see `spread_of`.

    Attributes
    ----------
    value : float
        The number; NaN where undefined, and then `reason` says why.
    influence : ndarray of float, shape (n,), optional
        ψ_i as above, in the units of the value; None where none is known.
    null : float
        The value expected of a perfect model at this n, where it differs from the target.
    reason : str
        Why the value is undefined, or what limits it.
    details : mapping
        What else the reader should see beside it.
    error : float
        Standard error.
    lower, upper : float
        Confidence interval; with influence values that follow from these, the union of both.
    null_lower, null_upper : float
        Ends of the range that a perfect model keeps to; one is NaN where the range is one-sided.
    p : float
        Probability that a perfect model departs as far.
    n : float
        Rows behind the value; NaN where these are all rows.
    squares : ndarray of float, shape (n,), optional
        Squared errors whose mean the value rests on: where these are too heavy-tailed, there is
        no interval.
    cancels : bool
        Whether these stand above and below in a ratio, in which heavy tails cancel.
    noise : Noise, optional
        Of a norm of deviations: how much of it may be chance.
    spread : Spread, optional
        What its error follows from, where that is known without the rows.
    """

    value: float
    influence: FloatArray | None = None
    null: float = math.nan
    reason: str = ""
    details: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({}))
    error: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    null_lower: float = math.nan
    null_upper: float = math.nan
    p: float = math.nan
    n: float = math.nan
    squares: FloatArray | None = None
    cancels: bool = False
    noise: NormNoise | None = None
    spread: Spread | None = None

    def __float__(self) -> float:
        return float(self.value)


@lru_cache(maxsize=16)
def noise_of_bins(bins: int) -> FloatArray:
    """Draws of the standardised errors of the means of some bins, shape (2000, bins); kept."""
    # A 95 % quantile of 2,000 draws is off by .5 points; 30 bins are 480 kB.
    draws = child(0, "noise of bins").standard_normal((2_000, bins))
    draws.setflags(write=False)
    return draws


def weighted_mean(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Mean of values, Σ w_i v_i / Σ w_i."""
    return float(np.average(values, weights=weights))


def mean_statistic(scores: FloatArray, weights: FloatArray | None = None) -> Estimate:
    """Weighted mean of per-row scores, with its influence values."""
    value = weighted_mean(scores, weights)
    if not math.isfinite(value):
        return Estimate(value, None, reason="some rows have an infinite score")
    return Estimate(value, scores - value)


@frozen
class Spread:
    """How far an estimate strays, from the terms of its units: rows, clusters or times."""

    error: FloatArray  # shape (k,): standard error in each of k groups; NaN for a single unit
    # shape (k,): σu³/(Σu²)^{3/2} of the units' terms u: the skewness of the estimate
    skew: FloatArray
    # shape (k,): how many units there are; of unequal ones Kish's effective number, (Σ W_g)²/Σ
    # W_g², and of times that follow each other the independent ones that tell as much
    units: FloatArray
    # shape (k,): degrees of freedom of the error, (Σ W_g²)²/Σ W_g⁴ − 1 (Satterthwaite)
    degrees: FloatArray

    def p(self, off: float) -> float:
        """Two-sided p-value of a (first) estimate that is off by so much; NaN without an error."""
        if not self.error[0] > 0:
            return math.nan
        return 2.0 * self.tail(abs(off) / float(self.error[0]))

    def tail(self, t: float) -> float:
        """The chance that Student's t of a (first) estimate exceeds so much."""
        return float(special.stdtr(max(float(self.degrees[0]), 1.0), -t))


def spread_of(
    influence: FloatArray,
    weights: Weights | None = None,
    cluster: Units = None,
    groups: IntArray | None = None,
    size: int = 1,
) -> Spread:
    """Spread of a statistic from its influence values, in each of `size` groups of rows.

    Plain rows and frequency weights: error² = Σ wψ²/(N(N − 1)) with N = Σw, so that a weight of two
    is a row twice. Rows of importance weights and clusters are units of unequal mass W_g: the
    jackknife of a ratio, error² = (G − 1)/G Σ (S_g/(W − W_g))² with S_g = Σ wψ within a unit
    (CR3 of a mean; MacKinnon, Nielsen and Webb 2023) and G Kish's number of them. Times that
    follow each other: see `howsure.stats.memory`.
    """
    if isinstance(cluster, Chronology):
        return _in_time(influence, weights, cluster, groups, size)
    unit = power_of_two(influence)  # so that squares neither vanish nor overflow
    psi = influence / unit
    group_of = np.zeros(1, dtype=np.int64) if groups is None else groups
    mass = None if weights is None else weights.values

    def sums(values: FloatArray) -> FloatArray:
        if size == 1 and cluster is None:  # a plain sum takes a third of the time
            return np.asarray(np.sum(values, keepdims=True))
        return np.bincount(group_of, weights=values, minlength=size).astype(np.float64)

    if cluster is None and (weights is None or weights.kind == "frequency"):
        moved = np.square(psi)
        if mass is not None:
            moved, total = mass * moved, sums(mass)
        elif groups is not None:
            total = np.bincount(groups, minlength=size).astype(np.float64)
        else:
            total = np.array([float(len(psi))])
        squares = sums(moved)
        moved *= psi
        spread = spread_of_sums(total, squares, sums(moved))
        return replace(spread, error=unit * spread.error)
    with np.errstate(invalid="ignore", divide="ignore"):
        mass = np.ones(len(psi)) if mass is None else mass
        psi = mass * psi
        if cluster is not None:
            joint = group_of * (int(cluster.max()) + 1) + cluster
            pairs, code = np.unique(joint, return_inverse=True)
            group_of = pairs // (int(cluster.max()) + 1)
            psi = np.bincount(code, weights=psi).astype(np.float64)
            mass = np.bincount(code, weights=mass).astype(np.float64)
        total, mass_squared = sums(mass), np.square(mass / mass.max())
        units = np.square(total / mass.max()) / sums(mass_squared)
        degrees = np.square(sums(mass_squared)) / sums(np.square(mass_squared)) - 1.0
        remaining = 1.0 - mass / total[group_of]
        jackknifed = np.where(remaining > 0.0, psi / np.where(remaining > 0.0, remaining, 1.0), 0.0)
        squares, cubes = sums(np.square(jackknifed)), sums(jackknifed**3)
        error = np.sqrt(squares * (1.0 - 1.0 / units)) / total
    error = np.where(units > 1.0 + 1e-9, unit * error, np.nan)
    return Spread(error, _skewness(squares, cubes), units, degrees)


def spread_of_sums(total: FloatArray, squares: FloatArray, cubes: FloatArray) -> Spread:
    """The spread of means of so many independent rows, from sums of powers about the means."""
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(squares / (total * (total - 1.0)))
    error = np.where(total > 1.0 + 1e-9, error, np.nan)
    return Spread(error, _skewness(squares, cubes), total, total - 1.0)


def _skewness(squares: FloatArray, cubes: FloatArray) -> FloatArray:
    """Of a sum of terms, from the sums of their squares and cubes."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0.0, cubes / squares / np.sqrt(squares), 0.0)


def _in_time(
    influence: FloatArray,
    weights: Weights | None,
    times: Chronology,
    groups: IntArray | None,
    size: int,
) -> Spread:
    """The spread of rows that follow each other in time, in each group; NaN of too few."""
    mass = None if weights is None else weights.values
    table = np.full((4, size), np.nan)
    if groups is None:
        table[:, 0] = _mean_in_time(influence, mass, times)
        return Spread(*table)

    def parted() -> list[tuple[IntArray, Chronology]]:
        order = np.argsort(groups, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(groups, minlength=size))[:-1])
        bare = replace(times, side=None, size=None)
        return [(rows, bare.take(rows)) for rows in parts]

    subsets = times.once("parts", parted, groups, times.signal, times.levels)
    for group, (rows, subset_times) in enumerate(subsets):
        if len(rows):
            w = None if mass is None else mass[rows]
            table[:, group] = _mean_in_time(influence[rows], w, subset_times)
    return Spread(*table)


# Effective values of the rarer outcome from which a score is taken to show its own memory. The
# usual number for a variance to be trusted; not tuned. Larger, a signal stands in for the score
# more often, and intervals are wider.
_MIN_EFFECTIVE_OF_RARER = 30.0


def _mean_in_time(
    influence: FloatArray, mass: FloatArray | None, times: Chronology
) -> tuple[float, float, float, float]:
    """Error, skewness, effective times and degrees of freedom of one mean.

    The memory of the signal that scores hide counts where it costs more than their own, unless
    these vary enough to tell it.
    """
    unit = power_of_two(influence)
    sums, panel = times.numbers(influence / unit, mass)
    square, n = float(sums @ sums), len(sums)
    costs = [_cost(times, sums, panel)]
    signal = times.signal
    if signal is not None and not _tells_its_memory(sums, costs[0]):
        costs.append(
            times.once(
                "signal",
                lambda: _cost(times, *times.numbers(signal, mass)),
                *(signal, mass, times.levels),
            )
        )
    usable = [candidate for candidate in costs if candidate is not None]
    if not usable or times.few:
        return math.nan, 0.0, math.nan, math.nan
    cost, degrees, memory = max(usable, key=lambda candidate: candidate[0])
    if memory.few:
        return math.nan, 0.0, math.nan, math.nan
    total_square = square if panel is None else panel.square
    error = cost * math.sqrt(total_square / max(n - 1, 1) / n)
    alone = math.sqrt(square / max(n - 1, 1) / n)
    skew = float(np.sum(sums**3)) / square**1.5 * error / alone if square > 0 else 0.0
    return unit * error, skew, memory.effective, degrees


def _tells_its_memory(sums: FloatArray, cost: _Cost | None) -> bool:
    """Whether a score varies enough to tell its own memory, so that no signal need stand for it.

    Of a share p, n / τ values hold about p (1 − p) n / τ of the rarer outcome, and p (1 − p) is
    1 / (κ + 3) with κ the fourth moment of what is standardised.
    """
    if cost is None:
        return False
    square = float(np.mean(np.square(sums)))
    if not square > 0.0:
        return False
    fourth = float(np.mean((sums / math.sqrt(square)) ** 4))
    return len(sums) / cost[2].lasts / (fourth + 3.0) >= _MIN_EFFECTIVE_OF_RARER


# More than the scores of one table, so that a hit stays one, and few enough that memory does not
# grow from table to table: an entry holds some shapes, a few kB.
_MAX_MEMORIES_KEPT = 256
_Cost = tuple[float, float, Memory]
"""How many times the error of independent rows that of a mean is, its degrees of freedom, and the
memory that it follows from."""


def _cost(times: Chronology, sums: FloatArray, panel: Panel | None) -> _Cost | None:
    """What memory costs a mean; None where it is not known."""
    content = blake2b(sums.tobytes(), digest_size=16)
    if panel is not None:
        content.update(panel.apart.tobytes())
    costs, key = times.memories, content.digest()
    cost: _Cost | None = costs.get(key)
    if cost is None:
        try:
            memory = memory_of(sums, panel, len(times.ranks()[0]))
        except UnanswerableError:
            return None
        if len(costs) >= _MAX_MEMORIES_KEPT:
            costs.clear()
        error, degrees = memory.student()
        cost = costs[key] = error / math.sqrt(memory.variance / memory.n), degrees, memory
    return cost


def counts_as(influence: FloatArray, weights: Weights | None, spread: Spread, n: float) -> float:
    """How many independent rows tell as much as n that go together; NaN of too few."""
    error = float(spread.error[0])
    if not error > 0:
        return float(spread.units[0])
    return n * min(standard_error(influence, weights) / error, 1.0) ** 2


# 95 %, as all intervals.
Z_95 = float(special.ndtri(0.975))
"""Half the width of a 95 % interval, in standard errors."""
# The skewness of few terms falls short of that of their law: a fifth of that of χ²₁ at n = 100. So
# it is divided by 4/5.
_LIFT_OF_SKEWNESS = 1.25
# The terms of a mean of squared errors are more skewed than χ²₁ where tails are heavy. Chosen by
# hand; not tuned on its own: docs/verdict.md measures the intervals that follow.
_LIFT_OF_SKEWNESS_OF_SQUARES = 1.5
# −1 but for rounding: below, the argument of a logarithm is cut to 0 exactly.
_ROOT_CUTOFF = -1.0 + 1e-11


def skewed_ends(
    value: npt.ArrayLike, spread: Spread, confidence: float, *, squares: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of Student's t, corrected for the skewness of the units' terms.

    With k the skewness of the estimate and z a quantile of t, an end lies at
    value − error·(3/k)((1 + k(z − k/6))^{1/3} − 1), and at value − error·z for k = 0. Where the
    root would turn negative, k is as large as it can be without: the interval then reaches some
    six errors on its long side. Source: P. Hall, JRSS B 54 (1992), the cubic transformation; k is
    lifted a little, and more for means of squared errors.
    """
    z = special.stdtrit(np.maximum(spread.degrees, 1.0), 0.5 + confidence / 2.0)
    most = 3.0 * (np.sqrt(np.square(z) + 2.0 / 3.0) - z)
    k = np.clip(
        (_LIFT_OF_SKEWNESS_OF_SQUARES if squares else _LIFT_OF_SKEWNESS) * spread.skew, -most, most
    )

    side = np.array([[1.0], [-1.0]])
    near = side * z - k / 6.0
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = k * near
        inner = np.where(inner < _ROOT_CUTOFF, -1.0, inner)  # cut, but for rounding
        far = 3.0 / k * np.expm1(np.log1p(inner) / 3.0)
    # the quotient would lose digits where k is small: there its series
    series = near * (1.0 - k * near / 3.0 * (1.0 - 5.0 * k * near / 9.0))
    times = np.where(np.abs(k) < 1e-5, series, far)
    low, high = np.asarray(value, dtype=np.float64) - times * spread.error
    return low, high


def like_rows(
    value: FloatArray, error: FloatArray, n: FloatArray, units: FloatArray, confidence: float
) -> FloatArray:
    """How many independent rows a weighted or clustered share is worth; NaN for one cluster.

    Source: E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998). Where all rows agree, the
    error is 0 and says nothing: then each unit counts as one row.
    """
    tail, room = 0.5 + confidence / 2, value * (1 - value)
    ratio = special.stdtrit(np.maximum(n - 1, 1), tail) / special.stdtrit(
        np.maximum(units - 1, 1), tail
    )
    resolved = (error > 0) & (room > 0)
    like = np.minimum(room / np.square(np.where(resolved, error, 1.0)), n) * np.square(ratio)
    return np.where(units > 1.0 + 1e-9, np.where(resolved, like, units), np.nan)


def share_ends(
    value: FloatArray, spread: Spread, n: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of a weighted or clustered share: Clopper–Pearson on `like_rows`."""
    like = like_rows(value, spread.error, n, spread.units, confidence)
    valid = ~np.isnan(like) & ~np.isnan(value)
    low, high = np.full(len(n), np.nan), np.full(len(n), np.nan)
    low[valid], high[valid] = clopper_pearson(
        np.clip(value[valid], 0.0, 1.0) * like[valid], like[valid], confidence=confidence
    )
    return low, high


def heavy(squares: FloatArray, weights: FloatArray | None = None) -> str:
    """Why a mean of squared errors has no interval; empty where it has one.

    It needs a finite variance of the squares, which is a tail index above 2. The index is Hill's
    over the k largest, a tenth of up to 1,000 rows and √(10n) of more; it counts as below 2 where
    1/index exceeds .57 + .73/√k, which normal errors of uneven size do in 3 % of the tables.
    """
    total = float(len(squares)) if weights is None else float(weights.sum())
    k = int(min(total / 10.0, math.sqrt(10.0 * total)))
    if k < 5:
        return ""
    if weights is None:
        above = np.partition(squares, len(squares) - k - 1)[len(squares) - k - 1 :]
        edge, copies = float(above[0]), np.ones(len(above))
    else:
        order = np.argsort(-squares, kind="stable")
        last = min(int(np.searchsorted(weights[order].cumsum(), k, side="right")), len(order) - 1)
        above, copies = squares[order[: last + 1]], weights[order[: last + 1]]
        edge = float(above[-1])
    if edge <= 0.0:
        return ""
    shape = float(copies @ np.log(above / edge)) / k
    if shape <= 0.57 + 0.73 / math.sqrt(k):
        return ""
    return (
        f"no interval: the largest errors are too heavy-tailed (tail index of their squares "
        f"{1.0 / shape:.1f}; an interval needs 2)"
    )


# Chosen by hand; not tuned. Larger, intervals of heavy or rare terms are wider.
_MIN_UNITS_ON_A_SIDE = 8.0


def one_more(
    influence: FloatArray, weights: Weights | None = None, cluster: Units = None
) -> tuple[float, float]:
    """How far one more unit like the lowest, and like the highest, would move a statistic.

    Where the variance of a side rests on m < 8 units, (Σu²)²/Σu⁴ over those on it, 8/m such units
    are added: so few tell little of their tail.
    """
    total = float(len(influence)) if weights is None else weights.total
    mass, copies = np.ones(len(influence)), np.ones(len(influence))
    if weights is not None:
        mass = weights.values
        if weights.kind == "frequency" and cluster is None:
            mass, copies = (mass > 0).astype(np.float64), mass
    moved = mass * influence
    if isinstance(cluster, Chronology):
        cluster = cluster.times
    if cluster is not None:
        moved = np.bincount(cluster, weights=moved).astype(np.float64)
        mass = np.bincount(cluster, weights=mass).astype(np.float64)
        copies = np.ones(len(mass))

    def most(side: float) -> float:
        one_sided = np.maximum(side * moved / (np.abs(moved).max() or 1.0), 0.0)
        squares = np.square(one_sided)
        few = float(copies @ np.square(squares)) / (float(copies @ squares) ** 2 or 1.0)
        return max(1.0, _MIN_UNITS_ON_A_SIDE * few) * float(
            np.maximum(side * moved / (total + mass), 0.0).max()
        )

    return -most(-1.0), most(1.0)


def standard_error(
    influence: FloatArray, weights: Weights | None = None, cluster: Units = None
) -> float:
    """Standard error of a statistic from its influence values; see `spread_of`."""
    return float(spread_of(influence, weights, cluster).error[0])


def quantile_statistic(
    values: FloatArray, level: float, *, weights: FloatArray | None = None
) -> Estimate:
    """Quantile of values: the mean of the least and the greatest that qualify."""
    if weights is None:
        ordered, cumulative = np.sort(values), np.arange(1.0, len(values) + 1.0)
    else:
        order = np.argsort(values)
        ordered, cumulative = values[order], np.cumsum(weights[order])
    total = float(cumulative[-1])
    last = len(ordered) - 1

    def at(share: float) -> float:
        low = int(np.searchsorted(cumulative, share * total * (1 - 1e-12), side="left"))
        high = int(np.searchsorted(cumulative, share * total * (1 + 1e-12), side="right"))
        return float((ordered[min(low, last)] + ordered[min(high, last)]) / 2.0)

    value = at(level)
    if not math.isfinite(value):
        return Estimate(value, None, reason=f"too many values are infinite at level {level:g}")
    span = min(0.5 * total ** (-1 / 3), 0.98 * level, 0.98 * (1.0 - level))
    spread = at(level + span) - at(level - span)
    if not math.isfinite(spread):
        return Estimate(value, None, reason="too many values are infinite for a standard error")
    below = (values < value) + 0.5 * (values == value)
    share = float(np.average(below, weights=weights))
    return Estimate(value, (share - below) * spread / (2 * span))


# ---- intervals of several means that hold all at once: how sure each must be alone ---------------

# Of 10,000 draws of the largest deviation, the confidence that their 95 % quantile gives is off by
# .2 points (one standard error).
_DRAWS_OF_MAXIMUM = 10_000
# Ordinates: with fewer, a correlation matrix of several groups would be a guess. It binds below 32
# times; not tuned.
_MIN_ORDINATES = 4


def joint_level(
    influence: FloatArray,
    groups: IntArray,
    size: int,
    weights: Weights | None = None,
    units: Units = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> float:
    """Confidence of each interval, for those of the means of all groups to hold together.

    Rows of different groups are independent unless they share a unit. Else the largest of the
    absolute standardised means is drawn from a normal law of their correlations: of sums over
    clusters, or, of times that follow each other, of the lowest cosine ordinates of what each time
    adds, whose covariance is that of the means (Lazarus, Lewis, Stock and Watson 2018). Of B
    ordinates and k groups correlations count B/(B + k), so that few of them claim less.

    Examples
    --------
    >>> together = np.repeat(np.arange(50), 2)
    >>> values = np.random.default_rng(0).normal(size=50)[together]
    >>> round(joint_level(values, np.tile([0, 1], 50), 2, units=together), 3)  # one and the same
    0.962
    """
    most = float(confidence ** (1.0 / size))
    if units is None or size == 1:
        return most
    mass = np.ones(len(influence)) if weights is None else weights.values
    psi = influence / power_of_two(influence)  # so that squares neither vanish nor overflow
    share = mass * psi / np.maximum(np.bincount(groups, mass, size), 1e-300)[groups]
    if isinstance(units, Chronology):
        table = _ordinates(share, groups, size, units)
    else:
        table = _sums(share, groups, size, units, int(units.max()) + 1).T
    norms = np.sqrt(np.square(table).sum(axis=0))
    normed = table / np.where(norms > 0.0, norms, 1.0)
    alike = normed.T @ normed * (len(table) / (len(table) + size))
    np.fill_diagonal(alike, 1.0)
    values, vectors = np.linalg.eigh(alike)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = child(seed, "simultaneous").standard_normal((_DRAWS_OF_MAXIMUM, size)) @ root.T
    most_off = float(np.quantile(np.abs(drawn).max(axis=1), confidence))
    return float(np.clip(2.0 * special.ndtr(most_off) - 1.0, confidence, most))


def _sums(
    share: FloatArray, groups: IntArray, size: int, units: IntArray, count: int
) -> FloatArray:
    """What each unit adds to each mean, shape (size, units)."""
    sums = np.bincount(groups * count + units, share, size * count)
    return sums.reshape(size, count).astype(np.float64)


def _ordinates(share: FloatArray, groups: IntArray, size: int, times: Chronology) -> FloatArray:
    """The lowest cosine ordinates of what each time adds to each mean, shape (B, size)."""
    from scipy import fft  # here, as few tables have time

    position, n = times.places()
    series = _sums(share, groups, size, position, n)
    low = min(n - 1, max(_MIN_ORDINATES, int(0.4 * n ** (2.0 / 3.0))))
    return np.asarray(fft.dct(series, type=2, norm="ortho", axis=1)[:, 1 : low + 1].T)


# ---- what groups that come and go tell of such groups in general: each visit is one observation --

# Share of all times from which a group is taken as always there. Chosen by hand; not tuned.
# Higher, long visits with few gaps count as several independent ones.
_SHARE_OF_TIMES_THROUGHOUT = 0.75


class Spells(NamedTuple):
    """Of each group: its stretches of consecutive times, and what they say of it."""

    # shape (k,): spells; 0 of a group that is there throughout, and of all where none returns: rows
    # alone tell of these
    counts: IntArray
    # shape (k,): two-sided p-value that the mean over such spells is that of all others; NaN
    # without spells
    p: FloatArray


def spells_of(
    values: FloatArray,
    mass: FloatArray,
    times: IntArray,
    codes: IntArray,
    size: int,
    least: float = 0.0,
) -> Spells:
    """Tests whose units are spells, with one variance for those of all groups.

    With M_s the mass of spell s and d_s its mean less that of its group, the variance of a mean
    over mass M is Σ M_s d_s² / (S − k) / M, at least `least` / M, with S − k degrees of freedom.
    Where no group ever returns, spells tell no more than the rows do. A group of at least three
    quarters of all times is there throughout.

    Examples
    --------
    >>> winter = np.repeat([1, 0, 1, 0, 1, 0], 50)
    >>> noise = np.random.default_rng(0).normal(size=300)
    >>> found = spells_of(noise + 2.0 * winter, np.ones(300), np.arange(300), winter, 2)
    >>> found.counts.tolist(), bool(found.p[1] < 0.001)
    ([3, 3], True)
    """
    ranks = np.unique(times, return_inverse=True)[1].ravel()
    count = int(ranks.max()) + 1
    visited, visit = np.unique(codes * count + ranks, return_inverse=True)
    group, rank = np.divmod(visited, count)
    fresh = (np.diff(group, prepend=-1) != 0) | (np.diff(rank, prepend=-2) != 1)
    spell = (np.cumsum(fresh) - 1)[visit.ravel()]
    of = group[fresh]
    counts: IntArray = np.bincount(of, minlength=size)
    freedom = len(of) - int((counts > 0).sum())
    goes = (np.bincount(group, minlength=size) < _SHARE_OF_TIMES_THROUGHOUT * count) & (counts > 0)
    p = np.full(size, np.nan)
    if not freedom or not goes.any():
        return Spells(np.zeros(size, dtype=np.int64), p)
    weight, sums = np.bincount(spell, mass), np.bincount(spell, mass * values)
    total, group_sums = np.bincount(of, weight, size), np.bincount(of, sums, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        group_means = group_sums / total
        off = group_means - (group_sums.sum() - group_sums) / (total.sum() - total)
        between = np.square(sums / weight - group_means[of])
        variance = max(float(weight @ between) / freedom, least)
        error = np.sqrt(variance * (1.0 / total + 1.0 / (total.sum() - total)))
        p[goes] = 2.0 * special.stdtr(float(freedom), -np.abs(off / error))[goes]
    return Spells(np.where(goes, counts, 0), p)
