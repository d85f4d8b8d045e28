"""Smooth random textures: noise of several octaves, stretched and summed.

The texture of the simulator SIMCEP (Lehmussola et al. 2007): in octave i, a field of 2^i by 2^i
uniform numbers is averaged over 3 by 3 neighbours, stretched to the wanted size by cubic
convolution, and weighted by persistence^i. All steps are linear, so one octave is A Z Aᵀ.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]


def texture(
    rng: np.random.Generator, size: int, count: int, *, octaves: range, persistence: float
) -> Image:
    """Draw textures, each scaled to cover [0, 1].

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the noise comes from.
    size : int
        Pixels a side.
    count : int
        How many.
    octaves : range
        The octaves i, of 2^i by 2^i numbers.
    persistence : float
        The weight of octave i is ``persistence ** i``.

    Returns
    -------
    ndarray of float32, shape (count, size, size)

    Examples
    --------
    >>> drawn = texture(np.random.default_rng(0), 13, 2, octaves=range(2, 7), persistence=0.5)
    >>> drawn.shape, float(drawn.min()), float(drawn.max())
    ((2, 13, 13), 0.0, 1.0)
    """
    fields = [rng.random((count, 2**i, 2**i), dtype=np.float32) for i in octaves]
    return from_noise(fields, size, [persistence**i for i in octaves])


def from_noise(fields: list[Image], size: int, weights: list[float]) -> Image:
    """Textures from given noise, one array (count, 2^i, 2^i) an octave; see `texture`.

    Examples
    --------
    >>> from_noise([np.eye(2, dtype=np.float32)[None]], 3, [1.0]).shape
    (1, 3, 3)
    """
    total = np.zeros((len(fields[0]), size, size), dtype=np.float32)
    for field, weight in zip(fields, weights, strict=True):
        stretch = _stretch(field.shape[1], size)
        total += np.float32(weight) * (stretch @ field @ stretch.T)
    total -= total.min(axis=(1, 2), keepdims=True)
    total /= total.max(axis=(1, 2), keepdims=True)
    return total


@lru_cache(maxsize=64)
def _stretch(cells: int, size: int) -> Image:
    """A 3-wide mean and then an interpolation from ``cells`` to ``size`` points."""
    grid = np.arange(cells)
    mean = np.zeros((cells, cells))
    for shift in (-1, 0, 1):
        np.add.at(mean, (grid, np.clip(grid + shift, 0, cells - 1)), 1.0 / 3.0)
    places = np.linspace(0.0, cells - 1.0, size)
    left = np.minimum(places.astype(int), max(cells - 2, 0))
    weights = np.zeros((size, cells))
    taps = (0, 1) if cells < 3 else (-1, 0, 1, 2)
    for tap in taps:
        away = np.abs(places - left - tap)
        share = np.maximum(1.0 - away, 0.0) if cells < 3 else _keys(away)
        np.add.at(weights, (np.arange(size), np.clip(left + tap, 0, cells - 1)), share)
    return np.asarray(weights @ mean, dtype=np.float32)


def _keys(away: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The kernel of cubic convolution (Keys 1981), a = -1/2."""
    near = 1.5 * away**3 - 2.5 * away**2 + 1.0
    far = -0.5 * away**3 + 2.5 * away**2 - 4.0 * away + 2.0
    return np.asarray(np.where(away <= 1.0, near, np.where(away < 2.0, far, 0.0)))
