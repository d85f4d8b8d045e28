"""Conformal methods around models: what they train, refuse, clip and hold in memory."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import ARDRegression, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from howsure.conformal import Offset, conformal_threshold
from howsure.conformal.adapting import Mondrian, UniformBins
from howsure.conformal.scores import Band, region_ends
from howsure.conformal.thresholds import held_scores
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Intervals
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.conformal.normalized import NormalizedConformal, ReconstructionLoss
from howsure_studies.methods.conformal.quantile import Conformalized, conformalized_quantiles
from howsure_studies.methods.conformal.weighted import (
    CovariateShift,
    Localized,
    density_ratio,
    weighted_thresholds,
)
from howsure_studies.methods.quantile_regression import linear_quantiles
from howsure_studies.methods.regressors import PredictedSd


def rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "rows")
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, x[:, 0] + (0.2 + np.abs(x[:, 1])) * rng.normal(size=n)


def zero(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def test_a_pipeline_a_function_and_a_trained_model_say_the_same() -> None:
    x, y = rows()
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(x[:200], y[:200])
    given = SplitConformal(model.predict, coverages=(0.9,))
    prediction = given.fit(x[200:], y[200:], np.random.default_rng(0)).predict(x[:5]).outcome
    half = conformal_threshold(np.abs(y[200:] - model.predict(x[200:])), 0.9).value
    lower, upper = prediction.interval(0.9)
    np.testing.assert_allclose(lower, model.predict(x[:5]) - half)
    np.testing.assert_allclose(upper, model.predict(x[:5]) + half)
    piped = SplitConformal(make_pipeline(StandardScaler(), Ridge()), coverages=(0.9,))
    fitted = piped.fit(x, y, np.random.default_rng(0))
    assert fitted.predict(x[:5]).outcome.interval(0.9)[0].shape == (5,)


@pytest.mark.parametrize("errors", ["cross", "split", "training"])
def test_widths_follow_the_predicted_size_of_errors(errors: Any) -> None:
    x, y = rows(2000)
    tree = DecisionTreeRegressor(min_samples_leaf=40)
    method = NormalizedConformal(LinearRegression(), tree, errors=errors, coverages=(0.8,))
    prediction = (
        method.fit(x, y, np.random.default_rng(0)).predict([[0.0, 0.0], [0.0, 0.95]]).outcome
    )
    lower, upper = prediction.interval(0.8)
    width = upper - lower
    assert 2.5 < width[1] / width[0] < 9
    floored = NormalizedConformal(
        LinearRegression(), tree, errors=errors, floor=50.0, coverages=(0.8,)
    )
    ends = floored.fit(x, y, np.random.default_rng(0)).predict(x[:9]).outcome.interval(0.8)
    np.testing.assert_allclose(ends[1] - ends[0], (ends[1] - ends[0])[0])


def test_the_own_sd_of_a_regressor_is_the_method_stretched() -> None:
    x, y = rows()
    own = NormalizedConformal(ARDRegression(), coverages=(0.6, 0.9))
    same = Conformalized(PredictedSd(ARDRegression()), "scale", coverages=(0.6, 0.9))
    first, second = (
        method.fit(x, y, np.random.default_rng(0)).predict(x[:7]).outcome for method in (own, same)
    )
    assert isinstance(first, Intervals)
    assert isinstance(second, Intervals)
    np.testing.assert_allclose(first.lower, second.lower, rtol=1e-9)
    np.testing.assert_allclose(first.upper, second.upper, rtol=1e-9)


def test_the_self_supervised_feature_sees_what_is_odd() -> None:
    rng = child(1, "odd")
    x = rng.normal(size=(300, 1)) * np.ones((1, 3)) + 0.05 * rng.normal(size=(300, 3))
    feature = ReconstructionLoss(width=1, epochs=400).learn(x, rng)
    usual, odd = feature(x), feature(np.array([[1.5, -1.5, 1.5]]))
    assert abs(usual.mean()) < 1e-9
    assert odd[0, 0] > usual.max()
    one = ReconstructionLoss(epochs=5).learn(x[:, :1], rng)
    assert one(x[:4, :1]).shape == (4, 1)
    method = NormalizedConformal(
        LinearRegression(),
        DecisionTreeRegressor(max_depth=3),
        errors="split",
        feature=ReconstructionLoss(epochs=20),
        coverages=(0.8,),
    )
    y = x[:, 0] + rng.normal(size=300)
    lower, upper = method.fit(x, y, rng).predict(x).outcome.interval(0.8)
    assert 0.7 < ((lower <= y) & (y <= upper)).mean() < 0.92


def test_cqr_is_its_definition() -> None:
    x, y = rows()
    inner = linear_quantiles((0.5, 0.8))
    method = Conformalized(inner, coverages=(0.5, 0.8))
    prediction = method.fit(x, y, np.random.default_rng(4)).predict(x[:6]).outcome
    rng = np.random.default_rng(4)
    held = np.zeros(400, dtype=bool)
    held[rng.permutation(400)[:200]] = True
    plain = inner.fit(x[~held], y[~held], rng)
    for coverage in (0.5, 0.8):
        low, high = plain.predict(x[held]).outcome.interval(coverage)
        offset = conformal_threshold(np.maximum(low - y[held], y[held] - high), coverage).value
        low, high = plain.predict(x[:6]).outcome.interval(coverage)
        lower, upper = prediction.interval(coverage)
        np.testing.assert_allclose(lower, low - offset)
        np.testing.assert_allclose(upper, high + offset)
    made = conformalized_quantiles(linear_quantiles().regressor, coverages=(0.5, 0.8))
    same = made.fit(x, y, np.random.default_rng(4)).predict(x[:6]).outcome
    assert np.array_equal(same.interval(0.8), prediction.interval(0.8))


def test_calibration_rows_lie_in_their_own_closed_regions() -> None:
    rng = child(2, "closed")
    for at in (0.0, 1e6, -3e8):
        center = at + rng.normal(size=500)
        band = Band(center, center, center)
        y = center + 1e-3 * rng.normal(size=500)
        scores = held_scores(Offset(), y, band)
        lower, upper = region_ends(Offset(), band, scores)
        assert ((lower <= y) & (y <= upper)).all()
        np.testing.assert_allclose(scores, np.abs(y - center), atol=4 * np.spacing(abs(at) + 1))


def test_clipped_intervals_end_at_the_valid_range_and_cover_the_same() -> None:
    x, y = rows()
    y = np.clip(y, -0.5, 0.5)
    free, cut = (
        SplitConformal(LinearRegression(), coverages=(0.9, 0.999), clip=clip)
        .fit(x, y, np.random.default_rng(0))
        .predict(x)
        .outcome
        for clip in (None, (-0.5, 0.5))
    )
    for coverage in (0.9, 0.999):
        ends = free.interval(coverage), cut.interval(coverage)
        inside = [(lower <= y) & (y <= upper) for lower, upper in ends]
        assert np.array_equal(*inside)
        assert ends[1][0].min() == -0.5
        assert ends[1][1].max() == 0.5
    with pytest.raises(InputError, match=r"y must be in its valid range 0 to 1, got \d+ that"):
        SplitConformal(zero, clip=(0, 1)).fit(x, y, np.random.default_rng(0))


def test_an_offset_that_shrinks_past_nothing_leaves_the_middle() -> None:
    method = Conformalized(lambda x: (zero(x) - 9, zero(x) + 7), coverages=(0.5,))
    fitted = method.fit(np.zeros((9, 1)), np.full(9, -1.0), np.random.default_rng(0))
    assert fitted.predict([[0.0]]).outcome.interval(0.5) == (pytest.approx(-1), pytest.approx(-1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": "pac"},
        {"adapt": Mondrian(lambda x: x[:, 0] > 0)},
        {"adapt": CovariateShift(lambda x: np.ones(len(x)))},
        {"adapt": Localized(5.0, randomized=False)},
    ],
)
def test_too_few_rows_are_infinite_or_refused(options: dict[str, Any]) -> None:
    x, y = rows(8)
    wide = SplitConformal(zero, coverages=(0.9,), **options)
    ends = wide.fit(x, y, np.random.default_rng(0)).predict(x).outcome.interval(0.9)
    assert (ends[0] == -math.inf).all()
    assert (ends[1] == math.inf).all()
    strict = SplitConformal(zero, coverages=(0.9,), too_few="error", **options)
    with pytest.raises(InputError, match="too few calibration rows"):
        strict.fit(x, y, np.random.default_rng(0)).predict(x)


def test_memory_grows_with_the_rows_alone() -> None:
    n = 200_000
    x = np.linspace(0, 1, n)[:, None]
    y = np.sin(50 * x[:, 0])
    for adapt in (Mondrian(UniformBins(0, 10)), CovariateShift(lambda rows: 1 + rows[:, 0])):
        method = SplitConformal(zero, coverages=(0.9,), adapt=adapt)
        tracemalloc.start()
        method.fit(x, y, np.random.default_rng(0)).predict(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * 8 * n
    local = SplitConformal(zero, coverages=(0.9,), adapt=Localized())
    fitted = local.fit(x[::20], y[::20], np.random.default_rng(0))
    tracemalloc.start()
    fitted.predict(x[::100])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e8  # the whole kernel alone would take 1.6e8, its sums and orders as much again


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SplitConformal(zero, rank="numpy"), "rank must be"),
        (lambda: SplitConformal(zero, delta=0.0), "delta must be"),
        (lambda: SplitConformal(zero, coverages=(0.9, 0.9)), "distinct"),
        (lambda: SplitConformal(zero, clip=(1, 0)), "clip must be two numbers"),
        (lambda: SplitConformal(zero, clip=3), "clip must be two numbers"),
        (lambda: SplitConformal(zero, too_few="cut"), "too_few must be"),
        (lambda: SplitConformal(zero, adapt="mondrian"), "adapt must say"),
        (lambda: Mondrian(3), "groups must be a function"),
        (lambda: UniformBins(0, 1), "bins must be"),
        (lambda: UniformBins("column", 3), "by must be"),
        (lambda: CovariateShift(3), "ratio must be"),
        (lambda: Localized(0.0), "bandwidth must be"),
        (lambda: NormalizedConformal(LinearRegression()), "difficulty must be given"),
        (lambda: NormalizedConformal(zero, zero, errors="all"), "errors must be one of"),
        (lambda: NormalizedConformal(zero, zero, floor=0.0), "floor must be above 0"),
        (lambda: NormalizedConformal(zero, zero, feature=3), "feature must learn"),
        (lambda: ReconstructionLoss(width=0), "width must be"),
        (lambda: ReconstructionLoss(epochs=0), "epochs must be"),
        (lambda: Conformalized(LinearRegression()), "method must be a method"),
        (lambda: Conformalized(zero, "both"), "move must be"),
        (lambda: Conformalized(linear_quantiles((0.8,))), "coverages must be among those"),
        (lambda: conformal_threshold([1.0, math.nan], 0.9), "scores must contain no missing"),
        (lambda: conformal_threshold([], 0.9), "at least one row"),
        (lambda: weighted_thresholds([1.0], [-1.0], [1.0], 0.9), "weights must not be negative"),
        (lambda: density_ratio([[1.0]], [[1.0, 2.0]]), "new must have 1 columns"),
    ],
)
def test_bad_options_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (SplitConformal(lambda x: x), "forecast must have one dimension"),
        (SplitConformal(lambda x: x[:, 0] * np.nan), "forecast must contain finite"),
        (SplitConformal(3), "must have fit and predict"),
        (NormalizedConformal(zero, lambda x: zero(x) - 1), "must not be negative"),
        (NormalizedConformal(lambda x: x[:, 0], DecisionTreeRegressor()), "not all be zero"),
        (Conformalized(zero), "two ends"),
        (Conformalized(lambda x: (zero(x) + 1, zero(x))), "lower must not exceed"),
        (
            Conformalized(lambda x: (zero(x) - np.inf, zero(x)), "scale"),
            "with infinite ends cannot be scaled",
        ),
        (Conformalized(lambda x: (zero(x) - np.inf, zero(x) + np.inf)), "bounded on most"),
        (SplitConformal(zero, adapt=Mondrian(lambda x: x)), "one label per row"),
        (SplitConformal(zero, adapt=Mondrian(lambda x: x[:, 0] * np.nan)), "no missing label"),
        (SplitConformal(zero, adapt=Mondrian(lambda x: x[1:, 0])), "groups must have 60 rows"),
        (SplitConformal(zero, adapt=Mondrian(UniformBins(5, 2))), "x has no column 5"),
        (SplitConformal(zero, adapt=CovariateShift(lambda x: -x[:, 0])), "must not be negative"),
        (SplitConformal(zero, rank="pac", adapt=Localized()), "rank must be 'conformal'"),
    ],
)
def test_bad_models_are_refused(method: Any, words: str) -> None:
    x, _ = rows(60)
    with pytest.raises(InputError, match=words):
        method.fit(np.abs(x), np.abs(x)[:, 0], np.random.default_rng(0))


def test_names_say_what_a_method_does() -> None:
    assert SplitConformal(zero).name == "split conformal (zero)"
    assert SplitConformal(zero, rank="pac", adapt=Mondrian(UniformBins())).name == (
        "split conformal (zero), PAC, by group"
    )
