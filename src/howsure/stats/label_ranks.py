"""The true class of each row, and its rank by the scores of all classes."""

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
