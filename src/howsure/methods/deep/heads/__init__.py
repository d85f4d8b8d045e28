"""Heads: what a network's outputs mean, as a loss and as a law.

A head says how many outputs it needs, what each row of data costs given them, and what is
believed of y given them. A new head is one more class of the same shape; it works with any
network that makes its outputs, alone or by the thousand.
"""

from howsure.methods.deep.heads.base import Head, Start
from howsure.methods.deep.heads.counts import CountHead, DoublePoisson, NegativeBinomial, Poisson
from howsure.methods.deep.heads.names import HEADS, head_named, head_spec
from howsure.methods.deep.heads.normal import (
    BetaGaussian,
    FaithfulGaussian,
    Gaussian,
    NaturalGaussian,
    SquaredError,
)
from howsure.methods.deep.heads.pair import PairHead
from howsure.methods.deep.heads.quantiles import QuantileHead
from howsure.methods.deep.heads.shapes import NormalMixture, StudentT

__all__ = [
    "HEADS",
    "BetaGaussian",
    "CountHead",
    "DoublePoisson",
    "FaithfulGaussian",
    "Gaussian",
    "Head",
    "NaturalGaussian",
    "NegativeBinomial",
    "NormalMixture",
    "PairHead",
    "Poisson",
    "QuantileHead",
    "SquaredError",
    "Start",
    "StudentT",
    "head_named",
    "head_spec",
]
