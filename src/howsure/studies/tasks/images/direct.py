"""The fast recipe: nuclei prepared at 64 pixels, one addition a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import IntArray
from howsure.core.rng import child
from howsure.studies.tasks.images.nuclei import PATCH, bank
from howsure.studies.tasks.images.optics import (
    AUTOFLUORESCENCE,
    DEPTH_SD,
    ILLUMINATION,
    NOISE_SD,
    SIGMAS,
    blurred,
    illumination,
    quantised,
    widths,
)
from howsure.studies.tasks.images.texture import from_noise

Image = npt.NDArray[np.float32]

SIZE: Final = 64
_FACTOR: Final = 4
_FINE: Final = 256
_MARGIN: Final = 10
_BLOCKS: Final = 6
_FORMS: Final = 8
_MOST_COVER: Final = 0.9999


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """Small patches of nuclei by depth and by phase of the fine grid within a pixel.

    ``light`` has shape (widths · nuclei · 16, 36); ``cover`` (nuclei · 16, 36), the share of a
    pixel inside, and ``hidden`` is -log(1 - cover). ``energy`` (nuclei,) is the sum of squares
    on the fine grid.
    """

    light: Image
    cover: Image
    hidden: Image
    energy: Image


def draw_direct(
    counts: IntArray, index: IntArray, *, seed: int, steady: int | None
) -> npt.NDArray[np.uint8]:
    """Draw a batch of pictures of 64 by 64; see `howsure.studies.tasks.images.cells.draw_cells`.

    Shares of a pixel covered by several nuclei combine as if independent, 1 - Π(1 - c), and a
    pixel's light is that share times the nuclei's mean light.

    Parameters
    ----------
    counts, index : ndarray of int, shape (n,)
        Nuclei of each picture, and its number.
    seed : int
        Fixes all.
    steady : int, optional
        The count whose ground all pictures get; their own if omitted.

    Returns
    -------
    ndarray of uint8, shape (n, 64, 64)

    Examples
    --------
    >>> draw_direct(np.array([5]), np.array([0]), seed=0, steady=None).shape
    (1, 64, 64)
    """
    prepared = _prepared(seed)
    n, total = len(counts), int(counts.sum())
    place = np.empty((total, 2), dtype=np.int64)
    which, place_of_width = np.empty(total, dtype=np.int64), np.empty(total)
    noise = np.empty((n, SIZE, SIZE), dtype=np.float32)
    rough = [np.empty((n, 2, 2), np.float32), np.empty((n, 4, 4), np.float32)]
    ends = np.cumsum(counts)
    for row, end in enumerate(ends.tolist()):
        many = int(counts[row])
        rng = child(seed, "cells", "direct", int(index[row]), many)
        part = slice(end - many, end)
        place[part] = rng.integers(0, _FINE, (many, 2))
        which[part] = rng.integers(0, len(prepared.energy), many)
        depth = np.abs(rng.standard_normal(many)) * DEPTH_SD
        place_of_width[part] = widths(depth, depth.max())
        noise[row] = rng.standard_normal((SIZE, SIZE), dtype=np.float32)
        rough[0][row], rough[1][row] = rng.random((2, 2)), rng.random((4, 4))
    owner = np.repeat(np.arange(n), counts)
    light, share = _laid(prepared, n, owner, place, which, place_of_width)
    energy = np.bincount(owner, prepared.energy[which], minlength=n) * share
    if steady is not None:
        energy[:] = steady * prepared.energy.mean()
    return quantised(_lit(light, energy, noise, rough))


def _laid(
    prepared: _Prepared,
    n: int,
    owner: IntArray,
    place: IntArray,
    which: IntArray,
    width: npt.NDArray[np.float64],
) -> tuple[Image, npt.NDArray[np.float64]]:
    """Light of each picture, and which share of the nuclei's own area is seen."""
    corner, phase = np.divmod(place + (2 * _FACTOR * _BLOCKS - _MARGIN), _FACTOR)
    corner -= _BLOCKS
    wide = SIZE + 2 * _BLOCKS
    offsets = (np.arange(_BLOCKS)[:, None] * wide + np.arange(_BLOCKS)).ravel()
    at = (((owner * wide + corner[:, 0]) * wide + corner[:, 1])[:, None] + offsets).ravel()
    form = which * _FACTOR**2 + phase[:, 0] * _FACTOR + phase[:, 1]
    level = np.rint(np.interp(width, SIGMAS, np.arange(len(SIGMAS)))).astype(np.int64)

    def laid(patches: Image) -> npt.NDArray[np.float64]:
        total = np.bincount(at, patches.ravel(), minlength=n * wide * wide)
        return np.asarray(total, dtype=np.float64).reshape(n, wide, wide)

    cover = laid(prepared.cover[form])
    seen = -np.expm1(-laid(prepared.hidden[form]))
    light = laid(prepared.light[level * len(prepared.cover) + form])
    light *= np.divide(seen, cover, out=np.ones_like(seen), where=cover > 0)
    middle = slice(_BLOCKS, _BLOCKS + SIZE)
    inside = seen[:, middle, middle].sum(axis=(1, 2)) / cover.sum(axis=(1, 2))
    return light[:, middle, middle].astype(np.float32), inside


def _lit(light: Image, energy: npt.NDArray[np.float64], noise: Image, rough: list[Image]) -> Image:
    """Add the ground, whose energy on the fine grid is tied to the nuclei's, and noise."""
    level = np.sqrt(energy / _FINE**2).astype(np.float32)[:, None, None]
    glow = from_noise(rough, SIZE, [1.0, 1.0])
    glow /= np.sqrt(np.einsum("nij,nij->n", glow, glow) / SIZE**2)[:, None, None]
    light += level * np.float32(np.sqrt(ILLUMINATION)) * illumination(SIZE)
    light += level * np.float32(np.sqrt(AUTOFLUORESCENCE)) * glow
    light += np.float32(NOISE_SD / _FACTOR) * noise
    return light


@lru_cache(maxsize=4)
def _prepared(seed: int) -> _Prepared:
    nuclei = bank(seed)
    each = len(nuclei.light) // _FORMS
    number = np.arange(each)
    chosen = (number % _FORMS) * each + number
    sharp, mask = nuclei.light[chosen], nuclei.mask[chosen]
    reach = _MARGIN - PATCH // 2
    pad = ((0, 0), (reach, reach), (reach, reach))
    sharp, mask = np.pad(sharp, pad), np.pad(mask, pad)
    cover = _phases(mask[None])
    return _Prepared(
        light=_phases(blurred(np.stack([sharp] * len(SIGMAS)))),
        cover=cover,
        hidden=-np.log1p(-np.minimum(cover, np.float32(_MOST_COVER))),
        energy=np.square(sharp).sum(axis=(1, 2)),
    )


def _phases(images: Image) -> Image:
    """Block means at all 16 phases, shape (levels · nuclei · 16, 36)."""
    levels, count, side, _ = images.shape
    fine = _BLOCKS * _FACTOR
    out = np.empty((levels, count, _FACTOR, _FACTOR, _BLOCKS, _BLOCKS), dtype=np.float32)
    for down in range(_FACTOR):
        for right in range(_FACTOR):
            room = np.zeros((levels, count, fine, fine), dtype=np.float32)
            room[:, :, down : down + side, right : right + side] = images
            blocks = room.reshape(levels, count, _BLOCKS, _FACTOR, _BLOCKS, _FACTOR)
            out[:, :, down, right] = blocks.mean(axis=(3, 5))
    return out.reshape(-1, _BLOCKS * _BLOCKS)
