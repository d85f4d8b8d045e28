"""Methods by name, with options as plain values, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.registry import Registry
from howsure_studies.methods.interface import Method
from howsure_studies.methods.options import (
    attribute,
    call_with_options,
    options_of,
    path_of,
    renamed,
    thing,
)
from howsure_studies.methods.regressors import as_method, makes_method

_HERE = "howsure_studies.methods"
_CONFORMAL = f"{_HERE}.conformal"

_BUILT_IN: Final[Mapping[str, str]] = {
    "linear_t": f"{_HERE}.linear:LinearT",
    "bayesian_ridge": f"{_HERE}.linear:BayesianRidge",
    "gaussian_process": f"{_HERE}.regressors:GaussianProcess",
    "linear_quantiles": f"{_HERE}.quantile_regression:linear_quantiles",
    "boosted_quantiles": f"{_HERE}.quantile_regression:boosted_quantiles",
    "quantile_forest": f"{_HERE}.quantile_forest:QuantileForest",
    "naive_bootstrap": f"{_HERE}.bootstrap:NaiveBootstrap",
    "split_conformal": f"{_CONFORMAL}.inductive:SplitConformal",
    "normalized_conformal": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "self_supervised_conformal": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "pac_conformal": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "mondrian_conformal": f"{_CONFORMAL}.inductive:SplitConformal",
    "local_conformal": f"{_CONFORMAL}.inductive:SplitConformal",
    "weighted_conformal": f"{_CONFORMAL}.inductive:SplitConformal",
    "robust_conformal": f"{_CONFORMAL}.inductive:SplitConformal",
    "conformal_predictive": f"{_CONFORMAL}.predictive:ConformalPredictive",
    "weighted_predictive": f"{_CONFORMAL}.predictive:ConformalPredictive",
    "clear": f"{_CONFORMAL}.clear:Clear",
    "cpa": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "pac": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "sscp": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "o_cpa": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "o_pac": f"{_CONFORMAL}.normalized:NormalizedConformal",
    "conformalized": f"{_CONFORMAL}.quantile:Conformalized",
    "cqr": f"{_CONFORMAL}.quantile:conformalized_quantiles",
    "selective": f"{_HERE}.selective.method:Selective",
    "recalibrated": "howsure_studies.methods.recalibrated:RecalibratedMethod",
    "cv_plus": f"{_CONFORMAL}.cross:CVPlus",
    "jackknife_plus": f"{_CONFORMAL}.cross:JackknifePlus",
    "jackknife_after_bootstrap": f"{_CONFORMAL}.cross:JackknifeAfterBootstrap",
    "network_bootstrap": f"{_HERE}.deep.networks:NetworkBootstrap",
    "parametric_bootstrap": f"{_HERE}.deep.networks:ParametricBootstrap",
    "deep_ensemble": f"{_HERE}.deep.networks:DeepEnsemble",
    "mc_dropout": f"{_HERE}.deep.networks:MCDropout",
    "concrete_dropout": f"{_HERE}.deep.networks:ConcreteDropout",
    "mean_variance_network": f"{_HERE}.deep.networks:MeanVarianceNetwork",
    "quantile_network": f"{_HERE}.deep.networks:QuantileNetwork",
    "head_regressor": f"{_HERE}.deep.networks:HeadNetwork",
    "tabpfn": f"{_HERE}.tabpfn:TabPFN",
    "searched": f"{_HERE}.searched:Searched",
    "constant": f"{_HERE}.constant:Constant",
    "catboost": f"{_HERE}.trees:CatBoostQuantiles",
    "catboost_normal": f"{_HERE}.trees:CatBoostNormal",
    "ngboost": f"{_HERE}.trees:NGBoostNormal",
    "bart": f"{_HERE}.trees:BART",
    "image_network": f"{_HERE}.deep.modules.method:ImageNetwork",
}

METHODS: Final = Registry("method", "howsure.methods", _BUILT_IN)
"""Methods by name; other packages add theirs by entry points of the group ``howsure.methods``."""

_FOREST = {"regressor": "forest"}
_CPA = {**_FOREST, "difficulty": "forest"}
_SSCP = {**_CPA, "errors": "split", "feature": "reconstruction_loss"}
_PAC = {**_CPA, "rank": "pac"}
_BY_EASE = {
    "adapt": {
        "name": "mondrian",
        "groups": {"name": "howsure.conformal.labels.tuning:EaseBins", "bins": 5},
    }
}
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "naive_bootstrap": {"regressor": {"name": "tree", "min_samples_leaf": 5}},
    "split_conformal": _FOREST,
    "normalized_conformal": _CPA,
    "self_supervised_conformal": _SSCP,
    "pac_conformal": _PAC,
    "cpa": _CPA,
    "pac": _PAC,
    "sscp": _SSCP,
    "o_cpa": {**_CPA, **_BY_EASE},
    "o_pac": {**_PAC, **_BY_EASE},
    "mondrian_conformal": {**_FOREST, "adapt": {"name": "mondrian", "groups": "uniform_bins"}},
    "local_conformal": {**_FOREST, "adapt": "localized"},
    "weighted_conformal": {**_FOREST, "adapt": "covariate_shift"},
    "robust_conformal": {**_FOREST, "adapt": "divergence_ball"},
    "conformal_predictive": _FOREST,
    "weighted_predictive": {**_FOREST, "adapt": "covariate_shift"},
    "clear": {"regressor": "boosting"},
    "conformalized": {"method": "quantile_forest"},
    "recalibrated": {"inner": "bayesian_ridge"},
    "selective": {"method": "quantile_forest"},
    "searched": {
        "candidates": [
            {"name": f"{_HERE}.quantile_forest:QuantileForest", "min_leaf": leaf}
            for leaf in (5, 15)
        ]
    },
    "cv_plus": _FOREST,
    "jackknife_plus": {"regressor": "linear"},
    "jackknife_after_bootstrap": {"regressor": {"name": "tree", "min_samples_leaf": 5}},
}


def methods() -> tuple[str, ...]:
    """Names of all methods: those that come with howsure, then those of other packages.

    Examples
    --------
    >>> "cqr" in methods()
    True
    """
    return METHODS.names()


def method_named(name: Any, **options: Any) -> Method:
    """The method of this name, with its options.

    Parameters
    ----------
    name : str, Method, regressor or own class
        A name of `methods`, or ``module:attribute`` of a class with ``fit``: a method, an own
        class with ``fit(x, y, rng)``, or a regressor, which `as_method` wraps by what it
        predicts. A function serves if it is annotated to return one; nothing else is called. A
        method or a regressor passes through `as_method`, and takes no options.
    **options
        Plain values, as TOML, JSON or a shell gives them; text is read where a number is wanted.
        An option that takes a regressor takes its name (``forest``, or ``module:attribute``), or
        a mapping of ``name`` and options; so does ``inner``, a method's own method, which most
        call ``method`` too.
        ``coverages`` is understood by every method that fixes them.

    Returns
    -------
    Method

    Raises
    ------
    InputError
        If the name or an option is unknown (the message names the near ones), or an option breaks
        its rule.
    MissingDependencyError
        If the method needs a library that is not installed.
    PluginError
        If it comes from another package and cannot be loaded.

    Examples
    --------
    >>> method_named("split_conformal", regressor="linear", coverages=[0.9]).name
    'split conformal (LinearRegression)'
    >>> method_named("sklearn.linear_model:ARDRegression", max_iter=100).name
    'ARDRegression'
    """
    if not isinstance(name, str):
        if options:
            raise InputError(f"options must be left out for a method instance, got {options}")
        return as_method(name)
    factory = attribute(name, "method") if ":" in name else METHODS.get(name)
    within = _inner_option(factory)
    given = {within if key == "inner" else key: value for key, value in options.items()}
    chosen = {**_DEFAULTS.get(name, {}), **renamed(factory, given)}
    if _is_spec(chosen.get(within)):
        chosen[within] = _inner(chosen[within], chosen.get("coverages"))
    if isinstance(factory, Method):
        return factory if not chosen else method_named(factory, **chosen)
    if ":" in name and hasattr(factory, "fit") and not inspect.isclass(factory):
        return as_method(factory) if not chosen else method_named(factory, **chosen)
    if ":" in name and not makes_method(factory):
        raise InputError(
            f"method {name!r} must be a class with fit, as methods and regressors are, or a "
            f"function that is annotated to return one, got {factory!r}: it was not called"
        )
    return _wrapped(factory, chosen, f"method {name!r}")


def method_spec(method: Method) -> dict[str, Any]:
    """What a method is, in values that JSON knows: its name and all its options.

    Two methods with one spec decide alike, so the spec serves to address results by a hash, and
    ``method_named(spec["name"], **spec["options"])`` makes the method again.

    Parameters
    ----------
    method : Method
        A dataclass, as all methods here are.

    Returns
    -------
    dict
        ``name``, a name of `methods` or ``module:attribute``, and ``options``, with those left at
        their defaults too. A regressor among them is a mapping of ``name`` and its parameters.

    Raises
    ------
    InputError
        If something within cannot be written down, as a function made on the spot cannot.

    Examples
    --------
    >>> from howsure_studies.methods.linear import LinearT
    >>> method_spec(LinearT())
    {'name': 'linear_t', 'options': {'intercept': True}}
    """
    kind = type(method)
    path = path_of(kind, "method")
    here = f"{kind.__module__}:{kind.__qualname__}"
    short = [name for name, target in _BUILT_IN.items() if target == here]
    options = options_of(method, f"method {method.name!r}")
    return {"name": short[0] if short else path, "options": options}


def _wrapped(factory: Any, options: dict[str, Any], what: str) -> Method:
    """What a factory makes, as a method; coverages go to `as_method` where it takes none."""
    coverages = options.get("coverages")
    own = dict(options)
    if coverages is not None and "coverages" not in inspect.signature(factory).parameters:
        del own["coverages"]
    fresh = call_with_options(factory, own, what)
    if coverages is None:
        return as_method(fresh)
    wanted = checked(coverages, tuple[float, ...], f"{what}: coverages", text=True)
    method = as_method(fresh, wanted)
    if "coverages" not in own and method is fresh:
        raise InputError(f"{what} has fixed or arbitrary coverages: coverages must be left out")
    return method


def _inner_option(factory: Any) -> str:
    """The option of a method that takes another method."""
    known = inspect.signature(factory).parameters if callable(factory) else ()
    return "inner" if "inner" in known else "method"


def _is_spec(value: Any) -> bool:
    return isinstance(value, str | Mapping)


def _inner(value: Any, coverages: Any) -> Any:
    """A method within a method, at the same coverages where it fixes them."""
    options = {"name": value} if isinstance(value, str) else dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"method must have a name besides its options, got {value!r}")
    if ":" in name and not options and coverages is None:
        named_object = thing({"name": name}, "method")
        if (
            callable(named_object)
            and not hasattr(named_object, "fit")
            and not makes_method(named_object)
        ):
            return named_object
    if coverages is not None and "coverages" not in options:
        ready = method_named(name, **options)
        if ready.fixed_coverages is None:
            return ready
        options["coverages"] = coverages
    return method_named(name, **options)
