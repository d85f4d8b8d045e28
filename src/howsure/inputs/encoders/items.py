"""What an encoder is given: texts or images, checked at the door and read batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import IntArray, shortened
from howsure.core.errors import HowsureError, InputError, message_of
from howsure.core.optional import require

Kind = Literal["text", "image"]
Pixels = npt.NDArray[np.uint8]

KINDS = ("text", "image")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_NAMED = 5  # bad files that a message names
_SHOWN = 120  # characters of a path that a message shows
_WIDE_MODES = ("I", "F")  # Pillow's modes of more than 8 bits a channel begin so


class Items:
    """Things to be encoded, one a row: of no stated kind, and handed on as they came."""

    kind: Kind | None = None

    def __init__(self, values: Sequence[Any] | npt.NDArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> list[Any]:
        """The items of some rows, as an encoder wants them."""
        return [self.values[row] for row in rows]


@final
class Texts(Items):
    """Texts, all of them Unicode."""

    kind = "text"

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(list(map(str, values)))
        for row, text in enumerate(self.values):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"items must hold Unicode text, got {shortened(text)} at row {row}"
                ) from error


@final
class ImageFiles(Items):
    """Paths of image files, which are read when their batch comes."""

    kind = "image"

    def __init__(self, paths: Sequence[str | Path]) -> None:
        super().__init__([os.path.expanduser(path) for path in paths])
        missing = [path for path in self.values if not os.path.isfile(path)]
        if missing:
            raise InputError(
                f"items must be image files that exist, got {len(missing)} of {len(self)} "
                f"missing: {_named(missing)}"
            )

    def take(self, rows: IntArray) -> list[Pixels]:
        """The pixels of some files; the error counts and names all that cannot be read."""
        images = []
        for row in rows:
            image = read_image(self.values[row])
            if isinstance(image, str):
                bad = [path for path in self.values[row:] if isinstance(read_image(path), str)]
                raise InputError(
                    f"items must be image files that can be read, got {len(bad)} of {len(self)} "
                    f"that cannot: {_named(bad)} (the first: {image})"
                )
            images.append(image)
        return images


@final
class ImageArray(Items):
    """Images of one size in an array."""

    kind = "image"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        if array.ndim not in (3, 4):
            raise InputError(
                "images must have shape (n, height, width) or (n, height, width, channels), "
                f"got {array.shape}"
            )
        if array.ndim == 3 and array.shape[2] in (3, 4):
            raise InputError(
                f"images must have shape (n, height, width[, channels]), got {array.shape}, "
                "which looks like one image: give it as image[None]"
            )
        if array.ndim == 4 and array.shape[3] not in (1, 3, 4):
            raise InputError(
                "images must have 1, 3 or 4 channels, in the last dimension, got shape "
                f"{array.shape}"
            )
        if 0 in array.shape:
            raise InputError(f"images must have pixels, got shape {array.shape}")
        super().__init__(array)
        self._scale = _scale(array)

    def take(self, rows: IntArray) -> list[Pixels]:
        batch: Any = np.asarray(self.values)[rows]
        pixels = np.rint(batch * self._scale).astype(np.uint8) if self._scale else batch
        pixels = pixels.astype(np.uint8, copy=False)
        if pixels.ndim == 3:
            pixels = pixels[..., None]
        pixels = np.repeat(pixels, 3, axis=3) if pixels.shape[3] == 1 else pixels[..., :3]
        return list(np.ascontiguousarray(pixels))


def as_items(items: Any, kind: str | None) -> Items:
    """Check texts or images at the door, and find out which they are."""
    if len(getattr(items, "shape", ())) > 1:
        items = np.asarray(items)
    if isinstance(items, np.ndarray) and items.dtype.kind not in "OSU":
        return ImageArray(_not_text(items, kind))
    values = as_list(items)
    missing = [row for row, value in enumerate(values) if _is_missing(value)]
    if missing:
        raise InputError(
            f"items must hold nothing missing, got {len(missing)} (first at row {missing[0]})"
        )
    wanted = _wanted(values)
    if wanted is np.ndarray:
        return ImageArray(_stacked(_not_text(values, kind)))
    if wanted is Path:
        return ImageFiles(_not_text(values, kind))
    return ImageFiles(values) if _string_kind(values, kind) == "image" else Texts(values)


def as_list(items: Any) -> list[Any]:
    """Items as a list that is not empty."""
    if isinstance(items, str | bytes | os.PathLike | Mapping):
        raise InputError(f"items must be a sequence of texts or images, got {shortened(items)}")
    try:
        values = list(np.asarray(items) if len(getattr(items, "shape", ())) > 1 else items)
    except TypeError as error:
        raise InputError(
            f"items must be a sequence of texts or images, got {shortened(items)}"
        ) from error
    if not values:
        raise InputError("items must hold at least one, got none")
    return values


def are_image_files(texts: Iterable[str]) -> int:
    """How many texts end as names of image files do."""
    return sum(text.lower().endswith(_SUFFIXES) for text in texts)


def read_image(path: str) -> Pixels | str:
    """Read an image file as RGB; its first frame, turned as its orientation tag says."""
    pil = require("PIL.Image", extra="text")
    turned = require("PIL.ImageOps", extra="text").exif_transpose
    try:
        with pil.open(path) as image:
            if image.mode.startswith(_WIDE_MODES):
                return (
                    f"more than 8 bits a channel (mode {image.mode}); give such images as an "
                    "array scaled to 0 to 1"
                )
            pixels: Pixels = np.asarray(turned(image).convert("RGB"))
    except (OSError, ValueError, SyntaxError, EOFError, pil.DecompressionBombError) as error:
        return message_of(error)
    return pixels


def _named(paths: list[str]) -> str:
    """Some paths for a message; of long ones the end, which tells them apart."""
    shown = [repr(path if len(path) <= _SHOWN else "…" + path[-_SHOWN:]) for path in paths[:_NAMED]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _wanted(values: list[Any]) -> type:
    """The one type of all items: str, Path or ndarray."""
    for accepted in (str, Path, np.ndarray):
        if all(isinstance(value, accepted) for value in values):
            return accepted
    names = sorted({type(value).__name__ for value in values})
    raise InputError(
        f"items must be all texts, all paths or all image arrays, got {', '.join(names)}"
    )


def _not_text(value: Any, kind: str | None) -> Any:
    if kind == "text":
        raise InputError("kind 'text' needs strings, got images")
    return value


def _string_kind(values: list[str], kind: str | None) -> str:
    if kind is not None:
        return kind
    files = are_image_files(values)
    if 0 < files < len(values):
        raise InputError(
            f"kind must be given where {files} of {len(values)} strings end like image files, "
            "got None: pass 'text' or 'image'"
        )
    return "image" if files else "text"


def _stacked(values: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    shapes = sorted({value.shape for value in values})
    if len(shapes) > 1:
        raise InputError(
            f"images in arrays must have one shape, got {len(shapes)}: {shortened(shapes)}"
        )
    return np.stack(values)


def _is_missing(value: object) -> bool:
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _scale(array: npt.NDArray[Any]) -> float | None:
    """What brings numbers to 0…255; None where they are there."""
    kind = array.dtype.kind
    if kind not in "biuf":
        raise InputError(f"images must hold numbers, got dtype {array.dtype}")
    if array.dtype == np.uint8:
        return None
    low, high = array.min(), array.max()
    top = 255 if kind in "iu" else 1
    if not (low >= 0 and high <= top):
        raise InputError(
            f"images of dtype {array.dtype} must lie between 0 and {top}, got {low:g} to {high:g}"
        )
    return None if kind in "iu" else 255.0


# ---- safe loading of pretrained models: errors that name them, and no global state left changed --

_FAILURES = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(ImportError, AssertionError),
)


@contextmanager
def opening(name: str) -> Iterator[None]:
    """Load a model: failures become `InputError`, and torch's random state stays as it was."""
    torch = require("torch", extra="text")
    broken = require("safetensors", extra="text").SafetensorError
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except HowsureError:
        raise
    except (broken, *_FAILURES) as error:
        raise InputError(f"encoder {name!r} cannot be loaded: {message_of(error)}") from error


@contextmanager
def working(name: str) -> Iterator[None]:
    """Encode with a model: its failures become `InputError`."""
    try:
        yield
    except HowsureError:
        raise
    except _FAILURES as error:
        raise InputError(f"encoder {name!r} fails on these items: {message_of(error)}") from error


@contextmanager
def quiet(log: Any) -> Iterator[None]:
    """Hold back the loading reports of `transformers`, and then let it speak as before."""
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


# ---- what turns one batch of items into vectors --------------------------------------------------


@dataclass(slots=True, eq=False)
class Embedder:
    """Turns batches into vectors."""

    embed: Callable[[list[Any]], npt.ArrayLike]  # vectors of b items, shape (b, e)
    sorts: bool = False  # whether texts of like length should share a batch
    limit: int | None = None  # tokens that the model reads of a text
    cut: int = 0  # texts that were longer than the model reads, so far
    name: str = ""  # what it was named by; a function of the caller's has no name
