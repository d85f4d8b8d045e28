"""What is watched of each row: numbers whose mean is 0 as long as the promise is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import NonNegative, Positive
from howsure.core.errors import InputError, UnanswerableError
from howsure.engine.view import View
from howsure.predictions import EvalSet, Probabilities
from howsure.stats.estimate import weighted_mean
from howsure.stats.evidence import Bounds, worth_of
from howsure.topics.calibration.components import DISTORTION, MOVED

COMPONENTS = ("bias", "spread", "skew", "tails")
"""Components of the PIT, in order."""
CLASSES = ("level", "sureness")
"""What is watched of class probabilities."""
ALL = ""
"""The name of all rows among groups."""
# As a memory has of times (`howsure.stats.memory`): fewer days have no sign of dependence.
_MIN_DAYS = 8


@frozen(kw_only=True)
class Watched:
    """Numbers of rows, one line a quantity."""

    names: tuple[str, ...]
    values: FloatArray  # shape (quantities, n)
    bounds: tuple[Bounds, ...]

    def of(self, names: Sequence[str]) -> Watched:
        """With a line for each of some names, of 0 where there is none."""
        if names == self.names:
            return self
        lines = dict(zip(self.names, self.values, strict=True))
        none = np.zeros(self.values.shape[1])
        values = np.array([lines.get(name, none) for name in names])
        return replace(self, names=tuple(names), values=values)


@frozen(kw_only=True)
class UsualError:
    """The absolute error of a reference's points, where nothing else can be watched."""

    limit: Positive  # errors count up to here
    mean: NonNegative  # of errors as shares of the limit
    variance: NonNegative
    tolerance: NonNegative  # by how much the mean may grow

    @classmethod
    def of(cls, evalset: EvalSet, days: IntArray) -> UsualError | None:
        """Of a reference; None where its points have no error, or it has none."""
        try:
            errors = _errors(evalset)
        except UnanswerableError:
            return None
        limit = float(np.quantile(errors, _SHARE_IN_FULL))
        if not limit > 0.0:
            return None
        share = np.minimum(errors / limit, 1.0)
        mass = row_counts(evalset)
        mean = weighted_mean(share, mass)
        day_of = np.unique(days, return_inverse=True)[1]
        counts = np.bincount(day_of, weights=mass).astype(np.float64)
        variance = weighted_mean(np.square(share - mean), mass)
        worth = 1.0
        if len(counts) >= _MIN_DAYS:
            sums = np.bincount(day_of, weights=mass * (share - mean)).astype(np.float64)
            worth = worth_of(sums, counts, variance)
        reach = _STANDARD_ERRORS_ALLOWED * math.sqrt(variance * worth / float(mass.sum()))
        return cls(
            limit=limit,
            mean=mean,
            variance=_VARIANCE_ALLOWED * variance,
            tolerance=reach + _GROWTH_ALLOWED * mean,
        )


# Share of errors that count in full: one that is far larger shall not decide. Bounded numbers grow
# evidence faster, and a hundredth that is cut loses little. By hand; not tuned.
_SHARE_IN_FULL = 0.99
# Standard errors by which the reference's mean may be too low: in 2 % of references it is more.
_STANDARD_ERRORS_ALLOWED = 2.0
# Growth of the mean error that does no harm. By hand; not tuned: larger, alarms come later.
_GROWTH_ALLOWED = 0.05
# By how much the variance may be larger than in the reference while the mean is not. By hand; not
# tuned: larger, evidence grows more slowly.
_VARIANCE_ALLOWED = 1.25


def row_counts(evalset: EvalSet) -> FloatArray:
    """How many rows each stands for."""
    counts = evalset.multiplicities
    return np.ones(evalset.n) if counts is None else counts


def _errors(evalset: EvalSet) -> FloatArray:
    """Absolute errors of the point that is given, or of the middle."""
    return np.asarray(np.abs(evalset.y - View(evalset).get("point")))


# Least standard deviation that what came less its probability is divided by: numbers are then 8 at
# most, as evidence needs them bounded. Events of 1.6 % have it.
_MIN_DEVIATION = 0.125
# Farthest log-odds that count, of 98 %: beyond, a surprise would decide alone.
_MAX_LOGIT = 4.0


def usual_logit(evalset: EvalSet) -> float:
    """The mean log-odds of a reference, by which sureness is told apart from a changed base rate.

    Rows are weighed by p(1 − p): then all probabilities too low or too high leave sureness at 0.
    """
    stated = View(evalset).find_prediction(Probabilities)
    if stated is None:
        return 0.0
    claims, _ = View(evalset).get("class_claims")
    variance = row_counts(evalset) * claims * (1.0 - claims)
    return weighted_mean(_logits(claims), variance) if variance.any() else 0.0


def _logits(claims: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(special.logit(claims), -_MAX_LOGIT, _MAX_LOGIT))


def _of_classes(
    view: View, tolerance: float, centre: float
) -> tuple[list[FloatArray], list[Bounds]]:
    """What came less its probability, by its deviation; and times the log-odds, about a centre."""
    claims, came = view.get("class_claims")
    residual = came - claims
    deviation = np.maximum(np.sqrt(claims * (1.0 - claims)), _MIN_DEVIATION)
    grid = special.expit(np.linspace(-2.0 * _MAX_LOGIT, 2.0 * _MAX_LOGIT, 4_001))
    most = float((grid * (1.0 - grid) * np.square(_logits(grid) - centre)).max())
    reach = 1.0 / _MIN_DEVIATION, _MAX_LOGIT + abs(centre)
    bounds = [
        Bounds(variance=variance, lowest=-end, highest=end, tolerance=harmless)
        for variance, end, harmless in zip(
            (1.0, most), reach, (2.0 * tolerance, tolerance), strict=True
        )
    ]
    return [residual / deviation, residual * (_logits(claims) - centre)], bounds


def watched(
    evalset: EvalSet,
    coverage: float,
    tolerance: float,
    usual: UsualError | None = None,
    centre: float = 0.0,
) -> Watched:
    """Whether y is covered, less the nominal coverage; and the components of the PIT.

    Of class probabilities level and sureness. Where there is none of these, the absolute error
    beside the usual one.
    """
    view = View(evalset)
    rows: dict[str, FloatArray] = {}
    bounds: list[Bounds] = []
    if not math.isnan(coverage):
        with suppress(UnanswerableError):
            rows["coverage"] = view.get("covered", coverage) - coverage
            bounds.append(coverage_bounds(coverage, tolerance))
    with suppress(UnanswerableError):
        placed = view.get("placed")
        components = placed.polynomials(placed.place(0.0, 1.0))
        rows |= zip(COMPONENTS, components, strict=False)
        bounds += component_bounds(tolerance, placed.table)
    if view.find_prediction(Probabilities) is not None:
        lines, of_classes = _of_classes(view, tolerance, centre)
        rows |= zip(CLASSES, lines, strict=True)
        bounds += of_classes
    if not rows and usual is not None:
        share = np.minimum(_errors(evalset) / usual.limit, 1.0)
        rows["error"] = share - usual.mean
        bounds.append(
            Bounds(
                variance=usual.variance,
                lowest=-usual.mean,
                highest=1.0 - usual.mean,
                tolerance=usual.tolerance,
                rises=True,
            )
        )
    if not rows:
        raise InputError(
            "nothing can be monitored: predictions must be distributions, samples, at least two "
            "quantiles, intervals, class probabilities, or points whose errors are not all 0"
        )
    values = np.array(list(rows.values()), dtype=np.float64)
    return Watched(names=tuple(rows), values=values, bounds=tuple(bounds))


def coverage_bounds(coverage: float, tolerance: float) -> Bounds:
    """Of hits less the nominal coverage c: their variance is c (1 − c) if it holds."""
    return Bounds(
        variance=coverage * (1.0 - coverage),
        lowest=-coverage,
        highest=1.0 - coverage,
        tolerance=tolerance,
    )


def component_bounds(tolerance: float, table: FloatArray | None = None) -> list[Bounds]:
    """Of the components, whose variance is 1: of those of cells by their table.

    A mean that moves no stated probability by more than the tolerance does no harm.
    """
    if table is None:  # Legendre polynomials on [0, 1]
        root_3, root_5, root_7, root_9 = (math.sqrt(k) for k in (3.0, 5.0, 7.0, 9.0))
        ends = [
            (-root_3, root_3),
            (-root_5 / 2.0, root_5),
            (-root_7, root_7),
            (-root_9 * 3.0 / 7.0, root_9),
        ]
    else:
        ends = [(float(row.min()), float(row.max())) for row in table]
    moved = (MOVED["bias"], MOVED["spread"], *DISTORTION)
    return [
        Bounds(variance=1.0, lowest=low, highest=high, tolerance=tolerance / size)
        for (low, high), size in zip(ends, moved, strict=False)
    ]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def point_and_width(evalset: EvalSet, coverage: float) -> dict[str, FloatArray]:
    """The point forecast, or the middle of the interval, and the logarithm of its width."""
    view, values = View(evalset), dict[str, FloatArray]()
    with suppress(UnanswerableError):
        lower, upper = (view.get(end, coverage) for end in ("lower", "upper"))
        values["point"] = np.asarray(lower + (upper - lower) / 2.0, dtype=np.float64)
        # what subtraction leaves of one width in all rows is no input
        values["log width"] = np.asarray(np.log(upper - lower).round(9), dtype=np.float64)
    with suppress(UnanswerableError):
        values["point"] = np.asarray(view.get("point"), dtype=np.float64)
    return values


@frozen(kw_only=True)
class DaySums:
    """What the rows of one group and stratum add up to on one day."""

    day: int
    group: str
    stratum: int = 0
    rows: float  # with y or without
    n: float  # with y
    sums: FloatArray  # shape (quantities,): of these


def sums_by_day(
    evalset: EvalSet,
    days: IntArray,
    watched: Watched,
    *,
    strata: IntArray | None = None,
    has_y: BoolArray | None = None,
    new: BoolArray | None = None,
) -> Iterator[DaySums]:
    """Of all rows, and of each group of each column, by stratum.

    Rows add to the sums whose y is known, and to the number of rows if they are new.
    """
    mass = row_counts(evalset)
    labelled_mass = mass if has_y is None else mass * has_y
    counted = mass if new is None else mass * new
    parts = np.zeros(evalset.n, dtype=np.int64) if strata is None else strata
    columns: list[tuple[IntArray, list[str]]] = [(np.zeros(evalset.n, dtype=np.int64), [ALL])]
    for name, column in evalset.groups.items():
        columns.append((column.codes, [f"{name}={label}" for label in column.labels.tolist()]))
    dates, day_of = np.unique(days, return_inverse=True)
    width = int(parts.max(initial=0)) + 1
    for codes, labels in columns:
        cells = (day_of * len(labels) + codes) * width + parts
        size = len(dates) * len(labels) * width
        rows, counts = (np.bincount(cells, weights, size) for weights in (counted, labelled_mass))
        sums = np.array([np.bincount(cells, labelled_mass * row, size) for row in watched.values])
        for cell in np.flatnonzero((counts > 0) | (rows > 0)).tolist():
            group, stratum = divmod(cell, width)
            yield DaySums(
                day=int(dates[group // len(labels)]),
                group=labels[group % len(labels)],
                stratum=stratum,
                rows=float(rows[cell]),
                n=float(counts[cell]),
                sums=sums[:, cell],
            )


def worth_of_rows(
    evalset: EvalSet, days: IntArray | None, numbers: Watched
) -> dict[str, dict[str, float]]:
    """How many rows count as one, by days and by clusters, as far as there are any: the larger."""
    worth: dict[str, dict[str, float]] = {}
    for units in (days, None if evalset.cluster is None else evalset.cluster.codes):
        if units is not None:
            sums = sums_by_day(evalset, units, numbers)
            worth = larger_worth(worth, _worth_by_group(sums, numbers))
    return worth


def larger_worth(
    *worths: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """The largest worth of each group and quantity: a few days tell little of dependence."""
    largest: dict[str, dict[str, float]] = {}
    for worth in worths:
        for group, values in worth.items():
            group_worth = largest.setdefault(group, {})
            for name, value in values.items():
                group_worth[name] = max(group_worth.get(name, 1.0), value)
    return largest


def _worth_by_group(sums: Iterable[DaySums], numbers: Watched) -> dict[str, dict[str, float]]:
    """How many rows count as one, for each group and quantity; of groups with few days, as all."""
    by_group: dict[str, list[DaySums]] = {}
    for day in sums:
        by_group.setdefault(day.group, []).append(day)
    worth: dict[str, dict[str, float]] = {}
    for group, days in by_group.items():
        if len(days) < _MIN_DAYS:
            continue
        days = sorted(days, key=lambda day: day.day)
        totals, counts = np.array([day.sums for day in days]), np.array([day.n for day in days])
        worth[group] = {
            name: worth_of(totals[:, k], counts, numbers.bounds[k].variance)
            for k, name in enumerate(numbers.names)
        }
    return worth
