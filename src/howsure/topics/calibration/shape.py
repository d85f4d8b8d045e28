"""The shape of an evaluation set's errors: components of its PIT, its widths, its two sides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, row_blocks
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.formats import number, percent
from howsure.core.records import Direction, Notion, Record
from howsure.core.text import capitalized
from howsure.core.times import Chronology
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
from howsure.engine.metric import (
    Array,
    Laws,
    Metric,
    Question,
    Sums,
    Topic,
    itself,
    stated,
    statistic,
)
from howsure.predictions import Distribution, Quantiles, Samples
from howsure.stats.ecdf import cell_polynomials, legendre
from howsure.stats.estimate import Z_95, Estimate, weighted_mean
from howsure.stats.moments import Joint
from howsure.topics.calibration.components import (
    ONE_WIDTH,
    STEP_OF_CELL_SLOPE,
    STEP_OF_SLOPE,
    Components,
    Move,
    Place,
    Polynomials,
    Right,
    by_normal_scores,
    cell_of,
    count_rows,
    exchanged_response,
    miss_imbalance,
    over_cells,
    over_jumps,
    pit_components,
    pooled_blocks,
    scale_of,
    width_rank,
    width_response,
)

if TYPE_CHECKING:
    from howsure.engine.view import View

# 20,000 rows fit a shift and a scale to .7 and .5 % of an sd.
MAX_ROWS_OF_FIT = 20_000
"""Rows that shift and scale are fitted on; the components are those of all rows."""
# A smooth density has one slope at both steps; 1.2 leaves room for curvature. Not tuned.
MAX_RATIO_OF_SLOPES = 1.2
"""How many times the slope of a step that of a fifth of it is, past which y is not moved."""
# Chosen by hand; not tuned. Higher, counts or rounded y would be moved by shifts that they do not
# have.
MAX_SHARE_OF_TIES = 0.01
"""Share of rows whose y equals a member or quantile, past which ties are not mere rounding."""
# Rows that stand for all in the variance of a right model's component: it is an average over them.
_DRAWN_ROWS = 1_000
# A null that is smaller is 0 but for the rounding of claims.
_NULL_ROUNDING = 1e-9


def _components(view: View, _: float) -> Components:
    fitted_rows = view.take_at_most(MAX_ROWS_OF_FIT)
    placed: Placed = view.get("placed")
    evalset = view.evalset
    return pit_components(
        placed.place,
        placed.polynomials,
        weights=evalset.weights,
        cluster=evalset.units,
        fit_on=None if fitted_rows is view else _placed(fitted_rows, placed).place,
        fit_weights=fitted_rows.evalset.multiplicities,
        cells=placed.cells,
        right=_right(view, placed),
    )


@frozen
class Placed:
    """Where y lies in its prediction, and the polynomials of such places."""

    place: Place
    polynomials: Polynomials
    cells: FloatArray | None = None
    table: FloatArray | None = None
    jumps: bool = False
    by_scores: bool = False  # whether shift and scale are those of normal scores, as y is not moved
    exchange: Callable[[float, float, slice], tuple[FloatArray, FloatArray]] | None = None
    """Of some rows the members with y, and φ_2 of each in rising order, were it y."""


def _placed(view: View, whole: Placed | None = None) -> Placed:
    """By the prediction that knows most; of a part of the rows in the way of the `whole`."""
    y = view.evalset.y
    distribution, samples = view.find_prediction(Distribution), view.find_prediction(Samples)
    if distribution is not None:
        view.note_source("components", distribution.kind)
        if distribution.discrete:
            ends = np.stack([view.get("cdf_left"), view.get("cdf")])
            return Placed(by_normal_scores(ends), over_jumps, jumps=True, by_scores=True)
        levels = special.ndtr([-1.0, 0.0, 1.0])  # one at a time, for columns of three are slow
        low, middle, high = (distribution.quantile(level)[:, 0] for level in levels)
        unit = (high - low) / 2.0

        def moved(b: Move, k: Move) -> FloatArray:
            return distribution.cdf(middle + (y - middle - b * unit) / k)

        if _steep(moved, legendre, len(y), STEP_OF_SLOPE) if whole is None else whole.by_scores:
            return Placed(by_normal_scores(view.get("cdf")), legendre, by_scores=True)
        return Placed(moved, legendre)
    if samples is not None and samples.size > 1:
        view.note_source("components", samples.kind)
        members, size = samples.sorted_samples, samples.size
        cells = np.full(size + 1, 1.0 / (size + 1))
        table = cell_polynomials(cells)
        centre, unit = samples.point(), samples.sd()
        plain = Placed(
            partial(cell_of, members, y, centre, unit), lambda at: table[:, at], cells, table
        )
        by_scores = (
            whole.by_scores
            if whole is not None
            else (
                _tied(members, y)
                or _steep(plain.place, plain.polynomials, len(y), STEP_OF_CELL_SLOPE)
            )
        )
        if by_scores:
            ends = np.stack([(members < y[:, None]).sum(1), (members <= y[:, None]).sum(1) + 1])
            position = by_normal_scores(ends / (size + 1.0))
            means = partial(over_cells, table, cells)

            def pooled(b: float, k: float, rows: slice) -> tuple[FloatArray, FloatArray]:
                values = np.sort(np.column_stack([members[rows], y[rows]]), axis=1)
                second = means(pooled_blocks(values).reshape(2, -1))[1]
                return values, second.reshape(values.shape)

            return Placed(
                position, means, cells, table, jumps=True, by_scores=True, exchange=pooled
            )

        def together(b: float, k: float, rows: slice) -> tuple[FloatArray, FloatArray]:
            moved = centre[rows] + (y[rows] - centre[rows] - b * unit[rows]) / k
            return np.column_stack([members[rows], moved]), table[1]

        return replace(plain, exchange=together)
    quantile_table = view.find_prediction(Quantiles)
    if quantile_table is None:
        lacking = "the table has no distributions, samples or quantiles"
        raise UnanswerableError(lacking if samples is None else "one sample gives no spread")
    view.note_source("components", quantile_table.kind)
    levels, values = quantile_table.levels, quantile_table.values
    if len(levels) < 2:
        raise UnanswerableError("one quantile gives no spread")
    if whole is None and _tied(values, y):
        raise UnanswerableError(
            "y often equals a predicted quantile, where quantiles define no probability"
        )
    cells = np.diff(np.r_[0.0, levels, 1.0])
    table = cell_polynomials(cells)
    centre = values[:, int(np.argmin(np.abs(levels - 0.5)))]
    unit = (values[:, -1] - values[:, 0]) / np.ptp(special.ndtri(levels[[0, -1]]))
    position = partial(cell_of, values, y, centre, unit)
    return Placed(position, lambda at: table[:, at], cells, table)


def _steep(place: Place, polynomials: Polynomials, n: int, step: float) -> bool:
    """Whether the PIT moves ever faster the less y is moved: its density is infinite at an end.

    Its mean then has no slope there, by which a shift could be told from a fault of shape. Of an
    exponential law, whose density is finite, the slope of a fifth of the step is 1.1 times that of
    the step, of a χ²₁ 1.5 times.
    """

    def slope(step: float) -> float:
        ahead, behind = (polynomials(place(b, 1.0))[0].mean() for b in (step, -step))
        return float(ahead - behind) / step

    wide = slope(step)
    return wide != 0.0 and slope(step / 5.0) / wide > MAX_RATIO_OF_SLOPES + 1.0 / math.sqrt(n)


def _tied(edges: FloatArray, y: FloatArray) -> bool:
    """Whether y equals members or quantiles more often than rounding makes it."""
    return bool(np.mean((edges == y[:, None]).any(axis=1)) > MAX_SHARE_OF_TIES)


def _right(view: View, found: Placed) -> Right | None:
    """The polynomials under a right model; None where these are orthonormal and continuous."""
    if not found.jumps:
        if found.cells is None or found.table is None:
            return None
        return Right(found.table[:, None], found.cells[None])
    drawn_rows = view.take_at_most(_DRAWN_ROWS)
    distribution = drawn_rows.find_prediction(Distribution)
    if distribution is not None:
        ends, shares = _outcomes(distribution)
    else:
        members = drawn_rows.prediction(Samples).sorted_samples
        ends = pooled_blocks(np.sort(np.c_[members, drawn_rows.evalset.y], axis=1))
        shares = np.full(ends.shape[1:], 1.0 / ends.shape[2])
    values = found.polynomials(ends.reshape(2, -1)).reshape(-1, *shares.shape)
    weights = drawn_rows.evalset.weights
    return Right(values, shares, None if weights is None else weights.values, drawn_rows is view)


def _outcomes(distribution: Distribution) -> tuple[FloatArray, FloatArray]:
    """Jumps of the PIT at 61 quantiles, and shares of [0, 1] that each stands for.

    Shares are exact where the quantiles visit neighbouring values; between values that they skip,
    the gap is halved.
    """
    values = distribution.quantile(special.ndtr(np.linspace(-5.0, 5.0, 61)))
    n, k = values.shape
    law = distribution.take(np.repeat(np.arange(n), k))
    low, high = (at(values.ravel()).reshape(n, k) for at in (law.cdf_left, law.cdf))
    between = (high[:, :-1] + low[:, 1:]) / 2.0
    cuts = np.c_[np.zeros(n), between, np.ones(n)]
    return np.stack([low, high]), np.maximum(np.diff(cuts, axis=1), 0.0)


def _response(view: View, coverage: float) -> Estimate:
    """Of widths beside what shift and scale all rows have in common, where they are finite."""
    view = view.bounded()
    evalset, uncertainty = view.evalset, view.get("uncertainty")
    share = evalset.multiplicities
    try:
        rank = width_rank(uncertainty, share)
    except UnanswerableError as error:
        return Estimate(math.nan, reason=str(error), details={ONE_WIDTH: "yes"})
    judge = partial(width_response, weights=evalset.weights, cluster=evalset.units)
    try:
        placed: Placed = view.get("placed")
        fitted: Components = view.get("components")
    except UnanswerableError:
        nominal = view.get("coverage", coverage)
        missed = view.get("claim", coverage) - view.get("covered", coverage) + (1.0 - nominal)
        return judge(missed, rank(uncertainty), partial(_size_by_misses, nominal))
    shift, scale = 0.0, 1.0
    tied = placed.jumps and placed.exchange is not None  # such values are exchanged as they are
    if not math.isnan(fitted.spread.value) and not tied:
        shift, scale = fitted.bias.value, fitted.spread.value
    signal = placed.polynomials(placed.place(shift, scale))[1].copy()  # the others are let go
    expected: FloatArray | float = 0.0
    if placed.exchange is not None and placed.cells is not None:
        expected = np.empty(evalset.n)
        for rows in row_blocks(evalset.n, len(placed.cells)):
            expected[rows] = exchanged_response(*placed.exchange(shift, scale, rows), rank)
    return judge(signal, rank(uncertainty), _size_by_spread, expected=expected)


def _size_by_spread(second: float) -> float:
    return math.log(scale_of(second))


def _size_by_misses(nominal: float, missed: float) -> float:
    # Where all or none are missed the size would be infinite or 0, which has no log.
    half = special.ndtri(min(max(1.0 - missed / 2.0, 0.5 + 1e-6), 1.0 - 1e-9))
    return math.log(float(special.ndtri(0.5 + nominal / 2.0)) / float(half))


def _imbalance(view: View, coverage: float) -> Estimate:
    evalset, units = view.evalset, view.evalset.units
    if isinstance(units, Chronology):
        units = units.hiding(units.side)
    estimate = miss_imbalance(*_sides(view, coverage), weights=evalset.weights, cluster=units)
    skew, variance = _claimed_sides(view, coverage)
    null, spread = (weighted_mean(column, evalset.multiplicities) for column in (skew, variance))
    n = count_rows(evalset.n, evalset.weights)
    return _beside_claims(estimate, null, spread, n)


def _imbalance_of_sums(sums: Joint) -> tuple[Estimate, FloatArray]:
    """As of three rows, below, above and inside, which stand for all."""
    below, above, null, spread = (float(mean) for mean in sums.mean)
    counts = np.round(np.array([below, above, 1.0 - below - above]) * sums.mass)
    side = np.arange(3)
    estimate = miss_imbalance(side == 0, side == 1, weights=Weights(counts))
    estimate = replace(estimate, value=above - below, influence=None)
    return _beside_claims(estimate, null, spread, sums.mass), np.array([-1.0, 1.0])


def _sides(view: View, coverage: float) -> tuple[BoolArray, BoolArray]:
    """Which rows lie below and above their intervals."""
    lower, upper = view.get("ends", coverage)
    if np.isinf(lower).all() or np.isinf(upper).all():
        raise UnanswerableError("the intervals are one-sided")
    return np.asarray(view.evalset.y < lower), np.asarray(view.evalset.y > upper)


def _claimed_sides(view: View, coverage: float) -> tuple[FloatArray, FloatArray]:
    """What rows claim of misses above less below, and the variance of that; none of a range."""
    try:
        view.get("claim", coverage)  # one number, no range
        claims = view.get("claims", coverage)
    except UnanswerableError:
        none = np.zeros(view.evalset.n)
        return none, none
    skew = (claims["above"] - claims["below"])[:, 0]
    return skew, claims["missed"][:, 0] - np.square(skew)


def _beside_claims(estimate: Estimate, null: float, spread: float, n: float) -> Estimate:
    """With the null of intervals of counts, which miss unequally on their sides."""
    if abs(null) <= _NULL_ROUNDING:
        return estimate
    chance = Z_95 * math.sqrt(spread / n)
    return replace(estimate, null=null, null_lower=null - chance, null_upper=null + chance)


# ---- what is concluded of the predictive distribution --------------------------------------------

# So that a bias is told in mean errors, as people know them.
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
        clause = (
            f"the point forecast is {'below' if low else 'above'} y by "
            f"{number(abs(record.value), 3)} on average, "
            f"{percent(abs(draft.effect), 0)} of its mean error"
        )
    else:
        size = small(abs(record.value), 2, trim=False)
        far = f"{size} {SDS} too {'low' if low else 'high'}"
        if abs(record.value) < 0.005:
            far = f"within 0.01 {SDS} of y"
        clause = f"predictions are {far} on average"
    return Words(capitalized(clause), "they are biased", "bias is small", clause=clause)


def _spread(case: Case) -> Draft:
    record = case.get("pit_spread")
    within = {"skew": 3.0, "tails": 20.0, **since_change(case, "spread")}
    return of_ratio(record, within=within, facts={"record": record})


def _spread_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    times = small(record.value, 2, trim=False)
    clause = f"actual errors are {times} × the predicted spread"
    seen = f"{capitalized(clause)}{span(record, places=2)}"
    way = "small" if draft.effect > 0 else "large"
    return Words(
        seen, f"the predicted spread is too {way}", "the predicted spread is right", clause=clause
    )


def _shape(measure: str, case: Case) -> Draft:
    record = case.get(measure)
    within = {"width": 0.1, "groups": 0.15, "region": 0.15, "drift": 0.2}
    return of_value(record, p=record.p, within=within, facts={"record": record})


def _shape_words(name: str, fault: tuple[str, str], draft: Draft, finding: Finding) -> Words:
    """Of skew or tails; a fault is told by its sign, above 0 first."""
    verb = "is" if name == "Skew" else "are"
    if finding.state == "good":
        farther_end = max(abs(draft.lower), abs(draft.upper))
        return Words(f"{name} {verb} as predicted, to within {points(farther_end)}")
    errors = "Errors in skew" if name == "Skew" else "Errors in the tails"
    seen = f"{errors} shift predicted probabilities by up to {points(draft.effect)}"
    return Words(seen, fault[0 if draft.effect > 0 else 1], more=_outside(draft, finding))


def _outside(draft: Draft, finding: Finding) -> str:
    """What is seen beyond a level at which the fault shows, of a fault alone."""
    options = draft.facts["record"].options
    if finding.state != "bad" or "seen_below" not in options:
        return ""
    low, high = float(options["stated_below"]), 1.0 - float(options["stated_above"])
    below, above = (percent(float(options[f"seen_{side}"])) for side in ("below", "above"))
    return (
        f"Of y, {below} are below the predicted {percent(low)} quantile "
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
            f"Where {draft.where}, errors are {record.value:.2f} × those elsewhere"
        )
        return Words(seen, fault, "constant noise, as predicted")
    wide, narrow = (
        small(float(record.options[name]), 2, trim=False) for name in ("widest", "narrowest")
    )
    seen = (
        f"Actual errors are {wide} × the predicted spread where widths are large, "
        f"{narrow} × where small"
    )
    way = "overreact" if draft.effect < 0 else "react too little"
    clause = f"widths {way} to the size of errors"
    return Words(seen, f"widths {way}", "widths follow the errors", clause=clause)


FINDINGS = (
    FindingQuestion(
        id="bias",
        asked="Are the predictions unbiased?",
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
        asked="Is the predicted spread right?",
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
        asked="Is the predicted skew right?",
        label="Skew",
        draft=partial(_shape, "pit_skew"),
        words=partial(
            _shape_words,
            "Skew",
            ("the upper tail is longer than predicted", "the lower tail is longer than predicted"),
        ),
        measures=("pit_skew",),
        cause="the skew",
    ),
    FindingQuestion(
        id="tails",
        asked="Are the predicted tails right?",
        label="Tails",
        draft=partial(_shape, "pit_tails"),
        words=partial(
            _shape_words,
            "Tails",
            ("tails are heavier than predicted", "tails are lighter than predicted"),
        ),
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
        needs="Needed for widths: inputs that separate easy rows from hard ones.",
        healed="aimed",
    ),
)


# ---- what is measured ----------------------------------------------------------------------------

_PIT = "orthonormal polynomials of the PIT; Neyman 1937, Bera and Ghosh 2002"

_entry = partial(
    Metric,
    question=Question.CALIBRATION,
    source=_PIT,
    direction=Direction.TARGET,
    merges="histogram",
    standard_normal=0.0,
    target=0.0,
    beware=("Faults overlap: check shift, spread, skew and tails together before acting."),
)

_ENTRIES = (
    _entry(
        name="pit_bias",
        title="PIT bias",
        meaning="Shift of y relative to its prediction; above 0 where predictions are too low.",
        formula="b with mean φ_1 = mean φ_2 = 0 at F(m + (y − m − b·s)/k)",
        units="sd",
        forms=(stated("components", "bias"),),
        laws=Laws(reflection="negates"),
        key_number=8,
    ),
    _entry(
        name="pit_spread",
        title="PIT spread",
        meaning=(
            "Actual errors as a multiple of the predicted spread, for any predictive distribution."
        ),
        formula="k with mean φ_1 = mean φ_2 = 0 at F(m + (y − m − b·s)/k)",
        forms=(stated("components", "spread"),),
        standard_normal=1.0,
        target=1.0,
        bounds=(0.0, math.inf),
        key_number=9,
    ),
    _entry(
        name="pit_skew",
        title="PIT skew",
        meaning="How far errors in skew shift a predicted probability; above 0 for a long upper "
        "tail.",
        formula="mean φ_3 · max |∫φ_3|, once shift and scale are taken out",
        forms=(stated("components", "skew"),),
        laws=Laws(reflection="negates"),
    ),
    _entry(
        name="pit_tails",
        title="PIT tails",
        meaning="How far errors in the tails shift a predicted probability; above 0 for heavier "
        "tails.",
        formula="mean φ_4 · max |∫φ_4|, once shift and scale are taken out",
        forms=(stated("components", "tails"),),
    ),
    Metric(
        name="width_response",
        title="Error size at large widths against small",
        question=Question.CALIBRATION,
        meaning=(
            "Ratio of actual error to predicted spread: rows with large widths over rows with "
            "small widths."
        ),
        formula="k(+1)/k(−1), k from φ_2 (or misses) on the width's standardised rank",
        direction=Direction.TARGET,
        forms=(statistic(itself, "width_response", weighted=False),),
        merges="rows",
        per_coverage=True,
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        target=1.0,
        bounds=(0.0, math.inf),
        beware="It compares two halves and misses a fault at intermediate widths.",
    ),
    _entry(
        name="miss_imbalance",
        title="Misses above minus misses below",
        meaning="Share of rows above their interval minus share below; 0 for balanced intervals.",
        formula="mean 1{y > u} − mean 1{y < l}",
        source="definition",
        forms=(statistic(itself, "miss_imbalance", weighted=False),),
        per_coverage=True,
        laws=Laws(reflection="negates"),
        bounds=(-1.0, 1.0),
        merges="sums",
        beware="Balanced misses may still be too frequent on both sides.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("placed", lambda view, _: _placed(view), predicted=True),
        Array("components", _components),
        Array("width_response", _response, per_coverage=True),
        Array("miss_imbalance", _imbalance, per_coverage=True),
    ),
    findings=FINDINGS,
    label="Distribution",
    sums={
        "miss_imbalance": Sums(
            lambda view, c: tuple(side.astype(np.float64) for side in _sides(view, c)),
            _imbalance_of_sums,
            beside=_claimed_sides,
        ),
    },
)
