"""Image tasks by name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, final

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import check_known
from howsure.studies.tasks.images import ages, people, ventricle
from howsure.studies.tasks.images.cells import Recipe
from howsure.studies.tasks.images.files import Reading
from howsure.studies.tasks.images.photographs import PHOTOGRAPH_SIDE
from howsure.studies.tasks.images.pools import (
    Pool,
    drawn_cells,
    drawn_chairs,
    original_cells,
    original_chairs,
)
from howsure.studies.tasks.images.real import REAL, Real
from howsure.studies.tasks.images.task import FAMILIES, Family, ImageTask
from howsure.studies.tasks.images.variants import (
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
from howsure.studies.tasks.parts import Part
from howsure.studies.tasks.places import found

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
    side: int = PHOTOGRAPH_SIDE
    grey: ages.Grey = "drop"
    persons: ages.Persons = "mixed"
    crowds: people.Crowds = "one"
    broken: Literal["error", "skip"] = "error"
    complete: bool = True
    sizes: Mapping[str, int] = field(default_factory=dict)


def image_names(family: Family | None = None) -> tuple[str, ...]:
    """Names of the image tasks, whether or not their files are on this machine.

    Parameters
    ----------
    family : {"shift", "congruence"}, optional
        Those of one paper alone; see `howsure.studies.tasks.images.task.ImageTask`.

    Raises
    ------
    InputError
        If there is no such family.

    Examples
    --------
    >>> image_names()[:3]
    ('cells', 'cells-tails', 'cells-gap')
    >>> image_names("congruence")
    ('aaf', 'fg-net', 'eva', 'coco-people')
    """
    families: dict[str, Family] = dict.fromkeys((*CELLS, *CHAIRS), "shift")
    families |= {name: facts.family for name, facts in REAL.items()}
    if family is not None:
        check_known(family, FAMILIES, "family")
    return tuple(name for name, own in families.items() if family in (None, own))


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
    side: int = PHOTOGRAPH_SIDE,
    grey: ages.Grey = "drop",
    persons: ages.Persons = "mixed",
    crowds: people.Crowds = "one",
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
    side : int
        AAF, FG-Net, EVA and COCO-People: pixels a side of the photographs. A part of n rows
        takes 3 n side² bytes.
    grey : {"drop", "keep"}
        FG-Net: what becomes of grey photographs.
    persons : {"mixed", "apart"}
        FG-Net: whether photographs of one person may lie in several parts.
    crowds : {"one", "drop"}
        COCO-People: an area marked as a crowd counts as one person, or the image is left out.
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
    check_known(name, image_names(), "name")
    choices = Choices(
        recipe=recipe,
        shortcut=shortcut,
        edge=edge,
        order=order,
        frames=frames,
        side=side,
        grey=grey,
        persons=persons,
        crowds=crowds,
        broken=broken,
        complete=complete,
        sizes=_sizes({"train": train, "val": val, "test": test}),
    )
    place = None if folder is None else Path(folder)
    if name in REAL:
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
    facts = REAL[name]
    place = found(name, facts.folder) if folder is None else folder
    test = choices.sizes.get("test")
    limits = {key: n for key, n in choices.sizes.items() if key != "test"}
    if test is not None:
        limits |= dict.fromkeys(facts.tests, test)
    reading = replace(_reading(place, seed, choices), limits=limits)
    facts = _recounted(facts, choices)
    return ImageTask(
        name=name,
        title=facts.title,
        family=facts.family,
        target=facts.target,
        units=facts.units,
        tests=facts.tests,
        read=partial(_sized, facts, choices, reading),
        published=facts.published,
        scaling=facts.scaling,
    )


def _recounted(facts: Real, choices: Choices) -> Real:
    """The facts without published numbers where a choice has changed them."""
    plain = Choices()
    changed = any(getattr(choices, name) != getattr(plain, name) for name in facts.recounts)
    return replace(facts, published={}) if changed else facts


def _sized(facts: Real, choices: Choices, reading: Reading, part: str) -> Mapping[str, Part]:
    """Read a part; warn where a whole download does not give the published number of rows."""
    taken = {name: getattr(choices, name) for name in facts.choices}
    parts = dict(facts.read(reading, part, **taken))
    for name, held in parts.items():
        published = facts.published.get(name)
        limited = name in reading.limits and reading.limits[name] < (published or 0)
        if reading.complete and published is not None and not limited and len(held) != published:
            note = f"{facts.title} {name}: {len(held)} images, where {published} are published"
            warnings.warn(note, HowsureWarning, stacklevel=2)
            parts[name] = replace(held, notes=(*held.notes, note))
    return parts
