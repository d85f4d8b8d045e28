"""What every method of uncertainty must do, and the tools that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from howsure.conformal.adapting import Mondrian, UniformBins
from howsure.core.convert import checked_coverages
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs.distributions import located
from howsure_studies.methods import linear
from howsure_studies.methods.bootstrap import NaiveBootstrap
from howsure_studies.methods.catalogue import method_named
from howsure_studies.methods.conformal.cross import CVPlus, JackknifeAfterBootstrap, JackknifePlus
from howsure_studies.methods.conformal.normalized import NormalizedConformal
from howsure_studies.methods.conformal.quantile import Conformalized
from howsure_studies.methods.conformal.weighted import Localized
from howsure_studies.methods.interface import (
    Method,
    Predictions,
    held_out,
    point_of,
    seeded_clone,
    trained,
)
from howsure_studies.methods.quantile_forest import QuantileForest
from howsure_studies.methods.quantile_regression import (
    PredictedQuantiles,
    QuantileRegression,
    linear_quantiles,
)
from howsure_studies.methods.regressors import (
    GaussianProcess,
    PredictedSd,
    SplitConformal,
    as_method,
)


class Table:
    """A regressor whose predict takes levels, as quantile forests do; it returns nothing of fit."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, x: np.ndarray, y: np.ndarray) -> None:
        self.y = np.sort(y)

    def predict(self, x: np.ndarray, quantiles: list[float] | None = None) -> np.ndarray:
        return np.tile(np.quantile(self.y, quantiles or [0.5]) + self.shift, (len(x), 1))


SHORT = ExtraTreeRegressor(max_depth=2)
METHODS: dict[str, Callable[[], Method]] = {
    "linear t": linear.LinearT,
    "linear t, no intercept": lambda: linear.LinearT(intercept=False),
    "Bayesian ridge": linear.BayesianRidge,
    "bootstrap": lambda: NaiveBootstrap(ExtraTreeRegressor(max_depth=3), members=6),
    "bootstrap of the mean": lambda: NaiveBootstrap(
        ExtraTreeRegressor(max_depth=3), members=6, spread="mean"
    ),
    "Gaussian process": GaussianProcess,
    "conformal": lambda: SplitConformal(ExtraTreeRegressor(max_depth=3)),
    "linear quantiles": linear_quantiles,
    "boosted quantiles": lambda: QuantileRegression(
        HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=4), coverages=(0.8,)
    ),
    "predicted sd": lambda: PredictedSd(ARDRegression()),
    "predicted quantiles": lambda: PredictedQuantiles(Table()),
    "quantile forest": lambda: QuantileForest(trees=5, coverages=(0.5, 0.8)),
    "normalised conformal": lambda: NormalizedConformal(SHORT, SHORT, coverages=(0.5, 0.8)),
    "PAC conformal": lambda: SplitConformal(SHORT, coverages=(0.5, 0.8), rank="pac"),
    "conformal by group": lambda: SplitConformal(
        SHORT, coverages=(0.5, 0.8), adapt=Mondrian(UniformBins(bins=2))
    ),
    "local conformal": lambda: SplitConformal(SHORT, coverages=(0.5, 0.8), adapt=Localized(1.0)),
    "conformalised quantiles": lambda: Conformalized(
        linear_quantiles((0.5, 0.8)), coverages=(0.5, 0.8)
    ),
    "conformal CV+": lambda: CVPlus(SHORT, 4, coverages=(0.5, 0.8)),
    "jackknife+": lambda: JackknifePlus(LinearRegression(), coverages=(0.5, 0.8)),
    "conformal after bootstrap": lambda: JackknifeAfterBootstrap(SHORT, 30, coverages=(0.5, 0.8)),
}
WITH_MEAN = {
    "linear t",
    "linear t, no intercept",
    "Bayesian ridge",
    "bootstrap",
    "bootstrap of the mean",
    "Gaussian process",
}


def rows(n: int = 60, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(n, d))
    return x, 2 * x[:, 0] + 0.3 * rng.normal(size=n)


def check_answers(
    predictions: Predictions, coverages: tuple[float, ...] | None, *, nested: bool = True
) -> None:
    """Intervals of seven rows: wider where they cover more, those of the mean within the others."""
    previous = np.zeros(7)
    for coverage in coverages or (0.3, 0.5, 0.9):
        lower, upper = predictions.outcome.interval(coverage)
        assert lower.shape == upper.shape == (7,)
        if nested:
            assert (upper - lower >= previous).all()
        previous = upper - lower
        if predictions.mean is not None:
            low, high = predictions.mean.interval(coverage)
            assert ((low >= lower) & (high <= upper)).all()
    assert (previous > 0).all()


def check_refusals(method: Method, x: np.ndarray, y: np.ndarray, least: str = "at least") -> None:
    """Rows of two columns that no method takes."""
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="y must contain finite"):
        method.fit(x, np.where(y > 1, np.nan, y), rng)
    with pytest.raises(InputError, match="x must contain finite"):
        method.fit(np.where(x > 0.9, np.inf, x), y, rng)
    with pytest.raises(InputError, match=f"y must have {len(x)} rows"):
        method.fit(x, y[:-1], rng)
    with pytest.raises(InputError, match=least):
        method.fit(x[:1], y[:1], rng)
    with pytest.raises(InputError, match="x must contain finite"):
        method.fit(x, y, rng).predict([[np.nan, 1.0]])


@pytest.mark.parametrize("name", METHODS)
def test_methods_answer_at_every_coverage(name: str) -> None:
    method = METHODS[name]()
    x, y = rows()
    predictions = method.fit(x, y, np.random.default_rng(0)).predict(x[:7])
    assert method.name
    assert (predictions.mean is not None) == (name in WITH_MEAN)
    nested = "conformal" not in name and "jackknife" not in name
    check_answers(predictions, method.fixed_coverages, nested=nested)


@pytest.mark.parametrize("name", METHODS)
def test_the_generator_is_the_only_source_of_randomness(name: str) -> None:
    method = METHODS[name]()
    x, y = rows()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    coverage = (method.fixed_coverages or (0.8,))[0]
    first, again, other = (
        method.fit(x, y, np.random.default_rng(seed)).predict(x).outcome.interval(coverage)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    if any(word in name for word in ("bootstrap", "conformal", "forest")):
        assert not np.array_equal(first, other)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("name", METHODS)
def test_methods_refuse_bad_rows(name: str) -> None:
    method = METHODS[name]()
    x, y = rows()
    check_refusals(method, x, y)


@pytest.mark.slow
def test_scale_and_location_of_y_carry_over() -> None:
    """Predictions about 100 + 50 y are 100 + 50 × the predictions about y."""
    x, y = rows(d=1)
    for name, make in METHODS.items():
        if name in ("boosted quantiles", "predicted sd"):
            continue  # binned splits and scikit-learn's priors keep no exact scale
        ends = [
            make().fit(x, target, np.random.default_rng(0)).predict(x).outcome
            for target in (y, 100 + 50 * y)
        ]
        coverage = (make().fixed_coverages or (0.8,))[0]
        if name == "linear t, no intercept":
            continue
        small, large = (np.stack(prediction.interval(coverage)) for prediction in ends)
        np.testing.assert_allclose(large, 100 + 50 * small, rtol=1e-3, atol=1e-2, err_msg=name)


def test_adapters_are_chosen_by_what_a_regressor_offers() -> None:
    method = linear.LinearT()
    assert as_method(method) is method
    assert isinstance(as_method(BayesianRidge()), PredictedSd)
    assert isinstance(as_method(GaussianProcessRegressor()), PredictedSd)
    assert isinstance(as_method(make_pipeline(StandardScaler(), BayesianRidge())), PredictedSd)
    assert isinstance(as_method(Table()), PredictedQuantiles)
    assert as_method(QuantileRegressor(), (0.5,)).fixed_coverages == (0.5,)
    piped = as_method(make_pipeline(StandardScaler(), QuantileRegressor(solver="highs")), (0.5,))
    assert isinstance(piped, QuantileRegression)
    assert piped.parameter == "quantileregressor__quantile"
    boosting = HistGradientBoostingRegressor
    for point in (LinearRegression(), boosting(), make_pipeline(StandardScaler(), boosting())):
        assert isinstance(as_method(point, (0.5,)), SplitConformal)
        assert as_method(point, (0.5,)).fixed_coverages == (0.5,)
    assert isinstance(as_method(boosting(loss="quantile", quantile=0.5)), QuantileRegression)
    x, y = rows()
    levels = piped.fit(x, y, np.random.default_rng(0)).predict(x).outcome
    assert (levels.interval(0.5)[0] < levels.interval(0.5)[1]).any()


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (dict, "got the class dict: it was not called"),
        (Conformalized, r"an instance where options are needed .*method.*, got the class Conf"),
        (len, "fit and predict"),
        (None, "got NoneType"),
        (3, "got int"),
    ],
)
def test_what_offers_nothing_is_refused(thing: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        as_method(thing)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PredictedSd(LinearRegression()), "return_std=True"),
        (lambda: PredictedQuantiles(LinearRegression()), "quantiles=levels"),
        (lambda: QuantileRegression(LinearRegression()), "parameter 'quantile'"),
        (lambda: QuantileRegression(GradientBoostingRegressor(), "alpha"), "pinball loss"),
        (lambda: linear_quantiles((0.9, 0.9)), "distinct"),
        (lambda: linear_quantiles(()), "distinct"),
        (lambda: SplitConformal(LinearRegression(), coverages=(90,)), "coverages must be"),
        (lambda: NaiveBootstrap(LinearRegression(), members=1), "members must be"),
        (lambda: NaiveBootstrap(LinearRegression(), members=5, spread="mean"), "and even"),
        (lambda: NaiveBootstrap(LinearRegression(), convention="bde"), "convention must"),
        (lambda: NaiveBootstrap(LinearRegression(), spread="both"), "spread must"),
        (lambda: seeded_clone(3, np.random.default_rng(0)), "must have fit and predict"),
        (lambda: checked_coverages((0.0,)), "coverages must be"),
    ],
)
def test_bad_options_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_rows_are_held_out_by_number_or_share() -> None:
    rng = np.random.default_rng(0)
    assert held_out(rng, 100, 0.13, "validation").sum() == 13
    assert held_out(rng, 100, 150 - 120, "validation").sum() == 30
    assert held_out(rng, 3, 0.01, "validation").sum() == 1
    for wrong in (0, -1, 1.5, True, 99, 0.99):
        with pytest.raises(InputError, match="validation must"):
            held_out(rng, 100, wrong, "validation")


def test_copies_are_seeded_and_apart() -> None:
    rng = np.random.default_rng(0)
    original = make_pipeline(StandardScaler(), ExtraTreeRegressor())
    one, two = seeded_clone(original, rng), seeded_clone(original, rng)
    key = "extratreeregressor__random_state"
    assert one.get_params()[key] != two.get_params()[key]
    assert original.get_params()[key] is None
    plain = Table(shift=2.0)
    copied = seeded_clone(plain, rng)
    assert copied is not plain
    assert copied.shift == 2.0


def test_a_fit_that_returns_nothing_is_no_matter() -> None:
    x, y = rows()
    model = trained(Table(), x, y, np.random.default_rng(0))
    assert model.predict(x, [0.5])[0, 0] == pytest.approx(np.median(y))


def test_a_forecast_of_the_wrong_shape_is_refused() -> None:
    x, y = rows()

    class Wide(DecisionTreeRegressor):
        def predict(self, x: np.ndarray) -> np.ndarray:
            return np.zeros((len(x), 2))

    with pytest.raises(InputError, match="forecast must have one dimension"):
        point_of(trained(Wide(), x, y, np.random.default_rng(0)), x)


def test_a_spread_of_zero_is_a_law_at_a_point() -> None:
    for family, shape in (("norm", {}), ("t", {"df": 3.0})):
        prediction = located(family, np.array([1.0, 2.0]), np.array([0.0, 1.0]), **shape)
        lower, upper = prediction.interval(0.9)
        assert lower[0] == upper[0] == 1.0
        assert upper[1] > 2.0


def test_predictions_may_say_nothing_of_the_mean() -> None:
    assert Predictions(located("norm", np.zeros(1), np.ones(1))).mean is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantile_forest", "cv_plus", "local_conformal", "recalibrated"])
def test_no_fitted_method_is_more_than_a_few_lines(name: str) -> None:
    rng = child(0, "fitted")
    x = rng.normal(size=(200, 2))
    fitted = method_named(name).fit(x, x[:, 0] + rng.normal(size=200), rng)
    for value in (fitted, fitted.predict(x)):
        assert repr(value).startswith(f"{type(value).__name__}(")
        assert repr(value).count("\n") <= 12
        assert len(repr(value)) < 900
