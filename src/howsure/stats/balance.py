"""Means of values that a reference knows, as they are expected where new inputs lie.

New rows have inputs and no values. With z the columns of an additive model of the inputs, and z̄
their mean over the new rows, the expected mean is a weighted sum of the reference's values,

    Σ a_i v_i,    a_i = w_i + z_iᵀ (ZᵀZ + λI)⁻¹ (z̄ − Σ w_k z_k),

where w ∝ exp(z θ) is the density of new inputs over that of the reference's, fitted to z̄, and the
rest is a ridge regression of the values on what the weights leave unbalanced. It is right where
either the regression or the density is (doubly robust), and as a depends on inputs alone, no value
is used twice. Source: J. Hainmueller, Political Analysis 20 (2012), entropy balancing; O. Hirshberg
and S. Wager, Annals of Statistics 49 (2021), augmented balancing weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Self, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.classes import frozen
from howsure.stats.estimate import Spread, quantile_statistic
from howsure.stats.neighbours import Neighbours, fit_neighbours, share_outside

# Chosen by hand; not tuned. Higher, few rows of the reference would carry all the weight and
# intervals would widen; lower, more new rows would go without an estimate.
DENSEST = 10.0
"""How many times denser new rows may lie than the reference does for these to tell of them."""
# Levels of the quantiles at which the curves of the model bend. Five knots give a column 4 degrees
# of freedom, the most that is usual for restricted cubic splines; not tuned. With more, curves
# would follow the noise of a small reference.
_KNOT_LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
# Effects on the log density, of columns of variance 1, have the prior variance of one over this.
# Chosen by hand; not tuned. Larger, weights stay nearer to equal and leave more to the regression.
_PRECISION_OF_EFFECTS = 10.0
# Ridges λ to choose from, for columns of variance 1: as rows of no effect. 1 hardly shrinks; 10⁵
# leaves 5 % of an effect among the 5,000 rows that a reference keeps.
_RIDGES = 10.0 ** np.arange(0.0, 5.25, 0.5)
# Inputs up to which two act together (10 make 45 products, and time grows with the square of all
# columns), and the size of that beside what one does alone. .3 was chosen by hand; not tuned.
# Larger, the ridge shrinks products less.
_MAX_PAIRED_INPUTS, _SCALE_OF_PRODUCTS = 10, 0.3
# Variance between rows that the model is taken to miss, beside what it explains. Chosen by hand;
# not tuned. Larger, the intervals of few new rows are wider.
_VARIANCE_MISSED = 0.15
_MIN_DEGREES = 5.0  # fewer, as of one large term, would leave no interval to speak of
# Share of the reference's own rows that lie as far out as a row where it knows nothing: so one in
# 1,000 rows from where the reference lies is refused by mistake.
_SHARE_OUTSIDE = 0.001
# Whitening divides by the root of an eigenvalue (their mean is 1), so a smaller one would make
# rounding more than 1,000 times larger.
_EIGENVALUE_TOLERANCE = 1e-6
# Limits of Newton's method. The loss is convex, so they end it only where rounding stops all
# progress; 10⁻⁴ is the usual share of the promised decrease (Armijo).
_MAX_NEWTON_STEPS, _SLOPE_TOLERANCE, _ARMIJO_SHARE, _MIN_SHARE, _LOSS_ROUNDING = (
    60,
    1e-10,
    1e-4,
    1e-6,
    1e-13,
)


@final
@frozen(eq=False)
class Curves:
    """What a block of inputs adds to an additive model: columns of mean 0 and variance 1.

    One column of numbers bends at its quantiles (a restricted cubic spline, straight at its ends);
    a block of 0 and 1 stays as it is.
    """

    knots: FloatArray  # shape (k,): rising; fewer than 3 where nothing bends
    mean: FloatArray
    size: FloatArray  # standard deviations before whitening
    whitening: FloatArray  # shape (columns, rank)

    @classmethod
    def of(cls, block: FloatArray, copies: FloatArray) -> Self:
        """Of the reference's rows, shape (n, c)."""
        knots = np.empty(0)
        if block.shape[1] == 1:
            ends = (quantile_statistic(block[:, 0], q, weights=copies).value for q in _KNOT_LEVELS)
            knots = np.unique([*ends])
        raw = _raw(block, knots)
        mean = np.average(raw, axis=0, weights=copies)
        centred = (raw - mean) * np.sqrt(copies / copies.sum())[:, None]
        size = np.sqrt(np.square(centred).sum(axis=0))
        varies = size > 0.0
        _, values, directions = np.linalg.svd(
            centred[:, varies] / size[varies], full_matrices=False
        )
        retained = values > _EIGENVALUE_TOLERANCE
        whitening = np.zeros((raw.shape[1], int(retained.sum())))
        whitening[varies] = directions[retained].T / values[retained] / size[varies, None]
        return cls(knots, mean, size, whitening)

    def __call__(self, block: FloatArray) -> FloatArray:
        """The columns of some rows, shape (m, rank)."""
        return np.asarray((_raw(block, self.knots) - self.mean) @ self.whitening)

    @property
    def is_number(self) -> bool:
        """Whether it is one column that varies."""
        return self.whitening.shape[1] > 0 and bool(self.size[0] > 0.0)

    def straight(self, block: FloatArray) -> FloatArray:
        """The first column, of mean 0 and variance 1."""
        return np.asarray((_raw(block, self.knots)[:, 0] - self.mean[0]) / self.size[0])


def _raw(block: FloatArray, knots: FloatArray) -> FloatArray:
    """Columns before they are centred; far from the outer knots inputs count by their logarithm."""
    if len(knots) < 3:
        return block
    t = (knots - knots[0]) / (knots[-1] - knots[0])
    x = _tamed((block[:, 0] - knots[0]) / (knots[-1] - knots[0]))
    cubes = np.maximum(x[:, None] - t, 0.0) ** 3
    last = t[-1] - t[-2]
    bends = (
        cubes[:, :-2]
        - cubes[:, -2:-1] * (t[-1] - t[:-2]) / last
        + cubes[:, -1:] * (t[-2] - t[:-2]) / last
    )
    return np.column_stack([x, bends])


def _tamed(x: FloatArray) -> FloatArray:
    """Numbers whose range is [0, 1], beyond it by a logarithm that goes on smoothly."""
    beyond = np.maximum(np.maximum(-x, x - 1.0), 0.0)
    return np.asarray(np.clip(x, 0.0, 1.0) + np.sign(x) * np.log1p(beyond))


@final
@frozen(eq=False)
class Balanced:
    """Weights of the reference's rows that make them alike to new ones."""

    inside: BoolArray  # shape (m,): new rows of which the reference tells
    weights: FloatArray  # shape (n,): of each copy of a reference row; with copies they sum to 1
    left: FloatArray  # shape (p,): what they leave unbalanced
    covariance: FloatArray  # shape (p, p): of the columns over the new rows inside
    rows: float  # of these, with copies


@final
@frozen(eq=False)
class RidgeFit:
    """A ridge regression of values on the reference's inputs."""

    values: FloatArray  # shape (n,)
    ridge: float
    slope: FloatArray  # shape (p,)
    residuals: FloatArray  # shape (n,): each by the regression on all others


@final
@frozen
class BalancedMean:
    """An expected mean, and how far it may be off."""

    value: float
    spread: Spread
    third: float  # third moment of its error
    noise: FloatArray  # second and third moment of one new row about what is expected of it


@final
class KnownRows:
    """Rows whose values are known, by blocks of their inputs.

    Parameters
    ----------
    blocks : sequence of ndarray of float, shape (n, c)
        A column of numbers, or several of 0 and 1 that stand for labels.
    copies : ndarray of float, shape (n,)
        How many rows each stands for.
    """

    def __init__(self, blocks: Sequence[FloatArray], copies: FloatArray) -> None:
        self.copies = copies
        self.total = float(copies.sum())
        self._curves = tuple(Curves.of(block, copies) for block in blocks)
        self._blocks = tuple(blocks)
        self._middle = np.zeros(1)
        self._middle = np.average(self._of(blocks), axis=0, weights=copies)
        self._columns = self._of(blocks)
        weighted = self._columns * copies[:, None]
        self._gram, self._directions = np.linalg.eigh(weighted.T @ self._columns)
        self._turned = self._columns @ self._directions
        self._squares = np.square(self._turned)

    def _of(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """The columns of the model: curves, and products of two inputs where these are few."""
        pairs = list(zip(self._curves, blocks, strict=True))
        columns = [np.empty((len(blocks[0]), 0)), *(curves(block) for curves, block in pairs)]
        lines = [c.straight(block) for c, block in pairs if block.shape[1] == 1 and c.is_number]
        if len(lines) <= _MAX_PAIRED_INPUTS:
            pairs_of = itertools.combinations(lines, 2)
            columns += [
                _SCALE_OF_PRODUCTS * (factor * other)[:, None] for factor, other in pairs_of
            ]
        return np.asarray(np.hstack(columns) - self._middle)

    @cached_property
    def _near(self) -> Neighbours:
        return fit_neighbours(self._places(self._blocks))

    def _places(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """Where rows lie: numbers by their spread, labels as they are."""
        coordinates = []
        for curves, block in zip(self._curves, blocks, strict=True):
            if len(curves.knots) >= 3:
                # 4 sd between the outer knots
                coordinates.append(4.0 * _raw(block, curves.knots)[:, :1])
            elif curves.whitening.shape[1]:
                coordinates.append(curves(block) if block.shape[1] == 1 else block)
        return np.hstack(coordinates) if coordinates else np.zeros((len(blocks[0]), 0))

    def balance(self, blocks: Sequence[FloatArray], copies: FloatArray) -> Balanced:
        """Weights for new rows, of which only those are judged that lie where the reference does.

        These are no farther from their nearest reference rows than all but one in a thousand of
        these rows are, and at most ten times denser than the reference: each by the other rows.
        """
        columns = self._of(blocks)
        inside = np.ones(len(columns), dtype=np.bool_)
        places = self._places(blocks)
        if places.size and len(self.copies) > 2:
            p, _ = self._near.outside(places)
            inside = p > share_outside(len(self.copies), _SHARE_OUTSIDE)
        if inside.any():
            inside[inside] = self._dense_enough(columns[inside], copies[inside])
        mass = copies[inside]
        if not len(mass):
            nothing = np.zeros((1, columns.shape[1]))
            equal = np.full(len(self.copies), 1.0 / self.total)
            return Balanced(inside, equal, nothing[0], nothing.T @ nothing, 0.0)
        target = np.average(columns[inside], axis=0, weights=mass)
        _, weights, _, _ = self._tilted(target, float(mass.sum()))
        imbalance = target - (weights * self.copies) @ self._columns
        deviations = columns[inside] - target
        covariance = (deviations * (mass / mass.sum())[:, None]).T @ deviations
        return Balanced(inside, weights, imbalance, covariance, float(mass.sum()))

    def _dense_enough(self, columns: FloatArray, copies: FloatArray) -> BoolArray:
        """New rows at most ten times denser than the reference, by the density of the others."""
        total = float(copies.sum())
        target = np.average(columns, axis=0, weights=copies)
        theta, _, curvature, level = self._tilted(target, total)
        deviations = columns - target
        leverage = np.einsum("ij,ij->i", columns, np.linalg.solve(curvature, deviations.T).T)
        logs = columns @ theta - level - leverage / max(total - 1.0, 1.0)
        return np.asarray(logs <= math.log(DENSEST))

    def _tilted(
        self, target: FloatArray, rows: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """By Newton's method θ, weights exp(zθ), their curvature, and the log of their mean.

        θ minimises log mean exp(zθ) − θᵀz̄ + ρ|θ|²/2, whose gradient is what is left unbalanced.
        """
        z, ridge = self._columns, _PRECISION_OF_EFFECTS * (1.0 / rows + 1.0 / self.total)

        def at(theta: FloatArray) -> tuple[float, FloatArray, float]:
            logs = z @ theta
            top = float(logs.max(initial=0.0))
            mass = np.exp(logs - top)
            total = float(mass @ self.copies)
            level = top + math.log(total / self.total)
            loss = level - float(target @ theta) + ridge * float(theta @ theta) / 2.0
            return loss, mass / total, level

        theta = np.zeros(z.shape[1])
        loss, weights, level = at(theta)
        for _ in range(_MAX_NEWTON_STEPS):
            mean, curvature = self._moments(weights, ridge)
            slope = mean - target + ridge * theta
            if np.abs(slope).max(initial=0.0) < _SLOPE_TOLERANCE:
                break
            step, damping = np.linalg.solve(curvature, slope), 1.0
            trial = at(theta - step)
            while (
                trial[0] > loss + _LOSS_ROUNDING - _ARMIJO_SHARE * damping * (slope @ step)
                and damping > _MIN_SHARE
            ):
                damping /= 2.0
                trial = at(theta - damping * step)
            theta, (loss, weights, level) = theta - damping * step, trial
        return theta, weights, self._moments(weights, ridge)[1], level

    def _moments(self, weights: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the columns under weights; to the latter a ridge is added."""
        mass = weights * self.copies
        mean = mass @ self._columns
        square = (self._columns * mass[:, None]).T @ self._columns
        return mean, square - np.outer(mean, mean) + ridge * np.eye(len(mean))

    def fit(self, values: FloatArray) -> RidgeFit:
        """The ridge under which each value is best foretold by all others."""
        away = values - np.average(values, weights=self.copies)
        products = self._turned.T @ (self.copies * away)
        best = RidgeFit(values, math.nan, np.zeros(len(products)), away)
        least = math.inf
        for ridge in _RIDGES.tolist():
            leverage = 1.0 / self.total + self._squares @ (1.0 / (self._gram + ridge))
            slope = products / (self._gram + ridge)
            residuals = (away - self._turned @ slope) / np.maximum(
                1.0 - leverage, _MIN_SHARE
            )  # of one row: 0
            loss = float(self.copies @ np.square(residuals))
            if loss < least:
                least, best = loss, RidgeFit(values, ridge, self._directions @ slope, residuals)
        return best

    def shares(self, balanced: Balanced, ridge: float) -> FloatArray:
        """a of each copy of a row: they sum to 1 with copies, and some may be negative."""
        return np.asarray(balanced.weights + self._columns @ self._slope(balanced, ridge))

    def _slope(self, balanced: Balanced, ridge: float) -> FloatArray:
        turned = self._directions.T @ balanced.left
        return np.asarray(self._directions @ (turned / (self._gram + ridge)))

    def mean(
        self,
        balanced: Balanced,
        fitted: RidgeFit,
        *,
        worth: float = 1.0,
        ridge: float | None = None,
    ) -> BalancedMean:
        """The expected mean of values over the new rows inside.

        Its error is that of the values about the regression on all others, what the ridge is
        expected to hold back, and what the model misses of these very rows. `worth` rows count as
        one; the ridge of another fit may be given.
        """
        used = fitted.ridge if ridge is None else ridge
        shares = self.shares(balanced, used)
        terms, mass = shares * fitted.residuals, self.copies
        variance = float(mass @ np.square(fitted.residuals)) / self.total
        slope = self._slope(balanced, used)
        held_back = used * variance * float(slope @ slope)
        explained = float(fitted.slope @ balanced.covariance @ fitted.slope)
        squares = (
            float(mass @ np.square(terms))
            + held_back
            + _VARIANCE_MISSED * explained / balanced.rows
        )
        third = float(mass @ terms**3) * worth**2
        error = math.sqrt(worth * squares)
        there = mass * balanced.weights
        return BalancedMean(
            value=float((mass * shares) @ fitted.values),
            spread=Spread(
                error=np.array([error]),
                skew=np.array([third / error**3 if error > 0.0 else 0.0]),
                units=np.array([self.effective(shares) / worth]),
                degrees=np.array([max(self._degrees(terms) / worth - 1.0, _MIN_DEGREES)]),
            ),
            third=third,
            noise=np.array([there @ fitted.residuals**k for k in (2, 3)]),
        )

    def effective(self, shares: FloatArray) -> float:
        """How many reference rows of equal weight tell as much."""
        return 1.0 / float(self.copies @ np.square(shares))

    def _degrees(self, terms: FloatArray) -> float:
        """How many terms of equal size make up a variance."""
        squares = np.square(terms)
        fourth = float(self.copies @ np.square(squares))
        return float(self.copies @ squares) ** 2 / fourth if fourth > 0.0 else self.total
