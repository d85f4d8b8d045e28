"""A trained model's outputs on labelled rows, with their ease: what studies of adaptivity split.

Outputs and ease are computed once; every repeat of a study only chooses rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_above
from howsure.core.errors import InputError
from howsure.metrics.adaptivity import (
    REPEATS,
    Perturbation,
    class_numbers,
    ease,
    label_rank,
    surrogate_ease,
)

Predict = Callable[[Any], npt.ArrayLike]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classified:
    """A classifier's probabilities on labelled rows that it was not trained on.

    Attributes
    ----------
    name : str
        What reports call it.
    probabilities : ndarray of float, shape (n, classes)
        Its outputs.
    y : ndarray of int, shape (n,)
        True classes, from 0.
    eases : mapping of str to ndarray of float, shape (n,)
        Ease of the rows by the way of disturbing; measures use the first.
    surrogate : bool
        Whether ease comes from the probabilities, inputs being lost.
    """

    name: str
    probabilities: FloatArray
    y: IntArray
    eases: Mapping[str, FloatArray]
    surrogate: bool = False

    @property
    def accuracy(self) -> float:
        """Share of rows whose likeliest class is the true one."""
        return float((self.probabilities.argmax(axis=1) == self.y).mean())

    @property
    def rank(self) -> FloatArray:
        """Rank of the true label, shape (n,)."""
        return label_rank(self.probabilities, self.y)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regressed:
    """A regressor's forecasts on labelled rows that it was not trained on.

    Attributes
    ----------
    name : str
        What reports call it.
    x : ndarray of float, shape (n, d)
        Inputs as a table.
    y : ndarray of float, shape (n,)
        What happened.
    predict : callable
        The model's forecast, a function of such inputs.
    mean, sd : ndarray of float, shape (n,)
        Forecasts and their predicted standard deviations (any positive scale).
    eases : mapping of str to ndarray of float, shape (n,)
        Ease of the rows by the way of disturbing; measures use the first.
    """

    name: str
    x: FloatArray
    y: FloatArray
    predict: Predict
    mean: FloatArray
    sd: FloatArray
    eases: Mapping[str, FloatArray]

    @property
    def error(self) -> FloatArray:
        """|y − forecast|, shape (n,)."""
        return np.abs(self.y - self.mean)


def classified(
    predict: Predict,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "classifier",
) -> Classified:
    """Run a classifier on rows and on disturbed copies of them.

    Parameters
    ----------
    predict : callable
        Maps inputs, shape (k, …), to probabilities, shape (k, classes).
    x : array-like of shape (n, …)
        Inputs that it was not trained on.
    y : array-like of shape (n,)
        True classes, whole numbers from 0.
    perturbations : mapping of str to Perturbation
        Ways of disturbing, by name; the first gives the cells of the measures.
    repeats, seed
        As in `howsure.metrics.adaptivity.ease`.
    name : str
        What reports call it.

    Returns
    -------
    Classified

    Raises
    ------
    InputError
        If there is no way of disturbing, outputs are not finite, or y holds no classes.

    Examples
    --------
    >>> from howsure.metrics.adaptivity import GaussianNoise
    >>> def predict(x):
    ...     p = 1 / (1 + np.exp(-x[:, 0]))
    ...     return np.column_stack((1 - p, p))
    >>> x = np.linspace(-3, 3, 7)[:, None]
    >>> classified(predict, x, (x[:, 0] > 0).astype(int), {"noise": GaussianNoise(0.5)}).accuracy
    1.0
    """
    table = as_matrix(predict(x), "predict's outputs")
    labels = class_numbers(y, *table.shape)
    found = _eases(predict, x, perturbations, repeats, seed)
    return Classified(name=name, probabilities=table, y=labels, eases=found)


def given_probabilities(
    probabilities: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    sds: Sequence[float] = (1.0,),
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "classifier",
) -> Classified:
    """Outputs of a classifier whose inputs are lost; ease is a surrogate, and marked as one.

    Parameters
    ----------
    probabilities : array-like of shape (n, classes)
        Rows that sum to one.
    y : array-like of shape (n,)
        True classes, whole numbers from 0.
    sds : sequence of float
        Standard deviations of the noise on log-probabilities.
    repeats, seed
        As in `howsure.metrics.adaptivity.surrogate_ease`.
    name : str
        What reports call it.

    Returns
    -------
    Classified

    Raises
    ------
    InputError
        If a probability is negative, y holds no classes, or no sd is given.

    Examples
    --------
    >>> given_probabilities([[0.9, 0.1], [0.4, 0.6]], [0, 0]).surrogate
    True
    """
    table = as_matrix(probabilities, "probabilities")
    if not len(sds):
        raise InputError("sds must hold at least one number, got none")
    found = {
        f"surrogate, noise {sd:g}": surrogate_ease(table, sd=sd, repeats=repeats, seed=seed)
        for sd in sds
    }
    labels = class_numbers(y, *table.shape)
    return Classified(name=name, probabilities=table, y=labels, eases=found, surrogate=True)


def regressed(
    predict: Predict,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    *,
    spread: Predict,
    repeats: int = REPEATS,
    seed: int = 0,
    name: str = "regressor",
) -> Regressed:
    """Run a regressor on rows and on disturbed copies of them.

    Parameters
    ----------
    predict : callable
        Maps inputs, shape (k, d), to forecasts, shape (k,).
    x : array-like of shape (n, d)
        Inputs that it was not trained on.
    y : array-like of shape (n,)
        What happened.
    perturbations : mapping of str to Perturbation
        Ways of disturbing, by name; the first gives the cells of the measures.
    spread : callable
        Maps inputs to predicted standard deviations, above 0, shape (k,).
    repeats, seed
        As in `howsure.metrics.adaptivity.ease`; similarity is −|μ(x) − μ(t(x))|.
    name : str
        What reports call it.

    Returns
    -------
    Regressed

    Raises
    ------
    InputError
        If there is no way of disturbing, or an array breaks its rule.

    Examples
    --------
    >>> from howsure.metrics.adaptivity import GaussianNoise
    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> task = regressed(
    ...     lambda rows: rows[:, 0] ** 2,
    ...     x,
    ...     np.zeros(9),
    ...     {"noise": GaussianNoise(0.1)},
    ...     spread=lambda rows: np.ones(len(rows)),
    ... )
    >>> int(np.argmax(task.eases["noise"]))
    4
    """
    table = as_matrix(x, "x")
    n = len(table)
    sd = as_vector(spread(table), "spread's outputs", length=n)
    check_above(sd, "spread's outputs", 0.0)
    return Regressed(
        name=name,
        x=table,
        y=as_vector(y, "y", length=n),
        predict=predict,
        mean=as_vector(predict(table), "predict's forecasts", length=n),
        sd=sd,
        eases=_eases(predict, table, perturbations, repeats, seed),
    )


def _eases(
    predict: Predict,
    x: npt.ArrayLike,
    perturbations: Mapping[str, Perturbation],
    repeats: int,
    seed: int,
) -> dict[str, FloatArray]:
    if not perturbations:
        raise InputError("perturbations must hold at least one way of disturbing, got none")
    of = partial(ease, predict, x, repeats=repeats, seed=seed)
    return {name: of(how) for name, how in perturbations.items()}
