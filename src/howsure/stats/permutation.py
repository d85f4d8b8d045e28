"""Tests by drawing: is a paired difference chance, do groups differ, and how often to draw."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Fraction, Natural, check_whole
from howsure.core.errors import InputError
from howsure.core.labels import as_labels
from howsure.core.weights import Weights

if TYPE_CHECKING:
    from scipy import sparse

# By symmetry 14 units have 8,192 patterns: no more than the 9,999 that would be drawn.
_MAX_UNITS_ENUMERATED = 14
# The normal limit errs by less than the draws do: where no unit is heavy (below), the excess
# kurtosis of the sum is under .02, while p = .05 from 9,999 draws has a standard error of .002.
_MAX_UNITS_FLIPPED = 20_000
# What is left beside the 1,000 largest has no dominating unit, so it is normal.
_UNITS_FLIPPED_OF_MANY = 1_000
# Σ d⁴ / (Σ d²)²: the excess kurtosis of a flipped sum is −2 times that.
_MAX_SHARE_OF_FOURTHS = 0.01
# 4 million numbers of 64 bits are 32 MB, whatever the number of draws.
_NUMBERS_AT_ONCE = 4_000_000
# Sums that are equal in exact arithmetic differ by the order of additions; they count as ties.
_TIE_TOLERANCE = 1e-9
# 45 units in the last place: a difference of equal scores that were added up in another order.
_DIFFERENCE_ROUNDING = 1e-14
# Beside a score a million times larger, sums on shared patterns keep ten digits of a difference.
_MIN_RELATIVE_SIZE = 1e-6
# By a² − 2ab + b² a smaller difference keeps fewer than ten digits, so it is computed itself.
_MIN_SHARE_OF_SQUARES = 1e-6
# NumPy's multivariate hypergeometric draws refuse a population of 10⁹ or more.
_MAX_ROWS_OF_NUMPY = 10**9
# Of 10⁹ rows, 10,000 are drawn twice with chance 5 %, once; and they are quick to draw.
_MAX_DRAWN_ONE_BY_ONE = 10_000
# After so many draws it ends where p is above so much: within the draws' error of 5 % and of 2 %,
# or below, it goes on, as p may then decide a verdict.
_STAGES_OF_DRAWS = ((199, 0.055), (999, 0.02))


@frozen
class FlipTest:
    """Outcome of `sign_flip_test`."""

    mean: float  # weighted mean of the differences
    p_value: float  # two-sided; NaN where `note` says why
    units: float  # rows or clusters that were flipped, those without a difference left out
    method: str  # `exact`, `Monte Carlo` or `normal limit`
    resamples: int  # sign patterns looked at; 0 for the normal limit
    note: str = ""  # what limits the answer, in words


@frozen
class GroupTest:
    """Outcome of `groups_differ`."""

    # chance that groups of these sizes, were they all alike, show a statistic this large; NaN where
    # `note` says why
    p_value: float
    statistic: float  # the largest standardised distance of a group from all rows
    # where it lies: the grouping's place in the list and the group's code; −1 where nowhere
    grouping: int
    group: int
    resamples: int  # permutations drawn
    note: str = ""  # why there is no answer


def sign_flip_test(
    differences: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = 9999,
    *,
    weights: Weights | None = None,
    cluster: npt.ArrayLike | None = None,
) -> FlipTest:
    """Test whether paired differences have mean zero, by flipping their signs.

    If two models score alike, each row's difference (or each cluster's sum of differences) is
    as likely with its sign turned. The two-sided p-value is the share of sign patterns whose
    |mean| is at least the one seen.

    Source: R. A. Fisher, *The Design of Experiments* (1935), 21; random patterns with
    p = (1 + hits)/(1 + resamples) by Dwass (1957). Up to 14 units all patterns are enumerated;
    past 20,000 the normal limit of the flipped sum serves, unless few differences dominate:
    then the 1,000 largest are flipped one by one and the rest stays normal.
    """
    check_whole(resamples, "resamples")
    scores = as_vector(differences, "differences")
    unit = float(np.abs(scores).max()) or 1.0
    sums, copies, total = _differences(scores / unit, weights, cluster)
    observed = float(sums @ copies)
    order = np.argsort(-np.abs(sums), kind="stable")
    sizes, copies = np.abs(sums)[order], copies[order]
    mean, units = observed / total * unit, float(copies.sum())
    if units == 0:
        return FlipTest(mean, math.nan, 0, "none", 0, "no row differs")
    hit = abs(observed) - _TIE_TOLERANCE * float(sizes @ copies)
    if units <= _MAX_UNITS_ENUMERATED:
        flips = np.repeat(sizes, copies.astype(np.int64))
        patterns = np.arange(2 ** len(flips))
        signs = 2.0 * ((patterns[:, None] >> np.arange(len(flips))) & 1) - 1
        share = float(np.mean(np.abs(signs @ flips) >= hit))
        return FlipTest(mean, share, units, "exact", len(patterns))
    variance = float(np.square(sizes) @ copies)
    heavy = float(sizes**4 @ copies) > _MAX_SHARE_OF_FOURTHS * variance**2
    if units > _MAX_UNITS_FLIPPED and not heavy:
        p_value = math.erfc(abs(observed) / math.sqrt(2 * variance))
        return FlipTest(
            mean, p_value, units, "normal limit", 0, f"more than {_MAX_UNITS_FLIPPED} units"
        )
    most, note = units, ""
    if units > _MAX_UNITS_FLIPPED:
        most, note = (
            _UNITS_FLIPPED_OF_MANY,
            f"the {_UNITS_FLIPPED_OF_MANY} largest differences flipped, the rest normal",
        )
    upto = np.minimum(np.cumsum(copies), most)
    flips = np.repeat(sizes, np.diff(upto, prepend=0.0).astype(np.int64))
    sd = math.sqrt(max(variance - float(flips @ flips), 0.0)) if units > most else 0.0
    hits = 0
    for draws in _flipped_sums(rng, flips, np.ones(len(flips)), resamples):
        draws += sd * rng.standard_normal(len(draws))
        hits += int(np.count_nonzero(np.abs(draws) >= hit))
    return FlipTest(mean, (1 + hits) / (1 + resamples), units, "Monte Carlo", resamples, note)


def sign_flip_tests(
    scores: npt.ArrayLike,
    pairs: Sequence[tuple[int, int]],
    rng: np.random.Generator,
    resamples: int = 9999,
    *,
    weights: Weights | None = None,
    cluster: npt.ArrayLike | None = None,
) -> list[FlipTest]:
    """`sign_flip_test` of differences between columns, all pairs on the same sign patterns.

    A flipped sum of differences is the difference of two flipped sums, so all pairs follow from
    one product of the patterns with the scores.
    """
    check_whole(resamples, "resamples")
    table = as_matrix(scores, "scores")
    unit, flips, copies = _shared_units(table, weights, cluster)
    largest = float((copies @ np.abs(flips)).max())
    tests: dict[int, FlipTest] = {}
    shared: dict[int, float] = {}
    used, in_all = np.full(len(flips), copies.sum() <= _MAX_UNITS_FLIPPED), 0.0
    for number, (first, second) in enumerate(pairs):
        difference = table[:, first] - table[:, second]  # a first that is huge leaves it no digits
        sums, times, total = _differences(difference / unit, weights, cluster)
        units, size = float(times.sum()), float(np.abs(sums) @ times)
        observed = float(sums @ times)
        tests[number] = FlipTest(observed / total * unit, math.nan, units, "", resamples)
        if (
            _MAX_UNITS_ENUMERATED < units <= _MAX_UNITS_FLIPPED
            and size >= _MIN_RELATIVE_SIZE * largest
        ):
            shared[number] = abs(observed) - _TIE_TOLERANCE * size
            used |= flips[:, first] != flips[:, second]
            in_all += units
    if copies[used].sum() > max(in_all, _MAX_UNITS_FLIPPED):
        shared.clear()  # few differences each, in different rows of many
    for number, (first, second) in enumerate(pairs):
        if number not in shared:
            drawn = copy.deepcopy(rng)  # so that no pair depends on the pairs before it
            difference = table[:, first] - table[:, second]
            tests[number] = sign_flip_test(
                difference, drawn, resamples, weights=weights, cluster=cluster
            )
    hits = dict.fromkeys(shared, 0)
    for sums in _flipped_sums(rng, flips[used], copies[used], resamples) if shared else ():
        for number, hit in shared.items():
            first, second = pairs[number]
            hits[number] += int(np.count_nonzero(np.abs(sums[:, first] - sums[:, second]) >= hit))
    for number, count in hits.items():
        p_value = (1 + count) / (1 + resamples)
        tests[number] = replace(tests[number], p_value=p_value, method="Monte Carlo")
    return [tests[number] for number in range(len(pairs))]


def joint_flip_tests(
    scores: npt.ArrayLike,
    pairs: Sequence[tuple[int, int]],
    rng: np.random.Generator,
    resamples: int = 1999,
    *,
    weights: Weights | None = None,
    cluster: npt.ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Test differences between columns of many pairs at once: p-values alone, and jointly.

    All pairs share their sign patterns, so that those of the largest standardised differences are
    known. The joint p-value of a pair is the share of patterns in which it, or any pair that
    differs less, would differ as much: Holm's steps with the joint law of the tests in place of
    Bonferroni's bound. Both are NaN where no row differs.

    Source: P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing* (1993), algorithm
    2.8. Past 20,000 units the 1,000 largest are flipped and the rest is normal.
    """
    check_whole(resamples, "resamples")
    _, flips, copies = _shared_units(as_matrix(scores, "scores"), weights, cluster)
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    cross = (flips * copies[:, None]).T @ flips
    size = np.diag(cross)[first] + np.diag(cross)[second]
    squares = size - 2.0 * cross[first, second]
    for pair in np.flatnonzero(squares < _MIN_SHARE_OF_SQUARES * size):  # where digits are lost
        gap = flips[:, first[pair]] - flips[:, second[pair]]
        squares[pair] = copies @ np.square(gap)
    differing = np.flatnonzero(squares > _DIFFERENCE_ROUNDING**2 * size)
    alone, joint = (np.full(len(first), np.nan) for _ in range(2))
    if not len(differing):
        return alone, joint
    first, second, scale = first[differing], second[differing], np.sqrt(squares[differing])
    total = copies @ flips
    sizes = np.abs(total[first] - total[second]) / scale
    order = np.argsort(-sizes, kind="stable")
    first, second, scale, sizes = (
        first[order],
        second[order],
        scale[order],
        sizes[order] * (1.0 - _TIE_TOLERANCE),
    )
    factor = np.zeros((0, flips.shape[1]))
    if copies.sum() > _MAX_UNITS_FLIPPED:
        heavy = np.abs(flips / np.sqrt(np.maximum(np.diag(cross), 1e-300))).max(axis=1)
        ranked = np.argsort(-heavy, kind="stable")
        largest, small = ranked[:_UNITS_FLIPPED_OF_MANY], ranked[_UNITS_FLIPPED_OF_MANY:]
        factor = np.asarray(np.linalg.qr(np.sqrt(copies[small])[:, None] * flips[small], mode="r"))
        flips, copies = flips[largest], copies[largest]
    hits, maxima = np.zeros(len(sizes)), np.zeros(len(sizes))
    step = max(1, _NUMBERS_AT_ONCE // len(sizes))
    for sums in _flipped_sums(rng, flips, copies, resamples):
        moved = sums + rng.standard_normal((len(sums), len(factor))) @ factor
        for start in range(0, len(moved), step):
            block = moved[start : start + step]
            drawn = np.abs(block[:, first] - block[:, second]) / scale
            hits += np.count_nonzero(drawn >= sizes, axis=0)
            most = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
            maxima += np.count_nonzero(most >= sizes, axis=0)
    places = differing[order]
    alone[places] = (1.0 + hits) / (1.0 + resamples)
    joint[places] = np.maximum.accumulate((1.0 + maxima) / (1.0 + resamples))
    return alone, joint


def groups_differ(
    sizes: npt.ArrayLike,
    covered: npt.ArrayLike,
    groupings: Sequence[npt.ArrayLike],
    rng: np.random.Generator,
    resamples: int = 4999,
    *,
    chances: npt.ArrayLike | None = None,
    staged: bool = False,
) -> GroupTest:
    """Test whether coverage differs between groups at all, over overlapping groupings.

    Rows are given as cells: all rows that agree in every grouping. If no grouping matters,
    which rows are covered is a random draw among all rows, so the covered counts of the cells
    are multivariate hypergeometric. The statistic is the largest standardised distance over all
    groups of all groupings, so one p-value answers for all of them, however they overlap.

    Group g of n_g rows counts with |cov_g − cov| / √(cov(1 − cov)(1/n_g − 1/n)): its distance
    from the coverage of all n rows in (nearly) its own standard deviation under the
    permutation. Past a billion rows the permutation is drawn by its limit. Source: max-T of
    P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing* (1993);
    p = (1 + hits)/(1 + resamples). Rows must be independent.

    Where cells are promised unequal `chances` p_c, whose mean is that of all rows, group g counts
    with |hits_g − Σ p| / √(v_g (1 − v_g/v)), v = Σ p(1 − p). Cells then draw binomial counts, and
    as the chances were fitted to the mean of all rows, each draw's surplus is taken back from
    the cells in proportion to their variance. Staged, a p-value that is clearly large after few
    resamples (.055 after 199, .02 after 999) stays there.
    """
    check_whole(resamples, "resamples")
    m, k = _checked_cells(sizes, covered)
    n, total = int(m.sum()), int(k.sum())
    nothing = partial(GroupTest, math.nan, math.nan, -1, -1, 0)
    if n == 0 or total in (0, n):
        which = "no row is at hand" if n == 0 else f"{'every' if total else 'no'} row is covered"
        return nothing(which)
    member, grouping, group = _membership(groupings, len(m))
    rows = member @ m
    testable = (rows > 0) & (rows < n)
    if not testable.any():
        return nothing("no group to compare with the rest")
    p = np.full(len(m), total / n)
    if chances is not None:
        p = as_vector(chances, "chances", length=len(m))
        if ((p < 0) | (p > 1)).any():
            raise InputError(f"chances must be in [0, 1], got {p.min():g} to {p.max():g}")
    free = bool((p != p[0]).any())
    noise = m * p * (1 - p)
    inside = (member @ noise)[testable]
    loose = np.minimum(inside, noise.sum() - inside) > _TIE_TOLERANCE * noise.sum()
    inside, testable[testable] = inside[loose], loose  # certain rows can stray by nothing
    if not testable.any():
        return nothing("every chance is 0 or 1")
    scale = np.sqrt(inside * (1 - inside / noise.sum()))

    def distances(counts: AnyArray) -> FloatArray:
        off = counts - m * p
        if free:
            off -= off.sum(axis=1, keepdims=True) * (noise / noise.sum())
        return np.asarray(np.abs((member @ off.T).T[:, testable]) / scale)

    def exceeding(size: int) -> int:
        if free:
            lucky = rng.binomial(m, p, (size, len(m)))
        else:
            lucky = _covered_by_chance(rng, m, total, size)
        return int(
            np.count_nonzero(distances(lucky).max(axis=1) >= observed[worst] * (1 - _TIE_TOLERANCE))
        )

    observed = distances(k[None, :])[0]
    off = member @ (k - m * p)
    ties = observed >= observed.max() * (
        1 - _TIE_TOLERANCE
    )  # of two groups both stray alike: the lower is told
    worst = int(np.flatnonzero(ties)[np.argmin(off[testable][ties])])
    hits, drawn = 0, 0
    step = max(1, _NUMBERS_AT_ONCE // (len(m) + len(testable)))
    for most, enough in (*(_STAGES_OF_DRAWS if staged else ()), (resamples, 1.0)):
        while drawn < min(most, resamples):
            size = min(step, min(most, resamples) - drawn)
            hits, drawn = hits + exceeding(size), drawn + size
        if (1 + hits) / (1 + drawn) > enough:
            break
    return GroupTest(
        (1 + hits) / (1 + drawn),
        float(observed[worst]),
        int(grouping[testable][worst]),
        int(group[testable][worst]),
        drawn,
    )


def _covered_by_chance(
    rng: np.random.Generator, sizes: IntArray, total: int, repeats: int
) -> AnyArray:
    """How many of `total` covered rows fall into each cell, one draw a row.

    NumPy draws below a billion rows. Beyond, few covered (or missed) rows are hardly ever drawn
    twice; many fall into cells as binomial counts, whose surplus is taken back in proportion.
    """
    n = int(sizes.sum())
    if n < _MAX_ROWS_OF_NUMPY:
        return rng.multivariate_hypergeometric(sizes, total, size=repeats, method="marginals")
    few = min(total, n - total)
    if few <= _MAX_DRAWN_ONE_BY_ONE:
        drawn = rng.multinomial(few, sizes / n, size=repeats)
        return drawn if few == total else sizes - drawn
    counts = rng.binomial(sizes, total / n, size=(repeats, len(sizes)))
    surplus = counts.sum(axis=1, keepdims=True) - total
    return np.asarray(counts - surplus * (sizes / n))


def _units(
    table: FloatArray, weights: Weights | None, cluster: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, float]:
    """Columns of sums that flip as a whole, the copies of each, and the total weight."""
    n = len(table)
    ones = mass = np.ones(n)
    if weights is not None:
        mass = as_vector(weights.values, "weights", length=n)
    importance = weights is not None and weights.kind == "importance"
    mass = mass / mass.max() if importance else mass
    total = float(mass.sum())
    if cluster is not None:
        codes = np.unique(as_labels(cluster, "cluster", length=n), return_inverse=True)[1]
        sums = [np.bincount(codes, weights=mass * column) for column in table.T]
        return np.stack(sums, axis=1), np.ones(len(sums[0])), total
    return (table * mass[:, None], ones, total) if importance else (table, mass, total)


def _differences(
    scores: FloatArray, weights: Weights | None, cluster: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, float]:
    """Sums that flip as a whole, none of them zero; their copies; and the total weight."""
    both = np.column_stack((scores, np.abs(scores)))
    units, copies, total = _units(both, weights, cluster)
    moved = (np.abs(units[:, 0]) > _DIFFERENCE_ROUNDING * units[:, 1]) & (copies > 0)
    return units[moved, 0], copies[moved], total


def _shared_units(
    table: FloatArray, weights: Weights | None, cluster: npt.ArrayLike | None
) -> tuple[float, FloatArray, FloatArray]:
    """A unit of columns less the first one, what flips as a whole in it, and the copies."""
    off = table - table[:, :1]
    unit = math.ldexp(0.5, math.frexp(float(np.abs(off).max()))[1])  # which rounds no digit
    return unit, *_units(off / unit, weights, cluster)[:2]


def _flipped_sums(
    rng: np.random.Generator, flips: FloatArray, copies: FloatArray, resamples: int
) -> Iterator[FloatArray]:
    """Sums, of all columns with the same random signs, some resamples at a time."""
    width = -(-len(flips) // 8)
    step = max(1, _NUMBERS_AT_ONCE // len(flips))
    plain = bool((copies == 1).all())
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        if plain:
            packed = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
            turned = np.unpackbits(packed, axis=1, count=len(flips)).astype(np.float64)
        else:
            drawn = rng.binomial(copies.astype(np.int64), 0.5, (rows, len(copies)))
            turned = drawn.astype(np.float64)
        yield 2 * (turned @ flips) - copies @ flips


def _checked_cells(sizes: npt.ArrayLike, covered: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    m = as_vector(sizes, "sizes")
    k = as_vector(covered, "covered", length=len(m))
    legal = (k >= 0) & (k <= m) & (k == np.floor(k)) & (m == np.floor(m))
    if not legal.all():
        first = int(np.argmin(legal))
        raise InputError(
            "sizes and covered must be whole numbers with 0 <= covered <= sizes, "
            f"got {k[first]:g} of {m[first]:g} in cell {first}"
        )
    return m.astype(np.int64), k.astype(np.int64)


def _membership(
    groupings: Sequence[npt.ArrayLike], cells: int
) -> tuple[sparse.csr_array, IntArray, IntArray]:
    """Indicator matrix of groups by cells, and each group's grouping and code."""
    from scipy import sparse

    empty = np.empty(0, dtype=np.int64)
    inside, groups, places, names, width = [empty], [empty], [empty], [empty], 0
    for number, grouping in enumerate(groupings):
        codes = as_vector(grouping, f"groupings[{number}]", length=cells)
        wrong = (codes < -1) | (codes != np.floor(codes))
        if wrong.any():
            raise InputError(
                f"groupings[{number}] must be whole numbers of at least -1, "
                f"got {codes[int(np.argmax(wrong))]:g}"
            )
        rows = np.flatnonzero(codes >= 0)
        labels, group = np.unique(codes[rows].astype(np.int64), return_inverse=True)
        inside.append(rows)
        groups.append(width + group)
        places.append(np.full(len(labels), number))
        names.append(labels)
        width += len(labels)
    where = (np.concatenate(groups), np.concatenate(inside))
    member = sparse.csr_array((np.ones(len(where[0])), where), shape=(width, cells))
    return member, np.concatenate(places), np.concatenate(names)


# ---- how draws give a measure its interval, and what chance alone would show ---------------------


@frozen(kw_only=True)
class Resampling(Checked):
    """How the interval and the simulated floor of a measure are drawn.

    Parameters
    ----------
    replicates : int
        Bootstrap resamples of the rows; 0 for no interval.
    permutations : int
        Shuffles for a floor that has no closed form; 0 for none.
    confidence : float
        Of the interval and of the floor's upper end.
    seed : int
        Seed of all draws.

    Raises
    ------
    InputError
        If a count is negative, or the confidence leaves (0, 1).

    Examples
    --------
    >>> Resampling(replicates=0).confidence
    0.95
    """

    replicates: Natural = 500
    permutations: Natural = 500
    confidence: Fraction = 0.95
    seed: int = 0

    def interval(self, draws: FloatArray) -> tuple[float, float]:
        """Percentile interval; NaN without draws, or where one is not finite."""
        if len(draws) < 2 or not np.isfinite(draws).all():
            return math.nan, math.nan
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(draws, [tail, 1 - tail], method="weibull")
        return float(low), float(high)

    def around(self, value: float, draws: FloatArray) -> tuple[float, float]:
        """Interval of what a value estimates, from how draws lie about their own mean."""
        low, high = self.interval(draws)
        middle = float(draws.mean()) if len(draws) else math.nan
        return value - (high - middle), value - (low - middle)


# ---- batches of consecutive times ----------------------------------------------------------------


def batch_starts(mass: FloatArray, most: int) -> IntArray:
    """The first time of each of at most so many batches of consecutive times, alike in mass."""
    upto = np.cumsum(mass)
    batch = np.minimum((upto - mass / 2.0) * (most / upto[-1]), most - 1).astype(np.int64)
    return np.flatnonzero(np.diff(batch, prepend=-1))


# ---- p-values by drawing, from as many draws as it takes -----------------------------------------

# 199 draws give p = .005 at the least, enough to see that a test is not significant; Holm's steps
# need smaller ones, and 9,999 know p = .005 to a standard error of .0007.
MIN_DRAWS, MAX_DRAWS = 199, 9_999
"""Draws that a test starts with, and those after which it ends."""


def p_value(observed: float, drawn: FloatArray) -> float:
    """Probability that a perfect model shows as much: (1 + draws as large) / (1 + draws).

    >>> p_value(3.0, np.array([0.0, 1.0, 2.0]))
    0.25
    """
    return (1 + int(np.count_nonzero(drawn >= observed))) / (1 + len(drawn))


def sequential(
    draw: Callable[[int, int], FloatArray], observed: float, *, level: float
) -> FloatArray:
    """As many draws as a p-value takes: on while it could still reach the level.

    Examples
    --------
    >>> len(sequential(lambda start, stop: np.arange(start, stop) % 7.0, 3.0, level=0.01))
    199
    """
    drawn = draw(0, MIN_DRAWS)
    while len(drawn) < MAX_DRAWS:
        if np.count_nonzero(drawn >= observed) + 1 > level * (1.0 + MAX_DRAWS):  # enough already
            break
        drawn = np.concatenate([drawn, draw(len(drawn), min(2 * len(drawn) + 1, MAX_DRAWS))])
    return drawn
