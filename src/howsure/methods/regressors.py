"""Methods around scikit-learn's regressors, chosen by what a regressor can predict."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.errors import InputError
from howsure.methods.conformal.inductive import SplitConformal
from howsure.methods.interface import (
    COVERAGES,
    Beliefs,
    Fitted,
    Method,
    checked_rows,
    located,
    predict_options,
    told_normals,
    trained,
)
from howsure.methods.own import OwnMethod, takes_rng
from howsure.methods.quantile_regression import (
    PredictedQuantiles,
    QuantileRegression,
    quantile_parameter,
)

__all__ = ["GaussianProcess", "PredictedSd", "SplitConformal", "as_method"]


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
        made = self.model.predict(inputs, return_std=True)
        return Beliefs(told_normals(made, len(inputs), "the regressor's "))


def as_method(thing: Any, coverages: tuple[float, ...] | None = None) -> Method:
    """A method from what a user has: a method, an own class, or a regressor, by what it predicts.

    Parameters
    ----------
    thing : Method, object with fit and predict, or what makes one
        A method passes through, and so does a regressor's attribute ``method`` where it is one,
        as that of `howsure.methods.deep.HeadRegressor`. A class is made without arguments, and so
        is a function called that is annotated to return one. What has ``fit(x, y, rng)`` and
        ``predict(x)`` is a method of its own, see `howsure.methods.own.OwnMethod`. Another
        regressor is wrapped by what it offers, in this order: ``predict(x, return_std=True)`` in
        `PredictedSd`, ``predict(x, quantiles=levels)`` in `PredictedQuantiles`, a parameter
        ``quantile`` (under the loss ``quantile``, where it has a choice) in
        `QuantileRegression`, and a point forecast alone in `SplitConformal`.
    coverages : tuple of float, optional
        The coverages of methods that fix them; `COVERAGES` if omitted. An own method that says
        none is told them, as its bare intervals may need.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If it is none of them, or a class or function needs arguments.

    Examples
    --------
    >>> from sklearn.linear_model import ARDRegression, LinearRegression, QuantileRegressor
    >>> [as_method(model()).name for model in (ARDRegression, QuantileRegressor, LinearRegression)]
    ['ARDRegression', 'quantile regression (QuantileRegressor)',
     'split conformal (LinearRegression)']
    """
    if isinstance(thing, OwnMethod):
        return thing.at(coverages)
    if isinstance(thing, Method):
        return thing
    if isinstance(thing, type) or inspect.isfunction(thing):
        return as_method(_called(thing), coverages)
    if not (hasattr(thing, "fit") and hasattr(thing, "predict")):
        raise InputError(
            "method must be a method, or an object with fit and predict, "
            f"got {type(thing).__name__}"
        )
    if takes_rng(thing):
        return OwnMethod(thing, coverages)
    own = getattr(thing, "method", None)
    if isinstance(own, Method):
        return own
    wanted = COVERAGES if coverages is None else coverages
    options = predict_options(thing)
    if "return_std" in options:
        return PredictedSd(thing)
    if "quantiles" in options:
        return PredictedQuantiles(thing, wanted)
    parameter = quantile_parameter(thing)
    if parameter is not None:
        return QuantileRegression(thing, parameter, wanted)
    return SplitConformal(thing, coverages=wanted)


def is_own(thing: Any) -> bool:
    """Whether it is an own class with ``fit(x, y, rng)``, its instance, or a function making one.

    Examples
    --------
    >>> is_own(GaussianProcess()), is_own(print)
    (False, False)
    """
    if isinstance(thing, Method):
        return False
    return takes_rng(thing) or (inspect.isfunction(thing) and makes_method(thing))


def makes_method(maker: Any) -> bool:
    """Whether a class can be fitted, or a function is annotated to return what can.

    Examples
    --------
    >>> makes_method(GaussianProcess), makes_method(print)
    (True, False)
    """
    if not inspect.isclass(maker):
        try:
            maker = typing.get_type_hints(maker).get("return")
        except (AttributeError, NameError, TypeError):
            return False
    return inspect.isclass(maker) and hasattr(maker, "fit")


def _called(maker: Any) -> Any:
    """What a class or a function makes without arguments."""
    what = f"{'class' if isinstance(maker, type) else 'function'} {maker.__name__}"
    if not makes_method(maker):
        raise InputError(
            "method must have fit and predict, or be a class with them or a function that is "
            f"annotated to return one, got the {what}: it was not called"
        )
    needed = [
        key
        for key, one in inspect.signature(maker).parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    if needed:
        raise InputError(
            f"method must be an instance where options are needed ({', '.join(needed)}), "
            f"got the {what}"
        )
    return maker()
