"""Laws of counts: Poisson, negative binomial, double Poisson."""

from howsure.predictions.counts.base import CountLaw
from howsure.predictions.counts.closed import NegativeBinomial, Poisson
from howsure.predictions.counts.dispersed import (
    DoublePoisson,
    Normalization,
    efron_constant,
)
from howsure.predictions.counts.family import CountFamily

__all__ = [
    "CountFamily",
    "CountLaw",
    "DoublePoisson",
    "NegativeBinomial",
    "Normalization",
    "Poisson",
    "efron_constant",
]
