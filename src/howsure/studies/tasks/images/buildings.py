"""AerialBuildingPixels: aerial photographs of cities, from Inria's labelling benchmark."""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.studies.tasks.images.files import (
    Reading,
    Trouble,
    UnreadableError,
    bilinear,
    grid,
    nearest,
)
from howsure.studies.tasks.images.patches import Patches, patches, pooled, whole
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import BROKEN, bounded

TILES_A_CITY: Final = 36
CITIES: Final = ("austin", "chicago")
TESTS: Final = ("tyrol-w", "kitsap", "vienna")
_SHRINK: Final = 5
_MOST: Final = 1 << 28  # bytes of a tile; those of the set have 75 million


def read(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read training and validation patches (Austin, Chicago), or those of a test city.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``train/images/<city><number>.tif`` and ``train/gt/`` with masks of the
        same names, or ``images`` and ``gt`` themselves.
    name : {"train", "val", "tyrol-w", "kitsap", "vienna"}
        Training and validation come together: all patches are shuffled and cut at 80 per cent,
        so they share tiles, as in the benchmark.

    Returns
    -------
    mapping of str to Part
        Tiles are reduced five times, images by interpolation and masks by the nearest pixel,
        and cut in patches of 64 by 64; y is the number of building pixels, at least 1.

    Raises
    ------
    InputError
        If the download is not whole, a mask has no image or an image no mask, or a file is
        broken and broken files are errors.
    """
    cities = (name,) if name in TESTS else CITIES
    tiles = [pair for city in cities for pair in _tiles(reading, city)]
    trouble = Trouble("tiles")
    found = []
    for image, mask in tiles:
        try:
            found.append(_cut(read_tiff(image), read_tiff(mask), image.stem))
        except UnreadableError as error:
            trouble.add(image.name, error)
    notes = trouble.settle(reading, len(tiles))
    if name in TESTS:
        return {name: reading.limited(whole(reading, found, notes), name)}
    return pooled(reading, found, notes, "aerial-building-pixels")


def read_tiff(path: Path) -> npt.NDArray[Any]:
    """A TIFF file's pixels, shape (h, w) or (h, w, c).

    Raises
    ------
    UnreadableError
        If the file is broken, cut short, or not of 8 bits.
    """
    tifffile: Any = require("tifffile", extra="vision")
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]  # not a series, whose description may name other files
            bounded(page.nbytes, _MOST, path.name)
            held = np.asarray(page.asarray())
    except UnreadableError:
        raise
    except (*BROKEN, lzma.LZMAError, tifffile.TiffFileError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error
    if held.dtype != np.uint8 or held.ndim not in (2, 3):
        raise UnreadableError(f"{path.name} must be 8-bit, got {held.dtype} of shape {held.shape}")
    return held


def _cut(image: npt.NDArray[Any], mask: npt.NDArray[Any], key: str) -> Patches:
    mask = mask if mask.ndim == 2 else mask.max(axis=2)
    if image.ndim != 3 or image.shape[2] < 3 or image.shape[:2] != mask.shape:
        raise UnreadableError(f"shapes {image.shape} and {mask.shape} do not fit")
    height, width = (side // _SHRINK for side in mask.shape)
    small = bilinear(image[..., :3], height, width)
    return patches(grid(small), grid(nearest(mask, height, width)), key)


def _tiles(reading: Reading, city: str) -> list[tuple[Path, Path]]:
    base = reading.folder / "train"
    base = base if base.is_dir() else reading.folder
    images, masks = ({p.name: p for p in base.glob(f"{part}/{city}*.tif")} for part in _FOLDERS)
    alone = sorted(set(images) ^ set(masks))
    if alone:
        raise InputError(
            f"{base}: each image must have a mask and each mask an image, got {len(alone)} "
            f"alone: {alone[0]}"
        )
    reading.expect(len(images), TILES_A_CITY, f"tiles of {city}")
    return [(images[name], masks[name]) for name in sorted(images)]


_FOLDERS: Final = ("images", "gt")
