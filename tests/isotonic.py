"""The rising function with the least pinball loss, of one table."""

from __future__ import annotations

import numpy as np

from howsure.stats.isotonic import Rising, fitted_together


def isotonic_quantiles(
    x: np.ndarray, y: np.ndarray, level: float, weights: np.ndarray | None = None
) -> np.ndarray:
    """At each row; equal x have one value."""
    mass = np.ones(len(x)) if weights is None else weights
    order = np.argsort(x, kind="stable")
    values, rank = np.unique(y, return_inverse=True)
    fitted = np.empty(len(x))
    problem = Rising.of(x[order], rank[order], level, mass[order])
    fitted[order] = values[fitted_together([problem])[0]]
    return fitted
