"""Whether intervals and label sets follow how hard an input is (Jang and Lee 2025).

Names are loaded when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.adaptivity.comparison import MethodComparison as MethodComparison
    from howsure_studies.adaptivity.comparison import average_records as average_records
    from howsure_studies.adaptivity.intervals import INTERVAL_MEASURES as INTERVAL_MEASURES
    from howsure_studies.adaptivity.intervals import INTERVAL_METHODS as INTERVAL_METHODS
    from howsure_studies.adaptivity.intervals import Regressed as Regressed
    from howsure_studies.adaptivity.intervals import compare_intervals as compare_intervals
    from howsure_studies.adaptivity.intervals import forest_task as forest_task
    from howsure_studies.adaptivity.intervals import regressed as regressed
    from howsure_studies.adaptivity.label_sets import LABEL_MEASURES as LABEL_MEASURES
    from howsure_studies.adaptivity.label_sets import LABEL_METHODS as LABEL_METHODS
    from howsure_studies.adaptivity.label_sets import Classified as Classified
    from howsure_studies.adaptivity.label_sets import LabelMethod as LabelMethod
    from howsure_studies.adaptivity.label_sets import classified as classified
    from howsure_studies.adaptivity.label_sets import classifier_task as classifier_task
    from howsure_studies.adaptivity.label_sets import compare_label_sets as compare_label_sets
    from howsure_studies.adaptivity.label_sets import given_probabilities as given_probabilities
    from howsure_studies.adaptivity.page import adaptivity_report as adaptivity_report
    from howsure_studies.adaptivity.page import methods_figure as methods_figure
    from howsure_studies.adaptivity.page import sensitivity_figure as sensitivity_figure
    from howsure_studies.adaptivity.study import AdaptivityStudy as AdaptivityStudy
    from howsure_studies.adaptivity.validation import VALIDATED as VALIDATED
    from howsure_studies.adaptivity.validation import MeasureValidation as MeasureValidation
    from howsure_studies.adaptivity.validation import MethodValidation as MethodValidation
    from howsure_studies.adaptivity.validation import correlation_ranks as correlation_ranks
    from howsure_studies.adaptivity.validation import ease_sensitivity as ease_sensitivity
    from howsure_studies.adaptivity.validation import validate_measures as validate_measures

_HOMES = {
    "comparison": "MethodComparison average_records",
    "intervals": "INTERVAL_MEASURES INTERVAL_METHODS Regressed compare_intervals forest_task "
    "regressed",
    "label_sets": "LABEL_MEASURES LABEL_METHODS Classified LabelMethod classified classifier_task "
    "compare_label_sets given_probabilities",
    "page": "adaptivity_report methods_figure sensitivity_figure",
    "study": "AdaptivityStudy",
    "validation": "VALIDATED MeasureValidation MethodValidation correlation_ranks ease_sensitivity "
    "validate_measures",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
