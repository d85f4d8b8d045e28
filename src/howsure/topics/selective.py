"""Selective prediction: what is gained by answering only where the model is most certain.

Rows are accepted in rising order of uncertainty. The share accepted is the *prediction rate*
(never "coverage"), and the mean loss of the accepted rows is the *risk*. Rows of equal
uncertainty have no order: every number here is the average over all orders of the tied rows,
in closed form, so the order of a file cannot matter.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import UNIT, Axis, Companion, Curve, Direction, Layout, Notion
from howsure.core.weights import MAX_COPIES, check_multiplicities
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    BY_UNIT,
    POSITIVE,
    Array,
    Metric,
    Question,
    Topic,
    statistic,
)
from howsure.engine.view import View
from howsure.stats.dominance import Ranked, rank_values
from howsure.stats.estimate import Estimate
from howsure.topics.association import ORDER_ALONE

# Shares that are usually asked for; any others may be.
CERTAIN_SHARES = (0.5, 0.8, 0.9, 0.95)
# The expansion is off by 2 · 10⁻⁹ at 8 and by 2 · 10⁻¹⁶ at 64.
_MIN_ARGUMENT_OF_SERIES = 64.0
# Points of a drawn curve, and those on a scale of ratios from one row: more than the 120 that a
# figure draws.
_MAX_POINTS, _POINTS_NEAR_0 = 300, 60
# Squares are 10²⁸⁰, and 10²⁸ of them add up to a finite number.
_MAX_LOSS = 1e140


@frozen(eq=False)
class RiskCurve:
    """Points of a risk–coverage curve, each exact."""

    prediction_rate: FloatArray  # shape (k,): share of the rows accepted, rising to 1
    # shape (k,): mean loss of the rows accepted, in the units of the loss; lower is better
    risk: FloatArray
    standard_error: FloatArray  # shape (k,): standard error of each risk, for independent rows
    # shape (k,): the risk if rows were accepted in rising order of their loss: no order does better
    oracle: FloatArray
    random: float  # the mean loss: the expected risk, at every rate, of a random order


@frozen(eq=False)
class Acceptance:
    """Rows in their order of acceptance, as blocks of equal uncertainty.

    Made by `acceptance`: one sort answers every question about one loss.
    """

    loss: FloatArray  # shape (n,): loss of each row
    weights: FloatArray  # shape (n,): multiplicity of each row
    codes: IntArray  # shape (n,): block of each row, 0 … b−1 in rising order of uncertainty
    # shape (b + 1,): sums over the first 0, 1, …, b blocks of the weights, of weight × loss, and of
    # weight × (loss − mean loss)²
    mass: FloatArray
    total_loss: FloatArray
    total_square: FloatArray

    @property
    def n(self) -> float:
        """Sum of the multiplicities."""
        return float(self.mass[-1])

    @property
    def mean_loss(self) -> float:
        """Mean loss of all rows: the risk at a prediction rate of 1."""
        return float(self.total_loss[-1]) / self.n

    def risk(self, prediction_rate: npt.ArrayLike) -> FloatArray:
        """Expected mean loss of the accepted rows, at any rates in (0, 1].

        A rate that asks for a fraction of a row takes that fraction of its loss.

        Examples
        --------
        >>> acceptance([1.0, 3.0], [0.1, 0.2]).risk([0.5, 0.75, 1.0])
        array([1.   , 1.667, 2.   ])
        """
        accepted = _checked_rates(prediction_rate) * self.n
        result: FloatArray = np.interp(accepted, self.mass, self.total_loss) / accepted
        return result

    def risk_at(self, prediction_rate: float) -> Estimate:
        """Risk at one rate, with influence values; the function `risk_at` explains it."""
        rate = float(_checked_rates(prediction_rate))
        value = float(self.risk(rate))
        edge = float(self._edge_loss(np.array(rate)))
        share = (rate * self.n - self.mass[:-1]) / np.diff(self.mass)
        accepted = np.clip(share, 0.0, 1.0)[self.codes]
        return Estimate(value, accepted * (self.loss - edge) / rate + edge - value)

    def aurc(self) -> Estimate:
        """Area under the curve, with influence values; the function `aurc` explains it."""
        before, size = self.mass[:-1], np.diff(self.mass)
        block_loss = np.diff(self.total_loss)
        gap = _harmonic_gap(before, size)
        credit = _after(gap) + 1 - before / size * gap
        value = float(block_loss @ credit) / self.n
        tri = _trigamma(self.mass + 1)
        by_start = -tri[1:] - gap / size - before / size * np.diff(tri)
        by_size = -tri[1:] + before / size * (gap / size - tri[1:])
        shift = block_loss * by_size + _after(block_loss * by_start)
        own = self.loss * credit[self.codes] + shift[self.codes]
        return Estimate(value, own - float(self.weights @ own) / self.n)

    def oracle(self, ranked: Ranked | None = None) -> Acceptance:
        """The same rows in rising order of their loss: no order of acceptance does better."""
        return acceptance(self.loss, self.loss, self.weights, ranked=ranked)

    def excess_aurc(self, oracle: Acceptance | None = None) -> Estimate:
        """Area beyond the oracle's, with influence values; see the function `excess_aurc`."""
        own = self.aurc()
        best = (self.oracle() if oracle is None else oracle).aurc()
        influence = None
        if own.influence is not None and best.influence is not None:
            influence = own.influence - best.influence
        return Estimate(own.value - best.value, influence)

    def curve(
        self, *, at: tuple[float, ...] = CERTAIN_SHARES, oracle: Acceptance | None = None
    ) -> RiskCurve:
        """About 300 points of the risk–coverage curve for drawing, each exact; of fewer rows, all.

        Parameters
        ----------
        at : tuple of float
            Prediction rates that must be among the points.
        oracle : Acceptance, optional
            From `oracle`, where it is at hand.

        Returns
        -------
        RiskCurve

        Examples
        --------
        >>> acceptance([1.0, 3.0], [0.1, 0.2]).curve(at=()).risk
        array([1., 2.])
        """
        if self.n <= _MAX_POINTS:
            rates = np.arange(1, math.floor(self.n) + 1) / self.n
        else:
            even = _MAX_POINTS - _POINTS_NEAR_0
            rates = np.r_[np.geomspace(1 / self.n, 1, _POINTS_NEAR_0), np.arange(1, even) / even]
        rates = np.unique(np.clip(np.r_[rates, _checked_rates(at), 1.0], 0.0, 1.0))
        best = (self.oracle() if oracle is None else oracle).risk(rates)
        risk, error = self.risk(rates), self._standard_error(rates)
        return RiskCurve(rates, risk, error, best, self.mean_loss)

    def _edge_loss(self, rates: FloatArray) -> FloatArray:
        """Mean loss of the rows next in line at a rate: over a window of √n rows about it.

        The standard error needs E[loss | uncertainty at the edge]. A single row is no estimate
        of it, and in other samples of n rows the edge lies up to about √n/2 rows away.
        """
        half = 0.5 * math.sqrt(self.n)
        accepted = rates * self.n
        low, high = np.maximum(accepted - half, 0), np.minimum(accepted + half, self.n)
        rise = np.interp(high, self.mass, self.total_loss) - np.interp(
            low, self.mass, self.total_loss
        )
        result: FloatArray = rise / (high - low)
        return result

    def _standard_error(self, rates: FloatArray) -> FloatArray:
        """√(Σwψ² / (n(n − 1))) of `risk_at`'s influence, from running sums, at many rates."""
        if self.n <= 1:
            return np.full(len(rates), np.nan)
        mean = self.mean_loss
        edge = self._edge_loss(rates) - mean
        accepted = rates * self.n
        block = np.clip(np.searchsorted(self.mass, accepted) - 1, 0, len(self.mass) - 2)
        share = (accepted - self.mass[block]) / (self.mass[block + 1] - self.mass[block])
        linear = self.total_loss - mean * self.mass

        def square_about_edge(knot: IntArray) -> FloatArray:
            moments: FloatArray = (
                self.total_square[knot] - 2 * edge * linear[knot] + edge**2 * self.mass[knot]
            )
            return moments

        whole = square_about_edge(block)
        square = whole + share**2 * (square_about_edge(block + 1) - whole)
        first = np.interp(accepted, self.mass, linear) - edge * accepted
        variance = np.maximum(square / self.n - np.square(first / self.n), 0.0)
        result: FloatArray = np.sqrt(variance / (self.n - 1)) / rates
        return result


def acceptance(
    loss: npt.ArrayLike,
    uncertainty: npt.ArrayLike,
    weights: FloatArray | None = None,
    *,
    ranked: Ranked | None = None,
) -> Acceptance:
    """Put rows in their order of acceptance: the most certain first.

    Examples
    --------
    >>> acceptance([1.0, 3.0, 2.0], [0.1, 0.1, 0.5]).mass.tolist()
    [0.0, 2.0, 3.0]
    """
    losses = as_vector(loss, "loss")
    n = len(losses)
    order_by = as_vector(uncertainty, "uncertainty", length=n, finite=False)
    counts = check_multiplicities(weights, n)
    mass = np.ones(n) if counts is None else counts
    if (mass != np.floor(mass)).any() or mass.max() > MAX_COPIES:
        mass = mass / mass.max()
        mass = mass * (mass.sum() / np.square(mass).sum())
        ranked = None
    if np.abs(losses).max() > _MAX_LOSS:
        raise UnanswerableError(f"losses beyond {_MAX_LOSS:g} are too large to square and add up")
    levels = rank_values(order_by, mass) if ranked is None else ranked
    held = levels.tied > 0
    codes = np.maximum(np.cumsum(held) - 1, 0)[levels.codes]
    mean = float(mass @ losses) / float(mass.sum())
    blocks = [
        np.bincount(codes, weights=column)
        for column in (mass, mass * losses, mass * np.square(losses - mean))
    ]
    sums = [np.concatenate(([0.0], np.cumsum(block))) for block in blocks]
    return Acceptance(losses, mass, codes, *sums)


def aurc(
    loss: npt.ArrayLike, uncertainty: npt.ArrayLike, weights: FloatArray | None = None
) -> Estimate:
    """Area under the risk–coverage curve; lower is better, in the units of the loss.

    The mean over i = 1 … n of the mean loss of the i most certain rows, averaged over all
    orders of tied rows.

    Parameters
    ----------
    loss, uncertainty, weights
        As in `acceptance`.

    Returns
    -------
    Estimate
        With the influence of each row.

    Raises
    ------
    InputError, UnanswerableError
        As `acceptance`.

    Notes
    -----
    Source: Y. Geifman, G. Uziel and R. El-Yaniv, "Bias-reduced uncertainty estimation for deep
    neural classifiers" (2019), with the sum over i/n. With H the harmonic numbers, a row that
    is accepted as the j-th adds loss × (H_n − H_{j−1}) / n; a block of t tied rows after K
    others shares its mean, H_n − H_{K+t} + 1 − (K/t)(H_{K+t} − H_K). O(n log n).

    Examples
    --------
    >>> aurc([1.0, 3.0], [0.1, 0.2]).value, aurc([1.0, 3.0], [0.1, 0.1]).value
    (1.5, 2.0)
    """
    return acceptance(loss, uncertainty, weights).aurc()


def excess_aurc(
    loss: npt.ArrayLike, uncertainty: npt.ArrayLike, weights: FloatArray | None = None
) -> Estimate:
    """Area between the risk–coverage curve and the oracle's; lower is better, at least 0.

    The oracle accepts rows in rising order of their loss. No uncertainty can know the loss, so
    a perfect model's excess is above 0.

    Parameters
    ----------
    loss, uncertainty, weights
        As in `acceptance`.

    Returns
    -------
    Estimate
        In the units of the loss, with the influence of each row.

    Raises
    ------
    InputError, UnanswerableError
        As `acceptance`.

    Notes
    -----
    Source: E-AURC of Geifman, Uziel and El-Yaniv (2019), with the oracle's exact area in place
    of its approximation.

    Examples
    --------
    >>> excess_aurc([1.0, 3.0], [0.2, 0.1]).value
    1.0
    """
    return acceptance(loss, uncertainty, weights).excess_aurc()


def risk_at(
    loss: npt.ArrayLike,
    uncertainty: npt.ArrayLike,
    prediction_rate: float,
    weights: FloatArray | None = None,
) -> Estimate:
    """Mean loss of the most certain share of the rows; lower is better, units of the loss.

    Examples
    --------
    >>> risk_at([1.0, 2.0, 6.0], [0.1, 0.2, 0.2], 0.5).value
    2.0
    """
    return acceptance(loss, uncertainty, weights).risk_at(prediction_rate)


def _checked_rates(value: npt.ArrayLike) -> FloatArray:
    rates = np.asarray(value, dtype=np.float64)
    if not ((rates > 0) & (rates <= 1)).all():
        raise InputError(f"prediction_rate must be in (0, 1], got {value!r}")
    return rates


def _after(values: FloatArray) -> FloatArray:
    """Sum of all later values, for each value."""
    result: FloatArray = np.cumsum(values[::-1])[::-1] - values
    return result


def _harmonic_gap(start: FloatArray, length: FloatArray) -> FloatArray:
    """Sum of 1/(start + r) over r = 1 … length, continued to fractions by the digamma function.

    Far from zero the difference of two digammas would cancel; its expansion does not.
    """
    u, v = 1 / (start + 1), 1 / (start + 1 + length)
    step = length * u * v
    square = u * u + v * v
    series = (
        np.log1p(length * u)
        + step / 2
        + step * (u + v) * (1 / 12 - square / 120 + (square * square - (u * v) ** 2) / 252)
    )
    near = start < _MIN_ARGUMENT_OF_SERIES
    series[near] = special.digamma((start + 1 + length)[near]) - special.digamma(start[near] + 1)
    return series


def _trigamma(x: FloatArray) -> FloatArray:
    """Derivative of the digamma function at x ≥ 1, by its expansion where x is large."""
    u = 1 / x
    square = u * u
    series = u + square / 2 + u * square * (1 / 6 - square * (1 / 30 - square / 42))
    near = x < _MIN_ARGUMENT_OF_SERIES
    series[near] = special.polygamma(1, x[near])
    return series


def _acceptance(view: View, _: float) -> Acceptance:
    values, doubt = view.evalset.multiplicities, view.evalset.uncertainty
    if doubt is not None:
        view.note_source("acceptance", "score of doubt")
        return acceptance(view.get("absolute_error"), doubt, values)
    error, width = view.get("absolute_error"), view.get("uncertainty")
    return acceptance(error, width, values, ranked=view.get("ranks")[1])


def _oracle(view: View, _: float) -> Acceptance:
    accepted: Acceptance = view.get("acceptance")
    return accepted.oracle(None if view.evalset.uncertainty is not None else view.get("ranks")[0])


_entry = partial(
    Metric,
    question=Question.ASSOCIATION,
    direction=Direction.LOWER,
    units="y",
    laws=BY_UNIT,
    bounds=POSITIVE,
    merges="rows",
    notion=Notion.LOCAL,
    beware=ORDER_ALONE,
)


def _most_certain(share: int) -> Metric:
    return _entry(
        name=f"error_most_certain_{share}",
        title=f"MAE of the most certain {share} %",
        meaning=f"Mean absolute error of the {share} % of rows with the least uncertainty.",
        formula=f"mean |e| over the {share} % most certain",
        forms=(
            statistic(
                Acceptance.risk_at, "acceptance", weighted=False, prediction_rate=share / 100
            ),
        ),
        standard_normal=0.7979,
    )


def _risk_coverage(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Mean |error| of the most certain rows, against how many are accepted."""
    view: View = evaluation.view.get("with_point")
    evalset = view.evalset
    accepted = view.get("acceptance")
    curve = accepted.curve(oracle=view.get("oracle"))
    told = curve.prediction_rate * accepted.n > evalset.fewest - 0.5
    oracle = Curve(
        name="risk_coverage_oracle",
        x=curve.prediction_rate[told],
        y=curve.oracle[told],
        model=evalset.model,
        x_label="Prediction rate",
        y_label="Mean |error| of accepted rows",
    )
    risk = replace(
        oracle,
        name="risk_coverage",
        y=curve.risk[told],
        lower=(curve.risk - 1.96 * curve.standard_error)[told],
        upper=(curve.risk + 1.96 * curve.standard_error)[told],
        reference=np.full(int(told.sum()), curve.random),
        band="95 % interval at each rate",
    )
    return [risk, oracle]


_ENTRIES = (
    _entry(
        name="aurc",
        title="Area under the risk–coverage curve",
        synonyms=("risk coverage",),
        meaning="Mean error of the most certain rows, averaged over the prediction rate.",
        formula="mean over i of the mean |e| of the i most certain rows",
        source="Geifman, Uziel and El-Yaniv 2019",
        forms=(statistic(Acceptance.aurc, "acceptance", weighted=False),),
        standard_normal=0.7979,
        beware=f"{ORDER_ALONE} It falls with the error itself: a better forecast has a lower AURC.",
    ),
    _entry(
        name="excess_aurc",
        title="Excess AURC",
        synonyms=("E-AURC",),
        meaning="AURC above that of the best possible order.",
        formula="AURC − AURC of the oracle order",
        source="Geifman, Uziel and El-Yaniv 2019",
        forms=(statistic(Acceptance.excess_aurc, "acceptance", "oracle", weighted=False),),
        standard_normal=math.nan,
        beware=f"{ORDER_ALONE} A perfect model is above 0, because errors are random.",
    ),
    *(_most_certain(share) for share in (50, 80, 90, 95)),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("acceptance", _acceptance),
        Array("oracle", _oracle),
    ),
    curves=(_risk_coverage,),
    label="Widths",
    layouts={
        "risk_coverage": Layout(
            order=5,
            question="Does keeping only the most certain rows lower the error?",
            title="Risk–coverage curve",
            reading=(
                "The most certain rows are kept first. The further the curve is below random "
                "order, the better uncertainty ranks errors."
            ),
            x=Axis(title="Prediction rate", kind="percent", domain=UNIT),
            y=Axis(title="Mean |error| of the rows kept", zero=True),
            data="most certain first",
            reference="random order",
            band="band",
            fits_curve=True,
            read_at=0.5,
            companions={"risk_coverage_oracle": Companion(words="oracle order")},
        ),
    },
)
