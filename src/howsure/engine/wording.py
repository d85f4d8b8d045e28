"""Numbers as sentences of findings tell them."""

from __future__ import annotations

import math

from howsure.core.formats import fixed, number, percent
from howsure.core.records import Record

SDS = "predicted standard deviations"
"""The unit of what is measured by the spread that a model states."""


def small(value: float, places: int, *, trim: bool = True) -> str:
    """So many decimals; two digits where these would show 0; 0 below 0.0001; at most four."""
    if abs(value) >= 0.5 * 10.0**-places:
        return _four_digits(value, places, trim=trim)
    return number(value, 2) if abs(value) >= 1e-4 else "0"


def _four_digits(value: float, places: int, *, trim: bool = False) -> str:
    """So many decimals, and no more than four digits: no table tells more of a ratio."""
    if 1e3 <= abs(value) < math.inf:
        return fixed(float(f"{value:.4g}"), 0)
    return fixed(value, min(places, 1) if abs(value) >= 100.0 else places, trim=trim)


def points(share: float) -> str:
    """A share in points of percent."""
    text = small(100.0 * abs(share), 1)
    return f"{text} point" if text == "1" else f"{text} points"


def between(one: float, other: float, places: int) -> str:
    """An interval in brackets, the ends in order; empty where none is known."""
    ends = sorted((one, other))
    if any(map(math.isnan, ends)):
        return ""
    dash = "–" if ends[0] >= 0 else " to "
    return f" ({_four_digits(ends[0], places)}{dash}{_four_digits(ends[1], places)})"


def span(record: Record, *, times: float = 1.0, places: int = 1) -> str:
    """A record's interval in brackets."""
    return between(times * record.lower, times * record.upper, places)


def share_with_span(record: Record) -> str:
    """A share in percent, with its interval."""
    return f"{percent(record.value)}{span(record, times=100.0)}"
