"""AssetWealth: satellite images of African villages, as WILDS keeps them (PovertyMap 1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.studies.tasks.countries import AWAY, HOME
from howsure.studies.tasks.images.files import SIDE, Reading, Trouble, UnreadableError, bilinear
from howsure.studies.tasks.images.lists import column, numbers, read_list
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import arrays

IMAGES: Final = 19669
_BANDS: Final = 8
_MOST: Final = 1 << 26  # bytes of an image when unpacked
_EVALUATION: Final = 2000
_SALT: Final = 541433


def read(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of fold A of the official split.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``dhs_metadata.csv`` (columns ``country`` and ``wealthpooled``) and
        ``images/landsat_poverty_img_<row>.npz``, each with an array ``x`` of shape (8, 224, 224),
        already standardised.
    name : {"train", "val", "test"}
        Which part: countries of the training set, 1,000 images of the same countries, or five
        other countries.

    Returns
    -------
    mapping of str to Part
        Images as float32 of shape (n, 64, 64, 8), resized without smoothing.

    Raises
    ------
    InputError
        If the download is not whole, or a file is broken and broken files are errors.
    """
    table = read_list(reading.folder / "dhs_metadata.csv")
    place = reading.folder / "dhs_metadata.csv"
    country = column(table, "country", place)
    wealth = numbers(table, "wealthpooled", place)
    rows = split(country)[name]
    if len(rows) == 0:
        raise InputError(f"{place} has no row of the part {name!r}: zero images remain")
    reading.expect(len(list((reading.folder / "images").glob("*.npz"))), len(country), "images")
    return {name: _part(reading, rows, country, wealth, name)}


def split(country: npt.NDArray[np.str_]) -> Mapping[str, IntArray]:
    """Row numbers of the parts, as WILDS draws them for fold A.

    Parameters
    ----------
    country : ndarray of str, shape (n,)
        The country of each row of the metadata.

    Returns
    -------
    mapping of str to ndarray of int

    Examples
    --------
    >>> parts = split(np.array(["kenya"] * 2005 + ["mali"] * 3 + ["benin"]))
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


def _part(
    reading: Reading,
    rows: IntArray,
    country: npt.NDArray[np.str_],
    wealth: FloatArray,
    name: str,
) -> Part:
    ids = np.array([f"{country[row]}/{row}" for row in rows])
    outline = reading.limited(Part(x=rows, y=wealth[rows], ids=ids), name)
    trouble = Trouble("images")
    images, kept = [], []
    for at, row in enumerate(outline.x.tolist()):
        try:
            images.append(_image(reading, row))
            kept.append(at)
        except UnreadableError as error:
            trouble.add(f"landsat_poverty_img_{row}.npz", error)
    notes = trouble.settle(reading, len(outline))
    part = outline.take(kept)
    return Part(x=np.stack(images), y=part.y, ids=part.ids, notes=notes)


def _image(reading: Reading, row: int) -> npt.NDArray[np.float32]:
    path = reading.folder / "images" / f"landsat_poverty_img_{row}.npz"
    try:
        bands = np.asarray(arrays(path, _MOST)["x"], dtype=np.float32)
    except (KeyError, ValueError, TypeError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error
    if bands.ndim != 3 or bands.shape[0] != _BANDS or not np.isfinite(bands).all():
        raise UnreadableError(f"x must be finite and of shape (8, h, w), got {bands.shape}")
    return np.asarray(bilinear(np.moveaxis(bands, 0, 2), SIDE, SIDE), dtype=np.float32)
