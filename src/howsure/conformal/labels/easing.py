"""Groups by ease: rows whose prediction moves alike when their input is disturbed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, final

from howsure.conformal.adapting import Binned
from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Checked, Natural
from howsure.stats.ease import REPEATS, GaussianNoise, Perturbation, ease


@final
@dataclass(frozen=True, slots=True)
class EaseBins(Checked):
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
    >>> import numpy as np
    >>> x = np.linspace(-2.0, 2.0, 40)[:, None]
    >>> group = EaseBins(2).learn(x, lambda rows: rows[:, 0] ** 3)
    >>> np.bincount(group(x)).tolist()
    [20, 20]
    """

    bins: Annotated[int, Bound(2)] = 10
    perturbation: Perturbation | float = 0.1
    repeats: int = REPEATS
    seed: int = 0

    def learn(self, x: FloatArray, forecast: Callable[[FloatArray], FloatArray]) -> Binned:
        """Put the edges at quantiles of the ease of these rows."""
        how = self.perturbation
        if not isinstance(how, Perturbation):
            how = GaussianNoise.relative(x, how)
        found = partial(ease, forecast, perturbation=how, repeats=self.repeats, seed=self.seed)
        return Binned.learnt(found, x, self.bins)


@final
@dataclass(frozen=True, slots=True)
class EaseColumn(Checked):
    """Groups of equal numbers of rows by an ease that is known already: a column of x.

    Parameters
    ----------
    column : int
        Which column of x.
    bins : int
        Number of groups, at least 2; fewer where eases tie.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    For studies that split the same rows again and again: ease is computed once, put beside the
    probabilities, and a model that reads the other columns serves as classifier.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)[:, None]
    >>> np.bincount(EaseColumn(0, 2).learn(x, lambda rows: rows[:, 0])(x)).tolist()
    [5, 5]
    """

    column: Natural
    bins: Annotated[int, Bound(2)] = 10

    def learn(self, x: FloatArray, forecast: Callable[[FloatArray], FloatArray]) -> Binned:
        """Put the edges at quantiles of the ease of these rows.

        Raises
        ------
        InputError
            If x has no such column.
        """
        return Binned.learnt(self.column, x, self.bins)


EaseGroups = EaseBins | EaseColumn
"""Groups by ease, computed or given."""
