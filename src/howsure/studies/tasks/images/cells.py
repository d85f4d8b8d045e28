"""Pictures of stained nuclei, as the simulator SIMCEP made Cell-200, to be counted.

Two recipes. ``faithful`` draws at 256 by 256 pixels, step by step as the simulator does, and
averages blocks of pixels. ``direct`` draws at 64 by 64 from nuclei prepared beforehand: many
times faster, with the same mean, spread and slope of brightness on the count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import IntArray
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.images.direct import draw_direct
from howsure.studies.tasks.images.nuclei import PATCH, Bank, bank
from howsure.studies.tasks.images.optics import (
    AUTOFLUORESCENCE,
    ILLUMINATION,
    NOISE_SD,
    focus_blur,
    illumination,
    quantised,
    shrunk,
)
from howsure.studies.tasks.images.texture import texture

Recipe = Literal["direct", "faithful"]
Image = npt.NDArray[np.float32]

CANVAS: Final = 256
REFERENCE_COUNT: Final = 100
"""Without the shortcut, the ground is as bright as of this many nuclei."""

_BATCH: Final = 32
_SIZES: Final = (64, 128, 256)


def draw_cells(
    counts: npt.ArrayLike,
    *,
    seed: int = 0,
    index: npt.ArrayLike | None = None,
    recipe: Recipe = "direct",
    shortcut: bool = True,
    size: int = 64,
) -> npt.NDArray[np.uint8]:
    """Draw pictures that hold given numbers of nuclei.

    Parameters
    ----------
    counts : array-like of int, shape (n,)
        Nuclei in each picture, at least 1. All count, also those that the border cuts and those
        that others cover.
    seed : int
        With ``index``, count and recipe it fixes a picture, whatever others are drawn with it.
    index : array-like of int, shape (n,), optional
        Which of all possible pictures; 0, 1, 2, … if omitted.
    recipe : {"direct", "faithful"}
        See the module's head.
    shortcut : bool
        Whether the ground's brightness grows with the nuclei's, as in the original, so that a
        count can be guessed from the ground alone; if not, it is that of 100 nuclei everywhere.
    size : int
        Pixels a side: 64, or with the faithful recipe 64, 128 or 256.

    Returns
    -------
    ndarray of uint8, shape (n, size, size)

    Raises
    ------
    InputError
        If a count is below 1, or the recipe or size is unknown.

    Notes
    -----
    The original ties the energy (the sum of squares) of uneven light to that of the sharp
    nuclei, and of autofluorescence to a twentieth of it; hence the shortcut. Nuclei come from a
    bank of 2,048 a seed, each in eight turned and mirrored forms. Not repeated: the original's
    one pass of JPEG at quality 100.

    References
    ----------
    Lehmussola, Ruusuvuori, Selinummi, Huttunen, Yli-Harja (2007), Computational framework for
    simulating fluorescence microscope images with cell populations, IEEE Transactions on
    Medical Imaging 26(7), with the settings of the authors of Cell-200 (Ding et al. 2021).

    Examples
    --------
    >>> pictures = draw_cells([10, 150], seed=1)
    >>> pictures.shape, pictures.dtype, bool(pictures[1].mean() > pictures[0].mean())
    ((2, 64, 64), dtype('uint8'), True)
    """
    many, which = _checked(counts, index)
    if recipe not in ("direct", "faithful"):
        raise InputError(f"recipe must be direct or faithful, got {recipe!r}")
    if size not in (_SIZES if recipe == "faithful" else _SIZES[:1]):
        raise InputError(
            f"size must be 64, or 64, 128 or 256 with the faithful recipe, got {size!r}"
        )
    if recipe == "faithful":
        drawn = _faithful(many, which, seed, shortcut, CANVAS // size)
    else:
        drawn = (
            draw_direct(
                many[start : start + _BATCH],
                which[start : start + _BATCH],
                seed=seed,
                steady=None if shortcut else REFERENCE_COUNT,
            )
            for start in range(0, len(many), _BATCH)
        )
    return np.concatenate(list(drawn))


def _faithful(
    counts: IntArray, index: IntArray, seed: int, shortcut: bool, factor: int
) -> Iterator[npt.NDArray[np.uint8]]:
    nuclei = bank(seed)
    steady = None if shortcut else REFERENCE_COUNT * _energy_of_one(nuclei)
    for count, number in zip(counts.tolist(), index.tolist(), strict=True):
        rng = child(seed, "cells", "faithful", number, count)
        whole = quantised(_microscoped(count, nuclei, steady, rng))
        yield quantised(shrunk(whole[None].astype(np.float32), factor) / np.float32(255.0))


def _microscoped(count: int, nuclei: Bank, steady: float | None, rng: np.random.Generator) -> Image:
    """One picture of 256 by 256, brightness in [0, 1] before clipping."""
    light, inside = _composed(count, nuclei, rng)
    energy = float(np.vdot(light, light)) if steady is None else steady
    ground = illumination(CANVAS) * np.float32(np.sqrt(ILLUMINATION * energy) / CANVAS)
    glow = texture(rng, CANVAS, 1, octaves=range(1, 3), persistence=1.0)[0]
    glow *= np.float32(np.sqrt(AUTOFLUORESCENCE * energy / np.vdot(glow, glow)))
    seen = focus_blur(light, inside, rng)
    seen += ground
    seen += glow
    seen += np.float32(NOISE_SD) * rng.standard_normal(seen.shape, dtype=np.float32)
    return seen


def _composed(
    count: int, nuclei: Bank, rng: np.random.Generator
) -> tuple[Image, npt.NDArray[np.bool_]]:
    """Nuclei anywhere on the canvas; where they overlap, their average."""
    place = rng.integers(0, CANVAS, (count, 2))
    which = rng.integers(0, len(nuclei.light), count)
    wide = CANVAS + PATCH - 1
    offsets = (np.arange(PATCH)[:, None] * wide + np.arange(PATCH)).ravel()
    at = ((place[:, 0] * wide + place[:, 1])[:, None] + offsets).ravel()
    cut = slice(PATCH // 2, PATCH // 2 + CANVAS)

    def laid(images: Image) -> Image:
        total = np.bincount(at, images[which].ravel(), minlength=wide * wide)
        return np.asarray(total.reshape(wide, wide)[cut, cut], dtype=np.float32)

    cover = laid(nuclei.mask)
    light = laid(nuclei.light) / np.maximum(cover, np.float32(1.0))
    return np.asarray(light, dtype=np.float32), cover > 0


def _energy_of_one(nuclei: Bank) -> float:
    return float(np.square(nuclei.light).sum(axis=(1, 2)).mean())


def _checked(counts: npt.ArrayLike, index: npt.ArrayLike | None) -> tuple[IntArray, IntArray]:
    many = _whole(counts, "counts", 1)
    which = np.arange(len(many)) if index is None else _whole(index, "index", 0)
    if len(which) != len(many):
        raise InputError(f"index must have {len(many)} rows, got {len(which)}")
    return many, which


def _whole(value: npt.ArrayLike, name: str, least: int) -> IntArray:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) == 0:
        raise InputError(f"{name} must be a list of whole numbers, got {value!r}")
    whole = array.astype(np.int64)
    if (whole != array).any() or (whole < least).any():
        raise InputError(f"{name} must be whole numbers of at least {least}, got {array.min():g}")
    return whole
