"""Methods made of small networks, thousands of which are trained as one; torch is an extra."""

from howsure_studies.methods.deep.batch import Member, Network, train
from howsure_studies.methods.deep.heads import (
    HEADS,
    BetaGaussian,
    CountHead,
    DoublePoissonHead,
    FaithfulGaussian,
    Gaussian,
    Head,
    NaturalGaussian,
    NegativeBinomialHead,
    NormalMixture,
    PoissonHead,
    QuantileHead,
    SquaredError,
    Start,
    StudentTHead,
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
    "DoublePoissonHead",
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
    "NegativeBinomialHead",
    "Network",
    "NetworkBootstrap",
    "NormalMixture",
    "PoissonHead",
    "QuantileHead",
    "QuantileNetwork",
    "SquaredError",
    "Start",
    "StudentTHead",
    "Training",
    "combined",
    "head_named",
    "together",
    "train",
]
