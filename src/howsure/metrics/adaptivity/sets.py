"""Label sets beside the rank of the true label: how many labels short, how many to spare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector
from howsure.core.errors import InputError


def label_rank(scores: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
    """Rank of the true label among the classes, by falling score.

    Parameters
    ----------
    scores : array-like of shape (n, classes)
        Probabilities, or any score that is higher for likelier classes.
    y : array-like of shape (n,)
        The true class, a whole number from 0.

    Returns
    -------
    ndarray of float, shape (n,)
        From 1; labels that tie share the mean of their ranks.

    Raises
    ------
    InputError
        If a score is not finite, or y is no class.

    Examples
    --------
    >>> label_rank([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]], [1, 2])
    array([2. , 1.5])
    """
    table = as_matrix(scores, "scores")
    own = table[np.arange(len(table)), class_numbers(y, *table.shape)][:, None]
    return np.asarray(((table > own).sum(axis=1) + (table >= own).sum(axis=1) + 1) / 2)


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


def class_numbers(y: npt.ArrayLike, n: int, classes: int) -> IntArray:
    """The true classes as whole numbers.

    Raises
    ------
    InputError
        If an entry is no whole number from 0 to the last class, or there are not n.

    Examples
    --------
    >>> class_numbers([0.0, 2.0], 2, 3)
    array([0, 2])
    """
    given = as_vector(y, "y", length=n)
    wrong = (given < 0) | (given >= classes) | (given != np.floor(given))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"y must hold class numbers from 0 to {classes - 1}, "
            f"got {given[first]:g} at row {first}"
        )
    return given.astype(np.int64)
