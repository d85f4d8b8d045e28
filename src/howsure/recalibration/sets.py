"""Label sets made anew from what a classifier said of each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError
from howsure.methods.conformal import DELTA, RankRule, TooFew, conformal_rank, coverage_range
from howsure.methods.conformal.labels import (
    APS,
    LAC,
    RAPS,
    SAPS,
    LabelConformal,
    LabelScore,
    fit_temperature,
    tempered,
)
from howsure.predictions import EvalSet, LabelSets
from howsure.recalibration.base import Learnt, Method, Recalibrator, belief_of, fit_notes

SCORES: Mapping[str, Callable[[], LabelScore]] = MappingProxyType(
    {"lac": LAC, "aps": APS, "raps": RAPS, "saps": SAPS}
)
"""The conformal methods of label sets, with their scores."""
TEMPERATURE = "temperature"
NO_PROBABILITIES = (
    "label sets cannot be recalibrated without class probabilities; "
    "give them: LabelSets(members, coverage, probabilities)"
)


@final
@dataclass(frozen=True, slots=True)
class ProbabilitySets(Method):
    """Sets of labels made anew from class probabilities.

    Parameters
    ----------
    method : {"lac", "aps", "raps", "saps", "temperature"}
        ``temperature``: probabilities p^(1/T), scaled to sum to 1, with T of the highest
        likelihood; the set is the likeliest classes that reach the coverage together. The others
        are conformal, by the score of that name: a class is in the set if it is no stranger than
        the conformal quantile of the true classes of calibration rows.
    coverage : float, optional
        Nominal coverage; that of the sets if omitted.
    rank, too_few, delta
        As in `howsure.recalibration.recalibrate`, of the conformal ones.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]] * 20)
    >>> held_out = EvalSet.checked([0.0, 1.0] * 20, LabelSets(p > 0.5, 0.9, p))
    >>> ProbabilitySets("lac").fit(held_out).apply(held_out).beliefs[0].sizes[:2]
    array([1, 2])
    """

    method: str = "lac"
    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    def fit(self, calibration: EvalSet) -> SetRecalibrator:
        """Learn a temperature or a threshold from held-out rows.

        Raises
        ------
        InputError
            If the rows hold no label sets with probabilities, weights are no frequencies, a true
            class has probability 0 where a temperature is learnt, or too few rows are refused.
        """
        if self.method not in (*SCORES, TEMPERATURE):
            known = ", ".join((*SCORES, TEMPERATURE))
            raise InputError(f"method must be one of {known}, got {self.method!r}")
        held = belief_of(calibration, LabelSets)
        stated, y = _stated(held), calibration.y.astype(np.int64)
        if calibration.weights is not None:
            if calibration.weights.kind != "frequency":
                raise InputError("weights must be frequencies for label sets, got importance")
            repeats = calibration.weights.values.astype(np.int64)
            stated, y = np.repeat(stated, repeats, axis=0), np.repeat(y, repeats)
        coverage = check_fraction(
            held.coverage if self.coverage is None else self.coverage, "coverage"
        )
        n = len(y)
        made = SetRecalibrator(
            belief=LabelSets.kind,
            method=self.method,
            parameters=(),
            guarantee="",
            notes=fit_notes(calibration),
            coverage=coverage,
            classes=stated.shape[1],
        )
        if self.method == TEMPERATURE:
            learnt = Learnt(name="temperature", value=fit_temperature(stated, y), n=float(n))
            words = (
                "No finite-sample guarantee: sets reach the nominal coverage as far as the "
                "tempered probabilities are right."
            )
            return replace(made, parameters=(learnt,), guarantee=words)
        how = LabelConformal(
            score=SCORES[self.method](),
            coverage=coverage,
            rank=self.rank,
            delta=self.delta,
            too_few=self.too_few,
        )
        value, rest = how.calibrate(stated, y).thresholds.at(stated[:1])[0]
        rank = conformal_rank(n, coverage, self.rank, self.delta)
        expected = min(rank / (n + 1.0), 1.0)
        low, high = coverage_range(rank, n)
        learnt = Learnt(
            name="threshold",
            value=float(value),
            nominal=coverage,
            n=float(n),
            rank=float(rank),
            expected=expected,
            lower=low,
            upper=high,
        )
        words = (
            f"{formats.level(coverage)} sets: a new row exchangeable with the {n:,} calibration "
            f"rows has its class in the set with probability at least {expected:.5g}."
        )
        return replace(made, parameters=(learnt,), guarantee=words, rest=float(rest))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SetRecalibrator(Recalibrator):
    """Fitted `ProbabilitySets`.

    Attributes
    ----------
    coverage : float
        Nominal coverage of the sets.
    classes : int
        How many classes the rows must tell of.
    rest : float
        What rounding took from the threshold.
    """

    coverage: float
    classes: int
    rest: float = 0.0

    def transform(self, evalset: EvalSet) -> tuple[LabelSets, tuple[str, ...]]:
        """Sets by the threshold or the temperature; with the latter, of tempered probabilities."""
        held = belief_of(evalset, LabelSets)
        stated = _stated(held)
        if stated.shape[1] != self.classes:
            raise InputError(
                f"the rows must have probabilities of {self.classes} classes as the calibration "
                f"rows do, got {stated.shape[1]}"
            )
        value = self.parameters[0].value
        if self.method == TEMPERATURE:
            tempers = tempered(stated, value)
            return LabelSets.likeliest(tempers, self.coverage, held.labels), ()
        how = LabelConformal(score=SCORES[self.method](), coverage=self.coverage)
        ends = np.tile([value, self.rest], (len(stated), 1))
        members = how.sets(stated, ends).members
        return LabelSets(members, self.coverage, stated, held.labels), ()


def _stated(held: LabelSets) -> FloatArray:
    if held.probabilities is None:
        raise InputError(NO_PROBABILITIES)
    return held.probabilities
