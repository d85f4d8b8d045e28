"""Families of laws that a `Distribution` may hold: any of SciPy's, and fast ones of our own.

A law is a family; its parameters are arrays with one entry per row. SciPy's generic machinery
spends more time on checks than on arithmetic, so the normal family and Student's t call the
special functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, check_above
from howsure.core.errors import InputError

Parameters = Mapping[str, FloatArray]

# Of the normal density.
_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Law(ABC):
    """A family of one-dimensional distributions. Every array has one entry per row."""

    __slots__ = ()
    name: str
    discrete: bool
    parameters: tuple[str, ...]
    shapes: tuple[str, ...] = ()  # parameters that may be infinite, such as where a law ends

    @abstractmethod
    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where a parameter leaves its domain."""

    def check_outcomes(self, y: FloatArray, parameters: Parameters) -> None:
        """Raise `InputError` where a y is none that laws of this family speak of."""
        return None

    @abstractmethod
    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""

    @abstractmethod
    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Smallest y with P(Y ≤ y) ≥ level."""

    def quantiles(self, levels: FloatArray, parameters: Parameters) -> FloatArray:
        """Quantiles of every row at each level, shape (n, k)."""
        n = len(next(iter(parameters.values())))
        return np.stack([self.quantile(np.full(n, p), parameters) for p in levels], axis=1)

    @abstractmethod
    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log density, or log probability for a discrete law."""

    @abstractmethod
    def mean(self, parameters: Parameters) -> FloatArray:
        """Expected value; may be infinite or NaN."""

    @abstractmethod
    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation; may be infinite or NaN."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""


class _BroadcastLaw(Law):
    """A family of continuous laws whose formulas spread levels over rows."""

    __slots__ = ()
    discrete = False

    def quantiles(self, levels: FloatArray, parameters: Parameters) -> FloatArray:
        """Quantiles of every row at each level, shape (n, k)."""
        upright = {name: values[:, None] for name, values in parameters.items()}
        return self.quantile(levels, upright)


@final
class NormalLaw(_BroadcastLaw):
    """The normal family, parameters ``loc`` (mean) and ``scale`` (sd, above 0)."""

    __slots__ = ()
    name = "norm"
    parameters = ("loc", "scale")

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` unless every sd is above 0."""
        check_above(parameters["scale"], "sd", 0.0)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        with np.errstate(over="ignore"):  # an infinite z has the right answer
            return np.asarray(special.ndtr((y - parameters["loc"]) / parameters["scale"]))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Quantile at each row's level."""
        return np.asarray(parameters["loc"] + parameters["scale"] * special.ndtri(level))

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log density."""
        with np.errstate(over="ignore"):
            z = (y - parameters["loc"]) / parameters["scale"]
            return np.asarray(-0.5 * np.square(z) - np.log(parameters["scale"]) - _LOG_SQRT_2PI)

    def mean(self, parameters: Parameters) -> FloatArray:
        """The parameter ``loc``."""
        return parameters["loc"]

    def sd(self, parameters: Parameters) -> FloatArray:
        """The parameter ``scale``."""
        return parameters["scale"]

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        loc, scale = parameters["loc"][:, None], parameters["scale"][:, None]
        return np.asarray(loc + scale * rng.standard_normal((len(loc), size)))


@final
class StudentLaw(_BroadcastLaw):
    """Student's t, parameters ``df`` (degrees of freedom), ``loc`` and ``scale``, as SciPy's.

    Rows that share their degrees of freedom share what follows from these alone.
    """

    __slots__ = ()
    name = "t"
    parameters = ("df", "loc", "scale")

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` unless degrees of freedom and scales are above 0."""
        legal = (parameters["df"] > 0) & (parameters["scale"] > 0)
        _check_legal(legal, self.name, parameters)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        with np.errstate(over="ignore"):
            z = (y - parameters["loc"]) / parameters["scale"]
        return np.asarray(special.stdtr(parameters["df"], z))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Quantile at each row's level."""
        standard = special.stdtrit(_shared(parameters["df"]), level)
        low = np.where(level == 0, -np.inf, standard)  # SciPy's function gives the other end there
        return np.asarray(parameters["loc"] + parameters["scale"] * low)

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log density."""
        df, scale = _shared(parameters["df"]), parameters["scale"]
        constant = np.log(special.poch(0.5 * df, 0.5)) - 0.5 * (np.log(df) + np.log(np.pi))
        with np.errstate(over="ignore"):
            z = (y - parameters["loc"]) / scale
            return np.asarray(constant - (df + 1) / 2 * np.log1p(z * z / df) - np.log(scale))

    def mean(self, parameters: Parameters) -> FloatArray:
        """The parameter ``loc``; infinite for at most 1 degree of freedom."""
        return np.where(parameters["df"] > 1, parameters["loc"], np.inf)

    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation; infinite for at most 2 degrees of freedom, NaN for at most 1."""
        df = parameters["df"]
        above = np.maximum(df - 2, 0.0)
        ratio = np.divide(df, above, out=np.full(df.shape, np.inf), where=above > 0)
        return np.where(df > 1, np.sqrt(ratio) * parameters["scale"], np.nan)

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        df, loc, scale = (parameters[name] for name in self.parameters)
        return np.asarray(rng.standard_t(df, (size, len(df))) * scale + loc).T


@final
class ScipyLaw(Law):
    """A family of ``scipy.stats``, by its name or its object."""

    __slots__ = ("discrete", "family", "name", "parameters", "shapes")

    def __init__(self, family: Any) -> None:
        from scipy import stats

        if isinstance(family, str):
            named = getattr(stats, family, None)
            if not isinstance(named, (stats.rv_continuous, stats.rv_discrete)):
                raise InputError(f"law must be a distribution of scipy.stats, got {family!r}")
            family = named
        points = np.asarray(getattr(family, "xk", 0.0), dtype=np.float64)
        if (points != np.floor(points)).any():
            raise InputError(
                f"a discrete distribution must be on whole numbers, got {points.tolist()}"
            )
        self.family = family
        self.name = str(family.name)
        self.discrete = isinstance(family, stats.rv_discrete)
        shapes = (shape.strip() for shape in (family.shapes or "").split(","))
        self.shapes = tuple(filter(None, shapes))
        self.parameters = (*self.shapes, "loc") if self.discrete else (*self.shapes, "loc", "scale")

    @property
    def searched(self) -> bool:
        """Whether SciPy finds this family's quantiles by a search for each number."""
        from scipy import stats

        method = type(self.family)._ppf
        return method in (stats.rv_continuous._ppf, stats.rv_discrete._ppf)

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where SciPy finds a parameter outside its domain."""
        shapes = [parameters[name] for name in self.shapes]
        legal = np.asarray(self.family._argcheck(*shapes)) & np.True_
        legal = np.broadcast_to(legal, next(iter(parameters.values())).shape).copy()
        if not np.isfinite(shapes).all():  # many a family takes an infinite shape, and gives NaN
            with np.errstate(all="ignore"):
                try:
                    median = self.quantile(np.full(len(legal), 0.5), parameters)
                    most = 1.0 if self.discrete else 0.5 + 1e-6
                    legal &= np.isfinite(median) & (self.cdf(median, parameters) <= most)
                except ValueError:  # of a solver
                    legal[:] = False
        if "scale" in parameters:
            legal &= parameters["scale"] > 0
        if self.discrete:  # it must live on whole numbers
            legal &= parameters["loc"] == np.floor(parameters["loc"])
        _check_legal(legal, self.name, parameters)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        return np.asarray(self.family.cdf(y, **parameters))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Quantile at each row's level."""
        return np.asarray(self.family.ppf(level, **parameters))

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log density or log probability."""
        ask = self.family.logpmf if self.discrete else self.family.logpdf
        return np.asarray(ask(y, **parameters))

    def mean(self, parameters: Parameters) -> FloatArray:
        """Expected value."""
        return np.asarray(self.family.mean(**parameters))

    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation."""
        return np.asarray(self.family.std(**parameters))

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        n = len(next(iter(parameters.values())))
        arguments: dict[str, Any] = dict(parameters)
        if self.discrete:  # NumPy takes a count of trials as whole numbers only
            for name, value in parameters.items():
                if (value == np.floor(value)).all():
                    arguments[name] = value.astype(np.int64)
        draws = self.family.rvs(**arguments, size=(size, n), random_state=rng)
        return np.asarray(draws, dtype=np.float64).T


def _shared(column: FloatArray) -> FloatArray:
    """The first row instead of a column with one number."""
    return column[:1] if (column == column[:1]).all() else column


def _check_legal(legal: BoolArray, name: str, parameters: Parameters) -> None:
    """Refuse rows whose parameters lie outside a family's domain."""
    if not legal.all():
        row = int(np.argmin(legal))
        values = ", ".join(
            f"{parameter}={parameters[parameter][row]:g}" for parameter in parameters
        )
        raise InputError(
            f"parameters of {name} must be in its domain; {int((~legal).sum())} rows are not "
            f"(first at row {row}: {values})"
        )
