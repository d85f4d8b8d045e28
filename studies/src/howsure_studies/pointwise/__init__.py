"""Coverage at every point, in worlds whose truth is known (Sluijterman and others)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.pointwise.figures import FigureWords as FigureWords
    from howsure_studies.pointwise.figures import coverage_profile as coverage_profile
    from howsure_studies.pointwise.figures import intervals_along_x as intervals_along_x
    from howsure_studies.pointwise.figures import one_run as one_run
    from howsure_studies.pointwise.figures import share_histogram as share_histogram
    from howsure_studies.pointwise.measures import curves as curves
    from howsure_studies.pointwise.measures import failing_ranges as failing_ranges
    from howsure_studies.pointwise.measures import records as records
    from howsure_studies.pointwise.page import pointwise_report as pointwise_report
    from howsure_studies.pointwise.repeated import SplitsBesideTruth as SplitsBesideTruth
    from howsure_studies.pointwise.repeated import SplitsStudy as SplitsStudy
    from howsure_studies.pointwise.simulation import Failure as Failure
    from howsure_studies.pointwise.simulation import PointwiseResult as PointwiseResult
    from howsure_studies.pointwise.simulation import Precision as Precision
    from howsure_studies.pointwise.simulation import joined as joined
    from howsure_studies.pointwise.simulation import pointwise as pointwise
    from howsure_studies.pointwise.splits import SplitFailure as SplitFailure
    from howsure_studies.pointwise.splits import SplitsResult as SplitsResult
    from howsure_studies.pointwise.splits import against_published as against_published
    from howsure_studies.pointwise.splits import over_splits as over_splits
    from howsure_studies.pointwise.splits import published_splits as published_splits
    from howsure_studies.pointwise.splits import time_splits as time_splits
    from howsure_studies.pointwise.splits import unit_splits as unit_splits
    from howsure_studies.pointwise.splits_page import splits_report as splits_report
    from howsure_studies.pointwise.study import PointwiseStudy as PointwiseStudy

_HOMES = {
    "figures": "FigureWords coverage_profile intervals_along_x one_run share_histogram",
    "measures": "curves failing_ranges records",
    "page": "pointwise_report",
    "repeated": "SplitsBesideTruth SplitsStudy",
    "simulation": "Failure PointwiseResult Precision joined pointwise",
    "splits": (
        "SplitFailure SplitsResult against_published over_splits published_splits time_splits "
        "unit_splits"
    ),
    "splits_page": "splits_report",
    "study": "PointwiseStudy",
}

__getattr__, _names, __all__ = exporting(__name__, _HOMES)


def __dir__() -> list[str]:
    return _names()
