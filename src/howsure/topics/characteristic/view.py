"""The characteristics curve of an evaluation set: its bands and its points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, number
from howsure.core.records import (
    UNIT,
    Axis,
    Companion,
    Curve,
    Direction,
    Layout,
    Notion,
    Record,
    ResultTable,
    Zone,
)
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, small, span
from howsure.engine.metric import (
    BY_UNIT,
    MISS_RANGE,
    POSITIVE,
    Array,
    Metric,
    MissRange,
    Question,
    Topic,
    in_words,
    statistic,
)
from howsure.predictions import Intervals
from howsure.stats.estimate import Z_95, Estimate, mean_statistic, quantile_statistic
from howsure.topics.characteristic.bands import (
    SUMS,
    Bands,
    YAxis,
    checked_bands,
    of_bands,
    whole_area,
    whole_gain,
)
from howsure.topics.characteristic.curve import CharacteristicCurve, curve_of
from howsure.topics.characteristic.operating import Cost, OperatingPoint
from howsure.topics.characteristic.reference import compared
from howsure.topics.characteristic.trace import AreaRequest, Reading, axes_needed, gain_of

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View


class Areas:
    """The curve, that of a constant band, and areas of both with their influence, made once."""

    def __init__(self, bands: Bands) -> None:
        axes = axes_needed("bandwidth", "miss_rate")
        self.curve = curve_of(bands, "bandwidth", "miss_rate", axes)
        self.flat = self.curve.flat()
        self._bands = {False: bands, True: self.flat.bands}
        self._scale = {flat: band.critical() for flat, band in self._bands.items()}
        self._edges: dict[tuple[bool, float], tuple[Estimate, Estimate]] = {}

    def partial(self, flat: bool, miss_range: MissRange, reading: Reading) -> Estimate:
        """Area where the miss rate is in a range.

        Up to a share s, with K the scale that s of the rows exceed, it is c·mean (k − K)₊ under the
        curve, and s·c·K more to its left. A range is the difference of two such areas.
        """
        bands = self._bands[flat]
        width = bands.half_width
        half = float(np.average(width, weights=bands.weights))
        low, high = (self._up_to(flat, share, reading) for share in miss_range)
        value = high.value - low.value
        if high.influence is None or low.influence is None:
            return Estimate(half * value)
        influence = half * (high.influence - low.influence) + value * (width - half)
        return Estimate(half * value, influence)

    def _up_to(self, flat: bool, share: float, reading: Reading) -> Estimate:
        """The area up to a share of misses, per unit of the mean half width."""
        scale, weights = self._scale[flat], self.curve.bands.weights
        if share <= 0.0:
            return Estimate(0.0, np.zeros(len(scale)))
        if share >= 1.0:
            return mean_statistic(scale, weights)
        if (flat, share) not in self._edges:
            edge = quantile_statistic(scale, 1.0 - share, weights=weights)
            tail = mean_statistic(np.maximum(scale - edge.value, 0.0), weights)
            self._edges[flat, share] = edge, tail
        edge, tail = self._edges[flat, share]
        to_the_left = reading == "left"
        value = tail.value + (share * edge.value if to_the_left else 0.0)
        if edge.influence is None or tail.influence is None:
            return Estimate(value)
        return Estimate(value, tail.influence - (0.0 if to_the_left else share) * edge.influence)


def area_statistic(areas: Areas, outside: IntArray) -> Estimate:
    """Exact area under the curve (AUUCC), in units of y; lower is better."""
    estimate = of_bands(whole_area, areas.curve.bands, outside)
    if math.isinf(estimate.value):
        return replace(estimate, reason=areas.curve.area().reason)
    if len(outside):
        return replace(estimate, reason=f"{_outside(outside)}; midpoints replace these points")
    return estimate


def gain_statistic(areas: Areas, outside: IntArray) -> Estimate:
    """How much smaller the area is than a constant band's, in percent; higher is better."""
    if len(outside):
        return Estimate(math.nan, reason=f"{_outside(outside)}, where no scale is defined")
    estimate = of_bands(whole_gain, areas.curve.bands, outside)
    if math.isnan(estimate.value):
        return replace(estimate, reason=gain_of(areas.curve.area(), areas.flat.area()).reason)
    return estimate


def partial_gain_statistic(
    areas: Areas, outside: IntArray, miss_range: MissRange, *, reading: Reading
) -> Estimate:
    """The gain over a range of miss rates.

    Where a range begins and ends hangs on the order of the rows, so no sums over rows give it.
    """
    if len(outside):
        return Estimate(math.nan, reason=f"{_outside(outside)}, where no scale is defined")
    details: dict[str, str | float] = {"convention": "exact", "reading": reading}
    details["miss_range"] = f"{miss_range[0]:g} to {miss_range[1]:g}"
    bands = areas.curve.bands
    if bands.one_width:
        none = np.zeros(len(bands))
        return Estimate(0.0, none, reason="every row has the same width", details=details)
    request = AreaRequest(y_range=miss_range, reading=reading)
    gain = gain_of(areas.curve.area_by(request), areas.flat.area_by(request))
    if math.isnan(gain.value):
        return Estimate(math.nan, reason=gain.reason)
    details |= {"area": gain.area.value, "constant_area": gain.constant.value}
    model, constant = (areas.partial(flat, miss_range, reading) for flat in (False, True))
    influence = None
    if model.influence is not None and constant.influence is not None:
        ratio = model.value / constant.value
        influence = -100.0 * (model.influence - ratio * constant.influence) / constant.value
    return Estimate(gain.value, influence, details=details)


def _outside(rows: IntArray) -> str:
    return f"the point is outside its interval in {len(rows):,} rows (first at row {rows[0]:,})"


def bands_of(view: View, _: float) -> Bands:
    """The intervals nearest to 90 % as bands about the point forecast."""
    evalset = view.evalset
    lower, upper, _ = _ends(view)
    point = view.get("point")
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise UnanswerableError("some intervals are unbounded, so their bands cannot be scaled")
    if not (lower < upper).any():
        raise UnanswerableError("every interval has width 0, so none can be scaled")
    weights = evalset.weights
    return checked_bands(
        evalset.y,
        point,
        lower,
        upper,
        weights=evalset.multiplicities,
        weights_kind="frequency" if weights is None else weights.kind,
        outside="recentre",
    )


def characteristic_view(view: View, _: float = math.nan) -> CharacteristicCurve:
    """The bandwidth–miss-rate curve of these bands."""
    return curve_of(view.get("bands"), "bandwidth", "miss_rate")


def _areas(view: View, _: float) -> Areas:
    return Areas(view.get("bands"))


def recentred_rows(view: View, _: float) -> IntArray:
    """Rows whose point lies outside its interval: the curve has the midpoint in its place."""
    lower, upper, _ = _ends(view)
    point = view.get("point")
    return np.flatnonzero((point < lower) | (point > upper))


def _miss_range(view: View, _: float) -> MissRange:
    return view.miss_range


def traced_coverage(view: View) -> float:
    """The nominal coverage of the intervals that the curve scales; NaN where unknown."""
    return _ends(view)[2]


def _ends(view: View) -> tuple[FloatArray, FloatArray, float]:
    for prediction in view.evalset.predictions:
        if isinstance(prediction, Intervals):
            nearest = int(np.argmin(np.abs(np.array(prediction.coverages or (0.9,)) - 0.9)))
            coverage = prediction.coverages[nearest] if prediction.coverages else math.nan
            return prediction.lower[:, nearest], prediction.upper[:, nearest], coverage
    reasons = []
    for coverage in (0.9, 0.8, 0.5):
        try:
            return view.get("lower", coverage), view.get("upper", coverage), coverage
        except UnanswerableError as error:
            reasons.append(str(error))
    raise UnanswerableError(reasons[0])


def characteristic_curves(view: View, coverages: Sequence[float] = ()) -> list[Curve]:
    """The curve against misses and against the deficit, the constant band's, the isocost line."""
    curve: CharacteristicCurve = view.get("characteristic")
    constant, model = curve.constant(), view.evalset.model
    curves = []
    for name, y_axis in _DRAWN_AGAINST.items():
        for ending, drawn_curve in (("", curve), ("_constant", constant)):
            on = drawn_curve.on(x="bandwidth", y_axis=y_axis)
            drawn = on.drawn(300, model=model, reference=False)
            curves.append(replace(drawn, name=name + ending, notes=on.area().reason))
    return [
        *curves,
        *_part_curve(curve, view.miss_range, model),
        *_isocost(curve, coverages, model),
    ]


_DRAWN_AGAINST: dict[str, YAxis] = {
    "characteristic": "miss_rate",
    "characteristic_deficit": "deficit",
}


def _part_curve(curve: CharacteristicCurve, miss_range: MissRange, model: str) -> list[Curve]:
    """The part of the curve whose areas are told, where a range of miss rates was asked for."""
    if miss_range == MISS_RANGE:
        return []
    ends = np.array(miss_range[::-1])
    x = np.array([curve.at(miss_rate=end).bandwidth for end in ends])
    return [Curve(name="characteristic_part", x=x, y=ends, model=model)]


def _isocost(curve: CharacteristicCurve, coverages: Sequence[float], model: str) -> list[Curve]:
    """The line along which the interval score is the least that scaling can reach."""
    stated = [coverage for coverage in coverages if not math.isnan(coverage)]
    coverage = min(stated, key=lambda stated_coverage: abs(stated_coverage - 0.9), default=0.9)
    cost = _interval_cost(curve, coverage)
    if not (math.isfinite(cost.cost) and cost.cost > 0):
        return []
    ends = np.array([0.0, cost.cost / cost.x_weight])
    notes = (
        f"Along the line the interval score at {coverage:.4g} is {cost.cost:.4g}, the least that "
        f"scaling can reach (k = {cost.knob:.3g}); as predicted it is {cost.cost_now:.4g}."
    )
    line = np.maximum(cost.isocost(ends), 0.0)
    return [Curve(name="characteristic_isocost", x=ends, y=line, model=model, notes=notes)]


def _interval_cost(curve: CharacteristicCurve, coverage: float) -> Cost:
    """The cost that is the mean interval score."""
    return curve.on(x="bandwidth", y_axis="deficit").cost(coverage=coverage)


def operating_points(evaluation: Evaluation) -> list[ResultTable]:
    """Where the model stands, where it should, and where its interval score would be least."""
    view = evaluation.view
    curve: CharacteristicCurve = view.get("characteristic")
    points: list[tuple[str, OperatingPoint, str]] = [("as predicted", curve.at(), "")]
    for coverage in evaluation.coverages:
        if math.isnan(coverage):
            continue
        wanted = curve.at(miss_rate=1.0 - coverage)
        promise = wanted.conformal
        note = promise.reason or (
            f"a fresh row is covered with probability {promise.coverage:.4f} on average over "
            f"such tables, and at least {promise.coverage_lower:.4f} in {promise.confidence:.0%}"
        )
        points.append((f"miss rate {1.0 - coverage:.3g}", wanted, note))
        cost = _interval_cost(curve, coverage)
        if math.isfinite(cost.knob):
            note = f"interval score {cost.cost:.4g}, now {cost.cost_now:.4g}"
            name = f"least interval score at {coverage:.3g}"
            points.append((name, curve.at(knob=cost.knob), note))
    measured = [point for _, point, _ in points]
    columns = {
        "point": np.array([name for name, _, _ in points], dtype=object),
        "k": np.array([point.knob for point in measured]),
        "bandwidth": np.array([point.bandwidth for point in measured]),
        "miss_rate": np.array([point.miss_rate for point in measured]),
        "excess": np.array([point.excess for point in measured]),
        "deficit": np.array([point.deficit for point in measured]),
        "note": np.array([note for _, _, note in points], dtype=object),
    }
    notes = "k multiplies each row's bands about its point forecast; 1 leaves them as they are."
    model = view.evalset.model
    return [ResultTable(name="characteristic_points", columns=columns, model=model, notes=notes)]


_entry = partial(
    Metric, question=Question.TRADE, source="Navrátil et al. 2021, section 2.2", notion=Notion.LOCAL
)


def _partial_gain(*, reading: Reading, **words: Any) -> Metric:
    """A gain over the miss rates of `View.miss_range`, by one reading of a partial area."""
    return _entry(
        **words,
        direction=Direction.HIGHER,
        units="%",
        forms=(
            statistic(
                partial_gain_statistic,
                "areas",
                "recentred_rows",
                "miss_range",
                weighted=False,
                reading=reading,
            ),
        ),
        merges="rows",
        standard_normal=0.0,
        bounds=(-math.inf, 100.0),
    )


_ENTRIES = (
    _entry(
        name="auucc",
        title="Area under the characteristics curve (AUUCC)",
        synonyms=(
            "UCC",
            "UCC area",
            "uncertainty characteristics curve",
            "area under the uncertainty characteristics curve",
        ),
        meaning="Mean half-width needed, averaged over all miss rates; the exact step area.",
        formula="mean z · mean k, with k the scale that captures a row",
        direction=Direction.LOWER,
        units="y",
        forms=(statistic(area_statistic, "areas", "recentred_rows", weighted=False),),
        laws=BY_UNIT,
        standard_normal=0.7979,
        bounds=POSITIVE,
        beware=(
            "Intervals are rescaled, so their own coverage is not assessed. If models have "
            "different forecasts, areas mix forecast errors and widths."
        ),
    ),
    _entry(
        name="characteristic_gain",
        title="Gain over a constant width, %",
        synonyms=("AUUCC gain", "UCC gain"),
        meaning="AUUCC against that of a constant band with the mean distances below and above.",
        formula="100 (A_const − AUUCC)/A_const; A_const is the MAE where bands are symmetric",
        direction=Direction.HIGHER,
        units="%",
        forms=(statistic(gain_statistic, "areas", "recentred_rows", weighted=False),),
        standard_normal=0.0,
        bounds=(-math.inf, 100.0),
        beware=(
            "It is not a proper score: a correctly specified model gains about 0 %, and one with "
            "shrunken widths more. Compare it with the gain of a perfect model."
        ),
    ),
    _partial_gain(
        name="characteristic_partial_gain",
        title="Gain at low miss rates, %",
        synonyms=("partial AUUCC gain", "partial gain"),
        meaning="Gain by the area under the curve at miss rates up to 20 %, or in `miss_range`.",
        formula="100 (A_const − A)/A_const, areas under the curve where a ≤ ρ ≤ b",
        reading="under",
        key_number=10,
        beware="Report the range of miss rates with the number.",
    ),
    _partial_gain(
        name="characteristic_left_gain",
        title="Bandwidth saved at low miss rates",
        synonyms=("partial gain left of the curve",),
        meaning="Gain by the area left of the curve: the mean bandwidth saved at these miss rates.",
        formula="100 (A_const − A)/A_const, A = ∫ x dρ from ρ = a to b",
        reading="left",
        beware="Report the range of miss rates with the number.",
    ),
)

_CURVE = Layout(
    order=6,
    question="How much width does a lower miss rate cost?",
    title="Uncertainty characteristics curve",
    reading=(
        "All intervals are scaled from zero width to wide enough for every row; lower is better. "
        "Where the constant band is lower, adaptive widths do not help."
    ),
    x=Axis(title="Mean half-width (bandwidth)", zero=True),
    y=Axis(title="Miss rate", kind="percent", domain=UNIT),
    data="the model's band",
    reference="constant band",
    companions={"characteristic_constant": Companion(words="constant band")},
    points=("characteristic_points", "bandwidth", "miss_rate"),
    zone=Zone(of="miss rate", ends=MISS_RANGE, curve="characteristic_part"),
    tail=0.01,
)


# ---- what is concluded of varying widths: what they gain over a constant band --------------------


def _is_loss(record: Record) -> bool:
    """Whether it is the partial gain, and one that a right model of few members may lose too."""
    return record.metric == "characteristic_partial_gain" and record.value < 0


def _trade(case: Case) -> Draft:
    low, overall = case.get("characteristic_partial_gain"), case.get("characteristic_gain")
    if not low.standard_error > 0:
        raise UnanswerableError("every row has the same width")
    p = float(special.stdtr(case.freedom, low.value / low.standard_error))
    if _is_loss(low) and low.null_lower < low.null_upper:
        spread = (low.null_upper - low.null_lower) / (2.0 * Z_95)
        p = max(p, float(special.ndtr((low.value - low.null) / spread)))
    return Draft(
        effect=low.value / 100.0,
        lower=low.lower / 100.0,
        upper=low.upper / 100.0,
        p=p,
        n=low.n,
        good=low.lower > 0,
        facts={"record": low, "whole": overall},
    )


def _trade_words(draft: Draft, finding: Finding) -> Words:
    low, overall = draft.facts["record"], draft.facts["whole"]
    start, end = map(float, str(low.options["miss_range"]).split(" to "))
    where = f"miss rates {in_words((start, end))}"
    more = f"Over all miss rates, adaptive widths {_against(overall)}."
    if finding.state == "undecided":
        sentence = f"Adaptive widths show no significant gain over a constant width ({where})"
        return Words(f"{sentence}: {fixed(low.value, 1)} %{span(low)}", more=more)
    interval = span(low, times=math.copysign(1.0, low.value)).strip(" ()")
    if interval and low.value > -_PERCENT:
        where += f"; interval {interval}"
    sentence = f"Adaptive widths {_against(low)} ({where})"
    return Words(sentence, "a constant width is better", "they help", more)


def _against(gain: Record) -> str:
    if gain.value <= -_PERCENT:
        factor = number(1.0 - gain.value / _PERCENT, 2)
        return f"are worse than a constant width by a factor of {factor}"
    way = "beat a constant width" if gain.value >= 0 else "are worse than a constant width"
    return f"{way} by {small(abs(gain.value), 1)} %"


# A gain of −100 % is twice the area: from there a factor reads better than a percentage.
_PERCENT = 100.0


FINDINGS = (
    FindingQuestion(
        id="trade",
        asked="Do adaptive widths help?",
        label="Adaptive widths",
        unit="ratio − 1",
        draft=_trade,
        words=_trade_words,
        tolerance=0.02,
        margin=math.nan,
        measures=("characteristic_partial_gain", "characteristic_gain"),
        name="the trade-off of width and coverage",
        needs="Needed for widths: inputs that separate easy rows from hard ones.",
        sought="gain",
        reads_null=_is_loss,
        healed="aimed",
    ),
)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("bands", bands_of),
        Array("characteristic", characteristic_view, sorts=True),
        Array("areas", _areas),
        Array("recentred_rows", recentred_rows, predicted=True),
        Array("miss_range", _miss_range, predicted=True),
    ),
    curves=(lambda found, _: characteristic_curves(found.view, found.coverages),),
    tables=(operating_points,),
    sums=SUMS,
    compared=compared,
    findings=FINDINGS,
    label="Widths",
    layouts={
        "characteristic": _CURVE,
        "characteristic_deficit": Layout(
            order=7,
            question="Would scaling the intervals improve their score?",
            title="Half-width against deficit",
            reading=(
                "The interval score is constant along the straight line and worse above it. The "
                "curve touches the line at the scale with the best score."
            ),
            x=Axis(title="Mean half-width (bandwidth)", zero=True),
            y=Axis(title="Deficit", zero=True),
            data="the model's band",
            reference="constant band",
            companions={
                "characteristic_deficit_constant": Companion(words="constant band", crowd=False),
                "characteristic_isocost": Companion(words="equal interval score", dashed=True),
            },
            points=("characteristic_points", "bandwidth", "deficit"),
            tail=0.01,
        ),
        "characteristic_curve": _CURVE,
    },
    titles={"characteristic_points": "Operating points"},
)
