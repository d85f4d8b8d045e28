"""Conformal intervals from predictions that have central intervals: all but intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from howsure.core.errors import InputError, UnanswerableError
from howsure.methods.conformal import DELTA, RankRule, TooFew
from howsure.methods.interface import checked_coverages
from howsure.predictions import EvalSet, Intervals, Quantiles
from howsure.recalibration.base import (
    CENTRAL,
    SPREAD,
    Method,
    Recalibrator,
    belief_of,
    kind_named,
    signature,
)
from howsure.recalibration.intervals import ConformalIntervals


@final
@dataclass(frozen=True, slots=True)
class DerivedIntervals(Method):
    """The central intervals of distributions, samples or quantiles, moved so that they cover.

    Parameters
    ----------
    method : {"cqr", "asymmetric", "ucc"}
        As in `ConformalIntervals`; ``ucc`` stretches intervals about the point forecast
        (about the middle of the narrowest where that lies outside it) by the factor k at which
        the uncertainty characteristics curve reaches the coverage.
    belief : {"distributions", "samples", "quantiles"}
        What is recalibrated; it becomes intervals.
    coverages : sequence of float
        Nominal coverages to reach, each from the central interval at it.
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
    >>> fitted.apply(held_out.take(np.arange(1))).beliefs[0].interval(0.9)
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
            raise InputError(
                f"coverage must be given to make intervals from {self.belief}, got none"
            )
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
        mover = ConformalIntervals(
            self.method, rank=self.rank, too_few=self.too_few, delta=self.delta
        )
        fitted = mover.fit(with_intervals(calibration, self.belief, coverages))
        return DerivedRecalibrator(
            belief=self.belief,
            method=self.method,
            parameters=fitted.parameters,
            guarantee=fitted.guarantee,
            notes=fitted.notes,
            intervals=fitted,
            coverages=coverages,
            fitted_to=signature(belief_of(calibration, kind_named(self.belief, CENTRAL))),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRecalibrator(Recalibrator):
    """Fitted `DerivedIntervals`.

    Attributes
    ----------
    intervals : Recalibrator
        What moves the intervals.
    coverages : tuple of float
        Nominal coverages.
    """

    intervals: Recalibrator
    coverages: tuple[float, ...]

    def transform(self, evalset: EvalSet) -> tuple[Intervals, tuple[str, ...]]:
        """Intervals at the coverages."""
        if self.belief != Quantiles.kind:  # of which any levels do
            self.held(evalset, SPREAD)
        made, notes = self.intervals.transform(with_intervals(evalset, self.belief, self.coverages))
        assert isinstance(made, Intervals)
        return made, notes


def with_intervals(evalset: EvalSet, kind: str, coverages: tuple[float, ...]) -> EvalSet:
    """The rows with central intervals of one kind alone, and a point that lies in all of them."""
    prediction = belief_of(evalset, kind_named(kind, CENTRAL))
    ends = [prediction.interval(coverage) for coverage in coverages]
    lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
    middle = lower[:, 0] / 2.0 + upper[:, 0] / 2.0
    try:
        given = prediction.point()
        point = np.where((given >= lower[:, 0]) & (given <= upper[:, 0]), given, middle)
    except UnanswerableError:
        point = middle
    return replace(evalset, beliefs=(Intervals(lower, upper, coverages),), point=point)
