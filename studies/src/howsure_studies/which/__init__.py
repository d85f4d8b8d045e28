"""Which method should I use? Twenty methods on real tables, judged as `howsure.assess` judges.

Score and coverage stand beside each other and are never made one. A score is relative to that of
always predicting the distribution of y; ranks have intervals, and no method has a place.
"""

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure_studies.which.cuts import Cut as Cut
    from howsure_studies.which.cuts import cut_rows as cut_rows
    from howsure_studies.which.judging import FitVerdict as FitVerdict
    from howsure_studies.which.judging import judged_fit as judged_fit
    from howsure_studies.which.page import which_report as which_report
    from howsure_studies.which.results import WhichResult as WhichResult
    from howsure_studies.which.study import WhichOptions as WhichOptions
    from howsure_studies.which.study import WhichStudy as WhichStudy

_HOMES = {
    "cuts": "Cut cut_rows",
    "judging": "FitVerdict judged_fit",
    "page": "which_report",
    "results": "WhichResult",
    "study": "WhichOptions WhichStudy",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
