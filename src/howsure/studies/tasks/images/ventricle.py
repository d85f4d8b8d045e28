"""VentricularVolume: frames of heart ultrasound videos, from EchoNet-Dynamic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.studies.tasks.images.files import (
    SIDE,
    Bytes,
    Reading,
    Trouble,
    UnreadableError,
    bilinear,
    inside,
)
from howsure.studies.tasks.images.lists import column, numbers, read_list
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import BROKEN

Frames = Literal["area", "order"]

VIDEOS: Final = 10030
# A play list under the name of a video would make FFmpeg open other files, and addresses.
_OPTIONS: Final = {"fflags": "+discardcorrupt", "protocol_whitelist": "file"}
_SPLITS: Final = {"train": "TRAIN", "val": "VAL", "test": "TEST"}


@final
@dataclass(frozen=True, slots=True)
class _Traced:
    """The two traced frames of a video, and whether the listed order agrees with the areas."""

    diastole: int
    systole: int
    agrees: bool


def read(reading: Reading, name: str, *, frames: Frames = "area") -> Mapping[str, Part]:
    """Read one part of the official split.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``FileList.csv``, ``VolumeTracings.csv`` and ``Videos/*.avi``.
    name : {"train", "val", "test"}
        Training and validation rows are end-systolic frames beside ESV, test rows
        end-diastolic frames beside EDV.
    frames : {"area", "order"}
        How the two traced frames of a video are told apart: the larger traced area is
        end-diastolic, or the first that is listed is (the benchmark's rule). The notes count
        the videos where they disagree.

    Returns
    -------
    mapping of str to Part
        Images of shape (n, 64, 64, 3); y in millilitres.

    Raises
    ------
    InputError
        If the download is not whole, or a video does not open and broken files are errors.
    """
    if frames not in ("area", "order"):
        raise InputError(f"frames must be area or order, got {frames!r}")
    place = reading.folder / "FileList.csv"
    table = read_list(place)
    videos = np.char.replace(column(table, "FileName", place), ".avi", "")
    volume = numbers(table, "EDV" if name == "test" else "ESV", place)
    chosen = np.char.upper(column(table, "Split", place)) == _SPLITS[name]
    present = {path.stem for path in (reading.folder / "Videos").glob("*.avi")}
    reading.expect(len(present), VIDEOS, "videos")
    traced = _tracings(reading.folder / "VolumeTracings.csv", frames)
    wanted = [row for row in np.flatnonzero(chosen).tolist() if videos[row] in traced]
    if not wanted:
        raise InputError(f"{place} has no traced video of split {name!r}: zero images remain")
    outline = Part(x=np.array(wanted), y=volume[wanted], ids=videos[wanted])
    notes = _notes(int(chosen.sum()) - len(wanted), [traced[video] for video in outline.ids])
    return {name: _part(reading, reading.limited(outline, name), traced, notes, name)}


def _notes(untraced: int, traced: list[_Traced]) -> tuple[str, ...]:
    swapped = sum(not item.agrees for item in traced)
    return (
        f"{untraced} videos without two traced frames left out",
        f"traced area and listed order disagree on {swapped} of {len(traced)} videos",
    )


def _part(
    reading: Reading,
    outline: Part,
    traced: Mapping[str, _Traced],
    notes: tuple[str, ...],
    name: str,
) -> Part:
    trouble = Trouble("videos")
    images, kept = [], []
    for at, video in enumerate(outline.ids.tolist()):
        frame = traced[video].diastole if name == "test" else traced[video].systole
        try:
            images.append(
                bilinear(
                    read_frame(inside(reading.folder / "Videos", f"{video}.avi"), frame), SIDE, SIDE
                )
            )
            kept.append(at)
        except UnreadableError as error:
            trouble.add(f"{video}.avi", error)
    notes = (*notes, *trouble.settle(reading, len(outline)))
    part = outline.take(kept)
    return Part(x=reading.coloured(np.stack(images)), y=part.y, ids=part.ids, notes=notes)


def read_frame(path: Path, number: int) -> Bytes:
    """One frame of a video; a frame that the file's end cuts short is none.

    Parameters
    ----------
    path : Path
        An AVI file.
    number : int
        Which frame, from 0.

    Returns
    -------
    ndarray of uint8, shape (h, w, 3)
        Red, green and blue.

    Raises
    ------
    UnreadableError
        If the video does not open, or has fewer frames.
    """
    av: Any = require("av", extra="vision")
    try:
        with av.open(str(path), format="avi", options=_OPTIONS) as video:
            for at, frame in enumerate(video.decode(video=0)):
                if at == number:
                    return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
    except (*BROKEN, av.FFmpegError) as error:
        raise UnreadableError(f"does not open: {error}") from error
    raise UnreadableError(f"has no frame {number}")


def _tracings(path: Path, frames: Frames) -> dict[str, _Traced]:
    """Videos with exactly two traced frames."""
    table = read_list(path)
    videos = np.char.replace(column(table, "FileName", path), ".avi", "")
    frame = numbers(table, "Frame", path).astype(int)
    ends = np.column_stack([numbers(table, title, path) for title in ("X1", "Y1", "X2", "Y2")])
    names = np.unique(videos)
    order = np.argsort(videos, kind="stable")
    found: dict[str, _Traced] = {}
    bounds = np.searchsorted(videos[order], names, side="right")
    for name, begin, end in zip(names.tolist(), np.r_[0, bounds[:-1]], bounds, strict=True):
        rows = order[begin:end]
        listed = list(dict.fromkeys(frame[rows].tolist()))
        if len(listed) == 2:
            areas = [traced_area(ends[rows[frame[rows] == number]]) for number in listed]
            agrees = areas[0] >= areas[1]
            one, two = listed if agrees or frames == "order" else listed[::-1]
            found[name] = _Traced(one, two, bool(agrees))
    return found


def traced_area(ends: FloatArray) -> float:
    """Area inside a tracing.

    Parameters
    ----------
    ends : ndarray of float, shape (k, 4)
        X1, Y1, X2, Y2 of the long axis, then of the chords from one end to the other. The
        outline runs along the first ends of the chords and back along the second.

    Returns
    -------
    float
        In square pixels.

    Examples
    --------
    >>> chords = [[0, 0, 0, 3], [0, 0, 2, 0], [0, 1, 2, 1], [0, 3, 2, 3]]
    >>> traced_area(np.array(chords, dtype=float))
    6.0
    """
    chords = ends[1:]
    outline = np.concatenate([chords[:, :2], chords[::-1, 2:]])
    after = np.roll(outline, -1, axis=0)
    cross = outline[:, 0] * after[:, 1] - outline[:, 1] * after[:, 0]
    return float(abs(cross.sum()) / 2.0)
