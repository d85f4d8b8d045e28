"""The methods made of networks: their arithmetic, their intervals, and bad input."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError, MissingDependencyError, UnanswerableError  # noqa: E402
from howsure_studies.methods.bootstrap import parametric_laws  # noqa: E402
from howsure_studies.methods.deep import (  # noqa: E402
    BatchTraining,
    ConcreteDropout,
    DeepEnsemble,
    HeadNetwork,
    MCDropout,
    MeanVarianceNetwork,
    NetworkBootstrap,
    ParametricBootstrap,
    QuantileNetwork,
    networks,
    train,
)
from howsure_studies.methods.deep.batch import (  # noqa: E402
    Member,
    Network,
    dropped_outputs,
    moments,
    outputs,
)
from howsure_studies.methods.deep.method import NetworkFit, NetworkMethod  # noqa: E402
from howsure_studies.methods.deep.training import Standardization  # noqa: E402
from howsure_studies.methods.linear import LinearT  # noqa: E402
from howsure_studies.tasks.worlds import world_named  # noqa: E402
from methods.test_interface import check_answers, check_refusals  # noqa: E402

QUICK: dict[str, Any] = {"layers": (8, 6), "epochs": 15}
METHODS: dict[str, NetworkMethod] = {
    "bootstrap": NetworkBootstrap(members=6, **QUICK),
    "bootstrap of the mean": NetworkBootstrap(members=6, spread="mean", **QUICK),
    "ensemble": DeepEnsemble(members=3, **QUICK),
    "bootstrapped ensemble": DeepEnsemble(members=3, resampled=True, **QUICK),
    "parametric bootstrap": ParametricBootstrap(members=3, **QUICK),
    "MC dropout": MCDropout(passes=20, **QUICK),
    "MC dropout, constant noise": MCDropout(passes=20, noise="constant", drop_input=True, **QUICK),
    "concrete dropout": ConcreteDropout(passes=20, **QUICK),
    "mean and variance": MeanVarianceNetwork(**QUICK),
    "quantiles": QuantileNetwork(coverages=(0.5, 0.8), **QUICK),
}
WITHOUT_MEAN = {"mean and variance", "quantiles"}


def rows(n: int = 80, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, d))
    return x, 2 * x[:, 0] + 0.3 * rng.normal(size=n)


def fitted(method: NetworkMethod, seed: int = 0, **wanted: int) -> NetworkFit:
    return method.fit(*rows(**wanted), np.random.default_rng(seed))


@pytest.mark.parametrize("name", METHODS)
def test_methods_answer_at_every_coverage(name: str) -> None:
    method = METHODS[name]
    x, _ = rows(7, seed=1)
    predictions = fitted(method).predict(x)
    assert (predictions.mean is None) == (name in WITHOUT_MEAN)
    check_answers(predictions, method.fixed_coverages)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_many_data_sets_are_fitted_as_one_by_one(name: str) -> None:
    method = replace(METHODS[name], chunk=4)
    data = [rows(80, seed=k) for k in range(3)] + [rows(50, seed=3)]
    x, _ = rows(9, seed=4)
    many = method.fit_many(data, [np.random.default_rng(k) for k in range(4)])
    coverage = (method.fixed_coverages or (0.8,))[0]
    for k, together in enumerate(many):
        alone = METHODS[name].fit(*data[k], np.random.default_rng(k))
        for mine, other in ((together, alone), (pickle.loads(pickle.dumps(together)), alone)):
            one, two = (np.stack(f.predict(x).outcome.interval(coverage)) for f in (mine, other))
            np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_the_generator_is_the_only_source_of_randomness(name: str) -> None:
    method = METHODS[name]
    x, _ = rows(5)
    coverage = (method.fixed_coverages or (0.8,))[0]
    first, again, other = (
        np.stack(fitted(method, seed).predict(x).outcome.interval(coverage)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_a_prediction_does_not_depend_on_the_rows_beside_it(name: str) -> None:
    fit = fitted(METHODS[name])
    x, _ = rows(30, seed=1)
    coverage = (METHODS[name].fixed_coverages or (0.8,))[0]
    whole = np.stack(fit.predict(x).outcome.interval(coverage))
    part = np.stack(fit.predict(x[[7, 3]]).outcome.interval(coverage))
    np.testing.assert_allclose(part, whole[:, [7, 3]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_scale_and_location_carry_over(name: str) -> None:
    """Predictions about 100 + 50 y, with x in other units too, are 100 + 50 × those about y."""
    x, y = rows()
    method = METHODS[name]
    coverage = (method.fixed_coverages or (0.8,))[0]
    ends = [
        np.stack(method.fit(a, b, np.random.default_rng(0)).predict(a).outcome.interval(coverage))
        for a, b in ((x, y), (7 - 0.01 * x, 100 + 50 * y))
    ]
    flipped = method.fit(-x, y, np.random.default_rng(0)).predict(-x).outcome.interval(coverage)
    np.testing.assert_allclose(ends[1], 100 + 50 * np.stack(flipped), rtol=1e-3, atol=0.05)
    assert np.abs(ends[0] - np.stack(flipped)).max() > 1e-3  # first weights are not symmetric


@pytest.mark.parametrize("name", METHODS)
def test_methods_refuse_bad_rows(name: str) -> None:
    method = replace(METHODS[name], epochs=1)
    x, y = rows()
    check_refusals(method, x, y, "at least 4 rows")
    with pytest.raises(InputError, match="rngs must contain 1"):
        method.fit_many([(x, y)], [])
    with pytest.raises(InputError, match="x must have 2 columns"):
        fitted(method).predict([[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("name", METHODS)
def test_a_diverged_network_gives_no_number(name: str) -> None:
    method = replace(METHODS[name], epochs=2)
    x, y = rows()
    bad, good = method.fit_many([(x, 1e200 * y), (x, y)], [np.random.default_rng(0)] * 2)
    with pytest.raises(UnanswerableError, match=r"networks failed .*data too large"):
        bad.predict(x)
    assert good.predict(x).outcome.n == len(x)


@pytest.mark.parametrize("name", METHODS)
def test_without_torch_the_error_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"howsure\[deep\]"):
        fitted(METHODS[name])


def forecasts_of(fit: NetworkFit, x: np.ndarray) -> np.ndarray:
    """Means in the units of y, shape (m, n)."""
    return np.array(
        [n.scale.y_center + n.scale.y_unit * outputs([n], x)[0, 0] for n in fit.networks]
    )


@pytest.mark.parametrize("convention", ["paper", "code"])
def test_the_bootstrap_is_algorithm_1(convention: Any) -> None:
    method = NetworkBootstrap(members=7, validation=20, convention=convention, **QUICK)
    x, y = rows(100)
    new, _ = rows(5, seed=1)
    rng = np.random.default_rng(3)
    fit = method.fit(x, y, rng)
    held = np.random.default_rng(3).permutation(100)[:20]
    ddof, freedom = (1, 7) if convention == "paper" else (0, 6)
    inside, outside = forecasts_of(fit, x[np.sort(held)]), forecasts_of(fit, new)
    residual = (y[np.sort(held)] - inside.mean(axis=0)) ** 2 - inside.var(axis=0, ddof=ddof)
    noise = np.mean([max(value, 0.0) for value in residual])
    spread, t = outside.var(axis=0, ddof=ddof), stats.t.ppf(0.95, freedom)
    predictions = fit.predict(new)
    assert predictions.mean is not None
    for prediction, sd in (
        (predictions.mean, spread**0.5),
        (predictions.outcome, (spread + noise) ** 0.5),
    ):
        np.testing.assert_allclose(
            np.stack(prediction.interval(0.9)),
            outside.mean(axis=0) + np.outer([-t, t], sd),
            rtol=1e-5,
        )


def least_squares(members: list[Member], *_: Any) -> list[Network]:
    """Networks that are each member's line by least squares, with the noise that it leaves."""
    made = []
    for member in members:
        x, y = member.rows()
        d = x.shape[1]
        design = np.column_stack([np.ones(len(y)), x])
        line, (rest,), *_ = np.linalg.lstsq(design, y)
        slopes = np.concatenate([line[1:], -line[1:]])  # a line of relu(x) and relu(−x)
        kernels = (np.concatenate([np.eye(d), -np.eye(d)]), np.stack([slopes, 0 * slopes]))
        biases = (np.zeros(2 * d), np.array([line[0], np.log(rest / (len(y) - d - 1))]))
        layers = [tuple(a.astype(np.float32) for a in arrays) for arrays in (kernels, biases)]
        plain = Standardization(np.zeros(d), np.ones(d), 0.0, 1.0)
        made.append(Network(layers[0], layers[1], plain))
    return made


def test_the_parametric_bootstrap_of_a_line_is_the_exact_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines have sd s√h at x: what least squares says of them in closed form."""
    for module in (networks, sys.modules[NetworkMethod.__module__]):
        monkeypatch.setattr(module, "train", least_squares)
    x, y = rows(40)
    new = np.array([[0.0, 0.0], [1.0, -1.0], [3.0, 2.0]])
    exact = LinearT().fit(x, y, np.random.default_rng(0)).predict(new)
    drawn = ParametricBootstrap(members=2_000).fit(x, y, np.random.default_rng(0)).predict(new)
    assert exact.mean is not None
    assert drawn.mean is not None
    for own, line in ((drawn.mean, exact.mean), (drawn.outcome, exact.outcome)):
        np.testing.assert_allclose(own.point(), line.point(), rtol=1e-5)
        scale = stats.norm.ppf(0.95) / stats.t.ppf(0.95, 40 - 3)  # ours knows the noise, as it were
        own_half, half = (np.subtract(*law.interval(0.9)[::-1]) for law in (own, line))
        np.testing.assert_allclose(own_half, scale * half, rtol=0.05)  # three times 1/√(2 · 2,000)


@pytest.mark.parametrize("repeated", [0.2, 1.0])
def test_members_are_trained_again_alike_but_for_what_they_drew(repeated: float) -> None:
    x, y = rows(100)
    method = ParametricBootstrap(members=4, repeated=repeated, **QUICK)  # 3 of 15 epochs, or all
    fit = method.fit(x, y, np.random.default_rng(3))
    seed = int(np.random.default_rng(3).integers(2**63 - 1))
    early = replace(method.training, epochs=12)
    late = replace(method.training, epochs=3) if repeated < 1 else method.training
    members = [Member(x, y, seed, k) for k in range(4)]
    if repeated < 1:
        begun = train(members, method.head, early)
        members = [replace(m, begin=n) for m, n in zip(members, begun, strict=True)]
    first = train(members, method.head, late)
    drawn = [networks._redrawn(m, n).rows()[1] for m, n in zip(members, first, strict=True)]
    again = train(
        [replace(m, y=own) for m, own in zip(members, drawn, strict=True)], method.head, late
    )
    for ours, theirs in zip((*first, *again), (*fit.networks, *fit.again), strict=True):
        np.testing.assert_allclose(ours.kernels[0], theirs.kernels[0], atol=1e-5)
    mean, noise = fit.moments(fit.networks, x)
    z = (drawn - mean) / np.sqrt(noise)
    assert abs(z.mean()) < 0.15
    assert abs(z.std() - 1.0) < 0.1
    assert np.abs(np.corrcoef(z) - np.eye(4)).max() < 0.35


def test_training_goes_on_from_a_network() -> None:
    """No step at all leaves its function; many lead on from it, and not from first weights."""
    x, y = rows(100)
    options = BatchTraining(**QUICK)
    head = DeepEnsemble().head
    (begun,) = train([Member(x, y, seed=0)], head, options)
    (same,) = train(
        [Member(x, y, seed=5, begin=begun)], head, replace(options, learning_rate=1e-12)
    )
    np.testing.assert_allclose(outputs([same], x), outputs([begun], x), atol=1e-5)
    (on,) = train([Member(x, y, seed=5, begin=begun)], head, options)
    (other,) = train([Member(x, y, seed=5)], head, options)
    assert on.losses[0, 0] < begun.losses[0, 0]
    near, far = (np.abs(n.kernels[0] - begun.kernels[0]).max() for n in (on, other))
    assert 2 * near < far


def test_the_parametric_bootstrap_tells_data_from_training() -> None:
    fit = fitted(METHODS["parametric bootstrap"])
    new, _ = rows(5, seed=1)
    first, noise = fit.moments(fit.networks, new)
    second, _ = fit.moments(fit.again, new)
    variance = np.mean((first - second) ** 2, axis=0) + first.var(axis=0, ddof=1) / 3
    predictions = fit.predict(new)
    assert predictions.mean is not None
    half = np.subtract(*predictions.mean.interval(0.9)[::-1]) / 2
    np.testing.assert_allclose(half, stats.t.ppf(0.95, 2) * np.sqrt(variance), rtol=1e-9)
    whole, df = variance + noise.mean(axis=0), 2 * (1 + noise.mean(axis=0) / variance) ** 2
    half = np.subtract(*predictions.outcome.interval(0.9)[::-1]) / 2
    np.testing.assert_allclose(half, stats.t.ppf(0.95, df) * np.sqrt(whole), rtol=1e-9)


@pytest.mark.slow
def test_members_answer_the_same_noise_each_in_its_own_way() -> None:
    """So the parametric bootstrap takes two to five times the variance of their mean for it."""
    data = world_named("toy_homoscedastic", None).training_set(0, 0, 1000)
    new = np.linspace(-0.49, 0.49, 50)[:, None]
    method = ParametricBootstrap(members=6)
    late = replace(method.training, epochs=24)
    members = [Member(data.x, data.y, seed=1, index=k) for k in range(6)]
    early = train(members, method.head, replace(method.training, epochs=56))
    members = [replace(m, begin=n) for m, n in zip(members, early, strict=True)]
    first = train(members, method.head, late)
    mean, variance = moments(first, method.head, outputs(first, data.x))
    shared = np.random.default_rng(0).normal(size=(6, len(data.y)))
    drawn = [
        replace(m, y=f + np.sqrt(v) * noise)
        for noise in shared
        for m, f, v in zip(members, mean, variance, strict=True)
    ]
    again = train(drawn, method.head, late)
    moved = outputs(again, new)[:, 0] * [[n.scale.y_unit] for n in again]
    moved += [[n.scale.y_center] for n in again]
    moved = moved.reshape(6, 6, -1) - moments(first, method.head, outputs(first, new))[0]
    ratio = np.square(moved).mean() / np.square(moved.mean(axis=1)).mean()
    assert 2 < ratio < 5


@pytest.mark.parametrize("noise", [0.0, 0.3, 3.0, 1e9])
def test_a_new_y_lies_inside_as_often_as_is_said(noise: float) -> None:
    """Means with an estimated variance, and noise of a known one: coverage of the sum's law."""
    rng = np.random.default_rng(0)
    members, n = 5, 100_000
    errors = rng.normal(size=(members, n))  # those of members, that of their mean being 1/√M
    shift = np.zeros((members, n))
    laws = parametric_laws(errors, errors - shift, np.full((members, n), noise / members))
    lower, upper = laws.outcome.interval(0.9)
    y = rng.normal(scale=np.sqrt(noise / members), size=n)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.012)


def test_members_are_trained_on_resamples_of_rows_not_held_out() -> None:
    x, y = rows(100)
    fit = NetworkBootstrap(members=4, validation=20, **QUICK).fit(x, y, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    held = np.zeros(100, dtype=bool)
    held[rng.permutation(100)[:20]] = True
    seed = int(rng.integers(2**63 - 1))
    own = [Member(x[~held], y[~held], seed, k, k) for k in range(4)]
    centers = [member.rows()[1].mean() for member in own]
    assert [network.scale.y_center for network in fit.networks] == pytest.approx(centers)
    assert len(set(centers)) == 4


def test_pairs_share_a_resample_and_differ_by_training() -> None:
    fit = fitted(METHODS["bootstrap of the mean"])
    means = [network.scale.y_center for network in fit.networks]
    assert means[0::2] == means[1::2]
    assert len(set(means)) == 3
    assert not np.allclose(fit.networks[0].kernels[0], fit.networks[1].kernels[0])


def test_a_deep_ensemble_is_the_mixture_whatever_it_is_made_by() -> None:
    x, y = rows(60)
    new, _ = rows(20, seed=1)
    own: dict[str, Any] = {"layers": (8, 6), "epochs": 15, "members": 3}
    plain = {"weight_decay": 0.0, "schedule": "constant", "keep": "last", "warm": True}
    found = {}
    for how in ("mixture", "moments"):
        one = DeepEnsemble(**own, combine=how).fit(x, y, np.random.default_rng(3))
        head = HeadNetwork(**own, **plain, validation=None, combine=how)
        other = head.fit(x, y, np.random.default_rng(3))
        part, same = one.predict(new), other.predict(new)
        assert part.outcome.interval(0.9)[0] == pytest.approx(same.outcome.interval(0.9)[0])
        assert part.mean is not None
        assert same.mean is not None
        assert part.mean.sd() == pytest.approx(same.mean.sd(), rel=1e-5)
        found[how] = part.outcome
    assert DeepEnsemble().combine == HeadNetwork().combine == "mixture"
    mixed, normal = found["mixture"], found["moments"]
    assert (mixed.law.name, normal.law.name) == ("norm+norm+norm", "norm")
    assert mixed.point() == pytest.approx(normal.point(), rel=1e-12)
    assert mixed.sd() == pytest.approx(normal.sd(), rel=1e-9)
    assert not np.allclose(mixed.interval(0.9), normal.interval(0.9), rtol=1e-4)


def test_quantiles_have_no_moments_to_match() -> None:
    for head in ("quantile", "pair"):
        with pytest.raises(InputError, match="combine must be 'mixture'"):
            HeadNetwork(head=head, combine="moments")


@pytest.mark.parametrize("combine", ["mixture", "moments"])
def test_an_ensemble_has_the_moments_of_the_mixture(combine: Any) -> None:
    fit = fitted(replace(METHODS["ensemble"], combine=combine))
    x, _ = rows(6, seed=1)
    predictions = fit.predict(x)
    laws = []
    for n in fit.networks:
        mean, log_variance = outputs([n], x)[0]
        sd = n.scale.y_unit * np.exp(log_variance / 2)
        laws.append(stats.norm(n.scale.y_center + n.scale.y_unit * mean, sd))
    draws = np.concatenate([law.rvs((40000, 6), random_state=k) for k, law in enumerate(laws)])
    np.testing.assert_allclose(predictions.outcome.point(), draws.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(predictions.outcome.sd(), draws.std(axis=0), rtol=0.02)
    assert predictions.mean is not None
    spread = np.std([law.mean() for law in laws], axis=0)
    np.testing.assert_allclose(predictions.mean.sd(), spread, rtol=1e-6)


def test_dropout_is_algorithm_2() -> None:
    method = METHODS["MC dropout"]
    assert isinstance(method, MCDropout)
    fit: Any = fitted(method)
    x, _ = rows(6, seed=1)
    predictions = fit.predict(x)
    means, variances = fit.moments(x)
    assert means.shape == (20, 6)
    center, spread = means.mean(axis=0), means.var(axis=0, ddof=1)
    z = stats.norm.ppf(0.95)
    sd = np.sqrt(spread + variances.mean(axis=0))
    ends = center + np.outer([-z, z], sd)
    np.testing.assert_allclose(np.stack(predictions.outcome.interval(0.9)), ends, rtol=1e-9)
    np.testing.assert_allclose(predictions.mean.sd(), np.sqrt(spread), rtol=1e-9)


def test_passes_have_the_law_of_a_mask_for_each_row() -> None:
    """Means and spreads over passes agree with masks drawn anew for every row."""
    method = MCDropout(rate=0.3, passes=4000, **QUICK)
    fit: Any = fitted(method)
    network = fit.networks[0]
    x, _ = rows(3, seed=1)
    ours = dropped_outputs(network, x, method.dropout, np.random.default_rng(0), 4000)[:, 0]
    rng = np.random.default_rng(1)
    h = np.repeat(network.scale.inputs(x)[None], 4000, axis=0)
    for layer, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
        if layer > 0:
            h = np.maximum(h, 0.0) * (rng.random(h.shape) >= 0.3) / 0.7
        h = h @ kernel.T + bias
    np.testing.assert_allclose(ours.mean(axis=0), h[:, :, 0].mean(axis=0), atol=0.06)
    np.testing.assert_allclose(ours.std(axis=0), h[:, :, 0].std(axis=0), rtol=0.06)


def test_constant_noise_is_learnt_from_rows_held_out() -> None:
    method = MCDropout(rate=0.02, noise="constant", validation=200, layers=(20,), epochs=60)
    predictions = fitted(method, n=800, d=1).predict([[0.0], [0.5]])
    assert predictions.mean is not None
    noise = predictions.outcome.sd() ** 2 - predictions.mean.sd() ** 2
    assert noise[0] == pytest.approx(noise[1])
    assert noise[0] == pytest.approx(0.09, rel=0.25)


def test_mean_variance_networks_see_where_noise_is_large() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2000, 1))
    sd = np.where(x[:, 0] > 0, 1.0, 0.2)
    y = x[:, 0] + sd * rng.normal(size=2000)
    prediction = (
        MeanVarianceNetwork(epochs=25, learning_rate=0.003)
        .fit(x, y, rng)
        .predict([[-0.6], [0.6]])
        .outcome
    )
    np.testing.assert_allclose(prediction.sd(), [0.2, 1.0], rtol=0.25)
    np.testing.assert_allclose(prediction.point(), [-0.6, 0.6], atol=0.2)


def test_quantile_networks_find_quantiles() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 1))
    y = x[:, 0] + rng.exponential(size=3000)
    method = QuantileNetwork(coverages=(0.8,), epochs=20, learning_rate=0.003)
    found = method.fit(x, y, rng).predict([[0.0]]).outcome.quantile([0.1, 0.9])
    np.testing.assert_allclose(found, [stats.expon.ppf([0.1, 0.9])], rtol=0.25, atol=0.06)


def test_learnt_rates_are_reported() -> None:
    method = ConcreteDropout(layers=(8, 6), epochs=20, drop_input=True)
    fit: Any = fitted(method)
    assert fit.rates.shape == (20, 3)
    np.testing.assert_allclose(fit.rates[0], 0.1, atol=0.01)
    assert fit.settled  # so few steps of Adam move a rate little
    x, _ = rows(600)
    method = ConcreteDropout(layers=(8, 6), epochs=10, learning_rate=0.02)
    falling = method.fit(x, x[:, 0], np.random.default_rng(0)).networks[0].rates
    assert (falling[-1] < 0.08).all()  # without noise there is little to be unsure of
    steady, moving = np.full((20, 2), 0.05), np.linspace([0.1, 0.1], [0.05, 0.01], 20)
    for rates, settled in ((steady, True), (moving, False), (steady[:1], False)):
        network = replace(fit.networks[0], rates=rates)
        assert replace(fit, networks=(network,)).settled is settled
    assert fitted(METHODS["MC dropout"]).networks[0].rates.shape == (15, 0)


def test_a_chunk_is_filled_by_as_many_data_sets() -> None:
    assert NetworkBootstrap(members=50, chunk=128).batch == 10
    assert NetworkBootstrap(members=50, chunk=10).batch == 1
    assert ConcreteDropout().batch == 512


def test_training_may_start_from_options_alone() -> None:
    x, y = rows()
    network = train([Member(x, y, seed=0)], MeanVarianceNetwork().head, BatchTraining(epochs=1))[0]
    assert [kernel.shape for kernel in network.kernels] == [(40, 2), (30, 40), (20, 30), (2, 20)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MeanVarianceNetwork(layers=()), "layers must not be empty"),
        (lambda: MeanVarianceNetwork(layers=(4, 0)), "layers must be"),
        (lambda: MeanVarianceNetwork(layers=40), "layers must be a list of whole numbers, got 40"),
        (
            lambda: MeanVarianceNetwork(layers="40"),
            "layers must be a list of whole numbers, got .40",
        ),
        (lambda: MeanVarianceNetwork(epochs=0), "epochs must be"),
        (lambda: MeanVarianceNetwork(epochs=1.5), "epochs must be"),
        (lambda: MeanVarianceNetwork(batch_size=True), "batch_size must be"),
        (lambda: MeanVarianceNetwork(chunk=0), "chunk must be"),
        (lambda: MeanVarianceNetwork(learning_rate=0.0), "learning_rate must be"),
        (lambda: MeanVarianceNetwork(penalty=-1.0), "penalty must be"),
        (lambda: NetworkBootstrap(members=1), "members must be"),
        (lambda: NetworkBootstrap(members=5, spread="mean"), "and even"),
        (lambda: NetworkBootstrap(convention="bde"), "convention must"),
        (lambda: NetworkBootstrap(spread="both"), "spread must"),
        (lambda: DeepEnsemble(members=1), "members must be"),
        (lambda: MCDropout(rate=1.0), "rate must be"),
        (lambda: MCDropout(noise="none"), "noise must be"),
        (lambda: MCDropout(passes=1), "passes must be"),
        (lambda: ConcreteDropout(passes=1), "passes must be"),
        (lambda: ConcreteDropout(start=0.0), "start must be"),
        (lambda: QuantileNetwork(coverages=(0.9, 0.9)), "distinct"),
        (lambda: QuantileNetwork(coverages=0.9), "coverages must be a list of numbers"),
    ],
)
def test_bad_options_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_lists_from_a_plan_become_tuples() -> None:
    assert hash(DeepEnsemble(layers=[5, 4])) == hash(DeepEnsemble(layers=(5, 4)))  # type: ignore[arg-type]
