"""From a fitted model to a verdict: the model is asked what it can say, and that is assessed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector, shortened, to_host
from howsure.core.classes import frozen
from howsure.core.errors import InputError, error_line
from howsure.core.labels import as_labels
from howsure.inputs.classes import label_text
from howsure.inputs.distributions import (
    LEVELS,
    central_levels,
    located,
    parameters_of,
    predict_options,
    quantile_parameter,
    told_normals,
)
from howsure.inputs.frames import library_classes
from howsure.inputs.given import PredictionInput, check_row_order, read_given
from howsure.predictions import Intervals, LabelSets, Prediction, Probabilities, Quantiles
from howsure.predictions.base import wanted_levels
from howsure.report.assess import assess
from howsure.report.assessment import Assessment
from howsure.report.coercion import as_text, features_of
from howsure.report.table import as_coverages

# The usual one.
DEFAULT_COVERAGE = 0.9
"""Asked of a model that gives intervals at any coverage, where none is wanted."""


def assess_model(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    *,
    coverage: float | Sequence[float] = (),
    levels: npt.ArrayLike | None = None,
    features: Any = "X",
    **arguments: Any,
) -> Assessment:
    """Predict with a fitted model at X, and assess the predictions as `howsure.assess` does.

    Parameters
    ----------
    model : fitted model, sequence of fitted quantile regressors, or mapping of names to these
        One of howsure's own, of NGBoost, skpro, MAPIE, crepes, quantile-forest, TabPFN or TabICL;
        a regressor whose ``predict`` takes ``return_std``; a quantile regressor of scikit-learn,
        LightGBM, XGBoost or CatBoost, several of them being one prediction by quantiles; or any
        other regressor, whose forecast is a point. A mapping compares models.
    X : array-like of shape (n, d), or data frame
        Inputs of the model, for rows that it was not fitted to.
    y : array-like of shape (n,)
        The outcomes.
    coverage : float or sequence of float
        Nominal coverages to ask the model for and to assess; its own, or 0.9, if omitted.
    levels : array-like of shape (k,), optional
        Levels of quantiles to ask the model for; or those of the quantile regressors, one each.
    features : array-like, mapping or data frame, optional
        Inputs for the assessment: X itself if omitted, without columns with missing values.
        None: no inputs.
    **arguments
        Further arguments of `howsure.assess`.

    Returns
    -------
    Assessment

    Raises
    ------
    InputError
        If a model is not fitted, fails at X, or predicts nothing that can be assessed.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 1))
    >>> y = x[:, 0] + rng.normal(size=600)
    >>> result = assess_model(BayesianRidge().fit(x[:300], y[:300]), x[300:], y[300:])
    >>> result.facts["Models"], result.facts["Predictions"]
    ('BayesianRidge', 'distributions')
    """
    check_row_order(y, {"X": X})
    labels = as_text(y)
    truth = None if labels is not None else as_vector(y, "y")
    n = len(truth if truth is not None else np.asarray(labels))
    _check_rows(X, n)
    coverages = tuple(as_coverages(coverage))
    at = None if levels is None else wanted_levels(levels)
    named = isinstance(model, Mapping)
    models = model if named else {_title(model): model}
    if not models:
        raise InputError("model needs at least one model, got none")
    inputs: dict[str, PredictionInput] = {}
    for name, fitted in models.items():
        inputs[str(name)] = ask_model(
            fitted,
            X,
            n,
            y=truth,
            coverages=coverages,
            levels=at,
            called=f"model {str(name)!r}" if named else "model",
        )
    if isinstance(features, str) and features == "X":
        features, left_out = _inputs(X)
        if left_out:
            first = next(iter(inputs))
            notes = (*inputs[first].notes, left_out)
            inputs[first] = replace(inputs[first], notes=notes)
    return assess(y, inputs, features=features, coverage=coverage, **arguments)


def ask_model(
    model: Any,
    X: Any,
    n: int,
    *,
    y: FloatArray | None = None,
    coverages: tuple[float, ...] = (),
    levels: FloatArray | None = None,
    called: str = "model",
) -> PredictionInput:
    """What a fitted model says of the n rows of X; errors begin with what it is called."""
    try:
        return _Asked(X, n, y, coverages, levels).of(model)
    except InputError as error:
        raise InputError(f"{called} {error}") from error


def _title(model: Any) -> str:
    """A model's class, of several the first one's."""
    if isinstance(model, (list, tuple)):
        return _title(model[0]) if model else "model"
    return type(getattr(model, "steps", [(None, model)])[-1][1]).__name__


def _check_rows(X: Any, n: int) -> None:
    shape = getattr(X, "shape", None)
    if not shape and (not isinstance(X, Sequence) or isinstance(X, str)):
        raise InputError(f"X must be an array or a data frame, got {type(X).__name__}")
    rows = shape[0] if shape else len(X)
    if rows != n:
        raise InputError(f"X must have {n} rows, as many as y; got {rows}")


def _inputs(X: Any) -> tuple[dict[str, npt.ArrayLike] | None, str]:
    """The columns of X by which can be assessed, and what to say of the others."""
    X = to_host(X, "X")
    if not hasattr(X, "columns") and len(getattr(X, "shape", (0, 0))) != 2:
        return None, ""
    if hasattr(X, "tocsr"):  # sparse
        return None, ""
    columns, gone = dict(features_of(X)), []
    for name, value in list(columns.items()):
        try:
            columns[name] = as_labels(value, name)
        except InputError:
            gone.append(name)
            del columns[name]
    note = f"columns of X with missing values are left out: {', '.join(gone)}" if gone else ""
    return columns or None, note


@frozen(eq=False)
class _Asked:
    """What is asked of each model: at which inputs, and for which coverages or levels."""

    X: Any
    n: int
    y: FloatArray | None  # tells swapped ends from means and sds, where it is known
    coverages: tuple[float, ...]
    levels: FloatArray | None

    def of(self, model: Any) -> PredictionInput:
        """What one model says; an error's message goes on after "model"."""
        if isinstance(model, (list, tuple)):
            return self._of_list(model)
        _check_kind(model)
        if "BaseProbaRegressor" in library_classes(model, "skpro"):
            return self._of_skpro(model)
        inner, X = _unwrapped(model, self.X)
        if inner is not model:
            return replace(self, X=X).of(inner)
        if _is_classifier(model):
            return self._of_classifier(model)
        options = predict_options(model)
        if hasattr(model, "predict_uncertainty"):  # howsure's own, whose point may stand apart
            prediction = self._call(model, "predict_uncertainty", coverages=self.coverages)
            has_intervals = isinstance(prediction, Intervals)
            point = self._call(model, "predict") if has_intervals else None
            return PredictionInput(predictions=(prediction,), point=point)
        if hasattr(model, "pred_dist"):
            return self._read(self._call(model, "pred_dist"))
        if hasattr(model, "predict_interval"):
            return self._of_mapie(model, self._call(model, "predict_interval"))
        if "confidence_level" in options:
            coverages = list(self._coverages())
            table = self._call(model, "predict", confidence_level=coverages)
            return self._intervals(model, table, coverages)
        if hasattr(model, "predict_int"):
            return self._of_crepes(model)
        if "output_type" in options:
            return self._of_tabpfn(model, options)
        if "quantiles" in options:
            at = self._levels()
            return self._quantiles(self._call(model, "predict", quantiles=at.tolist()), at)
        known_levels = told_levels(model)
        if known_levels is not None:
            return self._of_list([model])
        if "return_std" in options:
            distribution = told_normals(self._call(model, "predict", return_std=True), self.n)
            return PredictionInput(predictions=(distribution,), notes=_without_noise(model))
        return self._of_predict(model)

    def _of_classifier(self, model: Any) -> PredictionInput:
        """The class probabilities of scikit-learn's classifiers and those like them."""
        table = self._call(model, "predict_proba")
        if isinstance(table, list) or np.ndim(model.classes_[0]) > 0:
            raise InputError("must predict one label per row: assess each label by its own")
        names = list(map(label_text, np.asarray(model.classes_).tolist()))
        stated = Probabilities(as_matrix(table, "probabilities", length=self.n), names)
        sets = [LabelSets.likeliest(stated, coverage) for coverage in self.coverages[:1]]
        return PredictionInput(predictions=(stated, *sets))

    def _coverages(self) -> tuple[float, ...]:
        return self.coverages or (DEFAULT_COVERAGE,)

    def _levels(self) -> FloatArray:
        """The levels to ask a model for that gives any."""
        if self.levels is not None:
            return np.sort(self.levels)
        return np.union1d(LEVELS, central_levels(self.coverages))

    def _read(self, value: Any) -> PredictionInput:
        models = read_given(
            value, n=self.n, coverage=self.coverages or None, levels=self.levels, y=self.y
        )
        if len(models) != 1:
            raise InputError(f"must predict for one model, got {', '.join(models)}")
        return next(iter(models.values()))

    def _call(self, model: Any, method: str, **options: Any) -> Any:
        """What a method of the model says at X."""
        try:
            return getattr(model, method)(self.X, **options)
        except Exception as error:  # of another library: any may come
            raise InputError(_failure(model, method, self.X, error)) from error

    def _intervals(
        self, model: Any, prediction: Any, coverages: Sequence[float]
    ) -> PredictionInput:
        """MAPIE's pair of a point forecast and intervals of shape (n, 2, k)."""
        if not (
            isinstance(prediction, tuple) and len(prediction) == 2 and np.ndim(prediction[1]) == 3
        ):
            return self._read(prediction)
        point, table = (
            as_vector(prediction[0], "forecast", length=self.n),
            np.asarray(prediction[1]),
        )
        if not coverages:
            raise InputError(
                f"of class {type(model).__name__} does not state the coverage of its intervals: "
                "pass coverage=0.9"
            )
        return PredictionInput(
            predictions=(Intervals(table[:, 0], table[:, 1], np.asarray(coverages)),), point=point
        )

    def _of_mapie(self, model: Any, prediction: Any) -> PredictionInput:
        """Intervals at the coverages that the model was made for."""
        names = ("_alphas", "_alpha", "alpha") if library_classes(model, "mapie") else ()
        stored = next((getattr(model, name) for name in names if hasattr(model, name)), None)
        if stored is None:
            return self._intervals(model, prediction, self.coverages)
        alphas = np.atleast_1d(np.asarray(stored, dtype=np.float64))
        coverages = np.round(1.0 - alphas, 12).tolist()
        other = [
            c for c in self.coverages if not np.isclose(c, coverages, rtol=0.0, atol=1e-9).any()
        ]
        if other:
            raise InputError(
                f"of class {type(model).__name__} gives intervals at coverage "
                f"{', '.join(f'{c:g}' for c in coverages)}, not {other[0]:g}: omit coverage=, "
                f"or build it with confidence_level={other[0]:g}"
            )
        return self._intervals(model, prediction, coverages)

    def _of_crepes(self, model: Any) -> PredictionInput:
        tables = [
            as_matrix(
                self._call(model, "predict_int", confidence=c),
                "intervals",
                length=self.n,
                columns=2,
                finite=False,
            )
            for c in self._coverages()
        ]
        low, high = (np.column_stack([table[:, side] for table in tables]) for side in (0, 1))
        point = as_vector(self._call(model, "predict"), "forecast", length=self.n)
        return PredictionInput(predictions=(Intervals(low, high, self._coverages()),), point=point)

    def _of_skpro(self, model: Any) -> PredictionInput:
        """By what the regressor makes itself: skpro derives the other kinds from normals."""
        if self.levels is not None:
            return self._skpro_quantiles(model, self.levels)
        methods = set[str]()
        for base in type(model).__mro__:
            if base.__name__ == "BaseProbaRegressor":
                break
            methods |= set(vars(base))
        if "_predict_proba" not in methods and "_predict_quantiles" in methods:
            at = np.union1d(central_levels(self._coverages()), 0.5)
            return self._skpro_quantiles(model, at)
        if "_predict_proba" not in methods and "_predict_interval" in methods:
            coverages = list(self._coverages())
            return self._read(self._call(model, "predict_interval", coverage=coverages))
        return self._read(self._call(model, "predict_proba"))

    def _skpro_quantiles(self, model: Any, at: FloatArray) -> PredictionInput:
        quantiles = self._call(model, "predict_quantiles", alpha=at.tolist())
        return self._quantiles(np.asarray(quantiles), at)

    def _of_tabpfn(self, model: Any, options: set[str]) -> PredictionInput:
        """Quantiles of TabPFN, a list of one array a level, or of TabICL, shape (n, k)."""
        at = self._levels()
        option = next((name for name in ("quantiles", "alphas") if name in options), None)
        if option is None:
            raise InputError(
                f"of class {type(model).__name__} takes no levels: give its quantiles, "
                "howsure.Quantiles(levels, values)"
            )
        at_levels = {option: at.tolist()}
        quantiles = self._call(model, "predict", output_type="quantiles", **at_levels)
        return self._quantiles(
            np.column_stack(quantiles) if isinstance(quantiles, (list, tuple)) else quantiles, at
        )

    def _of_predict(self, model: Any) -> PredictionInput:
        """What predict gives without being asked for more."""
        if not callable(getattr(model, "predict", None)):
            raise InputError(
                f"must have predict, got {type(model).__name__}: give its prediction at X, "
                "howsure.assess(y, prediction)"
            )
        forecast = self._call(model, "predict")
        if str(parameters_of(model).get("loss_function")) == "RMSEWithUncertainty":
            mean, variance = as_matrix(forecast, "forecast", length=self.n, columns=2).T
            return PredictionInput(predictions=(located("norm", mean, np.sqrt(variance)),))
        if isinstance(forecast, (Prediction, tuple)) or not hasattr(forecast, "__array__"):
            return self._read(forecast)
        shape = np.shape(forecast)
        if len(shape) == 2 and shape[1] > 1:
            if self.levels is not None:
                return self._quantiles(forecast, self.levels)
            raise InputError(
                f"predicts an array of shape {shape}: if these are quantiles, pass levels=, one "
                "per column"
            )
        return PredictionInput(point=as_vector(forecast, "forecast", length=self.n))

    def _of_list(self, models: Sequence[Any]) -> PredictionInput:
        """Quantile regressors as one prediction."""
        if not models:
            raise InputError("needs at least one model, got an empty list")
        several = len(models) > 1
        tables: list[Any] = []
        levels_of_models: list[tuple[float, ...] | None] = []
        for number, model in enumerate(models):
            try:
                _check_kind(model)
                inner, X = _unwrapped(model, self.X)
                forecast = as_matrix(
                    replace(self, X=X)._call(inner, "predict"), "forecast", length=self.n
                )
                levels_of_models.append(told_levels(inner))
                count = 0 if (model_levels := levels_of_models[-1]) is None else len(model_levels)
                if count not in (0, forecast.shape[1]):
                    raise InputError(
                        f"states {count} levels, but predicts {forecast.shape[1]} columns"
                    )
                tables.append(forecast)
            except InputError as error:
                if not several:
                    raise
                raise InputError(f"{number + 1} of {len(models)}: {error}") from error
        table = np.hstack(tables)
        if self.levels is not None:
            if len(self.levels) != table.shape[1]:
                raise InputError(
                    f"predicts {table.shape[1]} quantiles in all, but levels= has "
                    f"{len(self.levels)} levels"
                )
            return self._quantiles(table, self.levels)
        silent = [
            number for number, model_levels in enumerate(levels_of_models) if model_levels is None
        ]
        if silent:
            number = silent[0]
            raise InputError(
                f"{number + 1} of {len(models)} ({_title(models[number])}) states no level. For "
                "one quantile per model: pass levels=(0.05, 0.5, 0.95). For ensemble members: "
                "howsure.assess(y, howsure.Samples(np.stack([m.predict(X) for m in models], "
                "axis=1))). To compare models: give a mapping of names to models."
            )
        levels = [
            level
            for model_levels in levels_of_models
            if model_levels is not None
            for level in model_levels
        ]
        if len(set(levels)) < len(levels):
            twice = next(level for level in levels if levels.count(level) > 1)
            raise InputError(
                f"states level {twice:g} twice: give one regressor per level, or a mapping of "
                "names to models to compare them"
            )
        return self._quantiles(table, levels)

    def _quantiles(self, table: Any, levels: npt.ArrayLike) -> PredictionInput:
        """Quantiles of separate columns, which may cross: each row is sorted, and it is told."""
        at = np.asarray(levels, dtype=np.float64)
        table = as_matrix(table, "forecast", length=self.n)
        if table.shape[1] != len(at):
            raise InputError(f"predicts {table.shape[1]} columns for {len(at)} levels")
        quantiles = Quantiles(at, table, crossing="sort")
        rows = quantiles.crossed_rows
        note = f"{rows:,} of {self.n:,} rows had crossing quantiles, which were sorted"
        return PredictionInput(predictions=(quantiles,), notes=(note,) if rows else ())


def _check_kind(model: Any) -> None:
    """Refuse what is no fitted regressor."""
    if isinstance(model, type):
        raise InputError(f"must be a fitted model, got the class {model.__name__}")
    if hasattr(model, "fit") and not hasattr(model, "predict"):
        raise InputError(f"must be fitted, got {type(model).__name__}: give model.fit(x, y, rng)")
    if "BaseForecaster" in library_classes(model, "sktime"):
        raise InputError(
            f"must predict from X, but {type(model).__name__} needs a horizon: give its forecast, "
            "howsure.assess(y, forecaster.predict_interval(fh, coverage=0.9))"
        )


def _is_classifier(model: Any) -> bool:
    """Whether a model gives a probability of each class."""
    return hasattr(model, "predict_proba") and hasattr(model, "classes_")


def _unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """What predicts within a search or a pipeline, and what it predicts from."""
    from sklearn.pipeline import Pipeline

    inner = getattr(model, "best_estimator_", model)
    if isinstance(inner, Pipeline) and len(inner.steps) > 1:
        try:
            return inner.steps[-1][1], inner[:-1].transform(X)
        except Exception as error:  # of any step
            raise InputError(_failure(inner, "transform", X, error)) from error
    return inner, X


def _without_noise(model: Any) -> tuple[str, ...]:
    """A note on a process of scikit-learn whose standard deviation is not that of a new y."""
    kernel = getattr(model, "kernel_", None)
    if kernel is None or "WhiteKernel" in repr(kernel) or np.max(model.alpha) <= 1e-9:
        return ()
    return (
        f"the standard deviation of {type(model).__name__} does not include alpha, the noise of "
        "y; use a WhiteKernel in its kernel to include it",
    )


def told_levels(model: Any) -> tuple[float, ...] | None:
    """The level or levels that a quantile regressor says it predicts; None where it says none.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from sklearn.linear_model import LinearRegression, QuantileRegressor
    >>> told_levels(QuantileRegressor(quantile=0.9))
    (0.9,)
    >>> told_levels(GradientBoostingRegressor(loss="quantile", alpha=0.1))
    (0.1,)
    >>> told_levels(LinearRegression()) is None
    True
    """
    booster = "Booster" in library_classes(model, "lightgbm")
    parameters = dict(model.params) if booster else parameters_of(model)
    key = quantile_parameter(model)
    if key is not None:
        return _numbers(parameters[key])
    if parameters.get("loss") == "quantile":  # of scikit-learn's GradientBoostingRegressor
        return _numbers(parameters.get("alpha"))
    if parameters.get("objective") == "quantile":  # of LightGBM, whose default is 0.9
        return _numbers(parameters.get("alpha", 0.9))
    if parameters.get("objective") == "reg:quantileerror":  # of XGBoost
        return _numbers(parameters.get("quantile_alpha"))
    match = re.fullmatch(
        r"(?:Multi)?Quantile(?::.*?alpha=([\d.,\s]+).*)?", str(parameters.get("loss_function"))
    )
    if match is not None:  # of CatBoost, whose default is 0.5
        return _numbers((match[1] or "0.5").split(","))
    return None


def _numbers(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(np.ravel(value).astype(np.float64).tolist())


def _failure(model: Any, method: str, X: Any, error: Exception) -> str:
    """What to say of a model that did not predict."""
    title = type(model).__name__
    message = error_line(error)
    if _unfitted(model, error):
        return f"must be fitted before assessment; this {title} is not: {message}"
    shape = getattr(X, "shape", None)
    got = f"of shape {tuple(shape)}" if shape is not None else shortened(X)
    return f"of class {title} failed in {method}(X), with X {got}: {message}"


def _unfitted(model: Any, error: Exception) -> bool:
    if any(base.__name__ == "NotFittedError" for base in type(error).__mro__):
        return True
    fitted = getattr(model, "is_fitted", None)
    if (fitted() if callable(fitted) else fitted) is False:
        return True
    if hasattr(model, "pred_dist") and getattr(model, "init_params", ()) is None:  # NGBoost
        return True
    if not isinstance(error, AttributeError) or not hasattr(model, "get_params"):
        return False
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        return True
    return False
