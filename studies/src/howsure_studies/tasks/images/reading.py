"""Reading of image files, one at a time, with errors that name the file; resizing; patches."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.tasks.files import BROKEN, UnreadableError, column, numbers, read_list
from howsure_studies.tasks.task import Part

T = TypeVar("T")
Bytes = npt.NDArray[np.uint8]

SIDE: Final = 64
PICTURES: Final = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF")
"""Kinds that are opened; Pillow knows others, of which some run programs."""

Counted = Literal["pixels", "objects"]
"""What y of a patch is the number of."""
Empty = Literal["drop", "keep"]
"""What becomes of patches without a masked pixel."""
Kind = tuple[str, int, int]
"""Modality, width and height of an image: they stand for the experiment that it is of."""

_NAMED: Final = 5
_HALF: Final = 128.0  # of 255; grey images of nuclei are below 60 or above 200
_SMOOTHED: Final = 1.0  # pixels; a rough border alone then has no maximum of its own
_APART: Final = 7  # pixels a side of the square in which a centre is the deepest

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


def read_tiles(
    reading: Reading,
    what: str,
    tiles: Mapping[str, Callable[[], Patches]],
    name: str,
    *,
    pooled: str = "",
) -> Mapping[str, Part]:
    """All patches of all tiles, which are named in messages, as one part.

    Pooled, under the name of their set, they are shuffled and cut at 80 per cent in training and
    validation.
    """
    names = list(tiles)
    contents, _, notes = reading.collected(what, names, lambda at: tiles[names[at]]())
    if not sum(len(counts) for _, counts, _ in contents):
        raise InputError(
            f"{reading.folder} has no masked pixel in the part {name!r}: zero images remain"
        )
    x, y, ids = (np.concatenate(column) for column in zip(*contents, strict=True))
    part = Part(x=reading.coloured(x), y=y, ids=ids, notes=notes)
    if not pooled:
        return {name: reading.limited(part, name)}
    order = child(reading.seed, pooled, "split").permutation(len(part))
    cut = int(0.8 * len(part))
    if cut == 0:
        raise InputError(f"{reading.folder} must contain at least two patches, got {len(part)}")
    parts = {"train": part.take(order[:cut]), "val": part.take(order[cut:])}
    return {key: reading.limited(value, key) for key, value in parts.items()}


@final
@frozen
class MaskedImage:
    """An image's file, those of its masks, and the number of objects that they show."""

    image: Path
    masks: tuple[Path, ...]
    objects: int

    def patches(self, counted: Counted, empty: Empty) -> Patches:
        """Patches on a regular grid, and what is counted in each."""
        picture = read_picture(self.image)
        single = [read_picture(mask, "L") > 0 for mask in self.masks]
        if any(mask.shape != picture.shape[:2] for mask in single):
            raise UnreadableError("a mask has not its shape")
        mask = np.any(single, axis=0)
        target = mask
        if counted == "objects":
            objects = self.objects if len(single) == 1 else 1
            target = np.sum([centres(part, objects) for part in single], axis=0)
        kept = np.flatnonzero(grid(mask).any(axis=(1, 2)) | (empty == "keep"))
        y = grid(target).sum(axis=(1, 2))[kept]
        ids = [f"{self.image.stem}/{number}" for number in kept]
        return grid(picture)[kept], y, np.array(ids, dtype=np.str_)


@final
@frozen(kw_only=True)
class MaskedImages:
    """Images beside masks, cut in patches on a regular grid, and divided by image.

    A folder holds ``images`` and ``masks`` that `listing` names; or, as they are published, one
    folder for each image, with ``images`` and a mask for each object in ``masks``.

    Attributes
    ----------
    listing : str
        A table with the columns ``image``, ``mask``, ``modality``, ``width``, ``height``.
    objects : str
        Its column with the number of objects, which one mask shows together.
    folders : str
        Pattern of the folders of single images.
    images : int
        How many there are.
    home : tuple of (str, int, int)
        Modality, width and height of the images of training, validation and the test ``home``.
    away : mapping of str to tuple
        The same of the other tests, by name.
    shares : tuple of float
        Shares of home images that train and validate; the rest is the test ``home``.
    """

    listing: str
    objects: str
    folders: str
    images: int
    home: Kind
    away: Mapping[str, Kind]
    shares: tuple[float, float]

    @property
    def tests(self) -> tuple[str, ...]:
        """Tests by name, those elsewhere first."""
        return (*self.away, "home")

    def read(
        self, reading: Reading, name: str, *, key: str, counted: Counted, empty: Empty
    ) -> Mapping[str, Part]:
        """Read one part; images fall to parts by the seed and the set's key."""
        check_choice(empty, ("drop", "keep"), "empty")
        listed = (reading.folder / self.listing).is_file()
        images, kinds = self._listed(reading) if listed else self._published(reading)
        reading.expect(len(images), self.images, "images")
        wanted = self.away.get(name, self.home)
        rows = np.array([row for row, kind in enumerate(kinds) if kind == wanted], dtype=np.int64)
        if name not in self.away:
            order = child(reading.seed, key, "split").permutation(rows)
            cuts = np.rint(np.cumsum(self.shares) * len(rows)).astype(int)
            rows = np.sort(
                dict(zip(("train", "val", "home"), np.split(order, cuts), strict=True))[name]
            )
        if len(rows) == 0:
            raise InputError(
                f"{reading.folder} has no image of the part {name!r}: zero images remain"
            )
        tiles = {
            images[row].image.name: partial(images[row].patches, counted, empty) for row in rows
        }
        return read_tiles(reading, "images", tiles, name)

    def _listed(self, reading: Reading) -> tuple[list[MaskedImage], list[Kind]]:
        """Images and their kinds, of the table."""
        path = reading.folder / self.listing
        table = read_list(path, text=("image", "mask", "modality"))
        titles = ("image", "mask", "modality")
        image, mask, modality = (column(table, title, path).tolist() for title in titles)
        whole = ("width", "height", self.objects)
        width, height, objects = (
            numbers(table, title, path).astype(int).tolist() for title in whole
        )
        images = [
            MaskedImage(
                inside(reading.folder / "images", image[row]),
                (inside(reading.folder / "masks", mask[row]),),
                objects[row],
            )
            for row in range(len(table))
        ]
        return images, list(zip(modality, width, height, strict=True))

    def _published(self, reading: Reading) -> tuple[list[MaskedImage], list[Kind]]:
        """Images and their kinds, of one folder for each."""
        images = []
        for folder in sorted(reading.folder.glob(self.folders)):
            masks = tuple(sorted(folder.glob("masks/*.png")))
            images += [MaskedImage(path, masks, len(masks)) for path in folder.glob("images/*.png")]
        names = [image.image.name for image in images]
        kinds, kept, _ = reading.collected("images", names, lambda at: kind_of(images[at].image))
        return [images[at] for at in kept], kinds


def kind_of(path: Path) -> Kind:
    """What an image shows, by its colours and brightness, with its width and height."""
    picture = read_picture(path)
    height, width = picture.shape[:2]
    if (picture != picture[..., :1]).any():
        return "stained", width, height
    dark = picture.mean() < _HALF
    return "fluorescence" if dark else "brightfield_gray", width, height


def centres(mask: AnyArray, objects: int) -> BoolArray:
    """One point inside each object of a mask, where the number of objects is known.

    Each connected part has its point farthest from the border; objects that touch share a part,
    so further local maxima of the distance to the border count, the deepest first, until there
    are as many as objects.
    """
    from scipy import ndimage

    parts, _ = ndimage.label(mask)
    depth = ndimage.gaussian_filter(ndimage.distance_transform_edt(mask), _SMOOTHED)
    peak = mask & (depth == ndimage.maximum_filter(depth, size=_APART))
    row, at = np.nonzero(peak)
    order = np.argsort(-depth[row, at], kind="stable")
    row, at = row[order], at[order]
    first = np.zeros(len(row), dtype=np.bool_)
    first[np.unique(parts[row, at], return_index=True)[1]] = True
    chosen = np.argsort(~first, kind="stable")[:objects]
    points = np.zeros(mask.shape, dtype=np.bool_)
    points[row[chosen], at[chosen]] = True
    return points
