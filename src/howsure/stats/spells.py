"""What groups that come and go tell of such groups in general: each visit is one observation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray

_THROUGHOUT = 0.75
"""Share of all times from which on a group is simply there."""


class Spells(NamedTuple):
    """Of each group: its stretches of consecutive times, and what they say of it."""

    # shape (k,): spells; 0 of a group that is there throughout, and of all where none returns: rows
    # alone tell of these
    counts: IntArray
    # shape (k,): two-sided p-value that the mean over such spells is that of all others; NaN
    # without spells
    p: FloatArray


def spells_of(
    values: FloatArray,
    mass: FloatArray,
    times: IntArray,
    codes: IntArray,
    size: int,
    least: float = 0.0,
) -> Spells:
    """Tests whose units are spells, with one variance for those of all groups.

    Parameters
    ----------
    values, mass : ndarray of float, shape (n,)
        What is averaged, and how much each row counts.
    times, codes : ndarray of int, shape (n,)
        Numbers of the times, and of the group of each row.
    size : int
        Groups.
    least : float
        Variance of a row's value that is known; a smaller one of spells is luck.

    Returns
    -------
    Spells

    Notes
    -----
    With M_s the mass of spell s and d_s its mean less that of its group, the variance of a mean
    over mass M is Σ M_s d_s² / (S − k) / M, at least `least` / M, with S − k degrees of freedom.
    Where no group ever returns, spells tell no more than the rows do. A group of at least three
    quarters of all times is there throughout.

    Examples
    --------
    >>> winter = np.repeat([1, 0, 1, 0, 1, 0], 50)
    >>> noise = np.random.default_rng(0).normal(size=300)
    >>> found = spells_of(noise + 2.0 * winter, np.ones(300), np.arange(300), winter, 2)
    >>> found.counts.tolist(), bool(found.p[1] < 0.001)
    ([3, 3], True)
    """
    ranks = np.unique(times, return_inverse=True)[1].ravel()
    count = int(ranks.max()) + 1
    visited, place = np.unique(codes * count + ranks, return_inverse=True)
    group, rank = np.divmod(visited, count)
    fresh = (np.diff(group, prepend=-1) != 0) | (np.diff(rank, prepend=-2) != 1)
    spell = (np.cumsum(fresh) - 1)[place.ravel()]
    of = group[fresh]
    counts: IntArray = np.bincount(of, minlength=size)
    freedom = len(of) - int((counts > 0).sum())
    goes = (np.bincount(group, minlength=size) < _THROUGHOUT * count) & (counts > 0)
    p = np.full(size, np.nan)
    if not freedom or not goes.any():
        return Spells(np.zeros(size, dtype=np.int64), p)
    weight, sums = np.bincount(spell, mass), np.bincount(spell, mass * values)
    total, whole = np.bincount(of, weight, size), np.bincount(of, sums, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = whole / total
        off = own - (whole.sum() - whole) / (total.sum() - total)
        between = np.square(sums / weight - own[of])
        variance = max(float(weight @ between) / freedom, least)
        error = np.sqrt(variance * (1.0 / total + 1.0 / (total.sum() - total)))
        p[goes] = 2.0 * special.stdtr(float(freedom), -np.abs(off / error))[goes]
    return Spells(np.where(goes, counts, 0), p)
