"""Temperature scaling: one number that makes class probabilities sharper or flatter."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, check_above
from howsure.core.errors import InputError
from howsure.stats.dominance import class_numbers
from howsure.stats.roots import minimum


def tempered(probabilities: npt.ArrayLike, temperature: float) -> FloatArray:
    """Probabilities proportional to p^(1/T).

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Not negative; zeros stay zero.
    temperature : float
        T, above 0: above 1 flattens, below 1 sharpens.

    Returns
    -------
    ndarray of float, shape (n, classes)

    Raises
    ------
    InputError
        If a probability is negative, a row has none above 0, or T is not above 0.

    Examples
    --------
    >>> tempered([[0.8, 0.2]], 2.0)
    array([[0.667, 0.333]])
    """
    if not 0 < temperature < math.inf:
        raise InputError(f"temperature must be above 0, got {temperature!r}")
    logs = _logs(probabilities) / temperature
    raised = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def fit_temperature(probabilities: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """The temperature of the highest likelihood on labelled rows.

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Above 0 for every true class.
    y : array-like of shape (n,)
        The true class, a whole number from 0.

    Returns
    -------
    float
        Between 1/100 and 100.

    Raises
    ------
    InputError
        If a probability is negative or 0 for a true class, or y is no class.

    Notes
    -----
    The log-likelihood is concave in 1/T. Source: Guo, Pleiss, Sun and Weinberger 2017.

    Examples
    --------
    >>> fit_temperature([[0.99, 0.01], [0.99, 0.01], [0.01, 0.99]], [0, 1, 1])
    6.63
    """
    logs = _logs(probabilities)
    own = logs[np.arange(len(logs)), class_numbers(y, *logs.shape)]
    check_above(np.exp(own), "probabilities of true classes", 0.0)

    def loss(log_inverse: float) -> float:
        sharp = logs * math.exp(log_inverse)
        top = sharp.max(axis=1)
        total = np.log(np.exp(sharp - top[:, None]).sum(axis=1)) + top
        return float((total - own * math.exp(log_inverse)).mean())

    return math.exp(-minimum(loss, -math.log(100), math.log(100), 1e-5))


def _logs(probabilities: npt.ArrayLike) -> FloatArray:
    table = as_matrix(probabilities, "probabilities")
    if (table < 0).any() or not table.any(axis=1).all():
        raise InputError("probabilities must not be negative, nor a row all 0")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))
