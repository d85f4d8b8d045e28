"""A fitted model is asked what it can say, by the real libraries, and that is assessed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import howsure
from extras import needs
from howsure import Options, assess_model
from howsure.core.errors import InputError
from howsure.inputs.given import PredictionInput
from howsure.predictions import Distribution, Intervals, Quantiles
from howsure.report import model as module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + (0.5 + 0.3 * np.abs(X[:, 1])) * RNG.normal(size=300)
FIT, NEW = slice(0, 150), slice(150, 300)
N = 150
LEVELS = (0.05, 0.5, 0.95)


def fitted(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X[FIT], Y[FIT])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `assess` is given, instead of its result."""
    held: dict[str, Any] = {}

    def instead(y: Any, prediction: Any, **options: Any) -> str:
        held.update(y=y, prediction=prediction, **options)
        return "assessed"

    monkeypatch.setattr(module, "assess", instead)
    return held


def said(seen: dict[str, Any], model: Any, **options: Any) -> PredictionInput:
    """What one model says at the new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert assess_model(model, X[NEW], Y[NEW], **options) == "assessed"
    (given,) = seen["prediction"].values()
    assert isinstance(given, PredictionInput)
    return given


def quantiles(given: PredictionInput) -> Quantiles:
    (found,) = given.predictions
    assert isinstance(found, Quantiles)
    return found


def intervals(given: PredictionInput) -> Intervals:
    (found,) = given.predictions
    assert isinstance(found, Intervals)
    return found


# --- whole way -----------------------------------------------------------------------------------


@pytest.mark.rate
def test_one_line_from_a_model_to_a_verdict() -> None:
    result = howsure.assess_model(
        fitted(BayesianRidge()), X[NEW], Y[NEW], options=howsure.Options(trials=False)
    )
    assert result.facts["Models"] == "BayesianRidge"
    mean, sd = fitted(BayesianRidge()).predict(X[NEW], return_std=True)
    same = howsure.assess(
        Y[NEW],
        Distribution.normal(mean, sd),
        features=X[NEW],
        options=howsure.Options(trials=False),
    )
    assert result.verdict == same.verdict


@pytest.mark.slow
def test_models_by_name_are_compared() -> None:
    models = {
        "ridge": fitted(BayesianRidge()),
        "quantiles": [fitted(QuantileRegressor(quantile=q, alpha=0.0)) for q in LEVELS],
    }
    result = assess_model(models, X[NEW], Y[NEW], options=Options(trials=False))
    assert result.facts["Models"] == "ridge, quantiles"


def test_x_is_what_the_model_saw_unless_it_is_given(seen: dict[str, Any]) -> None:
    model = fitted(BayesianRidge())
    said(seen, model)
    np.testing.assert_array_equal(np.column_stack(list(seen["features"].values())), X[NEW])
    said(seen, model, features=None)
    assert seen["features"] is None
    said(seen, model, features={"z": X[NEW, 0]})
    assert list(seen["features"]) == ["z"]


@pytest.mark.slow
def test_columns_with_missing_values_are_not_assessed_by_and_it_is_told() -> None:
    pd = needs("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::7, "b"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5).fit(frame[FIT], Y[FIT])
    result = assess_model(model, frame[NEW], Y[NEW], options=Options(trials=False))
    assert any(
        "columns of X with missing values are left out: b" in fact for fact in result.facts.values()
    )


def test_columns_without_names_are_numbered(seen: dict[str, Any]) -> None:
    pd = needs("pandas")
    frame = pd.DataFrame(X, columns=[7, 3, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assess_model(fitted(LinearRegression()), frame[NEW], Y[NEW])
    assert list(seen["features"]) == ["7", "3", "0"]
    np.testing.assert_array_equal(seen["features"]["0"], X[NEW, 2])


def test_text_in_a_frame_is_an_input_as_any(seen: dict[str, Any]) -> None:
    pd = needs("pandas")

    class First:
        def predict(self, frame: Any) -> npt.NDArray[Any]:
            return np.asarray(frame["a"])

    frame = pd.DataFrame({"a": X[:, 0], "t": np.where(X[:, 1] > 0, "u", "v")})
    assess_model(First(), frame[NEW], Y[NEW])
    assert list(seen["features"]) == ["a", "t"]


# --- libraries -----------------------------------------------------------------------------------


def test_howsures_own(seen: dict[str, Any]) -> None:
    split = needs("howsure_studies.methods").SplitConformal(LinearRegression())
    model = split.fit(X[FIT], Y[FIT], np.random.default_rng(0))
    found = intervals(said(seen, model))
    wanted = model.predict(X[NEW]).outcome
    np.testing.assert_array_equal(found.interval(0.9), wanted.interval(0.9))


@pytest.mark.slow
def test_ngboost(seen: dict[str, Any]) -> None:
    ngboost = needs("ngboost")
    model = fitted(ngboost.NGBRegressor(n_estimators=20, verbose=False, random_state=0))
    (found,) = said(seen, model).predictions
    assert isinstance(found, Distribution)
    frozen = model.pred_dist(X[NEW]).dist
    np.testing.assert_allclose(found.cdf(Y[NEW]), frozen.cdf(Y[NEW]))
    piped = make_pipeline(StandardScaler(), ngboost.NGBRegressor(n_estimators=5, verbose=False))
    (found,) = said(seen, fitted(piped)).predictions
    assert isinstance(found, Distribution)


@pytest.mark.parametrize("levels", [0.9, [0.9, 0.5]])
def test_mapie_tells_its_coverages(seen: dict[str, Any], levels: Any) -> None:
    regression = needs("mapie.regression")
    split = regression.SplitConformalRegressor(
        fitted(LinearRegression()), confidence_level=levels, prefit=True
    ).conformalize(X[FIT], Y[FIT])
    cross = regression.CrossConformalRegressor(LinearRegression(), confidence_level=levels, cv=3)
    cross.fit_conformalize(X[FIT], Y[FIT])
    jackknife = regression.JackknifeAfterBootstrapRegressor(
        LinearRegression(), confidence_level=levels, resampling=20, random_state=0
    ).fit_conformalize(X[FIT], Y[FIT])
    for model in (split, cross, jackknife):
        given = said(seen, model)
        found = intervals(given)
        assert found.coverages == tuple(sorted(np.atleast_1d(levels)))
        point, table = model.predict_interval(X[NEW])
        np.testing.assert_array_equal(given.point, point)
        np.testing.assert_array_equal(np.stack(found.interval(0.9), axis=1), table[:, :, 0])


def test_mapies_quantile_and_time_series_regressors(seen: dict[str, Any]) -> None:
    regression = needs("mapie.regression")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = regression.ConformalizedQuantileRegressor(
            QuantileRegressor(alpha=0.0), confidence_level=0.8
        ).fit(X[:100], Y[:100])
        model.conformalize(X[100:150], Y[100:150])
        series = regression.TimeSeriesRegressor(LinearRegression(), cv=3).fit(X[FIT], Y[FIT])
        cross = regression.CrossConformalizedQuantileRegressor(
            QuantileRegressor(alpha=0.0), confidence_level=[0.6, 0.8], cv=2
        ).fit_conformalize(X[FIT], Y[FIT])
    assert intervals(said(seen, model)).coverages == (0.8,)
    assert intervals(said(seen, cross)).coverages == (0.6, 0.8)
    assert intervals(said(seen, series)).coverages == (0.9,)
    found = intervals(said(seen, series, coverage=[0.5, 0.8]))
    table = series.predict(X[NEW], confidence_level=[0.5, 0.8])[1]
    np.testing.assert_array_equal(found.upper, table[:, 1])


def test_crepes(seen: dict[str, Any]) -> None:
    crepes = needs("crepes")
    model = crepes.WrapRegressor(LinearRegression())
    model.fit(X[:100], Y[:100])
    model.calibrate(X[100:150], Y[100:150])
    given = said(seen, model, coverage=[0.8, 0.5])
    found = intervals(given)
    for coverage in (0.5, 0.8):
        wanted = model.predict_int(X[NEW], confidence=coverage)
        np.testing.assert_array_equal(np.stack(found.interval(coverage), axis=1), wanted)
    np.testing.assert_array_equal(given.point, model.predict(X[NEW]))
    assert intervals(said(seen, model)).coverages == (0.9,)


def test_quantile_forest(seen: dict[str, Any]) -> None:
    forest = needs("quantile_forest").RandomForestQuantileRegressor(20, random_state=0)
    found = quantiles(said(seen, fitted(forest), levels=LEVELS))
    np.testing.assert_array_equal(found.values, forest.predict(X[NEW], quantiles=list(LEVELS)))
    assert len(quantiles(said(seen, forest)).levels) == 99
    assert quantiles(said(seen, forest, coverage=0.995)).widest == 0.995


def test_skpro(seen: dict[str, Any]) -> None:
    needs("skpro")
    pd = needs("pandas")
    from skpro.regression.residual import ResidualDouble

    frame, target = pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"t": Y})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ResidualDouble(LinearRegression()).fit(frame[FIT], target[FIT])
        assess_model(model, frame[NEW], target[NEW])
        (found,) = seen["prediction"]["ResidualDouble"].predictions
        assert isinstance(found, Distribution)
        wanted = model.predict_proba(frame[NEW]).cdf(target[NEW])
        np.testing.assert_allclose(found.cdf(Y[NEW]), np.asarray(wanted)[:, 0], atol=1e-12)
        assess_model(model, frame[NEW], target[NEW], levels=LEVELS)
        table = quantiles(seen["prediction"]["ResidualDouble"])
        np.testing.assert_array_equal(
            table.values, model.predict_quantiles(frame[NEW], alpha=list(LEVELS))
        )


def test_skpro_is_asked_for_what_it_makes_itself(seen: dict[str, Any]) -> None:
    """skpro turns intervals into normals, which are not what the regressor says."""
    pd = needs("pandas")
    needs("skpro")
    from skpro.regression.base import BaseProbaRegressor

    class Half(BaseProbaRegressor):  # type: ignore[misc]
        def _fit(self, X: Any, y: Any) -> Any:
            return self

        def _predict(self, X: Any) -> Any:
            return pd.DataFrame({"t": np.zeros(len(X))}, index=X.index)

        def _predict_interval(self, X: Any, coverage: list[float]) -> Any:
            columns = pd.MultiIndex.from_product([["t"], coverage, ["lower", "upper"]])
            table = np.tile([-1.0, 9.0], (len(X), len(coverage)))
            return pd.DataFrame(table, index=X.index, columns=columns)

    frame, target = pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"t": Y})
    model = Half().fit(frame[FIT], target[FIT])
    assess_model(model, frame[NEW], target[NEW], coverage=0.8)
    found = intervals(seen["prediction"]["Half"])
    assert found.coverages == (0.8,)
    np.testing.assert_array_equal(found.upper, 9.0)


def test_skpros_quantiles_that_cross_are_sorted(seen: dict[str, Any]) -> None:
    pd = needs("pandas")
    needs("skpro")
    from skpro.regression.base import BaseProbaRegressor

    class Crossing(BaseProbaRegressor):  # type: ignore[misc]
        def _fit(self, X: Any, y: Any) -> Any:
            return self

        def _predict_quantiles(self, X: Any, alpha: list[float]) -> Any:
            columns = pd.MultiIndex.from_product([["t"], alpha])
            table = np.tile(-np.array(alpha), (len(X), 1))
            return pd.DataFrame(table, index=X.index, columns=columns)

    frame, target = pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"t": Y})
    model = Crossing().fit(frame[FIT], target[FIT])
    assess_model(model, frame[NEW], target[NEW])
    given = seen["prediction"]["Crossing"]
    np.testing.assert_array_equal(quantiles(given).levels, LEVELS)
    np.testing.assert_array_equal(quantiles(given).values[0], [-0.95, -0.5, -0.05])
    assert given.notes == ("150 of 150 rows had crossing quantiles, which were sorted",)


class OtherIntervals:
    """Of no library known, and alpha is a penalty."""

    alpha = 0.7

    def predict_interval(self, X: Any) -> Any:
        table = np.stack([X[:, 0] - 1, X[:, 0] + 1], axis=1)
        return X[:, 0], table[:, :, None]


def test_a_penalty_is_not_taken_for_a_coverage(seen: dict[str, Any]) -> None:
    assert intervals(said(seen, OtherIntervals(), coverage=0.8)).coverages == (0.8,)
    assert "does not state the coverage of its intervals: pass coverage=0.9" in refused(
        OtherIntervals()
    )


class TabPFNLike:
    """A stand-in with TabPFN's signature, whose weights cannot be had here."""

    def predict(
        self, X: Any, *, output_type: str = "mean", quantiles: list[float] | None = None
    ) -> Any:
        assert output_type == "quantiles"
        return [X[:, 0] + level for level in quantiles or ()]


class TabICLLike:
    def predict(
        self, X: Any, output_type: str = "mean", alphas: list[float] | None = None
    ) -> npt.NDArray[Any]:
        assert output_type == "quantiles"
        return np.column_stack([X[:, 0] + level for level in alphas or ()])


@pytest.mark.parametrize("model", [TabPFNLike(), TabICLLike()])
def test_tabular_foundation_models(seen: dict[str, Any], model: Any) -> None:
    found = quantiles(said(seen, model, levels=LEVELS))
    np.testing.assert_array_equal(found.values, X[NEW, :1] + np.array(LEVELS))


def test_a_standard_deviation_makes_normals(seen: dict[str, Any]) -> None:
    process = GaussianProcessRegressor(RBF() + WhiteKernel(), random_state=0)
    piped = make_pipeline(StandardScaler(), BayesianRidge())
    search = GridSearchCV(BayesianRidge(), {"tol": [1e-3, 1e-4]}, cv=2)
    for model in (process, piped, search):
        (found,) = said(seen, fitted(model)).predictions
        assert isinstance(found, Distribution)
        inner = getattr(model, "best_estimator_", model)
        mean, sd = inner.predict(X[NEW], return_std=True)
        np.testing.assert_allclose(found.point(), mean)
        np.testing.assert_allclose(found.sd(), sd)


def test_noise_that_a_process_leaves_out_is_told(seen: dict[str, Any]) -> None:
    """scikit-learn adds alpha to what it fits, and not to what it predicts."""
    models = [GaussianProcessRegressor(RBF(), alpha=a, optimizer=None) for a in (1e-10, 0.5)]
    silent, told = (said(seen, fitted(model)) for model in models)
    assert silent.notes == ()
    assert "does not include alpha, the noise of y" in told.notes[0]
    far = models[1].predict([[99.0, 99.0, 99.0]], return_std=True)[1]
    np.testing.assert_allclose(far, 1.0)  # √(1 + 0.5), had it been added
    white = GaussianProcessRegressor(RBF() + WhiteKernel(), alpha=0.5, optimizer=None)
    assert said(seen, fitted(white)).notes == ()


def test_any_other_regressor_gives_a_point(seen: dict[str, Any]) -> None:
    for model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        given = said(seen, fitted(model))
        assert given.predictions == ()
        np.testing.assert_allclose(given.point, model.predict(X[NEW]))
        assert list(seen["prediction"]) == ["LinearRegression"]


def test_a_class_of_ones_own_that_predicts_a_prediction(seen: dict[str, Any]) -> None:
    class Mine:
        def predict(self, x: npt.NDArray[Any]) -> Distribution:
            return Distribution.normal(x[:, 0], np.ones(len(x)))

    (found,) = said(seen, Mine()).predictions
    np.testing.assert_array_equal(found.point(), X[NEW, 0])


# --- quantile regressors -------------------------------------------------------------------------


def lightgbm_models() -> list[Any]:
    lightgbm = needs("lightgbm")
    data = lightgbm.Dataset(X[FIT], Y[FIT])
    options = {"objective": "quantile", "verbose": -1, "num_threads": 1}
    return [
        fitted(
            lightgbm.LGBMRegressor(objective="quantile", alpha=0.05, n_estimators=9, verbose=-1)
        ),
        lightgbm.train({**options, "alpha": 0.5}, data, 9),
        fitted(
            make_pipeline(
                StandardScaler(),
                lightgbm.LGBMRegressor(
                    objective="quantile", alpha=0.95, n_estimators=9, verbose=-1
                ),
            )
        ),
    ]


def sklearn_models() -> list[Any]:
    return [
        fitted(QuantileRegressor(quantile=0.05, alpha=0.0)),
        fitted(
            GridSearchCV(
                GradientBoostingRegressor(loss="quantile", alpha=0.5),
                {"n_estimators": [5, 9]},
                cv=2,
            )
        ),
        fitted(HistGradientBoostingRegressor(loss="quantile", quantile=0.95, max_iter=9)),
    ]


@pytest.mark.parametrize("make", [sklearn_models, lightgbm_models])
def test_quantile_regressors_tell_their_levels(seen: dict[str, Any], make: Any) -> None:
    models = make()
    found = quantiles(said(seen, models))
    np.testing.assert_array_equal(found.levels, LEVELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = np.column_stack([model.predict(X[NEW]) for model in models])
    np.testing.assert_allclose(found.values, np.sort(table, axis=1))
    np.testing.assert_array_equal(quantiles(said(seen, models[0])).levels, [0.05])


def test_quantiles_that_cross_are_sorted_and_counted(seen: dict[str, Any]) -> None:
    models = [fitted(QuantileRegressor(quantile=q, alpha=0.0)) for q in (0.5, 0.51, 0.52)]
    given = said(seen, models)
    table = np.column_stack([model.predict(X[NEW]) for model in models])
    rows = int((np.diff(table, axis=1) < 0).any(axis=1).sum())
    assert rows > 0
    assert given.notes == (f"{rows} of 150 rows had crossing quantiles, which were sorted",)
    np.testing.assert_array_equal(quantiles(given).values, np.sort(table, axis=1))


def test_levels_speak_for_models_that_do_not(seen: dict[str, Any]) -> None:
    models = [fitted(LinearRegression()), fitted(LinearRegression())]
    models[0].intercept_ -= 1.0
    np.testing.assert_array_equal(
        quantiles(said(seen, models, levels=(0.1, 0.9))).levels, [0.1, 0.9]
    )


class Several:
    """A regressor of several quantiles, as XGBoost's and CatBoost's; both are tried by hand."""

    def __init__(self, columns: int = 3, **held: Any) -> None:
        self.columns, self.held = columns, held

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.held

    def predict(self, X: Any) -> npt.NDArray[Any]:
        return X[:, :1] + np.arange(self.columns)


@pytest.mark.parametrize(
    "held",
    [
        {"objective": "reg:quantileerror", "quantile_alpha": np.array(LEVELS)},
        {"objective": "reg:quantileerror", "quantile_alpha": list(LEVELS)},
        {"loss_function": "MultiQuantile:alpha=0.05,0.5,0.95"},
    ],
)
def test_one_model_of_several_quantiles(seen: dict[str, Any], held: dict[str, Any]) -> None:
    found = quantiles(said(seen, Several(**held)))
    np.testing.assert_array_equal(found.levels, LEVELS)
    np.testing.assert_array_equal(found.values, X[NEW, :1] + np.arange(3))


@pytest.mark.parametrize(
    ("held", "level"),
    [
        ({"loss_function": "Quantile:alpha=0.9"}, 0.9),
        ({"loss_function": "Quantile:alpha=0.9;delta=0.01"}, 0.9),
        ({"loss_function": "Quantile"}, 0.5),
        ({"objective": "quantile"}, 0.9),
        ({"objective": "reg:quantileerror", "quantile_alpha": 0.3}, 0.3),
        ({"loss": "quantile", "alpha": 0.2}, 0.2),
    ],
)
def test_levels_as_libraries_write_them(held: dict[str, Any], level: float) -> None:
    assert module.told_levels(Several(1, **held)) == (level,)


@pytest.mark.parametrize(
    "held", [{"loss_function": "RMSE"}, {"objective": "regression"}, {"loss": "squared_error"}, {}]
)
def test_other_losses_tell_no_level(held: dict[str, Any]) -> None:
    assert module.told_levels(Several(1, **{"alpha": 0.9, **held})) is None


# --- what is refused -----------------------------------------------------------------------------


def refused(model: Any, x: Any = None, **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError) as caught:
            assess_model(model, X[NEW] if x is None else x, Y[NEW], **options)
    return str(caught.value)


def test_an_unfitted_model_is_named() -> None:
    assert refused(LinearRegression()).startswith(
        "model must be fitted before assessment; this LinearRegression is not: NotFittedError: "
    )
    assert "model 'a' must be fitted before" in refused({"a": BayesianRidge()})
    assert "must be fitted before" in refused(make_pipeline(StandardScaler(), LinearRegression()))
    assert "must be fitted before" in refused(GridSearchCV(BayesianRidge(), {"tol": [1e-3]}))
    assert refused(LinearRegression) == (
        "model must be a fitted model, got the class LinearRegression"
    )
    unfitted = needs("howsure_studies.methods").SplitConformal(LinearRegression())
    assert "give model.fit(x, y, rng)" in refused(unfitted)


@pytest.mark.slow
def test_an_unfitted_model_of_a_library_is_named() -> None:
    assert "must be fitted before" in refused(needs("ngboost").NGBRegressor())
    assert "must be fitted before" in refused(needs("lightgbm").LGBMRegressor())
    needs("skpro")
    from skpro.regression.residual import ResidualDouble

    assert "must be fitted before" in refused(ResidualDouble(LinearRegression()))
    mapie = needs("mapie.regression").SplitConformalRegressor(LinearRegression(), prefit=False)
    assert "call conformalize before calling predict_interval" in refused(mapie)
    crepes = needs("crepes").WrapRegressor(fitted(LinearRegression()))
    assert "requires a calibrated regressor" in refused(crepes)


def test_which_of_a_list_failed_is_told() -> None:
    good = fitted(QuantileRegressor(quantile=0.1, alpha=0.0))
    assert refused([good, QuantileRegressor(quantile=0.9)]).startswith(
        "model 2 of 2: must be fitted before assessment; this QuantileRegressor is not: "
    )
    narrow = QuantileRegressor(quantile=0.9).fit(X[FIT, :2], Y[FIT])
    said_so = refused({"a": good, "b": [good, narrow]})
    assert said_so.startswith(
        "model 'b' 2 of 2: of class QuantileRegressor failed in predict(X), with X of shape "
        "(150, 3): ValueError: X has 3 features, but QuantileRegressor is expecting 2"
    )


def test_a_list_without_levels_is_told_both_spellings() -> None:
    models = [fitted(LinearRegression()), fitted(LinearRegression())]
    told = refused(models)
    assert "model 1 of 2 (LinearRegression) states no level" in told
    assert "levels=(0.05, 0.5, 0.95)" in told
    assert "howsure.Samples(np.stack([m.predict(X) for m in models], axis=1))" in told
    assert "predicts 2 quantiles in all, but levels= has 3 levels" in refused(models, levels=LEVELS)
    twice = [fitted(QuantileRegressor(quantile=0.5)) for _ in range(2)]
    assert "states level 0.5 twice" in refused(twice)
    assert "got an empty list" in refused([])
    assert "at least one model, got none" in refused({})


def test_what_is_no_regressor_is_refused() -> None:
    assert "y must contain class numbers" in refused(LogisticRegression().fit(X[FIT], Y[FIT] > 0))
    assert "must have predict, got object" in refused(object())
    assert "predicts an array of shape (150, 2)" in refused(
        LinearRegression().fit(X[FIT], np.column_stack([Y[FIT], Y[FIT]]))
    )
    told = refused(fitted(LinearRegression()), X[1:150])
    assert "X must have 150 rows, as many as y; got 149" in told


def test_x_and_the_model_swapped() -> None:
    with pytest.raises(InputError, match="X must be an array or a data frame, got LinearReg"):
        assess_model(X[NEW], fitted(LinearRegression()), Y[NEW])


def test_a_coverage_that_mapie_was_not_made_for_is_refused() -> None:
    regression = needs("mapie.regression")
    model = regression.SplitConformalRegressor(
        fitted(LinearRegression()), confidence_level=[0.9, 0.5], prefit=True
    ).conformalize(X[FIT], Y[FIT])
    told = refused(model, coverage=[0.5, 0.8])
    assert "gives intervals at coverage 0.9, 0.5, not 0.8: omit coverage=" in told


def test_a_forecaster_is_told_its_spelling() -> None:
    needs("sktime")
    from sktime.forecasting.naive import NaiveForecaster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NaiveForecaster()
    spelling = "howsure.assess(y, forecaster.predict_interval(fh, coverage=0.9))"
    assert spelling in refused(model)


def test_a_target_that_is_transformed_keeps_its_level(seen: dict[str, Any]) -> None:
    model = TransformedTargetRegressor(
        QuantileRegressor(quantile=0.9), transformer=StandardScaler()
    )
    np.testing.assert_array_equal(quantiles(said(seen, fitted(model))).levels, [0.9])


def test_a_negative_sd_is_refused() -> None:
    class Wrong:
        def predict(self, X: Any, return_std: bool = False) -> Any:
            return np.zeros(len(X)), np.full(len(X), -1.0)

    assert "sd must not be negative, got -1" in refused(Wrong())


def test_rows_of_x_in_another_order_than_y_are_refused() -> None:
    """They were taken by their place: every prediction met another row's y."""
    pd = needs("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    y = frame["a"] + rng.normal(size=60)
    model = BayesianRidge().fit(frame, y)
    turned = frame.iloc[::-1]
    with pytest.raises(InputError, match=r"X must have its rows in the order of y.*X\.loc"):
        assess_model(model, turned, y)
    with pytest.raises(InputError, match="groups must have its rows in the order of y"):
        assess_model(model, frame, y, groups=pd.Series(np.arange(60) % 2)[::-1])
    assert (
        assess_model(model, turned.loc[y.index], y, options=Options(trials=False)).value("mae")
        < 1.2
    )


class _Own:
    """A model of means and sds, whose outcomes are standard normal."""

    def predict(self, X: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        n = len(np.asarray(X))
        return np.zeros(n), np.ones(n)


def test_means_and_sds_of_a_model_at_a_coverage_are_not_read_as_ends() -> None:
    y = np.random.default_rng(1).normal(size=300)
    with pytest.raises(
        InputError, match=r"model prediction may be \(lower, upper\) or \(mean, sd\)"
    ):
        assess_model(_Own(), X, y, coverage=0.9)
