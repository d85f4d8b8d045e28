"""Laws of counts with one set of parameters for each row, as functions of arrays.

Poisson and negative binomial have closed forms; double Poisson and Conway–Maxwell–Poisson are
normalised numerically.
"""

from howsure.stats.counts import CountLaw, NegativeBinomial, Poisson
from howsure.stats.dispersed import (
    ConwayMaxwellPoisson,
    DoublePoisson,
    Normalization,
    efron_constant,
)

__all__ = [
    "ConwayMaxwellPoisson",
    "CountLaw",
    "DoublePoisson",
    "NegativeBinomial",
    "Normalization",
    "Poisson",
    "efron_constant",
]
