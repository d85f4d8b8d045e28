"""The drawn tasks: populations of cells or chairs, and which rows of them train, validate and test.

Populations are drawn here, or read from the original files. Boundaries are those of Gustafsson,
Danelljan and Schön (2023). In a variant, training and validation see a part of the range (Tails:
its middle; Gap: its two ends) and the main test the whole. Three steps widen the test range
towards the whole one: tests named ``step-1`` to ``step-3``, beside ``full``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.tasks.files import BROKEN, UnreadableError, bounded
from howsure_studies.tasks.images.cells import Recipe, draw_cells
from howsure_studies.tasks.images.chairs import DESIGNS, draw_chairs
from howsure_studies.tasks.images.reading import SIDE, Bytes, Reading, check_choice, read_picture
from howsure_studies.tasks.task import Part

Ranges = tuple[tuple[float, float], ...]
"""Closed intervals; a label lies in the range if it lies in one of them."""

Images = tuple[Bytes, IntArray, tuple[str, ...]]
"""Images of chosen rows, which of the rows could be had, and notes."""

MOST_CELLS: Final = 200
PER_COUNT: Final = 1000
ANGLES: Final = 899
RC49: Final = "RC-49_64x64.h5"
CELL200: Final = "Cell200_64x64.h5"
CELLS_FOLDER: Final = "Cell200"
CHAIRS_FOLDER: Final = "RC-49"
FULL: Final = "full"

_MOST: Final = 1 << 26  # bytes of labels; those of RC-49 take half a million
_CELL_FILE: Final = re.compile(r"(\d+)_(\d+)(?:\.0)?\.(?:png|jpe?g|tiff?|bmp)", re.IGNORECASE)
_PER_ANGLE: Final = 25
_TINY: Final = 1e-6
_WHOLE: Final[Ranges] = ((0.0, np.inf),)


@final
@frozen(kw_only=True, eq=False)
class ImagePopulation:
    """Images that exist, by number, with their labels; pixels come when asked for."""

    labels: FloatArray
    fetch: Callable[[IntArray], Images]
    ids: Callable[[IntArray], npt.NDArray[np.str_]]
    training: BoolArray  # rows that may be trained on, where the set says so; else all


def drawn_cells(seed: int, recipe: Recipe, shortcut: bool) -> ImagePopulation:
    """Pictures as numerous as Cell-200's: 1,000 of each count 1 … 200.

    Examples
    --------
    >>> population = drawn_cells(0, "direct", True)
    >>> images, rows, _ = population.fetch(np.array([0, 199_999]))
    >>> images.shape, population.labels[rows].tolist()
    ((2, 64, 64, 1), [1.0, 200.0])
    """
    labels = np.repeat(np.arange(1.0, MOST_CELLS + 1.0), PER_COUNT)

    def fetch(rows: IntArray) -> Images:
        drawn = draw_cells(labels[rows], seed=seed, index=rows, recipe=recipe, shortcut=shortcut)
        return drawn[..., None], rows, ()

    def ids(rows: IntArray) -> npt.NDArray[np.str_]:
        return np.array([f"{row}_{labels[row]:.0f}" for row in rows])

    return ImagePopulation(
        labels=labels, fetch=fetch, ids=ids, training=np.ones(len(labels), dtype=bool)
    )


def drawn_chairs(seed: int) -> ImagePopulation:
    """Pictures as numerous as RC-49's: 49 designs at 0.1 … 89.9 degrees, odd tenths for training.

    Examples
    --------
    >>> population = drawn_chairs(0)
    >>> len(population.labels), int(population.training.sum())
    (44051, 22050)
    >>> population.ids(np.array([50])).tolist()
    ['design-1/0.2']
    """
    tenths = np.repeat(np.arange(1, ANGLES + 1), DESIGNS)
    labels = tenths / 10.0

    def fetch(rows: IntArray) -> Images:
        return draw_chairs(rows % DESIGNS, labels[rows], seed=seed), rows, ()

    def ids(rows: IntArray) -> npt.NDArray[np.str_]:
        return np.array([f"design-{row % DESIGNS}/{labels[row]:.1f}" for row in rows])

    return ImagePopulation(labels=labels, fetch=fetch, ids=ids, training=tenths % 2 == 1)


def original_cells(reading: Reading) -> ImagePopulation:
    """Cell-200 as published: ``Cell200_64x64.h5``, or files ``<number>_<count>.0.<ext>``.

    Pictures are of 64 by 64 grey pixels; the file holds ``IMGs_grey`` and ``CellCounts``.
    """
    if (reading.folder / CELL200).is_file():
        packed = _Packed(reading.folder / CELL200, "IMGs_grey", 1)
        labels = packed.numbers("CellCounts")
        packed.check(len(labels))
        reading.expect(len(labels), MOST_CELLS * PER_COUNT, "images")
        ids = np.array([f"{row}_{label:.0f}" for row, label in enumerate(labels)])
        every = np.ones(len(labels), dtype=bool)
        return ImagePopulation(
            labels=labels, fetch=packed.fetch, ids=ids.__getitem__, training=every
        )
    matches = ((_CELL_FILE.fullmatch(path.name), path) for path in reading.folder.iterdir())
    numbered = sorted((int(match[2]), int(match[1]), path) for match, path in matches if match)
    what = f"images <number>_<count>.0.<ext>, or {CELL200}"
    reading.expect(len(numbered), MOST_CELLS * PER_COUNT, what)
    labels = np.array([float(count) for count, _, _ in numbered])
    names = np.array([path.name for _, _, path in numbered])

    def fetch(rows: IntArray) -> Images:
        def picture(at: int) -> Bytes:
            image = read_picture(numbered[rows[at]][2], "L")
            if image.shape != (SIDE, SIDE):
                raise UnreadableError(f"it must be {SIDE} by {SIDE}, got {image.shape}")
            return image

        pictures, kept, notes = reading.collected("images", names[rows].tolist(), picture)
        return np.stack(pictures)[..., None], rows[kept], notes

    training = np.ones(len(labels), dtype=bool)
    return ImagePopulation(labels=labels, fetch=fetch, ids=names.__getitem__, training=training)


def original_chairs(reading: Reading) -> ImagePopulation:
    """RC-49 as published: ``RC-49_64x64.h5`` with ``images``, ``labels`` and ``indx_train``."""
    packed = _Packed(reading.folder / RC49, "images", 3)
    if not packed.path.is_file():
        raise InputError(f"{reading.folder} must contain {RC49}, got no such file")
    labels = packed.numbers("labels")
    chosen = packed.numbers("indx_train").astype(np.int64)
    packed.check(len(labels))
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(labels):
        raise InputError(f"{packed.path}: indx_train must be in 0 … {len(labels) - 1}")
    reading.expect(len(labels), ANGLES * DESIGNS, "images")
    training = np.zeros(len(labels), dtype=bool)
    training[chosen] = True
    names = np.array([f"{row}/{label:.1f}" for row, label in enumerate(labels)])
    tenths = np.rint(labels * 10.0) / 10.0
    return ImagePopulation(
        labels=tenths, fetch=packed.fetch, ids=names.__getitem__, training=training
    )


@final
@frozen
class _Packed:
    """An HDF5 file of images, which are read row by row, and of numbers."""

    path: Path
    images: str
    channels: int

    def numbers(self, name: str) -> FloatArray:
        """An array of finite numbers, as a vector."""
        h5py: Any = require("h5py", extra="vision", of="howsure-studies")
        try:
            with h5py.File(self.path, "r") as file:
                bounded(8 * math.prod(file[name].shape), _MOST, f"{self.path}: {name}")
                values = np.asarray(file[name][:], dtype=np.float64).ravel()
        except UnreadableError:
            raise
        except BROKEN as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        if not np.isfinite(values).all():
            raise UnreadableError(f"{self.path}: {name} must be finite numbers")
        return values

    def check(self, rows: int) -> None:
        """Refuse images of another shape than so many rows have."""
        h5py: Any = require("h5py", extra="vision", of="howsure-studies")
        wanted = (rows, self.channels, SIDE, SIDE)
        try:
            with h5py.File(self.path, "r") as file:
                shape = file[self.images].shape
        except BROKEN as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        if shape != wanted:
            raise InputError(f"{self.path}: {self.images} must be {wanted}, got {shape}")

    def fetch(self, rows: IntArray) -> Images:
        """Images of rows, channels last."""
        h5py: Any = require("h5py", extra="vision", of="howsure-studies")
        distinct, back = np.unique(rows, return_inverse=True)
        try:
            with h5py.File(self.path, "r") as file:
                images = np.asarray(file[self.images][distinct], dtype=np.uint8)
        except BROKEN as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        return np.moveaxis(images[back], 1, 3), rows, ()


@final
@frozen(kw_only=True)
class Variant:
    """A task: labels of training and validation, those of each test, and rows of the parts."""

    inside: Ranges
    published: Mapping[str, int]
    tests: Mapping[str, Ranges] = field(default_factory=lambda: {FULL: _WHOLE})


def _open(low: float, high: float) -> tuple[float, float]:
    """Bounds of angles between two angles that are both left out."""
    return low + _TINY, high - _TINY


CELLS_SIZES: Final = MappingProxyType({"train": 10_000, "val": 2_000, FULL: 10_000})
_CHAIRS_SIZES: Final = {"train": 17_640, "val": 4_410, FULL: 11_225}
_SHIFTED_SIZES: Final = {"train": 11_760, "val": 2_940, FULL: 11_225}

CELLS: Final[Mapping[str, Variant]] = MappingProxyType(
    {
        "cells": Variant(inside=((1, 200),), published=CELLS_SIZES),
        "cells-tails": Variant(
            inside=((51, 150),),
            published=CELLS_SIZES,
            tests={
                FULL: _WHOLE,
                "step-1": ((37.5, 163.5),),
                "step-2": ((25, 176),),
                "step-3": ((12.5, 188.5),),
            },
        ),
        "cells-gap": Variant(inside=((1, 49), (151, 200)), published=CELLS_SIZES),
    }
)

CHAIRS: Final[Mapping[str, Variant]] = MappingProxyType(
    {
        "chair-angle": Variant(inside=(_open(0, 90),), published=_CHAIRS_SIZES),
        "chair-angle-tails": Variant(inside=(_open(15, 75),), published=_SHIFTED_SIZES),
        "chair-angle-gap": Variant(
            inside=(_open(0, 30), _open(60, 90)),
            published=_SHIFTED_SIZES,
            tests={
                FULL: _WHOLE,
                "step-1": (_open(0, 33.75), _open(56.25, 90)),
                "step-2": (_open(0, 37.5), _open(52.5, 90)),
                "step-3": (_open(0, 41.25), _open(48.75, 90)),
            },
        ),
    }
)


DRAWN: Final = (*CELLS, *CHAIRS)
"""Names of the tasks that are drawn where their originals are not on this machine."""


def originals_folder(name: str) -> str:
    """The folder of the published images that a drawn task stands for."""
    return CELLS_FOLDER if name in CELLS else CHAIRS_FOLDER


def drawn_variant(name: str, *, edge: str = "paper") -> Variant:
    """A variant by name; Cells-Gap trains above 150, as the paper writes, or from 150 (code)."""
    check_choice(edge, ("paper", "code"), "edge")
    if name == "cells-gap" and edge == "code":
        return replace(CELLS[name], inside=((1, 49), (150, 200)))
    return {**CELLS, **CHAIRS}[name]


def within(labels: FloatArray, ranges: Ranges) -> BoolArray:
    """Which labels lie in a range."""
    hits = [(labels >= low) & (labels <= high) for low, high in ranges]
    return np.asarray(np.any(hits, axis=0))


def cells_rows(
    population: ImagePopulation, variant: Variant, name: str, seed: int, sizes: Mapping[str, int]
) -> IntArray:
    """Rows of a part of a Cells task."""
    # In-range rows are shuffled once: validation rows are the first, then comes the in-range half
    # of every test, and training rows are the last, so that the number of training rows changes
    # no other part. The other half of a test is drawn from out of range, as the benchmark's code
    # does; the plain task's test is all in range.
    inside = within(population.labels, variant.inside)
    order = child(seed, "cells", "in range").permutation(np.flatnonzero(inside))
    n_train, n_val, n_test = (sizes[key] for key in ("train", "val", FULL))
    shifted = not inside.all()
    near = n_test - n_test // 2 if shifted else n_test
    _enough(len(order), n_train + n_val + near, "in range")
    if name == "train":
        return order[len(order) - n_train :]
    if name == "val":
        return order[:n_val]
    rows = order[n_val : n_val + near]
    if not shifted:
        return rows
    beyond = np.flatnonzero(~inside & within(population.labels, variant.tests[name]))
    _enough(len(beyond), n_test // 2, "out of range")
    far = child(seed, "cells", "out of range", name).permutation(beyond)[: n_test // 2]
    mixed = np.concatenate([rows, far])
    return child(seed, "cells", "mix", name).permutation(mixed)


def _enough(there: int, wanted: int, where: str) -> None:
    if there < wanted:
        raise InputError(f"sizes must not exceed the {there} images {where}, got {wanted}")


def chairs_rows(population: ImagePopulation, variant: Variant, name: str, seed: int) -> IntArray:
    """Rows of a part of a ChairAngle task; a test has at most 25 images of each other angle."""
    whole = within(population.labels, (_open(0, 90),))
    if name in ("train", "val"):
        rows = np.flatnonzero(
            population.training & whole & within(population.labels, variant.inside)
        )
        rows = child(seed, "chairs", "in range").permutation(rows)
        cut = int(0.8 * len(rows))
        chosen = rows[:cut] if name == "train" else rows[cut:]
    else:
        order = child(seed, "chairs", "test").permutation(
            np.flatnonzero(~population.training & whole)
        )
        sorted_rows = order[np.argsort(population.labels[order], kind="stable")]
        angles, starts = np.unique(population.labels[sorted_rows], return_index=True)
        rank = (
            np.arange(len(order)) - starts[np.searchsorted(angles, population.labels[sorted_rows])]
        )
        few = sorted_rows[rank < _PER_ANGLE]
        few = few[within(population.labels[few], variant.tests[name])]
        chosen = child(seed, "chairs", "mix", name).permutation(few)
    if len(chosen) == 0:
        raise InputError(f"part {name!r} has no image: zero images remain")
    return chosen


def _original(read: Callable[[Reading], ImagePopulation], reading: Reading) -> ImagePopulation:
    """Published images; where they are not whole, the error says that they can be drawn."""
    try:
        return read(reading)
    except InputError as error:
        raise type(error)(f'{error}; source="drawn" draws pictures instead') from error


def read_drawn(
    name: str,
    variant: Variant,
    reading: Reading | None,
    seed: int,
    recipe: Recipe,
    shortcut: bool,
    sizes: Mapping[str, int],
    part: str,
) -> Mapping[str, Part]:
    """One part of a task, from original files where there is a reading; tests know their range."""
    test = part not in ("train", "val")
    if name in CELLS:
        population = (
            _original(original_cells, reading) if reading else drawn_cells(seed, recipe, shortcut)
        )
        asked = {FULL if key == "test" else key: size for key, size in sizes.items()}
        rows = cells_rows(population, variant, part, seed, {**variant.published, **asked})
    else:
        population = _original(original_chairs, reading) if reading else drawn_chairs(seed)
        rows = chairs_rows(population, variant, part, seed)[: sizes.get("test" if test else part)]
    images, kept, notes = population.fetch(rows)
    labels = population.labels[kept]
    in_range = within(labels, variant.inside) if test else None
    return {
        part: Part(x=images, y=labels, ids=population.ids(kept), in_range=in_range, notes=notes)
    }
