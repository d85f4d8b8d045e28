"""MCB, DSC and UNC: what is lost to miscalibration, and what the forecast knows."""

from howsure.topics.decomposition.parts import (
    Decomposition,
    elementary_means,
    elementary_quantiles,
    mean_decomposition,
    quantile_decomposition,
)

__all__ = [
    "Decomposition",
    "elementary_means",
    "elementary_quantiles",
    "mean_decomposition",
    "quantile_decomposition",
]
