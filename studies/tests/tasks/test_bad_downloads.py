"""Downloads that are half there, broken, changed or empty: named and counted, never passed over."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure_studies.tasks.files import UnreadableError
from howsure_studies.tasks.images import image_task
from howsure_studies.tasks.images.medical import read_frame
from tasks.refusing import refused
from tasks.test_raw_images import (
    TINY,
    brain_folder,
    city_folder,
    heart_folder,
    skin_folder,
    tissue_folder,
    wealth_folder,
)

av = needs("av")
tifffile = needs("tifffile")
Image = needs("PIL.Image")


def tissue(folder: Path) -> Path:
    tissue_folder(folder)
    return folder


def brains(folder: Path) -> Path:
    """Two volumes to train on, so that one is left when the other is broken."""
    brain_folder(folder)
    for part in ("imagesTr", "labelsTr"):
        shutil.copy(folder / part / "BRATS_001.nii.gz", folder / part / "BRATS_002.nii.gz")
    return folder


@dataclass(frozen=True)
class Item:
    """A file of a set, how it is called, and the part that it belongs to."""

    task: str
    make: Callable[[Path], Path]
    path: str
    part: str
    told: str
    called: str

    def __str__(self) -> str:
        return f"{self.task}-{Path(self.path).name}"


ITEMS = [
    Item(
        "asset-wealth",
        wealth_folder,
        "images/landsat_poverty_img_2011.npz",
        "test",
        "1 of 4 images cannot be read: landsat_poverty_img_2011.npz",
        "mali/2011",
    ),
    Item(
        "ventricular-volume",
        heart_folder,
        "Videos/a.avi",
        "train",
        "1 of 2 videos cannot be read: a.avi",
        "a",
    ),
    *(
        Item(
            "brain-tumour-pixels",
            brains,
            f"{part}/BRATS_001.nii.gz",
            "train",
            "1 of 2 volumes cannot be read: BRATS_001",
            "BRATS_001",
        )
        for part in ("imagesTr", "labelsTr")
    ),
    *(
        Item(
            "skin-lesion-pixels",
            skin_folder,
            path,
            "test",
            "1 of 5 images cannot be read: ISIC_0021.jpg",
            "ISIC_0021",
        )
        for path in ("part_1/ISIC_0021.jpg", "masks/ISIC_0021_segmentation.png")
    ),
    *(
        Item(
            "histology-nuclei-pixels",
            tissue,
            path,
            "train",
            f"1 of 3 tiles cannot be read: {called}",
            called,
        )
        for path, called in (
            ("CoNSeP/Train/Images/train_1.png", "consep/Train/train_1"),
            ("CoNSeP/Test/Labels/train_1.mat", "consep/Test/train_1"),
            ("kumar/test_same/Images/T-1.tif", "kumar/test_same/T-1"),
        )
    ),
    *(
        Item(
            "aerial-building-pixels",
            city_folder,
            f"train/{part}/austin1.tif",
            "train",
            "1 of 2 tiles cannot be read: austin1.tif",
            "austin1",
        )
        for part in ("images", "gt")
    ),
]

PAGE = b"<html>404 not found</html>"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda whole: whole[: len(whole) // 2],
    "empty": lambda _: b"",
    "zeros": lambda whole: bytes(len(whole)),
    "page": lambda _: 200 * PAGE,
}


# Files that are broken


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("item", ITEMS, ids=str)
def test_a_broken_file_is_named_and_counted(item: Item, damage: str, tmp_path: Path) -> None:
    folder = item.make(tmp_path / "set")
    path = folder / item.path
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(InputError, match=re.escape(item.told)):
        image_task(item.task, folder=folder, **TINY).part(item.part)
    with pytest.warns(HowsureWarning, match=re.escape(item.told)):
        part = image_task(item.task, folder=folder, broken="skip", **TINY).part(item.part)
    assert len(part) >= 1
    assert not any(name == item.called or name.startswith(f"{item.called}/") for name in part.ids)
    assert any(item.told in note for note in part.notes)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize(
    ("task", "make", "files", "part", "told"),
    [
        ("asset-wealth", wealth_folder, "images/*_201?.npz", "test", "4 of 4 images"),
        ("ventricular-volume", heart_folder, "Videos/*.avi", "test", "2 of 2 videos"),
        ("brain-tumour-pixels", brains, "labelsTr/*", "train", "2 of 2 volumes"),
        ("skin-lesion-pixels", skin_folder, "masks/*.png", "val", "3 of 3 images"),
        ("histology-nuclei-pixels", tissue, "**/Images/**/*.*", "train", "3 of 3 tiles"),
        ("aerial-building-pixels", city_folder, "train/gt/*.tif", "train", "2 of 2 tiles"),
    ],
)
def test_where_all_are_broken_none_is_skipped(
    task: str, make: Callable[[Path], Path], files: str, part: str, told: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "set")
    for path in folder.glob(files):
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=f"{told} cannot be read: "):
        image_task(task, folder=folder, broken="skip", **TINY).part(part)


def test_many_broken_files_are_counted_and_the_first_named(tmp_path: Path) -> None:
    folder = skin_folder(tmp_path / "set")
    for path in folder.glob("part_1/*.jpg"):
        path.write_bytes(path.read_bytes()[:-300])
    refused(r"17 of 17 images cannot be read: ISIC_.* and 12 more$", "skin-lesion-pixels", folder)


def test_sizes_of_image_and_mask_must_agree(tmp_path: Path) -> None:
    skin = skin_folder(tmp_path / "skin")
    Image.new("L", (60, 44)).save(skin / "masks" / "ISIC_0021_segmentation.png")
    with pytest.raises(InputError, match=r"ISIC_0021\.jpg \(the mask's shape \(44, 60\)"):
        _ = image_task("skin-lesion-pixels", folder=skin, **TINY).test
    slides = tissue(tmp_path / "tissue")
    savemat(slides / "tnbc/Labels/01_1.mat", {"inst_map": np.ones((128, 64))})
    with pytest.raises(InputError, match=r"tnbc/01_1 \(the mask's shape \(128, 64\)"):
        _ = image_task("histology-nuclei-pixels", folder=slides, **TINY).test
    air = city_folder(tmp_path / "air")
    for path, held in (("images", np.zeros((700, 650), np.uint8)), ("gt", np.zeros((9, 9), "u2"))):
        place = air / "train" / path / "vienna1.tif"
        whole = place.read_bytes()
        tifffile.imwrite(place, held)
        with pytest.raises(InputError, match=r"1 of 1 tiles cannot be read: vienna1\.tif"):
            image_task("aerial-building-pixels", folder=air, **TINY).part("vienna")
        place.write_bytes(whole)


# Masks without images, and images without masks


@pytest.mark.parametrize(
    ("task", "make", "gone", "part", "told"),
    [
        ("brain-tumour-pixels", brains, "labelsTr/BRATS_002.nii.gz", "train", "1 alone: BRATS_002"),
        ("histology-nuclei-pixels", tissue, "tnbc/Images/5784/01_1.png", "test", "1 alone: 01_1"),
        (
            "aerial-building-pixels",
            city_folder,
            "train/gt/chicago1.tif",
            "train",
            "1 alone: chicago1",
        ),
    ],
)
@pytest.mark.parametrize("broken", ["error", "skip"])
def test_pairs_must_be_whole(
    task: str,
    make: Callable[[Path], Path],
    gone: str,
    part: str,
    told: str,
    broken: str,
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "set")
    (folder / gone).unlink()
    with pytest.raises(InputError, match=told):
        image_task(task, folder=folder, complete=False, broken=broken).part(part)  # type: ignore[arg-type]


# Zero remaining images


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def test_no_part_is_ever_empty(tmp_path: Path) -> None:
    hearts = heart_folder(tmp_path / "hearts")
    rewrite(hearts / "FileList.csv", lambda text: text.replace("VAL", "TEST"))
    with pytest.raises(InputError, match="no traced video of split 'val': zero images remain"):
        _ = image_task("ventricular-volume", folder=hearts, **TINY).val
    skin = skin_folder(tmp_path / "skin")
    rewrite(skin / "HAM10000_metadata", lambda text: text.replace("rosendahl", "vidir_modern"))
    with pytest.raises(InputError, match="no image of the part 'test': zero images remain"):
        _ = image_task("skin-lesion-pixels", folder=skin, **TINY).test
    villages = wealth_folder(tmp_path / "villages")
    rewrite(villages / "dhs_metadata.csv", lambda text: text.replace("mali", "benin"))
    with pytest.raises(InputError, match="no row of the part 'test': zero images remain"):
        _ = image_task("asset-wealth", folder=villages, **TINY).test
    rewrite(villages / "dhs_metadata.csv", lambda text: "\n".join(text.split("\n")[:1500]))
    with pytest.raises(InputError, match="no row of the part 'train': zero images remain"):
        _ = image_task("asset-wealth", folder=villages, **TINY).train
    air = city_folder(tmp_path / "air")
    for city in ("austin", "chicago", "vienna"):
        tifffile.imwrite(air / f"train/gt/{city}1.tif", np.zeros((700, 650), np.uint8))
    for part in ("train", "vienna"):
        with pytest.raises(InputError, match=f"no masked pixel in the part '{part}': zero"):
            image_task("aerial-building-pixels", folder=air, **TINY).part(part)


def test_one_patch_cannot_be_split(tmp_path: Path) -> None:
    folder = tissue(tmp_path / "set")
    lone = np.zeros((200, 200))
    for path in folder.glob("[Ck]*/*/Labels/*.mat"):
        savemat(path, {"inst_map": lone})
    lone[3, 3] = 1
    savemat(folder / "kumar/test_same/Labels/T-1.mat", {"inst_map": lone})
    refused("must contain at least two patches, got 1", "histology-nuclei-pixels", folder)


# Lists that are missing or cut short


@pytest.mark.parametrize(
    ("task", "make", "name", "column"),
    [
        ("asset-wealth", wealth_folder, "dhs_metadata.csv", "country"),
        ("ventricular-volume", heart_folder, "FileList.csv", "FileName"),
        ("ventricular-volume", heart_folder, "VolumeTracings.csv", "FileName"),
        ("skin-lesion-pixels", skin_folder, "HAM10000_metadata", "image_id"),
    ],
)
def test_lists_are_checked(
    task: str, make: Callable[[Path], Path], name: str, column: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "set")
    path = folder / name
    whole = path.read_bytes()
    header = whole.split(b"\n")[0]
    for content, told in (
        (b"", "cannot be read"),
        (header + b"\n", "must have at least one row"),
        (header + b"\n,,", "(cannot be read|must have no missing value)"),
        (20 * (PAGE + b"\n"), f"must have the column '{column}'"),
    ):
        path.write_bytes(content)
        refused(f"{name}.*{told}", task, folder, "test")
    path.unlink()
    with pytest.raises(InputError, match=name):
        _ = image_task(task, folder=folder, **TINY).test


def test_a_list_cut_within_a_row_is_refused(tmp_path: Path) -> None:
    folder = heart_folder(tmp_path / "set")
    path = folder / "VolumeTracings.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.rindex(",")], encoding="utf-8")
    refused(r"VolumeTracings\.csv cannot be read: .*columns", "ventricular-volume", folder, "test")
    path.write_text(text[: text.rindex(",") + 1], encoding="utf-8")
    with pytest.raises(InputError, match="column 'Frame' must have no missing value, got 1"):
        _ = image_task("ventricular-volume", folder=folder, **TINY).test


def test_a_list_cut_between_rows_leaves_out_videos_and_says_so(tmp_path: Path) -> None:
    folder = heart_folder(tmp_path / "set")
    path = folder / "VolumeTracings.csv"
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(lines[:-21]), encoding="utf-8")
    part = image_task("ventricular-volume", folder=folder, **TINY).test
    assert part.ids.tolist() == ["d"]
    assert part.notes[0] == "1 videos without two traced frames left out"


# Packed files that are broken inside


def test_a_volume_is_held_to_its_check_sum(tmp_path: Path) -> None:
    folder = brains(tmp_path / "set")
    path = folder / "imagesTr" / "BRATS_001.nii.gz"
    whole = path.read_bytes()
    plain = gzip.decompress(whole)
    other = bytearray(plain)
    other[5000] ^= 1
    stale = gzip.compress(bytes(other))[:-8] + gzip.compress(plain)[-8:]
    path.write_bytes(stale)
    refused(r"1 of 2 volumes .* BRATS_001 .*CRC", "brain-tumour-pixels", folder)
    other[352:356] = np.float32("nan").tobytes()
    path.write_bytes(gzip.compress(bytes(other)))
    refused(r"BRATS_001 .*must contain finite numbers", "brain-tumour-pixels", folder)
    other[108:112] = np.float32(-9).tobytes()
    path.write_bytes(gzip.compress(bytes(other)))
    refused("1 of 2 volumes cannot be read: BRATS_001", "brain-tumour-pixels", folder)


def holed(whole: bytes) -> bytes:
    """Zeros over the middle third."""
    third = len(whole) // 3
    return whole[:third] + bytes(third) + whole[2 * third :]


def test_packed_arrays_with_holes_are_named(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    slides = tissue(tmp_path / "tissue")
    label = slides / "tnbc/Labels/01_1.mat"
    savemat(label, {"inst_map": draws.integers(0, 9, (128, 128))}, do_compression=True)
    label.write_bytes(holed(label.read_bytes()))
    with pytest.raises(InputError, match="1 of 1 tiles cannot be read: tnbc/01_1"):
        _ = image_task("histology-nuclei-pixels", folder=slides, **TINY).test
    label.write_bytes(PAGE)
    with pytest.raises(InputError, match="1 of 1 tiles cannot be read: tnbc/01_1"):
        _ = image_task("histology-nuclei-pixels", folder=slides, **TINY).test
    savemat(label, {"inst_map": np.full((128, 128), np.nan)})
    with pytest.raises(InputError, match="inst_map must be finite"):
        _ = image_task("histology-nuclei-pixels", folder=slides, **TINY).test
    villages = wealth_folder(tmp_path / "villages")
    image = villages / "images" / "landsat_poverty_img_2011.npz"
    np.savez_compressed(image, x=draws.normal(size=(8, 224, 224)))
    image.write_bytes(holed(image.read_bytes()))
    with pytest.raises(InputError, match="1 of 4 images cannot be read: landsat_poverty_img_2011"):
        _ = image_task("asset-wealth", folder=villages, **TINY).test


@pytest.mark.parametrize("damage", [holed, DAMAGES["half"]])
@pytest.mark.parametrize("packing", ["zlib", "lzma"])
def test_packed_tiles_with_holes_are_named(
    damage: Callable[[bytes], bytes], packing: str, tmp_path: Path
) -> None:
    folder = city_folder(tmp_path / "air")
    tile = folder / "train/images/vienna1.tif"
    picture = np.random.default_rng(0).integers(0, 99, (700, 650, 3), dtype=np.uint8)
    tifffile.imwrite(tile, picture, photometric="rgb", compression=packing, tile=(64, 64))
    tile.write_bytes(damage(tile.read_bytes()))
    with pytest.raises(InputError, match=r"1 of 1 tiles cannot be read: vienna1\.tif"):
        image_task("aerial-building-pixels", folder=folder, **TINY).part("vienna")


@pytest.mark.parametrize("codec", ["mjpeg", "mpeg4"])
def test_a_frame_cut_by_the_files_end_is_no_frame(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "video.avi"
    draws = np.random.default_rng(0)
    with av.open(str(path), "w", format="avi") as video:
        stream = video.add_stream(codec, rate=30)
        stream.width = stream.height = 112
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for _ in range(4):
            picture = draws.integers(0, 256, (112, 112, 3), dtype=np.uint8)
            video.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        video.mux(stream.encode())
    whole = path.read_bytes()
    good = read_frame(path, 3)
    outcomes = set()
    for size in range(len(whole) // 4, len(whole), len(whole) // 40):
        path.write_bytes(whole[:size])
        try:
            outcomes.add(np.array_equal(read_frame(path, 3), good))
        except UnreadableError:
            outcomes.add(None)
    assert outcomes <= {None, True}
    assert None in outcomes


@pytest.mark.parametrize("row", [b"", b"\xff1,2,3,4,5,6,7,\xfe\n"])
def test_lists_that_are_no_text_are_refused(row: bytes, tmp_path: Path) -> None:
    folder = skin_folder(tmp_path / "set")
    path = folder / "HAM10000_metadata"
    path.write_bytes(path.read_bytes() + b"\n" + row if row else bytes(range(128, 256)) + b"\n1\n")
    with pytest.raises(InputError, match=r"HAM10000_metadata(: column .* text| cannot be read)"):
        _ = image_task("skin-lesion-pixels", folder=folder, **TINY).test
