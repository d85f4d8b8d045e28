"""Conditional congruence: how far predictive laws are from nature's, at every input."""

from howsure.metrics.congruence.beliefs import (
    Belief,
    Draws,
    Empirical,
    Mixtures,
    Normals,
    Support,
)
from howsure.metrics.congruence.discrepancy import mcmd
from howsure.metrics.congruence.null import MeanCCE, NullReference, mean_cce, null_reference
from howsure.metrics.congruence.reference import CongruenceReference, cce
from howsure.metrics.congruence.rejection import RejectionCurve, rejection_at, rejection_curve
from howsure.metrics.congruence.results import (
    CCE,
    MCMD,
    Diagnostics,
    difference,
    require_comparable,
)
from howsure.metrics.congruence.skce import skce
from howsure.stats.solvers import SolverOptions

__all__ = [
    "CCE",
    "MCMD",
    "Belief",
    "CongruenceReference",
    "Diagnostics",
    "Draws",
    "Empirical",
    "MeanCCE",
    "Mixtures",
    "Normals",
    "NullReference",
    "RejectionCurve",
    "SolverOptions",
    "Support",
    "cce",
    "difference",
    "mcmd",
    "mean_cce",
    "null_reference",
    "rejection_at",
    "rejection_curve",
    "require_comparable",
    "skce",
]
