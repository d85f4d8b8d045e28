"""Patches cut from tiles: counted, pooled and split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.images.files import Bytes, Reading
from howsure.studies.tasks.parts import Part

Patches = tuple[Bytes, npt.NDArray[np.int64], npt.NDArray[np.str_]]


def patches(images: Bytes, masks: npt.NDArray[Any], key: str) -> Patches:
    """Patches whose mask is above 0 somewhere, the number of such pixels, and their names.

    Examples
    --------
    >>> images = np.zeros((2, 2, 2, 3), dtype=np.uint8)
    >>> masks = np.array([[[0, 0], [0, 0]], [[0, 1], [5, 0]]])
    >>> [part.tolist() for part in patches(images, masks, "tile")[1:]]
    [[2], ['tile/1']]
    """
    counts = (masks > 0).sum(axis=(1, 2))
    kept = np.flatnonzero(counts)
    return images[kept], counts[kept], np.array([f"{key}/{number}" for number in kept], dtype=str)


def whole(reading: Reading, found: Sequence[Patches], notes: tuple[str, ...]) -> Part:
    """All patches of all tiles.

    Raises
    ------
    InputError
        If no patch shows anything.
    """
    if not sum(len(counts) for _, counts, _ in found):
        raise InputError(f"{reading.folder} has no patch with a masked pixel: zero images remain")
    x, y, ids = (np.concatenate(column) for column in zip(*found, strict=True))
    return Part(x=reading.coloured(x), y=y, ids=ids, notes=notes)


def pooled(
    reading: Reading, found: Sequence[Patches], notes: tuple[str, ...], name: str
) -> Mapping[str, Part]:
    """Shuffle all patches, and cut them at 80 per cent in training and validation.

    Raises
    ------
    InputError
        If fewer than two patches show anything.
    """
    part = whole(reading, found, notes)
    order = child(reading.seed, name, "split").permutation(len(part))
    cut = int(0.8 * len(part))
    if cut == 0:
        raise InputError(f"{reading.folder} must hold at least two patches, got {len(part)}")
    parts = {"train": part.take(order[:cut]), "val": part.take(order[cut:])}
    return {key: reading.limited(value, key) for key, value in parts.items()}
