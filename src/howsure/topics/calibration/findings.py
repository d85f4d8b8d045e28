"""What is concluded of the predictive distribution: its centre, spread, skew, tails, and widths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import number, percent
from howsure.core.records import Record
from howsure.core.times import Units
from howsure.core.weights import Weights
from howsure.engine.finding import (
    SDS,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    of_ratio,
    of_value,
    points,
    since_change,
    small,
    span,
    student_p,
)
from howsure.stats.binomial import binomial_test
from howsure.stats.dominance import rank_values
from howsure.stats.estimate import Z_95, Estimate, standard_error, weighted_mean
from howsure.topics.calibration.components import mean_test, wider_by

MEAN_ERROR = math.sqrt(2.0 / math.pi)
"""Mean absolute error of a normal law, in sds."""


def _bias(case: Case) -> Draft:
    try:
        record = case.get("pit_bias")
    except UnanswerableError:
        return _point_bias(case)
    return Draft(
        effect=record.value / MEAN_ERROR,
        lower=record.lower / MEAN_ERROR,
        upper=record.upper / MEAN_ERROR,
        p=record.p,
        n=record.n,
        within={"skew": 4.0, **since_change(case, "bias")},
        facts={"record": record},
    )


def _point_bias(case: Case) -> Draft:
    """The mean error of a point forecast that was given, as a mean."""
    if case.evalset.point is None:
        raise UnanswerableError("neither a predictive distribution nor a point forecast was given")
    bias, error = case.get("bias"), case.get("mae")
    if not error.value > 0:
        raise UnanswerableError("every error is 0")
    return Draft(
        effect=-bias.value / error.value,
        lower=-bias.upper / error.value,
        upper=-bias.lower / error.value,
        p=student_p(bias.value, bias.standard_error, case.freedom),
        n=bias.n,
        facts={"record": bias, "point": True},
    )


def _bias_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    low = draft.effect > 0
    if draft.facts.get("point"):
        seen = (
            f"The point forecast is {'below' if low else 'above'} y by "
            f"{number(abs(record.value), 3)} on average, "
            f"{percent(abs(draft.effect), 0)} of its mean error"
        )
    else:
        size = small(abs(record.value), 2, trim=False)
        far = f"{size} {SDS} {'above' if low else 'below'}"
        if abs(record.value) < 0.005:
            far = f"within 0.01 {SDS} of"
        seen = f"y averages {far} its prediction"
    way = "low" if low else "high"
    clause = seen if seen[0] == "y" else f"t{seen[1:]}"
    return Words(seen, f"predictions are too {way}", "predictions are centred", clause=clause)


def _spread(case: Case) -> Draft:
    record = case.get("pit_spread")
    within = {"skew": 3.0, "tails": 20.0, **since_change(case, "spread")}
    return of_ratio(record, within=within, facts={"record": record})


def _spread_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    times = small(record.value, 2, trim=False)
    seen = f"Errors are {times} times their stated size{span(record, places=2)}"
    way = "small" if draft.effect > 0 else "large"
    clause = f"errors are {times} times their stated size"
    return Words(
        seen, f"the stated spread is too {way}", "the stated spread is right", clause=clause
    )


def _shape(measure: str, case: Case) -> Draft:
    record = case.get(measure)
    within = {"width": 0.1, "groups": 0.15, "region": 0.15, "drift": 0.2}
    return of_value(record, p=record.p, within=within, facts={"record": record})


def _skew_words(draft: Draft, finding: Finding) -> Words:
    if finding.state == "good":
        return Words(f"Skew is right, to within {_bound(draft)}")
    seen = f"Skew moves stated probabilities by up to {points(draft.effect)}"
    way = "upper" if draft.effect > 0 else "lower"
    fault = f"the {way} tail is longer than stated"
    return Words(seen, fault, more=_outside(draft, finding))


def _tails_words(draft: Draft, finding: Finding) -> Words:
    if finding.state == "good":
        return Words(f"Tails are right, to within {_bound(draft)}")
    seen = f"Tails move stated probabilities by up to {points(draft.effect)}"
    way = "heavier" if draft.effect > 0 else "lighter"
    fault = f"tails are {way} than stated"
    return Words(seen, fault, more=_outside(draft, finding))


def _bound(draft: Draft) -> str:
    """The end of the interval that is farther from 0."""
    return points(max(abs(draft.lower), abs(draft.upper)))


def _outside(draft: Draft, finding: Finding) -> str:
    """What is seen beyond a level at which the fault shows, of a fault alone."""
    options = draft.facts["record"].options
    if finding.state != "bad" or "seen_below" not in options:
        return ""
    low, high = float(options["stated_below"]), 1.0 - float(options["stated_above"])
    below, above = (percent(float(options[f"seen_{side}"])) for side in ("below", "above"))
    return (
        f"Of y, {below} lie below the stated {percent(low)} quantile "
        f"and {above} above the {percent(high)} quantile."
    )


def _width(case: Case) -> Draft:
    equal = "width_response" in case.records and ONE_WIDTH in case.records["width_response"].options
    try:
        record = case.get("noise_given_inputs" if equal else "width_response")
    except UnanswerableError as why:
        reason = f"every row has the same width, and {why}" if equal else str(why)
        raise UnanswerableError(reason) from None
    where = str(record.options.get("where", ""))
    return of_ratio(record, where=where, facts={"record": record, "equal": equal})


def _width_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    if draft.facts["equal"]:
        fault = "the noise varies with the inputs"
        if not draft.where:
            seen = "Every row has the same width"
            return Words(seen, fault, "the inputs do not predict the size of errors")
        seen = (
            "Every row has the same width. "
            f"Where {draft.where}, errors are {record.value:.2f} times those elsewhere"
        )
        return Words(seen, fault, "constant noise, as stated")
    wide, narrow = (
        small(float(record.options[name]), 2, trim=False) for name in ("widest", "narrowest")
    )
    seen = (
        f"Errors are {wide} times their stated size where widths are large, "
        f"{narrow} times where small"
    )
    way = "overreact" if draft.effect < 0 else "react too little"
    clause = f"widths {way} to the size of errors"
    return Words(seen, f"widths {way}", "widths follow the errors", clause=clause)


FINDINGS = (
    FindingQuestion(
        id="bias",
        asked="Are the predictions centred?",
        label="Bias",
        unit="mean error",
        draft=_bias,
        words=_bias_words,
        tolerance=0.02,
        margin=0.1,
        measures=("pit_bias", "bias", "mae"),
    ),
    FindingQuestion(
        id="spread",
        asked="Is the stated spread right?",
        label="Spread",
        unit="ratio − 1",
        draft=_spread,
        words=_spread_words,
        tolerance=0.02,
        margin=0.1,
        measures=("pit_spread",),
    ),
    FindingQuestion(
        id="skew",
        asked="Is the stated skew right?",
        label="Skew",
        draft=partial(_shape, "pit_skew"),
        words=_skew_words,
        measures=("pit_skew",),
        cause="the skew",
    ),
    FindingQuestion(
        id="tails",
        asked="Are the stated tails right?",
        label="Tails",
        draft=partial(_shape, "pit_tails"),
        words=_tails_words,
        measures=("pit_tails",),
        cause="the tails",
    ),
    FindingQuestion(
        id="width",
        asked="Do widths follow the size of the errors?",
        label="Widths",
        unit="ratio − 1",
        draft=_width,
        words=_width_words,
        tolerance=0.02,
        margin=0.1,
        measures=("width_response", "noise_given_inputs"),
        section="Widths",
        name="widths",
        cause="how errors depend on widths",
        needs="For widths: inputs that tell easy rows from hard ones.",
        healed="aimed",
    ),
)


# ---- do widths follow the size of the errors, and do misses lie on both sides? -------------------

ONE_WIDTH = "one_width"
"""The option of a record that has no value as every row has the same width."""
_ROUNDING = 1e-9
"""Widths that differ by less are one: a width made in another way must find its own rank."""


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
        low = edges[np.searchsorted(values, width * (1.0 - _ROUNDING), "left")]
        high = edges[np.searchsorted(values, width * (1.0 + _ROUNDING), "right")]
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
    """How much larger errors are, against their stated size, where widths are large than small.

    Parameters
    ----------
    signal : ndarray of float, shape (n,)
        What tells of the size of a row's error: φ_2 of its PIT, or whether it is missed.
    rank : ndarray of float, shape (n,)
        Standardised rank of the width.
    size : callable
        Log of the errors' multiple of their stated size that a mean signal shows.
    expected : ndarray of float, shape (n,), optional
        Mean of rank × signal if the row is right, where the width tells of chance itself.
    weights, cluster : optional
        Of the rows.

    Returns
    -------
    Estimate
        k(+1)/k(−1), k the multiple one sd of the width's rank above and below its mean; 1 is
        right, below 1 the widths overreact.
    """
    share = None if weights is None else weights.values
    mean = weighted_mean(signal, share)
    rows = rank * (signal - mean) - expected
    slope = weighted_mean(rows, share)
    spread = math.sqrt(weighted_mean(np.square(signal - mean), share))
    if spread == 0.0:
        raise UnanswerableError("rows are all alike in what tells of their errors")
    p = mean_test(rows, spread, weights=weights, cluster=cluster, exact=True)  # rows permuted
    error = standard_error(rows - slope, weights, cluster)

    def ratio(at: float) -> float:
        return math.exp(size(mean + at) - size(mean - at))

    n = float(len(rows)) if weights is None else weights.effective_n
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
    below: npt.NDArray[np.bool_],
    above: npt.NDArray[np.bool_],
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
    count = [float(np.sum(each if share is None else each * share)) for each in (below, above)]
    details = {"below": count[0], "above": count[1]}
    total = sum(count)
    size = math.sqrt(weighted_mean(np.square(rows), share))
    if not total:
        p = math.nan
    elif cluster is None and (weights is None or weights.kind == "frequency"):
        p = float(binomial_test(count[0], total, 0.5))
    else:
        p = mean_test(rows, size, weights=weights, cluster=cluster)
    n = float(len(rows)) if weights is None else weights.effective_n
    chance = Z_95 * size / math.sqrt(n) * wider_by(rows - value, weights, cluster)
    found = Estimate(value, rows - value, p=p, null_lower=-chance, null_upper=chance)
    return replace(found, details=details)
