"""Raw downloads in their true forms, tiny: read, counted and split as by a slow hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure_studies.tasks.images import image_task
from howsure_studies.tasks.images.medical import to_bytes, traced_area
from howsure_studies.tasks.images.reading import bilinear, nearest
from howsure_studies.tasks.images.satellite import CITIES, TEST_CITIES
from tasks.refusing import refused

Image = needs("PIL.Image")

av = needs("av")
nibabel = needs("nibabel")
tifffile = needs("tifffile")

TINY: dict[str, Any] = {"complete": False}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# AssetWealth


def wealth_folder(folder: Path) -> Path:
    """2,000 rows at home are set aside, so a little more than that; few images exist."""
    countries = ["kenya"] * 2010 + ["mali"] * 4 + ["benin"] * 3
    lines = [f"{i},{name},{i / 100}" for i, name in enumerate(countries)]
    (folder / "images").mkdir(parents=True)
    (folder / "dhs_metadata.csv").write_text("\n".join(["row,country,wealthpooled", *lines]))
    bands = np.linspace(-1, 1, 8)[:, None, None] * np.ones((8, 224, 224))
    for row in range(len(countries)):
        np.savez(folder / "images" / f"landsat_poverty_img_{row}.npz", x=bands[:, :1, :1] + row)
    for row in range(2010, 2014):
        np.savez(folder / "images" / f"landsat_poverty_img_{row}.npz", x=bands + row)
    return folder


def test_wealth_follows_the_official_split(tmp_path: Path) -> None:
    folder = wealth_folder(tmp_path / "poverty")
    task = image_task("asset-wealth", folder=folder)
    with pytest.warns(HowsureWarning, match="where 9797 are published"):
        train = task.train
    order = np.arange(2010)
    np.random.default_rng(65 + 541433).shuffle(order)
    assert [int(name.split("/")[1]) for name in train.ids] == order[2000:].tolist()


def test_wealth_images_are_resized_bands(tmp_path: Path) -> None:
    task = image_task("asset-wealth", folder=wealth_folder(tmp_path / "poverty"), **TINY)
    assert task.scaling == "none"
    assert task.test.x.shape == (4, 64, 64, 8)
    assert task.test.x.dtype == np.float32
    wanted = np.arange(2010, 2014)[:, None] + np.linspace(-1, 1, 8)
    assert np.allclose(task.test.x[:, 10, 20], wanted, rtol=1e-6)
    assert np.allclose(task.test.y, np.arange(2010, 2014) / 100)


def test_wealth_names_what_is_missing_or_broken(tmp_path: Path) -> None:
    folder = wealth_folder(tmp_path / "poverty")
    image = folder / "images" / "landsat_poverty_img_2011.npz"
    image.write_bytes(image.read_bytes()[:500])
    np.savez(folder / "images" / "landsat_poverty_img_2012.npz", x=np.zeros((3, 9, 9)))
    with pytest.raises(InputError, match=r"2 of 4 images cannot be read: landsat_poverty_img_2011"):
        _ = image_task("asset-wealth", folder=folder, **TINY).test
    with pytest.warns(HowsureWarning, match="2 of 4"):
        part = image_task("asset-wealth", folder=folder, broken="skip", **TINY).test
    assert len(part) == 2
    image.unlink()
    with pytest.raises(InputError, match="must contain 2017 images, got 2016: the download"):
        _ = image_task("asset-wealth", folder=folder).test


# VentricularVolume


def write_video(path: Path, levels: list[int]) -> None:
    """An uncompressed AVI whose frames are of one grey each."""
    with av.open(str(path), "w", format="avi") as video:
        stream = video.add_stream("rawvideo", rate=30)
        stream.width = stream.height = 112
        stream.pix_fmt = "bgr24"
        for level in levels:
            picture = np.full((112, 112, 3), level, dtype=np.uint8)
            picture[..., 0] //= 2
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="bgr24")
            video.mux(stream.encode(frame))
        video.mux(stream.encode())


def chords(radius: float) -> list[list[float]]:
    """A long axis, then 20 chords of a rectangle twice as wide as a radius."""
    ends = [[50.0 - radius, y, 50.0 + radius, y] for y in np.linspace(20, 80, 20)]
    return [[50.0, 20.0, 50.0, 80.0], *ends]


def heart_folder(folder: Path) -> Path:
    """Videos a-f: b lists its small frame first, f is not traced."""
    (folder / "Videos").mkdir(parents=True)
    splits = {"a": "TRAIN", "b": "TRAIN", "c": "VAL", "d": "TEST", "e": "TEST", "f": "TRAIN"}
    rows = ["FileName,EF,ESV,EDV,Split"]
    traces = ["FileName,X1,Y1,X2,Y2,Frame"]
    for number, (name, split) in enumerate(splits.items()):
        write_video(folder / "Videos" / f"{name}.avi", [10, 60, 110, 160, 210])
        rows.append(f"{name},55,{20 + number},{80 + number},{split}")
        frames = (
            [] if name == "f" else [(3, 12.0), (1, 30.0)] if name == "b" else [(1, 30.0), (3, 12.0)]
        )
        for frame, radius in frames:
            traces += [f"{name}.avi,{','.join(map(str, line))},{frame}" for line in chords(radius)]
    (folder / "FileList.csv").write_text("\n".join(rows))
    (folder / "VolumeTracings.csv").write_text("\n".join(traces))
    return folder


def test_hearts_frames_are_told_apart_by_area(tmp_path: Path) -> None:
    task = image_task("ventricular-volume", folder=heart_folder(tmp_path / "echo"), **TINY)
    assert task.train.ids.tolist() == ["a", "b"]
    assert task.train.y.tolist() == [20, 21]
    assert task.train.x[:, 5, 5].tolist() == [[80, 160, 160]] * 2
    assert task.test.y.tolist() == [83, 84]
    assert task.test.x[:, 5, 5].tolist() == [[30, 60, 60]] * 2
    assert task.train.notes == (
        "1 videos without two traced frames left out",
        "traced area and listed order disagree on 1 of 2 videos",
    )


def test_hearts_frames_in_listed_order_and_blue_first(tmp_path: Path) -> None:
    folder = heart_folder(tmp_path / "echo")
    task = image_task("ventricular-volume", folder=folder, frames="order", order="bgr", **TINY)
    assert task.train.x[:, 5, 5].tolist() == [[160, 160, 80], [60, 60, 30]]
    refused("frames must be area or order", "ventricular-volume", folder, frames="last")


def test_a_video_that_does_not_open_is_named(tmp_path: Path) -> None:
    folder = heart_folder(tmp_path / "echo")
    (folder / "Videos" / "a.avi").write_bytes(b"RIFF....AVI nothing")
    write_video(folder / "Videos" / "b.avi", [1, 2])
    (folder / "Videos" / "c.avi").unlink()
    with pytest.raises(
        InputError, match=r"2 of 2 videos cannot be read: a\.avi \(does not open.*b"
    ):
        _ = image_task("ventricular-volume", folder=folder, broken="skip", **TINY).train
    refused(r"1 of 1 videos cannot be read: c\.avi", "ventricular-volume", folder, "val")
    refused("must contain 10030 videos, got 5", "ventricular-volume", folder, "test", complete=True)


def test_no_video_at_all_is_no_empty_part(tmp_path: Path) -> None:
    """The published script's missing slash silently gave zero images."""
    folder = heart_folder(tmp_path / "echo")
    (folder / "Videos").rename(folder / "EchoNet-DynamicVideos")
    refused("must contain 10030 videos, got 0", "ventricular-volume", folder)


def test_area_is_that_of_the_outline() -> None:
    assert traced_area(np.array(chords(30.0))) == pytest.approx(60 * 60)
    assert traced_area(np.array(chords(30.0))[:, [2, 3, 0, 1]]) == pytest.approx(60 * 60)


# BrainTumourPixels


def brain_folder(folder: Path) -> Path:
    """Volumes 1, 300 and 400 of four slices: none, large, one pixel that vanishes, and half."""
    for part in ("imagesTr", "labelsTr"):
        (folder / part).mkdir(parents=True)
    for number in (1, 300, 400):
        scan = rng().normal(100, 30, (96, 128, 4, 4)).astype(np.float32) + number
        labels = np.zeros((96, 128, 4), dtype=np.uint8)
        labels[10:50, 20:60, 1] = 3
        labels[1, 1, 2] = 1
        labels[48:, :, 3] = 2
        name = f"BRATS_{number:03d}.nii.gz"
        nibabel.save(nibabel.Nifti1Image(scan, np.eye(4)), folder / "imagesTr" / name)
        nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), folder / "labelsTr" / name)
    (folder / "imagesTr" / "._BRATS_001.nii.gz").write_bytes(b"a Mac's shadow")
    return folder


def test_brain_slices_are_scaled_together_and_counted_small(tmp_path: Path) -> None:
    folder = brain_folder(tmp_path / "brain")
    task = image_task("brain-tumour-pixels", folder=folder, **TINY)
    for part, number in ((task.train, 1), (task.val, 300), (task.test, 400)):
        scan = np.asarray(nibabel.load(folder / f"imagesTr/BRATS_{number:03d}.nii.gz").dataobj)
        labels = np.asarray(nibabel.load(folder / f"labelsTr/BRATS_{number:03d}.nii.gz").dataobj)
        assert part.ids.tolist() == [f"BRATS_{number:03d}/1", f"BRATS_{number:03d}/3"]
        for row, k in enumerate((1, 3)):
            plane = scan[:, :, k, :3].astype(float)
            scaled = (plane - plane.min()) / (plane.max() - plane.min()) * 255
            assert abs(part.x[row] - bilinear(scaled, 64, 64)).max() <= 1.5
            rows, columns = np.arange(64) * 96 // 64, np.arange(64) * 2
            assert part.y[row] == (labels[np.ix_(rows, columns)][..., k] > 0).sum()


def test_brain_channels_turn_round(tmp_path: Path) -> None:
    folder = brain_folder(tmp_path / "brain")
    first, other = (
        image_task("brain-tumour-pixels", folder=folder, order=order, **TINY).train.x
        for order in ("rgb", "bgr")
    )
    assert np.array_equal(first, other[..., ::-1])
    assert not np.array_equal(first, other)


def test_brain_names_what_is_wrong(tmp_path: Path) -> None:
    folder = brain_folder(tmp_path / "brain")
    with pytest.raises(
        InputError, match="must contain 484 volumes, got 3: the download is not whole"
    ):
        _ = image_task("brain-tumour-pixels", folder=folder).train
    image = folder / "imagesTr" / "BRATS_001.nii.gz"
    whole = image.read_bytes()
    image.write_bytes(whole[: len(whole) // 2])
    refused("1 of 1 volumes cannot be read: BRATS_001", "brain-tumour-pixels", folder)
    image.unlink()
    refused("each mask its image, got 1 alone: BRATS_001", "brain-tumour-pixels", folder, "val")
    (folder / "labelsTr" / "BRATS_001.nii.gz").unlink()
    refused(
        "no masked pixel in the part 'train': zero images remain", "brain-tumour-pixels", folder
    )


def test_a_plane_of_one_value_is_black() -> None:
    assert not to_bytes(np.full((2, 2, 3), 7.0)).any()


# SkinLesionPixels


def skin_folder(folder: Path) -> Path:
    """20 images of one source and 5 of the other; lesion sizes tell the image's number."""
    (folder / "part_1").mkdir(parents=True)
    (folder / "masks").mkdir()
    lines = ["lesion_id,image_id,dx,dx_type,age,sex,localization,dataset"]
    for number in range(25):
        source = "rosendahl" if number >= 20 else "vidir_modern"
        lines.append(f"HAM_{number},ISIC_{number:04d},nv,histo,,male,back,{source}")
        picture = np.zeros((45, 60, 3), dtype=np.uint8)
        picture[..., 0], picture[..., 1] = 200, 5 * number
        Image.fromarray(picture).save(folder / "part_1" / f"ISIC_{number:04d}.jpg", quality=95)
        mask = np.zeros((45, 60), dtype=np.uint8)
        mask[:number] = 255
        Image.fromarray(mask).save(folder / "masks" / f"ISIC_{number:04d}_segmentation.png")
    (folder / "HAM10000_metadata").write_text("\n".join(lines))
    return folder


def test_skin_splits_by_source_and_counts_after_reduction(tmp_path: Path) -> None:
    task = image_task("skin-lesion-pixels", folder=skin_folder(tmp_path / "ham"), **TINY)
    assert (len(task.train), len(task.val), len(task.test)) == (17, 3, 5)
    assert not set(task.train.ids) & set(task.val.ids)
    assert task.test.ids.tolist() == [f"ISIC_{n:04d}" for n in range(20, 25)]
    for part in (task.train, task.val, task.test):
        for row, name in enumerate(part.ids):
            number = int(name[-4:])
            assert part.y[row] == 64 * (np.arange(64) * 45 // 64 < number).sum()
            assert abs(part.x[row, 30, 30].astype(int) - [200, 5 * number, 0]).max() <= 4
    again = image_task("skin-lesion-pixels", folder=tmp_path / "ham", seed=1, **TINY)
    assert set(again.train.ids) != set(task.train.ids)


def test_skin_takes_fewer_rows_by_chance(tmp_path: Path) -> None:
    folder = skin_folder(tmp_path / "ham")
    task = image_task("skin-lesion-pixels", folder=folder, train=6, test=2, **TINY)
    whole = image_task("skin-lesion-pixels", folder=folder, **TINY)
    assert (len(task.train), len(task.val), len(task.test)) == (6, 3, 2)
    assert set(task.train.ids) < set(whole.train.ids)


def test_skin_names_what_is_wrong(tmp_path: Path) -> None:
    folder = skin_folder(tmp_path / "ham")
    refused(
        "must contain 10015 images, got 25", "skin-lesion-pixels", folder, "test", complete=True
    )
    (folder / "part_1" / "ISIC_0021.jpg").unlink()
    with pytest.raises(InputError, match=r"1 masks have no image: ISIC_0021_segmentation\.png"):
        _ = image_task("skin-lesion-pixels", folder=folder, **TINY).test
    (folder / "masks" / "ISIC_0021_segmentation.png").unlink()
    (folder / "masks" / "ISIC_0022_segmentation.png").unlink()
    picture = folder / "part_1" / "ISIC_0023.jpg"
    picture.write_bytes(picture.read_bytes()[:300])
    with pytest.raises(
        InputError, match=r"2 of 4 images .* ISIC_0022.jpg \(it has no mask\), ISIC_0023"
    ):
        _ = image_task("skin-lesion-pixels", folder=folder, **TINY).test
    with pytest.warns(HowsureWarning, match="2 of 4"):
        part = image_task("skin-lesion-pixels", folder=folder, broken="skip", **TINY).test
    assert part.ids.tolist() == ["ISIC_0020", "ISIC_0024"]
    (folder / "HAM10000_metadata").unlink()
    refused("must contain HAM10000_metadata", "skin-lesion-pixels", folder, "test")


# HistologyNucleiPixels


def write_tile(image: Path, label: Path, side: int) -> np.ndarray:
    """A tile of random colours and blocks of nuclei; the picture has a plane of opacity."""
    draws = np.random.default_rng(sum(image.name.encode()))
    picture = draws.integers(0, 256, (side, side, 3), dtype=np.uint8)
    nuclei = np.zeros((side, side), dtype=np.int32)
    nuclei[: side // 2] = draws.integers(0, 3, (side // 2, side))
    image.parent.mkdir(parents=True, exist_ok=True)
    label.parent.mkdir(parents=True, exist_ok=True)
    if image.suffix == ".tif":
        tifffile.imwrite(image, picture, photometric="rgb")
    else:
        Image.fromarray(picture).convert("RGBA").save(image)
    savemat(label, {"inst_map": nuclei.astype(float), "type_map": nuclei})
    return picture


def tissue_folder(folder: Path) -> dict[str, np.ndarray]:
    """Two tiles of CoNSeP and one of Kumar, 200 a side; one of TNBC, 128 a side."""
    return {
        "consep/Train/train_1": write_tile(
            folder / "CoNSeP/Train/Images/train_1.png",
            folder / "CoNSeP/Train/Labels/train_1.mat",
            200,
        ),
        "consep/Test/train_1": write_tile(
            folder / "CoNSeP/Test/Images/train_1.png",
            folder / "CoNSeP/Test/Labels/train_1.mat",
            200,
        ),
        "kumar/test_same/T-1": write_tile(
            folder / "kumar/test_same/Images/T-1.tif",
            folder / "kumar/test_same/Labels/T-1.mat",
            200,
        ),
        "tnbc/01_1": write_tile(
            folder / "tnbc/Images/5784/01_1.png", folder / "tnbc/Labels/01_1.mat", 128
        ),
    }


def test_tissue_is_cut_in_patches_and_those_without_nuclei_dropped(tmp_path: Path) -> None:
    tiles = tissue_folder(tmp_path / "tissue")
    task = image_task("histology-nuclei-pixels", folder=tmp_path / "tissue", **TINY)
    assert (len(task.train), len(task.val), len(task.test)) == (int(0.8 * 18), 4, 2)
    ids = [*task.train.ids.tolist(), *task.val.ids.tolist()]
    assert len(set(ids)) == 18
    for part in (task.train, task.val, task.test):
        for row, name in enumerate(part.ids):
            key, number = name.rsplit("/", 1)
            side = len(tiles[key]) // 64
            i, j = (64 * int(k) for k in divmod(int(number), side))
            assert np.array_equal(part.x[row], tiles[key][i : i + 64, j : j + 64])
            assert part.y[row] > 0
    bgr = image_task("histology-nuclei-pixels", folder=tmp_path / "tissue", order="bgr", **TINY)
    assert np.array_equal(bgr.test.x[..., ::-1], task.test.x)


def test_tissue_counts_pixels_above_zero(tmp_path: Path) -> None:
    tissue_folder(tmp_path / "tissue")
    label = tmp_path / "tissue/tnbc/Labels/01_1.mat"
    nuclei = np.zeros((128, 128))
    nuclei[70:80, 70:90] = 5
    savemat(label, {"inst_map": nuclei})
    part = image_task("histology-nuclei-pixels", folder=tmp_path / "tissue", **TINY).test
    assert (part.ids.tolist(), part.y.tolist()) == (["tnbc/01_1/3"], [200.0])
    savemat(label, {"inst_map": np.zeros((128, 128))})
    refused("zero images remain", "histology-nuclei-pixels", tmp_path / "tissue", "test")


def test_tissue_names_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "tissue"
    tissue_folder(folder)
    with pytest.raises(InputError, match="must contain 50 tiles of tnbc, got 1"):
        _ = image_task("histology-nuclei-pixels", folder=folder).test
    label = folder / "tnbc/Labels/01_1.mat"
    whole = label.read_bytes()
    for content in (b"MATLAB 5.0 MAT-file" + bytes(200), whole[:300], b"", bytes(2000)):
        label.write_bytes(content)
        refused("1 of 1 tiles cannot be read: tnbc/01_1", "histology-nuclei-pixels", folder, "test")
    savemat(label, {"other": np.zeros(3)})
    refused("1 of 1 tiles cannot be read: tnbc/01_1", "histology-nuclei-pixels", folder, "test")
    label.unlink()
    refused("each label its tile, got 1 alone: 01_1", "histology-nuclei-pixels", folder, "test")
    (folder / "kumar").rename(folder / "other")
    refused("must contain a folder 'kumar'", "histology-nuclei-pixels", folder)


# AerialBuildingPixels


def city_folder(folder: Path) -> Path:
    """A GeoTIFF of 700 by 650 for each city and its mask of 0 and 255."""
    for city in (*CITIES, *TEST_CITIES):
        draws = np.random.default_rng(len(city))
        picture = draws.integers(0, 256, (700, 650, 3), dtype=np.uint8)
        mask = np.where(draws.random((700, 650)) < 0.3, 255, 0).astype(np.uint8)
        mask[:, 320:] = 0
        for part, held in (("images", picture), ("gt", mask)):
            place = folder / "train" / part
            place.mkdir(parents=True, exist_ok=True)
            geo = [(33550, "d", 3, (0.3, 0.3, 0.0), True)]
            tifffile.imwrite(place / f"{city}1.tif", held, extratags=geo)
    return folder


@pytest.mark.parametrize("city", TEST_CITIES)
def test_cities_are_reduced_and_cut(city: str, tmp_path: Path) -> None:
    folder = city_folder(tmp_path / "air")
    part = image_task("aerial-building-pixels", folder=folder, **TINY).part(city)
    picture = tifffile.imread(folder / "train" / "images" / f"{city}1.tif")
    mask = tifffile.imread(folder / "train" / "gt" / f"{city}1.tif")
    assert part.ids.tolist() == [f"{city}1/0", f"{city}1/2"]
    for row, top in enumerate((0, 64)):
        rows, columns = 5 * (top + np.arange(64)), 5 * np.arange(64)
        assert np.array_equal(part.x[row], picture[np.ix_(rows + 2, columns + 2)])
        assert part.y[row] == (mask[np.ix_(rows, columns)] > 0).sum()


def test_cities_pool_for_training(tmp_path: Path) -> None:
    task = image_task("aerial-building-pixels", folder=city_folder(tmp_path / "air"), **TINY)
    assert task.tests == TEST_CITIES
    assert (len(task.train), len(task.val)) == (3, 1)
    assert {name.split("/")[0] for name in [*task.train.ids, *task.val.ids]} == {
        "austin1",
        "chicago1",
    }


def test_cities_name_what_is_wrong(tmp_path: Path) -> None:
    folder = city_folder(tmp_path / "air")
    with pytest.raises(InputError, match="must contain 36 tiles of vienna, got 1"):
        _ = image_task("aerial-building-pixels", folder=folder).part("vienna")
    image = folder / "train" / "images" / "vienna1.tif"
    image.write_bytes(image.read_bytes()[:4000])
    with pytest.raises(InputError, match=r"1 of 1 tiles cannot be read: vienna1\.tif"):
        _ = image_task("aerial-building-pixels", folder=folder, **TINY).part("vienna")
    image.unlink()
    refused(r"got 1 alone: vienna1\.tif", "aerial-building-pixels", folder, "vienna")
    (folder / "train" / "gt" / "vienna1.tif").unlink()
    refused("must contain 36 tiles of vienna, got 0", "aerial-building-pixels", folder, "vienna")


# What all share


def test_choices_and_folders_are_checked(tmp_path: Path) -> None:
    for wish, words in (
        ({"order": "grb"}, "order must be rgb or bgr"),
        ({"broken": "hide"}, "broken must be error or skip"),
        ({}, "folder must exist"),
    ):
        with pytest.raises(InputError, match=words):
            image_task("skin-lesion-pixels", folder=tmp_path / "no", **wish)  # type: ignore[arg-type]


def test_resizing_is_the_definition() -> None:
    image = rng().integers(0, 256, (31, 47, 3), dtype=np.uint8)
    small = bilinear(image, 10, 20)
    for i, j in ((0, 0), (4, 7), (9, 19)):
        y, x = (i + 0.5) * 31 / 10 - 0.5, (j + 0.5) * 47 / 20 - 0.5
        a, b = int(y), int(x)
        block = image[a : a + 2, b : b + 2].astype(float)
        wanted = np.einsum("i,j,ijc->c", [1 - y + a, y - a], [1 - x + b, x - b], block)
        assert abs(small[i, j] - wanted).max() <= 1.0
        assert np.array_equal(nearest(image, 10, 20)[i, j], image[31 * i // 10, 47 * j // 20])
    assert np.array_equal(bilinear(image, 31, 47), image)
    torch = needs("torch")
    floats = rng().normal(size=(5, 31, 47)).astype(np.float32)
    wanted = torch.nn.functional.interpolate(
        torch.from_numpy(floats)[None], (64, 64), mode="bilinear", align_corners=False
    )[0].numpy()
    assert np.allclose(
        np.moveaxis(bilinear(np.moveaxis(floats, 0, 2), 64, 64), 2, 0), wanted, atol=1e-5
    )
