"""Conditional congruence: how far predictive laws are from nature's, at every input."""

from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.examples import RejectionCurve, rejection_curve
from howsure.topics.congruence.null import MeanCCE, NullReference, mean_cce, null_reference
from howsure.topics.congruence.predictive import (
    Draws,
    Empirical,
    Mixtures,
    Normals,
    PredictiveLaw,
    Support,
)
from howsure.topics.congruence.reference import CongruenceReference, cce, mcmd
from howsure.topics.congruence.results import (
    CCE,
    MCMD,
    Diagnostics,
    difference,
    require_comparable,
)
from howsure.topics.congruence.skce import skce

__all__ = [
    "CCE",
    "MCMD",
    "CongruenceReference",
    "Diagnostics",
    "Draws",
    "Empirical",
    "MeanCCE",
    "Mixtures",
    "Normals",
    "NullReference",
    "PredictiveLaw",
    "RejectionCurve",
    "SolverOptions",
    "Support",
    "cce",
    "difference",
    "mcmd",
    "mean_cce",
    "null_reference",
    "rejection_curve",
    "require_comparable",
    "skce",
]
