"""The head of one interval: a low and a high quantile, by networks of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Fraction
from howsure.methods.deep.heads.base import Head, Tensor
from howsure.predictions import Quantiles
from howsure.predictions.base import tail_levels


@final
@dataclass(frozen=True, slots=True)
class PairHead(Head, Checked):
    """The two quantiles that bound a central interval, by half the sum of their pinball losses.

    Parameters
    ----------
    coverage : float
        1 − α of the interval; the levels are α/2 and 1 − α/2.

    Raises
    ------
    InputError
        If the coverage leaves (0, 1).

    Notes
    -----
    While training warms up, both outputs are means, by squared error. Quantiles that cross are
    sorted in what is believed; the outputs themselves are left as they are. Source: the shift
    benchmark of Gustafsson, Danelljan and Schön 2023.

    Examples
    --------
    >>> head = PairHead(0.8)
    >>> head.belief(np.array([[-1.0], [1.0]]), center=10.0, unit=2.0).interval(0.8)
    (array([8.]), array([12.]))
    """

    coverage: Fraction = 0.9
    title: ClassVar[str] = "pair of quantiles"

    @property
    def levels(self) -> tuple[float, float]:
        """The levels of the low and the high quantile."""
        low, high = tail_levels(self.coverage)
        return low, high

    @property
    def outputs(self) -> int:
        """Two: the low and the high quantile."""
        return 2

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½ Σ max(τ(y − q), (τ − 1)(y − q)) over both quantiles, shape (..., b)."""
        above = y.unsqueeze(-2) - outputs
        level = above.new_tensor(self.levels).unsqueeze(-1)
        return (level * above - above.clamp(max=0.0)).mean(-2)

    def warm_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean of the two squared errors, shape (..., b)."""
        return (y.unsqueeze(-2) - outputs).square().mean(-2)

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Quantiles:
        """The two quantiles; the point forecast is midway."""
        return Quantiles(np.array(self.levels), center + unit * outputs.T, crossing="sort")
