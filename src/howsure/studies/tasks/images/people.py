"""COCO-People: how many people a photograph shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeGuard

import numpy as np

from howsure.core.errors import InputError
from howsure.studies.tasks.images.files import Reading
from howsure.studies.tasks.images.photographs import PHOTOGRAPH_SIDE, present, read_part, split
from howsure.studies.tasks.parts import Part

Crowds = Literal["one", "drop"]

IMAGES: Final = 64_115
ANNOTATIONS: Final = "annotations/instances_train2017.json"
FOLDERS: Final = ("train2017", "images/train2017", "images")
_PERSON: Final = "person"
_NEEDED: Final = {
    "images": ("id", "file_name"),
    "annotations": ("image_id", "category_id", "iscrowd"),
    "categories": ("id", "name"),
}
_FILE: Final = re.compile(r"[0-9]+\.jpg")


def read(
    reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE, crowds: Crowds = "one"
) -> Mapping[str, Part]:
    """Read one part of the images of COCO 2017 that show people.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``annotations/instances_train2017.json`` and the images it lists, in
        ``train2017``, ``images/train2017`` or ``images``.
    name : {"train", "val", "test"}
        70, 10 and 20 per cent of the images with at least one person, shuffled by the seed.
    side : int
        Pixels a side.
    crowds : {"one", "drop"}
        An area marked as a crowd counts as one person, as in the congruence paper, or images
        with such an area are left out, since no one has counted them.

    Returns
    -------
    mapping of str to Part
        y is the number of annotations of the category ``person``, at least 1.

    Raises
    ------
    InputError
        If the annotations are missing or not as COCO's, no image shows a person, an image is
        absent, or a file is broken and broken files are errors.
    """
    if crowds not in ("one", "drop"):
        raise InputError(f"crowds must be one or drop, got {crowds!r}")
    counted, notes = _counted(reading.folder / ANNOTATIONS, crowds)
    folder = next(
        (reading.folder / one for one in FOLDERS if any((reading.folder / one).glob("*.jpg"))),
        reading.folder / FOLDERS[0],
    )
    paths = [folder / file for file in counted]
    there, absent = present(reading, paths, IMAGES if crowds == "one" else 1)
    kept = np.flatnonzero(there)
    people = np.array(list(counted.values()), dtype=np.float64)
    rows = split(len(kept), reading.seed, "coco-people")[name]
    part = read_part(
        reading,
        name,
        paths=[paths[at] for at in kept.tolist()],
        y=people[kept],
        rows=rows,
        side=side,
        notes=(*notes, *absent),
    )
    return {name: part}


def _counted(path: Path, crowds: Crowds) -> tuple[dict[str, int], tuple[str, ...]]:
    """People by file, in the order of the files' names."""
    held = _annotations(path)
    person = [one["id"] for one in held["categories"] if one["name"] == _PERSON]
    if len(person) != 1:
        raise InputError(f"{path} must have one category {_PERSON!r}, got {len(person)}")
    files: dict[int, str] = {}
    for image in held["images"]:
        if not isinstance(image["file_name"], str) or not _FILE.fullmatch(image["file_name"]):
            raise InputError(f"{path}: file_name must be <number>.jpg, got {image['file_name']!r}")
        files[image["id"]] = image["file_name"]
    people: dict[str, int] = {}
    crowded: set[str] = set()
    for one in held["annotations"]:
        if one["category_id"] != person[0]:
            continue
        if one["image_id"] not in files:
            raise InputError(f"{path}: annotations must be of listed images, got {one['image_id']}")
        file = files[one["image_id"]]
        people[file] = people.get(file, 0) + 1
        if one["iscrowd"]:
            crowded.add(file)
    if crowds == "drop":
        people = {file: count for file, count in people.items() if file not in crowded}
    if not people:
        raise InputError(f"{path} has no image with a person: zero images remain")
    did = "count a crowd as one person" if crowds == "one" else "with a crowd left out"
    note = (f"{len(crowded)} images {did}",) if crowded else ()
    return dict(sorted(people.items())), note


def _annotations(path: Path) -> Mapping[str, list[dict[str, Any]]]:
    """The file's three lists, without the outlines, which are most of it."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"), object_hook=_slim)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for title, keys in _NEEDED.items():
        rows = held.get(title) if isinstance(held, dict) else None
        if not _all_hold(rows, keys):
            raise InputError(f"{path} must have the list {title!r} of rows with {', '.join(keys)}")
    return {title: held[title] for title in _NEEDED}


def _slim(row: dict[str, Any]) -> dict[str, Any]:
    row.pop("segmentation", None)
    return row


def _all_hold(rows: object, keys: tuple[str, ...]) -> TypeGuard[list[dict[str, Any]]]:
    if not isinstance(rows, list):
        return False
    whole = [key for key in keys if key not in ("file_name", "name")]
    return all(
        isinstance(row, dict)
        and all(key in row for key in keys)
        and all(isinstance(row[key], int) for key in whole)
        for row in rows
    )
