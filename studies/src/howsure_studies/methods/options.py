"""Between plain values and things: names and options, as TOML, JSON and shells write them."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from howsure.core import convert
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.registry import Registry, check_known, imported, unknown

_HERE = "howsure.conformal.adapting"
_FITTING = "howsure_studies.methods.conformal"

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
            "localized": f"{_FITTING}.weighted:Localized",
            "covariate_shift": f"{_FITTING}.weighted:CovariateShift",
            "divergence_ball": f"{_FITTING}.robust:DivergenceBall",
        },
    ),
    "groups": Registry("groups", "howsure.groups", {"uniform_bins": f"{_HERE}:UniformBins"}),
    "feature": Registry(
        "feature",
        "howsure.features",
        {"reconstruction_loss": f"{_FITTING}.normalized:ReconstructionLoss"},
    ),
    "ratio": Registry("ratio", "howsure.ratios"),
    "quantiles": REGRESSORS,
    "classifier": Registry(
        "classifier",
        "howsure.classifiers",
        {
            "logistic": "sklearn.linear_model:LogisticRegression",
            "boosting": "sklearn.ensemble:HistGradientBoostingClassifier",
            "forest": "sklearn.ensemble:RandomForestClassifier",
        },
    ),
}
"""Options that take a thing rather than a value, and the names that they know."""

_OURS = ("howsure", "howsure_studies")
_DEEP = "howsure.methods.deep"
_MOVED: Final[Mapping[str, str]] = {
    "howsure.studies.shift.baselines:Constant": "howsure.methods.constant:Constant",
    "howsure.methods.own:OwnMethod": "howsure.methods.regressors:OwnMethod",
    f"{_DEEP}.bootstrap:NetworkBootstrap": f"{_DEEP}.networks:NetworkBootstrap",
    f"{_DEEP}.ensembles:DeepEnsemble": f"{_DEEP}.networks:DeepEnsemble",
    f"{_DEEP}.ensembles:MeanVarianceNetwork": f"{_DEEP}.networks:MeanVarianceNetwork",
    f"{_DEEP}.ensembles:QuantileNetwork": f"{_DEEP}.networks:QuantileNetwork",
    f"{_DEEP}.head_network:HeadNetwork": f"{_DEEP}.networks:HeadNetwork",
    f"{_DEEP}.montecarlo:ConcreteDropout": f"{_DEEP}.networks:ConcreteDropout",
    f"{_DEEP}.montecarlo:MCDropout": f"{_DEEP}.networks:MCDropout",
    f"{_DEEP}.heads.pair:PairHead": f"{_DEEP}.heads.quantiles:PairHead",
    f"{_DEEP}.heads.shapes:NormalMixture": f"{_DEEP}.heads.normal:NormalMixture",
    f"{_DEEP}.heads.normal:StudentT": f"{_DEEP}.heads.normal:StudentTHead",
    f"{_DEEP}.heads.shapes:StudentT": f"{_DEEP}.heads.normal:StudentTHead",
    f"{_DEEP}.heads.counts:Poisson": f"{_DEEP}.heads.counts:PoissonHead",
    f"{_DEEP}.heads.counts:DoublePoisson": f"{_DEEP}.heads.counts:DoublePoissonHead",
    f"{_DEEP}.heads.counts:NegativeBinomial": f"{_DEEP}.heads.counts:NegativeBinomialHead",
    f"{_DEEP}.modules:Recipe": f"{_DEEP}.training:ModuleTraining",
    f"{_DEEP}.training:Recipe": f"{_DEEP}.training:ModuleTraining",
    f"{_DEEP}.modules.recipe:Recipe": f"{_DEEP}.training:ModuleTraining",
}
# Where a class stood when it was first written down: it still is written so, that the addresses
# of stored results stay, and both paths are read.
_WRITTEN: Final = {now: then for then, now in _MOVED.items()}
_STAYED = ("cross", "inductive", "normalized", "quantile", "robust", "weighted")
_ROOMS: Final = (  # where modules stood when they were first written down, and stand; first wins
    *((f"howsure.methods.conformal.{each}", f"{_FITTING}.{each}") for each in _STAYED),
    ("howsure.methods.conformal", "howsure.conformal"),
    ("howsure.recalibration.wrapper", "howsure_studies.methods.recalibrated"),
    ("howsure.methods", "howsure_studies.methods"),
    ("howsure.studies", "howsure_studies"),
)


def attribute(target: str, argument: str) -> Any:
    """What ``module:attribute`` names."""
    return imported(_room(_MOVED.get(written(target), target), _ROOMS), argument)


def written(target: str) -> str:
    """``module:attribute`` as results tell it: as it was when it was first written down."""
    then = _room(target, ((new, old) for old, new in _ROOMS))
    return _WRITTEN.get(then, then)


def _room(target: str, rooms: Iterable[tuple[str, str]]) -> str:
    """A target whose module, or a package above it, is called otherwise."""
    for old, new in rooms:
        if re.match(rf"{re.escape(old)}[.:]", target):
            return new + target.removeprefix(old)
    return target


def thing(value: Any, argument: str, registry: Registry | None = None) -> Any:
    """A thing from a name, or from a mapping of ``name`` and options; all else passes through.

    A class is made with its options, if it is an estimator (``fit`` or ``get_params``), a
    dataclass or a subclass of howsure's; no other is called. A function is taken as it is.
    Without a registry, only ``module:attribute`` is a name.
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
            raise InputError(f"{argument} must have a name besides its options, got {value!r}")
    if not isinstance(name, str) or (registry is None and not isinstance(value, Mapping)):
        return value
    named_thing = _named(name, argument, registry)
    if inspect.isclass(named_thing):
        if ":" in name and not _makeable(named_thing):
            raise InputError(
                f"{argument} must be a class with fit or get_params, a dataclass or a subclass of "
                f"howsure's, which {name!r} is not: it was not called"
            )
        return call_with_options(named_thing, options, f"{argument} {name!r}")
    if options:
        raise InputError(f"{argument} {name!r} takes no options, got {', '.join(options)}")
    return named_thing


def named(
    spec: Any, known: Mapping[str, Callable[..., Any]], what: str, default: str | None = None
) -> Any:
    """What a name, or a mapping of ``name`` and options, makes of things known; see `made`."""
    options = dict(spec) if isinstance(spec, Mapping) else {"name": spec}
    name = options.pop("name", default)
    if not isinstance(name, str):
        raise InputError(f"{what} must be a name, or a mapping with a name, got {spec!r}")
    check_known(name, known, what)
    return call_with_options(known[name], options, f"{what} {name!r}")


def renamed(factory: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that they have now, where they are given as they are written down."""
    if dataclasses.is_dataclass(factory):
        now = {_key(field): field.name for field in dataclasses.fields(factory)}
        if set(options) & (now.keys() - set(now.values())):  # a name that none has any more
            return {now.get(name, name): value for name, value in options.items()}
    return dict(options)


def _key(field: dataclasses.Field[Any]) -> str:
    """What an option was called when it was first written down: so that addresses stay."""
    return str(field.metadata.get("written", field.name))


def call_with_options(factory: Callable[..., Any], options: Mapping[str, Any], what: str) -> Any:
    """Call a class or function with options given as plain values, each checked."""
    options = renamed(factory, options)
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


def _makeable(cls: type) -> bool:
    """Whether a class that somebody names is one that options are made of."""
    if dataclasses.is_dataclass(cls) or hasattr(cls, "fit") or hasattr(cls, "get_params"):
        return True
    return any(base.__module__.partition(".")[0] in _OURS for base in cls.__mro__)


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Type hints of a factory; none where they cannot be read, as in modules not ours."""
    try:
        return typing.get_type_hints(factory, include_extras=True)
    except (NameError, TypeError):
        return {}


def plain(value: Any, name: str) -> Any:
    """A thing as values that JSON knows, from which `thing` makes it again.

    A dataclass or an estimator becomes a mapping of ``name`` and all its options; what cannot be
    imported cannot be written down.
    """
    return convert.plain(value, _number, lambda thing: _spec_of(thing, name))


def _number(value: float) -> Any:
    return value if math.isfinite(value) else {"number": str(value)}


def _spec_of(thing: Any, name: str) -> dict[str, Any]:
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return {"name": path_of(thing, name)}
    return {"name": path_of(type(thing), name), **options_of(thing, name)}


def options_of(value: Any, name: str) -> dict[str, Any]:
    """All options of a dataclass, an estimator or a plain class, as values that JSON knows.

    A plain class must keep every argument of its ``__init__`` as the attribute of that name, and
    nothing else before it is fitted.
    """
    if dataclasses.is_dataclass(value):
        # an option that came later is left out at its default, so that addresses stay
        given = [(f, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init]
        options = {_key(f): v for f, v in given if not (f.metadata.get("later") and v == f.default)}
    elif hasattr(value, "get_params"):
        options = value.get_params(deep=False)
    else:
        options = dict(getattr(value, "__dict__", {"": None}))
        wanted = inspect.signature(type(value)).parameters
        if set(options) != set(wanted):
            raise InputError(
                f"{name} must be a dataclass, have get_params, or keep what its __init__ takes and "
                f"no more, to be written down; got {value!r}"
            )
        options = {key: options[key] for key in wanted}
    return {key: plain(item, f"{name}: {key}") for key, item in options.items()}


def path_of(value: Any, name: str) -> str:
    """``module:attribute`` of a class or function that can be imported by it."""
    module = getattr(value, "__module__", None)
    path = getattr(value, "__qualname__", "")
    target = f"{module}:{path}"
    importable = module is not None and "<" not in path
    if not importable or attribute(target, name) is not value:
        raise InputError(f"{name} must be importable to be written down, got {value!r}")
    return written(target)
