"""Perturbations by their definitions, Page's test, rejection, robustness and diagnosis."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet
from howsure.topics.congruence.examples import rejection_curve
from howsure_studies.congruence import (
    CongruenceMeasure,
    CongruenceStudyOptions,
    answer,
    fit_methods,
    wave_task,
)
from howsure_studies.congruence.experiments import (
    SEVERITIES,
    diagnosis,
    gaussian_blur,
    mixup,
    monotonicity,
    noisy_labels,
    order_p_value,
    perturbed,
    rejection,
    robustness,
)
from howsure_studies.congruence.measure import congruence_at, own_features
from howsure_studies.congruence.networks import OnFeatures
from howsure_studies.congruence.result import Monotonicity, MonotonicityResult, random_band
from howsure_studies.congruence.worlds import array_task, wave_law
from howsure_studies.methods.interface import Fitted, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.tasks import Space


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
        with pytest.raises(InputError, match="kernel must contain odd sizes"):
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
    with pytest.raises(InputError, match="weight must be"):
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
    statistic, p = curve.pages["cce"]
    assert statistic == 4 * sum(j * j for j in range(1, 6))
    assert p == pytest.approx((1.0 / math.factorial(5)) ** 4)
    assert curve.steps_up() == 1.0
    back = Monotonicity(
        task="t", model="m", kind="mixup", severities=np.arange(5.0), values={"cce": -table}
    )
    assert back.pages["cce"][1] > 0.99
    assert back.steps_up() == 0.0


def test_page_test_of_the_textbook() -> None:
    """The example of SciPy's documentation: L = 133.5 and p = 0.0018 by the exact law."""
    table = np.array([[3, 4, 3], [2, 2, 4], [3, 3, 5], [1, 3, 2], [2, 3, 2], [2, 4, 5],
                      [1, 2, 4], [3, 4, 4], [2, 4, 5], [1, 3, 4]], dtype=float)  # fmt: skip
    curve = Monotonicity(
        task="t", model="m", kind="mixup", severities=np.arange(3.0), values={"cce": table}
    )
    assert curve.pages["cce"] == (133.5, pytest.approx(0.0018191161948127822))


@pytest.mark.parametrize("shape", [(1, 5), (4, 2)])
def test_too_few_trials_have_no_trend(shape: tuple[int, int]) -> None:
    curve = Monotonicity(
        task="t",
        model="m",
        kind="mixup",
        severities=np.arange(float(shape[1])),
        values={"cce": np.zeros(shape)},
    )
    assert math.isnan(curve.pages["cce"][1])


@pytest.fixture(scope="module")
def result() -> MonotonicityResult:
    rng = child(0, "test monotonicity")
    images = rng.integers(0, 255, (240, 10, 6, 1)).astype(np.uint8)
    y = images[:, :, :2].mean(axis=(1, 2, 3)) / 8.0 + 0.5 * rng.standard_normal(240)
    task = array_task("stripes", images, y)
    models = fit_methods({"line": OnFeatures(method=LinearT(), components=40)}, [task])[0]
    options = CongruenceStudyOptions(
        kinds=("blur", "label_shift", "label_noise", "mixup"),
        trials=4,
        gamma_of_y="fixed",
        measure=CongruenceMeasure(kernel="polynomial"),
    )
    return monotonicity(task, "line", models["line"], options)


def test_cce_rises_with_shifted_and_noisy_labels(result: MonotonicityResult) -> None:
    for curve in result.curves:
        assert curve.severities.tolist() == [0.0, *SEVERITIES[curve.kind]]  # type: ignore[index]
        assert curve.values["cce"].shape == (4, 6)
        if curve.kind.startswith("label"):
            assert curve.pages["cce"][1] < 1e-4
            np.testing.assert_allclose(
                curve.pages["cce"][1], stats.page_trend_test(curve.values["cce"]).pvalue
            )


def test_rows_as_they_are_are_the_same_under_all_perturbations(result: MonotonicityResult) -> None:
    first = result.curves[0].values["cce"][:, 0]
    for curve in result.curves[1:]:
        np.testing.assert_array_equal(curve.values["cce"][:, 0], first)


def test_curves_and_records(result: MonotonicityResult) -> None:
    kinds = {curve.kind for curve in result.curves}
    assert kinds == {"blur", "label_shift", "label_noise", "mixup"}
    shift = result.curves[1]
    curve = shift.drawn("ece")
    assert curve.name == "congruence_ece_by_severity"
    assert curve.x[2] == 2.0
    assert curve.y[2] == pytest.approx(shift.values["ece"][:, 2].mean())
    assert curve.upper is not None
    sd = shift.values["ece"][:, 2].std(ddof=1)
    assert curve.upper[2] - curve.y[2] == pytest.approx(sd)
    records = result.records()
    assert [record.options["page_p_value"] for record in records][1] == shift.pages["cce"][1]


def test_gamma_of_y_may_be_set_for_each_part() -> None:
    task = wave_task(rows=200)
    line = fit_methods({"line": LinearT()}, [task])[0]["line"]
    options = CongruenceStudyOptions(
        kinds=("label_noise",), severities={"label_noise": (20.0,)}, trials=2, resample=False
    )
    found = [
        monotonicity(task, "line", line, replace(options, gamma_of_y=choice))
        for choice in ("fixed", "each")
    ]
    fixed, each = (one.curves[0].values["cce"] for one in found)
    np.testing.assert_allclose(fixed[:, 0], each[:, 0])
    assert (np.abs(fixed[:, 1] - each[:, 1]) > 1e-3).all()
    for bad, message in (
        ({"severities": {"mixup": (0.3, 0.2)}}, "severities of mixup must rise"),
        ({"severities": {"mixup": ()}}, "severities of mixup must rise"),
        ({"kinds": ("fog",)}, "kinds must be one of"),
        ({"gamma_of_y": "free"}, "gamma_of_y"),
        ({"trials": 0}, "trials"),
    ):
        with pytest.raises(InputError, match=message):
            CongruenceStudyOptions(**bad)  # type: ignore[arg-type]


QUICK = CongruenceStudyOptions(measure=CongruenceMeasure(bootstraps=0, samplings=2))


class Stated(Fitted):
    """Says the truth of the wave, or the truth at another x."""

    def __init__(self, *, wrong: bool) -> None:
        self.wrong = wrong

    def predict(self, x: object) -> Predictions:
        at = np.ravel(np.asarray(x, dtype=np.float64))
        shifted = np.where(at > 4.0, at + 1.5, at) if self.wrong else at
        return Predictions(wave_law(shifted))


def test_random_order_has_the_band_and_the_p_value_of_all_orders() -> None:
    loss = np.array([0.0, 1.0, 4.0, 2.0, 7.0])
    orders = np.array(list(permutations(loss)))
    means = np.cumsum(orders, axis=1) / np.arange(1, 6)
    low, high = random_band(loss)
    np.testing.assert_allclose((low + high) / 2.0, loss.mean())
    sd = means.std(axis=0)[::-1]
    np.testing.assert_allclose((high - low) / 2.0, 1.959963984540054 * sd, atol=1e-12)
    area = rejection_curve([0.0, 1.0, 3.0, 2.0, 4.0], loss).area
    share = float((means.mean(axis=1) <= area + 1e-12).mean())
    found = order_p_value(loss, area, np.random.default_rng(0), 4000)
    assert found == pytest.approx(share, abs=0.02)
    assert order_p_value(np.ones(5), 1.0, np.random.default_rng(0), 9) == 1.0


def test_curves_are_means_of_the_rows_kept() -> None:
    task = wave_task(3, rows=300)
    found = rejection(task, "wrong", Stated(wrong=True), replace(QUICK, orders=99))
    order = np.argsort(found.scores)
    error = np.abs(task.test.y - Stated(wrong=True).predict(task.test.x).outcome.point())
    np.testing.assert_allclose(found.losses["mae"], error)
    for share in (0, 7, 29):
        kept = order[: 30 - share]
        assert found.curves["mae"].error[share] == pytest.approx(error[kept].mean())
        assert found.curves["mae"].oracle[share] == pytest.approx(
            np.sort(error)[: 30 - share].mean()
        )


def test_flagged_rows_hold_the_errors_of_a_wrong_model_alone() -> None:
    task = wave_task(0, rows=3000)
    wrong = rejection(task, "wrong", Stated(wrong=True), QUICK)
    right = rejection(task, "right", Stated(wrong=False), QUICK)
    assert wrong.curves["mae"].gain > 0.5
    assert wrong.p_values["mae"] == 0.001
    curves = wrong.drawn
    assert [curve.name for curve in curves] == ["rejection_mae", "rejection_nll"]
    assert curves[0].reference is not None
    assert curves[0].reference[0] == pytest.approx(wrong.losses["mae"].mean())
    records = right.records()
    assert records[0].options["p_value"] == right.p_values["mae"]
    assert math.isfinite(records[0].value)


def test_a_perfect_model_with_equal_losses_is_flat() -> None:
    x = child(0, "flat").uniform(0.0, 6.0, (400, 1))
    y = np.where(np.arange(400) % 2 == 0, 1.0, -1.0)

    class Coin(Fitted):
        def predict(self, x: object) -> Predictions:
            n = len(np.asarray(x))
            return Predictions(Distribution.normal(np.zeros(n), np.ones(n)))

    task = array_task("coin", x, y)
    found = rejection(task, "coin", Coin(), replace(QUICK, orders=9))
    np.testing.assert_allclose(found.curves["mae"].error, 1.0)
    assert math.isnan(found.curves["mae"].gain)
    assert found.p_values["mae"] == 1.0
    assert found.records()[0].reason == "all losses are equal"


def test_rows_of_infinite_loss_leave_no_rejection() -> None:
    rng = np.random.default_rng(0)

    class Sure(Fitted):
        def predict(self, x: object) -> Predictions:
            n = len(np.asarray(x))
            return Predictions(Distribution.normal(np.full(n, 9.0), np.full(n, 1e-200)))

    task = array_task("far", rng.uniform(size=(60, 1)), rng.normal(size=60))
    n = len(task.test)
    with pytest.raises(UnanswerableError, match=f"its nll is infinite in {n} of {n} rows"):
        rejection(task, "sure", Sure(), QUICK)


def test_own_features_are_an_embedding() -> None:
    images = np.random.default_rng(0).random((150, 3, 3, 1))
    task = array_task("sums", images, images.sum(axis=(1, 2, 3)))
    line = fit_methods({"line": OnFeatures(method=LinearT(), components=2)}, [task])[0]["line"]
    features = replace(task, space=Space(own_features(line)))
    quick = replace(QUICK, orders=9)
    own, plain = (rejection(held, "line", line, quick) for held in (features, task))
    assert (own.scores != plain.scores).any()
    with pytest.raises(InputError, match="orders"):
        replace(QUICK, orders=0)


def normal_set(n: int = 100) -> EvalSet:
    rng = child(0, "test robustness")
    x = rng.uniform(0.0, 6.0, n)
    law = Distribution.normal(np.cos(x), np.full(n, 0.5))
    return EvalSet.checked(law.sample(rng, 1)[:, 0], law, embedding=x, model="normal")


def test_an_outlier_moves_nll_by_its_formula_and_cce_within_its_bound() -> None:
    held = normal_set()
    how = CongruenceMeasure(draws=None, bandwidth=1.0, kernel="rbf")
    options = CongruenceStudyOptions(outliers=(1, 3), distance=10.0, measure=how)
    found = robustness(held, options, seed=4)
    assert found.settings == (
        "as they are",
        "outliers at 10 sd",
        "outliers at 10 sd",
        "one sd × 0.001",
    )
    rows = child(4, "congruence outliers").permutation(100)
    z = (held.y - held.predictions[0].point()) / 0.5
    for place, count in ((1, 1), (2, 3)):
        change = found.values["nll"][place] - found.values["nll"][0]
        assert change == pytest.approx((50.0 * count - 0.5 * (z[rows[:count]] ** 2).sum()) / 100)
        assert held.embedding is not None
        x = held.embedding[:, 0]
        near = np.exp(-(np.subtract.outer(x, x) ** 2))
        alpha = np.abs(np.linalg.solve(near + 10.0 * np.eye(100), near))
        bound = np.sqrt(2.0) * alpha[rows[:count]].sum(axis=0).mean()
        assert abs(found.values["cce"][place] - found.values["cce"][0]) <= bound
    middle = np.argsort(np.abs(z), kind="stable")[50]
    change = found.values["nll"][3] - found.values["nll"][0]
    expected = (0.5 * z[middle] ** 2 * (1e6 - 1.0) + math.log(1e-3)) / 100
    assert change == pytest.approx(expected)
    assert found.changes["cce"][3] == pytest.approx(
        found.values["cce"][3] / found.values["cce"][0] - 1.0
    )
    assert abs(found.changes["nll"][3]) > 100 * abs(found.changes["cce"][3])


def test_rows_as_they_are_keep_the_plain_value() -> None:
    held = normal_set()
    how = CongruenceMeasure(output_bandwidth=float(1.0 / (2.0 * held.y.var(ddof=1))))
    found = robustness(held, CongruenceStudyOptions(outliers=(2,), narrowing=0.0, measure=how))
    rng = child(0, "congruence outlier draws", "normal")
    assert found.values["cce"][0] == congruence_at(held, None, how, rng).mean()
    assert len(found.table()) == 2
    assert {record.metric for record in found.records()} == {
        f"{name}_relative_change" for name in ("nll", "ece", "cce")
    }


def test_outliers_of_counts_are_counts() -> None:
    task = wave_task(rows=200)
    held = answer(Stated(wrong=False), task.test, task.space.embed, model="truth")
    found = robustness(held, CongruenceStudyOptions(outliers=(1,)), counts=True)
    assert found.settings == ("as they are", "outliers at 10 sd")


@pytest.mark.parametrize(
    "options", [{"distance": 0.0}, {"narrowing": 2.0}, {"outliers": (0,)}, {"outliers": (101,)}]
)
def test_bad_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        robustness(normal_set(), CongruenceStudyOptions(**options))  # type: ignore[arg-type]


def test_cce_without_labels_follows_the_true_error() -> None:
    task = wave_task(0, rows=3000)
    models = {"wrong": Stated(wrong=True), "right": Stated(wrong=False)}
    found = {k: diagnosis(task, k, fit, QUICK) for k, fit in models.items()}
    spearman, pearson = found["wrong"].correlations["cce"]
    assert spearman > 0.7  # the true error of most rows is 0, whose ranks are tied
    assert pearson > 0.8
    np.testing.assert_allclose(found["right"].error, 0.0, atol=1e-6)
    at = task.test.x[:, 0]
    np.testing.assert_allclose(found["wrong"].error[at <= 4.0], 0.0, atol=1e-6)
    assert found["wrong"].error[at > 4.5].min() > 0.05
    values = {record.metric: record.value for record in found["wrong"].records()}
    assert values["cce_error_spearman"] == found["wrong"].correlations["cce"][0]
    assert len(found["wrong"].table()) == 300


def test_diagnosis_needs_a_known_truth() -> None:
    x = np.arange(100.0)[:, None]
    task = array_task("line", x, x[:, 0])
    with pytest.raises(InputError, match="known truth"):
        diagnosis(task, "right", Stated(wrong=False), QUICK)
