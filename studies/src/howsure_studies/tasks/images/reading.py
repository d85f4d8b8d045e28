"""Reading of image files, one at a time, with errors that name the file; resizing; patches."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.tasks.files import BROKEN, UnreadableError
from howsure_studies.tasks.task import Part

T = TypeVar("T")
Bytes = npt.NDArray[np.uint8]

SIDE: Final = 64
PICTURES: Final = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF")
"""Kinds that are opened; Pillow knows others, of which some run programs."""

_NAMED: Final = 5

Patches = tuple[Bytes, IntArray, npt.NDArray[np.str_]]
"""Images, the number of masked pixels of each, and their names."""


@final
@frozen(kw_only=True)
class Reading:
    """How a raw download is read."""

    folder: Path
    seed: int = 0  # fixes the random splits and the choice of fewer rows
    order: Literal["rgb", "bgr"] = "rgb"  # ``bgr`` is what the benchmark's code gave its networks
    broken: Literal["error", "skip"] = "error"  # what becomes of files that cannot be read
    complete: bool = True  # whether a download that lacks files is refused
    limits: Mapping[str, int] = field(default_factory=dict)  # rows of a part at most, at random

    def __post_init__(self) -> None:
        """Check the choices, and that the folder exists."""
        check_choice(self.order, ("rgb", "bgr"), "order")
        check_choice(self.broken, ("error", "skip"), "broken")
        if not self.folder.is_dir():
            raise InputError(f"folder must exist, got {str(self.folder)!r}")

    def expect(self, present: int, expected: int, what: str) -> None:
        """Refuse half a download."""
        if present == 0 or (self.complete and present < expected):
            hint = "; complete=False reads what is there" if present else ""
            raise InputError(
                f"{self.folder} must contain {expected} {what}, got {present}: the download is "
                f"not whole{hint}"
            )

    def coloured(self, images: Bytes) -> Bytes:
        """Images in the wanted order of colours, from red, green, blue."""
        return images if self.order == "rgb" else np.ascontiguousarray(images[..., ::-1])

    def limited(self, part: Part, name: str) -> Part:
        """At most the wanted number of rows, chosen at random, in a random order."""
        limit = self.limits.get(name)
        if limit is None or limit >= len(part):
            return part
        rows = child(self.seed, "images", "limit", name).permutation(len(part))[:limit]
        return part.take(rows)

    def collected(
        self, what: str, files: Sequence[str], read: Callable[[int], T]
    ) -> tuple[list[T], list[int], tuple[str, ...]]:
        """What is read of each file, by its number; the numbers that could be read; and notes.

        All files that cannot be read are counted and the first named, in an error or a warning.

        Examples
        --------
        >>> reading = Reading(folder=Path(), broken="skip")
        >>> def read(number):
        ...     if number == 0:
        ...         raise UnreadableError("it has no frame")
        ...     return 7
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     reading.collected("videos", ["a.avi", "b.avi"], read)
        ([7], [1], ('1 of 2 videos cannot be read: a.avi (it has no frame)',))
        """
        contents: list[T] = []
        kept: list[int] = []
        wrong: list[str] = []
        for number, name in enumerate(files):
            try:
                contents.append(read(number))
                kept.append(number)
            except UnreadableError as error:
                wrong.append(f"{name} ({error})")
        if not wrong:
            return contents, kept, ()
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        said = (
            f"{len(wrong)} of {len(files)} {what} cannot be read: {', '.join(wrong[:_NAMED])}{more}"
        )
        if self.broken == "error" or not kept:
            raise InputError(said)
        warnings.warn(said, HowsureWarning, stacklevel=2)
        return contents, kept, (said,)


def check_choice(given: object, known: tuple[str, ...], name: str) -> None:
    """Refuse a choice that is none."""
    if given not in known:
        raise InputError(f"{name} must be {' or '.join(known)}, got {given!r}")


def check_pairs(
    folder: Path,
    images: Mapping[str, Path],
    masks: Mapping[str, Path],
    first: str = "image",
    second: str = "mask",
) -> None:
    """Refuse a mask without its image, and an image without its mask."""
    alone = sorted(set(images) ^ set(masks))
    if alone:
        raise InputError(
            f"{folder}: each {first} must have its {second} and each {second} its {first}, got "
            f"{len(alone)} alone: {alone[0]}"
        )


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A picture of Pillow's, whose errors become an `UnreadableError`."""
    pillow = require("PIL.Image", extra="vision", of="howsure-studies")
    try:
        with pillow.open(path, formats=PICTURES) as image:
            yield image
    except (*BROKEN, struct.error, pillow.DecompressionBombError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def inside(folder: Path, name: str) -> Path:
    """The file of a name that a list gives, which must be in the folder itself."""
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise UnreadableError(f"must be the name of a file in {folder}, got {name!r}")
    return folder / name


def read_picture(path: Path, mode: Literal["RGB", "L"] = "RGB") -> Bytes:
    """An image file, whatever its ending, as 8 bits of shape (h, w, 3), or (h, w) if grey."""
    with opened(path) as image:
        return np.asarray(image.convert(mode), dtype=np.uint8)


def bilinear(image: AnyArray, height: int, width: int) -> AnyArray:
    """Resize by interpolation between pixel centres, the rule of OpenCV's ``INTER_LINEAR``."""
    rows_low, rows_high, down = _between(image.shape[0], height)
    cols_low, cols_high, right = _between(image.shape[1], width)
    extra = (1,) * (image.ndim - 2)
    down, right = down.reshape(-1, 1, *extra), right.reshape(1, -1, *extra)
    if image.dtype == np.uint8:  # OpenCV's arithmetic: shares of 11 bits, rounded down in between
        across, below = (np.rint(share * 2048).astype(np.int64) for share in (right, down))
        whole = image.astype(np.int64)
        lines = (whole[:, cols_low] * (2048 - across) + whole[:, cols_high] * across) >> 4
        sums = (lines[rows_low] * (2048 - below) >> 16) + (lines[rows_high] * below >> 16)
        return np.asarray(((sums + 2) >> 2).astype(np.uint8))
    top, bottom = image[rows_low].astype(np.float64), image[rows_high].astype(np.float64)
    out = top + (bottom - top) * down
    out = out[:, cols_low] + (out[:, cols_high] - out[:, cols_low]) * right
    return np.asarray(out.astype(image.dtype))


def nearest(image: AnyArray, height: int, width: int) -> AnyArray:
    """Resize by taking the pixel ⌊i · h / height⌋, the rule of OpenCV's ``INTER_NEAREST``."""
    rows = np.arange(height) * image.shape[0] // height
    columns = np.arange(width) * image.shape[1] // width
    return np.asarray(image[rows][:, columns])


def grid(image: AnyArray, side: int = SIDE) -> AnyArray:
    """Cut an image in squares from its top left; what is left over at the margins is dropped."""
    down, across = image.shape[0] // side, image.shape[1] // side
    cut = image[: down * side, : across * side]
    blocks = cut.reshape(down, side, across, side, *image.shape[2:]).swapaxes(1, 2)
    return np.asarray(blocks.reshape(down * across, side, side, *image.shape[2:]))


def _between(size: int, wanted: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Pixels to both sides of each wanted centre, and the share of the second."""
    centre = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0.0, size - 1.0)
    low = np.floor(centre).astype(np.int64)
    return low, np.minimum(low + 1, size - 1), centre - low


def patches(images: Bytes, masks: AnyArray, key: str) -> Patches:
    """Patches whose mask is above 0 somewhere, the number of such pixels, and their names."""
    counts = (masks > 0).sum(axis=(1, 2))
    kept = np.flatnonzero(counts)
    return images[kept], counts[kept], np.array([f"{key}/{number}" for number in kept], dtype=str)


def join_tiles(reading: Reading, tiles: Sequence[Patches], notes: tuple[str, ...]) -> Part:
    """All patches of all tiles."""
    if not sum(len(counts) for _, counts, _ in tiles):
        raise InputError(f"{reading.folder} has no patch with a masked pixel: zero images remain")
    x, y, ids = (np.concatenate(column) for column in zip(*tiles, strict=True))
    return Part(x=reading.coloured(x), y=y, ids=ids, notes=notes)


def pooled(
    reading: Reading, tiles: Sequence[Patches], notes: tuple[str, ...], name: str
) -> Mapping[str, Part]:
    """Shuffle all patches, and cut them at 80 per cent in training and validation."""
    part = join_tiles(reading, tiles, notes)
    order = child(reading.seed, name, "split").permutation(len(part))
    cut = int(0.8 * len(part))
    if cut == 0:
        raise InputError(f"{reading.folder} must contain at least two patches, got {len(part)}")
    parts = {"train": part.take(order[:cut]), "val": part.take(order[cut:])}
    return {key: reading.limited(value, key) for key, value in parts.items()}
