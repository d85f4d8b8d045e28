"""Methods around what a user has: scikit-learn's regressors, by what they predict, own classes."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Count, checked_coverages
from howsure.core.errors import InputError, within
from howsure.inputs.distributions import located, predict_options, quantile_parameter, told_normals
from howsure.predictions import Intervals, Prediction
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    seeded_clone,
    trained,
)
from howsure_studies.methods.quantile_regression import PredictedQuantiles, QuantileRegression

__all__ = ["GaussianProcess", "OwnMethod", "PredictedSd", "SplitConformal", "as_method"]

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@final
@frozen
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
    rows : int, optional
        The most training rows; a random choice of so many where there are more.

    Notes
    -----
    Source: Rasmussen and Williams 2006, Algorithm 2.1. Cost grows as n³: a few thousand rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 15)[:, None]
    >>> y = np.sin(6 * x[:, 0]) + 0.1 * (-1.0) ** np.arange(15)
    >>> predictions = GaussianProcess().fit(x, y, np.random.default_rng(0)).predict(x)
    >>> bool((predictions.mean.sd() < predictions.outcome.sd()).all())
    True
    """

    name: ClassVar[str] = "Gaussian process"
    separate_lengths: bool = False
    restarts: int = 0
    rows: Count | None = field(default=None, metadata={"later": True})

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Process:
        """Maximise the likelihood of the kernel's parameters."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        inputs, targets = checked_rows(x, y, least=3)
        if self.rows is not None and len(targets) > self.rows:
            chosen = np.sort(rng.permutation(len(targets))[: self.rows])
            inputs, targets = inputs[chosen], targets[chosen]
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
@frozen(eq=False)
class _Process(Fitted):
    center: FloatArray
    unit: FloatArray
    model: Any

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Normal laws of a new y and of the noiseless process at each row of x."""
        inputs = as_matrix(x, "x", columns=len(self.center))
        mean, sd = self.model.predict((inputs - self.center) / self.unit, return_std=True)
        scale = float(np.ravel(self.model._y_train_std)[0])
        noise = float(self.model.kernel_.k2.noise_level) * scale**2
        own = np.maximum(np.square(sd) - noise, 0.0)
        return Predictions(
            outcome=located("norm", mean, np.sqrt(own + noise)),
            mean=located("norm", mean, np.sqrt(own)),
        )


@final
@frozen
class PredictedSd(Method):
    """Any regressor whose ``predict(x, return_std=True)`` gives a mean and an sd: normal laws.

    The sd is taken as that of a new y.
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
        return type(self.regressor).__name__

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _FittedSd:
        """Fit a copy of the regressor."""
        inputs, targets = checked_rows(x, y, least=2)
        return _FittedSd(trained(self.regressor, inputs, targets, rng))


@final
@frozen(eq=False)
class _FittedSd(Fitted):
    model: Any

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Normal laws of a new y at each row of x."""
        inputs = as_matrix(x, "x")
        made = self.model.predict(inputs, return_std=True)
        return Predictions(told_normals(made, len(inputs), "the regressor's "))


@final
@frozen
class OwnMethod(Method):
    """Any object with ``fit(x, y, rng)`` and ``predict(x)``; `as_method` makes it where needed.

    Every fit works on a fresh copy, so that trials share no state.

    Parameters
    ----------
    own : object
        ``fit`` returns what is fitted: itself, another object with ``predict``, or None for
        itself. ``predict`` returns `Predictions`, a `Prediction`, or what `howsure.assess` takes
        with uncertainty: ``(lower, upper)``, an array of intervals, quantiles by level, samples.
        In a mapping, a data frame or a `howsure.Table`, ``ci_lower`` and ``ci_upper`` (or such as
        ``ci_lower_90``) are the confidence interval of the mean of y.
    coverages : tuple of float, optional
        Nominal coverages of bare intervals. The object's own attribute ``coverages`` or
        ``coverage`` goes before.

    Raises
    ------
    InputError
        If it lacks ``predict``, or ``fit`` takes no ``rng``.

    Examples
    --------
    >>> class Spread:
    ...     def fit(self, x, y, rng):
    ...         self.ends = np.quantile(y, [0.05, 0.95])
    ...         return self
    ...
    ...     def predict(self, x):
    ...         return np.full(len(x), self.ends[0]), np.full(len(x), self.ends[1])
    >>> from howsure_studies.methods.regressors import as_method
    >>> method = as_method(Spread, coverages=(0.9,))
    >>> method.name
    'Spread'
    >>> y = np.arange(101.0)
    >>> fitted = method.fit(y[:, None], y, np.random.default_rng(0))
    >>> fitted.predict([[0.0]]).outcome.interval(0.9)
    (array([5.]), array([95.]))
    """

    own: Any
    coverages: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not takes_rng(self.own) or not callable(getattr(self.own, "predict", None)):
            raise InputError(
                f"method must have fit(x, y, rng) and predict(x), got {type(self.own).__name__}"
            )
        stated = getattr(self.own, "coverages", getattr(self.own, "coverage", None))
        said = None if stated is None or callable(stated) else tuple(np.ravel(stated).tolist())
        chosen = said or self.coverages
        if chosen is not None:
            object.__setattr__(self, "coverages", checked_coverages(tuple(chosen)))

    @property
    def name(self) -> str:
        """What reports call it: its attribute ``name`` where that is text, else its class."""
        name = getattr(self.own, "name", None)
        return name if isinstance(name, str) and name else type(self.own).__name__

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """Coverages that it says, or was told; None where neither."""
        return self.coverages

    def at(self, coverages: tuple[float, ...] | None) -> OwnMethod:
        """The same method, its bare intervals of these coverages where nothing else is said."""
        if coverages is None or self.coverages is not None:
            return self
        return replace(self, coverages=coverages)

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> FittedOwn:
        """Fit a copy of the object."""
        fresh = _copied(self.own, self.name, rng)
        inputs = np.asarray(x)
        targets = as_vector(y, "y", length=len(inputs))
        if "rng" in _arguments(fresh):
            returned = fresh.fit(inputs, targets, rng=rng)
        else:
            returned = fresh.fit(inputs, targets, rng)
        fitted = fresh if returned is None else returned
        if not callable(getattr(fitted, "predict", None)):
            raise InputError(
                f"{self.name}.fit must return itself, or what has predict(x), "
                f"got {type(fitted).__name__}"
            )
        return FittedOwn(fitted, self.name, self.coverages)


@final
@frozen(eq=False)
class FittedOwn(Fitted):
    """What an own method has fitted; its ``features``, ``score`` and ``notes`` are seen too."""

    model: Any
    name: str
    coverages: tuple[float, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in ("features", "score", "notes"):
            return getattr(self.model, name)
        raise AttributeError(name)

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is believed at the rows of x; a message of what does not serve names the class."""
        inputs = np.asarray(x)
        with within(f"{self.name}.predict(x)"):
            value = self.model.predict(inputs)
        if not isinstance(value, Predictions):
            from howsure import Table

            coverages = self.coverages
            if isinstance(value, Table):
                coverages, value = tuple(value.coverages or ()) or coverages, value.source
            with within(f"{self.name}.predict(x)"):
                columns, of_mean = _outcome_and_mean(value)
            outcome = self._read(columns, len(inputs), coverages)
            return Predictions(
                outcome, self._read(of_mean, len(inputs), coverages) if of_mean else None
            )
        for prediction in (value.outcome, value.mean):
            if prediction is not None:
                self._check(prediction, len(inputs))
        return value

    def _read(self, value: Any, n: int, coverages: tuple[float, ...] | None) -> Prediction:
        coverage: Any = None
        if coverages is not None:
            coverage = coverages if len(coverages) > 1 else coverages[0]
        if value is None:
            raise InputError(f"{self.name}.predict(x) must return a prediction, got None")
        try:
            prediction = value if isinstance(value, Prediction) else _only(value, n, coverage)
        except InputError as error:
            hint = ""
            if coverage is None:
                hint = "; the class may state its coverage with coverage = 0.9"
            elif np.size(coverage) > 1:
                hint = "; quantiles, samples or a distribution work at any coverage"
            raise InputError(f"{self.name}.predict(x): {error}{hint}") from error
        if prediction is None:
            raise InputError(
                f"{self.name}.predict(x) must return a prediction with uncertainty, such as "
                "(lower, upper), got only a point forecast"
            )
        if isinstance(prediction, Intervals) and not prediction.coverages:
            if coverage is None or prediction.lower.shape[1] != np.size(coverage):
                raise InputError(
                    f"{self.name}.predict(x) gives intervals of unknown coverage: the "
                    "class may state it, by coverage = 0.9, or the run"
                )
            prediction = Intervals(prediction.lower, prediction.upper, coverage)
        self._check(prediction, n)
        return prediction

    def _check(self, prediction: Prediction, n: int) -> None:
        if not isinstance(prediction, Prediction):
            raise InputError(
                f"{self.name}.predict(x): Predictions must contain predictions, got "
                f"{type(prediction).__name__}"
            )
        if prediction.n != n:
            raise InputError(
                f"{self.name}.predict(x) must have a row for each of the {n} of x, "
                f"got {prediction.n}"
            )


def takes_rng(thing: Any) -> bool:
    """Whether ``fit`` takes a third argument ``rng``, or one without a default."""
    names = _arguments(thing)
    if "rng" in names:
        return True
    needed = [a for a in names.values() if a.default is a.empty and a.kind in _BY_PLACE]
    return len(needed) == 3


def _arguments(thing: Any) -> dict[str, inspect.Parameter]:
    try:
        parameters = list(inspect.signature(thing.fit).parameters.items())
    except (AttributeError, TypeError, ValueError):
        return {}
    return dict(parameters[1:] if isinstance(thing, type) else parameters)


def _copied(thing: Any, name: str, rng: np.random.Generator) -> Any:
    """A copy, unfitted where it is an estimator; random states are drawn."""
    try:
        return seeded_clone(thing, rng) if hasattr(thing, "get_params") else copy.deepcopy(thing)
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(f"{name} must be copyable for every fit: {error}") from error


def _outcome_and_mean(value: Any) -> tuple[Any, dict[str, Any]]:
    """What is predicted of y, and the columns of the confidence interval of its mean, if any."""
    from howsure.inputs.frames import is_frame

    columns: dict[str, Any] = {}
    if isinstance(value, Mapping):
        columns = {str(name): column for name, column in value.items()}
    elif is_frame(value):
        import narwhals as nw

        frame = nw.from_native(value, eager_only=True)
        columns = {column.name: column.to_numpy() for column in frame.iter_columns()}
    lower, upper = (
        {name.removeprefix(start): name for name in columns if name.startswith(start)}
        for start in ("ci_lower", "ci_upper")
    )
    if not lower and not upper:
        return value, {}
    if lower.keys() != upper.keys():
        given = ", ".join((*lower.values(), *upper.values()))
        raise InputError(f"ci_lower and ci_upper must be given together, got {given}")
    names = {*lower.values(), *upper.values()}
    outcome = {name: column for name, column in columns.items() if name not in names}
    if not outcome:
        raise InputError("must return a prediction of y beside the confidence interval of its mean")
    return outcome, {name.removeprefix("ci_"): columns[name] for name in names}


def _only(value: Any, n: int, coverage: Any) -> Prediction | None:
    """The one prediction of what was given; None for a point forecast alone."""
    from howsure.inputs.given import read_given

    models = read_given(value, n=n, coverage=coverage)
    if len(models) != 1:
        raise InputError(f"one model was expected, got {', '.join(models)}")
    (given,) = models.values()
    predictions = given.predictions
    if len(predictions) > 1:
        raise InputError(f"one prediction was expected, got {len(predictions)}")
    return predictions[0] if predictions else None


def as_method(thing: Any, coverages: tuple[float, ...] | None = None) -> Method:
    """A method from what a user has: a method, an own class, or a regressor, by what it predicts.

    Parameters
    ----------
    thing : Method, object with fit and predict, or what makes one
        A method passes through, and so does a regressor's attribute ``method`` where it is one,
        as that of `howsure_studies.methods.deep.HeadRegressor`. A class is made without arguments,
        and so is a function called that is annotated to return one. What has ``fit(x, y, rng)`` and
        ``predict(x)`` is a method of its own, see `OwnMethod`. Another
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
    """Whether it is a class with ``fit(x, y, rng)``, its instance, or a function making one."""
    if isinstance(thing, Method):
        return False
    return takes_rng(thing) or (inspect.isfunction(thing) and makes_method(thing))


def makes_method(maker: Any) -> bool:
    """Whether a class can be fitted, or a function is annotated to return what can."""
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
        for key, p in inspect.signature(maker).parameters.items()
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    if needed:
        raise InputError(
            f"method must be an instance where options are needed ({', '.join(needed)}), "
            f"got the {what}"
        )
    return maker()
