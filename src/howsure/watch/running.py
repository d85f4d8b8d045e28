"""A running correction: a factor for half-widths that is updated as y arrives.

Four tracks follow the level's quantile of the ratios |y − middle| / half-width, each with another
memory, and "no correction" stands beside them. They are mixed by their pinball losses, which are
interval scores but for a constant; so where nothing is wrong next to nothing is lost. A shadow
scores the corrected intervals beside the unchanged ones, day by day.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_vector,
    check_above,
    check_fraction,
)
from howsure.core.classes import frozen
from howsure.core.convert import (
    Finite,
    Fraction,
    Natural,
    NonNegative,
    Positive,
    check_whole,
)
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.formats import fixed, percent
from howsure.core.times import Chronology
from howsure.core.weights import check_multiplicities
from howsure.engine.view import View
from howsure.predictions import EvalSet
from howsure.stats.estimate import skewed_ends, spread_of
from howsure.stats.evidence import mixed_bets
from howsure.topics.scores import pinball
from howsure.watch.quantities import row_counts

# A factor of three to four apart: the shortest follows a spell within days, the longest keeps what
# lasts. By hand; the mix decides between them.
ROWS_REMEMBERED = np.array([50.0, 150.0, 500.0, 2_000.0])
# The same of days, each of which has one shock: from a day to two months.
DAYS_REMEMBERED = np.array([1.0, 4.0, 15.0, 60.0])
"""What each track remembers: so many rows, and so many days at least."""
# What would have to be four times wider is another model's task.
MAX_FACTOR = 4.0
"""The greatest factor; its inverse is the least. What is farther off needs another model."""
# Chosen by hand. Larger, the mix follows the best track sooner, and chance too.
RATE_OF_LOSS, ROWS_OF_DAY = 0.5, 2.0
"""A row's loss counts as a log of odds, in units of the reference's loss, times RATE_OF_LOSS; rows
of a day are alike, and count as so many at most: with more the mix runs after each day's chance.
"""
# A track returns after log(1/.002) = 6 nats at most; larger costs each day as much as it is.
SHARE_RENEWED = 0.002
"""Part of the mix that is shared out anew each day, so that a track that was bad may return."""
# Where nothing is wrong, no correction must win: it then leads from the start.
SHARE_OF_NONE = 0.5
"""Share of no correction in the mix at the start, and in what is shared out anew."""
# Measured as below.
MIN_DAYS = 30
"""Days of a shadow before a correction is offered. After 20, spells that pass by themselves harm in
5 to 6 % of the years of a volatile series; after 30, in 2 to 3 %.
"""
# The usual level, of all looks together.
LEVEL = 0.05
"""Chance that one that is no better is ever offered, if it is no better on any day."""
# A factor of five apart: bets between two of them grow at least 56 % as fast as the best.
STAKES = np.array([0.2, 1.0, 5.0, 25.0])
"""What is bet on each day's gain as a share of the width: the best where it is independent of other
days is about a fifth of the rows that a day is worth."""
# Of the capital that a single day may lose, so that one day never ends a bet. By hand; not tuned.
_MAX_LOSS_OF_DAY = 0.8
# A ratio of 0 has no logarithm; this is below any other.
_MIN_RATIO = 1e-300


@frozen(kw_only=True)
class Running:
    """A running correction as it stands after the last day that is known."""

    level: Fraction  # nominal coverage
    scale: Positive  # mean pinball loss of the reference's ratios at factor 1
    late: Natural = 0  # days by which labels come late
    day: int | None = None  # the last that is known; None: none yet
    logs: tuple[Finite, ...] = (0.0,) * 4  # of the factor of each track
    # of each track in the mix; the rest: no correction
    shares: tuple[NonNegative, ...] = ((1.0 - SHARE_OF_NONE) / 4.0,) * 4
    # late labels alone: day, mixed factor and factors of tracks, of the days that tell which
    # factors stood when the rows to come were predicted
    stood: tuple[tuple[Finite, ...], ...] = ()

    @classmethod
    def begin(
        cls,
        ratios: npt.ArrayLike,
        level: float,
        *,
        late: int = 0,
        weights: npt.ArrayLike | None = None,
    ) -> Self:
        """With factor 1, and the scale of a reference's ratios."""
        checked_ratios = _ratios(ratios)
        mass = check_multiplicities(weights, len(checked_ratios))
        losses = pinball(checked_ratios, 1.0, check_fraction(level, "level"))
        scale = float(np.average(losses, weights=mass))
        if not scale > 0.0:
            raise InputError(
                f"ratios of the reference must not all be 1, got {len(checked_ratios)} of them"
            )
        return cls(level=float(level), scale=scale, late=check_whole(late, "late", 0))

    def __post_init__(self) -> None:
        tracks = len(ROWS_REMEMBERED)
        lengths = {len(self.logs), len(self.shares), *(len(factors) - 2 for factors in self.stood)}
        if lengths != {tracks} or np.abs(self.logs).max() > 2.0 * math.log(MAX_FACTOR):
            raise InputError(f"a running correction must have {tracks} tracks within their range")

    @property
    def factor(self) -> float:
        """By which half-widths of rows to come are multiplied."""
        # the loss is convex, so that of the mean of factors is at most their mean loss
        return float(1.0 + np.array(self.shares) @ (np.exp(self.logs) - 1.0))

    def factor_on(self, day: int) -> float:
        """The factor that stood when rows of a day to come were predicted."""
        return self._in_force(day)[0]

    def after(
        self,
        ratios: npt.ArrayLike,
        days: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> tuple[Self, FloatArray]:
        """As it stands after more rows, and the factor that stood for each row.

        Rows come in the order of their days; each has the factor that was known before its day,
        from labels of days before it less ``late``. Weights count rows.
        """
        checked_ratios = _ratios(ratios)
        mass = check_multiplicities(weights, len(checked_ratios))
        at = np.asarray(days, dtype=np.int64)
        if at.shape != checked_ratios.shape or (np.diff(at) < 0).any():
            raise InputError(f"days must be ascending, one per row, got shape {at.shape}")
        if self.day is not None and at[0] <= self.day:
            raise InputError(f"days must come after day {self.day}, got day {at[0]}")
        running, factors = self, np.empty(len(checked_ratios))
        for day, rows in _by_day(at):
            stood, tracks = running._in_force(day)
            factors[rows] = stood
            running = running._learnt(
                day, checked_ratios[rows], None if mass is None else mass[rows], tracks
            )
        return running, factors

    def _in_force(self, day: int) -> tuple[float, FloatArray]:
        """The mixed factor, and those of the tracks, when rows of a day were predicted."""
        if not self.late:
            return self.factor, np.exp(self.logs)
        earlier = [factors for factors in self.stood if factors[0] < day - self.late]
        return (earlier[-1][1], np.array(earlier[-1][2:])) if earlier else (1.0, np.ones(4))

    def _learnt(
        self, day: int, ratios: FloatArray, mass: FloatArray | None, tracks: FloatArray
    ) -> Self:
        """After one day's rows; the tracks are judged by the factors that they had for it."""
        if mass is None:
            ordered, counts = np.sort(ratios), np.ones(len(ratios))
        else:
            order = np.argsort(ratios)
            ordered, counts = ratios[order], mass[order]
        upto = np.append(0.0, np.cumsum(counts))
        n = float(upto[-1])
        if not n > 0.0:
            return self
        losses = _losses(np.append(1.0, tracks), ordered, counts, upto, self.level)
        gains = RATE_OF_LOSS * min(n, ROWS_OF_DAY) / self.scale * (losses[0] - losses)
        shares = np.append(1.0 - sum(self.shares), self.shares) * np.exp(gains - gains.max())
        prior = np.append(SHARE_OF_NONE, np.full(4, (1.0 - SHARE_OF_NONE) / 4.0))
        shares = (1.0 - SHARE_RENEWED) * shares / shares.sum() + SHARE_RENEWED * prior

        logs = _stepped(np.array(self.logs), ordered, upto, self.level)
        learnt = replace(
            self, day=day, logs=tuple(logs.tolist()), shares=tuple(shares[1:].tolist())
        )
        if not self.late:
            return learnt
        fresh = (float(day), learnt.factor, *np.exp(logs).tolist())
        stood = (*self.stood, fresh)
        old = sum(
            factors[0] < day + 1 - self.late for factors in stood
        )  # the last of them still holds
        return replace(learnt, stood=stood[max(old - 1, 0) :])


@frozen(kw_only=True, eq=False)
class Shadow:
    """Sums by day of unchanged intervals and of corrected ones."""

    days: IntArray  # shape (k,), rising
    # shape (k, 6): rows; their widths; interval scores, unchanged and corrected; covered,
    # unchanged and corrected
    sums: FloatArray
    risks: FloatArray  # shape (k,): by how much the score may become worse, known before y

    def log_capital(self) -> FloatArray:
        """Evidence after each day that the correction gains, which may be looked at every day.

        A supermartingale where no day gains on average, whatever came before: a day is one unit,
        whose rows may depend in any way, and its greatest loss and its stake are known before its
        y. So it ever reaches −log α with probability α at most.
        """
        _, widths, none, corrected, *_ = self.sums.T
        moves = (self.risks > 0.0) & (widths > 0.0)
        width = np.where(moves, widths, 1.0)
        worst = np.where(moves, self.risks / width, 1.0)
        gains = np.where(moves, (none - corrected) / width, 0.0)
        logs = np.cumsum(
            np.log1p(np.minimum(STAKES[:, None], _MAX_LOSS_OF_DAY / worst) * gains), axis=1
        )
        return mixed_bets(logs, np.full(len(STAKES), 1.0 / len(STAKES)))

    def gain(self) -> ShadowGain:
        """What the correction gained over all days."""
        days = self.days
        rows, widths, none, corrected, covered_none, covered = self.sums.T
        if not none.sum() > 0.0:
            raise UnanswerableError("no row has a width above 0")
        value = 1.0 - float(corrected.sum() / none.sum())
        # of a ratio of sums; days are the units, and may follow each other. That it gained less
        # while it still moved away from 1 is no memory of the days
        influence = ((1.0 - value) * none - corrected) * (len(days) / none.sum())
        moved = self.risks / np.where(widths > 0.0, widths, 1.0)
        settled = np.cumsum(moved >= 0.5 * np.median(moved)) > 0
        spread = spread_of(influence, None, Chronology(days, levels=settled.astype(np.int64)))
        (low,), (high,) = skewed_ends(value, spread, 0.95)
        return ShadowGain(
            days=len(days),
            value=value,
            low=float(low),
            high=float(high),
            covered=float(covered.sum() / rows.sum()),
            covered_unchanged=float(covered_none.sum() / rows.sum()),
            log_capital=float(self.log_capital()[-1]),
        )


@frozen(kw_only=True)
class ShadowGain:
    """By how much a running correction scored better than none, as a share of none's score."""

    days: int
    value: float
    low: float  # ends of the interval; NaN where days are too few, or remember too much
    high: float
    covered: float  # share of rows in corrected intervals
    covered_unchanged: float
    log_capital: float  # evidence that may be looked at every day; `Shadow.gain`

    @property
    def offered(self) -> bool:
        """Whether the correction is worth offering, on whatever day one looks.

        Factors that stood knew late labels only, so a gain is one despite their lateness.
        """
        proven = self.low > 0.0 and self.log_capital >= -math.log(LEVEL)
        return proven and self.days >= MIN_DAYS

    def sentence(self, since: str, factor: float) -> str:
        """The result in words."""
        change = "lowered" if self.value >= 0.0 else "raised"
        text = f"would have {change} the interval score by {percent(abs(self.value))}"
        if not math.isnan(self.low):
            sign = math.copysign(100.0, self.value)
            low, high = sorted((sign * self.low, sign * self.high))
            text += f" ({fixed(low, 1, trim=True)} to {fixed(high, 1, trim=True)})"
        return (
            f"Since {since}, a running correction (factor now {factor:.2f}) {text} and covered "
            f"{percent(self.covered)}."
        )


def shadow(
    ratios: npt.ArrayLike,
    widths: npt.ArrayLike,
    factors: npt.ArrayLike,
    coverage: float,
    days: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Shadow:
    """Score intervals of these widths, unchanged and with the factors that stood, day by day.

    The interval score of a row is width · (q + (ratio − q)₊ / α) at factor q.
    """
    checked_ratios = _ratios(ratios)
    size = as_vector(widths, "widths", length=len(checked_ratios))
    factor = as_vector(factors, "factors", length=len(checked_ratios))
    check_above(factor, "factors", 0.0)
    if size.min() < 0.0:
        raise InputError(f"widths must not be negative, got {size.min():g}")
    mass = check_multiplicities(weights, len(checked_ratios))
    mass = np.ones(len(checked_ratios)) if mass is None else mass
    at = (
        np.zeros(len(checked_ratios), np.int64)
        if days is None
        else np.asarray(days, dtype=np.int64)
    )
    if at.shape != checked_ratios.shape:
        raise InputError(f"days must have one value per row, got shape {at.shape}")
    alpha = 1.0 - check_fraction(coverage, "coverage")
    there, codes = np.unique(at, return_inverse=True)
    wide = mass * size
    rows = (
        mass,
        wide,
        wide * (1.0 + np.maximum(checked_ratios - 1.0, 0.0) / alpha),
        wide * (factor + np.maximum(checked_ratios - factor, 0.0) / alpha),
        mass * (checked_ratios <= 1.0),
        mass * (checked_ratios <= factor),
    )
    # wider intervals lose what they are wider by; narrower ones lose by misses
    risk = wide * np.where(factor > 1.0, factor - 1.0, (1.0 - factor) * (1.0 / alpha - 1.0))
    sums = np.array(
        [np.bincount(codes, column, minlength=len(there)) for column in (*rows, risk)]
    ).T
    return Shadow(days=there, sums=sums[:, :-1].copy(), risks=sums[:, -1].copy())


def _losses(
    factors: FloatArray, ordered: FloatArray, counts: FloatArray, upto: FloatArray, level: float
) -> FloatArray:
    """Mean pinball loss of each factor, but for what all have in common beyond the greatest."""
    capped = np.append(0.0, np.cumsum(counts * np.minimum(ordered, MAX_FACTOR)))
    index = np.searchsorted(ordered, factors, side="right")
    below = factors * upto[index] - capped[index]
    above = capped[-1] - capped[index] - factors * (upto[-1] - upto[index])
    return np.asarray((level * above + (1.0 - level) * below) / upto[-1])


def _stepped(logs: FloatArray, ordered: FloatArray, upto: FloatArray, level: float) -> FloatArray:
    """Tracks after a day: x = x₀ + s (rows beyond eˣ − (1 − level) n), one root each.

    The step is taken at its own end (a proximal step), so it never passes the day's quantile,
    however many rows the day has; for single rows it is the usual step of a quantile tracker. With
    s = 1/(slope · memory) the distance to the quantile falls to 1/(1 + n/memory), where the slope
    is that of the share beyond eˣ for normal errors.
    """
    n, z = float(upto[-1]), float(special.ndtri(0.5 + level / 2.0))
    slope = 2.0 * z * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    step = 1.0 / (slope * np.maximum(ROWS_REMEMBERED, DAYS_REMEMBERED * n))
    # the first row that the root does not pass, by halving
    first, last = np.zeros(len(logs), np.int64), np.full(len(logs), len(ordered))
    while (first < last).any():
        middle = np.minimum((first + last) // 2, len(ordered) - 1)
        log_ratio = np.log(np.maximum(ordered[middle], _MIN_RATIO))
        passed = log_ratio - step * (level * n - upto[middle + 1]) < logs
        first, last = (
            np.where(passed & (first < last), middle + 1, first),
            np.where(passed, last, np.minimum(middle, last)),
        )
    free = logs + step * (level * n - upto[first])
    met = ordered[np.minimum(first, len(ordered) - 1)]
    stop = np.where(first < len(ordered), np.log(np.maximum(met, _MIN_RATIO)), np.inf)
    most = math.log(MAX_FACTOR)
    return np.asarray(np.clip(np.minimum(free, stop), -most, most))


# Cells by equal factors, e^(2 log 8 / 96) = 1.044: what stands for a cell is off by 2.2 % at most.
CELLS_OF_RATIOS = 96
# Twice the greatest factor: what lies beyond counts as missed by any.
_MAX_RATIO = 8.0
# Equal factors, as factors of widths are what is looked for.
_EDGES = np.exp(np.linspace(-1.0, 1.0, CELLS_OF_RATIOS + 1) * math.log(_MAX_RATIO))
_CENTRES = np.sqrt(_EDGES[1:] * _EDGES[:-1])
"""What stands for the ratios of each cell: off by 2 % at most, from 1/8 to 8; 1 is an edge."""
RatioCell = tuple[int, int, float, float]
"""A day, a cell, its rows, and their widths added up."""


def _placed(evalset: EvalSet, coverage: float) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which rows have a width; of these |y − middle| / half-width, and the width."""
    view = View(evalset)
    lower, upper = view.get("lower", coverage), view.get("upper", coverage)
    width = upper - lower
    there = np.isfinite(width) & (width > 0.0)
    width = width[there]
    return there, 2.0 * np.abs((evalset.y - lower)[there] - width / 2.0) / width, width


def ratio_cells(evalset: EvalSet, coverage: float, days: IntArray) -> list[RatioCell]:
    """Rows counted by day and by ratio: all that a running correction needs, in any order."""
    has_width, ratios, widths = _placed(evalset, coverage)
    mass, days = row_counts(evalset)[has_width], days[has_width]
    cell = np.clip(np.searchsorted(_EDGES, ratios, side="left") - 1, 0, CELLS_OF_RATIOS - 1)
    there, codes = np.unique(days, return_inverse=True)
    joint = codes * CELLS_OF_RATIOS + cell
    rows, wide = (
        np.bincount(joint, column, len(there) * CELLS_OF_RATIOS) for column in (mass, mass * widths)
    )
    return [
        (int(there[k // CELLS_OF_RATIOS]), k % CELLS_OF_RATIOS, float(rows[k]), float(wide[k]))
        for k in np.flatnonzero(rows).tolist()
    ]


def running_of(reference: EvalSet, coverage: float, late: int) -> Running | None:
    """The running correction as it begins; None without intervals, or if all ratios are 1."""
    if math.isnan(coverage):
        return None
    has_width, ratios, _ = _placed(reference, coverage)
    mass = None if reference.multiplicities is None else reference.multiplicities[has_width]
    try:
        return Running.begin(ratios, coverage, late=late, weights=mass)
    except InputError:
        return None


def run(
    running: Running, cells: Mapping[int, FloatArray], days: IntArray
) -> tuple[Running, Shadow | None]:
    """As it stands after some days, of each of which rows and widths are known by cell.

    With its shadow; None where no day has rows.
    """
    days_with_rows = [day for day in days.tolist() if day in cells]
    if not days_with_rows:
        return running, None
    counts, widths = np.moveaxis(np.array([cells[day] for day in days_with_rows]), 1, 0)
    at, cell = np.nonzero(counts)
    rows, when = counts[at, cell], np.array(days_with_rows)[at]
    ratios = _CENTRES[cell]
    running, factors = running.after(ratios, when, rows)
    wide = widths[at, cell] / rows
    return running, shadow(ratios, wide, factors, running.level, when, rows)


def _ratios(ratios: npt.ArrayLike) -> FloatArray:
    """Checked."""
    checked_ratios = as_vector(ratios, "ratios")
    if checked_ratios.min() < 0.0:
        raise InputError(f"ratios must not be negative, got {checked_ratios.min():g}")
    return checked_ratios


def _by_day(days: IntArray) -> Iterator[tuple[int, slice]]:
    """Each day with its rows."""
    starts = np.flatnonzero(np.diff(days, prepend=days[:1] - 1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(days)], strict=True):
        yield int(days[start]), slice(start, stop)
