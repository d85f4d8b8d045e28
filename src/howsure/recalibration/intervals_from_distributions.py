"""Conformal intervals from other predictions: central ones moved, or around a forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import final

import numpy as np

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.classes import frozen
from howsure.core.convert import checked_coverages
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import EvalSet, Intervals, Quantiles
from howsure.recalibration.base import (
    CENTRAL,
    POINT,
    SPREAD,
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    kind_named,
    prediction_of,
    signature,
)
from howsure.recalibration.conformal import ConformalIntervals, IntervalRecalibrator
from howsure.recalibration.info import (
    CENTRAL_KINDS,
    SIDES,
    SIZE,
    SPREAD_KINDS,
    MethodInfo,
    RecalibrationOptions,
)

_AROUND = ("cp", "cp_a", "pac")
"""Methods whose intervals lie around the forecast."""


@final
@frozen
class DerivedIntervals(RecalibrationMethod):
    """Intervals that cover, from distributions, samples or quantiles.

    Parameters
    ----------
    method : {"cqr", "asymmetric", "ucc", "cp", "cp_a", "pac"}
        The first three move central intervals, as in `ConformalIntervals`; ``ucc`` stretches them
        about the point forecast
        (about the middle of the narrowest where that lies outside it) by the factor k at which
        the uncertainty characteristics curve reaches the coverage. ``cp``: the forecast ± one
        number, the conformal quantile of |y − forecast|. ``cp_a``: the forecast ± a multiple of
        the row's sd, the conformal quantile of |y − forecast|/sd; not of quantiles. ``pac``: the
        same at the rank ``pac``, whatever `rank` says.
    belief : {"distributions", "samples", "quantiles"}
        What is recalibrated; it becomes intervals.
    coverages : sequence of float
        Nominal coverages to reach.
    rank, too_few, delta
        As in `ConformalIntervals`.

    Raises
    ------
    InputError
        If there is no coverage, or one leaves (0, 1).

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> y = np.arange(-9.0, 10.0)
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(19), np.ones(19)))
    >>> fitted = DerivedIntervals("ucc", coverages=[0.9]).fit(held_out)
    >>> fitted.apply(held_out.take(np.arange(1))).predictions[0].interval(0.9)
    (array([-9.]), array([9.]))
    """

    method: str = "cqr"
    belief: str = "distributions"
    coverages: Sequence[float] = field(default=())
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    def __post_init__(self) -> None:
        if not len(self.coverages):
            raise InputError(f"coverage must be given to make intervals from {self.belief}")
        object.__setattr__(self, "coverages", checked_coverages(tuple(self.coverages)))

    def fit(self, calibration: EvalSet) -> DerivedRecalibrator:
        """Learn the offsets or the factor of each coverage from held-out rows.

        Raises
        ------
        InputError
            As `ConformalIntervals`.
        UnanswerableError
            If the prediction has no central interval at a coverage.
        """
        coverages = tuple(self.coverages)
        rank: RankRule = "pac" if self.method == "pac" else self.rank
        mover = ConformalIntervals(self.method, rank=rank, too_few=self.too_few, delta=self.delta)
        fitted = mover.fit(_with_ends(calibration, self.belief, coverages, self.method))
        return DerivedRecalibrator(
            belief=self.belief,
            method=self.method,
            parameters=fitted.parameters,
            guarantee=fitted.guarantee,
            notes=fitted.notes,
            intervals=fitted,
            coverages=coverages,
            fitted_to=signature(prediction_of(calibration, kind_named(self.belief, CENTRAL))),
        )


@final
@frozen(kw_only=True)
class DerivedRecalibrator(Recalibrator):
    """Fitted `DerivedIntervals`."""

    intervals: Recalibrator  # what moves the intervals
    coverages: tuple[float, ...]  # nominal coverages

    def transform(self, evalset: EvalSet) -> tuple[Intervals, tuple[str, ...]]:
        """Intervals at the coverages."""
        if self.belief != Quantiles.kind:  # of which any levels do
            self.matching_prediction(evalset, SPREAD)
        intervals, notes = self.intervals.transform(
            _with_ends(evalset, self.belief, self.coverages, self.method)
        )
        assert isinstance(intervals, Intervals)
        return intervals, notes


def _with_ends(evalset: EvalSet, kind: str, coverages: tuple[float, ...], method: str) -> EvalSet:
    """The rows with the intervals that a method moves alone."""
    if method not in _AROUND:
        return with_intervals(evalset, kind, coverages)
    prediction = prediction_of(evalset, kind_named(kind, CENTRAL))
    center = prediction.point()
    reach = np.zeros_like(center) if method == "cp" else prediction.sd()
    lower, upper = (
        np.repeat(end[:, None], len(coverages), axis=1) for end in (center - reach, center + reach)
    )
    return replace(evalset, predictions=(Intervals(lower, upper, coverages),), point=center)


def with_intervals(evalset: EvalSet, kind: str, coverages: tuple[float, ...]) -> EvalSet:
    """The rows with central intervals of one kind alone, and a point that lies in all of them."""
    prediction = prediction_of(evalset, kind_named(kind, CENTRAL))
    ends = [prediction.interval(coverage) for coverage in coverages]
    lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
    middle = lower[:, 0] / 2.0 + upper[:, 0] / 2.0
    try:
        forecast = prediction.point()
        point = np.where((forecast >= lower[:, 0]) & (forecast <= upper[:, 0]), forecast, middle)
    except UnanswerableError:
        point = middle
    return replace(evalset, predictions=(Intervals(lower, upper, coverages),), point=point)


def _describe_widening(learnt: Sequence[FittedParameter]) -> str:
    if not math.isfinite(learnt[0].value):
        return ""
    verb = "widen" if learnt[0].value > 0 else "narrow"
    return f"{verb} every interval by the same constant at both ends"


def _method_maker(name: str) -> Callable[[str, RecalibrationOptions], RecalibrationMethod]:
    def make_method(kind: str, options: RecalibrationOptions) -> RecalibrationMethod:
        if kind in (Intervals.kind, POINT):
            return ConformalIntervals(name, kind, *options.threshold)
        return DerivedIntervals(name, kind, options.wanted, *options.threshold[1:])

    return make_method


METHODS = (
    MethodInfo(
        name="cqr",
        kinds=(Intervals.kind, *CENTRAL_KINDS),
        make=_method_maker("cqr"),
        saves=(IntervalRecalibrator, DerivedRecalibrator),
        leads=(Intervals.kind,),
        gives="intervals",
        label="with conformal offsets",
        words="shift both ends of every interval",
        says=_describe_widening,
        complexity=1,
        turn=2,
        aims=SIZE,
        only=Intervals.kind,
    ),
    MethodInfo(
        name="asymmetric",
        kinds=(Intervals.kind, POINT, *CENTRAL_KINDS),
        make=_method_maker("asymmetric"),
        saves=(IntervalRecalibrator, DerivedRecalibrator),
        leads=(Intervals.kind, POINT),
        gives="intervals",
        label="with conformal offsets of each end",
        words="shift all lower ends by one constant and all upper ends by another",
        complexity=2,
        turn=2,
        aims=SIDES,
        only=Intervals.kind,
    ),
    MethodInfo(
        name="ucc",
        kinds=CENTRAL_KINDS,
        make=_method_maker("ucc"),
        saves=(DerivedRecalibrator,),
        gives="intervals",
        label="with conformal factors",
    ),
    *(
        MethodInfo(
            name=name,
            kinds=kinds,
            make=_method_maker(name),
            saves=(DerivedRecalibrator,),
            gives="intervals",
            compared=False,
        )
        for name, kinds in (("cp", CENTRAL_KINDS), ("cp_a", SPREAD_KINDS), ("pac", SPREAD_KINDS))
    ),
)
