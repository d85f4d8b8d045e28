"""Image tasks by name: drawn ones, and those read from raw downloads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, final, get_args

from howsure.core.classes import frozen
from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import check_known
from howsure_studies.methods.deep.modules.inputs import Scaling
from howsure_studies.tasks.files import find_folder, located
from howsure_studies.tasks.images import medical, photographs, satellite
from howsure_studies.tasks.images.cells import RECIPE, Recipe, check_recipe
from howsure_studies.tasks.images.drawn import (
    CELLS,
    CHAIRS,
    DRAWN,
    drawn_variant,
    originals_folder,
    read_drawn,
)
from howsure_studies.tasks.images.medical import Frames
from howsure_studies.tasks.images.photographs import PHOTOGRAPH_SIDE, Crowds, Grey, Persons, sizes
from howsure_studies.tasks.images.reading import (
    Counted,
    Empty,
    MaskedImages,
    Reading,
    check_choice,
)
from howsure_studies.tasks.task import Part, Source, Task

Family = Literal["shift", "congruence"]
_UNSAID: Final = "direct"
"""The recipe of an identity that names none, and of cells whose shortcut is switched off."""


@final
@frozen(kw_only=True)
class Real:
    """What is fixed of a set that is read from its raw download."""

    title: str
    target: str
    units: str
    folder: str
    read: Callable[..., Mapping[str, Part]]  # from a `Reading`, a part's name and choices
    published: Mapping[str, int] = field(default_factory=dict)
    family: Family | None = "shift"
    counts: bool = False
    tests: tuple[str, ...] = ("test",)
    scaling: Scaling = "imagenet"
    choices: tuple[str, ...] = ()  # of `image_task`, which the reader takes
    counted: Mapping[str, str] = field(default_factory=dict)
    """Choices by which the published numbers were counted; they hold for no others."""


NUCLEI: Final = MaskedImages(
    listing="index.csv",
    objects="nuclei",
    folders="stage1_train/*",
    images=664,
    home=("fluorescence", 696, 520),
    away={
        "experiment": ("fluorescence", 256, 256),
        "magnified": ("fluorescence", 360, 360),
        "stained": ("stained", 320, 256),
    },
    shares=(2 / 3, 1 / 6),
)
"""Microscopy of the 2018 Data Science Bowl: an image's size stands for its experiment."""


def _nuclei(counted: Counted, units: str) -> Real:
    """Nuclei of fluorescence images in patches, and of three other experiments."""
    return Real(
        title=f"Nuclei ({counted})",
        target=f"nuclei {units}" if units == "pixels" else units,
        units=units,
        folder="img_nuclei_dsb2018",
        read=partial(NUCLEI.read, key="nuclei", counted=counted),
        family=None,
        counts=counted == "objects",
        tests=NUCLEI.tests,
        choices=("empty",),
    )


REAL: Final[Mapping[str, Real]] = MappingProxyType(
    {
        "nuclei-pixels": _nuclei("pixels", "pixels"),
        "nuclei-count": _nuclei("objects", "nuclei"),
        "asset-wealth": Real(
            title="AssetWealth",
            target="asset wealth index",
            units="1",
            folder="poverty_v1.1",
            read=satellite.read_wealth,
            published={"train": 9_797, "val": 1_000, "test": 3_963},
            scaling="none",
        ),
        "ventricular-volume": Real(
            title="VentricularVolume",
            target="volume of the left ventricle",
            units="mL",
            folder="EchoNet-Dynamic",
            read=medical.read_ventricle,
            published={"train": 7_460, "val": 1_288, "test": 1_276},
            choices=("frames",),
        ),
        "brain-tumour-pixels": Real(
            title="BrainTumourPixels",
            target="tumour pixels",
            units="pixels",
            folder="Task01_BrainTumour",
            read=medical.read_brain,
            published={"train": 20_614, "val": 6_116, "test": 6_252},
        ),
        "skin-lesion-pixels": Real(
            title="SkinLesionPixels",
            target="lesion pixels",
            units="pixels",
            folder="HAM10000",
            read=medical.read_skin,
            published={"train": 6_592, "val": 1_164, "test": 2_259},
        ),
        "histology-nuclei-pixels": Real(
            title="HistologyNucleiPixels",
            target="nuclei pixels",
            units="pixels",
            folder="histology_nuclei",
            read=medical.read_histology,
            published={"train": 10_808, "val": 2_702, "test": 2_267},
        ),
        "aerial-building-pixels": Real(
            title="AerialBuildingPixels",
            target="building pixels",
            units="pixels",
            folder="AerialImageDataset",
            read=satellite.read_buildings,
            published={"train": 11_184, "val": 2_797, "tyrol-w": 3_890},
            tests=satellite.TEST_CITIES,
        ),
        "aaf": Real(
            title="AAF",
            target="age",
            units="years",
            folder="All-Age-Faces Dataset",
            read=photographs.read_aaf,
            published=sizes(photographs.AAF_IMAGES),
            family="congruence",
            choices=("side",),
        ),
        "fg-net": Real(
            title="FG-Net",
            target="age",
            units="years",
            folder="FGNET",
            read=photographs.read_fg_net,
            published=sizes(photographs.FG_NET_COLOURED),
            family="congruence",
            choices=("side", "grey", "persons"),
            counted={"grey": "drop", "persons": "mixed"},
        ),
        "eva": Real(
            title="EVA",
            target="mean aesthetic score",
            units="points",
            folder="eva-dataset",
            read=photographs.read_eva,
            published=sizes(photographs.EVA_IMAGES),
            family="congruence",
            choices=("side",),
        ),
        "coco-people": Real(
            title="COCO-People",
            target="people",
            units="people",
            folder="coco",
            read=photographs.read_coco,
            published=sizes(photographs.COCO_IMAGES),
            family="congruence",
            choices=("side", "crowds"),
            counted={"crowds": "one"},
        ),
    }
)


def image_names(family: Family | None = None) -> tuple[str, ...]:
    """Names of the image tasks, whether or not their files are on this machine.

    Parameters
    ----------
    family : {"shift", "congruence"}, optional
        Those of one paper alone: the shift benchmark of Gustafsson, Danelljan and Schön (2023),
        or the conditional congruence of Young et al. (2025).

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
    families: dict[str, Family | None] = dict.fromkeys((*CELLS, *CHAIRS), "shift")
    families |= {name: facts.family for name, facts in REAL.items()}
    if family is not None:
        check_known(family, get_args(Family), "family")
    return tuple(name for name, own in families.items() if family in (None, own))


def image_task(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    source: Source | None = None,
    seed: int = 0,
    train: int | None = None,
    val: int | None = None,
    test: int | None = None,
    recipe: Recipe | None = None,
    shortcut: bool = True,
    edge: Literal["paper", "code"] = "paper",
    order: Literal["rgb", "bgr"] = "rgb",
    frames: Frames = "area",
    side: int = PHOTOGRAPH_SIDE,
    grey: Grey = "drop",
    persons: Persons = "mixed",
    crowds: Crowds = "one",
    empty: Empty = "drop",
    broken: Literal["error", "skip"] = "error",
    complete: bool = True,
) -> Task:
    """An image task by name. Nothing is drawn or read before a part is asked for.

    Parameters
    ----------
    name : str
        One of `image_names`.
    folder : path, optional
        Where the raw download lies. If omitted, it is looked for under ``HOWSURE_DATA`` and in
        the user's cache, as `howsure data check` does.
    source : {"drawn", "original"}, optional
        Cells and ChairAngle: whether they are drawn, or read from the published Cell-200 and
        RC-49. If omitted, originals are used where they are on this machine, unless `recipe`
        or `shortcut` says how to draw. The task's own `source` says which it was.
    seed : int
        Fixes drawing, random splits and the choice of fewer rows.
    train, val, test : int, optional
        Rows wanted of the parts; those of the benchmark if omitted, and never more, except that
        Cells has 200,000 images to choose from.
    recipe : {"direct", "faithful", "micrograph"}
        How Cells are drawn; see `draw_cells`. If omitted, ``micrograph``, or ``direct`` where
        `shortcut` is False.
    shortcut : bool
        Whether the ground of simulated Cells grows brighter with their number, as it does in the
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
    empty : {"drop", "keep"}
        Nuclei: what becomes of patches that show none.
    broken : {"error", "skip"}
        Files that cannot be read are an error, or a warning and a note; they are named and
        counted in either.
    complete : bool
        Whether a download that lacks files is refused.

    Returns
    -------
    Task

    Raises
    ------
    InputError
        If there is no such name, or a choice is unknown; and when a part is read, if the
        download breaks a rule.
    DataNotFoundError
        If a real set, or the original that `source` asks for, is not on this machine.

    Examples
    --------
    >>> task = image_task("chair-angle-gap", source="drawn", train=6, val=4, test=5)
    >>> task.test.x.shape, task.units, bool((abs(task.train.y - 45) > 15).all())
    ((5, 64, 64, 3), 'degrees', True)
    >>> image_task("chairs")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: name must be one of cells, ..., got 'chairs'; near: ...
    """
    check_known(name, image_names(), "name")
    limits = _limits({"train": train, "val": val, "test": test})
    real = REAL.get(name)
    asked = {"recipe": recipe, "shortcut": shortcut}
    if name in CELLS and source is None and folder is None and _differs(asked):
        source = "drawn"
    recipe = recipe or _drawing(shortcut)
    home = _folder_of(name, folder, source)
    reading = None
    if home is not None:
        reading = Reading(folder=home, seed=seed, order=order, broken=broken, complete=complete)
    if real is None or reading is None:
        variant = drawn_variant(name, edge=edge)
        cells = name in CELLS
        if cells and reading is None:
            check_recipe(recipe, shortcut)
        return Task(
            name=name,
            target="nuclei" if cells else "angle of the chair",
            units="nuclei" if cells else "degrees",
            tests=tuple(variant.tests),
            read=partial(read_drawn, name, variant, reading, seed, recipe, shortcut, limits),
            images=True,
            scaling="imagenet",
            source="drawn" if reading is None else "original",
            published=dict(variant.published),
        )
    tests = dict.fromkeys(real.tests, limits["test"]) if "test" in limits else {}
    reading = replace(reading, limits={**limits, **tests})
    given = {
        **{"frames": frames, "side": side, "grey": grey, "persons": persons, "crowds": crowds},
        "empty": empty,
    }
    taken = {choice: given[choice] for choice in real.choices}
    if any(given[choice] != plain for choice, plain in real.counted.items()):
        real = replace(real, published={})
    return Task(
        name=name,
        target=real.target,
        units=real.units,
        tests=real.tests,
        counts=real.counts,
        read=partial(_read_real, real, taken, reading),
        images=True,
        scaling=real.scaling,
        published=real.published,
    )


def _differs(asked: Mapping[str, Any]) -> bool:
    """Whether an option of `image_task` is not as it stands there."""
    usual = image_task.__kwdefaults__ or {}
    return any(value != usual[key] for key, value in asked.items())


def _drawing(shortcut: bool) -> Recipe:
    """The recipe that draws cells where none is named."""
    return RECIPE if shortcut else _UNSAID


def settled(task: Task, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a task as they decide it anywhere: a source stands there for originals alone.

    A recipe stands there unless it is ``direct``, which older results took without a word.

    Examples
    --------
    >>> settled(image_task("cells", source="drawn"), {"source": "drawn", "train": 40})
    {'train': 40, 'recipe': 'micrograph'}
    """
    kept = {key: value for key, value in options.items() if key not in ("source", "recipe")}
    if settled_source(task.name, kept) != task.source:
        return kept | {"source": "original"}
    recipe = options.get("recipe") or _drawing(options.get("shortcut", True))
    named = task.name in CELLS and task.source == "drawn" and recipe != _UNSAID
    return kept | ({"recipe": recipe} if named else {})


def settled_source(name: str, options: Mapping[str, Any]) -> Source:
    """The source of a task whose options `settled` gave."""
    drawn = name in DRAWN and options.get("source") != "original"
    return "drawn" if drawn else "original"


def settled_task(name: str, **options: Any) -> Task:
    """The task of options that `settled` gave: it is drawn wherever it was drawn."""
    source = settled_source(name, options)
    unsaid = {"recipe": _UNSAID} if name in CELLS and source == "drawn" else {}
    return image_task(name, **{**unsaid, **options, "source": source})


def _folder_of(
    name: str, folder: str | os.PathLike[str] | None, source: Source | None
) -> Path | None:
    """Where the files of a task lie; None where it is drawn."""
    drawable = name in DRAWN
    if source is not None:
        check_choice(source, ("drawn", "original"), "source")
    if source == "drawn" and not drawable:
        raise InputError(f"source must be original, for {name} cannot be drawn, got 'drawn'")
    if source == "drawn" and folder is not None:
        raise InputError(f"source must be original where a folder is given, got {source!r}")
    if folder is not None:
        return Path(folder)
    if source == "drawn":
        return None
    if not drawable:
        return find_folder(name, REAL[name].folder)
    kept = originals_folder(name)
    return find_folder(name, kept) if source == "original" else located(kept)


def _limits(wanted: Mapping[str, int | None]) -> dict[str, int]:
    for name, size in wanted.items():
        if size is not None and (isinstance(size, bool) or int(size) != size or size < 2):
            raise InputError(f"{name} must be a whole number of at least 2, got {size!r}")
    return {name: size for name, size in wanted.items() if size is not None}


def _read_real(
    real: Real, taken: Mapping[str, Any], reading: Reading, part: str
) -> Mapping[str, Part]:
    """Read a part; warn where a whole download does not give the published number of rows."""
    parts = dict(real.read(reading, part, **taken))
    for name, rows in parts.items():
        published = real.published.get(name)
        limited = name in reading.limits and reading.limits[name] < (published or 0)
        if reading.complete and published is not None and not limited and len(rows) != published:
            note = f"{real.title} {name}: {len(rows)} images, where {published} are published"
            warnings.warn(note, HowsureWarning, stacklevel=2)
            parts[name] = replace(rows, notes=(*rows.notes, note))
    return parts
