"""Scores of y against a band, and the regions that they lead to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError


@frozen
class Band:
    """What a model says of each row: two ends, and a centre between or beside them.

    Attributes
    ----------
    lower, upper, center : ndarray of float, shape (n,)
        In the units of y.
    """

    lower: FloatArray
    upper: FloatArray
    center: FloatArray

    def take(self, rows: IntArray) -> Band:
        """The rows chosen by an index."""
        return Band(self.lower[rows], self.upper[rows], self.center[rows])


class Score(ABC):
    """How far y lies from a band, and which y score at most a threshold. Subclasses are final."""

    __slots__ = ()

    @abstractmethod
    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Score of each row, shape (n,); larger is further away, +inf is out of reach."""

    @abstractmethod
    def region(self, band: Band, threshold: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of {y : score(y) ≤ threshold}, empty where they cross.

        The threshold is finite: one number, or one per row.
        """


@final
class Offset(Score):
    """max(lower − y, y − upper), in the units of y: conformalised quantile regression.

    With lower = upper = the point forecast it is the absolute error of split conformal
    prediction. Source: Romano, Patterson and Candès (2019), equation 6.

    Examples
    --------
    >>> band = Band(np.array([0.0]), np.array([2.0]), np.array([1.0]))
    >>> Offset().score(np.array([3.0]), band), Offset().region(band, 1.0)
    (array([1.]), (array([-1.]), array([3.])))
    """

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance outside the band; negative inside."""
        return np.maximum(band.lower - y, y - band.upper)

    def region(self, band: Band, threshold: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both ends moved outward by the threshold."""
        return band.lower - threshold, band.upper + threshold


@final
class LowerEnd(Score):
    """lower − y, in the units of y: the lower end alone."""

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance below the lower end; negative above it."""
        return band.lower - y

    def region(self, band: Band, threshold: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """From the moved lower end upward."""
        return band.lower - threshold, np.full_like(band.upper, np.inf)


@final
class UpperEnd(Score):
    """y − upper, in the units of y: the upper end alone."""

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance above the upper end; negative below it."""
        return y - band.upper

    def region(self, band: Band, threshold: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Up to the moved upper end."""
        return np.full_like(band.lower, -np.inf), band.upper + threshold


@final
class Scaled(Score):
    """Critical scale: how much the band must be stretched about its centre to reach y.

    e/(upper − centre) for an error e = y − centre ≥ 0, else −e/(centre − lower). It is the
    critical scale of the uncertainty characteristics curve (Navrátil et al. 2021), and
    normalised conformal prediction on the band centre ± sd.

    Examples
    --------
    >>> band = Band(np.array([0.0]), np.array([4.0]), np.array([1.0]))
    >>> Scaled().score(np.array([7.0]), band), Scaled().region(band, 2.0)
    (array([2.]), (array([-1.]), array([7.])))
    """

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Critical scale; 0 for no error, +inf for an error toward an end without width.

        Raises
        ------
        InputError
            If a band has no centre, as one with infinite ends may have none.
        """
        if np.isnan(band.center).any():
            raise InputError("intervals with infinite ends cannot be scaled")
        error = y - band.center
        reach = np.where(error >= 0, band.upper - band.center, band.center - band.lower)
        size = np.abs(error)
        scale = np.full_like(size, np.inf)
        np.divide(size, reach, out=scale, where=reach > 0)
        return np.where(size == 0, 0.0, scale)

    def region(self, band: Band, threshold: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """The band stretched by the threshold about its centre."""
        return (
            band.center - threshold * (band.center - band.lower),
            band.center + threshold * (band.upper - band.center),
        )


# ---- from thresholds to closed intervals: infinite, crossed and clipped ends ---------------------

Range = tuple[float, float]
"""The range that y is known to lie in: its least and its largest value."""


def region_ends(
    score: Score, band: Band, thresholds: FloatArray, clip: Range | None = None
) -> tuple[FloatArray, FloatArray]:
    """Closed intervals of the y that score at most a threshold.

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
