"""Predictive distributions of other libraries, one a row, on howsure's families."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, to_host
from howsure.core.errors import InputError
from howsure.inputs.array_inputs import PredictionInput
from howsure.predictions import Distribution, Quantiles, Samples, mixture

LEVELS: Final = tuple(round(0.01 * step, 2) for step in range(1, 100))
"""At which a distribution of an unknown family is read."""

Family = tuple[str, tuple[str, ...], Callable[..., Mapping[str, npt.ArrayLike]]]


def _called(family: str, **attributes: str) -> Family:
    """A family of SciPy's whose parameters are attributes by other names."""
    names = tuple(attributes)
    return family, tuple(attributes.values()), lambda *held: dict(zip(names, held, strict=True))


_LOCATED = {"loc": "loc", "scale": "scale"}
_TORCH: Final[dict[str, Family]] = {
    "Normal": _called("norm", **_LOCATED),
    "LogNormal": ("lognorm", ("loc", "scale"), lambda mu, s: {"s": s, "scale": np.exp(mu)}),
    "Laplace": _called("laplace", **_LOCATED),
    "Cauchy": _called("cauchy", **_LOCATED),
    "Gumbel": _called("gumbel_r", **_LOCATED),
    "StudentT": _called("t", df="df", **_LOCATED),
    "Gamma": ("gamma", ("concentration", "rate"), lambda a, rate: {"a": a, "scale": 1.0 / rate}),
    "Beta": _called("beta", a="concentration1", b="concentration0"),
    "Exponential": ("expon", ("rate",), lambda rate: {"scale": 1.0 / rate}),
    "Uniform": ("uniform", ("low", "high"), lambda low, high: {"loc": low, "scale": high - low}),
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
    "LogNormal": ("lognorm", ("mu", "sigma"), lambda mu, s: {"s": s, "scale": np.exp(mu)}),
    "Gamma": ("gamma", ("alpha", "beta"), lambda a, beta: {"a": a, "scale": 1.0 / beta}),
    "Beta": _called("beta", a="alpha", b="beta"),
    "Exponential": ("expon", ("rate",), lambda rate: {"scale": 1.0 / rate}),
    "Uniform": ("uniform", ("lower", "upper"), lambda a, b: {"loc": a, "scale": b - a}),
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
    "Uniform": ("uniform", ("a", "b"), lambda a, b: {"loc": a, "scale": b - a}),
    "Binomial": _called("binom", n="n", p="p"),
}


def library_classes(value: Any, package: str) -> list[str]:
    """Names of the classes that a package made among those of a value."""
    made = [c for c in type(value).__mro__ if c.__module__.partition(".")[0] == package]
    return [c.__name__ for c in made]


def read_distribution(value: Any, n: int) -> PredictionInput | None:
    """A library's predictive distribution of n rows; None of anything else."""
    if "Distribution" in library_classes(value, "torch"):
        found = _of_torch(value, n)
        return _as_input(found) if found is not None else _table_of_torch(value, n)
    if "Distn" in library_classes(value, "ngboost"):
        return _of_ngboost(value, n)
    if "BaseDistribution" in (names := library_classes(value, "skpro")):
        return _of_skpro(value, names, n)
    if "UnivariateDistribution" in (names := library_classes(value, "scipy")):
        return _of_scipy(value, names, n)
    return None


def _as_input(found: Distribution | Samples) -> PredictionInput:
    return PredictionInput(predictions=(found,))


def _rows(values: Any, n: int) -> FloatArray:
    """Numbers of shape (n,), (n, 1) or of one number, as one a row."""
    array = np.asarray(to_host(values, "prediction"), dtype=np.float64)
    if array.size == 1:
        return np.full(n, array.ravel()[0])
    if array.shape not in ((n,), (n, 1)):
        raise InputError(
            f"prediction must hold one distribution of one number for each of the {n} rows of y, "
            f"got shape {array.shape}"
        )
    return array.reshape(n)


def _mapped(families: Mapping[str, Family], name: str, held: Callable[[str], Any]) -> Distribution:
    """A distribution of a family of SciPy's; what is held are equally shaped arrays."""
    family, attributes, to_parameters = families[name]
    return Distribution(family, dict(to_parameters(*map(held, attributes))))


def _table(name: str, n: int, quantile: Callable[[float], Any], advice: str) -> PredictionInput:
    """Quantiles of a distribution whose family is unknown here, with a note."""
    try:
        columns = [_rows(quantile(level), n) for level in LEVELS]
    except InputError:
        raise
    except Exception as error:  # of another library: any may come
        raise InputError(
            f"prediction of {name} has no counterpart here and gives no quantiles: {advice}"
        ) from error
    note = f"{name} has no counterpart here: it is read by its quantiles at levels 0.01 to 0.99"
    table = np.maximum.accumulate(np.column_stack(columns), axis=1)  # of searched quantiles
    return PredictionInput(predictions=(Quantiles(LEVELS, table),), notes=(note,))


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
        lambda k: _mapped(_TORCH, name, lambda held: table(getattr(parts, held))[:, k]),
        table(probs),
    )


def _by_part(values: Any, count: int, n: int) -> FloatArray:
    """Numbers of the parts of mixtures, the same for all rows or not, as one row each."""
    array = np.asarray(to_host(values), dtype=np.float64)
    if array.size not in (count, n * count):
        raise InputError(
            f"prediction must hold one mixture of one number for each of the {n} rows of y, "
            f"got components of shape {array.shape}"
        )
    return np.broadcast_to(array.reshape(-1, count), (n, count))


def _mixed(part: Callable[[int], Distribution], shares: FloatArray) -> Distribution:
    parts = [part(k) for k in range(shares.shape[1])]
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


def _of_ngboost(value: Any, n: int) -> PredictionInput:
    frozen = vars(value).get("dist")
    if frozen is None or not hasattr(frozen, "kwds"):
        raise InputError(
            f"prediction of NGBoost's {type(value).__name__} has no counterpart here: give draws, "
            "howsure.Samples(prediction.sample(1000).T)"
        )
    return _as_input(Distribution.from_scipy(frozen, n=n))


def _of_scipy(value: Any, names: list[str], n: int) -> PredictionInput:
    """A distribution of SciPy's newer kind."""
    if names[0] in _SCIPY:
        distribution = _mapped(_SCIPY, names[0], lambda name: _rows(getattr(value, name), n))
        return _as_input(distribution)
    title = f"SciPy's {str(value).partition('(')[0]}"
    return _table(title, n, value.icdf, "give a frozen distribution, such as stats.gamma(a)")


def _of_skpro(value: Any, names: list[str], n: int) -> PredictionInput:
    found = _known_of_skpro(value, names[0], n)
    if found is not None:
        return _as_input(found)

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
        raise InputError(
            f"prediction of skpro must have shape ({n}, 1) as y has {n} rows, got {value.shape}"
        )
    held = value.get_params(deep=False)
    if name in _SKPRO:
        shape = value.shape or ()
        return _mapped(
            _SKPRO, name, lambda key: _rows(np.broadcast_to(np.asarray(held[key]), shape), n)
        )
    if name == "Empirical":
        return _samples_of_skpro(value, n)
    if name == "Mixture":
        parts = [
            _known_of_skpro(part, library_classes(part, "skpro")[0], n)
            for part in (
                distribution[-1] if isinstance(distribution, tuple) else distribution
                for distribution in value.distributions
            )
        ]
        plain = [part for part in parts if isinstance(part, Distribution)]
        if len(plain) < len(parts) or len({part.discrete for part in plain}) > 1:
            return None
        weights = None if value.weights is None else np.asarray(value.weights, dtype=np.float64)
        return mixture(plain, None if weights is None else weights / weights.sum())
    if name == "NormalMixture":
        keys, count = ("pi", "mu", "sigma"), np.shape(held["pi"])[-1]
        shares, mu, sigma = (_by_part(held[key], count, n) for key in keys)
        return _mixed(lambda k: Distribution.normal(mu[:, k], sigma[:, k]), shares)
    return None


def _samples_of_skpro(value: Any, n: int) -> Samples | None:
    """Equally weighted samples, as many for each row; else None."""
    held = value.spl
    weights = None if value.weights is None else np.asarray(value.weights, dtype=np.float64)
    if not value.shape or (weights is not None and np.ptp(weights) > 0.0):
        return None
    try:
        wide = held.iloc[:, 0].unstack(level=0).loc[value.index]
    except (KeyError, ValueError):  # rows of one name
        return None
    table = np.asarray(wide, dtype=np.float64)
    return Samples(table) if np.isfinite(table).all() and len(table) == n else None
