"""AAF and FG-Net: a person's age from a photograph of the face."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np

from howsure.core.errors import InputError
from howsure.studies.tasks.images.files import Reading, Trouble, UnreadableError, opened
from howsure.studies.tasks.images.photographs import (
    PHOTOGRAPH_SIDE,
    present,
    read_part,
    split,
    split_groups,
)
from howsure.studies.tasks.parts import Part

Grey = Literal["drop", "keep"]
Persons = Literal["mixed", "apart"]

AAF_IMAGES: Final = 13_322
FG_NET_IMAGES: Final = 1_002
FG_NET_COLOURED: Final = 827
LISTS: Final = ("train.txt", "val.txt")

_LISTED: Final = re.compile(r"([0-9]{5}A([0-9]{2}))(?:\.jpe?g)?\s+[01]", re.IGNORECASE)
_FILE: Final = re.compile(r"([0-9]{3})A([0-9]{2})[a-z]?\.jpe?g", re.IGNORECASE)
_ENDINGS: Final = (".jpg", ".jpeg")


def read_aaf(reading: Reading, name: str, *, side: int = PHOTOGRAPH_SIDE) -> Mapping[str, Part]:
    """Read one part of the All-Age-Faces data set.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``aligned faces/<number>A<age>.jpg``, and ``image sets`` with
        ``train.txt`` and ``val.txt``, whose lines are a name and 0 or 1. The two lists, made for
        another question, are taken together and cut anew, as in the congruence paper.
    name : {"train", "val", "test"}
        70, 10 and 20 per cent, shuffled by the seed.
    side : int
        Pixels a side.

    Returns
    -------
    mapping of str to Part
        y in whole years.

    Raises
    ------
    InputError
        If a list is missing or a line of it is not as above, an image is listed twice or absent,
        or a file is broken and broken files are errors.
    """
    listed = _listed(reading.folder / "image sets")
    paths = [reading.folder / "aligned faces" / f"{stem}.jpg" for stem in listed]
    there, notes = present(reading, paths, AAF_IMAGES)
    kept = [path for path, known in zip(paths, there.tolist(), strict=True) if known]
    ages = np.array([float(path.stem[6:8]) for path in kept])
    rows = split(len(kept), reading.seed, "aaf")[name]
    return {name: read_part(reading, name, paths=kept, y=ages, rows=rows, side=side, notes=notes)}


def _listed(folder: Path) -> list[str]:
    """Names on both lists, in the order of their numbers."""
    found: set[str] = set()
    for path in (folder / name for name in LISTS):
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
            if match[1] in found:
                raise InputError(f"{path}, line {number}: {match[1]} must be listed once")
            found.add(match[1])
    if not found:
        raise InputError(f"{folder} must list images, got none")
    return sorted(found)


def read_fg_net(
    reading: Reading,
    name: str,
    *,
    side: int = PHOTOGRAPH_SIDE,
    grey: Grey = "drop",
    persons: Persons = "mixed",
) -> Mapping[str, Part]:
    """Read one part of the FG-NET ageing database.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``images/<person>A<age><letter>.JPG``.
    name : {"train", "val", "test"}
        70, 10 and 20 per cent, shuffled by the seed.
    side : int
        Pixels a side.
    grey : {"drop", "keep"}
        What becomes of grey photographs; the congruence paper's code drops them.
    persons : {"mixed", "apart"}
        Whether photographs of one person may lie in several parts, as in the paper, or not.

    Returns
    -------
    mapping of str to Part
        y in whole years.

    Raises
    ------
    InputError
        If there is no image, a choice is unknown, or a file is broken or has another name and
        broken files are errors.
    """
    for given, known, what in (
        (grey, ("drop", "keep"), "grey"),
        (persons, ("mixed", "apart"), "persons"),
    ):
        if given not in known:
            raise InputError(f"{what} must be {' or '.join(known)}, got {given!r}")
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
    trouble = Trouble("images")
    kept, dropped = [], 0
    for path in files:
        try:
            if _FILE.fullmatch(path.name) is None:
                raise UnreadableError("its name must be <person>A<age><letter>.JPG")
            coloured = _mode(path) == "RGB"
        except UnreadableError as error:
            trouble.add(path.name, error)
            continue
        if coloured or grey == "keep":
            kept.append(path)
        else:
            dropped += 1
    notes = trouble.settle(reading, len(files))
    return kept, (*notes, *([f"{dropped} grey images left out"] if dropped else []))


def _mode(path: Path) -> str:
    """How a picture stores its colours; only its head is read."""
    with opened(path) as image:
        return str(image.mode)
