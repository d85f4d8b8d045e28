"""Tasks of the congruence studies: parts, embeddings, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.studies.congruence.tasks import (
    CongruenceTask,
    PixelPCA,
    array_task,
    cells_task,
    congruence_task,
    digits_task,
    image_parts_task,
    plain_rows,
    wave_task,
)
from howsure.studies.tasks import Part


def test_wave_parts_are_disjoint_and_of_the_published_sizes() -> None:
    task = wave_task(1)
    ids = [set(task.part(which).ids.tolist()) for which in ("train", "val", "test")]
    assert [len(part) for part in ids] == [800, 100, 100]
    assert len(set.union(*ids)) == 1000
    assert task.bandwidth == 0.5
    assert not task.images
    assert task.truth is not None
    again, other = wave_task(1), wave_task(2)
    np.testing.assert_array_equal(task.test.y, again.test.y)
    assert (task.test.x != other.test.x).any()


def test_components_are_those_of_the_covariance() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(60, 3, 3, 1)) * np.arange(1.0, 10.0).reshape(3, 3, 1)
    pca = PixelPCA.of(images, 4)
    flat = images.reshape(60, 9)
    values, vectors = np.linalg.eigh(np.cov(flat.T))
    scores = (flat - flat.mean(axis=0)) @ vectors[:, ::-1][:, :4]
    np.testing.assert_allclose(np.abs(pca(images)), np.abs(scores), atol=1e-8)
    np.testing.assert_allclose(pca(images).var(axis=0, ddof=1), values[::-1][:4])


def test_components_never_exceed_rows_or_columns() -> None:
    assert PixelPCA.of(np.random.default_rng(0).random((5, 8)), 64).axes.shape == (8, 5)
    many = PixelPCA.of(np.random.default_rng(0).random((80, 200)), 3)
    assert many.axes.shape == (200, 3)
    with pytest.raises(InputError, match="components"):
        PixelPCA.of(np.eye(3), 0)
    with pytest.raises(InputError, match="at least 2 rows"):
        PixelPCA.of(np.eye(3)[:1])
    with pytest.raises(InputError, match="200 numbers a row"):
        many(np.zeros((2, 3)))


def test_tables_are_embedded_by_columns_of_unit_spread() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 50.0]
    task = array_task("table", x, x[:, 0], seed=3)
    np.testing.assert_allclose(task.embed(task.train.x).std(axis=0, ddof=1), 1.0)
    assert len(task.train) == 140
    images = array_task(
        "images",
        np.zeros((50, 2, 2, 1), np.uint8) + np.arange(50)[:, None, None, None],
        np.arange(50.0),
        counts=True,
    )
    assert images.images
    assert images.embed(images.val.x).shape[0] == 5


def test_drawn_cells() -> None:
    task = cells_task(0, train=40, val=10, test=10, components=5)
    assert task.counts
    assert task.embed(task.test.x).shape == (10, 5)
    assert task.images


def test_what_is_refused() -> None:
    part = Part(x=np.zeros((3, 1)), y=[0.5, 1.0, 2.0], ids=["a", "b", "c"])
    with pytest.raises(InputError, match="y of train must hold counts"):
        CongruenceTask(name="", train=part, val=part, test=part, embed=plain_rows, counts=True)
    with pytest.raises(InputError, match="part must be one of"):
        wave_task(rows=30).part("tests")
    with pytest.raises(InputError, match="rows must be a whole number of at least 30"):
        wave_task(rows=29)
    with pytest.raises(InputError, match="task must be one of"):
        congruence_task("waves")
    with pytest.raises(InputError, match=r"option must be one of seed, rows, got .columns"):
        congruence_task("discrete-wave", columns=3)
    with pytest.raises(InputError, match="parts must hold"):
        image_parts_task("", {"train": part}, counts=False, units="y")
    with pytest.raises(InputError, match="shares must leave"):
        array_task("", np.zeros((9, 1)), np.zeros(9))
    with pytest.raises(InputError, match="y must have shape"):
        array_task("", np.zeros((90, 1)), np.zeros(9))


def test_blood_task_of_made_pictures(tmp_path: Path) -> None:
    image = needs("PIL.Image")
    (tmp_path / "images").mkdir()
    lines = ["file,rbc,split"]
    for row in range(9):
        pixels = np.full((480, 640, 3), 20 * row, dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "images" / f"{row}.png")
        lines.append(f"{row}.png,{row},{('train', 'val', 'test')[row % 3]}")
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    task = congruence_task("blood", folder=str(tmp_path), shrink=40, components=2)
    assert task.test.y.tolist() == [2.0, 5.0, 8.0]
    assert task.embed(task.test.x).shape == (3, 2)
    assert task.counts


def test_real_digits(data_dir: Callable[[str], Path]) -> None:
    folder = str(data_dir("img_mnist_t10k"))
    digits = digits_task(0, folder=folder, rows=100, components=4)
    assert not digits.counts
    assert digits.units == "degrees"
    assert len(digits.train) == 70
