"""Normalised conformal prediction: intervals as wide as a model of the errors says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, final, runtime_checkable

import numpy as np

from howsure.conformal.scores import Band, Scaled, Score
from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, Positive
from howsure.core.errors import InputError
from howsure.inputs.distributions import predict_options
from howsure_studies.methods.conformal.inductive import (
    Bands,
    Forecaster,
    InductiveConformal,
    comes_trained,
    forecaster,
    model_name,
)
from howsure_studies.methods.interface import held_out, trained

Errors = Literal["cross", "split", "training"]


@runtime_checkable
class Feature(Protocol):
    """Further columns, computed from inputs, for a model of the errors."""

    def learn(self, x: FloatArray, rng: np.random.Generator) -> Any:
        """A function from inputs, shape (m, d), to columns, shape (m, k)."""


@final
@frozen
class NormalizedConformal(InductiveConformal):
    """Normalised split conformal prediction: forecast ± quantile × predicted size of the error.

    Parameters
    ----------
    regressor : scikit-learn regressor or callable
        What forecasts; see `SplitConformal`.
    difficulty : scikit-learn regressor or callable, optional
        What predicts the size of an error from x: a regressor is trained on absolute errors, a
        function is used as it is. If omitted, the sd of the regressor itself
        (``predict(x, return_std=True)``).
    errors : {"cross", "split", "training"}
        Which errors train it: ``cross``, those of five-fold cross-validation on the training
        rows; ``split``, those of half of the training rows, which the regressor does not see;
        ``training``, those of the rows that the regressor was trained on, too small if it
        over-fits.
    floor : float
        The least predicted size, as a share of the mean absolute error that trained it, above 0.
    feature : Feature, optional
        What adds columns to the inputs of `difficulty`, such as `ReconstructionLoss`.
    calibration, coverages, rank, delta, adapt, clip, too_few
        As in `InductiveConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Score |y − f̂(x)|/σ̂(x); the threshold times σ̂(x) is the half-width. Covers 1 − α on average
    over x whatever σ̂ is. Source: Papadopoulos, Gammerman and Vovk 2008; Lei et al. 2018, section
    5.2, as "locally weighted" conformal prediction. With ``errors="split"`` and the feature
    `ReconstructionLoss` it is SSCP (Seedat et al. 2023).

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(400, 1))
    >>> y = x[:, 0] * rng.normal(size=400)
    >>> method = NormalizedConformal(LinearRegression(), LinearRegression(), coverages=(0.9,))
    >>> lower, upper = method.fit(x, y, rng).predict([[0.1], [0.9]]).outcome.interval(0.9)
    >>> bool(2 * (upper - lower)[0] < (upper - lower)[1])
    True
    """

    regressor: Any
    difficulty: Any = None
    errors: Errors = "cross"
    floor: Positive = 0.05
    feature: Feature | None = None

    def __post_init__(self) -> None:
        InductiveConformal.__post_init__(self)
        if self.feature is not None and not isinstance(self.feature, Feature):
            raise InputError(f"feature must learn columns from inputs, got {self.feature!r}")
        if self.difficulty is None and "return_std" not in predict_options(self.regressor):
            raise InputError(
                "difficulty must be given unless the regressor has predict(x, return_std=True), "
                f"got none with {model_name(self.regressor)}"
            )

    def _base_name(self) -> str:
        parts = [model_name(self.regressor)]
        if self.difficulty is not None:
            parts.append(model_name(self.difficulty))
        if self.feature is not None:
            parts.append(type(self.feature).__name__)
        return f"normalised conformal ({', '.join(parts)})"

    def _trains(self) -> bool:
        trained_already = comes_trained(self.regressor) and comes_trained(self.difficulty)
        return not trained_already

    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        if self.difficulty is None:
            return Scaled(), _OwnSd(trained(self.regressor, x, y, rng))
        if comes_trained(self.difficulty):
            forecast = forecaster(self.regressor, x, y, rng)
            return Scaled(), _Spread(forecast, Forecaster(self.difficulty), 0.0, None)
        columns = None if self.feature is None else self.feature.learn(x, rng)
        forecast, rows, sizes = self._errors(x, y, rng)
        least = self.floor * float(sizes.mean())
        if least <= 0:
            raise InputError(
                "errors must not all be zero to learn their size, got a perfect fit; "
                "errors='cross' or 'split' avoids one by over-fitting"
            )
        model = trained(self.difficulty, _widened(rows, columns), sizes, rng)
        return Scaled(), _Spread(forecast, Forecaster(model), least, columns)

    def _errors(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Forecaster, FloatArray, FloatArray]:
        """What forecasts, and inputs with the absolute errors that train the spread."""
        if self.errors == "split" and not comes_trained(self.regressor):
            apart = held_out(rng, len(y), 0.5, "errors")
            forecast = forecaster(self.regressor, x[~apart], y[~apart], rng)
            return forecast, x[apart], np.abs(y[apart] - forecast(x[apart]))
        forecast = forecaster(self.regressor, x, y, rng)
        if self.errors == "training" or comes_trained(self.regressor):
            return forecast, x, np.abs(y - forecast(x))
        folds = rng.permutation(len(y)) % min(5, len(y))
        errors = np.empty(len(y))
        for fold in range(int(folds.max()) + 1):
            own = folds == fold
            errors[own] = y[own] - forecaster(self.regressor, x[~own], y[~own], rng)(x[own])
        return forecast, x, np.abs(errors)


@final
@frozen(eq=False)
class _OwnSd:
    model: Any

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        mean, sd = self.model.predict(x, return_std=True)
        center = as_vector(mean, "the regressor's mean", length=len(x))
        return [_around(center, as_vector(sd, "the regressor's sd", length=len(x)))]


@final
@frozen(eq=False)
class _Spread:
    forecast: Forecaster
    size: Forecaster
    least: float
    columns: Any

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        size = self.size(_widened(x, self.columns))
        return [_around(self.forecast(x), np.maximum(size, self.least) if self.least else size)]


def _around(center: FloatArray, size: FloatArray) -> Band:
    if (size < 0).any():
        raise InputError(f"the size of errors must not be negative, got {size.min():g}")
    return Band(center - size, center + size, center)


def _widened(x: FloatArray, columns: Any) -> FloatArray:
    if columns is None:
        return x
    return np.concatenate([x, as_matrix(columns(x), "feature", length=len(x))], axis=1)


@final
@frozen
class ReconstructionLoss(Checked):
    """How badly an autoencoder restores each row: a self-supervised feature.

    Parameters
    ----------
    width : int, optional
        Units of the hidden layer, at least 1; half as many as columns, at least 1, if omitted.
    epochs : int
        Passes over the rows, at least 1.

    Notes
    -----
    One hidden layer of tanh units, trained by scikit-learn's ``MLPRegressor`` to give back the
    standardised inputs; the feature is the mean squared error of a row, standardised by the
    training rows. Source: Seedat, Jeffares, Imrie and van der Schaar 2023, "Improving adaptive
    conformal prediction using self-supervised learning".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 3))
    >>> ReconstructionLoss(epochs=20).learn(x, rng)(x[:5]).shape
    (5, 1)
    """

    width: Count | None = None
    epochs: Count = 200

    def learn(self, x: FloatArray, rng: np.random.Generator) -> _Restored:
        """Train the autoencoder on inputs."""
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        center, unit = x.mean(axis=0), x.std(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        model = MLPRegressor(
            hidden_layer_sizes=(self.width or max(1, x.shape[1] // 2),),
            activation="tanh",
            learning_rate_init=0.01,
            max_iter=self.epochs,
            random_state=int(rng.integers(2**31 - 1)),
        )
        z = (x - center) / unit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the epochs are the user's choice
            model.fit(z, z if z.shape[1] > 1 else z[:, 0])
        made = _Restored(model, center, unit, 0.0, 1.0)
        loss = made(x)[:, 0]
        return _Restored(model, center, unit, float(loss.mean()), float(loss.std()) or 1.0)


@final
@frozen(eq=False)
class _Restored:
    model: Any
    center: FloatArray
    unit: FloatArray
    mean: float
    sd: float

    def __call__(self, x: FloatArray) -> FloatArray:
        z = (x - self.center) / self.unit
        loss = np.square(z - self.model.predict(z).reshape(z.shape)).mean(axis=1)
        return np.asarray((loss - self.mean) / self.sd)[:, None]
