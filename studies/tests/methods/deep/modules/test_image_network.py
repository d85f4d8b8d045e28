"""Networks for images as a method: mixtures of members, features, and plain options."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError, UnanswerableError  # noqa: E402
from howsure.predictions import Distribution  # noqa: E402
from howsure_studies.methods.catalogue import method_named, method_spec  # noqa: E402
from howsure_studies.methods.deep.heads import PairHead, QuantileHead  # noqa: E402
from howsure_studies.methods.deep.modules import ImageNetwork, ModuleTraining, small  # noqa: E402

TINY = {"name": "small", "widths": [4, 6]}
QUICK: dict[str, Any] = {"backbone": TINY, "recipe": ModuleTraining.small(3)}


def data(n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(n, 8, 8, 1), dtype=np.uint8)
    return x, x[:, :4].mean(axis=(1, 2, 3))


def test_an_ensemble_is_the_mixture_of_its_members() -> None:
    x, y = data()
    fitted = ImageNetwork(members=3, **QUICK).fit(x, y, np.random.default_rng(0))
    predictions = fitted.predict(x)
    laws = [network.prediction(x) for network in fitted.networks]
    means, sds = np.stack([law.point() for law in laws]), np.stack([law.sd() for law in laws])
    np.testing.assert_allclose(predictions.outcome.point(), means.mean(axis=0))
    variance = (sds**2).mean(axis=0) + means.var(axis=0)
    np.testing.assert_allclose(predictions.outcome.sd(), np.sqrt(variance))
    assert predictions.mean is not None
    np.testing.assert_allclose(predictions.mean.sd(), means.std(axis=0))
    features = fitted.features(x)
    assert features.shape == (40, 18)
    np.testing.assert_array_equal(features[:, 6:12], fitted.networks[1].features(x))


def test_members_differ_and_come_from_the_generator() -> None:
    x, y = data()
    method = ImageNetwork(members=2, **QUICK)
    one, same, other = (method.fit(x, y, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.features(x), same.features(x))
    assert not np.array_equal(one.features(x), other.features(x))
    assert not np.array_equal(one.networks[0].outputs(x), one.networks[1].outputs(x))
    alone = ImageNetwork(members=1, **QUICK).fit(x, y, np.random.default_rng(0))
    np.testing.assert_array_equal(alone.networks[0].outputs(x), one.networks[0].outputs(x))
    assert alone.predict(x).mean is None


def test_pairs_of_quantiles_are_averaged() -> None:
    x, y = data()
    method = ImageNetwork(head=PairHead(0.8), members=2, **QUICK)
    assert method.fixed_coverages == (0.8,)
    fitted = method.fit(x, y, np.random.default_rng(0))
    ends = np.stack([network.prediction(x).interval(0.8) for network in fitted.networks])
    np.testing.assert_allclose(fitted.predict(x).outcome.interval(0.8), ends.mean(axis=0))
    levels = (0.1, 0.25, 0.75, 0.95)
    assert ImageNetwork(head=QuantileHead(levels)).fixed_coverages == (0.5,)
    assert ImageNetwork().fixed_coverages is None


def test_members_are_mixed_or_their_moments_matched() -> None:
    x, y = data()
    fits = [
        ImageNetwork(members=2, combine=how, **QUICK).fit(x, y, np.random.default_rng(0))
        for how in ("mixture", "moments")
    ]
    mixed, normal = (fit.predict(x).outcome for fit in fits)
    assert isinstance(mixed, Distribution)
    assert isinstance(normal, Distribution)
    assert (mixed.law.name, normal.law.name) == ("norm+norm", "norm")
    assert mixed.sd() == pytest.approx(normal.sd(), rel=1e-9)


def test_the_best_epoch_needs_rows_held_out() -> None:
    x, y = data()
    with pytest.raises(InputError, match="keep"):
        ImageNetwork(recipe=ModuleTraining.small(3, keep="best"))
    method = ImageNetwork(
        backbone=TINY, recipe={"name": "small", "epochs": 4, "keep": "best"}, validation=0.25
    )
    network = method.fit(x, y, np.random.default_rng(0)).networks[0]
    assert np.isfinite(network.losses).all()
    assert network.kept == int(np.argmin(network.losses[:, 1])) + 1


def test_options_are_plain_values_and_back() -> None:
    path = "howsure_studies.methods.deep.modules.method:ImageNetwork"
    method = method_named(
        path, head={"name": "pair", "coverage": 0.8}, backbone="resnet34", recipe="small", members=2
    )
    assert method.name == "pair of quantiles deep ensemble, ResNet-34"
    spec = json.loads(json.dumps(method_spec(method)))
    again = method_named(spec["name"], **spec["options"])
    assert again == method
    own = ImageNetwork(backbone=small)
    spec = json.loads(json.dumps(method_spec(own)))
    assert method_named(spec["name"], **spec["options"]).name == own.name


def test_a_failed_member_is_not_asked() -> None:
    x, y = data()
    method = ImageNetwork(
        backbone=TINY, recipe=ModuleTraining.small(3, standardise=False), members=2
    )
    fitted = method.fit(x, y * 1e30, np.random.default_rng(0))
    for ask in (fitted.predict, fitted.features):
        with pytest.raises(UnanswerableError, match="2 of 2 networks failed"):
            ask(x)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"head": "gaus"}, "gaussian"),
        ({"backbone": "smal"}, "small"),
        ({"recipe": "smal"}, "small"),
        ({"members": 0}, "members"),
        ({"scaling": "half"}, "scaling"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ImageNetwork(**options)
