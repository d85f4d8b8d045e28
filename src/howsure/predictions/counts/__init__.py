"""Laws of counts: Poisson, negative binomial, double Poisson, Conway–Maxwell–Poisson."""

from howsure.predictions.counts.base import CountLaw
from howsure.predictions.counts.closed import NegativeBinomial, Poisson
from howsure.predictions.counts.dispersed import (
    ConwayMaxwellPoisson,
    DoublePoisson,
    Normalization,
    efron_constant,
)
from howsure.predictions.counts.family import CountFamily

__all__ = [
    "ConwayMaxwellPoisson",
    "CountFamily",
    "CountLaw",
    "DoublePoisson",
    "NegativeBinomial",
    "Normalization",
    "Poisson",
    "efron_constant",
]
