"""From plain values to things: names and options, as TOML, JSON and shells write them."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.registry import Registry, check_known, unknown

_HERE = "howsure.methods.conformal"

REGRESSORS: Final = Registry(
    "regressor",
    "howsure.regressors",
    {
        "linear": "sklearn.linear_model:LinearRegression",
        "ridge": "sklearn.linear_model:RidgeCV",
        "bayesian_ridge": "sklearn.linear_model:BayesianRidge",
        "tree": "sklearn.tree:DecisionTreeRegressor",
        "forest": "sklearn.ensemble:RandomForestRegressor",
        "extra_trees": "sklearn.ensemble:ExtraTreesRegressor",
        "boosting": "sklearn.ensemble:HistGradientBoostingRegressor",
        "neighbors": "sklearn.neighbors:KNeighborsRegressor",
        "network": "sklearn.neural_network:MLPRegressor",
        "quantile": "sklearn.linear_model:QuantileRegressor",
    },
)
"""Regressors by name, for options that take one; ``module:attribute`` names any other."""

PARTS: Final[Mapping[str, Registry]] = {
    "regressor": REGRESSORS,
    "difficulty": REGRESSORS,
    "adapt": Registry(
        "adapt",
        "howsure.adaptations",
        {
            "marginal": f"{_HERE}:Marginal",
            "mondrian": f"{_HERE}:Mondrian",
            "localized": f"{_HERE}:Localized",
            "covariate_shift": f"{_HERE}:CovariateShift",
        },
    ),
    "groups": Registry("groups", "howsure.groups", {"uniform_bins": f"{_HERE}:UniformBins"}),
    "feature": Registry(
        "feature",
        "howsure.features",
        {"reconstruction_loss": f"{_HERE}.normalized:ReconstructionLoss"},
    ),
    "ratio": Registry("ratio", "howsure.ratios"),
}
"""Options that take a thing rather than a value, and the names that they know."""


def attribute(target: str, argument: str) -> Any:
    """What ``module:attribute`` names.

    Parameters
    ----------
    target : str
        A module's dotted name, a colon, and an attribute's dotted name.
    argument : str
        The argument's name, for the message.

    Returns
    -------
    object

    Raises
    ------
    InputError
        If there is no such module or attribute.

    Examples
    --------
    >>> attribute("math:sqrt", "ratio")(4.0)
    2.0
    """
    module, _, path = target.partition(":")
    if not module or not path:
        raise InputError(f"{argument} must be written module:attribute, got {target!r}")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"{argument} {target!r} cannot be imported: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=3, cutoff=0.5)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise InputError(f"{argument} must be in {module!r}, got {path!r}{hint}")
        found = getattr(found, part)
    return found


def thing(value: Any, argument: str, registry: Registry | None = None) -> Any:
    """A thing from a name, or from a mapping of ``name`` and options; all else passes through.

    Parameters
    ----------
    value : str, mapping or object
        A name of the registry or ``module:attribute``, bare or with options beside it. A class is
        made with its options, if it is an estimator (``fit`` or ``get_params``), a dataclass or a
        subclass of howsure's; no other is called. A function is taken as it is.
    argument : str
        The argument's name, for messages.
    registry : Registry, optional
        The names known; without one, only ``module:attribute`` is a name.

    Returns
    -------
    object

    Raises
    ------
    InputError
        If the name or an option is unknown, or an option breaks its rule.

    Examples
    --------
    >>> thing({"name": "tree", "max_depth": 3}, "regressor", REGRESSORS)
    DecisionTreeRegressor(max_depth=3)
    """
    if isinstance(value, list | tuple):
        return type(value)(thing(item, argument) for item in value)
    if isinstance(value, Mapping) and set(value) == {"number"}:
        return float(value["number"])
    options: dict[str, Any] = {}
    name = value
    if isinstance(value, Mapping):
        options = {str(key): item for key, item in value.items()}
        name = options.pop("name", None)
        if registry is None and not (isinstance(name, str) and ":" in name):
            return value
        if not isinstance(name, str):
            raise InputError(f"{argument} must have a name beside its options, got {value!r}")
    if not isinstance(name, str) or (registry is None and not isinstance(value, Mapping)):
        return value
    found = _named(name, argument, registry)
    if inspect.isclass(found):
        if ":" in name and not _makeable(found):
            raise InputError(
                f"{argument} must be a class with fit or get_params, a dataclass or a subclass of "
                f"howsure's, which {name!r} is not: it was not called"
            )
        return made(found, options, f"{argument} {name!r}")
    if options:
        raise InputError(f"{argument} {name!r} takes no options, got {', '.join(options)}")
    return found


def named(
    spec: Any, known: Mapping[str, Callable[..., Any]], what: str, default: str | None = None
) -> Any:
    """What a name, or a mapping of ``name`` and options, makes of things known; see `made`."""
    options = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = options.pop("name", default)
    if not isinstance(name, str):
        raise InputError(f"{what} must be a name, or a mapping with a name, got {spec!r}")
    check_known(name, known, what)
    return made(known[name], options, f"{what} {name!r}")


def made(factory: Callable[..., Any], options: Mapping[str, Any], what: str) -> Any:
    """Call a class or function with options given as plain values, each checked.

    Parameters
    ----------
    factory : callable
        What makes the thing.
    options : mapping
        Values by name, as `checked` and `thing` read them.
    what : str
        What is made, for messages.

    Returns
    -------
    object

    Raises
    ------
    InputError
        If an option is unknown (the message lists the near ones), missing, or of a wrong kind, or
        if the call refuses it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> made(Ridge, {"alpah": 1.0}, "regressor 'ridge'")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: regressor 'ridge': option must be one of alpha,
    fit_intercept, copy_X, max_iter, tol, solver, positive, random_state, got 'alpah'; near: alpha
    """
    known = inspect.signature(factory).parameters
    named = [key for key, p in known.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in known.values())
    hints = _hints(factory)
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key not in named and not takes_any:
            if not named:
                raise InputError(f"{what} takes no options, got {key!r}")
            raise InputError(f"{what}: {unknown(key, named, 'option')}")
        whole = thing(value, f"{what}: {key}", PARTS.get(key))
        values[key] = checked(whole, hints.get(key, Any), f"{what}: {key}", text=True)
    missing = [key for key in named if known[key].default is inspect.Parameter.empty]
    missing = [key for key in missing if key not in values]
    if missing:
        raise InputError(f"{what} needs the option {', '.join(missing)}, got none")
    try:
        return factory(**values)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be made: {error}") from error


def _named(name: str, argument: str, registry: Registry | None) -> Any:
    return attribute(name, argument) if ":" in name or registry is None else registry.get(name)


def _makeable(found: type) -> bool:
    """Whether a class that somebody names is one that options are made of."""
    if dataclasses.is_dataclass(found) or hasattr(found, "fit") or hasattr(found, "get_params"):
        return True
    return any(base.__module__.partition(".")[0] == "howsure" for base in found.__mro__)


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Type hints of a factory; none where they cannot be read, as in modules not ours."""
    try:
        return typing.get_type_hints(factory, include_extras=True)
    except (NameError, TypeError):
        return {}
