"""Mixtures of laws: against the sums that define them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from generated import examples
from howsure.core.errors import InputError
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, mixture
from howsure.predictions.distribution import law_named
from howsure.predictions.mixtures import MixtureLaw
from howsure.topics.congruence.view import assess_congruence, congruence_mode

WEIGHTS = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])


def normals() -> Distribution:
    return mixture(
        [
            Distribution.normal([0.0, -1.0, 4.0], [1.0, 0.1, 2.0]),
            Distribution.normal(3.0, [2.0] * 3),
        ],
        WEIGHTS,
    )


def counts() -> Distribution:
    return mixture(
        [
            Distribution("poisson", {"mu": [0.5, 4.0, 40.0]}),
            Distribution("double_poisson", {"mu": [9.0, 4.0, 7.0], "phi": [0.5, 4.0, 1.0]}),
        ],
        WEIGHTS,
    )


KINDS: dict[str, Callable[[], Distribution]] = {"normals": normals, "counts": counts}


@pytest.fixture(params=KINDS)
def prediction(request: pytest.FixtureRequest) -> Distribution:
    return KINDS[request.param]()


def parts_of(prediction: Distribution) -> list[tuple[np.ndarray, Distribution]]:
    assert isinstance(prediction.law, MixtureLaw)
    return [
        (
            prediction.parameters[f"weight_{k}"],
            Distribution(part, {p: prediction.parameters[f"{p}_{k}"] for p in part.parameters}),
        )
        for k, part in enumerate(prediction.law.parts, 1)
    ]


def test_answers_are_weighted_means(prediction: Distribution) -> None:
    y = np.array([1.0, 4.0, 9.0])
    parts = parts_of(prediction)
    np.testing.assert_allclose(prediction.cdf(y), sum(w * p.cdf(y) for w, p in parts), rtol=1e-13)
    np.testing.assert_allclose(
        np.exp(prediction.log_density(y)), sum(w * np.exp(p.log_density(y)) for w, p in parts)
    )
    mean = sum(w * p.point() for w, p in parts)
    np.testing.assert_allclose(prediction.point(), mean)
    second = sum(w * (p.sd() ** 2 + p.point() ** 2) for w, p in parts)
    np.testing.assert_allclose(prediction.sd(), np.sqrt(second - mean**2))


def test_densities_integrate_to_one() -> None:
    prediction = normals()
    for row in range(3):
        one = prediction.take(np.array([row]))
        total, _ = integrate.quad(
            lambda t, law=one: float(np.exp(law.log_density(np.array([t])))[0]),
            -30.0,
            30.0,
            points=[-1.0, 0.0, 3.0],
            limit=400,
        )
        assert total == pytest.approx(1.0, abs=1e-8)
    values = np.arange(300.0)
    total = np.exp([counts().log_density(np.full(3, v)) for v in values]).sum(axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=1e-10)


def test_quantiles_turn_the_cdf_round(prediction: Distribution) -> None:
    levels = np.array([1e-6, 0.05, 0.5, 0.9, 1 - 1e-6])
    found = prediction.quantile(levels).T
    for level, q in zip(levels, found, strict=True):
        if prediction.discrete:
            assert (prediction.cdf(q) >= level * (1 - 1e-9)).all()
            assert (prediction.cdf(q - 1) < level).all()
        else:
            np.testing.assert_allclose(prediction.cdf(q), level, rtol=1e-9)


@examples(60)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=4),
    st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4),
    st.floats(1e-4, 1 - 1e-4),
)
def test_quantiles_of_any_normals(means: list[float], sds: list[float], level: float) -> None:
    prediction = mixture([Distribution.normal([m], [s]) for m, s in zip(means, sds, strict=False)])
    q = prediction.quantile([level])[:, 0]
    below, above = (prediction.cdf(np.nextafter(q, e))[0] for e in (-np.inf, np.inf))
    assert below - 1e-9 <= level <= above + 1e-9


def test_samples_follow_the_cdf(prediction: Distribution) -> None:
    drawn = prediction.sample(np.random.default_rng(0), 4000)
    assert drawn.shape == (3, 4000)
    for level in (0.1, 0.5, 0.8):
        q = prediction.quantile([level])[:, 0]
        share = (drawn <= q[:, None]).mean(axis=1)
        np.testing.assert_allclose(share, prediction.cdf(q), atol=0.03)


def test_a_weight_of_zero_silences_a_part() -> None:
    both = mixture(
        [Distribution.normal([1.0], [1.0]), Distribution("cauchy", {"loc": [0.0]})], [1.0, 0.0]
    )
    np.testing.assert_allclose(both.quantile([0.2, 0.9]), [stats.norm.ppf([0.2, 0.9], 1.0)])
    assert both.sd() == pytest.approx(1.0)
    np.testing.assert_allclose(both.log_density(np.array([0.3])), stats.norm.logpdf(0.3, 1.0))


def test_a_mixture_has_a_name_and_takes_rows(prediction: Distribution) -> None:
    again = Distribution(law_named(prediction.law.name), prediction.parameters)
    y = np.array([1.0, 4.0, 9.0])
    np.testing.assert_array_equal(again.cdf(y), prediction.cdf(y))
    np.testing.assert_array_equal(
        prediction.take(np.array([2, 0])).cdf(y[[2, 0]]), prediction.cdf(y)[[2, 0]]
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(prediction)).cdf(y), prediction.cdf(y))
    assert mixture([again]) is again


def test_answers_broadcast(prediction: Distribution) -> None:
    y = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 30.0]])
    spread = {name: value[:, None] for name, value in prediction.parameters.items()}
    for ask in (prediction.law.cdf, prediction.law.log_density):
        table = ask(y, spread)
        np.testing.assert_allclose(table[:, 1], ask(y[:, 1], prediction.parameters), rtol=1e-12)


@pytest.mark.slow
def test_measures_take_mixtures() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, size=60)
    predictions = {
        "normals": mixture([Distribution.normal(x, x**0.5), Distribution.normal(x + 1, x**0.5)]),
        "counts": mixture(
            [Distribution("poisson", {"mu": x}), Distribution("poisson", {"mu": 2 * x})]
        ),
    }
    y = rng.poisson(1.5 * x).astype(float)
    for prediction in predictions.values():
        held = EvalSet.checked(y, prediction, embedding=x[:, None])
        found = {r.metric: r.value for r in evaluate(held, coverages=[0.9]).records}
        for name in ("crps", "log_score", "calibration_error"):
            assert np.isfinite(found[name]), name
        assert np.isfinite(assess_congruence(held, congruence_mode([held])).record.value)
    with pytest.raises(InputError, match="need y to be counts"):
        EvalSet.checked(y - 0.5, predictions["counts"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mixture([]), "at least one distribution"),
        (lambda: MixtureLaw([law_named("norm")]), "at least 2 distributions"),
        (lambda: law_named("norm+poisson"), "all discrete or all continuous"),
        (lambda: law_named("norm+nothing"), "law must be"),
        (lambda: mixture([normals(), normals().take(np.array([0]))]), "equal numbers of rows"),
        (lambda: mixture([normals(), normals()], [0.5, 0.6]), "sum to 1"),
        (lambda: mixture([normals(), normals()], [-0.5, 1.5]), "at least 0"),
        (lambda: mixture([normals(), normals()], [1.0]), "2 columns"),
        (
            lambda: Distribution(
                "norm+norm",
                {
                    "weight_1": 0.5,
                    "loc_1": 0,
                    "scale_1": -1,
                    "weight_2": 0.5,
                    "loc_2": 0,
                    "scale_2": 1,
                },
            ),
            "sd must be above 0",
        ),
    ],
)
def test_bad_mixtures_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_mixture_of_mixtures_is_one_mixture() -> None:
    shares = np.array([[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])
    other = Distribution("t", {"df": 5.0, "loc": [1.0, 2.0, 3.0]})
    whole = mixture([normals(), other], shares)
    assert whole.law.name == "norm+norm+t"
    np.testing.assert_allclose(whole.parameters["weight_2"], shares[:, 0] * WEIGHTS[:, 1])
    y = np.array([0.3, -1.0, 4.0])
    expected = shares[:, 0] * normals().cdf(y) + shares[:, 1] * other.cdf(y)
    np.testing.assert_allclose(whole.cdf(y), expected)
    np.testing.assert_allclose(
        whole.point(), shares[:, 0] * normals().point() + shares[:, 1] * other.point()
    )
