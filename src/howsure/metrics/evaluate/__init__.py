"""The one place in `metrics` that knows containers: evaluation sets in, records out."""

from howsure.metrics.evaluate.compare import compare
from howsure.metrics.evaluate.curves import curves_of, worst_rows
from howsure.metrics.evaluate.groups import GroupReport, assess_groups, groupings
from howsure.metrics.evaluate.measure import Evaluation, choose_coverages, evaluate
from howsure.metrics.evaluate.trade import operating_points
from howsure.metrics.evaluate.view import View

__all__ = [
    "Evaluation",
    "GroupReport",
    "View",
    "assess_groups",
    "choose_coverages",
    "compare",
    "curves_of",
    "evaluate",
    "groupings",
    "operating_points",
    "worst_rows",
]
