"""Methods made of small networks, thousands of which are trained as one; torch is an extra."""

from howsure.methods.deep.bootstrap import NetworkBootstrap
from howsure.methods.deep.ensembles import DeepEnsemble, MeanVarianceNetwork, QuantileNetwork
from howsure.methods.deep.head_network import HeadFit, HeadNetwork, together
from howsure.methods.deep.heads import (
    HEADS,
    BetaGaussian,
    CountHead,
    DoublePoisson,
    FaithfulGaussian,
    Gaussian,
    Head,
    NaturalGaussian,
    NegativeBinomial,
    NormalMixture,
    Poisson,
    QuantileHead,
    SquaredError,
    Start,
    StudentT,
    head_named,
)
from howsure.methods.deep.members import Member, Network, Training
from howsure.methods.deep.montecarlo import ConcreteDropout, MCDropout
from howsure.methods.deep.regressor import HeadRegressor
from howsure.methods.deep.train import train

__all__ = [
    "HEADS",
    "BetaGaussian",
    "ConcreteDropout",
    "CountHead",
    "DeepEnsemble",
    "DoublePoisson",
    "FaithfulGaussian",
    "Gaussian",
    "Head",
    "HeadFit",
    "HeadNetwork",
    "HeadRegressor",
    "MCDropout",
    "MeanVarianceNetwork",
    "Member",
    "NaturalGaussian",
    "NegativeBinomial",
    "Network",
    "NetworkBootstrap",
    "NormalMixture",
    "Poisson",
    "QuantileHead",
    "QuantileNetwork",
    "SquaredError",
    "Start",
    "StudentT",
    "Training",
    "head_named",
    "together",
    "train",
]
