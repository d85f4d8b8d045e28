"""Scores of the tails: CRPS with weights on thresholds (twCRPS) or on levels (quantile-weighted).

Both are proper scores of all rows. Scoring only the rows whose y turned out extreme is not: a
forecast that always states extremes would win (the forecaster's dilemma, Lerch et al. 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    as_matrix,
    as_vector,
    check_quantiles,
    power_of_two,
    row_blocks,
)
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Direction
from howsure.engine.metric import Array, Laws, Metric, Question, Topic, estimated
from howsure.engine.view import View
from howsure.predictions import Distribution, Prediction, Quantiles, Samples
from howsure.stats.estimate import Estimate
from howsure.topics.crps import (
    check_scored,
    crps_between_ends,
    crps_by_cdf,
    crps_of_law,
    trapezoid,
)
from howsure.topics.scores import weighted_pinball
from howsure.topics.skill import crps_skill, skill_at_levels

Side = Literal["left", "right"]
SIDES: tuple[Side, ...] = get_args(Side)
# A tenth on each tail: of 1,000 rows, 100 tell of it. By hand; farther out is truer to a tail and
# tells less.
SHARE_INSIDE = 0.9
"""Share of the y that are no tail."""

# A ratio of ten rows has an error of 32 %: fewer tell nothing.
MIN_ROWS_BEYOND = 10
"""Rows beyond a threshold by which a tail is judged."""

LevelWeight = Literal["left", "right", "tails", "centre"]
# Coefficients of the weight of a level τ, in its powers: (1 − τ)², τ², (2τ − 1)² and τ (1 − τ), as
# Gneiting and Ranjan (2011) have them.
_POWERS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "left": (1.0, -2.0, 1.0),
        "right": (0.0, 0.0, 1.0),
        "tails": (1.0, -4.0, 4.0),
        "centre": (0.0, 1.0, -1.0),
    }
)


def twcrps(
    y: npt.ArrayLike,
    prediction: Prediction,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    fair: bool = False,
) -> FloatArray:
    """Threshold-weighted CRPS (twCRPS) of each row: what the prediction says of the values between.

    ∫ from lower to upper of (F(z) − 1{y ≤ z})² dz. Give `lower` alone for the right tail, `upper`
    alone for the left one. It is the CRPS of y and of the prediction after both are moved into
    the range. Lower is better, at least 0 but for fair scores of samples, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction
        Distributions, samples or quantiles of n rows. Quantiles are scored between their outermost
        levels, as in `crps`.
    lower, upper : float
        Ends of the range, in the units of y.
    fair : bool
        Of samples, whether to judge the law behind them: see `crps`.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ, `lower` is not below `upper`, or the prediction is of another kind.

    Notes
    -----
    Gneiting and Ranjan (2011), Comparing density forecasts using threshold- and quantile-weighted
    scoring rules, Journal of Business and Economic Statistics 29. Moving into the range:
    Allen, Ginsbourger and Ziegel (2023), Evaluating forecasts for high-impact events using
    transformed kernel scores, SIAM/ASA Journal on Uncertainty Quantification 11.

    Normal, logistic, Laplace, t, lognormal, gamma and exponential distributions have a closed
    form, off by the last digits of the distance of the range from the distribution. Counts are
    summed. Others are integrated, to about 1e-7 of the score.

    Examples
    --------
    >>> from howsure import Distribution
    >>> prediction = Distribution.normal([0.0, 0.0], [1.0, 2.0])
    >>> twcrps([0.0, 0.0], prediction, lower=1.0)
    array([0.0072, 0.0688])
    """
    if not float(lower) < float(upper):
        raise InputError(f"lower must be below upper, got {lower!r} and {upper!r}")
    return crps_between_ends(y, prediction, lower=float(lower), upper=float(upper), fair=fair)


def qwcrps(y: npt.ArrayLike, prediction: Prediction, *, weight: LevelWeight) -> FloatArray:
    """Quantile-weighted CRPS of each row: levels count by how far out they lie.

    2 ∫ w(τ) pinball_τ(y, q_τ) dτ over the levels τ. Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction
        Distributions, samples (taken as the whole distribution) or quantiles of n rows.
    weight : {"left", "right", "tails", "centre"}
        w(τ): (1 − τ)², τ², (2τ − 1)² or τ(1 − τ).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ, the weight is unknown, or the prediction is of another kind.

    Notes
    -----
    Gneiting and Ranjan (2011), Journal of Business and Economic Statistics 29.
    Distributions are integrated over values instead, to about 1e-7 of the score:
    ∫_{−∞}^y ∫_0^{F(z)} 2 w(τ) τ dτ dz and ∫_y^∞ ∫_{F(z)}^1 2 w(τ)(1 − τ) dτ dz.

    Examples
    --------
    >>> from howsure import Distribution
    >>> qwcrps([0.0, 3.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]), weight="right")
    array([0.0774, 0.9861])
    """
    prediction = check_scored(prediction)
    if isinstance(prediction, Samples):
        return qwcrps_samples(y, prediction.sorted_samples, weight=weight)
    if isinstance(prediction, Quantiles):
        return qwcrps_quantiles(y, prediction.values, prediction.levels, weight=weight)
    truth = as_vector(y, "y", length=prediction.n)
    return crps_by_cdf(prediction, truth, powers=_powers(weight))


def qwcrps_samples(y: npt.ArrayLike, samples: npt.ArrayLike, *, weight: LevelWeight) -> FloatArray:
    """`qwcrps` of each row of the samples' own step function, exactly."""
    truth = as_vector(y, "y")
    table = np.sort(as_matrix(samples, "samples", length=len(truth)), axis=1)
    size = table.shape[1]
    power = np.polynomial.Polynomial(_powers(weight))
    level = np.polynomial.Polynomial([0.0, 1.0])
    edges = np.arange(size + 1) / size  # the i-th smallest of m is the quantile between two of them
    above = np.diff((2.0 * power * (1.0 - level)).integ()(edges))  # where the draw exceeds y
    below = np.diff((2.0 * power * level).integ()(edges))
    scores = np.empty(len(truth))
    for rows in row_blocks(len(truth), size):
        off = table[rows] - truth[rows, None]
        scores[rows] = np.maximum(off, 0.0) @ above + np.maximum(-off, 0.0) @ below
    return scores


def qwcrps_quantiles(
    y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike, *, weight: LevelWeight
) -> FloatArray:
    """`qwcrps` of each row from its quantiles, by the trapezoid between the outermost levels."""
    truth, table, grid = check_quantiles(y, quantiles, levels)
    weights = np.polynomial.Polynomial(_powers(weight))(grid)
    return weighted_pinball(truth, table, grid, trapezoid(grid) * weights)


def _powers(weight: str) -> tuple[float, ...]:
    if weight not in _POWERS:
        raise InputError(f"weight must be one of {', '.join(_POWERS)}, got {weight!r}")
    return _POWERS[weight]


def tail_start(y: FloatArray, side: Side, inside: float, weights: FloatArray | None) -> float:
    """Where a tail of y begins, which leaves this share inside: at the inner end of a gap.

    Then the values beyond are draws of the tail; from the middle of the gap the first of them
    would be too near.
    """
    inward = y if side == "right" else -y
    if weights is None:
        count = math.ceil(inside * len(y) * (1.0 - 1e-12))
        start = float(np.partition(inward, count - 1)[count - 1])
    else:
        order = np.argsort(inward, kind="stable")
        below = np.cumsum(weights[order])
        place = int(np.searchsorted(below, inside * below[-1] * (1.0 - 1e-12)))
        start = float(inward[order[min(place, len(y) - 1)]])
    return start if side == "right" else -start


def _threshold(side: Side, view: View, _: float) -> float:
    evalset, weights = view.evalset, view.evalset.multiplicities
    start = tail_start(evalset.y, side, SHARE_INSIDE, weights)
    happened = evalset.y > start if side == "right" else evalset.y < start
    check_beyond(happened, weights, "" if evalset.share == 1.0 else " of the sample")
    return start


def threshold_told(view: View, side: Side) -> dict[str, float]:
    """The threshold for a reader, to about a hundredth of the sd: in full it is a row's own y."""
    start, y = float(view.get(f"threshold_{side}")), view.evalset.y
    unit = power_of_two(y)  # so that squares neither vanish nor overflow
    spread = unit * float(np.std(y / unit))
    if not 0.0 < spread < math.inf:
        return {}
    places = 2 - math.floor(math.log10(spread))
    return {"threshold": round(start, places)}


def _skill(side: Side, view: View, _: float) -> Estimate:
    """Against the distribution of y, both scored in one tail."""
    evalset, weights = view.evalset, view.evalset.multiplicities
    prediction = (
        view.find_prediction(Distribution)
        or view.find_prediction(Samples)
        or view.find_prediction(Quantiles)
    )
    if prediction is None:
        raise UnanswerableError("the table has no distributions, samples or quantiles")
    start: float = view.get(f"threshold_{side}")
    lower, upper = (start, math.inf) if side == "right" else (-math.inf, start)
    view.note_source(f"twcrps_{side}", prediction.kind)
    if isinstance(prediction, Distribution):
        name = f"twcrps_skill_{side}"
        ask = "" if name in view.slow else name
        scores = crps_of_law(evalset.y, prediction, lower=lower, upper=upper, ask=ask)
    else:
        scores = twcrps(evalset.y, prediction, lower=lower, upper=upper, fair=False)
    y = np.clip(evalset.y, lower, upper)
    if isinstance(prediction, Quantiles):
        levels = prediction.levels
        factors = trapezoid(levels).tolist()
        skill = skill_at_levels(scores, y, levels.tolist(), factors, weights)
    else:
        skill = crps_skill(y, scores, weights=weights)
    return replace(skill, details=threshold_told(view, side))


def check_beyond(happened: BoolArray, weights: FloatArray | None = None, of: str = "") -> None:
    """Refuse a tail that too few rows lie in."""
    count = float(happened.sum() if weights is None else weights[happened].sum())
    if count < MIN_ROWS_BEYOND:
        rows = f"1 row{of} is" if round(count) == 1 else f"{count:,.0f} rows{of} are"
        raise UnanswerableError(f"{rows} beyond the threshold, fewer than {MIN_ROWS_BEYOND}")


_BEWARE = (
    "The threshold is a quantile of these y: other rows have another threshold. Its own error is "
    "not in the interval, which still contained the truth in 91 to 97 % of simulated tables of "
    "1,000 rows. All rows count, not only extreme ones, so predicting extremes for every row does "
    "not help."
)


def _of_side(side: Side) -> Metric:
    other = "left" if side == "right" else "right"
    beyond, level = ("above", "90 %") if side == "right" else ("below", "10 %")
    integral = "∫_t^∞" if side == "right" else "∫_{−∞}^t"
    return Metric(
        name=f"twcrps_skill_{side}",
        title=f"Skill in the {side} tail (twCRPS, {side})",
        synonyms=(
            f"threshold-weighted CRPS skill, {side} tail",
            f"twCRPSS {side}",
        ),
        question=Question.TAILS,
        meaning=(
            f"Share by which the CRPS {beyond} the {level} quantile of y is lower than a "
            "climatology baseline (all y, for every row)."
        ),
        formula=f"1 − S/S_y, S the mean of {integral} (F(z) − 1{{y ≤ z}})² dz, S_y that of all y",
        source="Gneiting and Ranjan 2011; Allen, Ginsbourger and Ziegel 2023",
        direction=Direction.HIGHER,
        forms=(estimated(f"twcrps_{side}"),),
        laws=Laws(reflection=f"twcrps_skill_{other}"),
        standard_normal=0.0,
        bounds=(-math.inf, 1.0),
        merges="rows",
        beware=_BEWARE,
    )


TOPIC = Topic(
    entries=tuple(map(_of_side, SIDES)),
    arrays=tuple(
        Array(f"{name}_{side}", partial(make, side))
        for name, make in (("threshold", _threshold), ("twcrps", _skill))
        for side in SIDES
    ),
    label="Tails",
)
