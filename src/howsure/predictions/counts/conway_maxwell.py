"""The Conway–Maxwell–Poisson law."""

from __future__ import annotations

from typing import Self, final

import numpy.typing as npt

from howsure.core.arrays import IntArray
from howsure.predictions.counts.dispersed import Dispersed
from howsure.predictions.counts.formulas import exponent, location
from howsure.predictions.counts.panels import Family


@final
class ConwayMaxwellPoisson(Dispersed):
    """Conway–Maxwell–Poisson law, p(k) ∝ (μ^k / k!)^ν.

    The usual rate is λ = μ^ν. ν = 1 gives the Poisson law, ν > 1 less dispersion, ν < 1 more;
    the mode is ⌊μ⌋ and the variance about μ/ν.

    Parameters
    ----------
    mu : array-like of shape (n,)
        μ, from 1e-100 to 1e15.
    nu : array-like of shape (n,)
        ν, from 1e-15 to 1e15.

    Raises
    ------
    InputError
        If a parameter lies outside its domain.

    References
    ----------
    Guikema and Goffelt (2008), A flexible count data regression model for risk analysis.

    Examples
    --------
    >>> ConwayMaxwellPoisson([3.0], [1.0]).mean().round(9).tolist()
    [3.0]
    """

    def __init__(self, mu: npt.ArrayLike, nu: npt.ArrayLike) -> None:
        where = location(mu, "mu")
        power = exponent(nu, "nu", len(where))
        self._family = Family(where, power, power)

    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""
        return type(self)(self._family.mu[rows], self._family.rate[rows])
