"""What the photographs of the congruence experiments share: sizes, resizing, seeded parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure.studies.tasks.images.files import (
    Bytes,
    Reading,
    Trouble,
    UnreadableError,
    read_picture,
)
from howsure.studies.tasks.parts import Part

PARTS: Final = ("train", "val", "test")
PHOTOGRAPH_SIDE: Final = 224
MOST_SIDE: Final = 1024
_NAMED: Final = 3


def cuts(rows: int) -> tuple[int, int]:
    """Where the validation and the test part begin, of so many rows: at 70 and 80 per cent.

    The rule of Young et al. (2025, B.2): ⌊0.7 n⌋ rows to train on, ⌊0.1 n⌋ to validate.

    Examples
    --------
    >>> cuts(4070)
    (2849, 3256)
    """
    train = rows * 7 // 10
    return train, train + rows // 10


def sizes(rows: int) -> Mapping[str, int]:
    """Rows of the parts, of so many.

    Examples
    --------
    >>> sizes(4070)
    {'train': 2849, 'val': 407, 'test': 814}
    """
    first, second = cuts(rows)
    return dict(zip(PARTS, (first, second - first, rows - second), strict=True))


def split(rows: int, seed: int, name: str) -> Mapping[str, IntArray]:
    """Row numbers of the parts, shuffled by the seed and the set's name.

    Examples
    --------
    >>> {part: len(rows) for part, rows in split(20, 0, "eva").items()}
    {'train': 14, 'val': 2, 'test': 4}
    """
    order = child(seed, name, "split").permutation(rows)
    return dict(zip(PARTS, np.split(order, cuts(rows)), strict=True))


def split_groups(groups: Sequence[str], seed: int, name: str) -> Mapping[str, IntArray]:
    """Row numbers of the parts, where rows of one group stay together.

    Groups are shuffled; each goes where its middle row falls, so parts hold 70, 10 and 20 per
    cent of the rows as nearly as groups allow.

    Examples
    --------
    >>> parts = split_groups(["a", "a", "b", "b"] * 5, 0, "fg-net")
    >>> sorted(len(rows) for rows in parts.values())
    [0, 10, 10]
    """
    names, member, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = child(seed, name, "split groups").permutation(len(names))
    middle = np.empty(len(names))
    middle[order] = np.cumsum(counts[order]) - counts[order] / 2.0
    place = np.digitize(middle, cuts(len(groups)))[member]
    rows = child(seed, name, "split").permutation(len(groups))
    return {part: rows[place[rows] == number] for number, part in enumerate(PARTS)}


def read_part(
    reading: Reading,
    name: str,
    *,
    paths: Sequence[Path],
    y: FloatArray,
    rows: IntArray,
    side: int,
    notes: tuple[str, ...] = (),
) -> Part:
    """Read the photographs of one part.

    Parameters
    ----------
    reading : Reading
        How; its limit of the part applies before a photograph is read.
    name : str
        The part's name.
    paths : sequence of Path
        All photographs of the set.
    y : ndarray of float, shape (n,)
        Their targets.
    rows : ndarray of int
        Those of the part.
    side : int
        Pixels a side.
    notes : tuple of str
        What is to be said of the part.

    Returns
    -------
    Part
        x of shape (n, side, side, 3), of 8 bits; ids are the files' names without their ending.

    Raises
    ------
    InputError
        If the part has no row, the side is none, or a file is broken and broken files are
        errors.
    """
    if len(rows) == 0:
        raise InputError(
            f"{reading.folder} has {len(paths)} images, too few for the part {name!r}: zero "
            "images remain"
        )
    check_whole(side, "side", 1, MOST_SIDE)
    outline = Part(x=rows, y=y[rows], ids=np.array([paths[row].stem for row in rows]))
    part = reading.limited(outline, name)
    trouble = Trouble("images")
    pixels = np.empty((len(part), side, side, 3), dtype=np.uint8)
    kept: list[int] = []
    for at, row in enumerate(part.x.tolist()):
        try:
            pixels[len(kept)] = squared(read_picture(paths[row]), side)
        except UnreadableError as error:
            trouble.add(paths[row].name, error)
            continue
        kept.append(at)
    notes = (*notes, *trouble.settle(reading, len(part)))
    part = part.take(kept)
    return Part(x=reading.coloured(pixels[: len(kept)]), y=part.y, ids=part.ids, notes=notes)


def squared(image: Bytes, side: int) -> Bytes:
    """Resize to a square by bilinear interpolation with smoothing, whatever the shape was.

    Pillow's filter, so the pixels are those of PyTorch's ``Resize((side, side))`` of a picture.

    Parameters
    ----------
    image : ndarray of uint8, shape (h, w, 3)
        Red, green and blue.
    side : int
        Pixels a side.

    Returns
    -------
    ndarray of uint8, shape (side, side, 3)

    Examples
    --------
    >>> squared(np.arange(24, dtype=np.uint8).reshape(2, 4, 3), 1)
    array([[[11, 12, 13]]], dtype=uint8)
    """
    pillow = require("PIL.Image", extra="vision")
    small = pillow.fromarray(image).resize((side, side), pillow.Resampling.BILINEAR)
    return np.asarray(small, dtype=np.uint8)


def present(
    reading: Reading, listed: Sequence[Path], expected: int
) -> tuple[npt.NDArray[np.bool_], tuple[str, ...]]:
    """Which of the listed photographs are there.

    Parameters
    ----------
    reading : Reading
        Whether half a download will do.
    listed : sequence of Path
        Where they should be.
    expected : int
        How many a whole download has.

    Returns
    -------
    there : ndarray of bool, shape (n,)
    notes : tuple of str
        The number and first names of those that are not.

    Raises
    ------
    InputError
        If none is there, or some are not and whole downloads are asked for.
    """
    there = np.array([path.is_file() for path in listed], dtype=np.bool_)
    missing = [path.name for path, known in zip(listed, there.tolist(), strict=True) if not known]
    told = f"{len(missing)} of {len(listed)} listed images are absent: " + ", ".join(
        missing[:_NAMED]
    )
    if missing and (reading.complete or len(missing) == len(listed)):
        hint = "" if len(missing) == len(listed) else "; complete=False leaves them out"
        raise InputError(f"{reading.folder}: {told}{hint}")
    reading.expect(len(listed) - len(missing), expected, "images")
    return there, (told,) if missing else ()
