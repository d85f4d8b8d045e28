"""Reading of image files, one at a time, with errors that name the file; and resizing."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import BROKEN
from howsure.studies.tasks.unpack import UnreadableError as UnreadableError

Bytes = npt.NDArray[np.uint8]

SIDE: Final = 64
PICTURES: Final = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF")
"""Kinds that are opened; Pillow knows others, of which some run programs."""

_NAMED: Final = 5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a raw download is read.

    Attributes
    ----------
    folder : Path
        Where it lies.
    seed : int
        Fixes the random splits and the choice of fewer rows.
    order : {"rgb", "bgr"}
        Order of colours; ``bgr`` is what the benchmark's code gave its networks.
    broken : {"error", "skip"}
        What becomes of files that cannot be read: all of them are named and counted in an error,
        or in a warning and in the part's notes.
    complete : bool
        Whether a download that lacks files is refused.
    limits : mapping of str to int
        At most so many rows of a part, chosen at random.
    """

    folder: Path
    seed: int = 0
    order: Literal["rgb", "bgr"] = "rgb"
    broken: Literal["error", "skip"] = "error"
    complete: bool = True
    limits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the choices, and that the folder exists."""
        if self.order not in ("rgb", "bgr"):
            raise InputError(f"order must be rgb or bgr, got {self.order!r}")
        if self.broken not in ("error", "skip"):
            raise InputError(f"broken must be error or skip, got {self.broken!r}")
        if not self.folder.is_dir():
            raise InputError(f"folder must exist, got {str(self.folder)!r}")

    def expect(self, present: int, expected: int, what: str) -> None:
        """Refuse half a download."""
        if present == 0 or (self.complete and present < expected):
            hint = "; complete=False reads what is there" if present else ""
            raise InputError(
                f"{self.folder} must hold {expected} {what}, got {present}: the download is "
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


@final
class Trouble:
    """Files that could not be read, named and counted.

    Examples
    --------
    >>> trouble = Trouble("videos")
    >>> trouble.add("a.avi", "it has no frame")
    >>> trouble.told(total=10)
    '1 of 10 videos cannot be read: a.avi (it has no frame)'
    """

    __slots__ = ("_what", "names")

    def __init__(self, what: str) -> None:
        self._what = what
        self.names: list[str] = []

    def add(self, name: str, reason: object) -> None:
        """Note a file and why it cannot be read."""
        self.names.append(f"{name} ({reason})")

    def told(self, total: int) -> str:
        """What is to be said."""
        first = ", ".join(self.names[:_NAMED])
        more = f" and {len(self.names) - _NAMED} more" if len(self.names) > _NAMED else ""
        return f"{len(self.names)} of {total} {self._what} cannot be read: {first}{more}"

    def settle(self, reading: Reading, total: int) -> tuple[str, ...]:
        """Raise, or warn and give the notes, as the reading asks.

        Raises
        ------
        InputError
            If a file is broken and broken files are errors, or if all are broken.
        """
        if not self.names:
            return ()
        told = self.told(total)
        if reading.broken == "error" or len(self.names) == total:
            raise InputError(told)
        warnings.warn(told, HowsureWarning, stacklevel=2)
        return (told,)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A picture of Pillow's, whose errors become an `UnreadableError`."""
    pillow = require("PIL.Image", extra="vision")
    try:
        with pillow.open(path, formats=PICTURES) as image:
            yield image
    except (*BROKEN, struct.error, pillow.DecompressionBombError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def inside(folder: Path, name: str) -> Path:
    """The file of a name that a list gives, which must lie in the folder itself."""
    if name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise UnreadableError(f"must be the name of a file in {folder}, got {name!r}")
    return folder / name


def read_picture(path: Path, mode: Literal["RGB", "L", "P"] = "RGB") -> Bytes:
    """Read an image file as 8-bit numbers.

    Parameters
    ----------
    path : Path
        One of `PICTURES`, whatever its ending.
    mode : {"RGB", "L", "P"}
        Red, green and blue; grey; or numbers as stored, in one plane.

    Returns
    -------
    ndarray of uint8, shape (h, w, 3) or (h, w)

    Raises
    ------
    UnreadableError
        If the file is missing, broken or cut short.
    """
    with opened(path) as image:
        held = np.asarray(image if mode == "P" else image.convert(mode))
    if mode == "P" and held.ndim == 3:
        held = held.max(axis=2)
    return np.asarray(held, dtype=np.uint8)


def bilinear(image: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """Resize by bilinear interpolation between pixel centres, without smoothing beforehand.

    The rule of OpenCV's ``INTER_LINEAR`` and of PyTorch without antialiasing. For 8-bit numbers
    with OpenCV's arithmetic: shares of 11 bits, rounded down in between.

    Parameters
    ----------
    image : ndarray, shape (h, w) or (h, w, c)
        8-bit or real numbers.
    height, width : int
        The wanted size.

    Returns
    -------
    ndarray of the same type

    Examples
    --------
    >>> bilinear(np.array([[0.0, 1.0], [2.0, 3.0]]), 1, 1)
    array([[1.5]])
    """
    rows_low, rows_high, down = _between(image.shape[0], height)
    cols_low, cols_high, right = _between(image.shape[1], width)
    extra = (1,) * (image.ndim - 2)
    down, right = down.reshape(-1, 1, *extra), right.reshape(1, -1, *extra)
    if image.dtype == np.uint8:
        across, below = (np.rint(share * 2048).astype(np.int64) for share in (right, down))
        whole = image.astype(np.int64)
        lines = (whole[:, cols_low] * (2048 - across) + whole[:, cols_high] * across) >> 4
        sums = (lines[rows_low] * (2048 - below) >> 16) + (lines[rows_high] * below >> 16)
        return np.asarray(((sums + 2) >> 2).astype(np.uint8))
    top, bottom = image[rows_low].astype(np.float64), image[rows_high].astype(np.float64)
    out = top + (bottom - top) * down
    out = out[:, cols_low] + (out[:, cols_high] - out[:, cols_low]) * right
    return np.asarray(out.astype(image.dtype))


def nearest(image: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """Resize by taking the pixel ⌊i · h / height⌋, the rule of OpenCV's ``INTER_NEAREST``.

    Parameters
    ----------
    image : ndarray, shape (h, w, …)
        Any numbers.
    height, width : int
        The wanted size.

    Returns
    -------
    ndarray of the same type

    Examples
    --------
    >>> nearest(np.arange(5)[None], 1, 2)
    array([[0, 2]])
    """
    rows = np.arange(height) * image.shape[0] // height
    columns = np.arange(width) * image.shape[1] // width
    return np.asarray(image[rows][:, columns])


def grid(image: npt.NDArray[Any], side: int = SIDE) -> npt.NDArray[Any]:
    """Cut an image in squares from its top left; what is left over at the margins is dropped.

    Parameters
    ----------
    image : ndarray, shape (h, w, …)
        Any numbers.
    side : int
        Pixels a side of a square.

    Returns
    -------
    ndarray, shape (⌊h / side⌋ · ⌊w / side⌋, side, side, …)

    Examples
    --------
    >>> grid(np.arange(10).reshape(2, 5), 2)[:, 0].tolist()
    [[0, 1], [2, 3]]
    """
    down, across = image.shape[0] // side, image.shape[1] // side
    cut = image[: down * side, : across * side]
    blocks = cut.reshape(down, side, across, side, *image.shape[2:]).swapaxes(1, 2)
    return np.asarray(blocks.reshape(down * across, side, side, *image.shape[2:]))


def _between(
    size: int, wanted: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Pixels to both sides of each wanted centre, and the share of the second."""
    place = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0.0, size - 1.0)
    low = np.floor(place).astype(np.int64)
    return low, np.minimum(low + 1, size - 1), place - low
