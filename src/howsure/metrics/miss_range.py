"""The miss rates of partial areas: their default, their check, and how they are told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from howsure.core.arrays import as_vector
from howsure.core.errors import InputError
from howsure.core.formats import level

MissRange = tuple[float, float]

MISS_RANGE: Final[MissRange] = (0.0, 0.2)
"""Where intervals are used in practice."""


def check_miss_range(value: Sequence[float], name: str = "miss_range") -> MissRange:
    """Check a range of miss rates, from one to a higher one.

    Examples
    --------
    >>> check_miss_range([0, 0.5])
    (0.0, 0.5)
    """
    return check_range(value, name, largest=1.0)


def check_range(value: Sequence[float], name: str, *, largest: float) -> tuple[float, float]:
    """Check a rising pair of numbers between 0 and a largest value."""
    ends = as_vector(value, name)
    if len(ends) != 2 or not 0.0 <= ends[0] < ends[1] <= largest:
        limit = "" if math.isinf(largest) else f" and {largest:g}"
        rule = f"between 0{limit}" if limit else "of at least 0"
        raise InputError(f"{name} must be two rising numbers {rule}, got {value!r}")
    return float(ends[0]), float(ends[1])


def in_words(miss_range: MissRange) -> str:
    """A range of miss rates within a sentence.

    Examples
    --------
    >>> in_words((0.0, 0.2)), in_words((0.05, 0.5))
    ('up to 20 %', 'from 5 % to 50 %')
    """
    low, high = miss_range
    return f"from {level(low)} to {level(high)}" if low > 0 else f"up to {level(high)}"
