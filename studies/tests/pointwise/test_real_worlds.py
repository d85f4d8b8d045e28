"""Algorithm 3 on the UCI tables: each becomes a world in which cheap methods are tested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import pointwise
from howsure_studies.tasks import uci, uci_fixed, uci_names
from howsure_studies.tasks.worlds import CutWorld, ForestWorld

ROWS = 300


@pytest.mark.parametrize("name", [name for name in uci_names() if uci_fixed(name) is None])
def test_every_table_is_a_world(name: str, data_dir: Callable[[str], Path]) -> None:
    """Twenty trials on a sample of rows: lines miss the mean, conformal covers on average alone."""
    data_dir(f"uci_{name}")
    table = uci(name)
    rows = np.random.default_rng(0).permutation(len(table.y))[:ROWS]
    world = ForestWorld.from_data(table.x[rows], table.y[rows], name=name, trees=30)
    truth = world.truth(world.test_set(0).x)
    lower, upper = truth.interval(0.8)
    np.testing.assert_allclose(truth.cdf(upper) - truth.cdf(lower), 0.8, atol=1e-9)
    simulated = world.row_mean.var() + np.square(world.row_scale).mean()
    assert 0.9 < simulated / table.y[rows].var() < 1.5  # f follows some noise on so few noisy rows

    line = pointwise(world, LinearT(), coverages=(0.8,), trials=20)
    assert line.trials == 20
    score = line.brier("cicf", 0.8)
    assert score.corrected > 10 * score.standard_error
    conformal = SplitConformal(LinearRegression(), coverages=(0.8,))
    splits = [pointwise(world, conformal, trials=5, seed=seed) for seed in range(8)]
    marginal = np.mean([result.by_trial("picf", 0.8).mean() for result in splits])
    assert marginal == pytest.approx(0.8, abs=0.05)
    assert min(result.brier("picf", 0.8).variance for result in splits) > 0.005


def test_a_big_table_is_cut_in_a_hundred(data_dir: Callable[[str], Path]) -> None:
    """The third source: 100 training sets of 450 rows of the protein table."""
    data_dir("uci_protein")
    table = uci("protein")
    world = CutWorld.from_data(table.x, table.y)
    result = pointwise(world, SplitConformal(LinearRegression(), coverages=(0.8,)), trials=100)
    assert result.n_train == 452
    shares = result.picp(0.8)
    assert shares.mean() == pytest.approx(0.8, abs=0.04)
    assert shares.std() > 0.01
