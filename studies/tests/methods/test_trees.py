"""Trees of other libraries: what they predict by hand, and that howsure's part changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from extras import needs
from howsure.core.errors import InputError
from howsure.predictions import Distribution, Samples
from howsure_studies.methods import method_named, method_spec
from howsure_studies.methods.interface import Method
from howsure_studies.methods.trees import BART, CatBoostNormal, CatBoostQuantiles, NGBoostNormal

SMALL: dict[str, tuple[str, dict[str, Any]]] = {
    "catboost": ("catboost", {"iterations": 20, "coverages": [0.5, 0.9]}),
    "catboost_normal": ("catboost", {"iterations": 20}),
    "ngboost": ("ngboost", {"iterations": 10}),
    "bart": ("stochtree", {"trees": 20, "draws": 40}),
    "bart, varying": ("stochtree", {"trees": 20, "draws": 40, "heteroskedastic": True}),
}


def rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A step of height 4 in noise whose sd is 0.5, and 1.5 where the second column is positive."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, 4.0 * (x[:, 0] > 0) + np.where(x[:, 1] > 0, 1.5, 0.5) * rng.normal(size=n)


def small(name: str) -> Method:
    library, options = SMALL[name]
    needs(library)
    return method_named(name.partition(",")[0], **options)


def drawn(seed: int, count: int = 1) -> list[int]:
    """The seeds that a method draws for its library."""
    rng = np.random.default_rng(seed)
    return [int(rng.integers(2**31 - 1)) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_same_generator_gives_the_same_and_row_by_row(name: str) -> None:
    method = small(name)
    x, y = rows()
    levels = [0.25, 0.5, 0.75]
    first, again, other = (
        method.fit(x, y, np.random.default_rng(seed)).predict(x).outcome.quantile(levels)
        for seed in (3, 3, 4)
    )
    np.testing.assert_allclose(first, again, rtol=1e-12)  # NGBoost's sums vary in the last bit
    assert name == "ngboost" or not np.array_equal(first, other)
    turned = method.fit(x, y, np.random.default_rng(3)).predict(x[::-1]).outcome
    np.testing.assert_allclose(turned.quantile(levels)[::-1], first, rtol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_specs_make_them_again(name: str) -> None:
    method = method_named(name.partition(",")[0], **SMALL[name][1])
    spec = method_spec(method)
    assert spec["name"] == name.partition(",")[0]
    assert method_named(spec["name"], **spec["options"]) == method


def test_quantiles_of_catboost_are_its_own_sorted() -> None:
    catboost = needs("catboost")
    x, y = rows()
    method = CatBoostQuantiles(iterations=30, depth=4, coverages=(0.5, 0.9))
    prediction = method.fit(x, y, np.random.default_rng(1)).predict(x).outcome
    own = catboost.CatBoostRegressor(
        iterations=30,
        learning_rate=0.1,
        depth=4,
        loss_function="MultiQuantile:alpha=0.05,0.25,0.75,0.95",
        random_seed=drawn(1)[0],
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    wanted = np.sort(own.fit(x, y).predict(x), axis=1)
    np.testing.assert_array_equal(prediction.quantile([0.05, 0.25, 0.75, 0.95]), wanted)


def test_the_normal_law_of_catboost_has_its_mean_and_variance() -> None:
    catboost = needs("catboost")
    x, y = rows()
    prediction = (
        CatBoostNormal(iterations=30).fit(x, y, np.random.default_rng(1)).predict(x).outcome
    )
    own = catboost.CatBoostRegressor(
        iterations=30,
        depth=6,
        loss_function="RMSEWithUncertainty",
        random_seed=drawn(1)[0],
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    mean, variance = own.fit(x, y).predict(x).T
    law = stats.norm(mean, np.sqrt(variance))
    wanted = np.column_stack([law.ppf(level) for level in (0.05, 0.5, 0.9)])
    np.testing.assert_allclose(prediction.quantile([0.05, 0.5, 0.9]), wanted, rtol=1e-12)


def test_ngboost_is_its_own_in_units_of_the_sd_of_y() -> None:
    ngboost = needs("ngboost")
    x, y = rows()
    method = NGBoostNormal(iterations=25)
    prediction = method.fit(x, y, np.random.default_rng(1)).predict(x).outcome
    own = ngboost.NGBRegressor(n_estimators=25, verbose=False, random_state=drawn(1)[0])
    law = own.fit(x, (y - y.mean()) / y.std()).pred_dist(x)
    assert isinstance(prediction, Distribution)
    np.testing.assert_allclose(
        prediction.point(), y.mean() + y.std() * law.params["loc"], rtol=1e-9
    )
    np.testing.assert_allclose(prediction.sd(), y.std() * law.params["scale"], rtol=1e-9)
    wide = method.fit(x, 3.0 + 1000.0 * y, np.random.default_rng(1)).predict(x).outcome
    np.testing.assert_allclose(wide.point(), 3.0 + 1000.0 * prediction.point(), rtol=1e-4)
    np.testing.assert_allclose(wide.sd(), 1000.0 * prediction.sd(), rtol=1e-4)


def test_samples_of_bart_are_its_mean_and_its_noise() -> None:
    """The chain by hand: a draw's mean, and about it noise of that draw's variance."""
    stochtree = needs("stochtree")
    x, y = rows()
    fitted = BART(trees=20, draws=50).fit(x, y, np.random.default_rng(1))
    prediction = fitted.predict(x).outcome
    assert isinstance(prediction, Samples)
    assert prediction.size == 50
    own = stochtree.BARTModel()
    own.sample(
        X_train=x,
        y_train=y,
        num_gfr=10,
        num_burnin=0,
        num_mcmc=50,
        general_params={"random_seed": drawn(1)[0], "num_threads": 1},
        mean_forest_params={"num_trees": 20},
    )
    mean = own.predict(x, terms="mean_forest")
    variance = own.extract_parameter("sigma2")
    within = float(np.mean(variance)) + mean.var(axis=1).mean()
    spread = prediction.sorted_samples.var(axis=1).mean()
    assert spread == pytest.approx(within, rel=0.1)
    off = prediction.sorted_samples.mean(axis=1) - mean.mean(axis=1)
    assert abs(off).max() < 5.0 * np.sqrt(variance.mean() / 50)
    step = mean.mean(axis=1)
    assert step[x[:, 0] > 0.1].mean() - step[x[:, 0] < -0.1].mean() == pytest.approx(4.0, abs=0.5)


@pytest.mark.slow
def test_noise_that_varies_is_found_where_it_is_asked_for() -> None:
    needs("stochtree")
    x, y = rows(600)
    ratios = {}
    for varying in (False, True):
        method = BART(trees=50, draws=60, heteroskedastic=varying)
        sd = method.fit(x, y, np.random.default_rng(0)).predict(x).outcome.sd()
        ratios[varying] = sd[x[:, 1] > 0.1].mean() / sd[x[:, 1] < -0.1].mean()
    assert ratios[False] == pytest.approx(1.0, abs=0.1)
    assert 2.0 < ratios[True] < 4.5  # the truth is 3


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (CatBoostQuantiles, {"iterations": 0}, "iterations must be a whole number"),
        (CatBoostQuantiles, {"coverages": (0.0,)}, "strictly between 0 and 1"),
        (CatBoostNormal, {"depth": 1.5}, "depth must be a whole number"),
        (NGBoostNormal, {"iterations": -1}, "iterations must be a whole number"),
        (BART, {"draws": 10}, "draws must be a whole number of at least 20"),
        (BART, {"heteroskedastic": 1}, "heteroskedastic must be true or false"),
    ],
)
def test_what_breaks_a_rule_is_refused(
    kind: type[Method], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        kind(**options)
