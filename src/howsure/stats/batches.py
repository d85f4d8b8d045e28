"""Batches of consecutive times."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import FloatArray, IntArray


def batch_starts(mass: FloatArray, most: int) -> IntArray:
    """The first time of each of at most so many batches of consecutive times, alike in mass."""
    upto = np.cumsum(mass)
    batch = np.minimum((upto - mass / 2.0) * (most / upto[-1]), most - 1).astype(np.int64)
    return np.flatnonzero(np.diff(batch, prepend=-1))
