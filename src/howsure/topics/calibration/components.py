"""What is wrong with the PIT: its components of bias, spread, skew and tails.

The probability integral transform of a correctly specified model is uniform, so its orthonormal
polynomials φ_1 … φ_4 have mean 0 and variance 1 and are uncorrelated. They are bounded: their
means keep their level under heavy tails, where a mean squared z-score does not. Samples and
quantile tables have polynomials of their own, orthonormal on the cells that y may fall into.

A fault leaks: errors that are only too large also move φ_4. So y is shifted and scaled against
its prediction until φ_1 and φ_2 vanish; the shift and the scale tell bias and spread, and what
then is left of φ_3 and φ_4 is skew and tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child, row_hashes
from howsure.core.times import Chronology, Units
from howsure.core.weights import Weights
from howsure.stats.binomial import binomial_test
from howsure.stats.dominance import rank_values
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import Z_95, Estimate, Spread, spread_of, standard_error, weighted_mean

# ∫₀ᵘ φ₁ = √3 (u² − u), the largest at 1/2; of φ₂, √5 (2u³ − 3u² + u), at 1/2 ± 1/√12.
MOVED = {"bias": math.sqrt(3.0) / 4.0, "spread": math.sqrt(15.0) / 18.0}
"""Largest |∫_0^u φ_1| and |∫_0^u φ_2|: how far one unit moves a stated probability."""
# √7/16 at 1/2, and of φ₄ a root of Legendre's polynomial that has no short form.
DISTORTION = (7.0**0.5 / 16.0, 0.1235184)
"""The same of φ_3 and φ_4."""
# Small beside the curvature of a normal law, large beside what the noise of few rows makes of a
# difference; of members, whose means go in steps, wide enough to cross some. Not tuned.
STEP_OF_SLOPE, STEP_OF_CELL_SLOPE = 0.05, 0.25
"""By how many sds y is moved to tell a slope, and of cells, whose means go in steps."""
# Below, a move of Newton's would be twenty times a component: nothing follows from it.
_MIN_SLOPE = 0.05
# Newton's last move that is taken: means of cells go in steps.
_MAX_LAST_MOVE = 0.25
# A step of shift and log scale that no longer matters: a thousandth of what is shown.
_NEGLIGIBLE_MOVE = 1e-5
# How fast φ₁ falls as a normal y is shifted back.
_SLOPE_OF_BIAS = -math.sqrt(3.0 / math.pi)
# Excess kurtosis of a mean, past which its p-value is drawn. At .1 a normal p-value of .005 is off
# by a fifth of itself (Edgeworth's term), at less by less.
_MAX_EXCESS_KURTOSIS = 0.1
# As many as any test of the verdict: p = .005 is known to .0007.
_MAX_DRAWS = 9_999

Move = float | FloatArray
"""Of all rows, or of each."""
Place = Callable[[Move, Move], AnyArray]
Polynomials = Callable[[AnyArray], FloatArray]


@frozen
class Right:
    """The polynomials under a right model, where y falls into cells or the PIT jumps."""

    # shape (orders, n, k): φ at k outcomes of each row; n = 1 where all rows are alike
    values: FloatArray
    shares: FloatArray  # shape (n, k): probability of each outcome
    weights: FloatArray | None = None  # shape (n,): of the rows
    whole: bool = True  # whether these are all rows, not a part of them

    def covariance(self) -> FloatArray:
        """Covariance of the orders, averaged over rows."""
        products = np.einsum("irk,jrk,rk->rij", self.values, self.values, self.shares)
        return np.average(products, axis=0, weights=self.weights)

    def p(self, mean: float, factors: FloatArray, n: float, kind: str) -> float:
        """Two-sided p-value of a mean of factors·φ, drawn where it is not normal; else 0."""
        rows = np.tensordot(factors, self.values, 1)
        second, fourth = (
            float(np.average((rows**power * self.shares).sum(axis=1), weights=self.weights))
            for power in (2, 4)
        )
        alike = len(rows) == 1
        if (
            not second > 0
            or fourth / second**2 / n < _MAX_EXCESS_KURTOSIS
            or not (alike or self.whole)
        ):
            return 0.0
        if alike:
            counts = child(0, "components", round(n), rows.size).multinomial(
                round(n), self.shares[0], size=_MAX_DRAWS
            )
            drawn = counts @ rows[0] / round(n)
        else:
            drawn = self._drawn(rows, kind)
        reached = np.abs(drawn) >= abs(mean) * (1.0 - 1e-9)
        return float((1 + np.count_nonzero(reached)) / (1 + len(drawn)))

    def _drawn(self, rows: FloatArray, kind: str) -> FloatArray:
        """Means of rows whose outcomes are drawn; equal rows are interchangeable."""
        order = np.argsort(row_hashes(rows, self.shares), kind="stable")
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        if kind == "frequency":
            order = np.repeat(order, weights[order].astype(np.int64))
            weights = np.ones(len(rows))
        # At most three million numbers are drawn, however many the rows.
        draws = min(_MAX_DRAWS, max(199, 3_000_000 // len(order)))
        rng, total = child(0, "components", len(order)), np.zeros(draws)
        for row in order:
            cuts = np.cumsum(self.shares[row])
            outcome = np.minimum(np.searchsorted(cuts, rng.random(draws)), len(cuts) - 1)
            total += weights[row] * rows[row][outcome]
        return total / float(weights[order].sum())


@frozen(kw_only=True)
class Components:
    """Bias, spread, skew and tails, each with its error and the p-value of a right model."""

    # shift of y against its prediction in stated sds; above 0 where predictions are too low
    bias: Estimate
    spread: Estimate  # size of the errors as a multiple of the stated one; 1 is right
    # what is left of φ_3 and φ_4, as the largest shift of a stated probability; above 0 for a long
    # upper tail, and for tails heavier than stated
    skew: Estimate
    tails: Estimate


def over_jumps(ends: FloatArray) -> FloatArray:
    """Mean of each Legendre polynomial between two PIT values, of shape (2, n); (4, n)."""
    low, high = ends
    x = 2.0 * ends - 1.0
    p = [np.ones_like(x), x]
    for order in range(1, 5):  # Bonnet's recursion
        p.append(((2 * order + 1) * x * p[order] - order * p[order - 1]) / (order + 1))
    sums = [
        (p[order + 1] - p[order - 1]) / (2.0 * math.sqrt(2.0 * order + 1.0))
        for order in range(1, 5)
    ]
    wide = high - low > 1e-9
    gap = np.where(wide, high - low, 1.0)
    means = np.stack([(integral[1] - integral[0]) / gap for integral in sums])
    return np.where(wide, means, legendre((low + high) / 2.0))


def shift_of(first: float) -> float:
    """The shift b, in sds, of a normal y whose mean φ_1 is this: √3 (2Φ(b/√2) − 1)."""
    reached = np.clip(first / math.sqrt(3.0), -0.9999, 0.9999)
    return float(math.sqrt(2.0) * special.ndtri((reached + 1.0) / 2.0))


def scale_of(second: float) -> float:
    """The scale k of a normal y whose mean φ_2 is this: √5 (3 asin(ρ)/π − ½), ρ = k²/(1 + k²)."""
    angle = math.pi / 3.0 * (np.clip(second / math.sqrt(5.0), -0.499, 0.999) + 0.5)
    share = math.sin(angle)
    return math.sqrt(share / (1.0 - share))


def pit_components(
    place: Place,
    polynomials: Polynomials,
    *,
    weights: Weights | None = None,
    cluster: Units = None,
    fit_on: Place | None = None,
    fit_weights: FloatArray | None = None,
    cells: FloatArray | None = None,
    right: Right | None = None,
) -> Components:
    """Components of the PIT, with what explains them taken out of the higher ones."""
    fitted_place = fit_on or place
    share = None if weights is None else weights.values
    fit_share = share if fit_on is None else fit_weights
    step = STEP_OF_SLOPE if cells is None else STEP_OF_CELL_SLOPE

    def means(shift: float, log_scale: float) -> FloatArray:
        values = polynomials(fitted_place(shift, math.exp(log_scale)))
        return np.average(values, axis=1, weights=fit_share)

    at = place(0.0, 1.0)
    orders = len(polynomials(at[..., :1]))
    unit = np.eye(orders)
    plain = _combined(unit[:2], polynomials, at)
    covariance = np.eye(orders) if right is None else right.covariance()
    test = partial(mean_test, weights=weights, cluster=cluster, right=right)
    guess = np.average(plain, axis=1, weights=share)
    start = np.array([shift_of(guess[0]), math.log(scale_of(guess[1]))])
    fit = partial(_fitted, means, step=step)
    try:
        both, slopes = fit(start, free=[0, 1])
    except UnanswerableError as error:
        missing = Estimate(math.nan, reason=str(error))
        size = math.sqrt(covariance[0, 0])
        n = count_rows(len(plain[0]), weights)
        reach = shift_of(Z_95 * size / math.sqrt(n))
        reach *= wider_by(plain[0] - guess[0], weights, cluster)
        bias = Estimate(
            _shifted(means, float(start[0])),
            (guess[0] - plain[0]) / _SLOPE_OF_BIAS,
            p=test(plain[0], size, factors=unit[0], exact=True),
            null_lower=-reach,
            null_upper=reach,
        )
        return Components(bias=bias, spread=missing, skew=missing, tails=missing)
    del plain

    def size_of(factors: FloatArray) -> float:
        """The standard deviation of a combination in a right model."""
        return math.sqrt(float(factors @ covariance @ factors))

    tests = []
    for order, other in ((0, np.array([0.0, 1.0])), (1, np.array([1.0, 0.0]))):
        factors = unit[order].copy()
        try:  # the other is taken out, so that neither leaks
            free, tilts = fit(start * other, free=[1 - order])
            factors[1 - order] = -tilts[order, 0] / tilts[1 - order, 0]
        except UnanswerableError:  # this one is so far off that the other is flat
            free = both * other
        (rows,) = _combined(factors[None], polynomials, place(free[0], math.exp(free[1])))
        tests.append(test(rows, size_of(factors), factors=factors))
    solved = np.linalg.inv(slopes[:2])
    remaining = np.zeros(2)
    for _ in range(1 if fit_on is None else 3):  # a fit on a part is but a start
        both = both + remaining
        fitted = place(both[0], math.exp(both[1]))
        moves = _combined(-solved @ unit[:2], polynomials, fitted)  # influences on b and log k
        remaining = np.average(moves, axis=1, weights=share)
        if np.abs(remaining).max() < _NEGLIGIBLE_MOVE:
            break
    n = count_rows(moves.shape[1], weights)
    noise = np.diag(solved @ covariance[:2, :2] @ solved.T)
    chance = Z_95 * np.sqrt(noise / n)
    chance *= [wider_by(move - move.mean(), weights, cluster) for move in moves]
    bias = Estimate(
        float(both[0] + remaining[0]),
        moves[0] - remaining[0],
        p=tests[0],
        null_lower=-float(chance[0]),
        null_upper=float(chance[0]),
    )
    scale = math.exp(both[1] + remaining[1])
    spread = Estimate(
        scale,
        scale * (moves[1] - remaining[1]),
        p=tests[1],
        null_lower=math.exp(-chance[1]),
        null_upper=math.exp(chance[1]),
    )
    shapes = []
    for order, distortion in zip((2, 3), DISTORTION, strict=True):
        if orders <= order:
            shapes.append(Estimate(math.nan, reason=f"{orders + 1} cells are too few for it"))
            continue
        factors = unit[order].copy()
        factors[:2] = -slopes[order] @ solved
        (residual,) = _combined(factors[None], polynomials, fitted)
        size, mean = size_of(factors), weighted_mean(residual, share)
        p = test(residual, size, factors=factors)
        # independent rows that say as much
        independent = n / wider_by(residual - mean, weights, cluster) ** 2
        value, reach = distortion * mean, distortion * size * Z_95 / math.sqrt(independent)
        estimate = Estimate(
            value, distortion * residual - value, p=p, null_lower=-reach, null_upper=reach
        )
        shapes.append(
            replace(
                estimate,
                details=_beyond(at, cells, share, value, rows=independent, paired=order == 3),
            )
        )
    return Components(bias=bias, spread=spread, skew=shapes[0], tails=shapes[1])


def _combined(factors: FloatArray, polynomials: Polynomials, place: AnyArray) -> FloatArray:
    """Combinations of the polynomials at the rows' places, shape (combinations, n)."""
    sums = np.empty((len(factors), place.shape[-1]))
    for rows in row_blocks(place.shape[-1], factors.shape[1]):
        sums[:, rows] = factors @ polynomials(place[..., rows])
    return sums


def _fitted(
    means: Callable[[float, float], FloatArray], start: FloatArray, *, step: float, free: list[int]
) -> tuple[FloatArray, FloatArray]:
    """The shift and log scale at which their own means vanish, with all means' slopes there."""
    try:
        return _newton(means, start, step=step, free=free)
    except UnanswerableError:
        return _newton(means, _started(means, start, free), step=step, free=free)


def _newton(
    means: Callable[[float, float], FloatArray], start: FloatArray, *, step: float, free: list[int]
) -> tuple[FloatArray, FloatArray]:
    at = start.copy()
    # Far off, a turn moves by a factor of two at most: 12 reach 4,000 times the spread.
    for turn in range(12):
        units = np.diag([math.exp(at[1]), 1.0])[free]  # a shift counts in sds of what is left
        slopes = np.stack(
            [(means(*(at + step * u)) - means(*(at - step * u))) / (2.0 * step) for u in units],
            axis=1,
        )
        if abs(np.linalg.det(slopes[free])) < _MIN_SLOPE ** len(free):
            break
        move = -np.linalg.solve(slopes[free], means(*at)[free])
        size = np.abs(move).max()
        # A tenth of the tolerance is near enough; at the last turn a loose step beats no answer.
        if size < 1e-3 or (turn == 11 and size < _MAX_LAST_MOVE):
            return at, slopes / units.sum(axis=1)
        # At most half or twice the spread a turn: far off, means are flat and steps overshoot.
        at = at + np.clip(move, -0.7, 0.7) @ units
    raise UnanswerableError("rows are too few or too similar to separate shift from spread")


def _started(
    means: Callable[[float, float], FloatArray], start: FloatArray, free: list[int]
) -> FloatArray:
    """A start for Newton where PIT values are all near 0, 1 or ½: where signs change, in turn."""
    shift, log_scale = start
    for _ in range(2):
        if 0 in free:
            shift = _root(lambda b, s: means(b, s)[0], shift, log_scale, math.exp(log_scale), 2.0)
        if 1 in free:
            log_scale = _root(lambda s, b: means(b, s)[1], log_scale, shift, 0.5, 1.0)
    return np.array([shift, log_scale])


def _shifted(means: Callable[[float, float], FloatArray], start: float) -> float:
    """The shift alone, where no scale can be told; the start if y is beyond all."""
    try:
        return _root(lambda b, s: means(b, s)[0], start, 0.0, 1.0, 2.0)
    except UnanswerableError:
        return start


def _root(
    means: Callable[[float, float], float], start: float, other: float, step: float, growth: float
) -> float:
    """Where a mean that falls with its first argument changes its sign, roughly."""
    sign = float(np.sign(means(start, other)))
    edge = float(start)
    # A reach that doubles 60 times is 10¹⁸ spreads: no sign changes, then.
    for _ in range(60):
        beyond = edge + sign * step
        if means(beyond, other) * sign <= 0.0:
            # Newton goes on from here: 1/4,096 of the reach is near enough.
            for _ in range(12):
                middle = (edge + beyond) / 2.0
                if means(middle, other) * sign > 0.0:
                    edge = middle
                else:
                    beyond = middle
            return (edge + beyond) / 2.0
        edge, step = beyond, step * growth
    raise UnanswerableError("rows are too few or too similar to separate shift from spread")


# Shares of the outermost parts in which a tail is told: the first in which it shows clearly. A
# tenth is what a 80 % interval leaves at a side; the quarter comes last, as it is hardly a tail.
_TAIL_LEVELS = (0.1, 0.05, 0.025, 0.01, 0.25)
# Standard errors: five shares are tried, and words alone depend on it.
_MIN_Z = 3.0


def _beyond(
    at: AnyArray,
    cells: FloatArray | None,
    weights: FloatArray | None,
    value: float,
    *,
    rows: float,
    paired: bool,
) -> dict[str, str | float]:
    """What shares of y were to lie in outermost parts, below and above, and do.

    Skew and tails are what is left once shift and scale are taken out, which move these shares
    too. So they are told where they go the way of the `value`: both together if `paired`, else
    the upper less the lower, by more than so many independent `rows` stray by chance. Where they
    do so nowhere, nothing is told.
    """
    sides = [(level, level) for level in _TAIL_LEVELS]
    if cells is not None and at.ndim == 1:
        half = range(1, (len(cells) + 1) // 2)
        sides = [(float(cells[:k].sum()), float(cells[-k:].sum())) for k in half]
    for cells_deep, (low, high) in enumerate(sides, 1):
        if at.ndim > 1:  # the part of each jump that lies there
            gap = np.maximum(at[1] - at[0], 1e-12)
            below = np.clip((low - at[0]) / gap, 0.0, 1.0)
            above = np.clip((at[1] - 1.0 + high) / gap, 0.0, 1.0)
        elif cells is None:
            below, above = at < low, at > 1.0 - high
        else:
            below, above = at < cells_deep, at >= len(cells) - cells_deep
        seen = [weighted_mean(each.astype(np.float64), weights) for each in (below, above)]
        off = (seen[0] - low, seen[1] - high)
        way = off[0] + off[1] if paired else off[1] - off[0]
        if way * math.copysign(1.0, value) > _MIN_Z * math.sqrt((low + high) / rows):
            names = ("stated_below", "stated_above", "seen_below", "seen_above")
            return dict(zip(names, (low, high, *seen), strict=True))
    return {}


def mean_test(
    rows: FloatArray,
    size: float,
    *,
    weights: Weights | None,
    cluster: Units,
    right: Right | None = None,
    factors: FloatArray | None = None,
    exact: bool = False,
) -> float:
    """Two-sided p-value that the mean of rows with variance size² (if all is right) is 0."""
    share = None if weights is None else weights.values
    mean = weighted_mean(rows, share)
    if cluster is not None:
        sd = math.sqrt(weighted_mean(np.square(rows - mean), share))
        return p_of_units(mean, sd, size, spread_of(rows - mean, weights, cluster), cluster)
    n = count_rows(len(rows), weights)
    seen_error = standard_error(rows - mean, weights)
    floor = size / math.sqrt(n)
    error = floor if math.isnan(seen_error) or exact else max(floor, seen_error)
    if abs(mean) < 1e-12:  # rounding alone, and perhaps no variance to divide by
        return 1.0
    p = float(2.0 * special.ndtr(-abs(mean) / error))
    if right is None or factors is None:
        return p
    return max(p, right.p(mean, factors, n, "" if weights is None else weights.kind))


def count_rows(n: int, weights: Weights | None) -> float:
    """How many rows there are, or as many as their weights count for."""
    return float(n) if weights is None else weights.effective_n


def p_of_units(
    mean: float, sd: float, size: float, spread: Spread, units: IntArray | Chronology
) -> float:
    """P-value that a mean of rows is 0, where their sd is a size if all is right, by units."""
    if 0 < sd < size:  # rows that agree by luck show too little of what a right model does
        mean *= sd / size
    if not isinstance(units, Chronology):
        spread = replace(spread, degrees=np.array([float(units.max())]))
    return spread.p(mean)


def wider_by(influence: FloatArray, weights: Weights | None, cluster: Units) -> float:
    """How many times the reach of a mean is that of independent rows, where these have units."""
    if cluster is None:
        return 1.0
    plain = standard_error(influence, weights)
    return wider_than(plain, spread_of(influence, weights, cluster), cluster)


def wider_than(plain: float, spread: Spread, units: IntArray | Chronology) -> float:
    """How many times the reach of an error of independent rows is that which units tell."""
    ratio = float(spread.error[0]) / plain if plain > 0 else 1.0
    degrees = float(spread.degrees[0] if isinstance(units, Chronology) else units.max())
    degrees = 1.0 if math.isnan(degrees) else max(degrees, 1.0)  # as of one unit
    student = float(special.stdtrit(degrees, 0.975)) / Z_95
    return student * (1.0 if math.isnan(ratio) else max(ratio, 1.0))


def pooled_blocks(ordered: FloatArray) -> FloatArray:
    """Where each of the values of a row begins and ends, equal ones as one block; (2, n, k)."""
    n, k = ordered.shape
    fresh = np.c_[np.ones(n, dtype=bool), ordered[:, 1:] != ordered[:, :-1]]
    first = np.maximum.accumulate(np.where(fresh, np.arange(k), 0), axis=1)
    last = np.c_[fresh[:, 1:], np.ones(n, dtype=bool)]
    backwards = np.where(last, np.arange(1, k + 1), k)[:, ::-1]
    return np.stack([first, np.minimum.accumulate(backwards, axis=1)[:, ::-1]]) / float(k)


def cell_of(
    edges: FloatArray, y: FloatArray, centre: FloatArray, unit: FloatArray, b: Move, k: Move
) -> IntArray:
    """How many members or quantiles lie below y, once it is shifted and scaled."""
    still = np.equal(b, 0.0) & np.equal(k, 1.0)  # where ties must stay
    moved = np.where(still, y, centre + (y - centre - b * unit) / k)
    return np.asarray((edges < moved[:, None]).sum(axis=1))


def over_cells(table: FloatArray, cells: FloatArray, ends: FloatArray) -> FloatArray:
    """Mean of polynomials on cells between two PIT values; that of the cell if they are one."""
    edges = np.r_[0.0, np.cumsum(cells)]
    edges[-1] = 1.0
    low, high = ends
    wide = high - low > 1e-9
    gap = np.where(wide, high - low, 1.0)
    sums = np.c_[np.zeros(len(table)), np.cumsum(table * cells, axis=1)]
    means = np.stack([(np.interp(high, edges, s) - np.interp(low, edges, s)) / gap for s in sums])
    cell = np.searchsorted(edges[1:-1], low, side="right")
    return np.where(wide, means, table[:, cell])


def by_normal_scores(pit: FloatArray) -> Place:
    """Shift and scale on the normal scores of the PIT, where y itself cannot be moved."""
    scores = special.ndtri(pit)
    return lambda b, k: np.asarray(special.ndtr((scores - b) / k))


# ---- do widths follow the size of the errors, and do misses lie on both sides? -------------------

ONE_WIDTH = "one_width"
"""The option of a record that has no value as every row has the same width."""
# Widths that differ by less are one: a width made in another way must find its own rank.
_WIDTH_ROUNDING = 1e-9


def width_rank(
    uncertainty: FloatArray, weights: FloatArray | None = None
) -> Callable[[FloatArray], FloatArray]:
    """What turns a width into its standardised mid-rank among these, of mean 0 and variance 1."""
    ranked = rank_values(uncertainty, weights)
    if len(ranked.tied) < 2:
        raise UnanswerableError("every row has the same width")
    edges = np.r_[0.0, np.cumsum(ranked.tied)] / ranked.total
    middle = (edges[1:] + edges[:-1]) / 2.0
    spread = math.sqrt(float(np.average(np.square(middle - 0.5), weights=ranked.tied)))

    def rank(width: FloatArray) -> FloatArray:
        if width is uncertainty:  # a million rows are not looked up again
            return np.asarray((middle[ranked.codes] - 0.5) / spread)
        values = np.unique(uncertainty)
        low = edges[np.searchsorted(values, width * (1.0 - _WIDTH_ROUNDING), "left")]
        high = edges[np.searchsorted(values, width * (1.0 + _WIDTH_ROUNDING), "right")]
        return np.asarray(((low + high) / 2.0 - 0.5) / spread)

    return rank


def width_response(
    signal: FloatArray,
    rank: FloatArray,
    size: Callable[[float], float],
    *,
    expected: FloatArray | float = 0.0,
    weights: Weights | None = None,
    cluster: Units = None,
) -> Estimate:
    """Ratio of errors to the predicted spread: where widths are large against where small."""
    share = None if weights is None else weights.values
    mean = weighted_mean(signal, share)
    rows = rank * (signal - mean) - expected
    slope = weighted_mean(rows, share)
    spread = math.sqrt(weighted_mean(np.square(signal - mean), share))
    if spread == 0.0:
        raise UnanswerableError("all rows have the same predictors of errors")
    p = mean_test(rows, spread, weights=weights, cluster=cluster, exact=True)  # rows permuted
    error = standard_error(rows - slope, weights, cluster)

    def ratio(at: float) -> float:
        return math.exp(size(mean + at) - size(mean - at))

    n = count_rows(len(rows), weights)
    chance = Z_95 * spread / math.sqrt(n) * wider_by(rows - slope, weights, cluster)
    ends = sorted(ratio(slope + side * Z_95 * error) for side in (-1.0, 1.0))
    null = sorted(ratio(side * chance) for side in (-1.0, 1.0))
    return Estimate(
        ratio(slope),
        error=abs(ratio(slope + error) - ratio(slope - error)) / 2.0,
        lower=ends[0],
        upper=ends[1],
        null_lower=null[0],
        null_upper=null[1],
        p=p,
        details={"widest": math.exp(size(mean + slope)), "narrowest": math.exp(size(mean - slope))},
    )


def exchanged_response(
    values: FloatArray, second: FloatArray, rank: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Mean of rank × φ_2 of a row, over which of its m + 1 values is y; shape (n,).

    Few members that lie close together by chance state a small sd and are missed: their width
    tells of their own luck. Exchangeable values say by how much.
    """
    ordered = np.sort(values, axis=1)
    ordered -= ordered.mean(axis=1, keepdims=True)
    m = ordered.shape[1] - 1
    total = np.square(ordered).sum(axis=1, keepdims=True)
    variance = (total - np.square(ordered) * (1.0 + 1.0 / m)) / (m - 1)
    return np.asarray((rank(np.sqrt(np.maximum(variance, 0.0))) * second).mean(axis=1))


def miss_imbalance(
    below: BoolArray,
    above: BoolArray,
    *,
    weights: Weights | None = None,
    cluster: Units = None,
) -> Estimate:
    """How many more rows are missed above than below, as a share of all rows.

    Of the misses of a central interval as many lie below as above; the p-value is the exact
    binomial one given their number, or Student's for weights of importance and clusters.

    Examples
    --------
    >>> miss_imbalance(np.zeros(100, bool), np.arange(100) < 10).p
    0.002
    """
    rows = above.astype(np.float64) - below
    share = None if weights is None else weights.values
    value = weighted_mean(rows, share)
    count = [
        float(np.sum(missed if share is None else missed * share)) for missed in (below, above)
    ]
    details = {"below": count[0], "above": count[1]}
    total = sum(count)
    size = math.sqrt(weighted_mean(np.square(rows), share))
    if not total:
        p = math.nan
    elif cluster is None and (weights is None or weights.kind == "frequency"):
        p = float(binomial_test(count[0], total, 0.5))
    else:
        p = mean_test(rows, size, weights=weights, cluster=cluster)
    n = count_rows(len(rows), weights)
    chance = Z_95 * size / math.sqrt(n) * wider_by(rows - value, weights, cluster)
    estimate = Estimate(value, rows - value, p=p, null_lower=-chance, null_upper=chance)
    return replace(estimate, details=details)
