"""The one place in `metrics` that knows containers: evaluation sets in, records out."""

from howsure.metrics.evaluate.compare import compare
from howsure.metrics.evaluate.conditional import ConditionalReport, assess_conditional
from howsure.metrics.evaluate.congruence import (
    CongruenceOptions,
    CongruenceReport,
    assess_congruence,
    belief_of,
    congruence_mode,
    fitted_reference,
    reference_rows,
    right_model,
    unanswered,
)
from howsure.metrics.evaluate.curves import curves_of, worst_rows
from howsure.metrics.evaluate.groups import GroupReport, assess_groups, groupings
from howsure.metrics.evaluate.measure import Evaluation, choose_coverages, evaluate
from howsure.metrics.evaluate.trade import operating_points
from howsure.metrics.evaluate.view import View

__all__ = [
    "ConditionalReport",
    "CongruenceOptions",
    "CongruenceReport",
    "Evaluation",
    "GroupReport",
    "View",
    "assess_conditional",
    "assess_congruence",
    "assess_groups",
    "belief_of",
    "choose_coverages",
    "compare",
    "congruence_mode",
    "curves_of",
    "evaluate",
    "fitted_reference",
    "groupings",
    "operating_points",
    "reference_rows",
    "right_model",
    "unanswered",
    "worst_rows",
]
