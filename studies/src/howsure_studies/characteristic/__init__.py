"""The characteristics curve of Navrátil et al. (arXiv 2106.00858): where do varying widths pay?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.characteristic.figures import bands_figure as bands_figure
    from howsure_studies.characteristic.figures import curves_figure as curves_figure
    from howsure_studies.characteristic.measures import Measuring as Measuring
    from howsure_studies.characteristic.measures import crossing_of as crossing_of
    from howsure_studies.characteristic.measures import measure as measure
    from howsure_studies.characteristic.models import BaggedNetworks as BaggedNetworks
    from howsure_studies.characteristic.models import BayesianNetwork as BayesianNetwork
    from howsure_studies.characteristic.models import ErrorModel as ErrorModel
    from howsure_studies.characteristic.models import QuantileBoosting as QuantileBoosting
    from howsure_studies.characteristic.models import RecurrentErrorModel as RecurrentErrorModel
    from howsure_studies.characteristic.page import characteristic_report as characteristic_report
    from howsure_studies.characteristic.results import MethodResult as MethodResult
    from howsure_studies.characteristic.results import PairTest as PairTest
    from howsure_studies.characteristic.results import compare as compare
    from howsure_studies.characteristic.study import CharacteristicStudy as CharacteristicStudy
    from howsure_studies.characteristic.worlds import TrainTest as TrainTest
    from howsure_studies.characteristic.worlds import gap as gap
    from howsure_studies.characteristic.worlds import read_traffic as read_traffic

_HOMES = {
    "figures": "bands_figure curves_figure",
    "measures": "Measuring crossing_of measure",
    "models": "BaggedNetworks BayesianNetwork ErrorModel QuantileBoosting RecurrentErrorModel",
    "page": "characteristic_report",
    "results": "MethodResult PairTest compare",
    "study": "CharacteristicStudy",
    "worlds": "TrainTest gap read_traffic",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
