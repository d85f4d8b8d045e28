"""Heads of quantiles: of many levels, and of the two that bound one interval."""

from __future__ import annotations

from typing import ClassVar, Final, final

import numpy as np

from howsure.core.arrays import FloatArray, check_levels
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Fraction, checked_coverages
from howsure.predictions import Quantiles
from howsure.predictions.base import tail_levels
from howsure_studies.methods.deep.heads.base import Head, Tensor

LEVELS: Final = (0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 0.85, 0.9, 0.95, 0.975)
"""Levels that bound central intervals of coverages 0.5, 0.7, 0.8, 0.9 and 0.95, and the median."""


def _pinball(outputs: Tensor, y: Tensor, levels: tuple[float, ...]) -> Tensor:
    """max(τ(y − q), (τ − 1)(y − q)) at each level, shape (..., k, b)."""
    above = y.unsqueeze(-2) - outputs
    level = above.new_tensor(levels).unsqueeze(-1)
    return level * above - above.clamp(max=0.0)


@final
@frozen
class QuantileHead(Head):
    """One output a level, by the sum of pinball losses; crossing quantiles are sorted.

    Parameters
    ----------
    levels : tuple of float
        Rising levels in (0, 1).

    Raises
    ------
    InputError
        If levels do not rise or leave (0, 1).

    Notes
    -----
    Pinball loss at level τ: max(τ(y − q), (τ − 1)(y − q)). Source: Koenker and Bassett 1978.

    Examples
    --------
    >>> head = QuantileHead((0.1, 0.9))
    >>> head.prediction(np.array([[-1.0], [1.0]]), center=10.0, unit=2.0).interval(0.8)
    (array([8.]), array([12.]))
    """

    levels: tuple[float, ...] = LEVELS
    title: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(check_levels(self.levels).tolist()))

    @property
    def outputs(self) -> int:
        """One a level."""
        return len(self.levels)

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """The coverages that two of the levels bound."""
        levels = {round(level, 12) for level in self.levels}
        coverages = (
            round(1.0 - 2.0 * p, 12) for p in levels if p < 0.5 and round(1 - p, 12) in levels
        )
        return checked_coverages(tuple(coverages))

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Sum over levels of the pinball loss, shape (..., b)."""
        return _pinball(outputs, y, self.levels).sum(-2)

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Quantiles:
        """Quantiles at the levels."""
        return Quantiles(np.array(self.levels), center + unit * outputs.T, crossing="sort")


@final
@frozen
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
    sorted in what is predicted; the outputs themselves are left as they are. Source: the shift
    benchmark of Gustafsson, Danelljan and Schön 2023.

    Examples
    --------
    >>> head = PairHead(0.8)
    >>> head.prediction(np.array([[-1.0], [1.0]]), center=10.0, unit=2.0).interval(0.8)
    (array([8.]), array([12.]))
    """

    coverage: Fraction = 0.9
    title: ClassVar[str] = "pair of quantiles"
    outputs: ClassVar[int] = 2  # the low and the high quantile

    @property
    def levels(self) -> tuple[float, float]:
        """The levels of the low and the high quantile."""
        low, high = tail_levels(self.coverage)
        return low, high

    @property
    def fixed_coverages(self) -> tuple[float]:
        """Its one coverage."""
        return (round(self.coverage, 12),)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½ Σ of both pinball losses, shape (..., b)."""
        return _pinball(outputs, y, self.levels).mean(-2)

    def warm_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean of the two squared errors, shape (..., b)."""
        return (y.unsqueeze(-2) - outputs).square().mean(-2)

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Quantiles:
        """The two quantiles; the point forecast is midway."""
        return Quantiles(np.array(self.levels), center + unit * outputs.T, crossing="sort")
