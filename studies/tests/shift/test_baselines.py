"""Trivial baselines: their statistics by definition, and what they answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure_studies.engine import make_method
from howsure_studies.shift.baselines import GlobalStatistics, global_statistics
from howsure_studies.shift.methods import BASELINES, fit_shift, is_baseline, model_answers
from howsure_studies.tasks.images import image_task

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (3, 9, 8)).astype(np.uint8)


def by_definition(image: np.ndarray, low: float, high: float) -> list[float]:
    rows, columns = image.shape
    padded = np.pad(image, 1, mode="symmetric")
    steep, bent = [], []
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            near = padded[i - 1 : i + 2, j - 1 : j + 2]
            weights = np.array([1.0, 2.0, 1.0]) / 8.0
            steep.append(
                np.hypot((near[2] - near[0]) @ weights, (near[:, 2] - near[:, 0]) @ weights)
            )
            bent.append(near[0, 1] + near[2, 1] + near[1, 0] + near[1, 2] - 4.0 * near[1, 1])
    levels = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
    edges = np.linspace(low, high, 33)
    inside = np.clip(image.ravel(), low, np.nextafter(high, low))
    share = np.histogram(inside, edges)[0] / image.size
    return [
        *(image.mean(), image.std(), stats.skew(image.ravel())),
        *(stats.kurtosis(image.ravel(), fisher=False), *np.quantile(image, levels)),
        *(*share, stats.entropy(share)),
        *(np.mean(steep), np.std(steep), np.mean(np.square(steep)), *np.quantile(steep, levels)),
        *(np.mean(np.abs(bent)), np.var(bent)),
        np.mean([abs(image[i + 1] - image[i]).mean() for i in range(rows - 1)]),
        np.mean([abs(image[:, j + 1] - image[:, j]).mean() for j in range(columns - 1)]),
    ]


def test_statistics_are_what_they_are_called() -> None:
    for image, found in zip(IMAGES.astype(float), global_statistics(IMAGES), strict=True):
        z = (image - image.mean()) / image.std()
        wanted = [
            *by_definition(image, 0.0, 256.0),
            *by_definition(image / image.mean(), 0.0, 4.0),
            *by_definition(z, -4.0, 4.0),
        ]
        assert found == pytest.approx(np.array(wanted), rel=1e-6, abs=1e-6)


def test_colours_are_averaged_and_an_even_image_has_numbers() -> None:
    colours = np.stack([IMAGES, IMAGES, IMAGES], axis=3)
    assert global_statistics(colours) == pytest.approx(global_statistics(IMAGES), abs=1e-6)
    assert np.isfinite(global_statistics(np.zeros((1, 5, 5)))).all()


@pytest.mark.parametrize("shape", [(4,), (0, 8, 8), (2, 2, 9)])
def test_what_is_no_image_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="images must have shape"):
        global_statistics(np.zeros(shape))


def test_statistics_learn_brightness_and_give_points_alone() -> None:
    y = RNG.uniform(0.0, 200.0, 300)
    images = y[:, None, None] + RNG.normal(size=(300, 6, 6))
    fitted = GlobalStatistics().fit(images[:200], y[:200], np.random.default_rng(0))
    prediction = fitted.predict(images[200:]).outcome
    lower, upper = prediction.interval(0.9)
    assert np.array_equal(lower, upper)
    assert abs(prediction.point() - y[200:]).mean() < 5.0


def test_on_tables_the_columns_are_the_statistics() -> None:
    x = RNG.normal(size=(200, 2))
    fitted = GlobalStatistics().fit(x, x[:, 0], np.random.default_rng(0))
    assert fitted.features(x) == pytest.approx((x - x.mean(axis=0)) / x.std(axis=0))


def test_baselines_are_made_by_key_and_known_by_name() -> None:
    for key, entry in BASELINES.items():
        method = make_method(key, {**entry, "revision": 1}, (0.8,))
        assert method.fixed_coverages == (0.8,)
        assert is_baseline(key)
    assert is_baseline("Baseline: constant")
    assert not is_baseline("Conformal Prediction")


@pytest.mark.parametrize("key", BASELINES)
def test_baselines_answer_on_images(key: str) -> None:
    task = image_task("cells", train=60, val=20, test=10)
    method = make_method(key, BASELINES[key], (0.9,))
    val, tests = model_answers(fit_shift(method, task, RNG), task, 0.9)
    assert np.isfinite(val.point).all()
    assert (tests["full"].score is None) == (key != "global_statistics_knn")
