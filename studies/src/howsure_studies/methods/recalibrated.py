"""Any method, its predictions recalibrated on rows held out from its training."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from howsure.conformal import DELTA, RankRule, TooFew
from howsure.core.convert import Coverages, Fraction, check_fields
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.predictions import EvalSet, Prediction
from howsure.recalibration import METHODS, RecalibrationOptions, Recalibrator, methods_of
from howsure.recalibration import RecalibrationMethod as Recalibration
from howsure.recalibration.levels import levels_with
from howsure.recalibration.registry import method_of
from howsure_studies.methods.interface import (
    COVERAGES,
    Beliefs,
    Fitted,
    Method,
    checked_rows,
    held_out,
)
from howsure_studies.methods.regressors import as_method

WAYS: Final = tuple(name for name, info in METHODS.items() if info.label)
"""Those that a method can be recalibrated by."""


def _check_way(value: Any, name: str) -> str:
    check_known(value, WAYS, name)
    return str(value)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibratedMethod(Method):
    """Any method, trained on one part of the rows and recalibrated on the other.

    Parameters
    ----------
    inner : Method or scikit-learn regressor
        What is recalibrated; a regressor is wrapped by `as_method`.
    method : {"isotonic", "crude", "scale", "conformal", "shift", "shift_scale", "multiply", \
"widths", "isotonic_variance", "shape", "cqr", "asymmetric", "ucc"}
        ``isotonic`` and ``crude``: laws and samples become quantiles, by their PIT or by their
        z-scores. ``scale``: sds of laws and scatter of samples times one factor. ``conformal``:
        each quantile moves by its own constant. ``shift``, ``shift_scale``, ``multiply``,
        ``widths``, ``isotonic_variance``, ``shape``: as `Shift`, `ShiftScale`, `Multiply`,
        `Widths`, `IsotonicVariance` and `Shape` of this package. ``cqr``, ``asymmetric``,
        ``ucc``: central intervals of any kind, moved by one offset, by one for each end, or
        stretched by the k of the uncertainty characteristics curve.
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
    mean of y that is told stays as it is.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> RecalibratedMethod(inner=LinearT()).name
    'linear t, recalibrated by its PIT'
    """

    inner: Method | Any = field(default=None, metadata={"written": "method"})
    method: Annotated[str, _check_way] = field(default="isotonic", metadata={"written": "by"})
    calibration: float = 0.3
    coverages: Coverages = COVERAGES
    rank: RankRule = "conformal"
    delta: Fraction = DELTA
    too_few: TooFew = "infinite"
    by: InitVar[str | None] = None

    def __post_init__(self, by: str | None) -> None:
        if by is not None or self.inner is None:
            raise InputError(
                "inner must be what is recalibrated, and method the way: in 0.2.0 they were called "
                f"method and by, got inner={self.inner!r}, method={self.method!r} and by={by!r}"
            )
        check_fields(self)
        object.__setattr__(self, "inner", as_method(self.inner, self.coverages))
        fixed = self.inner.fixed_coverages
        missing = [] if fixed is None else [c for c in self.coverages if c not in fixed]
        if missing and METHODS[self.method].gives in ("intervals", "levels"):
            raise InputError(
                f"coverages must be among those of {self.inner.name} "
                f"({', '.join(f'{c:g}' for c in fixed or ())}), got {missing[0]:g}"
            )

    @property
    def name(self) -> str:
        return f"{self.inner.name}, recalibrated {METHODS[self.method].label}"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        if METHODS[self.method].gives == "same":
            return cast("tuple[float, ...] | None", self.inner.fixed_coverages)
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> RecalibratedFit:
        """Train on one part of the rows, and recalibrate on the other.

        Raises
        ------
        InputError
            If a value is not finite, there are too few rows, or what the method predicts cannot
            be recalibrated in this way; the message names the ways that can.
        UnanswerableError
            If a law has no mean or sd where one is needed.
        """
        inputs, targets = checked_rows(x, y, least=4)
        calibration = held_out(rng, len(targets), self.calibration, "calibration")
        trained = self.inner.fit(inputs[~calibration], targets[~calibration], rng)
        known = EvalSet.checked(targets[calibration], trained.predict(inputs[calibration]).outcome)
        recalibrator = self._recalibration(known.beliefs[0]).fit(known)
        fitted = RecalibratedFit(trained, recalibrator)
        if METHODS[self.method].gives == "quantiles":
            self._check_reach(recalibrator, int(calibration.sum()))
        return fitted

    def _recalibration(self, prediction: Prediction) -> Recalibration:
        """The recalibration of predictions of this kind."""
        kind = prediction.kind
        info = method_of(kind, self.method)
        if info is None:
            suiting = [name for name in methods_of(kind) if name in WAYS]
            raise InputError(
                f"method must suit what {self.inner.name} gives, {kind} "
                f"({', '.join(suiting) or 'none does'}), got {self.method!r}"
            )
        options = RecalibrationOptions(
            coverages=self.coverages,
            too_few=self.too_few,
            rank=self.rank,
            delta=self.delta,
            levels=levels_with(self.coverages),
        )
        return info.make(kind, options)

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
@dataclass(frozen=True, slots=True, eq=False)
class RecalibratedFit(Fitted):
    """A trained method, and what its held-out rows taught."""

    method: Fitted
    recalibrator: Recalibrator  # `parameters` holds what was learnt, `guarantee` what holds

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """Predictions at the rows of x, recalibrated."""
        given = self.method.predict(x)
        rows = EvalSet.checked(np.zeros(given.outcome.n), given.outcome)  # no y is read
        return Beliefs(self.recalibrator.transform(rows)[0], given.mean)
