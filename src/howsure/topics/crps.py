"""CRPS of quantiles and of samples, one number a row.

The continuous ranked probability score is ∫ (F(t) − 1{y ≤ t})² dt: lower is better, in the units
of y, and in expectation no law F scores better than the right one. Laws of a known family are
scored in `howsure.topics.crps_closed`, any other in `howsure.topics.crps_numeric`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    FloatArray,
    as_matrix,
    as_vector,
    check_quantiles,
    row_blocks,
)
from howsure.core.errors import DegenerateError, InputError, UnanswerableError, either
from howsure.core.records import Direction
from howsure.engine.metric import (
    BY_UNIT,
    POSITIVE,
    SLOW_ROWS,
    Array,
    Metric,
    Question,
    Topic,
    itself,
    row_mean,
)
from howsure.engine.view import View
from howsure.predictions import Distribution, Prediction, Quantiles, Samples
from howsure.predictions.counts import CountFamily, CountLaw
from howsure.topics.crps_closed import crps_between, crps_closed, crps_support
from howsure.topics.crps_numeric import crps_lattice, crps_numeric
from howsure.topics.scores import kind_of, overflow_as_inf, weighted_pinball

# Counts in a law up to which they are summed one by one; wider laws are summed by quadrature,
# which is right to 10⁻⁷. It decides time.
MAX_COUNTS_SUMMED = 4096
# Entries of a table of counts: 2 MB in 64 bits, within reach of the cache.
COUNTS_AT_ONCE = 1 << 18


def crps(y: npt.ArrayLike, prediction: Prediction, *, fair: bool = False) -> FloatArray:
    """CRPS (continuous ranked probability score) of each row's prediction.

    ∫ (F(t) − 1{y ≤ t})² dt, with F the predicted cumulative distribution function. Lower is better,
    at least 0 but for fair scores of samples, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction
        A `Distribution`, `Samples` or `Quantiles` of n rows. An array would not say which it is:
        draws of shape (n, m) are given as ``Samples(draws)``.
    fair : bool
        Of samples, whether to judge the distribution behind them, which needs at least two per
        row, rather than their own step function, as the measure ``crps`` of a report does.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ, a y is missing, or the prediction is of another kind.
    DegenerateError
        If a fair score is asked of one sample, or there is one quantile only.

    Notes
    -----
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation,
    Journal of the American Statistical Association 102, section 4.2.

    Distributions: by closed form for the normal, logistic, Laplace, t, lognormal, gamma,
    exponential, Poisson and negative binomial families, by sums for other counts, else integrated,
    to about 1e-7 of the score.

    Samples s_1, …, s_m: mean_j |s_j − y| − Σ_{j,k} |s_j − s_k| / (2m²), or with 2m(m − 1) in place
    of 2m² where ``fair``: then its expectation is the CRPS of the distribution behind the draws,
    whatever m is (Ferro 2014, Quarterly Journal of the Royal Meteorological Society 140). In a
    report that is the measure ``crps_fair``.

    Quantiles: 2 ∫ pinball_τ(y, q_τ) dτ by the trapezoid over the given levels. What lies beyond the
    outermost levels is left out, so values over other levels are not comparable (Laio and Tamea
    2007, Hydrology and Earth System Sciences 11).

    Examples
    --------
    >>> from howsure import Distribution, Quantiles, Samples
    >>> crps([0.0], Distribution.normal([0.0], [1.0])).round(4)
    array([0.2337])
    >>> crps([0.0], Samples([[-1.0, 1.0]])), crps([0.0], Samples([[-1.0, 1.0]]), fair=True)
    (array([0.5]), array([0.]))
    >>> crps([0.0], Quantiles([0.25, 0.5, 0.75], [[-1.0, 0.0, 1.0]]))
    array([0.125])
    """
    return crps_between_ends(y, prediction, fair=fair)


def crps_between_ends(
    y: npt.ArrayLike,
    prediction: Prediction,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    fair: bool = True,
) -> FloatArray:
    """CRPS of y and of a prediction which are moved between two ends: ∫ from lower to upper."""
    prediction = check_scored(prediction)
    truth = as_vector(y, "y", length=prediction.n)
    if isinstance(prediction, Distribution):
        return crps_of_law(truth, prediction, lower=lower, upper=upper)
    moved = np.clip(truth, lower, upper)
    if isinstance(prediction, Samples):
        return crps_samples(moved, np.clip(prediction.sorted_samples, lower, upper), fair=fair)
    return crps_quantiles(moved, np.clip(prediction.values, lower, upper), prediction.levels)


def check_scored(prediction: Any) -> Distribution | Samples | Quantiles:
    """Refuse what has no CRPS."""
    if isinstance(prediction, Distribution | Samples | Quantiles):
        return prediction
    raise InputError(
        f"prediction must be distributions, samples or quantiles, got {kind_of(prediction)}"
    )


def crps_quantiles(y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """CRPS of each row from its quantiles, by the trapezoid over their levels; see `crps`."""
    truth, table, grid = check_quantiles(y, quantiles, levels)
    return weighted_pinball(truth, table, grid, trapezoid(grid))


def trapezoid(levels: FloatArray) -> FloatArray:
    """What the pinball loss at each level counts in a CRPS: the gaps on both sides of it."""
    if len(levels) < 2:
        raise DegenerateError(f"levels needs at least 2 levels for a CRPS, got {len(levels)}")
    gaps = np.diff(levels)
    return np.asarray(np.append(gaps, 0.0) + np.append(0.0, gaps))


def crps_samples(y: npt.ArrayLike, samples: npt.ArrayLike, *, fair: bool = True) -> FloatArray:
    """CRPS of each row from samples, in O(m log m) a row; see `crps`."""
    truth = as_vector(y, "y")
    table = as_matrix(samples, "samples", length=len(truth))
    size = table.shape[1]
    if fair and size < 2:
        raise DegenerateError("samples needs at least 2 columns for a fair score, got 1")
    # sorted, the sum over pairs is Σ_j 2(2j − m − 1) s_(j)
    rank = 2.0 * np.arange(1, size + 1) - size - 1.0
    factor = rank / (size * (size - 1 if fair else size))
    scores = np.empty(len(truth))
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in row_blocks(len(truth), size):
            distance = np.sort(table[rows] - truth[rows, None], axis=1)
            scores[rows] = np.abs(distance).mean(axis=1) - distance @ factor
    return overflow_as_inf(scores)


def crps_of_law(
    y: FloatArray,
    distribution: Distribution,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    ask: str = "",
) -> FloatArray:
    """CRPS of each row's law: by closed form, by sums over counts, or through its cdf.

    Between two thresholds it is that of laws and y which are moved to the nearer one. The cdf of
    many rows is not integrated unless asked for by the name of the measure, which is `ask`.
    """
    moved = np.clip(y, lower, upper)
    closed = crps_between(distribution.law.name, moved, distribution.parameters, lower, upper)
    if closed is not None:
        return closed
    scores, rest = np.empty(len(y)), np.arange(len(y))
    if isinstance(distribution.law, CountFamily):
        rest = _crps_by_sums(
            distribution.law.frozen(distribution.parameters), moved, scores, lower, upper
        )
    if ask and len(rest) > SLOW_ROWS:
        also = either(f"howsure.Options(also={{{ask!r}}})", f"--also {ask}")
        raise UnanswerableError(
            f"the CRPS of {distribution.law.name} distributions is integrated row by row, slow "
            f"above {SLOW_ROWS:,} rows: ask for it with {also}"
        )
    if len(rest):
        scores[rest] = crps_by_cdf(distribution.take(rest), moved[rest], lower=lower, upper=upper)
    return scores


def _crps_of_law(view: View, _: float) -> FloatArray:
    ask = "" if "crps" in view.slow else "crps"
    return crps_of_law(view.evalset.y, view.prediction(Distribution), ask=ask)


def _crps_of_samples(view: View, _: float) -> FloatArray:
    """CRPS of the distribution behind each row's samples, as a reference is scored."""
    samples = view.get("samples")
    view.note_source("crps_of_samples", Samples.kind)
    return crps_samples(view.evalset.y, samples, fair=samples.shape[1] > 1)


def _crps_by_sums(
    law: CountLaw, y: FloatArray, scores: FloatArray, lower: float, upper: float
) -> AnyArray:
    """Fill in the CRPS of laws of counts that are narrow enough to be summed; the other rows."""
    low, high = law.ends()
    widths = high - low + 1.0
    order = np.argsort(widths, kind="stable")
    few, start = int((widths <= MAX_COUNTS_SUMMED).sum()), 0
    while start < few:
        size = min(max(int(COUNTS_AT_ONCE // widths[order[start]]), 1), few - start)
        size = max(int(COUNTS_AT_ONCE // widths[order[start + size - 1]]), 1)
        rows = order[start : min(start + size, few)]
        counts, shares = law.take(rows).support()
        if np.isfinite((lower, upper)).any():
            counts = np.clip(counts, lower, upper)
        scores[rows] = crps_support(y[rows], counts, shares)
        start += len(rows)
    return np.sort(order[few:])


def crps_by_cdf(distribution: Distribution, y: FloatArray, **options: Any) -> FloatArray:
    """The CRPS of each row's law through its cdf; options are those of `crps_numeric`."""

    def cdf(values: FloatArray, rows: AnyArray) -> FloatArray:
        return distribution.law.cdf(
            values, {k: v[rows][:, None] for k, v in distribution.parameters.items()}
        )

    ends = distribution.quantile([0.25, 0.75])
    spread = np.maximum(ends[:, 1] - ends[:, 0], 1.0 if distribution.discrete else 0.0)
    integrate = crps_lattice if distribution.discrete else crps_numeric
    return integrate(y, cdf, spread, **options)


def _is_integrated(prediction: Prediction) -> bool:
    """Whether the CRPS of a prediction's rows has no closed form and no sum."""
    if not isinstance(prediction, Distribution) or isinstance(prediction.law, CountFamily):
        return False
    first = {name: values[:1] for name, values in prediction.parameters.items()}
    return crps_closed(prediction.law.name, np.zeros(1), first) is None


_entry = partial(
    Metric, question=Question.SCORE, direction=Direction.LOWER, units="y", laws=BY_UNIT
)

_ENTRIES = (
    _entry(
        name="crps",
        title="CRPS",
        synonyms=("continuous ranked probability score", "mean CRPS"),
        meaning="Continuous ranked probability score: a proper score of the whole distribution.",
        formula="∫ (F(t) − 1{y ≤ t})² dt",
        source="Gneiting and Raftery 2007, section 4.2",
        forms=(
            row_mean(itself, "crps_of_law"),
            row_mean(
                crps_samples,
                "y",
                "samples",
                options={"fair": False},
                note="the samples taken as the whole distribution",
            ),
            row_mean(
                crps_quantiles,
                "y",
                "quantiles",
                "levels",
                note="from quantiles: truncated at the outermost levels",
            ),
        ),
        standard_normal=0.5642,
        bounds=POSITIVE,
        key_number=5,
        compares=1,
        beware=(
            "From quantiles it is truncated at the outermost levels; from samples it favours "
            "narrow ensembles. Large errors of the mean hide faults of the spread."
        ),
    ),
    _entry(
        name="crps_fair",
        title="Fair CRPS of an ensemble",
        synonyms=("fair CRPS", "unbiased CRPS"),
        meaning="CRPS of the distribution behind the samples, without the penalty for few samples.",
        formula="mean|s − y| − Σ|s − s′| / (2m(m − 1))",
        source="Ferro 2014",
        forms=(row_mean(crps_samples, "y", "samples", options={"fair": True}),),
        standard_normal=math.nan,
        beware="It assesses the distribution behind the samples, not the ensemble itself.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("crps_of_law", _crps_of_law, integrated=_is_integrated),
        Array("crps_of_samples", _crps_of_samples),
        Array("samples", lambda view, _: view.prediction(Samples).sorted_samples, predicted=True),
    ),
)
