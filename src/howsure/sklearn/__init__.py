"""Scorers, displays and meta-estimators, as scikit-learn has them.

Scorers go where scikit-learn takes ``scoring=``; greater is better. Displays draw predictions with
their bands. `RecalibratedRegressor` and `RecalibratedClassifier` recalibrate any regressor or
classifier with its out-of-fold predictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.sklearn.displays import CalibrationDisplay as CalibrationDisplay
    from howsure.sklearn.displays import CoverageDisplay as CoverageDisplay
    from howsure.sklearn.displays import WidthDisplay as WidthDisplay
    from howsure.sklearn.recalibrated import RecalibratedClassifier as RecalibratedClassifier
    from howsure.sklearn.recalibrated import RecalibratedRegressor as RecalibratedRegressor
    from howsure.sklearn.scorers import MetricScorer as MetricScorer
    from howsure.sklearn.scorers import crps as crps
    from howsure.sklearn.scorers import interval_score as interval_score
    from howsure.sklearn.scorers import log_score as log_score
    from howsure.sklearn.scorers import miscoverage as miscoverage
    from howsure.sklearn.scorers import pinball as pinball

_HOMES = {
    "displays": "CalibrationDisplay CoverageDisplay WidthDisplay",
    "recalibrated": "RecalibratedClassifier RecalibratedRegressor",
    "scorers": "MetricScorer crps interval_score log_score miscoverage pinball",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
