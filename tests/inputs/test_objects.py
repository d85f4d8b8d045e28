"""Other libraries' predictions are read as what the libraries themselves say they are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from extras import needs
from howsure import Distribution, Intervals, Options, Quantiles, Samples, assess, load
from howsure.core.errors import InputError
from howsure.inputs.distributions import read_foreign
from howsure.inputs.given import PredictionInput, read_given
from howsure.predictions.mixtures import MixtureLaw

N = 40
LEVELS = np.arange(1, 100) / 100


def read(value: Any, n: int = N, **options: Any) -> PredictionInput:
    found = read_given(value, n=n, **options)
    assert list(found) == [""]
    return found[""]


def distribution(value: Any, n: int = N) -> Distribution:
    given = read(value, n)
    assert given.notes == ()
    (found,) = given.predictions
    assert isinstance(found, Distribution)
    assert found.n == n
    return found


def uniforms(shape: tuple[int, ...], low: float = 0.3, high: float = 2.0) -> npt.NDArray[Any]:
    return np.random.default_rng(sum(shape)).uniform(low, high, shape)


# --- torch ---------------------------------------------------------------------------------------

TORCH: dict[str, Any] = {
    "Normal": lambda T, a, b, p: T.Normal(a - 1, b),
    "LogNormal": lambda T, a, b, p: T.LogNormal(a - 1, b),
    "Laplace": lambda T, a, b, p: T.Laplace(a - 1, b),
    "StudentT": lambda T, a, b, p: T.StudentT(2 + a, b, a + b),
    "Gamma": lambda T, a, b, p: T.Gamma(a, b),
    "Chi2": lambda T, a, b, p: T.Chi2(1 + a),
    "Beta": lambda T, a, b, p: T.Beta(a, b),
    "Exponential": lambda T, a, b, p: T.Exponential(a),
    "Uniform": lambda T, a, b, p: T.Uniform(-a, b),
    "Weibull": lambda T, a, b, p: T.Weibull(a, b),
    "Gumbel": lambda T, a, b, p: T.Gumbel(a, b),
    "Cauchy": lambda T, a, b, p: T.Cauchy(a, b),
    "HalfNormal": lambda T, a, b, p: T.HalfNormal(a),
    "HalfCauchy": lambda T, a, b, p: T.HalfCauchy(a),
    "Pareto": lambda T, a, b, p: T.Pareto(a, b),
    "Poisson": lambda T, a, b, p: T.Poisson(3 * a),
    "NegativeBinomial": lambda T, a, b, p: T.NegativeBinomial(4 * a, p),
    "Binomial": lambda T, a, b, p: T.Binomial((4 * a).ceil(), p),
    "Geometric": lambda T, a, b, p: T.Geometric(p),
}


@pytest.mark.parametrize("shape", [(N,), (N, 1)])
@pytest.mark.parametrize("name", sorted(TORCH))
def test_torch_distributions_say_the_same(name: str, shape: tuple[int, ...]) -> None:
    torch = needs("torch")
    a, b = (torch.tensor(uniforms((*shape, k))[..., 0], requires_grad=True) for k in (2, 3))
    p = torch.tensor(uniforms((*shape, 4), 0.1, 0.9)[..., 0], requires_grad=True)
    given = TORCH[name](torch.distributions, a, b, p)
    found = distribution(given)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        for y in given.sample((5,)):
            held = y.numpy().reshape(N)
            density = given.log_prob(y).numpy().reshape(N)
            np.testing.assert_allclose(found.log_density(held), density, rtol=1e-5, atol=1e-5)
            try:
                cdf = given.cdf(y).numpy().reshape(N)
            except NotImplementedError:
                continue
            np.testing.assert_allclose(found.cdf(held), cdf, rtol=1e-5, atol=1e-5)


def test_torch_distributions_of_one_number_and_of_single_precision() -> None:
    torch = needs("torch")
    T = torch.distributions
    found = distribution(T.Normal(0.5, 2.0), 3)
    np.testing.assert_array_equal(found.parameters["scale"], [2.0, 2.0, 2.0])
    half = torch.ones(3, dtype=torch.bfloat16)
    np.testing.assert_array_equal(distribution(T.Normal(half, half), 3).parameters["loc"], 1.0)


def test_torch_independent_is_its_base() -> None:
    torch = needs("torch")
    T = torch.distributions
    loc = torch.tensor(uniforms((N, 1)))
    for given in (
        T.Independent(T.Normal(loc, 1.0), 1),
        T.Independent(T.Normal(loc[:, 0], 1.0), 1),
        T.Independent(T.Independent(T.Normal(loc, 1.0), 1), 1),
    ):
        np.testing.assert_array_equal(distribution(given).parameters["loc"], loc[:, 0])


def test_torch_joint_normal_is_its_rows() -> None:
    torch = needs("torch")
    root = torch.tensor(uniforms((4, 4)))
    given = torch.distributions.MultivariateNormal(
        torch.arange(4.0).double(), root @ root.T + torch.eye(4)
    )
    found = distribution(given, 4)
    np.testing.assert_array_equal(found.point(), np.arange(4.0))
    np.testing.assert_allclose(
        found.sd(), np.sqrt(given.covariance_matrix.numpy().diagonal()), rtol=1e-6
    )


@pytest.mark.parametrize("form", ["(n,)", "(n, 1)", "independent", "one", "gamma"])
def test_torch_mixtures_say_the_same(form: str) -> None:
    torch = needs("torch")
    T = torch.distributions
    table = torch.tensor(uniforms((N, 3)))
    weights, parts = torch.tensor(uniforms((N, 3), 0.1, 1.0)), T.Normal(2 * table, table)
    if form == "(n, 1)":
        weights, parts = weights[:, None, :], T.Normal(2 * table[:, None, :], table[:, None, :])
    elif form == "independent":
        parts = T.Independent(T.Normal(2 * table[:, :, None], table[:, :, None]), 1)
    elif form == "one":
        weights, parts = weights[0], T.Normal(table[0], table[1])
    elif form == "gamma":
        parts = T.Gamma(2 * table, table)
    given = T.MixtureSameFamily(T.Categorical(weights), parts)
    found = distribution(given)
    assert isinstance(found.law, MixtureLaw)
    y = torch.tensor(uniforms((N, 5))[:, :1])
    wanted = given.log_prob(y if form in ("(n, 1)", "independent") else y[:, 0])
    np.testing.assert_allclose(found.log_density(y[:, 0].numpy()), wanted.numpy().reshape(N))


def test_torch_moved_distributions_keep_their_family() -> None:
    """As GluonTS's networks give them; a falling step or another one is read by quantiles."""
    torch = needs("torch")
    T = torch.distributions
    loc, scale = torch.tensor(uniforms((N,))), torch.tensor(uniforms((N + 1,))[:N])
    base = T.StudentT(3 + loc, loc, scale)
    steps = [T.AffineTransform(loc, scale), T.AffineTransform(1.0, 2.0)]
    given = T.TransformedDistribution(base, steps)
    found = distribution(given)
    assert found.law.name == "t"
    y = torch.tensor(uniforms((N, 2))[:, 0])
    np.testing.assert_allclose(found.log_density(y.numpy()), given.log_prob(y).numpy())
    for step in (T.AffineTransform(0.0, -1.0), T.SigmoidTransform()):
        other = T.TransformedDistribution(T.Normal(loc, scale), [step])
        given_other = read(other)
        (table,) = given_other.predictions
        assert isinstance(table, Quantiles)
        assert "levels 0.01 to 0.99" in given_other.notes[0]
        y = torch.tensor(table.values[:, 29])
        np.testing.assert_allclose(other.cdf(y).numpy(), 0.3, atol=1e-9)


def test_torch_without_quantiles_names_the_spelling_that_works() -> None:
    torch = needs("torch")
    T = torch.distributions
    for shape, draws in (((N,), ".T"), ((N, 1), ".squeeze(-1).T")):
        dist = T.VonMises(torch.zeros(shape), torch.ones(shape))
        with pytest.raises(InputError, match="VonMises") as caught:
            read(dist)
        spelling = f"howsure.Samples(prediction.sample((1000,)){draws})"
        assert spelling in str(caught.value)
        with torch.random.fork_rng():
            made = eval(spelling, {"howsure": __import__("howsure"), "prediction": dist})
        assert (made.n, made.size) == (N, 1000)


def test_torch_of_other_rows_or_outputs_is_refused() -> None:
    torch = needs("torch")
    T = torch.distributions
    for shape in ((N + 1,), (N, 2), (1, N)):
        with pytest.raises(InputError, match=r"prediction must have one .* row") as caught:
            read(T.Normal(torch.zeros(shape), torch.ones(shape)))
        assert f"the {N} rows of y" in str(caught.value)
    with pytest.raises(InputError, match="one univariate mixture"):
        read(
            T.MixtureSameFamily(
                T.Categorical(torch.ones(N + 1, 2)), T.Normal(torch.zeros(N + 1, 2), 1.0)
            )
        )


# --- NGBoost, SciPy ------------------------------------------------------------------------------

NGBOOST = {
    "Normal": (2, stats.norm, lambda p: {"loc": p[0], "scale": np.exp(p[1])}),
    "NormalFixedVar": (1, stats.norm, lambda p: {"loc": p[0], "scale": 1.0}),
    "LogNormal": (2, stats.lognorm, lambda p: {"s": np.exp(p[1]), "scale": np.exp(p[0])}),
    "Exponential": (1, stats.expon, lambda p: {"scale": np.exp(p[0])}),
    "Laplace": (2, stats.laplace, lambda p: {"loc": p[0], "scale": np.exp(p[1])}),
    "T": (3, stats.t, lambda p: {"loc": p[0], "scale": np.exp(p[1]), "df": np.exp(p[2])}),
    "TFixedDf": (2, stats.t, lambda p: {"loc": p[0], "scale": np.exp(p[1]), "df": 3.0}),
    "Cauchy": (2, stats.cauchy, lambda p: {"loc": p[0], "scale": np.exp(p[1])}),
    "Poisson": (1, stats.poisson, lambda p: {"mu": np.exp(p[0])}),
    "Weibull": (2, stats.weibull_min, lambda p: {"c": np.exp(p[0]), "scale": np.exp(p[1])}),
    "HalfNormal": (1, stats.halfnorm, lambda p: {"scale": np.exp(p[0])}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NGBOOST))
def test_ngboost_distributions_say_the_same(name: str) -> None:
    distns = needs("ngboost.distns")
    count, family, parameters = NGBOOST[name]
    internal = uniforms((count, N))
    given = getattr(distns, name)(internal)
    found = distribution(given)
    ends = found.interval(0.8)
    oracle = family(**parameters(internal))
    for end, level in zip(ends, (0.1, 0.9), strict=True):
        np.testing.assert_allclose(end, oracle.ppf(level), rtol=1e-6)
        np.testing.assert_allclose(end, given.dist.ppf(level), rtol=1e-12)


@pytest.mark.slow
def test_ngboost_without_a_scipy_family_is_refused() -> None:
    distns = needs("ngboost.distns")
    with pytest.raises(InputError, match=r"howsure\.Samples\(prediction\.sample\(1000\)\.T\)"):
        read(distns.LogitNormal(uniforms((2, N))))


def test_scipys_newer_distributions() -> None:
    mu, sigma = uniforms((N,)), uniforms((N + 1,))[:N]
    found = distribution(stats.Normal(mu=mu, sigma=sigma))
    np.testing.assert_array_equal(found.parameters["scale"], sigma)
    gamma = stats.make_distribution(stats.gamma)
    given = read(gamma(a=mu))
    (table,) = given.predictions
    assert isinstance(table, Quantiles)
    np.testing.assert_allclose(table.values, stats.gamma(mu[:, None]).ppf(LEVELS), rtol=1e-6)
    assert given.notes == (
        "SciPy's Gamma is not supported directly: its quantiles at levels 0.01 to 0.99 are used",
    )


def test_a_frozen_scipy_distribution_is_read_as_ever() -> None:
    found = distribution(stats.gamma(uniforms((N,)), scale=2.0))
    assert found.law.name == "gamma"


# --- skpro ---------------------------------------------------------------------------------------

SKPRO: dict[str, Any] = {
    "Normal": lambda a, b, p: {"mu": a - 1, "sigma": b},
    "Laplace": lambda a, b, p: {"mu": a, "scale": b},
    "Logistic": lambda a, b, p: {"mu": a, "scale": b},
    "Cauchy": lambda a, b, p: {"mu": a, "scale": b},
    "TDistribution": lambda a, b, p: {"mu": a, "sigma": b, "df": 2 + a},
    "LogNormal": lambda a, b, p: {"mu": a - 1, "sigma": b},
    "Gamma": lambda a, b, p: {"alpha": a, "beta": b},
    "Beta": lambda a, b, p: {"alpha": a, "beta": b},
    "Exponential": lambda a, b, p: {"rate": a},
    "Uniform": lambda a, b, p: {"lower": -a, "upper": b},
    "Weibull": lambda a, b, p: {"scale": a, "k": b},
    "HalfNormal": lambda a, b, p: {"sigma": a},
    "Poisson": lambda a, b, p: {"mu": 3 * a},
    "NegativeBinomial": lambda a, b, p: {"mu": 3 * a, "alpha": b},
    "Binomial": lambda a, b, p: {"n": np.ceil(5 * a), "p": p},
}


@pytest.mark.parametrize("name", sorted(SKPRO))
def test_skpro_distributions_say_the_same(name: str) -> None:
    module, pd = needs("skpro.distributions"), needs("pandas")
    p = uniforms((N, 1), 0.1, 0.9)
    options = SKPRO[name](uniforms((N, 1)), uniforms((N, 1), 0.5, 1.5), p)
    given = getattr(module, name)(**options, columns=pd.Index(["y"]), index=pd.RangeIndex(N))
    found = distribution(given)
    for level in (0.1, 0.5, 0.9):
        at = np.full((N, 1), level)
        wanted = np.asarray(given.ppf(pd.DataFrame(at)))[:, 0]
        np.testing.assert_allclose(found.quantile([level])[:, 0], wanted, rtol=1e-6)
    y = np.ceil(found.quantile([0.7])) if found.discrete else found.quantile([0.7])
    wanted = np.asarray(given.cdf(pd.DataFrame(y)))[:, 0]
    np.testing.assert_allclose(found.cdf(y[:, 0]), wanted, rtol=1e-6)


def test_skpro_distribution_of_one_number_speaks_of_every_row() -> None:
    module = needs("skpro.distributions")
    np.testing.assert_array_equal(distribution(module.Normal(1.0, 2.0)).parameters["loc"], 1.0)


def test_skpro_mixtures_say_the_same() -> None:
    module, pd = needs("skpro.distributions"), needs("pandas")
    a, b = uniforms((N, 1)), uniforms((N, 1), 0.5, 1.5)
    mix = module.Mixture(
        [("one", module.Normal(a, b)), ("two", module.Laplace(a + 2, b))], weights=[0.3, 0.7]
    )
    share = uniforms((N, 2), 0.1, 1.0)
    share /= share.sum(axis=1, keepdims=True)
    normals = module.NormalMixture(pi=share, mu=np.hstack([a, -a]), sigma=np.hstack([b, a]))
    y = uniforms((N, 1))
    for given in (mix, normals):
        found = distribution(given)
        wanted = np.asarray(given.cdf(pd.DataFrame(y)))[:, 0]
        np.testing.assert_allclose(found.cdf(y[:, 0]), wanted, rtol=1e-6)


def test_skpro_empirical_is_samples_of_the_right_rows() -> None:
    module, pd = needs("skpro.distributions"), needs("pandas")
    draws = np.random.default_rng(0).normal(size=(7, N)) + np.arange(N)
    index = pd.MultiIndex.from_product([range(7), range(N)])
    frame = pd.DataFrame({"y": draws.ravel()}, index=index)
    (found,) = read(module.Empirical(frame)).predictions
    assert isinstance(found, Samples)
    np.testing.assert_array_equal(found.sorted_samples, np.sort(draws.T, axis=1))
    shuffled = frame.sample(frac=1.0, random_state=0)
    (again,) = read(module.Empirical(shuffled, index=pd.RangeIndex(N))).predictions
    assert isinstance(again, Samples)
    np.testing.assert_array_equal(again.sorted_samples, found.sorted_samples)


@pytest.mark.slow
def test_skpro_weighted_empirical_and_unknown_families_are_read_by_quantiles() -> None:
    module, pd = needs("skpro.distributions"), needs("pandas")
    index = pd.MultiIndex.from_product([range(7), range(N)])
    frame = pd.DataFrame({"y": np.random.default_rng(0).normal(size=7 * N)}, index=index)
    weights = pd.Series(np.repeat(np.arange(1.0, 8.0), N), index=index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empirical = module.Empirical(frame, weights=weights)
        for given in (empirical, module.SkewNormal(uniforms((N, 1)), uniforms((N, 1)), 2.0)):
            held = read(given)
            (table,) = held.predictions
            assert isinstance(table, Quantiles)
            assert "levels 0.01 to 0.99" in held.notes[0]
            for level in (0.05, 0.5, 0.9):
                wanted = np.asarray(given.ppf(pd.DataFrame(np.full((N, 1), level))))
                np.testing.assert_allclose(table.quantile([level]), wanted, rtol=1e-9)


def test_skpro_of_two_variables_or_other_rows_is_refused() -> None:
    module = needs("skpro.distributions")
    for shape in ((N, 2), (N + 1, 1)):
        with pytest.raises(InputError, match="prediction of skpro must have shape"):
            read(module.Normal(np.zeros(shape), 1.0))


# --- frames of sktime and skpro ------------------------------------------------------------------


def forecaster() -> Any:
    needs("sktime")
    pd = needs("pandas")
    from sktime.forecasting.naive import NaiveForecaster

    steps = np.cumsum(np.random.default_rng(0).normal(size=60))
    series = pd.Series(steps, index=pd.period_range("2020-01", periods=60, freq="M"), name="sales")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return NaiveForecaster(strategy="last").fit(series[:48]), series[48:]


@pytest.mark.slow
def test_sktime_frames_are_read_with_what_they_say_of_themselves() -> None:
    made, y = forecaster()
    steps = list(range(1, 13))
    frame = made.predict_interval(steps, coverage=[0.9, 0.5])
    (found,) = read(frame, 12).predictions
    assert isinstance(found, Intervals)
    assert found.coverages == (0.5, 0.9)
    for coverage in (0.5, 0.9):
        low, high = found.interval(coverage)
        np.testing.assert_array_equal(low, frame[("sales", coverage, "lower")])
        np.testing.assert_array_equal(high, frame[("sales", coverage, "upper")])
    frame = made.predict_quantiles(steps, alpha=[0.9, 0.1, 0.5])
    (table,) = read(frame, 12).predictions
    assert isinstance(table, Quantiles)
    np.testing.assert_array_equal(table.levels, [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(table.values[:, 0], frame[("sales", 0.1)])
    assert isinstance(distribution(made.predict_proba(steps), 12), Distribution)
    result = assess(y, made.predict_interval(steps, coverage=0.9))
    assert "90 %" in result.verdict


def test_a_variance_beside_a_forecast_is_not_taken_for_a_standard_deviation() -> None:
    made, _ = forecaster()
    steps = list(range(1, 13))
    pair = (made.predict(steps), made.predict_var(steps))
    with pytest.raises(InputError, match="may be a variance") as caught:
        read(pair, 12)
    assert "howsure.Distribution.normal(mean, variance**0.5)" in str(caught.value)
    spelled = Distribution.normal(pair[0], pair[1] ** 0.5)
    proba = distribution(made.predict_proba(steps), 12)
    np.testing.assert_allclose(spelled.interval(0.9), proba.interval(0.9))


def test_frames_of_several_variables_name_them() -> None:
    pd = needs("pandas")
    columns = pd.MultiIndex.from_product([["sales", "costs"], [0.9], ["lower", "upper"]])
    with pytest.raises(InputError, match="one variable, got sales, costs") as caught:
        read(pd.DataFrame(np.zeros((N, 4)), columns=columns))
    assert "prediction[['sales']]" in str(caught.value)
    columns = pd.MultiIndex.from_product([["sales"], [0.9, 0.5], ["lower", "upper"]])
    with pytest.raises(InputError, match="one lower and one upper column"):
        read(pd.DataFrame(np.zeros((N, 3)), columns=columns[:3]))


# --- GluonTS and darts, by stand-ins: neither is installed beside the tests ---------------------


def stand_in(name: str, module: str, **held: Any) -> Any:
    """An object of a class that says it is the library's; tried with the real ones by hand."""
    base = type("Forecast", (), {"__module__": module})
    made = type(name, (base,), {"__module__": module})()
    for key, value in held.items():
        setattr(made, key, value)
    return made


def test_gluonts_samples_one_series_after_the_other() -> None:
    tables = [np.random.default_rng(k).normal(size=(30, 6)) for k in range(2)]
    series = [stand_in("SampleForecast", "gluonts.model.forecast", samples=t) for t in tables]
    (one,) = read(series[0], 6).predictions
    assert isinstance(one, Samples)
    np.testing.assert_array_equal(one.sorted_samples, np.sort(tables[0].T, axis=1))
    (both,) = read(iter(series), 12).predictions  # as predictors give them
    assert isinstance(both, Samples)
    np.testing.assert_array_equal(both.sorted_samples[:6], one.sorted_samples)
    np.testing.assert_array_equal(both.sorted_samples[6:], np.sort(tables[1].T, axis=1))
    odd = stand_in("SampleForecast", "gluonts.model.forecast", samples=tables[0][:9])
    with pytest.raises(
        InputError, match=r"the same number of univariate samples.* got \(30, 6\), \(9, 6\)"
    ):
        read([series[0], odd], 12)


def test_gluonts_quantiles() -> None:
    table = np.sort(np.random.default_rng(0).normal(size=(3, 6)), axis=0)
    held = {"forecast_array": np.vstack([table.mean(axis=0), table])}
    made = stand_in(
        "QuantileForecast",
        "gluonts.model.forecast",
        **held,
        forecast_keys=["mean", ".1", ".5", ".9"],
    )
    given = read([made, made], 12)
    (found,) = given.predictions
    assert isinstance(found, Quantiles)
    np.testing.assert_array_equal(found.levels, [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(found.values[:6], table.T)
    assert given.point is not None
    np.testing.assert_array_equal(given.point[6:], table.mean(axis=0))
    other = stand_in(
        "QuantileForecast", "gluonts.model.forecast", **held, forecast_keys=list("abcd")
    )
    with pytest.raises(InputError, match="the same univariate quantiles"):
        read([made, other], 12)


def test_gluonts_distributions() -> None:
    torch = needs("torch")
    T = torch.distributions
    made = []
    for k in range(2):
        base = T.StudentT(torch.full((6,), 5.0), torch.zeros(6), torch.ones(6))
        moved = T.TransformedDistribution(base, [T.AffineTransform(loc=float(k), scale=2.0)])
        module = "gluonts.torch.model.forecast"
        made.append(stand_in("DistributionForecast", module, distribution=moved))
    found = distribution(made, 12)
    np.testing.assert_allclose(found.point(), np.repeat([0.0, 1.0], 6))
    np.testing.assert_allclose(
        found.interval(0.8)[1], np.repeat([0, 1], 6) + 2 * stats.t(5).ppf(0.9)
    )
    mixed = [
        made[0],
        stand_in("SampleForecast", "gluonts.model.forecast", samples=np.zeros((3, 6))),
    ]
    with pytest.raises(InputError, match="forecasts of one type, got DistributionForecast, Sample"):
        read(mixed, 12)


class TimeSeries:
    """A stand-in for darts: its class says so, and it has what is read."""

    __module__ = "darts.timeseries"

    def __init__(self, table: npt.NDArray[Any], components: list[str]) -> None:
        self.table, self.components = table, components

    def all_values(self, copy: bool = True) -> npt.NDArray[Any]:
        return self.table


def test_darts_series() -> None:
    table = np.random.default_rng(0).normal(size=(N, 1, 30))
    (found,) = read(TimeSeries(table, ["y"])).predictions
    assert isinstance(found, Samples)
    np.testing.assert_array_equal(found.sorted_samples, np.sort(table[:, 0], axis=1))
    given = read(TimeSeries(table[:, :, :1], ["y"]))
    assert given.predictions == ()
    np.testing.assert_array_equal(given.point, table[:, 0, 0])
    levels = np.sort(table[:, 0, :3], axis=1)
    (held,) = read(TimeSeries(levels[:, :, None], ["y_q0.05", "y_q0.50", "y_q0.95"])).predictions
    assert isinstance(held, Quantiles)
    np.testing.assert_array_equal(held.levels, [0.05, 0.5, 0.95])
    np.testing.assert_array_equal(held.values, levels)
    with pytest.raises(
        InputError, match=r"one component, got a, b: give one of them, prediction\['a'"
    ):
        read(TimeSeries(levels[:, :2, None], ["a", "b"]))


# --- TabPFN, howsure's own -----------------------------------------------------------------------


def test_tabpfn_quantiles_are_a_list_of_one_array_a_level() -> None:
    columns = list(np.sort(np.random.default_rng(0).normal(size=(3, N)), axis=0))
    (found,) = read(columns, levels=[0.1, 0.5, 0.9]).predictions
    assert isinstance(found, Quantiles)
    np.testing.assert_array_equal(found.values, np.column_stack(columns))


def test_tabpfn_full_output_holds_nine_quantiles() -> None:
    columns = list(np.sort(np.random.default_rng(0).normal(size=(9, N)), axis=0))
    full = {
        "mean": columns[4] + 0.1,
        "median": columns[4],
        "mode": columns[3],
        "quantiles": columns,
    }
    given = read(full)
    (found,) = given.predictions
    assert isinstance(found, Quantiles)
    np.testing.assert_allclose(found.levels, np.arange(1, 10) / 10)
    assert given.point is not None
    np.testing.assert_array_equal(given.point, columns[4] + 0.1)
    with pytest.raises(InputError, match="pass levels= for the 8 quantiles"):
        read({**full, "quantiles": columns[:8]})


def test_what_a_method_of_howsure_predicts_is_its_outcome() -> None:
    predicted = needs("howsure_studies.methods.interface").Predictions
    outcome = Distribution.normal(np.zeros(N), np.ones(N))
    assert read(predicted(outcome, mean=outcome)).predictions == (outcome,)


def test_a_lazy_frame_is_left_to_others_without_a_look_at_its_columns() -> None:
    """Which polars warns of, as it costs a plan."""
    pl = needs("polars")
    assert read_foreign(pl.LazyFrame({"mean": [0.0]}), n=1) is None


def test_a_model_instead_of_its_prediction_is_told_its_door() -> None:
    from sklearn.linear_model import LinearRegression

    with pytest.raises(
        InputError, match=r"got the model itself, LinearRegression: use howsure\.assess_model"
    ):
        read(LinearRegression())


def test_what_was_read_is_read_again_as_it_is() -> None:
    given = PredictionInput(point=np.zeros(N), notes=("so",))
    assert read(given) is given


def test_notes_of_how_it_was_read_are_told_with_the_result() -> None:
    rng = np.random.default_rng(0)
    a = uniforms((N,))
    result = assess(
        rng.gamma(a), stats.make_distribution(stats.gamma)(a=a), options=Options(trials=False)
    )
    assert any("levels 0.01 to 0.99" in fact for fact in result.facts.values())


def nixtla() -> Any:
    """Mlforecast's own frame of ten days, and what happened."""
    needs("mlforecast")
    pd = needs("pandas")
    from mlforecast import MLForecast
    from mlforecast.utils import PredictionIntervals
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=200, freq="D")
    frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": rng.normal(size=200).cumsum()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MLForecast(models={"lm": LinearRegression()}, freq="D", lags=[1, 7])
        made.fit(frame[:-10], prediction_intervals=PredictionIntervals(n_windows=4, h=10))
        return made.predict(10, level=[80, 90]), frame[-10:]


def check_nixtla(found: Any, predicted: Any) -> None:
    assert isinstance(found, Intervals)
    for coverage in (80, 90):
        low, high = found.interval(coverage / 100)
        np.testing.assert_array_equal(low, predicted[f"lm-lo-{coverage}"])
        np.testing.assert_array_equal(high, predicted[f"lm-hi-{coverage}"])


def test_nixtla_frame_beside_y_is_read_by_its_columns() -> None:
    predicted, _ = nixtla()
    found = read_given(predicted, n=10)
    assert list(found) == ["lm"]
    given = found["lm"]
    check_nixtla(given.predictions[0], predicted)
    np.testing.assert_array_equal(given.point, predicted["lm"])


def test_nixtla_frame_with_y_is_read_by_its_columns() -> None:
    predicted, truth = nixtla()
    (held,) = load(truth.merge(predicted)).evalsets
    check_nixtla(held.predictions[0], predicted)
    np.testing.assert_array_equal(held.point, predicted["lm"])
