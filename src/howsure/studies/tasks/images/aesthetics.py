"""EVA: how beautiful people find a photograph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from howsure.core.errors import InputError
from howsure.studies.tasks.images.files import Reading
from howsure.studies.tasks.images.lists import column, numbers, read_list
from howsure.studies.tasks.images.photographs import PHOTOGRAPH_SIDE, present, read_part, split
from howsure.studies.tasks.parts import Part

IMAGES: Final = 4_070
VOTES: Final = "data/votes_filtered.csv"
FOLDER: Final = "images/EVA_together"
_HIGHEST: Final = 10.0
_ID: Final = re.compile(r"[0-9]+")


def read(reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE) -> Mapping[str, Part]:
    """Read one part of the Explainable Visual Aesthetics data set.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``data/votes_filtered.csv``, whose columns are parted by ``=`` and among
        them are ``image_id`` and ``score``, and ``images/EVA_together/<image_id>.jpg``.
    name : {"train", "val", "test"}
        70, 10 and 20 per cent of the images, shuffled by the seed.
    side : int
        Pixels a side.

    Returns
    -------
    mapping of str to Part
        y is the mean of an image's votes, 0 … 10.

    Raises
    ------
    InputError
        If the list is missing, a score lies outside 0 … 10, an image is absent, or a file is
        broken and broken files are errors.
    """
    place = reading.folder / VOTES
    table = read_list(place, delimiter="=")
    ids, scores = column(table, "image_id", place), numbers(table, "score", place)
    wrong = [one for one in np.unique(ids).tolist() if _ID.fullmatch(one) is None]
    if wrong:
        raise InputError(f"{place}: image_id must be a number, got {wrong[0]!r}")
    outside = ~((scores >= 0.0) & (scores <= _HIGHEST))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{place}: score must lie in 0 … 10, got {scores[row]:g} for image {ids[row]}"
        )
    images, voted, votes = np.unique(ids, return_inverse=True, return_counts=True)
    means = np.bincount(voted, weights=scores) / votes
    paths = [reading.folder / FOLDER / f"{one}.jpg" for one in images.tolist()]
    there, notes = present(reading, paths, IMAGES)
    kept = np.flatnonzero(there)
    rows = split(len(kept), reading.seed, "eva")[name]
    part = read_part(
        reading,
        name,
        paths=[paths[at] for at in kept.tolist()],
        y=means[kept],
        rows=rows,
        side=side,
        notes=(*notes, f"mean of {votes.min()} to {votes.max()} votes an image"),
    )
    return {name: part}
