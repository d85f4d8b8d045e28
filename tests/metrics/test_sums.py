"""Statistics by sums are those by rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure import Distribution, Intervals
from howsure.engine.catalogue import catalogue, from_sums
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.predictions import EvalSet, Samples
from howsure.stats.moments import Joint


def held(kind: str) -> EvalSet:
    rng = np.random.default_rng(3)
    n = 800
    mean, sd = 50.0 + rng.normal(size=n), np.exp(rng.normal(size=n) / 2)
    y = mean + sd * rng.normal(size=n)
    if kind == "normal":
        low, high = mean - 1.6 * sd, mean + 1.7 * sd
        predictions = (Intervals(low, high, coverage=0.9), Distribution.normal(mean, sd))
        return EvalSet.checked(y, predictions)
    if kind == "samples":
        return EvalSet.checked(y, Samples(mean[:, None] + sd[:, None] * rng.normal(size=(n, 9))))
    if kind == "constant":
        return EvalSet.checked(y, Intervals(mean - 1.0, mean + 1.0, coverage=0.8))
    if kind in ("above", "below"):  # bands of one side, where errors are, or are not
        off = np.abs(y - mean) if kind == "above" else -np.abs(y - mean)
        return EvalSet.checked(mean + off, Intervals(mean, mean + sd, coverage=0.9), point=mean)
    return EvalSet.checked(y, Intervals(mean - sd, mean + sd, coverage=0.7), point=y + sd)


@pytest.mark.parametrize("kind", ["normal", "samples", "constant", "point", "above", "below"])
@pytest.mark.parametrize("name", list(from_sums()))
def test_the_same_number_and_error(kind: str, name: str) -> None:
    evalset = held(kind)
    found = evaluate(evalset, metrics=[name])
    view = View(evalset)
    for record in found.records:
        sums = from_sums()[name]
        if record.reason.startswith("the ") and math.isnan(record.value):
            continue  # the table has nothing of the kind
        if record.key in found.scores:
            continue  # of this kind of prediction it is a plain mean
        joint = Joint.of(sums.rows(view, record.coverage, 50.0), sums.beside(view, record.coverage))
        told, slopes = sums.value(joint)
        assert told.value == pytest.approx(record.value, rel=1e-11, abs=1e-12, nan_ok=True)
        assert told.p == pytest.approx(record.p, nan_ok=True)
        if slopes is None:
            assert math.isnan(record.standard_error)
            continue
        (square,), _ = joint.powers(slopes)
        error = math.sqrt(square / (joint.mass * (joint.mass - 1.0)))
        assert error == pytest.approx(record.standard_error, rel=1e-8, abs=1e-12)


def test_every_statistic_of_sums_is_here() -> None:
    wanted = {
        name
        for name, entry in catalogue().items()
        if entry.merges == "sums"
        and not entry.beside
        and any(form.reduce == "statistic" for form in entry.forms)
    }
    assert wanted == set(from_sums())
