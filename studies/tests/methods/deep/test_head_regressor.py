"""The regressor for tables, and the method, with heads of every kind."""

from __future__ import annotations

import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from extras import needs

torch = needs("torch")

from howsure.core.errors import (  # noqa: E402
    HowsureWarning,
    InputError,
    MissingDependencyError,
    UnanswerableError,
)
from howsure.core.rng import child  # noqa: E402
from howsure.predictions import Distribution, Quantiles  # noqa: E402
from howsure.predictions.mixtures import MixtureLaw  # noqa: E402
from howsure_studies.methods.catalogue import method_named, method_spec, methods  # noqa: E402
from howsure_studies.methods.deep import HEADS, HeadNetwork, HeadRegressor, together  # noqa: E402
from howsure_studies.methods.deep.training import BatchTraining  # noqa: E402
from howsure_studies.methods.regressors import as_method  # noqa: E402
from methods.deep.test_head_training import Fragile  # noqa: E402

QUICK: dict[str, Any] = {"layers": (8, 6), "epochs": 8, "learning_rate": 0.01}


def rows(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, rng.poisson(np.exp(2.0 + x[:, 0])).astype(float)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("name", HEADS)
def test_every_head_fits_and_predicts(name: str, members: int) -> None:
    x, y = rows()
    model = HeadRegressor(name, members=members, **QUICK).fit(x, y)
    prediction = model.predict_distribution(x[:7])
    assert prediction.n == 7
    np.testing.assert_array_equal(model.predict(x[:7]), prediction.point())
    assert isinstance(prediction, Quantiles if name == "quantile" else Distribution)
    lower, upper = prediction.interval(0.8)
    assert (lower <= upper).all()
    assert model.failures_ == []
    if isinstance(prediction, Distribution):
        assert np.isfinite(prediction.log_density(y[:7])).all()
        assert isinstance(prediction.law, MixtureLaw) == (members > 1 or name == "mixture")
    again = pickle.loads(pickle.dumps(model)).predict(x[:7])
    np.testing.assert_array_equal(again, model.predict(x[:7]))


def test_it_is_an_estimator_like_any_other() -> None:
    x, y = rows()
    model = HeadRegressor("poisson", **QUICK)
    copy = clone(model.set_params(members=2, random_state=3))
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["members"] == 2
    np.testing.assert_array_equal(copy.fit(x, y).predict(x), model.fit(x, y).predict(x))
    assert model.score(x, y) == pytest.approx(
        1 - ((y - model.predict(x)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )
    chain = make_pipeline(StandardScaler(), HeadRegressor("gaussian", **QUICK)).fit(x, y)
    assert chain.predict(x).shape == (80,)
    search = GridSearchCV(
        HeadRegressor("poisson", **QUICK), {"head": ["poisson", "double_poisson"]}, cv=2
    )
    assert search.fit(x, y).best_params_["head"] in HEADS
    other = clone(model).set_params(random_state=4).fit(x, y)
    assert np.abs(other.predict(x) - model.predict(x)).max() > 1e-3
    fresh = [clone(model).set_params(random_state=None).fit(x, y).predict(x) for _ in range(2)]
    assert np.abs(fresh[0] - fresh[1]).max() > 1e-6


# Checks of scikit-learn that it does not pass, and why.
UNLIKE: dict[str, str] = {
    "check_dtype_object": "a cell that is no number raises InputError, a ValueError, not TypeError",
    "check_methods_subset_invariance": "networks answer in 32 bits: sums differ by a rounding",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("options", [{}, {"head": "quantile", "members": 2}])
@pytest.mark.rate
def test_it_passes_the_checks_of_scikit_learn(options: dict[str, Any]) -> None:
    model = HeadRegressor(layers=(8,), epochs=40, batch_size=16, learning_rate=0.01, **options)
    found = check_estimator(model, expected_failed_checks=UNLIKE)
    status = {entry["check_name"]: entry["status"] for entry in found}
    assert len(found) > 45
    assert set(status.values()) <= {"passed", "skipped", "xfail"}
    assert {name for name, how in status.items() if how == "xfail"} <= set(UNLIKE)
    assert {name for name, how in status.items() if how == "skipped"} <= {"check_array_api_input"}


def test_names_of_columns_are_kept() -> None:
    pandas = needs("pandas")
    x, y = rows()
    table = pandas.DataFrame(x, columns=["a", "b"])
    model = HeadRegressor("poisson", **QUICK).fit(table, pandas.Series(y))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(table), model.fit(x, y).predict(x))


def test_settings_are_those_of_the_published_study() -> None:
    training = HeadRegressor().method.training
    assert training.layers == (128, 128, 128, 64)
    assert (training.epochs, training.batch_size, training.learning_rate) == (200, 32, 1e-3)
    assert (training.weight_decay, training.schedule, training.keep) == (1e-5, "cosine", "best")
    assert HeadRegressor().get_params() == {
        **{name: getattr(HeadNetwork(), name) for name in HeadNetwork.__dataclass_fields__},
        "head": "gaussian",
        "random_state": 0,
    }


def test_as_a_method_it_keeps_its_predictions() -> None:
    """Not its point forecasts alone, within intervals of split conformal prediction."""
    model = HeadRegressor("double_poisson", members=2, **QUICK)
    assert as_method(model) == model.method
    assert as_method(HeadRegressor("quantile")).fixed_coverages == (0.5, 0.7, 0.8, 0.9, 0.95)
    path = "howsure_studies.methods.deep:HeadRegressor"
    assert method_named(path, head="double_poisson", members=2, **QUICK) == model.method
    x, y = rows()
    prediction = as_method(model).fit(x, y, np.random.default_rng(0)).predict(x).outcome
    assert isinstance(prediction, Distribution)
    with pytest.raises(InputError, match="near: poisson"):
        as_method(HeadRegressor("posson"))


def test_the_method_is_the_regressor() -> None:
    x, y = rows()
    model = HeadRegressor("double_poisson", members=2, **QUICK).fit(x, y)
    method = method_named("head_regressor", head="double_poisson", members=2, **QUICK)
    assert "head_regressor" in methods()
    assert method == model.method
    assert (method.name, method.fixed_coverages) == ("double Poisson deep ensemble", None)
    predictions = method.fit(x, y, child(0, "head regressor")).predict(x)
    np.testing.assert_array_equal(predictions.outcome.point(), model.predict(x))
    assert predictions.mean is not None
    np.testing.assert_allclose(predictions.mean.point(), predictions.outcome.point())
    assert (predictions.mean.sd() < predictions.outcome.sd()).all()
    spec = method_spec(method)
    assert spec["name"] == "head_regressor"
    assert method_named(spec["name"], **spec["options"]) == method


@pytest.mark.parametrize("name", ["gaussian", "poisson", "quantile", "mixture"])
def test_many_data_sets_are_fitted_as_one_by_one(name: str) -> None:
    method = method_named("head_regressor", head=name, **QUICK)
    data = [rows(80, seed=k) for k in range(3)] + [rows(50, seed=3)]
    many = method.fit_many(data, [np.random.default_rng(k) for k in range(4)])
    x, _ = rows(9, seed=4)
    for k, fitted in enumerate(many):
        alone = method.fit(*data[k], np.random.default_rng(k))
        one, two = (f.predict(x).outcome.point() for f in (fitted, alone))
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)


def test_an_ensemble_is_the_mixture_of_its_members() -> None:
    x, y = rows()
    for name in ("poisson", "student_t"):
        model = HeadRegressor(name, members=3, resampled=True, **QUICK).fit(x, y)
        parts = model.fit_.members(x)
        prediction = model.predict_distribution(x)
        np.testing.assert_allclose(prediction.cdf(y), np.mean([p.cdf(y) for p in parts], axis=0))
        assert np.ptp([p.point() for p in parts], axis=0).min() > 0
    quantiles = HeadRegressor("quantile", members=2, **QUICK).fit(x, y)
    ends = [part.quantile([0.1, 0.9]) for part in quantiles.fit_.members(x)]
    found = quantiles.predict_distribution(x).quantile([0.1, 0.9])
    np.testing.assert_allclose(found, np.mean(ends, axis=0))
    with pytest.raises(InputError, match="parts must be distributions"):
        together([Distribution.normal([0.0], [1.0]), Quantiles([0.5], [[1.0]])])


def test_quantile_heads_fix_their_coverages() -> None:
    method = method_named("head_regressor", head="quantile")
    assert method.fixed_coverages == (0.5, 0.7, 0.8, 0.9, 0.95)
    assert method.name == "quantile network"


def test_rows_of_ones_own_choice_are_held_out() -> None:
    x, y = rows()
    held = rows(30, seed=9)
    model = HeadRegressor("poisson", **QUICK).fit(x, y, *held)
    (network,) = model.fit_.networks
    np.testing.assert_allclose(network.scale.x_center, x.mean(axis=0))
    assert network.kept == int(np.argmin(network.losses[:, 1])) + 1
    law = model.predict_distribution(held[0])
    from scipy.special import gammaln

    stated = -law.log_density(held[1]) - gammaln(held[1] + 1)
    assert stated.mean() == pytest.approx(network.losses[:, 1].min(), rel=1e-4)


def test_a_diverged_network_warns_and_is_as_it_last_was() -> None:
    x = rows()[0]
    model = HeadRegressor(Fragile(), layers=(8,), epochs=200, learning_rate=0.01)
    with pytest.warns(HowsureWarning, match=r"1 of 1 networks diverged \(network 0: loss not fin"):
        model.fit(x, np.full(80, 5.0))
    assert "in epoch" in model.failures_[0]
    assert "kept as after epoch" in model.failures_[0]
    assert model.predict(x).max() < 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HowsureWarning)
        model.fit(x, np.full(80, 1e30))
    with pytest.raises(UnanswerableError, match="network 0 was never trained: loss not finite"):
        model.predict(x)


@pytest.mark.parametrize("name", HEADS)
def test_every_head_that_diverges_is_as_it_last_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three epochs as they should be, then steps of 1e30."""
    x, y = rows()
    options = {**QUICK, "keep": "last", "schedule": "constant"}
    good = HeadRegressor(name, **{**options, "epochs": 3}).fit(x, y)
    lost = HeadRegressor(name, **{**options, "learning_rate": 1e30})
    with pytest.warns(HowsureWarning, match="1 of 1 networks diverged"):
        lost.fit(x, y)
    with pytest.raises(UnanswerableError, match="never trained: loss not finite in epoch 1"):
        lost.predict(x)
    monkeypatch.setattr(
        BatchTraining, "learning_rate_at", lambda self, epoch: 1e-2 if epoch < 3 else 1e30
    )
    model = HeadRegressor(name, **options)
    with pytest.warns(HowsureWarning, match=r"not finite in epoch 4, step \d of 3; kept as after"):
        model.fit(x, y)
    assert model.failures_[0].endswith("kept as after epoch 3")
    assert len(model.fit_.networks[0].losses) == 4
    np.testing.assert_array_equal(model.predict(x), good.predict(x))


@pytest.mark.parametrize("name", HEADS)
def test_numbers_at_the_ends_of_what_computers_hold(name: str) -> None:
    x, y = rows()
    model = HeadRegressor(name, **QUICK)
    far = np.array([[0.0, 1.0], [1e300, 0.0]])
    with pytest.raises(InputError, match=r"outputs overflow, got 1 rows .*row 1: \[1e\+300, 0.0\]"):
        model.fit(x, y).predict(far)
    if name in ("poisson", "negative_binomial", "double_poisson"):
        with pytest.raises(InputError, match=r"y must contain counts .* got 80 .*first at row 0"):
            model.fit(x, y * 1e300)
    else:
        with pytest.warns(HowsureWarning, match="data too large to standardise"):
            model.fit(x, y * (1e308 / y.max()))
        with pytest.raises(UnanswerableError, match="too large to standardise"):
            model.predict(x)
    constant = model.fit(x, np.full(80, 5.0)).predict_distribution(x)
    assert np.isfinite(constant.point()).all()
    assert np.mean(constant.point()) == pytest.approx(5.0, abs=0.5)
    with warnings.catch_warnings():  # a rate at which nothing is learnt, but nothing overflows
        warnings.simplefilter("ignore", HowsureWarning)
        wild = HeadRegressor(name, **{**QUICK, "learning_rate": 100.0}).fit(x, y)
    if wild.fit_.networks[0].kept:
        assert np.isfinite(wild.predict_distribution(x).interval(0.8)).all()


def test_bad_input_is_refused() -> None:
    x, y = rows()
    model = HeadRegressor("poisson", **QUICK)
    with pytest.raises(NotFittedError):
        model.predict(x)
    for bad in (y - 20.0, y + 0.5):
        with pytest.raises(InputError, match="y must contain counts"):
            model.fit(x, bad)
    with pytest.raises(InputError, match="Input y contains NaN"):
        model.fit(x, np.where(y > 9, np.nan, y))
    with pytest.raises(InputError, match="Input X contains infinity"):
        model.fit(np.where(x > 0.9, np.inf, x), y)
    with pytest.raises(InputError, match=r"inconsistent numbers of samples: \[80, 79\]"):
        model.fit(x, y[:-1])
    with pytest.raises(InputError, match=r"3 sample.* while a minimum of 4 is required"):
        model.fit(x[:3], y[:3])
    with pytest.raises(InputError, match="Expected 2D array, got 1D array"):
        model.fit(x[:, 0], y)
    with pytest.raises(InputError, match=r"dtype='numeric' is not compatible|could not convert"):
        model.fit(np.full((80, 2), "a"), y)
    with pytest.raises(InputError, match="X_val and y_val must be given together"):
        model.fit(x, y, x)
    with pytest.raises(InputError, match="held must have 2 columns"):
        model.fit(x, y, x[:, :1], y)
    fitted = model.fit(x, y)
    with pytest.raises(InputError, match="X has 1 features, but HeadRegressor is expecting 2"):
        fitted.predict(x[:, :1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"head": "posson"}, "near: poisson"),
        ({"members": 0}, "members must be"),
        ({"validation": None}, "keep must be 'last'"),
        ({"validation": 2.0}, "validation must be"),
        ({"layers": ()}, "layers must not be empty"),
        ({"weight_decay": -1.0}, "weight_decay must be"),
        ({"random_state": -1}, "seed must be"),
    ],
)
def test_bad_options_are_refused_when_fitted(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        HeadRegressor(**options).fit(*rows())


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"howsure\[deep\]"):
        HeadRegressor(**QUICK).fit(*rows())
