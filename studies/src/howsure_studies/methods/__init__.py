"""Things that are fitted to data and then make, or mend, predictions.

A class of your own needs no base: ``fit(x, y, rng)`` and ``predict(x)`` are enough, see
`howsure_studies.methods.regressors.OwnMethod`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.methods.bootstrap import NaiveBootstrap as NaiveBootstrap
    from howsure_studies.methods.catalogue import method_named as method_named
    from howsure_studies.methods.catalogue import method_spec as method_spec
    from howsure_studies.methods.catalogue import methods as methods
    from howsure_studies.methods.conformal.inductive import SplitConformal as SplitConformal
    from howsure_studies.methods.conformal.quantile import Conformalized as Conformalized
    from howsure_studies.methods.interface import COVERAGES as COVERAGES
    from howsure_studies.methods.interface import Fitted as Fitted
    from howsure_studies.methods.interface import Method as Method
    from howsure_studies.methods.interface import Predictions as Predictions
    from howsure_studies.methods.linear import BayesianRidge as BayesianRidge
    from howsure_studies.methods.linear import LinearT as LinearT
    from howsure_studies.methods.quantile_forest import QuantileForest as QuantileForest
    from howsure_studies.methods.recalibrated import RecalibratedMethod as RecalibratedMethod
    from howsure_studies.methods.regressors import GaussianProcess as GaussianProcess
    from howsure_studies.methods.regressors import as_method as as_method
    from howsure_studies.methods.searched import Searched as Searched
    from howsure_studies.methods.selective import Selective as Selective
    from howsure_studies.methods.trees import BART as BART
    from howsure_studies.methods.trees import CatBoostNormal as CatBoostNormal
    from howsure_studies.methods.trees import CatBoostQuantiles as CatBoostQuantiles
    from howsure_studies.methods.trees import NGBoostNormal as NGBoostNormal

_HOMES = {
    "bootstrap": "NaiveBootstrap",
    "catalogue": "method_named method_spec methods",
    "conformal.inductive": "SplitConformal",
    "conformal.quantile": "Conformalized",
    "interface": "Predictions COVERAGES Fitted Method",
    "linear": "BayesianRidge LinearT",
    "quantile_forest": "QuantileForest",
    "recalibrated": "RecalibratedMethod",
    "searched": "Searched",
    "trees": "BART CatBoostNormal CatBoostQuantiles NGBoostNormal",
    "regressors": "GaussianProcess as_method",
    "selective": "Selective",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
