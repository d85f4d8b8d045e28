"""Quantile regression: one regressor a level, or one that gives any level."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Coverages, check_fields
from howsure.core.errors import InputError
from howsure.inputs.distributions import central_levels, loss_beside, parameters_of, predict_options
from howsure.predictions import Quantiles
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    point_of,
    trained,
)


@final
@frozen
class QuantileRegression(Method):
    """One regressor a level, each minimising the pinball loss; crossing quantiles are sorted.

    Parameters
    ----------
    regressor : scikit-learn regressor
        A regressor of one quantile; see `linear_quantiles` and `boosted_quantiles`.
    parameter : str
        Which of its parameters is the level: ``quantile``, ``alpha`` for
        ``GradientBoostingRegressor``, or one of a pipeline's step (``step__quantile``).
    coverages : tuple of float
        The coverages of its central intervals.

    Raises
    ------
    InputError
        If a coverage breaks its rule, or the regressor has no such parameter or another loss.

    Notes
    -----
    Source: Koenker and Bassett 1978; sorting: Chernozhukov, Fernández-Val and Galichon 2010.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 40)[:, None]
    >>> method = linear_quantiles(coverages=(0.8,))
    >>> fitted = method.fit(x, x[:, 0] + 0.1 * np.sin(50 * x[:, 0]), np.random.default_rng(0))
    >>> fitted.predict([[0.5]]).outcome.levels
    array([0.1, 0.9])
    """

    regressor: Any
    parameter: str = "quantile"
    coverages: Coverages = COVERAGES

    def __post_init__(self) -> None:
        check_fields(self)
        parameters = parameters_of(self.regressor)
        if self.parameter not in parameters:
            raise InputError(
                f"regressor must have the parameter {self.parameter!r}, "
                f"got {type(self.regressor).__name__}"
            )
        loss = loss_beside(parameters, self.parameter)
        if loss not in (None, "quantile"):
            raise InputError(
                f"regressor must minimise the pinball loss (loss='quantile'), got loss={loss!r}"
            )

    @property
    def name(self) -> str:
        return f"quantile regression ({type(self.regressor).__name__})"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Levels:
        """Fit one regressor to each level."""
        inputs, targets = checked_rows(x, y, least=2)
        levels = central_levels(self.coverages)
        models = (
            trained(self.regressor, inputs, targets, rng, **{self.parameter: float(level)})
            for level in levels
        )
        return _Levels(levels, tuple(models))


@final
@frozen(eq=False)
class _Levels(Fitted):
    levels: FloatArray
    models: tuple[Any, ...]

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles of a new y at each row of x."""
        columns = [point_of(model, x) for model in self.models]
        return Predictions(Quantiles(self.levels, np.stack(columns, axis=1), crossing="sort"))


@final
@frozen
class PredictedQuantiles(Method):
    """Any regressor whose ``predict(x, quantiles=levels)`` gives one column a level."""

    regressor: Any
    coverages: Coverages = COVERAGES

    def __post_init__(self) -> None:
        check_fields(self)
        if "quantiles" not in predict_options(self.regressor):
            raise InputError(
                "regressor must have predict(x, quantiles=levels), "
                f"got {type(self.regressor).__name__}"
            )

    @property
    def name(self) -> str:
        return type(self.regressor).__name__

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Table:
        """Fit a copy of the regressor."""
        inputs, targets = checked_rows(x, y, least=2)
        return _Table(central_levels(self.coverages), trained(self.regressor, inputs, targets, rng))


@final
@frozen(eq=False)
class _Table(Fitted):
    levels: FloatArray
    model: Any

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles of a new y at each row of x."""
        inputs = as_matrix(x, "x")
        table = self.model.predict(inputs, quantiles=self.levels.tolist())
        values = as_matrix(table, "quantiles", length=len(inputs))
        return Predictions(Quantiles(self.levels, values, crossing="sort"))


def linear_quantiles(coverages: tuple[float, ...] = COVERAGES) -> QuantileRegression:
    """Linear quantile regression, without a penalty."""
    from sklearn.linear_model import QuantileRegressor

    return QuantileRegression(QuantileRegressor(alpha=0.0, solver="highs"), coverages=coverages)


def boosted_quantiles(coverages: tuple[float, ...] = COVERAGES) -> QuantileRegression:
    """Quantile regression by gradient boosting of histograms."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    regressor = HistGradientBoostingRegressor(loss="quantile", quantile=0.5)
    return QuantileRegression(regressor, coverages=coverages)
