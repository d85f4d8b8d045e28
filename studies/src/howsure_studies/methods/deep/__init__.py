"""Methods made of small networks, thousands of which are trained as one; torch is an extra."""

from howsure_studies.methods.deep.batch import Member, Network, train
from howsure_studies.methods.deep.heads import (
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
from howsure_studies.methods.deep.method import HeadFit, combined, together
from howsure_studies.methods.deep.networks import (
    ConcreteDropout,
    DeepEnsemble,
    HeadNetwork,
    MCDropout,
    MeanVarianceNetwork,
    NetworkBootstrap,
    QuantileNetwork,
)
from howsure_studies.methods.deep.regressor import HeadRegressor
from howsure_studies.methods.deep.training import TABLES, BatchTraining, Training

__all__ = [
    "HEADS",
    "TABLES",
    "BatchTraining",
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
    "combined",
    "head_named",
    "together",
    "train",
]
