"""BrainTumourPixels: slices of magnetic resonance volumes, from the MSD's Task01_BrainTumour."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.studies.tasks.images.files import (
    SIDE,
    Bytes,
    Reading,
    Trouble,
    UnreadableError,
    bilinear,
    nearest,
)
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.unpack import BROKEN, bounded, gunzipped

VOLUMES: Final = 484
_MOST: Final = 1 << 30  # bytes of a volume; those of the set take a third of it
_BOUNDS: Final = {"train": (0, 295), "val": (295, 390), "test": (390, 1000)}
_NAME: Final = re.compile(r"BRATS_(\d+)\.nii(\.gz)?")


def read(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part: volumes below 295, 295 to 389, or from 390.

    Parameters
    ----------
    reading : Reading
        Its folder holds ``imagesTr/BRATS_###.nii.gz`` of shape (240, 240, 155, 4) and
        ``labelsTr/BRATS_###.nii.gz`` of shape (240, 240, 155).
    name : {"train", "val", "test"}
        Which part.

    Returns
    -------
    mapping of str to Part
        Axial slices that show a tumour, channels FLAIR, T1w and T1gd, each slice scaled to
        0 … 255 over its three channels together; y is the number of tumour pixels after the
        mask's reduction to 64 by 64, at least 1.

    Raises
    ------
    InputError
        If the download is not whole, a mask has no image or an image no mask, or a file is
        broken and broken files are errors.
    """
    images, masks = (_numbered(reading.folder / part) for part in ("imagesTr", "labelsTr"))
    alone = sorted(set(images) ^ set(masks))
    if alone:
        raise InputError(
            f"{reading.folder}: each image must have a mask and each mask an image, got "
            f"{len(alone)} alone: BRATS_{alone[0]:03d}"
        )
    reading.expect(len(images), VOLUMES, "volumes")
    low, high = _BOUNDS[name]
    wanted = [number for number in sorted(images) if low <= number < high]
    trouble = Trouble("volumes")
    found = [_slices(images[n], masks[n], n, trouble) for n in wanted]
    notes = trouble.settle(reading, len(wanted))
    found = [part for part in found if part is not None]
    if not found:
        raise InputError(f"{reading.folder} has no tumour in part {name!r}: zero images remain")
    x, y, ids = (np.concatenate(column) for column in zip(*found, strict=True))
    part = Part(x=reading.coloured(x), y=y, ids=ids, notes=notes)
    return {name: reading.limited(part, name)}


def _numbered(folder: Path) -> dict[int, Path]:
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.glob("BRATS_*"))
    return {int(match[1]): path for match, path in matches if match}


def _slices(
    image: Path, mask: Path, number: int, trouble: Trouble
) -> tuple[Bytes, npt.NDArray[np.int64], npt.NDArray[np.str_]] | None:
    try:
        scan, labels = _volume(image), _volume(mask)
        if scan.ndim != 4 or scan.shape[3] < 3 or scan.shape[:3] != labels.shape:
            raise UnreadableError(f"shapes {scan.shape} and {labels.shape} do not fit")
    except UnreadableError as error:
        trouble.add(f"BRATS_{number:03d}", error)
        return None
    small = nearest(labels > 0, SIDE, SIDE).sum(axis=(0, 1))
    chosen = np.flatnonzero(small)
    if len(chosen) == 0:
        return None
    pictures = [bilinear(to_bytes(scan[:, :, k, :3]), SIDE, SIDE) for k in chosen]
    ids = np.array([f"BRATS_{number:03d}/{k}" for k in chosen])
    return np.stack(pictures), small[chosen], ids


def _volume(path: Path) -> npt.NDArray[Any]:
    """Numbers of a volume; a packed one is unpacked whole, so that its check sum is compared."""
    nibabel: Any = require("nibabel", extra="vision")
    try:
        held = gunzipped(path, _MOST) if path.suffix == ".gz" else path.read_bytes()
        volume = nibabel.Nifti1Image.from_bytes(held)
        voxels = math.prod(volume.shape)
        bounded(voxels * volume.get_data_dtype().itemsize, len(held), path.name)
        bounded(voxels * np.dtype(np.float64).itemsize, _MOST, path.name)
        numbers = np.asarray(volume.dataobj)
    except UnreadableError:
        raise
    except (
        *BROKEN,
        nibabel.filebasedimages.ImageFileError,
        nibabel.spatialimages.HeaderDataError,
        nibabel.wrapstruct.WrapStructError,
    ) as error:
        raise UnreadableError(f"{path.name}: {error}") from error
    if not np.isfinite(numbers).all():
        raise UnreadableError(f"{path.name} must hold finite numbers")
    return numbers


def to_bytes(plane: npt.NDArray[Any]) -> Bytes:
    """Scale numbers to 0 … 255 by their least and most, over all channels together.

    Parameters
    ----------
    plane : ndarray, shape (h, w, c)
        Numbers; if all are equal, all become 0.

    Returns
    -------
    ndarray of uint8, shape (h, w, c)

    Examples
    --------
    >>> to_bytes(np.array([[[10.0, 20.0, 30.0]]])).tolist()
    [[[0, 127, 255]]]
    """
    numbers = plane.astype(np.float64)
    low, high = numbers.min(), numbers.max()
    if not high > low:
        return np.zeros(plane.shape, dtype=np.uint8)
    return np.asarray(((numbers - low) / (high - low) * 255.0 + 0.499999999).astype(np.uint8))
