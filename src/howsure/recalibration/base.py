"""What every method of recalibration shares: fit once on held-out rows, apply to many."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Prediction,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.stats.estimate import standard_error

POINT = "point"
"""The name of a point forecast where kinds of prediction are named."""

P = TypeVar("P", bound=Prediction)

SPREAD: tuple[type[Distribution] | type[Samples], ...] = (Distribution, Samples)
"""Kinds that have both quantiles and a spread."""
CENTRAL: tuple[type[Distribution] | type[Samples] | type[Quantiles], ...] = (*SPREAD, Quantiles)
"""Kinds that have intervals at any coverage."""


@frozen(kw_only=True)
class FittedParameter:
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


@frozen(kw_only=True)
class Recalibrator(ABC):
    """A method fitted to calibration rows. Subclasses are final.

    Attributes
    ----------
    belief : str
        The kind of prediction that it recalibrates, or ``point``.
    method : str
        The method's name.
    parameters : tuple of FittedParameter
        What was learnt.
    guarantee : str
        What holds in finite samples, in words.
    notes : tuple of str
        What the reader must know of the fit.
    fitted_to : str
        What the rows must hold, see `signature`; empty if the method looks itself.
    """

    belief: str
    method: str
    parameters: tuple[FittedParameter, ...]
    guarantee: str
    notes: tuple[str, ...] = ()
    fitted_to: str = ""

    @property
    def by_rows(self) -> bool:
        """Whether a row's prediction is the same whatever rows stand beside it."""
        return True

    @property
    def moves_point(self) -> bool:
        """Whether it leaves a bare point forecast, which is no prediction with a spread."""
        return False

    @abstractmethod
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """The recalibrated prediction of these rows, and notes on them. Reads no y."""

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows with the prediction recalibrated; nothing else changes.

        Raises
        ------
        InputError
            If the rows have no prediction of this kind, or one that differs from that of the
            calibration rows in its coverages, levels, family or number of samples.
        """
        prediction = self.transform(evalset)[0]
        replaced = (self.belief, prediction.kind)
        untouched = (other for other in evalset.predictions if other.kind not in replaced)
        return replace(evalset, predictions=(*untouched, prediction))

    def matching_prediction(self, evalset: EvalSet, kinds: Sequence[type[P]]) -> P:
        """The prediction of one of these kinds, if it is as that of the calibration rows."""
        prediction = prediction_of(evalset, kind_named(self.belief, kinds))
        came = signature(prediction)
        if came != self.fitted_to:
            told = came.rpartition(" at levels ")[2]
            raise InputError(
                f"the rows must have {self.fitted_to}, like the calibration rows, got {told}"
            )
        return prediction


class RecalibrationMethod(ABC):
    """A method of recalibration with its options, not yet fitted. Subclasses are final."""

    __slots__ = ()

    @abstractmethod
    def fit(self, calibration: EvalSet) -> Recalibrator:
        """Learn from held-out rows."""


def kinds_of(evalset: EvalSet) -> tuple[str, ...]:
    """Kinds of prediction to recalibrate: those held, or else the bare point forecast."""
    return tuple(prediction.kind for prediction in evalset.predictions) or (POINT,)


def bare(evalset: EvalSet, kind: str) -> EvalSet:
    """y, the prediction of one kind and what each row counts, without all that lies beside."""
    return EvalSet(
        y=evalset.y,
        predictions=tuple(
            prediction for prediction in evalset.predictions if prediction.kind == kind
        ),
        point=evalset.point,
        weights=evalset.weights,
        model=evalset.model,
    )


def kind_named(name: str, kinds: Sequence[type[P]]) -> type[P]:
    """The class of prediction of this name, of those that a method knows."""
    for kind in kinds:
        if kind.kind == name:
            return kind
    names = ", ".join(kind.kind for kind in kinds)
    raise InputError(f"prediction must be one of {names}, got {name!r}")


def prediction_of(evalset: EvalSet, kind: type[P]) -> P:
    """The prediction of this kind."""
    for prediction in evalset.predictions:
        if isinstance(prediction, kind):
            return prediction
    came = ", ".join(kinds_of(evalset))
    raise InputError(f"the rows must have {kind.kind}, like the calibration rows, got {came}")


def point_of(evalset: EvalSet) -> FloatArray:
    """The point forecast."""
    if evalset.point is None:
        raise InputError("the rows need a point forecast and have none")
    return evalset.point


def signature(prediction: Prediction) -> str:
    """What must agree between the rows that a method learns from and those that it serves."""
    if isinstance(prediction, Distribution):
        return f"distributions of the family {prediction.law.name!r}"
    if isinstance(prediction, Samples):
        return f"{prediction.size} samples per row"
    if isinstance(prediction, Quantiles):
        return f"quantiles at levels {_listed(prediction.levels)}"
    if isinstance(prediction, Intervals):
        return f"intervals at coverage {_listed(prediction.coverages) or 'unknown'}"
    return prediction.kind


def _listed(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


class Pieces:
    """Predictions of one kind, of some rows each, put together."""

    def __init__(self, first: Prediction, n: int) -> None:
        self.first = first
        self.tables = {
            name: np.empty((n, *table.shape[1:])) for name, table in first.numbers().items()
        }

    def put(self, rows: IntArray, prediction: Prediction) -> None:
        """Those of some rows."""
        for name, table in prediction.numbers().items():
            self.tables[name][rows] = table

    def join(self) -> Prediction:
        """Those of all rows."""
        first, tables = self.first, self.tables
        if isinstance(first, Distribution):
            return Distribution(first.law, tables)
        if isinstance(first, Samples):
            return Samples.rising(tables["samples"])
        if isinstance(first, Quantiles):
            return Quantiles(first.levels, tables["quantiles"])
        if isinstance(first, Intervals):
            return Intervals(tables["lower"], tables["upper"], first.coverages or None)
        if isinstance(first, Probabilities):
            return Probabilities(tables["probabilities"], first.classes)
        raise InputError(f"{first.kind} cannot be joined")


def check_rows(calibration: EvalSet) -> None:
    """Raise `InputError` where rows are fewer than two."""
    n = effective_rows(calibration)[0]
    if n < 2:
        raise InputError(f"calibration must have at least 2 rows, got {n:g}")


def check_spread(spread: FloatArray) -> None:
    """Raise `InputError` unless every row has a spread."""
    flat = ~(spread > 0)
    if flat.any():
        raise InputError(
            f"every calibration row must have a spread above 0; {int(flat.sum())} have none "
            f"(first at row {int(np.argmax(flat))})"
        )


def check_factor(factor: float) -> float:
    """A factor by which spreads can be multiplied; an `InputError` where errors give none."""
    if not 0.0 < factor < math.inf:
        raise InputError(
            "spreads cannot be scaled: errors are zero in most calibration rows, so the factor "
            "would be zero"
        )
    return factor


def effective_rows(calibration: EvalSet) -> tuple[float, bool]:
    """Calibration rows that count, and whether they count in whole numbers."""
    weights = calibration.weights
    if weights is None:
        return float(calibration.n), True
    return weights.effective_n, weights.kind == "frequency"


def counts(evalset: EvalSet) -> FloatArray:
    """How often each row counts, summing to the rows that count."""
    copies = evalset.multiplicities
    return np.ones(evalset.n) if copies is None else copies


def repeated(calibration: EvalSet) -> EvalSet:
    """Rows with each frequency written out; importance weights stay."""
    weights = calibration.weights
    if weights is None or weights.kind != "frequency":
        return calibration
    times = weights.values.astype(np.int64)
    return replace(calibration, weights=None).take(np.repeat(np.arange(calibration.n), times))


def sampling_error(influence: FloatArray, calibration: EvalSet) -> float:
    """Standard error of a statistic of calibration rows from its influence values."""
    cluster = calibration.cluster
    codes = None if cluster is None else cluster.codes
    return standard_error(influence, calibration.weights, codes)


def fit_notes(calibration: EvalSet) -> tuple[str, ...]:
    """Notes on the calibration rows that every method must give."""
    notes = []
    if not effective_rows(calibration)[1]:
        notes.append(
            "Importance weights: the fit is weighted and uses Kish's effective sample size "
            "instead of n. It is approximate, without a finite-sample guarantee."
        )
    if calibration.cluster is not None:
        notes.append(
            "The calibration rows form clusters, so single rows are not exchangeable: a "
            "guarantee based on the number of rows is optimistic."
        )
    return tuple(notes)
