"""Scales of rows of numbers that set a kernel's bandwidth, and rows of length one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.errors import DegenerateError
from howsure.core.rng import child
from howsure.stats.namespace import Array, as_rows, namespace, on_host, row_parts

_PAIRS = 1500  # rows whose pairs give the median distance


def total_variance(rows: npt.ArrayLike, name: str = "x") -> float:
    """Sum over columns of the sample variance (divisor n−1)."""
    array = as_rows(rows, name, dtype=None)
    if len(array) < 2:
        raise DegenerateError(f"{name} must have at least 2 rows for a bandwidth, got {len(array)}")
    xp = namespace(array)
    centre = sum(xp.sum(part, axis=0, dtype=xp.float64) for part in row_parts(array)) / len(array)
    squares = sum(float(xp.sum((part - centre) ** 2)) for part in row_parts(array))
    variance = squares / (len(array) - 1)
    equal = all(bool(xp.all(part == array[:1])) for part in row_parts(array))
    if not variance > 0.0 or equal:
        raise DegenerateError(
            f"{name} must vary for its variance to set a bandwidth, got {len(array)} equal rows; "
            "give the bandwidth as a number"
        )
    return variance


def median_distance(
    rows: npt.ArrayLike, name: str = "x", *, absolute: bool = False, seed: int = 0
) -> float:
    """Median distance of two different rows."""
    array = as_rows(rows, name, dtype=None)
    if len(array) < 2:
        raise DegenerateError(f"{name} must have at least 2 rows for a bandwidth, got {len(array)}")
    if len(array) > _PAIRS:
        rng = child(seed, "median distance")
        array = array[np.sort(rng.choice(len(array), _PAIRS, replace=False))]
    from scipy.spatial.distance import pdist

    distances = pdist(on_host(array), "cityblock" if absolute else "euclidean")
    median = float(np.median(distances))
    if median == 0.0:
        raise DegenerateError(
            f"{name} must have mostly different rows for the median distance to set a bandwidth, "
            "got equal ones; give the bandwidth as a number"
        )
    return median


def normalize_rows(rows: npt.ArrayLike, name: str = "x") -> Array:
    """Divide every row by its Euclidean length."""
    array = as_rows(rows, name, dtype=None)
    xp = namespace(array)
    empty = on_host(xp.concat([xp.all(part == 0.0, axis=1) for part in row_parts(array)]))
    if empty.any():
        raise DegenerateError(
            f"{name} must have no row of zeros to be normalised, got "
            f"{int(empty.sum())} (first at row {int(np.argmax(empty))})"
        )
    unit: Array = xp.empty_like(array)
    for part, out in zip(row_parts(array), row_parts(unit), strict=True):
        scaled = part / xp.max(xp.abs(part), axis=1)[:, None]  # squares neither overflow nor vanish
        out[...] = scaled / xp.sqrt(xp.vecdot(scaled, scaled))[:, None]
    return unit
