"""Pictures of medicine, from the raw downloads of the shift benchmark.

BrainTumourPixels (the Medical Segmentation Decathlon's Task01_BrainTumour)
    ``imagesTr/BRATS_###.nii.gz`` of shape (240, 240, 155, 4) and ``labelsTr/BRATS_###.nii.gz``.
    Volumes below 295 train, 295 to 389 validate, from 390 test. x are axial slices that show a
    tumour, channels FLAIR, T1w and T1gd, each slice scaled to 0 … 255 over its three channels.
VentricularVolume (EchoNet-Dynamic)
    ``FileList.csv``, ``VolumeTracings.csv`` and ``Videos/*.avi``, in the official split. Training
    and validation rows are end-systolic frames beside ESV, test rows end-diastolic beside EDV.
SkinLesionPixels (HAM10000)
    ``HAM10000_metadata`` (columns ``image_id`` and ``dataset``), ``<image_id>.jpg`` and
    ``<image_id>_segmentation.png``, in folders of any name. One source is the test, the others are
    shuffled and cut at 85 per cent. y may be 0.
HistologyNucleiPixels (CoNSeP, Kumar and TNBC)
    Folders of these names (in any case), and in each, ``Images`` of PNG or TIFF tiles beside
    ``Labels`` of MAT files of the same names, whose array ``inst_map`` is above 0 at nuclei. All
    patches of the first two are shuffled and cut at 80 per cent, so training and validation share
    tiles, as in the benchmark; TNBC is the test.

Pixels are counted after a mask's reduction to 64 by 64, or in patches of that size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, error_line
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.tasks.files import (
    BROKEN,
    UnreadableError,
    bounded,
    column,
    gunzipped,
    numbers,
    read_list,
)
from howsure_studies.tasks.images.reading import (
    SIDE,
    Bytes,
    Patches,
    Reading,
    bilinear,
    check_choice,
    check_pairs,
    grid,
    inside,
    nearest,
    patches,
    read_picture,
    read_tiles,
)
from howsure_studies.tasks.task import Part

Frames = Literal["area", "order"]

VOLUMES: Final = 484
VIDEOS: Final = 10030
SKIN_IMAGES: Final = 10015
HISTOLOGY_TILES: Final = {"consep": 41, "kumar": 30, "tnbc": 50}

_MOST: Final = 1 << 30  # bytes of a volume; those of the set take a third of it
_MOST_TILE: Final = 1 << 28  # bytes of a tile's numbers; those of the sets take 8 million
_BOUNDS: Final = {"train": (0, 295), "val": (295, 390), "test": (390, 1000)}
_VOLUME: Final = re.compile(r"BRATS_(\d+)\.nii(\.gz)?")
# A play list under the name of a video would make FFmpeg open other files, and addresses.
_OPTIONS: Final = {"fflags": "+discardcorrupt", "protocol_whitelist": "file"}
_SPLITS: Final = {"train": "TRAIN", "val": "VAL", "test": "TEST"}
_SKIN_TEST: Final = "rosendahl"
_SKIN_MASK: Final = "_segmentation"
_PICTURES: Final = (".png", ".tif", ".tiff")


def read_brain(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of BrainTumourPixels."""
    images, masks = (_numbered(reading.folder / folder) for folder in ("imagesTr", "labelsTr"))
    check_pairs(reading.folder, images, masks)
    reading.expect(len(images), VOLUMES, "volumes")
    low, high = _BOUNDS[name]
    wanted = [key for key in sorted(images) if low <= int(key[6:]) < high]
    slices = {key: partial(_slices, images[key], masks[key], key) for key in wanted}
    return read_tiles(reading, "volumes", slices, name)


def _numbered(folder: Path) -> dict[str, Path]:
    """Volumes of a folder, by names such as BRATS_007."""
    matches = ((_VOLUME.fullmatch(path.name), path) for path in folder.glob("BRATS_*"))
    return {f"BRATS_{int(match[1]):03d}": path for match, path in matches if match}


def _slices(image: Path, mask: Path, key: str) -> Patches:
    scan, labels = read_volume(image), read_volume(mask)
    if scan.ndim != 4 or scan.shape[3] < 3 or scan.shape[:3] != labels.shape:
        raise UnreadableError(f"shapes {scan.shape} and {labels.shape} do not fit")
    small = nearest(labels > 0, SIDE, SIDE).sum(axis=(0, 1))
    chosen = np.flatnonzero(small)
    pictures = np.empty((len(chosen), SIDE, SIDE, 3), dtype=np.uint8)
    for at, k in enumerate(chosen.tolist()):
        pictures[at] = bilinear(to_bytes(scan[:, :, k, :3]), SIDE, SIDE)
    return pictures, small[chosen], np.array([f"{key}/{k}" for k in chosen], dtype=np.str_)


def read_volume(path: Path) -> AnyArray:
    """Numbers of a volume; a packed one is unpacked whole, so that its check sum is compared."""
    nibabel: Any = require("nibabel", extra="vision", of="howsure-studies")
    try:
        content = gunzipped(path, _MOST) if path.suffix == ".gz" else path.read_bytes()
        volume = nibabel.Nifti1Image.from_bytes(content)
        voxels = math.prod(volume.shape)
        bounded(voxels * volume.get_data_dtype().itemsize, len(content), path.name)
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
        raise UnreadableError(f"{path.name} must contain finite numbers")
    return numbers


def to_bytes(plane: AnyArray) -> Bytes:
    """Scale numbers to 0 … 255 by their least and most, over all channels together."""
    numbers = plane.astype(np.float64)
    low, high = numbers.min(), numbers.max()
    if not high > low:
        return np.zeros(plane.shape, dtype=np.uint8)
    return np.asarray(((numbers - low) / (high - low) * 255.0 + 0.499999999).astype(np.uint8))


@final
@frozen
class _Traced:
    """The two traced frames of a video, and whether the listed order agrees with the areas."""

    diastole: int
    systole: int
    agrees: bool


def read_ventricle(reading: Reading, name: str, *, frames: Frames = "area") -> Mapping[str, Part]:
    """Read one part of VentricularVolume; y in millilitres.

    Which of a video's two traced frames is end-diastolic: the one of larger ``area``, or the first
    in the listed ``order`` (the benchmark's rule). The notes count where they disagree.
    """
    check_choice(frames, ("area", "order"), "frames")
    listing = reading.folder / "FileList.csv"
    table = read_list(listing, text=("FileName",))
    videos = np.char.replace(column(table, "FileName", listing), ".avi", "")
    volume = numbers(table, "EDV" if name == "test" else "ESV", listing)
    chosen = np.char.upper(column(table, "Split", listing)) == _SPLITS[name]
    folder = reading.folder / "Videos"
    reading.expect(len(list(folder.glob("*.avi"))), VIDEOS, "videos")
    traced = _tracings(reading.folder / "VolumeTracings.csv", frames)
    wanted = [row for row in np.flatnonzero(chosen).tolist() if videos[row] in traced]
    if not wanted:
        raise InputError(f"{listing} has no traced video of split {name!r}: zero images remain")
    outline = Part(x=np.array(wanted), y=volume[wanted], ids=videos[wanted])
    swapped = sum(not traced[video].agrees for video in outline.ids)
    notes = (
        f"{int(chosen.sum()) - len(wanted)} videos without two traced frames left out",
        f"traced area and listed order disagree on {swapped} of {len(wanted)} videos",
    )
    part = reading.limited(outline, name)
    files = [f"{video}.avi" for video in part.ids]

    def picture(at: int) -> Bytes:
        two = traced[part.ids[at]]
        frame = two.diastole if name == "test" else two.systole
        return bilinear(read_frame(inside(folder, files[at]), frame), SIDE, SIDE)

    pictures, kept, broken = reading.collected("videos", files, picture)
    x = reading.coloured(np.stack(pictures))
    return {name: replace(part.take(kept), x=x, notes=(*notes, *broken))}


def read_frame(path: Path, number: int) -> Bytes:
    """One frame of a video; a frame that the file's end cuts short is none."""
    av: Any = require("av", extra="vision", of="howsure-studies")
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
    table = read_list(path, text=("FileName",))
    videos = np.char.replace(column(table, "FileName", path), ".avi", "")
    frame = numbers(table, "Frame", path).astype(int)
    ends = np.column_stack([numbers(table, title, path) for title in ("X1", "Y1", "X2", "Y2")])
    names = np.unique(videos)
    order = np.argsort(videos, kind="stable")
    traced: dict[str, _Traced] = {}
    bounds = np.searchsorted(videos[order], names, side="right")
    for name, begin, end in zip(names.tolist(), np.r_[0, bounds[:-1]], bounds, strict=True):
        rows = order[begin:end]
        listed = list(dict.fromkeys(frame[rows].tolist()))
        if len(listed) == 2:
            areas = [traced_area(ends[rows[frame[rows] == number]]) for number in listed]
            agrees = areas[0] >= areas[1]
            first, second = listed if agrees or frames == "order" else listed[::-1]
            traced[name] = _Traced(first, second, bool(agrees))
    return traced


def traced_area(ends: FloatArray) -> float:
    """Area inside a tracing: ends (k, 4) of the long axis, then of the chords across it."""
    chords = ends[1:]
    outline = np.concatenate([chords[:, :2], chords[::-1, 2:]])
    after = np.roll(outline, -1, axis=0)
    cross = outline[:, 0] * after[:, 1] - outline[:, 1] * after[:, 0]
    return float(abs(cross.sum()) / 2.0)


def read_skin(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of SkinLesionPixels."""
    lists = [p for p in sorted(reading.folder.rglob("HAM10000_metadata*")) if p.is_file()]
    if not lists:
        raise InputError(f"{reading.folder} must contain HAM10000_metadata, got no such file")
    listing = lists[0]
    table = read_list(listing)
    ids, source = column(table, "image_id", listing), column(table, "dataset", listing)
    images = {path.stem: path for path in sorted(reading.folder.rglob("[!.]*.jpg"))}
    masks = {
        path.stem.removesuffix(_SKIN_MASK): path
        for path in sorted(reading.folder.rglob(f"[!.]*{_SKIN_MASK}.png"))
    }
    reading.expect(len(set(ids.tolist()) & set(images)), SKIN_IMAGES, "images")
    alone = sorted(set(masks) - set(images))
    if alone:
        raise InputError(f"{len(alone)} masks have no image: {alone[0]}{_SKIN_MASK}.png")
    wanted = [image for image in _split(ids, source, reading.seed)[name] if image in images]
    if not wanted:
        raise InputError(f"{listing} has no image of the part {name!r}: zero images remain")
    outline = Part(x=np.arange(len(wanted)), y=np.zeros(len(wanted)), ids=np.array(wanted))
    chosen = reading.limited(outline, name).ids.tolist()

    def read(at: int) -> tuple[Bytes, int]:
        image = chosen[at]
        if image not in masks:
            raise UnreadableError("it has no mask")
        picture, mask = _alike(read_picture(images[image]), read_picture(masks[image], "L"))
        return bilinear(picture, SIDE, SIDE), int((nearest(mask, SIDE, SIDE) > 0).sum())

    read_images, kept, notes = reading.collected(
        "images", [f"{image}.jpg" for image in chosen], read
    )
    pictures, counts = zip(*read_images, strict=True)
    x = reading.coloured(np.stack(pictures))
    ids = np.array([chosen[at] for at in kept])
    return {name: Part(x=x, y=np.array(counts), ids=ids, notes=notes)}


def _split(
    ids: npt.NDArray[np.str_], source: npt.NDArray[np.str_], seed: int
) -> Mapping[str, list[str]]:
    """Names of the parts' images; which go to training depends on the seed alone."""
    rest = np.sort(ids[source != _SKIN_TEST])
    rest = rest[child(seed, "skin-lesion-pixels", "split").permutation(len(rest))]
    cut = int(0.85 * len(rest))
    return {
        "train": rest[:cut].tolist(),
        "val": rest[cut:].tolist(),
        "test": np.sort(ids[source == _SKIN_TEST]).tolist(),
    }


def _alike(picture: Bytes, mask: AnyArray) -> tuple[Bytes, AnyArray]:
    if picture.shape[:2] != mask.shape:
        raise UnreadableError(f"the mask's shape {mask.shape} is not the image's")
    return picture, mask


def read_histology(reading: Reading, name: str) -> Mapping[str, Part]:
    """Read one part of HistologyNucleiPixels; training and validation come together."""
    sets = ("tnbc",) if name == "test" else ("consep", "kumar")
    tiles = {
        f"{group}/{key}": tile for group in sets for key, tile in _tiles(reading, group).items()
    }
    pooled = "" if name == "test" else "histology-nuclei-pixels"
    cuts = {key: partial(_cut, *tile, key) for key, tile in tiles.items()}
    return read_tiles(reading, "tiles", cuts, name, pooled=pooled)


def _cut(image: Path, label: Path, key: str) -> Patches:
    picture, mask = _alike(read_picture(image), read_nuclei(label))
    return patches(grid(picture), grid(mask), key)


def read_nuclei(path: Path) -> IntArray:
    """The array ``inst_map`` of a MAT file, shape (h, w)."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    try:
        shapes = {name: shape for name, shape, _ in whosmat(path)}
        bounded(8 * math.prod(shapes["inst_map"]), _MOST_TILE, f"{path.name}: inst_map")
        content = loadmat(path, variable_names=["inst_map"])
        instances = np.asarray(content["inst_map"], dtype=np.float64)
    except UnreadableError:
        raise
    except (*BROKEN, MatReadError) as error:
        raise UnreadableError(f"{path.name}: {error_line(error)}") from error
    if instances.ndim != 2 or not np.isfinite(instances).all():
        raise UnreadableError(
            f"{path.name}: inst_map must be finite and have two dimensions, got {instances.shape}"
        )
    return np.asarray(instances, dtype=np.int64)


def _tiles(reading: Reading, name: str) -> dict[str, tuple[Path, Path]]:
    """Tiles of one of the sets, by their place within it."""
    bases = [path for path in sorted(reading.folder.iterdir()) if path.name.lower() == name]
    if not bases:
        raise InputError(f"{reading.folder} must contain a folder {name!r}, got none")
    images, labels = _keyed(bases[0], "images", _PICTURES), _keyed(bases[0], "labels", (".mat",))
    check_pairs(bases[0], images, labels, "tile", "label")
    reading.expect(len(images), HISTOLOGY_TILES[name], f"tiles of {name}")
    return {key: (images[key], labels[key]) for key in sorted(images)}


def _keyed(base: Path, kind: str, endings: tuple[str, ...]) -> dict[str, Path]:
    """Files under folders of a kind, by what is above that folder and their own stem."""
    files = {}
    for path in sorted(base.rglob("*")):
        parts = path.relative_to(base).parts
        at = [number for number, folder in enumerate(parts[:-1]) if folder.lower() == kind]
        if at and path.suffix.lower() in endings and not path.name.startswith("."):
            files["/".join((*parts[: at[0]], path.stem))] = path
    return files
