"""Readers of blood pictures and rotated digits: made files, broken files, and the real ones."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure_studies.tasks import DataNotFoundError
from howsure_studies.tasks.files import UnreadableError
from howsure_studies.tasks.images import read_blood, rotated_digits
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
