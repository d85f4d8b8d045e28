"""Whether rows are what they seem: copies, units, marks of missing values, and the like.

Each check takes rows and returns what it found, or None. A check looks at 20,000 rows at most, and
asks for more than a right model shows by chance: none of them says anything of one in 200 tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.labels import Categories
from howsure.engine.autocorrelation import mid_ranks
from howsure.engine.view import KIND_PRIORITY, View, choose_coverages
from howsure.inputs.names import CENSORED, EVENTS, in_words
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Prediction
from howsure.stats.dominance import lowest, places_in_order
from howsure.verdict.copies import (
    CERTAIN_P,
    OTHERS,
    Copies,
    RowFault,
    copies,
    corrected,
    step_of,
)
from howsure.verdict.transformations import (
    RANGE_LARGER,
    PredictedRows,
    find_transformation,
    slope_of,
)

# A fault of all rows shows in far fewer; each check then takes milliseconds.
MOST_ROWS = 20_000


def row_faults(evalset: EvalSet, tau: float = 1.0) -> tuple[RowFault, ...]:
    """All that rows of one model are not, what may be a fault of predictions first.

    Where tau rows in time tell as much as one, sizes of errors are those of rows so far apart.
    """
    repeated = copies([evalset])
    faults = [] if repeated is None else [repeated.fault]
    if not any(isinstance(prediction, LabelSets) for prediction in evalset.predictions):
        faults += filter(None, _check(evalset, repeated, tau))
    for name, looks in _LOOKS_LIKE.items():
        if any(fault.name == name for fault in faults):
            faults = [fault for fault in faults if fault.name not in looks]
    return tuple(sorted(faults, key=lambda fault: not fault.bad))[:_MAX_FAULTS_TOLD]


def _check(evalset: EvalSet, repeated: Copies | None, tau: float) -> Iterator[RowFault | None]:
    seen = far = _find_middles(evalset, repeated)
    if seen is not None and tau > 1.0 and evalset.time is not None:
        order = np.argsort(Categories.checked(evalset.time, "time").codes, kind="stable")
        far = _find_middles(evalset.take(order[:: math.ceil(tau)]), None)
    for rows, checks in ((far, _OF_SIZES), (seen, _OF_ROWS)):
        if rows is not None:
            yield from (check(rows) for check in checks)
    yield corrected(evalset)
    ordered = _rows_in_order(evalset, tau)
    yield None if ordered is None else find_transformation(ordered)


# What a reader can look into at once; one mistake often sets off several checks.
_MAX_FAULTS_TOLD = 3
_LOOKS_LIKE: Mapping[str, tuple[str, ...]] = {
    "exchanged": ("units", "variance", "swapped", "clipped_predictions"),
    "order": ("units", "variance", "swapped", "clipped_predictions"),
    "log": ("units", "variance", "swapped"),
    "units": ("variance", "swapped", "leakage", "multiple"),
    "variance": ("leakage", "rounded", "multiple"),
    "mean_and_sd": ("variance", "leakage", "swapped", "clipped_predictions", "multiple"),
    "leakage": ("clipped", "rounded", "swapped", "multiple"),
    "marks": ("clipped", "clipped_predictions", "swapped", "multiple"),
    "censored": ("swapped",),
    "swapped": ("multiple",),
}
"""What a fault looks like besides, and is not."""


# ---- rows as all other checks see them -----------------------------------------------------------

_SD_LEVELS = tuple(float(level) for level in special.ndtr([-1.0, 0.0, 1.0]))
# Share of distinct values from which on y is measured, not counted. Rounding to three digits
# repeats some values of measured y. By hand; not tuned.
_MIN_SHARE_DISTINCT = 0.9


@frozen
class _Seen:
    """Rows without their copies: y, the middle of its prediction, and half of what covers 68 %."""

    evalset: EvalSet
    y: FloatArray
    centre: FloatArray
    spread: FloatArray  # NaN where only a point was predicted

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def continuous(self) -> bool:
        return len(np.unique(self.y)) >= _MIN_SHARE_DISTINCT * self.n

    @property
    def stated(self) -> bool:
        return bool(np.isfinite(self.spread).all() and (self.spread > 0).all())

    @property
    def discrete(self) -> bool:
        return any(
            isinstance(prediction, Distribution) and prediction.discrete
            for prediction in self.evalset.predictions
        )

    @property
    def off(self) -> FloatArray:
        """Sizes of errors."""
        return np.asarray(np.abs(self.y - self.centre))

    @property
    def inputs(self) -> dict[str, FloatArray]:
        """Those that are numbers."""
        columns = self.evalset.features.items()
        return {name: values for name, values in columns if values.dtype.kind in "biuf"}

    def numbers(self) -> list[FloatArray]:
        """What predictions hold, a column each, shape (n, k)."""
        return [
            values.reshape(self.n, -1)
            for prediction in self.evalset.predictions
            for values in prediction.numbers().values()
        ]

    def fault(self, name: str, rows: BoolArray | None = None, **more: Any) -> RowFault:
        """A fault of some rows, or of all."""
        rows = np.ones(self.n, dtype=np.bool_) if rows is None else rows
        return RowFault(name=name, rows=float(rows.sum()), share=float(rows.mean()), **more)


def _find_middles(evalset: EvalSet, repeated: Copies | None) -> _Seen | None:
    """None where predictions have no middle."""
    if repeated is not None:
        evalset = evalset.take(np.unique(repeated.clusters.codes, return_index=True)[1])
    evalset = View(evalset).take_at_most(MOST_ROWS).evalset
    for kind in KIND_PRIORITY:
        for prediction in evalset.predictions:
            if isinstance(prediction, kind):
                with suppress(UnanswerableError):
                    centre, spread = _middle_and_spread(prediction, evalset)
                    if np.isfinite(centre).all():
                        return _Seen(evalset, evalset.y, centre, spread)
    if evalset.point is None:
        return None
    return _Seen(evalset, evalset.y, evalset.point, np.full(evalset.n, math.nan))


def _middle_and_spread(prediction: Prediction, evalset: EvalSet) -> tuple[FloatArray, FloatArray]:
    if isinstance(prediction, Intervals):
        coverage = choose_coverages(evalset)[-1]
        low, high = prediction.interval(coverage)
        reach = float(special.ndtri((1.0 + coverage) / 2.0))
        return (low + high) / 2.0, (high - low) / 2.0 / reach
    if not prediction.answers("quantile"):
        raise UnanswerableError("it states no quantiles")
    low, middle, high = prediction.quantile(_SD_LEVELS).T
    return middle, (high - low) / 2.0


_FAR = ("coverage", "skew", "tails", "one_sided", "support")
_MOVED = ("bias", "spread")
EVERYTHING: Mapping[str, float] = {OTHERS: math.inf}
# What a share of rows may move that lie far from their prediction, wherever they are: coverage by
# that share, twice it at most; a shift in sds by more, the farther they are. By hand; not tuned.
# Larger explains more faults away.
_EFFECT_BY_SHARE: Mapping[str, float] = {
    **dict.fromkeys(_FAR, 2.0),
    **dict.fromkeys(_MOVED, 8.0),
    **EVERYTHING,
}


# ---- variance ------------------------------------------------------------------------------------

# What is read as the sd, and the power of it that is: of a variance the root, of a root the
# square.
_POWERS = (("variance", 0.5), ("sd", 2.0))
# Mean sizes of errors on the scale of what covers 68 %, from light tails to heavy ones: .73 of a
# uniform law, .80 of a normal one, .92 of t₃, 1.07 of t₂.
_RANGE_OF_MEAN_SIZES = (0.55, 1.1)
# Half and twice the mean size of normal errors, .8: nearer, a spread is off, not another quantity.
_RANGE_OF_STATED = (0.4, 1.6)
# With the checks beside it, seen in at most one of 200 tables of correctly specified models
# (docs/verdict.md, "Rows of correctly specified models").
_MIN_Z_APART = 3.0
# Standard errors that a slope may lie from the one that is looked for: one in 80 is missed.
_MAX_Z_OF_FIT = 2.5
# One-sided 3 in 100,000, as many columns may be looked at.
_MIN_Z = 4.0
# Spreads that vary by less have no slope to tell a power by: below 3,000 rows its error is above
# 1.
_MIN_SD_OF_LOGS = 0.02
# .8, the mean size of normal errors, ± 10 %.
_RANGE_OF_NORMAL_SIZE = (0.72, 0.88)
# Chosen by hand; not tuned. Of fewer rows a mean size of errors is off by more than 14 %.
_MIN_ROWS = 30


def variance(seen: _Seen) -> RowFault | None:
    """A spread whose square root, or square, is that of the errors."""
    if not seen.stated or seen.n < _MIN_ROWS or seen.discrete:
        return None
    size, logs = seen.off, np.log(seen.spread)
    stated = float((size / seen.spread).mean())
    if _RANGE_OF_STATED[0] <= stated <= _RANGE_OF_STATED[1] or (size > 0).sum() < _MIN_ROWS:
        return None
    varies = logs.std() > _MIN_SD_OF_LOGS
    some = size > 0
    slope, off = slope_of(logs[some], np.log(size[some])) if varies else (math.nan, math.nan)
    for read, power in _POWERS:
        ratio = size / np.exp(power * logs)
        mean = float(ratio.mean())
        if varies and abs(slope - power) > _MAX_Z_OF_FIT * off:
            continue
        apart = varies and abs(slope - 1.0) > _MIN_Z_APART * off
        sure = apart and _RANGE_OF_MEAN_SIZES[0] < mean < _RANGE_OF_MEAN_SIZES[1]
        error = float(ratio.std()) / math.sqrt(seen.n)
        low, high = _RANGE_OF_NORMAL_SIZE
        if sure or (low < mean < high and 2.0 * error < high - low):
            return seen.fault(
                "variance",
                bad=sure,
                explains=EVERYTHING if sure else {},
                facts={"read": read, "times": stated / _NORMAL_MEAN_SIZE},
            )
    return None


# Mean size of normal errors, in sds.
_NORMAL_MEAN_SIZE = math.sqrt(2.0 / math.pi)


def _laplace(size: FloatArray, scale: FloatArray) -> FloatArray:
    """Minus the log density of errors of this size, which heavy tails disturb little."""
    positive = np.where(size > 0, scale, 1.0)
    return np.where(size > 0, np.log(positive) + size / positive, 0.0)


# ---- units ---------------------------------------------------------------------------------------

# Mega, kilo, per cent, deci; seconds and minutes in an hour; millimetres and centimetres of an
# inch, inches of a foot, feet of a metre, pounds of a kilogram, the degrees of Fahrenheit,
# kilometres of a mile.
_FACTORS = (1e6, 1e3, 100.0, 10.0, 60.0, 3600.0, 25.4, 12.0, 3.28084, 2.54, 2.20462, 1.8, 1.609344)
# Celsius and Fahrenheit, Celsius and Kelvin.
_SHIFTED = ((1.8, 32.0), (1 / 1.8, -32.0 / 1.8), (1.0, 273.15), (1.0, -273.15))
_CONVERSIONS = (*((f, 0.0) for k in _FACTORS for f in (k, 1 / k)), *_SHIFTED)
# Five rows that all are off by one factor of the list are no chance; three could be.
_MIN_ROWS_OF_GROUP = 5
# Every group is tried with all thirty conversions. Chosen by hand; not tuned: higher takes more
# time.
_MAX_GROUPS = 100
# Half of what sets neighbouring factors of the list apart (1.609 and 1.8 by 11 %) would be 5 %;
# less, as predictions that are off by some per cent are biased, not in another unit.
_MAX_LOG_DISTANCE = 0.03
# A model that is off by ten times is in another unit: then 10 % are near enough.
_SURE_FACTOR = 10.0
# Nine of ten rows must be better for it; a bias alone would not be so one-sided. Not tuned.
_MIN_SHARE_BETTER = 0.9


def units(seen: _Seen) -> RowFault | None:
    """Predictions that are off by a factor between units: of all rows, of one group, or on one
    side of a row.
    """
    fault = _unit_of(seen, np.ones(seen.n, dtype=np.bool_))
    if fault is not None:
        return fault
    for name, column in seen.evalset.groups.items():
        if not 1 < len(column.labels) <= _MAX_GROUPS:
            continue
        for code, label in enumerate(column.labels):
            rows = np.asarray(column.codes == code)
            fault = _unit_of(seen, rows, f"where {name}={label}, predictions")
            if fault is not None:
                return fault
    return _unit_since(seen)


def _unit_since(seen: _Seen) -> RowFault | None:
    """A unit that changes at a row, found on every other row and proven on the rest and on all."""
    names = np.arange(seen.n) if seen.evalset.rows is None else seen.evalset.rows
    if seen.n < 2 * _MIN_ROWS or names.dtype.kind not in "iuf":
        return None
    order = np.argsort(names, kind="stable")
    y, centre = (values[order][::2] for values in (seen.y, seen.centre))
    best, at, after = 0.0, 0, True
    for factor, shift in _CONVERSIONS:
        better = np.sign(np.abs(y - centre) - np.abs(y - factor * centre - shift))
        upto = np.r_[0.0, np.cumsum(better)]
        for sums, side in ((upto[-1] - upto, True), (upto, False)):
            place = int(np.argmax(sums))
            if sums[place] > best:
                best, at, after = float(sums[place]), 2 * place, side
    inside = np.zeros(seen.n, dtype=np.bool_)
    inside[order[at:] if after else order[:at]] = True
    proves = np.zeros(seen.n, dtype=np.bool_)
    proves[order[1::2]] = True
    if not _MIN_ROWS <= inside.sum() <= seen.n - _MIN_ROWS:
        return None
    name = f"{names[order[min(at, seen.n - 1)]]:g}"
    where = f"From row {name} on, predictions" if after else f"Before row {name}, predictions"
    proof = _unit_of(seen, inside & proves, where)
    fault = None if proof is None else _unit_of(seen, inside, where)
    same = fault is not None and proof is not None and fault.facts == proof.facts
    return fault if same else None


def _unit_of(seen: _Seen, rows: BoolArray, where: str = "") -> RowFault | None:
    if rows.sum() < _MIN_ROWS_OF_GROUP:
        return None
    y, centre = seen.y[rows], seen.centre[rows]
    off = np.abs(y - centre)
    large = np.abs(centre) >= np.median(np.abs(centre))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (y / centre)[large & (centre != 0)]
    best: tuple[float, float, float, bool] | None = None
    for factor, shift in _CONVERSIONS:
        converted = np.abs(y - factor * centre - shift)
        size = float(np.median(converted))
        if size > 0.5 * np.median(off) or (converted < off).mean() < _MIN_SHARE_BETTER:
            continue
        near = (_rises_by(y, centre, factor) or None) if shift else _near(ratio, factor)
        if near is not None and (best is None or size < best[0]):
            best = size, factor, shift, near
    if best is None:
        return None
    _, factor, shift, near = best
    if where:  # the others must be right as they are
        stated = seen.off[~rows]
        converted = np.abs(seen.y - factor * seen.centre - shift)[~rows]
        if not (len(stated) and np.median(stated) < np.median(converted)):
            return None
    sure = bool(where) or near or bool(shift)
    finite = all(np.isfinite(numbers).all() for numbers in seen.numbers())
    return seen.fault(
        "units",
        rows,
        bad=sure,
        explains=EVERYTHING if sure else {},
        facts={
            "where": where,
            "factor": factor,
            "shift": shift,
            "multiply": not (shift or where or seen.discrete) and finite,
        },
    )


def _rises_by(y: FloatArray, centre: FloatArray, factor: float) -> bool:
    """Whether y rises with predictions by this factor: one that is but biased does not."""
    if np.ptp(centre) == 0:
        return False
    slope, error = slope_of(centre, y)
    return abs(slope - factor) <= 3.0 * error and slope > 3.0 * error


def _near(ratio: FloatArray, factor: float) -> bool | None:
    """Whether ratios of y to predictions surely are this factor; None where they are not."""
    if len(ratio) < _MIN_ROWS_OF_GROUP // 2 + 1 or not (ratio > 0).all():
        return None
    logs = np.log(ratio) - math.log(factor)
    low, middle, high = np.quantile(logs, [0.25, 0.5, 0.75])
    if high - low > 0.5 * abs(math.log(factor)):
        return None
    error = 0.93 * (high - low) / math.sqrt(len(ratio))
    large = max(factor, 1.0 / factor) >= _SURE_FACTOR
    if abs(middle) > (0.1 if large else _MAX_LOG_DISTANCE) or 2.0 * error > (
        0.1 if large else _MAX_LOG_DISTANCE
    ):
        return None
    return large or abs(middle) + error < 2.0 * _MAX_LOG_DISTANCE / 3.0


# ---- leakage -------------------------------------------------------------------------------------

# Errors ten times smaller than stated are no overestimate of spread. By hand; not tuned: at .2,
# very cautious models would be accused.
_SHARE_OF_LEAKAGE = 0.1
_MAX_RELATIVE_SPREAD = (
    1.5  # stated spreads over that of y itself, past which they are too wide whoever saw y
)
# Nearly all rows, but for some in twenty that a join missed. Not tuned.
_MIN_SHARE_WITHIN = 0.95
# Numbers written with nine digits and read again are equal.
_RELATIVE_ROUNDING = 1e-9


def leakage(seen: _Seen) -> RowFault | None:
    """Errors a tenth of what is stated, predictions that are y, or y among the inputs."""
    if seen.n < _MIN_ROWS or not seen.continuous:
        return None
    too_good = partial(RowFault, name="leakage", bad=True, explains=EVERYTHING)
    off = seen.off
    same = float((off <= _RELATIVE_ROUNDING * np.abs(seen.y)).mean())
    if same > 0.5:
        return too_good(rows=float(round(same * seen.n)), share=same, facts={"same": same})
    low, _, high = np.quantile(seen.y, _SD_LEVELS)
    if seen.stated and np.median(seen.spread) < _MAX_RELATIVE_SPREAD * (high - low) / 2.0:
        size = off / seen.spread
        middle = float(np.median(size))
        if middle < _SHARE_OF_LEAKAGE and (size < 1.0).mean() > _MIN_SHARE_WITHIN:
            return too_good(rows=float(seen.n), share=1.0, facts={"size": middle / 0.6745})
    for name, values in seen.inputs.items():
        missed = _line_misses(values.astype(np.float64), seen)
        if missed < _SHARE_OF_LEAKAGE:
            explained = dict.fromkeys(("region", "ease", "congruence", "width"), math.inf)
            facts = {"column": name, "size": missed}
            return seen.fault("target", explains=explained, facts=facts)
    return None


def _line_misses(values: FloatArray, seen: _Seen) -> float:
    """By how much y, or its logarithm, misses a line in these values, in stated sizes of errors.

    The line is learnt on every other row, and its errors are those of the rest.
    """
    teach = np.arange(seen.n) % 2 == 0
    if np.ptp(values[teach]) == 0:
        return math.inf
    stated = float(np.median(seen.spread) if seen.stated else _RELATIVE_ROUNDING * np.ptp(seen.y))
    errors = []
    for y, scale in ((seen.y, 1.0), *([(np.log(seen.y), seen.y)] if (seen.y > 0).all() else [])):
        slope, _ = slope_of(values[teach], y[teach])
        off = y - y[teach].mean() - slope * (values - values[teach].mean())
        errors.append(float(np.median(np.abs(scale * off)[~teach])))
    return min(errors) / (0.6745 * stated)


# ---- marks of missing values ---------------------------------------------------------------------

# What programs write for a missing value: nines, and powers of ten that are no measurement.
_MARKS = (-9999.0, 9999.0, -999.0, 999.0, -99.0, 99.0, -99999.0, 99999.0, 1e20, -1e20, 1e30, -1e30)
# A normal error is never so large (10⁻¹⁵); one of t₃ is in 1 of 400 rows, and then does not
# repeat.
_MIN_SPREADS_AWAY = 8.0


def marks(seen: _Seen) -> RowFault | None:
    """One extreme value of y, or of predictions, that repeats far from all others."""
    stated = np.isfinite(seen.spread).all()
    for what, values, beside in (("y", seen.y, seen.centre), ("prediction", seen.centre, seen.y)):
        if what == "prediction" and len(np.unique(values)) <= 2:
            continue
        rows = np.zeros(seen.n, dtype=np.bool_)
        mark_values: list[float] = []
        for end in (np.min, np.max, np.min, np.max):
            value = float(end(values[~rows])) if not rows.all() else math.nan
            here = ~rows & (values == value)
            rest = values[~rows & ~here]
            far = value != 0.0
            if stated:
                far = (np.abs(value - beside) > _MIN_SPREADS_AWAY * seen.spread)[here].all()
            if far and _is_mark(value, int(here.sum()), rest):
                mark_values.append(value)
                rows |= here
        if mark_values:
            facts = {"what": what, "values": tuple(mark_values)}
            return seen.fault("marks", rows, explains=_EFFECT_BY_SHARE, facts=facts)
    return None


def _is_mark(value: float, count: int, rest: FloatArray) -> bool:
    """Whether a value that repeats lies far from the rest."""
    known = value in _MARKS
    if count < (2 if known else 3) or len(rest) <= count or len(np.unique(rest)) < 5:
        return False
    gap = max(float(rest.min()) - value, value - float(rest.max()))
    return bool(gap >= (0.5 if known else 1.0) * np.ptp(rest))


# ---- clipped values ------------------------------------------------------------------------------

# Rows at an end without which nothing was clipped, as a number and a share, and the share that
# predictions may expect there. Chosen by hand; not tuned. Lower shares would name ties of rounded
# y.
_MIN_ROWS_AT_END = 5
_MIN_SHARE_AT_END = 0.02
_MAX_SHARE_STATED = 0.05


def clipped(seen: _Seen) -> RowFault | None:
    """Many y at the least or the largest value, where predictions have no such end."""
    if not seen.evalset.predictions or seen.discrete:
        return None
    ends: list[tuple[float, bool]] = []
    rows = np.zeros(seen.n, dtype=np.bool_)
    for value, high in ((float(seen.y.min()), False), (float(seen.y.max()), True)):
        here = seen.y == value
        shares = (float((table == value).any(axis=1).mean()) for table in seen.numbers())
        stated = max(shares, default=0.0)
        if (
            here.sum() >= max(_MIN_ROWS_AT_END, _MIN_SHARE_AT_END * seen.n)
            and stated < _MAX_SHARE_STATED
        ):
            ends.append((value, high))
            rows |= here
    between = seen.y[~rows]
    if not ends or len(np.unique(between)) < max(
        _MIN_SHARE_DISTINCT * len(between), _MIN_ROWS_AT_END
    ):
        return None
    return seen.fault("clipped", rows, explains=_EFFECT_BY_SHARE, facts={"ends": tuple(ends)})


def clipped_predictions(seen: _Seen) -> RowFault | None:
    """Many predictions at their least or largest value, with y beyond it."""
    for value, sign in ((float(seen.centre.min()), -1.0), (float(seen.centre.max()), 1.0)):
        here = seen.centre == value
        rest = seen.centre[~here]
        few = here.sum() < max(2 * _MIN_ROWS_AT_END, _MAX_SHARE_STATED * seen.n)
        if few or len(np.unique(rest)) < max(_MIN_SHARE_DISTINCT * len(rest), 2 * _MIN_ROWS_AT_END):
            continue
        beyond = int((sign * (seen.y[here] - value) > 0).sum())
        total = int(here.sum())
        if special.bdtrc(beyond - 1, total, 0.5) < CERTAIN_P and beyond > 0.75 * total:
            facts = {"value": value, "high": sign > 0, "beyond": beyond}
            return seen.fault("clipped_predictions", here, facts=facts)
    return None


# ---- rounded y -----------------------------------------------------------------------------------

# Steps of .4 sd add 1.3 % to the variance of y (h²/12), .7 % to its sd: below what is judged.
_MIN_RELATIVE_STEP = 0.4
# Values of y below which they are codes, and nothing was rounded.
_MIN_VALUES = 8


def rounded(seen: _Seen) -> RowFault | None:
    """y in steps that are large for the stated spread, beside predictions of any value."""
    if not seen.stated or seen.discrete:
        return None
    step = step_of(seen.y)
    if not step or len(np.unique(seen.y)) < _MIN_VALUES:
        return None
    for times in (10.0, 10.0, 10.0, 5.0, 2.5, 2.0):
        if _on_grid(seen.y, times * step).all():
            step *= times
    coarse = step / float(np.median(seen.spread))
    if coarse < _MIN_RELATIVE_STEP or seen.n < _MIN_ROWS:
        return None
    on = [float(_on_grid(v, step).mean()) for v in seen.numbers() if np.ptp(v) > 0]
    if max(on, default=0.0) > 0.5:
        return None
    more = float(np.minimum((step / seen.spread) ** 2 / 12.0, 1.0).mean())
    explains = {
        **dict.fromkeys(_FAR, more),
        OTHERS: 6.0 * more,
        "spread": 1.5 * more,
        "bias": 0.3 * coarse,
    }
    return seen.fault(
        "rounded",
        explains=EVERYTHING if coarse >= 1.0 else explains,
        facts={"step": step, "coarse": coarse},
    )


def _on_grid(values: FloatArray, step: float) -> BoolArray:
    """Which values are multiples of a step, but for the last digits."""
    times = values / step
    # Numbers of single precision, or with six digits, are multiples of a step no better.
    return np.asarray(np.abs(times - np.round(times)) < 1e-6)


# ---- censored rows -------------------------------------------------------------------------------

_NO = frozenset(("0", "0.0", "false", "no", "n", "censored"))
_YES = frozenset(("1", "1.0", "true", "yes", "y", "event", "observed", "died", "dead"))


def censored(seen: _Seen) -> RowFault | None:
    """A column that says where y is a lower bound: by its name, and by what y shows there."""
    groups = {name: column.values() for name, column in seen.evalset.groups.items()}
    columns: dict[str, Any] = {**seen.evalset.features, **groups}
    for name, values in columns.items():
        meaning = in_words(name)
        if meaning not in CENSORED | EVENTS:
            continue
        labels = np.array([str(value).strip().lower() for value in values])
        if not set(labels) <= _YES | _NO or len(set(labels)) != 2:
            continue
        rows = np.isin(labels, list(_NO if meaning in EVENTS else _YES))
        off = (seen.y - seen.centre) / (seen.spread if seen.stated else 1.0)
        if meaning in CENSORED or _lower(off, rows):
            return seen.fault("censored", rows, explains=_EFFECT_BY_SHARE, facts={"column": name})
    return None


def _lower(values: FloatArray, rows: BoolArray) -> bool:
    """Whether values are lower in these rows than in others, by the test of ranks."""
    few, n = int(rows.sum()), len(rows)
    ranks = places_in_order(values) + 1.0
    spread = math.sqrt(few * (n - few) * (n + 1) / 12.0)
    return float(ranks[rows].sum()) - few * (n + 1) / 2.0 < -_MIN_Z * spread


# ---- swapped columns -----------------------------------------------------------------------------

# Beyond any chance, as a column is called wrong. Not tuned.
_MIN_Z_SWAPPED = 6.0
# Nats a row: what a spread loses that is half of the right one (log .5 + 2 − 1 = .31).
_MIN_GAIN = 0.3


def swapped(seen: _Seen) -> RowFault | None:
    """The mean where the sd should be, or y where the prediction should be."""
    if seen.n < _MIN_ROWS:
        return None
    y, centre, spread = seen.y, seen.centre, seen.spread
    if seen.stated and (centre > 0).all():
        turned = np.abs(y - spread)
        gain = _laplace(np.abs(y - centre), spread) - _laplace(turned, centre)
        fits = 0.4 < float(np.median(turned / centre)) < 1.0
        fits = fits and (turned < np.abs(y - centre)).mean() > _MIN_SHARE_BETTER
        clear = _MIN_Z * float(gain.std()) / math.sqrt(seen.n) + _MIN_GAIN
        if fits and float(gain.mean()) > clear:
            return seen.fault("mean_and_sd", explains=EVERYTHING)
    if np.ptp(y) == 0 or np.ptp(centre) == 0:
        return None
    if seen.stated and (np.abs(y - centre) > spread).mean() > RANGE_LARGER[1]:
        return None  # swapped, errors are of one size
    both = np.cov(y, centre)
    r2 = float(both[0, 1] ** 2 / (both[0, 0] * both[1, 1]))
    if not 0.1 < r2 < 0.9 or not seen.continuous or both[0, 1] <= 0:
        return None
    ahead, back = slope_of(centre, y), slope_of(y, centre)
    if ahead[0] - 1.0 < -_MIN_Z_SWAPPED * ahead[1] and abs(back[0] - 1.0) < 3.0 * back[1] < 0.2:
        return seen.fault("swapped")
    return None


# ---- constant predictions ------------------------------------------------------------------------


def one_prediction(seen: _Seen) -> RowFault | None:
    """One prediction for all rows, though y follows an input."""
    if seen.n < _MIN_ROWS or np.ptp(seen.centre) > 0 or len(np.unique(seen.y)) < 3:
        return None
    if np.isfinite(seen.spread).all() and np.ptp(seen.spread) > 0:
        return None
    ranks = mid_ranks(seen.y)
    correlations = {
        name: abs(float(np.corrcoef(mid_ranks(values), ranks)[0, 1]))
        for name, values in seen.inputs.items()
        if np.ptp(values) > 0
    }
    name = max(correlations, key=lambda column: correlations[column], default="")
    if not name or correlations[name] * math.sqrt(seen.n - 1.0) < _MIN_Z_SWAPPED:
        return None
    facts = {"column": name, "correlation": correlations[name]}
    return seen.fault("one_prediction", facts=facts)


# ---- other orders, logarithms, multiples ---------------------------------------------------------


def _rows_in_order(evalset: EvalSet, tau: float) -> PredictedRows | None:
    """Rows in the order of the file, or of their numbers; None where predictions have no middle."""
    order = np.arange(min(evalset.n, MOST_ROWS))
    ordered = evalset.rows is None or evalset.rows.dtype.kind in "iuf"
    if evalset.rows is not None and ordered:
        order = lowest(evalset.rows, MOST_ROWS)
    seen = _find_middles(evalset.take(order), None)
    if seen is None:
        return None
    timed, series = None, np.zeros(seen.n, dtype=np.int64)
    if seen.evalset.time is not None:
        times = Categories.checked(seen.evalset.time, "time").codes
        series = series if seen.evalset.series is None else seen.evalset.series.codes
        timed = np.lexsort((times, series))
        again = (np.diff(times[timed]) == 0) & (np.diff(series[timed]) == 0)
        timed = None if again.any() else timed
    return PredictedRows(
        y=seen.y,
        centre=seen.centre,
        spread=seen.spread if seen.stated else np.ones(seen.n),
        stated=seen.stated,
        ordered=ordered,
        timed=timed,
        series=series,
        groups=seen.evalset.groups,
        tau=tau,
    )


_OF_SIZES = (variance, units, leakage)
"""Checks that compare sizes of errors, of which rows that go together tell little."""
_OF_ROWS = (marks, clipped, clipped_predictions, rounded, censored, swapped, one_prediction)
