"""Any method, its predictions recalibrated on rows held out from its training."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import InitVar, field
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Coverages, Fraction, Natural, check_fields
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.registry import check_known
from howsure.predictions import EvalSet, Prediction
from howsure.recalibration import METHODS, Recalibrator, method, methods_of
from howsure.recalibration import RecalibrationMethod as Recalibration
from howsure.recalibration.dispatch import BEST, method_of
from howsure.recalibration.levels import levels_with
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    held_out,
)
from howsure_studies.methods.regressors import as_method

if TYPE_CHECKING:
    from howsure.verdict import Trials

WAYS: Final = (*(name for name, info in METHODS.items() if info.label), BEST)
"""Those that a method can be recalibrated by."""


def _check_way(value: Any, name: str) -> str:
    check_known(value, WAYS, name)
    return str(value)


@final
@frozen(kw_only=True)
class RecalibratedMethod(Method):
    """Any method, trained on one part of the rows and recalibrated on the other.

    Parameters
    ----------
    inner : Method or scikit-learn regressor
        What is recalibrated; a regressor is wrapped by `as_method`.
    method : {"isotonic", "crude", "scale", "conformal", "shift", "shift_scale", "multiply", \
"widths", "isotonic_variance", "shape", "cqr", "asymmetric", "ucc", "inputs", "group", "best"}
        ``isotonic`` and ``crude``: laws and samples become quantiles, by their PIT or by their
        z-scores. ``scale``: sds of laws and scatter of samples times one factor. ``conformal``:
        each quantile moves by its own constant. ``shift``, ``shift_scale``, ``multiply``,
        ``widths``, ``isotonic_variance``, ``shape``: as `Shift`, `ShiftScale`, `Multiply`,
        `Widths`, `IsotonicVariance` and `Shape` of this package. ``cqr``, ``asymmetric``,
        ``ucc``: central intervals of any kind, moved by one offset, by one for each end, or
        stretched by the k of the uncertainty characteristics curve. ``inputs``: where trees over
        the columns of x say that predictions fail. ``group``: by `group_columns`. ``best``: the
        way whose gain is proven in five-fold cross-validation on the rows held out, or none, as
        `howsure.recalibrate` finds it; then nothing changes.
    group_columns : tuple of int
        Numbers of the columns of x, from 0, whose values are labels of groups. ``group`` needs
        some, and recalibrates where they cross; ``best`` tries each.
    calibration : int or float
        Rows, or the share of rows, held out to learn from.
    coverages : tuple of float
        Coverages of its intervals, where the method fixes them: of tables of quantiles and of
        conformal intervals. Ways that keep the kind keep those of the method within. Quantiles
        come at the 23 levels of the forecast hubs too.
    rank, delta, too_few
        As in `howsure.recalibration.recalibrate`.

    Raises
    ------
    InputError
        If an option breaks its rule, or the method within cannot answer a coverage.

    Notes
    -----
    `Conformalized` does what ``cqr`` and ``ucc`` do, and can let thresholds depend on x. The
    mean of y that is told stays as it is. Of the rows that ``best`` chooses on, the same teach
    what it chose: no finite-sample guarantee of that way holds.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> RecalibratedMethod(inner=LinearT()).name
    'linear t, recalibrated using its PIT'

    Noise is larger in the group of rows where x is 1:

    >>> rng = np.random.default_rng(0)
    >>> x = np.tile([[0.0], [1.0]], (1000, 1))
    >>> y = (1.0 + 2.0 * x[:, 0]) * rng.normal(size=2000)
    >>> method = RecalibratedMethod(inner=LinearT(), method="group", group_columns=(0,))
    >>> method.fit(x, y, rng).predict([[0.0], [1.0]]).outcome.sd().round(1)
    array([1., 3.])
    """

    inner: Method | Any = field(default=None, metadata={"written": "method"})
    method: Annotated[str, _check_way] = field(default="isotonic", metadata={"written": "by"})
    calibration: float = 0.3
    coverages: Coverages = COVERAGES
    rank: RankRule = "conformal"
    delta: Fraction = DELTA
    too_few: TooFew = "infinite"
    group_columns: tuple[Natural, ...] = field(default=(), metadata={"later": True})
    by: InitVar[str | None] = None

    def __post_init__(self, by: str | None) -> None:
        if by is not None or self.inner is None:
            raise InputError(
                "inner must be the method to recalibrate, and method the recalibration (in 0.2.0: "
                f"method and by), got inner={self.inner!r}, method={self.method!r} and by={by!r}"
            )
        check_fields(self)
        if self.method == "group" and not self.group_columns:
            raise InputError("group_columns must name columns of x for the method 'group', got ()")
        if self.group_columns and self.method not in ("group", BEST):
            raise InputError(
                f"group_columns must go with the methods 'group' and 'best', got {self.method!r}"
            )
        object.__setattr__(self, "inner", as_method(self.inner, self.coverages))
        fixed = self.inner.fixed_coverages
        missing = [] if fixed is None else [c for c in self.coverages if c not in fixed]
        if missing and self._gives in ("intervals", "levels"):
            raise InputError(
                f"coverages must be among those of {self.inner.name} "
                f"({', '.join(f'{c:g}' for c in fixed or ())}), got {missing[0]:g}"
            )

    @property
    def name(self) -> str:
        how = "if that helps" if self.method == BEST else METHODS[self.method].label
        return f"{self.inner.name}, recalibrated {how}"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        if self._gives == "same":
            return cast("tuple[float, ...] | None", self.inner.fixed_coverages)
        return self.coverages

    @property
    def _gives(self) -> str:
        """What it makes of laws, samples and quantiles; of several ways, what limits most."""
        return "levels" if self.method == BEST else METHODS[self.method].gives

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> RecalibratedFit:
        """Train on one part of the rows, and recalibrate on the other.

        Raises
        ------
        InputError
            If a value is not finite, there are too few rows, x lacks a column of groups, or what
            the method predicts cannot be recalibrated in this way; the message names the ways that
            can.
        UnanswerableError
            If a law has no mean or sd where one is needed.
        """
        inputs, targets = checked_rows(x, y, least=4)
        if max(self.group_columns, default=0) >= inputs.shape[1]:
            raise InputError(
                f"group_columns must be below {inputs.shape[1]}, the number of columns of x, "
                f"got {max(self.group_columns)}"
            )
        calibration = held_out(rng, len(targets), self.calibration, "calibration")
        trained = self.inner.fit(inputs[~calibration], targets[~calibration], rng)
        outcome = trained.predict(inputs[calibration]).outcome
        needs = ("inputs", "groups") if self.method == BEST else (METHODS[self.method].needs,)
        known = _rows(targets[calibration], outcome, inputs[calibration], needs, self.group_columns)
        if self.method != BEST:
            recalibrator = self._recalibration(known.predictions[0], self.method).fit(known)
            if self._gives == "quantiles":
                self._check_reach(recalibrator, known.n)
            return RecalibratedFit(trained, recalibrator, self.group_columns)
        from howsure.verdict import try_recalibrations

        with subscribe(lambda *_: None):  # one fit of many, whose steps hide those of the whole
            trials = try_recalibrations(known)
        advice = trials.advice
        if advice is None or not advice.method:
            return RecalibratedFit(trained, None, self.group_columns, trials)
        chosen = self._recalibration(known.predictions[0], advice.method, advice.by).fit(known)
        return RecalibratedFit(trained, chosen, self.group_columns, trials)

    def _recalibration(
        self, prediction: Prediction, name: str, by: tuple[str, ...] = ()
    ) -> Recalibration:
        """The recalibration of predictions of this kind, by all columns of groups or some."""
        kind = prediction.kind
        if method_of(kind, name) is None:
            suiting = [way for way in methods_of(kind) if way in WAYS]
            raise InputError(
                f"method must suit what {self.inner.name} gives, {kind} "
                f"({', '.join(suiting) or 'none does'}), got {name!r}"
            )
        return method(
            name,
            kind,
            coverages=self.coverages,
            too_few=self.too_few,
            rank=self.rank,
            delta=self.delta,
            levels=levels_with(self.coverages),
            by=by or tuple(_column(number) for number in self.group_columns),
        )

    def _check_reach(self, recalibrator: Recalibrator, rows: int) -> None:
        """Raise `InputError` where quantiles do not reach the widest interval."""
        levels = [learnt.nominal for learnt in recalibrator.parameters]
        tail = max(float(np.nanmin(levels)), 1.0 - float(np.nanmax(levels)))
        widest = self.coverages[-1]
        if 1.0 - 2.0 * tail < widest - 1e-9:
            raise InputError(
                f"calibration must reach intervals at coverage {widest:g}, got {rows} rows that "
                f"reach {1.0 - 2.0 * tail:g} ({' '.join(recalibrator.notes)})"
            )


@final
@frozen(eq=False)
class RecalibratedFit(Fitted):
    """A trained method, and what its held-out rows taught."""

    method: Fitted
    # `parameters` holds what was learnt, `guarantee` what holds; None where nothing helps
    recalibrator: Recalibrator | None
    group_columns: tuple[int, ...] = ()  # of x
    trials: Trials | None = None  # what ``best`` tried, and what it advises

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Predictions at the rows of x, recalibrated."""
        given = self.method.predict(x)
        if self.recalibrator is None:
            return given
        needs = (METHODS[self.recalibrator.method].needs,)
        unread = np.zeros(given.outcome.n)  # no y is read
        rows = _rows(unread, given.outcome, as_matrix(x, "x"), needs, self.group_columns)
        return Predictions(self.recalibrator.transform(rows)[0], given.mean)


def _rows(
    y: FloatArray,
    outcome: Prediction,
    x: FloatArray,
    needs: Collection[str],
    group_columns: tuple[int, ...],
) -> EvalSet:
    """Rows with what a way to recalibrate needs of x beside the predictions."""
    inputs = range(x.shape[1]) if "inputs" in needs else ()
    groups = group_columns if "groups" in needs else ()
    return EvalSet.checked(
        y,
        outcome,
        features={_column(number): x[:, number] for number in inputs},
        groups={_column(number): x[:, number] for number in groups},
    )


def _column(number: int) -> str:
    """What a column of x is called."""
    return f"x{number}"
