"""What other libraries predict, by small adapters that never import them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector, to_host
from howsure.core.errors import InputError
from howsure.inputs.array_inputs import PredictionInput
from howsure.inputs.frames import library_classes, read_posterior
from howsure.predictions import Distribution, Intervals, Prediction, Quantiles, Samples, mixture
from howsure.predictions.base import tail_levels

LEVELS = tuple(round(0.01 * step, 2) for step in range(1, 100))
"""At which a distribution of an unknown family is read."""

Family = tuple[str, tuple[str, ...], Callable[..., Mapping[str, npt.ArrayLike]]]


def _called(family: str, **attributes: str) -> Family:
    """A family of SciPy's whose parameters are attributes by other names."""
    names = tuple(attributes)
    return family, tuple(attributes.values()), lambda *values: dict(zip(names, values, strict=True))


_TURNED: Final[dict[str, Callable[..., Mapping[str, npt.ArrayLike]]]] = {
    "lognorm": lambda mu, sigma: {"s": sigma, "scale": np.exp(mu)},
    "gamma": lambda shape, rate: {"a": shape, "scale": 1.0 / rate},
    "expon": lambda rate: {"scale": 1.0 / rate},
    "uniform": lambda low, high: {"loc": low, "scale": high - low},
}


def _turned(family: str, *attributes: str) -> Family:
    """A family whose parameters elsewhere are usually others than SciPy's."""
    return family, attributes, _TURNED[family]


_LOCATED = {"loc": "loc", "scale": "scale"}
_TORCH: Final[dict[str, Family]] = {
    "Normal": _called("norm", **_LOCATED),
    "LogNormal": _turned("lognorm", "loc", "scale"),
    "Laplace": _called("laplace", **_LOCATED),
    "Cauchy": _called("cauchy", **_LOCATED),
    "Gumbel": _called("gumbel_r", **_LOCATED),
    "StudentT": _called("t", df="df", **_LOCATED),
    "Gamma": _turned("gamma", "concentration", "rate"),
    "Beta": _called("beta", a="concentration1", b="concentration0"),
    "Exponential": _turned("expon", "rate"),
    "Uniform": _turned("uniform", "low", "high"),
    "Weibull": _called("weibull_min", c="concentration", scale="scale"),
    "HalfNormal": _called("halfnorm", scale="scale"),
    "HalfCauchy": _called("halfcauchy", scale="scale"),
    "Pareto": _called("pareto", b="alpha", scale="scale"),
    "Poisson": _called("poisson", mu="rate"),
    # torch counts successes of probability probs before total_count failures, SciPy the reverse
    "NegativeBinomial": (
        "nbinom",
        ("total_count", "probs"),
        lambda n, probs: {"n": n, "p": 1.0 - probs},
    ),
    "Binomial": _called("binom", n="total_count", p="probs"),
    # torch counts the failures, SciPy the trials
    "Geometric": ("geom", ("probs",), lambda p: {"p": p, "loc": np.full_like(p, -1.0)}),
    # each row's own distribution, whatever ties the rows, as of a Gaussian process
    "MultivariateNormal": _called("norm", loc="mean", scale="stddev"),
}
_SKPRO: Final[dict[str, Family]] = {
    "Normal": _called("norm", loc="mu", scale="sigma"),
    "Laplace": _called("laplace", loc="mu", scale="scale"),
    "Logistic": _called("logistic", loc="mu", scale="scale"),
    "Cauchy": _called("cauchy", loc="mu", scale="scale"),
    "TDistribution": _called("t", df="df", loc="mu", scale="sigma"),
    "LogNormal": _turned("lognorm", "mu", "sigma"),
    "Gamma": _turned("gamma", "alpha", "beta"),
    "Beta": _called("beta", a="alpha", b="beta"),
    "Exponential": _turned("expon", "rate"),
    "Uniform": _turned("uniform", "lower", "upper"),
    "Weibull": _called("weibull_min", c="k", scale="scale"),
    "HalfNormal": _called("halfnorm", scale="sigma"),
    "Poisson": _called("poisson", mu="mu"),
    "NegativeBinomial": (
        "nbinom",
        ("mu", "alpha"),
        lambda mu, alpha: {"n": alpha, "p": alpha / (alpha + mu)},
    ),
    "Binomial": _called("binom", n="n", p="p"),
}
_SCIPY: Final[dict[str, Family]] = {
    "Normal": _called("norm", loc="mu", scale="sigma"),
    "Uniform": _turned("uniform", "a", "b"),
    "Binomial": _called("binom", n="n", p="p"),
}


def read_distribution(value: Any, n: int) -> PredictionInput | None:
    """A library's predictive distribution of n rows; None of anything else."""
    if "Distribution" in library_classes(value, "torch"):
        law_or_samples = _of_torch(value, n)
        return (
            PredictionInput.of(law_or_samples)
            if law_or_samples is not None
            else _table_of_torch(value, n)
        )
    if "Distn" in library_classes(value, "ngboost"):
        frozen = vars(value).get("dist")
        if frozen is None or not hasattr(frozen, "kwds"):
            raise InputError(
                f"prediction of NGBoost's {type(value).__name__} is not supported: give draws, "
                "howsure.Samples(prediction.sample(1000).T)"
            )
        return PredictionInput.of(Distribution.from_scipy(frozen, n=n))
    if "BaseDistribution" in (names := library_classes(value, "skpro")):
        return _of_skpro(value, names, n)
    if "UnivariateDistribution" in (names := library_classes(value, "scipy")):
        if names[0] in _SCIPY:
            law = _mapped(_SCIPY, names[0], lambda name: _rows(getattr(value, name), n))
            return PredictionInput.of(law)
        title = f"SciPy's {str(value).partition('(')[0]}"
        return _table(title, n, value.icdf, "give a frozen distribution, such as stats.gamma(a)")
    return None


def _rows(values: Any, n: int) -> FloatArray:
    """Numbers of shape (n,), (n, 1) or one number, as one per row."""
    array = np.asarray(to_host(values, "prediction"), dtype=np.float64)
    if array.size == 1:
        return np.full(n, array.ravel()[0])
    if array.shape not in ((n,), (n, 1)):
        raise InputError(
            f"prediction must have one univariate distribution for each of the {n} rows of y, "
            f"got shape {array.shape}"
        )
    return array.reshape(n)


def _mapped(
    families: Mapping[str, Family], name: str, parameter_of: Callable[[str], Any]
) -> Distribution:
    """A distribution of a family of SciPy's; what is held are equally shaped arrays."""
    family, attributes, to_parameters = families[name]
    return Distribution(family, dict(to_parameters(*map(parameter_of, attributes))))


def _table(name: str, n: int, quantile: Callable[[float], Any], advice: str) -> PredictionInput:
    """Quantiles of a distribution whose family is unknown here, with a note."""
    try:
        columns = [_rows(quantile(level), n) for level in LEVELS]
    except InputError:
        raise
    except Exception as error:  # of another library: any may come
        raise InputError(
            f"prediction of {name} is not supported and has no quantiles: {advice}"
        ) from error
    note = f"{name} is not supported directly: its quantiles at levels 0.01 to 0.99 are used"
    table = np.maximum.accumulate(np.column_stack(columns), axis=1)  # of searched quantiles
    return PredictionInput.of(Quantiles(LEVELS, table), note)


def _of_torch(value: Any, n: int) -> Distribution | None:
    """A distribution of ``torch.distributions`` of a known family; else None."""
    for name in library_classes(value, "torch"):
        if name in _TORCH:
            return _mapped(_TORCH, name, lambda attribute: _rows(getattr(value, attribute), n))
        if name == "Independent":
            return _of_torch(value.base_dist, n)
        if name == "MixtureSameFamily":
            return _mixture_of_torch(value, n)
        if name == "TransformedDistribution":
            return _moved(value, n)
    return None


def _mixture_of_torch(value: Any, n: int) -> Distribution | None:
    parts = value.component_distribution
    while "Independent" in library_classes(parts, "torch"):
        parts = parts.base_dist
    name = next((c for c in library_classes(parts, "torch") if c in _TORCH), None)
    if name is None or name == "MultivariateNormal":
        return None
    probs = value.mixture_distribution.probs
    table = partial(_by_part, count=probs.shape[-1], n=n)
    return _mixed(
        lambda k: _mapped(_TORCH, name, lambda attribute: table(getattr(parts, attribute))[:, k]),
        table(probs),
    )


def _by_part(values: Any, count: int, n: int) -> FloatArray:
    """Numbers of the parts of mixtures, the same for all rows or not, as one row each."""
    array = np.asarray(to_host(values), dtype=np.float64)
    if array.size not in (count, n * count):
        raise InputError(
            f"prediction must have one univariate mixture for each of the {n} rows of y, got "
            f"components of shape {array.shape}"
        )
    return np.broadcast_to(array.reshape(-1, count), (n, count))


def _mixed(component: Callable[[int], Distribution], shares: FloatArray) -> Distribution:
    parts = [component(k) for k in range(shares.shape[1])]
    return mixture(parts, shares / shares.sum(axis=1, keepdims=True))


def _moved(value: Any, n: int) -> Distribution | None:
    """A distribution of a known family, moved and stretched."""
    base = _of_torch(value.base_dist, n)
    if base is None or "scale" not in base.parameters:
        return None
    parameters = dict(base.parameters)
    for step in value.transforms:
        if "AffineTransform" not in library_classes(step, "torch"):
            return None
        loc, scale = _rows(step.loc, n), _rows(step.scale, n)
        if not (scale > 0.0).all():
            return None
        parameters["loc"] = loc + scale * parameters["loc"]
        parameters["scale"] = scale * parameters["scale"]
    return Distribution(base.law, parameters)


def _table_of_torch(value: Any, n: int) -> PredictionInput:
    torch: Any = sys.modules["torch"]
    draws = ".squeeze(-1).T" if tuple(value.batch_shape + value.event_shape) == (n, 1) else ".T"
    return _table(
        f"torch's {type(value).__name__}",
        n,
        lambda level: value.icdf(torch.tensor(level, dtype=torch.float64)),
        f"give draws, howsure.Samples(prediction.sample((1000,)){draws})",
    )


def _of_skpro(value: Any, names: list[str], n: int) -> PredictionInput:
    known_prediction = _known_of_skpro(value, names[0], n)
    if known_prediction is not None:
        return PredictionInput.of(known_prediction)

    @cache
    def table() -> dict[float, Any]:  # skpro gives all levels at once
        return dict(zip(LEVELS, np.asarray(value.quantile(list(LEVELS))).T, strict=True))

    return _table(
        f"skpro's {names[0]}",
        n,
        (lambda level: table()[level]) if value.shape else value.ppf,
        "give draws, howsure.Samples of shape (n, m)",
    )


def _known_of_skpro(value: Any, name: str, n: int) -> Distribution | Samples | None:
    if value.shape and value.shape != (n, 1):
        raise InputError(f"prediction of skpro must have shape ({n}, 1) like y, got {value.shape}")
    parameters = value.get_params(deep=False)
    if name in _SKPRO:
        shape = value.shape or ()
        return _mapped(
            _SKPRO, name, lambda key: _rows(np.broadcast_to(np.asarray(parameters[key]), shape), n)
        )
    if name == "Empirical":
        return _samples_of_skpro(value, n)
    if name == "Mixture":
        parts = [
            _known_of_skpro(component, library_classes(component, "skpro")[0], n)
            for component in (
                distribution[-1] if isinstance(distribution, tuple) else distribution
                for distribution in value.distributions
            )
        ]
        plain = [component for component in parts if isinstance(component, Distribution)]
        if len(plain) < len(parts) or len({component.discrete for component in plain}) > 1:
            return None
        weights = None if value.weights is None else np.asarray(value.weights, dtype=np.float64)
        return mixture(plain, None if weights is None else weights / weights.sum())
    if name == "NormalMixture":
        keys, count = ("pi", "mu", "sigma"), np.shape(parameters["pi"])[-1]
        shares, mu, sigma = (_by_part(parameters[key], count, n) for key in keys)
        return _mixed(lambda k: Distribution.normal(mu[:, k], sigma[:, k]), shares)
    return None


def _samples_of_skpro(value: Any, n: int) -> Samples | None:
    """Equally weighted samples, as many for each row; else None."""
    draws = value.spl
    weights = None if value.weights is None else np.asarray(value.weights, dtype=np.float64)
    if not value.shape or (weights is not None and np.ptp(weights) > 0.0):
        return None
    try:
        wide = draws.iloc[:, 0].unstack(level=0).loc[value.index]
    except (KeyError, ValueError):  # rows of one name
        return None
    table = np.asarray(wide, dtype=np.float64)
    return Samples(table) if np.isfinite(table).all() and len(table) == n else None


# ---- forecasts: frames, series and mappings of other libraries -----------------------------------

_TABPFN_LEVELS = tuple(round(0.1 * step, 1) for step in range(1, 10))
_DARTS_QUANTILE = re.compile(r"(.*)_q(0?\.\d+)")


def read_foreign(
    value: Any, n: int, coverage: npt.ArrayLike | None = None, levels: npt.ArrayLike | None = None
) -> PredictionInput | None:
    """A library's predictions of n rows; None of anything else."""
    library_prediction = read_distribution(value, n) or read_posterior(value, n)
    if library_prediction is not None:
        return library_prediction
    if "DataFrame" in library_classes(value, "pandas") and value.columns.nlevels > 1:
        return _of_frame(value, list(value.columns))
    if "TimeSeries" in library_classes(value, "darts"):
        return _of_darts(value)
    series = list(value) if isinstance(value, (list, tuple, Iterator)) else [value]
    if series and all("Forecast" in library_classes(forecast, "gluonts") for forecast in series):
        return _of_gluonts(series, n)
    if isinstance(value, Mapping):
        return _of_tabpfn(value, n, levels)
    if isinstance(value, tuple) and coverage is None:
        _refuse_variance(value)
    outcome = getattr(value, "outcome", None)  # of what a fitted method of howsure predicts
    if isinstance(outcome, Prediction):
        return PredictionInput.of(outcome)
    if callable(getattr(value, "predict", None)) and hasattr(value, "fit"):
        raise InputError(
            "prediction must be the output of a model, got the model itself, "
            f"{type(value).__name__}: use howsure.assess_model(model, X, y)"
        )
    return None


def _one_variable(names: Sequence[Any]) -> None:
    variables = list(dict.fromkeys(map(str, names)))
    if len(variables) > 1:
        raise InputError(
            f"prediction must be of one variable, got {', '.join(variables)}: give one of them, "
            f"prediction[[{variables[0]!r}]]"
        )


def _of_frame(value: Any, columns: list[tuple[Any, ...]]) -> PredictionInput | None:
    """The frame of ``predict_interval`` or ``predict_quantiles``; None of any other."""
    numbers = [_number(column[1]) for column in columns]
    if any(number is None for number in numbers):
        return None
    table = np.asarray(value, dtype=np.float64)
    if all(len(column) == 2 for column in columns):
        _one_variable([column[0] for column in columns])
        return PredictionInput.of(Quantiles(np.array(numbers, dtype=np.float64), table))
    sides = [str(column[-1]) for column in columns]
    if any(len(column) != 3 for column in columns) or not set(sides) <= {"lower", "upper"}:
        return None
    _one_variable([column[0] for column in columns])
    at = {(number, side): j for j, (number, side) in enumerate(zip(numbers, sides, strict=True))}
    coverages = list(dict.fromkeys(numbers))
    if len(at) != 2 * len(coverages):
        raise InputError(
            "prediction must have one lower and one upper column per coverage, got "
            f"{', '.join(map(str, columns))}"
        )
    low, high = (table[:, [at[c, side] for c in coverages]] for side in ("lower", "upper"))
    return PredictionInput.of(Intervals(low, high, np.array(coverages, dtype=np.float64)))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _of_darts(value: Any) -> PredictionInput:
    """A TimeSeries of samples, of quantiles as components, or of a point forecast."""
    table = np.asarray(value.all_values(copy=False), dtype=np.float64)
    names = [str(name) for name in value.components]
    parts = [_DARTS_QUANTILE.fullmatch(name) for name in names]
    if all(parts) and table.shape[2] == 1:
        variables, levels = zip(*(match.groups() for match in parts if match), strict=True)
        _one_variable(variables)
        return PredictionInput.of(Quantiles(list(map(float, levels)), table[:, :, 0]))
    if len(names) > 1:
        raise InputError(
            f"prediction must be of one component, got {', '.join(names)}: give one of them, "
            f"prediction[{names[0]!r}]"
        )
    if table.shape[2] == 1:
        return PredictionInput(point=as_vector(table[:, 0, 0], "prediction"))
    return PredictionInput.of(Samples(table[:, 0, :]))


def _of_gluonts(series: list[Any], n: int) -> PredictionInput:
    """One forecast a series, one after the other."""
    kinds = {library_classes(forecast, "gluonts")[0] for forecast in series}
    if len(kinds) > 1:
        raise InputError(
            f"prediction must contain forecasts of one type, got {', '.join(sorted(kinds))}"
        )
    if hasattr(series[0], "samples"):
        tables = [np.asarray(forecast.samples, dtype=np.float64) for forecast in series]
        if len({(table.ndim, table.shape[0]) for table in tables}) > 1 or tables[0].ndim != 2:
            shapes = ", ".join(sorted({str(table.shape) for table in tables}))
            raise InputError(
                "each forecast in prediction must have the same number of univariate samples, "
                f"shape (samples, steps), got {shapes}"
            )
        return PredictionInput.of(Samples(np.hstack(tables).T))
    if hasattr(series[0], "forecast_array"):
        return _of_quantiles(series)
    return _of_distributions(series, n)


def _of_quantiles(series: list[Any]) -> PredictionInput:
    keys = [str(key) for key in series[0].forecast_keys]
    for forecast in series:
        if [str(key) for key in forecast.forecast_keys] != keys or np.ndim(
            forecast.forecast_array
        ) != 2:
            raise InputError(
                "each forecast in prediction must have the same univariate quantiles, got "
                f"{', '.join(keys)} and {', '.join(map(str, forecast.forecast_keys))}, shape "
                f"{np.shape(forecast.forecast_array)}"
            )
    table = np.hstack(
        [np.asarray(forecast.forecast_array, dtype=np.float64) for forecast in series]
    ).T
    levels = {j: number for j, key in enumerate(keys) if (number := _number(key)) is not None}
    point = table[:, keys.index("mean")] if "mean" in keys else None
    tables = (Quantiles(list(levels.values()), table[:, list(levels)]),) if levels else ()
    return PredictionInput(predictions=tables, point=point)


def _of_distributions(series: list[Any], n: int) -> PredictionInput:
    """Forecasts that each hold a distribution of all steps."""
    inputs: list[PredictionInput] = []
    for forecast in series:
        steps = int(getattr(forecast, "prediction_length", 0)) or n // len(series)
        parsed = read_distribution(getattr(forecast, "distribution", None), steps)
        if parsed is None:
            raise InputError(
                "prediction of GluonTS must contain samples, quantiles or a distribution, got "
                f"{type(forecast).__name__}: give forecast.to_sample_forecast()"
            )
        inputs.append(parsed)
    notes = tuple(dict.fromkeys(note for parsed in inputs for note in parsed.notes))
    predictions = [parsed.predictions[0] for parsed in inputs]
    return PredictionInput.of(_stacked(predictions), *notes)


def _stacked(predictions: Sequence[Any]) -> Distribution | Quantiles:
    """Predictions of one kind, one after the other."""
    if all(isinstance(prediction, Quantiles) for prediction in predictions):
        return Quantiles(
            predictions[0].levels, np.vstack([prediction.values for prediction in predictions])
        )
    families = sorted(
        {
            prediction.law.name if isinstance(prediction, Distribution) else prediction.kind
            for prediction in predictions
        }
    )
    if len(families) > 1:
        raise InputError(
            f"prediction must contain distributions of one family, got {', '.join(families)}"
        )
    parameters: dict[str, npt.ArrayLike] = {
        name: np.concatenate([prediction.parameters[name] for prediction in predictions])
        for name in predictions[0].parameters
    }
    return Distribution(predictions[0].law, parameters)


def _refuse_variance(value: tuple[Any, ...]) -> None:
    """Refuse a forecast beside a frame of one column, which is what ``predict_var`` gives."""
    frame = len(value) == 2 and "DataFrame" in library_classes(value[1], "pandas")
    if frame and value[1].shape[1] == 1:
        raise InputError(
            "prediction is a frame of one column, which may be a variance (of predict_var) or a "
            "standard deviation: give howsure.Distribution.normal(mean, variance**0.5), or the sd"
        )


def _of_tabpfn(
    value: Mapping[Any, Any], n: int, levels: npt.ArrayLike | None
) -> PredictionInput | None:
    """TabPFN's mapping of mean, median, mode and a list of quantiles; None of any other."""
    if not {"mean", "median", "quantiles"} <= set(value):
        return None
    columns = list(value["quantiles"])
    if levels is None and len(columns) != len(_TABPFN_LEVELS):
        raise InputError(f"pass levels= for the {len(columns)} quantiles of prediction")
    stated = _TABPFN_LEVELS if levels is None else np.atleast_1d(np.asarray(levels, dtype=float))
    return PredictionInput(
        predictions=(
            Quantiles(stated, as_matrix(np.column_stack(columns), "quantiles", length=n)),
        ),
        point=as_vector(value["mean"], "mean of prediction", length=n),
    )


# ---- what regressors of any library tell: what their predict takes, their parameters, normal laws

# Of an sd of 0: its square is 10⁻¹⁸⁰, still a number that may be divided by.
_MIN_SCALE = 1e-90


def located(family: str, mean: FloatArray, sd: FloatArray, **shape: npt.ArrayLike) -> Distribution:
    """Laws of a family at these means and scales; a scale of 0 is a law at a point."""
    parameters: dict[str, npt.ArrayLike] = dict(shape)
    return Distribution(family, {**parameters, "loc": mean, "scale": np.maximum(sd, _MIN_SCALE)})


def told_normals(mean_and_sd: Any, n: int, of: str = "") -> Distribution:
    """Normal laws by the means and sds that ``predict(x, return_std=True)`` gives."""
    mean, sd = mean_and_sd
    spread = as_vector(sd, f"{of}sd", length=n)
    if (spread < 0).any():
        raise InputError(f"{of}sd must not be negative, got {spread.min():g}")
    return located("norm", as_vector(mean, f"{of}mean", length=n), spread)


def predict_options(regressor: Any) -> set[str]:
    """Names of what a regressor's predict takes; a pipeline hands options to its last step."""
    steps = getattr(regressor, "steps", None)
    last = steps[-1][1] if steps else regressor
    predict = getattr(last, "predict", None)
    return set(inspect.signature(predict).parameters) if callable(predict) else set()


def parameters_of(regressor: Any) -> dict[str, Any]:
    """A regressor's parameters by name, those of its parts too; none where it tells none."""
    return dict(regressor.get_params()) if hasattr(regressor, "get_params") else {}


def quantile_parameter(regressor: Any) -> str | None:
    """A regressor's or a step's parameter ``quantile``, where its loss allows it; None without."""
    parameters = parameters_of(regressor)
    names = [
        key
        for key in parameters
        if (key == "quantile" or key.endswith("__quantile"))
        and loss_beside(parameters, key) in (None, "quantile")
    ]
    return names[0] if len(names) == 1 else None


def loss_beside(parameters: Mapping[str, Any], parameter: str) -> Any:
    """The loss beside a parameter; None where there is no choice."""
    prefix = parameter.rpartition("__")[0]
    return parameters.get(f"{prefix}__loss" if prefix else "loss")


def central_levels(coverages: tuple[float, ...]) -> FloatArray:
    """The levels that bound the central intervals, in rising order."""
    return np.array(sorted({level for c in coverages for level in tail_levels(c)}))
