"""Disturbances of images: brightness, contrast and saturation by a random factor."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray, row_uniforms
from howsure.stats.ease import Inputs, Perturbation


@frozen
class ImageJitter(Perturbation):
    """Images drawn towards or away from a plain one by a factor from 1 ± amount, one a row.

    Parameters
    ----------
    amount : float
        In (0, 1].
    low, high : float
        Range that values are clipped to.

    Raises
    ------
    InputError
        If the amount leaves (0, 1], or the range is empty.

    Examples
    --------
    >>> Brightness(0.2).label, Contrast(0.2).label, Saturation(0.2).label
    ('brightness', 'contrast', 'saturation')
    """

    amount: float = 0.2
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.amount <= 1:
            raise InputError(f"amount must be in (0, 1], got {self.amount!r}")
        if not self.low < self.high:
            raise InputError(f"low must be below high, got {self.low!r} and {self.high!r}")

    @property
    def label(self) -> str:
        """What reports call it."""
        return type(self).__name__.lower()

    @abstractmethod
    def plain(self, x: Inputs) -> Inputs:
        """The image that a factor of 0 would leave; broadcasts with x."""

    def apply(self, x: Inputs, keys: KeyArray, seed: int, repeat: int) -> Inputs:
        """Disturbed rows; see `Perturbation.apply`."""
        draws = 2 * row_uniforms(seed, f"{self.label} {repeat}", keys) - 1
        shape = (-1,) + (1,) * (x.ndim - 1)
        factor = (1 + self.amount * draws).reshape(shape).astype(x.dtype)
        plain = self.plain(x)
        return np.clip(plain + factor * (x - plain), self.low, self.high)


@final
@frozen
class Brightness(ImageJitter):
    """Brighter and darker images; see `ImageJitter`."""

    def plain(self, x: Inputs) -> Inputs:
        """Black."""
        return np.zeros((1,) * x.ndim, dtype=x.dtype)


@final
@frozen
class Contrast(ImageJitter):
    """Images of more and less contrast; see `ImageJitter`."""

    def plain(self, x: Inputs) -> Inputs:
        """The mean grey."""
        return np.asarray(x.mean(axis=tuple(range(1, x.ndim)), keepdims=True))


@final
@frozen
class Saturation(ImageJitter):
    """Images of more and less colour, red, green and blue on the last axis; see `ImageJitter`."""

    def plain(self, x: Inputs) -> Inputs:
        """Greys, .299 R + .587 G + .114 B (ITU-R BT.601)."""
        if x.shape[-1] != 3:
            raise InputError(f"x must have three colours on its last axis, got shape {x.shape}")
        return (x @ np.array([0.299, 0.587, 0.114], dtype=x.dtype))[..., None]
