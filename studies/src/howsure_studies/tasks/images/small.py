"""Two small real sets: red cells in pictures of blood, to be counted, and turned digits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.tasks.files import (
    UnreadableError,
    bounded,
    column,
    find_folder,
    gunzipped,
    numbers,
    read_list,
)
from howsure_studies.tasks.images.reading import Bytes, Reading, inside, read_picture
from howsure_studies.tasks.task import Part

BLOOD: Final = "img_bccd_cell_count"
"""The folder of blood cells, in microscope images."""
BCCD: Final = "BCCD"
BLOOD_IMAGES: Final = 364
HEIGHT: Final = 480
WIDTH: Final = 640
DIGITS: Final = "img_mnist_t10k"
"""The folder of handwritten digits."""
SIDE: Final = 28
PARTS: Final = ("train", "val", "test")

_IMAGES: Final = "t10k-images-idx3-ubyte.gz"
_LABELS: Final = "t10k-labels-idx1-ubyte.gz"
_RED: Final = re.compile(r"<name>\s*RBC\s*</name>")
_MOST: Final = 1 << 26  # bytes of a file when unpacked


def read_blood(
    folder: str | os.PathLike[str] | None = None, *, shrink: int = 5
) -> Mapping[str, Part]:
    """Read the training, validation and test part of BCCD, as its repository splits it.

    Parameters
    ----------
    folder : path, optional
        Holds the repository's ``BCCD``, or ``counts.csv`` (columns ``file``, ``rbc`` and
        ``split``) and ``images/``. If omitted,
        ``img_bccd_cell_count`` is looked for under ``HOWSURE_DATA`` and in the user's cache.
    shrink : int
        Each square of so many pixels a side becomes its mean; must divide 480 and 640.

    Returns
    -------
    mapping of str to Part
        ``train``, ``val`` and ``test``: images as uint8 of shape (n, 480/shrink, 640/shrink, 3),
        and the number of red cells. Annotations miss cells where they overlap in heaps.

    Raises
    ------
    DataNotFoundError
        If the folder is not on this machine.
    InputError
        If a file is missing, broken or of another size, a number or a split is none, or `shrink`
        does not fit.

    Notes
    -----
    364 pictures of 640 × 480 pixels, of github.com/Shenggan/BCCD_Dataset (MIT licence).
    """
    whole = isinstance(shrink, int) and not isinstance(shrink, bool)
    if not whole or shrink < 1 or HEIGHT % shrink or WIDTH % shrink:
        raise InputError(f"shrink must divide {HEIGHT} and {WIDTH}, got {shrink!r}")
    reading = Reading(folder=find_folder("bccd", BLOOD) if folder is None else Path(folder))
    if (reading.folder / BCCD).is_dir():
        source, pictures = reading.folder / BCCD, reading.folder / BCCD / "JPEGImages"
        files, counts, split = _annotated(source)
    else:
        source, pictures = reading.folder / "counts.csv", reading.folder / "images"
        files, counts, split = _listed(source)
    images, _, _ = reading.collected(
        "images",
        files.tolist(),
        lambda at: _shrunk(read_picture(inside(pictures, str(files[at]))), shrink),
    )
    x = np.stack(images)
    parts = {}
    for part in PARTS:
        rows = np.flatnonzero(split == part)
        if not len(rows):
            raise InputError(f"{source} has no row of the part {part!r}: zero images remain")
        parts[part] = Part(x=x[rows], y=counts[rows], ids=files[rows])
    return parts


def _listed(listing: Path) -> tuple[npt.NDArray[np.str_], FloatArray, npt.NDArray[np.str_]]:
    """Files, numbers of red cells and parts, of a table of them."""
    table = read_list(listing)
    split = column(table, "split", listing)
    unknown = sorted(set(split.tolist()) - set(PARTS))
    if unknown:
        raise InputError(f"{listing} must name the splits {', '.join(PARTS)}, got {unknown[0]!r}")
    return column(table, "file", listing), numbers(table, "rbc", listing), split


def _annotated(folder: Path) -> tuple[npt.NDArray[np.str_], FloatArray, npt.NDArray[np.str_]]:
    """The same of the repository's own folder: boxes called RBC, and lists of the parts."""
    split: dict[str, str] = {}
    for part in PARTS:
        path = folder / "ImageSets" / "Main" / f"{part}.txt"
        for stem in _text(path).split():
            if split.setdefault(stem, part) != part:
                raise InputError(f"{path} must name no picture of another part, got {stem!r}")
    stems = sorted(split)
    counts = [_boxes(inside(folder / "Annotations", f"{stem}.xml")) for stem in stems]
    files = np.array([f"{stem}.jpg" for stem in stems], dtype=np.str_)
    parts = np.array([split[stem] for stem in stems], dtype=np.str_)
    return files, np.array(counts, dtype=np.float64), parts


def _boxes(path: Path) -> int:
    """How many boxes of an annotation are called RBC; it is text, which needs no parser here."""
    text = _text(path)
    if "<annotation" not in text or "</annotation>" not in text:
        raise UnreadableError(f"{path} must be an annotation, whole, got another text")
    return len(_RED.findall(text))


def _text(path: Path) -> str:
    try:
        bounded(path.stat().st_size, _MOST, path)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def _shrunk(image: Bytes, shrink: int) -> Bytes:
    """Means of squares of pixels."""
    if image.shape[:2] != (HEIGHT, WIDTH):
        raise UnreadableError(f"must be of {WIDTH} × {HEIGHT} pixels, got {image.shape[:2]}")
    squares = image.reshape(HEIGHT // shrink, shrink, WIDTH // shrink, shrink, 3)
    return np.asarray(np.rint(squares.mean(axis=(1, 3), dtype=np.float64)), dtype=np.uint8)


def read_digits(
    folder: str | os.PathLike[str] | None = None,
) -> tuple[Bytes, IntArray]:
    """Read the 10,000 test images of MNIST and their digits."""
    home = find_folder("mnist", DIGITS) if folder is None else Path(folder)
    images = _idx(home / _IMAGES, 3)
    digits = _idx(home / _LABELS, 1)
    if images.shape[1:] != (SIDE, SIDE) or len(images) != len(digits):
        raise UnreadableError(
            f"{home} must contain as many images of {SIDE} × {SIDE} pixels as digits, got "
            f"{images.shape} and {digits.shape}"
        )
    return images[..., None], digits.astype(np.int64)


def rotated_digits(
    folder: str | os.PathLike[str] | None = None,
    *,
    rows: int | None = None,
    most: float = 60.0,
    seed: int = 0,
) -> Mapping[str, Part]:
    """Digits turned by angles drawn uniformly, split at random: 70, 10 and 20 per cent.

    Parameters
    ----------
    folder : path, optional
        As in `read_digits`.
    rows : int, optional
        How many digits to take, at random; all if omitted.
    most : float
        Angles lie between −most and most, in degrees, counter-clockwise; above 0, at most 180.
    seed : int
        Fixes the choice of digits, angles and the split. No digit is in two parts.

    Returns
    -------
    mapping of str to Part
        ``train``, ``val`` and ``test``: images as uint8 of shape (n, 28, 28, 1), and angles in
        degrees. An id is the number of the image and its digit, as ``17/8``.

    Raises
    ------
    DataNotFoundError
        If the folder is not on this machine.
    InputError
        If an option breaks its rule, or what is read does.
    """
    if not 0.0 < most <= 180.0:
        raise InputError(f"most must be above 0 and at most 180, got {most!r}")
    images, digits = read_digits(folder)
    wanted = len(images) if rows is None else rows
    if not 10 <= wanted <= len(images):
        raise InputError(f"rows must be between 10 and {len(images)}, got {rows!r}")
    order = child(seed, "digits", "split").permutation(len(images))[:wanted]
    angles = child(seed, "digits", "angles").uniform(-most, most, len(images))[order]
    x = turned(images[order, :, :, 0], angles)[..., None]
    ids = np.array([f"{row}/{digits[row]}" for row in order], dtype=np.str_)
    whole = Part(x=x, y=angles, ids=ids)
    cuts = (int(0.7 * wanted), int(0.8 * wanted))
    places = np.split(np.arange(wanted), cuts)
    return dict(zip(("train", "val", "test"), map(whole.take, places), strict=True))


def turned(images: Bytes, angles: npt.ArrayLike) -> Bytes:
    """Images turned counter-clockwise about their centres, by linear interpolation; 0 outside."""
    from scipy.ndimage import rotate

    given = np.asarray(angles, dtype=np.float64)
    if given.shape != (len(images),) or not np.isfinite(given).all():
        raise InputError(f"angles must be {len(images)} finite numbers, got shape {given.shape}")
    out = [
        rotate(image.astype(np.float64), angle, reshape=False, order=1)
        for image, angle in zip(images, given, strict=True)
    ]
    return np.asarray(np.rint(np.stack(out)), dtype=np.uint8)


def _idx(path: Path, dimensions: int) -> Bytes:
    """An array of bytes in the idx form: two zeros, type 8, number of dimensions, sizes."""
    raw = gunzipped(path, _MOST)
    start = 4 + 4 * dimensions
    if raw[:4] != bytes((0, 0, 8, dimensions)) or len(raw) < start:
        raise UnreadableError(f"{path} must have bytes in {dimensions} dimensions as idx has them")
    shape = np.frombuffer(raw, ">u4", dimensions, offset=4).astype(int)
    if len(raw) - start != int(np.prod(shape)):
        raise UnreadableError(
            f"{path} must contain {int(np.prod(shape))} bytes, got {len(raw) - start}"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)
