"""What any method must beat: the distribution of y, whatever x is."""

from __future__ import annotations

from typing import final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import checked_coverages
from howsure.core.errors import InputError
from howsure.predictions import Quantiles
from howsure_studies.methods.interface import Fitted, Method, Predictions


@final
@frozen
class Constant(Method):
    """The same answer for every row: the training targets' median and central quantiles.

    Parameters
    ----------
    coverages : tuple of float
        Nominal coverages of the intervals.

    Raises
    ------
    InputError
        If a coverage is not between 0 and 1.

    Examples
    --------
    >>> y = np.arange(101.0)
    >>> fitted = Constant().fit(y[:, None], y, np.random.default_rng(0))
    >>> lower, upper = fitted.predict([[7.0]]).outcome.interval(0.9)
    >>> float(lower[0]), float(upper[0])
    (5.0, 95.0)
    """

    coverages: tuple[float, ...] = (0.9,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "coverages", checked_coverages(self.coverages))

    @property
    def name(self) -> str:
        """What reports call it."""
        return "constant"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """Those of its intervals."""
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Take quantiles of y; draws nothing from the generator."""
        targets = as_vector(y, "y", length=len(np.asarray(x)))
        if not len(targets):
            raise InputError("y must have at least one row, got none")
        ends = {0.5 + side * coverage / 2.0 for coverage in self.coverages for side in (-1, 1)}
        levels = np.array(sorted({0.5, *ends}))
        return _Constant(levels, np.quantile(targets, levels))


@final
@frozen(eq=False)
class _Constant(Fitted):
    levels: FloatArray
    values: FloatArray

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """The quantiles of training at every row."""
        values = np.tile(self.values, (len(np.asarray(x)), 1))
        return Predictions(Quantiles(self.levels, values))
