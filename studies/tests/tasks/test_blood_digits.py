"""Readers of blood, digits and nuclei: made files, broken files, and the real ones."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.files import UnreadableError
from howsure_studies.tasks.images import image_task, read_blood, rotated_digits
from howsure_studies.tasks.images.small import read_digits, turned

Folder = Callable[[str], Path]


def write_blood(folder: Path, splits: tuple[str, ...] = ("train", "val", "test")) -> None:
    image = needs("PIL.Image")
    (folder / "images").mkdir()
    lines = ["file,rbc,wbc,platelets,split"]
    for place, split in enumerate(splits):
        pixels = np.zeros((480, 640, 3), dtype=np.uint8)
        pixels[:, :320, 0] = 40 * (place + 1)
        image.fromarray(pixels).save(folder / "images" / f"b{place}.png")
        lines.append(f"b{place}.png,{place + 7},0,0,{split}")
    (folder / "counts.csv").write_text("\n".join(lines))


def write_digits(folder: Path, images: np.ndarray, digits: np.ndarray) -> None:
    for name, array in (("images-idx3", images), ("labels-idx1", digits)):
        head = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
        packed = gzip.compress(head + array.astype(np.uint8).tobytes())
        (folder / f"t10k-{name}-ubyte.gz").write_bytes(packed)


def test_blood_is_read_and_shrunk_by_means(tmp_path: Path) -> None:
    write_blood(tmp_path)
    parts = read_blood(tmp_path, shrink=40)
    assert {name: part.y.tolist() for name, part in parts.items()} == {
        "train": [7.0],
        "val": [8.0],
        "test": [9.0],
    }
    assert parts["test"].x.shape == (1, 12, 16, 3)
    assert parts["test"].x[0, :, :8, 0].tolist() == [[120] * 8] * 12
    assert parts["test"].x[0, :, 8:].max() == 0
    assert parts["val"].ids.tolist() == ["b1.png"]


def test_broken_blood_is_refused(tmp_path: Path) -> None:
    write_blood(tmp_path)
    with pytest.raises(InputError, match="shrink must divide"):
        read_blood(tmp_path, shrink=7)
    (tmp_path / "images" / "b1.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"1 of 3 images cannot be read: b1\.png"):
        read_blood(tmp_path)
    with pytest.raises(InputError, match="folder must exist"):
        read_blood(tmp_path / "none")


@pytest.mark.parametrize(
    ("splits", "message"),
    [(("train", "val", "other"), "must name the splits"), (("train", "train", "val"), "no row")],
)
def test_splits_of_blood_are_checked(tmp_path: Path, splits: tuple[str, ...], message: str) -> None:
    write_blood(tmp_path, splits)
    with pytest.raises(InputError, match=message):
        read_blood(tmp_path)


def test_pictures_of_another_size_are_refused(tmp_path: Path) -> None:
    image = needs("PIL.Image")
    write_blood(tmp_path)
    image.fromarray(np.zeros((5, 5, 3), np.uint8)).save(tmp_path / "images" / "b0.png")
    with pytest.raises(InputError, match="640 × 480"):
        read_blood(tmp_path)


def test_digits_are_read_turned_and_split(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = np.zeros((50, 28, 28), np.uint8)
    images[:, 4:20, 13:15] = rng.integers(100, 255, (50, 1, 1))
    write_digits(tmp_path, images, np.arange(50) % 10)
    read, digits = read_digits(tmp_path)
    np.testing.assert_array_equal(read[..., 0], images)
    assert digits[13] == 3
    parts = rotated_digits(tmp_path, rows=40, most=30.0, seed=5)
    assert [len(parts[name]) for name in ("train", "val", "test")] == [28, 4, 8]
    ids = [one for part in parts.values() for one in part.ids.tolist()]
    assert len(set(ids)) == 40
    for part in parts.values():
        assert (np.abs(part.y) <= 30.0).all()
        for picture, angle, name in zip(part.x, part.y, part.ids, strict=True):
            row = int(name.split("/")[0])
            np.testing.assert_array_equal(picture[..., 0], turned(images[[row]], [angle])[0])
    again = rotated_digits(tmp_path, rows=40, most=30.0, seed=5)
    np.testing.assert_array_equal(parts["test"].x, again["test"].x)


def test_turning_follows_the_axis_of_the_image() -> None:
    """The principal axis of a bar turns by the angle, counter-clockwise."""
    bar = np.zeros((1, 41, 41), np.uint8)
    bar[0, 18:23, 6:35] = 255
    for angle in (-50.0, 10.0, 35.0):
        rows, columns = np.nonzero(turned(bar, [angle])[0] > 127)
        cloud = np.cov(columns, -rows)
        axis = np.linalg.eigh(cloud)[1][:, 1]
        found = np.degrees(np.arctan2(axis[1], axis[0]))
        assert (found - angle + 90.0) % 180.0 - 90.0 == pytest.approx(0.0, abs=1.0)


def test_broken_digits_are_refused(tmp_path: Path) -> None:
    write_digits(tmp_path, np.zeros((20, 28, 28)), np.zeros(20))
    with pytest.raises(InputError, match="most must be"):
        rotated_digits(tmp_path, most=0.0)
    with pytest.raises(InputError, match="rows must be between 10 and 20"):
        rotated_digits(tmp_path, rows=21)
    with pytest.raises(InputError, match="finite numbers"):
        turned(np.zeros((1, 2, 2), np.uint8), [np.nan])
    write_digits(tmp_path, np.zeros((20, 27, 28)), np.zeros(20))
    with pytest.raises(UnreadableError, match="28 × 28"):
        read_digits(tmp_path)
    write_digits(tmp_path, np.zeros((20, 28, 28)), np.zeros((20, 1)))
    with pytest.raises(UnreadableError, match="1 dimensions"):
        read_digits(tmp_path)
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-5]))
    with pytest.raises(UnreadableError, match="bytes, got"):
        read_digits(tmp_path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_digits(tmp_path)
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_digits(tmp_path / "none")


def test_absent_data_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for read in (read_blood, read_digits):
        with pytest.raises(DataNotFoundError, match="img_"):
            read()


@pytest.mark.rate
def test_real_files(data_dir: Folder) -> None:
    needs("PIL")
    parts = read_blood(data_dir("img_bccd_cell_count"), shrink=20)
    counts = np.concatenate([part.y for part in parts.values()])
    assert [len(part) for part in parts.values()] == [205, 87, 72]
    assert round(float(counts.mean()), 4) == 11.4148
    assert (counts.min(), counts.max()) == (0.0, 27.0)
    images, digits = read_digits(data_dir("img_mnist_t10k"))
    assert np.bincount(digits).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert round(float(images.mean() / 255), 4) == 0.1325


# Nuclei: images with masks

KINDS = {
    "home": (696, 520),
    "experiment": (256, 256),
    "magnified": (360, 360),
    "stained": (320, 256),
}
DISCS = [(20, 20, 6), (20, 90, 9), (100, 40, 5), (100, 51, 7)]
"""Row, column and radius of the nuclei of every image; the last two touch."""


def disc(height: int, width: int, row: int, column: int, radius: int) -> np.ndarray:
    down, right = np.ogrid[:height, :width]
    return np.asarray((down - row) ** 2 + (right - column) ** 2 <= radius**2)


def write_nuclei(folder: Path, images: int = 6, *, published: bool = False) -> None:
    """Images of each kind, by a table, or each in a folder with a mask for each nucleus."""
    image = needs("PIL.Image")
    lines = ["image,mask,source_id,modality,width,height,nuclei"]
    for inner in () if published else ("images", "masks"):
        (folder / inner).mkdir(parents=True)
    for kind, (width, height) in KINDS.items():
        masks = [disc(height, width, *where) for where in DISCS]
        union = np.any(masks, axis=0)
        for number in range(images):
            pixels = np.repeat(np.asarray(10 + number + 30 * union, np.uint8)[..., None], 3, axis=2)
            if kind == "stained":
                pixels[..., 0] += 1
            key = f"{kind}{number}"
            if published:
                own = folder / "stage1_train" / key
                for inner in ("images", "masks"):
                    (own / inner).mkdir(parents=True)
                image.fromarray(pixels).save(own / "images" / f"{key}.png")
                for at, mask in enumerate(masks):
                    image.fromarray(np.asarray(255 * mask, np.uint8)).save(
                        own / "masks" / f"{at}.png"
                    )
            else:
                image.fromarray(pixels).save(folder / "images" / f"{key}.png")
                image.fromarray(union).save(folder / "masks" / f"{key}.png")
                modality = "stained" if kind == "stained" else "fluorescence"
                lines.append(f"{key}.png,{key}.png,x,{modality},{width},{height},{len(DISCS)}")
    if not published:
        (folder / "index.csv").write_text("\n".join(lines))


def test_nuclei_are_cut_in_patches_and_divided_by_image(tmp_path: Path) -> None:
    write_nuclei(tmp_path)
    task = image_task("nuclei-pixels", folder=tmp_path, complete=False)
    assert task.tests == ("experiment", "magnified", "stained", "home")
    sizes = {}
    for name in ("train", "val", *task.tests):
        part = task.part(name)
        sizes[name] = len({key.split("/")[0] for key in part.ids.tolist()})
        width, height = KINDS.get(name, KINDS["home"])
        union = np.any([disc(height, width, *where) for where in DISCS], axis=0)
        for picture, count, key in zip(part.x, part.y, part.ids.tolist(), strict=True):
            down, across = divmod(int(key.split("/")[1]), width // 64)
            own = union[64 * down : 64 * down + 64, 64 * across : 64 * across + 64]
            assert count == own.sum() > 0
            assert ((picture[..., 1] > picture[..., 1].min()) == own).all()
    assert sizes == {"train": 4, "val": 1, "home": 1, "experiment": 6, "magnified": 6, "stained": 6}
    images = [key.split("/")[0] for name in ("train", "val", "home") for key in task.part(name).ids]
    assert len(set(images)) == 6  # no image is in two parts


def test_patches_without_a_nucleus_may_stay(tmp_path: Path) -> None:
    write_nuclei(tmp_path, 1)
    options: dict[str, Any] = {"folder": tmp_path, "complete": False}
    kept = image_task("nuclei-pixels", empty="keep", **options).test
    dropped = image_task("nuclei-pixels", **options).test
    assert len(kept) == 16
    np.testing.assert_array_equal(kept.ids[kept.y > 0], dropped.ids)
    with pytest.raises(InputError, match="empty must be drop or keep, got 'no'"):
        _ = image_task("nuclei-pixels", **{**options, "empty": "no"}).test
    with pytest.raises(InputError, match="must contain 664 images, got 4: the download"):
        _ = image_task("nuclei-pixels", folder=tmp_path).test


@pytest.mark.parametrize("published", [False, True])
def test_nuclei_that_touch_are_counted_each(tmp_path: Path, published: bool) -> None:
    write_nuclei(tmp_path, 1, published=published)
    task = image_task("nuclei-count", folder=tmp_path, complete=False)
    assert task.counts
    for name in ("experiment", "magnified", "stained"):
        counts = dict(zip(task.part(name).ids.tolist(), task.part(name).y.tolist(), strict=True))
        across = KINDS[name][0] // 64
        where = [row // 64 * across + column // 64 for row, column, _ in DISCS]
        wanted = {f"{name}0/{at}": float(where.count(at)) for at in sorted(set(where))}
        assert {key: count for key, count in counts.items() if count} == wanted


def test_a_mask_of_another_shape_is_refused(tmp_path: Path) -> None:
    write_nuclei(tmp_path, 1)
    needs("PIL.Image").fromarray(np.ones((5, 5), bool)).save(tmp_path / "masks" / "stained0.png")
    with pytest.raises(InputError, match=r"1 of 1 images cannot be read: stained0\.png"):
        _ = image_task("nuclei-pixels", folder=tmp_path, complete=False).part("stained")


@pytest.mark.data
@pytest.mark.slow
def test_nuclei_of_the_data_science_bowl(data_dir: Folder) -> None:
    folder = data_dir("img_nuclei_dsb2018")
    rows = {}
    for empty in ("drop", "keep"):
        task = image_task("nuclei-count", folder=folder, empty=empty)
        rows[empty] = [len(task.part(name)) for name in ("train", "val", *task.tests)]
    assert rows["keep"] == [4800, 1200, 5344, 2250, 2140, 1200]
    assert rows["drop"] == [3863, 964, 3907, 2087, 1784, 953]
    y = image_task("nuclei-pixels", folder=folder).part("magnified").y
    assert y.sum() == 2550238  # pixels of the masks, margins of images left out
