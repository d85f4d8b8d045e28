"""Methods around scikit-learn's regressors: their own sd or quantiles, or conformal intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.errors import InputError
from howsure.methods.conformal import Band, Offset, calibrate
from howsure.methods.interface import (
    COVERAGES,
    Beliefs,
    Fitted,
    Method,
    checked_coverages,
    checked_rows,
    held_out,
    located,
    point_of,
    predict_options,
    trained,
)
from howsure.methods.quantile_regression import (
    PredictedQuantiles,
    QuantileRegression,
    quantile_parameter,
)
from howsure.predictions import Intervals


@final
@dataclass(frozen=True, slots=True)
class GaussianProcess(Method):
    """A Gaussian process: constant × RBF + white noise, fitted by scikit-learn.

    Columns of x and y are standardised; the kernel's parameters maximise the likelihood. The mean
    is the process without its noise.

    Parameters
    ----------
    separate_lengths : bool
        Whether each column of x has its own length scale.
    restarts : int
        Further starts of the optimiser.

    Notes
    -----
    Source: Rasmussen and Williams 2006, Algorithm 2.1. Cost grows as n³: a few thousand rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 15)[:, None]
    >>> y = np.sin(6 * x[:, 0]) + 0.1 * (-1.0) ** np.arange(15)
    >>> beliefs = GaussianProcess().fit(x, y, np.random.default_rng(0)).predict(x)
    >>> bool((beliefs.mean.sd() < beliefs.outcome.sd()).all())
    True
    """

    separate_lengths: bool = False
    restarts: int = 0

    @property
    def name(self) -> str:
        """What reports call it."""
        return "Gaussian process"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Process:
        """Maximise the likelihood of the kernel's parameters.

        Raises
        ------
        InputError
            If a value is not finite, or there are fewer than three rows.
        """
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        inputs, targets = checked_rows(x, y, least=3)
        center, unit = inputs.mean(axis=0), inputs.std(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        lengths = np.ones(inputs.shape[1]) if self.separate_lengths else 1.0
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(lengths, (1e-2, 1e3))
        model = GaussianProcessRegressor(
            kernel + WhiteKernel(0.1, (1e-8, 1e2)),
            normalize_y=True,
            n_restarts_optimizer=self.restarts,
            random_state=int(rng.integers(2**31 - 1)),
        )
        return _Process(center, unit, model.fit((inputs - center) / unit, targets))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Process(Fitted):
    center: FloatArray
    unit: FloatArray
    model: Any

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """Normal laws of a new y and of the noiseless process at each row of x."""
        inputs = as_matrix(x, "x", columns=len(self.center))
        mean, sd = self.model.predict((inputs - self.center) / self.unit, return_std=True)
        scale = float(np.ravel(self.model._y_train_std)[0])
        noise = float(self.model.kernel_.k2.noise_level) * scale**2
        own = np.maximum(np.square(sd) - noise, 0.0)
        return Beliefs(
            outcome=located("norm", mean, np.sqrt(own + noise)),
            mean=located("norm", mean, np.sqrt(own)),
        )


@final
@dataclass(frozen=True, slots=True)
class SplitConformal(Method):
    """Split conformal prediction around any regressor: forecast ± a quantile of held-out errors.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What forecasts.
    calibration : int or float
        Rows, or the share of rows, held out for calibration.
    coverages : tuple of float
        The coverages of its intervals.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Half-width: the ⌈(n + 1)(1 − α)⌉-th smallest of n held-out |y − f̂|; infinite where n is too
    small. Covers 1 − α on average over x, for any law of exchangeable rows. Source: Lei et al.
    2018, Algorithm 2.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(200, 1))
    >>> fitted = SplitConformal(LinearRegression()).fit(x, rng.normal(size=200), rng)
    >>> fitted.predict([[0.5]]).outcome.coverages
    (0.7, 0.8, 0.9, 0.95)
    """

    regressor: Any
    calibration: float = 0.5
    coverages: tuple[float, ...] = COVERAGES

    def __post_init__(self) -> None:
        object.__setattr__(self, "coverages", checked_coverages(self.coverages))

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"split conformal ({type(self.regressor).__name__})"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """The coverages of its intervals."""
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Conformal:
        """Train on one part of the rows, and learn half-widths from the other.

        Raises
        ------
        InputError
            If a value is not finite, or there are too few rows.
        """
        inputs, targets = checked_rows(x, y, least=3)
        held = held_out(rng, len(targets), self.calibration, "calibration")
        model = trained(self.regressor, inputs[~held], targets[~held], rng)
        point = point_of(model, inputs[held])
        band = Band(point, point, point)
        halves = [calibrate(Offset(), targets[held], band, c).value for c in self.coverages]
        return _Conformal(model, np.array(halves), self.coverages)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Conformal(Fitted):
    model: Any
    halves: FloatArray
    coverages: tuple[float, ...]

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """Intervals for a new y at each row of x."""
        point = point_of(self.model, x)[:, None]
        return Beliefs(Intervals(point - self.halves, point + self.halves, self.coverages))


@final
@dataclass(frozen=True, slots=True)
class PredictedSd(Method):
    """Any regressor whose ``predict(x, return_std=True)`` gives a mean and an sd: normal laws.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What predicts. Its sd is taken as that of a new y.

    Raises
    ------
    InputError
        If its ``predict`` does not take ``return_std``.

    Examples
    --------
    >>> from sklearn.linear_model import ARDRegression
    >>> PredictedSd(ARDRegression()).name
    'ARDRegression'
    """

    regressor: Any

    def __post_init__(self) -> None:
        if "return_std" not in predict_options(self.regressor):
            raise InputError(
                "regressor must have predict(x, return_std=True), "
                f"got {type(self.regressor).__name__}"
            )

    @property
    def name(self) -> str:
        """What reports call it."""
        return type(self.regressor).__name__

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Spread:
        """Fit a copy of the regressor."""
        inputs, targets = checked_rows(x, y, least=2)
        return _Spread(trained(self.regressor, inputs, targets, rng))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Spread(Fitted):
    model: Any

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """Normal laws of a new y at each row of x."""
        inputs = as_matrix(x, "x")
        mean, sd = self.model.predict(inputs, return_std=True)
        spread = as_vector(sd, "the regressor's sd", length=len(inputs))
        if (spread < 0).any():
            raise InputError(f"the regressor's sd must not be negative, got {spread.min():g}")
        centre = as_vector(mean, "the regressor's mean", length=len(inputs))
        return Beliefs(located("norm", centre, spread))


def as_method(thing: Any, coverages: tuple[float, ...] = COVERAGES) -> Method:
    """A method from what a user has: a method, or a regressor with an sd or with quantiles.

    Parameters
    ----------
    thing : Method or scikit-learn regressor
        A method passes through. A regressor is wrapped by what it offers, in this order:
        ``predict(x, return_std=True)``, ``predict(x, quantiles=levels)``, or a parameter
        ``quantile``.
    coverages : tuple of float
        The coverages of methods that fix them.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If it offers none of these; the message says what to wrap it in.

    Examples
    --------
    >>> from sklearn.linear_model import ARDRegression, QuantileRegressor
    >>> as_method(ARDRegression()).name, as_method(QuantileRegressor()).name
    ('ARDRegression', 'quantile regression (QuantileRegressor)')
    """
    if isinstance(thing, Method):
        return thing
    if isinstance(thing, type):
        raise InputError(f"method must be an instance, got the class {thing.__name__}")
    options = predict_options(thing)
    if "return_std" in options:
        return PredictedSd(thing)
    if "quantiles" in options:
        return PredictedQuantiles(thing, coverages)
    parameter = quantile_parameter(thing)
    if parameter is not None:
        return QuantileRegression(thing, parameter, coverages)
    raise InputError(
        "method must predict an sd (return_std=True), quantiles (quantiles=levels) or one "
        f"quantile (a parameter 'quantile'), got {type(thing).__name__}: wrap a point forecaster "
        "in SplitConformal or NaiveBootstrap"
    )
