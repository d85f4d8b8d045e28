"""Roots and minima of functions of one number.

SciPy's take a tenth of a second to load, which is a sixth of the time of a small assessment.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# The section of Brent's method: the golden one, whose points serve again in the next interval.
_GOLDEN = (3.0 - math.sqrt(5.0)) / 2.0
# Brent's method takes ten to sixty steps; 500 only end a function that is not what is promised.
_MAX_STEPS = 500
# Near a minimum a function of 64 bits is flat within the root of the machine's precision.
_ROOT_EPS = math.sqrt(2.0**-52)


def root(function: Callable[[float], float], low: float, high: float, accuracy: float) -> float:
    """Where a continuous function of opposite signs at both ends is zero.

    Inverse quadratic interpolation where three points lie so that it can be trusted, else the
    middle. Source: Chandrupatla 1997.

    Examples
    --------
    >>> round(root(lambda x: x**3 - 2.0, 0.0, 2.0, 1e-12), 10)
    1.2599210499
    """
    new, old = low, high
    at_new, at_old = function(new), function(old)
    if at_new * at_old > 0.0:
        raise ValueError(f"no change of sign from {low:g} ({at_new:g}) to {high:g} ({at_old:g})")
    if at_new == 0.0:  # which has no sign to keep
        return new
    share = 0.5
    for _ in range(_MAX_STEPS):
        x = new + share * (old - new)
        at_x = function(x)
        if (at_x > 0.0) == (at_new > 0.0):
            third, at_third = new, at_new
        else:
            third, at_third, old, at_old = old, at_old, new, at_new
        new, at_new = x, at_x
        best = new if abs(at_new) < abs(at_old) else old
        least = max(accuracy, 2.0**-51 * abs(best)) / abs(old - new) if old != new else 1.0
        if at_new == 0.0 or least > 0.5:
            return best
        ratio = (new - old) / (third - old)
        height = (at_new - at_old) / (at_third - at_old)
        share = 0.5
        if height**2 < ratio and (1.0 - height) ** 2 < 1.0 - ratio:
            share = at_new / (at_old - at_new) * at_third / (at_old - at_third)
            share += (
                (third - new)
                / (old - new)
                * (at_new / (at_third - at_new))
                * (at_old / (at_third - at_old))
            )
        share = min(max(share, least), 1.0 - least)
    return best


def minimum(function: Callable[[float], float], low: float, high: float, accuracy: float) -> float:
    """Where a function that falls and then rises is least, strictly between two ends.

    Steps of a parabola through the three best points as long as they shrink, else golden sections.
    Source: Brent 1973, chapter 5.

    Examples
    --------
    >>> round(minimum(lambda x: (x - 0.3) ** 2, -1.0, 4.0, 1e-9), 7)
    0.3
    """
    best = second = third = low + _GOLDEN * (high - low)
    at_best = at_second = at_third = function(best)
    step = before = 0.0
    for _ in range(_MAX_STEPS):
        middle, near = 0.5 * (low + high), _ROOT_EPS * abs(best) + accuracy / 3.0
        if abs(best - middle) <= 2.0 * near - 0.5 * (high - low):
            break
        golden = True
        if abs(before) > near:
            left = (best - second) * (at_best - at_third)
            right = (best - third) * (at_best - at_second)
            top, bottom = (best - third) * right - (best - second) * left, 2.0 * (right - left)
            top, bottom = (-top, bottom) if bottom > 0.0 else (top, -bottom)
            shrinks = abs(top) < abs(0.5 * bottom * before)
            if shrinks and bottom * (low - best) < top < bottom * (high - best):
                before, step, golden = step, top / bottom, False
                if min(best + step - low, high - best - step) < 2.0 * near:
                    step = math.copysign(near, middle - best)
        if golden:
            before = (low if best >= middle else high) - best
            step = _GOLDEN * before
        x = best + (step if abs(step) >= near else math.copysign(near, step))
        at_x = function(x)
        if at_x <= at_best:
            low, high = (best, high) if x >= best else (low, best)
            third, at_third, second, at_second = second, at_second, best, at_best
            best, at_best = x, at_x
            continue
        low, high = (x, high) if x < best else (low, x)
        if at_x <= at_second or second == best:
            third, at_third, second, at_second = second, at_second, x, at_x
        elif at_x <= at_third or third in (best, second):
            third, at_third = x, at_x
    return best
