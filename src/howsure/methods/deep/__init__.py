"""Methods made of small networks, thousands of which are trained as one; torch is an extra."""

from howsure.methods.deep.bootstrap import NetworkBootstrap
from howsure.methods.deep.ensembles import DeepEnsemble, MeanVarianceNetwork, QuantileNetwork
from howsure.methods.deep.heads import Gaussian, Head, QuantileHead, SquaredError
from howsure.methods.deep.members import Member, Network, Training
from howsure.methods.deep.montecarlo import ConcreteDropout, MCDropout
from howsure.methods.deep.train import train

__all__ = [
    "ConcreteDropout",
    "DeepEnsemble",
    "Gaussian",
    "Head",
    "MCDropout",
    "MeanVarianceNetwork",
    "Member",
    "Network",
    "NetworkBootstrap",
    "QuantileHead",
    "QuantileNetwork",
    "SquaredError",
    "Training",
    "train",
]
