"""Families of laws of counts, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions.counts.base import CountLaw
from howsure.predictions.counts.closed import NegativeBinomial, Poisson
from howsure.predictions.counts.dispersed import DoublePoisson
from howsure.predictions.laws import Law, Parameters

_MAKERS: dict[str, tuple[Callable[..., CountLaw], tuple[str, ...], tuple[str, ...]]] = {
    "poisson": (Poisson, ("mu",), ("mu", "loc")),
    "negative_binomial": (NegativeBinomial, ("mu", "dispersion"), ("mu", "dispersion")),
    "double_poisson": (DoublePoisson, ("mu", "phi"), ("mu", "phi")),
}
COUNT_FAMILIES = tuple(_MAKERS)
"""Names of the families."""


@final
class CountFamily(Law):
    """A family of distributions on 0, 1, 2, …

    Parameters
    ----------
    name : str
        ``poisson`` (parameter ``mu``; as in SciPy, ``loc`` moves it), ``negative_binomial``
        (``mu`` and ``dispersion`` a, variance μ + a μ²) or ``double_poisson`` (``mu`` and
        ``phi``, variance about μ/φ).

    Raises
    ------
    InputError
        If there is no such family.

    Examples
    --------
    >>> family = CountFamily("double_poisson")
    >>> family.parameters
    ('mu', 'phi')
    >>> family.cdf(np.array([3.0]), {"mu": np.array([4.0]), "phi": np.array([2.0])})
    array([0.3788])
    """

    __slots__ = ("_make", "_own", "name", "parameters")
    discrete = True

    def __init__(self, name: str) -> None:
        if name not in _MAKERS:
            raise InputError(f"law must be one of {', '.join(_MAKERS)}, got {name!r}")
        self.name = name
        self._make, self._own, self.parameters = _MAKERS[name]

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where a parameter leaves its domain."""
        rule = f"parameters of {self.name} must be in its domain: "
        loc = parameters.get("loc", np.zeros(1))
        broken = loc != np.floor(loc)
        if broken.any():
            row = int(np.argmax(broken))
            raise InputError(f"{rule}loc must be whole, got {loc[row]:g} (first at row {row})")
        try:
            self.frozen(parameters)
        except InputError as error:
            raise InputError(f"{rule}{error}") from error

    def check_outcomes(self, y: FloatArray, parameters: Parameters) -> None:
        """Raise `InputError` unless every y is a count."""
        counts = self._counts(y, parameters)
        wrong = (counts < 0.0) | (counts != np.floor(counts))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{self.name} distributions need y to be counts (0, 1, 2, …); {int(wrong.sum())} "
                f"values are not (first at row {row}: {y[row]:g})"
            )

    def frozen(self, parameters: Parameters) -> CountLaw:
        """The laws of all rows, without ``loc``."""
        columns = np.broadcast_arrays(*(parameters[name] for name in self._own))
        return self._make(*(np.ravel(column) for column in columns))

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        return self._ask(lambda law, k: law.cdf(k), self._counts(y, parameters), parameters)

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Smallest count whose cumulative probability reaches each row's level."""
        counts = self._ask(lambda law, p: law.quantile(p), level, parameters)
        return np.asarray(counts + parameters.get("loc", 0.0))

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log probability; −∞ where y is no count."""
        return self._ask(lambda law, k: law.log_pmf(k), self._counts(y, parameters), parameters)

    def mean(self, parameters: Parameters) -> FloatArray:
        """Expected value."""
        return self.frozen(parameters).mean() + parameters.get("loc", 0.0)

    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation."""
        return np.asarray(np.sqrt(self.frozen(parameters).variance()))

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        drawn = self.frozen(parameters).sample(rng, size)
        return np.asarray(drawn + np.reshape(parameters.get("loc", 0.0), (-1, 1)))

    @staticmethod
    def _counts(y: FloatArray, parameters: Parameters) -> FloatArray:
        return np.asarray(y - parameters.get("loc", 0.0))

    def _ask(
        self,
        question: Callable[[CountLaw, FloatArray], FloatArray],
        values: FloatArray,
        parameters: Parameters,
    ) -> FloatArray:
        """Ask values (n,) or (n, m) of n laws, or spread values and parameters over each other."""
        columns = np.broadcast_arrays(*(parameters[name] for name in self._own))
        values, first = np.asarray(values, dtype=np.float64), columns[0]
        rows = (
            first.shape == values.shape[:1] if values.ndim < 2 else first.shape == (len(values), 1)
        )
        if rows:
            return question(self.frozen(parameters), values)
        spread = np.broadcast_arrays(values, *columns)
        law = self._make(*(np.ravel(column) for column in spread[1:]))
        return question(law, np.ravel(spread[0])).reshape(spread[0].shape)
