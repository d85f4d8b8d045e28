"""Conditional coverage: where does coverage fail, by how much, and is it more than chance?"""

from howsure.topics.conditional.dependence import (
    CoverageGap,
    DependenceTest,
    coverage_gap,
    hsic,
    width_correlation,
)
from howsure.topics.conditional.ert import (
    ERT,
    conditional_validity_index,
    ert,
    excess_risk,
)
from howsure.topics.conditional.forests import Region
from howsure.topics.conditional.local_pit import LocalPit, local_pit
from howsure.topics.conditional.slab import (
    RegionTest,
    Slab,
    WorstRegion,
    WorstSlab,
    regions_differ,
    worst_region,
    worst_slab,
)

__all__ = [
    "ERT",
    "CoverageGap",
    "DependenceTest",
    "LocalPit",
    "Region",
    "RegionTest",
    "Slab",
    "WorstRegion",
    "WorstSlab",
    "conditional_validity_index",
    "coverage_gap",
    "ert",
    "excess_risk",
    "hsic",
    "local_pit",
    "regions_differ",
    "width_correlation",
    "worst_region",
    "worst_slab",
]
