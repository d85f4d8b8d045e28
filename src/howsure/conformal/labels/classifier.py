"""Sets of labels with guaranteed coverage, around any classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.adapting import (
    Adaptation,
    Calibration,
    Marginal,
    RankChoice,
    Thresholds,
)
from howsure.conformal.labels.scores import APS, LabelScore, Table
from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Fraction
from howsure.core.errors import InputError
from howsure.core.rng import child, row_keys, row_uniforms
from howsure.predictions import LabelSets
from howsure.stats.dominance import class_numbers

# 1,000 probabilities of half or single precision add up to 1 within it; unnormalised ones do not.
_MAX_ERROR_OF_SUM = 1e-3
_DEFAULT = APS()
_EVERYWHERE = Marginal()


@final
@frozen(kw_only=True)
class LabelConformal(Checked):
    """Conformal sets of labels around a trained classifier.

    Parameters
    ----------
    model : classifier or callable, optional
        Trained: has ``predict_proba``, as scikit-learn's classifiers and pipelines do, or maps
        inputs to a table of shape (n, classes). If omitted, inputs are such tables themselves.
    score : LabelScore
        `LAC`, `APS`, `RAPS`, `SAPS` or `GivenScore`.
    coverage : float
        Nominal coverage 1−α.
    adapt : Adaptation
        How thresholds depend on the example: one for all, or `Mondrian` by any grouping, with
        `EaseBins` for O-LAC and O-SAPS; `CovariateShift`; `Localized`.
    rank, delta
        What the coverage means; see `conformal_rank`.
    draws : {"row", "class"}
        Whether one U serves all classes of an example, or each class has its own when sets are
        formed, as TorchCP does. Sets hold the likeliest few classes only with the first.
    allow_empty : bool
        Whether a set may be empty; otherwise the likeliest class is added, and sets cover more.
    too_few : {"infinite", "error"}
        Where calibration rows are too few: all classes, or an error.
    seed : int
        Seed of the draws, which belong to rows by content.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Marginal coverage is at least 1 − α, and at most 1 − α + 1/(n + 1) where scores do not tie.
    Memory beyond the tables: O(n).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(4), size=500)
    >>> y = np.array([rng.choice(4, p=row) for row in p])
    >>> sets = LabelConformal(coverage=0.8).calibrate(p[:300], y[:300]).predict(p[300:])
    >>> bool(0.7 < sets.contains(y[300:].astype(float)).mean() < 0.9)
    True
    """

    model: Any = None
    score: LabelScore = _DEFAULT
    coverage: Fraction = 0.9
    adapt: Adaptation = _EVERYWHERE
    rank: RankRule = "conformal"
    delta: Fraction = DELTA
    draws: Literal["row", "class"] = "row"
    allow_empty: bool = True
    too_few: TooFew = "infinite"
    seed: int = 0

    @property
    def name(self) -> str:
        """What reports call it."""
        return ", ".join(filter(None, (self.score.name, self.adapt.label)))

    def calibrate(
        self, x: npt.ArrayLike, y: npt.ArrayLike, *, reference: npt.ArrayLike | None = None
    ) -> CalibratedLabels:
        """Learn thresholds from rows that the classifier was not trained on.

        Parameters
        ----------
        x : array-like of shape (n, …)
            Inputs of the classifier, or tables of probabilities without one.
        y : array-like of shape (n,)
            The true class: a whole number from 0, or a label of the classifier's ``classes_``.
        reference : array-like of shape (k, …), optional
            Other inputs, unlabelled, from which groups are learnt; coverage within groups is
            exact only then. Calibration rows are used if omitted.

        Returns
        -------
        CalibratedLabels

        Raises
        ------
        InputError
            If a row of probabilities is not finite, is negative or does not sum to one, a label
            is unknown, or there are too few rows and that is refused.
        """
        outputs = Outputs(self.model)
        inputs = np.asarray(x)
        table = checked_table(outputs(inputs), self.score)
        labels = self.numbers(y, table)
        edges = inputs[:0] if reference is None else np.asarray(reference)
        learnt = self.learnt(table, labels, inputs, outputs=outputs, reference=edges)
        return CalibratedLabels(self, outputs, learnt, table.shape[1])

    def learnt(
        self,
        table: Table,
        labels: IntArray,
        x: AnyArray,
        *,
        outputs: Outputs,
        reference: AnyArray,
    ) -> LabelThresholds:
        """Thresholds from tables and labels that are checked already; see `calibrate`."""
        scores = self.score.of_labels(table, labels, self._draws("calibration labels", table))
        rising, places = _ordered(scores)
        calibration = Calibration(
            scores=places[:, None],
            x=x,
            coverages=(self.coverage,),
            choice=RankChoice(self.rank, self.delta, self.too_few),
            training=reference,
            forecast=outputs,
            rng=child(self.seed, "label sets"),
        )
        return LabelThresholds(self.adapt.learn(calibration), rising)

    def sets(self, table: Table, thresholds: FloatArray) -> LabelSets:
        """Sets from a checked table and one threshold per row, shape (n, 2)."""
        classes = table.shape[1] if self.draws == "class" else None
        members = self.score.sets(table, thresholds, self._draws("new labels", table, classes))
        if not self.allow_empty:
            _fill(members, table, self.score)
        return LabelSets(members, self.coverage)

    def _draws(self, stage: str, table: Table, columns: int | None = None) -> FloatArray:
        if not self.score.random:
            return np.broadcast_to(0.5, len(table))
        return row_uniforms(self.seed, stage, row_keys(table), columns)

    def numbers(self, y: npt.ArrayLike, table: Table) -> IntArray:
        """The true classes as column numbers of the table."""
        classes = getattr(self.model, "classes_", None)
        if classes is None:
            return class_numbers(y, *table.shape)
        labels = np.asarray(y)
        if labels.shape != (len(table),):
            raise InputError(f"y must have shape ({len(table)},), got {labels.shape}")
        places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        wrong = classes[places] != labels
        if wrong.any():
            raise InputError(
                f"y must contain classes of the model, got {labels[np.argmax(wrong)]!r}"
            )
        return np.asarray(places)


@final
@frozen(eq=False)
class CalibratedLabels:
    """A calibrated `LabelConformal`.

    Attributes
    ----------
    method : LabelConformal
        What was calibrated.
    outputs : Outputs
        The classifier.
    thresholds : LabelThresholds
        Learnt from the calibration rows.
    classes : int
        Number of classes.
    """

    method: LabelConformal
    outputs: Outputs
    thresholds: LabelThresholds
    classes: int

    def predict(self, x: npt.ArrayLike) -> LabelSets:
        """Sets of labels for rows of inputs.

        Raises
        ------
        InputError
            If probabilities break their rules, or the number of classes is another.
        """
        how = self.method
        inputs = np.asarray(x)
        table = checked_table(self.outputs(inputs), how.score)
        if table.shape[1] != self.classes:
            raise InputError(
                f"x must give {self.classes} classes, as in calibration, got {table.shape[1]}"
            )
        return how.sets(table, self.thresholds.at(inputs))


@final
@frozen(eq=False)
class LabelThresholds:
    """Thresholds among the scores of calibration rows."""

    # learnt from the rows' places in the order of scores, counted from 0; rows that tie share one
    places: Thresholds
    rising: FloatArray  # shape (k, 2): the scores at the places; see `LabelScore.of_labels`

    def at(self, x: AnyArray) -> FloatArray:
        """The threshold that holds at each row of x, shape (m, 2); +inf first for all classes."""
        places = self.places.at(x)[:, 0]
        ends = np.concatenate((self.rising, [[np.inf, 0.0]]))
        return ends[np.minimum(places, len(self.rising)).astype(np.int64)]


@final
@frozen(eq=False)
class Outputs:
    """A classifier's table of outputs, one row an input.

    Parameters
    ----------
    model : classifier, callable or None
        As in `LabelConformal`.

    Examples
    --------
    >>> Outputs(None)(np.array([[0.5, 0.5]]))
    array([[0.5, 0.5]])
    """

    model: Any

    def __call__(self, x: AnyArray) -> AnyArray:
        """Outputs, shape (n, classes)."""
        if self.model is None:
            return x
        run: Callable[[Any], Any] | None = getattr(self.model, "predict_proba", None)
        if run is None and not callable(self.model):
            raise InputError(
                f"model must have predict_proba or be a function of inputs, got {self.model!r}"
            )
        return np.asarray(self.model(x) if run is None else run(x))


def checked_table(table: AnyArray, score: LabelScore) -> Table:
    """A table of finite numbers; of probabilities, where the score needs them."""
    if table.ndim != 2 or table.shape[1] < 2 or not len(table) or table.dtype.kind not in "iuf":
        raise InputError(
            "x must give numbers of shape (n, classes) with at least one row and two classes, "
            f"got shape {table.shape} of {table.dtype}"
        )
    values = table if table.dtype.kind == "f" else table.astype(np.float64)
    sums = values.sum(axis=1, dtype=np.float64)
    if not np.isfinite(sums).all():
        raise InputError(f"outputs must be finite; not so at row {_first(~np.isfinite(sums))}")
    if score.bounded:
        negative = values.min(axis=1) < 0
        if negative.any():
            raise InputError(
                f"probabilities must not be negative; not so at row {_first(negative)}"
            )
        off = np.abs(sums - 1) > _MAX_ERROR_OF_SUM
        if off.any():
            row = _first(off)
            raise InputError(f"probabilities must sum to one, got {sums[row]:g} at row {row}")
    return values


def _ordered(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores of two numbers that differ, in order, and the place of each row among them."""
    order = np.lexsort((scores[:, 1], scores[:, 0]))
    rising = scores[order]
    fresh = np.r_[True, (rising[1:] != rising[:-1]).any(axis=1)]
    places = np.empty(len(scores))
    places[order] = np.cumsum(fresh) - 1.0
    return rising[fresh], places


def _fill(members: BoolArray, table: Table, score: LabelScore) -> None:
    """Put the least strange class into empty sets."""
    empty = np.flatnonzero(~members.any(axis=1))
    probabilities = table[empty]
    best = probabilities.argmax(axis=1) if score.bounded else probabilities.argmin(axis=1)
    members[empty, best] = True


def _first(wrong: BoolArray) -> int:
    return int(np.argmax(wrong))
