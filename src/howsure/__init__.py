"""Calibration and coverage checks for any model that states its uncertainty.

`assess` takes outcomes and predictions, and returns a verdict with error bars on every number.
Names are loaded when first asked for, so importing howsure costs little.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from howsure._version import __version__
from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.core.errors import HowsureError as HowsureError
    from howsure.core.schemas import schema as schema
    from howsure.predictions import Distribution as Distribution
    from howsure.predictions import EvalSet as EvalSet
    from howsure.predictions import Intervals as Intervals
    from howsure.predictions import LabelSets as LabelSets
    from howsure.predictions import Probabilities as Probabilities
    from howsure.predictions import Quantiles as Quantiles
    from howsure.predictions import Samples as Samples
    from howsure.report.assess import assess as assess
    from howsure.report.assessment import Assessment as Assessment
    from howsure.report.conformal import conformal as conformal
    from howsure.report.improve import improve as improve
    from howsure.report.model import assess_model as assess_model
    from howsure.report.options import Options as Options
    from howsure.report.recalibrate import recalibrate as recalibrate
    from howsure.report.table import Table as Table
    from howsure.report.table import load as load
    from howsure.streaming import Large as Large

_HOMES = {
    "core.errors": "HowsureError",
    "core.schemas": "schema",
    "predictions": "Distribution EvalSet Intervals LabelSets Probabilities Quantiles Samples",
    "report.assess": "assess",
    "report.assessment": "Assessment",
    "report.improve": "improve",
    "report.model": "assess_model",
    "report.options": "Options",
    "report.recalibrate": "recalibrate",
    "report.table": "Table load",
    "streaming.large": "Large",
}

# pytest loads its plugin; the last two name who has them now
_WITHIN = {"cli", "core", "stats", "pytest_plugin", "methods", "studies"}


def _rooms() -> tuple[str, ...]:
    """Submodules that users import from."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(name for name in names if not name.startswith("_") and name not in _WITHIN)


__getattr__, _names, _all = exporting(__name__, _HOMES, _rooms)
__all__ = ["__version__", "conformal", *_all]


def __dir__() -> list[str]:
    return ["__version__", *_names()]
