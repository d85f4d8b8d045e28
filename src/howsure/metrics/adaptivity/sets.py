"""Label sets beside the rank of the true label: how many labels short, how many to spare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector


def set_deficit(rank: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Labels that a set falls short of the true one: max(0, rank − size); lower is better.

    Parameters
    ----------
    rank : array-like of shape (n,)
        Rank of the true label, from 1.
    size : array-like of shape (n,)
        Number of labels in each set.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ or a value is not finite.

    Notes
    -----
    It supposes that sets hold the labels of highest score. Mean deficit less mean excess plus
    mean size is the mean rank, whatever the sets. Source: Jang and Lee 2025.

    Examples
    --------
    >>> set_deficit([1, 4], [2, 2])
    array([0., 2.])
    """
    ranks = as_vector(rank, "rank")
    return np.maximum(ranks - as_vector(size, "size", length=len(ranks)), 0.0)


def set_excess(rank: npt.ArrayLike, size: npt.ArrayLike) -> FloatArray:
    """Labels of a set past the true one: max(0, size − rank); lower is better.

    Parameters
    ----------
    rank, size
        As `set_deficit`.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        As `set_deficit`.

    Examples
    --------
    >>> set_excess([1, 4], [2, 2])
    array([1., 0.])
    """
    ranks = as_vector(rank, "rank")
    return np.maximum(as_vector(size, "size", length=len(ranks)) - ranks, 0.0)
