"""Monotonicity: perturbations by their definitions, Page's test by a known example, the study."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.methods.linear import LinearT
from howsure.studies.congruence import CongruenceMeasure, fit_methods, wave_task
from howsure.studies.congruence.experiments import (
    SEVERITIES,
    gaussian_blur,
    mixup,
    monotonicity,
    noisy_labels,
    perturbed,
)
from howsure.studies.congruence.networks import OnFeatures
from howsure.studies.congruence.result import Monotonicity, MonotonicityResult
from howsure.studies.congruence.worlds import array_task


def test_blur_is_the_truncated_kernel_by_direct_sums() -> None:
    rng = np.random.default_rng(0)
    image = rng.random((1, 12, 11, 2))
    across = np.exp(-0.5 * (np.arange(5) - 2) ** 2 / 2.5**2)
    down = np.exp(-0.5 * (np.arange(9) - 4) ** 2 / 2.5**2)
    kernel = np.outer(down / down.sum(), across / across.sum())

    def mirrored(place: int, size: int) -> int:
        return -place if place < 0 else 2 * (size - 1) - place if place >= size else place

    expected = np.zeros_like(image)
    for i in range(12):
        for j in range(11):
            for a in range(9):
                for b in range(5):
                    pixel = image[0, mirrored(i + a - 4, 12), mirrored(j + b - 2, 11)]
                    expected[0, i, j] += kernel[a, b] * pixel
    np.testing.assert_allclose(gaussian_blur(image, 2.5), expected)


def test_blur_of_bytes_is_rounded_and_bad_kernels_are_refused() -> None:
    flat = np.full((2, 16, 16, 1), 7, np.uint8)
    blurred = gaussian_blur(flat, 10.0)
    assert blurred.dtype == np.uint8
    np.testing.assert_array_equal(blurred, flat)
    for kernel in ((4, 9), (5, 33), (0, 1)):
        with pytest.raises(InputError, match="kernel must hold odd sizes"):
            gaussian_blur(flat, 1.0, kernel=kernel)
    with pytest.raises(InputError, match="sd must be above 0"):
        gaussian_blur(flat, 0.0)
    with pytest.raises(InputError, match="four dimensions"):
        gaussian_blur(flat[0], 1.0)


def test_noise_has_its_mean_and_spread_and_counts_stay_counts() -> None:
    y = np.full(40_000, 3.0)
    shifted = noisy_labels(y, np.random.default_rng(0), shift=2.0, sd=1.0)
    assert shifted.mean() == pytest.approx(5.0, abs=0.02)
    assert shifted.std() == pytest.approx(1.0, abs=0.02)
    counted = noisy_labels(y, np.random.default_rng(0), shift=0.0, sd=4.0, counts=True)
    assert counted.min() == 0.0
    np.testing.assert_array_equal(counted, np.rint(counted))


def test_mixup_mixes_both_by_one_permutation() -> None:
    x, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    other = np.random.default_rng(5).permutation(10)
    mixed, labels = mixup(x, y, 0.3, np.random.default_rng(5))
    np.testing.assert_allclose(mixed, 0.7 * x + 0.3 * x[other])
    np.testing.assert_allclose(labels, 0.7 * y + 0.3 * y[other])
    whole, _ = mixup(x.astype(np.uint8), y, 0.3, np.random.default_rng(5), counts=True)
    assert whole.dtype == np.uint8
    with pytest.raises(InputError, match="weight must lie"):
        mixup(x, y, 1.5, np.random.default_rng(0))


def test_severity_zero_changes_nothing() -> None:
    task = wave_task(rows=60)
    rng = np.random.default_rng(0)
    assert perturbed(task, task.test, "mixup", 0.0, rng) is task.test
    with pytest.raises(InputError, match="kind must be one of"):
        perturbed(task, task.test, "fog", 1.0, rng)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="four dimensions"):
        perturbed(task, task.test, "blur", 1.0, rng)


def test_page_test_by_hand() -> None:
    """Four blocks in perfect order of five: L = Σ j R_j = 4 · 55; p by Page's exact law."""
    table = np.arange(5.0) + np.arange(4.0)[:, None]
    curve = Monotonicity(
        task="t", model="m", kind="mixup", severities=np.arange(5.0), values={"cce": table}
    )
    statistic, p = curve.page()
    assert statistic == 4 * sum(j * j for j in range(1, 6))
    assert p == pytest.approx((1.0 / math.factorial(5)) ** 4)
    assert curve.steps_up() == 1.0
    back = Monotonicity(
        task="t", model="m", kind="mixup", severities=np.arange(5.0), values={"cce": -table}
    )
    assert back.page()[1] > 0.99
    assert back.steps_up() == 0.0


def test_page_test_of_the_textbook() -> None:
    """The example of SciPy's documentation: L = 133.5 and p = 0.0018 by the exact law."""
    table = np.array([[3, 4, 3], [2, 2, 4], [3, 3, 5], [1, 3, 2], [2, 3, 2], [2, 4, 5],
                      [1, 2, 4], [3, 4, 4], [2, 4, 5], [1, 3, 4]], dtype=float)  # fmt: skip
    curve = Monotonicity(
        task="t", model="m", kind="mixup", severities=np.arange(3.0), values={"cce": table}
    )
    assert curve.page() == (133.5, pytest.approx(0.0018191161948127822))


@pytest.mark.parametrize("shape", [(1, 5), (4, 2)])
def test_too_few_trials_have_no_trend(shape: tuple[int, int]) -> None:
    curve = Monotonicity(
        task="t",
        model="m",
        kind="mixup",
        severities=np.arange(float(shape[1])),
        values={"cce": np.zeros(shape)},
    )
    assert math.isnan(curve.page()[1])


@pytest.fixture(scope="module")
def result() -> MonotonicityResult:
    rng = child(0, "test monotonicity")
    images = rng.integers(0, 255, (240, 10, 6, 1)).astype(np.uint8)
    y = images[:, :, :2].mean(axis=(1, 2, 3)) / 8.0 + 0.5 * rng.standard_normal(240)
    task = array_task("stripes", images, y)
    models = fit_methods({"line": OnFeatures(method=LinearT(), components=40)}, [task])[0]
    return monotonicity(
        task,
        models,
        kinds=("blur", "label_shift", "label_noise", "mixup"),
        trials=4,
        output_bandwidth="fixed",
        measure=CongruenceMeasure(kernel="polynomial"),
    )


def test_cce_rises_with_shifted_and_noisy_labels(result: MonotonicityResult) -> None:
    for curve in result.curves:
        assert curve.severities.tolist() == [0.0, *SEVERITIES[curve.kind]]  # type: ignore[index]
        assert curve.values["cce"].shape == (4, 6)
        if curve.kind.startswith("label"):
            assert curve.page()[1] < 1e-4
            np.testing.assert_allclose(
                curve.page()[1], stats.page_trend_test(curve.values["cce"]).pvalue
            )


def test_rows_as_they_are_are_the_same_under_all_perturbations(result: MonotonicityResult) -> None:
    first = result.curves[0].values["cce"][:, 0]
    for curve in result.curves[1:]:
        np.testing.assert_array_equal(curve.values["cce"][:, 0], first)


def test_tables_and_records(result: MonotonicityResult) -> None:
    table = result.table()
    assert len(table) == 24
    assert set(table.columns["perturbation"]) == {"blur", "label_shift", "label_noise", "mixup"}
    shift = result.curves[1]
    row = 6 + 2
    assert table.columns["severity"][row] == 2.0
    assert table.columns["cce"][row] == pytest.approx(shift.values["cce"][:, 2].mean())
    records = result.records()
    assert [record.options["page_p_value"] for record in records][1] == shift.page()[1]


def test_gamma_of_y_may_be_set_for_each_part() -> None:
    task = wave_task(rows=200)
    models = fit_methods({"line": LinearT()}, [task])[0]
    found = [
        monotonicity(
            task,
            models,
            kinds=("label_noise",),
            severities={"label_noise": (20.0,)},
            trials=2,
            resample=False,
            output_bandwidth=choice,
        )
        for choice in ("fixed", "each")
    ]
    fixed, each = (one.curves[0].values["cce"] for one in found)
    np.testing.assert_allclose(fixed[:, 0], each[:, 0])
    assert (np.abs(fixed[:, 1] - each[:, 1]) > 1e-3).all()
    for bad, message in (
        ({"severities": {"mixup": (0.3, 0.2)}, "kinds": ("mixup",)}, "severities must rise"),
        ({"kinds": ("fog",)}, "kinds must be one of"),
        ({"output_bandwidth": "free"}, "output_bandwidth"),
        ({"trials": 0}, "trials"),
    ):
        with pytest.raises(InputError, match=message):
            monotonicity(task, models, **bad)  # type: ignore[arg-type]
