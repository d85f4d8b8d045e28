"""Does the width mean anything: does a row with a wider prediction have a larger error?

Every function takes the errors' sizes and the widths (or sd, or any other uncertainty) of the
same rows. The three statistics ask only for an ordering or a trend: none of them notices widths
that are all too small by the same factor. A relation across rows is a *marginal* notion, and a
perfect model does not reach 1: noise alone keeps |error| from following its own scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Axis, Curve, Direction, Layout, Mark, Notion
from howsure.core.weights import check_multiplicities
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    BINNED,
    SHARE,
    Array,
    Form,
    Metric,
    Question,
    Topic,
)
from howsure.engine.view import View
from howsure.predictions import (
    Intervals,
    Quantiles,
)
from howsure.stats.dominance import Ranked, merge_ties, pair_masses, rank_values
from howsure.stats.estimate import Estimate, NormNoise, noise_of_bins

# The usual number (uncertainty-toolbox, reliability diagrams); bins of few rows add noise to R².
DEFAULT_BINS = 10
# What sums of many rows lose: four digits of sixteen.
_RELATIVE_ROUNDING = 1e-12


Ranks = tuple[Ranked, Ranked]


@frozen(eq=False)
class WidthBins:
    """Rows binned by width into bins of equal mass, rows of equal width together."""

    # shape (n,): bin of each row, 0 … b−1 in rising order of width. Bins left empty by ties are
    # dropped.
    codes: IntArray
    mass: FloatArray  # shape (b,): sum of the weights in the bin
    mean_width: FloatArray  # shape (b,): mean width
    mean_error: FloatArray  # shape (b,): mean size of the error


def kendall_tau(
    error: npt.ArrayLike,
    width: npt.ArrayLike,
    weights: FloatArray | None = None,
    *,
    ranked: Ranks | None = None,
) -> Estimate:
    """Kendall's τ-b between the error's size and the width; higher is better.

    τ_b = (C − D) / √((P − T_e)(P − T_w)), where C and D count the pairs of rows that agree and
    disagree in order, P all pairs, and T_e, T_w the pairs tied in error and in width.

    Parameters
    ----------
    error : array-like of shape (n,)
        Size of the error, |y − prediction|; any units, only its order matters.
    width : array-like of shape (n,)
        Width, sd or other uncertainty; may be infinite.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.
    ranked : pair of Ranked, optional
        The ranks of error and width under these weights, where they are known already.

    Returns
    -------
    Estimate
        In [−1, 1], with the influence of each row; NaN where all errors or all widths are equal.

    Raises
    ------
    InputError
        If a value is NaN, an error is infinite, or the lengths differ.

    Notes
    -----
    Source: M. G. Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945).
    The influence is the first-order (Hájek) projection of a U-statistic: row i's part of C − D
    and of the two tie corrections. O(n log n).

    Examples
    --------
    >>> kendall_tau([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]).value
    0.667
    """
    x, y, mass = _ranked(error, width, weights, ranked)
    reason = _constant(x, y)
    if reason:
        return Estimate(math.nan, None, reason=reason)
    pairs = pair_masses(x, y, mass)
    agreement = pairs.concordant - pairs.discordant
    x_untied = (x.total - x.tied)[x.codes]
    y_untied = (y.total - y.tied)[y.codes]
    untied_x, untied_y = (0.5 * float(r.tied @ (r.total - r.tied)) for r in (x, y))
    scale = math.sqrt(untied_x * untied_y)
    value = 0.5 * _sum(agreement, mass) / scale
    influence = x.total * (
        agreement / scale - 0.5 * value * (x_untied / untied_x + y_untied / untied_y)
    )
    return Estimate(value, influence)


def spearman(
    error: npt.ArrayLike,
    width: npt.ArrayLike,
    weights: FloatArray | None = None,
    *,
    ranked: Ranks | None = None,
) -> Estimate:
    """Spearman's rank correlation between the error's size and the width; higher is better.

    Pearson's correlation of the midranks: ties share the mean of the ranks that they span.

    Parameters
    ----------
    error : array-like of shape (n,)
        Size of the error, |y − prediction|; any units, only its order matters.
    width : array-like of shape (n,)
        Width, sd or other uncertainty; may be infinite.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.
    ranked : pair of Ranked, optional
        The ranks of error and width under these weights, where they are known already.

    Returns
    -------
    Estimate
        In [−1, 1], with the influence of each row; NaN where all errors or all widths are equal.

    Raises
    ------
    InputError
        If a value is NaN, an error is infinite, or the lengths differ.

    Notes
    -----
    Source: C. Spearman (1904), with midranks; Pernot (2024, arXiv:2402.10043) calls it CC.
    With F and G the mid-distribution functions, ρ = Cov(F, G) / √(Var F · Var G) and
    Var F = (1 − Σ p³)/12 over the shares p of the distinct values; the influence differentiates
    these, the ranks of the other rows included.

    Examples
    --------
    >>> spearman([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0]).value
    0.8
    """
    x, y, mass = _ranked(error, width, weights, ranked)
    reason = _constant(x, y)
    if reason:
        return Estimate(math.nan, None, reason=reason)
    x_centred, y_centred = x.middle - 0.5, y.middle - 0.5
    x_row, y_row = x_centred[x.codes], y_centred[y.codes]
    product = x_row * y_row
    covariance = _sum(product, mass) / x.total
    x_share, y_share = x.tied / x.total, y.tied / y.total
    x_cubes, y_cubes = float(np.sum(x_share**3)), float(np.sum(y_share**3))
    x_variance, y_variance = (1 - x_cubes) / 12, (1 - y_cubes) / 12
    scale = math.sqrt(x_variance * y_variance)
    value = covariance / scale
    own = product + _mean_above(x, y_row, mass) + _mean_above(y, x_row, mass)
    x_tilt = (x_cubes - x_share**2)[x.codes] / x_variance
    y_tilt = (y_cubes - y_share**2)[y.codes] / y_variance
    influence = own / scale - 3 * value - value * (x_tilt + y_tilt) / 8
    return Estimate(value, influence)


def width_bins(
    error: npt.ArrayLike,
    width: npt.ArrayLike,
    weights: FloatArray | None = None,
    *,
    bins: int = DEFAULT_BINS,
    ranked: Ranks | None = None,
) -> WidthBins:
    """Bin rows by width into bins of equal mass, and describe each bin.

    A row of mid-distribution F (mass of narrower rows plus half its ties, over the total) falls
    into bin ⌊bins·F⌋: ties stay together and the order of rows does not matter.

    Examples
    --------
    >>> table = width_bins([1.0, 1.0, 2.0, 4.0], [1.0, 2.0, 3.0, 4.0], bins=2)
    >>> table.mean_width.tolist(), table.mean_error.tolist()
    ([1.5, 3.5], [1.0, 3.0])
    """
    check_whole(bins, "bins")
    e = as_vector(error, "error")
    w = as_vector(width, "width", length=len(e), finite=False)
    counts = check_multiplicities(weights, len(e))
    mass = np.ones(len(e)) if counts is None else counts
    levels = rank_values(w, counts) if ranked is None else ranked[1]
    level_code = _level_bins(levels, bins)
    codes = level_code[levels.codes]
    total = np.bincount(codes, weights=mass).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean_error = np.bincount(codes, weights=mass * e) / total
    filled = levels.tied > 0
    level_width = np.empty(len(filled))
    level_width[levels.codes] = w
    widths = levels.tied[filled] * level_width[filled]
    mean_width = np.bincount(level_code[filled], weights=widths) / total
    return WidthBins(codes, total, mean_width, mean_error)


def binned_r2(
    error: npt.ArrayLike,
    width: npt.ArrayLike,
    weights: FloatArray | None = None,
    *,
    bins: int = DEFAULT_BINS,
    ranked: Ranks | None = None,
) -> Estimate:
    """R² of the bins' mean error on their mean width; higher is better.

    The share of the spread of the mean |error| between bins (see `width_bins`) that a straight
    line in the mean width explains, each bin counting by its mass.

    Parameters
    ----------
    error : array-like of shape (n,)
        Size of the error, |y − prediction|, in the units of y.
    width : array-like of shape (n,)
        Width, sd or other uncertainty.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.
    ranked : pair of Ranked, optional
        The ranks of error and width under these weights, where they are known already.
    bins : int
        Number of bins, at least 3.

    Returns
    -------
    Estimate
        In [0, 1], with the influence of each row. `reason` says so where the line falls (wider
        rows err less). NaN where fewer than three bins differ in width, where a mean is
        infinite, or where all bins have the same mean to twelve digits.

    Raises
    ------
    InputError
        If a value is NaN, an error is infinite, the lengths differ, or `bins` is below 3.

    Notes
    -----
    Widths that say nothing still give 1/(b − 1) on average over b bins of pure noise. The
    influence holds the bins' edges fixed: moving an edge that lies midway between the means of
    its two bins changes nothing to first order. Near 0 and near 1 the statistic is not normal,
    and the standard error is too large (by a half and more for widths that say nothing). The
    noise of the bins' means tells how far from the line they may lie by chance.

    Examples
    --------
    >>> binned_r2([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], bins=3).value
    0.964
    """
    if bins < 3:
        raise InputError(f"bins must be at least 3 for a binned R², got {bins!r}")
    table = width_bins(error, width, weights, bins=bins, ranked=ranked)
    if len(table.mass) < 3:
        return Estimate(math.nan, None, reason="fewer than three bins differ in width")
    for means, name in ((table.mean_width, "width"), (table.mean_error, "error")):
        if not np.isfinite(means).all():
            return Estimate(math.nan, None, reason=f"a bin's mean {name} is infinite")
        if np.ptp(means) <= _RELATIVE_ROUNDING * np.abs(means).max():
            return Estimate(math.nan, None, reason=f"all bins have the same mean {name}")
    share = table.mass / table.mass.sum()
    u, u_own = _deviations(width, table.mean_width, table.codes, share)
    v, v_own = _deviations(error, table.mean_error, table.codes, share)
    uu, uv, vv = float(share @ (u * u)), float(share @ (u * v)), float(share @ (v * v))
    if abs(uv) <= _RELATIVE_ROUNDING * math.sqrt(uu * vv):  # no slope but what rounding leaves
        uv = 0.0
    value = uv * uv / (uu * vv)
    u_row, v_row = u[table.codes], v[table.codes]
    influence = (
        # without a slope, uv is 0, and may not divide
        2.0 * (uv / (uu * vv)) * (v_row * u_own + u_row * v_own + u_row * v_row)
        - value * (u_row * (2 * u_own + u_row) / uu + v_row * (2 * v_own + v_row) / vv)
    )
    reason = "the line falls: rows with wider predictions have smaller errors" if uv < 0 else ""
    own = np.bincount(
        table.codes, weights=np.square(v_own) if weights is None else weights * v_own**2
    )
    error = own / np.square(table.mass)  # of each bin's mean, over the range of the means
    draws = np.square(noise_of_bins(len(share)))
    within = max(len(share) - 2.0, 1.0) / len(share)  # two degrees of freedom go to the line
    norms = np.sqrt(within * (draws @ (share * error)) / vv)
    rest = math.sqrt(max(1.0 - value, 0.0))
    noise = NormNoise(norms, lambda most: 1.0 - max(rest - most, 0.0) ** 2)
    return Estimate(value, influence, reason=reason, noise=noise)


def _deviations(
    values: npt.ArrayLike, means: FloatArray, codes: IntArray, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bin means about their mean, and rows about their bin's mean, over the means' range."""
    unit = np.ptp(means)
    own = (np.asarray(values, dtype=np.float64) - means[codes]) / unit
    own[~np.isfinite(own)] = 0.0  # an infinite width that no weight counts
    between = (means - means[0]) / unit
    return between - share @ between, own


def _level_bins(ranked: Ranked, bins: int) -> IntArray:
    """Equal-mass bin of each distinct value, numbered without gaps."""
    twice_middle = 2 * ranked.below + ranked.tied
    bin_ = np.minimum(bins * twice_middle // (2 * ranked.total), bins - 1).astype(np.int64)
    present = np.bincount(bin_, weights=ranked.tied) > 0
    codes: IntArray = np.maximum(np.cumsum(present) - 1, 0)[bin_]
    return codes


def _ranked(
    error: npt.ArrayLike,
    width: npt.ArrayLike,
    weights: FloatArray | None,
    ranked: Ranks | None,
) -> tuple[Ranked, Ranked, FloatArray | None]:
    e = as_vector(error, "error")
    w = as_vector(width, "width", length=len(e), finite=False)
    mass = check_multiplicities(weights, len(e))
    first, second = ranked or (rank_values(e, mass), rank_values(w, mass))
    return first, second, mass


def _constant(error: Ranked, width: Ranked) -> str:
    """Why no association can be computed; empty where it can."""
    for ranked, name in ((width, "widths"), (error, "errors")):
        if np.count_nonzero(ranked.tied) < 2:
            return f"all {name} are equal"
        if ranked.total - float(ranked.tied.max()) <= _RELATIVE_ROUNDING * ranked.total:
            return f"one of the {name} has all weight, to twelve digits"
    return ""


def _sum(values: FloatArray, mass: FloatArray | None) -> float:
    return float(values.sum() if mass is None else mass @ values)


def _mean_above(ranked: Ranked, values: FloatArray, mass: FloatArray | None) -> FloatArray:
    """Per row: mean over all rows of `values` times [above this row, a half if tied]."""
    weighted = values if mass is None else mass * values
    sums = np.bincount(ranked.codes, weights=weighted)
    upto = np.cumsum(sums)
    result: FloatArray = ((upto[-1] - upto + 0.5 * sums) / ranked.total)[ranked.codes]
    return result


def _uncertainty(view: View, coverage: float) -> FloatArray:
    """How unsure the model is of each row: its sd, or the width of its widest interval."""
    try:
        sd: FloatArray = view.get("sd")
    except UnanswerableError:
        widest = _widest(view)
        view.note_source("uncertainty", "width")
        return widest
    view.note_source("uncertainty", "sd")
    return sd


def _widest(view: View) -> FloatArray:
    intervals = view.find_prediction(Intervals)
    if intervals is not None:
        return _between(intervals.lower[:, -1], intervals.upper[:, -1])
    table = view.prediction(Quantiles)
    if len(table.levels) < 2:
        raise UnanswerableError("one quantile column gives no width")
    return _between(table.values[:, 0], table.values[:, -1])


def _between(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Widths, those that differ by rounding alone made one: else their order would be noise."""
    widths = upper - lower
    noise = np.where(np.isfinite(widths), np.maximum(np.abs(lower), np.abs(upper)), 0.0)
    return merge_ties(widths, 4e-16 * noise)


def _with_point(view: View, _: float) -> View:
    """The rows whose error can be ranked: all, or those whose interval has a midpoint."""
    try:
        view.get("point")
    except UnanswerableError:
        intervals = view.find_prediction(Intervals)
        if intervals is None:
            raise
        bounded = np.isfinite(intervals.lower[:, 0]) & np.isfinite(intervals.upper[:, 0])
        if not bounded.any():
            raise
        return view.of(bounded)
    return view


def _ranks(view: View, _: float) -> tuple[Ranked, Ranked]:
    """Ranks of the size of the error and of the uncertainty: sorted once for all measures."""
    values = view.evalset.multiplicities
    first, second = view.get("absolute_error"), view.get("uncertainty")
    return rank_values(first, values), rank_values(second, values)


def _error_by_width(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Mean |error| against mean uncertainty in bins of equal mass."""
    view: View = evaluation.view.get("with_point")
    evalset = view.evalset
    uncertainty = view.get("uncertainty")
    errors = view.get("absolute_error")
    weights = evalset.multiplicities
    bins = width_bins(errors, uncertainty, weights, ranked=view.get("ranks"))
    if len(bins.mass) < 2:
        raise UnanswerableError("all widths are equal")
    centred = np.square(errors - bins.mean_error[bins.codes])
    spread = np.bincount(bins.codes, weights=centred if weights is None else centred * weights)
    error = np.sqrt(spread) / np.maximum(bins.mass, 1.0)
    told = bins.mass >= evalset.fewest
    return [
        Curve(
            name="error_by_width",
            x=bins.mean_width[told],
            y=bins.mean_error[told],
            lower=(bins.mean_error - 1.96 * error)[told],
            upper=(bins.mean_error + 1.96 * error)[told],
            x_label=f"Mean predicted {view.source(['uncertainty'], 0.0) or 'width'} (units of y)",
            y_label="Mean |error| (units of y)",
            band="95 % interval of each bin's mean",
            model=evalset.model,
        )
    ]


ORDER_ALONE = (
    "It uses only the order of uncertainties: doubling them all changes nothing, so it does not "
    "measure coverage."
)
_entry = partial(
    Metric,
    question=Question.ASSOCIATION,
    direction=Direction.HIGHER,
    merges="rows",
    standard_normal=math.nan,
    notion=Notion.LOCAL,
    bounds=(-1.0, 1.0),
)


def _of_ranks(function: Callable[..., Estimate]) -> Form:
    """The form of a statistic of errors and widths, whose ranks are at hand."""
    needs = ("absolute_error", "uncertainty")
    return Form(needs=needs, keywords={"ranked": "ranks"}, function=function, reduce="statistic")


_ENTRIES = (
    _entry(
        name="kendall_tau",
        title="Kendall τ-b of |error| and width",
        synonyms=("Kendall", "tau", "Kendall tau-b"),
        meaning="Rank agreement of widths and absolute errors.",
        formula="(C − D)/√((C + D + T_x)(C + D + T_y))",
        source="Kendall 1945",
        forms=(_of_ranks(kendall_tau),),
        beware=f"{ORDER_ALONE} Even a perfect model is far below 1, because errors are random.",
    ),
    _entry(
        name="spearman",
        title="Spearman ρ of |error| and width",
        synonyms=("Spearman correlation", "rho", "rank correlation", "Spearman rho", "SRCC"),
        meaning="Rank correlation of widths and absolute errors.",
        formula="correlation of mid-ranks",
        source="Spearman 1904",
        forms=(_of_ranks(spearman),),
        beware=f"{ORDER_ALONE} Even a perfect model is far below 1, because errors are random.",
    ),
    _entry(
        name="binned_r2",
        title="Binned R² of |error| on width",
        synonyms=("binned R squared",),
        meaning="Share of the variance of binned errors that mean widths explain.",
        formula="R² of bin means",
        forms=(_of_ranks(binned_r2),),
        by_size=True,
        bounds=SHARE,
        beware=f"{BINNED} A line with a wrong slope can also have an R² of 1.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("uncertainty", _uncertainty, predicted=True, by_row=True),
        Array("with_point", _with_point),
        Array("ranks", _ranks),
    ),
    curves=(_error_by_width,),
    label="Widths",
    layouts={
        "error_by_width": Layout(
            order=4,
            question="Are errors larger where predicted uncertainty is larger?",
            title="Error by predicted uncertainty",
            reading=(
                "Each point is a bin of rows of similar uncertainty. Rising points mean that "
                "predicted uncertainty separates easy rows from hard ones."
            ),
            x=Axis(title="Mean width", zero=True),
            y=Axis(title="Mean |error|", zero=True),
            mark=Mark.POINTS,
            data="bins of rows",
            reference="ideal",
            band="interval",
        ),
    },
)
