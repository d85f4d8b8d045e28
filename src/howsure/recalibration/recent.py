"""Recalibration by recent rows: those from a time on, or all with weights that fade with age."""

from __future__ import annotations

import warnings
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import AnyArray, FloatArray, shortened
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.core.weights import Weights
from howsure.predictions import EvalSet, Intervals, Prediction
from howsure.recalibration.base import (
    POINT,
    RecalibrationMethod,
    Recalibrator,
    bare,
    counts,
    effective_rows,
)
from howsure.recalibration.conformal import ConformalIntervals
from howsure.recalibration.info import FRAMED_KINDS, MethodInfo
from howsure.recalibration.location_scale import (
    Amounts,
    CalibrationRows,
    LocationScale,
    LocationScaleRecalibrator,
)

# Chosen by hand; not tuned. Shorter follows a change sooner, and rests on fewer rows.
HALF_LIFE = 0.1
"""Share of the calibration rows after which a row counts half."""
# With 100, some 290 rows' worth of weight is left: a spread known to 4 %.
MIN_HALF_LIFE = 100.0
"""Fewest rows after which a row counts half."""
_FIRST_YEAR = np.datetime64("1000", "us")  # a bare number is no date


def since_rows(evalset: EvalSet, since: Any) -> EvalSet:
    """The rows from a time on.

    Examples
    --------
    >>> held = EvalSet.checked([1.0, 2.0], point=[0.0, 0.0], time=["2024-05-01", "2024-06-01"])
    >>> since_rows(held, "2024-05-15").y
    array([2.])
    """
    if evalset.time is None:
        raise InputError("since needs a time column, and the rows have none")
    times, first = _comparable(evalset.time, since)
    kept = times >= first
    if not kept.any():
        raise InputError(
            "since must not be after the last time (times run from "
            f"{_span(evalset.time, times)}), got {since!s}"
        )
    return evalset if kept.all() else evalset.take(np.flatnonzero(kept))


def _comparable(times: AnyArray, since: Any) -> tuple[AnyArray, Any]:
    """Times and the first one kept, as numbers or as dates."""
    if times.dtype.kind in "biuf":
        try:
            first = float(since)
        except (TypeError, ValueError):
            first = float("nan")
        if np.isnan(first):
            raise InputError(
                f"since must be a number, like the times (from {_span(times, times)}), got "
                f"{shortened(since)}"
            )
        return times, first
    moments = _dates(times)
    if moments is None:
        raise InputError(
            "times must be numbers or dates as ISO text (2024-05-01) to compare them with "
            f"since, got {shortened(str(times[0]))}"
        )
    opened = _dates(np.array([since], dtype=object))
    if opened is None:
        raise InputError(
            "since must be a date as ISO text (2024-05-01), like the times (from "
            f"{_span(times, moments)}), got {shortened(since)}"
        )
    return moments, opened[0]


def _span(times: AnyArray, order: AnyArray) -> str:
    return f"{times[np.argmin(order)]!s} to {times[np.argmax(order)]!s}"


def _dates(values: AnyArray) -> npt.NDArray[np.datetime64] | None:
    """Dates to the microsecond, in UTC where they name a zone; None where some are no dates."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    if values.dtype.kind == "m":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # text with a zone
            found = np.array([str(each) for each in values.tolist()], dtype="datetime64[us]")
    except (ValueError, UserWarning, DeprecationWarning):
        try:
            found = np.array([_moment(str(each)) for each in values.tolist()], "datetime64[us]")
        except ValueError:
            return None
    told = ~np.isnat(found) & (found >= _FIRST_YEAR)
    return found if told.all() else None


def _moment(text: str) -> datetime:
    made = datetime.fromisoformat(text)
    return made if made.tzinfo is None else made.astimezone(UTC).replace(tzinfo=None)


def faded(calibration: EvalSet) -> tuple[EvalSet, float]:
    """The rows with weights that halve every so many later rows, and how many those are."""
    if calibration.time is None:
        raise InputError(
            "the method 'recent' needs a time column, and the calibration rows have none"
        )
    times = calibration.time
    order = times if times.dtype.kind in "biuf" else _dates(times)
    codes = Categories.checked(times if order is None else order, "time").codes
    mass = counts(calibration)
    each = np.bincount(codes, mass)
    later = each[::-1].cumsum()[::-1] - each
    half = max(HALF_LIFE * float(mass.sum()), MIN_HALF_LIFE)
    given = calibration.weights
    copies = mass if given is not None and given.kind == "frequency" else np.ones_like(mass)
    weights = _Fading(mass * np.exp2(-later[codes] / half), "importance", copies=copies)
    made = replace(calibration, weights=weights)
    kept = weights.values > 0
    return (made if kept.all() else made.take(np.flatnonzero(kept))), half


@frozen(eq=False)
class _Fading(Weights):
    """Importance weights of rows of which some are seen several times."""

    copies: FloatArray = field(kw_only=True)

    @property
    def effective_n(self) -> float:
        """Kish's number, each copy a row of its own."""
        return self.total**2 / float(np.sum(np.square(self.values) / self.copies))

    def take(self, rows: AnyArray) -> Weights:
        """Weights of the rows chosen by an index or a mask."""
        return _Fading(self.values[rows], self.kind, copies=self.copies[rows])


@final
@frozen
class Recent(RecalibrationMethod):
    """Recalibrated by recent rows: a shift and a factor, or conformal offsets of each end.

    Distributions, samples and quantiles have their centre shifted, in units of a row's spread,
    and all else stretched about it. Intervals and a point forecast have an offset at each end.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals", "point"}
        What is recalibrated.
    since : number, date or str, optional
        The first time of the rows that are used. Without it all rows are, with weights that halve
        after every tenth of the rows, or every hundred if those are more.
    coverage, rank, too_few, delta
        As in `ConformalIntervals`, for intervals and a point forecast.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> y = np.where(np.arange(200) < 100, 1.0, 3.0) * np.tile([-1.0, 1.0], 100)
    >>> held = Distribution.normal(np.zeros(200), np.ones(200))
    >>> held_out = EvalSet.checked(y, held, time=np.arange(200))
    >>> Recent("distributions", since=100).fit(held_out).apply(held_out).predictions[0].sd()[:2]
    array([3., 3.])
    """

    belief: str
    since: Any = None
    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    def fit(self, calibration: EvalSet) -> RecentRecalibrator:
        """Learn from recent rows.

        Raises
        ------
        InputError
            If the rows have no times or none is so late, or they cannot teach what is learnt.
        """
        if self.since is None:
            used, half = faded(calibration)
            told: tuple[str, ...] = (
                f"The weight of a row halves with every {half:g} later rows: effective sample "
                f"size {effective_rows(used)[0]:.0f} of {calibration.n:,}.",
            )
        else:
            used, told = since_rows(calibration, self.since), ()
        inner: Recalibrator
        if self.belief in (Intervals.kind, POINT):
            inner = ConformalIntervals(
                "asymmetric", self.belief, self.coverage, self.rank, self.too_few, self.delta
            ).fit(replace(bare(used, self.belief), cluster=used.cluster))
        else:
            inner = _fitted(CalibrationRows.spread_out(used, self.belief))
        return RecentRecalibrator(
            belief=self.belief,
            method="recent",
            parameters=inner.parameters,
            guarantee=inner.guarantee,
            notes=(*told, *inner.notes),
            inner=inner,
        )


@final
@frozen(kw_only=True)
class RecentRecalibrator(Recalibrator):
    """Fitted `Recent`."""

    inner: Recalibrator  # what the recent rows taught

    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Predictions recalibrated on the recent rows."""
        return self.inner.transform(evalset)


@final
@frozen(kw_only=True)
class RecentLocationScale(LocationScaleRecalibrator):
    """One shift, in units of a row's spread, and one factor of the spread."""

    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """The same shares of each row's spread."""
        shift, factor = (parameter.value for parameter in self.parameters)
        return shift * frame.spread, np.full(evalset.n, factor), ()


def _fitted(rows: CalibrationRows) -> RecentLocationScale:
    shift, factor = rows.location_scale()
    return rows.mover(
        RecentLocationScale,
        "recent",
        (rows.learnt("shift", shift), rows.learnt("factor", factor)),
        "mean error and spread are correct on the calibration rows used, and coverage is "
        "correct as far as the shape is",
    )


METHODS = (
    MethodInfo(
        name="recent",
        kinds=(*FRAMED_KINDS, POINT),
        make=lambda kind, options: Recent(kind, options.since, *options.threshold),
        saves=(RecentRecalibrator, RecentLocationScale),
        needs="time",
    ),
)
