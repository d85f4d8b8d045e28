"""Image sets that are read from raw downloads: those of the shift and congruence papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from howsure.methods.deep.modules.inputs import Scaling
from howsure.studies.tasks.images import (
    aesthetics,
    ages,
    brain,
    buildings,
    nuclei_tiles,
    people,
    skin,
    ventricle,
    wealth,
)
from howsure.studies.tasks.images.photographs import sizes
from howsure.studies.tasks.images.task import Family
from howsure.studies.tasks.parts import Part

Reader = Callable[..., Mapping[str, Part]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """What is fixed of a real set.

    Attributes
    ----------
    title, target, units, family, tests, published, scaling
        As in `howsure.studies.tasks.images.task.ImageTask`.
    folder : str
        Its folder's name.
    read : callable
        From a `Reading`, a part's name and the choices below, the part.
    choices : tuple of str
        Choices of `howsure.studies.tasks.images.naming.Choices` that its reader takes.
    recounts : tuple of str
        Those of them that change the number of rows, so that the published one no longer holds.
    """

    title: str
    target: str
    units: str
    folder: str
    read: Reader
    published: Mapping[str, int]
    family: Family = "shift"
    tests: tuple[str, ...] = ("test",)
    scaling: Scaling = "imagenet"
    choices: tuple[str, ...] = ()
    recounts: tuple[str, ...] = ()


REAL: Final[Mapping[str, Real]] = MappingProxyType(
    {
        "asset-wealth": Real(
            title="AssetWealth",
            target="asset wealth index",
            units="1",
            folder="poverty_v1.1",
            read=wealth.read,
            published={"train": 9_797, "val": 1_000, "test": 3_963},
            scaling="none",
        ),
        "ventricular-volume": Real(
            title="VentricularVolume",
            target="volume of the left ventricle",
            units="mL",
            folder="EchoNet-Dynamic",
            read=ventricle.read,
            published={"train": 7_460, "val": 1_288, "test": 1_276},
            choices=("frames",),
        ),
        "brain-tumour-pixels": Real(
            title="BrainTumourPixels",
            target="tumour pixels",
            units="pixels",
            folder="Task01_BrainTumour",
            read=brain.read,
            published={"train": 20_614, "val": 6_116, "test": 6_252},
        ),
        "skin-lesion-pixels": Real(
            title="SkinLesionPixels",
            target="lesion pixels",
            units="pixels",
            folder="HAM10000",
            read=skin.read,
            published={"train": 6_592, "val": 1_164, "test": 2_259},
        ),
        "histology-nuclei-pixels": Real(
            title="HistologyNucleiPixels",
            target="nuclei pixels",
            units="pixels",
            folder="histology_nuclei",
            read=nuclei_tiles.read,
            published={"train": 10_808, "val": 2_702, "test": 2_267},
        ),
        "aerial-building-pixels": Real(
            title="AerialBuildingPixels",
            target="building pixels",
            units="pixels",
            folder="AerialImageDataset",
            read=buildings.read,
            published={"train": 11_184, "val": 2_797, "tyrol-w": 3_890},
            tests=buildings.TESTS,
        ),
        "aaf": Real(
            title="AAF",
            target="age",
            units="years",
            folder="All-Age-Faces Dataset",
            read=ages.read_aaf,
            published=sizes(ages.AAF_IMAGES),
            family="congruence",
            choices=("side",),
        ),
        "fg-net": Real(
            title="FG-Net",
            target="age",
            units="years",
            folder="FGNET",
            read=ages.read_fg_net,
            published=sizes(ages.FG_NET_COLOURED),
            family="congruence",
            choices=("side", "grey", "persons"),
            recounts=("grey", "persons"),
        ),
        "eva": Real(
            title="EVA",
            target="mean aesthetic score",
            units="points",
            folder="eva-dataset",
            read=aesthetics.read,
            published=sizes(aesthetics.IMAGES),
            family="congruence",
            choices=("side",),
        ),
        "coco-people": Real(
            title="COCO-People",
            target="people",
            units="people",
            folder="coco",
            read=people.read,
            published=sizes(people.IMAGES),
            family="congruence",
            choices=("side", "crowds"),
            recounts=("crowds",),
        ),
    }
)
