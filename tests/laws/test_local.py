"""Measures computed beside the one pass keep the laws that their entries declare."""

from collections.abc import Callable

import numpy as np
import pytest

from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet

N = 400


def measured(change: Callable[[np.ndarray], np.ndarray], factor: float = 1.0) -> dict[str, float]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    site = np.where(x[:, 1] > 0, "a", "b")
    mean, sd = x[:, 0], np.exp(0.3 * x[:, 0])
    y = mean + sd * np.where(site == "a", 1.5, 0.8) * rng.normal(size=N)
    prediction = Distribution("norm", {"loc": change(mean), "scale": factor * sd})
    held = EvalSet.checked(
        change(y), prediction, features={"x": x[:, 0], "z": x[:, 1]}, groups={"site": site}
    )
    found = {record.metric: record.value for record in evaluate(held, beside="inputs").records}
    found.pop("noise_given_inputs")  # of equal widths alone
    return found


@pytest.fixture(scope="module")
def plain() -> dict[str, float]:
    return measured(lambda y: y)


def test_every_measure_has_an_entry_and_a_value(plain: dict[str, float]) -> None:
    assert set(plain) <= set(catalogue())
    assert np.isfinite(list(plain.values())).all()


@pytest.mark.parametrize(
    ("change", "factor"),
    [(lambda y: y + 8.0, 1.0), (lambda y: 4.0 * y, 4.0), (lambda y: -y, 1.0)],
    ids=["translation", "scale", "reflection"],
)
def test_declared_laws_hold(
    plain: dict[str, float], change: Callable[[np.ndarray], np.ndarray], factor: float
) -> None:
    for name, value in measured(change, factor).items():
        laws = catalogue()[name].laws
        assert (laws.translation, laws.scale) == ("invariant", 0.0)
        if factor != 1.0 or laws.reflection == "invariant" or change(np.ones(1))[0] > 0:
            assert value == pytest.approx(plain[name], abs=1e-9), name
