"""Which method shall I use? Twenty methods on real tables, judged as `howsure.assess` judges.

Score and coverage stand beside each other and are never made one. A score is relative to that of
always predicting the distribution of y; ranks have intervals, and no method has a place.
"""

from howsure.core.lazy import exporting

_HOMES = {
    "cuts": "Cut cut_rows",
    "judging": "ARMS FINDINGS judged_fit",
    "results": "WhichResult",
    "study": "WhichStudy",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES)
