"""Banks of nuclei: random shapes with random texture, drawn once and used in every image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.rng import child
from howsure.studies.tasks.images.texture import texture

Image = npt.NDArray[np.float32]

RADIUS: Final = 5.0
PATCH: Final = 15
"""Pixels a side of a nucleus's patch, at 256 pixels an image."""

_KNOTS: Final = 10
_PIECES: Final = 8
_JITTER: Final = 0.1
_NUCLEI: Final = 2048
_BIAS: Final = 0.2


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bank:
    """Nuclei, each in its eight turned and mirrored forms.

    Attributes
    ----------
    light : ndarray of float32, shape (k, PATCH, PATCH)
        Brightness in [0.2, 1] inside a nucleus, 0 outside.
    mask : ndarray of float32, shape (k, PATCH, PATCH)
        1 inside, 0 outside.
    """

    light: Image
    mask: Image


@lru_cache(maxsize=4)
def bank(seed: int, nuclei: int = _NUCLEI) -> Bank:
    """Draw the nuclei of a seed.

    Each outline is a closed centripetal cubic spline through ten knots near a circle of
    radius 5; inside it lies a texture of octaves 2 to 6, of persistence 1/2.

    Parameters
    ----------
    seed : int
        Fixes the nuclei.
    nuclei : int
        How many, before the eight forms.

    Returns
    -------
    Bank

    Examples
    --------
    >>> nuclei = bank(0, 16)
    >>> nuclei.light.shape
    (128, 15, 15)
    >>> bool(60 < nuclei.mask.sum((1, 2)).mean() < 100)
    True
    """
    rng = child(seed, "cells", "nuclei")
    outlines = _closed_spline(_knots(rng, nuclei))
    parts = range(0, nuclei, 128)
    mask = np.concatenate([_filled(outlines[start : start + 128]) for start in parts])
    inner = texture(rng, PATCH, nuclei, octaves=range(2, 7), persistence=0.5)
    light = mask * (_BIAS + (1.0 - _BIAS) * inner)
    return Bank(_eight_forms(light), _eight_forms(mask))


def _knots(rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """Knots near a circle, shape (count, 10, 2)."""
    angle = 2.0 * np.pi * np.arange(_KNOTS) / _KNOTS
    shift = rng.uniform(-_JITTER, _JITTER, (4, count, _KNOTS))
    x = shift[0] + np.cos(angle + shift[1])
    y = shift[2] + np.sin(angle + shift[3])
    return RADIUS * np.stack([x, y], axis=-1)


def _closed_spline(knots: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Points on periodic cubic splines whose steps are roots of chord lengths (centripetal)."""
    count, size, _ = knots.shape
    after = np.roll(knots, -1, axis=1)
    step = np.sqrt(np.linalg.norm(after - knots, axis=2))
    before = np.roll(step, 1, axis=1)
    slope = (after - knots) / step[..., None]
    row = np.arange(size)
    system = np.zeros((count, size, size))
    system[:, row, row] = 2.0 * (before + step)
    system[:, row, (row + 1) % size] = step
    system[:, row, (row - 1) % size] = before
    bend = np.linalg.solve(system, 6.0 * (slope - np.roll(slope, 1, axis=1)))
    bend_after = np.roll(bend, -1, axis=1)
    t = np.arange(_PIECES) / _PIECES
    u = 1.0 - t
    points = (
        np.einsum("t,nkd->nktd", u, knots)
        + np.einsum("t,nkd->nktd", t, after)
        + np.einsum("t,nkd->nktd", u**3 - u, bend * step[..., None] ** 2 / 6.0)
        + np.einsum("t,nkd->nktd", t**3 - t, bend_after * step[..., None] ** 2 / 6.0)
    )
    return np.asarray(points.reshape(count, size * _PIECES, 2))


def _filled(outline: npt.NDArray[np.float64]) -> Image:
    """Pixels whose centre lies inside a closed polygon, by crossings of a ray."""
    x, y = outline[..., 0], outline[..., 1]
    x_next, y_next = np.roll(x, -1, axis=1), np.roll(y, -1, axis=1)
    centres = np.arange(PATCH) - PATCH // 2
    inside = np.zeros((len(outline), PATCH, PATCH), dtype=bool)
    for line, height in enumerate(centres):
        crosses = (y <= height) != (y_next <= height)
        rise = np.where(crosses, y_next - y, 1.0)
        reach = np.where(crosses, x + (height - y) * (x_next - x) / rise, -np.inf)
        beyond = reach[:, :, None] > centres
        inside[:, line] = np.count_nonzero(beyond, axis=1) % 2 == 1
    return inside.astype(np.float32)


def _eight_forms(images: Image) -> Image:
    turned = [np.rot90(images, turns, axes=(1, 2)) for turns in range(4)]
    return np.concatenate([*turned, *(part[:, :, ::-1] for part in turned)])
