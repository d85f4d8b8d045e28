"""A user's own class as a method: `fit(x, y, rng)` and `predict(x)`, and nothing of howsure's."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_vector
from howsure.core.errors import InputError, within
from howsure.inputs.given import read_given
from howsure.methods.interface import Beliefs, Fitted, Method, checked_coverages, seeded_clone
from howsure.predictions import Intervals, Prediction

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@final
@dataclass(frozen=True, slots=True)
class OwnMethod(Method):
    """Any object with ``fit(x, y, rng)`` and ``predict(x)``; `as_method` makes it where needed.

    Every fit works on a fresh copy, so that trials share no state.

    Parameters
    ----------
    own : object
        ``fit`` returns what is fitted: itself, another object with ``predict``, or None for
        itself. ``predict`` returns `Beliefs`, a `Prediction`, or what `howsure.assess` takes with
        uncertainty: ``(lower, upper)``, an array of intervals, quantiles by level, samples.
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
    >>> from howsure.methods.regressors import as_method
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
        told = getattr(self.own, "coverages", getattr(self.own, "coverage", None))
        said = None if told is None or callable(told) else tuple(np.ravel(told).tolist())
        chosen = said or self.coverages
        if chosen is not None:
            object.__setattr__(self, "coverages", checked_coverages(tuple(chosen)))

    @property
    def name(self) -> str:
        """What reports call it: its attribute ``name`` where that is text, else its class."""
        told = getattr(self.own, "name", None)
        return told if isinstance(told, str) and told else type(self.own).__name__

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
        """Fit a copy of the object.

        Raises
        ------
        InputError
            If it cannot be copied, or ``fit`` returns something that does not predict.
        """
        fresh = _copied(self.own, self.name, rng)
        inputs = np.asarray(x)
        targets = as_vector(y, "y", length=len(inputs))
        if "rng" in _arguments(fresh):
            found = fresh.fit(inputs, targets, rng=rng)
        else:
            found = fresh.fit(inputs, targets, rng)
        fitted = fresh if found is None else found
        if not callable(getattr(fitted, "predict", None)):
            raise InputError(
                f"{self.name}.fit must return itself, or what has predict(x), "
                f"got {type(fitted).__name__}"
            )
        return FittedOwn(fitted, self.name, self.coverages)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedOwn(Fitted):
    """What an own method has fitted; its ``features``, ``score`` and ``notes`` are seen too."""

    model: Any
    name: str
    coverages: tuple[float, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in ("features", "score", "notes"):
            return getattr(self.model, name)
        raise AttributeError(name)

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """What is believed at the rows of x; a message of what does not serve names the class."""
        inputs = np.asarray(x)
        with within(f"{self.name}.predict(x)"):
            value = self.model.predict(inputs)
        if not isinstance(value, Beliefs):
            return Beliefs(self._read(value, len(inputs)))
        for part in (value.outcome, value.mean):
            if part is not None:
                self._check(part, len(inputs))
        return value

    def _read(self, value: Any, n: int) -> Prediction:
        coverage: Any = None
        if self.coverages is not None:
            coverage = self.coverages if len(self.coverages) > 1 else self.coverages[0]
        if value is None:
            raise InputError(f"{self.name}.predict(x) must return a prediction, got None")
        try:
            found = value if isinstance(value, Prediction) else _only(value, n, coverage)
        except InputError as error:
            hint = (
                "; the class may state its coverage, by coverage = 0.9" if coverage is None else ""
            )
            raise InputError(f"{self.name}.predict(x): {error}{hint}") from error
        if found is None:
            raise InputError(
                f"{self.name}.predict(x) must return a prediction with uncertainty, such as "
                "(lower, upper), got a point forecast alone"
            )
        if isinstance(found, Intervals) and not found.coverages:
            if coverage is None or found.lower.shape[1] != np.size(coverage):
                raise InputError(
                    f"{self.name}.predict(x) gives intervals of unknown coverage: the "
                    "class may state it, by coverage = 0.9, or the run"
                )
            found = Intervals(found.lower, found.upper, coverage)
        self._check(found, n)
        return found

    def _check(self, prediction: Prediction, n: int) -> None:
        if not isinstance(prediction, Prediction):
            raise InputError(
                f"{self.name}.predict(x): Beliefs must hold predictions, "
                f"got {type(prediction).__name__}"
            )
        if prediction.n != n:
            raise InputError(
                f"{self.name}.predict(x) must have a row for each of the {n} of x, "
                f"got {prediction.n}"
            )


def takes_rng(thing: Any) -> bool:
    """Whether ``fit`` takes a third argument ``rng``, or one without a default.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> takes_rng(LinearRegression()), takes_rng(LinearRegression)
    (False, False)
    """
    names = _arguments(thing)
    if "rng" in names:
        return True
    needed = [a for a in names.values() if a.default is a.empty and a.kind in _BY_PLACE]
    return len(needed) == 3


def _arguments(thing: Any) -> dict[str, inspect.Parameter]:
    try:
        found = list(inspect.signature(thing.fit).parameters.items())
    except (AttributeError, TypeError, ValueError):
        return {}
    return dict(found[1:] if isinstance(thing, type) else found)


def _copied(thing: Any, name: str, rng: np.random.Generator) -> Any:
    """A copy, unfitted where it is an estimator; random states are drawn."""
    try:
        return seeded_clone(thing, rng) if hasattr(thing, "get_params") else copy.deepcopy(thing)
    except (TypeError, RuntimeError, ValueError) as error:
        raise InputError(f"{name} must be one that can be copied for every fit: {error}") from error


def _only(value: Any, n: int, coverage: Any) -> Prediction | None:
    """The one prediction of what was given; None for a point forecast alone."""
    models = read_given(value, n=n, coverage=coverage)
    if len(models) != 1:
        raise InputError(f"one model was wanted, got {', '.join(models)}")
    (given,) = models.values()
    found = given.predictions
    if len(found) > 1:
        raise InputError(f"one prediction was wanted, got {len(found)}")
    return found[0] if found else None
