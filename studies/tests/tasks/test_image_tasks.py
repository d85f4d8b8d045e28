"""The synthetic tasks: who is trained on and tested, at full size and by brute force."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import HowsureWarning, InputError
from howsure_studies.tasks.images import image_names, image_task, network_input
from howsure_studies.tasks.images.drawn import (
    CELLS,
    CELLS_SIZES,
    CHAIRS,
    cells_rows,
    chairs_rows,
    drawn_cells,
    drawn_chairs,
    drawn_variant,
)

Image = needs("PIL.Image")

SHIFTED = {"cells-tails": lambda y: 50 < y < 151, "cells-gap": lambda y: y < 50 or y > 150}
CHAIR_RULES = {
    "chair-angle": lambda y: 0 < y < 90,
    "chair-angle-tails": lambda y: 15 < y < 75,
    "chair-angle-gap": lambda y: 0 < y < 30 or 60 < y < 90,
}


def rows_of(name: str, part: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a part at full size, and their labels; nothing is drawn."""
    if name in CELLS:
        population = drawn_cells(seed, "micrograph", True)
        rows = cells_rows(population, CELLS[name], part, seed, CELLS_SIZES)
    else:
        population = drawn_chairs(seed)
        rows = chairs_rows(population, CHAIRS[name], part, seed)
    return rows, population.labels[rows]


@pytest.mark.parametrize("name", [*CELLS, *CHAIRS])
def test_parts_have_the_published_sizes_and_share_no_image(name: str) -> None:
    task = image_task(name)
    parts = {part: rows_of(name, part)[0] for part in ("train", "val", "full")}
    assert {part: len(rows) for part, rows in parts.items()} == dict(task.published)
    together = np.concatenate(list(parts.values()))
    assert len(np.unique(together)) == len(together)


def test_plain_cells_are_all_in_range() -> None:
    assert set(rows_of("cells", "full")[1]) == set(range(1, 201))


@pytest.mark.parametrize("name", list(SHIFTED))
def test_shifted_cells_train_in_range_and_test_half_and_half(name: str) -> None:
    rule = SHIFTED[name]
    for part in ("train", "val"):
        assert all(map(rule, rows_of(name, part)[1]))
    test = np.array([rule(y) for y in rows_of(name, "full")[1]])
    assert test.sum() == 5_000
    assert test[:5_000].sum() == pytest.approx(2_500, abs=200)


def test_the_gaps_edge_is_the_papers_or_its_codes() -> None:
    assert drawn_variant("cells-gap").inside == ((1, 49), (151, 200))
    assert drawn_variant("cells-gap", edge="code").inside == ((1, 49), (150, 200))
    with pytest.raises(InputError, match="edge must be paper or code"):
        drawn_variant("cells-gap", edge="both")


@pytest.mark.parametrize(
    ("step", "low", "high"), [("step-1", 37.5, 163.5), ("step-2", 25, 176), ("step-3", 12.5, 188.5)]
)
def test_steps_of_cells_widen_the_test(step: str, low: float, high: float) -> None:
    rows, labels = rows_of("cells-tails", step)
    outside = labels[(labels <= 50) | (labels > 150)]
    assert len(rows) == 10_000
    assert len(outside) == 5_000
    assert low <= labels.min() <= low + 1
    assert high - 1 <= labels.max() <= high
    inside = set(rows[(labels > 50) & (labels <= 150)].tolist())
    full, y = rows_of("cells-tails", "full")
    assert inside == set(full[(y > 50) & (y <= 150)].tolist())


@pytest.mark.parametrize("name", list(CHAIR_RULES))
def test_chairs_train_on_odd_tenths_in_range_and_test_on_even_ones(name: str) -> None:
    for part in ("train", "val"):
        labels = rows_of(name, part)[1]
        assert all(map(CHAIR_RULES[name], labels))
        assert (np.rint(labels * 10) % 2 == 1).all()
    labels = rows_of(name, "full")[1]
    tenths, counts = np.unique(np.rint(labels * 10), return_counts=True)
    assert np.array_equal(tenths, np.arange(2, 900, 2))
    assert (counts == 25).all()


@pytest.mark.parametrize(("step", "edge"), [("step-1", 33.75), ("step-2", 37.5), ("step-3", 41.25)])
def test_steps_of_chairs_close_the_gap(step: str, edge: float) -> None:
    rows, labels = rows_of("chair-angle-gap", step)
    wanted = {t for t in range(2, 900, 2) if t / 10 < edge or t / 10 > 90 - edge}
    assert set(np.rint(labels * 10).astype(int)) == wanted
    assert set(rows.tolist()) < set(rows_of("chair-angle-gap", "full")[0].tolist())


def test_parts_are_drawn_when_asked_for_and_kept() -> None:
    task = image_task("cells-tails", train=12, val=6, test=10, seed=3)
    assert task.train is task.train
    assert (len(task.train), len(task.val), len(task.test)) == (12, 6, 10)
    assert task.train.in_range is None
    assert task.test.in_range is not None
    assert task.test.in_range.sum() == 5
    again = image_task("cells-tails", train=12, val=6, test=10, seed=3)
    assert np.array_equal(again.part("step-2").x, task.part("step-2").x)
    other = image_task("cells-tails", train=12, val=6, test=10, seed=4)
    assert not np.array_equal(other.train.y, task.train.y)
    more = image_task("cells-tails", train=30, val=6, test=10, seed=3)
    assert np.array_equal(more.test.x, task.test.x)
    assert np.array_equal(more.val.x, task.val.x)


def test_switches_reach_the_drawing() -> None:
    plain = image_task("cells", train=4, val=2, test=2)
    direct = image_task("cells", train=4, val=2, test=2, recipe="direct")
    assert not np.array_equal(direct.train.x, plain.train.x)
    for choice in ({"recipe": "direct", "shortcut": False}, {"recipe": "faithful"}):
        other = image_task("cells", train=4, val=2, test=2, **choice)
        assert np.array_equal(other.train.y, plain.train.y)
        assert not np.array_equal(other.train.x, direct.train.x)


def test_a_task_travels_to_another_process() -> None:
    task = pickle.loads(pickle.dumps(image_task("chair-angle", train=3, val=2, test=2)))
    assert task.train.x.shape == (3, 64, 64, 3)
    assert task.train.ids[0].startswith("design-")


def test_network_input_is_the_benchmarks_loader() -> None:
    x = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    out = network_input(x)
    mean, sd = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    for channel in range(3):
        wanted = (x[..., channel] / 255.0 - mean[channel]) / sd[channel]
        assert np.allclose(out[:, channel], wanted, atol=1e-6)
    grey = network_input(x[..., :1])
    assert grey.shape == (2, 3, 4, 5)
    assert np.allclose(grey[:, 1] * 0.224 + 0.456, grey[:, 0] * 0.229 + 0.485, atol=1e-6)
    bands = np.ones((1, 4, 4, 8))
    assert network_input(bands, "none").shape == (1, 8, 4, 4)
    with pytest.raises(InputError, match="8-bit with 1 or 3 channels"):
        network_input(bands)
    with pytest.raises(InputError, match="four dimensions"):
        network_input(x[0])


def test_wrong_wishes_are_refused() -> None:
    with pytest.raises(InputError, match="near: cells"):
        image_task("cell")
    with pytest.raises(InputError, match="train must be a whole number of at least 2, got 1"):
        image_task("cells", train=1)
    with pytest.raises(InputError, match=r"part must be one of train, val, full"):
        image_task("cells").part("test")
    with pytest.raises(InputError, match="sizes must not exceed the 200000 images in range"):
        _ = image_task("cells", train=200_000).train


def test_the_two_papers_tasks_are_told_apart() -> None:
    shift, congruence = image_names("shift"), image_names("congruence")
    assert len(shift) == 12
    assert congruence == ("aaf", "fg-net", "eva", "coco-people")
    nuclei = ("nuclei-pixels", "nuclei-count")  # of neither paper
    assert image_names() == (*shift[:6], *nuclei, *shift[6:], *congruence)
    with pytest.raises(InputError, match="family must be one of shift, congruence, got 'shfit'"):
        image_names("shfit")


def cell_files(folder: Path) -> Path:
    """A small Cell-200: two images of each count, whose grey tells count and number."""
    folder.mkdir()
    for count in range(1, 201):
        for copy in range(2):
            grey = np.full((64, 64), count, dtype=np.uint8)
            grey[0, 0] = copy
            Image.fromarray(grey).save(folder / f"{2 * count + copy}_{count}.0.png")
    return folder


def test_original_cells_are_read_as_they_are(tmp_path: Path) -> None:
    folder = cell_files(tmp_path / "Cell200")
    task = image_task("cells-gap", folder=folder, train=50, val=20, test=40, complete=False)
    for part in (task.train, task.val, task.test):
        assert np.array_equal(part.x[:, 5, 5, 0], part.y)
        numbers = [int(name.split("_")[0]) for name in part.ids]
        assert np.array_equal(numbers, 2 * part.y + part.x[:, 0, 0, 0])
    assert task.test.in_range is not None
    assert task.test.in_range.sum() == 20


def test_original_cells_that_are_broken_are_named_and_counted(tmp_path: Path) -> None:
    folder = cell_files(tmp_path / "Cell200")
    (folder / "100_50.0.png").write_bytes(b"not a picture")
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(folder / "101_50.0.png")
    wish = {"folder": folder, "train": 300, "val": 50, "test": 50, "complete": False}
    task = image_task("cells", **wish)
    with pytest.raises(InputError, match=r"[12] of (300|50) images cannot be read: 10[01]_50"):
        _ = [task.part(part) for part in ("train", "val", "full")]
    with pytest.raises(InputError, match=r"must contain 200000 images .* got 400: the download"):
        _ = image_task("cells", folder=folder).train
    task = image_task("cells", **wish, broken="skip")
    with pytest.warns(HowsureWarning, match="cannot be read"):
        parts = [task.part(part) for part in ("train", "val", "full")]
    assert sum(map(len, parts)) == 398
    assert any("cannot be read" in note for part in parts for note in part.notes)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="got 0"):
        _ = image_task("cells", folder=tmp_path / "none", complete=False).train


def chair_file(folder: Path, *, images: int = 899 * 4) -> Path:
    """A small RC-49 of four chairs, whose red tells the angle and green the channel order."""
    h5py = needs("h5py")
    folder.mkdir()
    tenths = np.repeat(np.arange(1, 900), 4)[:images]
    pixels = np.zeros((images, 3, 64, 64), dtype=np.uint8)
    pixels[:, 0] = (tenths // 10)[:, None, None]
    pixels[:, 1] = 200
    with h5py.File(folder / "RC-49_64x64.h5", "w") as held:
        held["images"] = pixels
        held["labels"] = (tenths / 10).astype(np.float32)
        held["indx_train"] = np.flatnonzero(tenths % 2)
    return folder


def test_original_chairs_are_read_as_they_are(tmp_path: Path) -> None:
    folder = chair_file(tmp_path / "RC-49")
    task = image_task("chair-angle-gap", folder=folder, complete=False)
    assert len(task.train) == int(0.8 * 300 * 4)
    assert len(task.test) == 449 * 4
    for part in (task.train, task.val, task.part("step-1")):
        assert np.array_equal(part.x[:, 3, 3, 0], np.floor(part.y))
        assert (part.x[..., 1] == 200).all()
        assert not part.x[..., 2].any()
    with pytest.raises(InputError, match="must contain 44051 images"):
        _ = image_task("chair-angle", folder=folder).train


def test_half_a_chair_file_is_refused(tmp_path: Path) -> None:
    folder = chair_file(tmp_path / "RC-49", images=40)
    path = folder / "RC-49_64x64.h5"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="cannot be read"):
        _ = image_task("chair-angle", folder=folder, complete=False).train
    with pytest.raises(InputError, match=r"must contain RC-49_64x64\.h5"):
        _ = image_task("chair-angle", folder=tmp_path, complete=False).train
    with needs("h5py").File(path, "w") as held:
        held["images"] = np.zeros((2, 64, 64, 3), np.uint8)
        held["labels"] = np.array([0.1, 0.2])
        held["indx_train"] = np.array([0])
    with pytest.raises(InputError, match=r"images must be \(2, 3, 64, 64\)"):
        _ = image_task("chair-angle", folder=folder, complete=False).train
