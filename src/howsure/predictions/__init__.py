"""The five kinds of prediction, and the evaluation set that holds them beside y."""

from howsure.predictions.base import Prediction
from howsure.predictions.counts import CountFamily, CountLaw
from howsure.predictions.distribution import Distribution, law_named, mixture
from howsure.predictions.evalset import EvalSet, check_same_rows, content_order
from howsure.predictions.intervals import Intervals
from howsure.predictions.labelsets import LabelSets
from howsure.predictions.laws import Law, NormalLaw, ScipyLaw
from howsure.predictions.mixtures import MixtureLaw
from howsure.predictions.quantiles import Quantiles
from howsure.predictions.samples import Samples

__all__ = [
    "CountFamily",
    "CountLaw",
    "Distribution",
    "EvalSet",
    "Intervals",
    "LabelSets",
    "Law",
    "MixtureLaw",
    "NormalLaw",
    "Prediction",
    "Quantiles",
    "Samples",
    "ScipyLaw",
    "check_same_rows",
    "content_order",
    "law_named",
    "mixture",
]
