"""From thresholds to closed intervals: infinite, crossed and clipped ends."""

from __future__ import annotations

import numpy as np

from howsure.conformal.scores import Band, Score
from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError

Range = tuple[float, float]
"""The range that y is known to lie in: its least and its largest value."""


def region_ends(
    score: Score, band: Band, thresholds: FloatArray, clip: Range | None = None
) -> tuple[FloatArray, FloatArray]:
    """Closed intervals of the y that score at most a threshold.

    Parameters
    ----------
    score : Score
        How far y lies from the band.
    band : Band
        What was predicted, n rows.
    thresholds : ndarray of float, shape (n,)
        One a row; +inf gives the whole line.
    clip : tuple of float, optional
        The valid range of y, which cuts every interval off. An interval wholly outside becomes
        the nearest end of the range.

    Returns
    -------
    lower, upper : ndarray of float, shape (n,)
        An empty region becomes a point at its middle.

    Examples
    --------
    >>> from howsure.conformal import Offset
    >>> at = np.array([1.0, 1.0])
    >>> region_ends(Offset(), Band(at, at, at), np.array([0.5, np.inf]), clip=(0.0, 9.0))
    (array([0.5, 0. ]), array([1.5, 9. ]))
    """
    finite = np.isfinite(thresholds)
    with np.errstate(over="ignore", invalid="ignore"):
        lower, upper = score.region(band, np.where(finite, thresholds, 0.0))
    lower, upper, _ = uncrossed(np.where(finite, lower, -np.inf), np.where(finite, upper, np.inf))
    return (lower, upper) if clip is None else (np.clip(lower, *clip), np.clip(upper, *clip))


def uncrossed(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Ends with crossed ones replaced by their middle, and how many those were.

    Examples
    --------
    >>> uncrossed(np.array([0.0, 3.0]), np.array([2.0, 1.0]))
    (array([0., 2.]), array([2., 2.]), 1)
    """
    crossed = lower > upper
    if not crossed.any():
        return lower, upper, 0
    middle = lower / 2.0 + upper / 2.0
    ends = np.where(crossed, middle, lower), np.where(crossed, middle, upper)
    return *ends, int(crossed.sum())


def check_clip(clip: Range | None) -> Range | None:
    """A valid range of y: two numbers, the first below the second; infinite ends are legal."""
    if clip is None:
        return None
    rule = "clip must be two numbers, the least and the most that y can be"
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError) as error:
        raise InputError(f"{rule}, got {clip!r}") from error
    if not low < high:
        raise InputError(f"{rule}, got {clip!r}")
    return low, high


def check_within(y: FloatArray, clip: Range | None) -> None:
    """Raise `InputError` unless every y lies in the valid range."""
    if clip is None:
        return
    outside = (y < clip[0]) | (y > clip[1])
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"y must lie in its valid range {clip[0]:g} to {clip[1]:g}, got "
            f"{int(outside.sum())} that do not (first at row {row}: {y[row]:g})"
        )
