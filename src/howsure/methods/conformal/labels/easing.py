"""Groups by ease: rows whose prediction moves alike when their input is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.metrics.adaptivity import REPEATS, GaussianNoise, Perturbation, ease

Labels = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class EaseBins:
    """Groups of equal numbers of rows by ease, for `Mondrian`: the O- of O-LAC, O-SAPS, O-CPA.

    Parameters
    ----------
    bins : int
        Number of groups, at least 2; fewer where eases tie.
    perturbation : Perturbation or float
        How inputs are disturbed; a number stands for Gaussian noise with that share of each
        column's standard deviation.
    repeats : int
        Disturbances an example.
    seed : int
        Seed of the disturbances.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Ease reads no label, so a threshold a group gives coverage within groups: exactly if the edges
    come from rows that do not calibrate (a method that trains its own model uses those), on
    average over all rows otherwise. Source: Jang and Lee 2025, Algorithm 2.

    Examples
    --------
    >>> x = np.linspace(-2.0, 2.0, 40)[:, None]
    >>> group = EaseBins(2).learn(x, lambda rows: rows[:, 0] ** 3)
    >>> np.bincount(group(x)).tolist()
    [20, 20]
    """

    bins: int = 10
    perturbation: Perturbation | float = 0.1
    repeats: int = REPEATS
    seed: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.bins, int) and not isinstance(self.bins, bool)
        if not whole or self.bins < 2:
            raise InputError(f"bins must be a whole number of at least 2, got {self.bins!r}")

    def learn(self, x: FloatArray, forecast: Callable[[FloatArray], FloatArray]) -> EaseRule:
        """Put the edges at quantiles of the ease of these rows."""
        how = self.perturbation
        if not isinstance(how, Perturbation):
            how = GaussianNoise.relative(x, how)
        rule = EaseRule(forecast, how, self.repeats, self.seed, np.empty(0))
        edges = np.unique(np.quantile(rule.ease(x), np.arange(1, self.bins) / self.bins))
        return EaseRule(forecast, how, self.repeats, self.seed, edges)


@final
@dataclass(frozen=True, slots=True, eq=False)
class EaseRule:
    """Learnt `EaseBins`.

    Attributes
    ----------
    forecast : callable
        The model.
    perturbation : Perturbation
        How inputs are disturbed.
    repeats, seed
        As in `EaseBins`.
    edges : ndarray of float, shape (b − 1,)
        Inner edges; an ease on one belongs to the group above.
    """

    forecast: Callable[[FloatArray], FloatArray]
    perturbation: Perturbation
    repeats: int
    seed: int
    edges: FloatArray

    def ease(self, x: FloatArray) -> FloatArray:
        """Ease of rows, shape (m,)."""
        return ease(self.forecast, x, self.perturbation, repeats=self.repeats, seed=self.seed)

    def __call__(self, x: FloatArray) -> Labels:
        """Numbers of groups from 0, shape (m,)."""
        return np.searchsorted(self.edges, self.ease(x), side="right")
