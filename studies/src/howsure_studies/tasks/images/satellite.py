"""Pictures from above, from the raw downloads of the shift benchmark.

AssetWealth (WILDS PovertyMap 1.1)
    ``dhs_metadata.csv`` (columns ``country`` and ``wealthpooled``) and
    ``images/landsat_poverty_img_<row>.npz``, each with an array ``x`` of shape (8, 224, 224),
    already standardised. Fold A of the official split: countries of the training set, 1,000
    images of the same countries, and five other countries. x are float32, without smoothing.
AerialBuildingPixels (Inria's labelling benchmark)
    ``train/images/<city><number>.tif`` and ``train/gt/`` with masks of the same names, or
    ``images`` and ``gt`` themselves. Tiles are reduced five times and cut in patches of 64 by
    64; y is the number of building pixels, at least 1. All patches of Austin and Chicago are
    shuffled and cut at 80 per cent, so training and validation share tiles, as in the benchmark.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, IntArray
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure_studies.tasks.files import (
    BROKEN,
    UnreadableError,
    arrays,
    bounded,
    column,
    numbers,
    read_list,
)
from howsure_studies.tasks.images.reading import (
    SIDE,
    Patches,
    Reading,
    bilinear,
    check_pairs,
    grid,
    nearest,
    patches,
    read_tiles,
)
from howsure_studies.tasks.shift import AWAY, HOME
from howsure_studies.tasks.task import Part

WEALTH_IMAGES: Final = 19669
TILES_A_CITY: Final = 36
CITIES: Final = ("austin", "chicago")
TEST_CITIES: Final = ("tyrol-w", "kitsap", "vienna")

_BANDS: Final = 8
_MOST_BANDS: Final = 1 << 26  # bytes of an image when unpacked
_EVALUATION: Final = 2000
_SALT: Final = 541433
_SHRINK: Final = 5
_MOST: Final = 1 << 28  # bytes of a tile; those of the set have 75 million


def read_wealth(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of AssetWealth."""
    listing = reading.folder / "dhs_metadata.csv"
    table = read_list(listing)
    country, wealth = column(table, "country", listing), numbers(table, "wealthpooled", listing)
    rows = split_countries(country)[name]
    if len(rows) == 0:
        raise InputError(f"{listing} has no row of the part {name!r}: zero images remain")
    folder = reading.folder / "images"
    reading.expect(len(list(folder.glob("*.npz"))), len(country), "images")
    ids = np.array([f"{country[row]}/{row}" for row in rows])
    part = reading.limited(Part(x=rows, y=wealth[rows], ids=ids), name)
    files = [f"landsat_poverty_img_{row}.npz" for row in part.x.tolist()]
    images, kept, notes = reading.collected("images", files, lambda at: _bands(folder / files[at]))
    return {name: replace(part.take(kept), x=np.stack(images), notes=notes)}


def split_countries(country: npt.NDArray[np.str_]) -> Mapping[str, IntArray]:
    """Row numbers of the parts, as WILDS draws them for fold A.

    Examples
    --------
    >>> parts = split_countries(np.array(["kenya"] * 2005 + ["mali"] * 3 + ["benin"]))
    >>> {name: len(rows) for name, rows in parts.items()}
    {'train': 5, 'val': 1000, 'test': 3}
    """
    inside = np.flatnonzero(np.isin(country, HOME))
    np.random.default_rng(ord("A") + _SALT).shuffle(inside)
    return {
        "train": inside[_EVALUATION:],
        "val": inside[: min(_EVALUATION, len(inside)) // 2],
        "test": np.flatnonzero(np.isin(country, AWAY)),
    }


def _bands(path: Path) -> npt.NDArray[np.float32]:
    try:
        bands = np.asarray(arrays(path, _MOST_BANDS)["x"], dtype=np.float32)
    except (KeyError, ValueError, TypeError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error
    if bands.ndim != 3 or bands.shape[0] != _BANDS or not np.isfinite(bands).all():
        raise UnreadableError(f"x must be finite and of shape (8, h, w), got {bands.shape}")
    return np.asarray(bilinear(np.moveaxis(bands, 0, 2), SIDE, SIDE), dtype=np.float32)


def read_buildings(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of AerialBuildingPixels; training and validation come together."""
    cities = (name,) if name in TEST_CITIES else CITIES
    cuts = {
        image.name: partial(_cut, image, labels)
        for city in cities
        for image, labels in _tiles(reading, city)
    }
    pooled = "" if name in TEST_CITIES else "aerial-building-pixels"
    return read_tiles(reading, "tiles", cuts, name, pooled=pooled)


def read_tiff(path: Path) -> AnyArray:
    """A TIFF file's pixels, shape (h, w) or (h, w, c)."""
    tifffile: Any = require("tifffile", extra="vision", of="howsure-studies")
    try:
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]  # not a series, whose description may name other files
            bounded(page.nbytes, _MOST, path.name)
            pixels = np.asarray(page.asarray())
    except UnreadableError:
        raise
    except (*BROKEN, lzma.LZMAError, tifffile.TiffFileError) as error:
        raise UnreadableError(f"{path.name}: {error}") from error
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise UnreadableError(
            f"{path.name} must be 8-bit, got {pixels.dtype} of shape {pixels.shape}"
        )
    return pixels


def _cut(tile: Path, labels: Path) -> Patches:
    image, mask = read_tiff(tile), read_tiff(labels)
    mask = mask if mask.ndim == 2 else mask.max(axis=2)
    if image.ndim != 3 or image.shape[2] < 3 or image.shape[:2] != mask.shape:
        raise UnreadableError(f"shapes {image.shape} and {mask.shape} do not fit")
    height, width = (side // _SHRINK for side in mask.shape)
    small = bilinear(image[..., :3], height, width)
    return patches(grid(small), grid(nearest(mask, height, width)), tile.stem)


def _tiles(reading: Reading, city: str) -> list[tuple[Path, Path]]:
    base = reading.folder / "train"
    base = base if base.is_dir() else reading.folder
    images, masks = (
        {path.name: path for path in base.glob(f"{folder}/{city}*.tif")}
        for folder in ("images", "gt")
    )
    check_pairs(base, images, masks)
    reading.expect(len(images), TILES_A_CITY, f"tiles of {city}")
    return [(images[name], masks[name]) for name in sorted(images)]
