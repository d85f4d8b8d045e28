"""Image tasks by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, final

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import unknown
from howsure.data.images import brain, buildings, nuclei_tiles, skin, ventricle, wealth
from howsure.data.images.cells import Recipe
from howsure.data.images.files import Reading
from howsure.data.images.pools import (
    Pool,
    drawn_cells,
    drawn_chairs,
    original_cells,
    original_chairs,
)
from howsure.data.images.task import ImageTask, Scaling
from howsure.data.images.variants import (
    CELLS,
    CELLS_SIZES,
    CHAIRS,
    CHAIRS_SHIFTED_SIZES,
    CHAIRS_SIZES,
    FULL,
    cells_rows,
    cells_variant,
    chairs_rows,
    fetched,
)
from howsure.data.parts import Part
from howsure.data.places import found

Reader = Callable[[Reading, str], Mapping[str, Part]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Real:
    """What is fixed of a real set."""

    title: str
    target: str
    units: str
    folder: str
    read: Reader
    published: Mapping[str, int]
    tests: tuple[str, ...] = ("test",)
    scaling: Scaling = "imagenet"


_REAL: Final[Mapping[str, _Real]] = MappingProxyType(
    {
        "asset-wealth": _Real(
            title="AssetWealth",
            target="asset wealth index",
            units="1",
            folder="poverty_v1.1",
            read=wealth.read,
            published={"train": 9_797, "val": 1_000, "test": 3_963},
            scaling="none",
        ),
        "ventricular-volume": _Real(
            title="VentricularVolume",
            target="volume of the left ventricle",
            units="mL",
            folder="EchoNet-Dynamic",
            read=ventricle.read,
            published={"train": 7_460, "val": 1_288, "test": 1_276},
        ),
        "brain-tumour-pixels": _Real(
            title="BrainTumourPixels",
            target="tumour pixels",
            units="pixels",
            folder="Task01_BrainTumour",
            read=brain.read,
            published={"train": 20_614, "val": 6_116, "test": 6_252},
        ),
        "skin-lesion-pixels": _Real(
            title="SkinLesionPixels",
            target="lesion pixels",
            units="pixels",
            folder="HAM10000",
            read=skin.read,
            published={"train": 6_592, "val": 1_164, "test": 2_259},
        ),
        "histology-nuclei-pixels": _Real(
            title="HistologyNucleiPixels",
            target="nuclei pixels",
            units="pixels",
            folder="histology_nuclei",
            read=nuclei_tiles.read,
            published={"train": 10_808, "val": 2_702, "test": 2_267},
        ),
        "aerial-building-pixels": _Real(
            title="AerialBuildingPixels",
            target="building pixels",
            units="pixels",
            folder="AerialImageDataset",
            read=buildings.read,
            published={"train": 11_184, "val": 2_797, "tyrol-w": 3_890},
            tests=buildings.TESTS,
        ),
    }
)

_TITLES: Final = MappingProxyType(
    {
        "cells": "Cells",
        "cells-tails": "Cells-Tails",
        "cells-gap": "Cells-Gap",
        "chair-angle": "ChairAngle",
        "chair-angle-tails": "ChairAngle-Tails",
        "chair-angle-gap": "ChairAngle-Gap",
    }
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Choices that matter to some tasks; see `image_task`."""

    recipe: Recipe = "direct"
    shortcut: bool = True
    edge: Literal["paper", "code"] = "paper"
    order: Literal["rgb", "bgr"] = "rgb"
    frames: ventricle.Frames = "area"
    broken: Literal["error", "skip"] = "error"
    complete: bool = True
    sizes: Mapping[str, int] = field(default_factory=dict)


def image_names() -> tuple[str, ...]:
    """Names of the image tasks, whether or not their files are on this machine.

    Examples
    --------
    >>> image_names()[:3]
    ('cells', 'cells-tails', 'cells-gap')
    """
    return (*CELLS, *CHAIRS, *_REAL)


def image_task(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    train: int | None = None,
    val: int | None = None,
    test: int | None = None,
    recipe: Recipe = "direct",
    shortcut: bool = True,
    edge: Literal["paper", "code"] = "paper",
    order: Literal["rgb", "bgr"] = "rgb",
    frames: ventricle.Frames = "area",
    broken: Literal["error", "skip"] = "error",
    complete: bool = True,
) -> ImageTask:
    """An image task by name. Nothing is drawn or read before a part is asked for.

    Parameters
    ----------
    name : str
        One of `image_names`.
    folder : path, optional
        Where the raw download lies. If omitted, Cells and ChairAngle are drawn, and real sets
        are looked for under ``HOWSURE_DATA`` and in the user's cache.
    seed : int
        Fixes drawing, random splits and the choice of fewer rows.
    train, val, test : int, optional
        Rows wanted of the parts; those of the benchmark if omitted, and never more, except that
        Cells has 200,000 images to choose from.
    recipe : {"direct", "faithful"}
        How Cells are drawn.
    shortcut : bool
        Whether the ground of drawn Cells grows brighter with their number, as it does in the
        original.
    edge : {"paper", "code"}
        Whether Cells-Gap trains on counts above 150 or from 150.
    order : {"rgb", "bgr"}
        Order of colours of real photographs; the benchmark's code used ``bgr`` with constants
        for ``rgb``.
    frames : {"area", "order"}
        VentricularVolume: which traced frame is end-diastolic.
    broken : {"error", "skip"}
        Files that cannot be read are an error, or a warning and a note; they are named and
        counted in either.
    complete : bool
        Whether a download that lacks files is refused.

    Returns
    -------
    ImageTask

    Raises
    ------
    InputError
        If there is no such name, or a choice is unknown; and when a part is read, if the
        download breaks a rule.
    DataNotFoundError
        If a real set is not on this machine.

    Examples
    --------
    >>> task = image_task("chair-angle-gap", train=6, val=4, test=5)
    >>> task.test.x.shape, task.units, bool((abs(task.train.y - 45) > 15).all())
    ((5, 64, 64, 3), 'degrees', True)
    >>> image_task("chairs")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: name must be one of cells, ..., got 'chairs'; near: ...
    """
    if name not in image_names():
        raise InputError(unknown(name, image_names(), "name"))
    choices = Choices(
        recipe=recipe,
        shortcut=shortcut,
        edge=edge,
        order=order,
        frames=frames,
        broken=broken,
        complete=complete,
        sizes=_sizes({"train": train, "val": val, "test": test}),
    )
    place = None if folder is None else Path(folder)
    if name in _REAL:
        return _real(name, place, seed, choices)
    maker = _cells if name in CELLS else _chairs
    return maker(name, place, seed, choices)


def _sizes(wanted: Mapping[str, int | None]) -> Mapping[str, int]:
    for name, size in wanted.items():
        if size is not None and (isinstance(size, bool) or int(size) != size or size < 2):
            raise InputError(f"{name} must be a whole number of at least 2, got {size!r}")
    return {name: size for name, size in wanted.items() if size is not None}


def _reading(folder: Path, seed: int, choices: Choices) -> Reading:
    return Reading(
        folder=folder,
        seed=seed,
        order=choices.order,
        broken=choices.broken,
        complete=choices.complete,
    )


def _cells(name: str, folder: Path | None, seed: int, choices: Choices) -> ImageTask:
    variant = cells_variant(name, edge=choices.edge)
    return ImageTask(
        name=name,
        title=_TITLES[name],
        target="nuclei",
        units="nuclei",
        tests=tuple(variant.tests),
        read=partial(_cells_part, name, folder, seed, choices),
        published=dict(CELLS_SIZES),
    )


def _cells_part(
    name: str, folder: Path | None, seed: int, choices: Choices, part: str
) -> Mapping[str, Part]:
    variant = cells_variant(name, edge=choices.edge)
    pool: Pool
    if folder is None:
        pool = drawn_cells(seed, choices.recipe, choices.shortcut)
    else:
        pool = original_cells(_reading(folder, seed, choices))
    asked = choices.sizes
    sizes = {**CELLS_SIZES, **{FULL if key == "test" else key: n for key, n in asked.items()}}
    rows = cells_rows(pool, variant, part, seed, sizes)
    return {part: fetched(pool, rows, variant, test=part not in ("train", "val"))}


def _chairs(name: str, folder: Path | None, seed: int, choices: Choices) -> ImageTask:
    return ImageTask(
        name=name,
        title=_TITLES[name],
        target="angle of the chair",
        units="degrees",
        tests=tuple(CHAIRS[name].tests),
        read=partial(_chairs_part, name, folder, seed, choices),
        published=dict(CHAIRS_SIZES if name == "chair-angle" else CHAIRS_SHIFTED_SIZES),
    )


def _chairs_part(
    name: str, folder: Path | None, seed: int, choices: Choices, part: str
) -> Mapping[str, Part]:
    variant = CHAIRS[name]
    pool = (
        drawn_chairs(seed) if folder is None else original_chairs(_reading(folder, seed, choices))
    )
    rows = chairs_rows(pool, variant, part, seed)
    limit = choices.sizes.get(part if part in ("train", "val") else "test")
    return {part: fetched(pool, rows[:limit], variant, test=part not in ("train", "val"))}


def _real(name: str, folder: Path | None, seed: int, choices: Choices) -> ImageTask:
    facts = _REAL[name]
    place = found(name, facts.folder) if folder is None else folder
    test = choices.sizes.get("test")
    limits = {key: n for key, n in choices.sizes.items() if key != "test"}
    if test is not None:
        limits |= dict.fromkeys(facts.tests, test)
    reading = replace(_reading(place, seed, choices), limits=limits)
    read = (
        partial(ventricle.read, frames=choices.frames)
        if name == "ventricular-volume"
        else facts.read
    )
    return ImageTask(
        name=name,
        title=facts.title,
        target=facts.target,
        units=facts.units,
        tests=facts.tests,
        read=partial(_sized, facts, read, reading),
        published=facts.published,
        scaling=facts.scaling,
    )


def _sized(facts: _Real, read: Reader, reading: Reading, part: str) -> Mapping[str, Part]:
    """Read a part; warn where a whole download does not give the published number of rows."""
    parts = dict(read(reading, part))
    for name, held in parts.items():
        published = facts.published.get(name)
        limited = name in reading.limits and reading.limits[name] < (published or 0)
        if reading.complete and published is not None and not limited and len(held) != published:
            note = f"{facts.title} {name}: {len(held)} images, where {published} are published"
            warnings.warn(note, HowsureWarning, stacklevel=2)
            parts[name] = replace(held, notes=(*held.notes, note))
    return parts
