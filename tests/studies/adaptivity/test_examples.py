"""The two case studies of adaptivity: their data, their parts, and their smallest run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from extras import needs

FOLDER = Path(__file__).parents[3] / "examples"
Find = Callable[[str], Path]


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[str], ModuleType]]:
    """Import an example by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module


def test_label_sets_of_digits(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    labels = load("adaptivity_labels")
    item = labels.trained("digits", *labels.digits(), kind="logistic", train=200, rows=500, bins=5)
    assert item.task.accuracy > 0.8
    assert len(item.task.eases) == len(labels.SHARES)
    size = labels.Size(
        2, 4, 500, labels.TunedLabels(share=0.5, bins=(2,), penalties=(0.1,)), (0.9,)
    )
    found = labels.comparisons([item], size)
    (result,) = found[0.9]
    assert np.abs(result.median("empirical_coverage") - 0.9).max() < 0.08
    slope = dict(zip(result.methods, result.median("t_ss"), strict=True))
    assert slope["O-LAC"] > slope["LAC"]
    correlations, counts = labels.validation([item], size, 0.9)
    assert len(correlations) == 4
    assert len(counts) == 5
    text = labels.markdown(correlations)
    assert text.startswith("| setting | set_deficit |")
    needs("matplotlib")
    sensitive = labels.sensitivity(item, 0.9)
    assert set(sensitive) == set(labels.SCORES)
    labels.draw([item, item, item], found, sensitive, tmp_path)
    assert len(list(tmp_path.glob("adaptivity-*.png"))) == 3


def test_images_are_those_described(load: Callable[[str], ModuleType], data_dir: Find) -> None:
    labels = load("adaptivity_labels")
    images, y = labels.mnist(data_dir("img_mnist_t10k").parent)
    assert images.shape == (10_000, 28, 28)
    assert images.mean() == pytest.approx(0.1325, abs=1e-4)
    assert np.bincount(y)[:3].tolist() == [980, 1135, 1032]


def test_tables_are_those_described(load: Callable[[str], ModuleType], data_dir: Find) -> None:
    intervals = load("adaptivity_intervals")
    folder = data_dir("shift_california_housing").parent
    x, y = intervals.california(folder)
    assert x.shape == (20_640 - 207, 8)
    assert 1e5 * y.max() == pytest.approx(500_001)
    needs("PIL")
    cells, count = intervals.blood_cells(folder)
    assert cells.shape == (364, 6 * 8 * 3 + 3)
    assert count.mean() == pytest.approx(11.4148, abs=1e-4)


def test_intervals_of_a_table(
    load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    intervals = load("adaptivity_intervals")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (700, 2))
    y = x[:, 0] + 0.3 * np.abs(x[:, 1]) * rng.normal(size=700)
    item = intervals.trained("made", (x, y), intervals.Size(400, 30, 2))
    assert (len(item.task.y), item.bins, item.groups) == (400, 5, 3)
    assert item.clip == (y.min(), y.max())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "tasks", lambda folder, size: [item])
        intervals.study(Path(), intervals.Size(400, 30, 2), None)
    printed = capsys.readouterr().out
    assert "### made, coverage 0.8" in printed
    assert "clipped to" in printed
