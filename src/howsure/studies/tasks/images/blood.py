"""BCCD: microscope pictures of blood beside the number of annotated red cells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from howsure.core.errors import InputError
from howsure.studies.tasks.images.files import (
    Bytes,
    Reading,
    Trouble,
    UnreadableError,
    inside,
    read_picture,
)
from howsure.studies.tasks.images.lists import column, numbers, read_list
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.places import found

FOLDER: Final = "img_bccd_cell_count"
HEIGHT: Final = 480
WIDTH: Final = 640
PARTS: Final = ("train", "val", "test")


def read_blood(
    folder: str | os.PathLike[str] | None = None, *, shrink: int = 5
) -> Mapping[str, Part]:
    """Read the training, validation and test part of BCCD, as its repository splits it.

    Parameters
    ----------
    folder : path, optional
        Holds ``counts.csv`` (columns ``file``, ``rbc`` and ``split``) and ``images/``. If omitted,
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
    reading = Reading(folder=found("bccd", FOLDER) if folder is None else Path(folder))
    place = reading.folder / "counts.csv"
    table = read_list(place)
    files, counts = column(table, "file", place), numbers(table, "rbc", place)
    split = column(table, "split", place)
    unknown = sorted(set(split.tolist()) - set(PARTS))
    if unknown:
        raise InputError(f"{place} must name the splits {', '.join(PARTS)}, got {unknown[0]!r}")
    images, trouble = [], Trouble("images")
    for name in files:
        try:
            images.append(
                _shrunk(read_picture(inside(reading.folder / "images", str(name))), shrink)
            )
        except UnreadableError as error:
            trouble.add(str(name), error)
    trouble.settle(reading, len(files))
    x = np.stack(images)
    parts = {}
    for part in PARTS:
        rows = np.flatnonzero(split == part)
        if not len(rows):
            raise InputError(f"{place} has no row of the part {part!r}: zero images remain")
        parts[part] = Part(x=x[rows], y=counts[rows], ids=files[rows])
    return parts


def _shrunk(image: Bytes, shrink: int) -> Bytes:
    """Means of squares of pixels."""
    if image.shape[:2] != (HEIGHT, WIDTH):
        raise UnreadableError(f"must be of {WIDTH} × {HEIGHT} pixels, got {image.shape[:2]}")
    squares = image.reshape(HEIGHT // shrink, shrink, WIDTH // shrink, shrink, 3)
    return np.asarray(np.rint(squares.mean(axis=(1, 3), dtype=np.float64)), dtype=np.uint8)
