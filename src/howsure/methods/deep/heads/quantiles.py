"""The head of quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from howsure.core.arrays import FloatArray, check_levels
from howsure.methods.deep.heads.base import Head, Tensor
from howsure.predictions import Quantiles

LEVELS: Final = (0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 0.85, 0.9, 0.95, 0.975)
"""Levels that bound central intervals of coverages 0.5, 0.7, 0.8, 0.9 and 0.95, and the median."""


@final
@dataclass(frozen=True, slots=True)
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
    >>> head.belief(np.array([[-1.0], [1.0]]), center=10.0, unit=2.0).interval(0.8)
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

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Sum over levels of the pinball loss, shape (..., b)."""
        above = y.unsqueeze(-2) - outputs
        level = above.new_tensor(self.levels).unsqueeze(-1)
        return (level * above - above.clamp(max=0.0)).sum(-2)

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Quantiles:
        """Quantiles at the levels."""
        return Quantiles(np.array(self.levels), center + unit * outputs.T, crossing="sort")
