"""SkinLesionPixels: dermatoscopic images, from HAM10000."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.images.files import (
    SIDE,
    Reading,
    Trouble,
    UnreadableError,
    bilinear,
    nearest,
    read_picture,
)
from howsure.studies.tasks.images.lists import column, read_list
from howsure.studies.tasks.parts import Part

IMAGES: Final = 10015
_TEST: Final = "rosendahl"
_ENDING: Final = "_segmentation"


def read(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part: the images of one source are the test, the others are shuffled and cut.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``HAM10000_metadata`` (a CSV file with columns ``image_id`` and
        ``dataset``), images ``<image_id>.jpg`` and masks ``<image_id>_segmentation.png``, in
        folders of any name.
    name : {"train", "val", "test"}
        85 and 15 per cent of the other sources, or the source ``rosendahl``.

    Returns
    -------
    mapping of str to Part
        y is the number of lesion pixels after the mask's reduction to 64 by 64; it may be 0.

    Raises
    ------
    InputError
        If the download is not whole, a mask has no image, or a file is broken and broken files
        are errors.
    """
    place = _metadata(reading.folder)
    table = read_list(place)
    ids, source = column(table, "image_id", place), column(table, "dataset", place)
    images = {path.stem: path for path in sorted(reading.folder.rglob("*.jpg"))}
    masks = {
        path.stem.removesuffix(_ENDING): path
        for path in sorted(reading.folder.rglob(f"*{_ENDING}.png"))
    }
    reading.expect(len(set(ids.tolist()) & set(images)), IMAGES, "images")
    alone = sorted(set(masks) - set(images))
    if alone:
        raise InputError(f"{len(alone)} masks have no image: {alone[0]}{_ENDING}.png")
    wanted = [one for one in _split(ids, source, reading.seed)[name] if one in images]
    if not wanted:
        raise InputError(f"{place} has no image of the part {name!r}: zero images remain")
    outline = Part(x=np.arange(len(wanted)), y=np.zeros(len(wanted)), ids=np.array(wanted))
    chosen = reading.limited(outline, name).ids.tolist()
    return {name: _part(reading, chosen, images, masks)}


def _metadata(folder: Path) -> Path:
    found = [path for path in sorted(folder.rglob("HAM10000_metadata*")) if path.is_file()]
    if not found:
        raise InputError(f"{folder} must hold HAM10000_metadata, got no such file")
    return found[0]


def _split(
    ids: npt.NDArray[np.str_], source: npt.NDArray[np.str_], seed: int
) -> Mapping[str, list[str]]:
    """Names of the parts' images; which go to training depends on the seed alone."""
    rest = np.sort(ids[source != _TEST])
    rest = rest[child(seed, "skin-lesion-pixels", "split").permutation(len(rest))]
    cut = int(0.85 * len(rest))
    return {
        "train": rest[:cut].tolist(),
        "val": rest[cut:].tolist(),
        "test": np.sort(ids[source == _TEST]).tolist(),
    }


def _part(
    reading: Reading, chosen: list[str], images: Mapping[str, Path], masks: Mapping[str, Path]
) -> Part:
    trouble = Trouble("images")
    pictures, counts, kept = [], [], []
    for one in chosen:
        try:
            if one not in masks:
                raise UnreadableError("it has no mask")
            picture, mask = read_picture(images[one]), read_picture(masks[one], "L")
            if picture.shape[:2] != mask.shape:
                raise UnreadableError(f"the mask's shape {mask.shape} is not the image's")
        except UnreadableError as error:
            trouble.add(f"{one}.jpg", error)
            continue
        pictures.append(bilinear(picture, SIDE, SIDE))
        counts.append(int((nearest(mask, SIDE, SIDE) > 0).sum()))
        kept.append(one)
    notes = trouble.settle(reading, len(chosen))
    x = reading.coloured(np.stack(pictures))
    return Part(x=x, y=np.array(counts), ids=np.array(kept), notes=notes)
