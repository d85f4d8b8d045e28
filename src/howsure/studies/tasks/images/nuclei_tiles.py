"""HistologyNucleiPixels: patches of stained tissue, from CoNSeP, Kumar and TNBC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.studies.tasks.images.files import Reading, Trouble, UnreadableError, grid, read_picture
from howsure.studies.tasks.images.patches import patches, pooled, whole
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import BROKEN, bounded

TILES: Final = {"consep": 41, "kumar": 30, "tnbc": 50}
_MOST: Final = 1 << 28  # bytes of a tile's numbers; those of the sets take 8 million
_PICTURES: Final = (".png", ".tif", ".tiff")

Tile = tuple[Path, Path]


def read(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read training and validation patches (CoNSeP and Kumar), or test patches (TNBC).

    Parameters
    ----------
    reading : Reading
        Its folder holds folders ``CoNSeP``, ``Kumar`` and ``TNBC`` (in any case), and somewhere
        in each, folders ``Images`` of PNG or TIFF tiles beside folders ``Labels`` of MAT files
        of the same names, whose array ``inst_map`` is above 0 at nuclei.
    name : {"train", "val", "test"}
        Training and validation come together: all patches are shuffled and cut at 80 per cent,
        so they share tiles, as in the benchmark.

    Returns
    -------
    mapping of str to Part
        Patches of 64 by 64 pixels; y is the number of nuclei pixels, at least 1.

    Raises
    ------
    InputError
        If the download is not whole, a mask has no image or an image no mask, or a file is
        broken and broken files are errors.
    """
    sets = ("tnbc",) if name == "test" else ("consep", "kumar")
    tiles = {f"{one}/{key}": tile for one in sets for key, tile in _tiles(reading, one).items()}
    trouble = Trouble("tiles")
    found = []
    for key, (image, label) in tiles.items():
        try:
            picture, mask = read_picture(image), read_nuclei(label)
            if picture.shape[:2] != mask.shape:
                raise UnreadableError(f"the mask's shape {mask.shape} is not the image's")
        except UnreadableError as error:
            trouble.add(key, error)
            continue
        found.append(patches(grid(picture), grid(mask), key))
    notes = trouble.settle(reading, len(tiles))
    if name == "test":
        return {"test": reading.limited(whole(reading, found, notes), "test")}
    return pooled(reading, found, notes, "histology-nuclei-pixels")


def read_nuclei(path: Path) -> npt.NDArray[np.int64]:
    """The array ``inst_map`` of a MAT file, shape (h, w).

    Raises
    ------
    UnreadableError
        If the file is broken, or holds no such array.
    """
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        bounded(8 * math.prod(shapes["inst_map"]), _MOST, f"{path.name}: inst_map")
        found = loadmat(path, variable_names=["inst_map"])
        held = np.asarray(found["inst_map"], dtype=np.float64)
    except UnreadableError:
        raise
    except (*BROKEN, MatReadError) as error:
        raise UnreadableError(f"{path.name}: {type(error).__name__}: {error}") from error
    if held.ndim != 2 or not np.isfinite(held).all():
        raise UnreadableError(
            f"{path.name}: inst_map must be finite and have two dimensions, got {held.shape}"
        )
    return np.asarray(held, dtype=np.int64)


def _tiles(reading: Reading, name: str) -> dict[str, Tile]:
    """Tiles of one of the sets, by their place within it."""
    bases = [path for path in sorted(reading.folder.iterdir()) if path.name.lower() == name]
    if not bases:
        raise InputError(f"{reading.folder} must hold a folder {name!r}, got none")
    images, labels = _keyed(bases[0], "images", _PICTURES), _keyed(bases[0], "labels", (".mat",))
    alone = sorted(set(images) ^ set(labels))
    if alone:
        raise InputError(
            f"{bases[0]}: each tile must have its label and each label its tile, got "
            f"{len(alone)} alone: {alone[0]}"
        )
    reading.expect(len(images), TILES[name], f"tiles of {name}")
    return {key: (images[key], labels[key]) for key in sorted(images)}


def _keyed(base: Path, kind: str, endings: tuple[str, ...]) -> dict[str, Path]:
    """Files under folders of a kind, by what is above that folder and their own stem."""
    found = {}
    for path in sorted(base.rglob("*")):
        parts = path.relative_to(base).parts
        at = [number for number, part in enumerate(parts[:-1]) if part.lower() == kind]
        if at and path.suffix.lower() in endings and not path.name.startswith("."):
            found["/".join((*parts[: at[0]], path.stem))] = path
    return found
