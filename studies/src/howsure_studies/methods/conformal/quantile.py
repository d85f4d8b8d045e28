"""Conformalised methods: CQR, and any method's intervals moved or stretched until they cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np

from howsure.conformal.adapting import Adaptation
from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.scores import Band, Offset, Range, Scaled, Score
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import FloatArray, as_vector, check_interval
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.inputs.distributions import quantile_parameter
from howsure_studies.methods.conformal.inductive import (
    EVERYWHERE,
    Bands,
    InductiveConformal,
    comes_trained,
    model_name,
)
from howsure_studies.methods.interface import COVERAGES, Fitted, Method
from howsure_studies.methods.quantile_regression import QuantileRegression, boosted_quantiles

Move = Literal["offset", "scale"]
_SCORES: dict[str, Score] = {"offset": Offset(), "scale": Scaled()}


@final
@frozen
class Conformalized(InductiveConformal):
    """Any method's intervals moved, or stretched, by conformal thresholds until they cover.

    Parameters
    ----------
    method : Method, object with fit(x, y, rng) and predict(x), or callable
        What gives intervals: a method, or an own class as `as_method` takes it, trained on one
        part of the rows; or a function from inputs, shape (m, d), to ends (lower, upper), each of
        shape (m,), used as it is at every coverage.
    move : {"offset", "scale"}
        ``offset``: both ends move outward by one distance; around quantile regression this is
        CQR. ``scale``: the interval is stretched about its point forecast (its midpoint where it
        has none) by one factor.
    calibration, coverages, rank, delta, adapt, clip, too_few
        As in `InductiveConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule, or the method cannot answer a coverage.

    Notes
    -----
    At each coverage, the threshold of max(lower − y, y − upper) or of the critical scale. It may
    be negative, or below 1: then intervals shrink. Source: Romano, Patterson and Candès 2019,
    Algorithm 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> method = Conformalized(lambda x: (x[:, 0] - 1, x[:, 0] + 1), coverages=(0.9,))
    >>> fitted = method.fit(np.zeros((19, 1)), np.arange(-9.0, 10.0), rng)
    >>> fitted.predict([[0.0]]).outcome.interval(0.9)
    (array([-9.]), array([9.]))
    """

    method: Method | Any
    move: Move = "offset"

    def __post_init__(self) -> None:
        InductiveConformal.__post_init__(self)
        from howsure_studies.methods.regressors import (  # which import this package
            as_method,
            is_own,
        )

        if is_own(self.method):
            object.__setattr__(self, "method", as_method(self.method, self.coverages))
        if not isinstance(self.method, Method):
            if not comes_trained(self.method):
                raise InputError(
                    f"method must be a method or a function of inputs, got {self.method!r}"
                )
            return
        fixed = self.method.fixed_coverages
        missing = [] if fixed is None else [c for c in self.coverages if c not in fixed]
        if missing:
            raise InputError(
                f"coverages must be among those of {self.method.name} "
                f"({', '.join(f'{c:g}' for c in fixed or ())}), got {missing[0]:g}"
            )

    def _base_name(self) -> str:
        own = self.method
        name = own.name if isinstance(own, Method) else model_name(own)
        return f"conformalised {name}" + (", scaled" if self.move == "scale" else "")

    def _trains(self) -> bool:
        return isinstance(self.method, Method)

    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        score = _SCORES[self.move]
        if isinstance(self.method, Method):
            return score, _MethodBands(self.method.fit(x, y, rng), self.coverages)
        return score, _GivenBands(self.method)


@final
@frozen(eq=False)
class _MethodBands:
    fitted: Fitted
    coverages: tuple[float, ...]

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        prediction = self.fitted.predict(x).outcome
        ends = [prediction.interval(coverage) for coverage in self.coverages]
        try:
            point = prediction.point()
        except UnanswerableError:
            point = None
        return [_band(lower, upper, point) for lower, upper in ends]


@final
@frozen(eq=False)
class _GivenBands:
    model: Any

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        try:
            first, second = self.model(x)
        except ValueError as error:
            raise InputError(f"method must give two ends, (lower, upper): {error}") from error
        lower, upper = check_interval(first, second, length=len(x))
        return [_band(lower, upper, None)]


def _band(lower: FloatArray, upper: FloatArray, point: FloatArray | None) -> Band:
    """A band about its point forecast where that lies inside, else about its midpoint."""
    middle = np.full(len(lower), np.nan)
    finite = np.isfinite(lower) & np.isfinite(upper)
    middle[finite] = lower[finite] / 2.0 + upper[finite] / 2.0
    if point is None:
        return Band(lower, upper, middle)
    given = as_vector(point, "the point forecast", length=len(lower))
    return Band(lower, upper, np.where((given >= lower) & (given <= upper), given, middle))


def conformalized_quantiles(
    regressor: Any = None,
    *,
    calibration: float = 0.5,
    coverages: tuple[float, ...] = COVERAGES,
    rank: RankRule = "conformal",
    delta: float = DELTA,
    adapt: Adaptation = EVERYWHERE,
    clip: Range | None = None,
    too_few: TooFew = "infinite",
) -> Conformalized:
    """CQR: conformalised quantile regression."""
    if regressor is None:
        inner = boosted_quantiles(coverages)
    else:
        parameter = quantile_parameter(regressor) or "quantile"
        inner = QuantileRegression(regressor, parameter, coverages)
    return Conformalized(
        inner,
        calibration=calibration,
        coverages=coverages,
        rank=rank,
        delta=delta,
        adapt=adapt,
        clip=clip,
        too_few=too_few,
    )
