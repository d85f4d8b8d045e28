"""Congruence as a loss and as an acquisition rule: what the examples compute, and what they say."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from extras import needs
from howsure.topics.congruence.predictive import Normals
from howsure.topics.congruence.reference import cce
from scripts import script


@pytest.fixture(scope="module")
def training() -> ModuleType:
    needs("torch")
    return script("examples/congruence_training.py")


@pytest.fixture(scope="module")
def acquisition() -> ModuleType:
    return script("examples/congruence_acquisition.py")


def test_the_loss_is_the_mean_squared_cce_of_the_rows(training: ModuleType) -> None:
    import torch

    rng = np.random.default_rng(0)
    x, y = rng.uniform(-3, 3, (2, 40)), rng.normal(size=(2, 40))
    mean, sd = rng.normal(size=(2, 40)), np.exp(0.3 * rng.normal(size=(2, 40)))
    given = [torch.from_numpy(each).float() for each in (x, y, mean, sd**2)]
    found = training.squared_cce(training.smoother(given[0]), *given[1:]).numpy()
    expected = [
        np.mean(np.square(cce(x[k], y[k], Normals(mean[k], sd[k])).values)) for k in range(2)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.slow
def test_as_a_loss_it_lowers_nll_but_not_itself(training: ModuleType) -> None:
    result = training.main(weights=(0.0, 100.0))
    fell, error = result.gain("cce", 100.0)
    assert fell < 2 * error
    fell, error = result.gain("nll", 100.0)
    assert fell > 2 * error
    assert result.own[0.0].mean() < 0.5 * result.own[training.TRUE].mean()
    assert "true law" in result.text()


def test_rows_predicted_from_all_others_are_refits(acquisition: ModuleType) -> None:
    x, y = acquisition.draw(15, np.random.default_rng(0))
    mean, sd = acquisition.predict_left_out(x, y)
    for row in range(15):
        rest = np.arange(15) != row
        other, spread = acquisition.predict(x[rest], y[rest], x[~rest])
        assert mean[row] == pytest.approx(other[0])
        assert sd[row] == pytest.approx(spread[0])


@pytest.mark.slow
def test_as_an_acquisition_rule_its_highest_value_is_worse_than_chance(
    acquisition: ModuleType,
) -> None:
    result = acquisition.main()
    gained, errors = result.gain("CCE")
    assert (gained[:3] < -2 * errors[:3]).all()
    assert gained[3] > 5  # of 40 cells of x that rows at random reach, and these do not
    gained, errors = result.gain("CCE drawn")
    assert (np.abs(gained[:3]) < 2 * errors[:3]).all()
    gained, errors = result.gain("sd")
    assert (gained[:2] > 0).all()
    assert gained[0] > 2 * errors[0]
    assert "CCE drawn" in result.text()
