"""Pools that the synthetic tasks choose from: drawn here, or read from the original files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.studies.tasks.images.cells import Recipe, draw_cells
from howsure.studies.tasks.images.chairs import DESIGNS, draw_chairs
from howsure.studies.tasks.images.files import (
    SIDE,
    Bytes,
    Reading,
    Trouble,
    UnreadableError,
    read_picture,
)
from howsure.studies.tasks.unpack import BROKEN, bounded

MOST_CELLS: Final = 200
PER_COUNT: Final = 1000
ANGLES: Final = 899
RC49: Final = "RC-49_64x64.h5"
_MOST: Final = 1 << 26  # bytes of labels; those of RC-49 take half a million

_CELL_FILE: Final = re.compile(r"(\d+)_(\d+)(?:\.0)?\.(?:png|jpe?g|tiff?|bmp)", re.IGNORECASE)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Images that exist, by number, with their labels; pixels come when asked for.

    Attributes
    ----------
    labels : ndarray of float, shape (n,)
        The target of each.
    fetch : callable
        From row numbers, images of shape (k, 64, 64, channels) of 8 bits, and which of the rows
        could be had, and notes.
    ids : callable
        From row numbers, their names.
    training : ndarray of bool, shape (n,)
        Rows that may be trained on, where the set says so; else all.
    """

    labels: FloatArray
    fetch: Callable[[IntArray], tuple[Bytes, IntArray, tuple[str, ...]]]
    ids: Callable[[IntArray], npt.NDArray[np.str_]]
    training: npt.NDArray[np.bool_]


def drawn_cells(seed: int, recipe: Recipe, shortcut: bool) -> Pool:
    """Pictures as numerous as Cell-200's: 1,000 of each count 1 … 200.

    Examples
    --------
    >>> pool = drawn_cells(0, "direct", True)
    >>> images, rows, _ = pool.fetch(np.array([0, 199_999]))
    >>> images.shape, pool.labels[rows].tolist()
    ((2, 64, 64, 1), [1.0, 200.0])
    """
    labels = np.repeat(np.arange(1.0, MOST_CELLS + 1.0), PER_COUNT)
    fetch = partial(_draw_cells, labels, seed, recipe, shortcut)
    training = np.ones(len(labels), dtype=bool)
    return Pool(labels=labels, fetch=fetch, ids=partial(_cell_ids, labels), training=training)


def drawn_chairs(seed: int) -> Pool:
    """Pictures as numerous as RC-49's: 49 designs at 0.1, 0.2, …, 89.9 degrees.

    Angles whose tenth digit is odd may be trained on.

    Examples
    --------
    >>> pool = drawn_chairs(0)
    >>> len(pool.labels), int(pool.training.sum()), pool.ids(np.array([50])).tolist()
    (44051, 22050, ['design-1/0.2'])
    """
    tenths = np.repeat(np.arange(1, ANGLES + 1), DESIGNS)
    labels = tenths / 10.0
    fetch = partial(_draw_chairs, labels, seed)
    ids = partial(_chair_ids, labels)
    return Pool(labels=labels, fetch=fetch, ids=ids, training=tenths % 2 == 1)


def original_cells(reading: Reading) -> Pool:
    """Cell-200 as published: files ``<number>_<count>.0.<ext>`` of 64 by 64 grey pixels.

    Raises
    ------
    InputError
        If the folder holds none, or fewer than 200,000 and whole downloads are asked for.
    """
    folder = reading.folder
    matches = ((_CELL_FILE.fullmatch(path.name), path) for path in folder.iterdir())
    found = sorted((int(match[2]), int(match[1]), path) for match, path in matches if match)
    reading.expect(len(found), MOST_CELLS * PER_COUNT, "images <number>_<count>.0.<ext>")
    labels = np.array([float(count) for count, _, _ in found])
    paths = [path for _, _, path in found]
    return Pool(
        labels=labels,
        fetch=partial(_read_cells, reading, paths),
        ids=partial(_names, np.array([path.name for path in paths])),
        training=np.ones(len(labels), dtype=bool),
    )


def original_chairs(reading: Reading) -> Pool:
    """RC-49 as published: ``RC-49_64x64.h5`` with ``images``, ``labels`` and ``indx_train``.

    Raises
    ------
    InputError
        If the file is missing or broken, or shapes are not what they must be.
    """
    h5py: Any = require("h5py", extra="vision")
    path = reading.folder / RC49
    if not path.is_file():
        raise InputError(f"{reading.folder} must hold {RC49}, got no such file")
    try:
        with h5py.File(path, "r") as held:
            shape = held["images"].shape
            for name in ("labels", "indx_train"):
                bounded(8 * math.prod(held[name].shape), _MOST, f"{path}: {name}")
            labels = np.asarray(held["labels"][:], dtype=np.float64).ravel()
            chosen = np.asarray(held["indx_train"][:], dtype=np.int64).ravel()
    except UnreadableError:
        raise
    except BROKEN as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if shape != (len(labels), 3, SIDE, SIDE):
        raise InputError(f"{path}: images must be ({len(labels)}, 3, {SIDE}, {SIDE}), got {shape}")
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(labels):
        raise InputError(f"{path}: indx_train must lie in 0 … {len(labels) - 1}")
    reading.expect(len(labels), ANGLES * DESIGNS, "images")
    training = np.zeros(len(labels), dtype=bool)
    training[chosen] = True
    tenths = np.rint(labels * 10.0) / 10.0
    names = np.array([f"{row}/{label:.1f}" for row, label in enumerate(labels)])
    fetch, ids = partial(_read_chairs, path), partial(_names, names)
    return Pool(labels=tenths, fetch=fetch, ids=ids, training=training)


def _names(names: npt.NDArray[np.str_], rows: IntArray) -> npt.NDArray[np.str_]:
    return names[rows]


def _draw_cells(
    labels: FloatArray, seed: int, recipe: Recipe, shortcut: bool, rows: IntArray
) -> tuple[Bytes, IntArray, tuple[str, ...]]:
    drawn = draw_cells(labels[rows], seed=seed, index=rows, recipe=recipe, shortcut=shortcut)
    return drawn[..., None], rows, ()


def _cell_ids(labels: FloatArray, rows: IntArray) -> npt.NDArray[np.str_]:
    return np.array([f"{row}_{labels[row]:.0f}" for row in rows])


def _draw_chairs(
    labels: FloatArray, seed: int, rows: IntArray
) -> tuple[Bytes, IntArray, tuple[str, ...]]:
    return draw_chairs(rows % DESIGNS, labels[rows], seed=seed), rows, ()


def _chair_ids(labels: FloatArray, rows: IntArray) -> npt.NDArray[np.str_]:
    return np.array([f"design-{row % DESIGNS}/{labels[row]:.1f}" for row in rows])


def _read_cells(
    reading: Reading, paths: list[Path], rows: IntArray
) -> tuple[Bytes, IntArray, tuple[str, ...]]:
    trouble = Trouble("images")
    images, kept = [], []
    for row in rows.tolist():
        try:
            picture = read_picture(paths[row], "L")
            if picture.shape != (SIDE, SIDE):
                raise UnreadableError(f"it must be {SIDE} by {SIDE}, got {picture.shape}")
        except UnreadableError as error:
            trouble.add(paths[row].name, error)
            continue
        images.append(picture)
        kept.append(row)
    notes = trouble.settle(reading, len(rows))
    return np.stack(images)[..., None], np.array(kept), notes


def _read_chairs(path: Path, rows: IntArray) -> tuple[Bytes, IntArray, tuple[str, ...]]:
    h5py: Any = require("h5py", extra="vision")
    distinct, back = np.unique(rows, return_inverse=True)
    try:
        with h5py.File(path, "r") as held:
            images = np.asarray(held["images"][distinct], dtype=np.uint8)
    except BROKEN as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return np.moveaxis(images[back], 1, 3), rows, ()
