"""The six kinds of prediction, and the evaluation set that holds them beside y."""

from howsure.predictions.base import Prediction
from howsure.predictions.distribution import Distribution, mixture
from howsure.predictions.evalset import EvalSet
from howsure.predictions.evalset import content_order as content_order
from howsure.predictions.intervals import Intervals
from howsure.predictions.labelsets import LabelSets
from howsure.predictions.probabilities import Probabilities
from howsure.predictions.quantiles import Quantiles
from howsure.predictions.samples import Samples

__all__ = [
    "Distribution",
    "EvalSet",
    "Intervals",
    "LabelSets",
    "Prediction",
    "Probabilities",
    "Quantiles",
    "Samples",
    "mixture",
]
