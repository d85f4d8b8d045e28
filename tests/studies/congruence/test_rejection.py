"""Rejection, robustness and diagnosis: by brute force, by bounds, and where the truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.methods.interface import Beliefs, Fitted
from howsure.methods.linear import LinearT
from howsure.metrics.congruence import rejection_curve
from howsure.predictions import Distribution, EvalSet
from howsure.studies.congruence import CongruenceMeasure, answer, fit_methods, wave_task
from howsure.studies.congruence.experiments import diagnosis, order_p_value, rejection, robustness
from howsure.studies.congruence.measure import congruence_at, own_features
from howsure.studies.congruence.networks import OnFeatures
from howsure.studies.congruence.result import random_band
from howsure.studies.congruence.worlds import array_task, wave_law

QUICK = CongruenceMeasure(bootstraps=0, samplings=2)


class Stated(Fitted):
    """Says the truth of the wave, or the truth at another x."""

    def __init__(self, *, wrong: bool) -> None:
        self.wrong = wrong

    def predict(self, x: object) -> Beliefs:
        at = np.ravel(np.asarray(x, dtype=np.float64))
        shifted = np.where(at > 4.0, at + 1.5, at) if self.wrong else at
        return Beliefs(wave_law(shifted))


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
    models = {"wrong": Stated(wrong=True)}
    found = rejection(task, models, measure=QUICK, replicates=99)["wrong"]
    order = np.argsort(found.scores)
    error = np.abs(task.test.y - Stated(wrong=True).predict(task.test.x).outcome.point())
    np.testing.assert_allclose(found.losses["mae"], error)
    for share in (0, 7, 29):
        kept = order[: 30 - share]
        assert found.curves["mae"].error[share] == pytest.approx(error[kept].mean())
        assert found.curves["mae"].oracle[share] == pytest.approx(
            np.sort(error)[: 30 - share].mean()
        )
    rejected, loss = found.at("mae", np.array([np.median(found.scores)]))
    assert rejected[0] == pytest.approx(0.5)
    assert loss[0] == pytest.approx(error[found.scores <= np.median(found.scores)].mean())
    with pytest.raises(InputError, match="loss must be one of"):
        found.at("crps")


def test_flagged_rows_hold_the_errors_of_a_wrong_model_alone() -> None:
    task = wave_task(0, rows=3000)
    models = {"wrong": Stated(wrong=True), "right": Stated(wrong=False)}
    found = rejection(task, models, measure=QUICK)
    wrong, right = found["wrong"], found["right"]
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
        def predict(self, x: object) -> Beliefs:
            n = len(np.asarray(x))
            return Beliefs(Distribution.normal(np.zeros(n), np.ones(n)))

    task = array_task("coin", x, y)
    found = rejection(task, {"coin": Coin()}, measure=QUICK, replicates=9)["coin"]
    np.testing.assert_allclose(found.curves["mae"].error, 1.0)
    assert math.isnan(found.curves["mae"].gain)
    assert found.p_values["mae"] == 1.0
    assert found.records()[0].reason == "all losses are equal"


def test_own_features_are_an_embedding() -> None:
    images = np.random.default_rng(0).random((150, 3, 3, 1))
    task = array_task("sums", images, images.sum(axis=(1, 2, 3)))
    models = fit_methods({"line": OnFeatures(method=LinearT(), components=2)}, [task])[0]
    features = replace(task, embed=own_features(models["line"]))
    own = rejection(features, models, measure=QUICK, replicates=9)["line"]
    plain = rejection(task, models, measure=QUICK, replicates=9)["line"]
    assert (own.scores != plain.scores).any()
    with pytest.raises(InputError, match="replicates"):
        rejection(task, models, replicates=0)


def normal_set(n: int = 100) -> EvalSet:
    rng = child(0, "test robustness")
    x = rng.uniform(0.0, 6.0, n)
    law = Distribution.normal(np.cos(x), np.full(n, 0.5))
    return EvalSet.checked(law.sample(rng, 1)[:, 0], law, embedding=x, model="normal")


def test_an_outlier_moves_nll_by_its_formula_and_cce_within_its_bound() -> None:
    held = normal_set()
    how = CongruenceMeasure(draws=None, bandwidth=1.0, kernel="rbf")
    found = robustness(held, outliers=(1, 3), distance=10.0, measure=how, seed=4)
    assert found.settings == (
        "as they are",
        "outliers at 10 sd",
        "outliers at 10 sd",
        "one sd × 0.001",
    )
    rows = child(4, "congruence outliers").permutation(100)
    z = (held.y - held.beliefs[0].point()) / 0.5
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
    assert found.relative_change("cce")[3] == pytest.approx(
        found.values["cce"][3] / found.values["cce"][0] - 1.0
    )
    assert abs(found.relative_change("nll")[3]) > 100 * abs(found.relative_change("cce")[3])


def test_rows_as_they_are_keep_the_plain_value() -> None:
    held = normal_set()
    how = CongruenceMeasure(output_bandwidth=float(1.0 / (2.0 * held.y.var(ddof=1))))
    found = robustness(held, outliers=(2,), narrowing=None, measure=how)
    rng = child(0, "congruence outlier draws", "normal")
    assert found.values["cce"][0] == congruence_at(held, None, how, rng).mean()
    assert len(found.table()) == 2
    assert {record.metric for record in found.records()} == {
        f"{name}_relative_change" for name in ("nll", "ece", "cce")
    }


def test_outliers_of_counts_are_counts() -> None:
    task = wave_task(rows=200)
    held = answer(Stated(wrong=False), task.test, task.embed, model="truth")
    found = robustness(held, outliers=(1,), counts=True)
    assert found.settings == ("as they are", "outliers at 10 sd")


@pytest.mark.parametrize(
    "options", [{"distance": 0.0}, {"narrowing": 2.0}, {"outliers": (0,)}, {"outliers": (101,)}]
)
def test_bad_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        robustness(normal_set(), **options)  # type: ignore[arg-type]


def test_cce_without_labels_follows_the_true_error() -> None:
    task = wave_task(0, rows=3000)
    models = {"wrong": Stated(wrong=True), "right": Stated(wrong=False)}
    found = diagnosis(task, models)
    spearman, pearson = found["wrong"].correlation()
    assert spearman > 0.7  # the true error of most rows is 0, whose ranks are tied
    assert pearson > 0.8
    np.testing.assert_allclose(found["right"].error, 0.0, atol=1e-6)
    at = task.test.x[:, 0]
    np.testing.assert_allclose(found["wrong"].error[at <= 4.0], 0.0, atol=1e-6)
    assert found["wrong"].error[at > 4.5].min() > 0.05
    values = {record.metric: record.value for record in found["wrong"].records()}
    assert values["cce_error_spearman"] == found["wrong"].correlation()[0]
    assert len(found["wrong"].table()) == 300
    with pytest.raises(InputError, match="score must be"):
        found["wrong"].correlation("mae")


def test_diagnosis_needs_a_known_truth() -> None:
    x = np.arange(100.0)[:, None]
    task = array_task("line", x, x[:, 0])
    with pytest.raises(InputError, match="known truth"):
        diagnosis(task, {"right": Stated(wrong=False)})
