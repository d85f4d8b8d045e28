"""Class probabilities recalibrated: what each method learns, kept and applied to new rows."""

from __future__ import annotations

from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.predictions import EvalSet, Probabilities
from howsure.predictions.evalset import content_order
from howsure.recalibration.base import (
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    fit_notes,
    prediction_of,
    repeated,
)
from howsure.recalibration.classes import ClassRecalibration, learn_classes
from howsure.recalibration.group import GroupCells, cells_of
from howsure.recalibration.info import MethodInfo

# A class's curve or shift is learnt from the rows of each class: with fewer, fits are noise.
_MIN_ROWS = 20


@final
@frozen
class ProbabilityRecalibration(RecalibrationMethod):
    """Class probabilities moved as held-out rows teach.

    Parameters
    ----------
    method : {"shift", "temperature", "platt", "beta", "isotonic", "group"}
        As in `howsure.recalibration.classes.learn_classes`.
    by : tuple of str
        Columns of groups, of ``group``.

    Examples
    --------
    >>> held_out = EvalSet.checked([0.0, 1.0] * 50, Probabilities([0.9] * 100))
    >>> fitted = ProbabilityRecalibration("shift").fit(held_out)
    >>> fitted.apply(held_out).predictions[0].table[0].round(1)
    array([0.5, 0.5])
    """

    method: str = "platt"
    by: tuple[str, ...] = ()

    def fit(self, calibration: EvalSet) -> ProbabilityRecalibrator:
        """Learn from held-out rows.

        Raises
        ------
        InputError
            If the rows have no class probabilities, are too few, or lack the groups.
        """
        stated = prediction_of(calibration, Probabilities)
        rows = repeated(calibration.take(content_order([calibration])))
        if rows.n < _MIN_ROWS:
            raise InputError(f"calibration must have at least {_MIN_ROWS} rows, got {rows.n}")
        cells, codes = cells_of(rows, self.by) if self.method == "group" else (None, None)
        weights = None if rows.weights is None else rows.weights.values
        table, y = _normalised(prediction_of(rows, Probabilities)), rows.y.astype(np.int64)
        learnt = learn_classes(table, y, self.method, codes, weights)
        return ProbabilityRecalibrator(
            belief=Probabilities.kind,
            method=self.method,
            parameters=_parameters(learnt, stated.names, rows.n),
            guarantee="No finite-sample guarantee: probabilities hold as far as new rows are like "
            f"the {rows.n:,} calibration rows.",
            notes=fit_notes(calibration),
            names=stated.names,
            learnt=learnt,
            cells=cells,
        )


@final
@frozen(kw_only=True)
class ProbabilityRecalibrator(Recalibrator):
    """Fitted `ProbabilityRecalibration`."""

    names: tuple[str, ...]  # the classes
    learnt: ClassRecalibration
    cells: GroupCells | None = None  # the groups of the calibration rows

    def transform(self, evalset: EvalSet) -> tuple[Probabilities, tuple[str, ...]]:
        """Recalibrated probabilities; rows of a group never seen are moved as all are."""
        stated = prediction_of(evalset, Probabilities)
        if len(stated.names) != len(self.names) or (
            len(self.names) > 2 and stated.names != self.names
        ):
            raise InputError(
                f"the rows must have probabilities of the {len(self.names)} classes of the "
                f"calibration rows ({', '.join(self.names[:6])}), got {len(stated.names)} "
                f"({', '.join(stated.names[:6])})"
            )
        groups = None
        notes: tuple[str, ...] = ()
        if self.cells is not None:
            places = self.cells.find(evalset)
            unseen = places == len(self.cells.labels)
            groups = np.where(unseen, -1, places)
            if unseen.any():
                rows = f"{int(unseen.sum()):,} rows are of groups that calibration lacks"
                notes = (f"{rows}: they are moved as all rows are.",)
        return Probabilities(
            self.learnt.apply(_normalised(stated), groups), stated.classes or self.names
        ), notes


def _normalised(stated: Probabilities) -> FloatArray:
    """Probabilities that sum to 1."""
    return np.asarray(stated.table / stated.table.sum(axis=1, keepdims=True))


def _parameters(
    learnt: ClassRecalibration, names: tuple[str, ...], n: int
) -> tuple[FittedParameter, ...]:
    """What was learnt, in numbers: of two classes as they move the second's log-odds."""

    def parameter(name: str, value: float) -> FittedParameter:
        return FittedParameter(name=name, value=value, n=float(n))

    if learnt.method == "isotonic":
        return (parameter("knots", float(sum(map(len, learnt.claims)))),)
    slopes, shifts = 1.0 + learnt.slopes, learnt.shifts
    if learnt.method == "temperature":
        return (parameter("temperature", float(1.0 / max(slopes[0], 1e-9))),)
    parameters = []
    if len(names) == 2:
        parameters = [parameter(f"shift of {names[1]}", float(shifts[1] - shifts[0]))]
    else:
        centred = shifts - shifts.mean()
        parameters = [
            parameter(f"shift of {name}", float(shift))
            for name, shift in zip(names, centred, strict=True)
        ]
    if np.ptp(slopes) > 1e-9:
        parameters += [
            parameter(f"slope of {name}", float(slope))
            for name, slope in zip(names, slopes, strict=True)
        ]
    elif learnt.slopes.any():
        parameters.append(parameter("slope", float(slopes[0])))
    return tuple(parameters)


def _info(name: str, words: str, *aliases: str) -> MethodInfo:
    return MethodInfo(
        name=name,
        kinds=(Probabilities.kind,),
        make=lambda _, options: ProbabilityRecalibration(name, options.by),
        saves=(ProbabilityRecalibrator,),
        aliases=aliases,
        leads=(Probabilities.kind,) if name == "platt" else (),
        needs="groups" if name == "group" else "",
        words=words,
        label=f"by {name}" if name in ("platt", "beta") else "",
    )


METHODS = (
    _info("platt", "shift the log-odds of each class and divide them by a temperature"),
    _info("shift", "shift the log-odds of each class"),
    _info("temperature", "divide the log-probabilities by a temperature"),
    _info("beta", "give each class its own shift and slope of log-probabilities", "class"),
    _info("isotonic", "replace probabilities by the isotonic curve of what happened"),
    _info("group", "shift the log-odds of each class in each group of {by}"),
)
