"""What methods that turn laws and samples into quantiles share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.predictions import Distribution, EvalSet, Quantiles, Samples
from howsure.recalibration.base import SPREAD, Learnt, Recalibrator, kind_named, matching


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecalibrator(Recalibrator):
    """A fitted method that gives quantiles at the levels reached. Subclasses are final.

    Attributes
    ----------
    fitted_to : str
        What the rows must hold: the family of laws, or the number of samples.
    """

    fitted_to: str

    @property
    def columns(self) -> tuple[Learnt, ...]:
        """What was learnt for each level."""
        return tuple(learnt for learnt in self.parameters if not math.isnan(learnt.nominal))

    @abstractmethod
    def _quantiles(self, belief: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        """Quantiles of each row, shape (n, k), from what was learnt for each level."""

    @np.errstate(over="ignore", invalid="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Quantiles, tuple[str, ...]]:
        """Quantiles at the levels reached."""
        belief = matching(evalset, kind_named(self.belief, SPREAD), self.fitted_to)
        learnt = np.array([column.value for column in self.columns])
        values = self._quantiles(belief, learnt)
        return Quantiles([column.nominal for column in self.columns], values), ()
