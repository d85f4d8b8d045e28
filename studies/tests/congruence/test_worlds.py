"""Known distributions against direct sums; tasks: parts, embeddings, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from extras import needs
from generated import examples
from howsure.core.errors import InputError
from howsure.predictions import Distribution
from howsure.topics.congruence.predictive import Draws, Mixtures, Normals, Support
from howsure_studies.congruence import wave_task
from howsure_studies.congruence.experiments import gaussian_blur
from howsure_studies.congruence.worlds import (
    FallingCounts,
    PixelPCA,
    array_task,
    cells_task,
    congruence_task,
    digits_task,
    draw_wave,
    image_parts_task,
    law_distance,
    wave_law,
)
from howsure_studies.tasks import Part, Task


def table_at(x: float) -> np.ndarray:
    """p(k) ∝ (λᵏ/k!)⁵ for k = 0, …, 79, by direct sums."""
    k = np.arange(80.0)
    logs = np.array([np.log(np.arange(1.0, n + 1)).sum() for n in range(80)])
    scores = 5.0 * (k * np.log(max(10.0 * np.sin(x) + 10.0, 1e-9)) - logs)
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def test_wave_is_as_published() -> None:
    x, y, _ = draw_wave(3, 60)
    law = wave_law(x)
    tables = np.stack([table_at(at) for at in x])
    below = (30 - y).astype(int)
    mass = tables[np.arange(60), below]
    above = np.array([row[at:].sum() for row, at in zip(tables, below, strict=True)])
    np.testing.assert_allclose(np.exp(law.log_density(y)), mass, atol=1e-9)
    np.testing.assert_allclose(law.cdf(y), above, atol=1e-9)
    np.testing.assert_allclose(law.cdf_left(y), above - mass, atol=1e-9)
    np.testing.assert_allclose(law.point(), 30 - tables @ np.arange(80.0), atol=1e-8)
    spread = tables @ np.arange(80.0) ** 2 - (tables @ np.arange(80.0)) ** 2
    np.testing.assert_allclose(law.sd(), np.sqrt(spread), atol=1e-4)
    draws = law.sample(np.random.default_rng(0), 2000)
    np.testing.assert_allclose(draws.mean(axis=1), law.point(), atol=0.25)
    assert law.discrete


@examples(40)
@given(st.floats(0.0, 6.28), st.floats(1e-6, 1.0 - 1e-6))
def test_wave_quantiles_are_the_smallest_that_reach_their_level(x: float, level: float) -> None:
    law = wave_law(np.array([x]))
    (found,) = law.quantile([level])[:, 0]
    assert law.cdf(np.array([found]))[0] >= level - 1e-9
    assert law.cdf(np.array([found - 1.0]))[0] < level + 1e-9


def test_wave_takes_parameters_of_one_column() -> None:
    law = wave_law(np.array([0.5, 2.0]))
    wide = {name: value[:, None] for name, value in law.parameters.items()}
    values = np.array([[10.0, 12.0, 14.0], [9.0, 11.0, 13.0]])
    found = law.law.log_density(values, wide)
    for column in range(3):
        np.testing.assert_allclose(found[:, column], law.log_density(values[:, column]))


def test_a_fractional_top_is_refused() -> None:
    with pytest.raises(InputError, match="top must be whole"):
        Distribution(FallingCounts(), {"mu": [1.0], "nu": 1.0, "top": 2.5})


def test_distance_of_normal_laws_by_integration() -> None:
    gamma = 0.7

    def mean(m1: float, s1: float, m2: float, s2: float) -> float:
        wide = np.hypot(s1, s2)
        law = lambda d: np.exp(-0.5 * ((d - m1 + m2) / wide) ** 2) / wide / np.sqrt(2 * np.pi)  # noqa: E731
        return float(integrate.quad(lambda d: law(d) * np.exp(-gamma * d * d), -30, 30)[0])

    one, two = (0.3, 1.2), (1.0, 0.4)
    squared = mean(*one, *one) - 2.0 * mean(*one, *two) + mean(*two, *two)
    found = law_distance(Normals([one[0]], [one[1]]), Normals([two[0]], [two[1]]), gamma)
    assert found[0] == pytest.approx(np.sqrt(squared), abs=1e-7)


def test_distance_of_listed_laws_and_mixtures_by_sums() -> None:
    p, q = np.array([[0.2, 0.5, 0.3]]), np.array([[0.6, 0.4]])
    a, b = np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0])
    kernel = lambda u, v: np.exp(-0.5 * np.subtract.outer(u, v) ** 2)  # noqa: E731
    squared = p @ kernel(a, a) @ p.T - 2 * p @ kernel(a, b) @ q.T + q @ kernel(b, b) @ q.T
    found = law_distance(Support(a, p), Support(b, q), 0.5)
    assert found[0] == pytest.approx(float(np.sqrt(squared[0, 0])))
    points = Mixtures(p, a[None], np.full((1, 3), 1e-9))
    assert law_distance(points, Support(b, q), 0.5)[0] == pytest.approx(found[0])
    assert law_distance(Support(a, p), Support(a, p), 0.5)[0] == pytest.approx(0.0, abs=1e-7)


def test_distance_refuses_what_it_cannot_take() -> None:
    one = Normals([0.0], [1.0])
    with pytest.raises(InputError, match="gamma must be above 0"):
        law_distance(one, one, 0.0)
    with pytest.raises(InputError, match="second must have 1 rows"):
        law_distance(one, Normals([0.0, 1.0], [1.0, 1.0]), 1.0)
    with pytest.raises(InputError, match="predictive must be"):
        law_distance(one, Draws([0.0]), 1.0)


def test_wave_parts_are_disjoint_and_of_the_published_sizes() -> None:
    task = wave_task(1)
    ids = [set(task.part(which).ids.tolist()) for which in ("train", "val", "test")]
    assert [len(part) for part in ids] == [800, 100, 100]
    assert len(set.union(*ids)) == 1000
    assert task.space.bandwidth == 0.5
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
    with pytest.raises(InputError, match="200 numbers per row"):
        many(np.zeros((2, 3)))


def test_tables_are_embedded_by_columns_of_unit_spread() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 50.0]
    task = array_task("table", x, x[:, 0], seed=3)
    np.testing.assert_allclose(task.space.embed(task.train.x).std(axis=0, ddof=1), 1.0)
    assert len(task.train) == 140
    images = array_task(
        "images",
        np.zeros((50, 2, 2, 1), np.uint8) + np.arange(50)[:, None, None, None],
        np.arange(50.0),
        counts=True,
    )
    assert images.images
    assert images.space.embed(images.val.x).shape[0] == 5


def test_drawn_cells() -> None:
    task = cells_task(0, train=40, val=10, test=10, components=5)
    assert task.counts
    assert task.space.embed(task.test.x).shape == (10, 5)
    assert task.images


def test_what_is_refused() -> None:
    part = Part(x=np.zeros((3, 1)), y=[0.5, 1.0, 2.0], ids=["a", "b", "c"])
    with pytest.raises(InputError, match="y of train must contain counts"):
        Task.of(dict.fromkeys(("train", "val", "test"), part), name="", counts=True)
    with pytest.raises(InputError, match="part must be one of"):
        wave_task(rows=30).part("tests")
    with pytest.raises(InputError, match="rows must be a whole number of at least 30"):
        wave_task(rows=29)
    with pytest.raises(InputError, match="task must be one of"):
        congruence_task("waves")
    with pytest.raises(InputError, match=r"option must be one of seed, rows, got .columns"):
        congruence_task("discrete-wave", columns=3)
    with pytest.raises(InputError, match="parts must contain"):
        image_parts_task("", {"train": part}, counts=False, units="y")
    with pytest.raises(InputError, match="shares must leave"):
        array_task("", np.zeros((9, 1)), np.zeros(9))
    with pytest.raises(InputError, match="y must have shape"):
        array_task("", np.zeros((90, 1)), np.zeros(9))


def test_large_photographs_are_seen_in_squares() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (30, 11, 9, 3), dtype=np.uint8)
    y = np.arange(30.0)
    ids = y.astype(str)
    rows = {"train": slice(0, 20), "val": slice(20, 25), "test": slice(25, 30)}
    parts = {k: Part(x=images[part], y=y[part], ids=ids[part]) for k, part in rows.items()}
    task = image_parts_task("", parts, counts=False, units="", components=4, most=4)
    squares = np.empty((30, 3, 3, 3))  # of 3 by 3 pixels; the last two rows of pixels are left out
    for i in range(3):
        for j in range(3):
            part = images[:, 3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
            squares[:, i, j] = part.reshape(30, 9, 3).sum(axis=1) / 9.0
    wanted = PixelPCA.of(squares[:20], 4)(squares[25:])
    np.testing.assert_allclose(task.space.embed(images[25:]), wanted, atol=1e-8)
    whole = image_parts_task("", parts, counts=False, units="", components=4, most=11)
    np.testing.assert_array_equal(whole.space.embed(images), PixelPCA.of(images[:20], 4)(images))


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
    assert task.space.embed(task.test.x).shape == (3, 2)
    assert task.counts


@pytest.mark.slow
def test_the_published_blur_hardly_moves_pictures_of_blood(
    data_dir: Callable[[str], Path],
) -> None:
    """So no measure of models that see components can rise with it."""
    task = congruence_task("blood", folder=str(data_dir("img_bccd_cell_count")))

    def unit(x: np.ndarray) -> np.ndarray:
        vectors = task.space.embed(x)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    clear, blurred = unit(task.test.x), unit(gaussian_blur(task.test.x, 10.0))
    apart = np.sqrt(np.maximum(2.0 - 2.0 * clear @ clear.T, 0.0))
    between = apart[np.triu_indices(len(apart), 1)].mean()
    assert np.linalg.norm(clear - blurred, axis=1).mean() < 0.05 * between


def test_real_digits(data_dir: Callable[[str], Path]) -> None:
    folder = str(data_dir("img_mnist_t10k"))
    digits = digits_task(0, folder=folder, rows=100, components=4)
    assert not digits.counts
    assert digits.units == "degrees"
    assert len(digits.train) == 70
