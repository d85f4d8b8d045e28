"""Photographs of the congruence experiments: faces and ages, aesthetics, people counted.

The parts are those of Young et al. (2025, B.2): 70, 10 and 20 per cent, shuffled by the seed.
A folder holds the files as they are published:

AAF
    ``aligned faces/<number>A<age>.jpg``, and ``image sets`` with ``train.txt`` and ``val.txt``,
    whose lines are a name and 0 or 1. The two lists, made for another question, are joined and
    cut anew, as in the paper.
FG-Net
    ``images/<person>A<age><letter>.JPG``.
EVA
    ``data/votes_filtered.csv``, whose columns are parted by ``=``, among them ``image_id`` and
    ``score``, and ``images/EVA_together/<image_id>.jpg``.
COCO-People
    ``annotations/instances_train2017.json`` and the images it lists, in ``train2017``,
    ``images/train2017`` or ``images``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeGuard

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.tasks.files import UnreadableError, column, numbers, read_list
from howsure_studies.tasks.images.reading import Bytes, Reading, check_choice, opened, read_picture
from howsure_studies.tasks.task import Part

Grey = Literal["drop", "keep"]
Persons = Literal["mixed", "apart"]
Crowds = Literal["one", "drop"]

PARTS: Final = ("train", "val", "test")
PHOTOGRAPH_SIDE: Final = 224
MOST_SIDE: Final = 1024

AAF_IMAGES: Final = 13_322
AAF_LISTS: Final = ("train.txt", "val.txt")
FG_NET_IMAGES: Final = 1_002
FG_NET_COLOURED: Final = 827
EVA_IMAGES: Final = 4_070
EVA_VOTES: Final = "data/votes_filtered.csv"
EVA_FOLDER: Final = "images/EVA_together"
COCO_IMAGES: Final = 64_115
COCO_ANNOTATIONS: Final = "annotations/instances_train2017.json"
COCO_FOLDERS: Final = ("train2017", "images/train2017", "images")

_NAMED: Final = 3
_LISTED: Final = re.compile(r"([0-9]{5}A([0-9]{2}))(?:\.jpe?g)?\s+[01]", re.IGNORECASE)
_FILE: Final = re.compile(r"([0-9]{3})A([0-9]{2})[a-z]?\.jpe?g", re.IGNORECASE)
_ENDINGS: Final = (".jpg", ".jpeg")
_EVA_ID: Final = re.compile(r"[0-9]+")
_EVA_HIGHEST: Final = 10.0
_COCO_FILE: Final = re.compile(r"[0-9]+\.jpg")
_PERSON: Final = "person"
_NEEDED: Final = {
    "images": ("id", "file_name"),
    "annotations": ("image_id", "category_id", "iscrowd"),
    "categories": ("id", "name"),
}


def cuts(rows: int) -> tuple[int, int]:
    """Where the validation and the test part begin, of so many rows: at 70 and 80 per cent."""
    train = rows * 7 // 10
    return train, train + rows // 10


def sizes(rows: int) -> Mapping[str, int]:
    """Rows of the parts, of so many."""
    first, second = cuts(rows)
    return dict(zip(PARTS, (first, second - first, rows - second), strict=True))


def split(rows: int, seed: int, name: str) -> Mapping[str, IntArray]:
    """Row numbers of the parts, shuffled by the seed and the set's name."""
    order = child(seed, name, "split").permutation(rows)
    return dict(zip(PARTS, np.split(order, cuts(rows)), strict=True))


def split_groups(groups: Sequence[str], seed: int, name: str) -> Mapping[str, IntArray]:
    """Row numbers of the parts, where rows of one group stay together."""
    names, member, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = child(seed, name, "split groups").permutation(len(names))
    middle = np.empty(len(names))
    middle[order] = np.cumsum(counts[order]) - counts[order] / 2.0
    part_of_row = np.digitize(middle, cuts(len(groups)))[member]
    rows = child(seed, name, "split").permutation(len(groups))
    return {part: rows[part_of_row[rows] == number] for number, part in enumerate(PARTS)}


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
    """Read the photographs of one part."""
    if len(rows) == 0:
        raise InputError(
            f"{reading.folder} has {len(paths)} images, too few for the part {name!r}: zero "
            "images remain"
        )
    check_whole(side, "side", 1, MOST_SIDE)
    outline = Part(x=rows, y=y[rows], ids=np.array([paths[row].stem for row in rows]))
    part = reading.limited(outline, name)
    chosen = [paths[row] for row in part.x.tolist()]
    pixels = np.empty((len(part), side, side, 3), dtype=np.uint8)  # one copy, for some fill 7 GB

    def read(at: int) -> None:
        pixels[at] = squared(read_picture(chosen[at]), side)

    _, kept, broken = reading.collected("images", [path.name for path in chosen], read)
    if broken:
        part, pixels = part.take(kept), pixels[kept]
    return Part(x=reading.coloured(pixels), y=part.y, ids=part.ids, notes=(*notes, *broken))


def squared(image: Bytes, side: int) -> Bytes:
    """Resize to a square by bilinear interpolation with smoothing, whatever the shape was."""
    pillow = require("PIL.Image", extra="vision", of="howsure-studies")
    small = pillow.fromarray(image).resize((side, side), pillow.Resampling.BILINEAR)
    return np.asarray(small, dtype=np.uint8)


def read_listed(
    reading: Reading,
    name: str,
    key: str,
    *,
    paths: Sequence[Path],
    y: FloatArray,
    expected: int,
    side: int,
    notes: tuple[str, ...] = (),
) -> Mapping[str, Part]:
    """Read one part of the photographs that a list names, those that are absent left out."""
    there = np.array([path.is_file() for path in paths], dtype=np.bool_)
    missing = [path.name for path, known in zip(paths, there.tolist(), strict=True) if not known]
    said = f"{len(missing)} of {len(paths)} listed images are absent: "
    said += ", ".join(missing[:_NAMED])
    if missing and (reading.complete or not there.any()):
        hint = "; complete=False leaves them out" if there.any() else ""
        raise InputError(f"{reading.folder}: {said}{hint}")
    reading.expect(int(there.sum()), expected, "images")
    kept = np.flatnonzero(there)
    part = read_part(
        reading,
        name,
        paths=[paths[at] for at in kept.tolist()],
        y=y[kept],
        rows=split(len(kept), reading.seed, key)[name],
        side=side,
        notes=(*notes, said) if missing else notes,
    )
    return {name: part}


def read_aaf(reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE) -> Mapping[str, Part]:
    """Read one part of the All-Age-Faces data set; y is an age in whole years."""
    listed = _listed(reading.folder / "image sets")
    paths = [reading.folder / "aligned faces" / f"{stem}.jpg" for stem in listed]
    ages = np.array([float(stem[6:8]) for stem in listed])
    return read_listed(reading, name, "aaf", paths=paths, y=ages, expected=AAF_IMAGES, side=side)


def _listed(folder: Path) -> list[str]:
    """Names on both lists, in the order of their numbers."""
    names: set[str] = set()
    for path in (folder / name for name in AAF_LISTS):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            match = _LISTED.fullmatch(line.strip())
            if match is None:
                raise InputError(
                    f"{path}, line {number} must be <number>A<age>.jpg and 0 or 1, got {line!r}"
                )
            if match[1] in names:
                raise InputError(f"{path}, line {number}: {match[1]} must be listed once")
            names.add(match[1])
    if not names:
        raise InputError(f"{folder} must list images, got none")
    return sorted(names)


def read_fg_net(
    reading: Reading,
    name: str,
    *,
    side: int = PHOTOGRAPH_SIDE,
    grey: Grey = "drop",
    persons: Persons = "mixed",
) -> Mapping[str, Part]:
    """Read one part of the FG-NET ageing database; y is an age in whole years."""
    check_choice(grey, ("drop", "keep"), "grey")
    check_choice(persons, ("mixed", "apart"), "persons")
    paths, notes = _photographs(reading, grey)
    ages = np.array([float(path.name[4:6]) for path in paths])
    if persons == "apart":
        parts = split_groups([path.name[:3] for path in paths], reading.seed, "fg-net")
    else:
        parts = split(len(paths), reading.seed, "fg-net")
    part = read_part(reading, name, paths=paths, y=ages, rows=parts[name], side=side, notes=notes)
    return {name: part}


def _photographs(reading: Reading, grey: Grey) -> tuple[list[Path], tuple[str, ...]]:
    folder = reading.folder / "images"
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [
        path
        for path in files
        if path.suffix.lower() in _ENDINGS and not path.name.startswith(".") and path.is_file()
    ]
    reading.expect(len(files), FG_NET_IMAGES, "images")

    def mode(number: int) -> str:
        if _FILE.fullmatch(files[number].name) is None:
            raise UnreadableError("its name must be <person>A<age><letter>.JPG")
        with opened(files[number]) as image:  # only its head is read
            return str(image.mode)

    modes, kept, notes = reading.collected("images", [path.name for path in files], mode)
    chosen = [
        at for at, colour in zip(kept, modes, strict=True) if grey == "keep" or colour == "RGB"
    ]
    if len(chosen) < len(kept):
        notes = (*notes, f"{len(kept) - len(chosen)} grey images left out")
    return [files[at] for at in chosen], notes


def read_eva(reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE) -> Mapping[str, Part]:
    """Read one part of the Explainable Visual Aesthetics data set; y is an image's mean vote."""
    listing = reading.folder / EVA_VOTES
    table = read_list(listing, delimiter="=")
    ids, scores = column(table, "image_id", listing), numbers(table, "score", listing)
    wrong = [image for image in np.unique(ids).tolist() if _EVA_ID.fullmatch(image) is None]
    if wrong:
        raise InputError(f"{listing}: image_id must be a number, got {wrong[0]!r}")
    outside = ~((scores >= 0.0) & (scores <= _EVA_HIGHEST))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{listing}: score must be in 0 … 10, got {scores[row]:g} for image {ids[row]}"
        )
    images, voted, votes = np.unique(ids, return_inverse=True, return_counts=True)
    means = np.bincount(voted, weights=scores) / votes
    paths = [reading.folder / EVA_FOLDER / f"{image}.jpg" for image in images.tolist()]
    note = f"mean of {votes.min()} to {votes.max()} votes an image"
    return read_listed(
        reading, name, "eva", paths=paths, y=means, expected=EVA_IMAGES, side=side, notes=(note,)
    )


def read_coco(
    reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE, crowds: Crowds = "one"
) -> Mapping[str, Part]:
    """Read one part of the images of COCO 2017 that show people; y is how many, at least 1."""
    check_choice(crowds, ("one", "drop"), "crowds")
    counted, notes = _counted(reading.folder / COCO_ANNOTATIONS, crowds)
    folder = next(
        (
            reading.folder / inner
            for inner in COCO_FOLDERS
            if any((reading.folder / inner).glob("*.jpg"))
        ),
        reading.folder / COCO_FOLDERS[0],
    )
    paths = [folder / file for file in counted]
    return read_listed(
        reading,
        name,
        "coco-people",
        paths=paths,
        y=np.array(list(counted.values()), dtype=np.float64),
        expected=COCO_IMAGES if crowds == "one" else 1,
        side=side,
        notes=notes,
    )


def _counted(path: Path, crowds: Crowds) -> tuple[dict[str, int], tuple[str, ...]]:
    """People by file, in the order of the files' names."""
    lists = _annotations(path)
    person = [category["id"] for category in lists["categories"] if category["name"] == _PERSON]
    if len(person) != 1:
        raise InputError(f"{path} must have one category {_PERSON!r}, got {len(person)}")
    files: dict[int, str] = {}
    for image in lists["images"]:
        if not isinstance(image["file_name"], str) or not _COCO_FILE.fullmatch(image["file_name"]):
            raise InputError(f"{path}: file_name must be <number>.jpg, got {image['file_name']!r}")
        files[image["id"]] = image["file_name"]
    people: dict[str, int] = {}
    crowded: set[str] = set()
    for annotation in lists["annotations"]:
        if annotation["category_id"] != person[0]:
            continue
        if annotation["image_id"] not in files:
            raise InputError(
                f"{path}: annotations must be of listed images, got {annotation['image_id']}"
            )
        file = files[annotation["image_id"]]
        people[file] = people.get(file, 0) + 1
        if annotation["iscrowd"]:
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
        lists = json.loads(path.read_text(encoding="utf-8"), object_hook=_slim)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for title, keys in _NEEDED.items():
        rows = lists.get(title) if isinstance(lists, dict) else None
        if not _all_hold(rows, keys):
            raise InputError(f"{path} must have the list {title!r} of rows with {', '.join(keys)}")
    return {title: lists[title] for title in _NEEDED}


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
