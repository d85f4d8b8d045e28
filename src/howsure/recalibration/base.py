"""What every method of recalibration shares: fit once on held-out rows, apply to many."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples

POINT = "point"

P = TypeVar("P", bound=Prediction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """One number learnt from the calibration rows, and what it guarantees.

    Attributes
    ----------
    name : str
        What it is: ``offset``, ``factor``, ``shift``, …
    value : float
        The number; infinite where too few calibration rows reach the nominal coverage.
    nominal : float
        The nominal coverage of an interval, or level of a quantile, that it serves; NaN if none.
    n : float
        Calibration rows behind it.
    standard_error : float
        Its sampling standard error; NaN where a rank decides it.
    rank : float
        Its rank among the calibration scores; NaN where none decides it.
    expected : float
        Probability, over calibration sets and rows, that a new exchangeable row is covered (or
        lies at or below the quantile); exact without ties; NaN where nothing is guaranteed.
    lower, upper : float
        For 95 of 100 calibration sets of this size, the share covered lies in this range; NaN
        where its law is not known.
    """

    name: str
    value: float
    nominal: float = math.nan
    n: float = math.nan
    standard_error: float = math.nan
    rank: float = math.nan
    expected: float = math.nan
    lower: float = math.nan
    upper: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibrator(ABC):
    """A method fitted to calibration rows. Subclasses are final.

    Attributes
    ----------
    belief : str
        The kind of belief that it recalibrates, or ``point``.
    method : str
        The method's name.
    parameters : tuple of Learnt
        What was learnt.
    guarantee : str
        What holds in finite samples, in words.
    notes : tuple of str
        What the reader must know of the fit.
    """

    belief: str
    method: str
    parameters: tuple[Learnt, ...]
    guarantee: str
    notes: tuple[str, ...] = ()

    @abstractmethod
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """The recalibrated belief for these rows, and notes on them. Reads no y."""

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows with the belief recalibrated; nothing else changes.

        Raises
        ------
        InputError
            If the rows hold no belief of this kind, or one that differs from that of the
            calibration rows in its coverages, levels, family or number of samples.
        """
        return with_belief(evalset, self.belief, self.transform(evalset)[0])


class Method(ABC):
    """A method of recalibration with its options, not yet fitted. Subclasses are final."""

    __slots__ = ()

    @abstractmethod
    def fit(self, calibration: EvalSet) -> Recalibrator:
        """Learn from held-out rows."""


def kinds_of(evalset: EvalSet) -> tuple[str, ...]:
    """Kinds of belief to recalibrate: those held, or else the bare point forecast."""
    return tuple(belief.kind for belief in evalset.beliefs) or (POINT,)


def with_belief(evalset: EvalSet, kind: str, belief: Prediction) -> EvalSet:
    """The evaluation set with the belief of one kind replaced, or set beside a point forecast."""
    others = (held for held in evalset.beliefs if held.kind not in (kind, belief.kind))
    return replace(evalset, beliefs=(*others, belief))


def belief_of(evalset: EvalSet, kind: type[P]) -> P:
    """The belief of this kind."""
    for belief in evalset.beliefs:
        if isinstance(belief, kind):
            return belief
    held = ", ".join(kinds_of(evalset))
    raise InputError(f"the rows must hold {kind.kind} as the calibration rows do, got {held}")


def signature(belief: Prediction) -> str:
    """What must agree between the rows that a method learns from and those that it mends."""
    if isinstance(belief, Distribution):
        return f"laws of the family {belief.law.name!r}"
    if isinstance(belief, Samples):
        return f"{belief.size} samples a row"
    return belief.kind


def matching(evalset: EvalSet, kind: type[P], expected: str) -> P:
    """The belief of this kind, with the signature that the calibration rows have."""
    belief = belief_of(evalset, kind)
    if signature(belief) != expected:
        raise InputError(
            f"the rows must hold {expected} as the calibration rows do, got {signature(belief)}"
        )
    return belief


def spread_kind(name: str) -> type[Distribution] | type[Samples]:
    """The class of belief of this name, of the two that have both quantiles and spread."""
    if name == Distribution.kind:
        return Distribution
    if name == Samples.kind:
        return Samples
    raise InputError(f"belief must be '{Distribution.kind}' or '{Samples.kind}', got {name!r}")


def kind_named(name: str) -> type[Distribution] | type[Samples] | type[Quantiles]:
    """The class of belief of this name, of the three that have intervals at any coverage."""
    if name == Quantiles.kind:
        return Quantiles
    return spread_kind(name)


def check_spread(sd: FloatArray) -> None:
    """Raise `InputError` unless every standard deviation is above 0."""
    flat = ~(sd > 0)
    if flat.any():
        raise InputError(
            "standard deviations must be above 0 in the calibration rows, got "
            f"{int(flat.sum())} that are not (first at row {int(np.argmax(flat))})"
        )


def effective_rows(calibration: EvalSet) -> tuple[float, bool]:
    """Calibration rows that count, and whether they count in whole numbers."""
    weights = calibration.weights
    if weights is None:
        return float(calibration.n), True
    return weights.effective_n, weights.kind == "frequency"


def fit_notes(calibration: EvalSet) -> tuple[str, ...]:
    """Notes on the calibration rows that every method must give."""
    notes = []
    if not effective_rows(calibration)[1]:
        notes.append(
            "Importance weights: what was learnt is weighted, with Kish's effective number of "
            "rows in place of n; it is approximate, and no finite-sample guarantee holds."
        )
    if calibration.cluster is not None:
        notes.append(
            "The calibration rows come in clusters, so they are not exchangeable one by one: "
            "a guarantee that counts rows is optimistic."
        )
    return tuple(notes)
