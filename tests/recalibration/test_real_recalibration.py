"""Recalibration of published predictions; random splits make rows exchangeable exactly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.recalibration import recalibrate


@pytest.mark.parametrize("method", ["cqr", "scale"])
def test_uq360_intervals_cover_what_they_should(
    data_dir: Callable[[str], Path], method: str
) -> None:
    y, point, lower, upper = np.loadtxt(
        data_dir("preds_ucc_uq360") / "sample_predict.csv.gz", delimiter=",", skiprows=1
    ).T
    whole = EvalSet.checked(y, Intervals(lower, upper), point=point)
    n, m, repeats = 199, 400, 150
    shares = []
    for trial in range(repeats):
        rows = child(0, "uq360", method, trial).permutation(len(y))[: n + m]
        result = recalibrate(
            whole.take(rows[n:]), whole.take(rows[:n]), method=method, coverage=0.9
        )
        low, high = result.evalset.predictions[0].interval(0.9)
        shares.append(np.mean((low <= y[rows[n:]]) & (y[rows[n:]] <= high)))
    law = stats.betabinom(m, 180, 20)
    assert np.mean(shares) == pytest.approx(0.9, abs=3.3 * law.std() / m / np.sqrt(repeats))
    assert np.std(shares) == pytest.approx(law.std() / m, rel=0.25)
    assert np.mean((lower <= y) & (y <= upper)) < 0.75


@pytest.mark.parametrize("method", ["scale", "crude", "isotonic"])
def test_perovskite_uncertainties_are_mended(data_dir: Callable[[str], Path], method: str) -> None:
    name = "PAL2022__Perovskite_RF_Test_uncal.csv.gz"
    error, sd = np.loadtxt(
        data_dir("preds_chem_pernot") / name, delimiter=",", skiprows=1, usecols=(0, 1)
    ).T
    whole = EvalSet.checked(error, Distribution.normal(np.zeros(len(sd)), sd))
    rows = child(0, "perovskite").permutation(len(sd))
    test = whole.take(rows[::2])
    prediction = recalibrate(test, whole.take(rows[1::2]), method=method).evalset.predictions[0]
    assert np.mean((error / sd) ** 2) < 0.7
    if isinstance(prediction, Distribution):
        square = (test.y / prediction.sd()) ** 2
        noise = square.std() * np.sqrt(2.0 / len(square))
        assert square.mean() == pytest.approx(1.0, abs=3 * noise)
        return
    share = (test.y[:, None] <= prediction.values).mean(axis=0)
    noise = np.sqrt(2 * prediction.levels * (1 - prediction.levels) / test.n)
    assert (np.abs(share - prediction.levels) < 3.5 * noise).all()
