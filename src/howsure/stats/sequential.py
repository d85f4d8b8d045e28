"""P-values by drawing, from as many draws as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray

FEWEST, MOST = 199, 9_999
"""Draws that a test starts with, and those after which it ends."""

Side = Literal["both", "upper", "lower"]


def p_value(observed: float, drawn: npt.ArrayLike, side: Side = "both") -> float:
    """Probability that a perfect model departs as far: (1 + draws as extreme) / (1 + draws).

    Parameters
    ----------
    observed : float
        What was seen.
    drawn : array-like of shape (k,)
        Values of perfect models.
    side : {"both", "upper", "lower"}
        Which departures count; of both, twice the smaller.

    Returns
    -------
    float

    Examples
    --------
    >>> p_value(3.0, [0.0, 1.0, 2.0], "upper")
    0.25
    """
    values = np.asarray(drawn, dtype=np.float64)
    above = (1 + int(np.count_nonzero(values >= observed))) / (1 + len(values))
    below = (1 + int(np.count_nonzero(values <= observed))) / (1 + len(values))
    return {"upper": above, "lower": below, "both": min(1.0, 2.0 * min(above, below))}[side]


def sequential(
    draw: Callable[[int, int], FloatArray],
    observed: float,
    *,
    level: float,
    side: Side = "both",
) -> tuple[float, FloatArray]:
    """A p-value from as many draws as it takes: on while it could still reach the level.

    Parameters
    ----------
    draw : callable
        Gives the values of perfect models from one number of a draw up to another.
    observed : float
        What was seen.
    level : float
        At which a p-value matters.
    side : {"both", "upper", "lower"}
        As in `p_value`.

    Returns
    -------
    tuple of float and ndarray
        The p-value, and what was drawn.

    Examples
    --------
    >>> p, drawn = sequential(lambda start, stop: np.arange(start, stop) % 7, 3.0, level=0.01)
    >>> len(drawn)
    199
    """
    drawn = np.asarray(draw(0, FEWEST), dtype=np.float64)
    while len(drawn) < MOST:
        p = p_value(observed, drawn, side)
        if p * (1.0 + len(drawn)) > level * (1.0 + MOST):  # so many are as extreme already
            break
        stop = min(2 * len(drawn) + 1, MOST)
        drawn = np.concatenate([drawn, draw(len(drawn), stop)])
    return p_value(observed, drawn, side), drawn
