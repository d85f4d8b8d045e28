"""How far groups stray from all rows, in a signal whose variance is known if all is right.

Of hits less what is expected of them, and of components of the PIT, with which bias and spread of
each group are told apart from those of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.rng import row_keys, row_uniforms
from howsure.core.times import less_means
from howsure.engine.finding import LEVEL
from howsure.predictions import EvalSet
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import Estimate, Spells, spells_of, spread_of
from howsure.stats.roots import root
from howsure.topics.calibration.components import scale_of, shift_of

if TYPE_CHECKING:
    from howsure.engine.view import View
    from howsure.topics.calibration.shape import Placed
    from howsure.topics.groups import Grouping

# Chosen by hand; not tuned. With fewer, Student's t has next to no power and its skewness is
# unknown.
MIN_UNITS = 5
"""Clusters (or rows that count, of importance weights) without which a group is not tested."""
ERRORS = "groups_differ_in_errors"
"""The measure of `errors_differ`."""
# E φ₁³ and E φ₂³ of a uniform PIT.
_SKEWNESS = (0.0, 2.0 * math.sqrt(5.0) / 7.0)


class GroupScores(NamedTuple):
    """How clearly the groups of all groupings stray, one number each, those not tested too."""

    t: FloatArray  # surplus of each, in its errors
    own: FloatArray  # two-sided p-value of its rows; infinite where it is not tested
    p: FloatArray  # the same where its spells, too, must say so
    spells: IntArray  # stretches of consecutive times; 0 where these need say nothing
    tested: BoolArray
    few: int  # groups of too few units
    what: str  # units, in words


def group_scores(
    evalset: EvalSet,
    divided: Sequence[Grouping],
    off: FloatArray,
    noise: FloatArray,
    *,
    units: FloatArray | None = None,
    hidden: FloatArray | None = None,
    skewness: float | None = None,
) -> GroupScores:
    """Student's t of each group's surplus of a signal, whose mean over all rows is 0."""
    spells = [spells_in(evalset, grouping, off, noise) for grouping in divided]
    counts, p_spells = (np.concatenate(columns) for columns in zip(*spells, strict=True))
    what = "rows" if evalset.cluster is None else "clusters"
    if evalset.chronology is not None and units is not None:
        what = "effective rows"
        t, own = _scores_in_time(evalset, divided, off, noise, units, p_spells, hidden)
    else:
        scores = [_robust_scores(evalset, grouping, off, noise) for grouping in divided]
        t, units, degrees = (np.concatenate(columns) for columns in zip(*scores, strict=True))
        own = _two_sided(t, degrees)
        if skewness is not None and evalset.independent:
            own = _by_three_moments(t, skewness * _skewness_left(evalset, divided))
    tested = (units >= MIN_UNITS) & np.isfinite(t)
    own = np.where(tested, own, np.inf)
    return GroupScores(
        t, own, np.fmax(own, p_spells), counts, tested, int((units < MIN_UNITS).sum()), what
    )


def _two_sided(t: FloatArray, degrees: npt.ArrayLike) -> FloatArray:
    """P-values of Student's t."""
    return np.asarray(2.0 * special.stdtr(np.maximum(degrees, 1.0), -np.abs(t)))


def _by_three_moments(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Twice the tail beyond t of a law of variance 1: gamma's on its long side, else the normal."""
    # A gamma law of less skewness has a shape beyond 4 · 10¹², where its function loses digits;
    # below .001 the normal one stands for it.
    size = np.maximum(np.abs(skewness), 1e-6)
    k = 4.0 / np.square(size)
    far = special.gammaincc(k, k + np.sqrt(k) * np.abs(t))
    longer = (t * skewness > 0.0) & (size > 1e-3)
    return np.asarray(np.minimum(2.0 * np.where(longer, far, special.ndtr(-np.abs(t))), 1.0))


def _skewness_left(evalset: EvalSet, divided: Sequence[Grouping]) -> FloatArray:
    """By what the skewness of a row is multiplied in the surplus of each group."""
    mass = evalset.mass
    group_mass = np.concatenate([np.bincount(g.codes, mass, len(g.labels)) for g in divided])
    share = group_mass / mass.sum()
    spread = np.sqrt(group_mass * (1.0 - share))  # 0 of no row, and of all: these have no surplus
    factor = np.zeros(len(share))
    np.divide(1.0 - 2.0 * share, spread, out=factor, where=spread > 0.0)
    return factor


def _robust_scores(
    evalset: EvalSet, grouping: Grouping, off: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Student's t of each group's surplus over what is expected, its clusters and degrees.

    What is expected was fitted to the mean of all rows, so a group's share of the variance, a, of
    any surplus is taken back: inside it each row counts 1 − a, outside −a, both about their mean.
    The error is at least that of independent rows, and of independent clusters where rows of each
    are copies: few clusters that agree by luck have none.
    """
    size, rows = len(grouping.labels), len(off)
    mass = evalset.mass
    square = mass
    if evalset.weights is not None and evalset.weights.kind == "importance":
        mass = mass / mass.max()
        square = np.square(mass)
    cluster = np.arange(rows) if evalset.cluster is None else evalset.cluster.codes

    def inside(values: FloatArray) -> FloatArray:
        sums = np.bincount(grouping.codes, weights=values, minlength=size)
        return sums.astype(np.float64, copy=False)

    with np.errstate(invalid="ignore", divide="ignore"):
        total, group_mass = float(mass.sum()), inside(mass)
        surplus = inside(mass * off)
        share = inside(mass * noise) / float((mass * noise).sum())
        here, outside_mean = surplus / group_mass, -surplus / (total - group_mass)
        g, k, pair_of = grouping.codes, cluster, cluster
        if evalset.cluster is not None:
            joint = g * (int(cluster.max()) + 1) + cluster
            pairs, pair_of = np.unique(joint, return_inverse=True)
            g, k = np.divmod(pairs, int(cluster.max()) + 1)
        sums, sizes = np.bincount(pair_of, mass * off), np.bincount(pair_of, mass)
        every, most = np.bincount(cluster, mass * off), np.bincount(cluster, mass)
        outside = every[k] - sums - outside_mean[g] * (most[k] - sizes)
        touching = (1 - share[g]) * (sums - here[g] * sizes) - share[g] * outside
        alone = share[g] * (every[k] - outside_mean[g] * most[k])
        moved = np.bincount(g, np.square(touching) - np.square(alone), minlength=size)
        variance = moved + np.square(share) * (
            float(every @ every)
            - 2 * outside_mean * float(every @ most)
            + np.square(outside_mean) * float(most @ most)
        )
        units = np.bincount(g, minlength=size).astype(np.float64)
        if evalset.cluster is None:
            units = np.square(group_mass) / inside(np.square(mass))
        variance = variance * units / (units - 1)
        plain = inside(square * noise)
        if evalset.cluster is not None and _are_copies(cluster, off, noise):
            among = np.bincount(pair_of, mass * noise) / sizes
            plain = np.bincount(g, np.square(sizes) * among, minlength=size).astype(np.float64)
        floor = np.square(1 - share) * plain + np.square(share) * (plain.sum() - plain)
        return surplus / np.sqrt(np.maximum(variance, floor)), units, units - 1.0


def _scores_in_time(
    evalset: EvalSet,
    divided: Sequence[Grouping],
    off: FloatArray,
    noise: FloatArray,
    units: FloatArray,
    p_spells: FloatArray,
    hidden: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """The same of rows that follow each other in time, and its p-values: what rows add to a surplus
    is a series.

    No memory makes a surplus clearer than independent rows would. So those that chance explains
    even then keep their t and p-value of independent rows, and memory is sought of the others, the
    clearest first, until one is clearer than any that is left could be.
    """
    mass = evalset.mass
    square = mass if evalset.weights is None or evalset.weights.kind == "frequency" else mass**2
    plain, noise = square * noise, mass * noise
    places, shares, ratios = [], [], []
    for grouping in divided:
        size = len(grouping.labels)
        inside = partial(np.bincount, grouping.codes, minlength=size)
        variance, share = inside(plain), inside(noise) / noise.sum()
        floor = np.sqrt(
            np.square(1.0 - share) * variance + np.square(share) * (plain.sum() - variance)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = inside(mass * off) / floor
        places += [(grouping.codes, group) for group in range(size)]
        shares.append(share)
        ratios.append(np.where(inside() == len(off), np.nan, ratio))
    t, share = np.concatenate(ratios), np.concatenate(shares)
    p = _two_sided(t, math.inf)
    tested, clearest = (units >= MIN_UNITS) & np.isfinite(t), math.inf
    candidates = np.flatnonzero(tested)
    for candidate in candidates[np.argsort(p[candidates], kind="stable")]:
        if p[candidate] > clearest or p[candidate] * len(candidates) >= 1.0:
            break
        codes, group = places[candidate]
        inflated, degrees = _inflated(evalset, codes == group, share[candidate], off, plain, hidden)
        t[candidate] /= inflated
        p[candidate] = float(_two_sided(t[candidate], degrees))
        clearest = min(clearest, float(np.fmax(p[candidate], p_spells[candidate])))
    return t, p


def _inflated(
    evalset: EvalSet,
    inside: BoolArray,
    share: float,
    off: FloatArray,
    plain: FloatArray,
    hidden: FloatArray | None,
) -> tuple[float, float]:
    """How many times the error of independent rows that of a group's surplus is, at least 1, and
    its degrees of freedom; NaN where memory is not known.
    """
    times = evalset.chronology
    assert times is not None
    mass = evalset.mass
    factor = mass * (inside - share)

    def added(values: FloatArray) -> FloatArray:
        means = [np.average(values[each], weights=mass[each]) for each in (inside, ~inside)]
        return factor * (values - np.where(inside, *means))

    signal = None if hidden is None else added(hidden)
    spread = spread_of(added(off), None, times.hiding(signal))
    floor = math.sqrt(float(np.square(inside - share) @ plain))
    return max(len(off) * float(spread.error[0]) / floor, 1.0), float(spread.degrees[0])


def spells_in(evalset: EvalSet, grouping: Grouping, off: FloatArray, noise: FloatArray) -> Spells:
    """What visits to each group say of it, where rows follow each other in time."""
    size, times = len(grouping.labels), evalset.chronology
    if times is None:
        return Spells(np.zeros(size, dtype=np.int64), np.full(size, np.nan))
    mass = evalset.mass
    least = float(np.average(noise, weights=mass))
    if evalset.weights is not None and evalset.weights.kind != "frequency":
        least *= float(mass @ mass / mass.sum())
    return spells_of(off, mass, times.times, grouping.codes, size, least)


def _are_copies(cluster: IntArray, *columns: FloatArray) -> bool:
    """Whether all rows of each cluster are alike, and some cluster has several."""
    _, first, codes = np.unique(cluster, return_index=True, return_inverse=True)
    alike = (np.array_equal(values[first][codes.ravel()], values) for values in columns)
    return len(first) < len(cluster) and all(alike)


# ---- bias and spread -----------------------------------------------------------------------------


def p_value(value: float, details: dict[str, Any], reason: str = "") -> Estimate:
    """A p-value, beside those of right models."""
    return Estimate(
        value, p=value, null=0.5, null_lower=0.05, null_upper=1.0, reason=reason, details=details
    )


def errors_differ(view: View, divided: Sequence[Grouping], *, confidence: float = 0.95) -> Estimate:
    """Is some group off otherwise than all rows, by the mean of φ_1 (bias) or of φ_2 (spread)?

    The smallest p-value over groups and both components counts as often as there are such. The
    group that it names is moved until it is as the others are, and what then stands out most is
    named too, if it does: one wrong group makes all others look wrong the other way.

    Details tell of both (keys of the second end with ``_2``): ``where``, the
    ``signal``, the group's shift in predicted sds or the multiple of the stated spread (``size``);
    of the first also its ``rows``, the size of all rows (``overall``), and its ``deviation`` from
    the mean component of all rows, with ends of an interval for all groups at once.
    """
    evalset, moved = view.evalset, _Moved(view)
    labels = [label for grouping in divided for label in grouping.labels]
    places = [(grouping.codes, k) for grouping in divided for k in range(len(grouping.labels))]
    noise, units = np.ones(evalset.n), _effective(evalset, divided, moved.components()[0])

    def rows_of(group: int) -> BoolArray:
        codes, code = places[group]
        return np.asarray(codes == code)

    def clearest(but: tuple[int, int] | None = None) -> tuple[list[GroupScores], int, int]:
        rows = moved.components()
        means = np.average(rows, axis=1, weights=evalset.mass)
        scores = [
            group_scores(evalset, divided, row - mean, noise, units=units, skewness=skewness)
            for row, mean, skewness in zip(rows, means, moved.skewness, strict=False)
        ]
        p, t = (np.stack([getattr(each, name) for each in scores]) for name in ("p", "t"))
        if but is not None:
            p[but] = np.inf
        first = np.lexsort((-np.abs(t).ravel(), p.ravel()))[0]  # what is very clear has a p of 0
        order, group = np.unravel_index(first, p.shape)
        return scores, int(order), int(group)

    found, order, group = clearest()
    tests = int(sum(each.tested.sum() for each in found))
    if not tests:
        raise UnanswerableError(f"no group of at least {MIN_UNITS} {found[0].what}")
    best, inside, row = found[order], rows_of(group), moved.components()[order]
    value, t = min(1.0, float(best.p[group]) * tests), float(best.t[group])
    roughly = not value < LEVEL
    off = float(np.average(row[inside], weights=evalset.mass[inside]))
    off -= float(np.average(row, weights=evalset.mass))
    half = -float(special.ndtri((1.0 - confidence) / 2.0 / tests)) * abs(off / t)
    details = {
        "statistic": abs(t),
        "deviation": off,
        "lower": off - half,
        "upper": off + half,
        "where": labels[group],
        "signal": SIGNALS[order],
        "size": moved.size(order, inside, roughly=roughly),
        "overall": moved.size(order, np.ones(evalset.n, dtype=np.bool_), roughly=roughly),
        "rows": float(evalset.mass[inside].sum()),
    }
    if best.spells[group]:
        own = min(1.0, float(best.own[group]) * tests)
        details |= {"spells": float(best.spells[group]), "p_here": own}
    if value < LEVEL:
        moved.move(order, inside)
        left, order, group = clearest((order, group))
        if left[order].p[group] * tests < LEVEL:
            size = moved.size(order, rows_of(group))
            details |= {"where_2": labels[group], "signal_2": SIGNALS[order], "size_2": size}
    few = f"groups of fewer than {MIN_UNITS} {best.what} are left out: {best.few}"
    return p_value(value, details, few if best.few else "")


SIGNALS = ("bias", "spread")
"""What the components tell of."""
# Of a shift in sds, or of a log scale: begun near the guess, widened by four until it holds a root
# or is beyond what a group can be off by, and found to a thousandth, more than is shown.
_FIRST_REACH, _MAX_REACH, _ROOT_TOLERANCE = 0.05, 10.0, 1e-3


class _Moved:
    """Rows whose y may be shifted and scaled against their prediction, and their components."""

    def __init__(self, view: View) -> None:
        self.placed: Placed = view.get("placed")
        self.mass = view.evalset.mass
        self.shift, self.scale = np.zeros(len(self.mass)), np.ones(len(self.mass))
        self.draws: FloatArray | None = None
        self.skewness: Sequence[float] = _SKEWNESS
        if self.placed.jumps:
            self.draws = row_uniforms(view.seed, "pit", row_keys(*self.placed.place(0.0, 1.0)))
        elif self.placed.table is not None and self.placed.cells is not None:
            self.skewness = (self.placed.table[:2] ** 3 @ self.placed.cells).tolist()

    def components(self) -> FloatArray:
        """φ_1 and φ_2 of each row; where y meets a jump, of a draw within."""
        places = self.placed.place(self.shift, self.scale)
        if self.draws is None:
            return self.placed.polynomials(places)[:2]
        low, high = places
        return legendre(low + self.draws * (high - low))[:2]

    def size(self, order: int, rows: BoolArray, *, roughly: bool = False) -> float:
        """The shift, or the scale, without which a part's mean component would vanish.

        Roughly, that of normal errors; few members blur it, and cells make steps of the mean.
        """
        weights, before = self.mass[rows], (self.shift, self.scale)

        def mean_after(move: float) -> float:
            self.shift, self.scale = before
            self._by(order, rows, move)
            return float(np.average(self.components()[order][rows], weights=weights))

        now = mean_after(0.0)
        guess = shift_of(now) if order == 0 else math.log(scale_of(now))
        reach = _FIRST_REACH
        while (
            not roughly
            and reach < _MAX_REACH
            and mean_after(guess - reach) * mean_after(guess + reach) > 0
        ):
            reach *= 4.0
        if not roughly and reach < _MAX_REACH:
            guess = root(mean_after, guess - reach, guess + reach, _ROOT_TOLERANCE)
        self.shift, self.scale = before
        return guess if order == 0 else math.exp(guess)

    def move(self, order: int, rows: BoolArray) -> None:
        """Move a part until it is as all other rows are."""
        size, size_of_others = self.size(order, rows), self.size(order, ~rows)
        self._by(
            order, rows, size - size_of_others if order == 0 else math.log(size / size_of_others)
        )

    def _by(self, order: int, rows: BoolArray, move: float) -> None:
        """Shift a part by so many sds, or scale it by the exponential."""
        if order == 0:
            self.shift = self.shift + rows * move * self.scale
        else:
            self.scale = self.scale * np.where(rows, math.exp(move), 1.0)


def _effective(
    evalset: EvalSet, divided: Sequence[Grouping], rows: FloatArray
) -> FloatArray | None:
    """Effective rows of each group, where rows follow each other in time."""
    if evalset.chronology is None:
        return None
    units = []
    for grouping in divided:
        size = len(grouping.labels)
        off = less_means(rows, grouping.codes, evalset.mass)
        spread = spread_of(off, evalset.weights, evalset.chronology, grouping.codes, size)
        units.append(spread.units)
    return np.concatenate(units)
